//! What taking runs back would do, for a dry run as for the deed: which runs, and what becomes of
//! each of their files.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::{
    Fate, Request, Undoing, UndoneFile, begun,
    error::{Later, UndoError},
    lines::Renames,
    past::{Past, TRIGGER, Write},
};
use crate::{
    compaction::{
        View,
        check::{self, Torn},
        observe::{MOVED, period_of},
        records,
    },
    config::root::RootSettings,
    memory::{address::Stem, document, hash::ContentHash},
    store::{
        layout::FileKind,
        lineage::{
            Lineage, LineageError,
            history::{VersionId, VersionRow},
            jobs::{JobId, RunId},
            record::LogRecord,
        },
        vault::Vault,
    },
};

/// What began a run whose work is gone for good.
const FORGET: &str = "forget";

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
        let Request { run, with_later } = self.meant(request)?;
        let last = || {
            let before = past.candidates().pop();
            match past.said().filter(|it| before.is_none_or(|before| before < *it)) {
                Some(run) => Err(UndoError::Said { run, before }),
                None => before.ok_or(UndoError::Nothing),
            }
        };
        let run = run.map_or_else(last, Ok)?;
        let runs = chosen(&past, run, with_later)?;
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

    /// Returns what is asked for; where nothing is named, what was begun and is not finished.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn meant(&self, request: Request) -> Result<Request, LineageError> {
        if request.run.is_some() {
            return Ok(request);
        }
        Ok(begun::unfinished(self.vault, self.lineage)?.unwrap_or(request))
    }

    /// Collects what the journal tells.
    pub(super) fn past(&self) -> Result<Past, LineageError> {
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
        past.drop_repairs();
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
        // Weeks before the months that name and cite them, and what cites months last.
        let tier = |kind: &FileKind| match kind {
            FileKind::Weekly => 0,
            FileKind::Monthly => 1,
            _ => 2,
        };
        paths.sort_by_key(|(kind, path)| (tier(kind), *path));
        paths.dedup();
        let mut known = self.lineage.logs()?;
        known.extend(self.lineage.cited_files()?);
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
            // What cites it is to cite it as it will stand.
            let stem = period_of(path).and_then(Stem::of_summary);
            if let (Some(stem), Some(text)) = (stem, &file.text) {
                let lines = records::lines_of_summary(&stem, path, text);
                known.extend(lines.map(|it| (stem, it)));
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
        if let Some(torn) = bytes.as_deref().and_then(check::torn) {
            // Where nothing stood in it, to remove it is the same, and leaves no harmed file.
            if torn != Torn::Empty {
                file.fate = Fate::Lost;
                file.reason = Some(format!("is left as it is: its older text {}", torn.words()));
            }
            return Ok(());
        }
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
            let rules = &self.view.inventory.rules;
            let input = |it: &str| rules.input_of_file(week, &document::body_hash(it).hex16());
            weeks.insert(week.to_string(), (input(&text), input(now)));
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
}

/// Returns the runs that are to be taken back, if they can be.
fn chosen(past: &Past, run: RunId, with_later: bool) -> Result<BTreeSet<RunId>, UndoError> {
    if !past.runs.contains_key(&run) {
        return Err(UndoError::Unknown { run, known: past.candidates() });
    }
    if let Some(by) = past.taker_of(run) {
        return Err(UndoError::Taken { run, by });
    }
    if past.is_repair(run) {
        return Err(UndoError::Repair { run });
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
