//! The progress of a running compaction, as a stream of events.
//!
//! Any process may run it: the stream reads what the database says about jobs, once a second, and sends a line when
//! it has changed.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    http::StatusCode,
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::stream;

use super::{context::FolderChoice, page_compaction::PageCompaction, server::PageServer};
use crate::{
    operations::{
        error::CommandResult,
        workspace::{ConfigOverrides, Invocation},
    },
    store::{
        db::lineage::Lineage,
        fs::{layout::Layout, lock::RunLock},
    },
};

/// How often the database is read.
const INTERVAL: Duration = Duration::from_secs(1);
/// What a run is called before its first job.
const BEGUN: &str = "a run has begun";
/// What is sent while nothing runs; a browser drops an event without data.
const IDLE: &str = "idle";

/// Returns where the files of the chosen folder are.
fn layout_of(overrides: &ConfigOverrides, folder: &FolderChoice) -> CommandResult<Option<Layout>> {
    let call = Invocation::read(overrides)?;
    let Some(path) = folder.paths.get(folder.index) else { return Ok(None) };
    Ok(Some(call.open_root(path)?.vault.layout().clone()))
}

/// Returns what runs now in a folder: `run 7: weekly 2026-W14`; `None` if nothing runs. `ours` is what this page
/// started, which takes a moment before and after its run.
pub(super) fn running(layout: &Layout, ours: &PageCompaction) -> CommandResult<Option<String>> {
    if !RunLock::is_held(&layout.run_lock())? {
        return Ok(ours.is_running().then(|| BEGUN.to_owned()));
    }
    let lineage = Lineage::open_existing(&layout.database())?;
    let jobs = lineage.as_ref().map(Lineage::live_jobs).transpose()?.unwrap_or_default();
    Ok(Some(match jobs.last() {
        Some(job) => format!("run {}: {} {}", job.run, job.tier, job.period),
        None => BEGUN.to_owned(),
    }))
}

/// Answers with a stream that ends when the browser leaves or the server ends.
pub(super) fn stream(server: &Arc<PageServer>, folder: FolderChoice) -> Response {
    let Ok(permit) = Arc::clone(&server.streams).try_acquire_owned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let state = (Arc::clone(server), folder, permit, None::<Layout>, None::<String>);
    let events = stream::unfold(state, async |(server, folder, permit, mut layout, last)| {
        let mut is_first = last.is_none();
        loop {
            if !is_first {
                tokio::time::sleep(INTERVAL).await;
            }
            let (asked, of, known) = (Arc::clone(&server), folder.clone(), layout.take());
            let look = move || {
                // The settings are read once, not every second.
                let found = known.or_else(|| layout_of(&asked.overrides, &of).ok().flatten());
                let ours = asked.compaction(&of);
                let running = found.as_ref().and_then(|it| running(it, &ours).ok().flatten());
                (found, running)
            };
            let (found, running) = tokio::task::spawn_blocking(look).await.unwrap_or_default();
            layout = found;
            // A folder that cannot be read now shows nothing; its pages say why.
            let now = running.unwrap_or_else(|| IDLE.to_owned());
            if last.as_ref() != Some(&now) {
                let event = Ok::<_, Infallible>(Event::default().event("run").data(&now));
                return Some((event, (server, folder, permit, layout, Some(now))));
            }
            is_first = false;
        }
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(20))).into_response()
}
