//! What a folder that somebody else made must not do: lower the user's guards, run programs, or let others write.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use crate::support::Root;

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_cannot_lower_the_guards_of_the_user() {
    let root = Root::small();
    root.write(
        "memoird.yaml",
        "zone: Europe/Berlin\nmcp: {write: true}\nwisdom: {review: auto}\n\
         privacy: {origin: human, human_logs: [\"*\"]}\n",
    );
    let status = root.run(&["status"]).ok();
    for key in ["mcp.write", "privacy.origin", "privacy.human_logs"] {
        let is_named = |it: &str| it.contains(key) && it.contains("config.yaml");
        assert!(status.to_string().lines().any(is_named), "{status}");
    }
    let doctor = root.run(&["doctor"]).ok();
    assert!(doctor.to_string().contains("mcp.write"), "{doctor}");
    // With the user's consent the same file has its effect.
    root.write(
        "../.config/memoird/config.yaml",
        "mcp: {write: true}\nprivacy: {origin: human, human_logs: [\"*\"]}\n",
    );
    let status = root.run(&["status"]).ok();
    assert!(!status.to_string().contains("no effect"), "{status}");
}

#[test]
fn a_folder_can_tighten_and_keeps_what_the_user_tightened() {
    let root = Root::small();
    root.write("../.config/memoird/config.yaml", "wisdom: {review: manual}\n");
    root.write("memoird.yaml", "zone: Europe/Berlin\nwisdom: {review: auto}\n");
    root.append(
        "memory/2026-03-10.md",
        "- Decided to keep SQLite, because one file is easy to back up.\n",
    );
    root.run(&["compact"]).ok();
    let has_entry = |root: &Root| {
        let record = root.path(&Root::record_path("WISDOM.md"));
        record.exists() && root.read_record("WISDOM.md").contains("sources")
    };
    assert!(!has_entry(&root), "{}", root.read("WISDOM.md"));
}

#[test]
fn configuration_that_others_may_change_is_refused() {
    let root = Root::small();
    root.write("../.config/memoird/config.yaml", "roots: []\n");
    for file in [root.home(".config/memoird/config.yaml"), root.path("memoird.yaml")] {
        chmod(&file, 0o666);
        for verb in ["compact", "context", "status"] {
            let ran = root.run(&[verb]);
            assert_eq!(ran.code, 78, "{ran}");
            assert!(ran.stderr.contains("chmod o-w '"), "{ran}");
        }
        chmod(&file, 0o644);
        root.run(&["status"]).ok();
    }
    chmod(&root.home(".config/memoird"), 0o777);
    let ran = root.run(&["status"]);
    assert_eq!(ran.code, 78, "{ran}");
    assert!(ran.stderr.contains(".config/memoird'"), "{ran}");
}

#[test]
fn a_memory_folder_in_which_others_may_write_is_refused() {
    let root = Root::small();
    for mode in [0o777, 0o1777] {
        chmod(&root.path("memory"), mode);
        for verb in [&["compact"][..], &["context"], &["mcp"]] {
            let ran = root.run(verb);
            assert_ne!(ran.code, 0, "{ran}");
            assert!(ran.stderr.contains("chmod o-w '"), "{ran}");
        }
        assert!(!root.path("WISDOM.md").exists());
    }
    chmod(&root.path("memory"), 0o755);
    root.run(&["compact"]).ok();
}

/// A repository whose configuration names a program for everything that git may run while it is queried.
#[test]
fn the_state_of_a_repository_is_shown_without_running_its_programs() {
    let Some(git) =
        ["/usr/bin/git", "/usr/local/bin/git"].into_iter().find(|it| Path::new(it).exists())
    else {
        crate::support::skipped("git is not installed");
        return;
    };
    let root = Root::small();
    let ran = root.path("ran");
    let run_git = |words: &[&str]| {
        let output = Command::new(git).args(words).current_dir(root.path("")).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", output.stderr.escape_ascii());
    };
    run_git(&["init", "-q", "-b", "main"]);
    root.write("a.txt", "one\n");
    root.write(".gitattributes", "*.txt filter=evil diff=evil\n");
    run_git(&["add", "."]);
    run_git(&[
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=ada@example.org",
        "commit",
        "-q",
        "-m",
        "First words",
    ]);
    let program = root.path("evil.sh");
    root.write("evil.sh", &format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", ran.display()));
    chmod(&program, 0o755);
    let program = program.to_str().unwrap();
    for key in [
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "core.fsmonitor",
        "core.pager",
        "pager.log",
        "pager.status",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "gpg.program",
        "core.sshCommand",
        "core.editor",
    ] {
        run_git(&["config", key, program]);
    }
    for (key, value) in [
        ("log.showSignature", "true"),
        ("filter.evil.required", "true"),
        ("status.submoduleSummary", "true"),
    ] {
        run_git(&["config", key, value]);
    }
    for hook in
        ["post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout"]
    {
        root.write(
            &format!(".git/hooks/{hook}"),
            &format!("#!/bin/sh\necho hook >> '{}'\n", ran.display()),
        );
        chmod(&root.path(&format!(".git/hooks/{hook}")), 0o755);
    }
    // The file changed within the same size, so only its content tells, which goes through the filter.
    root.write("a.txt", "two\n");
    let mut command = root.command(&["context", "--git"]);
    command.env("PATH", Path::new(git).parent().unwrap());
    let output = root.finish(command, &["context", "--git"]).ok();
    assert!(output.stdout.contains("First words") && output.stdout.contains("a.txt"), "{output}");
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
}
