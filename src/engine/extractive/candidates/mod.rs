//! Collects the candidates for a summary, called units, and weighs them.
//!
//! A unit is a sentence or clause of a statement. Its value is that of its features: content stems, pairs
//! of neighbouring stems, and atoms. A feature weighs more the rarer it is in the root, and, in technical
//! logs, the more often it occurs in the period.
//!
//! - [`features`]: the features of a text and their weights.
//! - [`headings`]: headings, lead-ins and parent items that a unit may need.

pub(super) mod features;
pub(super) mod headings;

use std::ops::Range;

use self::{
    features::{FeatureBuilder, FeatureIds, NO_FEATURE, PieceFeatures, speaker_terms},
    headings::{PageHeadings, is_meaningful, needs_parent, template_heads},
};
use super::{
    corpus_stats::CorpusCounts,
    parsed_log::{LogStatement, ParsedLog, StatementForm},
    routine_reports::is_routine_report,
    sections,
    tokens::PackedToken,
};
use crate::{
    memory::{address::Address, log::TextOrigin},
    text::{
        hash::{HashedMap, combine_hashes},
        pieces, scripts,
        stems::StemCache,
    },
};

/// The candidates of a summary, with their features.
pub(super) struct CandidateSet {
    pub(super) pages: Vec<ParsedLog>,
    pub(super) units: Vec<CandidateUnit>,
    pub(super) heads: Vec<HeadingUse>,
    pub(super) weights: Vec<f64>,
    /// Per feature, whether it is a number, a date, or the like.
    pub(super) is_exact: Vec<bool>,
    /// Features of units and heads, which refer to ranges of it.
    pub(super) features: Vec<u32>,
    /// Pieces with the same words as another one.
    pub(super) repeats: Vec<PiecePosition>,
    ids: FeatureIds,
}

impl CandidateSet {
    /// Returns the weight of a term, if a unit contains it.
    pub(super) fn weight_of(&self, counts: &CorpusCounts, term: u64) -> Option<f64> {
        let feature = match counts.number(term) {
            Some(number) => self.ids.by_number.get(number as usize).filter(|&&it| it != NO_FEATURE),
            None => self.ids.by_term.get(&term),
        };
        feature.and_then(|&it| self.weights.get(it as usize)).copied()
    }

    /// Returns the number of distinct units that contain a feature.
    pub(super) fn frequency_of(&self, feature: u32) -> u32 {
        self.ids.frequency[feature as usize]
    }
}

/// The position of a piece: indices of page, statement, and piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PiecePosition {
    pub(super) page: usize,
    pub(super) statement: usize,
    pub(super) piece: usize,
}

impl PiecePosition {
    pub(super) fn statement_in(self, pages: &[ParsedLog]) -> (&ParsedLog, &LogStatement) {
        let page = &pages[self.page];
        (page, &page.statements[self.statement])
    }
}

/// A sentence or clause.
pub(super) struct CandidateUnit {
    pub(super) at: PiecePosition,
    /// All features, without repeats.
    pub(super) features: Range<usize>,
    /// The stems among them, which come first.
    pub(super) stems: usize,
    pub(super) chars: usize,
    /// The factor of its kind of text: lower for questions, quotes, and code.
    pub(super) factor: f64,
    /// Its heads, as indices of [`CandidateSet::heads`].
    pub(super) heading: Option<usize>,
    pub(super) lead: Option<usize>,
    /// Whether it says only together with its heading what it is about, however long it is.
    pub(super) needs_heading: bool,
    /// The unit without which it cannot be understood: the beginning of its sentence, the sentence that it
    /// refers to, or the question that it answers.
    pub(super) requires: Option<usize>,
    /// The notes that the program adds, in order; counted in `chars`.
    pub(super) annotations: Vec<Annotation>,
    /// Whether it contains a replaced figure that the note on another unit names.
    pub(super) is_replaced: bool,
    /// Whether its statement reports that there is nothing to report.
    pub(super) is_routine: bool,
}

/// An addition to a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Annotation {
    /// The byte offset in the statement's text where it is inserted.
    pub(super) offset: usize,
    pub(super) text: String,
    /// The lines that it is derived from, besides its own.
    pub(super) citations: Vec<Address>,
}

/// A head with content of its own that units use.
pub(super) struct HeadingUse {
    /// Its index in the page of its units.
    pub(super) head: usize,
    pub(super) features: Range<usize>,
    pub(super) chars: usize,
    /// Whether it is the title of a transcript, without which nobody knows what its turns are about.
    pub(super) is_title: bool,
    /// The units below it, whose gain changes when it is opened.
    pub(super) units: Vec<usize>,
}

/// Factors of units by their form: code, quote, what was read, question.
const CODE_FACTOR: f64 = 0.4;

const QUOTE_FACTOR: f64 = 0.7;

/// What was read says what exists; notes say what was done.
const PASTED_FACTOR: f64 = 0.25;

const QUESTION_FACTOR: f64 = 0.4;

/// The factor of what refers to something that the summary does not have.
const DANGLING_FACTOR: f64 = 0.5;

/// The factor of scripts without spaces. One character says what takes others three, so that in logs with
/// several scripts their small talk would outweigh the facts of the rest.
const UNSPACED_FACTOR: f64 = 0.35;

/// A statement with this many stems can be read without its heading.
pub(super) const SELF_CONTAINED_STEMS: usize = 4;

/// The longest chain of sentences that each require the previous one.
const BACK_REFERENCES_MAX: usize = 3;

/// Collects the units of `pages`; `is_candidate` says which pieces may be chosen.
///
/// Fragments that say little by themselves are left out, unless there is nothing else.
pub(super) fn collect_candidates(
    pages: Vec<ParsedLog>,
    counts: &CorpusCounts,
    is_candidate: impl Fn(&[ParsedLog], PiecePosition) -> bool,
) -> CandidateSet {
    let material = collect_units(pages, counts, &is_candidate, false);
    if material.units.is_empty() {
        collect_units(material.pages, counts, &is_candidate, true)
    } else {
        material
    }
}

fn collect_units(
    pages: Vec<ParsedLog>,
    counts: &CorpusCounts,
    is_candidate: &impl Fn(&[ParsedLog], PiecePosition) -> bool,
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
    let mut collector = CandidateCollector {
        builder,
        templates: template_heads(&pages),
        units: Vec::new(),
        heads: Vec::new(),
        repeats: Vec::new(),
        distinct: HashedMap::default(),
        technical: 0,
        fragments,
    };
    for p in 0..pages.len() {
        collector.add_page(p, &pages, is_candidate);
    }
    let CandidateCollector { builder, units, heads, repeats, distinct, technical, .. } = collector;
    let (weights, exact) = builder.weigh(distinct.len().max(1), technical);
    let FeatureBuilder { ids, features, .. } = builder;
    CandidateSet { pages, units, heads, weights, is_exact: exact, features, repeats, ids }
}

struct CandidateCollector<'c> {
    builder: FeatureBuilder<'c>,
    templates: HashedMap<u32>,
    units: Vec<CandidateUnit>,
    heads: Vec<HeadingUse>,
    repeats: Vec<PiecePosition>,
    /// The hash of each distinct piece, and whether it became a unit.
    distinct: HashedMap<bool>,
    /// Distinct pieces that name code, files, versions, or the like.
    technical: usize,
    fragments: bool,
}

struct NewPiece<'p> {
    page: &'p ParsedLog,
    at: PiecePosition,
    /// Its tokens, if the corpus has them.
    tokens: Option<&'p [PackedToken]>,
    is_candidate: bool,
    requires: Option<usize>,
    answers: Option<usize>,
    /// Whether it is the reason of another statement, in whose bullet it is.
    is_reason: bool,
}

impl CandidateCollector<'_> {
    fn add_page(
        &mut self,
        index: usize,
        pages: &[ParsedLog],
        is_candidate: &impl Fn(&[ParsedLog], PiecePosition) -> bool,
    ) {
        let page = &pages[index];
        self.builder.speakers = speaker_terms(page, self.builder.counts);
        let mut known_tokens = self.builder.counts.tokens(page);
        // The unit with the question of the previous turn.
        let mut question: Option<usize> = None;
        // The last sentence of the previous statement.
        let mut previous_statement: Option<usize> = None;
        // The unit at the beginning of each statement.
        let mut first_units: Vec<Option<usize>> = vec![None; page.statements.len()];
        let meaningful = |head| is_meaningful(page, head, &self.templates);
        let mut heads = PageHeadings {
            meaningful: (0..page.heads.len()).map(meaningful).collect(),
            uses: vec![None; page.heads.len()],
        };
        for (s, statement) in page.statements.iter().enumerate() {
            let is_code = statement.form == StatementForm::Code;
            if statement.introduces || statement.keep {
                let pieces = if is_code { 0 } else { statement.pieces.len() };
                if let Some(known_tokens) = &mut known_tokens {
                    known_tokens.by_ref().take(pieces).for_each(drop);
                }
                continue;
            }
            let answers = question.take().filter(|_| is_answer(page, s));
            // The unit at the beginning of the current sentence.
            let mut opener = previous_statement.take().filter(|&it| {
                continues(page, self.units[it].at, s) && self.units[it].requires.is_none()
            });
            // `Why: …` says nothing without its parent.
            let of_parent = sections::parent_of_reason(page, statement);
            if let Some(parent) = of_parent {
                opener = first_units[parent];
            }
            // How many sentences in a row refer back.
            let mut back_references = 0;
            for (piece, cut) in statement.pieces.iter().enumerate() {
                let at = PiecePosition { page: index, statement: s, piece };
                let words = statement.piece_text(piece);
                let requires = if cut.starts_sentence {
                    let previous = opener.take().filter(|_| {
                        back_references < BACK_REFERENCES_MAX
                            && (of_parent.is_some() || is_incomplete(piece, words))
                    });
                    back_references = if previous.is_some() { back_references + 1 } else { 0 };
                    previous
                } else {
                    opener
                };
                let features_end = self.builder.features.len();
                let added = self.add_piece(
                    &NewPiece {
                        page,
                        at,
                        tokens: known_tokens.as_mut().filter(|_| !is_code).and_then(Iterator::next),
                        // A clause needs the beginning of its sentence.
                        is_candidate: is_candidate(pages, at)
                            && (cut.starts_sentence && of_parent.is_none() || requires.is_some()),
                        requires,
                        answers: answers.filter(|_| piece == 0),
                        is_reason: of_parent.is_some(),
                    },
                    &mut heads,
                );
                if !added {
                    self.builder.features.truncate(features_end);
                } else if cut.starts_sentence {
                    opener = Some(self.units.len() - 1);
                    previous_statement = opener;
                    first_units[s] = first_units[s].or(opener);
                    let is_last = piece + 1 == statement.pieces.len();
                    let asks = is_last && statement.label > 0 && is_question(words);
                    question = opener.filter(|_| asks);
                }
            }
        }
    }

    /// Adds one piece; returns whether it became a unit.
    fn add_piece(&mut self, piece: &NewPiece<'_>, heads: &mut PageHeadings) -> bool {
        let &NewPiece { page, at, tokens, is_candidate, mut requires, answers, is_reason } = piece;
        let statement = &page.statements[at.statement];
        let text = statement.piece_text(at.piece);
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
        let parent = heads.lead_of(page, statement);
        let headed = heading.or(parent).is_some();
        let is_note_data = statement.label > 0 && sections::is_about_note(statement, headed);
        let mut chosen = is_candidate
            && (self.fragments
                || (!is_note_data && is_self_contained(statement, text, &found, headed)));
        if is_candidate && !chosen && answers.is_some() && found.facts + found.names > 0 {
            // A short answer is understandable with its question.
            chosen = true;
            requires = answers;
        }
        self.distinct.insert(found.hash, chosen);
        if !chosen {
            return false;
        }
        let lead = parent.filter(|&it| !is_reason && needs_parent(page, it, text, found.stems));
        // Nothing before it in the summary says what it refers to.
        let refers_alone = requires.is_none() && is_incomplete(at.piece, text);
        let needs_heading = parent.is_none()
            && (statement.lead.is_some()
                || statement.form == StatementForm::Row
                || sections::is_attribute(statement.label_text())
                || (at.piece == 0 && refers_alone));
        let heading = heading.map(|head| self.use_heading(page, head, &mut heads.uses));
        let lead = lead.map(|head| self.use_heading(page, head, &mut heads.uses));
        self.units.push(CandidateUnit {
            at,
            features: found.features,
            stems: found.stems,
            chars: text.chars().count(),
            factor: form_factor(statement, text)
                * if refers_alone && (!headed || pieces::is_about_counted_things(text)) {
                    DANGLING_FACTOR
                } else {
                    1.0
                },
            heading,
            lead,
            needs_heading,
            requires,
            annotations: Vec::new(),
            is_replaced: false,
            is_routine: is_routine_report(&statement.text),
        });
        true
    }

    /// Adds the features of a statement's label to those of a piece: `Walk-away price: $650M`.
    fn add_label(&mut self, page: &ParsedLog, at: PiecePosition, found: &mut PieceFeatures) {
        let statement = &page.statements[at.statement];
        let words = statement.label_text();
        let builder = &mut self.builder;
        let first = builder.sequence.first().copied();
        let label = builder.read_text(page, words);
        let mut added = builder.features.split_off(found.features.end);
        if at.piece == 0 {
            // The same words mean something else under another label.
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

    /// Records that the next unit is below a head; returns the index of the head's use.
    fn use_heading(&mut self, page: &ParsedLog, head: usize, uses: &mut [Option<usize>]) -> usize {
        let index = uses[head].unwrap_or_else(|| {
            let text = &page.heads[head].text;
            let is_title = page.heads[head].lines.is_empty();
            let features = self.builder.read_text(page, text).features;
            let chars = text.chars().count() + ": ".len();
            self.heads.push(HeadingUse { head, features, chars, is_title, units: Vec::new() });
            self.heads.len() - 1
        });
        uses[head] = Some(index);
        self.heads[index].units.push(self.units.len());
        index
    }
}

/// Returns whether a statement without a speaker may go on with what the one before it said.
fn continues(page: &ParsedLog, before: PiecePosition, statement: usize) -> bool {
    let (above, this) = (&page.statements[before.statement], &page.statements[statement]);
    before.statement + 1 == statement
        && above.label == 0
        && this.label == 0
        && above.form == this.form
        && matches!(this.form, StatementForm::Item | StatementForm::Paragraph)
        && (above.heading, above.lead) == (this.heading, this.lead)
}

/// Returns whether a piece says something only together with what is before it.
fn is_incomplete(piece: usize, words: &str) -> bool {
    if piece > 0 { pieces::needs_previous(words) } else { pieces::refers_back(words) }
}

/// Returns whether a piece is understandable by itself or with its heads.
fn is_self_contained(
    statement: &LogStatement,
    text: &str,
    found: &PieceFeatures,
    headed: bool,
) -> bool {
    let labelled = statement.label > 0 && statement.pieces.len() == 1;
    let label = if labelled { statement.label_text() } else { "" };
    let mut letters = label.chars().chain(text.chars()).filter(|c| c.is_alphanumeric());
    // A name is a stem, too: alone it only addresses somebody.
    let fact = found.facts > 0 || (found.names > 0 && found.stems > 1);
    let content = found.stems.saturating_sub(found.vocatives) + usize::from(fact);
    let needed = match (headed, labelled) {
        // A row of data says nothing, whatever it is below.
        _ if statement.form == StatementForm::Code => 3,
        (true, _) if statement.pieces.len() == 1 => 1,
        (false, false) => 3,
        _ => 2,
    };
    content >= needed && letters.nth(5).is_some() && !pieces::reports_only_contact(text)
}

fn form_factor(statement: &LogStatement, text: &str) -> f64 {
    let form = match statement.form {
        StatementForm::Code => CODE_FACTOR,
        StatementForm::Quote => QUOTE_FACTOR,
        _ if statement.is_pasted => PASTED_FACTOR,
        _ if statement.origin == TextOrigin::External => 0.7,
        _ => 1.0,
    };
    let form = if scripts::is_mostly_spaceless(text) { form * UNSPACED_FACTOR } else { form };
    if is_question(text) { form * QUESTION_FACTOR } else { form }
}

fn is_question(text: &str) -> bool {
    text.trim_end_matches([')', '"', '”', '’', ']']).ends_with(['?', '？', '؟'])
}

/// Returns whether a statement is the turn of another speaker than the previous one.
fn is_answer(page: &ParsedLog, statement: usize) -> bool {
    let label = |it: usize| page.statements[it].label_text();
    let (asker, answers) = (statement.checked_sub(1).map_or("", label), label(statement));
    !asker.is_empty() && !answers.is_empty() && asker != answers
}
