//! Logs that are gone for a while, or stand under another name: what was made of them stays, once.

use crate::support::{Ran, Root};

const WEEK: &str = "memory/weekly/2026-W11.md";
const MONTH: &str = "memory/monthly/2026-03.md";

/// A folder of a sample journal whose files may have so many characters, folded.
fn capped(max_chars: usize) -> Root {
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

/// Returns the lines of a file in an order of their own: the place of what a person wrote, and of
/// its hash, depends on what stood around it.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().filter(|it| !it.starts_with("  items: ")).collect();
    lines.sort_unstable();
    lines
}

fn job(ran: &Ran) -> (u64, String) {
    let report = ran.json_as("compact");
    let job = &report["jobs"][0];
    (job["output_chars"].as_u64().unwrap(), job["reason"].as_str().unwrap().to_owned())
}

/// Takes a log away, and returns how it is put back.
fn take(root: &Root, path: &str) -> impl FnOnce() + use<> {
    let (from, to) = (root.path(path), root.home("taken.md"));
    std::fs::rename(&from, &to).unwrap();
    move || std::fs::rename(&to, &from).unwrap()
}

#[test]
fn a_file_keeps_to_its_cap_without_a_log_and_is_as_before_when_it_is_back() {
    for by_hand in [false, true] {
        let root = capped(2_000);
        let bullet = bullets_of(&root.read(WEEK), "2026-03-12").remove(0);
        // A line marked `#keep` stands outside of the cap.
        let mut slack = 110;
        if by_hand {
            let edited = bullet.replacen("- ", "- By hand: ", 1);
            slack += edited.len() as u64;
            root.write(WEEK, &root.read(WEEK).replacen(&bullet, &edited, 1));
            root.run(&["compact"]).ok();
        }
        let before = root.files();
        let put_back = take(&root, "memory/2026-03-12.md");
        root.run(&["compact"]).ok();
        for (period, path) in [("2026-W11", WEEK), ("2026-03", MONTH)] {
            let kept = bullets_of(&root.read(path), "2026-03-12");
            assert!(!kept.is_empty(), "{}", root.read(path));
            let args = ["compact", "--force", "--period", period, "--json"];
            let (chars, reason) = job(&root.run(&args).ok());
            let text = root.read(path);
            // A bullet of the person's is cited where it stands by now.
            let words = |it: &String| it.rsplit_once(" [").unwrap().0.to_owned();
            assert!(kept.iter().all(|it| text.contains(&words(it))), "{kept:?} in:\n{text}");
            assert!(chars <= 2_000 + slack, "{chars}:\n{text}");
            assert!(!reason.contains("max_chars"), "{reason}");
            assert!(text.contains("  gone: [\"2026-03-12\"]\n"), "{text}");
        }
        root.run(&["doctor"]).ok();
        // Also where the database is lost meanwhile.
        std::fs::remove_dir_all(root.path(".memoird")).unwrap();
        put_back();
        root.run(&["compact"]).ok();
        let after = root.files();
        if by_hand {
            assert_eq!(lines(&after[WEEK]), lines(&before[WEEK]));
        } else {
            assert_eq!([WEEK, MONTH].map(|it| &after[it]), [WEEK, MONTH].map(|it| &before[it]));
        }
        let again = root.run(&["compact"]).ok();
        assert_eq!(root.files(), after, "{again}");
    }
}

#[test]
fn what_is_kept_does_not_go_for_the_cap_and_that_is_told() {
    let root = capped(2_000);
    let kept = bullets_of(&root.read(WEEK), "2026-03-12");
    let _put_back = take(&root, "memory/2026-03-12.md");
    let cap = root.read("memoird.yaml").replace("2000", "100");
    root.write("memoird.yaml", &cap);
    let args = ["compact", "--force", "--period", "2026-W11", "--json"];
    let (_, reason) = job(&root.run(&args).ok());
    assert!(reason.contains("more than max_chars: 100"), "{reason}");
    let text = root.read(WEEK);
    assert!(kept.iter().all(|it| text.contains(it)), "{kept:?} in:\n{text}");
}

/// A folder with a log in each of two weeks of March and one of April, all folded but the last.
fn short() -> Root {
    let root = Root::empty("short");
    root.write("memoird.yaml", "zone: UTC\n");
    root.write("memory/2026-03-02.md", MOVED);
    root.write("memory/2026-03-03.md", "- Measured 31 ms at the old gate\n");
    root.write("memory/2026-03-10.md", "- Measured 12 ms at the new gate\n");
    root.run(&["compact"]).ok();
    root
}

const MOVED: &str = "- Decided to use SQLite for staging, because one file is easy to back up\n\
    - Backfill of 2019 complete, 951 million rows\n\
    - The gauge at the weir froze at 4:12\n";
const OLD_WEEK: &str = "memory/weekly/2026-W10.md";

fn rename(root: &Root, from: &str, to: &str) {
    let path = |stem: &str| root.path(&format!("memory/{stem}.md"));
    std::fs::rename(path(from), path(to)).unwrap();
}

/// Returns how often a text stands in each generated file.
fn count(root: &Root, words: &str) -> Vec<(String, usize)> {
    let files = root.files().into_iter().filter(|(path, _)| path.starts_with("memory/weekly/"));
    files.map(|(path, text)| (path, text.matches(words).count())).collect()
}

#[test]
fn a_log_with_another_date_takes_along_what_was_made_of_it() {
    for without_database in [false, true] {
        let root = short();
        let fresh = short();
        rename(&fresh, "2026-03-02", "2026-03-11");
        std::fs::remove_dir_all(fresh.path(".memoird")).unwrap();
        for made in fresh.files().into_keys().filter(|it| !it.starts_with("memory/2026")) {
            if made != "memoird.yaml" {
                std::fs::remove_file(fresh.path(&made)).unwrap();
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
fn a_log_with_another_name_in_its_week_is_followed_without_a_fold() {
    let root = short();
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
fn what_a_person_did_to_a_log_that_moves_stays_done() {
    let root = short();
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
fn a_log_that_only_says_the_same_as_a_vanished_one_takes_nothing_over() {
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

/// A folder of a sample journal, folded, and for each of its logs the old name and a new one.
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
fn many_logs_with_other_names_are_not_taken_for_gone() {
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
fn logs_that_went_while_others_were_renamed_are_asked_about() {
    let (root, names) = to_be_renamed();
    let (renamed, gone) = names.split_at(names.len() / 2);
    for (from, to) in renamed {
        rename(&root, from, to);
    }
    let first = root.read(&format!("memory/{}.md", renamed[0].1));
    for (stem, _) in gone {
        std::fs::remove_file(root.path(&format!("memory/{stem}.md"))).unwrap();
    }
    // A copy stands for one log, and not for each that is gone.
    root.write("memory/2026-03-31-copy.md", &first);
    let before = root.files();
    let ran = root.run(&["compact"]);
    assert_eq!(ran.code, 65, "{ran}");
    assert!(ran.stderr.contains(&format!("{} of ", gone.len())), "{ran}");
    assert_eq!(root.files(), before);
}

/// A folder whose logs are gone, folded after they went.
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
fn what_a_person_does_to_a_week_reaches_its_month_though_all_logs_are_gone() {
    const WEEK: &str = "memory/weekly/2026-W10.md";
    const MONTH: &str = "memory/monthly/2026-03.md";
    let shipped = "Importer v2 shipped";
    for deed in ["delete", "edit", "correct", "delete month"] {
        let root = without_logs();
        let week = root.read(WEEK);
        let at = week.lines().position(|it| it.contains(shipped)).unwrap();
        let line = week.lines().nth(at).unwrap();
        assert!(root.read(MONTH).contains(shipped));
        match deed {
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
        assert_eq!(month.contains(shipped), deed == "delete month", "{deed}\n{month}");
        assert_eq!(
            month.contains("went out"),
            ["edit", "correct"].contains(&deed),
            "{deed}\n{month}"
        );
        assert!(month.contains("38 GB") && month.contains("951 million"), "{deed}\n{month}");
        root.run(&["compact", "--period", "2026-03", "--force"]).ok();
        assert_eq!(root.read(MONTH), month, "{deed}");
        root.run(&["doctor"]).ok();
        assert!(!root.run(&["status"]).ok().stdout.contains("stuck"), "{deed}");
    }
}
