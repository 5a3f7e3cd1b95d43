//! How long a file would be, told without printing it.

use std::collections::{BTreeSet, HashSet};

use crate::memory::item::SummarySection;

use super::{
    super::{render, select::UnitRanking},
    SummaryBuilder,
};

/// A page of which some units were joined.
#[derive(Clone, Default)]
struct MeasuredPage {
    units: Vec<usize>,
    /// How many characters they take in each section.
    chars: Vec<(SummarySection, usize)>,
}

/// Tells how long a file would be. Only the pages are joined anew of which other units are asked for
/// than the last time.
pub(super) struct LengthEstimator<'f, S> {
    builder: &'f SummaryBuilder<'f>,
    ranking: &'f UnitRanking,
    section_of: &'f S,
    pages: Vec<MeasuredPage>,
    /// What the bullets of people take.
    user_chars: Vec<(SummarySection, usize)>,
}

impl<'f, S: Fn(usize) -> SummarySection> LengthEstimator<'f, S> {
    pub(super) fn new(
        fold: &'f SummaryBuilder<'f>,
        ranking: &'f UnitRanking,
        section_of: &'f S,
    ) -> Self {
        let own =
            fold.user_items.iter().map(|(section, it)| (*section, render::bullet_chars(&it.text)));
        let pages = vec![MeasuredPage::default(); fold.material.pages.len()];
        Self { builder: fold, ranking, section_of, pages, user_chars: own.collect() }
    }

    /// Returns the length of the body that holds these units and what people wrote.
    pub(super) fn body_chars(&mut self, order: &[usize]) -> usize {
        let material = &self.builder.material;
        let mut units: Vec<Vec<usize>> = vec![Vec::new(); self.pages.len()];
        for &unit in order {
            units[material.units[unit].at.page].push(unit);
        }
        for (page, units) in self.pages.iter_mut().zip(units) {
            if page.units != units {
                let brought = units.iter().filter_map(|unit| self.ranking.opened_heads.get(unit));
                let opened: HashSet<usize> = brought.flatten().copied().collect();
                page.chars = render::section_chars(material, &units, self.section_of, &opened);
                page.units = units;
            }
        }
        let mut heads = BTreeSet::new();
        let mut chars = render::title_chars(self.builder.input.period);
        for &(section, taken) in
            self.pages.iter().flat_map(|page| &page.chars).chain(&self.user_chars)
        {
            chars += taken;
            if heads.insert(section) {
                chars += render::head_chars(section);
            }
        }
        chars
    }
}

/// Returns how many of the first units fit into `target` characters, where `filled` tells about how many
/// they take and `length` how many.
pub(super) fn units_that_fit(
    filled: &[usize],
    target: usize,
    mut length: impl FnMut(usize) -> usize,
) -> usize {
    let (mut low, mut high) = (0, filled.len());
    let mut guess = filled.partition_point(|&chars| chars <= target);
    // In a long file a few units more or less are filled or cut afterwards.
    while high - low > low / 400 {
        let middle = guess.clamp(low + 1, high);
        let chars = length(middle);
        if chars <= target {
            low = middle;
        } else {
            high = middle - 1;
        }
        // As much longer or shorter as this was than thought, the rest will be too.
        let about = filled[middle - 1].max(1);
        guess = filled.partition_point(|&it| it.saturating_mul(chars) <= target * about);
        if !(low..=high).contains(&guess) {
            guess = (low + high).div_ceil(2);
        }
    }
    low
}
