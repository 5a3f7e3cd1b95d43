//! Finds items that state as a fact what their lines only suppose.
//!
//! "Maybe we move to Fly.io in June" must not become "We move to Fly.io in June": later runs would carry
//! an idea on as a fact. Each clause of the item is compared with the sentence of the cited lines that
//! shares most of its words:
//!
//! - A hedge elsewhere in the line, or in a clause that the item leaves out, does not count.
//! - Any hedge in the item is enough: "maybe", "perhaps", and "might" mean the same.
//! - The item passes if another cited sentence states the same without a hedge, or reports a decision.
//! - The item passes if no sentence shares its words, as after a translation: nothing can be compared.
//! - Thousands of sentences with the same words would take time that grows with the square of their number.
//!   Beyond a limit the check stops, and the item counts as one that hides a hedge.
//!
//! Pure. [`grounding`](crate::compaction::grounding) calls it for everything that cites lines.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::LazyLock,
};

use crate::{
    privacy::work_counter,
    text::{
        clauses::{
            ParsedSentence, ParsedWord, Separator, parse_sentences, parse_sentences_and_quotes,
            span_text,
        },
        lexicon::{HEDGING, SENTENCES},
    },
};

/// How many sentences may be looked up per word of the item and of its lines, before the check stops.
const LOOKUPS_PER_WORD: usize = 64;

static HEDGES: LazyLock<PhraseTable> = LazyLock::new(|| PhraseTable::new(&HEDGING.hedges));

static CONDITIONS: LazyLock<PhraseTable> = LazyLock::new(|| PhraseTable::new(&HEDGING.conditions));

static OPENING_CONDITIONS: LazyLock<PhraseTable> =
    LazyLock::new(|| PhraseTable::new(&HEDGING.opening_conditions));

static ITEM_HEDGES: LazyLock<PhraseTable> =
    LazyLock::new(|| PhraseTable::new(&HEDGING.item_hedges));

/// Words and phrases: the rest of each phrase, by its first word.
struct PhraseTable(HashMap<&'static str, Vec<&'static str>>);

impl PhraseTable {
    fn new(all: &[&'static str]) -> Self {
        let mut phrases = HashMap::<_, Vec<_>>::new();
        for phrase in all {
            let (first, rest) = phrase.split_once(' ').unwrap_or((phrase, ""));
            phrases.entry(first).or_default().push(rest);
        }
        Self(phrases)
    }

    /// Returns the number of words of the longest phrase that begins at a word.
    fn longest_match(&self, words: &[ParsedWord], at: usize) -> Option<usize> {
        let word = words.get(at).filter(|it| !it.in_code)?;
        let rests = self.0.get(&word.text[..])?.iter();
        let follows = |rest: &&str| {
            let mut next = words[at + 1..].iter();
            rest.split_whitespace().all(|it| next.next().is_some_and(|word| word.text == it))
        };
        rests.copied().filter(follows).map(|it| 1 + it.split_whitespace().count()).max()
    }
}

/// Returns the first clause of the item that drops a hedge of its lines, as the item words it.
pub(crate) fn dropped_hedge<'i>(item: &'i str, lines: &[&str]) -> Option<&'i str> {
    if lines.iter().any(|it| it.trim() == item.trim()) {
        return None;
    }
    let sources: Vec<ParsedSentence<'_>> = lines.iter().flat_map(|line| parse_line(line)).collect();
    // Most lines suppose nothing.
    if !sources.iter().any(is_hedged) {
        return None;
    }
    let (open, stated): (Vec<_>, Vec<_>) = parse_sentences(item).into_iter().partition(leaves_open);
    let all = sources.iter().chain(&open).chain(&stated);
    let mut lookups_left = all.map(|it| it.words.len()).sum::<usize>() * LOOKUPS_PER_WORD;
    // A title may lack the hedge that the text below it has.
    let open: BTreeSet<_> =
        open.iter().map(|it| SentenceProfile::unsettled(content_stems(&it.words))).collect();
    let open = HedgeIndex::of(open);
    let sources = HedgeIndex::of(sources.iter().map(SentenceProfile::of).collect());
    let mut verdicts = BTreeMap::new();
    stated.iter().flat_map(ParsedSentence::clauses).find_map(|clause| {
        let stems = content_stems(clause);
        let is_dropped = *verdicts.entry(stems).or_insert_with_key(|stems| {
            let is_dropped = |lookups_left: &mut usize| {
                let open = open.overlaps(stems, lookups_left)?;
                let is_hedged_elsewhere = open.values().any(|it| it.shared == stems.len());
                Some(
                    !is_hedged_elsewhere
                        && is_only_supposed(
                            stems.len(),
                            &sources,
                            &sources.overlaps(stems, lookups_left)?,
                        ),
                )
            };
            is_dropped(&mut lookups_left).unwrap_or(true)
        });
        is_dropped.then(|| span_text(item, clause))
    })
}

/// Returns whether a text supposes something: `Maybe …`, `it might be …`; but not whether somebody may do something:
/// `up to 800 euro we may order alone`, `Mia may have peanuts, walnuts stay forbidden`.
pub(crate) fn is_guess(text: &str) -> bool {
    let permits = |words: &[ParsedWord]| {
        words.iter().any(|it| HEDGING.permission_words.contains(&&it.text[..]))
    };
    parse_sentences(text).iter().any(|sentence| {
        let words = &sentence.words;
        if permits(words) { has_certain_hedge(words) } else { has_hedge(words) }
    })
}

/// Returns whether the lines only suppose what a clause with `stems` stems states, by the sentences that
/// share some of them.
fn is_only_supposed(
    stems: usize,
    sources: &HedgeIndex,
    overlaps: &BTreeMap<usize, WordOverlap>,
) -> bool {
    let best = overlaps.values().map(|it| it.shared).max().unwrap_or(0);
    // With one word in common, or few of them, no sentence is recognizably the source.
    if best < 2 || best * 5 < stems * 3 {
        return false;
    }
    overlaps.iter().all(|(&at, overlap)| {
        let sentence = &sources.sentences[at];
        let is_source = overlap.shared * 3 >= best * 2;
        let is_supposed = sentence.is_hedged && overlap.stated * 2 <= overlap.shared;
        let reports_decision = !sentence.is_hedged && sentence.is_settled;
        !reports_decision && (!is_source || is_supposed)
    })
}

/// Sentences, and which of them have a word.
struct HedgeIndex {
    sentences: Vec<SentenceProfile>,
    sentences_by_word: HashMap<String, Vec<usize>>,
}

/// How many words of a clause a sentence shares.
#[derive(Clone, Copy, Debug, Default)]
struct WordOverlap {
    shared: usize,
    /// Those that it states without a hedge.
    stated: usize,
}

impl HedgeIndex {
    fn of(sentences: BTreeSet<SentenceProfile>) -> Self {
        let sentences: Vec<SentenceProfile> = sentences.into_iter().collect();
        let mut sentences_by_word = HashMap::<_, Vec<_>>::new();
        for (at, sentence) in sentences.iter().enumerate() {
            for word in &sentence.words {
                sentences_by_word.entry(word.clone()).or_default().push(at);
            }
        }
        Self { sentences, sentences_by_word }
    }

    /// Returns the sentences that share any of the words, or `None` once `lookups_left` is used up.
    fn overlaps(
        &self,
        words: &BTreeSet<String>,
        lookups_left: &mut usize,
    ) -> Option<BTreeMap<usize, WordOverlap>> {
        let mut overlaps = BTreeMap::<_, WordOverlap>::new();
        for word in words {
            let sentences = self.sentences_by_word.get(word).map_or(&[][..], Vec::as_slice);
            *lookups_left = lookups_left.checked_sub(sentences.len())?;
            work_counter::count_bytes(1 + sentences.len());
            for &at in sentences {
                let overlap = overlaps.entry(at).or_default();
                overlap.shared += 1;
                overlap.stated += usize::from(self.sentences[at].stated_words.contains(word));
            }
        }
        Some(overlaps)
    }
}

/// What a sentence is about, and how sure it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SentenceProfile {
    words: BTreeSet<String>,
    /// The words that it states without a hedge.
    stated_words: BTreeSet<String>,
    is_hedged: bool,
    /// Whether it reports what became of an idea.
    is_settled: bool,
}

impl SentenceProfile {
    /// Returns the profile of a sentence that leaves everything open.
    fn unsettled(words: BTreeSet<String>) -> Self {
        Self { words, stated_words: BTreeSet::new(), is_hedged: true, is_settled: false }
    }

    fn of(sentence: &ParsedSentence<'_>) -> Self {
        let clauses = sentence.joined_clauses();
        // `(tentative)`, `maybe:` and the like hedge the whole sentence.
        let is_all_hedged = clauses.iter().any(|it| has_hedge(it) && content_stems(it).is_empty());
        let mut stated_words = BTreeSet::new();
        // A condition may be a clause of its own before the clause that depends on it.
        let mut follows_condition = false;
        for clause in &clauses {
            let condition = find_condition(clause);
            // `clear the cache, and roll back if the disk is full` is a condition of the last step alone.
            let end = condition.map_or(clause.len(), |at| start_of_last_step(clause, at));
            if !(is_all_hedged || follows_condition || has_hedge(&clause[..end])) {
                stated_words.extend(content_stems(&clause[..end]));
            }
            follows_condition = condition == Some(0);
        }
        let settles = |it: &ParsedWord| HEDGING.settling_words.contains(&&it.text[..]);
        Self {
            words: content_stems(&sentence.words),
            stated_words,
            is_hedged: is_hedged(sentence),
            is_settled: sentence.words.iter().any(settles),
        }
    }
}

/// Parses a line; its quotes are clauses of their own, unless it has a doubt outside of them, which may be about them.
fn parse_line(line: &str) -> Vec<ParsedSentence<'_>> {
    let outside: String = line.split(['"', '“', '”']).step_by(2).collect::<Vec<_>>().join(" ");
    if parse_sentences(&outside).iter().any(is_hedged) {
        parse_sentences(line)
    } else {
        parse_sentences_and_quotes(line)
    }
}

fn is_hedged(sentence: &ParsedSentence<'_>) -> bool {
    has_hedge(&sentence.words) || sentence.clauses().iter().any(|it| find_condition(it).is_some())
}

/// Returns whether a sentence of an item leaves something open in any way.
fn leaves_open(sentence: &ParsedSentence<'_>) -> bool {
    let words = &sentence.words;
    is_hedged(sentence)
        || sentence.text.contains('?')
        || (0..words.len()).any(|at| ITEM_HEDGES.longest_match(words, at).is_some())
}

/// Returns the word of a clause at which a condition begins.
fn find_condition(clause: &[ParsedWord]) -> Option<usize> {
    (0..clause.len()).find(|&at| {
        let before = at.checked_sub(1).map(|it| &clause[it].text[..]);
        let is_question = before.is_some_and(|it| HEDGING.no_condition_after.contains(&it));
        (CONDITIONS.longest_match(clause, at).is_some() && !is_question)
            || (at == 0
                && OPENING_CONDITIONS.longest_match(clause, at).is_some()
                && !is_italian_si(clause))
    })
}

/// Returns where the step begins on which a condition at `at` depends: after a comma and a conjunction, or with the clause.
fn start_of_last_step(clause: &[ParsedWord], at: usize) -> usize {
    let begins = |it: &ParsedWord| {
        it.separator == Separator::Comma && SENTENCES.conjunctions.contains(&&it.text[..])
    };
    // Two things may both depend on it: `we sell the boat, and move if the bank agrees`.
    let commas = clause[..at].iter().filter(|it| it.separator == Separator::Comma).count();
    clause[..at].iter().rposition(begins).filter(|_| commas > 1).unwrap_or(0)
}

/// Returns whether a clause that opens with `si` is Italian and states what is done, or opens with a name: `SI Units`.
fn is_italian_si(clause: &[ParsedWord]) -> bool {
    let [si, verb, rest @ ..] = clause else { return false };
    if si.text != "si" {
        return false;
    }
    si.is_acronym
        || HEDGING.italian_after_si.contains(&&verb.text[..])
            && !rest.iter().any(|it| HEDGING.spanish_or_french.contains(&&it.text[..]))
}

fn has_hedge(words: &[ParsedWord]) -> bool {
    has_certain_hedge(words) || (0..words.len()).any(|at| is_hedging_may(words, at))
}

/// Returns whether words have a hedge besides `may`, which also permits.
fn has_certain_hedge(words: &[ParsedWord]) -> bool {
    (0..words.len()).any(|at| {
        let next = words.get(at + 1).map(|it| &it.text[..]);
        let is_past_could = words[at].text == "could"
            && next.is_some_and(|it| HEDGING.no_hedge_after_could.contains(&it));
        !is_past_could && HEDGES.longest_match(words, at).is_some()
    })
}

/// Returns whether a word is `may` before a verb, rather than the month or part of a ban.
fn is_hedging_may(words: &[ParsedWord], at: usize) -> bool {
    let is_may =
        words[at].text == "may" && !words[at].in_code && words[at].separator == Separator::Space;
    let before = at.checked_sub(1).map(|it| &words[it].text[..]);
    let after =
        words.get(at + 1).filter(|it| it.separator == Separator::Space).map(|it| &it.text[..]);
    let is_word = |it: &str| it.chars().count() > 1 && it.chars().all(char::is_alphabetic);
    is_may
        && before.is_some_and(|it| is_word(it) && !HEDGING.before_month_may.contains(&it))
        && after.is_some_and(|it| is_word(it) && !HEDGING.after_month_may.contains(&it))
}

/// Returns what words are about: the first letters of each, since an item may inflect a word.
fn content_stems(words: &[ParsedWord]) -> BTreeSet<String> {
    const STEM_CHARS: usize = 5;
    let mut stems = BTreeSet::new();
    let mut at = 0;
    while at < words.len() {
        let word = &words[at].text;
        let hedge = HEDGES.longest_match(words, at).or_else(|| CONDITIONS.longest_match(words, at));
        if let Some(count) = hedge {
            at += count;
            continue;
        }
        let is_long = word.chars().count() > 2 || word.bytes().any(|b| b.is_ascii_digit());
        let is_content = !HEDGING.settling_words.contains(&&word[..])
            && !HEDGING.stop_words.contains(&&word[..]);
        if is_long && is_content {
            stems.insert(word.chars().take(STEM_CHARS).collect());
        }
        at += 1;
    }
    stems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(item: &str, lines: &[&str], expected: Option<&str>) {
        assert_eq!(dropped_hedge(item, lines), expected, "{item:?} of {lines:?}");
    }

    /// The item states as a fact what the line supposes.
    #[track_caller]
    fn drops_hedge(line: &str, item: &str) {
        check(item, &[line], Some(item.trim_end_matches('.')));
    }

    #[track_caller]
    fn passes(line: &str, item: &str) {
        check(item, &[line], None);
    }

    #[test]
    fn a_guess_stated_as_a_fact_is_found() {
        let item = "We move the database to Fly.io in June.";
        for line in [
            "Maybe we move the database to Fly.io in June.",
            "Perhaps, we move the database to Fly.io in June.",
            "We might move the database to Fly.io in June.",
            "We could move the database to Fly.io in June.",
            "We will probably move the database to Fly.io in June.",
            "It is likely that we move the database to Fly.io in June.",
            "If the budget holds, we move the database to Fly.io in June.",
            "We move the database to Fly.io in June unless Ana objects.",
            "I think we move the database to Fly.io in June.",
            "Not sure: move the database to Fly.io in June.",
            "It seems we move the database to Fly.io in June.",
            "Unconfirmed: we move the database to Fly.io in June.",
            "Move the database to Fly.io in June (tentative)",
            "We plan to move the database to Fly.io in June.",
            "We're considering moving the database to Fly.io in June.",
        ] {
            drops_hedge(line, item);
        }
        drops_hedge(
            "Vielleicht ziehen wir die Datenbank im Juni um.",
            "Die Datenbank ziehen wir im Juni um.",
        );
        drops_hedge(
            "Falls das Budget reicht, ziehen wir die Datenbank um.",
            "Wir ziehen die Datenbank um.",
        );
        drops_hedge(
            "On pourrait migrer la base de données en juin.",
            "Migrer la base de données en juin.",
        );
        drops_hedge(
            "Quizás migramos la base de datos en junio.",
            "Migramos la base de datos en junio.",
        );
        drops_hedge(
            "Tal vez migramos la base de datos en junio.",
            "Migramos la base de datos en junio.",
        );
        drops_hedge("Bob may move to Ghent in the autumn.", "Bob moves to Ghent in the autumn.");
        drops_hedge(
            "The archive may have lost its lease in Ghent.",
            "The archive lost its lease in Ghent.",
        );
        drops_hedge("Forse spostiamo il database in giugno.", "Spostiamo il database in giugno.");
    }

    #[test]
    fn any_kind_of_hedge_is_enough() {
        let line = "Maybe we move the database to Fly.io in June.";
        for item in [
            "Perhaps we move the database to Fly.io in June.",
            "The database might move to Fly.io in June.",
            "The database may move to Fly.io in June.",
            "Considered moving the database to Fly.io in June.",
            "Open: move the database to Fly.io in June",
            "Move the database to Fly.io in June?",
            "An idea: move the database to Fly.io in June.",
            "We move the database to Fly.io if June allows.",
        ] {
            passes(line, item);
        }
        passes("If the build fails, we revert the release.", "When the build fails, revert it.");
        passes("Maybe we move the database.", "Vielleicht: move the database");
    }

    #[test]
    fn only_the_sentence_with_the_words_counts() {
        let line = "We moved the database to Fly.io. Maybe the cache follows in July.";
        passes(line, "We moved the database to Fly.io.");
        check("The cache follows in July.", &[line], Some("The cache follows in July"));
        check(
            "We moved the database to Fly.io; the cache follows in July.",
            &[line],
            Some("the cache follows in July"),
        );
        passes(
            "We chose Postgres, but we might look at Redis again.",
            "We chose Postgres for good.",
        );
        passes("We chose Postgres 16 (the cache might be next).", "We chose Postgres 16.");
        passes("The sync asks Ana, so I keep it short unless Ben needs more.", "The sync asks Ana");
        passes(
            "Start checks the flag of the team — if it is set, skips the prompt.",
            "Start checks the flag of the team",
        );
        passes(
            "I filed the note on the retro, and I left the tentative dates alone.",
            "I filed the note on the retro",
        );
        passes(
            "Bridge: $150M only if the price stays low.",
            "Bridge of $150M. Bridge: $150M only if the price stays low",
        );
        passes("Tests passed on Linux – Windows could be slow.", "Tests passed on Linux.");
    }

    #[test]
    fn words_that_only_look_like_a_hedge_pass() {
        passes("We could not reproduce the crash on Linux.", "Crash on Linux: never reproduced.");
        passes("Ana asked if the release ships on Friday.", "Ana asked: release ships on Friday.");
        passes("The guard `if ready` protects the queue.", "The guard protects the queue.");
        passes("Shipped the export as planned on Friday.", "Shipped the export on Friday.");
        passes("In May the export shipped.", "The export shipped in May.");
        passes("All of May went into the export.", "The export took all of May.");
        passes("The export of May shipped late on Friday.", "The export shipped late on Friday.");
        passes("Reports for April and May shipped on Friday.", "Reports shipped on Friday.");
        passes(
            "Guests may not upload files larger than 5 MB.",
            "Guests never upload files over 5 MB.",
        );
        passes(
            "Could you write down how the export works? https://a.io/how-the-export-works",
            "https://a.io/how-the-export-works",
        );
    }

    #[test]
    fn an_item_passes_if_another_line_states_it() {
        let maybe = "Maybe we move the database to Fly.io in June.";
        let item = "We move the database to Fly.io in June.";
        check(item, &[maybe, "The database moves to Fly.io in June."], None);
        check(item, &[maybe, "Decided: Fly.io it is."], None);
        check(item, &[maybe, "Lunch was good."], Some(item.trim_end_matches('.')));
    }

    #[test]
    fn an_item_passes_if_nothing_can_be_compared() {
        passes("Vielleicht ziehen wir die Datenbank um.", "We move our data in June.");
        passes("Maybe.", "Yes.");
        passes("", "We move the database.");
    }

    #[test]
    fn words_that_are_a_condition_only_in_another_language_pass() {
        for (line, item) in [
            ("Als Format nehmen wir Parquet.", "Wir nehmen Parquet als Format."),
            ("Als Ana kam, lief die Datenbank.", "Die Datenbank lief, als Ana kam."),
            ("Se usa SQLite para staging.", "Usamos SQLite para staging."),
            ("Si usa SQLite per lo staging.", "Usiamo SQLite per lo staging."),
            ("Si deve migrare il database a giugno.", "Migrare il database a giugno, deciso."),
            ("Se decide migrar la base en junio.", "Migrar la base en junio se decide."),
            ("Revenue falls by a third in June.", "Revenue: a third less in June."),
            ("Falls back to the cache on errors.", "The cache serves on errors, back from it."),
        ] {
            passes(line, item);
        }
        for (line, item) in [
            (
                "Wir ziehen die Datenbank um, falls das Budget reicht.",
                "Wir ziehen die Datenbank um.",
            ),
            ("Als het budget klopt verhuizen we de database.", "Verhuizen we de database."),
            ("Se il budget basta spostiamo il database.", "Spostiamo il database."),
            ("Si el presupuesto alcanza movemos la base.", "Movemos la base."),
            ("Si usa SQLite en staging migramos la base.", "Migramos la base en staging."),
            ("Si le budget suffit on migre la base.", "On migre la base."),
            ("Se o orçamento bastar movemos o banco de dados.", "Movemos o banco de dados."),
        ] {
            drops_hedge(line, item);
        }
    }

    #[test]
    fn many_sentences_are_compared_in_time_that_grows_with_their_number() {
        let line = |sentences: usize, of: fn(usize) -> String| (0..sentences).map(of).collect();
        let same: fn(usize) -> String = |_| "Maybe alpha beta gamma. Delta omega kappa. ".into();
        let alike: fn(usize) -> String = |i| {
            let (a, b) = (10_000 + i, 50_000 + i);
            format!("Maybe alpha {a} beta. Alpha {b} beta. ")
        };
        let other: fn(usize) -> String = |i| {
            let (a, b) = (10_000 + i, 50_000 + i);
            format!("Maybe a{a} b{a} c{a}. D{b} e{b} f{b}. ")
        };
        for of in [same, alike, other] {
            // Each byte of the part stands for a sentence.
            work_counter::check_linear("s", 500, |part| {
                let line: String = line(part.len(), of);
                work_counter::count_bytes(1);
                dropped_hedge(&format!("{line} That was it."), &[&line]);
            });
        }
    }

    #[test]
    fn what_somebody_may_do_is_no_guess() {
        for (text, expected) in [
            ("Mia may have peanuts; walnuts stay forbidden", false),
            ("We changed the rule about screens: on Fridays we may watch a film", false),
            ("Up to 800 euro I may order alone", false),
            ("We may move the harbour office in June", true),
            ("The rule may perhaps change", true),
        ] {
            assert_eq!(is_guess(text), expected, "{text}");
        }
    }

    #[test]
    fn an_item_that_is_too_long_to_check_counts_as_hiding_a_hedge() {
        let alike = |i: usize| {
            let (a, b) = (10_000 + i, 50_000 + i);
            format!("Alpha {a} beta. Maybe alpha {b} beta. ")
        };
        let line: String = (0..2000).map(alike).collect();
        assert!(dropped_hedge(&format!("{line} That was it."), &[&line]).is_some());
        assert_eq!(dropped_hedge(&line, &[&line]), None);
        let line: String = (0..20).map(alike).collect();
        assert_eq!(dropped_hedge(&format!("{line} That was it."), &[&line]), None);
    }
}
