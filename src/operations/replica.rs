//! Keeps the copy of a fleet's root on an agent's machine up to date: what reads memory first asks the store.
//!
//! Only a root with `writer: fleet` has somebody else who writes to it all the time. If nothing changed, this costs one
//! conditional request. Nobody waits long for a store: without an answer, the copy is read as it is.

use std::{sync::mpsc, thread, time::Duration};

use super::{
    worker::FLEET_WRITER,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    fleet::{
        pull::{self, PullRequest},
        state::BundleState,
    },
    recall::search,
};

/// How long a person or an agent waits to hear whether there is something new.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Brings what workers published, if this is a copy of a root of a fleet. A failure is logged.
pub(crate) fn refresh(call: &Invocation, root: &MemoryRoot) {
    if root.settings.writer.as_deref() != Some(FLEET_WRITER) {
        return;
    }
    let states = BundleState::load_all(&root.vault).unwrap_or_default();
    let mut states = states.into_iter().filter(|it| it.root.is_some());
    // With several stores, a person chooses.
    let (Some(state), None) = (states.next(), states.next()) else { return };
    let (sender, answer) = mpsc::channel();
    let (url, known) = (state.url.clone(), state.version);
    // Ends with its request, which nobody waits for after the timeout.
    thread::spawn(move || drop(sender.send(pull::has_changed(&url, known.as_ref()))));
    match answer.recv_timeout(ANSWER_TIMEOUT) {
        Ok(Ok(false)) => {}
        Ok(Ok(true)) => {
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
        Ok(Err(error)) => tracing::warn!("{} was not read: {error}", state.url),
        Err(_) => tracing::warn!("{} did not answer in time", state.url),
    }
}
