//! The score of a line: how well it answers a question, with what stands around it, its day, and what was
//! made of it.
//!
//! BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) with term counts of 0 or 1
//! and idf over distinct lines, divided by the question's sum of idf, so that what is added to it means the
//! same for all questions. An item passes its score down to the lines that it rests on and is no hit itself:
//! what it shortened stands there whole. Pure.

use chrono::NaiveDate;

use super::{
    ground::{Line, WINDOW},
    matched::{LOGS, Matched},
    source::ByNumber,
    when::When,
};
use crate::parallel;

const K1: f64 = 1.2;
const B: f64 = 0.4;

const OF_LINE: f64 = 0.3;
const OF_HEADING: f64 = 0.3;
const OF_SECTION: f64 = 0.2;
const OF_DAY: f64 = 0.1;
const OF_PAIRS: f64 = 0.4;
const OF_NEAR_PAIRS: f64 = 0.15;
const OF_SPEAKER: f64 = 0.35;
/// What an answer has of the question in the line before it, and from which score of that on.
const OF_QUESTION_BEFORE: f64 = 0.4;
const QUESTION_BEFORE_MIN: f64 = 0.4;
const IS_QUESTION: f64 = 0.12;
const TELLS_TIME: f64 = 0.08;
const FIRST: f64 = 0.1;
const REPEATED: f64 = 0.05;

/// So many lines of a day that is named come first; then other days have a say, too.
const NAMED_LINES: usize = 10;
const BEYOND_NAMED: f64 = 1.0;

/// What a line gets of the score of an item above it.
const PASSED_DOWN: f64 = 0.9;

/// A name that begins so many lines is that of somebody who speaks.
const SPEAKS_MIN: usize = 10;

/// A window ends so many lines before and after a line at the latest.
const REACH: usize = 2;

/// At least so many of the best lines are put in order.
const COMPARED: usize = 3_000;

/// What lines get from above: by their numbers among all the score, and the items by which it came.
type Passed = ByNumber<usize, (f64, Vec<(usize, usize)>)>;

/// A line, what it scored, and the items above it that brought it.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub(super) file: usize,
    pub(super) row: usize,
    pub(super) score: f64,
    /// File and row of each.
    pub(super) via: Vec<(usize, usize)>,
    pub(super) hash: u32,
    /// Whether it was found by its words.
    pub(super) by_words: bool,
    /// Whether it is near in meaning.
    pub(super) is_near: bool,
}

/// An item whose lines are gone, or that has none.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoredItem {
    pub(super) file: usize,
    pub(super) row: usize,
    pub(super) score: f64,
}

/// Scores what could be an answer, best first: lines, and items that lead to none. `said` is the
/// question's words as the numbers of who could be called so, with what terms each of them is. Only
/// the best `wanted` lines are returned, where that is said.
pub(super) fn rank(
    matched: &mut Matched<'_>,
    said: &[(u32, u64)],
    when: &When,
    with_items: bool,
    wanted: Option<usize>,
) -> (Vec<Scored>, Vec<ScoredItem>) {
    // Who is asked about says it; that the name stands in it tells nothing more.
    let asked: Vec<(u32, u64)> =
        said.iter().copied().filter(|it| matched.speaks(it.0) >= SPEAKS_MIN).collect();
    let names = asked.iter().fold(0, |mask, it| mask | it.1);
    let idf = Idf::of(matched, names);
    let mut passed = Passed::default();
    let mut is_below = vec![false; matched.files.len()];
    let mut alone = Vec::new();
    if with_items {
        for item in items(matched, &idf) {
            let (date, beneath) = matched.beneath(item.file, item.row);
            if beneath.is_empty() {
                alone.push(ScoredItem { score: item.score + when.gain(date), ..item });
            }
            for (file, row) in beneath {
                is_below[file] = true;
                let (score, via) = passed.entry(matched.files[file].from + row).or_default();
                *score = score.max(PASSED_DOWN * item.score);
                via.push((item.file, item.row));
            }
        }
    }
    for file in 0..matched.files.len() {
        if matched.files[file].head.tier < LOGS && when.names(matched.files[file].head.date) {
            matched.read(file);
        }
    }
    let pairs = pairs(matched);
    let logs = (0..matched.files.len())
        .filter(|it| matched.files[*it].head.tier < LOGS && matched.is_read(*it))
        .map(|file| Log {
            file,
            date: matched.files[file].head.date,
            from: matched.files[file].from,
            lines: matched.lines(file),
            masks: matched.masks(file),
            around: matched.around(file),
            is_below: is_below[file],
        });
    let logs: Vec<Log<'_>> = logs.collect();
    let speakers: Vec<u32> = asked.iter().map(|it| it.0).collect();
    let scoring = Scoring { idf: &idf, pairs: &pairs, speakers: &speakers, when, passed: &passed };
    let mut found = scoring.score_all(&logs);
    let date = |it: &Scored| matched.files[it.file].head.date;
    if when.first {
        lean_to_the_first(&mut found, &date);
    }
    let place = |it: &Scored| (date(it), it.file, it.row);
    let order =
        |a: &Scored, b: &Scored| b.score.total_cmp(&a.score).then_with(|| place(a).cmp(&place(b)));
    // Before anything is cut: the older line may stand far below.
    lower_repeats(&mut found, &place);
    // Most of what matches a word is never looked at: only the best of it is put in order.
    let best = found.len().min(wanted.unwrap_or(0).max(COMPARED));
    if found.len() > best {
        found.select_nth_unstable_by(best, order);
    }
    if wanted.is_some() {
        found.truncate(best);
    }
    found[..best].sort_by(order);
    found[best..].sort_unstable_by(order);
    alone.sort_by(|a, b| b.score.total_cmp(&a.score).then((a.file, a.row).cmp(&(b.file, b.row))));
    (found, alone)
}

/// Scores items as hits of their own, best first.
pub(super) fn items_alone(matched: &mut Matched<'_>, when: &When) -> Vec<ScoredItem> {
    let idf = Idf::of(matched, 0);
    let mut scored = items(matched, &idf);
    for item in &mut scored {
        item.score += when.gain(matched.item_date(item.file, item.row));
    }
    scored.sort_by(|a, b| b.score.total_cmp(&a.score).then((a.file, a.row).cmp(&(b.file, b.row))));
    scored
}

fn items(matched: &Matched<'_>, idf: &Idf) -> Vec<ScoredItem> {
    let mut items = Vec::new();
    for (file, known) in matched.files.iter().enumerate() {
        if known.head.tier < LOGS || !matched.is_read(file) {
            continue;
        }
        let masks = matched.masks(file);
        for (row, line) in matched.lines(file).iter().enumerate() {
            let score = idf
                .bm25(f64::from(line.length), idf.line_length, |term| bit(masks[row], term))
                * (1.0 + OF_LINE);
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

/// Lets the oldest of what was found gain a little.
fn lean_to_the_first(found: &mut [Scored], date: &impl Fn(&Scored) -> NaiveDate) {
    let Some((from, to)) = found.iter().map(date).min().zip(found.iter().map(date).max()) else {
        return;
    };
    #[expect(clippy::cast_precision_loss, reason = "days of some years")]
    let days = |span: chrono::TimeDelta| span.num_days() as f64;
    let all = days(to - from).max(1.0);
    for scored in found {
        scored.score += FIRST * (1.0 - days(date(scored) - from) / all);
    }
}

/// Lets what says the same as an older line lose a little.
fn lower_repeats<T: Ord>(found: &mut [Scored], place: &impl Fn(&Scored) -> T) {
    let mut first: ByNumber<u32, usize> = ByNumber::default();
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
        found[at].score -= REPEATED;
    }
}

/// How rare each term is, and how long lines are.
struct Idf {
    of: Vec<f64>,
    sum: f64,
    line_length: f64,
    around_length: f64,
}

impl Idf {
    /// Counts in distinct lines: what is copied from day to day is one. `names` count nothing.
    fn of(matched: &Matched<'_>, names: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "counts of lines")]
        let count = |it: u64| it as f64;
        let all = count(matched.distinct);
        let holding = matched.holding();
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
        let logs = || matched.files.iter().map(|it| it.head).filter(|it| it.tier < LOGS);
        let said = count(logs().map(|it| it.said).sum::<u64>().max(1));
        Self {
            sum: of.iter().sum(),
            of,
            line_length: count(logs().map(|it| it.length).sum()) / said,
            around_length: count(logs().map(|it| it.around).sum()) / 10.0 / said,
        }
    }

    /// Returns a score between 0 and about 2; `count` tells how often a term stands there.
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

    /// Returns the share of the question that stands in a text with these terms.
    fn share(&self, mask: u64) -> f64 {
        if self.sum <= 0.0 {
            return 0.0;
        }
        let held = self.of.iter().enumerate().filter(|(term, _)| mask >> term & 1 == 1);
        held.map(|(_, idf)| idf).sum::<f64>() / self.sum
    }
}

/// Returns what lines gain by terms that stand side by side, or nearly so, as they do in the question;
/// by the number of the line among all.
fn pairs(matched: &Matched<'_>) -> ByNumber<usize, f64> {
    let mut gains: ByNumber<usize, f64> = ByNumber::default();
    let pairs = matched.terms.pairs();
    #[expect(clippy::cast_precision_loss, reason = "pairs of a question")]
    let all = pairs.len().max(1) as f64;
    for &(a, b) in &pairs {
        matched.both(a, b, |row, first, second| {
            let any = |steps: &[i64]| {
                first.iter().any(|a| {
                    second.iter().any(|b| steps.contains(&(i64::from(*b) - i64::from(*a))))
                })
            };
            let side_by_side = any(&[1]);
            if side_by_side || any(&[2, -1]) {
                let gain = OF_NEAR_PAIRS + if side_by_side { OF_PAIRS } else { 0.0 };
                *gains.entry(row).or_default() += gain / all;
            }
        });
    }
    gains
}

/// The lines of one log.
struct Log<'a> {
    file: usize,
    date: NaiveDate,
    /// The number of its first line among all.
    from: usize,
    lines: &'a [Line],
    /// Which terms stand in each.
    masks: &'a [u64],
    /// The length of the window around each, in tenths.
    around: &'a [u32],
    /// Whether an item rests on one of them.
    is_below: bool,
}

/// By what lines are scored.
struct Scoring<'a> {
    idf: &'a Idf,
    pairs: &'a ByNumber<usize, f64>,
    speakers: &'a [u32],
    when: &'a When,
    passed: &'a Passed,
}

/// From so many lines on it is worth while to score them side by side, and so many logs at a time.
const SIDE_BY_SIDE: usize = 20_000;
const PART: usize = 128;

impl Scoring<'_> {
    /// Scores the lines of all logs, in their order.
    fn score_all(&self, logs: &[Log<'_>]) -> Vec<Scored> {
        let part = |logs: &[Log<'_>]| {
            let mut found = Vec::new();
            for log in logs {
                self.score(log, &mut found);
            }
            found
        };
        if logs.iter().map(|it| it.lines.len()).sum::<usize>() < SIDE_BY_SIDE {
            return part(logs);
        }
        let parts: Vec<&[Log<'_>]> = logs.chunks(PART).collect();
        parallel::map(&parts, |it| part(it)).into_iter().flatten().collect()
    }

    fn score(&self, log: &Log<'_>, found: &mut Vec<Scored>) {
        let &Log { file, lines, masks, .. } = log;
        let is_named = self.when.names(log.date);
        let sections = Sections::of(lines, masks);
        let base = self.bases(log, &sections);
        let gain = self.when.gain(log.date);
        let from = found.len();
        for (row, line) in lines.iter().enumerate().filter(|(_, it)| it.level == 0) {
            let passed = if log.is_below { self.passed.get(&(log.from + row)) } else { None };
            if base[row] <= 0.0 && !is_named && passed.is_none() {
                continue;
            }
            let before = row
                .checked_sub(1)
                .filter(|it| lines[*it].is_question && sections.of[*it] == sections.of[row]);
            let answers = before
                .map_or(0.0, |it| OF_QUESTION_BEFORE * (base[it] - QUESTION_BEFORE_MIN).max(0.0));
            let asks = if line.is_question { IS_QUESTION } else { 0.0 };
            let time = if self.when.asks && line.tells_time { TELLS_TIME } else { 0.0 };
            let own = base[row] + answers - asks + time;
            let score = passed.map_or(own, |it| own.max(it.0)) + gain;
            let via = passed.map(|it| it.1.clone()).unwrap_or_default();
            let hash = line.hash;
            found.push(Scored { file, row, score, via, hash, by_words: true, is_near: false });
        }
        if is_named && found.len() - from > NAMED_LINES {
            found[from..].sort_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
            for it in &mut found[from + NAMED_LINES..] {
                it.score -= BEYOND_NAMED;
            }
        }
    }

    /// Returns what each line scores by itself and by what stands around it.
    fn bases(&self, log: &Log<'_>, sections: &Sections) -> Vec<f64> {
        let &Log { lines, masks, around, .. } = log;
        let idf = self.idf;
        let of_day = idf.share(sections.day);
        let of_section: Vec<(f64, f64)> =
            sections.all.iter().map(|it| (idf.share(it.heading), idf.share(it.mask))).collect();
        let mut counts = vec![0.0; idf.of.len()];
        // Most lines of a log have nothing to do with a question: these are told at once.
        let mut is_close = vec![false; lines.len()];
        for (row, _) in masks.iter().enumerate().filter(|it| *it.1 != 0) {
            is_close[row.saturating_sub(REACH)..lines.len().min(row + REACH + 1)].fill(true);
        }
        let score = |row: usize| {
            let line = &lines[row];
            let section = sections.of[row];
            let near = || {
                WINDOW.into_iter().filter_map(|(step, weight)| {
                    let near = row.checked_add_signed(step)?;
                    // A heading counts for all that stands below it, not for the first line alone.
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
            let text = of_window + OF_HEADING * heading;
            if text <= 0.0 {
                return 0.0;
            }
            let length = f64::from(line.length);
            let of_line = idf.bm25(length, idf.line_length, |term| bit(masks[row], term));
            let speaks = line.speaker != 0 && self.speakers.contains(&line.speaker);
            let pairs = self.pairs.get(&(log.from + row));
            text + OF_LINE * of_line
                + OF_DAY * of_day
                + OF_SECTION * whole
                + pairs.copied().unwrap_or(0.0)
                + if speaks { OF_SPEAKER } else { 0.0 }
        };
        (0..lines.len()).map(score).collect()
    }
}

/// What stands under one heading.
#[derive(Clone, Copy, Default)]
struct Section {
    /// The terms in the headings above.
    heading: u64,
    /// Those and the terms in its lines.
    mask: u64,
}

struct Sections {
    /// By row.
    of: Vec<usize>,
    all: Vec<Section>,
    /// The terms in the whole file.
    day: u64,
}

impl Sections {
    fn of(lines: &[Line], masks: &[u64]) -> Self {
        let mut sections = Self { of: Vec::new(), all: vec![Section::default()], day: 0 };
        let mut above: Vec<(u8, u64)> = Vec::new();
        for (line, mask) in lines.iter().zip(masks) {
            if line.level > 0 {
                above.retain(|it| it.0 < line.level);
                above.push((line.level, *mask));
                let heading = above.iter().fold(0, |all, it| all | it.1);
                sections.all.push(Section { heading, mask: heading });
            }
            let at = sections.all.len() - 1;
            sections.all[at].mask |= mask;
            sections.of.push(at);
            sections.day |= mask;
        }
        sections
    }
}
