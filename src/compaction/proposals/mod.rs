//! What waits for a person to decide: drafts that the checks kept out, and changes of their files.
//!
//! Steps of a run make proposals, and [`review`](super::review) acts on the verdicts.

pub(crate) mod change;
pub(crate) mod items;
pub(crate) mod memories;
pub(crate) mod wisdom;

use crate::{
    memory::{
        address::{Citation, Stem},
        item::Item,
        log::DailyLog,
    },
    privacy::{self, PrivacyRules, SanitizedLog},
    store::fs::vault::{Vault, VaultError},
};

/// Returns the message for receipts that changes wait.
pub(crate) fn waiting_message(changes: usize) -> String {
    let these = if changes == 1 { "change waits" } else { "changes wait" };
    format!("{changes} {these} for `memoird review`")
}

/// Returns the sanitized view of a log, or of a weekly or monthly file.
pub(crate) fn read_sanitized(
    vault: &Vault,
    stem: &Stem,
    rules: &PrivacyRules,
) -> Result<Option<SanitizedLog>, VaultError> {
    Ok(read_log_or_summary(vault, stem)?.map(|it| privacy::sanitize(&it, rules)))
}

/// Returns whether a person accepted a line that an item cites, or the item itself.
pub(crate) fn is_accepted(item: &Item, vault: &Vault, rules: &PrivacyRules) -> bool {
    let mut files = item.citation.iter().flat_map(Citation::files);
    let cites_accepted = files.any(|(stem, cited)| {
        let log = read_sanitized(vault, stem, rules).ok().flatten();
        let mut lines = log.iter().flat_map(SanitizedLog::lines);
        lines.any(|it| it.is_accepted() && cited.contains(it.number()))
    });
    cites_accepted || items::is_accepted(item, rules)
}

/// Reads a log, or a weekly or monthly file, for [`read_sanitized`].
pub(crate) fn read_log_or_summary(
    vault: &Vault,
    stem: &Stem,
) -> Result<Option<DailyLog>, VaultError> {
    if !stem.is_summary() {
        return vault.read_log(stem);
    }
    let text = vault.read_text(&vault.layout().source_path(stem))?;
    Ok(text.and_then(|it| DailyLog::parse(stem.clone(), it.as_bytes()).ok()))
}
