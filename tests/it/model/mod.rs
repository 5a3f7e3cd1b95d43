//! A model behind its door: what it may say, and fail to say, and where each of it ends.
//!
//! - [`batch`]: what is handed over to be answered later.
//! - [`combined`]: a week and its days in one request.
//! - [`crashes`]: crashes at random steps, with a model that charges.
//! - [`door`]: what goes wrong between us and a server.
//! - [`elsewhere`]: what is made of text from elsewhere.
//! - [`fallback`]: what is made without it.
//! - [`handoff`]: a session handed over with tools.
//! - [`memories`]: typed memories that are bad, mended, or said anew.
//! - [`pausing`]: a daemon that may ask no more today.
//! - [`planted`]: what is false, through the whole chain.
//! - [`programs`]: a program in the place of a server.
//! - [`replies`]: what a reply may be.
//! - [`sdk`]: what is sent, by the types of the official SDKs.
//! - [`sessions`]: sessions of coding agents.
//! - [`spending`]: what is sent at all, and what it may cost.

mod batch;
mod crashes;
mod elsewhere;
mod fallback;
mod injections;
mod memories;
mod pausing;
mod programs;
mod replies;
mod sdk;
mod session_tools;
mod sessions;
mod spending;
mod transport;
mod week_batch;

use serde_json::{Value, json};

use super::support::{Ran, Root, server::Server};

/// The file that most tests here are about.
pub(crate) const WEEK: &str = "memory/weekly/2026-W15.md";

/// The log that it is made of.
const LOG: &str = "# Importer

- Moved the importer to SQLite, since a crash then loses at most one row
- Measured 3.2 s per GB on the importer with 38 GB of data
- Alice prefers short replies in the morning
- Build 4812 of the parser failed on line 77 of grammar.y
";

/// Made up.
const KEY: &str = "sk-test-7Zq4Wm9xK2vB5nR8tL3p";

/// Whose wire format is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Anthropic,
    Openai,
    Ollama,
}

impl Wire {
    /// The two that most servers speak.
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

    /// Returns the body of an error as this interface has it.
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

/// A memory folder with one closed week, drafted by the model of a server.
struct Desk {
    root: Root,
    server: Server,
    config: Value,
}

impl Desk {
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
        let desk = Self { root, server, config };
        desk.configure();
        desk
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

    fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut command = self.root.command(args);
        command.env("MEMOIRD_API_KEY", KEY).envs(variables.iter().copied());
        self.root.finish(command, args)
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, &[])
    }

    /// Does what is due.
    fn compact(&self) -> Compacted {
        let ran = self.run(&["compact", "--json"]);
        let report = ran.json_as("compact");
        Compacted { ran, report }
    }

    /// Returns what `status` says of the engine.
    fn status(&self) -> String {
        let status = self.run(&["status"]).stdout;
        status.lines().filter(|it| it.starts_with("engine") || it.starts_with("budget")).collect()
    }

    /// Returns the weekly file.
    fn week(&self) -> Option<String> {
        self.root.files().remove(WEEK)
    }
}

/// A run of `compact --json`.
struct Compacted {
    ran: Ran,
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
