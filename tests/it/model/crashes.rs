//! Crashes at random steps, day after day, with a model that charges for each call.
//!
//! A stored reply is never requested again, and no day exceeds its budget by more than one call.
//! A plain `cargo test` makes a few crashes; `MEMOIRD_FAULTS=full` makes 1,000.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde_json::json;

use super::{Wire, Workspace};
use crate::support::server::{Server, answer_well};

/// Crashes in a plain test run.
const CRASHES: usize = 30;

/// Crashes with `MEMOIRD_FAULTS=full`.
const CRASHES_FULL: usize = 1000;

/// Rounds per simulated day.
const ROUNDS_PER_DAY: usize = 10;

/// The budget of a day.
const TOKENS: u64 = 60_000;
const CALLS: u64 = 12;

/// Steps at which a received reply is not on disk yet.
const REPLY_LOST_AT: [&str; 3] = ["model.answered", "vault.private.write", "vault.private.rename"];

/// Requests that the server received: how often each one, and the tokens of each call.
#[derive(Debug, Default)]
struct ReceivedRequests {
    times: HashMap<Vec<u8>, usize>,
    tokens: Vec<u64>,
}

/// Pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(most).unwrap()).unwrap()
    }
}

/// Returns a workspace whose server records its requests.
fn workspace() -> (Workspace, Arc<Mutex<ReceivedRequests>>) {
    let seen: Arc<Mutex<ReceivedRequests>> = Arc::default();
    let recorded = Arc::clone(&seen);
    let server = Server::answering(move |request| {
        let answer = answer_well(request);
        let mut seen = recorded.lock().unwrap();
        *seen.times.entry(request.bytes.clone()).or_default() += 1;
        // The input and output tokens that the answer reports.
        let crate::support::server::Answer::Http { body, .. } = &answer else { unreachable!() };
        let body: serde_json::Value = serde_json::from_slice(body).unwrap();
        seen.tokens.push(body["usage"]["total_tokens"].as_u64().unwrap());
        drop(seen);
        answer
    });
    let mut workspace = Workspace::new(Wire::Openai, server);
    workspace.set("/compaction/extract", json!(true));
    workspace.set("/model/max_output_tokens", json!(1024));
    workspace.set("/budget/day", json!({ "usd": null, "calls": CALLS, "tokens": TOKENS }));
    workspace.set("/budget/month", json!({ "usd": null, "calls": null, "tokens": null }));
    (workspace, seen)
}

/// Returns the names of the steps of a run, each once.
fn steps() -> Vec<String> {
    let (workspace, _) = workspace();
    workspace.root.write("memory/2026-03-10.md", super::LOG);
    let trace = workspace.root.home("trace");
    workspace.run_with(&["compact"], &[("MEMOIRD_FAIL_TRACE", trace.to_str().unwrap())]).ok();
    let trace = std::fs::read_to_string(trace).unwrap();
    let mut steps: Vec<String> = trace.lines().map(str::to_owned).collect();
    steps.sort();
    steps.dedup();
    steps
}

#[test]
fn random_crashes_pay_no_stored_reply_twice_and_respect_the_budget() {
    let is_full = std::env::var("MEMOIRD_FAULTS").is_ok_and(|it| it == "full");
    let target = if is_full { CRASHES_FULL } else { CRASHES };
    let seed = std::env::var("MEMOIRD_SEED").ok().and_then(|it| it.parse().ok());
    let seed = seed.unwrap_or(0x5eed_0001);
    let mut random = Random(seed);
    let steps = steps();
    // Half of the crashes happen around calls, where most can go wrong.
    let call_steps: Vec<&String> = steps.iter().filter(|it| it.starts_with("model.")).collect();
    assert!(call_steps.len() >= 3, "{steps:?}");
    let (mut workspace, sent) = workspace();
    let (mut crashes, mut lost, mut rounds, mut before) = (0, 0, 0, 0);
    let day = |at: usize| chrono::NaiveDate::from_ymd_opt(2026, 4, 13).unwrap() + days(at);
    while crashes < target {
        rounds += 1;
        assert!(rounds < 40 * target, "{crashes} crashes in {rounds} rounds, seed {seed}");
        if rounds % ROUNDS_PER_DAY == 1 {
            workspace.root.set_now(&format!("{}T09:00:00+02:00", day(rounds / ROUNDS_PER_DAY)));
            before = sent.lock().unwrap().tokens.len();
        }
        // A log of the last 20 days is new or grows.
        let at = day(rounds / ROUNDS_PER_DAY) - days(1 + random.below(20));
        let line =
            format!("- Measured {rounds} files of the parser with a cache of {crashes} MB\n");
        let log = format!("memory/{at}.md");
        let grown = workspace.root.files().remove(&log).unwrap_or_default() + &line;
        workspace.root.write(&log, &grown);
        let step = if random.below(2) == 0 {
            call_steps[random.below(call_steps.len())]
        } else {
            &steps[random.below(steps.len())]
        };
        let fail = format!("kill@{step}#{}", 1 + random.below(4));
        let ran = workspace.run_with(&["compact"], &[("MEMOIRD_FAIL", &fail)]);
        if ran.code == -1 {
            crashes += 1;
            lost += usize::from(REPLY_LOST_AT.contains(&&step[..]));
        } else {
            assert!(matches!(ran.code, 0 | 1 | 69), "{fail} {ran}, seed {seed}");
        }
        let (again, today) = {
            let sent = sent.lock().unwrap();
            let again: usize = sent.times.values().map(|it| it - 1).sum();
            (again, sent.tokens[before..].to_vec())
        };
        assert!(
            again <= lost,
            "{again} requested again, {lost} lost: {fail} in {rounds}, seed {seed}"
        );
        let (sum, most) = (today.iter().sum::<u64>(), today.iter().max().copied().unwrap_or(0));
        assert!(sum <= TOKENS + most, "{sum} tokens: {fail} in {rounds}, seed {seed}");
        assert!(
            today.len() as u64 <= CALLS,
            "{} calls: {fail} in {rounds}, seed {seed}",
            today.len()
        );
    }
    // A last day without a crash completes all work or reports what failed.
    workspace.root.set_now(&format!("{}T09:00:00+02:00", day(rounds / ROUNDS_PER_DAY + 1)));
    workspace.set("/budget/day", json!({ "usd": null, "calls": null, "tokens": null }));
    let whole = workspace.run(&["compact"]);
    assert!(matches!(whole.code, 0 | 1), "{whole}, seed {seed}");
    workspace.run(&["doctor"]).ok();
}

fn days(count: usize) -> chrono::TimeDelta {
    chrono::TimeDelta::days(i64::try_from(count).unwrap())
}
