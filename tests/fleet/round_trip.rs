//! What one machine publishes another one has, byte for byte, and the other way round.

use std::{fs, thread};

use crate::{
    Store, assert_same_files, check, compacted, exists, pulled,
    support::{
        Root,
        server::{Answer, Server},
        skipped,
    },
};

#[test]
fn a_bundle_is_brought_to_an_empty_folder_and_nothing_is_due_there() {
    let store = Store::new();
    let here = compacted();
    let dry = here.run(&["bundle", "push", &store.url(), "--dry-run", "--json"]).ok().json();
    assert!(!dry["published"].as_array().unwrap().is_empty());
    assert!(!exists(&store.path()));
    let pushed = here.run(&["bundle", "push", &store.url(), "--json"]).ok().json_as("bundle");
    assert_eq!(pushed["generation"], 1);
    assert_eq!(pushed["published"], dry["published"]);
    let there = pulled(&store.url());
    assert_same_files(&here, &there);
    there.run(&["doctor"]).ok();
    let compacted = there.run_with_digest(&["compact", "--json"]).ok().json();
    assert_eq!((&compacted["written"], &compacted["jobs"]), (&0.into(), &serde_json::json!([])));
    // The database came along: what was written is known by its run.
    let history = |root: &Root| root.run(&["history", "WISDOM.md", "--json"]).ok().stdout;
    assert_eq!(history(&here), history(&there));
    for root in [&here, &there] {
        let again = root.run(&["bundle", "push", "--json"]).ok().json_as("bundle");
        assert_eq!((&again["generation"], &again["objects"]), (&1.into(), &0.into()), "{again}");
        root.run(&["bundle", "pull"]).ok();
    }
    let status = there.run(&["bundle", "status", "--json"]).ok().json_as("bundle");
    assert_eq!(status["bundles"][0]["unpublished"], serde_json::json!([]));
}

#[test]
fn changes_of_two_machines_to_different_files_are_joined() {
    let store = Store::new();
    let mut worker = compacted();
    worker.run(&["bundle", "push", &store.url()]).ok();
    let agent = pulled(&store.url());
    agent.run(&["log", "Chose", "port", "7431"]).ok();
    worker.set_now("2026-04-21T09:00:00+02:00");
    worker.write("memory/2026-04-14.md", "# 2026-04-14\n\n- The lamp office closes on Fridays\n");
    worker.run_with_digest(&["compact"]).ok();
    worker.run(&["bundle", "push"]).ok();
    let pushed = agent.run(&["bundle", "push", "--json"]).ok().json();
    assert_eq!(pushed["conflicts"], serde_json::json!([]));
    let published: Vec<_> =
        pushed["published"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
    assert_eq!(published, ["memory/2026-04-13.md"]);
    agent.run(&["bundle", "pull"]).ok();
    worker.run(&["bundle", "pull"]).ok();
    assert_same_files(&worker, &agent);
    worker.run(&["doctor"]).ok();
}

#[test]
fn machines_that_publish_at_the_same_time_lose_nothing() {
    const ENTRIES: usize = 8;
    let store = Store::new();
    let first = Root::small();
    first.run(&["bundle", "push", &store.url()]).ok();
    let url = store.url();
    thread::scope(|scope| {
        for month in 5..8 {
            let url = &url;
            scope.spawn(move || {
                let root = pulled(url);
                for day in 1..=ENTRIES {
                    root.write(&format!("memory/2026-{month:02}-{day:02}.md"), "- one\n");
                    let pushed = root.run(&["bundle", "push"]);
                    assert_eq!(pushed.code, 0, "{pushed}");
                }
            });
        }
    });
    let all = pulled(&url);
    let logs = fs::read_dir(all.path("memory")).unwrap().count();
    assert_eq!(logs, 3 + 3 * ENTRIES);
}

#[test]
fn what_a_folder_has_of_its_own_stays_when_it_first_pulls() {
    let store = Store::new();
    Root::small().run(&["bundle", "push", &store.url()]).ok();
    let own = Root::small();
    own.write("memory/2026-03-04.md", "- Mine alone\n");
    own.write("USER.md", "# Who\n\nAda\n");
    own.write("notes/plan.md", "- Not of the bundle\n");
    own.run(&["bundle", "pull", &store.url()]).ok();
    for (path, text) in [
        ("memory/2026-03-04.md", "- Mine alone\n"),
        ("USER.md", "# Who\n\nAda\n"),
        ("notes/plan.md", "- Not of the bundle\n"),
    ] {
        assert_eq!(own.read(path), text);
    }
    own.run(&["bundle", "push"]).ok();
    let other = pulled(&store.url());
    assert_eq!(other.read("memory/2026-03-04.md"), "- Mine alone\n");
    assert!(!exists(&other.path("notes")));
}

#[test]
fn each_store_holds_one_root_and_is_no_part_of_it() {
    let store = Store::new();
    let first = Root::small();
    first.run(&["bundle", "push", &store.url()]).ok();
    // One of the same person on the same machine.
    let second = Store::new();
    let other = Root::small();
    other.run(&["bundle", "push", &second.url()]).ok();
    for verb in ["push", "pull"] {
        check(
            &other.run(&["bundle", verb, &store.url()]),
            78,
            &["holds another memory folder", "hint"],
        );
    }
    // The same root in two stores.
    first.run(&["bundle", "push", &Store::new().url()]).ok();
    let inside = format!("file://{}", first.path("store").display());
    check(&first.run(&["bundle", "push", &inside]), 78, &["lie in each other"]);
    check(&first.run(&["bundle", "push"]), 2, &["several stores"]);
    check(&Root::small().run(&["bundle", "push"]), 2, &["name a store"]);
    let empty = format!("{}/nothing", store.url());
    check(&Root::empty("new").run(&["bundle", "pull", &empty, "--root", "."]), 2, &["no bundle"]);
}

#[test]
fn garbage_of_an_interrupted_push_is_removed_after_a_day() {
    let store = Store::new();
    let mut root = Root::small();
    root.run(&["bundle", "push", &store.url()]).ok();
    let kept = store.objects();
    root.write("memory/2026-03-04.md", "- One more\n");
    let mut killed = root.command(&["bundle", "push"]);
    killed.env("MEMOIRD_FAIL", "kill@bundle.push.manifest");
    assert_eq!(root.finish(killed, &[]).code, -1);
    let garbage: Vec<_> = store.objects().into_iter().filter(|it| !kept.contains(it)).collect();
    assert!(!garbage.is_empty());
    root.set_now("2026-04-15T09:00:00+02:00");
    root.run(&["bundle", "push"]).ok();
    assert!(garbage.iter().all(|it| exists(it)), "too young");
    let now = fs::metadata(&garbage[0]).unwrap().modified().unwrap();
    let old = now - std::time::Duration::from_secs(25 * 3600);
    for path in &garbage {
        fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
    }
    root.set_now("2026-04-18T09:00:00+02:00");
    root.write("memory/2026-03-05.md", "- And one\n");
    root.run(&["bundle", "push"]).ok();
    assert!(garbage.iter().all(|it| !exists(it)));
    assert_same_files(&root, &pulled(&store.url()));
}

#[test]
fn a_pull_begins_again_if_what_it_fetches_is_removed_meanwhile() {
    let store = Store::new();
    let here = compacted();
    here.run(&["bundle", "push", &store.url()]).ok();
    let there = Root::empty("mara");
    let args = ["bundle", "pull", &store.url(), "--root", "."];
    let pulled = there.run_paused_at(&args, "bundle.pull.object", || {
        let before = store.objects();
        here.run(&["forget", "2026-03-16:3", "--from-log", "--yes"]);
        assert!(before.iter().all(|it| !exists(it)));
    });
    check(&pulled, 0, &["generation 3"]);
    assert_same_files(&here, &there);
}

#[test]
fn without_an_answer_what_is_not_published_is_listed() {
    let store = Store::new();
    let root = Root::small();
    root.run(&["bundle", "push", &store.url()]).ok();
    root.run(&["log", "Offline", "entry"]).ok();
    fs::rename(store.path(), store.path().with_extension("away")).unwrap();
    fs::File::create(store.path()).unwrap();
    let push = root.run(&["bundle", "push"]);
    assert_ne!(push.code, 0, "{push}");
    check(&root.run(&["bundle", "status"]), 69, &["not published: memory/2026-04-13.md (written)"]);
    fs::remove_file(store.path()).unwrap();
    fs::rename(store.path().with_extension("away"), store.path()).unwrap();
    root.run(&["bundle", "push"]).ok();
}

#[test]
fn an_unchanged_root_costs_little() {
    // Times depend on the machine; the number of objects does not.
    let store = Store::new();
    let root = compacted();
    root.run(&["bundle", "push", &store.url()]).ok();
    if store.objects().len() > 8 {
        skipped("more months of logs than expected");
    }
    root.run(&["log", "One", "entry"]).ok();
    let pushed = root.run(&["bundle", "push", "--json"]).ok().json();
    assert_eq!(pushed["objects"], 1, "{pushed}");
}

#[test]
fn a_pull_computes_vectors_where_another_host_summarizes() {
    let store = Store::new();
    let here = Root::small();
    here.append("memoird.yaml", "writer: desk\n");
    here.run(&["bundle", "push", &store.url()]).ok();
    let server = Server::answering(|request| {
        let texts = request.body["input"].as_array().unwrap().len();
        let vectors = vec![[0.5; 16]; texts];
        let body = serde_json::json!({ "embeddings": vectors, "prompt_eval_count": 9 });
        Answer::Http { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() }
    });
    let there = Root::empty("small");
    let config = serde_json::json!({ "search": { "embeddings":
        { "provider": "ollama", "name": "words-1", "base_url": server.url() } } });
    there.write("../.config/memoird/config.yaml", &config.to_string());
    there.run(&["bundle", "pull", &store.url(), "--root", "."]).ok();
    let status = there.run(&["status", "--json"]).json();
    assert_eq!(status["embeddings"]["left"], 0, "{}", status["embeddings"]);
    let sent = server.count();
    assert!(sent > 0);
    there.run(&["bundle", "pull"]).ok();
    assert_eq!(server.count(), sent);
}

/// Compacts until the folder is recorded as up to date, which needs the file system's clock to advance.
fn compact_until_up_to_date(root: &Root) {
    while !exists(&root.path(".memoird/standstill")) {
        root.run_with_digest(&["compact"]).ok();
    }
}

#[test]
fn a_copied_root_is_recognized_by_its_contents_without_a_run() {
    let here = compacted();
    compact_until_up_to_date(&here);
    let copied = Root::empty("copy");
    let from = format!("{}/.", here.path("").display());
    let status = std::process::Command::new("cp").args(["-r", &from]).arg(copied.path("")).status();
    assert!(status.unwrap().success());
    thread::sleep(std::time::Duration::from_millis(2100));
    let is_full_run = |root: &Root| {
        let trace = root.home("trace");
        drop(fs::remove_file(&trace));
        let mut command = root.command(&["compact"]);
        command.env("MEMOIRD_WISDOM_DIGEST", "true").env("MEMOIRD_FAIL_TRACE", &trace);
        root.finish(command, &[]).ok();
        fs::read_to_string(trace).unwrap_or_default().contains("recover.done")
    };
    assert!(!is_full_run(&copied));
    assert!(!is_full_run(&copied));
    copied.append("memory/2026-03-16.md", "- A later line\n");
    assert!(is_full_run(&copied));
}

/// Returns the note that a root is up to date, if there is one.
fn note(root: &Root) -> Option<serde_json::Value> {
    let text = fs::read_to_string(root.path(".memoird/standstill")).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn a_folder_that_is_brought_whole_is_known_to_be_up_to_date() {
    let store = Store::new();
    let here = compacted();
    // The run after the one that wrote something finds nothing to do, once the files are as old as it asks for.
    let found = (0..50).any(|_| {
        here.run_with_digest(&["compact"]).ok();
        thread::sleep(std::time::Duration::from_millis(100));
        note(&here).is_some()
    });
    assert!(found);
    here.run(&["bundle", "push", &store.url()]).ok();
    assert!(store.manifest()["up_to_date"].is_object());
    let there = pulled(&store.url());
    let [own, brought] = [&here, &there].map(|it| note(it).unwrap());
    assert_eq!(own["with"], brought["with"]);
    assert_eq!(brought["files"], "", "the next check compares contents");
    let compact = |root: &Root| root.run_with_digest(&["compact", "--json"]).ok().json();
    assert_eq!(compact(&there)["jobs"], serde_json::json!([]));
    // What is changed afterwards is seen.
    let other = pulled(&store.url());
    other.write(
        "memory/2026-04-02.md",
        "# 2026-04-02\n\n- Decided: the lamp office opens at noon\n",
    );
    assert_ne!(compact(&other)["written"], 0);
    // A folder with changes of its own is another one.
    let own = Root::empty("mara");
    own.write("memory/2025-03-03.md", "# 2025-03-03\n\n- Decided: the quay is closed in March\n");
    own.run(&["bundle", "pull", &store.url(), "--root", "."]).ok();
    assert_eq!(note(&own), None);
}
