//! Computes the length of a file without rendering it.

use std::collections::{BTreeSet, HashSet};

use crate::memory::item::SummarySection;

use super::{
    super::{render, select::UnitRanking},
    SummaryBuilder,
};

#[derive(Clone, Default)]
struct MeasuredPage {
    units: Vec<usize>,
    /// The characters that they take in each section.
    chars: Vec<(SummarySection, usize)>,
}

/// Computes the length of a file. Measures only the pages whose units differ from the previous call.
pub(super) struct LengthEstimator<'f, S> {
    builder: &'f SummaryBuilder<'f>,
    ranking: &'f UnitRanking,
    section_of: &'f S,
    pages: Vec<MeasuredPage>,
}

impl<'f, S: Fn(usize) -> SummarySection> LengthEstimator<'f, S> {
    pub(super) fn new(
        builder: &'f SummaryBuilder<'f>,
        ranking: &'f UnitRanking,
        section_of: &'f S,
    ) -> Self {
        let pages = vec![MeasuredPage::default(); builder.material.pages.len()];
        Self { builder, ranking, section_of, pages }
    }

    /// Returns the length of the body with these units.
    pub(super) fn body_chars(&mut self, order: &[usize]) -> usize {
        let material = &self.builder.material;
        let mut units: Vec<Vec<usize>> = vec![Vec::new(); self.pages.len()];
        for &unit in order {
            units[material.units[unit].at.page].push(unit);
        }
        for (page, units) in self.pages.iter_mut().zip(units) {
            if page.units != units {
                let heads = units.iter().filter_map(|unit| self.ranking.opened_heads.get(unit));
                let opened: HashSet<usize> = heads.flatten().copied().collect();
                page.chars = render::section_chars(material, &units, self.section_of, &opened);
                page.units = units;
            }
        }
        let mut heads = BTreeSet::new();
        let mut chars = render::title_chars(self.builder.input.period);
        for &(section, taken) in self.pages.iter().flat_map(|page| &page.chars) {
            chars += taken;
            if heads.insert(section) {
                chars += render::head_chars(section);
            }
        }
        chars
    }
}

/// Returns how many of the first units fit into `target` characters.
///
/// `estimates` holds the approximate length of each prefix, and `length` computes the exact one.
pub(super) fn units_that_fit(
    estimates: &[usize],
    target: usize,
    mut length: impl FnMut(usize) -> usize,
) -> usize {
    let (mut low, mut high) = (0, estimates.len());
    let mut guess = estimates.partition_point(|&chars| chars <= target);
    // In a long file the caller adds or removes the last few units itself.
    while high - low > low / 400 {
        let middle = guess.clamp(low + 1, high);
        let chars = length(middle);
        if chars <= target {
            low = middle;
        } else {
            high = middle - 1;
        }
        // Scale the estimates by the error of this one.
        let about = estimates[middle - 1].max(1);
        guess = estimates.partition_point(|&it| it.saturating_mul(chars) <= target * about);
        if !(low..=high).contains(&guess) {
            guess = (low + high).div_ceil(2);
        }
    }
    low
}
