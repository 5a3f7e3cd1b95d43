//! The flow: what is due is planned, drafted, checked, written, and recorded.
//!
//! ```text
//! vault (scan) → plan → engine (draft) → ground → vault (write) → lineage (record)
//! ```
//!
//! [`Compactor::pass`] is the one screen that knows the order. A pass makes one tier after the
//! other, and looks at the files again before each, since each rests on what the one before wrote.
//!
//! - [`plan`]: what is due; pure.
//! - [`observe`]: what people did to files since the last pass, and lines that moved.
//! - [`draft`], [`fold`]: a week or a month; drafts are made side by side.
//! - [`kept`]: what a file says of logs that are gone.
//! - [`extract`]: typed memories and `MEMORY.md`; [`nearby`] lines are read once, what is
//!   proposed is [`accept`]ed or kept out, and what is [`known`] is said anew in its own file.
//! - [`distil`]: the wisdom file from months.
//! - [`renamed`]: logs that stand under another name.
//! - [`correct`]: a person's words in the place of an item's, here and above.
//! - [`late`]: memories and entries whose lines were changed.
//! - [`ground`], [`hedge`], [`merge`], [`moved`], [`standing`]: the checks and merges that those use; pure.
//! - [`forget`]: what a person wants gone, and all that derives from it.
//! - [`standstill`]: whether a pass would find nothing to do, told without one.
//! - [`missing`]: the breaker for files that are gone in numbers.
//! - [`archive`]: old logs move away once all that is made of them stands.
//! - [`commit`]: intents, files, and one transaction.
//! - [`history`]: what the history does not know yet, and what it lets go of.
//! - [`records`]: what of each file the lineage keeps, so that a pass and a rebuild agree.
//! - [`rebuild`]: the database anew from the files.
//! - [`check`], [`repair`]: whether all of it is as it was written, and what is done if not.
//! - [`redact`]: secrets that stand where none should.
//! - [`review`]: what waits for a person, and what comes of their word.
//! - [`undo`]: a run taken back.
//! - [`preserve`]: whether amounts and days of the lines stand in the items; pure.
//! - [`preview`]: what would be asked of a model.
//! - [`report`]: what a pass did.

mod accept;
pub mod archive;
pub mod check;
pub mod commit;
pub mod correct;
mod distil;
mod draft;
mod extract;
mod fold;
pub mod forget;
pub mod ground;
mod hedge;
mod history;
mod kept;
mod known;
mod late;
pub mod merge;
pub mod missing;
pub mod moved;
mod nearby;
mod observe;
pub mod plan;
#[cfg(test)]
mod poison;
mod preserve;
pub mod preview;
pub mod rebuild;
pub mod records;
pub mod redact;
mod renamed;
pub mod repair;
pub mod report;
pub mod review;
#[cfg(test)]
mod scripted;
pub mod sessions;
mod standing;
pub mod standstill;
mod together;
pub mod undo;
#[cfg(test)]
mod unhedged;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use chrono::{DateTime, Duration, Utc};

use self::{
    plan::{Job, Plan, PlanSettings, Record, Selection, WaitCause, Waiting},
    report::{HeldFile, JobReport, PassReport},
};
use crate::{
    config::{root::RootSettings, span::Span},
    engine::{Engine, EngineError},
    memory::{address::Stem, hash::ContentHash, item::Tier, period::Period, wisdom::WisdomFile},
    model::{CallError, WorkEnd, failure::Fault},
    parallel,
    store::{
        inventory::{Inventory, Stamp},
        lineage::{
            Lineage, LineageError,
            jobs::{JobId, JobRow, NewJob, NewRun, Outcome, Receipt, RunId, State},
            record::FileStamp,
            review::HeldWhat,
        },
        lock::{LockError, PassLock, WriteLock},
        vault::{Vault, VaultError, scan::Seen},
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
pub trait Watcher {
    /// A job begins; `left` are to come after it in this tier.
    fn begins(&mut self, _job: &Job, _left: usize) {}
    /// A job has ended.
    fn ended(&mut self, _report: &JobReport) {}
    /// Whether to stop before the next job.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Nobody watches.
impl Watcher for () {}

/// What ends a pass before its time. A job that fails alone does not.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
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
    Gone {
        /// The folder.
        path: PathBuf,
        /// How many logs the database knows.
        logs: usize,
    },
    /// What a person wants forgotten cannot be taken out now.
    #[error("forgetting is not finished: {0}; do the same `memoird forget` again")]
    Forget(String),
    /// So many known files are gone that a person is asked.
    #[error("{0}; nothing was done")]
    Missing(missing::Missing),
    /// A generated file is not as it was left, and only a person can say whether that is meant.
    #[error("{path} {}; nothing was done", why.words())]
    Held {
        /// The file, relative to the root.
        path: String,
        /// What is odd.
        why: check::Torn,
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
    Decisions {
        /// What is wrong with the file.
        why: String,
    },
    /// The system gives no random bytes for the key of the decisions.
    #[error("the system gives no random bytes")]
    Random(#[source] std::io::Error),
}

/// Why one job failed.
#[derive(Debug, thiserror::Error)]
enum JobError {
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine fell over. Its words may quote a log, so they are not kept.
    #[error("the engine stopped with an internal error; please report it")]
    Panic,
    /// The sources were changed since the plan was made.
    #[error("{0} changed while it was read; it will be looked at again")]
    Stale(String),
    /// No item stood the check.
    #[error("none of {0} drafted items stood the check against their lines")]
    AllRejected(usize),
    /// A file that is there cannot be read as what it should be.
    #[error("{path}: {reason}")]
    Unreadable { path: String, reason: String },
    /// Ends the pass.
    #[error(transparent)]
    Critical(#[from] PassError),
}

impl JobError {
    /// Returns whether it is not the work's fault: a person was faster, nothing can be written just now,
    /// or the model cannot be had.
    fn is_excused(&self) -> bool {
        match self {
            Self::Stale(_) | Self::Vault(VaultError::Changed { .. }) => true,
            Self::Vault(error) => error.is_write(),
            Self::Engine(EngineError::Model(error)) => error.fault() != Fault::Work,
            _ => false,
        }
    }
}

impl From<LineageError> for JobError {
    fn from(error: LineageError) -> Self {
        Self::Critical(error.into())
    }
}

impl From<LockError> for JobError {
    fn from(error: LockError) -> Self {
        Self::Critical(error.into())
    }
}

/// The files and the record at one moment.
#[derive(Debug)]
pub struct View {
    /// What stands in the root.
    pub inventory: Inventory,
    /// What the database knows beside it.
    pub record: Record,
}

impl View {
    /// Stops where a person is to say first what a file is: to change and record it would take what
    /// is missing there for deleted.
    ///
    /// # Errors
    ///
    /// Returns [`PassError::Held`] for the first such file that is `concerned`.
    pub fn refuse_held(&self, concerned: impl Fn(&str) -> bool) -> Result<(), PassError> {
        match self.record.held.iter().find(|(path, _)| concerned(path)) {
            Some((path, why)) => Err(PassError::Held { path: path.clone(), why: *why }),
            None => Ok(()),
        }
    }
}

/// What a pass did, and what it left behind.
#[derive(Debug)]
pub struct Passed {
    /// The jobs.
    pub report: PassReport,
    /// The files and the record after the last of them.
    pub view: View,
    /// What is due then.
    pub plan: Plan,
}

/// A pass that has taken notice of what people did, and has folded nothing yet.
struct Begun<'a> {
    trigger: &'a str,
    now: DateTime<Utc>,
    /// Begun already, if there was anything to record.
    run: Option<RunId>,
    view: View,
    report: PassReport,
}

/// Jobs of one tier, and for days the weeks that are due after them.
#[derive(Clone, Copy)]
struct Due<'a> {
    jobs: &'a [Job],
    weeks: &'a [Job],
}

/// What a job made, before its receipt is written.
struct Made {
    receipt: Receipt,
    paths: Vec<String>,
}

/// Returns whether a day of a week failed in this pass: what lasts of it would be missing from the
/// wisdom above the week, which would not be due again when the day succeeds.
fn is_held_up(job: &Job, report: &PassReport) -> bool {
    let failed =
        |it: &&JobReport| it.tier == Tier::Extract.name() && it.outcome == Outcome::Failed.name();
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
    pub fn pass(
        &mut self,
        trigger: &str,
        selection: &Selection,
        watcher: &mut dyn Watcher,
    ) -> Result<Passed, PassError> {
        let root = self.vault.layout().root().display().to_string();
        let _span =
            tracing::info_span!("run", root, trigger, run = tracing::field::Empty).entered();
        let _alone = self.alone(&|| watcher.is_stopped())?;
        let now = (self.clock)();
        let before = standstill::before(self.vault, selection);
        self.refuse_if_missing(selection.accept_missing)?;
        self.recover(now)?;
        self.record_unknown(now)?;
        self.sweep()?;
        let last_run = archive::last_run(self.lineage)?;
        let mut selection = selection.clone();
        selection.again.extend(self.finish_forgetting(now, selection.accept_missing)?);
        let finished = self.finish_undoing(now, selection.accept_missing)?;
        let mut view = self.look(now)?;
        if let Some((tier, period)) = self.plan(&view, &selection, now).sourceless {
            return Err(PassError::NoSource { tier, period });
        }
        let put_back = self.put_back_torn(&view, now)?;
        if !put_back.is_empty() {
            view = self.look(now)?;
        }
        let mut report = PassReport { put_back, finished, ..PassReport::default() };
        if self.join_late(&view, now, &mut report)? {
            view = self.look(now)?;
        }
        if selection.accept_missing {
            view.record.held.clear();
        }
        let mut noticing = observe::Noticing { report, ..observe::Noticing::new(trigger, now) };
        if self.observe(&mut noticing, &view)? {
            view = self.look(now)?;
        }
        let observe::Noticing { run, report, .. } = noticing;
        let begun = Begun { trigger, now, run, view, report };
        let mut passed = self.go_on(begun, &mut selection, watcher)?;
        let Passed { report, view, plan } = &mut passed;
        self.end_forgetting(&selection.again, plan)?;
        if selection.is_whole() && self.archive(last_run, view, watcher, report)? {
            *view = self.look(now)?;
            *plan = self.plan(view, &selection, (self.clock)());
        }
        // What waits for a log to be quiet, or for a person to say what a file is, comes yet.
        let comes =
            |it: &Waiting| matches!(it.cause, WaitCause::StillWritten(_) | WaitCause::Held(_));
        let nothing_is_due = plan.jobs.is_empty() && !plan.waiting.iter().any(comes);
        if selection.is_whole() && nothing_is_due {
            self.engine.rest();
            // Nobody is to ask for them again: the work of each is done, or became another. Where work
            // is stuck a person may want to see what the model said.
            if plan.waiting.iter().any(|it| matches!(it.cause, WaitCause::Parked(_))) {
                self.vault.drop_used_replies()?;
            } else {
                self.vault.drop_replies()?;
            }
        }
        let held = view.record.held.iter();
        report.held = held
            .map(|(path, why)| HeldFile { path: path.clone(), reason: why.to_string() })
            .collect();
        report.pruned = self.prune(now)?;
        if let Some(before) = before {
            let (settings, open_week) = (self.settings, selection.open_week);
            standstill::after(
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
    fn go_on(
        &mut self,
        begun: Begun<'_>,
        selection: &mut Selection,
        watcher: &mut dyn Watcher,
    ) -> Result<Passed, PassError> {
        let Begun { trigger, now, mut run, mut view, mut report } = begun;
        let mut corpus = draft::CorpusReader::default();
        if self.make_key(&self.plan(&view, selection, now).jobs, &view)? {
            view = self.look(now)?;
        }
        for tier in Tier::ALL {
            let mut jobs = self.plan(&view, selection, now).jobs;
            jobs.retain(|job| job.tier == tier && !is_held_up(job, &report));
            if jobs.is_empty() {
                continue;
            }
            self.lift(&jobs, &view, now)?;
            let run = self.run(&mut run, trigger, now)?;
            let before = report.jobs.len();
            let weeks = self.weeks_with(&jobs, &view, selection, now);
            let due = Due { jobs: &jobs, weeks: &weeks };
            self.make(run, due, &view, &mut corpus, watcher, &mut report)?;
            // A file in which only citations followed their lines was not made again.
            let again = &mut selection.again;
            again.retain(|&(tier, period)| !report.is_done_after(before, tier, period));
            view = self.look(now)?;
            if self.follow_tier(run, (trigger, now), &mut report, &view)? {
                view = self.look(now)?;
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
        Ok(Passed { report, view, plan })
    }

    /// Makes the key of a root that has none, if a secret in a log of these jobs is to be marked by it.
    fn make_key(&self, jobs: &[Job], view: &View) -> Result<bool, PassError> {
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
            self.new_decisions()?;
        }
        Ok(is_needed)
    }

    /// Looks at the files and at the record.
    ///
    /// # Errors
    ///
    /// Returns an error when the folder cannot be listed or the database cannot be read.
    pub fn look(&mut self, now: DateTime<Utc>) -> Result<View, PassError> {
        let seen = seen(self.lineage)?;
        let scan = self.vault.scan(&seen)?;
        self.remember(&scan.read, &seen, &scan.inventory, now)?;
        let receipts = self.lineage.last_receipts()?;
        let mut record = record(Some(self.lineage), &receipts, &scan.inventory)?;
        record.held = check::held(self.vault, &scan.inventory, self.lineage)?;
        Ok(View { inventory: scan.inventory, record })
    }

    /// Takes notice of what happened to the files since the last pass, and folds nothing.
    ///
    /// # Errors
    ///
    /// Returns an error when the folder cannot be listed, or nothing can be written.
    pub fn notice(&mut self, trigger: &str, now: DateTime<Utc>) -> Result<(), PassError> {
        self.refuse_if_missing(false)?;
        let busy = PassLock::is_held(&self.vault.layout().pass_lock())?;
        self.recover_beside(now, busy)?;
        if !busy && self.knows_nothing()? {
            let _alone = self.alone(&|| false)?;
            self.record_unknown(now)?;
        }
        if self.is_forgetting()? {
            // It knows lines by their places, which would shift under it.
            let _alone = self.alone(&|| false)?;
            self.finish_forgetting(now, false)?;
        }
        self.take_notice(trigger, now, false)
    }

    /// Like [`Self::notice`], for who holds the lock on passes already and is to change generated
    /// files. Returns what stands there then.
    fn notice_alone(&mut self, trigger: &str, now: DateTime<Utc>) -> Result<View, PassError> {
        self.refuse_if_missing(false)?;
        self.recover(now)?;
        self.record_unknown(now)?;
        self.finish_forgetting(now, false)?;
        self.take_notice(trigger, now, false)?;
        let view = self.look(now)?;
        view.refuse_held(|_| true)?;
        Ok(view)
    }

    /// Looks, and puts back first what a disk cut off or emptied; returns also what that was.
    fn look_mended(&mut self, now: DateTime<Utc>) -> Result<(View, Vec<String>), PassError> {
        let view = self.look(now)?;
        let put_back = self.put_back_torn(&view, now)?;
        let view = if put_back.is_empty() { view } else { self.look(now)? };
        Ok((view, put_back))
    }

    /// `accepted` says that a person takes held files as they are.
    fn take_notice(
        &mut self,
        trigger: &str,
        now: DateTime<Utc>,
        accepted: bool,
    ) -> Result<(), PassError> {
        let (mut view, _) = self.look_mended(now)?;
        if accepted {
            view.record.held.clear();
        }
        let mut noticing = observe::Noticing::new(trigger, now);
        let noticed = self.observe(&mut noticing, &view);
        if let Some(run) = noticing.run {
            self.end_run(run)?;
        }
        noticed.map(drop)
    }

    /// Remembers the hashes of logs that were read, except of those changed moments ago: a second
    /// change within the same tick of the clock would not be seen.
    fn remember(
        &mut self,
        read: &[(String, Seen)],
        seen: &HashMap<String, Seen>,
        inventory: &Inventory,
        now: DateTime<Utc>,
    ) -> Result<(), LineageError> {
        let seen_ns = now.timestamp_nanos_opt().unwrap_or(0);
        let settled_ns =
            seen_ns.saturating_sub(Duration::seconds(2).num_nanoseconds().unwrap_or(0));
        let fresh: Vec<(PathBuf, FileStamp)> = read
            .iter()
            .filter(|(_, it)| it.stamp.mtime_ns <= settled_ns)
            .map(|(path, Seen { stamp, hash })| {
                let Stamp { inode, size, mtime_ns } = *stamp;
                (path.into(), FileStamp { inode, size, mtime_ns, hash: *hash, seen_ns })
            })
            .collect();
        let logs = inventory.logs.values().chain(inventory.late.values());
        let there: HashSet<&str> = logs.map(|it| &it.path[..]).collect();
        let gone: Vec<PathBuf> =
            seen.keys().filter(|it| !there.contains(&it[..])).map(PathBuf::from).collect();
        if fresh.is_empty() && gone.is_empty() {
            return Ok(());
        }
        self.lineage.remember_files(&fresh, &gone)
    }

    /// Says what is due.
    pub fn plan(&self, view: &View, selection: &Selection, now: DateTime<Utc>) -> Plan {
        plan_of(view, self.settings, self.engine.id(), selection, now)
    }

    /// Ends a run, and has witnesses beside the database say so.
    fn end_run(&mut self, run: RunId) -> Result<(), PassError> {
        self.lineage.end_run(run, (self.clock)())?;
        self.bear_witness()
    }

    /// Returns the number of the run, which begins with its first job.
    fn run(
        &mut self,
        run: &mut Option<RunId>,
        trigger: &str,
        now: DateTime<Utc>,
    ) -> Result<RunId, PassError> {
        if let Some(run) = *run {
            return Ok(run);
        }
        let owner = commit::owner();
        let new = NewRun { trigger, version: env!("CARGO_PKG_VERSION"), owner: &owner, now };
        let begun = self.lineage.begin_run(&new)?;
        self.engine.begin_run(begun.0);
        tracing::Span::current().record("run", begun.0);
        *run = Some(begun);
        Ok(begun)
    }

    /// Returns the weeks that are due with these days, for an engine that reads them together.
    fn weeks_with(
        &self,
        jobs: &[Job],
        view: &View,
        selection: &Selection,
        now: DateTime<Utc>,
    ) -> Vec<Job> {
        let are_days = jobs.first().is_some_and(|it| it.tier == Tier::Extract);
        if !are_days || !self.engine.is_model() {
            return Vec::new();
        }
        let mut weeks = self.plan(view, selection, now).jobs;
        weeks.retain(|it| it.tier == Tier::Weekly);
        weeks
    }

    /// Makes jobs of one tier.
    fn make(
        &mut self,
        run: RunId,
        Due { jobs, weeks }: Due<'_>,
        view: &View,
        corpus: &mut draft::CorpusReader,
        watcher: &mut dyn Watcher,
        report: &mut PassReport,
    ) -> Result<(), PassError> {
        match jobs.first().map(|it| it.tier) {
            None => Ok(()),
            Some(Tier::Extract) if self.engine.is_model() => {
                self.ask_for_extracts(run, (jobs, weeks), view, watcher, report)
            }
            Some(Tier::Extract) => self.make_extracts(run, jobs, view, watcher, report),
            Some(Tier::Weekly | Tier::Monthly) => {
                self.make_folds(run, jobs, view, corpus, watcher, report)
            }
            Some(Tier::Wisdom) => self.make_wisdom(run, jobs, view, watcher, report),
        }
    }

    /// Makes one edit of `WISDOM.md` after the other, each on what the one before left.
    fn make_wisdom(
        &mut self,
        run: RunId,
        jobs: &[Job],
        view: &View,
        watcher: &mut dyn Watcher,
        report: &mut PassReport,
    ) -> Result<(), PassError> {
        for (i, job) in jobs.iter().enumerate() {
            if watcher.is_stopped() || report.model.is_some() {
                report.left += jobs.len() - i;
                break;
            }
            watcher.begins(job, jobs.len() - i - 1);
            if let Some(id) = self.begin(run, job)? {
                if self.engine.is_model() {
                    self.lineage.mark(id, State::Called)?;
                }
                let made = self.distil(job, id, view);
                self.finish(job, id, made, watcher, report)?;
            }
        }
        Ok(())
    }

    /// Records that a job begins; `None` when another process does the same right now.
    fn begin(&mut self, run: RunId, job: &Job) -> Result<Option<JobId>, LineageError> {
        match self.lineage.begin_job(run, &self.new_job(job)) {
            Err(LineageError::AlreadyLive { .. }) => Ok(None),
            id => id.map(Some),
        }
    }

    /// Tells how a job ended. One that failed stops no other.
    fn finish(
        &mut self,
        job: &Job,
        id: JobId,
        made: Result<Made, JobError>,
        watcher: &mut dyn Watcher,
        report: &mut PassReport,
    ) -> Result<(), PassError> {
        // A pass that ends here leaves the reply, and the next one reads it.
        if !matches!(made, Err(JobError::Critical(_))) {
            let end = match &made {
                Err(JobError::AllRejected(_) | JobError::Panic) => WorkEnd::Useless,
                Err(JobError::Engine(EngineError::Model(call))) if call.fault() == Fault::Work => {
                    WorkEnd::Useless
                }
                Err(error) if error.is_excused() => WorkEnd::Later,
                _ => WorkEnd::Done,
            };
            self.engine.settle(end);
        }
        let made = match made {
            Ok(made) => made,
            Err(JobError::Critical(error)) => return Err(error),
            Err(error) => {
                if let JobError::Engine(EngineError::Model(call)) = &error
                    && !matches!(call.fault(), Fault::Work | Fault::Later)
                {
                    report.model = Some(call.to_string());
                    report.unanswered += 1;
                }
                self.fail(job, id, &error)?
            }
        };
        let due = made.receipt.reason.clone().unwrap_or_else(|| job.reason.to_string());
        let done = JobReport::new(job.tier, job.period, &made.receipt, made.paths, &due);
        watcher.ended(&done);
        report.push(done);
        Ok(())
    }

    /// Adds to a receipt what its work cost.
    fn add_spent(&self, receipt: &mut Receipt) {
        let spent = self.engine.take_spent();
        receipt.figures.model_calls += spent.calls;
        receipt.figures.cost_usd += spent.cost_usd;
    }

    fn new_job(&self, job: &Job) -> NewJob {
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
    fn fail(&mut self, job: &Job, id: JobId, error: &JobError) -> Result<Made, LineageError> {
        let excused = error.is_excused();
        let nothing = matches!(error, JobError::Engine(EngineError::NothingToSay { .. }));
        let mut reason = error.to_string();
        if let Some(source) = std::error::Error::source(error)
            && !reason.contains(&source.to_string())
        {
            reason = format!("{reason}: {source}");
        }
        if let JobError::Engine(EngineError::Model(CallError::Unreadable(_))) = error {
            reason = format!("{reason}; what it said is kept in .memoird/reply-unread-*.json");
        }
        let outcome = if nothing {
            Outcome::Skipped
        } else if !excused && self.lineage.attempts(job.fingerprint)? + 1 >= ATTEMPTS_MAX {
            Outcome::Parked
        } else {
            Outcome::Failed
        };
        let mut receipt = Receipt::new(outcome, Some(reason), (self.clock)());
        receipt.excused = excused;
        self.add_spent(&mut receipt);
        self.lineage.finish_job(id, &receipt)?;
        Ok(Made { receipt, paths: Vec::new() })
    }

    /// Clears away what a crash left: temporary files exist only while their process holds the write
    /// lock.
    fn sweep(&self) -> Result<(), PassError> {
        if !self.vault.temporary()?.is_empty() {
            self.vault.sweep(&self.write_lock()?)?;
        }
        Ok(())
    }

    fn write_lock(&self) -> Result<WriteLock, PassError> {
        let lock = WriteLock::acquire(self.vault.layout().root())?;
        self.refuse_if_replaced()?;
        Ok(lock)
    }
}

/// Asks an engine, and survives its falling over.
fn ask<T>(
    engine: &dyn Engine,
    question: impl FnOnce(&dyn Engine) -> Result<T, EngineError>,
) -> Result<T, JobError> {
    catch_unwind(AssertUnwindSafe(|| question(engine)))
        .map_err(|_| JobError::Panic)?
        .map_err(JobError::Engine)
}

/// Looks at the files and at the record, and remembers nothing: for who only shows.
///
/// # Errors
///
/// Returns an error when the folder cannot be listed or the database cannot be read.
pub fn peek(vault: &Vault, lineage: Option<&Lineage>) -> Result<View, PassError> {
    peek_with_receipts(vault, lineage).map(|it| it.0)
}

/// Like [`peek`], with the last receipt of each period and tier, for who tells of those too.
///
/// # Errors
///
/// Like [`peek`].
pub fn peek_with_receipts(
    vault: &Vault,
    lineage: Option<&Lineage>,
) -> Result<(View, Vec<JobRow>), PassError> {
    let known = lineage.map_or_else(|| Ok(HashMap::new()), seen)?;
    let inventory = vault.scan(&known)?.inventory;
    let receipts = lineage.map_or_else(|| Ok(Vec::new()), Lineage::last_receipts)?;
    let mut record = record(lineage, &receipts, &inventory)?;
    if let Some(lineage) = lineage {
        record.held = check::held(vault, &inventory, lineage)?;
    }
    Ok((View { inventory, record }, receipts))
}

/// Says what is due for an engine of that name.
pub fn plan_of(
    view: &View,
    settings: &RootSettings,
    engine: &str,
    selection: &Selection,
    now: DateTime<Utc>,
) -> Plan {
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
fn seen(lineage: &Lineage) -> Result<HashMap<String, Seen>, LineageError> {
    let cached = lineage.cached_files()?;
    let seen = cached.into_iter().filter_map(|(path, it)| {
        let stamp = Stamp { inode: it.inode, size: it.size, mtime_ns: it.mtime_ns };
        Some((path.to_str()?.to_owned(), Seen { stamp, hash: it.hash }))
    });
    Ok(seen.collect())
}

/// Collects what the plan needs of the database, where there is one, and of `WISDOM.md`.
fn record(
    lineage: Option<&Lineage>,
    receipts: &[JobRow],
    inventory: &Inventory,
) -> Result<Record, LineageError> {
    let extracted = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::extracted)?;
    let wisdom = inventory.wisdom.as_deref().map(WisdomFile::parse);
    let mut distilled: BTreeMap<_, _> =
        wisdom.iter().flat_map(WisdomFile::distilled).map(|&month| (month, None)).collect();
    let unsettled = match (lineage, &wisdom) {
        (Some(lineage), Some(wisdom)) => late::unsettled(lineage, inventory, wisdom)?,
        _ => Vec::new(),
    };
    let mut settled = BTreeSet::new();
    let mut parked = BTreeMap::new();
    for job in receipts {
        let Some(receipt) = &job.receipt else { continue };
        match receipt.outcome {
            Outcome::Parked => {
                parked.insert(job.fingerprint, receipt.reason.clone().unwrap_or_default());
            }
            Outcome::Skipped => {
                settled.insert(job.fingerprint);
            }
            // What it was before is not known, so `WISDOM.md` is not known to rest on it as it is.
            Outcome::Written if job.tier == Tier::Monthly => {
                if let Some(slot @ None) = distilled.get_mut(&job.period) {
                    *slot = Some(String::new());
                }
            }
            // The fingerprint of a wisdom job tells which body of the month was distilled.
            Outcome::Written | Outcome::Unchanged if job.tier == Tier::Wisdom => {
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
    let waiting = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::held)?;
    let waiting = waiting.into_iter().filter(|(_, (what, _))| *what == HeldWhat::Memory);
    let waiting = waiting.map(|(at, _)| at.stem.to_string()).collect();
    let read_by = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::days_read_by)?;
    let held = BTreeMap::new();
    Ok(Record { extracted, read_by, waiting, distilled, unsettled, settled, parked, held })
}
