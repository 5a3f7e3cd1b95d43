//! Files and a database of different times: version control, a sync tool, or a backup brought one of them.
//! A citation leads to the line that says the words, or says that the line is gone.

use std::fs;

use crate::support::Root;

const WEEK: &str = "memory/weekly/2026-W14.md";
const MONTH: &str = "memory/monthly/2026-04.md";
const LOG: &str = "memory/2026-04-02.md";

fn compacted() -> Root {
    let mut root = Root::empty("notes");
    root.set_now("2026-05-04T09:00:00+02:00");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write(
        LOG,
        "- Henk prefers green tea before every review\n- Noor met Priya, nothing new\n",
    );
    root.write("memory/2026-04-14.md", "- Disk at 34%\n");
    root.run(&["compact"]).ok();
    root
}

#[track_caller]
fn replace(root: &Root, path: &str, old: &str, new: &str) {
    let text = root.read(path);
    assert!(text.contains(old), "{old} in {text}");
    root.write(path, &text.replacen(old, new, 1));
}

/// Returns the files of `root` with the database of `older`.
fn with_database_of(older: Root, root: &Root) -> Root {
    let now = root.files();
    for name in older.files().keys().filter(|it| !now.contains_key(*it)) {
        fs::remove_file(older.path(name)).unwrap();
    }
    for (name, text) in &now {
        older.write(name, text);
    }
    older
}

#[track_caller]
fn check_bullet(root: &Root, path: &str, words: &str, cited: &str) {
    let text = root.read(path);
    let bullet = text.lines().find(|it| it.starts_with("- ") && it.contains(words));
    let bullet = bullet.unwrap_or_else(|| panic!("no {words} in {text}"));
    assert!(bullet.ends_with(&format!("[{cited}]")), "{bullet}");
}

/// The week names the present log, the memory came from a time before.
#[test]
fn each_file_is_checked_against_the_logs_that_it_cites() {
    let root = compacted();
    let memory = &root.typed_memories()[0];
    let record = Root::record_path(memory);
    let before = root.read(&record);
    assert!(before.contains("\"2026-04-02:1#"), "{before}");
    let log = root.read(LOG);
    root.write(LOG, &format!("\n{log}"));
    root.run(&["compact"]).ok();
    root.write(&record, &before);
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["compact"]).ok();
    assert!(root.read(&record).contains("\"2026-04-02:2#"), "{}", root.read(&record));
    check_bullet(&root, WEEK, "Henk", "2026-04-02:2");
}

/// `WISDOM.md` of another machine cites a bullet that a person added to the month there.
#[test]
fn an_entry_cites_no_other_line_of_the_month_of_another_machine() {
    let root = compacted();
    let here = root.copy();
    let last = root.read(MONTH).lines().rfind(|it| it.starts_with("- ")).unwrap().to_owned();
    let rule = "The upload limit must always stay under 40 MB per file";
    replace(&root, MONTH, &last, &format!("{last}\n- {rule}\n{last} again"));
    root.run(&["compact"]).ok();
    let entry = root.read("WISDOM.md");
    let record = root.read_record("WISDOM.md");
    assert!(entry.contains(rule) && record.contains("\"2026-04:"), "{entry}\n{record}");
    replace(
        &here,
        MONTH,
        &last,
        &format!("{last}\n- Whatever we do, the mast stays\n{last} again"),
    );
    here.write("WISDOM.md", &entry);
    here.write(&Root::record_path("WISDOM.md"), &record);
    here.run(&["compact"]).ok();
    let entry = here.read("WISDOM.md");
    let record = here.read_record("WISDOM.md");
    let sources = record.lines().filter_map(|it| it.trim().strip_prefix("\"sources\": \""));
    let mut of_month = sources.filter(|it| it.starts_with("2026-04:"));
    let is_gone = of_month.all(|it| it.starts_with("2026-04:1000"));
    assert!(!entry.contains(rule) || is_gone, "{entry}\n{record}");
}

/// The database recorded the log before it got a line at its top; the week cites it with that line.
#[test]
fn an_edited_bullet_restored_by_undo_cites_the_line_with_its_words() {
    let root = compacted();
    replace(
        &root,
        WEEK,
        "Henk prefers green tea before every review",
        "Henk prefers green tea before every review (Mombasa 17)",
    );
    root.run(&["compact"]).ok();
    let older = root.copy();
    let log = root.read(LOG);
    root.write(LOG, &format!("- The gauge fell to 12 mm\n{log}"));
    root.run(&["compact"]).ok();
    check_bullet(&root, WEEK, "Mombasa 17", "2026-04-02:2");
    let root = with_database_of(older, &root);
    replace(&root, LOG, "nothing new", "she comes on Friday");
    root.run(&["compact"]).ok();
    check_bullet(&root, WEEK, "Mombasa 17", "2026-04-02:2");
    root.run(&["undo", "--yes"]).ok();
    check_bullet(&root, WEEK, "Mombasa 17", "2026-04-02:2");
}
