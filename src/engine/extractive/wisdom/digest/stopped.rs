//! What a statement says was stopped: `Removed Atlas.`, `The morning report cron was disabled`.

use super::entities::EntityMention;
use crate::engine::extractive::{
    cue_phrases,
    statements::{
        terms::{TermExtractor, TermSet, is_stop_word},
        word_list::WordList,
    },
};
use crate::text::lexicon::WISDOM;

/// Something that was stopped as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoppedThing {
    /// An entity, by its index.
    Entity(usize),
    /// What all of these words are about.
    Named(TermSet),
}

/// The fewest content words that name a thing which is no entity: one word has too many meanings.
const NAME_STEMS_MIN: usize = 2;

const NAME_STEMS_MAX: usize = 5;

/// Of the words of a statement about a named thing at least this part is its name: a list has any words.
const NAME_SHARE: usize = 8;

impl StoppedThing {
    /// Returns what a text with these words and mentions says was stopped; `None` if that is a part of something, or
    /// has no name.
    pub(super) fn find(
        text: &str,
        words: &WordList,
        mentions: &[EntityMention],
        extractor: &mut TermExtractor,
    ) -> Option<Self> {
        let (cue, width) = words.find(cue_phrases::RETIRED)?;
        let is_stop = |at: usize| words.get(at).is_none_or(is_stop_word);
        let ends = |at: &usize| is_stop(*at) || begins_clause(text, words, *at);
        let after = cue + width;
        // `Atlas was removed on Friday`, but `Atlas: removed old logs` and `Atlas removed old logs`.
        let is_said_of = ends(&after) && (0..cue).any(|it| !is_stop(it));
        let name = if is_said_of {
            0..cue
        } else {
            let is_article =
                |at: &usize| words.get(*at).is_some_and(|it| WISDOM.articles.contains(&it));
            let start = (after..words.len()).find(|it| !is_article(it)).unwrap_or(words.len());
            if start > after && begins_clause(text, words, start) || is_stop(start) {
                return None;
            }
            start..(start + 1..words.len()).find(ends).unwrap_or(words.len())
        };
        let is_name = |at: &usize| words.get(*at).is_some_and(|it| !is_stop_word(it));
        let own: Vec<usize> = name.clone().filter(is_name).collect();
        let (first, last) = (*own.first()?, *own.last()?);
        if (first + 1..=last).any(|it| begins_clause(text, words, it)) {
            return None;
        }
        let is_all = |it: &&EntityMention| it.word == first && it.word + it.width == last + 1;
        if let Some(mention) = mentions.iter().find(is_all) {
            return Some(Self::Entity(mention.entity));
        }
        let end = words.offset(last + 1).unwrap_or(text.len());
        let stems = extractor.extract(&WordList::of(&text[words.offset(first)?..end])).stems;
        (NAME_STEMS_MIN..=NAME_STEMS_MAX).contains(&stems.len()).then_some(Self::Named(stems))
    }

    /// Returns whether a statement with these terms, about an entity, is about this.
    pub(super) fn is_subject_of(&self, stems: &TermSet, entity: Option<usize>) -> bool {
        match self {
            Self::Entity(stopped) => entity == Some(*stopped),
            Self::Named(name) => name.is_subset(stems) && name.len() * NAME_SHARE >= stems.len(),
        }
    }
}

/// Returns whether punctuation stands between a word and the one before it.
fn begins_clause(text: &str, words: &WordList, at: usize) -> bool {
    const MARKS: &[char] =
        &['.', ',', ';', ':', '(', ')', '—', '–', '→', '，', '。', '：', '；', '、', '（'];
    let before = words.offset(at).map_or("", |it| text[..it].trim_end());
    before.ends_with(MARKS) || before.ends_with(" -")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_stopped_as_a_whole_is_found() {
        let find = |text: &str| {
            let words = WordList::of(text);
            let named = words.iter().position(|it| it == "atlas");
            let mentions: Vec<EntityMention> =
                named.map(|word| EntityMention { entity: 7, word, width: 1 }).into_iter().collect();
            StoppedThing::find(text, &words, &mentions, &mut TermExtractor::default())
        };
        for text in [
            "Removed Atlas.",
            "Removed Atlas, it was too slow",
            "Uninstalled the Atlas from the server",
            "Atlas was removed",
            "Atlas: removed",
            "Atlas 已删除",
        ] {
            assert_eq!(find(text), Some(StoppedThing::Entity(7)), "{text}");
        }
        for text in [
            "Removed Atlas port",
            "Removed the old",
            "Removed: disk, Atlas",
            "Nothing ends",
            "Removed from Atlas",
            "Atlas: removed 40 MB of logs",
            "Atlas removed old logs",
        ] {
            assert!(!matches!(find(text), Some(StoppedThing::Entity(_))), "{text}");
        }
        let named = |text: &str| match find(text) {
            Some(StoppedThing::Named(stems)) => stems.len(),
            _ => 0,
        };
        for text in [
            "Disabled the morning report in cron",
            "The morning report was cancelled on Friday",
            "Morning report: disabled",
        ] {
            assert_eq!(named(text), 2, "{text}");
        }
        assert_eq!(named("Removed the pump"), 0);
    }
}
