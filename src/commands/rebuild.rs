//! `memoird rebuild`: rebuilds the database from the files, and takes back files whose records are lost.

use std::process::ExitCode;

use serde::Serialize;

use super::{GlobalArgs, ui::Ui};
use crate::{
    compaction::{
        self,
        adopt::{self, AdoptionPlan},
        integrity::rebuild::{self, CheckDepth, DatabaseRecovery, OpenedDatabase},
    },
    operations::{
        error::CommandResult,
        format::counted,
        workspace::{Invocation, MemoryRoot, require_writer},
    },
    recall::search,
    store::db::{
        lineage::{Lineage, jobs::RunId},
        search_index::PostingsDb,
    },
};

/// Rebuild the database from the files
///
/// The files record the source of each line, so only receipts can be lost, and only if the database is
/// missing or damaged. A damaged database is moved aside, never deleted.
///
/// If the hidden files are lost as well, everything in the files is yours. With --adopt, items whose words are
/// those of the log lines that they come from become generated again; the rest stays yours. Only hidden files are
/// written, and `memoird undo` reverts it.
#[derive(Debug, clap::Args)]
pub(super) struct RebuildArgs {
    /// Take back files whose hidden file is lost as well
    #[arg(long)]
    adopt: bool,
    /// Show what --adopt would take back and what not, and change nothing
    #[arg(long, requires = "adopt")]
    dry_run: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct RebuildReport {
    /// Generated files.
    documents: u32,
    /// Bullets, entries, and typed memories in them.
    items: u32,
    /// Ranges of log lines that the items cite.
    sources: u32,
    logs: u32,
    /// Logs whose extraction is known to be done.
    extracted: usize,
    /// The new path of the damaged database, relative to the root.
    set_aside: Option<String>,
    receipts_kept: bool,
    /// What `--adopt` took back.
    #[serde(skip_serializing_if = "Option::is_none")]
    adoption: Option<AdoptionReport>,
}

/// What `--json` prints with `--dry-run`.
#[derive(Serialize)]
struct AdoptionPreview {
    adoption: AdoptionReport,
}

/// What `--adopt` did, or would do.
#[derive(Serialize)]
struct AdoptionReport {
    dry_run: bool,
    /// The run, if anything was written.
    run: Option<i64>,
    adopted: Vec<AdoptedEntry>,
    left: Vec<LeftEntry>,
}

#[derive(Serialize)]
struct AdoptedEntry {
    path: String,
    /// Its items that are generated again.
    items: usize,
    /// Its items that stay the user's.
    user_items: usize,
}

#[derive(Serialize)]
struct LeftEntry {
    path: String,
    reason: &'static str,
}

pub(super) fn run(global: &GlobalArgs, args: &RebuildArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root_to_write(global, ui)?;
    if args.dry_run {
        return preview_adoption(&call, &root, ui);
    }
    require_writer(&call, &root)?;
    let engine = root.engine(&call)?;
    let now = call.now;
    let OpenedDatabase { mut lineage, is_new, pending_rebuild } =
        rebuild::open(&root.vault, CheckDepth::Full, now)?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    let set_aside = pending_rebuild.as_ref().and_then(|it| match &it.recovery {
        DatabaseRecovery::SetAside { path, .. } => {
            let relative = path.strip_prefix(root.vault.layout().root()).unwrap_or(path.as_path());
            Some(relative.display().to_string())
        }
        DatabaseRecovery::Missing => None,
    });
    let rebuilt = match pending_rebuild {
        Some(pending) => compactor.rebuild_recovered(pending, now),
        None => compactor.rebuild(now),
    }?;
    let adoption = args.adopt.then(|| compactor.adopt(now)).transpose()?;
    PostingsDb::remove(&root.vault.layout().search_index());
    search::refresh_index(&root.vault)?;
    let report = RebuildReport {
        documents: rebuilt.counts.documents.values().sum(),
        items: rebuilt.counts.items,
        sources: rebuilt.counts.derivations,
        logs: rebuilt.counts.logs,
        extracted: rebuilt.extracted,
        set_aside,
        receipts_kept: !is_new,
        adoption: adoption.map(|(run, plan)| AdoptionReport::of(run, false, plan)),
    };
    show(&report, ui);
    Ok(ExitCode::SUCCESS)
}

/// Shows what `--adopt` would do; writes nothing.
fn preview_adoption(call: &Invocation, root: &MemoryRoot, ui: &Ui) -> CommandResult {
    root.require_memory_folder()?;
    // A damaged database brings nothing back.
    let lineage = Lineage::open_existing(&root.vault.layout().database()).ok().flatten();
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    let plan =
        adopt::plan_adoption(&root.vault, lineage.as_ref(), &view, &root.settings, call.now)?;
    let report = AdoptionReport::of(None, true, plan);
    if ui.is_json() {
        ui.json(&AdoptionPreview { adoption: report });
    } else {
        report.show(ui);
        ui.note("nothing was changed");
    }
    Ok(ExitCode::SUCCESS)
}

impl AdoptionReport {
    fn of(run: Option<RunId>, dry_run: bool, plan: AdoptionPlan) -> Self {
        let adopted = plan.adopted.into_iter();
        let left = plan.left.into_iter();
        Self {
            dry_run,
            run: run.map(|it| it.0),
            adopted: adopted
                .map(|it| AdoptedEntry { path: it.path, items: it.ours, user_items: it.users })
                .collect(),
            left: left.map(|it| LeftEntry { path: it.path, reason: it.reason }).collect(),
        }
    }

    fn show(&self, ui: &Ui) {
        for AdoptedEntry { path, items, user_items } in &self.adopted {
            let yours = match user_items {
                0 => String::new(),
                1 => ", 1 stays yours".to_owned(),
                count => format!(", {count} stay yours"),
            };
            ui.data(format!("{path}: {}{yours}", counted(*items, "item", "items")));
        }
        for LeftEntry { path, reason } in &self.left {
            ui.data(format!("{path}: stays yours, because {reason}"));
        }
        if self.adopted.is_empty() && self.left.is_empty() {
            ui.note("no file lacks its record");
        }
    }
}

fn show(report: &RebuildReport, ui: &Ui) {
    if ui.is_json() {
        ui.json(report);
        return;
    }
    if let Some(path) = &report.set_aside {
        ui.warn(format!("the database was damaged; it was moved to {path}"));
    }
    let RebuildReport { documents, items, sources, logs, .. } = report;
    ui.success(format!(
        "recorded {documents} files: {items} items, {sources} sources, {logs} logs"
    ));
    if !report.receipts_kept {
        ui.note("earlier receipts are lost, because the files do not contain them");
    }
    let Some(adoption) = &report.adoption else { return };
    if !ui.is_quiet() {
        adoption.show(ui);
    }
    if let Some(run) = adoption.run {
        let count = counted(adoption.adopted.len(), "file", "files");
        ui.success(format!("run {run} took back {count}"));
        ui.note(format!("`memoird undo {run}` reverts this"));
    }
}
