//! Sets up logging: to the systemd journal if systemd started the process, otherwise to stderr.
//!
//! Runs and model calls are spans: `run`, and `chat` with the attributes of the OpenTelemetry
//! conventions for generative AI. Log lines never contain text of logs or replies, or keys.

use std::io::IsTerminal as _;

use tracing_subscriber::{
    EnvFilter, Layer as _, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use super::{GlobalArgs, ui::Ui};
use crate::operations::error::{CommandError, CommandResult};

/// The variable with the log filter, in the syntax of [`EnvFilter`].
const VARIABLE: &str = "MEMOIRD_LOG";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogFormat {
    /// The journal if systemd started the process, otherwise text
    #[default]
    Auto,
    /// Lines of text
    Text,
    /// One JSON document per line
    Json,
}

/// Starts logging for the daemon.
pub(super) fn start(global: &GlobalArgs, format: LogFormat, ui: &Ui) -> CommandResult<()> {
    let default = match (global.quiet, ui.is_verbose()) {
        (true, _) => "error",
        (false, true) => "memoird=debug",
        (false, false) => "memoird=info",
    };
    install(filter_from_env().as_deref().unwrap_or(default), format)
}

/// Starts logging for a worker, whose messages are printed; this adds warnings of the model client and the like.
#[cfg(feature = "fleet")]
pub(super) fn start_for_worker(global: &GlobalArgs, ui: &Ui) {
    let default = match (global.quiet, ui.is_verbose()) {
        (true, _) => "error",
        (false, true) => "memoird=debug",
        (false, false) => "memoird=warn",
    };
    // With the variable, logging has begun already.
    if filter_from_env().is_none() {
        drop(install(default, LogFormat::Auto));
    }
}

/// Starts logging for the other verbs, if `MEMOIRD_LOG` is set.
pub(super) fn start_if_requested() -> CommandResult<()> {
    filter_from_env().map_or(Ok(()), |it| install(&it, LogFormat::Auto))
}

fn filter_from_env() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|it| !it.is_empty())
}

fn install(filter: &str, format: LogFormat) -> CommandResult<()> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        CommandError::config(format!("{VARIABLE}: {error}"))
            .hint(format!("set {VARIABLE}=debug, or unset it"))
    })?;
    // Fields of spans and events become journal fields: `journalctl -o json` shows them.
    let to_journal = is_journald() && format == LogFormat::Auto;
    let journal = to_journal.then(tracing_journald::layer).and_then(Result::ok);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    let log = match journal {
        // `journalctl MEMOIRD_ROOT=/home/ada/lexicon` finds the lines about that folder.
        Some(journal) => journal
            .with_syslog_identifier("memoird".to_owned())
            .with_field_prefix(Some("MEMOIRD".to_owned()))
            .boxed(),
        None if format == LogFormat::Json => tracing_subscriber::fmt::layer()
            .json()
            .with_writer(std::io::stderr)
            .with_target(false)
            .boxed(),
        // The journal adds its own time.
        None if is_journald() => lines.without_time().boxed(),
        None => lines.boxed(),
    };
    tracing_subscriber::registry().with(log.with_filter(filter)).init();
    Ok(())
}

/// Returns whether stderr goes to the journal.
fn is_journald() -> bool {
    std::env::var_os("JOURNAL_STREAM").is_some()
}
