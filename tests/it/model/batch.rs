//! Batches: what the daemon hands over to be answered later, and what comes of it.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::{Value, json};

use super::{Desk, KEY, Wire};
use crate::{
    run::Daemon,
    support::{
        NOW,
        server::{Answer, Asked, Ends, Server, good},
    },
};

/// A provider that takes batches, as a test tells it.
#[derive(Debug, Default)]
struct Provider {
    /// It knows no batches.
    is_plain: bool,
    /// All batches have ended.
    has_ended: bool,
    /// So many batches expire without an answer, the first ones.
    expiring: usize,
    /// What it calls its batches, if not what is usual.
    id: Option<String>,
    /// Files that were uploaded.
    files: Vec<Vec<(String, Value)>>,
    batches: Vec<Batch>,
    /// Requests outside of batches.
    direct: usize,
}

#[derive(Clone, Debug)]
struct Batch {
    id: String,
    /// Names and bodies.
    requests: Vec<(String, Value)>,
    metadata: Value,
}

impl Provider {
    fn answer(&mut self, wire: Wire, asked: &Asked) -> Answer {
        let path = asked.path.split('?').next().unwrap();
        if matches!(path, "/v1/messages" | "/v1/chat/completions") {
            self.direct += 1;
            return asked.saying(&good(asked), Ends::Well);
        }
        if self.is_plain {
            return Answer::json(404, &wire.error("not_found_error", "no such thing"));
        }
        let parts: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
        let is_post = asked.method == "POST";
        match (&parts[..], wire) {
            (["messages", "batches"], _) if is_post => {
                let requests = asked.body["requests"].as_array().unwrap();
                let request = |it: &Value| (text(&it["custom_id"]), it["params"].clone());
                let requests = requests.iter().map(request).collect();
                self.begin(wire, requests, Value::Null)
            }
            (["files"], _) if is_post => {
                let body = String::from_utf8(asked.bytes.clone()).unwrap();
                let lines = body.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
                let request = |it: Value| (text(&it["custom_id"]), it["body"].clone());
                self.files.push(lines.map(request).collect());
                Answer::json(200, &json!({ "id": format!("file-{}", self.files.len()) }))
            }
            (["batches"], _) if is_post => {
                assert_eq!(asked.body["endpoint"], "/v1/chat/completions");
                let file: usize =
                    text(&asked.body["input_file_id"])["file-".len()..].parse().unwrap();
                let requests = self.files[file - 1].clone();
                self.begin(wire, requests, asked.body["metadata"].clone())
            }
            (["messages", "batches"] | ["batches"], _) => {
                let all: Vec<Value> = self.batches.iter().map(|it| self.shown(wire, it)).collect();
                Answer::json(200, &json!({ "data": all, "has_more": false }))
            }
            (["messages", "batches", id] | ["batches", id], _) => {
                let batch = self.batches.iter().find(|it| it.id == *id).unwrap();
                Answer::json(200, &self.shown(wire, batch))
            }
            (["messages", "batches", id, "results"], _) => {
                let at = self.batches.iter().position(|it| it.id == *id).unwrap();
                self.results(wire, at)
            }
            (["files", id, "content"], _) => {
                let at: usize = id["out-".len()..].parse().unwrap();
                self.results(wire, at)
            }
            _ => panic!("{} {}", asked.method, asked.path),
        }
    }

    fn begin(&mut self, wire: Wire, requests: Vec<(String, Value)>, metadata: Value) -> Answer {
        let id = self.id.clone().unwrap_or_else(|| format!("batch_{}", self.batches.len()));
        let batch = Batch { id, requests, metadata };
        let shown = self.shown(wire, &batch);
        self.batches.push(batch);
        Answer::json(200, &shown)
    }

    fn shown(&self, wire: Wire, batch: &Batch) -> Value {
        let at = self.batches.iter().position(|it| it.id == batch.id).unwrap_or(0);
        if wire == Wire::Anthropic {
            let status = if self.has_ended { "ended" } else { "in_progress" };
            return json!({
                "id": batch.id, "type": "message_batch", "processing_status": status,
                "request_counts": {
                    "processing": batch.requests.len(), "succeeded": 0, "errored": 0, "canceled": 0,
                    "expired": 0,
                },
                "created_at": "2026-04-13T07:00:01.123Z",
                "expires_at": "2026-04-14T07:00:01.123Z",
                "results_url": "https://elsewhere.invalid/results",
            });
        }
        let file = json!(format!("out-{at}"));
        let (status, output, error) = match (self.has_ended, at < self.expiring) {
            (false, _) => ("in_progress", Value::Null, Value::Null),
            (true, true) => ("expired", Value::Null, file),
            (true, false) => ("completed", file, Value::Null),
        };
        json!({
            "id": batch.id, "object": "batch", "status": status, "metadata": batch.metadata,
            "output_file_id": output, "error_file_id": error, "created_at": 1_776_063_601,
            "completion_window": "24h", "endpoint": "/v1/chat/completions",
            "input_file_id": format!("file-{}", at + 1),
        })
    }

    fn results(&self, wire: Wire, at: usize) -> Answer {
        // A line of somebody else's changes nothing.
        let mut lines =
            "{\"custom_id\":\"other-1\",\"result\":{\"type\":\"expired\"}}\n".to_owned();
        for (name, body) in self.batches[at].requests.iter().rev() {
            let line = match (wire, at < self.expiring) {
                (Wire::Anthropic, true) => json!({ "result": { "type": "expired" } }),
                (Wire::Anthropic, false) => {
                    let message = reply(body, "/v1/messages");
                    json!({ "result": { "type": "succeeded", "message": message } })
                }
                (_, true) => {
                    json!({ "response": null, "error": { "code": "batch_expired", "message": "" } })
                }
                (_, false) => {
                    let body = reply(body, "/v1/chat/completions");
                    let response = json!({ "status_code": 200, "request_id": "r-1", "body": body });
                    json!({ "response": response, "error": null })
                }
            };
            let mut line = line;
            line["custom_id"] = json!(name);
            lines.extend([&line.to_string(), "\n"]);
        }
        Answer::text(200, &lines)
    }
}

/// Returns the answer to a request as it stands in results.
fn reply(body: &Value, path: &str) -> Value {
    let asked = Asked {
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: body.clone(),
        bytes: Vec::new(),
    };
    let Answer::Http { body, .. } = asked.saying(&good(&asked), Ends::Well) else { unreachable!() };
    serde_json::from_slice(&body).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A desk whose daemon uses batches.
struct Batching {
    desk: Desk,
    provider: Arc<Mutex<Provider>>,
}

impl Batching {
    fn new(wire: Wire) -> Self {
        let provider: Arc<Mutex<Provider>> = Arc::default();
        let answering = Arc::clone(&provider);
        let server = Server::answering(move |asked| answering.lock().unwrap().answer(wire, asked));
        let mut desk = Desk::new(wire, server);
        desk.set("/model/batch", json!(true));
        Self { desk, provider }
    }

    fn provider(&self) -> MutexGuard<'_, Provider> {
        self.provider.lock().unwrap()
    }

    fn start_at(&self, now: &str) -> Daemon {
        Daemon::spawn(&self.desk.root, now, &[("MEMOIRD_API_KEY", KEY)])
    }

    fn start(&self) -> Daemon {
        self.start_at(NOW)
    }

    /// Lets a daemon run until a step ends it.
    fn run_to(&self, step: &str) {
        let fail = format!("kill@{step}");
        let variables = [("MEMOIRD_API_KEY", KEY), ("MEMOIRD_FAIL", &fail)];
        Daemon::spawn(&self.desk.root, NOW, &variables).await_end();
    }

    /// Waits until so many batches are under way, as `status` knows.
    #[track_caller]
    fn await_batches(&self, daemon: &mut Daemon, count: usize) {
        daemon.await_that("a batch is under way", || {
            self.provider().batches.len() == count && self.is_in_batch()
        });
    }

    fn is_in_batch(&self) -> bool {
        self.desk.status().contains("1 request in a batch since 2026-04-13")
    }

    #[track_caller]
    fn await_week(&self, daemon: &mut Daemon) {
        daemon.await_that("the week is there", || {
            self.desk.week().is_some() && self.replies().is_empty()
        });
        daemon.await_idle();
    }

    /// Returns the names of replies that are kept.
    fn replies(&self) -> Vec<String> {
        let folder = fs::read_dir(self.desk.root.path(".memoird"));
        let names = folder.into_iter().flatten().flatten();
        let names = names.map(|it| it.file_name().to_string_lossy().into_owned());
        names.filter(|it| it.starts_with("reply-")).collect()
    }

    /// Returns batches that were made, requests outside of them, and what `usage` counts: calls, and
    /// those in batches.
    fn counts(&self) -> (usize, usize, u64, u64) {
        let usage = self.desk.run(&["usage", "--json"]).ok().json();
        let provider = self.provider();
        let count = |name: &str| usage[name].as_u64().unwrap();
        (provider.batches.len(), provider.direct, count("calls"), count("batched"))
    }
}

/// Returns what goes to and fro for a batch, as bodies with their kinds: what is sent and what is read.
pub(super) fn envelopes(wire: Wire) -> Vec<(&'static str, Value)> {
    let batching = Batching::new(wire);
    let mut daemon = batching.start();
    batching.await_batches(&mut daemon, 1);
    daemon.kill();
    let sent = batching.desk.server.requests().into_iter().filter(|it| it.method == "POST");
    let mut bodies: Vec<(&str, Value)> = Vec::new();
    for asked in sent {
        if asked.path.ends_with("/files") {
            let body = String::from_utf8(asked.bytes).unwrap();
            let lines = body.lines().filter_map(|it| serde_json::from_str(it).ok());
            bodies.extend(lines.map(|it| ("batch line", it)));
        } else {
            bodies.push(("batch request", asked.body));
        }
    }
    for has_ended in [false, true] {
        let mut provider = batching.provider();
        provider.has_ended = has_ended;
        bodies.push(("batch", provider.shown(wire, &provider.batches[0])));
    }
    if wire == Wire::Anthropic {
        let results = batching.provider().results(wire, 0);
        let Answer::Http { body, .. } = results else { unreachable!() };
        let text = String::from_utf8(body).unwrap();
        let lines = text.lines().map(|it| serde_json::from_str(it).unwrap());
        bodies.extend(lines.map(|it| ("batch line", it)));
    }
    bodies
}

/// Minutes after [`NOW`].
fn later(minutes: u32) -> String {
    format!("2026-04-13T{:02}:{:02}:00+02:00", 9 + minutes / 60, minutes % 60)
}

#[test]
fn a_fold_is_handed_over_and_made_when_it_is_answered() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        let mut daemon = batching.start();
        batching.await_batches(&mut daemon, 1);
        assert_eq!((batching.desk.week(), batching.replies().len()), (None, 1));
        // Asked again before it has ended, it is not handed over again.
        daemon.set_clock(&later(10));
        daemon.await_that("it is asked after", || {
            batching.desk.server.requests().iter().any(|it| it.path.contains("/batch_0"))
        });
        batching.provider().has_ended = true;
        daemon.set_clock(&later(20));
        batching.await_week(&mut daemon);
        assert_eq!(batching.counts(), (1, 0, 1, 1), "{wire:?}");
        assert!(batching.desk.week().unwrap().contains("model/1 scripted-1"));
        let status = batching.desk.status();
        assert!(status.contains("ready") && !status.contains("batch"), "{status}");
    }
}

#[test]
fn a_week_is_handed_over_with_its_days() {
    for wire in Wire::BOTH {
        let mut batching = Batching::new(wire);
        batching.desk.set("/compaction/extract", json!(true));
        let mut daemon = batching.start();
        batching.await_batches(&mut daemon, 1);
        let asked = batching.provider().batches[0].requests[0].1.to_string();
        assert!(asked.contains("SECOND_TASK") && asked.contains("FIRST_TASK"), "{asked}");
        // A daemon that begins anew knows what it waits for.
        daemon.kill();
        batching.provider().has_ended = true;
        let mut daemon = batching.start_at(&later(2));
        batching.await_week(&mut daemon);
        assert_eq!(batching.counts(), (1, 0, 1, 1), "{wire:?}");
        daemon.await_idle();
        let due = batching.desk.run(&["compact", "--dry-run", "--json"]).ok().json();
        assert_eq!(due["jobs"].as_array().unwrap().len(), 0, "{due:#}");
    }
}

#[test]
fn a_batch_survives_a_restart() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        let mut daemon = batching.start();
        batching.await_batches(&mut daemon, 1);
        daemon.kill();
        let mut daemon = batching.start_at(&later(1));
        daemon.await_idle();
        daemon.kill();
        batching.provider().has_ended = true;
        let mut daemon = batching.start_at(&later(2));
        batching.await_week(&mut daemon);
        assert_eq!(batching.counts(), (1, 0, 1, 1), "{wire:?}");
    }
}

#[test]
fn a_crash_loses_no_batch_and_pays_none_twice() {
    for wire in Wire::BOTH {
        for step in ["batch.sent", "batch.opened"] {
            let batching = Batching::new(wire);
            batching.run_to(step);
            batching.provider().has_ended = true;
            let mut daemon = batching.start_at(&later(1));
            batching.await_week(&mut daemon);
            assert_eq!(batching.counts(), (1, 0, 1, 1), "{wire:?} {step}");
        }
        // What was queued only was never sent: it is queued again.
        let batching = Batching::new(wire);
        batching.run_to("batch.pass_ended");
        assert_eq!(batching.provider().batches.len(), 0);
        let mut daemon = batching.start_at(&later(1));
        batching.await_batches(&mut daemon, 1);
        batching.provider().has_ended = true;
        daemon.set_clock(&later(12));
        batching.await_week(&mut daemon);
        assert_eq!(batching.counts(), (1, 0, 1, 1), "{wire:?}");
        for step in ["batch.fetched", "batch.kept"] {
            let batching = Batching::new(wire);
            let mut daemon = batching.start();
            batching.await_batches(&mut daemon, 1);
            daemon.kill();
            batching.provider().has_ended = true;
            batching.run_to(step);
            let mut daemon = batching.start_at(&later(1));
            batching.await_week(&mut daemon);
            assert_eq!(batching.counts(), (1, 0, 1, 1), "{wire:?} {step}");
        }
    }
}

#[test]
fn what_may_not_have_arrived_is_looked_for_and_then_asked_again() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        batching.run_to("batch.recorded");
        assert_eq!(batching.provider().batches.len(), 0);
        let mut daemon = batching.start_at(&later(1));
        daemon.await_that("it is looked for", || {
            batching.desk.server.requests().iter().any(|it| it.path.contains("limit="))
        });
        daemon.set_clock(&later(12));
        batching.await_batches(&mut daemon, 1);
        batching.provider().has_ended = true;
        daemon.set_clock(&later(23));
        batching.await_week(&mut daemon);
        // The first stays charged: nobody knows.
        assert_eq!(batching.counts(), (1, 0, 2, 2), "{wire:?}");
    }
}

#[test]
fn what_expires_is_asked_again_and_at_last_directly() {
    for wire in Wire::BOTH {
        for (expiring, expected) in [(1, (2, 0, 2, 2)), (9, (2, 1, 3, 2))] {
            let batching = Batching::new(wire);
            batching.provider().expiring = expiring;
            let mut daemon = batching.start();
            batching.await_batches(&mut daemon, 1);
            batching.provider().has_ended = true;
            daemon.set_clock(&later(10));
            daemon.await_that("it is asked again", || batching.provider().batches.len() == 2);
            daemon.await_that("the second is known", || batching.is_in_batch());
            daemon.set_clock(&later(21));
            batching.await_week(&mut daemon);
            assert_eq!(batching.counts(), expected, "{wire:?} {expiring}");
        }
    }
}

#[test]
fn a_server_without_batches_is_asked_directly() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        batching.provider().is_plain = true;
        let mut daemon = batching.start();
        batching.await_week(&mut daemon);
        let log = daemon.kill();
        assert_eq!(log.matches("the server accepts no batches").count(), 1, "{log}");
        // What never left is no call.
        assert_eq!(batching.counts(), (0, 1, 1, 0), "{wire:?}");
    }
}

#[test]
fn who_waits_at_a_terminal_gets_no_batch() {
    let batching = Batching::new(Wire::Openai);
    batching.desk.compact().ran.ok();
    assert_eq!(batching.counts(), (0, 1, 1, 0));
}

#[test]
fn who_waits_at_a_terminal_gets_what_has_been_answered() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        let mut daemon = batching.start();
        batching.await_batches(&mut daemon, 1);
        daemon.kill();
        batching.provider().has_ended = true;
        // What would be done changes nothing.
        batching.desk.run(&["compact", "--dry-run"]).ok();
        assert!(batching.is_in_batch());
        let compacted = batching.desk.run_with(&["compact"], &[("MEMOIRD_LOG", "debug")]).ok();
        assert!(batching.desk.week().is_some() && batching.replies().is_empty(), "{compacted}");
        assert_eq!(batching.counts(), (1, 0, 1, 1), "{wire:?}");
        // It is a call like any other in the log.
        for words in
            ["batched=true", "gen_ai.request.model=\"scripted-1\"", "gen_ai.usage.output_tokens="]
        {
            assert!(compacted.stderr.contains(words), "{words}: {compacted}");
        }
    }
}

#[test]
fn a_batch_that_cannot_be_fetched_holds_nobody_up() {
    let batching = Batching::new(Wire::Openai);
    let mut daemon = batching.start();
    batching.await_batches(&mut daemon, 1);
    daemon.kill();
    batching.provider().is_plain = true;
    let compacted = batching.desk.run(&["compact"]).ok();
    assert!(batching.desk.week().is_some(), "{compacted}");
    assert_eq!(batching.counts(), (1, 1, 2, 1));
}

#[test]
fn a_reply_that_nobody_wants_any_more_is_not_kept() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        let mut daemon = batching.start();
        batching.await_batches(&mut daemon, 1);
        daemon.kill();
        // A person did not want to wait, and the reply has no work any more when it comes.
        batching.desk.compact().ran.ok();
        assert!(batching.replies().is_empty(), "{:?}", batching.replies());
        let week = batching.desk.week();
        batching.provider().has_ended = true;
        let mut daemon = batching.start_at(&later(1));
        daemon.await_that("it is fetched", || !batching.is_in_batch());
        daemon.await_idle();
        assert_eq!((batching.replies().len(), batching.desk.week()), (0, week));
        assert_eq!(batching.counts(), (1, 1, 2, 1));
    }
}

#[test]
fn a_reply_to_what_was_changed_is_used_for_nothing() {
    let batching = Batching::new(Wire::Anthropic);
    let mut daemon = batching.start();
    batching.await_batches(&mut daemon, 1);
    daemon.kill();
    batching.desk.root.append("memory/2026-04-07.md", "- The archive has 12 folders now\n");
    batching.provider().has_ended = true;
    let mut daemon = batching.start_at("2026-04-13T10:00:00+02:00");
    batching.await_batches(&mut daemon, 2);
    assert_eq!((batching.desk.week(), batching.replies().len()), (None, 2));
    daemon.set_clock("2026-04-13T10:11:00+02:00");
    daemon.await_that("the week is there", || batching.desk.week().is_some());
    daemon.kill();
    // What was not asked for again goes after some days.
    let mut daemon = batching.start_at("2026-04-17T10:00:00+02:00");
    daemon.await_that("it is gone", || batching.replies().is_empty());
    assert_eq!(batching.provider().direct, 0);
}

#[test]
fn a_cap_holds_for_batches_too_and_at_their_price() {
    let batching = Batching::new(Wire::Openai);
    let Batching { mut desk, provider } = batching;
    desk.root.write("memory/2026-03-31.md", super::LOG);
    desk.set("/budget/day/calls", json!(1));
    let batching = Batching { desk, provider };
    let mut daemon = batching.start();
    batching.await_batches(&mut daemon, 1);
    daemon.await_idle();
    assert_eq!(batching.provider().batches[0].requests.len(), 1);
    assert_eq!(batching.counts(), (1, 0, 1, 1));
}

/// What no output may hold.
const PART: &str = "7Zq4Wm9x";

#[track_caller]
fn assert_in_no_file(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            assert_in_no_file(&path);
        } else if kind.is_file() {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(PART), "{}", path.display());
        }
    }
}

#[test]
fn the_key_is_in_no_file_and_no_log_of_a_batch() {
    for wire in Wire::BOTH {
        for id in [None, Some(KEY.to_owned()), Some("../../etc".to_owned())] {
            let batching = Batching::new(wire);
            batching.provider().id.clone_from(&id);
            let mut daemon = batching.start();
            daemon.await_that("it is sent", || !batching.provider().batches.is_empty());
            if id.is_none() {
                batching.await_batches(&mut daemon, 1);
                batching.provider().has_ended = true;
                daemon.set_clock(&later(10));
                batching.await_week(&mut daemon);
            } else {
                daemon.await_idle();
            }
            let log = daemon.kill();
            assert!(!log.contains(PART), "{log}");
            assert_in_no_file(&batching.desk.root.home(""));
            for asked in batching.desk.server.requests() {
                assert!(!String::from_utf8_lossy(&asked.bytes).contains(PART));
                assert!(!asked.path.contains(PART) && !asked.path.contains(".."), "{}", asked.path);
                assert_eq!(asked.headers.iter().filter(|it| it.1.contains(PART)).count(), 1);
            }
        }
    }
}

#[test]
fn what_is_forgotten_between_a_pass_and_its_batch_is_not_sent() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        let go = batching.desk.root.home("go");
        let fail = format!("wait:{}@batch.pass_ended", go.display());
        let variables = [("MEMOIRD_API_KEY", KEY), ("MEMOIRD_FAIL", &fail)];
        let mut daemon = Daemon::spawn(&batching.desk.root, NOW, &variables);
        daemon.await_file(&go.with_extension("reached"));
        batching.desk.run(&["forget", "memory/2026-04-07.md", "--yes"]).ok();
        batching.desk.root.write("../go", "");
        daemon.await_idle();
        let (status, _, log) = daemon.stop(rustix::process::Signal::TERM);
        assert_eq!(status.code(), Some(0), "{log}");
        let sent = batching.desk.server.requests();
        assert!(!sent.iter().any(|it| it.body.to_string().contains("SQLite")), "{log}");
        assert_eq!((batching.provider().batches.len(), batching.replies()), (0, vec![]));
    }
}
