//! Memory folders that are created at the first session in a project, and import of earlier sessions.

use std::fs;

use serde_json::{Value, json};

use super::sample_text;
use crate::support::{CommandOutput, Root};

/// Returns a home without a memory folder, with the repositories `~/work/NAME`.
fn home(projects: &[&str]) -> Root {
    let root = Root::empty("work");
    for name in projects {
        fs::create_dir_all(root.path(name).join(".git")).unwrap();
    }
    root
}

/// Returns the transcript of a Claude Code session in a folder.
fn transcript_in(root: &Root, folder: &str, session: &str) -> String {
    let text = sample_text("claude-code.jsonl");
    let line = |it: &str| {
        let Ok(mut line) = serde_json::from_str::<Value>(it) else { return it.to_owned() };
        if line.get("cwd").is_some() {
            line["cwd"] = json!(root.path(folder));
            line["sessionId"] = json!(session);
        }
        line.to_string()
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// Ends a session in a folder as Claude Code does, and waits until it is processed.
fn end(root: &Root, folder: &str, session: &str) {
    let name = format!("{session}.jsonl");
    root.write(&name, &transcript_in(root, folder, session));
    let hook_input = json!({"cwd": root.path(folder), "transcript_path": root.path(&name),
        "hook_event_name": "SessionEnd"});
    let ran = root.run_with_stdin(&["hook", "claude-code", "session-end"], hook_input.to_string());
    assert_eq!(ran.code, 0, "{ran}");
    root.run(&["hook", "work"]).ok();
}

/// Runs a command in a folder of `~/work`.
fn run_in(root: &Root, folder: &str, args: &[&str]) -> CommandOutput {
    let mut command = root.command(args);
    command.current_dir(root.path(folder));
    root.finish(command, args)
}

fn count_logs(root: &Root, memory: &str) -> usize {
    fs::read_dir(root.home(memory)).map_or(0, |it| {
        it.flatten().filter(|it| it.file_name().to_string_lossy().ends_with(".md")).count()
    })
}

#[test]
fn each_project_gets_its_own_folder_when_a_session_ends_in_it() {
    let root = home(&["tide", "other/tide", "plain"]);
    let memories = root.home("memories");
    let output = root.run(&["init", "--projects", memories.to_str().unwrap()]).ok();
    assert!(output.stderr.contains("each project gets a memory folder"), "{output}");
    // A second time it changes nothing.
    let config = fs::read_to_string(root.home(".config/memoird/config.yaml")).unwrap();
    root.run(&["init", "--projects", memories.to_str().unwrap()]).ok();
    assert_eq!(fs::read_to_string(root.home(".config/memoird/config.yaml")).unwrap(), config);
    end(&root, "tide", "a");
    assert_eq!(count_logs(&root, "memories/tide/memory"), 1);
    assert!(root.home("memories/tide/memoird.yaml").is_file());
    // Another project of the same name, a subfolder, and a folder that is not a project.
    end(&root, "other/tide", "b");
    fs::create_dir_all(root.path("tide/deep")).unwrap();
    end(&root, "tide/deep", "c");
    fs::remove_dir_all(root.path("plain/.git")).unwrap();
    end(&root, "plain", "d");
    assert_eq!(count_logs(&root, "memories/tide-2/memory"), 1);
    let mut names: Vec<_> =
        fs::read_dir(&memories).unwrap().flatten().map(|it| it.file_name()).collect();
    names.sort();
    assert_eq!(names, ["tide", "tide-2"]);
    // Each project uses its own folder.
    let root_of =
        |folder: &str| run_in(&root, folder, &["status", "--json"]).ok().json()["root"].clone();
    assert_eq!(root_of("tide"), json!("~/memories/tide"));
    assert_eq!(root_of("other/tide"), json!("~/memories/tide-2"));
}

#[test]
fn no_folder_is_created_unless_configured() {
    let root = home(&["tide"]);
    end(&root, "tide", "a");
    assert!(!root.home(".config/memoird/config.yaml").exists());
    assert_eq!(fs::read_dir(root.home(".local/state/memoird/spool")).unwrap().count(), 2);
}

#[test]
fn import_previews_earlier_sessions_and_then_imports_them() {
    let root = home(&["tide"]);
    let text = transcript_in(&root, "tide", "a");
    let sessions = root.home(".claude/projects/tide");
    fs::create_dir_all(&sessions).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(sessions.join("s.jsonl"), text).unwrap();
    let memories = root.home("memories");
    root.run(&["init", "--projects", memories.to_str().unwrap()]).ok();
    let shown = root.run(&["import", "claude-code", "--days", "0"]).ok();
    assert!(shown.stdout.contains("into a new memory folder"), "{shown}");
    assert!(!memories.join("tide").exists());
    let output = run_in(&root, "tide", &["import", "claude-code", "--days", "0", "--yes"]).ok();
    assert!(output.stderr.contains("imported 1 session,"), "{output}");
    assert_eq!(count_logs(&root, "memories/tide/memory"), 1);
    // Installing hooks shows earlier sessions at once.
    let with_hooks = root.run(&["init", "--claude-code", "--projects", memories.to_str().unwrap()]);
    assert!(with_hooks.ok().stderr.contains("Sessions of Claude Code in the last 30 days"));
    // `trace --up` works before the first compaction run.
    let memory = memories.join("tide/memory");
    let log = fs::read_dir(&memory).unwrap().flatten().map(|it| it.path());
    let log = log.filter(|it| it.extension().is_some_and(|it| it == "md")).max().unwrap();
    let text = fs::read_to_string(&log).unwrap();
    let line = text.lines().position(|it| it.contains("[CMEM-")).unwrap() + 1;
    let target = format!("memory/{}:{line}", log.file_name().unwrap().to_str().unwrap());
    let at = memories.join("tide");
    let traced = root.run(&["--root", at.to_str().unwrap(), "trace", "--up", &target]).ok();
    assert!(traced.stdout.contains("memory/2026-04-09.md:"), "{traced}");
    let again = run_in(&root, "tide", &["import", "claude-code", "--days", "0", "--yes"]).ok();
    assert!(again.stderr.contains("nothing to do"), "{again}");
}

#[test]
fn a_memory_folder_in_a_repository_gets_only_its_sessions() {
    let root = home(&["tide", "other"]);
    run_in(&root, "tide", &["init", "notes", "--yes"]).ok();
    let memories = root.home("memories");
    root.run(&["init", "--projects", memories.to_str().unwrap()]).ok();
    end(&root, "tide", "a");
    assert_eq!(count_logs(&root, "work/tide/notes/memory"), 1);
    // It gets the sessions of its own repository only.
    end(&root, "other", "b");
    assert_eq!(count_logs(&root, "work/tide/notes/memory"), 1);
    assert_eq!(count_logs(&root, "memories/other/memory"), 1);
}

#[test]
fn an_emptied_folder_of_one_project_is_not_given_to_another() {
    let root = home(&["tide", "other/tide"]);
    let memories = root.home("memories");
    root.run(&["init", "--projects", memories.to_str().unwrap()]).ok();
    end(&root, "tide", "a");
    let memory = memories.join("tide/memory");
    fs::remove_dir_all(&memory).unwrap();
    fs::create_dir(&memory).unwrap();
    end(&root, "other/tide", "b");
    assert_eq!(count_logs(&root, "memories/tide/memory"), 0);
    assert_eq!(count_logs(&root, "memories/tide-2/memory"), 1);
}

#[test]
fn a_name_of_a_repository_stops_no_other_session() {
    let bad = ["a\u{7}b", "c\u{85}d", "\u{1}"];
    let root = home(&[&bad[..], &["tide"]].concat());
    let memories = root.home("memories");
    root.run(&["init", "--projects", memories.to_str().unwrap()]).ok();
    for (n, name) in bad.iter().enumerate() {
        end(&root, name, &format!("bad-{n}"));
    }
    end(&root, "tide", "a");
    end(&root, "tide", "b");
    assert_eq!(count_logs(&root, "memories/tide/memory"), 1);
    assert_eq!(count_logs(&root, "memories/a-b/memory"), 1);
    run_in(&root, "tide", &["status"]).ok();
    for name in fs::read_dir(&memories).unwrap().flatten().map(|it| it.file_name()) {
        assert!(!name.to_string_lossy().contains(char::is_control), "{name:?}");
    }
}
