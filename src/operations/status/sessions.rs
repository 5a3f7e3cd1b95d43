//! Sessions that hooks queued and that are not saved yet.

use std::path::Path;

use serde::Serialize;

use crate::{
    operations::workspace::Invocation,
    privacy::PrivacyRules,
    session::queue::{self, QueuedSession},
};

#[derive(Default, Serialize)]
pub(crate) struct SessionQueueStatus {
    /// Sessions of this folder that wait to be saved.
    pub(crate) waiting: usize,
    /// Sessions of projects without a memory folder.
    pub(crate) homeless: usize,
    pub(crate) failed: Vec<FailedSession>,
}

/// A session that could not be saved.
#[derive(Serialize)]
pub(crate) struct FailedSession {
    pub(crate) transcript: String,
    pub(crate) reason: String,
}

impl SessionQueueStatus {
    /// Reads the queue, for sessions of the folder at `root` and of projects without a folder.
    pub(crate) fn read(call: &Invocation, root: &Path) -> Self {
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
    pub(crate) fn has_homeless(call: &Invocation) -> bool {
        let home = |job: &QueuedSession| call.config.root_for_folder(&job.cwd, &call.environment);
        queue::contents(&call.environment).waiting.iter().any(|it| home(it).is_none())
    }
}
