//! Checks the state of a memory folder after a fault.
//!
//! Immediately: every byte of the existing logs and every acknowledged entry of `log` exists, and no
//! generated file is empty or torn. After one restart (`memoird compact`): `doctor` finds no problem, a
//! second `compact` changes nothing and says so, and the files equal those of an undisturbed run. A
//! command that the user repeats ([`Scenario::repeat`](super::scenario::Scenario)) then ends as if it
//! had not been disturbed.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use memoird::internals::memory::{joined, wisdom::WisdomFile};
use serde_json::Value;

use super::{
    files::Files,
    root::{CommandOutput, Root, TODAY},
    scenario::Stage,
};

const WISDOM: &str = "WISDOM.md";
const WISDOM_RECORD: &str = ".WISDOM.json";
const DECISIONS: &str = "memory/.decisions.jsonl";
/// The number of lines that are shown of a wrong file.
const LINES_SHOWN: usize = 3;

/// What was acknowledged before the fault.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledged {
    /// Whether the command reported success.
    pub(crate) done: bool,
    /// Acknowledged entries that `log` added to [`TODAY`] beside the command.
    pub(crate) entries: Vec<String>,
    /// Whether `log` ran beside the command, acknowledged or not.
    pub(crate) with_log: bool,
}

/// Checks everything.
pub(crate) fn check(stage: &Stage, root: &Root, acknowledged: &Acknowledged) -> Result<(), String> {
    check_logs(stage, root, acknowledged).map_err(|it| format!("at once: {it}"))?;
    check_files_complete(stage, root).map_err(|it| format!("at once: {it}"))?;
    let restart = root.run(&["compact"]);
    if !restart.is_done() {
        return Err(format!("the restart failed\n{restart}"));
    }
    let then = |what: String| format!("after the restart: {what}\n{restart}");
    check_logs(stage, root, acknowledged).map_err(then)?;
    check_files_complete(stage, root).map_err(then)?;
    check_doctor(root).map_err(then)?;
    let after = root.files();
    check_pairs(stage, &after).map_err(then)?;
    let again = root.run(&["compact"]);
    let idle =
        again.is_done() && format!("{}{}", again.stdout, again.stderr).contains("nothing to do");
    if !idle {
        return Err(format!("a second run finds something to do\n{again}\nafter\n{restart}"));
    }
    if let Some(differs) = difference(&after, &root.files(), false) {
        return Err(format!("a second run changes {differs}\n{again}"));
    }
    let mut after = after;
    if acknowledged.with_log {
        // A daemon that saw the entries, and that they were quiet, keeps their running week.
        let open: Vec<String> =
            after.iter().filter(|it| is_open_week(it.0, it.1)).map(|it| beside(it.0)).collect();
        after.retain(|name, _| !open.contains(&beside(name)));
    }
    if stage.repeat && !acknowledged.done {
        // The command fails if it had completed after all.
        let repeated = root.run(stage.command);
        root.run(&["compact"]).ok();
        check_doctor(root).map_err(|it| format!("after the repetition: {it}\n{repeated}"))?;
        after = root.files();
        // The undo also covers the run in between, so it recorded more decisions.
        let decided = stage.ends[0].get_key_value(DECISIONS);
        after.extend(decided.map(|(name, text)| (name.clone(), text.clone())));
    }
    let is_first = (acknowledged.done || stage.repeat) && !acknowledged.with_log;
    let ends = if is_first { &stage.ends[..1] } else { &stage.ends[..] };
    let differences: Vec<_> =
        ends.iter().filter_map(|end| difference(end, &after, acknowledged.with_log)).collect();
    if differences.len() < ends.len() {
        return Ok(());
    }
    Err(then(format!(
        "the files are not those of an undisturbed run: {}",
        differences.join("\nor: ")
    )))
}

/// Checks that every byte of the logs exists, and every acknowledged entry.
fn check_logs(stage: &Stage, root: &Root, acknowledged: &Acknowledged) -> Result<(), String> {
    let files = root.files();
    let holds = |files: &Files, name: &str, before: &str| {
        let name = name.rsplit('/').next().unwrap();
        let archived = format!("memory/archive/{}/{name}", &name[..4]);
        let paths = [format!("memory/{name}"), archived];
        paths.iter().any(|it| files.get(it).is_some_and(|it| it.starts_with(before)))
    };
    for (name, before) in stage.before.iter().filter(|it| is_log(it.0)) {
        // The command itself may remove text from a log.
        let stays = stage.ends.iter().all(|it| holds(it, name, before));
        if stays && !holds(&files, name, before) {
            return Err(format!("bytes of {name} are lost"));
        }
    }
    let today = files.get(TODAY).map_or("", String::as_str);
    match acknowledged.entries.iter().find(|it| !today.contains(&**it)) {
        Some(lost) => Err(format!("`{lost}` was acknowledged but is not in {TODAY}:\n{today}")),
        None => Ok(()),
    }
}

/// Checks that no generated file is empty or torn.
pub(crate) fn check_files_complete(stage: &Stage, root: &Root) -> Result<(), String> {
    let files = root.files();
    for (name, text) in &files {
        let expected = std::iter::once(&stage.before).chain(&stage.ends);
        let is_whole = match kind(name) {
            Kind::Summary => {
                let record = files.get(&record_path(name));
                expected.filter_map(|it| it.get(name)).any(|it| it == text)
                    || has_all_items(text, record.map_or("", |it| it))
            }
            Kind::Typed => {
                text.starts_with("---\n") && text[4..].contains("\n---\n") && text.ends_with('\n')
            }
            Kind::Page => text.starts_with("# ") && text.ends_with('\n'),
            Kind::Record => joined::is_record(text),
            Kind::Other => true,
        };
        if !is_whole {
            return Err(format!("{name} is torn:\n{text}"));
        }
    }
    Ok(())
}

/// Checks that each hidden file was written with the file beside it, except where a person edited that.
fn check_pairs(stage: &Stage, files: &Files) -> Result<(), String> {
    for (name, record) in files.iter().filter(|it| matches!(kind(it.0), Kind::Record)) {
        let beside = beside(name);
        let visible = files.get(&beside);
        let is_expected = |it: &Files| it.get(&beside) == visible && it.get(name) == Some(record);
        let mut expected = std::iter::once(&stage.before).chain(&stage.ends);
        if !visible.is_some_and(|it| joined::belongs(record, it.as_bytes()))
            && !expected.any(is_expected)
        {
            return Err(format!("{name} is the record of another version of {beside}:\n{record}"));
        }
    }
    Ok(())
}

/// Returns the path of the file beside a hidden one; for any other file, its own.
pub(crate) fn beside(name: &str) -> String {
    let (dir, file) = name.rsplit_once('/').unwrap_or(("", name));
    let Some(stem) = file.strip_prefix('.').and_then(|it| it.strip_suffix(".json")) else {
        return name.to_owned();
    };
    if dir.is_empty() { format!("{stem}.md") } else { format!("{dir}/{stem}.md") }
}

/// Returns the path of the hidden file beside another one.
pub(crate) fn record_path(name: &str) -> String {
    let (dir, file) = name.rsplit_once('/').unwrap_or(("", name));
    let hidden = format!(".{}.json", file.trim_end_matches(".md"));
    if dir.is_empty() { hidden } else { format!("{dir}/{hidden}") }
}

/// Returns whether a week or a month is whole, with as many bullets as its record lists if that was written with it.
fn has_all_items(text: &str, record: &str) -> bool {
    let Some((head, body)) = text.split_once("\n---\n") else { return false };
    let bullets = body.lines().filter(|it| it.starts_with("- ")).count();
    let fields = serde_json::from_str::<Value>(record).unwrap_or_default();
    let items = fields["items"].as_array().map_or(0, Vec::len);
    let is_listed = !joined::belongs(record, text.as_bytes()) || items == bullets;
    head.starts_with("---\n") && is_listed && text.ends_with('\n')
}

/// Checks that `doctor` finds no problem.
pub(crate) fn check_doctor(root: &Root) -> Result<(), String> {
    let doctor = root.run(&["doctor", "--json"]);
    let report: Value =
        serde_json::from_str(&doctor.stdout).map_err(|e| format!("{e}\n{doctor}"))?;
    if report["ok"] == true && doctor.is_done() {
        return Ok(());
    }
    let bad: Vec<_> =
        report["checks"].as_array().into_iter().flatten().filter(|it| it["ok"] != true).collect();
    Err(format!("doctor reports {bad:#?}"))
}

/// Checks that a failure was reported: the exit code for failed jobs or failed writes, and a message on
/// stderr or in the report.
pub(crate) fn check_failure_reported(ran: &CommandOutput) -> Result<(), String> {
    let is_reported = match ran.status.code() {
        Some(0) => true,
        Some(1 | 73) => !ran.stderr.is_empty() || ran.stdout.contains("failed"),
        _ => false,
    };
    if is_reported { Ok(()) } else { Err(format!("the failed write was not reported\n{ran}")) }
}

/// Counts distinct decisions. They cannot be compared, because their key is random; an interrupted
/// one is recorded again.
fn decisions(text: &str) -> usize {
    text.lines().collect::<BTreeSet<_>>().len()
}

/// Returns `WISDOM.md` without what depends on the log of the current day: its bullets, and the day of the newest
/// source.
fn without_bullets(files: &Files) -> Option<String> {
    let record = files.get(WISDOM_RECORD).map(String::as_str);
    let mut file = WisdomFile::parse(&joined::join(files.get(WISDOM)?, record));
    file.replace_bullets(&[]);
    file.set_last_compacted(NaiveDate::MIN);
    Some(file.print())
}

/// Returns the first difference between two folders.
fn difference(expected: &Files, actual: &Files, ignore_today: bool) -> Option<String> {
    let names = expected.keys().chain(actual.keys());
    let ignored = [TODAY, WISDOM_RECORD];
    let mut names: Vec<_> =
        names.filter(|it| !(ignore_today && ignored.contains(&&it[..]))).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().find_map(|name| {
        let pair = || without_bullets(expected) == without_bullets(actual);
        let is_wisdom = ignore_today && *name == WISDOM;
        let is_pair_same = is_wisdom && pair();
        let (expected, actual) = (expected.get(name), actual.get(name));
        let same = if *name == DECISIONS {
            expected.map(|it| decisions(it)) == actual.map(|it| decisions(it))
        } else if is_wisdom {
            is_pair_same
        } else {
            expected == actual
        };
        (!same).then(|| format!("{name}\n{}", first_difference(expected, actual)))
    })
}

/// Shows the first lines that differ.
pub(crate) fn first_difference(expected: Option<&String>, actual: Option<&String>) -> String {
    let (Some(expected), Some(actual)) = (expected, actual) else {
        return if expected.is_some() {
            "the file is missing"
        } else {
            "the file should not exist"
        }
        .to_owned();
    };
    let same = expected.lines().zip(actual.lines()).take_while(|(a, b)| a == b).count();
    let show = |mark: &str, text: &str| {
        let lines = text.lines().zip(1..).skip(same).take(LINES_SHOWN);
        lines.map(|(line, number)| format!("{mark} {number}: {line}")).collect::<Vec<_>>()
    };
    [show("expected", expected), show("actual", actual)].concat().join("\n")
}

enum Kind {
    /// A week or a month.
    Summary,
    /// A typed memory.
    Typed,
    /// `WISDOM.md`, `MEMORY.md`.
    Page,
    /// The hidden file beside one of them.
    Record,
    Other,
}

fn kind(name: &str) -> Kind {
    let (dir, file) = name.rsplit_once('/').unwrap_or(("", name));
    let is_markdown = std::path::Path::new(file).extension().is_some_and(|it| it == "md");
    let is_json = std::path::Path::new(file).extension().is_some_and(|it| it == "json");
    match (dir, file) {
        _ if is_json && file.starts_with('.') => Kind::Record,
        _ if !is_markdown => Kind::Other,
        ("memory/weekly" | "memory/monthly", _) => Kind::Summary,
        ("", "WISDOM.md") | ("memory", "MEMORY.md") => Kind::Page,
        ("memory", _)
            if ["user_", "feedback_", "project_", "reference_"]
                .iter()
                .any(|it| file.starts_with(it)) =>
        {
            Kind::Typed
        }
        _ => Kind::Other,
    }
}

/// Returns whether a file is the provisional summary of the open week, which only a daemon writes.
fn is_open_week(name: &str, text: &str) -> bool {
    name.starts_with("memory/weekly/")
        && text.lines().any(|it| it.trim().trim_end_matches(',') == "\"partial\": true")
}

fn is_log(name: &str) -> bool {
    let within = name.strip_prefix("memory/archive/20").map(|it| it.split_once('/'));
    let within = within.map_or_else(|| name.strip_prefix("memory/"), |it| it.map(|it| it.1));
    within.is_some_and(|it| it.starts_with("20") && !it.contains('/'))
}
