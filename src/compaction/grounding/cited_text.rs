//! The cited lines of an item, and what is looked up in them.

use std::{
    cell::OnceCell,
    collections::{BTreeSet, HashSet},
};

use chrono::{Datelike as _, NaiveDate};

use super::{
    NOBODY, Violation, Vocabulary,
    amounts::{Quantity, SourceQuantities, scan, units},
    claims::{self, CitedClaims},
    hedge, line_context, list_counts,
    name_forms::{
        contains_word, has_call, has_other_form, has_other_notation, has_path_in_parts,
        has_shortened_code,
    },
    strength::LineWords,
    typo,
};
use crate::{
    memory::{
        atom::{self, Atom, AtomKind},
        markdown::LineKind,
    },
    privacy::{SanitizedLine, SanitizedLog},
    text::{lexicon::CLAIMS, scripts, words},
};

/// The characters of the date that begins the name of a log.
const DATE_CHARS: usize = 10;

/// Above a line are no more than these: six headings, parents, an introduction, a head.
const CONTEXT_LINES: usize = 16;

/// What a name names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AtomNature {
    Person,
    Thing,
    /// `v2`.
    Version,
}

/// The cited lines, with what is parsed of them when it is first needed.
#[derive(Default)]
pub(super) struct CitedText<'s> {
    lines: Vec<(NaiveDate, &'s str)>,
    /// For each line, whether it begins a list item: elsewhere a leading `9)` may be part of the text.
    item_indents: Vec<Option<usize>>,
    atom_norms: Option<HashSet<(AtomClass, String)>>,
    lowercase_lines: Option<Vec<String>>,
    quantities: OnceCell<SourceQuantities>,
    quantities_with_context: OnceCell<SourceQuantities>,
    claims: OnceCell<CitedClaims<'s>>,
    /// The people that memories name.
    known_people: Option<&'s BTreeSet<String>>,
    /// What is above the lines; its dates are those of the logs.
    context: Option<Box<CitedText<'s>>>,
    /// The paragraphs before the lines, whose names they may refer to.
    antecedents: Option<Box<CitedText<'s>>>,
}

/// Kinds of atoms of which one may be written for another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum AtomClass {
    Amount,
    Date,
    Word,
}

fn atom_class(kind: AtomKind) -> AtomClass {
    match kind {
        AtomKind::Number
        | AtomKind::Money
        | AtomKind::Percent
        | AtomKind::Time
        | AtomKind::Version => AtomClass::Amount,
        AtomKind::Date => AtomClass::Date,
        _ => AtomClass::Word,
    }
}

impl<'s> CitedText<'s> {
    /// Returns a text without lines yet; `known_people` are those that memories name.
    pub(super) fn new(known_people: &'s BTreeSet<String>) -> Self {
        Self { known_people: Some(known_people), ..Self::default() }
    }

    /// Adds a cited line of a log, and what is above it.
    pub(super) fn add(&mut self, log: &'s SanitizedLog, line: &'s SanitizedLine) {
        self.push(log, line);
        let context = line_context::of_line(log, line.number());
        let slug = log.stem().as_str().get(DATE_CHARS..).unwrap_or_default();
        let above = self.context.get_or_insert_default();
        if !above.lines.iter().any(|it| std::ptr::eq(it.1, slug)) {
            above.lines.push((log.date(), slug));
            above.item_indents.push(None);
        }
        context.above.into_iter().for_each(|it| above.push(log, it));
        let before = self.antecedents.get_or_insert_default();
        context.antecedents.into_iter().for_each(|it| before.push(log, it));
    }

    /// Adds texts that are made of the cited lines: their names and numbers count as what is above the lines does.
    pub(super) fn add_checked_texts(&mut self, texts: Vec<(NaiveDate, &'s str)>) {
        let above = self.context.get_or_insert_default();
        above.item_indents.extend(texts.iter().map(|_| None));
        above.lines.extend(texts);
    }

    /// Adds a line, unless it is there.
    fn push(&mut self, log: &SanitizedLog, line: &'s SanitizedLine) {
        // Lines that follow each other have the same ones above them.
        if self
            .lines
            .iter()
            .rev()
            .take(CONTEXT_LINES)
            .any(|it| std::ptr::eq(it.1, line.spaced_text()))
        {
            return;
        }
        self.lines.push((log.date(), line.spaced_text()));
        self.item_indents.push(match line.kind() {
            LineKind::ListItem { indent, .. } => Some(indent),
            _ => None,
        });
    }

    /// Returns how many members the lists have that the lines are, or that are within them.
    pub(super) fn list_counts(&self) -> BTreeSet<usize> {
        let mut counts: BTreeSet<usize> = self.lines().flat_map(list_counts::of_line).collect();
        counts.extend(list_counts::of_items(&self.item_indents));
        counts
    }

    /// Returns whether any line contains a text, within words or not.
    pub(super) fn has_substring(&self, text: &str) -> bool {
        self.lines.iter().any(|it| it.1.contains(text))
    }

    /// Returns whether a code span of the lines contains a text.
    pub(super) fn has_in_code(&self, text: &str) -> bool {
        let code = |line: &'s str| line.split('`').skip(1).step_by(2);
        self.lines().any(|line| code(line).any(|it| contains_word(it, text)))
    }

    /// Returns the lines.
    pub(super) fn lines(&self) -> impl Iterator<Item = &'s str> {
        self.lines.iter().map(|it| it.1)
    }

    /// Returns whether the lines contain a text verbatim: as a line, as whole sentences of one, or, if the line
    /// is too long, as parts of it with `…` between them.
    pub(super) fn contains_verbatim(&self, text: &str) -> bool {
        /// Shorter parts may have had a word cut out that matters, such as `not`.
        const PART_CHARS_MIN: usize = 40;
        let parts: Vec<&str> = text.split('…').map(str::trim).filter(|it| !it.is_empty()).collect();
        if parts.len() > 1 && parts.iter().any(|it| it.chars().count() < PART_CHARS_MIN) {
            return false;
        }
        let is_contained = |at: usize, part: &str| {
            self.lines.iter().any(|(_, line)| {
                let Some(start) = line.find(part) else { return false };
                let before = line[..start].trim_end();
                let behind = line[start + part.len()..].trim_start();
                let opens = at > 0
                    || before.is_empty()
                    || before.ends_with(['.', '!', '?', ';', '>'])
                    || !before.contains(char::is_alphanumeric);
                let ends = at + 1 < parts.len()
                    || text.ends_with('…')
                    || behind.is_empty()
                    || part.ends_with(['.', '!', '?'])
                    || behind.starts_with(['.', '!', '?', ';', '…']);
                opens && ends
            })
        };
        !parts.is_empty() && parts.iter().enumerate().all(|(at, part)| is_contained(at, part))
    }

    /// Checks what a text claims besides the values in it: hedges, and, if its words are not whole sentences of
    /// the lines (`is_free`), negations and who did what.
    pub(super) fn check_claims(
        &self,
        text: &str,
        is_free: bool,
        known: &dyn Vocabulary,
    ) -> Result<(), Violation> {
        if is_free {
            if let Some((dropped, words)) = self.claims().negations.changed_negation(text) {
                let words = words.to_owned();
                return Err(if dropped {
                    Violation::NegationDropped { words }
                } else {
                    Violation::NegationAdded { words }
                });
            }
            if let Some(name) = self.claims().misattributed_name(text, known)
                && !self.is_about_heading_person(&name)
            {
                return Err(Violation::Misattributed { name });
            }
        }
        let lines: Vec<&str> = self.lines.iter().map(|it| it.1).collect();
        match hedge::dropped_hedge(text, &lines) {
            Some(words) => Err(Violation::HedgeDropped { words: words.to_owned() }),
            None => Ok(()),
        }
    }

    /// Returns whether what is above the lines names a person, and they name nobody else.
    fn is_about_heading_person(&self, name: &str) -> bool {
        let is_above = |it: &Self| it.lines().any(|line| contains_word(&line.to_lowercase(), name));
        self.context.as_deref().is_some_and(is_above) && !self.claims().names_others(name)
    }

    /// Checks that a text is no stronger than the lines and what is above them, and gives no other reason.
    pub(super) fn check_strength(&self, text: &str) -> Result<(), Violation> {
        let context = self.context.iter().flat_map(|it| it.lines());
        let words = LineWords::of(self.lines(), context);
        if let Some(word) = words.strengthened(text) {
            return Err(Violation::Strengthened { word: word.to_owned() });
        }
        match words.made_up_reason(text) {
            Some(words) => Err(Violation::ReasonNotInSources { words: words.to_owned() }),
            None => Ok(()),
        }
    }

    pub(super) fn quantities(&self) -> &SourceQuantities {
        self.quantities.get_or_init(|| {
            let mut quantities = SourceQuantities::default();
            self.quantity_lines().for_each(|(date, line)| quantities.add_line(date, line));
            quantities
        })
    }

    /// Returns the quantities of the lines and of what is above them.
    pub(super) fn quantities_with_context(&self) -> &SourceQuantities {
        self.quantities_with_context.get_or_init(|| {
            let mut quantities = SourceQuantities::default();
            self.quantity_lines().for_each(|(date, line)| quantities.add_line(date, line));
            let context = self.context.iter().flat_map(|it| it.quantity_lines());
            context.for_each(|(date, line)| quantities.add_context_line(date, line));
            quantities
        })
    }

    fn quantity_lines(&self) -> impl Iterator<Item = (NaiveDate, &'s str)> {
        self.lines.iter().zip(&self.item_indents).map(|(&(date, line), indent)| {
            (date, if indent.is_some() { strip_list_number(line) } else { line })
        })
    }

    pub(super) fn claims(&self) -> &CitedClaims<'s> {
        self.claims.get_or_init(|| {
            let lines: Vec<&str> = self.lines.iter().map(|it| it.1).collect();
            CitedClaims::of(&lines, self.known_people.unwrap_or(&NOBODY))
        })
    }

    /// Returns whether the lines, or what is above them, have an atom of a text.
    pub(super) fn supports_atom(
        &mut self,
        atom: &Atom,
        text: &str,
        known: &dyn Vocabulary,
    ) -> bool {
        if self.contains_atom(atom, text) {
            return true;
        }
        let raw = atom.text(text);
        let lines: Vec<&str> = self.lines().collect();
        let above: Vec<&str> = self.context.iter().flat_map(|it| it.lines()).collect();
        if self.is_week_of_lines(raw)
            || has_other_form(raw, &lines, &above)
            || (atom.kind == AtomKind::Path && has_path_in_parts(raw, &lines))
            || (atom.kind == AtomKind::Code && has_shortened_code(raw, &lines))
            || has_other_notation(raw, &lines)
            || is_version_label(raw) && lines.iter().any(|it| has_version(it, &raw[1..]))
        {
            return true;
        }
        let nature = match atom.kind {
            AtomKind::Name if known.is_person(raw) => Some(AtomNature::Person),
            AtomKind::Name => Some(AtomNature::Thing),
            _ if is_version_label(raw) => Some(AtomNature::Version),
            _ => None,
        };
        if self.context.as_mut().is_some_and(|it| it.contains_atom(atom, text)) {
            let nature = nature.filter(|it| !matches!(it, AtomNature::Thing));
            return nature.is_none_or(|it| !self.replaces_name(it, text, known));
        }
        // Only "he" and the like may be the person of an earlier paragraph.
        let nature = nature.filter(|it| !matches!(it, AtomNature::Person) || self.has_pronoun());
        let is_before = |it: &mut Box<Self>| it.contains_atom(atom, text);
        if let Some(nature) = nature
            && self.antecedents.as_mut().is_some_and(is_before)
            && !self.replaces_name(nature, text, known)
        {
            return true;
        }
        let is_other_spelling = self.is_joined_name(atom, text) || self.is_misspelled(raw, known);
        // The name of a thing that lines in a script without spaces call otherwise is known from elsewhere.
        let is_named_elsewhere = || {
            nature == Some(AtomNature::Thing)
                && self.lines().any(scripts::is_mostly_spaceless)
                && !scripts::is_mostly_spaceless(text)
                && known.has_word(raw)
                && !self.replaces_name(AtomNature::Thing, text, known)
        };
        if is_named_elsewhere() {
            return true;
        }
        match atom.kind {
            AtomKind::Name => is_other_spelling || self.is_split_name(raw, known),
            AtomKind::Identifier => self.is_split_name(raw, known),
            _ => false,
        }
    }

    /// Returns whether a number is part of the short form of a day that the lines were written on or name: `4/2`, `04-02`,
    /// and `18日` behind `4月17日、`.
    pub(super) fn has_short_day(&self, text: &str, quantity: &Quantity) -> bool {
        // `3/4 shards` counts.
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '/' | '-');
        let behind = text[quantity.start..].trim_start_matches(is_part).trim_start();
        if behind.starts_with(|c: char| c.is_ascii_lowercase()) {
            return false;
        }
        short_days(text, quantity.start).iter().any(|(month, day)| {
            let is_it = |it: NaiveDate| it.month() == *month && it.day() == *day;
            self.lines.iter().any(|it| is_it(it.0)) || self.quantities().names_day(*month, *day)
        })
    }

    /// Returns whether a text is the name of a week in which one of the lines was written: `W14`, `2026-W14`.
    fn is_week_of_lines(&self, text: &str) -> bool {
        let is_name = |it: &(NaiveDate, &str)| {
            let week = it.0.format("%G-W%V").to_string();
            week == text || week.split_once('-').is_some_and(|(_, it)| it == text)
        };
        self.lines.iter().any(is_name)
    }

    /// Returns whether the lines name somebody or something that the item lacks, so that another name may be
    /// in its place.
    pub(super) fn replaces_name(
        &self,
        nature: AtomNature,
        item: &str,
        known: &dyn Vocabulary,
    ) -> bool {
        let item = item.to_lowercase();
        self.lines().any(|line| {
            let atoms = atom::find_atoms(line);
            let mut names = atoms.iter().filter(|it| match nature {
                AtomNature::Person => it.kind == AtomKind::Name && known.is_person(it.text(line)),
                AtomNature::Thing => it.kind == AtomKind::Name && !known.is_person(it.text(line)),
                AtomNature::Version => is_version_label(it.text(line)),
            });
            let is_absent = |it: &str| !contains_word(&item, &it.to_lowercase());
            // A capital at the start of a sentence makes no atom.
            let mut words = line.split(|c: char| !c.is_alphabetic());
            names.any(|it| is_absent(it.text(line)))
                || (nature == AtomNature::Person
                    && words.any(|it| {
                        it.starts_with(char::is_uppercase)
                            && claims::is_first_name(it)
                            && is_absent(it)
                    }))
        })
    }

    /// Returns where the first quantity of an item is that neither the lines nor what is above them support.
    pub(super) fn first_unsupported(
        &self,
        text: &str,
        quantities: &[Quantity],
        is_verbatim: impl Fn(&Quantity) -> bool,
    ) -> Option<(usize, usize)> {
        self.quantities().first_unsupported(quantities, &is_verbatim)?;
        let missing = self.quantities_with_context().first_unsupported(quantities, &is_verbatim);
        // A number of a heading must not take the place of another one of the line.
        missing.or_else(|| {
            let own = self.quantities();
            let is_foreign = |it: &&Quantity| !is_verbatim(it) && !own.supports_one(it);
            let replaced = quantities.iter().filter(is_foreign).find(|it| own.counts_noun_of(it));
            if let Some(it) = replaced {
                return Some((it.start, it.end));
            }
            let foreign = quantities.iter().filter(is_foreign);
            let mut places = foreign.map(|it| (neighbours(text, it), (it.start, it.end)));
            let taken: HashSet<(String, String)> = self
                .lines()
                .flat_map(|line| {
                    let found = scan::find_quantities(line);
                    found.into_iter().map(|it| neighbours(line, &it)).collect::<Vec<_>>()
                })
                .collect();
            places.find(|(place, _)| taken.contains(place)).map(|it| it.1)
        })
    }

    /// Returns whether a line speaks of somebody without the name.
    fn has_pronoun(&self) -> bool {
        const PRONOUNS: [&str; 20] = [
            "he", "she", "they", "him", "her", "them", "his", "their", "who", "er", "sie", "ihm",
            "ihn", "ihr", "seine", "il", "elle", "lui", "él", "ella",
        ];
        let mut words = self.lines().flat_map(words::lowercase_runs);
        words.any(|it| PRONOUNS.contains(&&it[..]))
    }

    /// Returns whether the lines count what a quantity counts.
    pub(super) fn counts_noun_of(&self, quantity: &Quantity) -> bool {
        self.quantities().counts_noun_of(quantity)
    }

    /// Returns whether a name of several words is one word in the lines: `Sheet It Now` of `SheetItNow`.
    fn is_joined_name(&self, atom: &Atom, text: &str) -> bool {
        const CHARS_MIN: usize = 6;
        let is_part = |it: &&str| it.starts_with(char::is_uppercase);
        let letters = |it: &str| it.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let mut before: Vec<&str> =
            text[..atom.start].split(' ').rev().skip(1).take_while(is_part).collect();
        before.reverse();
        let after = text[atom.end..].strip_prefix(' ').unwrap_or_default();
        let after = after.split(' ').take_while(is_part);
        let all: Vec<&str> = before.into_iter().chain([atom.text(text)]).chain(after).collect();
        let name = letters(&all.concat()).to_lowercase();
        let has_name = |it: &CitedText<'_>| {
            let mut words = it.lines().flat_map(str::split_whitespace);
            words.any(|word| letters(word).to_lowercase() == name)
        };
        all.len() > 1
            && name.chars().count() >= CHARS_MIN
            && (has_name(self) || self.context.as_deref().is_some_and(has_name))
    }

    /// Returns whether a name with one inner capital is two words in the lines: `TideBoard` of `Tide Board`.
    fn is_split_name(&self, name: &str, known: &dyn Vocabulary) -> bool {
        let mut inner = name.char_indices().skip(1).filter(|it| it.1.is_uppercase());
        let (Some((at, _)), None) = (inner.next(), inner.next()) else { return false };
        let spaced = format!("{} {}", &name[..at], &name[at..]);
        let all = [Some(self), self.context.as_deref()];
        let mut lines = all.into_iter().flatten().flat_map(CitedText::lines);
        name.chars().all(char::is_alphabetic)
            && !known.has_word(name)
            && lines.any(|it| contains_word(it, &spaced))
    }

    /// Returns whether a word differs by one edit from a name of the lines, and is no other name.
    fn is_misspelled(&self, name: &str, known: &dyn Vocabulary) -> bool {
        const LETTERS_MIN: usize = 6;
        let is_long = |it: &str| it.chars().count() >= LETTERS_MIN;
        let is_plain = |it: &str| it.chars().all(char::is_alphabetic);
        if !is_long(name) || !is_plain(name) || known.has_word(name) {
            return false;
        }
        let all = [Some(self), self.context.as_deref()];
        let lines = all.into_iter().flatten().flat_map(CitedText::lines);
        let mut words = lines.flat_map(|it| it.split(|c: char| !c.is_alphabetic()));
        let lower = name.to_lowercase();
        words.any(|it| {
            it.starts_with(char::is_uppercase)
                && is_long(it)
                && typo::is_one_edit(&it.to_lowercase(), &lower)
                // Two names of people may differ by a letter.
                && !(claims::is_first_name(it) && claims::is_first_name(name))
        })
    }

    /// Returns whether the lines have a word that opens a sentence of an item, perhaps with another ending; or
    /// what is above them, if it replaces no name of theirs.
    pub(super) fn has_inflected_word(
        &self,
        word: &str,
        item: &str,
        known: &dyn Vocabulary,
    ) -> bool {
        let has = |it: &Self| it.claims().has_word(word, true);
        let antecedents = self.antecedents.as_deref().filter(|_| self.has_pronoun());
        let mut around = [self.context.as_deref(), antecedents].into_iter();
        has(self)
            || self.is_misspelled(&claims::capitalized(word), known)
            || (around.any(|it| it.is_some_and(has))
                && !self.replaces_name(AtomNature::Person, item, known))
    }

    /// Returns whether the item has next to nothing in common with the lines and what is above them. The words of a
    /// translation from a script without spaces cannot be compared.
    pub(super) fn is_unrelated(&self, item: &str, amounts: usize) -> bool {
        if self.lines().any(scripts::is_mostly_spaceless) && !scripts::is_mostly_spaceless(item) {
            return false;
        }
        let context: Vec<&str> = self.context.iter().flat_map(|it| it.lines()).collect();
        self.claims().is_unrelated(item, &context, amounts)
    }

    fn contains_atom(&mut self, atom: &Atom, text: &str) -> bool {
        let raw = atom.text(text);
        let norm = atom.norm(text);
        // Most items use the words of their lines, which is cheap to check.
        if self.lines.iter().any(|it| contains_word(it.1, raw)) {
            return true;
        }
        // `load()` is the function of a line with `load(path)`.
        if let Some(call) = raw.trim_matches('`').strip_suffix(')').filter(|it| it.ends_with('('))
            && call.len() > 1
            && self.lines.iter().any(|it| has_call(it.1, call))
        {
            return true;
        }
        let kind = atom_class(atom.kind);
        let norm = norm.to_lowercase();
        if kind == AtomClass::Word && self.contains_lowercase(&norm) {
            return true;
        }
        if atom.kind == AtomKind::Name && (self.has_word(&norm) || self.is_unit_of_table(&norm)) {
            return true;
        }
        let norms = self.atom_norms.get_or_insert_with(|| {
            let mut norms = HashSet::new();
            for (_, line) in &self.lines {
                for atom in atom::find_atoms(line) {
                    norms.insert((atom_class(atom.kind), atom.norm(line).to_lowercase()));
                }
            }
            norms
        });
        norms.contains(&(kind, norm))
    }

    /// Returns whether a word may be a unit from the head of a table, as in `3.5 s per GB`. If the lines have a
    /// rate themselves, another one is a change.
    fn is_unit_of_table(&self, word: &str) -> bool {
        units::is_unit(word)
            && !self.lines.iter().any(|it| it.1.contains(" per ") || it.1.contains('/'))
    }

    /// Returns whether the lines have a name, perhaps with another ending, or whether it may be a German noun.
    fn has_word(&self, name: &str) -> bool {
        let lines = self.claims();
        let german = self.lines.iter().any(|it| claims::is_german(it.1));
        lines.has_word(name, german)
            || (german
                && (CLAIMS.common_german_nouns.contains(&name)
                    || CLAIMS
                        .german_noun_endings
                        .iter()
                        .any(|it| name.len() > it.len() + 3 && name.ends_with(it))
                    || lines.has_compound(name)))
    }

    fn contains_lowercase(&mut self, norm: &str) -> bool {
        let lowered = self
            .lowercase_lines
            .get_or_insert_with(|| self.lines.iter().map(|it| it.1.to_lowercase()).collect());
        lowered.iter().any(|line| contains_word(line, norm))
    }
}

fn is_version_label(word: &str) -> bool {
    let digits = word.strip_prefix(['v', 'V']);
    digits.is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the months and days that a number at `at` may be a part of: of `4/2` also the second of April in the order
/// of day and month.
fn short_days(text: &str, at: usize) -> Vec<(u32, u32)> {
    let is_digit = |c: char| c.is_ascii_digit();
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '/' | '-');
    let start = text[..at]
        .rfind(|c| !is_part(c))
        .map_or(0, |it| it + text[it..].chars().next().map_or(1, char::len_utf8));
    let length = text[start..].find(|c| !is_part(c)).unwrap_or(text.len() - start);
    let whole = &text[start..start + length];
    let parse = |(a, b): (&str, &str)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?));
    if let Some((a, b)) = whole.split_once('/').and_then(parse) {
        return vec![(a, b), (b, a)];
    }
    if let Some(day) = whole.split_once('-').filter(|it| it.0.len() == 2).and_then(parse) {
        return vec![day];
    }
    // The month is that of the day before.
    let behind = text[at..].trim_start_matches(is_digit).trim_start();
    let month = text[..at].rfind('月').map(|it| text[..it].trim_end());
    let month = month.map(|it| &it[it.trim_end_matches(is_digit).len()..]);
    let digits = &text[at..at + text[at..].find(|c| !is_digit(c)).unwrap_or(text.len() - at)];
    match month.map(|month| (month, digits)).and_then(parse) {
        Some(day) if behind.starts_with(['日', '号', '號']) => vec![day],
        _ => Vec::new(),
    }
}

/// Returns whether a line has a version of several numbers, written without its `v`.
fn has_version(line: &str, numbers: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
    numbers.contains('.')
        && line.split(|c| !is_part(c)).any(|it| it.trim_end_matches('.') == numbers)
}

/// Returns the words before and after a quantity, in lower case.
fn neighbours(text: &str, quantity: &Quantity) -> (String, String) {
    let is_end = |c: char| !c.is_alphanumeric();
    let before = text[..quantity.start].trim_end_matches(is_end);
    let before = before.rsplit(is_end).next().unwrap_or_default();
    let after = text[quantity.end..].trim_start_matches(is_end);
    let after = after.split(is_end).next().unwrap_or_default();
    (before.to_lowercase(), after.to_lowercase())
}

/// Strips the number of a list item, which counts nothing.
fn strip_list_number(line: &str) -> &str {
    let text = line.trim_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &text[digits..];
    let marked = (1..=3).contains(&digits).then(|| rest.strip_prefix(['.', ')'])).flatten();
    marked.and_then(|it| it.strip_prefix(' ')).unwrap_or(line)
}
