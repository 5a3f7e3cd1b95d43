//! Recognizes statements about a person: preferences, roles, and habits.

use std::sync::LazyLock;

use super::reports::opens_as_report;
use crate::{
    engine::extractive::{
        cue_phrases,
        statements::{labels::split_label, terms::is_stop_word, word_list::WordList},
    },
    text::lexicon::CUES,
};

/// Returns whether a text names a person and says what that person wants or is.
pub(crate) fn about_person(text: &str) -> bool {
    is_about_person(text, &WordList::of(text))
}

/// Like [`about_person`], for a text that is already split into words.
pub(crate) fn is_about_person(text: &str, words: &WordList) -> bool {
    /// `is a senior Go engineer`: the role is among this many words after `is a`.
    const ROLE_REACH: usize = 4;
    /// Only these tables mark statements about a person.
    static TABLES: LazyLock<u64> =
        LazyLock::new(|| cue_phrases::PERSON_CUES.iter().fold(0, |all, table| all | table.bit()));
    if !words.may_contain(*TABLES) {
        return false;
    }
    let wish = words.opens_with(cue_phrases::FIRST_PERSON_FACTS)
        || words.opens_with(cue_phrases::PERSON_FACTS);
    if (opens_as_report(words) && !wish) || words.opens_with(cue_phrases::CONDITIONS) {
        return false;
    }
    let person_at = |at: usize| words.offset(at).is_some_and(|o| is_person(&text[o..]));
    // One or two words before must be the name: `Jamie prefers`, `the user prefers`. Where each character is
    // a word, and the verb may be the last one, the sentence begins with the person.
    let of_person = |at: usize| {
        let before = |at: usize| at.checked_sub(1).and_then(|it| words.get(it)).unwrap_or_default();
        // `Tom always prefers`, `Tom said he prefers`.
        let is_adverb = CUES.person_adverbs.contains(&before(at));
        let subject = if is_adverb { at - 1 } else { at };
        let is_pronoun = || at <= 4 && CUES.person_pronouns.contains(&before(subject));
        (1..=3).contains(&subject) && person_at(subject - 1)
            || is_pronoun() && person_at(0)
            || at > 0 && words.is_unspaced() && words.opens_with(cue_phrases::PERSONS)
    };
    if let Some((at, _)) = words.find(cue_phrases::PREFERS) {
        return of_person(at);
    }
    if words.has(cue_phrases::PERSON_FACTS) {
        return words.iter().any(|w| CUES.first_person.contains(&w)) || person_at(0);
    }
    if let Some((at, width)) = words.find(cue_phrases::WANTS) {
        // A single wish is a task.
        return of_person(at) && words.find_from(at + width, cue_phrases::HABIT).is_some();
    }
    if preference_in(text, words).is_some_and(|from_name| from_name.len() == text.len()) {
        return true;
    }
    if let Some((at, width)) = words.find(cue_phrases::FAVORITE) {
        let near = |from: usize, to: usize| {
            words.iter().skip(from).take(to).any(|w| CUES.to_be_present.contains(&w))
        };
        return at <= 3 && near(at + width, 5) || at > 0 && near(at - 1, 1);
    }
    if let Some((at, width)) = words.find(cue_phrases::IS_A) {
        let role =
            words.iter().skip(at + width).take(ROLE_REACH).any(|w| cue_phrases::ROLES.contains(w));
        let article = usize::from(words.opens_with(cue_phrases::ARTICLES));
        let named = (article..at).all(person_at) && (article + 1..=article + 3).contains(&at);
        return role && named && !words.has(cue_phrases::NARRATIVE)
            || role && words.opens_with(cue_phrases::FIRST_PERSON_FACTS);
    }
    // `In future, don't …` is a lasting wish.
    let opener = words.find(cue_phrases::FROM_NOW_ON).filter(|&(at, _)| at == 0);
    opener.is_some_and(|(_, width)| words.find_from(width, cue_phrases::RULE).is_some())
}

/// Returns the text from the name on: of `Matched Ana's preference for short agendas`, without the first
/// word.
pub(super) fn preference_of(text: &str) -> Option<&str> {
    preference_in(text, &WordList::of(text))
}

fn preference_in<'t>(text: &'t str, words: &WordList) -> Option<&'t str> {
    // After `preference as` the preference itself follows a colon.
    let from = |at: usize| words.offset(at).map_or("", |offset| &text[offset..]);
    let (at, width) = words.find(cue_phrases::HAS_PREFERENCE).or_else(|| {
        let found = words.find(cue_phrases::PREFERENCE_AS)?;
        from(found.0).contains(": ").then_some(found)
    })?;
    // `Ana's preference for the later slot` is about one slot.
    if words.iter().nth(at + width).is_some_and(|w| matches!(w, "the" | "this" | "that" | "either"))
    {
        return None;
    }
    let mut owner = (at.saturating_sub(2)..at).rev().find(|&i| {
        let word = from(i).split_whitespace().next().unwrap_or_default();
        word.ends_with("'s") || word.ends_with("’s")
    })?;
    if !is_name(from(owner)) {
        return None;
    }
    // `Henry Whitfield's` is one name; but the first word of a sentence may be a verb.
    if owner > 1 && is_name(from(owner - 1)) {
        owner -= 1;
    }
    Some(from(owner))
}

fn is_person(text: &str) -> bool {
    let word = WordList::of(text);
    word.opens_with(cue_phrases::PERSONS) || is_name(text)
}

fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(char::is_uppercase)
        && !WordList::of(text).iter().next().is_some_and(is_stop_word)
}

/// Returns the speaker of `14:03 Ana: …` and the byte offset of what follows.
pub(super) fn speaker(text: &str) -> Option<(&str, usize)> {
    let (label, rest) = split_label(text)?;
    let name = label.trim_start_matches(|c: char| {
        c.is_ascii_digit() || matches!(c, ':' | '.' | ' ' | '[' | ']')
    });
    let named = name.split_whitespace().count() <= 2
        && name.split_whitespace().all(|w| w.chars().next().is_some_and(char::is_uppercase))
        && !name.is_empty();
    named.then_some((name, rest))
}

/// Returns the label of a block, or its whole text, to recognize its first sentence.
pub(super) fn opening_label(text: &str) -> &str {
    split_label(text).map_or(text, |(label, _)| label)
}
