//! Changes of `WISDOM.md`: each touches only the segments that it is about.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use super::{
    COMMENT_OPEN, HashedLines, LAST_COMPACTED, WisdomEntry, WisdomEntryMeta, WisdomFile,
    WisdomLimits, WisdomSegment, end_paragraph, escape_text, normalize_title, one_line,
    visible_chars, words_hash,
};
use crate::memory::{
    address::{Address, Citation},
    hash::ContentHash,
    period::Period,
};

impl WisdomFile {
    /// Notes that a month has been distilled.
    pub fn add_distilled(&mut self, month: Period) {
        // No file is written for the sake of the explanation alone.
        self.has_edit_note |= self.distilled.insert(month);
    }

    /// Adds an entry under its category, after those that stand there, and returns its id.
    ///
    /// A category that is not there yet is added at the end.
    pub fn add(
        &mut self,
        title: &str,
        text: &str,
        category: Option<&str>,
        sources: Citation,
    ) -> String {
        let (title, text) = (normalize_title(title), escape_text(text));
        let hash = words_hash(&title, &text);
        let mut id = format!("w-{}", ContentHash::of(format!("{title}\n{sources}")).hex8());
        while self.entries().any(|it| it.meta.as_ref().is_some_and(|mark| mark.id == id)) {
            id = format!("w-{}", ContentHash::of(&id).hex8());
        }
        let (first_seen, last_reinforced) = (sources.oldest_date(), sources.newest_date());
        let lines = BTreeMap::new();
        let mark =
            WisdomEntryMeta { id: id.clone(), hash, sources, lines, first_seen, last_reinforced };
        let category = category.map(one_line).filter(|it| !it.is_empty());
        let entry = WisdomEntry::rendered(title, text, category.clone(), mark);
        let at = self.insertion_index(category.as_deref());
        self.ensure_blank_line_before(at);
        self.segments.insert(at, WisdomSegment::Entry(entry));
        if at + 1 < self.segments.len() {
            self.ensure_blank_line_before(at + 1);
        }
        id
    }

    /// Adds an entry in a person's own words: it has no comment, and stays as it is.
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

    /// Returns where a new entry of the category goes, having made the category if need be.
    fn insertion_index(&mut self, category: Option<&str>) -> usize {
        let Some(name) = category else {
            // Before the first category, so that it does not seem to stand under one.
            return self
                .segments
                .iter()
                .position(|it| matches!(it, WisdomSegment::Category(..)))
                .unwrap_or(self.segments.len());
        };
        let heading =
            |it: &WisdomSegment| matches!(it, WisdomSegment::Category(found, _) if found == name);
        let Some(start) = self.segments.iter().position(heading) else {
            self.ensure_blank_line_before(self.segments.len());
            self.segments.push(WisdomSegment::Category(name.to_owned(), format!("## {name}\n")));
            return self.segments.len();
        };
        let next = self.segments[start + 1..]
            .iter()
            .position(|it| matches!(it, WisdomSegment::Category(..)));
        next.map_or(self.segments.len(), |it| start + 1 + it)
    }

    /// Makes sure that a blank line stands before the piece at `at`.
    fn ensure_blank_line_before(&mut self, at: usize) {
        let Some(before) = at.checked_sub(1).and_then(|it| self.segments.get_mut(it)) else {
            return;
        };
        let raw = match before {
            WisdomSegment::Text(raw) | WisdomSegment::Category(_, raw) => raw,
            WisdomSegment::Entry(entry) => &mut entry.raw,
        };
        end_paragraph(raw);
    }

    /// Notes that an entry of ours was said again on `more`, and gives it other words if there are
    /// any. Returns whether the entry was there, was ours, and changed.
    pub fn reinforce(&mut self, id: &str, words: Option<(&str, &str)>, more: &Citation) -> bool {
        let Some(entry) = self.managed_entry_mut(id) else { return false };
        let Some(mark) = &mut entry.meta else { return false };
        let before = mark.clone();
        for (stem, lines) in more.files().filter(|(stem, _)| stem.is_summary()) {
            // A person's bullet is in one place; where it stood before tells nothing now.
            mark.sources.replace_lines(stem, lines.clone());
        }
        mark.sources.merge(more);
        mark.sources = cap_sources(&mark.sources);
        mark.drop_uncited_hashes();
        mark.first_seen = mark.first_seen.min(more.oldest_date());
        mark.last_reinforced = mark.last_reinforced.max(more.newest_date());
        let (title, text) = match words {
            Some((title, text)) => (normalize_title(title), escape_text(text)),
            None => (entry.title.clone(), entry.text.clone()),
        };
        mark.hash = words_hash(&title, &text);
        if *mark == before {
            return false;
        }
        let (mark, category) = (mark.clone(), entry.category.clone());
        let tail = entry.raw[entry.raw.trim_end().len()..].to_owned();
        *entry = if words.is_some() {
            WisdomEntry::rendered(title, text, category, mark)
        } else {
            // Words that are not touched stay byte for byte, wrapped as they are.
            let open = entry.raw.rfind(COMMENT_OPEN).unwrap_or(entry.raw.len());
            let raw = format!("{}{}\n", &entry.raw[..open], mark.print());
            WisdomEntry { title, text, category, meta: Some(mark), raw }
        };
        entry.raw.truncate(entry.raw.trim_end().len());
        entry.raw.push_str(&tail);
        true
    }

    /// Gives an entry of ours these sources, each with the short hash of its line where it is known.
    /// Returns whether that changed anything.
    pub fn set_sources(&mut self, id: &str, sources: &[(Address, Option<String>)]) -> bool {
        self.managed_entry_mut(id).is_some_and(|it| it.set_sources(sources))
    }

    /// Notes the short hashes of lines that an entry of ours cites.
    pub fn record_line_hashes(
        &mut self,
        id: &str,
        lines: impl IntoIterator<Item = (Address, String)>,
    ) {
        let Some(entry) = self.managed_entry_mut(id) else { return };
        entry.update_meta(|mark| {
            mark.lines.extend(lines);
            mark.drop_uncited_hashes();
        });
    }

    /// Gives all entries, the person's too, the sources that `sources_of` says, as [`readdress`] does
    /// for one of ours. Returns whether that changed anything.
    ///
    /// [`readdress`]: WisdomEntry
    pub fn update_all_sources(
        &mut self,
        sources_of: &dyn Fn(&WisdomEntry, &WisdomEntryMeta) -> Option<HashedLines>,
    ) -> bool {
        let mut any = false;
        for piece in &mut self.segments {
            let WisdomSegment::Entry(entry) = piece else { continue };
            let found = entry.meta.as_ref().and_then(|it| sources_of(entry, it));
            if let Some(sources) = found {
                any |= entry.set_sources(&sources);
            }
        }
        any
    }

    /// Removes an entry of ours. Returns whether it was there and ours.
    pub fn remove_entry(&mut self, id: &str) -> bool {
        let before = self.segments.len();
        self.segments.retain(
            |it| !matches!(it, WisdomSegment::Entry(entry) if entry.is_managed() && entry.id() == Some(id)),
        );
        self.segments.len() < before
    }

    /// Returns the file with other words, `text`, in which the same entries stand: those that were ours
    /// stay ours.
    pub fn with_reworded_text(&self, text: &str) -> String {
        let mut new = Self::parse(text);
        let ours: BTreeSet<&str> =
            self.entries().filter(|it| it.is_managed()).filter_map(WisdomEntry::id).collect();
        for piece in &mut new.segments {
            let WisdomSegment::Entry(entry) = piece else { continue };
            if entry.id().is_some_and(|it| ours.contains(it)) {
                let hash = words_hash(&entry.title, &entry.text);
                entry.update_meta(|mark| mark.hash = hash);
            }
        }
        new.print()
    }

    /// Removes entries, whoever's they are: only for a person who wants them forgotten. Returns how
    /// many went.
    pub fn remove_entries_where(&mut self, goes: &dyn Fn(&WisdomEntry) -> bool) -> usize {
        let before = self.segments.len();
        self.segments.retain(|it| !matches!(it, WisdomSegment::Entry(entry) if goes(entry)));
        before - self.segments.len()
    }

    /// Removes lines of the text around the entries, for the same reason, and returns them.
    pub fn remove_lines_where(&mut self, goes: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut gone = Vec::new();
        for piece in &mut self.segments {
            let WisdomSegment::Text(raw) = piece else { continue };
            if !raw.lines().any(goes) {
                continue;
            }
            let (out, kept): (Vec<&str>, Vec<&str>) =
                raw.split_inclusive('\n').partition(|it| goes(it));
            gone.extend(out.iter().map(|it| it.trim().to_owned()));
            *raw = kept.concat();
        }
        gone
    }

    fn managed_entry_mut(&mut self, id: &str) -> Option<&mut WisdomEntry> {
        self.segments.iter_mut().find_map(|it| match it {
            WisdomSegment::Entry(entry) if entry.is_managed() && entry.id() == Some(id) => {
                Some(entry)
            }
            _ => None,
        })
    }

    /// Names the entries of ours that must go for the file to fit, least durable first.
    ///
    /// Durable is what was said again lately, then what was said on many days, then what is old.
    /// Entries in `touched` go last; a person's entries never go, even if they alone do not fit.
    pub fn entries_over_limit(
        &self,
        caps: WisdomLimits,
        touched: &BTreeSet<String>,
    ) -> Vec<String> {
        let mut entries = self.entries().count();
        let mut chars = self.chars();
        let mut ours: Vec<&WisdomEntry> = self.entries().filter(|it| it.is_managed()).collect();
        ours.sort_by_key(|entry| {
            let mark = entry.meta.as_ref();
            let days = mark.map(|it| it.sources.files().count());
            let id = entry.id().unwrap_or_default();
            (
                touched.contains(id),
                mark.map(|it| it.last_reinforced),
                days,
                std::cmp::Reverse(mark.map(|it| it.first_seen)),
            )
        });
        let mut going = Vec::new();
        for entry in ours {
            if entries <= caps.entries && chars <= caps.chars {
                break;
            }
            entries -= 1;
            chars -= visible_chars(&entry.raw);
            going.extend(entry.id().map(str::to_owned));
        }
        going
    }

    /// Writes the day of the newest source, if there is one of our lines for it.
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

    /// Removes categories of nothing, which dropped entries left behind.
    pub fn remove_empty_categories(&mut self, categories_before: &[String]) {
        let empty = |pieces: &[WisdomSegment], i: usize| {
            matches!(pieces.get(i + 1), None | Some(WisdomSegment::Category(..)))
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

/// An entry that is said again for years must not grow a comment as long as a page: the oldest
/// sources tell where it comes from, the newest that it still holds.
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
