//! The daemon: one loop over one `enum Event`.
//!
//! Whatever can wake it is an [`Event`], and [`Daemon::handle`] is the only place that answers. It
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
//! - [`loaded`]: the configuration, read at start and again on SIGHUP.
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

pub mod error;
pub mod loaded;
mod metrics;
mod noticing;
mod notify;
mod opening;
mod pass;
mod passes;
mod problem;
mod program;
mod root;
pub mod sandbox;
mod schedule;
mod signals;
mod snapshot;
mod state;
mod waiting;
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
    loaded::Loaded,
    metrics::Metrics,
    notify::Manager,
    pass::{Order, Pulse},
    passes::{Ended, Passes},
    problem::Teller,
    program::Program,
    root::{Served, Want},
    sandbox::Confined,
    signals::{Signal, Signals},
    snapshot::Snapshot,
    watch::{Dirty, Watch},
};
use crate::{
    clock,
    compaction::PassError,
    config,
    engine::configured,
    model::{embedding::Side, open},
    privacy,
    session::queue,
    store::{lock::LockError, vault::Vault},
};

/// A sleep is never longer: the wall clock may be set, and timers stand still in suspend.
const CLOCK_EVERY: Duration = Duration::from_secs(60);
/// The same while a test moves the clock in a file.
const CLOCK_FILE_EVERY: Duration = Duration::from_millis(200);
/// How long a pass waits in all for a model that fails; the breaker keeps it away longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a stop waits for the job at hand. A kill after that loses no byte either.
const STOP_WAIT: Duration = Duration::from_secs(20);
/// A clock that ran so much further than our own timers was set, or we slept.
const JUMP: TimeDelta = TimeDelta::minutes(2);
/// Both are at work seldom: one turns the loop, the other is there when it is busy.
const WORKERS: usize = 2;

/// All that can wake the daemon.
#[derive(Debug)]
enum Event {
    /// Something changed in a folder.
    Watch(Dirty),
    /// No further change came to this root for a while.
    BurstEnded(PathBuf),
    /// The clock is to be read: a tick, a period that closes, a scan, or a retry may be due.
    Tick,
    /// A pass has ended.
    PassDone(PathBuf, Want, Box<Ended>),
    /// A look at a folder of whose changes nobody tells.
    Peeked(PathBuf, Option<Snapshot>),
    /// A signal came.
    Signal(Signal),
    /// The service manager wants to hear from us.
    Watchdog,
}

struct Daemon<'a> {
    load: &'a dyn Fn() -> Result<Loaded, config::Error>,
    loaded: Loaded,
    roots: BTreeMap<PathBuf, Served>,
    passes: Passes,
    peeks: JoinSet<(PathBuf, Option<Snapshot>)>,
    watch: Watch,
    signals: Signals,
    manager: Manager,
    program: Program,
    confined: Confined,
    teller: Teller,
    metrics: Metrics,
    since: DateTime<Utc>,
    ping_every: Option<Duration>,
    ping_at: Option<Instant>,
    tick_at: Instant,
    /// When roots that are not open are asked about again.
    reopen_at: Instant,
    /// The time at the last reading that succeeded, and when that was.
    now: DateTime<Utc>,
    read_at: Instant,
}

/// Why the daemon ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was asked to.
    Stopped,
    /// It is to be started again: it is to serve a folder that its sandbox does not hold.
    Again,
}

/// Serves all roots that `load` names until a signal ends it.
///
/// # Errors
///
/// Returns an error when it cannot start: the configuration is wrong, or none of the roots can be
/// served, for a reason that waiting does not mend.
pub fn run(
    load: &dyn Fn() -> Result<Loaded, config::Error>,
    shut_in: bool,
) -> Result<End, DaemonError> {
    // Before there is a second thread: rules hold for the one that asks for them, and all it starts.
    let confined = if shut_in { sandbox::enter(&load()?) } else { Confined::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(DaemonError::Runtime)?;
    let done = runtime.block_on(async { Daemon::start(load, confined)?.run().await });
    // A pass that did not stop in time must not hold up the end.
    runtime.shutdown_background();
    done
}

impl<'a> Daemon<'a> {
    fn start(
        load: &'a dyn Fn() -> Result<Loaded, config::Error>,
        confined: Confined,
    ) -> Result<Self, DaemonError> {
        let now = clock::now()?;
        let loaded = load()?;
        let signals = Signals::new().map_err(DaemonError::Runtime)?;
        let mut watch = Watch::new();
        let mut roots = BTreeMap::new();
        let mut refused = None;
        raise_file_limit();
        for path in &loaded.roots {
            let mut served = Served::new(path.clone());
            if let Err(error) = opening::start(&mut served, path, &loaded, &mut watch, now) {
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
        let ping_every = Manager::ping_every();
        let at = Instant::now();
        Ok(Self {
            load,
            loaded,
            roots,
            passes: Passes::default(),
            peeks: JoinSet::new(),
            watch,
            signals,
            manager: Manager::default(),
            program: Program::running(),
            confined,
            teller: Teller::default(),
            metrics: Metrics::default(),
            since: now,
            ping_every,
            ping_at: ping_every.map(|it| at + it),
            tick_at: at,
            reopen_at: at + CLOCK_EVERY,
            now,
            read_at: at,
        })
    }

    async fn run(mut self) -> Result<End, DaemonError> {
        self.keep_sessions();
        Manager::ready();
        loop {
            self.begin_passes();
            self.begin_peeks();
            self.tell();
            self.set_tick();
            let event = self.next_event().await;
            tracing::trace!(?event);
            if self.handle(event).is_break() {
                self.end().await;
                return Ok(End::Stopped);
            }
            if let Some(root) = self.outside() {
                tracing::warn!(
                    "{root}: what I am shut into does not hold this folder: ending, to be started again"
                );
                self.end().await;
                return Ok(End::Again);
            }
        }
    }

    /// Returns a folder that is to be served and that the sandbox does not let us write to.
    fn outside(&self) -> Option<String> {
        let mut closed = self.roots.iter().filter(|(_, it)| it.open().is_none());
        let root = closed.find(|(path, _)| self.confined.excludes(path))?;
        Some(root.0.display().to_string())
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
            (root, want, ended) = self.passes.ended() => Event::PassDone(root, want, ended),
            (root, found) = peeked(&mut self.peeks) => Event::Peeked(root, found),
            it = self.watch.next() => Event::Watch(it),
        }
    }

    fn handle(&mut self, event: Event) -> ControlFlow<()> {
        self.read_clock();
        match event {
            Event::Watch(dirty) => self.hear(&dirty),
            Event::BurstEnded(path) => {
                if let Some(root) = self.roots.get_mut(&path) {
                    opening::reopen_if_replaced(
                        root,
                        &path,
                        &self.loaded,
                        &mut self.watch,
                        self.now,
                    );
                    root.end_burst(&mut self.watch);
                }
            }
            Event::Tick => self.tick(),
            Event::PassDone(root, want, ended) => {
                self.pass_done(&root, want, *ended);
                self.tell_problems(&root);
                if self.passes.roots().next().is_none() {
                    privacy::rest();
                }
            }
            Event::Peeked(path, found) => {
                if let Some(root) = self.roots.get_mut(&path) {
                    root.peeked(found.as_ref());
                }
            }
            Event::Signal(Signal::Stop) => return ControlFlow::Break(()),
            Event::Signal(Signal::Reload) => self.reload(),
            Event::Watchdog => self.ping(),
        }
        ControlFlow::Continue(())
    }

    /// Tells the roots that are concerned what the system told of.
    fn hear(&mut self, dirty: &Dirty) {
        for (path, root) in self.roots.iter_mut().filter(|(path, _)| dirty.touches(path)) {
            if root.hear(dirty, self.now) && !self.passes.holds(path) {
                tracing::debug!("{}: something changed there or above it", path.display());
                opening::reopen(root, path, &self.loaded, &mut self.watch, self.now);
            }
        }
    }

    /// Asks every root what the time brings.
    fn tick(&mut self) {
        let reopen = self.reopen_at <= Instant::now();
        if reopen {
            self.reopen_at = Instant::now() + CLOCK_EVERY;
            self.keep_sessions();
            self.program.look();
        }
        for (path, root) in &mut self.roots {
            if reopen && !self.passes.holds(path) {
                opening::reopen_if_replaced(root, path, &self.loaded, &mut self.watch, self.now);
                if root.open().is_none() {
                    opening::reopen(root, path, &self.loaded, &mut self.watch, self.now);
                }
            }
            root.tick(&mut self.watch, self.now);
        }
        let file = self.loaded.metrics_file();
        self.metrics.tell(file.as_deref(), self.since, &self.roots);
    }

    /// Does what hooks left, beside the loop: a long transcript takes a second. One is at it at a time, by
    /// the lock of the notes; nobody waits for it, and what a stop of the daemon cuts off is done later.
    fn keep_sessions(&self) {
        let (config, around, now) =
            (self.loaded.config.clone(), self.loaded.around.clone(), self.now);
        drop(tokio::task::spawn_blocking(move || {
            let done = queue::drain(&config, &around, now, false);
            for (name, done) in done.unwrap_or_default() {
                match done {
                    queue::Done::Kept(kept) => {
                        tracing::info!("a session is kept as {}", kept.path);
                    }
                    queue::Done::Failed(error) => {
                        tracing::warn!("{name}: a session is not kept: {error}");
                    }
                    queue::Done::Nothing | queue::Done::Homeless(_) => {}
                }
            }
        }));
    }

    /// Begins the passes that are wanted, as far as there is room for them.
    fn begin_passes(&mut self) {
        while let Some(path) = self.passes.next(&self.roots) {
            self.passes.had_turn(&path);
            let Some(root) = self.roots.get_mut(&path) else { continue };
            if !root.is_intact() {
                opening::reopen_if_replaced(root, &path, &self.loaded, &mut self.watch, self.now);
                continue;
            }
            opening::refresh(root, &path, &self.loaded, &mut self.watch, self.now);
            let Some(open) = root.open() else { continue };
            let around = &self.loaded.around;
            let made = configured::engine(&self.loaded.config, &open.settings, around, PATIENCE);
            let engine = match made {
                Ok(engine) => engine,
                Err(source) => {
                    let error = RootError::Model { root: path.clone(), source };
                    opening::warn_once(root, &path, &error);
                    if let Some(want) = root.begin(&self.watch) {
                        root.fail(want);
                    }
                    continue;
                }
            };
            let (vault, settings) = (open.vault.clone(), open.settings.clone());
            let (look, folders) = (root.closeness(), root.folders());
            let config = &self.loaded.config;
            let embedder = match open::embedder(config, &settings, around, Side::Line) {
                _ if !root.may_learn(self.now) => None,
                Ok(embedder) => embedder,
                Err(error) => {
                    root.cannot_learn(&error.to_string(), self.now);
                    None
                }
            };
            let Some(want) = root.begin(&self.watch) else { continue };
            let order = Order {
                vault,
                engine,
                embedder,
                settings,
                trigger: want.trigger,
                tiers: want.tiers.clone(),
                look,
                folders,
                now: self.now,
                pulse: Pulse::default(),
            };
            tracing::debug!("{}: pass ({})", path.display(), want.trigger);
            self.passes.begin(path, want, order);
        }
    }

    /// Looks at the folders of whose changes nobody tells. A disk that does not answer holds up that
    /// look alone.
    fn begin_peeks(&mut self) {
        for (path, root) in &mut self.roots {
            if root.take_peek() {
                let (path, folders) = (path.clone(), root.folders());
                self.peeks.spawn_blocking(move || (path, Snapshot::take(&folders).ok()));
            }
        }
    }

    fn pass_done(&mut self, path: &Path, want: Want, ended: Ended) {
        // What the system told of meanwhile may be what the pass has just written.
        let dirty = self.watch.take();
        self.hear(&dirty);
        // It may have been taken out of the configuration in the meantime.
        let Some(root) = self.roots.get_mut(path) else { return };
        let name = path.display();
        let why = match ended {
            Ok(Ok(done)) => {
                if let Some(line) = done.line() {
                    tracing::info!("{name}: {line}");
                }
                root.is_news("");
                root.note(done);
                root.place_after_pass(&mut self.watch);
                if root.open().is_none() {
                    // It came into the configuration again while the pass was at work.
                    opening::reopen(root, path, &self.loaded, &mut self.watch, self.now);
                }
                return;
            }
            Ok(Err(error @ PassError::Lock(LockError::Busy { .. }))) => {
                root.put_off(want);
                if root.is_news(&error.to_string()) {
                    tracing::info!("{name}: another process makes summaries here; waiting for it");
                }
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

    /// Has a program of the user's own told what is wrong with a root.
    fn tell_problems(&mut self, path: &Path) {
        if let Some(root) = self.roots.get(path) {
            let command = self.loaded.config.settings.on_problem.as_deref();
            self.teller.look(command, path, root.problems());
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
            let read = loaded.settings_of(path).and_then(|it| Ok(Vault::of(&it)?));
            if let Err(error @ (RootError::Model { .. } | RootError::Policy(_))) = read {
                tracing::error!("{}; the configuration stays as it was", chain(&error));
                return;
            }
        }
        self.loaded = loaded;
        self.roots.retain(|path, root| {
            let stays = self.loaded.roots.contains(path);
            if !stays {
                self.passes.stop(path);
                root.close(&mut self.watch);
                tracing::info!("{}: no longer watched", path.display());
            }
            stays
        });
        for path in &self.loaded.roots {
            let root = self.roots.entry(path.clone()).or_insert_with(|| Served::new(path.clone()));
            if self.passes.holds(path) {
                // Read before its next pass anyway.
                root.want("reload", crate::memory::item::Tier::ALL.into());
                continue;
            }
            opening::reopen_if_replaced(root, path, &self.loaded, &mut self.watch, self.now);
            if root.open().is_none() {
                opening::reopen(root, path, &self.loaded, &mut self.watch, self.now);
            } else if opening::refresh(root, path, &self.loaded, &mut self.watch, self.now) {
                root.place(&mut self.watch);
                root.want("reload", crate::memory::item::Tier::ALL.into());
            }
        }
        tracing::info!("configuration read anew: {} memory folders", self.roots.len());
    }

    /// Tells the service manager that we live, unless a pass gets nowhere.
    fn ping(&mut self) {
        self.ping_at = self.ping_every.map(|it| Instant::now() + it);
        if self.passes.hanging().is_some() {
            return;
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
        words.extend(
            self.program.is_replaced.then(|| "restart me: my program was replaced".to_owned()),
        );
        let mut at_work = self.passes.roots();
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
        let most = if clock::is_in_file() { CLOCK_FILE_EVERY } else { CLOCK_EVERY };
        let quiet = self.roots.values().map(|it| it.quiet_for(self.now)).min();
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
        let ours = TimeDelta::from_std(self.read_at.elapsed()).unwrap_or_default();
        if now - self.now > ours + JUMP {
            let minutes = (now - self.now).num_minutes();
            tracing::info!(
                "the clock went on by {minutes} minutes: looking at what came meanwhile"
            );
            self.roots.values_mut().for_each(Served::wake);
        }
        self.now = now;
        self.read_at = Instant::now();
    }

    /// Lets the jobs at hand end, and goes.
    async fn end(&mut self) {
        Manager::stopping();
        for (root, want, ended) in self.passes.end(STOP_WAIT).await {
            self.pass_done(&root, want, *ended);
        }
        self.metrics.end();
        tracing::info!("stopped");
    }
}

/// Waits for a look at a polled folder to end; for ever when none is under way.
async fn peeked(peeks: &mut JoinSet<(PathBuf, Option<Snapshot>)>) -> (PathBuf, Option<Snapshot>) {
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
