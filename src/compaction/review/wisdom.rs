//! Changes of `WISDOM.md`, proposed where a person wants to review each.

use std::collections::BTreeSet;

use super::{
    ReviewProposal,
    file_changes::{PreparedEdit, ReviewError, UserReplacement},
};
use crate::compaction::{
    Compactor,
    journal::{
        commit::{FileWrite, RecordedChanges},
        records,
    },
    proposals::{change::ProposedChange, read_sanitized},
    snapshot::RootSnapshot,
    wisdom::edit::WisdomEdit,
};
use crate::{
    engine::WisdomOp,
    memory::{
        address::Citation,
        period::Period,
        wisdom::{WisdomFile, WisdomLimits},
    },
    store::db::lineage::review::Proposal,
};

impl Compactor<'_> {
    /// Prepares the file for accepted changes.
    pub(super) fn prepare_wisdom_edit<'a>(
        &self,
        changes: Vec<&'a (ReviewProposal, Option<UserReplacement>)>,
        view: &RootSnapshot,
    ) -> Result<PreparedEdit<'a>, ReviewError> {
        let path = self.context.vault.layout().wisdom();
        let (current, mut file) = self.context.read_wisdom(&view.inventory.rules)?;
        for (proposed, own) in &changes {
            self.apply_change(&mut file, proposed, own.as_ref(), view)?;
        }
        let months: BTreeSet<Period> = changes.iter().map(|it| it.0.row.period).collect();
        let open = self.context.lineage.proposals(false)?;
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
        let text = file.print_over(current.as_deref());
        let recorded = RecordedChanges {
            documents: vec![records::of_wisdom(&path, &text)],
            ..RecordedChanges::default()
        };
        Ok(PreparedEdit { file: FileWrite { path, text: Some(text), current }, recorded, changes })
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
            let log = read_sanitized(self.context.vault, stem, &view.inventory.rules)?;
            logs.push(log.ok_or_else(stale)?);
        }
        logs.sort_by(|a, b| a.stem().cmp(b.stem()));
        let wisdom = &self.context.settings.settings.wisdom;
        let caps = WisdomLimits { entries: wisdom.max_entries, chars: wisdom.max_chars };
        let edit = WisdomEdit {
            memories: &view.inventory.memories,
            ..WisdomEdit::new(&logs, &view.inventory.rules, &|_| false)
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
