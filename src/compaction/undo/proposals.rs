//! What happens to reviewed proposals whose file is restored.
//!
//! An accepted change that is undone is open again; otherwise it would be neither made nor
//! proposed, permanently, since decisions outlive the database. A change that is restored is no
//! longer open.

use chrono::{DateTime, Utc};

use super::{UndoPlan, Undoer};
use crate::compaction::{
    context::REVIEW_TRIGGER,
    error::CompactionError,
    proposals::change::ProposedChange,
    review::{ChangeVerdict, record_change_decisions},
    snapshot::RootSnapshot,
};
use crate::{
    memory::decision::{DecisionKind, Verdict},
    store::db::lineage::review::{Proposal, ProposalState},
};

impl Undoer<'_, '_> {
    /// Updates the proposals of restored files.
    pub(super) fn update_proposals(
        &mut self,
        undo_plan: &UndoPlan,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let reviewed = undo_plan.runs.iter().any(|it| it.trigger == REVIEW_TRIGGER);
        let mut verdicts: Vec<(Proposal, ProposedChange, DecisionKind, ProposalState)> = Vec::new();
        for row in self.context.lineage.proposals(true)? {
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
            verdicts.push((row, change, what, state));
        }
        let verdicts = verdicts.iter().map(|(row, change, decision, state)| ChangeVerdict {
            row,
            change,
            decision: *decision,
            state: *state,
        });
        record_change_decisions(self.context, &verdicts.collect::<Vec<_>>(), now)
    }
}
