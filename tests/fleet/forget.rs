//! Forgotten words leave the store at once, or what survives is named.

use std::fs;

use crate::{Store, assert_same_files, check, compacted, exists, pulled, support::Root};

const WORD: &str = "zanzibarcode";

/// Returns a root with a word in a log and in what was generated from it.
fn root_with_word() -> Root {
    let mut root = compacted();
    root.write(
        "memory/2026-04-14.md",
        &format!("# 2026-04-14\n\n- The vault opens with {WORD}, decided for good\n"),
    );
    root.set_now("2026-04-21T09:00:00+02:00");
    root.run_with_digest(&["compact"]).ok();
    root
}

#[test]
fn no_object_holds_a_forgotten_word() {
    let store = Store::new();
    let root = root_with_word();
    root.run(&["bundle", "push", &store.url()]).ok();
    // A second publication, of which the first objects are still used.
    root.run(&["log", "One", "more"]).ok();
    root.run(&["bundle", "push"]).ok();
    // Garbage that nobody names may hold the word too.
    let garbage = store.path().join("objects/aa");
    fs::create_dir_all(&garbage).unwrap();
    fs::copy(&store.objects()[0], garbage.join("a".repeat(64))).unwrap();
    let before = store.objects();
    assert!(store.contents().contains(WORD));
    let forgot = root.run_with_digest(&["forget", WORD, "--from-log", "--yes"]);
    check(&forgot, 0, &["objects from file://"]);
    assert!(!store.contents().contains(WORD));
    assert!(before.iter().all(|it| !exists(it)), "an object is used again");
    assert_eq!(store.manifest()["removing"], serde_json::Value::Null);
    let status = root.run(&["bundle", "status", "--json"]).ok().json();
    assert_eq!(status["bundles"][0]["must_remove"], false);
    let mut other = pulled(&store.url());
    other.set_now("2026-04-21T09:00:00+02:00");
    assert_same_files(&root, &other);
    other.run(&["doctor"]).ok();
    check(&other.run(&["search", WORD]), 0, &[]);
    assert!(!other.run(&["search", WORD]).stdout.contains(WORD));
}

#[test]
fn a_store_that_does_not_answer_is_named_and_the_next_push_makes_up_for_it() {
    let store = Store::new();
    let root = root_with_word();
    root.run(&["bundle", "push", &store.url()]).ok();
    fs::rename(store.path(), store.path().with_extension("away")).unwrap();
    fs::File::create(store.path()).unwrap();
    let forgot = root.run_with_digest(&["forget", WORD, "--from-log", "--yes"]);
    check(&forgot, 1, &["still holds the words", "memoird bundle push file://"]);
    fs::remove_file(store.path()).unwrap();
    fs::rename(store.path().with_extension("away"), store.path()).unwrap();
    assert!(store.contents().contains(WORD));
    check(&root.run(&["bundle", "status"]), 0, &["may hold forgotten words"]);
    root.run(&["bundle", "push"]).ok();
    assert!(!store.contents().contains(WORD));
}

#[test]
fn a_push_that_began_before_does_not_clear_what_was_forgotten_meanwhile() {
    let store = Store::new();
    let root = root_with_word();
    root.run(&["bundle", "push", &store.url()]).ok();
    root.run(&["log", "One", "more"]).ok();
    let pushed = root.run_paused_at(&["bundle", "push"], "bundle.push.published", || {
        fs::rename(store.path(), store.path().with_extension("away")).unwrap();
        fs::File::create(store.path()).unwrap();
        let forgot = root.run_with_digest(&["forget", WORD, "--from-log", "--yes"]);
        check(&forgot, 1, &["still holds the words"]);
        fs::remove_file(store.path()).unwrap();
        fs::rename(store.path().with_extension("away"), store.path()).unwrap();
    });
    pushed.ok();
    check(&root.run(&["bundle", "status"]), 0, &["may hold forgotten words"]);
    root.run(&["bundle", "push"]).ok();
    assert!(!store.contents().contains(WORD));
}

#[test]
fn a_version_that_another_machine_published_is_named() {
    let store = Store::new();
    let root = root_with_word();
    root.run(&["bundle", "push", &store.url()]).ok();
    let other = pulled(&store.url());
    other.append("memory/2026-04-14.md", "- Added elsewhere\n");
    other.run(&["bundle", "push"]).ok();
    let forgot = root.run_with_digest(&["forget", WORD, "--from-log", "--yes"]);
    check(&forgot, 1, &["may still hold the words", "memory/2026-04-14.md", "memoird bundle pull"]);
}

#[test]
fn another_machine_cannot_publish_the_words_again() {
    let store = Store::new();
    let root = root_with_word();
    root.run(&["bundle", "push", &store.url()]).ok();
    let mut other = pulled(&store.url());
    other.set_now("2026-04-28T09:00:00+02:00");
    other.write("memory/2026-04-22.md", "- A log of another machine\n");
    other.run_with_digest(&["compact"]).ok();
    other.append("memory/2026-04-14.md", "- Added elsewhere\n");
    check(&root.run_with_digest(&["forget", WORD, "--from-log", "--yes"]), 0, &[]);
    check(&other.run(&["bundle", "push"]), 1, &["conflict: memory/2026-04-14.md"]);
    for path in ["memory/2026-04-14.md", ".memoird/lineage.db"] {
        check(
            &other.run(&["bundle", "push", "--mine", path]),
            65,
            &["words were forgotten there since", "--theirs"],
        );
    }
    assert!(!store.contents().contains(WORD));
    other.run(&["bundle", "pull", "--theirs", "all"]).ok();
    assert!(!other.read("memory/2026-04-14.md").contains(WORD));
    other.run_with_digest(&["compact"]).ok();
    other.run(&["bundle", "push"]).ok();
    assert!(!store.contents().contains(WORD));
}

#[test]
fn a_removal_that_was_interrupted_is_finished_by_the_next_push() {
    for step in ["bundle.remove.object", "bundle.remove.done"] {
        let store = Store::new();
        let root = root_with_word();
        root.run(&["bundle", "push", &store.url()]).ok();
        let other = pulled(&store.url());
        let mut killed = root.command(&["forget", WORD, "--from-log", "--yes"]);
        killed.env("MEMOIRD_WISDOM_DIGEST", "true").env("MEMOIRD_FAIL", format!("kill@{step}"));
        assert_eq!(root.finish(killed, &[]).code, -1);
        assert_eq!(store.manifest()["removing"], true);
        other.run(&["bundle", "push"]);
        assert!(!store.contents().contains(WORD));
        assert_eq!(store.manifest()["removing"], serde_json::Value::Null);
        root.run(&["bundle", "push"]).ok();
        assert!(!store.contents().contains(WORD));
    }
}
