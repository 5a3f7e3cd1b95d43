//! `memoird demo`.

use std::fs;

use crate::support::Root;

/// Tests the parts of the printed page, not the words that the engine chose.
#[test]
fn the_page_fits_a_terminal_and_shows_the_whole_chain() {
    for journal in ["mara", "jonas"] {
        let root = Root::empty("here");
        let ran = root.run(&["demo", "--journal", journal]).ok();
        assert_eq!(ran.stderr, "");
        let headings: Vec<&str> =
            ran.stdout.lines().filter(|it| it.starts_with(char::is_alphabetic)).collect();
        insta::allow_duplicates! {
            insta::assert_snapshot!(headings.join("\n"), @r"
            What was read
            What was written
            One week: memory/weekly/2026-W14.md
            What lasts: WISDOM.md
            Why does it say that? One bullet of a month, down to the log lines
            Try next
            ");
        }
        for line in ran.stdout.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let chain = ["memory/monthly/2026-03.md:", "└─ memory/weekly/2026-W", "└─ memory/2026-03-"];
        assert!(chain.iter().all(|it| ran.stdout.contains(it)), "{ran}");
        // The journal of mara has a line that waits for a person.
        let review =
            "# decide about the lines that wait for review\nmemoird --root memoird-demo review\n";
        let next = ran.stdout.split("Try next\n").nth(1).unwrap().replace("  ", "");
        assert!(journal != "mara" || next.contains(review), "{next}");
        let next = next.replace(review, "");
        insta::allow_duplicates! {
            insta::with_settings!({filters => [(r"2026-03\.md:\d+", "2026-03.md:N")]}, {
                insta::assert_snapshot!(next, @r"
                # what is there, what is due, and why
                memoird --root memoird-demo status
                # the trace above, for any line
                memoird --root memoird-demo trace memory/monthly/2026-03.md:N
                # what that week left out, and why
                memoird --root memoird-demo coverage 2026-W14
                # what an agent reads first
                memoird --root memoird-demo show WISDOM.md
                # run what became due since the demo's date
                memoird --root memoird-demo compact
                # remove the demo
                rm -r memoird-demo
                ");
            });
        }
    }
}

#[test]
fn what_waits_for_review_is_named_with_its_command() {
    let root = Root::empty("here");
    let shown = root.run_with_digest(&["demo"]).ok().stdout;
    let waits = root.run_with_digest(&["--root", "memoird-demo", "status"]).ok().stdout;
    let next =
        "  # decide about the lines that wait for review\n  memoird --root memoird-demo review\n";
    assert_eq!(waits.contains("waiting for review"), shown.contains(next), "{waits}{shown}");
    assert!(shown.contains(next), "{shown}");
}

#[test]
fn the_json_output_has_the_same_parts() {
    let root = Root::empty("here");
    let json = root.run(&["demo", "--json", "x y"]).ok().json();
    assert_eq!(json["root"], "~/here/x y");
    assert_eq!(json["tiers"][0]["tier"], "days");
    assert_eq!(json["tiers"][0]["files"], 64);
    assert!(json["wisdom"].as_array().unwrap().len() > 3);
    assert_eq!(json["week"]["path"], "memory/weekly/2026-W14.md");
    assert_eq!(json["week"]["text"], root.read("x y/memory/weekly/2026-W14.md"));
    assert!(!json["trace"]["sources"].as_array().unwrap().is_empty());
    assert_eq!(json["next"][0]["command"], "memoird --root 'x y' status");
}

#[test]
fn the_demo_is_complete_and_does_not_depend_on_the_date() {
    let mut root = Root::empty("here");
    root.run(&["demo", "a"]).ok();
    let second = root.run(&["--root", "a", "compact", "--json"]).ok().json_as("compact");
    assert_eq!(second["jobs"], serde_json::json!([]));
    root.set_now("");
    root.run(&["demo", "b"]).ok();
    let text = |top: &str| -> Vec<_> {
        let files = root.files().into_iter();
        let files =
            files.filter_map(|(name, text)| Some((name.strip_prefix(top)?.to_owned(), text)));
        // The key of the decisions is random.
        files
            .filter(|(name, _)| !name.starts_with(".memoird/") && name != "memory/.decisions.jsonl")
            .collect()
    };
    assert_eq!(text("a/"), text("b/"));
}

#[test]
fn the_demo_writes_only_into_a_new_folder() {
    let root = Root::new("mara");
    let before = root.files();
    insta::assert_snapshot!(root.run(&["demo"]), @r"
    $ memoird demo
    ! error: memory folder ~/mara/memoird-demo is inside ~/mara
    !   try: memoird demo /tmp/memoird-demo  # name another folder
    [exit 2]
    ");
    assert_eq!(root.files(), before);

    fs::create_dir(root.home("other")).unwrap();
    let run = |dir: &str| {
        let mut command = root.command(&["demo", dir]);
        command.current_dir(root.home("other"));
        root.finish(command, &["demo", dir])
    };
    assert_eq!(run("new").code, 0);
    let names = |dir| {
        let mut names: Vec<_> =
            fs::read_dir(root.home(dir)).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names("."), ["mara", "other"]);
    assert_eq!(names("other"), ["new"]);
    insta::assert_snapshot!(run("new"), @r"
    $ memoird demo new
    ! error: `~/other/new` already exists; the demo needs a new folder
    !   try: memoird demo /tmp/memoird-demo  # name another folder
    [exit 2]
    ");
    fs::create_dir(root.home("other/empty")).unwrap();
    assert_eq!(run("empty").code, 0);
}
