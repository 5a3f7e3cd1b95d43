//! Opens the folder for a request, writes to it, and reports its status; the reading tools are in
//! `reads`, `memories`, and `records`.
//!
//! The folder is opened for each request, so settings, review decisions and privacy rules are current,
//! however long the server has been running. No database stays open between requests, so any number of
//! servers can run beside a daemon. Only the search cache is kept, while no file changes.

use std::{path::PathBuf, sync::Arc};

use chrono::NaiveDate;

use super::{
    page_limit,
    requests::{self, MemoryOwner},
    responses,
};
use crate::{
    commands::GlobalArgs,
    config::root::RootKind,
    memory::log::TextOrigin,
    operations::{
        correct,
        error::{CommandError, CommandResult},
        log, status,
        workspace::{Invocation, MemoryRoot},
    },
    privacy::{PrivacyRules, quarantine},
    recall::{
        framing::{self, NOTICE},
        search::SearchCache,
    },
};

/// The longest entry that is logged; longer text belongs into a file.
const ENTRY_BYTES_MAX: usize = 64 * 1024;

/// What the server serves.
#[derive(Debug)]
pub(super) struct McpService {
    global: GlobalArgs,
    path: PathBuf,
    allows_writes: bool,
    search_cache: Arc<SearchCache>,
}

/// The folder, opened for one request.
#[derive(Debug)]
pub(super) struct ServedFolder {
    pub(super) call: Invocation,
    /// The served folder.
    pub(super) agent: MemoryRoot,
    /// The folder about the person, if there is one.
    pub(super) person: Option<MemoryRoot>,
    pub(super) allows_writes: bool,
    pub(super) search_cache: Arc<SearchCache>,
}

impl McpService {
    pub(super) fn new(global: GlobalArgs, path: PathBuf, writes: bool) -> Self {
        Self { global, path, allows_writes: writes, search_cache: Arc::default() }
    }

    /// Returns whether agents may do more than read and log.
    pub(super) fn allows_writes(&self) -> bool {
        self.allows_writes
    }

    pub(super) fn open(&self) -> CommandResult<ServedFolder> {
        let call = Invocation::load(&self.global)?;
        let agent = call.open_root(&self.path)?;
        #[cfg(feature = "fleet")]
        crate::operations::replica::refresh(&call, &agent);
        let others = call.config.roots.iter().filter(|it| it.path != self.path);
        // `status` reports a folder about the person that cannot be opened.
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

impl ServedFolder {
    /// Returns the selected folder.
    pub(super) fn root_of(&self, whose: MemoryOwner) -> CommandResult<&MemoryRoot> {
        match whose {
            MemoryOwner::Agent => Ok(&self.agent),
            MemoryOwner::Person => self.person.as_ref().ok_or_else(|| {
                CommandError::usage(
                    "`of`: no memory folder about the person is configured".to_owned(),
                )
                .hint("leave `of` out to use the served folder")
            }),
        }
    }

    pub(super) fn today(&self) -> NaiveDate {
        self.call.now.with_timezone(&self.agent.settings.zone.name.0).date_naive()
    }

    pub(super) fn log(
        &self,
        params: &requests::LogParams,
    ) -> CommandResult<responses::LogResponse> {
        if params.text.len() > ENTRY_BYTES_MAX {
            return Err(CommandError::usage(format!(
                "`text` is longer than {} KiB",
                ENTRY_BYTES_MAX / 1024
            ))
            .hint("store it as a file beside the logs, and log one line about it"));
        }
        if params.text.trim().is_empty() {
            return Err(CommandError::usage("`text` is empty".to_owned()));
        }
        self.agent.require_memory_folder()?;
        let logged = log::append_entry(&self.call, &self.agent, &params.text)?;
        let unpublished = logged.waits().map(str::to_owned);
        let log::AppendedEntry { path, line, .. } = logged;
        let date = self.today().to_string();
        Ok(responses::LogResponse { path, line, date, stored: true, unpublished })
    }

    pub(super) fn correct(
        &self,
        params: &requests::CorrectParams,
    ) -> CommandResult<responses::CorrectResponse> {
        if let Some(concern) = quarantine::concerns(&params.text, TextOrigin::Agent).first() {
            let what = format!("`text` looks like an attack: it {concern}");
            return Err(CommandError::usage(what)
                .hint("a person can write it with `memoird correct`, or edit the file"));
        }
        let how = correct::CorrectOptions {
            update_dependents: true,
            dry_run: params.dry_run,
            seen: None,
        };
        let (draft, passed) =
            correct::correct_item(&self.call, &self.agent, &params.target, &params.text, how)?;
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
            changed: !draft.is_unchanged() && !params.dry_run,
            dry_run: params.dry_run,
            above: draft
                .dependents
                .iter()
                .map(|(tier, it)| format!("{} {it}", tier.name()))
                .collect(),
            jobs: jobs.collect(),
        })
    }

    pub(super) fn status(&self) -> CommandResult<responses::StatusResponse> {
        const PROBLEMS_MAX: usize = 20;
        let status = status::root_status(&self.call, self.agent.vault.layout().root())?;
        let tiers = status.tiers.into_iter().map(|it| responses::TierCounts {
            tier: it.tier.to_owned(),
            files: it.files as u64,
            newest: it.newest,
            due: it.due.len(),
        });
        let all = status.files.problems;
        let problems = all.iter().take(PROBLEMS_MAX).map(|it| responses::ReportedProblem {
            path: framing::sanitize_line(&it.path, &self.agent.rules),
            reason: PrivacyRules::mask_message(&page_limit::truncate_piece(&it.reason)),
        });
        Ok(responses::StatusResponse {
            notice: NOTICE,
            agent_name: status.folder.agent_name,
            today: self.today().to_string(),
            zone: status.folder.zone,
            tiers: tiers.collect(),
            daemon_running: status.service.daemon.running,
            engine: status.engine.model.engine.to_owned(),
            held_for_review: status.files.quarantined,
            stuck: status.blocked.parked.len() + status.blocked.failed.len(),
            problems: problems.collect(),
            more_problems: all.len().saturating_sub(PROBLEMS_MAX),
            may_write: self.allows_writes,
            person: self.person.is_some(),
        })
    }
}

/// Replaces verbs by tools, where there is one.
pub(super) fn with_tool_names(hint: &str) -> String {
    const TOOLS: [(&str, &str); 9] = [
        ("memoird session list", "memory_session_list"),
        ("memoird session show", "memory_session_export"),
        ("memoird status", "memory_status"),
        ("memoird memories", "memory_list"),
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

/// Returns the error of a tool that a person must allow first.
pub(super) fn write_not_allowed(tool: &str) -> CommandError {
    let what = format!("{tool} changes the memory folder, and this server may only read and log");
    CommandError::usage(what).hint(
        "a person can allow it: `memoird mcp --allow-write`, or `mcp: { write: true }` in the configuration",
    )
}
