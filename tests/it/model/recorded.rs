//! What becomes of true replies: how many of their items the checks refuse, and what the requests cost.
//!
//! The replies to the sample journal are in `tests/replies`. With `MEMOIRD_REPLIES` (a recording) and `MEMOIRD_LOGS`
//! (a folder of logs) set, `of_another_folder` measures those.

use std::{env, fs, path::Path};

use serde_json::{Value, json};

use super::{Wire, Workspace};
use crate::support::{recorded::Recording, skipped};

/// The figures of a run.
struct Measured {
    items: usize,
    /// Items that were sent back, without those that only left out an amount.
    refused_at_first: usize,
    refused: usize,
    /// The characters of all requests per character of the logs, and those of second tries.
    sent: f64,
    sent_again: f64,
    report: Value,
}

/// Plays a recording on a folder of logs until nothing is due.
#[expect(clippy::print_stdout, reason = "prints the figures for --nocapture")]
fn measure(recording: &Path, logs: &Path, now: &str) -> Measured {
    let recording = Recording::read(recording);
    let items = recording.items();
    let mut workspace = Workspace::new(Wire::Openai, recording.play());
    workspace.set("/compaction", json!({ "whole_below_chars": 0 }));
    workspace.root.write("memory/2026-04-07.md", "");
    fs::remove_file(workspace.root.path("memory/2026-04-07.md")).unwrap();
    let mut chars = 0;
    for entry in fs::read_dir(logs).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("20") {
            let text = fs::read_to_string(&path).unwrap();
            chars += text.chars().count();
            workspace.root.write(&format!("memory/{name}"), &text);
        }
    }
    workspace.root.set_now(now);
    let report = workspace.run(&["compact", "--json"]).json_as("compact");
    let sum = |key: &str| -> u64 {
        report["jobs"].as_array().unwrap().iter().filter_map(|it| it[key].as_u64()).sum()
    };
    let (mut sent, mut again, mut faults) = (0, 0, 0);
    for request in workspace.server.requests() {
        let turns = request.turns();
        let chars = request.system().chars().count()
            + turns.iter().map(|it| it.chars().count()).sum::<usize>();
        sent += chars;
        if request.is_repair() {
            again += chars;
            if env::var("MEMOIRD_REPAIRS").is_ok() {
                // To be answered and added to the recording.
                println!("{}", turns[0]);
            }
            let lines = turns[0].lines().filter(|it| it.starts_with("   Fault: "));
            let refused = lines.filter(|it| !it.starts_with("   Fault: it leaves out"));
            for line in refused {
                println!("{line}");
                faults += 1;
            }
        }
    }
    let share = |of: usize| {
        f64::from(u32::try_from(of).unwrap()) / f64::from(u32::try_from(chars).unwrap())
    };
    let measured = Measured {
        items,
        refused_at_first: faults,
        refused: usize::try_from(sum("rejected")).unwrap(),
        sent: share(sent),
        sent_again: share(again),
        report,
    };
    println!(
        "{} items, {} refused at first, {} in the end; {:.2} of the logs sent, {:.2} in second tries",
        measured.items,
        measured.refused_at_first,
        measured.refused,
        measured.sent,
        measured.sent_again
    );
    measured
}

fn journal(name: &str) -> Measured {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let logs = tests.join("data/journal").join(name).join("memory");
    measure(&tests.join(format!("replies/{name}.jsonl")), &logs, "2026-05-20T09:00:00+00:00")
}

/// The most items of a journal that are refused at first, and in the end, in percent.
const REFUSED_MAX: [(&str, usize, usize); 2] = [("mara", 6, 1), ("jonas", 6, 3)];

#[test]
fn true_replies_get_through() {
    for (name, at_first, in_the_end) in REFUSED_MAX {
        let found = journal(name);
        // A week of one bullet may lose it.
        assert!(found.report["failed"].as_u64() <= Some(1), "{name}: {}", found.report["failed"]);
        assert!(found.items > 100, "{name}");
        let most = |percent: usize| found.items * percent / 100;
        assert!(found.refused_at_first <= most(at_first), "{name}: {}", found.refused_at_first);
        assert!(found.refused <= most(in_the_end), "{name}: {}", found.refused);
    }
}

#[test]
fn of_another_folder() {
    let (Ok(replies), Ok(logs)) = (env::var("MEMOIRD_REPLIES"), env::var("MEMOIRD_LOGS")) else {
        skipped("MEMOIRD_REPLIES and MEMOIRD_LOGS name no recording");
        return;
    };
    let now =
        env::var("MEMOIRD_REPLIES_NOW").unwrap_or_else(|_| "2026-05-20T09:00:00+00:00".into());
    measure(Path::new(&replies), Path::new(&logs), &now);
}
