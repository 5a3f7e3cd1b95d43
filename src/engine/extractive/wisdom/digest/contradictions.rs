//! Finds the statements of an agent's own notes that newer logs contradict.
//!
//! A log contradicts a note in one of three ways: it has another value below the same label, it has the same words
//! with another number, version or address, or it says that the thing was done or stopped. The newest statement of
//! the logs decides, unless a later one agrees with the note or the notes say the same elsewhere. What was done, what
//! is open, and values of a moment contradict nothing. A note without a date may be newer than the logs; a person
//! decides.

use chrono::NaiveDate;

use super::{
    labelled_value::{LABEL_VALUES_MAX, LabelledValue, is_value},
    sections::{is_passing, role_of},
    worth::{is_measurement, is_telemetry, names_change},
};
use crate::{
    engine::extractive::{
        cue_phrases,
        parsed_log::{self, LogStatement, ParsedLog},
        routine_reports::is_routine_report,
        sections::{self, StatementClass},
        statements::{terms::StatementTerms, word_list::WordList},
        wisdom::similarity::repeats_entry,
    },
    memory::{
        address::Address,
        atom::{self, Atom, AtomKind},
        authorship::Speaker,
        statement::StatementKind,
    },
    privacy::SanitizedLog,
    text::{hash::HashedMap, hash::hash_bytes, sentences::sentence_ranges},
};

/// As many content words besides the values must be the same in both statements.
const SHARED_STEMS_MIN: usize = 3;

/// Which share of all their content words that must be.
const SHARED_MIN: f64 = 0.75;

/// A number among the first words is part of a name: `Phase 2`.
const NAME_WORDS: usize = 2;

/// A statement of notes that newer logs contradict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteContradiction {
    /// The place of the notes among those given.
    pub notes: usize,
    /// The line of the notes.
    pub line: u32,
    /// What the notes say.
    pub text: String,
    /// The day since which the logs say something else.
    pub since: NaiveDate,
    /// The line of the newest log that says it.
    pub log: Address,
    /// What it says.
    pub log_text: String,
}

/// Returns whether a newer text says that what an older one says was done or stopped.
pub type IsEndedBy<'a> = &'a dyn Fn(&str, &str) -> bool;

/// Finds the statements of notes that logs contradict, which are sorted by day; at most one for each line.
pub(crate) fn find(
    notes: &[SanitizedLog],
    logs: &[SanitizedLog],
    is_ended_by: IsEndedBy<'_>,
) -> Vec<NoteContradiction> {
    let said: Vec<(usize, Claim)> = notes
        .iter()
        .enumerate()
        .flat_map(|(at, log)| claims_of(log).into_iter().map(move |it| (at, it)))
        .collect();
    let claims: Vec<Claim> = logs.iter().flat_map(claims_of).collect();
    let search =
        ContradictionSearch::new(said.iter().map(|it| &it.1).collect(), &claims, is_ended_by);
    let mut found: Vec<NoteContradiction> = Vec::new();
    for (at, note) in &said {
        let line = note.address.line;
        if found.last().is_some_and(|it| (it.notes, it.line) == (*at, line)) {
            continue;
        }
        let newest = search.newest_against(note);
        found.extend(newest.map(|(since, newest)| NoteContradiction {
            notes: *at,
            line,
            text: note.text.clone(),
            since,
            log: newest.address.clone(),
            log_text: newest.text.clone(),
        }));
    }
    found
}

/// A sentence that says how something is.
struct Claim {
    address: Address,
    /// The day of a log; for a note, the last one that it or a heading above it names.
    day: NaiveDate,
    /// Whether it has a day at all.
    is_dated: bool,
    text: String,
    kind: StatementKind,
    /// Whether a heading above it says that what follows was stopped.
    is_former: bool,
    /// Whether it says what somebody did, or what was at a moment.
    is_event: bool,
    terms: StatementTerms,
    /// The terms without values.
    frame: StatementTerms,
    values: Vec<ClaimValue>,
    /// What its label names, with the title above it.
    label: Option<ClaimLabel>,
}

/// A number, version or address in a claim.
#[derive(Clone, PartialEq, Eq)]
struct ClaimValue {
    kind: AtomKind,
    text: String,
    /// Whether it is among the first words.
    is_in_name: bool,
}

struct ClaimLabel {
    labelled: LabelledValue,
    title: String,
}

struct ContradictionSearch<'a> {
    notes: Vec<&'a Claim>,
    claims: &'a [Claim],
    /// The claims with a label, oldest first.
    by_label: HashedMap<Vec<usize>>,
    is_ended_by: IsEndedBy<'a>,
}

impl<'a> ContradictionSearch<'a> {
    fn new(notes: Vec<&'a Claim>, claims: &'a [Claim], is_ended_by: IsEndedBy<'a>) -> Self {
        let mut by_label = HashedMap::<Vec<usize>>::default();
        for (at, claim) in claims.iter().enumerate() {
            if let Some(label) = &claim.label {
                by_label.entry(hash_bytes(label.labelled.label.as_bytes())).or_default().push(at);
            }
        }
        Self { notes, claims, by_label, is_ended_by }
    }

    /// Returns the newest claim that contradicts a note, and the day since which the logs say so.
    fn newest_against(&self, note: &Claim) -> Option<(NaiveDate, &'a Claim)> {
        let (since, newest) = self
            .other_value_of_label(note)
            .or_else(|| self.same_words_with_other_value(note))
            .or_else(|| self.end_of(note))?;
        let later = &self.claims[newest + 1..];
        let newest = &self.claims[newest];
        let is_said_again = later.iter().any(|it| repeats_entry(&note.terms, &it.terms));
        let is_known = self.notes.iter().any(|it| {
            !std::ptr::eq(*it, note)
                && (repeats_entry(&it.terms, &newest.terms) || has_same_value(it, newest))
        });
        (!is_said_again && !is_known).then_some((since, newest))
    }

    /// Returns those of some claims that are newer than a note.
    fn newer_than(
        &self,
        note: &Claim,
        claims: impl DoubleEndedIterator<Item = usize>,
    ) -> Vec<usize> {
        claims.filter(|it| !note.is_dated || self.claims[*it].day > note.day).collect()
    }

    /// Returns the last of these claims that is not as the note, and the first day since which they are as it.
    fn last_value(
        &self,
        claims: &[usize],
        is_same: impl Fn(&Claim, &Claim) -> bool,
    ) -> Option<(NaiveDate, usize)> {
        let newest = *claims.last()?;
        let same =
            claims.iter().rev().take_while(|it| is_same(&self.claims[**it], &self.claims[newest]));
        Some((self.claims[*same.last()?].day, newest))
    }

    fn other_value_of_label(&self, note: &Claim) -> Option<(NaiveDate, usize)> {
        let label = note.label.as_ref()?;
        let with_label = self.by_label.get(&hash_bytes(label.labelled.label.as_bytes()))?;
        let is_about_same = |it: &usize| {
            let other = self.claims[*it].label.as_ref();
            other.is_some_and(|it| {
                it.labelled.is_specific || (!it.title.is_empty() && it.title == label.title)
            })
        };
        let label = &label.labelled;
        let found = self.newer_than(note, with_label.iter().copied().filter(is_about_same));
        let of_claim = |it: usize| self.claims[it].label.as_ref().map(|it| &it.labelled);
        let mut values: Vec<&LabelledValue> = Vec::new();
        for value in found.iter().filter_map(|it| of_claim(*it)) {
            if !values.iter().any(|it| it.has_same_value(value)) {
                values.push(value);
            }
        }
        let newest = of_claim(*found.last()?)?;
        // What changes often is a count, of which the notes may know a newer value than the logs.
        let was_said = || values.iter().any(|it| it.has_same_value(label));
        let contradicts = (values.len() == 1 || (values.len() <= LABEL_VALUES_MAX && was_said()))
            && newest.contradicts(label);
        let same = |a: &Claim, b: &Claim| has_same_value(a, b);
        contradicts.then(|| self.last_value(&found, same)).flatten()
    }

    fn same_words_with_other_value(&self, note: &Claim) -> Option<(NaiveDate, usize)> {
        let has_words = |it: &usize| {
            let claim = &self.claims[*it];
            !claim.is_event
                && note.frame.stems.shared_count(&claim.frame.stems) >= SHARED_STEMS_MIN
                && note.frame.similarity(&claim.frame) >= SHARED_MIN
        };
        if note.is_event || note.values.is_empty() || note.frame.stems.len() < SHARED_STEMS_MIN {
            return None;
        }
        let found = self.newer_than(note, (0..self.claims.len()).filter(has_words));
        let newest = &self.claims[*found.last()?];
        let is_constant = found.iter().all(|it| self.claims[*it].values == newest.values);
        let was_said = || found.iter().any(|it| self.claims[*it].values == note.values);
        let contradicts = differ_in_values(note, newest) && (is_constant || was_said());
        let same = |a: &Claim, b: &Claim| a.values == b.values;
        contradicts.then(|| self.last_value(&found, same)).flatten()
    }

    fn end_of(&self, note: &Claim) -> Option<(NaiveDate, usize)> {
        let may_end = matches!(
            note.kind,
            StatementKind::State | StatementKind::Environment | StatementKind::Open
        );
        if note.is_event || note.is_former || !may_end {
            return None;
        }
        let ends = |it: &usize| {
            let claim = &self.claims[*it];
            // The words of a path are those of many texts.
            note.frame.stems.shared_count(&claim.frame.stems) >= SHARED_STEMS_MIN
                && (self.is_ended_by)(&note.text, &claim.text)
        };
        let found = self.newer_than(note, (0..self.claims.len()).filter(ends));
        let newest = *found.last()?;
        Some((self.claims[*found.first()?].day, newest))
    }
}

/// Returns whether two claims have the same label and value.
fn has_same_value(a: &Claim, b: &Claim) -> bool {
    let (Some(a), Some(b)) = (&a.label, &b.label) else { return false };
    a.labelled.label == b.labelled.label && a.labelled.has_same_value(&b.labelled)
}

/// Returns whether two claims with the same words have one or two other values in the same places.
fn differ_in_values(a: &Claim, b: &Claim) -> bool {
    const DIFFERENT_MAX: usize = 2;
    let without = |a: &Claim, b: &Claim| -> Vec<ClaimValue> {
        let is_new = |it: &&ClaimValue| !b.values.iter().any(|other| other.text == it.text);
        a.values.iter().filter(is_new).cloned().collect()
    };
    let kinds = |it: &[ClaimValue]| it.iter().map(|it| it.kind).collect::<Vec<_>>();
    let (of_a, of_b) = (without(a, b), without(b, a));
    (1..=DIFFERENT_MAX).contains(&of_a.len())
        && a.values.len() == b.values.len()
        && kinds(&of_a) == kinds(&of_b)
        && !of_a.iter().chain(&of_b).any(|it| it.is_in_name)
}

/// Returns the claims of a log, or of notes.
fn claims_of(log: &SanitizedLog) -> Vec<Claim> {
    let page = parsed_log::parse(log);
    let is_log = log.date() != NaiveDate::default();
    let mut claims = Vec::new();
    for statement in &page.statements {
        let is_own = statement.is_own_words()
            && statement.speaker != Some(Speaker::Assistant)
            && !statement.introduces
            && !statement.is_pasted;
        if !is_own || (is_log && is_routine_report(&statement.text)) {
            continue;
        }
        let sentences = sentence_ranges(&statement.text);
        let claim = |(start, end)| claim_of(&page, statement, (start, end), is_log);
        claims.extend(sentences.into_iter().filter_map(claim));
    }
    claims
}

fn claim_of(
    page: &ParsedLog,
    statement: &LogStatement,
    (start, end): (usize, usize),
    is_log: bool,
) -> Option<Claim> {
    let text = statement.text[start..end].trim();
    if text.ends_with(['?', '？', ':', '：']) || !text.contains(char::is_alphabetic) {
        return None;
    }
    let words = WordList::of(text);
    let class = sections::class_of(page, statement, text);
    let kind = role_of(page, statement, (text, &words), class).kind;
    let mut atoms = atom::find_atoms(text);
    let is_report = is_telemetry(text, &atoms);
    atoms.retain(is_value);
    let is_rough = |it: &Atom| {
        text[it.end..].starts_with('+')
            || text[..it.start].trim_end().ends_with(['~', '≈', '<', '>', '≥', '≤'])
    };
    let is_moment = is_passing(&words) || names_change(text) || atoms.iter().any(is_rough);
    if is_log && (kind == StatementKind::Open || is_report) {
        return None;
    }
    // A log measures, notes say how things are.
    let is_measured = is_log && is_measurement(text);
    let line = statement.lines_of(start, end).next()?;
    let day = if is_log { Some(page.stem.date()) } else { day_of_note(page, statement) };
    let name_end = words.offset(NAME_WORDS).unwrap_or(text.len());
    let value = |it: &Atom| ClaimValue {
        kind: it.kind,
        text: it.norm(text).into_owned(),
        is_in_name: it.start < name_end,
    };
    let above = std::iter::successors(statement.heading, |&it| page.heads[it].parent);
    let mut heads =
        statement.lead.into_iter().chain(above).map(|it| WordList::of(&page.heads[it].text));
    Some(Claim {
        is_former: heads.any(|it| it.has(cue_phrases::RETIRED)),
        address: page.address(line),
        day: day.unwrap_or_default(),
        is_dated: day.is_some(),
        kind,
        is_event: class == StatementClass::Outcome || is_moment || is_measured,
        terms: StatementTerms::of(text),
        frame: StatementTerms::of(&without_atoms(text, &atoms)),
        values: atoms.iter().map(value).collect(),
        label: (start == 0 && !is_moment).then(|| label_of(page, statement, end)).flatten(),
        text: text.to_owned(),
    })
}

fn without_atoms(text: &str, atoms: &[Atom]) -> String {
    let mut rest = 0;
    let mut left = String::with_capacity(text.len());
    for atom in atoms {
        left.push_str(&text[rest..atom.start]);
        rest = atom.end;
    }
    left + &text[rest..]
}

/// Returns the last day that a statement of notes names, else that of the nearest heading with one.
fn day_of_note(page: &ParsedLog, statement: &LogStatement) -> Option<NaiveDate> {
    let last_day = |text: &str| {
        let dates = atom::find_atoms(text).into_iter().filter(|it| it.kind == AtomKind::Date);
        dates.filter_map(|it| it.norm(text).parse().ok()).max()
    };
    let above = std::iter::successors(statement.heading, |&it| page.heads[it].parent);
    let mut heads = statement.lead.into_iter().chain(above);
    last_day(&statement.text).or_else(|| heads.find_map(|it| last_day(&page.heads[it].text)))
}

/// Returns the label of a statement whose words up to `end` are a short value.
fn label_of(page: &ParsedLog, statement: &LogStatement, end: usize) -> Option<ClaimLabel> {
    // After a dash is what a thing is, one of many descriptions.
    if !statement.label_text().trim_end().ends_with([':', '：']) {
        return None;
    }
    let label = sections::normalized_label(statement.label_text());
    let labelled = LabelledValue::new(label, statement.text.get(statement.label..end)?.trim())?;
    let title = statement.lead.or(statement.heading).map(|it| &page.heads[it].text);
    let title = title.map(|it| sections::normalized_label(it)).unwrap_or_default();
    Some(ClaimLabel { labelled, title })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        memory::log::DailyLog,
        privacy::{self, PrivacyRules},
    };

    /// Returns what contradicts notes, each as `LINE since DAY: log line`.
    fn found(notes: &str, days: &[(&str, &str)]) -> Vec<String> {
        let rules = PrivacyRules::default();
        let logs: Vec<SanitizedLog> = days
            .iter()
            .map(|(day, text)| DailyLog::parse(day.parse().unwrap(), text.as_bytes()).unwrap())
            .map(|it| privacy::sanitize(&it, &rules))
            .collect();
        let notes = privacy::sanitize_notes(notes, &rules).unwrap();
        let is_ended_by = |_: &str, newer: &str| newer.contains("disabled");
        let found = find(&[notes], &logs, &is_ended_by);
        found.iter().map(|it| format!("{} since {}: {}", it.line, it.since, it.log)).collect()
    }

    #[track_caller]
    fn check(notes: &str, days: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(found(notes, days), expected, "{notes} / {days:?}");
    }

    const LIMIT: &str = "# Notes\n\n- Uploads to the mirror are limited to 40 MB\n";

    #[test]
    fn another_value_contradicts() {
        let is = |notes: &str, text: &str| {
            check(notes, &[("2026-03-05", text)], &["1 since 2026-03-05: 2026-03-05:1"]);
        };
        is("- Gateway port: 8080", "- Gateway port: 9090");
        is("- **Default model**: opus", "- Default model: sonnet");
        is(
            "- Uploads to the mirror are limited to 40 MB",
            "- Uploads to the mirror are limited to 60 MB",
        );
        is(
            "- The harbour dashboard lives at https://a.example/tides",
            "- The harbour dashboard lives at https://b.example/tides",
        );
        check(
            "# Gateway\n\n- Port: 8080\n",
            &[("2026-03-05", "# Gateway\n\n- Port: 9090\n")],
            &["3 since 2026-03-05: 2026-03-05:3"],
        );
        is(
            "- The mirror in Brest copies the tables every hour",
            "- The mirror in Brest of the tables is disabled",
        );
    }

    #[test]
    fn what_differs_otherwise_contradicts_nothing() {
        for (notes, text) in [
            // The same value, in more words.
            ("- Gateway port: 8080", "- Gateway port: 8080 (nginx)"),
            // Labels that say nothing.
            ("- Status: open", "- Status: closed"),
            ("# Gateway\n\n- Port: 8080", "# Board\n\n- Port: 9090"),
            ("- Decision: keep the pump", "- Decision: sell the boat"),
            ("- Ottilie: likes tea", "- Ottilie: called twice"),
            // Names with numbers, lists, events, measurements, open items, questions.
            (
                "- Phase 2 of the harbour board is built by Ada",
                "- Phase 3 of the harbour board is built by Ada",
            ),
            ("- Harbour board: made of oak", "- Harbour board: Ada is ill"),
            ("- **Harbour board** - tides of Brest", "- **Harbour board** - done"),
            ("- Total tide files: 50+", "- Total tide files: 48"),
            ("- Tide tools: gauge, clock", "- Tide tools: buoy, chart"),
            ("- Imported 38 files of the tide tables", "- Imported 40 files of the tide tables"),
            ("- Next visit of Brest: 2026-03-01", "- Next visit of Brest: 2026-04-01"),
            (
                "- Uploads to the mirror are limited to 40 MB",
                "- [ ] Uploads to the mirror are limited to 60 MB",
            ),
            (
                "- Uploads to the mirror are limited to 40 MB",
                "- Are uploads to the mirror limited to 60 MB?",
            ),
            (
                "- Uploads to the mirror are limited to 40 MB",
                "> Uploads to the mirror are limited to 60 MB",
            ),
            // Another thing.
            (
                "- Uploads to the mirror are limited to 40 MB",
                "- Uploads to the archive of Brest are limited to 60 MB",
            ),
        ] {
            check(notes, &[("2026-03-05", text)], &[]);
        }
    }

    #[test]
    fn the_newest_statement_decides() {
        let with = |limit: &str| format!("- Uploads to the mirror are limited to {limit} MB\n");
        let (old, new) = (with("40"), with("60"));
        check(
            LIMIT,
            &[("2026-03-04", &old), ("2026-03-05", &new), ("2026-03-07", &new)],
            &["3 since 2026-03-05: 2026-03-07:1"],
        );
        // The logs returned to the value, or the notes know the new one.
        check(LIMIT, &[("2026-03-05", &new), ("2026-03-07", &old)], &[]);
        check(&format!("{LIMIT}\n{new}"), &[("2026-03-05", &new)], &[]);
        // A count: the notes may know a newer value.
        let count = |it: &str| format!("- Total tide tables: {it}\n");
        let (old, new) = (count("43"), count("50"));
        let days = [("2026-03-05", &old[..]), ("2026-03-07", &new[..])];
        check(&count("53"), &days, &[]);
        check(&old, &days, &["1 since 2026-03-07: 2026-03-07:1"]);
        // What was paused is known to be.
        let ended = [("2026-03-05", "- The mirror in Brest of the tables is disabled")];
        check("# Paused\n\n- The mirror in Brest copies the tables every hour", &ended, &[]);
        // A series.
        let label = |it: &str| format!("- Open orders: {it}\n");
        let days: Vec<String> = ["3", "4", "7", "9"].map(label).to_vec();
        let days: Vec<(&str, &str)> = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]
            .into_iter()
            .zip(days.iter().map(|it| &it[..]))
            .collect();
        check("- Open orders: 2\n", &days, &[]);
    }

    #[test]
    fn a_dated_note_is_compared_with_newer_logs_only() {
        let new = "- Uploads to the mirror are limited to 60 MB\n";
        let dated = LIMIT.replace("MB", "MB (2026-03-06)");
        let headed = LIMIT.replace("# Notes", "# Notes of 2026-03-06");
        for notes in [&dated, &headed] {
            check(notes, &[("2026-03-05", new)], &[]);
            check(notes, &[("2026-03-07", new)], &["3 since 2026-03-07: 2026-03-07:1"]);
        }
    }
}
