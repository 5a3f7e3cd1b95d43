//! The sections of the configuration, with their defaults.
//!
//! These types are the only description of the keys: the check for unknown keys, the names of the
//! environment variables, and `schema/config.schema.json` are derived from them. A new key needs a field, a
//! comment, and a default here and a line in `config/memoird.yaml`, nothing else. Values only; `layers` fills
//! them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{duration::Span, schedule::Schedule, schema_check::ConfigProblem};

/// The settings of one root, or of all roots together. Every key has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// What drafts summaries.
    pub engine: EngineKind,
    /// The language model; read when `engine` is `model`.
    pub model: Model,
    /// How logs are summarized by week and month.
    pub compaction: Compaction,
    /// How `WISDOM.md` is maintained.
    pub wisdom: Wisdom,
    /// The origin of logs, and which text is never shown.
    pub privacy: Privacy,
    /// What an agent receives at session start.
    pub context: Context,
    /// When to check what is due, in the root's time zone.
    pub schedule: Schedules,
    /// Limits on the cost of models over all roots; a root's own budget is a share of it.
    pub budget: Budget,
    /// How long replaced versions of files are kept.
    pub history: History,
    /// Logs older than this many days are archived once everything made from them is done; null: never.
    #[schemars(range(min = 1))]
    pub archive_after_days: Option<u32>,
    /// A program and its arguments, run when a job is stuck, a budget is exhausted, or a provider is paused.
    #[schemars(length(min = 1))]
    pub on_problem: Option<Vec<String>>,
    /// A text file with metrics for Prometheus, which the daemon updates; null: none.
    #[schemars(extend("format" = "path"))]
    pub metrics_file: Option<String>,
    /// A folder in which a project without a memory folder gets one when a session in it ends; null: none.
    #[schemars(extend("format" = "path"))]
    pub projects_dir: Option<String>,
    /// How search works.
    pub search: Search,
    /// What agents may do over MCP.
    pub mcp: Mcp,
}

/// What drafts summaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// The embedded engine: deterministic, offline, free.
    #[default]
    Extractive,
    /// A language model.
    Model,
}

/// The language model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// The provider's protocol.
    pub provider: Provider,
    /// The model's name as the provider knows it.
    #[schemars(extend("format" = "name"))]
    pub name: String,
    /// The provider's address; null: its usual one.
    #[schemars(extend("format" = "http-url"))]
    pub base_url: Option<String>,
    /// Version of the protocol, only for `anthropic`; null: the tested one.
    #[schemars(extend("format" = "name"))]
    pub api_version: Option<String>,
    /// File that holds the key; null: a systemd credential, else `MEMOIRD_API_KEY`.
    #[schemars(extend("format" = "key-file"))]
    pub key_file: Option<String>,
    /// The program and its arguments, for provider `command`.
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// The context length: how many tokens the model reads and writes in one call.
    #[schemars(range(min = 1024))]
    pub context_tokens: u32,
    /// How many tokens the model may write in one call.
    #[schemars(range(min = 64))]
    pub max_output_tokens: u32,
    /// Whether the daemon sends weeks and months through the provider's cheaper batch interface.
    pub batch: bool,
    /// What to do if the model is unavailable.
    pub fallback: Fallback,
    /// A private file to which each request and reply is appended, for measuring; they hold the text of logs, with
    /// secrets masked.
    pub record: Option<String>,
    /// How long a model call may take.
    pub timeouts: Timeouts,
}

/// How long the parts of a model call may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Until the connection is established.
    pub connect: Span,
    /// Until the answer begins. Many servers send nothing before the reply is finished, and a model on
    /// this machine may have to be loaded first.
    pub first_byte: Span,
    /// Between two chunks of the answer.
    pub idle: Span,
    /// The whole call.
    pub total: Span,
}

/// The provider's protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// The Messages interface of Anthropic.
    Anthropic,
    /// Chat completions, as `OpenAI` and many other servers offer them.
    #[default]
    Openai,
    /// A program that reads the prompt and prints the reply.
    Command,
    /// Preset: `openai` with a local ollama.
    Ollama,
    /// Preset: `command` with the Claude command line.
    ClaudeCli,
}

impl Provider {
    /// Returns whether it answers batches of requests at a lower price.
    pub fn supports_batches(self) -> bool {
        matches!(self, Self::Anthropic | Self::Openai)
    }
}

/// What to do if the model is unavailable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fallback {
    /// Wait and try again.
    #[default]
    None,
    /// Use the extractive engine.
    Extractive,
}

/// How logs are summarized by week and month.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Compaction {
    /// How long after its end a period is summarized.
    pub grace: Span,
    /// A log that changed within this time is still being written.
    pub quiet: Span,
    /// A period whose sources have fewer characters is copied in full.
    pub whole_below_chars: usize,
    /// Weekly summaries.
    pub weekly: Length,
    /// Monthly summaries.
    pub monthly: Length,
    /// Whether typed memories are extracted from closed days.
    pub extract: bool,
    /// Whether the current week gets a provisional summary; auto: if the engine is free.
    pub open_week: Choice,
}

/// How long a summary may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Length {
    /// The target length, as a share of the sources' characters.
    #[schemars(range(min = 0.01, max = 1.0))]
    pub ratio: f64,
    /// The maximum length, as a share of the sources' characters.
    #[schemars(range(min = 0.01, max = 1.0))]
    pub max_ratio: f64,
    /// The maximum length in characters; 0 for no limit.
    pub max_chars: usize,
}

/// How `WISDOM.md` is maintained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Wisdom {
    /// The maximum number of entries.
    #[schemars(range(min = 1))]
    pub max_entries: usize,
    /// The maximum length in characters.
    #[schemars(range(min = 1))]
    pub max_chars: usize,
    /// The headings to use; empty: the engine chooses.
    pub categories: Vec<String>,
    /// Whether changes are made at once or wait for a person's decision.
    pub review: Review,
    /// Whether the file also has bullets, which are chosen again from the newest logs after each change: how to
    /// work, people, lessons, decisions, projects, environment, open items. Of logs that a model read they are its
    /// statements, of others the lines themselves. Without a model the same statements become typed memories by
    /// topic. Not if changes wait for a person.
    pub digest: bool,
}

impl Wisdom {
    /// Returns whether the statements of the newest logs are filed by topic, and bullets chosen from them.
    pub fn has_digest(&self) -> bool {
        self.digest && self.review == Review::Auto
    }
}

/// Whether changes of `WISDOM.md` wait for a person's decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Review {
    /// Changes are made at once.
    #[default]
    Auto,
    /// Changes wait in `review`.
    Manual,
}

/// The origin of logs, and which text is never shown. Rules for secrets are in `secrets.yaml` beside
/// `config.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Privacy {
    /// What to do with e-mail addresses, phone and card numbers, and IBANs.
    pub personal: Personal,
    /// The origin of a log whose frontmatter does not state it.
    pub origin: LogOrigin,
    /// Names of logs written by a person; `*` matches any characters.
    pub human_logs: Vec<String>,
    /// Names of logs with external text: mails, web pages, the output of tools.
    pub external_logs: Vec<String>,
    /// Headings under which a log contains external text, at any level and in any case.
    pub external_headings: Vec<String>,
}

/// What to do with personal data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Personal {
    /// Count it in `doctor --secrets` and keep it, because it is the person's own memory.
    #[default]
    Flag,
    /// Remove it like a secret.
    Remove,
}

/// Who wrote a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogOrigin {
    /// A person.
    Human,
    /// An agent.
    #[default]
    Agent,
    /// Somebody else: mails, web pages, the output of tools.
    External,
}

/// What an agent receives at session start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Context {
    /// The maximum number of tokens.
    #[schemars(range(min = 100))]
    pub budget_tokens: u32,
}

/// When to check what is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Schedules {
    /// For typed memories.
    pub extract: Schedule,
    /// For weeks.
    pub weekly: Schedule,
    /// For months.
    pub monthly: Schedule,
    /// For `WISDOM.md`.
    pub wisdom: Schedule,
    /// Whether to run as soon as a burst of new logs ends; auto: if the engine is free.
    pub on_change: Choice,
}

/// Limits on the cost of models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// The limits of one day.
    pub day: Cap,
    /// The limits of one calendar month.
    pub month: Cap,
}

/// The limits of one period; null means no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cap {
    /// Money, in US dollars. With such a limit a model of unknown price is refused unless it is local.
    #[schemars(range(min = 0.0))]
    pub usd: Option<f64>,
    /// Input and output tokens.
    pub tokens: Option<u64>,
    /// Calls.
    pub calls: Option<u32>,
}

/// How long replaced versions of files are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct History {
    /// `forever`, or a duration.
    pub keep: Keep,
}

/// How search works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    /// A server that computes embedding vectors, to search by meaning too; null: search by words only.
    pub embeddings: Option<Embeddings>,
}

/// A server that computes embedding vectors. It receives the sanitized lines of logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Embeddings {
    /// The provider's protocol.
    pub provider: EmbeddingsProvider,
    /// The model's name as the server knows it.
    #[schemars(extend("format" = "name"))]
    pub name: String,
    /// The server's address; null: ollama on this machine.
    #[schemars(extend("format" = "http-url"))]
    pub base_url: Option<String>,
    /// File that holds the key; null: the model's key if the address is the model's, else none.
    #[schemars(extend("format" = "key-file"))]
    pub key_file: Option<String>,
    /// The number of dimensions, for models that also offer shorter vectors; null: the model's own number.
    #[schemars(range(min = 8, max = 8192))]
    pub dimensions: Option<u32>,
    /// A prefix that the model needs before a query, such as `search_query: `.
    pub query_prefix: String,
    /// A prefix that the model needs before a line, such as `search_document: `.
    pub line_prefix: String,
}

/// The protocol of an embeddings server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingsProvider {
    /// `/embeddings`, as `OpenAI` and many other servers offer it.
    #[default]
    Openai,
    /// Ollama's own `/api/embed`, which truncates texts that are too long for the model.
    Ollama,
}

/// What agents may do over MCP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// Whether they may correct items and import records; logging entries is always allowed.
    pub write: bool,
}

/// A switch with an automatic setting: `auto`, `true`, or `false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// `auto`: see the comment of the field.
    #[default]
    Auto,
    /// `true`.
    On,
    /// `false`.
    Off,
}

/// How long something is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// `forever`.
    #[default]
    Forever,
    /// This long after it was replaced.
    For(Span),
}

impl Settings {
    /// Returns the problems of keys that are valid alone but not together.
    pub(super) fn conflicts(&self) -> Vec<ConfigProblem> {
        let mut problems = Vec::new();
        let mut report = |path: &str, what: String| problems.push(ConfigProblem::new(path, what));
        for (path, length) in [
            ("compaction.weekly", &self.compaction.weekly),
            ("compaction.monthly", &self.compaction.monthly),
        ] {
            let Length { ratio, max_ratio, .. } = length;
            if ratio > max_ratio {
                report(path, format!("ratio ({ratio}) is above max_ratio ({max_ratio})"));
            }
        }
        let model = &self.model;
        if model.max_output_tokens >= model.context_tokens {
            let (out, all) = (model.max_output_tokens, model.context_tokens);
            report(
                "model",
                format!("max_output_tokens ({out}) leave no room in context_tokens ({all})"),
            );
        }
        let Timeouts { connect, first_byte, idle, total } = &model.timeouts;
        for (name, span) in
            [("connect", connect), ("first_byte", first_byte), ("idle", idle), ("total", total)]
        {
            if *span == Span::default() {
                report(
                    &format!("model.timeouts.{name}"),
                    "0s leaves no time for a call".to_owned(),
                );
            }
        }
        let without_program = model.provider == Provider::Command && model.command.is_none();
        if self.engine == EngineKind::Model && without_program {
            report(
                "model.command",
                "missing: provider command needs [program, argument, …]".to_owned(),
            );
        }
        problems
    }
}

impl Model {
    /// Returns the provider's address: `base_url`, or the usual one; `None` for a provider that is a program.
    pub fn endpoint(&self) -> Option<&str> {
        let usual = match self.provider {
            Provider::Anthropic => "https://api.anthropic.com",
            // Nothing leaves the machine unless a person configures another address.
            Provider::Openai | Provider::Ollama => "http://127.0.0.1:11434/v1",
            Provider::Command | Provider::ClaudeCli => return None,
        };
        Some(self.base_url.as_deref().unwrap_or(usual))
    }
}

impl Choice {
    /// Returns the switch, with the value `auto` for `auto`.
    pub fn resolve(self, auto: bool) -> bool {
        match self {
            Self::Auto => auto,
            Self::On => true,
            Self::Off => false,
        }
    }
}

impl Default for Model {
    fn default() -> Self {
        Self {
            provider: Provider::default(),
            name: "qwen3:8b".to_owned(),
            base_url: None,
            api_version: None,
            key_file: None,
            command: None,
            record: None,
            context_tokens: 32_768,
            max_output_tokens: 6144,
            batch: false,
            fallback: Fallback::default(),
            timeouts: Timeouts::default(),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Span::from_secs(10),
            first_byte: Span::from_secs(10 * 60),
            idle: Span::from_secs(60),
            total: Span::from_secs(10 * 60),
        }
    }
}

/// A month that is longer is not read: four pages of a book.
const MONTH_CHARS_MAX: usize = 10_000;

impl Default for Compaction {
    fn default() -> Self {
        Self {
            grace: Span::from_secs(2 * 60 * 60),
            quiet: Span::from_secs(2),
            whole_below_chars: 2000,
            weekly: Length::default(),
            monthly: Length { max_chars: MONTH_CHARS_MAX, ..Length::default() },
            extract: true,
            open_week: Choice::Auto,
        }
    }
}

impl Default for Length {
    fn default() -> Self {
        Self { ratio: 0.30, max_ratio: 0.35, max_chars: 24_000 }
    }
}

impl Default for Wisdom {
    fn default() -> Self {
        Self {
            max_entries: 60,
            max_chars: 8000,
            categories: Vec::new(),
            review: Review::Auto,
            digest: true,
        }
    }
}

impl Default for Context {
    fn default() -> Self {
        Self { budget_tokens: 2000 }
    }
}

impl Default for Schedules {
    fn default() -> Self {
        let line = |it| Schedule::parse(it).expect("a test parses the built-in lines");
        Self {
            extract: line("30 2 * * *"),
            weekly: line("0 3 * * *"),
            monthly: line("15 3 * * *"),
            wisdom: line("30 3 * * *"),
            on_change: Choice::Auto,
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            day: Cap { usd: Some(1.0), tokens: None, calls: Some(200) },
            month: Cap { usd: Some(10.0), tokens: None, calls: None },
        }
    }
}

impl Serialize for Choice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::On => serializer.serialize_bool(true),
            Self::Off => serializer.serialize_bool(false),
        }
    }
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected auto, true, or false")]
        enum BoolOrAuto {
            Switch(bool),
            Word(AutoKeyword),
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum AutoKeyword {
            Auto,
        }
        Ok(match BoolOrAuto::deserialize(deserializer)? {
            BoolOrAuto::Switch(true) => Self::On,
            BoolOrAuto::Switch(false) => Self::Off,
            BoolOrAuto::Word(AutoKeyword::Auto) => Self::Auto,
        })
    }
}

impl JsonSchema for Choice {
    fn schema_name() -> Cow<'static, str> {
        "Choice".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["auto", true, false] })
    }
}

impl Serialize for Keep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Forever => serializer.serialize_str("forever"),
            Self::For(span) => span.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Keep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        if text == "forever" {
            return Ok(Self::Forever);
        }
        text.parse().map(Self::For).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Keep {
    fn schema_name() -> Cow<'static, str> {
        "Keep".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "keep",
            "pattern": "^(forever|\\s*[0-9]+\\s*(ms|s|m|h|d|w)\\s*)$",
            "description": "`forever`, or a length of time like 90d."
        })
    }
}
