//! Files that come from another machine, from version control, or from the history: their own
//! hashes say what they cite, and what is missing in them was not deleted by a person.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::support::Root;

const LOG: &str = "memory/2026-03-02.md";
const HENK: &str = "- Henk prefers tea over coffee\n";
const NOOR: &str = "- Noor met Priya about the backup, nothing new.\n";
const ANTENNA: &str = "- 11:58 Antenna shipped (#285), 6.9 s per GB\n";
const DECISIONS: &str = "memory/.decisions.jsonl";

fn day(lines: &[&str]) -> String {
    format!("# Day\n\n{}", lines.concat())
}

/// Returns a folder with this log, compacted.
fn compacted(name: &str, log: &str) -> Root {
    let root = Root::empty(name);
    root.write("memoird.yaml", "zone: UTC\n");
    root.write(LOG, log);
    root.run(&["compact"]).ok();
    root
}

/// Returns a folder on another machine, with the same files and its own database.
fn other_machine(root: &Root) -> Root {
    let other = Root::empty("other");
    send(root, &other);
    other
}

/// Makes the files of a folder equal to those of another one.
fn send(from: &Root, to: &Root) {
    let (there, here) = (from.files(), to.files());
    for name in here.keys().filter(|it| !there.contains_key(*it)) {
        fs::remove_file(to.path(name)).unwrap();
    }
    for (name, text) in there.iter().filter(|(name, text)| here.get(*name) != Some(text)) {
        to.write(name, text);
    }
}

fn only_memory(root: &Root) -> String {
    let [memory] = &root.typed_memories()[..] else { panic!("{:?}", root.typed_memories()) };
    memory.clone()
}

fn cited(root: &Root, path: &str) -> String {
    let text = root.read_record(path);
    let at = text.find("\"sources\"").unwrap_or_else(|| panic!("{text}"));
    let end = text[at..].find(['\n', ']']).map_or(text.len(), |it| at + it);
    // A list has one source a line.
    let end =
        text[at..].find(']').filter(|_| text[at..end].ends_with('[')).map_or(end, |it| at + it);
    text[at..end].split_whitespace().collect()
}

#[test]
fn an_undone_deletion_restores_a_memory_whose_source_is_gone() {
    let root = compacted("undo", &day(&[HENK, NOOR, ANTENNA]));
    let memory = only_memory(&root);
    root.write(LOG, &day(&[NOOR, ANTENNA]));
    root.run(&["compact"]).ok();
    assert!(root.typed_memories().is_empty());
    root.run(&["undo", "-y"]).ok();
    let line = cited(&root, &memory);
    assert!(line.contains("[2026-03-02:10000003#"), "{line}");
    let traced = root.run(&["trace", &memory, "--json"]).ok().json_as("trace");
    assert_eq!(
        (&traced["sources"][0]["gone"], &traced["sources"][0]["text"]),
        (&true.into(), &"".into())
    );
    root.run(&["doctor"]).ok();
    root.run(&["forget", &memory, "--from-log", "--yes"]).ok();
    assert_eq!(root.read(LOG), day(&[NOOR, ANTENNA]));
    assert!(root.typed_memories().is_empty());
}

/// As an earlier version left such a memory.
#[test]
fn forget_leaves_a_line_alone_that_is_not_the_cited_one() {
    let root = compacted("false", &day(&[HENK, NOOR, ANTENNA]));
    let memory = only_memory(&root);
    let text = root.read(&memory);
    root.write(LOG, &day(&[NOOR, ANTENNA]));
    root.run(&["compact"]).ok();
    root.write(&memory, &text);
    root.run(&["rebuild"]).ok();
    root.run(&["forget", &format!("{LOG}:3"), "--yes"]).ok();
    assert!(root.path(&memory).exists(), "it is not derived from that line");
    root.run(&["forget", &memory, "--from-log", "--yes"]).ok();
    assert_eq!(root.read(LOG), day(&[NOOR, ANTENNA]));
}

#[test]
fn a_line_that_moved_on_one_machine_is_not_moved_again_on_the_other() {
    let keep = "- Always tag a release before the upload, because the mirror copies tags #keep\n";
    let mine = compacted("one", &day(&[HENK, keep, NOOR]));
    let theirs = other_machine(&mine);
    theirs.run(&["compact"]).ok();
    let memory = "memory/user_henk-prefers-tea-coffee.md";
    let week = "memory/weekly/2026-W10.md";
    let reworded = mine.read(week).replacen("over coffee", "rather than coffee", 1);
    mine.write(week, &reworded);
    mine.run(&["compact"]).ok();
    // Their database knows neither of the two new lines.
    mine.write(LOG, &format!("- Top of the day\n- Another one\n{}", day(&[HENK, keep, NOOR])));
    mine.run(&["compact"]).ok();
    send(&mine, &theirs);
    let before = theirs.files();
    theirs.run(&["compact"]).ok();
    assert_eq!(theirs.files(), before);
    let files = [memory, "WISDOM.md"].map(|it| cited(&theirs, it));
    assert!(files[0].contains("2026-03-02:5#") && files[1].contains("2026-03-02:6"), "{files:?}");
    assert!(
        theirs.read(week).contains("rather than coffee [2026-03-02:3,5"),
        "{}",
        theirs.read(week)
    );
}

#[test]
fn decisions_of_two_machines_are_merged_as_a_set_of_lines() {
    let mine = compacted("one", &day(&[HENK, NOOR, ANTENNA]));
    let theirs = other_machine(&mine);
    theirs.run(&["compact"]).ok();
    fs::remove_file(mine.path(&only_memory(&mine))).unwrap();
    let week = "memory/weekly/2026-W10.md";
    let bullet = |it: &&str| it.contains("Antenna");
    let text = theirs.read(week);
    let line = text.lines().find(bullet).unwrap().to_owned();
    theirs.write(week, &text.replacen(&format!("{line}\n"), "", 1));
    for root in [&mine, &theirs] {
        root.run(&["compact"]).ok();
    }
    let [ours, other] = [&mine, &theirs].map(|it| it.read(DECISIONS));
    // Version control takes the lines of both; a sync tool takes the file of one machine.
    for (case, text) in [("union", other.clone() + &ours), ("one file", other.clone())] {
        let root = Root::empty(case);
        send(&mine, &root);
        root.run(&["compact"]).ok();
        root.write(DECISIONS, &text);
        fs::set_permissions(root.path(DECISIONS), fs::Permissions::from_mode(0o600)).unwrap();
        root.run(&["doctor"]).ok();
        root.append(LOG, "- One line more, and nothing else\n");
        root.run(&["compact"]).ok();
        let now = root.read(DECISIONS);
        for line in ours.lines().chain(other.lines()) {
            assert!(now.lines().any(|it| it == line), "{case}: {line} is not in\n{now}");
        }
        assert!(root.typed_memories().is_empty(), "{case}");
        assert!(!root.read(week).contains("Antenna"), "{case}: {}", root.read(week));
        root.run(&["doctor"]).ok();
    }
}

#[test]
fn a_branch_without_a_line_deletes_nothing_on_the_other_branch() {
    let other = "- Noor prefers the report before lunch\n";
    let root = compacted("branches", &day(&[other, ANTENNA]));
    let early = root.files();
    root.write(LOG, &day(&[HENK, other, ANTENNA]));
    root.run(&["compact"]).ok();
    let late = root.files();
    // The line vanished with its memory, or only the generated files went back.
    for with_log in [true, false] {
        for name in late.keys().filter(|it| !early.contains_key(*it)) {
            fs::remove_file(root.path(name)).unwrap();
        }
        for (name, text) in early.iter().filter(|it| with_log || it.0 != LOG) {
            root.write(name, text);
        }
        root.run(&["compact"]).ok();
        assert!(!root.path(DECISIONS).exists(), "with_log: {with_log}");
        for (name, text) in &late {
            root.write(name, text);
        }
        root.run(&["compact"]).ok();
        assert_eq!(root.files(), late, "with_log: {with_log}");
    }
}
