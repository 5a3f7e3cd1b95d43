//! A kill or an error at every marked step of a command.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::Path,
};

use super::{
    oracle::{self, Acknowledged},
    root::{CommandOutput, Root, built_program, finish},
    scenario::{OTHER_DISK_ARCHIVE, SCENARIOS, Stage},
    trials::{Form, Module},
};

const NAME: &str = "failpoints";
/// The recovering run is killed at one of its first steps up to this one. Recovery itself is over by
/// then.
const RECOVERY_STEPS_MAX: usize = 16;
/// After a kill at one step of the command, recovery is killed at its 1st, 5th, … step; for the next
/// step at its 2nd, 6th, …
const RECOVERY_STRIDE: usize = 4;
/// The steps of recovery in the shorter forms.
const RECOVERY_STEPS_SHORT: [usize; 4] = [1, 2, 5, 9];

/// Steps after which nothing can fail: only a kill makes sense there.
const LAST_STEPS: [&str; 4] =
    ["commit.recorded", "lineage.write.committed", "recover.intent", "recover.done"];

struct Case<'a> {
    stage: &'a Stage,
    action: &'static str,
    /// `NAME#NTH`.
    step: String,
    /// The step at which the recovering run is killed.
    recovery_step: Option<usize>,
}

#[test]
fn a_kill_or_error_at_any_step_loses_nothing() {
    if cfg!(not(debug_assertions)) {
        return Module::begin(NAME).skip("a release build has no failpoints");
    }
    let only = std::env::var("MEMOIRD_FAULTS_ONLY").ok();
    let reached = test_scenarios(only.as_deref());
    if only.is_none() {
        let missed: Vec<_> =
            marked_steps().into_iter().filter(|it| !reached.contains(it)).collect();
        assert!(missed.is_empty(), "no scenario reaches {missed:?}: add one that does");
    }
}

/// Nothing may be derived from a placed file without a record.
#[test]
fn a_run_stops_when_a_placed_file_cannot_be_recorded() {
    if cfg!(not(debug_assertions)) {
        return;
    }
    for name in ["compact", "late line"] {
        let stage = stage(name);
        let root = stage.start.copy();
        let trace = root.home().join("trace");
        let mut command = root.command(&built_program(), stage.command);
        command.env("MEMOIRD_FAIL", "eio@commit.placed").env("MEMOIRD_FAIL_TRACE", &trace);
        let ran = finish(command);
        assert_eq!(ran.status.code(), Some(73), "{ran}");
        oracle::check_failure_reported(&ran).unwrap();
        let trace = fs::read_to_string(trace).unwrap();
        let (_, after) = trace.split_once("commit.placed\n").unwrap();
        assert!(!after.contains("vault.") && !after.contains("commit."), "{name}: {after}");
        oracle::check(&stage, &root, &Acknowledged::default()).unwrap();
    }
}

/// A refused sync is repeated, and the file is recorded only after it succeeded.
#[test]
fn a_refused_write_is_recorded_only_once_it_is_on_disk() {
    if cfg!(not(debug_assertions)) {
        return;
    }
    let stage = stage("compact");
    for refused in ["vault.place.sync", "vault.place.read_back"] {
        let root = stage.start.copy();
        let sync_steps = ["vault.settle.file", "vault.settle.folder"];
        for step in [&[refused][..], &sync_steps].concat() {
            let ran = fail(&root, stage.command, &format!("eio@{step}"));
            assert_eq!(ran.status.code(), Some(73), "{step}: {ran}");
            oracle::check_failure_reported(&ran).unwrap();
        }
        let steps = traced(&root.copy(), &["compact"]);
        let at = |name: &str| steps.iter().position(|it| it == name);
        let recorded = at("recover.intent").unwrap();
        for step in sync_steps {
            assert!(at(step).is_some_and(|it| it < recorded), "{step} in {steps:?}");
        }
        oracle::check(&stage, &root, &Acknowledged::default()).unwrap();
    }
}

/// At any step, in files or in the database, the message names the command to continue.
#[test]
fn an_undo_that_cannot_write_ends_73_and_says_how_to_go_on() {
    if cfg!(not(debug_assertions)) {
        return;
    }
    let scenario = SCENARIOS.iter().find(|it| it.name == "undo with later").unwrap();
    let mut start = Root::new();
    (scenario.prepare)(&mut start);
    for step in [
        "undo.noted",
        "undo.receipts",
        "undo.decided",
        "vault.place.sync",
        "commit.placed",
        "undo.written",
        "undo.index",
        "undo.taken",
    ] {
        let root = start.copy();
        let ran = fail(&root, scenario.command, &format!("enospc@{step}"));
        assert_eq!(ran.status.code(), Some(73), "{step}: {ran}");
        for words in ["only partly undone", "memoird undo 1 --with-later"] {
            assert!(ran.stderr.contains(words), "{step}: {ran}");
        }
    }
    let steps = {
        let root = start.copy();
        traced(&root, scenario.command)
    };
    let begun = steps.iter().position(|it| it == "undo.noted").unwrap();
    let before = |it: &&String| **it == "lineage.write.changed";
    let nth = 1 + steps[..begun].iter().filter(before).count();
    let ran = fail(&start.copy(), scenario.command, &format!("enospc@lineage.write.changed#{nth}"));
    assert_eq!(ran.status.code(), Some(73), "{ran}");
    assert!(ran.stderr.contains("only partly undone"), "{ran}");
}

fn stage(name: &str) -> Stage {
    SCENARIOS.iter().find(|it| it.name == name).unwrap().stage()
}

/// Tests the scenarios of these names, or all, and returns the names of the steps that they reach.
fn test_scenarios(only: Option<&str>) -> BTreeSet<String> {
    let mut module = Module::begin(NAME);
    let mut steps = 0;
    let mut reached = BTreeSet::new();
    let is_selected = |name: &str| only.is_none_or(|it| it.split(',').any(|it| it == name));
    for scenario in SCENARIOS.iter().filter(|it| is_selected(it.name)) {
        let stage = scenario.stage();
        let passed = steps_of(&stage);
        steps += passed.len();
        let cases = cases(&stage, &passed, &reached);
        reached.extend(passed.iter().map(|it| name_of(it).to_owned()));
        reached.extend(recovery_of(&stage, &passed));
        if !stage.start.has_archive_on_other_disk() && scenario.name == OTHER_DISK_ARCHIVE {
            module.note("there is no second disk, so no log is copied");
            reached.extend(marked_steps().into_iter().filter(|it| it.starts_with("archive.copy")));
        }
        module.run(&cases, trial);
    }
    let what = only.map_or_else(|| format!("{} commands", SCENARIOS.len()), str::to_owned);
    module.note(format!("{steps} steps of {what}"));
    module.end();
    reached
}

/// Returns the names of all steps that are marked in the source code.
fn marked_steps() -> BTreeSet<String> {
    fn collect(dir: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
                continue;
            }
            if path.extension().is_none_or(|it| it != "rs") {
                continue;
            }
            let text = fs::read_to_string(path).unwrap();
            for marker in ["failpoint::at(\"", "passed(\"", "step(\""] {
                let names = text.split(marker).skip(1).filter_map(|it| it.split('"').next());
                found.extend(names.map(str::to_owned));
            }
        }
    }
    let mut found = BTreeSet::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    // These steps need a model server; the integration tests have one and kill there.
    let integration_tests =
        [include_str!("../it/model/spending.rs"), include_str!("../it/model/batch.rs")].concat();
    let needs_model = |it: &str| it.starts_with("model.") || it.starts_with("batch.");
    found.retain(|it| !(needs_model(it) && integration_tests.contains(&format!("\"{it}\""))));
    // These are in builds with the feature `fleet`, whose own tests kill there.
    let fleet_tests = include_str!("../fleet/kills.rs");
    found.retain(|it| !(it.starts_with("bundle.") && fleet_tests.contains(&format!("\"{it}\""))));
    found
}

/// Returns the steps of the command, as `NAME#NTH`.
fn steps_of(stage: &Stage) -> Vec<String> {
    let root = stage.start.copy();
    let mut hits = BTreeMap::<String, usize>::new();
    let steps = traced(&root, stage.command).into_iter().map(|name| {
        let nth = hits.entry(name.clone()).or_default();
        *nth += 1;
        format!("{name}#{nth}")
    });
    steps.collect()
}

/// Returns the steps of a restart after a kill in the middle of a write.
fn recovery_of(stage: &Stage, steps: &[String]) -> Vec<String> {
    let Some(step) = steps.iter().rfind(|it| it.starts_with("vault.place.sync")) else {
        return Vec::new();
    };
    let root = stage.start.copy();
    fail(&root, stage.command, &format!("kill@{step}"));
    traced(&root, &["compact"])
}

/// Runs a command successfully and returns the names of its steps.
fn traced(root: &Root, args: &[&str]) -> Vec<String> {
    let trace = root.home().join("trace");
    let mut command = root.command(&built_program(), args);
    command.env("MEMOIRD_FAIL_TRACE", &trace);
    finish(command).ok();
    let text = fs::read_to_string(trace).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn name_of(step: &str) -> &str {
    step.split('#').next().unwrap()
}

/// Returns the cases of a scenario. The shorter forms make no errors at steps whose name an earlier
/// scenario `reached`; the quick form does not kill there either.
fn cases<'a>(stage: &'a Stage, steps: &[String], reached: &BTreeSet<String>) -> Vec<Case<'a>> {
    let case = |action, step: &String, recovery_step| Case {
        stage,
        action,
        step: step.clone(),
        recovery_step,
    };
    let mut cases = Vec::new();
    if Form::requested() == Form::Full {
        for (i, step) in steps.iter().enumerate() {
            cases.push(case("kill", step, None));
            if can_fail(step) {
                cases.extend(["enospc", "eio"].map(|action| case(action, step, None)));
            }
            let recovery_steps =
                (1..=RECOVERY_STEPS_MAX).skip(i % RECOVERY_STRIDE).step_by(RECOVERY_STRIDE);
            cases.extend(recovery_steps.map(|it| case("kill", step, Some(it))));
        }
        return cases;
    }
    let mut ends = BTreeMap::<&str, (&String, &String)>::new();
    for step in steps {
        ends.entry(name_of(step)).or_insert((step, step)).1 = step;
    }
    let is_quick = Form::requested() == Form::Quick;
    if is_quick {
        ends.retain(|name, _| !reached.contains(*name));
    }
    for (first, last) in ends.into_values() {
        cases.push(case("kill", first, None));
        if can_fail(first) && !reached.contains(name_of(first)) {
            cases.extend([case("enospc", first, None), case("eio", last, None)]);
        }
        if first != last && !is_quick {
            cases.push(case("kill", last, None));
        }
    }
    if is_quick && cases.is_empty() {
        return cases;
    }
    // Kills during recovery, after a kill at the last file of the command, where most can go wrong.
    for name in ["vault.place.rename", "vault.place.sync", "vault.place.verify"] {
        if let Some(step) = steps.iter().rfind(|it| it.starts_with(name)) {
            cases.extend(RECOVERY_STEPS_SHORT.map(|it| case("kill", step, Some(it))));
        }
    }
    cases
}

fn can_fail(step: &str) -> bool {
    !LAST_STEPS.iter().any(|it| step.starts_with(it))
}

fn trial(case: &Case<'_>) -> Result<(), String> {
    let Case { stage, action, step, recovery_step } = case;
    let root = stage.start.copy();
    let ran = fail(&root, stage.command, &format!("{action}@{step}"));
    if *action == "kill" && !ran.is_killed() {
        return Err(format!("the step was not reached\n{ran}"));
    }
    if *action != "kill" {
        oracle::check_failure_reported(&ran)?;
    }
    if let Some(recovery_step) = recovery_step {
        fail(&root, &["compact"], &format!("kill@{recovery_step}"));
    }
    oracle::check(stage, &root, &Acknowledged { done: ran.is_done(), ..Acknowledged::default() })
}

fn fail(root: &Root, args: &[&str], fault: &str) -> CommandOutput {
    let mut command = root.command(&built_program(), args);
    command.env("MEMOIRD_FAIL", fault);
    finish(command)
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}@{}", self.stage.name, self.action, self.step)?;
        self.recovery_step.map_or(Ok(()), |step| write!(f, ", then kill@{step} of the restart"))
    }
}
