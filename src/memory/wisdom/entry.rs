//! One entry of `WISDOM.md`: its words, and the comment at its end.

use std::collections::BTreeMap;

use super::{
    BULLET, BULLET_ID, COMMENT_CLOSE, COMMENT_OPEN, WisdomEntry, WisdomEntryMeta, escape_text,
    normalize_title, words_hash,
};
use crate::memory::address::{Address, Citation};

impl WisdomEntry {
    /// Builds a managed entry.
    pub(super) fn rendered(
        title: String,
        text: String,
        category: Option<String>,
        meta: WisdomEntryMeta,
    ) -> Self {
        let head = if title.is_empty() { BULLET.to_owned() } else { format!("**{title}**\n") };
        let raw = format!("{head}{text}\n{}\n", meta.print());
        Self { title, text, category, meta: Some(meta), raw }
    }

    /// Returns the raw entry with other words. `**Title**` at their start replaces the title;
    /// `sources` replace those in the comment. The hash in the comment stays that of the old words.
    pub fn reworded(&self, words: &str, sources: Option<&Citation>) -> String {
        let mut lines = self.raw.split_inclusive('\n');
        let first = lines.next().unwrap_or_default();
        let end = if first.ends_with("\r\n") { "\r\n" } else { "\n" };
        let titled = words.strip_prefix("**").and_then(|it| it.split_once("**"));
        let (title, text) = match titled {
            Some((title, text)) if !title.trim().is_empty() => {
                (format!("**{}**", normalize_title(title)), text.trim())
            }
            _ if self.title.is_empty() => (String::new(), words),
            _ => (first.trim_end().to_owned(), words),
        };
        let rest: Vec<&str> = lines.collect();
        let is_comment = |it: &&str| it.trim_start().starts_with(COMMENT_OPEN);
        let tail_at = rest.iter().position(is_comment).unwrap_or_else(|| {
            rest.iter().rposition(|it| !it.trim().is_empty()).map_or(0, |it| it + 1)
        });
        let mut tail = rest[tail_at..].concat();
        if let (Some(meta), Some(sources)) = (&self.meta, sources) {
            let new = WisdomEntryMeta { sources: sources.clone(), ..meta.clone() };
            tail = tail.replacen(&meta.print(), &new.print(), 1);
        }
        let text = escape_text(text);
        let end_of_text = if tail.is_empty() && !self.raw.ends_with('\n') { "" } else { end };
        if title.is_empty() {
            return [BULLET, &text, end_of_text, &tail].concat();
        }
        [&title, end, &text, end_of_text, &tail].concat()
    }

    pub(super) fn set_sources(&mut self, sources: &[(Address, Option<String>)]) -> bool {
        let lines = sources.iter().filter_map(|(at, hash)| Some((at.clone(), hash.clone()?)));
        let lines: BTreeMap<Address, String> = lines.collect();
        let Some(sources) = Citation::from_addresses(sources.iter().map(|it| &it.0)) else {
            return false;
        };
        self.update_meta(|meta| {
            meta.sources = sources;
            meta.lines = lines;
        })
    }

    /// Changes our comment, and no other byte.
    pub(super) fn update_meta(&mut self, change: impl FnOnce(&mut WisdomEntryMeta)) -> bool {
        let Some(meta) = &mut self.meta else { return false };
        let before = meta.clone();
        change(meta);
        if *meta == before {
            return false;
        }
        // Our comment is the first that parses; a person may have respelled it.
        let old =
            self.raw.lines().find(|it| WisdomEntryMeta::parse(it).is_some()).unwrap_or_default();
        self.raw = self.raw.replacen(&old.trim().to_owned(), &meta.print(), 1);
        true
    }

    /// Returns whether the words are still those that we wrote.
    pub fn is_managed(&self) -> bool {
        self.meta.as_ref().is_some_and(|it| it.hash == words_hash(&self.title, &self.text))
    }

    /// Returns whether it is a bullet in our words, which is chosen again when the logs change.
    pub fn is_own_bullet(&self) -> bool {
        self.is_managed() && self.id().is_some_and(|it| it.starts_with(BULLET_ID))
    }

    /// Returns its words on one line: the title, if it has one, and the text.
    pub fn words(&self) -> String {
        if self.title.is_empty() {
            return self.text.clone();
        }
        format!("{}: {}", self.title, self.text)
    }

    /// Returns its title, if it has one, and its text as sentences.
    pub fn sentences(&self) -> String {
        if self.title.is_empty() {
            return self.text.clone();
        }
        format!("{}. {}", self.title, self.text)
    }

    /// Returns the permanent name of the entry, which survives edits by a person.
    pub fn id(&self) -> Option<&str> {
        self.meta.as_ref().map(|it| &it.id[..])
    }
}

impl WisdomEntryMeta {
    /// Marks a line whose hash is unknown.
    const UNKNOWN: &str = "-";

    pub(super) fn drop_uncited_hashes(&mut self) {
        let Self { lines, sources, .. } = self;
        lines.retain(|at, _| sources.lines_of(&at.stem).is_some_and(|it| it.contains(at.line)));
    }

    pub(super) fn print(&self) -> String {
        let hash = |at: Address| self.lines.get(&at).map_or(Self::UNKNOWN, String::as_str);
        let lines = if self.lines.is_empty() {
            String::new()
        } else {
            let lines: Vec<&str> = self.sources.addresses().map(hash).collect();
            format!("; lines={}", lines.join(","))
        };
        format!(
            "{COMMENT_OPEN}id={}; hash={}; sources={}{lines}; first={}; last={}{COMMENT_CLOSE}",
            self.id,
            self.hash,
            self.sources.to_string().replace("; ", " & "),
            self.first_seen,
            self.last_reinforced
        )
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let fields = line.trim().strip_prefix(COMMENT_OPEN)?.strip_suffix(COMMENT_CLOSE)?;
        let field = |name: &str| {
            fields
                .split("; ")
                .find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
                .map(str::trim)
        };
        let sources: Citation = field("sources")?.replace(" & ", "; ").parse().ok()?;
        let hashes: Vec<&str> = field("lines").map_or_else(Vec::new, |it| it.split(',').collect());
        // A list whose length does not match the lines is ignored.
        let fits = hashes.len() == sources.addresses().take(hashes.len() + 1).count();
        let lines = sources.addresses().zip(hashes).filter(|(_, it)| fits && is_hex4(it));
        Some(Self {
            id: field("id")?.to_owned(),
            hash: field("hash")?.to_owned(),
            lines: lines.map(|(at, hash)| (at, hash.to_owned())).collect(),
            sources,
            first_seen: field("first")?.parse().ok()?,
            last_reinforced: field("last")?.parse().ok()?,
        })
    }
}

fn is_hex4(text: &str) -> bool {
    text.len() == 4 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
