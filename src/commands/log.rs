//! `memoird log`: appends an entry to today's log.

use std::{io::Read as _, process::ExitCode};

use super::{GlobalArgs, ui::Ui};
use crate::operations::{
    error::{CommandError, CommandResult},
    log::{AppendedEntry, append_entry, update_index},
    workspace::Invocation,
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
        let AppendedEntry { path, line, .. } = &logged;
        ui.data(format_args!("{path}:{line}"));
    }
    if let Some(why) = logged.waits() {
        ui.warn(format!("kept on this machine, and not in the store yet: {why}"));
        ui.note("the next entry publishes it, too, or: memoird bundle push");
    }
    update_index(&call, &root);
    Ok(ExitCode::SUCCESS)
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
