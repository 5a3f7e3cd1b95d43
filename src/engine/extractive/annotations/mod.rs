//! What the program adds to words of a log, always in brackets and from a closed list.
//!
//! - `[2026-04-10]` after `tomorrow` and its like, which say nothing once the log is out of sight;
//! - `[resolved 2026-04-09]` after an open item that a later line tells to be done;
//! - `[was $420M until 2026-01-13]` after a figure that replaced another one.
//!
//! Each cites the lines that it is known from. What is not sure is not said.

// One phrase a line would make pages of what is read as a table.
#[rustfmt::skip]
mod cues;
mod relative_days;
mod replaced_figures;
mod resolved;

use std::{borrow::Cow, collections::HashMap, sync::OnceLock};

use chrono::NaiveDate;
use regex::Regex;

use crate::memory::address::Address;

use super::{
    candidates::{CandidateSet, PiecePosition},
    sections::StatementClass,
};

/// An addition to a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Annotation {
    /// The byte of the statement's text before which it stands.
    pub(super) offset: usize,
    /// The addition with its brackets.
    pub(super) text: String,
    /// The lines that it is known from, besides the one that it stands in.
    pub(super) citations: Vec<Address>,
}

/// Adds to the units of a period what is known of them; `classes` tells what each unit is about.
pub(super) fn annotate(material: &mut CandidateSet, classes: &[StatementClass]) {
    let mut found: HashMap<PiecePosition, Vec<Annotation>> = HashMap::new();
    let open: Vec<PiecePosition> = material
        .units
        .iter()
        .zip(classes)
        .filter(|(_, class)| **class == StatementClass::Open)
        .map(|(unit, _)| unit.at)
        .collect();
    for (at, gloss) in resolved::resolved_notes(&material.pages, &open) {
        found.entry(at).or_default().push(gloss);
    }
    let revisions = replaced_figures::find_revisions(&material.pages);
    for revision in &revisions {
        for (at, gloss) in &revision.newer {
            found.entry(*at).or_default().push(gloss.clone());
        }
    }
    for unit in &mut material.units {
        let page = &material.pages[unit.at.page];
        let statement = &page.statements[unit.at.statement];
        let mut glosses = found.remove(&unit.at).unwrap_or_default();
        glosses.extend(relative_days::relative_day_notes(page, statement, unit.at.piece));
        glosses.sort_by_key(|it| it.offset);
        unit.chars += glosses.iter().map(|it| it.text.chars().count() + 1).sum::<usize>();
        unit.annotations = glosses;
    }
    // A figure that was replaced is told with the one that holds now, where that can be chosen.
    let place: HashMap<PiecePosition, usize> =
        material.units.iter().enumerate().map(|(unit, it)| (it.at, unit)).collect();
    for revision in revisions {
        if revision.newer.iter().any(|(at, _)| place.contains_key(at)) {
            for unit in revision.older.iter().filter_map(|at| place.get(at)) {
                material.units[*unit].is_replaced = true;
            }
        }
    }
}

/// Returns a text without what the program added to it.
pub(super) fn strip_annotations(text: &str) -> Cow<'_, str> {
    static ADDED: OnceLock<Option<Regex>> = OnceLock::new();
    const DAY: &str = r"\d{4}-\d{2}-\d{2}";
    if !text.contains('[') {
        return Cow::Borrowed(text);
    }
    let added = ADDED.get_or_init(|| {
        Regex::new(&format!(r" \[(?:resolved {DAY}|was [^\[\]]+ until {DAY}|{DAY})\]")).ok()
    });
    added.as_ref().map_or(Cow::Borrowed(text), |added| added.replace_all(text, ""))
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
    fn what_was_added_can_be_taken_away() {
        let day = NaiveDate::from_ymd_opt(2026, 4, 9).unwrap();
        for added in [resolved_note(day), replaced_note("€4,100 a month", day), date_note(day)] {
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
