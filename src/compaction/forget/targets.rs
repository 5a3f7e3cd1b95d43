//! The targets: which lines, bullets, entries, and memories a request covers, and the texts without
//! them. Pure.
//!
//! A line is identified by its words, not by its position, so that an interrupted request can be
//! repeated over files that it already changed. What is derived from a line is identified by the
//! address that it cites, and by words: those of the line, and those that a person asked for.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use aho_corasick::AhoCorasick;
use serde::{Deserialize, Serialize};

use super::log_line::LogLine;
use crate::{
    memory::{
        address::{Address, Citation, Stem},
        bare_words::{bare_words, normalized},
        document::{BulletOwner, Summary, SummaryBlock, SummaryError},
        frontmatter,
        hash::ContentHash,
        index,
        item::Item,
        log::DailyLog,
        markdown::LineKind,
        period::Period,
        statement::{MemoryStatement, StatementKind},
        typed::{TypedMemory, description_hash},
        wisdom::{WisdomEntry, WisdomEntryMeta, WisdomFile},
    },
    privacy::PrivacyRules,
};

/// Words shorter than this are no evidence when another text contains them.
const DISTINCTIVE_CHARS_MIN: usize = 16;
/// In the history, purging too much is safe.
const PURGED_CHARS_MIN: usize = 8;

/// What a person wants forgotten, and what was found before anything was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForgetRequest {
    /// Lines of logs, without surrounding white space, at any position.
    pub lines: BTreeSet<String>,
    /// Logs to be forgotten as a whole, each with its lines.
    pub logs: BTreeMap<String, BTreeSet<String>>,
    /// Words, [`normalized`]: all lines and items that contain them, as whole words, are removed.
    pub words: BTreeSet<String>,
    /// Bullets and entries by their normalized words, per file.
    pub items: BTreeMap<String, BTreeSet<String>>,
    /// Typed memories, by path.
    pub memories: BTreeSet<String>,
    /// Whether the lines are also removed from the logs.
    pub from_log: bool,
    /// What it was resolved to at the beginning.
    pub found: ResolvedTargets,
}

/// What only the unchanged files reveal; recorded for a second attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResolvedTargets {
    /// The normalized words of everything derived from the lines.
    pub texts: BTreeSet<String>,
    /// Paths of the typed memories among it; their names are built from the words.
    pub names: BTreeSet<String>,
    /// The addresses of the lines, as generated files cite them now.
    pub now: LinesByStem,
    /// The short hash of each of these lines, by which memories and entries identify it.
    #[serde(default)]
    pub hashes: BTreeMap<String, String>,
    /// Their addresses in any version of their logs.
    pub ever: LinesByStem,
    /// Logs that are removed as a whole: no file names them any more.
    pub logs: BTreeSet<String>,
    /// Logs for which the former addresses are not known in every version.
    pub unknown: BTreeSet<String>,
    /// Lines of session records that repeat the lines, without surrounding white space.
    #[serde(default)]
    pub record_lines: BTreeSet<String>,
}

/// Lines of files, by stem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinesByStem(BTreeMap<String, BTreeSet<u32>>);

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

impl ResolvedTargets {
    /// Adds a line at its present address.
    pub(super) fn add_line(&mut self, stem: &Stem, line: u32, text: &str) {
        self.now.add(stem.as_str(), line);
        self.hashes.insert(format!("{stem}:{line}"), ContentHash::of(text).hex4());
    }

    /// Returns whether one of the lines was cited at this address, with this hash if recorded.
    fn is_cited_line(&self, at: &Address, hash: Option<&String>) -> bool {
        self.now.contains(at)
            && hash.is_none_or(|it| self.hashes.get(&at.to_string()).is_none_or(|line| line == it))
    }
}

impl LinesByStem {
    fn contains(&self, at: &Address) -> bool {
        self.0.get(at.stem.as_str()).is_some_and(|it| it.contains(&at.line))
    }

    pub(super) fn add(&mut self, stem: &str, line: u32) {
        self.0.entry(stem.to_owned()).or_default().insert(line);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (stem, lines) in &other.0 {
            self.0.entry(stem.clone()).or_default().extend(lines);
        }
    }

    pub(super) fn stems(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns whether the citation names one of the lines.
    pub(super) fn are_cited_by(&self, citation: &Citation) -> bool {
        citation.files().any(|(stem, lines)| {
            self.0.get(stem.as_str()).is_some_and(|it| it.iter().any(|line| lines.contains(*line)))
        })
    }
}

/// Returns whether this is a letter of a language whose words end at spaces. Others set particles beside a word without
/// one: there forgetting too much is safe.
fn is_latin(c: char) -> bool {
    c.is_alphabetic() && u32::from(c) < 0x250
}

/// Returns whether a part of a text is made of whole words or numbers, perhaps with the `s` of a genitive.
fn is_whole_word(text: &str, start: usize, end: usize) -> bool {
    // `zqx` is the beginning of the code `zqx0009`.
    let goes_on = |c: Option<char>, beside: Option<char>| {
        let are = |is: fn(char) -> bool| c.is_some_and(is) && beside.is_some_and(is);
        are(is_latin) || are(char::is_numeric)
    };
    let before = text[..start].chars().next_back();
    let rest = text[end..].strip_prefix('s').filter(|it| !it.starts_with(char::is_alphanumeric));
    let after = rest.unwrap_or(&text[end..]).chars().next();
    let inside = &text[start..end];
    !goes_on(before, inside.chars().next()) && !goes_on(after, inside.chars().next_back())
}

/// A request prepared for searching.
pub(super) struct ForgetPatterns<'a> {
    request: &'a ForgetRequest,
    words: Option<AhoCorasick>,
    /// The words of lines that are long enough to be distinctive.
    distinctive: Option<AhoCorasick>,
    /// Everything that no version may contain.
    purged: Option<AhoCorasick>,
    /// The words of lines.
    exact: HashSet<String>,
    /// The same in one text, one per line, to find parts of a line.
    all_lines: String,
}

impl<'a> ForgetPatterns<'a> {
    pub(super) fn new(request: &'a ForgetRequest) -> Self {
        let cores: BTreeSet<String> =
            request.lines.iter().map(|it| bare_words(it)).filter(|it| !it.is_empty()).collect();
        let longer = |than: usize| cores.iter().filter(move |it| it.chars().count() >= than);
        let found = request.found.texts.iter().filter(|it| it.chars().count() >= PURGED_CHARS_MIN);
        let names: Vec<String> = request
            .found
            .names
            .iter()
            .map(|it| normalized(it.rsplit('/').next().unwrap_or(it)))
            .collect();
        let purged =
            request.words.iter().chain(longer(PURGED_CHARS_MIN)).chain(found).chain(&names);
        Self {
            words: automaton(request.words.iter()),
            distinctive: automaton(longer(DISTINCTIVE_CHARS_MIN)),
            purged: automaton(purged),
            all_lines: cores.iter().flat_map(|it| [it, "\n"]).collect(),
            exact: cores.into_iter().collect(),
            request,
        }
    }

    /// Returns whether a line of a log is removed.
    pub(super) fn matches_line(&self, stem: &Stem, line: &str) -> bool {
        let line = line.trim();
        if line.is_empty() {
            return false;
        }
        self.request.lines.contains(line)
            || self.request.logs.get(stem.as_str()).is_some_and(|it| it.contains(line))
            || self.holds_requested_words(line)
            || self.exact.contains(&bare_words(line))
            || self.repeats_in_record(stem, line)
    }

    /// Returns whether a line of a session record repeats a removed line: entries in logs and lines of records
    /// are made of the same messages.
    pub(super) fn repeats_in_record(&self, stem: &Stem, line: &str) -> bool {
        stem.is_session()
            && (self.request.found.record_lines.contains(line.trim())
                || self.holds_target_words(line)
                || self.repeats_line(line))
    }

    /// Returns whether a line of a frontmatter is removed.
    fn matches_front_line(&self, stem: &Stem, line: &str) -> bool {
        // The id names the file.
        let value = line.split_once(": ").filter(|it| it.0 != "id").map(|it| it.1.trim());
        let value = value.map(|it| it.trim_matches(['"', '\'']));
        line.trim() != "---"
            && (self.holds_requested_words(line)
                || stem.is_session() && value.is_some_and(|it| self.repeats_value(it)))
    }

    /// Returns whether a value, which may be cut off, repeats a removed line.
    fn repeats_value(&self, value: &str) -> bool {
        let is_start = |cut: &str| {
            let cut = normalized(cut);
            cut.chars().count() >= DISTINCTIVE_CHARS_MIN && self.all_lines.contains(&cut)
        };
        self.exact.contains(&bare_words(value))
            || self.holds_target_words(value)
            || value.strip_suffix('…').is_some_and(is_start)
    }

    /// Returns whether a text contains the requested words.
    pub(super) fn holds_requested_words(&self, text: &str) -> bool {
        self.has_requested_words(&normalized(text))
    }

    /// The same, for a normalized text. `tom` is no part of `customers`.
    fn has_requested_words(&self, text: &str) -> bool {
        let is_whole = |words: &String| {
            let starts = text.char_indices().map(|it| it.0);
            let mut found = starts.filter(|it| text[*it..].starts_with(&words[..]));
            found.any(|it| is_whole_word(text, it, it + words.len()))
        };
        self.words.as_ref().is_some_and(|it| it.is_match(text))
            && self.request.words.iter().any(is_whole)
    }

    /// Returns whether a text contains the requested words or those of a removed line.
    pub(super) fn holds_target_words(&self, text: &str) -> bool {
        let text = normalized(text);
        self.has_requested_words(&text)
            || self.distinctive.as_ref().is_some_and(|it| it.is_match(&text))
    }

    /// Returns whether a text without citation says what a removed line says.
    fn repeats_line(&self, text: &str) -> bool {
        let text = bare_words(text);
        self.exact.contains(&text)
            || (text.chars().count() >= DISTINCTIVE_CHARS_MIN && self.all_lines.contains(&text))
    }

    fn matches_item(&self, path: &str, text: &str, citation: Option<&Citation>) -> bool {
        self.matches_words(path, text)
            || match citation {
                Some(citation) => {
                    self.request.found.now.are_cited_by(citation)
                        || self.exact.contains(&bare_words(text))
                }
                None => self.repeats_line(text),
            }
    }

    fn matches_words(&self, path: &str, text: &str) -> bool {
        let named = self.request.items.get(path).is_some_and(|it| it.contains(&normalized(text)));
        named || self.holds_target_words(text)
    }

    fn matches_entry(&self, path: &str, entry: &WisdomEntry) -> bool {
        let text = entry.words();
        let cites_line = |mark: &WisdomEntryMeta| {
            let mut cited = mark.sources.addresses();
            cited.any(|at| self.request.found.is_cited_line(&at, mark.lines.get(&at)))
        };
        self.matches_words(path, &text)
            || match &entry.meta {
                Some(mark) => cites_line(mark) || self.exact.contains(&bare_words(&entry.text)),
                None => self.repeats_line(&text) || self.repeats_line(&entry.text),
            }
    }

    /// Returns whether the request names the file of a typed memory.
    pub(super) fn names_file(&self, path: &str) -> bool {
        self.request.memories.contains(path)
    }

    /// Returns whether the file of a typed memory is removed.
    pub(super) fn matches_memory(&self, path: &str, memory: &TypedMemory) -> bool {
        let texts = || [&memory.name, &memory.description, &memory.body];
        self.request.memories.contains(path)
            || memory
                .sources
                .iter()
                .any(|(at, hash)| self.request.found.is_cited_line(at, Some(hash)))
            || (memory.is_managed() && texts().into_iter().any(|it| self.holds_target_words(it)))
    }

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

    /// Returns whether a version must be purged. A text that cites a former address of a line may
    /// repeat it in other words.
    pub(super) fn must_purge(&self, text: &str) -> bool {
        let ResolvedTargets { ever, unknown, .. } = &self.request.found;
        self.purged.as_ref().is_some_and(|it| it.is_match(&normalized(text)))
            || text.lines().any(|it| self.request.lines.contains(it.trim()))
            || all_citations(text).iter().any(|it| {
                ever.are_cited_by(it) || it.files().any(|(stem, _)| unknown.contains(stem.as_str()))
            })
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

pub(super) fn citation_of(memory: &TypedMemory) -> Option<Citation> {
    Citation::from_addresses(memory.sources.iter().map(|(address, _)| address))
}

fn automaton<'w>(words: impl Iterator<Item = &'w String>) -> Option<AhoCorasick> {
    let words: Vec<&str> = words.map(String::as_str).filter(|it| !it.is_empty()).collect();
    // Building fails only for patterns that do not fit into memory.
    if words.is_empty() { None } else { AhoCorasick::new(words).ok() }
}

/// Returns all citations of a generated file of any kind: after bullets, in the comments of
/// entries, and in the frontmatter of a typed memory.
fn all_citations(text: &str) -> Vec<Citation> {
    let mut found: Vec<Citation> =
        text.lines().filter_map(|it| Item::parse(it.trim_end()).citation).collect();
    let wisdom = WisdomFile::parse(text);
    found.extend(wisdom.entries().filter_map(|it| it.meta.as_ref().map(|it| it.sources.clone())));
    let name = |kind: &str| format!("{kind}_x.md");
    for kind in crate::memory::typed::MemoryType::ALL {
        let memory = TypedMemory::parse(name(kind.name()).as_ref(), text).ok();
        found.extend(memory.as_ref().and_then(citation_of));
    }
    found
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
    use super::*;
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
    fn words_are_whole_in_scripts_with_spaces() {
        let has = |text: &str, words: &str| {
            text.match_indices(words).any(|it| is_whole_word(text, it.0, it.0 + words.len()))
        };
        for words in ["tom", "müller", "分析", "c++"] {
            for text in ["{} came", "with {}", "\u{ab}{}\u{bb}", "{}'s bike", "{}s bike"] {
                let text = text.replace("{}", words);
                assert!(has(&text, words), "{text}");
            }
        }
        for text in ["the customers came", "tomatoes", "atom"] {
            assert!(!has(text, "tom"), "{text}");
        }
        assert!(has("先转录再分析文件", "分析"));
        assert!(has("민수가 왔다", "민수"));
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
