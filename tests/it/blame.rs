//! `memoird blame`.

use crate::support::{NOW, Root};

/// Returns a folder with two weeks summarized at different times, one of them edited by a person.
fn compacted_twice() -> Root {
    let mut root = Root::small();
    root.set_now("2026-03-12T09:00:00+01:00");
    root.run(&["compact"]).ok();
    root.set_now(NOW);
    let path = "memory/weekly/2026-W10.md";
    let text = root.read(path);
    root.write(path, &format!("{text}- Read by Ines\n"));
    // A late log: the week is summarized again.
    root.write("memory/2026-03-04.md", "- Cache warmed in 14 s\n");
    root.run(&["compact"]).ok();
    root
}

#[test]
fn blame_shows_the_day_run_and_engine_of_each_line() {
    let root = compacted_twice();
    insta::assert_snapshot!(root.run(&["blame", "2026-W10"]).ok(), @r"
    $ memoird blame 2026-W10
    2026-03-12  run 1  extractive/3   9) # Week 2026-W10
    2026-03-12  run 1  extractive/3  10)
    2026-03-12  run 1  extractive/3  11) ### Key Outcomes
    2026-03-12  run 1  extractive/3  12) - Importer: Importer v2 shipped, 3.2 s per GB [2026-03-03:1,3]
    2026-03-12  run 1  extractive/3  13)
    2026-03-12  run 1  extractive/3  14) ### Context
    2026-03-12  run 1  extractive/3  15) - Backfill of 2019 begun, 38 GB [2026-03-03:4]
    2026-04-13  -      you           16) - Read by Ines
    2026-04-13  run 2  extractive/3  17) - Cache warmed in 14 s [2026-03-04:1]
    ");
}

#[test]
fn blame_json_matches_its_schema_and_the_file() {
    let root = compacted_twice();
    let json = root.run(&["blame", "2026-W10", "--json"]).ok().json_as("blame");
    let line_with = |words: &str| {
        let lines = json["lines"].as_array().unwrap();
        let line = lines.iter().find(|it| it["text"].as_str().unwrap().contains(words));
        line.unwrap_or_else(|| panic!("{words}: {json}")).clone()
    };
    let first = line_with("Importer v2");
    assert_eq!((&first["by"], &first["engine"]), (&"engine".into(), &"extractive/3".into()));
    assert!(first["at"].as_str().unwrap().starts_with("2026-03-12"), "{first}");
    let late_line = line_with("Cache warmed");
    assert!(late_line["at"].as_str().unwrap().starts_with("2026-04-13"), "{late_line}");
    assert!(late_line["run"].as_i64() > first["run"].as_i64());
    let own_line = line_with("Read by Ines");
    assert_eq!(
        (&own_line["by"], own_line["engine"].is_null()),
        (&"person".into(), true),
        "{own_line}"
    );
    for line in json["lines"].as_array().unwrap() {
        let number = usize::try_from(line["line"].as_u64().unwrap()).unwrap();
        let text = root.read("memory/weekly/2026-W10.md");
        assert_eq!(text.lines().nth(number - 1), line["text"].as_str());
    }
}

#[test]
fn blame_explains_files_without_history() {
    let root = Root::small();
    root.write("memory/weekly/2026-W09.md", "# Mine\n\n- a\n");
    let ran = root.run(&["blame", "2026-W09"]).ok();
    assert!(ran.stdout.contains(") - a") && ran.stderr.contains("its lines is unknown"), "{ran}");
    insta::assert_snapshot!(root.run(&["blame", "2026-03-03"]), @r"
    $ memoird blame 2026-03-03
    ! error: `memory/2026-03-03.md` is not a generated file
    !   try: memoird history memory/2026-03-03.md
    !   try: memoird trace --up memory/2026-03-03.md:1
    [exit 2]
    ");
    let ran = root.run(&["blame", "2026-W30"]);
    assert_eq!(ran.code, 2, "{ran}");
}
