//! Words that a person wrote in a week or a month are a source themselves: what is cited of them
//! above stays right when their lines move, and is told as gone when they are.

use crate::support::Root;

const WEEK: &str = "memory/weekly/2026-W14.md";
const MONTH: &str = "memory/monthly/2026-04.md";
const LOG: &str = "memory/2026-04-02.md";
const ZORRO: &str = "The courier Zorro bought a blue bicycle";
const BERTA: &str = "My aunt Berta owns seven hens";

/// A week with a log on each of two days and what a person wrote in its file, folded into its month.
fn folded(lines: &[&str]) -> Root {
    let mut root = Root::empty("above");
    root.set_now("2026-05-04T09:00:00+02:00");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write("memory/2026-03-31.md", "- Backfill of 2019 begun, 38 GB\n");
    root.write(LOG, "- Importer v2 shipped, 3.2 s per GB\n- Sensors in Nairobi report 951 rows\n");
    root.write("memory/2026-04-14.md", "- Disk at 34%\n");
    root.run(&["compact"]).ok();
    // After ours, so that what is deleted before them moves them.
    let last = bullets(&root, WEEK).pop().unwrap();
    let theirs: String = lines.iter().flat_map(|it| ["- ", *it, "\n"]).collect();
    replace(&root, WEEK, &format!("{last}\n"), &format!("{last}\n{theirs}"));
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

/// Takes the line out that holds these words.
#[track_caller]
fn cut(root: &Root, path: &str, words: &str) {
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

/// Checks that the bullet of the month leads to the bullet of the week in which the words stand, by
/// its citation and by `trace`.
#[track_caller]
fn assert_leads_to_the_week(root: &Root, words: &str) {
    let line = line_of(root, MONTH, words);
    let at = line_of(root, WEEK, words);
    let text = root.read(MONTH);
    let bullet = text.lines().nth(line - 1).unwrap();
    assert!(bullet.contains(&format!("2026-W14:{at}]")), "{words} stands on {at}: {bullet}");
    let traced = root.run(&["trace", &format!("{MONTH}:{line}"), "--json"]).ok().json_as("trace");
    let source = traced["sources"].as_array().unwrap().iter();
    let mut texts = source.map(|it| it["text"].as_str().unwrap());
    assert!(texts.any(|it| it.contains(words)), "{traced}");
    root.run(&["doctor"]).ok();
}

#[track_caller]
fn assert_at_rest(root: &Root) {
    let before = root.files();
    root.run(&["compact"]).ok();
    assert_eq!(root.files(), before);
    root.run(&["doctor"]).ok();
}

#[test]
fn a_week_whose_head_grows_takes_its_citations_along() {
    let root = folded(&[ZORRO]);
    assert_leads_to_the_week(&root, ZORRO);
    let before = line_of(&root, WEEK, ZORRO);
    root.write("memory/2026-04-03.md", "ok\n");
    root.run(&["compact"]).ok();
    assert_ne!(line_of(&root, WEEK, ZORRO), before);
    assert_leads_to_the_week(&root, ZORRO);
    assert_at_rest(&root);
}

/// However far it came before, no citation is moved twice.
#[test]
fn citations_follow_once_wherever_a_crash_stops_that() {
    for nth in 1.. {
        assert!(nth < 20, "it is killed at each of its files");
        let root = folded(&[ZORRO]);
        let mine = "and I painted it green";
        replace(&root, MONTH, ZORRO, &format!("{ZORRO} {mine}"));
        replace(&root, WEEK, ZORRO, &format!("{ZORRO} [{}]", "2026-04-02:1"));
        root.run(&["compact"]).ok();
        let log = root.read(LOG);
        root.write(LOG, &format!("\n\n\n{log}"));
        replace(&root, WEEK, "memoird:\n", "mykey: hello\nmemoird:\n");
        let mut command = root.command(&["compact"]);
        command.env("MEMOIRD_FAIL", format!("kill@commit.placed#{nth}"));
        let killed = command.output().unwrap();
        root.run(&["compact"]).ok();
        let line = root.read(WEEK).lines().find(|it| it.contains(ZORRO)).unwrap().to_owned();
        assert!(line.ends_with("[2026-04-02:4]"), "{nth}: {line}");
        let line = line_of(&root, MONTH, mine);
        let at = line_of(&root, WEEK, ZORRO);
        let bullet = root.read(MONTH).lines().nth(line - 1).unwrap().to_owned();
        assert!(bullet.contains(&format!("2026-W14:{at}")), "{nth}: {at}: {bullet}");
        assert_at_rest(&root);
        if killed.status.success() {
            break;
        }
    }
}

#[test]
fn a_key_of_a_person_takes_citations_along() {
    let root = folded(&[ZORRO]);
    replace(&root, WEEK, "memoird:\n", "mykey: hello\nmemoird:\n");
    root.run(&["compact"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
    assert_at_rest(&root);
}

#[test]
fn an_entry_follows_the_month_that_it_rests_on() {
    let root = folded(&[]);
    let rule = "The upload limit must always stay under 40 MB per file";
    let first = bullets(&root, MONTH).remove(0);
    replace(&root, MONTH, &first, &format!("{first}\n- {rule}"));
    root.run(&["compact"]).ok();
    let assert_cited = || {
        let source = format!("sources=2026-04:{};", line_of(&root, MONTH, rule));
        assert!(root.read("WISDOM.md").contains(&source), "{source} {}", root.read("WISDOM.md"));
    };
    assert_cited();
    replace(&root, MONTH, "memoird:\n", "mykey: hello\nmemoird:\n");
    root.run(&["compact"]).ok();
    assert_cited();
    assert_at_rest(&root);
}

#[test]
fn what_is_forgotten_of_a_week_leaves_the_month_and_its_history() {
    let root = folded(&[ZORRO]);
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
fn a_bullet_that_a_person_changed_above_follows() {
    let root = folded(&[ZORRO]);
    replace(&root, MONTH, ZORRO, &format!("{ZORRO} yesterday"));
    root.run(&["compact"]).ok();
    cut(&root, WEEK, "Backfill");
    root.run(&["compact"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
    // What stands now where it stood is not meant by it.
    let at = format!("2026-04-02:{}", line_of(&root, LOG, "Sensors"));
    root.run(&["forget", &at, "--yes"]).ok();
    assert!(root.read(MONTH).contains(&format!("{ZORRO} yesterday")));
    let at = format!("{WEEK}:{}", line_of(&root, WEEK, ZORRO));
    root.run(&["forget", &at, "--yes"]).ok();
    assert!(!root.read(MONTH).contains("Zorro"), "{}", root.read(MONTH));
}

#[test]
fn a_line_that_moves_to_the_place_of_another_is_not_taken_for_it() {
    let root = folded(&[ZORRO, BERTA]);
    replace(&root, MONTH, ZORRO, &format!("{ZORRO} yesterday"));
    root.run(&["compact"]).ok();
    cut(&root, WEEK, "Backfill");
    root.run(&["compact"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
    assert_leads_to_the_week(&root, BERTA);
    assert_at_rest(&root);
}

#[test]
fn what_undo_restores_cites_lines_where_they_stand() {
    let root = folded(&[ZORRO]);
    cut(&root, WEEK, "Backfill");
    root.run(&["compact"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
    root.run(&["undo", "--yes"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
    root.run(&["undo", "--yes"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
    assert_at_rest(&root);
}

#[test]
fn a_month_that_undo_does_not_touch_follows_the_week_that_it_restores() {
    let root = folded(&[ZORRO]);
    root.write("memory/2026-04-03.md", "- The gauge at Mombasa fell to 12 mm\n");
    root.run(&["compact"]).ok();
    replace(&root, MONTH, ZORRO, &format!("{ZORRO} yesterday"));
    root.run(&["compact"]).ok();
    root.run(&["undo", "--yes"]);
    root.run(&["undo", "--yes", "--with-later"]);
    assert_leads_to_the_week(&root, ZORRO);
}

#[test]
fn a_persons_line_that_is_gone_is_told_as_gone() {
    let root = folded(&[ZORRO, BERTA]);
    replace(&root, MONTH, ZORRO, &format!("{ZORRO} yesterday"));
    root.run(&["compact"]).ok();
    cut(&root, WEEK, ZORRO);
    root.run(&["compact"]).ok();
    let line = line_of(&root, MONTH, ZORRO);
    let traced = root.run(&["trace", &format!("{MONTH}:{line}")]).ok();
    assert!(traced.stdout.contains("source gone") && !traced.stdout.contains("Berta"), "{traced}");
    assert_leads_to_the_week(&root, BERTA);
    assert_at_rest(&root);
}

#[test]
fn a_bullet_that_undo_brings_back_names_no_other_line() {
    let root = folded(&[]);
    let gone = "Importer v2 shipped";
    cut(&root, LOG, gone);
    root.run(&["compact"]).ok();
    assert!(!root.read(MONTH).contains(gone));
    root.run(&["undo", "--yes"]).ok();
    for path in [WEEK, MONTH] {
        let at = format!("{path}:{}", line_of(&root, path, gone));
        let traced = root.run(&["trace", &at]).ok();
        let told = traced.stdout.contains("source gone") && !traced.stdout.contains("Sensors");
        assert!(told, "{traced}");
    }
    assert_at_rest(&root);
}

#[test]
fn a_rebuild_knows_which_lines_are_cited() {
    let root = folded(&[ZORRO]);
    root.run(&["rebuild"]).ok();
    replace(&root, WEEK, "memoird:\n", "mykey: hello\nmemoird:\n");
    root.run(&["compact"]).ok();
    assert_leads_to_the_week(&root, ZORRO);
}
