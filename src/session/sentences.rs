//! The sentences of a message, and the orders among those of the user.
//!
//! Pure. The words are in `config/lexicon/sessions.yaml`.

use crate::{
    engine::extractive::{
        WordList,
        sentence_class::{self, ClassifiedSentence, StatementClass},
    },
    text::lexicon::{CUES, SESSIONS},
};

/// What a sentence of the user orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserOrder {
    /// Something for later work as well: `Never …`, `Do not …`.
    Standing,
    /// A value: `Raise the limit to 90`.
    Setting,
}

/// Splits a line into sentences and classifies each.
///
/// Unlike in a log, a full stop behind a number may end a sentence: `Keep it at 5. And always …`.
pub(super) fn split_sentences(line: &str) -> Vec<ClassifiedSentence<'_>> {
    let sentences = sentence_class::classify_sentences(line);
    let parts: Vec<&str> = sentences.iter().flat_map(|it| parts_at_numbers(it.text)).collect();
    if parts.len() == sentences.len() {
        return sentences;
    }
    parts.into_iter().flat_map(sentence_class::classify_sentences).collect()
}

fn parts_at_numbers(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (period, _) in text.match_indices(". ") {
        let (before, rest) = (&text[from..period], text[period + 1..].trim_start());
        let number = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let ends_with_number = number.ends_with(|c: char| c.is_ascii_digit());
        // `1. Open the gate` is an item.
        let is_whole = number.len() == before.len();
        if ends_with_number && !is_whole && starts_sentence(rest) {
            parts.push(&text[from..=period]);
            from = text.len() - rest.len();
        }
    }
    parts.push(&text[from..]);
    parts
}

/// Returns whether a text begins like a sentence, and not like what a number counts.
fn starts_sentence(text: &str) -> bool {
    const LABEL_CHARS_MAX: usize = 24;
    if !text.starts_with(char::is_uppercase) {
        return false;
    }
    let is_labelled = || {
        let label = text.split_once(": ").map(|it| it.0);
        label.is_some_and(|it| {
            it.chars().count() <= LABEL_CHARS_MAX && super::message_lines::label_class(it).is_some()
        })
    };
    WordList::of(text).phrase_at(0, &SESSIONS.after_number_starters).is_some() || is_labelled()
}

/// Returns the words of a text in lower case, without the marks around them.
pub(super) fn words_of(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace('’', "'");
    let is_mark = |c: char| !c.is_alphanumeric();
    let words = lower.split_whitespace().map(|it| it.trim_matches(is_mark));
    words.filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// Returns what a sentence of the user orders, if anything.
pub(super) fn user_order(sentence: &ClassifiedSentence<'_>) -> Option<UserOrder> {
    let text = without_lead_in(sentence.text);
    if text.ends_with(['?', '？']) {
        return None;
    }
    let words = WordList::of(text);
    let from = prefixes_len(&words);
    let is_passing =
        CUES.tables.get("not_rules").is_some_and(|it| words.phrase_at(from, it).is_some());
    let is_standing = if text.len() == sentence.text.len() {
        sentence.is_standing_order
    } else {
        sentence_class::classify_sentences(text).iter().any(|it| it.is_standing_order)
    };
    if is_standing && !is_passing || is_prohibition(&words, from) {
        return Some(UserOrder::Standing);
    }
    let decides = sentence.class == StatementClass::Decision;
    (!decides && sets_value(&words, from)).then_some(UserOrder::Setting)
}

/// Returns a sentence without words such as `By the way, `.
fn without_lead_in(text: &str) -> &str {
    let Some(end) = text.find([',', ':']) else { return text };
    let lead_in = words_of(&text[..end]).join(" ");
    let rest = text[end + 1..].trim_start();
    if SESSIONS.order_lead_ins.contains(&&lead_in[..]) { rest } else { text }
}

/// Returns the number of words such as `and please` before an order.
fn prefixes_len(words: &WordList) -> usize {
    const PREFIXES_MAX: usize = 3;
    let mut from = 0;
    for _ in 0..PREFIXES_MAX {
        match words.phrase_at(from, &SESSIONS.order_prefixes) {
            Some(width) => from += width,
            None => break,
        }
    }
    from
}

fn is_prohibition(words: &WordList, from: usize) -> bool {
    /// `Don't do that` forbids nothing that another session understands.
    const WORDS_MIN: usize = 4;
    let Some(width) = words.phrase_at(from, &SESSIONS.prohibitions) else { return false };
    let (forbidden, times) = (from + width, &SESSIONS.passing_times);
    let is_passing = words.phrase_at(forbidden, &SESSIONS.passing_prohibitions).is_some()
        || (forbidden..words.len()).any(|at| words.phrase_at(at, times).is_some());
    words.len() - from >= WORDS_MIN && !is_passing
}

fn sets_value(words: &WordList, from: usize) -> bool {
    /// A longer request is a task.
    const WORDS_MAX: usize = 25;
    let is_number = |it: &str| it.starts_with(|c: char| c.is_ascii_digit());
    let Some(verb) = words.phrase_at(from, &SESSIONS.setting_verbs) else { return false };
    let object: Vec<&str> = words.iter().skip(from + verb).collect();
    let is_named = object.first().is_some_and(|it| {
        !SESSIONS.setting_pronouns.contains(it)
            || object.get(1).is_some_and(|it| !SESSIONS.setting_prepositions.contains(it))
    });
    let pairs = || object.iter().zip(object.iter().skip(1)).skip(1);
    let has_value = pairs().any(|(a, b)| SESSIONS.setting_prepositions.contains(a) && is_number(b));
    // `Limit yourself to 3 sentences`, `keep the summary to 5 lines` ask for one reply.
    let is_of_reply = object.iter().take(2).any(|it| SESSIONS.reply_words.contains(it));
    words.len() - from <= WORDS_MAX && is_named && has_value && !is_of_reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_order(text: &str, expected: Option<UserOrder>) {
        let sentences = split_sentences(text);
        let orders: Vec<_> = sentences.iter().map(user_order).collect();
        assert_eq!(orders, [expected], "{text}");
    }

    #[test]
    fn a_number_may_end_a_sentence() {
        #[track_caller]
        fn check(line: &str, expected: &[&str]) {
            let found: Vec<&str> = split_sentences(line).iter().map(|it| it.text).collect();
            assert_eq!(found, expected);
        }
        check("Leave it at 7. And never drop a row.", &["Leave it at 7.", "And never drop a row."]);
        check("We sail at 7. Decision: two boats.", &["We sail at 7.", "Decision: two boats."]);
        check("It took 41. We are late.", &["It took 41.", "We are late."]);
        check("Das steht im 3. Quartal an.", &["Das steht im 3. Quartal an."]);
        check("Wir segeln am 2. April.", &["Wir segeln am 2. April."]);
        check("2. And the gate", &["2. And the gate"]);
    }

    #[test]
    fn standing_orders_differ_from_requests() {
        for text in [
            "Always run the tide check before a merge.",
            "And do not put ship names into branch names, please.",
            "Don’t squash the commits of others.",
            "By the way, never print positions of crews.",
            "One more thing: always write the log in UTC.",
            "From now on we name branches after harbours.",
            "Please don't add dependencies without a ticket",
            "Keine Schiffsnamen in Commits, bitte.",
        ] {
            check_order(text, Some(UserOrder::Standing));
        }
        for text in [
            "Never mind.",
            "Don't worry about the tides.",
            "Don't you like the red pier?",
            "Do not merge the branch yet.",
            "Don't do that.",
            "The docs do not mention harbours.",
            "The pump was always slow in winter.",
            "Keine Ahnung, was das ist.",
        ] {
            check_order(text, None);
        }
    }

    #[test]
    fn a_request_may_set_a_value() {
        for text in [
            "Raise the alarm level to 240 cm.",
            "And keep the pump limit at 9.",
            "Please move the regatta from 3 June to 17 June.",
            "Setze die Grenze auf 30 Boote.",
            "Change that limit to 4",
        ] {
            check_order(text, Some(UserOrder::Setting));
        }
        for text in [
            "Set it to 4.",
            "Raise an error.",
            "Move the pier to the left.",
            "Set 3 to 4?",
            "Limit yourself to 3 sentences.",
            "Keep your answer to 100 words, please.",
            "Cap the summary at 5 lines.",
        ] {
            check_order(text, None);
        }
    }
}
