//! Ranks units greedily: the next one is always the one that adds most for its length.
//!
//! The gain of a unit shrinks as its features get covered, and further units of the same day add less.
//! So every prefix of the ranking is a good summary; the caller cuts it where the budget ends.
//!
//! The value of the covered features is a sum of square roots, which is monotone and submodular, as in
//! Lin and Bilmes, "Multi-document summarization via budgeted maximization of submodular functions"
//! (NAACL 2010). The greedy choice by gain per cost is evaluated lazily (Minoux, "Accelerated greedy
//! algorithms for maximizing submodular set functions", 1978). No approximation bound is claimed: opened
//! heads and statements raise gains, repeats are skipped, and the best single unit is not compared with
//! the whole selection.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap},
};

use crate::text::hash::HashedMap;

use super::{
    as_f64,
    candidates::{CandidateSet, CandidateUnit, PiecePosition, SELF_CONTAINED_STEMS},
    statements::terms::jaccard,
};

/// The chosen units, best first, and the units that repeat them.
#[derive(Default)]
pub(super) struct UnitRanking {
    pub(super) order: Vec<usize>,
    /// The approximate length of the units up to and including each one, in characters.
    pub(super) cumulative_chars: Vec<usize>,
    /// The gain per character of each unit when it was chosen.
    pub(super) values: HashMap<usize, f64>,
    pub(super) repeats: Vec<usize>,
    pub(super) opened_heads: HashMap<usize, Vec<usize>>,
}

/// The bonus of the first unit of a day, as a share of the gain of a typical unit.
///
/// Only weeks use it; in a month single days do not matter.
pub(super) const DAY_SHARE: f64 = 0.5;

/// The bonus of another clause of a chosen statement: it reads better than a fragment.
const SAME_STATEMENT_FACTOR: f64 = 1.13;

/// The cost of a bullet's marks and citation, in characters.
const COST_BASE: f64 = 8.0;

/// A unit that can be read without its heading takes the heading along if the heading's gain per character
/// is at least this many times that of the unit.
const DENSITY_RATIO_MIN: f64 = 3.0;

/// The most units that are evaluated again before one is chosen.
///
/// If even more have nearly the same value (thousands of lines of one shape), the best of these is taken.
/// Logs of people and agents need less than half of it.
const REEVALUATED_MAX: usize = 500;

/// Two units whose stems overlap by this much say the same.
const REPEAT_JACCARD: f64 = 0.7;

struct ScoredUnit {
    score: f64,
    unit: usize,
    /// The number of this push of the unit: only the last one counts.
    push: u32,
}

struct CandidateQueue {
    heap: BinaryHeap<ScoredUnit>,
    pushes: Vec<u32>,
}

impl CandidateQueue {
    fn push(&mut self, score: f64, unit: usize) {
        self.pushes[unit] += 1;
        self.heap.push(ScoredUnit { score, unit, push: self.pushes[unit] });
    }
}

impl PartialEq for ScoredUnit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ScoredUnit {}

impl PartialOrd for ScoredUnit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScoredUnit {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.unit.cmp(&self.unit))
    }
}

/// Returns whether two units share most stems, so that one repeats the other.
pub(super) fn are_repeats(material: &CandidateSet, a: usize, b: usize) -> bool {
    let stems = |unit: usize| {
        let unit = &material.units[unit];
        &material.features[unit.features.start..unit.features.start + unit.stems]
    };
    jaccard(stems(a), stems(b)) >= REPEAT_JACCARD
}

struct GreedySelection<'m> {
    material: &'m CandidateSet,
    /// Per feature, the number of chosen units that contain it.
    covered: Vec<u32>,
    /// Per feature, the gain of one more unit that contains it.
    marginal_weights: Vec<f64>,
    head_open: Vec<bool>,
    chosen: Vec<bool>,
    /// Chosen units, and those that repeat one.
    closed: Vec<bool>,
    day_of_page: Vec<usize>,
    day_units: Vec<u32>,
    /// Per unit, the index of its statement, and the length of the statement's label in characters.
    statement_of: Vec<(usize, usize)>,
    /// Per statement, whether one of its units was chosen.
    statement_open: Vec<bool>,
    /// The head that a parent item is for its children.
    head_of_parent: HashMap<(usize, usize), usize>,
    day_gain: f64,
    /// Chosen units by each of their rarest stems.
    by_rare_stem: HashedMap<Vec<usize>>,
}

/// Ranks units until they take about `chars` characters.
///
/// `day_share` is the bonus of the first unit of a day, as a share of the gain of a typical unit.
pub(super) fn rank_units(
    material: &CandidateSet,
    factor: impl Fn(usize) -> f64,
    day_share: f64,
    chars: usize,
) -> UnitRanking {
    let mut selection = GreedySelection::new(material);
    let count = material.units.len();
    let mut gains: Vec<f64> = (0..count).map(|unit| selection.features_gain(unit)).collect();
    if gains.is_empty() {
        return UnitRanking::default();
    }
    let middle = gains.len() / 2;
    selection.day_gain = day_share * *gains.select_nth_unstable_by(middle, f64::total_cmp).1;
    let links = UnitLinks::of(material);
    let score = |selection: &GreedySelection<'_>, unit: usize| selection.score(unit) * factor(unit);
    let mut queue =
        CandidateQueue { heap: BinaryHeap::with_capacity(count), pushes: vec![0; count] };
    for unit in 0..count {
        queue.push(score(&selection, unit), unit);
    }
    let mut ranking = UnitRanking::default();
    while let Some((value, unit)) = queue.pop_best(&selection, |unit| score(&selection, unit)) {
        if selection.repeats_chosen(unit) {
            selection.closed[unit] = true;
            ranking.repeats.push(unit);
            continue;
        }
        // Required units go first, so that every prefix of the ranking can be read.
        let mut group: Vec<usize> = selection.unmet_requirements(unit).collect();
        group.reverse();
        group.push(unit);
        let opens_statement = !selection.is_statement_open(unit);
        let opened = ranking.append(&mut selection, &group, value);
        let siblings = if opens_statement { links.siblings(unit, material) } else { &[] };
        let below = opened.iter().flat_map(|&head| &material.heads[head].units);
        let mut raised: Vec<usize> = siblings.iter().chain(below).copied().collect();
        raised.extend(links.dependents(group, &selection));
        for unit in raised.into_iter().filter(|&unit| !selection.closed[unit]) {
            queue.push(score(&selection, unit), unit);
        }
        if ranking.chars() >= chars {
            break;
        }
    }
    ranking.repeats.retain(|&unit| !selection.chosen[unit]);
    ranking
}

impl UnitRanking {
    /// Returns the approximate length of the ranked units, in characters.
    fn chars(&self) -> usize {
        self.cumulative_chars.last().copied().unwrap_or(0)
    }

    /// Chooses and appends `units`; returns the heads that they opened.
    fn append(
        &mut self,
        selection: &mut GreedySelection<'_>,
        units: &[usize],
        value: f64,
    ) -> Vec<usize> {
        let mut opened = Vec::new();
        for &unit in units {
            self.cumulative_chars.push(self.chars() + selection.own_cost(unit));
            self.values.insert(unit, value);
            self.order.push(unit);
            let heads = selection.choose(unit);
            opened.extend(&heads);
            if !heads.is_empty() {
                self.opened_heads.insert(unit, heads);
            }
        }
        opened
    }
}

impl CandidateQueue {
    /// Removes and returns the unit with the highest current score, with that score.
    ///
    /// Scores only shrink, unless a head, a statement, or a required unit was chosen; the caller then
    /// pushes the unit again. So a unit whose score is still the highest needs no further comparison.
    fn pop_best(
        &mut self,
        selection: &GreedySelection<'_>,
        score: impl Fn(usize) -> f64,
    ) -> Option<(f64, usize)> {
        let (mut best, mut evaluated) = (None::<(f64, usize)>, 0);
        while let Some(top) = self.heap.pop() {
            let is_outdated = top.push != self.pushes[top.unit];
            if is_outdated || selection.closed[top.unit] {
                continue;
            }
            let now = score(top.unit);
            evaluated += 1;
            if best.is_none_or(|(score, _)| now > score) {
                best = Some((now, top.unit));
            }
            if self.heap.peek().is_some_and(|next| next.score > now) {
                self.push(now, top.unit);
                if evaluated < REEVALUATED_MAX {
                    continue;
                }
                return best;
            }
            return Some((now, top.unit));
        }
        None
    }
}

/// Which units belong to a statement, and which ones require a unit.
struct UnitLinks {
    by_statement: HashMap<(usize, usize), Vec<usize>>,
    required_by: HashMap<usize, Vec<usize>>,
}

impl UnitLinks {
    fn of(material: &CandidateSet) -> Self {
        let mut links = Self { by_statement: HashMap::new(), required_by: HashMap::new() };
        for (index, unit) in material.units.iter().enumerate() {
            links.by_statement.entry(statement_key(unit.at)).or_default().push(index);
            if let Some(required) = unit.requires {
                links.required_by.entry(required).or_default().push(index);
            }
        }
        links
    }

    fn siblings(&self, unit: usize, material: &CandidateSet) -> &[usize] {
        let key = statement_key(material.units[unit].at);
        self.by_statement.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns the unchosen units that require one of `units`, directly or through others.
    fn dependents(&self, mut units: Vec<usize>, selection: &GreedySelection<'_>) -> Vec<usize> {
        let mut all = Vec::new();
        while let Some(unit) = units.pop() {
            let direct = self.required_by.get(&unit).into_iter().flatten();
            let direct: Vec<usize> = direct.copied().filter(|&it| !selection.chosen[it]).collect();
            all.extend(&direct);
            units.extend(direct);
        }
        all
    }
}

fn statement_key(at: PiecePosition) -> (usize, usize) {
    (at.page, at.statement)
}

impl<'m> GreedySelection<'m> {
    fn new(material: &'m CandidateSet) -> Self {
        let mut days = HashMap::new();
        let day_of_page = material
            .pages
            .iter()
            .map(|page| {
                let next = days.len();
                *days.entry(page.stem.date()).or_insert(next)
            })
            .collect();
        let mut statements = HashMap::new();
        let statement_of: Vec<_> = material
            .units
            .iter()
            .map(|unit| {
                let next = statements.len();
                let (page, statement) = statement_key(unit.at);
                let found = &material.pages[page].statements[statement];
                let of = || (next, found.label_text().chars().count());
                *statements.entry((page, statement)).or_insert_with(of)
            })
            .collect();
        let head_of_parent = material.heads.iter().enumerate().filter_map(|(index, head)| {
            let page = material.units[*head.units.first()?].at.page;
            Some(((page, material.pages[page].heads[head.head].statement?), index))
        });
        Self {
            material,
            head_of_parent: head_of_parent.collect(),
            covered: vec![0; material.weights.len()],
            marginal_weights: material.weights.clone(),
            head_open: vec![false; material.heads.len()],
            chosen: vec![false; material.units.len()],
            closed: material.units.iter().map(|unit| unit.is_replaced).collect(),
            day_of_page,
            day_units: vec![0; days.len()],
            statement_of,
            statement_open: vec![false; statements.len()],
            day_gain: 0.0,
            by_rare_stem: HashedMap::default(),
        }
    }

    /// Returns whether a unit of the same statement was chosen.
    fn is_statement_open(&self, unit: usize) -> bool {
        self.statement_open[self.statement_of[unit].0]
    }

    fn unopened_heads(&self, unit: usize) -> impl Iterator<Item = usize> + '_ {
        let unit = &self.material.units[unit];
        let heading = unit.heading.filter(|&head| !self.head_open[head]);
        let heading = heading.filter(|&head| {
            unit.stems < SELF_CONTAINED_STEMS
                || unit.needs_heading
                || self.material.heads[head].is_title
                || self.is_denser(head, unit)
        });
        heading.into_iter().chain(unit.lead.filter(|&head| !self.head_open[head]))
    }

    /// Returns whether a heading adds more for its length than the unit below it.
    fn is_denser(&self, head: usize, unit: &CandidateUnit) -> bool {
        let head = &self.material.heads[head];
        let own = self.gain_of(&unit.features) / (as_f64(unit.chars) + COST_BASE);
        self.gain_of(&head.features) / as_f64(head.chars.max(1)) > own * DENSITY_RATIO_MIN
    }

    fn gain_of(&self, range: &std::ops::Range<usize>) -> f64 {
        let features = &self.material.features[range.clone()];
        features.iter().map(|&feature| self.marginal_weights[feature as usize]).sum()
    }

    /// Returns the unchosen units that this one requires, nearest first.
    fn unmet_requirements(&self, unit: usize) -> impl Iterator<Item = usize> + '_ {
        let needed = |&unit: &usize| self.material.units[unit].requires;
        std::iter::successors(needed(&unit), needed).take_while(|&unit| !self.chosen[unit])
    }

    /// Returns the gain of the features of a unit, of its unopened heads, and of the units it requires.
    fn features_gain(&self, unit: usize) -> f64 {
        let of = |range: &std::ops::Range<usize>| self.gain_of(range);
        let heads: f64 =
            self.unopened_heads(unit).map(|head| of(&self.material.heads[head].features)).sum();
        let needed: f64 = self
            .unmet_requirements(unit)
            .map(|needed| of(&self.material.units[needed].features))
            .sum();
        of(&self.material.units[unit].features) + needed + heads
    }

    fn cost(&self, unit: usize) -> usize {
        let needed: usize =
            self.unmet_requirements(unit).map(|needed| self.material.units[needed].chars + 1).sum();
        self.own_cost(unit) + needed
    }

    fn own_cost(&self, unit: usize) -> usize {
        let heads: usize =
            self.unopened_heads(unit).map(|head| self.material.heads[head].chars).sum();
        let found = &self.material.units[unit];
        let label = if self.is_statement_open(unit) { 0 } else { self.statement_of[unit].1 };
        found.chars + label + heads + 3
    }

    fn score(&self, unit: usize) -> f64 {
        let found = &self.material.units[unit];
        let day = f64::from(self.day_units[self.day_of_page[found.at.page]]);
        let mut gain = self.features_gain(unit) + self.day_gain * ((day + 1.0).sqrt() - day.sqrt());
        gain *= found.factor;
        if self.is_statement_open(unit) {
            gain *= SAME_STATEMENT_FACTOR;
        }
        gain / (as_f64(self.cost(unit)) + COST_BASE)
    }

    /// Marks a unit as chosen; returns the heads that it opened.
    fn choose(&mut self, unit: usize) -> Vec<usize> {
        let opened: Vec<usize> = self.unopened_heads(unit).collect();
        let material = self.material;
        let found = &material.units[unit];
        self.cover(&material.features[found.features.clone()]);
        for &head in &opened {
            self.head_open[head] = true;
            self.cover(&material.features[material.heads[head].features.clone()]);
        }
        if let Some(&head) = self.head_of_parent.get(&statement_key(found.at)) {
            // Its children follow it, and do not repeat it.
            self.head_open[head] = true;
        }
        self.chosen[unit] = true;
        self.closed[unit] = true;
        self.day_units[self.day_of_page[found.at.page]] += 1;
        self.statement_open[self.statement_of[unit].0] = true;
        for stem in self.rare_stems(unit) {
            self.by_rare_stem.entry(u64::from(stem)).or_default().push(unit);
        }
        opened
    }

    /// Counts features of one more chosen unit or head.
    fn cover(&mut self, features: &[u32]) {
        for &feature in features {
            let feature = feature as usize;
            self.covered[feature] += 1;
            let covered = f64::from(self.covered[feature]);
            let share = (covered + 1.0).sqrt() - covered.sqrt();
            self.marginal_weights[feature] = self.material.weights[feature] * share;
        }
    }

    /// Returns the rarest stems of a unit.
    ///
    /// Two units whose overlap reaches [`REPEAT_JACCARD`] share at least one of them, so that others need
    /// not be compared.
    fn rare_stems(&self, unit: usize) -> Vec<u32> {
        let found = &self.material.units[unit];
        let start = found.features.start;
        let mut stems = self.material.features[start..start + found.stems].to_vec();
        stems.sort_unstable_by_key(|&stem| (self.material.frequency_of(stem), stem));
        // 70% of the stems, rounded up.
        let shared = (stems.len() * 7).div_ceil(10);
        stems.truncate(stems.len() - shared + 1);
        stems
    }

    /// Returns whether a chosen unit of another statement says the same and the unit adds no new number.
    fn repeats_chosen(&self, unit: usize) -> bool {
        /// Chosen units do not repeat each other, so few share a rare stem.
        const COMPARED_MAX: usize = 400;
        let found = &self.material.units[unit];
        let features = &self.material.features[found.features.clone()];
        // That nothing happened at another time is no news.
        let news = !found.is_routine
            && features
                .iter()
                .any(|&f| self.material.is_exact[f as usize] && self.covered[f as usize] == 0);
        if news {
            return false;
        }
        let stems = &features[..found.stems];
        let rare = self.rare_stems(unit);
        let others = rare.iter().filter_map(|&stem| self.by_rare_stem.get(&u64::from(stem)));
        others.flatten().take(COMPARED_MAX).any(|&other| {
            let theirs = &self.material.units[other];
            let start = theirs.features.start;
            statement_key(theirs.at) != statement_key(found.at)
                && jaccard(stems, &self.material.features[start..start + theirs.stems])
                    >= REPEAT_JACCARD
        })
    }
}
