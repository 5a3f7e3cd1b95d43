//! The removal: lines are blocked, and their words leave files and names.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::{
    Forgetter,
    impact::{ForgetImpact, find_impact_in_files},
    request::ForgetRequest,
    targets::ForgetPatterns,
};
use crate::compaction::{
    error::{CompactionError, JobFailure},
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges, reach_failpoint},
        decision_file::DecisionFile,
        records,
    },
};
use crate::{
    memory::{
        decision::{Decision, DecisionKind, Decisions},
        log::DailyLog,
    },
    store::{
        db::lineage::jobs::RunId,
        fs::{lock::WriteLock, vault::VaultError},
    },
};

/// Few enough that a crash between removal and record does not look like a mass disappearance.
const REMOVED_AT_ONCE_MAX: usize = 4;
/// How often the removal restarts because a person wrote a file at the same moment.
const TRIES_MAX: usize = 5;

impl Forgetter<'_, '_> {
    /// Blocks the lines, so that nothing is derived from them again.
    pub(super) fn block_lines(
        &self,
        decisions: &Decisions,
        request: &ForgetRequest,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let lines: BTreeSet<String> =
            request.lines.union(&request.found.record_lines).cloned().collect();
        let all = [(String::new(), &lines)].into_iter();
        let scopes = all.chain(request.logs.iter().map(|(log, lines)| (log.clone(), lines)));
        let scopes: Vec<_> = scopes.filter(|(_, lines)| !lines.is_empty()).collect();
        let mut made = Vec::new();
        for (log, lines) in scopes {
            let new = lines.iter().filter(|it| !decisions.is_forgotten(&log, it));
            let hashes: Vec<String> = new.flat_map(|it| decisions.forgotten_hashes(it)).collect();
            if !hashes.is_empty() {
                made.push(Decision { at: now, what: DecisionKind::Forgotten, path: log, hashes });
            }
        }
        DecisionFile::new(self.context).append(&made)
    }

    /// Removes items, memories, and lines from the files. Returns the request with all that it was
    /// resolved to.
    pub(super) fn remove_targets(
        &mut self,
        run: RunId,
        first: &ForgetImpact,
    ) -> Result<ForgetRequest, CompactionError> {
        let mut request = first.request.clone();
        for attempt in 1.. {
            let (impact, _) = find_impact_in_files(self.context.vault, &request)?;
            request = impact.request.clone();
            let (gone, left): (Vec<_>, Vec<_>) =
                impact.files.into_iter().partition(|it| it.text.is_none());
            let written = self.rewrite_files(run, &left).and_then(|()| {
                self.remove_files(run, gone.into_iter().map(|it| (it.path.clone(), it)).collect())?;
                reach_failpoint("forget.items")?;
                let (gone, left): (Vec<_>, Vec<_>) =
                    impact.logs.into_iter().partition(|(_, it)| it.text.is_none());
                let left: Vec<FileWrite> = left.into_iter().map(|(_, it)| it).collect();
                self.rewrite_files(run, &left)?;
                self.remove_files(run, gone)
            });
            match written {
                Ok(()) => break,
                // A person wrote a file meanwhile; it is searched too.
                Err(JobFailure::Vault(VaultError::Changed { .. })) if attempt < TRIES_MAX => {}
                Err(JobFailure::Vault(error)) => return Err(error.into()),
                Err(JobFailure::Critical(error)) => return Err(error),
                Err(error) => return Err(CompactionError::ForgetUnfinished(error.to_string())),
            }
        }
        Ok(request)
    }

    /// Rewrites files without adding the old text to the history. The next run finds the relocated
    /// lines of the logs.
    fn rewrite_files(&mut self, run: RunId, files: &[FileWrite]) -> Result<(), JobFailure> {
        if files.is_empty() {
            return Ok(());
        }
        let layout = self.context.vault.layout();
        let documents = files
            .iter()
            .filter_map(|it| records::of_path(layout, &it.path, it.text.as_deref()?))
            .collect();
        let recorded = RecordedChanges { documents, forgets: true, ..RecordedChanges::default() };
        Journal::new(self.context).write_files(Some(run), None, files, &recorded)
    }

    /// Removes files, each with its path in the lineage.
    fn remove_files(
        &mut self,
        run: RunId,
        mut files: Vec<(String, FileWrite)>,
    ) -> Result<(), JobFailure> {
        while !files.is_empty() {
            let few = files.split_off(files.len().saturating_sub(REMOVED_AT_ONCE_MAX));
            let (removed, few): (Vec<String>, Vec<FileWrite>) = few.into_iter().unzip();
            let recorded = RecordedChanges { removed, forgets: true, ..RecordedChanges::default() };
            Journal::new(self.context).write_files(Some(run), None, &few, &recorded)?;
        }
        Ok(())
    }

    /// Blanks the lines in the last version of vanished logs, which may be the only copy of the
    /// other lines.
    pub(super) fn blank_vanished_lines(
        &mut self,
        impact: &ForgetImpact,
    ) -> Result<(), CompactionError> {
        let paths: BTreeSet<&str> = impact.vanished_lines.iter().map(|it| &it.path[..]).collect();
        let patterns = ForgetPatterns::new(&impact.request);
        for path in paths {
            let mut versions = self.context.lineage.versions_of(path)?.into_iter().rev();
            let last = versions.find_map(|it| Some((it.id, it.hash?)));
            let (Some((id, hash)), Some(stem)) = (last, self.context.vault.layout().stem_at(path))
            else {
                continue;
            };
            if impact.request.logs.contains_key(stem.as_str()) {
                continue;
            }
            let Some(bytes) = self.context.lineage.content(hash)? else { continue };
            let left =
                DailyLog::parse(stem, &bytes).ok().and_then(|it| patterns.blank_lines_in_log(&it));
            if let Some(left) = left {
                self.context.lineage.replace_version_content(id, left.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Replaces the names of removed typed memories everywhere, since they are built from the
    /// words.
    pub(super) fn forget_names(
        &mut self,
        lock: &WriteLock,
        decisions: &Decisions,
        names: &BTreeSet<String>,
    ) -> Result<(), CompactionError> {
        let gone: BTreeSet<&str> =
            names.iter().map(String::as_str).filter(|it| !self.context.vault.exists(it)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        for path in &gone {
            let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
            let kind = name.split('_').next().unwrap_or_default();
            let mark = decisions.line_hash(path).unwrap_or_default();
            let slash = if dir.is_empty() { "" } else { "/" };
            self.context
                .lineage
                .forget_name(path, &format!("{dir}{slash}{kind}_forgotten-{mark}.md"))?;
        }
        DecisionFile::new(self.context)
            .rewrite(lock, |it| (!gone.contains(&it.path[..])).then(|| it.path.clone()))
    }
}
