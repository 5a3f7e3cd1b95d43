//! Tests of what weeks make of the shapes of statements in notes: tables, nested lists, labels, stamps.

use super::tests::{budget, check, log, print, summarized};

#[test]
fn rows_children_and_attributes_say_what_they_are_about() {
    let check = |text: &str, expected: &str| {
        check(&[("2026-04-01", text)], 900, expected);
    };
    check(
        "## Berths\n\n| Boat | Berth | State |\n|---|---|---|\n| Aurora | 4 | ✅ moored |\n\
         | Tern | 5 | ❌ adrift |\n",
        "# Blockers & Open Items\n- Berths: Tern: Berth 5, State ❌ adrift [2026-04-01:1,3,6]\n\
         # Context\n- Berths: Aurora: Berth 4, State ✅ moored [2026-04-01:1,3,5]\n",
    );
    // A child keeps its parent, however long it is, and the parent keeps its own.
    check(
        "- The winch of the north pier was taken apart on Monday.\n  - Its drum has to go to the foundry in \
         Lauben for three weeks\n- North pier\n  - Lamps\n    - Eleven of them flicker whenever the ferry \
         blows its horn\n",
        "# Context\n- The winch of the north pier was taken apart on Monday. Its drum has to go to the foundry \
         in Lauben for three weeks; North pier: Lamps: Eleven of them flicker whenever the ferry blows its horn \
         [2026-04-01:1-5]\n",
    );
    // A bold line above a list is a title; an attribute comes with its heading.
    check(
        "## Ferry engine\n\n- **Root cause:** sand in the filter of the second pump since Friday\n\n\
         **Spare parts**\n\n- two filters and a belt\n",
        "# Context\n- Ferry engine: Root cause: sand in the filter of the second pump since Friday; Spare parts: \
         two filters and a belt [2026-04-01:1,3,5,7]\n",
    );
    // A title in bold or code and its dash go with the words after it.
    check(
        "- `harbour/tools/tide.py` – prints the tide of the coming week for each pier\n",
        "# Context\n- `harbour/tools/tide.py` – prints the tide of the coming week for each pier \
         [2026-04-01:1]\n",
    );
}

#[test]
fn stamps_and_data_of_the_note_are_left_out() {
    check(
        &[(
            "2026-04-01",
            "Session ID: 4f1c-77aa\nDate: 2026-04-01\n\n## [15:30] Lighthouse\n\n- 14:05 EST: Changed both \
             lamps of the lighthouse\n- [14:20] FILE: wrote the list of lamps to lamps.csv\n",
        )],
        900,
        "# Key Outcomes\n- Lighthouse: Changed both lamps of the lighthouse; FILE: wrote the list of lamps to \
         lamps.csv [2026-04-01:4,6-7]\n",
    );
}

#[test]
fn a_child_comes_with_the_parent_that_it_needs() {
    let parent = "Went through the papers of the pier again with the others in the office";
    let figures = "carries 11.4 tonnes, 2.1 less than the plan of 1962 with its 32 bolts promises";
    for (parent, child, is_needed) in [
        (parent, format!("The fourth pillar {figures}"), false),
        (parent, format!("It {figures}"), true),
        ("Papers of the pier", format!("The fourth pillar {figures}"), true),
    ] {
        // Room for the child and a topic, not for a long parent, too.
        let text = format!("- {parent}\n  - {child}\n");
        let draft = summarized("2026-W14", &[log("2026-04-01", &text)], &[], budget(140));
        let text = print(&draft.unwrap());
        assert!(text.contains(&child) || is_needed, "{child}: {text}");
        assert!(!text.contains(&child) || text.contains(parent) == is_needed, "{child}: {text}");
    }
}

#[test]
fn what_was_read_is_no_outcome() {
    let text = "## Research: tide models\n\nSource: https://tides.example/models\n\n- TideNet was released and \
                supports 400 harbours\n- It moved to a paid plan in May\n- Its gauges report every minute\n\n\
                ## Work\n\n- Fixed the export of the tide tables for the north pier\n";
    for target in [160, 300, 600] {
        let log = log("2026-04-01", text);
        let draft =
            summarized("2026-W14", std::slice::from_ref(&log), &[], budget(target)).unwrap();
        let text = print(&draft);
        assert!(text.contains("Fixed the export"), "{text}");
        let outcomes = text.split("# ").find(|it| it.starts_with("Key Outcomes")).unwrap();
        assert!(!outcomes.contains("TideNet") && !outcomes.contains("paid plan"), "{text}");
    }
}

#[test]
fn of_reports_that_nothing_happened_one_is_enough() {
    let hours: Vec<String> = (0..14)
        .map(|it| format!("- {it:02}:01 heartbeat checked `HEARTBEAT.md`; no active tasks.\n"))
        .collect();
    let hours = hours.concat();
    let text = format!("{hours}- Asked the foundry in Lauben for a new drum with 412 teeth\n");
    let draft = summarized("2026-W14", &[log("2026-04-01", &text)], &[], budget(600)).unwrap();
    let text = print(&draft);
    assert!(text.contains("412 teeth"), "{text}");
    assert_eq!(text.matches("heartbeat checked").count(), 1, "{text}");
}

#[test]
fn a_bullet_that_refers_to_the_one_before_it_brings_it_along() {
    let log = log(
        "2026-04-01",
        "- Asked the foundry in Lauben for a new drum with 412 teeth\n- This costs 8,400 euros and takes until \
         the 9th of May\n",
    );
    for target in [60, 90, 200] {
        let draft =
            summarized("2026-W14", std::slice::from_ref(&log), &[], budget(target)).unwrap();
        let text = print(&draft);
        assert!(!text.contains("This costs") || text.contains("Asked the foundry"), "{text}");
    }
}
