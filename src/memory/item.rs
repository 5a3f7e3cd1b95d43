//! Items: the bullets of weekly and monthly files, and their sections.
//!
//! Only the last bracket of a bullet is its citation. The hash of a bullet covers its words without
//! the citation, so that a relocated line does not make the bullet look edited.

use std::fmt;

use super::{
    address::Citation,
    hash::ContentHash,
    period::{Grain, Period},
};

/// A kind of generated file or of the work that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Typed memories from one closed day.
    Extract,
    /// A week's file.
    Weekly,
    /// A month's file.
    Monthly,
    /// `WISDOM.md`.
    Wisdom,
}

impl Tier {
    /// All tiers in the order in which a run writes them.
    pub const ALL: [Self; 4] = [Self::Extract, Self::Weekly, Self::Monthly, Self::Wisdom];

    /// Returns the name that files, JSON, and the command line use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Extract => "extract",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Wisdom => "wisdom",
        }
    }

    /// Returns the tier with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.name() == name)
    }

    /// Returns the tier whose file covers `period`: a day is extracted, a week or a month
    /// summarized.
    pub fn of_period(period: Period) -> Self {
        match period.grain() {
            Grain::Day => Self::Extract,
            Grain::Week => Self::Weekly,
            Grain::Month => Self::Monthly,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A heading of a weekly or monthly file. The order of the variants is the order in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the headings")]
pub enum SummarySection {
    KeyOutcomes,
    Decisions,
    BlockersAndOpenItems,
    Context,
    Themes,
    Milestones,
    Trajectory,
    CarriedForward,
}

impl SummarySection {
    /// The sections of a weekly file.
    pub const WEEKLY: [Self; 4] =
        [Self::KeyOutcomes, Self::Decisions, Self::BlockersAndOpenItems, Self::Context];
    /// The sections of a monthly file.
    pub const MONTHLY: [Self; 4] =
        [Self::Themes, Self::Milestones, Self::Trajectory, Self::CarriedForward];

    /// Returns the text of the heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::KeyOutcomes => "Key Outcomes",
            Self::Decisions => "Decisions",
            Self::BlockersAndOpenItems => "Blockers & Open Items",
            Self::Context => "Context",
            Self::Themes => "Themes",
            Self::Milestones => "Milestones",
            Self::Trajectory => "Trajectory",
            Self::CarriedForward => "Carried Forward",
        }
    }

    /// Returns the section with that heading.
    pub fn from_title(title: &str) -> Option<Self> {
        let all = Self::WEEKLY.into_iter().chain(Self::MONTHLY);
        all.into_iter().find(|it| it.title().eq_ignore_ascii_case(title.trim()))
    }
}

/// One bullet: its words and the lines that it cites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The words, without list marker and citation. Generated items are one line.
    pub text: String,
    /// The cited lines; `None` only where a person wrote a bullet without a source.
    pub citation: Option<Citation>,
}

impl Item {
    /// Splits the text of a bullet (without its list marker) into words and citation.
    pub fn parse(bullet: &str) -> Self {
        let trimmed = bullet.trim_end();
        let cited = trimmed.strip_suffix(']').and_then(|rest| {
            let open = rest.rfind('[')?;
            let citation = rest[open + 1..].parse().ok()?;
            Some(Self { text: rest[..open].trim_end().to_owned(), citation: Some(citation) })
        });
        cited.unwrap_or_else(|| Self { text: trimmed.to_owned(), citation: None })
    }

    /// Returns the first 8 hex digits of the hash of the words, as `items` of a record lists it.
    pub fn hash(&self) -> String {
        ContentHash::of(self.text.trim()).hex8()
    }

    /// Returns the first 8 hex digits of the hash of the words and the citation, as `cited` of a record lists it.
    pub fn hash_with_citation(&self) -> String {
        ContentHash::of(self.to_string()).hex8()
    }
}

impl fmt::Display for Item {
    /// Prints the bullet without its list marker.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.citation {
            Some(citation) => write!(f, "{} [{citation}]", self.text),
            None => f.write_str(&self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bullet: &str, text: &str, citation: Option<&str>) {
        let item = Item::parse(bullet);
        assert_eq!(item.text, text);
        assert_eq!(item.citation.as_ref().map(ToString::to_string).as_deref(), citation);
        assert_eq!(item.to_string(), bullet);
    }

    #[test]
    fn only_the_last_bracket_is_the_citation() {
        check("Shipped (#412) [2026-03-30:12]", "Shipped (#412)", Some("2026-03-30:12"));
        check(
            "See [a](b) [x] [2026-03-30:12; 2026-04-01:1-2]",
            "See [a](b) [x]",
            Some("2026-03-30:12; 2026-04-01:1-2"),
        );
        check("Quoted [2026-03-30:12] inside", "Quoted [2026-03-30:12] inside", None);
        check("Ends in a tag [wip]", "Ends in a tag [wip]", None);
    }
}
