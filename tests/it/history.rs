//! `memoird history`, `memoird diff`, and `memoird show` of earlier versions.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::support::{CommandOutput, Root};

const WEEK: &str = "memory/weekly/2026-W10.md";
const LOG: &str = "memory/2026-03-03.md";

/// Returns the time of the n-th step of a test.
fn minute(n: usize) -> String {
    format!("2026-04-13T09:{n:02}:00+02:00")
}

fn versions(root: &Root, file: &str) -> Vec<Value> {
    let listed = root.run(&["history", file, "--all", "--json"]).ok().json_as("history");
    listed["versions"].as_array().unwrap().clone()
}

fn causes(root: &Root, file: &str) -> Vec<String> {
    let cause = |it: &Value| it["cause"].as_str().unwrap().to_owned();
    versions(root, file).iter().rev().map(cause).collect()
}

/// Writes bytes that need not be text, as a person would.
fn write_bytes(root: &Root, relative: &str, bytes: &[u8]) {
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(root.path(relative), bytes).unwrap();
}

/// Runs the program and returns the unchanged bytes of stdout.
#[track_caller]
fn bytes(root: &Root, args: &[&str]) -> Vec<u8> {
    let output = root.command(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Returns the lines under review: file and line number.
fn quarantined(root: &Root) -> BTreeSet<(String, usize)> {
    let items = root.run(&["review", "--json"]).ok().json_as("review");
    let lines = items["items"].as_array().unwrap().iter().filter(|it| it["what"] == "line");
    let line = |it: &Value| {
        let number = usize::try_from(it["line"].as_u64().unwrap()).unwrap();
        (it["path"].as_str().unwrap().to_owned(), number)
    };
    lines.map(line).collect()
}

/// Returns the sanitized view of a file without secrets.
fn sanitized(path: &str, text: &str, quarantined: &BTreeSet<(String, usize)>) -> String {
    let line = |(i, line): (usize, &str)| {
        let is_quarantined = quarantined.contains(&(path.to_owned(), i + 1));
        if is_quarantined { "[held for review]".to_owned() } else { line.to_owned() }
    };
    text.split('\n').enumerate().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn there_is_no_history_before_the_first_run() {
    let root = Root::small();
    insta::assert_snapshot!(root.run(&["history"]).ok(), @r"
    $ memoird history
    ! no run yet: history begins with the next run
    ");
    insta::assert_snapshot!(root.run(&["history", "2026-03-03"]).ok(), @r"
    $ memoird history 2026-03-03
    ! no version of memory/2026-03-03.md yet: history begins with the next run
    ");
    insta::assert_snapshot!(root.run(&["diff", "2026-03-03"]).ok(), @r"
    $ memoird diff 2026-03-03
    ! memory/2026-03-03.md has no older version to compare with
    ");
    insta::assert_snapshot!(root.run(&["show", "2026-03-03", "--as-of", "2020-01-01"]), @r"
    $ memoird show 2026-03-03 --as-of 2020-01-01
    ! error: there is no version of `memory/2026-03-03.md` yet: history begins with the next run
    !   try: memoird show memory/2026-03-03.md
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["history", "2026-W10"]), @r"
    $ memoird history 2026-W10
    ! error: 2026-W10 has no summary yet
    !   try: memoird compact --period 2026-W10  # writes it
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["show", "--version", "7"]), @r"
    $ memoird show --version 7
    ! error: there is no version 7
    !   try: memoird history FILE  # lists the versions of a file
    [exit 2]
    ");
    assert_eq!(root.run(&["show"]).code, 2);
}

#[test]
fn old_versions_are_shown_byte_for_byte() {
    let mut root = Root::small();
    root.run(&["compact"]).ok();
    let mut expected_versions = vec![(0, root.read(WEEK))];
    let mut version_count = 1;
    for n in 1..=9 {
        root.set_now(&minute(n));
        let text = root.read(WEEK);
        if n % 2 == 0 {
            // A person adds a bullet; a log makes the week due in the other rounds.
            root.write(WEEK, &(text + &format!("\n- Seen by hand, {n}\n")));
        } else {
            root.append(LOG, &format!("- Importer run {n} took {} s\n", n * 7));
        }
        root.run(&["compact"]).ok();
        version_count = versions(&root, WEEK).len().max(version_count);
        expected_versions.push((n, root.read(WEEK)));
    }
    assert!(version_count >= 10, "{version_count}");
    for (n, text) in &expected_versions {
        let shown = root.run(&["show", "2026-W10", "--as-of", &minute(*n)]).ok();
        assert_eq!(shown.stdout, *text, "{n}");
    }
    for version in versions(&root, WEEK) {
        let id = version["version"].to_string();
        let shown = root.run(&["show", "--version", &id, "--json"]).ok().json_as("show");
        assert_eq!(shown["path"], WEEK);
        assert_eq!(shown["version"]["version"], version["version"]);
        assert_eq!(shown["text"].as_str().unwrap().len() as u64, version["size"]);
    }
    // A date means the end of that day; a version starts at its own time.
    let now = root.read(WEEK);
    assert_eq!(root.run(&["show", WEEK, "--as-of", "2026-04-13"]).ok().stdout, now);
    assert_eq!(root.run(&["show", WEEK, "--as-of", "2026-04-13 09:09"]).ok().stdout, now);
    let before_history = root.run(&["show", WEEK, "--as-of", "2026-04-12"]);
    assert!(
        before_history.stderr.contains("its history begins on 2026-04-13 09:00:00"),
        "{before_history}"
    );
    assert_eq!(before_history.code, 2);
    let invalid = root.run(&["show", WEEK, "--as-of", "soon"]);
    assert!(invalid.stderr.contains("`soon` is not a time"), "{invalid}");
    let next = format!("try: memoird show {WEEK} --as-of \"1 day ago\"");
    assert!(invalid.stderr.contains(&next), "{invalid}");
    let invalid = root.run(&["diff", WEEK, "--from", "soon"]);
    assert!(invalid.stderr.contains("memoird history FILE"), "{invalid}");
}

#[test]
fn history_lists_versions_of_a_file_and_files_of_a_run() {
    let mut root = Root::small();
    root.run(&["compact"]).ok();
    root.set_now(&minute(1));
    root.append(LOG, "- Disk at 71%\n");
    root.run(&["compact"]).ok();
    insta::assert_snapshot!(root.run(&["history"]).ok(), @r"
    $ memoird history
     RUN  STARTED              BY       WRITTEN  REMOVED  FILES
     2    2026-04-13 09:01:00  compact  2        -        memory/monthly/2026-03.md memory/weekly/2026-W10.md
     1    2026-04-13 09:00:00  compact  4        -        WISDOM.md memory/monthly/2026-03.md memory/weekly/2026-W10.md and 1 more
    ");
    insta::assert_snapshot!(root.run(&["history", LOG]).ok(), @r"
    $ memoird history memory/2026-03-03.md
     VERSION  SINCE                HOW                         BYTES  LINES
     7        2026-04-13 09:01:00  as it was read              94     +1 -0
     1        2026-04-13 09:00:00  as run 1 (compact) read it  80     +4 -0
    ");
    root.set_now(&minute(2));
    root.append(LOG, "- Disk at 99%\n");
    insta::assert_snapshot!(root.run(&["history", LOG, "-n", "2"]).ok(), @r"
    $ memoird history memory/2026-03-03.md -n 2
     VERSION  SINCE                HOW                              BYTES  LINES
     -        2026-04-13 09:02:00  changed since, not recorded yet  108    +1 -0
     7        2026-04-13 09:01:00  as it was read                   94     +1 -0
    ! and 1 older; --all lists them
    ");
    let runs = root.run(&["history", "--json"]).ok().json_as("history");
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
    assert_eq!(runs["runs"][0]["trigger"], "compact");
    assert!(runs["runs"][0]["written"].as_array().unwrap().contains(&WEEK.into()), "{runs}");
}

#[test]
fn diff_prints_a_unified_diff() {
    let mut root = Root::small();
    root.run(&["compact"]).ok();
    root.set_now(&minute(1));
    root.append(LOG, "- Disk at 71%");
    let unnoticed = root.run(&["diff", LOG]).ok();
    insta::assert_snapshot!(unnoticed, @r"
    $ memoird diff memory/2026-03-03.md
    --- memory/2026-03-03.md	version 1, 2026-04-13 09:00:00
    +++ memory/2026-03-03.md	current file, 2026-04-13 09:01:00
    @@ -2,3 +2,4 @@
     
     - Importer v2 shipped, 3.2 s per GB
     - Backfill of 2019 begun, 38 GB
    +- Disk at 71%
    \ No newline at end of file
    ");
    root.run(&["compact"]).ok();
    let noticed = root.run(&["diff", "2026-03-03", "--json"]).ok().json_as("diff");
    assert_eq!(
        noticed["hunks"][0]["lines"][3],
        serde_json::json!({"op": "added", "text": "- Disk at 71%"})
    );
    let first = noticed["from"]["version"].to_string();
    let last = noticed["to"]["version"].to_string();
    let same = root.run(&["diff", LOG, "--from", &first, "--to", &last]).ok();
    let times = root.run(&["diff", LOG, "--from", "2026-04-13 09:00", "--to", "2026-04-13"]).ok();
    assert_eq!(same.stdout, times.stdout);
    assert!(same.stdout.ends_with("+- Disk at 71%\n\\ No newline at end of file\n"), "{same}");
    let reversed = root.run(&["diff", LOG, "--from", &last, "--to", &first]).ok();
    assert!(reversed.stdout.contains("\n-- Disk at 71%\n"), "{reversed}");
    let empty = root.run(&["diff", LOG, "--from", &last, "--to", &last]).ok();
    assert!(empty.stderr.contains("no difference"), "{empty}");
    let colour = root.run(&["diff", LOG, "--color", "always"]).ok();
    assert!(colour.stdout.contains("\u{1b}[32m+- Disk at 71%"), "{colour}");
    let other =
        root.run(&["history", WEEK, "--json"]).ok().json()["versions"][0]["version"].to_string();
    let refused = root.run(&["diff", LOG, "--from", &other]);
    assert_eq!(refused.code, 2, "{refused}");
    let refused = root.run(&["show", LOG, "--version", &other]);
    assert!(refused.stderr.contains(&format!("version {other} belongs to `{WEEK}`")), "{refused}");
}

#[test]
fn logs_are_stored_byte_for_byte_as_compacted() {
    let mut root = Root::small();
    let first =
        b"\xef\xbb\xbf# Importer\r\n\r\n- Importer v2 shipped, 3.2 s per GB\r\n- caf\xc3\xa9 \r\n";
    write_bytes(&root, LOG, first);
    root.run(&["compact"]).ok();
    root.set_now(&minute(1));
    let second = [&first[..], b"- Disk at 71%\r"].concat();
    write_bytes(&root, LOG, &second);
    root.run(&["compact"]).ok();
    assert_eq!(causes(&root, LOG), ["folded", "folded"]);
    assert_eq!(bytes(&root, &["show", LOG, "--as-of", &minute(0)]), first);
    assert_eq!(bytes(&root, &["show", LOG, "--as-of", &minute(1)]), second);
}

#[test]
fn deleted_files_can_still_be_read() {
    let mut root = Root::new("mara");
    root.run(&["compact"]).ok();
    let memory = root.files().into_keys().find(|it| it.starts_with("memory/feedback_")).unwrap();
    let name = memory.trim_start_matches("memory/").trim_end_matches(".md").to_owned();
    let text = root.read(&memory);
    root.set_now(&minute(1));
    fs::remove_file(root.path(&memory)).unwrap();
    // No run has noticed it yet.
    let unnoticed = root.run(&["history", &memory]).ok();
    assert!(unnoticed.stdout.contains("no longer there, not recorded yet"), "{unnoticed}");
    root.run(&["compact"]).ok();
    assert_eq!(causes(&root, &name), ["written", "gone"]);
    assert_eq!(root.run(&["show", &name, "--as-of", &minute(0)]).ok().stdout, text);
    let deleted = root.run(&["show", &name, "--as-of", &minute(1)]);
    assert!(
        deleted.stderr.contains("did not exist then: removed by somebody else on"),
        "{deleted}"
    );
    assert!(deleted.stderr.contains("try: memoird show --version"), "{deleted}");
    assert_eq!(deleted.code, 2);
    let diff = root.run(&["diff", &name]).ok();
    assert!(diff.stdout.contains("+++ /dev/null\t"), "{diff}");
    // A log that vanishes and comes back.
    let log = root.read("memory/2026-03-11.md");
    fs::remove_file(root.path("memory/2026-03-11.md")).unwrap();
    root.set_now(&minute(2));
    root.run(&["compact"]).ok();
    assert_eq!(causes(&root, "2026-03-11"), ["folded", "gone"]);
    root.write("memory/2026-03-11.md", &log);
    root.set_now(&minute(3));
    root.run(&["compact"]).ok();
    assert_eq!(causes(&root, "2026-03-11"), ["folded", "gone", "found"]);
}

#[test]
fn every_generated_file_and_compacted_log_is_in_the_history() {
    let root = Root::new("mara");
    root.write(
        "memory/user_own.md",
        "---\nname: own\ndescription: mine\ntype: user\n---\n\nMine.\n",
    );
    root.write("memory/weekly/2025-W40.md", "# Somebody else's week\n\n- Words\n");
    root.run(&["compact"]).ok();
    let check = |root: &Root| {
        let quarantined = quarantined(root);
        assert!(!quarantined.is_empty(), "a line of the sample journal is quarantined");
        for (path, text) in root.files() {
            // The two newest logs are in the open week.
            let markdown = Path::new(&path).extension().is_some_and(|it| it == "md");
            let is_in_history = markdown && !path.starts_with("memory/2026-04-1");
            if is_in_history {
                let latest = versions(root, &path)[0].clone();
                assert!(latest["version"].is_i64(), "{path}: {latest}");
                let id = latest["version"].to_string();
                let raw = root.run(&["show", "--raw", "--version", &id]).ok();
                assert_eq!(raw.stdout, text, "{path}");
                // Of the logs, only those with quarantined lines are compared.
                let plain_log =
                    path.starts_with("memory/2026-") && !quarantined.iter().any(|it| it.0 == path);
                if !plain_log {
                    let shown = root.run(&["show", "--version", &id]).ok();
                    assert_eq!(shown.stdout, sanitized(&path, &text, &quarantined), "{path}");
                }
            }
        }
    };
    check(&root);
    // A run without changes adds no version.
    let before = versions(&root, "WISDOM.md");
    root.run(&["compact"]).ok();
    assert_eq!(versions(&root, "WISDOM.md"), before);
    // A person's edit of the index outside the generated block.
    root.append("memory/MEMORY.md", "\nMy own words.\n");
    root.run(&["compact"]).ok();
    assert_eq!(causes(&root, "MEMORY.md").last().unwrap(), "found");
    // Losing the database loses earlier versions, not the current ones.
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    check(&root);
    assert_eq!(causes(&root, "WISDOM.md"), ["found"]);
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["compact"]).ok();
    check(&root);
}

#[test]
fn the_old_text_of_an_adopted_file_is_in_the_history() {
    let mut root = Root::small();
    let foreign_text = "# Somebody else's week\n\n- Their words\n";
    root.write(WEEK, foreign_text);
    root.run(&["compact"]).ok();
    assert_eq!(root.read(WEEK), foreign_text);
    root.set_now(&minute(1));
    root.run(&["compact", "--period", "2026-W10", "--force"]).ok();
    assert_ne!(root.read(WEEK), foreign_text);
    assert_eq!(root.run(&["show", WEEK, "--as-of", &minute(0)]).ok().stdout, foreign_text);
    assert_eq!(causes(&root, WEEK), ["found", "written"]);

    // The same for a file that no run has seen before.
    let root = Root::small();
    root.write(WEEK, foreign_text);
    root.run(&["compact", "--period", "2026-W10", "--force"]).ok();
    assert_eq!(causes(&root, WEEK), ["found", "written"]);
    let first = versions(&root, WEEK)[1]["version"].to_string();
    assert_eq!(root.run(&["show", "--version", &first]).ok().stdout, foreign_text);
}

#[test]
fn versions_older_than_the_limit_are_pruned() {
    let mut root = Root::small();
    root.run(&["compact"]).ok();
    root.append(LOG, "- Disk at 71%\n");
    root.set_now("2026-04-14T09:00:00+02:00");
    root.run(&["compact"]).ok();
    let first = versions(&root, LOG)[1]["version"].to_string();
    let keep = ["compact", "-v", "--set", "history.keep=30d"];
    root.set_now("2026-05-10T09:00:00+02:00");
    let before_history = root.run(&keep).ok();
    assert!(!before_history.stderr.contains("dropped "), "{before_history}");
    assert_eq!(root.run(&["show", "--version", &first]).code, 0);
    root.set_now("2026-08-01T09:00:00+02:00");
    let pruned: CommandOutput = root.run(&keep).ok();
    assert!(pruned.stderr.contains("versions older than 30d"), "{pruned}");
    let again = root.run(&keep).ok();
    assert!(!again.stderr.contains("dropped "), "{again}");
    let listed = causes(&root, LOG);
    assert_eq!(listed, ["pruned", "folded"]);
    insta::assert_snapshot!(root.run(&["show", "--version", &first]), @r"
    $ memoird show --version 1
    ! error: version 1 of `memory/2026-03-03.md` is no longer kept: it was older than `history.keep`, or lost with a damaged database
    !   try: memoird history memory/2026-03-03.md
    [exit 2]
    ");
    assert!(root.run(&["diff", LOG]).stderr.contains("no longer kept"));
    // The newest version stays, even if the file is gone.
    fs::remove_file(root.path(LOG)).unwrap();
    root.run(&keep).ok();
    root.set_now("2027-08-01T09:00:00+02:00");
    root.run(&keep).ok();
    assert_eq!(causes(&root, LOG), ["pruned", "folded", "gone"]);
}

#[test]
fn identical_versions_are_stored_once() {
    let mut root = Root::small();
    root.run(&["compact"]).ok();
    let (text, edited) = (root.read(WEEK), root.read(WEEK) + "\n- By hand\n");
    for n in 1..=6 {
        root.set_now(&minute(n));
        root.write(WEEK, if n % 2 == 1 { &edited } else { &text });
        root.run(&["trace", WEEK]).ok();
    }
    let listed = versions(&root, WEEK);
    assert_eq!(listed.len(), 7);
    let hashes: std::collections::BTreeSet<_> =
        listed.iter().map(|it| it["hash"].as_str().unwrap()).collect();
    assert_eq!(hashes.len(), 2);
}
