//! Changes of typed memories that a person wrote or edited: they are proposed, not made.

use super::{
    ReviewProposal,
    file_changes::{PreparedEdit, ReviewError, UserReplacement},
};
use crate::compaction::{
    Compactor,
    journal::{
        commit::{FileWrite, RecordedChanges},
        records,
    },
    proposals::{
        change::ProposedChange,
        memories::{ProposedMemory, base_hash, parse_memory},
    },
    reconcile::{source_match::SourceMatch, stale},
    snapshot::RootSnapshot,
};
use crate::memory::{
    address::Address,
    correction::{self, CorrectionTargetError, CorrectionText},
    typed::TypedMemory,
};

impl Compactor<'_> {
    /// Prepares the file for an accepted change of a memory.
    pub(super) fn prepare_memory_edit<'a>(
        &self,
        accepted: &'a (ReviewProposal, Option<UserReplacement>),
        view: &RootSnapshot,
    ) -> Result<PreparedEdit<'a>, ReviewError> {
        let (ReviewProposal { id, row, change, .. }, own) = accepted;
        let stale = || ReviewError::Stale { id: id.clone() };
        let ProposedChange::Memory { words, base, .. } = change else { return Err(stale()) };
        let path = row.target.clone();
        let changed = || ReviewError::FileChanged { id: id.clone(), path: path.clone() };
        let current = self.context.vault.read_text(&path)?.ok_or_else(changed)?;
        let memory = parse_memory(&path, &current).filter(|it| base_hash(it) == *base);
        let memory = memory.ok_or_else(changed)?;
        let lines = match words {
            Some(words) => words.find_sources(self.context.vault, &view.inventory.rules)?,
            None => SourceMatch::default(),
        };
        let text = match (own, words) {
            (Some(own), _) => Some(with_user_text(&memory, &current, &own.text, &lines)?),
            (None, None) => None,
            (None, Some(_)) if !lines.lost.is_empty() || lines.log_missing => return Err(stale()),
            (None, Some(words)) => {
                let ProposedMemory { name, description, body, .. } = words.clone();
                let new = TypedMemory { name, description, body, ..memory.clone() };
                let mut new = stale::with_sources(&new, &lines.present);
                // A memory that was managed before the person edited it is managed again; theirs
                // stays theirs.
                if new.recorded_body.is_some() {
                    new.record_body_hash();
                }
                Some(new.print())
            }
        };
        let mut recorded = RecordedChanges::default();
        match &text {
            Some(text) => {
                recorded.documents.extend(records::of_path(
                    self.context.vault.layout(),
                    &path,
                    text,
                ));
            }
            None => recorded.removed.push(path.clone()),
        }
        let file = FileWrite { path, text, current: Some(current) };
        Ok(PreparedEdit { file, recorded, changes: vec![accepted] })
    }
}

/// Replaces the statement with a person's words. It cites the lines of the proposal.
fn with_user_text(
    memory: &TypedMemory,
    current: &str,
    text: &str,
    lines: &SourceMatch,
) -> Result<String, ReviewError> {
    let file = |error: &dyn std::fmt::Display| ReviewError::File(error.to_string());
    let mut words = CorrectionText::parse(text).map_err(|e| file(&e))?;
    words.citation = lines.present_lines();
    let hash_of = |at: &Address| lines.present.iter().find(|it| it.0 == *at)?.1.clone();
    let done = correction::correct_memory(memory, current, None, &words, &hash_of);
    let done = match done {
        Err(CorrectionTargetError::FixedSources) => {
            words.citation = None;
            correction::correct_memory(memory, current, None, &words, &hash_of)
        }
        done => done,
    };
    match done {
        Ok(corrected) => Ok(corrected.text),
        Err(_) => Err(ReviewError::File("the file has no statement to change".to_owned())),
    }
}
