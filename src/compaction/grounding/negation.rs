//! Compares what an item denies with what its lines deny.
//!
//! Each clause of the item is compared with the clause of the lines that shares most of its words; if there is none, the
//! item passes. A denial is also supported by a failure, by what was replaced, and by a clause of the same sentence.
//! Pure.

use std::collections::HashSet;

use super::claim_words::{
    CLAUSES_MAX, ITEM_WORDS_MAX, StemSet, content_stems, is_content, word_stem,
};
use crate::text::{
    clauses::{ParsedSentence, ParsedWord, Separator, parse_sentences, span_text},
    lexicon::{CLAIMS, SENTENCES, STRENGTH},
    scripts,
};

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
    /// How many more things they deny, joined by `or`.
    alternatives: usize,
    /// The words of its parts that say that something was removed or disabled.
    ended: Vec<StemSet>,
    /// What is bad when it is lacking.
    missed: StemSet,
    /// What it says is lacking.
    lacking: StemSet,
    /// Whether a pronoun stands for what is lacking: `without them`.
    lacks_pronoun: bool,
    order: Option<Order>,
    /// What is too little by itself: `not just the cache`.
    insufficient: StemSet,
    /// Whether only small words follow the last negation: `but Linux is not`, `while links should not have it`.
    ends_negated: bool,
    denial: DenialScope,
    /// The words that report a failure of what the clause is about, and not of a thing named by it: `fails to load`,
    /// not `finds broken links`.
    failures: HashSet<String>,
}

/// What the denials of a clause are about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DenialScope {
    /// The clause.
    Clause,
    /// An aside behind a comma: `…, no sails`.
    Aside,
    /// What would be so otherwise.
    Otherwise,
}

impl DenialScope {
    fn of(words: &[ParsedWord]) -> Self {
        let mut denials = (0..words.len()).filter(|it| is_negation(words, *it)).peekable();
        if denies_otherwise(words) {
            Self::Otherwise
        } else if denials.peek().is_some()
            && denials.all(|it| words[it].separator != Separator::Space)
        {
            Self::Aside
        } else {
            Self::Clause
        }
    }
}

/// What a clause orders.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// It forbids something: `do not expose the port`.
    Ban,
    /// It says to use something.
    Use,
}

/// What the lines that an item cites deny.
#[derive(Default)]
pub(super) struct CitedNegations {
    clauses: Vec<Clause>,
    /// The same, also cut at `but` and the like.
    contrasted: Vec<Clause>,
    /// How many words negate.
    negations: usize,
    /// Whether a run of a script without spaces negates something, which is not known word by word.
    negates_in_run: bool,
    /// The sentences that report a trouble: what each is about, and the words that report it.
    troubles: Vec<(StemSet, HashSet<String>)>,
    /// What the lines say something else is done or used in place of: `a filter instead of full dumps`.
    passed_over: Vec<StemSet>,
    /// What the lines say was replaced, and the words of what replaced it: `changed from cron to a timer`.
    replaced: Vec<(StemSet, HashSet<String>)>,
}

impl CitedNegations {
    /// Adds a sentence of the lines.
    pub(super) fn add(&mut self, sentence: &ParsedSentence<'_>) {
        self.negations += count_negations(&sentence.words);
        self.negates_in_run |= sentence.words.iter().any(|word| {
            word.text.contains(scripts::is_spaceless)
                && CLAIMS.negations_in_runs.iter().any(|it| word.text.contains(it))
        });
        self.replaced.extend(replacements(&sentence.words));
        self.passed_over.extend(passed_over(&sentence.words));
        let mut troubles = failures(&sentence.words);
        let words = || sentence.words.iter().map(|it| &it.text);
        if !words().any(|it| CLAIMS.repairs.contains(&&it[..])) {
            troubles.extend(words().filter(|it| CLAIMS.harms.contains(&&it[..])).cloned());
        }
        if !troubles.is_empty() {
            self.troubles.push((content_stems(&sentence.words), troubles));
        }
        if self.clauses.len() < CLAUSES_MAX {
            self.clauses.extend(sentence.clauses().into_iter().map(Clause::of));
            self.contrasted.extend(sentence.contrasted_clauses().into_iter().map(Clause::of));
        }
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
        // What reads something else now reads the old no longer.
        let has =
            |all: &HashSet<String>, of: &[&'static str]| of.iter().any(|it| all.contains(*it));
        let about: StemSet = clause.stems.difference(&clause.negated).cloned().collect();
        let is_former = clause.negation_words == 1
            && has(&clause.words, &CLAIMS.no_longer)
            && !self.states_all_of(clause, sentence_words)
            && self
                .contrasted
                .iter()
                .any(|it| has(&it.words, &CLAIMS.now_words) && !it.stems.is_disjoint(&about));
        let bans_what_ended = clause.order == Some(Order::Ban)
            && self.contrasted.iter().any(|it| it.reports_end_of(clause));
        // `Do not pipe A into B: it adds a blank, which caused errors`
        let bans_what_failed = clause.order == Some(Order::Ban)
            && clause.stems.len() > 1
            && self.troubles.iter().any(|(about, words)| {
                // `Do not try X` is about `X`.
                let is_deed = |it: &&String| {
                    !CLAIMS.attempts.contains(&&it[..]) && !CLAIMS.use_openers.contains(&&it[..])
                };
                clause.stems.iter().filter(is_deed).all(|it| has_beginning(about, it))
                    && words.iter().any(|it| sentence_words.contains(&&it[..]))
            });
        // `Do not change it without approval` of `changing it requires approval`
        let needs_what_lacks = clause.order == Some(Order::Ban)
            && !clause.lacking.is_empty()
            && self.contrasted.iter().any(|it| it.requires(clause));
        // `Only the cache does not change it` of `change the index, not just the cache`
        let is_insufficient = clause.order.is_none()
            && has(&clause.words, &CLAIMS.sole_words)
            && self
                .contrasted
                .iter()
                .any(|it| !it.insufficient.is_empty() && it.insufficient.is_subset(&clause.stems));
        // `Jobs need the tide path, not that of the pier` of `the tide path instead of that of the pier`
        let denies_passed_over = clause.negation_words == 1
            && !clause.negated_heads.is_empty()
            && self.passed_over.iter().any(|it| {
                clause.negated_heads.is_subset(it)
                    && (clause.negated.is_subset(it) || clause.order == Some(Order::Ban))
            });
        let is_other_script =
            || !sentence_words.iter().any(|it| it.contains(scripts::is_spaceless));
        // `with the variables; without them it reads the wrong cache`
        let lacks_the_same = || {
            clause.lacks_pronoun
                && self.contrasted.iter().any(|it| {
                    clause.stems.is_subset(&it.stems)
                        && sentence_words.iter().any(|word| it.lacking.contains(&word_stem(word)))
                })
        };
        if (self.negates_in_run && is_other_script())
            || negates_replaced
            || is_former
            || bans_what_ended
            || bans_what_failed
            || needs_what_lacks
            || is_insufficient
            || denies_passed_over
            || lacks_the_same()
            || (may_negate && self.answers_no())
        {
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
}

/// Returns whether the lines negate what this clause states. `implicit` are the words that negate in any
/// way in its sentence.
fn drops_negation(theirs: &[Clause], clause: &Clause, implicit: &HashSet<String>) -> bool {
    let shared = |it: &Clause| it.stems.intersection(&clause.stems).count();
    theirs.iter().any(|it| {
        let has_own_negation = || implicit.iter().any(|word| !it.words.contains(word));
        // What the lines negate may be in a part that the item leaves out.
        // `when it would otherwise have no field`
        if it.denial == DenialScope::Otherwise {
            return false;
        }
        // `Run it with the variable` of `without the variable it reads the wrong cache`
        if clause.order == Some(Order::Use)
            && clause.negations == 0
            && clause.failures.is_empty()
            && !it.missed.is_disjoint(&clause.stems)
        {
            return false;
        }
        let states_negated = it.negated.is_empty()
            || !it.negated.is_disjoint(&clause.stems)
            || !(it.denial == DenialScope::Aside || clause.stems.is_subset(&it.stems));
        if it.is_similar(clause)
            && it.negations > clause.negations + clause.alternatives
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
        // `The beta was not shipped` of `No release on a Friday, also not a beta`.
        let denies_one = clause.negations > 0
            && heads.len() == 1
            && clause.negated_heads.is_disjoint(&it.negated_heads);
        if heads.is_empty()
            || denies_one
            || clause.negations + clause.alternatives >= it.negations
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

fn denies_otherwise(words: &[ParsedWord]) -> bool {
    let otherwise = words.iter().position(|it| CLAIMS.otherwise_words.contains(&&it.text[..]));
    let first = (0..words.len()).find(|at| is_negation(words, *at));
    otherwise.zip(first).is_some_and(|(otherwise, first)| otherwise < first)
}

/// Returns whether a word begins like one of these stems: `piping` is the deed of `pipe`.
fn has_beginning(stems: &StemSet, stem: &str) -> bool {
    const LETTERS_MIN: usize = 3;
    let letters = stem.chars().count().saturating_sub(1).max(LETTERS_MIN);
    let start: String = stem.chars().take(letters).collect();
    stems.range(start.clone()..).next().is_some_and(|it| it.starts_with(&start))
}

/// Returns whether a clause of an item only repeats the negation of one of the lines: `…, but Linux is not` of `Linux is
/// not happy`, where the item has `happy` before.
fn is_elided(clause: &Clause, theirs: &Clause, sentence_words: &HashSet<&str>) -> bool {
    clause.ends_negated
        && !clause.stems.is_empty()
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
    // `tried the old folder, but the files were in the new one`
    let attempt = words.iter().position(|it| is_one(it, &CLAIMS.attempts));
    let behind = attempt.map_or(&[][..], |at| &words[at + 1..]);
    if let Some(end) = behind.iter().position(|it| is_one(it, &SENTENCES.contrasts)) {
        let new = behind[end + 1..].iter().filter(|it| is_content(it));
        let new = new.map(|it| it.text.clone()).collect();
        found.push((content_stems(&behind[..end]), new));
    }
    found
}

/// Returns the stems of what words say something else is in place of: `instead of full dumps`, `rather than the pier`.
fn passed_over(words: &[ParsedWord]) -> Option<StemSet> {
    const WORDS_MAX: usize = 3;
    const PHRASES: [(&str, &str); 3] = [("instead", "of"), ("rather", "than"), ("anstelle", "von")];
    let is_one = |it: &[ParsedWord]| PHRASES.contains(&(&it[0].text[..], &it[1].text[..]));
    let at = words.windows(2).position(is_one).map(|it| it + 2);
    let at = at.or_else(|| words.iter().position(|it| it.text == "statt").map(|it| it + 1))?;
    // What follows is about these only up to a reason.
    let is_near = |it: &&ParsedWord| {
        it.separator == Separator::Space
            && !SENTENCES.clause_openers.contains(&&it.text[..])
            && !STRENGTH.reasons.contains(&&it.text[..])
    };
    let rest = words[at..].iter().take_while(is_near).filter(|it| is_content(it));
    let stems: StemSet = rest.take(WORDS_MAX).map(|it| word_stem(&it.text)).collect();
    (!stems.is_empty()).then_some(stems)
}

/// Returns whether a title advises something: to look after it, or, if the text reports something that fails or is not
/// so, not to do it.
pub(super) fn is_advice(title: &str, text: &str) -> bool {
    let title = parse_sentences(title);
    let Some(words) = title.first().map(|it| &it.words) else { return false };
    let about = content_stems(words);
    // `use the relay instead of the pump`
    let replaces = |clause: &[ParsedWord]| {
        let at = clause.windows(2).position(|it| it[0].text == "instead" && it[1].text == "of");
        let Some((new, old)) = at.map(|at| clause.split_at(at)) else { return false };
        let old = old.iter().take_while(|it| it.separator == Separator::Space).cloned();
        let (new, old) = (content_stems(new), content_stems(&old.collect::<Vec<_>>()));
        let banned = words.iter().find(|it| is_content(it)).map(|it| word_stem(&it.text));
        banned.is_some_and(|it| old.contains(&it) && !new.contains(&it))
    };
    let has_cause = |clause: &[ParsedWord]| {
        replaces(clause)
            || (count_negations(clause) > 0 || clause.iter().any(|it| is_failure(&it.text)))
                && content_stems(clause).intersection(&about).nth(1).is_some()
    };
    opens_with(words, &CLAIMS.advice_openers)
        || opens_with(words, &CLAIMS.ban_openers)
            && parse_sentences(text)
                .iter()
                .any(|it| it.contrasted_clauses().into_iter().any(has_cause))
}

fn order_in(words: &[ParsedWord]) -> Option<Order> {
    if opens_with(words, &CLAIMS.ban_openers) {
        return Some(Order::Ban);
    }
    opens_with(words, &CLAIMS.use_openers).then_some(Order::Use)
}

/// Returns before which word a negation denies: `none of the hints are blockers` denies `blockers`.
fn denied_predicate(words: &[ParsedWord], negation: usize) -> usize {
    let word = |at: usize| words.get(at).map_or("", |it| &it.text[..]);
    if !CLAIMS.none_words.contains(&word(negation))
        || !CLAIMS.of_words.contains(&word(negation + 1))
    {
        return negation;
    }
    let is_verb = |at: &usize| CLAIMS.to_be.contains(&word(*at));
    (negation + 2..words.len()).find(is_verb).unwrap_or(negation)
}

/// Returns what words say is lacking: `foo` of `without foo it reads the wrong cache`.
fn lacking(words: &[ParsedWord]) -> StemSet {
    const FOLLOWING: usize = 4;
    let lacks =
        words.iter().enumerate().filter(|it| CLAIMS.without_words.contains(&&it.1.text[..]));
    lacks
        .flat_map(|(at, _)| content_stems(&words[at + 1..(at + 1 + FOLLOWING).min(words.len())]))
        .collect()
}

/// Returns what words say is too little by itself: `not just the cache`.
fn insufficient(words: &[ParsedWord]) -> StemSet {
    const FOLLOWING: usize = 3;
    let at = words.windows(2).position(|it| {
        is_negation_word(&it[0].text) && CLAIMS.sole_words.contains(&&it[1].text[..])
    });
    at.map_or_else(StemSet::new, |at| {
        content_stems(&words[at + 2..(at + 2 + FOLLOWING).min(words.len())])
    })
}

/// Returns whether words say that something is bad.
fn is_bad(words: &[ParsedWord]) -> bool {
    words.iter().any(|it| is_failure(&it.text) || CLAIMS.harms.contains(&&it.text[..]))
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
        let (mut negations, mut alternatives) = (0, 0);
        for (at, word) in words.iter().enumerate() {
            if !is_negation(words, at) {
                continue;
            }
            negations += 1;
            let at = denied_predicate(words, at);
            let near = words[at + 1..].iter().take_while(|it| it.separator == Separator::Space);
            let is_by = at > 0 && CLAIMS.by_words.contains(&&words[at - 1].text[..]);
            // `Finished by neither` denies what is before it.
            let mut after = near.filter(|it| is_content(it) && !is_by).peekable();
            let before = words[..at].iter().rev().find(|it| is_content(it));
            heads.extend(after.peek().copied().or(before).map(|it| word_stem(&it.text)));
            alternatives += count_alternatives(&words[at + 1..]);
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
            alternatives,
            ended: ended_parts(words),
            negated_heads: heads,
            negated,
            implicit_negations: implicit,
            missed: if is_bad(words) { lacking(words) } else { StemSet::new() },
            lacking: lacking(words),
            lacks_pronoun: words.windows(2).any(|it| {
                CLAIMS.without_words.contains(&&it[0].text[..])
                    && CLAIMS.pronouns.contains(&&it[1].text[..])
            }),
            order: order_in(words),
            insufficient: insufficient(words),
            ends_negated: (0..words.len()).rev().find(|it| is_negation(words, *it)).is_some_and(
                |last| !words[last + 1..].iter().any(|it| is_content(it) || it.in_code),
            ),
            denial: DenialScope::of(words),
            failures: failures(words),
            words: all,
        }
    }

    /// Returns whether this clause of the lines says that all that another one is about was removed or disabled.
    fn reports_end_of(&self, clause: &Self) -> bool {
        clause.stems.len() > 1 && self.ended.iter().any(|it| clause.stems.is_subset(it))
    }

    /// Returns whether this clause of the lines requires, for what another one bans, all that may not be lacking.
    fn requires(&self, ban: &Self) -> bool {
        self.negations == 0
            && self.words.iter().any(|it| CLAIMS.requirements.contains(&&it[..]))
            && ban.lacking.is_subset(&self.stems)
            && ban.stems.iter().all(|it| has_beginning(&self.stems, it))
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

/// Returns how many things a negation denies besides the one after it: `no queue or extra tool`.
fn count_alternatives(after: &[ParsedWord]) -> usize {
    let near = after.iter().take_while(|it| it.separator == Separator::Space);
    near.filter(|it| ["or", "nor", "oder", "ou"].contains(&&it.text[..])).count()
}

/// Returns the words of the parts of a clause, between commas, that say that something was removed or disabled. The end
/// of a ban allows something.
fn ended_parts(words: &[ParsedWord]) -> Vec<StemSet> {
    let is_one = |all: &[&'static str], it: &ParsedWord| all.contains(&&it.text[..]);
    words
        .chunk_by(|_, next| next.separator == Separator::Space)
        .filter(|part| {
            part.iter().any(|it| is_one(&CLAIMS.terminations, it))
                && !part.iter().any(|it| is_one(&CLAIMS.ban_nouns, it))
                && count_negations(part) == 0
        })
        .map(content_stems)
        .collect()
}

/// Returns whether words begin with one of these openers, of one word or two.
fn opens_with(words: &[ParsedWord], openers: &[&'static str]) -> bool {
    let word = |at: usize| words.get(at).map_or("", |it| &it.text[..]);
    openers.contains(&word(0)) || openers.contains(&&format!("{} {}", word(0), word(1))[..])
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
        is_failure(&words[*at].text) && !is_before_noun
    };
    (0..words.len()).filter(reports).map(|it| words[it].text.clone()).collect()
}

/// Returns whether a word reports a failure, or that something is not needed.
fn is_failure(word: &str) -> bool {
    CLAIMS.failures.contains(&word) || CLAIMS.troubles.contains(&word)
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
