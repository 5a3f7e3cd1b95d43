//! Generated files that a disk or a slip has harmed: nothing rests on what is left of them, and what
//! a person may have meant is asked.

use memoird::internals::memory::hash;

use crate::support::Root;

const WEEK: &str = "memory/weekly/2026-W11.md";
const MONTH: &str = "memory/monthly/2026-03.md";
const DECISIONS: &str = "memory/.decisions.jsonl";

fn folded(journal: &str) -> Root {
    let root = Root::new(journal);
    root.run(&["compact"]).ok();
    root
}

fn without_database(root: &Root) {
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
}

fn is_bullet(line: &str) -> bool {
    line.starts_with("- ")
}

/// Cuts so many bullets off the end of a file, and returns what it was.
fn cut(root: &Root, path: &str, bullets: usize) -> String {
    let text = root.read(path);
    let starts = text.rmatch_indices("\n- ").map(|it| it.0 + 1);
    let mut starts = starts.skip(bullets - 1);
    let at = starts.next().unwrap();
    root.write(path, &text[..at]);
    text
}

/// Asserts that `status` and `doctor` name a file and what to do.
#[track_caller]
fn assert_told(root: &Root, path: &str, next: &[&str]) {
    for ran in [root.run(&["status"]), root.run(&["doctor"])] {
        let said = ran.to_string();
        let line = said.lines().find(|it| it.contains(path) && it.contains(next[0]));
        let line = line.unwrap_or_else(|| panic!("{path} {next:?} in:\n{said}"));
        assert!(next.iter().all(|it| line.contains(it)), "{line}");
    }
}

const BOTH: [&str; 2] = ["memoird doctor --repair", "memoird compact --accept-missing"];

#[test]
fn a_week_that_a_disk_emptied_is_made_again_before_its_month() {
    let base = folded("mara");
    for (path, text) in [(WEEK, String::new()), (WEEK, "\0".repeat(4096)), (MONTH, "\n \n".into())]
    {
        let root = folded("mara");
        without_database(&root);
        root.write(path, &text);
        // A late line makes the month due as well.
        root.append("memory/2026-03-18.md", "\n- 4711 packets were lost\n");
        let said = root.run(&["status"]).stdout;
        assert!(said.contains(path) && said.contains("it is empty"), "{said}");
        root.run(&["compact"]).ok();
        assert_eq!(root.read(WEEK), base.read(WEEK), "{path} {text:?}");
        let month = root.read(MONTH);
        assert!(month.matches("2026-03-1").count() > 3, "{path} {text:?}\n{month}");
        root.run(&["doctor"]).ok();
    }
}

#[test]
fn a_month_waits_where_a_week_cannot_be_made_again() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let month = root.read(MONTH);
    std::fs::remove_file(root.path("memory/2026-03-03.md")).unwrap();
    without_database(&root);
    root.write("memory/weekly/2026-W10.md", "");
    root.append("memory/2026-03-10.md", "- 4711 packets were lost\n");
    root.run(&["compact"]);
    assert_eq!(root.read(MONTH), month);
    let status = root.run(&["status"]);
    assert_eq!(status.code, 1, "{status}");
    let told = |it: &str| {
        it.contains("2026-W10.md") && it.contains("doctor --repair") && it.contains("2026-03")
    };
    assert!(status.stdout.lines().any(told), "{status}");
    root.run(&["compact", "--force", "--period", "2026-03"]);
    assert_eq!(root.read(MONTH), month);
    root.run(&["doctor", "--repair", "--yes"]);
    root.run(&["compact"]).ok();
    let after = root.read(MONTH);
    assert!(after.contains("Importer v2 shipped") && after.contains("4711"), "{after}");
}

#[test]
fn a_week_that_holds_nul_bytes_is_not_folded_as_it_stands() {
    let root = folded("mara");
    without_database(&root);
    let text = root.read(WEEK);
    let torn = format!("{}{}", &text[..text.len() - 200], "\0".repeat(200));
    root.write(WEEK, &torn);
    let month = root.read(MONTH);
    root.append("memory/2026-03-18.md", "\n- 4711 packets were lost\n");
    root.run(&["compact"]);
    assert_eq!((root.read(WEEK), root.read(MONTH)), (torn, month));
    assert_told(&root, WEEK, &["NUL", "memoird doctor --repair"]);
    root.run(&["doctor", "--repair", "--yes"]);
    root.run(&["compact"]).ok();
    assert_eq!(root.read(WEEK), text);
}

#[test]
fn a_file_that_lost_its_end_is_held_until_a_person_has_said_what_it_is() {
    for (path, next) in [(WEEK, MONTH), (MONTH, "WISDOM.md")] {
        for accept in [false, true] {
            let root = folded("mara");
            let before = root.files();
            let text = cut(&root, path, 4);
            root.append("memory/2026-03-18.md", "\n- 4711 packets were lost\n");
            let left = root.read(path);
            let held = root.run(&["compact"]);
            assert!(
                held.stderr.contains(path) && held.stderr.contains("--accept-missing"),
                "{held}"
            );
            assert_eq!((root.read(path), root.read(next)), (left.clone(), before[next].clone()));
            assert!(!root.path(DECISIONS).exists(), "nobody deleted anything");
            assert_told(&root, path, &BOTH);
            if accept {
                root.run(&["compact", "--accept-missing"]).ok();
                assert!(root.path(DECISIONS).exists());
                assert!(path == MONTH || root.read(path) == left);
                let lost = text.lines().rfind(|it| is_bullet(it)).unwrap();
                assert!(!root.read(path).contains(lost));
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
fn nothing_is_put_right_forgotten_or_taken_back_while_a_file_is_held() {
    let root = folded("mara");
    let before = root.files();
    let line = 1 + before[WEEK].lines().position(is_bullet).unwrap();
    let bullet = format!("{WEEK}:{line}");
    let correct = ["correct", &bullet, "Nobody but Ottilie knows the gate"];
    let forget = ["forget", "memory/2026-03-11.md:3", "--from-log", "--yes"];
    let verbs: [&[&str]; 3] = [&correct, &forget, &["undo", "--yes"]];
    for lost in ["end", "marks"] {
        match lost {
            "end" => drop(cut(&root, WEEK, 4)),
            _ => root.write(WEEK, before[WEEK].rsplit_once("\n---\n").unwrap().1),
        }
        let left = root.files();
        for verb in verbs {
            for dry_run in [&[][..], &["--dry-run"]] {
                let args = [verb, dry_run].concat();
                let ran = root.run(&args);
                assert_eq!(ran.code, 65, "{lost}: {ran}");
                for word in [WEEK, "nothing was done"].iter().chain(&BOTH) {
                    assert!(ran.stderr.contains(*word), "{lost}: {ran}");
                }
                assert_eq!(root.files(), left, "{lost}: {ran}");
            }
        }
        root.run(&["doctor", "--repair", "--yes"]);
        assert_eq!(root.files(), before, "{lost}");
    }
    root.run(&correct).ok();
    root.run(&forget).ok();
    assert!(!root.read(WEEK).contains(before[WEEK].lines().nth(line - 1).unwrap()));
}

#[test]
fn a_file_that_a_disk_cut_off_is_put_back_before_it_is_put_right() {
    let root = folded("mara");
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
fn a_wisdom_that_lost_its_end_is_held() {
    let root = folded("mara");
    let text = root.read("WISDOM.md");
    let last = text.match_indices("\n**").last().unwrap().0 + 1;
    for (what, left) in [("cut", &text[..last]), ("overwritten", "half")] {
        root.write("WISDOM.md", left);
        root.run(&["compact"]);
        assert_eq!(root.read("WISDOM.md"), left, "{what}");
        assert!(!root.path(DECISIONS).exists(), "{what}");
        assert_told(&root, "WISDOM.md", &BOTH);
        root.run(&["doctor", "--repair", "--yes"]);
        assert_eq!(root.read("WISDOM.md"), text, "{what}");
        root.run(&["doctor"]).ok();
    }
}

#[test]
fn nobody_is_asked_for_a_few_bullets() {
    for bullets in [1, 2] {
        let root = folded("mara");
        let text = cut(&root, WEEK, bullets);
        let lost = text.lines().rfind(|it| is_bullet(it)).unwrap();
        root.run(&["compact"]).ok();
        assert!(root.path(DECISIONS).exists());
        assert!(!root.read(WEEK).contains(lost));
        root.run(&["doctor"]).ok();
    }
}

#[test]
fn a_file_of_ours_that_was_written_over_is_told_and_brought_back() {
    for what in ["repair", "accept", "force"] {
        let root = folded("mara");
        let before = root.files();
        root.write(WEEK, "half");
        root.run(&["compact"]);
        assert_eq!(root.read(WEEK), "half");
        assert_eq!(root.read(MONTH), before[MONTH]);
        assert!(!root.path(DECISIONS).exists(), "nobody deleted anything");
        assert_told(&root, WEEK, &BOTH);
        match what {
            "repair" => {
                let said = root.run(&["doctor", "--repair", "--yes"]).to_string();
                let kept =
                    said.split_whitespace().find(|it| it.starts_with(".memoird/quarantine/"));
                let kept =
                    kept.unwrap_or_else(|| panic!("{said}")).trim_end_matches([',', ';', '.']);
                assert_eq!(root.read(kept), "half");
                assert_eq!(root.files(), before);
            }
            "accept" => {
                root.run(&["compact", "--accept-missing"]).ok();
                assert_eq!(root.read(WEEK), "half");
                assert_ne!(root.read(MONTH), before[MONTH]);
                assert!(!root.path(DECISIONS).exists(), "a file of one's own deletes nothing");
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
fn a_key_with_a_bit_turned_is_put_back_and_not_kept_as_a_decision() {
    let root = folded("mara");
    let week = "memory/weekly/2026-W11.md";
    let text = root.read(week);
    let bullet = text.lines().find(|it| is_bullet(it)).unwrap();
    root.write(week, &text.replacen(&format!("{bullet}\n"), "", 1));
    root.run(&["compact"]).ok();
    let sound = root.read(DECISIONS);
    let digit = sound.find(':').unwrap() + 5;
    let turned = if &sound[digit..=digit] == "0" { "1" } else { "0" };
    let mut damaged = sound.clone();
    damaged.replace_range(digit..=digit, turned);
    root.write(DECISIONS, &damaged);
    assert_eq!(root.run(&["doctor"]).code, 1);
    root.run(&["doctor", "--repair", "--yes"]).ok();
    assert_eq!(root.read(DECISIONS), sound);
    root.run(&["doctor"]).ok();
}

/// However it came to be recorded, what is harmed does not stay where the history knows better.
#[test]
fn what_is_recorded_as_harmed_is_put_back_from_the_history() {
    for path in [WEEK, "WISDOM.md"] {
        let root = folded("mara");
        let sound = root.read(path);
        let harmed = format!("{}\0\0\0", &sound[..sound.len() - 3]);
        root.write(path, &harmed);
        let database = rusqlite::Connection::open(root.path(".memoird/lineage.db")).unwrap();
        let hash = hash::hex(hash::ContentHash::of(&harmed).as_bytes());
        let set = "UPDATE entity SET hash = ?1 \
            WHERE id = (SELECT entity FROM document WHERE path = ?2)";
        assert_eq!(database.execute(set, (hash, path)).unwrap(), 1);
        drop(database);
        assert_eq!(root.run(&["doctor"]).code, 1);
        let said = root.run(&["compact"]).ok();
        assert!(said.stderr.contains("was put back"), "{said}");
        assert_eq!(root.read(path), sound);
    }
}

const MEMORY: &str = "memory/user_henk-prefers-dates-report-2026-03.md";

/// Appends a line to the log that the memory was made of.
fn touch_source(root: &Root) {
    let text = root.read(MEMORY);
    let at = text.find("[2026-").or_else(|| text.find("2026-")).unwrap();
    let day = text[at..].trim_start_matches('[');
    root.append(&format!("memory/{}.md", &day[..10]), "\n- One line more, and nothing else\n");
}

type Deed<'a> = (&'a str, &'a dyn Fn(&Root));
type Harm<'a> = (&'a str, &'a dyn Fn(&str) -> Option<String>);

/// What a pass only notices is as safe as what it makes.
#[test]
fn decisions_are_kept_beside_the_database_as_soon_as_they_are_written() {
    let bullet = |root: &Root| 1 + root.read(WEEK).lines().position(is_bullet).unwrap();
    let delete = |root: &Root| std::fs::remove_file(root.path(MEMORY)).unwrap();
    let deeds: [Deed<'_>; 4] = [
        ("a pass that only notices", &|root| {
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
    for (what, deed) in deeds {
        let root = folded("mara");
        deed(&root);
        let copy = std::fs::read_to_string(root.path(".memoird/decisions.copy"));
        assert_eq!(copy.unwrap_or_default(), root.read(DECISIONS), "{what}");
        root.run(&["doctor"]).ok();
        std::fs::remove_file(root.path(DECISIONS)).unwrap();
        assert_eq!(root.run(&["doctor"]).code, 1, "{what}");
        assert_eq!(root.run(&["compact"]).code, 65, "{what}");
    }
}

/// A pass that does not know all that was decided brings back what somebody deleted.
#[test]
fn nothing_is_done_while_a_decision_is_lost() {
    let harms: [Harm<'_>; 4] = [
        ("gone", &|_| None),
        ("cut", &|text| Some(text[..text.len() - 40].to_owned())),
        ("turned", &|text| {
            let digit = text.find(':').unwrap() + 5;
            let turned = if &text[digit..=digit] == "0" { "1" } else { "0" };
            Some(format!("{}{turned}{}", &text[..digit], &text[digit + 1..]))
        }),
        ("shorter", &|text| text.lines().next().map(|it| format!("{it}\n"))),
    ];
    for (what, harm) in harms {
        for accept in [false, true] {
            let root = folded("mara");
            touch_source(&root);
            root.run(&["compact"]).ok();
            std::fs::remove_file(root.path(MEMORY)).unwrap();
            root.run(&["compact"]).ok();
            let sound = root.read(DECISIONS);
            match harm(&sound) {
                Some(text) => root.write(DECISIONS, &text),
                None => std::fs::remove_file(root.path(DECISIONS)).unwrap(),
            }
            let day =
                root.files().into_keys().rfind(|it| it.starts_with("memory/2026-03")).unwrap();
            root.append(&day, "\n- One line more, and nothing else\n");
            let status = root.run(&["status"]);
            for word in [".decisions.jsonl", "nothing is written", "doctor --repair"] {
                assert!(status.stdout.contains(word), "{what}: {status}");
            }
            let left = root.files();
            let correct = ["correct", &format!("{WEEK}:{}", 20), "Nobody knows the gate"];
            for args in [&["compact"][..], &correct] {
                let refused = root.run(args);
                assert_eq!(refused.code, 65, "{what}: {refused}");
                for word in [".decisions.jsonl", "nothing was done"].iter().chain(&BOTH) {
                    assert!(refused.stderr.contains(*word), "{what}: {refused}");
                }
                assert_eq!(root.files(), left, "{what}");
            }
            if accept {
                root.run(&["compact", "--accept-missing"]).ok();
            } else {
                root.run(&["doctor", "--repair", "--yes"]);
                assert_eq!(root.read(DECISIONS), sound, "{what}");
                root.run(&["compact"]).ok();
                assert!(!root.path(MEMORY).exists(), "{what}");
            }
            root.run(&["doctor"]).ok();
            let after = root.files();
            root.run(&["compact"]).ok();
            assert_eq!(root.files(), after, "{what}");
        }
    }
}

/// Nothing rests yet on a line that a crash cut off, and nothing that was known is missing.
#[test]
fn a_decision_that_was_being_written_when_a_crash_came_holds_nothing_up() {
    let root = folded("mara");
    std::fs::remove_file(root.path(MEMORY)).unwrap();
    root.run(&["compact"]).ok();
    root.append(DECISIONS, "{\"at\":\"2026-04-13T07:00:00Z\",\"what\":\"dele");
    root.run(&["compact"]).ok();
    assert_eq!(root.run(&["doctor"]).code, 1, "it is told");
    root.run(&["doctor", "--repair", "--yes"]).ok();
    assert!(!root.path(MEMORY).exists());
}

#[test]
fn a_file_that_is_held_is_told_to_programs_too() {
    let root = folded("mara");
    cut(&root, WEEK, 4);
    let ran = root.run(&["compact", "--json"]);
    assert_eq!(ran.code, 1, "{ran}");
    let report = ran.json_as("compact");
    assert_eq!(report["held"][0]["path"], WEEK);
    assert!(report["held"][0]["reason"].as_str().unwrap().contains(BOTH[1]), "{report}");
    root.run(&["doctor", "--repair", "--yes"]).ok();
    let report = root.run(&["compact", "--json"]).ok().json_as("compact");
    assert_eq!(report["held"], serde_json::json!([]));
}
