//! `memoird uninstall`: everything outside of memory folders is taken out, and nothing of the user's.

use std::fs;

use super::support::{CommandOutput, Root, write_file};

fn read(root: &Root, path: &str) -> String {
    fs::read_to_string(root.home(path)).unwrap()
}

const CLAUDE: &str = "{\n  \"model\": \"opus\"\n}\n";
const GEMINI: &str = "{\n  // my theme\n  \"ui\": {\"theme\": \"dark\"}\n}\n";

/// Returns a home with the sample folder `~/small`, compacted, hooks of three programs, a service, and state.
fn installed() -> Root {
    let root = Root::small();
    write_file(&root.home(".claude/settings.json"), CLAUDE);
    write_file(&root.home(".gemini/settings.json"), GEMINI);
    let programs = ["--claude-code", "--codex", "--gemini"];
    root.run(&[&["init", ".", "--service", "--yes"], &programs[..]].concat()).ok();
    root.run(&["compact"]).ok();
    write_file(&root.home(".local/state/memoird/ledger.db"), "costs");
    write_file(&root.home(".local/state/memoird/spool/lock"), "");
    root
}

fn uninstall(root: &Root, more: &[&str]) -> CommandOutput {
    root.run(&[&["uninstall"], more].concat())
}

#[test]
fn a_dry_run_lists_everything_and_changes_nothing() {
    let root = installed();
    let before = (root.files(), read(&root, ".claude/settings.json"));
    let shown = uninstall(&root, &["--dry-run"]).ok();
    insta::assert_snapshot!(shown.stderr, @r"
    would take out
      service        ~/.config/systemd/user/memoird.service
      hooks          ~/.claude/settings.json (Claude Code: restored byte for byte, as before memoird was set up)
                     ~/.claude.json (Claude Code: removed, as before memoird was set up)
                     ~/.codex/hooks.json (Codex: removed, as before memoird was set up)
                     ~/.codex/config.toml (Codex: removed, as before memoird was set up)
                     ~/.gemini/settings.json (Gemini CLI: restored byte for byte, as before memoird was set up)
      state          ~/.local/state/memoird/ledger.db
                     ~/.local/state/memoird/spool
    keeps
      memory         ~/small (3 logs; 10 files by memoird)
      configuration  ~/.config/memoird/config.yaml (--purge removes it)
      program        memoird (to remove it: rm memoird)
    what memoird wrote in memory folders: memoird uninstall --dry-run --json
    nothing was changed; to do it: memoird uninstall --yes
    ");
    assert!(shown.stdout.contains("hook claude-code"), "{shown}");
    let json = uninstall(&root, &["--dry-run", "--json"]).ok().json();
    let generated = json["kept"]["folders"][0]["generated"].as_array().unwrap();
    for path in
        ["memory/weekly/2026-W10.md", "memory/weekly/.2026-W10.json", ".memoird/", "memoird.yaml"]
    {
        assert!(generated.contains(&path.into()), "{path}: {json}");
    }
    // Nobody can agree.
    let refused = uninstall(&root, &[]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("memoird uninstall --yes"), "{refused}");
    assert_eq!((root.files(), read(&root, ".claude/settings.json")), before);
}

#[test]
fn settings_return_byte_for_byte_and_memory_folders_stay() {
    let root = installed();
    write_file(&root.home(".local/state/memoird/mine.txt"), "mine");
    let before = root.files();
    let done = uninstall(&root, &["--yes", "--json"]).ok().json();
    assert_eq!(done["failed"], serde_json::json!([]), "{done}");
    assert_eq!(read(&root, ".claude/settings.json"), CLAUDE);
    assert_eq!(read(&root, ".gemini/settings.json"), GEMINI);
    for gone in [
        ".codex/hooks.json",
        ".config/systemd/user/memoird.service",
        ".local/state/memoird/ledger.db",
    ] {
        assert!(!root.home(gone).exists(), "{gone}");
    }
    // Empty folders that are only there for removed files go, others stay.
    assert!(!root.home(".codex").exists() && !root.home(".config/systemd").exists());
    for folder in [".claude", ".gemini"] {
        assert_eq!(fs::read_dir(root.home(folder)).unwrap().count(), 1, "no backup is left");
    }
    assert!(!root.home(".local/state/memoird/spool").exists());
    assert_eq!(read(&root, ".local/state/memoird/mine.txt"), "mine");
    assert!(root.home(".config/memoird/config.yaml").is_file());
    assert_eq!(root.files(), before);
    let again = uninstall(&root, &["--yes"]).ok();
    assert!(again.stderr.contains("nothing to do"), "{again}");
    // The memory folder works as before.
    root.run(&["status"]).ok();
    uninstall(&root, &["--yes", "--purge"]).ok();
    assert!(!root.home(".config/memoird").exists());
    assert_eq!(root.files(), before);
}

#[test]
fn settings_with_other_changes_lose_the_hooks_and_nothing_else() {
    let root = installed();
    let changed = read(&root, ".claude/settings.json").replace("opus", "sonnet");
    write_file(&root.home(".claude/settings.json"), &changed);
    write_file(&root.home(".codex/hooks.json"), "{ broken");
    let done = uninstall(&root, &["--yes"]);
    assert_eq!(done.code, 1, "{done}");
    assert!(done.stderr.contains("memoird init --codex --uninstall"), "{done}");
    assert_eq!(read(&root, ".claude/settings.json"), CLAUDE.replace("opus", "sonnet"));
    assert_eq!(read(&root, ".codex/hooks.json"), "{ broken");
    assert_eq!(read(&root, ".gemini/settings.json"), GEMINI);
}

#[test]
fn the_help_names_what_is_taken_out_and_what_stays() {
    let root = Root::empty("a");
    let help = root.run(&["uninstall", "--help"]).ok().stdout;
    insta::assert_snapshot!(help.split("Options:").next().unwrap(), @r"
    Take out what memoird put outside of memory folders: hooks, service, state

    Memory folders stay; only a block in the MEMORY.md of a workspace goes. Shows first what it removes,
    and what it leaves.

    Usage: memoird uninstall [OPTIONS]
    ");
    let all = root.run(&["--help"]).ok().stdout;
    assert!(all.contains("\n  uninstall    Take out what memoird put outside"), "{all}");
    let init = root.run(&["init", "--help"]).ok().stdout;
    assert!(init.contains("it also looks for agent programs, shows a plan"), "{init}");
}
