//! Lines that a person wrote in a weekly or monthly summary are sources themselves: citations of them
//! in higher tiers follow when the lines move, and are reported as gone when the lines are deleted.

use crate::support::Root;

const WEEK: &str = "memory/weekly/2026-W14.md";
const MONTH: &str = "memory/monthly/2026-04.md";
const LOG: &str = "memory/2026-04-02.md";
const ZORRO: &str = "The courier Zorro bought a blue bicycle";
const BERTA: &str = "My aunt Berta owns seven hens";

/// Returns a folder with a week of two logs and these lines added to its file by a person, compacted
/// up to its month.
fn compacted_with_edit(lines: &[&str]) -> Root {
    let mut root = Root::empty("above");
    root.set_now("2026-05-04T09:00:00+02:00");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write("memory/2026-03-31.md", "- Backfill of 2019 begun, 38 GB\n");
    root.write(LOG, "- Importer v2 shipped, 3.2 s per GB\n- Sensors in Nairobi report 951 rows\n");
    root.write("memory/2026-04-14.md", "- Disk at 34%\n");
    root.run(&["compact"]).ok();
    // Placed last, so that deleting an earlier bullet moves them.
    let last = bullets(&root, WEEK).pop().unwrap();
    let added_lines: String = lines.iter().flat_map(|it| ["- ", *it, "\n"]).collect();
    replace(&root, WEEK, &format!("{last}\n"), &format!("{last}\n{added_lines}"));
    root.run(&["compact"]).ok();
    root
}

fn bullets(root: &Root, path: &str) -> Vec<String> {
    root.read(path).lines().filter(|it| it.starts_with("- ")).map(str::to_owned).collect()
}

#[track_caller]
fn replace(root: &Root, path: &str, old: &str, new: &str) {
    let text = root.read(path);
    assert!(text.contains(old), "{old} in {text}");
    root.write(path, &text.replacen(old, new, 1));
}

/// Deletes the line that contains these words.
#[track_caller]
fn delete_line(root: &Root, path: &str, words: &str) {
    let text = root.read(path);
    let line = text.lines().find(|it| it.contains(words)).unwrap().to_owned();
    replace(root, path, &format!("{line}\n"), "");
}

#[track_caller]
fn line_of(root: &Root, path: &str, words: &str) -> usize {
    let text = root.read(path);
    let at = text.lines().position(|it| it.starts_with("- ") && it.contains(words));
    at.unwrap_or_else(|| panic!("no {words} in {text}")) + 1
}

/// Checks that the bullet of the month with these words leads to the bullet of the week with them, by
/// its citation and by `trace`.
#[track_caller]
fn assert_leads_to_the_week(root: &Root, words: &str) {
    let line = line_of(root, MONTH, words);
    let at = line_of(root, WEEK, words);
    let text = root.read(MONTH);
    let bullet = text.lines().nth(line - 1).unwrap();
    assert!(bullet.contains(&format!("2026-W14:{at}]")), "{words} is on line {at}: {bullet}");
    let traced = root.run(&["trace", &format!("{MONTH}:{line}"), "--json"]).ok().json_as("trace");
    let source = traced["sources"].as_array().unwrap().iter();
    let mut texts = source.map(|it| it["text"].as_str().unwrap());
    assert!(texts.any(|it| it.contains(words)), "{traced}");
    root.run(&["doctor"]).ok();
}

#[track_caller]
fn assert_healthy_and_up_to_date(root: &Root) {
    let before = root.files();
    root.run(&["compact"]).ok();
    assert_eq!(root.files(), before);
    root.run(&["doctor"]).ok();
}

#[test]
fn citations_follow_when_the_frontmatter_of_a_week_grows() {
    let root = compacted_with_edit(&[ZORRO]);
    assert_leads_to_the_week(&root, ZORRO);
    let before = line_of(&root, WEEK, ZORRO);
    root.write("memory/2026-04-03.md", "ok\n");
    root.run(&["compact"]).ok();
    assert_ne!(line_of(&root, WEEK, ZORRO), before);
    assert_leads_to_the_week(&root, ZORRO);
    assert_healthy_and_up_to_date(&root);
}

/// Wherever the crash happens, no citation is moved twice.
#[test]
fn citations_are_moved_once_when_interrupted_by_a_crash() {
    for nth in 1.. {
        assert!(nth < 20, "the run passes more files than expected");
        let root = compacted_with_edit(&[ZORRO]);
        let edit = "and I painted it green";
        replace(&root, MONTH, ZORRO, &format!("{ZORRO} {edit}"));
        replace(&root, WEEK, ZORRO, &format!("{ZORRO} [{}]", "2026-04-02:1"));
        root.run(&["compact"]).ok();
        let log = root.read(LOG);
        root.write(LOG, &format!("\n\n\n{log}"));
        replace(&root, WEEK, "pointers:\n", "mykey: hello\npointers:\n");
        let mut command = root.command(&["compact"]);
        command.env("MEMOIRD_FAIL", format!("kill@commit.placed#{nth}"));
        let killed = command.output().unwrap();
        root.run(&["compact"]).ok();
        let line = root.read(WEEK).lines().find(|it| it.contains(ZORRO)).unwrap().to_owned();
        assert!(line.ends_with("[2026-04-02:4]"), "{nth}: {line}");
        let line = line_of(&root, MONTH, edit);
        let at = line_of(&root, WEEK, ZORRO);
        let bullet = root.read(MONTH).lines().nth(line - 1).unwrap().to_owned();
        assert!(bullet.contains(&format!("2026-W14:{at}")), "{nth}: {at}: {bullet}");
        assert_healthy_and_up_to_date(&root);
        if killed.status.success() {
            break;
        }
    }
}

#[test]
fn citations_follow_when_a_person_adds_a_frontmatter_key() {
    let root = compacted_with_edit(&[ZORRO]);
    replace(&root, WEEK, "pointers:\n", "mykey: hello\npointers:\n");
    root.run(&["compact"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn a_wisdom_entry_follows_its_line_in_the_month() {
    let root = compacted_with_edit(&[]);
    let rule = "The upload limit must always stay under 40 MB per file";
    let first = bullets(&root, MONTH).remove(0);
    replace(&root, MONTH, &first, &format!("{first}\n- {rule}"));
    root.run(&["compact"]).ok();
    let assert_cited = || {
        let source = format!("\"sources\": \"2026-04:{}\"", line_of(&root, MONTH, rule));
        let record = root.read_record("WISDOM.md");
        assert!(record.contains(&source), "{source} {record}");
    };
    assert_cited();
    replace(&root, MONTH, "pointers:\n", "mykey: hello\npointers:\n");
    root.run(&["compact"]).ok();
    assert_cited();
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn a_forgotten_line_of_a_week_is_removed_from_the_month_and_its_history() {
    let root = compacted_with_edit(&[ZORRO]);
    root.write("memory/2026-04-03.md", "ok\n");
    root.run(&["compact"]).ok();
    let at = format!("{WEEK}:{}", line_of(&root, WEEK, ZORRO));
    root.run(&["forget", &at, "--yes"]).ok();
    assert!(!root.read(MONTH).contains("Zorro"), "{}", root.read(MONTH));
    let versions = root.run(&["history", MONTH, "--json"]).ok().json();
    assert!(!versions.to_string().contains("Zorro"));
    for version in 1..200 {
        let ran = root.run(&["show", "--version", &version.to_string()]);
        assert!(!ran.stdout.contains("Zorro"), "{version}");
        if ran.code != 0 && ran.stderr.contains("no version") {
            break;
        }
    }
}

#[test]
fn an_edited_bullet_of_the_month_follows_the_week() {
    let root = compacted_with_edit(&[ZORRO]);
    replace(&root, MONTH, ZORRO, &format!("{ZORRO} yesterday"));
    root.run(&["compact"]).ok();
    delete_line(&root, WEEK, "Backfill");
    root.run(&["compact"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
    // Forgetting the line that is now at its old place does not affect it.
    let at = format!("2026-04-02:{}", line_of(&root, LOG, "Sensors"));
    root.run(&["forget", &at, "--yes"]).ok();
    assert!(root.read(MONTH).contains(&format!("{ZORRO} yesterday")));
    let at = format!("{WEEK}:{}", line_of(&root, WEEK, ZORRO));
    root.run(&["forget", &at, "--yes"]).ok();
    assert!(!root.read(MONTH).contains("Zorro"), "{}", root.read(MONTH));
}

#[test]
fn a_line_moved_to_the_place_of_another_is_not_confused_with_it() {
    let root = compacted_with_edit(&[ZORRO, BERTA]);
    replace(&root, MONTH, ZORRO, &format!("{ZORRO} yesterday"));
    root.run(&["compact"]).ok();
    delete_line(&root, WEEK, "Backfill");
    root.run(&["compact"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
    assert_leads_to_the_week(&root, BERTA);
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn files_restored_by_undo_cite_the_current_lines() {
    let root = compacted_with_edit(&[ZORRO]);
    delete_line(&root, WEEK, "Backfill");
    root.run(&["compact"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
    root.run(&["undo", "--yes"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
    root.run(&["undo", "--yes"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn a_month_not_changed_by_undo_follows_the_restored_week() {
    let root = compacted_with_edit(&[ZORRO]);
    root.write("memory/2026-04-03.md", "- The gauge at Mombasa fell to 12 mm\n");
    root.run(&["compact"]).ok();
    replace(&root, MONTH, ZORRO, &format!("{ZORRO} yesterday"));
    root.run(&["compact"]).ok();
    root.run(&["undo", "--yes"]);
    root.run(&["undo", "--yes", "--with-later"]);
    assert_leads_to_the_week(&root, ZORRO);
}

#[test]
fn a_deleted_line_of_a_person_is_reported_as_gone() {
    let root = compacted_with_edit(&[ZORRO, BERTA]);
    replace(&root, MONTH, ZORRO, &format!("{ZORRO} yesterday"));
    root.run(&["compact"]).ok();
    delete_line(&root, WEEK, ZORRO);
    root.run(&["compact"]).ok();
    let line = line_of(&root, MONTH, ZORRO);
    let traced = root.run(&["trace", &format!("{MONTH}:{line}")]).ok();
    assert!(traced.stdout.contains("source gone") && !traced.stdout.contains("Berta"), "{traced}");
    assert_leads_to_the_week(&root, BERTA);
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn a_bullet_restored_by_undo_cites_no_other_line() {
    let root = compacted_with_edit(&[]);
    let deleted_words = "Importer v2 shipped";
    delete_line(&root, LOG, deleted_words);
    root.run(&["compact"]).ok();
    assert!(!root.read(MONTH).contains(deleted_words));
    root.run(&["undo", "--yes"]).ok();
    for path in [WEEK, MONTH] {
        let at = format!("{path}:{}", line_of(&root, path, deleted_words));
        let traced = root.run(&["trace", &at]).ok();
        assert!(traced.stdout.contains("source gone"), "{traced}");
        assert!(!traced.stdout.contains("Sensors"), "{traced}");
    }
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn a_rebuild_finds_the_cited_lines() {
    let root = compacted_with_edit(&[ZORRO]);
    root.run(&["rebuild"]).ok();
    replace(&root, WEEK, "pointers:\n", "mykey: hello\npointers:\n");
    root.run(&["compact"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
}

/// The citations of a week are updated and its month is written in the same run.
#[test]
fn a_month_is_written_in_the_run_that_moves_the_lines_of_its_week() {
    let root = compacted_with_edit(&[ZORRO]);
    let log = root.read(LOG);
    root.write(LOG, &format!("\n{log}"));
    replace(&root, "memory/weekly/2026-W16.md", "Disk at 34%", "Disk at 34% in Mombasa");
    let ran = root.run(&["compact", "--json"]).ok().json();
    let failed = ran["jobs"].as_array().unwrap().iter().filter(|it| it["outcome"] == "failed");
    assert_eq!(failed.count(), 0, "{ran}");
    assert!(root.read(MONTH).contains("Mombasa"), "{}", root.read(MONTH));
    assert_leads_to_the_week(&root, ZORRO);
    assert_healthy_and_up_to_date(&root);
}

/// A month of which no bullet has a source line any more is written all the same.
#[test]
fn forgetting_beside_a_bullet_without_its_line_writes_the_month() {
    let mut root = Root::empty("gone");
    root.set_now("2026-05-04T09:00:00+02:00");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write(LOG, "- Importer v2 shipped, 3.2 s per GB\n- Sensors in Nairobi report 951 rows\n");
    root.run(&["compact"]).ok();
    delete_line(&root, LOG, "Importer");
    root.run(&["compact"]).ok();
    root.run(&["undo", "--yes"]).ok();
    root.run(&["forget", &format!("{LOG}:1"), "--yes"]).ok();
    for path in [WEEK, MONTH] {
        assert!(!root.read(path).contains("Nairobi"), "{}", root.read(path));
        let at = format!("{path}:{}", line_of(&root, path, "Importer"));
        let traced = root.run(&["trace", &at]).ok();
        assert!(traced.stdout.contains("source gone"), "{traced}");
    }
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn citations_follow_when_a_person_removes_the_frontmatter_and_it_comes_back() {
    let root = compacted_with_edit(&[ZORRO]);
    let text = root.read(WEEK);
    let front = text[..text.find("\n\n").unwrap() + 2].to_owned();
    replace(&root, WEEK, &front, "");
    root.run(&["compact"]).ok();
    assert!(!root.read(WEEK).contains("period:"), "nothing was due");
    assert_leads_to_the_week(&root, ZORRO);
    // Only citations of the week change.
    let log = root.read(LOG);
    root.write(LOG, &format!("\n\n{log}"));
    root.run(&["compact"]).ok();
    assert!(root.read(WEEK).starts_with("---\ntype: weekly\nperiod: 2026-W14\n"));
    assert_leads_to_the_week(&root, ZORRO);
    assert_healthy_and_up_to_date(&root);
}
