//! The deeds: lines are barred, and what is to go leaves files and names.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::{
    cut::{Needles, Wish},
    reach::{Reach, survey_files},
};
use crate::{
    compaction::{
        Compactor, JobError, PassError,
        commit::{NewFile, Recorded, passed},
        records,
    },
    memory::{
        decision::{Decision, Decisions, What},
        log::DailyLog,
    },
    store::{lineage::jobs::RunId, lock::WriteLock, private, vault::VaultError},
};

/// So few that a crash between their removal and its record looks like no mass disappearance.
const REMOVED_AT_ONCE: usize = 4;
/// How often it begins anew because a person wrote a file at the same moment.
const TRIES: usize = 5;

impl Compactor<'_> {
    /// Bars the lines, so that nothing is made of them again.
    pub(super) fn bar(
        &self,
        decisions: &Decisions,
        wish: &Wish,
        now: DateTime<Utc>,
    ) -> Result<(), PassError> {
        let all = [(String::new(), &wish.lines)].into_iter();
        let scopes = all.chain(wish.logs.iter().map(|(log, lines)| (log.clone(), lines)));
        let scopes: Vec<_> = scopes.filter(|(_, lines)| !lines.is_empty()).collect();
        let mut made = Vec::new();
        for (log, lines) in scopes {
            let new = lines.iter().filter(|it| !decisions.is_forgotten(&log, it));
            let hashes: Vec<String> = new.filter_map(|it| decisions.line_hash(it)).collect();
            if !hashes.is_empty() {
                made.push(Decision { at: now, what: What::Forgotten, path: log, hashes });
            }
        }
        self.append_decisions(&made)
    }

    /// Takes items, memories, and lines out of the files, and returns the wish with all that it was
    /// found to mean.
    pub(super) fn remove(&mut self, run: RunId, first: &Reach) -> Result<Wish, PassError> {
        let mut wish = first.wish.clone();
        for attempt in 1.. {
            let (reach, _) = survey_files(self.vault, &wish)?;
            wish = reach.wish.clone();
            let (gone, left): (Vec<_>, Vec<_>) =
                reach.files.into_iter().partition(|it| it.text.is_none());
            let written = self.write_anew(run, &left).and_then(|()| {
                self.remove_all(run, gone.into_iter().map(|it| (it.path.clone(), it)).collect())?;
                passed("forget.items")?;
                let (gone, left): (Vec<_>, Vec<_>) =
                    reach.logs.into_iter().partition(|(_, it)| it.text.is_none());
                let left: Vec<NewFile> = left.into_iter().map(|(_, it)| it).collect();
                self.write_anew(run, &left)?;
                self.remove_all(run, gone)
            });
            match written {
                Ok(()) => break,
                // A person was faster: what they wrote is looked through, too.
                Err(JobError::Vault(VaultError::Changed { .. })) if attempt < TRIES => {}
                Err(JobError::Vault(error)) => return Err(error.into()),
                Err(JobError::Critical(error)) => return Err(error),
                Err(error) => return Err(PassError::Forget(error.to_string())),
            }
        }
        Ok(wish)
    }

    /// Writes files anew; the history does not keep what they were. Where the lines of a log stand now
    /// is noticed by the next pass, which follows them.
    fn write_anew(&mut self, run: RunId, files: &[NewFile]) -> Result<(), JobError> {
        if files.is_empty() {
            return Ok(());
        }
        let layout = self.vault.layout();
        let documents = files
            .iter()
            .filter_map(|it| records::of_path(layout, &it.path, it.text.as_deref()?))
            .collect();
        let recorded = Recorded { documents, forgets: true, ..Recorded::default() };
        self.write(Some(run), None, files, &recorded)
    }

    /// Removes files, each with the path that the lineage names it by.
    fn remove_all(
        &mut self,
        run: RunId,
        mut files: Vec<(String, NewFile)>,
    ) -> Result<(), JobError> {
        while !files.is_empty() {
            let few = files.split_off(files.len().saturating_sub(REMOVED_AT_ONCE));
            let (removed, few): (Vec<String>, Vec<NewFile>) = few.into_iter().unzip();
            let recorded = Recorded { removed, forgets: true, ..Recorded::default() };
            self.write(Some(run), None, &few, &recorded)?;
        }
        Ok(())
    }

    /// Leaves the lines blank in the last version of logs that are no longer there: it may be the only
    /// copy of all others.
    pub(super) fn forget_within(&mut self, reach: &Reach) -> Result<(), PassError> {
        let paths: BTreeSet<&str> = reach.vanished.iter().map(|it| &it.path[..]).collect();
        let needles = Needles::of(&reach.wish);
        for path in paths {
            let mut versions = self.lineage.versions_of(path)?.into_iter().rev();
            let last = versions.find_map(|it| Some((it.id, it.hash?)));
            let (Some((id, hash)), Some(stem)) = (last, self.vault.layout().stem_at(path)) else {
                continue;
            };
            if reach.wish.logs.contains_key(stem.as_str()) {
                continue;
            }
            let Some(bytes) = self.lineage.content(hash)? else { continue };
            let left = DailyLog::parse(stem, &bytes).ok().and_then(|it| needles.blank_log(&it));
            if let Some(left) = left {
                self.lineage.forget_within(id, left.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Renames typed memories that are gone wherever they are named: their names are made of words.
    pub(super) fn forget_names(
        &mut self,
        lock: &WriteLock,
        decisions: &Decisions,
        names: &BTreeSet<String>,
    ) -> Result<(), PassError> {
        let gone: BTreeSet<&str> =
            names.iter().map(String::as_str).filter(|it| !self.vault.is_taken(it)).collect();
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

    /// Gives the decisions about files other paths, or drops those that get none. Lines that are no
    /// decision stay as they are.
    pub(in crate::compaction) fn rewrite_decisions(
        &self,
        lock: &WriteLock,
        path_of: impl Fn(&Decision) -> Option<String>,
    ) -> Result<(), PassError> {
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
        // The copy first, with what stands in the old record and in the new one: what a crash leaves is
        // no loss. Forgetting goes on with the next pass, redacting when it is asked for again; both find
        // the same names.
        let same: String = lines().filter(|(old, new)| old == new).map(|it| it.1).collect();
        let layout = self.vault.layout();
        let copy = |text: &str| {
            let failed =
                |source| VaultError::Io { action: "write", path: layout.private_dir(), source };
            private::copy_decisions(layout, text.as_bytes()).map_err(failed)
        };
        let held = private::decisions_copy(layout);
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
