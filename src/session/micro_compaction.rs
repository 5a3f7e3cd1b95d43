//! Micro-compaction: removes old results of bulky tools from a transcript, which its agent can still
//! load.
//!
//! All calls and messages stay, and so do short failures and the results of the last calls; other
//! results are replaced by [`PLACEHOLDER`]. It is due when it would save much, or when the session was
//! idle for so long that it is no longer in the provider's cache. Lines without a replaced result keep
//! their bytes.

use std::{
    collections::{HashMap, HashSet},
    io::{self, BufRead, Write},
};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::transcript::{
    EntryContent, Transcript, TranscriptFormat,
    line_reader::{self, LINE_BYTES_MAX},
    tool::ToolKind,
};
use crate::model::circuit_breaker::{CircuitBreaker, CircuitState};

/// Replaces a result.
pub const PLACEHOLDER: &str = "[Old result of a tool, left out to save room. The call stands above; call it again for the result.]";

/// A shorter result stays, because the placeholder would save little.
const RESULT_BYTES_MIN: usize = 2 * PLACEHOLDER.len();
/// A failure up to this length stays, because its cause is worth the space.
const FAILURE_BYTES_MAX: usize = 2_000;
/// A longer string in the data that a program stores beside a result is replaced.
const EXTRA_CHARS_MAX: usize = 200;
/// How many strings of a list in that data stay.
const EXTRA_STRINGS_MAX: usize = 20;

/// The most tokens reserved for a reply.
const REPLY_TOKENS_MAX: u64 = 20_000;
/// Tokens reserved in addition to the reply, for the summary itself.
const SPARE_TOKENS: u64 = 13_000;

/// Which results are cleared, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MicroSettings {
    /// How many results of bulky tools stay, the last ones; at least one.
    pub keep_recent: usize,
    /// The saving from which clearing is due, in tokens.
    pub saving_tokens_min: u64,
    /// The idle time after which clearing is always due.
    pub idle_after: TimeDelta,
}

impl Default for MicroSettings {
    fn default() -> Self {
        Self { keep_recent: 5, saving_tokens_min: 20_000, idle_after: TimeDelta::minutes(60) }
    }
}

/// Why clearing is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearingReason {
    /// It saves enough tokens.
    Savings,
    /// The session was idle.
    Idle,
}

/// Which results are cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClearingPlan {
    /// By the ids of their calls.
    calls: HashSet<String>,
    /// By their lines, if calls have no ids.
    lines: HashSet<usize>,
    /// The number of results.
    pub results: usize,
    /// The bytes saved.
    pub bytes: usize,
    /// The number of results by kind of tool.
    pub kinds: Vec<(ToolKind, usize)>,
}

/// The result of a rewrite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewriteStats {
    /// Bytes of the transcript before.
    pub bytes_before: u64,
    /// Bytes of the transcript after.
    pub bytes_after: u64,
    /// Lines that were changed.
    pub lines: usize,
}

/// Estimates the tokens of a text, at the ratio of code and English.
pub fn estimate_tokens(bytes: u64) -> u64 {
    bytes.saturating_mul(2) / 7
}

/// Chooses the results to clear.
pub fn plan_clearing(transcript: &Transcript, settings: &MicroSettings) -> ClearingPlan {
    let kinds: HashMap<&str, ToolKind> = transcript
        .entries
        .iter()
        .filter_map(|it| match &it.content {
            EntryContent::Call(call) => Some((&call.id[..], call.kind)),
            _ => None,
        })
        .collect();
    let mut clearing = ClearingPlan::default();
    let mut counts: HashMap<ToolKind, usize> = HashMap::new();
    // The session's agent and its subagents do not see each other's results.
    for is_side in [false, true] {
        let mut recent = 0;
        for entry in transcript.entries.iter().rev().filter(|it| it.is_subagent == is_side) {
            let EntryContent::Result(result) = &entry.content else { continue };
            let kind = kinds.get(&result.call[..]).copied();
            let Some(kind) = kind.filter(|it| it.is_bulky()) else { continue };
            if recent < settings.keep_recent.max(1) {
                recent += 1;
                continue;
            }
            let is_small = result.bytes < RESULT_BYTES_MIN
                || result.is_error && result.bytes <= FAILURE_BYTES_MAX;
            if is_small {
                continue;
            }
            clearing.calls.insert(result.call.clone());
            if result.call.contains('/') {
                clearing.lines.insert(entry.line);
            }
            clearing.results += 1;
            clearing.bytes += result.bytes - PLACEHOLDER.len();
            *counts.entry(kind).or_default() += 1;
        }
    }
    clearing.kinds = counts.into_iter().collect();
    clearing.kinds.sort_unstable();
    clearing
}

/// Returns why clearing is due now; `None` if it is not.
pub fn clearing_due(
    transcript: &Transcript,
    clearing: &ClearingPlan,
    settings: &MicroSettings,
    now: DateTime<Utc>,
) -> Option<ClearingReason> {
    let last = transcript.own_entries().filter_map(|it| it.at).max();
    if clearing.results == 0 {
        None
    } else if last.is_some_and(|it| now - it > settings.idle_after) {
        Some(ClearingReason::Idle)
    } else if estimate_tokens(clearing.bytes as u64) >= settings.saving_tokens_min {
        Some(ClearingReason::Savings)
    } else {
        None
    }
}

/// Returns the number of tokens from which a session must be summarized.
pub fn full_compaction_threshold(window_tokens: u64, output_tokens_max: u64) -> u64 {
    window_tokens
        .saturating_sub(output_tokens_max.min(REPLY_TOKENS_MAX))
        .saturating_sub(SPARE_TOKENS)
}

/// Returns whether a session must be summarized and the circuit breaker allows a try.
pub fn is_full_compaction_due(
    used_tokens: u64,
    window_tokens: u64,
    output_tokens_max: u64,
    breaker: &CircuitBreaker,
    now: DateTime<Utc>,
) -> bool {
    let gate = breaker.state("", now);
    used_tokens > full_compaction_threshold(window_tokens, output_tokens_max)
        && matches!(gate, CircuitState::Closed | CircuitState::HalfOpen)
}

/// Copies a transcript and replaces the results to clear.
///
/// # Errors
///
/// Returns why it cannot be read or written.
pub fn rewrite(
    mut input: impl BufRead,
    mut output: impl Write,
    format: TranscriptFormat,
    clearing: &ClearingPlan,
) -> io::Result<RewriteStats> {
    let mut stats = RewriteStats::default();
    let mut buffer = Vec::new();
    let mut number = 0;
    loop {
        let is_whole = line_reader::read_raw(&mut input, &mut buffer)?;
        if buffer.is_empty() {
            output.flush()?;
            return Ok(stats);
        }
        number += 1;
        stats.bytes_before += buffer.len() as u64;
        let changed = if is_whole { clear_line(&buffer, number, format, clearing) } else { None };
        stats.lines += usize::from(changed.is_some());
        let bytes = changed.as_deref().unwrap_or(&buffer);
        output.write_all(bytes)?;
        stats.bytes_after += bytes.len() as u64;
        if !is_whole && buffer.len() > LINE_BYTES_MAX {
            let copied = line_reader::copy_rest(&mut input, &mut output)?;
            stats.bytes_before += copied;
            stats.bytes_after += copied;
        }
    }
}

/// Returns a line with its results replaced; `None` if it contains none to clear.
fn clear_line(
    line: &[u8],
    number: usize,
    format: TranscriptFormat,
    clearing: &ClearingPlan,
) -> Option<Vec<u8>> {
    // A cheap test first: most lines are too short to contain a result to clear.
    if clearing.results == 0 || line.len() < RESULT_BYTES_MIN {
        return None;
    }
    let end = line.len() - line.iter().rev().take_while(|it| matches!(it, b'\n' | b'\r')).count();
    let mut value: Value =
        serde_json::from_slice(line[..end].strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line[..end]))
            .ok()?;
    let by_line = clearing.lines.contains(&number);
    let is_cleared = |holder: &Value, key: &str| match holder.get(key).and_then(Value::as_str) {
        Some(id) if !id.is_empty() => clearing.calls.contains(id),
        _ => by_line,
    };
    let mut count = 0;
    match format {
        TranscriptFormat::ClaudeCode => {
            if let Some(message) = value.get_mut("message") {
                count += clear_blocks(message, &is_cleared);
            }
            if let Some(display_data) = value.get_mut("toolUseResult").filter(|_| count > 0) {
                truncate_strings(display_data);
            }
        }
        TranscriptFormat::Codex => {
            let item = if value.get("payload").is_some() {
                value.get_mut("payload")
            } else {
                Some(&mut value)
            };
            if let Some(item) = item.filter(|it| is_cleared(it, "call_id")) {
                count += clear_output(item.get_mut("output"));
            }
        }
        TranscriptFormat::Gemini => {
            count += clear_calls(&mut value, &is_cleared);
            let history = value.get_mut("$set").and_then(|it| it.get_mut("messages"));
            for message in history.and_then(Value::as_array_mut).into_iter().flatten() {
                count += clear_calls(message, &is_cleared);
            }
        }
        TranscriptFormat::OpenClaw => {
            let message = value.get_mut("message");
            if let Some(message) = message.filter(|it| is_cleared(it, "toolCallId")) {
                count += clear_output(message.get_mut("content"));
                message.as_object_mut().and_then(|it| it.shift_remove("details"));
            }
        }
        // These programs read no transcript that another one wrote.
        TranscriptFormat::Opencode | TranscriptFormat::Copilot => return None,
        TranscriptFormat::Plain => {
            let is_tool =
                matches!(value.get("role").and_then(Value::as_str), Some("tool" | "function"));
            let key = if value.get("tool_call_id").is_some() { "tool_call_id" } else { "call_id" };
            if is_tool {
                if is_cleared(&value, key) {
                    count += clear_output(value.get_mut("content"));
                }
            } else {
                count += clear_blocks(&mut value, &is_cleared);
            }
        }
    }
    if count == 0 {
        return None;
    }
    let mut changed = serde_json::to_vec(&value).ok()?;
    changed.extend_from_slice(&line[end..]);
    Some(changed)
}

/// Replaces the results in the blocks of a message; returns how many.
fn clear_blocks(holder: &mut Value, is_cleared: &dyn Fn(&Value, &str) -> bool) -> usize {
    let Some(Value::Array(blocks)) = holder.get_mut("content") else { return 0 };
    let mut count = 0;
    for block in blocks {
        let is_result = block.get("type").and_then(Value::as_str) == Some("tool_result");
        if is_result && is_cleared(block, "tool_use_id") {
            count += clear_output(block.get_mut("content"));
        }
    }
    count
}

/// Replaces the results of the calls of a message of Gemini CLI; returns how many.
fn clear_calls(message: &mut Value, is_cleared: &dyn Fn(&Value, &str) -> bool) -> usize {
    let calls = message.get_mut("toolCalls").and_then(Value::as_array_mut);
    let mut count = 0;
    for call in calls.into_iter().flatten().filter(|it| is_cleared(it, "id")) {
        let part = call.get_mut("result").and_then(|it| it.get_mut(0));
        let response = part.and_then(|it| it.get_mut("functionResponse")?.get_mut("response"));
        count += clear_output(response.and_then(|it| it.get_mut("output")));
        if let Some(display_data) = call.get_mut("resultDisplay").filter(|_| count > 0) {
            truncate_strings(display_data);
        }
    }
    count
}

/// Replaces an output in its own form: a string, blocks, or an object with `content`.
fn clear_output(output: Option<&mut Value>) -> usize {
    match output {
        Some(Value::Object(object)) if object.contains_key("content") => {
            return clear_output(object.get_mut("content"));
        }
        Some(Value::Array(blocks)) => {
            let kind = blocks.iter().find_map(|it| it.get("type")?.as_str());
            let kind = kind.filter(|it| it.ends_with("text")).unwrap_or("text").to_owned();
            *blocks = vec![serde_json::json!({"type": kind, "text": PLACEHOLDER})];
        }
        Some(output) => *output = Value::from(PLACEHOLDER),
        None => return 0,
    }
    1
}

/// Replaces long strings in the data that a program stores for its display, which repeats the result.
/// The structure stays, because the program reads it.
fn truncate_strings(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > EXTRA_CHARS_MAX => PLACEHOLDER.clone_into(text),
        Value::Array(list) => {
            if list.iter().all(Value::is_string) {
                list.truncate(EXTRA_STRINGS_MAX);
            }
            list.iter_mut().for_each(truncate_strings);
        }
        Value::Object(map) => map.values_mut().for_each(truncate_strings),
        _ => {}
    }
}
