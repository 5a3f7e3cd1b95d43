//! Proposed changes of typed memories that a person wrote or edited.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{change::ProposedChange, read_sanitized};
use crate::compaction::reconcile::{
    source_match::{CitedLine, LogsByStem, SourceMatch},
    stale::MemoryProposal,
};
use crate::{
    memory::{
        address::{Address, Citation, original_line_number},
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
pub(crate) struct ProposedMemory {
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
    pub(crate) fn display_text(&self) -> String {
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
    pub(crate) fn find_sources(
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
    pub(crate) fn is_applied(words: Option<&Self>, path: &str, text: Option<&str>) -> bool {
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
pub(crate) fn propose_memory(
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
    // Lines that are gone are named by where they were.
    let former = |(at, _): &(Address, String)| Address {
        stem: at.stem.clone(),
        line: original_line_number(at.line),
    };
    let cited: Vec<Address> = after.as_ref().unwrap_or(before).sources.iter().map(former).collect();
    let sources = Citation::from_addresses(&cited).map(|it| it.to_string()).unwrap_or_default();
    change.to_proposal(path, sources, decisions)
}

/// Returns the hash of what a memory says. Its sources do not count, since they follow their lines.
pub(crate) fn base_hash(memory: &TypedMemory) -> String {
    let TypedMemory { name, description, body, .. } = memory;
    ContentHash::of(format!("{name}\n{description}\n{body}")).hex16()
}

/// Parses the memory at a path.
pub(crate) fn parse_memory(path: &str, text: &str) -> Option<TypedMemory> {
    let name = path.rsplit('/').next().unwrap_or(path);
    TypedMemory::parse(Path::new(name), text).ok()
}

/// Returns what a memory says, for people: name and description only where the body lacks them.
pub(crate) fn memory_text(name: &str, description: &str, body: &str) -> String {
    let labels = [name, description].into_iter().filter(|it| !body.contains(it));
    labels.chain([body.trim()]).collect::<Vec<_>>().join("\n")
}
