//! Computes the vectors of log lines, the newest first, as long as there is time.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use super::quantize;
use crate::{
    memory::{address::Stem, hash::ContentHash, markdown::LineKind},
    model::{
        CallError,
        embedding::{EmbeddingInput, EmbeddingModel},
    },
    privacy::{self, PrivacyRules, SanitizedLog},
    store::{
        db::{
            search_index::CacheDbError,
            vectors::{self, LineKey, PackedVector, VectorDb, VectorFile},
        },
        fs::{
            inventory::{Inventory, LogFile},
            vault::{Vault, VaultError},
        },
    },
};

/// The most texts and bytes of one request. A response has some twenty bytes per number.
const TEXTS_MAX: usize = 256;
const TEXTS_FIRST: usize = 32;
const REQUEST_BYTES_MAX: usize = 64 * 1024;
const ANSWER_BYTES_MAX: usize = 5 * 1024 * 1024;
const ANSWER_NUMBER_BYTES: usize = 24;

/// How many texts are written to the database at once.
const GROUP_TEXTS: usize = 1_024;

/// The longest text of a line. Models read about five hundred tokens, and the beginning says what a line is
/// about.
const TEXT_CHARS_MAX: usize = 1_200;

/// A line with fewer words is similar to anything.
const WORDS_MIN: usize = 2;

/// What [`embed_lines`] did.
#[derive(Debug, Default)]
pub struct EmbedOutcome {
    /// How many lines got vectors.
    pub lines: usize,
    /// How many logs still lack vectors.
    pub logs_left: usize,
    /// Why it stopped, unless time ran out.
    pub failed: Option<EmbedError>,
}

/// Why no vectors can be computed now.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The server did not answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// They cannot be stored.
    #[error("cannot store vectors: {0}")]
    Index(#[from] CacheDbError),
}

/// A line, as it is sent to the server.
struct LineToEmbed {
    key: LineKey,
    text: String,
}

/// A log that lacks vectors.
struct LogToEmbed {
    file: VectorFile,
    lines: Vec<LineToEmbed>,
    /// Its vectors from earlier calls, by text hash.
    known: HashMap<u64, PackedVector>,
}

/// Computes the vectors of all lines that have none, the newest first. `inventory` is a scan of the root, if
/// there is a recent one. `goes_on` is asked before each request.
///
/// # Errors
///
/// Returns why a log could not be read.
pub fn embed_lines(
    vault: &Vault,
    inventory: Option<&Inventory>,
    embedder: &dyn EmbeddingModel,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<EmbedOutcome, VaultError> {
    let path = vault.layout().vectors();
    let mut outcome = EmbedOutcome::default();
    if inventory.is_none() && is_complete(&path, embedder.space_id()) {
        return Ok(outcome);
    }
    if path.parent().is_none_or(|it| !it.exists()) {
        return Ok(outcome);
    }
    let opened = VectorDb::open(&path, embedder.space_id()).and_then(|it| Ok((it.files()?, it)));
    let (known, mut db) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(EmbedOutcome { failed: Some(error.into()), ..outcome }),
    };
    let scanned;
    let inventory = if let Some(inventory) = inventory {
        inventory
    } else {
        scanned = vault.scan_hashes(&vectors::known_files(&known))?.inventory;
        &scanned
    };
    let files = vector_files(inventory, vault.rules().policy_hash());
    let removed = removed_files(&known, &files);
    let pending = pending_files(&known, files);
    if !removed.is_empty()
        && let Err(error) = db.replace_files(&removed, &[])
    {
        let (failed, logs_left) = (Some(error.into()), pending.len());
        return Ok(EmbedOutcome { logs_left, failed, ..outcome });
    }
    let mut batches = BatchEmbedder { embedder, at_once: TEXTS_FIRST, goes_on };
    let mut pending = pending.into_iter().peekable();
    while pending.peek().is_some() && outcome.failed.is_none() && (batches.goes_on)() {
        let mut group = Vec::new();
        let mut texts = 0;
        while texts < GROUP_TEXTS
            && let Some((stem, file)) = pending.next()
        {
            let log = match prepare_log(vault, &inventory.rules, &db, stem, file)? {
                Ok(log) => log,
                Err(error) => {
                    outcome.failed = Some(error.into());
                    break;
                }
            };
            texts += log.lines.iter().filter(|it| !log.known.contains_key(&it.key.hash)).count();
            group.push(log);
        }
        let (vectors, error) = batches.embed_missing(&group);
        outcome.failed = outcome.failed.or(error.map(Into::into));
        let done = assign_vectors(group, &vectors, &mut outcome);
        if let Err(error) = db.replace_files(&[], &done) {
            outcome.failed = Some(error.into());
        }
    }
    outcome.logs_left += pending.count();
    // If the number cannot be stored, the next call scans once more.
    drop(db.record_pending_files(outcome.logs_left as u64));
    Ok(outcome)
}

/// Returns whether all lines had vectors at the end of the last call.
fn is_complete(path: &Path, space_id: ContentHash) -> bool {
    let db = VectorDb::open_existing(path, space_id).ok().flatten();
    db.is_some_and(|it| it.pending_files().ok().flatten() == Some(0))
}

/// Returns the paths of logs that have vectors and no longer exist.
fn removed_files(known: &[VectorFile], files: &[(&Stem, VectorFile)]) -> Vec<String> {
    let existing: HashSet<&str> = files.iter().map(|it| &it.1.path[..]).collect();
    let paths = known.iter().map(|it| &it.path);
    paths.filter(|it| !existing.contains(it.as_str())).cloned().collect()
}

/// Returns the logs whose vectors are missing, incomplete, or out of date, the newest first.
fn pending_files<'a>(
    known: &[VectorFile],
    files: Vec<(&'a Stem, VectorFile)>,
) -> Vec<(&'a Stem, VectorFile)> {
    let by_path: HashMap<&str, &VectorFile> = known.iter().map(|it| (&it.path[..], it)).collect();
    let is_pending = |file: &VectorFile| {
        by_path.get(&file.path[..]).is_none_or(|it| {
            !it.is_complete || it.stamp != file.stamp || it.input_hash != file.input_hash
        })
    };
    files.into_iter().rev().filter(|it| is_pending(&it.1)).collect()
}

/// Returns all logs, with the stamps that their vectors should have, by day.
fn vector_files(inventory: &Inventory, policy: ContentHash) -> Vec<(&Stem, VectorFile)> {
    let file = |log: &LogFile| VectorFile {
        path: log.path.clone(),
        stamp: log.stamp,
        hash: log.hash,
        input_hash: ContentHash::of(format!("{:?} {policy:?}", log.input_hash)),
        is_complete: false,
    };
    inventory.logs.iter().map(|(stem, log)| (stem, file(log))).collect()
}

fn prepare_log(
    vault: &Vault,
    rules: &PrivacyRules,
    open: &VectorDb,
    stem: &Stem,
    file: VectorFile,
) -> Result<Result<LogToEmbed, CacheDbError>, VaultError> {
    // A log that was removed since the scan has no lines.
    let log = vault.read_log(stem)?;
    let lines = log.map(|it| embeddable_lines(&privacy::sanitize(&it, rules))).unwrap_or_default();
    Ok(open.vectors_of(&file.path).map(|known| LogToEmbed { file, lines, known }))
}

/// Returns the texts of a log to be sent: its lines, each after the headings above it.
fn embeddable_lines(log: &SanitizedLog) -> Vec<LineToEmbed> {
    let mut above: Vec<(u8, String)> = Vec::new();
    let mut lines = Vec::new();
    for line in log.lines().iter().filter(|it| it.is_content() && !it.is_quarantined()) {
        let words = line.words();
        if let LineKind::Heading { level, .. } = line.kind() {
            above.retain(|it| it.0 < level);
            above.push((level, words.trim().to_owned()));
            continue;
        }
        if words.split_whitespace().nth(WORDS_MIN - 1).is_none() {
            continue;
        }
        let mut text: String = above.iter().flat_map(|it| [&it.1[..], ": "]).collect();
        text.push_str(words.trim());
        let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
        let own = super::text_hash(ContentHash::of(words).prefix64());
        let hash = ContentHash::of(&text).prefix64() & !super::TEXT_HASH_MASK | own;
        lines.push(LineToEmbed { key: LineKey { number: line.number(), hash }, text });
    }
    lines
}

/// Assigns vectors to the lines of a group, and counts them.
fn assign_vectors(
    group: Vec<LogToEmbed>,
    made: &HashMap<u64, PackedVector>,
    outcome: &mut EmbedOutcome,
) -> Vec<(VectorFile, Vec<(LineKey, PackedVector)>)> {
    let mut done = Vec::new();
    for LogToEmbed { mut file, lines, known } in group {
        let all = lines.len();
        let mut have = Vec::with_capacity(all);
        for LineToEmbed { key, .. } in lines {
            if let Some(packed) = known.get(&key.hash) {
                have.push((key, packed.clone()));
            } else if let Some(packed) = made.get(&key.hash) {
                have.push((key, packed.clone()));
                outcome.lines += 1;
            }
        }
        file.is_complete = have.len() == all;
        outcome.logs_left += usize::from(!file.is_complete);
        done.push((file, have));
    }
    done
}

struct BatchEmbedder<'a> {
    embedder: &'a dyn EmbeddingModel,
    /// How many texts the next request contains.
    at_once: usize,
    goes_on: &'a mut dyn FnMut() -> bool,
}

impl BatchEmbedder<'_> {
    /// Computes the vectors that a group lacks, by text hash, as many as there is time for.
    fn embed_missing(
        &mut self,
        group: &[LogToEmbed],
    ) -> (HashMap<u64, PackedVector>, Option<CallError>) {
        let mut requested: HashSet<u64> = HashSet::new();
        let mut texts: Vec<(u64, &str)> = Vec::new();
        for lesson in group {
            for line in &lesson.lines {
                let hash = line.key.hash;
                if !lesson.known.contains_key(&hash) && requested.insert(hash) {
                    texts.push((hash, &line.text));
                }
            }
        }
        let mut made = HashMap::new();
        let mut rest = &texts[..];
        while !rest.is_empty() && (self.goes_on)() {
            let mut bytes = 0;
            let fits = rest.iter().take(self.at_once).take_while(|it| {
                bytes += it.1.len();
                bytes <= REQUEST_BYTES_MAX
            });
            let (now, later) = rest.split_at(fits.count().max(1));
            let texts: Vec<&str> = now.iter().map(|it| it.1).collect();
            let vectors = match self.embedder.embed(&texts, EmbeddingInput::Line) {
                Ok(vectors) => vectors,
                Err(error) => return (made, Some(error)),
            };
            let length = vectors.first().map_or(1, Vec::len).max(1);
            self.at_once = (ANSWER_BYTES_MAX / (length * ANSWER_NUMBER_BYTES)).clamp(8, TEXTS_MAX);
            made.extend(now.iter().zip(&vectors).map(|(it, of)| (it.0, quantize::quantize(of))));
            rest = later;
        }
        (made, None)
    }
}
