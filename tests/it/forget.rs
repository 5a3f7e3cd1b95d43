//! `memoird forget`: forgotten text is left nowhere, even if the program is killed at any step.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use memoird::internals::store::db::lineage::Lineage;

use crate::support::{CommandOutput, Root, await_pause};

/// How many lines are planted; more with `MEMOIRD_FAULTS=full`.
fn canary_count() -> usize {
    if std::env::var("MEMOIRD_FAULTS").is_ok_and(|it| it == "full") { 1000 } else { 60 }
}

/// The prefix of all planted words, long enough not to occur by chance in compressed bytes.
const PLANTED: &str = "zqx00";

/// Returns a unique word, in lower case so that it is also found in file names.
fn canary(number: usize) -> String {
    format!("zqx{number:05}k")
}

fn planted_line(number: usize) -> String {
    let canary = canary(number);
    match number % 8 {
        0 => format!(
            "- Decided: {canary} for staging rather than tapes, because one file is easier to back up"
        ),
        1 => format!("- Jo prefers {canary} over mail for short questions"),
        2 => format!("- {canary} is a standing rule of Tobias and stays word for word #keep"),
        3 => format!("- 09:05 Importer {canary} shipped (#412), 3.2 s per GB"),
        4 => format!("> The board asked for {canary} in its mail"),
        5 => format!("| {canary} | 14 |"),
        6 => format!("Blocked: the tunnel to {canary} is down since Monday, nobody knows why"),
        _ => format!("  and {canary} continues the line above"),
    }
}

/// Returns a folder with a quarter of logs in which the planted lines are mixed with others.
fn planted(count: usize, days: usize) -> Root {
    let root = Root::empty("planted");
    root.write("memoird.yaml", "agent_name: planted\nzone: Europe/Berlin\n");
    let first: chrono::NaiveDate = "2026-01-05".parse().unwrap();
    let mut logs: BTreeMap<String, String> = BTreeMap::new();
    for day in 0..days {
        let date = first + chrono::Days::new((day * 90 / days) as u64);
        let log =
            logs.entry(format!("memory/{date}.md")).or_insert_with(|| format!("# {date}\n\n"));
        for line in 0..6 {
            log.extend([format!(
                "- Station {day}{line} sent its readings, {line}{day} of them late\n"
            )]);
        }
        for number in (day..count).step_by(days) {
            log.push_str(&planted_line(number));
            log.push('\n');
        }
    }
    for (path, text) in &logs {
        root.write(path, text);
    }
    root
}

/// Returns all files in the folder and all versions in the history, decompressed.
fn everything(root: &Root) -> Vec<(String, Vec<u8>)> {
    fn collect(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { collect(&path, found) } else { found.push(path) }
        }
    }
    let mut paths = Vec::new();
    collect(&root.path(""), &mut paths);
    let mut all: Vec<_> = paths
        .into_iter()
        .map(|it| {
            let name = it.strip_prefix(root.path("")).unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&it).unwrap())
        })
        .collect();
    let lineage = Lineage::open_existing(&root.path(".memoird/lineage.db")).unwrap().unwrap();
    for hash in lineage.contents().unwrap() {
        all.push((format!("content {hash}"), lineage.content(hash).unwrap().unwrap()));
    }
    all
}

/// Returns the files and versions that contain the words in their bytes or names.
fn files_containing(root: &Root, words: &str) -> Vec<String> {
    let holds = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).to_lowercase();
        text.contains(words)
    };
    let all = everything(root).into_iter();
    all.filter(|(name, bytes)| holds(name.as_bytes()) || holds(bytes)).map(|it| it.0).collect()
}

#[track_caller]
fn check_nothing_left(root: &Root) {
    assert_eq!(files_containing(root, PLANTED), Vec::<String>::new());
    check_healthy_and_up_to_date(root);
}

#[track_caller]
fn check_healthy_and_up_to_date(root: &Root) {
    root.run(&["status"]).ok();
    root.run(&["doctor"]).ok();
    let again = root.run(&["compact", "--json"]).ok().json();
    assert_eq!(again["jobs"], serde_json::json!([]), "nothing is left to do");
    assert!(!root.path(".memoird/forgetting.json").exists());
}

/// Compacts, edits logs and weeks by hand, leaves copies, and compacts again.
fn simulate_use(root: &Root) {
    root.run(&["compact", "-q"]).ok();
    let files = root.files();
    let holds =
        |path: &str| files.iter().any(|(name, text)| name.contains(path) && text.contains("zqx"));
    for tier in ["weekly/", "monthly/", "memory/project_", "memory/user_", "MEMORY.md", "WISDOM.md"]
    {
        assert!(holds(tier), "no planted line reached {tier}, so the test proves nothing about it");
    }
    let is_log = |it: &&String| it.starts_with("memory/2026-");
    let logs: Vec<&String> = files.keys().filter(is_log).collect();
    for path in logs.iter().step_by(3) {
        root.write(path, &format!("- Looked through the day before\n{}", files[*path]));
    }
    let weeks: Vec<&String> = files.keys().filter(|it| it.contains("weekly/")).collect();
    for path in weeks.iter().step_by(2) {
        let text = &files[*path];
        let Some(bullet) = text.lines().find(|it| it.starts_with("- ") && it.contains("zqx"))
        else {
            continue;
        };
        let (words, citation) = bullet.rsplit_once(" [").unwrap();
        let text = text.replace(bullet, &format!("{words}, as I was told [{citation}"));
        root.write(path, &format!("{text}- {} was mine to write\n", canary(8)));
        root.write(
            &format!(".memoird/replaced/0123456789abcdef-{}", path.rsplit('/').next().unwrap()),
            &text,
        );
    }
    let replaced = fs::Permissions::from_mode(0o700);
    fs::set_permissions(root.path(".memoird/replaced"), replaced).unwrap();
    fs::copy(root.path(".memoird/lineage.db"), root.path(".memoird/lineage.db.v1")).unwrap();
    root.run(&["compact", "-q"]).ok();
}

/// Names each planted line, alternately by its address and by its word.
fn names_of_planted_lines(root: &Root, count: usize) -> String {
    let mut addresses: BTreeMap<String, String> = BTreeMap::new();
    for (path, text) in root.files() {
        for (number, line) in (1..).zip(text.lines()) {
            if path.starts_with("memory/2026-") && line.contains("zqx") {
                let at = line.find("zqx").unwrap();
                addresses.insert(line[at..at + 9].to_owned(), format!("{path}:{number}"));
            }
        }
    }
    let mut names = String::new();
    for number in 0..count {
        let canary = canary(number);
        let address = &addresses[&canary];
        names.extend([if number % 2 == 1 { address } else { &canary }, "\n"]);
    }
    names
}

fn forget(root: &Root, names: &str, extra: &[&str]) -> CommandOutput {
    let args = [&["forget", "--from-file", "-", "--yes", "--json"], extra].concat();
    root.run_with_stdin(&args, names)
}

#[test]
fn forgotten_lines_are_left_nowhere() {
    let count = canary_count();
    let root = planted(count, (count / 10).max(20));
    simulate_use(&root);
    let names = names_of_planted_lines(&root, count);
    let before = root.read("memory/2026-01-05.md");
    let report = forget(&root, &names, &["--from-log"]).ok().json_as("forget");
    assert_eq!(report["lines"].as_array().unwrap().len(), count);
    assert_eq!((&report["vacuumed"], &report["dry_run"]), (&true.into(), &false.into()));
    assert!(!report["copies"].as_array().unwrap().is_empty());
    check_nothing_left(&root);
    let remaining: String = before.split_inclusive('\n').filter(|it| !it.contains("zqx")).collect();
    assert_eq!(root.read("memory/2026-01-05.md"), remaining, "all other bytes are unchanged");
}

#[test]
fn without_from_log_only_the_logs_still_contain_it() {
    let root = planted(60, 20);
    simulate_use(&root);
    let logs = |files: BTreeMap<String, String>| {
        files.into_iter().filter(|it| it.0.starts_with("memory/2026-")).collect::<Vec<_>>()
    };
    let before = logs(root.files());
    forget(&root, &names_of_planted_lines(&root, 60), &[]).ok();
    assert!(files_containing(&root, PLANTED).iter().all(|it| it.starts_with("memory/2026-")));
    assert_eq!(logs(root.files()), before);
    check_healthy_and_up_to_date(&root);
    // Nothing brings it back: neither a forced run, nor a new database, nor writing it again.
    root.append("memory/2026-03-31.md", &format!("{}\n", planted_line(1)));
    root.run(&["compact", "-q"]).ok();
    root.run(&["compact", "-q", "--period", "2026-W14", "--force"]).ok();
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    root.run(&["compact", "-q"]).ok();
    assert!(files_containing(&root, PLANTED).iter().all(|it| it.starts_with("memory/2026-")));
    let uncovered = root.run(&["coverage", "2026-W14"]).ok().stdout;
    assert!(!uncovered.contains("zqx"), "{uncovered}");
}

/// Runs the command with a failpoint, and returns whether it failed there.
fn fails_at(root: &Root, fail: &str, args: &[&str]) -> bool {
    let mut command = root.command(args);
    command.env("MEMOIRD_FAIL", fail);
    root.finish(command, args).code != 0
}

/// Runs to the end, and returns the failpoints that were passed.
fn steps_of(root: &Root, args: &[&str]) -> Vec<String> {
    let trace = root.home("steps");
    let mut command = root.command(args);
    command.env("MEMOIRD_FAIL_TRACE", &trace);
    root.finish(command, args).ok();
    fs::read_to_string(&trace).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn forgetting_killed_at_any_step_is_finished_by_the_next_run() {
    let original = planted(16, 8);
    simulate_use(&original);
    let args = ["forget", "--yes", "--from-log", "zqx"];
    let copy = || original.copy();
    let root = copy();
    let steps = steps_of(&root, &args);
    check_nothing_left(&root);
    let every = if canary_count() > 60 { 1 } else { steps.len() / 12 };
    let mut is_recorded = false;
    for (at, name) in (1..).zip(&steps) {
        let first = steps.iter().position(|it| it == name) == Some(at - 1);
        if !(name.starts_with("forget.") && first) && at % every != 0 {
            continue;
        }
        let root = copy();
        assert!(fails_at(&root, &format!("kill@{at}"), &args), "{at} {name}");
        is_recorded |= name == "forget.noted";
        // The next run finishes it, even if that run is killed once as well.
        fails_at(&root, "kill@forget.removed", &["compact", "-q"]);
        root.run(&["compact", "-q"]).ok();
        if is_recorded {
            assert_eq!(files_containing(&root, PLANTED), Vec::<String>::new(), "{at} {name}");
            check_healthy_and_up_to_date(&root);
        } else {
            check_healthy_and_up_to_date(&root);
            root.run(&args).ok();
            check_nothing_left(&root);
        }
    }
    assert!(is_recorded);
}

#[test]
fn lines_appended_during_forgetting_are_kept() {
    let root = Root::small();
    root.run(&["compact", "-q"]).ok();
    let args = ["forget", "--yes", "--from-log", "2026-03-03:4"];
    root.run_paused_at(&args, "forget.items", || {
        root.append("memory/2026-03-03.md", "- Written by a person meanwhile\n");
    })
    .ok();
    assert_eq!(
        root.read("memory/2026-03-03.md"),
        "# Importer\n\n- Importer v2 shipped, 3.2 s per GB\n- Written by a person meanwhile\n"
    );
    root.run(&["compact", "-q"]).ok();
    assert_eq!(files_containing(&root, "backfill of 2019 begun"), Vec::<String>::new());
    assert!(root.read("memory/weekly/2026-W10.md").contains("Written by a person meanwhile"));
    check_healthy_and_up_to_date(&root);
}

#[test]
fn forget_shows_its_effect_and_asks_for_confirmation() {
    let root = Root::small();
    root.run(&["compact", "-q"]).ok();
    root.write("notes.md", "The backfill of 2019 is Ana's\n");
    let before = root.files();
    let preview = root.run(&["forget", "Backfill of 2019"]);
    assert_eq!(preview.code, 2, "{preview}");
    for expected in [
        "memory/2026-03-03.md:4  - Backfill of 2019 begun, 38 GB",
        "memory/weekly/2026-W10.md",
        "memory/monthly/2026-03.md",
        "kept versions",
        "not changed: notes.md",
        "cannot be undone",
        "--yes",
    ] {
        assert!(preview.to_string().contains(expected), "{expected}\n{preview}");
    }
    assert_eq!(root.files(), before);
    let shown =
        root.run(&["forget", "--dry-run", "--json", "Backfill of 2019"]).ok().json_as("forget");
    assert_eq!(shown["dry_run"], true);
    assert_eq!(root.files(), before);
    insta::assert_snapshot!(root.run(&["forget", "ab"]), @r"
    $ memoird forget ab
    ! error: `ab` is too short: it would match nearly every line
    !   hint: name the line, or use more words
    [exit 2]
    ");
    assert_eq!(
        root.run(&["forget", "--yes", "stands nowhere"]).ok().stderr,
        "nothing to forget: no match\n"
    );
}

/// Forgets `named`, and checks which texts of the week are left and which are gone.
#[track_caller]
fn check_target(target: &str, left: &[&str], gone: &[&str]) {
    let root = Root::small();
    root.run(&["compact", "-q"]).ok();
    root.append("memory/weekly/2026-W10.md", "- A thought of mine\n");
    root.run(&["compact", "-q"]).ok();
    root.run(&["forget", "--yes", "-q", target]).ok();
    let week = root.read("memory/weekly/2026-W10.md");
    assert!(left.iter().all(|it| week.contains(it)), "{target}: {week}");
    assert!(!gone.iter().any(|it| week.contains(it)), "{target}: {week}");
    check_healthy_and_up_to_date(&root);
}

#[test]
fn a_line_an_item_or_words_can_be_named() {
    let (shipped, begun, own_bullet) =
        ("Importer v2 shipped", "Backfill of 2019 begun", "A thought of mine");
    check_target("2026-03-03:4", &[shipped, own_bullet], &[begun]);
    check_target("memory/2026-03-03.md:3-4", &[own_bullet], &[shipped, begun]);
    check_target("v2 SHIPPED", &[begun, own_bullet], &[shipped]);
    check_target("a thought", &[shipped, begun], &[own_bullet]);
    let root = Root::small();
    root.run(&["compact", "-q"]).ok();
    let week = root.read("memory/weekly/2026-W10.md");
    let line = 1 + week.lines().position(|it| it.contains(begun)).unwrap();
    check_target(&format!("memory/weekly/2026-W10.md:{line}"), &[shipped, own_bullet], &[begun]);
    for (target, message) in [
        ("2026-03-03:99", "there is no line with text at"),
        ("memory/weekly/2026-W10.md", "name one bullet"),
        ("memory/2026-03-04.md", "there is no `memory/2026-03-04.md`"),
    ] {
        let ran = root.run(&["forget", "--yes", target]);
        assert!(ran.code == 2 && ran.stderr.contains(message), "{ran}");
    }
}

#[test]
fn a_memory_whose_line_is_gone_is_forgotten_with_what_says_the_same() {
    let root = Root::empty("henk");
    root.write("memoird.yaml", "zone: UTC\n");
    let log = "# Monday\n\n- Henk prefers tea over coffee\n- Noor met Priya about the backup.\n";
    root.write("memory/2026-03-02.md", log);
    root.run(&["compact", "-q"]).ok();
    root.write("memory/2026-03-02.md", &log.replace("- Henk prefers tea over coffee\n", ""));
    root.run(&["compact", "-q"]).ok();
    root.run(&["undo", "--yes"]).ok();
    let memory = root.files().into_keys().find(|it| it.contains("memory/user_henk")).unwrap();
    assert!(!files_containing(&root, "henk prefers").is_empty());
    let trace = root.run(&["trace", &memory]).ok().stdout;
    assert!(trace.contains("restored") && trace.contains("source gone"), "{trace}");
    root.run(&["forget", &memory, "--yes"]).ok();
    assert_eq!(files_containing(&root, "henk prefers"), [""; 0]);
    assert!(root.read("memory/2026-03-02.md").contains("Noor met Priya"));
}

#[test]
fn forgetting_a_whole_log_keeps_other_logs_with_the_same_lines() {
    let root = Root::small();
    root.write(
        "memory/2026-03-04.md",
        "# Importer\n\n- Importer v2 shipped, 3.2 s per GB\n- Ana was ill\n",
    );
    root.run(&["compact", "-q"]).ok();
    root.run(&["forget", "--yes", "--from-log", "memory/2026-03-04.md"]).ok();
    assert!(!root.path("memory/2026-03-04.md").exists());
    assert_eq!(files_containing(&root, "ana was ill"), Vec::<String>::new());
    let week = root.read("memory/weekly/2026-W10.md");
    assert!(week.contains("Importer v2 shipped, 3.2 s per GB [2026-03-03:1,3]"), "{week}");
    assert!(root.read("memory/2026-03-03.md").starts_with("# Importer\n\n- Importer v2 shipped"));
    let problems = root.run(&["status", "--json"]).ok().json()["problems"].clone();
    assert_eq!(problems, serde_json::json!([]), "a forgotten log is not reported as missing");
    check_healthy_and_up_to_date(&root);
}

#[test]
fn a_log_with_forgotten_lines_is_not_stored_in_the_history() {
    let only_in_logs = |root: &Root| {
        let found = files_containing(root, "backfill of 2019");
        assert!(found.iter().all(|it| it.starts_with("memory/2026-03-")), "{found:?}");
    };
    let root = Root::small();
    root.run(&["compact", "-q"]).ok();
    root.run(&["forget", "--yes", "-q", "Backfill of 2019"]).ok();
    // The log is rewritten to forget another of its lines.
    root.run(&["forget", "--yes", "-q", "--from-log", "v2 shipped"]).ok();
    only_in_logs(&root);
    // Nor is it stored when it moves to the archive or back.
    root.write("memory/archive/2026/2026-03-03.md", &root.read("memory/2026-03-03.md"));
    root.write("memory/2026-03-03.md", "- Came late to the day\n");
    root.run(&["compact", "-q"]).ok();
    only_in_logs(&root);
    assert!(root.read("memory/2026-03-03.md").contains("Came late to the day"));
    check_healthy_and_up_to_date(&root);
}

/// Returns a folder with a log that was compacted and is gone.
fn with_a_log_gone() -> Root {
    let root = Root::small();
    root.write("memory/2026-03-04.md", "# Importer\n\n- Ana was ill\n");
    root.run(&["compact", "-q"]).ok();
    root.append("memory/2026-03-03.md", "- Backfill of 2018 is next, 12 GB\n");
    root.run(&["compact", "-q"]).ok();
    fs::remove_file(root.path("memory/2026-03-03.md")).unwrap();
    root
}

#[test]
fn a_line_of_a_vanished_log_can_be_forgotten() {
    let root = with_a_log_gone();
    assert!(!files_containing(&root, "backfill of 2019 begun").is_empty());
    let preview = root.run(&["forget", "2026-03-03:4"]);
    let shown =
        "1 line of a deleted log\n  memory/2026-03-03.md:4  - Backfill of 2019 begun, 38 GB";
    assert!(preview.code == 2 && preview.stdout.contains(shown), "{preview}");
    let report = root.run(&["forget", "-y", "--json", "2026-03-03:4"]).ok().json_as("forget");
    assert_eq!(report["vanished"][0]["line"], 4);
    assert_eq!(files_containing(&root, "backfill of 2019 begun"), Vec::<String>::new());
    let week = root.read("memory/weekly/2026-W10.md");
    for other_item in ["Importer v2 shipped", "Backfill of 2018 is next", "Ana was ill"] {
        assert!(week.contains(other_item), "other items of the log stay: {week}");
    }
    check_healthy_and_up_to_date(&root);
    // The history has the only copy of the log's other lines, which keep their line numbers.
    let ran = root.run(&["forget", "-y", "2026-03-03:4"]);
    assert!(ran.code == 2 && ran.stderr.contains("there is no line with text at"), "{ran}");
    let old_version = root.run(&["show", "2026-03-03", "--as-of", "2026-04-13T09:00:00+02:00"]);
    assert!(!old_version.to_string().contains("2019 begun"), "{old_version}");
    assert!(
        !files_containing(&root, "importer v2 shipped, 3.2 s per gb\n\n- backfill of 2018")
            .is_empty()
    );
    root.run(&["forget", "-y", "-q", "2026-03-03:5"]).ok();
    assert_eq!(files_containing(&root, "backfill of 2018"), Vec::<String>::new());
    assert!(root.read("memory/weekly/2026-W10.md").contains("Importer v2 shipped"));
    check_healthy_and_up_to_date(&root);
}

#[test]
fn a_vanished_log_can_be_forgotten() {
    for target in ["memory/2026-03-03.md", "2026-03-03"] {
        let root = with_a_log_gone();
        root.run(&["compact", "-q"]).ok();
        root.run(&["forget", "-y", "-q", target]).ok();
        for words in ["backfill of 2019 begun", "v2 shipped", "backfill of 2018"] {
            assert_eq!(files_containing(&root, words), Vec::<String>::new());
        }
        assert!(root.read("memory/weekly/2026-W10.md").contains("Ana was ill"));
        assert!(
            root.read("memory/2026-03-04.md").starts_with("# Importer"),
            "another log has the same line"
        );
        let problems = root.run(&["status", "--json"]).ok().json()["problems"].clone();
        assert_eq!(problems, serde_json::json!([]), "a forgotten log is not reported as missing");
        check_healthy_and_up_to_date(&root);
        // Restoring a copy of the log does not restore the forgotten item.
        root.write("memory/2026-03-03.md", "# Importer\n\n- Backfill of 2019 begun, 38 GB\n");
        root.run(&["compact", "-q"]).ok();
        assert!(!root.read("memory/weekly/2026-W10.md").contains("2019 begun"));
    }
}

#[test]
fn forgetting_words_of_a_vanished_log_removes_items_citing_their_line() {
    let root = with_a_log_gone();
    let week = root.read("memory/weekly/2026-W10.md");
    let retold = week.replace("Backfill of 2019 begun, 38 GB [", "They started on it [");
    assert_ne!(week, retold);
    root.write("memory/weekly/2026-W10.md", &retold);
    root.run(&["forget", "-y", "-q", "2019 begun"]).ok();
    assert!(!root.read("memory/weekly/2026-W10.md").contains("They started on it"));
    check_healthy_and_up_to_date(&root);
}

#[test]
fn after_forgetting_and_compacting_nothing_is_due() {
    for (journal, line) in [("jonas", "memory/2026-01-16.md:2"), ("mara", "memory/2026-01-05.md:8")]
    {
        let root = Root::new(journal);
        root.run(&["compact", "-q"]).ok();
        root.run(&["forget", "-y", "-q", "--from-log", line]).ok();
        check_healthy_and_up_to_date(&root);
    }
}

#[test]
fn counts_of_one_are_singular() {
    let root = Root::small();
    root.run(&["compact", "-q"]).ok();
    let preview = root.run(&["forget", "2026-03-03:4"]).to_string();
    for expected in
        ["1 line of a log (stays in", "2 bullets and entries", "3 kept versions of files"]
    {
        assert!(preview.contains(expected), "{expected}\n{preview}");
    }
    let report = root.run(&["forget", "-y", "2026-03-03:4"]).ok().to_string();
    assert!(report.contains("forgot 1 line, 2 bullets and entries, 3 kept versions"), "{report}");
}

#[test]
fn status_reports_unfinished_forgetting() {
    let root = Root::small();
    root.run(&["compact", "-q"]).ok();
    assert!(fails_at(&root, "kill@forget.noted", &["forget", "-y", "2026-03-03:4"]));
    let status = root.run(&["status"]);
    let problem =
        ".memoird/forgetting.json: forgetting is not finished; `memoird compact` finishes it";
    assert!(status.stdout.contains(problem), "{status}");
    root.run(&["compact", "-q"]).ok();
    let status = root.run(&["status"]).ok().to_string();
    assert!(!status.contains("forget"), "{status}");
}

/// Returns the peak memory of a run up to a step, in bytes.
fn peak_at(root: &Root, step: &str, args: &[&str]) -> usize {
    let go = root.home("go");
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("memoird"));
    command.args(args).env_clear().env("HOME", root.home(""));
    command.env("MEMOIRD_NOW", crate::support::NOW).current_dir(root.path(""));
    command.env("MEMOIRD_FAIL", format!("wait:{}@{step}", go.display()));
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let has_ended = || child.try_wait().unwrap().is_some();
    await_pause(&go.with_extension("reached"), step, has_ended);
    let process_status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = process_status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    let peak: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    peak * 1024
}

#[test]
fn forgetting_does_not_load_the_whole_history() {
    use memoird::internals::store::db::lineage::{
        history::{NewVersion, VersionCause},
        record::Commit,
    };
    let args = ["forget", "-y", "2026-03-03:4"];
    let step = "forget.noted";
    let (versions, size) = (44_u8, 1024 * 1024);
    let compacted = || {
        let root = Root::small();
        root.run(&["compact", "-q"]).ok();
        root
    };
    // The baseline: the same with almost no history.
    let baseline = peak_at(&compacted(), step, &args);
    let root = compacted();
    let mut lineage = Lineage::open(&root.path(".memoird/lineage.db")).unwrap();
    for number in 0..versions {
        let text = format!("{number} {}\n", "x".repeat(size));
        let version = NewVersion {
            path: "memory/2025-01-01.md",
            cause: VersionCause::ExternalWrite,
            bytes: Some(text.as_bytes()),
        };
        let commit = Commit { versions: &[version], ..Commit::default() };
        lineage.commit(&commit).unwrap();
    }
    drop(lineage);
    let peak = peak_at(&root, step, &args);
    let extra = peak.saturating_sub(baseline);
    assert!(extra < size * usize::from(versions) / 2, "{extra} bytes more than {baseline}");
}

const ARCHIVED: &str = "memory/archive/2026/2026-03-03.md";

/// Returns a folder with two archived logs.
fn archived() -> Root {
    let root = Root::small();
    root.age_files();
    root.run(&["compact", "-q"]).ok();
    root.run(&["compact", "-q", "--set", "archive_after_days=30"]).ok();
    assert!(root.path(ARCHIVED).exists());
    root
}

#[test]
fn a_line_is_removed_from_an_archived_log() {
    let cut = "# Importer\n\n- Importer v2 shipped, 3.2 s per GB\n";
    for target in ["2026-03-03:4", "memory/2026-03-03.md:4", &format!("{ARCHIVED}:4"), "2019 begun"]
    {
        let root = archived();
        root.run(&["forget", "-y", "-q", "--from-log", target]).ok();
        assert_eq!(root.read(ARCHIVED), cut, "{target}");
        assert!(!root.path("memory/2026-03-03.md").exists());
        assert_eq!(files_containing(&root, "2019 begun"), Vec::<String>::new(), "{target}");
        let week = root.read("memory/weekly/2026-W10.md");
        assert!(week.contains("Importer v2 shipped, 3.2 s per GB [2026-03-03:1,3]"), "{week}");
        check_healthy_and_up_to_date(&root);
    }
    let root = archived();
    root.run(&["forget", "-y", "-q", "--from-log", "2026-03-03"]).ok();
    assert!(!root.path(ARCHIVED).exists());
    assert_eq!(files_containing(&root, "importer v2 shipped"), Vec::<String>::new());
    check_healthy_and_up_to_date(&root);
}

#[test]
fn removing_an_archived_line_survives_a_kill_at_any_step() {
    let original = archived();
    let args = ["forget", "-y", "-q", "--from-log", "2019 begun"];
    let copy = || original.copy();
    let steps = steps_of(&copy(), &args);
    let every = if canary_count() > 60 { 1 } else { steps.len() / 12 };
    let first = steps.iter().position(|it| *it == "forget.noted").unwrap() + 1;
    for at in (first..=steps.len()).step_by(every) {
        let root = copy();
        assert!(fails_at(&root, &format!("kill@{at}"), &args), "{at}");
        fails_at(&root, "kill@forget.items", &["compact", "-q"]);
        root.run(&["compact", "-q"]).ok();
        assert_eq!(
            files_containing(&root, "2019 begun"),
            Vec::<String>::new(),
            "{at} {}",
            steps[at - 1]
        );
        assert_eq!(root.read(ARCHIVED), "# Importer\n\n- Importer v2 shipped, 3.2 s per GB\n");
        check_healthy_and_up_to_date(&root);
    }
}
