//! The score of a line: how well it answers a question, with what stands around it, its day, and what was
//! made of it.
//!
//! BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) with term counts of 0 or 1
//! and idf over distinct lines, divided by the question's sum of idf, so that what is added to it means the
//! same for all questions. An item passes its score down to the lines that it rests on and is no hit itself:
//! what it shortened stands there whole. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    corpus::{Corpus, Row},
    when::When,
    words::{Role, Terms},
};

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// How much the lines around a line count, from two before it to two after it.
const WINDOW: [(isize, f64); 5] = [(-2, 0.3), (-1, 0.6), (0, 1.0), (1, 0.4), (2, 0.2)];

const OF_LINE: f64 = 0.35;
const OF_HEADING: f64 = 0.1;
const OF_DAY: f64 = 0.15;
const OF_PAIRS: f64 = 0.2;
const OF_SPEAKER: f64 = 0.25;
const OF_QUESTION_BEFORE: f64 = 0.45;
const IS_QUESTION: f64 = 0.1;
const TELLS_TIME: f64 = 0.08;
const FIRST: f64 = 0.1;
const LATEST: f64 = 0.05;

/// What a line gets of the score of an item above it.
const PASSED_DOWN: f64 = 0.9;

/// A line, what it scored, and the items above it that brought it.
pub(super) struct Scored {
    pub(super) row: usize,
    pub(super) score: f64,
    pub(super) via: Vec<usize>,
}

/// An item whose lines are gone, or that has none.
pub(super) struct ScoredItem {
    pub(super) item: usize,
    pub(super) score: f64,
}

/// Returns the pairs of terms that stand side by side in a question.
pub(super) fn pairs_of(question: &str, terms: &mut Terms) -> Vec<(usize, usize)> {
    let sequence = terms.sequence(question);
    let mut pairs = Vec::new();
    let mut before = None;
    for role in sequence {
        let Role::Term(at) = role else { continue };
        pairs.extend(before.map(|it| (it, at)));
        before = Some(at);
    }
    pairs
}

/// Scores what could be an answer, best first. `question` is in lower case.
pub(super) fn rank(
    corpus: &Corpus,
    terms: &mut Terms,
    question: &str,
    pairs: usize,
    when: &When,
    with_items: bool,
) -> (Vec<Scored>, Vec<ScoredItem>) {
    let speakers = corpus.speakers();
    let asked: HashSet<&String> = speakers
        .keys()
        .filter(|name| {
            let first = name.split(' ').next().unwrap_or(name);
            question.split(|c: char| !c.is_alphanumeric()).any(|it| it == first)
        })
        .collect();
    // Who is asked about says it; that the name stands in it tells nothing more.
    let names = asked.iter().fold(0, |mask, it| mask | terms.mask(it));
    let idf = Idf::of(corpus, terms.len(), names);
    let scores = Scores::of(corpus, &idf, pairs, &asked);
    let mut found: BTreeMap<usize, (f64, Vec<usize>)> = BTreeMap::new();
    for at in 0..corpus.rows.len() {
        let row = &corpus.rows[at];
        let is_named = when.names(corpus.docs[row.doc].date);
        let base = scores.base[at];
        if base > 0.0 || is_named {
            found.insert(at, (base + scores.around(corpus, at, when), Vec::new()));
        }
    }
    let mut alone = Vec::new();
    if with_items {
        for (at, item) in corpus.items.iter().enumerate() {
            let score = idf.bm25(item.length, scores.line_length, |term| {
                f64::from(u8::from(item.mask >> term & 1 == 1))
            }) * (1.0 + OF_LINE);
            if score <= 0.0 {
                continue;
            }
            let mut any = false;
            for row in item.citation.iter().flat_map(|it| corpus.beneath(it)) {
                any = true;
                let (own, via) = found.entry(row).or_default();
                *own = own.max(PASSED_DOWN * score);
                via.push(at);
            }
            if !any {
                alone.push(ScoredItem { item: at, score: score + when.gain(item.date) });
            }
        }
    }
    let mut found: Vec<Scored> = found
        .into_iter()
        .map(|(row, (base, via))| {
            let date = corpus.docs[corpus.rows[row].doc].date;
            Scored { row, score: base + when.gain(date), via }
        })
        .collect();
    lean_to_an_end(corpus, &mut found, when);
    let place = |it: &Scored| (corpus.rows[it.row].doc, corpus.rows[it.row].number);
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| place(a).cmp(&place(b))));
    alone.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.item.cmp(&b.item)));
    (found, alone)
}

/// Scores items as hits of their own, best first.
pub(super) fn items(corpus: &Corpus, terms: usize, when: &When) -> Vec<ScoredItem> {
    let idf = Idf::of(corpus, terms, 0);
    #[expect(clippy::cast_precision_loss, reason = "counts of items")]
    let count = corpus.items.len().max(1) as f64;
    let average = corpus.items.iter().map(|it| it.length).sum::<f64>() / count;
    let scored = corpus.items.iter().enumerate().map(|(item, it)| {
        let bit = |term: usize| f64::from(u8::from(it.mask >> term & 1 == 1));
        (item, idf.bm25(it.length, average, bit) * (1.0 + OF_LINE), it.date)
    });
    let mut scored: Vec<ScoredItem> = scored
        .filter(|it| it.1 > 0.0)
        .map(|(item, score, date)| ScoredItem { item, score: score + when.gain(date) })
        .collect();
    scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.item.cmp(&b.item)));
    scored
}

/// Lets the oldest or the newest of what was found gain a little, where they are asked for.
fn lean_to_an_end(corpus: &Corpus, found: &mut [Scored], when: &When) {
    if !(when.first || when.latest) {
        return;
    }
    let date = |it: &Scored| corpus.docs[corpus.rows[it.row].doc].date;
    let Some((from, to)) = found.iter().map(&date).min().zip(found.iter().map(&date).max()) else {
        return;
    };
    #[expect(clippy::cast_precision_loss, reason = "days of some years")]
    let days = |span: chrono::TimeDelta| span.num_days() as f64;
    let all = days(to - from).max(1.0);
    for scored in found {
        let late = days(date(scored) - from) / all;
        scored.score += if when.first { FIRST * (1.0 - late) } else { LATEST * late };
    }
}

/// How rare each term is.
struct Idf {
    of: Vec<f64>,
    sum: f64,
}

impl Idf {
    /// Counts in distinct lines: what is copied from day to day is one. `names` count nothing.
    fn of(corpus: &Corpus, terms: usize, names: u64) -> Self {
        let mut seen: HashSet<u64> = HashSet::new();
        let mut holding = vec![0_u32; terms];
        for row in &corpus.rows {
            if !seen.insert(row.hash) {
                continue;
            }
            for (term, count) in holding.iter_mut().enumerate() {
                *count += u32::from(row.mask >> term & 1 == 1);
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of lines")]
        let all = seen.len() as f64;
        let of: Vec<f64> = holding
            .iter()
            .enumerate()
            .map(|(term, &count)| {
                let (count, is_name) = (f64::from(count), names >> term & 1 == 1);
                let in_items = corpus.items.iter().any(|it| it.mask >> term & 1 == 1);
                let known = count > 0.0 || in_items;
                if is_name || !known {
                    0.0
                } else {
                    (1.0 + (all - count + 0.5) / (count + 0.5)).ln()
                }
            })
            .collect();
        let sum = of.iter().sum();
        Self { of, sum }
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

/// What each line scores by itself.
struct Scores {
    base: Vec<f64>,
    line_length: f64,
}

impl Scores {
    fn of(corpus: &Corpus, idf: &Idf, pairs: usize, asked: &HashSet<&String>) -> Self {
        let rows = &corpus.rows;
        #[expect(clippy::cast_precision_loss, reason = "counts of lines")]
        let count = rows.len().max(1) as f64;
        let line_length = rows.iter().map(|it| it.length).sum::<f64>() / count;
        let window_length = (0..rows.len())
            .map(|at| window(rows, at).map(|(row, weight)| weight * row.length).sum::<f64>());
        let window_length: Vec<f64> = window_length.collect();
        let average = window_length.iter().sum::<f64>() / count;
        // Lines of the same words and neighbours are many, and scored once.
        let mut known: HashMap<u64, f64> = HashMap::new();
        let score = |at: usize| {
            let row = &rows[at];
            let around = window(rows, at).fold(0, |mask, (it, _)| mask | it.mask);
            if around == 0 && row.heading == 0 {
                return 0.0;
            }
            let mut counts = vec![0.0; idf.of.len()];
            for (it, weight) in window(rows, at) {
                for (term, count) in counts.iter_mut().enumerate() {
                    *count += if it.mask >> term & 1 == 1 { weight } else { 0.0 };
                }
            }
            let of_window = idf.bm25(window_length[at], average, |term| counts[term]);
            let bit = |term: usize| f64::from(u8::from(row.mask >> term & 1 == 1));
            let key = row.hash ^ row.heading;
            let of_line =
                *known.entry(key).or_insert_with(|| idf.bm25(row.length, line_length, bit));
            #[expect(clippy::cast_precision_loss, reason = "pairs of a question")]
            let of_pairs = f64::from(row.pairs).min(pairs as f64) / pairs.max(1) as f64;
            let speaks = row.speaker.as_ref().is_some_and(|it| asked.contains(&it.to_lowercase()));
            let text = of_window + OF_LINE * of_line + OF_HEADING * idf.share(row.heading);
            if text <= 0.0 {
                return 0.0;
            }
            text + OF_DAY * idf.share(corpus.docs[row.doc].mask)
                + OF_PAIRS * of_pairs
                + if speaks { OF_SPEAKER } else { 0.0 }
        };
        let base = (0..rows.len()).map(score).collect();
        Self { base, line_length }
    }

    /// Returns what a line gains by the line before it and by what it is.
    fn around(&self, corpus: &Corpus, at: usize, when: &When) -> f64 {
        let row = &corpus.rows[at];
        let before = at.checked_sub(1).filter(|it| {
            let before = &corpus.rows[*it];
            before.doc == row.doc && before.section == row.section && before.is_question
        });
        let answers = before.map_or(0.0, |it| OF_QUESTION_BEFORE * self.base[it]);
        let asks = if row.is_question { IS_QUESTION } else { 0.0 };
        let time = if when.asks && row.tells_time { TELLS_TIME } else { 0.0 };
        answers - asks + time
    }
}

/// Returns a line and those around it in its section, each with its weight.
fn window(rows: &[Row], at: usize) -> impl Iterator<Item = (&Row, f64)> {
    WINDOW.into_iter().filter_map(move |(step, weight)| {
        let row = rows.get(at.checked_add_signed(step)?)?;
        let same = row.doc == rows[at].doc && row.section == rows[at].section;
        same.then_some((row, weight))
    })
}
