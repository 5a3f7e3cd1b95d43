//! The removal: lines are blocked, and their words leave files and names.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::{
    impact::{ForgetImpact, find_impact_in_files},
    targets::{ForgetPatterns, ForgetRequest},
};
use crate::{
    compaction::{
        CompactionError, Compactor, JobFailure,
        journal::{
            commit::{FileWrite, RecordedChanges, reach_failpoint},
            records,
        },
    },
    memory::{
        decision::{Decision, DecisionKind, Decisions},
        log::DailyLog,
    },
    store::{
        db::lineage::jobs::RunId,
        fs::{lock::WriteLock, private_folder, vault::VaultError},
    },
};

/// Few enough that a crash between removal and record does not look like a mass disappearance.
const REMOVED_AT_ONCE_MAX: usize = 4;
/// How often the removal restarts because a person wrote a file at the same moment.
const TRIES_MAX: usize = 5;

impl Compactor<'_> {
    /// Blocks the lines, so that nothing is derived from them again.
    pub(super) fn block_lines(
        &self,
        decisions: &Decisions,
        request: &ForgetRequest,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let all = [(String::new(), &request.lines)].into_iter();
        let scopes = all.chain(request.logs.iter().map(|(log, lines)| (log.clone(), lines)));
        let scopes: Vec<_> = scopes.filter(|(_, lines)| !lines.is_empty()).collect();
        let mut made = Vec::new();
        for (log, lines) in scopes {
            let new = lines.iter().filter(|it| !decisions.is_forgotten(&log, it));
            let hashes: Vec<String> = new.filter_map(|it| decisions.line_hash(it)).collect();
            if !hashes.is_empty() {
                made.push(Decision { at: now, what: DecisionKind::Forgotten, path: log, hashes });
            }
        }
        self.append_decisions(&made)
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
            let (impact, _) = find_impact_in_files(self.vault, &request)?;
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
        let layout = self.vault.layout();
        let documents = files
            .iter()
            .filter_map(|it| records::of_path(layout, &it.path, it.text.as_deref()?))
            .collect();
        let recorded = RecordedChanges { documents, forgets: true, ..RecordedChanges::default() };
        self.write_files(Some(run), None, files, &recorded)
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
            self.write_files(Some(run), None, &few, &recorded)?;
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
            let mut versions = self.lineage.versions_of(path)?.into_iter().rev();
            let last = versions.find_map(|it| Some((it.id, it.hash?)));
            let (Some((id, hash)), Some(stem)) = (last, self.vault.layout().stem_at(path)) else {
                continue;
            };
            if impact.request.logs.contains_key(stem.as_str()) {
                continue;
            }
            let Some(bytes) = self.lineage.content(hash)? else { continue };
            let left =
                DailyLog::parse(stem, &bytes).ok().and_then(|it| patterns.blank_lines_in_log(&it));
            if let Some(left) = left {
                self.lineage.replace_version_content(id, left.as_bytes())?;
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
            names.iter().map(String::as_str).filter(|it| !self.vault.exists(it)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        for path in &gone {
            let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
            let kind = name.split('_').next().unwrap_or_default();
            let mark = decisions.line_hash(path).unwrap_or_default();
            let slash = if dir.is_empty() { "" } else { "/" };
            self.lineage.forget_name(path, &format!("{dir}{slash}{kind}_forgotten-{mark}.md"))?;
        }
        self.rewrite_decisions(lock, |it| (!gone.contains(&it.path[..])).then(|| it.path.clone()))
    }

    /// Changes the paths of decisions about files, or drops those for which `path_of` returns
    /// `None`. Lines that are not decisions stay.
    pub(in crate::compaction) fn rewrite_decisions(
        &self,
        lock: &WriteLock,
        path_of: impl Fn(&Decision) -> Option<String>,
    ) -> Result<(), CompactionError> {
        let path = self.vault.layout().decisions();
        let Some(text) = self.vault.read_text(&path)? else { return Ok(()) };
        let line_for = |line: &str| match serde_json::from_str::<Decision>(line) {
            Err(_) => line.to_owned(),
            Ok(decision) => match path_of(&decision) {
                None => String::new(),
                Some(path) if path == decision.path => line.to_owned(),
                Some(path) => Decision { path, ..decision }.print(),
            },
        };
        let lines = || text.split_inclusive('\n').map(|it| (it, line_for(it)));
        let kept: String = lines().map(|it| it.1).collect();
        // The copy is written first, with only the lines common to old and new record, so that a
        // crash never looks like a loss. Forgetting continues with the next run, redacting when it
        // is requested again; both find the same names.
        let same: String = lines().filter(|(old, new)| old == new).map(|it| it.1).collect();
        let layout = self.vault.layout();
        let copy = |text: &str| {
            let failed =
                |source| VaultError::Io { action: "write", path: layout.private_dir(), source };
            private_folder::write_decisions_copy(layout, text.as_bytes()).map_err(failed)
        };
        let held = private_folder::decisions_copy(layout);
        let follows = held.is_some_and(|it| !kept.as_bytes().starts_with(&it));
        if follows {
            copy(&same)?;
        }
        if kept != text {
            self.vault.replace_decisions(lock, &text, &kept)?;
        }
        if follows && same != kept {
            copy(&kept)?;
        }
        Ok(())
    }
}
