//! `memoird log`.

use std::os::unix::fs::symlink;

use crate::support::{CommandOutput, Root};

#[test]
fn an_entry_is_appended_to_todays_log() {
    let mut root = Root::new("mara");
    insta::assert_snapshot!(root.run(&["log", "Chose SQLite,", "easier to back up"]), @r"
    $ memoird log Chose SQLite, easier to back up
    memory/2026-04-13.md:3
    ");
    insta::assert_snapshot!(root.run_with_stdin(&["log", "-"], "Seen by Priya:\n\n- 14 batteries\n"), @r"
    $ memoird log -
    memory/2026-04-13.md:4
    ");
    root.set_now("2026-04-13T23:30:00+02:00");
    insta::assert_snapshot!(root.run(&["log", "--json", "late"]), @r#"
    $ memoird log --json late
    {
      "path": "memory/2026-04-13.md",
      "line": 7
    }
    "#);
    // Still the 13th in UTC: the day is that of the folder's time zone.
    root.set_now("2026-04-14T00:10:00+02:00");
    insta::assert_snapshot!(root.run(&["log", "next day"]), @r"
    $ memoird log next day
    memory/2026-04-14.md:3
    ");
    insta::assert_snapshot!(root.read("memory/2026-04-13.md"), @r"
    # 2026-04-13

    - 09:00 Chose SQLite, easier to back up
    - 09:00 Seen by Priya:

      - 14 batteries
    - 23:30 late
    ");
    assert_eq!(root.read("memory/2026-04-14.md"), "# 2026-04-14\n\n- 00:10 next day\n");
}

#[test]
fn existing_text_of_a_log_is_not_changed() {
    let root = Root::new("mara");
    root.write("memory/2026-04-13.md", "\u{feff}no end of line, Größe 日本");
    insta::assert_snapshot!(root.run(&["log", "one more"]), @r"
    $ memoird log one more
    memory/2026-04-13.md:2
    ");
    assert_eq!(
        root.read("memory/2026-04-13.md"),
        "\u{feff}no end of line, Größe 日本\n- 09:00 one more\n"
    );
}

#[test]
fn invalid_entries_are_refused_and_change_nothing() {
    let root = Root::new("mara");
    let before = root.files();
    insta::assert_snapshot!(root.run(&["log"]), @r#"
    $ memoird log
    ! error: the entry is empty
    !   try: memoird log "Chose SQLite, because one file is easier to back up"
    !   try: memoird log -  # reads stdin
    [exit 2]
    "#);
    insta::assert_snapshot!(root.run_with_stdin(&["log", "-"], " \n"), @r#"
    $ memoird log -
    ! error: the entry is empty
    !   try: memoird log "Chose SQLite, because one file is easier to back up"
    !   try: memoird log -  # reads stdin
    [exit 2]
    "#);
    insta::assert_snapshot!(root.run_with_stdin(&["log", "-"], [b'a', 0xff]), @r"
    $ memoird log -
    ! error: stdin is not UTF-8 at byte 1
    [exit 65]
    ");
    insta::assert_snapshot!(root.run_with_stdin(&["log", "-"], vec![b'a'; 1024 * 1024 + 1]), @r"
    $ memoird log -
    ! error: the entry on stdin is longer than 1024 KiB
    !   hint: save it as a file next to the logs, and log one line about it
    [exit 65]
    ");
    assert_eq!(root.files(), before);

    root.write("elsewhere.md", "mine\n");
    symlink("../elsewhere.md", root.path("memory/2026-04-13.md")).unwrap();
    insta::assert_snapshot!(root.run(&["log", "through a link"]), @r"
    $ memoird log through a link
    ! error: `~/mara/memory/2026-04-13.md` is a symbolic link; memoird ignores it
    [exit 65]
    ");
    assert_eq!(root.read("elsewhere.md"), "mine\n");
    std::fs::remove_file(root.path("memory/2026-04-13.md")).unwrap();

    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    std::fs::write(root.path("memory/2026-04-13.md"), b"caf\xe9\n").unwrap();
    insta::assert_snapshot!(root.run(&["log", "after Latin-1"]), @r"
    $ memoird log after Latin-1
    ! error: `memory/2026-04-13.md` is not UTF-8 at byte 3; save it as UTF-8
    [exit 65]
    ");
}

#[test]
fn entries_of_concurrent_writers_do_not_mix() {
    let root = Root::empty("mara");
    root.write("memoird.yaml", "zone: UTC\n");
    let ran: Vec<CommandOutput> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|i| {
                scope.spawn({
                    let root = &root;
                    move || root.run(&["log", &format!("writer {i}\nsays more")])
                })
            })
            .collect();
        writers.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let text = root.read("memory/2026-04-13.md");
    assert_eq!(text.lines().count(), 2 + 8 * 2, "{text}");
    for (i, ran) in ran.into_iter().enumerate() {
        let line: usize = ran.ok().stdout.trim().rsplit_once(':').unwrap().1.parse().unwrap();
        assert_eq!(text.lines().nth(line - 1), Some(&format!("- 07:00 writer {i}")[..]));
    }
}
