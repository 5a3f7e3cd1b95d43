//! What hooks left of sessions and nobody has kept yet.

use std::path::Path;

use serde::Serialize;

use crate::{
    commands::workspace::Invocation,
    privacy::PrivacyRules,
    session::queue::{self, QueuedSession},
};

/// What is said of it.
#[derive(Default, Serialize)]
pub(super) struct SessionQueueStatus {
    /// Sessions of this folder that wait for whoever does the work.
    pub(super) waiting: usize,
    /// Sessions of projects that have no memory folder.
    pub(super) homeless: usize,
    /// Sessions that failed for good.
    pub(super) failed: Vec<FailedSession>,
}

/// A session that could not be kept.
#[derive(Serialize)]
pub(super) struct FailedSession {
    pub(super) transcript: String,
    pub(super) reason: String,
}

impl SessionQueueStatus {
    /// Looks at what is left, of the folder at `root` and of none.
    pub(super) fn read(call: &Invocation, root: &Path) -> Self {
        let left = queue::contents(&call.environment);
        let home = |job: &QueuedSession| call.config.root_for_folder(&job.cwd, &call.environment);
        let mut found = Self::default();
        for job in &left.waiting {
            match home(job) {
                Some(path) if path == root => found.waiting += 1,
                Some(_) => {}
                None => found.homeless += 1,
            }
        }
        for (_, job) in left.failed {
            if home(&job).is_none_or(|it| it == root) {
                found.failed.push(FailedSession {
                    transcript: PrivacyRules::mask_message(&job.transcript.to_string_lossy()),
                    reason: PrivacyRules::mask_message(&job.error.unwrap_or_default()),
                });
            }
        }
        found
    }
}
