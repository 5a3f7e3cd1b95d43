//! The daemon: one loop over one `enum Event`.
//!
//! Whatever can wake it is an [`Event`], and [`Daemon::handle`] is the only place that answers. It
//! decides nothing about memory: it says when a pass is to be made over which root, and the plan
//! says what is due.
//!
//! - `watch`: the system's word that something changed.
//! - `schedule`: crontab lines, and what falls due between two of them; pure.
//! - [`root`]: one root: lock, agenda, what is wanted of it.
//! - `pass`: a pass, on a thread of its own.
//! - `notify`: what the service manager is told.
//! - `state`: what other processes are told.
//!
//! `commands::run` calls [`run`].
//!
//! # Invariants
//!
//! - One daemon per root: it holds the root's lock for as long as it serves it.
//! - One pass at a time, over all roots. It takes the write lock for each commit only, so other
//!   programs work beside it.
//! - Nothing in the loop waits: passes run on the blocking pool, and each of its timers is a
//!   deadline that moves on when it has passed, so that no state makes it spin.
//! - The watchdog is fed by the loop itself. A loop that hangs starves it, and so does a pass that
//!   gets nowhere for [`HANG`].
//! - A pass that fails or falls over ends itself, never the daemon.
//! - The log holds paths, periods, and counts; no text of a log.

mod notify;
mod pass;
pub mod root;
mod schedule;
mod state;
mod watch;

use std::{
    collections::BTreeMap,
    future::pending,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::{
    signal::unix::{Signal as SignalStream, SignalKind, signal},
    task::{JoinError, JoinHandle},
    time::{Instant, sleep_until, timeout},
};

use self::{
    notify::Manager,
    pass::{Done, Order, Pulse},
    root::{RootError, Served, Want},
    watch::{Dirty, Watch},
};
use crate::{
    clock::{self, ClockError},
    compaction::PassError,
    config::{self, Config, surroundings::Surroundings},
    engine::configured,
    privacy::Rules,
    store::{lock::LockError, vault::Vault},
};

/// A sleep is never longer: the wall clock may be set, and timers stand still in suspend.
const CLOCK_EVERY: Duration = Duration::from_secs(60);
/// The same while a test moves the clock in a file.
const CLOCK_FILE_EVERY: Duration = Duration::from_millis(200);
/// A pass that begins or ends no job for so long gets nowhere, and the watchdog may end us.
const HANG: Duration = Duration::from_secs(45 * 60);
/// How long a pass waits in all for a model that fails; the breaker keeps it away longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a stop waits for the job at hand. A kill after that loses no byte either.
const STOP_WAIT: Duration = Duration::from_secs(20);
/// Both are at work seldom: one turns the loop, the other is there when it is busy.
const WORKERS: usize = 2;

/// What the daemon is run with, read at start and again on SIGHUP.
#[derive(Debug)]
pub struct Loaded {
    /// What stands around the process.
    pub around: Surroundings,
    /// The configuration.
    pub config: Config,
    /// The roots to serve.
    pub roots: Vec<PathBuf>,
}

/// What ends the daemon, or keeps it from starting.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// A root cannot be served.
    #[error(transparent)]
    Root(#[from] RootError),
    /// `MEMOIRD_NOW` holds no time.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The system refuses threads, timers, or signals.
    #[error("cannot start the loop")]
    Runtime(#[source] io::Error),
}

/// All that can wake the daemon.
#[derive(Debug)]
enum Event {
    /// Something changed in a folder.
    Watch(Dirty),
    /// No further change came to this root for a while.
    BurstEnded(PathBuf),
    /// The clock is to be read: a tick, a period that closes, a scan, or a retry may be due.
    Tick,
    /// The pass at work has ended.
    PassDone(Box<Result<Result<Done, PassError>, JoinError>>),
    /// A signal came.
    Signal(Signal),
    /// The service manager wants to hear from us.
    Watchdog,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    /// End: SIGTERM or SIGINT.
    Stop,
    /// Read the configuration anew: SIGHUP.
    Reload,
}

struct Signals {
    terminate: SignalStream,
    interrupt: SignalStream,
    hangup: SignalStream,
}

/// A pass at work.
struct Running {
    root: PathBuf,
    want: Want,
    pulse: Pulse,
    task: JoinHandle<Result<Done, PassError>>,
    /// The pulse at the last look, and since when it stands still.
    still: (u64, Instant),
}

struct Daemon<'a> {
    load: &'a dyn Fn() -> Result<Loaded, config::Error>,
    loaded: Loaded,
    roots: BTreeMap<PathBuf, Served>,
    /// The root of the last pass: the next one in order has its turn first.
    last: Option<PathBuf>,
    running: Option<Running>,
    watch: Watch,
    signals: Signals,
    manager: Manager,
    ping_every: Option<Duration>,
    ping_at: Option<Instant>,
    tick_at: Instant,
    /// When roots that are not open are asked about again.
    reopen_at: Instant,
    /// The time at the last reading that succeeded.
    now: DateTime<Utc>,
}

/// Serves all roots that `load` names until a signal ends it.
///
/// # Errors
///
/// Returns an error when it cannot start: the configuration is wrong, another daemon serves one of
/// the roots, or none of them can be served for a reason that waiting does not mend.
pub fn run(load: &dyn Fn() -> Result<Loaded, config::Error>) -> Result<(), DaemonError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(DaemonError::Runtime)?;
    let done = runtime.block_on(async { Daemon::start(load)?.run().await });
    // A pass that did not stop in time must not hold up the end.
    runtime.shutdown_background();
    done
}

impl<'a> Daemon<'a> {
    fn start(load: &'a dyn Fn() -> Result<Loaded, config::Error>) -> Result<Self, DaemonError> {
        let now = clock::now()?;
        let loaded = load()?;
        let signals = Signals::new().map_err(DaemonError::Runtime)?;
        let mut watch = Watch::new();
        let mut roots = BTreeMap::new();
        let mut refused = None;
        for path in &loaded.roots {
            let mut served = Served::new(path.clone());
            match served.start(&loaded, &mut watch, now) {
                Ok(()) => tracing::info!("{}: watching", path.display()),
                Err(
                    error @ (RootError::Lock(LockError::Served { .. })
                    | RootError::Model { .. }
                    | RootError::Policy(_)),
                ) => return Err(error.into()),
                Err(error) => {
                    warn_once(&mut served, path, &error);
                    // A folder that is not there may be on a disk that is not there yet.
                    let missing =
                        matches!(&error, RootError::Config(config::Error::RootMissing { .. }));
                    refused = refused.or(if missing { None } else { Some(error) });
                }
            }
            roots.insert(path.clone(), served);
        }
        if let Some(error) = refused
            && roots.values().all(|it| it.open().is_none())
        {
            return Err(error.into());
        }
        let ping_every = Manager::ping_every();
        let at = Instant::now();
        Ok(Self {
            load,
            loaded,
            roots,
            last: None,
            running: None,
            watch,
            signals,
            manager: Manager::default(),
            ping_every,
            ping_at: ping_every.map(|it| at + it),
            tick_at: at,
            reopen_at: at + CLOCK_EVERY,
            now,
        })
    }

    async fn run(mut self) -> Result<(), DaemonError> {
        Manager::ready();
        loop {
            self.begin_pass();
            self.tell();
            self.set_tick();
            let event = self.next_event().await;
            tracing::trace!(?event);
            if self.handle(event).is_break() {
                break;
            }
        }
        self.end().await;
        Ok(())
    }

    /// Waits for whatever comes first. Signals and timers go before changes, so that no storm of
    /// these keeps us from a stop or from the watchdog.
    async fn next_event(&mut self) -> Event {
        let bursts = self.roots.iter().filter_map(|(path, it)| Some((it.burst_ends()?, path)));
        let burst = bursts.min().map(|(at, path)| (at, Event::BurstEnded(path.clone())));
        let ping = self.ping_at.map(|at| (at, Event::Watchdog));
        let timers = [ping, burst, Some((self.tick_at, Event::Tick))];
        let first = timers.into_iter().flatten().min_by_key(|(at, _)| *at);
        let (at, timer) = first.unwrap_or((self.tick_at, Event::Tick));
        tokio::select! {
            biased;
            it = self.signals.next() => Event::Signal(it),
            () = sleep_until(at) => timer,
            it = finished(&mut self.running) => Event::PassDone(Box::new(it)),
            it = self.watch.next() => Event::Watch(it),
        }
    }

    fn handle(&mut self, event: Event) -> std::ops::ControlFlow<()> {
        self.read_clock();
        match event {
            Event::Watch(dirty) => {
                for (_, root) in self.roots.iter_mut().filter(|(path, _)| dirty.touches(path)) {
                    root.hear(dirty.is_overflow(), self.now);
                }
            }
            Event::BurstEnded(path) => {
                if let Some(root) = self.roots.get_mut(&path) {
                    root.end_burst(&mut self.watch);
                }
            }
            Event::Tick => self.tick(),
            Event::PassDone(ended) => self.pass_done(*ended),
            Event::Signal(Signal::Stop) => return std::ops::ControlFlow::Break(()),
            Event::Signal(Signal::Reload) => self.reload(),
            Event::Watchdog => self.ping(),
        }
        std::ops::ControlFlow::Continue(())
    }

    /// Asks every root what the time brings.
    fn tick(&mut self) {
        let reopen = self.reopen_at <= Instant::now();
        if reopen {
            self.reopen_at = Instant::now() + CLOCK_EVERY;
        }
        for (path, root) in &mut self.roots {
            let at_work = self.running.as_ref().is_some_and(|it| it.root == *path);
            if reopen && !at_work && !root.is_intact() {
                tracing::warn!("{}: the folder was moved or made anew", path.display());
                root.close(&mut self.watch);
            }
            if reopen && root.open().is_none() {
                reopen_root(root, path, &self.loaded, &mut self.watch, self.now);
            }
            root.tick(&mut self.watch, self.now);
        }
    }

    /// Begins the next pass that is wanted, if none is at work.
    fn begin_pass(&mut self) {
        while self.running.is_none() {
            // Every root has its turn, however often another one is written to.
            let last = self.last.as_ref();
            let ready = |it: &&PathBuf| self.roots[*it].is_ready();
            let next =
                self.roots.keys().filter(ready).find(|it| last.is_none_or(|last| *it > last));
            let next = next.or_else(|| self.roots.keys().find(ready)).cloned();
            let Some(path) = next else { return };
            self.last = Some(path.clone());
            let Some(root) = self.roots.get_mut(&path) else { return };
            if !root.is_intact() {
                tracing::warn!("{}: the folder was moved or made anew", path.display());
                root.close(&mut self.watch);
                reopen_root(root, &path, &self.loaded, &mut self.watch, self.now);
                continue;
            }
            if let Err(error) = root.refresh(&self.loaded, self.now) {
                warn_once(root, &path, &error);
            }
            let Some(open) = root.open() else { return };
            let made = configured::engine(
                &self.loaded.config,
                &open.settings,
                &self.loaded.around,
                PATIENCE,
            );
            let engine = match made {
                Ok(engine) => engine,
                Err(error) => {
                    let error = RootError::Model { root: path.clone(), source: error };
                    warn_once(root, &path, &error);
                    return;
                }
            };
            let (Some(want), Some(open)) = (root.take_want(), root.open()) else { return };
            let pulse = Pulse::default();
            let order = Order {
                vault: open.vault.clone(),
                engine,
                settings: open.settings.clone(),
                trigger: want.trigger,
                tiers: want.tiers.clone(),
                look: root.closeness(),
                now: self.now,
                pulse: pulse.clone(),
            };
            tracing::debug!("{}: pass ({})", path.display(), want.trigger);
            let task = tokio::task::spawn_blocking(|| order.run());
            let still = (pulse.beats(), Instant::now());
            self.running = Some(Running { root: path, want, pulse, task, still });
        }
    }

    fn pass_done(&mut self, ended: Result<Result<Done, PassError>, JoinError>) {
        let Some(Running { root: path, want, .. }) = self.running.take() else { return };
        // It may have been taken out of the configuration in the meantime.
        let Some(root) = self.roots.get_mut(&path) else { return };
        let name = path.display();
        let why = match ended {
            Ok(Ok(done)) => {
                if let Some(line) = done.line() {
                    tracing::info!("{name}: {line}");
                }
                root.is_news("");
                root.note(&want, &done);
                // A pass makes folders, which are to be watched too.
                root.place(&mut self.watch);
                return;
            }
            Ok(Err(error)) => {
                let why = chain(&error);
                let waits = matches!(
                    error,
                    PassError::Missing(_) | PassError::Gone { .. } | PassError::Decisions { .. }
                );
                root.pause(waits.then(|| why.clone()));
                why
            }
            Err(_) => "the pass stopped with an internal error; please report it".to_owned(),
        };
        let delay = root.fail(want);
        if root.is_news(&why) {
            tracing::error!("{name}: {why}; trying again, next in {} s", delay.as_secs());
        } else {
            tracing::debug!("{name}: {why}; next try in {} s", delay.as_secs());
        }
    }

    /// Reads the configuration anew. A wrong one is refused, and the one at hand stays.
    fn reload(&mut self) {
        Manager::reloading();
        match (self.load)() {
            Ok(loaded) => self.take_over(loaded),
            Err(error) => {
                tracing::error!("{}; the configuration stays as it was", chain(&error));
            }
        }
        Manager::ready();
    }

    fn take_over(&mut self, loaded: Loaded) {
        // An engine that is not there would leave every root unserved, and so would rules for secrets
        // that are wrong, so that is refused whole.
        for path in &loaded.roots {
            let read = root::read(path, &loaded).and_then(|it| Ok(Vault::of(&it)?));
            if let Err(error @ (RootError::Model { .. } | RootError::Policy(_))) = read {
                tracing::error!("{}; the configuration stays as it was", chain(&error));
                return;
            }
        }
        self.loaded = loaded;
        self.roots.retain(|path, root| {
            let stays = self.loaded.roots.contains(path);
            if !stays {
                if let Some(running) = self.running.as_ref().filter(|it| it.root == *path) {
                    running.pulse.stop();
                }
                root.close(&mut self.watch);
                tracing::info!("{}: no longer watched", path.display());
            }
            stays
        });
        for path in &self.loaded.roots {
            let root = self.roots.entry(path.clone()).or_insert_with(|| Served::new(path.clone()));
            if root.open().is_none() {
                reopen_root(root, path, &self.loaded, &mut self.watch, self.now);
            } else if let Err(error) = root.refresh(&self.loaded, self.now) {
                warn_once(root, path, &error);
            } else {
                root.place(&mut self.watch);
                root.want("reload", crate::memory::item::Tier::ALL.into());
            }
        }
        tracing::info!("configuration read anew: {} memory folders", self.roots.len());
    }

    /// Tells the service manager that we live, unless a pass gets nowhere.
    fn ping(&mut self) {
        self.ping_at = self.ping_every.map(|it| Instant::now() + it);
        if let Some(running) = &mut self.running {
            let beats = running.pulse.beats();
            if beats != running.still.0 {
                running.still = (beats, Instant::now());
            }
            if running.still.1.elapsed() >= HANG {
                let minutes = HANG.as_secs() / 60;
                tracing::error!("{}: no job ended for {minutes} minutes", running.root.display());
                return;
            }
        }
        Manager::ping();
    }

    /// Says in plain words what is being done.
    fn tell(&mut self) {
        let open = self.roots.values().filter(|it| it.open().is_some());
        let next = open.clone().filter_map(|it| it.open()?.agenda.next_local());
        let next = next.min_by_key(|it| it.with_timezone(&Utc));
        let (served, all) = (open.clone().count(), self.roots.len());
        let (due, stuck) =
            open.map(Served::counts).fold((0, 0), |all, it| (all.0 + it.0, all.1 + it.1));
        let mut words = Vec::new();
        words.extend(self.running.as_ref().map(|it| format!("looking at {}", it.root.display())));
        words.push(format!("watching {served} of {all} memory folders"));
        words.push(if due > 0 { format!("{due} due") } else { "nothing due".to_owned() });
        words.extend((stuck > 0).then(|| format!("{stuck} stuck")));
        words.extend(next.map(|it| format!("next {}", it.format("%Y-%m-%d %H:%M %Z"))));
        let text = words.join("; ");
        self.manager.status(text);
    }

    /// Sets the timer of the clock: to what comes next, and never far ahead.
    fn set_tick(&mut self) {
        let most = if clock::is_in_file() { CLOCK_FILE_EVERY } else { CLOCK_EVERY };
        let quiet = self.roots.values().map(|it| it.quiet_for(self.now)).min();
        let at = Instant::now();
        self.tick_at = (at + most.min(quiet.unwrap_or(most))).min(self.reopen_at.max(at));
    }

    fn read_clock(&mut self) {
        match clock::now() {
            Ok(now) => self.now = now,
            Err(error) => tracing::debug!("{error}"),
        }
    }

    /// Lets the job at hand end, and goes.
    async fn end(&mut self) {
        Manager::stopping();
        if let Some(running) = &mut self.running {
            running.pulse.stop();
            if let Ok(ended) = timeout(STOP_WAIT, &mut running.task).await {
                self.pass_done(ended);
            } else {
                tracing::warn!("{}: the job at hand did not end", running.root.display());
            }
        }
        tracing::info!("stopped");
    }
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.hangup.recv() => Signal::Reload,
        }
    }
}

impl Loaded {
    /// Reads the configuration, and which roots of it are meant: the one that is named, else all.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the configuration, or that nothing says which root is meant.
    pub fn read(
        file: Option<&Path>,
        set: &[String],
        root: Option<&Path>,
    ) -> Result<Self, config::Error> {
        let around = Surroundings::read()?;
        let config = Config::load(file, set, &around)?;
        let named = root.is_some() || around.variable("MEMOIRD_ROOT").is_some();
        let roots = if named || config.roots.is_empty() {
            vec![config.choose(root, &around)?]
        } else {
            config.roots.iter().map(|it| it.path.clone()).collect()
        };
        Ok(Self { around, config, roots })
    }
}

/// Waits for the pass at work; for ever when there is none.
async fn finished(running: &mut Option<Running>) -> Result<Result<Done, PassError>, JoinError> {
    match running {
        Some(it) => (&mut it.task).await,
        None => pending().await,
    }
}

fn reopen_root(
    root: &mut Served,
    path: &Path,
    loaded: &Loaded,
    watch: &mut Watch,
    now: DateTime<Utc>,
) {
    match root.start(loaded, watch, now) {
        Ok(()) => tracing::info!("{}: watching", path.display()),
        Err(error) => warn_once(root, path, &error),
    }
}

fn warn_once(root: &mut Served, path: &Path, error: &RootError) {
    let text = chain(error);
    if root.is_news(&text) {
        tracing::warn!("{}: {text}", path.display());
    }
}

/// Returns an error and its sources on one line, without secrets that it quotes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = error.source();
    }
    Rules::told(&text)
}
