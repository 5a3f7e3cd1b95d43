//! What is logged, and where to: the journal of systemd where that runs us, else standard error.
//!
//! Runs and calls of a model are spans: `run`, and `chat` with the attributes that the OpenTelemetry
//! conventions for generative AI name. No log line holds the words of a log, of a reply, or a key.

use std::io::IsTerminal as _;

use tracing_subscriber::{
    EnvFilter, Layer as _, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use super::{
    GlobalArgs,
    error::{CommandError, CommandErrorKind},
    ui::Ui,
};

/// Says what is logged, in the words of [`EnvFilter`].
const VARIABLE: &str = "MEMOIRD_LOG";

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogFormat {
    /// To the journal where that runs us, else lines of text
    #[default]
    Auto,
    /// Lines of text
    Text,
    /// A JSON document on each line
    Json,
}

/// Begins to log, as the daemon does.
///
/// # Errors
///
/// Returns what is wrong with `MEMOIRD_LOG`.
pub(super) fn start(global: &GlobalArgs, format: LogFormat, ui: &Ui) -> Result<(), CommandError> {
    let usual = match (global.quiet, ui.is_verbose()) {
        (true, _) => "error",
        (false, true) => "memoird=debug",
        (false, false) => "memoird=info",
    };
    install(filter_from_env().as_deref().unwrap_or(usual), format)
}

/// Begins to log where `MEMOIRD_LOG` asks for it, as all other verbs do.
///
/// # Errors
///
/// Returns what is wrong with `MEMOIRD_LOG`.
pub(super) fn start_if_requested() -> Result<(), CommandError> {
    filter_from_env().map_or(Ok(()), |it| install(&it, LogFormat::Auto))
}

fn filter_from_env() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|it| !it.is_empty())
}

fn install(filter: &str, format: LogFormat) -> Result<(), CommandError> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        CommandError::new(CommandErrorKind::Config, format!("{VARIABLE}: {error}"))
            .hint(format!("{VARIABLE}=debug, or leave it out"))
    })?;
    // Fields of spans and events become fields of the journal: `journalctl -o json` shows them.
    let to_journal = is_journald() && format == LogFormat::Auto;
    let journal = to_journal.then(tracing_journald::layer).and_then(Result::ok);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    let log = match journal {
        // `journalctl MEMOIRD_ROOT=/home/ada/lexicon` finds what was done there.
        Some(journal) => journal
            .with_syslog_identifier("memoird".to_owned())
            .with_field_prefix(Some("MEMOIRD".to_owned()))
            .boxed(),
        None if format == LogFormat::Json => tracing_subscriber::fmt::layer()
            .json()
            .with_writer(std::io::stderr)
            .with_target(false)
            .boxed(),
        // The journal has a time of its own.
        None if is_journald() => lines.without_time().boxed(),
        None => lines.boxed(),
    };
    tracing_subscriber::registry().with(log.with_filter(filter)).init();
    Ok(())
}

/// Returns whether what is printed here goes to the journal.
fn is_journald() -> bool {
    std::env::var_os("JOURNAL_STREAM").is_some()
}
