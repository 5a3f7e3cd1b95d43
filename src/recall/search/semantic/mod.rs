//! Semantic search, in addition to words: a server turns each line once, and each query, into a vector.
//! The nearest lines are fused with those whose words match.
//!
//! All vectors are compared by their signs (one bit per number). For ten years of logs that takes some
//! milliseconds without an index. Off unless a server is configured.
//!
//! - [`embed_lines`]: computes the vectors of lines.
//! - [`quantize`]: stores and compares them.

mod embed_lines;
mod quantize;

use std::collections::{BinaryHeap, HashMap};

pub use self::embed_lines::{EmbedError, EmbedOutcome, embed_lines};
use super::{
    Query,
    index::matches::{LOG_TIERS, QueryMatches},
    rank::{ScoredItem, ScoredLine},
    time::expression::TimeExpression,
};
use crate::{
    memory::address::Stem,
    model::embedding::{EmbeddingInput, EmbeddingModel},
    store::{
        db::{
            search_index::CacheDbError,
            vectors::{KEY_BYTES, LineKey, VectorDb, unpack_keys},
        },
        fs::vault::Vault,
    },
};

/// How many of the nearest lines are fused with the word matches.
const MATCHES_MAX: usize = 100;
/// How many of the nearest lines by sign are compared exactly.
const CANDIDATES_MAX: usize = 400;

/// From this many lines on, only lines that are nearer than most match: by this many standard
/// deviations.
const OUTLIER_LINES_MIN: f64 = 100.0;
const OUTLIER_DEVIATIONS: f64 = 2.0;

/// How many lines with the same text match.
const DUPLICATES_MAX: usize = 3;

/// What a named day adds to the cosine of its lines.
const DATE_WEIGHT: f64 = 0.1;

/// Reciprocal rank fusion: a rank scores one over itself, starting at this (Cormack, Clarke and
/// Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
/// 2009).
const RANK_FIRST: f64 = 61.0;

/// The bits of a line's hash that depend on its own words only, as in the index.
const TEXT_HASH_MASK: u64 = 0x00ff_ffff;

fn text_hash(hash: u64) -> u64 {
    hash & TEXT_HASH_MASK
}

/// A line with a similar meaning.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SemanticMatch {
    path: String,
    key: LineKey,
    similarity: f64,
}

/// Returns the lines nearest to a query, the nearest first. An error is a short description, because
/// the search continues with words.
pub(super) fn nearest(
    vault: &Vault,
    query: &Query,
    embedder: &dyn EmbeddingModel,
) -> Result<Vec<SemanticMatch>, String> {
    let path = vault.layout().vectors();
    let db = VectorDb::open_existing(&path, embedder.space_id()).map_err(|it| it.to_string())?;
    let db = db.ok_or("no line has a vector yet; the daemon or `memoird compact` computes them")?;
    let question = vault.rules().mask_secrets(&query.words).into_owned();
    let vectors =
        embedder.embed(&[&question], EmbeddingInput::Query).map_err(|it| it.to_string())?;
    let vector = vectors.first().map(|it| quantize::normalize(it)).unwrap_or_default();
    nearest_to(&db, &vector, &|path| may_match(query, path)).map_err(|it| it.to_string())
}

/// Returns whether a query may match lines of a log.
fn may_match(query: &Query, path: &str) -> bool {
    let name = path.rsplit_once('/').map_or(path, |it| it.1);
    let stem = name.strip_suffix(".md").and_then(|it| it.parse::<Stem>().ok());
    stem.is_some_and(|it| query.includes_day(it.date()))
}

fn nearest_to(
    db: &VectorDb,
    unit: &[f32],
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<SemanticMatch>, CacheDbError> {
    let query_bits = quantize::sign_bits(unit);
    let mut nearest: BinaryHeap<(u32, i64, usize)> = BinaryHeap::new();
    let mut files: HashMap<i64, (String, Vec<u8>)> = HashMap::new();
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    db.for_each_file(|file, path, keys, signs| {
        if signs.len() != keys.len() / KEY_BYTES * query_bits.len() || !is_wanted(path) {
            return;
        }
        let mut is_near = false;
        for (row, signs) in signs.chunks_exact(query_bits.len().max(1)).enumerate() {
            let distance = quantize::hamming_distance(signs, &query_bits);
            let far = f64::from(distance);
            (count, sum, squares) = (count + 1.0, sum + far, squares + far * far);
            if nearest.len() == CANDIDATES_MAX {
                if nearest.peek().is_none_or(|it| it.0 <= distance) {
                    continue;
                }
                nearest.pop();
            }
            nearest.push((distance, file, row));
            is_near = true;
        }
        if is_near {
            files.insert(file, (path.to_owned(), keys.to_owned()));
        }
    })?;
    let mean = sum / f64::max(count, 1.0);
    let spread = (squares / f64::max(count, 1.0) - mean * mean).max(0.0).sqrt();
    let distance_max =
        if count < OUTLIER_LINES_MIN { f64::MAX } else { mean - OUTLIER_DEVIATIONS * spread };
    let mut matches = Vec::new();
    for (distance, file, row) in nearest {
        let Some((path, keys)) = files.get(&file).filter(|_| f64::from(distance) <= distance_max)
        else {
            continue;
        };
        let Some(similarity) = quantize::cosine(&db.code(file, row)?, unit) else { continue };
        let key = keys.get(row * KEY_BYTES..(row + 1) * KEY_BYTES).map(unpack_keys);
        let key = key.and_then(|it| it.first().copied());
        let similarity = f64::from(similarity);
        matches.extend(key.map(|key| SemanticMatch { path: path.clone(), key, similarity }));
    }
    matches.sort_by(|a, b| {
        let by_place = || (&a.path, a.key.number).cmp(&(&b.path, b.key.number));
        b.similarity.total_cmp(&a.similarity).then_with(by_place)
    });
    Ok(matches)
}

/// Merges word matches and semantic matches into one order.
pub(super) fn fuse(
    matched: &mut QueryMatches<'_>,
    (by_words, alone): (Vec<ScoredLine>, &mut [ScoredItem]),
    near: &[SemanticMatch],
    when: &TimeExpression,
) -> Vec<ScoredLine> {
    let near = locate_in_index(matched, near, when);
    for (at, item) in alone.iter_mut().enumerate() {
        item.score = reciprocal_rank(at + by_words.partition_point(|it| it.score > item.score));
    }
    let mut at: HashMap<(usize, usize), usize> = HashMap::new();
    let mut fused = by_words;
    for (rank, scored) in fused.iter_mut().enumerate() {
        at.insert((scored.file, scored.row), rank);
        scored.score = reciprocal_rank(rank);
    }
    for (rank, (file, row)) in near.into_iter().enumerate() {
        let share = matched.lines(file)[row].external_share();
        if let Some(&position) = at.get(&(file, row)) {
            fused[position].score += reciprocal_rank(rank) * share;
            fused[position].is_semantic = true;
        } else {
            let hash = matched.lines(file)[row].hash;
            let score = reciprocal_rank(rank) * share;
            fused.push(ScoredLine {
                file,
                row,
                score,
                via: Vec::new(),
                hash,
                matches_words: false,
                is_semantic: true,
            });
        }
    }
    // At the same score, word matches come first.
    fused.sort_by(|a, b| b.score.total_cmp(&a.score));
    fused
}

/// Returns the score of a rank in one of the two orders, relative to the first.
fn reciprocal_rank(rank: usize) -> f64 {
    let rank = f64::from(u32::try_from(rank).unwrap_or(u32::MAX));
    RANK_FIRST / 2.0 / (RANK_FIRST + rank)
}

/// Finds semantic matches in the index, by file and row, the nearest first. A line that moved since its
/// vector was computed is found by its hash.
fn locate_in_index(
    matched: &mut QueryMatches<'_>,
    near: &[SemanticMatch],
    when: &TimeExpression,
) -> Vec<(usize, usize)> {
    let logs = matched.files.iter().enumerate().filter(|(_, it)| it.head.tier < LOG_TIERS);
    let by_path: HashMap<&str, usize> = logs.map(|(at, it)| (&it.entry.path[..], at)).collect();
    let places: Vec<Option<usize>> =
        near.iter().map(|it| by_path.get(&it.path[..]).copied()).collect();
    let mut located = Vec::new();
    for (near, file) in near.iter().zip(places) {
        let Some(file) = file else { continue };
        matched.load_lines(file);
        let lines = matched.lines(file);
        let own = text_hash(near.key.hash);
        let is_same = |row: &usize| {
            lines.get(*row).is_some_and(|it| it.level == 0 && u64::from(it.hash) == own)
        };
        let at_number = lines.binary_search_by_key(&near.key.number, |it| it.number).ok();
        let row = at_number.filter(is_same).or_else(|| (0..lines.len()).find(is_same));
        let gain = DATE_WEIGHT * when.score_gain(matched.files[file].head.date);
        located.extend(row.map(|row| (near.similarity + gain, file, row, own)));
    }
    located.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut same: HashMap<u64, usize> = HashMap::new();
    located.retain(|it| {
        let before = same.entry(it.3).or_default();
        *before += 1;
        *before <= DUPLICATES_MAX
    });
    located.into_iter().map(|(_, file, row, _)| (file, row)).take(MATCHES_MAX).collect()
}
