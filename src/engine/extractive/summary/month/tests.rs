//! Which bullets of its weeks a month has, and in which order.

use super::super::tests::{budget, log, print, summarized};
use crate::{
    engine::WeekSource,
    memory::{
        item::{Item, SummarySection},
        period::{Grain, Period},
    },
    privacy::SanitizedLog,
};

/// Returns a weekly file for each week of logs, with each line as a bullet of a section.
fn weeks(days: &[(&str, &[(SummarySection, &str)])]) -> (Vec<SanitizedLog>, Vec<WeekSource>) {
    let (mut logs, mut weeks) = (Vec::new(), Vec::<WeekSource>::new());
    for (day, lines) in days {
        let items: Vec<String> = lines.iter().map(|(_, it)| format!("- {it}\n")).collect();
        let text = items.concat();
        logs.push(log(day, &text));
        let period = Period::containing(Grain::Week, day.parse().unwrap());
        if weeks.last().is_none_or(|it| it.period != period) {
            weeks.push(WeekSource { period, items: Vec::new() });
        }
        let items = (1..).zip(*lines).map(|(line, (section, text))| {
            (Some(*section), Item::parse(&format!("{text} [{day}:{line}]")))
        });
        weeks.last_mut().unwrap().items.extend(items);
    }
    (logs, weeks)
}

const OUTCOME: SummarySection = SummarySection::KeyOutcomes;
const CONTEXT: SummarySection = SummarySection::Context;
const DECISION: SummarySection = SummarySection::Decisions;
const OPEN: SummarySection = SummarySection::BlockersAndOpenItems;

#[test]
fn a_month_tells_of_each_topic_from_its_first_to_its_last_state() {
    let (logs, weeks) = weeks(&[
        (
            "2026-04-01",
            &[
                (CONTEXT, "The new TideBoard shows the tides of eleven piers on one screen"),
                (OUTCOME, "Painted the wall of the workshop in the old harbour with two coats"),
            ],
        ),
        (
            "2026-04-08",
            &[
                (OUTCOME, "Ordered the cable of the TideBoard from the foundry in Lauben"),
                (OUTCOME, "Moved the GaugeMirror to the cellar of the pilot station"),
            ],
        ),
        (
            "2026-04-15",
            &[
                (DECISION, "TideBoard stays on batteries, because the pier has no mains"),
                (CONTEXT, "The GaugeMirror lost its second disk during the storm of the night"),
                (OPEN, "Ask the harbour office for a key of the upper lock"),
            ],
        ),
        (
            "2026-04-22",
            &[
                (OUTCOME, "Switched the TideBoard off for good after the ferry line closed"),
                (OUTCOME, "Gave the GaugeMirror a new disk and copied all tables back"),
                (OPEN, "Send the invoice of the winter storage to the sailing club"),
            ],
        ),
    ]);
    let text = print(&summarized("2026-04", &logs, &weeks, budget(3_000)).unwrap());
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    let order = [
        "# Themes",
        "shows the tides",
        "Ordered the cable",
        "TideBoard stays",
        "Switched the TideBoard off",
        "Moved the GaugeMirror",
        "lost its second disk",
        "Gave the GaugeMirror",
        "# Milestones",
        "Painted the wall",
        "# Carried Forward",
        "key of the upper lock",
        "invoice of the winter storage",
    ];
    assert!(order.map(at).is_sorted(), "{text}");
    assert!(text.contains("mains [2026-04-15:1]\n"), "a bullet is that of the week: {text}");
}

#[test]
fn names_of_files_come_last() {
    let (logs, weeks) = weeks(&[
        (
            "2026-04-01",
            &[
                (OUTCOME, "`src/tide/export.rs`, `src/tide/import.rs` and `tests/tide/export.rs`"),
                (OUTCOME, "Gave the tide tables to the pilots, who read them on paper"),
            ],
        ),
        ("2026-04-09", &[(OUTCOME, "Hung the second lamp of the north pier over the stairs")]),
    ]);
    let text = print(&summarized("2026-04", &logs, &weeks, budget(160)).unwrap());
    assert!(text.contains("pilots") && text.contains("second lamp"), "{text}");
    assert!(!text.contains("export.rs"), "{text}");
}
