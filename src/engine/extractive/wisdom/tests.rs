//! Which statements become entries, and what happens to existing ones.

use std::{collections::BTreeMap, path::PathBuf};

use chrono::NaiveDate;

use super::*;
use crate::{
    memory::{
        hash::ContentHash,
        item::{Item, SummarySection},
        log::DailyLog,
        period::Period,
        typed::{MemoryType, TypedMemory},
    },
    privacy::{self, SanitizedLog},
};

/// Returns one log per day from 1 April 2026 on, with these texts.
fn logs(days: &[&str]) -> Vec<SanitizedLog> {
    days.iter()
        .enumerate()
        .map(|(i, text)| {
            let stem = format!("2026-04-{:02}", i + 1).parse().unwrap();
            privacy::sanitize(
                &DailyLog::parse(stem, text.as_bytes()).unwrap(),
                &privacy::PrivacyRules::default(),
            )
        })
        .collect()
}

fn edits(days: &[&str], entries: &[WisdomEntry], memories: &[TypedMemory]) -> Vec<WisdomOp> {
    let input = DistillInput {
        month: "2026-04".parse::<Period>().unwrap(),
        items: &[],
        logs: &logs(days),
        entries,
        memories,
        categories: &[],
        check: &|_| Ok(()),
    };
    let ops = distill(&input);
    assert_eq!(ops, distill(&input), "the same input gives the same edits");
    ops
}

/// Prints edits one per line, in the notation of the tests below.
fn print(ops: &[WisdomOp]) -> Vec<String> {
    ops.iter()
        .map(|op| match op {
            WisdomOp::Add { text, citation, .. } => format!("+ {text} [{citation}]"),
            WisdomOp::Merge { id, words: Some((_, text)), citation, .. } => {
                format!("~ {id} {text} [{citation}]")
            }
            WisdomOp::Merge { id, words: None, citation, .. } => format!("~ {id} [{citation}]"),
            WisdomOp::Drop { id, reason } => format!("- {id} {reason}"),
        })
        .collect()
}

#[track_caller]
fn check(days: &[&str], expected: &[&str]) {
    assert_eq!(print(&edits(days, &[], &[])), expected, "{days:?}");
}

fn entry(id: &str, title: &str, text: &str, last: &str) -> WisdomEntry {
    let day: NaiveDate = last.parse().unwrap();
    WisdomEntry {
        title: title.to_owned(),
        text: text.to_owned(),
        category: None,
        meta: (!id.is_empty()).then(|| WisdomEntryMeta {
            id: id.to_owned(),
            hash: ContentHash::of(text).hex8(),
            sources: format!("{last}:1").parse().unwrap(),
            lines: BTreeMap::new(),
            first_seen: day,
            last_reinforced: day,
        }),
        raw: String::new(),
        had_comment: false,
        dropped_above: 0,
    }
}

fn memory(kind: MemoryType, name: &str, body: &str, source: &str) -> TypedMemory {
    TypedMemory {
        file_name: PathBuf::from("feedback_x.md"),
        kind,
        name: name.to_owned(),
        description: String::new(),
        created: None,
        updated: None,
        sources: vec![(source.parse().unwrap(), String::new())],
        supersedes: None,
        recorded_body: None,
        recorded_description: None,
        items: Vec::new(),
        by_model: Vec::new(),
        other_keys: crate::memory::frontmatter::OtherKeys::default(),
        body: body.to_owned(),
    }
}

const BLOCK: &str = "- Tuesday evenings are reserved for basketball practice";

#[test]
fn statements_on_three_days_become_entries() {
    check(&[BLOCK, BLOCK], &[]);
    check(
        &[BLOCK, "- else", BLOCK, BLOCK],
        &[
            "+ Tuesday evenings are reserved for basketball practice [2026-04-01:1; 2026-04-03:1; 2026-04-04:1]",
        ],
    );
    // Two occurrences on one day count once; the wording may vary.
    check(&[&format!("{BLOCK}\n\n{BLOCK}"), BLOCK], &[]);
    let other = "Basketball practice: Tuesday evenings are reserved.";
    check(
        &[BLOCK, other, BLOCK],
        &[
            "+ Tuesday evenings are reserved for basketball practice [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]",
        ],
    );
}

#[test]
fn long_sentences_that_recur_unchanged_do_not_become_entries() {
    let copied = "- Every report must reach Ana before nine in the morning";
    check(&[copied; 4], &[]);
    let varied = "- Before nine in the morning every report must reach Ana";
    let expected = "+ Every report must reach Ana before nine in the morning \
                    [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]";
    check(&[copied, varied, "- Every report must reach Ana before nine each morning"], &[expected]);
}

#[test]
fn states_steps_and_stories_do_not_become_entries() {
    for line in [
        "- No calendar changes made, all blocks protected",
        "- Kept the protected blocks as they stand",
        "- Await the approval that the policy requires",
        "- I always check the protected blocks first",
        "- Ana was asked to keep the limit at 40",
        "- The limit is still under review by the board",
        "- 214 tests pass, at most one skipped",
        "- [ ] Keep the limit under 40 at all times",
        "### Next steps\n- Every report must reach Ana by nine",
        "- Travel: 2026-04-10 to 2026-04-12, at most a day longer",
        "- See https://example.org for the upload limit",
        "> Every report must reach Ana by nine",
        "```\nEvery report must reach Ana by nine\n```",
        "- the weather stayed dry and rather mild",
    ] {
        check(&[line; 5], &[]);
    }
}

#[test]
fn the_newest_value_wins() {
    let at = |time: &str| format!("- The briefing stays at {time} on workdays");
    let (old, new) = (at("6:30"), at("7:15"));
    check(&[&old, &old, &old, &new], &["+ The briefing stays at 7:15 on workdays [2026-04-04:1]"]);
    check(
        &[&old, &new, &old, &new],
        &["+ The briefing stays at 7:15 on workdays [2026-04-02:1; 2026-04-04:1]"],
    );
    // Values on the same day are two facts.
    let both = format!("{old}\n{new}");
    check(
        &[&both, &both, &both],
        &[
            "+ The briefing stays at 6:30 on workdays [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]",
            "+ The briefing stays at 7:15 on workdays [2026-04-01:2; 2026-04-02:2; 2026-04-03:2]",
        ],
    );
    // A value that differs each day is a date, not a fact.
    let days: Vec<String> = (1..8).map(|n| at(&format!("{n}:05"))).collect();
    check(&days.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
}

#[test]
fn a_line_marked_keep_becomes_an_entry_on_its_first_day() {
    check(
        &["- The vault code changes every quarter #keep"],
        &["+ The vault code changes every quarter [2026-04-01:1]"],
    );
    check(
        &[
            "The office moved last year.\nThe vault code changes every quarter. #keep\nThe rest is old news.",
        ],
        &["+ The vault code changes every quarter. [2026-04-01:2]"],
    );
    check(&["> The vault code changes every quarter #keep"], &[]);
    check(&["- Write `#keep` at the end of the line"], &[]);
}

#[test]
fn repetition_reinforces_an_entry() {
    let standing = [entry(
        "w1",
        "Basketball",
        "Tuesday evenings are reserved for basketball practice.",
        "2026-03-09",
    )];
    let ops = edits(&["- else", BLOCK], &standing, &[]);
    assert_eq!(print(&ops), ["~ w1 [2026-04-02:1]"]);
    // Lines that already counted do not count again.
    let counted = [entry(
        "w1",
        "Basketball",
        "Tuesday evenings are reserved for basketball practice.",
        "2026-04-02",
    )];
    assert_eq!(edits(&["- else", BLOCK], &counted, &[]), []);
    // A user's entry is never changed, and no duplicate is added.
    let own = [entry(
        "",
        "Basketball",
        "Tuesday evenings are reserved for basketball practice.",
        "2026-03-09",
    )];
    assert_eq!(edits(&[BLOCK, BLOCK, BLOCK], &own, &[]), []);
}

#[test]
fn a_newer_value_updates_an_entry() {
    let standing =
        [entry("w1", "Morning briefing", "The briefing stays at 6:30 on workdays.", "2026-03-20")];
    let new = "- The briefing stays at 7:15 on workdays";
    let ops = edits(&[new, new, new], &standing, &[]);
    assert_eq!(
        print(&ops),
        ["~ w1 The briefing stays at 7:15 on workdays [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]"]
    );
    // While the old value still occurs, the new one is about something else.
    let both = format!("{new}\n- The briefing stays at 6:30 on workdays");
    assert_eq!(
        print(&edits(&[&both, &both, &both], &standing, &[])),
        [
            "~ w1 [2026-04-01:2; 2026-04-02:2; 2026-04-03:2]",
            "+ The briefing stays at 7:15 on workdays [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]",
        ]
    );
}

#[test]
fn typed_memories_that_guide_become_entries() {
    let body = "Always squash before merging.\n\n**Why:** the release notes list every commit";
    let rule = memory(MemoryType::Feedback, "Squash before merging", body, "2026-04-01:1");
    let ops = edits(&["- else"], &[], std::slice::from_ref(&rule));
    assert_eq!(
        print(&ops),
        ["+ Always squash before merging — the release notes list every commit [2026-04-01:1]"]
    );
    assert!(matches!(&ops[0], WisdomOp::Add { title, .. } if title == "Squash before merging"));
    // Not from a quote, without sources, or for a single choice.
    assert_eq!(edits(&["> Always squash"], &[], std::slice::from_ref(&rule)), []);
    let deadline =
        memory(MemoryType::Project, "Launch", "The launch date is 14 May 2026.", "2026-04-01:1");
    let link = memory(MemoryType::Reference, "Docs", "Docs: https://docs.example", "2026-04-01:1");
    let unsourced = TypedMemory { sources: Vec::new(), ..rule };
    assert_eq!(edits(&["- else"], &[], &[deadline, link, unsourced]), []);
}

#[test]
fn unrepeated_entries_are_proposed_for_removal_last() {
    let entries = [
        entry("w1", "Old", "Backups run from the east wing server room.", "2025-12-20"),
        entry("w2", "Recent", "Invoices need two signatures from finance.", "2026-02-15"),
        entry("w3", "Older", "Visitors sign the red book at the door.", "2025-11-20"),
        entry("", "Mine", "A person wrote this long ago.", "2025-01-01"),
    ];
    let ops = edits(&[BLOCK, BLOCK, BLOCK], &entries, &[]);
    assert_eq!(
        print(&ops)[1..],
        ["- w3 not reinforced since 2025-11-20", "- w1 not reinforced since 2025-12-20",]
    );
}

#[test]
fn a_month_adds_few_entries_and_no_duplicates() {
    let text = "- Ladders must hang on the wall
- Printers should sleep overnight
- Invoices always need a stamp
- Visitors must sign the book
- Parcels should wait downstairs
- Contracts never leave the safe
- Fire drills must happen quarterly
- Taxis should be ordered early
- Plants always get rainwater
- Keys never hang outside";
    let ops = edits(&[text, text, text], &[], &[]);
    assert_eq!(ops.len(), ADDS_MAX);
    let near = "- Badges must be worn in the hall\n- In the hall badges must be worn";
    assert_eq!(edits(&[near, near, near], &[], &[]).len(), 1);
}

#[test]
fn a_bullet_corrected_by_a_person_wins() {
    let days = logs(&["- The upload limit is 40 MB"; 3]);
    let corrected = Item {
        text: "The upload limit is 50 MB".to_owned(),
        citation: Some("2026-04-01:1; 2026-04-02:1".parse().unwrap()),
    };
    let ops = distill(&DistillInput {
        month: "2026-04".parse().unwrap(),
        items: &[(Some(SummarySection::Themes), corrected)],
        logs: &days,
        entries: &[],
        memories: &[],
        categories: &["Team".to_owned(), "Facts & limits".to_owned()],
        check: &|_| Ok(()),
    });
    let [WisdomOp::Add { text, category, .. }] = ops.as_slice() else { panic!("{ops:?}") };
    assert_eq!(text, "The upload limit is 50 MB");
    assert_eq!(category.as_deref(), Some("Facts & limits"));
}

proptest::proptest! {
    #[test]
    fn entries_contain_only_words_of_their_lines(picks in proptest::collection::vec(0usize..12, 1..40)) {
        let pieces = [
            "- ", "Ana must ", "always ", "reserved ", "até às ", "9:30 ", "10:30 ", "\n", "日本 ", "blue box ", "— ", "#keep ",
        ];
        let text: String = picks.iter().map(|&i| pieces[i]).collect();
        let days = [text.as_str(); 4];
        let logs = logs(&days);
        for op in edits(&days, &[], &[]) {
            let WisdomOp::Add { text, title, citation, .. } = op else { continue };
            let cited = citation.addresses().map(|it| {
                let log = logs.iter().find(|log| *log.stem() == it.stem).unwrap();
                log.line(it.line).unwrap().text().to_owned()
            });
            let source = WordList::of(&cited.collect::<Vec<_>>().join(" "));
            for word in WordList::of(&format!("{text} {title}")).iter() {
                proptest::prop_assert!(source.iter().any(|it| it == word), "{word}");
            }
        }
    }
}

#[test]
fn entries_are_found_in_other_languages() {
    check(
        &["- Dienstagabend bleibt für das Training reserviert"; 3],
        &[
            "+ Dienstagabend bleibt für das Training reserviert [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]",
        ],
    );
    check(
        &["- Le stock doit toujours dépasser vingt caisses"; 3],
        &[
            "+ Le stock doit toujours dépasser vingt caisses [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]",
        ],
    );
    check(&["- Keine Änderungen am Kalender, alles bleibt geschützt"; 3], &[]);
    check(&["- Se envió el informe semanal al director"; 3], &[]);
}
