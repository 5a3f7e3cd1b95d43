//! A model that lies, through the whole chain: what it plants stands in no file, and receipt, `review`
//! and `coverage` say so. What the check alone catches is the matter of the tests of grounding.

use serde_json::{Value, json};

use super::{Desk, WEEK, Wire};
use crate::support::server::{Asked, Ends, Server, good};

/// What the faults are planted in.
const LOG: &str = "# Import

- Moved the importer to SQLite on 2026-04-02, since a crash then loses at most one row
- The parser took 3.2 s per GB on 38 GB of data
- Do not deploy on Fridays, said Alice
- Paid $420 to Fastmail for the year
- Build 4812 of the parser failed on line 77 of src/grammar.y
- Bob might move to Vienna in June
- The archive lies at https://archive.example/2026 since v2.4.1
";

/// True bullets, in words of their own.
const TRUE: [&str; 3] = [
    "- Moved the importer to SQLite on Apr 2, since a crash then loses at most one row [2026-04-07:3]",
    "- Paid 420 dollars to Fastmail for the year [2026-04-07:6]",
    "- Build 4812 of the parser failed on line 77 [2026-04-07:7]",
];

/// False ones: what is told of each, and the words that must stand nowhere.
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

/// A desk whose server says the one of each week first and then the other; all else it does well.
fn desk(wire: Wire, first: String, second: String) -> Desk {
    let server = Server::answering(move |asked: &Asked| {
        let is_week = asked.system().contains("### Decisions");
        let said = match (is_week, asked.turns().len()) {
            (true, 1) => first.clone(),
            (true, _) => second.clone(),
            (false, _) => good(asked),
        };
        asked.saying(&said, Ends::Well)
    });
    let desk = Desk::new(wire, server);
    desk.root.write("memory/2026-04-07.md", LOG);
    desk
}

fn bullets(desk: &Desk) -> Vec<String> {
    let week = desk.root.files().remove(WEEK).unwrap_or_default();
    week.lines().filter(|it| it.starts_with("- ")).map(str::to_owned).collect()
}

/// Checks what receipt, `review`, and `coverage` say of so many bullets that were kept out.
#[track_caller]
fn check_told(desk: &Desk, report: &Value, kept_out: &[&str]) {
    let job = &report["jobs"][0];
    assert_eq!(job["rejected"], kept_out.len(), "{job}");
    assert!(job["reason"].as_str().unwrap().contains("kept out: "), "{job}");
    let review = desk.run(&["review", "--json"]).ok().json_as("review");
    let items = review["items"].as_array().unwrap();
    let said: Vec<&str> = items.iter().map(|it| it["text"].as_str().unwrap()).collect();
    assert_eq!(items.len(), kept_out.len(), "{said:?}");
    let coverage = desk.run(&["coverage", "--json", "2026-W15"]).ok().json_as("coverage");
    let rejected: Vec<String> = coverage["uncovered"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["reason"] == "rejected")
        .map(|it| format!("{}", it["line"]))
        .collect();
    for bullet in kept_out {
        let (words, citation) = bullet.rsplit_once(" [").unwrap();
        assert!(said.contains(&words.trim_start_matches("- ")), "{bullet}: {said:?}");
        let line = citation.trim_end_matches(']').rsplit(':').next().unwrap();
        let is_covered = bullets(desk).iter().any(|it| it.contains(&format!(":{line}]")));
        assert!(is_covered || rejected.contains(&line.to_owned()), "{bullet}: {rejected:?}");
    }
}

#[test]
fn what_is_planted_and_planted_again_stands_in_no_file() {
    for wire in Wire::BOTH {
        let planted = FALSE.map(|it| it.1);
        let all = reply(TRUE.into_iter().chain(planted));
        let desk = desk(wire, all, reply(planted));
        let compacted = desk.compact();
        assert_eq!((compacted.ran.code, desk.server.count()), (0, 2), "{}", compacted.ran);
        assert_eq!(bullets(&desk), TRUE, "{}", compacted.ran);
        check_told(&desk, &compacted.report, &planted);
        // Each is told once, with what is wrong with it, and no true one is.
        let told = desk.server.requests()[1].turns().remove(2);
        for (what, bullet, _) in FALSE {
            let words = bullet.rsplit_once(" [").unwrap().0;
            assert!(told.contains(words), "{what}: {told}");
        }
        assert_eq!(told.matches("Fault: ").count(), FALSE.len(), "{told}");
        // Nothing of it is anywhere that an agent reads, also where all is made that rests on it.
        desk.root.append("memory/2026-04-07.md", "\n");
        desk.run(&["compact"]);
        for (path, text) in desk.root.files() {
            let is_log = path.starts_with("memory/2026-") || path.starts_with(".memoird");
            for (what, _, words) in FALSE {
                assert!(is_log || !text.contains(words), "{what} in {path}: {text}");
            }
        }
    }
}

#[test]
fn each_fault_alone_is_found_told_and_kept_out() {
    for (what, bullet, _) in FALSE {
        let desk = desk(Wire::Openai, reply([TRUE[0], bullet]), reply([bullet]));
        let compacted = desk.compact();
        assert_eq!((compacted.ran.code, desk.server.count()), (0, 2), "{what} {}", compacted.ran);
        assert_eq!(bullets(&desk), [TRUE[0]], "{what} {}", compacted.ran);
        check_told(&desk, &compacted.report, &[bullet]);
    }
}

#[test]
fn a_repair_that_mends_one_fault_and_plants_another_is_taken_apart() {
    let [digit, _, _, name, ..] = FALSE.map(|it| it.1);
    let mended = "- The parser took 3.2 s per GB on 38 GB of data [2026-04-07:4]";
    let worse = "- Do not deploy on Mondays, said Carol [2026-04-07:5]";
    let more = "- Sold 731 licences to Fastmail [2026-04-07:6]";
    let desk = desk(
        Wire::Anthropic,
        reply([TRUE[0], TRUE[1], digit, name]),
        // Also a bullet that nobody asked for, and one that stands already.
        reply([mended, worse, more, TRUE[0]]),
    );
    let compacted = desk.compact();
    assert_eq!((compacted.ran.code, desk.server.count()), (0, 2), "{}", compacted.ran);
    let mut made = bullets(&desk);
    made.sort();
    let mut expected = [TRUE[0], TRUE[1], mended];
    expected.sort_unstable();
    assert_eq!(made, expected, "{}", compacted.ran);
    check_told(&desk, &compacted.report, &[name, worse, more]);
}

#[test]
fn a_repair_that_says_nothing_leaves_what_is_true() {
    let digit = FALSE[0].1;
    for second in ["", "Sorry.", "### Decisions\n", "<html>"] {
        let desk = desk(Wire::Openai, reply([TRUE[0], digit]), second.to_owned());
        let compacted = desk.compact();
        assert_eq!((compacted.ran.code, desk.server.count()), (0, 2), "{second} {}", compacted.ran);
        assert_eq!(bullets(&desk), [TRUE[0]], "{second} {}", compacted.ran);
        check_told(&desk, &compacted.report, &[digit]);
    }
}

#[test]
fn what_is_planted_in_memories_and_wisdom_is_kept_out_and_listed() {
    let memory = json!({
        "type": "project", "topic": "hosting", "name": "Mail is hosted", "description": "Where mail is",
        "statement": "Paid $480 to Fastmail for the year.", "why": null, "how_to_apply": null,
        "citations": "2026-03-10:6", "updates": null,
    });
    let operation = json!({
        "op": "add", "id": null, "title": "Deploys", "text": "Deploy on Fridays, said Alice.",
        "category": null, "reason": "It lasts.", "citations": "2026-03-10:5",
    });
    let server = Server::answering(move |asked: &Asked| {
        let said = match good(asked) {
            said if said.starts_with("{\"operations\"") => {
                json!({ "operations": [operation] }).to_string()
            }
            said if said.starts_with("{\"memories\"") => {
                json!({ "memories": [memory] }).to_string()
            }
            said => said,
        };
        asked.saying(&said, Ends::Well)
    });
    let mut desk = Desk::new(Wire::Openai, server);
    desk.set("/compaction/extract", json!(true));
    desk.root.write("memory/2026-03-10.md", LOG);
    // The day alone first, so that its memories have a request of their own.
    desk.run(&["compact", "extract", "--period", "2026-03-10"]).ok();
    desk.run(&["compact", "--period", "2026-W11"]).ok();
    let last = desk.run(&["compact", "--json"]);
    let wisdom = last.json()["jobs"].as_array().unwrap().clone();
    let wisdom = wisdom.iter().find(|it| it["tier"] == "wisdom").unwrap();
    assert_eq!(wisdom["rejected"], 1, "{last}");
    let files = desk.root.files();
    for (path, text) in files.iter().filter(|it| !it.0.starts_with("memory/2026-")) {
        assert!(!text.contains("$480") && !text.contains("\nDeploy on Fridays"), "{path} {text}");
    }
    let review = desk.run(&["review", "--json"]).ok().json_as("review");
    let items = review["items"].as_array().unwrap();
    let said: Vec<&str> = items.iter().filter_map(|it| it["text"].as_str()).collect();
    assert!(said.iter().any(|it| it.contains("$480")), "{said:?}");
    assert!(said.iter().any(|it| it.contains("Deploy on Fridays")), "{said:?}");
    for item in items {
        assert_eq!(item["acceptable"], false, "{item}");
    }
}
