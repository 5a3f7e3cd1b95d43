//! What taking runs back would do, for a dry run as for the deed: which runs, and what becomes of
//! each of their files.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::{
    UndoFile, UndoOutcome, UndoPlan, UndoRequest,
    dependencies::{RunHistory, RunWrite, UNDO_TRIGGER},
    error::{DependentRun, UndoError},
    lines::SourceHashChanges,
    resume,
};
use crate::{
    compaction::{
        RootSnapshot,
        integrity::damage::{self, Damage},
        journal::records,
        reconcile::edits::{LINES_MOVED, period_of_path},
    },
    config::root::RootSettings,
    memory::{address::Stem, document, hash::ContentHash},
    store::{
        db::lineage::{
            Lineage, LineageError,
            history::{VersionId, VersionRow},
            jobs::{JobId, RunId},
            record::LogRecord,
        },
        fs::{layout::FileKind, vault::Vault},
    },
};

/// What began a run whose work is gone for good.
const FORGET_TRIGGER: &str = "forget";

/// What says what would be done.
#[derive(Clone, Copy, Debug)]
pub struct UndoPreview<'a> {
    /// The files.
    pub vault: &'a Vault,
    /// The database.
    pub lineage: &'a Lineage,
    /// Both, as they are.
    pub view: &'a RootSnapshot,
    /// What the root is run with.
    pub settings: &'a RootSettings,
    /// The name of the engine.
    pub engine: &'a str,
    /// The time.
    pub now: DateTime<Utc>,
}

impl UndoPreview<'_> {
    /// Says what taking back what is asked for would do. Changes nothing.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be taken back.
    pub fn plan(&self, request: UndoRequest) -> Result<UndoPlan, UndoError> {
        let past = self.run_history()?;
        let UndoRequest { run, with_dependents: with_later } = self.resolve_request(request)?;
        let last = || {
            let before = past.undoable_runs().pop();
            match past.last_review_run().filter(|it| before.is_none_or(|before| before < *it)) {
                Some(run) => Err(UndoError::ReviewOnly { run, before }),
                None => before.ok_or(UndoError::NothingToUndo),
            }
        };
        let run = run.map_or_else(last, Ok)?;
        let runs = runs_to_undo(&past, run, with_later)?;
        let files = self.plan_files(&past, &runs)?;
        let is_done = |it: &UndoFile| !matches!(it.outcome, UndoOutcome::Kept | UndoOutcome::Lost);
        if let Some(kept) = files.first().filter(|_| !files.iter().any(is_done)) {
            let reason = kept.reason.clone().unwrap_or_default();
            return Err(UndoError::NoFileRestorable { path: kept.path.clone(), reason });
        }
        let moved = past.writes.iter().filter(|it| it.only_relocated);
        let moved = moved.filter(|it| it.run.is_some_and(|run| runs.contains(&run)));
        let mut undoing = UndoPlan {
            runs: runs.iter().rev().filter_map(|it| past.runs.get(it).cloned()).collect(),
            relocated: moved.map(|it| it.path.clone()).collect(),
            files,
            refused: Vec::new(),
            lifted: Vec::new(),
        };
        self.decide_jobs(&past, &mut undoing)?;
        self.refuse_dependents(&mut undoing)?;
        Ok(undoing)
    }

    /// Returns what is asked for; where nothing is named, what was begun and is not finished.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn resolve_request(&self, request: UndoRequest) -> Result<UndoRequest, LineageError> {
        if request.run.is_some() {
            return Ok(request);
        }
        Ok(resume::unfinished(self.vault, self.lineage)?.unwrap_or(request))
    }

    /// Collects what the journal tells.
    pub(super) fn run_history(&self) -> Result<RunHistory, LineageError> {
        let moved: BTreeSet<JobId> =
            self.lineage.jobs_with_reason(LINES_MOVED)?.into_iter().collect();
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
            (index || is_generated(kind)).then(|| RunWrite {
                only_relocated: it.job.is_some_and(|job| moved.contains(&job)),
                path: it.target,
                run: it.run,
                job: it.job,
                old: it.old_hash,
                new: it.new_hash,
                is_index: index,
            })
        });
        let writes = writes.collect();
        let runs = self.lineage.last_runs(u32::MAX)?.into_iter().map(|it| (it.id, it)).collect();
        let taken = self.lineage.undone_runs()?;
        let mut past = RunHistory { runs, undone: taken, writes, ..RunHistory::default() };
        for run in past.runs.values().filter(|it| it.trigger == UNDO_TRIGGER).map(|it| it.id) {
            let jobs = self.lineage.jobs_of_run(run)?;
            past.jobs.insert(run, jobs.iter().map(|it| it.fingerprint).collect());
        }
        past.drop_repairs();
        past.merge_interrupted();
        for run in past.undoable_runs() {
            past.readers.insert(run, self.lineage.dependent_runs(run)?);
        }
        Ok(past)
    }

    /// Says what becomes of each file of the runs.
    fn plan_files(
        &self,
        past: &RunHistory,
        runs: &BTreeSet<RunId>,
    ) -> Result<Vec<UndoFile>, UndoError> {
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
        known.extend(self.lineage.cited_summaries()?);
        let mut weeks = SourceHashChanges::new();
        let mut files = Vec::new();
        for (kind, path) in paths {
            let standing = match self.vault.read_text(path) {
                Ok(standing) => standing,
                Err(error) => {
                    files.push(UndoFile::kept(path, None, error.to_string()));
                    continue;
                }
            };
            let stands = standing.as_deref().map(ContentHash::of);
            let Some(back) = past.restore_point(path, runs, stands) else {
                let what = if standing.is_some() { "changed" } else { "removed" };
                let reason = format!("was {what} by somebody else since");
                files.push(UndoFile::kept(path, standing, reason));
                continue;
            };
            let mut file = UndoFile::new(path, standing, &back);
            if let Some(hash) = back.content {
                self.restore(&mut file, kind, hash, &known, &mut weeks)?;
            }
            // What cites it is to cite it as it will stand.
            let stem = period_of_path(path).and_then(Stem::of_summary);
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
        file: &mut UndoFile,
        kind: FileKind,
        hash: ContentHash,
        known: &BTreeMap<Stem, LogRecord>,
        weeks: &mut SourceHashChanges,
    ) -> Result<(), LineageError> {
        let version = self.prior_version(file, hash)?;
        let bytes = match self.lineage.content(hash) {
            Err(LineageError::Damaged { .. }) => None,
            bytes => bytes?,
        };
        if let Some(torn) = bytes.as_deref().and_then(damage::byte_damage) {
            // Where nothing stood in it, to remove it is the same, and leaves no harmed file.
            if torn != Damage::Empty {
                file.outcome = UndoOutcome::Lost;
                file.reason =
                    Some(format!("is left as it is: its older text {}", torn.description()));
            }
            return Ok(());
        }
        let text = bytes.and_then(|it| String::from_utf8(it).ok());
        let (Some(version), Some(text)) = (version, text) else {
            file.outcome = UndoOutcome::Lost;
            file.reason = Some("is left as it is: its older text is no longer kept".to_owned());
            return Ok(());
        };
        file.version = Some(version);
        let followed = self.update_citations(&file.path, kind, &text, version, known, weeks)?;
        file.citations_updated = followed.is_some();
        if let (FileKind::Weekly, Some(now)) = (kind, &followed)
            && let Some(week) = period_of_path(&file.path)
        {
            let rules = &self.view.inventory.rules;
            let input = |it: &str| rules.summary_input_hash(week, &document::body_hash(it).hex16());
            weeks.insert(week.to_string(), (input(&text), input(now)));
        }
        let text = followed.unwrap_or(text);
        file.outcome = if file.current.as_ref() == Some(&text) {
            UndoOutcome::Unchanged
        } else {
            UndoOutcome::Restored
        };
        file.text = Some(text);
        Ok(())
    }

    /// Returns the version of a file that had these bytes last, before the runs.
    fn prior_version(
        &self,
        file: &UndoFile,
        hash: ContentHash,
    ) -> Result<Option<VersionId>, LineageError> {
        let versions = self.lineage.versions_of(&file.path)?;
        let is_taken = |it: &&VersionRow| it.run.is_some() && it.run == file.oldest_run;
        let first = versions.iter().find(is_taken).map(|it| it.id);
        let mut with = versions.iter().filter(|it| it.hash == Some(hash)).map(|it| it.id);
        Ok(with
            .clone()
            .rfind(|it| first.is_none_or(|first| *it < first))
            .or_else(|| with.next_back()))
    }
}

/// Returns the runs that are to be taken back, if they can be.
fn runs_to_undo(
    past: &RunHistory,
    run: RunId,
    with_later: bool,
) -> Result<BTreeSet<RunId>, UndoError> {
    if !past.runs.contains_key(&run) {
        return Err(UndoError::UnknownRun { run, known: past.undoable_runs() });
    }
    if let Some(by) = past.undoer_of(run) {
        return Err(UndoError::AlreadyUndone { run, by });
    }
    if past.is_repair(run) {
        return Err(UndoError::IsRepair { run });
    }
    if past.files_of(run).is_empty() {
        return Err(UndoError::NoFilesWritten { run });
    }
    let ties = past.with_dependents(run);
    let is_forget =
        |run: &&RunId| past.runs.get(run).is_some_and(|it| it.trigger == FORGET_TRIGGER);
    if let Some(&run) = ties.keys().find(is_forget) {
        return Err(UndoError::IsForget { run });
    }
    if ties.len() > 1 && !with_later {
        let later = ties.into_iter().filter_map(|(later, paths)| {
            let run = past.runs.get(&later).filter(|_| later != run)?.clone();
            Some(DependentRun { run, paths })
        });
        return Err(UndoError::HasDependents { run, later: later.collect() });
    }
    Ok(ties.into_keys().collect())
}

fn is_generated(kind: FileKind) -> bool {
    matches!(kind, FileKind::Weekly | FileKind::Monthly | FileKind::Memory | FileKind::Wisdom)
}
