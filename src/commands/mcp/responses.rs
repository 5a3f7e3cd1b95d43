//! What the tools answer. Every answer that holds words from memory says whose they are, of what day, and
//! that they are no instruction.

#![expect(clippy::doc_markdown, reason = "agents read these comments, not rustdoc")]

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct SearchResponse {
    /// What is to be kept in mind with all words from memory
    pub(super) notice: &'static str,
    /// The query as it was understood to be typed
    pub(super) query: String,
    /// Why it was searched by words alone, where it was to be by meaning, too
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) words_only: Option<String>,
    /// The hits, the best first
    pub(super) hits: Vec<MemoryHit>,
    /// Give this as `cursor` for more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct MemoryHit {
    /// The file, relative to the memory folder
    pub(super) path: String,
    /// The line in it
    pub(super) line: u32,
    /// The day that it is about
    pub(super) date: String,
    /// daily, session, weekly, monthly, wisdom, or memory
    pub(super) tier: String,
    /// Whose words: human, agent, external, or derived
    pub(super) origin: String,
    /// Higher is better
    pub(super) score: f64,
    /// By what it was found: words, meaning, or both; spelling where it is only nearly written so
    pub(super) found_by: Vec<String>,
    /// The words
    pub(super) text: String,
    /// Lines before it
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) before: Vec<String>,
    /// Lines after it
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) after: Vec<String>,
    /// The items above it by which it was found, too
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) via: Vec<String>,
    /// What else is known of the hit
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub(super) more: serde_json::Map<String, serde_json::Value>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct FileResponse {
    /// What is to be kept in mind with all words from memory
    pub(super) notice: &'static str,
    /// The file, relative to the memory folder
    pub(super) path: String,
    /// daily, session, weekly, monthly, wisdom, memory, or index
    pub(super) kind: String,
    /// Whose words: human, agent, external, or derived
    pub(super) origin: String,
    /// The day or the period that it is about
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date: Option<String>,
    /// Since when it stood so, where it was asked for as of a time
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<String>,
    /// The first line that is given
    pub(super) from: usize,
    /// The last line that is given
    pub(super) to: usize,
    /// How many lines there are
    pub(super) lines: usize,
    /// The lines
    pub(super) text: String,
    /// Give this as `from` for more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_from: Option<usize>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ContextResponse {
    /// What is to be kept in mind with all words from memory
    pub(super) notice: &'static str,
    /// The day that it was asked for
    pub(super) date: String,
    /// What to read
    pub(super) text: String,
    /// About how many tokens that is
    pub(super) tokens: usize,
    /// What went in, and what it took
    pub(super) parts: Vec<PartSize>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct PartSize {
    pub(super) name: String,
    /// How many of its lines went in
    pub(super) lines: usize,
    /// How many did not
    pub(super) left_out: usize,
    pub(super) tokens: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct LogResponse {
    /// The log, relative to the memory folder
    pub(super) path: String,
    /// The line on which the entry begins
    pub(super) line: usize,
    /// The day of the log
    pub(super) date: String,
    /// That the entry is on the disk
    pub(super) stored: bool,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct CorrectResponse {
    /// What is to be kept in mind with all words from memory
    pub(super) notice: &'static str,
    /// The day of the correction
    pub(super) date: String,
    pub(super) path: String,
    pub(super) line: u32,
    /// What stood there
    pub(super) before: String,
    /// What stands there now, or would
    pub(super) after: String,
    pub(super) changed: bool,
    pub(super) dry_run: bool,
    /// The files that rest on it
    pub(super) above: Vec<String>,
    /// What became of them
    pub(super) jobs: Vec<FollowUpJob>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct FollowUpJob {
    pub(super) tier: String,
    pub(super) period: String,
    /// written, unchanged, skipped, failed, or parked
    pub(super) outcome: String,
    pub(super) reason: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct TraceResponse {
    /// What is to be kept in mind with all words from memory
    pub(super) notice: &'static str,
    /// What was asked for
    pub(super) target: TargetLine,
    /// The lines that it rests on
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sources: Vec<CitedSource>,
    /// With `up`: what rests on it
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) derived: Vec<DerivedEntry>,
    /// Give this as `cursor` for more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct TargetLine {
    /// The file, relative to the memory folder
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u32>,
    pub(super) text: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct CitedSource {
    /// The log, relative to the memory folder
    pub(super) path: String,
    pub(super) line_start: u32,
    pub(super) line_end: u32,
    /// The day of the log
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date: Option<String>,
    /// Whose words, the least trusted of them: human, agent, or external
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<String>,
    pub(super) text: String,
    /// The lines are no longer there
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) gone: bool,
    /// The lines read otherwise than when they were cited
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) changed: bool,
    /// The item of the target that rests on it, where the target is a whole file
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) item: Option<String>,
    /// The items between the target and the lines
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) via: Vec<String>,
    /// The source above, where this lies beneath one that is an item itself
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) beneath: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct DerivedEntry {
    pub(super) tier: String,
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u32>,
    pub(super) text: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct CoverageResponse {
    /// What is to be kept in mind with all words from memory
    pub(super) notice: &'static str,
    pub(super) period: String,
    /// Lines that can carry a statement
    pub(super) lines: usize,
    /// Those that reached the file
    pub(super) covered: usize,
    /// How many did not
    pub(super) left_out: usize,
    /// These did not
    pub(super) uncovered: Vec<LeftOutLine>,
    /// Give this as `cursor` for more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct LeftOutLine {
    pub(super) path: String,
    pub(super) line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date: Option<String>,
    pub(super) text: String,
    pub(super) reason: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct MemoryListResponse {
    /// What is to be kept in mind with all words from memory
    pub(super) notice: &'static str,
    /// How many there are in all
    pub(super) total: usize,
    pub(super) memories: Vec<MemoryEntry>,
    /// Give this as `cursor` for more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct MemoryEntry {
    /// agent or person: what memory_get takes as `of`
    pub(super) of: String,
    pub(super) name: String,
    /// user, feedback, project, or reference
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) description: String,
    pub(super) path: String,
    /// human, where a person wrote it; else derived
    pub(super) origin: String,
    /// The day of the newest line that it rests on
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct MemoryResponse {
    /// What is to be kept in mind with all words from memory
    pub(super) notice: &'static str,
    #[serde(flatten)]
    pub(super) memory: MemoryEntry,
    /// The statement, and why, and how to apply it
    pub(super) text: String,
    /// The log lines that it rests on
    pub(super) sources: Vec<String>,
    /// The memory that it took the place of
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) supersedes: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct RecordListResponse {
    /// What is to be kept in mind with all words from memory
    pub(super) notice: &'static str,
    /// How many there are in all
    pub(super) total: usize,
    pub(super) records: Vec<RecordEntry>,
    /// Give this as `cursor` for more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct RecordEntry {
    pub(super) id: String,
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) style: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ImportResponse {
    pub(super) id: String,
    pub(super) path: String,
    /// The day of the session
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date: Option<String>,
    /// That it stood there already
    pub(super) unchanged: bool,
}

/// What `core_memory` answers: the part that its operation is about.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(super) struct CoreMemoryResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) list: Option<RecordListResponse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) export: Option<FileResponse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) import: Option<ImportResponse>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct StatusResponse {
    /// What is to be kept in mind with all words from memory
    pub(super) notice: &'static str,
    pub(super) agent_name: String,
    /// The day in the memory folder's zone
    pub(super) today: String,
    pub(super) zone: String,
    pub(super) tiers: Vec<TierCounts>,
    /// Whether a daemon keeps the folder up to date
    pub(super) daemon_running: bool,
    pub(super) engine: String,
    /// Lines and items that wait for a person
    pub(super) held_for_review: usize,
    /// Work that failed and waits for a person
    pub(super) stuck: usize,
    pub(super) problems: Vec<ReportedProblem>,
    /// How many problems are not listed
    pub(super) more_problems: usize,
    /// Whether this server may correct items and import records
    pub(super) may_write: bool,
    /// Whether there is a folder about the person, too
    pub(super) person: bool,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct TierCounts {
    pub(super) tier: String,
    pub(super) files: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) newest: Option<String>,
    /// How many periods are due
    pub(super) due: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ReportedProblem {
    pub(super) path: String,
    pub(super) reason: String,
}
