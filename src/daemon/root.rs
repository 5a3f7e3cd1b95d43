//! One root as the daemon serves it: its lock, its agenda, and what is wanted of it.
//!
//! A root that cannot be served now (its folder is missing, its `memoird.yaml` is wrong, another
//! host folds it) is asked about again once a minute, and stops no other root.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use super::{
    Loaded,
    pass::{BATCH, Done},
    schedule::Agenda,
    state::{DaemonState, Mode},
    watch::Watch,
};
use crate::{
    compaction::rebuild::Look,
    config::{self, root::RootSettings, settings::EngineKind},
    engine::configured,
    memory::{hash::ContentHash, item::Tier, period::Grain},
    model::open::OpenError,
    privacy::PolicyError,
    store::{
        layout::Layout,
        lock::{DaemonLock, LockError},
        vault::{Vault, VaultError},
    },
};

/// A burst of changes has ended when nothing came for so long.
const BURST_QUIET: Duration = Duration::from_secs(2);
/// A burst that does not end is cut here.
const BURST_MAX: Duration = Duration::from_secs(60);
/// How often a root is looked at though nobody told of a change: events can be lost.
const SCAN_EVERY: Duration = Duration::from_secs(15 * 60);
/// How often a root is looked at whose changes nobody tells of.
const POLL_EVERY: Duration = Duration::from_secs(30);
/// How often every row of the database is read, beside once at the start: a file that a disk has
/// damaged is best noticed while copies of it still exist elsewhere.
const CLOSE_LOOK_EVERY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A pass that could not be made is tried again after so long, then after twice as long, …
const BACKOFF_MIN: Duration = Duration::from_secs(1);
/// … up to this.
const BACKOFF_MAX: Duration = Duration::from_secs(10 * 60);
/// A job that failed is tried again after so long; three failures park it.
const JOB_AGAIN: Duration = Duration::from_secs(60);

/// How often a batch is asked after that a provider works on.
const BATCH_EVERY: TimeDelta = TimeDelta::minutes(10);

/// One root.
#[derive(Debug)]
pub(super) struct Served {
    path: PathBuf,
    open: Option<Open>,
    /// What was last said of it in the log, so that it is not said every minute.
    told: String,
    burst: Option<Burst>,
    want: Option<Want>,
    scan_at: Instant,
    /// When the database is to be looked at closely.
    close_look_at: Instant,
    /// When failed jobs are to be tried again.
    again_at: Option<Instant>,
    /// When a batch is to be asked after.
    batch_at: Option<DateTime<Utc>>,
    backoff: Backoff,
    /// Why nothing is written until a person has done something.
    paused: Option<String>,
    /// What stood there after the last pass.
    seen: Option<ContentHash>,
    /// Whether a change was told of since.
    announced: bool,
    last_event: Option<DateTime<Utc>>,
    last_scan: Option<DateTime<Utc>>,
    missed: u64,
    /// Counts of the last plan: due, stuck.
    due: usize,
    stuck: usize,
}

/// What is there while a root can be served.
#[derive(Debug)]
pub(super) struct Open {
    _lock: DaemonLock,
    /// The files that the paths of root and lock named when they were opened.
    identity: Identity,
    pub(super) settings: RootSettings,
    pub(super) vault: Vault,
    pub(super) agenda: Agenda,
    mode: Mode,
    since: DateTime<Utc>,
}

/// A pass that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Want {
    pub(super) trigger: &'static str,
    /// What to make; nothing for a look alone.
    pub(super) tiers: BTreeSet<Tier>,
}

/// Changes that come close after each other.
#[derive(Clone, Copy, Debug)]
struct Burst {
    first: Instant,
    last: Instant,
}

/// How long to leave a root alone that cannot be worked on.
#[derive(Clone, Copy, Debug, Default)]
struct Backoff {
    delay: Duration,
    until: Option<Instant>,
}

/// Device and inode of the root's folder and of its lock file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity([(u64, u64); 2]);

/// Why a root is not served now.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// Its folder is missing, or what it is to be run with is wrong.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// Its private folder cannot be made.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The folder cannot be used.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Another daemon serves it, or its lock file cannot be opened.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The model that it is to be run with cannot be asked.
    #[error("`{}`: {source}", root.display())]
    Model {
        /// The root.
        root: PathBuf,
        /// Why.
        source: OpenError,
    },
    /// Its `memoird.yaml` names another host as the one that folds.
    #[error("`{}` is summarised by the host `{writer}`; this one only reads it", root.display())]
    Reader {
        /// The root.
        root: PathBuf,
        /// The host.
        writer: String,
    },
    /// It was there a moment ago.
    #[error("cannot look at `{}`", root.display())]
    Gone {
        /// The root.
        root: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Served {
    /// Makes a root that is not opened yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            open: None,
            told: String::new(),
            burst: None,
            want: None,
            scan_at: Instant::now() + SCAN_EVERY,
            close_look_at: Instant::now(),
            again_at: None,
            batch_at: None,
            backoff: Backoff::default(),
            paused: None,
            seen: None,
            announced: false,
            last_event: None,
            last_scan: None,
            missed: 0,
            due: 0,
            stuck: 0,
        }
    }

    /// Returns what is there while it can be served.
    pub(super) fn open(&self) -> Option<&Open> {
        self.open.as_ref()
    }

    /// Starts to serve it: settings, lock, watches; what is due is wanted at once.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be served now.
    pub(super) fn start(
        &mut self,
        loaded: &Loaded,
        watch: &mut Watch,
        now: DateTime<Utc>,
    ) -> Result<(), RootError> {
        let settings = read(&self.path, loaded)?;
        let vault = Vault::of(&settings)?;
        vault.create_private_dir()?;
        let layout = vault.layout();
        let lock = DaemonLock::acquire(layout)?;
        let identity = Identity::of(layout)
            .map_err(|source| RootError::Gone { root: self.path.clone(), source })?;
        let model = &settings.settings.model;
        let is_model = settings.settings.engine == EngineKind::Model;
        if is_model && model.batch && !model.provider.has_batches() {
            let root = self.path.display();
            tracing::warn!(
                "{root}: model.batch: this provider has no batches; it is asked directly"
            );
        }
        let agenda = Agenda::new(&settings, now);
        self.open = Some(Open {
            _lock: lock,
            identity,
            settings,
            vault,
            agenda,
            mode: Mode::Inotify,
            since: now,
        });
        self.told.clear();
        self.backoff = Backoff::default();
        self.seen = None;
        self.want("start", Tier::ALL.into());
        self.place(watch);
        self.save();
        Ok(())
    }

    /// Stops serving it; its lock is free again.
    pub(super) fn close(&mut self, watch: &mut Watch) {
        watch.forget(&self.path);
        self.open = None;
        self.burst = None;
    }

    /// Reads its settings anew. Wrong ones are refused, and those at hand stay.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with them.
    pub(super) fn refresh(&mut self, loaded: &Loaded, now: DateTime<Utc>) -> Result<(), RootError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let settings = read(&self.path, loaded)?;
        if settings != open.settings {
            let vault = Vault::of(&settings)?;
            open.agenda = Agenda::new(&settings, now);
            open.settings = settings;
            open.vault = vault;
        }
        Ok(())
    }

    /// Returns whether root and lock are still the files that were opened: a folder that was moved
    /// away, or whose private folder was deleted, is no longer ours.
    pub(super) fn is_intact(&self) -> bool {
        let intact =
            |open: &Open| Identity::of(open.vault.layout()).is_ok_and(|it| it == open.identity);
        self.open.as_ref().is_none_or(intact)
    }

    /// Watches its folders, those that have appeared since too; else it is polled.
    pub(super) fn place(&mut self, watch: &mut Watch) {
        let Some(open) = &mut self.open else { return };
        let layout = open.vault.layout();
        let folders = [
            layout.root().to_path_buf(),
            layout.full(layout.memory_dir()),
            layout.full(&layout.summary_dir(Grain::Week)),
            layout.full(&layout.summary_dir(Grain::Month)),
        ];
        let mode = match watch.place(&self.path, &folders) {
            Ok(()) => Mode::Inotify,
            Err(error) => {
                if open.mode == Mode::Inotify {
                    let root = self.path.display();
                    tracing::warn!(
                        "{root}: {error}; looking every {} s instead",
                        POLL_EVERY.as_secs()
                    );
                }
                Mode::Poll
            }
        };
        if mode != open.mode {
            open.mode = mode;
            self.scan_at = Instant::now() + self.scan_every();
        }
    }

    /// Takes note of a change that the system told of.
    pub(super) fn hear(&mut self, overflow: bool, now: DateTime<Utc>) {
        let at = Instant::now();
        let first = self.burst.map_or(at, |it| it.first);
        self.burst = Some(Burst { first, last: at });
        self.announced = true;
        if self.paused.is_some() {
            // A person may be putting right what it waits for, and a pass that pauses causes no event.
            self.backoff.until = None;
        }
        self.last_event = Some(now);
        self.missed += u64::from(overflow);
    }

    /// Returns when its burst of changes ends, if nothing else comes.
    pub(super) fn burst_ends(&self) -> Option<Instant> {
        self.burst.map(|it| (it.last + BURST_QUIET).min(it.first + BURST_MAX))
    }

    /// Ends the burst: a root that makes summaries on change is to be passed over.
    pub(super) fn end_burst(&mut self, watch: &mut Watch) {
        self.burst = None;
        self.place(watch);
        if self.open.as_ref().is_some_and(|it| it.agenda.is_on_change()) {
            self.want("change", Tier::ALL.into());
        }
        self.save();
    }

    /// Wants whatever its agenda and its timers ask for at `now`.
    pub(super) fn tick(&mut self, watch: &mut Watch, now: DateTime<Utc>) {
        let Some(open) = &mut self.open else { return };
        let on_change = open.agenda.is_on_change();
        let tiers = open.agenda.take_due(now);
        if !tiers.is_empty() {
            self.want("tick", tiers);
        }
        let at = Instant::now();
        if self.again_at.is_some_and(|it| it <= at) {
            self.again_at = None;
            self.want("again", Tier::ALL.into());
        }
        if self.scan_at <= at {
            self.place(watch);
            self.scan_at = at + self.scan_every();
            self.want("scan", if on_change { Tier::ALL.into() } else { BTreeSet::new() });
        }
        // A clock that was set back does not put it off.
        if self.batch_at.is_some_and(|it| it <= now || it > now + BATCH_EVERY) {
            self.batch_at = None;
            self.want(BATCH, BTreeSet::new());
        }
    }

    /// Returns for how long nothing is to be done by the clock.
    pub(super) fn quiet_for(&self, now: DateTime<Utc>) -> Duration {
        let Some(open) = &self.open else { return Duration::MAX };
        let at = Instant::now();
        // One that has passed waits for another root's pass to end, not for the clock.
        let retry = self.backoff.until.filter(|it| self.want.is_some() && *it > at);
        let timers = [Some(self.scan_at), self.again_at, retry];
        let timers = timers.into_iter().flatten().map(|it| it.saturating_duration_since(at));
        let agenda = open.agenda.next().map(|it| (it - now).to_std().unwrap_or_default());
        let batch = self.batch_at.map(|it| (it - now).to_std().unwrap_or_default());
        timers.chain(agenda).chain(batch).min().unwrap_or(Duration::MAX)
    }

    /// Asks for a pass; one that is asked for already does both.
    pub(super) fn want(&mut self, trigger: &'static str, tiers: BTreeSet<Tier>) {
        match &mut self.want {
            Some(want) => {
                if want.tiers.is_empty() {
                    want.trigger = trigger;
                }
                want.tiers.extend(tiers);
            }
            None => self.want = Some(Want { trigger, tiers }),
        }
    }

    /// Returns whether a pass is wanted and nothing speaks against it now.
    pub(super) fn is_ready(&self) -> bool {
        let waits = self.backoff.until.is_some_and(|it| Instant::now() < it);
        self.open.is_some() && self.want.is_some() && !waits
    }

    /// Returns how closely the next pass is to look at the database before it.
    pub(super) fn closeness(&self) -> Look {
        if self.close_look_at <= Instant::now() { Look::Close } else { Look::Glance }
    }

    /// Takes the pass that is wanted, to make it.
    pub(super) fn take_want(&mut self) -> Option<Want> {
        self.want.take()
    }

    /// Takes note of what a pass found.
    pub(super) fn note(&mut self, want: &Want, done: &Done) {
        let fingerprint = done.fingerprint();
        let changed = self.seen.is_some_and(|it| it != fingerprint);
        if want.trigger == "scan" && changed && !self.announced {
            self.missed += u64::from(self.open.as_ref().is_some_and(|it| it.mode == Mode::Inotify));
        }
        self.seen = Some(fingerprint);
        // A burst that is under way was announced, and is not looked at yet.
        self.announced = self.burst.is_some();
        self.backoff = Backoff::default();
        self.paused = None;
        let failed = done.report.jobs.iter().any(|it| it.outcome == "failed");
        let unsent = done.scheduled.is_err();
        self.again_at = (failed || unsent).then(|| Instant::now() + JOB_AGAIN);
        let scheduled = done.scheduled.as_ref().copied().unwrap_or_default();
        // A look that did not ask after it does not put it off.
        let batch_at = self.batch_at.unwrap_or(done.begun + BATCH_EVERY);
        self.batch_at = scheduled.waits.then_some(batch_at);
        if scheduled.again {
            self.want("again", Tier::ALL.into());
        }
        self.last_scan = Some(done.at);
        if done.look == Look::Close {
            self.close_look_at = Instant::now() + CLOSE_LOOK_EVERY;
        }
        self.due = done.plan.jobs.len() + done.plan.following.len();
        self.stuck = stuck(done);
        if let Some(open) = &mut self.open {
            open.agenda.note(&done.plan, &done.inventory, done.at);
        }
        self.save();
    }

    /// Takes note of a pass that could not be made: it is wanted again, later each time.
    pub(super) fn fail(&mut self, want: Want) -> Duration {
        self.want(want.trigger, want.tiers);
        let delay = (self.backoff.delay * 2).clamp(BACKOFF_MIN, BACKOFF_MAX);
        self.backoff = Backoff { delay, until: Some(Instant::now() + delay) };
        delay
    }

    /// Takes note of whether the pass that failed waits for a person, and tells other processes.
    pub(super) fn pause(&mut self, why: Option<String>) {
        if self.paused != why {
            self.paused = why;
            self.save();
        }
    }

    /// Returns whether `text` is news about the root, and remembers it.
    pub(super) fn is_news(&mut self, text: &str) -> bool {
        let news = self.told != text;
        text.clone_into(&mut self.told);
        news
    }

    /// Returns how many jobs are due and how many are stuck, as of the last look.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.due, self.stuck)
    }

    fn scan_every(&self) -> Duration {
        match self.open.as_ref().map(|it| it.mode) {
            Some(Mode::Poll) => POLL_EVERY,
            _ => SCAN_EVERY,
        }
    }

    /// Writes what other processes may want to know.
    fn save(&self) {
        let Some(open) = &self.open else { return };
        let state = DaemonState {
            pid: std::process::id(),
            since: open.since,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: open.mode,
            last_event: self.last_event,
            last_scan: self.last_scan,
            missed: self.missed,
            paused: self.paused.clone(),
        };
        if let Err(error) = state.write(&open.vault.layout().private_dir()) {
            tracing::debug!("{}: daemon.json: {error}", self.path.display());
        }
    }
}

impl Identity {
    fn of(layout: &Layout) -> io::Result<Self> {
        let id = |path: &Path| fs::metadata(path).map(|it| (it.dev(), it.ino()));
        Ok(Self([id(layout.root())?, id(&layout.daemon_lock())?]))
    }
}

/// Reads what a root is run with, and refuses one that is not for us.
pub(super) fn read(path: &Path, loaded: &Loaded) -> Result<RootSettings, RootError> {
    let settings = loaded.config.open(path, &loaded.around)?;
    let root = || path.to_path_buf();
    configured::engine(&loaded.config, &settings, &loaded.around, Duration::ZERO)
        .map_err(|source| RootError::Model { root: root(), source })?;
    if !settings.is_written_by(&loaded.around.host) {
        let writer = settings.writer.clone().unwrap_or_default();
        return Err(RootError::Reader { root: root(), writer });
    }
    Ok(settings)
}

fn stuck(done: &Done) -> usize {
    use crate::compaction::plan::WaitCause;
    done.plan
        .waiting
        .iter()
        .filter(|it| matches!(it.cause, WaitCause::Parked(_) | WaitCause::Held(_)))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served() -> Served {
        Served::new("/no".into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_ends_when_it_is_quiet_and_not_later_than_a_minute() {
        let mut root = served();
        assert_eq!(root.burst_ends(), None);
        let start = Instant::now();
        for second in 0..100 {
            root.hear(false, DateTime::UNIX_EPOCH);
            let expected = (second + 2).min(60);
            assert_eq!(root.burst_ends(), Some(start + Duration::from_secs(expected)));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_cannot_be_made_is_tried_less_and_less_often() {
        let mut root = served();
        let want = Want { trigger: "change", tiers: Tier::ALL.into() };
        let delays: Vec<u64> = (0..12).map(|_| root.fail(want.clone()).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(root.take_want(), Some(want));
    }

    #[tokio::test(start_paused = true)]
    async fn the_database_is_looked_at_closely_at_first_and_once_a_week() {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let mut root = served();
        let want = Want { trigger: "scan", tiers: BTreeSet::new() };
        let mut close = Vec::new();
        for day in 0..20 {
            let look = root.closeness();
            if look == Look::Close {
                close.push(day);
            }
            let (report, plan, inventory) = Default::default();
            let at = DateTime::UNIX_EPOCH;
            let scheduled = Ok(crate::model::Scheduled::default());
            root.note(&want, &Done { report, plan, inventory, look, scheduled, begun: at, at });
            tokio::time::advance(DAY).await;
        }
        assert_eq!(close, [0, 7, 14]);
    }

    #[test]
    fn what_is_wanted_twice_is_done_once() {
        let mut root = served();
        root.want("scan", BTreeSet::new());
        root.want("tick", [Tier::Weekly].into());
        root.want("change", [Tier::Extract].into());
        let expected = Want { trigger: "tick", tiers: [Tier::Extract, Tier::Weekly].into() };
        assert_eq!(root.take_want(), Some(expected));
        assert_eq!(root.take_want(), None);
    }
}
