//! `memoird upgrade`, and folders of a format that is newer or older.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{Root, line_of};

const WISDOM: &str = "WISDOM.md";
const WEEK: &str = "memory/weekly/2026-W15.md";
const MONTH: &str = "memory/monthly/2026-04.md";
/// A memory of one statement that a person edited.
const EDITED: &str = "memory/user_marit-one-long-proof-two-short.md";
/// Those whose statements are in memories about a topic afterwards.
const JOINED: [&str; 3] = [
    "memory/feedback_never-open-north-oven-before-light.md",
    "memory/project_decided-keep-recipes-ovenlog-plain-text.md",
    "memory/user_marit-prefers-morning-report-three-lines.md",
];

/// Returns a folder as a version without hidden files wrote it. A person edited a bullet, added one, and edited
/// a memory.
fn older() -> Root {
    let mut root = Root::from_data("older-form");
    root.set_now("2026-05-12T09:00:00+02:00");
    root
}

fn without_decisions(root: &Root) -> BTreeMap<String, String> {
    let mut files = root.files();
    files.retain(|it, _| !it.ends_with(".decisions.jsonl"));
    files
}

#[test]
fn a_folder_of_the_older_form_is_upgraded_in_one_run_with_edits_kept() {
    let root = older();
    let before = root.files();
    let preview = root.run_with_digest(&["upgrade", "--dry-run", "--json"]).ok().json_as("upgrade");
    assert_eq!(root.files(), before);
    let refused = root.run_with_digest(&["upgrade"]);
    insta::assert_snapshot!(refused, @r"
    $ memoird upgrade
    WISDOM.md: is written in the present form
    memory/feedback_how-to-work.md: gets statements that had a file of their own
    memory/feedback_never-open-north-oven-before-light.md: is removed: its statement is in the memory about its topic
    memory/monthly/2026-04.md: is written in the present form
    memory/project_decided-keep-recipes-ovenlog-plain-text.md: is removed: its statement is in the memory about its topic
    memory/project_ovenlog.md: gets statements that had a file of their own
    memory/user_marit-one-long-proof-two-short.md: is written in the present form
    memory/user_marit-prefers-morning-report-three-lines.md: is removed: its statement is in the memory about its topic
    memory/user_people.md: gets statements that had a file of their own
    memory/weekly/2026-W15.md: is written in the present form
    memoird.yaml: names the format, so that an older memoird refuses the folder
    ! error: upgrading needs confirmation
    !   try: memoird upgrade --dry-run
    !   try: memoird upgrade --yes
    [exit 2]
    ");
    assert_eq!(root.files(), before);
    let report = root.run_with_digest(&["upgrade", "--yes", "--json"]).ok().json_as("upgrade");
    assert_eq!(report["files"], preview["files"]);
    let files = root.files();
    for (path, text) in
        files.iter().filter(|it| Root::visible_path(it.0) == *it.0 && *it.0 != "memory/MEMORY.md")
    {
        assert!(!text.contains("<!--") && !text.contains("memoird:"), "{path}: {text}");
    }
    for path in [WISDOM, WEEK, MONTH, EDITED] {
        assert!(files.contains_key(&Root::record_path(path)), "{path}");
        // Only what is recorded left the visible file.
        let old: Vec<&str> = before[path].lines().collect();
        assert!(files[path].lines().all(|it| old.contains(&it)), "{path}: {}", files[path]);
    }
    for path in JOINED {
        assert!(!files.contains_key(path), "{path}");
    }
    assert!(files["memory/user_people.md"].contains(
        "- Marit prefers the morning report in three lines, with the number of loaves first [2026-04-08:5]\n"
    ));
    assert!(files["memory/MEMORY.md"].contains("(project_ovenlog.md)"));
    assert!(files["memoird.yaml"].contains("\nformat: 2  #"));
    let again = root.run_with_digest(&["upgrade", "--yes", "--json"]).ok().json_as("upgrade");
    assert_eq!((&again["run"], &again["files"]), (&json!(null), &json!([])));
    root.run_with_digest(&["doctor"]).ok();
    // Edits are still the person's.
    root.append("memory/2026-04-10.md", "- The oven house of OvenLog got a second key\n");
    root.run_with_digest(&["compact"]).ok();
    let week = root.read(WEEK);
    assert!(week.contains("the wide one [2026-04-09:5]\n- Ask the mill for rye\n"), "{week}");
    assert!(week.contains("second key") && week.matches("Order a new seal").count() == 1, "{week}");
    assert_eq!(root.read(EDITED), files[EDITED]);
    root.run_with_digest(&["doctor"]).ok();
}

#[test]
fn undo_brings_the_older_bytes_back() {
    let root = older();
    root.run_with_digest(&["status"]).ok();
    let before = without_decisions(&root);
    let shown = root.run_with_digest(&["upgrade", "--yes"]).ok();
    let run = shown.stderr.split("`memoird undo ").nth(1).and_then(|it| it.split('`').next());
    root.run_with_digest(&["undo", run.unwrap(), "--yes"]).ok();
    let mut after = without_decisions(&root);
    after.insert("memoird.yaml".to_owned(), before["memoird.yaml"].clone());
    assert_eq!(after, before);
}

#[test]
fn citations_of_lines_that_move_follow_and_no_month_is_distilled_again() {
    let root = older();
    root.run_with_digest(&["compact"]).ok();
    let cited = |root: &Root| {
        format!("- Ask the mill for rye [2026-W15:{}]\n", line_of(&root.read(WEEK), "rye"))
    };
    let before = cited(&root);
    assert!(root.read(MONTH).contains(&before), "{}", root.read(MONTH));
    root.run_with_digest(&["upgrade", "--yes"]).ok();
    assert_ne!(cited(&root), before);
    assert!(root.read(MONTH).contains(&cited(&root)), "{}", root.read(MONTH));
    let jobs = root.run_with_digest(&["compact", "--json"]).ok().json()["jobs"].clone();
    let periods: Vec<_> = jobs.as_array().unwrap().iter().map(|it| &it["period"]).collect();
    assert!(!periods.contains(&&json!("2026-04")), "{jobs}");
    root.run_with_digest(&["doctor"]).ok();
}

#[test]
fn without_memories_by_topic_memories_of_one_statement_keep_their_files() {
    let root = older();
    root.run(&["upgrade", "--yes"]).ok();
    for path in JOINED {
        assert!(root.path(path).exists() && root.path(&Root::record_path(path)).exists(), "{path}");
        assert!(!root.read(path).contains("memoird:"), "{path}");
    }
}

#[test]
fn a_statement_stays_where_no_file_of_ours_takes_it() {
    let root = older();
    let own = "---\nname: People\ndescription: The baker\ntype: user\n---\n\n## Preferences\n\n- Rye before wheat\n";
    root.write("memory/user_people.md", own);
    root.run_with_digest(&["upgrade", "--yes"]).ok();
    let [rule, decision, preference] = JOINED;
    assert!(!root.path(rule).exists() && !root.path(decision).exists());
    assert!(root.read(preference).contains("three lines"));
    assert!(root.path(&Root::record_path(preference)).exists());
    assert_eq!(root.read("memory/user_people.md"), own);
}

#[test]
fn a_folder_of_a_newer_format_is_refused_by_name_and_nothing_is_written() {
    let root = older();
    root.append("memoird.yaml", "format: 3\nlayout: something new\n");
    let before = root.files();
    for args in [
        &["compact"][..],
        &["status"],
        &["context"],
        &["log", "A new line"],
        &["rebuild", "--adopt"],
        &["upgrade", "--yes"],
        &["doctor", "--repair", "--yes"],
        &["init"],
        &["forget", "2026-04-08:4", "--yes"],
    ] {
        let shown = root.run_with_digest(args);
        assert_eq!(shown.code, 65, "{shown}");
        assert!(
            shown.stderr.contains("has format 3, this memoird knows formats up to 2"),
            "{shown}"
        );
        assert!(shown.stderr.contains("hint: install the version that wrote it"), "{shown}");
        assert_eq!(root.files(), before, "{shown}");
        assert!(!root.path(".memoird").exists(), "{shown}");
    }
    // One that it knows is no reason to stop.
    for format in ["1", "2"] {
        root.write(
            "memoird.yaml",
            &format!("zone: Europe/Berlin\nagent_name: Ada\nformat: {format}\n"),
        );
        root.run_with_digest(&["status"]).ok();
    }
    root.write("memoird.yaml", "format: new\n");
    assert_eq!(root.run(&["status"]).code, 78);
}
