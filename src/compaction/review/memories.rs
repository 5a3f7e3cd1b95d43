//! Typed memories that a person wrote or edited: what would become of them is proposed.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    Proposed,
    changes::{Change, Own, Ready, ReviewError},
    read_source,
};
use crate::{
    compaction::{
        Compactor, View,
        commit::{NewFile, Recorded},
        late::{self, Offer},
        records,
        standing::{Logs, Source, Standing},
    },
    memory::{
        address::{Address, Citation},
        correction::{self, PlaceError, Words},
        decision::Decisions,
        hash::ContentHash,
        typed::TypedMemory,
    },
    privacy::Rules,
    store::{
        lineage::review::NewProposal,
        vault::{Vault, VaultError},
    },
};

/// What a typed memory would say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryWords {
    /// The title.
    pub name: String,
    /// The line for the index.
    pub description: String,
    /// All after the frontmatter.
    pub body: String,
    /// The lines that it would rest on, each with a short hash, as in the frontmatter.
    pub sources: Vec<String>,
}

impl MemoryWords {
    /// Returns what it would say, for people.
    pub fn said(&self) -> String {
        said(&self.name, &self.description, &self.body)
    }

    fn of(memory: &TypedMemory) -> Self {
        let source = |(at, hash): &(Address, String)| format!("{at}#{hash}");
        Self {
            name: memory.name.clone(),
            description: memory.description.clone(),
            body: memory.body.clone(),
            sources: memory.sources.iter().map(source).collect(),
        }
    }

    /// Finds the lines where they stand now.
    pub(super) fn find(&self, vault: &Vault, rules: &Rules) -> Result<Standing, VaultError> {
        let source = |it: &String| {
            let (at, hash) = it.split_once('#')?;
            Some((at.parse().ok()?, Some(hash.to_owned())))
        };
        let sources: Vec<Source> = self.sources.iter().filter_map(source).collect();
        let mut logs = Logs::new();
        for (at, _) in &sources {
            if !logs.contains_key(&at.stem) {
                logs.insert(at.stem.clone(), read_source(vault, &at.stem, rules)?);
            }
        }
        Ok(Standing::find(&sources, &logs, &self.body))
    }

    /// Returns whether a file says this already; without words, whether it is gone.
    pub(super) fn stand(words: Option<&Self>, path: &str, text: Option<&str>) -> bool {
        match (words, text) {
            (Some(words), Some(text)) => {
                parse(path, text).is_some_and(|it| it.body.trim() == words.body.trim())
            }
            (None, None) => true,
            _ => false,
        }
    }
}

/// Returns what would become of a memory as a change to be proposed; `None` where it would say what it
/// says, or what it said before the person edited it, or where they have decided about it before.
pub(in crate::compaction) fn offered(
    offer: &Offer,
    path: &str,
    decisions: &Decisions,
) -> Option<NewProposal> {
    let Offer { before, after, why } = offer;
    if let Some(after) = after
        && (after.body.trim() == before.body.trim()
            || before.recorded_body == Some(ContentHash::of(&after.body).hex16()))
    {
        return None;
    }
    let words = after.as_ref().map(MemoryWords::of);
    let change = Change::Memory { words, base: base_of(before), reason: (*why).to_owned() };
    let cited = after.as_ref().unwrap_or(before).sources.iter().map(|(at, _)| at);
    let sources = Citation::from_addresses(cited).map(|it| it.to_string()).unwrap_or_default();
    change.proposed(path, sources, decisions)
}

/// Returns the hash of what a memory says. Its sources do not count: they follow their lines.
pub(super) fn base_of(memory: &TypedMemory) -> String {
    let TypedMemory { name, description, body, .. } = memory;
    ContentHash::of(format!("{name}\n{description}\n{body}")).hex16()
}

/// Reads the memory at a path.
pub(super) fn parse(path: &str, text: &str) -> Option<TypedMemory> {
    let name = path.rsplit('/').next().unwrap_or(path);
    TypedMemory::parse(Path::new(name), text).ok()
}

impl Compactor<'_> {
    /// Makes ready what is written when a change of a memory is made.
    pub(super) fn edit_memory<'a>(
        &self,
        accepted: &'a (Proposed, Option<Own>),
        view: &View,
    ) -> Result<Ready<'a>, ReviewError> {
        let (Proposed { id, row, change, .. }, own) = accepted;
        let stale = || ReviewError::Stale { id: id.clone() };
        let Change::Memory { words, base, .. } = change else { return Err(stale()) };
        let path = row.target.clone();
        let changed = || ReviewError::Changed { id: id.clone(), path: path.clone() };
        let standing = self.vault.read_text(&path)?.ok_or_else(changed)?;
        let memory = parse(&path, &standing).filter(|it| base_of(it) == *base);
        let memory = memory.ok_or_else(changed)?;
        let lines = match words {
            Some(words) => words.find(self.vault, &view.inventory.rules)?,
            None => Standing::default(),
        };
        let text = match (own, words) {
            (Some(own), _) => Some(in_own_words(&memory, &standing, &own.text, &lines)?),
            (None, None) => None,
            (None, Some(_)) if !lines.lost.is_empty() || lines.gone => return Err(stale()),
            (None, Some(words)) => {
                let MemoryWords { name, description, body, .. } = words.clone();
                let new = TypedMemory { name, description, body, ..memory.clone() };
                let mut new = late::with_sources(&new, &lines.left);
                // What was ours before the person edited it is ours again; theirs stays theirs.
                if new.recorded_body.is_some() {
                    new.seal();
                }
                Some(new.print())
            }
        };
        let mut recorded = Recorded::default();
        match &text {
            Some(text) => {
                recorded.documents.extend(records::of_path(self.vault.layout(), &path, text));
            }
            None => recorded.removed.push(path.clone()),
        }
        let file = NewFile { path, text, standing: Some(standing) };
        Ok(Ready { file, recorded, changes: vec![accepted] })
    }
}

/// Puts a person's words in the place of the statement. It rests on the lines that it was proposed for.
fn in_own_words(
    memory: &TypedMemory,
    standing: &str,
    text: &str,
    lines: &Standing,
) -> Result<String, ReviewError> {
    let file = |error: &dyn std::fmt::Display| ReviewError::File(error.to_string());
    let mut words = Words::parse(text).map_err(|e| file(&e))?;
    words.citation = lines.lines_left();
    let hash_of = |at: &Address| lines.left.iter().find(|it| it.0 == *at)?.1.clone();
    let done = correction::of_memory(memory, standing, None, &words, &hash_of);
    let done = match done {
        Err(PlaceError::Sources) => {
            words.citation = None;
            correction::of_memory(memory, standing, None, &words, &hash_of)
        }
        done => done,
    };
    match done {
        Ok(corrected) => Ok(corrected.text),
        Err(_) => Err(ReviewError::File("the file has no statement to change".to_owned())),
    }
}

/// Returns what a memory says, for people: title and line of the index where the body does not say them.
pub(super) fn said(name: &str, description: &str, body: &str) -> String {
    let labels = [name, description].into_iter().filter(|it| !body.contains(it));
    labels.chain([body.trim()]).collect::<Vec<_>>().join("\n")
}
