//! Compares what an item claims besides its numbers and names: negations, who did what, and the topic.
//!
//! A program can compare this only where item and lines use the same words. So each rule compares a clause of
//! the item with the clause of the lines that shares most of its words; if there is none, the item passes.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::LazyLock,
};

use super::{Vocabulary, amounts::scan};
use crate::text::{
    calendar,
    clauses::{ParsedSentence, ParsedWord, Separator, parse_sentences, span_text},
    lexicon::{CLAIMS, HEDGING},
};

/// The clauses of longer items are not compared, since that would take too long.
const ITEM_WORDS_MAX: usize = 300;

/// The most clauses of the lines that an item is compared with.
const CLAUSES_MAX: usize = 300;

static FIRST_NAMES: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| CLAIMS.first_names.iter().copied().collect());

/// The first letters of the words that say what a text is about.
type StemSet = BTreeSet<String>;

/// A clause, by its words.
struct Clause {
    stems: StemSet,
    /// What is negated: the word right after each negation, or before it.
    negated_heads: StemSet,
    /// The same, and the words that follow.
    negated: StemSet,
    /// The words that negate in another way, such as `failed`.
    implicit_negations: HashSet<String>,
    words: HashSet<String>,
    /// How many things are negated.
    negations: usize,
    /// How many words negate.
    negation_words: usize,
    /// Whether the last word negates.
    ends_negated: bool,
    /// The words that report a failure of what the clause is about, and not of a thing named by it: `fails to load`,
    /// not `finds broken links`.
    failures: HashSet<String>,
}

/// The claims of the lines that an item cites.
pub(super) struct CitedClaims<'p> {
    clauses: Vec<Clause>,
    /// The same, also cut at `but` and the like.
    contrasted: Vec<Clause>,
    /// Who does what, by the action.
    actors_by_action: HashMap<String, HashSet<String>>,
    sentences: Vec<SentencePeople>,
    /// The same for the parts between commas and other marks.
    segments: Vec<SentencePeople>,
    stems: StemSet,
    /// The words in web addresses, which often are titles: `/unit-testing-a-vuex-store`.
    address_stems: StemSet,
    /// Capitalized words, by the words before and after them.
    names_by_context: HashMap<(String, String), HashSet<String>>,
    words: HashSet<String>,
    /// How many words negate.
    negations: usize,
    /// What the lines say was replaced, and the words of what replaced it: `changed from cron to a timer`.
    replaced: Vec<(StemSet, HashSet<String>)>,
    names: NameReader<'p>,
}

/// How the names of people are distinguished from other words.
#[derive(Clone, Copy)]
struct NameReader<'p> {
    is_german: bool,
    /// The people that memories name.
    known: &'p BTreeSet<String>,
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
            clauses: Vec::new(),
            contrasted: Vec::new(),
            actors_by_action: HashMap::new(),
            sentences: Vec::new(),
            segments: Vec::new(),
            stems: StemSet::new(),
            address_stems: StemSet::new(),
            names_by_context: HashMap::new(),
            words: HashSet::new(),
            negations: 0,
            replaced: Vec::new(),
            names,
        };
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
            for sentence in &parsed {
                all.negations += count_negations(&sentence.words);
                all.replaced.extend(replacements(&sentence.words));
                all.words.extend(sentence.words.iter().map(|it| it.text.clone()));
                all.words
                    .extend(sentence.words.iter().map(|it| strip_possessive(&it.text).to_owned()));
                for (place, name) in names_in_context(line, sentence) {
                    all.names_by_context.entry(place).or_default().insert(name);
                }
                if all.clauses.len() < CLAUSES_MAX {
                    all.clauses.extend(sentence.clauses().into_iter().map(Clause::of));
                    all.contrasted
                        .extend(sentence.contrasted_clauses().into_iter().map(Clause::of));
                }
                for (name, action) in actions(line, sentence, names) {
                    all.actors_by_action.entry(action).or_default().insert(name);
                }
                let people = people(line, sentence, names);
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

    /// Returns the first clause of the item that drops a negation (`true`) or adds one.
    pub(super) fn changed_negation<'i>(&self, item: &'i str) -> Option<(bool, &'i str)> {
        let parsed = parse_sentences(item);
        if parsed.iter().map(|it| it.words.len()).sum::<usize>() > ITEM_WORDS_MAX {
            return None;
        }
        let negations: usize = parsed.iter().map(|it| count_negations(&it.words)).sum();
        for sentence in &parsed {
            let sentence_words: HashSet<&str> =
                sentence.words.iter().map(|it| &it.text[..]).collect();
            let implicit = implicit_negations(&sentence.words);
            let is_negated = count_negations(&sentence.words) > 0;
            let theirs = if is_negated { &self.contrasted } else { &self.clauses };
            for words in sentence.contrasted_clauses() {
                let clause = Clause::of(words);
                let may_negate = negations <= self.negations;
                if drops_negation(theirs, &clause, &implicit) {
                    return Some((true, span_text(item, words)));
                }
                let adds = !clause.negated.is_empty()
                    && !self.supports_negation(&clause, &sentence_words, may_negate)
                    && self.adds_negation(&clause, &sentence_words);
                if adds {
                    return Some((false, span_text(item, words)));
                }
            }
        }
        None
    }

    /// Returns whether the lines say in other words what this clause negates. `may_negate` says whether the item
    /// negates no more often than they do.
    fn supports_negation(
        &self,
        clause: &Clause,
        sentence_words: &HashSet<&str>,
        may_negate: bool,
    ) -> bool {
        let negates_replaced = !clause.negated.is_empty()
            && clause.negation_words == 1
            && self.replaced.iter().any(|(old, new)| {
                clause.negated.is_subset(old)
                    && new.iter().any(|it| sentence_words.contains(&&it[..]))
            });
        if negates_replaced || (may_negate && self.answers_no()) {
            return true;
        }
        !self.states_all_of(clause, sentence_words)
            && ((may_negate && self.negates_near(clause, sentence_words))
                || self.reports_failure(clause, sentence_words))
    }

    /// Returns whether the lines have a negation alone, as an answer: "No, but ..."
    fn answers_no(&self) -> bool {
        self.clauses.iter().any(|it| it.negations > 0 && it.stems.is_empty())
    }

    /// Returns whether a clause of the lines has all words of this one, and does not negate what this one does.
    fn states_all_of(&self, clause: &Clause, sentence_words: &HashSet<&str>) -> bool {
        self.contrasted.iter().any(|it| {
            clause.stems.is_subset(&it.stems)
                && !is_elided(clause, it, sentence_words)
                && !it.fails_at(clause, sentence_words)
                && (clause.negation_words > it.negation_words
                    || !clause.negated_heads.is_subset(&it.negated_heads))
        })
    }

    /// Returns whether the lines negate the same, or anything else about the same.
    fn negates_near(&self, clause: &Clause, sentence_words: &HashSet<&str>) -> bool {
        self.contrasted.iter().any(|it| {
            it.negations > 0
                && (!it.negated_heads.is_disjoint(&clause.negated_heads)
                    || it.stems.intersection(&clause.stems).nth(1).is_some()
                    || is_elided(clause, it, sentence_words))
        })
    }

    /// Returns whether the lines tell of a failure where this clause has a negation instead: "the export failed"
    /// is "the export does not work".
    fn reports_failure(&self, clause: &Clause, sentence_words: &HashSet<&str>) -> bool {
        self.contrasted.iter().any(|it| {
            let has_failure = it
                .words
                .iter()
                .any(|word| CLAIMS.failures.contains(&&word[..]) && !is_kept(word, sentence_words));
            let is_same = || {
                it.fails_at(clause, sentence_words)
                    && it.stems.intersection(&clause.stems).nth(1).is_some()
            };
            (has_failure && !it.stems.is_disjoint(&clause.negated)) || is_same()
        })
    }

    /// Returns whether the lines affirm what this clause negates.
    fn adds_negation(&self, clause: &Clause, sentence_words: &HashSet<&str>) -> bool {
        let drops_implicit =
            |it: &Clause| it.implicit_negations.iter().any(|it| !is_kept(it, sentence_words));
        let is_similar = |it: &&Clause| it.is_similar(clause);
        if let Some(similar) =
            self.contrasted.iter().filter(is_similar).max_by_key(|it| it.negations)
        {
            let adds = clause.negations > similar.negations
                || (clause.negation_words > similar.negation_words
                    && clause.stems.is_subset(&similar.stems));
            return adds && !drops_implicit(similar);
        }
        if self.contrasted.iter().any(|it| !it.negated.is_disjoint(&clause.negated)) {
            return false;
        }
        self.contrasted.iter().any(|it| {
            let shared = it.stems.intersection(&clause.stems).count();
            let is_negated = drops_implicit(it) || !it.negated_heads.is_disjoint(&clause.stems);
            !is_negated
                && !it.stems.is_disjoint(&clause.negated)
                && (shared >= 2 || clause.stems.len() <= 2)
                && shared * 2 >= clause.stems.len()
        })
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
                let others = others.filter(|it| !it.people.is_empty());
                let others = others.map(|it| shared(&it)).max().unwrap_or(0);
                if others >= 3 && others * 2 >= about.len() && with * 3 <= others {
                    return Some((*name).clone());
                }
            }
        }
        None
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

/// Returns whether the lines negate what this clause states. `implicit` are the words that negate in any
/// way in its sentence.
fn drops_negation(theirs: &[Clause], clause: &Clause, implicit: &HashSet<String>) -> bool {
    let shared = |it: &Clause| it.stems.intersection(&clause.stems).count();
    theirs.iter().any(|it| {
        let has_own_negation = || implicit.iter().any(|word| !it.words.contains(word));
        // What the lines negate may be in a part that the item leaves out.
        let states_negated = it.negated.is_empty()
            || !it.negated.is_disjoint(&clause.stems)
            || !clause.stems.is_subset(&it.stems);
        if it.is_similar(clause)
            && it.negations > clause.negations
            && states_negated
            && !has_own_negation()
        {
            return true;
        }
        let heads: StemSet = it
            .negated_heads
            .intersection(&clause.stems)
            .filter(|it| !clause.negated.contains(*it))
            .cloned()
            .collect();
        // A word that the line has as well does not replace its negation.
        if heads.is_empty()
            || clause.negations >= it.negations
            || implicit.iter().any(|word| {
                !it.words.contains(word) && !it.negated_heads.contains(&word_stem(word))
            })
        {
            return false;
        }
        let is_affirmative =
            |it: &&Clause| it.negated_heads.is_disjoint(&heads) && !it.stems.is_disjoint(&heads);
        let affirmed = theirs.iter().filter(is_affirmative).map(shared).max().unwrap_or(0);
        let count = shared(it);
        (count >= 2 || clause.stems.len() <= 2)
            && count * 2 >= clause.stems.len()
            && count > affirmed
    })
}

/// Returns whether a clause of an item only repeats the negation of one of the lines: `…, but Linux is not` of `Linux is
/// not happy`, where the item has `happy` before.
fn is_elided(clause: &Clause, theirs: &Clause, sentence_words: &HashSet<&str>) -> bool {
    clause.ends_negated
        && clause.stems.len() == 1
        && clause.stems.is_subset(&theirs.stems)
        && sentence_words.iter().any(|it| theirs.negated_heads.contains(&word_stem(it)))
}

/// Returns the stems of what words say was replaced, and the words of what replaced it: `changed from cron to a timer`.
fn replacements(words: &[ParsedWord]) -> Vec<(StemSet, HashSet<String>)> {
    const BEFORE_MAX: usize = 6;
    const OLD_MAX: usize = 4;
    const NEW_MAX: usize = 4;
    let is_one = |it: &ParsedWord, all: &[&'static str]| all.contains(&&it.text[..]);
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let before = &words[at.saturating_sub(BEFORE_MAX)..at];
        let behind = &words[at + 1..];
        if !is_one(word, &CLAIMS.from_words) || !before.iter().any(|it| is_one(it, &CLAIMS.changes))
        {
            continue;
        }
        let end = behind.iter().take(OLD_MAX + 1).position(|it| is_one(it, &CLAIMS.to_words));
        let Some(end) = end else { continue };
        let new = behind[end + 1..].iter().take(NEW_MAX).filter(|it| is_content(it));
        let new = new.map(|it| it.text.clone()).collect();
        found.push((content_stems(&behind[..end]), new));
    }
    found
}

/// Returns whether a title advises something: to look after it, or, if the text reports something that fails or is not
/// so, not to do it.
pub(super) fn is_advice(title: &str, text: &str) -> bool {
    let title = parse_sentences(title);
    let Some(words) = title.first().map(|it| &it.words) else { return false };
    let word = |at: usize| words.get(at).map_or("", |it| &it.text[..]);
    let opens = |all: &[&'static str]| {
        all.contains(&word(0)) || all.contains(&&format!("{} {}", word(0), word(1))[..])
    };
    let about = content_stems(words);
    let has_cause = |clause: &[ParsedWord]| {
        let fails = |it: &ParsedWord| CLAIMS.failures.contains(&&it.text[..]);
        (count_negations(clause) > 0 || clause.iter().any(fails))
            && content_stems(clause).intersection(&about).nth(1).is_some()
    };
    opens(&CLAIMS.advice_openers)
        || opens(&CLAIMS.ban_openers)
            && parse_sentences(text)
                .iter()
                .any(|it| it.contrasted_clauses().into_iter().any(has_cause))
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

impl Clause {
    /// Returns whether it has nearly the same words as another clause.
    fn is_similar(&self, other: &Self) -> bool {
        const ALIKE_MIN: usize = 3;
        let shared = self.stems.intersection(&other.stems).count();
        shared >= ALIKE_MIN && shared * 5 >= self.stems.len().max(other.stems.len()) * 4
    }

    fn of(words: &[ParsedWord]) -> Self {
        const FOLLOWING: usize = 3;
        let (mut heads, mut negated) = (StemSet::new(), StemSet::new());
        let mut negations = 0;
        for (at, word) in words.iter().enumerate() {
            if !is_negation(words, at) {
                continue;
            }
            negations += 1;
            let near = words[at + 1..].iter().take_while(|it| it.separator == Separator::Space);
            let mut after = near.filter(|it| is_content(it)).peekable();
            let before = words[..at].iter().rev().find(|it| is_content(it));
            heads.extend(after.peek().copied().or(before).map(|it| word_stem(&it.text)));
            // In some languages the negated word comes before the negation.
            if ["nicht", "pas", "niet"].contains(&&word.text[..]) {
                heads.extend(before.map(|it| word_stem(&it.text)));
            }
            negated.extend(after.take(FOLLOWING).map(|it| word_stem(&it.text)));
        }
        negated.extend(heads.iter().cloned());
        let plain = |it: &String| !it.starts_with("un");
        let implicit = implicit_negations(words)
            .into_iter()
            .filter(plain)
            .filter(|it| !is_negation_word(it))
            .collect();
        let all = words.iter().map(|it| it.text.clone()).collect();
        Self {
            stems: content_stems(words),
            negations: negations.min(1).max(heads.len()),
            negation_words: negations,
            negated_heads: heads,
            negated,
            implicit_negations: implicit,
            ends_negated: words.len().checked_sub(1).is_some_and(|last| is_negation(words, last)),
            failures: failures(words),
            words: all,
        }
    }

    /// Returns whether this clause of the lines reports, in words that a sentence of the item lacks, that what the clause
    /// of the item denies failed.
    fn fails_at(&self, clause: &Self, sentence_words: &HashSet<&str>) -> bool {
        let is_dropped = |word: &String| !is_kept(word, sentence_words);
        self.negations == 0
            && self.failures.iter().any(is_dropped)
            && !self.stems.is_disjoint(&clause.stems)
    }
}

/// Returns the words of a clause that report a failure; none if the clause says that it is over.
fn failures(words: &[ParsedWord]) -> HashSet<String> {
    if words.iter().any(|it| CLAIMS.repairs.contains(&&it.text[..])) {
        return HashSet::new();
    }
    let reports = |at: &usize| {
        let is_before_noun = words.get(at + 1).is_some_and(|it| {
            it.separator == Separator::Space && (is_content(it) || it.text == "of")
        });
        CLAIMS.failures.contains(&&words[*at].text[..]) && !is_before_noun
    };
    (0..words.len()).filter(reports).map(|it| words[it].text.clone()).collect()
}

fn is_negation(words: &[ParsedWord], at: usize) -> bool {
    let word = &words[at];
    let next = words.get(at + 1).map_or("", |it| &it.text[..]);
    let is_negation = is_negation_word(&word.text);
    let is_number = word.text == "no" && next.starts_with(|c: char| c.is_ascii_digit());
    // "Lost no more" negates, "no more than three" does not.
    let after = words.get(at + 2).map_or("", |it| &it.text[..]);
    let is_cancelled = CLAIMS.cancels_negation.contains(&next)
        || CLAIMS.cancels_negation.contains(&&format!("{next} {after}")[..]);
    is_negation && !word.in_code && !is_number && !is_cancelled
}

/// Returns whether an item has a word of its lines, perhaps in another form.
fn is_kept(word: &str, item: &HashSet<&str>) -> bool {
    let start = |word: &str| word.chars().take(4).collect::<String>();
    item.contains(word) || item.iter().any(|it| start(it) == start(word))
}

fn count_negations(words: &[ParsedWord]) -> usize {
    (0..words.len()).filter(|at| is_negation(words, *at)).count()
}

/// Returns the words that negate in any way.
fn implicit_negations(words: &[ParsedWord]) -> HashSet<String> {
    let is_implicit = |at: &usize| {
        let word = &words[*at].text[..];
        is_negation(words, *at)
            || CLAIMS
                .implicit_negations
                .iter()
                .any(|it| if it.chars().count() <= 4 { word == *it } else { word.starts_with(it) })
            || (word.starts_with("un") && word.len() > 6)
    };
    (0..words.len()).filter(is_implicit).map(|at| words[at].text.clone()).collect()
}

fn is_negation_word(word: &str) -> bool {
    CLAIMS.negations.contains(&word) || word.ends_with("n't")
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
    let is_all_caps = raw.chars().filter(|it| it.is_alphabetic()).all(char::is_uppercase);
    at > 0
        && !is_all_caps
        && !HEDGING.stop_words.contains(&name)
        && !CLAIMS.unnamed_subjects.contains(&name)
        && is_no_date_word(name)
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
