//! Changes of typed memories that a person wrote or edited: they are proposed, not made.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    ReviewProposal,
    file_changes::{PreparedEdit, ProposedChange, ReviewError, UserReplacement},
    read_sanitized,
};
use crate::{
    compaction::{
        Compactor, RootSnapshot,
        journal::{
            commit::{FileWrite, RecordedChanges},
            records,
        },
        reconcile::{
            source_match::{CitedLine, LogsByStem, SourceMatch},
            stale::{self, MemoryProposal},
        },
    },
    memory::{
        address::{Address, Citation},
        correction::{self, CorrectionTargetError, CorrectionText},
        decision::Decisions,
        hash::ContentHash,
        typed::TypedMemory,
    },
    privacy::PrivacyRules,
    store::{
        db::lineage::review::NewProposal,
        fs::vault::{Vault, VaultError},
    },
};

/// The content of a proposed memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposedMemory {
    /// The title.
    pub name: String,
    /// The line for the index.
    pub description: String,
    /// The text after the frontmatter.
    pub body: String,
    /// The source lines, each with a short hash, as in the frontmatter.
    pub sources: Vec<String>,
}

impl ProposedMemory {
    /// Returns the memory as people read it.
    pub fn display_text(&self) -> String {
        memory_text(&self.name, &self.description, &self.body)
    }

    fn from_memory(memory: &TypedMemory) -> Self {
        let source = |(at, hash): &(Address, String)| format!("{at}#{hash}");
        Self {
            name: memory.name.clone(),
            description: memory.description.clone(),
            body: memory.body.clone(),
            sources: memory.sources.iter().map(source).collect(),
        }
    }

    /// Finds the current positions of the source lines.
    pub(super) fn find_sources(
        &self,
        vault: &Vault,
        rules: &PrivacyRules,
    ) -> Result<SourceMatch, VaultError> {
        let source = |it: &String| {
            let (at, hash) = it.split_once('#')?;
            Some((at.parse().ok()?, Some(hash.to_owned())))
        };
        let sources: Vec<CitedLine> = self.sources.iter().filter_map(source).collect();
        let mut logs = LogsByStem::new();
        for (at, _) in &sources {
            if !logs.contains_key(&at.stem) {
                logs.insert(at.stem.clone(), read_sanitized(vault, &at.stem, rules)?);
            }
        }
        Ok(SourceMatch::find(&sources, &logs, &self.body))
    }

    /// Returns whether the file already says this; without a proposed memory, whether the file is
    /// gone.
    pub(super) fn is_applied(words: Option<&Self>, path: &str, text: Option<&str>) -> bool {
        match (words, text) {
            (Some(words), Some(text)) => {
                parse_memory(path, text).is_some_and(|it| it.body.trim() == words.body.trim())
            }
            (None, None) => true,
            _ => false,
        }
    }
}

/// Returns the change of a memory as a proposal.
///
/// Returns `None` if it would not change, if it would return to what it said before the person
/// edited it, or if they have decided about it.
pub(in crate::compaction) fn propose_memory(
    offer: &MemoryProposal,
    path: &str,
    decisions: &Decisions,
) -> Option<NewProposal> {
    let MemoryProposal { before, after, why } = offer;
    if let Some(after) = after
        && (after.body.trim() == before.body.trim()
            || before.recorded_body == Some(ContentHash::of(&after.body).hex16()))
    {
        return None;
    }
    let words = after.as_ref().map(ProposedMemory::from_memory);
    let change =
        ProposedChange::Memory { words, base: base_hash(before), reason: (*why).to_owned() };
    let cited = after.as_ref().unwrap_or(before).sources.iter().map(|(at, _)| at);
    let sources = Citation::from_addresses(cited).map(|it| it.to_string()).unwrap_or_default();
    change.to_proposal(path, sources, decisions)
}

/// Returns the hash of what a memory says. Its sources do not count, since they follow their lines.
pub(super) fn base_hash(memory: &TypedMemory) -> String {
    let TypedMemory { name, description, body, .. } = memory;
    ContentHash::of(format!("{name}\n{description}\n{body}")).hex16()
}

/// Parses the memory at a path.
pub(super) fn parse_memory(path: &str, text: &str) -> Option<TypedMemory> {
    let name = path.rsplit('/').next().unwrap_or(path);
    TypedMemory::parse(Path::new(name), text).ok()
}

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
        let current = self.vault.read_text(&path)?.ok_or_else(changed)?;
        let memory = parse_memory(&path, &current).filter(|it| base_hash(it) == *base);
        let memory = memory.ok_or_else(changed)?;
        let lines = match words {
            Some(words) => words.find_sources(self.vault, &view.inventory.rules)?,
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
                recorded.documents.extend(records::of_path(self.vault.layout(), &path, text));
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

/// Returns what a memory says, for people: name and description only where the body lacks them.
pub(super) fn memory_text(name: &str, description: &str, body: &str) -> String {
    let labels = [name, description].into_iter().filter(|it| !body.contains(it));
    labels.chain([body.trim()]).collect::<Vec<_>>().join("\n")
}
