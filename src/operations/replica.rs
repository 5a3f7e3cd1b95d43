//! Keeps the copy of a fleet's root on an agent's machine and its store alike: what reads memory first asks the store,
//! and what logs publishes.
//!
//! Only a root with `writer: fleet` has somebody else who writes to it all the time. If nothing changed, reading costs
//! one conditional request. Nobody waits long for a store that does not answer it: the copy is read as it is, and the
//! log on this machine keeps an entry until the next one is published. What follows the first answer has no such limit.

use std::{sync::mpsc, thread, time::Duration};

use super::{
    error::CommandResult,
    log::Publication,
    worker::FLEET_WRITER,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    compaction::{self, plan::Selection},
    engine::configured,
    fleet::{
        claims::Claims,
        due_notes::{self, PublishedBundle},
        error::BundleError,
        next_due::next_due,
        pull::{self, PullRequest},
        push::{self, PushReport, PushRequest},
        root_name::RootName,
        state::BundleState,
    },
    recall::search,
    store::db::lineage::Lineage,
};

/// The address of the claims database, for those who do not name it in each call.
pub(crate) const CLAIMS_VARIABLE: &str = "MEMOIRD_CLAIMS";

/// How long a person or an agent waits to hear whether there is something new.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Brings what workers published, if this is a copy of a root of a fleet. A failure is logged.
pub(crate) fn refresh(call: &Invocation, root: &MemoryRoot) {
    if root.settings.writer.as_deref() != Some(FLEET_WRITER) {
        return;
    }
    // With several stores, a person chooses.
    let Ok(state) = only_state(root) else { return };
    match has_changed(&state) {
        Ok(false) => {}
        Ok(true) => {
            let request = PullRequest::default();
            match pull::pull(&root.bundle_root(call), &state.url, &request, &|_, _, _| {}) {
                // If this fails, the next search indexes the files or reports the error.
                Ok(report) if !report.brought.is_empty() => {
                    drop(search::refresh_index(&root.vault));
                }
                Ok(_) => {}
                Err(error) => tracing::warn!("{} was not read: {error}", state.url),
            }
        }
        Err(why) => tracing::warn!("{} was not read: {why}", state.url),
    }
}

/// Publishes an entry that was appended to the log at `path`, with what else waits on this machine; `None` if this is no
/// copy of a root of a fleet.
pub(crate) fn publish(call: &Invocation, root: &MemoryRoot, path: &str) -> Option<Publication> {
    if root.settings.writer.as_deref() != Some(FLEET_WRITER) {
        return None;
    }
    Some(match push_entry(call, root, path) {
        Ok(generation) => Publication { generation: Some(generation), waits: None },
        Err(why) => Publication { generation: None, waits: Some(why) },
    })
}

fn push_entry(call: &Invocation, root: &MemoryRoot, path: &str) -> Result<u64, String> {
    let state = only_state(root)?;
    // A store that does not answer is asked for longer by a push.
    has_changed(&state)?;
    root.finish_interrupted_pull(call).map_err(|it| it.to_string())?;
    let claims = call.environment.variable(CLAIMS_VARIABLE);
    let name = RootName::of_url(&state.url).ok();
    let tenant = claims.and(name.as_ref()).map(|it| it.tenant().to_owned());
    let request = PushRequest {
        tenant,
        // Whoever published the manifest has tested the store, which takes too long for one entry.
        trusts_store: true,
        state_home: Some(call.environment.state_home.clone()),
        ..PushRequest::default()
    };
    let pushed = push::push(&root.bundle_root(call), &state.url, &request, &|_, _, _| {});
    let report = pushed.map_err(|it| it.to_string())?;
    // Without a claims database, roots of a tenant have notes.
    let name = name.filter(|_| claims.is_some() || report.tenant.is_some());
    if let Some(name) = name
        && let Err(error) = report_push(call, root, claims, &name, &report)
    {
        // What was published is published; a worker's sweep finds it without the report.
        tracing::warn!("{} was published, but not reported: {error}", state.url);
    }
    let mut left = report.conflicts.iter().chain(&report.skipped);
    match left.find(|it| it.path == path) {
        Some(note) => Err(format!("{path} {}", note.note)),
        None => Ok(report.generation),
    }
}

/// Reports a push and when the root is due: to the claims database, or in the store.
pub(crate) fn report_push(
    call: &Invocation,
    root: &MemoryRoot,
    claims: Option<&str>,
    name: &RootName,
    report: &PushReport,
) -> CommandResult<()> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    let engine = configured::engine_id(&root.settings.settings);
    let selection = Selection::default();
    let plan = compaction::plan_snapshot(&view, &root.settings, &engine, &selection, call.now);
    let quiet = root.settings.settings.compaction.quiet.as_duration();
    let due = next_due(&plan, call.now, quiet);
    let PushReport { generation, bundle, url, .. } = report;
    if let Some(claims) = claims {
        return Ok(Claims::open(claims)?.report(name, *generation, bundle.as_deref(), due)?);
    }
    let published = PublishedBundle { generation: *generation, bundle: bundle.clone() };
    Ok(due_notes::write(&name.store_of(url), name, &published, due, call.now)?)
}

/// Returns what this root knows about its store, or why no store is chosen.
fn only_state(root: &MemoryRoot) -> Result<BundleState, String> {
    let states = BundleState::load_all(&root.vault).map_err(|it| it.to_string())?;
    let mut states = states.into_iter().filter(|it| it.root.is_some());
    match (states.next(), states.next()) {
        (Some(state), None) => Ok(state),
        (None, _) => Err("this folder was never published or brought".to_owned()),
        (Some(_), Some(_)) => Err("this folder has several stores".to_owned()),
    }
}

/// Asks a store whether it has another manifest than the known one; returns why there is no answer.
fn has_changed(state: &BundleState) -> Result<bool, String> {
    let (sender, answer) = mpsc::channel::<Result<bool, BundleError>>();
    let (url, known) = (state.url.clone(), state.version.clone());
    // Ends with its request, which nobody waits for after the timeout.
    thread::spawn(move || drop(sender.send(pull::has_changed(&url, known.as_ref()))));
    match answer.recv_timeout(ANSWER_TIMEOUT) {
        Ok(answer) => answer.map_err(|it| it.to_string()),
        Err(_) => Err(format!("{} did not answer in time", state.url)),
    }
}
