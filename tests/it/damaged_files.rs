//! Generated files damaged by a disk or by accident: nothing is derived from what is left of them, and
//! where a person may have made the change, the program asks.

use memoird::internals::memory::hash;

use crate::support::Root;

const WEEK: &str = "memory/weekly/2026-W11.md";
const MONTH: &str = "memory/monthly/2026-03.md";
const DECISIONS: &str = "memory/.decisions.jsonl";

fn compacted(journal: &str) -> Root {
    let root = Root::new(journal);
    root.run(&["compact"]).ok();
    root
}

fn delete_database(root: &Root) {
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
}

fn is_bullet(line: &str) -> bool {
    line.starts_with("- ")
}

/// Cuts this many bullets off the end of a file, and returns the text before.
fn cut_bullets(root: &Root, path: &str, bullets: usize) -> String {
    let text = root.read(path);
    let starts = text.rmatch_indices("\n- ").map(|it| it.0 + 1);
    let mut starts = starts.skip(bullets - 1);
    let at = starts.next().unwrap();
    root.write(path, &text[..at]);
    text
}

/// Asserts that `status` and `doctor` report a file and the next commands.
#[track_caller]
fn assert_reported(root: &Root, path: &str, hints: &[&str]) {
    for ran in [root.run(&["status"]), root.run(&["doctor"])] {
        let output = ran.to_string();
        let line = output.lines().find(|it| it.contains(path) && it.contains(hints[0]));
        let line = line.unwrap_or_else(|| panic!("{path} {hints:?} in:\n{output}"));
        assert!(hints.iter().all(|it| line.contains(it)), "{line}");
    }
}

const BOTH_HINTS: [&str; 2] = ["memoird doctor --repair", "memoird compact --accept-missing"];

#[test]
fn an_emptied_week_is_summarized_again_before_its_month() {
    let base = compacted("mara");
    for (path, text) in [(WEEK, String::new()), (WEEK, "\0".repeat(4096)), (MONTH, "\n \n".into())]
    {
        let root = compacted("mara");
        delete_database(&root);
        root.write(path, &text);
        // A late line makes the month due as well.
        root.append("memory/2026-03-18.md", "\n- 4711 packets were lost\n");
        let output = root.run(&["status"]).stdout;
        assert!(output.contains(path) && output.contains("it is empty"), "{output}");
        root.run(&["compact"]).ok();
        assert_eq!(root.read(WEEK), base.read(WEEK), "{path} {text:?}");
        let month = root.read(MONTH);
        assert!(month.matches("2026-03-1").count() > 1, "{path} {text:?}\n{month}");
        root.run(&["doctor"]).ok();
    }
}

#[test]
fn a_month_waits_if_a_damaged_week_cannot_be_regenerated() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let month = root.read(MONTH);
    std::fs::remove_file(root.path("memory/2026-03-03.md")).unwrap();
    delete_database(&root);
    root.write("memory/weekly/2026-W10.md", "");
    root.append("memory/2026-03-10.md", "- 4711 packets were lost\n");
    root.run(&["compact"]);
    assert_eq!(root.read(MONTH), month);
    let status = root.run(&["status"]);
    assert_eq!(status.code, 1, "{status}");
    let is_reported = |it: &str| {
        it.contains("2026-W10.md") && it.contains("doctor --repair") && it.contains("2026-03")
    };
    assert!(status.stdout.lines().any(is_reported), "{status}");
    root.run(&["compact", "--force", "--period", "2026-03"]);
    assert_eq!(root.read(MONTH), month);
    root.run(&["doctor", "--repair", "--yes"]);
    root.run(&["compact"]).ok();
    let after = root.read(MONTH);
    assert!(after.contains("Importer v2 shipped") && after.contains("4711"), "{after}");
}

#[test]
fn a_week_with_nul_bytes_is_not_used_as_a_source() {
    let root = compacted("mara");
    delete_database(&root);
    let text = root.read(WEEK);
    let damaged = format!("{}{}", &text[..text.len() - 200], "\0".repeat(200));
    root.write(WEEK, &damaged);
    let month = root.read(MONTH);
    root.append("memory/2026-03-18.md", "\n- 4711 packets were lost\n");
    root.run(&["compact"]);
    assert_eq!((root.read(WEEK), root.read(MONTH)), (damaged, month));
    assert_reported(&root, WEEK, &["NUL", "memoird doctor --repair"]);
    root.run(&["doctor", "--repair", "--yes"]);
    root.run(&["compact"]).ok();
    assert_eq!(root.read(WEEK), text);
}

#[test]
fn a_truncated_file_is_not_used_until_a_person_decides() {
    for (path, hints) in [(WEEK, MONTH), (MONTH, "WISDOM.md")] {
        for accept in [false, true] {
            let root = compacted("mara");
            let before = root.files();
            let text = cut_bullets(&root, path, 4);
            root.append("memory/2026-03-18.md", "\n- 4711 packets were lost\n");
            let damaged_state = root.read(path);
            let refused = root.run(&["compact"]);
            assert!(
                refused.stderr.contains(path) && refused.stderr.contains("--accept-missing"),
                "{refused}"
            );
            assert_eq!(
                (root.read(path), root.read(hints)),
                (damaged_state.clone(), before[hints].clone())
            );
            assert!(!root.path(DECISIONS).exists(), "nothing was deleted by a person");
            assert_reported(&root, path, &BOTH_HINTS);
            if accept {
                root.run(&["compact", "--accept-missing"]).ok();
                assert!(root.path(DECISIONS).exists());
                assert!(path == MONTH || root.read(path) == damaged_state);
                let lost_bullet = text.lines().rfind(|it| is_bullet(it)).unwrap();
                assert!(!root.read(path).contains(lost_bullet));
            } else {
                root.run(&["doctor", "--repair", "--yes"]);
                assert_eq!(root.read(path), text);
                root.run(&["compact"]).ok();
                assert!(!root.path(DECISIONS).exists());
            }
            root.run(&["doctor"]).ok();
            let after = root.files();
            root.run(&["compact"]).ok();
            assert_eq!(root.files(), after);
        }
    }
}

#[test]
fn correct_forget_and_undo_are_refused_while_a_file_is_damaged() {
    let root = compacted("mara");
    let before = root.files();
    let line = 1 + before[WEEK].lines().position(is_bullet).unwrap();
    let bullet = format!("{WEEK}:{line}");
    let correct = ["correct", &bullet, "Nobody but Ottilie knows the gate"];
    let forget = ["forget", "memory/2026-03-11.md:3", "--from-log", "--yes"];
    let verbs: [&[&str]; 3] = [&correct, &forget, &["undo", "--yes"]];
    for lost_part in ["end", "marks"] {
        match lost_part {
            "end" => drop(cut_bullets(&root, WEEK, 4)),
            _ => root.write(WEEK, "# Notes of Ottilie\n"),
        }
        let damaged_state = root.files();
        for verb in verbs {
            for dry_run in [&[][..], &["--dry-run"]] {
                let args = [verb, dry_run].concat();
                let ran = root.run(&args);
                assert_eq!(ran.code, 65, "{lost_part}: {ran}");
                for word in [WEEK, "nothing was done"].iter().chain(&BOTH_HINTS) {
                    assert!(ran.stderr.contains(*word), "{lost_part}: {ran}");
                }
                assert_eq!(root.files(), damaged_state, "{lost_part}: {ran}");
            }
        }
        root.run(&["doctor", "--repair", "--yes"]);
        assert_eq!(root.files(), before, "{lost_part}");
    }
    root.run(&correct).ok();
    root.run(&forget).ok();
    assert!(!root.read(WEEK).contains(before[WEEK].lines().nth(line - 1).unwrap()));
}

#[test]
fn a_truncated_file_is_restored_before_it_is_corrected() {
    let root = compacted("mara");
    let before = root.read(WEEK);
    let line = 1 + before.lines().position(is_bullet).unwrap();
    let last = before.lines().rfind(|it| is_bullet(it)).unwrap();
    root.write(WEEK, &before[..before.len() - last.len() / 2]);
    root.run(&["correct", &format!("{WEEK}:{line}"), "Nobody but Ottilie knows the gate"]).ok();
    let after = root.read(WEEK);
    assert!(after.contains(last) && after.contains("Ottilie"), "{after}");
    root.run(&["doctor"]).ok();
}

#[test]
fn a_truncated_wisdom_file_is_left_until_repaired() {
    let root = compacted("mara");
    let text = root.read("WISDOM.md");
    // Fewer entries a person may have deleted.
    let third = text.rmatch_indices("\n- ").nth(2).unwrap().0 + 1;
    for (case, damaged_state) in [("cut", &text[..third]), ("overwritten", "half")] {
        root.write("WISDOM.md", damaged_state);
        root.run(&["compact"]);
        assert_eq!(root.read("WISDOM.md"), damaged_state, "{case}");
        assert!(!root.path(DECISIONS).exists(), "{case}");
        assert_reported(&root, "WISDOM.md", &BOTH_HINTS);
        root.run(&["doctor", "--repair", "--yes"]);
        assert_eq!(root.read("WISDOM.md"), text, "{case}");
        root.run(&["doctor"]).ok();
    }
}

#[test]
fn deleting_a_few_bullets_needs_no_confirmation() {
    for bullets in [1, 2] {
        let root = compacted("mara");
        let text = cut_bullets(&root, WEEK, bullets);
        let lost_bullet = text.lines().rfind(|it| is_bullet(it)).unwrap();
        root.run(&["compact"]).ok();
        assert!(root.path(DECISIONS).exists());
        assert!(!root.read(WEEK).contains(lost_bullet));
        root.run(&["doctor"]).ok();
    }
}

#[test]
fn an_overwritten_file_is_reported_and_can_be_restored() {
    for case in ["repair", "accept", "force"] {
        let root = compacted("mara");
        let before = root.files();
        root.write(WEEK, "half");
        root.run(&["compact"]);
        assert_eq!(root.read(WEEK), "half");
        assert_eq!(root.read(MONTH), before[MONTH]);
        assert!(!root.path(DECISIONS).exists(), "nothing was deleted by a person");
        assert_reported(&root, WEEK, &BOTH_HINTS);
        match case {
            "repair" => {
                let output = root.run(&["doctor", "--repair", "--yes"]).to_string();
                let moved =
                    output.split_whitespace().find(|it| it.starts_with(".memoird/quarantine/"));
                let moved =
                    moved.unwrap_or_else(|| panic!("{output}")).trim_end_matches([',', ';', '.']);
                assert_eq!(root.read(moved), "half");
                assert_eq!(root.files(), before);
            }
            "accept" => {
                root.run(&["compact", "--accept-missing"]).ok();
                assert_eq!(root.read(WEEK), "half");
                assert_ne!(root.read(MONTH), before[MONTH]);
                assert!(!root.path(DECISIONS).exists(), "replacing a file deletes no item");
            }
            _ => {
                root.run(&["compact", "--period", "2026-W11", "--force"]).ok();
                assert_eq!(root.read(WEEK), before[WEEK]);
                let history = root.run(&["history", WEEK]).ok();
                assert!(history.stdout.lines().count() > 2, "{history}");
            }
        }
        root.run(&["doctor"]).ok();
        let after = root.files();
        root.run(&["compact"]).ok();
        assert_eq!(root.files(), after);
    }
}

#[test]
fn a_flipped_bit_in_the_decisions_is_repaired() {
    let root = compacted("mara");
    let week = "memory/weekly/2026-W11.md";
    let text = root.read(week);
    let bullet = text.lines().find(|it| is_bullet(it)).unwrap();
    root.write(week, &text.replacen(&format!("{bullet}\n"), "", 1));
    root.run(&["compact"]).ok();
    let intact = root.read(DECISIONS);
    let digit = intact.find(':').unwrap() + 5;
    let flipped = if &intact[digit..=digit] == "0" { "1" } else { "0" };
    let mut damaged = intact.clone();
    damaged.replace_range(digit..=digit, flipped);
    root.write(DECISIONS, &damaged);
    assert_eq!(root.run(&["doctor"]).code, 1);
    root.run(&["doctor", "--repair", "--yes"]).ok();
    assert_eq!(root.read(DECISIONS), intact);
    root.run(&["doctor"]).ok();
}

/// A damaged file that was recorded is still restored if the history has a sound version.
#[test]
fn a_file_recorded_as_damaged_is_restored_from_the_history() {
    for path in [WEEK, "WISDOM.md"] {
        let root = compacted("mara");
        let intact = root.read(path);
        let damaged_text = format!("{}\0\0\0", &intact[..intact.len() - 3]);
        root.write(path, &damaged_text);
        let database = rusqlite::Connection::open(root.path(".memoird/lineage.db")).unwrap();
        let hash = hash::hex(hash::ContentHash::of(&damaged_text).as_bytes());
        let set = "UPDATE entity SET hash = ?1 \
            WHERE id = (SELECT entity FROM document WHERE path = ?2)";
        assert_eq!(database.execute(set, (hash, path)).unwrap(), 1);
        drop(database);
        assert_eq!(root.run(&["doctor"]).code, 1);
        let output = root.run(&["compact"]).ok();
        assert!(output.stderr.contains("was put back"), "{output}");
        assert_eq!(root.read(path), intact);
    }
}

const MEMORY: &str = "memory/user_henk-prefers-dates-report-2026-03.md";

/// Appends a line to the log that the memory was extracted from.
fn touch_source(root: &Root) {
    let text = root.read(MEMORY);
    let at = text.find("[2026-").or_else(|| text.find("2026-")).unwrap();
    let day = text[at..].trim_start_matches('[');
    root.append(&format!("memory/{}.md", &day[..10]), "\n- One line more, and nothing else\n");
}

type NamedAction<'a> = (&'a str, &'a dyn Fn(&Root));
type NamedDamage<'a> = (&'a str, &'a dyn Fn(&str) -> Option<String>);

/// Decisions that a run only notices are as safe as the files it writes.
#[test]
fn decisions_are_copied_next_to_the_database_when_written() {
    let bullet = |root: &Root| 1 + root.read(WEEK).lines().position(is_bullet).unwrap();
    let delete = |root: &Root| std::fs::remove_file(root.path(MEMORY)).unwrap();
    let actions: [NamedAction<'_>; 4] = [
        ("a run that only notices", &|root| {
            delete(root);
            root.run(&["compact"]).ok();
        }),
        ("correct", &|root| {
            delete(root);
            let bullet = format!("{WEEK}:{}", bullet(root));
            root.run(&["correct", &bullet, "Nobody but Ottilie knows the gate"]).ok();
        }),
        ("forget", &|root| {
            root.run(&["forget", "memory/2026-03-11.md:3", "--from-log", "--yes"]).ok();
        }),
        ("undo", &|root| drop(root.run(&["undo", "--yes"]).ok())),
    ];
    for (case, action) in actions {
        let root = compacted("mara");
        action(&root);
        let copy = std::fs::read_to_string(root.path(".memoird/decisions.copy"));
        assert_eq!(copy.unwrap_or_default(), root.read(DECISIONS), "{case}");
        root.run(&["doctor"]).ok();
        std::fs::remove_file(root.path(DECISIONS)).unwrap();
        assert_eq!(root.run(&["doctor"]).code, 1, "{case}");
        assert_eq!(root.run(&["compact"]).code, 65, "{case}");
    }
}

/// A run without all decisions would bring deleted items back.
#[test]
fn a_lost_decision_stops_every_run() {
    let damages: [NamedDamage<'_>; 4] = [
        ("gone", &|_| None),
        ("cut", &|text| Some(text[..text.len() - 40].to_owned())),
        ("turned", &|text| {
            let digit = text.find(':').unwrap() + 5;
            let flipped = if &text[digit..=digit] == "0" { "1" } else { "0" };
            Some(format!("{}{flipped}{}", &text[..digit], &text[digit + 1..]))
        }),
        ("shorter", &|text| text.lines().next().map(|it| format!("{it}\n"))),
    ];
    for (case, damage) in damages {
        for accept in [false, true] {
            let root = compacted("mara");
            touch_source(&root);
            root.run(&["compact"]).ok();
            std::fs::remove_file(root.path(MEMORY)).unwrap();
            root.run(&["compact"]).ok();
            let intact = root.read(DECISIONS);
            match damage(&intact) {
                Some(text) => root.write(DECISIONS, &text),
                None => std::fs::remove_file(root.path(DECISIONS)).unwrap(),
            }
            let day =
                root.files().into_keys().rfind(|it| it.starts_with("memory/2026-03")).unwrap();
            root.append(&day, "\n- One line more, and nothing else\n");
            let status = root.run(&["status"]);
            for word in [".decisions.jsonl", "nothing is written", "doctor --repair"] {
                assert!(status.stdout.contains(word), "{case}: {status}");
            }
            let damaged_state = root.files();
            let correct = ["correct", &format!("{WEEK}:{}", 20), "Nobody knows the gate"];
            for args in [&["compact"][..], &correct] {
                let refused = root.run(args);
                assert_eq!(refused.code, 65, "{case}: {refused}");
                for word in [".decisions.jsonl", "nothing was done"].iter().chain(&BOTH_HINTS) {
                    assert!(refused.stderr.contains(*word), "{case}: {refused}");
                }
                assert_eq!(root.files(), damaged_state, "{case}");
            }
            if accept {
                root.run(&["compact", "--accept-missing"]).ok();
            } else {
                root.run(&["doctor", "--repair", "--yes"]);
                assert_eq!(root.read(DECISIONS), intact, "{case}");
                root.run(&["compact"]).ok();
                assert!(!root.path(MEMORY).exists(), "{case}");
            }
            root.run(&["doctor"]).ok();
            let after = root.files();
            root.run(&["compact"]).ok();
            assert_eq!(root.files(), after, "{case}");
        }
    }
}

/// A line cut off by a crash was not acted on yet, and no known decision is missing.
#[test]
fn a_decision_cut_off_by_a_crash_blocks_nothing() {
    let root = compacted("mara");
    std::fs::remove_file(root.path(MEMORY)).unwrap();
    root.run(&["compact"]).ok();
    root.append(DECISIONS, "{\"at\":\"2026-04-13T07:00:00Z\",\"what\":\"dele");
    root.run(&["compact"]).ok();
    assert_eq!(root.run(&["doctor"]).code, 1, "it is reported");
    root.run(&["doctor", "--repair", "--yes"]).ok();
    assert!(!root.path(MEMORY).exists());
}

#[test]
fn a_damaged_file_is_reported_in_json() {
    let root = compacted("mara");
    cut_bullets(&root, WEEK, 4);
    let ran = root.run(&["compact", "--json"]);
    assert_eq!(ran.code, 1, "{ran}");
    let report = ran.json_as("compact");
    assert_eq!(report["held"][0]["path"], WEEK);
    assert!(report["held"][0]["reason"].as_str().unwrap().contains(BOTH_HINTS[1]), "{report}");
    root.run(&["doctor", "--repair", "--yes"]).ok();
    let report = root.run(&["compact", "--json"]).ok().json_as("compact");
    assert_eq!(report["held"], serde_json::json!([]));
}
