//! `memoird rebuild --adopt`: hidden files and database are both lost.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use crate::support::{CommandOutput, Root, line_of};

const WISDOM: &str = "WISDOM.md";
const WEEK: &str = "memory/weekly/2026-W15.md";
const MONTH: &str = "memory/monthly/2026-04.md";
const TOPIC: &str = "memory/project_ovenlog.md";
const LOG: &str = "memory/2026-04-10.md";

/// Returns the logs of the sample folder, compacted.
fn compacted(digest: bool) -> Root {
    let sample = Root::from_data("older-form");
    let mut root = Root::empty("oven");
    root.set_now("2026-05-12T09:00:00+02:00");
    for (path, text) in sample.files() {
        if path == "memoird.yaml" || path.starts_with("memory/2026") {
            root.write(&path, &text);
        }
    }
    run(&root, digest, &["compact"]).ok();
    root
}

fn run(root: &Root, digest: bool, args: &[&str]) -> CommandOutput {
    if digest { root.run_with_digest(args) } else { root.run(args) }
}

/// Removes all hidden files, and the database.
fn lose_both(root: &Root) {
    for path in root.files().into_keys().filter(|it| Root::visible_path(it) != *it) {
        fs::remove_file(root.path(&path)).unwrap();
    }
    fs::remove_dir_all(root.path(".memoird")).unwrap();
}

/// Returns the files; of a record only what can be known again.
fn files(root: &Root) -> BTreeMap<String, String> {
    let without_engine = |(path, text): (String, String)| {
        let text = text.lines().filter(|it| !it.starts_with("  \"engine\"")).collect::<Vec<_>>();
        (path, text.join("\n"))
    };
    root.files().into_iter().map(without_engine).collect()
}

fn visible(root: &Root) -> BTreeMap<String, String> {
    root.files().into_iter().filter(|it| Root::visible_path(&it.0) == it.0).collect()
}

/// Returns the adopted files with the numbers of their items.
fn adopted(report: &Value) -> BTreeMap<String, (u64, u64)> {
    let entries = report["adoption"]["adopted"].as_array().unwrap().iter();
    let counts = |it: &Value| (it["items"].as_u64().unwrap(), it["user_items"].as_u64().unwrap());
    entries.map(|it| (it["path"].as_str().unwrap().to_owned(), counts(it))).collect()
}

#[test]
fn without_adopt_everything_is_the_users_and_nothing_is_overwritten() {
    for digest in [true, false] {
        let root = compacted(digest);
        let before = visible(&root);
        lose_both(&root);
        run(&root, digest, &["rebuild"]).ok();
        root.append(LOG, "- The oven house of OvenLog got a second key\n");
        run(&root, digest, &["compact"]).ok();
        for (path, text) in before.iter().filter(|it| *it.0 != LOG && !it.0.ends_with("MEMORY.md"))
        {
            let after = root.read(path);
            if path == WISDOM {
                let mut kept = text.lines().filter(|it| it.starts_with("- "));
                assert!(kept.all(|it| after.lines().any(|line| line == it)), "{after}");
            } else {
                assert_eq!(after, *text, "{path}");
            }
        }
    }
}

#[test]
fn adopt_takes_all_files_back_as_they_were() {
    for digest in [true, false] {
        let root = compacted(digest);
        let before = files(&root);
        let memories = root.typed_memories();
        assert!(memories.len() >= 3, "{memories:?}");
        lose_both(&root);
        let bare = root.files();
        let preview = run(&root, digest, &["rebuild", "--adopt", "--dry-run", "--json"])
            .ok()
            .json_as("rebuild");
        assert_eq!(root.files(), bare, "a dry run writes nothing");
        assert!(!root.path(".memoird").exists());
        let report = run(&root, digest, &["rebuild", "--adopt", "--json"]).ok().json_as("rebuild");
        assert_eq!(report["adoption"]["left"], json!([]), "{report}");
        assert_eq!(adopted(&report), adopted(&preview));
        let paths: Vec<String> = adopted(&report).into_keys().collect();
        let mut expected = memories.clone();
        expected.extend([WISDOM, WEEK, MONTH].map(str::to_owned));
        expected.sort();
        assert_eq!(paths, expected);
        let users: u64 = adopted(&report).values().map(|it| it.1).sum();
        if digest {
            assert_eq!(users, 0, "{report}");
            assert_eq!(files(&root), before);
        }
        run(&root, digest, &["doctor"]).ok();
        let after = root.files();
        run(&root, digest, &["compact"]).ok();
        assert_eq!(root.files(), after, "nothing has changed since");
        // They are ours again, so they follow the logs.
        root.append(LOG, "- The oven house of OvenLog got a second key\n");
        run(&root, digest, &["compact"]).ok();
        assert!(root.read(WEEK).contains("second key") && root.read(MONTH).contains("second key"));
        run(&root, digest, &["forget", "2026-04-08:4", "--from-log", "--yes"]).ok();
        run(&root, digest, &["compact"]).ok();
        let all: String = root.files().into_values().collect();
        // An entry that was distilled in other words than those of its line is the person's.
        assert!(!digest || !all.contains("light is green"), "{all}");
        assert!(!root.read(WEEK).contains("light is green"));
        run(&root, digest, &["doctor"]).ok();
    }
}

#[test]
fn adopt_takes_back_bullets_that_stayed_while_others_came() {
    let sample = Root::from_data("older-form");
    let mut root = Root::empty("oven");
    root.write("memoird.yaml", "zone: Europe/Berlin\nwisdom:\n  max_chars: 700\n");
    for (path, text) in sample.files() {
        let Some(day) = path.strip_prefix("memory/").and_then(|it| it.strip_suffix(".md")) else {
            continue;
        };
        if day.starts_with("2026-") {
            root.write(&path, &text);
            root.set_now(&format!("{day}T23:50:00+02:00"));
            root.run_with_digest(&["compact", "wisdom"]).ok();
        }
    }
    let before = root.read(WISDOM);
    lose_both(&root);
    let report = root.run_with_digest(&["rebuild", "--adopt", "--json"]).ok().json_as("rebuild");
    assert_eq!(adopted(&report)[WISDOM].1, 0, "{report}");
    root.run_with_digest(&["compact", "wisdom"]).ok();
    assert_eq!(root.read(WISDOM), before);
}

#[test]
fn what_a_person_edited_stays_theirs() {
    let root = compacted(true);
    let edit = |path: &str, from: &str, to: &str| {
        let text = root.read(path);
        assert!(text.contains(from), "{from} in {text}");
        root.write(path, &text.replace(from, to));
    };
    edit(WEEK, "three lines, with the number", "two lines, without the number");
    edit(WEEK, "400 kg", "500 kg");
    // Shorter, in the same words.
    edit(WEEK, "and Marit counted them again ", "");
    edit(WISDOM, "before its light is green", "before Marit is there");
    edit(TOPIC, "every 10 minutes", "every 20 minutes");
    edit("memory/user_owner.md", "long proof than two short ones", "long proof");
    lose_both(&root);
    let edited = visible(&root);
    let report = root.run_with_digest(&["rebuild", "--adopt", "--json"]).ok().json_as("rebuild");
    let found = adopted(&report);
    assert_eq!((found[WEEK].1, found[WISDOM].1, found[TOPIC].1), (3, 1, 1), "{report}");
    assert_eq!(visible(&root), edited, "no visible byte changes");
    root.append(LOG, "- The oven house of OvenLog got a second key\n");
    root.run_with_digest(&["compact"]).ok();
    for (path, kept) in [
        (WEEK, "two lines, without the number"),
        (WEEK, "500 kg"),
        (WEEK, "Marit asked for the loaves of last week, ["),
        (WISDOM, "before Marit is there"),
        (TOPIC, "every 20 minutes"),
        ("memory/user_owner.md", "rather have one long proof,"),
        (WEEK, "second key"),
    ] {
        assert!(root.read(path).contains(kept), "{kept} in {}", root.read(path));
    }
    assert!(!root.read(TOPIC).contains("10 minutes"), "{}", root.read(TOPIC));
}

#[test]
fn a_file_that_is_not_in_our_form_stays_the_users() {
    let root = compacted(true);
    let own = [
        ("memory/weekly/2026-W14.md", "# Week 2026-W14\n\n- Bought bread\n"),
        ("memory/user_jo.md", "---\nname: Jo\ndescription: Baker\ntype: user\n---\n\nJo bakes.\n"),
        (
            "memory/project_mill.md",
            "---\nname: Mill\ndescription: A mill\ntype: project\n---\n\n## State\n\n\
             - It grinds rye [2026-04-08:99]\n- It stands in Vik [2026-04-10:4]\n",
        ),
    ];
    for (path, text) in own {
        root.write(path, text);
    }
    lose_both(&root);
    let report = root.run_with_digest(&["rebuild", "--adopt", "--json"]).ok().json_as("rebuild");
    let left: Vec<&Value> = report["adoption"]["left"].as_array().unwrap().iter().collect();
    let left: Vec<&str> = left.iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(left, ["memory/project_mill.md", "memory/user_jo.md", "memory/weekly/2026-W14.md"]);
    for (path, text) in own {
        assert_eq!(root.read(path), text);
        assert!(!root.path(&Root::record_path(path)).exists(), "{path}");
    }
}

#[test]
fn undo_reverts_an_adoption() {
    let root = compacted(true);
    lose_both(&root);
    let bare = root.files();
    let shown = root.run_with_digest(&["rebuild", "--adopt"]).ok();
    assert!(shown.stdout.contains(&format!("{WEEK}: 10 items\n")), "{shown}");
    let run = shown.stderr.split("`memoird undo ").nth(1).and_then(|it| it.split('`').next());
    root.run_with_digest(&["undo", run.unwrap(), "--yes"]).ok();
    let mut after = root.files();
    after.retain(|it, _| !it.ends_with(".decisions.jsonl"));
    assert_eq!(after, bare);
    // And again.
    root.run_with_digest(&["rebuild", "--adopt"]).ok();
    assert!(root.path(&Root::record_path(WEEK)).exists());
}

#[test]
fn what_the_database_brings_back_is_not_adopted() {
    let root = compacted(true);
    let before = root.files();
    fs::remove_file(root.path(&Root::record_path(WEEK))).unwrap();
    let preview = root.run_with_digest(&["rebuild", "--adopt", "--dry-run"]).ok();
    assert_eq!(preview.stdout, "", "{preview}");
    let report = root.run_with_digest(&["rebuild", "--adopt", "--json"]).ok().json_as("rebuild");
    assert_eq!(
        (&report["adoption"]["run"], &report["adoption"]["adopted"]),
        (&json!(null), &json!([]))
    );
    assert_eq!(root.files(), before);
    assert_eq!(root.run(&["rebuild", "--dry-run"]).code, 2);
}

#[test]
fn beside_an_intact_database_a_file_without_record_stays_the_users() {
    const MILL: &str = "---\nname: Mill\ndescription: A mill\ntype: project\n---\n\n## State\n\n\
         - The mill in Vik grinds rye [2026-04-10:99]\n";
    const JO: &str =
        "---\nname: Jo\ndescription: Baker\ntype: feedback\n---\n\nThe mill in Vik grinds rye.\n";
    let root = compacted(true);
    let log = root.read(LOG) + "- The mill in Vik grinds rye.\n";
    let mill = MILL.replace("99", &log.lines().count().to_string());
    root.write(LOG, &log);
    root.run_with_digest(&["compact"]).ok();
    let write = || {
        root.write("memory/project_mill.md", &mill);
        root.write("memory/feedback_jo.md", JO);
    };
    write();
    for _ in 0..2 {
        let args = ["rebuild", "--adopt", "--json"];
        let dry = root.run_with_digest(&[&args[..], &["--dry-run"]].concat()).ok();
        let report = root.run_with_digest(&args).ok().json_as("rebuild");
        let left = report["adoption"]["left"].as_array().unwrap().iter();
        let left: Vec<&str> = left.map(|it| it["path"].as_str().unwrap()).collect();
        assert_eq!(left, ["memory/feedback_jo.md", "memory/project_mill.md"], "{report}");
        assert_eq!(adopted(&report), BTreeMap::new());
        assert_eq!(dry.json_as("rebuild")["adoption"]["left"], report["adoption"]["left"]);
        root.run_with_digest(&["compact"]).ok();
    }
    // The same of files that were there before memoird.
    let mut before = Root::empty("own");
    before.set_now("2026-05-12T09:00:00+02:00");
    before.write("memoird.yaml", "zone: Europe/Berlin\n");
    let wisdom = "# Notes\n\n## Decisions\n\n- The mill in Vik grinds rye.\n";
    let log = "- The mill in Vik grinds rye.\n- Oiled the mill\n";
    let mill = MILL.replace(" [2026-04-10:99]", "");
    let files = [(LOG, log), ("memory/project_mill.md", &mill), ("memory/feedback_jo.md", JO)];
    files.into_iter().chain([(WISDOM, wisdom)]).for_each(|(path, text)| before.write(path, text));
    before.run(&["compact"]).ok();
    let report = before.run(&["rebuild", "--adopt", "--json"]).ok().json_as("rebuild");
    assert_eq!(adopted(&report), BTreeMap::new(), "{report}");
    assert_eq!(before.read(WISDOM), wisdom);
    // With the database lost, too, nobody knows.
    lose_both(&root);
    write();
    let report = root.run_with_digest(&["rebuild", "--adopt", "--json"]).ok().json_as("rebuild");
    assert!(adopted(&report).contains_key("memory/project_mill.md"), "{report}");
}

#[test]
fn files_that_a_new_database_found_are_adopted_later() {
    for command in ["compact", "rebuild"] {
        let root = compacted(true);
        let memories = root.typed_memories();
        lose_both(&root);
        root.run_with_digest(&[command]).ok();
        let report =
            root.run_with_digest(&["rebuild", "--adopt", "--json"]).ok().json_as("rebuild");
        let found = adopted(&report);
        let all = memories.iter().map(String::as_str).chain([WEEK, MONTH]);
        assert!(all.into_iter().all(|it| found.contains_key(it)), "{command}: {report}");
    }
}

#[test]
fn without_a_week_a_dry_run_and_a_run_take_the_same_files_back() {
    let first_week = || {
        let root = compacted(true);
        for path in [WEEK, MONTH].into_iter().flat_map(|it| [it.to_owned(), Root::record_path(it)])
        {
            fs::remove_file(root.path(&path)).unwrap();
        }
        root
    };
    let all = |root: &Root| {
        let mut all = root.typed_memories();
        all.push(WISDOM.to_owned());
        all.sort();
        all
    };
    let check = |root: &Root, expected: &[String]| {
        let args = ["rebuild", "--adopt", "--json"];
        let dry = root.run_with_digest(&[&args[..], &["--dry-run"]].concat()).ok();
        let (dry, done) =
            (dry.json_as("rebuild"), root.run_with_digest(&args).ok().json_as("rebuild"));
        assert_eq!(adopted(&dry), adopted(&done));
        assert_eq!(dry["adoption"]["left"], done["adoption"]["left"]);
        assert_eq!(adopted(&done).into_keys().collect::<Vec<_>>(), expected, "{done}");
    };
    let root = first_week();
    lose_both(&root);
    check(&root, &all(&root));
    // With a run between.
    let root = first_week();
    lose_both(&root);
    root.run_with_digest(&["compact", "wisdom"]).ok();
    let found = root.run_with_digest(&["rebuild", "--adopt", "--json"]).ok().json_as("rebuild");
    assert!(adopted(&found).contains_key(TOPIC), "{found}");
    // Only some records are lost with the database.
    let root = first_week();
    fs::remove_file(root.path(&Root::record_path(WISDOM))).unwrap();
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    check(&root, &[WISDOM.to_owned()]);
    // A person's files without the form of ours are left by both.
    let mut own = Root::empty("own");
    own.set_now("2026-05-12T09:00:00+02:00");
    own.write("memoird.yaml", "zone: Europe/Berlin\n");
    own.write(LOG, "- The mill in Vik grinds rye.\n");
    own.write(
        "memory/feedback_jo.md",
        "---\nname: Jo\ndescription: Baker\ntype: feedback\n---\n\nThe mill in Vik grinds rye.\n",
    );
    check(&own, &[]);
}

#[test]
fn a_crash_while_files_are_adopted_is_made_good() {
    let clean = compacted(true);
    lose_both(&clean);
    let bare = clean.copy();
    clean.run_with_digest(&["rebuild", "--adopt"]).ok();
    for nth in 1..20 {
        let root = bare.copy();
        let args = ["rebuild", "--adopt"];
        let mut command = root.command(&args);
        command.env("MEMOIRD_WISDOM_DIGEST", "true");
        command.env("MEMOIRD_NOW", "2026-05-12T09:00:00+02:00");
        command.env("MEMOIRD_FAIL", format!("kill@vault.record.place#{nth}"));
        let killed = root.finish(command, &args);
        let mut again = root.command(&args);
        again.env("MEMOIRD_WISDOM_DIGEST", "true");
        again.env("MEMOIRD_NOW", "2026-05-12T09:00:00+02:00");
        root.finish(again, &args).ok();
        assert_eq!(root.files(), clean.files(), "{nth}");
        if killed.code == 0 {
            assert!(nth > 1, "the step is never reached");
            break;
        }
    }
    assert!(line_of(&clean.read(WEEK), "# Week") > 0);
}
