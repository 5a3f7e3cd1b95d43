//! The existing typed memories as a model sees them, and which of them a draft repeats.

use std::collections::BTreeSet;

use crate::compaction::proposals;
use crate::{
    memory::{address::Citation, item::Item, typed::TypedMemory},
    privacy::{self, PrivacyRules},
    store::fs::vault::Vault,
};

/// Returns the memories as a model sees them: without secrets, and without those that look like an
/// attack, unless a person accepted one of their lines.
pub(crate) fn sanitized_memories(
    memories: &[TypedMemory],
    vault: &Vault,
    rules: &PrivacyRules,
) -> Vec<TypedMemory> {
    let shown = |it: &TypedMemory| TypedMemory {
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

/// Returns the ids of the statements that a model may name: the hashes of their words as it sees them.
pub(crate) fn statement_ids(memories: &[TypedMemory], rules: &PrivacyRules) -> BTreeSet<String> {
    let statements = memories.iter().flat_map(TypedMemory::known_statements);
    statements.map(|it| shown_id(&it.item, rules)).collect()
}

/// Returns the id of a statement in requests.
pub(crate) fn shown_id(item: &Item, rules: &PrivacyRules) -> String {
    let text = rules.mask_secrets(&item.text).into_owned();
    Item { text, citation: None }.hash()
}

/// Returns whether an existing memory cites one of the same lines, or says the same.
pub(crate) fn is_duplicate(memory: &TypedMemory, existing: &[TypedMemory]) -> bool {
    existing.iter().any(|it| {
        it.body.trim() == memory.body.trim()
            || (it.kind == memory.kind
                && it.sources.iter().any(|source| memory.sources.contains(source)))
    })
}
