//! `memoird rebuild`: makes the database anew from the files.

use std::process::ExitCode;

use serde::Serialize;

use super::{GlobalArgs, compact::refuse_reader, context::Call, error::CommandError, ui::Ui};
use crate::{
    compaction::rebuild::{self, Look, Mended, Opened},
    recall::search,
    store::postings::Postings,
};

/// Make the database anew from the files
///
/// The files say where each line comes from, so nothing is lost but receipts, and those only where
/// the database is missing or damaged. A damaged one is moved aside, never deleted.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    /// Generated files.
    documents: u32,
    /// Bullets, entries, and typed memories in them.
    items: u32,
    /// Ranges of log lines that they rest on.
    sources: u32,
    logs: u32,
    /// Logs whose extraction is known to be done.
    extracted: usize,
    /// Where the damaged database is now, relative to the root.
    set_aside: Option<String>,
    /// Whether earlier receipts are still there.
    receipts_kept: bool,
}

pub(super) fn run(global: &GlobalArgs, _args: Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    let call = Call::read(global)?;
    let root = call.root(global)?;
    refuse_reader(&call, &root)?;
    let engine = root.engine(&call)?;
    let now = call.now;
    let Opened { mut lineage, is_new, mending } = rebuild::open(&root.vault, Look::Close, now)?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    let set_aside = mending.as_ref().and_then(|it| match &it.mended {
        Mended::SetAside { path, .. } => {
            let relative = path.strip_prefix(root.vault.layout().root()).unwrap_or(path.as_path());
            Some(relative.display().to_string())
        }
        Mended::Missing => None,
    });
    let rebuilt = match mending {
        Some(mending) => compactor.mend(mending, now),
        None => compactor.rebuild(now),
    }?;
    Postings::remove(&root.vault.layout().search_index());
    search::refresh(&root.vault)?;
    let report = Report {
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

fn show(report: &Report, ui: &Ui) {
    if ui.is_json() {
        ui.json(report);
        return;
    }
    if let Some(path) = &report.set_aside {
        ui.warn(format!("the database was damaged; it is kept as {path}"));
    }
    let Report { documents, items, sources, logs, .. } = report;
    ui.good(format!("recorded {documents} files: {items} items, {sources} sources, {logs} logs"));
    if !report.receipts_kept {
        ui.note("earlier receipts are not in the files and begin anew");
    }
}
