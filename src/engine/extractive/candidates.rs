//! What can be chosen for a period: units, and what each of them is worth.
//!
//! A unit is a sentence or clause of a statement. It is worth what its features are worth: content
//! stems, neighbouring stems, and atoms. A feature weighs more the rarer it is in the root, and, in
//! logs of technical work, the more often the period comes back to it.

use std::{collections::HashMap, ops::Range};

use crate::{
    memory::{
        atom::{self, AtomKind},
        log::TextOrigin,
    },
    text::{
        hash::{HashedMap, combine_hashes},
        pieces, scripts,
        stems::StemCache,
    },
};

use super::{
    annotations::Annotation,
    corpus_stats::CorpusCounts,
    parsed_log::{LogStatement, ParsedLog, StatementForm},
    sections,
    tokens::{self, PackedToken, TokenKind, atom_term_hash},
};

/// All that a fold chooses from.
pub(super) struct CandidateSet {
    pub(super) pages: Vec<ParsedLog>,
    pub(super) units: Vec<CandidateUnit>,
    pub(super) heads: Vec<HeadingUse>,
    /// Per feature, what it weighs.
    pub(super) weights: Vec<f64>,
    /// Per feature, whether it is a number, a date, or the like.
    pub(super) is_exact: Vec<bool>,
    /// Features of units and heads; ranges point into it.
    pub(super) features: Vec<u32>,
    /// Pieces that say word for word what another one says.
    pub(super) repeats: Vec<PiecePosition>,
    ids: FeatureIds,
}

impl CandidateSet {
    /// Returns what a term weighs, where a unit holds it.
    pub(super) fn weight_of(&self, counts: &CorpusCounts, term: u64) -> Option<f64> {
        let feature = match counts.number(term) {
            Some(number) => self.ids.by_number.get(number as usize).filter(|&&it| it != NO_FEATURE),
            None => self.ids.by_term.get(&term),
        };
        feature.and_then(|&it| self.weights.get(it as usize)).copied()
    }

    /// Returns in how many distinct units a feature stands.
    pub(super) fn frequency_of(&self, feature: u32) -> u32 {
        self.ids.frequency[feature as usize]
    }
}

/// Where a piece stands: page, statement, piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PiecePosition {
    pub(super) page: usize,
    pub(super) statement: usize,
    pub(super) piece: usize,
}

/// A sentence or clause.
pub(super) struct CandidateUnit {
    pub(super) at: PiecePosition,
    /// All features, without repeats.
    pub(super) features: Range<usize>,
    /// The stems among them, which come first.
    pub(super) stems: usize,
    pub(super) chars: usize,
    /// What its kind of text is worth: less for questions, quotes, and code.
    pub(super) factor: f64,
    /// The heads that go with it, as indices of [`CandidateSet::heads`].
    pub(super) heading: Option<usize>,
    pub(super) lead: Option<usize>,
    /// The unit without which it cannot be read: where its sentence begins, the sentence that it points
    /// back at, or the question that it answers.
    pub(super) requires: Option<usize>,
    /// What the program adds to its words, in order; counted in `chars`.
    pub(super) annotations: Vec<Annotation>,
    /// Whether it gives a figure that was replaced, and another unit says so.
    pub(super) is_replaced: bool,
}

/// A head that says more than its template.
pub(super) struct HeadingUse {
    /// Its index in the page of its units.
    pub(super) head: usize,
    pub(super) features: Range<usize>,
    pub(super) chars: usize,
    /// The units below it, for the moment at which it is opened.
    pub(super) units: Vec<usize>,
}

/// Weight of a content stem, of two neighbours, and of an atom.
const STEM_WEIGHT: f64 = 1.0;
const PAIR_WEIGHT: f64 = 0.6;
const ATOM_WEIGHT: f64 = 6.0;

/// Weight of a number, date, sum, or version: what people look for later, and cannot tell anew.
const FIGURE_WEIGHT: f64 = 7.0;

/// How strongly rarity counts.
const RARITY_POWER: f64 = 1.3;

/// What comes back counts the more, the more statements name code, files, or versions: fully where
/// nearly half of them do, hardly where a fifth does.
const TECHNICAL_SLOPE: f64 = 5.0;

/// What a unit is worth for its form: code, a quote, a question.
const CODE_FACTOR: f64 = 0.4;
const QUOTE_FACTOR: f64 = 0.7;
const QUESTION_FACTOR: f64 = 0.4;

/// Scripts without spaces say in one character what takes others three; among logs in several scripts
/// their small talk would outweigh the facts of the rest.
const UNSPACED_FACTOR: f64 = 0.35;

/// A head of few words that comes back so often in a period is a template's; a longer one that
/// comes back still says what it is about.
const TEMPLATE_HEADS: u32 = 3;
const TEMPLATE_WORDS_MAX: usize = 3;

/// Heads are short; a longer lead-in would cost more than it explains.
const HEAD_CHARS_MAX: usize = 110;

/// A statement with so many stems can be read without its heading.
pub(super) const SELF_CONTAINED_STEMS: usize = 4;

/// A child with so many stems stands without its parent.
const CHILD_STEMS_MAX: usize = 5;

/// Whoever has so many turns in a log speaks in it.
const TURNS_MIN: usize = 3;

/// A name is shortened to no fewer letters.
const SHORT_NAME_MIN: usize = 3;

/// So many sentences in a row may each need the one before; a longer chain would be a page.
const BACK_REFERENCES_MAX: usize = 3;

/// No feature.
const NO_FEATURE: u32 = u32::MAX;

/// The features of terms and pairs.
#[derive(Default)]
struct FeatureIds {
    /// By the number that the counts give a term.
    by_number: Vec<u32>,
    /// Of terms that no log holds, and of pairs.
    by_term: HashedMap<u32>,
    kinds: Vec<FeatureKind>,
    /// In how many distinct units each stands.
    frequency: Vec<u32>,
}

/// A term as the counts know it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TermId {
    Number(u32),
    /// No log of the window holds it.
    Unknown(u64),
}

/// Takes a token: a stem at once, an atom for later.
fn add_token(
    counts: &CorpusCounts,
    ids: &mut FeatureIds,
    (sequence, atoms): (&mut Vec<u32>, &mut Vec<(TermId, TokenKind)>),
    term: TermId,
    kind: TokenKind,
) {
    if kind == TokenKind::Stem {
        sequence.push(ids.of(counts, term, |seen| FeatureKind::Stem { seen }));
    } else {
        atoms.push((term, kind));
    }
}

/// Reads features from pages.
struct FeatureBuilder<'c> {
    counts: &'c CorpusCounts,
    stems: StemCache,
    ids: FeatureIds,
    features: Vec<u32>,
    /// The stems of a text in order, and the tokens behind them; kept for reuse.
    sequence: Vec<u32>,
    atoms: Vec<(TermId, TokenKind)>,
    /// The names by which those who speak in the page that is read may be called, in order.
    speakers: Vec<TermId>,
}

#[derive(Clone, Copy)]
enum FeatureKind {
    Stem { seen: u32 },
    Pair { left: u32, right: u32 },
    Atom { seen: u32, exact: bool },
}

impl TermId {
    fn of(counts: &CorpusCounts, term: u64) -> Self {
        counts.number(term).map_or(Self::Unknown(term), Self::Number)
    }
}

impl FeatureIds {
    /// Returns the feature of a term; `kind` makes it what it is, from how many statements hold it.
    fn of(
        &mut self,
        counts: &CorpusCounts,
        term: TermId,
        kind: impl Fn(u32) -> FeatureKind,
    ) -> u32 {
        let (slot, seen) = match term {
            TermId::Number(number) => {
                (&mut self.by_number[number as usize], counts.frequency_of(number))
            }
            TermId::Unknown(term) => (self.by_term.entry(term).or_insert(NO_FEATURE), 0),
        };
        if *slot == NO_FEATURE {
            *slot = u32::try_from(self.kinds.len()).unwrap_or(NO_FEATURE - 1);
            self.kinds.push(kind(seen));
            self.frequency.push(0);
        }
        *slot
    }

    /// Returns the feature of two neighbours.
    fn of_pair(&mut self, left: u32, right: u32) -> u32 {
        let term = combine_hashes(combine_hashes(u64::from(left), 0x5B), u64::from(right));
        *self.by_term.entry(term).or_insert_with(|| {
            self.kinds.push(FeatureKind::Pair { left, right });
            self.frequency.push(0);
            u32::try_from(self.kinds.len() - 1).unwrap_or(NO_FEATURE - 1)
        })
    }
}

/// What a piece holds.
struct PieceFeatures {
    features: Range<usize>,
    stems: usize,
    /// Atoms that are no names.
    facts: usize,
    names: usize,
    /// Names by which somebody is only called.
    vocatives: usize,
    technical: bool,
    hash: u64,
}

/// Reads `pages` into units; `wanted` tells which pieces may be chosen.
///
/// Fragments that say little by themselves are passed over, unless there is nothing else.
pub(super) fn collect_candidates(
    pages: Vec<ParsedLog>,
    counts: &CorpusCounts,
    wanted: impl Fn(PiecePosition) -> bool,
) -> CandidateSet {
    let material = collect_units(pages, counts, &wanted, false);
    if material.units.is_empty() {
        collect_units(material.pages, counts, &wanted, true)
    } else {
        material
    }
}

fn collect_units(
    pages: Vec<ParsedLog>,
    counts: &CorpusCounts,
    wanted: &impl Fn(PiecePosition) -> bool,
    fragments: bool,
) -> CandidateSet {
    let builder = FeatureBuilder {
        counts,
        stems: StemCache::default(),
        ids: FeatureIds { by_number: vec![NO_FEATURE; counts.numbers()], ..FeatureIds::default() },
        features: Vec::new(),
        sequence: Vec::new(),
        atoms: Vec::new(),
        speakers: Vec::new(),
    };
    let mut gathering = CandidateCollector {
        builder,
        templates: template_heads(&pages),
        units: Vec::new(),
        heads: Vec::new(),
        repeats: Vec::new(),
        distinct: HashedMap::default(),
        technical: 0,
        fragments,
    };
    for (p, page) in pages.iter().enumerate() {
        gathering.builder.speakers = speaker_terms(page, counts);
        let mut known = counts.tokens(page);
        // The unit that the turn before asks with.
        let mut asked: Option<usize> = None;
        let meaningful = |head| is_meaningful(page, head, &gathering.templates);
        let mut heads = PageHeadings {
            meaningful: (0..page.heads.len()).map(meaningful).collect(),
            uses: vec![None; page.heads.len()],
        };
        for (s, statement) in page.statements.iter().enumerate() {
            let is_code = statement.form == StatementForm::Code;
            if statement.introduces || statement.keep {
                let pieces = if is_code { 0 } else { statement.pieces.len() };
                if let Some(known) = &mut known {
                    known.by_ref().take(pieces).for_each(drop);
                }
                continue;
            }
            let answers = asked.take().filter(|_| is_answer(page, s));
            // The unit that the sentence being read begins with.
            let mut opener = None;
            // How many sentences in a row point back.
            let mut row = 0;
            for (piece, cut) in statement.pieces.iter().enumerate() {
                let at = PiecePosition { page: p, statement: s, piece };
                let needs = if cut.starts_sentence {
                    let before = opener.take();
                    let words = &statement.text[cut.start..cut.end];
                    let needs =
                        before.filter(|_| row < BACK_REFERENCES_MAX && pieces::refers_back(words));
                    row = if needs.is_some() { row + 1 } else { 0 };
                    needs
                } else {
                    opener
                };
                // A clause whose beginning cannot be told cannot be told either.
                let may = wanted(at) && (cut.starts_sentence || needs.is_some());
                let mark = gathering.builder.features.len();
                let tokens = known.as_mut().filter(|_| !is_code).and_then(Iterator::next);
                let answers = answers.filter(|_| piece == 0);
                if !gathering.add_piece((page, at, tokens), may, (needs, answers), &mut heads) {
                    gathering.builder.features.truncate(mark);
                } else if cut.starts_sentence {
                    opener = Some(gathering.units.len() - 1);
                    let words = &statement.text[cut.start..cut.end];
                    let last = piece + 1 == statement.pieces.len();
                    asked = opener.filter(|_| last && statement.label > 0 && is_question(words));
                }
            }
        }
    }
    let CandidateCollector { builder, units, heads, repeats, distinct, technical, .. } = gathering;
    let (weights, exact) = builder.weigh(distinct.len().max(1), technical);
    let FeatureBuilder { ids, features, .. } = builder;
    CandidateSet { pages, units, heads, weights, is_exact: exact, features, repeats, ids }
}

/// What is known while pages are read.
struct CandidateCollector<'c> {
    builder: FeatureBuilder<'c>,
    templates: HashedMap<u32>,
    units: Vec<CandidateUnit>,
    heads: Vec<HeadingUse>,
    repeats: Vec<PiecePosition>,
    /// Each distinct piece, and whether a unit says it.
    distinct: HashedMap<bool>,
    /// Distinct pieces that name code, files, versions, or the like.
    technical: usize,
    /// Whether fragments are taken too.
    fragments: bool,
}

impl CandidateCollector<'_> {
    /// Reads one piece, whose tokens may be known; returns whether it became a unit.
    fn add_piece(
        &mut self,
        (page, at, tokens): (&ParsedLog, PiecePosition, Option<&[PackedToken]>),
        may: bool,
        (mut needs, answers): (Option<usize>, Option<usize>),
        heads: &mut PageHeadings,
    ) -> bool {
        let statement = &page.statements[at.statement];
        let cut = statement.pieces[at.piece];
        let text = &statement.text[cut.start..cut.end];
        let mut found = match tokens {
            Some(tokens) => self.builder.read_tokens(page, tokens),
            None => self.builder.read_text(page, text),
        };
        if found.stems == 0 && (answers.is_none() || found.facts == 0) {
            return false;
        }
        if statement.label > 0 {
            self.add_label(page, at, &mut found);
        }
        match self.distinct.get(&found.hash) {
            Some(true) => {
                self.repeats.push(at);
                return false;
            }
            Some(false) => {}
            None => {
                self.technical += usize::from(found.technical);
                for &feature in &self.builder.features[found.features.clone()] {
                    self.builder.ids.frequency[feature as usize] += 1;
                }
            }
        }
        let heading = heads.heading_of(page, statement);
        let lead = heads.lead_of(page, statement, found.stems);
        let headed = heading.or(lead).is_some();
        let mut chosen =
            may && (self.fragments || is_self_contained(statement, text, &found, headed));
        if may && !chosen && answers.is_some() && found.facts + found.names > 0 {
            // With its question a short answer says something.
            chosen = true;
            needs = answers;
        }
        self.distinct.insert(found.hash, chosen);
        if !chosen {
            return false;
        }
        let heading = heading.map(|head| self.use_heading(page, head, &mut heads.uses));
        let lead = lead.map(|head| self.use_heading(page, head, &mut heads.uses));
        self.units.push(CandidateUnit {
            at,
            features: found.features,
            stems: found.stems,
            chars: text.chars().count(),
            factor: form_factor(statement, text),
            heading,
            lead,
            requires: needs,
            annotations: Vec::new(),
            is_replaced: false,
        });
        true
    }

    /// Adds what the label of a statement says to what a piece of it holds: `Walk-away price: $650M`.
    fn add_label(&mut self, page: &ParsedLog, at: PiecePosition, found: &mut PieceFeatures) {
        let statement = &page.statements[at.statement];
        let words = &statement.text[..statement.label];
        let builder = &mut self.builder;
        let first = builder.sequence.first().copied();
        let label = builder.read_text(page, words);
        let mut added = builder.features.split_off(found.features.end);
        if at.piece == 0 {
            // Under another label the same words say something else.
            found.hash = combine_hashes(found.hash, label.hash);
        }
        if sections::is_template_head(words) {
            added.clear();
        }
        if at.piece == 0
            && let (Some(&left), Some(right)) = (builder.sequence.last(), first)
        {
            added.push(builder.ids.of_pair(left, right));
        }
        added.retain(|it| !builder.features[found.features.clone()].contains(it));
        builder.features.append(&mut added);
        found.features.end = builder.features.len();
    }

    /// Notes that the next unit stands below a head; returns the index of its use.
    fn use_heading(&mut self, page: &ParsedLog, head: usize, uses: &mut [Option<usize>]) -> usize {
        let index = uses[head].unwrap_or_else(|| {
            let text = &page.heads[head].text;
            let features = self.builder.read_text(page, text).features;
            let chars = text.chars().count() + ": ".len();
            self.heads.push(HeadingUse { head, features, chars, units: Vec::new() });
            self.heads.len() - 1
        });
        uses[head] = Some(index);
        self.heads[index].units.push(self.units.len());
        index
    }
}

impl FeatureBuilder<'_> {
    /// Reads the features of a text; they are appended, stems first.
    fn read_text(&mut self, page: &ParsedLog, text: &str) -> PieceFeatures {
        let Self { counts, stems, ids, sequence, atoms, .. } = self;
        sequence.clear();
        atoms.clear();
        tokens::for_each_token(stems, page.language, text, |term, kind| {
            add_token(counts, ids, (sequence, atoms), TermId::of(counts, term), kind);
        });
        self.finish_piece(page)
    }

    /// Reads the features of a text whose tokens are known.
    fn read_tokens(&mut self, page: &ParsedLog, tokens: &[PackedToken]) -> PieceFeatures {
        let Self { counts, ids, sequence, atoms, .. } = self;
        sequence.clear();
        atoms.clear();
        for token in tokens {
            add_token(
                counts,
                ids,
                (sequence, atoms),
                TermId::Number(token.term_id()),
                token.kind(),
            );
        }
        self.finish_piece(page)
    }

    /// Appends the features of the tokens that were taken.
    fn finish_piece(&mut self, page: &ParsedLog) -> PieceFeatures {
        let Self { counts, ids, features, sequence, atoms, speakers, .. } = self;
        let start = features.len();
        features.extend_from_slice(sequence);
        let stems = sort_and_dedup_from(features, start);
        let pairs_at = features.len();
        features.extend(sequence.windows(2).map(|pair| ids.of_pair(pair[0], pair[1])));
        sort_and_dedup_from(features, pairs_at);
        let mut hash = sequence.iter().fold(1, |hash, &id| combine_hashes(hash, u64::from(id)));
        let atoms_at = features.len();
        let (mut technical, mut facts, mut names, mut calls) = (false, 0, 0, 0);
        for &(term, kind) in &*atoms {
            if kind == TokenKind::Name {
                // Where every noun has a capital, a capital is no sign of a name.
                if page.language.capitalises_nouns() {
                    continue;
                }
                if speakers.binary_search(&term).is_ok() {
                    calls += 1;
                    continue;
                }
            }
            let exact = kind.is_exact();
            technical |= kind.is_technical();
            let id = ids.of(counts, term, |seen| FeatureKind::Atom { seen, exact });
            features.push(id);
            match kind {
                TokenKind::Name => names += 1,
                TokenKind::LastSegment => {}
                _ => {
                    hash = combine_hashes(hash, u64::from(id));
                    facts += 1;
                }
            }
        }
        sort_and_dedup_from(features, atoms_at);
        PieceFeatures {
            features: start..features.len(),
            stems,
            facts,
            names,
            vocatives: calls,
            technical,
            hash,
        }
    }
    /// Returns what each feature weighs, and whether it is exact.
    fn weigh(&self, units: usize, technical: usize) -> (Vec<f64>, Vec<bool>) {
        let all = as_f64(self.counts.statements().max(units));
        let base = (1.0 + all).ln();
        // In talk a word that comes back is filler; in a technical log it is what the week was about.
        let share = as_f64(technical) / as_f64(units);
        let beta = (TECHNICAL_SLOPE * share * share).min(1.0);
        let rarity = |seen: u32, here: u32| {
            let seen = f64::from(seen.max(here).max(1));
            (1.0 + all / seen).ln() / base
        };
        let mut rarities = Vec::with_capacity(self.ids.kinds.len());
        let mut weights = Vec::with_capacity(self.ids.kinds.len());
        let mut exact_flags = Vec::with_capacity(self.ids.kinds.len());
        for (kind, &here) in self.ids.kinds.iter().zip(&self.ids.frequency) {
            // Of an atom once is enough, however often it comes back.
            let (class, rare, power) = match *kind {
                FeatureKind::Stem { seen } => (STEM_WEIGHT, rarity(seen, here), beta),
                FeatureKind::Atom { seen, exact: true } => (FIGURE_WEIGHT, rarity(seen, here), 0.0),
                FeatureKind::Atom { seen, exact: false } => (ATOM_WEIGHT, rarity(seen, here), 0.0),
                FeatureKind::Pair { left, right } => {
                    let rare: f64 = rarities[left as usize] + rarities[right as usize];
                    (PAIR_WEIGHT, rare / 2.0, beta)
                }
            };
            rarities.push(rare);
            weights.push(class * rare.powf(RARITY_POWER) * f64::from(here.max(1)).powf(power));
            exact_flags.push(matches!(*kind, FeatureKind::Atom { exact: true, .. }));
        }
        (weights, exact_flags)
    }
}

/// Returns the names of those whom a page has speak again and again, as wholes and shortened.
fn speaker_terms(page: &ParsedLog, counts: &CorpusCounts) -> Vec<TermId> {
    let mut seen = HashMap::<&str, usize>::new();
    for statement in page.statements.iter().filter(|it| it.label > 0) {
        *seen.entry(&statement.text[..statement.label]).or_default() += 1;
    }
    let mut found = Vec::new();
    for (label, _) in seen.into_iter().filter(|&(_, times)| times >= TURNS_MIN) {
        let name = label.trim_end_matches([':', ' ']).to_lowercase();
        let ends = name.char_indices().map(|(at, _)| at).skip(SHORT_NAME_MIN);
        found.extend(ends.map(|end| TermId::of(counts, atom_term_hash(&name[..end]))));
        found.push(TermId::of(counts, atom_term_hash(&name)));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Sorts what stands from `start` on, drops repeats, and returns how many are left.
fn sort_and_dedup_from(features: &mut Vec<u32>, start: usize) -> usize {
    features[start..].sort_unstable();
    let mut kept = start;
    for i in start..features.len() {
        if i == start || features[i] != features[kept - 1] {
            features[kept] = features[i];
            kept += 1;
        }
    }
    features.truncate(kept);
    kept - start
}

/// Counts how often each head's words come back over the pages.
pub(super) fn template_heads(pages: &[ParsedLog]) -> HashedMap<u32> {
    let mut seen = HashedMap::<u32>::default();
    for head in pages.iter().flat_map(|page| &page.heads).filter(|h| h.statement.is_none()) {
        *seen.entry(head.key).or_default() += 1;
    }
    seen
}

/// Whether a head says more than its template or its date.
pub(super) fn is_meaningful(page: &ParsedLog, head: usize, templates: &HashedMap<u32>) -> bool {
    let head = &page.heads[head];
    let mut letters = head.text.chars().filter(|c| c.is_alphabetic()).count();
    let mut dated = false;
    for atom in atom::find_atoms(&head.text) {
        if matches!(atom.kind, AtomKind::Date | AtomKind::Time) {
            letters -= atom.text(&head.text).chars().filter(|c| c.is_alphabetic()).count();
            let norm = atom.norm(&head.text);
            let day = page.stem.date().to_string();
            dated |= head.text.len() < 40
                && head.level == 1
                && atom.kind == AtomKind::Date
                && day.ends_with(norm.trim_start_matches('-'));
        }
    }
    letters >= 3
        && !dated
        && head.text.chars().count() <= HEAD_CHARS_MAX
        && (head.text.split_whitespace().count() > TEMPLATE_WORDS_MAX
            || templates.get(&head.key).is_none_or(|&times| times < TEMPLATE_HEADS))
        && !sections::is_template_head(&head.text)
}

/// What is known of the heads of the page that is read.
struct PageHeadings {
    /// Whether each says more than its template or its date.
    meaningful: Vec<bool>,
    /// The index of its use, once a unit stands below it.
    uses: Vec<Option<usize>>,
}

impl PageHeadings {
    /// Returns the nearest heading that says what is told below it.
    fn heading_of(&self, page: &ParsedLog, statement: &LogStatement) -> Option<usize> {
        let above = |&head: &usize| page.heads[head].parent;
        std::iter::successors(statement.heading, above).find(|&head| self.meaningful[head])
    }

    /// Returns the lead-in or parent item that a statement needs.
    fn lead_of(&self, page: &ParsedLog, statement: &LogStatement, stems: usize) -> Option<usize> {
        let lead = statement.lead.filter(|&head| self.meaningful[head])?;
        let introduces = match page.heads[lead].statement {
            Some(parent) => {
                let parent = &page.statements[parent];
                if !parent.introduces && parent.text.ends_with(['.', '!', '?', '。']) {
                    return None;
                }
                parent.introduces
            }
            None => true,
        };
        (introduces || stems <= CHILD_STEMS_MAX).then_some(lead)
    }
}

/// Whether the piece can be read by itself, or with its heads.
fn is_self_contained(
    statement: &LogStatement,
    text: &str,
    found: &PieceFeatures,
    headed: bool,
) -> bool {
    let labelled = statement.label > 0 && statement.pieces.len() == 1;
    let label = if labelled { &statement.text[..statement.label] } else { "" };
    let mut letters = label.chars().chain(text.chars()).filter(|c| c.is_alphanumeric());
    // A name is a stem already: alone it is only a call.
    let fact = found.facts > 0 || (found.names > 0 && found.stems > 1);
    let said = found.stems.saturating_sub(found.vocatives) + usize::from(fact);
    let needed = match (headed, labelled) {
        (true, _) if statement.pieces.len() == 1 => 1,
        (false, false) => 3,
        _ => 2,
    };
    said >= needed && letters.nth(5).is_some()
}

fn form_factor(statement: &LogStatement, text: &str) -> f64 {
    let form = match statement.form {
        StatementForm::Code => CODE_FACTOR,
        StatementForm::Quote => QUOTE_FACTOR,
        _ if statement.origin == TextOrigin::External => 0.7,
        _ => 1.0,
    };
    let form = if scripts::is_mostly_spaceless(text) { form * UNSPACED_FACTOR } else { form };
    if is_question(text) { form * QUESTION_FACTOR } else { form }
}

fn is_question(text: &str) -> bool {
    text.trim_end_matches([')', '"', '”', '’', ']']).ends_with(['?', '？', '؟'])
}

/// Whether a statement is the turn of somebody else than the one before.
fn is_answer(page: &ParsedLog, statement: usize) -> bool {
    let label = |it: usize| {
        let statement = &page.statements[it];
        &statement.text[..statement.label]
    };
    let (asker, answers) = (statement.checked_sub(1).map_or("", label), label(statement));
    !asker.is_empty() && !answers.is_empty() && asker != answers
}

/// Turns a count into a number to reckon with.
pub(super) fn as_f64(count: usize) -> f64 {
    // Counts of units and words stay far below 2^32; more than that would not fit in memory.
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
