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
    page_limit,
    requests::{self, MemoryOwner},
    responses,
};
use crate::{
    commands::{
        GlobalArgs, correct,
        error::{CommandError, CommandErrorKind},
        log, status,
        ui::{ColorChoice, Ui},
        workspace::{Invocation, MemoryRoot},
    },
    config::root::RootKind,
    privacy::PrivacyRules,
    recall::{
        framing::{self, NOTICE},
        search::SearchCache,
    },
};

/// The longest entry that is logged. What is longer is a file of its own.
const ENTRY_BYTES_MAX: usize = 64 * 1024;

/// What the server works on.
#[derive(Debug)]
pub(super) struct McpService {
    global: GlobalArgs,
    path: PathBuf,
    allows_writes: bool,
    /// What earlier searches found out.
    search_cache: Arc<SearchCache>,
}

/// The folder, opened for one request.
#[derive(Debug)]
pub(super) struct ServedFolder {
    pub(super) call: Invocation,
    /// The one that is served.
    pub(super) agent: MemoryRoot,
    /// The one about the person, where there is one.
    pub(super) person: Option<MemoryRoot>,
    pub(super) allows_writes: bool,
    pub(super) search_cache: Arc<SearchCache>,
}

impl McpService {
    /// Works on the folder at `path`.
    pub(super) fn new(global: GlobalArgs, path: PathBuf, writes: bool) -> Self {
        Self { global, path, allows_writes: writes, search_cache: Arc::default() }
    }

    /// Returns whether agents may do more than read and log.
    pub(super) fn allows_writes(&self) -> bool {
        self.allows_writes
    }

    /// Opens it.
    pub(super) fn open(&self) -> Result<ServedFolder, CommandError> {
        let call = Invocation::load(&self.global)?;
        let agent = call.open_root(&self.path)?;
        let others = call.config.roots.iter().filter(|it| it.path != self.path);
        // One that cannot be opened is told by `status`, and is none of this one's concern.
        let person = others
            .filter_map(|it| call.open_root(&it.path).ok())
            .find(|it| it.settings.kind == RootKind::User);
        Ok(ServedFolder {
            call,
            agent,
            person,
            allows_writes: self.allows_writes,
            search_cache: Arc::clone(&self.search_cache),
        })
    }
}

/// A bad argument.
pub(super) fn invalid_argument(what: String) -> CommandError {
    CommandError::new(CommandErrorKind::Usage, what)
}

/// Returns words that cannot speak to a verb, only to the person who runs the server.
pub(super) fn silent_ui() -> Ui {
    Ui::new(true, true, false, ColorChoice::Never)
}

impl ServedFolder {
    /// Returns the folder that is meant.
    pub(super) fn root_of(&self, whose: MemoryOwner) -> Result<&MemoryRoot, CommandError> {
        match whose {
            MemoryOwner::Agent => Ok(&self.agent),
            MemoryOwner::Person => self.person.as_ref().ok_or_else(|| {
                invalid_argument("`of`: no memory folder about the person is configured".to_owned())
                    .hint("leave `of` out, to ask the folder that is served")
            }),
        }
    }

    pub(super) fn today(&self) -> NaiveDate {
        self.call.now.with_timezone(&self.agent.settings.zone.name.0).date_naive()
    }

    /// Writes an entry down.
    pub(super) fn log(
        &self,
        asked: &requests::LogParams,
    ) -> Result<responses::LogResponse, CommandError> {
        if asked.text.len() > ENTRY_BYTES_MAX {
            return Err(invalid_argument(format!(
                "`text` is longer than {} KiB",
                ENTRY_BYTES_MAX / 1024
            ))
            .hint("keep it as a file beside the logs, and log in a line what it is"));
        }
        if asked.text.trim().is_empty() {
            return Err(invalid_argument("`text`: there is nothing to write down".to_owned()));
        }
        self.agent.require_memory_folder()?;
        let log::AppendedEntry { path, line } =
            log::append_entry(&self.call, &self.agent, &asked.text)?;
        let date = self.today().to_string();
        Ok(responses::LogResponse { path, line, date, stored: true })
    }

    /// Puts an item right.
    pub(super) fn correct(
        &self,
        asked: &requests::CorrectParams,
    ) -> Result<responses::CorrectResponse, CommandError> {
        let how = correct::CorrectOptions { update_dependents: true, dry_run: asked.dry_run };
        let (draft, passed) =
            correct::correct_item(&self.call, &self.agent, &asked.target, &asked.text, how)?;
        let rules = &self.agent.rules;
        let jobs = passed.iter().flat_map(|it| &it.report.jobs).map(|it| responses::FollowUpJob {
            tier: it.tier.to_owned(),
            period: it.period.clone(),
            outcome: it.outcome.to_owned(),
            reason: it.reason.clone(),
        });
        Ok(responses::CorrectResponse {
            notice: NOTICE,
            date: self.today().to_string(),
            path: draft.path.clone(),
            line: draft.corrected.line,
            before: rules.mask_secrets(&draft.corrected.before).into_owned(),
            after: rules.mask_secrets(&draft.corrected.after).into_owned(),
            changed: !draft.is_unchanged() && !asked.dry_run,
            dry_run: asked.dry_run,
            above: draft
                .dependents
                .iter()
                .map(|(tier, it)| format!("{} {it}", tier.name()))
                .collect(),
            jobs: jobs.collect(),
        })
    }

    /// Says how things stand.
    pub(super) fn status(&self) -> Result<responses::StatusResponse, CommandError> {
        const PROBLEMS_MAX: usize = 20;
        let whole = status::status_json(&self.call, self.agent.vault.layout().root())?;
        let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let count = |it: &Value| it.as_array().map_or(0, Vec::len);
        let list = |key: &str| whole[key].as_array().cloned().unwrap_or_default();
        let tiers = list("tiers").into_iter().map(|it| responses::TierCounts {
            tier: word(&it["tier"]),
            files: it["files"].as_u64().unwrap_or(0),
            newest: it["newest"].as_str().map(str::to_owned),
            due: count(&it["due"]),
        });
        let all = list("problems");
        let problems = all.iter().take(PROBLEMS_MAX).map(|it| responses::ReportedProblem {
            path: framing::sanitize_line(&word(&it["path"]), &self.agent.rules),
            reason: PrivacyRules::mask_message(&page_limit::truncate_piece(&word(&it["reason"]))),
        });
        Ok(responses::StatusResponse {
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
            may_write: self.allows_writes,
            person: self.person.is_some(),
        })
    }
}

/// Names tools in the place of verbs, where there is one.
pub(super) fn with_tool_names(hint: &str) -> String {
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
pub(super) fn write_not_allowed(tool: &str) -> CommandError {
    let what = format!("{tool} changes the memory folder, and this server may only read and log");
    invalid_argument(what).hint(
        "a person can allow it: `memoird mcp --allow-write`, or `mcp: { write: true }` in the configuration",
    )
}
