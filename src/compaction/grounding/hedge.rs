//! Whether an item states flatly what its lines only suppose.
//!
//! "Maybe we move to Fly.io in June" must not become "We move to Fly.io in June": what was a thought
//! would be read as a fact, and be folded on as one. The check goes from each clause of the item to
//! the sentence of the cited lines that holds most of its words:
//!
//! - A hedge elsewhere in the line, or in a clause that the item does not take, does not count.
//! - Any hedge of the item's own will do: "maybe", "perhaps", and "might" say the same.
//! - Another cited sentence that says it flatly settles it, and so does one that tells of a decision.
//! - Where no sentence holds the words, as after a translation, nothing can be told, and the item
//!   stands.
//! - Thousands of sentences that all hold the same words cannot be told apart in a time that grows
//!   with their number. Where it gets that far, the item counts as one that hides a hedge.
//!
//! Pure. Called by [`ground`](crate::compaction::grounding) for all that rests on lines.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::LazyLock,
};

use crate::privacy::work_counter;

/// How many places of the lines may be looked up, per word of the item and of the lines, before it is
/// given up.
const LOOKUPS_PER_WORD: usize = 64;

/// Words by which a source says that it is not sure. Phrases are words with a blank between.
static HEDGES: LazyLock<PhraseTable> = LazyLock::new(|| {
    PhraseTable::new(&[
        "maybe",
        "perhaps",
        "possibly",
        "probably",
        "presumably",
        "supposedly",
        "allegedly",
        "apparently",
        "might",
        "could",
        "likely",
        "seems",
        "seem",
        "seemed",
        "unsure",
        "unconfirmed",
        "tentative",
        "tentatively",
        "i think",
        "we think",
        "i believe",
        "i guess",
        "i suspect",
        "not sure",
        "not certain",
        "not confirmed",
        "not yet confirmed",
        "to be confirmed",
        "tbc",
        "plan to",
        "plans to",
        "planned to",
        "planning to",
        "is planned",
        "are planned",
        "are considering",
        "is considering",
        "am considering",
        "we're considering",
        "i'm considering",
        "they're considering",
        "thinking about",
        "thinking of",
        // German
        "vielleicht",
        "möglicherweise",
        "eventuell",
        "vermutlich",
        "wahrscheinlich",
        "anscheinend",
        "könnte",
        "könnten",
        "dürfte",
        "dürften",
        "unbestätigt",
        "ich glaube",
        "ich denke",
        "nicht sicher",
        "wir planen",
        "ist geplant",
        "sind geplant",
        "wir überlegen",
        "wir erwägen",
        // French
        "peut être",
        "probablement",
        "éventuellement",
        "pourrait",
        "pourraient",
        "pourrions",
        "semble",
        "semblent",
        "je pense",
        "je crois",
        "pas sûr",
        "pas sûre",
        "à confirmer",
        "il se peut",
        "nous envisageons",
        "on envisage",
        // Spanish
        "quizá",
        "quizás",
        "tal vez",
        "a lo mejor",
        "probablemente",
        "posiblemente",
        "podría",
        "podrían",
        "podríamos",
        "parece",
        "creo que",
        "puede que",
        "no estoy seguro",
        "no estoy segura",
        "sin confirmar",
        "por confirmar",
        "estamos considerando",
        // Italian, Portuguese, Dutch
        "forse",
        "probabilmente",
        "potrebbe",
        "potrebbero",
        "talvez",
        "provavelmente",
        "poderia",
        "poderiam",
        "misschien",
        "waarschijnlijk",
        "zou kunnen",
    ])
});

/// Words that make all of a sentence hang on something.
static CONDITIONS: LazyLock<PhraseTable> = LazyLock::new(|| {
    PhraseTable::new(&[
        "if",
        "unless",
        "sofern",
        "außer wenn",
        "à moins",
        "a menos",
        "a condición",
        "à condition",
        "a meno",
        "a menos que",
        "tenzij",
        // "Revenue falls by a third" supposes nothing.
        "falls das",
        "falls der",
        "falls die",
        "falls den",
        "falls dem",
        "falls es",
        "falls wir",
        "falls ich",
        "falls ihr",
        "falls sie",
        "falls er",
        "falls man",
        "falls ein",
        "falls eine",
        "falls kein",
        "falls keine",
        "falls nicht",
        "falls nötig",
        "falls möglich",
        "falls sich",
        "falls noch",
        "falls unser",
        "falls unsere",
        "falls diese",
        "falls jemand",
    ])
});

/// Words that make it so only where a sentence or clause opens with them. "Als Format" is German and
/// "Se usa" Spanish, and neither supposes anything.
static OPENING_CONDITIONS: LazyLock<PhraseTable> = LazyLock::new(|| {
    PhraseTable::new(&[
        "wenn",
        "si", // Dutch
        "als we",
        "als wij",
        "als het",
        "als ze",
        "als je", // Italian, Portuguese
        "se il",
        "se gli",
        "se non",
        "se o",
        "se os",
        "se não",
        "se for",
        "se houver",
    ])
});

/// After an Italian `si` these tell what one does: "Si usa SQLite" supposes nothing.
const ITALIAN_AFTER_SI: &[&str] = &[
    "usa",
    "usano",
    "deve",
    "devono",
    "può",
    "possono",
    "è",
    "sono",
    "fa",
    "fanno",
    "decide",
    "passa",
    "procede",
    "prevede",
    "lavora",
    "mantiene",
    "scrive",
    "scrivono",
    "chiude",
    "apre",
    "aggiorna",
    "conferma",
    "continua",
    "resta",
    "rimane",
    "tratta",
    "va",
    "vanno",
    "ricorda",
    "consiglia",
    "applica",
    "applicano",
    "installa",
    "esegue",
    "eseguono",
    "pubblica",
    "rilascia",
    "sposta",
    "spostano",
    "migra",
    "migrano",
    "prende",
    "mette",
    "vede",
    "trova",
    "parte",
    "salva",
    "tiene",
    "lancia",
    "avvia",
    "carica",
    "crea",
    "evita",
    "preferisce",
];

/// Where one of these stands behind them, it was Spanish or French, and a condition.
const SPANISH_OR_FRENCH_WORDS: &[&str] = &[
    "el", "los", "las", "del", "en", "para", "y", "está", "están", "entonces", "le", "les", "des",
    "du", "nous", "vous", "pas", "est", "et", "on", "pour",
];

/// Before `if` these ask, or compare, and make nothing hang on it.
const NO_CONDITION_AFTER: &[&str] = &[
    "ask",
    "asks",
    "asked",
    "asking",
    "see",
    "saw",
    "seeing",
    "check",
    "checks",
    "checked",
    "checking",
    "know",
    "knows",
    "knew",
    "wonder",
    "wondered",
    "wondering",
    "even",
    "as",
    "test",
    "tests",
    "tested",
    "determine",
    "verify",
    "verified",
    "sure",
    "matter",
    "tell",
    "decide",
];

/// After `could` these tell of what was, or ask for it.
const NO_HEDGE_AFTER_COULD: &[&str] = &["not", "only", "no", "barely", "hardly", "finally", "you"];

/// Before `may` these tell of the month.
const BEFORE_MONTH_MAY: &[&str] = &[
    "in", "of", "by", "until", "till", "since", "from", "to", "through", "before", "after",
    "early", "mid", "late", "last", "next", "this", "for", "and", "or", "on", "the", "during",
    "around", "about", "between", "every", "each", "april", "march", "end", "start", "middle",
    "due", "both", "not", "than", "per",
];

/// After `may` these tell of the month, or of what nobody may.
const AFTER_MONTH_MAY: &[&str] = &[
    "and", "or", "to", "through", "the", "an", "is", "was", "were", "will", "has", "had", "at",
    "in", "on", "with", "for", "by", "of", "not", "we", "they", "he", "she", "it", "you", "until",
    "june", "april",
];

/// What will do as a hedge, or as a condition, in an item.
static ITEM_HEDGES: LazyLock<PhraseTable> = LazyLock::new(|| {
    PhraseTable::new(&[
        "may",
        "allowed",
        "permitted",
        "can",
        "would",
        "should",
        "possible",
        "possibility",
        "potential",
        "potentially",
        "option",
        "options",
        "idea",
        "ideas",
        "proposal",
        "propose",
        "proposes",
        "proposed",
        "suggest",
        "suggests",
        "suggested",
        "suggestion",
        "consider",
        "considers",
        "considered",
        "considering",
        "think",
        "thinks",
        "thought",
        "believe",
        "believes",
        "believed",
        "guess",
        "guesses",
        "suspect",
        "suspects",
        "suspected",
        "assume",
        "assumes",
        "assumed",
        "assumption",
        "plan",
        "plans",
        "planned",
        "planning",
        "intend",
        "intends",
        "hope",
        "hopes",
        "hopefully",
        "expect",
        "expects",
        "expected",
        "unclear",
        "uncertain",
        "unknown",
        "open",
        "whether",
        "question",
        "draft",
        "pending",
        "explore",
        "exploring",
        "evaluate",
        "evaluating",
        "appears",
        "appear",
        "appeared",
        "looks",
        "tbd",
        "depends",
        "depending",
        "assuming",
        "provided",
        "when",
        "whenever",
        "once",
        "until",
        "in case",
        "suspicion",
        "hypothesis",
        "theory",
        "rumour",
        "rumor",
        "doubt",
        "doubts",
        // German
        "kann",
        "können",
        "würde",
        "würden",
        "sollte",
        "sollten",
        "möglich",
        "idee",
        "überlegt",
        "überlegen",
        "erwägt",
        "erwägen",
        "geplant",
        "plant",
        "offen",
        "unklar",
        "ob",
        "sobald",
        "bei",
        // French
        "peut",
        "peuvent",
        "idée",
        "prévu",
        "prévoit",
        "envisage",
        "envisagé",
        "quand",
        "lorsque",
        "incertain",
        // Spanish
        "puede",
        "pueden",
        "posible",
        "propuesta",
        "planea",
        "previsto",
        "cuando",
        "considera",
    ])
});

/// A sentence that holds one of these tells what became of a thought.
const SETTLING_WORDS: &[&str] = &[
    "decided",
    "decision",
    "agreed",
    "confirmed",
    "approved",
    "chose",
    "chosen",
    "final",
    "finalized",
    "finalised",
    "settled",
    "done",
    "shipped",
    "merged",
    "entschieden",
    "beschlossen",
    "bestätigt",
    "erledigt",
    "décidé",
    "décision",
    "confirmé",
    "validé",
    "decidido",
    "confirmado",
    "aprobado",
    "acordado",
];

/// Words that tell nothing of what a sentence is about.
pub(crate) const STOP_WORDS: &[&str] = &[
    "the", "and", "for", "that", "this", "with", "was", "were", "are", "has", "have", "had", "not",
    "but", "from", "into", "will", "would", "should", "can", "may", "our", "their", "they", "them",
    "his", "her", "she", "its", "it's", "you", "your", "all", "any", "been", "being", "also", "so",
    "then", "than", "there", "here", "now", "one", "who", "which", "what", "when", "while", "too",
    "very", "just", "only", "more", "some", "such", "about", "over", "out", "does", "did", "done",
    "der", "die", "das", "und", "den", "dem", "des", "ein", "eine", "einen", "einer", "ist",
    "sind", "wir", "nicht", "mit", "auf", "für", "von", "zum", "zur", "bei", "auch", "les", "des",
    "une", "est", "sont", "nous", "pas", "avec", "pour", "dans", "sur", "qui", "que", "los", "las",
    "una", "por", "para", "con", "del", "como", "más", "pero", "está", "son",
];

/// Between a comma and one of those these part clauses, too.
const CONJUNCTIONS: &[&str] = &["and", "or", "und", "oder", "et", "ou", "y", "o", "e"];

/// A comma before one of these parts two clauses; else it may only part the words of a list.
const CLAUSE_OPENERS: &[&str] = &[
    "but", "though", "although", "while", "whereas", "which", "whose", "who", "where", "so",
    "because", "since", "however", "yet", "we", "i", "it", "they", "he", "she", "you", "this",
    "that", "there", "then", "aber", "obwohl", "während", "weil", "denn", "doch", "wir", "ich",
    "es", "sie", "er", "mais", "car", "donc", "nous", "je", "il", "elle", "pero", "aunque",
    "porque", "mientras", "pues",
];

/// Words and phrases, by the first word of each.
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

    /// Returns how many words the longest phrase has that begins at a word.
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

/// Returns the words of the item that hide a hedge of its lines, if there are any: the clause as
/// the item has it.
pub(crate) fn dropped_hedge<'i>(item: &'i str, lines: &[&str]) -> Option<&'i str> {
    // What is told as it stands hides nothing.
    if lines.iter().any(|it| it.trim() == item.trim()) {
        return None;
    }
    let sources: Vec<ParsedSentence<'_>> =
        lines.iter().flat_map(|line| parse_sentences(line)).collect();
    // Most lines suppose nothing.
    if !sources.iter().any(ParsedSentence::is_hedged) {
        return None;
    }
    let (open, stated): (Vec<_>, Vec<_>) =
        parse_sentences(item).into_iter().partition(ParsedSentence::leaves_open);
    let all = sources.iter().chain(&open).chain(&stated);
    let mut places = all.map(|it| it.words.len()).sum::<usize>() * LOOKUPS_PER_WORD;
    // A title may be short of the hedge that the text below it has.
    let open: BTreeSet<_> =
        open.iter().map(|it| SentenceProfile::unsettled(content_stems(&it.words))).collect();
    let open = HedgeIndex::of(open);
    let sources = HedgeIndex::of(sources.iter().map(SentenceProfile::of).collect());
    let mut known = BTreeMap::new();
    stated.iter().flat_map(ParsedSentence::clauses).find_map(|clause| {
        let words = content_stems(clause);
        let is_hidden = *known.entry(words).or_insert_with_key(|words| {
            let hidden = |places: &mut usize| {
                let said =
                    open.overlaps(words, places)?.values().any(|it| it.shared == words.len());
                Some(
                    !said
                        && is_only_supposed(
                            words.len(),
                            &sources,
                            &sources.overlaps(words, places)?,
                        ),
                )
            };
            hidden(&mut places).unwrap_or(true)
        });
        is_hidden.then(|| span_text(item, clause))
    })
}

/// Returns whether the lines suppose what so many words state, of which they hold those.
fn is_only_supposed(
    words: usize,
    sources: &HedgeIndex,
    held: &BTreeMap<usize, WordOverlap>,
) -> bool {
    let best = held.values().map(|it| it.shared).max().unwrap_or(0);
    // With one word in common, or less than most, nobody can tell which sentence is meant.
    if best < 2 || best * 5 < words * 3 {
        return false;
    }
    held.iter().all(|(&at, held)| {
        let told = &sources.sentences[at];
        let says = held.shared * 3 >= best * 2;
        let supposes = told.is_hedged && held.stated * 2 <= held.shared;
        let settles = !told.is_hedged && told.is_settled;
        !settles && (!says || supposes)
    })
}

/// Sentences, by their words.
struct HedgeIndex {
    sentences: Vec<SentenceProfile>,
    sentences_by_word: HashMap<String, Vec<usize>>,
}

/// How many words of a clause a sentence holds.
#[derive(Clone, Copy, Debug, Default)]
struct WordOverlap {
    shared: usize,
    /// Those that it says without a hedge.
    stated: usize,
}

impl HedgeIndex {
    fn of(told: BTreeSet<SentenceProfile>) -> Self {
        let told: Vec<SentenceProfile> = told.into_iter().collect();
        let mut places = HashMap::<_, Vec<_>>::new();
        for (at, told) in told.iter().enumerate() {
            for word in &told.words {
                places.entry(word.clone()).or_default().push(at);
            }
        }
        Self { sentences: told, sentences_by_word: places }
    }

    /// Returns the sentences that hold any of the words; `None` once too many places were looked up.
    fn overlaps(
        &self,
        words: &BTreeSet<String>,
        left: &mut usize,
    ) -> Option<BTreeMap<usize, WordOverlap>> {
        let mut held = BTreeMap::<_, WordOverlap>::new();
        for word in words {
            let places = self.sentences_by_word.get(word).map_or(&[][..], Vec::as_slice);
            *left = left.checked_sub(places.len())?;
            work_counter::count_bytes(1 + places.len());
            for &at in places {
                let held = held.entry(at).or_default();
                held.shared += 1;
                held.stated += usize::from(self.sentences[at].stated_words.contains(word));
            }
        }
        Some(held)
    }
}

/// A sentence, by what it is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SentenceProfile {
    words: BTreeSet<String>,
    /// What it says without a hedge.
    stated_words: BTreeSet<String>,
    is_hedged: bool,
    is_settled: bool,
}

impl SentenceProfile {
    /// Returns a sentence that leaves all open.
    fn unsettled(words: BTreeSet<String>) -> Self {
        Self { words, stated_words: BTreeSet::new(), is_hedged: true, is_settled: false }
    }

    fn of(sentence: &ParsedSentence<'_>) -> Self {
        let words = content_stems(&sentence.words);
        let hedges = sentence.is_hedged();
        let settles = sentence.words.iter().any(|it| SETTLING_WORDS.contains(&&it.text[..]));
        let mut flat = BTreeSet::new();
        let clauses = sentence.clauses();
        // `(tentative)`, `maybe:` and the like speak of all of it.
        let of_all = clauses.iter().any(|it| has_hedge(it) && content_stems(it).is_empty());
        // What a clause hangs on may stand in a clause of its own before it.
        let mut hangs = false;
        for clause in &clauses {
            let supposes = of_all || hangs || has_hedge(clause) || find_condition(clause).is_some();
            if !supposes {
                flat.extend(content_stems(clause));
            }
            hangs = find_condition(clause) == Some(0);
        }
        Self { words, stated_words: flat, is_hedged: hedges, is_settled: settles }
    }
}

/// A word of a text.
#[derive(Clone, Debug)]
pub(crate) struct ParsedWord {
    /// In lower case.
    pub(crate) text: String,
    /// Where it stands.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether it stands in a code span, where nobody hedges.
    pub(crate) in_code: bool,
    /// Whether a mark that parts clauses, or a comma, stands before it.
    pub(crate) separator: Separator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    Space,
    Comma,
    ClauseMark,
}

pub(crate) struct ParsedSentence<'t> {
    text: &'t str,
    pub(crate) words: Vec<ParsedWord>,
}

impl<'t> ParsedSentence<'t> {
    /// Takes words of a text for a sentence.
    pub(crate) fn from_words(text: &'t str, words: &[ParsedWord]) -> Self {
        Self { text, words: words.to_vec() }
    }

    fn is_hedged(&self) -> bool {
        has_hedge(&self.words) || self.clauses().iter().any(|it| find_condition(it).is_some())
    }

    /// Whether the sentence, of an item, leaves things open in any way.
    fn leaves_open(&self) -> bool {
        self.is_hedged()
            || self.text.contains('?')
            || (0..self.words.len()).any(|at| ITEM_HEDGES.longest_match(&self.words, at).is_some())
    }

    /// Returns the clauses: what marks part, and commas before words that begin a clause.
    pub(crate) fn clauses(&self) -> Vec<&[ParsedWord]> {
        let mut found = Vec::new();
        let mut from = 0;
        for (at, word) in self.words.iter().enumerate().skip(1) {
            let opens = |at: usize| {
                self.words.get(at).is_some_and(|it| CLAUSE_OPENERS.contains(&&it.text[..]))
            };
            let and = CONJUNCTIONS.contains(&&word.text[..]);
            let parts = match word.separator {
                Separator::ClauseMark => true,
                Separator::Comma => opens(at) || (and && opens(at + 1)),
                Separator::Space => false,
            };
            if parts {
                found.push(&self.words[from..at]);
                from = at;
            }
        }
        found.push(&self.words[from..]);
        found
    }
}

/// Returns where a clause begins to hang on something.
fn find_condition(clause: &[ParsedWord]) -> Option<usize> {
    (0..clause.len()).find(|&at| {
        let before = at.checked_sub(1).map(|it| &clause[it].text[..]);
        let asks = before.is_some_and(|it| NO_CONDITION_AFTER.contains(&it));
        (CONDITIONS.longest_match(clause, at).is_some() && !asks)
            || (at == 0
                && OPENING_CONDITIONS.longest_match(clause, at).is_some()
                && !is_italian_si(clause))
    })
}

/// Whether a clause that opens with `si` is an Italian one that tells what one does.
fn is_italian_si(clause: &[ParsedWord]) -> bool {
    let [si, verb, rest @ ..] = clause else { return false };
    si.text == "si"
        && ITALIAN_AFTER_SI.contains(&&verb.text[..])
        && !rest.iter().any(|it| SPANISH_OR_FRENCH_WORDS.contains(&&it.text[..]))
}

fn has_hedge(words: &[ParsedWord]) -> bool {
    (0..words.len()).any(|at| {
        let next = words.get(at + 1).map(|it| &it.text[..]);
        let could = words[at].text == "could";
        let was = could && next.is_some_and(|it| NO_HEDGE_AFTER_COULD.contains(&it));
        (!was && HEDGES.longest_match(words, at).is_some()) || is_hedging_may(words, at)
    })
}

/// Whether a word is `may` before a verb, and neither the month nor a word for what is forbidden.
fn is_hedging_may(words: &[ParsedWord], at: usize) -> bool {
    let is_may =
        words[at].text == "may" && !words[at].in_code && words[at].separator == Separator::Space;
    let before = at.checked_sub(1).map(|it| &words[it].text[..]);
    let after =
        words.get(at + 1).filter(|it| it.separator == Separator::Space).map(|it| &it.text[..]);
    let is_word = |it: &str| it.chars().count() > 1 && it.chars().all(char::is_alphabetic);
    is_may
        && before.is_some_and(|it| is_word(it) && !BEFORE_MONTH_MAY.contains(&it))
        && after.is_some_and(|it| is_word(it) && !AFTER_MONTH_MAY.contains(&it))
}

/// Returns what words are about. Their first letters are enough: an item may bend a word.
fn content_stems(words: &[ParsedWord]) -> BTreeSet<String> {
    const STEM_CHARS: usize = 5;
    let mut found = BTreeSet::new();
    let mut at = 0;
    while at < words.len() {
        let word = &words[at].text;
        let long = word.chars().count() > 2 || word.bytes().any(|b| b.is_ascii_digit());
        let hedge = HEDGES.longest_match(words, at).or_else(|| CONDITIONS.longest_match(words, at));
        if let Some(count) = hedge {
            at += count;
            continue;
        }
        if long && !SETTLING_WORDS.contains(&&word[..]) && !STOP_WORDS.contains(&&word[..]) {
            found.insert(word.chars().take(STEM_CHARS).collect());
        }
        at += 1;
    }
    found
}

fn span_text<'i>(text: &'i str, words: &[ParsedWord]) -> &'i str {
    match (words.first(), words.last()) {
        (Some(first), Some(last)) => &text[first.start..last.end],
        _ => "",
    }
}

/// Cuts a text into sentences and their words.
pub(crate) fn parse_sentences(text: &str) -> Vec<ParsedSentence<'_>> {
    let mut found = Vec::new();
    let mut words: Vec<ParsedWord> = Vec::new();
    let (mut from, mut in_code, mut after) = (0, false, Separator::Space);
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let rest = &text[start..];
        if rest.starts_with("https://") || rest.starts_with("http://") {
            // An address says nothing that could be supposed.
            let end = start + rest.find(char::is_whitespace).unwrap_or(rest.len());
            while chars.next_if(|it| it.0 < end).is_some() {}
            continue;
        }
        if c.is_alphanumeric() {
            let mut end = start + c.len_utf8();
            while let Some(&(at, c)) = chars.peek() {
                let mut rest = text[at + c.len_utf8()..].chars();
                let inside = c.is_alphanumeric()
                    || (matches!(c, '\'' | '’' | '.' | '_')
                        && rest.next().is_some_and(char::is_alphanumeric));
                if !inside {
                    break;
                }
                end = at + c.len_utf8();
                chars.next();
            }
            let text = text[start..end].to_lowercase().replace('’', "'");
            words.push(ParsedWord { text, start, end, in_code, separator: after });
            after = Separator::Space;
            continue;
        }
        match c {
            '`' => in_code = !in_code,
            ',' => after = Separator::Comma,
            ';' | '—' | '–' | '(' | ')' | '|' | '→' => after = Separator::ClauseMark,
            '-' if text[..start].ends_with(' ') => after = Separator::ClauseMark,
            '.' | '!' | '?' | '…' | '。' | '！' | '？' if !in_code => {
                let end = start + c.len_utf8();
                let mut rest = text[end..].trim_start_matches(['"', '\'', '*', ')', '”']).chars();
                let blank = rest.next().is_none_or(char::is_whitespace);
                // `e.g. this` goes on.
                let goes_on = rest.find(|it| !it.is_whitespace()).is_some_and(char::is_lowercase);
                if blank && !goes_on && !words.is_empty() {
                    let sentence = ParsedSentence { text: &text[from..end], words };
                    found.push(sentence);
                    (words, from, after) = (Vec::new(), end, Separator::Space);
                }
            }
            _ => {}
        }
    }
    if !words.is_empty() {
        found.push(ParsedSentence { text: &text[from..], words });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(item: &str, lines: &[&str], expected: Option<&str>) {
        assert_eq!(dropped_hedge(item, lines), expected, "{item:?} of {lines:?}");
    }

    /// The item states all of itself, though the line does not.
    #[track_caller]
    fn flat(line: &str, item: &str) {
        check(item, &[line], Some(item.trim_end_matches('.')));
    }

    #[track_caller]
    fn fine(line: &str, item: &str) {
        check(item, &[line], None);
    }

    #[test]
    fn a_guess_that_is_told_as_a_fact_is_found() {
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
            flat(line, item);
        }
        flat(
            "Vielleicht ziehen wir die Datenbank im Juni um.",
            "Die Datenbank ziehen wir im Juni um.",
        );
        flat(
            "Falls das Budget reicht, ziehen wir die Datenbank um.",
            "Wir ziehen die Datenbank um.",
        );
        flat(
            "On pourrait migrer la base de données en juin.",
            "Migrer la base de données en juin.",
        );
        flat("Quizás migramos la base de datos en junio.", "Migramos la base de datos en junio.");
        flat("Tal vez migramos la base de datos en junio.", "Migramos la base de datos en junio.");
        flat("Bob may move to Ghent in the autumn.", "Bob moves to Ghent in the autumn.");
        flat(
            "The archive may have lost its lease in Ghent.",
            "The archive lost its lease in Ghent.",
        );
        flat("Forse spostiamo il database in giugno.", "Spostiamo il database in giugno.");
    }

    #[test]
    fn a_hedge_of_any_kind_will_do() {
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
            fine(line, item);
        }
        fine("If the build fails, we revert the release.", "When the build fails, revert it.");
        fine("Maybe we move the database.", "Vielleicht: move the database");
    }

    #[test]
    fn only_the_sentence_that_holds_the_words_counts() {
        let line = "We moved the database to Fly.io. Maybe the cache follows in July.";
        fine(line, "We moved the database to Fly.io.");
        check("The cache follows in July.", &[line], Some("The cache follows in July"));
        check(
            "We moved the database to Fly.io; the cache follows in July.",
            &[line],
            Some("the cache follows in July"),
        );
        fine("We chose Postgres, but we might look at Redis again.", "We chose Postgres for good.");
        fine("We chose Postgres 16 (the cache might be next).", "We chose Postgres 16.");
        fine("The sync asks Ana, so I keep it short unless Ben needs more.", "The sync asks Ana");
        fine(
            "Start checks the flag of the team — if it is set, skips the prompt.",
            "Start checks the flag of the team",
        );
        fine(
            "I filed the note on the retro, and I left the tentative dates alone.",
            "I filed the note on the retro",
        );
        fine(
            "Bridge: $150M only if the price stays low.",
            "Bridge of $150M. Bridge: $150M only if the price stays low",
        );
        fine("Tests passed on Linux – Windows could be slow.", "Tests passed on Linux.");
    }

    #[test]
    fn words_that_only_look_like_a_hedge_pass() {
        fine("We could not reproduce the crash on Linux.", "Crash on Linux: never reproduced.");
        fine("Ana asked if the release ships on Friday.", "Ana asked: release ships on Friday.");
        fine("The guard `if ready` protects the queue.", "The guard protects the queue.");
        fine("Shipped the export as planned on Friday.", "Shipped the export on Friday.");
        fine("In May the export shipped.", "The export shipped in May.");
        fine("All of May went into the export.", "The export took all of May.");
        fine("The export of May shipped late on Friday.", "The export shipped late on Friday.");
        fine("Reports for April and May shipped on Friday.", "Reports shipped on Friday.");
        fine(
            "Guests may not upload files larger than 5 MB.",
            "Guests never upload files over 5 MB.",
        );
        fine(
            "Could you write down how the export works? https://a.io/how-the-export-works",
            "https://a.io/how-the-export-works",
        );
    }

    #[test]
    fn what_another_line_says_flatly_stands() {
        let maybe = "Maybe we move the database to Fly.io in June.";
        let item = "We move the database to Fly.io in June.";
        check(item, &[maybe, "The database moves to Fly.io in June."], None);
        check(item, &[maybe, "Decided: Fly.io it is."], None);
        check(item, &[maybe, "Lunch was good."], Some(item.trim_end_matches('.')));
    }

    #[test]
    fn what_cannot_be_told_stands() {
        fine("Vielleicht ziehen wir die Datenbank um.", "We move our data in June.");
        fine("Maybe.", "Yes.");
        fine("", "We move the database.");
    }

    #[test]
    fn what_only_looks_like_a_condition_in_another_language_passes() {
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
            fine(line, item);
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
            flat(line, item);
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
    fn an_item_that_is_too_long_to_be_told_hides_a_hedge() {
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
