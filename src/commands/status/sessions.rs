//! What hooks left of sessions and nobody has kept yet.

use std::path::Path;

use serde::Serialize;

use crate::{
    commands::context::Call,
    privacy::Rules,
    session::queue::{self, Job},
};

/// What is said of it.
#[derive(Default, Serialize)]
pub(super) struct Sessions {
    /// Sessions of this folder that wait for whoever does the work.
    pub(super) waiting: usize,
    /// Sessions of projects that have no memory folder.
    pub(super) homeless: usize,
    /// Sessions that failed for good.
    pub(super) failed: Vec<Failed>,
}

/// A session that could not be kept.
#[derive(Serialize)]
pub(super) struct Failed {
    pub(super) transcript: String,
    pub(super) reason: String,
}

impl Sessions {
    /// Looks at what is left, of the folder at `root` and of none.
    pub(super) fn look(call: &Call, root: &Path) -> Self {
        let left = queue::look(&call.around);
        let home = |job: &Job| call.config.choose_for(&job.cwd, &call.around);
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
                found.failed.push(Failed {
                    transcript: Rules::told(&job.transcript.to_string_lossy()),
                    reason: Rules::told(&job.error.unwrap_or_default()),
                });
            }
        }
        found
    }
}
