//! What happens to reviewed proposals whose file is restored.
//!
//! An accepted change that is undone is open again; otherwise it would be neither made nor
//! proposed, permanently, since decisions outlive the database. A change that is restored is no
//! longer open.

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
    /// Updates the proposals of restored files.
    pub(super) fn update_proposals(
        &mut self,
        undo_plan: &UndoPlan,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let reviewed = undo_plan.runs.iter().any(|it| it.trigger == REVIEW_TRIGGER);
        let mut settled: Vec<(Proposal, ProposedChange, DecisionKind, ProposalState)> = Vec::new();
        for row in self.lineage.proposals(true)? {
            let Ok(change) = serde_json::from_str::<ProposedChange>(&row.change) else { continue };
            let file = undo_plan.files.iter().find(|it| it.is_written() && it.path == row.target);
            let Some(file) = file else { continue };
            let rules = &view.inventory.rules;
            let stands = |text: &Option<String>| change.is_applied(&row, text.as_deref(), rules);
            let (before, after) = (stands(&file.current), stands(&file.text));
            let key = change.decision_key(&row.sources);
            // A person may have replaced it with words of their own, which have no name to look
            // for.
            let own = || {
                let verdict = view.inventory.decisions.review_verdict(&row.target, &key);
                reviewed && !before && verdict == Some(Verdict::Refused)
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

    /// Records a run without files: a person said something in `review`. With `lifted` they
    /// withdrew what they said last.
    pub(in crate::compaction) fn record_review_run(
        &mut self,
        lifted: bool,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let before: Vec<RunId> = if lifted {
            let runs = self.lineage.last_runs(u32::MAX)?;
            let writes = self.lineage.writes()?;
            let wrote = |run: RunId| writes.iter().any(|it| it.run == Some(run));
            let reviews = runs.iter().filter(|it| it.trigger == REVIEW_TRIGGER && !wrote(it.id));
            reviews.map(|it| it.id).collect()
        } else {
            Vec::new()
        };
        let run = self.ensure_run(&mut None, REVIEW_TRIGGER, now)?;
        self.lineage.record_undone_runs(run, &before)?;
        self.end_run(run)
    }
}
