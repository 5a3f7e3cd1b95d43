//! Distinguishes the names of people from those of things.
//!
//! Only a person can be misquoted. A product says and wants things as well ("the linter complains"), so that a
//! name that the logs use as a thing is no person, whatever it does. Pure.

use std::collections::BTreeSet;

use super::{LineLookup, amounts::units, claims, name_forms::contains_word};
use crate::{
    memory::{
        address::Stem,
        atom::{self, Atom, AtomKind},
        log::TextOrigin,
        typed::{MemoryType, TypedMemory},
    },
    privacy::{SanitizedLine, SanitizedLog},
    text::{
        clauses::{Separator, parse_sentences},
        lexicon::CLAIMS,
    },
};

/// Returns whether a word is the name of a person in logs: a first name, one that memories know, or a name that does
/// what only people do, and that is never written like another word or used as a thing.
pub(crate) fn is_person_name_in<'l>(
    word: &str,
    known: &BTreeSet<String>,
    logs: impl Iterator<Item = &'l SanitizedLog>,
) -> bool {
    if !has_form_of_name(word) {
        return false;
    }
    let lower = word.to_lowercase();
    let is_listed = claims::is_first_name(word) || known.contains(word);
    let mut acts = is_listed;
    for line in logs.flat_map(SanitizedLog::lines) {
        let text = line.spaced_text();
        if contains_word(text, &lower) {
            return false;
        }
        if !contains_word(text, word) {
            continue;
        }
        if !is_listed && is_thing(text, &lower) {
            return false;
        }
        acts = acts || acts_like_person(text, word);
    }
    acts
}

/// Logs, and the people that memories name.
pub(crate) struct LogsWithPeople<'a> {
    pub(crate) logs: &'a [SanitizedLog],
    /// As of [`names_in_memories`].
    pub(crate) people: &'a BTreeSet<String>,
}

impl LineLookup for LogsWithPeople<'_> {
    fn log(&self, stem: &Stem) -> Option<&SanitizedLog> {
        self.logs.log(stem)
    }

    fn has_word(&self, word: &str) -> bool {
        self.logs.has_word(word)
    }

    fn known_people(&self) -> &BTreeSet<String> {
        self.people
    }

    fn is_person_name(&self, word: &str) -> bool {
        is_person_name_in(word, self.people, self.logs.iter())
    }
}

/// Returns the words of the names of memories about people. One whose name has other words is about something of a
/// person (`Editor settings`), and the owner is not known by name.
pub(crate) fn names_in_memories(memories: &[TypedMemory]) -> BTreeSet<String> {
    let about_people = memories.iter().filter(|it| it.kind == MemoryType::User);
    let names = about_people.map(|it| it.name.split_whitespace().collect::<Vec<_>>());
    names
        .filter(|it| it.len() <= 3 && it.iter().all(|word| has_form_of_name(word)))
        .flatten()
        .filter(|it| !TITLES.contains(it) && !MemoryType::User.is_general_topic(it))
        .map(str::to_owned)
        .collect()
}

/// Returns whether logs have a word anywhere, written like this.
pub(crate) fn has_word_in<'l>(
    word: &str,
    mut logs: impl Iterator<Item = &'l SanitizedLog>,
) -> bool {
    let is_read = |it: &SanitizedLine| !it.is_quarantined() && it.origin() != TextOrigin::External;
    logs.any(|log| {
        log.lines().iter().any(|it| is_read(it) && contains_word(it.spaced_text(), word))
    })
}

/// Returns whether a word has one capital, at its start: neither a handle nor `CamelCase` nor an abbreviation.
fn has_form_of_name(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(char::is_uppercase)
        && chars.clone().count() > 1
        && chars.all(|it| it.is_alphabetic() && !it.is_uppercase())
}

/// German titles, which are no names.
const TITLES: [&str; 3] = ["Herr", "Herrn", "Frau"];

/// The words before a German noun; before a name they are rare.
const BEFORE_GERMAN_NOUNS: [&str; 60] = [
    "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines",
    "kein", "keine", "keinen", "keinem", "keiner", "unser", "unsere", "unseren", "seine", "seiner",
    "seinen", "ihre", "ihrer", "ihren", "jede", "jeder", "jeden", "diese", "dieser", "diesen",
    "im", "am", "zum", "zur", "beim", "vom", "ins", "ohne", "dessen", "deren", "denn", "beide",
    "beiden", "alle", "viele", "mehrere", "zwei", "drei", "vier", "fünf", "sechs", "sieben",
    "acht", "neun", "zehn", "elf", "zwölf", "stunden",
];

/// Returns whether a capitalised word of a German text is a noun like any other: it has an article, a number or a unit
/// before it, perhaps with an adjective between, or a number behind it, and no person has it as a name.
pub(super) fn is_german_noun(text: &str, word: &Atom, is_person: impl Fn(&str) -> bool) -> bool {
    let name = word.text(text);
    if TITLES.contains(&name) {
        return true;
    }
    if word.kind != AtomKind::Name || !has_form_of_name(name) || is_person(name) {
        return false;
    }
    let is_number = |it: &str| it.starts_with(|c: char| c.is_ascii_digit() || "€$£".contains(c));
    let is_before_noun = |it: &str| {
        let it = it.trim_start_matches(['(', '„', '"']).to_lowercase();
        BEFORE_GERMAN_NOUNS.contains(&&it[..]) || is_number(&it) || units::is_unit(&it)
    };
    let is_adjective =
        |it: &str| it.starts_with(char::is_lowercase) && it.chars().all(char::is_alphabetic);
    let mut before = text[..word.start].split_whitespace().rev();
    let is_after = match before.next() {
        Some(it) if is_before_noun(it) => true,
        Some(it) if is_adjective(it) => before.next().is_some_and(is_before_noun),
        _ => false,
    };
    is_after || text[word.end..].trim_start().split(' ').next().is_some_and(is_number)
}

/// Returns whether a line uses a name as a thing: after an article, or as what somebody installs.
fn is_thing(text: &str, lower: &str) -> bool {
    parse_sentences(text).iter().any(|sentence| {
        sentence.words.windows(2).any(|two| {
            two[1].text == lower
                && two[1].separator == Separator::Space
                && CLAIMS.before_things.contains(&&two[0].text[..])
        })
    })
}

fn acts_like_person(text: &str, word: &str) -> bool {
    // German nouns all have a capital, so that only a title or a deed shows a name.
    let titled = ["Herr ", "Herrn ", "Frau ", "Firma ", "bei "];
    if claims::is_german(text) && titled.iter().any(|it| text.contains(&format!("{it}{word}"))) {
        return true;
    }
    let is_it = |it: &Atom| it.kind == AtomKind::Name && it.text(text) == word;
    claims::has_deed(text, word) || {
        // `asked Xandro`, `as Xandro said`.
        let spoken_to = CLAIMS
            .action_forms
            .iter()
            .flatten()
            .any(|it| contains_word(text, &format!("{it} {word}")));
        spoken_to && atom::find_atoms(text).iter().any(is_it)
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        compaction::grounding,
        memory::{item::Item, log::DailyLog},
        privacy,
    };

    use super::*;

    #[track_caller]
    fn check(word: &str, log: &str, expected: bool) {
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), log.as_bytes()).unwrap();
        let log = privacy::sanitize(&log, &privacy::PrivacyRules::default());
        assert_eq!(
            is_person_name_in(word, &BTreeSet::new(), [&log].into_iter()),
            expected,
            "{word}"
        );
    }

    #[test]
    fn a_name_that_is_used_as_a_thing_is_no_person() {
        check("Xandro", "Xandro wants a cache.", true);
        check("Xandro", "We asked Xandro twice.", true);
        check("Xandro", "The disk is full, says Xandro.", true);
        check("Xandro", "Xandro wants a cache.\n\nInstalled Xandro on the box.", false);
        check("Xandro", "Xandro reports 15 errors.\n\nThe xandro log is long.", false);
        check("Xandro", "Xandro reports 15 errors of the Xandro service.", false);
        check("XandroDB", "XandroDB wants a cache.", false);
        check("Ines", "A walk with Ines.", true);
        check("Böhm", "Der Termin bei Böhm ist am Montag.", true);
    }

    #[test]
    fn who_is_known_from_memories_is_not_misquoted() {
        let log = "Ana asked for a cache, Ben measured the disk with Quill.\n\nQuill asked for a disk, Ana asked for more.";
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), log.as_bytes()).unwrap();
        let logs = [privacy::sanitize(&log, &privacy::PrivacyRules::default())];
        let memory = |name: &str| {
            let text = format!("---\nname: {name}\ndescription: D\ntype: user\n---\n\nText.\n");
            TypedMemory::parse(std::path::Path::new("user_a.md"), &text).unwrap()
        };
        let item = Item::parse("Quill asked for a cache [2026-04-02:1]");
        let is_refused = |name: &str| {
            let people = names_in_memories(&[memory(name)]);
            grounding::check(&item, &LogsWithPeople { logs: &logs, people: &people }).is_err()
        };
        assert!(is_refused("Quill Tern"));
        assert!(!is_refused("Quill settings"), "no name of a person");
        assert!(!is_refused("Owner"));
        let people = names_in_memories(&[memory("Quill Tern")]);
        let lines = LogsWithPeople { logs: &logs, people: &people };
        let own = Item::parse("Quill asked for a disk [2026-04-02:3]");
        assert_eq!(grounding::check(&own, &lines), Ok(()), "what somebody did may be said");
    }
}
