//! Takes back generated files whose records are lost, together with the database.
//!
//! Without a record everything in a file is the person's. Here an item becomes ours again if it has our form and the
//! lines that it cites state its words (see [`stated`]), or if it is what is chosen from the logs today; everything
//! else stays the person's. So does a file that a person wrote beside an intact database: only one that was there when
//! the database was created can have lost its record with an earlier one. No byte of a visible file changes: only the
//! hidden files are written.
//!
//! - [`stated`]: whether lines state the words of an item; pure.
//! - [`files`]: which items of one file are ours, and its record.

mod files;
mod stated;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use self::{files::FileAdopter, stated::LineFinder};
use super::{
    context::RunContext,
    error::CompactionError,
    integrity::rebuild::has_no_records,
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges},
        hidden_records, records,
    },
    plan::{CompactionJob, Selection},
    prepare::RunPreparation,
    reconcile::source_match::LogsByStem,
    snapshot::{self, RootSnapshot, plan_snapshot},
    wisdom::bullets::{self, RedraftedDigest},
};
use crate::{
    config::root::RootSettings,
    engine::{Engine as _, ExtractInput, MemoryDraft, extractive::Extractive},
    memory::{
        address::{Citation, Stem},
        hash::ContentHash,
        item::Tier,
        period::{Grain, Period},
        typed::{self, MemoryType, TypedMemory},
    },
    privacy::{self, PrivacyRules, SanitizedLog},
    store::{
        db::lineage::{
            Lineage,
            history::{VersionCause, VersionRow},
            jobs::RunId,
        },
        fs::vault::Vault,
    },
};

/// The trigger of a run that takes files back.
const ADOPT_TRIGGER: &str = "adopt";

/// What is taken back, and what is not.
#[derive(Debug, Default)]
pub(crate) struct AdoptionPlan {
    /// By path.
    pub(crate) adopted: Vec<AdoptedFile>,
    /// Files under our names that stay the person's, by path.
    pub(crate) left: Vec<LeftFile>,
    /// Logs that were extracted when the adopted weeks were written.
    extracted: Vec<(Stem, ContentHash)>,
}

/// A file that is ours again.
#[derive(Debug)]
pub(crate) struct AdoptedFile {
    /// Relative to the root.
    pub(crate) path: String,
    /// How many of its items are ours.
    pub(crate) ours: usize,
    /// How many are the person's.
    pub(crate) users: usize,
    /// The file with its record.
    text: String,
    /// The file as it is.
    current: String,
}

/// A file that stays the person's.
#[derive(Debug)]
pub(crate) struct LeftFile {
    /// Relative to the root.
    pub(crate) path: String,
    /// Why.
    pub(crate) reason: &'static str,
}

/// Takes back files whose records are lost.
pub(crate) struct Adopter<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> Adopter<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    /// Takes back what can be, as one run; returns its number, if there was anything.
    pub(crate) fn adopt(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<(Option<RunId>, AdoptionPlan), CompactionError> {
        let _lock = self.context.acquire_run_lock(&|| false)?;
        let view = RunPreparation::new(self.context).reconcile_locked(ADOPT_TRIGGER, now)?;
        let RunContext { vault, settings, .. } = *self.context;
        let plan = plan_adoption(vault, Some(&*self.context.lineage), &view, settings, now)?;
        if plan.adopted.is_empty() {
            return Ok((None, plan));
        }
        let files: Vec<FileWrite> = plan.adopted.iter().map(AdoptedFile::to_write).collect();
        let layout = vault.layout();
        let documents = plan.adopted.iter();
        let recorded = RecordedChanges {
            documents: documents
                .filter_map(|it| records::of_path(layout, &it.path, &it.text))
                .collect(),
            extracted: plan.extracted.clone(),
            ..RecordedChanges::default()
        };
        let run = self.context.ensure_run(&mut None, ADOPT_TRIGGER, now)?;
        let written = Journal::new(self.context).write_files(Some(run), None, &files, &recorded);
        self.context.end_run(run)?;
        written.map(|()| (Some(run), plan)).map_err(|it| it.into_compaction_error(ADOPT_TRIGGER))
    }
}

impl AdoptedFile {
    fn to_write(&self) -> FileWrite {
        FileWrite {
            path: self.path.clone(),
            text: Some(self.text.clone()),
            current: Some(self.current.clone()),
        }
    }
}

/// Plans what is taken back; writes nothing. What the database brings back by itself is left out.
pub(crate) fn plan_adoption(
    vault: &Vault,
    lineage: Option<&Lineage>,
    view: &RootSnapshot,
    settings: &RootSettings,
    now: DateTime<Utc>,
) -> Result<AdoptionPlan, CompactionError> {
    let mut plan = AdoptionPlan::default();
    let mut lost: BTreeMap<String, String> = BTreeMap::new();
    // What a new database would note as lost.
    let is_new = lineage.map_or(Ok(true), has_no_records)?;
    let noted = if is_new { snapshot::lost_files(vault, view)? } else { Vec::new() };
    for path in snapshot::paths_without_record(vault, view) {
        let text = vault.read_text(&path)?;
        let restored = lineage.map(|it| hidden_records::lost_record(it, &path, Ok(text.clone())));
        let (Some(text), None) = (text, restored.transpose()?.flatten()) else { continue };
        let is_noted = |it: &(String, String)| it.0 == path && it.1 == text;
        let was_found = || lineage.map_or(Ok(false), |it| was_found_by(it, &path, &text));
        if noted.iter().any(is_noted) || was_found()? {
            lost.insert(path, text);
        } else {
            plan.left.push(LeftFile { path, reason: "nothing shows that its record was lost" });
        }
    }
    if lost.is_empty() {
        return Ok(plan);
    }
    let inventory = &view.inventory;
    let mut logs = LogsByStem::new();
    for stem in inventory.logs.keys() {
        let log = vault.read_log(stem)?;
        logs.insert(stem.clone(), log.map(|it| privacy::sanitize(&it, &inventory.rules)));
    }
    let uncited = lost.values().flat_map(|it| uncited_texts(it));
    let finder = LineFinder::new(uncited, logs.values().flatten());
    let redrafted = redraft(vault, view, settings, now)?;
    let is_single = |it: &TypedMemory| it.recorded_body.is_none() && !it.is_about_topic();
    let extracted = if inventory.memories.iter().any(is_single) {
        extract_again(logs.values().flatten(), &inventory.rules)
    } else {
        BTreeMap::new()
    };
    let adopter = FileAdopter { vault, view, settings, now, logs, finder, redrafted, extracted };
    for (path, current) in lost {
        match adopter.adopt(&path, &current) {
            Ok(found) => {
                plan.extracted.extend(found.extracted);
                plan.adopted.push(AdoptedFile {
                    path,
                    ours: found.ours,
                    users: found.users,
                    text: found.text,
                    current,
                });
            }
            Err(reason) => plan.left.push(LeftFile { path, reason }),
        }
    }
    plan.left.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(plan)
}

/// Returns whether a database found a file without a record when it was created, as it is.
fn was_found_by(lineage: &Lineage, path: &str, text: &str) -> Result<bool, CompactionError> {
    let hash = Some(ContentHash::of(text));
    let is_found = |it: &VersionRow| it.cause == VersionCause::ReadByRun && it.hash == hash;
    Ok(lineage.versions_of(path)?.iter().any(is_found))
}

/// Returns the words of a file that may have no citation: its lines, and those of a memory together.
fn uncited_texts(text: &str) -> Vec<String> {
    let lines = text.lines().map(|it| it.trim_start_matches("- ").replace("**", ""));
    let memories = typed::statements_of_body(text).into_iter().map(|it| it.text);
    lines.chain(memories).collect()
}

/// Extracts the memories of all days without a model.
fn extract_again<'l>(
    logs: impl Iterator<Item = &'l SanitizedLog>,
    rules: &PrivacyRules,
) -> BTreeMap<(MemoryType, String), Citation> {
    let drafts = logs.flat_map(|log| {
        let made = Extractive.extract(&ExtractInput::unchecked(log, &[]));
        made.map(|it| it.drafts).unwrap_or_default()
    });
    let body = |it: &MemoryDraft| {
        let (why, how) = (it.why.as_deref(), it.how_to_apply.as_deref());
        rules.sanitize_output(&typed::format_body(&it.statement, why, how))
    };
    drafts.map(|it| ((it.kind, body(&it)), it.citation)).collect()
}

/// Chooses the bullets of `WISDOM.md` and the statements of memories as they are chosen from the logs today.
fn redraft(
    vault: &Vault,
    view: &RootSnapshot,
    settings: &RootSettings,
    now: DateTime<Utc>,
) -> Result<RedraftedDigest, CompactionError> {
    let job = digest_job(view, settings, now);
    let made = job.map(|job| bullets::redraft(vault, settings, view, &job)).transpose()?;
    Ok(made.unwrap_or_default())
}

/// Returns the job that chooses from the newest logs, whether it is due or not.
pub(super) fn digest_job(
    view: &RootSnapshot,
    settings: &RootSettings,
    now: DateTime<Utc>,
) -> Option<CompactionJob> {
    let today = now.with_timezone(&settings.zone.name.0).date_naive();
    let newest = view.inventory.newest_day(today)?;
    let period = Some(Period::containing(Grain::Day, newest));
    let selection =
        Selection { tiers: vec![Tier::Wisdom], period, force: true, ..Selection::default() };
    let jobs = plan_snapshot(view, settings, Extractive.id(), &selection, now).jobs;
    jobs.into_iter().find(CompactionJob::is_digest)
}
