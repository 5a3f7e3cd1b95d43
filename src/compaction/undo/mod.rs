//! A run taken back: its files as they stood before it, and its work refused until an input changes.
//!
//! - [`past`]: which runs rest on which, and how far a file can be brought back; pure.
//! - [`lines`]: citations of an older text where the lines stand now.
//! - [`Foresight`] puts together what would be done, for a dry run as for the deed.
//!
//! What is refused is written down first, in receipts and among the decisions, so that no pass brings back what a crash left half taken
//! back; who took what back is recorded last, and tells that it was done. In between, the same
//! command takes up what was cut off: a file that stands as it should is left alone.
//!
//! Taking a run back is a run itself. Its receipts name the work that it refused, so that taking it
//! back in turn lifts just that.

mod lines;
mod past;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use self::{
    lines::{Renames, period_of},
    past::{Back, Past, TRIGGER, Write},
};
use super::{
    Compactor, JobError, PassError, View,
    commit::{NewFile, Recorded},
    observe::MOVED,
    plan::{self, Job, Record, Selection, WaitCause},
    plan_of, record, records,
};
use crate::{
    config::root::RootSettings,
    memory::{
        address::Stem,
        decision::{Decision, Decisions, What},
        document::{self, SummaryHeader},
        hash::ContentHash,
        item::Tier,
        period::Period,
        typed::TypedMemory,
    },
    store::{
        failpoint,
        inventory::{Inventory, SummaryFile},
        layout::{FileKind, Layout},
        lineage::{
            Lineage, LineageError,
            history::{VersionId, VersionRow},
            jobs::{JobId, JobRow, NewJob, Outcome, Receipt, RunId, RunRow},
            record::{Commit, LogRecord},
        },
        vault::{Vault, VaultError},
    },
};

/// What is to be taken back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// The run; the last one that can be when none is named.
    pub run: Option<RunId>,
    /// Also the later ones that rest on it.
    pub with_later: bool,
}

/// What will be done, or was done.
#[derive(Debug)]
pub struct Undoing {
    /// The runs that are taken back, the newest first.
    pub runs: Vec<RunRow>,
    /// Their files, by path.
    pub files: Vec<UndoneFile>,
    /// Files in which they followed lines that moved; that stays.
    pub moved: BTreeSet<String>,
    /// Work that waits for changed input from now on.
    pub refused: Vec<Work>,
    /// Work that waits no longer.
    pub lifted: Vec<Work>,
}

/// What becomes of a file.
#[derive(Debug)]
pub struct UndoneFile {
    /// Relative to the root.
    pub path: String,
    /// What is done with it.
    pub fate: Fate,
    /// The version that stands there then.
    pub version: Option<VersionId>,
    /// Whether its citations follow lines that moved since.
    pub followed: bool,
    /// Why it is not as it was before.
    pub reason: Option<String>,
    standing: Option<String>,
    text: Option<String>,
    /// The oldest run whose write is taken back.
    before: Option<RunId>,
}

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// An older version stands there.
    Restored,
    /// The runs had made it, and it is gone.
    Removed,
    /// It stands as it should: somebody, or an attempt that was cut off, was faster.
    Already,
    /// A person changed it since, so it is left as it is.
    Kept,
    /// The bytes of the older version are no longer kept, so it is left as it is.
    Lost,
}

/// A piece of work that is refused, or no longer.
#[derive(Clone, Debug)]
pub struct Work {
    /// What is made.
    pub tier: Tier,
    /// For which time.
    pub period: Period,
    /// The file that it makes, or the index of what it extracts.
    pub path: String,
    fingerprint: ContentHash,
    engine: String,
    inputs: ContentHash,
    items: u32,
    /// Where its receipt stands among the others; `None` for what only follows from them.
    at: Option<JobId>,
}

/// A later run that holds one up.
#[derive(Clone, Debug)]
pub struct Later {
    /// It.
    pub run: RunRow,
    /// The files that tie it.
    pub paths: BTreeSet<String>,
}

/// Why nothing was taken back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// Nothing is recorded, or nothing is left.
    #[error("no run is recorded that could be taken back")]
    Nothing,
    /// There is no such run.
    #[error("there is no run {run}")]
    Unknown {
        /// The number.
        run: RunId,
        /// Runs that can be taken back, the oldest first.
        known: Vec<RunId>,
    },
    /// The run wrote no file of ours.
    #[error("run {run} wrote no file that could be taken back")]
    NothingOf {
        /// The run.
        run: RunId,
    },
    /// It was taken back before.
    #[error("run {run} was taken back before, by run {by}")]
    Taken {
        /// The run.
        run: RunId,
        /// Who took it back.
        by: RunId,
    },
    /// What was forgotten cannot come back.
    #[error("run {run} removed what a person wanted forgotten, which cannot be undone")]
    Forgot {
        /// The run.
        run: RunId,
    },
    /// Others would stand on nothing.
    #[error("later runs rest on run {run}")]
    RestedOn {
        /// The run.
        run: RunId,
        /// The others, the oldest first.
        later: Vec<Later>,
    },
    /// No file can be brought back.
    #[error("no file of it can be brought back: {path} {reason}")]
    Kept {
        /// The first of the files.
        path: String,
        /// Why it stays.
        reason: String,
    },
    /// Something else was done since the person was asked.
    #[error("something was written since you were asked")]
    Overtaken,
    /// It was begun and could not be finished.
    #[error(
        "run {run} is taken back only in part: {done} of {all} files are done, {}: {source}",
        match next { Some(path) => format!("`{path}` is the first that is left"), None => "what is left is to record it".to_owned() }
    )]
    CutOff {
        /// The run.
        run: RunId,
        /// Whether later ones are taken back with it.
        with_later: bool,
        /// How many of its files stand as they should.
        done: usize,
        /// How many there are to write.
        all: usize,
        /// The first that does not.
        next: Option<String>,
        /// What stopped it.
        source: Box<UndoError>,
    },
    /// A pass would have been stopped too.
    #[error(transparent)]
    Pass(#[from] PassError),
}

impl From<LineageError> for UndoError {
    fn from(error: LineageError) -> Self {
        Self::Pass(error.into())
    }
}

impl From<VaultError> for UndoError {
    fn from(error: VaultError) -> Self {
        Self::Pass(error.into())
    }
}

/// What began a run whose work is gone for good.
const FORGET: &str = "forget";

/// What the receipt says of work that was taken back.
const TAKEN_BACK: &str = "taken back by undo";

/// What it says of work that would be due only because something else was taken back.
const FOLLOWS: &str = "rests on what was taken back by undo";

/// What says what would be done.
#[derive(Clone, Copy, Debug)]
pub struct Foresight<'a> {
    /// The files.
    pub vault: &'a Vault,
    /// The database.
    pub lineage: &'a Lineage,
    /// Both, as they are.
    pub view: &'a View,
    /// What the root is run with.
    pub settings: &'a RootSettings,
    /// The name of the engine.
    pub engine: &'a str,
    /// The time.
    pub now: DateTime<Utc>,
}

impl Foresight<'_> {
    /// Says what taking back what is asked for would do. Changes nothing.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be taken back.
    pub fn undo(&self, request: Request) -> Result<Undoing, UndoError> {
        let past = self.past()?;
        let run = match request.run {
            Some(run) => run,
            None => past.candidates().pop().ok_or(UndoError::Nothing)?,
        };
        let runs = chosen(&past, run, request.with_later)?;
        let files = self.files(&past, &runs)?;
        let is_done = |it: &UndoneFile| !matches!(it.fate, Fate::Kept | Fate::Lost);
        if let Some(kept) = files.first().filter(|_| !files.iter().any(is_done)) {
            let reason = kept.reason.clone().unwrap_or_default();
            return Err(UndoError::Kept { path: kept.path.clone(), reason });
        }
        let moved = past.writes.iter().filter(|it| it.moved);
        let moved = moved.filter(|it| it.run.is_some_and(|run| runs.contains(&run)));
        let mut undoing = Undoing {
            runs: runs.iter().rev().filter_map(|it| past.runs.get(it).cloned()).collect(),
            moved: moved.map(|it| it.path.clone()).collect(),
            files,
            refused: Vec::new(),
            lifted: Vec::new(),
        };
        self.decide(&past, &mut undoing)?;
        self.refuse_what_follows(&mut undoing)?;
        Ok(undoing)
    }

    /// Collects what the journal tells.
    fn past(&self) -> Result<Past, LineageError> {
        let moved: BTreeSet<JobId> = self.lineage.jobs_for(MOVED)?.into_iter().collect();
        let layout = self.vault.layout();
        let mut intents = self.lineage.writes()?;
        for intent in self.lineage.open_intents()? {
            // A crash left it, and the file stands as intended: the next run will find that too.
            let standing = self.vault.read(&intent.target).ok().flatten();
            if standing.map(|it| ContentHash::of(it.bytes)) == intent.new_hash {
                intents.push(intent);
            }
        }
        let writes = intents.into_iter().filter_map(|it| {
            let kind = layout.kind_of(&it.target)?;
            let index = kind == FileKind::Index;
            (index || is_generated(kind)).then(|| Write {
                moved: it.job.is_some_and(|job| moved.contains(&job)),
                path: it.target,
                run: it.run,
                job: it.job,
                old: it.old_hash,
                new: it.new_hash,
                index,
            })
        });
        let writes = writes.collect();
        let runs = self.lineage.last_runs(u32::MAX)?.into_iter().map(|it| (it.id, it)).collect();
        let taken = self.lineage.taken_back()?;
        let mut past = Past { runs, taken, writes, ..Past::default() };
        for run in past.runs.values().filter(|it| it.trigger == TRIGGER).map(|it| it.id) {
            let jobs = self.lineage.jobs_of_run(run)?;
            past.work.insert(run, jobs.iter().map(|it| it.fingerprint).collect());
        }
        past.join_cut_off();
        for run in past.candidates() {
            past.read.insert(run, self.lineage.runs_resting_on(run)?);
        }
        Ok(past)
    }

    /// Says what becomes of each file of the runs.
    fn files(&self, past: &Past, runs: &BTreeSet<RunId>) -> Result<Vec<UndoneFile>, UndoError> {
        let mut paths: Vec<(FileKind, &str)> = runs
            .iter()
            .flat_map(|it| past.files_of(*it))
            .filter_map(|it| Some((self.vault.layout().kind_of(it)?, it)))
            .collect();
        // Weeks before the months that name them.
        paths.sort_by_key(|(kind, path)| (*kind == FileKind::Monthly, *path));
        paths.dedup();
        let known = self.lineage.logs()?;
        let mut weeks = Renames::new();
        let mut files = Vec::new();
        for (kind, path) in paths {
            let standing = match self.vault.read_text(path) {
                Ok(standing) => standing,
                Err(error) => {
                    files.push(UndoneFile::kept(path, None, error.to_string()));
                    continue;
                }
            };
            let stands = standing.as_deref().map(ContentHash::of);
            let Some(back) = past.back(path, runs, stands) else {
                let what = if standing.is_some() { "changed" } else { "removed" };
                let reason = format!("was {what} by somebody else since");
                files.push(UndoneFile::kept(path, standing, reason));
                continue;
            };
            let mut file = UndoneFile::new(path, standing, &back);
            if let Some(hash) = back.to {
                self.restore(&mut file, kind, hash, &known, &mut weeks)?;
            }
            files.push(file);
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// Takes the older text of a file from the history.
    fn restore(
        &self,
        file: &mut UndoneFile,
        kind: FileKind,
        hash: ContentHash,
        known: &BTreeMap<Stem, LogRecord>,
        weeks: &mut Renames,
    ) -> Result<(), LineageError> {
        let version = self.version(file, hash)?;
        let bytes = match self.lineage.content(hash) {
            Err(LineageError::Damaged { .. }) => None,
            bytes => bytes?,
        };
        let text = bytes.and_then(|it| String::from_utf8(it).ok());
        let (Some(version), Some(text)) = (version, text) else {
            file.fate = Fate::Lost;
            file.reason = Some("is left as it is: its older text is no longer kept".to_owned());
            return Ok(());
        };
        file.version = Some(version);
        let followed = self.follow(&file.path, kind, &text, version, known, weeks)?;
        file.followed = followed.is_some();
        if let (FileKind::Weekly, Some(now)) = (kind, &followed)
            && let Some(week) = period_of(&file.path)
        {
            let body = |text: &str| document::body_hash(text).hex16();
            weeks.insert(week.to_string(), (body(&text), body(now)));
        }
        let text = followed.unwrap_or(text);
        file.fate =
            if file.standing.as_ref() == Some(&text) { Fate::Already } else { Fate::Restored };
        file.text = Some(text);
        Ok(())
    }

    /// Returns the version of a file that had these bytes last, before the runs.
    fn version(
        &self,
        file: &UndoneFile,
        hash: ContentHash,
    ) -> Result<Option<VersionId>, LineageError> {
        let versions = self.lineage.versions_of(&file.path)?;
        let is_taken = |it: &&VersionRow| it.run.is_some() && it.run == file.before;
        let first = versions.iter().find(is_taken).map(|it| it.id);
        let mut with = versions.iter().filter(|it| it.hash == Some(hash)).map(|it| it.id);
        Ok(with
            .clone()
            .rfind(|it| first.is_none_or(|first| *it < first))
            .or_else(|| with.next_back()))
    }

    /// Says which work of the runs is refused from now on, and which no longer.
    fn decide(&self, past: &Past, undoing: &mut Undoing) -> Result<(), LineageError> {
        let layout = self.vault.layout();
        let mut decided: BTreeMap<ContentHash, (bool, Work)> = BTreeMap::new();
        // The oldest of them has the last word, as it would have if each were taken back alone.
        for run in undoing.runs.iter().map(|it| it.id) {
            let undo = past.taken_by(run).next().is_some();
            for job in self.lineage.jobs_of_run(run)? {
                let Some(receipt) = &job.receipt else { continue };
                let refuse = match receipt.outcome {
                    Outcome::Written | Outcome::Unchanged => {
                        if !undo && !self.is_taken_back(past, run, &job, &undoing.files)? {
                            continue;
                        }
                        true
                    }
                    Outcome::Skipped if undo => false,
                    _ => continue,
                };
                decided.insert(job.fingerprint, (refuse, Work::of(&job, receipt, layout)));
            }
        }
        // What was cut off had decided more than can be seen now that it has.
        for run in past.work.keys().copied().filter(|it| past.is_cut_off(*it)) {
            let jobs = self.lineage.jobs_of_run(run)?;
            if !jobs.iter().any(|it| decided.contains_key(&it.fingerprint)) {
                continue;
            }
            for job in &jobs {
                let Some(receipt) = &job.receipt else { continue };
                let refuse = receipt.outcome == Outcome::Skipped;
                let work = Work::of(job, receipt, layout);
                decided.entry(job.fingerprint).or_insert((refuse, work));
            }
        }
        for (refuse, work) in decided.into_values() {
            if refuse { &mut undoing.refused } else { &mut undoing.lifted }.push(work);
        }
        for list in [&mut undoing.refused, &mut undoing.lifted] {
            // The last receipt of a period counts, so they stay in their order.
            list.sort_by_key(|it| (it.tier, it.period, it.at));
        }
        Ok(())
    }

    /// Returns whether what a job made is no longer there.
    fn is_taken_back(
        &self,
        past: &Past,
        run: RunId,
        job: &JobRow,
        files: &[UndoneFile],
    ) -> Result<bool, LineageError> {
        let writes: Vec<&Write> = past.writes.iter().filter(|it| it.job == Some(job.id)).collect();
        if writes.iter().any(|it| it.moved) {
            return Ok(false);
        }
        if writes.is_empty() {
            // A day without anything to remember may have something when what another one left is
            // gone, and an older month may have something for `WISDOM.md`.
            return Ok(matches!(job.tier, Tier::Extract | Tier::Wisdom));
        }
        if matches!(job.tier, Tier::Weekly | Tier::Monthly) {
            // A file of an open period is made when it has closed, by work of the same name.
            let made = writes.last().and_then(|it| it.new).map(|it| self.lineage.content(it));
            let text = made.transpose()?.flatten().and_then(|it| String::from_utf8(it).ok());
            let header = text.and_then(|it| SummaryHeader::read(job.period, &it).ok().flatten());
            if header.is_some_and(|it| it.partial) {
                return Ok(false);
            }
        }
        Ok(files.iter().any(|file| {
            file.before.is_some_and(|before| before <= run)
                && !matches!(file.fate, Fate::Kept | Fate::Lost)
                && writes.iter().any(|it| it.path == file.path)
        }))
    }

    /// Refuses what would be due only because older files stand there again.
    fn refuse_what_follows(&self, undoing: &mut Undoing) -> Result<(), UndoError> {
        let nothing_else = Selection::default();
        let plan = |view: &View| plan_of(view, self.settings, self.engine, &nothing_else, self.now);
        let before = plan(self.view);
        let written =
            before.waiting.iter().filter(|it| matches!(it.cause, WaitCause::StillWritten(_)));
        let due: BTreeSet<(Tier, Period)> = before
            .jobs
            .iter()
            .map(|it| (it.tier, it.period))
            .chain(before.following.iter().copied())
            .chain(written.map(|it| (it.tier, it.period)))
            .collect();
        let lifted: BTreeSet<ContentHash> =
            undoing.lifted.iter().map(|it| it.fingerprint).collect();
        let mut inventory = self.view.inventory.clone();
        let layout = self.vault.layout();
        for file in undoing.files.iter().filter(|it| it.is_written()) {
            put(&mut inventory, layout, &file.path, file.text.as_deref());
        }
        for decision in undoing.decisions(self.now) {
            inventory.decisions.apply(&decision);
        }
        let mut record = record(Some(self.lineage), &inventory)?;
        for work in undoing.lifted.iter().filter(|it| it.at.is_some()) {
            work.lift_from(&mut record, &inventory);
        }
        for work in &undoing.refused {
            work.refuse_in(&mut record);
        }
        let mut after = View { inventory, record };
        loop {
            let jobs = plan(&after).jobs.into_iter().filter(|it| {
                !due.contains(&(it.tier, it.period)) && !lifted.contains(&it.fingerprint)
            });
            let follow: Vec<Work> = jobs.map(|job| Work::due(&job, self.engine, layout)).collect();
            if follow.is_empty() {
                return Ok(());
            }
            for work in follow {
                after.inventory.decisions.apply(&decision(What::Undone, &[&work], self.now));
                work.refuse_in(&mut after.record);
                undoing.refused.push(work);
            }
        }
    }
}

impl Compactor<'_> {
    /// Takes runs back, and returns what was done with the number of the run that did it. `expected`
    /// are the runs that a person was shown.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be done; what was begun is taken up by the same call.
    pub fn undo(
        &mut self,
        request: Request,
        expected: &[RunId],
    ) -> Result<(RunId, Undoing), UndoError> {
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        // What people did meanwhile is theirs and not of the run that is taken back.
        self.notice_alone(TRIGGER, now)?;
        self.sweep()?;
        let view = self.look(now)?;
        let foresight = Foresight {
            vault: self.vault,
            lineage: self.lineage,
            view: &view,
            settings: self.settings,
            engine: self.engine.id(),
            now,
        };
        let past = foresight.past()?;
        let undoing = foresight.undo(request)?;
        let taken: Vec<RunId> = undoing.runs.iter().map(|it| it.id).collect();
        if taken != expected {
            return Err(UndoError::Overtaken);
        }
        let run = self.run(&mut None, TRIGGER, now)?;
        let done = self.take_back(run, &undoing, &past, &view, now);
        self.end_run(run)?;
        done.map_err(|error| self.cut_off(&undoing, error))?;
        Ok((run, undoing))
    }

    /// Says how far it came.
    fn cut_off(&self, undoing: &Undoing, error: UndoError) -> UndoError {
        let Some(run) = undoing.runs.last().map(|it| it.id) else { return error };
        let wanted: Vec<&UndoneFile> = undoing.files.iter().filter(|it| it.is_written()).collect();
        let stands = |it: &UndoneFile| self.vault.read_text(&it.path).is_ok_and(|is| is == it.text);
        let left: Vec<&str> =
            wanted.iter().filter(|it| !stands(it)).map(|it| &it.path[..]).collect();
        UndoError::CutOff {
            run,
            with_later: undoing.runs.len() > 1,
            done: wanted.len() - left.len(),
            all: wanted.len(),
            next: left.first().map(|it| (*it).to_owned()),
            source: Box::new(error),
        }
    }

    fn take_back(
        &mut self,
        run: RunId,
        undoing: &Undoing,
        past: &Past,
        view: &View,
        now: DateTime<Utc>,
    ) -> Result<(), UndoError> {
        let receipts = undoing.receipts(now);
        let nothing = || Commit { at: now, ..Commit::default() };
        let done: Vec<_> = receipts.iter().map(|(job, it)| (job, it, nothing())).collect();
        self.lineage.commit_done(run, &done)?;
        passed("undo.receipts")?;
        self.write_decisions(&view.inventory.decisions, &undoing.decisions(now))?;
        passed("undo.decided")?;
        let files: Vec<NewFile> =
            undoing.files.iter().filter(|it| it.is_written()).map(UndoneFile::to_write).collect();
        let mut recorded = Recorded::default();
        for file in &files {
            match &file.text {
                Some(text) => recorded.documents.extend(records::of_path(
                    self.vault.layout(),
                    &file.path,
                    text,
                )),
                None => recorded.removed.push(file.path.clone()),
            }
        }
        self.write_all(run, &files, &recorded)?;
        passed("undo.written")?;
        self.index_after(run, undoing, past, now)?;
        passed("undo.index")?;
        let taken: Vec<RunId> = undoing.runs.iter().map(|it| it.id).collect();
        self.lineage.take_back(run, &taken)?;
        passed("undo.taken")?;
        Ok(())
    }

    fn write_all(
        &mut self,
        run: RunId,
        files: &[NewFile],
        recorded: &Recorded,
    ) -> Result<(), PassError> {
        match self.write(Some(run), None, files, recorded) {
            Ok(()) => Ok(()),
            Err(JobError::Critical(error)) => Err(error),
            Err(JobError::Vault(error)) => Err(error.into()),
            Err(other) => Err(failed("undo", std::io::Error::other(other.to_string())).into()),
        }
    }

    /// Brings the index up to date; one that the runs had made goes with the last memory.
    fn index_after(
        &mut self,
        run: RunId,
        undoing: &Undoing,
        past: &Past,
        now: DateTime<Utc>,
    ) -> Result<(), PassError> {
        let view = self.look(now)?;
        let path = self.vault.layout().index();
        let runs = undoing.runs.iter().map(|it| it.id).collect();
        if let (Some(index), true) = (&view.inventory.index, view.inventory.memories.is_empty()) {
            let back = past.back(&path, &runs, Some(ContentHash::of(index)));
            if back.is_some_and(|it| it.to.is_none()) {
                let file = NewFile { path, text: None, standing: Some(index.clone()) };
                return self.write_all(run, &[file], &Recorded::default());
            }
        }
        self.refresh_index(Some(run), &view).map(drop)
    }

    /// Lifts the refusal of work that a person asks for though it was taken back.
    pub(super) fn lift(
        &mut self,
        jobs: &[Job],
        view: &View,
        now: DateTime<Utc>,
    ) -> Result<(), PassError> {
        let decisions = &view.inventory.decisions;
        let layout = self.vault.layout();
        let lifted: Vec<Work> = jobs
            .iter()
            .filter(|it| decisions.is_undone(it.fingerprint))
            .map(|it| Work::due(it, self.engine.id(), layout))
            .collect();
        let made: Vec<_> = lifted.iter().map(|it| decision(What::Restored, &[it], now)).collect();
        self.write_decisions(decisions, &made)
    }

    fn write_decisions(&self, known: &Decisions, made: &[Decision]) -> Result<(), PassError> {
        if !made.is_empty() && !known.has_key() {
            self.new_decisions()?;
        }
        self.append_decisions(made)
    }
}

impl Undoing {
    /// Returns what is to be written down, a line for each file.
    fn decisions(&self, now: DateTime<Utc>) -> Vec<Decision> {
        let mut made = Vec::new();
        for (what, list) in [(What::Restored, &self.lifted), (What::Undone, &self.refused)] {
            let mut by_path: BTreeMap<&str, Vec<&Work>> = BTreeMap::new();
            for work in list {
                by_path.entry(&work.path).or_default().push(work);
            }
            made.extend(by_path.values().map(|it| decision(what, it, now)));
        }
        made
    }

    fn receipts(&self, now: DateTime<Utc>) -> Vec<(NewJob, Receipt)> {
        let receipt = |work: &Work, outcome, reason: &str| {
            let mut receipt = Receipt::new(outcome, Some(reason.to_owned()), now);
            receipt.path = (work.tier != Tier::Extract).then(|| work.path.clone());
            receipt.figures.items = work.items;
            (work.job(now), receipt)
        };
        let refused = self.refused.iter();
        let refused = refused.map(|it| {
            let reason = if it.at.is_some() { TAKEN_BACK } else { FOLLOWS };
            receipt(it, Outcome::Skipped, reason)
        });
        // What only followed was not done then, and is not done now.
        let lifted = self.lifted.iter().filter(|it| it.at.is_some()).map(|it| {
            let quiet = matches!(it.tier, Tier::Extract | Tier::Wisdom) && it.items == 0;
            let outcome = if quiet { Outcome::Unchanged } else { Outcome::Written };
            receipt(it, outcome, "put back by undo")
        });
        refused.chain(lifted).collect()
    }
}

impl UndoneFile {
    fn new(path: &str, standing: Option<String>, back: &Back) -> Self {
        let fate = if standing.is_none() { Fate::Already } else { Fate::Removed };
        let reason = back
            .stopped
            .then(|| format!("somebody else changed it before run {} wrote it again", back.before));
        Self {
            path: path.to_owned(),
            fate,
            version: None,
            followed: false,
            reason,
            standing,
            text: None,
            before: Some(back.before),
        }
    }

    fn kept(path: &str, standing: Option<String>, reason: String) -> Self {
        Self {
            path: path.to_owned(),
            fate: Fate::Kept,
            version: None,
            followed: false,
            reason: Some(reason),
            standing,
            text: None,
            before: None,
        }
    }

    fn is_written(&self) -> bool {
        matches!(self.fate, Fate::Restored | Fate::Removed)
    }

    fn to_write(&self) -> NewFile {
        NewFile {
            path: self.path.clone(),
            text: self.text.clone(),
            standing: self.standing.clone(),
        }
    }
}

impl Fate {
    /// Returns the name that JSON uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Removed => "removed",
            Self::Already => "unchanged",
            Self::Kept => "kept",
            Self::Lost => "lost",
        }
    }
}

impl Work {
    fn of(job: &JobRow, receipt: &Receipt, layout: &Layout) -> Self {
        Self {
            tier: job.tier,
            period: job.period,
            path: path_of(layout, job.tier, job.period),
            fingerprint: job.fingerprint,
            engine: job.engine.clone(),
            inputs: job.inputs,
            items: receipt.figures.items,
            at: (receipt.reason.as_deref() != Some(FOLLOWS)).then_some(job.id),
        }
    }

    fn due(job: &Job, engine: &str, layout: &Layout) -> Self {
        Self {
            tier: job.tier,
            period: job.period,
            path: path_of(layout, job.tier, job.period),
            fingerprint: job.fingerprint,
            engine: engine.to_owned(),
            inputs: ContentHash::of(format!("{:?}", job.inputs)),
            items: 0,
            at: None,
        }
    }

    fn job(&self, now: DateTime<Utc>) -> NewJob {
        NewJob {
            fingerprint: self.fingerprint,
            tier: self.tier,
            period: self.period,
            engine: self.engine.clone(),
            inputs: self.inputs,
            now,
        }
    }

    /// Changes a record as the receipt of refused work will.
    fn refuse_in(&self, record: &mut Record) {
        record.parked.remove(&self.fingerprint);
        record.settled.insert(self.fingerprint);
        if self.tier == Tier::Wisdom
            && let Some(body) = record.distilled.get_mut(&self.period)
        {
            *body = None;
        }
    }

    /// Changes a record as the receipt of work that is put back will.
    fn lift_from(&self, record: &mut Record, inventory: &Inventory) {
        record.settled.remove(&self.fingerprint);
        if self.tier == Tier::Monthly
            && let Some(body @ None) = record.distilled.get_mut(&self.period)
        {
            *body = Some(String::new());
        }
        if self.tier == Tier::Wisdom
            && let Some(body) = record.distilled.get_mut(&self.period)
            && let Some(month) = inventory.monthly.get(&self.period)
        {
            let inputs = [(self.period.to_string(), month.body_hash.clone())].into();
            let same = plan::fingerprint(self.tier, self.period, &inputs) == self.fingerprint;
            *body = Some(if same { month.body_hash.clone() } else { String::new() });
        }
    }
}

/// Returns the runs that are to be taken back, if they can be.
fn chosen(past: &Past, run: RunId, with_later: bool) -> Result<BTreeSet<RunId>, UndoError> {
    if !past.runs.contains_key(&run) {
        return Err(UndoError::Unknown { run, known: past.candidates() });
    }
    if let Some(by) = past.taker_of(run) {
        return Err(UndoError::Taken { run, by });
    }
    if past.files_of(run).is_empty() {
        return Err(UndoError::NothingOf { run });
    }
    let ties = past.with_later(run);
    let is_forget = |run: &&RunId| past.runs.get(run).is_some_and(|it| it.trigger == FORGET);
    if let Some(&run) = ties.keys().find(is_forget) {
        return Err(UndoError::Forgot { run });
    }
    if ties.len() > 1 && !with_later {
        let later = ties.into_iter().filter_map(|(later, paths)| {
            let run = past.runs.get(&later).filter(|_| later != run)?.clone();
            Some(Later { run, paths })
        });
        return Err(UndoError::RestedOn { run, later: later.collect() });
    }
    Ok(ties.into_keys().collect())
}

fn is_generated(kind: FileKind) -> bool {
    matches!(kind, FileKind::Weekly | FileKind::Monthly | FileKind::Memory | FileKind::Wisdom)
}

/// Returns the file that a piece of work makes; for days the index of what is extracted.
fn path_of(layout: &Layout, tier: Tier, period: Period) -> String {
    match tier {
        Tier::Extract => layout.index(),
        Tier::Weekly | Tier::Monthly => layout.summary(period),
        Tier::Wisdom => layout.wisdom(),
    }
}

fn decision(what: What, works: &[&Work], at: DateTime<Utc>) -> Decision {
    let path = works.first().map(|it| it.path.clone()).unwrap_or_default();
    let hashes = works.iter().map(|it| it.fingerprint.hex16()).collect();
    Decision { at, what, path, hashes }
}

/// Puts a text under a path, or takes it away, as a scan would find it.
fn put(inventory: &mut Inventory, layout: &Layout, path: &str, text: Option<&str>) {
    match (layout.kind_of(path), period_of(path)) {
        (Some(kind @ (FileKind::Weekly | FileKind::Monthly)), Some(period)) => {
            let files = match kind {
                FileKind::Weekly => &mut inventory.weekly,
                _ => &mut inventory.monthly,
            };
            files.remove(&period);
            let file = text.and_then(|it| SummaryFile::of(path.to_owned(), period, it).ok());
            files.extend(file.map(|it| (period, it)));
        }
        (Some(FileKind::Wisdom), _) => inventory.wisdom = text.map(str::to_owned),
        (Some(FileKind::Memory), _) => {
            let name = path.rsplit('/').next().unwrap_or(path);
            inventory.memories.retain(|it| it.file_name.as_os_str() != name);
            let memory = text.and_then(|it| TypedMemory::parse(name.as_ref(), it).ok());
            inventory.memories.extend(memory);
        }
        _ => {}
    }
}

fn failed(path: &str, source: std::io::Error) -> VaultError {
    VaultError::Io { action: "write", path: path.into(), source }
}

/// Passes a step that tests stop at.
fn passed(name: &'static str) -> Result<(), VaultError> {
    failpoint::at(name).map_err(|source| failed(name, source))
}
