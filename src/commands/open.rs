//! `memoird open` and `memoird serve`: a local page to see a memory.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::{
        fs::{DirBuilderExt as _, OpenOptionsExt as _},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use super::{GlobalArgs, ui::Ui};
use crate::{
    config::{ConfigError, api_key},
    operations::{
        error::CommandResult,
        page::{PageLink, PageProgram, PageRequest},
        workspace::Invocation,
    },
};

/// Show the memory on a local page in the browser
///
/// The page shows what is remembered, where each line comes from, what was left out, and what it cost. It is
/// served on 127.0.0.1 only, to the browser that opens the printed link; the link works once. The server ends
/// with Ctrl-C, or after an hour without a request.
#[derive(Debug, clap::Args)]
pub(super) struct OpenArgs {
    #[command(flatten)]
    page: ServeArgs,
    /// Print the link, and do not open a browser
    #[arg(long)]
    no_browser: bool,
}

/// Serve the local page without opening a browser
///
/// Prints a link that works once; everything else is as with `memoird open`.
#[derive(Debug, clap::Args)]
pub(super) struct ServeArgs {
    /// Show everything, and change nothing
    #[arg(long)]
    read_only: bool,
    /// Listen on this port of 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
}

pub(super) fn open(
    global: &GlobalArgs,
    args: &OpenArgs,
    page: &PageProgram,
    ui: &Ui,
) -> CommandResult {
    serve_page(global, &args.page, page, !args.no_browser && !ui.is_json(), ui)
}

pub(super) fn serve(
    global: &GlobalArgs,
    args: &ServeArgs,
    page: &PageProgram,
    ui: &Ui,
) -> CommandResult {
    serve_page(global, args, page, false, ui)
}

fn serve_page(
    global: &GlobalArgs,
    args: &ServeArgs,
    page: &PageProgram,
    with_browser: bool,
    ui: &Ui,
) -> CommandResult {
    let ServeArgs { read_only, port } = *args;
    let call = Invocation::load(global)?;
    let roots = roots(global, &call)?;
    let overrides = global.config_overrides();
    let request = PageRequest { overrides, roots, read_only, port };
    let state_home = call.environment.state_home;
    // Removed when the server has ended.
    let mut start = None;
    (page.serve)(&request, &mut |link| {
        if ui.is_json() {
            ui.json(link);
            return;
        }
        ui.data(&link.url);
        ui.note("the link works once; Ctrl-C ends the page, and so does an hour without a request");
        if !with_browser {
            return;
        }
        let opened = StartFile::write(&state_home, link)
            .and_then(|file| open_browser(&start.insert(file).0));
        if let Err(error) = opened {
            ui.warn(format!("cannot open a browser: {error}; open the link yourself"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the memory folders of the page: the selected one, then the configured ones.
pub(super) fn roots(global: &GlobalArgs, call: &Invocation) -> CommandResult<Vec<PathBuf>> {
    let configured = call.config.roots.iter().map(|it| it.path.clone());
    let selected = match call.config.select_root(global.root.as_deref(), &call.environment) {
        Ok(path) => Some(path),
        Err(ConfigError::NoRootSelected { .. }) if !call.config.roots.is_empty() => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(path) = &selected {
        call.open_root(path)?.require_memory_folder()?;
    }
    let mut roots: Vec<PathBuf> = selected.into_iter().collect();
    for path in configured {
        if !roots.contains(&path) {
            roots.push(path);
        }
    }
    Ok(roots)
}

/// A file that leads a browser to the link. Only this user can read it, whereas every user sees the arguments of a
/// process. Removed with the value.
#[derive(Debug)]
struct StartFile(PathBuf);

impl StartFile {
    fn write(state_home: &Path, link: &PageLink) -> io::Result<Self> {
        let dir = state_home.join("memoird");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let path = dir.join(format!("page-{}.html", link.port));
        // No other server has this port, so what is there was left behind.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let start = Self(path);
        let url = &link.url;
        writeln!(
            file,
            "<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
             <meta http-equiv=\"refresh\" content=\"0;url={url}\"><title>memoird</title>\
             <a href=\"{url}\">To the page</a>"
        )?;
        Ok(start)
    }
}

impl Drop for StartFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

/// Starts the browser of the desktop. It does not wait for it.
fn open_browser(file: &Path) -> io::Result<()> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    // A browser that is started by it goes on when Ctrl-C ends the page.
    command.arg(file).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = api_key::remove_key_variables(&mut command).spawn();
    let mut child = child.map_err(|e| io::Error::new(e.kind(), format!("`{program}`: {e}")))?;
    // Collects its exit status, so that no zombie is left.
    std::thread::spawn(move || drop(child.wait()));
    Ok(())
}
