//! Each kind of statement in the memories by topic and in `WISDOM.md`: no text of strangers becomes one, and each can
//! be forgotten, undone, rebuilt, edited and deleted.

use std::{collections::BTreeMap, fs};

use crate::support::{Root, assert_in_no_file, line_of};

/// Each kind: the heading of its section, a line of a log that says one, and words that only it has.
const KINDS: [(&str, &str, &str); 9] = [
    ("Rules", "- Never restart TideBoard during a gale warning", "gale warning"),
    (
        "Lessons",
        "- Lesson: the clock of TideBoard drifts in hard frost, so it needs a check each winter",
        "hard frost",
    ),
    ("Preferences", "- Ottilie prefers short reports with the numbers first", "short reports"),
    ("State", "- TideBoard: the pilots of the ferry use it on a tablet", "on a tablet"),
    (
        "Decisions",
        "- Decided to keep the data of TideBoard in SQLite, because one file is easy to copy",
        "in SQLite",
    ),
    ("Environment", "- TideBoard lives at https://tides.example/board", "tides.example/board"),
    ("Open", "- [ ] Order a second gauge for TideBoard before the spring", "second gauge"),
    ("Stopped", "- Removed the paper charts of TideBoard, nobody read them", "paper charts"),
    ("Profile", "## User profile\n\n- Ottilie runs the harbour office of Quimper", "of Quimper"),
];

/// The log with one line of each kind, from line 3 on.
const LOG: &str = "memory/2026-04-09.md";

const LAST: &str = "memory/2026-04-10.md";

const NEWS: &str = "- The mirror of TideBoard moved to the pier house\n";

/// Returns logs of three days: those around `lines` make the topics known.
fn written(name: &str, lines: &str) -> Root {
    let root = Root::empty(name);
    root.write("memoird.yaml", "zone: Europe/Berlin\nagent_name: Ada\n");
    root.write(
        "memory/2026-04-08.md",
        "- Mounted the screen of TideBoard at the pier\n- Ottilie asked for the key of TideBoard\n",
    );
    root.write(LOG, lines);
    root.write(
        LAST,
        "- Cleaned the gauge of TideBoard\n- Ottilie confirmed that the gauge of TideBoard is clean\n",
    );
    root
}

/// Returns a folder with a statement of each kind, compacted.
fn compacted(name: &str) -> Root {
    let lines = KINDS.map(|it| it.1).join("\n");
    let root = written(name, &format!("# 2026-04-09\n\n{lines}\n"));
    compact(&root);
    root
}

fn compact(root: &Root) {
    root.run_with_digest(&["compact"]).ok();
}

/// Returns the memories and `WISDOM.md` with their hidden files.
fn files(root: &Root) -> BTreeMap<String, String> {
    let is_ours = |path: &String| {
        let visible = Root::visible_path(path);
        visible == "WISDOM.md" || root.typed_memories().contains(&visible)
    };
    root.files().into_iter().filter(|it| is_ours(&it.0)).collect()
}

fn text_of(files: &BTreeMap<String, String>) -> String {
    files.values().map(String::as_str).collect()
}

/// Returns the memory that has these words, and the line with them.
fn memory_with(root: &Root, words: &str) -> (String, String) {
    let with = |path: &String| {
        let line = root
            .read(path)
            .lines()
            .find(|it| it.starts_with("- ") && it.contains(words))?
            .to_owned();
        Some((path.clone(), line))
    };
    root.typed_memories().iter().find_map(with).unwrap_or_else(|| panic!("no memory has {words}"))
}

/// Replaces a line of a file; an empty one is removed.
fn replace_line(root: &Root, path: &str, from: &str, to: &str) {
    let text = root.read(path);
    assert!(text.contains(from), "{from} in {text}");
    let (from, to) =
        (format!("{from}\n"), if to.is_empty() { String::new() } else { format!("{to}\n") });
    root.write(path, &text.replace(&from, &to));
}

fn drop_database(root: &Root) {
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run_with_digest(&["rebuild"]).ok();
}

#[test]
fn each_kind_has_its_section_and_is_in_wisdom() {
    let root = compacted("kinds");
    let wisdom = root.read("WISDOM.md");
    for (heading, _, words) in KINDS {
        let (path, line) = memory_with(&root, words);
        let text = root.read(&path);
        let above = text.split(&line).next().unwrap().rsplit("## ").next().unwrap();
        assert_eq!(above.lines().next(), Some(heading), "{words}: {text}");
        assert!(wisdom.contains(words), "{words}: {wisdom}");
    }
}

#[test]
fn text_of_strangers_gives_no_statement_of_any_kind() {
    let quoted = |line: &str| format!("> {}\n\n", line.replace('\n', "\n> "));
    let mail = |line: &str| {
        format!(
            "- Mail from Oskumar:\n\n> From: Oskumar\n> Subject: TideBoard\n>\n{}",
            quoted(line)
        )
    };
    let output = |line: &str| format!("The tool wrote:\n\n```text\n{line}\n```\n\n");
    let fetched = |line: &str| {
        format!("<<<EXTERNAL_UNTRUSTED_CONTENT\n{line}\nEND_EXTERNAL_UNTRUSTED_CONTENT>>>\n\n")
    };
    let dump = |line: &str, before: &str| {
        let line = line.rsplit("- ").next().unwrap();
        let lines = [
            "# Session: 2026-04-09 09:12:44 UTC",
            "",
            "- **Session Key**: agent:main:main",
            "- **Session ID**: 5f1c",
            "",
            "## Conversation Summary",
            "",
            &format!("user: [Telegram Ada 2026-04-09 09:10 UTC] {line}"),
            "assistant: Done.",
        ];
        lines.map(|it| format!("{before}{it}\n")).concat() + "\n"
    };
    let all = |wrapped: &dyn Fn(&str) -> String| KINDS.map(|it| wrapped(it.1)).concat();
    let wrapped = [
        ("a quote", all(&quoted)),
        ("a mail", all(&mail)),
        ("the output of a tool", all(&output)),
        ("fetched text", all(&fetched)),
        ("a dump in a quote", all(&|it| dump(it, "> "))),
        ("a dump in a fence", all(&|it| format!("```\n{}```\n\n", dump(it, "")))),
        (
            "a log from outside",
            format!("---\norigin: web\n---\n\n{}", all(&|it| format!("{it}\n"))),
        ),
        (
            "a dump in a log from outside",
            format!("---\norigin: web\n---\n\n{}", all(&|it| dump(it, ""))),
        ),
    ];
    for (what, text) in wrapped {
        let root = written("strangers", &text);
        compact(&root);
        let all = text_of(&files(&root));
        let context = root.run_with_digest(&["context"]).ok().stdout;
        for (kind, _, words) in KINDS {
            assert!(!all.contains(words), "{what}, {kind}: {all}");
            assert!(!context.contains(words), "{what}, {kind}: {context}");
        }
        assert!(all.contains("TideBoard"), "{what}: {all}");
    }
}

#[test]
fn a_forgotten_line_leaves_every_statement_that_cites_it() {
    let all = compacted("forgotten");
    for (kind, _, words) in KINDS {
        let root = all.copy();
        let line = line_of(&root.read(LOG), words);
        root.run_with_digest(&["forget", &format!("2026-04-09:{line}"), "--from-log", "--yes"])
            .ok();
        compact(&root);
        assert_in_no_file(&root.path(""), words, None);
        for args in [&["search", "--json", words][..], &["context"]] {
            let shown = root.run_with_digest(args).ok().stdout;
            let shown = shown.replace(&format!("\"query\": \"{words}\""), "");
            assert!(!shown.contains(words), "{kind}: {shown}");
        }
        KINDS.iter().filter(|it| it.0 != kind).for_each(|it| drop(memory_with(&root, it.2)));
        root.run_with_digest(&["doctor"]).ok();
    }
}

#[test]
fn undo_brings_back_the_former_bytes() {
    let mut root = compacted("undone");
    let before = files(&root);
    let newer = KINDS.map(|it| it.1.replace("TideBoard", "TideBoard and BuoyBoard")).join("\n");
    root.write(
        "memory/2026-04-11.md",
        &format!("{newer}\n- BuoyBoard: the pilots like it\n{NEWS}"),
    );
    root.set_now("2026-04-12T09:00:00+02:00");
    compact(&root);
    assert_ne!(files(&root), before);
    root.run_with_digest(&["undo", "--yes"]).ok();
    assert_eq!(files(&root), before);
    root.run_with_digest(&["doctor"]).ok();
}

#[test]
fn a_rebuild_gives_the_same_bytes() {
    let root = compacted("rebuilt");
    let before = files(&root);
    drop_database(&root);
    assert_eq!(files(&root), before);
    compact(&root);
    assert_eq!(files(&root), before);
    root.run_with_digest(&["doctor"]).ok();
}

#[test]
fn an_edited_statement_stays_the_persons() {
    let root = compacted("edited");
    let mut edits = Vec::new();
    for (kind, _, words) in KINDS {
        let (path, line) = memory_with(&root, words);
        let edited = line.replace(words, &format!("{words} and more"));
        replace_line(&root, &path, &line, &edited);
        edits.push((kind, path, line, edited));
    }
    let check = || {
        for (kind, path, line, edited) in &edits {
            let all: String = root.typed_memories().iter().map(|it| root.read(it)).collect();
            assert!(root.read(path).contains(edited), "{kind}: {}", root.read(path));
            assert!(!all.contains(&format!("{line}\n")), "{kind}: {all}");
        }
    };
    root.append(LAST, NEWS);
    compact(&root);
    check();
    drop_database(&root);
    root.append(LAST, "- The roof of TideBoard was painted\n");
    compact(&root);
    check();
}

#[test]
fn an_edited_value_is_not_replaced() {
    let mut root = written("value", "- Poll interval of TideBoard: 10 minutes\n");
    root.append(
        LAST,
        "- TideBoard: the pilots read the charts on a tablet\n- [ ] Order a lamp for TideBoard\n",
    );
    compact(&root);
    let (path, line) = memory_with(&root, "10 minutes");
    replace_line(&root, &path, &line, &line.replace("10 minutes", "7 minutes"));
    root.write("memory/2026-04-11.md", "- Poll interval of TideBoard: 3 minutes\n");
    root.set_now("2026-04-12T09:00:00+02:00");
    compact(&root);
    let text = root.read(&path);
    assert!(text.contains("Poll interval of TideBoard: 7 minutes"), "{text}");
    assert!(!text.contains("3 minutes") && !text.contains("10 minutes"), "{text}");
}

#[test]
fn a_deleted_statement_stays_away() {
    let root = compacted("deleted");
    for (_, _, words) in KINDS {
        let (path, line) = memory_with(&root, words);
        replace_line(&root, &path, &line, "");
    }
    let check = || {
        // What was deleted below is not said above.
        for path in root.typed_memories().into_iter().chain(["WISDOM.md".to_owned()]) {
            let text = root.read(&path);
            for (kind, _, words) in KINDS {
                assert!(!text.contains(words), "{path}, {kind}: {text}");
            }
        }
    };
    root.append(LAST, NEWS);
    compact(&root);
    check();
    drop_database(&root);
    root.append(LAST, "- The roof of TideBoard was painted\n");
    compact(&root);
    check();
}
