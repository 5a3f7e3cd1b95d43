//! Recognizes reports that nothing happened: a check that found nothing, a session that read its instructions.

use std::{collections::HashSet, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::text::lexicon::SECTIONS;

/// A longer statement reports something besides.
const ROUTINE_WORDS_MAX: usize = 30;

/// How many words after `Read` may precede the first file.
const WORDS_BEFORE_FILE_MAX: usize = 3;

/// Returns whether a text reports that there is nothing to report.
pub(super) fn is_routine_report(text: &str) -> bool {
    static PHRASES: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let phrases = SECTIONS.routine_reports.iter();
        AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .kind(Some(AhoCorasickKind::DFA))
            .build(phrases)
            .ok()
    });
    if text.split_whitespace().nth(ROUTINE_WORDS_MAX).is_some() {
        return false;
    }
    let lower = text.to_lowercase();
    let ends = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() || !c.is_ascii());
    let is_word = |from: usize, to: usize| {
        ends(lower[..from].chars().next_back()) && ends(lower[to..].chars().next())
    };
    let found = PHRASES
        .as_ref()
        .is_some_and(|it| it.find_iter(&lower).any(|it| is_word(it.start(), it.end())));
    found || reads_instructions(&lower)
}

/// Returns whether a text, in lower case, says that the agent read its own instructions or notes.
fn reads_instructions(text: &str) -> bool {
    static FILES: LazyLock<HashSet<&str>> =
        LazyLock::new(|| SECTIONS.instruction_files.iter().copied().collect());
    let is_file = |word: &str| {
        let name = word.trim_matches(|c: char| !c.is_alphanumeric());
        name.starts_with("memory/")
            || name.split('/').any(|it| FILES.contains(it.trim_end_matches('.')))
    };
    let mut words = text.split([' ', ',', ';']).filter(|it| !it.is_empty());
    let is_verb = words.next().is_some_and(|it| SECTIONS.reading_verbs.contains(&it));
    is_verb && words.take(WORDS_BEFORE_FILE_MAX + 1).any(is_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_checks_and_of_reading_instructions_are_routine() {
        for text in [
            "Mail checked at 14:00, nothing urgent",
            "09:01 heartbeat checked `HEARTBEAT.md`; no active tasks.",
            "Read HEARTBEAT.md, TODO.md, checked the inbox",
            "Loaded SOUL.md, USER.md and today's notes before answering",
            "Re-read workspace `AGENTS.md`",
            "Read `memory/tasks/current.md`",
            "Consolidated the notes; no durable facts to promote",
            "读取 AGENTS.md",
        ] {
            assert!(is_routine_report(text), "{text}");
        }
        for text in [
            "Updated AGENTS.md with the rule on berths",
            "Read the manual of the winch",
            "Reading list: tide tables",
            "The harbour master read AGENTS.md to the crew and found two errors",
            "Fixed the heartbeat of the tide service",
        ] {
            assert!(!is_routine_report(text), "{text}");
        }
    }
}
