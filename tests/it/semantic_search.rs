//! Search by meaning: a server that computes vectors, and the fallback without it.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::{
    run::Daemon,
    support::{
        CommandOutput, Root,
        server::{Answer, ModelRequest, Server},
    },
};

/// Groups of words with the same meaning to the test server; other words are placed by their letters.
const MEANINGS: [&[&str]; 4] = [
    &["cat", "feline", "kitten"],
    &["car", "automobile", "vehicle"],
    &["broke", "failed", "crashed"],
    &["beach", "seaside", "shore"],
];

const LOG: &str = "# Household

- The cat sleeps on the warm router every night
- Ordered a new car from the dealer in Kiel
- The export broke on row seven of the table
- Went for a walk on the beach with Ines
- ok
";

fn vector(text: &str) -> Vec<f64> {
    let mut vector = vec![0.0; 16];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
        match MEANINGS.iter().position(|it| it.contains(&word)) {
            Some(meaning) => vector[meaning] += 3.0,
            None if word.is_empty() => {}
            None => vector[4 + word.bytes().map(usize::from).sum::<usize>() % 12] += 0.2,
        }
    }
    vector
}

fn answer(requests: &ModelRequest) -> Answer {
    let texts = requests.body["input"].as_array().unwrap();
    let vectors = texts.iter().map(|it| vector(it.as_str().unwrap()));
    let body = if requests.path == "/api/embed" {
        json!({ "embeddings": vectors.collect::<Vec<_>>(), "prompt_eval_count": 9 })
    } else {
        let data = vectors.enumerate().map(|(at, it)| json!({ "index": at, "embedding": it }));
        json!({ "data": data.collect::<Vec<_>>(), "usage": { "prompt_tokens": 9 } })
    };
    Answer::Http { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() }
}

struct Fixture {
    root: Root,
    server: Server,
}

impl Fixture {
    fn new(provider: &str) -> Self {
        let root = Root::empty("house");
        root.write("memoird.yaml", "zone: Europe/Berlin\n");
        root.write("memory/2026-04-07.md", LOG);
        let fixture = Self { root, server: Server::answering(answer) };
        let base =
            if provider == "ollama" { fixture.server.url() } else { fixture.server.url() + "/v1" };
        fixture.configure(&json!({ "provider": provider, "name": "words-1", "base_url": base }));
        fixture
    }

    fn configure(&self, embeddings: &Value) {
        let config = json!({ "search": { "embeddings": embeddings } });
        self.root.write("../.config/memoird/config.yaml", &config.to_string());
    }

    /// Returns all texts that were sent to the server.
    fn sent(&self) -> Vec<String> {
        let texts = |it: ModelRequest| it.body["input"].as_array().unwrap().clone();
        let texts = self.server.requests().into_iter().flat_map(texts);
        texts.map(|it| it.as_str().unwrap().to_owned()).collect()
    }

    fn search(&self, query: &str) -> Value {
        self.root.run(&["search", "--json", query]).ok().json_as("search")
    }

    fn status(&self) -> Value {
        self.root.run(&["status", "--json"]).json_as("status")["embeddings"].clone()
    }
}

/// Returns the text of the first hit and by what it was found.
fn first_hit(results: &Value) -> (String, Vec<&str>) {
    let hit = &results["hits"][0];
    let by = hit["found_by"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    (hit["text"].as_str().unwrap().to_owned(), by.collect())
}

#[test]
fn a_line_is_found_by_synonyms() {
    for provider in ["openai", "ollama"] {
        let fixture = Fixture::new(provider);
        let results = fixture.search("feline");
        assert!(results["words_only"].as_str().unwrap().contains("no line has a vector yet"));
        fixture.root.run(&["compact"]).ok();
        let (by_meaning, by_word) = (fixture.search("feline"), fixture.search("cat"));
        assert_eq!(first_hit(&by_meaning).1, ["meaning"], "{by_meaning:#}");
        assert!(first_hit(&by_meaning).0.contains("warm router"), "{by_meaning:#}");
        assert_eq!(first_hit(&by_word).1, ["words", "meaning"], "{by_word:#}");
        assert!(first_hit(&by_word).0.contains("warm router") && by_word["words_only"].is_null());
        let shown = fixture.root.run(&["search", "vehicle"]).ok().stdout;
        assert!(shown.contains("new car") && shown.contains("by meaning"), "{shown}");
        // Each line is sent once, with its heading; a line of one word is not sent.
        let mut sent = fixture.sent();
        sent.retain(|it| it.starts_with("Household: "));
        assert_eq!(sent.len(), 4, "{sent:?}");
        let status = fixture.status();
        assert_eq!(
            (&status["lines"], &status["left"], &status["state"]),
            (&json!(4), &json!(0), &json!("ready"))
        );
    }
}

#[test]
fn only_new_lines_are_sent_and_vectors_of_removed_lines_are_deleted() {
    let fixture = Fixture::new("openai");
    fixture.root.run(&["compact"]).ok();
    let before = fixture.sent().len();
    fixture.root.append("memory/2026-04-07.md", "- The kitten hides from the vacuum cleaner\n");
    fixture.root.run(&["compact"]).ok();
    let sent = fixture.sent();
    assert_eq!(sent.len(), before + 1, "{sent:?}");
    assert!(sent[before].ends_with("vacuum cleaner"));
    fixture.root.run(&["compact"]).ok();
    assert_eq!(fixture.server.count(), 2, "nothing is new");
    fixture.root.run(&["forget", "--yes", "vacuum cleaner"]).ok();
    // At once, not only at the next search.
    assert_eq!(fixture.status()["lines"], 0);
    fixture.root.run(&["compact"]).ok();
    assert_eq!(fixture.status()["lines"], 4);
    std::fs::remove_file(fixture.root.path("memory/2026-04-07.md")).unwrap();
    fixture.root.write("memory/2026-04-08.md", "- The vehicle arrived at the seaside house\n");
    fixture.root.run(&["compact", "--accept-missing"]);
    let results = fixture.search("automobile");
    assert!(first_hit(&results).0.contains("vehicle arrived"), "{results:#}");
    // Without the setting all vectors are deleted.
    fixture.configure(&Value::Null);
    fixture.root.run(&["compact"]).ok();
    assert!(!fixture.root.path(".memoird/vectors.db").exists());
}

#[test]
fn secrets_are_not_sent() {
    let fixture = Fixture::new("openai");
    let secret = "ghp_a8Kd02Lm4Qx7Vb1Nc9Zy5Tw3Rj6Hs0Pf2Ug4";
    fixture.root.write("memory/2026-04-08.md", &format!("- The token of the runner is {secret}\n"));
    fixture.root.run(&["compact"]).ok();
    fixture.search(&format!("token {secret}"));
    let sent = fixture.sent();
    assert!(sent.iter().any(|it| it.contains("token of the runner")));
    assert!(sent.iter().all(|it| !it.contains(secret)), "{sent:?}");
    let bytes = std::fs::read(fixture.root.path(".memoird/vectors.db")).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("runner"));
}

#[test]
fn without_the_server_search_uses_words() {
    for step in [
        Answer::Close,
        Answer::Http { status: 500, headers: Vec::new(), body: b"{}".to_vec() },
        Answer::Http { status: 401, headers: Vec::new(), body: b"{}".to_vec() },
        Answer::Http { status: 200, headers: Vec::new(), body: b"{\"data\":[]}".to_vec() },
    ] {
        let mut fixture = Fixture::new("openai");
        fixture.root.run(&["compact"]).ok();
        fixture.server = Server::scripted(vec![step]);
        let base = fixture.server.url() + "/v1";
        let embeddings = json!({ "provider": "openai", "name": "words-1", "base_url": base });
        fixture.configure(&embeddings);
        let results = fixture.search("cat");
        assert_eq!(
            first_hit(&results),
            ("The cat sleeps on the warm router every night".to_owned(), vec!["words"])
        );
        assert!(!results["words_only"].is_null());
        fixture.root.append("memory/2026-04-07.md", "- The kitten hides from the vacuum cleaner\n");
        let ran: CommandOutput = fixture.root.run(&["compact"]).ok();
        assert!(ran.stderr.contains("1 logs wait for vectors"), "{}", ran.stderr);
        assert_eq!(fixture.status()["left"], 1);
    }
}

#[test]
fn a_key_is_sent_only_to_its_own_server() {
    let fixture = Fixture::new("openai");
    for name in ["of-model", "of-embeddings"] {
        let file = format!("../keys/{name}");
        fixture.root.write(&file, &format!("{name}-key\n"));
        fs::set_permissions(fixture.root.path(&file), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let own_server = fixture.server.url() + "/v1";
    let elsewhere = "https://models.example/v1";
    for (at, (model, key_file, expected)) in [
        (elsewhere, None, None),
        (elsewhere, Some("~/keys/of-embeddings"), Some("Bearer of-embeddings-key")),
        (&own_server, None, Some("Bearer of-model-key")),
        (&own_server, Some("~/keys/of-embeddings"), Some("Bearer of-embeddings-key")),
    ]
    .into_iter()
    .enumerate()
    {
        let config = json!({
            "model": { "base_url": model, "key_file": "~/keys/of-model" },
            "search": { "embeddings": { "name": "words-1", "base_url": own_server, "key_file": key_file } },
        });
        fixture.root.write("../.config/memoird/config.yaml", &config.to_string());
        fixture.root.append("memory/2026-04-07.md", &format!("- The kitten hides, day {at}\n"));
        fixture.root.run(&["compact"]).ok();
        let requests = fixture.server.requests();
        let (last, count) = (requests.last().unwrap(), requests.len());
        let sent = last.headers.iter().find(|it| it.0 == "authorization").map(|it| &it.1[..]);
        assert_eq!((sent, count), (expected, at + 1), "{model} {key_file:?}");
    }
}

#[test]
fn vectors_count_towards_the_token_budget_only() {
    let fixture = Fixture::new("openai");
    let embeddings = json!({ "name": "words-1", "base_url": fixture.server.url() + "/v1" });
    let config = json!({
        "search": { "embeddings": embeddings },
        // A few lines are charged with several hundred tokens before they are sent.
        "budget": { "day": { "usd": null, "tokens": 200, "calls": 1 }, "month": { "usd": null } },
    });
    fixture.root.write("../.config/memoird/config.yaml", &config.to_string());
    let ran = fixture.root.run(&["compact"]).ok();
    assert_eq!(fixture.server.count(), 0);
    assert!(ran.stderr.contains("the budget of the day is exhausted"), "{}", ran.stderr);
    let config = config.to_string().replace("200", "20000");
    fixture.root.write("../.config/memoird/config.yaml", &config);
    fixture.root.run(&["compact"]).ok();
    // The limit of calls does not apply to vectors.
    for query in ["feline", "vehicle"] {
        assert!(fixture.search(query)["words_only"].is_null());
    }
    let usage = fixture.root.run(&["usage", "--json", "--by", "tier"]).ok().json();
    assert_eq!(usage.to_string().matches("\"embed\"").count(), 1, "{usage:#}");
}

#[test]
fn the_daemon_computes_vectors_in_the_background() {
    let fixture = Fixture::new("openai");
    for day in 10..30 {
        let log = format!("- On day {day} the archive of station {day} was moved\n").repeat(3);
        fixture.root.write(&format!("memory/2026-03-{day}.md"), &log);
    }
    let mut daemon = Daemon::spawn(&fixture.root, "2026-04-13T09:00:00+02:00", &[]);
    let lines = || fixture.status()["lines"].as_u64().unwrap_or(0);
    daemon.await_that("all lines have vectors", || fixture.status()["left"] == 0 && lines() == 64);
    fixture.root.append("memory/2026-04-07.md", "- The kitten hides from the vacuum cleaner\n");
    daemon.await_that("the new line has one", || lines() == 65);
    daemon.await_idle();
    // The newest lines are sent first.
    let sent = fixture.sent();
    assert!(sent[0].starts_with("Household: "), "{:?}", &sent[..3]);
    assert!(first_hit(&fixture.search("feline")).0.contains("cat"));
}
