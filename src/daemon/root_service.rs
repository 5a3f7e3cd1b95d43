//! One root as the daemon serves it: its lock, its agenda, and what is wanted of it.
//!
//! A root that cannot be served now (its folder is missing, its `memoird.yaml` is wrong, another
//! host or another daemon folds it) is asked about again once a minute, and at once when the folder
//! above it tells of it; it stops no other root.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use super::{
    change_detection::{ChangeDetector, DetectionMode},
    error::RootError,
    folder_snapshot::{self, FolderSnapshot, NameFilter, WatchedFolder},
    metrics::RootMetrics,
    model_wait::ModelWait,
    problem_hook::RootProblem,
    repeat_filter::RepeatFilter,
    run::{BATCH_TRIGGER, EMBED_TRIGGER, EmbedFailure, FinishedRun},
    runtime_config::RuntimeConfig,
    schedule::{self, Agenda},
    state_file::DaemonState,
    watch::{ChangedPaths, FolderWatcher},
};
use crate::{
    compaction::integrity::rebuild::CheckDepth,
    config::{self, root::RootSettings, settings::EngineKind},
    memory::item::Tier,
    model::CallError,
    store::fs::{
        filesystem::{self, FileSystemKind},
        layout::Layout,
        lock::DaemonLock,
        vault::Vault,
    },
};

/// How often a root is looked at though nobody told of a change: events can be lost.
const SCAN_INTERVAL: Duration = Duration::from_secs(15 * 60);
/// How often a root is looked at whose changes nobody tells of.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// How often every row of the database is read, beside once at the start: a file that a disk has
/// damaged is best noticed while copies of it still exist elsewhere.
const FULL_CHECK_INTERVAL: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A pass that could not be made is tried again after so long, then after twice as long, …
const BACKOFF_MIN: Duration = Duration::from_secs(1);
/// … up to this.
const BACKOFF_MAX: Duration = Duration::from_secs(10 * 60);
/// Where another process makes a pass, it is asked again after so long.
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(5);
/// A job that failed is tried again after so long; three failures park it.
const JOB_RETRY_DELAY: Duration = Duration::from_secs(60);

/// How often a batch is asked after that a provider works on.
const BATCH_POLL_INTERVAL: TimeDelta = TimeDelta::minutes(10);

/// One root.
#[derive(Debug)]
pub(super) struct RootService {
    path: PathBuf,
    open: Option<OpenRoot>,
    /// It was served before: if it stands empty then, its disk is gone, and nothing is put in its place.
    was_opened: bool,
    /// Why it cannot be served, or its last run failed.
    root_errors: RepeatFilter,
    /// Why the last lines got no vectors.
    embedding_errors: RepeatFilter,
    /// Why batches could not be fetched or sent.
    batch_errors: RepeatFilter,
    /// How long it waits when the clock makes something due, so that many roots take turns.
    jitter: Duration,
    change_detector: ChangeDetector,
    /// A pass over it is under way.
    is_running: bool,
    /// How many have ended since it is served.
    run_count: u64,
    /// How many jobs ended in which way.
    job_counts: BTreeMap<&'static str, u64>,
    pending: Option<PendingRun>,
    scan_at: Instant,
    /// When it is looked at next because nobody tells of changes.
    poll_at: Option<Instant>,
    /// It is to be looked at once, since what changed in a folder before it was watched nobody tells of.
    poll_once: bool,
    /// When the database is to be looked at closely.
    full_check_at: Instant,
    /// When failed jobs are to be tried again.
    retry_jobs_at: Option<Instant>,
    /// When a batch is to be asked after.
    batch_at: Option<DateTime<Utc>>,
    /// Work that waits for its model.
    model_wait: Option<ModelWait>,
    /// Lines that wait for their vectors.
    embedding_wait: Option<ModelWait>,
    backoff: RunBackoff,
    /// Why nothing is written until a person has done something.
    pause_reason: Option<String>,
    /// Counts of the last plan: due, stuck.
    due: usize,
    stuck: usize,
}

/// What is there while a root can be served.
#[derive(Debug)]
pub(super) struct OpenRoot {
    _lock: DaemonLock,
    /// The files that the paths of root and lock named when they were opened.
    identity: RootIdentity,
    pub(super) settings: RootSettings,
    pub(super) vault: Vault,
    pub(super) agenda: Agenda,
    since: DateTime<Utc>,
}

/// A pass that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingRun {
    pub(super) trigger: &'static str,
    /// What to make; nothing for a look alone.
    pub(super) tiers: BTreeSet<Tier>,
}

/// How long to leave a root alone that cannot be worked on.
#[derive(Clone, Copy, Debug, Default)]
struct RunBackoff {
    delay: Duration,
    until: Option<Instant>,
}

/// Device and inode of the root's folder and of its lock file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RootIdentity([(u64, u64); 2]);

impl OpenRoot {
    /// Returns whether a pass asks a model.
    pub(super) fn asks_model(&self) -> bool {
        self.settings.settings.engine == EngineKind::Model
    }
}

impl RootService {
    /// Makes a root that is not opened yet.
    pub(super) fn new(path: PathBuf) -> Self {
        let at = Instant::now();
        Self {
            open: None,
            was_opened: false,
            root_errors: RepeatFilter::default(),
            embedding_errors: RepeatFilter::default(),
            batch_errors: RepeatFilter::default(),
            jitter: Duration::ZERO,
            change_detector: ChangeDetector::new(),
            is_running: false,
            run_count: 0,
            job_counts: BTreeMap::new(),
            pending: None,
            scan_at: at + SCAN_INTERVAL,
            poll_at: None,
            poll_once: false,
            full_check_at: at,
            retry_jobs_at: None,
            batch_at: None,
            model_wait: None,
            embedding_wait: None,
            backoff: RunBackoff::default(),
            pause_reason: None,
            due: 0,
            stuck: 0,
            path,
        }
    }

    /// Returns what is there while it can be served.
    pub(super) fn open(&self) -> Option<&OpenRoot> {
        self.open.as_ref()
    }

    /// Starts to serve it: settings, lock, watches; what is due is wanted at once.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be served now. Until then the folder above it is watched for it.
    pub(super) fn start(
        &mut self,
        loaded: &RuntimeConfig,
        watch: &mut FolderWatcher,
        now: DateTime<Utc>,
    ) -> Result<(), RootError> {
        let Err(error) = self.try_start(loaded, watch, now) else { return Ok(()) };
        self.watch_for_appearance(watch);
        // What was put right before the folders were watched, nobody will tell of.
        if matches!(error, RootError::Lock(_) | RootError::Model { .. }) {
            return Err(error);
        }
        self.try_start(loaded, watch, now).inspect_err(|_| self.watch_for_appearance(watch))
    }

    fn try_start(
        &mut self,
        loaded: &RuntimeConfig,
        watch: &mut FolderWatcher,
        now: DateTime<Utc>,
    ) -> Result<(), RootError> {
        if self.was_opened && is_empty(&self.path) {
            return Err(RootError::Emptied { root: self.path.clone() });
        }
        let settings = loaded.settings_of(&self.path)?;
        let vault = Vault::for_root(&settings)?;
        vault.create_private_dir()?;
        let layout = vault.layout();
        let lock = DaemonLock::acquire(layout)?;
        let identity = RootIdentity::of(layout)
            .map_err(|source| RootError::Inaccessible { root: self.path.clone(), source })?;
        let model = &settings.settings.model;
        let is_model = settings.settings.engine == EngineKind::Model;
        if is_model && model.batch && !model.provider.supports_batches() {
            let root = self.path.display();
            tracing::warn!(
                "{root}: model.batch: this provider has no batches; it is asked directly"
            );
        }
        self.jitter = schedule::jitter(&self.path, loaded.roots.len());
        let agenda = Agenda::new(&settings, self.jitter, now);
        self.open = Some(OpenRoot { _lock: lock, identity, settings, vault, agenda, since: now });
        self.was_opened = true;
        self.root_errors.clear();
        self.backoff = RunBackoff::default();
        self.change_detector.reset();
        self.run_count = 0;
        self.model_wait = None;
        self.scan_at = Instant::now() + SCAN_INTERVAL + self.jitter;
        self.request_run("start", Tier::ALL.into());
        self.update_watches(watch);
        self.write_state();
        Ok(())
    }

    /// Has the folder above tell when it is there, and itself when what is wrong with it changes.
    pub(super) fn watch_for_appearance(&self, watch: &mut FolderWatcher) {
        let Some((above, name)) = self.path.parent().zip(self.path.file_name()) else { return };
        let only = |name: &std::ffi::OsStr| NameFilter::Only([name.to_owned()].into());
        let folders = [
            WatchedFolder { path: above.to_owned(), interest: only(name) },
            WatchedFolder {
                path: self.path.clone(),
                interest: only(config::root::ROOT_FILE_NAME.as_ref()),
            },
        ];
        // It is asked about once a minute all the same.
        if let Err(error) = watch.watch_folders(&self.path, &folders) {
            tracing::debug!("{}: {error}", self.path.display());
        }
    }

    /// Stops serving it; its lock is free again.
    pub(super) fn close(&mut self, watch: &mut FolderWatcher) {
        watch.unwatch_root(&self.path);
        self.open = None;
        self.pending = None;
        self.change_detector.reset();
    }

    /// Reads its settings anew. Wrong ones are refused, and those at hand stay.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with them.
    pub(super) fn reload_settings(
        &mut self,
        loaded: &RuntimeConfig,
        now: DateTime<Utc>,
    ) -> Result<(), RootError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let settings = loaded.settings_of(&self.path)?;
        if settings != open.settings {
            let vault = Vault::for_root(&settings)?;
            open.agenda = Agenda::new(&settings, self.jitter, now);
            open.settings = settings;
            open.vault = vault;
            // Another model, or another key, may answer at once.
            self.model_wait = None;
        }
        Ok(())
    }

    /// Returns whether root and lock are still the files that were opened: a folder that was moved
    /// away, or whose private folder was deleted, is no longer ours.
    pub(super) fn is_same_folder(&self) -> bool {
        let intact = |open: &OpenRoot| {
            RootIdentity::of(open.vault.layout()).is_ok_and(|it| it == open.identity)
        };
        self.open.as_ref().is_none_or(intact)
    }

    /// Returns the folders that changes are told of.
    pub(super) fn watched_folders(&self) -> Vec<WatchedFolder> {
        self.open
            .as_ref()
            .map_or_else(Vec::new, |it| folder_snapshot::watched_folders(it.vault.layout()))
    }

    /// Watches its folders, those that have appeared since too; else it is polled.
    pub(super) fn update_watches(&mut self, watch: &mut FolderWatcher) {
        let Some(open) = &self.open else { return };
        let distant = match filesystem::detect(open.vault.layout().root()) {
            Ok(FileSystemKind::Network(name) | FileSystemKind::UnknownFuse(name)) => {
                Some(format!("on {name} the system does not tell of what other hosts change"))
            }
            _ => None,
        };
        let placed = watch.watch_folders(&self.path, &self.watched_folders());
        let why = distant.or_else(|| placed.err().map(|it| watch_failure(&it)));
        if !self.change_detector.set_watch_failure(why) {
            return;
        }
        let root = self.path.display();
        match self.change_detector.mode() {
            DetectionMode::Notified => {
                self.poll_at = None;
                tracing::info!("{root}: the system tells of changes again");
            }
            DetectionMode::Polled(why) => {
                tracing::warn!(
                    "{root}: {why}; looking every {} s instead",
                    POLL_INTERVAL.as_secs()
                );
                self.poll_at = Some(Instant::now() + POLL_INTERVAL);
            }
        }
        self.write_state();
    }

    /// Watches the folders that a pass has made.
    pub(super) fn update_watches_after_run(&mut self, watch: &mut FolderWatcher) {
        let before = watch.watched(&self.path);
        self.update_watches(watch);
        self.poll_once |= watch.watched(&self.path) != before;
    }

    /// Takes note of a change that the system told of. Returns whether it is about a folder that could
    /// not be served, and may be now.
    pub(super) fn on_changes(&mut self, dirty: &ChangedPaths, now: DateTime<Utc>) -> bool {
        if self.open.is_none() {
            return true;
        }
        if self.pause_reason.is_some() {
            // A person may be putting right what it waits for, and a pass that pauses causes no event.
            self.backoff.until = None;
        }
        self.change_detector.on_changes(dirty.in_root(&self.path), dirty.is_overflow(), now);
        false
    }

    /// Returns when its burst of changes ends, if nothing else comes. While a pass is under way nobody
    /// knows what is news.
    pub(super) fn burst_deadline(&self) -> Option<Instant> {
        self.change_detector.burst_deadline().filter(|_| !self.is_running)
    }

    /// Ends the burst: if it is news, the root is to be passed over.
    pub(super) fn end_burst(&mut self, watch: &mut FolderWatcher) {
        if !self.change_detector.end_burst() {
            return;
        }
        self.update_watches(watch);
        self.request_run("change", self.tiers_on_change());
        self.write_state();
    }

    /// Returns what is made of a change as soon as it is noticed; nothing for a look alone.
    fn tiers_on_change(&self) -> BTreeSet<Tier> {
        let all = self.open.as_ref().is_some_and(|it| it.agenda.is_on_change());
        if all { Tier::ALL.into() } else { BTreeSet::new() }
    }

    /// Wants whatever its agenda and its timers ask for at `now`.
    pub(super) fn tick(&mut self, watch: &mut FolderWatcher, now: DateTime<Utc>) {
        let Some(open) = &mut self.open else { return };
        let tiers = open.agenda.take_due(now);
        if !tiers.is_empty() {
            self.request_run("tick", tiers);
        }
        let at = Instant::now();
        if self.retry_jobs_at.is_some_and(|it| it <= at) {
            self.retry_jobs_at = None;
            self.request_run("again", Tier::ALL.into());
        }
        if self.scan_at <= at {
            self.update_watches(watch);
            self.scan_at = at + SCAN_INTERVAL;
            self.request_run("scan", self.tiers_on_change());
        }
        if let Some((missed, distrusted)) = self.change_detector.count_missed() {
            self.report_missed(missed, distrusted);
        }
        // A clock that was set back does not put it off.
        if self.batch_at.is_some_and(|it| it <= now || it > now + BATCH_POLL_INTERVAL) {
            self.batch_at = None;
            self.request_run(BATCH_TRIGGER, BTreeSet::new());
        }
        let is_over = |it: &Option<ModelWait>| it.as_ref().is_some_and(|it| it.is_over(now));
        if is_over(&self.model_wait) && self.pending.is_none() && !self.is_running {
            self.request_run("again", Tier::ALL.into());
        }
        if is_over(&self.embedding_wait) && self.pending.is_none() && !self.is_running {
            self.request_run(EMBED_TRIGGER, BTreeSet::new());
        }
    }

    /// Says that changes were found that nobody had told of.
    fn report_missed(&mut self, missed: usize, distrusted: bool) {
        let root = self.path.display();
        tracing::warn!("{root}: {missed} files changed, and the system had not told of it");
        if distrusted {
            let every = POLL_INTERVAL.as_secs();
            tracing::warn!("{root}: so twice in a row; looking every {every} s from now on");
            self.poll_at = Some(Instant::now() + POLL_INTERVAL);
        }
        self.write_state();
    }

    /// Returns whether it is time to look at a folder of whose changes nobody tells, and puts the next
    /// such look off.
    pub(super) fn take_poll_turn(&mut self) -> bool {
        let at = Instant::now();
        let is_polled = self.poll_at.is_some_and(|it| it <= at);
        if self.open.is_none() || self.is_running || !(is_polled || self.poll_once) {
            return false;
        }
        self.poll_once = false;
        self.poll_at = self.poll_at.map(|_| at + POLL_INTERVAL);
        true
    }

    /// Takes note of what such a look found.
    pub(super) fn on_polled(&mut self, found: Option<&FolderSnapshot>) {
        if self.open.is_some() && !self.is_running {
            self.change_detector.on_polled(found);
        }
    }

    /// Wants to be looked at, since the machine slept or its clock was set.
    pub(super) fn on_resume(&mut self) {
        if self.open.is_some() {
            self.request_run("wake", self.tiers_on_change());
        }
    }

    /// Returns for how long nothing is to be done by the clock.
    pub(super) fn time_until_next(&self, now: DateTime<Utc>) -> Duration {
        let Some(open) = &self.open else { return Duration::MAX };
        let at = Instant::now();
        // One that has passed waits for another root's pass to end, not for the clock.
        let retry = self.backoff.until.filter(|it| self.pending.is_some() && *it > at);
        let peek = self.poll_at.filter(|_| !self.is_running);
        let timers = [
            Some(self.scan_at),
            peek,
            self.retry_jobs_at,
            self.change_detector.unreported_deadline(),
            retry,
        ];
        let timers = timers.into_iter().flatten().map(|it| it.saturating_duration_since(at));
        let is_idle = self.pending.is_none() && !self.is_running;
        let until = |it: &Option<ModelWait>| it.as_ref().filter(|_| is_idle).map(|it| it.until);
        let clock = [
            open.agenda.next(),
            self.batch_at,
            until(&self.model_wait),
            until(&self.embedding_wait),
        ];
        let clock = clock.into_iter().flatten();
        let clock = clock.map(|it| (it - now).to_std().unwrap_or_default());
        timers.chain(clock).min().unwrap_or(Duration::MAX)
    }

    /// Asks for a pass; one that is asked for already does both.
    pub(super) fn request_run(&mut self, trigger: &'static str, tiers: BTreeSet<Tier>) {
        match &mut self.pending {
            Some(want) => {
                if want.tiers.is_empty() {
                    want.trigger = trigger;
                }
                want.tiers.extend(tiers);
            }
            None => self.pending = Some(PendingRun { trigger, tiers }),
        }
    }

    /// Returns whether a pass is wanted and nothing speaks against it now.
    pub(super) fn is_ready(&self) -> bool {
        let waits = self.backoff.until.is_some_and(|it| Instant::now() < it);
        self.open.is_some() && self.pending.is_some() && !self.is_running && !waits
    }

    /// Returns how closely the next pass is to look at the database before it.
    pub(super) fn check_depth(&self) -> CheckDepth {
        if self.full_check_at <= Instant::now() { CheckDepth::Full } else { CheckDepth::Quick }
    }

    /// Takes the pass that is wanted, to make it.
    pub(super) fn take_pending(&mut self, watch: &FolderWatcher) -> Option<PendingRun> {
        let want = self.pending.take()?;
        self.is_running = true;
        self.change_detector.on_run_started(watch.watched(&self.path));
        self.write_state();
        Some(want)
    }

    /// Takes note of what a pass found.
    pub(super) fn on_run_finished(&mut self, done: FinishedRun) {
        self.is_running = false;
        self.run_count += 1;
        for job in &done.report.jobs {
            *self.job_counts.entry(job.outcome).or_default() += 1;
        }
        self.backoff = RunBackoff::default();
        self.pause_reason = None;
        let failed = done.report.jobs.iter().any(|it| it.outcome == "failed");
        let unsent = done.scheduled.is_err();
        let closed = done.model_unavailable.as_ref().filter(|_| !done.plan.jobs.is_empty());
        let unanswered = done.report.model.as_deref();
        self.model_wait =
            ModelWait::after(self.model_wait.as_ref(), closed, unanswered, done.ended_at);
        let again = (failed || unsent) && self.model_wait.is_none();
        self.retry_jobs_at = again.then(|| Instant::now() + JOB_RETRY_DELAY);
        let scheduled = done.scheduled.as_ref().copied().unwrap_or_default();
        // A look that did not ask after it does not put it off.
        let batch_at = self.batch_at.unwrap_or(done.started_at + BATCH_POLL_INTERVAL);
        self.batch_at = scheduled.batch_pending.then_some(batch_at);
        if scheduled.run_again {
            self.request_run("again", Tier::ALL.into());
        }
        self.report_batch_error(done.batch_error.as_ref().or(done.scheduled.as_ref().err()));
        self.on_lines_embedded(done.embedded.as_ref(), done.ended_at);
        if done.check_depth == CheckDepth::Full {
            self.full_check_at = Instant::now() + FULL_CHECK_INTERVAL;
        }
        self.due = done.plan.jobs.len() + done.plan.due_after.len();
        self.stuck = count_stuck(&done);
        if let Some(open) = &mut self.open {
            open.agenda.update(
                &done.plan,
                &done.being_written,
                done.last_change,
                (done.started_at, done.ended_at),
            );
        }
        let is_done = failed || self.model_wait.is_some() || done.has_tried_all_due();
        self.change_detector.on_run_finished(done.snapshot, is_done, done.ended_at);
        self.write_state();
    }

    /// Takes note of what came of having vectors made.
    fn on_lines_embedded(
        &mut self,
        outcome: Option<&Result<usize, EmbedFailure>>,
        at: DateTime<Utc>,
    ) {
        match outcome {
            None => {}
            Some(Ok(logs_left)) => {
                self.embedding_wait = None;
                self.embedding_errors.clear();
                if *logs_left > 0 {
                    self.request_run(EMBED_TRIGGER, BTreeSet::new());
                }
            }
            Some(Err(failure)) => self.postpone_embedding(failure, at),
        }
    }

    /// Logs why batches could not be fetched or sent, once per cause.
    fn report_batch_error(&mut self, error: Option<&CallError>) {
        let Some(error) = error else { return self.batch_errors.clear() };
        if self.batch_errors.is_new_call_error(error) {
            tracing::warn!("{}: batches: {error}", self.path.display());
        }
    }

    /// Takes note that no vectors can be had now: that is tried again, later each time.
    pub(super) fn postpone_embedding(&mut self, failure: &EmbedFailure, at: DateTime<Utc>) {
        let reason = failure.to_string();
        let is_new = match failure {
            EmbedFailure::Call(error) => self.embedding_errors.is_new_call_error(error),
            EmbedFailure::Other(reason) => self.embedding_errors.is_new(reason.clone()),
        };
        if is_new {
            tracing::warn!("{}: cannot compute vectors: {reason}", self.path.display());
        }
        self.embedding_wait =
            ModelWait::after(self.embedding_wait.as_ref(), None, Some(&reason), at);
    }

    /// Returns whether it makes sense to ask for vectors now.
    pub(super) fn may_embed(&self, now: DateTime<Utc>) -> bool {
        self.embedding_wait.as_ref().is_none_or(|it| it.is_over(now))
    }

    /// Takes note of a pass that another process kept from being made: it is wanted again soon.
    pub(super) fn on_lock_busy(&mut self, want: PendingRun) {
        let backoff = self.backoff;
        self.on_run_failed(want);
        self.backoff = RunBackoff { until: Some(Instant::now() + BUSY_RETRY_DELAY), ..backoff };
    }

    /// Takes note of a pass that could not be made: it is wanted again, later each time.
    pub(super) fn on_run_failed(&mut self, want: PendingRun) -> Duration {
        self.is_running = false;
        self.change_detector.on_run_failed();
        self.request_run(want.trigger, want.tiers);
        let delay = (self.backoff.delay * 2).clamp(BACKOFF_MIN, BACKOFF_MAX);
        self.backoff = RunBackoff { delay, until: Some(Instant::now() + delay) };
        delay
    }

    /// Takes note of whether the pass that failed waits for a person, and tells other processes.
    pub(super) fn set_pause_reason(&mut self, why: Option<String>) {
        if self.pause_reason != why {
            self.pause_reason = why;
            self.write_state();
        }
    }

    /// Returns whether `cause` keeps the root from working only now, and remembers it.
    pub(super) fn is_new_error(&mut self, cause: String) -> bool {
        self.root_errors.is_new(cause)
    }

    /// Forgets the last error: the next one is logged even if it is the same.
    pub(super) fn clear_last_error(&mut self) {
        self.root_errors.clear();
    }

    /// Returns how many jobs are due and how many are stuck, as of the last look.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.due, self.stuck)
    }

    /// Returns what Prometheus is told of it.
    pub(super) fn metrics(&self) -> RootMetrics {
        RootMetrics {
            is_served: self.open.is_some(),
            due: self.due,
            stuck: self.stuck,
            is_paused: self.pause_reason.is_some(),
            is_waiting: self.model_wait.is_some(),
            is_polled: matches!(self.change_detector.mode(), DetectionMode::Polled(_)),
            missed: self.change_detector.missed,
            overflows: self.change_detector.overflows,
            runs: self.run_count,
            jobs: self.job_counts.clone(),
            last_scan: self.change_detector.last_scan,
            next: self.open.as_ref().and_then(|it| it.agenda.next()),
        }
    }

    /// Returns what needs a person.
    pub(super) fn problems(&self) -> Vec<RootProblem> {
        let stuck = (self.stuck > 0).then(|| RootProblem {
            kind: "stuck",
            text: format!("{} jobs are stuck; `memoird status` says why", self.stuck),
        });
        let waiting = self.model_wait.as_ref().filter(|it| it.is_problem());
        let waiting = waiting.map(|it| RootProblem { kind: "model", text: it.reason.clone() });
        let paused = self.pause_reason.clone().map(|text| RootProblem { kind: "paused", text });
        let learning = self.embedding_wait.as_ref().filter(|it| it.is_problem());
        let learning =
            learning.map(|it| RootProblem { kind: "embeddings", text: it.reason.clone() });
        stuck.into_iter().chain(waiting).chain(paused).chain(learning).collect()
    }

    /// Writes what other processes may want to know.
    fn write_state(&self) {
        let Some(open) = &self.open else { return };
        let ChangeDetector { missed, overflows, last_event, last_scan, .. } = self.change_detector;
        let why = match self.change_detector.mode() {
            DetectionMode::Notified => None,
            DetectionMode::Polled(why) => Some(why.clone()),
        };
        let state = DaemonState {
            pid: std::process::id(),
            since: open.since,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: if why.is_some() { "poll" } else { "inotify" },
            why,
            last_event,
            last_scan,
            missed,
            overflows,
            busy: self.is_running || self.pending.is_some(),
            passes: self.run_count,
            paused: self.pause_reason.clone(),
            waiting: self.model_wait.as_ref().map(|it| it.reason.clone()),
            waiting_until: self.model_wait.as_ref().map(|it| it.until),
        };
        if let Err(error) = state.write(&open.vault.layout().private_dir()) {
            tracing::debug!("{}: daemon.json: {error}", self.path.display());
        }
    }
}

impl RootIdentity {
    fn of(layout: &Layout) -> io::Result<Self> {
        let id = |path: &Path| fs::metadata(path).map(|it| (it.dev(), it.ino()));
        Ok(Self([id(layout.root())?, id(&layout.daemon_lock())?]))
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut it| it.next().is_none())
}

/// Says in plain words why the system does not watch.
fn watch_failure(error: &notify::Error) -> String {
    use notify::ErrorKind;
    match &error.kind {
        ErrorKind::MaxFilesWatch => {
            "no more folders can be watched (the limit is fs.inotify.max_user_watches)".to_owned()
        }
        // Too many watchers, and too many open files.
        ErrorKind::Io(source) if source.raw_os_error() == Some(24) => {
            "no more watchers can be made (the limit is fs.inotify.max_user_instances, or that of \
             open files)"
                .to_owned()
        }
        _ => format!("the system does not tell of changes ({error})"),
    }
}

fn count_stuck(done: &FinishedRun) -> usize {
    use crate::compaction::plan::WaitCause;
    done.plan
        .waiting
        .iter()
        .filter(|it| matches!(it.cause, WaitCause::Stuck(_) | WaitCause::Damaged(_)))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served() -> RootService {
        RootService::new("/no".into())
    }

    fn done(at: DateTime<Utc>) -> FinishedRun {
        let (report, plan, written, changed, found, closed) = Default::default();
        let scheduled = Ok(crate::model::ScheduledOutcome::default());
        FinishedRun {
            report,
            plan,
            being_written: written,
            last_change: changed,
            snapshot: found,
            model_unavailable: closed,
            check_depth: CheckDepth::Quick,
            batch_error: None,
            scheduled,
            embedded: None,
            started_at: at,
            ended_at: at,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_cannot_be_made_is_tried_less_and_less_often() {
        let mut root = served();
        let want = PendingRun { trigger: "change", tiers: Tier::ALL.into() };
        let delays: Vec<u64> =
            (0..12).map(|_| root.on_run_failed(want.clone()).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(root.pending, Some(want));
    }

    #[tokio::test(start_paused = true)]
    async fn the_database_is_looked_at_closely_at_first_and_once_a_week() {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let mut root = served();
        let mut close = Vec::new();
        for day in 0..20 {
            let look = root.check_depth();
            if look == CheckDepth::Full {
                close.push(day);
            }
            root.on_run_finished(FinishedRun { check_depth: look, ..done(DateTime::UNIX_EPOCH) });
            tokio::time::advance(DAY).await;
        }
        assert_eq!(close, [0, 7, 14]);
    }

    #[test]
    fn what_is_wanted_twice_is_done_once() {
        let mut root = served();
        root.request_run("scan", BTreeSet::new());
        root.request_run("tick", [Tier::Weekly].into());
        root.request_run("change", [Tier::Extract].into());
        let expected = PendingRun { trigger: "tick", tiers: [Tier::Extract, Tier::Weekly].into() };
        assert_eq!(root.pending, Some(expected));
    }
}
