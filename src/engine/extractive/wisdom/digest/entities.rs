//! The entities of the logs: projects, systems, products and people that they come back to.
//!
//! Without a model an entity is a name that occurs inside sentences on several days: capitalised words in a row, or
//! a word such as `TideBoard`. A word that is as often written small is no name. What is only mentioned is no topic:
//! an entity has titles, begins statements, or is part of a path. People are told apart by the verbs beside them
//! (`Ottilie asked`).

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
        stems::english_stem,
    },
};

/// The most words of a name.
const NAME_WORDS_MAX: usize = 3;

/// An entity is named on as many days, if there are logs of many days.
const DAYS_MIN: usize = 3;

/// A word is a name if it is capitalised in this share of its uses inside sentences.
const CAPITALISED_SHARE_MIN: f64 = 0.7;

/// What titles name on as many days is a topic.
const HEAD_DAYS_MIN: usize = 2;

/// What begins as many statements is a topic.
const OPENINGS_MIN: usize = 3;

/// The most letters of an abbreviation, which must be in titles and begin statements.
const ABBREVIATION_LETTERS_MAX: usize = 4;

/// A name is a noun if one in as many of its uses follows an indefinite article, and a place if it follows `in`.
const NOUN_SHARE: usize = 8;

const PLACE_SHARE: usize = 3;

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
    /// The number of its words.
    pub(in crate::engine::extractive) width: usize,
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
    /// The days with a title that has it.
    head_days: BTreeSet<NaiveDate>,
    /// How often it occurs outside of longer names.
    uses: usize,
    person_uses: usize,
    /// How many statements begin with it.
    openings: usize,
    /// How often it follows `a` and nothing else belongs to it.
    noun_uses: usize,
    /// How often it follows `in` or `from`.
    place_uses: usize,
    /// How often it comes after a word of a sentence.
    in_sentences: usize,
    /// Whether its words are never written small.
    is_always_upper: bool,
    /// How often it was found in a language that writes all nouns with a capital.
    in_nouns: usize,
    /// Whether a path, an address or an identifier has it.
    is_in_path: bool,
}

impl Candidate {
    /// Returns whether it is a name: not one word that only occurs alone, as titles and labels do, unless it is never
    /// written small.
    fn is_used_as_name(&self) -> bool {
        let is_plain = |it: &String| !it.contains(' ') && (is_stressed(it) || is_plain_word(it));
        if !self.spellings.keys().all(is_plain) {
            return true;
        }
        let found: usize = self.spellings.values().sum();
        let is_label = self.in_sentences < 2 || self.in_sentences * 4 < found;
        !is_label || (self.is_titled() && self.is_always_upper)
    }

    /// Returns whether the logs write about it, rather than mention it: a person, or what has titles, begins
    /// statements, or has a place of its own. An abbreviation, a noun and the name of a place need more than others.
    fn is_topic(&self) -> bool {
        if self.is_person() {
            return true;
        }
        let opens = self.openings >= OPENINGS_MIN;
        let is_one_word = self.spellings.keys().all(|it| !it.contains(' '));
        let is_abbreviation = self.spellings.keys().all(|it| {
            is_stressed(it.trim_end_matches('s')) && it.chars().count() <= ABBREVIATION_LETTERS_MAX
        });
        let is_plain = self.spellings.keys().all(|it| is_plain_word(it));
        // `TideBoard` is nothing but a name.
        if is_one_word && !is_plain && !is_abbreviation && self.openings > 0 {
            return true;
        }
        if self.noun_uses * NOUN_SHARE >= self.uses && self.noun_uses > 1 {
            return false;
        }
        if is_abbreviation {
            return self.is_titled() && opens;
        }
        let found: usize = self.spellings.values().sum();
        if is_one_word && is_plain && self.in_nouns * 3 > found {
            return self.is_in_path && (self.is_titled() || opens);
        }
        if self.place_uses * PLACE_SHARE >= self.uses {
            return self.is_titled();
        }
        self.is_titled() || opens || self.is_in_path
    }

    fn is_titled(&self) -> bool {
        self.head_days.len() >= HEAD_DAYS_MIN
    }

    fn is_person(&self) -> bool {
        self.person_uses >= PERSON_USES_MIN
            && self.person_uses * PERSON_SHARE >= self.uses
            && self.name().is_some_and(|it| it.chars().all(|c| c.is_alphabetic() || c == ' '))
    }

    /// Returns its most frequent spelling.
    fn name(&self) -> Option<&str> {
        self.spellings.iter().max_by_key(|it| (it.1, it.0)).map(|it| it.0.as_str())
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
                    let found = names.entry(hash).or_default();
                    found.in_sentences += usize::from(follows_word(&text[..start]));
                    found.in_nouns += usize::from(page.language.capitalises_nouns());
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
        let in_paths = squashed_parts_of_paths(pages);
        for found in names.values_mut() {
            found.is_in_path = found.name().is_some_and(|it| in_paths.contains(&squashed(it)));
        }
        for page in pages {
            for at in own(page) {
                known.count_uses(&page.statements[at].text, page, false, &mut names);
            }
            for head in &page.heads {
                known.count_uses(&head.text, page, true, &mut names);
            }
        }
        let all_days: BTreeSet<NaiveDate> = pages.iter().map(|it| it.stem.date()).collect();
        Self::with_days(names, (all_days.len() / DAYS_MIN).clamp(1, DAYS_MIN))
    }

    /// Counts how a text uses names.
    fn count_uses(
        &self,
        text: &str,
        page: &ParsedLog,
        is_head: bool,
        names: &mut HashedMap<Candidate>,
    ) {
        let day = page.stem.date();
        let words = WordList::of(text);
        for (hash, at, width) in self.names_in_words(&words) {
            let Some(found) = names.get_mut(&hash) else { continue };
            let before = at.checked_sub(1).and_then(|it| words.get(it));
            let after = words.get(at + width);
            let follows = |list: &[&'static str]| before.is_some_and(|it| list.contains(&it));
            let acts = |it: &str| WISDOM.person_verbs.contains(&it);
            found.uses += 1;
            found.days.insert(day);
            if is_head {
                found.head_days.insert(day);
            } else {
                let is_article = || words.get(0).is_some_and(is_stop_word);
                found.openings += usize::from(at == 0 || (at == 1 && is_article()));
            }
            let is_person = after.is_some_and(acts) || follows(&WISDOM.address_verbs);
            found.person_uses += usize::from(is_person);
            let is_whole = after.is_none_or(is_stop_word);
            found.noun_uses += usize::from(is_whole && follows(&WISDOM.noun_articles));
            found.place_uses += usize::from(follows(&WISDOM.place_prepositions));
        }
    }

    /// Returns the topics among the names that occur on at least as many days, the most frequent one first.
    fn with_days(names: HashedMap<Candidate>, days_min: usize) -> Self {
        let topics = names.into_iter().filter(|(_, it)| {
            it.days.len() >= days_min && it.uses > 1 && it.is_used_as_name() && it.is_topic()
        });
        let mut found: Vec<(Entity, u64)> = topics
            .filter_map(|(hash, it)| {
                let name = it.name()?.to_owned();
                let is_platform = WISDOM.platform_names.contains(&&*name.to_lowercase());
                // `Stripe answered` is about what it is known for.
                let (days, is_person) = (it.days.len(), it.is_person() && !is_platform);
                Some((Entity { name, days, is_person, is_platform }, hash))
            })
            .collect();
        found.sort_by(|(a, _), (b, _)| b.days.cmp(&a.days).then_with(|| a.name.cmp(&b.name)));
        let (mut all, mut by_words) = (Vec::<Entity>::new(), HashedMap::default());
        let mut known = KnownNames::default();
        for (entity, hash) in found {
            // The more frequent of two names for the same stays.
            let at = known.find_or_add(&entity, &all);
            by_words.insert(hash, at);
            if at == all.len() {
                all.push(entity);
            }
        }
        Self { all, by_words }
    }

    /// Returns the entity of a topic, which is added if there is none of that name.
    pub(super) fn of_topic(&mut self, topic: &str) -> usize {
        let words = WordList::of(topic);
        let is_whole = |it: &EntityMention| it.width == words.len();
        let known = self.mentions(&words).into_iter().find(is_whole).map(|it| it.entity);
        let known = known.or_else(|| self.all.iter().position(|it| it.name == topic));
        known.unwrap_or_else(|| {
            let is_platform = WISDOM.platform_names.contains(&&*topic.to_lowercase());
            self.all.push(Entity {
                name: topic.to_owned(),
                days: 1,
                is_person: false,
                is_platform,
            });
            self.all.len() - 1
        })
    }

    /// Returns where a text names entities, the longest name at each place.
    pub(in crate::engine::extractive) fn mentions(&self, words: &WordList) -> Vec<EntityMention> {
        self.names_in_words(words)
            .filter_map(|(hash, word, width)| {
                Some(EntityMention { entity: *self.by_words.get(&hash)?, word, width })
            })
            .collect()
    }

    /// Returns the hash, first word and number of words of each known name.
    fn names_in_words<'a>(
        &'a self,
        words: &'a WordList,
    ) -> impl Iterator<Item = (u64, usize, usize)> + 'a {
        let hashes: Vec<u64> = words.iter_hashed().map(|it| it.1).collect();
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < hashes.len() {
                let start = at;
                let most = NAME_WORDS_MAX.min(hashes.len() - start);
                let (mut hash, mut known) = (NO_WORDS, None);
                for width in 1..=most {
                    hash = combine_hashes(hash, hashes[start + width - 1]);
                    if self.by_words.contains_key(&hash) {
                        known = Some((hash, start, width));
                    }
                }
                at += known.map_or(1, |it| it.2);
                if known.is_some() {
                    return known;
                }
            }
            None
        })
    }
}

/// Finds names that mean the same as another: one has all words of the other, in any order or as one word.
#[derive(Default)]
struct KnownNames {
    by_squashed: BTreeMap<String, usize>,
    /// The stems of each entity, and the entities with a stem.
    stems: Vec<BTreeSet<u64>>,
    with_stem: HashedMap<Vec<usize>>,
}

impl KnownNames {
    /// Returns the index among `all` of an entity that another one means, too; else the next index.
    fn find_or_add(&mut self, entity: &Entity, all: &[Entity]) -> usize {
        let stem = |it: &str| hash_bytes(english_stem(&it.to_lowercase()).as_bytes());
        let own: BTreeSet<u64> = entity.name.split([' ', '-']).map(stem).collect();
        let is_same = |at: &usize| {
            let (other, stems) = (&all[*at], &self.stems[*at]);
            !entity.is_platform
                && !other.is_platform
                && entity.is_person == other.is_person
                && (own.is_subset(stems) || stems.is_subset(&own))
        };
        let with = |it| self.with_stem.get(it).into_iter().flatten().copied();
        let contained = own.iter().flat_map(with).filter(is_same).min();
        let spelled = self.by_squashed.get(&squashed(&entity.name)).copied();
        let known = spelled.into_iter().chain(contained).min();
        let at = known.unwrap_or(all.len());
        if at == all.len() {
            self.by_squashed.insert(squashed(&entity.name), at);
            for stem in &own {
                self.with_stem.entry(*stem).or_default().push(at);
            }
            self.stems.push(own);
        }
        at
    }
}

/// Returns whether the text before a name ends with a word that is written small.
fn follows_word(before: &str) -> bool {
    let word = before.strip_suffix(' ').and_then(|it| it.rsplit(' ').next());
    word.is_some_and(|it| it.ends_with(char::is_alphanumeric) && it.starts_with(char::is_lowercase))
}

/// Returns whether a word has capitals only.
fn is_stressed(word: &str) -> bool {
    word.chars().all(char::is_uppercase)
}

/// Returns a name as paths have it, without spaces and hyphens.
fn squashed(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns the parts of the paths, addresses and identifiers in some logs.
fn squashed_parts_of_paths(pages: &[ParsedLog]) -> BTreeSet<String> {
    let is_path = |it: &Atom| {
        matches!(it.kind, AtomKind::Url | AtomKind::Path | AtomKind::Code | AtomKind::Identifier)
    };
    let mut parts = BTreeSet::new();
    for statement in pages.iter().flat_map(|it| &it.statements) {
        let text = &*statement.text;
        for atom in atom::find_atoms(text).iter().filter(|it| is_path(it)) {
            let path = atom.text(text);
            if path.contains(['/', '.', '@']) {
                parts.extend(path.split(['/', '.', '@', ':', '?', '#']).map(squashed));
            }
        }
    }
    parts
}

/// Returns whether a word has a capital at its beginning at most.
fn is_plain_word(word: &str) -> bool {
    word.chars().skip(1).all(char::is_lowercase)
}

/// The hash of no words.
const NO_WORDS: u64 = 1;

fn hash_of_words(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(NO_WORDS, combine_hashes)
}

/// Returns the hash of a name as it is found in texts; `None` for one of too many words.
fn hash_of_name(name: &str) -> Option<u64> {
    let words = WordList::of(name);
    let is_short = (1..=NAME_WORDS_MAX).contains(&words.len());
    is_short.then(|| hash_of_words(words.iter_hashed().map(|it| it.1)))
}

/// Returns the names inside the sentences of a text: words in a row that are capitalised or are identifiers, and are no
/// part of a compound, as in `Kern-Idee`.
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
    let is_compound = |start: usize, end: usize| {
        let mut after = text[end..].chars();
        let mut before = text[..start].chars().rev();
        (after.next() == Some('-') && after.next().is_some_and(char::is_alphanumeric))
            || (before.next() == Some('-') && before.next().is_some_and(char::is_alphanumeric))
    };
    runs.retain(|it| !is_compound(it.0, it.1));
    runs.into_iter().map(|(start, end)| (start, &text[start..end])).collect()
}

/// Counts the words of a text that are not at the beginning of a sentence.
fn count_cases(text: &str, words: &WordList, cases: &mut HashedMap<WordCase>) {
    for (at, (word, hash)) in words.iter_hashed().enumerate().skip(1) {
        let Some(offset) = words.offset(at) else { continue };
        if is_in_identifier(text, offset, word.len()) {
            continue;
        }
        let opens = text[..offset].trim_end().ends_with(['.', '!', '?', ':', '"', '“', '(']);
        let case = cases.entry(hash).or_default();
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
