//! What happens to files that people change: late lines, moved lines, edits, deletions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::Root;

const WEEK: &str = "memory/weekly/2026-W11.md";
const MONTH: &str = "memory/monthly/2026-03.md";
const LOG: &str = "memory/2026-03-11.md";

/// A folder in which all that is due has been done.
fn folded(journal: &str) -> Root {
    let root = Root::new(journal);
    root.run(&["compact"]).ok();
    root
}

/// Returns the files that are not as they were, new ones too.
fn changed(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    after
        .iter()
        .filter(|(path, text)| before.get(*path) != Some(text))
        .map(|(path, _)| path.clone())
        .collect()
}

/// Folds, and returns the files that changed meanwhile.
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

/// Asserts that the words of every bullet stand in the lines that `trace` leads to.
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
        let there: BTreeSet<String> = words(&sources).into_iter().collect();
        let bullet = item["target"]["text"].as_str().unwrap();
        let missing: Vec<String> =
            words(bullet).into_iter().filter(|it| !there.contains(it)).collect();
        assert!(missing.is_empty(), "{missing:?} of `{bullet}` stand in none of:\n{sources}");
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
fn a_late_decision_rewrites_its_chain_and_nothing_else() {
    let root = folded("mara");
    root.append(LOG, "\n- Decided: the Kelvin probes go to Zanzibar on 2026-05-07, because the Nairobi depot floods in May.\n");
    let changed = changed_by_compact(&root);
    assert!(changed.contains(WEEK) && changed.contains(MONTH), "{changed:?}");
    assert!(root.read(WEEK).contains("Zanzibar"));
    // A decision with a reason may become a memory of its own; what stood there is not touched.
    let others: Vec<_> = changed
        .iter()
        .filter(|it| !matches!(it.as_str(), WEEK | MONTH) && !it.contains("/project_"))
        .collect();
    assert!(others.is_empty() || others == ["memory/MEMORY.md"], "{changed:?}");
    assert!(changed_by_compact(&root).is_empty());
}

#[test]
fn a_blank_line_at_the_top_moves_citations_and_folds_nothing() {
    let root = folded("mara");
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
fn where_the_citations_of_a_month_follow_nothing_is_distilled_again() {
    let root = folded("mara");
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
fn a_line_at_the_top_keeps_every_source_right() {
    let root = folded("mara");
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
fn a_changed_bullet_survives_the_next_fold_and_climbs() {
    let root = folded("mara");
    let week = root.read(WEEK);
    let bullet = bullets(&week)[0].clone();
    let mine = format!("- Nobody but Ottilie may restart the harbour gateway [{}]", cited(&bullet));
    root.write(WEEK, &week.replacen(&bullet, &mine, 1));
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    root.run(&["compact"]).ok();
    assert!(root.read(WEEK).contains(&mine), "{}", root.read(WEEK));
    assert_eq!(
        bullets(&root.read(WEEK)).iter().filter(|it| cited(it) == cited(&bullet)).count(),
        1
    );
    assert!(root.read(MONTH).contains("Ottilie"), "{}", root.read(MONTH));
    assert!(changed_by_compact(&root).is_empty());
}

#[test]
fn a_bullet_that_a_person_wrote_over_two_lines_is_cited_with_both() {
    let root = folded("mara");
    let week = root.read(WEEK);
    let bullet = bullets(&week)[0].clone();
    let words =
        ["Decided: nobody but Ottilie may restart the harbour gateway,", "because it is old"];
    let mine = format!("- {}\n  {} [{}]", words[0], words[1], cited(&bullet));
    root.write(WEEK, &week.replacen(&bullet, &mine, 1));
    root.run(&["compact"]).ok();
    let week = root.read(WEEK);
    assert!(week.contains(&mine), "{week}");
    let line = 1 + week.lines().position(|it| it.ends_with(words[0])).unwrap();
    let own = format!("2026-W11:{line}-{}", line + 1);
    let month = root.read(MONTH);
    let above = bullets(&month).into_iter().find(|it| it.contains("Ottilie")).unwrap();
    assert!(cited(&above).split("; ").any(|it| it == own), "{own} in {above}");
    // What is forgotten by its second line is the bullet.
    let second = format!("{WEEK}:{}", line + 1);
    let told = root.run(&["forget", &second, "--dry-run"]).ok();
    assert!(told.stdout.contains(words[1]), "{told}");
    assert_sources_hold_the_words(&root, MONTH);
}

#[test]
fn a_deleted_bullet_stays_deleted_also_without_the_database() {
    let root = folded("mara");
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
    assert!(root.read(WEEK).contains("4711"), "the week was folded again");
    assert!(!bullets(&root.read(WEEK)).iter().any(|it| cited(it) == lines), "{}", root.read(WEEK));
}

#[test]
fn a_record_of_decisions_without_a_key_gets_one() {
    let root = folded("mara");
    let kept =
        r#"{"at":"2026-04-01T03:00:12Z","what":"undone","in":"","hashes":["9c1f2ab04d7e6f58"]}"#;
    root.write("memory/.decisions.jsonl", &format!("{kept}\n"));
    let week = root.read(WEEK);
    let bullet = bullets(&week)[1].clone();
    root.write(WEEK, &week.replacen(&format!("{bullet}\n"), "", 1));
    root.run(&["compact"]).ok();
    let decisions = root.read("memory/.decisions.jsonl");
    assert!(decisions.starts_with(kept) && decisions.contains("{\"key\":"), "{decisions}");
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    root.run(&["compact"]).ok();
    let week = root.read(WEEK);
    assert!(week.contains("4711"), "the week was folded again");
    assert!(!bullets(&week).iter().any(|it| cited(it) == cited(&bullet)), "{week}");
}

#[test]
fn a_deleted_memory_stays_deleted() {
    let root = folded("mara");
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
fn a_vanished_log_makes_nothing_due_and_its_items_stay() {
    let root = folded("mara");
    let gone: Vec<String> = bullets(&root.read(WEEK))
        .into_iter()
        .filter(|it| cited(it).starts_with("2026-03-12:") && !cited(it).contains(';'))
        .collect();
    assert!(!gone.is_empty());
    std::fs::remove_file(root.path("memory/2026-03-12.md")).unwrap();
    assert!(changed_by_compact(&root).is_empty());
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    root.run(&["compact"]).ok();
    let week = root.read(WEEK);
    assert!(gone.iter().all(|it| week.contains(it)), "{week}");
}

#[test]
fn a_deleted_summary_is_made_again() {
    let root = folded("mara");
    let week = root.read(WEEK);
    std::fs::remove_file(root.path(WEEK)).unwrap();
    let changed = changed_by_compact(&root);
    assert_eq!(changed, [WEEK.to_owned()].into());
    assert_eq!(root.read(WEEK), week, "the same input gives the same bytes");
}

#[test]
fn files_of_somebody_else_are_read_and_never_written() {
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
    // A person may hand it over.
    root.run(&["compact", "--period", "2026-W11", "--force"]).ok();
    assert_ne!(root.read(WEEK), week);
}

#[test]
fn the_words_of_a_deleted_bullet_do_not_come_back_in_another_one() {
    let root = folded("mara");
    let week = root.read(WEEK);
    let bullet = bullets(&week)
        .into_iter()
        .find(|it| !cited(it).contains([',', ';', '-']))
        .unwrap_or_else(|| bullets(&week)[2].clone());
    let line = cited(&bullet).to_owned();
    root.write(WEEK, &week.replacen(&format!("{bullet}\n"), "", 1));
    root.run(&["compact"]).ok();
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    root.run(&["compact"]).ok();
    let report = root.run(&["coverage", "2026-W11", "--json"]).ok().json_as("coverage");
    let (day, number) = line.rsplit_once(':').unwrap();
    let number: u64 = number.split([',', '-']).next_back().unwrap().parse().unwrap();
    let uncovered = report["uncovered"].as_array().unwrap();
    let told = uncovered
        .iter()
        .find(|it| it["path"].as_str().unwrap().contains(day) && it["line"] == number);
    assert_eq!(
        told.map(|it| it["reason"].as_str().unwrap()),
        Some("deleted"),
        "{line}: {}",
        root.read(WEEK)
    );
}

#[test]
fn a_memory_that_is_put_back_is_no_longer_refused() {
    let root = folded("mara");
    let memory = root.files().keys().find(|it| it.contains("/feedback_")).cloned().unwrap();
    let text = root.read(&memory);
    std::fs::remove_file(root.path(&memory)).unwrap();
    root.run(&["compact"]).ok();
    root.write(&memory, &text);
    root.run(&["compact"]).ok();
    assert!(root.read("memory/.decisions.jsonl").contains("\"restored\""));
}

#[test]
fn a_memory_folder_that_is_gone_is_not_taken_for_an_empty_one() {
    let root = folded("mara");
    std::fs::rename(root.path("memory"), root.path("elsewhere")).unwrap();
    insta::assert_snapshot!(root.run(&["compact"]), @r"
    $ memoird compact
    ! error: the memory folder `~/mara/memory` is missing, but 64 of its logs are recorded; nothing was done
    !   hint: mount the folder or move it back, then run `memoird compact`
    [exit 65]
    ");
    assert!(!root.path("memory").exists());
    std::fs::rename(root.path("elsewhere"), root.path("memory")).unwrap();
    assert!(changed_by_compact(&root).is_empty());
    assert!(!root.path("memory/.decisions.jsonl").exists());
}

#[test]
fn a_name_that_is_taken_by_any_file_is_left_alone() {
    let root = Root::empty("new");
    root.write("memoird.yaml", "zone: UTC\n");
    root.write(
        "memory/2026-04-01.md",
        "- Decided to use SQLite for staging, because one file is easy to back up\n",
    );
    let made = root.run(&["compact", "--json"]).ok().json_as("compact");
    let memory = made["jobs"][0]["path"].as_str().unwrap().to_owned();
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

/// Returns what a bullet says.
fn words_of(bullet: &str) -> &str {
    bullet.trim_start_matches("- ").rsplit_once(" [").unwrap().0
}

/// Puts words of a person's in the place of a bullet's, and takes another bullet out; returns what
/// they wrote, and the lines that the deleted one rested on.
fn edit_by_hand(root: &Root, path: &str) -> (String, String, String) {
    let text = root.read(path);
    let all = bullets(&text);
    let single =
        |it: &&String| !cited(it).contains([',', ';', '-']) || cited(it).matches('-').count() == 2;
    let changed = all[0].clone();
    // Best one that the month repeats, so that it is seen to go there, too.
    let month = root.read(MONTH);
    let above = |it: &&String| month.contains(words_of(it));
    let rest = &all[1..];
    let repeated = rest.iter().filter(single).find(above).or_else(|| rest.iter().find(above));
    let gone = repeated.or_else(|| rest.iter().find(single)).unwrap_or(&all[1]).clone();
    let mine =
        format!("- Nobody but Ottilie may restart the harbour gateway [{}]", cited(&changed));
    let text = text.replacen(&changed, &mine, 1).replacen(&format!("{gone}\n"), "", 1);
    root.write(path, &(text + "\nA last word of mine.\n"));
    (mine, gone.clone(), cited(&gone).to_owned())
}

#[test]
fn without_a_database_the_file_itself_tells_what_a_person_did() {
    const WEEK: &str = "memory/weekly/2026-W12.md";
    const LOG: &str = "memory/2026-03-18.md";
    let root = folded("mara");
    let month = root.read(MONTH);
    let (mine, gone, lines) = edit_by_hand(&root, WEEK);
    let words = words_of(&gone);
    assert!(month.contains(words), "what is deleted stood above, too: {words}\n{month}");
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    root.run(&["compact"]).ok();
    for round in 0..2 {
        let week = root.read(WEEK);
        assert!(week.contains(&mine) && week.contains("\nA last word of mine.\n"), "{week}");
        assert!(week.contains(["4711", "12 packets"][round]), "{week}");
        assert!(
            !week.contains(&gone) && !bullets(&week).iter().any(|it| cited(it) == lines),
            "{week}"
        );
        let now = root.read(MONTH);
        assert!(now.contains("Ottilie"), "{now}");
        assert!(!now.contains(words), "{words} in:\n{now}");
        assert_ne!(month, now);
        if round == 0 {
            // Written down, it outlives the list in the file as well.
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
fn entries_of_a_person_stay_byte_for_byte_and_deleted_ones_stay_away() {
    let mut root = folded("mara");
    let wisdom = root.read("WISDOM.md");
    assert!(
        wisdom.contains(
            "; entries that you add or edit are yours: kept as they are, never dropped -->"
        ),
        "{wisdom}"
    );
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
    let at = edited.find("**A mail to the customer").unwrap();
    let end = at + edited[at..].find("-->\n\n").unwrap() + 5;
    let edited = edited[..at].to_owned() + &edited[end..];
    root.write("WISDOM.md", &edited);
    root.run(&["compact"]).ok();
    assert_eq!(root.read("WISDOM.md"), edited, "nothing was due");
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    // More than the cap allows, over years; what they deleted is said again by a refold.
    root.append("memory/2026-01-28.md", "\n- A late line: the gauge froze.\n");
    let rule =
        |n| format!("- Gauge {n} must never be read by fewer than {n}0 people on pier {n}\n");
    let rules = (1..9).map(rule).collect::<Vec<_>>().concat();
    for day in ["04-14", "04-15", "04-16", "05-04", "05-05"] {
        root.write(&format!("memory/2026-{day}.md"), &rules);
    }
    root.set_now("2026-06-09T09:00:00+02:00");
    root.run(&["compact", "--set", "wisdom.max_entries=6"]).ok();
    let wisdom = root.read("WISDOM.md");
    for kept in [
        "**Mine**\nLet the tide decide.  \n\tAlways.\n",
        "\nInes prefers  numbers,\n  and *brevity*.\n<!-- memoird: id=",
    ] {
        assert!(wisdom.contains(kept), "{wisdom}");
    }
    assert!(
        wisdom.contains("must never be read") && !wisdom.contains("A mail to the customer"),
        "{wisdom}"
    );
    assert!(wisdom.matches("<!-- memoird: id=").count() <= 6, "{wisdom}");
}

#[test]
fn keys_and_comments_of_a_person_stay_in_every_kind_of_file() {
    let root = folded("mara");
    let theirs = "# what I think of it\ntags: [ tide,  gauge ]   # two\nnote: |\n  one\n\n  two\n";
    let memory = root.files().into_keys().find(|it| it.contains("/feedback_importers")).unwrap();
    for path in [WEEK, MONTH, &memory] {
        root.write(path, &root.read(path).replacen("memoird:", &format!("{theirs}memoird:"), 1));
    }
    // A late line folds week and month; a line on top moves the sources of the memory.
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    let source = "memory/2026-01-21.md";
    root.write(source, &format!("\n{}", root.read(source)));
    let changed = changed_by_compact(&root);
    for path in [WEEK, MONTH, &memory] {
        assert!(changed.contains(path), "{path}: {changed:?}");
        assert!(root.read(path).contains(theirs), "{}", root.read(path));
    }
    assert!(root.read(WEEK).contains("4711"));
    assert!(changed_by_compact(&root).is_empty());
}

/// Lets the program run up to the first step `name` that it passes, does `edit`, and lets it go.
#[track_caller]
fn edit_at(root: &Root, name: &str, edit: impl FnOnce()) -> crate::support::Ran {
    let go = root.home("go");
    let reached = root.home("go.reached");
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("memoird"));
    let env = [
        ("HOME", root.home("")),
        ("TZ", "Europe/Berlin".into()),
        ("MEMOIRD_NOW", crate::support::NOW.into()),
    ];
    command
        .arg("compact")
        .env_clear()
        .envs(env)
        .env("PATH", "/nonexistent")
        .env("MEMOIRD_FAIL", format!("wait:{}@{name}", go.display()))
        .current_dir(root.path(""))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    while !reached.exists() {
        assert!(child.try_wait().unwrap().is_none(), "`{name}` was never passed");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    edit();
    drop(std::fs::File::create(&go).unwrap());
    let output = child.wait_with_output().unwrap();
    std::fs::remove_file(&go).unwrap();
    std::fs::remove_file(&reached).unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    crate::support::Ran {
        line: "memoird compact".to_owned(),
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// An edit made while the week is being written: before its bytes are staged, between the look at
/// what stands there and the exchange, in the moment after it.
#[test]
fn an_edit_made_while_the_file_is_written_is_kept() {
    for name in ["vault.stage.create", "vault.stage.sync", "vault.place.rename"] {
        let root = folded("mara");
        root.append(
            LOG,
            "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
        );
        let mut edited = None;
        let ran = edit_at(&root, name, || edited = Some(edit_by_hand(&root, WEEK)));
        let (mine, gone, _) = edited.unwrap();
        assert!(ran.to_string().contains("changed by another program meanwhile"), "{name}: {ran}");
        assert!(root.read(WEEK).contains(&mine), "{name}: {}", root.read(WEEK));
        root.run(&["compact"]).ok();
        let week = root.read(WEEK);
        assert!(
            week.contains(&mine) && week.contains("4711") && week.contains("A last word of mine."),
            "{name}: {week}"
        );
        assert!(!week.contains(&gone), "{name}: {week}");
        assert!(root.read(MONTH).contains("Ottilie"), "{name}");
        assert!(changed_by_compact(&root).is_empty(), "{name}");
    }
}

/// Whoever has the file open while it is replaced may write into the old one: it is put back.
#[test]
fn words_written_into_the_file_that_is_being_replaced_are_kept() {
    let root = folded("mara");
    root.append(
        LOG,
        "\n- Shipped late: relay 4711 lost 318 packets at Kvalsund between 14:05 and 15:40.\n",
    );
    let mut open = std::fs::OpenOptions::new().append(true).open(root.path(WEEK)).unwrap();
    let ran = edit_at(&root, "vault.place.verify", || {
        std::io::Write::write_all(&mut open, b"\nWritten at the last moment.\n").unwrap();
    });
    assert!(ran.to_string().contains("changed by another program meanwhile"), "{ran}");
    assert!(root.read(WEEK).contains("Written at the last moment."), "{}", root.read(WEEK));
    root.run(&["compact"]).ok();
    let week = root.read(WEEK);
    assert!(week.contains("Written at the last moment.") && week.contains("4711"), "{week}");
}
