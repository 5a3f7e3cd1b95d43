//! `memoird correct`: replaces the words of an item with a person's, in its file and in higher tiers.

use crate::support::Root;

const RULE: &str = "- Uploads must always stay under 40 MB\n";
const WEEK: &str = "memory/weekly/2026-W11.md";
const MONTH: &str = "memory/monthly/2026-03.md";

/// Returns a folder whose logs repeat a rule on three days of March, so that it reaches every tier.
fn compacted_with_rule() -> Root {
    let root = Root::empty("ruled");
    root.write("memoird.yaml", "zone: Europe/Berlin\nagent_name: Ada\n");
    for day in ["03", "10", "17"] {
        let text = format!("# Day {day}\n\n{RULE}- The cellar was painted on day {day}\n");
        root.write(&format!("memory/2026-03-{day}.md"), &text);
    }
    root.run(&["compact"]).ok();
    assert!(root.read("WISDOM.md").contains("under 40 MB"), "{}", root.read("WISDOM.md"));
    root
}

/// Returns `PATH:LINE` of the first line that holds the words.
fn location_of(root: &Root, path: &str, words: &str) -> String {
    let text = root.read(path);
    let line = text.lines().position(|it| it.contains(words));
    format!("{path}:{}", line.unwrap_or_else(|| panic!("{words} in:\n{text}")) + 1)
}

#[test]
fn correcting_a_bullet_of_a_week_corrects_the_month() {
    let root = compacted_with_rule();
    let location = location_of(&root, WEEK, "painted on day 10");
    insta::assert_snapshot!(root.run(&["correct", &location, "The cellar was painted by Ottilie on day 10"]), @r"
    $ memoird correct memory/weekly/2026-W11.md:12 The cellar was painted by Ottilie on day 10
    memory/weekly/2026-W11.md:12
    - - The cellar was painted on day 10 [2026-03-10:4]
    + - The cellar was painted by Ottilie on day 10 [2026-03-10:4]
    ! corrected; the item is yours now, and memoird will not change it
    ! memory/monthly/2026-03.md was updated
    ! WISDOM.md did not change
    ");
    let line = location.rsplit_once(':').unwrap().1;
    assert!(
        root.read(WEEK).contains("- The cellar was painted by Ottilie on day 10 [2026-03-10:4]\n"),
        "{}",
        root.read(WEEK)
    );
    let month = root.read(MONTH);
    assert!(
        month.contains(&format!(
            "- The cellar was painted by Ottilie on day 10 [2026-03-10:4; 2026-W11:{line}]\n"
        )),
        "{month}"
    );
    assert!(!month.contains("was painted on day 10"), "{month}");
    let before = root.files();
    root.run(&["compact"]).ok();
    assert_eq!(root.files(), before);
    insta::assert_snapshot!(root.run(&["why", &location_of(&root, MONTH, "Ottilie")]), @r"
    $ memoird why memory/monthly/2026-03.md:16
    memory/monthly/2026-03.md:16  The cellar was painted by Ottilie on day 10  (2026-04-13, run 2, extractive/3)
    └─ memory/weekly/2026-W11.md:12  - The cellar was painted by Ottilie on day 10 [2026-03-10:4]
       └─ memory/2026-03-10.md:4  - The cellar was painted on day 10
    ");
    // The same correction again changes nothing.
    insta::assert_snapshot!(root.run(&["correct", &location, "The cellar was painted by Ottilie on day 10"]), @r"
    $ memoird correct memory/weekly/2026-W11.md:12 The cellar was painted by Ottilie on day 10
    ! memory/weekly/2026-W11.md:12 already says that; nothing was changed
    ");
    assert_eq!(root.files(), before);
}

#[test]
fn correcting_a_bullet_of_a_month_corrects_wisdom_permanently() {
    let root = compacted_with_rule();
    let location = location_of(&root, MONTH, "under 40 MB");
    root.run(&["correct", &location, "Uploads must always stay under 55 MB"]).ok();
    let wisdom = root.read("WISDOM.md");
    assert!(wisdom.contains("under 55 MB") && !wisdom.contains("under 40 MB"), "{wisdom}");
    let record = root.read_record("WISDOM.md");
    let source = format!("2026-03:{}", location.rsplit_once(':').unwrap().1);
    assert!(record.contains(&source), "{record}");
    insta::assert_snapshot!(root.run(&["why", &location_of(&root, "WISDOM.md", "- Uploads must")]), @r"
    $ memoird why WISDOM.md:11
    WISDOM.md:11  - Uploads must always stay under 55 MB  (2026-04-13, run 2, extractive/3)
    ├─ memory/monthly/2026-03.md:13  - Uploads must always stay under 55 MB [2026-03-03:1,3]
    │  └─ memory/weekly/2026-W10.md:11  Day 03: Uploads must always stay under 40 MB  (2026-04-13, run 1, extractive/3)
    │     ├─ memory/2026-03-03.md:1  # Day 03
    │     └─ memory/2026-03-03.md:3  - Uploads must always stay under 40 MB
    ├─ memory/weekly/2026-W11.md:11  Day 10: Uploads must always stay under 40 MB  (2026-04-13, run 1, extractive/3)
    │  └─ memory/2026-03-10.md:3  - Uploads must always stay under 40 MB
    ├─ memory/monthly/2026-03.md:15  Day 10: Uploads must always stay under 40 MB  (2026-04-13, run 1, extractive/3)
    │  └─ memory/2026-03-10.md:3  - Uploads must always stay under 40 MB
    ├─ memory/weekly/2026-W12.md:11  Day 17: Uploads must always stay under 40 MB  (2026-04-13, run 1, extractive/3)
    │  └─ memory/2026-03-17.md:3  - Uploads must always stay under 40 MB
    └─ memory/monthly/2026-03.md:17  Day 17: Uploads must always stay under 40 MB  (2026-04-13, run 1, extractive/3)
       └─ memory/2026-03-17.md:3  - Uploads must always stay under 40 MB
    ");
    // Later repetitions in logs do not bring the old words back.
    for day in ["04-01", "04-02"] {
        root.write(&format!("memory/2026-{day}.md"), RULE);
    }
    let mut root = root;
    root.set_now("2026-05-11T09:00:00+02:00");
    root.run(&["compact"]).ok();
    let wisdom = root.read("WISDOM.md");
    assert!(wisdom.contains("under 55 MB") && !wisdom.contains("under 40 MB"), "{wisdom}");
    let before = root.files();
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    root.run(&["compact"]).ok();
    assert_eq!(root.files(), before);
}

#[test]
fn correcting_a_bullet_of_a_week_corrects_up_to_wisdom() {
    let root = compacted_with_rule();
    let location = location_of(&root, WEEK, "under 40 MB");
    root.run(&["correct", &location, "Uploads must always stay under 55 MB"]).ok();
    assert!(root.read(MONTH).contains("under 55 MB"), "{}", root.read(MONTH));
    let wisdom = root.read("WISDOM.md");
    assert!(wisdom.contains("under 55 MB") && !wisdom.contains("under 40 MB"), "{wisdom}");
    // A late line moves the bullet; the entry follows it.
    root.write("memory/2026-03-09.md", "- Decided to move the press to the attic\n");
    root.run(&["compact"]).ok();
    let line = location_of(&root, WEEK, "under 55 MB").rsplit_once(':').unwrap().1.to_owned();
    assert_ne!(location.rsplit_once(':').unwrap().1, line);
    let record = root.read_record("WISDOM.md");
    assert!(record.contains(&format!("2026-W11:{line}")), "{record}");
    assert!(root.run(&["doctor"]).code == 0, "{}", root.run(&["doctor"]));
}

#[test]
fn a_corrected_wisdom_entry_belongs_to_the_person() {
    let root = compacted_with_rule();
    let location = location_of(&root, "WISDOM.md", "under 40 MB");
    insta::assert_snapshot!(root.run(&["correct", &location, "Ask Jo before an upload."]), @r"
    $ memoird correct WISDOM.md:11 Ask Jo before an upload.
    WISDOM.md:11
    - - Uploads must always stay under 40 MB
    + - Ask Jo before an upload.
    ! corrected; the item is yours now, and memoird will not change it
    ");
    let wisdom = root.read("WISDOM.md");
    root.append("memory/2026-03-17.md", RULE);
    root.run(&["compact"]).ok();
    assert!(wisdom.contains("\n- Ask Jo before an upload.\n"), "{wisdom}");
    assert!(root.read_record("WISDOM.md").contains("\"edited\""));
    assert_eq!(root.read("WISDOM.md"), wisdom);
}

#[test]
fn what_a_correction_of_a_week_does_not_reach_is_named() {
    let root = Root::empty("typed");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write("memory/2026-03-10.md", "- Never push to main on a Friday, nobody is there\n");
    root.run_with_digest(&["compact"]).ok();
    let location = location_of(&root, WEEK, "on a Friday");
    let corrected = |words: &str| root.run_with_digest(&["correct", &location, words]).ok();
    let shown = corrected("Never push to main on a Saturday, nobody is there");
    let wisdom = location_of(&root, "WISDOM.md", "on a Friday");
    let next = format!("memoird correct {wisdom} \"TEXT\"");
    assert!(shown.stderr.contains(&next), "{next}\n{shown}");
    let json = root.run_with_digest(&[
        "correct",
        &location,
        "Never push on a Friday, nobody is there",
        "--json",
    ]);
    assert_eq!(
        json.ok().json_as("correct")["same_source"],
        serde_json::json!([]),
        "it has other words"
    );
}

#[test]
fn correcting_a_typed_memory_corrects_its_wisdom_entry() {
    let root = Root::empty("typed");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write(
        "memory/2026-03-10.md",
        "- Ines prefers numbers first, then the reason, in at most five lines\n",
    );
    root.run(&["compact"]).ok();
    let memory = root.files().into_keys().find(|it| it.contains("/user_")).unwrap();
    assert!(root.read("WISDOM.md").contains("numbers first"), "{}", root.read("WISDOM.md"));
    let words = "Ines prefers the reason first, then numbers, in at most five lines";
    let shown = root.run(&["correct", &memory, words, "--json"]).ok().json_as("correct");
    assert_eq!((&shown["changed"], &shown["above"][0]["tier"]), (&true.into(), &"wisdom".into()));
    assert!(root.read(&memory).contains(&format!("\n{words}\n")), "{}", root.read(&memory));
    let wisdom = root.read("WISDOM.md");
    assert!(wisdom.contains("reason first") && !wisdom.contains("numbers first"), "{wisdom}");
    let index = root.read("memory/MEMORY.md");
    assert!(index.contains("reason first") && !index.contains("numbers first"), "{index}");
    let before = root.files();
    root.run(&["compact"]).ok();
    assert_eq!(root.files(), before);
    // An item that belongs to the person can be corrected again.
    root.run(&["correct", &memory, "Ines prefers numbers on Fridays only"]).ok();
    assert!(root.read(&memory).contains("Fridays only"));
}

#[test]
fn a_dry_run_shows_the_change_and_writes_nothing() {
    let root = compacted_with_rule();
    let before = root.files();
    let location = location_of(&root, WEEK, "painted on day 10").replace(WEEK, "2026-W11");
    insta::assert_snapshot!(root.run(&["correct", &location, "It was painted twice", "--dry-run"]), @r"
    $ memoird correct 2026-W11:12 It was painted twice --dry-run
    memory/weekly/2026-W11.md:12
    - - The cellar was painted on day 10 [2026-03-10:4]
    + - It was painted twice [2026-03-10:4]
    ! nothing was changed
    ! would also update what is derived from it: memory/monthly/2026-03.md and the entries of WISDOM.md that come from months
    ");
    let shown =
        root.run(&["correct", &location, "It was painted twice", "--dry-run", "--json"]).ok();
    assert_eq!(shown.json_as("correct")["changed"], false);
    assert_eq!(root.files(), before);
    root.run(&["correct", &location, "It was painted twice", "--no-fold"]).ok();
    assert!(
        root.read(WEEK).contains("painted twice") && !root.read(MONTH).contains("painted twice")
    );
    root.run(&["compact"]).ok();
    assert!(root.read(MONTH).contains("painted twice"));
}

#[test]
fn errors_name_what_can_be_corrected_instead() {
    let root = compacted_with_rule();
    let report = |args: &[&str]| root.run(args).to_string();
    insta::assert_snapshot!(report(&["correct", "2026-03-10:4", "x"]), @r#"
    $ memoird correct 2026-03-10:4 x
    ! error: cannot correct `memory/2026-03-10.md`: memoird does not change logs; edit line 4 yourself, or correct the items derived from it
    !   try: memoird correct memory/weekly/2026-W11.md:12 "TEXT"
    !   try: memoird correct memory/monthly/2026-03.md:16 "TEXT"
    [exit 2]
    "#);
    insta::assert_snapshot!(report(&["correct", "2026-W11", "x"]), @r"
    $ memoird correct 2026-W11 x
    ! error: `memory/weekly/2026-W11.md` has many items; name the line of one
    !   try: memoird trace memory/weekly/2026-W11.md  # to see the line of each item
    [exit 2]
    ");
    insta::assert_snapshot!(report(&["correct", "2026-W11:3", "x"]), @r#"
    $ memoird correct 2026-W11:3 x
    ! error: line 3 of `memory/weekly/2026-W11.md` is no item; the nearest one begins on line 11
    !   try: memoird correct memory/weekly/2026-W11.md:11 "TEXT"
    [exit 2]
    "#);
    insta::assert_snapshot!(report(&["correct", "2026-W11:10", "x [2026-03-10:99]"]), @r"
    $ memoird correct 2026-W11:10 x [2026-03-10:99]
    ! error: the cited line `2026-03-10:99` does not exist
    !   try: memoird show 2026-03-10  # to see its lines
    [exit 2]
    ");
    let unknown_line = report(&["correct", "2026-W11:10", "x [2030-01-01:3]"]);
    let next = "try: memoird correct 2026-W11:10 \"x\"  # to keep the current citation";
    assert!(unknown_line.contains(next), "{unknown_line}");
    let empty = report(&["correct", "2026-W11:10", " "]);
    let next = "try: memoird show 2026-W11  # to remove the item, delete its line in the file";
    assert!(empty.contains(next), "{empty}");
    insta::assert_snapshot!(report(&["correct", "2026-W11:10", "x [2026-13-10:9]"]), @r#"
    $ memoird correct 2026-W11:10 x [2026-13-10:9]
    ! error: `[2026-13-10:9]` is not a citation (expected one like [2026-04-02:4,9-11; 2026-04-03:2])
    !   try: memoird correct 2026-W11:10 "TEXT"  # to keep the current citation
    [exit 2]
    "#);
    insta::assert_snapshot!(report(&["correct", "2026-W40:15", "x"]), @r"
    $ memoird correct 2026-W40:15 x
    ! error: there are no logs of 2026-W40
    !   hint: first weekly summary: 2026-W10, last: 2026-W12
    !   try: memoird status  # shows what there is
    [exit 2]
    ");
    let foreign = "# Week 11\n\n- mine\n";
    root.write("memory/weekly/2026-W02.md", foreign);
    insta::assert_snapshot!(report(&["correct", "2026-W02:3", "x"]), @r"
    $ memoird correct 2026-W02:3 x
    ! error: `memory/weekly/2026-W02.md` is a file of your own: edit it; memoird does not change it
    [exit 2]
    ");
}
