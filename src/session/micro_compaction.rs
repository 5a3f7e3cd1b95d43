//! Micro-compaction: a transcript without the old results of bulky tools, which its agent can still load.
//!
//! That a tool was called stays, and so do all words, failures that are short, and the results of the
//! last calls; the rest of the results is replaced by [`PLACEHOLDER`]. It is due when that would save
//! much, or when the session has rested for so long that no cache holds it any more. A line in which
//! nothing is replaced keeps its bytes.

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

/// Stands in the place of a result.
pub const PLACEHOLDER: &str = "[Old result of a tool, left out to save room. The call stands above; call it again for the result.]";

/// A result that is not longer is left: the placeholder would save nothing.
const RESULT_BYTES_MIN: usize = 2 * PLACEHOLDER.len();
/// A failure that is not longer is left: why something failed is worth more than its room.
const FAILURE_BYTES_MAX: usize = 2_000;
/// A string in what a program keeps beside a result is cut where it is longer.
const EXTRA_CHARS_MAX: usize = 200;
/// So many strings of a list beside a result stay.
const EXTRA_STRINGS_MAX: usize = 20;

/// Tokens that a reply is given room for, at most.
const REPLY_TOKENS_MAX: u64 = 20_000;
/// Tokens that stay free beside the reply, so that the summary itself finds room.
const SPARE_TOKENS: u64 = 13_000;

/// What may be cleared, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MicroSettings {
    /// So many results of bulky tools stay, the last ones; never fewer than one.
    pub keep_recent: usize,
    /// It is worth it from so many tokens on.
    pub saving_tokens_min: u64,
    /// After a rest longer than this it is worth it in any case.
    pub idle_after: TimeDelta,
}

impl Default for MicroSettings {
    fn default() -> Self {
        Self { keep_recent: 5, saving_tokens_min: 20_000, idle_after: TimeDelta::minutes(60) }
    }
}

/// Why it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearingReason {
    /// So much would be saved.
    Savings,
    /// The session has rested.
    Idle,
}

/// Which results are cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClearingPlan {
    /// By the ids of their calls.
    calls: HashSet<String>,
    /// By their lines, where calls have no ids.
    lines: HashSet<usize>,
    /// How many.
    pub results: usize,
    /// How many bytes they have.
    pub bytes: usize,
    /// How many of each kind of tool.
    pub kinds: Vec<(ToolKind, usize)>,
}

/// What a rewriting came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewriteStats {
    /// Bytes of the transcript before.
    pub bytes_before: u64,
    /// Bytes of it now.
    pub bytes_after: u64,
    /// Lines that were changed.
    pub lines: usize,
}

/// Returns about how many tokens so many bytes are, from the ratio of code and English.
pub fn estimate_tokens(bytes: u64) -> u64 {
    bytes.saturating_mul(2) / 7
}

/// Chooses what is cleared.
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
    // The session's agent and its helpers do not see each other's results.
    for is_side in [false, true] {
        let mut kept = 0;
        for entry in transcript.entries.iter().rev().filter(|it| it.is_subagent == is_side) {
            let EntryContent::Result(result) = &entry.content else { continue };
            let kind = kinds.get(&result.call[..]).copied();
            let Some(kind) = kind.filter(|it| it.is_bulky()) else { continue };
            if kept < settings.keep_recent.max(1) {
                kept += 1;
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

/// Says whether clearing is worth it now.
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

/// Returns from how many tokens on a whole session is due to be summarised.
pub fn full_compaction_threshold(window_tokens: u64, output_tokens_max: u64) -> u64 {
    window_tokens
        .saturating_sub(output_tokens_max.min(REPLY_TOKENS_MAX))
        .saturating_sub(SPARE_TOKENS)
}

/// Says whether a whole session is due to be summarised, and may be tried: after failures in a row the
/// breaker, which is kept across restarts, lets nothing through, and after a pause one.
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

/// Copies a transcript with what is cleared replaced.
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
    let mut saved = RewriteStats::default();
    let mut buffer = Vec::new();
    let mut number = 0;
    loop {
        let whole = line_reader::read_raw(&mut input, &mut buffer)?;
        if buffer.is_empty() {
            output.flush()?;
            return Ok(saved);
        }
        number += 1;
        saved.bytes_before += buffer.len() as u64;
        let changed = if whole { clear_line(&buffer, number, format, clearing) } else { None };
        saved.lines += usize::from(changed.is_some());
        let bytes = changed.as_deref().unwrap_or(&buffer);
        output.write_all(bytes)?;
        saved.bytes_after += bytes.len() as u64;
        if !whole && buffer.len() > LINE_BYTES_MAX {
            let copied = line_reader::copy_rest(&mut input, &mut output)?;
            saved.bytes_before += copied;
            saved.bytes_after += copied;
        }
    }
}

/// Returns a line with its results replaced, where it holds one that is cleared.
fn clear_line(
    line: &[u8],
    number: usize,
    format: TranscriptFormat,
    clearing: &ClearingPlan,
) -> Option<Vec<u8>> {
    // Most lines hold nothing of the kind; looking is cheaper than reading them.
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
            if let Some(beside) = value.get_mut("toolUseResult").filter(|_| count > 0) {
                truncate_strings(beside);
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

/// Replaces the content of the blocks of a message that are results; returns how many.
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

/// Replaces an output in the form that it has: a string, blocks, or an object with a content.
fn clear_output(output: Option<&mut Value>) -> usize {
    match output {
        Some(Value::Object(told)) if told.contains_key("content") => {
            return clear_output(told.get_mut("content"));
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

/// Cuts the long strings in what a program keeps for its screen, which holds the result once more. Its
/// shape stays, since the program reads it.
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
