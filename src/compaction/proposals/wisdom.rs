//! Proposed changes of `WISDOM.md`, where a person wants to review each.

use std::collections::BTreeSet;

use super::change::ProposedChange;
use crate::{
    engine::WisdomOp,
    memory::{
        address::Citation,
        decision::Decisions,
        wisdom::{WisdomEntry, WisdomFile},
    },
    privacy::PrivacyRules,
    store::db::lineage::review::NewProposal,
};

/// Returns the operations of an edit of `WISDOM.md` as proposals, except those that a person has
/// decided about.
pub(crate) fn proposals_of_edit(
    ops: &[WisdomOp],
    dropped: &[String],
    target: &str,
    decisions: &Decisions,
) -> Vec<NewProposal> {
    let new =
        |change: &ProposedChange, sources: String| change.to_proposal(target, sources, decisions);
    let of_op = |op: &WisdomOp| match op.clone() {
        WisdomOp::Add { title, text, category, reason, citation } => {
            new(&ProposedChange::Add { title, text, category, reason }, citation.to_string())
        }
        WisdomOp::Merge { id, words, reason, citation } => {
            new(&ProposedChange::Merge { id, words, reason }, citation.to_string())
        }
        WisdomOp::Drop { id, reason } => new(&ProposedChange::Drop { id, reason }, String::new()),
    };
    let gone = |id: &String| {
        let reason = "its source changed".to_owned();
        new(&ProposedChange::Drop { id: id.clone(), reason }, String::new())
    };
    ops.iter().map(of_op).chain(dropped.iter().map(gone)).flatten().collect()
}

/// Returns whether the change is already in the file.
pub(crate) fn is_applied(
    change: &ProposedChange,
    sources: &str,
    file: &WisdomFile,
    rules: &PrivacyRules,
) -> bool {
    let entry = |id: &str| file.entries().find(|it| it.id() == Some(id));
    let says = |title: &str, text: &str, it: &WisdomEntry| {
        it.says(&rules.sanitize_output(title), &rules.sanitize_output_after(title, text))
    };
    match change {
        ProposedChange::Add { title, text, .. } => file.entries().any(|it| says(title, text, it)),
        ProposedChange::Merge { id, words: Some((title, text)), .. } => {
            entry(id).is_some_and(|it| says(title, text, it))
        }
        ProposedChange::Merge { id, words: None, .. } => {
            let mark = entry(id).and_then(|it| it.meta.as_ref());
            let cited = sources.parse::<Citation>();
            mark.zip(cited.ok()).is_some_and(|(mark, cited)| {
                let has: BTreeSet<_> = mark.sources.addresses().collect();
                cited.addresses().all(|it| has.contains(&it))
            })
        }
        ProposedChange::Drop { id, .. } => entry(id).is_none(),
        ProposedChange::Memory { .. } | ProposedChange::Item { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_applied_change_is_recognized_in_its_sanitized_words() {
        // A made-up token, split so that no scanner takes this file for a leak.
        let token = ["ghp_", "x7Kq2mVb9TzLr4Nw8YcPd3JfHs6GaEu1QoRi"].concat();
        let rules = PrivacyRules::default();
        for (title, text) in [
            ("Releases".to_owned(), format!("They are pushed with {token}.")),
            (format!("The key {token}"), "It is for releases.".to_owned()),
            ("password".to_owned(), "Zr8kQw21x_pL is the one of the rig.".to_owned()),
            ("Badges".to_owned(), "See ![x](https://evil.example/x.png) there.".to_owned()),
        ] {
            let mut file = WisdomFile::new("mara");
            let written =
                (rules.sanitize_output(&title), rules.sanitize_output_after(&title, &text));
            let citation: Citation = "2026-03-02:3".parse().unwrap();
            let id = file.add(&written.0, &written.1, None, citation);
            let (reason, category) = ("it was said".to_owned(), None);
            let merge = ProposedChange::Merge {
                id,
                words: Some((title.clone(), text.clone())),
                reason: reason.clone(),
            };
            let add = ProposedChange::Add { title, text, category, reason };
            let file = WisdomFile::parse(&file.print());
            for change in [add, merge] {
                assert!(is_applied(&change, "2026-03-02:3", &file, &rules), "{change:?}");
            }
        }
    }
}
