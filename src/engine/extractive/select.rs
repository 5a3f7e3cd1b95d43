//! Chooses units: always the one that adds most for its length.
//!
//! What a unit adds shrinks as its features get covered, and a day that already has its say gains
//! less by speaking again. So the order in which units are chosen is a ranking of which every prefix
//! is a good summary; the caller cuts it where the budget ends.
//!
//! What is covered is worth a sum of square roots, which is monotone and submodular, as in Lin and
//! Bilmes, "Multi-document summarization via budgeted maximization of submodular functions" (NAACL
//! 2010). The greedy choice by gain per cost is evaluated lazily (Minoux, "Accelerated greedy algorithms
//! for maximizing submodular set functions", 1978). No bound is claimed for it: opened heads and
//! statements raise gains, repeats are skipped, and the best single unit is not tried against the rest.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap},
};

use super::{
    candidates::{CandidateSet, CandidateUnit, PiecePosition, SELF_CONTAINED_STEMS, as_f64},
    words::HashedMap,
};

/// What was chosen, best first, and what was passed over because it says the same.
#[derive(Default)]
pub(super) struct UnitRanking {
    /// Units in the order of choice.
    pub(super) order: Vec<usize>,
    /// About how many characters the units up to each of these take.
    pub(super) cumulative_chars: Vec<usize>,
    /// What each unit was worth when it was chosen, per character.
    pub(super) values: HashMap<usize, f64>,
    /// Units that repeat a chosen one.
    pub(super) repeats: Vec<usize>,
    /// The heads that each unit brought.
    pub(super) opened_heads: HashMap<usize, Vec<usize>>,
}

/// In a week, the first unit of a day gets so much of what a typical unit adds; of a month nobody asks
/// what each day was like.
pub(super) const DAY_SHARE: f64 = 0.5;

/// A second clause of a statement saves its label and reads better than a fragment.
const SAME_STATEMENT_FACTOR: f64 = 1.13;

/// Each bullet has its marks and its citation, which nobody counts but everybody reads.
const COST_BASE: f64 = 8.0;

/// A heading that a unit can be read without goes with it where it adds so many times as much for
/// its length.
const DENSITY_RATIO_MIN: f64 = 3.0;

/// So many units are looked at again before one is chosen. Where even more are worth nearly the same
/// (thousands of lines of one shape), the best of these will do; logs that people and agents write
/// need less than half of it.
const REEVALUATED_MAX: usize = 500;

/// Two units whose stems overlap by so much say the same.
const REPEAT_JACCARD: f64 = 0.7;

struct ScoredUnit {
    score: f64,
    unit: usize,
    /// Which push of the unit this is: only the last one counts.
    push: u32,
}

/// Candidates, best first.
struct CandidateQueue {
    heap: BinaryHeap<ScoredUnit>,
    /// Per unit, how often it was pushed.
    pushes: Vec<u32>,
}

impl CandidateQueue {
    fn push(&mut self, score: f64, unit: usize) {
        self.pushes[unit] += 1;
        self.heap.push(ScoredUnit { score, unit, push: self.pushes[unit] });
    }

    /// Takes the best candidate, without those that were pushed anew.
    fn pop(&mut self) -> Option<ScoredUnit> {
        loop {
            let top = self.heap.pop()?;
            if top.push == self.pushes[top.unit] {
                return Some(top);
            }
        }
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

struct GreedySelection<'m> {
    material: &'m CandidateSet,
    /// Per feature, in how many chosen units it stands.
    covered: Vec<u32>,
    /// Per feature, what one more such unit adds.
    marginal_weights: Vec<f64>,
    head_open: Vec<bool>,
    chosen: Vec<bool>,
    /// Chosen units, and those that repeat one.
    closed: Vec<bool>,
    /// Per page, how many units were chosen from its day.
    day_of_page: Vec<usize>,
    day_units: Vec<u32>,
    /// Per unit, which statement it is of, and how many characters the label of that has.
    statement_of: Vec<(usize, usize)>,
    /// Per statement, whether a unit of it was chosen.
    statement_open: Vec<bool>,
    day_gain: f64,
    /// Chosen units by each of their rarest stems.
    by_rare_stem: HashedMap<Vec<usize>>,
}

/// Ranks units until they would fill about `chars` characters.
///
/// `day_share` is what the first unit of a day gets besides, in units of what a typical one adds.
pub(super) fn rank_units(
    material: &CandidateSet,
    factor: impl Fn(usize) -> f64,
    day_share: f64,
    chars: usize,
) -> UnitRanking {
    let mut choice = GreedySelection::new(material);
    let mut first: Vec<f64> = (0..material.units.len()).map(|u| choice.features_gain(u)).collect();
    if first.is_empty() {
        return UnitRanking::default();
    }
    let middle = first.len() / 2;
    choice.day_gain = day_share * *first.select_nth_unstable_by(middle, f64::total_cmp).1;
    let mut by_statement = HashMap::<(usize, usize), Vec<usize>>::new();
    for (u, unit) in material.units.iter().enumerate() {
        by_statement.entry((unit.at.page, unit.at.statement)).or_default().push(u);
    }
    let score = |choice: &GreedySelection<'_>, unit: usize| choice.score(unit) * factor(unit);
    let mut needed_by = HashMap::<usize, Vec<usize>>::new();
    for (u, unit) in material.units.iter().enumerate() {
        if let Some(needed) = unit.requires {
            needed_by.entry(needed).or_default().push(u);
        }
    }
    let count = material.units.len();
    let mut queue =
        CandidateQueue { heap: BinaryHeap::with_capacity(count), pushes: vec![0; count] };
    for unit in 0..count {
        queue.push(score(&choice, unit), unit);
    }
    let mut ranking = UnitRanking::default();
    let mut filled = 0;
    // The best of those that were looked at since the last choice, and how many these were.
    let (mut best, mut looked_at) = (None::<(f64, usize)>, 0);
    while let Some(top) = queue.pop() {
        if choice.closed[top.unit] {
            continue;
        }
        let now = score(&choice, top.unit);
        // A gain only shrinks with time; what could raise it (an opened head, an opened statement, a
        // unit that it needs) pushes the unit anew.
        looked_at += 1;
        if best.is_none_or(|(score, _)| now > score) {
            best = Some((now, top.unit));
        }
        let mut chosen = (now, top.unit);
        if queue.heap.peek().is_some_and(|next| next.score > now) {
            queue.push(now, top.unit);
            if looked_at < REEVALUATED_MAX {
                continue;
            }
            chosen = best.unwrap_or(chosen);
        }
        (best, looked_at) = (None, 0);
        let (now, chosen) = chosen;
        if choice.repeats_chosen(chosen) {
            choice.closed[chosen] = true;
            ranking.repeats.push(chosen);
            continue;
        }
        // What a unit needs goes before it, so that each prefix of the ranking can be read.
        let mut together: Vec<usize> = choice.unmet_requirements(chosen).collect();
        together.reverse();
        together.push(chosen);
        let key = statement_key(material.units[chosen].at);
        let opens = !choice.is_statement_open(chosen);
        let mut opened: Vec<usize> = Vec::new();
        for &unit in &together {
            filled += choice.own_cost(unit);
            ranking.values.insert(unit, now);
            ranking.order.push(unit);
            ranking.cumulative_chars.push(filled);
            let heads = choice.choose(unit);
            opened.extend(&heads);
            if !heads.is_empty() {
                ranking.opened_heads.insert(unit, heads);
            }
        }
        let siblings = by_statement.get(&key).filter(|_| opens).into_iter().flatten().copied();
        let below = opened.iter().flat_map(|&head| material.heads[head].units.iter().copied());
        let mut raised: Vec<usize> = siblings.chain(below).collect();
        // All that need one of these, and all that need those.
        let mut needed = together;
        while let Some(unit) = needed.pop() {
            let above = needed_by.get(&unit).into_iter().flatten();
            let above: Vec<usize> = above.copied().filter(|&it| !choice.chosen[it]).collect();
            raised.extend(&above);
            needed.extend(above);
        }
        for unit in raised.into_iter().filter(|&unit| !choice.closed[unit]) {
            queue.push(score(&choice, unit), unit);
        }
        if filled >= chars {
            break;
        }
    }
    ranking.repeats.retain(|&unit| !choice.chosen[unit]);
    ranking
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
                let of = || (next, found.text[..found.label].chars().count());
                *statements.entry((page, statement)).or_insert_with(of)
            })
            .collect();
        Self {
            material,
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

    /// Whether a unit of the same statement was chosen.
    fn is_statement_open(&self, unit: usize) -> bool {
        self.statement_open[self.statement_of[unit].0]
    }

    fn unopened_heads(&self, unit: usize) -> impl Iterator<Item = usize> + '_ {
        let unit = &self.material.units[unit];
        let heading = unit.heading.filter(|&head| !self.head_open[head]);
        let heading =
            heading.filter(|&head| unit.stems < SELF_CONTAINED_STEMS || self.is_denser(head, unit));
        heading.into_iter().chain(unit.lead.filter(|&head| !self.head_open[head]))
    }

    /// Whether a heading adds more for its length than what stands below it.
    fn is_denser(&self, head: usize, unit: &CandidateUnit) -> bool {
        let head = &self.material.heads[head];
        let own = self.gain_of(&unit.features) / (as_f64(unit.chars) + COST_BASE);
        self.gain_of(&head.features) / as_f64(head.chars.max(1)) > own * DENSITY_RATIO_MIN
    }

    fn gain_of(&self, range: &std::ops::Range<usize>) -> f64 {
        let features = &self.material.features[range.clone()];
        features.iter().map(|&feature| self.marginal_weights[feature as usize]).sum()
    }

    /// The units that would have to be chosen with this one, nearest first.
    fn unmet_requirements(&self, unit: usize) -> impl Iterator<Item = usize> + '_ {
        let needed = |&unit: &usize| self.material.units[unit].requires;
        std::iter::successors(needed(&unit), needed).take_while(|&unit| !self.chosen[unit])
    }

    /// What the features of a unit and of the heads that it brings would add.
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
        self.chosen[unit] = true;
        self.closed[unit] = true;
        self.day_units[self.day_of_page[found.at.page]] += 1;
        self.statement_open[self.statement_of[unit].0] = true;
        for stem in self.rare_stems(unit) {
            self.by_rare_stem.entry(u64::from(stem)).or_default().push(unit);
        }
        opened
    }

    /// Notes that features stand in one more chosen unit or head.
    fn cover(&mut self, features: &[u32]) {
        for &feature in features {
            let feature = feature as usize;
            self.covered[feature] += 1;
            let covered = f64::from(self.covered[feature]);
            let share = (covered + 1.0).sqrt() - covered.sqrt();
            self.marginal_weights[feature] = self.material.weights[feature] * share;
        }
    }

    /// Returns the rarest stems of a unit: two units whose overlap reaches [`REPEAT_JACCARD`]
    /// share at least one of them, so that others need not be compared.
    fn rare_stems(&self, unit: usize) -> Vec<u32> {
        let found = &self.material.units[unit];
        let start = found.features.start;
        let mut stems = self.material.features[start..start + found.stems].to_vec();
        stems.sort_unstable_by_key(|&stem| (self.material.frequency_of(stem), stem));
        // The least whole number that is no less than 0.7 of the stems.
        let shared = (stems.len() * 7).div_ceil(10);
        stems.truncate(stems.len() - shared + 1);
        stems
    }

    /// Whether the unit says what a chosen unit of another statement says, without a new number.
    fn repeats_chosen(&self, unit: usize) -> bool {
        /// Chosen units do not repeat each other, so that few share a rare stem.
        const COMPARED_MAX: usize = 400;
        let found = &self.material.units[unit];
        let features = &self.material.features[found.features.clone()];
        let news = features
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

/// Returns the overlap of two sorted sets.
fn jaccard(a: &[u32], b: &[u32]) -> f64 {
    let (mut i, mut j, mut both) = (0, 0, 0_usize);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            Ordering::Less => i += 1,
            Ordering::Greater => j += 1,
            Ordering::Equal => {
                both += 1;
                i += 1;
                j += 1;
            }
        }
    }
    as_f64(both) / as_f64((a.len() + b.len() - both).max(1))
}
