//! Checks that an item says nothing that its cited lines do not say.
//!
//! What can be checked by program is checked: that there is a citation, that each cited line exists
//! and is not blank, and that each atom of the item (numbers, dates, money, names, identifiers,
//! addresses, code) stands in the cited lines. The date of a cited line counts as standing in it.
//! What the lines only suppose may not be stated flatly ([`hedge`]).
//! Pure: the flow calls it between engine and vault, for each engine alike.

use std::collections::HashSet;

use chrono::{Datelike as _, NaiveDate};

use super::hedge;
use crate::{
    engine::Draft,
    memory::{
        address::{Address, Citation, Stem},
        atom::{self, Atom, AtomKind},
        item::{Item, Section},
        log::Origin,
    },
    privacy::{
        ServedLine, ServedLog,
        hold::{self, Concern},
    },
};

/// Where cited lines are looked up.
pub trait Sources {
    /// Returns the line at an address, if its file has it.
    fn line(&self, stem: &Stem, number: u32) -> Option<&ServedLine>;
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
    /// The lines suppose what the item states.
    #[error("`{words}` is a fact here, but the cited lines only suppose it")]
    HedgeDropped {
        /// What the item states.
        words: String,
    },
}

/// What of a draft stood the check.
#[derive(Clone, Debug, Default)]
pub struct Grounded {
    /// The items that stood it, in their sections and order; empty sections are left out.
    pub sections: Vec<(Section, Vec<Item>)>,
    /// The items that did not, and why.
    pub rejected: Vec<(Section, Item, Violation)>,
}

impl Violation {
    /// Returns whether it is kept out for what it looks like.
    pub fn is_look(&self) -> bool {
        matches!(self, Self::Suspicious { .. })
    }
}

impl Sources for [ServedLog] {
    fn line(&self, stem: &Stem, number: u32) -> Option<&ServedLine> {
        // Sorted by stem, as an engine gets them.
        let at = self.binary_search_by(|log| log.stem().cmp(stem)).ok()?;
        self[at].line(number)
    }
}

impl Sources for Vec<ServedLog> {
    fn line(&self, stem: &Stem, number: u32) -> Option<&ServedLine> {
        self.as_slice().line(stem, number)
    }
}

/// Returns whether an item rests on nothing but text from elsewhere: quotes, code, and logs that hold
/// mails or web pages. Such an item may be told, but nothing lasting is made of it until a person
/// accepts a line of it. One source that is a person's or an agent's own words is enough.
pub fn is_from_elsewhere<S: Sources + ?Sized>(citation: &Citation, sources: &S) -> bool {
    let mut lines = citation.addresses().filter_map(|it| sources.line(&it.stem, it.line));
    lines.all(|it| it.origin() == Origin::External)
}

/// Splits a draft into what stands the check and what does not. What `may_pass` names may look like an
/// attack: a person has read it.
pub fn split<S: Sources + ?Sized>(
    draft: &Draft,
    sources: &S,
    may_pass: &dyn Fn(&Item) -> bool,
) -> Grounded {
    let mut grounded = Grounded::default();
    for (section, items) in &draft.sections {
        let mut accepted = Vec::new();
        for item in items {
            let checked = match check(item, sources) {
                Err(why) if why.is_look() && may_pass(item) => check_words(item, sources, true),
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

/// Checks one item against the lines that it cites.
///
/// # Errors
///
/// Returns the first rule that the item breaks.
pub fn check<S: Sources + ?Sized>(item: &Item, sources: &S) -> Result<(), Violation> {
    check_words(item, sources, false)
}

/// Returns whether nothing but its look speaks against an item.
pub fn only_looks<S: Sources + ?Sized>(item: &Item, sources: &S) -> bool {
    check(item, sources).is_err_and(|it| it.is_look()) && check_words(item, sources, true).is_ok()
}

fn check_words<S: Sources + ?Sized>(
    item: &Item,
    sources: &S,
    is_read: bool,
) -> Result<(), Violation> {
    let citation = item.citation.as_ref().ok_or(Violation::NoCitation)?;
    if item.text.trim().is_empty() {
        return Err(Violation::NoWords);
    }
    let mut cited = Cited::default();
    let (mut is_own, mut is_accepted) = (false, is_read);
    for (stem, lines) in citation.files() {
        cited.dates.push(stem.date());
        // Range by range: a citation that a person typed may claim a million lines.
        for number in lines.iter() {
            let address = || Address { stem: stem.clone(), line: number };
            let line = sources
                .line(stem, number)
                .ok_or_else(|| Violation::LineMissing { address: address() })?;
            if line.text().trim().is_empty() {
                return Err(Violation::LineBlank { address: address() });
            }
            is_own |= line.origin() != Origin::External;
            is_accepted |= line.is_accepted();
            cited.lines.push(line.text());
        }
    }
    // A person who accepted a line has read it.
    if !is_accepted {
        let origin = if is_own { Origin::Agent } else { Origin::External };
        if let Some(&concern) = hold::concerns(&item.text, origin).first() {
            return Err(Violation::Suspicious { concern });
        }
    }
    let atoms = atom::atoms(&item.text);
    for atom in &atoms {
        if !cited.holds(atom, &item.text) {
            return Err(Violation::AtomNotInSources { atom: atom.text(&item.text).to_owned() });
        }
    }
    if let Some(words) = hedge::dropped(&item.text, &cited.lines) {
        return Err(Violation::HedgeDropped { words: words.to_owned() });
    }
    Ok(())
}

/// The cited lines, prepared as far as some atom needs it.
#[derive(Default)]
struct Cited<'s> {
    lines: Vec<&'s str>,
    dates: Vec<NaiveDate>,
    norms: Option<HashSet<(Class, String)>>,
    lowered: Option<Vec<String>>,
}

/// Kinds that a person may write for one another: a version is a number with more dots.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    Amount,
    Date,
    Word,
}

fn class(kind: AtomKind) -> Class {
    match kind {
        AtomKind::Number
        | AtomKind::Money
        | AtomKind::Percent
        | AtomKind::Time
        | AtomKind::Version => Class::Amount,
        AtomKind::Date => Class::Date,
        _ => Class::Word,
    }
}

impl Cited<'_> {
    fn holds(&mut self, atom: &Atom, text: &str) -> bool {
        let raw = atom.text(text);
        let norm = atom.norm(text);
        if atom.kind == AtomKind::Date && self.dates.iter().any(|&date| date_says(date, &norm)) {
            return true;
        }
        // Most items use the words of their lines: that is cheap to see.
        if self.lines.iter().any(|line| stands_in(line, raw)) {
            return true;
        }
        let kind = class(atom.kind);
        let norm = norm.to_lowercase();
        if kind == Class::Word && (self.lower_lines_hold(&norm) || self.is_weekday(&norm)) {
            return true;
        }
        let norms = self.norms.get_or_insert_with(|| {
            let mut norms = HashSet::new();
            for line in &self.lines {
                for atom in atom::atoms(line) {
                    norms.insert((class(atom.kind), atom.norm(line).to_lowercase()));
                }
            }
            norms
        });
        // A date without a year is held by one with it, and a month by its days.
        let part_of = |(k, theirs): &(Class, String)| *k == kind && date_holds(theirs, &norm);
        norms.contains(&(kind, norm.clone())) || (kind == Class::Date && norms.iter().any(part_of))
    }

    fn lower_lines_hold(&mut self, norm: &str) -> bool {
        let lowered = self
            .lowered
            .get_or_insert_with(|| self.lines.iter().map(|line| line.to_lowercase()).collect());
        lowered.iter().any(|line| stands_in(line, norm))
    }

    /// The day of the week of a cited line counts as standing in it.
    fn is_weekday(&self, word: &str) -> bool {
        self.dates.iter().any(|date| date.format("%A").to_string().eq_ignore_ascii_case(word))
    }
}

/// Whether `needle` stands in `line` and is not part of a longer word or number.
fn stands_in(line: &str, needle: &str) -> bool {
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

/// Whether a date in normal form is this day, its month, or its day without the year.
fn date_says(date: NaiveDate, norm: &str) -> bool {
    date_holds(&format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day()), norm)
}

/// Whether the date `whole` holds the date `part`, both in normal form.
fn date_holds(whole: &str, part: &str) -> bool {
    whole == part
        || part.strip_prefix("--").is_some_and(|day| whole.get(5..) == Some(day))
        || (part.len() == 7 && !part.starts_with('-') && whole.starts_with(part))
}

#[cfg(test)]
mod tests {
    use crate::{memory::log::DailyLog, privacy};

    use super::*;

    const LOG: &str = "Shipped v1.2 to Acme for $1,200 on 3 May, see `run.sh`.\n\nAlice measured 15 ms with maxLen and #412.\n\nMaybe we move the database to Fly.io in June. The cache moved in May.";

    #[track_caller]
    fn check_item(bullet: &str, expected: &str) {
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), LOG.as_bytes()).unwrap();
        let logs = vec![privacy::serve(&log, &privacy::Rules::default())];
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

    #[test]
    fn what_they_do_not_say_is_named() {
        check_item("Shipped", "the bullet cites no line");
        check_item(" [2026-04-02:1]", "the bullet has no words");
        check_item("Shipped [2026-04-02:2]", "line 2026-04-02:2 is blank");
        check_item("Shipped [2026-04-02:9]", "line 2026-04-02:9 does not exist");
        check_item("Shipped [2026-04-03:1]", "line 2026-04-03:1 does not exist");
        check_item("It cost $200 [2026-04-02:1]", "`$200` stands in none of the cited lines");
        check_item("It took 2 ms [2026-04-02:1]", "`2` stands in none of the cited lines");
        check_item(
            "The boss of Zeta said so [2026-04-02:1]",
            "`Zeta` stands in none of the cited lines",
        );
        check_item("Due 4 May [2026-04-02:1]", "`4 May` stands in none of the cited lines");
        check_item("See #41 [2026-04-02:3]", "`#41` stands in none of the cited lines");
    }
}
