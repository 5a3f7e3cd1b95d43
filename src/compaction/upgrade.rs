//! Writes all generated files in the present form, as one run: records in hidden files instead of comments and
//! frontmatter, and statements in the memory about their topic instead of a file each.
//!
//! A file of an older form is read as it is, so nothing needs this. What a person wrote in it stays theirs: the hashes
//! in the record are those of the old one.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::{
    adopt::digest_job,
    context::RunContext,
    error::{CompactionError, JobFailure},
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges},
        records,
    },
    memories::index_file::refresh_index,
    prepare::RunPreparation,
    reconcile::line_moves::CitationUpdater,
    snapshot::RootSnapshot,
    wisdom::bullets::{self, JoinedMemories},
};
use crate::{
    config::root::RootSettings,
    memory::{document::Summary, joined, period::Period, typed::TypedMemory, wisdom::WisdomFile},
    store::{
        db::lineage::jobs::RunId,
        fs::{
            layout::FileKind,
            vault::{Vault, VaultError},
        },
    },
};

/// The trigger of a run that writes files in the present form.
const UPGRADE_TRIGGER: &str = "upgrade";

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileUpgrade {
    /// It is written in the present form.
    Rewritten,
    /// It gets statements that had a file of their own.
    Extended,
    /// Its statement is in the memory about its topic, so it is removed.
    Joined,
}

/// The files that change, by path.
pub(crate) type UpgradePlan = Vec<(String, FileUpgrade)>;

/// Writes files in the present form.
pub(crate) struct Upgrader<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl FileUpgrade {
    /// Returns the name that JSON uses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rewritten => "rewritten",
            Self::Extended => "extended",
            Self::Joined => "joined",
        }
    }
}

impl<'c, 'a> Upgrader<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    /// Writes what is in an older form; returns the run, if there was anything, and the files.
    pub(crate) fn upgrade(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<(Option<RunId>, UpgradePlan), CompactionError> {
        let _lock = self.context.acquire_run_lock(&|| false)?;
        let view = RunPreparation::new(self.context).reconcile_locked(UPGRADE_TRIGGER, now)?;
        let RunContext { vault, settings, engine, .. } = *self.context;
        let plan = plan_upgrade(vault, &view, settings, engine.files_by_topic(), now)?;
        if plan.is_empty() {
            return Ok((None, plan));
        }
        let run = self.context.ensure_run(&mut None, UPGRADE_TRIGGER, now)?;
        let written = self.write(run, &plan, view, now);
        self.context.end_run(run)?;
        written.map(|()| (Some(run), plan)).map_err(|it| it.into_compaction_error("upgrade"))
    }

    fn write(
        &mut self,
        run: RunId,
        plan: &UpgradePlan,
        mut view: RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<(), JobFailure> {
        // Lines of a week move when its frontmatter does; what cites them is written after it.
        for tier in [FileKind::Weekly, FileKind::Monthly, FileKind::Memory, FileKind::Wisdom] {
            let layout = self.context.vault.layout();
            let is_of_tier = |it: &&(String, FileUpgrade)| {
                it.1 == FileUpgrade::Rewritten && layout.kind_of(&it.0) == Some(tier)
            };
            let mut files = Vec::new();
            let mut recorded = RecordedChanges::default();
            for (path, _) in plan.iter().filter(is_of_tier) {
                // A file that cites another one may have been written with that.
                let Some((current, text)) = in_present_form(self.context.vault, path)? else {
                    continue;
                };
                recorded.documents.extend(records::of_path(layout, path, &text));
                files.push(FileWrite {
                    path: path.clone(),
                    text: Some(text),
                    current: Some(current),
                });
            }
            if files.is_empty() {
                continue;
            }
            let citations = CitationUpdater::new(self.context);
            let nothing = BTreeSet::new();
            citations.update_citations_of_written(&view, &nothing, &mut files, &mut recorded)?;
            Journal::new(self.context).write_files(Some(run), None, &files, &recorded)?;
            CitationUpdater::new(self.context).mark_months_distilled(
                run,
                &view,
                &files,
                UPGRADE_TRIGGER,
            )?;
            view = self.context.take_snapshot(now)?;
        }
        if plan.iter().any(|it| it.1 == FileUpgrade::Joined) {
            let RunContext { vault, settings, .. } = *self.context;
            let JoinedMemories { files, recorded, .. } =
                join_memories(vault, &view, settings, now)?;
            Journal::new(self.context).write_files(Some(run), None, &files, &recorded)?;
            view = self.context.take_snapshot(now)?;
        }
        refresh_index(self.context, Some(run), &view)?;
        Ok(())
    }
}

/// Plans what changes; writes nothing. `by_topic` says whether the engine files statements by topic.
pub(crate) fn plan_upgrade(
    vault: &Vault,
    view: &RootSnapshot,
    settings: &RootSettings,
    by_topic: bool,
    now: DateTime<Utc>,
) -> Result<UpgradePlan, CompactionError> {
    let layout = vault.layout();
    let inventory = &view.inventory;
    let mut plan = UpgradePlan::new();
    let mut joined = BTreeSet::new();
    if by_topic && settings.settings.wisdom.has_digest() {
        let joins = join_memories(vault, view, settings, now)
            .map_err(|it| it.into_compaction_error("upgrade"))?;
        let files = joins.files.into_iter().filter(|_| !joins.joined.is_empty());
        plan.extend(files.map(|it| {
            let is_joined = joins.joined.contains(&it.path);
            (it.path, if is_joined { FileUpgrade::Joined } else { FileUpgrade::Extended })
        }));
        joined = joins.joined;
    }
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    let memories = inventory.memories.iter().map(|it| it.file_name.to_string_lossy());
    let paths = summaries
        .map(|it| it.path.clone())
        .chain(memories.map(|it| layout.typed_memory(&it)))
        .chain([layout.wisdom()]);
    for path in paths.filter(|it| !joined.contains(it)) {
        if in_present_form(vault, &path)?.is_some() {
            plan.push((path, FileUpgrade::Rewritten));
        }
    }
    plan.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(plan)
}

fn join_memories(
    vault: &Vault,
    view: &RootSnapshot,
    settings: &RootSettings,
    now: DateTime<Utc>,
) -> Result<JoinedMemories, JobFailure> {
    let job = digest_job(view, settings, now);
    let joined = job.map(|it| bullets::join_memories(vault, settings, view, &it)).transpose()?;
    Ok(joined.unwrap_or_default())
}

/// Returns the text of a file of an older form, as it is and in the present form.
fn in_present_form(vault: &Vault, path: &str) -> Result<Option<(String, String)>, VaultError> {
    let Some(text) = vault.read_text(path)? else { return Ok(None) };
    let name = path.rsplit('/').next().unwrap_or(path);
    let visible = joined::visible(&text);
    let is_older = records::holds_record(path, visible)
        || path == vault.layout().wisdom() && !WisdomFile::parse(visible).distilled().is_empty();
    let period = name.strip_suffix(".md").and_then(|it| it.parse::<Period>().ok());
    let new = match period {
        _ if !is_older => None,
        _ if path == vault.layout().wisdom() => Some(WisdomFile::parse(&text).print()),
        Some(period) => Summary::parse(period, &text).ok().map(|it| it.print()),
        None => TypedMemory::parse(name.as_ref(), &text).ok().map(|it| it.print()),
    };
    Ok(new.filter(|it| *it != text).map(|new| (text, new)))
}
