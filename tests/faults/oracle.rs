//! What must hold after any fault.
//!
//! At once: every byte of a log that was there, and every entry that `log` acknowledged, is there;
//! no generated file is empty or torn. After one restart (`memoird compact`): `doctor` finds all
//! well, a second `compact` changes nothing and says so, and the files are those of a run that
//! nothing disturbed. What a person does again after that ([`Scenario::again`](super::scenario)) ends
//! as if it had not been disturbed.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    files::Files,
    root::{Ran, Root, TODAY},
    scenario::Stage,
};

const DECISIONS: &str = "memory/.decisions.jsonl";
/// Lines of a file that are shown where it is not as it should be.
const LINES_SHOWN: usize = 3;

/// What was acknowledged before the fault.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acked {
    /// The command said that it is done.
    pub(crate) done: bool,
    /// Entries that `log` added to [`TODAY`], besides the command.
    pub(crate) entries: Vec<String>,
    /// Entries were added, whether acknowledged or not.
    pub(crate) logged: bool,
}

/// Checks all of it.
pub(crate) fn check(stage: &Stage, root: &Root, acked: &Acked) -> Result<(), String> {
    kept(stage, root, acked).map_err(|it| format!("at once: {it}"))?;
    whole(stage, root).map_err(|it| format!("at once: {it}"))?;
    let restart = root.run(&["compact"]);
    if !restart.is_done() {
        return Err(format!("the restart does not end well\n{restart}"));
    }
    let then = |what: String| format!("after the restart: {what}\n{restart}");
    kept(stage, root, acked).map_err(then)?;
    whole(stage, root).map_err(then)?;
    well(root).map_err(then)?;
    let after = root.files();
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
    if acked.logged {
        // A daemon that saw the entries, and that they were quiet, keeps their running week.
        after.retain(|name, text| !is_running_week(name, text));
    }
    if stage.again && !acked.done {
        // Refused where it was done after all.
        let again = root.run(stage.command);
        root.run(&["compact"]).ok();
        well(root).map_err(|it| format!("done again: {it}\n{again}"))?;
        after = root.files();
        // What was folded between the two was taken back with the rest: that much more is decided.
        let decided = stage.ends[0].get_key_value(DECISIONS);
        after.extend(decided.map(|(name, text)| (name.clone(), text.clone())));
    }
    let ends = if acked.done || stage.again { &stage.ends[..1] } else { &stage.ends[..] };
    let differences: Vec<_> =
        ends.iter().filter_map(|end| difference(end, &after, acked.logged)).collect();
    if differences.len() < ends.len() {
        return Ok(());
    }
    Err(then(format!(
        "the files are not those of an undisturbed run: {}",
        differences.join("\nor: ")
    )))
}

/// Every byte of the logs is there.
fn kept(stage: &Stage, root: &Root, acked: &Acked) -> Result<(), String> {
    let files = root.files();
    let holds = |files: &Files, name: &str, before: &str| {
        let name = name.rsplit('/').next().unwrap();
        let archived = format!("memory/archive/{}/{name}", &name[..4]);
        let places = [format!("memory/{name}"), archived];
        places.iter().any(|it| files.get(it).is_some_and(|it| it.starts_with(before)))
    };
    for (name, before) in stage.before.iter().filter(|it| is_log(it.0)) {
        // What the command itself takes out of a log is not kept.
        let stays = stage.ends.iter().all(|it| holds(it, name, before));
        if stays && !holds(&files, name, before) {
            return Err(format!("bytes of {name} are lost"));
        }
    }
    let today = files.get(TODAY).map_or("", String::as_str);
    match acked.entries.iter().find(|it| !today.contains(&**it)) {
        Some(lost) => Err(format!("`{lost}` was acknowledged, and is not in {TODAY}:\n{today}")),
        None => Ok(()),
    }
}

/// No generated file is empty or torn.
pub(crate) fn whole(stage: &Stage, root: &Root) -> Result<(), String> {
    for (name, text) in &root.files() {
        let known = std::iter::once(&stage.before).chain(&stage.ends);
        let is_whole = match kind(name) {
            Kind::Summary => {
                known.filter_map(|it| it.get(name)).any(|it| it == text) || has_all_items(text)
            }
            Kind::Typed => {
                text.starts_with("---\n") && text[4..].contains("\n---\n") && text.ends_with('\n')
            }
            Kind::Page => text.starts_with("# ") && text.ends_with('\n'),
            Kind::Other => true,
        };
        if !is_whole {
            return Err(format!("{name} is torn:\n{text}"));
        }
    }
    Ok(())
}

/// Returns whether a week or a month has as many bullets as its head says: less would be torn.
fn has_all_items(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\n---\n") else { return false };
    let items = head.lines().find_map(|it| it.trim().strip_prefix("items: [")?.strip_suffix(']'));
    let Some(items) = items else { return false };
    let items = items.split(", ").filter(|it| !it.is_empty()).count();
    let bullets = body.lines().filter(|it| it.starts_with("- ")).count();
    head.starts_with("---\n") && items == bullets && text.ends_with('\n')
}

/// `doctor` finds all well.
pub(crate) fn well(root: &Root) -> Result<(), String> {
    let doctor = root.run(&["doctor", "--json"]);
    let report: Value =
        serde_json::from_str(&doctor.stdout).map_err(|e| format!("{e}\n{doctor}"))?;
    if report["ok"] == true && doctor.is_done() {
        return Ok(());
    }
    let bad: Vec<_> =
        report["checks"].as_array().into_iter().flatten().filter(|it| it["ok"] != true).collect();
    Err(format!("doctor says {bad:#?}"))
}

/// Checks that a failure was told: an exit code for failed jobs or for what cannot be written, and
/// words on stderr or in the report.
pub(crate) fn told(ran: &Ran) -> Result<(), String> {
    let told = match ran.status.code() {
        Some(0) => true,
        Some(1 | 73) => !ran.stderr.is_empty() || ran.stdout.contains("failed"),
        _ => false,
    };
    if told { Ok(()) } else { Err(format!("it does not end as a refused write should\n{ran}")) }
}

/// Counts different decisions: their key is random, and one that was cut off is taken down again.
fn decisions(text: &str) -> usize {
    text.lines().collect::<BTreeSet<_>>().len()
}

/// Returns where two folders differ.
fn difference(wanted: &Files, found: &Files, but_today: bool) -> Option<String> {
    let names = wanted.keys().chain(found.keys());
    let mut names: Vec<_> = names.filter(|it| !(but_today && *it == TODAY)).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().find_map(|name| {
        let (wanted, found) = (wanted.get(name), found.get(name));
        let same = if *name == DECISIONS {
            wanted.map(|it| decisions(it)) == found.map(|it| decisions(it))
        } else {
            wanted == found
        };
        (!same).then(|| format!("{name}\n{}", first_difference(wanted, found)))
    })
}

/// Shows the lines from the first on that differs.
pub(crate) fn first_difference(wanted: Option<&String>, found: Option<&String>) -> String {
    let (Some(wanted), Some(found)) = (wanted, found) else {
        return if wanted.is_some() { "it is missing" } else { "it should not be there" }
            .to_owned();
    };
    let same = wanted.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
    let show = |mark: &str, text: &str| {
        let lines = text.lines().zip(1..).skip(same).take(LINES_SHOWN);
        lines.map(|(line, number)| format!("{mark} {number}: {line}")).collect::<Vec<_>>()
    };
    [show("wanted", wanted), show("found", found)].concat().join("\n")
}

enum Kind {
    /// A week or a month.
    Summary,
    /// A typed memory.
    Typed,
    /// `WISDOM.md`, `MEMORY.md`.
    Page,
    Other,
}

fn kind(name: &str) -> Kind {
    let (dir, file) = name.rsplit_once('/').unwrap_or(("", name));
    let is_markdown = std::path::Path::new(file).extension().is_some_and(|it| it == "md");
    match (dir, file) {
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

/// Tells a week that has not ended: a provisional file, which a daemon writes and no `compact` does.
fn is_running_week(name: &str, text: &str) -> bool {
    name.starts_with("memory/weekly/") && text.lines().any(|it| it.trim() == "partial: true")
}

fn is_log(name: &str) -> bool {
    let within = name.strip_prefix("memory/archive/20").map(|it| it.split_once('/'));
    let within = within.map_or_else(|| name.strip_prefix("memory/"), |it| it.map(|it| it.1));
    within.is_some_and(|it| it.starts_with("20") && !it.contains('/'))
}
