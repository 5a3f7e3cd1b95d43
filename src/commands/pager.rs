//! The program that shows long output page by page on a terminal.
//!
//! Which one, and whether the output is long enough, is decided by pure functions; [`show`] starts it.

use std::{
    env,
    io::Write as _,
    process::{Command, Stdio},
};

use tokio::signal::unix::{SignalKind, signal};

use crate::config::api_key;

/// Returns the pager that the environment names: `MEMOIRD_PAGER`, else `PAGER`, else `less`. An empty value and
/// `cat` mean none, and so does a terminal that cannot move its cursor.
pub(super) fn from_environment() -> Option<String> {
    let variable = |name| env::var(name).ok();
    if variable("TERM").is_none_or(|it| it.is_empty() || it == "dumb") {
        return None;
    }
    choose(variable("MEMOIRD_PAGER").or_else(|| variable("PAGER")))
}

fn choose(named: Option<String>) -> Option<String> {
    let pager = named.unwrap_or_else(|| "less".to_owned());
    (!matches!(pager.trim(), "" | "cat")).then_some(pager)
}

/// Returns whether a text needs more rows than a terminal has; one row is left for the next prompt.
pub(super) fn is_long(text: &str, rows: usize, columns: usize) -> bool {
    let plain = anstream::adapter::strip_str(text).to_string();
    let rows_of = |line: &str| line.chars().count().div_ceil(columns.max(1)).max(1);
    plain.lines().map(rows_of).sum::<usize>() >= rows
}

/// Shows a text in the pager, and returns whether the pager could be started.
pub(super) fn show(pager: &str, text: &str) -> bool {
    // The codes with which shells refuse a line that they cannot read are also those of pagers.
    let check = Command::new("sh").args(["-n", "-c", pager]).stdin(Stdio::null()).status();
    if !check.is_ok_and(|it| it.success()) {
        return false;
    }
    let mut command = Command::new("sh");
    api_key::remove_key_variables(&mut command);
    // As git sets it: colors, and the text stays on the screen.
    if env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.arg("-c").arg(pager).stdin(Stdio::piped()).spawn() else {
        return false;
    };
    // Ctrl-C is for the pager, which goes on; without it the terminal would be left to two programs.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().ok();
    let _handler = runtime.as_ref().and_then(|it| {
        let _guard = it.enter();
        signal(SignalKind::interrupt()).ok()
    });
    if let Some(mut stdin) = child.stdin.take() {
        // A reader who quits early closes the pipe.
        drop(stdin.write_all(text.as_bytes()));
    }
    // The shell returns these codes if it cannot find or start the program.
    child.wait().is_ok_and(|it| !matches!(it.code(), Some(126 | 127)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses_the_pager() {
        let chosen = |named: Option<&str>| choose(named.map(str::to_owned));
        assert_eq!(chosen(None).as_deref(), Some("less"));
        assert_eq!(chosen(Some("most -s")).as_deref(), Some("most -s"));
        assert_eq!([chosen(Some("")), chosen(Some("cat"))], [None, None]);
    }

    #[test]
    fn a_line_that_the_shell_cannot_read_starts_no_pager() {
        assert!(!show("less 'a", "text"));
        assert!(!show("memoird-no-such-pager", "text"));
        assert!(show("true \"$HOME\"", "text"));
    }

    #[test]
    fn only_what_does_not_fit_is_long() {
        assert!(!is_long("a\nb\n", 3, 80));
        assert!(is_long("a\nb\nc\n", 3, 80));
        assert!(is_long(&"x".repeat(160), 2, 80)); // wraps
        assert!(!is_long("\u{1b}[1maaaa\u{1b}[0m", 2, 4)); // styles take no room
    }
}
