//! How useful a statement is at the start of a session: from 0, not at all, to 3, among what is most wanted.
//!
//! A linear model. Readers who knew the logs scored 1,560 statements of twenty agents from 0 to 3; the weights are a
//! ridge regression on these scores. Other readers scored 2,516 statements of twenty other agents: there it ranks the
//! useful ones above the others with an area under the curve of .69, and .71 with the weights that were added for what
//! both groups of agents share: reports, commits, long addresses, paths, schedules, and open items by their age. More
//! weights, for 600 to 1,600 words or for trees of forms, ranked no agent better that they had not been fitted to.

use chrono::NaiveDate;

use super::{
    newer::NewerStatements,
    sections::{StatementRole, is_passing},
    statements::{DayCounts, DigestStatement},
    titles,
};
use crate::{
    engine::extractive::{
        as_f64, cue_phrases,
        parsed_log::{LogStatement, ParsedLog, StatementForm},
        routine_reports::is_routine_report,
        sections::StatementClass,
        statements::{named_thing::leaves_open, word_list::WordList},
        worth::worth_factor,
    },
    memory::{
        atom::{self, Atom, AtomKind},
        authorship::Speaker,
        statement::StatementKind,
    },
    text::{
        hash::{HashedMap, hash_bytes},
        lexicon::{SECTIONS, WISDOM},
    },
};

/// The worth of a statement without any of what follows.
const BASE: f64 = -0.49;

/// For each doubling of the length, about a fifth of this: the weight of the logarithm of the characters.
const LENGTH: f64 = 0.28;

/// The weight of the newest day, which falls to a third in as many days.
const FRESH: f64 = 0.48;

const FRESH_DAYS: f64 = 20.0;

/// The weight of the newest day for what was reached: `the shop went live`. Too rare to be fitted.
const MILESTONE: f64 = 0.5;

/// The weight of the share of its words that a later statement has which says that something was done or stopped.
const FINISHED: f64 = -0.59;

/// The weights of the logarithms of the days with the same heading, and of the number of statements with its words.
const HEADING_DAYS: f64 = -0.14;

const COPIES: f64 = -0.12;

/// A web address longer than this, in bytes, is that of one post or file.
const URL_BYTES_MAX: usize = 60;

/// A rule about what cannot be taken back: of these readers wanted eight in ten, of the others six.
const BOUNDARY: f64 = 0.4;

/// What is only considered, or gone. Taken for how things are, it says the opposite.
const UNSETTLED: f64 = -0.9;

/// An open item with more days of logs after it than these.
const OLD_OPEN: f64 = -0.37;

const OLD_OPEN_DAYS: usize = 2;

/// With as many days of logs after it an open item is no bullet: of these readers wanted one in five, and half of them
/// were done by then.
const LAPSED_OPEN_DAYS: usize = 3;

/// With as many days of logs after it two in five states no longer hold. A larger step leaves out too much of what
/// agents keep in notes of their own.
const OLD_STATE_DAYS: usize = 14;

/// How much more an old state must be worth to be a bullet.
pub(super) const OLD_STATE: f64 = 0.25;

/// An open item whose day is over. Too rare to be fitted, as are those of the marks that a person sets.
const PAST_DUE: f64 = -0.8;

/// The weight of an open item that is due on the newest day, which falls to nothing in as many days. Too rare to be fitted.
const DUE_SOON: f64 = 0.6;

const DUE_SOON_DAYS: usize = 14;

const KEEP: f64 = 1.5;

const WORD_LIST: f64 = -0.4;

/// The weight of the logarithm of the factor that reports without news have in the summaries.
const ROUTINE: f64 = 1.0;

/// The least worth.
pub(super) const NO_USE: f64 = 0.05;

/// The recurrence of a statement whose words the logs never come back to.
const NEVER_AGAIN: f64 = 0.3;

/// Returns what a statement is worth by its form and words alone.
pub(super) fn own_worth(
    page: &ParsedLog,
    statement: &LogStatement,
    (own, words): (&str, &WordList),
    role: &StatementRole,
    class: StatementClass,
) -> f64 {
    let atoms = atom::find_atoms(own);
    let count = |kind: AtomKind, most: usize| {
        as_f64(atoms.iter().filter(|it| it.kind == kind).count().min(most))
    };
    let is_kind = |kind: StatementKind| role.kind == kind;
    let is_about_person = is_kind(StatementKind::Profile) || is_kind(StatementKind::Preference);
    let is_guidance =
        is_about_person || is_kind(StatementKind::Rule) || is_kind(StatementKind::Lesson);
    let is_under = |words: &[&'static str]| titles::has_word(page, statement, words);
    let is_of_slug = page.stem.as_str().len() > page.stem.date().to_string().len();
    let opens_with_sign = own.starts_with(|c: char| !c.is_ascii() && !c.is_alphanumeric());
    let day = page.stem.date();
    let is_routine = is_routine_report(&statement.text);
    let is_long = |it: &&Atom| it.kind == AtomKind::Url && it.text(own).len() > URL_BYTES_MAX;
    let has_long_url = atoms.iter().any(|it| is_long(&it));
    let urls = count(AtomKind::Url, 3);
    let signs: [(bool, f64); 26] = [
        (!is_guidance && titles::is_unsettled(page, statement), UNSETTLED),
        (is_kind(StatementKind::Rule), 0.77),
        (is_about_person, 1.08),
        (is_kind(StatementKind::Open), 0.26),
        (class == StatementClass::Decision, 0.29),
        (statement.label > 0, 0.15),
        (statement.form == StatementForm::Paragraph, -0.22),
        (statement.lead.is_some(), -0.18),
        (statement.speaker == Some(Speaker::Assistant), -0.55),
        (is_of_slug, -0.18),
        (own.contains('='), 0.32),
        (is_under(&WISDOM.study_words), -0.38),
        (is_under(&WISDOM.lesson_words), 0.23),
        (is_under(&WISDOM.decision_words), 0.43),
        (is_under(&WISDOM.rule_words), 0.33),
        (titles::is_round(page, statement), -0.25),
        (titles::is_review(page, statement), -0.55),
        (opens_with_sign, -0.19),
        (is_passing(words), -0.26),
        (names_change(own), -0.39),
        (is_telemetry(own, &atoms), -0.37),
        (!is_guidance && titles::is_report(page, statement), -0.5),
        (titles::names_word(own, &WISDOM.commit_words), -0.37),
        (titles::names_word(own, &WISDOM.schedule_words), 0.25),
        (count(AtomKind::Path, 1) > 0.0, 0.2),
        (has_long_url, -0.46),
    ];
    BASE + signs.into_iter().filter(|it| it.0).map(|it| it.1).sum::<f64>()
        + 0.29 * role.factor.ln()
        + 0.18 * count(AtomKind::Code, 2)
        + if has_long_url { 0.0 } else { 0.54 * urls }
        + 0.06 * count(AtomKind::Name, 2)
        + ROUTINE * worth_factor(statement, own, is_routine, class, day).ln()
        + if statement.keep { KEEP } else { 0.0 }
        + if is_word_list(own) { WORD_LIST } else { 0.0 }
}

/// Returns how much more a statement is worth on its day.
pub(super) fn news_worth(kind: StatementKind, words: &WordList) -> f64 {
    let is_milestone = kind == StatementKind::State
        && words.has(cue_phrases::MILESTONES)
        && !words.iter().any(leaves_open);
    if is_milestone { MILESTONE } else { 0.0 }
}

/// Sets how often the logs come back to the words of each statement, oldest first.
fn count_recurrence(statements: &mut [DigestStatement]) {
    let mut days = DayCounts::default();
    for statement in &*statements {
        for &stem in statement.terms.stems.hashes() {
            days.add(stem, statement.day);
        }
    }
    let most = as_f64(statements.chunk_by(|a, b| a.day == b.day).count()).ln_1p();
    for statement in statements {
        let found = statement.terms.stems.hashes();
        let sum: f64 = found.iter().map(|it| as_f64(days.of(*it)).ln_1p() / most).sum();
        statement.recurrence = NEVER_AGAIN + sum / as_f64(found.len());
    }
}

/// Adds to the worth of statements, oldest first, what the others say about them.
pub(super) fn rate(statements: &mut [DigestStatement], newer: &NewerStatements) {
    let Some(newest) = statements.last().map(|it| it.day) else { return };
    count_recurrence(statements);
    let (mut days, mut copies) = (DayCounts::default(), HashedMap::<usize>::default());
    let log_days = log_days(statements);
    let open_from = nth_newest(&log_days, OLD_OPEN_DAYS + 1);
    let words = |it: &DigestStatement| hash_bytes(it.own_text().as_bytes());
    for statement in &*statements {
        *copies.entry(words(statement)).or_default() += 1;
        if let Some(heading) = statement.heading {
            days.add(heading, statement.day);
        }
    }
    // A rule holds after what was done by it.
    let can_finish = |it: &DigestStatement| it.kind != StatementKind::Rule;
    let finished: Vec<f64> = statements
        .iter()
        .map(|it| if can_finish(it) { newer.finished_share(statements, it) } else { 0.0 })
        .collect();
    for (statement, finished) in statements.iter_mut().zip(finished) {
        let age = newest - statement.day;
        let is_old = is_open_before(statement, open_from, newest);
        let logarithm = |count: usize| as_f64(count.max(1)).ln();
        let fresh = (-as_f64(usize::try_from(age.num_days()).unwrap_or(0)) / FRESH_DAYS).exp();
        statement.worth += LENGTH * logarithm(statement.text.chars().count())
            + (FRESH + statement.news_worth) * fresh
            + FINISHED * finished
            + HEADING_DAYS * statement.heading.map_or(0.0, |it| logarithm(days.of(it)))
            + COPIES * logarithm(copies.get(&words(statement)).copied().unwrap_or(1))
            + if statement.is_boundary { BOUNDARY } else { 0.0 }
            + if is_old { OLD_OPEN } else { 0.0 }
            + statement.due.map_or(0.0, |it| due_worth(it, newest));
        let least = if statement.is_over(newest) { 0.0 } else { statement.worth };
        statement.worth = least.max(NO_USE);
    }
}

/// Returns how much more, or less, an open item is worth that is due on a day.
fn due_worth(due: NaiveDate, newest: NaiveDate) -> f64 {
    match usize::try_from((due - newest).num_days()) {
        Ok(days) if days <= DUE_SOON_DAYS => {
            DUE_SOON * as_f64(DUE_SOON_DAYS - days) / as_f64(DUE_SOON_DAYS)
        }
        Ok(_) => 0.0,
        Err(_) => PAST_DUE,
    }
}

/// The age of a statement, as far as it shows whether the statement still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementAge {
    /// Nothing speaks against it.
    Recent,
    /// How something was long ago.
    OldState,
    /// An open item from too long ago.
    LapsedOpen,
}

/// Returns the age of each statement, oldest first.
pub(super) fn statement_ages(statements: &[DigestStatement]) -> Vec<StatementAge> {
    let days = log_days(statements);
    let open_from = nth_newest(&days, LAPSED_OPEN_DAYS);
    let state_from = nth_newest(&days, OLD_STATE_DAYS);
    let newest = days.last().copied().unwrap_or(NaiveDate::MIN);
    let age_of = |it: &DigestStatement| match it.kind {
        _ if is_open_before(it, open_from, newest) => StatementAge::LapsedOpen,
        StatementKind::State if it.day < state_from => StatementAge::OldState,
        _ => StatementAge::Recent,
    };
    statements.iter().map(age_of).collect()
}

fn log_days(statements: &[DigestStatement]) -> Vec<NaiveDate> {
    statements.chunk_by(|a, b| a.day == b.day).map(|it| it[0].day).collect()
}

/// Returns the newest day for 1, and the first of all if there are fewer.
fn nth_newest(days: &[NaiveDate], n: usize) -> NaiveDate {
    days.iter().rev().nth(n.saturating_sub(1)).copied().unwrap_or(NaiveDate::MIN)
}

/// Returns whether a statement is an open item of a day before another, and not due on the newest day or later. A task
/// of a person is open until it is ticked off, for a month at most, and what a model found for half as long.
fn is_open_before(statement: &DigestStatement, day: NaiveDate, newest: NaiveDate) -> bool {
    let is_kept = statement.open_until.is_some_and(|it| it >= newest);
    statement.kind == StatementKind::Open
        && statement.day < day
        && !is_kept
        && statement.due.is_none_or(|it| it < newest)
}

/// Returns whether a text is mostly about values of a moment: clock times, counts, sizes, prices.
pub(super) fn is_measurement(text: &str) -> bool {
    let words = || {
        let bare =
            text.split_whitespace().map(|it| it.trim_matches(|c: char| !c.is_alphanumeric()));
        bare.filter(|it| !it.is_empty())
    };
    let measured = words().filter(|it| it.starts_with(|c: char| c.is_ascii_digit())).count();
    let has_time = || atom::find_atoms(text).iter().any(|it| it.kind == AtomKind::Time);
    measured * 4 > words().count() || (measured > 0 && has_time())
}

/// Returns whether a text with these atoms has several marks of a state or amounts: a report of a program.
pub(in crate::engine::extractive) fn is_telemetry(text: &str, atoms: &[Atom]) -> bool {
    const MARKS_MIN: usize = 2;
    const AMOUNTS_MIN: usize = 3;
    let marks = &SECTIONS.state_marks;
    let is_mark = |c: char| {
        let mut all = marks.done.iter().chain(&*marks.open).chain(&*marks.caution);
        !c.is_ascii() && all.any(|it| it.starts_with(c))
    };
    let is_amount =
        |it: &&Atom| matches!(it.kind, AtomKind::Money | AtomKind::Percent | AtomKind::Time);
    text.chars().filter(|c| is_mark(*c)).count() >= MARKS_MIN
        || atoms.iter().filter(is_amount).count() >= AMOUNTS_MIN
}

/// Returns whether a text is about a change of code that has a number: it is in the code now.
pub(super) fn names_change(text: &str) -> bool {
    let is_number = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '#');
        let digits = |it: &str| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit());
        let is_hash = (7..=40).contains(&word.len())
            && word.bytes().all(|b| b.is_ascii_hexdigit())
            && word.bytes().any(|b| b.is_ascii_digit())
            && word.bytes().any(|b| b.is_ascii_lowercase());
        is_hash || word.rsplit_once('#').is_some_and(|it| digits(it.1) && it.1.len() > 1)
    };
    text.split_whitespace().any(is_number)
}

/// Returns whether a text is a list of words, such as the tags of a page or the keys of a search.
fn is_word_list(text: &str) -> bool {
    const ITEMS_MIN: usize = 6;
    let items = || text.split([',', '，', '、']).map(str::trim);
    let short =
        items().filter(|it| it.split_whitespace().count() <= 2 && it.chars().count() <= 24).count();
    short >= ITEMS_MIN && short * 4 >= items().count() * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_moment_are_measurements() {
        for text in [
            "Depth 4.2 m, wind 11 kn, swell 0.8 m",
            "Time 18:16: check of the buoys complete",
            "sensors.log: 2.3 KB, 14 lines",
        ] {
            assert!(is_measurement(text), "{text}");
        }
        for text in [
            "The gauge of Brest is 40 cm too high since the storm",
            "Uploads stay under 40 MB, because the mirror refuses larger ones",
            "The pier house has a second key",
        ] {
            assert!(!is_measurement(text), "{text}");
        }
    }

    #[test]
    fn a_near_deadline_is_worth_more() {
        let newest = "2026-04-02".parse().unwrap();
        let worth = |due: &str| due_worth(due.parse().unwrap(), newest);
        assert!(worth("2026-04-02") > worth("2026-04-09") && worth("2026-04-09") > 0.0);
        for due in ["2026-04-17", "2026-12-01"] {
            assert!(worth(due).abs() < 1e-9, "{due}");
        }
        assert!(worth("2026-04-01") < 0.0 && due_worth(NaiveDate::MAX, newest).abs() < 1e-9);
    }

    #[test]
    fn lists_of_words_are_found() {
        assert!(is_word_list("tide, gauge, pier, buoy, depth, wind"));
        assert!(!is_word_list("The tide table of Brest, which is late, names the gauge"));
    }
}
