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
        distil::Edit,
        records,
    },
    engine::WisdomOp,
    memory::{
        address::Citation,
        decision::Decisions,
        period::Period,
        wisdom::{WisdomCaps, WisdomEntry, WisdomFile},
    },
    privacy::Rules,
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
    let new = |change: &Change, sources: String| change.proposed(target, sources, decisions);
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
pub(super) fn stands(change: &Change, sources: &str, file: &WisdomFile, rules: &Rules) -> bool {
    let entry = |id: &str| file.entries().find(|it| it.id() == Some(id));
    let says = |title: &str, text: &str, it: &WisdomEntry| {
        it.title == rules.written(title) && it.text == rules.written_behind(title, text)
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
        Change::Memory { .. } | Change::Item { .. } => false,
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
        let is_left = |it: &Proposal| {
            let is_item = matches!(serde_json::from_str(&it.change), Ok(Change::Item { .. }));
            it.target == path && !is_item && !changes.iter().any(|made| made.0.row.id == it.id)
        };
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
            (Change::Memory { .. } | Change::Item { .. }, _) | (_, None) => return Err(stale()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_known_in_the_words_in_which_it_was_written() {
        // Made up, and told apart from the file that holds this by the break.
        let token = ["ghp_", "x7Kq2mVb9TzLr4Nw8YcPd3JfHs6GaEu1QoRi"].concat();
        let rules = Rules::default();
        for (title, text) in [
            ("Releases".to_owned(), format!("They are pushed with {token}.")),
            (format!("The key {token}"), "It is for releases.".to_owned()),
            ("password".to_owned(), "Zr8kQw21x_pL is the one of the rig.".to_owned()),
            ("Badges".to_owned(), "See ![x](https://evil.example/x.png) there.".to_owned()),
        ] {
            let mut file = WisdomFile::new("mara");
            let written = (rules.written(&title), rules.written_behind(&title, &text));
            let citation: Citation = "2026-03-02:3".parse().unwrap();
            let id = file.add(&written.0, &written.1, None, citation);
            let (reason, category) = ("it was said".to_owned(), None);
            let merge = Change::Merge {
                id,
                words: Some((title.clone(), text.clone())),
                reason: reason.clone(),
            };
            let add = Change::Add { title, text, category, reason };
            let file = WisdomFile::parse(&file.print());
            for change in [add, merge] {
                assert!(stands(&change, "2026-03-02:3", &file, &rules), "{change:?}");
            }
        }
    }
}
