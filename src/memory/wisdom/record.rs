//! What memoird records about `WISDOM.md` in the hidden file beside it.
//!
//! ```json
//! {
//!   "body": "9c1f2ab04d7e6f58",
//!   "distilled": [
//!     "2026-03"
//!   ],
//!   "entries": [
//!     {
//!       "figures": "af1349b9",
//!       "first": "2026-04-02",
//!       "hash": "a1b2c3d4",
//!       "id": "w-3fa91c22",
//!       "last": "2026-05-03",
//!       "likeness": "07be3fa9a1b2c3d4",
//!       "lines": "3fa9,07be",
//!       "sources": "2026-04-02:4,9",
//!       "title": "5e6f7081"
//!     }
//!   ]
//! }
//! ```
//!
//! One key per line, sorted, so that a version control system merges it. An entry of the visible file is found
//! by the hash of its words. One that a person changed keeps its record by its title, or by its figures and
//! the likeness of its words, so that its sources stay known; it is theirs all the same, because its words no longer have the hash.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{BULLET, WisdomEntry, WisdomEntryMeta, WisdomFile, entry_title, words_hash};
use crate::memory::hash::ContentHash;

/// The most bits in which the likeness of changed words may differ. That of other words differs in 32 of 64
/// on average, in so few once in 300 times.
const CHANGED_BITS_MAX: u32 = 20;

/// The content of the hidden file.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct WisdomRecord {
    /// First 16 hex digits of the hash of the visible file.
    body: String,
    /// The months that were distilled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) distilled: Vec<String>,
    /// The entries of ours, and those that were, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<EntryRecord>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct EntryRecord {
    /// Hash of the words that a person put in the place of ours.
    #[serde(skip_serializing_if = "String::is_empty")]
    edited: String,
    /// Hash of the words with a digit: other figures are another statement, however alike.
    figures: String,
    first: String,
    hash: String,
    id: String,
    last: String,
    likeness: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    lines: String,
    sources: String,
    /// Hash of the title; empty for a bullet.
    #[serde(skip_serializing_if = "String::is_empty")]
    title: String,
}

/// An entry in the visible text that has a record.
pub(super) struct ClaimedEntry {
    pub(super) meta: WisdomEntryMeta,
    /// The number of its lines, without blank lines at its end.
    pub(super) lines: usize,
}

impl WisdomRecord {
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns what is to be recorded about a file; `None` if nothing in it is or was ours.
    pub(super) fn of(file: &WisdomFile, visible: &str) -> Option<Self> {
        let entries: Vec<EntryRecord> = file.entries().filter_map(EntryRecord::of).collect();
        let distilled: Vec<String> = file.distilled.iter().map(ToString::to_string).collect();
        let body = ContentHash::of(visible).hex16();
        (!entries.is_empty() || !distilled.is_empty()).then_some(Self { body, distilled, entries })
    }

    pub(super) fn print(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Finds the recorded entries in the visible text, by the positions of their first lines.
    pub(super) fn claim(&self, visible: &str) -> BTreeMap<usize, ClaimedEntry> {
        let candidates = if self.entries.is_empty() { Vec::new() } else { candidates(visible) };
        let mut left: Vec<(&EntryRecord, WisdomEntryMeta)> =
            self.entries.iter().filter_map(|it| Some((it, it.meta()?))).collect();
        let mut claimed = BTreeMap::new();
        let mut changed = Vec::new();
        for candidate in candidates {
            let found = candidate.extents.iter().find_map(|(lines, hash)| {
                Some((left.iter().position(|it| it.0.hash_now() == hash)?, *lines))
            });
            match found {
                Some((at, lines)) => {
                    let meta = left.remove(at).1;
                    claimed.insert(candidate.at, ClaimedEntry { meta, lines });
                }
                None => changed.push(candidate),
            }
        }
        // The most alike first.
        let mut pairs: Vec<(u32, usize, usize)> = Vec::new();
        for (c, candidate) in changed.iter().enumerate() {
            for (r, (record, _)) in left.iter().enumerate() {
                let has_title = !record.title.is_empty() && record.title == candidate.title;
                let distance = if has_title { Some(0) } else { record.distance(candidate) };
                pairs.extend(distance.filter(|it| *it <= CHANGED_BITS_MAX).map(|it| (it, c, r)));
            }
        }
        pairs.sort_unstable();
        let mut taken = vec![false; left.len()];
        for (_, c, r) in pairs {
            let candidate = &changed[c];
            if !taken[r] && !claimed.contains_key(&candidate.at) {
                taken[r] = true;
                let lines = candidate.extents.first().map_or(1, |it| it.0);
                let meta = left[r].1.clone();
                claimed.insert(candidate.at, ClaimedEntry { meta, lines });
            }
        }
        claimed
    }
}

impl EntryRecord {
    fn of(entry: &WisdomEntry) -> Option<Self> {
        let meta = entry.meta.as_ref()?;
        let now = words_hash(&entry.title, &entry.text);
        Some(Self {
            figures: figures(&entry.title, &entry.text),
            edited: if now == meta.hash { String::new() } else { now },
            first: meta.first_seen.to_string(),
            hash: meta.hash.clone(),
            id: meta.id.clone(),
            last: meta.last_reinforced.to_string(),
            likeness: format!("{:016x}", likeness(&entry.title, &entry.text)),
            lines: meta.line_list(),
            sources: meta.sources.to_string(),
            title: title_hash(&entry.title),
        })
    }

    fn meta(&self) -> Option<WisdomEntryMeta> {
        let lines = Some(&self.lines[..]).filter(|it| !it.is_empty());
        let meta = WisdomEntryMeta {
            id: self.id.clone(),
            hash: self.hash.clone(),
            sources: self.sources.parse().ok()?,
            lines: BTreeMap::new(),
            first_seen: self.first.parse().ok()?,
            last_reinforced: self.last.parse().ok()?,
        };
        Some(meta.with_line_list(lines))
    }

    /// Returns the hash of the words as they were written last.
    fn hash_now(&self) -> &str {
        if self.edited.is_empty() { &self.hash } else { &self.edited }
    }

    fn distance(&self, candidate: &Candidate) -> Option<u32> {
        let likeness = u64::from_str_radix(&self.likeness, 16).ok()?;
        let has_figures = self.figures == candidate.figures;
        has_figures.then(|| (likeness ^ candidate.likeness).count_ones())
    }
}

/// Lines of the visible text that may be an entry.
struct Candidate {
    /// The position of the first line, from 0.
    at: usize,
    /// How far it may reach: a number of lines, and the hash of their words.
    extents: Vec<(usize, String)>,
    likeness: u64,
    figures: String,
    /// As in [`EntryRecord`].
    title: String,
}

impl Candidate {
    fn new(at: usize, extents: Vec<(usize, String)>, title: &str, text: &str) -> Self {
        let (likeness, figures) = (likeness(title, text), figures(title, text));
        Self { at, extents, likeness, figures, title: title_hash(title) }
    }
}

fn candidates(visible: &str) -> Vec<Candidate> {
    let lines: Vec<&str> = visible.lines().collect();
    let mut fenced = false;
    let mut found: Vec<Candidate> = Vec::new();
    // Right below a title a bullet is the text of that entry.
    let mut below_title = false;
    for (at, line) in lines.iter().enumerate() {
        fenced ^= line.trim().starts_with("```");
        let title = entry_title(line).filter(|_| !fenced);
        let is_bullet = !fenced && !below_title && line.starts_with(BULLET);
        below_title = title.is_some();
        if title.is_none() && !is_bullet {
            continue;
        }
        let title = title.unwrap_or_default();
        let skipped = usize::from(!title.is_empty());
        let rest = &lines[at + skipped..];
        // Some programs put a blank line below a heading.
        let blank = rest.iter().take_while(|it| skipped > 0 && it.trim().is_empty()).count();
        if rest.get(blank).is_none_or(|it| starts_part(it)) {
            found.push(Candidate::new(at, vec![(skipped, words_hash(title, ""))], title, ""));
            continue;
        }
        let paragraph = 1 + rest.iter().skip(blank + 1).take_while(|it| continues(it)).count();
        let whole = 1 + rest.iter().skip(1).take_while(|it| !starts_part(it)).count();
        let words = |count: usize| {
            let text = rest[..count.min(rest.len())].join("\n");
            text.strip_prefix(BULLET).filter(|_| skipped == 0).unwrap_or(&text).trim().to_owned()
        };
        let first = words(blank + paragraph);
        let mut extents = vec![(skipped + blank + paragraph, words_hash(title, &first))];
        if skipped > 0 && whole > blank + paragraph {
            extents.push((skipped + whole, words_hash(title, &words(whole))));
        }
        found.push(Candidate::new(at, extents, title, &first));
    }
    found
}

fn title_hash(title: &str) -> String {
    if title.is_empty() { String::new() } else { ContentHash::of(title).hex8() }
}

/// Returns whether a line goes on with the paragraph above it.
fn continues(line: &str) -> bool {
    !line.trim().is_empty() && !starts_part(line) && !line.starts_with(BULLET)
}

fn starts_part(line: &str) -> bool {
    line.starts_with('#') || line.starts_with("---") || entry_title(line).is_some()
}

fn figures(title: &str, text: &str) -> String {
    let words = format!("{title} {text}");
    let words = words.split(|c: char| !c.is_alphanumeric());
    let figures: BTreeSet<&str> =
        words.filter(|it| it.contains(|c: char| c.is_ascii_digit())).collect();
    ContentHash::of(figures.into_iter().collect::<Vec<_>>().join(" ")).hex8()
}

/// Returns 64 bits of which few change when few words do.
fn likeness(title: &str, text: &str) -> u64 {
    let words = format!("{title} {text}").to_lowercase();
    let words = words.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty());
    let mut votes = [0i32; 64];
    for word in words {
        let hash = ContentHash::of(word).prefix64();
        for (bit, vote) in votes.iter_mut().enumerate() {
            *vote += if hash >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    votes.iter().enumerate().filter(|it| *it.1 > 0).fold(0, |all, (bit, _)| all | 1 << bit)
}
