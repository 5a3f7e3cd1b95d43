//! Changes of `WISDOM.md`, proposed where a person wants to review each.

use std::collections::BTreeSet;

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
        wisdom::edit::WisdomEdit,
    },
    engine::WisdomOp,
    memory::{
        address::Citation,
        decision::Decisions,
        period::Period,
        wisdom::{WisdomEntry, WisdomFile, WisdomLimits},
    },
    privacy::PrivacyRules,
    store::db::lineage::review::{NewProposal, Proposal},
};

/// Returns the operations of an edit of `WISDOM.md` as proposals, except those that a person has
/// decided about.
pub(in crate::compaction) fn proposals_of_edit(
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
pub(super) fn is_applied(
    change: &ProposedChange,
    sources: &str,
    file: &WisdomFile,
    rules: &PrivacyRules,
) -> bool {
    let entry = |id: &str| file.entries().find(|it| it.id() == Some(id));
    let says = |title: &str, text: &str, it: &WisdomEntry| {
        it.title == rules.sanitize_output(title)
            && it.text == rules.sanitize_output_after(title, text)
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

impl Compactor<'_> {
    /// Prepares the file for accepted changes.
    pub(super) fn prepare_wisdom_edit<'a>(
        &self,
        changes: Vec<&'a (ReviewProposal, Option<UserReplacement>)>,
        view: &RootSnapshot,
    ) -> Result<PreparedEdit<'a>, ReviewError> {
        let path = self.vault.layout().wisdom();
        let current = self.vault.read_text(&path)?;
        let mut file = match &current {
            Some(text) => WisdomFile::parse(text),
            None => WisdomFile::new(&view.inventory.rules.mask_secrets(&self.settings.agent_name)),
        };
        for (proposed, own) in &changes {
            self.apply_change(&mut file, proposed, own.as_ref(), view)?;
        }
        let months: BTreeSet<Period> = changes.iter().map(|it| it.0.row.period).collect();
        let open = self.lineage.proposals(false)?;
        let is_left = |it: &Proposal| {
            let is_item =
                matches!(serde_json::from_str(&it.change), Ok(ProposedChange::Item { .. }));
            it.target == path && !is_item && !changes.iter().any(|made| made.0.row.id == it.id)
        };
        for month in months {
            // A month is distilled once its last change is decided.
            if !open.iter().any(|it| it.period == month && is_left(it)) {
                file.add_distilled(month);
            }
        }
        let text = file.print();
        let recorded = RecordedChanges {
            documents: vec![records::of_wisdom(&path, &text)],
            ..RecordedChanges::default()
        };
        Ok(PreparedEdit {
            file: FileWrite { path, text: Some(text), current: current },
            recorded,
            changes,
        })
    }

    fn apply_change(
        &self,
        file: &mut WisdomFile,
        proposed: &ReviewProposal,
        own: Option<&UserReplacement>,
        view: &RootSnapshot,
    ) -> Result<(), ReviewError> {
        let stale = || ReviewError::Stale { id: proposed.id.clone() };
        if let Some(UserReplacement { title, text }) = own {
            if let ProposedChange::Merge { id, .. } | ProposedChange::Drop { id, .. } =
                &proposed.change
            {
                file.remove_entry(id);
            }
            file.add_user_entry(title.as_deref().unwrap_or_default(), text);
            return Ok(());
        }
        let citation = proposed.row.sources.parse::<Citation>().ok();
        let op = match (proposed.change.clone(), citation) {
            (ProposedChange::Drop { id, .. }, _) => {
                return if file.remove_entry(&id) { Ok(()) } else { Err(stale()) };
            }
            (ProposedChange::Add { title, text, category, reason }, Some(citation)) => {
                WisdomOp::Add { title, text, category, reason, citation }
            }
            (ProposedChange::Merge { id, words, reason }, Some(citation)) => {
                WisdomOp::Merge { id, words, reason, citation }
            }
            (ProposedChange::Memory { .. } | ProposedChange::Item { .. }, _) | (_, None) => {
                return Err(stale());
            }
        };
        let (WisdomOp::Add { citation, .. } | WisdomOp::Merge { citation, .. }) = &op else {
            return Err(stale());
        };
        let mut logs = Vec::new();
        for (stem, _) in citation.files() {
            let log = read_sanitized(self.vault, stem, &view.inventory.rules)?;
            logs.push(log.ok_or_else(stale)?);
        }
        logs.sort_by(|a, b| a.stem().cmp(b.stem()));
        let wisdom = &self.settings.settings.wisdom;
        let caps = WisdomLimits { entries: wisdom.max_entries, chars: wisdom.max_chars };
        let edit = WisdomEdit {
            is_redistillation: false,
            logs: &logs,
            memories: &view.inventory.memories,
            is_deleted: &|_| false,
            rules: &view.inventory.rules,
            stale_entries: &[],
        };
        let done = edit.apply(file, &[op], caps);
        if done.changed == 0 {
            return Err(stale());
        }
        if let Some(date) = done.newest {
            file.set_last_compacted(date);
        }
        Ok(())
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
