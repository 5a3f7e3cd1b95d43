//! Checks that an item says nothing that its cited lines do not say.
//!
//! What can be checked by program is checked: that there is a citation, that each cited line exists
//! and is not blank, and that each atom of the item (numbers, dates, money, names, identifiers,
//! addresses, code) stands in the cited lines. The date of a cited line counts as standing in it.
//! What the lines only suppose may not be stated flatly ([`hedge`]).
//! Pure: the flow calls it between engine and vault, for each engine alike.

mod amounts;
mod claims;
pub(crate) mod completeness;
pub(crate) mod hedge;
pub mod session;

use std::{cell::OnceCell, collections::HashSet, sync::LazyLock};

use chrono::NaiveDate;

use self::{amounts::SourceQuantities, claims::CitedClaims};
use crate::{
    engine::EngineDraft,
    memory::{
        address::{Address, Citation, Stem},
        atom::{self, Atom, AtomKind},
        item::{Item, SummarySection},
        log::TextOrigin,
        markdown::LineKind,
    },
    model::prompt::PromptName,
    privacy::{
        SanitizedLine, SanitizedLog,
        quarantine::{self, Concern},
    },
    text::{lexicon::CLAIMS, words},
};

impl Violation {
    /// Returns whether it is kept out for what it looks like.
    pub fn is_suspicious(&self) -> bool {
        matches!(self, Self::Suspicious { .. })
    }
}

/// Where cited lines are looked up.
pub trait LineLookup {
    /// Returns the line at an address, if its file has it.
    fn line(&self, stem: &Stem, number: u32) -> Option<&SanitizedLine>;

    /// Returns whether a word is the name of somebody, anywhere in the files.
    fn is_person_name(&self, _word: &str) -> bool {
        false
    }
}

/// Returns whether a word is the name of somebody in logs: written with a capital inside of a sentence
/// there, and never without.
pub fn is_person_name_in<'l>(word: &str, logs: impl Iterator<Item = &'l SanitizedLog>) -> bool {
    let mut is_name = false;
    let lower = word.to_lowercase();
    for line in logs.flat_map(SanitizedLog::lines) {
        let text = line.text();
        if contains_word(text, &lower) {
            return false;
        }
        if is_name || !contains_word(text, word) {
            continue;
        }
        // In German each noun has a capital; a title tells.
        let titled = || {
            ["Herr ", "Herrn ", "Frau ", "Firma ", "bei "]
                .iter()
                .any(|it| text.contains(&format!("{it}{word}")))
        };
        let named = || {
            let is_it = |it: &Atom| it.kind == AtomKind::Name && it.text(text) == word;
            atom::find_atoms(text).iter().any(is_it)
        };
        is_name = if claims::is_german(text) { titled() } else { named() };
    }
    is_name
}

/// Why an item is kept out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// It rests on nothing.
    #[error("the bullet cites no line")]
    NoCitation,
    /// It says nothing.
    #[error("the bullet has no words")]
    NoWords,
    /// A cited line is not there.
    #[error("line {address} does not exist")]
    LineMissing {
        /// The line.
        address: Address,
    },
    /// A cited line holds no text.
    #[error("line {address} is blank")]
    LineBlank {
        /// The line.
        address: Address,
    },
    /// It reads like an instruction or hides something, though its lines do not.
    #[error("the bullet looks like an attack ({concern}), and its lines do not")]
    Suspicious {
        /// What speaks against it.
        concern: Concern,
    },
    /// A number, date, name, or the like stands in no cited line.
    #[error("`{atom}` stands in none of the cited lines")]
    AtomNotInSources {
        /// The atom as the item spells it.
        atom: String,
    },
    /// It is a part of what was sent, and no bullet.
    #[error("`{words}` is no bullet's, but of what was sent")]
    PromptEcho {
        /// What was sent.
        words: String,
    },
    /// It has no words in common with its lines.
    #[error("the cited lines are about something else")]
    Unrelated,
    /// The lines say no where it says yes.
    #[error("`{words}` drops a negation of the cited lines")]
    NegationDropped {
        /// What the item states.
        words: String,
    },
    /// The lines say yes where it says no.
    #[error("`{words}` denies what the cited lines say")]
    NegationAdded {
        /// What the item states.
        words: String,
    },
    /// Somebody else said or did it.
    #[error("the cited lines do not say that of `{name}`")]
    Misattributed {
        /// Whom the item names.
        name: String,
    },
    /// The lines suppose what the item states.
    #[error("`{words}` is a fact here, but the cited lines only suppose it")]
    HedgeDropped {
        /// What the item states.
        words: String,
    },
}

/// What of a draft stood the check.
#[derive(Clone, Debug, Default)]
pub struct GroundedDraft {
    /// The items that stood it, in their sections and order; empty sections are left out.
    pub sections: Vec<(SummarySection, Vec<Item>)>,
    /// The items that did not, and why.
    pub rejected: Vec<(SummarySection, Item, Violation)>,
}

impl LineLookup for [SanitizedLog] {
    fn line(&self, stem: &Stem, number: u32) -> Option<&SanitizedLine> {
        // Sorted by stem, as an engine gets them.
        let at = self.binary_search_by(|log| log.stem().cmp(stem)).ok()?;
        self[at].line(number)
    }

    fn is_person_name(&self, word: &str) -> bool {
        is_person_name_in(word, self.iter())
    }
}

impl LineLookup for Vec<SanitizedLog> {
    fn line(&self, stem: &Stem, number: u32) -> Option<&SanitizedLine> {
        self.as_slice().line(stem, number)
    }

    fn is_person_name(&self, word: &str) -> bool {
        self.as_slice().is_person_name(word)
    }
}

/// Returns whether an item rests on nothing but text from elsewhere: quotes, code, and logs that hold
/// mails or web pages. Such an item may be told, but nothing lasting is made of it until a person
/// accepts a line of it. One source that is a person's or an agent's own words is enough.
pub fn cites_only_external<S: LineLookup + ?Sized>(citation: &Citation, sources: &S) -> bool {
    let mut lines = citation.addresses().filter_map(|it| sources.line(&it.stem, it.line));
    lines.all(|it| it.origin() == TextOrigin::External)
}

/// Whose words a draft is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Those of the lines, put together by program: what they claim needs no second look.
    FromSources,
    /// Anybody's.
    Free,
}

/// Splits a draft into what stands the check and what does not. What `may_pass` names may look like an
/// attack: a person has read it.
pub fn check_draft<S: LineLookup + ?Sized>(
    draft: &EngineDraft,
    words: Wording,
    sources: &S,
    may_pass: &dyn Fn(&Item) -> bool,
) -> GroundedDraft {
    let mut grounded = GroundedDraft::default();
    for (section, items) in &draft.sections {
        let mut accepted = Vec::new();
        for item in items {
            let checked = match check_with_wording(item, words, sources, false) {
                Err(why) if why.is_suspicious() && may_pass(item) => {
                    check_with_wording(item, words, sources, true)
                }
                checked => checked,
            };
            match checked {
                Ok(()) => accepted.push(item.clone()),
                Err(violation) => grounded.rejected.push((*section, item.clone(), violation)),
            }
        }
        if !accepted.is_empty() {
            grounded.sections.push((*section, accepted));
        }
    }
    grounded
}

/// Checks one item that a model wrote: as [`check`] does, and that its lines are about it at all. What a
/// person put into other words may share none with its lines.
///
/// # Errors
///
/// Returns the first rule that the item breaks.
pub fn check_model_item<S: LineLookup + ?Sized>(item: &Item, sources: &S) -> Result<(), Violation> {
    check(item, sources)?;
    let addresses = item.citation.iter().flat_map(Citation::addresses);
    let lines: Vec<&str> = addresses
        .filter_map(|it| sources.line(&it.stem, it.line))
        .map(SanitizedLine::text)
        .collect();
    if lines.iter().any(|it| it.contains(item.text.trim())) {
        return Ok(());
    }
    let amounts = amounts::find_quantities(&item.text).len();
    if CitedClaims::of(&lines).is_unrelated(&item.text, amounts) {
        return Err(Violation::Unrelated);
    }
    Ok(())
}

/// Returns whether a text of a day says an amount or a day, in whatever form.
pub(super) fn mentions_amount(date: NaiveDate, text: &str, amount: &str) -> bool {
    let mut said = SourceQuantities::default();
    said.read(date, text);
    let wanted = amounts::find_quantities(amount);
    wanted.iter().any(|it| !it.is_ambiguous) && said.first_unsupported(&wanted, |_| false).is_none()
}

/// What stands as it is written, so that a number in it is none of its own.
const VERBATIM_KINDS: &[AtomKind] =
    &[AtomKind::Code, AtomKind::Url, AtomKind::Path, AtomKind::Identifier];

/// Checks one item against the lines that it cites.
///
/// # Errors
///
/// Returns the first rule that the item breaks.
pub fn check<S: LineLookup + ?Sized>(item: &Item, sources: &S) -> Result<(), Violation> {
    check_with_wording(item, Wording::Free, sources, false)
}

/// Returns whether nothing but its look speaks against an item.
pub fn is_only_suspicious<S: LineLookup + ?Sized>(item: &Item, sources: &S) -> bool {
    check(item, sources).is_err_and(|it| it.is_suspicious())
        && check_with_wording(item, Wording::Free, sources, true).is_ok()
}

fn check_with_wording<S: LineLookup + ?Sized>(
    item: &Item,
    words: Wording,
    sources: &S,
    is_read: bool,
) -> Result<(), Violation> {
    let citation = item.citation.as_ref().ok_or(Violation::NoCitation)?;
    if item.text.trim().is_empty() {
        return Err(Violation::NoWords);
    }
    let mut cited = CitedText::default();
    let (mut is_own, mut is_accepted) = (false, is_read);
    for (stem, lines) in citation.files() {
        // Range by range: a citation that a person typed may claim a million lines.
        for number in lines.iter() {
            let address = || Address { stem: stem.clone(), line: number };
            let line = sources
                .line(stem, number)
                .ok_or_else(|| Violation::LineMissing { address: address() })?;
            if line.text().trim().is_empty() {
                return Err(Violation::LineBlank { address: address() });
            }
            is_own |= line.origin() != TextOrigin::External;
            is_accepted |= line.is_accepted();
            cited.lines.push((stem.date(), line.text()));
            cited.are_list_items.push(matches!(line.kind(), LineKind::ListItem { .. }));
        }
    }
    // A person who accepted a line has read it.
    if !is_accepted {
        let origin = if is_own { TextOrigin::Agent } else { TextOrigin::External };
        if let Some(&concern) = quarantine::concerns(&item.text, origin).first() {
            return Err(Violation::Suspicious { concern });
        }
    }
    // What is told as it stands names nothing new; what was cut off it may still have mattered.
    let whole = item.text.trim();
    if cited.contains_verbatim(whole) {
        return cited.check_claims(&item.text, words == Wording::Free && whole.contains('…'));
    }
    if words == Wording::Free
        && let Some(words) = find_prompt_echo(whole, &cited)
    {
        return Err(Violation::PromptEcho { words });
    }
    let atoms = atom::find_atoms(&item.text);
    let quantities = amounts::find_quantities(&item.text);
    let apart = |at: usize, of: &[AtomKind]| {
        let found = atoms.partition_point(|it| it.end <= at);
        atoms.get(found).is_some_and(|it| it.start <= at && of.contains(&it.kind))
    };
    let missing =
        cited.quantities().first_unsupported(&quantities, |it| apart(it.start, VERBATIM_KINDS));
    if let Some((start, end)) = missing {
        let atom = item.text[start..end].to_owned();
        return Err(Violation::AtomNotInSources { atom });
    }
    for atom in &atoms {
        let at = quantities.partition_point(|it| it.end <= atom.start);
        let told = quantities.get(at).is_some_and(|it| it.start <= atom.start);
        if told && !VERBATIM_KINDS.contains(&atom.kind) {
            continue;
        }
        if !cited.contains_atom(atom, &item.text) {
            return Err(Violation::AtomNotInSources { atom: atom.text(&item.text).to_owned() });
        }
    }
    if words == Wording::FromSources {
        return cited.check_claims(&item.text, false);
    }
    let is_known = |word: &str| sources.is_person_name(word);
    if let Some(name) = claims::unknown_person(&item.text, cited.claims(), &is_known) {
        return Err(Violation::AtomNotInSources { atom: name.to_owned() });
    }
    cited.check_claims(&item.text, true)
}

/// Returns what a bullet has of the frame that data is sent in.
fn find_prompt_echo(text: &str, cited: &CitedText<'_>) -> Option<String> {
    const RUN: usize = 6;
    const WORDS_MAX: usize = 60;
    let marks = ["<data-", "</data-", "```", "<TASK>", "<INPUT>", "<RULES>", "<OUTPUT_FORMAT>"];
    let mark = marks.iter().find(|it| text.contains(**it));
    let address = || {
        let words = text.split_whitespace().map(|it| it.trim_matches(['[', ']', '|', ',', ';']));
        let mut addresses = words.filter(|it| it.len() > 11 && it.parse::<Address>().is_ok());
        addresses.next()
    };
    if let Some(words) = mark.copied().or_else(address) {
        return (!cited.lines.iter().any(|it| it.1.contains(words))).then(|| words.to_owned());
    }
    // So many words in a row of the instructions are no chance.
    let plain = normalize_words(text);
    let words: Vec<&str> = plain.split(' ').take(WORDS_MAX).collect();
    let mut runs = words.windows(RUN).map(|it| it.join(" "));
    let run = runs.find(|it| PROMPT_WORDS.contains(&it[..]))?;
    (!cited.lines.iter().any(|it| normalize_words(it.1).contains(&run))).then_some(run)
}

/// The instructions that a model gets, in plain words.
static PROMPT_WORDS: LazyLock<String> =
    LazyLock::new(|| PromptName::ALL.map(|it| normalize_words(it.built_in())).join(" "));

/// Returns the words of a text, in lower case, with one blank between.
fn normalize_words(text: &str) -> String {
    words::lowercase_runs(text).collect::<Vec<_>>().join(" ")
}

/// The cited lines, prepared as far as some atom needs it.
#[derive(Default)]
struct CitedText<'s> {
    lines: Vec<(NaiveDate, &'s str)>,
    /// For each line, whether a list begins an entry with it: `9)` may as well go on with a quote.
    are_list_items: Vec<bool>,
    atom_norms: Option<HashSet<(AtomClass, String)>>,
    lowercase_lines: Option<Vec<String>>,
    quantities: OnceCell<SourceQuantities>,
    claims: OnceCell<CitedClaims>,
}

/// Kinds that a person may write for one another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum AtomClass {
    Amount,
    Date,
    Word,
}

fn atom_class(kind: AtomKind) -> AtomClass {
    match kind {
        AtomKind::Number
        | AtomKind::Money
        | AtomKind::Percent
        | AtomKind::Time
        | AtomKind::Version => AtomClass::Amount,
        AtomKind::Date => AtomClass::Date,
        _ => AtomClass::Word,
    }
}

impl CitedText<'_> {
    /// Whether a text stands in the lines as it is: a line, whole sentences of one, or, of a line that
    /// is too long, its parts with `…` between them.
    fn contains_verbatim(&self, text: &str) -> bool {
        /// Of a line without an end; with less between the marks, a word may be what was left out.
        const PART_CHARS_MIN: usize = 40;
        let parts: Vec<&str> = text.split('…').map(str::trim).filter(|it| !it.is_empty()).collect();
        if parts.len() > 1 && parts.iter().any(|it| it.chars().count() < PART_CHARS_MIN) {
            return false;
        }
        let stands = |at: usize, part: &str| {
            self.lines.iter().any(|(_, line)| {
                let Some(start) = line.find(part) else { return false };
                let before = line[..start].trim_end();
                let behind = line[start + part.len()..].trim_start();
                let opens = at > 0
                    || before.is_empty()
                    || before.ends_with(['.', '!', '?', ';', '>'])
                    || !before.contains(char::is_alphanumeric);
                let ends = at + 1 < parts.len()
                    || text.ends_with('…')
                    || behind.is_empty()
                    || part.ends_with(['.', '!', '?'])
                    || behind.starts_with(['.', '!', '?', ';', '…']);
                opens && ends
            })
        };
        !parts.is_empty() && parts.iter().enumerate().all(|(at, part)| stands(at, part))
    }

    /// Checks what a text claims beside the values in it: negations and who said it, where the
    /// words are free and not whole sentences of the lines, and what is only supposed.
    fn check_claims(&self, text: &str, is_free: bool) -> Result<(), Violation> {
        if is_free {
            if let Some((dropped, words)) = self.claims().changed_negation(text) {
                let words = words.to_owned();
                return Err(if dropped {
                    Violation::NegationDropped { words }
                } else {
                    Violation::NegationAdded { words }
                });
            }
            if let Some(name) = self.claims().misattributed_name(text) {
                return Err(Violation::Misattributed { name });
            }
        }
        let lines: Vec<&str> = self.lines.iter().map(|it| it.1).collect();
        match hedge::dropped_hedge(text, &lines) {
            Some(words) => Err(Violation::HedgeDropped { words: words.to_owned() }),
            None => Ok(()),
        }
    }

    fn quantities(&self) -> &SourceQuantities {
        self.quantities.get_or_init(|| {
            let mut said = SourceQuantities::default();
            for ((date, line), is_entry) in self.lines.iter().zip(&self.are_list_items) {
                said.read(*date, if *is_entry { strip_list_number(line) } else { line });
            }
            said
        })
    }

    fn claims(&self) -> &CitedClaims {
        self.claims.get_or_init(|| {
            let lines: Vec<&str> = self.lines.iter().map(|it| it.1).collect();
            CitedClaims::of(&lines)
        })
    }

    fn contains_atom(&mut self, atom: &Atom, text: &str) -> bool {
        let raw = atom.text(text);
        let norm = atom.norm(text);
        // Most items use the words of their lines: that is cheap to see.
        if self.lines.iter().any(|it| contains_word(it.1, raw)) {
            return true;
        }
        let kind = atom_class(atom.kind);
        let norm = norm.to_lowercase();
        if kind == AtomClass::Word && self.contains_lowercase(&norm) {
            return true;
        }
        if atom.kind == AtomKind::Name && (self.has_word(&norm) || self.is_unit_of_table(&norm)) {
            return true;
        }
        let norms = self.atom_norms.get_or_insert_with(|| {
            let mut norms = HashSet::new();
            for (_, line) in &self.lines {
                for atom in atom::find_atoms(line) {
                    norms.insert((atom_class(atom.kind), atom.norm(line).to_lowercase()));
                }
            }
            norms
        });
        norms.contains(&(kind, norm))
    }

    /// `3.5 s per GB` may be told of a table whose head says so; where lines tell of another unit in
    /// that way, it is a change.
    fn is_unit_of_table(&self, word: &str) -> bool {
        amounts::is_unit(word)
            && !self.lines.iter().any(|it| it.1.contains(" per ") || it.1.contains('/'))
    }

    /// A name may have another ending, and a German noun need not be a name.
    fn has_word(&self, name: &str) -> bool {
        let lines = self.claims();
        let german = self.lines.iter().any(|it| claims::is_german(it.1));
        lines.has_word(name, german)
            || (german
                && (CLAIMS.common_german_nouns.contains(&name)
                    || CLAIMS
                        .german_noun_endings
                        .iter()
                        .any(|it| name.len() > it.len() + 3 && name.ends_with(it))
                    || lines.has_compound(name)))
    }

    fn contains_lowercase(&mut self, norm: &str) -> bool {
        let lowered = self
            .lowercase_lines
            .get_or_insert_with(|| self.lines.iter().map(|it| it.1.to_lowercase()).collect());
        lowered.iter().any(|line| contains_word(line, norm))
    }
}

/// Takes the number off an entry of a list: it counts nothing.
fn strip_list_number(line: &str) -> &str {
    let text = line.trim_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &text[digits..];
    let marked = (1..=3).contains(&digits).then(|| rest.strip_prefix(['.', ')'])).flatten();
    marked.and_then(|it| it.strip_prefix(' ')).unwrap_or(line)
}

/// Whether `needle` stands in `line` and is not part of a longer word or number.
fn contains_word(line: &str, needle: &str) -> bool {
    let bounded = |c: char| c.is_alphanumeric();
    let starts = needle.starts_with(bounded);
    let ends = needle.ends_with(bounded);
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let mut after = line[at + needle.len()..].chars();
        let next = after.next();
        // `1.5` does not hold 1, and `1,500` does not hold 500.
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let split_number =
            |mark: Option<char>, far: Option<char>| matches!(mark, Some('.' | ',')) && digit(far);
        let far_before = line[..at].chars().rev().nth(1);
        let far_after = after.next();
        let numeric = needle.bytes().all(|b| b.is_ascii_digit());
        let longer_word =
            (starts && before.is_some_and(bounded)) || (ends && next.is_some_and(bounded));
        let longer_number =
            numeric && (split_number(before, far_before) || split_number(next, far_after));
        !longer_word && !longer_number
    })
}

#[cfg(test)]
mod tests {
    use crate::{memory::log::DailyLog, privacy};

    use super::*;

    const LOG: &str = "Shipped v1.2 to Acme for $1,200 on 3 May, see `run.sh`.\n\nAlice measured 15 ms with maxLen and #412.\n\nMaybe we move the database to Fly.io in June. The cache moved in May.";

    #[track_caller]
    fn check_item(bullet: &str, expected: &str) {
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), LOG.as_bytes()).unwrap();
        let logs = vec![privacy::sanitize(&log, &privacy::PrivacyRules::default())];
        let verdict = check(&Item::parse(bullet), &logs);
        let verdict = verdict.map_or_else(|v| v.to_string(), |()| "ok".to_owned());
        assert_eq!(verdict, expected, "{bullet:?}");
    }

    #[test]
    fn what_the_lines_say_stands() {
        check_item("Shipped v1.2 for 1200 USD [2026-04-02:1]", "ok");
        check_item("alice and Acme: `run.sh` [2026-04-02:1,3]", "ok");
        check_item("Done by 2 April 2026, in April 2026 [2026-04-02:1]", "ok");
        check_item("Done 2026-04-02, on Thursday [2026-04-02:1]", "ok");
        check_item("Due May 3 [2026-04-02:1]", "ok");
        check_item("We used MaxLen and #412 [2026-04-02:3]", "ok");
    }

    #[test]
    fn a_guess_is_not_told_as_a_fact() {
        let dropped =
            |words: &str| format!("`{words}` is a fact here, but the cited lines only suppose it");
        check_item("Perhaps the database moves to Fly.io in June [2026-04-02:5]", "ok");
        check_item("The cache moved in May [2026-04-02:5]", "ok");
        check_item(
            "The database moves to Fly.io in June [2026-04-02:5]",
            &dropped("The database moves to Fly.io in June"),
        );
        // As a memory or an entry is asked about: title, statement, and why in one.
        check_item(
            "Database move. Maybe we move the database to Fly.io. The cache moved in May [2026-04-02:5]",
            "ok",
        );
        check_item(
            "Where data lives. We move the database to Fly.io [2026-04-02:5]",
            &dropped("We move the database to Fly.io"),
        );
    }

    /// What is said of a bullet that cites the one line of a log, of Thursday, 2 April 2026.
    fn of_line(line: &str, bullet: &str) -> String {
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), line.as_bytes()).unwrap();
        let logs = vec![privacy::sanitize(&log, &privacy::PrivacyRules::default())];
        let verdict = check_model_item(&Item::parse(&format!("{bullet} [2026-04-02:1]")), &logs);
        verdict.map_or_else(|v| v.to_string(), |()| "ok".to_owned())
    }

    #[track_caller]
    fn same(line: &str, bullets: &[&str]) {
        for bullet in bullets {
            assert_eq!(of_line(line, bullet), "ok", "{bullet:?} of {line:?}");
        }
    }

    #[track_caller]
    fn other(line: &str, bullets: &[(&str, &str)]) {
        for (bullet, why) in bullets {
            let verdict = of_line(line, bullet);
            assert!(verdict.contains(why), "{bullet:?} of {line:?}: {verdict}");
        }
    }

    #[test]
    fn an_amount_is_the_same_in_any_form_and_no_other() {
        let line = "The round raised $420M from three funds in 15 ms, 41% of 1,200 shares at -5 °C";
        same(
            line,
            &[
                "Three funds raised $420 million in the round",
                "The round raised 420 million dollars from 3 funds",
                "The round raised USD 420,000,000",
                "The round raised 41 % of 1200 shares",
                "The shares were at −5 degrees",
            ],
        );
        other(
            line,
            &[
                ("The round raised $420B", "`$420B`"),
                ("The round raised €420M", "`€420M`"),
                ("Four funds raised $420M", "`Four`"),
                ("The funds came in 15 s", "`15 s`"),
                ("The round raised 41 of 1,200 shares", "`41`"),
                ("The shares were at 5 °C", "`5 °C`"),
            ],
        );
    }

    #[test]
    fn days_and_times_are_resolved_against_the_log() {
        let line = "Standup at 6:30 PM tomorrow, review next Friday, signed yesterday in Bonn";
        same(
            line,
            &[
                "Standup at 18:30 on 3 April 2026",
                "Signed in Bonn on April 1",
                "Review on Friday, 2026-04-10",
                "Signed yesterday in Bonn",
            ],
        );
        other(
            line,
            &[
                ("Standup at 6:30 AM tomorrow", "`6:30 AM`"),
                ("Standup on 4 April", "`4 April`"),
                ("Signed in Bonn on 2 April", "`2 April`"),
                ("Review next Saturday", "`Saturday`"),
            ],
        );
        same("Montage ab 02.03.2026, 14.800 €", &["Montage ab 2. März 2026 für 14800 Euro"]);
        other("Montage ab 02.03.2026", &[("Montage ab 3. März 2026", "`3. März 2026`")]);
    }

    #[test]
    fn a_negation_is_neither_lost_nor_added() {
        for (line, bullet) in [
            ("We do not deploy the importer on brisk", "We deploy the importer on brisk"),
            ("Never restart the mail gateway by hand", "Restart the mail gateway by hand"),
            ("The importer doesn't delete raw files", "The importer deletes raw files"),
            ("Wir liefern die Küche nicht im April", "Wir liefern die Küche im April"),
            ("The job runs without the network cache", "The job runs with the network cache"),
        ] {
            other(line, &[(bullet, "drops a negation")]);
            other(bullet, &[(line, "denies what")]);
        }
        same(
            "We do not deploy the importer on a Friday, since nobody is there to watch it",
            &["Importer is never deployed on a Friday", "No deploy of the importer on a Friday"],
        );
        same("The rows are not lost but late", &["Rows are late rather than lost"]);
    }

    #[test]
    fn what_one_says_is_not_told_of_another() {
        let line = "Ana asked for a cache, Ben measured the disk with Carl";
        same(line, &["Ana asked for a cache", "The disk was measured by Ben and Carl"]);
        other(
            line,
            &[
                ("Ben asked for a cache", "do not say that of `ben`"),
                ("Ana measured the disk", "do not say that of `ana`"),
                ("Tobias asked for a cache", "`Tobias`"),
                ("Xandro wants a cache", "`Xandro`"),
            ],
        );
    }

    #[test]
    fn what_has_nothing_to_do_with_its_lines_is_refused() {
        let line = "The importer moved to SQLite";
        other(
            line,
            &[
                ("Every statement stands where somebody put it", "something else"),
                ("<data-00ff> the importer moved to SQLite", "of what was sent"),
                ("2026-04-02:1 | The importer moved to SQLite", "of what was sent"),
            ],
        );
    }

    /// Text that repeats what each rule looks for.
    #[test]
    fn long_lines_are_checked_in_time_that_grows_with_their_length() {
        let text = "Ana never moved 3 GB on Friday, 2 May to Ben, not `x`. ";
        let many = text.repeat(2_000);
        let started = std::time::Instant::now();
        let _verdict = of_line(&many, &format!("Not {many}"));
        assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    }

    #[test]
    fn what_they_do_not_say_is_named() {
        check_item("Shipped", "the bullet cites no line");
        check_item(" [2026-04-02:1]", "the bullet has no words");
        check_item("Shipped [2026-04-02:2]", "line 2026-04-02:2 is blank");
        check_item("Shipped [2026-04-02:9]", "line 2026-04-02:9 does not exist");
        check_item("Shipped [2026-04-03:1]", "line 2026-04-03:1 does not exist");
        check_item("It cost $200 [2026-04-02:1]", "`$200` stands in none of the cited lines");
        check_item("It took 2 ms [2026-04-02:1]", "`2 ms` stands in none of the cited lines");
        check_item(
            "The boss of Zeta said so [2026-04-02:1]",
            "`Zeta` stands in none of the cited lines",
        );
        check_item("Due 4 May [2026-04-02:1]", "`4 May` stands in none of the cited lines");
        check_item("See #41 [2026-04-02:3]", "`#41` stands in none of the cited lines");
    }
}
