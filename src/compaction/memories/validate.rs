//! Checks the drafts of an engine: turns one into a typed memory, or says why it is none. Pure.

use crate::compaction::{
    grounding::{self, LineLookup as _, people::LogsWithPeople},
    proposals::items::ExcludedItem,
};
use crate::{
    engine::{MemoryDraft, StatementDraft},
    memory::{
        address::Address,
        item::Item,
        typed::{self, TypedMemory},
        typed_schema,
    },
    privacy::{self, FileNameSecrets, PrivacyRules},
};

/// Turns a draft into a memory file, or rejects it: the cited lines must support its words, and the
/// file must match the schema.
pub(crate) fn validate(
    draft: &MemoryDraft,
    lines: &LogsWithPeople<'_>,
    is_taken: &dyn Fn(&str) -> bool,
    rules: &PrivacyRules,
    secrets: &FileNameSecrets,
) -> Result<TypedMemory, ExcludedItem> {
    let parts = [Some(&draft.statement), draft.why.as_ref(), draft.how_to_apply.as_ref()];
    let words: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    let citation = grounding::without_blank_lines(&draft.citation, lines);
    let item = Item { text: words.join(" "), citation: Some(draft.citation.clone()) };
    let kept_out = |why: String, looks_ill: bool| ExcludedItem {
        text: format!("{}: {}", draft.name, item.text),
        citation: item.citation.clone(),
        reason: why,
        looks_like_attack: looks_ill,
        may_be_accepted: false,
    };
    if let Err(why) = grounding::check(&item, lines) {
        return Err(kept_out(why.to_string(), why.is_suspicious()));
    }
    let line_of = |address: &Address| {
        let line = lines.line(&address.stem, address.line)?;
        Some((address.clone(), line.hash().hex4()))
    };
    let mut memory = TypedMemory {
        file_name: secrets
            .free_file_name(rules, draft.kind, &rules.without_marks(&draft.topic), is_taken)
            .into(),
        kind: draft.kind,
        name: rules.sanitize_output(&draft.name),
        description: rules.sanitize_output_after(&draft.name, &draft.description),
        created: Some(draft.citation.oldest_date()),
        updated: Some(draft.citation.newest_date()),
        sources: citation.addresses().filter_map(|it| line_of(&it)).collect(),
        supersedes: None,
        recorded_body: None,
        recorded_description: None,
        items: Vec::new(),
        by_model: Vec::new(),
        other_keys: crate::memory::frontmatter::OtherKeys::default(),
        body: rules.sanitize_output(&typed::format_body(
            &draft.statement,
            draft.why.as_deref(),
            draft.how_to_apply.as_deref(),
        )),
    };
    memory.record_body_hash();
    match typed_schema::validate(&memory) {
        Ok(()) => Ok(memory),
        Err(why) => Err(kept_out(why.to_string(), false)),
    }
}

/// Rejects a statement that its lines do not support, or whose topic they do not support or which looks like an
/// attack. A topic of an existing memory (`is_known_topic`) need not be in the lines.
pub(crate) fn check_statement(
    draft: &StatementDraft,
    lines: &LogsWithPeople<'_>,
    is_known_topic: bool,
) -> Result<(), ExcludedItem> {
    let item = Item { text: draft.text.clone(), citation: Some(draft.citation.clone()) };
    let check =
        |text: &str| grounding::check(&Item { text: text.to_owned(), ..item.clone() }, lines);
    let mut is_suspicious = check(&item.text).is_err_and(|it| it.is_suspicious());
    let mut faults: Vec<String> = grounding::faults_of(&item.text, check).into_iter().collect();
    if !privacy::suspicious_lines(&draft.topic).is_empty() {
        is_suspicious = true;
        faults.push("`topic` looks like an attack".to_owned());
    } else if !is_known_topic
        && let Err(why) = grounding::check_title(&draft.topic, &draft.citation, lines)
    {
        faults.push(format!("`topic`: {why}"));
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(ExcludedItem {
        text: format!("{}: {}", draft.topic, draft.text),
        citation: item.citation,
        reason: faults.join("; "),
        looks_like_attack: is_suspicious,
        may_be_accepted: false,
    })
}
