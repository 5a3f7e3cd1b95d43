//! Checks that an item says nothing that its cited lines do not say.
//!
//! A program can check that there is a citation, that each cited line exists and is not blank, and that each
//! atom of the item (number, date, money, name, identifier, address, code) is in the cited lines. The date of
//! a cited line counts as part of it. Beyond that:
//!
//! | module | what it compares |
//! |---|---|
//! | `amounts` | numbers, days, and times, by their meaning |
//! | `claims` | who did what, and the topic |
//! | `negation` | what is denied |
//! | `claim_words` | the words by which both compare clauses |
//! | `line_context` | headings and the like, which are above a line |
//! | `list_counts` | how many members the lists within a line have |
//! | `name_forms` | the forms in which lines may have a name of an item |
//! | `hedge` | what the lines only suppose must not become a fact |
//! | `people` | who is a person, and what only a thing with a name |
//! | `prompt_echo` | the words of the prompt, which are no bullet |
//! | `strength` | "only", "always", "best", and reasons, which the lines must have, too |
//! | `typo` | a name that differs by one edit |
//! | `completeness` | the amounts and days that the item leaves out |
//! | `session` | the same checks for the summary of a session |
//!
//! Pure. Each run calls it between engine and vault, whichever engine drafted the item.

mod amounts;
mod cited_text;
mod claim_words;
mod claims;
pub(crate) mod completeness;
pub(crate) mod hedge;
mod line_context;
mod list_counts;
mod name_forms;
mod negation;
pub(crate) mod people;
mod prompt_echo;
pub mod session;
mod strength;
mod typo;

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
};

use chrono::{Datelike as _, NaiveDate};

use self::{
    amounts::{Quantity, SourceQuantities, scan::find_quantities},
    cited_text::{AtomNature, CitedText},
    prompt_echo::find_prompt_echo,
};
use crate::{
    engine::EngineDraft,
    memory::{
        address::{Address, Citation, Stem},
        atom::{self, Atom, AtomKind},
        authorship::OriginReason,
        item::{Item, SummarySection},
        log::TextOrigin,
    },
    privacy::{
        DerivedWording, SanitizedLine, SanitizedLog,
        quarantine::{self, Concern},
    },
    text::spacing,
};

/// Why an item is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// It cites nothing.
    #[error("the bullet cites no line")]
    NoCitation,
    /// It has no text.
    #[error("the bullet has no words")]
    NoWords,
    /// A cited line does not exist.
    #[error("line {address} does not exist")]
    LineMissing {
        /// The line.
        address: Address,
    },
    /// A cited line has no text.
    #[error("line {address} is blank")]
    LineBlank {
        /// The line.
        address: Address,
    },
    /// It reads like an instruction or hides something, though its lines do not.
    #[error("the bullet looks like an attack ({concern}), and its lines do not")]
    Suspicious {
        /// What it looks like.
        concern: Concern,
    },
    /// A number, date, name, or the like is in no cited line.
    #[error("`{atom}` is in none of the cited lines")]
    AtomNotInSources {
        /// The atom as the item spells it.
        atom: String,
    },
    /// It repeats the prompt.
    #[error("`{words}` is part of the prompt, not of a bullet")]
    PromptEcho {
        /// The part of the prompt.
        words: String,
    },
    /// It has no words in common with its lines.
    #[error("the cited lines are about something else")]
    Unrelated,
    /// It states what the lines deny.
    #[error("`{words}` drops a negation of the cited lines")]
    NegationDropped {
        /// What the item states.
        words: String,
    },
    /// It denies what the lines state.
    #[error("`{words}` denies what the cited lines say")]
    NegationAdded {
        /// What the item states.
        words: String,
    },
    /// Somebody else said or did it.
    #[error("the cited lines do not say that of `{name}`")]
    Misattributed {
        /// Whom the item names.
        name: String,
    },
    /// It says more than its lines: `always` where they say once.
    #[error("`{word}` makes it stronger: the cited lines do not say so")]
    Strengthened {
        /// The word.
        word: String,
    },
    /// It gives a reason that its lines do not give.
    #[error("`{words}` is no reason that the cited lines give")]
    ReasonNotInSources {
        /// The reason.
        words: String,
    },
    /// It states as a fact what the lines only suppose.
    #[error("`{words}` is a fact here, but the cited lines only suppose it")]
    HedgeDropped {
        /// What the item states.
        words: String,
    },
}

impl Violation {
    /// Returns whether the item is rejected for what it looks like.
    pub fn is_suspicious(&self) -> bool {
        matches!(self, Self::Suspicious { .. })
    }

    /// Returns the words of the item that break the rule, where it is about some.
    fn faulty_words(&self) -> Option<&str> {
        match self {
            Self::AtomNotInSources { atom: words }
            | Self::Strengthened { word: words }
            | Self::NegationDropped { words }
            | Self::NegationAdded { words }
            | Self::ReasonNotInSources { words }
            | Self::HedgeDropped { words } => Some(words),
            Self::NoCitation
            | Self::NoWords
            | Self::LineMissing { .. }
            | Self::LineBlank { .. }
            | Self::Suspicious { .. }
            | Self::PromptEcho { .. }
            | Self::Unrelated
            | Self::Misattributed { .. } => None,
        }
    }
}

/// No people: for texts about which no memory says anything.
static NOBODY: BTreeSet<String> = BTreeSet::new();

/// Where cited lines are looked up.
pub trait LineLookup {
    /// Returns the log of that name.
    fn log(&self, stem: &Stem) -> Option<&SanitizedLog>;

    /// Returns the line at an address, if its file has it.
    fn line(&self, stem: &Stem, number: u32) -> Option<&SanitizedLine> {
        self.log(stem)?.line(number)
    }

    /// Returns whether the files have a word anywhere, written like this.
    fn has_word(&self, _word: &str) -> bool {
        false
    }

    /// Returns the people that memories name.
    fn known_people(&self) -> &BTreeSet<String> {
        &NOBODY
    }

    /// Returns whether a word is the name of somebody, anywhere in the files.
    fn is_person_name(&self, _word: &str) -> bool {
        false
    }

    /// Returns texts that were checked against cited lines before, each with the last day of its lines, of which all
    /// are cited here: the bullets of weeks from which one of a month is made.
    fn checked_texts(&self, _citation: &Citation) -> Vec<(NaiveDate, &str)> {
        Vec::new()
    }
}

/// The result of checking a draft.
#[derive(Clone, Debug, Default)]
pub struct GroundedDraft {
    /// The items that passed, in their sections and order; empty sections are left out.
    pub sections: Vec<(SummarySection, Vec<Item>)>,
    /// The items that did not pass, and why.
    pub rejected: Vec<(SummarySection, Item, Violation)>,
}

impl LineLookup for [SanitizedLog] {
    fn log(&self, stem: &Stem) -> Option<&SanitizedLog> {
        // Sorted by stem, as an engine gets them.
        let at = self.binary_search_by(|log| log.stem().cmp(stem)).ok()?;
        Some(&self[at])
    }

    fn has_word(&self, word: &str) -> bool {
        people::has_word_in(word, self.iter())
    }

    fn is_person_name(&self, word: &str) -> bool {
        people::is_person_name_in(word, &NOBODY, self.iter())
    }
}

impl LineLookup for Vec<SanitizedLog> {
    fn log(&self, stem: &Stem) -> Option<&SanitizedLog> {
        self.as_slice().log(stem)
    }

    fn has_word(&self, word: &str) -> bool {
        self.as_slice().has_word(word)
    }

    fn is_person_name(&self, word: &str) -> bool {
        self.as_slice().is_person_name(word)
    }
}

/// Returns whether an item is in the words of external text: quotes, code, and logs of mails or web pages.
///
/// Such an item may be shown as one, but no memory and no wisdom entry is made of it until a person accepts
/// its lines. A line in a person's or an agent's own words is enough only for what that line says.
/// `None` if no cited line exists.
pub fn is_external<S: LineLookup + ?Sized>(
    text: &str,
    citation: &Citation,
    sources: &S,
) -> Option<bool> {
    let lines = || citation.addresses().filter_map(|it| sources.line(&it.stem, it.line));
    lines().next()?;
    let cited = lines().flat_map(SanitizedLine::texts_by_origin);
    Some(DerivedWording::of(text, cited).is_external)
}

/// Returns what is wrong with a text that is only in external words, worded for whoever is to correct it.
pub(super) fn external_fault<S: LineLookup + ?Sized>(
    text: &str,
    citation: &Citation,
    sources: &S,
) -> Option<String> {
    if is_external(text, citation, sources) != Some(true) {
        return None;
    }
    let cited = citation.addresses().filter_map(|it| sources.line(&it.stem, it.line));
    let reasons: BTreeSet<&str> =
        cited.filter_map(SanitizedLine::origin_reason).map(OriginReason::name).collect();
    let reasons: Vec<&str> = reasons.into_iter().collect();
    Some(format!(
        "what it says is in nobody's own words ({}): cite a line in somebody's own words that says \
         so, or leave the item out",
        reasons.join(", ")
    ))
}

/// Whose words a draft is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Those of the lines, joined by a program: what they claim is not checked again.
    FromSources,
    /// Anybody's.
    Free,
}

/// Splits a draft into items that pass the checks and items that do not. An item for which `may_pass` holds
/// may look like an attack, since a person has read it.
pub fn check_draft<S: LineLookup + ?Sized>(
    draft: &EngineDraft,
    words: Wording,
    sources: &S,
    may_pass: &dyn Fn(&Item) -> bool,
) -> GroundedDraft {
    let mut grounded = GroundedDraft::default();
    for (section, items) in &draft.sections {
        let mut accepted = Vec::new();
        for item in items {
            let checked = match check_with_wording(item, words, sources, false) {
                Err(why) if why.is_suspicious() && may_pass(item) => {
                    check_with_wording(item, words, sources, true)
                }
                checked => checked,
            };
            match checked {
                Ok(()) => accepted.push(Item {
                    text: item.text.clone(),
                    citation: item.citation.as_ref().map(|it| without_blank_lines(it, sources)),
                }),
                Err(violation) => grounded.rejected.push((*section, item.clone(), violation)),
            }
        }
        if !accepted.is_empty() {
            grounded.sections.push((*section, accepted));
        }
    }
    grounded
}

/// Checks one item that a model wrote: as [`check`] does, and that its lines are about the same topic. The
/// wording of a person may share no word with its lines.
///
/// # Errors
///
/// Returns the first rule that the item breaks.
pub fn check_model_item<S: LineLookup + ?Sized>(item: &Item, sources: &S) -> Result<(), Violation> {
    check(item, sources)?;
    let citation = item.citation.as_ref().ok_or(Violation::NoCitation)?;
    let (cited, _, _) = read_cited(citation, sources)?;
    let text = spacing::spaced(&item.text);
    if cited.has_substring(text.trim()) {
        return Ok(());
    }
    let amounts = find_quantities(&text).iter().filter(|it| !it.is_day_word()).count();
    if cited.is_unrelated(&text, amounts) { Err(Violation::Unrelated) } else { Ok(()) }
}

/// Returns whether a text of a day contains an amount or a day in any form.
pub(super) fn mentions_amount(date: NaiveDate, text: &str, amount: &str) -> bool {
    let mut quantities = SourceQuantities::default();
    quantities.add_line(date, text);
    let wanted = find_quantities(amount);
    wanted.iter().any(|it| !it.is_ambiguous)
        && quantities.first_unsupported(&wanted, |_| false).is_none()
}

/// Atoms that count only as they are written, so that a number in one is no number of its own.
const VERBATIM_KINDS: &[AtomKind] =
    &[AtomKind::Code, AtomKind::Url, AtomKind::Path, AtomKind::Identifier];

/// Checks one item against the lines that it cites.
///
/// # Errors
///
/// Returns the first rule that the item breaks.
pub fn check<S: LineLookup + ?Sized>(item: &Item, sources: &S) -> Result<(), Violation> {
    check_with_wording(item, Wording::Free, sources, false)
}

/// Checks the title of something against the lines that it cites: what it names may also be named elsewhere in
/// the files, but its numbers and its strong words must be in the lines or in what is above them.
///
/// # Errors
///
/// Returns the first rule that the title breaks.
pub fn check_title<S: LineLookup + ?Sized>(
    title: &str,
    citation: &Citation,
    sources: &S,
) -> Result<(), Violation> {
    let (mut cited, _, _) = read_cited(citation, sources)?;
    let title = &*spacing::spaced(title);
    let known = KnownWords::new(sources);
    let missing = |atom: &str| Violation::AtomNotInSources { atom: atom.to_owned() };
    let atoms = atom::find_atoms(title);
    let is_verbatim = |it: &Quantity| {
        names_year_of(title, it, citation)
            || atoms.iter().any(|atom| {
                atom.start <= it.start && it.end <= atom.end && VERBATIM_KINDS.contains(&atom.kind)
            })
    };
    let quantities = find_quantities(title);
    if let Some((start, end)) = cited.first_unsupported(title, &quantities, is_verbatim) {
        return Err(missing(&title[start..end]));
    }
    let is_value = |it: &Atom| quantities.iter().any(|of| of.start < it.end && it.start < of.end);
    for atom in atoms.iter().filter(|it| VERBATIM_KINDS.contains(&it.kind) || !is_value(it)) {
        let text = atom.text(title);
        let is_supported = cited.supports_atom(atom, title, &known);
        let is_elsewhere =
            || known.has_word(text) && !cited.replaces_name(AtomNature::Version, title, &known);
        if !is_supported && !is_elsewhere() {
            return Err(missing(text));
        }
    }
    let is_named = |word: &str| {
        cited.has_inflected_word(word, title, &known)
            || known.has_word(word)
            || known.has_word(&claims::capitalized(word))
    };
    if let Some(name) = claims::unknown_person(title, &is_named, &known) {
        return Err(missing(name));
    }
    cited.check_strength(title)
}

/// Returns title and text of an entry as sentences.
pub fn entry_words(title: &str, text: &str) -> String {
    if title.is_empty() { text.to_owned() } else { format!("{title}. {text}") }
}

/// Checks an entry of `WISDOM.md`. Its title may order what its lines give cause for, `Verify that forks run their tests`
/// where they did not: then it is checked as a title, and the text by itself.
///
/// # Errors
///
/// Returns the first rule that the entry breaks.
pub fn check_entry<S: LineLookup + ?Sized>(
    title: &str,
    text: &str,
    citation: &Citation,
    sources: &S,
) -> Result<(), Violation> {
    let item = |text: String| Item { text, citation: Some(citation.clone()) };
    match check(&item(entry_words(title, text)), sources) {
        Err(
            Violation::NegationDropped { words }
            | Violation::NegationAdded { words }
            | Violation::HedgeDropped { words },
        ) if title.contains(&words) && negation::is_advice(title, text) => {
            check_title(title, citation, sources)?;
            let (cited, _, _) = read_cited(citation, sources)?;
            if let Some(name) = cited
                .claims()
                .misattributed_name(&spacing::spaced(title), &KnownWords::new(sources))
            {
                return Err(Violation::Misattributed { name });
            }
            check(&item(text.to_owned()), sources)
        }
        checked => checked,
    }
}

/// The most faults that are named of one text.
const FAULTS_MAX: usize = 4;

/// Returns what is wrong with a text, worded for whoever is to correct it: the first rule that it breaks, and what else
/// is wrong without those words, so that one correction can mend it all.
pub(crate) fn faults_of(
    text: &str,
    check: impl Fn(&str) -> Result<(), Violation>,
) -> Option<String> {
    let mut rest = text.to_owned();
    let mut faults: Vec<String> = Vec::new();
    while faults.len() < FAULTS_MAX {
        let Err(why) = check(&rest) else { break };
        let words = why.faulty_words();
        // What else is wrong with a text in which words are missing may come of that, as `/UX` of `UI/UX`.
        let is_whole = |it: &str| {
            text.contains(it) && it.starts_with(|c: char| c.is_alphanumeric() || "`$€£".contains(c))
        };
        if faults.is_empty() || words.is_some_and(is_whole) {
            faults.push(why.to_string());
        }
        match words.map(|it| without_words(&rest, it)) {
            Some(without) if without != rest => rest = without,
            _ => break,
        }
    }
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// Returns a text without some words, wherever they are no part of others: `1` is no part of `17,250`.
fn without_words(text: &str, words: &str) -> String {
    let mut rest = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices(words) {
        let end = at + words.len();
        let digit_before = text[..at].trim_end_matches(['.', ',']).ends_with(char::is_alphanumeric);
        let digit_after =
            text[end..].trim_start_matches(['.', ',']).starts_with(|c: char| c.is_ascii_digit());
        let is_part = text[..at].ends_with(char::is_alphanumeric)
            || text[end..].starts_with(char::is_alphanumeric)
            || (words.ends_with(|c: char| c.is_ascii_digit()) && digit_after)
            || (text[..at].ends_with(['.', ',']) && digit_before);
        if !is_part {
            rest.push_str(&text[from..at]);
            from = end;
        }
    }
    rest + &text[from..]
}

/// Returns whether an item is rejected only because it looks like an attack.
pub fn is_only_suspicious<S: LineLookup + ?Sized>(item: &Item, sources: &S) -> bool {
    check(item, sources).is_err_and(|it| it.is_suspicious())
        && check_with_wording(item, Wording::Free, sources, true).is_ok()
}

/// Reads the cited lines. Returns also whether one of them is not external, and whether a person accepted one.
///
/// # Errors
///
/// If a line is missing, or if a range has only blank lines.
fn read_cited<'s, S: LineLookup + ?Sized>(
    citation: &Citation,
    sources: &'s S,
) -> Result<(CitedText<'s>, bool, bool), Violation> {
    let mut cited = CitedText::new(sources.known_people());
    let (mut is_own, mut is_accepted) = (false, false);
    for (stem, lines) in citation.files() {
        // Range by range: a citation that a person typed may claim a million lines.
        for &(first, last) in lines.ranges() {
            let mut is_blank = true;
            for number in first..=last {
                let found = sources.log(stem).and_then(|log| Some((log, log.line(number)?)));
                let (log, line) = found.ok_or_else(|| Violation::LineMissing {
                    address: Address { stem: stem.clone(), line: number },
                })?;
                if line.text().trim().is_empty() {
                    continue;
                }
                is_blank = false;
                is_own |= line.origin() != TextOrigin::External;
                is_accepted |= line.is_accepted();
                cited.add(log, line);
            }
            if is_blank {
                let address = Address { stem: stem.clone(), line: first };
                return Err(Violation::LineBlank { address });
            }
        }
    }
    cited.add_checked_texts(sources.checked_texts(citation));
    Ok((cited, is_own, is_accepted))
}

/// Returns a citation without the blank lines within its ranges.
pub fn without_blank_lines<S: LineLookup + ?Sized>(citation: &Citation, sources: &S) -> Citation {
    let mut whole = citation.clone();
    for (stem, lines) in citation.files() {
        let is_blank =
            |it: &u32| sources.line(stem, *it).is_some_and(|line| line.text().trim().is_empty());
        if lines.iter().any(|it| is_blank(&it)) {
            whole.replace_lines(stem, lines.iter().filter(|it| !is_blank(it)).collect());
        }
    }
    whole
}

fn check_with_wording<S: LineLookup + ?Sized>(
    item: &Item,
    words: Wording,
    sources: &S,
    is_read: bool,
) -> Result<(), Violation> {
    let citation = item.citation.as_ref().ok_or(Violation::NoCitation)?;
    if item.text.trim().is_empty() {
        return Err(Violation::NoWords);
    }
    let (mut cited, is_own, is_accepted) = read_cited(citation, sources)?;
    let is_accepted = is_accepted || is_read;
    // A person who accepted a line has read it.
    if !is_accepted {
        let origin = if is_own { TextOrigin::Agent } else { TextOrigin::External };
        if let Some(&concern) = quarantine::concerns(&item.text, origin).first() {
            return Err(Violation::Suspicious { concern });
        }
    }
    let known = KnownWords::new(sources);
    let text = spacing::spaced(&item.text);
    // A verbatim item names nothing new; but what was cut out of it may have mattered.
    let whole = text.trim();
    if cited.contains_verbatim(whole) {
        let is_free = words == Wording::Free && whole.contains('…');
        return cited.check_claims(&text, is_free, &known);
    }
    if words == Wording::Free
        && let Some(words) = find_prompt_echo(whole, &cited)
    {
        return Err(Violation::PromptEcho { words });
    }
    let atoms = atom::find_atoms(&text);
    let quantities = find_quantities(&text);
    let is_part_of = |at: usize, of: &[AtomKind]| {
        let found = atoms.partition_point(|it| it.end <= at);
        atoms.get(found).is_some_and(|it| it.start <= at && of.contains(&it.kind))
    };
    let mut listed = cited.list_counts();
    // The item itself may name what it counts, each of which is checked.
    listed.extend(list_counts::of_line(&text));
    let counts_items = |it: &Quantity| listed.iter().any(|count| it.counts(*count));
    let is_counted = |it: &Quantity| {
        is_part_of(it.start, VERBATIM_KINDS)
            || names_year_of(&text, it, citation)
            || counts_days(&text[it.start..], citation)
            || cited.has_short_day(&text, it)
            || name_forms::has_size_in_other_case(&text[it.start..it.end], cited.lines())
            || (it.start < it.end && counts_items(it) && !cited.counts_noun_of(it))
            || is_in_file_name(&text, it, &cited)
    };
    let missing = cited.first_unsupported(&text, &quantities, is_counted);
    if let Some((start, end)) = missing {
        let atom = text[start..end].to_owned();
        return Err(Violation::AtomNotInSources { atom });
    }
    for atom in &atoms {
        let at = quantities.partition_point(|it| it.end <= atom.start);
        let is_checked = quantities.get(at).is_some_and(|it| it.start <= atom.start);
        if is_checked && !VERBATIM_KINDS.contains(&atom.kind) {
            continue;
        }
        let is_noun = || {
            claims::is_german(&text)
                && people::is_german_noun(&text, atom, |it| known.is_person(it))
        };
        if !cited.supports_atom(atom, &text, &known) && !is_noun() {
            return Err(Violation::AtomNotInSources { atom: atom.text(&text).to_owned() });
        }
    }
    if words == Wording::FromSources {
        return cited.check_claims(&text, false, &known);
    }
    let is_in_lines = |word: &str| cited.has_inflected_word(word, &text, &known);
    if let Some(name) = claims::unknown_person(&text, &is_in_lines, &known) {
        return Err(Violation::AtomNotInSources { atom: name.to_owned() });
    }
    cited.check_claims(&text, true, &known)?;
    // Whoever reads an item judges its words.
    if is_read { Ok(()) } else { cited.check_strength(&text) }
}

/// What is known of words from all the files.
struct KnownWords<'s, S: ?Sized> {
    sources: &'s S,
    /// Answers so far: each needs all the files, and an item names the same people often.
    people: RefCell<HashMap<String, bool>>,
    words: RefCell<HashMap<String, bool>>,
}

impl<'s, S: ?Sized> KnownWords<'s, S> {
    fn new(sources: &'s S) -> Self {
        Self { sources, people: RefCell::default(), words: RefCell::default() }
    }
}

/// Returns the known answer for a word, or finds it and keeps it.
fn answer_once(
    known: &RefCell<HashMap<String, bool>>,
    word: &str,
    find: impl FnOnce() -> bool,
) -> bool {
    if let Some(answer) = known.borrow().get(word) {
        return *answer;
    }
    let answer = find();
    known.borrow_mut().insert(word.to_owned(), answer);
    answer
}

/// What is known of words, wherever they are written.
trait Vocabulary {
    /// Returns whether a word is the name of a person.
    fn is_person(&self, word: &str) -> bool;

    /// Returns whether any file has the word, written like this.
    fn has_word(&self, word: &str) -> bool;
}

impl<S: LineLookup + ?Sized> Vocabulary for KnownWords<'_, S> {
    fn is_person(&self, word: &str) -> bool {
        claims::is_first_name(word)
            || answer_once(&self.people, word, || self.sources.is_person_name(word))
    }

    fn has_word(&self, word: &str) -> bool {
        answer_once(&self.words, word, || self.sources.has_word(word))
    }
}

/// Returns whether a date is part of the name of a file, which code of the lines has with the word before it.
fn is_in_file_name(text: &str, quantity: &Quantity, cited: &CitedText<'_>) -> bool {
    let Some(date) = text.get(quantity.start..quantity.end) else { return false };
    let before = text[..quantity.start].trim_end_matches(|c: char| !c.is_alphanumeric());
    let word = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    date.contains(' ')
        && !word.is_empty()
        && cited.has_in_code(&text[before.len() - word.len()..quantity.end])
}

/// Returns whether a quantity is the year of a cited day beside a name, `the Harbour Cup 2026`: the lines of a log need
/// not say it.
fn names_year_of(text: &str, quantity: &Quantity, citation: &Citation) -> bool {
    let Some(year) = text.get(quantity.start..quantity.end) else { return false };
    let is_year = |it: NaiveDate| it.year().to_string() == year;
    let before = text[..quantity.start].trim_end();
    let last = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let after = text[quantity.end..].trim_start_matches([' ', '\u{a0}']);
    let is_beside_name = last.starts_with(char::is_uppercase) && before.ends_with(last)
        || after.starts_with(char::is_uppercase) && !after.is_empty();
    year.len() == 4 && is_beside_name && citation.files().any(|it| is_year(it.0.date()))
}

/// Returns whether a text begins with the number of the days of a series, `6 days since 2026-04-02`: those that its
/// lines have besides the day of the last value.
fn counts_days(text: &str, citation: &Citation) -> bool {
    let days: BTreeSet<NaiveDate> = citation.files().map(|it| it.0.date()).collect();
    let earlier = days.len().saturating_sub(1);
    earlier > 1 && text.starts_with(&format!("{earlier} days since "))
}

#[cfg(test)]
mod tests;
