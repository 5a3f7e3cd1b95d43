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
mod days;
mod resolved;
mod revised;

use std::{borrow::Cow, collections::HashMap, sync::OnceLock};

use chrono::NaiveDate;
use regex::Regex;

use crate::memory::address::Address;

use super::{
    material::{Material, PieceAt},
    sections::Class,
};

/// An addition to a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gloss {
    /// The byte of the statement's text before which it stands.
    pub(super) at: usize,
    /// The addition with its brackets.
    pub(super) text: String,
    /// The lines that it is known from, besides the one that it stands in.
    pub(super) cites: Vec<Address>,
}

/// Adds to the units of a period what is known of them; `classes` tells what each unit is about.
pub(super) fn add(material: &mut Material, classes: &[Class]) {
    let mut found: HashMap<PieceAt, Vec<Gloss>> = HashMap::new();
    let open: Vec<PieceAt> = material
        .units
        .iter()
        .zip(classes)
        .filter(|(_, class)| **class == Class::Open)
        .map(|(unit, _)| unit.at)
        .collect();
    for (at, gloss) in resolved::of(&material.pages, &open) {
        found.entry(at).or_default().push(gloss);
    }
    let revisions = revised::of(&material.pages);
    for revision in &revisions {
        for (at, gloss) in &revision.newer {
            found.entry(*at).or_default().push(gloss.clone());
        }
    }
    for unit in &mut material.units {
        let page = &material.pages[unit.at.page];
        let statement = &page.statements[unit.at.statement];
        let mut glosses = found.remove(&unit.at).unwrap_or_default();
        glosses.extend(days::of(page, statement, unit.at.piece));
        glosses.sort_by_key(|it| it.at);
        unit.chars += glosses.iter().map(|it| it.text.chars().count() + 1).sum::<usize>();
        unit.glosses = glosses;
    }
    // A figure that was replaced is told with the one that holds now, where that can be chosen.
    let place: HashMap<PieceAt, usize> =
        material.units.iter().enumerate().map(|(unit, it)| (it.at, unit)).collect();
    for revision in revisions {
        if revision.newer.iter().any(|(at, _)| place.contains_key(at)) {
            for unit in revision.older.iter().filter_map(|at| place.get(at)) {
                material.units[*unit].is_former = true;
            }
        }
    }
}

/// Returns a text without what the program added to it.
pub(super) fn without(text: &str) -> Cow<'_, str> {
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

fn resolved_on(day: NaiveDate) -> String {
    format!("[resolved {day}]")
}

fn was_until(figure: &str, day: NaiveDate) -> String {
    format!("[was {figure} until {day}]")
}

fn on(day: NaiveDate) -> String {
    format!("[{day}]")
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::*;

    #[test]
    fn what_was_added_can_be_taken_away() {
        let day = NaiveDate::from_ymd_opt(2026, 4, 9).unwrap();
        for added in [resolved_on(day), was_until("€4,100 a month", day), on(day)] {
            assert_eq!(without(&format!("the floor {added} of it")), "the floor of it", "{added}");
        }
        for own in ["a [note] of theirs", "see [2026-04-09:12]", "[resolved] at last", "list[0]"] {
            assert_eq!(without(own), own);
        }
    }
}
