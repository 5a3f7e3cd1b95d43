//! `memoird show`: prints a file of the memory folder, as it stands or as it stood.

use std::process::ExitCode;

use serde::Serialize;

use super::{
    GlobalArgs,
    context::{self, Call, Root},
    error::{CommandError, Kind},
    history::{BEGINS, Past, VersionLine},
    ui::Ui,
};
use crate::{
    recall::{
        handed::Handed,
        history::{self, History, Version},
    },
    store::{layout::FileKind, lineage::history::VersionId},
};

/// Print a file of the memory folder, as it stands or as it stood
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A path, a day, week, or month (2026-04-02, 2026-W14, 2026-04), or the name of a memory
    #[arg(value_name = "FILE", required_unless_present = "version")]
    file: Option<String>,
    /// As it stood then: 2026-04-02 (at the end of the day), "2026-04-02 14:00", "3 days ago"
    #[arg(long, value_name = "TIME", requires = "file")]
    as_of: Option<String>,
    /// The version with this number; `memoird history FILE` lists them
    #[arg(long, value_name = "ID", conflicts_with = "as_of")]
    version: Option<i64>,
    /// Show it byte for byte, with the secrets and the held lines in it: for people alone
    #[arg(long)]
    raw: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Shown<'a> {
    path: &'a str,
    kind: Option<&'static str>,
    #[serde(flatten)]
    handed: Handed,
    /// Which version it is, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<VersionLine>,
}

pub(super) fn run(global: &GlobalArgs, args: &Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    let call = Call::read(global)?;
    let root = call.root(global)?;
    // `--json` belongs to all verbs, so that the parser cannot tell.
    if args.raw && ui.is_json() {
        let what = "--raw is for people, and not for --json";
        return Err(CommandError::new(Kind::Usage, what).hint("leave one of the two out"));
    }
    match args {
        Args { version: Some(id), file, .. } => {
            let past = Past::open(&call, &root)?;
            let history = numbered(&past, VersionId(*id), file.as_deref())?;
            let version = history.versions.iter().find(|it| it.id == Some(VersionId(*id)));
            let version = version.ok_or_else(|| unknown(*id))?;
            show(&past, &root, &history, version, args.raw, ui)?;
        }
        Args { as_of: Some(time), file: Some(file), .. } => {
            let past = Past::open(&call, &root)?;
            let time = history::parse_time(time, root.settings.zone.name.0, call.now);
            let again = || format!("memoird show {file} --as-of \"1 day ago\"");
            let time = time.map_err(|error| CommandError::new(Kind::Usage, error).hint(again()))?;
            let history = past.find(file)?;
            let version = history.at(time).ok_or_else(|| before_all(&past, &history))?;
            show(&past, &root, &history, version, args.raw, ui)?;
        }
        Args { file: Some(file), .. } => show_present(&call, &root, file, args.raw, ui)?,
        // clap asks for one of them.
        Args { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a file as it may be seen, as it stands or as it stood at a time, with its path and the time
/// since when it stood so.
pub(crate) fn handed_at(
    call: &Call,
    root: &Root,
    file: &str,
    as_of: Option<&str>,
) -> Result<(String, Handed, Option<String>), CommandError> {
    let Some(time) = as_of else {
        let (path, _) = root.find(&call.around, file)?;
        let bytes = root.vault.read(&path)?.ok_or_else(|| context::missing(&path))?.bytes;
        root.vault.read_text(&path)?;
        let handed = root.hand(&path, &bytes);
        return Ok((path, handed, None));
    };
    let past = Past::open(call, root)?;
    let time = history::parse_time(time, root.settings.zone.name.0, call.now)?;
    let history = past.find(file)?;
    let version = history.at(time).ok_or_else(|| before_all(&past, &history))?;
    let bytes = past.bytes(&history, version)?.ok_or_else(|| absent(&past, &history, version))?;
    let handed = root.hand(&history.path, &bytes);
    Ok((history.path.clone(), handed, Some(past.rfc3339(version.at))))
}

fn show_present(
    call: &Call,
    root: &Root,
    file: &str,
    raw: bool,
    ui: &Ui,
) -> Result<(), CommandError> {
    let (path, kind) = root.find(&call.around, file)?;
    let bytes = root.vault.read(&path)?.ok_or_else(|| context::missing(&path))?.bytes;
    if ui.is_json() {
        // What is no text cannot be shown in JSON, whatever may be seen of it.
        root.vault.read_text(&path)?;
        let handed = root.hand(&path, &bytes);
        ui.json(&Shown { path: &path, kind: Some(kind.name()), handed, version: None });
    } else if raw {
        ui.file(&bytes);
    } else {
        ui.file(root.hand(&path, &bytes).text.as_bytes());
    }
    Ok(())
}

fn show(
    past: &Past<'_>,
    root: &Root,
    history: &History,
    version: &Version,
    raw: bool,
    ui: &Ui,
) -> Result<(), CommandError> {
    let Some(bytes) = past.bytes(history, version)? else {
        return Err(absent(past, history, version));
    };
    if ui.is_json() {
        ui.json(&Shown {
            path: &history.path,
            kind: root.vault.layout().kind_of(&history.path).map(FileKind::name),
            handed: root.hand(&history.path, &bytes),
            version: Some(past.line(version, None)),
        });
        return Ok(());
    }
    ui.detail(format!(
        "{}, {version}, since {}: {}",
        history.path,
        past.clock(version.at),
        history.cause(version)
    ));
    if raw {
        ui.file(&bytes);
    } else {
        ui.file(root.hand(&history.path, &bytes).text.as_bytes());
    }
    Ok(())
}

/// Returns the history of the file that a version is of; a file that is named too has to be that.
fn numbered(past: &Past<'_>, id: VersionId, file: Option<&str>) -> Result<History, CommandError> {
    let row = past.lineage().map(|it| it.version(id)).transpose()?.flatten();
    let path = row.ok_or_else(|| unknown(id.0))?.path;
    if let Some(file) = file {
        let named = past.find(file)?.path;
        if named != path {
            let what = format!("version {} is one of `{path}`, not of `{named}`", id.0);
            return Err(CommandError::new(Kind::Usage, what)
                .hint(format!("memoird show --version {}", id.0))
                .hint(format!("memoird history {named}")));
        }
    }
    past.of(&path)
}

pub(super) fn unknown(id: i64) -> CommandError {
    CommandError::new(Kind::Usage, format!("there is no version {id}"))
        .hint("`memoird history FILE` lists the versions of a file")
}

/// The time lies before anything that is known.
pub(super) fn before_all(past: &Past<'_>, history: &History) -> CommandError {
    let path = &history.path;
    match history.versions.first() {
        Some(first) if first.id.is_some() => {
            let what = format!(
                "nothing is known of `{path}` at that time: its history begins on {} ({first})",
                past.clock(first.at)
            );
            CommandError::new(Kind::Usage, what).hint(format!("memoird history {path}"))
        }
        _ => {
            CommandError::new(Kind::Usage, format!("there is no version of `{path}` yet: {BEGINS}"))
                .hint(format!("memoird show {path}"))
        }
    }
}

/// Nothing stood there then.
fn absent(past: &Past<'_>, history: &History, version: &Version) -> CommandError {
    let path = &history.path;
    let what = format!(
        "`{path}` was not there then: {} on {}{}",
        history.cause(version),
        past.clock(version.at),
        version.id.map_or(String::new(), |it| format!(" (version {})", it.0)),
    );
    let error = CommandError::new(Kind::Usage, what);
    let last = history.before(version).filter(|it| it.hash.is_some()).and_then(|it| it.id);
    match last {
        Some(last) => error.hint(format!("memoird show --version {}", last.0)),
        None => error.hint(format!("memoird history {path}")),
    }
}
