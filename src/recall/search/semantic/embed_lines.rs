//! Has vectors made of the lines of logs, the newest first, as long as there is time for it.

use std::collections::{HashMap, HashSet};

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

/// The most texts and bytes of one request. The answer is some twenty bytes a number.
const TEXTS_MAX: usize = 256;
const TEXTS_FIRST: usize = 32;
const REQUEST_BYTES_MAX: usize = 64 * 1024;
const ANSWER_BYTES_MAX: usize = 5 * 1024 * 1024;
const ANSWER_NUMBER_BYTES: usize = 24;

/// What is written at once.
const GROUP_TEXTS: usize = 1_024;

/// The most that is said of a line: models read about five hundred tokens at once, and the beginning says
/// what it is about.
const TEXT_CHARS_MAX: usize = 1_200;

/// A line of fewer words is near to anything.
const WORDS_MIN: usize = 2;

/// What was learned.
#[derive(Debug, Default)]
pub struct EmbedOutcome {
    /// How many lines have vectors now that had none.
    pub lines: usize,
    /// How many logs are still without some.
    pub logs_left: usize,
    /// Why it went no further, where that is not for want of time.
    pub failed: Option<EmbedError>,
}

/// Why nothing can be learned now.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The server makes no vectors now.
    #[error(transparent)]
    Call(#[from] CallError),
    /// They cannot be kept.
    #[error("the vectors in {0}")]
    Index(#[from] CacheDbError),
}

/// A line, as it is told to the server.
struct LineToEmbed {
    key: LineKey,
    text: String,
}

/// A log that is to be learned.
struct LogToEmbed {
    file: VectorFile,
    lines: Vec<LineToEmbed>,
    /// What is known of it from before.
    known: HashMap<u64, PackedVector>,
}

/// Has vectors made of all lines that have none. `inventory` is what was just seen of the root, if
/// anybody looked. Before each request `goes_on` is asked.
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
    let mut learned = EmbedOutcome::default();
    if inventory.is_none() {
        // Where nothing came since all was learned there is nothing to look at.
        let is_done = |it: VectorDb| it.pending_files().ok().flatten() == Some(0);
        let known = VectorDb::open_existing(&path, embedder.space_id()).ok().flatten();
        if known.is_some_and(is_done) {
            return Ok(learned);
        }
    }
    if path.parent().is_none_or(|it| !it.exists()) {
        return Ok(learned);
    }
    let opened = VectorDb::open(&path, embedder.space_id()).and_then(|it| Ok((it.files()?, it)));
    let (known, mut open) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(EmbedOutcome { failed: Some(error.into()), ..learned }),
    };
    let looked;
    let inventory = if let Some(inventory) = inventory {
        inventory
    } else {
        looked = vault.scan_hashes(&vectors::known_files(&known))?.inventory;
        &looked
    };
    let wanted = vector_files(inventory, vault.rules().policy_hash());
    let there: HashSet<&str> = wanted.iter().map(|it| &it.1.path[..]).collect();
    let gone: Vec<String> = known
        .iter()
        .map(|it| &it.path)
        .filter(|it| !there.contains(it.as_str()))
        .cloned()
        .collect();
    let by_path: HashMap<&str, &VectorFile> = known.iter().map(|it| (&it.path[..], it)).collect();
    let mut left: Vec<(&Stem, VectorFile)> = Vec::new();
    for (stem, file) in wanted.into_iter().rev() {
        let is_new = |it: &&VectorFile| {
            !it.is_complete || it.stamp != file.stamp || it.input_hash != file.input_hash
        };
        if by_path.get(&file.path[..]).is_none_or(is_new) {
            left.push((stem, file));
        }
    }
    if !gone.is_empty()
        && let Err(error) = open.replace_files(&gone, &[])
    {
        return Ok(EmbedOutcome { failed: Some(error.into()), logs_left: left.len(), ..learned });
    }
    let mut teacher = BatchEmbedder { embedder, at_once: TEXTS_FIRST, goes_on };
    let mut left = left.into_iter().peekable();
    while left.peek().is_some() && learned.failed.is_none() && (teacher.goes_on)() {
        let mut group = Vec::new();
        let mut texts = 0;
        while texts < GROUP_TEXTS
            && let Some((stem, file)) = left.next()
        {
            let lesson = match prepare_log(vault, &inventory.rules, &open, stem, file)? {
                Ok(lesson) => lesson,
                Err(error) => {
                    learned.failed = Some(error.into());
                    break;
                }
            };
            texts +=
                lesson.lines.iter().filter(|it| !lesson.known.contains_key(&it.key.hash)).count();
            group.push(lesson);
        }
        let (made, error) = teacher.embed_missing(&group);
        learned.failed = learned.failed.or(error.map(Into::into));
        let done = assign_vectors(group, &made, &mut learned);
        if let Err(error) = open.replace_files(&[], &done) {
            learned.failed = Some(error.into());
        }
    }
    learned.logs_left += left.count();
    // Who cannot note it looks once more.
    drop(open.record_pending_files(learned.logs_left as u64));
    Ok(learned)
}

/// Returns the logs that should have vectors, by their days.
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
    // One that went away since the folder was listed has no lines.
    let log = vault.read_log(stem)?;
    let lines = log.map(|it| embeddable_lines(&privacy::sanitize(&it, rules))).unwrap_or_default();
    Ok(open.vectors_of(&file.path).map(|known| LogToEmbed { file, lines, known }))
}

/// Returns what of a log is told to the server: lines that say something, beneath their headings.
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

/// Parts what was made among the logs, and counts it.
fn assign_vectors(
    group: Vec<LogToEmbed>,
    made: &HashMap<u64, PackedVector>,
    learned: &mut EmbedOutcome,
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
                learned.lines += 1;
            }
        }
        file.is_complete = have.len() == all;
        learned.logs_left += usize::from(!file.is_complete);
        done.push((file, have));
    }
    done
}

struct BatchEmbedder<'a> {
    embedder: &'a dyn EmbeddingModel,
    /// How many texts go into a request.
    at_once: usize,
    goes_on: &'a mut dyn FnMut() -> bool,
}

impl BatchEmbedder<'_> {
    /// Has vectors made of what no log of a group knows yet, by their hashes: as many as there is time
    /// for.
    fn embed_missing(
        &mut self,
        group: &[LogToEmbed],
    ) -> (HashMap<u64, PackedVector>, Option<CallError>) {
        let mut asked: HashSet<u64> = HashSet::new();
        let mut texts: Vec<(u64, &str)> = Vec::new();
        for lesson in group {
            for line in &lesson.lines {
                let hash = line.key.hash;
                if !lesson.known.contains_key(&hash) && asked.insert(hash) {
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
