//! Edits of `WISDOM.md`: each changes only the segments that it is about.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use super::{
    BULLET_ID, HashedLines, LAST_COMPACTED, WisdomEntry, WisdomEntryMeta, WisdomFile, WisdomLimits,
    WisdomSection, WisdomSegment, end_paragraph, escape_text, is_beginning_of, normalize_title,
    one_line, parse_entry, visible_chars, words_hash,
};
use crate::memory::{
    address::{Address, Citation},
    hash::ContentHash,
    joined,
    period::Period,
};

impl WisdomFile {
    /// Notes that a month has been distilled.
    pub fn add_distilled(&mut self, month: Period) {
        self.distilled.insert(month);
    }

    /// Adds an entry at the end of its category and returns its id.
    ///
    /// A new category is added at the end of the file.
    pub fn add(
        &mut self,
        title: &str,
        text: &str,
        category: Option<&str>,
        sources: Citation,
    ) -> String {
        let title = normalize_title(title);
        let name = format!("{title}\n{sources}");
        let (title, text) = titled_text(title, escape_text(text));
        self.insert(title, text, category, sources, ("w-", &name))
    }

    /// Replaces the bullets of ours by these, in this order: each after what its section holds already.
    pub fn replace_bullets(&mut self, bullets: &[(WisdomSection, String, Citation)]) {
        let categories: Vec<String> = self.entries().filter_map(|it| it.category.clone()).collect();
        let is_ours =
            |it: &WisdomSegment| matches!(it, WisdomSegment::Entry(entry) if entry.is_own_bullet());
        self.segments.retain(|it| !is_ours(it));
        self.join_blank_lines();
        for (section, text, sources) in bullets {
            let text = escape_text(text);
            let name = format!("{text}\n{sources}");
            let named = (BULLET_ID, &name[..]);
            self.insert(String::new(), text, Some(section.title()), sources.clone(), named);
        }
        self.remove_empty_categories(&categories);
    }

    /// Joins blank lines below a heading to it, so that they are no text of their own.
    fn join_blank_lines(&mut self) {
        let mut joined: Vec<WisdomSegment> = Vec::with_capacity(self.segments.len());
        for segment in std::mem::take(&mut self.segments) {
            match (joined.last_mut(), &segment) {
                (Some(WisdomSegment::Category(_, raw)), WisdomSegment::Text(text))
                    if text.trim().is_empty() =>
                {
                    raw.push_str(text);
                }
                _ => joined.push(segment),
            }
        }
        self.segments = joined;
    }

    /// Inserts an entry at the end of its category; `name` is the start of its id and what the rest is made from.
    fn insert(
        &mut self,
        title: String,
        text: String,
        category: Option<&str>,
        sources: Citation,
        (kind, name): (&str, &str),
    ) -> String {
        let hash = words_hash(&title, &text);
        let mut id = [kind, &ContentHash::of(name).hex8()].concat();
        while self.entries().any(|it| it.meta.as_ref().is_some_and(|meta| meta.id == id)) {
            id = [kind, &ContentHash::of(&id).hex8()].concat();
        }
        let (first_seen, last_reinforced) = (sources.oldest_date(), sources.newest_date());
        let lines = BTreeMap::new();
        let meta =
            WisdomEntryMeta { id: id.clone(), hash, sources, lines, first_seen, last_reinforced };
        let category = category.map(one_line).filter(|it| !it.is_empty());
        let entry = WisdomEntry::rendered(title, text, category.clone(), meta);
        let at = self.insertion_index(category.as_deref());
        let is_bullet = |it: &WisdomSegment| matches!(it, WisdomSegment::Entry(entry) if entry.title.is_empty());
        let continues_list =
            entry.title.is_empty() && at > 0 && self.segments.get(at - 1).is_some_and(is_bullet);
        if continues_list {
            let WisdomSegment::Entry(above) = &mut self.segments[at - 1] else { return id };
            above.raw.truncate(above.raw.trim_end().len());
            above.raw.push('\n');
        } else {
            self.ensure_blank_line_before(at);
        }
        self.segments.insert(at, WisdomSegment::Entry(entry));
        if at + 1 < self.segments.len() {
            self.ensure_blank_line_before(at + 1);
        }
        id
    }

    /// Adds an entry in a person's own words. It is not recorded, so it is never changed.
    pub fn add_user_entry(&mut self, title: &str, text: &str) {
        let (title, text) = (normalize_title(title), escape_text(text));
        let own = Self::parse(&format!("**{title}**\n{text}\n"));
        let entry = own.segments.into_iter().find(|it| matches!(it, WisdomSegment::Entry(_)));
        let at = self.insertion_index(None);
        self.ensure_blank_line_before(at);
        self.segments.extend(entry);
        let last = self.segments.len() - 1;
        self.segments[at..=last].rotate_right(1);
        if at < last {
            self.ensure_blank_line_before(at + 1);
        }
    }

    /// Returns the index for a new entry of the category; adds the category if necessary.
    fn insertion_index(&mut self, category: Option<&str>) -> usize {
        let Some(name) = category else {
            // Before the first category, so that it does not appear to belong to one.
            return self
                .segments
                .iter()
                .position(|it| matches!(it, WisdomSegment::Category(..)))
                .unwrap_or(self.segments.len());
        };
        let heading =
            |it: &WisdomSegment| matches!(it, WisdomSegment::Category(found, _) if found == name);
        let Some(start) = self.segments.iter().position(heading) else {
            let place = WisdomSection::place_of(name);
            let is_later = |it: &WisdomSegment| matches!(it, WisdomSegment::Category(found, _) if WisdomSection::place_of(found) > place);
            let after = place.and_then(|_| self.segments.iter().position(is_later));
            let at = after.unwrap_or(self.segments.len());
            self.ensure_blank_line_before(at);
            let heading = WisdomSegment::Category(name.to_owned(), format!("## {name}\n"));
            self.segments.insert(at, heading);
            return at + 1;
        };
        let next = self.segments[start + 1..]
            .iter()
            .position(|it| matches!(it, WisdomSegment::Category(..)));
        next.map_or(self.segments.len(), |it| start + 1 + it)
    }

    /// Ensures a blank line before the segment at `at`.
    pub(super) fn ensure_blank_line_before(&mut self, at: usize) {
        let Some(before) = at.checked_sub(1).and_then(|it| self.segments.get_mut(it)) else {
            return;
        };
        end_paragraph(before.raw_mut());
    }

    /// Adds sources to a managed entry, and replaces its words if new ones are given.
    ///
    /// Returns whether a managed entry with this id exists and changed.
    pub fn reinforce(&mut self, id: &str, words: Option<(&str, &str)>, more: &Citation) -> bool {
        let Some(entry) = self.managed_entry_mut(id) else { return false };
        let Some(meta) = &mut entry.meta else { return false };
        let before = meta.clone();
        for (stem, lines) in more.files().filter(|(stem, _)| stem.is_summary()) {
            // A person's bullet is in one place at a time; its former line is obsolete.
            meta.sources.replace_lines(stem, lines.clone());
        }
        meta.sources.merge(more);
        meta.sources = cap_sources(&meta.sources);
        meta.drop_uncited_hashes();
        meta.first_seen = meta.first_seen.min(more.oldest_date());
        meta.last_reinforced = meta.last_reinforced.max(more.newest_date());
        let (title, text) = match words {
            Some((title, text)) => titled_text(normalize_title(title), escape_text(text)),
            None => (entry.title.clone(), entry.text.clone()),
        };
        meta.hash = words_hash(&title, &text);
        if *meta == before {
            return false;
        }
        let (meta, category) = (meta.clone(), entry.category.clone());
        // Unchanged words keep their bytes and line breaks.
        if words.is_some() {
            let tail = entry.raw[entry.raw.trim_end().len()..].to_owned();
            *entry = WisdomEntry::rendered(title, text, category, meta);
            entry.raw.truncate(entry.raw.trim_end().len());
            entry.raw.push_str(&tail);
        }
        true
    }

    /// Sets the sources of a managed entry, each with the short hash of its line if known. Returns
    /// whether anything changed.
    pub fn set_sources(&mut self, id: &str, sources: &[(Address, Option<String>)]) -> bool {
        self.managed_entry_mut(id).is_some_and(|it| it.set_sources(sources))
    }

    /// Records the short hashes of lines that a managed entry cites.
    pub fn record_line_hashes(
        &mut self,
        id: &str,
        lines: impl IntoIterator<Item = (Address, String)>,
    ) {
        let Some(entry) = self.managed_entry_mut(id) else { return };
        entry.update_meta(|meta| {
            meta.lines.extend(lines);
            meta.drop_uncited_hashes();
        });
    }

    /// Sets the sources of all entries, a person's included, for which `sources_of` returns some.
    /// Returns whether anything changed.
    pub fn update_all_sources(
        &mut self,
        sources_of: &dyn Fn(&WisdomEntry, &WisdomEntryMeta) -> Option<HashedLines>,
    ) -> bool {
        let mut any = false;
        for segment in &mut self.segments {
            let WisdomSegment::Entry(entry) = segment else { continue };
            let found = entry.meta.as_ref().and_then(|it| sources_of(entry, it));
            if let Some(sources) = found {
                any |= entry.set_sources(&sources);
            }
        }
        any
    }

    /// Removes a managed entry. Returns whether there was one.
    pub fn remove_entry(&mut self, id: &str) -> bool {
        let before = self.segments.len();
        self.segments.retain(
            |it| !matches!(it, WisdomSegment::Entry(entry) if entry.is_managed() && entry.id() == Some(id)),
        );
        self.segments.len() < before
    }

    /// Returns this file in the words of `visible`: each entry keeps what is recorded about it, if it has as
    /// many lines as before.
    #[must_use]
    pub fn with_visible_text(&self, visible: &str) -> Self {
        let had_comments = self.entries().any(|it| it.had_comment);
        let lines: Vec<&str> = visible.split_inclusive('\n').collect();
        if had_comments || lines.len() != self.print_visible().split_inclusive('\n').count() {
            return Self::parse(&joined::join(visible, joined::split(&self.print()).1));
        }
        let mut new = self.clone();
        let mut rest = &lines[..];
        for segment in &mut new.segments {
            let count = segment.raw().split_inclusive('\n').count();
            let (own, left) = rest.split_at(count.min(rest.len()));
            rest = left;
            match segment {
                WisdomSegment::Entry(entry) => {
                    let (category, meta) = (entry.category.as_deref(), entry.meta.take());
                    *entry = parse_entry(own.concat(), category, meta);
                }
                other => *other.raw_mut() = own.concat(),
            }
        }
        new
    }

    /// Like [`Self::with_visible_text`], but formerly managed entries stay managed. Returns the file.
    pub fn reworded(&self, visible: &str) -> String {
        let mut new = self.with_visible_text(visible);
        let ours: BTreeSet<&str> =
            self.entries().filter(|it| it.is_managed()).filter_map(WisdomEntry::id).collect();
        for segment in &mut new.segments {
            let WisdomSegment::Entry(entry) = segment else { continue };
            if entry.id().is_some_and(|it| ours.contains(it)) {
                let hash = words_hash(&entry.title, &entry.text);
                entry.update_meta(|meta| meta.hash = hash);
            }
        }
        new.print()
    }

    /// Puts a person's words in place of those of an entry; see [`WisdomEntry`]. `at` counts the entries from 0.
    pub fn reword_entry(&mut self, at: usize, words: &str, sources: Option<&Citation>) {
        let mut entries = self.segments.iter_mut().filter_map(|it| match it {
            WisdomSegment::Entry(entry) => Some(entry),
            _ => None,
        });
        if let Some(entry) = entries.nth(at) {
            entry.reword(words, sources);
        }
    }

    /// Removes entries of any owner, because a person wants them forgotten. Returns how many.
    pub fn remove_entries_where(&mut self, goes: &dyn Fn(&WisdomEntry) -> bool) -> usize {
        let before = self.segments.len();
        self.segments.retain(|it| !matches!(it, WisdomSegment::Entry(entry) if goes(entry)));
        before - self.segments.len()
    }

    /// Removes lines of the text around the entries for the same reason, and returns them.
    pub fn remove_lines_where(&mut self, goes: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut removed = Vec::new();
        for segment in &mut self.segments {
            let WisdomSegment::Text(raw) = segment else { continue };
            if !raw.lines().any(goes) {
                continue;
            }
            let (out, kept): (Vec<&str>, Vec<&str>) =
                raw.split_inclusive('\n').partition(|it| goes(it));
            removed.extend(out.iter().map(|it| it.trim().to_owned()));
            *raw = kept.concat();
        }
        removed
    }

    fn managed_entry_mut(&mut self, id: &str) -> Option<&mut WisdomEntry> {
        self.segments.iter_mut().find_map(|it| match it {
            WisdomSegment::Entry(entry) if entry.is_managed() && entry.id() == Some(id) => {
                Some(entry)
            }
            _ => None,
        })
    }

    /// Returns the ids of the managed entries that must go for the file to fit, least durable
    /// first.
    ///
    /// Bullets are not counted: they take the room that is left.
    ///
    /// Durable is what was confirmed recently, then what recurs on many days, then what is old.
    /// Entries in `touched` go last. A person's entries never go, even if they alone exceed the
    /// limit.
    pub fn entries_over_limit(
        &self,
        caps: WisdomLimits,
        touched: &BTreeSet<String>,
    ) -> Vec<String> {
        let counted = || self.entries().filter(|it| !it.is_own_bullet());
        let mut entries = counted().count();
        let mut chars = self.chars_without_bullets();
        let mut ours: Vec<&WisdomEntry> = counted().filter(|it| it.is_managed()).collect();
        ours.sort_by_key(|entry| {
            let meta = entry.meta.as_ref();
            let days = meta.map(|it| it.sources.files().count());
            let id = entry.id().unwrap_or_default();
            (
                touched.contains(id),
                meta.map(|it| it.last_reinforced),
                days,
                std::cmp::Reverse(meta.map(|it| it.first_seen)),
            )
        });
        let mut going = Vec::new();
        for entry in ours {
            if entries <= caps.entries && chars <= caps.chars {
                break;
            }
            entries -= 1;
            chars = chars.saturating_sub(visible_chars(&entry.raw));
            going.extend(entry.id().map(str::to_owned));
        }
        going
    }

    /// Writes the day of the newest source into the "Last compacted" line, if there is one.
    pub fn set_last_compacted(&mut self, date: NaiveDate) {
        let line = |text: &str| {
            text.starts_with(LAST_COMPACTED).then(|| format!("{LAST_COMPACTED}{date}"))
        };
        let texts = self
            .segments
            .iter_mut()
            .filter_map(|it| if let WisdomSegment::Text(raw) = it { Some(raw) } else { None });
        for raw in texts {
            if let Some(old) =
                raw.lines().find(|it| it.starts_with(LAST_COMPACTED)).map(str::to_owned)
            {
                *raw = raw.replacen(&old, &line(&old).unwrap_or(old.clone()), 1);
                return;
            }
        }
    }

    /// Removes the categories that dropped entries left empty.
    pub fn remove_empty_categories(&mut self, categories_before: &[String]) {
        let empty = |segments: &[WisdomSegment], i: usize| {
            matches!(segments.get(i + 1), None | Some(WisdomSegment::Category(..)))
        };
        let mut i = 0;
        while i < self.segments.len() {
            let ours = matches!(&self.segments[i], WisdomSegment::Category(name, raw)
                if categories_before.contains(name) && raw.trim() == format!("## {name}"));
            if ours && empty(&self.segments, i) {
                self.segments.remove(i);
            } else {
                i += 1;
            }
        }
    }
}

/// Returns title and text of an entry: a title that only repeats how the text begins is none.
fn titled_text(title: String, text: String) -> (String, String) {
    if is_beginning_of(&title, &text) { (String::new(), text) } else { (title, text) }
}

/// Limits the number of cited files, so that the record of an entry that is confirmed for years
/// stays short: the oldest sources show where it comes from, the newest that it still holds.
fn cap_sources(sources: &Citation) -> Citation {
    const OLDEST: usize = 2;
    const NEWEST: usize = 10;
    let count = sources.files().count();
    let mut i = 0;
    let kept = sources.filter_files(|stem| {
        i += 1;
        i <= OLDEST || i + NEWEST > count || stem.is_summary()
    });
    kept.unwrap_or_else(|| sources.clone())
}
