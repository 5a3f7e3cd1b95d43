//! Whose bundle is at an address: a folder joins another one only on purpose, and a bundle that was created again is
//! not taken for the old one.

use std::{fs, path::PathBuf};

use crate::{
    Store, assert_same_files, check,
    fleet_home::Fleet,
    pulled,
    support::{CommandOutput, Root},
};

/// Returns the private files with what a root knows about its stores.
fn states(root: &Root) -> Vec<PathBuf> {
    let private = fs::read_dir(root.path(".memoird")).unwrap().map(|it| it.unwrap());
    let is_state = |name: &str| name.starts_with("bundle-") && name.strip_suffix(".json").is_some();
    private.filter(|it| is_state(it.file_name().to_str().unwrap())).map(|it| it.path()).collect()
}

#[test]
fn a_folder_that_was_never_in_a_store_is_not_published_over_another_one() {
    let store = Store::new();
    let first = Root::small();
    first.run(&["bundle", "push", &store.url()]).ok();
    let other = Root::empty("other");
    other.write("memoird.yaml", "agent_name: Other\nzone: Europe/Berlin\n");
    other.write("memory/2026-04-12.md", "# 2026-04-12\n\n- Of another agent\n");
    let words =
        ["holds a memory folder already (`small`", "never published", "memoird bundle pull"];
    let url = store.url();
    for args in [&["bundle", "push", &url][..], &["bundle", "push", &url, "--dry-run"]] {
        check(&other.run(args), 78, &words);
    }
    assert_eq!(store.manifest()["generation"], 1);
    assert!(!store.contents().contains("Of another agent"));
    // Whoever wants both brings the other one first.
    fs::remove_file(other.path("memoird.yaml")).unwrap();
    other.run(&["bundle", "pull", &url, "--root", "."]).ok();
    other.run(&["bundle", "push"]).ok();
    assert!(store.contents().contains("Of another agent"));
}

#[test]
fn a_first_push_that_was_killed_is_recognized() {
    for step in ["bundle.push.object", "bundle.push.manifest", "bundle.push.published"] {
        let store = Store::new();
        let root = Root::small();
        let mut killed = root.command(&["bundle", "push", &store.url()]);
        killed.env("MEMOIRD_FAIL", format!("kill@{step}"));
        assert_eq!(root.finish(killed, &[]).code, -1);
        root.run(&["bundle", "push", &store.url()]).ok();
        assert_same_files(&root, &pulled(&store.url()));
    }
}

#[test]
fn a_bundle_that_was_created_again_is_named() {
    let store = Store::new();
    let here = Root::small();
    here.run(&["bundle", "push", &store.url()]).ok();
    let there = pulled(&store.url());
    // The same memory folder, so that only the bundle differs.
    let elsewhere = Store::new();
    here.run(&["bundle", "push", &elsewhere.url()]).ok();
    fs::remove_dir_all(store.path()).unwrap();
    for path in states(&here) {
        if fs::read_to_string(&path).unwrap().contains(&format!("{}\"", store.url())) {
            fs::remove_file(path).unwrap();
        }
    }
    for entry in ["One", "Two"] {
        here.run(&["log", entry]).ok();
        here.run(&["bundle", "push", &store.url()]).ok();
    }
    assert_eq!(store.manifest()["generation"], 2);
    there.run(&["log", "Of the copy"]).ok();
    let before = there.files();
    let words = ["was created again", "empty folder", ".memoird/bundle-"];
    for verb in ["push", "pull", "status"] {
        let refused: CommandOutput = there.run(&["bundle", verb]);
        check(&refused, 78, &words);
    }
    assert!(there.files() == before);
    // What the hint says.
    for path in states(&there) {
        fs::remove_file(path).unwrap();
    }
    let log = "memory/2026-04-13.md";
    check(&there.run(&["bundle", "pull", &store.url()]), 1, &["conflict", log]);
    assert!(there.read(log).contains("Of the copy"));
}

/// Replaces the bundle of a root by that of another memory folder, and reports nothing.
fn create_again(fleet: &Fleet, name: &str) -> Root {
    fs::remove_dir_all(fleet.path(&format!("store/{name}"))).unwrap();
    let second = Root::small();
    second.write("memory/2026-03-04.md", "# 2026-03-04\n\n- Decided: the second one begins here\n");
    second.run(&["bundle", "push", "--due", &fleet.url(name)]).ok();
    second
}

#[test]
fn claims_begin_again_with_a_bundle_that_was_created_again() {
    let Some(fleet) = Fleet::start() else { return };
    let row =
        || fleet.postgres.sql("acme", "SELECT gen, attempts, owner IS NULL FROM memoird.root");
    let (name, first) = ("acme/small", Root::small());
    fleet.push(&first, name);
    fleet.run(&["--until-idle"]).ok();
    first.run(&["bundle", "pull"]).ok();
    first.run(&["log", "One more"]).ok();
    fleet.push(&first, name);
    fleet.run(&["--until-idle"]).ok();
    assert_eq!(row(), "4|0|t");
    for is_reported in [true, false] {
        let second = create_again(&fleet, name);
        if is_reported {
            fleet.push(&second, name);
            assert_eq!(row(), "1|0|t");
            fleet.run(&["--until-idle"]).ok();
        } else {
            let swept = fleet.run(&["--until-idle", "--sweep-every", "0s"]);
            check(&swept, 0, &["found 1 of 1 roots"]);
        }
        // The worker had a copy of the first one, which it fetched again.
        assert_eq!(row(), "2|0|t");
        second.run_with_digest(&["compact"]).ok();
        assert_same_files(&fleet.pull(name), &second);
    }
    // Whoever works on the old one has lost it.
    fleet
        .postgres
        .admin("UPDATE memoird.root SET owner = 'old', lease_until = now() + interval '1 hour'");
    let third = create_again(&fleet, name);
    fleet.push(&third, name);
    assert_eq!(row(), "1|0|t");
}

#[test]
fn a_worker_without_a_database_fetches_a_copy_of_another_root_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().canonicalize().unwrap().join("store");
    let url = format!("file://{}", store.display());
    let machine = Root::small();
    let once = ["worker", "--store", &url, "--once", "acme/small"];
    machine.run(&["bundle", "push", "--due", &format!("{url}/acme/small")]).ok();
    machine.run_with_digest(&once).ok();
    fs::remove_dir_all(store.join("acme/small")).unwrap();
    let second = Root::new("mara");
    second.run(&["bundle", "push", "--due", &format!("{url}/acme/small")]).ok();
    check(&machine.run_with_digest(&once), 0, &["generation 2"]);
    second.run_with_digest(&["compact"]).ok();
    assert_same_files(&pulled(&format!("{url}/acme/small")), &second);
    // The note of the first one was about a later generation.
    let noted = machine.run(&["worker", "--store", &url, "--list-due", "--json"]).ok().json();
    assert_eq!(noted["roots"][0]["generation"], 2);
}

#[test]
fn a_worker_without_a_database_refuses_the_root_of_another_tenant() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().canonicalize().unwrap().join("store");
    let url = format!("file://{}", store.display());
    let machine = Root::small();
    machine.run(&["bundle", "push", "--due", &format!("{url}/acme/small")]).ok();
    fs::create_dir(store.join("other")).unwrap();
    fs::rename(store.join("acme/small"), store.join("other/small")).unwrap();
    let once = machine.run(&["worker", "--store", &url, "--once", "other/small"]);
    check(&once, 78, &["is not a root of the tenant `other`", "`acme`"]);
}

#[test]
fn a_mistyped_name_leaves_no_row_behind() {
    let Some(fleet) = Fleet::start() else { return };
    check(&fleet.run(&["--once", "acme/typo"]), 2, &["no bundle at", "acme/typo"]);
    let rows = "SELECT (SELECT count(*) FROM memoird.root), (SELECT count(*) FROM memoird.run)";
    assert_eq!(fleet.postgres.admin(rows), "0|0");
    // One that was reported stays, and waits.
    fleet.push(&Root::small(), "acme/small");
    fs::remove_dir_all(fleet.path("store/acme/small")).unwrap();
    check(&fleet.run(&["--once", "acme/small"]), 2, &["no bundle at"]);
    assert_eq!(fleet.postgres.admin("SELECT problem IS NOT NULL FROM memoird.root"), "t");
}
