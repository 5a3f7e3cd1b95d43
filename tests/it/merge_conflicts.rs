//! Files that version control could not merge: they are reported, served and summarized nowhere, and nothing is
//! written in their place until a person has resolved them.

use crate::support::Root;

const CONFLICT: &str = "\n<<<<<<< HEAD\n- the zebra was sold [2026-03-03:3]\n=======\n- the zebra was bought\n>>>>>>> laptop\n";

/// Asserts that `status` and `doctor` name a file and its conflict, and that nothing shows its words.
#[track_caller]
fn assert_held(root: &Root, path: &str) {
    let status = root.run(&["status"]);
    let doctor = root.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor}");
    for ran in [status, doctor] {
        let output = ran.to_string();
        let is_named = |it: &str| it.contains(path) && it.contains("merge conflict");
        assert!(output.lines().any(is_named), "{path}:\n{output}");
    }
    for words in [&["search", "zebra"][..], &["context", "--all"], &["context"], &["show", path]] {
        let ran = root.run(words);
        assert!(!ran.stdout.contains("zebra"), "{path}: {ran}");
    }
}

#[test]
fn a_log_with_a_conflict_is_used_for_nothing_until_it_is_resolved() {
    let root = Root::small();
    let path = "memory/2026-03-03.md";
    let log = root.read(path);
    root.append(path, CONFLICT);
    for _ in 0..4 {
        let ran = root.run(&["compact"]);
        assert_eq!(ran.code, 1, "{ran}");
        assert!(ran.to_string().contains(path), "{ran}");
    }
    assert!(!root.path("memory/weekly/2026-W10.md").exists());
    assert!(root.path("memory/weekly/2026-W11.md").exists());
    assert_held(&root, path);
    // Both versions are kept, word for word.
    root.write(path, &log);
    root.run(&["compact"]).ok();
    assert!(root.read("memory/weekly/2026-W10.md").contains("Importer v2 shipped"));
    root.run(&["doctor"]).ok();
}

#[test]
fn a_conflict_in_a_known_log_changes_nothing_that_was_made_from_it() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let before = root.files();
    let path = "memory/2026-03-18.md";
    let log = root.read(path);
    root.append(path, CONFLICT);
    for verb in
        [&["compact"][..], &["compact", "--accept-missing"], &["doctor", "--repair", "--yes"]]
    {
        root.run(verb);
    }
    assert_held(&root, path);
    root.write(path, &log);
    assert_eq!(root.files(), before);
    root.run(&["compact"]).ok();
    assert_eq!(root.files(), before);
}

#[test]
fn generated_files_with_conflicts_are_neither_served_nor_written() {
    let base = Root::new("mara");
    base.run(&["compact"]).ok();
    let files = base.files();
    let memory = files.keys().find(|it| it.starts_with("memory/user_")).unwrap();
    for path in [
        "memory/weekly/2026-W11.md",
        "memory/monthly/2026-03.md",
        "WISDOM.md",
        "memory/MEMORY.md",
        memory,
    ] {
        let root = Root::new("mara");
        root.run(&["compact"]).ok();
        let text = root.read(path);
        let marked = format!("{text}{CONFLICT}");
        root.write(path, &marked);
        // More work for each tier.
        root.append("memory/2026-03-18.md", "\n- Henk prefers tea to coffee.\n");
        for verb in
            [&["compact"][..], &["compact", "--accept-missing"], &["doctor", "--repair", "--yes"]]
        {
            root.run(verb);
            assert_eq!(root.read(path), marked, "{path} {verb:?}");
        }
        assert_held(&root, path);
        root.write(path, &text);
        root.run(&["compact"]).ok();
        root.run(&["doctor"]).ok();
    }
}

#[test]
fn an_entry_can_be_added_to_a_log_with_a_conflict() {
    let root = Root::small();
    root.append("memory/2026-04-13.md", CONFLICT);
    root.run(&["log", "Chose SQLite"]).ok();
    assert!(root.read("memory/2026-04-13.md").ends_with("Chose SQLite\n"));
}

#[test]
fn a_conflict_that_is_shown_as_code_is_none() {
    let root = Root::small();
    root.append("memory/2026-03-03.md", &format!("- Seen in main.rs:\n\n```\n{CONFLICT}```\n"));
    root.run(&["compact"]).ok();
    assert!(root.path("memory/weekly/2026-W10.md").exists());
}

#[test]
fn a_note_with_the_name_of_a_week_is_reported_and_blocks_nothing() {
    let root = Root::small();
    root.write("memory/2026-W10.md", "My own note of the week.\n");
    root.run(&["compact"]).ok();
    assert!(root.read("memory/monthly/2026-03.md").contains("951 million"));
    assert!(root.read_record("WISDOM.md").contains("2026-03"));
    let status = root.run(&["status"]).ok();
    assert!(status.stdout.contains("memory/2026-W10.md"), "{status}");
    assert_eq!(root.read("memory/2026-W10.md"), "My own note of the week.\n");
}

#[test]
fn a_stuck_job_ends_with_1_also_if_nothing_else_is_to_do() {
    let root = Root::small();
    // A folder in place of the weekly file.
    root.write("memory/weekly/2026-W10.md/x", "");
    let ran: Vec<_> = (0..5).map(|_| root.run(&["compact"])).collect();
    assert!(ran[4].to_string().contains("stuck"), "{}", ran[4]);
    assert_eq!(ran.iter().map(|it| it.code).collect::<Vec<_>>(), [1; 5], "{}", ran[4]);
}
