//! The existing typed memories, and what a draft of a model changes in them.
//!
//! A model gets their names, and says which one it updates; a draft with the same name updates that
//! one, too. Then the words in its file change, and the old ones are in the history. A draft
//! without news changes nothing, and neither does one older than the memory: dates decide what
//! supersedes what, not the order of reading.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::compaction::{
    proposals,
    reconcile::stale::{MemoryProposal, MemoryRevision},
};
use crate::{
    engine::MemoryDraft,
    memory::{
        address::Citation,
        hash::ContentHash,
        item::Item,
        typed::{self, TypedMemory},
    },
    privacy::{self, FileNameSecrets, PrivacyRules},
    store::fs::{inventory::Inventory, vault::Vault},
};

/// Masked names of memories, by file: a file may have been named before its kind of secret was
/// known.
#[derive(Debug, Default)]
pub(crate) struct MaskedNames(BTreeMap<PathBuf, String>);

impl MaskedNames {
    /// Searches for secrets everywhere: in the memories, in all logs, and in the derived files.
    /// What cannot be read is skipped.
    pub(crate) fn of(memories: &[TypedMemory], inventory: &Inventory, vault: &Vault) -> Self {
        let rules = &inventory.rules;
        let mut secrets = FileNameSecrets::default();
        let mut learn = |text: &str| secrets.add_from(rules, text);
        if memories.is_empty() {
            return Self::default();
        }
        for memory in memories {
            for text in [&memory.name, &memory.description, &memory.body] {
                learn(text);
            }
        }
        let logs = inventory.logs.values().chain(inventory.late_logs.values()).map(|it| &it.path);
        let files = inventory.weekly.values().chain(inventory.monthly.values()).map(|it| &it.path);
        for path in logs.chain(files) {
            if let Ok(Some(found)) = vault.read(path) {
                learn(&String::from_utf8_lossy(&found.bytes));
            }
        }
        inventory.wisdom.iter().for_each(|it| learn(it));
        let names = memories.iter().filter_map(|it| {
            secrets.kind_in(rules, &it.file_name.to_string_lossy())?;
            let said = format!("{}\n{}\n{}", it.name, it.description, it.body);
            let said = rules.mask_secrets(&said).into_owned();
            let lines: Vec<String> = it.sources.iter().map(|(at, _)| at.to_string()).collect();
            let hash = ContentHash::of(format!("{said}\n{}", lines.join("\n"))).hex16();
            Some((it.file_name.clone(), format!("{}_unnamed-{hash}", it.kind)))
        });
        Self(names.collect())
    }

    /// Returns the name by which a model knows a memory: its file name without the extension.
    fn name_of<'a>(&'a self, memory: &'a TypedMemory) -> Cow<'a, str> {
        let own = || memory.file_name.file_stem().unwrap_or_default().to_string_lossy();
        self.0.get(&memory.file_name).map_or_else(own, Into::into)
    }
}

/// Returns the memories as a model sees them: without secrets, and without those that look like an
/// attack, unless a person accepted one of their lines.
pub(crate) fn sanitized_memories(
    memories: &[TypedMemory],
    names: &MaskedNames,
    vault: &Vault,
    rules: &PrivacyRules,
) -> Vec<TypedMemory> {
    let shown = |it: &TypedMemory| TypedMemory {
        file_name: PathBuf::from(format!("{}.md", names.name_of(it))),
        name: rules.mask_secrets(&it.name).into_owned(),
        description: rules.mask_secrets(&it.description).into_owned(),
        body: rules.mask_secrets(&it.body).into_owned(),
        ..it.clone()
    };
    memories.iter().filter(|it| !is_held(it, vault, rules)).map(shown).collect()
}

/// Returns whether a memory is not shown, because it looks like an attack and nobody accepted it.
pub(crate) fn is_held(memory: &TypedMemory, vault: &Vault, rules: &PrivacyRules) -> bool {
    let text = [&memory.name[..], &memory.description, &memory.body].join("\n\n");
    let citation = Citation::from_addresses(memory.sources.iter().map(|it| &it.0));
    let item = || Item { text: memory.body.clone(), citation };
    !privacy::suspicious_lines(&text).is_empty() && !proposals::is_accepted(&item(), vault, rules)
}

/// Existing memories, and the names by which a model knows them.
#[derive(Clone, Copy)]
pub(crate) struct NamedMemories<'a> {
    pub(crate) memories: &'a [TypedMemory],
    pub(crate) names: &'a MaskedNames,
}

/// Returns the memory that a draft is about: the one that it names, or that has its name. If a day
/// is extracted again, also one that cites a line of it.
pub(crate) fn target_memory<'a>(
    draft: &MemoryDraft,
    known: NamedMemories<'a>,
    rereads: bool,
) -> Option<&'a TypedMemory> {
    let NamedMemories { memories, names } = known;
    let of_kind = || memories.iter().filter(|it| it.kind == draft.kind);
    let named = draft
        .updates
        .as_deref()
        .and_then(|name| of_kind().find(|it| matches_name(it, name, names)));
    let file = typed::file_name(draft.kind, &draft.topic);
    let has_name = |it: &&TypedMemory| {
        it.file_name.as_os_str().eq_ignore_ascii_case(&file)
            || it.name.trim().to_lowercase() == draft.name.trim().to_lowercase()
    };
    let shares_line =
        |it: &&TypedMemory| rereads && it.sources.iter().any(|(at, _)| draft.citation.cites(at));
    named.or_else(|| of_kind().find(has_name)).or_else(|| of_kind().find(shares_line))
}

/// Returns what is wrong with the reference of a draft to existing memories, for the author of the
/// draft.
pub(crate) fn draft_fault(
    draft: &MemoryDraft,
    known: NamedMemories<'_>,
    rereads: bool,
) -> Option<String> {
    if let Some(name) = &draft.updates {
        let named = known.memories.iter().find(|it| matches_name(it, name, known.names));
        return match named {
            None => Some("`updates` names no memory that exists".to_owned()),
            Some(it) if it.kind != draft.kind => {
                Some(format!("`updates` names a memory of the type `{}`", it.kind))
            }
            Some(_) => None,
        };
    }
    let there = target_memory(draft, known, false).filter(|_| !rereads)?;
    cites_new_line(draft, there).then(|| {
        format!(
            "a memory `{}` exists: name it in `updates` and say all that holds now, or choose another \
             topic and name",
            known.names.name_of(there)
        )
    })
}

/// Returns the memory updated by a draft about it; `None` if the draft says nothing new.
pub(crate) fn updated_memory(
    draft: &MemoryDraft,
    new: &TypedMemory,
    old: &TypedMemory,
    rereads: bool,
) -> Option<TypedMemory> {
    let is_new = rereads || cites_new_line(draft, old);
    if !is_new || new.updated < old.updated || new.body.trim() == old.body.trim() {
        return None;
    }
    Some(TypedMemory {
        file_name: old.file_name.clone(),
        created: old.created.into_iter().chain(new.created).min(),
        supersedes: old.supersedes.clone(),
        other_keys: old.other_keys.clone(),
        ..new.clone()
    })
}

/// An update of a memory: ours is revised, a person's gets a proposal.
pub(crate) enum MemoryUpdate {
    Revise(MemoryRevision),
    Propose(MemoryProposal),
}

impl MemoryUpdate {
    pub(crate) fn new(before: TypedMemory, after: TypedMemory) -> Self {
        if before.is_managed() {
            Self::Revise(MemoryRevision { before, after })
        } else {
            let why = "a newer line says more about it";
            Self::Propose(MemoryProposal { before, after: Some(after), why })
        }
    }

    pub(crate) fn file_name(&self) -> &Path {
        match self {
            Self::Revise(it) => &it.before.file_name,
            Self::Propose(it) => &it.before.file_name,
        }
    }
}

/// Returns whether an existing memory cites one of the same lines, or says the same.
pub(crate) fn is_duplicate(memory: &TypedMemory, existing: &[TypedMemory]) -> bool {
    existing.iter().any(|it| {
        it.body.trim() == memory.body.trim()
            || (it.kind == memory.kind
                && it.sources.iter().any(|source| memory.sources.contains(source)))
    })
}

fn matches_name(memory: &TypedMemory, name: &str, names: &MaskedNames) -> bool {
    let name = name.trim().rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.strip_suffix(".md").unwrap_or(name);
    names.name_of(memory).eq_ignore_ascii_case(name)
        || memory.name.trim().to_lowercase() == name.to_lowercase()
}

/// Returns whether a draft cites a line that the memory does not cite.
fn cites_new_line(draft: &MemoryDraft, memory: &TypedMemory) -> bool {
    draft.citation.addresses().any(|at| !memory.sources.iter().any(|it| it.0 == at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::typed::MemoryType;

    const OLD: &str = "---\nname: Short replies\ndescription: How long\ntype: user\n\
        created: 2026-04-07\nupdated: 2026-04-07\nsources: [\"2026-04-07:5#3fa9\"]\n---\n\nOld.\n";

    fn old() -> TypedMemory {
        let mut old = TypedMemory::parse(Path::new("user_reply-style.md"), OLD).unwrap();
        old.record_body_hash();
        old
    }

    fn draft(topic: &str, lines: &str, updates: Option<&str>) -> MemoryDraft {
        MemoryDraft {
            kind: MemoryType::User,
            topic: topic.to_owned(),
            name: "Replies".to_owned(),
            description: "How".to_owned(),
            statement: "New.".to_owned(),
            why: None,
            how_to_apply: None,
            citation: lines.parse().unwrap(),
            updates: updates.map(str::to_owned),
        }
    }

    #[test]
    fn a_draft_is_matched_to_a_memory_by_name() {
        let (memories, names) = ([old()], MaskedNames::default());
        let known = NamedMemories { memories: &memories, names: &names };
        for (topic, lines, updates, rereads, found, fault_told) in [
            ("reply style", "2026-04-08:1", None, false, true, Some("exists: name it")),
            ("reply style", "2026-04-07:5", None, false, true, None),
            ("other", "2026-04-08:1", None, false, false, None),
            ("other", "2026-04-07:5", None, true, true, None),
            ("other", "2026-04-08:1", Some("user_reply-style"), false, true, None),
            ("other", "2026-04-08:1", Some("../User_Reply-Style.md"), false, true, None),
            ("other", "2026-04-08:1", Some("short replies"), false, true, None),
            ("other", "2026-04-08:1", Some("user_nothing"), false, false, Some("names no memory")),
        ] {
            let draft = draft(topic, lines, updates);
            assert_eq!(target_memory(&draft, known, rereads).is_some(), found, "{draft:?}");
            let fault = draft_fault(&draft, known, rereads);
            assert_eq!(fault.is_some(), fault_told.is_some(), "{draft:?} {fault:?}");
            assert!(fault_told.is_none_or(|it| fault.unwrap().contains(it)), "{draft:?}");
        }
        let mut other = draft("other", "2026-04-08:1", Some("user_reply-style"));
        other.kind = MemoryType::Project;
        assert!(draft_fault(&other, known, false).unwrap().contains("of the type `user`"));
    }

    #[test]
    fn a_newer_draft_with_news_replaces_the_words() {
        let old = old();
        for (lines, body, rereads, changes) in [
            ("2026-04-08:1", "New.", false, true),
            ("2026-04-07:5; 2026-04-08:1", "New.", false, true),
            // It says the same, or cites the same lines, or is older.
            ("2026-04-08:1", "Old.", false, false),
            ("2026-04-07:5", "New.", false, false),
            ("2026-04-07:5", "New.", true, true),
            ("2026-04-06:1", "New.", false, false),
        ] {
            let draft = draft("reply style", lines, None);
            let mut new = old.clone();
            new.file_name = "user_reply-style-2.md".into();
            (new.created, new.updated) =
                (Some(draft.citation.oldest_date()), Some(draft.citation.newest_date()));
            new.body = format!("\n{body}\n");
            let merged = updated_memory(&draft, &new, &old, rereads);
            assert_eq!(merged.is_some(), changes, "{lines} {body}");
            if let Some(merged) = merged {
                assert_eq!(merged.file_name, old.file_name);
                assert_eq!(merged.created, old.created, "{lines}");
            }
        }
    }
}
