//! Scores lines: how well each answers a question by its own words, its surroundings, its day, and the
//! items derived from it.
//!
//! BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) with term counts of 0
//! or 1 and idf over distinct lines, divided by the question's sum of idf, so that bonuses weigh the
//! same in all questions. An item passes its score down to its source lines and is no hit itself,
//! because they contain the full text. Pure.

use std::collections::HashSet;

use chrono::NaiveDate;

use super::{
    index::{
        indexed_file::{IndexedLine, WINDOW},
        matches::{LOG_TIERS, QueryMatches},
        source::NumberMap,
    },
    time::expression::TimeExpression,
};
use crate::parallel;

const K1: f64 = 1.2;
const B: f64 = 0.4;

const LINE_WEIGHT: f64 = 0.3;
const HEADING_WEIGHT: f64 = 0.3;
const SECTION_WEIGHT: f64 = 0.2;
const DAY_WEIGHT: f64 = 0.1;
const PAIR_WEIGHT: f64 = 0.4;
const NEAR_PAIR_WEIGHT: f64 = 0.15;
const SPEAKER_WEIGHT: f64 = 0.35;
/// The share of the previous line's score that an answer inherits if that line is a question, and from
/// which score on.
const PRECEDING_QUESTION_WEIGHT: f64 = 0.4;
const PRECEDING_QUESTION_SCORE_MIN: f64 = 0.4;
const QUESTION_PENALTY: f64 = 0.12;
const TIME_BONUS: f64 = 0.08;
const OLDEST_BONUS: f64 = 0.1;
const REPEAT_PENALTY: f64 = 0.05;

/// This many lines of a named day come first; further ones compete with other days.
const NAMED_DAY_LINES_MAX: usize = 10;
const NAMED_DAY_OVERFLOW_PENALTY: f64 = 1.0;

/// The share of an item's score that its source lines inherit.
const INHERITED_SHARE: f64 = 0.9;

/// A name that begins this many lines is a speaker's.
const SPEAKER_LINES_MIN: usize = 10;

/// The size of the window before and after a line.
const WINDOW_RADIUS: usize = 2;

/// At least this many of the best lines are sorted.
const SORTED_LINES_MIN: usize = 3_000;

/// What lines inherit from items: by line number, the score and the items.
type InheritedScores = NumberMap<usize, (f64, Vec<(usize, usize)>)>;

/// A line, its score, and the items that led to it.
#[derive(Clone, Debug)]
pub(super) struct ScoredLine {
    pub(super) file: usize,
    pub(super) row: usize,
    pub(super) score: f64,
    /// File and row of each item.
    pub(super) via: Vec<(usize, usize)>,
    pub(super) hash: u32,
    /// Whether its words matched.
    pub(super) matches_words: bool,
    /// Whether its meaning is similar.
    pub(super) is_semantic: bool,
}

/// An item whose source lines are gone, or that has none.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoredItem {
    pub(super) file: usize,
    pub(super) row: usize,
    pub(super) score: f64,
}

/// Scores the possible answers, best first: lines, and items that lead to none. `speaker_masks`
/// contains each word of the question as a speaker id, with the mask of its terms. With `wanted`, only that many of
/// the best lines are returned.
pub(super) fn rank(
    matched: &mut QueryMatches<'_>,
    speaker_masks: &[(u32, u64)],
    when: &TimeExpression,
    with_items: bool,
    wanted: Option<usize>,
) -> (Vec<ScoredLine>, Vec<ScoredItem>) {
    // If the question names a speaker, the name inside a line says nothing more.
    let (speakers, masks): (Vec<u32>, Vec<u64>) = speaker_masks
        .iter()
        .filter(|it| matched.speaker_line_count(it.0) >= SPEAKER_LINES_MIN)
        .copied()
        .unzip();
    let idf = Idf::of(matched, masks.iter().fold(0, |all, mask| all | mask));
    let ItemScores { inherited, has_items, standalone } =
        if with_items { ItemScores::of(matched, &idf, when) } else { ItemScores::default() };
    for file in 0..matched.files.len() {
        let head = &matched.files[file].head;
        if head.tier < LOG_TIERS && when.includes_day(head.date) {
            matched.load_lines(file);
        }
    }
    let logs: Vec<LogLines<'_>> = (0..matched.files.len())
        .filter(|it| matched.files[*it].head.tier < LOG_TIERS && matched.is_loaded(*it))
        .map(|file| LogLines {
            file,
            date: matched.files[file].head.date,
            first_row: matched.files[file].first_row,
            lines: matched.lines(file),
            masks: matched.masks(file),
            window_lengths: matched.window_lengths(file),
            has_items: has_items.contains(&file),
        })
        .collect();
    let pairs = adjacency_gains(matched);
    let scoring =
        LineScorer { idf: &idf, pairs: &pairs, speakers: &speakers, when, inherited: &inherited };
    let mut scored = scoring.score_all(&logs);
    let date = |it: &ScoredLine| matched.files[it.file].head.date;
    if when.wants_oldest {
        boost_oldest(&mut scored, &date);
    }
    sort_best(&mut scored, wanted, |it| (date(it), it.file, it.row));
    (scored, standalone)
}

/// Sorts lines, best first and then by place, as far as they are shown.
fn sort_best<P: Ord>(
    scored: &mut Vec<ScoredLine>,
    wanted: Option<usize>,
    place: impl Fn(&ScoredLine) -> P,
) {
    // Before anything is cut off, because the older line may be far below.
    penalize_repeats(scored, &place);
    let order = |a: &ScoredLine, b: &ScoredLine| {
        b.score.total_cmp(&a.score).then_with(|| place(a).cmp(&place(b)))
    };
    // Most matches are never shown, so only the best ones are sorted.
    let best = scored.len().min(wanted.unwrap_or(0).max(SORTED_LINES_MIN));
    if scored.len() > best {
        scored.select_nth_unstable_by(best, order);
    }
    if wanted.is_some() {
        scored.truncate(best);
    }
    scored[..best].sort_by(order);
    scored[best..].sort_unstable_by(order);
}

/// What the matching items give to their source lines.
#[derive(Default)]
struct ItemScores {
    inherited: InheritedScores,
    /// The logs with a source line of an item.
    has_items: HashSet<usize>,
    /// Items without source lines, best first.
    standalone: Vec<ScoredItem>,
}

impl ItemScores {
    fn of(matched: &mut QueryMatches<'_>, idf: &Idf, when: &TimeExpression) -> Self {
        let mut scores = Self::default();
        for item in score_items(matched, idf) {
            let (date, source_lines) = matched.item_sources(item.file, item.row);
            if source_lines.is_empty() {
                let score = item.score + when.score_gain(date);
                scores.standalone.push(ScoredItem { score, ..item });
            }
            for (file, row) in source_lines {
                scores.has_items.insert(file);
                let (score, via) =
                    scores.inherited.entry(matched.files[file].first_row + row).or_default();
                *score = score.max(INHERITED_SHARE * item.score);
                via.push((item.file, item.row));
            }
        }
        sort_items(&mut scores.standalone);
        scores
    }
}

fn sort_items(items: &mut [ScoredItem]) {
    items.sort_by(|a, b| b.score.total_cmp(&a.score).then((a.file, a.row).cmp(&(b.file, b.row))));
}

/// Scores items as hits of their own, best first.
pub(super) fn rank_items(matched: &mut QueryMatches<'_>, when: &TimeExpression) -> Vec<ScoredItem> {
    let idf = Idf::of(matched, 0);
    let mut scored = score_items(matched, &idf);
    for item in &mut scored {
        item.score += when.score_gain(matched.item_date(item.file, item.row));
    }
    sort_items(&mut scored);
    scored
}

fn score_items(matched: &QueryMatches<'_>, idf: &Idf) -> Vec<ScoredItem> {
    let mut items = Vec::new();
    for (file, known) in matched.files.iter().enumerate() {
        if known.head.tier < LOG_TIERS || !matched.is_loaded(file) {
            continue;
        }
        let masks = matched.masks(file);
        for (row, line) in matched.lines(file).iter().enumerate() {
            let score = idf
                .bm25(f64::from(line.length), idf.line_length, |term| bit(masks[row], term))
                * (1.0 + LINE_WEIGHT);
            if score > 0.0 {
                items.push(ScoredItem { file, row, score });
            }
        }
    }
    items
}

fn bit(mask: u64, term: usize) -> f64 {
    f64::from(u8::from(mask >> term & 1 == 1))
}

/// Adds a small bonus to the oldest lines.
fn boost_oldest(found: &mut [ScoredLine], date: &impl Fn(&ScoredLine) -> NaiveDate) {
    let Some((from, to)) = found.iter().map(date).min().zip(found.iter().map(date).max()) else {
        return;
    };
    #[expect(clippy::cast_precision_loss, reason = "days of some years")]
    let days = |span: chrono::TimeDelta| span.num_days() as f64;
    let all = days(to - from).max(1.0);
    for scored in found {
        scored.score += OLDEST_BONUS * (1.0 - days(date(scored) - from) / all);
    }
}

/// Subtracts a small penalty from lines that repeat an older line.
fn penalize_repeats<T: Ord>(found: &mut [ScoredLine], place: &impl Fn(&ScoredLine) -> T) {
    let mut first: NumberMap<u32, usize> = NumberMap::default();
    let mut repeats = Vec::new();
    for at in 0..found.len() {
        let before = first.entry(found[at].hash).or_insert(at);
        if *before == at {
            continue;
        }
        if place(&found[at]) < place(&found[*before]) {
            repeats.push(std::mem::replace(before, at));
        } else {
            repeats.push(at);
        }
    }
    for at in repeats {
        found[at].score -= REPEAT_PENALTY;
    }
}

/// How rare each term is, and how long lines are on average.
struct Idf {
    of: Vec<f64>,
    sum: f64,
    line_length: f64,
    around_length: f64,
}

impl Idf {
    /// Counts distinct lines, so that text copied from day to day counts once. `names` have no weight.
    fn of(matched: &QueryMatches<'_>, names: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "counts of lines")]
        let count = |it: u64| it as f64;
        let all = count(matched.distinct);
        let holding = matched.line_frequencies();
        let of: Vec<f64> = holding
            .iter()
            .enumerate()
            .map(|(term, &held)| match held {
                Some(held) if names >> term & 1 == 0 => {
                    let held = count(held);
                    (1.0 + ((all - held).max(0.0) + 0.5) / (held + 0.5)).ln()
                }
                _ => 0.0,
            })
            .collect();
        let logs = || matched.files.iter().map(|it| it.head).filter(|it| it.tier < LOG_TIERS);
        let said = count(logs().map(|it| it.line_count).sum::<u64>().max(1));
        Self {
            sum: of.iter().sum(),
            of,
            line_length: count(logs().map(|it| it.length).sum()) / said,
            around_length: count(logs().map(|it| it.window_length).sum()) / 10.0 / said,
        }
    }

    /// Returns a score between 0 and about 2; `count` is how often a term occurs.
    fn bm25(&self, length: f64, average: f64, count: impl Fn(usize) -> f64) -> f64 {
        if self.sum <= 0.0 {
            return 0.0;
        }
        let norm = K1 * (1.0 - B + B * length / average.max(1.0));
        let gained = self.of.iter().enumerate().map(|(term, idf)| {
            let count = count(term);
            if count > 0.0 { idf * count * (K1 + 1.0) / (count + norm) } else { 0.0 }
        });
        gained.sum::<f64>() / self.sum
    }

    /// Returns the share of the question that a text with these terms contains.
    fn matched_share(&self, mask: u64) -> f64 {
        if self.sum <= 0.0 {
            return 0.0;
        }
        let held = self.of.iter().enumerate().filter(|(term, _)| mask >> term & 1 == 1);
        held.map(|(_, idf)| idf).sum::<f64>() / self.sum
    }
}

/// Returns the bonuses of lines in which terms are adjacent or nearly so, as in the question, by line
/// number.
fn adjacency_gains(matched: &QueryMatches<'_>) -> NumberMap<usize, f64> {
    let mut gains: NumberMap<usize, f64> = NumberMap::default();
    let pairs = matched.terms.adjacent_pairs();
    #[expect(clippy::cast_precision_loss, reason = "pairs of a question")]
    let all = pairs.len().max(1) as f64;
    for &(a, b) in &pairs {
        matched.for_each_line_with_both(a, b, |row, first, second| {
            let any = |steps: &[i64]| {
                first.iter().any(|a| {
                    second.iter().any(|b| steps.contains(&(i64::from(*b) - i64::from(*a))))
                })
            };
            let side_by_side = any(&[1]);
            if side_by_side || any(&[2, -1]) {
                let gain = NEAR_PAIR_WEIGHT + if side_by_side { PAIR_WEIGHT } else { 0.0 };
                *gains.entry(row).or_default() += gain / all;
            }
        });
    }
    gains
}

struct LogLines<'a> {
    file: usize,
    date: NaiveDate,
    /// The number of its first line among all lines.
    first_row: usize,
    lines: &'a [IndexedLine],
    /// The terms in each line.
    masks: &'a [u64],
    /// The length of the window around each line, in tenths.
    window_lengths: &'a [u32],
    /// Whether an item cites one of its lines.
    has_items: bool,
}

/// The parameters with which lines are scored.
struct LineScorer<'a> {
    idf: &'a Idf,
    pairs: &'a NumberMap<usize, f64>,
    speakers: &'a [u32],
    when: &'a TimeExpression,
    inherited: &'a InheritedScores,
}

/// From this many lines on, logs are scored in parallel, this many per task.
const PARALLEL_LINES_MIN: usize = 20_000;
const LOGS_PER_TASK: usize = 128;

impl LineScorer<'_> {
    fn score_all(&self, logs: &[LogLines<'_>]) -> Vec<ScoredLine> {
        let part = |logs: &[LogLines<'_>]| {
            let mut scored = Vec::new();
            for log in logs {
                self.score_log(log, &mut scored);
            }
            scored
        };
        if logs.iter().map(|it| it.lines.len()).sum::<usize>() < PARALLEL_LINES_MIN {
            return part(logs);
        }
        let parts: Vec<&[LogLines<'_>]> = logs.chunks(LOGS_PER_TASK).collect();
        parallel::map(&parts, |it| part(it)).into_iter().flatten().collect()
    }

    fn score_log(&self, log: &LogLines<'_>, found: &mut Vec<ScoredLine>) {
        let &LogLines { file, lines, masks, .. } = log;
        let is_named = self.when.includes_day(log.date);
        let sections = LogSections::of(lines, masks);
        let base = self.base_scores(log, &sections);
        let gain = self.when.score_gain(log.date);
        let from = found.len();
        for (row, line) in lines.iter().enumerate().filter(|(_, it)| it.level == 0) {
            let passed =
                if log.has_items { self.inherited.get(&(log.first_row + row)) } else { None };
            if base[row] <= 0.0 && !is_named && passed.is_none() {
                continue;
            }
            let before = row
                .checked_sub(1)
                .filter(|it| lines[*it].is_question && sections.of[*it] == sections.of[row]);
            let answers = before.map_or(0.0, |it| {
                PRECEDING_QUESTION_WEIGHT * (base[it] - PRECEDING_QUESTION_SCORE_MIN).max(0.0)
            });
            let asks = if line.is_question { QUESTION_PENALTY } else { 0.0 };
            let time = if self.when.asks_when && line.tells_time { TIME_BONUS } else { 0.0 };
            let own = base[row] + answers - asks + time;
            let score = passed.map_or(own, |it| own.max(it.0)) * line.external_share() + gain;
            let via = passed.map(|it| it.1.clone()).unwrap_or_default();
            let hash = line.hash;
            found.push(ScoredLine {
                file,
                row,
                score,
                via,
                hash,
                matches_words: true,
                is_semantic: false,
            });
        }
        if is_named && found.len() - from > NAMED_DAY_LINES_MAX {
            found[from..].sort_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
            for it in &mut found[from + NAMED_DAY_LINES_MAX..] {
                it.score -= NAMED_DAY_OVERFLOW_PENALTY;
            }
        }
    }

    /// Returns the score of each line by its own words and its surroundings.
    fn base_scores(&self, log: &LogLines<'_>, sections: &LogSections) -> Vec<f64> {
        let &LogLines { lines, masks, window_lengths: around, .. } = log;
        let idf = self.idf;
        let of_day = idf.matched_share(sections.day);
        let of_section: Vec<(f64, f64)> = sections
            .all
            .iter()
            .map(|it| (idf.matched_share(it.heading), idf.matched_share(it.mask)))
            .collect();
        let mut counts = vec![0.0; idf.of.len()];
        // Most lines of a log have no matching term nearby, which is decided quickly.
        let mut is_close = vec![false; lines.len()];
        for (row, _) in masks.iter().enumerate().filter(|it| *it.1 != 0) {
            is_close[row.saturating_sub(WINDOW_RADIUS)..lines.len().min(row + WINDOW_RADIUS + 1)]
                .fill(true);
        }
        let score = |row: usize| {
            let line = &lines[row];
            let section = sections.of[row];
            let near = || {
                WINDOW.into_iter().filter_map(|(step, weight)| {
                    let near = row.checked_add_signed(step)?;
                    // A heading counts for its whole section, not only for the first line.
                    let is_said = lines.get(near).is_some_and(|it| it.level == 0);
                    (is_said && sections.of[near] == section).then(|| (masks[near], weight))
                })
            };
            let (heading, whole) = of_section[section];
            if line.level > 0 || (!is_close[row] && heading <= 0.0) {
                return 0.0;
            }
            let any = near().fold(0, |all, it| all | it.0);
            if any == 0 && heading <= 0.0 {
                return 0.0;
            }
            let mut of_window = 0.0;
            if any != 0 {
                counts.fill(0.0);
                for (mut mask, weight) in near() {
                    while mask != 0 {
                        let term = mask.trailing_zeros() as usize;
                        counts[term] += f64::from(weight) / 10.0;
                        mask &= mask - 1;
                    }
                }
                let length = f64::from(around[row]) / 10.0;
                of_window = idf.bm25(length, idf.around_length, |term| counts[term]);
            }
            let text = of_window + HEADING_WEIGHT * heading;
            if text <= 0.0 {
                return 0.0;
            }
            let length = f64::from(line.length);
            let of_line = idf.bm25(length, idf.line_length, |term| bit(masks[row], term));
            let speaks = line.speaker != 0 && self.speakers.contains(&line.speaker);
            let pairs = self.pairs.get(&(log.first_row + row));
            text + LINE_WEIGHT * of_line
                + DAY_WEIGHT * of_day
                + SECTION_WEIGHT * whole
                + pairs.copied().unwrap_or(0.0)
                + if speaks { SPEAKER_WEIGHT } else { 0.0 }
        };
        (0..lines.len()).map(score).collect()
    }
}

/// The lines under one heading.
#[derive(Clone, Copy, Default)]
struct LogSection {
    /// The terms in the headings above.
    heading: u64,
    /// Those, and the terms in its lines.
    mask: u64,
}

struct LogSections {
    /// By row.
    of: Vec<usize>,
    all: Vec<LogSection>,
    /// The terms in the whole file.
    day: u64,
}

impl LogSections {
    fn of(lines: &[IndexedLine], masks: &[u64]) -> Self {
        let mut sections = Self { of: Vec::new(), all: vec![LogSection::default()], day: 0 };
        let mut above: Vec<(u8, u64)> = Vec::new();
        for (line, mask) in lines.iter().zip(masks) {
            if line.level > 0 {
                above.retain(|it| it.0 < line.level);
                above.push((line.level, *mask));
                let heading = above.iter().fold(0, |all, it| all | it.1);
                sections.all.push(LogSection { heading, mask: heading });
            }
            let at = sections.all.len() - 1;
            sections.all[at].mask |= mask;
            sections.of.push(at);
            sections.day |= mask;
        }
        sections
    }
}
