//! The features of a text (stems, pairs of stems, and atoms) and their weights.

use std::{collections::HashMap, ops::Range};

use crate::{
    engine::extractive::{
        as_f64,
        corpus_stats::CorpusCounts,
        parsed_log::ParsedLog,
        tokens::{self, PackedToken, TokenKind, atom_term_hash},
    },
    text::{
        hash::{HashedMap, combine_hashes},
        stems::StemCache,
    },
};

/// Weights of a content stem, of a pair of neighbours, and of an atom.
const STEM_WEIGHT: f64 = 1.0;

const PAIR_WEIGHT: f64 = 0.6;

const ATOM_WEIGHT: f64 = 6.0;

/// Weight of a number, date, sum, or version: people look for those later and cannot reconstruct them.
const FIGURE_WEIGHT: f64 = 7.0;

const RARITY_POWER: f64 = 1.3;

/// Repetition counts more the more statements name code, files, or versions: fully if nearly half of them
/// do, hardly if a fifth does.
const TECHNICAL_SLOPE: f64 = 5.0;

/// A label that occurs this often in a log is a speaker.
const TURNS_MIN: usize = 3;

/// The fewest letters of a shortened name.
const SHORT_NAME_MIN: usize = 3;

pub(super) const NO_FEATURE: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct FeatureIds {
    /// By the number of a term in the corpus counts.
    pub(super) by_number: Vec<u32>,
    /// By hash, for terms that no log contains and for pairs.
    pub(super) by_term: HashedMap<u32>,
    pub(super) kinds: Vec<FeatureKind>,
    /// Per feature, the number of distinct units that contain it.
    pub(super) frequency: Vec<u32>,
}

/// A term by its number in the corpus counts, if it has one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TermId {
    Number(u32),
    /// No log of the window contains it.
    Unknown(u64),
}

pub(super) struct FeatureBuilder<'c> {
    pub(super) counts: &'c CorpusCounts,
    pub(super) stems: StemCache,
    pub(super) ids: FeatureIds,
    pub(super) features: Vec<u32>,
    /// The stems of a text in order, and its atoms; buffers that are reused.
    pub(super) sequence: Vec<u32>,
    pub(super) atoms: Vec<(TermId, TokenKind)>,
    /// The names of the speakers of the current page, sorted.
    pub(super) speakers: Vec<TermId>,
}

#[derive(Clone, Copy)]
pub(super) enum FeatureKind {
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
    /// Returns the feature of a term. `kind` creates a new one from the number of statements with the term.
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

    pub(super) fn of_pair(&mut self, left: u32, right: u32) -> u32 {
        let term = combine_hashes(combine_hashes(u64::from(left), 0x5B), u64::from(right));
        *self.by_term.entry(term).or_insert_with(|| {
            self.kinds.push(FeatureKind::Pair { left, right });
            self.frequency.push(0);
            u32::try_from(self.kinds.len() - 1).unwrap_or(NO_FEATURE - 1)
        })
    }
}

pub(super) struct PieceFeatures {
    pub(super) features: Range<usize>,
    pub(super) stems: usize,
    /// Atoms that are not names.
    pub(super) facts: usize,
    pub(super) names: usize,
    /// Names of speakers, who are only addressed.
    pub(super) vocatives: usize,
    pub(super) technical: bool,
    pub(super) hash: u64,
}

impl FeatureBuilder<'_> {
    /// Appends the features of a text, stems first.
    pub(super) fn read_text(&mut self, page: &ParsedLog, text: &str) -> PieceFeatures {
        self.sequence.clear();
        self.atoms.clear();
        let mut stems = std::mem::take(&mut self.stems);
        tokens::for_each_token(&mut stems, page.language, text, |term, kind| {
            self.add_token(TermId::of(self.counts, term), kind);
        });
        self.stems = stems;
        self.finish_piece(page)
    }

    /// Appends the features of a text that is already tokenized.
    pub(super) fn read_tokens(
        &mut self,
        page: &ParsedLog,
        tokens: &[PackedToken],
    ) -> PieceFeatures {
        self.sequence.clear();
        self.atoms.clear();
        for token in tokens {
            self.add_token(TermId::Number(token.term_id()), token.kind());
        }
        self.finish_piece(page)
    }

    fn add_token(&mut self, term: TermId, kind: TokenKind) {
        if kind == TokenKind::Stem {
            self.sequence.push(self.ids.of(self.counts, term, |seen| FeatureKind::Stem { seen }));
        } else {
            self.atoms.push((term, kind));
        }
    }

    /// Appends the features of the buffered tokens.
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
                // In languages that capitalize nouns, a capital does not mark a name.
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

    /// Returns the weight of each feature, and whether it is exact.
    pub(super) fn weigh(&self, units: usize, technical: usize) -> (Vec<f64>, Vec<bool>) {
        let all = as_f64(self.counts.statements().max(units));
        let base = (1.0 + all).ln();
        // A repeated word is filler in talk, but the topic of the week in a technical log.
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
            // For an atom the number of repetitions does not matter.
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

/// Returns the names of the speakers of a page, whole and shortened, sorted.
pub(super) fn speaker_terms(page: &ParsedLog, counts: &CorpusCounts) -> Vec<TermId> {
    let mut seen = HashMap::<&str, usize>::new();
    for statement in page.statements.iter().filter(|it| it.label > 0) {
        *seen.entry(statement.label_text()).or_default() += 1;
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

/// Sorts and deduplicates the features from `start` on, and returns how many are left.
fn sort_and_dedup_from(features: &mut Vec<u32>, start: usize) -> usize {
    features[start..].sort_unstable();
    let mut end = start;
    for i in start..features.len() {
        if i == start || features[i] != features[end - 1] {
            features[end] = features[i];
            end += 1;
        }
    }
    features.truncate(end);
    end - start
}
