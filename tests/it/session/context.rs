//! `context`: the text that a session starts with.

use std::fs;

use crate::support::{Root, write_file};

#[test]
fn context_fits_the_budget_and_is_deterministic() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let text = root.run(&["context"]).ok().stdout;
    assert!(
        text.starts_with("<memoird-context>\nNotes from memory")
            && text.ends_with("</memoird-context>\n")
    );
    assert!(
        text.contains("# What lasts (WISDOM.md)") && text.contains("# Blockers and open items"),
        "{text}"
    );
    assert!(!text.contains("<!--") && !text.contains(":1]"), "{text}");
    assert_eq!(root.run(&["context"]).ok().stdout, text);
    let json = root.run(&["context", "--json"]).ok().json_as("context");
    assert_eq!(json["text"], text);
    assert!(json["tokens"].as_u64().unwrap() <= 2_000);
    let small = root.run(&["context", "--budget", "300"]).ok().stdout;
    assert!(small.contains("lines are left out: memoird show WISDOM.md]"), "{small}");
    assert!(root.run(&["context", "--cite"]).ok().stdout.contains("[2026-0"));
    let explained = root.run(&["context", "--explain"]).ok();
    assert!(
        explained.stdout.contains("wisdom") && explained.stderr.contains("tokens in total"),
        "{explained}"
    );
}

#[test]
fn instruction_files_are_read_as_agents_read_them() {
    let root = Root::empty("tide");
    root.write("memoird.yaml", "zone: UTC\n");
    root.write("WISDOM.md", "# A - Wisdom\n\n---\n\n**Tides**\nBrest is late.\n");
    fs::create_dir_all(root.path(".git")).unwrap();
    write_file(&root.home(".claude/CLAUDE.md"), "Answer in English. @./mine.md\n");
    write_file(&root.home(".claude/mine.md"), "My own words.\n");
    root.write("AGENTS.md", "Rows are never deleted.\n<!-- for people -->\n");
    root.write("CLAUDE.md", "@AGENTS.md @docs/a.md `@docs/code.md`\n");
    root.write("docs/a.md", "Included once. @a.md @b.md\n");
    root.write("docs/b.md", "And below it. @~/secret.md\n");
    root.write("docs/code.md", "Not asked for.\n");
    write_file(&root.home("secret.md"), "Outside of the project.\n");
    root.write("CLAUDE.local.md", "The key is AKIAZ7Q2MRT4WXPL6KDB.\n");
    root.write(".claude/rules/api.md", "---\npaths: \"src/**/*.rs\"\n---\nOnly for Rust.\n");
    root.write(".claude/rules/all.md", "For every file.\n");
    let text = root.run(&["context"]).ok().stdout;
    assert!(!text.contains("never deleted"), "by default the agent reads them itself: {text}");
    let ran = root.run(&["context", "--instructions"]).ok();
    let text = ran.stdout;
    let at = |it: &str| text.find(it).unwrap_or_else(|| panic!("{it}: {text}"));
    let order = [
        "Instructions that people left",
        "Answer in English.",
        "My own words.",
        "Rows are never deleted.",
        "Included once.",
        "And below it.",
        "For every file.",
        "The key is",
        "Notes from memory",
        "Brest is late.",
    ];
    assert!(order.windows(2).all(|it| at(it[0]) < at(it[1])), "{text}");
    for once in ["Included once.", "never deleted"] {
        assert_eq!(text.matches(once).count(), 1, "{text}");
    }
    for absent in
        ["for people", "Not asked for", "Outside", "Only for Rust", "AKIAZ7Q2MRT4WXPL6KDB"]
    {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    assert!(ran.stderr.contains("is outside the project"), "{}", ran.stderr);
    let args = ["context", "--instructions", "--for", "src/a/b.rs", "--include-outside"];
    let text = root.run(&args).ok().stdout;
    assert!(text.contains("Only for Rust") && text.contains("Outside of the project"), "{text}");
    assert_eq!(root.run(&args).ok().stdout, text, "the output is deterministic");
}

#[test]
fn git_context_shows_branch_user_status_and_commits() {
    let root = Root::empty("tide");
    root.write("memoird.yaml", "zone: UTC\n");
    let stdout = |args: &[&str]| {
        let mut command = root.command(args);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        root.finish(command, args).ok().stdout
    };
    assert!(!stdout(&["context", "--git"]).contains("# Git"));
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(root.path("")).env_clear().env("HOME", root.home(""));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.args(["-c", "user.name=Nia", "-c", "user.email=nia@example.org"]).args(args);
        command.output().is_ok_and(|it| it.status.success())
    };
    if !git(&["init", "-q", "-b", "main"]) {
        return crate::support::skipped("git is not installed");
    }
    root.write("a.txt", "a\n");
    assert!(git(&["add", "a.txt"]) && git(&["commit", "-q", "-m", "Rows for Brest"]));
    assert!(git(&["checkout", "-q", "-b", "tides"]) && git(&["config", "user.name", "Nia"]));
    root.write("b.txt", "b\n");
    let text = stdout(&["context", "--git"]);
    for line in ["Branch: tides", "Main branch: main", "User: Nia", "?? b.txt", "Rows for Brest"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    for n in 0..300 {
        root.write(&format!("more/file-{n}.txt"), "");
    }
    assert!(git(&["add", "more"]));
    let text = stdout(&["context", "--git", "--budget", "9000"]);
    assert!(text.contains("lines are left out: git status --short]"), "{text}");
}

#[test]
fn months_weeks_and_logs_are_included_only_on_request() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let names = |args: &[&str]| -> Vec<String> {
        let json = root.run(&[&["context", "--json", "--budget", "90000"], args].concat());
        let json = json.ok().json_as("context");
        let parts = json["parts"].as_array().unwrap().clone();
        parts.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    let default = names(&[]);
    assert!(!default.iter().any(|it| ["month", "week", "log", "git"].contains(&&it[..])));
    let more = names(&["--month", "--week", "--logs", "2"]);
    let expected = ["wisdom", "memories", "month", "decisions", "open", "week", "log", "log"];
    let parts: Vec<&str> = more.iter().map(String::as_str).collect();
    assert_eq!(parts, expected.iter().copied().filter(|it| parts.contains(it)).collect::<Vec<_>>());
    for name in ["month", "week", "log"] {
        assert!(parts.contains(&name), "{parts:?}");
    }
    assert_eq!(
        root.run(&["context", "--all"]).ok().stdout,
        root.run(&["context", "--all"]).ok().stdout
    );
}

#[test]
fn comments_in_logs_are_not_served() {
    let root = Root::small();
    root.append(
        "memory/2026-04-13.md",
        "<!-- zebra\nzebra -->\n- Fan replaced <!-- zebra --> at noon\n<!-- zebra --> Dust removed\n- Last <!-- zebra\n",
    );
    let output = root.run(&["context", "--logs"]).ok().stdout;
    assert!(!output.contains("zebra") && !output.contains("-->"), "{output}");
    assert!(output.contains("Fan replaced") && output.contains("at noon"), "{output}");
    assert!(output.contains("Dust removed") && output.contains("- Last"), "{output}");
}
