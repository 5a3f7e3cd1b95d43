//! Where a git repository stands, as told at the start of a session.
//!
//! Git is only asked: nothing that a repository's own configuration names is run, and no lock is taken.

use std::{
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use crate::config::api_key;

/// A status is cut after so many characters.
const STATUS_CHARS_MAX: usize = 2_000;
/// So much of what git says is read.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;
/// Git has so long for all of it; what it has not said by then is left out.
const GIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the lines of a snapshot; none where the folder is in no repository, or git is not there.
pub(super) fn snapshot_lines(folder: &Path) -> Vec<String> {
    let asked = [
        &["rev-parse", "--is-inside-work-tree"][..],
        &["symbolic-ref", "--quiet", "--short", "HEAD"],
        &["rev-parse", "--quiet", "--verify", "--short", "HEAD"],
        &["symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"],
        &["for-each-ref", "--format=%(refname:short)", "refs/heads/main", "refs/heads/master"],
        &["status", "--short", "--ignore-submodules=dirty"],
        &["log", "--oneline", "--no-decorate", "--no-show-signature", "-n", "5"],
        &["config", "user.name"],
    ];
    // All at once: what they take together is what the slowest takes.
    let running: Vec<Option<GitQuery>> =
        asked.iter().map(|it| GitQuery::start(folder, it)).collect();
    let until = Instant::now() + GIT_TIMEOUT;
    let said: Vec<Option<String>> =
        running.into_iter().map(|it| it.and_then(|it| it.wait(until))).collect();
    let said = |at: usize| said[at].as_deref().map(str::trim_end).filter(|it| !it.is_empty());
    if said(0) != Some("true") {
        return Vec::new();
    }
    let mut lines = vec![
        "As it stood when this was printed; it does not change with the repository.".to_owned(),
    ];
    let branch = said(1).map(str::to_owned).or_else(|| Some(format!("none, at {}", said(2)?)));
    lines.extend(branch.map(|it| format!("Branch: {it}")));
    let main = said(3).map(|it| it.strip_prefix("origin/").unwrap_or(it));
    let main = main.or_else(|| said(4)?.lines().next());
    lines.extend(main.map(|it| format!("Main branch: {it}")));
    lines.extend(said(7).map(|it| format!("User: {it}")));
    match said(5) {
        Some(status) => {
            lines.push("Status:".to_owned());
            let mut chars = 0;
            let all = status.lines().count();
            let fits = status.lines().take_while(|it| {
                chars += it.chars().count() + 1;
                chars <= STATUS_CHARS_MAX
            });
            lines.extend(fits.map(str::to_owned));
            let shown = lines.iter().rev().take_while(|it| *it != "Status:").count();
            if shown < all {
                lines.push(format!("[{} lines are left out: git status --short]", all - shown));
            }
        }
        None => lines.push("Status: clean".to_owned()),
    }
    if let Some(log) = said(6) {
        lines.push("Last commits:".to_owned());
        lines.extend(log.lines().map(str::to_owned));
    }
    lines
}

/// A question to git.
struct GitQuery {
    child: Child,
    output: mpsc::Receiver<String>,
}

impl GitQuery {
    fn start(folder: &Path, words: &[&str]) -> Option<Self> {
        let mut command = Command::new("git");
        command.args(["--no-optional-locks", "-c", "core.fsmonitor=false", "--no-pager"]);
        command.args(words).current_dir(folder);
        command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child =
            api_key::remove_key_variables(&mut command).process_group(0).spawn().ok()?;
        let out = child.stdout.take()?;
        let (sender, said) = mpsc::channel();
        // Ends with the output of git, which is killed where it takes too long.
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = out.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
            if read.is_ok() {
                drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
            }
        });
        Some(Self { child, output: said })
    }

    fn wait(mut self, until: Instant) -> Option<String> {
        let left = until.saturating_duration_since(Instant::now());
        let said = self.output.recv_timeout(left).ok();
        if said.is_none()
            && let Err(error) = self.child.kill()
        {
            tracing::debug!("git cannot be ended: {error}");
        }
        // Whatever it said to the end of its output counts, however it ended.
        self.child.wait().ok()?;
        said
    }
}
