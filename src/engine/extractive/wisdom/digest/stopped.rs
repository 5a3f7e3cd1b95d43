//! What a statement says was stopped: `Removed Atlas.`, `The morning report: disabled`; and what runs again:
//! `Re-enabled the morning report`, `Atlas is back up`.
//!
//! Read are only two forms in which nothing is left open: the word and then all of the name, or the name and then the
//! word, each up to the end of the clause. `Removed Atlas from the draft`, `Atlas is disabled by default`, `Atlas removed
//! the old logs` end nothing, and neither does what is denied, might be, or is a pause.

use std::ops::Range;

use super::entities::{Entities, EntityMention};
use crate::{
    engine::extractive::{
        cue_phrases::{CueTable, RESUMED, RETIRED},
        statements::{
            named_thing::{name_beside, named_terms},
            terms::{StatementTerms, TermExtractor},
            word_list::WordList,
        },
    },
    memory::statement::StatementKind,
    text::lexicon::WISDOM,
};

/// Something that was stopped as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoppedThing {
    /// An entity, by its index.
    Entity(usize),
    /// What all of these words are about.
    Named(StatementTerms),
}

/// Of the words of a statement about a named thing at least this part is its name: a list has any words.
const NAME_SHARE: usize = 8;

impl StoppedThing {
    /// Returns what a text with these words and mentions says was stopped, perhaps for a while only, if the cues are
    /// [`RETIRED`]; what runs again, if they are [`RESUMED`]. `None` if that is a part of something, or has no name.
    pub(super) fn find(
        text: &str,
        words: &WordList,
        mentions: &[EntityMention],
        extractor: &mut TermExtractor,
        cues: CueTable,
    ) -> Option<Self> {
        let Range { start, end } = name_beside(text, words, cues)?;
        let is_all = |it: &&EntityMention| it.word == start && it.word + it.width == end;
        if let Some(mention) = mentions.iter().find(is_all) {
            return Some(Self::Entity(mention.entity));
        }
        named_terms(text, words, start..end, extractor).map(Self::Named)
    }
}

/// What a statement says happened to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Stop,
    /// A stop for a while.
    Pause,
    /// It runs again.
    Resumption,
}

/// What a statement says was stopped, or runs again.
#[derive(Debug, Default)]
pub(super) struct ChangedThings {
    /// What it says, whether or not the thing has a name that is known.
    pub(super) change: Option<Change>,
    pub(super) stopped: Vec<StoppedThing>,
    pub(super) paused: Vec<StoppedThing>,
    pub(super) resumed: Vec<StoppedThing>,
}

impl ChangedThings {
    /// Reads what a statement of a kind says.
    pub(super) fn find(
        kind: StatementKind,
        text: &str,
        words: &WordList,
        entities: &Entities,
        extractor: &mut TermExtractor,
    ) -> Self {
        let mut found = Self::default();
        let (cues, change, things) = match kind {
            StatementKind::Retired if is_pause(words) => {
                (RETIRED, Change::Pause, &mut found.paused)
            }
            StatementKind::Retired => (RETIRED, Change::Stop, &mut found.stopped),
            StatementKind::State | StatementKind::Environment => {
                (RESUMED, Change::Resumption, &mut found.resumed)
            }
            _ => return found,
        };
        if words.has(cues) {
            let mentions = entities.mentions(words);
            things.extend(StoppedThing::find(text, words, &mentions, extractor, cues));
            found.change = Some(change);
        }
        found
    }

    pub(super) fn things(&self) -> impl Iterator<Item = &StoppedThing> {
        self.stopped.iter().chain(&self.paused).chain(&self.resumed)
    }

    /// Adds what another statement says.
    pub(super) fn extend(&mut self, other: Self) {
        self.change = self.change.or(other.change);
        self.stopped.extend(other.stopped);
        self.paused.extend(other.paused);
        self.resumed.extend(other.resumed);
    }
}

/// Returns whether a text with these words says that something is stopped for a while.
fn is_pause(words: &WordList) -> bool {
    words.iter().any(|it| WISDOM.pause_words.contains(&it))
}

/// Returns whether a text says that the thing with this name was stopped, or that it runs again, as the cues are.
fn says_of(name: &str, text: &str, cues: CueTable) -> bool {
    let (of_name, words) = (WordList::of(name), WordList::of(text));
    let width = of_name.len();
    let is_name = |at: &usize| (0..width).all(|it| words.get(at + it) == of_name.get(it));
    let at = (0..words.len()).find(is_name).filter(|_| width > 0);
    let mention = at.map(|word| EntityMention { entity: 0, word, width });
    let mentions: Vec<EntityMention> = mention.into_iter().collect();
    match StoppedThing::find(text, &words, &mentions, &mut TermExtractor::default(), cues) {
        Some(StoppedThing::Entity(_)) => true,
        Some(StoppedThing::Named(terms)) => terms == StatementTerms::of(name),
        None => false,
    }
}

/// Returns whether a text says that the thing with this name was stopped, perhaps for a while only.
pub(crate) fn says_stopped(name: &str, text: &str) -> bool {
    says_of(name, text, RETIRED)
}

/// Returns whether a text from a memory about the thing with this name says that it was stopped, and not for a while
/// only.
pub(crate) fn says_stopped_for_good(name: &str, text: &str) -> bool {
    !is_pause(&WordList::of(text))
        && (says_stopped(name, text) || says_stopped(name, &with_name(name, text)))
}

/// Returns whether a text says that the thing with this name runs again.
pub(crate) fn says_resumed(name: &str, text: &str) -> bool {
    says_of(name, text, RESUMED)
}

/// Returns a text from a memory about the thing with this name, which it may leave out, with it.
pub(super) fn with_name(name: &str, text: &str) -> String {
    format!("{name}: {text}")
}

/// Returns whether a text is about the thing with this name: it begins with the name, or at least half of its content
/// words are the name. Another thing may only be with it.
pub(super) fn is_about_name(name: &str, text: &str) -> bool {
    let (of_name, of_text) = (StatementTerms::of(name), StatementTerms::of(text));
    let begins = || {
        let (name, text) = (WordList::of(name), WordList::of(text));
        let is_article = |it: &usize| text.get(*it).is_some_and(|it| WISDOM.articles.contains(&it));
        let start = (0..text.len()).find(|it| !is_article(it));
        start.is_some_and(|at| (0..name.len()).all(|it| text.get(at + it) == name.get(it)))
    };
    is_about(&of_name, &of_text) && (of_name.stems.len() * 2 >= of_text.stems.len() || begins())
}

/// Returns whether a statement with these terms is about a thing with this name.
pub(super) fn is_about(name: &StatementTerms, terms: &StatementTerms) -> bool {
    name.stems.is_subset(&terms.stems)
        && name.values.is_subset(&terms.values)
        && name.stems.len() * NAME_SHARE >= terms.stems.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Option<StoppedThing> {
        let words = WordList::of(text);
        let named = words.iter().position(|it| it == "atlas");
        let mentions: Vec<EntityMention> =
            named.map(|word| EntityMention { entity: 7, word, width: 1 }).into_iter().collect();
        let mut extractor = TermExtractor::default();
        let found = StoppedThing::find(text, &words, &mentions, &mut extractor, RETIRED);
        found.filter(|_| !is_pause(&words))
    }

    #[test]
    fn what_runs_again_is_found_in_each_language() {
        for text in [
            "Re-enabled Atlas.",
            "Atlas is back up",
            "Atlas is running again, with the new pump",
            "Reinstalled Atlas",
            "Mona restored Atlas",
            "Atlas: resumed",
            "Atlas wieder aktiviert",
            "Atlas läuft wieder",
            "Atlas réactivé",
            "Atlas reactivado",
            "Atlas reativado",
            "Atlas riattivato",
            "Atlas weer ingeschakeld",
            "Atlas снова включен",
            "已恢复 Atlas",
            "Atlas を再開",
        ] {
            assert!(says_resumed("Atlas", text), "{text}");
        }
        for text in [
            "Restored Atlas from the backup of Monday",
            "Restored the logs of Atlas",
            "Atlas is not back up",
            "If Atlas is back up",
            "Atlas restored 40 files",
            "Atlas was removed",
        ] {
            assert!(!says_resumed("Atlas", text), "{text}");
        }
        assert!(says_stopped("Atlas", "Atlas paused") && says_stopped("Atlas", "Atlas: removed"));
        assert!(says_stopped_for_good("Atlas", "Atlas: removed"));
        assert!(says_stopped_for_good("Atlas", "Removed, it was too slow"));
        assert!(!says_stopped_for_good("Atlas", "Atlas paused"));
        assert!(!says_stopped_for_good("Atlas", "Removed port 40"));
        assert!(!says_stopped("Atlas", "Removed Atlas port 40"));
    }

    #[test]
    fn what_is_stopped_as_a_whole_is_found() {
        for text in [
            "Removed Atlas.",
            "Removed Atlas, it was too slow",
            "Uninstalled the Atlas (too slow)",
            "Mona removed Atlas",
            "Atlas was removed",
            "Atlas was removed, as it was too slow",
            "Atlas: removed",
            "Atlas wurde entfernt",
            "Atlas 已删除",
        ] {
            assert_eq!(find(text), Some(StoppedThing::Entity(7)), "{text}");
        }
    }

    #[test]
    fn parts_denials_and_pauses_end_nothing() {
        for text in [
            "Removed Atlas port",
            "Removed Atlas port 40",
            "Removed the old",
            "Removed: disk, Atlas",
            "Removed from Atlas",
            "Removed Atlas from the newsletter draft",
            "Disabled Atlas on staging",
            "Atlas: removed 40 MB of logs",
            "Atlas removed old logs",
            "Atlas removed the old logs",
            "Atlas disabled our test server",
            "Atlas is disabled by default",
            "Atlas not removed, only hidden",
            "Atlas nicht entfernt, nur versteckt",
            "Atlas niet verwijderd",
            "Atlas a supprimé les doublons",
            "Atlas no eliminado, solo oculto",
            "Eliminado Atlas del menú",
            "取消 Atlas 的会议",
            "Nobody removed Atlas",
            "If Atlas is removed",
            "Atlas paused",
            "Nothing ends",
        ] {
            assert!(!matches!(find(text), Some(StoppedThing::Entity(_))), "{text}");
        }
    }

    #[test]
    fn what_only_mentions_a_name_is_about_something_else() {
        for (text, expected) in [
            ("Redis lives on db2:3000", true),
            ("The Redis of the harbour keeps the sessions of each user", true),
            ("Port of Redis: 3000", true),
            ("Grafana reads sessions from Redis on db2:3000", false),
            ("The sessions are on db2:3000", false),
        ] {
            assert_eq!(is_about_name("Redis", text), expected, "{text}");
        }
    }

    #[test]
    fn a_name_has_several_words_and_its_numbers() {
        let is_ended = |stop: &str, older: &str| {
            let Some(StoppedThing::Named(name)) = find(stop) else { return false };
            is_about(&name, &StatementTerms::of(older))
        };
        let report = "The morning report is sent at 8:00";
        assert!(is_ended("Disabled the morning report", report));
        assert!(is_ended("The morning report was cancelled, it was too long", report));
        assert!(is_ended("Morning report: disabled", report));
        assert!(!is_ended("Disabled the report", report));
        let job = "Cron job 3 copies the tides to Brest";
        assert!(is_ended("Disabled cron job 3", job));
        assert!(!is_ended("Disabled cron job 7", job));
    }
}
