//! A machine with its copy of the folder, and how copies are merged.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use chrono::{DateTime, TimeDelta, Utc};
use memoird::folder::Folder;

use crate::{
    files::Files,
    root::{CommandOutput, Root, finish, program},
    trials::Random,
};

pub(super) const DECISIONS: &str = "memory/.decisions.jsonl";
/// Two months, and two logs in one week.
pub(super) const LOGS: [&str; 4] = [
    "memory/2026-02-24.md",
    "memory/2026-03-02.md",
    "memory/2026-03-04.md",
    "memory/2026-03-11.md",
];
/// All weeks and months are closed by then.
const BEGIN: &str = "2026-05-04T09:00:00Z";
const SETTINGS: &str = "zone: UTC\narchive_after_days: 3000\ncompaction: {quiet: 0s}\n";

pub(super) struct Machine {
    root: Root,
    now: DateTime<Utc>,
    /// The lines of the decisions file that it saw.
    pub(super) decisions: BTreeSet<String>,
    /// An older `.memoird`, by file.
    older: Option<BTreeMap<String, Vec<u8>>>,
}

impl Machine {
    pub(super) fn new() -> Self {
        let root = Root::new();
        root.write("memoird.yaml", SETTINGS);
        let (now, decisions) = (BEGIN.parse().unwrap(), BTreeSet::new());
        Self { root, now, decisions, older: None }
    }

    pub(super) fn files(&self) -> Files {
        self.root.files()
    }

    pub(super) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.root.path(name)).ok()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        self.root.write(name, text);
    }

    pub(super) fn remove(&self, name: &str) {
        self.root.remove(name);
    }

    /// Makes the folder equal to these files.
    pub(super) fn replace_files(&self, files: &Files) {
        let now = self.files();
        for name in now.keys().filter(|it| !files.contains_key(*it)) {
            self.remove(name);
        }
        for (name, text) in files.iter().filter(|(name, text)| now.get(*name) != Some(text)) {
            self.write(name, text);
        }
    }

    /// Compacts in this process.
    pub(super) fn compact(&mut self) -> Result<(), String> {
        self.now += TimeDelta::minutes(1);
        let folder = Folder::open(self.root.path("")).map_err(|it| it.to_string())?;
        let folder = folder.with_now(self.now);
        let report = match folder.compact() {
            // So many files vanished that a person must confirm, and they do.
            Err(error) if error.to_string().contains("known files are gone") => {
                let ran = self.run(&["compact", "--accept-missing"]);
                return if ran.is_done() { Ok(()) } else { Err(format!("{ran}")) };
            }
            report => report.map_err(|it| it.to_string())?,
        };
        let failed =
            report.jobs.iter().filter(|it| it.outcome == "failed" || it.outcome == "stuck");
        let failed: Vec<String> = failed.map(|it| format!("{} {}", it.period, it.reason)).collect();
        if !failed.is_empty() || !report.held.is_empty() {
            return Err(format!("failed: {failed:?}, held: {:?}", report.held));
        }
        let left = folder.plan().map_err(|it| it.to_string())?.jobs.len();
        if left > 0 { Err(format!("{left} jobs are still due")) } else { Ok(()) }
    }

    pub(super) fn run(&mut self, args: &[&str]) -> CommandOutput {
        self.now += TimeDelta::minutes(1);
        let mut command = self.root.command(&program(), args);
        command.env("MEMOIRD_NOW", self.now.to_rfc3339());
        finish(command)
    }

    /// Puts the older `.memoird` in place, or keeps the present one for later.
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    pub(super) fn swap_database(&mut self) -> &'static str {
        let path = self.root.path(".memoird");
        let Some(older) = self.older.take() else {
            let mut files = BTreeMap::new();
            collect(&path, &path, &mut files);
            self.older = (!files.is_empty()).then_some(files);
            return "keep .memoird";
        };
        drop(fs::remove_dir_all(&path));
        for (name, bytes) in &older {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, bytes).unwrap();
        }
        "restore .memoird"
    }
}

fn collect(top: &Path, dir: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(top, &path, files);
        } else {
            let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
            files.insert(name, fs::read(path).unwrap());
        }
    }
}

pub(super) fn is_log(name: &str) -> bool {
    name.starts_with("memory/2026")
}

/// Returns whether a file has items of memoird.
pub(super) fn is_generated(name: &str) -> bool {
    let kinds = ["user_", "feedback_", "project_", "reference_", "weekly/", "monthly/"];
    let inside = name.strip_prefix("memory/").filter(|it| !it.contains("/."));
    name == "WISDOM.md" || inside.is_some_and(|it| kinds.iter().any(|kind| it.starts_with(kind)))
}

/// Returns the numbers with this letter in a text.
pub(super) fn numbers(text: &str, letter: char) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_number = |it: &&str| {
        it.len() == 5 && it.starts_with(letter) && it[1..].bytes().all(|b| b.is_ascii_digit())
    };
    words.filter(is_number).map(str::to_owned).collect()
}

/// Merges two copies of a folder that were equal at `base`: as version control does, with the
/// generated files of either side where both changed, or as a sync tool that takes whole files.
pub(super) fn merge(
    base: &Files,
    ours: &Files,
    theirs: &Files,
    as_git: bool,
    seen: [&BTreeSet<String>; 2],
    random: &mut Random,
) -> Files {
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let mut merged = Files::new();
    // People resolve all conflicts of generated files the same way.
    let side = random.next().is_multiple_of(2);
    for name in names {
        let (base, a, b) = (base.get(name), ours.get(name), theirs.get(name));
        let text = match (a, b) {
            _ if a == b || b == base => a.cloned(),
            _ if a == base => b.cloned(),
            (Some(a), Some(b)) if as_git && name == DECISIONS => Some(union(a, b)),
            // A sync tool knows which file was made from the other.
            (Some(a), Some(b)) if name == DECISIONS && is_seen(b, a, seen[0]) => Some(a.clone()),
            (Some(a), Some(b)) if name == DECISIONS && is_seen(a, b, seen[1]) => Some(b.clone()),
            (Some(a), Some(b)) if as_git && is_log(name) => {
                Some(merge_lines(base.map_or("", |it| it), a, b))
            }
            // Of a file that one side deleted, the other side stays.
            (Some(a), Some(b)) => {
                let ours = if as_git { side } else { random.next().is_multiple_of(2) };
                Some(if ours { a.clone() } else { b.clone() })
            }
            (a, b) => a.or(b).cloned(),
        };
        merged.extend(text.map(|it| (name.clone(), it)));
    }
    merged
}

/// Returns whether a machine with this file had seen all lines of another one.
fn is_seen(other: &str, file: &str, seen: &BTreeSet<String>) -> bool {
    other.lines().all(|it| seen.contains(it) || file.lines().any(|line| line == it))
}

fn union(a: &str, b: &str) -> String {
    let known: BTreeSet<&str> = a.lines().collect();
    let new = b.lines().filter(|it| !known.contains(it));
    a.lines().chain(new).flat_map(|it| [it, "\n"]).collect()
}

/// Merges the lines of two logs: what either side deleted goes, what either side added stays.
fn merge_lines(base: &str, a: &str, b: &str) -> String {
    let base: Vec<&str> = base.lines().collect();
    let theirs: Vec<&str> = b.lines().collect();
    let is_text = |it: &str| !it.trim().is_empty();
    let mut lines: Vec<&str> = Vec::new();
    let deleted_by_b = |it: &str| is_text(it) && base.contains(&it) && !theirs.contains(&it);
    lines.extend(a.lines().filter(|it| !deleted_by_b(it)));
    let mut after = 0;
    for line in theirs.iter().filter(|it| is_text(it)) {
        if let Some(at) = lines.iter().position(|it| it == line) {
            after = at + 1;
        } else if !base.contains(line) {
            lines.insert(after, line);
            after += 1;
        }
    }
    lines.join("\n") + "\n"
}
