//! One entry of `WISDOM.md`: its words, and what is recorded about it.

use std::collections::BTreeMap;

use super::{
    BULLET, BULLET_ID, COMMENT_CLOSE, COMMENT_OPEN, WisdomEntry, WisdomEntryMeta, escape_text,
    is_beginning_of, normalize_title, words_hash,
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
        let raw = format!("{head}{text}\n");
        Self { title, text, category, meta: Some(meta), raw, had_comment: false, dropped_above: 0 }
    }

    /// Puts other words in place of these. `**Title**` at their start replaces the title; `sources` replace
    /// the recorded ones. The recorded hash stays that of the old words, so the entry becomes a person's.
    pub(super) fn reword(&mut self, words: &str, sources: Option<&Citation>) {
        let end = if self.raw.contains("\r\n") { "\r\n" } else { "\n" };
        let tail = self.raw[self.raw.trim_end().len()..].to_owned();
        let titled = words.strip_prefix("**").and_then(|it| it.split_once("**"));
        let text = match titled {
            Some((title, text)) if !title.trim().is_empty() => {
                self.title = normalize_title(title);
                text.trim()
            }
            _ => words,
        };
        self.text = escape_text(text);
        let head = if self.title.is_empty() {
            BULLET.to_owned()
        } else {
            format!("**{}**{end}", self.title)
        };
        self.raw = [&head[..], &self.text, &tail].concat();
        if let (Some(meta), Some(sources)) = (&mut self.meta, sources) {
            meta.sources = sources.clone();
            meta.drop_uncited_hashes();
        }
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

    /// Changes what is recorded, and no byte of the visible file. Returns whether anything changed.
    pub(super) fn update_meta(&mut self, change: impl FnOnce(&mut WisdomEntryMeta)) -> bool {
        let Some(meta) = &mut self.meta else { return false };
        let before = meta.clone();
        change(meta);
        *meta != before
    }

    /// Returns whether the words are still those that we wrote.
    pub fn is_managed(&self) -> bool {
        self.meta.as_ref().is_some_and(|it| it.hash == words_hash(&self.title, &self.text))
    }

    /// Returns whether it is a bullet in our words, which is chosen again when the logs change.
    pub fn is_own_bullet(&self) -> bool {
        self.is_managed() && self.id().is_some_and(|it| it.starts_with(BULLET_ID))
    }

    /// Returns whether it has this title, unless that only repeats how the text begins, and this text.
    pub fn says(&self, title: &str, text: &str) -> bool {
        let is_titled = !is_beginning_of(title, text);
        self.text == text && self.title == if is_titled { title } else { "" }
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
        lines.retain(|at, _| sources.cites(at));
    }

    /// Prints the hashes of the cited lines in their order; empty if none is known.
    pub(super) fn line_list(&self) -> String {
        let hash = |at: Address| self.lines.get(&at).map_or(Self::UNKNOWN, String::as_str);
        if self.lines.is_empty() {
            return String::new();
        }
        let lines: Vec<&str> = self.sources.addresses().map(hash).collect();
        lines.join(",")
    }

    /// Adds the hashes of a list as [`Self::line_list`] prints it.
    pub(super) fn with_line_list(mut self, list: Option<&str>) -> Self {
        let hashes: Vec<&str> = list.map_or_else(Vec::new, |it| it.split(',').collect());
        // A list whose length does not match the lines is ignored.
        let fits = hashes.len() == self.sources.addresses().take(hashes.len() + 1).count();
        let lines = self.sources.addresses().zip(hashes).filter(|(_, it)| fits && is_hex4(it));
        self.lines = lines.map(|(at, hash)| (at, hash.to_owned())).collect();
        self
    }

    /// Reads the comment of an entry in a file of an older form.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let fields = line.trim().strip_prefix(COMMENT_OPEN)?.strip_suffix(COMMENT_CLOSE)?;
        let field = |name: &str| {
            fields
                .split("; ")
                .find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
                .map(str::trim)
        };
        let meta = Self {
            id: field("id")?.to_owned(),
            hash: field("hash")?.to_owned(),
            lines: BTreeMap::new(),
            sources: field("sources")?.replace(" & ", "; ").parse().ok()?,
            first_seen: field("first")?.parse().ok()?,
            last_reinforced: field("last")?.parse().ok()?,
        };
        Some(meta.with_line_list(field("lines")))
    }
}

fn is_hex4(text: &str) -> bool {
    text.len() == 4 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
