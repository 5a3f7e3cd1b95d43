//! The flow: what is due is planned, drafted, checked, written, and recorded.
//!
//! ```text
//! vault (scan) → plan → engine (draft) → ground → vault (write) → lineage (record)
//! ```
//!
//! `Compactor::compact` is the one screen that knows the order. A pass makes one tier after the
//! other, and looks at the files again before each, since each rests on what the one before wrote.
//!
//! - [`plan`]: what is due; pure.
//! - `edits`: what people did to files since the last pass, and lines that moved.
//! - `draft`, [`write`]: a week or a month; drafts are made side by side.
//! - `orphaned_items`: what a file says of logs that are gone.
//! - `run`: typed memories and `MEMORY.md`; `seen_lines` lines are read once, what is
//!   proposed is `validate`ed or kept out, and what is `memory_match` is said anew in its own file.
//! - `edit`: the wisdom file from months.
//! - `renames`: logs that stand under another name.
//! - [`correct`]: a person's words in the place of an item's, here and above.
//! - `stale`: memories and entries whose lines were changed.
//! - [`grounding`], `hedge`, `user_edits`, `line_map`, `source_match`: the checks and merges that those use; pure.
//! - [`forget`]: what a person wants gone, and all that derives from it.
//! - [`up_to_date`]: whether a pass would find nothing to do, told without one.
//! - `vanished_files`: the breaker for files that are gone in numbers.
//! - [`archive`]: old logs move away once all that is made of them stands.
//! - `commit`: intents, files, and one transaction.
//! - `history`: what the history does not know yet, and what it lets go of.
//! - `records`: what of each file the lineage keeps, so that a pass and a rebuild agree.
//! - `rebuild`: the database anew from the files.
//! - `check`, `repair`: whether all of it is as it was written, and what is done if not.
//! - [`redact`]: secrets that stand where none should.
//! - [`review`]: what waits for a person, and what comes of their word.
//! - [`undo`]: a run taken back.
//! - `completeness`: whether amounts and days of the lines stand in the items; pure.
//! - [`preview`]: what would be asked of a model.
//! - [`report`]: what a pass did.

pub mod archive;
pub mod correct;
pub mod forget;
pub mod grounding;
pub mod integrity;
pub mod journal;
mod memories;
pub mod plan;
pub mod preview;
pub mod reconcile;
pub mod redact;
pub mod report;
pub mod review;
pub mod summary;
#[cfg(test)]
mod tests;
pub mod undo;
pub mod up_to_date;
mod wisdom;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use chrono::{DateTime, Duration, Utc};

use self::{
    plan::{
        CompactionJob, CompactionPlan, PlanSettings, RecordedState, Selection, WaitCause,
        WaitingPeriod,
    },
    report::{DamagedFile, JobReport, RunReport},
};
use crate::{
    config::{duration::Span, root::RootSettings},
    engine::{Engine, EngineError},
    memory::{address::Stem, hash::ContentHash, item::Tier, period::Period, wisdom::WisdomFile},
    model::{CallError, WorkOutcome, failure::ErrorClass},
    parallel,
    store::{
        db::lineage::{
            Lineage, LineageError,
            jobs::{JobId, JobOutcome, JobRow, JobStage, NewJob, NewRun, Receipt, RunId},
            record::ScannedFile,
            review::QuarantineScope,
        },
        fs::{
            inventory::{FileStat, Inventory},
            lock::{LockError, RunLock, WriteLock},
            vault::{Vault, VaultError, scan::KnownFile},
        },
    },
};

/// How often a job may fail before it waits for a person or for changed input.
const ATTEMPTS_MAX: u32 = 3;

/// Where a pass works, and with what.
pub struct Compactor<'a> {
    /// The files.
    pub vault: &'a Vault,
    /// The database.
    pub lineage: &'a mut Lineage,
    /// What drafts.
    pub engine: &'a dyn Engine,
    /// What the root is run with.
    pub settings: &'a RootSettings,
    /// The time, asked at the start of a pass and for each receipt.
    pub clock: &'a dyn Fn() -> DateTime<Utc>,
}

/// Who watches a pass, and may stop it between two jobs.
pub trait RunObserver {
    /// A job begins; `left` are to come after it in this tier.
    fn job_started(&mut self, _job: &CompactionJob, _left: usize) {}
    /// A job has ended.
    fn job_finished(&mut self, _report: &JobReport) {}
    /// Whether to stop before the next job.
    fn should_stop(&self) -> bool {
        false
    }
}

/// Nobody watches.
impl RunObserver for () {}

/// What ends a pass before its time. A job that fails alone does not.
#[derive(Debug, thiserror::Error)]
pub enum CompactionError {
    /// The memory folder cannot be listed, or nothing can be written in it.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The database cannot be read or written.
    #[error(transparent)]
    Lineage(#[from] LineageError),
    /// Another process keeps the root locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// There was a memory folder, and now there is none: unmounted, moved, or renamed.
    #[error("the memory folder `{}` is gone, and {logs} logs were known in it; nothing was done", path.display())]
    FolderMissing {
        /// The folder.
        path: PathBuf,
        /// How many logs the database knows.
        logs: usize,
    },
    /// What a person wants forgotten cannot be taken out now.
    #[error("forgetting is not finished: {0}; do the same `memoird forget` again")]
    ForgetUnfinished(String),
    /// So many known files are gone that a person is asked.
    #[error("{0}; nothing was done")]
    FilesVanished(crate::compaction::integrity::vanished_files::VanishedFiles),
    /// A generated file is not as it was left, and only a person can say whether that is meant.
    #[error("{path} {}; nothing was done", why.description())]
    Damaged {
        /// The file, relative to the root.
        path: String,
        /// What is odd.
        why: crate::compaction::integrity::damage::Damage,
    },
    /// What is to be made by force has no source.
    #[error(
        "no source of {tier} {period} is there, so it cannot be made; what was made of it stays"
    )]
    NoSource {
        /// What was asked for.
        tier: Tier,
        /// For which time.
        period: Period,
    },
    /// What people decided cannot be read, or is gone though it was there.
    #[error("what was decided is not known: {why}; nothing was done")]
    DecisionsUnreadable {
        /// What is wrong with the file.
        why: String,
    },
    /// The system gives no random bytes for the key of the decisions.
    #[error("the system gives no random bytes")]
    NoRandomness(#[source] std::io::Error),
}

/// Why one job failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobFailure {
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine fell over. Its words may quote a log, so they are not kept.
    #[error("the engine stopped with an internal error; please report it")]
    EnginePanicked,
    /// The sources were changed since the plan was made.
    #[error("{0} changed while it was read; it will be looked at again")]
    SourceChanged(String),
    /// No item stood the check.
    #[error("none of {0} drafted items stood the check against their lines")]
    AllRejected(usize),
    /// A file that is there cannot be read as what it should be.
    #[error("{path}: {reason}")]
    Unreadable { path: String, reason: String },
    /// Ends the pass.
    #[error(transparent)]
    Critical(#[from] CompactionError),
}

impl JobFailure {
    /// Returns whether it is not the work's fault: a person was faster, nothing can be written just now,
    /// or the model cannot be had.
    fn is_transient(&self) -> bool {
        match self {
            Self::SourceChanged(_) | Self::Vault(VaultError::Changed { .. }) => true,
            Self::Vault(error) => error.is_write_failure(),
            Self::Engine(EngineError::Model(error)) => error.class() != ErrorClass::Request,
            _ => false,
        }
    }
}

impl From<LineageError> for JobFailure {
    fn from(error: LineageError) -> Self {
        Self::Critical(error.into())
    }
}

impl From<LockError> for JobFailure {
    fn from(error: LockError) -> Self {
        Self::Critical(error.into())
    }
}

/// The files and the record at one moment.
#[derive(Debug)]
pub struct RootSnapshot {
    /// What stands in the root.
    pub inventory: Inventory,
    /// What the database knows beside it.
    pub record: RecordedState,
}

impl RootSnapshot {
    /// Stops where a person is to say first what a file is: to change and record it would take what
    /// is missing there for deleted.
    ///
    /// # Errors
    ///
    /// Returns `CompactionError::Damaged` for the first such file that is `concerned`.
    pub fn refuse_damaged(&self, concerned: impl Fn(&str) -> bool) -> Result<(), CompactionError> {
        match self.record.damaged.iter().find(|(path, _)| concerned(path)) {
            Some((path, why)) => Err(CompactionError::Damaged { path: path.clone(), why: *why }),
            None => Ok(()),
        }
    }
}

/// What a pass did, and what it left behind.
#[derive(Debug)]
pub struct RunOutcome {
    /// The jobs.
    pub report: RunReport,
    /// The files and the record after the last of them.
    pub snapshot: RootSnapshot,
    /// What is due then.
    pub plan: CompactionPlan,
}

/// A pass that has taken notice of what people did, and has folded nothing yet.
struct ReconciledRun<'a> {
    trigger: &'a str,
    now: DateTime<Utc>,
    /// Begun already, if there was anything to record.
    run: Option<RunId>,
    snapshot: RootSnapshot,
    report: RunReport,
}

/// Jobs of one tier, and for days the weeks that are due after them.
#[derive(Clone, Copy)]
struct DueJobs<'a> {
    jobs: &'a [CompactionJob],
    weeks: &'a [CompactionJob],
}

/// What a job made, before its receipt is written.
pub(crate) struct JobOutput {
    receipt: Receipt,
    paths: Vec<String>,
}

/// Returns whether a day of a week failed in this pass: what lasts of it would be missing from the
/// wisdom above the week, which would not be due again when the day succeeds.
fn has_failed_day(job: &CompactionJob, report: &RunReport) -> bool {
    let failed = |it: &&JobReport| {
        it.tier == Tier::Extract.name() && it.outcome == JobOutcome::Failed.name()
    };
    let days = report.jobs.iter().filter(failed).filter_map(|it| it.period.parse::<Period>().ok());
    let mut days = days.map(Period::first);
    let within = job.period.first()..job.period.end();
    job.tier == Tier::Weekly && days.any(|day| within.contains(&day))
}

impl Compactor<'_> {
    /// Does all that is due and selected.
    ///
    /// # Errors
    ///
    /// Returns what stopped the pass; each job that was done is done.
    pub fn compact(
        &mut self,
        trigger: &str,
        selection: &Selection,
        watcher: &mut dyn RunObserver,
    ) -> Result<RunOutcome, CompactionError> {
        let root = self.vault.layout().root().display().to_string();
        let _span =
            tracing::info_span!("run", root, trigger, run = tracing::field::Empty).entered();
        let _alone = self.acquire_run_lock(&|| watcher.should_stop())?;
        let now = (self.clock)();
        let before = up_to_date::before_run(self.vault, selection);
        self.refuse_if_vanished(selection.accept_missing)?;
        self.recover(now)?;
        self.record_existing_files(now)?;
        self.remove_temp_files()?;
        let last_run = archive::previous_run(self.lineage)?;
        let mut selection = selection.clone();
        selection.rewrite.extend(self.finish_forgetting(now, selection.accept_missing)?);
        let finished = self.finish_undoing(now, selection.accept_missing)?;
        let mut view = self.take_snapshot(now)?;
        if let Some((tier, period)) = self.plan(&view, &selection, now).without_source {
            return Err(CompactionError::NoSource { tier, period });
        }
        let put_back = self.restore_damaged_files(&view, now)?;
        if !put_back.is_empty() {
            view = self.take_snapshot(now)?;
        }
        let mut report = RunReport { put_back, finished, ..RunReport::default() };
        if self.join_late_logs(&view, now, &mut report)? {
            view = self.take_snapshot(now)?;
        }
        if selection.accept_missing {
            view.record.damaged.clear();
        }
        let mut noticing = crate::compaction::reconcile::edits::ReconcileRun {
            report,
            ..crate::compaction::reconcile::edits::ReconcileRun::new(trigger, now)
        };
        if self.reconcile_changes(&mut noticing, &view)? {
            view = self.take_snapshot(now)?;
        }
        let crate::compaction::reconcile::edits::ReconcileRun { run, report, .. } = noticing;
        let begun = ReconciledRun { trigger, now, run, snapshot: view, report };
        let mut passed = self.run_due_jobs(begun, &mut selection, watcher)?;
        let RunOutcome { report, snapshot: view, plan } = &mut passed;
        self.end_forgetting(&selection.rewrite, plan)?;
        if selection.is_whole() && self.archive(last_run, view, watcher, report)? {
            *view = self.take_snapshot(now)?;
            *plan = self.plan(view, &selection, (self.clock)());
        }
        // What waits for a log to be quiet, or for a person to say what a file is, comes yet.
        let comes = |it: &WaitingPeriod| {
            matches!(it.cause, WaitCause::BeingWritten(_) | WaitCause::Damaged(_))
        };
        let nothing_is_due = plan.jobs.is_empty() && !plan.waiting.iter().any(comes);
        if selection.is_whole() && nothing_is_due {
            self.engine.on_idle();
            // Nobody is to ask for them again: the work of each is done, or became another. Where work
            // is stuck a person may want to see what the model said.
            if plan.waiting.iter().any(|it| matches!(it.cause, WaitCause::Stuck(_))) {
                self.vault.remove_used_replies()?;
            } else {
                self.vault.remove_replies()?;
            }
        }
        let held = view.record.damaged.iter();
        report.held = held
            .map(|(path, why)| DamagedFile { path: path.clone(), reason: why.to_string() })
            .collect();
        report.pruned = self.prune(now)?;
        if let Some(before) = before {
            let (settings, open_week) = (self.settings, selection.open_week);
            up_to_date::after_run(
                &before,
                (self.vault, settings),
                self.engine.id(),
                open_week,
                &passed,
                now,
            );
        }
        Ok(passed)
    }

    /// Makes what is due and selected, tier by tier, and ends the run.
    fn run_due_jobs(
        &mut self,
        begun: ReconciledRun<'_>,
        selection: &mut Selection,
        watcher: &mut dyn RunObserver,
    ) -> Result<RunOutcome, CompactionError> {
        let ReconciledRun { trigger, now, mut run, snapshot: mut view, mut report } = begun;
        let mut corpus = crate::compaction::summary::draft::CorpusReader::default();
        if self.create_key_if_needed(&self.plan(&view, selection, now).jobs, &view)? {
            view = self.take_snapshot(now)?;
        }
        for tier in Tier::ALL {
            let mut jobs = self.plan(&view, selection, now).jobs;
            jobs.retain(|job| job.tier == tier && !has_failed_day(job, &report));
            if jobs.is_empty() {
                continue;
            }
            self.lift_refusals(&jobs, &view, now)?;
            let run = self.ensure_run(&mut run, trigger, now)?;
            let before = report.jobs.len();
            let weeks = self.weeks_due_after_days(&jobs, &view, selection, now);
            let due = DueJobs { jobs: &jobs, weeks: &weeks };
            self.run_tier(run, due, &view, &mut corpus, watcher, &mut report)?;
            // A file in which only citations followed their lines was not made again.
            let again = &mut selection.rewrite;
            again.retain(|&(tier, period)| !report.is_done_after(before, tier, period));
            view = self.take_snapshot(now)?;
            if self.update_citations_after_tier(run, (trigger, now), &mut report, &view)? {
                view = self.take_snapshot(now)?;
            }
        }
        if let Some(path) = self.refresh_index(run, &view)?
            && let Some(job) =
                report.jobs.iter_mut().rev().find(|it| it.tier == Tier::Extract.name())
        {
            job.paths.push(path);
        }
        // They are made in the order in which they are wanted, and told in that of the calendar.
        let place = |it: &JobReport| Tier::ALL.iter().position(|tier| tier.name() == it.tier);
        report.jobs.sort_by(|a, b| (place(a), &a.period).cmp(&(place(b), &b.period)));
        if let Some(run) = run {
            self.end_run(run)?;
        }
        let plan = self.plan(&view, selection, (self.clock)());
        Ok(RunOutcome { report, snapshot: view, plan })
    }

    /// Makes the key of a root that has none, if a secret in a log of these jobs is to be marked by it.
    fn create_key_if_needed(
        &self,
        jobs: &[CompactionJob],
        view: &RootSnapshot,
    ) -> Result<bool, CompactionError> {
        if view.inventory.decisions.has_key() {
            return Ok(false);
        }
        let names: BTreeSet<&String> = jobs.iter().flat_map(|it| it.inputs.keys()).collect();
        let layout = self.vault.layout();
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
            let text = self.vault.read_text(path).ok().flatten();
            text.is_some_and(|it| rules.needs_key(&it))
        };
        let is_needed = parallel::map(&paths, needs_key).contains(&true);
        if is_needed {
            self.create_decisions_key()?;
        }
        Ok(is_needed)
    }

    /// Looks at the files and at the record.
    ///
    /// # Errors
    ///
    /// Returns an error when the folder cannot be listed or the database cannot be read.
    pub fn take_snapshot(&mut self, now: DateTime<Utc>) -> Result<RootSnapshot, CompactionError> {
        let seen = known_files(self.lineage)?;
        let scan = self.vault.scan(&seen)?;
        self.cache_file_hashes(&scan.newly_read, &seen, &scan.inventory, now)?;
        let receipts = self.lineage.last_receipts()?;
        let mut record = recorded_state(Some(self.lineage), &receipts, &scan.inventory)?;
        record.damaged = crate::compaction::integrity::damage::files_to_confirm(
            self.vault,
            &scan.inventory,
            self.lineage,
        )?;
        Ok(RootSnapshot { inventory: scan.inventory, record })
    }

    /// Takes notice of what happened to the files since the last pass, and folds nothing.
    ///
    /// # Errors
    ///
    /// Returns an error when the folder cannot be listed, or nothing can be written.
    pub fn reconcile(&mut self, trigger: &str, now: DateTime<Utc>) -> Result<(), CompactionError> {
        self.refuse_if_vanished(false)?;
        let busy = RunLock::is_held(&self.vault.layout().run_lock())?;
        self.recover_unlocked(now, busy)?;
        if !busy && self.has_no_records()? {
            let _alone = self.acquire_run_lock(&|| false)?;
            self.record_existing_files(now)?;
        }
        if self.is_forgetting()? {
            // It knows lines by their places, which would shift under it.
            let _alone = self.acquire_run_lock(&|| false)?;
            self.finish_forgetting(now, false)?;
        }
        self.reconcile_snapshot(trigger, now, false)
    }

    /// Like [`Self::notice`], for who holds the lock on passes already and is to change generated
    /// files. Returns what stands there then.
    fn reconcile_locked(
        &mut self,
        trigger: &str,
        now: DateTime<Utc>,
    ) -> Result<RootSnapshot, CompactionError> {
        self.refuse_if_vanished(false)?;
        self.recover(now)?;
        self.record_existing_files(now)?;
        self.finish_forgetting(now, false)?;
        self.reconcile_snapshot(trigger, now, false)?;
        let view = self.take_snapshot(now)?;
        view.refuse_damaged(|_| true)?;
        Ok(view)
    }

    /// Looks, and puts back first what a disk cut off or emptied; returns also what that was.
    fn take_repaired_snapshot(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<(RootSnapshot, Vec<String>), CompactionError> {
        let view = self.take_snapshot(now)?;
        let put_back = self.restore_damaged_files(&view, now)?;
        let view = if put_back.is_empty() { view } else { self.take_snapshot(now)? };
        Ok((view, put_back))
    }

    /// `accepted` says that a person takes held files as they are.
    fn reconcile_snapshot(
        &mut self,
        trigger: &str,
        now: DateTime<Utc>,
        accepted: bool,
    ) -> Result<(), CompactionError> {
        let (mut view, _) = self.take_repaired_snapshot(now)?;
        if accepted {
            view.record.damaged.clear();
        }
        let mut noticing = crate::compaction::reconcile::edits::ReconcileRun::new(trigger, now);
        let noticed = self.reconcile_changes(&mut noticing, &view);
        if let Some(run) = noticing.run {
            self.end_run(run)?;
        }
        noticed.map(drop)
    }

    /// Remembers the hashes of logs that were read, except of those changed moments ago: a second
    /// change within the same tick of the clock would not be seen.
    fn cache_file_hashes(
        &mut self,
        read: &[(String, KnownFile)],
        seen: &HashMap<String, KnownFile>,
        inventory: &Inventory,
        now: DateTime<Utc>,
    ) -> Result<(), LineageError> {
        let seen_ns = now.timestamp_nanos_opt().unwrap_or(0);
        let settled_ns =
            seen_ns.saturating_sub(Duration::seconds(2).num_nanoseconds().unwrap_or(0));
        let fresh: Vec<(PathBuf, ScannedFile)> = read
            .iter()
            .filter(|(_, it)| it.stamp.mtime_ns <= settled_ns)
            .map(|(path, KnownFile { stamp, hash })| {
                let FileStat { inode, size, mtime_ns } = *stamp;
                (path.into(), ScannedFile { inode, size, mtime_ns, hash: *hash, seen_ns })
            })
            .collect();
        let logs = inventory.logs.values().chain(inventory.late_logs.values());
        let there: HashSet<&str> = logs.map(|it| &it.path[..]).collect();
        let gone: Vec<PathBuf> =
            seen.keys().filter(|it| !there.contains(&it[..])).map(PathBuf::from).collect();
        if fresh.is_empty() && gone.is_empty() {
            return Ok(());
        }
        self.lineage.update_scanned_files(&fresh, &gone)
    }

    /// Says what is due.
    pub fn plan(
        &self,
        view: &RootSnapshot,
        selection: &Selection,
        now: DateTime<Utc>,
    ) -> CompactionPlan {
        plan_snapshot(view, self.settings, self.engine.id(), selection, now)
    }

    /// Ends a run, and has witnesses beside the database say so.
    fn end_run(&mut self, run: RunId) -> Result<(), CompactionError> {
        self.lineage.end_run(run, (self.clock)())?;
        self.update_commit_marker()
    }

    /// Returns the number of the run, which begins with its first job.
    fn ensure_run(
        &mut self,
        run: &mut Option<RunId>,
        trigger: &str,
        now: DateTime<Utc>,
    ) -> Result<RunId, CompactionError> {
        if let Some(run) = *run {
            return Ok(run);
        }
        let owner = crate::compaction::journal::commit::run_owner();
        let new = NewRun { trigger, version: env!("CARGO_PKG_VERSION"), owner: &owner, now };
        let begun = self.lineage.begin_run(&new)?;
        self.engine.begin_run(begun.0);
        tracing::Span::current().record("run", begun.0);
        *run = Some(begun);
        Ok(begun)
    }

    /// Returns the weeks that are due with these days, for an engine that reads them together.
    fn weeks_due_after_days(
        &self,
        jobs: &[CompactionJob],
        view: &RootSnapshot,
        selection: &Selection,
        now: DateTime<Utc>,
    ) -> Vec<CompactionJob> {
        let are_days = jobs.first().is_some_and(|it| it.tier == Tier::Extract);
        if !are_days || !self.engine.is_model() {
            return Vec::new();
        }
        let mut weeks = self.plan(view, selection, now).jobs;
        weeks.retain(|it| it.tier == Tier::Weekly);
        weeks
    }

    /// Makes jobs of one tier.
    fn run_tier(
        &mut self,
        run: RunId,
        DueJobs { jobs, weeks }: DueJobs<'_>,
        view: &RootSnapshot,
        corpus: &mut crate::compaction::summary::draft::CorpusReader,
        watcher: &mut dyn RunObserver,
        report: &mut RunReport,
    ) -> Result<(), CompactionError> {
        match jobs.first().map(|it| it.tier) {
            None => Ok(()),
            Some(Tier::Extract) if self.engine.is_model() => {
                self.run_model_day_jobs(run, (jobs, weeks), view, watcher, report)
            }
            Some(Tier::Extract) => self.run_day_jobs(run, jobs, view, watcher, report),
            Some(Tier::Weekly | Tier::Monthly) => {
                self.run_summary_jobs(run, jobs, view, corpus, watcher, report)
            }
            Some(Tier::Wisdom) => self.run_wisdom_jobs(run, jobs, view, watcher, report),
        }
    }

    /// Makes one edit of `WISDOM.md` after the other, each on what the one before left.
    fn run_wisdom_jobs(
        &mut self,
        run: RunId,
        jobs: &[CompactionJob],
        view: &RootSnapshot,
        watcher: &mut dyn RunObserver,
        report: &mut RunReport,
    ) -> Result<(), CompactionError> {
        for (i, job) in jobs.iter().enumerate() {
            if watcher.should_stop() || report.model.is_some() {
                report.left += jobs.len() - i;
                break;
            }
            watcher.job_started(job, jobs.len() - i - 1);
            if let Some(id) = self.begin_job(run, job)? {
                if self.engine.is_model() {
                    self.lineage.set_job_stage(id, JobStage::Called)?;
                }
                let made = self.distill(job, id, view);
                self.finish_job(job, id, made, watcher, report)?;
            }
        }
        Ok(())
    }

    /// Records that a job begins; `None` when another process does the same right now.
    fn begin_job(
        &mut self,
        run: RunId,
        job: &CompactionJob,
    ) -> Result<Option<JobId>, LineageError> {
        match self.lineage.begin_job(run, &self.new_job(job)) {
            Err(LineageError::AlreadyLive { .. }) => Ok(None),
            id => id.map(Some),
        }
    }

    /// Tells how a job ended. One that failed stops no other.
    fn finish_job(
        &mut self,
        job: &CompactionJob,
        id: JobId,
        made: Result<JobOutput, JobFailure>,
        watcher: &mut dyn RunObserver,
        report: &mut RunReport,
    ) -> Result<(), CompactionError> {
        // A pass that ends here leaves the reply, and the next one reads it.
        if !matches!(made, Err(JobFailure::Critical(_))) {
            let end = match &made {
                Err(JobFailure::AllRejected(_) | JobFailure::EnginePanicked) => {
                    WorkOutcome::Unusable
                }
                Err(JobFailure::Engine(EngineError::Model(call)))
                    if call.class() == ErrorClass::Request =>
                {
                    WorkOutcome::Unusable
                }
                Err(error) if error.is_transient() => WorkOutcome::Deferred,
                _ => WorkOutcome::Done,
            };
            self.engine.end_work(end);
        }
        let made = match made {
            Ok(made) => made,
            Err(JobFailure::Critical(error)) => return Err(error),
            Err(error) => {
                if let JobFailure::Engine(EngineError::Model(call)) = &error
                    && !matches!(call.class(), ErrorClass::Request | ErrorClass::Pending)
                {
                    report.model = Some(call.to_string());
                    report.unanswered += 1;
                }
                self.record_failure(job, id, &error)?
            }
        };
        let due = made.receipt.reason.clone().unwrap_or_else(|| job.reason.to_string());
        let done = JobReport::new(job.tier, job.period, &made.receipt, made.paths, &due);
        watcher.job_finished(&done);
        report.push(done);
        Ok(())
    }

    /// Adds to a receipt what its work cost.
    fn add_model_usage(&self, receipt: &mut Receipt) {
        let spent = self.engine.take_spent();
        receipt.metrics.model_calls += spent.calls;
        receipt.metrics.cost_usd += spent.cost_usd;
    }

    fn new_job(&self, job: &CompactionJob) -> NewJob {
        NewJob {
            fingerprint: job.fingerprint,
            tier: job.tier,
            period: job.period,
            engine: self.engine.id().to_owned(),
            inputs: ContentHash::of(format!("{:?}", job.inputs)),
            now: (self.clock)(),
        }
    }

    /// Ends a job that failed: it is tried again by the next pass, at most three times in all.
    fn record_failure(
        &mut self,
        job: &CompactionJob,
        id: JobId,
        error: &JobFailure,
    ) -> Result<JobOutput, LineageError> {
        let excused = error.is_transient();
        let nothing = matches!(error, JobFailure::Engine(EngineError::EmptySources { .. }));
        let mut reason = error.to_string();
        if let Some(source) = std::error::Error::source(error)
            && !reason.contains(&source.to_string())
        {
            reason = format!("{reason}: {source}");
        }
        if let JobFailure::Engine(EngineError::Model(CallError::InvalidReply(_))) = error {
            reason = format!("{reason}; what it said is kept in .memoird/reply-unread-*.json");
        }
        let outcome = if nothing {
            JobOutcome::Skipped
        } else if !excused && self.lineage.failed_attempts(job.fingerprint)? + 1 >= ATTEMPTS_MAX {
            JobOutcome::Stuck
        } else {
            JobOutcome::Failed
        };
        let mut receipt = Receipt::new(outcome, Some(reason), (self.clock)());
        receipt.excused = excused;
        self.add_model_usage(&mut receipt);
        self.lineage.finish_job(id, &receipt)?;
        Ok(JobOutput { receipt, paths: Vec::new() })
    }

    /// Clears away what a crash left: temporary files exist only while their process holds the write
    /// lock.
    fn remove_temp_files(&self) -> Result<(), CompactionError> {
        if !self.vault.temp_files()?.is_empty() {
            self.vault.remove_temp_files(&self.write_lock()?)?;
        }
        Ok(())
    }

    fn write_lock(&self) -> Result<WriteLock, CompactionError> {
        let lock = WriteLock::acquire(self.vault.layout().root())?;
        self.refuse_if_replaced()?;
        Ok(lock)
    }
}

/// Asks an engine, and survives its falling over.
fn ask_engine<T>(
    engine: &dyn Engine,
    question: impl FnOnce(&dyn Engine) -> Result<T, EngineError>,
) -> Result<T, JobFailure> {
    catch_unwind(AssertUnwindSafe(|| question(engine)))
        .map_err(|_| JobFailure::EnginePanicked)?
        .map_err(JobFailure::Engine)
}

/// Looks at the files and at the record, and remembers nothing: for who only shows.
///
/// # Errors
///
/// Returns an error when the folder cannot be listed or the database cannot be read.
pub fn read_snapshot(
    vault: &Vault,
    lineage: Option<&Lineage>,
) -> Result<RootSnapshot, CompactionError> {
    read_snapshot_with_receipts(vault, lineage).map(|it| it.0)
}

/// Like [`read_snapshot`], with the last receipt of each period and tier, for who tells of those too.
///
/// # Errors
///
/// Like [`read_snapshot`].
pub fn read_snapshot_with_receipts(
    vault: &Vault,
    lineage: Option<&Lineage>,
) -> Result<(RootSnapshot, Vec<JobRow>), CompactionError> {
    let known = lineage.map_or_else(|| Ok(HashMap::new()), known_files)?;
    let inventory = vault.scan(&known)?.inventory;
    let receipts = lineage.map_or_else(|| Ok(Vec::new()), Lineage::last_receipts)?;
    let mut record = recorded_state(lineage, &receipts, &inventory)?;
    if let Some(lineage) = lineage {
        record.damaged =
            crate::compaction::integrity::damage::files_to_confirm(vault, &inventory, lineage)?;
    }
    Ok((RootSnapshot { inventory, record }, receipts))
}

/// Says what is due for an engine of that name.
pub fn plan_snapshot(
    view: &RootSnapshot,
    settings: &RootSettings,
    engine: &str,
    selection: &Selection,
    now: DateTime<Utc>,
) -> CompactionPlan {
    let compaction = &settings.settings.compaction;
    let span = |it: Span| Duration::from_std(it.as_duration()).unwrap_or(Duration::MAX);
    let settings = PlanSettings {
        zone: settings.zone.name.0,
        grace: span(compaction.grace),
        quiet: span(compaction.quiet),
        extract: compaction.extract,
        engine: engine.to_owned(),
    };
    plan::plan(&view.inventory, &view.record, &settings, selection, now)
}

/// Returns what the last walk saw, by path.
fn known_files(lineage: &Lineage) -> Result<HashMap<String, KnownFile>, LineageError> {
    let cached = lineage.scanned_files()?;
    let seen = cached.into_iter().filter_map(|(path, it)| {
        let stamp = FileStat { inode: it.inode, size: it.size, mtime_ns: it.mtime_ns };
        Some((path.to_str()?.to_owned(), KnownFile { stamp, hash: it.hash }))
    });
    Ok(seen.collect())
}

/// Collects what the plan needs of the database, where there is one, and of `WISDOM.md`.
fn recorded_state(
    lineage: Option<&Lineage>,
    receipts: &[JobRow],
    inventory: &Inventory,
) -> Result<RecordedState, LineageError> {
    let extracted = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::extracted_logs)?;
    let wisdom = inventory.wisdom.as_deref().map(WisdomFile::parse);
    let mut distilled: BTreeMap<_, _> =
        wisdom.iter().flat_map(WisdomFile::distilled).map(|&month| (month, None)).collect();
    let unsettled = match (lineage, &wisdom) {
        (Some(lineage), Some(wisdom)) => {
            crate::compaction::reconcile::stale::stale_wisdom_months(lineage, inventory, wisdom)?
        }
        _ => Vec::new(),
    };
    let mut settled = BTreeSet::new();
    let mut parked = BTreeMap::new();
    for job in receipts {
        let Some(receipt) = &job.receipt else { continue };
        match receipt.outcome {
            JobOutcome::Stuck => {
                parked.insert(job.fingerprint, receipt.reason.clone().unwrap_or_default());
            }
            JobOutcome::Skipped => {
                settled.insert(job.fingerprint);
            }
            // What it was before is not known, so `WISDOM.md` is not known to rest on it as it is.
            JobOutcome::Written if job.tier == Tier::Monthly => {
                if let Some(slot @ None) = distilled.get_mut(&job.period) {
                    *slot = Some(String::new());
                }
            }
            // The fingerprint of a wisdom job tells which body of the month was distilled.
            JobOutcome::Written | JobOutcome::Unchanged if job.tier == Tier::Wisdom => {
                if let (Some(slot), Some(month)) =
                    (distilled.get_mut(&job.period), inventory.monthly.get(&job.period))
                {
                    let inputs = [(job.period.to_string(), month.body_hash.clone())].into();
                    let same =
                        plan::fingerprint(Tier::Wisdom, job.period, &inputs) == job.fingerprint;
                    *slot = Some(if same { month.body_hash.clone() } else { String::new() });
                }
            }
            _ => {}
        }
    }
    let extracted =
        extracted.into_iter().map(|(stem, hash)| (stem.to_string(), hash.hex16())).collect();
    let waiting = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::quarantined)?;
    let waiting = waiting.into_iter().filter(|(_, (what, _))| *what == QuarantineScope::Memory);
    let waiting = waiting.map(|(at, _)| at.stem.to_string()).collect();
    let read_by = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::extraction_engines)?;
    let held = BTreeMap::new();
    Ok(RecordedState {
        extracted,
        extracted_by: read_by,
        quarantined_logs: waiting,
        distilled,
        stale_wisdom: unsettled,
        skipped: settled,
        stuck: parked,
        damaged: held,
    })
}
