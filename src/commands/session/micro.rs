//! `memoird session compact --micro`: removes old results of bulky tools from a transcript, and says whether
//! the session needs a summary nevertheless.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{super::ui::Ui, open_input, read_transcript};
use crate::{
    model::circuit_breaker::CircuitBreaker,
    operations::error::{CommandError, CommandResult},
    session::{
        micro_compaction::{self, MicroSettings, RewriteStats},
        transcript::TranscriptFormat,
        transcript_file,
    },
    store::fs::vault::settings_files::write_stream,
};

/// How a transcript is shrunk.
#[derive(Debug, clap::Args)]
pub(super) struct MicroArgs {
    /// With --micro: how many tool results stay, the last ones
    #[arg(long, value_name = "N", default_value_t = 5, requires = "micro")]
    keep_recent: usize,
    /// With --micro: do nothing unless it saves much or the session was idle for an hour
    #[arg(long, requires = "micro")]
    if_due: bool,
    /// With --micro: the agent's context window in tokens, to determine whether a summary is due as well
    #[arg(long, value_name = "TOKENS", default_value_t = 200_000, requires = "micro")]
    window: u64,
    /// With --micro: the most tokens of a reply of the agent
    #[arg(long, value_name = "TOKENS", default_value_t = 20_000, requires = "micro")]
    reply: u64,
    /// Write to this file, which must not exist yet
    #[arg(long, value_name = "FILE", requires = "micro")]
    out: Option<PathBuf>,
}

impl MicroArgs {
    /// Returns whether a session of this size needs a summary. There were no failed attempts here, so the
    /// circuit is closed.
    fn full_need(&self, bytes: u64, now: DateTime<Utc>) -> FullCompactionNeed {
        let tokens = micro_compaction::estimate_tokens(bytes);
        FullCompactionNeed {
            due: micro_compaction::is_full_compaction_due(
                tokens,
                self.window,
                self.reply,
                &CircuitBreaker::default(),
                now,
            ),
            tokens,
            from_tokens: micro_compaction::full_compaction_threshold(self.window, self.reply),
        }
    }
}

/// The `--json` output.
#[derive(Default, Serialize)]
struct MicroReport<'a> {
    out: Option<&'a Path>,
    due: Option<&'static str>,
    results: usize,
    bytes_before: u64,
    bytes_after: u64,
    tokens_saved: u64,
    full: FullCompactionNeed,
}

/// Whether the session needs a summary nevertheless.
#[derive(Default, Serialize)]
struct FullCompactionNeed {
    due: bool,
    tokens: u64,
    /// The number from which a summary is due.
    from_tokens: u64,
}

/// Writes a smaller copy of a transcript; the file itself is only read.
pub(super) fn run(
    file: &Path,
    format: Option<TranscriptFormat>,
    args: &MicroArgs,
    ui: &Ui,
) -> CommandResult {
    check_arguments(file, args, ui)?;
    let transcript = read_transcript(file, format)?;
    if let TranscriptFormat::Opencode | TranscriptFormat::Copilot = transcript.format {
        let what = "--micro cannot shrink transcripts of opencode and Copilot CLI";
        return Err(CommandError::usage(what)
            .hint("summarize the session instead: memoird session compact FILE"));
    }
    let settings = MicroSettings { keep_recent: args.keep_recent, ..MicroSettings::default() };
    let clearing = micro_compaction::plan_clearing(&transcript, &settings);
    let now = crate::clock::now()?;
    let due = micro_compaction::clearing_due(&transcript, &clearing, &settings, now);
    let due = due.map(|it| match it {
        micro_compaction::ClearingReason::Savings => "saves",
        micro_compaction::ClearingReason::Idle => "rested",
    });
    if args.if_due && due.is_none() {
        ui.note("nothing to do: little would be saved, and the session was not idle for an hour");
        if ui.is_json() {
            let bytes = std::fs::metadata(file).map_or(0, |it| it.len());
            let full = args.full_need(bytes, now);
            ui.json(&MicroReport { full, ..MicroReport::default() });
        }
        return Ok(ExitCode::SUCCESS);
    }
    let input = open_input(file)?;
    let mut stats = RewriteStats::default();
    let write = |output: &mut dyn std::io::Write| {
        let output = std::io::BufWriter::new(output);
        stats = micro_compaction::rewrite(input, output, transcript.format, &clearing)?;
        Ok(())
    };
    match &args.out {
        Some(out) => write_stream(out, write)?,
        None => ui.stream(write),
    }
    let report = MicroReport {
        out: args.out.as_deref(),
        due,
        results: clearing.results,
        bytes_before: stats.bytes_before,
        bytes_after: stats.bytes_after,
        tokens_saved: micro_compaction::estimate_tokens(
            stats.bytes_before.saturating_sub(stats.bytes_after),
        ),
        full: args.full_need(stats.bytes_after, now),
    };
    if ui.is_json() {
        ui.json(&report);
    } else {
        report.print(file, args.window, ui);
    }
    Ok(ExitCode::SUCCESS)
}

fn check_arguments(file: &Path, args: &MicroArgs, ui: &Ui) -> CommandResult<()> {
    if file == Path::new("-") {
        return Err(CommandError::usage("--micro reads the file twice, so it cannot be stdin")
            .hint("memoird session compact FILE --micro"));
    }
    if transcript_file::is_database(file) {
        let what = format!("--micro shrinks files, and `{}` is in a database", file.display());
        return Err(CommandError::usage(what)
            .hint("summarize the session instead: memoird session compact FILE"));
    }
    if ui.is_json() && args.out.is_none() {
        return Err(CommandError::usage(
            "--json needs --out, because the transcript cannot go to stdout, too",
        )
        .hint("memoird session compact FILE --micro --out NEW --json"));
    }
    if let Some(out) = args.out.as_deref().filter(|it| it.symlink_metadata().is_ok()) {
        let what = format!("`{}` exists already; a transcript is never replaced", out.display());
        return Err(CommandError::usage(what).hint("name a new file"));
    }
    Ok(())
}

impl MicroReport<'_> {
    fn print(&self, file: &Path, window: u64, ui: &Ui) {
        let Self { bytes_before, bytes_after, results, tokens_saved, full, .. } = self;
        ui.note(format!(
            "{bytes_after} of {bytes_before} bytes left; {results} tool results removed, about \
             {tokens_saved} tokens"
        ));
        if full.due {
            ui.note(format!(
                "About {} tokens are left; from {} on, a window of {window} has no room for a reply and \
                 a summary. To summarize the session: memoird session compact {}",
                full.tokens,
                full.from_tokens,
                file.display()
            ));
        }
    }
}
