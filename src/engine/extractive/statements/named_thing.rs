//! The thing of which a text says that something happened to it: `Removed Atlas`, `The redirect list is done`; and what
//! a task is to make: `write the redirect list before Friday`. Pure.

use std::ops::Range;

use super::{
    terms::{StatementTerms, TermExtractor, is_stop_word},
    word_list::WordList,
};
use crate::{
    engine::extractive::cue_phrases::{CueTable, MADE, MAKING},
    text::lexicon::{CUES, SEARCH, WISDOM},
};

/// The fewest content words that name a thing which is no entity: one word has too many meanings.
const NAME_STEMS_MIN: usize = 2;

const NAME_STEMS_MAX: usize = 5;

/// The most words before the one that says what happened, if the name follows: `Mona removed Atlas`.
const WORDS_BEFORE_MAX: usize = 2;

/// Returns the words that name what something happened to, as one of the cues says. `None` if that is a part of
/// something, or is denied or only possible.
pub(in crate::engine::extractive) fn name_beside(
    text: &str,
    words: &WordList,
    cues: CueTable,
) -> Option<Range<usize>> {
    let (cue, width) = words.find(cues)?;
    let leaves_open = |it: &str| CUES.negations.contains(&it) || WISDOM.unreal_words.contains(&it);
    if words.iter().any(leaves_open) {
        return None;
    }
    let is_stop = |at: usize| words.get(at).is_none_or(is_stop_word);
    let ends = |at: usize| at >= words.len() || begins_clause(text, words, at);
    let after = cue + width;
    let (start, end) = if ends(after) {
        // `The morning report was removed`.
        let start = (0..cue).find(|it| !is_article(words, *it))?;
        let is_passive =
            |at: usize| words.get(at).is_some_and(|it| WISDOM.passive_words.contains(&it));
        (start, (start + 1..=cue).rev().find(|it| !is_passive(it - 1))?)
    } else {
        if cue > WORDS_BEFORE_MAX {
            return None;
        }
        let start = (after..words.len()).find(|it| !is_article(words, *it))?;
        (start, (start + 1..=words.len()).find(|it| ends(*it))?)
    };
    let is_one_name = (start..end).all(|it| !is_stop(it))
        && (start + 1..end).all(|it| !begins_clause(text, words, it));
    if !is_one_name {
        return None;
    }
    Some(start..end)
}

/// Returns the terms of a name between two words; `None` if it has too few or too many.
pub(in crate::engine::extractive) fn named_terms(
    text: &str,
    words: &WordList,
    name: Range<usize>,
    extractor: &mut TermExtractor,
) -> Option<StatementTerms> {
    let bytes = words.offset(name.start)?..words.offset(name.end).unwrap_or(text.len());
    let terms = extractor.extract(&WordList::of(&text[bytes]));
    (NAME_STEMS_MIN..=NAME_STEMS_MAX).contains(&terms.stems.len()).then_some(terms)
}

/// Returns the terms of what a text says was made, and of nothing else: `Redirect list done`.
pub(in crate::engine::extractive) fn made_thing(
    text: &str,
    words: &WordList,
    extractor: &mut TermExtractor,
) -> Option<StatementTerms> {
    named_terms(text, words, name_beside(text, words, MADE)?, extractor)
}

/// Returns the terms of what a task is to make: `write the redirect list before Friday`. Who is to send or to check
/// something is not done when it is there.
pub(in crate::engine::extractive) fn thing_to_make(
    text: &str,
    words: &WordList,
    extractor: &mut TermExtractor,
) -> Option<StatementTerms> {
    let (cue, width) = words.find(MAKING).filter(|it| it.0 <= WORDS_BEFORE_MAX)?;
    let start = (cue + width..words.len()).find(|it| !is_article(words, *it))?;
    let is_end = |it: &str| is_stop_word(it) || SEARCH.span_ends.contains(&it);
    let ends = |at: &usize| words.get(*at).is_none_or(is_end) || begins_clause(text, words, *at);
    let end = (start + 1..=words.len()).find(ends)?;
    named_terms(text, words, start..end, extractor)
}

fn is_article(words: &WordList, at: usize) -> bool {
    words.get(at).is_some_and(|it| WISDOM.articles.contains(&it))
}

/// Returns whether there is punctuation between a word and the one before it.
fn begins_clause(text: &str, words: &WordList, at: usize) -> bool {
    const MARKS: &[char] =
        &['.', ',', ';', ':', '(', ')', '—', '–', '→', '，', '。', '：', '；', '、', '（'];
    let before = words.offset(at).map_or("", |it| text[..it].trim_end());
    before.ends_with(MARKS) || before.ends_with(" -")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(task: &str, report: &str, is_done: bool) {
        let extractor = &mut TermExtractor::default();
        let to_make = thing_to_make(task, &WordList::of(task), extractor).unwrap();
        let made = made_thing(report, &WordList::of(report), extractor);
        assert_eq!(made == Some(to_make), is_done, "{task} / {report}");
    }

    #[test]
    fn a_task_is_done_when_the_thing_is_there() {
        let task = "write the redirect list before the domain moves";
        for report in [
            "Redirect list done.",
            "The redirect list is finished",
            "Wrote the redirect list",
            "The redirect list was written, 40 lines",
        ] {
            check(task, report, true);
        }
        for report in [
            "Redirect list not done",
            "The redirect list is almost done",
            "The first redirect list is done",
            "The redirect list will be done by Friday",
            "Redirect list sent to Ines",
            "Tide list done",
        ] {
            check(task, report, false);
        }
        check("To do: draft the tide report", "Tide report drafted", true);
    }

    #[test]
    fn what_is_to_be_sent_is_not_done_when_it_is_there() {
        let task = "send the redirect list to Ines";
        assert_eq!(thing_to_make(task, &WordList::of(task), &mut TermExtractor::default()), None);
    }
}
