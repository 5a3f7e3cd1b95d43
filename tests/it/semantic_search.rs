//! Search by meaning: a server that makes vectors, and all that goes on without it.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::{
    run::Daemon,
    support::{
        Ran, Root,
        server::{Answer, Asked, Server},
    },
};

/// Words that mean the same to the server here; what is in none of these rows it knows by its letters.
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

fn answer(asked: &Asked) -> Answer {
    let texts = asked.body["input"].as_array().unwrap();
    let vectors = texts.iter().map(|it| vector(it.as_str().unwrap()));
    let body = if asked.path == "/api/embed" {
        json!({ "embeddings": vectors.collect::<Vec<_>>(), "prompt_eval_count": 9 })
    } else {
        let data = vectors.enumerate().map(|(at, it)| json!({ "index": at, "embedding": it }));
        json!({ "data": data.collect::<Vec<_>>(), "usage": { "prompt_tokens": 9 } })
    };
    Answer::Http { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() }
}

struct House {
    root: Root,
    server: Server,
}

impl House {
    fn new(provider: &str) -> Self {
        let root = Root::empty("house");
        root.write("memoird.yaml", "zone: Europe/Berlin\n");
        root.write("memory/2026-04-07.md", LOG);
        let house = Self { root, server: Server::answering(answer) };
        let base =
            if provider == "ollama" { house.server.url() } else { house.server.url() + "/v1" };
        house.configure(&json!({ "provider": provider, "name": "words-1", "base_url": base }));
        house
    }

    fn configure(&self, embeddings: &Value) {
        let config = json!({ "search": { "embeddings": embeddings } });
        self.root.write("../.config/memoird/config.yaml", &config.to_string());
    }

    /// Returns all texts that were sent.
    fn sent(&self) -> Vec<String> {
        let texts = |it: Asked| it.body["input"].as_array().unwrap().clone();
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

/// Returns what the first hit says, and by what it was found.
fn first(found: &Value) -> (String, Vec<&str>) {
    let hit = &found["hits"][0];
    let by = hit["found_by"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    (hit["text"].as_str().unwrap().to_owned(), by.collect())
}

#[test]
fn a_line_is_found_by_other_words_for_the_same() {
    for provider in ["openai", "ollama"] {
        let house = House::new(provider);
        let found = house.search("feline");
        assert!(found["words_only"].as_str().unwrap().contains("no line has a vector yet"));
        house.root.run(&["compact"]).ok();
        let (text, by) = (house.search("feline"), house.search("cat"));
        assert_eq!(first(&text).1, ["meaning"], "{text:#}");
        assert!(first(&text).0.contains("warm router"), "{text:#}");
        assert_eq!(first(&by).1, ["words", "meaning"], "{by:#}");
        assert!(first(&by).0.contains("warm router") && by["words_only"].is_null());
        let shown = house.root.run(&["search", "vehicle"]).ok().stdout;
        assert!(shown.contains("new car") && shown.contains("by meaning"), "{shown}");
        // Each line once, beneath its heading; one word alone is near to nothing.
        let mut sent = house.sent();
        sent.retain(|it| it.starts_with("Household: "));
        assert_eq!(sent.len(), 4, "{sent:?}");
        let status = house.status();
        assert_eq!(
            (&status["lines"], &status["left"], &status["state"]),
            (&json!(4), &json!(0), &json!("ready"))
        );
    }
}

#[test]
fn what_is_new_alone_is_sent_and_what_is_gone_is_forgotten() {
    let house = House::new("openai");
    house.root.run(&["compact"]).ok();
    let before = house.sent().len();
    house.root.append("memory/2026-04-07.md", "- The kitten hides from the vacuum cleaner\n");
    house.root.run(&["compact"]).ok();
    let sent = house.sent();
    assert_eq!(sent.len(), before + 1, "{sent:?}");
    assert!(sent[before].ends_with("vacuum cleaner"));
    house.root.run(&["compact"]).ok();
    assert_eq!(house.server.count(), 2, "nothing is new");
    house.root.run(&["forget", "--yes", "vacuum cleaner"]).ok();
    // At once, and not only when somebody looks next.
    assert_eq!(house.status()["lines"], 0);
    house.root.run(&["compact"]).ok();
    assert_eq!(house.status()["lines"], 4);
    std::fs::remove_file(house.root.path("memory/2026-04-07.md")).unwrap();
    house.root.write("memory/2026-04-08.md", "- The vehicle arrived at the seaside house\n");
    house.root.run(&["compact", "--accept-missing"]);
    let found = house.search("automobile");
    assert!(first(&found).0.contains("vehicle arrived"), "{found:#}");
    // And all of them, once nobody searches by them.
    house.configure(&Value::Null);
    house.root.run(&["compact"]).ok();
    assert!(!house.root.path(".memoird/vectors.db").exists());
}

#[test]
fn what_may_not_be_seen_is_not_sent() {
    let house = House::new("openai");
    let secret = "ghp_a8Kd02Lm4Qx7Vb1Nc9Zy5Tw3Rj6Hs0Pf2Ug4";
    house.root.write("memory/2026-04-08.md", &format!("- The token of the runner is {secret}\n"));
    house.root.run(&["compact"]).ok();
    house.search(&format!("token {secret}"));
    let sent = house.sent();
    assert!(sent.iter().any(|it| it.contains("token of the runner")));
    assert!(sent.iter().all(|it| !it.contains(secret)), "{sent:?}");
    let bytes = std::fs::read(house.root.path(".memoird/vectors.db")).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("runner"));
}

#[test]
fn without_the_server_the_words_are_there() {
    for step in [
        Answer::Close,
        Answer::Http { status: 500, headers: Vec::new(), body: b"{}".to_vec() },
        Answer::Http { status: 401, headers: Vec::new(), body: b"{}".to_vec() },
        Answer::Http { status: 200, headers: Vec::new(), body: b"{\"data\":[]}".to_vec() },
    ] {
        let mut house = House::new("openai");
        house.root.run(&["compact"]).ok();
        house.server = Server::scripted(vec![step]);
        let base = house.server.url() + "/v1";
        let there = json!({ "provider": "openai", "name": "words-1", "base_url": base });
        house.configure(&there);
        let found = house.search("cat");
        assert_eq!(
            first(&found),
            ("The cat sleeps on the warm router every night".to_owned(), vec!["words"])
        );
        assert!(!found["words_only"].is_null());
        house.root.append("memory/2026-04-07.md", "- The kitten hides from the vacuum cleaner\n");
        let ran: Ran = house.root.run(&["compact"]).ok();
        assert!(ran.stderr.contains("1 logs wait for vectors"), "{}", ran.stderr);
        assert_eq!(house.status()["left"], 1);
    }
}

#[test]
fn a_key_goes_to_the_server_alone_that_it_is_for() {
    let house = House::new("openai");
    for name in ["of-model", "of-embeddings"] {
        let file = format!("../keys/{name}");
        house.root.write(&file, &format!("{name}-key\n"));
        fs::set_permissions(house.root.path(&file), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let here = house.server.url() + "/v1";
    let elsewhere = "https://models.example/v1";
    for (at, (model, own, expected)) in [
        (elsewhere, None, None),
        (elsewhere, Some("~/keys/of-embeddings"), Some("Bearer of-embeddings-key")),
        (&here, None, Some("Bearer of-model-key")),
        (&here, Some("~/keys/of-embeddings"), Some("Bearer of-embeddings-key")),
    ]
    .into_iter()
    .enumerate()
    {
        let config = json!({
            "model": { "base_url": model, "key_file": "~/keys/of-model" },
            "search": { "embeddings": { "name": "words-1", "base_url": here, "key_file": own } },
        });
        house.root.write("../.config/memoird/config.yaml", &config.to_string());
        house.root.append("memory/2026-04-07.md", &format!("- The kitten hides, day {at}\n"));
        house.root.run(&["compact"]).ok();
        let asked = house.server.requests();
        let (last, count) = (asked.last().unwrap(), asked.len());
        let sent = last.headers.iter().find(|it| it.0 == "authorization").map(|it| &it.1[..]);
        assert_eq!((sent, count), (expected, at + 1), "{model} {own:?}");
    }
}

#[test]
fn vectors_come_under_the_budget_and_leave_half_of_it() {
    let house = House::new("openai");
    let embeddings = json!({ "name": "words-1", "base_url": house.server.url() + "/v1" });
    let config = json!({
        "search": { "embeddings": embeddings },
        // A few lines are charged with some hundred tokens before they are sent.
        "budget": { "day": { "usd": null, "tokens": 200, "calls": 1 }, "month": { "usd": null } },
    });
    house.root.write("../.config/memoird/config.yaml", &config.to_string());
    let ran = house.root.run(&["compact"]).ok();
    assert_eq!(house.server.count(), 0);
    assert!(ran.stderr.contains("the budget of the day is exhausted"), "{}", ran.stderr);
    let config = config.to_string().replace("200", "20000");
    house.root.write("../.config/memoird/config.yaml", &config);
    house.root.run(&["compact"]).ok();
    // Calls are no measure of them.
    for query in ["feline", "vehicle"] {
        assert!(house.search(query)["words_only"].is_null());
    }
    let usage = house.root.run(&["usage", "--json", "--by", "tier"]).ok().json();
    assert_eq!(usage.to_string().matches("\"embed\"").count(), 1, "{usage:#}");
}

#[test]
fn the_daemon_makes_them_in_the_background() {
    let house = House::new("openai");
    for day in 10..30 {
        let log = format!("- On day {day} the archive of station {day} was moved\n").repeat(3);
        house.root.write(&format!("memory/2026-03-{day}.md"), &log);
    }
    let mut daemon = Daemon::spawn(&house.root, "2026-04-13T09:00:00+02:00", &[]);
    let lines = || house.status()["lines"].as_u64().unwrap_or(0);
    daemon.await_that("all lines have vectors", || house.status()["left"] == 0 && lines() == 64);
    house.root.append("memory/2026-04-07.md", "- The kitten hides from the vacuum cleaner\n");
    daemon.await_that("the new line has one", || lines() == 65);
    daemon.await_idle();
    // The newest first.
    let sent = house.sent();
    assert!(sent[0].starts_with("Household: "), "{:?}", &sent[..3]);
    assert!(first(&house.search("feline")).0.contains("cat"));
}
