//! The only place that prints.
//!
//! Data goes to stdout, messages to stderr. With `--json`, stdout is one JSON document and nothing
//! else. A terminal gets color, tables and progress; a pipe does not. Text from files is escaped
//! before it reaches a terminal, so that no log can move the cursor or hide a line.

use std::{
    fmt::{self, Write as _},
    io::{self, IsTerminal as _, Write as _},
    ops::Range,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::{
    error_report::{ErrorReport, Hint},
    pager,
};
use crate::{
    compaction::{RunObserver, plan::CompactionJob},
    operations::{
        error::{CommandError, CommandResult},
        run_reporter::RunReporter,
    },
    recall::{
        history::{DiffOp, Hunk},
        trace_formats::{TraceNode, TreeRow},
    },
};

/// When to use color.
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

/// The output of a command.
#[derive(Debug)]
pub struct Ui {
    json: bool,
    verbosity: Verbosity,
    terminal: bool,
    /// The program that shows long output on a terminal.
    pager: Option<String>,
}

/// How many messages to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verbosity {
    Quiet,
    Usual,
    Verbose,
}

/// Text styles. `anstream` strips them if the stream shows no color.
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const REMOVED: Style = AnsiColor::Red.on_default();
const HIGHLIGHT: Style = AnsiColor::Yellow.on_default().bold();
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
        let verbosity = match (quiet, verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Usual,
        };
        Self { json, verbosity, terminal: io::stderr().is_terminal(), pager: None }
    }

    /// Sets the pager; without one, long output is printed at once.
    pub(super) fn with_pager(self, pager: Option<String>) -> Self {
        Self { pager, ..self }
    }

    /// Runs `print`; on a terminal, what it prints as data is shown in the pager if it is long.
    pub(super) fn paged<T>(&self, print: impl FnOnce() -> T) -> T {
        let size = columns().zip(rows());
        let Some((pager, (columns, rows))) = self.pager.as_ref().filter(|_| !self.json).zip(size)
        else {
            return print();
        };
        *held_output() = Some(String::new());
        let result = print();
        let text = held_output().take().unwrap_or_default();
        if !pager::is_long(&text, rows, columns) || !pager::show(pager, &text) {
            write_stdout(format_args!("{text}"));
        }
        result
    }

    /// Returns whether stdout must be one JSON document.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Returns whether `--verbose` is set.
    pub fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    /// Returns whether `--quiet` is set: reports of what was done are left out, but not what was asked for.
    pub fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    /// Returns whether messages go to a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal && self.verbosity > Verbosity::Quiet
    }

    /// Prints one line of data.
    pub fn data(&self, line: impl fmt::Display) {
        write_stdout(format_args!("{}\n", escape(&line.to_string())));
    }

    /// Prints the bytes of a file unchanged, but escaped on a terminal.
    pub fn bytes(&self, bytes: &[u8]) {
        if held_output().is_some() {
            return write_stdout(format_args!("{}", escape(&String::from_utf8_lossy(bytes))));
        }
        let mut stdout = io::stdout().lock();
        let done = if stdout.is_terminal() {
            stdout.write_all(escape(&String::from_utf8_lossy(bytes)).as_bytes())
        } else {
            stdout.write_all(bytes)
        };
        ignore_closed_pipe(done.and_then(|()| stdout.flush()));
    }

    /// Prints the output of `write`: streamed to a pipe, buffered and escaped on a terminal.
    pub fn stream(&self, write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) {
        if io::stdout().is_terminal() {
            let mut bytes = Vec::new();
            ignore_closed_pipe(write(&mut bytes));
            return self.bytes(&bytes);
        }
        let mut stdout = io::stdout().lock();
        let done = write(&mut stdout);
        ignore_closed_pipe(done.and_then(|()| stdout.flush()));
    }

    /// Prints a unified diff.
    ///
    /// A terminal gets color and escapes; a pipe gets lines that `patch` understands.
    pub fn diff(&self, head: [&str; 2], hunks: &[Hunk]) {
        let shown = anstream::stdout().current_choice() != anstream::ColorChoice::Never;
        let safe = |text: &str| if shown { escape(text) } else { text.to_owned() };
        let write = if shown { write_stdout } else { write_stdout_raw };
        let [old, new] = head.map(safe);
        write(format_args!("{STRONG}--- {old}{STRONG:#}\n{STRONG}+++ {new}{STRONG:#}\n"));
        for hunk in hunks {
            write(format_args!("{FAINT}{}{FAINT:#}\n", hunk.header()));
            for line in &hunk.lines {
                let style = match line.op {
                    DiffOp::Same => Style::new(),
                    DiffOp::Added => GOOD,
                    DiffOp::Removed => REMOVED,
                };
                let (text, end) = match line.text.strip_suffix('\n') {
                    Some(text) => (text, "\n"),
                    None => (&line.text[..], "\n\\ No newline at end of file\n"),
                };
                write(format_args!("{style}{}{}{style:#}{end}", line.op.prefix(), safe(text)));
            }
        }
    }

    /// Prints the JSON document of a command. Escapes invisible characters, which changes no value.
    pub fn json(&self, value: &impl Serialize) {
        let mut stdout = io::stdout().lock();
        let done = serde_json::to_string_pretty(value).map_err(io::Error::from).and_then(|text| {
            stdout.write_all(escape_with(&text, escape_json).as_bytes())?;
            stdout.write_all(b"\n")
        });
        ignore_closed_pipe(done.and_then(|()| stdout.flush()));
    }

    /// Prints a line of data with highlighted ranges: byte ranges of `text`, in order. On a terminal, wraps it at
    /// spaces, with `lead` before each line.
    pub fn highlighted(&self, lead: &str, text: &str, ranges: &[Range<usize>]) {
        let whole = 0..text.len();
        let lines = match columns() {
            Some(columns) => wrapped_ranges(text, columns.saturating_sub(lead.chars().count())),
            None => vec![whole],
        };
        for line in lines {
            let mut shown = escape(lead);
            let mut from = line.start;
            for range in ranges {
                let range = range.start.max(line.start)..range.end.min(line.end);
                let parts = text.get(from..range.start).zip(text.get(range.clone()));
                let Some((before, word)) = parts.filter(|(_, word)| !word.is_empty()) else {
                    continue;
                };
                shown.push_str(&escape(before));
                write!(shown, "{HIGHLIGHT}{}{HIGHLIGHT:#}", escape(word))
                    .expect("writing to a string never fails");
                from = range.end;
            }
            let rest = text.get(from..line.end).unwrap_or_default();
            write_stdout(format_args!("{shown}{}\n", escape(rest)));
        }
    }

    /// Prints a heading of data.
    pub fn heading(&self, text: impl fmt::Display) {
        write_stdout(format_args!("{STRONG}{}{STRONG:#}\n", escape(&text.to_string())));
    }

    /// Returns whether stdout is a terminal.
    pub fn is_stdout_terminal(&self) -> bool {
        columns().is_some()
    }

    /// Prints a tree; on a terminal, fits it to the width and highlights the addresses.
    pub fn tree(&self, tree: &TraceNode) {
        let Some(columns) = columns() else { return self.data(tree.to_string().trim_end()) };
        for TreeRow { lead, place, text, note } in tree.rows(columns) {
            let [place, text, note] = [place, text, note].map(|it| escape(&it));
            let gap = |before: &str, after: &str| {
                if before.is_empty() || after.is_empty() { "" } else { "  " }
            };
            let (first, second) = (gap(&place, &text), gap(&place, &note));
            write_stdout(format_args!(
                "{FAINT}{lead}{FAINT:#}{STRONG}{place}{STRONG:#}{first}{text}{second}{FAINT}{note}{FAINT:#}\n"
            ));
        }
    }

    /// Prints a table of data with a heading line; columns are as wide as their content.
    pub fn table(&self, head: &[&str], rows: &[Vec<String>]) {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
        table.set_header(head.iter().map(|it| escape(&it.to_uppercase())));
        for row in rows {
            table.add_row(row.iter().map(|cell| escape(cell)));
        }
        for line in table.lines() {
            write_stdout(format_args!("{}\n", line.trim_end()));
        }
    }

    /// Prints a message, unless `--quiet` is set.
    pub fn note(&self, text: impl fmt::Display) {
        if self.verbosity > Verbosity::Quiet {
            write_stderr(format_args!("{}\n", escape(&text.to_string())));
        }
    }

    /// Prints a message only with `--verbose`.
    pub fn detail(&self, text: impl fmt::Display) {
        if self.is_verbose() {
            write_stderr(format_args!("{FAINT}{}{FAINT:#}\n", escape(&text.to_string())));
        }
    }

    /// Prints a message of success.
    pub fn success(&self, text: impl fmt::Display) {
        if self.verbosity > Verbosity::Quiet {
            write_stderr(format_args!("{GOOD}{}{GOOD:#}\n", escape(&text.to_string())));
        }
    }

    /// Prints a warning, even with `--quiet`.
    pub fn warn(&self, text: impl fmt::Display) {
        write_stderr(format_args!("{BAD}warning:{BAD:#} {}\n", escape(&text.to_string())));
    }

    /// Prints the error that ends a command, with its hints; with `--json` as one JSON object.
    pub fn error(&self, error: &CommandError) {
        if self.json {
            let text = serde_json::to_string(&ErrorReport::of(error)).unwrap_or_default();
            return write_stderr(format_args!("{}\n", escape_with(&text, escape_json)));
        }
        write_stderr(format_args!("{BAD}error:{BAD:#} {}\n", escape(&error.to_string())));
        for hint in error.hints() {
            write_hint(hint);
        }
    }

    /// Asks a yes-or-no question; `None` if nobody can answer.
    pub fn confirm(&self, question: impl fmt::Display) -> Option<bool> {
        if !self.is_interactive() {
            return None;
        }
        write_stderr(format_args!("{STRONG}{}{STRONG:#} [y/N] ", escape(&question.to_string())));
        let mut answer = String::new();
        // An unreadable answer counts as none.
        io::stdin().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// Asks a yes-or-no question, and says that nothing was changed if the answer is no.
    pub(super) fn confirm_or(
        &self,
        question: impl fmt::Display,
        nobody_answers: impl FnOnce() -> CommandError,
    ) -> CommandResult<bool> {
        let agreed = self.confirm(question).ok_or_else(nobody_answers)?;
        if !agreed {
            self.note("nothing was changed");
        }
        Ok(agreed)
    }

    /// Returns whether a person can answer questions.
    pub fn is_interactive(&self) -> bool {
        self.terminal && !self.json && io::stdin().is_terminal()
    }

    /// Asks for a line of text; `None` if nobody can answer or the input has ended.
    pub fn prompt(&self, question: impl fmt::Display) -> Option<String> {
        if !self.is_interactive() {
            return None;
        }
        write_stderr(format_args!("{STRONG}{}{STRONG:#} ", escape(&question.to_string())));
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer).ok()?;
        (read > 0).then(|| answer.trim().to_owned())
    }

    /// Starts a progress display of `total` steps, which is visible only on a terminal.
    pub fn progress(&self, total: u64) -> ProgressDisplay {
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
        ProgressDisplay { bar }
    }
}

impl RunReporter for Ui {
    fn warn(&self, text: &str) {
        self.warn(text);
    }

    fn note(&self, text: &str) {
        self.note(text);
    }

    fn detail(&self, text: &str) {
        self.detail(text);
    }

    fn progress(&self) -> Box<dyn RunObserver + '_> {
        Box::new(RunProgress { progress: self.progress(0), done: 0 })
    }
}

/// Shows the jobs of a run.
struct RunProgress {
    progress: ProgressDisplay,
    done: u64,
}

impl RunObserver for RunProgress {
    fn job_started(&mut self, job: &CompactionJob, left: usize) {
        self.progress.total(self.done + left as u64 + 1);
        self.progress.step(self.done, &format!("{} {}", job.tier, job.period));
        self.done += 1;
    }
}

/// A progress display. Cleared on drop.
#[derive(Debug)]
pub struct ProgressDisplay {
    bar: indicatif::ProgressBar,
}

impl ProgressDisplay {
    /// Sets the number of steps.
    pub fn total(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// Shows the current step after `done` completed ones.
    pub fn step(&self, done: u64, name: &str) {
        self.bar.set_position(done);
        self.bar.set_message(escape(name));
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Escapes control characters, characters that change the text direction, and invisible ones. Keeps line
/// ends, tabs, and joiners that a script or an emoji needs.
pub fn escape(text: &str) -> String {
    escape_with(text, |c, out| out.extend(c.escape_unicode()))
}

/// Returns a text on one line of at most 60 characters: longer text would wrap on most terminals, and `--json` has
/// all of it.
pub(super) fn shortened(text: &str) -> String {
    const TEXT_MAX: usize = 60;
    let mut text = one_line(text);
    if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Escapes like [`escape`], and line ends and tabs too: a file name may contain them, and must not look
/// like a line of output.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in escape(text).chars() {
        if matches!(c, '\n' | '\t') { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

/// Formats a size in bytes with its unit: `76.8 GiB`.
pub(in crate::commands) fn human_size(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..GIB => format!("{} MiB", bytes >> 20),
        _ => format!("{}.{} GiB", bytes / GIB, bytes % GIB * 10 / GIB),
    }
}

/// Escapes the characters that [`escape`] does, each by what `write_escape` appends.
fn escape_with(text: &str, write_escape: impl Fn(char, &mut String)) -> String {
    if text.bytes().all(|b| matches!(b, b'\n' | b'\t' | b' '..=b'~')) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    let mut before = '\0';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if is_hidden(before, c, chars.peek().copied().unwrap_or('\0')) {
            write_escape(c, &mut shown);
        } else {
            shown.push(c);
        }
        before = c;
    }
    shown
}

/// Returns whether a character is invisible or has an invisible effect between these two.
fn is_hidden(before: char, c: char, after: char) -> bool {
    // Emoji and variation selectors, which joiners combine.
    let is_picture =
        |c| matches!(c, '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}');
    // Arabic, Indic and neighboring scripts use joiners between letters.
    let joins_letters = |c| matches!(c, '\u{600}'..='\u{109f}' | '\u{1780}'..='\u{17ff}');
    match c {
        '\n' | '\t' => false,
        '\u{200c}' => !(joins_letters(before) && joins_letters(after)),
        '\u{200d}' => {
            let joins_pictures = is_picture(before) && is_picture(after);
            !joins_pictures && !joins_letters(before)
        }
        // One variation selector changes a glyph; several in a row can hide data.
        '\u{fe00}'..='\u{fe0f}' => {
            matches!(before, '\0' | '\n' | '\t' | ' ' | '\u{fe00}'..='\u{fe0f}')
        }
        _ => {
            c.is_control()
                || matches!(c,
                    '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
                    | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                    | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
                    | '\u{e0100}'..='\u{e01ef}')
        }
    }
}

/// Writes a JSON escape of a character, which keeps the value the same.
fn escape_json(c: char, out: &mut String) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        write!(out, "\\u{unit:04x}").expect("writing to a string never fails");
    }
}

/// Escapes everything except style sequences. All output passes through it last, so that text which a
/// caller forgot to escape can change only colors.
fn escape_keeping_styles(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        let (before, sequence) = rest.split_at(at);
        let arguments = sequence[2..].find(|c: char| !c.is_ascii_digit() && c != ';');
        let end = arguments.map(|it| it + 2).filter(|&it| sequence[it..].starts_with('m'));
        shown.push_str(&escape(before));
        if let Some(end) = end {
            shown.push_str(&sequence[..=end]);
            rest = &sequence[end + 1..];
        } else {
            shown.push_str("\\u{1b}[");
            rest = &sequence[2..];
        }
    }
    shown + &escape(rest)
}

/// Returns the width of the terminal on stdout; `None` if stdout is no terminal.
fn columns() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    Some(size.map_or(80, |it| usize::from(it.ws_col)).max(40))
}

/// Returns the height of the terminal on stdout; `None` if stdout is no terminal.
fn rows() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    // Some terminals do not say how high they are.
    let rows = size.map(|it| usize::from(it.ws_row)).filter(|it| *it > 0);
    Some(rows.unwrap_or(24).max(2))
}

/// Breaks a text at spaces into lines of at most `width` characters, as byte ranges; a longer word gets its own line.
fn wrapped_ranges(text: &str, width: usize) -> Vec<Range<usize>> {
    let mut lines: Vec<Range<usize>> = Vec::new();
    for word in text.split_whitespace() {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        let end = start + word.len();
        match lines.last_mut() {
            Some(line) if text[line.start..end].chars().count() <= width => line.end = end,
            Some(_) => lines.push(start..end),
            None => lines.push(0..end),
        }
    }
    lines
}

/// What waits for the pager; `None` while output goes to stdout at once.
static HELD_OUTPUT: Mutex<Option<String>> = Mutex::new(None);

fn held_output() -> MutexGuard<'static, Option<String>> {
    HELD_OUTPUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a text for the pager, without styles if the terminal shows none; returns whether it did.
fn hold_output(text: &str) -> bool {
    let is_plain = anstream::stdout().current_choice() == anstream::ColorChoice::Never;
    let plain = || anstream::adapter::strip_str(text).to_string();
    held_output()
        .as_mut()
        .map(|held| held.push_str(&if is_plain { plain() } else { text.to_owned() }))
        .is_some()
}

fn write_stdout(text: fmt::Arguments<'_>) {
    if hold_output(&escape_keeping_styles(&text.to_string())) {
        return;
    }
    ignore_closed_pipe(
        anstream::stdout().write_all(escape_keeping_styles(&text.to_string()).as_bytes()),
    );
}

/// Prints without escapes, for programs that read the exact lines.
fn write_stdout_raw(text: fmt::Arguments<'_>) {
    if hold_output(&text.to_string()) {
        return;
    }
    ignore_closed_pipe(anstream::stdout().write_fmt(text));
}

/// Prints what helps to go on: a fact, or a command to type.
fn write_hint(text: &str) {
    let (label, text) = match Hint::of(text) {
        Hint::Fact(fact) => ("hint:", fact.to_owned()),
        Hint::Command { command, purpose: "" } => ("try:", command.to_owned()),
        Hint::Command { command, purpose } => ("try:", format!("{command}  # {purpose}")),
    };
    write_stderr(format_args!("  {FAINT}{label}{FAINT:#} {}\n", escape(&text)));
}

fn write_stderr(text: fmt::Arguments<'_>) {
    ignore_closed_pipe(
        anstream::stderr().write_all(escape_keeping_styles(&text.to_string()).as_bytes()),
    );
}

/// Set when writing to stdout or stderr failed for another reason than a closed pipe.
static OUTPUT_LOST: AtomicBool = AtomicBool::new(false);

/// Ignores a closed pipe: the reader wants no more. Other failures, such as a full disk behind a
/// redirection, set the exit code.
fn ignore_closed_pipe(result: io::Result<()>) {
    if result.is_err_and(|e| e.kind() != io::ErrorKind::BrokenPipe) {
        OUTPUT_LOST.store(true, Ordering::Relaxed);
    }
}

/// Returns whether all output was written, or the reader closed the pipe.
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
    fn line_ends_in_file_names_are_escaped() {
        assert_eq!(one_line("a\nb\tc\r\u{202e}d.md"), "a\\nb\\tc\\u{d}\\u{202e}d.md");
        assert_eq!(one_line("memory/2026-03-02.md"), "memory/2026-03-02.md");
    }

    #[test]
    fn control_and_invisible_characters_are_escaped() {
        check("plain\ttext\nnext – ünïcode 日本", "plain\ttext\nnext – ünïcode 日本");
        check("\u{1b}[2Jgone", "\\u{1b}[2Jgone");
        check("\r\u{7}", "\\u{d}\\u{7}");
        for hidden in [
            '\0',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{61c}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{200e}',
            '\u{200f}',
            '\u{2028}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2064}',
            '\u{2066}',
            '\u{2069}',
            '\u{feff}',
            '\u{fff9}',
            '\u{fffb}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e007f}',
            '\u{e0100}',
            '\u{e01ef}',
        ] {
            check(&format!("a{hidden}b"), &format!("a{}b", hidden.escape_unicode()));
        }
    }

    #[test]
    fn joiners_that_a_script_needs_are_kept() {
        check("می\u{200c}خواهم", "می\u{200c}خواهم");
        check("क्\u{200d}ष", "क्\u{200d}ष");
        check("👩\u{200d}💻 ❤\u{fe0f}", "👩\u{200d}💻 ❤\u{fe0f}");
        check("a\u{fe01}\u{fe02}\u{fe03}", "a\u{fe01}\\u{fe02}\\u{fe03}");
    }

    /// Text that a caller forgot to escape can change only colors.
    #[test]
    fn output_streams_escape_everything_but_styles() {
        assert_eq!(
            escape_keeping_styles("\u{1b}[1;32mdone\u{1b}[0m\n"),
            "\u{1b}[1;32mdone\u{1b}[0m\n"
        );
        assert_eq!(
            escape_keeping_styles("\u{1b}[2Jx\u{1b}]8;;y\u{7}"),
            "\\u{1b}[2Jx\\u{1b}]8;;y\\u{7}"
        );
        assert_eq!(escape_keeping_styles("\u{1b}[1\u{1b}[0m"), "\\u{1b}[1\u{1b}[0m");
        assert_eq!(escape_keeping_styles("\u{1b}["), "\\u{1b}[");
        let source = include_str!("ui.rs").split("#[cfg(test)]").next().unwrap();
        let writers = ["anstream::stdout()", "anstream::stderr()", "io::stdout().lock()"];
        // `diff`, `hold_output`, `write_stdout` and `write_stdout_raw`; `write_stderr`; `bytes`, `stream` and `json`.
        assert_eq!(writers.map(|it| source.matches(it).count()), [4, 1, 3]);
    }

    #[test]
    fn sizes_have_the_unit_that_fits() {
        let shown = [999, 2048, 3 << 20, 82_500_000_000].map(human_size);
        assert_eq!(shown, ["999 bytes", "2 KiB", "3 MiB", "76.8 GiB"]);
    }

    #[test]
    fn long_lines_wrap_at_spaces() {
        let wrapped = |text: &'static str, width| -> Vec<&str> {
            wrapped_ranges(text, width).into_iter().map(|it| &text[it]).collect()
        };
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("  größer als süß", 12), ["  größer als", "süß"]);
        assert_eq!(wrapped("a https://example.org/long", 6), ["a", "https://example.org/long"]);
    }

    #[test]
    fn escapes_in_json_keep_its_values() {
        let value = serde_json::json!({"a\u{202e}": "b\u{e0041}\u{1b}\u{9b} \u{fe0f} é"});
        let text = escape_with(&value.to_string(), escape_json);
        assert!(text.chars().all(|c| c == 'é' || matches!(c, ' '..='~')), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
