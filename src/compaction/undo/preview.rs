//! Plans an undo, for a dry run and for the real one: which runs, and what happens to each of their
//! files.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::{
    UndoFile, UndoOutcome, UndoPlan, UndoRequest,
    dependencies::{RunHistory, RunWrite},
    error::{DependentRun, UndoError},
    lines::{PresentFiles, SourceHashChanges},
    resume,
};
use crate::compaction::{
    context::UNDO_TRIGGER,
    journal::records,
    plan::damage::{self, Damage},
    reconcile::{citations::period_of_path, line_moves::LINES_MOVED},
    snapshot::RootSnapshot,
};
use crate::{
    config::root::RootSettings,
    memory::{address::Stem, document, hash::ContentHash},
    store::{
        db::lineage::{
            Lineage, LineageError,
            history::{VersionId, VersionRow},
            jobs::{JobId, RunId},
        },
        fs::{
            layout::{FileKind, visible_bytes},
            vault::Vault,
        },
    },
};

/// The trigger of a run whose work is gone for good.
const FORGET_TRIGGER: &str = "forget";

/// Plans what an undo would do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UndoPreview<'a> {
    pub vault: &'a Vault,
    pub lineage: &'a Lineage,
    /// The snapshot of both.
    pub view: &'a RootSnapshot,
    pub settings: &'a RootSettings,
    pub engine: &'a str,
    pub now: DateTime<Utc>,
}

impl UndoPreview<'_> {
    /// Plans the requested undo. Changes nothing.
    pub(crate) fn plan(&self, request: UndoRequest) -> Result<UndoPlan, UndoError> {
        let history = self.run_history()?;
        let UndoRequest { run, with_dependents: with_later } = self.resolve_request(request)?;
        let last = || {
            let before = history.undoable_runs().pop();
            match history.last_review_run().filter(|it| before.is_none_or(|before| before < *it)) {
                Some(run) => Err(UndoError::ReviewOnly { run, before }),
                None => before.ok_or(UndoError::NothingToUndo),
            }
        };
        let run = run.map_or_else(last, Ok)?;
        let runs = runs_to_undo(&history, run, with_later)?;
        let files = self.plan_files(&history, &runs)?;
        let is_done = |it: &UndoFile| !matches!(it.outcome, UndoOutcome::Kept | UndoOutcome::Lost);
        if let Some(kept) = files.first().filter(|_| !files.iter().any(is_done)) {
            let reason = kept.reason.clone().unwrap_or_default();
            return Err(UndoError::NoFileRestorable { path: kept.path.clone(), reason });
        }
        let moved = history.writes.iter().filter(|it| it.only_relocated);
        let moved = moved.filter(|it| it.run.is_some_and(|run| runs.contains(&run)));
        let mut undo_plan = UndoPlan {
            runs: runs.iter().rev().map(|it| history.run(*it)).collect::<Result<_, _>>()?,
            relocated: moved.map(|it| it.path.clone()).collect(),
            files,
            refused: Vec::new(),
            lifted: Vec::new(),
        };
        self.decide_jobs(&history, &mut undo_plan)?;
        self.refuse_dependents(&mut undo_plan)?;
        Ok(undo_plan)
    }

    /// Returns the request; without a run, the unfinished undo, if any.
    pub(crate) fn resolve_request(
        &self,
        request: UndoRequest,
    ) -> Result<UndoRequest, LineageError> {
        if request.run.is_some() {
            return Ok(request);
        }
        Ok(resume::unfinished(self.vault, self.lineage)?.unwrap_or(request))
    }

    pub(super) fn run_history(&self) -> Result<RunHistory, LineageError> {
        let moved: BTreeSet<JobId> =
            self.lineage.jobs_with_reason(LINES_MOVED)?.into_iter().collect();
        let layout = self.vault.layout();
        let mut intents = self.lineage.writes()?;
        for intent in self.lineage.open_intents()? {
            // A crash left the intent open, but the file is as intended; the next run will find
            // that too.
            let Ok(current) = self.vault.read(&intent.target) else { continue };
            if current.map(|it| ContentHash::of(it.bytes)) == intent.new_hash {
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
        let mut history = RunHistory { runs, undone: taken, writes, ..RunHistory::default() };
        for run in history.runs.values().filter(|it| it.trigger == UNDO_TRIGGER).map(|it| it.id) {
            let jobs = self.lineage.jobs_of_run(run)?;
            history.jobs.insert(run, jobs.iter().map(|it| it.fingerprint).collect());
        }
        history.drop_repairs();
        history.merge_interrupted();
        for run in history.undoable_runs() {
            history.readers.insert(run, self.lineage.dependent_runs(run)?);
        }
        Ok(history)
    }

    /// Plans what happens to each file of the runs.
    fn plan_files(
        &self,
        history: &RunHistory,
        runs: &BTreeSet<RunId>,
    ) -> Result<Vec<UndoFile>, UndoError> {
        let mut paths: Vec<(FileKind, &str)> = runs
            .iter()
            .flat_map(|it| history.files_of(*it))
            .filter_map(|it| Some((self.vault.layout().kind_of(it)?, it)))
            .collect();
        // Weeks before the months that name and cite them; what cites months comes last.
        let tier = |kind: &FileKind| match kind {
            FileKind::Weekly => 0,
            FileKind::Monthly => 1,
            _ => 2,
        };
        paths.sort_by_key(|(kind, path)| (tier(kind), *path));
        paths.dedup();
        let recorded = self.lineage.logs()?;
        let mut present = PresentFiles { recorded, ..PresentFiles::default() };
        present.recorded.extend(self.lineage.cited_summaries()?);
        let mut weeks = SourceHashChanges::new();
        let mut files = Vec::new();
        for (kind, path) in paths {
            let current = match self.vault.read_text(path) {
                Ok(current) => current,
                Err(error) => {
                    files.push(UndoFile::left_unchanged(path, None, error.to_string()));
                    continue;
                }
            };
            let stands = current.as_deref().map(ContentHash::of);
            let Some(back) = history.restore_point(path, runs, stands) else {
                let what = if current.is_some() { "changed" } else { "removed" };
                let reason = format!("was {what} by somebody else since");
                files.push(UndoFile::left_unchanged(path, current, reason));
                continue;
            };
            let mut file = UndoFile::new(path, current, &back);
            if let Some(hash) = back.content {
                self.restore(&mut file, kind, hash, &present, &mut weeks)?;
            }
            // Files that cite this one must cite its new text.
            let stem = period_of_path(path).and_then(Stem::of_summary);
            if let (Some(stem), Some(text)) = (stem, &file.text) {
                present.restored.insert(stem.clone(), text.clone());
                let lines = records::lines_of_summary(&stem, path, text);
                present.recorded.extend(lines.map(|it| (stem, it)));
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
        present: &PresentFiles,
        weeks: &mut SourceHashChanges,
    ) -> Result<(), LineageError> {
        let version = self.prior_version(file, hash)?;
        let bytes = match self.lineage.content(hash) {
            Err(LineageError::Damaged { .. }) => None,
            bytes => bytes?,
        };
        let shown = bytes.as_deref().map(|it| visible_bytes(&file.path, it));
        if let Some(damage) = shown.and_then(damage::byte_damage) {
            // For an empty file, removing it has the same effect and leaves no damaged file.
            if damage != Damage::Empty {
                file.outcome = UndoOutcome::Lost;
                file.reason =
                    Some(format!("is left as it is: its older text {}", damage.description()));
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
        let texts = [text.as_str(), file.current.as_deref().unwrap_or_default()];
        let followed = self.update_citations(&file.path, kind, texts, version, present, weeks)?;
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

    /// Returns the last version of a file with these bytes before the runs.
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

/// Returns the runs to undo, if they can be undone.
fn runs_to_undo(
    history: &RunHistory,
    run: RunId,
    with_later: bool,
) -> Result<BTreeSet<RunId>, UndoError> {
    history.run(run)?;
    if let Some(by) = history.undoer_of(run) {
        return Err(UndoError::AlreadyUndone { run, by });
    }
    if history.is_repair(run) {
        return Err(UndoError::IsRepair { run });
    }
    if history.files_of(run).is_empty() {
        return Err(UndoError::NoFilesWritten { run });
    }
    let ties = history.with_dependents(run);
    let is_forget =
        |run: &&RunId| history.runs.get(run).is_some_and(|it| it.trigger == FORGET_TRIGGER);
    match ties.keys().find(is_forget) {
        Some(&by) if by != run => return Err(UndoError::BeforeForget { run, by }),
        Some(_) => return Err(UndoError::IsForget { run }),
        None => {}
    }
    if ties.len() > 1 && !with_later {
        let later = ties.into_iter().filter(|(later, _)| *later != run);
        let later =
            later.map(|(later, paths)| Ok(DependentRun { run: history.run(later)?, paths }));
        let later = later.collect::<Result<_, UndoError>>()?;
        return Err(UndoError::HasDependents { run, later });
    }
    Ok(ties.into_keys().collect())
}

fn is_generated(kind: FileKind) -> bool {
    matches!(kind, FileKind::Weekly | FileKind::Monthly | FileKind::Memory | FileKind::Wisdom)
}
