//! Changes by people: late lines, moved lines, edits, deletions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::Root;

const WEEK: &str = "memory/weekly/2026-W11.md";
const MONTH: &str = "memory/monthly/2026-03.md";
const LOG: &str = "memory/2026-03-11.md";

/// Returns a folder with this sample journal, compacted.
fn compacted(journal: &str) -> Root {
    let root = Root::new(journal);
    root.run(&["compact"]).ok();
    root
}

/// Returns the files that are new or changed; for a hidden file, the one beside it.
fn changed(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    after
        .iter()
        .filter(|(path, text)| before.get(*path) != Some(text))
        .map(|(path, _)| Root::visible_path(path))
        .collect()
}

/// Compacts, and returns the files that are new or changed.
fn changed_by_compact(root: &Root) -> BTreeSet<String> {
    let before = root.files();
    root.run(&["compact"]).ok();
    changed(&before, &root.files())
}

fn bullets(text: &str) -> Vec<String> {
    text.lines().filter(|it| it.starts_with("- ")).map(str::to_owned).collect()
}

fn cited(bullet: &str) -> &str {
    bullet.rsplit_once('[').map_or("", |(_, citation)| citation.trim_end_matches(']'))
}

fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Asserts that the words of every bullet appear in the source lines that `trace` reports.
#[track_caller]
fn assert_sources_hold_the_words(root: &Root, path: &str) {
    let text = root.read(path);
    let traced = root.run(&["trace", path, "--json"]).ok().json_as("trace");
    let items = traced["items"].as_array().unwrap();
    assert_eq!(items.len(), bullets(&text).len());
    for item in items {
        let sources: String = item["sources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["text"].as_str().unwrap().to_owned() + "\n")
            .collect();
        let source_words: BTreeSet<String> = words(&sources).into_iter().collect();
        let bullet = item["target"]["text"].as_str().unwrap();
        let missing: Vec<String> =
            words(bullet).into_iter().filter(|it| !source_words.contains(it)).collect();
        assert!(missing.is_empty(), "{missing:?} of `{bullet}` are missing from:\n{sources}");
    }
}

fn jobs(report: &Value) -> Vec<String> {
    let job = |it: &Value| {
        format!("{} {} {}: {}", it["tier"], it["period"], it["outcome"], it["reason"])
            .replace('"', "")
    };
    report["jobs"].as_array().unwrap().iter().map(job).collect()
}

#[test]
fn a_late_decision_changes_only_its_week_and_month() {
    let root = compacted("mara");
    root.append(LOG, "\n- Decided: the Kelvin probes go to Zanzibar on 2026-05-07, because the Nairobi depot floods in May.\n");
    let changed = changed_by_compact(&root);
    assert!(changed.contains(WEEK) && changed.contains(MONTH), "{changed:?}");
    assert!(root.read(WEEK).contains("Zanzibar"));
    // A decision with a reason may become a new memory; existing memories are not changed.
    let others: Vec<_> = changed
        .iter()
        .filter(|it| !matches!(it.as_str(), WEEK | MONTH) && !it.contains("/project_"))
        .collect();
    assert!(others.is_empty() || others == ["memory/MEMORY.md"], "{changed:?}");
    assert!(changed_by_compact(&root).is_empty());
}

#[test]
fn a_blank_line_at_the_top_only_moves_citations() {
    let root = compacted("mara");
    let (week, month) = (root.read(WEEK), root.read(MONTH));
    root.write(LOG, &format!("\n{}", root.read(LOG)));
    let report = root.run(&["compact", "--json"]).ok().json_as("compact");
    assert_eq!(jobs(&report), ["weekly 2026-W11 written: lines moved"]);
    let text_of = |text: &str| -> Vec<String> {
        bullets(text).iter().map(|it| it.rsplit_once(" [").unwrap().0.to_owned()).collect()
    };
    assert_eq!(text_of(&root.read(WEEK)), text_of(&week));
    assert_eq!(text_of(&root.read(MONTH)), text_of(&month));
    assert_ne!(root.read(WEEK), week, "the citations follow");
    assert_sources_hold_the_words(&root, WEEK);
    assert_sources_hold_the_words(&root, MONTH);
    assert!(changed_by_compact(&root).is_empty());
}

#[test]
fn moved_citations_of_a_month_do_not_make_wisdom_due() {
    let root = compacted("mara");
    let month = root.read(MONTH);
    for (log, text) in root.files().iter().filter(|it| it.0.starts_with("memory/2026-03-")) {
        root.write(log, &format!("\n{text}"));
    }
    let report = root.run(&["compact", "--json"]).ok().json_as("compact");
    assert_ne!(root.read(MONTH), month, "the citations follow");
    let done = jobs(&report);
    assert!(done.iter().all(|it| it.ends_with("lines moved")), "{done:?}");
    assert!(changed_by_compact(&root).is_empty());
}

#[test]
fn a_line_inserted_at_the_top_keeps_all_sources_correct() {
    let root = compacted("mara");
    let memories = |root: &Root| -> Vec<String> {
        root.files()
            .keys()
            .filter(|it| it.contains("/project_") || it.contains("/feedback_"))
            .cloned()
            .collect()
    };
    let before = memories(&root);
    assert!(!before.is_empty());
    for day in ["03-09", "03-10", "03-11", "03-12", "03-13"] {
        let log = format!("memory/2026-{day}.md");
        root.write(
            &log,
            &format!("A note that came late, at the top of the page.\n{}", root.read(&log)),
        );
    }
    root.run(&["compact"]).ok();
    for path in [WEEK, MONTH] {
        assert_sources_hold_the_words(&root, path);
    }
    for memory in memories(&root) {
        let traced = root.run(&["trace", &memory, "--json"]).ok().json();
        assert!(!traced["sources"].to_string().contains("\"changed\":true"), "{memory}: {traced}");
    }
    assert!(before.iter().all(|it| memories(&root).contains(it)));
    assert!(changed_by_compact(&root).is_empty());
}

#[test]
fn an_edited_bullet_survives_the_next_run_and_reaches_the_month() {
    let root = compacted("mara");
    let week = root.read(WEEK);
    let bullet = bullets(&week)[0].clone();
    let edited_bullet =
        format!("- Nobody but Ottilie may restart the harbour gateway [{}]", cited(&bullet));
    root.write(WEEK, &week.replacen(&bullet, &edited_bullet, 1));
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    root.run(&["compact"]).ok();
    assert!(root.read(WEEK).contains(&edited_bullet), "{}", root.read(WEEK));
    assert_eq!(
        bullets(&root.read(WEEK)).iter().filter(|it| cited(it) == cited(&bullet)).count(),
        1
    );
    assert!(root.read(MONTH).contains("Ottilie"), "{}", root.read(MONTH));
    assert!(changed_by_compact(&root).is_empty());
}

#[test]
fn a_bullet_of_two_lines_is_cited_with_both_lines() {
    let root = compacted("mara");
    let week = root.read(WEEK);
    let bullet = bullets(&week)[0].clone();
    let words =
        ["Decided: nobody but Ottilie may restart the harbour gateway,", "because it is old"];
    let edited_bullet = format!("- {}\n  {} [{}]", words[0], words[1], cited(&bullet));
    root.write(WEEK, &week.replacen(&bullet, &edited_bullet, 1));
    root.run(&["compact"]).ok();
    let week = root.read(WEEK);
    assert!(week.contains(&edited_bullet), "{week}");
    let line = 1 + week.lines().position(|it| it.ends_with(words[0])).unwrap();
    let week_lines = format!("2026-W11:{line}-{}", line + 1);
    let month = root.read(MONTH);
    let month_bullet = bullets(&month).into_iter().find(|it| it.contains("Ottilie")).unwrap();
    assert!(
        cited(&month_bullet).split("; ").any(|it| it == week_lines),
        "{week_lines} in {month_bullet}"
    );
    // Naming the second line forgets the whole bullet.
    let second_line = format!("{WEEK}:{}", line + 1);
    let forgotten = root.run(&["forget", &second_line, "--dry-run"]).ok();
    assert!(forgotten.stdout.contains(words[1]), "{forgotten}");
    assert_sources_hold_the_words(&root, MONTH);
}

#[test]
fn a_deleted_bullet_stays_deleted_even_without_the_database() {
    let root = compacted("mara");
    let week = root.read(WEEK);
    let bullet = bullets(&week)[1].clone();
    let lines = cited(&bullet).to_owned();
    root.write(WEEK, &week.replacen(&format!("{bullet}\n"), "", 1));
    root.run(&["compact"]).ok();
    assert!(root.read("memory/.decisions.jsonl").contains("\"deleted\""));
    assert_eq!(root.mode("memory/.decisions.jsonl"), 0o600);
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    root.run(&["compact"]).ok();
    assert!(root.read(WEEK).contains("4711"), "the week was summarized again");
    assert!(!bullets(&root.read(WEEK)).iter().any(|it| cited(it) == lines), "{}", root.read(WEEK));
}

#[test]
fn a_decisions_file_without_a_key_gets_one() {
    let root = compacted("mara");
    let decision =
        r#"{"at":"2026-04-01T03:00:12Z","what":"undone","in":"","hashes":["9c1f2ab04d7e6f58"]}"#;
    root.write("memory/.decisions.jsonl", &format!("{decision}\n"));
    let week = root.read(WEEK);
    let bullet = bullets(&week)[1].clone();
    root.write(WEEK, &week.replacen(&format!("{bullet}\n"), "", 1));
    root.run(&["compact"]).ok();
    let decisions = root.read("memory/.decisions.jsonl");
    assert!(decisions.starts_with(decision) && decisions.contains("{\"key\":"), "{decisions}");
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    root.run(&["compact"]).ok();
    let week = root.read(WEEK);
    assert!(week.contains("4711"), "the week was summarized again");
    assert!(!bullets(&week).iter().any(|it| cited(it) == cited(&bullet)), "{week}");
}

#[test]
fn a_deleted_memory_stays_deleted() {
    let root = compacted("mara");
    let memory = root.files().keys().find(|it| it.contains("/feedback_")).cloned().unwrap();
    let source = root.run(&["trace", &memory, "--json"]).ok().json()["sources"][0]["path"]
        .as_str()
        .unwrap()
        .to_owned();
    std::fs::remove_file(root.path(&memory)).unwrap();
    root.run(&["compact"]).ok();
    root.append(&source, "\nA late line.\n");
    root.run(&["compact"]).ok();
    assert!(!root.files().contains_key(&memory));
    assert!(!root.read("memory/MEMORY.md").contains(memory.rsplit('/').next().unwrap()));
}

#[test]
fn a_vanished_log_makes_nothing_due_and_its_items_are_kept() {
    let root = compacted("mara");
    let orphaned: Vec<String> = bullets(&root.read(WEEK))
        .into_iter()
        .filter(|it| cited(it).starts_with("2026-03-12:") && !cited(it).contains(';'))
        .collect();
    assert!(!orphaned.is_empty());
    std::fs::remove_file(root.path("memory/2026-03-12.md")).unwrap();
    assert!(changed_by_compact(&root).is_empty());
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    root.run(&["compact"]).ok();
    let week = root.read(WEEK);
    assert!(orphaned.iter().all(|it| week.contains(it)), "{week}");
}

#[test]
fn a_deleted_summary_is_generated_again() {
    let root = compacted("mara");
    let week = root.read(WEEK);
    std::fs::remove_file(root.path(WEEK)).unwrap();
    let changed = changed_by_compact(&root);
    assert_eq!(changed, [WEEK.to_owned()].into());
    assert_eq!(root.read(WEEK), week, "the same input gives the same bytes");
}

#[test]
fn files_not_written_by_memoird_are_read_but_never_changed() {
    let root = Root::new("mara");
    let week =
        "# Week 11\n\n## Notes\n\n- Quill and Basalt met in Reykjavik about the 9000 euro budget\n";
    let wisdom = "# Mara's own notes\n\n**Trust the gauge**\nNot the forecast.\n";
    let memory =
        "---\nname: Mine\ndescription: A person's own memory\ntype: user\n---\n\nI take tea.\n";
    root.write(WEEK, week);
    root.write("WISDOM.md", wisdom);
    root.write("memory/user_tea.md", memory);
    root.run(&["compact"]).ok();
    assert_eq!(root.read(WEEK), week);
    assert!(root.read("WISDOM.md").starts_with(wisdom));
    assert_eq!(root.read("memory/user_tea.md"), memory);
    assert!(root.read("memory/MEMORY.md").contains("user_tea.md"));
    assert!(
        root.read(MONTH).contains("Reykjavik"),
        "it is a source of its month:\n{}",
        root.read(MONTH)
    );
    // `--force` hands the file over to memoird.
    root.run(&["compact", "--period", "2026-W11", "--force"]).ok();
    assert_ne!(root.read(WEEK), week);
}

#[test]
fn the_lines_of_a_deleted_bullet_do_not_return_in_another_one() {
    let root = compacted("mara");
    let week = root.read(WEEK);
    let bullet = bullets(&week)
        .into_iter()
        .find(|it| !cited(it).contains([',', ';', '-']))
        .unwrap_or_else(|| bullets(&week)[2].clone());
    let citation = cited(&bullet).to_owned();
    root.write(WEEK, &week.replacen(&format!("{bullet}\n"), "", 1));
    root.run(&["compact"]).ok();
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    root.run(&["compact"]).ok();
    let report = root.run(&["coverage", "2026-W11", "--json"]).ok().json_as("coverage");
    let (day, number) = citation.rsplit_once(':').unwrap();
    let number: u64 = number.split([',', '-']).next_back().unwrap().parse().unwrap();
    let uncovered = report["uncovered"].as_array().unwrap();
    let line = uncovered
        .iter()
        .find(|it| it["path"].as_str().unwrap().contains(day) && it["line"] == number);
    assert_eq!(
        line.map(|it| it["reason"].as_str().unwrap()),
        Some("deleted"),
        "{citation}: {}",
        root.read(WEEK)
    );
}

#[test]
fn a_restored_memory_is_no_longer_suppressed() {
    let root = compacted("mara");
    let memory = root.files().keys().find(|it| it.contains("/feedback_")).cloned().unwrap();
    let text = root.read(&memory);
    std::fs::remove_file(root.path(&memory)).unwrap();
    root.run(&["compact"]).ok();
    root.write(&memory, &text);
    root.run(&["compact"]).ok();
    assert!(root.read("memory/.decisions.jsonl").contains("\"restored\""));
}

#[test]
fn a_missing_memory_folder_is_not_treated_as_empty() {
    let root = compacted("mara");
    std::fs::rename(root.path("memory"), root.path("elsewhere")).unwrap();
    insta::assert_snapshot!(root.run(&["compact"]), @r"
    $ memoird compact
    ! error: the memory folder `~/mara/memory` is missing, but 64 of its logs are recorded; nothing was done
    !   try: memoird compact  # once the folder is mounted or moved back
    [exit 65]
    ");
    assert!(!root.path("memory").exists());
    std::fs::rename(root.path("elsewhere"), root.path("memory")).unwrap();
    assert!(changed_by_compact(&root).is_empty());
    assert!(!root.path("memory/.decisions.jsonl").exists());
}

#[test]
fn a_new_memory_avoids_the_name_of_any_existing_file() {
    let root = Root::empty("new");
    root.write("memoird.yaml", "zone: UTC\n");
    root.write(
        "memory/2026-04-01.md",
        "- Decided to use SQLite for staging, because one file is easy to back up\n",
    );
    let report = root.run(&["compact", "--json"]).ok().json_as("compact");
    let memory = report["jobs"][0]["path"].as_str().unwrap().to_owned();
    let root = Root::empty("new");
    root.write("memoird.yaml", "zone: UTC\n");
    root.write(
        "memory/2026-04-01.md",
        "- Decided to use SQLite for staging, because one file is easy to back up\n",
    );
    root.write(&memory, "my own notes\n");
    root.run(&["compact"]).ok();
    assert_eq!(root.read(&memory), "my own notes\n");
    assert!(root.files().contains_key(&memory.replace(".md", "-2.md")));
}

/// Returns the text of a bullet without its citation.
fn words_of(bullet: &str) -> &str {
    bullet.trim_start_matches("- ").rsplit_once(" [").unwrap().0
}

/// Edits one bullet and deletes another, as a person would; returns the edited bullet, the deleted
/// bullet, and the lines that the deleted one cited.
fn edit_by_hand(root: &Root, path: &str) -> (String, String, String) {
    let text = root.read(path);
    let all = bullets(&text);
    let single =
        |it: &&String| !cited(it).contains([',', ';', '-']) || cited(it).matches('-').count() == 2;
    let changed = all[0].clone();
    // Prefers a bullet that the month repeats, to see that it is deleted there too.
    let month = root.read(MONTH);
    let is_in_month = |it: &&String| month.contains(words_of(it));
    let candidates = &all[1..];
    let repeated = candidates
        .iter()
        .filter(single)
        .find(is_in_month)
        .or_else(|| candidates.iter().find(is_in_month));
    let deleted = repeated.or_else(|| candidates.iter().find(single)).unwrap_or(&all[1]).clone();
    let edited_bullet =
        format!("- Nobody but Ottilie may restart the harbour gateway [{}]", cited(&changed));
    let text = text.replacen(&changed, &edited_bullet, 1).replacen(&format!("{deleted}\n"), "", 1);
    root.write(path, &(text + "\nA last word of mine.\n"));
    (edited_bullet, deleted.clone(), cited(&deleted).to_owned())
}

#[test]
fn without_a_database_user_edits_are_recognized_from_the_file() {
    const WEEK: &str = "memory/weekly/2026-W13.md";
    const LOG: &str = "memory/2026-03-25.md";
    let root = compacted("mara");
    let month = root.read(MONTH);
    let (edited_bullet, deleted, lines) = edit_by_hand(&root, WEEK);
    let words = words_of(&deleted);
    assert!(month.contains(words), "the deleted words were in the month too: {words}\n{month}");
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    root.run(&["compact"]).ok();
    for round in 0..2 {
        let week = root.read(WEEK);
        assert!(
            week.contains(&edited_bullet) && week.contains("\nA last word of mine.\n"),
            "{week}"
        );
        assert!(week.contains(["4711", "12 packets"][round]), "{week}");
        assert!(
            !week.contains(&deleted) && !bullets(&week).iter().any(|it| cited(it) == lines),
            "{week}"
        );
        let now = root.read(MONTH);
        assert!(now.contains("Ottilie"), "{now}");
        assert!(!now.contains(words), "{words} in:\n{now}");
        assert_ne!(month, now);
        if round == 0 {
            // A recorded decision outlives the list in the file.
            assert!(root.read("memory/.decisions.jsonl").contains("\"deleted\""));
            std::fs::remove_dir_all(root.path(".memoird")).unwrap();
            root.run(&["rebuild"]).ok();
            root.append(
                LOG,
                "\n- Measured late: 12 packets came back at Kvalsund at 16:20 through relay 88.\n",
            );
            root.run(&["compact"]).ok();
        }
    }
    assert!(changed_by_compact(&root).is_empty());
}

#[test]
fn wisdom_entries_of_a_person_stay_and_deleted_ones_do_not_return() {
    let mut root = compacted("mara");
    let wisdom = root.read("WISDOM.md");
    let edited = wisdom
        .replace(
            "Ines prefers numbers first, then the reason, in at most five lines.\n",
            "Ines prefers  numbers,\n  and *brevity*.\n",
        )
        .replacen(
            "## How to work\n",
            "## How to work\n\n**Mine**\nLet the tide decide.  \n\tAlways.\n",
            1,
        );
    let at = edited.find("- a mail to the customer").unwrap();
    let end = at + edited[at..].find('\n').unwrap() + 1;
    let edited = edited[..at].to_owned() + &edited[end..];
    root.write("WISDOM.md", &edited);
    root.run(&["compact"]).ok();
    assert_eq!(root.read("WISDOM.md"), edited, "nothing was due");
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    // More rules than the cap allows; compacting again proposes the deleted entry again.
    root.append("memory/2026-01-28.md", "\n- A late line: the gauge froze.\n");
    let rule = |n| format!("- Gauge {n} must never be read alone\n");
    let rules = (1..9).map(rule).collect::<Vec<_>>().concat();
    for day in ["04-14", "04-15", "04-16", "05-04", "05-05"] {
        root.write(&format!("memory/2026-{day}.md"), &rules);
    }
    root.set_now("2026-06-09T09:00:00+02:00");
    root.run(&["compact", "--set", "wisdom.max_entries=6"]).ok();
    let wisdom = root.read("WISDOM.md");
    for user_text in [
        "**Mine**\nLet the tide decide.  \n\tAlways.\n",
        "\n- Ines prefers  numbers,\n  and *brevity*.\n",
    ] {
        assert!(wisdom.contains(user_text), "{wisdom}");
    }
    assert!(
        wisdom.contains("must never be read") && !wisdom.contains("a mail to the customer"),
        "{wisdom}"
    );
    let record = root.read_record("WISDOM.md");
    assert!(record.matches("\"id\": ").count() <= 6, "{record}");
}

#[test]
fn frontmatter_keys_and_comments_of_a_person_are_preserved() {
    let root = compacted("mara");
    let user_keys =
        "# what I think of it\ntags: [ tide,  gauge ]   # two\nnote: |\n  one\n\n  two\n";
    let memory = root.files().into_keys().find(|it| it.contains("/feedback_importers")).unwrap();
    for (path, key) in [(WEEK, "pointers:"), (MONTH, "pointers:"), (&memory, "type:")] {
        root.write(path, &root.read(path).replacen(key, &format!("{user_keys}{key}"), 1));
    }
    // A late line makes week and month due; a line on top moves the sources of the memory.
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    let source = "memory/2026-01-21.md";
    root.write(source, &format!("\n{}", root.read(source)));
    let changed = changed_by_compact(&root);
    for path in [WEEK, MONTH, &memory] {
        assert!(changed.contains(path), "{path}: {changed:?}");
        assert!(root.read(path).contains(user_keys), "{}", root.read(path));
    }
    assert!(root.read(WEEK).contains("4711"));
    assert!(changed_by_compact(&root).is_empty());
}

/// The edit happens before the new text is staged, between the last check of the file and its
/// replacement, or right after that.
#[test]
fn an_edit_made_while_the_file_is_written_is_preserved() {
    for name in ["vault.stage.create", "vault.stage.sync", "vault.place.rename"] {
        let root = compacted("mara");
        root.append(
            LOG,
            "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
        );
        let mut edited = None;
        let ran = root.run_paused_at(&["compact"], name, || {
            edited = Some(edit_by_hand(&root, WEEK));
        });
        let (edited_bullet, deleted, _) = edited.unwrap();
        assert!(ran.to_string().contains("changed by another program meanwhile"), "{name}: {ran}");
        assert!(root.read(WEEK).contains(&edited_bullet), "{name}: {}", root.read(WEEK));
        root.run(&["compact"]).ok();
        let week = root.read(WEEK);
        assert!(
            week.contains(&edited_bullet)
                && week.contains("4711")
                && week.contains("A last word of mine."),
            "{name}: {week}"
        );
        assert!(!week.contains(&deleted), "{name}: {week}");
        assert!(root.read(MONTH).contains("Ottilie"), "{name}");
        assert!(changed_by_compact(&root).is_empty(), "{name}");
    }
}

/// A program that has the file open while it is replaced writes into the old file, which is restored.
#[test]
fn words_written_into_a_file_being_replaced_are_preserved() {
    let root = compacted("mara");
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    let mut open = std::fs::OpenOptions::new().append(true).open(root.path(WEEK)).unwrap();
    let ran = root.run_paused_at(&["compact"], "vault.place.verify", || {
        std::io::Write::write_all(&mut open, b"\nWritten at the last moment.\n").unwrap();
    });
    assert!(ran.to_string().contains("changed by another program meanwhile"), "{ran}");
    assert!(root.read(WEEK).contains("Written at the last moment."), "{}", root.read(WEEK));
    root.run(&["compact"]).ok();
    let week = root.read(WEEK);
    assert!(week.contains("Written at the last moment.") && week.contains("4711"), "{week}");
}
