//! Secrets that are split over lines or parts, and secrets in names, settings and messages.

use serde_json::json;

use crate::{mcp::Client, support::Root};

const TOKEN: &str = "G37LeXSyYV4g6snRoUYA4fXr6nzrvZcmT4a4";

#[track_caller]
fn assert_only_in_logs(root: &Root, secret: &str) {
    for (path, text) in root.files() {
        let is_log = path.starts_with("memory/2026-");
        assert!(is_log || !text.contains(secret), "{path}:\n{text}");
    }
}

#[test]
fn secrets_formed_by_joining_text_are_masked() {
    for hidden in ["\u{200b}", "\u{2060}", "\u{feff}"] {
        let root = Root::empty("joined");
        root.write("memoird.yaml", "zone: Europe/Berlin\n");
        root.write(
            "memory/2026-03-03.md",
            &format!(
                "- Decided to use ghp_{hidden}{TOKEN} for CI, because it works.\n\
                 ## Staging password\n\n- tr0ub4dor8xK\n"
            ),
        );
        root.run(&["compact"]).ok();
        assert_only_in_logs(&root, TOKEN);
        assert_only_in_logs(&root, "tr0ub4dor8xK");
        let week = root.read("memory/weekly/2026-W10.md");
        assert!(week.contains("Decided to use [secret:github-token#"), "{week}");
        assert!(week.contains("Staging password: [secret:password#"), "{week}");
        for args in [&["show", "memory/2026-03-03.md"][..], &["trace", "2026-03-03:4", "--json"]] {
            let ran = root.run(args);
            assert!(!ran.stdout.contains("tr0ub4dor8xK"), "{ran}");
        }
    }
}

/// Returns the rows of the table of shapes: a text with a value, and the value.
fn shapes() -> Vec<(String, String)> {
    let rows = include_str!("../data/secrets/shapes.tsv").lines().filter(|it| !it.starts_with('#'));
    let rows = rows.map(|row| {
        let (shape, value) = row.split_once('\t').unwrap();
        let (shape, value) = (shape.replace('¦', ""), value.replace('¦', ""));
        (shape.replace("\\n", "\n").replace("{}", &value), value)
    });
    rows.collect()
}

#[test]
fn secrets_in_the_shapes_of_real_notes_are_shown_nowhere() {
    let root = Root::empty("shapes");
    root.write(
        "memoird.yaml",
        "zone: Europe/Berlin\ncompaction:\n  weekly: {ratio: 1, max_ratio: 1, max_chars: 0}\n  monthly: {ratio: 1, max_ratio: 1, max_chars: 0}\n",
    );
    let shapes = shapes();
    for (rows, day) in shapes.chunks(15).zip(2..) {
        let rows: Vec<_> = rows.iter().map(|it| it.0.as_str()).collect();
        let text = format!("# Setup\n\n- Decided to note the accounts.\n\n{}\n", rows.join("\n\n"));
        root.write(&format!("memory/2026-03-{day:02}.md"), &text);
    }
    root.run(&["compact"]).ok();
    let values = || shapes.iter().map(|it| it.1.as_str());
    let assert_clean = |source: &str, text: &str| {
        for value in values() {
            assert!(!text.contains(value), "{source} shows {value}:\n{text}");
        }
    };
    let mut marks = 0;
    for (path, text) in root.files().iter().filter(|it| !it.0.starts_with("memory/2026-")) {
        assert_clean(path, text);
        marks += text.matches("[secret:").count();
    }
    assert!(marks > 40, "most should be kept in weeks, without their values: {marks}");
    let days = ["2", "3", "4", "5", "6"].map(|it| format!("memory/2026-03-0{it}.md"));
    let mut calls: Vec<Vec<&str>> = days.iter().map(|it| vec!["show", it.as_str()]).collect();
    for words in ["password", "密码", "пароль", "login", "token", "API key", "contraseña senha"]
    {
        calls.push(vec!["search", words, "--limit", "50"]);
        calls.push(vec!["search", words, "--limit", "50", "--json"]);
    }
    calls.extend([
        vec!["context"],
        vec!["context", "--json"],
        vec!["memories", "--json"],
        vec!["trace", "2026-03-02:5", "--json"],
        vec!["coverage", "2026-W10", "--json"],
        vec!["doctor", "--secrets"],
        vec!["doctor", "--secrets", "--json"],
    ]);
    for args in calls {
        let ran = root.run(&args);
        assert!(ran.code >= 0, "{ran}");
        assert_clean(&ran.line, &ran.stdout);
        assert_clean(&ran.line, &ran.stderr);
    }
    let found = root.run(&["doctor", "--secrets", "--json"]).stdout;
    for kind in
        ["password", "login", "secret-assignment", "product-key", "slack-token", "private-key"]
    {
        assert!(found.contains(kind), "{kind}: {found}");
    }
    assert!(found.contains("\"memory/2026-03-02.md\""), "{found}");
    let places = root.run(&["doctor", "--secrets", "--verbose"]).stdout;
    assert!(places.matches("memory/2026-03-02.md:").count() >= 15, "{places}");
    let mut client = Client::new(&root, &[]);
    for query in ["password", "login", "密码", "token", "mara"] {
        let answer =
            client.call("memory_search", &json!({ "query": query, "context": 5, "limit": 50 }));
        assert_clean("memory_search", &answer.to_string());
    }
    for file in ["2026-03-02", "2026-03-04", "2026-W10", "WISDOM.md", "MEMORY.md"] {
        let answer = client.call("memory_read", &json!({ "file": file }));
        assert_clean(file, &answer.to_string());
    }
    assert_clean("memory_context", &client.call("memory_context", &json!({})).to_string());
}

#[test]
fn a_multi_line_key_is_shown_by_no_command() {
    let body = "MIIIMcXdRziQu1LMEiq65GAdP1bjsYnTMRLy2BJPPKgl9VPd4o5c0YQMbzJGndU";
    let root = Root::empty("lines");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write(
        "memory/2026-03-03.md",
        &format!(
            "- The key of the old host\n  -----BEGIN RSA PRIVATE KEY-----\n  {body}\n  -----END RSA PRIVATE KEY-----\n"
        ),
    );
    root.run(&["compact"]).ok();
    for args in [
        &["forget", "memory/2026-03-03.md", "--dry-run"][..],
        &["forget", "memory/2026-03-03.md", "--dry-run", "--json"],
        &["show", "memory/2026-03-03.md"],
        &["review", "list"],
    ] {
        let ran = root.run(args);
        assert!(!ran.stdout.contains(body) && !ran.stderr.contains(body), "{ran}");
    }
}

#[test]
fn the_index_lists_memories_of_people_sanitized() {
    let root = Root::small();
    root.write(
        "memory/user_mine.md",
        &format!(
            "---\nname: The token ghp_{TOKEN}\ndescription: \"![x](https://evil.example/p.png) \\u202Eabc\"\ntype: user\n---\nMine.\n"
        ),
    );
    root.run(&["compact"]).ok();
    let index = root.read("memory/MEMORY.md");
    assert!(!index.contains(TOKEN) && index.contains("secret:github-token"), "{index}");
    assert!(!index.contains("![") && !index.contains('\u{202e}'), "{index}");
    let before = root.files();
    root.run(&["compact"]).ok();
    assert_eq!(root.files(), before);
    root.run(&["doctor"]).ok();
}

#[test]
fn a_secret_in_a_correction_is_masked() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let week = "memory/weekly/2026-W10.md";
    let at = root.read(week).lines().position(|it| it.contains("Importer v2")).unwrap() + 1;
    let ran =
        root.run(&["correct", &format!("{week}:{at}"), &format!("Importer uses ghp_{TOKEN}")]);
    assert!(ran.code == 0 && ran.stderr.contains("the text contains a secret"), "{ran}");
    assert!(!ran.stdout.contains(TOKEN), "{ran}");
    assert_only_in_logs(&root, TOKEN);
    assert!(
        root.read(week).contains("- Importer uses [secret:github-token"),
        "{}",
        root.read(week)
    );
}

/// A rule for secrets of a kind that no built-in rule finds.
const DOOR_CODES: &str = "rules:\n  - id: door-code\n    keywords: [lab-]\n    regex: '\\b(LAB-[0-9]{4}-[A-Z]{3})\\b'\n    examples: { secret: ['LAB-1234-ABC'], clean: ['LAB-1'] }\n";

/// Returns a folder with a memory that has a secret in its text and name, and a rule added later.
fn root_with_a_door_code() -> Root {
    let root = Root::empty("door");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write(
        "memory/2026-03-03.md",
        "- I prefer the code LAB-4711-XYZ for the lab door.\n- I prefer short answers.\n",
    );
    root.run(&["compact"]).ok();
    let names = root.typed_memories();
    let names = names.iter().filter(|it| it.contains("lab-4711"));
    assert_eq!(names.count(), 1, "{:?}", root.files().keys());
    root.write_secret_rules(DOOR_CODES);
    root
}

/// Returns the link targets of the index.
fn targets(root: &Root) -> Vec<String> {
    let index = root.read("memory/MEMORY.md");
    let links = index.lines().filter_map(|it| it.split_once("](")?.1.split_once(')'));
    links.map(|it| it.0.to_owned()).collect()
}

#[test]
fn links_of_the_index_resolve_after_redaction() {
    let root = root_with_a_door_code();
    let log = root.read("memory/2026-03-03.md");
    let before = targets(&root).len();
    let doctor = root.run(&["doctor", "--secrets"]);
    assert_eq!(doctor.code, 1, "{doctor}");
    assert!(doctor.stdout.contains(":name  door-code (generated)"), "{doctor}");
    assert!(!doctor.stdout.to_lowercase().contains("4711"), "{doctor}");
    let found = root.run(&["doctor", "--secrets", "--json"]);
    assert!(!found.stdout.to_lowercase().contains("4711"), "{found}");
    root.run(&["doctor", "--secrets", "--repair", "--yes"]).ok();
    for (path, text) in root.files() {
        let is_log = path.starts_with("memory/2026-");
        let holds = |it: &str| it.to_lowercase().contains("lab-4711");
        assert!(is_log || (!holds(&path) && !holds(&text)), "{path}:\n{text}");
    }
    assert_eq!(root.read("memory/2026-03-03.md"), log);
    assert_eq!(targets(&root).len(), before);
    for target in targets(&root) {
        assert!(root.path(&format!("memory/{target}")).is_file(), "{target}");
    }
    root.run(&["compact"]).ok();
    root.run(&["doctor"]).ok();
    assert!(root.run(&["compact"]).ok().stderr.starts_with("nothing to do"));
}

#[test]
fn a_secret_is_removed_from_file_names_too() {
    let root = root_with_a_door_code();
    root.run(&["forget", "--secrets", "--yes"]).ok();
    root.run(&["doctor", "--secrets"]).ok();
    let database = std::fs::read(root.path(".memoird/lineage.db")).unwrap();
    // In lower case as in file names: the history still has the log itself.
    assert!(!String::from_utf8_lossy(&database).contains("lab-4711"));
    root.run(&["compact"]).ok();
    root.run(&["doctor"]).ok();
}

#[test]
fn a_redacted_deleted_memory_stays_deleted() {
    let root = root_with_a_door_code();
    root.write_secret_rules("rules: []\n");
    let names = root.files().into_keys().filter(|it| it.contains("lab-4711"));
    for name in names {
        std::fs::remove_file(root.path(&name)).unwrap();
    }
    root.run(&["compact"]).ok();
    assert!(root.read("memory/.decisions.jsonl").contains("lab-4711"));
    root.write_secret_rules(DOOR_CODES);
    let found = root.run(&["doctor", "--secrets"]);
    assert!(found.code == 1 && found.stdout.contains(".decisions.jsonl:"), "{found}");
    assert!(!found.stdout.to_lowercase().contains("4711"), "{found}");
    root.run(&["forget", "--secrets", "--yes"]).ok();
    root.run(&["doctor", "--secrets"]).ok();
    for (path, text) in root.files() {
        assert!(!text.to_lowercase().contains("lab-4711") || path.starts_with("memory/2026-"));
    }
    root.run(&["compact", "--redo", "--yes"]).ok();
    let doors =
        |(path, text): &(String, String)| path.starts_with("memory/user_") && text.contains("door");
    assert!(!root.files().into_iter().any(|it| doors(&it)), "{:?}", root.files().keys());
    root.run(&["doctor"]).ok();
}

/// At how many of its steps forgetting is interrupted; all with `MEMOIRD_FAULTS=full`.
const INTERRUPTIONS: usize = 12;

#[test]
fn interrupted_redaction_can_be_repeated_to_completion() {
    let prepared = || {
        let root = root_with_a_door_code();
        root.write_secret_rules("rules: []\n");
        root.write(
            "memory/2026-03-04.md",
            "- I prefer to water the plants of shed LAB-0815-ABC on Mondays.\n",
        );
        root.run(&["compact"]).ok();
        let mut memories = root.typed_memories().into_iter();
        let old = memories.find(|it| it.contains("lab-4711")).unwrap();
        std::fs::remove_file(root.path(&old)).unwrap();
        root.run(&["compact"]).ok();
        // One memory was deleted by a person, the other exists.
        assert!(root.read("memory/.decisions.jsonl").contains("lab-4711"));
        assert!(root.files().keys().any(|it| it.contains("lab-0815")));
        root.write_secret_rules(DOOR_CODES);
        root
    };
    let forget = &["forget", "--secrets", "--yes"];
    let root = prepared();
    let trace = root.home("trace");
    let mut command = root.command(forget);
    command.env("MEMOIRD_FAIL_TRACE", &trace);
    root.finish(command, forget).ok();
    let steps = std::fs::read_to_string(trace).unwrap().lines().count();
    let is_full = std::env::var("MEMOIRD_FAULTS").is_ok_and(|it| it == "full");
    let stride = if is_full { 1 } else { (steps / INTERRUPTIONS).max(1) };
    for step in (1..=steps).step_by(stride) {
        let root = prepared();
        let mut command = root.command(forget);
        command.env("MEMOIRD_FAIL", format!("kill@{step}"));
        assert_eq!(root.finish(command, forget).code, -1, "{step}");
        root.run(forget).ok();
        root.run(&["doctor", "--secrets"]).ok();
        for (path, text) in root.files() {
            let is_log = path.starts_with("memory/2026-");
            let holds = |it: &str| ["lab-4711", "lab-0815"].iter().any(|code| it.contains(code));
            assert!(
                is_log || !holds(&(path.clone() + &text).to_lowercase()),
                "{step} {path} {text}"
            );
        }
        let database = std::fs::read(root.path(".memoird/lineage.db")).unwrap();
        let database = String::from_utf8_lossy(&database);
        assert!(!database.contains("lab-4711") && !database.contains("lab-0815"), "{step}");
        // Each name in the decisions is in the history.
        let decided = root.read("memory/.decisions.jsonl");
        let name = decided.split('"').find(|it| it.contains("name-that-was-taken-out"));
        let name = name.unwrap_or_else(|| panic!("{step} {decided}"));
        let history = root.run(&["history", name, "--json"]).ok().json();
        assert!(!history["versions"].as_array().unwrap().is_empty(), "{step} {name}");
        root.run(&["compact", "--redo", "--yes"]).ok();
        let is_door = |(path, text): &(String, String)| {
            path.starts_with("memory/user_") && text.contains("lab door")
        };
        assert!(!root.files().into_iter().any(|it| is_door(&it)), "{step}");
        root.run(&["doctor"]).ok();
    }
}

#[test]
fn a_secret_in_the_name_of_a_log_is_masked_in_output() {
    let root = Root::empty("named");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write_secret_rules(DOOR_CODES);
    let name = "memory/2026-03-03-LAB-4711-XYZ.md";
    root.write(name, "- The door opens with LAB-4711-XYZ.\n");
    for args in [&["doctor", "--secrets", "--verbose"][..], &["doctor", "--secrets", "--json"]] {
        let ran = root.run(args);
        assert!(!ran.stdout.contains("4711"), "{ran}");
    }
    root.run(&["doctor", "--secrets", "--repair", "--yes"]);
    assert!(root.path(name).is_file(), "a log keeps its name");
}

#[test]
fn no_message_repeats_a_secret_from_the_settings() {
    let root = Root::small();
    let token = format!("ghp_{TOKEN}");
    let random = "q7Rw2mZx9LtPa4Vb8Nc1";
    let sets = [
        (format!("model.provider={token}"), token.as_str()),
        (format!("zone={random}"), random),
        (format!("compaction.schedule=at {random}"), random),
        (format!("model.base_url=https://mara:{random}@acme.net/v1"), random),
        ("model.base_url=https://mara:sesame-open@acme.net/v1".to_owned(), "sesame-open"),
        ("engine=https://mara:sesame-open@acme.net/v1".to_owned(), "sesame-open"),
        (format!("{token}=1"), token.as_str()),
        (format!("{random}=1"), random),
        (token.clone(), token.as_str()),
        ("model.api_key:sesame-open".to_owned(), "sesame-open"),
        ("model.key_file=48151623421234567890".to_owned(), "48151623421234567890"),
    ];
    for (set, secret) in &sets {
        for args in [&["--set", set, "status"][..], &["--set", set, "status", "--json"]] {
            let ran = root.run(args);
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{ran}");
        }
    }
    for line in [
        format!("zone: {random}"),
        format!("engine: \"{token}\""),
        format!("memory_dir: /srv/{random}{random}"),
        format!("zone: [{token}"),
        token.clone(),
    ] {
        root.write("memoird.yaml", &format!("{line}\n"));
        for args in [&["status"][..], &["compact"], &["doctor"]] {
            let ran = root.run(args);
            assert!(!ran.stdout.contains(random) && !ran.stderr.contains(random), "{line}: {ran}");
            assert!(!ran.stdout.contains(TOKEN) && !ran.stderr.contains(TOKEN), "{line}: {ran}");
        }
    }
}

#[test]
fn a_secret_in_the_agent_name_is_copied_nowhere() {
    let root = Root::new("mara");
    let settings = root.read("memoird.yaml");
    let others = settings.lines().filter(|it| !it.starts_with("agent_name:"));
    let others = others.collect::<Vec<_>>().join("\n");
    root.write("memoird.yaml", &format!("{others}\nagent_name: Mara ghp_{TOKEN}\n"));
    root.run(&["compact"]).ok();
    let files = root.files();
    assert!(files.contains_key("WISDOM.md"), "{:?}", files.keys());
    for (path, text) in files.iter().filter(|it| it.0 != "memoird.yaml") {
        assert!(!text.contains(TOKEN), "{path}:\n{text}");
    }
    for args in [&["status"][..], &["status", "--json"], &["show", "WISDOM.md"]] {
        let ran = root.run(args);
        assert!(!ran.stdout.contains(TOKEN) && !ran.stderr.contains(TOKEN), "{ran}");
    }
}
