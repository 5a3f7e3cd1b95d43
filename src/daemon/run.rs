//! One pass over one root, on a thread of its own.
//!
//! The loop orders it and goes on; the pass says through [`Heartbeat`] that it lives, and asks there
//! whether to stop. The database is open only for as long as a pass takes.

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
        CompactionError, Compactor, RunObserver,
        integrity::rebuild::{self, CheckDepth, DatabaseRecovery, PendingRebuild},
        plan::{CompactionJob, CompactionPlan, Selection, WaitCause},
        report::{JobReport, RunReport, WAITING},
        up_to_date,
    },
    config::root::RootSettings,
    engine::Engine,
    memory::item::Tier,
    model::{CallError, ScheduledOutcome, embedding::EmbeddingClient},
    recall::search::{self, EmbedError},
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

/// How many files a line of the log names.
const NAMED_FILES_MAX: usize = 5;

/// For so long a pass has vectors made; the next one goes on, so that what is due is not kept waiting.
const EMBED_TIME_MAX: Duration = Duration::from_secs(5);

/// What asks for a pass that goes on with it.
pub(super) const EMBED_TRIGGER: &str = "learn";

/// What asks for a look at a batch.
pub(super) const BATCH_TRIGGER: &str = "batch";

/// What is to be done.
pub(super) struct RunOrder {
    /// The files.
    pub(super) vault: Vault,
    /// What drafts.
    pub(super) engine: Box<dyn Engine>,
    /// What makes vectors; nothing where none are wanted now.
    pub(super) embedder: Option<EmbeddingClient>,
    /// What the root is run with.
    pub(super) settings: RootSettings,
    /// What asked for it, as the record of runs names it.
    pub(super) trigger: &'static str,
    /// What to make; nothing for a look alone.
    pub(super) tiers: BTreeSet<Tier>,
    /// How closely the database is looked at before.
    pub(super) check_depth: CheckDepth,
    /// The folders of which a snapshot is taken.
    pub(super) folders: Vec<WatchedFolder>,
    /// The time as the loop knows it, for when the clock cannot be read.
    pub(super) now: DateTime<Utc>,
    /// Between the loop and the pass.
    pub(super) heartbeat: Heartbeat,
}

/// What goes between the loop and a pass while it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Heartbeat {
    stop: Arc<AtomicBool>,
    beats: Arc<AtomicU64>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct FinishedRun {
    /// What was made.
    pub(super) report: RunReport,
    /// What is due, and what waits, after it.
    pub(super) plan: CompactionPlan,
    /// When the logs were changed that are still being written to, by path.
    pub(super) being_written: BTreeMap<String, DateTime<Utc>>,
    /// When a log was changed last.
    pub(super) last_change: Option<DateTime<Utc>>,
    /// What its folders looked like just before the last look; `None` when one could not be listed.
    pub(super) snapshot: Option<FolderSnapshot>,
    /// Why the model would not be asked now.
    pub(super) model_unavailable: Option<CallError>,
    /// How closely the database was looked at before.
    pub(super) check_depth: CheckDepth,
    /// What the model was handed to answer later.
    pub(super) scheduled: Result<ScheduledOutcome, CallError>,
    /// Why the replies of earlier batches could not be fetched.
    pub(super) batch_error: Option<CallError>,
    /// How many logs still lack vectors, or why none could be computed; `None` when none were wanted.
    pub(super) embedded: Option<Result<usize, EmbedFailure>>,
    /// When it began.
    pub(super) started_at: DateTime<Utc>,
    /// When it ended.
    pub(super) ended_at: DateTime<Utc>,
}

/// Why no vectors can be computed now.
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
    /// Does it.
    ///
    /// # Errors
    ///
    /// Returns what ended it; each job that was done is done.
    pub(super) fn run(self) -> Result<FinishedRun, CompactionError> {
        let Self { vault, engine, embedder, settings, trigger, .. } = self;
        let Self { mut tiers, check_depth: look, folders, now, heartbeat: mut pulse, .. } = self;
        let clock = || clock::now().unwrap_or(now);
        // Other roots need the thread on which a pass would wait for its turn.
        let layout = vault.layout();
        if RunLock::is_held(&layout.run_lock())? {
            return Err(LockError::Busy { root: layout.root().to_owned() }.into());
        }
        let (mut came, mut batch_error) = (false, None);
        if let Some(batching) = engine.batching()
            && (!tiers.is_empty() || trigger == BATCH_TRIGGER)
        {
            match batching.begin_scheduled_run() {
                Ok(has_replies) => came = has_replies,
                Err(error) => batch_error = Some(error),
            }
            if came {
                tiers = Tier::ALL.into();
            }
        }
        // What changed may need no model; what has not changed did all that it could without it.
        if matches!(trigger, "again" | "scan" | "tick" | "wake")
            && engine.unavailable_reason(clock()).is_some()
        {
            tiers.clear();
        }
        let still = if came {
            None
        } else {
            outcome_if_up_to_date(&vault, &settings, engine.id(), look, &folders, clock())
        };
        let mut say = |mended: &DatabaseRecovery| {
            tracing::error!("{}: {mended}", vault.layout().root().display());
        };
        let mut pass = |lineage: &mut Lineage, mending: Option<PendingRebuild>| {
            let mut compactor = Compactor {
                vault: &vault,
                lineage,
                engine: engine.as_ref(),
                settings: &settings,
                clock: &clock,
            };
            if let Some(mending) = mending {
                compactor.rebuild_recovered(mending, now)?;
            }
            let (done, inventory) =
                Self::run_jobs(&mut compactor, trigger, &tiers, &folders, &mut pulse)?;
            Ok((FinishedRun { check_depth: look, ..done }, Some(inventory)))
        };
        let done = match still {
            Some(done) => Ok((done, None)),
            None => rebuild::with_database(&vault, look, now, &mut say, &mut pass),
        };
        // What was asked before a pass came to a bad end is asked all the same.
        let scheduled = engine.batching().map(|it| it.end_scheduled_run()).transpose();
        let scheduled = scheduled.map(Option::unwrap_or_default);
        if let (Err(_), Some(error)) = (&done, batch_error.as_ref().or(scheduled.as_ref().err())) {
            tracing::debug!("{}: batches: {error}", vault.layout().root().display());
        }
        let closed = engine.unavailable_reason(clock());
        if let Ok((_, Some(inventory))) = &done
            && !pulse.stop.load(Ordering::Relaxed)
        {
            // Without it the next search does more; `doctor` tells what is wrong with it.
            if let Err(error) = search::update_index(&vault, inventory) {
                tracing::debug!("{}: {error}", vault.layout().root().display());
            }
        }
        let inventory = done.as_ref().ok().and_then(|it| it.1.as_ref());
        let learned = match &embedder {
            Some(embedder) if done.is_ok() => Some(pulse.embed_lines(&vault, inventory, embedder)),
            _ => None,
        };
        if settings.settings.search.embeddings.is_none() {
            // What nobody searches by is not left lying about.
            VectorDb::remove(&vault.layout().vectors());
        }
        done.map(|(done, _)| FinishedRun {
            scheduled,
            batch_error,
            model_unavailable: closed,
            embedded: learned,
            started_at: now,
            ..done
        })
    }

    fn run_jobs(
        compactor: &mut Compactor<'_>,
        trigger: &str,
        tiers: &BTreeSet<Tier>,
        folders: &[WatchedFolder],
        pulse: &mut Heartbeat,
    ) -> Result<(FinishedRun, Inventory), CompactionError> {
        let report = if tiers.is_empty() {
            compactor.refuse_if_vanished(false)?;
            RunReport::default()
        } else {
            let tiers = tiers.iter().copied().collect();
            let open_week = is_open_week(compactor.settings);
            let selection = Selection { tiers, open_week, ..Selection::default() };
            compactor.compact(trigger, &selection, pulse)?.report
        };
        let at = (compactor.clock)();
        // Before the look: what is changed between the two is looked at once more.
        let found = FolderSnapshot::take(folders).ok();
        let view = compactor.take_snapshot(at)?;
        let plan = compactor.plan(&view, &Selection::default(), at);
        let done = FinishedRun {
            report,
            being_written: logs_being_written(&plan, &view.inventory),
            last_change: up_to_date::last_log_change(&view.inventory, at),
            plan,
            snapshot: found,
            model_unavailable: None,
            check_depth: CheckDepth::Quick,
            scheduled: Ok(ScheduledOutcome::default()),
            batch_error: None,
            embedded: None,
            started_at: at,
            ended_at: at,
        };
        Ok((done, view.inventory))
    }
}

/// Returns what a pass would find in a root that stands still. Where the database is to be looked at
/// closely that is done, and one that is not sound is left to the pass.
fn outcome_if_up_to_date(
    vault: &Vault,
    settings: &RootSettings,
    engine: &str,
    look: CheckDepth,
    folders: &[WatchedFolder],
    now: DateTime<Utc>,
) -> Option<FinishedRun> {
    if !up_to_date::has_note(vault) {
        return None;
    }
    // Before the files are looked at: what is changed between the two is looked at once more.
    let found = FolderSnapshot::take(folders).ok()?;
    let still = up_to_date::check(vault, settings, engine, is_open_week(settings), now)?;
    if look == CheckDepth::Full && !rebuild::is_sound(vault) {
        return None;
    }
    Some(FinishedRun {
        report: RunReport::default(),
        plan: still.plan,
        being_written: BTreeMap::new(),
        last_change: still.last_change,
        snapshot: Some(found),
        model_unavailable: None,
        check_depth: look,
        scheduled: Ok(ScheduledOutcome::default()),
        batch_error: None,
        embedded: None,
        started_at: now,
        ended_at: now,
    })
}

/// Returns when the logs were changed that the plan waits for, as they are still being written to.
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
    /// Asks the pass to stop after the job at hand.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns a number that grows as the pass gets on.
    pub(super) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    /// Has vectors made for a while.
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
            // The reason may quote a file, which a log that is sent around must not.
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
    /// Returns the line for the log; `None` when nothing was done.
    pub(super) fn log_line(&self) -> Option<String> {
        let RunReport { jobs, written, unchanged, failed, left, .. } = &self.report;
        let moved = self.moved_logs();
        if jobs.is_empty() && *left == 0 {
            return moved;
        }
        // The last jobs are those that people read first.
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

    /// Returns whether all that is due now was tried in vain: what was not, or was made and is due once
    /// more, came while the pass was at work.
    pub(super) fn has_tried_all_due(&self) -> bool {
        let tried = |job: &CompactionJob| {
            let period = job.period.to_string();
            let mut jobs = self.report.jobs.iter();
            let job = jobs.rfind(|it| it.tier == job.tier.name() && it.period == period);
            job.is_some_and(|it| !matches!(it.outcome, "written" | "unchanged"))
        };
        self.plan.jobs.iter().all(tried)
    }

    /// Says which logs moved.
    fn moved_logs(&self) -> Option<String> {
        let RunReport { archived, joined, archive_held, .. } = &self.report;
        let mut said = Vec::new();
        if !joined.is_empty() {
            said.push(format!("added late lines to {} archived logs", joined.len()));
        }
        if !archived.is_empty() {
            said.push(format!("archived {} logs", archived.len()));
        }
        said.extend(archive_held.iter().map(|why| format!("archived no more logs: {why}")));
        (!said.is_empty()).then(|| said.join(", "))
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

    /// The order to make all that is due in a root.
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

    /// Makes a root with one log of a week that has closed.
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
    fn a_pass_without_work_wakes_nobody() {
        let root = root();
        let root = root.path();
        let done = order(root).run().unwrap();
        assert!(done.log_line().is_some_and(|it| it.contains("memory/weekly/2020-W11.md")));
        let mut watch = FolderWatcher::new();
        watch.watch_folders(root, &watched_folders(&Layout::new(root, "memory"))).unwrap();
        let again = order(root).run().unwrap();
        assert_eq!(again.log_line(), None);
        assert!(again.snapshot.is_some() && again.snapshot == done.snapshot);
        // Events come in their order, so whatever the pass caused comes before this one.
        let months = root.join("memory/monthly");
        touch(&months.join("mark"), "");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let dirty = runtime.block_on(watch.next_changes());
        assert_eq!(dirty.folders().keys().collect::<Vec<_>>(), [&months]);
    }

    #[test]
    fn a_pass_that_is_stopped_leaves_the_rest() {
        let root = root();
        let order = order(root.path());
        order.heartbeat.stop();
        let done = order.run().unwrap();
        assert_eq!(
            done.log_line().as_deref(),
            Some("wrote nothing (0 written, 0 unchanged, 0 failed, 2 left)")
        );
    }

    #[test]
    fn a_look_makes_nothing() {
        let root = root();
        let done = RunOrder { tiers: BTreeSet::new(), ..order(root.path()) }.run().unwrap();
        assert_eq!((done.plan.jobs.len(), done.log_line()), (2, None));
        assert!(!root.path().join("memory/weekly").exists());
    }
}
