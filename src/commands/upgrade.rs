//! `memoird upgrade`: writes the generated files of an older form in the present one.

use std::{fs, path::PathBuf, process::ExitCode};

use serde::Serialize;

use super::{GlobalArgs, ui::Ui};
use crate::{
    compaction::{
        self,
        upgrade::{self, FileUpgrade, UpgradePlan},
    },
    config::{edit, root::ROOT_FILE_NAME},
    operations::{
        error::{CommandError, CommandResult},
        format::counted,
        workspace::{Invocation, MemoryRoot, require_writer},
    },
    store::{
        db::lineage::{Lineage, jobs::RunId},
        fs::vault::{VaultError, settings_files},
    },
};

/// Write the generated files of an older version in the present form
///
/// Moves what memoird records from comments and frontmatter to hidden files, and memories of one statement into the
/// file about their topic. Your edits stay. Older files are read as they are, so this can wait. It is one run, which
/// `memoird undo` reverts. It also notes the format in `memoird.yaml`, so that an older memoird refuses the folder.
#[derive(Debug, clap::Args)]
pub(super) struct UpgradeArgs {
    /// Show what would be written, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

/// What `--json` prints: `schema/upgrade.schema.json`.
#[derive(Serialize)]
struct UpgradeReport {
    dry_run: bool,
    /// The run, if it wrote generated files.
    run: Option<i64>,
    files: Vec<UpgradedEntry>,
    /// Whether `memoird.yaml` did not name the format.
    format_noted: bool,
}

#[derive(Serialize)]
struct UpgradedEntry {
    path: String,
    change: &'static str,
}

pub(super) fn run(global: &GlobalArgs, args: &UpgradeArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root_to_write(global, ui)?;
    root.require_memory_folder()?;
    let engine = root.engine(&call)?;
    let format = format_edit(&root)?;
    let plan = {
        let lineage = Lineage::open_existing(&root.vault.layout().database())?;
        let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
        let by_topic = engine.files_by_topic();
        upgrade::plan_upgrade(&root.vault, &view, &root.settings, by_topic, call.now)?
    };
    if plan.is_empty() && format.is_none() {
        return Ok(show_nothing(args, ui));
    }
    let is_asked_for = args.dry_run || !args.yes || !ui.is_quiet();
    if is_asked_for && !ui.is_json() {
        print_plan(&plan, format.is_some(), ui);
    }
    if args.dry_run {
        finish(args, None, plan, format.is_some(), ui);
        return Ok(ExitCode::SUCCESS);
    }
    require_writer(&call, &root)?;
    let question = format!("Write {}?", counted(plan.len().max(1), "file", "files"));
    if !args.yes && !ui.confirm_or(question, confirmation_required)? {
        return Ok(ExitCode::SUCCESS);
    }
    // First, so that no older version takes a half upgraded folder for one of its own; this one reads both forms.
    let format_noted = format.is_some();
    if let Some((file, text)) = format {
        settings_files::write_settings(&file, &text)?;
    }
    let (run, plan) = if plan.is_empty() {
        (None, plan)
    } else {
        let mut lineage = root.lineage()?;
        let clock = call.clock();
        root.compactor(&mut lineage, engine.as_ref(), &clock).upgrade(call.now)?
    };
    finish(args, run, plan, format_noted, ui);
    Ok(ExitCode::SUCCESS)
}

/// Returns `memoird.yaml` with the present format, if there is such a file and it does not have it. One that cannot
/// be edited by lines stays.
fn format_edit(root: &MemoryRoot) -> CommandResult<Option<(PathBuf, String)>> {
    let file = root.settings.path.join(ROOT_FILE_NAME);
    if !file.is_file() {
        return Ok(None);
    }
    let read = |source| VaultError::Io { action: "read", path: file.clone(), source };
    let text = fs::read_to_string(&file).map_err(read)?;
    let new = edit::set_format(&text, &file).ok().filter(|it| *it != text);
    Ok(new.map(|it| (file, it)))
}

fn confirmation_required() -> CommandError {
    CommandError::usage("upgrading needs confirmation")
        .hint("memoird upgrade --dry-run")
        .hint("memoird upgrade --yes")
}

fn show_nothing(args: &UpgradeArgs, ui: &Ui) -> ExitCode {
    if ui.is_json() {
        finish(args, None, UpgradePlan::new(), false, ui);
    } else {
        ui.success("nothing to do: all files have the present form");
    }
    ExitCode::SUCCESS
}

fn print_plan(plan: &UpgradePlan, notes_format: bool, ui: &Ui) {
    for (path, change) in plan {
        let what = match change {
            FileUpgrade::Rewritten => "is written in the present form",
            FileUpgrade::Extended => "gets statements that had a file of their own",
            FileUpgrade::Joined => "is removed: its statement is in the memory about its topic",
        };
        ui.data(format!("{path}: {what}"));
    }
    if notes_format {
        ui.data(format!(
            "{ROOT_FILE_NAME}: names the format, so that an older memoird refuses the folder"
        ));
    }
}

fn finish(args: &UpgradeArgs, run: Option<RunId>, plan: UpgradePlan, format_noted: bool, ui: &Ui) {
    if ui.is_json() {
        let files = plan.into_iter();
        let files = files.map(|(path, it)| UpgradedEntry { path, change: it.name() }).collect();
        let run = run.map(|it| it.0);
        ui.json(&UpgradeReport { dry_run: args.dry_run, run, files, format_noted });
    } else if args.dry_run {
        ui.note("nothing was changed");
    } else if let Some(run) = run {
        ui.success(format!("run {run} upgraded {}", counted(plan.len(), "file", "files")));
        ui.note(format!("`memoird undo {run}` reverts this, but not `format` in {ROOT_FILE_NAME}"));
    } else {
        ui.success(format!("{ROOT_FILE_NAME} names the format"));
    }
}
