//! Why a file says what it says: what could be chosen for it, what that was worth, and where the choice
//! ended.

use serde::{Serialize, Serializer};

use super::{
    candidates::CandidateSet, corpus_stats::CorpusCounts, parsed_log::ParsedLog,
    tokens::atom_term_hash, words::StemCache,
};
use crate::memory::{address::Address, atom, period::Period};

/// How the engine chose for one week or month.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryExplanation {
    /// The week or month.
    #[serde(serialize_with = "as_text")]
    pub period: Period,
    /// Whether the sources are so short that each line of theirs is kept, and nothing is chosen.
    pub whole: bool,
    /// How many characters the body was to have, citations not counted.
    pub target_chars: usize,
    /// How many it has.
    pub chars: usize,
    /// How many sentences and clauses there were to choose from.
    pub units: usize,
    /// What was chosen, best first.
    pub chosen: Vec<ExplainedUnit>,
    /// What was left out first, best first, and then what repeats others.
    pub left_out: Vec<ExplainedUnit>,
}

/// A sentence or clause, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedUnit {
    /// The line where it begins.
    #[serde(serialize_with = "as_text")]
    pub address: Address,
    /// The section that it has or would have.
    pub section: &'static str,
    /// Its words, after the label of its line.
    pub text: String,
    /// Its length in characters, without the label.
    pub chars: usize,
    /// What it added when its turn came, for each 100 characters that it costs. 0 for what repeats others.
    pub value: f64,
    /// What came of it.
    pub why: SelectionOutcome,
    /// Its words and figures that weigh most in this period, heaviest first, each with its weight.
    pub weighs_most: Vec<(String, f64)>,
}

/// What came of a sentence or clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionOutcome {
    /// It stands in the file.
    Chosen,
    /// It was worth more than the last one in, and longer than the room that was left.
    DidNotFit,
    /// The last one in was worth more.
    WorthLess,
    /// One that was chosen says the same.
    Repeats,
}

impl SelectionOutcome {
    /// Returns the words for people.
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

/// Finds the words behind the features, which are but hashes.
#[derive(Default)]
pub(super) struct TermNamer {
    stems: StemCache,
}

impl TermNamer {
    /// Returns the words and atoms of a text that weigh most.
    pub(super) fn heaviest_terms(
        &mut self,
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
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty()) {
            let mut weight = None;
            self.stems.for_each_stem(page.language, word, |term| {
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
}
