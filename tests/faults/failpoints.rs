//! Every marked step of a command is the last one, or is refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::Path,
};

use super::{
    oracle::{self, Acked},
    root::{Ran, Root, built_program, finish},
    scenario::{FAR_ARCHIVE, SCENARIOS, Stage},
    trials::{Form, Module},
};

const NAME: &str = "failpoints";
/// Steps of a recovering run at which it is killed. Recovery itself is over by then.
const RECOVERY_STEPS_MAX: usize = 16;
/// After one step of the command it is killed at the 1st, 5th, … of them, after the next step at the
/// 2nd, 6th, …
const RECOVERY_STRIDE: usize = 4;
/// Those of them in the short form.
const RECOVERY_STEPS_SHORT: [usize; 4] = [1, 2, 5, 9];

/// Steps that nothing comes after that could fail: a process can only end there.
const LAST_STEPS: [&str; 4] =
    ["commit.recorded", "lineage.write.committed", "recover.intent", "recover.done"];

struct Case<'a> {
    stage: &'a Stage,
    action: &'static str,
    /// `NAME#NTH`.
    step: String,
    /// At which step the run that recovers is killed.
    then: Option<usize>,
}

#[test]
fn every_step_may_be_the_last_one() {
    if cfg!(not(debug_assertions)) {
        return Module::begin(NAME).skip("a release build has no failpoints");
    }
    let only = std::env::var("MEMOIRD_FAULTS_ONLY").ok();
    let reached = disturb(only.as_deref());
    if only.is_none() {
        let missed: Vec<_> = marked().into_iter().filter(|it| !reached.contains(it)).collect();
        assert!(missed.is_empty(), "no scenario passes {missed:?}: add one that does");
    }
}

/// A file that took its name and has no record yet: nothing may be built on it.
#[test]
fn a_pass_refused_between_a_file_and_its_record_ends_there() {
    if cfg!(not(debug_assertions)) {
        return;
    }
    for name in ["compact", "refold"] {
        let stage = stage(name);
        let root = stage.start.copy();
        let trace = root.home().join("trace");
        let mut command = root.command(&built_program(), stage.command);
        command.env("MEMOIRD_FAIL", "eio@commit.placed").env("MEMOIRD_FAIL_TRACE", &trace);
        let ran = finish(command);
        assert_eq!(ran.status.code(), Some(73), "{ran}");
        oracle::told(&ran).unwrap();
        let trace = fs::read_to_string(trace).unwrap();
        let (_, after) = trace.split_once("commit.placed\n").unwrap();
        assert!(!after.contains("vault.") && !after.contains("commit."), "{name}: {after}");
        oracle::check(&stage, &root, &Acked::default()).unwrap();
    }
}

/// What was refused is asked of the disk again, and is not recorded before the disk has it.
#[test]
fn a_write_that_the_disk_refused_is_recorded_when_the_disk_has_it() {
    if cfg!(not(debug_assertions)) {
        return;
    }
    let stage = stage("compact");
    for refused in ["vault.place.sync", "vault.place.read_back"] {
        let root = stage.start.copy();
        let settled = ["vault.settle.file", "vault.settle.folder"];
        for step in [&[refused][..], &settled].concat() {
            let ran = fail(&root, stage.command, &format!("eio@{step}"));
            assert_eq!(ran.status.code(), Some(73), "{step}: {ran}");
            oracle::told(&ran).unwrap();
        }
        let steps = traced(&root.copy(), &["compact"]);
        let at = |name: &str| steps.iter().position(|it| it == name);
        let recorded = at("recover.intent").unwrap();
        for step in settled {
            assert!(at(step).is_some_and(|it| it < recorded), "{step} in {steps:?}");
        }
        oracle::check(&stage, &root, &Acked::default()).unwrap();
    }
}

/// Files or database, early or late: an undo that cannot write says so by its exit code, and how to
/// go on.
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

/// Disturbs the scenarios of those names, or all, and returns the names of the steps they passed.
fn disturb(only: Option<&str>) -> BTreeSet<String> {
    let mut module = Module::begin(NAME);
    let mut steps = 0;
    let mut reached = BTreeSet::new();
    let is_meant = |name: &str| only.is_none_or(|it| it.split(',').any(|it| it == name));
    for scenario in SCENARIOS.iter().filter(|it| is_meant(it.name)) {
        let stage = scenario.stage();
        let passed = steps_of(&stage);
        steps += passed.len();
        let cases = cases(&stage, &passed, &reached);
        reached.extend(passed.iter().map(|it| name_of(it).to_owned()));
        reached.extend(recovery_of(&stage, &passed));
        if !stage.start.is_archive_far() && scenario.name == FAR_ARCHIVE {
            module.note("there is no second disk, so no log is copied");
            reached.extend(marked().into_iter().filter(|it| it.starts_with("archive.copy")));
        }
        module.run(&cases, trial);
    }
    let what = only.map_or_else(|| format!("{} commands", SCENARIOS.len()), str::to_owned);
    module.note(format!("{steps} steps of {what}"));
    module.end();
    reached
}

/// Returns the names of all steps that are marked in the code.
fn marked() -> BTreeSet<String> {
    fn collect(dir: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
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
    // These need a server that plays a model: the tests of the verbs have one, and kill there.
    let elsewhere =
        [include_str!("../it/model/spending.rs"), include_str!("../it/model/batch.rs")].concat();
    let asks = |it: &str| it.starts_with("model.") || it.starts_with("batch.");
    found.retain(|it| !(asks(it) && elsewhere.contains(&format!("\"{it}\""))));
    found
}

/// Returns the steps that the command passes, as `NAME#NTH`.
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

/// Returns the steps that a restart passes after the command was killed in the middle of a write.
fn recovery_of(stage: &Stage, steps: &[String]) -> Vec<String> {
    let Some(step) = steps.iter().rfind(|it| it.starts_with("vault.place.sync")) else {
        return Vec::new();
    };
    let root = stage.start.copy();
    fail(&root, stage.command, &format!("kill@{step}"));
    traced(&root, &["compact"])
}

/// Runs a command to its good end, and returns the names of the steps that it passed.
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

/// A shorter form than the full one refuses no step whose name an earlier scenario `reached`; the quick
/// form does not kill at it either.
fn cases<'a>(stage: &'a Stage, steps: &[String], reached: &BTreeSet<String>) -> Vec<Case<'a>> {
    let case = |action, step: &String, then| Case { stage, action, step: step.clone(), then };
    let mut cases = Vec::new();
    if Form::requested() == Form::Full {
        for (i, step) in steps.iter().enumerate() {
            cases.push(case("kill", step, None));
            if can_fail(step) {
                cases.extend(["enospc", "eio"].map(|action| case(action, step, None)));
            }
            let then = (1..=RECOVERY_STEPS_MAX).skip(i % RECOVERY_STRIDE).step_by(RECOVERY_STRIDE);
            cases.extend(then.map(|then| case("kill", step, Some(then))));
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
    // Where most is under way: the last file of the command.
    for name in ["vault.place.rename", "vault.place.sync", "vault.place.verify"] {
        if let Some(step) = steps.iter().rfind(|it| it.starts_with(name)) {
            cases.extend(RECOVERY_STEPS_SHORT.map(|then| case("kill", step, Some(then))));
        }
    }
    cases
}

fn can_fail(step: &str) -> bool {
    !LAST_STEPS.iter().any(|it| step.starts_with(it))
}

fn trial(case: &Case<'_>) -> Result<(), String> {
    let Case { stage, action, step, then } = case;
    let root = stage.start.copy();
    let ran = fail(&root, stage.command, &format!("{action}@{step}"));
    if *action == "kill" && !ran.is_killed() {
        return Err(format!("the step is not reached\n{ran}"));
    }
    if *action != "kill" {
        oracle::told(&ran)?;
    }
    if let Some(then) = then {
        fail(&root, &["compact"], &format!("kill@{then}"));
    }
    oracle::check(stage, &root, &Acked { done: ran.is_done(), ..Acked::default() })
}

fn fail(root: &Root, args: &[&str], fault: &str) -> Ran {
    let mut command = root.command(&built_program(), args);
    command.env("MEMOIRD_FAIL", fault);
    finish(command)
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}@{}", self.stage.name, self.action, self.step)?;
        self.then.map_or(Ok(()), |then| write!(f, ", then kill@{then} of the restart"))
    }
}
