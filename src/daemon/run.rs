//! One run over one memory folder, on its own thread.
//!
//! The loop starts it and goes on. Through [`Heartbeat`] the run shows that it makes progress, and
//! learns whether to stop. The database is open only during the run.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};

use super::{
    folder_snapshot::{FolderSnapshot, WatchedFolder},
    schedule::is_open_week,
};
use crate::{
    clock,
    compaction::{
        CompactionError, Compactor, RunContext, RunObserver,
        integrity::{
            rebuild::{self, CheckDepth, DatabaseRecovery, PendingRebuild},
            vanished_files::refuse_if_vanished,
        },
        plan::{CompactionJob, CompactionPlan, Selection, WaitCause},
        report::{JobReport, RunReport, WAITING},
        up_to_date,
    },
    config::root::RootSettings,
    engine::Engine,
    memory::item::Tier,
    model::{Batching, CallError, ScheduledOutcome, embedding::EmbeddingClient},
    recall::{
        search::{self, EmbedError},
        wisdom_block,
    },
    store::{
        db::{
            lineage::{Lineage, jobs::JobMetrics},
            vectors::VectorDb,
        },
        fs::{
            inventory::Inventory,
            lock::{LockError, RunLock},
            vault::Vault,
        },
    },
};

/// How many files the log line of a run names.
const NAMED_FILES_MAX: usize = 5;

/// How long a run computes vectors; the next run continues, so that due jobs do not wait.
const EMBED_TIME_MAX: Duration = Duration::from_secs(5);

/// The trigger of a run that continues with vectors.
pub(super) const EMBED_TRIGGER: &str = "learn";

pub(super) const BATCH_TRIGGER: &str = "batch";

pub(super) struct RunOrder {
    pub(super) vault: Vault,
    pub(super) engine: Box<dyn Engine>,
    /// Computes vectors; `None` if none are wanted now.
    pub(super) embedder: Option<EmbeddingClient>,
    pub(super) settings: RootSettings,
    /// The trigger, as the database records it.
    pub(super) trigger: &'static str,
    /// The tiers to write; empty to only scan.
    pub(super) tiers: BTreeSet<Tier>,
    /// How thoroughly the database is checked first.
    pub(super) check_depth: CheckDepth,
    /// The folders to take a snapshot of.
    pub(super) folders: Vec<WatchedFolder>,
    /// The time, if the clock cannot be read.
    pub(super) now: DateTime<Utc>,
    pub(super) heartbeat: Heartbeat,
}

/// Shared by the loop and a run while it is active.
#[derive(Clone, Debug, Default)]
pub(super) struct Heartbeat {
    stop: Arc<AtomicBool>,
    beats: Arc<AtomicU64>,
}

#[derive(Debug)]
pub(super) struct FinishedRun {
    pub(super) report: RunReport,
    pub(super) plan: CompactionPlan,
    /// The last change of each log that is still being written, by path.
    pub(super) being_written: BTreeMap<String, DateTime<Utc>>,
    /// When any log was last changed.
    pub(super) last_change: Option<DateTime<Utc>>,
    /// The folders just before the last scan; `None` when one could not be listed.
    pub(super) snapshot: Option<FolderSnapshot>,
    /// Why the model cannot be asked now.
    pub(super) model_unavailable: Option<CallError>,
    /// How thoroughly the database was checked first.
    pub(super) check_depth: CheckDepth,
    /// The batches that were sent.
    pub(super) scheduled: Result<ScheduledOutcome, CallError>,
    /// Why the replies of earlier batches could not be fetched.
    pub(super) batch_error: Option<CallError>,
    /// How many logs still lack vectors, or why none could be computed; `None` when none were wanted.
    pub(super) embedded: Option<Result<usize, EmbedFailure>>,
    pub(super) started_at: DateTime<Utc>,
    pub(super) ended_at: DateTime<Utc>,
}

/// Why no vectors could be computed.
#[derive(Debug, thiserror::Error)]
pub(super) enum EmbedFailure {
    /// The server did not answer.
    #[error(transparent)]
    Call(CallError),
    /// The logs, the index or the configuration are at fault.
    #[error("{0}")]
    Other(String),
}

impl RunOrder {
    /// Runs the order.
    ///
    /// Returns what ended the run; jobs that had ended before are complete.
    pub(super) fn run(mut self) -> Result<FinishedRun, CompactionError> {
        let layout = self.vault.layout();
        // Other folders need the thread on which this run would wait for the lock.
        if RunLock::is_held(&layout.run_lock())? {
            return Err(LockError::Busy { root: layout.root().to_owned() }.into());
        }
        let (has_replies, batch_error) = self.fetch_batches();
        // These triggers report no change, so everything that needs no model is done already.
        if matches!(self.trigger, "again" | "scan" | "tick" | "wake")
            && self.engine.unavailable_reason(self.clock()).is_some()
        {
            self.tiers.clear();
        }
        let up_to_date = if has_replies { None } else { self.outcome_if_up_to_date() };
        let result = match up_to_date {
            Some(done) => Ok((done, None)),
            None => self.run_with_database(),
        };
        // Requests that were queued before a run failed are sent all the same.
        let scheduled = self.engine.batching().map(Batching::end_scheduled_run).transpose();
        let scheduled = scheduled.map(Option::unwrap_or_default);
        if let (Err(_), Some(error)) = (&result, batch_error.as_ref().or(scheduled.as_ref().err()))
        {
            tracing::warn!("{}: batches: {error}", self.root());
        }
        let model_unavailable = self.engine.unavailable_reason(self.clock());
        let (done, inventory) = match result {
            Ok((done, inventory)) => (Ok(done), inventory),
            Err(error) => (Err(error), None),
        };
        if let Some(inventory) = &inventory
            && !self.heartbeat.stop.load(Ordering::Relaxed)
            // Without the update the next search does it; `doctor` reports what is wrong with the index.
            && let Err(error) = search::update_index(&self.vault, inventory)
        {
            tracing::debug!("{}: {error}", self.root());
        }
        let vectors = self.embedder.as_ref().filter(|_| done.is_ok());
        let embedded =
            vectors.map(|it| self.heartbeat.embed_lines(&self.vault, inventory.as_ref(), it));
        if self.settings.settings.search.embeddings.is_none() {
            // Nobody searches by these vectors any more.
            VectorDb::remove(&self.vault.layout().vectors());
        }
        done.map(|done| FinishedRun {
            scheduled,
            batch_error,
            model_unavailable,
            check_depth: self.check_depth,
            embedded,
            started_at: self.now,
            ..done
        })
    }

    fn clock(&self) -> DateTime<Utc> {
        clock::now().unwrap_or(self.now)
    }

    fn root(&self) -> std::path::Display<'_> {
        self.vault.layout().root().display()
    }

    /// Fetches the replies of batches for a run that can use them, and makes it write all tiers if any came.
    /// Returns whether any came, and why others could not be fetched.
    fn fetch_batches(&mut self) -> (bool, Option<CallError>) {
        if self.tiers.is_empty() && self.trigger != BATCH_TRIGGER {
            return (false, None);
        }
        let replies = self.engine.batching().map(Batching::begin_scheduled_run);
        match replies.unwrap_or(Ok(false)) {
            Ok(false) => (false, None),
            Ok(true) => {
                self.tiers = Tier::ALL.into();
                (true, None)
            }
            Err(error) => (false, Some(error)),
        }
    }

    /// Opens the database, repairs it if it is damaged, and runs the jobs.
    fn run_with_database(&self) -> Result<(FinishedRun, Option<Inventory>), CompactionError> {
        #[cfg(feature = "fleet")]
        crate::fleet::pull::finish_interrupted(&crate::fleet::push::BundleRoot {
            vault: &self.vault,
            settings: &self.settings,
            now: self.now,
        })
        .map_err(crate::fleet::error::BundleError::into_run_error)?;
        let clock = || self.clock();
        let mut report = |recovery: &DatabaseRecovery| {
            tracing::error!("{}: {recovery}", self.root());
        };
        let mut run = |lineage: &mut Lineage, pending: Option<PendingRebuild>| {
            let mut compactor = Compactor::new(RunContext {
                vault: &self.vault,
                lineage,
                engine: self.engine.as_ref(),
                settings: &self.settings,
                clock: &clock,
                write_wisdom_block: wisdom_block::refresh,
            });
            if let Some(pending) = pending {
                compactor.rebuild_recovered(pending, self.now)?;
            }
            let (done, inventory) = self.run_jobs(&mut compactor)?;
            Ok((done, Some(inventory)))
        };
        rebuild::with_database(&self.vault, self.check_depth, self.now, &mut report, &mut run)
    }

    fn run_jobs(
        &self,
        compactor: &mut Compactor<'_>,
    ) -> Result<(FinishedRun, Inventory), CompactionError> {
        let report = if self.tiers.is_empty() {
            refuse_if_vanished(&compactor.context, false)?;
            RunReport::default()
        } else {
            let tiers = self.tiers.iter().copied().collect();
            let open_week = is_open_week(compactor.context.settings);
            let selection = Selection { tiers, open_week, ..Selection::default() };
            compactor.compact(self.trigger, &selection, &mut self.heartbeat.clone())?.report
        };
        let at = (compactor.context.clock)();
        // The snapshot comes first: a change between the two causes another run.
        let snapshot = FolderSnapshot::take(&self.folders).ok();
        let view = compactor.context.take_snapshot(at)?;
        let plan = compactor.context.plan(&view, &Selection::default(), at);
        let done = FinishedRun {
            report,
            being_written: logs_being_written(&plan, &view.inventory),
            last_change: up_to_date::last_log_change(&view.inventory, at),
            plan,
            snapshot,
            ..FinishedRun::empty(at)
        };
        Ok((done, view.inventory))
    }

    /// Returns the result of a run over a folder in which nothing changed. A full check of the database is
    /// done here; a damaged database is left to the run.
    fn outcome_if_up_to_date(&self) -> Option<FinishedRun> {
        if !up_to_date::has_note(&self.vault) {
            return None;
        }
        let (settings, now) = (&self.settings, self.clock());
        // The snapshot comes first: a change between the two causes another run.
        let snapshot = FolderSnapshot::take(&self.folders).ok()?;
        let outcome = up_to_date::check(
            &self.vault,
            settings,
            self.engine.id(),
            is_open_week(settings),
            now,
        )?;
        if self.check_depth == CheckDepth::Full && !rebuild::is_sound(&self.vault) {
            return None;
        }
        Some(FinishedRun {
            plan: outcome.plan,
            last_change: outcome.last_change,
            snapshot: Some(snapshot),
            ..FinishedRun::empty(now)
        })
    }
}

/// Returns the last change of each log that the plan waits for because it is still being written.
fn logs_being_written(
    plan: &CompactionPlan,
    inventory: &Inventory,
) -> BTreeMap<String, DateTime<Utc>> {
    let paths = plan.waiting.iter().filter_map(|it| match &it.cause {
        WaitCause::BeingWritten(path) => Some(path),
        _ => None,
    });
    let paths: BTreeSet<&String> = paths.collect();
    let logs = inventory.logs.values().chain(inventory.late_logs.values());
    logs.filter(|it| paths.contains(&it.path))
        .map(|it| (it.path.clone(), DateTime::from_timestamp_nanos(it.stamp.mtime_ns)))
        .collect()
}

impl Heartbeat {
    /// Asks the run to stop after the current job.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns a number that grows as the run makes progress.
    pub(super) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    /// Computes vectors for at most [`EMBED_TIME_MAX`].
    fn embed_lines(
        &self,
        vault: &Vault,
        inventory: Option<&Inventory>,
        embedder: &EmbeddingClient,
    ) -> Result<usize, EmbedFailure> {
        let begun = Instant::now();
        let mut goes_on = || {
            self.beat();
            !self.stop.load(Ordering::Relaxed) && begun.elapsed() < EMBED_TIME_MAX
        };
        let outcome = search::embed_lines(vault, inventory, embedder, &mut goes_on)
            .map_err(|it| EmbedFailure::Other(it.to_string()))?;
        match outcome.failed {
            None => Ok(outcome.logs_left),
            Some(EmbedError::Call(error)) => Err(EmbedFailure::Call(error)),
            Some(error @ EmbedError::Index(_)) => Err(EmbedFailure::Other(error.to_string())),
        }
    }

    fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }
}

impl RunObserver for Heartbeat {
    fn job_started(&mut self, _job: &CompactionJob, _left: usize) {
        self.beat();
    }

    fn job_finished(&mut self, job: &JobReport) {
        self.beat();
        let JobReport { tier, period, outcome, figures, .. } = job;
        let JobMetrics { items, sources, .. } = figures;
        match *outcome {
            // The reason may quote a file, which must not get into a log that people send around.
            "failed" | "parked" => {
                tracing::warn!(job = tier, period, outcome, "`memoird status` says why");
            }
            _ => {
                tracing::debug!(job = tier, period, items, sources, "{outcome}");
            }
        }
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl FinishedRun {
    /// Returns the result of a run that did nothing.
    pub(super) fn empty(at: DateTime<Utc>) -> Self {
        Self {
            report: RunReport::default(),
            plan: CompactionPlan::default(),
            being_written: BTreeMap::new(),
            last_change: None,
            snapshot: None,
            model_unavailable: None,
            check_depth: CheckDepth::Quick,
            scheduled: Ok(ScheduledOutcome::default()),
            batch_error: None,
            embedded: None,
            started_at: at,
            ended_at: at,
        }
    }

    /// Returns the line for the log; `None` when nothing was done.
    pub(super) fn log_line(&self) -> Option<String> {
        let RunReport { jobs, written, unchanged, failed, left, .. } = &self.report;
        let moved = self.moved_logs();
        if jobs.is_empty() && *left == 0 {
            return moved;
        }
        // The last jobs wrote the files that people read first.
        let mut paths: Vec<&str> = Vec::new();
        for job in jobs.iter().rev().filter(|it| it.outcome == "written") {
            let fresh = job.path.as_deref().filter(|it| !paths.contains(it));
            paths.extend(fresh);
        }
        let named = &paths[..paths.len().min(NAMED_FILES_MAX)];
        let what = if named.is_empty() { "nothing".to_owned() } else { named.join(", ") };
        let more = match paths.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let left = if *left > 0 { format!(", {left} left") } else { String::new() };
        let waiting = jobs.iter().filter(|it| it.outcome == WAITING).count();
        let waiting = if waiting > 0 { format!(", {waiting} waiting") } else { String::new() };
        Some(format!(
            "wrote {what}{more} ({written} written, {unchanged} unchanged, {failed} failed{waiting}{left}){}",
            moved.map(|it| format!("; {it}")).unwrap_or_default(),
        ))
    }

    /// Returns whether every job that is due now was tried in vain. Others came up during the run.
    pub(super) fn has_tried_all_due(&self) -> bool {
        let tried = |job: &CompactionJob| {
            let period = job.period.to_string();
            let mut jobs = self.report.jobs.iter();
            let job = jobs.rfind(|it| it.tier == job.tier.name() && it.period == period);
            job.is_some_and(|it| !matches!(it.outcome, "written" | "unchanged"))
        };
        self.plan.jobs.iter().all(tried)
    }

    fn moved_logs(&self) -> Option<String> {
        let RunReport { archived, joined, archive_held, .. } = &self.report;
        let mut parts = Vec::new();
        if !joined.is_empty() {
            parts.push(format!("added late lines to {} archived logs", joined.len()));
        }
        if !archived.is_empty() {
            parts.push(format!("archived {} logs", archived.len()));
        }
        parts.extend(archive_held.iter().map(|why| format!("archived no more logs: {why}")));
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::{
        config::{Config, environment::Environment},
        daemon::{folder_snapshot::watched_folders, watch::FolderWatcher},
        store::fs::layout::Layout,
    };

    /// Returns the order to write everything that is due.
    fn order(root: &Path) -> RunOrder {
        let around = Environment::default();
        let config = Config::from_text(None, &[], &around).unwrap();
        RunOrder {
            vault: Vault::new(Layout::new(root, "memory")),
            engine: Box::new(crate::engine::extractive::Extractive),
            embedder: None,
            settings: config.open(root, &around).unwrap(),
            trigger: "change",
            tiers: Tier::ALL.into(),
            check_depth: CheckDepth::Quick,
            folders: watched_folders(&Layout::new(root, "memory")),
            now: DateTime::UNIX_EPOCH,
            heartbeat: Heartbeat::default(),
        }
    }

    /// Creates a folder with one log of a closed week.
    fn root() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("memory")).unwrap();
        touch(
            &root.path().join("memory/2020-03-10.md"),
            "- Decided to use the blue pump for the test rig.\n",
        );
        root
    }

    fn touch(path: &Path, text: &str) {
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        fs::write(path, text).unwrap();
        let long_ago = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
        fs::File::open(path).unwrap().set_times(long_ago).unwrap();
    }

    #[test]
    fn a_run_without_work_causes_no_event() {
        let root = root();
        let root = root.path();
        let done = order(root).run().unwrap();
        assert!(done.log_line().is_some_and(|it| it.contains("memory/weekly/2020-W11.md")));
        let mut watch = FolderWatcher::new();
        watch.watch_folders(root, &watched_folders(&Layout::new(root, "memory"))).unwrap();
        let again = order(root).run().unwrap();
        assert_eq!(again.log_line(), None);
        assert!(again.snapshot.is_some() && again.snapshot == done.snapshot);
        // Events are ordered, so any that the run caused would come before this one.
        let months = root.join("memory/monthly");
        touch(&months.join("mark"), "");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let dirty = runtime.block_on(watch.next_changes());
        assert_eq!(dirty.folders.keys().collect::<Vec<_>>(), [&months]);
    }

    #[test]
    fn a_stopped_run_leaves_the_rest() {
        let root = root();
        let order = order(root.path());
        order.heartbeat.stop();
        let done = order.run().unwrap();
        assert_eq!(
            done.log_line().as_deref(),
            Some("wrote nothing (0 written, 0 unchanged, 0 failed, 3 left)")
        );
    }

    #[test]
    fn a_run_without_tiers_writes_nothing() {
        let root = root();
        let done = RunOrder { tiers: BTreeSet::new(), ..order(root.path()) }.run().unwrap();
        assert_eq!((done.plan.jobs.len(), done.log_line()), (3, None));
        assert!(!root.path().join("memory/weekly").exists());
    }
}
