//! `memoird show`.

use crate::support::Root;

#[test]
fn files_are_found_by_path_period_and_name() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let memory = root.files().into_keys().find(|it| it.starts_with("memory/feedback_")).unwrap();
    let stem = memory.trim_start_matches("memory/").trim_end_matches(".md");
    let text = root.read(&memory);
    let name = text.lines().find_map(|it| it.strip_prefix("name: ")).unwrap().trim_matches('"');
    let full = root.path("memory/2026-04-02.md");
    for (named, path, kind) in [
        ("memory/2026-04-02.md", "memory/2026-04-02.md", "log"),
        (full.to_str().unwrap(), "memory/2026-04-02.md", "log"),
        ("2026-04-02", "memory/2026-04-02.md", "log"),
        ("2026-03-05-incident", "memory/2026-03-05-incident.md", "log"),
        ("2026-W14", "memory/weekly/2026-W14.md", "weekly"),
        ("2026-02", "memory/monthly/2026-02.md", "monthly"),
        ("MEMORY.md", "memory/MEMORY.md", "index"),
        ("WISDOM.md", "WISDOM.md", "wisdom"),
        ("./memory/../WISDOM.md", "WISDOM.md", "wisdom"),
        (stem, &memory, "memory"),
        (name, &memory, "memory"),
    ] {
        assert_eq!(root.run(&["show", named]).ok().stdout, root.read(path), "{named}");
        let json = root.run(&["show", "--json", named]).ok().json();
        let shown = (&json["path"], &json["kind"], &json["text"]);
        assert_eq!(shown, (&path.into(), &kind.into(), &root.read(path).into()));
        let origin = if kind == "log" { "agent" } else { "derived" };
        assert_eq!((&json["origin"], json["notice"].is_string()), (&origin.into(), true));
    }
    let mut command = root.command(&["show", "2026-W14.md"]);
    command.current_dir(root.path("memory/weekly"));
    assert_eq!(root.finish(command, &[]).ok().stdout, root.read("memory/weekly/2026-W14.md"));
}

#[test]
fn files_that_are_not_memory_files_are_not_shown() {
    let root = Root::new("mara");
    root.write("memory/notes.txt", "mine");
    root.run(&["compact"]).ok();
    insta::assert_snapshot!(root.run(&["show", "memory/notes.txt"]), @r"
    $ memoird show memory/notes.txt
    ! error: `memory/notes.txt` is not a memory file
    !   hint: name a log, a weekly or monthly file, a typed memory, a session record, MEMORY.md, or WISDOM.md
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["show", ".memoird/lineage.db"]), @r"
    $ memoird show .memoird/lineage.db
    ! error: `.memoird/lineage.db` is not a memory file
    !   hint: name a log, a weekly or monthly file, a typed memory, a session record, MEMORY.md, or WISDOM.md
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["show", "memory/.decisions.jsonl"]), @r"
    $ memoird show memory/.decisions.jsonl
    ! error: there is no `memory/.decisions.jsonl`
    !   hint: name a path, a period (2026-W14), or a memory
    !   try: memoird status  # shows what there is
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["show", "/etc/passwd"]), @r"
    $ memoird show /etc/passwd
    ! error: `/etc/passwd` is outside the memory folder `~/mara`
    !   hint: name its memory folder: `--root DIR`
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["show", "../../etc/passwd"]), @r"
    $ memoird show ../../etc/passwd
    ! error: `../../etc/passwd` is outside the memory folder `~/mara`
    !   hint: name its memory folder: `--root DIR`
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["show", "2026-W30"]), @r"
    $ memoird show 2026-W30
    ! error: there are no logs of 2026-W30
    !   hint: first weekly summary: 2026-W02, last: 2026-W14
    !   try: memoird status  # shows what there is
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["show", "nothing"]), @r"
    $ memoird show nothing
    ! error: there is no `nothing`
    !   hint: name a path, a period (2026-W14), or a memory
    !   try: memoird status  # shows what there is
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["show", "memory"]), @r"
    $ memoird show memory
    ! error: `memory` is not a memory file
    !   hint: name a log, a weekly or monthly file, a typed memory, a session record, MEMORY.md, or WISDOM.md
    [exit 2]
    ");
}

#[test]
fn raw_and_json_cannot_be_combined() {
    let root = Root::small();
    let ran = root.run(&["show", "--raw", "--json", "2026-03-03"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran}");
}

#[test]
fn origins_say_who_wrote_each_line_of_a_log() {
    let root = Root::new("mara");
    root.write(
        "memory/2026-04-03.md",
        "# 2026-04-03\n- We use SQLite\n> Use Redis\n\n# Session: 2026-04-03 09:00:00 UTC\n\n\
         - **Session ID**: 5f1c\n\n## Conversation Summary\n\n\
         user: [Telegram Mara id:7 2026-04-03 08:59 UTC] Ship it\nassistant: Shipped\n\
         user: Read HEARTBEAT.md if it exists. Do not repeat old tasks.\n",
    );
    insta::assert_snapshot!(root.run(&["show", "--origins", "2026-04-03"]), @r"
    $ memoird show --origins 2026-04-03
        1  agent                                   # 2026-04-03
        2  agent                                   - We use SQLite
        3  external  quote                         > Use Redis
        4  agent
        5  external  session header, metadata      # Session: 2026-04-03 09:00:00 UTC
        6  external
        7  external  session header, metadata      - **Session ID**: 5f1c
        8  external
        9  external  session header, metadata      ## Conversation Summary
       10  external
       11  agent     owner, turn start             user: [Telegram Mara id:7 2026-04-03 08:59 UTC] Ship it
       12  agent     assistant, turn start         assistant: Shipped
       13  external  notice, heartbeat             user: Read HEARTBEAT.md if it exists. Do not repeat old tasks.
       14  external
    ");
    let json = root.run(&["show", "--origins", "2026-04-03", "--json"]).ok().json_as("show");
    assert_eq!(json["sessions"][0]["id"], "5f1c");
    let line = &json["lines"][12];
    assert_eq!((&line["origin"], &line["reason"]), (&"external".into(), &"heartbeat".into()));
    assert_eq!(json["lines"][10]["speaker"], "owner");
    root.write("WISDOM.md", "# Wisdom\n");
    insta::assert_snapshot!(root.run(&["show", "--origins", "WISDOM.md"]), @r"
    $ memoird show --origins WISDOM.md
    ! error: `WISDOM.md` is no log, so its lines have no origin
    !   try: memoird trace WISDOM.md
    [exit 2]
    ");
}
