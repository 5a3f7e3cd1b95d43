//! The event loop: waits for the next [`DaemonEvent`] and handles it.

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

use super::{
    DaemonExit, LoadConfig,
    context::DaemonContext,
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
    engine::configured,
    memory::item::Tier,
    model::{connect, embedding::EmbeddingInput},
    privacy,
    session::queue,
    store::fs::{lock::LockError, vault::Vault},
};

/// The longest sleep: the wall clock may be set, and timers stop while the machine is suspended.
const CLOCK_INTERVAL: Duration = Duration::from_secs(60);
/// The longest sleep while a test moves the clock through a file.
const CLOCK_FILE_INTERVAL: Duration = Duration::from_millis(200);
/// How long a run waits in all for a model that fails. The circuit breaker postpones runs for longer.
const MODEL_PATIENCE: Duration = Duration::from_secs(60);
/// How long a stop waits for the current jobs. A kill after that loses no data.
const STOP_WAIT: Duration = Duration::from_secs(20);
/// The wall clock was set, or the machine slept, if it is this far ahead of our timers.
const CLOCK_JUMP: TimeDelta = TimeDelta::minutes(2);

/// Everything that can wake the daemon.
#[derive(Debug)]
enum DaemonEvent {
    /// The system reported changed files.
    FilesChanged(ChangedPaths),
    /// This folder has not changed for a while.
    BurstEnded(PathBuf),
    /// The clock is due to be read: a schedule, a period, a scan, or a retry may be due.
    Tick,
    RunFinished(PathBuf, PendingRun, Box<RunResult>),
    /// A polled folder was scanned.
    FolderPolled(PathBuf, Option<FolderSnapshot>),
    Signal(Signal),
    /// The service manager expects a sign of life.
    Watchdog,
}

/// The state of the event loop.
pub(super) struct DaemonLoop<'a> {
    load_config: &'a LoadConfig<'a>,
    context: DaemonContext,
    roots: BTreeMap<PathBuf, RootService>,
    run_queue: RunQueue,
    polls: JoinSet<(PathBuf, Option<FolderSnapshot>)>,
    signals: Signals,
    timers: LoopTimers,
    executable: Executable,
    sandbox: SandboxedFolders,
    manager: ServiceManager,
    notifier: Notifier,
    metrics: Metrics,
    started_at: DateTime<Utc>,
}

struct LoopTimers {
    watchdog_interval: Option<Duration>,
    watchdog_at: Option<Instant>,
    tick_at: Instant,
    /// When folders that are not served are tried again.
    reopen_at: Instant,
    clock_read_at: Instant,
}

impl<'a> DaemonLoop<'a> {
    /// Opens all memory folders.
    ///
    /// Returns an error when no folder can be served and waiting will not help.
    pub(super) fn start(
        load_config: &'a LoadConfig<'a>,
        sandbox: SandboxedFolders,
    ) -> Result<Self, DaemonError> {
        let now = clock::now()?;
        let config = load_config()?;
        let signals = Signals::new().map_err(DaemonError::Runtime)?;
        let mut context = DaemonContext { config, watcher: FolderWatcher::new(), now };
        let mut roots = BTreeMap::new();
        let mut fatal_error = None;
        raise_file_limit();
        for path in context.config.roots.clone() {
            let mut root = RootService::new(path.clone());
            if let Err(error) = root.start(&mut context) {
                // A missing folder may be on a disk that is mounted later.
                fatal_error = fatal_error.or(Some(error).filter(|it| !it.is_missing()));
            }
            roots.insert(path, root);
        }
        if let Some(error) = fatal_error
            && roots.values().all(|it| it.open().is_none())
        {
            return Err(error.into());
        }
        let watchdog_interval = ServiceManager::watchdog_interval();
        let at = Instant::now();
        Ok(Self {
            load_config,
            context,
            roots,
            run_queue: RunQueue::default(),
            polls: JoinSet::new(),
            signals,
            timers: LoopTimers {
                watchdog_interval,
                watchdog_at: watchdog_interval.map(|it| at + it),
                tick_at: at,
                reopen_at: at + CLOCK_INTERVAL,
                clock_read_at: at,
            },
            executable: Executable::running(),
            sandbox,
            manager: ServiceManager::default(),
            notifier: Notifier::default(),
            metrics: Metrics::default(),
            started_at: now,
        })
    }

    /// Handles events until the daemon has to end.
    pub(super) async fn run(mut self) -> Result<DaemonExit, DaemonError> {
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
                tracing::warn!("{root}: the sandbox does not include this folder; restarting");
                self.shut_down().await;
                return Ok(DaemonExit::Restart);
            }
        }
    }

    /// Returns a configured folder that exists and that the sandbox does not let us write to.
    fn folder_outside_sandbox(&self) -> Option<String> {
        let mut closed = self.roots.iter().filter(|(_, it)| it.open().is_none());
        let root = closed.find(|(path, _)| self.sandbox.excludes(path))?;
        Some(root.0.display().to_string())
    }

    /// Waits for the next event. Signals and timers come before file changes, so a storm of changes delays
    /// neither a stop nor the watchdog.
    async fn next_event(&mut self) -> DaemonEvent {
        let bursts = self.roots.iter().filter_map(|(path, it)| Some((it.burst_deadline()?, path)));
        let burst = bursts.min().map(|(at, path)| (at, DaemonEvent::BurstEnded(path.clone())));
        let watchdog = self.timers.watchdog_at.map(|at| (at, DaemonEvent::Watchdog));
        let tick_at = self.timers.tick_at;
        let timers = [watchdog, burst, Some((tick_at, DaemonEvent::Tick))];
        let first = timers.into_iter().flatten().min_by_key(|(at, _)| *at);
        let (at, timer) = first.unwrap_or((tick_at, DaemonEvent::Tick));
        tokio::select! {
            biased;
            it = self.signals.next() => DaemonEvent::Signal(it),
            () = sleep_until(at) => timer,
            (root, run, result) = self.run_queue.next_finished() => DaemonEvent::RunFinished(root, run, result),
            (root, snapshot) = next_poll(&mut self.polls) => DaemonEvent::FolderPolled(root, snapshot),
            it = self.context.watcher.next_changes() => DaemonEvent::FilesChanged(it),
        }
    }

    fn handle(&mut self, event: DaemonEvent) -> ControlFlow<()> {
        self.read_clock();
        match event {
            DaemonEvent::FilesChanged(changes) => self.on_changes(&changes),
            DaemonEvent::BurstEnded(path) => {
                if let Some(root) = self.roots.get_mut(&path) {
                    root.reopen_if_replaced(&mut self.context);
                    root.end_burst(&mut self.context.watcher);
                }
            }
            DaemonEvent::Tick => self.tick(),
            DaemonEvent::RunFinished(path, run, result) => {
                self.on_run_finished(&path, run, *result);
                self.notify_problems(&path);
                if self.run_queue.roots().next().is_none() {
                    privacy::reclaim_memory();
                }
            }
            DaemonEvent::FolderPolled(path, snapshot) => {
                if let Some(root) = self.roots.get_mut(&path) {
                    root.on_polled(snapshot.as_ref());
                }
            }
            DaemonEvent::Signal(Signal::Stop) => return ControlFlow::Break(()),
            DaemonEvent::Signal(Signal::Reload) => self.reload(),
            DaemonEvent::Watchdog => self.feed_watchdog(),
        }
        ControlFlow::Continue(())
    }

    /// Passes reported changes to the folders that they concern.
    fn on_changes(&mut self, changes: &ChangedPaths) {
        for (path, root) in self.roots.iter_mut().filter(|(path, _)| changes.touches(path)) {
            if root.on_changes(changes, self.context.now) && !self.run_queue.is_running(path) {
                tracing::debug!("{}: the folder or a parent of it changed", path.display());
                root.reopen(&mut self.context);
            }
        }
    }

    /// Requests the runs that are due by the clock.
    fn tick(&mut self) {
        let reopens = self.timers.reopen_at <= Instant::now();
        if reopens {
            self.timers.reopen_at = Instant::now() + CLOCK_INTERVAL;
            self.drain_session_queue();
            self.executable.check_replaced();
        }
        for (path, root) in &mut self.roots {
            if reopens && !self.run_queue.is_running(path) {
                root.ensure_open(&mut self.context);
            }
            root.tick(&mut self.context.watcher, self.context.now);
        }
        let file = self.context.config.metrics_file();
        self.metrics.update(file.as_deref(), self.started_at, &self.roots);
    }

    /// Saves the sessions that hooks have queued. That runs beside the loop, because a long transcript takes
    /// a second. A lock lets one process at a time do it; what a stop interrupts is done at the next start.
    fn drain_session_queue(&self) {
        let RuntimeConfig { config, environment, .. } = &self.context.config;
        let (config, environment, now) = (config.clone(), environment.clone(), self.context.now);
        drop(tokio::task::spawn_blocking(move || {
            let sessions =
                queue::drain(&config, &environment, now, false).unwrap_or_else(|error| {
                    tracing::debug!("cannot read the session queue: {error}");
                    Vec::new()
                });
            for (name, outcome) in sessions {
                match outcome {
                    queue::QueueOutcome::Saved(session) => {
                        tracing::info!("saved a session as {}", session.path);
                    }
                    queue::QueueOutcome::Failed(error) => {
                        tracing::warn!("{name}: cannot save the session: {error}");
                    }
                    queue::QueueOutcome::NothingNew | queue::QueueOutcome::NoMemoryFolder(_) => {}
                }
            }
        }));
    }

    /// Starts the requested runs for which there is room.
    fn start_runs(&mut self) {
        while let Some(path) = self.run_queue.next(&self.roots) {
            self.run_queue.mark_turn(&path);
            let Some(root) = self.roots.get_mut(&path) else { continue };
            if !root.is_same_folder() {
                root.reopen_if_replaced(&mut self.context);
                continue;
            }
            root.refresh(&mut self.context);
            if let Some((run, order)) = run_order(root, &path, &self.context) {
                tracing::debug!("{}: run ({})", path.display(), run.trigger);
                self.run_queue.start(path, run, order);
            }
        }
    }

    /// Scans the folders whose changes the system does not report. A disk that does not answer delays only
    /// its own scan.
    fn start_polls(&mut self) {
        for (path, root) in &mut self.roots {
            if root.take_poll_turn() {
                let (path, folders) = (path.clone(), root.watched_folders());
                self.polls.spawn_blocking(move || (path, FolderSnapshot::take(&folders).ok()));
            }
        }
    }

    fn on_run_finished(&mut self, path: &Path, run: PendingRun, result: RunResult) {
        // Changes reported meanwhile may be what the run has just written.
        let changes = self.context.watcher.take_changes();
        self.on_changes(&changes);
        // It is missing if the configuration was reloaded without it.
        let Some(root) = self.roots.get_mut(path) else { return };
        let name = path.display();
        let why = match result {
            Ok(Ok(done)) => {
                if let Some(line) = done.log_line() {
                    tracing::info!("{name}: {line}");
                }
                root.clear_last_error();
                root.on_run_finished(done);
                root.update_watches_after_run(&mut self.context.watcher);
                if root.open().is_none() {
                    // The configuration was reloaded without it and then with it during the run.
                    root.reopen(&mut self.context);
                }
                return;
            }
            Ok(Err(error @ CompactionError::Lock(LockError::Busy { .. }))) => {
                root.on_lock_busy(run);
                if root.is_new_error(error.to_string()) {
                    tracing::info!("{name}: another process is compacting this folder; waiting");
                }
                return;
            }
            Ok(Err(error)) => {
                let why = chain(&error);
                let needs_person = matches!(
                    error,
                    CompactionError::FilesVanished(_)
                        | CompactionError::FolderMissing { .. }
                        | CompactionError::DecisionsUnreadable { .. }
                );
                root.set_pause_reason(needs_person.then(|| why.clone()));
                why
            }
            Err(_) => "the run failed with an internal error; please report it".to_owned(),
        };
        let delay = root.on_run_failed(run).as_secs();
        if root.is_new_error(why.clone()) {
            tracing::error!("{name}: {why}; trying again, next in {delay} s");
        } else {
            tracing::debug!("{name}: {why}; next try in {delay} s");
        }
    }

    /// Runs the user's `on_problem` program for new problems of a folder.
    fn notify_problems(&mut self, path: &Path) {
        if let Some(root) = self.roots.get(path) {
            let command = self.context.config.config.settings.on_problem.as_deref();
            self.notifier.update(command, path, root.problems());
        }
    }

    /// Reads the configuration again. A wrong one is refused, and the previous one stays.
    fn reload(&mut self) {
        ServiceManager::reloading();
        match (self.load_config)() {
            Ok(config) => self.apply_config(config),
            Err(error) => {
                tracing::error!("{}; keeping the previous configuration", chain(&error));
            }
        }
        ServiceManager::ready();
    }

    fn apply_config(&mut self, config: RuntimeConfig) {
        // A missing engine or wrong rules for secrets would stop all folders, so the whole
        // configuration is refused.
        for path in &config.roots {
            let result = config.settings_of(path).and_then(|it| Ok(Vault::for_root(&it)?));
            if let Err(error @ (RootError::Model { .. } | RootError::Policy(_))) = result {
                tracing::error!("{}; keeping the previous configuration", chain(&error));
                return;
            }
        }
        self.context.config = config;
        self.roots.retain(|path, root| {
            let stays = self.context.config.roots.contains(path);
            if !stays {
                self.run_queue.stop(path);
                root.close(&mut self.context.watcher);
                tracing::info!("{}: no longer watched", path.display());
            }
            stays
        });
        for path in self.context.config.roots.clone() {
            let is_running = self.run_queue.is_running(&path);
            let root = self.roots.entry(path.clone()).or_insert_with(|| RootService::new(path));
            if is_running {
                // Its next run reads the settings.
                root.request_run("reload", Tier::ALL.into());
                continue;
            }
            root.ensure_open(&mut self.context);
            if root.open().is_some() && root.refresh(&mut self.context) {
                root.update_watches(&mut self.context.watcher);
                root.request_run("reload", Tier::ALL.into());
            }
        }
        tracing::info!("configuration reloaded: {} memory folders", self.roots.len());
    }

    /// Sends the watchdog a sign of life, unless a run hangs.
    fn feed_watchdog(&mut self) {
        self.timers.watchdog_at = self.timers.watchdog_interval.map(|it| Instant::now() + it);
        if self.run_queue.find_hung().is_none() {
            ServiceManager::feed_watchdog();
        }
    }

    /// Sends the status line to the service manager.
    fn report_status(&mut self) {
        let open = self.roots.values().filter(|it| it.open().is_some());
        let next = open.clone().filter_map(|it| it.open()?.agenda.next_local());
        let next = next.min_by_key(|it| it.with_timezone(&Utc));
        let (served, all) = (open.clone().count(), self.roots.len());
        let (due, stuck) =
            open.map(RootService::counts).fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        let mut parts = Vec::new();
        let replaced = || "restart needed: the program file was replaced".to_owned();
        parts.extend(self.executable.is_replaced.then(replaced));
        let mut running = self.run_queue.roots();
        let first = running.next().map(|it| format!("checking {}", it.display()));
        let more = running.count();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.extend(first.map(|it| it + &more));
        parts.push(format!("watching {served} of {all} memory folders"));
        parts.push(if due > 0 { format!("{due} due") } else { "nothing due".to_owned() });
        parts.extend((stuck > 0).then(|| format!("{stuck} stuck")));
        parts.extend(next.map(|it| format!("next {}", it.format("%Y-%m-%d %H:%M %Z"))));
        self.manager.status(parts.join("; "));
    }

    /// Sets the next tick: at the next deadline of any folder, and soon enough to notice a changed clock.
    fn set_tick(&mut self) {
        let max = if clock::reads_from_file() { CLOCK_FILE_INTERVAL } else { CLOCK_INTERVAL };
        let next = self.roots.values().map(|it| it.time_until_next(self.context.now)).min();
        let at = Instant::now();
        let next = (at + max.min(next.unwrap_or(max))).min(self.timers.reopen_at.max(at));
        // Frequent events must not postpone the tick.
        let tick_at = self.timers.tick_at;
        self.timers.tick_at = if tick_at > at { tick_at.min(next) } else { next };
    }

    /// Reads the clock. If it has jumped, all folders are checked: their disks may have been changed
    /// elsewhere while the machine slept.
    fn read_clock(&mut self) {
        let now = match clock::now() {
            Ok(now) => now,
            Err(error) => {
                tracing::debug!("{error}");
                return;
            }
        };
        let elapsed = self.timers.clock_read_at.elapsed();
        let elapsed = TimeDelta::from_std(elapsed).unwrap_or_default();
        if now - self.context.now > elapsed + CLOCK_JUMP {
            let minutes = (now - self.context.now).num_minutes();
            tracing::info!("the clock jumped by {minutes} minutes; checking all memory folders");
            self.roots.values_mut().for_each(RootService::on_resume);
        }
        self.context.now = now;
        self.timers.clock_read_at = Instant::now();
    }

    /// Lets the current jobs end.
    async fn shut_down(&mut self) {
        ServiceManager::stopping();
        for (path, run, result) in self.run_queue.shut_down(STOP_WAIT).await {
            self.on_run_finished(&path, run, *result);
        }
        self.metrics.remove_file();
        tracing::info!("stopped");
    }
}

/// Takes the requested run of a folder; `None` when its engine cannot be created or it was closed.
fn run_order(
    root: &mut RootService,
    path: &Path,
    context: &DaemonContext,
) -> Option<(PendingRun, RunOrder)> {
    let RuntimeConfig { config, environment, .. } = &context.config;
    let open = root.open()?;
    let (vault, settings) = (open.vault.clone(), open.settings.clone());
    let engine = match configured::open_engine(config, &settings, environment, MODEL_PATIENCE) {
        Ok(engine) => engine,
        Err(source) => {
            root.warn_once(&RootError::Model { root: path.to_owned(), source });
            if let Some(run) = root.take_pending(&context.watcher) {
                root.on_run_failed(run);
            }
            return None;
        }
    };
    let embedder =
        match connect::embedding_client(config, &settings, environment, EmbeddingInput::Line) {
            _ if !root.may_embed(context.now) => None,
            Ok(embedder) => embedder,
            Err(error) => {
                root.postpone_embedding(&EmbedFailure::Other(error.to_string()), context.now);
                None
            }
        };
    let (check_depth, folders) = (root.check_depth(), root.watched_folders());
    let run = root.take_pending(&context.watcher)?;
    let order = RunOrder {
        vault,
        engine,
        embedder,
        settings,
        trigger: run.trigger,
        tiers: run.tiers.clone(),
        check_depth,
        folders,
        now: context.now,
        heartbeat: Heartbeat::default(),
    };
    Some((run, order))
}

/// Waits for the next poll to end; forever when none is active.
async fn next_poll(
    polls: &mut JoinSet<(PathBuf, Option<FolderSnapshot>)>,
) -> (PathBuf, Option<FolderSnapshot>) {
    loop {
        match polls.join_next().await {
            None => return pending().await,
            Some(Ok(polled)) => return polled,
            Some(Err(error)) => tracing::debug!("{error}"),
        }
    }
}

/// Raises the limit of open files: each folder keeps two lock files open, and the usual limit is 1024.
fn raise_file_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::debug!("cannot raise the limit of open files: {error}");
    }
}
