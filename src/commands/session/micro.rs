//! `memoird session compact --micro`: a transcript without old results of bulky tools, and whether the
//! session is to be summed up all the same.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    super::{
        error::{CommandError, CommandErrorKind},
        ui::Ui,
    },
    open_input, read_transcript,
};
use crate::{
    model::circuit_breaker::CircuitBreaker,
    session::{
        micro_compaction::{self, MicroSettings, RewriteStats},
        transcript::TranscriptFormat,
    },
    store::fs::vault::settings_files::write_stream,
};

/// How it is made smaller.
#[derive(Debug, clap::Args)]
pub(super) struct MicroArgs {
    /// With --micro: so many results of tools stay, the last ones
    #[arg(long, value_name = "N", default_value_t = 5, requires = "micro")]
    keep_recent: usize,
    /// With --micro: do nothing unless it saves much or the session has rested for an hour
    #[arg(long, requires = "micro")]
    if_due: bool,
    /// With --micro: so many tokens the agent's window has, to tell whether a summary is due as well
    #[arg(long, value_name = "TOKENS", default_value_t = 200_000, requires = "micro")]
    window: u64,
    /// With --micro: so many tokens a reply of the agent may have
    #[arg(long, value_name = "TOKENS", default_value_t = 20_000, requires = "micro")]
    reply: u64,
    /// Write to this file, which may not be there yet
    #[arg(long, value_name = "FILE", requires = "micro")]
    out: Option<PathBuf>,
}

impl MicroArgs {
    /// Tells whether a session of so many bytes is to be summed up. Whoever asks here has not failed at it.
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

/// What `--json` prints of a smaller transcript.
#[derive(Serialize)]
struct MicroReport<'a> {
    out: Option<&'a Path>,
    due: Option<&'static str>,
    results: usize,
    bytes_before: u64,
    bytes_after: u64,
    tokens_saved: u64,
    full: FullCompactionNeed,
}

/// Whether the session is to be summed up all the same.
#[derive(Serialize)]
struct FullCompactionNeed {
    due: bool,
    /// About how many tokens it has.
    tokens: u64,
    /// From how many on it is due.
    from_tokens: u64,
}

/// Makes a transcript smaller. The file itself is only read.
pub(super) fn run(
    file: &Path,
    format: Option<TranscriptFormat>,
    args: &MicroArgs,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    if file == Path::new("-") {
        return Err(CommandError::new(
            CommandErrorKind::Usage,
            "--micro reads the file twice, which stdin cannot be",
        )
        .hint("memoird session compact FILE --micro"));
    }
    if ui.is_json() && args.out.is_none() {
        return Err(CommandError::new(
            CommandErrorKind::Usage,
            "with --json the transcript itself needs a file",
        )
        .hint("memoird session compact FILE --micro --out NEW --json"));
    }
    if let Some(out) = args.out.as_deref().filter(|it| it.symlink_metadata().is_ok()) {
        let what =
            format!("`{}` stands there already; a transcript is never replaced", out.display());
        return Err(CommandError::new(CommandErrorKind::Usage, what).hint("name a new file"));
    }
    let transcript = read_transcript(file, format)?;
    let settings = MicroSettings { keep_recent: args.keep_recent, ..MicroSettings::default() };
    let clearing = micro_compaction::plan_clearing(&transcript, &settings);
    let now = crate::clock::now()?;
    let due = micro_compaction::clearing_due(&transcript, &clearing, &settings, now);
    let due = due.map(|it| match it {
        micro_compaction::ClearingReason::Savings => "saves",
        micro_compaction::ClearingReason::Idle => "rested",
    });
    if args.if_due && due.is_none() {
        ui.note("nothing to do: little would be saved, and the session has not rested for an hour");
        if ui.is_json() {
            let bytes = std::fs::metadata(file).map_or(0, |it| it.len());
            let (out, results, tokens_saved) = (None, 0, 0);
            let full = args.full_need(bytes, now);
            ui.json(&MicroReport {
                out,
                due,
                results,
                bytes_before: 0,
                bytes_after: 0,
                tokens_saved,
                full,
            });
        }
        return Ok(ExitCode::SUCCESS);
    }
    let input = open_input(file)?;
    let mut saved = RewriteStats::default();
    let write = |output: &mut dyn std::io::Write| {
        let output = std::io::BufWriter::new(output);
        saved = micro_compaction::rewrite(input, output, transcript.format, &clearing)?;
        Ok(())
    };
    match &args.out {
        Some(out) => write_stream(out, write)?,
        None => ui.stream(write),
    }
    let full = args.full_need(saved.bytes_after, now);
    let tokens_saved =
        micro_compaction::estimate_tokens(saved.bytes_before.saturating_sub(saved.bytes_after));
    if ui.is_json() {
        ui.json(&MicroReport {
            out: args.out.as_deref(),
            due,
            results: clearing.results,
            bytes_before: saved.bytes_before,
            bytes_after: saved.bytes_after,
            tokens_saved,
            full,
        });
    } else {
        ui.note(format!(
            "{} of {} bytes are left; {} results of tools are left out, about {tokens_saved} tokens",
            saved.bytes_after, saved.bytes_before, clearing.results
        ));
        if full.due {
            ui.note(format!(
                "Still about {} tokens; from {} on a window of {} has no room for a reply and its summary. \
                 To sum the session up: memoird session compact {}",
                full.tokens,
                full.from_tokens,
                args.window,
                file.display()
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}
