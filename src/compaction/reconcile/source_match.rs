//! Finds the sources of a memory or an entry in the logs as they are now.
//!
//! A source is an address with a short hash of its line. A line whose hash is found elsewhere in
//! its log was relocated; one that is not found was changed or deleted, and whatever cites it is
//! checked again. Pure, and without the database: files and logs suffice.

use std::collections::{BTreeMap, BTreeSet};

use crate::compaction::grounding;
use crate::{
    memory::{
        address::{Address, Citation, Stem, original_line_number},
        item::Item,
        typed::TypedMemory,
    },
    privacy::{SanitizedLine, SanitizedLog},
    text::words::{self, significant_words},
};

/// A cited line, with the first 4 hex digits of its hash, if recorded.
pub(crate) type CitedLine = (Address, Option<String>);

/// Logs that were read again, by name; `None` for a missing one.
pub(crate) type LogsByStem = BTreeMap<Stem, Option<SanitizedLog>>;

impl grounding::LineLookup for LogsByStem {
    fn log(&self, stem: &Stem) -> Option<&SanitizedLog> {
        self.get(stem)?.as_ref()
    }
}

/// The sources of one memory or entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceMatch {
    /// The lines that were found, at their present addresses; also those of logs that were not
    /// read.
    pub(crate) present: Vec<CitedLine>,
    /// The lines that were not found, at their old addresses.
    pub(crate) lost: Vec<CitedLine>,
    /// Whether any line was found elsewhere.
    pub(crate) moved: bool,
    /// Whether any log is missing: its lines can no longer be checked.
    pub(crate) log_missing: bool,
}

impl SourceMatch {
    /// Finds the sources. `words` is the text that cites them: a short hash may match an unrelated
    /// line.
    pub(crate) fn find(sources: &[CitedLine], logs: &LogsByStem, words: &str) -> Self {
        let mut matched = Self::default();
        let is_in_place = |(at, hash): &CitedLine| match logs.get(&at.stem) {
            None | Some(None) => true,
            Some(Some(log)) => log.line(at.line).is_some_and(|line| {
                let says = !line.text().trim().is_empty();
                hash.as_ref().map_or(says, |hash| line.hash().hex4() == *hash)
            }),
        };
        let mut taken: BTreeSet<Address> =
            sources.iter().filter(|it| is_in_place(it)).map(|it| it.0.clone()).collect();
        let spoken = significant_words(words);
        for source in sources {
            let (at, hash) = source;
            matched.log_missing |= matches!(logs.get(&at.stem), Some(None));
            if is_in_place(source) {
                matched.present.push(source.clone());
                continue;
            }
            let log = logs.get(&at.stem).and_then(Option::as_ref);
            let fits = |line: &&SanitizedLine| {
                hash.as_ref().is_some_and(|it| line.hash().hex4() == *it)
                    && !significant_words(line.text()).is_disjoint(&spoken)
            };
            let lines = log.iter().flat_map(|it| it.lines()).filter(fits);
            let elsewhere = lines
                .map(|line| Address { stem: at.stem.clone(), line: line.number() })
                .filter(|it| !taken.contains(it))
                .min_by_key(|it| it.line.abs_diff(original_line_number(at.line)));
            if let Some(place) = elsewhere {
                matched.moved = true;
                taken.insert(place.clone());
                matched.present.push((place, hash.clone()));
            } else {
                matched.lost.push(source.clone());
            }
        }
        matched
    }

    /// Finds lost lines in another log that was read again. A short hash matches many lines there,
    /// so the line must also share words with the text that cites it.
    pub(crate) fn find_in_log(&mut self, log: &SanitizedLog, words: &str) {
        let spoken = word_set(words);
        for (at, hash) in std::mem::take(&mut self.lost) {
            let fits = |line: &&SanitizedLine| {
                let said = word_set(line.text());
                *log.stem() != at.stem
                    && hash.as_ref().is_some_and(|it| line.hash().hex4() == *it)
                    && said.intersection(&spoken).count() * 2 > said.len()
            };
            match log.lines().iter().find(fits) {
                Some(line) => {
                    self.moved = true;
                    self.present.push((log.address(line), hash));
                }
                None => self.lost.push((at, hash)),
            }
        }
    }

    /// Returns the lines that the text may cite now: those that were found, and the present lines
    /// at the addresses of lost ones.
    pub(crate) fn current_lines(&self) -> Option<Citation> {
        let present = self.present.iter().map(|it| it.0.clone());
        let lines: Vec<Address> = present.chain(self.lost.iter().map(former_address)).collect();
        Citation::from_addresses(&lines)
    }

    /// Returns the lines that were found.
    pub(crate) fn present_lines(&self) -> Option<Citation> {
        Citation::from_addresses(self.present.iter().map(|it| &it.0))
    }
}

/// Returns where a lost line would be.
fn former_address((at, _): &CitedLine) -> Address {
    Address { stem: at.stem.clone(), line: original_line_number(at.line) }
}

/// Returns the cited lines that contain any of the words, if together they contain all of them and
/// pass the grounding check.
///
/// This is stricter than the check of a draft: nobody reads these lines again.
pub(crate) fn lines_stating(
    words: &str,
    citation: &Citation,
    logs: &LogsByStem,
) -> Option<Vec<CitedLine>> {
    let spoken = word_set(words);
    let mut missing = spoken.clone();
    let mut lines = Vec::new();
    for at in citation.addresses() {
        let Some(line) = grounding::LineLookup::line(logs, &at.stem, at.line) else { continue };
        let said = word_set(line.text());
        if !said.is_disjoint(&spoken) {
            missing.retain(|it| !said.contains(it));
            lines.push((at, Some(line.hash().hex4())));
        }
    }
    let citation = Citation::from_addresses(lines.iter().map(|it| &it.0))?;
    let item = Item { text: words.to_owned(), citation: Some(citation) };
    (missing.is_empty() && grounding::check(&item, logs).is_ok()).then_some(lines)
}

/// Returns how well a new memory replaces one that lost lines; `None` if it is about something
/// else. Higher is better.
pub(crate) fn successor_rank(
    new: &TypedMemory,
    old: &TypedMemory,
    matched: &SourceMatch,
) -> Option<u8> {
    if new.kind != old.kind {
        return None;
    }
    let mut shared = word_overlap(&memory_text(new), &memory_text(old));
    if !old.is_managed() {
        // Another wording usually keeps the title or the line of the index.
        for label in [&old.name, &old.description] {
            shared = shared.max(word_overlap(&memory_text(new), label));
        }
    }
    let same_line = |(at, hash): &(Address, String)| {
        let noted = |it: &CitedLine| it.1.as_ref() == Some(hash);
        matched.present.iter().any(|it| it.0 == *at && noted(it))
            || (shared > 0.0 && matched.lost.iter().any(noted))
    };
    let same_place =
        |(at, _): &(Address, String)| matched.lost.iter().any(|it| former_address(it) == *at);
    if new.sources.iter().any(same_line) {
        Some(3)
    } else if same_topic(new, old) {
        Some(2)
    } else if new.sources.iter().any(same_place) && shared >= SIMILAR_SHARE {
        Some(1)
    } else {
        // In a person's file the number of a lost line stays as it is.
        let same_log =
            |(at, _): &(Address, String)| matched.lost.iter().any(|it| it.0.stem == at.stem);
        (!old.is_managed() && new.sources.iter().any(same_log) && shared >= VERY_SIMILAR_SHARE)
            .then_some(0)
    }
}

/// From this share of common words on, two statements are about the same.
pub(crate) const SIMILAR_SHARE: f64 = 0.4;
/// The same, if nothing else indicates it.
const VERY_SIMILAR_SHARE: f64 = 0.6;

/// Returns the share of the shorter text's words that the other one has too.
pub(crate) fn word_overlap(a: &str, b: &str) -> f64 {
    let (a, b) = (significant_words(a), significant_words(b));
    let shared = a.intersection(&b).count();
    #[expect(clippy::cast_precision_loss, reason = "counts of words")]
    let share = shared as f64 / a.len().min(b.len()).max(1) as f64;
    share
}

/// Returns the statement of a memory, without the labels that we add.
pub(crate) fn memory_text(memory: &TypedMemory) -> String {
    memory.body.replace("**Why:**", " ").replace("**How to apply:**", " ").trim().to_owned()
}

/// Returns whether two names differ at most in the number that distinguishes files of one topic.
fn same_topic(a: &TypedMemory, b: &TypedMemory) -> bool {
    let topic = |it: &TypedMemory| {
        let name = it.file_name.to_string_lossy().into_owned();
        let name = name.trim_end_matches(".md").to_owned();
        match name.rsplit_once('-') {
            Some((topic, number)) if number.bytes().all(|b| b.is_ascii_digit()) => topic.to_owned(),
            _ => name,
        }
    };
    topic(a) == topic(b)
}

/// Returns the words of a text, in lower case.
fn word_set(text: &str) -> BTreeSet<String> {
    words::lowercase_runs(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{memory::log::DailyLog, privacy};

    const STEM: &str = "2026-04-02";

    fn logs(text: Option<&str>) -> LogsByStem {
        let stem: Stem = STEM.parse().unwrap();
        let read = |text: &str| {
            privacy::sanitize(
                &DailyLog::parse(stem.clone(), text.as_bytes()).unwrap(),
                &privacy::PrivacyRules::default(),
            )
        };
        LogsByStem::from([(stem.clone(), text.map(read))])
    }

    fn source(line: u32, text: &str) -> CitedLine {
        let at = Address { stem: STEM.parse().unwrap(), line };
        (at, Some(crate::memory::hash::ContentHash::of(text).hex4()))
    }

    /// `lines` are the present numbers of the cited lines `alpha` (1), `beta` (2) and `gamma` (3).
    #[track_caller]
    fn check(now: &str, lines: &str) {
        let sources = [source(1, "- alpha"), source(2, "- beta"), source(3, "- gamma")];
        let found = SourceMatch::find(&sources, &logs(Some(now)), "alpha beta gamma");
        let numbers = |sources: &[CitedLine]| -> Vec<String> {
            sources.iter().map(|(at, _)| at.line.to_string()).collect()
        };
        let text = format!(
            "{}/{}{}",
            numbers(&found.present).join(" "),
            numbers(&found.lost).join(" "),
            if found.moved { " moved" } else { "" }
        );
        assert_eq!(text, lines, "{now}");
    }

    #[test]
    fn lines_are_found_by_their_hashes() {
        check("- alpha\n- beta\n- gamma", "1 2 3/");
        check("top\n- alpha\n- beta\n- gamma", "2 3 4/ moved");
        check("- alpha\n- gamma", "1 2/2 moved");
        check("- alpha\n- beta two\n- gamma", "1 3/2");
        check("- gamma\n- beta\n- alpha", "3 2 1/ moved");
        check("", "/1 2 3");
    }

    #[test]
    fn a_chance_hash_match_is_ignored() {
        let sources = [source(1, "- delta")];
        let found = SourceMatch::find(&sources, &logs(Some("top\n- delta")), "alpha");
        assert_eq!(found.lost, sources);
    }

    #[test]
    fn a_missing_or_unread_log_loses_no_line() {
        let sources = [source(1, "- alpha")];
        for (logs, gone) in [(logs(None), true), (LogsByStem::new(), false)] {
            let found = SourceMatch::find(&sources, &logs, "alpha");
            assert_eq!(
                (found.present, found.lost, found.log_missing),
                (sources.to_vec(), vec![], gone)
            );
        }
    }

    #[track_caller]
    fn check_support(words: &str, now: &str, expected: bool) {
        let citation = format!("{STEM}:1-2").parse().unwrap();
        assert_eq!(
            lines_stating(words, &citation, &logs(Some(now))).is_some(),
            expected,
            "{words}"
        );
    }

    #[test]
    fn words_are_supported_only_if_each_of_them_is() {
        check_support("Use SQLite for staging.", "- **Use** SQLite for staging", true);
        check_support("Use SQLite for staging.", "- Use SQLite\n  for staging", true);
        check_support("Use SQLite for staging.", "- Use DuckDB for staging", false);
        check_support("Always deploy on Friday", "- Never deploy on Friday", false);
        check_support("Use SQLite for staging.", "\n", false);
    }
}
