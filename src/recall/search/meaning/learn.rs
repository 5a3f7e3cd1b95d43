//! Has vectors made of the lines of logs, the newest first, as long as there is time for it.

use std::collections::{HashMap, HashSet};

use super::vector;
use crate::{
    memory::{address::Stem, hash::ContentHash, markdown::LineKind},
    model::{
        CallError,
        embedding::{Embed, Side},
    },
    privacy::{self, Rules, ServedLog},
    store::{
        inventory::{Inventory, LogFile},
        postings::PostingsError,
        vault::{Vault, VaultError},
        vectors::{self, LineKey, Packed, VectorFile, Vectors},
    },
};

/// The most texts and bytes of one request. The answer is some twenty bytes a number.
const TEXTS_MAX: usize = 256;
const TEXTS_FIRST: usize = 32;
const REQUEST_BYTES_MAX: usize = 64 * 1024;
const ANSWER_BYTES_MAX: usize = 5 * 1024 * 1024;
const NUMBER_BYTES: usize = 24;

/// What is written at once.
const GROUP_TEXTS: usize = 1_024;

/// The most that is said of a line: models read about five hundred tokens at once, and the beginning says
/// what it is about.
const TEXT_CHARS_MAX: usize = 1_200;

/// A line of fewer words is near to anything.
const WORDS_MIN: usize = 2;

/// What was learned.
#[derive(Debug, Default)]
pub struct Learned {
    /// How many lines have vectors now that had none.
    pub lines: usize,
    /// How many logs are still without some.
    pub left: usize,
    /// Why it went no further, where that is not for want of time.
    pub failed: Option<LearnError>,
}

/// Why nothing can be learned now.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// The server makes no vectors now.
    #[error(transparent)]
    Call(#[from] CallError),
    /// They cannot be kept.
    #[error("the vectors in {0}")]
    Index(#[from] PostingsError),
}

/// A line, as it is told to the server.
struct LineText {
    key: LineKey,
    text: String,
}

/// A log that is to be learned.
struct Lesson {
    file: VectorFile,
    lines: Vec<LineText>,
    /// What is known of it from before.
    known: HashMap<u64, Packed>,
}

/// Has vectors made of all lines that have none. `inventory` is what was just seen of the root, if
/// anybody looked. Before each request `goes_on` is asked.
///
/// # Errors
///
/// Returns why a log could not be read.
pub fn learn(
    vault: &Vault,
    inventory: Option<&Inventory>,
    embedder: &dyn Embed,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Learned, VaultError> {
    let path = vault.layout().vectors();
    let mut learned = Learned::default();
    if inventory.is_none() {
        // Where nothing came since all was learned there is nothing to look at.
        let is_done = |it: Vectors| it.left().ok().flatten() == Some(0);
        let known = Vectors::existing(&path, embedder.view()).ok().flatten();
        if known.is_some_and(is_done) {
            return Ok(learned);
        }
    }
    if path.parent().is_none_or(|it| !it.exists()) {
        return Ok(learned);
    }
    let opened = Vectors::open(&path, embedder.view()).and_then(|it| Ok((it.files()?, it)));
    let (known, mut open) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(Learned { failed: Some(error.into()), ..learned }),
    };
    let looked;
    let inventory = if let Some(inventory) = inventory {
        inventory
    } else {
        looked = vault.scan_names(&vectors::seen(&known))?.inventory;
        &looked
    };
    let wanted = wanted(inventory, vault.rules().policy_hash());
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
        let is_new =
            |it: &&VectorFile| !it.is_whole || it.stamp != file.stamp || it.input != file.input;
        if by_path.get(&file.path[..]).is_none_or(is_new) {
            left.push((stem, file));
        }
    }
    if !gone.is_empty()
        && let Err(error) = open.change(&gone, &[])
    {
        return Ok(Learned { failed: Some(error.into()), left: left.len(), ..learned });
    }
    let mut teacher = Teacher { embedder, at_once: TEXTS_FIRST, goes_on };
    let mut left = left.into_iter().peekable();
    while left.peek().is_some() && learned.failed.is_none() && (teacher.goes_on)() {
        let mut group = Vec::new();
        let mut texts = 0;
        while texts < GROUP_TEXTS
            && let Some((stem, file)) = left.next()
        {
            let lesson = match lesson(vault, &inventory.rules, &open, stem, file)? {
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
        let (made, error) = teacher.teach(&group);
        learned.failed = learned.failed.or(error.map(Into::into));
        let done = taught(group, &made, &mut learned);
        if let Err(error) = open.change(&[], &done) {
            learned.failed = Some(error.into());
        }
    }
    learned.left += left.count();
    // Who cannot note it looks once more.
    drop(open.note_left(learned.left as u64));
    Ok(learned)
}

/// Returns the logs that should have vectors, by their days.
fn wanted(inventory: &Inventory, policy: ContentHash) -> Vec<(&Stem, VectorFile)> {
    let file = |log: &LogFile| VectorFile {
        path: log.path.clone(),
        stamp: log.stamp,
        hash: log.hash,
        input: ContentHash::of(format!("{:?} {policy:?}", log.input)),
        is_whole: false,
    };
    inventory.logs.iter().map(|(stem, log)| (stem, file(log))).collect()
}

fn lesson(
    vault: &Vault,
    rules: &Rules,
    open: &Vectors,
    stem: &Stem,
    file: VectorFile,
) -> Result<Result<Lesson, PostingsError>, VaultError> {
    // One that went away since the folder was listed has no lines.
    let log = vault.read_log(stem)?;
    let lines = log.map(|it| lines_of(&privacy::serve(&it, rules))).unwrap_or_default();
    Ok(open.of_file(&file.path).map(|known| Lesson { file, lines, known }))
}

/// Returns what of a log is told to the server: lines that say something, beneath their headings.
fn lines_of(log: &ServedLog) -> Vec<LineText> {
    let mut above: Vec<(u8, String)> = Vec::new();
    let mut lines = Vec::new();
    for line in log.lines().iter().filter(|it| it.is_content() && !it.is_held()) {
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
        let own = super::own_hash(ContentHash::of(words).prefix64());
        let hash = ContentHash::of(&text).prefix64() & !super::OWN_MASK | own;
        lines.push(LineText { key: LineKey { number: line.number(), hash }, text });
    }
    lines
}

/// Parts what was made among the logs, and counts it.
fn taught(
    group: Vec<Lesson>,
    made: &HashMap<u64, Packed>,
    learned: &mut Learned,
) -> Vec<(VectorFile, Vec<(LineKey, Packed)>)> {
    let mut done = Vec::new();
    for Lesson { mut file, lines, known } in group {
        let all = lines.len();
        let mut have = Vec::with_capacity(all);
        for LineText { key, .. } in lines {
            if let Some(packed) = known.get(&key.hash) {
                have.push((key, packed.clone()));
            } else if let Some(packed) = made.get(&key.hash) {
                have.push((key, packed.clone()));
                learned.lines += 1;
            }
        }
        file.is_whole = have.len() == all;
        learned.left += usize::from(!file.is_whole);
        done.push((file, have));
    }
    done
}

struct Teacher<'a> {
    embedder: &'a dyn Embed,
    /// How many texts go into a request.
    at_once: usize,
    goes_on: &'a mut dyn FnMut() -> bool,
}

impl Teacher<'_> {
    /// Has vectors made of what no log of a group knows yet, by their hashes: as many as there is time
    /// for.
    fn teach(&mut self, group: &[Lesson]) -> (HashMap<u64, Packed>, Option<CallError>) {
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
            let vectors = match self.embedder.embed(&texts, Side::Line) {
                Ok(vectors) => vectors,
                Err(error) => return (made, Some(error)),
            };
            let length = vectors.first().map_or(1, Vec::len).max(1);
            self.at_once = (ANSWER_BYTES_MAX / (length * NUMBER_BYTES)).clamp(8, TEXTS_MAX);
            made.extend(now.iter().zip(&vectors).map(|(it, of)| (it.0, vector::packed(of))));
            rest = later;
        }
        (made, None)
    }
}
