//! The model engine against a local server or program.
//!
//! - [`batch`]: requests sent as a batch and answered later.
//! - [`crashes`]: crashes at random steps, with a model that charges.
//! - [`daemon_budget`]: a daemon whose budget for today is exhausted.
//! - [`external_sources`]: memories extracted from external text.
//! - [`fallback`]: the extractive engine in place of an unavailable model.
//! - [`injections`]: false statements in replies, through the whole program.
//! - [`memories`]: bad, repaired, and updated typed memories.
//! - [`programs`]: a program in place of a server.
//! - [`recorded`]: what becomes of true replies, and what they cost.
//! - [`replies`]: valid, invalid, and false replies.
//! - [`sdk`]: requests against the types of the official SDKs.
//! - [`session_tools`]: a session handed over with tools.
//! - [`sessions`]: summaries of coding sessions.
//! - [`spending`]: which calls are made, their budget, and who sees the key.
//! - [`transport`]: failures between the program and a server.
//! - [`week_batch`]: a week and its days in one request.

mod batch;
mod crashes;
mod daemon_budget;
mod external_sources;
mod fallback;
mod injections;
mod memories;
mod programs;
mod recorded;
mod replies;
mod sdk;
mod session_tools;
mod sessions;
mod spending;
mod transport;
mod week_batch;

use serde_json::{Value, json};

use super::support::{CommandOutput, Root, server::Server};

/// The weekly summary that most of these tests check.
pub(crate) const WEEK: &str = "memory/weekly/2026-W15.md";

/// The log of that week.
const LOG: &str = "# Importer

- Moved the importer to SQLite, since a crash then loses at most one row
- Measured 3.2 s per GB on the importer with 38 GB of data
- Alice prefers short replies in the morning
- Build 4812 of the parser failed on line 77 of grammar.y
";

/// An invented API key.
const KEY: &str = "sk-test-7Zq4Wm9xK2vB5nR8tL3p";

/// The wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Anthropic,
    Openai,
    Ollama,
}

impl Wire {
    /// The two most common formats.
    const BOTH: [Self; 2] = [Self::Anthropic, Self::Openai];
    const ALL: [Self; 3] = [Self::Anthropic, Self::Openai, Self::Ollama];

    fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::Ollama => "ollama",
        }
    }

    fn base_url(self, server: &Server) -> String {
        match self {
            Self::Anthropic => server.url(),
            Self::Openai | Self::Ollama => server.url() + "/v1",
        }
    }

    /// Returns the body of an error in this format.
    fn error(self, kind: &str, message: &str) -> Value {
        match self {
            Self::Anthropic => {
                json!({ "type": "error", "error": { "type": kind, "message": message } })
            }
            Self::Openai => json!({ "error": { "code": kind, "message": message, "type": kind } }),
            Self::Ollama => json!({ "error": message }),
        }
    }
}

/// A memory folder with one closed week, and the server of its model.
struct Workspace {
    root: Root,
    server: Server,
    config: Value,
}

impl Workspace {
    fn new(wire: Wire, server: Server) -> Self {
        let root = Root::empty("desk");
        root.write("memoird.yaml", "zone: Europe/Berlin\n");
        root.write("memory/2026-04-07.md", LOG);
        let config = json!({
            "engine": "model",
            "model": {
                "provider": wire.provider(),
                "name": "scripted-1",
                "base_url": wire.base_url(&server),
            },
            "compaction": {
                "whole_below_chars": 0,
                "extract": false,
                "weekly": { "ratio": 0.9, "max_ratio": 1.0 },
                "monthly": { "ratio": 0.9, "max_ratio": 1.0 },
            },
            "budget": { "day": { "usd": null, "calls": null }, "month": { "usd": null } },
        });
        let workspace = Self { root, server, config };
        workspace.configure();
        workspace
    }

    /// Changes the configuration.
    fn set(&mut self, pointer: &str, value: Value) {
        let (above, name) = pointer.rsplit_once('/').unwrap();
        self.config.pointer_mut(above).unwrap()[name] = value;
        self.configure();
    }

    fn configure(&self) {
        self.root.write("../.config/memoird/config.yaml", &self.config.to_string());
    }

    fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> CommandOutput {
        let mut command = self.root.command(args);
        command.env("MEMOIRD_API_KEY", KEY).envs(variables.iter().copied());
        self.root.finish(command, args)
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        self.run_with(args, &[])
    }

    /// Runs `compact --json`.
    fn compact(&self) -> Compacted {
        let ran = self.run(&["compact", "--json"]);
        let report = ran.json_as("compact");
        Compacted { ran, report }
    }

    /// Returns the engine and budget lines of `status`.
    fn status(&self) -> String {
        let status = self.run(&["status"]).stdout;
        status.lines().filter(|it| it.starts_with("engine") || it.starts_with("budget")).collect()
    }

    /// Returns the weekly summary, if it exists.
    fn week(&self) -> Option<String> {
        self.root.files().remove(WEEK)
    }

    /// Returns what is recorded about it.
    fn week_record(&self) -> String {
        self.root.read_record(WEEK)
    }
}

/// A run of `compact --json`.
struct Compacted {
    ran: CommandOutput,
    report: Value,
}

impl Compacted {
    /// Returns the only job.
    #[track_caller]
    fn job(&self) -> &Value {
        let jobs = self.report["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), 1, "{}", self.ran);
        &jobs[0]
    }

    fn reason(&self) -> &str {
        self.job()["reason"].as_str().unwrap()
    }

    fn outcome(&self) -> &str {
        self.job()["outcome"].as_str().unwrap()
    }
}
