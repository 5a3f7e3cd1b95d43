//! The state of a git repository, shown to an agent at the start of a session.
//!
//! Only queries git: runs no program that the repository configures (filters, hooks, pagers, monitors of the file
//! system, helpers that fetch missing objects), and takes no lock.

use std::{
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use crate::config::api_key;

const STATUS_CHARS_MAX: usize = 2_000;
/// How much output of one git command is read.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;
/// The time for all git commands together; output that comes later is left out.
const GIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the lines of a snapshot; none if the folder is in no repository or git is not installed.
pub(super) fn snapshot_lines(folder: &Path) -> Vec<String> {
    let queries = [
        &["rev-parse", "--is-inside-work-tree"][..],
        &["symbolic-ref", "--quiet", "--short", "HEAD"],
        &["rev-parse", "--quiet", "--verify", "--short", "HEAD"],
        &["symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"],
        &["for-each-ref", "--format=%(refname:short)", "refs/heads/main", "refs/heads/master"],
        &["status", "--short", "--ignore-submodules=dirty"],
        &["log", "--oneline", "--no-decorate", "--no-show-signature", "-n", "5"],
        &["config", "user.name"],
    ];
    let until = Instant::now() + GIT_TIMEOUT;
    // `status` passes changed files through the filters that the configuration names, so they are emptied.
    let Some(filters) = emptied_filters(folder, until) else { return Vec::new() };
    // The commands run in parallel, so that all take only as long as the slowest.
    let running: Vec<Option<GitQuery>> =
        queries.iter().map(|it| GitQuery::start(folder, it, &filters)).collect();
    let answers: Vec<Option<String>> =
        running.into_iter().map(|it| it.and_then(|it| it.wait(until))).collect();
    let answer = |at: usize| answers[at].as_deref().map(str::trim_end).filter(|it| !it.is_empty());
    if answer(0) != Some("true") {
        return Vec::new();
    }
    let mut lines = vec!["Snapshot at the start of the session; it does not update.".to_owned()];
    let branch = answer(1).map(str::to_owned).or_else(|| Some(format!("none, at {}", answer(2)?)));
    lines.extend(branch.map(|it| format!("Branch: {it}")));
    let main = answer(3).map(|it| it.strip_prefix("origin/").unwrap_or(it));
    let main = main.or_else(|| answer(4)?.lines().next());
    lines.extend(main.map(|it| format!("Main branch: {it}")));
    lines.extend(answer(7).map(|it| format!("User: {it}")));
    match answer(5) {
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
    if let Some(log) = answer(6) {
        lines.push("Last commits:".to_owned());
        lines.extend(log.lines().map(str::to_owned));
    }
    lines
}

/// Returns settings that empty the filters of the configuration; `None` if git does not answer, or if one of them
/// cannot be emptied.
fn emptied_filters(folder: &Path, until: Instant) -> Option<Vec<String>> {
    let words = ["config", "--null", "--name-only", "--get-regexp", r"^filter\."];
    let keys = GitQuery::start(folder, &words, &[])?.wait(until)?;
    let is_whole = (keys.len() as u64) < OUTPUT_BYTES_MAX;
    if !is_whole || keys.contains(['=', char::REPLACEMENT_CHARACTER]) {
        return None;
    }
    let emptied = keys.split('\0').filter_map(|key| match key.rsplit_once('.')?.1 {
        "clean" | "smudge" | "process" => Some(format!("{key}=")),
        "required" => Some(format!("{key}=false")),
        _ => None,
    });
    Some(emptied.collect())
}

struct GitQuery {
    child: Child,
    output: mpsc::Receiver<String>,
}

impl GitQuery {
    fn start(folder: &Path, words: &[&str], filters: &[String]) -> Option<Self> {
        let mut command = Command::new("git");
        command.args(["--no-optional-locks", "--no-pager"]);
        let fixed =
            ["core.fsmonitor=false", "core.hooksPath=/dev/null", "status.submoduleSummary=false"];
        for setting in fixed.iter().copied().chain(filters.iter().map(|it| &it[..])) {
            command.args(["-c", setting]);
        }
        command.args(words).current_dir(folder);
        command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        // Missing objects of a partial clone are not fetched: the transport may be any program.
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child =
            api_key::remove_key_variables(&mut command).process_group(0).spawn().ok()?;
        let out = child.stdout.take()?;
        let (sender, output) = mpsc::channel();
        // The thread ends with the output of git, which is killed if it takes too long.
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = out.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
            if read.is_ok() {
                drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
            }
        });
        Some(Self { child, output })
    }

    fn wait(mut self, until: Instant) -> Option<String> {
        let left = until.saturating_duration_since(Instant::now());
        let output = self.output.recv_timeout(left).ok();
        if output.is_none()
            && let Err(error) = self.child.kill()
        {
            tracing::debug!("cannot kill git: {error}");
        }
        // Complete output counts whatever the exit code is.
        self.child.wait().ok()?;
        output
    }
}
