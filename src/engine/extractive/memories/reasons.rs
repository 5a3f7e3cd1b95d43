//! Separates a statement from its reason.

use crate::{
    engine::extractive::{
        cue_phrases,
        statements::{
            blocks::LogSentence,
            labels::{is_one_of_titles, split_label},
            word_list::WordList,
        },
    },
    text::{lexicon::CUES, scripts},
};

pub(super) struct StatedReason {
    pub(super) text: String,
    pub(super) lines: Vec<u32>,
}

/// Marks between a claim and its reason.
const CLAIM_ENDS: [char; 11] = ['(', ',', ';', '—', '–', '-', ' ', '，', '、', '；', '（'];

/// Splits a sentence at the marker of a reason into statement and reason.
pub(crate) fn split_reason(text: &str) -> Option<(String, String)> {
    const CLAIM_WORDS_MIN: usize = 3;
    const WHY_WORDS_MIN: usize = 2;
    if let Some(split) = split_otherwise(text) {
        return Some(split);
    }
    let words = WordList::of(text);
    let list: Vec<&str> = words.iter().collect();
    let offsets: Vec<usize> = (0..list.len()).filter_map(|at| words.offset(at)).collect();
    let mut from = CLAIM_WORDS_MIN;
    while from < list.len() {
        let because = words.find_from(from, cue_phrases::BECAUSE);
        let so_that = words.find_from(from, cue_phrases::SO_THAT);
        let (at, width, keeps) = match (because, so_that) {
            (Some((a, w)), Some((b, _))) if a <= b => (a, w, false),
            (_, Some((b, w))) => (b, w, true),
            (Some((a, w)), None) => (a, w, false),
            (None, None) => return None,
        };
        from = at + 1;
        let before = &text[..offsets[at]];
        let next = list.get(at + width).copied().unwrap_or_default();
        let marks = match list[at] {
            // `since` may refer to a time, and `so` may continue a story.
            "since" => {
                before.trim_end().ends_with([',', '—', ';'])
                    && !next.chars().any(|c| c.is_ascii_digit())
            }
            "so" if width == 1 => CUES.after_so.contains(&next),
            _ => true,
        };
        // In `do X, never do Y because of Z` the reason is the one that does not count.
        let refused = list[1..at].iter().any(|w| CUES.negations.contains(w))
            && !before.trim_end().ends_with([',', '—', ';', '，', '、', '；']);
        let negated = refused || CUES.negations.contains(&list[at - 1]);
        if !marks || negated || list.len() - at - width < WHY_WORDS_MIN {
            continue;
        }
        let why_at = if keeps { offsets[at] } else { offsets[at + width] };
        let claim = before.trim_end().trim_end_matches(CLAIM_ENDS);
        let opened = before.matches('(').count() > before.matches(')').count();
        let mut why = text[why_at..].trim();
        if opened {
            why = why.split(')').next().unwrap_or(why);
        }
        return Some((with_full_stop(claim), why.trim_end_matches(['.', '。', ' ']).to_owned()));
    }
    None
}

/// Splits a text at the first of `marks` into statement and reason.
pub(super) fn split_at_mark(text: &str, marks: &[&str]) -> Option<(String, String)> {
    let found = marks.iter().filter_map(|mark| text.find(mark).map(|at| (at, mark.len())));
    let (at, width) = found.min()?;
    let (claim, why) = (&text[..at], &text[at + width..]);
    // Several parts after a colon are a list of steps.
    let list = text[at..].starts_with(':') && why.matches(", ").count() > 1;
    (WordList::of(claim).len() >= 4 && WordList::of(why).len() >= 4 && !list)
        .then(|| (with_full_stop(claim), why.trim_end_matches('.').to_owned()))
}

/// Splits a sentence whose reason ends with the marker: `…, readers lose track otherwise`.
fn split_otherwise(text: &str) -> Option<(String, String)> {
    let words = WordList::of(text);
    let last = words.iter().last()?;
    if !cue_phrases::OTHERWISE.contains(last) {
        return None;
    }
    let at = [", ", "; ", " — ", " – "].iter().filter_map(|mark| text.rfind(mark)).max()?;
    let why = text[at..].trim_start_matches([',', ';', ' ', '—', '–']).trim_end_matches('.');
    Some((with_full_stop(&text[..at]), why.to_owned()))
}

/// Returns the next sentence if it is marked as the reason.
pub(super) fn reason_in_next(rest: &[LogSentence]) -> Option<StatedReason> {
    let next = rest.first()?;
    let words = next.words();
    let says_why = words.opens_with(cue_phrases::BECAUSE)
        || words.opens_with(cue_phrases::OTHERWISE)
        || split_label(&next.text)
            .is_some_and(|(label, _)| is_one_of_titles(label, &CUES.reason_titles));
    says_why.then(|| StatedReason { text: next.text.clone(), lines: next.lines.clone() })
}

/// Returns the text with a full stop, unless it already ends a sentence.
pub(super) fn with_full_stop(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', ')', '”', '"', '。', '！', '）', '」']) {
        return text.to_owned();
    }
    let unspaced = text.ends_with(scripts::is_spaceless);
    [text, if unspaced { "。" } else { "." }].concat()
}
