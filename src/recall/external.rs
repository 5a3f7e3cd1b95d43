//! Which bullets of a weekly or monthly file are in the words of external text.
//!
//! The file lists those that memoird wrote. The cited lines are compared as well, so that an older file,
//! or one from a cloned folder, cannot pass off a quote as a decision.

use std::collections::{BTreeSet, HashMap};

use crate::{
    memory::{
        address::{Citation, Stem},
        document::{BulletOwner, Summary},
        log::DailyLog,
    },
    privacy::{DerivedWording, LineText, PrivacyRules},
    store::fs::vault::Vault,
};

/// Returns the lines of these bullets in the file as read: of each the first one.
///
/// Bullets that a person wrote or changed count only if they repeat external text word for word. A log
/// that cannot be read says nothing here; `memoird status` reports it.
pub fn external_bullets(summary: &Summary, vault: &Vault, rules: &PrivacyRules) -> BTreeSet<u32> {
    let mut logs: HashMap<Stem, Option<DailyLog>> = HashMap::new();
    for (_, item, _) in summary.bullets_as_read() {
        for (stem, _) in item.citation.iter().flat_map(Citation::files) {
            if !stem.is_summary() && !logs.contains_key(stem) {
                logs.insert(stem.clone(), vault.read_log(stem).ok().flatten());
            }
        }
    }
    let lines: HashMap<&Stem, Vec<LineText<'_>>> = logs
        .iter()
        .map(|(stem, log)| (stem, log.iter().flat_map(|it| rules.line_origins(it)).collect()))
        .collect();
    let listed = summary.header.as_ref().map_or(&[][..], |it| &it.external);
    let owners = summary.ownership().owners;
    let mut found = BTreeSet::new();
    for ((number, item, _), owner) in summary.bullets_as_read().zip(owners) {
        let files = item.citation.iter().flat_map(Citation::files);
        let cited = files.flat_map(|(stem, cited)| {
            // Line by line of the log: a forged citation may claim a million lines.
            let of_log = lines.get(stem).map_or(&[][..], |it| &it[..]);
            of_log
                .iter()
                .filter(move |it| cited.contains(it.number))
                .map(|it| (it.origin, &*it.text))
        });
        let wording = DerivedWording::of(&item.text, cited);
        let is_external = match owner {
            BulletOwner::Memoird => wording.is_external || listed.contains(&item.hash()),
            BulletOwner::User => wording.is_external && wording.is_verbatim,
        };
        if is_external {
            found.insert(number);
        }
    }
    found
}
