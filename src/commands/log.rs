//! `memoird log`: appends an entry to today's log.
//!
//! `review edit` uses the same [`append_entry`]. It holds the write lock only for one append, so that
//! it works while the daemon and other agents run.

use std::{io::Read as _, process::ExitCode};

use serde::Serialize;

use super::{GlobalArgs, ui::Ui};
use crate::{
    memory::{
        address::Stem,
        log::{format_entry, new_log_header},
    },
    operations::{
        error::{CommandError, CommandResult},
        workspace::{Invocation, MemoryRoot},
    },
    recall::search,
    store::fs::{
        lock::{DaemonLock, WriteLock},
        vault::{FILE_BYTES_MAX, VaultError},
    },
};

/// The longest entry. Longer text belongs in its own file.
const ENTRY_BYTES_MAX: u64 = 1024 * 1024;

/// Append an entry to today's log
#[derive(Debug, clap::Args)]
pub(super) struct LogArgs {
    /// The text of the entry; `-` reads it from stdin
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
}

/// What `--json` prints.
#[derive(Serialize)]
pub(crate) struct AppendedEntry {
    pub(crate) path: String,
    pub(crate) line: usize,
}

pub(super) fn run(global: &GlobalArgs, args: &LogArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root_to_write(global, ui)?;
    let text = match &args.text[..] {
        [dash] if dash == "-" => read_stdin()?,
        words => words.join(" "),
    };
    let logged = append_entry(&call, &root, &text)?;
    if ui.is_json() {
        ui.json(&logged);
    } else {
        let AppendedEntry { path, line } = logged;
        ui.data(format_args!("{path}:{line}"));
    }
    update_index(&call, &root);
    Ok(ExitCode::SUCCESS)
}

/// Appends an entry to today's log and returns its line.
pub(crate) fn append_entry(
    call: &Invocation,
    root: &MemoryRoot,
    text: &str,
) -> CommandResult<AppendedEntry> {
    let now = call.now.with_timezone(&root.settings.zone.name.0);
    let date = now.date_naive();
    let Some(entry) = format_entry(now.time(), text) else {
        return Err(CommandError::usage("the entry is empty")
            .hint("memoird log \"Chose SQLite, because one file is easier to back up\"")
            .hint("`memoird log -` reads stdin"));
    };
    let path = root.vault.layout().source_path(&Stem::day(date));
    let lock = WriteLock::acquire(root.vault.layout().root())?;
    // Reading first refuses links and files that are not text.
    let before = root.vault.read_unmerged_text(&path)?;
    if (before.map_or(0, |it| it.len()) + entry.len()) as u64 > FILE_BYTES_MAX {
        return Err(VaultError::TooLarge { path: path.into() }.into());
    }
    root.vault.append(&lock, &path, &new_log_header(date), &entry, false)?;
    drop(lock);
    let text = root.vault.read_unmerged_text(&path)?;
    let line = text.as_deref().and_then(|text| entry_line(text, &entry));
    let line = line.ok_or_else(|| VaultError::ReadBackMismatch { path: (&path[..]).into() })?;
    Ok(AppendedEntry { path, line })
}

/// Adds today's log to the search index, if there is one and no daemon does it. Runs after the answer is
/// printed.
fn update_index(call: &Invocation, root: &MemoryRoot) {
    let holder = DaemonLock::holder(&root.vault.layout().daemon_lock());
    if matches!(holder, Ok(None)) {
        let today = call.now.with_timezone(&root.settings.zone.name.0).date_naive();
        // If this fails, the next search updates the index.
        drop(search::update_index_log(&root.vault, &Stem::day(today), &root.rules));
    }
}

fn read_stdin() -> CommandResult<String> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(ENTRY_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| CommandError::data(format!("cannot read stdin: {e}")))?;
    if bytes.len() as u64 > ENTRY_BYTES_MAX {
        let what = format!("the entry on stdin is longer than {} KiB", ENTRY_BYTES_MAX / 1024);
        return Err(CommandError::data(what)
            .hint("save it as a file next to the logs, and log one line about it"));
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        CommandError::data(format!("stdin is not UTF-8 at byte {at}"))
    })
}

/// Returns the line, from 1, on which the last `entry` of a log begins.
fn entry_line(text: &str, entry: &str) -> Option<usize> {
    let at = text.rfind(entry)?;
    Some(text[..at].matches('\n').count() + 1)
}
