//! `memoird coverage`.

use crate::support::Root;

#[test]
fn coverage_prints_totals_and_tables() {
    let root = Root::small();
    insta::assert_snapshot!(root.run(&["coverage"]), @r"
    $ memoird coverage
    ! error: there are no summaries yet
    !   try: memoird compact
    [exit 2]
    ");
    root.run(&["compact"]).ok();
    insta::assert_snapshot!(root.run(&["missed"]), @r"
    $ memoird missed
    ! 2026-W11: its summary covers 1 of 1 lines (100%), 0 are not covered
    ");
    insta::assert_snapshot!(root.run(&["coverage", "--all"]), @r"
    $ memoird coverage --all
     PERIOD    LINES  COVERED  NOT COVERED  SHARE
     2026-W10  3      3        0            100%
     2026-W11  1      1        0            100%
     2026-03   4      4        0            100%
    ");
    insta::assert_snapshot!(root.run(&["coverage", "2026-W20"]), @r"
    $ memoird coverage 2026-W20
    ! error: there are no logs of 2026-W20
    !   hint: first weekly summary: 2026-W10, last: 2026-W11
    !   try: memoird status  # shows what there is
    [exit 2]
    ");
}

#[test]
fn every_line_is_covered_or_listed() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let newest = root.run(&["coverage", "--json"]).ok().json_as("coverage");
    assert_eq!(newest["period"], "2026-W14");
    let all = root.run(&["coverage", "--all", "--json"]).ok().json_as("coverage");
    let all = all["periods"].as_array().unwrap();
    assert_eq!(all.len(), 13 + 3);
    for row in all {
        let one = root.run(&["coverage", "--json", row["period"].as_str().unwrap()]);
        let one = one.ok().json_as("coverage");
        let uncovered = one["uncovered"].as_array().unwrap();
        let lines = one["lines"].as_u64().unwrap();
        assert_eq!(one["covered"].as_u64().unwrap() + uncovered.len() as u64, lines);
        assert_eq!(row["uncovered"], uncovered.len());
        for line in uncovered {
            let log = root.read(line["path"].as_str().unwrap());
            let at = usize::try_from(line["line"].as_u64().unwrap()).unwrap();
            // Only `review` shows quarantined lines.
            let is_quarantined = line["reason"] == "held for review";
            let text = if is_quarantined { "" } else { log.lines().nth(at - 1).unwrap() };
            assert_eq!(line["text"], text);
        }
    }
}

#[test]
fn the_lines_of_a_deleted_bullet_are_uncovered() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let path = "memory/weekly/2026-W10.md";
    let text = root.read(path);
    let line = text.lines().find(|it| it.ends_with("[2026-03-03:4]")).unwrap();
    root.write(path, &text.replace(&format!("{line}\n"), ""));
    let report = root.run(&["coverage", "--json", "2026-03-03"]).ok().json_as("coverage");
    assert_eq!((&report["lines"], &report["covered"]), (&3.into(), &2.into()));
    assert_eq!(report["uncovered"][0]["line"], 4);
    assert_eq!(report["uncovered"][0]["reason"], "deleted");
}

#[test]
fn uncovered_lines_are_exported_as_dot_and_prov() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let json = root.run(&["coverage", "--format", "json", "2026-W13"]).ok().json_as("coverage");
    let missed = json["uncovered"].as_array().unwrap();
    assert!(!missed.is_empty());
    let dot = root.run(&["coverage", "--format", "dot", "2026-W13"]).ok().stdout;
    assert!(dot.starts_with("digraph") && dot.contains("memory/weekly/2026-W13.md"), "{dot}");
    let prov = root.run(&["coverage", "--format", "prov", "2026-W13"]).ok().json();
    let left_out = |it: &&serde_json::Value| it["memoird:leftOut"].is_string();
    let exported = prov["entity"].as_object().unwrap().values().filter(left_out).count();
    assert_eq!(exported, missed.len());
    for line in missed {
        let address = format!("{}:{}", line["path"].as_str().unwrap(), line["line"]);
        assert!(dot.contains(&format!("\"{address}\"")), "{address} {dot}");
    }
    // The job used the logs and generated the file.
    assert_eq!(prov["wasGeneratedBy"].as_object().unwrap().len(), 1, "{prov:#}");
    assert!(!prov["used"].as_object().unwrap().is_empty());
    assert_eq!(root.run(&["coverage", "--all", "--format", "dot"]).code, 2);
}

#[test]
fn what_programs_wrote_is_listed_with_its_reason() {
    let root = Root::small();
    root.write(
        "memory/2026-03-11.md",
        "- Moved the mail server to Hetzner\n- 09:30 nothing new, HEARTBEAT_OK\n\n\
         ## Light Sleep\n- Candidate: Mara prefers tea\n  - confidence: 0.62\n",
    );
    root.run(&["compact"]).ok();
    let found = root.run(&["coverage", "2026-W11", "--json"]).ok().json_as("coverage");
    let reason_of = |line: u64| {
        let lines = found["uncovered"].as_array().unwrap();
        let line = lines
            .iter()
            .find(|it| it["path"] == "memory/2026-03-11.md" && it["line"].as_u64() == Some(line));
        line.map(|it| it["reason"].as_str().unwrap().to_owned())
    };
    assert_eq!(reason_of(2).as_deref(), Some("heartbeat"));
    assert_eq!(reason_of(5).as_deref(), Some("dream report"));
    let week = root.read("memory/weekly/2026-W11.md");
    assert!(week.contains("Hetzner") && !week.contains("prefers tea"), "{week}");
}
