//! Logs that vanish for a while or are renamed: items derived from them are kept and not duplicated.

use crate::support::{CommandOutput, Root};

const WEEK: &str = "memory/weekly/2026-W11.md";
const MONTH: &str = "memory/monthly/2026-03.md";

/// Returns a compacted sample journal whose summaries are limited to this many characters.
fn compacted_with_limit(max_chars: usize) -> Root {
    let root = Root::new("mara");
    let cap = format!("{{ ratio: 0.8, max_ratio: 0.9, max_chars: {max_chars} }}");
    root.append("memoird.yaml", &format!("compaction:\n  weekly: {cap}\n  monthly: {cap}\n"));
    root.run(&["compact"]).ok();
    root
}

fn bullets_of(text: &str, stem: &str) -> Vec<String> {
    let cites = format!("{stem}:");
    let bullets = text.lines().filter(|it| it.starts_with("- ") && it.contains(&cites));
    bullets.map(str::to_owned).collect()
}

/// Returns the sorted lines of a file: the position of a user edit depends on the lines that were around it.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn job(ran: &CommandOutput) -> (u64, String) {
    let report = ran.json_as("compact");
    let job = &report["jobs"][0];
    (job["output_chars"].as_u64().unwrap(), job["reason"].as_str().unwrap().to_owned())
}

/// Moves a log away, and returns a function that moves it back.
fn move_away(root: &Root, path: &str) -> impl FnOnce() + use<> {
    let (from, to) = (root.path(path), root.home("taken.md"));
    std::fs::rename(&from, &to).unwrap();
    move || std::fs::rename(&to, &from).unwrap()
}

#[test]
fn items_of_a_vanished_log_fit_the_limit_and_are_unchanged_when_it_returns() {
    for is_edited in [false, true] {
        let root = compacted_with_limit(2_000);
        let bullet = bullets_of(&root.read(WEEK), "2026-03-10").remove(0);
        // A line marked `#keep` does not count towards the limit.
        let mut slack = 110;
        if is_edited {
            let edited = bullet.replacen("- ", "- By hand: ", 1);
            slack += edited.len() as u64;
            root.write(WEEK, &root.read(WEEK).replacen(&bullet, &edited, 1));
            root.run(&["compact"]).ok();
        }
        let before = root.files();
        let put_back = move_away(&root, "memory/2026-03-10.md");
        root.run(&["compact"]).ok();
        for (period, path) in [("2026-W11", WEEK), ("2026-03", MONTH)] {
            let orphaned = bullets_of(&root.read(path), "2026-03-10");
            assert!(!orphaned.is_empty(), "{}", root.read(path));
            let args = ["compact", "--force", "--period", period, "--json"];
            let (chars, reason) = job(&root.run(&args).ok());
            let text = root.read(path);
            // An edited bullet may cite a new line number.
            let words = |it: &String| it.rsplit_once(" [").unwrap().0.to_owned();
            assert!(
                orphaned.iter().all(|it| text.contains(&words(it))),
                "{orphaned:?} in:\n{text}"
            );
            assert!(chars <= 2_000 + slack, "{chars}:\n{text}");
            assert!(!reason.contains("max_chars"), "{reason}");
            let record = root.read_record(path);
            assert!(record.contains("  \"gone\": [\n    \"2026-03-10\"\n  ],\n"), "{record}");
        }
        root.run(&["doctor"]).ok();
        // The log comes back after the database was lost.
        std::fs::remove_dir_all(root.path(".memoird")).unwrap();
        put_back();
        root.run(&["compact"]).ok();
        let after = root.files();
        if is_edited {
            assert_eq!(lines(&after[WEEK]), lines(&before[WEEK]));
        } else {
            assert_eq!([WEEK, MONTH].map(|it| &after[it]), [WEEK, MONTH].map(|it| &before[it]));
        }
        let again = root.run(&["compact"]).ok();
        assert_eq!(root.files(), after, "{again}");
    }
}

#[test]
fn items_of_a_vanished_log_are_kept_beyond_the_limit_and_reported() {
    let root = compacted_with_limit(2_000);
    let orphaned = bullets_of(&root.read(WEEK), "2026-03-12");
    let _put_back = move_away(&root, "memory/2026-03-12.md");
    let cap = root.read("memoird.yaml").replace("2000", "100");
    root.write("memoird.yaml", &cap);
    let args = ["compact", "--force", "--period", "2026-W11", "--json"];
    let (_, reason) = job(&root.run(&args).ok());
    assert!(reason.contains("more than max_chars: 100"), "{reason}");
    let text = root.read(WEEK);
    assert!(orphaned.iter().all(|it| text.contains(it)), "{orphaned:?} in:\n{text}");
}

/// Returns a compacted folder with logs in two weeks of March.
fn compacted_two_weeks() -> Root {
    let root = Root::empty("short");
    root.write("memoird.yaml", "zone: UTC\n");
    root.write("memory/2026-03-02.md", RENAMED_LOG);
    root.write("memory/2026-03-03.md", "- Measured 31 ms at the old gate\n");
    root.write("memory/2026-03-10.md", "- Measured 12 ms at the new gate\n");
    root.run(&["compact"]).ok();
    root
}

const RENAMED_LOG: &str = "- Decided to use SQLite for staging, because one file is easy to back up\n\
    - Backfill of 2019 complete, 951 million rows\n\
    - The gauge at the weir froze at 4:12\n";
const OLD_WEEK: &str = "memory/weekly/2026-W10.md";

fn rename(root: &Root, from: &str, to: &str) {
    let path = |stem: &str| root.path(&format!("memory/{stem}.md"));
    std::fs::rename(path(from), path(to)).unwrap();
}

/// Returns how often each weekly file contains a text.
fn count(root: &Root, words: &str) -> Vec<(String, usize)> {
    let files = root.files().into_iter().filter(|(path, _)| path.starts_with("memory/weekly/2"));
    files.map(|(path, text)| (path, text.matches(words).count())).collect()
}

#[test]
fn items_follow_a_log_renamed_to_another_date() {
    for without_database in [false, true] {
        let root = compacted_two_weeks();
        let fresh = compacted_two_weeks();
        rename(&fresh, "2026-03-02", "2026-03-11");
        std::fs::remove_dir_all(fresh.path(".memoird")).unwrap();
        for generated in fresh.files().into_keys().filter(|it| !it.starts_with("memory/2026")) {
            if generated != "memoird.yaml" {
                std::fs::remove_file(fresh.path(&generated)).unwrap();
            }
        }
        fresh.run(&["compact"]).ok();
        rename(&root, "2026-03-02", "2026-03-11");
        if without_database {
            std::fs::remove_dir_all(root.path(".memoird")).unwrap();
        }
        let ran = root.run(&["compact"]).ok();
        assert_eq!(root.read(OLD_WEEK), fresh.read(OLD_WEEK), "{ran}");
        assert_eq!(root.read(WEEK), fresh.read(WEEK), "{ran}");
        assert_eq!(root.read(MONTH), fresh.read(MONTH), "{ran}");
        let all = root.files();
        assert!(all.keys().eq(fresh.files().keys()));
        let cites = all.iter().find(|(_, text)| text.contains("2026-03-02:"));
        assert!(cites.is_none(), "{cites:?}");
        root.run(&["doctor"]).ok();
        root.run(&["compact"]).ok();
        assert_eq!(root.files(), all);
    }
}

#[test]
fn a_log_renamed_within_its_week_only_changes_citations() {
    let root = compacted_two_weeks();
    let before = root.files();
    rename(&root, "2026-03-02", "2026-03-04-gauge");
    root.run(&["compact"]).ok();
    let renamed = |text: &String| text.replace("2026-03-02", "2026-03-04-gauge");
    let bullets = |text: &str| -> Vec<String> {
        text.lines().filter(|it| it.starts_with("- ")).map(str::to_owned).collect()
    };
    let after = root.files();
    assert_eq!(bullets(&after[OLD_WEEK]), bullets(&renamed(&before[OLD_WEEK])));
    assert_eq!(bullets(&after[MONTH]).len(), bullets(&before[MONTH]).len());
    let report = root.run(&["compact", "--json"]).ok().json_as("compact");
    assert_eq!(report["jobs"].as_array().unwrap().len(), 0);
    assert_eq!(root.files(), after);
    root.run(&["doctor"]).ok();
}

#[test]
fn user_edits_and_deletions_survive_renaming_the_log() {
    let root = compacted_two_weeks();
    let text = root.read(OLD_WEEK);
    let bullet = |words: &str| {
        format!("{}\n", text.lines().find(|it| it.starts_with("- ") && it.contains(words)).unwrap())
    };
    let edited = bullet("951").replace("951", "950") + "  - as Ines counted\n";
    root.write(OLD_WEEK, &text.replace(&bullet("951"), &edited).replace(&bullet("weir"), ""));
    root.run(&["compact"]).ok();
    rename(&root, "2026-03-02", "2026-03-11");
    root.run(&["compact"]).ok();
    for (words, old, new) in [
        ("950 million", 0, 1),
        ("as Ines counted", 0, 1),
        ("951 million", 0, 0),
        ("weir", 0, 0),
        ("SQLite", 0, 1),
    ] {
        let expected = [(OLD_WEEK.to_owned(), old), (WEEK.to_owned(), new)];
        assert_eq!(count(&root, words), expected, "{words}\n{}", root.read(WEEK));
    }
    let month = root.read(MONTH);
    assert!(month.contains("950 million") && !month.contains("weir"), "{month}");
    let after = root.files();
    root.run(&["compact"]).ok();
    assert_eq!(root.files(), after);
    root.run(&["doctor"]).ok();
}

#[test]
fn an_existing_log_with_the_same_text_is_not_a_renamed_log() {
    let root = Root::empty("same");
    root.write("memoird.yaml", "zone: UTC\n");
    for stem in ["2026-03-02", "2026-03-10"] {
        root.write(&format!("memory/{stem}.md"), "- All stations report, nothing else today\n");
    }
    root.run(&["compact"]).ok();
    std::fs::remove_file(root.path("memory/2026-03-02.md")).unwrap();
    let before = root.files();
    root.run(&["compact"]).ok();
    assert_eq!(root.files(), before);
}

/// Returns a compacted sample journal and the old and new name of each of its logs.
fn to_be_renamed() -> (Root, Vec<(String, String)>) {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let logs = root.files().into_keys().filter_map(|it| {
        let stem = it.strip_prefix("memory/2026-")?.strip_suffix(".md")?;
        Some((format!("2026-{stem}"), format!("2026-{stem}-mara")))
    });
    (root, logs.collect())
}

#[test]
fn many_renamed_logs_are_not_reported_as_missing() {
    let (root, names) = to_be_renamed();
    assert!(names.len() > 50, "{names:?}");
    let before = root.files();
    for (from, to) in &names {
        rename(&root, from, to);
    }
    let ran = root.run(&["doctor"]);
    assert!(!ran.stdout.contains("known files are gone"), "{ran}");
    root.run(&["compact"]).ok();
    let renamed = |text: &String| {
        names.iter().fold(text.clone(), |text, (from, to)| {
            text.replace(&format!("{from}:"), &format!("{to}:"))
        })
    };
    let bullets = |text: &str| -> Vec<String> {
        text.lines().filter(|it| it.starts_with("- ")).map(str::to_owned).collect()
    };
    for path in [WEEK, MONTH] {
        assert_eq!(bullets(&root.read(path)), bullets(&renamed(&before[path])), "{path}");
    }
    root.run(&["doctor"]).ok();
}

#[test]
fn logs_deleted_while_others_are_renamed_stop_the_run() {
    let (root, names) = to_be_renamed();
    let (renamed, deleted) = names.split_at(names.len() / 2);
    for (from, to) in renamed {
        rename(&root, from, to);
    }
    let first = root.read(&format!("memory/{}.md", renamed[0].1));
    for (stem, _) in deleted {
        std::fs::remove_file(root.path(&format!("memory/{stem}.md"))).unwrap();
    }
    // A copy counts as the new name of one log, not of each vanished log.
    root.write("memory/2026-03-31-copy.md", &first);
    let before = root.files();
    let ran = root.run(&["compact"]);
    assert_eq!(ran.code, 65, "{ran}");
    assert!(ran.stderr.contains(&format!("{} of ", deleted.len())), "{ran}");
    assert_eq!(root.files(), before);
}

/// Returns a folder whose logs vanished before its last run.
fn without_logs() -> Root {
    let root = Root::small();
    root.run(&["compact"]).ok();
    for log in ["memory/2026-03-03.md", "memory/2026-03-10.md"] {
        std::fs::remove_file(root.path(log)).unwrap();
    }
    root.run(&["compact"]).ok();
    root
}

#[test]
fn user_edits_of_a_week_reach_the_month_without_its_logs() {
    const WEEK: &str = "memory/weekly/2026-W10.md";
    const MONTH: &str = "memory/monthly/2026-03.md";
    let shipped = "Importer v2 shipped";
    for action in ["delete", "edit", "correct", "delete month"] {
        let root = without_logs();
        let week = root.read(WEEK);
        let at = week.lines().position(|it| it.contains(shipped)).unwrap();
        let line = week.lines().nth(at).unwrap();
        assert!(root.read(MONTH).contains(shipped));
        match action {
            "delete" => root.write(WEEK, &week.replace(&format!("{line}\n"), "")),
            "edit" => root.write(WEEK, &week.replace(shipped, "Importer v2 went out")),
            "correct" => {
                let bullet = format!("{WEEK}:{}", at + 1);
                root.run(&["correct", &bullet, "Importer v2 went out"]).ok();
            }
            _ => std::fs::remove_file(root.path(MONTH)).unwrap(),
        }
        root.run(&["compact"]).ok();
        let month = root.read(MONTH);
        assert_eq!(month.contains(shipped), action == "delete month", "{action}\n{month}");
        assert_eq!(
            month.contains("went out"),
            ["edit", "correct"].contains(&action),
            "{action}\n{month}"
        );
        assert!(month.contains("38 GB") && month.contains("951 million"), "{action}\n{month}");
        root.run(&["compact", "--period", "2026-03", "--force"]).ok();
        assert_eq!(root.read(MONTH), month, "{action}");
        root.run(&["doctor"]).ok();
        assert!(!root.run(&["status"]).ok().stdout.contains("stuck"), "{action}");
    }
}
