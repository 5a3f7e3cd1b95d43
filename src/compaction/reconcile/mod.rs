//! What happened to the files since the last run.
//!
//! - [`edits`]: files that people changed or removed, and logs that vanished.
//! - [`deletions`]: what people deleted or wrote back, as decisions.
//! - [`renames`]: logs that have another name now.
//! - [`line_moves`]: citations that follow lines of changed logs and cited summaries.
//! - [`citations`]: the texts of files with their citations rewritten.
//! - [`line_map`], [`changed_lines`], [`source_match`], [`stale`]: where lines went, and what they no
//!   longer support; pure.

pub(crate) mod changed_lines;
pub(crate) mod citations;
mod deletions;
pub(crate) mod edits;
pub(crate) mod line_map;
pub(crate) mod line_moves;
pub(crate) mod renames;
pub(crate) mod source_match;
pub(crate) mod stale;

use chrono::{DateTime, Utc};

use self::{edits::Edits, line_moves::CitationUpdater, renames::RenameUpdater};
use super::{
    context::RunContext,
    error::{CompactionError, JobFailure},
    journal::Journal,
    report::RunReport,
    snapshot::RootSnapshot,
};
use crate::store::{db::lineage::jobs::RunId, fs::vault::VaultError};

/// The state of a run that reconciles; the run begins with the first thing to record.
pub(crate) struct ReconcileRun<'a> {
    pub(crate) run: Option<RunId>,
    pub(crate) trigger: &'a str,
    pub(crate) now: DateTime<Utc>,
    pub(crate) report: RunReport,
}

impl<'a> ReconcileRun<'a> {
    pub(crate) fn new(trigger: &'a str, now: DateTime<Utc>) -> Self {
        Self { run: None, trigger, now, report: RunReport::default() }
    }
}

/// Records what people did to the files, and updates citations.
pub(crate) struct Reconciler<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> Reconciler<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    /// Records what happened, and returns whether any file was written.
    pub(crate) fn reconcile_changes(
        &mut self,
        reconcile_run: &mut ReconcileRun<'_>,
        view: &RootSnapshot,
    ) -> Result<bool, CompactionError> {
        let now = reconcile_run.now;
        let Edits { paths, decided } = self.record_edits(view, now)?;
        let renamed = defer_if_changed(
            RenameUpdater::new(self.context).update_renamed_citations(reconcile_run, view),
        )?;
        let updated = renamed.then(|| self.context.take_snapshot(now)).transpose()?;
        let view = updated.as_ref().unwrap_or(view);
        self.record_vanished_logs(view)?;
        Journal::new(self.context).record_missing_versions(view, now)?;
        let moved = defer_if_changed(CitationUpdater::new(self.context).update_moved_citations(
            reconcile_run,
            view,
            &paths,
        ))?;
        Ok(decided | renamed | moved)
    }

    /// Updates the citations of all generated files, whichever versions of the logs they are about.
    pub(crate) fn check_all_citations(
        &mut self,
        reconcile_run: &mut ReconcileRun<'_>,
        view: &RootSnapshot,
    ) -> Result<(), CompactionError> {
        let all = self.context.lineage.documents()?.into_keys().collect();
        let mut citations = CitationUpdater::new(self.context);
        defer_if_changed(citations.update_moved_citations(reconcile_run, view, &all)).map(drop)
    }
}

/// Leaves a file that is being changed to the next run.
pub(super) fn defer_if_changed(result: Result<bool, JobFailure>) -> Result<bool, CompactionError> {
    match result {
        Ok(any) => Ok(any),
        Err(JobFailure::Critical(error)) => Err(error),
        Err(JobFailure::Vault(VaultError::Changed { .. }) | JobFailure::Unreadable { .. }) => {
            Ok(false)
        }
        Err(JobFailure::Vault(error)) => Err(error.into()),
        Err(_) => Ok(false),
    }
}
