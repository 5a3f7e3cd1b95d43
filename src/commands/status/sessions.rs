//! Sessions that hooks queued and that are not saved yet.

use std::path::Path;

use serde::Serialize;

use crate::{
    operations::workspace::Invocation,
    privacy::PrivacyRules,
    session::queue::{self, QueuedSession},
};

#[derive(Default, Serialize)]
pub(super) struct SessionQueueStatus {
    /// Sessions of this folder that wait to be saved.
    pub(super) waiting: usize,
    /// Sessions of projects without a memory folder.
    pub(super) homeless: usize,
    pub(super) failed: Vec<FailedSession>,
}

/// A session that could not be saved.
#[derive(Serialize)]
pub(super) struct FailedSession {
    pub(super) transcript: String,
    pub(super) reason: String,
}

impl SessionQueueStatus {
    /// Reads the queue, for sessions of the folder at `root` and of projects without a folder.
    pub(super) fn read(call: &Invocation, root: &Path) -> Self {
        let queue = queue::contents(&call.environment);
        let home = |job: &QueuedSession| call.config.root_for_folder(&job.cwd, &call.environment);
        let mut found = Self::default();
        for job in &queue.waiting {
            match home(job) {
                Some(path) if path == root => found.waiting += 1,
                Some(_) => {}
                None => found.homeless += 1,
            }
        }
        for (_, job) in queue.failed {
            if home(&job).is_none_or(|it| it == root) {
                found.failed.push(FailedSession {
                    transcript: PrivacyRules::mask_message(&job.transcript.to_string_lossy()),
                    reason: PrivacyRules::mask_message(&job.error.unwrap_or_default()),
                });
            }
        }
        found
    }

    /// Returns whether a session waits that no memory folder takes.
    pub(super) fn has_homeless(call: &Invocation) -> bool {
        let home = |job: &QueuedSession| call.config.root_for_folder(&job.cwd, &call.environment);
        queue::contents(&call.environment).waiting.iter().any(|it| home(it).is_none())
    }
}
