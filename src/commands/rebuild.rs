//! `memoird rebuild`: rebuilds the database from the files.

use std::process::ExitCode;

use serde::Serialize;

use super::{
    GlobalArgs, compact::require_writer, error::CommandResult, ui::Ui, workspace::Invocation,
};
use crate::{
    compaction::integrity::rebuild::{self, CheckDepth, DatabaseRecovery, OpenedDatabase},
    recall::search,
    store::db::search_index::PostingsDb,
};

/// Rebuild the database from the files
///
/// The files record the source of each line, so only receipts can be lost, and only if the database is
/// missing or damaged. A damaged database is moved aside, never deleted.
#[derive(Debug, clap::Args)]
pub(super) struct RebuildArgs {}

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
}

pub(super) fn run(global: &GlobalArgs, _args: RebuildArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root(global)?;
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
    };
    show(&report, ui);
    Ok(ExitCode::SUCCESS)
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
}
