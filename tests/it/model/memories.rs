//! Statements from a model, filed by topic: bad ones beside good ones, and ones that replace older statements.

use serde_json::{Value, json};

use super::{
    Wire, Workspace,
    replies::{MEMORY, corrections, extract, statement},
};
use crate::support::{
    CommandOutput,
    server::{ModelRequest, Server, StopReason},
};

/// Returns a reply with these statements.
fn reply(statements: &[Value]) -> String {
    json!({ "statements": statements }).to_string()
}

/// A second statement of the day.
fn importer() -> Value {
    json!({
        "kind": "decision", "topic": "Importer",
        "text": "Moved the importer to SQLite, since a crash then loses at most one row.",
        "citations": "2026-04-07:3", "replaces": null,
    })
}

const IMPORTER: &str = "memory/project_importer.md";

/// Returns the statement with another value in one field.
fn with(mut statement: Value, key: &str, value: Value) -> Value {
    statement[key] = value;
    statement
}

/// Returns the items that `review` lists.
fn review_items(workspace: &Workspace) -> Vec<Value> {
    workspace.run(&["review", "--json"]).ok().json_as("review")["items"].as_array().unwrap().clone()
}

#[test]
fn a_bad_statement_does_not_drop_a_good_one() {
    let odd = with(importer(), "kind", json!("instruction"));
    let invented = with(importer(), "text", json!("The importer has 77 tables."));
    let long = with(importer(), "topic", json!("n".repeat(121)));
    let more = with(importer(), "trust", json!("human"));
    for wire in Wire::BOTH {
        for (bad, why) in [
            (&odd, "`kind` must be one of"),
            (&invented, "`77` is in none of the cited lines"),
            (&long, "`topic` is over 120 characters"),
            (&more, "unknown field `trust`"),
        ] {
            let (workspace, ran) = extract(wire, &[reply(&[statement(), bad.clone()])]);
            assert_eq!((ran.code, workspace.server.count()), (0, 2), "{bad} {ran}");
            let turns = workspace.server.requests()[1].turns();
            // What could be read names its lines as the request does.
            let lines = if bad == &invented { json!("L2") } else { bad["citations"].clone() };
            let item = format!("\n1. {}\n   Fault: ", with(bad.clone(), "citations", lines));
            assert!(turns[0].contains(&item) && turns[0].contains(why), "{}", turns[0]);
            assert!(!turns[0].contains("\n2. "), "{}", turns[0]);
            let files = workspace.root.files();
            assert!(files.contains_key(MEMORY) && !files.contains_key(IMPORTER), "{ran}");
            let job = &ran.json()["jobs"][0];
            assert_eq!((&job["items"], &job["rejected"]), (&json!(1), &json!(1)), "{ran}");
            let items = review_items(&workspace);
            assert_eq!(items.len(), 1, "{items:?}");
            assert!(items[0]["why"][0].as_str().unwrap().contains(why), "{items:?}");
            assert_eq!(items[0]["source_lines"][0]["address"], "2026-04-07:3");
            // A statement that could not be read is listed as the model wrote it.
            let text = items[0]["text"].as_str().unwrap();
            assert!(
                text.contains(if bad == &invented { "77 tables" } else { "\"topic\"" }),
                "{text}"
            );
            // The day is done: there is no further request, and the item stays listed.
            workspace.run(&["compact", "extract"]).ok();
            assert_eq!((workspace.server.count(), review_items(&workspace).len()), (2, 1));
        }
    }
}

#[test]
fn bad_statements_are_repaired_in_one_request() {
    let odd = with(statement(), "citations", json!("the fifth line"));
    let invented = with(importer(), "text", json!("The importer has 77 tables."));
    let more = (3, importer());
    for second in [
        vec![(1, statement()), (2, importer())],
        vec![(2, importer()), (1, statement()), (2, invented.clone()), more],
    ] {
        let replies = [reply(&[odd.clone(), invented.clone()]), corrections(second)];
        let (workspace, ran) = extract(Wire::Anthropic, &replies);
        assert_eq!((ran.code, workspace.server.count()), (0, 2), "{ran}");
        let turns = workspace.server.requests()[1].turns();
        assert!(
            turns.len() == 1 && turns[0].contains("\n1. {") && turns[0].contains("\n2. {"),
            "{turns:?}"
        );
        let files = workspace.root.files();
        assert!(files.contains_key(MEMORY) && files.contains_key(IMPORTER), "{ran}");
        assert_eq!(files.keys().filter(|it| it.contains("-2.md")).count(), 0, "{ran}");
        assert_eq!(
            (&ran.json()["jobs"][0]["rejected"], review_items(&workspace).len()),
            (&json!(0), 0)
        );
    }
}

#[test]
fn good_statements_are_written_even_if_the_repair_is_empty() {
    let bad = with(importer(), "kind", json!(7));
    for second in ["Sorry.", "{}", "", "{\"items\": []}"] {
        let replies = [reply(&[statement(), bad.clone()]), second.to_owned()];
        let (workspace, ran) = extract(Wire::Openai, &replies);
        assert_eq!((ran.code, workspace.server.count()), (0, 2), "{second} {ran}");
        assert!(workspace.root.files().contains_key(MEMORY), "{second} {ran}");
        assert_eq!(review_items(&workspace).len(), 1, "{second} {ran}");
    }
}

/// The newer day.
const LATER: &str = "memory/2026-04-08.md";

/// Returns a workspace with the statements of one day and, not yet extracted, the log of the next. `second` are the
/// replies about that, given the id of the statement about replies.
fn two_days(
    first: Vec<Value>,
    later: &str,
    second: impl Fn(String) -> Vec<Value> + Send + 'static,
) -> Workspace {
    let mut at = 0;
    let server = Server::answering(move |request: &ModelRequest| {
        at += 1;
        let turn = &request.turns()[0];
        let id =
            turn.lines().find(|it| it.contains(" preference | ") || it.contains(" profile | "));
        let id = id.and_then(|it| it.split(' ').next()).unwrap_or_default().to_owned();
        let statements = if at == 1 { first.clone() } else { second(id) };
        request.reply_with(&reply(&statements), StopReason::Complete)
    });
    let mut workspace = Workspace::new(Wire::Openai, server);
    workspace.set("/compaction/extract", json!(true));
    workspace.run(&["compact", "extract"]).ok();
    workspace.root.write(LATER, later);
    workspace
}

fn extract_again(workspace: &Workspace) -> CommandOutput {
    workspace.run(&["compact", "extract", "--json"]).ok()
}

/// Returns the names of the typed memories.
fn memories(workspace: &Workspace) -> Vec<String> {
    workspace.root.typed_memories()
}

/// A newer line about replies, and its statement.
const GERMAN: &str = "- Alice wants her short replies in German from now on\n";

fn german(replaces: &str) -> Vec<Value> {
    let german = with(statement(), "text", json!("Alice wants her short replies in German."));
    let german = with(german, "citations", json!("2026-04-08:1"));
    let german = with(german, "topic", json!("Language"));
    vec![with(german, "replaces", json!(replaces))]
}

#[test]
fn statements_of_a_day_are_filed_by_topic() {
    let build = json!({
        "kind": "state", "topic": "Importer", "text": "Speed: 3.2 s per GB",
        "citations": "2026-04-07:4", "replaces": null,
    });
    let (workspace, ran) =
        extract(Wire::Anthropic, &[reply(&[statement(), importer(), build.clone()])]);
    assert_eq!((ran.code, workspace.server.count()), (0, 1), "{ran}");
    assert_eq!(memories(&workspace), [IMPORTER, MEMORY]);
    assert_eq!(
        workspace.root.read(IMPORTER),
        "---\n\
         name: Importer\n\
         description: \"Speed: 3.2 s per GB\"\n\
         type: project\n\
         ---\n\
         \n\
         ## State\n\
         \n\
         - Speed: 3.2 s per GB [2026-04-07:4]\n\
         \n\
         ## Decisions\n\
         \n\
         - Moved the importer to SQLite, since a crash then loses at most one row. [2026-04-07:3]\n"
    );
    let traced = workspace.run(&["trace", &format!("{IMPORTER}:9")]).ok().to_string();
    assert!(traced.contains("2026-04-07.md:4") && !traced.contains("07.md:3"), "{traced}");
    workspace.run(&["doctor"]).ok();
    // The bullets of `WISDOM.md` are what the model found, in its words; the memories stay as it made them.
    let before = workspace.root.read(IMPORTER);
    let digest = [("MEMOIRD_WISDOM_DIGEST", "true")];
    workspace.run_with(&["compact", "wisdom"], &digest).ok();
    let wisdom = workspace.root.read("WISDOM.md");
    let bullets: Vec<&str> = wisdom.lines().filter(|it| it.starts_with("- ")).collect();
    assert_eq!(
        bullets,
        [
            "- Reply style: Alice prefers short replies in the morning.",
            "- Moved the importer to SQLite, since a crash then loses at most one row (2026-04-07)",
            "- Importer: Speed: 3.2 s per GB (2026-04-07)",
        ]
    );
    let again = workspace.run_with(&["compact", "wisdom"], &digest).ok().to_string();
    assert!(again.contains("up to date"), "{again}");
    // What a person deletes does not come back in the model's words, and the others stay.
    let kept: String = wisdom.split_inclusive('\n').filter(|it| !it.contains("SQLite")).collect();
    workspace.root.write("WISDOM.md", &kept);
    workspace.run_with(&["compact", "wisdom", "--force"], &digest).ok();
    let wisdom = workspace.root.read("WISDOM.md");
    assert!(!wisdom.contains("SQLite") && wisdom.contains("3.2 s per GB"), "{wisdom}");
    assert_eq!((workspace.root.read(IMPORTER), memories(&workspace).len()), (before, 2));
    // A forced repetition rewrites what has the same lines, and keeps the rest.
    let before = workspace.root.files();
    workspace.run(&["compact", "extract", "--period", "2026-04-07", "--force"]).ok();
    assert_eq!(workspace.root.files(), before);
}

#[test]
fn a_newer_value_replaces_the_older_one_of_its_label() {
    let speed = |text: &str, lines: &str| {
        let speed = with(importer(), "kind", json!("state"));
        with(with(speed, "text", json!(text)), "citations", json!(lines))
    };
    let first = vec![importer(), speed("Speed: 3.2 s per GB", "2026-04-07:4")];
    let second = move |_| vec![speed("Speed: 2.1 s per GB", "2026-04-08:1")];
    let workspace = two_days(first, "- The importer now takes 2.1 s per GB\n", second);
    let ran = extract_again(&workspace);
    let text = workspace.root.read(IMPORTER);
    let expected =
        "- Speed: 2.1 s per GB (was 3.2 s per GB until 2026-04-08) [2026-04-07:4; 2026-04-08:1]\n";
    assert!(text.contains(expected) && text.contains("to SQLite"), "{text} {ran}");
    let prompt = workspace.server.requests()[1].turns()[0].clone();
    for words in
        ["## project | Importer | 2026-04-07\n", " state | Speed: 3.2 s per GB [2026-04-07]\n"]
    {
        assert!(prompt.contains(words), "{prompt}");
    }
    let places = ["Memories that exist", "\n## 2026-04-08\nL1 | ", "Reply with the JSON"];
    let places = places.map(|it| prompt.find(it).unwrap());
    assert!(places.is_sorted(), "{prompt}");
    // An older day changes nothing about it.
    workspace.root.write("memory/2026-04-06.md", "- The importer now takes 2.1 s per GB\n");
    workspace.run(&["undo", "--yes"]).ok();
    assert!(workspace.root.read(IMPORTER).contains("- Speed: 3.2 s per GB [2026-04-07:4]\n"));
}

#[test]
fn a_statement_named_in_replaces_goes() {
    let workspace = two_days(vec![statement()], GERMAN, |id| german(&id));
    let old = workspace.root.read(MEMORY);
    let ran = extract_again(&workspace);
    assert_eq!(workspace.server.count(), 2, "{ran}");
    assert_eq!(memories(&workspace), [MEMORY], "{ran}");
    let new = workspace.root.read(MEMORY);
    assert!(new.contains("short replies in German.") && !new.contains("morning"), "{new}");
    let history = workspace.run(&["history", MEMORY, "--json"]).ok().json_as("history");
    assert_eq!(history["versions"].as_array().unwrap().len(), 2, "{history:#}");
    workspace.run(&["undo", "--yes"]).ok();
    assert_eq!(workspace.root.read(MEMORY), old);
    workspace.run(&["doctor"]).ok();
}

#[test]
fn an_unknown_id_in_replaces_is_reported() {
    let workspace = two_days(vec![statement()], GERMAN, |_| german("00000000"));
    let ran = extract_again(&workspace);
    let turns = workspace.server.requests()[2].turns();
    assert!(turns[0].contains("`replaces` names no statement"), "{}", turns[0]);
    // What its lines support is filed nevertheless.
    assert_eq!(memories(&workspace), ["memory/user_language.md", MEMORY], "{ran}");
}

#[test]
fn an_older_day_does_not_replace_a_newer_statement() {
    let workspace = two_days(vec![statement()], GERMAN, |id| german(&id));
    extract_again(&workspace);
    let new = workspace.root.read(MEMORY);
    workspace.root.write("memory/2026-04-06.md", GERMAN);
    let ran = workspace.run(&["compact", "extract", "--json"]).ok();
    assert_eq!((workspace.root.read(MEMORY), memories(&workspace).len()), (new, 1), "{ran}");
}

#[test]
fn a_user_edited_statement_stays() {
    let workspace = two_days(vec![statement()], GERMAN, |id| german(&id));
    let own = workspace.root.read(MEMORY).replace("in the morning", "before ten");
    workspace.root.write(MEMORY, &own);
    extract_again(&workspace);
    assert_eq!(memories(&workspace), ["memory/user_language.md", MEMORY]);
    assert!(workspace.root.read(MEMORY).contains("before ten"));
    assert!(workspace.root.read("memory/user_language.md").contains("in German"));
}

#[test]
fn a_statement_of_a_changed_line_goes_and_the_others_stay() {
    let workspace = two_days(vec![statement(), importer()], "- Nothing new\n", |_| Vec::new());
    extract_again(&workspace);
    let log = workspace.root.read("memory/2026-04-07.md");
    let log = log
        .replace("Alice prefers short", "Bob prefers long")
        .replace("# Importer\n", "# Importer\n\nMonday\n");
    workspace.root.write("memory/2026-04-07.md", &log);
    let ran = extract_again(&workspace);
    assert_eq!(memories(&workspace), [IMPORTER], "{ran}");
    assert!(workspace.root.read(IMPORTER).contains("one row. [2026-04-07:5]"), "{ran}");
    // What is shown as known already is not said again: a statement of the old line is not known.
    let requests = workspace.server.requests();
    let request = requests.last().unwrap().turns().concat();
    assert!(!request.contains("Alice prefers short"), "{request}");
    workspace.run(&["doctor"]).ok();
}

/// A memory of one statement, as earlier versions wrote it.
const ONE: &str = "---\nname: Reply style\ndescription: How long a reply to Alice may be\ntype: user\n\
    created: 2026-04-07\nupdated: 2026-04-07\nsources: [\"2026-04-07:5#HASH\"]\nmemoird: { body: \"BODY\" }\n---\n\n\
    Alice prefers short replies in the morning.\n";

#[test]
fn a_memory_of_one_statement_is_carried_on_in_its_file() {
    let hex =
        |text: &str, digits: usize| blake3::hash(text.as_bytes()).to_hex()[..digits].to_owned();
    let body = hex("\nAlice prefers short replies in the morning.\n", 16);
    let line = hex("- Alice prefers short replies in the morning", 4);
    let paper = "Alice reads the reports of the parser on paper.";
    for is_replaced in [true, false] {
        let later = format!("{GERMAN}- {paper}\n");
        let workspace = two_days(Vec::new(), &later, move |id| {
            let mut said = german(&id);
            said[0]["topic"] = json!("Reply style");
            if !is_replaced {
                said[0]["text"] = json!(paper);
                said[0]["citations"] = json!("2026-04-08:2");
                said[0]["replaces"] = Value::Null;
            }
            said
        });
        let one = ONE.replace("HASH", &line).replace("BODY", &body);
        workspace.root.write(MEMORY, &one);
        let ran = extract_again(&workspace);
        assert_eq!(memories(&workspace), [MEMORY], "{ran}");
        let new = workspace.root.read(MEMORY);
        let said = "## Profile\n\n- Alice prefers short replies in the morning. [2026-04-07:5]\n";
        assert_eq!(new.contains(said), !is_replaced, "{new}");
        assert!(
            new.contains(if is_replaced { "in German. [2026-04-08:1]" } else { paper }),
            "{new}"
        );
        assert!(new.contains("How long a reply"), "{new}");
        workspace.run(&["doctor"]).ok();
    }
}

#[test]
fn a_statement_may_not_cite_a_line_that_was_not_shown() {
    let far = with(statement(), "citations", json!("2026-04-07:5; 2026-01-01:1"));
    let (workspace, ran) =
        extract(Wire::Anthropic, &[reply(&[far]), corrections([(1, statement())])]);
    assert_eq!((ran.code, workspace.server.count()), (0, 2), "{ran}");
    assert!(workspace.server.requests()[1].turns()[0].contains("2026-01-01:1 was not shown"));
    assert!(workspace.root.files().contains_key(MEMORY));
}

#[test]
fn a_secret_in_a_user_written_memory_is_not_sent() {
    let secret = "AKIAIOSFODNN7EXAMPL2";
    let server = Server::answering(|request| request.reply_with(&reply(&[]), StopReason::Complete));
    let mut workspace = Workspace::new(Wire::Openai, server);
    workspace.set("/compaction/extract", json!(true));
    workspace.root.write(
        MEMORY,
        &format!(
            "---\nname: Alice prefers short replies\ndescription: The bucket is {secret}\ntype: user\n\
             ---\nIn the morning replies prefers {secret}\n"
        ),
    );
    workspace.run(&["compact", "extract"]).ok();
    let sent = workspace.server.requests()[0].body.to_string();
    assert!(
        sent.contains("## user | Alice prefers") && sent.contains(" profile | In the morning"),
        "{sent}"
    );
    assert!(!sent.contains(secret), "{sent}");
}

#[test]
fn a_memory_name_containing_a_secret_is_not_sent() {
    let server = Server::answering(|request: &ModelRequest| {
        let prompt = request.turns().remove(0);
        let name = prompt.lines().find_map(|it| it.strip_prefix("## user | ")?.split_once(" | "));
        let door = json!({
            "kind": "profile", "topic": name.map(|it| it.0).unwrap_or_default(),
            "text": "The lab door opens with a card.", "citations": "2026-04-08:1", "replaces": null,
        });
        request.reply_with(&reply(&[door]), StopReason::Complete)
    });
    let mut workspace = Workspace::new(Wire::Anthropic, server);
    workspace.set("/compaction/extract", json!(true));
    workspace
        .root
        .write("memory/2026-04-07.md", "- I prefer the code LAB-4711-XYZ for the lab door.\n");
    workspace.run(&["--set", "engine=extractive", "compact"]).ok();
    let files_with_code = |workspace: &Workspace| {
        let names = workspace.root.typed_memories().into_iter();
        names.filter(|it| it.contains("lab-4711")).collect::<Vec<_>>()
    };
    let old = files_with_code(&workspace);
    assert_eq!(old.len(), 1, "{:?}", workspace.root.files().keys());
    // A new rule makes the code a secret: it is masked in the file, but the file name stays.
    workspace.root.write("../.config/memoird/secrets.yaml", DOOR_CODES);
    workspace.root.write("memory/2026-04-08.md", "- The lab door opens with a card now.\n");
    let ran = workspace.run(&["compact", "extract", "--json"]).ok();
    assert!(workspace.server.count() > 0, "{ran}");
    for request in workspace.server.requests() {
        let sent = request.body.to_string().to_lowercase();
        assert!(sent.contains("## user | ") && !sent.contains("4711"), "{sent}");
    }
    // The masked name that the model returns is resolved to the file.
    assert_eq!(files_with_code(&workspace), old);
    assert!(workspace.root.read(&old[0]).contains("opens with a card"), "{ran}");
}

#[test]
fn an_unreadable_log_does_not_block_other_days() {
    let workspace = two_days(vec![statement()], GERMAN, |id| german(&id));
    // The log of the memory now has a second hard link, so it is not read.
    std::fs::hard_link(workspace.root.path("memory/2026-04-07.md"), workspace.root.home("copy"))
        .unwrap();
    let ran = workspace.run(&["compact", "extract", "--json"]);
    assert!(workspace.server.requests()[1].turns()[0].contains("in German from now on"), "{ran}");
    assert_eq!((ran.code, &ran.json()["failed"]), (0, &json!(0)), "{ran}");
}

/// A secret rule that the program does not have.
const DOOR_CODES: &str = "rules:\n  - id: door-code\n    keywords: [lab-]\n    regex: '\\b(LAB-[0-9]{4}-[A-Z]{3})\\b'\n    examples: { secret: ['LAB-1234-ABC'], clean: ['LAB-1'] }\n";

#[test]
fn after_a_switch_to_no_model_its_statements_stay_until_something_ends_them() {
    let state = |text: &str, lines: &str| {
        let state = with(importer(), "kind", json!("state"));
        with(with(state, "text", json!(text)), "citations", json!(lines))
    };
    let speed = || state("Speed: 3.2 s per GB", "2026-04-07:4");
    let first = vec![statement(), importer(), speed()];
    let workspace = two_days(first, "- Watered the plants of the office\n", |_| Vec::new());
    let compact = || {
        let args = ["--set", "engine=extractive", "compact"];
        workspace.run_with(&args, &[("MEMOIRD_WISDOM_DIGEST", "true")]).ok()
    };
    let [preferences, project] = [MEMORY, IMPORTER].map(|it| workspace.root.read(it));
    let decision =
        "- Moved the importer to SQLite, since a crash then loses at most one row. [2026-04-07:3]";
    assert!(project.contains(decision), "{project}");
    compact();
    for path in [MEMORY, IMPORTER] {
        let lines = [&preferences, &project].map(|it| it.lines()).into_iter().flatten();
        let stated: Vec<&str> = lines.filter(|it| it.starts_with("- ")).collect();
        let all: String = memories(&workspace).iter().map(|it| workspace.root.read(it)).collect();
        for line in stated {
            assert_eq!(all.matches(line).count(), 1, "{path}: {line} in {all}");
        }
    }
    let after = workspace.root.files();
    compact();
    assert_eq!(workspace.root.files(), after);
    // Without the database, too.
    std::fs::remove_dir_all(workspace.root.path(".memoird")).unwrap();
    workspace.run(&["rebuild"]).ok();
    workspace.root.append(LATER, "- The importer is a tool for the harbour office\n");
    compact();
    let text = workspace.root.read(IMPORTER);
    assert!(text.contains(decision) && text.contains("- Speed: 3.2 s per GB"), "{text}");
    // A person deletes one, a line changes below another.
    workspace.root.write(IMPORTER, &text.replace(&format!("{decision}\n"), ""));
    let log = workspace.root.read("memory/2026-04-07.md");
    workspace.root.write("memory/2026-04-07.md", &log.replace("3.2 s per GB", "3.3 s per GB"));
    compact();
    let all: String = memories(&workspace).iter().map(|it| workspace.root.read(it)).collect();
    assert!(!all.contains("one row") && !all.contains("3.2 s per GB"), "{all}");
    assert!(workspace.root.read(MEMORY).contains("in the morning"), "{all}");
    workspace.run(&["doctor"]).ok();
}

/// Returns a statement about the importer.
fn said(kind: &str, text: &str, lines: &str) -> Value {
    let said = with(with(importer(), "kind", json!(kind)), "text", json!(text));
    with(said, "citations", json!(lines))
}

#[test]
fn what_a_model_says_was_stopped_leaves_each_memory_and_comes_back() {
    let data = said("environment", "The importer has 38 GB of data.", "2026-04-07:4");
    let second = move |_| vec![said("retired", "Removed Importer.", "2026-04-08:1")];
    let workspace = two_days(vec![importer(), data], "- Removed Importer\n", second);
    assert!(memories(&workspace).iter().any(|it| it == "memory/reference_importer.md"));
    extract_again(&workspace);
    assert_eq!(memories(&workspace), [IMPORTER]);
    assert!(workspace.root.read(IMPORTER).contains("- Removed Importer. [2026-04-08:1]"));
    // Without a model, too, it is no longer said to be stopped.
    workspace.root.write("memory/2026-04-09.md", "- Importer is back up\n");
    workspace
        .run_with(
            &["--set", "engine=extractive", "compact"],
            &[("MEMOIRD_WISDOM_DIGEST", "true"), ("MEMOIRD_NOW", "2026-04-10T09:00:00+02:00")],
        )
        .ok();
    let text = workspace.root.read(IMPORTER);
    assert!(!text.contains("Removed Importer") && text.contains("one row"), "{text}");
}

#[test]
fn what_a_model_says_is_paused_ends_nothing() {
    let data = said("environment", "The importer has 38 GB of data.", "2026-04-07:4");
    let second = move |_| vec![said("retired", "Importer paused.", "2026-04-08:1")];
    let workspace = two_days(vec![importer(), data], "- Importer paused\n", second);
    extract_again(&workspace);
    let all: String = memories(&workspace).iter().map(|it| workspace.root.read(it)).collect();
    assert!(all.contains("Importer paused") && all.contains("38 GB"), "{all}");
}

#[test]
fn where_what_a_model_said_is_over_the_line_is_said_in_its_own_words() {
    let wish = "Alice prefers short replies in the morning";
    let state = || said("state", &format!("{wish}!"), "2026-04-07:5");
    let workspace = two_days(vec![state()], "- Removed Importer\n", |_| Vec::new());
    assert!(workspace.root.read(IMPORTER).contains(&format!("{wish}!")));
    workspace
        .run_with(
            &["--set", "engine=extractive", "compact"],
            &[("MEMOIRD_WISDOM_DIGEST", "true"), ("MEMOIRD_NOW", "2026-04-10T09:00:00+02:00")],
        )
        .ok();
    let all: String = memories(&workspace).iter().map(|it| workspace.root.read(it)).collect();
    assert!(all.contains(wish) && !all.contains(&format!("{wish}!")), "{all}");
}
