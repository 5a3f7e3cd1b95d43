//! Two machines changed the same file: nobody's version is lost, and a person decides.

use std::{fs, os::unix::fs::symlink};

use crate::{Store, assert_same_files, check, compacted, exists, pulled, support::Root};

const LOG: &str = "memory/2026-03-10.md";

/// Returns a store and two machines with the same small root.
fn two_machines() -> (Store, Root, Root) {
    let store = Store::new();
    let here = Root::small();
    here.run(&["bundle", "push", &store.url()]).ok();
    let there = pulled(&store.url());
    (store, here, there)
}

/// Returns the copies that a pull saved.
fn saved(root: &Root) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(times) = fs::read_dir(root.path(".memoird/quarantine")) else { return found };
    for time in times {
        let path = time.unwrap().path().join(LOG);
        found.extend(fs::read_to_string(path).ok());
    }
    found
}

#[test]
fn both_versions_are_kept_until_a_person_decides() {
    let (_store, here, there) = two_machines();
    here.append(LOG, "- from here\n");
    there.append(LOG, "- from there\n");
    here.run(&["bundle", "push"]).ok();
    let words = ["conflict: memory/2026-03-10.md (changed here and in the store)", "--theirs"];
    check(&there.run(&["bundle", "push"]), 1, &words);
    for _ in 0..2 {
        check(&there.run(&["bundle", "pull"]), 1, &words);
    }
    assert!(there.read(LOG).ends_with("- from there\n"));
    let listed = ["conflict-", "memory/2026-03-10.md: changed here and in", ".memoird/quarantine"];
    check(&there.run(&["review", "list"]), 0, &listed);
    assert!(matches!(&saved(&there)[..], [copy] if copy.ends_with("- from here\n")));
    // Other files go on.
    there.write("memory/2026-03-11.md", "- another\n");
    check(&there.run(&["bundle", "push"]), 1, &["published memory/2026-03-11.md"]);
    here.run(&["bundle", "pull"]).ok();
    assert!(here.read(LOG).ends_with("- from here\n"));
    check(&there.run(&["bundle", "push", "--mine", "WISDOM.md"]), 2, &["is not in conflict"]);
    there.run(&["bundle", "push", "--mine", LOG]).ok();
    here.run(&["bundle", "pull"]).ok();
    assert!(here.read(LOG).ends_with("- from there\n"));
    assert_same_files(&here, &there);
}

#[test]
fn the_other_version_can_be_taken_and_ones_own_is_saved() {
    let (_store, here, there) = two_machines();
    here.append(LOG, "- from here\n");
    there.append(LOG, "- from there\n");
    here.run(&["bundle", "push"]).ok();
    let dry = there.run(&["bundle", "pull", "--theirs", LOG, "--dry-run"]).ok();
    check(&dry, 0, &["would bring memory/2026-03-10.md"]);
    assert!(there.read(LOG).ends_with("- from there\n"));
    there.run(&["bundle", "pull", "--theirs", LOG]).ok();
    assert_same_files(&here, &there);
    assert!(saved(&there).iter().any(|it| it.ends_with("- from there\n")));
}

#[test]
fn the_review_queue_settles_conflicts() {
    for (verdict, ending) in [("accept", "- from here\n"), ("refuse", "- from there\n")] {
        let (_store, here, there) = two_machines();
        here.append(LOG, "- from here\n");
        there.append(LOG, "- from there\n");
        here.run(&["bundle", "push"]).ok();
        there.run(&["bundle", "pull"]);
        let queue = there.run(&["review", "list", "--json"]).ok().json_as("review");
        assert_eq!(
            (&queue["items"][0]["what"], &queue["items"][0]["path"]),
            (&"conflict".into(), &LOG.into())
        );
        let id = queue["items"][0]["id"].as_str().unwrap();
        check(&there.run(&["review", verdict, id, "2026-03-11"]), 2, &["in a call of their own"]);
        let done = there.run(&["review", verdict, id, "--json"]).ok().json_as("review");
        assert_eq!(
            done["items"][0]["verdict"],
            format!("{verdict}{}", if verdict == "accept" { "ed" } else { "d" })
        );
        assert_eq!(
            there.run(&["review", "list", "--json"]).ok().json()["items"],
            serde_json::json!([])
        );
        here.run(&["bundle", "pull"]).ok();
        assert!(here.read(LOG).ends_with(ending) && there.read(LOG).ends_with(ending), "{verdict}");
        check(&there.run(&["review", verdict, id]), 2, &["the review queue has no"]);
    }
}

#[test]
fn a_removal_against_a_change_is_a_conflict() {
    for removes_here in [true, false] {
        let (_store, here, there) = two_machines();
        let (remover, writer) = if removes_here { (&here, &there) } else { (&there, &here) };
        fs::remove_file(remover.path(LOG)).unwrap();
        writer.append(LOG, "- changed\n");
        here.run(&["bundle", "push"]).ok();
        check(&there.run(&["bundle", "push"]), 1, &["removed"]);
        check(&there.run(&["bundle", "pull"]), 1, &["removed"]);
        assert!(writer.read(LOG).ends_with("- changed\n"));
        assert!(!exists(&remover.path(LOG)));
        there.run(&["bundle", "pull", "--theirs", LOG]).ok();
        assert_same_files(&here, &there);
    }
}

#[test]
fn a_removal_is_brought_only_where_nobody_wrote() {
    let (_store, here, there) = two_machines();
    fs::remove_file(here.path(LOG)).unwrap();
    here.run(&["bundle", "push"]).ok();
    there.run(&["bundle", "pull"]).ok();
    assert!(!exists(&there.path(LOG)));
}

#[test]
fn what_cannot_be_read_is_not_removed_and_not_published_in_an_older_version() {
    let (store, here, there) = two_machines();
    let original = here.read(LOG);
    let elsewhere = here.home("elsewhere.md");
    fs::rename(here.path(LOG), &elsewhere).unwrap();
    symlink(&elsewhere, here.path(LOG)).unwrap();
    check(&here.run(&["bundle", "push"]), 1, &["memory/2026-03-10.md was left out"]);
    assert!(store.manifest()["files"][LOG].is_object());
    there.append(LOG, "- newer\n");
    there.run(&["bundle", "push"]).ok();
    check(&here.run(&["bundle", "push"]), 1, &["left out"]);
    check(&here.run(&["bundle", "pull"]), 1, &["left out"]);
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), original);
    assert!(pulled(&store.url()).read(LOG).ends_with("- newer\n"));
    // A hard link may be changed from elsewhere.
    fs::remove_file(here.path(LOG)).unwrap();
    fs::hard_link(&elsewhere, here.path(LOG)).unwrap();
    check(&here.run(&["bundle", "push"]), 1, &["second name"]);
    assert!(pulled(&store.url()).read(LOG).ends_with("- newer\n"));
}

#[test]
fn the_removal_of_many_files_needs_a_person_on_both_sides() {
    let (store, here, there) = two_machines();
    fs::rename(here.path("memory"), here.home("unmounted")).unwrap();
    fs::create_dir(here.path("memory")).unwrap();
    check(&here.run(&["bundle", "push"]), 65, &["are gone here", "--accept-missing"]);
    assert_eq!(store.manifest()["generation"], 1);
    here.run(&["bundle", "push", "--accept-missing"]).ok();
    check(&there.run(&["bundle", "pull"]), 65, &["are gone in the store"]);
    assert!(exists(&there.path(LOG)));
    there.run(&["bundle", "pull", "--accept-missing"]).ok();
    assert!(!exists(&there.path(LOG)));
}

#[test]
fn decisions_of_two_machines_are_joined() {
    let store = Store::new();
    let here = compacted();
    here.run(&["forget", "2026-03-16:3", "--yes"]);
    here.run(&["bundle", "push", &store.url()]).ok();
    let there = pulled(&store.url());
    let decisions = "memory/.decisions.jsonl";
    if !exists(&here.path(decisions)) {
        return crate::support::skipped("no decision was recorded");
    }
    let line = |digit: &str| {
        format!(
            "{{\"at\":\"2026-04-13T07:00:0{digit}Z\",\"what\":\"forgotten\",\"path\":\"\",\"hashes\":[\"{}\"]}}\n",
            digit.repeat(16)
        )
    };
    here.append(decisions, &line("1"));
    there.append(decisions, &line("2"));
    here.run(&["bundle", "push"]).ok();
    check(&there.run(&["bundle", "push"]), 1, &["conflict: memory/.decisions.jsonl"]);
    there.run(&["bundle", "pull"]).ok();
    there.run(&["bundle", "push"]).ok();
    here.run(&["bundle", "pull"]).ok();
    for root in [&here, &there] {
        let text = root.read(decisions);
        assert!(text.contains(line("1").trim()) && text.contains(line("2").trim()), "{text}");
    }
}

#[test]
fn the_database_and_the_generated_files_are_taken_together() {
    let store = Store::new();
    let mut here = compacted();
    here.run(&["bundle", "push", &store.url()]).ok();
    let mut there = pulled(&store.url());
    for (root, text) in
        [(&mut here, "- The west crane is red\n"), (&mut there, "- The east crane is blue\n")]
    {
        root.set_now("2026-04-21T09:00:00+02:00");
        let day = if text.contains("west") { "14" } else { "15" };
        root.write(&format!("memory/2026-04-{day}.md"), text);
        root.run_with_digest(&["compact"]).ok();
    }
    here.run(&["bundle", "push"]).ok();
    let pulled = there.run(&["bundle", "pull"]);
    check(&pulled, 1, &["conflict: .memoird/lineage.db", "waits for the database"]);
    check(&there.run(&["bundle", "push"]), 1, &["published memory/2026-04-15.md"]);
    there.run(&["bundle", "pull", "--theirs", "all"]).ok();
    there.run(&["doctor"]).ok();
    // The week is summarized again, from the logs of both.
    there.run_with_digest(&["compact"]).ok();
    let week = there.read("memory/weekly/2026-W16.md");
    assert!(week.contains("west crane") && week.contains("east crane"), "{week}");
    there.run(&["bundle", "push"]).ok();
    here.run(&["bundle", "pull"]).ok();
    assert_same_files(&here, &there);
    here.run(&["doctor"]).ok();
}
