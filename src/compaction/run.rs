//! One run: the order of its steps.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::{
    archive::{Archiver, PreviousRun, previous_run, refuse_wrong_clock},
    context::{RunContext, TierRun},
    error::CompactionError,
    forget::Forgetter,
    integrity::{rebuild::Rebuilder, repair::Repairer, vanished_files::refuse_if_vanished},
    journal::{Journal, decision_file::DecisionFile},
    memories::{index_file::refresh_index, run::MemoryWriter},
    plan::{CompactionJob, CompactionPlan, Selection, WaitCause, WaitingPeriod},
    reconcile::{ReconcileRun, Reconciler, line_moves::CitationUpdater},
    report::{DamagedFile, JobReport, RunObserver, RunOutcome, RunReport},
    snapshot::RootSnapshot,
    summary::{draft::CorpusReader, write::SummaryWriter},
    undo::Undoer,
    up_to_date,
    wisdom::edit::WisdomEditor,
};
use crate::{
    memory::{address::Stem, item::Tier, period::Period},
    parallel,
    store::{
        db::lineage::jobs::{JobOutcome, RunId},
        fs::{inventory::FileProblem, private_folder},
    },
};

/// Does what is due, in order.
pub(crate) struct CompactionRun<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

/// A run that has recorded what people did, and has begun no job yet.
pub(crate) struct ReconciledRun<'a> {
    pub(crate) trigger: &'a str,
    pub(crate) now: DateTime<Utc>,
    /// Set if there was anything to record.
    pub(crate) run: Option<RunId>,
    pub(crate) snapshot: RootSnapshot,
    pub(crate) report: RunReport,
}

/// Jobs of one tier, and for days the weeks that are due after them.
#[derive(Clone, Copy)]
pub(crate) struct DueJobs<'a> {
    pub(crate) jobs: &'a [CompactionJob],
    pub(crate) weeks: &'a [CompactionJob],
}

impl<'c, 'a> CompactionRun<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    pub(crate) fn compact(
        &mut self,
        trigger: &str,
        selection: &Selection,
        watcher: &mut dyn RunObserver,
    ) -> Result<RunOutcome, CompactionError> {
        let root = self.context.vault.layout().root().display().to_string();
        let _span =
            tracing::info_span!("run", root, trigger, run = tracing::field::Empty).entered();
        let _lock = self.context.acquire_run_lock(&|| watcher.should_stop())?;
        let now = (self.context.clock)();
        let accepted = selection.accept_missing;
        // What cannot be restricted, `doctor` reports.
        drop(private_folder::restrict_decisions(self.context.vault.layout()));
        let files_before = up_to_date::before_run(self.context.vault, selection);
        let last_run = previous_run(self.context.lineage)?;
        refuse_wrong_clock(last_run, now, accepted)?;
        refuse_if_vanished(self.context, accepted)?;
        Journal::new(self.context).recover(now)?;
        Rebuilder::new(self.context).record_existing_files(now)?;
        self.context.remove_temp_files()?;
        let mut selection = selection.clone();
        let forgotten = Forgetter::new(self.context).finish_forgetting(now, accepted)?;
        selection.rewrite.extend(forgotten);
        let finished = Undoer::new(self.context).finish_undoing(now, accepted)?;
        let view = self.context.take_snapshot(now)?;
        self.refuse_without_source(&view, &selection, now)?;
        let report = RunReport { finished, ..RunReport::default() };
        let begun = ReconciledRun { trigger, now, run: None, snapshot: view, report };
        let begun = self.reconcile(begun, accepted)?;
        let mut done = self.run_due_jobs(begun, &mut selection, watcher)?;
        Forgetter::new(self.context).end_forgetting(&selection.rewrite, &done.plan)?;
        self.archive(&mut done, last_run, &selection, watcher, now)?;
        self.drop_used_replies(&selection, &done.plan)?;
        self.context.refresh_wisdom_block()?;
        done.report.held = damaged_files(&done.snapshot);
        done.report.unread = unread_files(&done);
        done.report.pruned = Journal::new(self.context).prune(now)?;
        if let Some(before) = files_before {
            let RunContext { vault, settings, .. } = *self.context;
            let engine = self.context.engine.id();
            up_to_date::after_run(
                &before,
                vault,
                settings,
                engine,
                selection.open_week,
                &done,
                now,
            );
        }
        Ok(done)
    }

    /// Returns an error if a forced period has no source.
    fn refuse_without_source(
        &self,
        view: &RootSnapshot,
        selection: &Selection,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        match self.context.plan(view, selection, now).without_source {
            Some((tier, period)) => Err(CompactionError::NoSource { tier, period }),
            None => Ok(()),
        }
    }

    /// Restores damaged files, joins late logs, and records what people did. `accepted` means that
    /// a person accepts doubtful files as they are.
    fn reconcile<'t>(
        &mut self,
        begun: ReconciledRun<'t>,
        accepted: bool,
    ) -> Result<ReconciledRun<'t>, CompactionError> {
        let ReconciledRun { trigger, now, snapshot: mut view, mut report, .. } = begun;
        report.put_back = Repairer::new(self.context).restore_damaged_files(&view, now)?;
        if !report.put_back.is_empty() {
            view = self.context.take_snapshot(now)?;
        }
        if Archiver::new(self.context).join_late_logs(&view, now, &mut report)? {
            view = self.context.take_snapshot(now)?;
        }
        if accepted {
            view.record.accept_damage();
        }
        let mut run = ReconcileRun { report, ..ReconcileRun::new(trigger, now) };
        if Reconciler::new(self.context).reconcile_changes(&mut run, &view)? {
            view = self.context.take_snapshot(now)?;
        }
        let ReconcileRun { run, report, .. } = run;
        Ok(ReconciledRun { trigger, now, run, snapshot: view, report })
    }

    /// Does the jobs that are due and selected, tier by tier, and ends the run.
    pub(crate) fn run_due_jobs(
        &mut self,
        begun: ReconciledRun<'_>,
        selection: &mut Selection,
        watcher: &mut dyn RunObserver,
    ) -> Result<RunOutcome, CompactionError> {
        let ReconciledRun { trigger, now, mut run, snapshot: mut view, mut report } = begun;
        let mut corpus = CorpusReader::default();
        let jobs = self.context.plan(&view, selection, now).jobs;
        if self.create_key_if_needed(&jobs, &view)? {
            view = self.context.take_snapshot(now)?;
        }
        for tier in Tier::ALL {
            let mut jobs = self.context.plan(&view, selection, now).jobs;
            jobs.retain(|job| job.tier == tier && !has_failed_day(job, &report));
            if jobs.is_empty() {
                continue;
            }
            Undoer::new(self.context).lift_refusals(&jobs, &view, now)?;
            let run = self.context.ensure_run(&mut run, trigger, now)?;
            let before = report.jobs.len();
            let weeks = self.weeks_due_after_days(&jobs, &view, selection, now);
            let due = DueJobs { jobs: &jobs, weeks: &weeks };
            let mut step = TierRun { run, view: &view, watcher, report: &mut report };
            self.run_tier(due, &mut corpus, &mut step)?;
            // A file is not done if only its citations were updated.
            selection.rewrite.retain(|&(tier, period)| !report.is_done_after(before, tier, period));
            view = self.context.take_snapshot(now)?;
            let mut citations = CitationUpdater::new(self.context);
            if citations.update_citations_after_tier(run, trigger, now, &mut report, &view)? {
                view = self.context.take_snapshot(now)?;
            }
        }
        if let Some(path) = refresh_index(self.context, run, &view)? {
            report.add_index(path);
        }
        report.sort_by_calendar();
        if let Some(run) = run {
            self.context.end_run(run)?;
        }
        let plan = self.context.plan(&view, selection, (self.context.clock)());
        Ok(RunOutcome { report, snapshot: view, plan })
    }

    /// Does the jobs of one tier.
    fn run_tier(
        &mut self,
        due: DueJobs<'_>,
        corpus: &mut CorpusReader,
        step: &mut TierRun<'_>,
    ) -> Result<(), CompactionError> {
        match due.jobs.first().map(|it| it.tier) {
            None => Ok(()),
            Some(Tier::Extract) => {
                MemoryWriter::new(self.context).run_jobs(due.jobs, due.weeks, step)
            }
            Some(Tier::Weekly | Tier::Monthly) => {
                SummaryWriter::new(self.context).run_jobs(due.jobs, corpus, step)
            }
            Some(Tier::Wisdom) => WisdomEditor::new(self.context).run_jobs(due.jobs, step),
        }
    }

    /// Creates the key of a root that has none, if a log of these jobs holds a secret whose mark
    /// needs it.
    fn create_key_if_needed(
        &self,
        jobs: &[CompactionJob],
        view: &RootSnapshot,
    ) -> Result<bool, CompactionError> {
        if view.inventory.decisions.has_key() {
            return Ok(false);
        }
        let names: BTreeSet<&String> = jobs.iter().flat_map(|it| it.inputs.keys()).collect();
        let layout = self.context.vault.layout();
        let paths: Vec<String> = names
            .iter()
            .filter_map(|it| match (it.parse::<Stem>(), it.parse::<Period>()) {
                (Ok(stem), _) if view.inventory.logs.contains_key(&stem) => {
                    Some(view.inventory.logs[&stem].path.clone())
                }
                (_, Ok(period)) => Some(layout.summary(period)),
                _ => None,
            })
            .collect();
        let rules = &view.inventory.rules;
        let needs_key = |path: &String| {
            let text = self.context.vault.read_text(path).ok().flatten();
            text.is_some_and(|it| rules.needs_key(&it))
        };
        let is_needed = parallel::map(&paths, needs_key).contains(&true);
        if is_needed {
            DecisionFile::new(self.context).create_key()?;
        }
        Ok(is_needed)
    }

    /// Returns the weeks that are due after these days, for an engine that reads both together.
    fn weeks_due_after_days(
        &self,
        jobs: &[CompactionJob],
        view: &RootSnapshot,
        selection: &Selection,
        now: DateTime<Utc>,
    ) -> Vec<CompactionJob> {
        let are_days = jobs.first().is_some_and(|it| it.tier == Tier::Extract);
        if !are_days || !self.context.engine.is_model() {
            return Vec::new();
        }
        let mut weeks = self.context.plan(view, selection, now).jobs;
        weeks.retain(|it| it.tier == Tier::Weekly);
        weeks
    }

    /// Archives old logs after a run of all tiers.
    fn archive(
        &mut self,
        done: &mut RunOutcome,
        last_run: Option<PreviousRun>,
        selection: &Selection,
        watcher: &dyn RunObserver,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let RunOutcome { report, snapshot, plan } = done;
        if selection.is_whole()
            && Archiver::new(self.context).archive(last_run, snapshot, watcher, report)?
        {
            *snapshot = self.context.take_snapshot(now)?;
            *plan = self.context.plan(snapshot, selection, (self.context.clock)());
        }
        Ok(())
    }

    /// Drops the replies of the model if nothing is left to do.
    fn drop_used_replies(
        &self,
        selection: &Selection,
        plan: &CompactionPlan,
    ) -> Result<(), CompactionError> {
        // What waits for a log to be quiet, or for a person, is done later.
        let comes = |it: &WaitingPeriod| {
            matches!(it.cause, WaitCause::BeingWritten(_) | WaitCause::Damaged(_))
        };
        if !selection.is_whole() || !plan.jobs.is_empty() || plan.waiting.iter().any(comes) {
            return Ok(());
        }
        self.context.engine.on_idle();
        // Nobody asks for them again: their work is done, or changed. If work is stuck, a person
        // may want to read the reply.
        if plan.waiting.iter().any(|it| matches!(it.cause, WaitCause::Stuck(_))) {
            self.context.vault.remove_used_replies()?;
        } else {
            self.context.vault.remove_replies()?;
        }
        Ok(())
    }
}

/// Returns the files that wait for a person.
fn damaged_files(view: &RootSnapshot) -> Vec<DamagedFile> {
    let damaged = view.record.damaged.iter();
    damaged.map(|(path, why)| DamagedFile { path: path.clone(), reason: why.to_string() }).collect()
}

/// Returns the files that were not read and do not wait for a person. A log of the future was read, and waits.
fn unread_files(done: &RunOutcome) -> Vec<DamagedFile> {
    let is_held = |path: &str| done.report.held.iter().any(|it| it.path == path);
    let unread = done.snapshot.inventory.problems.iter().filter(|it| !is_held(&it.path));
    let file = |it: &FileProblem| DamagedFile { path: it.path.clone(), reason: it.reason.clone() };
    unread.map(file).collect()
}

/// Returns whether a day of the week failed in this run: its facts would be missing from the
/// wisdom, and the week would not be due again when the day succeeds.
fn has_failed_day(job: &CompactionJob, report: &RunReport) -> bool {
    let failed = |it: &&JobReport| {
        it.tier == Tier::Extract.name() && it.outcome == JobOutcome::Failed.name()
    };
    let days = report.jobs.iter().filter(failed).filter_map(|it| it.period.parse::<Period>().ok());
    let mut days = days.map(Period::first);
    let within = job.period.first()..job.period.end();
    job.tier == Tier::Weekly && days.any(|day| within.contains(&day))
}
