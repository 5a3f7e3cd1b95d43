//! The only place that prints.
//!
//! Data goes to stdout, words to stderr. With `--json` stdout is one JSON document and nothing
//! else. A terminal gets colour, tables, and progress; a pipe does not. Text that came from files
//! is escaped before it reaches a terminal, so that no log can move the cursor or hide a line.

use std::{
    fmt,
    io::{self, IsTerminal as _, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::error::CommandError;
use crate::recall::history::{Hunk, Op};

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How a command talks to whoever started it.
#[derive(Debug)]
pub struct Ui {
    json: bool,
    loudness: Loudness,
    terminal: bool,
}

/// How many words are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Loudness {
    Quiet,
    Usual,
    Verbose,
}

/// Styles of words; empty when the stream shows no colour, since `anstream` strips them.
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const GONE: Style = AnsiColor::Red.on_default();
const FAINT: Style = Style::new().dimmed();
const STRONG: Style = Style::new().bold();

impl Ui {
    /// Sets up both streams.
    pub fn new(json: bool, quiet: bool, verbose: bool, color: ColorChoice) -> Self {
        match color {
            ColorChoice::Auto => {}
            ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
            ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
        }
        let loudness = match (quiet, verbose) {
            (true, _) => Loudness::Quiet,
            (false, true) => Loudness::Verbose,
            (false, false) => Loudness::Usual,
        };
        Self { json, loudness, terminal: io::stderr().is_terminal() }
    }

    /// Returns whether stdout is to be one JSON document.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Returns whether more than the usual words are wanted.
    pub fn is_verbose(&self) -> bool {
        self.loudness == Loudness::Verbose
    }

    /// Returns whether somebody watches the words.
    pub fn is_terminal(&self) -> bool {
        self.terminal && self.loudness > Loudness::Quiet
    }

    /// Prints one line of data.
    pub fn data(&self, line: impl fmt::Display) {
        out(format_args!("{}\n", escape(&line.to_string())));
    }

    /// Prints bytes of a file as they stand; to a terminal escaped.
    pub fn file(&self, bytes: &[u8]) {
        let mut stdout = io::stdout().lock();
        let done = if stdout.is_terminal() {
            stdout.write_all(escape(&String::from_utf8_lossy(bytes)).as_bytes())
        } else {
            stdout.write_all(bytes)
        };
        ignore_closed_pipe(done.and_then(|()| stdout.flush()));
    }

    /// Prints a unified diff: its head, and each line with the character that says what became of it.
    ///
    /// A terminal gets colour and escapes; a pipe gets lines that `patch` understands.
    pub fn diff(&self, head: [&str; 2], hunks: &[Hunk]) {
        let shown = anstream::stdout().current_choice() != anstream::ColorChoice::Never;
        let safe = |text: &str| if shown { escape(text) } else { text.to_owned() };
        let [old, new] = head.map(safe);
        out(format_args!("{STRONG}--- {old}{STRONG:#}\n{STRONG}+++ {new}{STRONG:#}\n"));
        for hunk in hunks {
            out(format_args!("{FAINT}{}{FAINT:#}\n", hunk.head()));
            for line in &hunk.lines {
                let style = match line.op {
                    Op::Same => Style::new(),
                    Op::Added => GOOD,
                    Op::Removed => GONE,
                };
                let (text, end) = match line.text.strip_suffix('\n') {
                    Some(text) => (text, "\n"),
                    None => (&line.text[..], "\n\\ No newline at end of file\n"),
                };
                out(format_args!("{style}{}{}{style:#}{end}", line.op.mark(), safe(text)));
            }
        }
    }

    /// Prints the JSON document of a command.
    pub fn json(&self, value: &impl Serialize) {
        let mut stdout = io::stdout().lock();
        let done = serde_json::to_writer_pretty(&mut stdout, value).map_err(io::Error::from);
        ignore_closed_pipe(
            done.and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush()),
        );
    }

    /// Prints a heading of data.
    pub fn heading(&self, text: impl fmt::Display) {
        out(format_args!("{STRONG}{}{STRONG:#}\n", escape(&text.to_string())));
    }

    /// Prints a table of data with a heading line; columns are as wide as they need.
    pub fn table(&self, head: &[&str], rows: &[Vec<String>]) {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
        table.set_header(head.iter().map(|it| it.to_uppercase()));
        for row in rows {
            table.add_row(row.iter().map(|cell| escape(cell)));
        }
        for line in table.lines() {
            out(format_args!("{}\n", line.trim_end()));
        }
    }

    /// Says something in words, unless `--quiet`.
    pub fn note(&self, text: impl fmt::Display) {
        if self.loudness > Loudness::Quiet {
            err(format_args!("{}\n", escape(&text.to_string())));
        }
    }

    /// Says something in words that only `--verbose` wants.
    pub fn detail(&self, text: impl fmt::Display) {
        if self.is_verbose() {
            err(format_args!("{FAINT}{}{FAINT:#}\n", escape(&text.to_string())));
        }
    }

    /// Says that something went well.
    pub fn good(&self, text: impl fmt::Display) {
        if self.loudness > Loudness::Quiet {
            err(format_args!("{GOOD}{}{GOOD:#}\n", escape(&text.to_string())));
        }
    }

    /// Says that something went wrong though the command goes on; also with `--quiet`.
    pub fn warn(&self, text: impl fmt::Display) {
        err(format_args!("{BAD}warning:{BAD:#} {}\n", escape(&text.to_string())));
    }

    /// Says why a command ends.
    pub fn error(&self, error: &CommandError) {
        err(format_args!("{BAD}error:{BAD:#} {}\n", escape(&error.to_string())));
        for hint in error.hints() {
            err(format_args!("  {FAINT}try:{FAINT:#} {}\n", escape(hint)));
        }
    }

    /// Asks a person yes or no, where one sits; `None` where nobody can answer.
    pub fn ask(&self, question: impl fmt::Display) -> Option<bool> {
        if !self.can_ask() {
            return None;
        }
        err(format_args!("{STRONG}{}{STRONG:#} [y/N] ", escape(&question.to_string())));
        let mut answer = String::new();
        // An answer that cannot be read is none.
        io::stdin().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// Returns whether a person sits there to be asked.
    pub fn can_ask(&self) -> bool {
        self.terminal && !self.json && io::stdin().is_terminal()
    }

    /// Asks a person for a line of text; `None` where nobody can answer, or the input has ended.
    pub fn question(&self, question: impl fmt::Display) -> Option<String> {
        if !self.can_ask() {
            return None;
        }
        err(format_args!("{STRONG}{}{STRONG:#} ", escape(&question.to_string())));
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer).ok()?;
        (read > 0).then(|| answer.trim().to_owned())
    }

    /// Starts a progress display of `total` steps; it shows on a terminal only.
    pub fn progress(&self, total: u64) -> Progress {
        let shown = self.is_terminal() && !self.json && total > 1;
        let target = if shown {
            indicatif::ProgressDrawTarget::stderr()
        } else {
            indicatif::ProgressDrawTarget::hidden()
        };
        let bar = indicatif::ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = indicatif::ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}") {
            bar.set_style(style.progress_chars("━╸ "));
        }
        Progress { bar }
    }
}

/// A progress display. Cleared on drop.
#[derive(Debug)]
pub struct Progress {
    bar: indicatif::ProgressBar,
}

impl Progress {
    /// Sets how many steps there are.
    pub fn total(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// Names the step that is under way; `done` are behind it.
    pub fn step(&self, done: u64, name: &str) {
        self.bar.set_position(done);
        self.bar.set_message(name.to_owned());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Replaces control and direction-changing characters by their escapes; line ends and tabs stay.
pub fn escape(text: &str) -> String {
    let harmless = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}');
    if text.chars().all(|c| harmless(c) && !turns(c)) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|c| {
            let plain = harmless(c) && !turns(c);
            plain
                .then_some(c)
                .into_iter()
                .chain((!plain).then(|| c.escape_unicode()).into_iter().flatten())
        })
        .collect()
}

fn out(text: fmt::Arguments<'_>) {
    ignore_closed_pipe(anstream::stdout().write_fmt(text));
}

fn err(text: fmt::Arguments<'_>) {
    ignore_closed_pipe(anstream::stderr().write_fmt(text));
}

/// Set when stdout or stderr refused text for another reason than a reader that went away.
static OUTPUT_LOST: AtomicBool = AtomicBool::new(false);

/// Whoever closed the pipe wants no more, which is no failure of ours. Any other refusal (a full
/// disk behind a redirection) is told by the exit code.
fn ignore_closed_pipe(result: io::Result<()>) {
    if result.is_err_and(|e| e.kind() != io::ErrorKind::BrokenPipe) {
        OUTPUT_LOST.store(true, Ordering::Relaxed);
    }
}

/// Returns whether all that was printed reached its reader, or the reader went away.
pub fn output_complete() -> bool {
    !OUTPUT_LOST.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(escape(text), expected);
    }

    #[test]
    fn what_could_steer_a_terminal_is_escaped() {
        check("plain\ttext\nnext – ünïcode 日本", "plain\ttext\nnext – ünïcode 日本");
        check("\u{1b}[2Jgone", "\\u{1b}[2Jgone");
        check("a\u{202e}b", "a\\u{202e}b");
        check("\r\u{7}", "\\u{d}\\u{7}");
    }
}
