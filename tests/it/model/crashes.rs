//! Crashes at random steps, day after day, with a model that charges for each call.
//!
//! A reply that is on the disk is never asked for again, and no day takes more than its caps and one call
//! more. A few run with all tests; `MEMOIRD_FAULTS=full` makes 1,000 crashes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde_json::json;

use super::{Desk, Wire};
use crate::support::server::{Server, fluent};

/// Crashes without that variable.
const CRASHES: usize = 30;

/// Crashes of the full one.
const CRASHES_FULL: usize = 1000;

/// So many of them come in a day.
const CRASHES_A_DAY: usize = 10;

/// The most tokens of a day, and the most calls.
const TOKENS: u64 = 60_000;
const CALLS: u64 = 12;

/// Steps at which a reply that has come is not on the disk yet.
const LOST: [&str; 3] = ["model.answered", "vault.private.write", "vault.private.rename"];

/// What the server has seen: how often it was asked the same, and the tokens of each call.
#[derive(Debug, Default)]
struct Seen {
    times: HashMap<Vec<u8>, usize>,
    tokens: Vec<u64>,
}

/// Numbers that look as if drawn.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(most).unwrap()).unwrap()
    }
}

/// A desk whose server remembers what it was asked.
fn desk() -> (Desk, Arc<Mutex<Seen>>) {
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let noted = Arc::clone(&seen);
    let server = Server::answering(move |asked| {
        let answer = fluent(asked);
        let mut seen = noted.lock().unwrap();
        *seen.times.entry(asked.bytes.clone()).or_default() += 1;
        // As many as the answer says that it took, in and out.
        let crate::support::server::Answer::Http { body, .. } = &answer else { unreachable!() };
        let body: serde_json::Value = serde_json::from_slice(body).unwrap();
        seen.tokens.push(body["usage"]["total_tokens"].as_u64().unwrap());
        drop(seen);
        answer
    });
    let mut desk = Desk::new(Wire::Openai, server);
    desk.set("/compaction/extract", json!(true));
    desk.set("/model/max_output_tokens", json!(1024));
    desk.set("/budget/day", json!({ "usd": null, "calls": CALLS, "tokens": TOKENS }));
    desk.set("/budget/month", json!({ "usd": null, "calls": null, "tokens": null }));
    (desk, seen)
}

/// Returns the steps that a pass takes, each once.
fn steps() -> Vec<String> {
    let (desk, _) = desk();
    desk.root.write("memory/2026-03-10.md", super::LOG);
    let trace = desk.root.home("trace");
    desk.run_with(&["compact"], &[("MEMOIRD_FAIL_TRACE", trace.to_str().unwrap())]).ok();
    let trace = std::fs::read_to_string(trace).unwrap();
    let mut steps: Vec<String> = trace.lines().map(str::to_owned).collect();
    steps.sort();
    steps.dedup();
    steps
}

#[test]
fn random_crashes_pay_no_reply_twice_and_keep_the_caps() {
    let is_full = std::env::var("MEMOIRD_FAULTS").is_ok_and(|it| it == "full");
    let wanted = if is_full { CRASHES_FULL } else { CRASHES };
    let seed = std::env::var("MEMOIRD_SEED").ok().and_then(|it| it.parse().ok());
    let seed = seed.unwrap_or(0x5eed_0001);
    let mut drawn = Drawn(seed);
    let steps = steps();
    // Most of what is at stake lies around calls.
    let dear: Vec<&String> = steps.iter().filter(|it| it.starts_with("model.")).collect();
    assert!(dear.len() >= 3, "{steps:?}");
    let (mut desk, sent) = desk();
    let (mut crashes, mut lost, mut rounds, mut before) = (0, 0, 0, 0);
    let day = |at: usize| chrono::NaiveDate::from_ymd_opt(2026, 4, 13).unwrap() + days(at);
    while crashes < wanted {
        rounds += 1;
        assert!(rounds < 40 * wanted, "{crashes} crashes in {rounds} rounds, seed {seed}");
        if rounds % CRASHES_A_DAY == 1 {
            desk.root.set_now(&format!("{}T09:00:00+02:00", day(rounds / CRASHES_A_DAY)));
            before = sent.lock().unwrap().tokens.len();
        }
        // A log of one of the last weeks is new or grows.
        let at = day(rounds / CRASHES_A_DAY) - days(1 + drawn.below(20));
        let line =
            format!("- Measured {rounds} files of the parser with a cache of {crashes} MB\n");
        let log = format!("memory/{at}.md");
        let grown = desk.root.files().remove(&log).unwrap_or_default() + &line;
        desk.root.write(&log, &grown);
        let step = if drawn.below(2) == 0 {
            dear[drawn.below(dear.len())]
        } else {
            &steps[drawn.below(steps.len())]
        };
        let fail = format!("kill@{step}#{}", 1 + drawn.below(4));
        let ran = desk.run_with(&["compact"], &[("MEMOIRD_FAIL", &fail)]);
        if ran.code == -1 {
            crashes += 1;
            lost += usize::from(LOST.contains(&&step[..]));
        } else {
            assert!(matches!(ran.code, 0 | 1 | 69), "{fail} {ran}, seed {seed}");
        }
        let (again, today) = {
            let sent = sent.lock().unwrap();
            let again: usize = sent.times.values().map(|it| it - 1).sum();
            (again, sent.tokens[before..].to_vec())
        };
        assert!(again <= lost, "{again} asked again, {lost} lost: {fail} in {rounds}, seed {seed}");
        let (sum, most) = (today.iter().sum::<u64>(), today.iter().max().copied().unwrap_or(0));
        assert!(sum <= TOKENS + most, "{sum} tokens: {fail} in {rounds}, seed {seed}");
        assert!(
            today.len() as u64 <= CALLS,
            "{} calls: {fail} in {rounds}, seed {seed}",
            today.len()
        );
    }
    // After all of it a day without a crash leaves nothing undone that is not told.
    desk.root.set_now(&format!("{}T09:00:00+02:00", day(rounds / CRASHES_A_DAY + 1)));
    desk.set("/budget/day", json!({ "usd": null, "calls": null, "tokens": null }));
    let whole = desk.run(&["compact"]);
    assert!(matches!(whole.code, 0 | 1), "{whole}, seed {seed}");
    desk.run(&["doctor"]).ok();
}

fn days(count: usize) -> chrono::TimeDelta {
    chrono::TimeDelta::days(i64::try_from(count).unwrap())
}
