//! A memory found in a block, and the draft made from it.

use std::collections::BTreeSet;

use super::NAME_CHARS_MAX;
use crate::{
    engine::{
        MemoryDraft,
        extractive::statements::{
            terms::is_stop_word,
            titles::{truncate_at_word, without_time},
            word_list::WordList,
        },
    },
    memory::{address::Citation, decision::Decisions, typed::MemoryType},
};

/// The longest description: a line of the index stays under 120 characters.
const DESCRIPTION_CHARS_MAX: usize = 119;

/// A memory found in a block, before the comparison with existing ones.
#[derive(Debug)]
pub(super) struct MemoryCandidate {
    pub(super) kind: MemoryType,
    pub(super) score: u32,
    pub(super) title: String,
    pub(super) statement: String,
    pub(super) why: Option<String>,
    pub(super) how_to_apply: Option<String>,
    /// All lines whose words it uses.
    pub(super) lines: BTreeSet<u32>,
}

impl MemoryCandidate {
    pub(super) fn first_line(&self) -> u32 {
        self.lines.first().copied().unwrap_or_default()
    }

    pub(super) fn into_draft(self, citation: Citation) -> MemoryDraft {
        MemoryDraft {
            kind: self.kind,
            topic: topic_words(&self.title, &self.statement),
            name: truncate_at_word(&self.title, NAME_CHARS_MAX),
            description: truncate_at_word(without_time(&self.statement), DESCRIPTION_CHARS_MAX),
            statement: self.statement,
            why: self.why,
            how_to_apply: self.how_to_apply,
            citation,
        }
    }
}

/// Returns two to six content words for the file's name.
fn topic_words(title: &str, statement: &str) -> String {
    const WORDS_MIN: usize = 2;
    const WORDS_MAX: usize = 6;
    let content = |text: &str| -> Vec<String> {
        let mut seen = BTreeSet::new();
        WordList::of(&Decisions::strip_secret_placeholders(text))
            .iter()
            .filter(|w| !is_stop_word(w) && !w.starts_with("http") && w.chars().count() <= 24)
            .filter(|w| seen.insert((*w).to_owned()))
            .map(str::to_owned)
            .take(WORDS_MAX)
            .collect()
    };
    let mut words = content(title);
    if words.len() < WORDS_MIN {
        words = content(statement);
    }
    words.join(" ")
}
