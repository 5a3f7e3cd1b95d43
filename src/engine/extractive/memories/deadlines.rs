//! Goals and deadlines with an explicit date.

use super::{
    CODE_SHARE_MAX, NAME_CHARS_MAX, candidate::MemoryCandidate, keep_mark::without_keep,
    reports::is_report,
};
use crate::{
    engine::extractive::{
        cue_phrases,
        statements::{
            blocks::LogSentence,
            self_contained::{code_share, is_self_contained},
            titles::{capitalize_title, title_of},
            word_list::WordList,
        },
    },
    memory::typed::MemoryType,
};

pub(super) fn deadline(sentences: &[LogSentence]) -> Option<MemoryCandidate> {
    let sentence = sentences.iter().find(|it| {
        let words = it.words();
        words.has(cue_phrases::DEADLINE)
            && has_date(words)
            && is_self_contained(&it.text)
            && !is_report(&it.text)
            && (!words.opens_with(cue_phrases::TASK_OPENERS)
                || words.opens_with(cue_phrases::DEADLINE))
            && code_share(&it.text) <= CODE_SHARE_MAX
    })?;
    let statement = without_keep(&sentence.text).into_owned();
    Some(MemoryCandidate {
        kind: MemoryType::Project,
        score: 8,
        title: capitalize_title(&title_of(&statement, NAME_CHARS_MAX)),
        statement,
        why: None,
        how_to_apply: None,
        lines: sentence.lines.iter().copied().collect(),
    })
}

/// Returns whether the words contain a date: a full one, or a day next to a month.
pub(crate) fn has_date(words: &WordList) -> bool {
    let list: Vec<&str> = words.iter().collect();
    let is_day = |w: &str| {
        let digits = w.trim_end_matches(|c: char| c.is_alphabetic());
        digits.parse::<u32>().is_ok_and(|n| (1..=31).contains(&n))
    };
    let is_year =
        |w: &str| w.len() == 4 && w.parse::<u32>().is_ok_and(|n| (1990..2200).contains(&n));
    list.iter().enumerate().any(|(i, word)| {
        let near = |from: usize, to: usize| list.get(from..to.min(list.len())).unwrap_or_default();
        if cue_phrases::MONTHS.contains(word) {
            near(i.saturating_sub(2), i + 2).iter().any(|w| is_day(w) || is_year(w))
        } else {
            is_year(word) && near(i + 1, i + 3).iter().filter(|w| is_day(w)).count() == 2
        }
    })
}
