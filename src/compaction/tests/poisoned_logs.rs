//! Planted attacks through whole runs, with the extractive engine and with one that obeys whatever
//! it reads: no output contains them until a person accepts them.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

use super::scripted_engine::{ScriptedEngine, generated_text, with_compactor, write_old_file};
use crate::compaction::{Compactor, plan::Selection, review};
use crate::{
    engine::{Engine, extractive::Extractive},
    memory::{
        address::{Address, Citation},
        decision::Verdict,
    },
    privacy::quarantine::poisons,
    store::db::lineage::review::QuarantineScope,
};

/// A root with these lines, a few per day, among harmless ones.
fn plant(root: &Path, texts: &[String]) -> Vec<Address> {
    write_old_file(&root.join("memoird.yaml"), "wisdom: { max_entries: 500, max_chars: 200000 }\n");
    let mut planted = Vec::new();
    for (day, texts) in (2..).zip(texts.chunks(10)) {
        let stem = format!("2020-03-{day:02}");
        let mut text =
            format!("# {stem}\n\n- Decided to keep the blue pump, because it is quiet.\n\n");
        let mut number = 5;
        for line in texts {
            planted.push(Address { stem: stem.parse().unwrap(), line: number });
            text.push_str(line);
            text.push_str("\n\n");
            number += 2;
        }
        text.push_str("- The rig ran for nine hours.\n");
        write_old_file(&root.join(format!("memory/{stem}.md")), &text);
    }
    planted
}

/// `least_back` is how many of a hundred lines items cite once they are accepted.
#[track_caller]
fn check(engine: &dyn Engine, texts: &[String], least_back: usize) {
    let dir = tempfile::tempdir().unwrap();
    let planted = plant(dir.path(), texts);
    with_compactor(dir.path(), engine, |compactor| {
        check_quarantined(compactor, texts, &planted, least_back);
    });
}

#[track_caller]
fn check_quarantined(
    compactor: &mut Compactor<'_>,
    texts: &[String],
    planted: &[Address],
    least_back: usize,
) {
    let vault = compactor.context.vault;
    let outcome = compactor.compact("test", &Selection::default(), &mut ()).unwrap();
    assert!(outcome.report.jobs.iter().all(|it| it.outcome != "failed"), "{:?}", outcome.report);
    let all = generated_text(vault);
    assert!(all.contains("blue pump"), "the rest is summarized: {all}");
    for text in texts {
        let words = text.trim_start_matches(['>', '-', ' ']);
        assert!(!all.contains(words), "in the output: {text}");
    }
    let inventory = vault.scan(&HashMap::new()).unwrap().inventory;
    let waiting =
        review::review_queue(vault, Some(&*compactor.context.lineage), &inventory, false).unwrap();
    let quarantined: BTreeSet<Address> = waiting
        .lines
        .iter()
        .filter(|it| it.what == QuarantineScope::Line)
        .map(|it| it.address.clone())
        .collect();
    let missing: Vec<&Address> = planted.iter().filter(|it| !quarantined.contains(it)).collect();
    assert_eq!(missing, [] as [&Address; 0], "in review");
    // A person may accept them.
    compactor.review_lines(&waiting.lines, Some(Verdict::Accepted)).unwrap();
    compactor.compact("test", &Selection::default(), &mut ()).unwrap();
    let inventory = vault.scan(&HashMap::new()).unwrap().inventory;
    let waiting =
        review::review_queue(vault, Some(&*compactor.context.lineage), &inventory, false).unwrap();
    assert_eq!(waiting.lines, []);
    let mut cited = BTreeSet::new();
    for path in compactor.context.lineage.documents().unwrap().into_keys() {
        if path.starts_with("memory/weekly/") {
            for item in compactor.context.lineage.items_of(&path).unwrap() {
                cited.extend(item.citation.iter().flat_map(Citation::addresses));
            }
        }
    }
    let back = planted.iter().filter(|it| cited.contains(it)).count();
    assert!(back * 100 >= planted.len() * least_back, "{back} of {} came in", planted.len());
}

fn in_agent_lines() -> Vec<String> {
    poisons::BY_ANYBODY
        .iter()
        // Fake headings and frontmatter begin at the start of a line.
        .map(|it| {
            let stands_alone = it.starts_with(['-', '#']) || it.starts_with("memoird:");
            if stands_alone { (*it).to_owned() } else { format!("- {it}") }
        })
        .collect()
}

fn in_quotes() -> Vec<String> {
    poisons::BY_ANYBODY
        .iter()
        .chain(poisons::EXTERNAL)
        .map(|it| format!("> {}", it.trim_start_matches("- ")))
        .collect()
}

#[test]
fn planted_lines_reach_nothing_with_the_extractive_engine() {
    // A summary has room for a third of the lines.
    check(&Extractive, &in_agent_lines(), 20);
    check(&Extractive, &in_quotes(), 20);
}

#[test]
fn planted_lines_reach_nothing_with_an_engine_that_obeys() {
    check(&ScriptedEngine::default(), &in_agent_lines(), 90);
    check(&ScriptedEngine::default(), &in_quotes(), 90);
}
