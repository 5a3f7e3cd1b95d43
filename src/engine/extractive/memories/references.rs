//! External places where something is found: links with a purpose, and named places.

use super::{
    NAME_CHARS_MAX, candidate::MemoryCandidate, keep_mark::without_keep, reports::is_report,
};
use crate::{
    engine::extractive::{
        cue_phrases,
        statements::{
            blocks::LogBlock,
            labels::split_label,
            self_contained::{code_share, is_self_contained},
            terms::is_stop_word,
            titles::{capitalize_title, title_of, truncate_at_word},
            word_list::WordList,
        },
    },
    memory::typed::MemoryType,
    text::lexicon::CUES,
};

/// Returns a link with a purpose: the text names what is found there and reports no action.
pub(super) fn reference(block: &LogBlock) -> Option<MemoryCandidate> {
    const WORDS_MAX: usize = 14;
    /// `Okta dashboard https://…`: only a name precedes the link.
    const BARE_WORDS_MAX: usize = 5;
    /// A label is a name, and a note after the link is short.
    const LABEL_WORDS_MAX: usize = 6;
    const NOTE_WORDS_MAX: usize = 4;
    /// Pages of one piece of work.
    const WORK_ITEMS: &[&str] =
        &["/pull/", "/issues/", "/commit/", "/merge_requests/", "/runs/", "/jobs/"];
    let text = block.text.as_str();
    let Some(at) = text.find("https://").or_else(|| text.find("http://")) else {
        return named_location(block);
    };
    if text[at + 4..].contains("http") {
        return None;
    }
    let url_end = text[at..].find([' ', '>', ')', '"']).map_or(text.len(), |end| at + end);
    let (before, after) = (&text[..at], &text[url_end..]);
    let words = WordList::of(before);
    let tail = before.trim_end_matches(['<', '(', '[', ']', '`', ' ']);
    let bare = tail.split(" (").next().unwrap_or(tail);
    let names_place = bare
        .split_whitespace()
        .next_back()
        .is_some_and(|w| WordList::of(w).opens_with(cue_phrases::REFERENCE_NOUNS))
        && words.len() <= BARE_WORDS_MAX;
    let named = tail.ends_with([':', '—', '–']) || before.ends_with("](") || names_place;
    // `docs for the API`, `API docs`; but not `docs cleanup`.
    let place = words.find(cue_phrases::REFERENCE_NOUNS);
    let named_as = WordList::of(bare);
    let place_alone =
        place.is_some_and(|(at, width)| named_as.iter().nth(at + width).is_none_or(is_stop_word));
    // `Supplier price sheet: https://…`: a label that names a thing, and nothing but the link.
    let labelled = tail.ends_with(':')
        && split_label(text).is_some_and(|(label, rest)| {
            rest + 1 >= at
                && (2..=LABEL_WORDS_MAX).contains(&label.split_whitespace().count())
                && label.starts_with(char::is_uppercase)
        })
        && WordList::of(after).len() <= NOTE_WORDS_MAX
        && !words.has(cue_phrases::NARRATIVE);
    let at_last = tail
        .split_whitespace()
        .next_back()
        .is_some_and(|w| CUES.location_prepositions.contains(&w));
    let before_last = tail.split_whitespace().rev().nth(1).unwrap_or_default();
    let found_at = words.has(cue_phrases::LIVES_AT)
        || (at_last
            && WordList::of(before_last).opens_with(cue_phrases::REFERENCE_NOUNS)
            && !WordList::of(after).has(cue_phrases::TRANSIENT));
    let fits = (1..=WORDS_MAX).contains(&words.len())
        && ((labelled && (place.is_none() || place_alone))
            || place.is_some() && ((named && place_alone) || found_at))
        && WordList::of(after).len() <= WORDS_MAX
        && !is_report(before)
        && !words.opens_with(cue_phrases::TASK_OPENERS)
        && !words.opens_with(cue_phrases::BACK_REFERENCES)
        && !words.has(cue_phrases::TRANSIENT)
        && !text.contains('?')
        && !WORK_ITEMS.iter().any(|part| text[at..url_end].contains(part));
    let statement = without_keep(text).into_owned();
    let name = if at_last { tail.rsplit_once(' ').map_or(tail, |(name, _)| name) } else { before };
    fits.then(|| MemoryCandidate {
        kind: MemoryType::Reference,
        score: 6,
        title: truncate_at_word(
            name.trim_matches(|c: char| !c.is_alphanumeric() && c != '"' && c != ')'),
            NAME_CHARS_MAX,
        ),
        statement,
        why: None,
        how_to_apply: None,
        lines: block.lines().into_iter().collect(),
    })
}

/// Returns a named place without a link: `Importer bugs are tracked in the Linear project "INGEST"`.
fn named_location(block: &LogBlock) -> Option<MemoryCandidate> {
    const SUBJECT_WORDS_MAX: usize = 6;
    let sentence = block.sentences_from(0).into_iter().next()?;
    let text = sentence.text.as_str();
    let words = WordList::of(text);
    let (at, width) = words.find(cue_phrases::STORED_IN)?;
    let place = words.offset(at + width).map(|from| &text[from..])?;
    let named = place.contains(['"', '“'])
        || place.split_whitespace().any(|w| w.starts_with(char::is_uppercase));
    let fits = (1..=SUBJECT_WORDS_MAX).contains(&at)
        && named
        && !words.has(cue_phrases::NARRATIVE)
        && code_share(text) <= 0.0
        && !is_report(text)
        && is_self_contained(text);
    fits.then(|| MemoryCandidate {
        kind: MemoryType::Reference,
        score: 5,
        title: capitalize_title(&title_of(text, NAME_CHARS_MAX)),
        statement: without_keep(text).into_owned(),
        why: None,
        how_to_apply: None,
        lines: sentence.lines.iter().copied().collect(),
    })
}
