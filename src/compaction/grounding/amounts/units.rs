//! Units of numbers, by their spellings in `quantities.yaml`.

use std::{collections::HashMap, sync::LazyLock};

use crate::text::lexicon::QUANTITIES;

/// The unit of a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MeasureUnit {
    /// None is written.
    None,
    /// A unit of the lexicon: percent first, then money, then all others.
    Known(usize),
    /// Letters after the number that are no unit of the lexicon.
    Other(String),
}

impl MeasureUnit {
    /// Returns the unit that a word in lower case spells.
    pub(super) fn of(word: &str) -> Self {
        UNITS.get(word).map_or(Self::None, |it| Self::Known(*it))
    }

    /// Returns whether it is a unit of money.
    pub(super) fn is_money(&self) -> bool {
        matches!(self, Self::Known(at) if (1..QUANTITIES.units.strict.len()).contains(at))
    }

    /// Returns the spelling that stands for all of a unit's.
    pub(super) fn name(&self) -> Option<&'static str> {
        match self {
            Self::Known(at) => spellings().nth(*at).and_then(|it| it.first()).copied(),
            Self::None | Self::Other(_) => None,
        }
    }

    /// Returns whether a number with this unit, in an item, is supported by one with their unit in a line.
    pub(super) fn is_compatible_with(&self, theirs: &Self) -> bool {
        let percent = Self::of("%");
        match (self, theirs) {
            (Self::None, it) => *it != percent,
            (Self::Known(at), Self::None | Self::Other(_)) => *at >= QUANTITIES.units.strict.len(),
            (Self::Other(_), Self::None) => true,
            (a, b) if a == b => true,
            (Self::Known(_), Self::Known(_)) => {
                // The sign of the yen is also that of the yuan.
                let (sign, signed) = (Self::of("¥"), [Self::of("jpy"), Self::of("cny")]);
                if (*self == sign && signed.contains(theirs))
                    || (*theirs == sign && signed.contains(self))
                {
                    return true;
                }
                let (degrees, scales) = (Self::of("°"), [Self::of("°c"), Self::of("°f")]);
                (*self == degrees && scales.contains(theirs))
                    || (*theirs == degrees && scales.contains(self))
            }
            _ => false,
        }
    }
}

/// Returns the spellings of each unit: first percent, then money, then all others.
fn spellings() -> impl Iterator<Item = &'static Vec<&'static str>> {
    QUANTITIES.units.strict.iter().chain(&QUANTITIES.units.lenient)
}

/// Returns whether a word is a unit.
pub(in crate::compaction::grounding) fn is_unit(word: &str) -> bool {
    UNITS.contains_key(word)
}

/// Units by their spellings.
static UNITS: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    let all = spellings().enumerate();
    all.flat_map(|(at, spellings)| spellings.iter().map(move |it| (*it, at))).collect()
});
