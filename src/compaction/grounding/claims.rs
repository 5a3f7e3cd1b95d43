//! What an item claims beside its numbers and names: that something is not so, who did it, and that its
//! lines are about it at all.
//!
//! A program can tell this only where item and line use the same words. So each rule asks for those: a
//! clause of the item is held against the clause of the lines that shares most of its words, and where
//! none does, the item stands.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::LazyLock,
};

use super::amounts;
use crate::text::{
    calendar,
    clauses::{ParsedSentence, ParsedWord, Separator, parse_sentences, span_text},
    lexicon::{CLAIMS, HEDGING},
};

/// A bullet with more words than this is no bullet; its clauses are not compared.
const ITEM_WORDS_MAX: usize = 300;

/// So many clauses of lines are compared with.
const CLAUSES_MAX: usize = 300;

static FIRST_NAMES: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| CLAIMS.first_names.iter().copied().collect());

/// What a text is about, by the first letters of its words.
type StemSet = BTreeSet<String>;

/// A clause, by its words.
struct Clause {
    stems: StemSet,
    /// What is said not to be so: the word right behind a negation, or before it.
    negated_heads: StemSet,
    /// The same, and what follows.
    negated: StemSet,
    /// The words by which it says no without a negation.
    implicit_negations: HashSet<String>,
    words: HashSet<String>,
    negations: usize,
}

/// The lines that an item cites, as far as claims need them.
pub(super) struct CitedClaims {
    clauses: Vec<Clause>,
    /// Who does what, by the deed.
    actors_by_action: HashMap<String, HashSet<String>>,
    sentences: Vec<SentencePeople>,
    stems: StemSet,
    /// What stands with a capital, by the words before and behind it.
    names_by_context: HashMap<(String, String), HashSet<String>>,
    words: HashSet<String>,
    is_german: bool,
}

/// A sentence, by who is named and what it is about.
struct SentencePeople {
    people: HashSet<String>,
    stems: StemSet,
}

impl CitedClaims {
    pub(super) fn of(lines: &[&str]) -> Self {
        let mut all = Self {
            clauses: Vec::new(),
            actors_by_action: HashMap::new(),
            sentences: Vec::new(),
            stems: StemSet::new(),
            names_by_context: HashMap::new(),
            words: HashSet::new(),
            is_german: lines.iter().any(|it| is_german(it)),
        };
        for line in lines {
            let parsed = parse_sentences(line);
            for sentence in &parsed {
                all.words.extend(sentence.words.iter().map(|it| it.text.clone()));
                all.words
                    .extend(sentence.words.iter().map(|it| strip_possessive(&it.text).to_owned()));
                for (place, name) in names_in_context(line, sentence) {
                    all.names_by_context.entry(place).or_default().insert(name);
                }
                if all.clauses.len() < CLAUSES_MAX {
                    all.clauses.extend(sentence.clauses().into_iter().map(Clause::of));
                }
                for (name, deed) in actions(line, sentence, all.is_german) {
                    all.actors_by_action.entry(deed).or_default().insert(name);
                }
                let people = people(line, sentence, all.is_german);
                let stems = content_stems(&sentence.words);
                all.stems.extend(stems.iter().cloned());
                if all.sentences.len() < CLAUSES_MAX {
                    all.sentences.push(SentencePeople { people, stems });
                }
            }
        }
        all
    }

    /// Whether a word of the item stands in the lines, perhaps with another ending.
    pub(super) fn has_word(&self, word: &str, bends: bool) -> bool {
        let endings: &[&str] =
            if bends { &["s", "es", "n", "en", "e", "er", "ern"] } else { &["s", "es"] };
        let has = |it: &str| self.words.contains(it);
        let long = |it: &str| it.chars().count() >= 3;
        has(word)
            || endings.iter().any(|ending| {
                has(&format!("{word}{ending}"))
                    || word.strip_suffix(ending).is_some_and(|it| long(it) && has(it))
            })
    }

    /// Whether a German noun is part of one of the lines, or has one of theirs as a part.
    pub(super) fn has_compound(&self, word: &str) -> bool {
        const PART_MIN: usize = 4;
        let part_of = |whole: &str, part: &str| {
            part.chars().count() >= PART_MIN && (whole.ends_with(part) || whole.starts_with(part))
        };
        self.words.iter().any(|it| part_of(it, word) || (it.len() > 4 && part_of(word, it)))
    }

    /// Returns the clause of the item that drops or adds a negation.
    pub(super) fn changed_negation<'i>(&self, item: &'i str) -> Option<(bool, &'i str)> {
        let parsed = parse_sentences(item);
        if parsed.iter().map(|it| it.words.len()).sum::<usize>() > ITEM_WORDS_MAX {
            return None;
        }
        for sentence in &parsed {
            let said: HashSet<&str> = sentence.words.iter().map(|it| &it.text[..]).collect();
            let loose = implicit_negations(&sentence.words);
            for words in sentence.clauses() {
                let clause = Clause::of(words);
                if self.drops_negation(&clause, &loose) {
                    return Some((true, span_text(item, words)));
                }
                if !clause.negated.is_empty() && self.adds_negation(&clause, &said) {
                    return Some((false, span_text(item, words)));
                }
            }
        }
        None
    }

    /// Whether the lines say that what this clause says is not so. `loose` are the words by which its
    /// sentence says no in any way.
    fn drops_negation(&self, clause: &Clause, loose: &HashSet<String>) -> bool {
        let shared = |it: &Clause| it.stems.intersection(&clause.stems).count();
        self.clauses.iter().any(|it| {
            let new = || loose.iter().any(|word| !it.words.contains(word));
            if it.is_similar(clause) && it.negations > clause.negations && !new() {
                return true;
            }
            let heads: StemSet = it
                .negated_heads
                .intersection(&clause.stems)
                .filter(|it| !clause.negated.contains(*it))
                .cloned()
                .collect();
            // A word of the line's own takes no negation's place.
            if heads.is_empty()
                || clause.negations >= it.negations
                || loose.iter().any(|word| {
                    !it.words.contains(word) && !it.negated_heads.contains(&word_stem(word))
                })
            {
                return false;
            }
            let plain = |it: &&Clause| {
                it.negated_heads.is_disjoint(&heads) && !it.stems.is_disjoint(&heads)
            };
            let flat = self.clauses.iter().filter(plain).map(shared).max().unwrap_or(0);
            let count = shared(it);
            (count >= 2 || clause.stems.len() <= 2)
                && count * 2 >= clause.stems.len()
                && count > flat
        })
    }

    /// Whether the lines say that what this clause denies is so.
    fn adds_negation(&self, clause: &Clause, said: &HashSet<&str>) -> bool {
        let lost = |it: &Clause| it.implicit_negations.iter().any(|word| !said.contains(&word[..]));
        let like = |it: &&Clause| it.is_similar(clause);
        if let Some(like) = self.clauses.iter().filter(like).max_by_key(|it| it.negations) {
            return clause.negations > like.negations && !lost(like);
        }
        if self.clauses.iter().any(|it| !it.negated.is_disjoint(&clause.negated)) {
            return false;
        }
        self.clauses.iter().any(|it| {
            let shared = it.stems.intersection(&clause.stems).count();
            let otherwise = lost(it) || !it.negated_heads.is_disjoint(&clause.stems);
            !otherwise
                && !it.stems.is_disjoint(&clause.negated)
                && (shared >= 2 || clause.stems.len() <= 2)
                && shared * 2 >= clause.stems.len()
        })
    }

    /// Returns who is said to have done what another one did.
    pub(super) fn misattributed_name(&self, item: &str) -> Option<String> {
        let german = self.is_german;
        let parsed = parse_sentences(item);
        if parsed.iter().map(|it| it.words.len()).sum::<usize>() > ITEM_WORDS_MAX {
            return None;
        }
        for sentence in parsed {
            for (name, deed) in actions(item, &sentence, german) {
                if !self.words.contains(&name) {
                    continue;
                }
                let theirs = self.actors_by_action.get(&deed);
                if theirs.is_some_and(|it| !it.iter().any(|it| is_same_name(it, &name))) {
                    return Some(name);
                }
            }
            // Somebody else stands in the same place.
            for (place, name) in names_in_context(item, &sentence) {
                let theirs = self.names_by_context.get(&place);
                let other = theirs.is_some_and(|it| !it.iter().any(|it| is_same_name(it, &name)));
                if other && self.words.contains(&name) {
                    return Some(name);
                }
            }
            // In another sentence of the lines, somebody else is named with these words.
            for words in sentence.clauses() {
                let part = ParsedSentence::from_words(item, words);
                let people = people(item, &part, german);
                let [name] = &people.iter().collect::<Vec<_>>()[..] else { continue };
                if !self.words.contains(*name) {
                    continue;
                }
                let mut about = content_stems(words);
                about.remove(&word_stem(name));
                let shared = |it: &&SentencePeople| it.stems.intersection(&about).count();
                let with = self.sentences.iter().filter(|it| it.people.contains(*name));
                let with = with.map(|it| shared(&it)).max().unwrap_or(0);
                let others = self.sentences.iter().filter(|it| !it.people.contains(*name));
                let others = others.filter(|it| !it.people.is_empty());
                let others = others.map(|it| shared(&it)).max().unwrap_or(0);
                if others >= 3 && others * 2 >= about.len() && with * 3 <= others {
                    return Some((*name).clone());
                }
            }
        }
        None
    }

    /// Whether the item has next to nothing in common with its lines.
    ///
    /// `amounts` are those of the item, which stand in the lines.
    pub(super) fn is_unrelated(&self, item: &str, amounts: usize) -> bool {
        let all = parse_sentences(item);
        let all = all.iter().flat_map(|it| content_stems(&it.words));
        let all: StemSet = all.filter(|it| !it.starts_with(|c: char| c.is_ascii_digit())).collect();
        let shared = all.intersection(&self.stems).count();
        let near = all.iter().filter(|it| {
            let start: String = it.chars().take(4).collect();
            self.stems.range(start.clone()..).next().is_some_and(|it| it.starts_with(&start))
        });
        let shared = shared.max(near.count()) + amounts;
        let all = all.len() + amounts;
        (all >= 3 && shared == 0) || (all >= 6 && shared * 4 < all)
    }
}

/// Returns the name that opens a sentence of the item and stands nowhere in the lines.
pub(super) fn unknown_person<'i>(
    item: &'i str,
    lines: &CitedClaims,
    is_known: &dyn Fn(&str) -> bool,
) -> Option<&'i str> {
    const ASKED_MAX: usize = 8;
    let mut asked = 0;
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
            if lines.has_word(name, true) || CLAIMS.unnamed_subjects.contains(&name) {
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
            asked += 1;
            if first(name)
                || name.strip_suffix('s').is_some_and(first)
                || (acts && !plain)
                || (!plain && asked <= ASKED_MAX && is_known(raw.get(..name.len()).unwrap_or(raw)))
            {
                return Some(raw);
            }
        }
    }
    None
}

impl Clause {
    /// Whether it has nearly the same words as another one.
    fn is_similar(&self, other: &Self) -> bool {
        const ALIKE_MIN: usize = 3;
        let shared = self.stems.intersection(&other.stems).count();
        shared >= ALIKE_MIN && shared * 5 >= self.stems.len().max(other.stems.len()) * 4
    }

    fn of(words: &[ParsedWord]) -> Self {
        const FOLLOWING: usize = 3;
        let (mut heads, mut denied) = (StemSet::new(), StemSet::new());
        let mut negations = 0;
        for (at, word) in words.iter().enumerate() {
            if !is_negation(words, at) {
                continue;
            }
            negations += 1;
            let near = words[at + 1..].iter().take_while(|it| it.separator == Separator::Space);
            let mut behind = near.filter(|it| is_content(it)).peekable();
            let before = words[..at].iter().rev().find(|it| is_content(it));
            heads.extend(behind.peek().copied().or(before).map(|it| word_stem(&it.text)));
            // What is denied stands before the word in some languages.
            if ["nicht", "pas", "niet"].contains(&&word.text[..]) {
                heads.extend(before.map(|it| word_stem(&it.text)));
            }
            denied.extend(behind.take(FOLLOWING).map(|it| word_stem(&it.text)));
        }
        denied.extend(heads.iter().cloned());
        let plain = |it: &String| !it.starts_with("un");
        let loose = implicit_negations(words)
            .into_iter()
            .filter(plain)
            .filter(|it| !is_negation_word(it))
            .collect();
        let all = words.iter().map(|it| it.text.clone()).collect();
        Self {
            stems: content_stems(words),
            negations: negations.min(1).max(heads.len()),
            negated_heads: heads,
            negated: denied,
            implicit_negations: loose,
            words: all,
        }
    }
}

fn is_negation(words: &[ParsedWord], at: usize) -> bool {
    let word = &words[at];
    let next = words.get(at + 1).map_or("", |it| &it.text[..]);
    let no = is_negation_word(&word.text);
    let number = word.text == "no" && next.starts_with(|c: char| c.is_ascii_digit());
    no && !word.in_code && !number && !CLAIMS.cancels_negation.contains(&next)
}

/// Returns the words that say no in any way.
fn implicit_negations(words: &[ParsedWord]) -> HashSet<String> {
    let is_loose = |at: &usize| {
        let word = &words[*at].text[..];
        is_negation(words, *at)
            || CLAIMS
                .implicit_negations
                .iter()
                .any(|it| if it.chars().count() <= 4 { word == *it } else { word.starts_with(it) })
            || (word.starts_with("un") && word.len() > 6)
    };
    (0..words.len()).filter(is_loose).map(|at| words[at].text.clone()).collect()
}

fn is_negation_word(word: &str) -> bool {
    CLAIMS.negations.contains(&word) || word.ends_with("n't")
}

/// Returns what stands with a capital between two words.
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

fn is_content(word: &ParsedWord) -> bool {
    let text = &word.text[..];
    let long = text.chars().count() > 2 || text.bytes().any(|b| b.is_ascii_digit());
    long && !HEDGING.stop_words.contains(&text)
        && !CLAIMS.negations.contains(&text)
        && !text.ends_with("n't")
        && ![
            "longer",
            "yet",
            "ever",
            "mehr",
            "any",
            "anything",
            "anybody",
            "anyone",
            "always",
            "immer",
            "everybody",
            "something",
        ]
        .contains(&text)
}

fn word_stem(word: &str) -> String {
    const STEM: usize = 5;
    let plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    let bare = if plural { &word[..word.len() - 1] } else { word };
    bare.chars().take(STEM).collect()
}

fn content_stems(words: &[ParsedWord]) -> StemSet {
    words.iter().filter(|it| is_content(it)).map(|it| word_stem(&it.text)).collect()
}

/// Returns the one form of what people do.
fn known_action(word: &str) -> Option<String> {
    let known = CLAIMS.action_forms.iter().find(|it| it.contains(&word));
    known.map(|it| it[0].to_owned())
}

fn is_same_name(a: &str, b: &str) -> bool {
    a.starts_with(b) || b.starts_with(a) || a.ends_with(b) || b.ends_with(a)
}

/// Whether a word names a person: in English by its capital, in German, where all nouns have one, by
/// what is known.
fn is_person(text: &str, words: &[ParsedWord], at: usize, german: bool) -> bool {
    let word = &words[at];
    let raw = &text[word.start..word.end];
    let letters = raw.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '’'));
    if !raw.starts_with(char::is_uppercase) || !letters || word.in_code || raw.len() < 3 {
        return false;
    }
    let name = strip_possessive(&word.text);
    if FIRST_NAMES.contains(name) {
        return true;
    }
    let before = at.checked_sub(1).map_or("", |it| &words[it].text[..]);
    if german {
        return ["herr", "herrn", "frau", "firma"].contains(&before);
    }
    let shouted = raw.chars().filter(|it| it.is_alphabetic()).all(char::is_uppercase);
    at > 0
        && !shouted
        && !HEDGING.stop_words.contains(&name)
        && !CLAIMS.unnamed_subjects.contains(&name)
        && is_no_date_word(name)
}

fn is_no_date_word(name: &str) -> bool {
    static WEEKDAYS: LazyLock<HashSet<&'static str>> =
        LazyLock::new(|| amounts::weekdays().map(|it| it.0).collect());
    !WEEKDAYS.contains(name) && calendar::month_number(name).is_none()
}

fn strip_possessive(word: &str) -> &str {
    word.trim_end_matches("'s").trim_end_matches('\'')
}

fn people(text: &str, sentence: &ParsedSentence<'_>, german: bool) -> HashSet<String> {
    let all = 0..sentence.words.len();
    let people = all.filter(|at| is_person(text, &sentence.words, *at, german));
    people.map(|at| strip_possessive(&sentence.words[at].text).to_owned()).collect()
}

/// Returns who does what: the word behind a name, and the one before `by` and a name.
fn actions(text: &str, sentence: &ParsedSentence<'_>, german: bool) -> Vec<(String, String)> {
    let words = &sentence.words;
    let mut found = Vec::new();
    let deed_of = |word: &ParsedWord| {
        let raw = &text[word.start..word.end];
        let lower = !raw.starts_with(char::is_uppercase);
        let plain = word.text.chars().count() > 2
            && !HEDGING.stop_words.contains(&&word.text[..])
            && !CLAIMS.between_subject_and_verb.contains(&&word.text[..])
            && word.text.chars().all(char::is_alphabetic);
        known_action(&word.text).or_else(|| (lower && plain).then(|| verb_stem(&word.text)))
    };
    // Who shares a deed: `Ines and Tobias agreed`.
    let mut group: Vec<String> = Vec::new();
    for at in 0..words.len() {
        if !is_person(text, words, at, german) {
            if !["and", "und", "or", "frau", "herr", "herrn"].contains(&&words[at].text[..]) {
                group.clear();
            }
            continue;
        }
        let raw = &text[words[at].start..words[at].end];
        // `Ines's rule` tells of no deed of hers.
        if raw.contains(['\'', '’']) {
            group.clear();
            continue;
        }
        let joins = at.checked_sub(1).is_some_and(|it| {
            words[at].separator == Separator::Comma
                || ["and", "und", "or", "oder", "frau", "herr", "herrn"]
                    .contains(&&words[it].text[..])
        });
        if words[at].separator == Separator::ClauseMark || !joins {
            group.clear();
        }
        group.push(strip_possessive(&words[at].text).to_owned());
        let by = at.checked_sub(1).map(|it| &words[it].text[..]);
        if let (Some("by" | "von"), Some(before)) = (by, at.checked_sub(2))
            && let Some(deed) = deed_of(&words[before])
        {
            found.extend(group.iter().map(|it| (it.clone(), deed.clone())));
        }
        let rest = &words[at + 1..];
        let skipped = rest
            .iter()
            .take_while(|it| CLAIMS.between_subject_and_verb.contains(&&it.text[..]))
            .count();
        if let Some(next) = rest.get(skipped)
            && next.separator == Separator::Space
            && !is_followed_by_colon(text, &words[at])
            && let Some(deed) = deed_of(next)
        {
            found.extend(group.iter().map(|it| (it.clone(), deed.clone())));
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

/// Whether a text is German.
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
