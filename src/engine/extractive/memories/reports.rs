//! Recognizes reports of what was done.

use crate::{
    engine::extractive::{cue_phrases, statements::word_list::WordList},
    text::lexicon::CUES,
};

/// Returns whether a sentence is a report: it opens with a verb in the past tense.
pub(crate) fn is_report(text: &str) -> bool {
    opens_as_report(&WordList::of(text))
}

/// Like [`is_report`], for a text that is already split into words.
pub(crate) fn opens_as_report(words: &WordList) -> bool {
    let first = words.iter().next().unwrap_or_default();
    let past = first.chars().count() > 4 && first.ends_with("ed");
    let ongoing = first.chars().count() > 5 && first.ends_with("ing");
    words.opens_with(cue_phrases::REPORT_OPENERS)
        || ((past || ongoing) && !CUES.not_reports.contains(&first))
}
