//! Explains a summary: the candidates, their values, and where the selection ended.

use serde::{Serialize, Serializer};

use super::{
    candidates::CandidateSet, corpus_stats::CorpusCounts, parsed_log::ParsedLog,
    tokens::atom_term_hash,
};
use crate::{
    memory::{address::Address, atom, period::Period},
    text::{stems::StemCache, words},
};

/// How the engine selected the text of one week or month.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryExplanation {
    /// The week or month.
    #[serde(serialize_with = "as_text")]
    pub period: Period,
    /// Whether the sources are so short that every line is copied and nothing is selected.
    pub whole: bool,
    /// The target length of the body in characters, without citations.
    pub target_chars: usize,
    /// The length of the body in characters.
    pub chars: usize,
    /// The number of candidate sentences and clauses.
    pub units: usize,
    /// The chosen units, best first.
    pub chosen: Vec<ExplainedUnit>,
    /// The best units that were left out, best first, then those that repeat others.
    pub left_out: Vec<ExplainedUnit>,
}

/// A sentence or clause and the outcome of its selection.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedUnit {
    /// Its first line.
    #[serde(serialize_with = "as_text")]
    pub address: Address,
    /// The section that it has or would have.
    pub section: &'static str,
    /// Its words, preceded by the label of its line.
    pub text: String,
    /// Its length in characters, without the label.
    pub chars: usize,
    /// Its gain per 100 characters when it was evaluated; 0 for units that repeat others.
    pub value: f64,
    /// The outcome.
    pub why: SelectionOutcome,
    /// Its words and figures with the highest weights in this period, heaviest first.
    pub weighs_most: Vec<(String, f64)>,
}

/// Why a sentence or clause was chosen or left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionOutcome {
    /// It is in the file.
    Chosen,
    /// It ranked above the last chosen unit but was longer than the remaining room.
    DidNotFit,
    /// It ranked below the last chosen unit.
    WorthLess,
    /// A chosen unit says the same.
    Repeats,
}

impl SelectionOutcome {
    /// Returns the text for terminal output.
    pub fn label(self) -> &'static str {
        match self {
            Self::Chosen => "chosen",
            Self::DidNotFit => "did not fit",
            Self::WorthLess => "worth less",
            Self::Repeats => "repeats another",
        }
    }
}

fn as_text<S: Serializer>(value: &impl ToString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}

/// Returns the words and atoms of a text with the highest weights. Features are only hashes.
pub(super) fn heaviest_terms(
    stems: &mut StemCache,
    material: &CandidateSet,
    counts: &CorpusCounts,
    (page, text): (&ParsedLog, &str),
) -> Vec<(String, f64)> {
    const MOST: usize = 4;
    let mut found: Vec<(String, f64)> = Vec::new();
    let mut add = |words: &str, weight: f64| match found.iter_mut().find(|it| it.0 == words) {
        Some(known) => known.1 = known.1.max(weight),
        None => found.push((words.to_owned(), weight)),
    };
    for atom in atom::find_atoms(text) {
        if let Some(weight) = material.weight_of(counts, atom_term_hash(&atom.norm(text))) {
            add(atom.text(text), weight);
        }
    }
    for word in words::runs(text, "") {
        let mut weight = None;
        stems.for_each_stem(page.language, word, |term| {
            let here = material.weight_of(counts, term);
            weight = weight.into_iter().chain(here).reduce(f64::max);
        });
        if let Some(weight) = weight {
            add(word, weight);
        }
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found.truncate(MOST);
    found
}
