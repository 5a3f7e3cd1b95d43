//! An engine that states a guess as a fact, through whole runs: its items are kept out of every
//! tier and counted, and the line is reported as uncovered.

use super::scripted_engine::{ScriptedEngine, generated_text, with_compactor, write_old_file};
use crate::{compaction::plan::Selection, memory::item::Tier};

/// `rejected` is how many items of each tier the checks reject.
#[track_caller]
fn check(said: fn(&str) -> String, guess: &str, rejected: u32) {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("memory/2020-03-03.md");
    write_old_file(
        &log,
        "- Decided to keep the blue pump, because it is quiet.\n- Maybe we move to Postgres in June.\n",
    );
    with_compactor(
        dir.path(),
        &ScriptedEngine { rephrase: said, ..ScriptedEngine::default() },
        |compactor| {
            let outcome = compactor.compact("test", &Selection::default(), &mut ()).unwrap();
            for tier in Tier::ALL {
                let mut jobs = outcome.report.jobs.iter().filter(|it| it.tier == tier.name());
                let job =
                    jobs.next().unwrap_or_else(|| panic!("{}: {:?}", tier.name(), outcome.report));
                assert_eq!(job.outcome, "written", "{job:?}");
                assert_eq!(job.figures.rejected, rejected, "{job:?}");
            }
            let week = outcome.report.jobs.iter().find(|it| it.tier == "weekly").unwrap();
            assert_eq!(week.figures.uncovered, rejected, "{week:?}");
            let left_out =
                compactor.context.lineage.uncovered_lines("memory/weekly/2020-W10.md").unwrap();
            let reported: Vec<String> =
                left_out.iter().map(|(at, why)| format!("{at} {why}")).collect();
            let expected: &[&str] = if rejected > 0 { &["2020-03-03:2 rejected"] } else { &[] };
            assert_eq!(reported, expected);
            let all = generated_text(compactor.context.vault);
            let said = |words: &str| all.matches(words).count();
            assert!(said("blue pump") >= 4, "in each tier: {all}");
            assert_eq!(said(guess) > 0, rejected == 0, "{all}");
            assert_eq!(said("move to Postgres"), said(guess), "{all}");
        },
    );
}

#[test]
fn a_guess_stated_as_a_fact_reaches_no_tier() {
    check(|it| it.replace("Maybe ", ""), "we move to Postgres", 1);
}

#[test]
fn a_guess_stated_as_a_guess_reaches_all_tiers() {
    check(str::to_owned, "Maybe we move to Postgres", 0);
    check(|it| it.replace("Maybe", "Perhaps"), "Perhaps we move to Postgres", 0);
}
