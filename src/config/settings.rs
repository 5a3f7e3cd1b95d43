//! The sections of the configuration, with their defaults.
//!
//! These types are the one description of the keys: the check for unknown keys, the names of the
//! environment variables, and `schema/config.schema.json` are made from their schema, so a new key
//! needs a field, a comment, and a default here and a line in `config/memoird.yaml`, nothing else.
//! Values only; `layers` fills them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{duration::Span, schedule::Schedule, schema_check::ConfigProblem};

/// What a root, or all roots together, are run with. Every key has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// What drafts a fold.
    pub engine: EngineKind,
    /// The language model; read when `engine` is `model`.
    pub model: Model,
    /// How logs become weeks and months.
    pub compaction: Compaction,
    /// How `WISDOM.md` is kept.
    pub wisdom: Wisdom,
    /// Whose words a log is, and what of it is never shown.
    pub privacy: Privacy,
    /// What an agent is given at session start.
    pub context: Context,
    /// When to ask what is due, in the root's zone.
    pub schedule: Schedules,
    /// Caps on what a model may cost; over all roots, a root's own is a share of it.
    pub budget: Budget,
    /// How long replaced versions are kept.
    pub history: History,
    /// Logs older than this many days are archived once all made from them is done; null: never.
    #[schemars(range(min = 1))]
    pub archive_after_days: Option<u32>,
    /// A program and its arguments, told of stuck jobs, caps reached, and an open breaker.
    #[schemars(length(min = 1))]
    pub on_problem: Option<Vec<String>>,
    /// A text file for Prometheus that the daemon keeps; null: none.
    #[schemars(extend("format" = "path"))]
    pub metrics_file: Option<String>,
    /// A folder in which a project that has no memory folder gets one when a session in it ends; null: none.
    #[schemars(extend("format" = "path"))]
    pub projects_dir: Option<String>,
    /// How recall searches.
    pub search: Search,
    /// What agents may do over MCP.
    pub mcp: Mcp,
}

/// What drafts a fold.
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
    /// Whose protocol is spoken.
    pub provider: Provider,
    /// The model's name as the provider knows it.
    #[schemars(extend("format" = "name"))]
    pub name: String,
    /// Where the provider listens; null: where this provider usually does.
    #[schemars(extend("format" = "http-url"))]
    pub base_url: Option<String>,
    /// Version of the protocol, for `anthropic` only; null: the one that was tested.
    #[schemars(extend("format" = "name"))]
    pub api_version: Option<String>,
    /// File that holds the key; null: a systemd credential, else `MEMOIRD_API_KEY`.
    #[schemars(extend("format" = "key-file"))]
    pub key_file: Option<String>,
    /// The program and its arguments, for provider `command`.
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// How many tokens the model reads and writes in one call.
    #[schemars(range(min = 1024))]
    pub context_tokens: u32,
    /// How many tokens it may write in one call.
    #[schemars(range(min = 64))]
    pub max_output_tokens: u32,
    /// Whether the daemon's weeks and months go through the provider's cheaper batch interface.
    pub batch: bool,
    /// What to do when the model cannot be had.
    pub fallback: Fallback,
    /// How long a call may take.
    pub timeouts: Timeouts,
}

/// How long a call of a model may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Until there is a connection.
    pub connect: Span,
    /// Until the answer begins. Many servers send nothing before the reply is finished, and a model on
    /// this machine may have to be loaded first.
    pub first_byte: Span,
    /// Between two pieces of the answer.
    pub idle: Span,
    /// In all.
    pub total: Span,
}

/// Whose protocol is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// The Messages interface of Anthropic.
    Anthropic,
    /// Chat completions, as `OpenAI` and many servers speak them.
    #[default]
    Openai,
    /// A program that reads the prompt and prints the reply.
    Command,
    /// Preset: `openai` at a local ollama.
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

/// What to do when the model cannot be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fallback {
    /// Wait and try again.
    #[default]
    None,
    /// Use the extractive engine.
    Extractive,
}

/// How logs become weeks and months.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Compaction {
    /// How long after a period's end it is folded.
    pub grace: Span,
    /// A log changed later than this is still being written.
    pub quiet: Span,
    /// A period whose sources have fewer characters is carried over whole.
    pub whole_below_chars: usize,
    /// Weekly files.
    pub weekly: Length,
    /// Monthly files.
    pub monthly: Length,
    /// Whether typed memories are extracted from closed days.
    pub extract: bool,
    /// Whether the running week gets a provisional file; auto: where the engine costs no money.
    pub open_week: Choice,
}

/// How long a generated file may get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Length {
    /// The share of the sources' characters to aim at.
    #[schemars(range(min = 0.01, max = 1.0))]
    pub ratio: f64,
    /// The share never to be passed.
    #[schemars(range(min = 0.01, max = 1.0))]
    pub max_ratio: f64,
    /// Characters never to be passed; 0 for no limit.
    pub max_chars: usize,
}

/// How `WISDOM.md` is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Wisdom {
    /// How many entries it holds at most.
    #[schemars(range(min = 1))]
    pub max_entries: usize,
    /// How many characters it holds at most.
    #[schemars(range(min = 1))]
    pub max_chars: usize,
    /// The headings to use; empty for the engine's own choice.
    pub categories: Vec<String>,
    /// Whether changes are made at once or wait for a person.
    pub review: Review,
}

/// Whether changes of `WISDOM.md` wait for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Review {
    /// They are made at once.
    #[default]
    Auto,
    /// They wait in `review`.
    Manual,
}

/// Whose words a log is, and what of it is never shown. Rules for secrets stand in `secrets.yaml`
/// beside `config.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Privacy {
    /// What is done about e-mail addresses, phone and card numbers, and IBANs.
    pub personal: Personal,
    /// Whose words a log is that does not say so in its frontmatter.
    pub origin: LogOrigin,
    /// Names of logs whose text a person wrote; `*` stands for any characters.
    pub human_logs: Vec<String>,
    /// Names of logs whose text came from elsewhere: mails, web pages, the output of tools.
    pub external_logs: Vec<String>,
    /// Headings beneath which a log holds text from elsewhere, whatever their depth and case.
    pub external_headings: Vec<String>,
}

/// What is done about personal data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Personal {
    /// It is counted in `doctor --secrets`, and stays: it is the person's own memory.
    #[default]
    Flag,
    /// It is taken out like a secret.
    Remove,
}

/// Whose words a log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogOrigin {
    /// A person's.
    Human,
    /// An agent's.
    #[default]
    Agent,
    /// From elsewhere.
    External,
}

/// What an agent is given at session start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Context {
    /// How many tokens it may take.
    #[schemars(range(min = 100))]
    pub budget_tokens: u32,
}

/// When to ask what is due.
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
    /// Whether a burst of new logs is folded as soon as it ends; auto: where the engine costs no
    /// money.
    pub on_change: Choice,
}

/// Caps on what a model may cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// In one day.
    pub day: Cap,
    /// In one calendar month.
    pub month: Cap,
}

/// One set of caps; null lifts one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cap {
    /// Money, in US dollars. Under such a cap a model without a price is refused unless it is local.
    #[schemars(range(min = 0.0))]
    pub usd: Option<f64>,
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Calls.
    pub calls: Option<u32>,
}

/// How long replaced versions are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct History {
    /// `forever`, or a length of time.
    pub keep: Keep,
}

/// How recall searches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    /// A server that turns texts into vectors, to search by meaning, too; null: by words only.
    pub embeddings: Option<Embeddings>,
}

/// A server that turns texts into vectors. The lines of logs go there, as they may be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Embeddings {
    /// Whose protocol is spoken.
    pub provider: EmbeddingsProvider,
    /// The model's name as the server knows it.
    #[schemars(extend("format" = "name"))]
    pub name: String,
    /// Where the server listens; null: ollama on this machine.
    #[schemars(extend("format" = "http-url"))]
    pub base_url: Option<String>,
    /// File that holds the key; null: the model's key where the address is the model's, else none.
    #[schemars(extend("format" = "key-file"))]
    pub key_file: Option<String>,
    /// How many numbers a vector is to have, for models that make shorter ones, too; null: as many as
    /// the model makes.
    #[schemars(range(min = 8, max = 8192))]
    pub dimensions: Option<u32>,
    /// Words that the model wants before what is looked for, such as `search_query: `.
    pub query_prefix: String,
    /// Words that the model wants before what is found, such as `search_document: `.
    pub line_prefix: String,
}

/// Whose protocol is spoken to have vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingsProvider {
    /// `/embeddings`, as `OpenAI` and many servers have it.
    #[default]
    Openai,
    /// Ollama's own `/api/embed`, which cuts what is too long for the model.
    Ollama,
}

/// What agents may do over MCP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// Whether they may correct items and import records; they may log entries in any case.
    pub write: bool,
}

/// A switch that may be left to the program: `auto`, `true`, or `false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// As the field's comment says.
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
    /// For so long after it was replaced.
    For(Span),
}

impl Settings {
    /// Returns what no key by itself is wrong about, but some together are.
    pub(super) fn conflicts(&self) -> Vec<ConfigProblem> {
        let mut problems = Vec::new();
        let mut say = |path: &str, what: String| problems.push(ConfigProblem::new(path, what));
        for (path, length) in [
            ("compaction.weekly", &self.compaction.weekly),
            ("compaction.monthly", &self.compaction.monthly),
        ] {
            let Length { ratio, max_ratio, .. } = length;
            if ratio > max_ratio {
                say(path, format!("ratio ({ratio}) is above max_ratio ({max_ratio})"));
            }
        }
        let model = &self.model;
        if model.max_output_tokens >= model.context_tokens {
            let (out, all) = (model.max_output_tokens, model.context_tokens);
            say(
                "model",
                format!("max_output_tokens ({out}) leave no room in context_tokens ({all})"),
            );
        }
        let Timeouts { connect, first_byte, idle, total } = &model.timeouts;
        for (name, span) in
            [("connect", connect), ("first_byte", first_byte), ("idle", idle), ("total", total)]
        {
            if *span == Span::default() {
                say(&format!("model.timeouts.{name}"), "0s leaves no time for a call".to_owned());
            }
        }
        let without_program = model.provider == Provider::Command && model.command.is_none();
        if self.engine == EngineKind::Model && without_program {
            say(
                "model.command",
                "missing: provider command needs [program, argument, …]".to_owned(),
            );
        }
        problems
    }
}

impl Model {
    /// Returns where the provider listens: `base_url`, else where it usually does; `None` for one
    /// that is a program.
    pub fn endpoint(&self) -> Option<&str> {
        let usual = match self.provider {
            Provider::Anthropic => "https://api.anthropic.com",
            // Nothing leaves the machine unless a person names another address.
            Provider::Openai | Provider::Ollama => "http://127.0.0.1:11434/v1",
            Provider::Command | Provider::ClaudeCli => return None,
        };
        Some(self.base_url.as_deref().unwrap_or(usual))
    }
}

impl Choice {
    /// Returns the switch, with `auto` standing for the value given.
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

impl Default for Compaction {
    fn default() -> Self {
        Self {
            grace: Span::from_secs(2 * 60 * 60),
            quiet: Span::from_secs(2),
            whole_below_chars: 2000,
            weekly: Length::default(),
            monthly: Length::default(),
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
        Self { max_entries: 20, max_chars: 8000, categories: Vec::new(), review: Review::Auto }
    }
}

impl Default for Context {
    fn default() -> Self {
        Self { budget_tokens: 2000 }
    }
}

impl Default for Schedules {
    fn default() -> Self {
        let line = |it| Schedule::parse(it).expect("the built-in lines are read in a test");
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
