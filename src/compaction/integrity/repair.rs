//! Repairs: what the program can fix by itself, and how.
//!
//! [`plan_repair`] lists the steps, so that a person can be shown them first, and
//! [`crate::compaction::Compactor::repair`] executes them. Nothing is deleted: replaced bytes go to the quarantine and
//! into the history, and the repair is recorded as a run.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use chrono::{DateTime, Utc};

use super::{
    check::{self, CheckOutcome, RecordFinding},
    damage,
    rebuild::Rebuilder,
    vanished_files::refuse_if_vanished,
};
use crate::compaction::{
    context::{REPAIR_TRIGGER, RunContext},
    error::CompactionError,
    journal::{Journal, decision_file::DecisionFile, records},
    memories::index_file::{awaits_merge, refresh_index},
    plan::damage::Damage,
    reconcile::{ReconcileRun, Reconciler},
    snapshot::RootSnapshot,
};
use crate::{
    memory::{
        decision::Decisions, decision_merge::is_damaged_copy, hash::ContentHash, index,
        typed_schema,
    },
    store::{
        db::lineage::{
            Lineage,
            history::{NewVersion, VersionCause},
            jobs::{NewIntent, RunId},
            record::Commit,
        },
        fs::{
            layout::{FileKind, visible_bytes},
            lock::RunLock,
            private_folder::{self, ExposedFile},
            vault::{Vault, VaultError},
        },
    },
};

/// One step of a repair. Steps are executed in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RepairStep {
    /// Others can access a private file.
    RestrictAccess(ExposedFile),
    /// A crash left jobs, intents, or temporary files.
    Recover,
    /// The decisions file has lost lines.
    Decisions,
    /// A file is restored to its recorded content.
    Restore {
        path: String,
        /// What is wrong with it.
        why: String,
        hash: ContentHash,
    },
    /// A file that cannot be read and has no version in the history is moved to the quarantine.
    Quarantine {
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The records differ from the files or are incomplete.
    RebuildRecords,
    /// `MEMORY.md` does not list the typed memories.
    Index,
    /// The commit marker names runs that the database lacks.
    CommitMarker,
}

impl fmt::Display for RepairStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RestrictAccess(it) => {
                write!(f, "chmod {:o} `{}`", it.required_mode, it.path.display())
            }
            Self::Recover => f.write_str("finish or drop what a crash interrupted"),
            Self::Decisions => f.write_str("restore the lost decisions"),
            Self::Restore { path, why, .. } => {
                write!(
                    f,
                    "{path} {why}: move it to the quarantine and restore the last recorded version"
                )
            }
            Self::Quarantine { path, why } => write!(f, "{path} {why}: move it to the quarantine"),
            Self::RebuildRecords => f.write_str("record files and logs again"),
            Self::Index => f.write_str("render MEMORY.md again"),
            Self::CommitMarker => f.write_str("record that the database lacks its last runs"),
        }
    }
}

/// Plans the repair of a root whose database is sound or missing.
pub(crate) fn plan_repair(
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
    let damaged = damage::damaged_files(vault, view, lineage)?;
    // A readable file may be what a person wrote, so only what nobody wrote is replaced. Dangling
    // citations are for the next run, and an invalid memory is for a person, unless a single byte
    // was flipped.
    // What to keep of a merge conflict, only a person can say.
    let mut wrong: BTreeMap<String, String> = damaged
        .iter()
        .filter(|(_, damage)| **damage != Damage::MergeConflict)
        .map(|(path, damage)| (path.clone(), damage.description().to_owned()))
        .collect();
    for path in check::dangling_citations(vault, &documents)?.into_keys() {
        if has_flipped_byte(vault, lineage, &path)? {
            wrong.entry(path).or_insert_with(|| "cites lines that do not exist".to_owned());
        }
    }
    for memory in &view.inventory.memories {
        let path = layout.typed_memory(&memory.file_name.to_string_lossy());
        if typed_schema::validate(memory).is_err() && has_flipped_byte(vault, lineage, &path)? {
            wrong.entry(path).or_insert_with(|| "violates the schema".to_owned());
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
    let rendered = index::render(inventory.index.as_deref(), &inventory.memories, &|it| {
        inventory.rules.sanitize_label(it)
    });
    let needed = inventory.index.is_some() || !inventory.memories.is_empty();
    let index_damaged = damaged.contains_key(&layout.index());
    if needed
        && !awaits_merge(inventory, layout)
        && (index_damaged || inventory.index.as_deref() != Some(&rendered))
    {
        steps.push(RepairStep::Index);
    }
    if behind {
        steps.push(RepairStep::CommitMarker);
    }
    Ok(steps)
}

/// Returns whether a file differs from its recorded content in exactly one byte, as after a disk
/// fault.
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

/// Repairs what the checks found, and restores what a disk lost.
pub(crate) struct Repairer<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> Repairer<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    /// Takes a snapshot after restoring what a disk cut off or emptied; returns also what that was.
    pub(crate) fn take_repaired_snapshot(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<(RootSnapshot, Vec<String>), CompactionError> {
        let view = self.context.take_snapshot(now)?;
        let put_back = self.restore_damaged_files(&view, now)?;
        let view = if put_back.is_empty() { view } else { self.context.take_snapshot(now)? };
        Ok((view, put_back))
    }

    pub(crate) fn repair(
        &mut self,
        steps: &[RepairStep],
        now: DateTime<Utc>,
    ) -> Result<Vec<String>, CompactionError> {
        // A concurrent run would find the record of the files missing in between.
        let _alone = self.context.acquire_run_lock(&|| false)?;
        let mut messages = Vec::new();
        let mut run = None;
        let result = steps.iter().try_for_each(|step| {
            messages.push(self.repair_step(step, &mut run, now)?);
            Ok(())
        });
        if let Some(run) = run {
            self.context.end_run(run)?;
        }
        result.map(|()| messages)
    }

    /// Restores files that a disk truncated or emptied, before they count as a person's deletion.
    /// Returns a message for each.
    pub(crate) fn restore_damaged_files(
        &mut self,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<Vec<String>, CompactionError> {
        let mut messages = Vec::new();
        let mut run = None;
        for (path, kind) in
            damage::damaged_files(self.context.vault, view, Some(self.context.lineage))?
        {
            // Other damage may be a person's doing; `doctor` reports it.
            if !matches!(kind, Damage::Empty | Damage::NulBytes | Damage::Truncated) {
                continue;
            }
            let Some(hash) = damage::last_undamaged(self.context.lineage, &path)? else { continue };
            let bytes = self.context.lineage.content(hash)?;
            // Only files with citations are generated, and every run renders `MEMORY.md`.
            let text = bytes.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            let record = records::of_path(self.context.vault.layout(), &path, &text);
            if !record.iter().flat_map(|it| &it.items).any(|it| it.citation.is_some()) {
                continue;
            }
            let copy = self.replace_file(&path, bytes.as_deref(), &mut run, now)?;
            let what = match kind {
                Damage::Empty => "was empty",
                Damage::NulBytes => "contained NUL bytes",
                _ => "was cut off",
            };
            messages.push(format!(
                "{path} was put back: it {what}; the former bytes are kept as {copy}"
            ));
        }
        if let Some(run) = run {
            self.context.end_run(run)?;
        }
        Ok(messages)
    }

    fn repair_step(
        &mut self,
        step: &RepairStep,
        run: &mut Option<RunId>,
        now: DateTime<Utc>,
    ) -> Result<String, CompactionError> {
        let layout = self.context.vault.layout().clone();
        let cannot =
            |path: &str, source| VaultError::Io { action: "write", path: path.into(), source };
        match step {
            RepairStep::RestrictAccess(exposed) => {
                private_folder::restrict_access(exposed)
                    .map_err(|e| cannot(&exposed.path.to_string_lossy(), e))?;
                Ok(format!("restricted access to `{}`", exposed.path.display()))
            }
            RepairStep::Recover => {
                Journal::new(self.context).recover(now)?;
                let swept = self.context.vault.remove_temp_files(&self.context.write_lock()?)?;
                Ok(format!("finished what a crash interrupted; moved {swept} temporary files away"))
            }
            RepairStep::Decisions => self.restore_decisions(now),
            RepairStep::Restore { path, why, hash } => {
                let bytes = self.context.lineage.content(*hash)?;
                let copy = self.replace_file(path, bytes.as_deref(), run, now)?;
                Ok(format!(
                    "{path} {why}: it is kept as {copy}, and its recorded version was restored"
                ))
            }
            RepairStep::Quarantine { path, why } => {
                let copy = self.replace_file(path, None, run, now)?;
                let then = match layout.kind_of(path) {
                    Some(FileKind::Weekly | FileKind::Monthly) => {
                        "; `memoird compact` makes it again"
                    }
                    _ => "",
                };
                Ok(format!("{path} {why}: it is kept as {copy}{then}"))
            }
            RepairStep::RebuildRecords => {
                self.reconcile_before_rebuild(run, now)?;
                let rebuilt = Rebuilder::new(self.context).rebuild_records(*run, now)?;
                Ok(format!("recorded {} logs and their generated files again", rebuilt.counts.logs))
            }
            RepairStep::Index => {
                let view = self.context.take_snapshot(now)?;
                refresh_index(self.context, *run, &view)?;
                Ok("rendered MEMORY.md again".to_owned())
            }
            RepairStep::CommitMarker => {
                self.context.ensure_run(run, REPAIR_TRIGGER, now)?;
                Ok("recorded that runs are missing from the database".to_owned())
            }
        }
    }

    /// Reconciles what people did, while the records still show it.
    ///
    /// A database that lacks its last runs cannot show it, so then nothing counts as deleted.
    fn reconcile_before_rebuild(
        &mut self,
        run: &mut Option<RunId>,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        refuse_if_vanished(self.context, false)?;
        if matches!(
            check::commit_marker(self.context.vault.layout(), Some(self.context.lineage)),
            Ok(CheckOutcome::Passed(_))
        ) {
            let view = self.context.take_snapshot(now)?;
            let mut reconcile =
                ReconcileRun { run: *run, ..ReconcileRun::new(REPAIR_TRIGGER, now) };
            let reconciled = Reconciler::new(self.context).reconcile_changes(&mut reconcile, &view);
            *run = reconcile.run;
            reconciled?;
        }
        Ok(())
    }

    /// Moves a file to the quarantine and writes `bytes` in its place, if any.
    fn replace_file(
        &mut self,
        path: &str,
        bytes: Option<&[u8]>,
        run: &mut Option<RunId>,
        now: DateTime<Utc>,
    ) -> Result<String, CompactionError> {
        let run = self.context.ensure_run(run, REPAIR_TRIGGER, now)?;
        let lock = self.context.write_lock()?;
        let Some(found) = self.context.vault.read(path)? else { return Ok("nothing".to_owned()) };
        let old = ContentHash::of(&found.bytes);
        let layout = self.context.vault.layout().clone();
        let visible = visible_bytes(path, &found.bytes);
        let copy = private_folder::quarantine_file(&layout, now, path, visible)
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
        let intents = self.context.lineage.begin_intents(Some(run), None, &[intent], now)?;
        match bytes {
            Some(bytes) => {
                let staged = self.context.vault.stage(path, &temp, bytes)?;
                self.context.vault.publish(&lock, staged, Some(old))?;
            }
            None => self.context.vault.remove(&lock, path, &temp, old)?,
        }
        let text = bytes.map(String::from_utf8_lossy);
        let document = text.as_ref().and_then(|it| records::of_path(&layout, path, it));
        let documents: Vec<_> = document.into_iter().collect();
        let removed = if bytes.is_none() { vec![path.to_owned()] } else { Vec::new() };
        let cause = if bytes.is_some() { VersionCause::Written } else { VersionCause::Removed };
        let version = NewVersion { path, cause, bytes };
        self.context.lineage.commit(&Commit {
            documents: &documents,
            removed: &removed,
            intents: &intents,
            versions: &[version],
            run: Some(run),
            at: now,
            ..Commit::default()
        })?;
        Ok(copy)
    }

    /// Restores the decisions from their copy, then appends the readable lines that the copy lacks.
    fn restore_decisions(&mut self, now: DateTime<Utc>) -> Result<String, CompactionError> {
        let layout = self.context.vault.layout().clone();
        let path = layout.decisions();
        let Some(copy) = private_folder::decisions_copy(&layout) else {
            return Ok("there is no copy of the decisions".to_owned());
        };
        let mut text = String::from_utf8_lossy(&copy).into_owned();
        let found = self.context.vault.read(&path)?;
        let mut note = String::new();
        if let Some(found) = &found {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            let restored_lines: HashSet<String> = text.lines().map(str::to_owned).collect();
            let now_text = String::from_utf8_lossy(&found.bytes).into_owned();
            let can_be_read = |line: &str| {
                Decisions::parse(line).unreadable().is_empty()
                    // A second key may be the first one with a flipped bit.
                    && !restored_lines.iter().any(|it| is_damaged_copy(line, it))
            };
            // An older copy may have been restored and appended to, so the position does not show
            // what is new.
            for line in now_text.lines().filter(|it| !restored_lines.contains(*it)) {
                if can_be_read(line) {
                    text.push_str(line);
                    text.push('\n');
                }
            }
            let at = private_folder::quarantine_file(&layout, now, &path, &found.bytes).map_err(
                |source| VaultError::Io { action: "write", path: path.clone().into(), source },
            )?;
            note = format!("; the former file is kept as {at}");
        }
        DecisionFile::new(self.context)
            .replace(&text, found.map(|it| ContentHash::of(it.bytes)))?;
        Ok(format!("restored the decisions{note}"))
    }
}
