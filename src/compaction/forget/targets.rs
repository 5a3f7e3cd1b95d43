//! The targets: which lines, bullets, entries, and memories a request covers. Pure.
//!
//! A line is identified by its words, not by its position, so that an interrupted request can be
//! repeated over files that it already changed. What is derived from a line is identified by the
//! address that it cites, and by words: those of the line, and those that a person asked for.

use std::collections::{BTreeSet, HashSet};

use aho_corasick::AhoCorasick;

use super::request::{ForgetRequest, ResolvedTargets};
use crate::memory::{
    address::{Citation, Stem},
    bare_words::{bare_words, normalized},
    item::Item,
    typed::{MemoryType, TypedMemory},
    wisdom::{WisdomEntry, WisdomEntryMeta, WisdomFile},
};

/// Words shorter than this are no evidence when another text contains them.
const DISTINCTIVE_CHARS_MIN: usize = 16;
/// In the history, purging too much is safe.
const PURGED_CHARS_MIN: usize = 8;

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
    pub(super) request: &'a ForgetRequest,
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
    pub(super) fn matches_front_line(&self, stem: &Stem, line: &str) -> bool {
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
    pub(super) fn repeats_line(&self, text: &str) -> bool {
        let text = bare_words(text);
        self.exact.contains(&text)
            || (text.chars().count() >= DISTINCTIVE_CHARS_MIN && self.all_lines.contains(&text))
    }

    pub(super) fn matches_item(&self, path: &str, text: &str, citation: Option<&Citation>) -> bool {
        self.matches_words(path, text)
            || match citation {
                Some(citation) => {
                    self.request.found.now.are_cited_by(citation)
                        || self.exact.contains(&bare_words(text))
                }
                None => self.repeats_line(text),
            }
    }

    pub(super) fn matches_words(&self, path: &str, text: &str) -> bool {
        let named = self.request.items.get(path).is_some_and(|it| it.contains(&normalized(text)));
        named || self.holds_target_words(text)
    }

    pub(super) fn matches_entry(&self, path: &str, entry: &WisdomEntry) -> bool {
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
    for kind in MemoryType::ALL {
        let memory = TypedMemory::parse(name(kind.name()).as_ref(), text).ok();
        found.extend(memory.as_ref().and_then(citation_of));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
