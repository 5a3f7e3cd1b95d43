//! The arguments of the tools. Agents read their doc comments as descriptions.

#![expect(clippy::doc_markdown, reason = "agents read these comments, not rustdoc")]

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    commands::memories::MemoryTypeFilter,
    memory::period::Period,
    operations::error::{CommandError, CommandResult},
};

/// Whose memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum MemoryOwner {
    /// The memory folder that is served
    #[default]
    Agent,
    /// The folder about the person, which holds in every project
    Person,
}

/// A tier of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum TierFilter {
    Daily,
    Session,
    Weekly,
    Monthly,
    Wisdom,
    Memory,
}

impl TierFilter {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Daily => "daily",
            Self::Session => "session",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Wisdom => "wisdom",
            Self::Memory => "memory",
        }
    }
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchParams {
    /// What to look for: a question in plain words. Also understood: "words in a row", -not, OR, tier:weekly, type:feedback, on:2026-04-02, after:2026-03, before:2026-W14, project:NAME
    pub(super) query: String,
    /// The most hits (10)
    #[serde(default)]
    #[schemars(range(min = 1, max = 50))]
    pub(super) limit: Option<usize>,
    /// The `next_cursor` of an earlier answer
    #[serde(default)]
    pub(super) cursor: Option<String>,
    /// Only hits in these tiers, or found through them
    #[serde(default)]
    pub(super) tier: Option<Vec<TierFilter>>,
    /// Only source lines of typed memories of this kind
    #[serde(default, rename = "type")]
    pub(super) kind: Option<MemoryTypeFilter>,
    /// Only from this day, week, or month on (2026-04-02, 2026-W14, 2026-04)
    #[serde(default)]
    pub(super) since: Option<String>,
    /// Only up to the end of this day, week, or month
    #[serde(default)]
    pub(super) until: Option<String>,
    /// How many lines to add before and after each hit (0)
    #[serde(default)]
    #[schemars(range(min = 0, max = 10))]
    pub(super) context: Option<usize>,
    /// Return items of summaries themselves instead of their log lines
    #[serde(default)]
    pub(super) raw: bool,
    /// Whose memory (agent)
    #[serde(default)]
    pub(super) of: MemoryOwner,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadParams {
    /// A path in the memory folder, a day, week, or month (2026-04-02, 2026-W14, 2026-04), WISDOM.md, MEMORY.md, or the name of a memory or a session record
    pub(super) file: String,
    /// The first line to read, from 1 (1)
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(super) from: Option<usize>,
    /// The last line to read (the last one that fits)
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(super) to: Option<usize>,
    /// The file as it was then: 2026-04-02 (at the end of the day), "2026-04-02 14:00", "3 days ago"
    #[serde(default)]
    pub(super) as_of: Option<String>,
    /// Whose memory (agent)
    #[serde(default)]
    pub(super) of: MemoryOwner,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextParams {
    /// The most tokens (the configured number)
    #[serde(default)]
    #[schemars(range(min = 50, max = 20_000))]
    pub(super) budget_tokens: Option<usize>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LogParams {
    /// What to write down: what was done, decided, found out, and why, with names, numbers, and dates
    pub(super) text: String,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CorrectParams {
    /// The item: a line of a weekly or monthly file or of WISDOM.md, or a typed memory (2026-W14:19, WISDOM.md:12, feedback_testing)
    pub(super) target: String,
    /// The correct text
    pub(super) text: String,
    /// Report what would change, and change nothing
    #[serde(default)]
    pub(super) dry_run: bool,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TraceParams {
    /// A line of a generated file, or the file (2026-W14:19, WISDOM.md:12, feedback_testing); with `up`, a line of a log (2026-04-02:12)
    pub(super) target: String,
    /// Trace a log line up to the items derived from it
    #[serde(default)]
    pub(super) up: bool,
    /// The most sources (50)
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    pub(super) limit: Option<usize>,
    /// The `next_cursor` of an earlier answer
    #[serde(default)]
    pub(super) cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CoverageParams {
    /// A week, a month, or a day (2026-W14, 2026-04, 2026-04-02); the newest summarized week
    #[serde(default)]
    pub(super) period: Option<String>,
    /// The most lines (50)
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    pub(super) limit: Option<usize>,
    /// The `next_cursor` of an earlier answer
    #[serde(default)]
    pub(super) cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryListParams {
    /// Only those of this kind
    #[serde(default, rename = "type")]
    pub(super) kind: Option<MemoryTypeFilter>,
    /// The most memories (50)
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    pub(super) limit: Option<usize>,
    /// The `next_cursor` of an earlier answer
    #[serde(default)]
    pub(super) cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryGetParams {
    /// The name of the memory, or of its file
    pub(super) name: String,
    /// Whose memory (agent)
    #[serde(default)]
    pub(super) of: MemoryOwner,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionListParams {
    /// Only those of this project: its folder, or a part of its path
    #[serde(default)]
    pub(super) project: Option<String>,
    /// Only those with this tag
    #[serde(default)]
    pub(super) tag: Option<String>,
    /// Only those that ended in this day, week, or month or later
    #[serde(default)]
    pub(super) since: Option<String>,
    /// Only those that ended in this day, week, or month or before
    #[serde(default)]
    pub(super) until: Option<String>,
    /// The most records (20)
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub(super) limit: Option<usize>,
    /// The `next_cursor` of an earlier answer
    #[serde(default)]
    pub(super) cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionExportParams {
    /// The record: CMEM-20260402-101500
    pub(super) id: String,
    /// The first line to read, from 1 (1)
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(super) from: Option<usize>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionImportParams {
    /// The record: Markdown, with or without a frontmatter that holds `id`, `project`, `ended`, `tags`
    pub(super) text: String,
}

/// What `core_memory` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum CoreMemoryOperation {
    /// List the records
    List,
    /// Read one record; needs `id`
    Export,
    /// Import a record; needs `text`, and writing must be allowed
    Import,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CoreMemoryParams {
    /// What to do
    pub(super) operation: CoreMemoryOperation,
    /// For `export`: the record (CMEM-20260402-101500)
    #[serde(default)]
    pub(super) id: Option<String>,
    /// For `import`: the record as Markdown
    #[serde(default)]
    pub(super) text: Option<String>,
    /// For `list`: only those of this project
    #[serde(default)]
    pub(super) project: Option<String>,
    /// For `list`: only those with this tag
    #[serde(default)]
    pub(super) tag: Option<String>,
    /// For `list`: the most records (20)
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub(super) limit: Option<usize>,
    /// For `list`: the `next_cursor` of an earlier answer
    #[serde(default)]
    pub(super) cursor: Option<String>,
    /// For `export`: the first line to read, from 1
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(super) from: Option<usize>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParams {}

/// Parses the period in an argument.
pub(super) fn parse_period(
    argument: &str,
    value: Option<&String>,
) -> CommandResult<Option<Period>> {
    let period = value.map(|it| it.parse::<Period>()).transpose();
    period.map_err(|e| CommandError::usage(format!("`{argument}`: {e}")))
}
