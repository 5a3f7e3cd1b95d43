//! The texts of files without what a request covers. Pure.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use serde::Serialize;

use super::{log_line::LogLine, targets::ForgetPatterns};
use crate::{
    memory::{
        address::{Address, Citation},
        document::{BulletOwner, Summary, SummaryBlock, SummaryError},
        frontmatter, index,
        item::Item,
        log::DailyLog,
        markdown::LineKind,
        period::Period,
        statement::{MemoryStatement, StatementKind},
        typed::{TypedMemory, description_hash},
        wisdom::WisdomFile,
    },
    privacy::PrivacyRules,
};

/// A line or an item that is removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RemovedText {
    /// The file, relative to the root.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    pub text: String,
    pub by_person: bool,
    /// The file as read, since the sanitized view of a line depends on the whole file.
    #[serde(skip)]
    pub whole: Option<Arc<str>>,
}

/// The remaining text, with what was removed.
#[derive(Debug, Default)]
pub(super) struct RemovalResult {
    /// `None` if nothing of the file remains.
    pub(super) text: Option<String>,
    /// Bullets and entries.
    pub(super) items: Vec<RemovedText>,
    /// Other lines.
    pub(super) lines: Vec<RemovedText>,
}

impl ForgetPatterns<'_> {
    /// Returns a memory about a topic without what the request covers, and what is left of the memory; `None` if it
    /// does not change. Words alone change nothing in a person's file.
    pub(super) fn remove_from_topic(
        &self,
        path: &str,
        memory: &TypedMemory,
        text: &str,
    ) -> Option<(RemovalResult, Option<TypedMemory>)> {
        let hash_of = |at: &Address| memory.sources.iter().find(|it| it.0 == *at).map(|it| &it.1);
        let is_ours = memory.recorded_body.is_some();
        let is_target = |item: &Item| {
            let cites = |at: Address| self.request.found.is_cited_line(&at, hash_of(&at));
            item.citation.as_ref().is_some_and(|it| it.addresses().any(cites))
                || is_ours && self.matches_item(path, &item.text, None)
        };
        let (_, theirs) = memory.statements_by_owner();
        let above = count_lines(&text[..frontmatter::split(text).body_at]);
        let mut cut = RemovalResult::default();
        let mut left = memory.clone();
        let statements: BTreeMap<u32, MemoryStatement> =
            memory.statements().into_iter().map(|it| (it.line, it)).collect();
        let mut kept = Vec::new();
        let mut has_own_text = false;
        for (line, raw) in (1..).zip(memory.body.split('\n')) {
            let is_heading = raw.strip_prefix("## ").and_then(StatementKind::from_title).is_some();
            match statements.get(&line) {
                Some(it) if is_target(&it.item) => {
                    let is_own = theirs.contains(it);
                    cut.items.push(removed_text(path, above + line, &it.item.text, is_own));
                    // Otherwise it would count as a person's deletion.
                    left.items.retain(|hash| *hash != it.item.hash());
                    left.by_model.retain(|hash| *hash != it.item.hash());
                    continue;
                }
                Some(it) => has_own_text |= theirs.contains(it),
                None if is_heading || raw.trim().is_empty() => {}
                None if is_ours && (self.holds_target_words(raw) || self.repeats_line(raw)) => {
                    cut.lines.push(removed_text(path, above + line, raw, true));
                    continue;
                }
                None => has_own_text = true,
            }
            kept.push(raw);
        }
        left.body = kept.join("\n");
        let is_named = is_ours && self.holds_target_words(&memory.name);
        let is_told = is_ours && self.holds_target_words(&memory.description)
            || cut.items.iter().any(|it| memory.description.starts_with(&it.text));
        let keys = memory.other_keys.without(&|it| is_ours && self.holds_requested_words(it));
        if left.body == memory.body && !is_named && !is_told && keys.is_none() {
            return None;
        }
        left.other_keys = keys.unwrap_or(left.other_keys);
        if is_told || !cut.items.is_empty() && is_ours {
            left.description.clone_from(&memory.name);
            left.recorded_description = Some(description_hash(&left.description));
        }
        let remaining = left.statements();
        let cites = |at: &Address| {
            let citations = remaining.iter().filter_map(|it| it.item.citation.as_ref());
            citations.flat_map(Citation::addresses).any(|it| it == *at)
        };
        left.sources.retain(|it| cites(&it.0));
        if memory.is_managed() {
            left.record_body_hash();
        }
        let is_left = has_own_text || !remaining.is_empty() && !is_named;
        let left = is_left.then_some(left);
        cut.text = left.as_ref().map(TypedMemory::print);
        Some((cut, left))
    }

    /// Returns a generated weekly or monthly file without the targets; `None` if it does not
    /// change.
    pub(super) fn remove_from_summary(
        &self,
        path: &str,
        period: Period,
        text: &str,
    ) -> Result<Option<RemovalResult>, SummaryError> {
        let mut summary = Summary::parse(period, text)?;
        let mut owners = summary.ownership().owners.into_iter();
        let Some(header) = &mut summary.header else { return Ok(None) };
        let body_at = frontmatter::split(text).body_at;
        let mut line = 1 + count_lines(&text[..body_at]);
        let mut cut = RemovalResult::default();
        let mut left = Vec::new();
        for block in summary.blocks {
            let first = line;
            line += count_lines(block.raw());
            match block {
                SummaryBlock::Bullet(item, raw) => {
                    let by_person = owners.next() == Some(BulletOwner::User);
                    if !self.matches_item(path, &item.text, item.citation.as_ref()) {
                        left.push(SummaryBlock::Bullet(item, raw));
                        continue;
                    }
                    let hash = item.hash();
                    if let Some(at) = header.items.iter().position(|it| *it == hash) {
                        // Otherwise the next run would treat it as a person's deletion.
                        header.items.remove(at);
                    }
                    cut.items.push(removed_text(path, first, &item.text, by_person));
                }
                SummaryBlock::Other(raw) => {
                    let (kept, out) = self.remove_lines(path, first, &raw);
                    cut.lines.extend(out);
                    left.push(SummaryBlock::Other(kept));
                }
                section @ SummaryBlock::Section(..) => left.push(section),
            }
        }
        let named = header.sources.len();
        header.sources.retain(|it, _| !self.request.found.logs.contains(it));
        header.missing_sources.retain(|it| !self.request.found.logs.contains(it));
        header.pointers.retain(|it| {
            let name = it.rsplit('/').next().unwrap_or(it);
            !self.request.found.logs.contains(name.strip_suffix(".md").unwrap_or(name))
        });
        let renamed = header.sources.len() < named;
        let keys = summary.other_keys.without(&|it| self.holds_requested_words(it));
        let same = cut.items.is_empty() && cut.lines.is_empty();
        if same && !renamed && keys.is_none() {
            return Ok(None);
        }
        if let Some(keys) = keys {
            summary.other_keys = keys;
        }
        summary.blocks = without_empty_sections(left);
        cut.text = Some(summary.print());
        Ok(Some(cut))
    }

    /// Returns `WISDOM.md` without the targets; `None` if it does not change.
    pub(super) fn remove_from_wisdom(&self, path: &str, text: &str) -> Option<RemovalResult> {
        let mut file = WisdomFile::parse(text);
        let mut cut = RemovalResult::default();
        let categories: Vec<String> = file.entries().filter_map(|it| it.category.clone()).collect();
        for (line, entry) in file.entries_with_lines() {
            if self.matches_entry(path, entry) {
                let text = entry.words();
                cut.items.push(removed_text(path, line, &text, !entry.is_managed()));
            }
        }
        let entries = file.remove_entries_where(&|it| self.matches_entry(path, it));
        let lines =
            file.remove_lines_where(&|it| !it.trim().is_empty() && self.holds_target_words(it));
        cut.lines.extend(lines.iter().map(|it| removed_text(path, 1, it, true)));
        if entries == 0 && lines.is_empty() {
            return None;
        }
        file.remove_empty_categories(&categories);
        cut.text = Some(file.print());
        Some(cut)
    }

    /// Returns the index for the remaining memories, without targets among a person's lines in it.
    pub(super) fn remove_from_index(
        &self,
        path: &str,
        text: &str,
        left: &[TypedMemory],
        rules: &PrivacyRules,
    ) -> Option<RemovalResult> {
        let rendered = index::render(Some(text), left, &|it| rules.sanitize_label(it));
        let begin = rendered.find(index::BEGIN).unwrap_or(rendered.len());
        let end = rendered.find(index::END).map_or(rendered.len(), |it| it + index::END.len());
        let (before, mut out) = self.remove_lines(path, 1, &rendered[..begin]);
        let (after, more) =
            self.remove_lines(path, 1 + count_lines(&rendered[..end]), &rendered[end..]);
        out.extend(more);
        let cut = format!("{before}{}{after}", &rendered[begin..end]);
        (cut != text).then(|| RemovalResult { text: Some(cut), items: Vec::new(), lines: out })
    }

    /// Returns a log without the targets, all other lines byte for byte; `None` if it does not
    /// change. If all of a log is removed, no text remains. Of a list item or heading with something below it the mark
    /// stays: what is below it would otherwise belong to what was before it, and say something new.
    pub(super) fn remove_from_log(&self, path: &str, log: &DailyLog) -> Option<RemovalResult> {
        let (mark, text) = match log.raw().strip_prefix('\u{feff}') {
            Some(text) => ("\u{feff}", text),
            None => ("", &log.raw()[..]),
        };
        let body_from = log.lines().first().map_or(1, |it| it.0);
        let mut cut = RemovalResult::default();
        let mut left = mark.to_owned();
        let mut says_something = false;
        let kinds: BTreeMap<u32, LineKind> =
            log.lines().into_iter().map(|(number, _, kind)| (number, kind)).collect();
        let lines: Vec<LogLine<'_>> = (1..)
            .zip(text.split_inclusive('\n'))
            .map(|(number, raw)| {
                let in_front = number < body_from;
                let goes = if in_front {
                    self.matches_front_line(&log.stem, raw)
                } else {
                    self.matches_line(&log.stem, raw)
                };
                let kind = kinds.get(&number).copied().filter(|_| !in_front);
                LogLine { raw, kind, goes }
            })
            .collect();
        for (at, line) in lines.iter().enumerate() {
            if line.goes {
                let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
                cut.lines.push(removed_text(path, number, line.raw, false));
                let stays = |it: &&LogLine<'_>| !it.goes && !it.raw.trim().is_empty();
                let next = lines[at + 1..].iter().find(stays);
                if says_something && let Some(mark) = next.and_then(|it| line.mark_above(it)) {
                    left.push_str(&mark);
                }
            } else {
                says_something |= line.says_something();
                left.push_str(line.raw);
            }
        }
        let all = self.request.logs.contains_key(log.stem.as_str()) && !says_something;
        cut.text = (!all).then_some(left);
        (all || !cut.lines.is_empty()).then_some(cut)
    }

    /// Returns the text of a vanished log with the targets blank, so that the other lines keep
    /// their numbers; `None` if nothing would remain.
    pub(super) fn blank_lines_in_log(&self, log: &DailyLog) -> Option<String> {
        let goes: HashSet<u32> = log
            .lines()
            .into_iter()
            .filter(|(_, text, _)| self.matches_line(&log.stem, text))
            .map(|(number, ..)| number)
            .collect();
        let body_from = log.lines().first().map_or(1, |it| it.0);
        let mut left = String::new();
        for (number, line) in (1..).zip(log.raw().split_inclusive('\n')) {
            let in_front = number < body_from && self.holds_requested_words(line);
            let end = &line[line.trim_end_matches(['\r', '\n']).len()..];
            left.push_str(if in_front || goes.contains(&number) { end } else { line });
        }
        (!left.trim().is_empty()).then_some(left)
    }

    /// Removes a person's lines from a text that begins on line `first` of its file.
    fn remove_lines(&self, path: &str, first: u32, raw: &str) -> (String, Vec<RemovedText>) {
        let goes = |it: &str| {
            !it.trim().is_empty() && (self.holds_target_words(it) || self.repeats_line(it))
        };
        let mut kept = String::with_capacity(raw.len());
        let mut out = Vec::new();
        for (number, line) in (first..).zip(raw.split_inclusive('\n')) {
            if goes(line) {
                out.push(removed_text(path, number, line, true));
            } else {
                kept.push_str(line);
            }
        }
        (kept, out)
    }
}
fn removed_text(path: &str, line: u32, text: &str, by_person: bool) -> RemovedText {
    RemovedText {
        path: path.to_owned(),
        line,
        text: text.trim().to_owned(),
        by_person,
        whole: None,
    }
}

fn count_lines(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

/// Drops our headings without content.
fn without_empty_sections(blocks: Vec<SummaryBlock>) -> Vec<SummaryBlock> {
    let is_blank =
        |it: &SummaryBlock| matches!(it, SummaryBlock::Other(raw) if raw.trim().is_empty());
    let mut left = Vec::new();
    let mut blocks = blocks.into_iter().peekable();
    while let Some(block) = blocks.next() {
        if !matches!(block, SummaryBlock::Section(..)) {
            left.push(block);
            continue;
        }
        let mut blank = Vec::new();
        while let Some(next) = blocks.next_if(|it| is_blank(it)) {
            blank.push(next);
        }
        let empty = blocks.peek().is_none_or(|it| matches!(it, SummaryBlock::Section(..)));
        if !empty {
            left.push(block);
            left.append(&mut blank);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::{super::request::ForgetRequest, *};
    use crate::memory::bare_words::normalized;
    use crate::memory::joined;

    fn request(lines: &[&str], words: &[&str]) -> ForgetRequest {
        ForgetRequest {
            lines: lines.iter().map(|&it| it.to_owned()).collect(),
            words: words.iter().map(|it| normalized(it)).collect(),
            ..ForgetRequest::default()
        }
    }

    fn log(text: &str) -> DailyLog {
        DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap()
    }

    /// `left` is the log without the lines; `None` if it does not change.
    #[track_caller]
    fn check_log(request: &ForgetRequest, text: &str, left: Option<&str>) {
        let cut = ForgetPatterns::new(request).remove_from_log("x", &log(text));
        assert_eq!(cut.and_then(|it| it.text).as_deref(), left, "{text:?}");
    }

    #[test]
    fn a_log_loses_the_named_lines_and_nothing_else() {
        let secret = request(&["- secret plan"], &[]);
        check_log(&secret, "- a\r\n  - secret plan\r\n- b", Some("- a\r\n- b"));
        check_log(&secret, "\u{feff}- secret plan\n- b\n", Some("\u{feff}- b\n"));
        check_log(&secret, "- a\n- secret plan", Some("- a\n"));
        check_log(&secret, "- secret plans\n", None);
        // What is below it does not move to what is above it.
        check_log(&secret, "- a\n- secret plan\n  - b\n", Some("- a\n- …\n  - b\n"));
        check_log(&secret, "- a\n- secret plan\n\n- b\n", Some("- a\n\n- b\n"));
        let task = request(&["1. [ ] secret plan"], &[]);
        check_log(
            &task,
            "- a\r\n1. [ ] secret plan\r\n   - b\r\n",
            Some("- a\r\n1. …\r\n   - b\r\n"),
        );
        let comment = request(&["# secret"], &[]);
        check_log(&comment, "- a\n```\n# secret\nb\n```\n", Some("- a\n```\nb\n```\n"));
        let heading = request(&["## Secret"], &[]);
        check_log(&heading, "## A\n- a\n## Secret\n- b\n", Some("## A\n- a\n## …\n- b\n"));
        check_log(&heading, "## A\n- a\n## Secret\n## B\n", Some("## A\n- a\n## B\n"));
        check_log(
            &heading,
            "## A\n- a\n## Secret\n### C\n- b\n",
            Some("## A\n- a\n## …\n### C\n- b\n"),
        );
        check_log(
            &request(&[], &["Secret"]),
            "---\nabout: a secret\n---\n- A SECRET\n- b\n",
            Some("---\n---\n- b\n"),
        );
        check_log(
            &request(&[], &["two  words"]),
            "- two words\n- twowords\n",
            Some("- twowords\n"),
        );
    }

    #[test]
    fn lines_of_a_vanished_log_keep_their_numbers() {
        let request = request(&["- two"], &[]);
        let blank = |text: &str| ForgetPatterns::new(&request).blank_lines_in_log(&log(text));
        assert_eq!(blank("- one\r\n- two\r\n- three").as_deref(), Some("- one\r\n\r\n- three"));
        assert_eq!(blank("\n  - two\n"), None);
    }

    #[test]
    fn a_log_that_is_removed_as_a_whole_leaves_nothing() {
        let lines = ["# Day", "- one"].map(str::to_owned).into();
        let request = ForgetRequest {
            logs: [("2026-04-02".to_owned(), lines)].into(),
            ..ForgetRequest::default()
        };
        let patterns = ForgetPatterns::new(&request);
        assert_eq!(patterns.remove_from_log("x", &log("# Day\n\n- one\n")).unwrap().text, None);
        // Lines written meanwhile stay.
        let cut = patterns.remove_from_log("x", &log("# Day\n\n- one\n- two\n")).unwrap();
        assert_eq!(cut.text.as_deref(), Some("\n- two\n"));
        let cut = patterns.remove_from_log("x", &log("# Day\n\n- one\n- 🎉\n")).unwrap();
        assert_eq!(cut.text.as_deref(), Some("\n- 🎉\n"));
        // What an earlier removal left says nothing.
        let cut = patterns.remove_from_log("x", &log("# Day\n- …\n- one\n")).unwrap();
        assert_eq!(cut.text, None);
    }

    const WEEK: &str = "---\ntype: weekly\nperiod: 2026-W14\nmemoird:\n  engine: extractive/1\n  sources: { 2026-04-02: 9c1f2ab04d7e6f58 }\n  items: [ITEMS]\n---\n\n# Week 2026-W14\n\n### Key Outcomes\n- Importer shipped [2026-04-02:3]\n\n### Decisions\n- Chose SQLite [2026-04-02:5,7]\n";

    fn week() -> String {
        let hash = |it: &str| Item { text: it.to_owned(), citation: None }.hash();
        let items = format!("{}, {}", hash("Importer shipped"), hash("Chose SQLite"));
        WEEK.replace("ITEMS", &items)
    }

    #[test]
    fn a_week_loses_the_bullets_that_cite_the_line_and_their_hashes() {
        let mut request = request(&["- anything"], &[]);
        request.found.now.add("2026-04-02", 5);
        let period = "2026-W14".parse().unwrap();
        let cut = ForgetPatterns::new(&request)
            .remove_from_summary("x", period, &week())
            .unwrap()
            .unwrap();
        let text = cut.text.unwrap();
        assert!(
            joined::visible(&text)
                .ends_with("### Key Outcomes\n- Importer shipped [2026-04-02:3]\n\n"),
            "{text}"
        );
        let left = Summary::parse(period, &text).unwrap();
        assert!(left.ownership().missing_hashes.is_empty(), "it would count as a deletion");
        assert_eq!((cut.items[0].line, cut.items[0].by_person), (16, false));
        assert!(
            ForgetPatterns::new(&request)
                .remove_from_summary("x", period, &text)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_persons_bullet_is_removed_when_it_says_the_same() {
        let line = "- 09:05 The launch of Falcon is on Friday #keep";
        let request = request(&[line], &[]);
        let patterns = ForgetPatterns::new(&request);
        let period = "2026-W14".parse().unwrap();
        let mine = "- mine\n- the launch of  Falcon is on friday, I think\n- launch of Falcon is on Friday\n";
        let cut = patterns.remove_from_summary("x", period, &(week() + mine)).unwrap().unwrap();
        let texts: Vec<&str> = cut.items.iter().map(|it| &it.text[..]).collect();
        assert_eq!(
            texts,
            ["the launch of  Falcon is on friday, I think", "launch of Falcon is on Friday"]
        );
        assert!(cut.items.iter().all(|it| it.by_person));
        assert!(cut.text.unwrap().contains("- mine\n"));
    }

    #[test]
    fn versions_are_purged_by_words_and_by_citations() {
        let mut request = request(&["- secret plan"], &[]);
        request.found.ever.add("2026-04-02", 5);
        request.found.unknown.insert("2026-04-03".to_owned());
        let patterns = ForgetPatterns::new(&request);
        for (text, goes) in [
            ("- other words [2026-04-02:4-6]", true),
            ("- other words [2026-04-02:4]", false),
            ("- other words [2026-04-03:9]", true),
            ("a Secret\n  Plan in prose", true),
            (
                "**T**\nx\n<!-- memoird: id=w-1; hash=a; sources=2026-04-02:5; first=2026-04-02; last=2026-04-02 -->",
                true,
            ),
            (
                "---\nname: n\ndescription: d\ntype: user\nsources: [2026-04-02:5#3fa9]\n---\nb\n",
                true,
            ),
            (
                "---\nname: n\ndescription: d\ntype: user\nsources: [2026-04-02:6#3fa9]\n---\nb\n",
                false,
            ),
        ] {
            assert_eq!(patterns.must_purge(text), goes, "{text}");
        }
    }
}
