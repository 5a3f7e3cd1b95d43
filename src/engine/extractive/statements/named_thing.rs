//! The thing of which a text says that something happened to it: `Removed Atlas`, `The redirect list is done`; what a
//! task is to make: `write the redirect list before Friday`; and what is to be done with a thing: `send the list to
//! Ines`. Pure.

use std::ops::Range;

use super::{
    replacement::END_WORDS,
    terms::{StatementTerms, TermExtractor, is_stop_word},
    word_list::WordList,
};
use crate::{
    engine::extractive::cue_phrases::{CueTable, DEEDS_DONE, DEEDS_TO_DO, MADE, MAKING},
    text::{
        calendar,
        lexicon::{CUES, SEARCH, WISDOM},
    },
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
    if words.iter().any(leaves_open) {
        return None;
    }
    let ends = |at: usize| at >= words.len() || begins_clause(text, words, at);
    let after = cue + width;
    if ends(after) {
        return name_before(text, words, cue);
    }
    if cue > WORDS_BEFORE_MAX {
        return None;
    }
    let start = (after..words.len()).find(|it| !is_article(words, *it))?;
    let end = (start + 1..=words.len()).find(|it| ends(*it))?;
    is_one_name(text, words, &(start..end)).then_some(start..end)
}

/// What is to be done with a thing, or was: to send the redirect list to Ines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::extractive) struct Deed {
    /// The index of the verb, and the thing: of a task and its report these are the same.
    pub(in crate::engine::extractive) key: (usize, StatementTerms),
    /// Whatever else the text says.
    context: StatementTerms,
}

impl Deed {
    /// Reads what a task is to do with a thing.
    pub(in crate::engine::extractive) fn to_do(
        text: &str,
        words: &WordList,
        extractor: &mut TermExtractor,
    ) -> Option<Self> {
        let (cue, width) = words.find(DEEDS_TO_DO).filter(|it| it.0 <= WORDS_BEFORE_MAX)?;
        let verb = CUES.deeds.iter().position(|it| is_one_of(words, cue, width, &it.to_do))?;
        let thing = thing_after(text, words, cue + width)?;
        // Who does it, and the words before it, may be missing in the report.
        let rest = words.offset(thing.end).map_or("", |it| &text[it..]);
        Self::new(text, words, (verb, thing), without_deadline(rest), extractor)
    }

    /// Reads what was done with a thing. `None` if that is denied or only possible.
    pub(in crate::engine::extractive) fn done(
        text: &str,
        words: &WordList,
        extractor: &mut TermExtractor,
    ) -> Option<Self> {
        let (cue, width) = words.find(DEEDS_DONE)?;
        let is_open = |it: &str| leaves_open(it) || END_WORDS.open.contains(it);
        // `Missing: the signed contract`
        let is_attribute = cue > 0 && is_article(words, cue - 1);
        if is_attribute || words.iter().any(is_open) {
            return None;
        }
        let verb = CUES.deeds.iter().position(|it| is_one_of(words, cue, width, &it.done))?;
        let after = thing_after(text, words, cue + width).filter(|_| cue <= WORDS_BEFORE_MAX);
        // `Deleted accounts are restored`
        let is_subject = |it: &Range<usize>| {
            words.get(it.end).is_some_and(|it| {
                WISDOM.passive_words.contains(&it) || WISDOM.copulas.contains(&it)
            })
        };
        if after.as_ref().is_some_and(is_subject) {
            return None;
        }
        // `The announcement was sent to all` names it before the verb.
        let thing = match after {
            Some(thing) => thing,
            None => name_before(text, words, cue)?,
        };
        Self::new(text, words, (verb, thing), text, extractor)
    }

    fn new(
        text: &str,
        words: &WordList,
        (verb, thing): (usize, Range<usize>),
        context: &str,
        extractor: &mut TermExtractor,
    ) -> Option<Self> {
        let thing = terms_between(text, words, thing, extractor)?;
        let is_name = (1..=NAME_STEMS_MAX).contains(&thing.stems.len());
        let context = extractor.extract(&WordList::of(context));
        is_name.then_some(Self { key: (verb, thing), context })
    }

    /// Returns whether a report with the same key says of this task that it was done: to whom, with what, and of
    /// which number or month, if the task says so.
    pub(in crate::engine::extractive) fn is_done_by(&self, report: &Self) -> bool {
        self.context.stems.is_subset(&report.context.stems)
            && self.context.values.is_subset(&report.context.values)
    }
}

/// Returns the words of a task before the day on which it is due: `to Ines by Friday`, `on 3 May`.
fn without_deadline(rest: &str) -> &str {
    const BEFORE_DAYS: [&str; 14] = [
        "by", "on", "before", "until", "till", "am", "bis", "vor", "avant", "le", "antes", "el",
        "entro", "voor",
    ];
    let words: Vec<&str> = rest.split_whitespace().collect();
    let names_day = |it: &str| {
        let bare = it.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        bare.starts_with(|c: char| c.is_ascii_digit())
            || calendar::weekday_names().contains(&&bare[..])
            || calendar::month_names().contains(&&bare[..])
    };
    let starts =
        |pair: &[&str]| BEFORE_DAYS.contains(&&pair[0].to_lowercase()[..]) && names_day(pair[1]);
    let deadline = words.windows(2).find(|it| starts(it));
    // Each word is a part of the text.
    deadline.map_or(rest, |it| &rest[..it[0].as_ptr().addr() - rest.as_ptr().addr()])
}

fn is_one_of(words: &WordList, at: usize, width: usize, phrases: &[&'static str]) -> bool {
    phrases.iter().any(|it| words.phrase_len_at(at, it) == Some(width))
}

/// Returns whether a word says that something did not happen, or only may.
pub(in crate::engine::extractive) fn leaves_open(word: &str) -> bool {
    CUES.negations.contains(&word) || WISDOM.unreal_words.contains(&word)
}

/// Returns the words from one on that name a thing, without articles before them.
fn thing_after(text: &str, words: &WordList, from: usize) -> Option<Range<usize>> {
    let start = (from..words.len()).find(|it| !is_article(words, *it))?;
    let is_end = |it: &str| is_stop_word(it) || SEARCH.span_ends.contains(&it);
    let ends = |at: &usize| words.get(*at).is_none_or(is_end) || begins_clause(text, words, *at);
    let begins = (from..=start).all(|it| !begins_clause(text, words, it)) && !ends(&start);
    let end = (start + 1..=words.len()).find(ends)?;
    begins.then_some(start..end)
}

/// Returns the words before one that name a thing: `The morning report was` before `removed`.
fn name_before(text: &str, words: &WordList, cue: usize) -> Option<Range<usize>> {
    let start = (0..cue).find(|it| !is_article(words, *it))?;
    let is_passive = |at: usize| words.get(at).is_some_and(|it| WISDOM.passive_words.contains(&it));
    let end = (start + 1..=cue).rev().find(|it| !is_passive(it - 1))?;
    is_one_name(text, words, &(start..end)).then_some(start..end)
}

fn is_one_name(text: &str, words: &WordList, name: &Range<usize>) -> bool {
    let is_stop = |at: usize| words.get(at).is_none_or(is_stop_word);
    name.clone().all(|it| !is_stop(it))
        && (name.start + 1..name.end).all(|it| !begins_clause(text, words, it))
}

fn terms_between(
    text: &str,
    words: &WordList,
    name: Range<usize>,
    extractor: &mut TermExtractor,
) -> Option<StatementTerms> {
    let bytes = words.offset(name.start)?..words.offset(name.end).unwrap_or(text.len());
    Some(extractor.extract(&WordList::of(&text[bytes])))
}

/// Returns the terms of a name between two words; `None` if it has too few or too many.
pub(in crate::engine::extractive) fn named_terms(
    text: &str,
    words: &WordList,
    name: Range<usize>,
    extractor: &mut TermExtractor,
) -> Option<StatementTerms> {
    let terms = terms_between(text, words, name, extractor)?;
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
    named_terms(text, words, thing_after(text, words, cue + width)?, extractor)
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
    fn a_task_is_done_when_a_report_has_its_verb_and_its_thing() {
        let extractor = &mut TermExtractor::default();
        let mut is_done = |task: &str, report: &str| {
            let task = Deed::to_do(task, &WordList::of(task), extractor).unwrap();
            let report = Deed::done(report, &WordList::of(report), extractor);
            report.is_some_and(|it| it.key == task.key && task.is_done_by(&it))
        };
        for (task, reports) in [
            (
                "send the redirect list to Ines on Friday",
                [
                    "Sent the redirect list to Ines",
                    "The redirect list was sent to Ines at noon",
                    "Mona sent the redirect list to Ines.",
                ],
            ),
            (
                "Greta sends the announcement",
                [
                    "Announcement sent",
                    "Greta sent the announcement to all 400",
                    "The announcement has been sent.",
                ],
            ),
            (
                "To do: pay the harbour fee",
                [
                    "Harbour fee paid",
                    "Paid the harbour fee, 240 EUR",
                    "Hafen: paid the harbour fee",
                ],
            ),
        ] {
            for report in reports {
                assert!(is_done(task, report), "{task} / {report}");
            }
        }
        for (task, report) in [
            ("send the redirect list to Ines", "Sent the redirect list to Bertil"),
            ("send the redirect list to Ines", "Wrote the redirect list for Ines"),
            ("send the redirect list", "Redirect list not sent"),
            ("send the redirect list", "Sent the redirect list draft"),
            ("send the redirect list", "The redirect list should be sent"),
            ("fix the export", "Fixed the import"),
            ("order the tide table", "Ordered two lamps"),
            ("renew the certificate of web1", "Renewed the certificate of web2"),
            ("send the report for March", "Sent the report for February"),
            ("sign the contract", "Need the signed contract by Friday"),
            ("sign the contract", "Missing: signed contract"),
            ("delete accounts", "Deleted accounts are restored within 30 days"),
            ("fix the export", "Fixed the export only for admins, the PDF still fails"),
        ] {
            assert!(!is_done(task, report), "{task} / {report}");
        }
    }

    #[test]
    fn what_is_to_be_sent_is_not_done_when_it_is_there() {
        let task = "send the redirect list to Ines";
        assert_eq!(thing_to_make(task, &WordList::of(task), &mut TermExtractor::default()), None);
    }
}
