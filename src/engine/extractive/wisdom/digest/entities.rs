//! The entities of the logs: projects, systems, products and people that they come back to.
//!
//! Without a model an entity is a name that occurs inside sentences on several days: capitalised words in a row, or
//! a word such as `TideBoard`. A word that is as often written small is no name. People are told apart by the
//! verbs beside them (`Ottilie asked`).

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use crate::{
    engine::extractive::{
        parsed_log::ParsedLog,
        statements::{terms::is_stop_word, word_list::WordList},
    },
    memory::atom::{self, Atom, AtomKind},
    text::{
        hash::{HashedMap, combine_hashes, hash_bytes},
        lexicon::WISDOM,
    },
};

/// The most words of a name.
const NAME_WORDS_MAX: usize = 3;

/// An entity is named on as many days, if there are logs of many days.
const DAYS_MIN: usize = 3;

/// A word is a name if it is capitalised in this share of its uses inside sentences.
const CAPITALISED_SHARE_MIN: f64 = 0.7;

/// A word that is doubtful as a name is one if as many titles have it.
const HEADS_MIN: usize = 2;

/// A name is a person's if as many of its uses are followed by what people do: at least two, and one in this many.
const PERSON_USES_MIN: usize = 2;

const PERSON_SHARE: usize = 12;

/// Something that the logs come back to.
#[derive(Debug)]
pub(in crate::engine::extractive) struct Entity {
    /// Its name as written most often.
    pub(in crate::engine::extractive) name: String,
    /// The days that name it.
    pub(in crate::engine::extractive) days: usize,
    pub(in crate::engine::extractive) is_person: bool,
    /// Whether it is a product of others that serves many ends.
    pub(in crate::engine::extractive) is_platform: bool,
}

/// A place where a text names an entity.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::extractive) struct EntityMention {
    pub(in crate::engine::extractive) entity: usize,
    /// The index of its first word.
    pub(in crate::engine::extractive) word: usize,
}

/// The entities of some logs, by their words.
#[derive(Debug, Default)]
pub(in crate::engine::extractive) struct Entities {
    pub(in crate::engine::extractive) all: Vec<Entity>,
    /// The index of each, by the hash of its words.
    by_words: HashedMap<usize>,
}

/// What is known of a name.
#[derive(Default)]
struct Candidate {
    spellings: BTreeMap<String, usize>,
    days: BTreeSet<NaiveDate>,
    /// How often it occurs outside of longer names.
    uses: usize,
    person_uses: usize,
    in_heads: usize,
    /// How often it comes after a word of a sentence.
    in_sentences: usize,
    /// Whether its words are never written small.
    is_always_upper: bool,
    /// Whether it was only found in a language that writes all nouns with a capital.
    is_noun: bool,
}

impl Candidate {
    /// Returns whether it is a name: not one word that only occurs alone, as titles and labels do, unless it is never
    /// written small. A stressed word, and a noun of a language that writes all of them with a capital, must be in
    /// titles.
    fn is_used_as_name(&self) -> bool {
        let is_stressed =
            |it: &String| it.chars().count() > 3 && it.chars().all(char::is_uppercase);
        let is_plain = |it: &String| !it.contains(' ') && (is_stressed(it) || is_plain_word(it));
        if !self.spellings.keys().all(is_plain) {
            return true;
        }
        let found: usize = self.spellings.values().sum();
        let is_label = self.in_sentences < 2 || self.in_sentences * 4 < found;
        let is_doubtful = self.is_noun || self.spellings.keys().all(is_stressed);
        let is_titled = self.in_heads >= HEADS_MIN;
        (!is_label && !is_doubtful) || (is_titled && (!is_label || self.is_always_upper))
    }
}

/// How often a word is written with and without a capital inside sentences.
#[derive(Clone, Copy, Default)]
struct WordCase {
    upper: usize,
    lower: usize,
}

impl Entities {
    /// Finds the entities of logs, which are sorted by day.
    pub(in crate::engine::extractive) fn of(pages: &[ParsedLog]) -> Self {
        let own = |page: &'_ ParsedLog| -> Vec<usize> {
            (0..page.statements.len()).filter(|&it| page.statements[it].is_own_words()).collect()
        };
        let mut names = HashedMap::<Candidate>::default();
        let mut cases = HashedMap::<WordCase>::default();
        for page in pages {
            for at in own(page) {
                let statement = &page.statements[at];
                let text = &statement.text[statement.label..];
                let words = WordList::of(text);
                count_cases(text, &words, &mut cases);
                for (start, name) in names_in(text) {
                    let Some(hash) = hash_of_name(name) else { continue };
                    let found = names
                        .entry(hash)
                        .or_insert_with(|| Candidate { is_noun: true, ..Candidate::default() });
                    found.in_sentences += usize::from(follows_word(&text[..start]));
                    found.is_noun &= page.language.capitalises_nouns();
                    *found.spellings.entry(name.to_owned()).or_default() += 1;
                }
            }
        }
        for found in names.values_mut() {
            let lower = |it: &str| cases.get(&hash_bytes(it.as_bytes())).map_or(0, |it| it.lower);
            let name = found.spellings.keys().next().cloned().unwrap_or_default();
            found.is_always_upper = WordList::of(&name).iter().all(|it| lower(it) == 0);
        }
        names
            .retain(|_, it| it.spellings.values().sum::<usize>() > 1 && is_capitalised(it, &cases));
        let by_words = names.keys().map(|it| (*it, 0)).collect();
        let known = Self { all: Vec::new(), by_words };
        for page in pages {
            let day = page.stem.date();
            let texts = own(page).into_iter().map(|it| (&*page.statements[it].text, false));
            for (text, is_head) in texts.chain(page.heads.iter().map(|it| (&*it.text, true))) {
                let words = WordList::of(text);
                for (hash, at, width) in known.names_in_words(&words) {
                    let Some(found) = names.get_mut(&hash) else { continue };
                    found.uses += 1;
                    found.days.insert(day);
                    found.in_heads += usize::from(is_head);
                    let acts = |it: &str| WISDOM.person_verbs.contains(&it);
                    let is_addressed = |it: &str| WISDOM.address_verbs.contains(&it);
                    let is_person = words.get(at + width).is_some_and(acts)
                        || at.checked_sub(1).and_then(|it| words.get(it)).is_some_and(is_addressed);
                    found.person_uses += usize::from(is_person);
                }
            }
        }
        let all_days: BTreeSet<NaiveDate> = pages.iter().map(|it| it.stem.date()).collect();
        Self::with_days(names, (all_days.len() / DAYS_MIN).clamp(1, DAYS_MIN))
    }

    /// Returns the names that occur on at least as many days, the most frequent one first.
    fn with_days(names: HashedMap<Candidate>, days_min: usize) -> Self {
        let frequent = names
            .into_iter()
            .filter(|(_, it)| it.days.len() >= days_min && it.uses > 1 && it.is_used_as_name());
        let mut found: Vec<(Entity, u64)> = frequent
            .filter_map(|(hash, it)| {
                let spelled = it.spellings.into_iter().map(|(name, times)| (times, name)).max()?.1;
                let is_person = it.person_uses >= PERSON_USES_MIN
                    && it.person_uses * PERSON_SHARE >= it.uses
                    && spelled.chars().all(|c| c.is_alphabetic() || c == ' ');
                let is_platform = WISDOM.platform_names.contains(&&*spelled.to_lowercase());
                let days = it.days.len();
                Some((Entity { name: spelled, days, is_person, is_platform }, hash))
            })
            .collect();
        found.sort_by(|(a, _), (b, _)| b.days.cmp(&a.days).then_with(|| a.name.cmp(&b.name)));
        let by_words = found.iter().enumerate().map(|(at, (_, hash))| (*hash, at)).collect();
        Self { all: found.into_iter().map(|it| it.0).collect(), by_words }
    }

    /// Returns where a text names entities, the longest name at each place.
    pub(in crate::engine::extractive) fn mentions(&self, words: &WordList) -> Vec<EntityMention> {
        self.names_in_words(words)
            .filter_map(|(hash, word, _)| {
                Some(EntityMention { entity: *self.by_words.get(&hash)?, word })
            })
            .collect()
    }

    /// Returns the hash, first word and number of words of each known name.
    fn names_in_words<'a>(
        &'a self,
        words: &'a WordList,
    ) -> impl Iterator<Item = (u64, usize, usize)> + 'a {
        let hashes: Vec<u64> = words.iter().map(|it| hash_bytes(it.as_bytes())).collect();
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < hashes.len() {
                let start = at;
                let most = NAME_WORDS_MAX.min(hashes.len() - start);
                let known = (1..=most).rev().find_map(|width| {
                    let hash = hash_of_words(hashes[start..start + width].iter().copied());
                    self.by_words.contains_key(&hash).then_some((hash, start, width))
                });
                at += known.map_or(1, |it| it.2);
                if known.is_some() {
                    return known;
                }
            }
            None
        })
    }
}

/// Returns whether the text before a name ends with a word that is written small.
fn follows_word(before: &str) -> bool {
    let word = before.strip_suffix(' ').and_then(|it| it.rsplit(' ').next());
    word.is_some_and(|it| it.ends_with(char::is_alphanumeric) && it.starts_with(char::is_lowercase))
}

/// Returns whether a word has a capital at its beginning at most.
fn is_plain_word(word: &str) -> bool {
    word.chars().skip(1).all(char::is_lowercase)
}

fn hash_of_words(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(1, combine_hashes)
}

/// Returns the hash of a name as it is found in texts; `None` for one of too many words.
fn hash_of_name(name: &str) -> Option<u64> {
    let words = WordList::of(name);
    let is_short = (1..=NAME_WORDS_MAX).contains(&words.len());
    is_short.then(|| hash_of_words(words.iter().map(|it| hash_bytes(it.as_bytes()))))
}

/// Returns the names inside the sentences of a text: words in a row that are capitalised or are identifiers.
fn names_in(text: &str) -> Vec<(usize, &str)> {
    let atoms = atom::find_atoms(text);
    let is_part = |it: &Atom| match it.kind {
        AtomKind::Name => true,
        AtomKind::Identifier => {
            let word = it.text(text);
            word.contains(char::is_uppercase)
                && word.chars().all(|c| c.is_alphanumeric() || c == '-')
                && word.chars().filter(|c| c.is_alphabetic()).count() > word.len() / 2
        }
        _ => false,
    };
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for atom in atoms.iter().filter(|it| is_part(it)) {
        match runs.last_mut() {
            Some(last) if text[last.1..atom.start] == *" " => last.1 = atom.end,
            _ => runs.push((atom.start, atom.end)),
        }
    }
    runs.into_iter().map(|(start, end)| (start, &text[start..end])).collect()
}

/// Counts the words of a text that are not at the beginning of a sentence.
fn count_cases(text: &str, words: &WordList, cases: &mut HashedMap<WordCase>) {
    for (at, word) in words.iter().enumerate().skip(1) {
        let Some(offset) = words.offset(at) else { continue };
        if is_in_identifier(text, offset, word.len()) {
            continue;
        }
        let opens = text[..offset].trim_end().ends_with(['.', '!', '?', ':', '"', '“', '(']);
        let case = cases.entry(hash_bytes(word.as_bytes())).or_default();
        if text[offset..].starts_with(char::is_uppercase) {
            case.upper += usize::from(!opens);
        } else {
            case.lower += 1;
        }
    }
}

/// Returns whether a word of `length` bytes is a part of a path, a file name or another identifier: they are written
/// small whatever they name.
fn is_in_identifier(text: &str, offset: usize, length: usize) -> bool {
    let joins = |c: char| matches!(c, '/' | '-' | '_' | '.' | '@' | '`');
    let mut before = text[..offset].chars().rev();
    let mut after = text.get(offset + length..).unwrap_or_default().chars();
    before.next().is_some_and(joins)
        || (after.next().is_some_and(joins) && after.next().is_some_and(char::is_alphanumeric))
}

/// Returns whether a name is one: not a word of every text, and not one that is usually written small.
fn is_capitalised(found: &Candidate, cases: &HashedMap<WordCase>) -> bool {
    let Some(name) = found.spellings.keys().next() else { return false };
    let words = WordList::of(name);
    let is_generic = |it: &str| is_stop_word(it) || WISDOM.generic_names.contains(&it);
    let is_plain = |it: &str| {
        let Some(case) = cases.get(&hash_bytes(it.as_bytes())) else { return false };
        let all = case.upper + case.lower;
        super::as_f64(case.upper) < CAPITALISED_SHARE_MIN * super::as_f64(all)
    };
    let letters = name.chars().filter(|c| c.is_alphabetic()).count();
    // Of a longer name one word that is rare enough is enough: `Harbour Board`.
    letters >= 3
        && !words.iter().all(is_generic)
        && !words.get(0).is_some_and(is_generic)
        && !words.iter().all(|it| is_generic(it) || is_plain(it))
}
