//! What comes before generated files change: recovery, and recording what people did.

use chrono::{DateTime, Utc};

use super::{
    context::RunContext,
    error::CompactionError,
    forget::Forgetter,
    integrity::{
        rebuild::{Rebuilder, has_no_records},
        repair::Repairer,
        vanished_files::refuse_if_vanished,
    },
    journal::Journal,
    reconcile::{ReconcileRun, Reconciler},
    snapshot::RootSnapshot,
};
use crate::store::fs::lock::RunLock;

/// Finishes what a crash interrupted and records what people did, and makes nothing.
pub(crate) struct RunPreparation<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> RunPreparation<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    /// Records what happened to the files since the last run, and makes nothing.
    pub(crate) fn reconcile(
        &mut self,
        trigger: &str,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        refuse_if_vanished(self.context, false)?;
        let busy = RunLock::is_held(&self.context.vault.layout().run_lock())?;
        Journal::new(self.context).recover_unlocked(now, busy)?;
        if !busy && has_no_records(self.context.lineage)? {
            let _lock = self.context.acquire_run_lock(&|| false)?;
            Rebuilder::new(self.context).record_existing_files(now)?;
        }
        if Forgetter::new(self.context).is_forgetting()? {
            // The request names lines by number, which reconciling would shift.
            let _lock = self.context.acquire_run_lock(&|| false)?;
            Forgetter::new(self.context).finish_forgetting(now, false)?;
        }
        self.reconcile_snapshot(trigger, now, false)
    }

    /// Like [`Self::reconcile`], for a caller that holds the run lock and will change generated
    /// files. Returns the files then.
    pub(crate) fn reconcile_locked(
        &mut self,
        trigger: &str,
        now: DateTime<Utc>,
    ) -> Result<RootSnapshot, CompactionError> {
        refuse_if_vanished(self.context, false)?;
        Journal::new(self.context).recover(now)?;
        Rebuilder::new(self.context).record_existing_files(now)?;
        Forgetter::new(self.context).finish_forgetting(now, false)?;
        self.reconcile_snapshot(trigger, now, false)?;
        let view = self.context.take_snapshot(now)?;
        view.refuse_damaged(|_| true)?;
        Ok(view)
    }

    /// `accepted` means that a person accepts doubtful files as they are.
    pub(crate) fn reconcile_snapshot(
        &mut self,
        trigger: &str,
        now: DateTime<Utc>,
        accepted: bool,
    ) -> Result<(), CompactionError> {
        let (mut view, _) = Repairer::new(self.context).take_repaired_snapshot(now)?;
        if accepted {
            view.record.accept_damage();
        }
        let mut reconcile_run = ReconcileRun::new(trigger, now);
        let result = Reconciler::new(self.context).reconcile_changes(&mut reconcile_run, &view);
        if let Some(run) = reconcile_run.run {
            self.context.end_run(run)?;
        }
        result.map(drop)
    }
}
