//! Late, changed and vanished logs: items derived from a line follow it, and nothing else changes.

use std::collections::{BTreeMap, BTreeSet};

use memoird::internals::memory::{joined, wisdom::WisdomFile};

use crate::support::{CommandOutput, Root};

const LOG: &str = "memory/2026-03-10.md";
const WEEK: &str = "memory/weekly/2026-W11.md";
const MONTH: &str = "memory/monthly/2026-03.md";
const DECISION: &str = "- Decided to use SQLite for staging, because one file is easy to back up\n";
const KEPT_RULE: &str =
    "- Always tag a release before the upload, because the mirror copies tags #keep\n";

/// Returns a folder with this log, compacted.
fn compacted(log: &str) -> Root {
    let root = Root::empty("late");
    root.write("memoird.yaml", "zone: UTC\n");
    root.write("memory/2026-03-04.md", "- Measured 31 ms at the old gate\n");
    root.write(LOG, log);
    root.run(&["compact"]).ok();
    root
}

/// Runs the command and returns the files that are new, changed, or gone; for a hidden file, the one beside it.
fn changed_by(root: &Root, args: &[&str]) -> BTreeSet<String> {
    let before = root.files();
    root.run(args).ok();
    differences(&before, &root.files())
}

fn differences(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter(|it| before.get(*it) != after.get(*it));
    changed.map(|it| Root::visible_path(it)).collect()
}

fn reasons(ran: &CommandOutput) -> Vec<String> {
    let report = ran.json_as("compact");
    let job = |it: &serde_json::Value| {
        let text_of = |key: &str| it[key].as_str().unwrap().to_owned();
        format!("{} {}: {}", text_of("tier"), text_of("outcome"), text_of("reason"))
    };
    report["jobs"].as_array().unwrap().iter().map(job).collect()
}

/// Returns the texts of a memory's source lines, and whether each is unchanged.
fn sources(root: &Root, path: &str) -> Vec<(String, bool)> {
    let traced = root.run(&["trace", path, "--json"]).ok().json_as("trace");
    let source = |it: &serde_json::Value| {
        let same = it.get("changed").and_then(serde_json::Value::as_bool) != Some(true);
        (it["text"].as_str().unwrap().to_owned(), same)
    };
    traced["sources"].as_array().unwrap().iter().map(source).collect()
}

fn rebuild_without_database(root: &Root) {
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
}

#[test]
fn a_memory_is_updated_when_its_line_changes() {
    let root = compacted(DECISION);
    let [memory] = &root.typed_memories()[..] else { panic!("{:?}", root.typed_memories()) };
    root.write(LOG, &DECISION.replace("one file is easy", "a single file is easier"));
    assert_eq!(
        changed_by(&root, &["compact"]),
        [LOG, WEEK, MONTH, memory].map(str::to_owned).into_iter().filter(|it| it != LOG).collect()
    );
    let text = root.read(memory);
    assert!(text.contains("a single file is easier") && !text.contains("one file"), "{text}");
    assert!(sources(&root, memory).iter().all(|it| it.1), "{text}");
    assert!(changed_by(&root, &["compact"]).is_empty());
    root.run(&["doctor"]).ok();
}

#[test]
fn a_memory_is_withdrawn_with_its_line_and_comes_back_with_it() {
    let root = compacted(DECISION);
    let [memory] = &root.typed_memories()[..] else { panic!("{:?}", root.typed_memories()) };
    let text = root.read(memory);
    root.write(LOG, "- Measured 12 ms at the new gate\n");
    let ran = root.run(&["compact", "--json"]).ok();
    let withdrawn = format!("{memory} withdrawn: its source changed");
    assert!(reasons(&ran).iter().any(|it| it.ends_with(&withdrawn)), "{:?}", reasons(&ran));
    assert!(root.typed_memories().is_empty());
    assert!(!root.read("memory/MEMORY.md").contains("SQLite"));
    // The line is gone, but no person deleted the memory.
    assert!(!root.path("memory/.decisions.jsonl").exists());
    assert!(changed_by(&root, &["compact"]).is_empty());
    root.run(&["doctor"]).ok();
    root.append(LOG, DECISION);
    root.run(&["compact"]).ok();
    assert_eq!(root.read(memory), text.replace("10:1#", "10:2#"));
}

#[test]
fn a_line_with_other_markup_keeps_its_memory() {
    let root = compacted(DECISION);
    let [memory] = &root.typed_memories()[..] else { panic!("{:?}", root.typed_memories()) };
    let (before, record) = (root.read(memory), root.read_record(memory));
    root.write(LOG, &DECISION.replace("- Decided", "*  Decided"));
    root.run(&["compact"]).ok();
    let after = root.read(memory);
    let body = |text: &str| text.rsplit_once("---\n").unwrap().1.to_owned();
    assert_eq!(body(&after), body(&before));
    assert_ne!(root.read_record(memory), record, "the hash of its line changes");
    assert!(sources(&root, memory).iter().all(|it| it.1), "{after}");
}

#[test]
fn without_the_database_sources_are_matched_by_hashes_in_the_files() {
    let log = format!("- Measured 12 ms at the new gate\n{DECISION}");
    for (edit, is_kept) in [
        (format!("A late note at the top.\n\n{log}"), true),
        (log.replace("one file", "a single file"), true),
        ("- Measured 12 ms at the new gate\n".to_owned(), false),
    ] {
        let root = compacted(&log);
        let [memory] = &root.typed_memories()[..] else { panic!("{:?}", root.typed_memories()) };
        std::fs::remove_dir_all(root.path(".memoird")).unwrap();
        root.write(LOG, &edit);
        root.run(&["rebuild"]).ok();
        root.run(&["compact"]).ok();
        assert_eq!(root.typed_memories().contains(memory), is_kept, "{edit}");
        if is_kept {
            let found_sources = sources(&root, memory);
            let decision = edit.lines().find(|it| it.starts_with("- Decided")).unwrap();
            assert_eq!(found_sources, [(decision.to_owned(), true)], "{edit}");
        }
        assert!(changed_by(&root, &["compact"]).is_empty(), "{edit}");
    }
}

#[test]
fn a_memory_follows_its_line_to_another_day() {
    for other in ["memory/2026-03-09.md", "memory/2026-03-11.md"] {
        let root = compacted(&format!("- Measured 12 ms at the new gate\n{DECISION}"));
        let [memory] = &root.typed_memories()[..] else { panic!("{:?}", root.typed_memories()) };
        root.write(LOG, "- Measured 12 ms at the new gate\n");
        root.write(other, DECISION);
        root.run(&["compact"]).ok();
        assert_eq!(root.typed_memories(), std::slice::from_ref(memory), "{other}");
        assert_eq!(sources(&root, memory), [(DECISION.trim_end().to_owned(), true)], "{other}");
    }
}

#[test]
fn an_edited_memory_stays_when_its_line_is_deleted() {
    let root = compacted(DECISION);
    let [memory] = &root.typed_memories()[..] else { panic!("{:?}", root.typed_memories()) };
    root.append(memory, "\nI know better.\n");
    let edited_text = root.read(memory);
    root.write(LOG, "- Measured 12 ms at the new gate\n");
    root.run(&["compact"]).ok();
    // The words stay, and the file says that the source is gone.
    assert_eq!(root.read(memory), edited_text.replace("10:1#", "10:10000001#"));
    assert_eq!(sources(&root, memory), [(String::new(), true)]);
    root.run(&["doctor"]).ok();
    root.write(LOG, &format!("- Measured 12 ms at the new gate\n{DECISION}"));
    root.run(&["compact"]).ok();
    assert_eq!(root.read(memory), edited_text.replace("10:1#", "10:2#"));
}

#[test]
fn a_wisdom_entry_follows_its_line() {
    for database_is_lost in [false, true] {
        let root = compacted(KEPT_RULE);
        let wisdom = root.read("WISDOM.md");
        assert!(wisdom.contains("because the mirror copies tags"), "{wisdom}");
        root.write(LOG, &KEPT_RULE.replace("the mirror copies tags", "the archive needs 1 tag"));
        if database_is_lost {
            rebuild_without_database(&root);
        }
        root.run(&["compact"]).ok();
        let after = root.read("WISDOM.md");
        assert!(!after.contains("mirror") && after.contains("archive needs 1 tag"), "{after}");
        assert!(changed_by(&root, &["compact"]).is_empty());
        // When the line is gone, so is the entry; no person deleted it, so it may come back.
        root.write(LOG, "- Measured 12 ms at the new gate\n");
        if database_is_lost {
            rebuild_without_database(&root);
        }
        let ran = root.run(&["compact", "--json"]).ok();
        let after = root.read("WISDOM.md");
        assert!(!after.contains("archive needs"), "{after}\n{ran}");
        assert!(
            reasons(&ran).iter().any(|it| it.ends_with("dropped: its source changed")),
            "{ran}"
        );
        assert!(!root.path("memory/.decisions.jsonl").exists());
        assert!(changed_by(&root, &["compact"]).is_empty());
        root.run(&["doctor"]).ok();
    }
}

#[test]
fn an_edited_wisdom_entry_stays_when_its_line_is_deleted() {
    let root = compacted(KEPT_RULE);
    let edited_text = root.read("WISDOM.md").replace("before the upload", "long before the upload");
    root.write("WISDOM.md", &edited_text);
    root.run(&["compact"]).ok();
    root.write(LOG, "- Measured 12 ms at the new gate\n");
    root.run(&["compact"]).ok();
    assert!(root.read("WISDOM.md").contains("long before the upload"));
}

/// Returns the generated files that may depend on a log.
fn files_citing(root: &Root, stem: &str) -> BTreeSet<String> {
    let cites = |text: &str| text.contains(&format!("{stem}:"));
    let mut files: BTreeSet<String> =
        root.typed_memories().into_iter().filter(|it| cites(&root.read_record(it))).collect();
    files.extend([WEEK.to_owned(), MONTH.to_owned()]);
    files
}

#[test]
fn a_log_edit_changes_only_files_that_cite_the_log() {
    let fresh = Root::new("mara");
    fresh.run(&["compact"]).ok();
    let log = "memory/2026-03-11.md";
    let text = fresh.read(log);
    let bullets: Vec<&str> = text.lines().filter(|it| it.starts_with("- ")).collect();
    let first = bullets[0];
    for edited in [
        text.replacen(first, &format!("{first}, measured 4711 times"), 1),
        text.replacen(&format!("{first}\n"), "", 1),
        format!("{text}\n- Late: 4711 packets were lost at the gate\n"),
    ] {
        let root = Root::new("mara");
        root.run(&["compact"]).ok();
        let citing = files_citing(&root, "2026-03-11");
        // The entries that do not cite the log, with what is recorded about them.
        let other_entries = || {
            let (visible, record) = (root.read("WISDOM.md"), root.read_record("WISDOM.md"));
            let file = WisdomFile::parse(&joined::join(&visible, Some(&record)));
            let entries = file.entries().map(|it| format!("{it:?}"));
            let cites = |entry: &str| entry.contains("2026-03-11");
            entries.filter(|it| !cites(it)).collect::<BTreeSet<String>>()
        };
        let before = other_entries();
        root.write(log, &edited);
        let mut changed = changed_by(&root, &["compact"]);
        assert!(changed.remove(WEEK), "{changed:?}");
        if changed.remove("WISDOM.md") {
            let after = other_entries();
            assert!(before.is_superset(&after), "{before:?}\n{after:?}");
        }
        changed.remove("memory/MEMORY.md");
        assert!(changed.is_subset(&citing), "{changed:?} {citing:?}");
        assert!(changed_by(&root, &["compact"]).is_empty());
        root.run(&["doctor"]).ok();
    }
}

#[test]
fn items_of_a_vanished_log_stay_and_are_marked() {
    let root = compacted(&format!("{DECISION}{KEPT_RULE}"));
    let before = root.files();
    std::fs::remove_file(root.path(LOG)).unwrap();
    root.run(&["compact"]).ok();
    assert_eq!(differences(&before, &root.files()), [LOG.to_owned()].into());
    let assert_source_gone = |args: &[&str]| {
        let ran = root.run(args);
        assert!(ran.to_string().contains("source gone"), "{ran}");
    };
    assert_source_gone(&["status"]);
    assert_source_gone(&["trace", WEEK]);
    assert_source_gone(&["doctor"]);
    insta::assert_snapshot!(root.run(&["compact", "--period", "2026-W11", "--force"]), @r"
    $ memoird compact --period 2026-W11 --force
    ! error: weekly 2026-W11 has no source, so it cannot be made; its file stays as it is
    !   hint: restore its logs first
    !   try: memoird status  # lists the missing ones
    [exit 2]
    ");
    let args = ["compact", "--period", "2026-W30", "--force", "--dry-run"];
    assert_eq!(root.run(&args).code, 2);
    assert_eq!(differences(&before, &root.files()), [LOG.to_owned()].into());
    // The same without the database.
    rebuild_without_database(&root);
    root.run(&["compact"]).ok();
    assert_eq!(differences(&before, &root.files()), [LOG.to_owned()].into());
    // The month still has a source, and keeps the items from the vanished one.
    root.run(&["compact", "--period", "2026-03", "--force"]).ok();
    assert!(root.read(MONTH).contains("SQLite"), "{}", root.read(MONTH));
}

/// Moves the logs of two months away and returns their old and new paths.
fn move_logs_away(root: &Root) -> Vec<(String, std::path::PathBuf)> {
    let logs = root.files().into_keys().filter(|it| it.starts_with("memory/2026-0"));
    let moved: Vec<_> = logs
        .filter(|it| it.starts_with("memory/2026-02") || it.starts_with("memory/2026-01"))
        .map(|it| (it.clone(), root.home(&it.replace('/', "_"))))
        .collect();
    for (path, away) in &moved {
        std::fs::rename(root.path(path), away).unwrap();
    }
    moved
}

#[test]
fn a_mass_disappearance_pauses_until_the_files_are_back() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let moved = move_logs_away(&root);
    let before = root.files();
    insta::assert_snapshot!(root.run(&["compact"]), @r"
    $ memoird compact
    ! error: 37 of 99 known files are gone (memory/2026-01-05.md, memory/2026-01-06.md, memory/2026-01-07.md, and 34 more); nothing was done
    !   try: memoird compact  # once the files are restored
    !   try: memoird compact --accept-missing  # if they are gone for good
    [exit 65]
    ");
    assert_eq!(root.run(&["compact", "--dry-run"]).code, 65);
    assert_eq!(root.run(&["rebuild"]).code, 65);
    let status = root.run(&["status"]);
    assert!(status.to_string().contains("known files are gone"), "{status}");
    assert_eq!(root.files(), before);
    for (path, away) in &moved {
        std::fs::rename(away, root.path(path)).unwrap();
    }
    assert!(changed_by(&root, &["compact"]).is_empty());
}

#[test]
fn an_accepted_mass_disappearance_is_not_reported_again() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    move_logs_away(&root);
    assert!(changed_by(&root, &["compact", "--accept-missing"]).is_empty());
    assert!(changed_by(&root, &["compact"]).is_empty());
    let status = root.run(&["status"]);
    assert!(!status.to_string().contains("known files are gone"), "{status}");
}

#[test]
fn an_emptied_folder_stops_the_run_however_small_it_was() {
    let root = compacted(DECISION);
    std::fs::rename(root.path("memory"), root.path("elsewhere")).unwrap();
    std::fs::create_dir(root.path("memory")).unwrap();
    assert_eq!(root.run(&["compact"]).code, 65);
    assert!(std::fs::read_dir(root.path("memory")).unwrap().next().is_none());
    // When the folder is back, nothing has changed.
    std::fs::remove_dir(root.path("memory")).unwrap();
    std::fs::rename(root.path("elsewhere"), root.path("memory")).unwrap();
    assert!(changed_by(&root, &["compact"]).is_empty());
}

#[test]
fn edited_items_follow_their_lines_when_lines_are_inserted_above() {
    let notes = "- Measured 12 ms at the new gate\n- Painted the cellar blue with Ottilie\n";
    for by_hand in [false, true] {
        let root = compacted(&format!("{notes}{KEPT_RULE}{DECISION}"));
        let week = root.read(WEEK);
        let at = week.lines().position(|it| it.contains("Painted the cellar")).unwrap() + 1;
        if by_hand {
            let words = "Painted the cellar blue with Ottilie";
            root.write(WEEK, &week.replace(words, "Zebra stands here"));
        } else {
            root.run(&["correct", &format!("{WEEK}:{at}"), "Zebra stands here"]).ok();
        }
        root.run(&["compact"]).ok();
        let [_, memory] = &root.typed_memories()[..] else { panic!("{:?}", root.typed_memories()) };
        let edited_memory = root.read(memory).replace("one file is easy", "one file is very easy");
        root.write(memory, &edited_memory);
        let edited_text =
            root.read("WISDOM.md").replace("before the upload", "long before the upload");
        root.write("WISDOM.md", &edited_text);
        root.run(&["compact"]).ok();
        assert!(root.read(WEEK).contains("- Zebra stands here [2026-03-10:2]\n"));
        assert!(root.read(MONTH).contains("Zebra stands here"), "{}", root.read(MONTH));

        root.write(LOG, &format!("- Late: 4711 packets were lost\n{notes}{KEPT_RULE}{DECISION}"));
        root.run(&["compact"]).ok();
        let (week, month) = (root.read(WEEK), root.read(MONTH));
        assert!(week.contains("- Zebra stands here [2026-03-10:3]\n"), "{week}");
        assert!(week.contains("4711") && week.contains("12 ms"), "{week}");
        assert!(!week.contains("Painted the cellar"), "{week}");
        assert!(month.contains("- Zebra stands here [2026-03-10:3"), "{month}");
        // The person's words stay byte for byte; only the line numbers are updated.
        let edited_memory = edited_memory.replace("2026-03-10:4#", "2026-03-10:5#");
        assert_eq!(root.read(memory), edited_memory);
        let wisdom = root.read("WISDOM.md");
        assert!(wisdom.contains("long before the upload"), "{wisdom}");
        let record = root.read_record("WISDOM.md");
        assert!(record.contains("\"sources\": \"2026-03-10:4\""), "{record}");
        assert!(sources(&root, memory).iter().all(|it| it.1), "{edited_memory}");
        assert!(changed_by(&root, &["compact"]).is_empty());
    }
}

#[test]
fn a_bullet_deleted_while_its_lines_move_suppresses_only_its_own_line() {
    let notes = "- Measured 12 ms at the new gate\n- Painted the cellar blue with Ottilie\n";
    for log_after in [
        format!("- Late: 4711 packets were lost\n{notes}"),
        // The source line of the bullet is gone as well; it comes back later.
        "- Late: 4711 packets were lost\n- Tuned 3 valves\n- Measured 12 ms at the new gate\n"
            .to_owned(),
    ] {
        let root = compacted(notes);
        let week = root.read(WEEK);
        let bullet = week.split_inclusive('\n').find(|it| it.contains("Painted")).unwrap();
        root.write(WEEK, &week.replace(bullet, ""));
        root.write(LOG, &log_after);
        root.run(&["compact"]).ok();
        let check = || {
            let text = root.read(WEEK);
            assert!(!text.contains("Painted"), "{text}");
            assert!(text.contains("12 ms") && text.contains("4711"), "{text}");
        };
        check();
        root.write(LOG, &format!("- Late: 4711 packets were lost\n\n{notes}"));
        rebuild_without_database(&root);
        root.run(&["compact"]).ok();
        check();
    }
}

#[test]
fn an_entry_is_dropped_with_its_main_line_even_if_it_cites_others() {
    let root = Root::empty("late");
    root.write("memoird.yaml", "zone: UTC\n");
    let rule = "- Always read memory files first #keep\n";
    root.write("memory/2026-03-04.md", "- Measured 31 ms at the old gate\n");
    root.write(LOG, rule);
    root.run(&["compact"]).ok();
    let wisdom = root.read("WISDOM.md");
    assert!(wisdom.contains("Always read memory files first"), "{wisdom}");
    // A second day says the same, and the entry cites its line too.
    root.write("memory/2026-03-11.md", "- Reading memory files first was quick today\n");
    root.run(&["compact"]).ok();
    let two = root.read_record("WISDOM.md");
    assert!(two.contains("\"sources\": \"2026-03-10:1; 2026-03-11:1\""), "{two}");
    root.write(LOG, &rule.replace("Always", "Never"));
    root.run(&["compact"]).ok();
    let after = root.read("WISDOM.md");
    assert!(!after.contains("Always read"), "{after}");
    assert!(after.contains("Never read memory files first"), "{after}");
    // Without a replacement the entry is dropped, and the run reports it.
    root.write(LOG, "- Measured 12 ms at the new gate\n");
    let ran = root.run(&["compact", "--json"]).ok();
    assert!(!root.read("WISDOM.md").contains("Never read"), "{}", root.read("WISDOM.md"));
    assert!(reasons(&ran).iter().any(|it| it.ends_with("dropped: its source changed")), "{ran}");
}
