//! Chooses the bullets of a month: topic by topic, then what concerns no topic, then whatever adds most.
//!
//! The value of a bullet is that of its words as in [`select`](super::super::super::select), times what its
//! statements are worth. Words that are in the month already add less.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use chrono::{NaiveDate, TimeDelta};

use super::bullets::MonthBullet;
use crate::{
    engine::extractive::{as_f64, candidates::CandidateSet, render},
    memory::{address::Citation, item::SummarySection, period::Period, statement::StatementKind},
    text::hash::{HashedMap, HashedSet},
};

/// The most topics of a month.
const TOPICS_MAX: usize = 10;

/// A topic has bullets on as many days, and as many bullets.
const TOPIC_DAYS_MIN: usize = 2;

const TOPIC_BULLETS_MIN: usize = 3;

/// The parts of the room in percent: of all topics, of one topic, of rules and what was stopped, of open items.
const TOPICS_SHARE: usize = 45;

const TOPIC_SHARE_MAX: usize = 18;

const GUIDANCE_SHARE: usize = 15;

const OPEN_SHARE: usize = 12;

/// The last days of a month whose open items are carried forward.
const CARRIED_DAYS: TimeDelta = TimeDelta::days(9);

/// What is worth a smaller share of what most are worth is chosen only where there is room left.
const WORTH_SHARE_MIN: f64 = 0.4;

/// How much a number, a date or the like counts: a month is read for what happened.
const FIGURE_FACTOR: f64 = 0.8;

/// The factor of names of files and bullets of a few words.
const NOT_WORTH_READING_FACTOR: f64 = 0.3;

/// The factor of an open item from the earlier part of a month; most are settled by its end.
const EARLY_OPEN_FACTOR: f64 = 0.5;

/// A bullet says the same as another one with this share of common words, or if that has this share of its words.
const SAME_WORDS: f64 = 0.6;

const CONTAINED_WORDS: f64 = 0.85;

/// Added to the length of a bullet: short ones would else win by their length alone.
const LENGTH_OFFSET: f64 = 150.0;

/// What became of a bullet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BulletOutcome {
    Chosen(SummarySection),
    Repeats,
    NoRoom,
    WorthLess,
}

/// The choice of bullets, with the reasons.
pub(super) struct MonthChoice<'a> {
    bullets: &'a [MonthBullet],
    /// The weight of each feature.
    weights: Vec<f64>,
    /// The features of each bullet, and the factor of its words.
    features: Vec<(Vec<u32>, f64)>,
    /// How many chosen bullets have a feature.
    covered: Vec<u32>,
    with_stem: HashedMap<Vec<usize>>,
    /// The heaviest first.
    topics: Vec<MonthTopic>,
    /// The place among `topics` of each bullet.
    topic_of: Vec<Option<usize>>,
    carried: NaiveDate,
    worth_min: f64,
    target: usize,
    used: usize,
    opened: BTreeSet<SummarySection>,
    pub(super) outcomes: Vec<BulletOutcome>,
    /// The gain of each bullet when it was considered last.
    pub(super) values: Vec<f64>,
}

/// What several days of the month are about.
struct MonthTopic {
    /// √(days × lines), by which the topics share the room.
    weight: f64,
    /// The bullets about it, older ones first.
    members: Vec<usize>,
}

/// A bullet in the queue, by the gain that it had when it was put there.
#[derive(PartialEq)]
struct QueuedBullet(f64, usize);

impl Eq for QueuedBullet {}

impl Ord for QueuedBullet {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
    }
}

impl PartialOrd for QueuedBullet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> MonthChoice<'a> {
    /// `units_of` holds the units of each bullet, `pinned` the section and length of each bullet that is in the
    /// month anyway.
    pub(super) fn new(
        period: Period,
        bullets: &'a [MonthBullet],
        material: &'a CandidateSet,
        units_of: &[Vec<usize>],
        pinned: &[(SummarySection, usize)],
    ) -> Self {
        let features = units_of.iter().map(|units| {
            let mut all: Vec<u32> = Vec::new();
            let (mut factor, mut chars) = (0.0, 0.0);
            for unit in units.iter().map(|it| &material.units[*it]) {
                all.extend(&material.features[unit.features.clone()]);
                factor += unit.factor * as_f64(unit.chars);
                chars += as_f64(unit.chars);
            }
            all.sort_unstable();
            all.dedup();
            (all, if chars > 0.0 { factor / chars } else { 0.0 })
        });
        let last = bullets.iter().map(|it| it.day).max().unwrap_or_else(|| period.last());
        let mut worths: Vec<f64> = bullets.iter().map(|it| it.worth).collect();
        worths.sort_by(f64::total_cmp);
        let usual = worths.get(worths.len() / 2).copied().unwrap_or(0.0);
        let weight = |(weight, is_exact): (&f64, &bool)| {
            weight * if *is_exact { FIGURE_FACTOR } else { 1.0 }
        };
        let mut choice = Self {
            bullets,
            weights: material.weights.iter().zip(&material.is_exact).map(weight).collect(),
            worth_min: usual * WORTH_SHARE_MIN,
            features: features.collect(),
            covered: vec![0; material.weights.len()],
            with_stem: HashedMap::default(),
            topics: Vec::new(),
            topic_of: vec![None; bullets.len()],
            carried: last.checked_sub_signed(CARRIED_DAYS).unwrap_or(last),
            target: 0,
            used: render::title_chars(period),
            opened: BTreeSet::new(),
            outcomes: vec![BulletOutcome::WorthLess; bullets.len()],
            values: vec![0.0; bullets.len()],
        };
        for &(section, chars) in pinned {
            choice.used += chars + choice.opening_chars(section);
            choice.opened.insert(section);
        }
        choice.find_topics();
        choice
    }

    /// Finds the topics of the month: those with most days and lines.
    fn find_topics(&mut self) {
        let mut members = BTreeMap::<usize, Vec<usize>>::new();
        for at in (0..self.bullets.len()).filter(|it| self.is_worth_it(*it)) {
            if let Some(topic) = self.bullets[at].topic {
                members.entry(topic).or_default().push(at);
            }
        }
        self.topics = members.into_values().filter_map(|it| self.topic_with(it)).collect();
        self.topics.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        self.topics.truncate(TOPICS_MAX);
        for (place, topic) in self.topics.iter().enumerate() {
            for &at in &topic.members {
                self.topic_of[at] = Some(place);
            }
        }
    }

    /// Returns a topic with these bullets, if they are enough.
    fn topic_with(&self, mut members: Vec<usize>) -> Option<MonthTopic> {
        members.sort_by_key(|it| (self.bullets[*it].day, *it));
        let days: BTreeSet<NaiveDate> = members.iter().map(|it| self.bullets[*it].day).collect();
        let citations = members.iter().filter_map(|it| self.bullets[*it].item.citation.as_ref());
        let lines: usize = citations.flat_map(Citation::files).map(|it| it.1.len()).sum();
        let weight = (as_f64(days.len()) * as_f64(lines)).sqrt();
        let is_topic = days.len() >= TOPIC_DAYS_MIN && members.len() >= TOPIC_BULLETS_MIN;
        is_topic.then_some(MonthTopic { weight, members })
    }

    /// Chooses until `target` characters of the body are used.
    pub(super) fn run(&mut self, target: usize) {
        self.target = target;
        let room = target.saturating_sub(self.used);
        let all: Vec<usize> = (0..self.bullets.len()).filter(|it| self.is_worth_it(*it)).collect();
        let topics = std::mem::take(&mut self.topics);
        let sum: f64 = topics.iter().map(|it| it.weight).sum();
        for topic in &topics {
            let most = as_f64(room * TOPIC_SHARE_MAX / 100);
            let share = (as_f64(room * TOPICS_SHARE / 100) * topic.weight / sum).min(most);
            self.choose_of_topic(&topic.members, floor(share));
        }
        self.topics = topics;
        let of = |sections: &[SummarySection]| -> Vec<usize> {
            all.iter().copied().filter(|it| sections.contains(&self.section_of(*it))).collect()
        };
        let open = of(&[SummarySection::CarriedForward]);
        let guidance = of(&[SummarySection::Trajectory]);
        self.choose_best(open, room * OPEN_SHARE / 100);
        self.choose_best(guidance, room * GUIDANCE_SHARE / 100);
        // Of everything else a line.
        let mut others = BTreeMap::<usize, usize>::new();
        for &at in &all {
            let topic = self.bullets[at].topic.filter(|_| self.topic_of[at].is_none());
            if let Some(best) = topic.map(|it| others.entry(it).or_insert(at))
                && self.gain(at) > self.gain(*best)
            {
                *best = at;
            }
        }
        self.choose_best(others.into_values().collect(), room);
        self.choose_best(
            (0..self.bullets.len()).filter(|it| self.is_candidate(*it)).collect(),
            room,
        );
    }

    /// Chooses the best bullet of all that fits, whatever it is worth.
    pub(super) fn choose_any(&mut self, limit: usize) {
        self.target = limit;
        let mut all: Vec<usize> =
            (0..self.bullets.len()).filter(|it| self.is_candidate(*it)).collect();
        all.sort_by(|a, b| self.gain(*b).total_cmp(&self.gain(*a)).then(a.cmp(b)));
        if let Some(at) = all.into_iter().find(|it| self.added_chars(*it) + self.used <= limit) {
            self.choose(at);
        }
    }

    /// Returns the chosen bullets in the order of the file.
    pub(super) fn in_order(&self) -> Vec<(SummarySection, usize)> {
        let mut chosen: Vec<(SummarySection, usize, NaiveDate, usize)> = self
            .outcomes
            .iter()
            .enumerate()
            .filter_map(|(at, outcome)| match outcome {
                BulletOutcome::Chosen(section) => {
                    let topic = self.topic_of[at].filter(|_| *section == SummarySection::Themes);
                    Some((*section, topic.unwrap_or(usize::MAX), self.bullets[at].day, at))
                }
                _ => None,
            })
            .collect();
        chosen.sort_unstable();
        chosen.into_iter().map(|(section, _, _, at)| (section, at)).collect()
    }

    /// Returns the section that a bullet has or would have.
    pub(super) fn section_of(&self, at: usize) -> SummarySection {
        let bullet = &self.bullets[at];
        let is_of_topic = self.topic_of[at].is_some();
        match bullet.kind {
            StatementKind::Open if bullet.day >= self.carried && !bullet.is_resolved => {
                SummarySection::CarriedForward
            }
            StatementKind::Rule
            | StatementKind::Preference
            | StatementKind::Profile
            | StatementKind::Retired => SummarySection::Trajectory,
            StatementKind::Decision | StatementKind::Lesson if !is_of_topic => {
                SummarySection::Trajectory
            }
            StatementKind::State
                if !is_of_topic && bullet.section == SummarySection::KeyOutcomes =>
            {
                SummarySection::Milestones
            }
            _ => SummarySection::Themes,
        }
    }

    /// Returns whether a bullet may be chosen before all others are considered.
    fn is_worth_it(&self, at: usize) -> bool {
        let bullet = &self.bullets[at];
        self.is_candidate(at) && bullet.is_worth_reading && bullet.worth >= self.worth_min
    }

    fn is_candidate(&self, at: usize) -> bool {
        self.features[at].1 > 0.0
    }

    /// Chooses how a topic was at first, how it was at last, and what adds most of the rest.
    fn choose_of_topic(&mut self, members: &[usize], room: usize) {
        /// The first and the last of the bullets are a part of them.
        const ENDS: usize = 5;
        let members: Vec<usize> = members
            .iter()
            .copied()
            .filter(|it| self.section_of(*it) == SummarySection::Themes)
            .collect();
        let width = members.len().div_ceil(ENDS);
        let is_state = |it: &&usize| self.bullets[**it].kind == StatementKind::State;
        let first: Vec<usize> = members.iter().filter(is_state).take(width).copied().collect();
        let last: Vec<usize> = members.iter().rev().take(width).copied().collect();
        let mut left = room;
        for ends in [first, last] {
            let best = ends
                .into_iter()
                .filter(|it| matches!(self.outcomes[*it], BulletOutcome::WorthLess))
                .max_by(|a, b| self.gain(*a).total_cmp(&self.gain(*b)).then(b.cmp(a)));
            left -= best.map_or(0, |it| self.choose_best(vec![it], left));
        }
        self.choose_best(members, left);
    }

    /// Chooses the bullet with the highest gain until the room is full; returns how much was used. A gain only falls,
    /// so that one that is still the highest after it was computed again is the highest of all.
    fn choose_best(&mut self, among: Vec<usize>, room: usize) -> usize {
        let is_left = |it: &usize| {
            !matches!(self.outcomes[*it], BulletOutcome::Chosen(_) | BulletOutcome::Repeats)
        };
        let mut queue: BinaryHeap<QueuedBullet> =
            among.into_iter().filter(is_left).map(|it| QueuedBullet(self.gain(it), it)).collect();
        let before = self.used;
        while let Some(QueuedBullet(_, at)) = queue.pop() {
            let gain = self.gain(at);
            self.values[at] = gain;
            if queue.peek().is_some_and(|it| gain < it.0) {
                queue.push(QueuedBullet(gain, at));
                continue;
            }
            let chars = self.added_chars(at);
            if self.used + chars > self.target || self.used + chars - before > room {
                self.outcomes[at] = BulletOutcome::NoRoom;
            } else if self.repeats_chosen(at) {
                self.outcomes[at] = BulletOutcome::Repeats;
            } else {
                self.choose(at);
            }
        }
        self.used - before
    }

    fn choose(&mut self, at: usize) {
        let section = self.section_of(at);
        self.used += self.added_chars(at);
        self.opened.insert(section);
        self.outcomes[at] = BulletOutcome::Chosen(section);
        for &feature in &self.features[at].0 {
            self.covered[feature as usize] += 1;
        }
        for &stem in self.bullets[at].terms.stems.hashes() {
            self.with_stem.entry(stem).or_default().push(at);
        }
    }

    fn opening_chars(&self, section: SummarySection) -> usize {
        if self.opened.contains(&section) { 0 } else { render::head_chars(section) }
    }

    fn added_chars(&self, at: usize) -> usize {
        render::bullet_chars(&self.bullets[at].item.text) + self.opening_chars(self.section_of(at))
    }

    fn gain(&self, at: usize) -> f64 {
        let bullet = &self.bullets[at];
        let (features, factor) = &self.features[at];
        let words: f64 = features
            .iter()
            .map(|&it| {
                let times = f64::from(self.covered[it as usize]);
                self.weights[it as usize] * ((times + 1.0).sqrt() - times.sqrt())
            })
            .sum();
        let is_early = bullet.kind == StatementKind::Open && bullet.day < self.carried;
        let less =
            [(is_early, EARLY_OPEN_FACTOR), (!bullet.is_worth_reading, NOT_WORTH_READING_FACTOR)];
        let less: f64 = less.into_iter().filter(|it| it.0).map(|it| it.1).product();
        words * factor * bullet.worth.sqrt() * kind_factor(bullet.kind) * less
            / (as_f64(bullet.chars) + LENGTH_OFFSET)
    }

    /// Returns whether a chosen bullet says the same. It has one of the rarest words of this one.
    fn repeats_chosen(&self, at: usize) -> bool {
        const READ_MAX: usize = 100;
        let terms = &self.bullets[at].terms;
        let with = |stem: &u64| self.with_stem.get(stem).map_or(&[][..], Vec::as_slice);
        let mut rarest: Vec<&u64> = terms.stems.hashes().iter().collect();
        rarest.sort_by_key(|it| (with(it).len(), **it));
        let enough = terms.stems.len() * 2 / 5 + 1;
        let found =
            rarest.into_iter().take(enough).flat_map(|it| with(it).iter().rev().take(READ_MAX));
        let found: HashedSet = found.map(|it| *it as u64).collect();
        found.into_iter().any(|it| {
            let Ok(it) = usize::try_from(it) else { return false };
            let is_open = |it: usize| self.bullets[it].kind == StatementKind::Open;
            let other = &self.bullets[it].terms;
            // That something was done has the words of the open item.
            is_open(at) == is_open(it)
                && terms.values.is_subset(&other.values)
                && (terms.similarity(other) >= SAME_WORDS
                    || terms.stem_containment(other) >= CONTAINED_WORDS)
        })
    }
}

/// Returns how much more a bullet of a kind is worth in a month.
fn kind_factor(kind: StatementKind) -> f64 {
    match kind {
        StatementKind::Decision | StatementKind::Lesson | StatementKind::Rule => 1.4,
        _ => 1.0,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a length is a length"
)]
fn floor(chars: f64) -> usize {
    chars.max(0.0) as usize
}
