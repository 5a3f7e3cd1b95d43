//! False statements of a model, through the whole program: they reach no file, and the receipt,
//! `review`, and `coverage` report them. The grounding tests measure the check alone.

use serde_json::{Value, json};

use super::{WEEK, Wire, Workspace, replies::corrections};
use crate::support::server::{ModelRequest, Server, StopReason, valid_reply};

/// The log that the false statements are about.
const LOG: &str = "# Import

- Moved the importer to SQLite on 2026-04-02, since a crash then loses at most one row
- The parser took 3.2 s per GB on 38 GB of data
- Do not deploy on Fridays, said Alice
- Paid $420 to Fastmail for the year
- Build 4812 of the parser failed on line 77 of src/grammar.y
- Bob might move to Vienna in June
- The archive lies at https://archive.example/2026 since v2.4.1
";

/// True bullets, partly reworded.
const TRUE: [&str; 3] = [
    "- Moved the importer to SQLite on Apr 2, since a crash then loses at most one row [2026-04-07:3]",
    "- Paid 420 dollars to Fastmail for the year [2026-04-07:6]",
    "- Build 4812 of the parser failed on line 77 [2026-04-07:7]",
];

/// False bullets: the fault, the bullet, and the words that no file may contain.
const FALSE: [(&str, &str, &str); 9] = [
    ("a digit", "- The parser took 3.4 s per GB on 38 GB of data [2026-04-07:4]", "3.4 s"),
    ("a unit", "- The parser took 3.2 min per GB on 38 GB of data [2026-04-07:4]", "3.2 min"),
    ("a day", "- Moved the importer to SQLite on 2026-04-03 [2026-04-07:3]", "2026-04-03"),
    ("a name", "- Do not deploy on Fridays, said Carol [2026-04-07:5]", "Carol"),
    ("a not", "- Deploy on Fridays, said Alice [2026-04-07:5]", "- Deploy on Fridays"),
    (
        "an address",
        "- The archive lies at https://archive.example/2027 [2026-04-07:9]",
        "example/2027",
    ),
    ("a version", "- The archive lies elsewhere since v2.5.1 [2026-04-07:9]", "v2.5.1"),
    ("a might", "- Bob moves to Vienna in June [2026-04-07:8]", "Bob moves"),
    (
        "a line",
        "- Paid $420 to Fastmail for the year [2026-04-07:4]",
        "for the year [2026-04-07:4]",
    ),
];

/// Returns a reply with these bullets.
fn reply<'a>(bullets: impl IntoIterator<Item = &'a str>) -> String {
    let bullets: Vec<&str> = bullets.into_iter().collect();
    format!("### Decisions\n{}\n", bullets.join("\n"))
}

/// Returns a reply with these bullets as the corrections of the first items.
fn corrected<'a>(bullets: impl IntoIterator<Item = &'a str>) -> String {
    let items = bullets.into_iter().map(|bullet| {
        let (text, lines) = bullet.trim_end_matches(']').rsplit_once(" [").unwrap();
        json!({ "text": text.trim_start_matches("- "), "citations": lines })
    });
    corrections((1..).zip(items))
}

/// Returns a workspace whose server gives these two replies for a week and valid ones otherwise.
fn workspace(wire: Wire, first: String, second: String) -> Workspace {
    let server = Server::answering(move |request: &ModelRequest| {
        let is_week = request.system().contains("### Decisions");
        let text = match (is_week, request.is_repair()) {
            (true, _) => first.clone(),
            (_, true) => second.clone(),
            _ => valid_reply(request),
        };
        request.reply_with(&text, StopReason::Complete)
    });
    let workspace = Workspace::new(wire, server);
    workspace.root.write("memory/2026-04-07.md", LOG);
    workspace
}

fn bullets(workspace: &Workspace) -> Vec<String> {
    let week = workspace.root.files().remove(WEEK).unwrap_or_default();
    week.lines().filter(|it| it.starts_with("- ")).map(str::to_owned).collect()
}

/// Checks that the receipt, `review`, and `coverage` report these rejected bullets.
#[track_caller]
fn check_rejected(workspace: &Workspace, report: &Value, expected: &[&str]) {
    let job = &report["jobs"][0];
    assert_eq!(job["rejected"], expected.len(), "{job}");
    assert!(job["reason"].as_str().unwrap().contains("kept out: "), "{job}");
    let review = workspace.run(&["review", "--json"]).ok().json_as("review");
    let items = review["items"].as_array().unwrap();
    let texts: Vec<&str> = items.iter().map(|it| it["text"].as_str().unwrap()).collect();
    assert_eq!(items.len(), expected.len(), "{texts:?}");
    let coverage = workspace.run(&["coverage", "--json", "2026-W15"]).ok().json_as("coverage");
    let rejected: Vec<String> = coverage["uncovered"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["reason"] == "rejected")
        .map(|it| format!("{}", it["line"]))
        .collect();
    for bullet in expected {
        let (words, citation) = bullet.rsplit_once(" [").unwrap();
        assert!(texts.contains(&words.trim_start_matches("- ")), "{bullet}: {texts:?}");
        let line = citation.trim_end_matches(']').rsplit(':').next().unwrap();
        let is_covered = bullets(workspace).iter().any(|it| it.contains(&format!(":{line}]")));
        assert!(is_covered || rejected.contains(&line.to_owned()), "{bullet}: {rejected:?}");
    }
}

#[test]
fn faults_planted_twice_reach_no_file() {
    for wire in Wire::BOTH {
        let planted = FALSE.map(|it| it.1);
        let all = reply(TRUE.into_iter().chain(planted));
        let workspace = workspace(wire, all, corrected(planted));
        let compacted = workspace.compact();
        assert_eq!((compacted.ran.code, workspace.server.count()), (0, 2), "{}", compacted.ran);
        assert_eq!(bullets(&workspace), TRUE, "{}", compacted.ran);
        check_rejected(&workspace, &compacted.report, &planted);
        // The second request lists each false bullet once with its fault, and no true one.
        let repair_prompt = workspace.server.requests()[1].turns().concat();
        for (what, bullet, _) in FALSE {
            let words = bullet.trim_start_matches("- ").rsplit_once(" [").unwrap().0;
            assert!(repair_prompt.contains(&json!(words).to_string()), "{what}: {repair_prompt}");
        }
        assert_eq!(repair_prompt.matches("Fault: ").count(), FALSE.len(), "{repair_prompt}");
        // No file that an agent reads contains them, also after everything derived from the week is written.
        workspace.root.append("memory/2026-04-07.md", "\n");
        workspace.run(&["compact"]);
        for (path, text) in workspace.root.files() {
            let is_log = path.starts_with("memory/2026-") || path.starts_with(".memoird");
            for (what, _, words) in FALSE {
                assert!(is_log || !text.contains(words), "{what} in {path}: {text}");
            }
        }
    }
}

#[test]
fn each_single_fault_is_rejected_and_reported() {
    for (what, bullet, _) in FALSE {
        let workspace = workspace(Wire::Openai, reply([TRUE[0], bullet]), corrected([bullet]));
        let compacted = workspace.compact();
        assert_eq!(
            (compacted.ran.code, workspace.server.count()),
            (0, 2),
            "{what} {}",
            compacted.ran
        );
        assert_eq!(bullets(&workspace), [TRUE[0]], "{what} {}", compacted.ran);
        check_rejected(&workspace, &compacted.report, &[bullet]);
    }
}

#[test]
fn each_bullet_of_a_repair_is_judged_on_its_own() {
    let [digit, _, _, name, ..] = FALSE.map(|it| it.1);
    let repaired = "- The parser took 3.2 s per GB on 38 GB of data [2026-04-07:4]";
    let worse = "- Do not deploy on Mondays, said Carol [2026-04-07:5]";
    let more = "- Sold 731 licences to Fastmail [2026-04-07:6]";
    let workspace = workspace(
        Wire::Anthropic,
        reply([TRUE[0], TRUE[1], digit, name]),
        // Also an additional bullet, and one that was already accepted.
        corrected([repaired, worse, more, TRUE[0]]),
    );
    let compacted = workspace.compact();
    assert_eq!((compacted.ran.code, workspace.server.count()), (0, 2), "{}", compacted.ran);
    assert_eq!(bullets(&workspace), [TRUE[0], TRUE[1], repaired], "{}", compacted.ran);
    // What is refused is the last version of the one that did not become better.
    check_rejected(&workspace, &compacted.report, &[worse]);
}

#[test]
fn an_empty_repair_leaves_the_true_bullets() {
    let digit = FALSE[0].1;
    for second in ["", "Sorry.", "### Decisions\n", "<html>", "{\"items\": []}", "{\"items\": 3}"] {
        let workspace = workspace(Wire::Openai, reply([TRUE[0], digit]), second.to_owned());
        let compacted = workspace.compact();
        assert_eq!(
            (compacted.ran.code, workspace.server.count()),
            (0, 2),
            "{second} {}",
            compacted.ran
        );
        assert_eq!(bullets(&workspace), [TRUE[0]], "{second} {}", compacted.ran);
        check_rejected(&workspace, &compacted.report, &[digit]);
    }
}

#[test]
fn faults_in_statements_and_wisdom_are_rejected_and_listed() {
    let statement = json!({
        "kind": "state", "topic": "hosting", "text": "Paid $480 to Fastmail for the year.",
        "citations": "2026-03-10:6", "replaces": null,
    });
    let operation = json!({
        "op": "add", "id": null, "title": "Deploys", "text": "Deploy on Fridays, said Alice.",
        "category": null, "reason": "It lasts.", "citations": "2026-03-10:5",
    });
    let server = Server::answering(move |request: &ModelRequest| {
        let reply = match valid_reply(request) {
            reply if reply.starts_with("{\"operations\"") => {
                json!({ "operations": [operation] }).to_string()
            }
            reply if reply.starts_with("{\"statements\"") => {
                json!({ "statements": [statement] }).to_string()
            }
            reply => reply,
        };
        request.reply_with(&reply, StopReason::Complete)
    });
    let mut workspace = Workspace::new(Wire::Openai, server);
    workspace.set("/compaction/extract", json!(true));
    workspace.root.write("memory/2026-03-10.md", LOG);
    // The day alone first, so that its statements have a request of their own.
    workspace.run(&["compact", "extract", "--period", "2026-03-10"]).ok();
    workspace.run(&["compact", "--period", "2026-W11"]).ok();
    let last = workspace.run(&["compact", "--json"]);
    let wisdom = last.json()["jobs"].as_array().unwrap().clone();
    let wisdom = wisdom.iter().find(|it| it["tier"] == "wisdom").unwrap();
    assert_eq!(wisdom["rejected"], 1, "{last}");
    let files = workspace.root.files();
    for (path, text) in files.iter().filter(|it| !it.0.starts_with("memory/2026-")) {
        assert!(!text.contains("$480") && !text.contains("\nDeploy on Fridays"), "{path} {text}");
    }
    let review = workspace.run(&["review", "--json"]).ok().json_as("review");
    let items = review["items"].as_array().unwrap();
    let texts: Vec<&str> = items.iter().filter_map(|it| it["text"].as_str()).collect();
    assert!(texts.iter().any(|it| it.contains("$480")), "{texts:?}");
    assert!(texts.iter().any(|it| it.contains("Deploy on Fridays")), "{texts:?}");
    for item in items {
        assert_eq!(item["acceptable"], false, "{item}");
    }
}
