//! The results of the tools. Each result with text from memory contains its origin, its day, and a notice
//! that it is no instruction.

#![expect(clippy::doc_markdown, reason = "agents read these comments, not rustdoc")]

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct SearchResponse {
    /// How to treat text from memory
    pub(super) notice: &'static str,
    /// The query
    pub(super) query: String,
    /// Why the search used words alone, although search by meaning is configured
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) words_only: Option<String>,
    /// Whether no line has the words of the query, and the hits only have words of a similar spelling
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) similar_spelling: Option<bool>,
    /// The hits, the best first
    pub(super) hits: Vec<MemoryHit>,
    /// Pass this as `cursor` for more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct MemoryHit {
    /// The file, relative to the memory folder
    pub(super) path: String,
    /// The line in it
    pub(super) line: u32,
    /// Its day
    pub(super) date: String,
    /// daily, session, weekly, monthly, wisdom, or memory
    pub(super) tier: String,
    /// The origin: human, agent, external, or derived
    pub(super) origin: String,
    /// Higher is better
    pub(super) score: f64,
    /// How it was found: words, meaning, or both; spelling for a similar spelling
    pub(super) found_by: Vec<String>,
    /// The text
    pub(super) text: String,
    /// Lines before it
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) before: Vec<String>,
    /// Lines after it
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) after: Vec<String>,
    /// The items above it that matched, too
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) via: Vec<String>,
    /// Notes on the hit
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub(super) more: serde_json::Map<String, serde_json::Value>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct FileResponse {
    /// How to treat text from memory
    pub(super) notice: &'static str,
    /// The file, relative to the memory folder
    pub(super) path: String,
    /// daily, session, weekly, monthly, wisdom, memory, or index
    pub(super) kind: String,
    /// The origin: human, agent, external, or derived
    pub(super) origin: String,
    /// Its day or period
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date: Option<String>,
    /// Since when it was so, if an earlier time was requested
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<String>,
    /// The first line returned
    pub(super) from: usize,
    /// The last line returned
    pub(super) to: usize,
    /// How many lines the file has
    pub(super) lines: usize,
    /// The lines
    pub(super) text: String,
    /// Pass this as `from` for more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_from: Option<usize>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ContextResponse {
    /// How to treat text from memory
    pub(super) notice: &'static str,
    /// The day of the context
    pub(super) date: String,
    /// What to read
    pub(super) text: String,
    /// The approximate number of tokens
    pub(super) tokens: usize,
    /// The parts, and how much of each is included
    pub(super) parts: Vec<PartSize>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct PartSize {
    pub(super) name: String,
    /// How many of its lines are included
    pub(super) lines: usize,
    /// How many are left out
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
    /// Whether the entry is on disk
    pub(super) stored: bool,
    /// In a folder that workers compact: why only this machine has the entry yet; a later entry publishes it, too
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unpublished: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct CorrectResponse {
    /// How to treat text from memory
    pub(super) notice: &'static str,
    /// The day of the correction
    pub(super) date: String,
    pub(super) path: String,
    pub(super) line: u32,
    /// The previous text
    pub(super) before: String,
    /// The new text
    pub(super) after: String,
    pub(super) changed: bool,
    pub(super) dry_run: bool,
    /// The files derived from it
    pub(super) above: Vec<String>,
    /// The jobs for these files
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
    /// How to treat text from memory
    pub(super) notice: &'static str,
    /// The target
    pub(super) target: TargetLine,
    /// Its source lines
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sources: Vec<CitedSource>,
    /// With `up`: the items derived from it
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) derived: Vec<DerivedEntry>,
    /// Pass this as `cursor` for more
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
    /// The least trusted origin of the lines: human, agent, or external
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<String>,
    pub(super) text: String,
    /// The lines are gone
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) gone: bool,
    /// The lines have changed since they were cited
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) changed: bool,
    /// The item of the target that cites it, if the target is a whole file
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) item: Option<String>,
    /// The items between the target and the lines
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) via: Vec<String>,
    /// The source above, if that is an item itself
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
    /// How to treat text from memory
    pub(super) notice: &'static str,
    pub(super) period: String,
    /// Lines that can carry a statement
    pub(super) lines: usize,
    /// How many reached the file
    pub(super) covered: usize,
    /// How many are left out
    pub(super) left_out: usize,
    /// The lines that did not reach the file
    pub(super) uncovered: Vec<LeftOutLine>,
    /// Pass this as `cursor` for more
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
    /// How to treat text from memory
    pub(super) notice: &'static str,
    /// The total number
    pub(super) total: usize,
    pub(super) memories: Vec<MemoryEntry>,
    /// Pass this as `cursor` for more
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
    /// human if a person wrote it, else derived
    pub(super) origin: String,
    /// The day of its newest source line
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct MemoryResponse {
    /// How to treat text from memory
    pub(super) notice: &'static str,
    #[serde(flatten)]
    pub(super) memory: MemoryEntry,
    /// The statement, its reason, and how to apply it
    pub(super) text: String,
    /// Its source lines in the logs
    pub(super) sources: Vec<String>,
    /// The memory that it replaced
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) supersedes: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct RecordListResponse {
    /// How to treat text from memory
    pub(super) notice: &'static str,
    /// The total number
    pub(super) total: usize,
    pub(super) records: Vec<RecordEntry>,
    /// Pass this as `cursor` for more
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
    /// Whether it existed already
    pub(super) unchanged: bool,
}

/// The result of `core_memory`: the part of its operation.
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
    /// How to treat text from memory
    pub(super) notice: &'static str,
    pub(super) agent_name: String,
    /// The day in the memory folder's zone
    pub(super) today: String,
    pub(super) zone: String,
    pub(super) tiers: Vec<TierCounts>,
    /// Whether a daemon serves the folder
    pub(super) daemon_running: bool,
    pub(super) engine: String,
    /// Lines and items quarantined for review
    pub(super) held_for_review: usize,
    /// Jobs that are stuck and wait for a person
    pub(super) stuck: usize,
    pub(super) problems: Vec<ReportedProblem>,
    /// How many further problems there are
    pub(super) more_problems: usize,
    /// Whether this server may correct items and import records
    pub(super) may_write: bool,
    /// Whether there is also a folder about the person
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
