//! Micro-compaction: clearing old tool results from a transcript.

use chrono::{DateTime, TimeDelta, Utc};
use memoird::internals::{
    model::circuit_breaker::CircuitBreaker,
    session::{
        micro_compaction::{
            self, ClearingPlan, ClearingReason, MicroSettings, PLACEHOLDER, RewriteStats,
        },
        transcript::{EntryContent, Transcript},
    },
};
use serde_json::Value;

use super::{generate, messages, read, sample_text};

fn rewrite(text: &str, keep_recent: usize) -> (Transcript, String, RewriteStats) {
    let before = read(text);
    let clearing = micro_compaction::plan_clearing(
        &before,
        &MicroSettings { keep_recent, ..MicroSettings::default() },
    );
    let mut output = Vec::new();
    let saved =
        micro_compaction::rewrite(text.as_bytes(), &mut output, before.format, &clearing).unwrap();
    let output = String::from_utf8(output).unwrap();
    (before, output, saved)
}

fn results(session: &Transcript) -> Vec<bool> {
    let of = |it: &EntryContent| match it {
        EntryContent::Result(it) => Some(it.text.contains(PLACEHOLDER)),
        _ => None,
    };
    session.entries.iter().filter_map(|it| of(&it.content)).collect()
}

#[test]
fn micro_compaction_clears_only_old_results_of_bulky_tools() {
    for name in ["claude-code.jsonl", "codex.jsonl", "gemini.jsonl", "plain.jsonl"] {
        let text = sample_text(name);
        let (before, output, saved) = rewrite(&text, 1);
        let after = read(&output);
        assert_eq!(messages(&before), messages(&after), "{name}");
        assert_eq!(before.entries.len(), after.entries.len(), "{name}");
        assert_eq!(before.anomalies, after.anomalies, "{name}");
        for (before, after) in before.entries.iter().zip(&after.entries) {
            match (&before.content, &after.content) {
                (EntryContent::Result(before), EntryContent::Result(after)) => {
                    assert_eq!((&before.call, before.is_error), (&after.call, after.is_error));
                }
                (before, after) => assert_eq!(before, after),
            }
        }
        assert_eq!(
            (text.len() as u64, output.len() as u64),
            (saved.bytes_before, saved.bytes_after)
        );
        // Lines without cleared results keep their bytes.
        let changed = text.split('\n').zip(output.split('\n')).filter(|(a, b)| a != b).count();
        assert_eq!(changed, saved.lines, "{name}");
        assert_eq!(text.split('\n').count(), output.split('\n').count());
        let (_, again, more) = rewrite(&output, 1);
        assert_eq!((again, more.lines), (output, 0), "{name}: a second run changes nothing");
    }
    let (_, output, _) = rewrite(&sample_text("claude-code.jsonl"), 1);
    let cleared = results(&read(&output)).into_iter().filter(|it| *it).count();
    assert_eq!(
        cleared, 2,
        "only the file that was read twice; lists, subagents, and short outputs stay"
    );
    // The structure that Claude Code reads stays.
    let line =
        output.lines().find(|it| it.contains("filePath") && it.contains(PLACEHOLDER)).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["toolUseResult"]["file"]["content"], PLACEHOLDER);
    assert_eq!(line["toolUseResult"]["file"]["numLines"], 156);
}

#[test]
fn the_requested_number_of_recent_results_stays_and_at_least_one() {
    let text = generate::session(40);
    for (keep_recent, stays) in [(0, 1), (1, 1), (7, 7)] {
        let (_, output, _) = rewrite(&text, keep_recent);
        let cleared = results(&read(&output));
        // Two of the generated results are failures, which are short and therefore stay.
        let last = cleared.iter().rposition(|it| *it).unwrap();
        assert_eq!(cleared.len() - 1 - last, stays, "{cleared:?}");
    }
}

#[test]
fn a_long_session_shrinks_to_less_than_a_fifth() {
    let text = generate::session(5_000);
    let (_, output, saved) = rewrite(&text, 5);
    assert_eq!(messages(&read(&output)).len(), 5_000);
    let ratio = saved.bytes_after * 100 / saved.bytes_before;
    assert!(ratio < 20, "{ratio}% left: {saved:?}");
}

#[test]
fn micro_compaction_is_due_by_savings_or_after_idle_time() {
    let session = read(&generate::session(40));
    let settings = MicroSettings::default();
    let clearing = micro_compaction::plan_clearing(&session, &settings);
    let last = session.time_span().unwrap().1;
    let due = |clearing: &ClearingPlan, after: TimeDelta, settings: &MicroSettings| {
        micro_compaction::clearing_due(&session, clearing, settings, last + after)
    };
    assert_eq!(due(&clearing, TimeDelta::minutes(1), &settings), Some(ClearingReason::Savings));
    let high_threshold = MicroSettings { saving_tokens_min: 1_000_000, ..settings };
    assert_eq!(due(&clearing, TimeDelta::minutes(60), &high_threshold), None);
    assert_eq!(due(&clearing, TimeDelta::minutes(61), &high_threshold), Some(ClearingReason::Idle));
    assert_eq!(due(&ClearingPlan::default(), TimeDelta::minutes(61), &high_threshold), None);
}

#[test]
fn full_compaction_is_due_near_the_window_unless_it_keeps_failing() {
    let now: DateTime<Utc> = "2026-04-13T09:00:00Z".parse().unwrap();
    assert_eq!(
        micro_compaction::full_compaction_threshold(200_000, 32_000),
        200_000 - 20_000 - 13_000
    );
    assert_eq!(
        micro_compaction::full_compaction_threshold(200_000, 8_000),
        200_000 - 8_000 - 13_000
    );
    assert_eq!(micro_compaction::full_compaction_threshold(8_000, 4_000), 0);
    let mut breaker = CircuitBreaker::default();
    let due = |breaker: &CircuitBreaker, used, now| {
        micro_compaction::is_full_compaction_due(used, 200_000, 32_000, breaker, now)
    };
    assert!(due(&breaker, 167_001, now) && !due(&breaker, 167_000, now));
    for _ in 0..3 {
        assert!(due(&breaker, 180_000, now));
        breaker = breaker.after_wasted_work(now);
    }
    assert!(!due(&breaker, 180_000, now), "three failures in a row");
    assert!(
        due(&breaker, 180_000, now + TimeDelta::minutes(6)),
        "one try is allowed after the pause"
    );
}
