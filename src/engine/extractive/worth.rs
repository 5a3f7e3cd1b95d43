//! How much a statement is worth to a reader, by the kind of what it says.
//!
//! Agents and programs log more than what happened: that a check found nothing, that a service runs, when a
//! note was written, which files lie where. Such lines are full of rare words, which the ranking prefers, and
//! say little a week later. They are chosen where nothing better is left.

use std::{collections::HashSet, sync::LazyLock};

use chrono::NaiveDate;

use crate::{
    engine::extractive::{
        parsed_log::LogStatement,
        sections::{StatementClass, normalized_label},
    },
    memory::atom::{self, Atom, AtomKind},
    text::lexicon::SECTIONS,
};

/// The factor of a report that there is nothing to report, and of a part of a drawing.
const ROUTINE_FACTOR: f64 = 0.2;

/// The factor of the time at which a note was written.
const STAMP_FACTOR: f64 = 0.1;

/// The factor of a state that is as it should be.
const NORMAL_STATE_FACTOR: f64 = 0.4;

/// The factor of a list of names of files and code.
const INVENTORY_FACTOR: f64 = 0.5;

/// How many letters may be beside the time of a stamp: a zone, a weekday.
const STAMP_LETTERS_MAX: usize = 10;

/// The longest label of a stamp.
const STAMP_LABEL_BYTES_MAX: usize = 60;

/// Returns the factor of a statement in a log of the day `day`, of which `words` may be chosen.
pub(super) fn worth_factor(
    statement: &LogStatement,
    words: &str,
    is_routine: bool,
    class: StatementClass,
    day: NaiveDate,
) -> f64 {
    let is_stamp = is_stamp(&statement.text)
        || (class == StatementClass::Context && is_time_of_writing(statement, day));
    if is_stamp {
        STAMP_FACTOR
    } else if class == StatementClass::Decision {
        1.0
    } else if is_routine || is_drawn(words) {
        ROUTINE_FACTOR
    } else if is_normal_state(statement) {
        NORMAL_STATE_FACTOR
    } else if class != StatementClass::Open && is_inventory(words, statement.label > 0) {
        INVENTORY_FACTOR
    } else {
        1.0
    }
}

/// Returns whether a text only says when a note was written: `Created: 2026-04-02 10:15 UTC`.
fn is_stamp(text: &str) -> bool {
    static LABELS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| SECTIONS.stamp_labels.iter().copied().collect());
    let text = text.trim_matches(['_', '*', ' ', '(', ')']);
    let Some((label, value)) = text.split_once([':', '：']) else { return false };
    let is_long = label.len() > STAMP_LABEL_BYTES_MAX || value.len() > 120;
    if is_long || !LABELS.contains(&normalized_label(label)[..]) {
        return false;
    }
    is_only_time(value, &atom::find_atoms(value))
}

/// Returns whether a label has only a time on the day of the log, whatever it calls it.
fn is_time_of_writing(statement: &LogStatement, day: NaiveDate) -> bool {
    let value = &statement.text[statement.label..];
    let has_digit = || value.bytes().any(|it| it.is_ascii_digit());
    if statement.label == 0 || value.len() > 60 || !has_digit() {
        return false;
    }
    let atoms = atom::find_atoms(value);
    let day = day.to_string();
    let is_of_day = |it: &Atom| it.kind != AtomKind::Date || it.norm(value) == day;
    let has = |kind: AtomKind| atoms.iter().any(|it| it.kind == kind);
    has(AtomKind::Date)
        && has(AtomKind::Time)
        && atoms.iter().all(is_of_day)
        && is_only_time(value, &atoms)
}

/// Returns whether a value is a date or a time with hardly another word.
fn is_only_time(value: &str, atoms: &[Atom]) -> bool {
    let times = || atoms.iter().filter(|it| matches!(it.kind, AtomKind::Date | AtomKind::Time));
    let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).count();
    let in_times: usize = times().map(|it| letters(it.text(value))).sum();
    times().next().is_some() && letters(value) - in_times <= STAMP_LETTERS_MAX
}

/// Returns whether a label has a value such as `✅ running`, perhaps with a process number.
fn is_normal_state(statement: &LogStatement) -> bool {
    static STATES: LazyLock<HashSet<&str>> =
        LazyLock::new(|| SECTIONS.normal_states.iter().copied().collect());
    if statement.label == 0 {
        return false;
    }
    let value = &statement.text[statement.label..];
    let value = value.split(['(', '（']).next().unwrap_or_default();
    let value = normalized_label(value);
    let mut words = value.split(' ').filter(|it| !it.is_empty() && *it != "all" && *it != "and");
    STATES.contains(&value[..]) || (value.len() < 40 && words.all(|it| STATES.contains(it)))
}

/// Returns whether a text is a part of a drawing: `├── bin/export.js # the command`.
fn is_drawn(words: &str) -> bool {
    words.trim_start().starts_with(['├', '└', '│', '┌', '╰', '╭'])
}

/// Returns whether most words are names of files or code; a label says what a single one is.
fn is_inventory(words: &str, is_labelled: bool) -> bool {
    let (mut all, mut named, mut is_code) = (0_usize, 0_usize, false);
    for word in words.split_whitespace() {
        let ticks = word.matches('`').count();
        let name = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_file = name.rsplit_once('.').is_some_and(|(stem, ending)| {
            !stem.is_empty()
                && (1..=5).contains(&ending.len())
                && ending.starts_with(|c: char| c.is_ascii_alphabetic())
                && ending.bytes().all(|b| b.is_ascii_alphanumeric())
        });
        let is_named = is_code || ticks > 0 || is_file || name.contains(['/', '_']);
        is_code ^= ticks % 2 == 1;
        if name.contains(char::is_alphabetic) {
            all += 1;
            named += usize::from(is_named);
        }
    }
    (named >= 2 && named * 3 >= all * 2) || (named == 1 && all == 1 && !is_labelled)
}

#[cfg(test)]
mod tests {
    use crate::{
        engine::extractive::{parsed_log, routine_reports::is_routine_report, sections},
        memory::log::DailyLog,
        privacy,
    };

    use super::*;

    #[track_caller]
    fn check(line: &str, expected: f64) {
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), line.as_bytes()).unwrap();
        let page = parsed_log::parse(&privacy::sanitize(&log, &privacy::PrivacyRules::default()));
        let statement = page.statements.last().unwrap();
        let words = &statement.text[statement.label..];
        let class = sections::class_of(&page, statement, words);
        let is_routine = is_routine_report(&statement.text);
        let day = page.stem.date();
        let found = worth_factor(statement, words, is_routine, class, day);
        assert!((found - expected).abs() < 1e-9, "{line}: {found}");
    }

    #[test]
    fn telemetry_and_stamps_are_worth_less_than_events() {
        for line in [
            "- Mail checked at 14:00, nothing urgent",
            "- 10:15 health check complete, all systems operational",
            "- 巡检完成，一切正常",
            "- Prüfung der Pumpen: alles in Ordnung",
            "├── bin/tide.js       # the command for the harbour office",
        ] {
            check(line, ROUTINE_FACTOR);
        }
        for line in [
            "- Created: 2026-04-02 10:15 UTC",
            "_Review completed: 2026-04-02 16:17 GMT+1_",
            "- **Analysis period:** 2026-03-13 to 2026-03-22",
            "- Tide sync logged: 2026-04-02 04:04:57 UTC",
            "- **Date:** 2026-04-02 00:57 EST",
        ] {
            check(line, STAMP_FACTOR);
        }
        for line in
            ["- Gateway: ✅ running (pid 4411)", "- Tide service: healthy", "- 网关：运行中"]
        {
            check(line, NORMAL_STATE_FACTOR);
        }
        check("- `pump.rs`, `src/tide/export.rs`, tests/it/tide.rs", INVENTORY_FACTOR);
        check("- `~/tide/scripts/get-depth.sh`", INVENTORY_FACTOR);
    }

    #[test]
    fn what_happened_keeps_its_worth() {
        for line in [
            "- Fixed the export in `src/tide/export.rs`, it skipped the last row",
            "- Created: the tide export, on 2026-04-02",
            "- Deadline: 2026-05-01",
            "- Deadline: 2026-05-01 23:59 UTC",
            "- Ferry to the island: 2026-04-03 06:15",
            "- Gateway: moved to port 4418, because 4410 is taken",
            "- Gateway: stopped",
            "- Export script: `~/tide/scripts/get-depth.sh`",
            "- Decided to stay on SQLite, no changes detected in a year",
        ] {
            check(line, 1.0);
        }
    }
}
