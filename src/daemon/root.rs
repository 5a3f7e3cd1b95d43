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
    error::RootError,
    loaded::Loaded,
    metrics::Figures,
    noticing::{Mode, Noticing},
    pass::{BATCH, Done, LEARN},
    problem::Problem,
    schedule::{self, Agenda},
    snapshot::{self, Folder, Interest, Snapshot},
    state::DaemonState,
    waiting::Waiting,
    watch::{Dirty, Watch},
};
use crate::{
    compaction::rebuild::Look,
    config::{self, root::RootSettings, settings::EngineKind},
    memory::item::Tier,
    recall::search::Learned,
    store::{
        filesystem::{self, Kind},
        layout::Layout,
        lock::DaemonLock,
        vault::Vault,
    },
};

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
/// Where another process makes a pass, it is asked again after so long.
const BUSY_AGAIN: Duration = Duration::from_secs(5);
/// A job that failed is tried again after so long; three failures park it.
const JOB_AGAIN: Duration = Duration::from_secs(60);

/// How often a batch is asked after that a provider works on.
const BATCH_EVERY: TimeDelta = TimeDelta::minutes(10);

/// One root.
#[derive(Debug)]
pub(super) struct Served {
    path: PathBuf,
    open: Option<Open>,
    /// It was served before: if it stands empty then, its disk is gone, and nothing is put in its place.
    was_opened: bool,
    /// What was last said of it in the log, so that it is not said every minute.
    told: String,
    /// How long it waits when the clock makes something due, so that many roots take turns.
    jitter: Duration,
    noticing: Noticing,
    /// A pass over it is under way.
    at_work: bool,
    /// How many have ended since it is served.
    passes: u64,
    /// How many jobs ended in which way.
    jobs: BTreeMap<&'static str, u64>,
    want: Option<Want>,
    scan_at: Instant,
    /// When it is looked at next because nobody tells of changes.
    peek_at: Option<Instant>,
    /// It is to be looked at once, since what changed in a folder before it was watched nobody tells of.
    peek_once: bool,
    /// When the database is to be looked at closely.
    close_look_at: Instant,
    /// When failed jobs are to be tried again.
    again_at: Option<Instant>,
    /// When a batch is to be asked after.
    batch_at: Option<DateTime<Utc>>,
    /// Work that waits for its model.
    waiting: Option<Waiting>,
    /// Lines that wait for their vectors.
    learning: Option<Waiting>,
    backoff: Backoff,
    /// Why nothing is written until a person has done something.
    paused: Option<String>,
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
    since: DateTime<Utc>,
}

/// A pass that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Want {
    pub(super) trigger: &'static str,
    /// What to make; nothing for a look alone.
    pub(super) tiers: BTreeSet<Tier>,
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

impl Open {
    /// Returns whether a pass asks a model.
    pub(super) fn asks_model(&self) -> bool {
        self.settings.settings.engine == EngineKind::Model
    }
}

impl Served {
    /// Makes a root that is not opened yet.
    pub(super) fn new(path: PathBuf) -> Self {
        let at = Instant::now();
        Self {
            open: None,
            was_opened: false,
            told: String::new(),
            jitter: Duration::ZERO,
            noticing: Noticing::new(),
            at_work: false,
            passes: 0,
            jobs: BTreeMap::new(),
            want: None,
            scan_at: at + SCAN_EVERY,
            peek_at: None,
            peek_once: false,
            close_look_at: at,
            again_at: None,
            batch_at: None,
            waiting: None,
            learning: None,
            backoff: Backoff::default(),
            paused: None,
            due: 0,
            stuck: 0,
            path,
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
    /// Returns why it cannot be served now. Until then the folder above it is watched for it.
    pub(super) fn start(
        &mut self,
        loaded: &Loaded,
        watch: &mut Watch,
        now: DateTime<Utc>,
    ) -> Result<(), RootError> {
        let Err(error) = self.try_start(loaded, watch, now) else { return Ok(()) };
        self.expect(watch);
        // What was put right before the folders were watched, nobody will tell of.
        if matches!(error, RootError::Lock(_) | RootError::Model { .. }) {
            return Err(error);
        }
        self.try_start(loaded, watch, now).inspect_err(|_| self.expect(watch))
    }

    fn try_start(
        &mut self,
        loaded: &Loaded,
        watch: &mut Watch,
        now: DateTime<Utc>,
    ) -> Result<(), RootError> {
        if self.was_opened && is_empty(&self.path) {
            return Err(RootError::Emptied { root: self.path.clone() });
        }
        let settings = loaded.settings_of(&self.path)?;
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
        self.jitter = schedule::jitter(&self.path, loaded.roots.len());
        let agenda = Agenda::new(&settings, self.jitter, now);
        self.open = Some(Open { _lock: lock, identity, settings, vault, agenda, since: now });
        self.was_opened = true;
        self.told.clear();
        self.backoff = Backoff::default();
        self.noticing.reset();
        self.passes = 0;
        self.waiting = None;
        self.scan_at = Instant::now() + SCAN_EVERY + self.jitter;
        self.want("start", Tier::ALL.into());
        self.place(watch);
        self.save();
        Ok(())
    }

    /// Has the folder above tell when it is there, and itself when what is wrong with it changes.
    pub(super) fn expect(&self, watch: &mut Watch) {
        let Some((above, name)) = self.path.parent().zip(self.path.file_name()) else { return };
        let only = |name: &std::ffi::OsStr| Interest::Only([name.to_owned()].into());
        let folders = [
            Folder { path: above.to_owned(), interest: only(name) },
            Folder {
                path: self.path.clone(),
                interest: only(config::root::ROOT_FILE_NAME.as_ref()),
            },
        ];
        // It is asked about once a minute all the same.
        if let Err(error) = watch.place(&self.path, &folders) {
            tracing::debug!("{}: {error}", self.path.display());
        }
    }

    /// Stops serving it; its lock is free again.
    pub(super) fn close(&mut self, watch: &mut Watch) {
        watch.forget(&self.path);
        self.open = None;
        self.want = None;
        self.noticing.reset();
    }

    /// Reads its settings anew. Wrong ones are refused, and those at hand stay.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with them.
    pub(super) fn refresh(&mut self, loaded: &Loaded, now: DateTime<Utc>) -> Result<(), RootError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let settings = loaded.settings_of(&self.path)?;
        if settings != open.settings {
            let vault = Vault::of(&settings)?;
            open.agenda = Agenda::new(&settings, self.jitter, now);
            open.settings = settings;
            open.vault = vault;
            // Another model, or another key, may answer at once.
            self.waiting = None;
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

    /// Returns the folders that changes are told of.
    pub(super) fn folders(&self) -> Vec<Folder> {
        self.open.as_ref().map_or_else(Vec::new, |it| snapshot::folders(it.vault.layout()))
    }

    /// Watches its folders, those that have appeared since too; else it is polled.
    pub(super) fn place(&mut self, watch: &mut Watch) {
        let Some(open) = &self.open else { return };
        let distant = match filesystem::of(open.vault.layout().root()) {
            Ok(Kind::Distant(name) | Kind::UnknownFuse(name)) => {
                Some(format!("on {name} the system does not tell of what other hosts change"))
            }
            _ => None,
        };
        let placed = watch.place(&self.path, &self.folders());
        let why = distant.or_else(|| placed.err().map(|it| unwatched(&it)));
        if !self.noticing.placed(why) {
            return;
        }
        let root = self.path.display();
        match self.noticing.mode() {
            Mode::Told => {
                self.peek_at = None;
                tracing::info!("{root}: the system tells of changes again");
            }
            Mode::Polled(why) => {
                tracing::warn!("{root}: {why}; looking every {} s instead", POLL_EVERY.as_secs());
                self.peek_at = Some(Instant::now() + POLL_EVERY);
            }
        }
        self.save();
    }

    /// Watches the folders that a pass has made.
    pub(super) fn place_after_pass(&mut self, watch: &mut Watch) {
        let before = watch.placed(&self.path);
        self.place(watch);
        self.peek_once |= watch.placed(&self.path) != before;
    }

    /// Takes note of a change that the system told of. Returns whether it is about a folder that could
    /// not be served, and may be now.
    pub(super) fn hear(&mut self, dirty: &Dirty, now: DateTime<Utc>) -> bool {
        if self.open.is_none() {
            return true;
        }
        if self.paused.is_some() {
            // A person may be putting right what it waits for, and a pass that pauses causes no event.
            self.backoff.until = None;
        }
        self.noticing.hear(dirty.of(&self.path), dirty.is_overflow(), now);
        false
    }

    /// Returns when its burst of changes ends, if nothing else comes. While a pass is under way nobody
    /// knows what is news.
    pub(super) fn burst_ends(&self) -> Option<Instant> {
        self.noticing.burst_ends().filter(|_| !self.at_work)
    }

    /// Ends the burst: if it is news, the root is to be passed over.
    pub(super) fn end_burst(&mut self, watch: &mut Watch) {
        if !self.noticing.end_burst() {
            return;
        }
        self.place(watch);
        self.want("change", self.on_change());
        self.save();
    }

    /// Returns what is made of a change as soon as it is noticed; nothing for a look alone.
    fn on_change(&self) -> BTreeSet<Tier> {
        let all = self.open.as_ref().is_some_and(|it| it.agenda.is_on_change());
        if all { Tier::ALL.into() } else { BTreeSet::new() }
    }

    /// Wants whatever its agenda and its timers ask for at `now`.
    pub(super) fn tick(&mut self, watch: &mut Watch, now: DateTime<Utc>) {
        let Some(open) = &mut self.open else { return };
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
            self.scan_at = at + SCAN_EVERY;
            self.want("scan", self.on_change());
        }
        if let Some((missed, distrusted)) = self.noticing.end_doubts() {
            self.doubt(missed, distrusted);
        }
        // A clock that was set back does not put it off.
        if self.batch_at.is_some_and(|it| it <= now || it > now + BATCH_EVERY) {
            self.batch_at = None;
            self.want(BATCH, BTreeSet::new());
        }
        let is_over = |it: &Option<Waiting>| it.as_ref().is_some_and(|it| it.is_over(now));
        if is_over(&self.waiting) && self.want.is_none() && !self.at_work {
            self.want("again", Tier::ALL.into());
        }
        if is_over(&self.learning) && self.want.is_none() && !self.at_work {
            self.want(LEARN, BTreeSet::new());
        }
    }

    /// Says that changes were found that nobody had told of.
    fn doubt(&mut self, missed: usize, distrusted: bool) {
        let root = self.path.display();
        tracing::warn!("{root}: {missed} files changed, and the system had not told of it");
        if distrusted {
            let every = POLL_EVERY.as_secs();
            tracing::warn!("{root}: so twice in a row; looking every {every} s from now on");
            self.peek_at = Some(Instant::now() + POLL_EVERY);
        }
        self.save();
    }

    /// Returns whether it is time to look at a folder of whose changes nobody tells, and puts the next
    /// such look off.
    pub(super) fn take_peek(&mut self) -> bool {
        let at = Instant::now();
        let is_polled = self.peek_at.is_some_and(|it| it <= at);
        if self.open.is_none() || self.at_work || !(is_polled || self.peek_once) {
            return false;
        }
        self.peek_once = false;
        self.peek_at = self.peek_at.map(|_| at + POLL_EVERY);
        true
    }

    /// Takes note of what such a look found.
    pub(super) fn peeked(&mut self, found: Option<&Snapshot>) {
        if self.open.is_some() && !self.at_work {
            self.noticing.peeked(found);
        }
    }

    /// Wants to be looked at, since the machine slept or its clock was set.
    pub(super) fn wake(&mut self) {
        if self.open.is_some() {
            self.want("wake", self.on_change());
        }
    }

    /// Returns for how long nothing is to be done by the clock.
    pub(super) fn quiet_for(&self, now: DateTime<Utc>) -> Duration {
        let Some(open) = &self.open else { return Duration::MAX };
        let at = Instant::now();
        // One that has passed waits for another root's pass to end, not for the clock.
        let retry = self.backoff.until.filter(|it| self.want.is_some() && *it > at);
        let peek = self.peek_at.filter(|_| !self.at_work);
        let timers = [Some(self.scan_at), peek, self.again_at, self.noticing.doubts_end(), retry];
        let timers = timers.into_iter().flatten().map(|it| it.saturating_duration_since(at));
        let is_idle = self.want.is_none() && !self.at_work;
        let until = |it: &Option<Waiting>| it.as_ref().filter(|_| is_idle).map(|it| it.until);
        let clock =
            [open.agenda.next(), self.batch_at, until(&self.waiting), until(&self.learning)];
        let clock = clock.into_iter().flatten();
        let clock = clock.map(|it| (it - now).to_std().unwrap_or_default());
        timers.chain(clock).min().unwrap_or(Duration::MAX)
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
        self.open.is_some() && self.want.is_some() && !self.at_work && !waits
    }

    /// Returns how closely the next pass is to look at the database before it.
    pub(super) fn closeness(&self) -> Look {
        if self.close_look_at <= Instant::now() { Look::Close } else { Look::Glance }
    }

    /// Takes the pass that is wanted, to make it.
    pub(super) fn begin(&mut self, watch: &Watch) -> Option<Want> {
        let want = self.want.take()?;
        self.at_work = true;
        self.noticing.begin(watch.placed(&self.path));
        self.save();
        Some(want)
    }

    /// Takes note of what a pass found.
    pub(super) fn note(&mut self, done: Done) {
        self.at_work = false;
        self.passes += 1;
        for job in &done.report.jobs {
            *self.jobs.entry(job.outcome).or_default() += 1;
        }
        self.backoff = Backoff::default();
        self.paused = None;
        let failed = done.report.jobs.iter().any(|it| it.outcome == "failed");
        let unsent = done.scheduled.is_err();
        let closed = done.closed.as_ref().filter(|_| !done.plan.jobs.is_empty());
        let unanswered = done.report.model.as_deref();
        self.waiting = Waiting::after(self.waiting.as_ref(), closed, unanswered, done.at);
        let again = (failed || unsent) && self.waiting.is_none();
        self.again_at = again.then(|| Instant::now() + JOB_AGAIN);
        let scheduled = done.scheduled.as_ref().copied().unwrap_or_default();
        // A look that did not ask after it does not put it off.
        let batch_at = self.batch_at.unwrap_or(done.begun + BATCH_EVERY);
        self.batch_at = scheduled.waits.then_some(batch_at);
        if scheduled.again {
            self.want("again", Tier::ALL.into());
        }
        self.note_learned(done.learned.as_ref(), done.at);
        if done.look == Look::Close {
            self.close_look_at = Instant::now() + CLOSE_LOOK_EVERY;
        }
        self.due = done.plan.jobs.len() + done.plan.following.len();
        self.stuck = stuck(&done);
        if let Some(open) = &mut self.open {
            open.agenda.note(&done.plan, &done.written, done.changed, (done.begun, done.at));
        }
        let is_done = failed || self.waiting.is_some() || done.is_complete();
        self.noticing.note(done.found, is_done, done.at);
        self.save();
    }

    /// Takes note of what came of having vectors made.
    fn note_learned(&mut self, learned: Option<&Result<Learned, String>>, at: DateTime<Utc>) {
        let failed = match learned {
            None => return,
            Some(Ok(Learned { failed: None, left, .. })) => {
                self.learning = None;
                if *left > 0 {
                    self.want(LEARN, BTreeSet::new());
                }
                return;
            }
            Some(Ok(Learned { failed: Some(why), .. })) => why.to_string(),
            Some(Err(why)) => why.clone(),
        };
        self.cannot_learn(&failed, at);
    }

    /// Takes note that no vectors can be had now: that is tried again, later each time.
    pub(super) fn cannot_learn(&mut self, why: &str, at: DateTime<Utc>) {
        if self.learning.as_ref().is_none_or(|it| it.why != why) {
            tracing::warn!("{}: no line can be given a vector: {why}", self.path.display());
        }
        self.learning = Waiting::after(self.learning.as_ref(), None, Some(why), at);
    }

    /// Returns whether it makes sense to ask for vectors now.
    pub(super) fn may_learn(&self, now: DateTime<Utc>) -> bool {
        self.learning.as_ref().is_none_or(|it| it.is_over(now))
    }

    /// Takes note of a pass that another process kept from being made: it is wanted again soon.
    pub(super) fn put_off(&mut self, want: Want) {
        let backoff = self.backoff;
        self.fail(want);
        self.backoff = Backoff { until: Some(Instant::now() + BUSY_AGAIN), ..backoff };
    }

    /// Takes note of a pass that could not be made: it is wanted again, later each time.
    pub(super) fn fail(&mut self, want: Want) -> Duration {
        self.at_work = false;
        self.noticing.fail();
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

    /// Returns what Prometheus is told of it.
    pub(super) fn figures(&self) -> Figures {
        Figures {
            is_served: self.open.is_some(),
            due: self.due,
            stuck: self.stuck,
            is_paused: self.paused.is_some(),
            is_waiting: self.waiting.is_some(),
            is_polled: matches!(self.noticing.mode(), Mode::Polled(_)),
            missed: self.noticing.missed,
            overflows: self.noticing.overflows,
            passes: self.passes,
            jobs: self.jobs.clone(),
            last_scan: self.noticing.last_scan,
            next: self.open.as_ref().and_then(|it| it.agenda.next()),
        }
    }

    /// Returns what needs a person.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let stuck = (self.stuck > 0).then(|| Problem {
            kind: "stuck",
            text: format!("{} jobs are stuck; `memoird status` says why", self.stuck),
        });
        let waiting = self.waiting.as_ref().filter(|it| it.is_problem());
        let waiting = waiting.map(|it| Problem { kind: "model", text: it.why.clone() });
        let paused = self.paused.clone().map(|text| Problem { kind: "paused", text });
        let learning = self.learning.as_ref().filter(|it| it.is_problem());
        let learning = learning.map(|it| Problem { kind: "embeddings", text: it.why.clone() });
        stuck.into_iter().chain(waiting).chain(paused).chain(learning).collect()
    }

    /// Writes what other processes may want to know.
    fn save(&self) {
        let Some(open) = &self.open else { return };
        let Noticing { missed, overflows, last_event, last_scan, .. } = self.noticing;
        let why = match self.noticing.mode() {
            Mode::Told => None,
            Mode::Polled(why) => Some(why.clone()),
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
            busy: self.at_work || self.want.is_some(),
            passes: self.passes,
            paused: self.paused.clone(),
            waiting: self.waiting.as_ref().map(|it| it.why.clone()),
            waiting_until: self.waiting.as_ref().map(|it| it.until),
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

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut it| it.next().is_none())
}

/// Says in plain words why the system does not watch.
fn unwatched(error: &notify::Error) -> String {
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

    fn done(at: DateTime<Utc>) -> Done {
        let (report, plan, written, changed, found, closed) = Default::default();
        let scheduled = Ok(crate::model::Scheduled::default());
        Done {
            report,
            plan,
            written,
            changed,
            found,
            closed,
            look: Look::Glance,
            scheduled,
            learned: None,
            begun: at,
            at,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_cannot_be_made_is_tried_less_and_less_often() {
        let mut root = served();
        let want = Want { trigger: "change", tiers: Tier::ALL.into() };
        let delays: Vec<u64> = (0..12).map(|_| root.fail(want.clone()).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(root.want, Some(want));
    }

    #[tokio::test(start_paused = true)]
    async fn the_database_is_looked_at_closely_at_first_and_once_a_week() {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let mut root = served();
        let mut close = Vec::new();
        for day in 0..20 {
            let look = root.closeness();
            if look == Look::Close {
                close.push(day);
            }
            root.note(Done { look, ..done(DateTime::UNIX_EPOCH) });
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
        assert_eq!(root.want, Some(expected));
    }
}
