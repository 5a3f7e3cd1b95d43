//! Import of notes of other programs.

use crate::support::{Root, files::read_all};

const DAY: &str = "# 2026-03-13 — Daily Log

## Task: retries

- Chose exponential backoff, because the upstream throttles for a minute
- Left the circuit breaker out, since one caller does not need it

> pasted: never do this
```
let retries = 5;
```
";

const NOTE: &str = "---
title: Authentication Design
type: note
permalink: authentication-design
created: 2026-03-05
---
# Authentication Design

## Observations
- [decision] JWT tokens for stateless authentication #security

## Relations
- implements [[API Security Requirements]]
";

fn root() -> Root {
    let root = Root::empty("notes");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root
}

#[test]
fn import_adds_each_note_once_with_its_source_and_only_reads_the_notes() {
    for (from, file, text, day, line) in [
        ("openclaw", "memory/2026-03-13-retries.md", DAY, "2026-03-13", "Chose exponential"),
        ("recall", "memory/2026-03-13.md", DAY, "2026-03-13", "Chose exponential"),
        ("teammates", ".teammates/beacon/memory/2026-03-13.md", DAY, "2026-03-13", "Chose exp"),
        ("hipocampus", "memory/2026-03-13.md", DAY, "2026-03-13", "Chose exponential"),
        ("basic-memory", "specs/auth.md", NOTE, "2026-03-05", "[decision] JWT tokens"),
    ] {
        let root = root();
        root.write(&format!("../theirs/{file}"), text);
        root.write("../theirs/memory/weekly/2026-W11.txt", "made of others");
        let theirs = root.path("../theirs");
        let before = read_all(&theirs);
        let path = theirs.to_str().unwrap();
        let preview = root.run(&["import", from, path, "--dry-run", "--json"]).ok().json();
        assert_eq!(preview["notes"].as_array().unwrap().len(), 1, "{preview:#}");
        assert!(
            !root.files().contains_key(&format!("memory/{day}.md")[..]),
            "a preview writes nothing"
        );
        let done = root.run(&["import", from, path, "--yes", "--json"]).ok().json();
        assert_eq!((&done["lines"], &done["dry_run"]), (&preview["lines"], &false.into()));
        assert_eq!(done["lines"], 2, "{done:#}");
        let log = root.read(&format!("memory/{day}.md"));
        let entry = log.lines().find(|it| it.contains(line)).unwrap();
        assert!(log.contains(&format!("Imported from {from}, `")), "{log}");
        assert!(!log.contains("pasted") && !log.contains("retries = 5"), "{log}");
        // The entry cites the same line in the record, which contains the file unchanged.
        let address = entry.rsplit(" [").next().unwrap().trim_end_matches(']');
        let (id, number) = address.split_once(':').unwrap();
        let record = root.read(&format!("memory/sessions/{id}.md"));
        let number: usize = number.parse().unwrap();
        assert!(record.lines().nth(number - 1).unwrap().contains(line), "{record}");
        assert!(record.ends_with(text), "{record}");
        // A second import changes nothing; a new line adds one entry.
        let (files, log) = (root.files(), log);
        assert_eq!(root.run(&["import", from, path, "--yes", "--json"]).ok().json()["lines"], 0);
        assert_eq!(root.files(), files);
        assert_eq!(read_all(&theirs), before);
        root.write(&format!("../theirs/{file}"), &format!("{text}- One thing more\n"));
        assert_eq!(root.run(&["import", from, path, "--yes", "--json"]).ok().json()["lines"], 1);
        let grown = root.read(&format!("memory/{day}.md"));
        assert!(grown.starts_with(&log) && grown.matches(line).count() == 1, "{grown}");
    }
}

#[test]
fn what_claude_code_remembers_of_the_project_is_imported() {
    let root = root();
    let name = root.path("").to_str().unwrap().trim_end_matches('/').to_owned();
    let name = name.replace(|it: char| !it.is_ascii_alphanumeric(), "-");
    let folder = format!("../.claude/projects/{name}/memory");
    let memory = "---\nname: datum-names\ndescription: Files are named by datum\nmetadata:\n  \
                  node_type: memory\n  type: feedback\n  modified: 2026-03-05T21:08:34.438Z\n---\n\n\
                  Files are named by datum, never by port.\n\n**Why:** Brest has two.\n";
    root.write(&format!("{folder}/datum-names.md"), memory);
    let index = "- [Datum names](datum-names.md) — files are named by datum\n";
    root.write(&format!("{folder}/MEMORY.md"), index);
    root.write("../.claude/projects/-other/memory/a.md", "- Not of this project\n");
    let done = root.run(&["import", "claude-memory", "--yes", "--json"]).ok().json();
    assert_eq!(done["lines"], 2, "{done:#}");
    let log = root.read("memory/2026-03-05.md");
    assert!(log.contains("- Files are named by datum, never by port. [CMEM-"), "{log}");
    assert!(
        log.contains("- **Why:** Brest has two.") && !log.contains("](datum-names.md)"),
        "{log}"
    );
    // An agent wrote it, whatever it says of the user.
    assert!(!log.contains("origin: human"), "{log}");
    let again = root.run(&["import", "claude-memory", "--yes", "--json"]).ok().json();
    assert_eq!(again["lines"], 0, "{again:#}");
}

#[test]
fn import_skips_generated_files_and_masks_secrets() {
    let root = root();
    root.write(
        "../theirs/memory/2026-03-13.md",
        "- The token is ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5 for CI\n",
    );
    root.write("../theirs/memory/weekly/2026-W11.md", "- A week of it\n");
    root.write("../theirs/memory/ROOT.md", "- An index\n");
    let path = root.path("../theirs");
    let ran = root.run(&["import", "hipocampus", path.to_str().unwrap(), "--yes"]).ok();
    assert!(ran.stderr.contains("imported 1 file,"), "{ran}");
    let log = root.read("memory/2026-03-13.md");
    assert!(log.contains("The token is") && !log.contains("ghp_aB3d"), "{log}");
    let all = root.files().into_values().collect::<String>();
    assert!(!all.contains("A week of it") && !all.contains("An index"));
}
