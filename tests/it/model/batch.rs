//! Batches: requests that the daemon sends to be answered later.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::{Value, json};

use super::{KEY, Wire, Workspace};
use crate::{
    run::Daemon,
    support::{
        NOW,
        server::{Answer, ModelRequest, Server, StopReason, valid_reply},
    },
};

/// A provider with a batch interface.
#[derive(Debug, Default)]
struct Provider {
    /// Whether it has no batch interface.
    has_no_batches: bool,
    /// Whether all batches have ended.
    has_ended: bool,
    /// The number of batches, from the first on, that expire without an answer.
    expiring: usize,
    /// The id of its batches, if not the usual one.
    id: Option<String>,
    /// Uploaded files: names and bodies of requests.
    files: Vec<Vec<(String, Value)>>,
    batches: Vec<Batch>,
    /// Requests outside of batches.
    direct: usize,
    /// What follows each text of a reply in a batch.
    more: &'static str,
}

#[derive(Clone, Debug)]
struct Batch {
    id: String,
    /// Names and bodies of requests.
    requests: Vec<(String, Value)>,
    metadata: Value,
}

impl Provider {
    fn answer(&mut self, wire: Wire, request: &ModelRequest) -> Answer {
        let path = request.path.split('?').next().unwrap();
        if matches!(path, "/v1/messages" | "/v1/chat/completions") {
            self.direct += 1;
            return request.reply_with(&valid_reply(request), StopReason::Complete);
        }
        if self.has_no_batches {
            return Answer::json(404, &wire.error("not_found_error", "no such thing"));
        }
        let parts: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
        let is_post = request.method == "POST";
        match (&parts[..], wire) {
            (["messages", "batches"], _) if is_post => {
                let requests = request.body["requests"].as_array().unwrap();
                let name_and_body = |it: &Value| (text(&it["custom_id"]), it["params"].clone());
                let requests = requests.iter().map(name_and_body).collect();
                self.begin(wire, requests, Value::Null)
            }
            (["files"], _) if is_post => {
                let body = String::from_utf8(request.bytes.clone()).unwrap();
                let lines = body.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
                let name_and_body = |it: Value| (text(&it["custom_id"]), it["body"].clone());
                self.files.push(lines.map(name_and_body).collect());
                Answer::json(200, &json!({ "id": format!("file-{}", self.files.len()) }))
            }
            (["batches"], _) if is_post => {
                assert_eq!(request.body["endpoint"], "/v1/chat/completions");
                let file: usize =
                    text(&request.body["input_file_id"])["file-".len()..].parse().unwrap();
                let requests = self.files[file - 1].clone();
                self.begin(wire, requests, request.body["metadata"].clone())
            }
            (["messages", "batches"] | ["batches"], _) => {
                let all: Vec<Value> =
                    self.batches.iter().map(|it| self.batch_json(wire, it)).collect();
                Answer::json(200, &json!({ "data": all, "has_more": false }))
            }
            (["messages", "batches", id] | ["batches", id], _) => {
                let batch = self.batches.iter().find(|it| it.id == *id).unwrap();
                Answer::json(200, &self.batch_json(wire, batch))
            }
            (["messages", "batches", id, "results"], _) => {
                let at = self.batches.iter().position(|it| it.id == *id).unwrap();
                self.results(wire, at)
            }
            (["files", id, "content"], _) => {
                let at: usize = id["out-".len()..].parse().unwrap();
                self.results(wire, at)
            }
            _ => panic!("{} {}", request.method, request.path),
        }
    }

    fn begin(&mut self, wire: Wire, requests: Vec<(String, Value)>, metadata: Value) -> Answer {
        let id = self.id.clone().unwrap_or_else(|| format!("batch_{}", self.batches.len()));
        let batch = Batch { id, requests, metadata };
        let body = self.batch_json(wire, &batch);
        self.batches.push(batch);
        Answer::json(200, &body)
    }

    fn batch_json(&self, wire: Wire, batch: &Batch) -> Value {
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
        // A result of an unknown request is ignored.
        let mut lines =
            "{\"custom_id\":\"other-1\",\"result\":{\"type\":\"expired\"}}\n".to_owned();
        for (name, body) in self.batches[at].requests.iter().rev() {
            let line = match (wire, at < self.expiring) {
                (Wire::Anthropic, true) => json!({ "result": { "type": "expired" } }),
                (Wire::Anthropic, false) => {
                    let message = response_body(body, "/v1/messages", self.more);
                    json!({ "result": { "type": "succeeded", "message": message } })
                }
                (_, true) => {
                    json!({ "response": null, "error": { "code": "batch_expired", "message": "" } })
                }
                (_, false) => {
                    let body = response_body(body, "/v1/chat/completions", self.more);
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

/// Returns the response body to a request, as in batch results.
fn response_body(body: &Value, path: &str, more: &str) -> Value {
    let request = ModelRequest {
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: body.clone(),
        bytes: Vec::new(),
    };
    let Answer::Http { body, .. } =
        request.reply_with(&(valid_reply(&request) + more), StopReason::Complete)
    else {
        unreachable!()
    };
    serde_json::from_slice(&body).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A workspace with batches enabled, and its provider.
struct Batching {
    workspace: Workspace,
    provider: Arc<Mutex<Provider>>,
}

impl Batching {
    fn new(wire: Wire) -> Self {
        let provider: Arc<Mutex<Provider>> = Arc::default();
        let answering = Arc::clone(&provider);
        let server =
            Server::answering(move |request| answering.lock().unwrap().answer(wire, request));
        let mut workspace = Workspace::new(wire, server);
        workspace.set("/model/batch", json!(true));
        Self { workspace, provider }
    }

    fn provider(&self) -> MutexGuard<'_, Provider> {
        self.provider.lock().unwrap()
    }

    fn start_at(&self, now: &str) -> Daemon {
        Daemon::spawn(&self.workspace.root, now, &[("MEMOIRD_API_KEY", KEY)])
    }

    fn start(&self) -> Daemon {
        self.start_at(NOW)
    }

    /// Runs a daemon that is killed at a step.
    fn run_until_killed_at(&self, step: &str) {
        let fail = format!("kill@{step}");
        let variables = [("MEMOIRD_API_KEY", KEY), ("MEMOIRD_FAIL", &fail)];
        Daemon::spawn(&self.workspace.root, NOW, &variables).await_end();
    }

    /// Waits until the provider has `count` batches and `status` reports one.
    #[track_caller]
    fn await_batches(&self, daemon: &mut Daemon, count: usize) {
        daemon.await_that("a batch was sent", || {
            self.provider().batches.len() == count && self.is_in_batch()
        });
    }

    fn is_in_batch(&self) -> bool {
        self.workspace.status().contains("1 request in a batch since 2026-04-13")
    }

    #[track_caller]
    fn await_week(&self, daemon: &mut Daemon) {
        daemon.await_that("the week is written", || {
            self.workspace.week().is_some() && self.replies().is_empty()
        });
        daemon.await_idle();
    }

    /// Returns the names of stored replies.
    fn replies(&self) -> Vec<String> {
        let folder = fs::read_dir(self.workspace.root.path(".memoird"));
        let names = folder.into_iter().flatten().flatten();
        let names = names.map(|it| it.file_name().to_string_lossy().into_owned());
        names.filter(|it| it.starts_with("reply-")).collect()
    }

    /// Returns the number of batches, of requests outside of them, and, by `usage`, of calls and of calls
    /// in batches.
    fn counts(&self) -> (usize, usize, u64, u64) {
        let usage = self.workspace.run(&["usage", "--json"]).ok().json();
        let provider = self.provider();
        let count = |name: &str| usage[name].as_u64().unwrap();
        (provider.batches.len(), provider.direct, count("calls"), count("batched"))
    }
}

/// Returns the kinds and bodies of all messages for a batch, sent and received.
pub(super) fn envelopes(wire: Wire) -> Vec<(&'static str, Value)> {
    let batching = Batching::new(wire);
    let mut daemon = batching.start();
    batching.await_batches(&mut daemon, 1);
    daemon.kill();
    let sent = batching.workspace.server.requests().into_iter().filter(|it| it.method == "POST");
    let mut bodies: Vec<(&str, Value)> = Vec::new();
    for request in sent {
        if request.path.ends_with("/files") {
            let body = String::from_utf8(request.bytes).unwrap();
            let lines = body.lines().filter_map(|it| serde_json::from_str(it).ok());
            bodies.extend(lines.map(|it| ("batch line", it)));
        } else {
            bodies.push(("batch request", request.body));
        }
    }
    for has_ended in [false, true] {
        let mut provider = batching.provider();
        provider.has_ended = has_ended;
        bodies.push(("batch", provider.batch_json(wire, &provider.batches[0])));
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

/// Returns the time so many minutes after [`NOW`].
fn later(minutes: u32) -> String {
    format!("2026-04-13T{:02}:{:02}:00+02:00", 9 + minutes / 60, minutes % 60)
}

#[test]
fn a_week_is_sent_as_a_batch_and_written_when_answered() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        let mut daemon = batching.start();
        batching.await_batches(&mut daemon, 1);
        assert_eq!((batching.workspace.week(), batching.replies().len()), (None, 1));
        // Polling a batch that has not ended does not send it again.
        daemon.set_clock(&later(10));
        daemon.await_that("the batch is polled", || {
            batching.workspace.server.requests().iter().any(|it| it.path.contains("/batch_0"))
        });
        batching.provider().has_ended = true;
        daemon.set_clock(&later(20));
        batching.await_week(&mut daemon);
        assert_eq!(batching.counts(), (1, 0, 1, 1), "{wire:?}");
        assert!(batching.workspace.week_record().contains("model/1 scripted-1"));
        let status = batching.workspace.status();
        assert!(status.contains("ready") && !status.contains("batch"), "{status}");
    }
}

#[test]
fn a_batch_contains_a_week_with_its_days() {
    for wire in Wire::BOTH {
        let mut batching = Batching::new(wire);
        batching.workspace.set("/compaction/extract", json!(true));
        let mut daemon = batching.start();
        batching.await_batches(&mut daemon, 1);
        let request = batching.provider().batches[0].requests[0].1.to_string();
        assert!(request.contains("SECOND_TASK") && request.contains("FIRST_TASK"), "{request}");
        // A restarted daemon knows its batch.
        daemon.kill();
        batching.provider().has_ended = true;
        let mut daemon = batching.start_at(&later(2));
        batching.await_week(&mut daemon);
        assert_eq!(batching.counts(), (1, 0, 1, 1), "{wire:?}");
        daemon.await_idle();
        let due = batching.workspace.run(&["compact", "--dry-run", "--json"]).ok().json();
        assert_eq!(due["jobs"].as_array().unwrap().len(), 0, "{due:#}");
    }
}

#[test]
fn corrections_of_a_batched_week_are_requested_directly() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        batching.provider().more = "- Hired Bob for 900 EUR [L3]\n";
        let mut daemon = batching.start();
        batching.await_batches(&mut daemon, 1);
        batching.provider().has_ended = true;
        daemon.set_clock(&later(20));
        batching.await_week(&mut daemon);
        assert_eq!(batching.counts(), (1, 1, 2, 1), "{wire:?}");
        assert!(batching.workspace.server.requests().iter().any(ModelRequest::is_repair));
        assert!(!batching.workspace.week().unwrap().contains("Hired"));
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
            batching.run_until_killed_at(step);
            batching.provider().has_ended = true;
            let mut daemon = batching.start_at(&later(1));
            batching.await_week(&mut daemon);
            assert_eq!(batching.counts(), (1, 0, 1, 1), "{wire:?} {step}");
        }
        // A request that was only queued was never sent, so it is queued again.
        let batching = Batching::new(wire);
        batching.run_until_killed_at("batch.pass_ended");
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
            batching.run_until_killed_at(step);
            let mut daemon = batching.start_at(&later(1));
            batching.await_week(&mut daemon);
            assert_eq!(batching.counts(), (1, 0, 1, 1), "{wire:?} {step}");
        }
    }
}

#[test]
fn a_batch_that_may_be_lost_is_looked_up_and_then_sent_again() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        batching.run_until_killed_at("batch.recorded");
        assert_eq!(batching.provider().batches.len(), 0);
        let mut daemon = batching.start_at(&later(1));
        daemon.await_that("the batch is looked up", || {
            batching.workspace.server.requests().iter().any(|it| it.path.contains("limit="))
        });
        daemon.set_clock(&later(12));
        batching.await_batches(&mut daemon, 1);
        batching.provider().has_ended = true;
        daemon.set_clock(&later(23));
        batching.await_week(&mut daemon);
        // The first one stays charged, because it may have arrived.
        assert_eq!(batching.counts(), (1, 0, 2, 2), "{wire:?}");
    }
}

#[test]
fn an_expired_batch_is_sent_again_and_finally_asked_directly() {
    for wire in Wire::BOTH {
        for (expiring, expected) in [(1, (2, 0, 2, 2)), (9, (2, 1, 3, 2))] {
            let batching = Batching::new(wire);
            batching.provider().expiring = expiring;
            let mut daemon = batching.start();
            batching.await_batches(&mut daemon, 1);
            batching.provider().has_ended = true;
            daemon.set_clock(&later(10));
            daemon.await_that("the batch is sent again", || batching.provider().batches.len() == 2);
            daemon.await_that("the second batch is recorded", || batching.is_in_batch());
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
        batching.provider().has_no_batches = true;
        let mut daemon = batching.start();
        batching.await_week(&mut daemon);
        let log = daemon.kill();
        assert_eq!(log.matches("the server accepts no batches").count(), 1, "{log}");
        // What never left is no call.
        assert_eq!(batching.counts(), (0, 1, 1, 0), "{wire:?}");
    }
}

#[test]
fn compact_on_the_command_line_sends_no_batch() {
    let batching = Batching::new(Wire::Openai);
    batching.workspace.compact().ran.ok();
    assert_eq!(batching.counts(), (0, 1, 1, 0));
}

#[test]
fn compact_on_the_command_line_uses_answered_batches() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        let mut daemon = batching.start();
        batching.await_batches(&mut daemon, 1);
        daemon.kill();
        batching.provider().has_ended = true;
        // A preview changes nothing.
        batching.workspace.run(&["compact", "--dry-run"]).ok();
        assert!(batching.is_in_batch());
        let compacted = batching.workspace.run_with(&["compact"], &[("MEMOIRD_LOG", "debug")]).ok();
        assert!(
            batching.workspace.week().is_some() && batching.replies().is_empty(),
            "{compacted}"
        );
        assert_eq!(batching.counts(), (1, 0, 1, 1), "{wire:?}");
        // The log reports it like any other call.
        for words in
            ["batched=true", "gen_ai.request.model=\"scripted-1\"", "gen_ai.usage.output_tokens="]
        {
            assert!(compacted.stderr.contains(words), "{words}: {compacted}");
        }
    }
}

#[test]
fn a_batch_that_cannot_be_fetched_delays_no_command() {
    let batching = Batching::new(Wire::Openai);
    let mut daemon = batching.start();
    batching.await_batches(&mut daemon, 1);
    daemon.kill();
    batching.provider().has_no_batches = true;
    let compacted = batching.workspace.run(&["compact"]).ok();
    assert!(batching.workspace.week().is_some(), "{compacted}");
    assert_eq!(batching.counts(), (1, 1, 2, 1));
}

#[test]
fn a_reply_whose_job_is_done_is_not_stored() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        let mut daemon = batching.start();
        batching.await_batches(&mut daemon, 1);
        daemon.kill();
        // The user compacted without waiting, so the job is done when the reply arrives.
        batching.workspace.compact().ran.ok();
        assert!(batching.replies().is_empty(), "{:?}", batching.replies());
        let week = batching.workspace.week();
        batching.provider().has_ended = true;
        let mut daemon = batching.start_at(&later(1));
        daemon.await_that("the batch is fetched", || !batching.is_in_batch());
        daemon.await_idle();
        assert_eq!((batching.replies().len(), batching.workspace.week()), (0, week));
        assert_eq!(batching.counts(), (1, 1, 2, 1));
    }
}

#[test]
fn a_reply_to_a_changed_log_is_not_used() {
    let batching = Batching::new(Wire::Anthropic);
    let mut daemon = batching.start();
    batching.await_batches(&mut daemon, 1);
    daemon.kill();
    batching.workspace.root.append("memory/2026-04-07.md", "- The archive has 12 folders now\n");
    batching.provider().has_ended = true;
    let mut daemon = batching.start_at("2026-04-13T10:00:00+02:00");
    batching.await_batches(&mut daemon, 2);
    assert_eq!((batching.workspace.week(), batching.replies().len()), (None, 2));
    daemon.set_clock("2026-04-13T10:11:00+02:00");
    daemon.await_that("the week is written", || batching.workspace.week().is_some());
    daemon.kill();
    // An unused reply is removed after some days.
    let mut daemon = batching.start_at("2026-04-17T10:00:00+02:00");
    daemon.await_that("the unused reply is removed", || batching.replies().is_empty());
    assert_eq!(batching.provider().direct, 0);
}

#[test]
fn the_budget_applies_to_batches() {
    let batching = Batching::new(Wire::Openai);
    let Batching { mut workspace, provider } = batching;
    workspace.root.write("memory/2026-03-31.md", super::LOG);
    workspace.set("/budget/day/calls", json!(1));
    let batching = Batching { workspace, provider };
    let mut daemon = batching.start();
    batching.await_batches(&mut daemon, 1);
    daemon.await_idle();
    assert_eq!(batching.provider().batches[0].requests.len(), 1);
    assert_eq!(batching.counts(), (1, 0, 1, 1));
}

/// A part of the key.
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
            daemon.await_that("the batch is sent", || !batching.provider().batches.is_empty());
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
            assert_in_no_file(&batching.workspace.root.home(""));
            for request in batching.workspace.server.requests() {
                assert!(!String::from_utf8_lossy(&request.bytes).contains(PART));
                assert!(
                    !request.path.contains(PART) && !request.path.contains(".."),
                    "{}",
                    request.path
                );
                assert_eq!(request.headers.iter().filter(|it| it.1.contains(PART)).count(), 1);
            }
        }
    }
}

#[test]
fn a_log_forgotten_before_the_batch_is_sent_is_left_out() {
    for wire in Wire::BOTH {
        let batching = Batching::new(wire);
        let go = batching.workspace.root.home("go");
        let fail = format!("wait:{}@batch.pass_ended", go.display());
        let variables = [("MEMOIRD_API_KEY", KEY), ("MEMOIRD_FAIL", &fail)];
        let mut daemon = Daemon::spawn(&batching.workspace.root, NOW, &variables);
        daemon.await_file(&go.with_extension("reached"));
        batching.workspace.run(&["forget", "memory/2026-04-07.md", "--yes"]).ok();
        batching.workspace.root.write("../go", "");
        daemon.await_idle();
        let (status, _, log) = daemon.stop(rustix::process::Signal::TERM);
        assert_eq!(status.code(), Some(0), "{log}");
        let sent = batching.workspace.server.requests();
        assert!(!sent.iter().any(|it| it.body.to_string().contains("SQLite")), "{log}");
        assert_eq!((batching.provider().batches.len(), batching.replies()), (0, vec![]));
    }
}
