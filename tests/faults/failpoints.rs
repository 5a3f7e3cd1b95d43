//! Every marked step of a command is the last one, or is refused.

use std::{collections::BTreeMap, fmt, fs};

use super::{
    oracle::{self, Acked},
    root::{Ran, Root, built_program, finish},
    scenario::{SCENARIOS, Stage},
    trials::{Module, is_full},
};

/// Steps of a recovering run at which it is killed in turn. Recovery itself is over by then.
const RECOVERY_STEPS_MAX: usize = 16;
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
    let mut module = Module::begin("failpoints");
    if cfg!(not(debug_assertions)) {
        return module.skip("a release build has no failpoints");
    }
    let mut steps = 0;
    for scenario in SCENARIOS {
        let stage = scenario.stage();
        let passed = steps_of(&stage);
        steps += passed.len();
        module.run(&cases(&stage, &passed), trial);
    }
    module.note(format!("{steps} steps of {} commands", SCENARIOS.len()));
    module.end();
}

/// Returns the steps that the command passes, as `NAME#NTH`.
fn steps_of(stage: &Stage) -> Vec<String> {
    let root = stage.start.copy();
    let trace = root.home().join("trace");
    let mut command = root.command(&built_program(), stage.command);
    command.env("MEMOIRD_FAIL_TRACE", &trace);
    finish(command).ok();
    let mut hits = BTreeMap::<&str, usize>::new();
    let text = fs::read_to_string(trace).unwrap();
    let steps = text.lines().map(|name| {
        let nth = hits.entry(name).or_default();
        *nth += 1;
        format!("{name}#{nth}")
    });
    steps.collect()
}

fn cases<'a>(stage: &'a Stage, steps: &[String]) -> Vec<Case<'a>> {
    let case = |action, step: &String, then| Case { stage, action, step: step.clone(), then };
    let mut cases = Vec::new();
    if is_full() {
        for step in steps {
            cases.push(case("kill", step, None));
            if can_fail(step) {
                cases.extend(["enospc", "eio"].map(|action| case(action, step, None)));
            }
            let then = 1..=RECOVERY_STEPS_MAX;
            cases.extend(then.map(|then| case("kill", step, Some(then))));
        }
        return cases;
    }
    let mut ends = BTreeMap::<&str, (&String, &String)>::new();
    for step in steps {
        let name = step.split('#').next().unwrap();
        ends.entry(name).or_insert((step, step)).1 = step;
    }
    for (first, last) in ends.into_values() {
        cases.push(case("kill", first, None));
        if can_fail(first) {
            cases.extend([case("enospc", first, None), case("eio", last, None)]);
        }
        if first != last {
            cases.push(case("kill", last, None));
        }
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
