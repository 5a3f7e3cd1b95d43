//! What a store holds is checked before anything of it is used.

use std::fs;

use serde_json::{Value, json};

use crate::{
    Store, check, compacted, pulled,
    support::{CommandOutput, Root, files::Files},
};

/// Runs a pull, checks that it is refused, and that the root is as before.
#[track_caller]
fn check_refused(root: &Root, store: &Store, words: &[&str]) {
    let before: Files = root.files();
    let output: CommandOutput = root.run(&["bundle", "pull", &store.url()]);
    check(&output, 65, words);
    assert!(root.files() == before, "{output}");
    root.run(&["doctor"]).ok();
}

/// Returns a store with two generations, and a machine that has the first.
fn store_and_machine() -> (Store, Root) {
    let store = Store::new();
    let here = compacted();
    here.run(&["bundle", "push", &store.url()]).ok();
    let there = pulled(&store.url());
    here.run(&["log", "The", "second", "generation"]).ok();
    here.append("memory/2026-03-16.md", "- A later line\n");
    here.run(&["bundle", "push"]).ok();
    (store, there)
}

#[test]
fn truncated_and_swapped_objects_change_nothing() {
    let (store, there) = store_and_machine();
    let manifest = store.manifest();
    let object = manifest["files"]["memory/2026-03-16.md"]["object"].as_str().unwrap().to_owned();
    let path = store.path().join("objects").join(&object[..2]).join(&object);
    let bytes = fs::read(&path).unwrap();
    let others = store.objects();
    let other = others.iter().find(|it| **it != path).unwrap();
    let write = |bytes: &[u8]| {
        fs::remove_file(&path).unwrap();
        let mut file = fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
    };
    write(&bytes[..bytes.len() / 2]);
    check_refused(&there, &store, &[&object, "nothing was changed"]);
    write(&fs::read(other).unwrap());
    check_refused(&there, &store, &[&object]);
    let mut flipped = bytes.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    write(&flipped);
    check_refused(&there, &store, &["its bytes are those of another object"]);
    fs::remove_file(&path).unwrap();
    check_refused(&there, &store, &["it is missing"]);
    fs::File::create(&path).unwrap();
    write(&bytes);
    there.run(&["bundle", "pull"]).ok();
}

#[test]
fn manifests_that_are_foreign_newer_older_or_unsafe_are_refused_by_name() {
    let (store, there) = store_and_machine();
    let good = store.manifest();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut manifest = good.clone();
        change(&mut manifest);
        store.write_manifest(&manifest);
    };
    with(&|it| it["format"] = json!(7));
    check_refused(&there, &store, &["bundle format 7"]);
    with(&|it| it["schema"] = json!(99));
    check_refused(&there, &store, &["database schema 99", "use the newer memoird"]);
    with(&|it| it["generation"] = json!(0));
    check_refused(&there, &store, &["cannot be used"]);
    let entry = good["files"]["memory/2026-03-16.md"].clone();
    for path in [
        "../outside.md",
        "/etc/cron.d/x",
        "memory/../../x.md",
        ".git/hooks/post-checkout",
        ".memoird/witness",
        "README.md",
    ] {
        with(&|it| it["files"][path] = entry.clone());
        check_refused(&there, &store, &["cannot be used", path]);
    }
    with(&|it| it["files"]["memory/2026-03-16.md"]["hash"] = json!("a".repeat(64)));
    check_refused(&there, &store, &["memory/2026-03-16.md"]);
    with(&|it| it["objects"] = json!({}));
    check_refused(&there, &store, &["is in no object"]);
    support_cut(&store, &good);
    check_refused(&there, &store, &["cannot be used"]);
    store.write_manifest(&good);
    there.run(&["bundle", "pull"]).ok();
    with(&|it| it["generation"] = json!(1));
    check_refused(&there, &store, &["an older copy"]);
    let output = there.run(&["bundle", "push"]);
    check(&output, 65, &["an older copy"]);
    with(&|it| it["root"] = json!("f".repeat(32)));
    check(&there.run(&["bundle", "pull"]), 78, &["another memory folder"]);
}

/// Cuts the manifest in the middle.
fn support_cut(store: &Store, manifest: &Value) {
    let text = manifest.to_string();
    crate::support::write_file(&store.path().join("manifest.json"), &text[..text.len() / 2]);
}

#[test]
fn a_damaged_database_in_a_sound_object_changes_nothing() {
    // As a broken machine would publish it.
    let store = Store::new();
    let here = compacted();
    here.run(&["bundle", "push", &store.url()]).ok();
    let there = Root::empty("mara");
    let mut manifest = store.manifest();
    let log = manifest["files"]["memory/2026-03-16.md"].clone();
    manifest["files"][".memoird/lineage.db"] = log;
    store.write_manifest(&manifest);
    let output = there.run(&["bundle", "pull", &store.url(), "--root", "."]);
    assert_eq!(output.code, 65, "{output}");
    assert!(!there.path("memory").exists());
}
