//! `memoird diff`: shows what changed between two versions of a file.

use std::process::ExitCode;

use serde::Serialize;

use super::{
    GlobalArgs,
    context::Call,
    error::CommandError,
    history::{Past, VersionLine},
    show::{before_all, unknown},
    ui::Ui,
};
use crate::recall::history::{self, History, Hunk, Point, Version};

/// Show what changed between two versions of a file
///
/// By default what the newest version changed; an edit that no run has taken notice of is the newest.
/// Exit code 0 whether or not there is a difference.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A path, a day, week, or month, or the name of a memory; it need not be there any more
    #[arg(value_name = "FILE")]
    file: String,
    /// The older version: its number, or a time at which it stood there
    #[arg(long, value_name = "ID|TIME")]
    from: Option<String>,
    /// The newer version; by default the newest
    #[arg(long, value_name = "ID|TIME")]
    to: Option<String>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Difference<'a> {
    path: &'a str,
    /// `None` where there is no version before.
    from: Option<VersionLine>,
    to: VersionLine,
    hunks: Vec<Hunk>,
}

pub(super) fn run(global: &GlobalArgs, args: &Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    let call = Call::read(global)?;
    let root = call.root(global)?;
    let past = Past::open(&call, &root)?;
    let history = past.find(&args.file)?;
    let named = |text: &String| -> Result<&Version, CommandError> {
        let point = Point::parse(text, root.settings.zone.name.0, call.now)?;
        history.find(point).ok_or_else(|| match point {
            Point::Version(id) => unknown_of(&history, id.0),
            Point::Time(_) => before_all(&past, &history),
        })
    };
    let from = args.from.as_ref().map(named).transpose()?;
    let to = match args.to.as_ref().map(named).transpose()? {
        Some(to) => to,
        // A history that was found has a newest version.
        None => history.versions.last().ok_or_else(|| before_all(&past, &history))?,
    };
    let from = from.or_else(|| history.before(to));
    let Some(from) = from else {
        // All of it would be new, which `show` says better.
        if ui.is_json() {
            let to = past.line(to, None);
            ui.json(&Difference { path: &history.path, from: None, to, hunks: Vec::new() });
        } else {
            ui.note(format!("{} has no older version to compare with", history.path));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let hunks = history::hunks(&past.text(&history, from)?, &past.text(&history, to)?);
    if ui.is_json() {
        let (from, to) = (Some(past.line(from, None)), past.line(to, None));
        ui.json(&Difference { path: &history.path, from, to, hunks });
    } else if hunks.is_empty() {
        ui.note(format!("{}: no difference between {from} and {to}", history.path));
    } else {
        ui.diff([&head(&past, &history, from), &head(&past, &history, to)], &hunks);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the line that names one side of a unified diff.
fn head(past: &Past<'_>, history: &History, version: &Version) -> String {
    let path = if version.is_absent() { "/dev/null" } else { &history.path };
    format!("{path}\t{version}, {}", past.clock(version.at))
}

fn unknown_of(history: &History, id: i64) -> CommandError {
    unknown(id).hint(format!("memoird history {}", history.path))
}
