//! What a program can put right, and how.
//!
//! [`plan_repair`] says what is to be done, so that a person can be shown it first, and
//! [`Compactor::repair`] does it. Nothing is deleted: bytes that are replaced go to the quarantine
//! and into the history, and the run that does it is recorded like any other.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use chrono::{DateTime, Utc};

use super::{
    check::{self, CheckOutcome, RecordFinding},
    damage::{self, Damage},
};
use crate::compaction::{
    CompactionError, Compactor, RootSnapshot,
    journal::records,
    reconcile::edits::{ReconcileRun, new_key},
    undo::REPAIR_TRIGGER,
};
use crate::{
    memory::{decision::Decisions, hash::ContentHash, index, typed_schema},
    store::{
        db::lineage::{
            Lineage,
            history::{NewVersion, VersionCause},
            jobs::{NewIntent, RunId},
            record::Commit,
        },
        fs::{
            layout::FileKind,
            lock::RunLock,
            private_folder::{self, CommitMarker, ExposedFile},
            vault::{Vault, VaultError},
        },
    },
};

/// One thing to put right. They are done in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepairStep {
    /// Others can get at a private file.
    RestrictAccess(ExposedFile),
    /// A crash left jobs, intents, or temporary files.
    Recover,
    /// The record of decisions is not what it was.
    Decisions,
    /// A file is brought back as it was recorded last.
    Restore {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
        /// The bytes that are brought back.
        hash: ContentHash,
    },
    /// A file that cannot be read, of which the history knows nothing.
    Quarantine {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// What is recorded is not what the files say, or not all of it.
    RebuildRecords,
    /// `MEMORY.md` does not list the typed memories.
    Index,
    /// The witnesses beside the database know of runs that it does not.
    CommitMarker,
}

impl fmt::Display for RepairStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RestrictAccess(it) => {
                write!(f, "chmod {:o} `{}`", it.required_mode, it.path.display())
            }
            Self::Recover => f.write_str("finish or drop what a crash cut off"),
            Self::Decisions => f.write_str("put back what the record of decisions held"),
            Self::Restore { path, why, .. } => {
                write!(
                    f,
                    "{path} {why}: move it to the quarantine, bring back what was recorded last"
                )
            }
            Self::Quarantine { path, why } => write!(f, "{path} {why}: move it to the quarantine"),
            Self::RebuildRecords => f.write_str("record files and logs anew"),
            Self::Index => f.write_str("write MEMORY.md anew"),
            Self::CommitMarker => f.write_str("take note that the database lacks its last runs"),
        }
    }
}

/// Says what is to be done in a root whose database is sound or missing.
///
/// # Errors
///
/// Returns an error when files or database cannot be read.
pub fn plan_repair(
    vault: &Vault,
    view: &RootSnapshot,
    lineage: Option<&Lineage>,
) -> Result<Vec<RepairStep>, CompactionError> {
    let layout = vault.layout();
    let io = |source| VaultError::Io { action: "read", path: layout.private_dir(), source };
    let mut steps: Vec<RepairStep> = private_folder::exposed_files(layout)
        .map_err(io)?
        .into_iter()
        .filter(|it| it.mode & !it.required_mode != 0)
        .map(RepairStep::RestrictAccess)
        .collect();
    let busy = RunLock::is_held(&layout.run_lock())?;
    let left = lineage.map_or(Ok(false), |it| {
        let open = !it.open_runs()?.is_empty() || !it.open_intents()?.is_empty();
        Ok::<_, CompactionError>(open || !it.live_jobs()?.is_empty())
    })?;
    if !busy && (left || !vault.temp_files()?.is_empty()) {
        steps.push(RepairStep::Recover);
    }
    if matches!(check::decisions(vault, view), Ok(CheckOutcome::Failed(_)))
        && private_folder::decisions_copy(layout).is_some()
    {
        steps.push(RepairStep::Decisions);
    }
    let documents = check::documents(vault, view);
    let torn = damage::damaged_files(vault, view, lineage)?;
    // What can be read may be what a person wrote, so only what nobody wrote is replaced. Lines that
    // cite nothing are for the next fold, and a memory out of form is for a person, unless a byte of
    // it was turned.
    let mut wrong: BTreeMap<String, String> =
        torn.iter().map(|(path, torn)| (path.clone(), torn.description().to_owned())).collect();
    for path in check::dangling_citations(vault, &documents)?.into_keys() {
        if has_flipped_byte(vault, lineage, &path)? {
            wrong.entry(path).or_insert_with(|| "cites what is not there".to_owned());
        }
    }
    for memory in &view.inventory.memories {
        let path = layout.typed_memory(&memory.file_name.to_string_lossy());
        if typed_schema::validate(memory).is_err() && has_flipped_byte(vault, lineage, &path)? {
            wrong.entry(path).or_insert_with(|| "is not in form".to_owned());
        }
    }
    for (path, why) in wrong {
        let best = lineage.map_or(Ok(None), |it| damage::last_undamaged(it, &path))?;
        steps.push(match best {
            Some(hash) => RepairStep::Restore { path, why, hash },
            None => RepairStep::Quarantine { path, why },
        });
    }
    let behind = matches!(check::commit_marker(layout, lineage), Ok(CheckOutcome::Failed(_)));
    // A file that is gone or was edited is for the next run to notice.
    let compared = check::compare_records(vault, view, lineage, &documents)?;
    if compared.findings.iter().any(RecordFinding::needs_rebuild) || behind {
        steps.push(RepairStep::RebuildRecords);
    }
    let inventory = &view.inventory;
    let wanted = index::render(inventory.index.as_deref(), &inventory.memories, &|it| {
        inventory.rules.sanitize_output(it)
    });
    let needed = inventory.index.is_some() || !inventory.memories.is_empty();
    let torn_index = torn.contains_key(&layout.index());
    if needed && (torn_index || inventory.index.as_deref() != Some(&wanted)) {
        steps.push(RepairStep::Index);
    }
    if behind {
        steps.push(RepairStep::CommitMarker);
    }
    Ok(steps)
}

/// Returns whether a file differs in one byte from what was recorded of it, as after a fault of the
/// disk.
fn has_flipped_byte(
    vault: &Vault,
    lineage: Option<&Lineage>,
    path: &str,
) -> Result<bool, CompactionError> {
    let Some(lineage) = lineage else { return Ok(false) };
    let Some(hash) = lineage.document_hash(path)? else { return Ok(false) };
    let (Some(then), Some(now)) = (lineage.content(hash)?, vault.read(path)?) else {
        return Ok(false);
    };
    let differ = then.iter().zip(&now.bytes).filter(|(a, b)| a != b).count();
    Ok(then.len() == now.bytes.len() && differ == 1)
}

impl Compactor<'_> {
    /// Does what [`plan_repair`] said, and says what was done, in the past tense.
    ///
    /// # Errors
    ///
    /// Returns what stopped it; each step that was done is done, and to try again does no harm.
    pub fn repair(
        &mut self,
        steps: &[RepairStep],
        now: DateTime<Utc>,
    ) -> Result<Vec<String>, CompactionError> {
        // A pass beside it would find the record of the files gone in between.
        let _alone = self.acquire_run_lock(&|| false)?;
        let mut said = Vec::new();
        let mut run = None;
        let result = steps.iter().try_for_each(|step| {
            said.push(self.repair_step(step, &mut run, now)?);
            Ok(())
        });
        if let Some(run) = run {
            self.end_run(run)?;
        }
        result.map(|()| said)
    }

    /// Puts back from the history what a disk cut off or emptied, before it is taken for what a
    /// person deleted; returns the files and what was wrong with each.
    pub(crate) fn restore_damaged_files(
        &mut self,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<Vec<String>, CompactionError> {
        let mut said = Vec::new();
        let mut run = None;
        for (path, torn) in damage::damaged_files(self.vault, view, Some(self.lineage))? {
            // In another form or encoding it may be a person's; `doctor` tells.
            if !matches!(torn, Damage::Empty | Damage::NulBytes | Damage::Truncated) {
                continue;
            }
            let Some(hash) = damage::last_undamaged(self.lineage, &path)? else { continue };
            let bytes = self.lineage.content(hash)?;
            // Only what was made of lines is ours, and `MEMORY.md` is written anew by any pass.
            let text = bytes.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            let record = records::of_path(self.vault.layout(), &path, &text);
            if !record.iter().flat_map(|it| &it.items).any(|it| it.citation.is_some()) {
                continue;
            }
            let kept = self.replace_file(&path, bytes.as_deref(), &mut run, now)?;
            let what = match torn {
                Damage::Empty => "was empty",
                Damage::NulBytes => "held NUL bytes",
                _ => "was cut off",
            };
            said.push(format!(
                "{path} was put back: it {what}; what stood there is kept as {kept}"
            ));
        }
        if let Some(run) = run {
            self.end_run(run)?;
        }
        Ok(said)
    }

    fn repair_step(
        &mut self,
        step: &RepairStep,
        run: &mut Option<RunId>,
        now: DateTime<Utc>,
    ) -> Result<String, CompactionError> {
        let layout = self.vault.layout().clone();
        let cannot =
            |path: &str, source| VaultError::Io { action: "write", path: path.into(), source };
        match step {
            RepairStep::RestrictAccess(exposed) => {
                private_folder::restrict_access(exposed)
                    .map_err(|e| cannot(&exposed.path.to_string_lossy(), e))?;
                Ok(format!("closed `{}` to others", exposed.path.display()))
            }
            RepairStep::Recover => {
                self.recover(now)?;
                let swept = self.vault.remove_temp_files(&self.write_lock()?)?;
                Ok(format!("closed what a crash cut off; {swept} temporary files put away"))
            }
            RepairStep::Decisions => self.restore_decisions(now),
            RepairStep::Restore { path, why, hash } => {
                let bytes = self.lineage.content(*hash)?;
                let kept = self.replace_file(path, bytes.as_deref(), run, now)?;
                Ok(format!(
                    "{path} {why}: it is kept as {kept}, and was brought back as it was recorded"
                ))
            }
            RepairStep::Quarantine { path, why } => {
                let kept = self.replace_file(path, None, run, now)?;
                let then = match layout.kind_of(path) {
                    Some(FileKind::Weekly | FileKind::Monthly) => {
                        "; `memoird compact` makes it again"
                    }
                    _ => "",
                };
                Ok(format!("{path} {why}: it is kept as {kept}{then}"))
            }
            RepairStep::RebuildRecords => {
                self.reconcile_before_rebuild(run, now)?;
                let rebuilt = self.rebuild_records(now)?;
                Ok(format!(
                    "recorded {} logs and the files made from them anew",
                    rebuilt.counts.logs
                ))
            }
            RepairStep::Index => {
                let view = self.take_snapshot(now)?;
                self.refresh_index(*run, &view)?;
                Ok("wrote MEMORY.md anew".to_owned())
            }
            RepairStep::CommitMarker => {
                self.ensure_run(run, REPAIR_TRIGGER, now)?;
                Ok("took note that runs are missing from the database".to_owned())
            }
        }
    }

    /// Takes notice of what people did, while it can still be told from what was recorded.
    ///
    /// A database that lacks its last runs cannot tell it, so with that one nobody is a deleter.
    fn reconcile_before_rebuild(
        &mut self,
        run: &mut Option<RunId>,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        self.refuse_if_vanished(false)?;
        if matches!(
            check::commit_marker(self.vault.layout(), Some(self.lineage)),
            Ok(CheckOutcome::Passed(_))
        ) {
            let view = self.take_snapshot(now)?;
            let mut noticing = ReconcileRun { run: *run, ..ReconcileRun::new(REPAIR_TRIGGER, now) };
            let noticed = self.reconcile_changes(&mut noticing, &view);
            *run = noticing.run;
            noticed?;
        }
        Ok(())
    }

    /// Moves what stands under a name to the quarantine, and puts `bytes` there, if any.
    fn replace_file(
        &mut self,
        path: &str,
        bytes: Option<&[u8]>,
        run: &mut Option<RunId>,
        now: DateTime<Utc>,
    ) -> Result<String, CompactionError> {
        let run = self.ensure_run(run, REPAIR_TRIGGER, now)?;
        let lock = self.write_lock()?;
        let Some(found) = self.vault.read(path)? else { return Ok("nothing".to_owned()) };
        let old = ContentHash::of(&found.bytes);
        let layout = self.vault.layout().clone();
        let kept = private_folder::quarantine_file(&layout, now, path, &found.bytes)
            .map_err(|source| VaultError::Io { action: "write", path: path.into(), source })?;
        let temp = Vault::new_temp_name();
        let intent = NewIntent {
            target: path,
            source: None,
            temp: &temp,
            new: bytes,
            old: Some(&found.bytes),
            discards_old: false,
        };
        let intents = self.lineage.begin_intents(Some(run), None, &[intent], now)?;
        match bytes {
            Some(bytes) => {
                let staged = self.vault.stage(path, &temp, bytes)?;
                self.vault.publish(&lock, staged, Some(old))?;
            }
            None => self.vault.remove(&lock, path, &temp, old)?,
        }
        let text = bytes.map(String::from_utf8_lossy);
        let document = text.as_ref().and_then(|it| records::of_path(&layout, path, it));
        let documents: Vec<_> = document.into_iter().collect();
        let removed = if bytes.is_none() { vec![path.to_owned()] } else { Vec::new() };
        let cause = if bytes.is_some() { VersionCause::Written } else { VersionCause::Removed };
        let version = NewVersion { path, cause, bytes };
        self.lineage.commit(&Commit {
            documents: &documents,
            removed: &removed,
            intents: &intents,
            versions: &[version],
            run: Some(run),
            at: now,
            ..Commit::default()
        })?;
        Ok(kept)
    }

    /// Puts back what the copy of the decisions holds, and after it the lines that it lacks and
    /// that can be read.
    fn restore_decisions(&mut self, now: DateTime<Utc>) -> Result<String, CompactionError> {
        let layout = self.vault.layout().clone();
        let path = layout.decisions();
        let Some(copy) = private_folder::decisions_copy(&layout) else {
            return Ok("there is no copy of the decisions".to_owned());
        };
        let mut text = String::from_utf8_lossy(&copy).into_owned();
        let found = self.vault.read(&path)?;
        let mut kept = String::new();
        if let Some(found) = &found {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            let known: HashSet<String> = text.lines().map(str::to_owned).collect();
            let now_text = String::from_utf8_lossy(&found.bytes).into_owned();
            // A second key is none of a decision: it is the first one with a bit turned.
            let head = text.lines().next().unwrap_or_default().to_owned();
            let can_be_read =
                |line: &str| Decisions::parse(&format!("{head}\n{line}")).unreadable().is_empty();
            // An older copy may have been put back and added to, so that no place says what is new.
            for line in now_text.lines().filter(|it| !known.contains(*it)) {
                if can_be_read(line) {
                    text.push_str(line);
                    text.push('\n');
                }
            }
            let at = private_folder::quarantine_file(&layout, now, &path, &found.bytes).map_err(
                |source| VaultError::Io { action: "write", path: path.clone().into(), source },
            )?;
            kept = format!("; what stood there is kept as {at}");
        }
        self.replace_decisions_file(&text, found.map(|it| ContentHash::of(it.bytes)))?;
        Ok(format!("put back the record of decisions{kept}"))
    }

    /// Has the witnesses beside the database say what it knows by now.
    pub(crate) fn update_commit_marker(&mut self) -> Result<(), CompactionError> {
        let layout = self.vault.layout();
        let failed =
            |source| VaultError::Io { action: "write", path: layout.private_dir(), source };
        if let Some((run, seal)) = self.lineage.last_ended_run()? {
            let said = CommitMarker { run: run.0, checksum: seal };
            if private_folder::read_commit_marker(layout) != Some(said) {
                private_folder::write_commit_marker(layout, said).map_err(failed)?;
            }
        }
        self.update_decisions_copy()
    }

    /// Keeps a copy of the decisions as they are by now.
    pub(crate) fn update_decisions_copy(&self) -> Result<(), CompactionError> {
        let layout = self.vault.layout();
        let Some(now) = self.vault.read(&layout.decisions())? else { return Ok(()) };
        let copy = private_folder::decisions_copy(layout);
        // One that did not grow from the copy is told by `doctor`, and the copy kept for it.
        let grew = copy.as_ref().is_none_or(|it| now.bytes.starts_with(it) && now.bytes != *it);
        if grew && Decisions::parse(&String::from_utf8_lossy(&now.bytes)).unreadable().is_empty() {
            private_folder::write_decisions_copy(layout, &now.bytes).map_err(|source| {
                VaultError::Io { action: "write", path: layout.private_dir(), source }
            })?;
        }
        Ok(())
    }

    /// Takes the record of decisions as it is, where it is not what the copy holds: what can be read
    /// of it. Both are kept in the quarantine.
    pub(crate) fn accept_decisions(&self) -> Result<(), CompactionError> {
        let layout = self.vault.layout();
        let path = layout.decisions();
        let now = (self.clock)();
        let failed = |source| VaultError::Io { action: "write", path: path.clone().into(), source };
        let copy = private_folder::decisions_copy(layout).unwrap_or_default();
        private_folder::quarantine_file(layout, now, &format!("{path}.copy"), &copy)
            .map_err(failed)?;
        let mut text = String::new();
        if let Some(found) = self.vault.read(&path)? {
            private_folder::quarantine_file(layout, now, &path, &found.bytes).map_err(failed)?;
            let known = String::from_utf8_lossy(&found.bytes).into_owned();
            let decisions = Decisions::parse(&known);
            if !decisions.has_key() {
                text = new_key()?.header_line();
            }
            let can_be_read = |i: usize| !decisions.unreadable().contains(&(i + 1));
            for (_, line) in known.lines().enumerate().filter(|(i, _)| can_be_read(*i)) {
                text.push_str(line);
                text.push('\n');
            }
            self.replace_decisions_file(&text, Some(ContentHash::of(&found.bytes)))?;
        }
        Ok(private_folder::write_decisions_copy(layout, text.as_bytes()).map_err(failed)?)
    }

    /// Writes the record of decisions anew, in the place of what stands there.
    fn replace_decisions_file(
        &self,
        text: &str,
        old: Option<ContentHash>,
    ) -> Result<(), CompactionError> {
        let layout = self.vault.layout();
        let path = layout.decisions();
        let lock = self.write_lock()?;
        let temp = Vault::new_temp_name();
        let staged = self.vault.stage(&path, &temp, text.as_bytes())?;
        self.vault.publish(&lock, staged, old)?;
        let exposed = private_folder::exposed_files(layout).unwrap_or_default();
        for it in exposed.iter().filter(|it| it.path == layout.full(&path)) {
            private_folder::restrict_access(it).map_err(|source| VaultError::Io {
                action: "write",
                path: path.clone().into(),
                source,
            })?;
        }
        Ok(())
    }
}

/// Returns whether text is what nobody wrote, so that it is not taken for somebody's edit.
pub(crate) fn text_damage(text: &str) -> Option<Damage> {
    damage::byte_damage(text.as_bytes())
}
