//! Statements that people wrote into weeks, months, and typed memories.

use super::candidate::{
    EntryCandidate, Occurrence, candidate_from_memory, candidate_from_text, first_sentences,
    is_lasting, title_for,
};
use crate::{
    engine::{
        DistillInput, WisdomOp,
        extractive::{
            memories::keep_mark::without_keep,
            statements::{terms::StatementTerms, word_list::WordList},
        },
    },
    memory::{address::Citation, wisdom::WisdomEntryMeta},
};

/// A statement that a person wrote: a bullet in a week or a month, or a typed memory that they changed.
pub(super) struct UserStatement {
    pub(super) title: String,
    pub(super) text: String,
    pub(super) terms: StatementTerms,
    pub(super) citation: Citation,
    /// Whether it may become an entry by itself.
    pub(super) is_lasting: bool,
}

/// Returns the statements that people wrote. Their bullets cite the weekly or monthly file itself.
pub(super) fn user_statements(input: &DistillInput<'_>) -> Vec<UserStatement> {
    let mut own = Vec::new();
    for (_, item) in input.items {
        let Some(citation) = item.citation.as_ref().filter(|it| it.cites_summary()) else {
            continue;
        };
        let bare = item.text.trim_start_matches("[ ] ").trim_start_matches("[x] ");
        let text = first_sentences(&without_keep(bare));
        let words = WordList::of(&text);
        if words.len() < 3 {
            continue;
        }
        own.push(UserStatement {
            title: title_for(&text),
            terms: StatementTerms::of(&text),
            is_lasting: is_lasting(&text, &words),
            citation: citation.clone(),
            text,
        });
    }
    for memory in input.memories.iter().filter(|it| !it.is_managed()) {
        if let Some(candidate) = candidate_from_memory(memory, input.logs)
            && let Some(citation) = candidate.citation()
        {
            let EntryCandidate { title, text, terms, .. } = candidate;
            own.push(UserStatement { title, text, terms, citation, is_lasting: false });
        }
    }
    own
}

impl UserStatement {
    pub(super) fn to_candidate(&self) -> EntryCandidate {
        let lines: Occurrence = self.citation.addresses().collect();
        let mut candidate = candidate_from_text(&self.text, vec![lines.clone()], lines, 1);
        candidate.score += 10;
        "a person wrote it".clone_into(&mut candidate.reason);
        candidate
    }

    pub(super) fn correction(&self, meta: &WisdomEntryMeta) -> WisdomOp {
        WisdomOp::Merge {
            id: meta.id.clone(),
            words: Some((self.title.clone(), self.text.clone())),
            reason: "a person corrected it".to_owned(),
            citation: self.citation.clone(),
        }
    }
}

/// Replaces the text of a candidate by what a person wrote about the same lines.
pub(super) fn apply_user_statements(candidate: &mut EntryCandidate, own: &[UserStatement]) {
    let within =
        |words: &&UserStatement| candidate.newest.iter().all(|it| words.citation.cites(it));
    if let Some(words) = own.iter().find(within) {
        candidate.title.clone_from(&words.title);
        candidate.text.clone_from(&words.text);
        candidate.terms = words.terms.clone();
        candidate.newest = words.citation.addresses().collect();
    }
}
