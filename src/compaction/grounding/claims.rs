//! Compares who did what in an item and in its lines, and the topic.
//!
//! A program can compare this only where item and lines use the same words. So each rule compares a clause of
//! the item with the clause of the lines that shares most of its words; if there is none, the item passes.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::LazyLock,
};

use super::{
    Vocabulary,
    amounts::scan,
    claim_words::{CLAUSES_MAX, ITEM_WORDS_MAX, StemSet, content_stems, is_content, word_stem},
    negation::CitedNegations,
};
use crate::text::{
    calendar,
    clauses::{ParsedSentence, ParsedWord, Separator, parse_sentences},
    lexicon::{CLAIMS, HEDGING},
};

static FIRST_NAMES: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| CLAIMS.first_names.iter().copied().collect());

/// The claims of the lines that an item cites.
pub(super) struct CitedClaims<'p> {
    /// What they deny.
    pub(super) negations: CitedNegations,
    /// Who does what, by the action.
    actors_by_action: HashMap<String, HashSet<String>>,
    sentences: Vec<SentencePeople>,
    /// The same for the parts between commas and other marks.
    segments: Vec<SentencePeople>,
    /// Capitalized words before what only people do.
    speakers: HashSet<String>,
    stems: StemSet,
    /// The words in web addresses, which often are titles: `/unit-testing-a-vuex-store`.
    address_stems: StemSet,
    /// Capitalized words, by the words before and after them.
    names_by_context: HashMap<(String, String), HashSet<String>>,
    words: HashSet<String>,
    names: NameReader<'p>,
}

/// How the names of people are distinguished from other words.
#[derive(Clone, Copy)]
struct NameReader<'p> {
    is_german: bool,
    /// The people that memories name.
    known: &'p BTreeSet<String>,
}

impl NameReader<'_> {
    /// Returns whether a name in lower case is certainly that of a person.
    fn is_known(&self, name: &str) -> bool {
        FIRST_NAMES.contains(name) || self.known.contains(&capitalized(name))
    }
}

/// The people and the topic of a sentence.
struct SentencePeople {
    people: HashSet<String>,
    stems: StemSet,
}

impl<'p> CitedClaims<'p> {
    /// Reads lines; `known` are people whom other texts name.
    pub(super) fn of(lines: &[&str], known: &'p BTreeSet<String>) -> Self {
        let names = NameReader { is_german: lines.iter().any(|it| is_german(it)), known };
        let mut all = Self {
            negations: CitedNegations::default(),
            actors_by_action: HashMap::new(),
            sentences: Vec::new(),
            segments: Vec::new(),
            speakers: HashSet::new(),
            stems: StemSet::new(),
            address_stems: StemSet::new(),
            names_by_context: HashMap::new(),
            words: HashSet::new(),
            names,
        };
        // Whom a label names is whom the list below it is about: `Ada's plan:`.
        let mut of_label = HashSet::new();
        for line in lines {
            let addresses = line.split_whitespace().filter(|it| it.contains("://"));
            for address in addresses {
                // A title, as in `/unit-testing-a-store`; the host and the like say little.
                let titles = address.split(['/', '?', '#']).skip(3);
                for title in titles.filter(|it| it.matches(['-', '_']).count() > 1) {
                    let words = title.replace(['-', '_', '.'], " ");
                    let parsed = parse_sentences(&words);
                    let stems = parsed.iter().flat_map(|it| content_stems(&it.words));
                    all.address_stems.extend(stems);
                }
            }
            let parsed = parse_sentences(line);
            let is_label = is_label(line);
            let is_item = line.trim_start().starts_with(['-', '*', '•', '+']);
            if is_label || !is_item {
                of_label.clear();
            }
            for sentence in &parsed {
                all.negations.add(sentence);
                all.words.extend(sentence.words.iter().map(|it| it.text.clone()));
                all.words
                    .extend(sentence.words.iter().map(|it| strip_possessive(&it.text).to_owned()));
                for two in sentence.words.windows(2) {
                    let raw = &line[two[0].start..two[0].end];
                    if raw.starts_with(char::is_uppercase) && known_action(&two[1].text).is_some() {
                        all.speakers.insert(two[0].text.clone());
                    }
                }
                for (place, name) in names_in_context(line, sentence) {
                    all.names_by_context.entry(place).or_default().insert(name);
                }
                for (name, action) in actions(line, sentence, names) {
                    all.actors_by_action.entry(action).or_default().insert(name);
                }
                let mut people = people(line, sentence, names);
                if is_label {
                    of_label.extend(people.iter().filter(|it| names.is_known(it)).cloned());
                } else if !people.iter().any(|it| names.is_known(it)) {
                    people.extend(of_label.iter().cloned());
                }
                let stems = content_stems(&sentence.words);
                all.stems.extend(stems.iter().cloned());
                if all.sentences.len() < CLAUSES_MAX {
                    all.segments.extend(segments(line, sentence, names));
                    all.sentences.push(SentencePeople { people, stems });
                }
            }
        }
        all
    }

    /// Returns whether the lines have a word, perhaps with another ending.
    pub(super) fn has_word(&self, word: &str, is_inflected: bool) -> bool {
        let endings: &[&str] =
            if is_inflected { &["s", "es", "n", "en", "e", "er", "ern"] } else { &["s", "es"] };
        let has = |it: &str| self.words.contains(it);
        let is_long = |it: &str| it.chars().count() >= 3;
        has(word)
            || endings.iter().any(|ending| {
                has(&format!("{word}{ending}"))
                    || word.strip_suffix(ending).is_some_and(|it| is_long(it) && has(it))
            })
    }

    /// Returns whether a German noun is part of a word of the lines, or contains one.
    pub(super) fn has_compound(&self, word: &str) -> bool {
        const PART_MIN: usize = 4;
        let part_of = |whole: &str, part: &str| {
            part.chars().count() >= PART_MIN && (whole.ends_with(part) || whole.starts_with(part))
        };
        self.words.iter().any(|it| part_of(it, word) || (it.len() > 4 && part_of(word, it)))
    }

    /// Returns the name in the item of somebody who did not do what the item says, but somebody else in the lines.
    pub(super) fn misattributed_name(&self, item: &str, known: &dyn Vocabulary) -> Option<String> {
        let names = self.names;
        let parsed = parse_sentences(item);
        if parsed.iter().map(|it| it.words.len()).sum::<usize>() > ITEM_WORDS_MAX {
            return None;
        }
        let is_person = |name: &str| self.is_actor(name) || known.is_person(&capitalized(name));
        for sentence in parsed {
            let parts = segments(item, &sentence, names);
            for (name, action) in actions(item, &sentence, names) {
                if !self.words.contains(&name) {
                    continue;
                }
                let theirs = self.actors_by_action.get(&action);
                if theirs.is_some_and(|it| !it.iter().any(|it| is_same_name(it, &name)))
                    && is_person(&name)
                    && !self.acts_on_the_same(&name, &action, &parts)
                {
                    return Some(name);
                }
            }
            // The lines have another name between the same words.
            for (place, name) in names_in_context(item, &sentence) {
                let theirs = self.names_by_context.get(&place);
                let other = theirs.is_some_and(|it| !it.iter().any(|it| is_same_name(it, &name)));
                let may_differ = is_person(&name) || !is_no_date_word(&name);
                if other && self.words.contains(&name) && may_differ {
                    return Some(name);
                }
            }
            // Another sentence of the lines has these words with another name.
            for words in sentence.clauses() {
                let part = ParsedSentence::from_words(item, words);
                let people = people(item, &part, names);
                let [name] = &people.iter().collect::<Vec<_>>()[..] else { continue };
                if !self.words.contains(*name) || !is_person(name) {
                    continue;
                }
                let mut about = content_stems(words);
                about.remove(&word_stem(name));
                let shared = |it: &&SentencePeople| it.stems.intersection(&about).count();
                let with = self.sentences.iter().filter(|it| it.people.contains(*name));
                let with = with.map(|it| shared(&it)).max().unwrap_or(0);
                let others = self.sentences.iter().filter(|it| !it.people.contains(*name));
                // A product has no deeds.
                let others = others.filter(|it| it.people.iter().any(|it| is_person(it)));
                let others = others.map(|it| shared(&it)).max().unwrap_or(0);
                if others >= 3 && others * 2 >= about.len() && with * 3 <= others {
                    return Some((*name).clone());
                }
            }
        }
        None
    }

    /// Returns whether the lines name another person.
    pub(super) fn names_others(&self, name: &str) -> bool {
        let people = self.sentences.iter().chain(&self.segments).flat_map(|it| &it.people);
        let mut others = people.filter(|it| !is_same_name(it, name));
        others.any(|it| self.names.is_known(it) || self.speakers.contains(it))
    }

    /// Returns whether somebody does in the lines what only people do.
    fn is_actor(&self, name: &str) -> bool {
        CLAIMS
            .action_forms
            .iter()
            .any(|it| self.actors_by_action.get(it[0]).is_some_and(|actors| actors.contains(name)))
    }

    /// Returns whether the lines have somebody do something else with the same things: who "looks after the
    /// servers" is who "runs the servers", although another one looks after the stations.
    fn acts_on_the_same(&self, name: &str, action: &str, parts: &[SentencePeople]) -> bool {
        let Some(part) = parts.iter().find(|it| it.people.contains(name)) else { return false };
        let is_object = |it: &&String| **it != word_stem(name) && !it.starts_with(action);
        let objects: StemSet = part.stems.iter().filter(is_object).cloned().collect();
        let shared = |is_theirs: bool| {
            let parts = self
                .segments
                .iter()
                .filter(|it| !it.people.is_empty() && it.people.contains(name) == is_theirs);
            let parts = parts.filter(|it| !is_theirs || it.people.len() == 1);
            parts.map(|it| it.stems.intersection(&objects).count()).max().unwrap_or(0)
        };
        shared(true) > 0 && shared(true) >= shared(false)
    }

    /// Returns whether the item has next to nothing in common with its lines.
    ///
    /// `amounts` is the number of quantities in the item, all of which the lines support.
    pub(super) fn is_unrelated(&self, item: &str, context: &[&str], amounts: usize) -> bool {
        let context = context.iter().flat_map(|it| parse_sentences(it));
        let context = context.flat_map(|it| content_stems(&it.words));
        let stems: StemSet = self.stems.iter().cloned().chain(context).collect();
        let all = parse_sentences(item);
        let all = all.iter().flat_map(|it| content_stems(&it.words));
        let all: StemSet = all.filter(|it| !it.starts_with(|c: char| c.is_ascii_digit())).collect();
        let shared = all.intersection(&stems).count();
        // One word of an address may be anything.
        let of_address = all.intersection(&self.address_stems).count();
        let of_address = if of_address > 1 { of_address } else { 0 };
        let shared_own = all.intersection(&self.stems).count().max(of_address);
        let near = all.iter().filter(|it| {
            let start: String = it.chars().take(4).collect();
            self.stems.range(start.clone()..).next().is_some_and(|it| it.starts_with(&start))
        });
        let near = near.count();
        let shared = shared.max(near).max(of_address) + amounts;
        let shared_own = shared_own.max(near) + amounts;
        let all = all.len() + amounts;
        (all >= 3 && shared_own == 0) || (all >= 6 && shared * 4 < all)
    }
}

/// Returns the name of a person that opens a sentence or clause of the item and is not in the lines.
pub(super) fn unknown_person<'i>(
    item: &'i str,
    is_in_lines: &dyn Fn(&str) -> bool,
    known: &dyn Vocabulary,
) -> Option<&'i str> {
    const LOOKUPS_MAX: usize = 8;
    let mut lookups = 0;
    for sentence in parse_sentences(item) {
        for (at, word) in sentence.words.iter().enumerate() {
            let raw = &item[word.start..word.end];
            let opens = at == 0 || word.separator != Separator::Space;
            let before = item[..word.start].trim_end();
            let opens =
                opens || before.is_empty() || before.ends_with([':', '(', '"', '“', '„', '*']);
            if !opens
                || word.in_code
                || !raw.starts_with(char::is_uppercase)
                || raw.chars().count() < 3
                || raw.chars().any(|c| !c.is_alphabetic() && c != '\'' && c != '’')
            {
                continue;
            }
            let name = word.text.trim_end_matches("'s").trim_end_matches("’s");
            if is_in_lines(name) || CLAIMS.unnamed_subjects.contains(&name) {
                continue;
            }
            let first = |it: &str| FIRST_NAMES.contains(it);
            let acts = sentence.words[at + 1..]
                .iter()
                .find(|it| !CLAIMS.between_subject_and_verb.contains(&&it.text[..]));
            let acts = acts.is_some_and(|it| {
                it.separator == Separator::Space && known_action(&it.text).is_some()
            });
            let plain = HEDGING.stop_words.contains(&name)
                || CLAIMS.german_words.contains(&name)
                || word.text.ends_with("ed");
            lookups += 1;
            if first(name)
                || name.strip_suffix('s').is_some_and(first)
                || (acts && !plain)
                || (!plain
                    && lookups <= LOOKUPS_MAX
                    && known.is_person(raw.get(..name.len()).unwrap_or(raw)))
            {
                return Some(raw);
            }
        }
    }
    None
}

/// Returns each capitalized word between two words, after those two.
fn names_in_context(text: &str, sentence: &ParsedSentence<'_>) -> Vec<((String, String), String)> {
    let mut found = Vec::new();
    for three in sentence.words.windows(3) {
        let [before, word, behind] = three else { continue };
        let raw = &text[word.start..word.end];
        let named = raw.starts_with(char::is_uppercase) && raw.chars().all(char::is_alphabetic);
        let joined = |it: &ParsedWord| ["and", "und", "or", "oder"].contains(&&it.text[..]);
        let follows = &text[before.end..word.start] == " ";
        if named && follows && !joined(before) && !joined(behind) && raw.len() > 2 {
            found.push(((before.text.clone(), behind.text.clone()), word.text.clone()));
        }
    }
    found
}

/// Returns the first form of an action that only people do.
fn known_action(word: &str) -> Option<String> {
    let known = CLAIMS.action_forms.iter().find(|it| it.contains(&word));
    known.map(|it| it[0].to_owned())
}

/// Returns whether a word is on the list of first names.
pub(super) fn is_first_name(word: &str) -> bool {
    FIRST_NAMES.contains(&word.to_lowercase()[..])
}

fn is_same_name(a: &str, b: &str) -> bool {
    a.starts_with(b) || b.starts_with(a) || a.ends_with(b) || b.ends_with(a)
}

/// Returns whether a word names a person: one that memories know, or in English by its capital; in German, where all
/// nouns have one, by a list of first names and by titles.
fn is_person(text: &str, words: &[ParsedWord], at: usize, names: NameReader<'_>) -> bool {
    let word = &words[at];
    let raw = &text[word.start..word.end];
    let letters = raw.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '’'));
    if !raw.starts_with(char::is_uppercase) || !letters || word.in_code || raw.len() < 3 {
        return false;
    }
    let name = strip_possessive(&word.text);
    if FIRST_NAMES.contains(name) || names.known.contains(strip_possessive(raw)) {
        return true;
    }
    let before = at.checked_sub(1).map_or("", |it| &words[it].text[..]);
    if names.is_german {
        return ["herr", "herrn", "frau", "firma"].contains(&before);
    }
    // Neither `USB` nor `TideBoard` is a person, but `McKenna` is.
    let prefix = ["Mc", "Mac", "De", "Di", "La", "Le", "Van", "O'", "D'"]
        .iter()
        .find(|it| raw.strip_prefix(**it).is_some_and(|it| it.starts_with(char::is_uppercase)));
    let own = raw.chars().skip(1 + prefix.map_or(0, |it| it.len()));
    let is_one_word = !own.filter(|it| it.is_alphabetic()).any(char::is_uppercase);
    at > 0
        && is_one_word
        && !HEDGING.stop_words.contains(&name)
        && !CLAIMS.unnamed_subjects.contains(&name)
        && is_no_date_word(name)
}

/// Returns whether a line is a label of what follows it, or a heading.
fn is_label(line: &str) -> bool {
    line.starts_with('#') || line.trim_end_matches(['*', '_', ' ']).ends_with(':')
}

fn is_no_date_word(name: &str) -> bool {
    static WEEKDAYS: LazyLock<HashSet<&'static str>> =
        LazyLock::new(|| scan::weekdays().map(|it| it.0).collect());
    !WEEKDAYS.contains(name) && calendar::month_number(name).is_none()
}

fn strip_possessive(word: &str) -> &str {
    word.trim_end_matches("'s").trim_end_matches('\'')
}

fn people(text: &str, sentence: &ParsedSentence<'_>, names: NameReader<'_>) -> HashSet<String> {
    let all = 0..sentence.words.len();
    let people = all.filter(|at| is_person(text, &sentence.words, *at, names));
    people.map(|at| strip_possessive(&sentence.words[at].text).to_owned()).collect()
}

/// Returns the people and the topic of each part of a sentence between commas and other marks.
fn segments(
    text: &str,
    sentence: &ParsedSentence<'_>,
    names: NameReader<'_>,
) -> Vec<SentencePeople> {
    let parts = sentence.words.chunk_by(|_, next| next.separator == Separator::Space);
    parts
        .map(|words| SentencePeople {
            // The first word of a part may be a name as well.
            people: (0..words.len())
                .filter(|at| {
                    is_person(text, words, *at, names)
                        || (*at == 0 && is_capitalized(text, &words[*at]))
                })
                .map(|at| strip_possessive(&words[at].text).to_owned())
                .collect(),
            stems: content_stems(words),
        })
        .collect()
}

fn is_capitalized(text: &str, word: &ParsedWord) -> bool {
    text[word.start..word.end].starts_with(char::is_uppercase)
}

pub(super) fn capitalized(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

/// Returns whether a line says that somebody does what only people do.
pub(super) fn has_deed(text: &str, word: &str) -> bool {
    let lower = word.to_lowercase();
    parse_sentences(text).iter().any(|sentence| {
        let words = &sentence.words;
        (0..words.len()).filter(|at| words[*at].text == lower).any(|at| {
            let mut behind = words[at + 1..].iter();
            let next = behind
                .find(|it| !CLAIMS.between_subject_and_verb.contains(&&it.text[..]))
                .filter(|it| it.separator == Separator::Space);
            next.is_some_and(|it| known_action(&it.text).is_some())
        })
    })
}

/// Returns who does what: the action is the word after a name, or the one before `by` and a name.
fn actions(
    text: &str,
    sentence: &ParsedSentence<'_>,
    names: NameReader<'_>,
) -> Vec<(String, String)> {
    let words = &sentence.words;
    let mut found = Vec::new();
    let action_of = |word: &ParsedWord| {
        let raw = &text[word.start..word.end];
        let lower = !raw.starts_with(char::is_uppercase);
        let plain = word.text.chars().count() > 2
            && !HEDGING.stop_words.contains(&&word.text[..])
            && !CLAIMS.between_subject_and_verb.contains(&&word.text[..])
            && word.text.chars().all(char::is_alphabetic);
        known_action(&word.text).or_else(|| (lower && plain).then(|| verb_stem(&word.text)))
    };
    // People with one action: `Ines and Tobias agreed`.
    let mut group: Vec<String> = Vec::new();
    for at in 0..words.len() {
        if !is_person(text, words, at, names) {
            if !["and", "und", "or", "frau", "herr", "herrn"].contains(&&words[at].text[..]) {
                group.clear();
            }
            continue;
        }
        let raw = &text[words[at].start..words[at].end];
        // `Ines's rule` says nothing of what she does.
        if raw.contains(['\'', '’']) {
            group.clear();
            continue;
        }
        let joins = at.checked_sub(1).is_some_and(|it| {
            words[at].separator == Separator::Comma
                || text[..words[at].start].ends_with('/')
                || ["and", "und", "or", "oder", "frau", "herr", "herrn"]
                    .contains(&&words[it].text[..])
        });
        if words[at].separator == Separator::ClauseMark || !joins {
            group.clear();
        }
        group.push(strip_possessive(&words[at].text).to_owned());
        let by = at.checked_sub(1).map(|it| &words[it].text[..]);
        if let (Some("by" | "von"), Some(before)) = (by, at.checked_sub(2))
            && let Some(action) = action_of(&words[before])
        {
            found.extend(group.iter().map(|it| (it.clone(), action.clone())));
        }
        let rest = &words[at + 1..];
        let skipped = rest
            .iter()
            .take_while(|it| CLAIMS.between_subject_and_verb.contains(&&it.text[..]))
            .count();
        if let Some(next) = rest.get(skipped)
            && next.separator == Separator::Space
            && !is_followed_by_colon(text, &words[at])
            && let Some(action) = action_of(next)
        {
            found.extend(group.iter().map(|it| (it.clone(), action.clone())));
        }
        // `Karin: counted`
        if is_followed_by_colon(text, &words[at]) && at == 0 {
            let name = group.last().cloned().unwrap_or_default();
            for word in rest.iter().filter(|it| is_content(it)).take(12) {
                found.push((name.clone(), format!(":{}", word_stem(&word.text))));
            }
        }
    }
    found
}

fn is_followed_by_colon(text: &str, word: &ParsedWord) -> bool {
    text[word.end..].starts_with(':')
}

/// Returns a verb without its ending.
fn verb_stem(word: &str) -> String {
    let bare = ["ing", "ed", "es", "s", "d", "t", "te", "e"];
    let bare = bare.iter().find_map(|it| word.strip_suffix(it).filter(|it| it.len() > 2));
    bare.unwrap_or(word).chars().take(6).collect()
}

/// Returns whether a text is German.
pub(super) fn is_german(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphabetic()).filter(|it| !it.is_empty());
    let (mut german, mut english) = (0, 0);
    for word in words {
        let word = word.to_lowercase();
        let umlaut = word.contains(['ä', 'ö', 'ü', 'ß']);
        german += usize::from(umlaut || CLAIMS.german_words.contains(&&word[..]));
        english += usize::from(
            [
                "the", "of", "and", "is", "to", "a", "in", "with", "was", "that", "for", "on",
                "by", "from",
            ]
            .contains(&&word[..]),
        );
    }
    german > english
}
