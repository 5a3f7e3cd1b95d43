//! Opens the folder for a request, writes to it, and says how it stands; what is read of it, by the verbs too,
//! is in `reading`, `memories`, and `records`.
//!
//! The folder is opened anew for each request: its settings, what a person decided, and what may be seen
//! are those of the moment, however long the server has been running. No database is held between requests,
//! so any number of servers stand beside one daemon: what stays is what a search found out, for as long as
//! nothing changes.

use std::{path::PathBuf, sync::Arc};

use chrono::NaiveDate;
use serde_json::Value;

use super::{
    give, page,
    take::{self, Whose},
};
use crate::{
    commands::{
        GlobalArgs,
        context::{Call, Root},
        correct,
        error::{CommandError, Kind},
        log, status,
        ui::{ColorChoice, Ui},
    },
    config::root::RootKind,
    privacy::Rules,
    recall::{
        handed::{self, NOTICE},
        search::Shelf,
    },
};

/// The longest entry that is logged. What is longer is a file of its own.
const ENTRY_BYTES_MAX: usize = 64 * 1024;

/// What the server works on.
#[derive(Debug)]
pub(super) struct Desk {
    global: GlobalArgs,
    path: PathBuf,
    writes: bool,
    /// What earlier searches found out.
    shelf: Arc<Shelf>,
}

/// The folder, opened for one request.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) call: Call,
    /// The one that is served.
    pub(super) agent: Root,
    /// The one about the person, where there is one.
    pub(super) person: Option<Root>,
    pub(super) writes: bool,
    pub(super) shelf: Arc<Shelf>,
}

impl Desk {
    /// Works on the folder at `path`.
    pub(super) fn new(global: GlobalArgs, path: PathBuf, writes: bool) -> Self {
        Self { global, path, writes, shelf: Arc::default() }
    }

    /// Returns whether agents may do more than read and log.
    pub(super) fn writes(&self) -> bool {
        self.writes
    }

    /// Opens it.
    pub(super) fn seat(&self) -> Result<Seat, CommandError> {
        let call = Call::read(&self.global)?;
        let agent = call.open(&self.path)?;
        let others = call.config.roots.iter().filter(|it| it.path != self.path);
        // One that cannot be opened is told by `status`, and is none of this one's concern.
        let person = others
            .filter_map(|it| call.open(&it.path).ok())
            .find(|it| it.settings.kind == RootKind::User);
        Ok(Seat { call, agent, person, writes: self.writes, shelf: Arc::clone(&self.shelf) })
    }
}

/// A bad argument.
pub(super) fn bad(what: String) -> CommandError {
    CommandError::new(Kind::Usage, what)
}

/// Returns words that cannot speak to a verb, only to the person who runs the server.
pub(super) fn mute() -> Ui {
    Ui::new(true, true, false, ColorChoice::Never)
}

impl Seat {
    /// Returns the folder that is meant.
    pub(super) fn of(&self, whose: Whose) -> Result<&Root, CommandError> {
        match whose {
            Whose::Agent => Ok(&self.agent),
            Whose::Person => self.person.as_ref().ok_or_else(|| {
                bad("`of`: no memory folder about the person is configured".to_owned())
                    .hint("leave `of` out, to ask the folder that is served")
            }),
        }
    }

    pub(super) fn today(&self) -> NaiveDate {
        self.call.now.with_timezone(&self.agent.settings.zone.name.0).date_naive()
    }

    /// Writes an entry down.
    pub(super) fn log(&self, asked: &take::Log) -> Result<give::Logged, CommandError> {
        if asked.text.len() > ENTRY_BYTES_MAX {
            return Err(bad(format!("`text` is longer than {} KiB", ENTRY_BYTES_MAX / 1024))
                .hint("keep it as a file beside the logs, and log in a line what it is"));
        }
        if asked.text.trim().is_empty() {
            return Err(bad("`text`: there is nothing to write down".to_owned()));
        }
        self.agent.refuse_stranger()?;
        let log::Logged { path, line } = log::append(&self.call, &self.agent, &asked.text)?;
        let date = self.today().to_string();
        Ok(give::Logged { path, line, date, stored: true })
    }

    /// Puts an item right.
    pub(super) fn correct(&self, asked: &take::Correct) -> Result<give::Corrected, CommandError> {
        let how = correct::How { folds: true, is_dry: asked.dry_run };
        let (draft, passed) =
            correct::put_right(&self.call, &self.agent, &asked.target, &asked.text, how)?;
        let rules = &self.agent.rules;
        let jobs = passed.iter().flat_map(|it| &it.report.jobs).map(|it| give::Job {
            tier: it.tier.to_owned(),
            period: it.period.clone(),
            outcome: it.outcome.to_owned(),
            reason: it.reason.clone(),
        });
        Ok(give::Corrected {
            notice: NOTICE,
            date: self.today().to_string(),
            path: draft.path.clone(),
            line: draft.corrected.line,
            before: rules.shown(&draft.corrected.before).into_owned(),
            after: rules.shown(&draft.corrected.after).into_owned(),
            changed: !draft.is_said() && !asked.dry_run,
            dry_run: asked.dry_run,
            above: draft.above.iter().map(|(tier, it)| format!("{} {it}", tier.name())).collect(),
            jobs: jobs.collect(),
        })
    }

    /// Says how things stand.
    pub(super) fn status(&self) -> Result<give::Status, CommandError> {
        const PROBLEMS_MAX: usize = 20;
        let whole = status::document(&self.call, self.agent.vault.layout().root())?;
        let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let count = |it: &Value| it.as_array().map_or(0, Vec::len);
        let list = |key: &str| whole[key].as_array().cloned().unwrap_or_default();
        let tiers = list("tiers").into_iter().map(|it| give::TierStatus {
            tier: word(&it["tier"]),
            files: it["files"].as_u64().unwrap_or(0),
            newest: it["newest"].as_str().map(str::to_owned),
            due: count(&it["due"]),
        });
        let all = list("problems");
        let problems = all.iter().take(PROBLEMS_MAX).map(|it| give::Problem {
            path: handed::hand_line(&word(&it["path"]), &self.agent.rules),
            reason: Rules::told(&page::short(&word(&it["reason"]))),
        });
        Ok(give::Status {
            notice: NOTICE,
            agent_name: word(&whole["agent_name"]),
            today: self.today().to_string(),
            zone: word(&whole["zone"]),
            tiers: tiers.collect(),
            daemon_running: whole["daemon"]["running"].as_bool().unwrap_or(false),
            engine: word(&whole["model"]["engine"]),
            held_for_review: usize::try_from(whole["quarantined"].as_u64().unwrap_or(0))
                .unwrap_or(usize::MAX),
            stuck: count(&whole["parked"]) + count(&whole["failed"]),
            problems: problems.collect(),
            more_problems: all.len().saturating_sub(PROBLEMS_MAX),
            may_write: self.writes,
            person: self.person.is_some(),
        })
    }
}

/// Names tools in the place of verbs, where there is one.
pub(super) fn in_tools(hint: &str) -> String {
    const TOOLS: [(&str, &str); 8] = [
        ("memoird session list", "memory_session_list"),
        ("memoird session show", "memory_session_export"),
        ("memoird status", "memory_status"),
        ("memoird search", "memory_search"),
        ("memoird trace --up", "memory_trace with `up`"),
        ("memoird trace", "memory_trace"),
        ("memoird show", "memory_read"),
        ("memoird coverage", "memory_coverage"),
    ];
    let mut hint = hint.to_owned();
    for (verb, tool) in TOOLS {
        hint = hint.replace(verb, tool);
    }
    hint
}

/// Says that only a person may allow it.
pub(super) fn not_allowed(tool: &str) -> CommandError {
    let what = format!("{tool} changes the memory folder, and this server may only read and log");
    bad(what).hint(
        "a person can allow it: `memoird mcp --allow-write`, or `mcp: { write: true }` in the configuration",
    )
}
