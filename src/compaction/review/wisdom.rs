//! Changes of `WISDOM.md` that are proposed where a person wants to see each first.

use std::collections::BTreeSet;

use super::{
    Proposed,
    changes::{Change, Own, Ready, ReviewError},
    read_source,
};
use crate::{
    compaction::{
        Compactor, View,
        commit::{NewFile, Recorded},
        lasting::Edit,
        records,
    },
    engine::WisdomOp,
    memory::{
        address::Citation,
        decision::Decisions,
        period::Period,
        wisdom::{WisdomCaps, WisdomEntry, WisdomFile},
    },
    privacy::inert,
    store::lineage::review::{NewProposal, Proposal},
};

/// Returns what an edit of `WISDOM.md` would have done, as changes to be proposed; without those that
/// a person has decided about before.
pub(in crate::compaction) fn changes_of(
    ops: &[WisdomOp],
    dropped: &[String],
    target: &str,
    decisions: &Decisions,
) -> Vec<NewProposal> {
    let new = |change: &Change, sources: String| {
        let is_settled = decisions.reviewed(target, &change.key(&sources)).is_some();
        (!is_settled).then(|| NewProposal {
            target: target.to_owned(),
            change: serde_json::json!(change).to_string(),
            sources,
        })
    };
    let of_op = |op: &WisdomOp| match op.clone() {
        WisdomOp::Add { title, text, category, reason, citation } => {
            new(&Change::Add { title, text, category, reason }, citation.to_string())
        }
        WisdomOp::Merge { id, words, reason, citation } => {
            new(&Change::Merge { id, words, reason }, citation.to_string())
        }
        WisdomOp::Drop { id, reason } => new(&Change::Drop { id, reason }, String::new()),
    };
    let gone = |id: &String| {
        let reason = "its source changed".to_owned();
        new(&Change::Drop { id: id.clone(), reason }, String::new())
    };
    ops.iter().map(of_op).chain(dropped.iter().map(gone)).flatten().collect()
}

/// Returns whether what was proposed stands in the file.
pub(super) fn stands(change: &Change, sources: &str, file: &WisdomFile) -> bool {
    let entry = |id: &str| file.entries().find(|it| it.id() == Some(id));
    let says = |title: &str, text: &str, it: &WisdomEntry| {
        it.title == inert(title) && it.text == inert(text)
    };
    match change {
        Change::Add { title, text, .. } => file.entries().any(|it| says(title, text, it)),
        Change::Merge { id, words: Some((title, text)), .. } => {
            entry(id).is_some_and(|it| says(title, text, it))
        }
        Change::Merge { id, words: None, .. } => {
            let mark = entry(id).and_then(|it| it.mark.as_ref());
            let cited = sources.parse::<Citation>();
            mark.zip(cited.ok()).is_some_and(|(mark, cited)| {
                let has: BTreeSet<_> = mark.sources.addresses().collect();
                cited.addresses().all(|it| has.contains(&it))
            })
        }
        Change::Drop { id, .. } => entry(id).is_none(),
        Change::Memory { .. } => false,
    }
}

impl Compactor<'_> {
    /// Makes ready what is written when these changes are made.
    pub(super) fn edit_wisdom<'a>(
        &self,
        changes: Vec<&'a (Proposed, Option<Own>)>,
        view: &View,
    ) -> Result<Ready<'a>, ReviewError> {
        let path = self.vault.layout().wisdom();
        let standing = self.vault.read_text(&path)?;
        let mut file = match &standing {
            Some(text) => WisdomFile::parse(text),
            None => WisdomFile::new(&view.inventory.rules.shown(&self.settings.agent_name)),
        };
        for (proposed, own) in &changes {
            self.make_change(&mut file, proposed, own.as_ref(), view)?;
        }
        let months: BTreeSet<Period> = changes.iter().map(|it| it.0.row.period).collect();
        let open = self.lineage.proposals(false)?;
        let is_left =
            |it: &Proposal| it.target == path && !changes.iter().any(|made| made.0.row.id == it.id);
        for month in months {
            // The last word on a month says that it is distilled.
            if !open.iter().any(|it| it.period == month && is_left(it)) {
                file.add_distilled(month);
            }
        }
        let text = file.print();
        let recorded =
            Recorded { documents: vec![records::of_wisdom(&path, &text)], ..Recorded::default() };
        Ok(Ready { file: NewFile { path, text: Some(text), standing }, recorded, changes })
    }

    fn make_change(
        &self,
        file: &mut WisdomFile,
        proposed: &Proposed,
        own: Option<&Own>,
        view: &View,
    ) -> Result<(), ReviewError> {
        let stale = || ReviewError::Stale { id: proposed.id.clone() };
        if let Some(Own { title, text }) = own {
            if let Change::Merge { id, .. } | Change::Drop { id, .. } = &proposed.change {
                file.drop_entry(id);
            }
            file.add_own(title.as_deref().unwrap_or_default(), text);
            return Ok(());
        }
        let citation = proposed.row.sources.parse::<Citation>().ok();
        let op = match (proposed.change.clone(), citation) {
            (Change::Drop { id, .. }, _) => {
                return if file.drop_entry(&id) { Ok(()) } else { Err(stale()) };
            }
            (Change::Add { title, text, category, reason }, Some(citation)) => {
                WisdomOp::Add { title, text, category, reason, citation }
            }
            (Change::Merge { id, words, reason }, Some(citation)) => {
                WisdomOp::Merge { id, words, reason, citation }
            }
            (Change::Memory { .. }, _) | (_, None) => return Err(stale()),
        };
        let (WisdomOp::Add { citation, .. } | WisdomOp::Merge { citation, .. }) = &op else {
            return Err(stale());
        };
        let mut logs = Vec::new();
        for (stem, _) in citation.files() {
            let log = read_source(self.vault, stem, &view.inventory.rules)?;
            logs.push(log.ok_or_else(stale)?);
        }
        logs.sort_by(|a, b| a.stem().cmp(b.stem()));
        let wisdom = &self.settings.settings.wisdom;
        let caps = WisdomCaps { entries: wisdom.max_entries, chars: wisdom.max_chars };
        let edit = Edit {
            late: false,
            logs: &logs,
            memories: &view.inventory.memories,
            is_deleted: &|_| false,
            rules: &view.inventory.rules,
            shaken: &[],
        };
        let done = edit.apply(file, &[op], caps);
        if done.changed == 0 {
            return Err(stale());
        }
        if let Some(date) = done.newest {
            file.set_compacted(date);
        }
        Ok(())
    }
}
