//! Notes that the program adds to words of a log, always in brackets and of four kinds.
//!
//! - `[2026-04-10]` after words like `tomorrow`, which mean nothing outside their log;
//! - `[resolved 2026-04-09]` after an open item that a later line reports as done;
//! - `[was $420M until 2026-01-13]` after a figure that replaced another one;
//! - `[asked]` after a request in a transcript, which is no statement of what happened.
//!
//! Each note cites the lines that it is derived from. In doubt there is no note.

// One phrase a line would make pages of what is read as a table.
#[rustfmt::skip]
mod relative_days;
mod replaced_figures;
mod resolved;

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use chrono::NaiveDate;
use regex::Regex;

use super::{
    candidates::{Annotation, CandidateSet, PiecePosition},
    parsed_log::ParsedLog,
    sections::StatementClass,
};

/// The note on a request.
const REQUEST_NOTE: &str = "[asked]";

/// Returns the open tasks that later lines tick off, each with the statement that does, by page and number.
pub(super) fn ticked_tasks(pages: &[ParsedLog]) -> HashMap<(usize, usize), (usize, usize)> {
    resolved::ticked_tasks(pages)
}

/// Adds notes to the units of a period; `classes` holds the class of each unit.
pub(super) fn annotate(
    material: &mut CandidateSet,
    classes: &[StatementClass],
    is_request: impl Fn(PiecePosition) -> bool,
) {
    let mut found: HashMap<PiecePosition, Vec<Annotation>> = HashMap::new();
    let open: Vec<PiecePosition> = material
        .units
        .iter()
        .zip(classes)
        .filter(|(_, class)| **class == StatementClass::Open)
        .map(|(unit, _)| unit.at)
        .collect();
    for (at, note) in resolved::resolved_notes(&material.pages, &open) {
        found.entry(at).or_default().push(note);
    }
    let revisions = replaced_figures::find_revisions(&material.pages);
    for revision in &revisions {
        for (at, note) in &revision.newer {
            found.entry(*at).or_default().push(note.clone());
        }
    }
    for unit in &mut material.units {
        let (page, statement) = unit.at.statement_in(&material.pages);
        let mut notes = found.remove(&unit.at).unwrap_or_default();
        notes.extend(relative_days::relative_day_notes(page, statement, unit.at.piece));
        if is_request(unit.at) && unit.at.piece + 1 == statement.pieces.len() {
            let offset = statement.pieces[unit.at.piece].end;
            notes.push(Annotation { offset, text: REQUEST_NOTE.to_owned(), citations: Vec::new() });
        }
        notes.sort_by_key(|it| it.offset);
        unit.chars += notes.iter().map(|it| it.text.chars().count() + 1).sum::<usize>();
        unit.annotations = notes;
    }
    // The note on the new figure names the replaced one, if a unit with the new figure exists.
    let unit_at: HashMap<PiecePosition, usize> =
        material.units.iter().enumerate().map(|(unit, it)| (it.at, unit)).collect();
    for revision in revisions {
        if revision.newer.iter().any(|(at, _)| unit_at.contains_key(at)) {
            for unit in revision.older.iter().filter_map(|at| unit_at.get(at)) {
                material.units[*unit].is_replaced = true;
            }
        }
    }
}

/// Returns a text without the notes that the program added.
pub(super) fn strip_annotations(text: &str) -> Cow<'_, str> {
    const DAY: &str = r"\d{4}-\d{2}-\d{2}";
    static ADDED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(&format!(r" \[(?:resolved {DAY}|was [^\[\]]+ until {DAY}|{DAY}|asked)\]")).ok()
    });
    if !text.contains('[') {
        return Cow::Borrowed(text);
    }
    ADDED.as_ref().map_or(Cow::Borrowed(text), |added| added.replace_all(text, ""))
}

fn resolved_note(day: NaiveDate) -> String {
    format!("[resolved {day}]")
}

fn replaced_note(figure: &str, day: NaiveDate) -> String {
    format!("[was {figure} until {day}]")
}

fn date_note(day: NaiveDate) -> String {
    format!("[{day}]")
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::*;

    #[test]
    fn notes_can_be_stripped_again() {
        let day = NaiveDate::from_ymd_opt(2026, 4, 9).unwrap();
        let request = REQUEST_NOTE.to_owned();
        let replaced = replaced_note("€4,100 a month", day);
        for added in [resolved_note(day), replaced, date_note(day), request] {
            assert_eq!(
                strip_annotations(&format!("the floor {added} of it")),
                "the floor of it",
                "{added}"
            );
        }
        for own in ["a [note] of theirs", "see [2026-04-09:12]", "[resolved] at last", "list[0]"] {
            assert_eq!(strip_annotations(own), own);
        }
    }
}
