//! A kill at any step of a push or a pull: the store and the root have the old or the new state.

use std::{collections::BTreeMap, fs};

use crate::{
    Store, assert_same_files,
    dice::Dice,
    pulled, report, size,
    support::{Root, files::Files},
};

/// The steps of this feature; a test at the end of this file compares them with the source.
const STEPS: [&str; 16] = [
    "bundle.database.begin",
    "bundle.database.replaced",
    "bundle.pull.applied",
    "bundle.pull.database",
    "bundle.pull.decisions",
    "bundle.pull.fetched",
    "bundle.pull.file",
    "bundle.pull.noted",
    "bundle.pull.object",
    "bundle.pull.recorded",
    "bundle.push.manifest",
    "bundle.push.object",
    "bundle.push.published",
    "bundle.remove.done",
    "bundle.remove.object",
    "bundle.sweep.object",
];

/// The day of the first line of kills in a row.
const START: chrono::NaiveDate = chrono::NaiveDate::from_ymd_opt(2026, 4, 14).unwrap();

/// When the second generation is made.
const LATER: &str = "2026-04-21T09:00:00+02:00";

/// Runs a command and returns its steps, as `NAME#NTH`.
fn traced(root: &Root, args: &[&str]) -> Vec<String> {
    let trace = root.home("trace");
    drop(fs::remove_file(&trace));
    let mut command = root.command(args);
    command.env("MEMOIRD_FAIL_TRACE", &trace);
    root.finish(command, args);
    let mut hits = BTreeMap::<String, usize>::new();
    let steps = fs::read_to_string(trace).unwrap_or_default();
    let mut number = |name: &str| {
        let nth = hits.entry(name.to_owned()).or_default();
        *nth += 1;
        format!("{name}#{nth}")
    };
    steps.lines().map(&mut number).collect()
}

/// Kills a command at a step.
fn kill(root: &Root, args: &[&str], step: &str) {
    let mut command = root.command(args);
    command.env("MEMOIRD_FAIL", format!("kill@{step}"));
    let killed = root.finish(command, args);
    assert_eq!(killed.code, -1, "{step}: {killed}");
}

/// Returns the first and the last hit of each step.
fn first_and_last(steps: Vec<String>) -> Vec<String> {
    let mut by_name = BTreeMap::<String, Vec<String>>::new();
    for step in steps {
        let name = step.split('#').next().unwrap().to_owned();
        by_name.entry(name).or_default().push(step);
    }
    by_name
        .into_values()
        .flat_map(|mut it| {
            let last = it.pop();
            it.truncate(1);
            it.into_iter().chain(last)
        })
        .collect()
}

/// Returns a store with two generations, the machine that published them, and the files of both generations.
fn two_generations() -> (Store, Root, Files, Files) {
    let store = Store::new();
    let mut here = Root::small();
    here.write("memoird.yaml", "agent_name: Small\nzone: Europe/Berlin\n");
    here.run_with_digest(&["compact"]).ok();
    here.run(&["bundle", "push", &store.url()]).ok();
    let old = here.files();
    here.set_now(LATER);
    here.write(
        "memory/2026-04-14.md",
        "# 2026-04-14\n\n- The west crane is red, decided for good\n",
    );
    fs::remove_file(here.path("memory/2026-03-03.md")).unwrap();
    here.run_with_digest(&["compact"]).ok();
    let new = here.files();
    (store, here, old, new)
}

#[test]
fn a_push_that_is_killed_publishes_all_or_nothing() {
    let steps = {
        let (_store, here, ..) = two_generations();
        first_and_last(traced(&here, &["bundle", "push"]))
    };
    assert!(steps.len() > 5, "{steps:?}");
    for step in steps {
        let (store, here, old, new) = two_generations();
        kill(&here, &["bundle", "push"], &step);
        let mut seen = pulled(&store.url());
        seen.set_now(LATER);
        let files = seen.files();
        assert!(files == old || files == new, "{step}");
        seen.run(&["doctor"]).ok();
        here.run(&["bundle", "push"]).ok();
        seen.run(&["bundle", "pull"]).ok();
        assert!(seen.files() == new, "{step}");
    }
}

#[test]
fn a_pull_that_is_killed_is_finished_by_the_next_command_that_writes() {
    let stage = || {
        let (store, here, ..) = two_generations();
        // The other machine has the first generation.
        let there = pulled(&store.url());
        here.run(&["bundle", "push"]).ok();
        (store, here, there)
    };
    let steps = {
        let (_store, _here, there) = stage();
        first_and_last(traced(&there, &["bundle", "pull"]))
    };
    assert!(steps.iter().any(|it| it.starts_with("bundle.database.replaced")), "{steps:?}");
    for (number, step) in steps.into_iter().enumerate() {
        let (_store, here, mut there) = stage();
        let old = there.files();
        kill(&there, &["bundle", "pull"], &step);
        let left = there.files().into_iter().filter(|it| !it.0.contains(".memoird-tmp-"));
        for (path, text) in left {
            let versions = [old.get(&path), here.files().get(&path)].map(Option::<&_>::cloned);
            assert!(versions.contains(&Some(text)), "{step}: {path} is neither old nor new");
        }
        // Half of a pull must not look like the edits of a person.
        there.set_now(LATER);
        // Before this note the pull was not decided, and a run is one of the old files.
        if number % 2 == 0 && there.path(".memoird/bundle-incoming.json").exists() {
            there.run_with_digest(&["compact"]).ok();
        }
        there.run(&["bundle", "pull"]).ok();
        assert_same_files(&here, &there);
        let pushed = there.run(&["bundle", "push", "--json"]).ok().json();
        assert_eq!(pushed["published"], serde_json::json!([]), "{step}");
        there.run(&["doctor"]).ok();
    }
}

/// Makes all objects of a store older than the grace of garbage.
fn age_objects(store: &Store) {
    for path in store.objects() {
        let file = fs::File::options().write(true).open(path).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        file.set_modified(modified - std::time::Duration::from_secs(25 * 3600)).unwrap();
    }
}

#[test]
fn a_removal_of_garbage_that_is_killed_is_done_by_a_later_push() {
    let (store, mut here, ..) = two_generations();
    let unused = |store: &Store| {
        let named = store.manifest()["objects"].clone();
        let is_named = |it: &std::path::PathBuf| {
            named.get(it.file_name().unwrap().to_str().unwrap()).is_some()
        };
        store.objects().iter().filter(|it| !is_named(it)).count()
    };
    for _ in 0..2 {
        here.run(&["log", "One more"]).ok();
        kill(&here, &["bundle", "push"], "bundle.push.manifest");
    }
    here.run(&["bundle", "push"]).ok();
    age_objects(&store);
    let before = unused(&store);
    assert!(before > 1, "{before}");
    here.set_now("2026-04-23T09:00:00+02:00");
    here.run(&["log", "One more"]).ok();
    kill(&here, &["bundle", "push"], "bundle.sweep.object#2");
    let left = unused(&store);
    assert!(left > 0, "{left}");
    let mut seen = pulled(&store.url());
    seen.set_now("2026-04-23T09:00:00+02:00");
    seen.run(&["doctor"]).ok();
    age_objects(&store);
    here.set_now("2026-04-25T09:00:00+02:00");
    here.run(&["log", "One more"]).ok();
    here.run(&["bundle", "push"]).ok();
    // What the manifest before named is left for whoever reads it at this moment.
    assert!(unused(&store) < left, "{left}");
    assert_same_files(&here, &pulled(&store.url()));
}

#[test]
fn a_merge_of_decisions_that_is_killed_is_finished() {
    let store = Store::new();
    let decisions = "memory/.decisions.jsonl";
    let line = |digit: &str| {
        format!(
            "{{\"at\":\"2026-04-13T07:00:0{digit}Z\",\"what\":\"forgotten\",\"path\":\"\",\"hashes\":[\"{}\"]}}\n",
            digit.repeat(16)
        )
    };
    let here = Root::small();
    here.write(decisions, &line("0"));
    here.run(&["bundle", "push", &store.url()]).ok();
    let there = pulled(&store.url());
    here.append(decisions, &line("1"));
    there.append(decisions, &line("2"));
    here.run(&["bundle", "push"]).ok();
    kill(&there, &["bundle", "pull"], "bundle.pull.decisions");
    there.run(&["bundle", "pull"]).ok();
    let text = there.read(decisions);
    for digit in ["0", "1", "2"] {
        assert_eq!(text.matches(line(digit).trim()).count(), 1, "{text}");
    }
    there.run(&["bundle", "push"]).ok();
    here.run(&["bundle", "pull"]).ok();
    assert_same_files(&here, &there);
}

#[test]
fn kills_in_a_row_lose_no_published_line() {
    const DAYS: u64 = 28;
    let kills_max = size("MEMOIRD_FLEET_STEP_KILLS", 24);
    let steps = |of: &str| STEPS.into_iter().filter(|it| it.starts_with(of)).collect::<Vec<_>>();
    let (of_push, of_pull) = (steps("bundle.push"), steps("bundle.pull"));
    let of_pull = [of_pull, steps("bundle.database")].concat();
    let store = Store::new();
    let (mut here, mut there) = (Root::small(), Root::empty("mara"));
    for root in [&mut here, &mut there] {
        root.set_now("2026-05-18T09:00:00+02:00");
    }
    here.run(&["bundle", "push", &store.url()]).ok();
    there.run(&["bundle", "pull", &store.url(), "--root", "."]).ok();
    let mut dice = Dice(11);
    let (mut kills, mut rounds) = (0, 0_usize);
    let mut pick = |steps: &[&str]| {
        let step = steps[usize::try_from(dice.below(steps.len() as u64)).unwrap()];
        format!("{step}#{}", 1 + dice.below(2))
    };
    let mut killed = |root: &Root, args: &[&str], step: String| {
        let mut command = root.command(args);
        command.env("MEMOIRD_FAIL", format!("kill@{step}"));
        let ended = root.finish(command, args);
        // A step that is not reached kills nothing.
        assert!(matches!(ended.code, -1 | 0), "{step}: {ended}");
        kills += usize::from(ended.code == -1);
        kills
    };
    loop {
        let old = here.files();
        let date = START + chrono::Days::new(rounds as u64 % DAYS);
        let path = format!("memory/{date}.md");
        if !here.path(&path).exists() {
            here.write(&path, &format!("# {date}\n\n"));
        }
        here.append(&path, &format!("- Lot {rounds} arrived, decided to keep it\n"));
        if rounds.is_multiple_of(5) {
            here.run_with_digest(&["compact"]).ok();
        }
        let new = here.files();
        killed(&here, &["bundle", "push"], pick(&of_push));
        let done = killed(&there, &["bundle", "pull"], pick(&of_pull));
        // Finishes what was decided, and brings all of one generation.
        there.run(&["bundle", "pull"]).ok();
        let found = there.files();
        assert!(found == old || found == new, "round {rounds}");
        here.run(&["bundle", "push"]).ok();
        there.run(&["bundle", "pull"]).ok();
        assert!(there.files() == new, "round {rounds}");
        rounds += 1;
        if done >= kills_max {
            break;
        }
    }
    for root in [&here, &there] {
        root.run(&["doctor"]).ok();
    }
    report(&format!(
        "{kills_max} kills at steps of push and pull in {rounds} rounds, nothing lost"
    ));
}

#[test]
fn each_step_is_listed() {
    fn collect(dir: &std::path::Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else {
                let text = fs::read_to_string(path).unwrap_or_default();
                let names = text.split('"').filter(|it| it.starts_with("bundle.") && it.len() < 40);
                found.extend(names.map(str::to_owned));
            }
        }
    }
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    collect(&src.join("fleet"), &mut found);
    collect(&src.join("store"), &mut found);
    found.sort();
    found.dedup();
    let mut listed = STEPS.map(str::to_owned).to_vec();
    listed.sort();
    assert_eq!(found, listed);
}
