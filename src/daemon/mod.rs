//! The daemon: one loop over one `enum DaemonEvent`.
//!
//! Whatever can wake it is an [`DaemonEvent`], and [`DaemonLoop::handle`] is the only place that answers. It
//! decides nothing about memory: it says when a pass is to be made over which root, and the plan
//! says what is due.
//!
//! - `watch`: the system's word that something changed.
//! - `snapshot`: what stood in the folders at the last look.
//! - `noticing`: what of the system's word is news, and whether it can be trusted.
//! - `schedule`: crontab lines, and what falls due between two of them; pure.
//! - `waiting`: work that waits for its model; pure.
//! - `opening`: roots that are opened, let go, and opened again.
//! - `root`: one root: lock, agenda, what is wanted of it.
//! - `passes`: how many passes are made at once, and whose turn it is.
//! - `pass`: a pass, on a thread of its own.
//! - [`sandbox`]: what it can do no longer once it has begun.
//! - [`runtime_config`]: the configuration, read at start and again on SIGHUP.
//! - [`error`]: what keeps it from starting, or a root from being served.
//! - `problem`: what a program of the user's own is told.
//! - `signals`, `program`: what asks it to end, or to be started again.
//! - `notify`: what the service manager is told.
//! - `metrics`: what Prometheus is told.
//! - `state`: what other processes are told.
//!
//! `commands::run` calls [`run`].
//!
//! # Invariants
//!
//! - One daemon per root: it holds the root's lock for as long as it serves it.
//! - One pass at a time over a root, and few over all of them. It takes the write lock for each commit
//!   only, so other programs work beside it.
//! - What fails for one root, its lock too, is no other root's matter.
//! - Nothing in the loop waits: passes run on the blocking pool, and each of its timers is a
//!   deadline that moves on when it has passed, so that no state makes it spin. Nothing that comes
//!   again and again comes sooner than after half a minute.
//! - The watchdog is fed by the loop itself. A loop that hangs starves it, and so does a pass that
//!   gets nowhere for long.
//! - A pass that fails or falls over ends itself, never the daemon.
//! - The log holds paths, periods, and counts; no text of a log.

mod change_detection;
pub mod error;
mod executable;
mod folder_snapshot;
mod metrics;
mod model_wait;
mod notify;
mod problem_hook;
mod repeat_filter;
mod root_opening;
mod root_service;
mod run;
mod run_queue;
pub mod runtime_config;
pub mod sandbox;
mod schedule;
mod signals;
mod state_file;
mod watch;

use std::{
    collections::BTreeMap,
    future::pending,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use self::{
    error::{DaemonError, RootError, chain},
    executable::Executable,
    folder_snapshot::FolderSnapshot,
    metrics::Metrics,
    notify::ServiceManager,
    problem_hook::Notifier,
    root_service::{PendingRun, RootService},
    run::{EmbedFailure, Heartbeat, RunOrder},
    run_queue::{RunQueue, RunResult},
    runtime_config::RuntimeConfig,
    sandbox::SandboxedFolders,
    signals::{Signal, Signals},
    watch::{ChangedPaths, FolderWatcher},
};
use crate::{
    clock,
    compaction::CompactionError,
    config,
    engine::configured,
    model::{connect, embedding::EmbeddingInput},
    privacy,
    session::queue,
    store::fs::{lock::LockError, vault::Vault},
};

/// A sleep is never longer: the wall clock may be set, and timers stand still in suspend.
const CLOCK_INTERVAL: Duration = Duration::from_secs(60);
/// The same while a test moves the clock in a file.
const CLOCK_FILE_INTERVAL: Duration = Duration::from_millis(200);
/// How long a pass waits in all for a model that fails; the breaker keeps it away longer.
const MODEL_PATIENCE: Duration = Duration::from_secs(60);
/// How long a stop waits for the job at hand. A kill after that loses no byte either.
const STOP_WAIT: Duration = Duration::from_secs(20);
/// A clock that ran so much further than our own timers was set, or we slept.
const CLOCK_JUMP: TimeDelta = TimeDelta::minutes(2);
/// Both are at work seldom: one turns the loop, the other is there when it is busy.
const WORKER_THREADS: usize = 2;

/// All that can wake the daemon.
#[derive(Debug)]
enum DaemonEvent {
    /// Something changed in a folder.
    FilesChanged(ChangedPaths),
    /// No further change came to this root for a while.
    BurstEnded(PathBuf),
    /// The clock is to be read: a tick, a period that closes, a scan, or a retry may be due.
    Tick,
    /// A pass has ended.
    RunFinished(PathBuf, PendingRun, Box<RunResult>),
    /// A look at a folder of whose changes nobody tells.
    FolderPolled(PathBuf, Option<FolderSnapshot>),
    /// A signal came.
    Signal(Signal),
    /// The service manager wants to hear from us.
    Watchdog,
}

struct DaemonLoop<'a> {
    load_config: &'a dyn Fn() -> Result<RuntimeConfig, config::ConfigError>,
    runtime_config: RuntimeConfig,
    roots: BTreeMap<PathBuf, RootService>,
    run_queue: RunQueue,
    polls: JoinSet<(PathBuf, Option<FolderSnapshot>)>,
    watcher: FolderWatcher,
    signals: Signals,
    manager: ServiceManager,
    executable: Executable,
    sandbox: SandboxedFolders,
    notifier: Notifier,
    metrics: Metrics,
    started_at: DateTime<Utc>,
    watchdog_interval: Option<Duration>,
    watchdog_at: Option<Instant>,
    tick_at: Instant,
    /// When roots that are not open are asked about again.
    reopen_at: Instant,
    /// The time at the last reading that succeeded, and when that was.
    now: DateTime<Utc>,
    clock_read_at: Instant,
}

/// Why the daemon ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonExit {
    /// It was asked to.
    Stopped,
    /// It is to be started again: it is to serve a folder that its sandbox does not hold.
    Restart,
}

/// Serves all roots that `load` names until a signal ends it.
///
/// # Errors
///
/// Returns an error when it cannot start: the configuration is wrong, or none of the roots can be
/// served, for a reason that waiting does not mend.
pub fn run(
    load: &dyn Fn() -> Result<RuntimeConfig, config::ConfigError>,
    shut_in: bool,
) -> Result<DaemonExit, DaemonError> {
    // Before there is a second thread: rules hold for the one that asks for them, and all it starts.
    let confined = if shut_in { sandbox::enter(&load()?) } else { SandboxedFolders::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .map_err(DaemonError::Runtime)?;
    let done = runtime.block_on(async { DaemonLoop::start(load, confined)?.run().await });
    // A pass that did not stop in time must not hold up the end.
    runtime.shutdown_background();
    done
}

impl<'a> DaemonLoop<'a> {
    fn start(
        load: &'a dyn Fn() -> Result<RuntimeConfig, config::ConfigError>,
        confined: SandboxedFolders,
    ) -> Result<Self, DaemonError> {
        let now = clock::now()?;
        let loaded = load()?;
        let signals = Signals::new().map_err(DaemonError::Runtime)?;
        let mut watch = FolderWatcher::new();
        let mut roots = BTreeMap::new();
        let mut refused = None;
        raise_file_limit();
        for path in &loaded.roots {
            let mut served = RootService::new(path.clone());
            if let Err(error) = root_opening::start(&mut served, path, &loaded, &mut watch, now) {
                // A folder that is not there may be on a disk that is not there yet.
                refused = refused.or(Some(error).filter(|it| !it.is_missing()));
            }
            roots.insert(path.clone(), served);
        }
        if let Some(error) = refused
            && roots.values().all(|it| it.open().is_none())
        {
            return Err(error.into());
        }
        let ping_every = ServiceManager::watchdog_interval();
        let at = Instant::now();
        Ok(Self {
            load_config: load,
            runtime_config: loaded,
            roots,
            run_queue: RunQueue::default(),
            polls: JoinSet::new(),
            watcher: watch,
            signals,
            manager: ServiceManager::default(),
            executable: Executable::running(),
            sandbox: confined,
            notifier: Notifier::default(),
            metrics: Metrics::default(),
            started_at: now,
            watchdog_interval: ping_every,
            watchdog_at: ping_every.map(|it| at + it),
            tick_at: at,
            reopen_at: at + CLOCK_INTERVAL,
            now,
            clock_read_at: at,
        })
    }

    async fn run(mut self) -> Result<DaemonExit, DaemonError> {
        self.drain_session_queue();
        ServiceManager::ready();
        loop {
            self.start_runs();
            self.start_polls();
            self.report_status();
            self.set_tick();
            let event = self.next_event().await;
            tracing::trace!(?event);
            if self.handle(event).is_break() {
                self.shut_down().await;
                return Ok(DaemonExit::Stopped);
            }
            if let Some(root) = self.folder_outside_sandbox() {
                tracing::warn!(
                    "{root}: what I am shut into does not hold this folder: ending, to be started again"
                );
                self.shut_down().await;
                return Ok(DaemonExit::Restart);
            }
        }
    }

    /// Returns a folder that is to be served and that the sandbox does not let us write to.
    fn folder_outside_sandbox(&self) -> Option<String> {
        let mut closed = self.roots.iter().filter(|(_, it)| it.open().is_none());
        let root = closed.find(|(path, _)| self.sandbox.excludes(path))?;
        Some(root.0.display().to_string())
    }

    /// Waits for whatever comes first. Signals and timers go before changes, so that no storm of
    /// these keeps us from a stop or from the watchdog.
    async fn next_event(&mut self) -> DaemonEvent {
        let bursts = self.roots.iter().filter_map(|(path, it)| Some((it.burst_deadline()?, path)));
        let burst = bursts.min().map(|(at, path)| (at, DaemonEvent::BurstEnded(path.clone())));
        let ping = self.watchdog_at.map(|at| (at, DaemonEvent::Watchdog));
        let timers = [ping, burst, Some((self.tick_at, DaemonEvent::Tick))];
        let first = timers.into_iter().flatten().min_by_key(|(at, _)| *at);
        let (at, timer) = first.unwrap_or((self.tick_at, DaemonEvent::Tick));
        tokio::select! {
            biased;
            it = self.signals.next() => DaemonEvent::Signal(it),
            () = sleep_until(at) => timer,
            (root, want, ended) = self.run_queue.next_finished() => DaemonEvent::RunFinished(root, want, ended),
            (root, found) = next_poll(&mut self.polls) => DaemonEvent::FolderPolled(root, found),
            it = self.watcher.next_changes() => DaemonEvent::FilesChanged(it),
        }
    }

    fn handle(&mut self, event: DaemonEvent) -> ControlFlow<()> {
        self.read_clock();
        match event {
            DaemonEvent::FilesChanged(dirty) => self.on_changes(&dirty),
            DaemonEvent::BurstEnded(path) => {
                if let Some(root) = self.roots.get_mut(&path) {
                    root_opening::reopen_if_replaced(
                        root,
                        &path,
                        &self.runtime_config,
                        &mut self.watcher,
                        self.now,
                    );
                    root.end_burst(&mut self.watcher);
                }
            }
            DaemonEvent::Tick => self.tick(),
            DaemonEvent::RunFinished(root, want, ended) => {
                self.on_run_finished(&root, want, *ended);
                self.notify_problems(&root);
                if self.run_queue.roots().next().is_none() {
                    privacy::reclaim_memory();
                }
            }
            DaemonEvent::FolderPolled(path, found) => {
                if let Some(root) = self.roots.get_mut(&path) {
                    root.on_polled(found.as_ref());
                }
            }
            DaemonEvent::Signal(Signal::Stop) => return ControlFlow::Break(()),
            DaemonEvent::Signal(Signal::Reload) => self.reload(),
            DaemonEvent::Watchdog => self.feed_watchdog(),
        }
        ControlFlow::Continue(())
    }

    /// Tells the roots that are concerned what the system told of.
    fn on_changes(&mut self, dirty: &ChangedPaths) {
        for (path, root) in self.roots.iter_mut().filter(|(path, _)| dirty.touches(path)) {
            if root.on_changes(dirty, self.now) && !self.run_queue.is_running(path) {
                tracing::debug!("{}: something changed there or above it", path.display());
                root_opening::reopen(root, path, &self.runtime_config, &mut self.watcher, self.now);
            }
        }
    }

    /// Asks every root what the time brings.
    fn tick(&mut self) {
        let reopen = self.reopen_at <= Instant::now();
        if reopen {
            self.reopen_at = Instant::now() + CLOCK_INTERVAL;
            self.drain_session_queue();
            self.executable.check_replaced();
        }
        for (path, root) in &mut self.roots {
            if reopen && !self.run_queue.is_running(path) {
                root_opening::reopen_if_replaced(
                    root,
                    path,
                    &self.runtime_config,
                    &mut self.watcher,
                    self.now,
                );
                if root.open().is_none() {
                    root_opening::reopen(
                        root,
                        path,
                        &self.runtime_config,
                        &mut self.watcher,
                        self.now,
                    );
                }
            }
            root.tick(&mut self.watcher, self.now);
        }
        let file = self.runtime_config.metrics_file();
        self.metrics.update(file.as_deref(), self.started_at, &self.roots);
    }

    /// Does what hooks left, beside the loop: a long transcript takes a second. One is at it at a time, by
    /// the lock of the notes; nobody waits for it, and what a stop of the daemon cuts off is done later.
    fn drain_session_queue(&self) {
        let (config, around, now) =
            (self.runtime_config.config.clone(), self.runtime_config.environment.clone(), self.now);
        drop(tokio::task::spawn_blocking(move || {
            let done = queue::drain(&config, &around, now, false);
            for (name, done) in done.unwrap_or_default() {
                match done {
                    queue::QueueOutcome::Saved(kept) => {
                        tracing::info!("a session is kept as {}", kept.path);
                    }
                    queue::QueueOutcome::Failed(error) => {
                        tracing::warn!("{name}: a session is not kept: {error}");
                    }
                    queue::QueueOutcome::NothingNew | queue::QueueOutcome::NoMemoryFolder(_) => {}
                }
            }
        }));
    }

    /// Begins the passes that are wanted, as far as there is room for them.
    fn start_runs(&mut self) {
        while let Some(path) = self.run_queue.next(&self.roots) {
            self.run_queue.mark_turn(&path);
            let Some(root) = self.roots.get_mut(&path) else { continue };
            if !root.is_same_folder() {
                root_opening::reopen_if_replaced(
                    root,
                    &path,
                    &self.runtime_config,
                    &mut self.watcher,
                    self.now,
                );
                continue;
            }
            root_opening::refresh(root, &path, &self.runtime_config, &mut self.watcher, self.now);
            let Some(open) = root.open() else { continue };
            let around = &self.runtime_config.environment;
            let made = configured::open_engine(
                &self.runtime_config.config,
                &open.settings,
                around,
                MODEL_PATIENCE,
            );
            let engine = match made {
                Ok(engine) => engine,
                Err(source) => {
                    let error = RootError::Model { root: path.clone(), source };
                    root_opening::warn_once(root, &path, &error);
                    if let Some(want) = root.take_pending(&self.watcher) {
                        root.on_run_failed(want);
                    }
                    continue;
                }
            };
            let (vault, settings) = (open.vault.clone(), open.settings.clone());
            let (look, folders) = (root.check_depth(), root.watched_folders());
            let config = &self.runtime_config.config;
            let embedder =
                match connect::embedding_client(config, &settings, around, EmbeddingInput::Line) {
                    _ if !root.may_embed(self.now) => None,
                    Ok(embedder) => embedder,
                    Err(error) => {
                        root.postpone_embedding(&EmbedFailure::Other(error.to_string()), self.now);
                        None
                    }
                };
            let Some(want) = root.take_pending(&self.watcher) else { continue };
            let order = RunOrder {
                vault,
                engine,
                embedder,
                settings,
                trigger: want.trigger,
                tiers: want.tiers.clone(),
                check_depth: look,
                folders,
                now: self.now,
                heartbeat: Heartbeat::default(),
            };
            tracing::debug!("{}: pass ({})", path.display(), want.trigger);
            self.run_queue.start(path, want, order);
        }
    }

    /// Looks at the folders of whose changes nobody tells. A disk that does not answer holds up that
    /// look alone.
    fn start_polls(&mut self) {
        for (path, root) in &mut self.roots {
            if root.take_poll_turn() {
                let (path, folders) = (path.clone(), root.watched_folders());
                self.polls.spawn_blocking(move || (path, FolderSnapshot::take(&folders).ok()));
            }
        }
    }

    fn on_run_finished(&mut self, path: &Path, want: PendingRun, ended: RunResult) {
        // What the system told of meanwhile may be what the pass has just written.
        let dirty = self.watcher.take_changes();
        self.on_changes(&dirty);
        // It may have been taken out of the configuration in the meantime.
        let Some(root) = self.roots.get_mut(path) else { return };
        let name = path.display();
        let why = match ended {
            Ok(Ok(done)) => {
                if let Some(line) = done.log_line() {
                    tracing::info!("{name}: {line}");
                }
                root.clear_last_error();
                root.on_run_finished(done);
                root.update_watches_after_run(&mut self.watcher);
                if root.open().is_none() {
                    // It came into the configuration again while the pass was at work.
                    root_opening::reopen(
                        root,
                        path,
                        &self.runtime_config,
                        &mut self.watcher,
                        self.now,
                    );
                }
                return;
            }
            Ok(Err(error @ CompactionError::Lock(LockError::Busy { .. }))) => {
                root.on_lock_busy(want);
                if root.is_new_error(error.to_string()) {
                    tracing::info!("{name}: another process makes summaries here; waiting for it");
                }
                return;
            }
            Ok(Err(error)) => {
                let why = chain(&error);
                let waits = matches!(
                    error,
                    CompactionError::FilesVanished(_)
                        | CompactionError::FolderMissing { .. }
                        | CompactionError::DecisionsUnreadable { .. }
                );
                root.set_pause_reason(waits.then(|| why.clone()));
                why
            }
            Err(_) => "the pass stopped with an internal error; please report it".to_owned(),
        };
        let delay = root.on_run_failed(want);
        if root.is_new_error(why.clone()) {
            tracing::error!("{name}: {why}; trying again, next in {} s", delay.as_secs());
        } else {
            tracing::debug!("{name}: {why}; next try in {} s", delay.as_secs());
        }
    }

    /// Has a program of the user's own told what is wrong with a root.
    fn notify_problems(&mut self, path: &Path) {
        if let Some(root) = self.roots.get(path) {
            let command = self.runtime_config.config.settings.on_problem.as_deref();
            self.notifier.update(command, path, root.problems());
        }
    }

    /// Reads the configuration anew. A wrong one is refused, and the one at hand stays.
    fn reload(&mut self) {
        ServiceManager::reloading();
        match (self.load_config)() {
            Ok(loaded) => self.apply_config(loaded),
            Err(error) => {
                tracing::error!("{}; the configuration stays as it was", chain(&error));
            }
        }
        ServiceManager::ready();
    }

    fn apply_config(&mut self, loaded: RuntimeConfig) {
        // An engine that is not there would leave every root unserved, and so would rules for secrets
        // that are wrong, so that is refused whole.
        for path in &loaded.roots {
            let read = loaded.settings_of(path).and_then(|it| Ok(Vault::for_root(&it)?));
            if let Err(error @ (RootError::Model { .. } | RootError::Policy(_))) = read {
                tracing::error!("{}; the configuration stays as it was", chain(&error));
                return;
            }
        }
        self.runtime_config = loaded;
        self.roots.retain(|path, root| {
            let stays = self.runtime_config.roots.contains(path);
            if !stays {
                self.run_queue.stop(path);
                root.close(&mut self.watcher);
                tracing::info!("{}: no longer watched", path.display());
            }
            stays
        });
        for path in &self.runtime_config.roots {
            let root =
                self.roots.entry(path.clone()).or_insert_with(|| RootService::new(path.clone()));
            if self.run_queue.is_running(path) {
                // Read before its next pass anyway.
                root.request_run("reload", crate::memory::item::Tier::ALL.into());
                continue;
            }
            root_opening::reopen_if_replaced(
                root,
                path,
                &self.runtime_config,
                &mut self.watcher,
                self.now,
            );
            if root.open().is_none() {
                root_opening::reopen(root, path, &self.runtime_config, &mut self.watcher, self.now);
            } else if root_opening::refresh(
                root,
                path,
                &self.runtime_config,
                &mut self.watcher,
                self.now,
            ) {
                root.update_watches(&mut self.watcher);
                root.request_run("reload", crate::memory::item::Tier::ALL.into());
            }
        }
        tracing::info!("configuration read anew: {} memory folders", self.roots.len());
    }

    /// Tells the service manager that we live, unless a pass gets nowhere.
    fn feed_watchdog(&mut self) {
        self.watchdog_at = self.watchdog_interval.map(|it| Instant::now() + it);
        if self.run_queue.find_hung().is_some() {
            return;
        }
        ServiceManager::feed_watchdog();
    }

    /// Says in plain words what is being done.
    fn report_status(&mut self) {
        let open = self.roots.values().filter(|it| it.open().is_some());
        let next = open.clone().filter_map(|it| it.open()?.agenda.next_local());
        let next = next.min_by_key(|it| it.with_timezone(&Utc));
        let (served, all) = (open.clone().count(), self.roots.len());
        let (due, stuck) =
            open.map(RootService::counts).fold((0, 0), |all, it| (all.0 + it.0, all.1 + it.1));
        let mut words = Vec::new();
        words.extend(
            self.executable.is_replaced.then(|| "restart me: my program was replaced".to_owned()),
        );
        let mut at_work = self.run_queue.roots();
        let first = at_work.next().map(|it| format!("looking at {}", it.display()));
        let more = at_work.count();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        words.extend(first.map(|it| it + &more));
        words.push(format!("watching {served} of {all} memory folders"));
        words.push(if due > 0 { format!("{due} due") } else { "nothing due".to_owned() });
        words.extend((stuck > 0).then(|| format!("{stuck} stuck")));
        words.extend(next.map(|it| format!("next {}", it.format("%Y-%m-%d %H:%M %Z"))));
        let text = words.join("; ");
        self.manager.status(text);
    }

    /// Sets the timer of the clock: to what comes next, and never far ahead.
    fn set_tick(&mut self) {
        let most = if clock::reads_from_file() { CLOCK_FILE_INTERVAL } else { CLOCK_INTERVAL };
        let quiet = self.roots.values().map(|it| it.time_until_next(self.now)).min();
        let at = Instant::now();
        let next = (at + most.min(quiet.unwrap_or(most))).min(self.reopen_at.max(at));
        // What wakes us more often than this must not put it off.
        self.tick_at = if self.tick_at > at { self.tick_at.min(next) } else { next };
    }

    /// Reads the clock. Where it went on without us every root is looked at: a disk may have been
    /// changed elsewhere while we slept.
    fn read_clock(&mut self) {
        let now = match clock::now() {
            Ok(now) => now,
            Err(error) => {
                tracing::debug!("{error}");
                return;
            }
        };
        let ours = TimeDelta::from_std(self.clock_read_at.elapsed()).unwrap_or_default();
        if now - self.now > ours + CLOCK_JUMP {
            let minutes = (now - self.now).num_minutes();
            tracing::info!(
                "the clock went on by {minutes} minutes: looking at what came meanwhile"
            );
            self.roots.values_mut().for_each(RootService::on_resume);
        }
        self.now = now;
        self.clock_read_at = Instant::now();
    }

    /// Lets the jobs at hand end, and goes.
    async fn shut_down(&mut self) {
        ServiceManager::stopping();
        for (root, want, ended) in self.run_queue.shut_down(STOP_WAIT).await {
            self.on_run_finished(&root, want, *ended);
        }
        self.metrics.remove_file();
        tracing::info!("stopped");
    }
}

/// Waits for a look at a polled folder to end; for ever when none is under way.
async fn next_poll(
    peeks: &mut JoinSet<(PathBuf, Option<FolderSnapshot>)>,
) -> (PathBuf, Option<FolderSnapshot>) {
    loop {
        match peeks.join_next().await {
            None => return pending().await,
            Some(Ok(found)) => return found,
            Some(Err(error)) => tracing::debug!("{error}"),
        }
    }
}

/// Every root keeps two files open for its locks, and a system's usual limit is a thousand.
fn raise_file_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::debug!("the limit of open files stays as it is: {error}");
    }
}
