//! What a person said of proposed changes, where the file that says so is brought back.
//!
//! A change that was accepted and is taken out of its file again waits again: else it would be
//! neither made nor waiting, and for good, for decisions outlive the database. One that is put back
//! waits no longer.

use chrono::{DateTime, Utc};

use super::{UndoPlan, dependencies::REVIEW_TRIGGER};
use crate::{
    compaction::{CompactionError, Compactor, RootSnapshot, review::ProposedChange},
    memory::decision::{DecisionKind, Verdict},
    store::db::lineage::{
        jobs::RunId,
        review::{Proposal, ProposalState},
    },
};

impl Compactor<'_> {
    /// Says of the proposals of files that are brought back what is so then.
    pub(super) fn update_proposals(
        &mut self,
        undoing: &UndoPlan,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let reviewed = undoing.runs.iter().any(|it| it.trigger == REVIEW_TRIGGER);
        let mut settled: Vec<(Proposal, ProposedChange, DecisionKind, ProposalState)> = Vec::new();
        for row in self.lineage.proposals(true)? {
            let Ok(change) = serde_json::from_str::<ProposedChange>(&row.change) else { continue };
            let file = undoing.files.iter().find(|it| it.is_written() && it.path == row.target);
            let Some(file) = file else { continue };
            let rules = &view.inventory.rules;
            let stands = |text: &Option<String>| change.is_applied(&row, text.as_deref(), rules);
            let (before, after) = (stands(&file.current), stands(&file.text));
            let key = change.decision_key(&row.sources);
            // In its place a person may have put words of their own, which are known by no name.
            let own = || {
                let said = view.inventory.decisions.review_verdict(&row.target, &key);
                reviewed && !before && said == Some(Verdict::Refused)
            };
            let (what, state) = match row.state {
                ProposalState::Accepted if (before && !after) || own() => {
                    (DecisionKind::Restored, ProposalState::Open)
                }
                ProposalState::Open if !before && after => {
                    (DecisionKind::Accepted, ProposalState::Accepted)
                }
                _ => continue,
            };
            settled.push((row, change, what, state));
        }
        let settled = settled.iter().map(|(row, change, what, state)| (row, change, *what, *state));
        self.record_change_decisions(&settled.collect::<Vec<_>>(), now)
    }

    /// Begins and ends a run that writes no file: a person said something in `review`. With `lifted`
    /// they took back what they had said last.
    pub(in crate::compaction) fn record_review_run(
        &mut self,
        lifted: bool,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let before: Vec<RunId> = if lifted {
            let runs = self.lineage.last_runs(u32::MAX)?;
            let writes = self.lineage.writes()?;
            let wrote = |run: RunId| writes.iter().any(|it| it.run == Some(run));
            let said = runs.iter().filter(|it| it.trigger == REVIEW_TRIGGER && !wrote(it.id));
            said.map(|it| it.id).collect()
        } else {
            Vec::new()
        };
        let run = self.ensure_run(&mut None, REVIEW_TRIGGER, now)?;
        self.lineage.record_undone_runs(run, &before)?;
        self.end_run(run)
    }
}
