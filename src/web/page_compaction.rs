//! The compaction that the page of a folder started.
//!
//! It runs on a thread of the server, whatever the browser does, and its result is kept for the page that shows it
//! until the next one. A server that ends does not wait for it: as after a crash, the next run finishes its work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::operations::error::{CommandError, CommandResult};

/// The last compaction of a folder that was started here. One runs at a time.
#[derive(Debug, Default)]
pub(super) struct PageCompaction(Mutex<LastCompaction>);

#[derive(Debug, Default)]
struct LastCompaction {
    /// Counts from 1; 0 before the first.
    number: u64,
    is_running: bool,
    result: Option<Arc<CompactionResult>>,
}

/// How many jobs failed, or why nothing ran.
pub(super) type CompactionResult = CommandResult<usize>;

/// A compaction that was begun. Without a result, it counts as failed when this is dropped.
#[derive(Debug)]
pub(super) struct RunningCompaction {
    of: Arc<PageCompaction>,
    pub(super) number: u64,
}

impl PageCompaction {
    /// Begins a compaction; `None` if one runs.
    pub(super) fn begin(self: &Arc<Self>) -> Option<RunningCompaction> {
        let mut last = self.lock();
        if last.is_running {
            return None;
        }
        *last = LastCompaction { number: last.number + 1, is_running: true, result: None };
        Some(RunningCompaction { of: Arc::clone(self), number: last.number })
    }

    /// Returns whether one runs now.
    pub(super) fn is_running(&self) -> bool {
        self.lock().is_running
    }

    /// Returns the result of a compaction; `None` while it runs, and when a later one was started.
    pub(super) fn result_of(&self, number: u64) -> Option<Arc<CompactionResult>> {
        let last = self.lock();
        last.result.clone().filter(|_| last.number == number)
    }

    fn lock(&self) -> MutexGuard<'_, LastCompaction> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningCompaction {
    /// Ends it with its result.
    pub(super) fn finish(self, result: CompactionResult) {
        self.of.lock().result = Some(Arc::new(result));
    }
}

impl Drop for RunningCompaction {
    fn drop(&mut self) {
        let mut last = self.of.lock();
        last.is_running = false;
        last.result.get_or_insert_with(|| {
            let error = CommandError::data("the compaction ended without a result");
            Arc::new(Err(error.hint("memoird doctor")))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_runs_at_a_time_and_its_result_is_kept() {
        let compaction = Arc::new(PageCompaction::default());
        let first = compaction.begin().unwrap();
        assert!(compaction.begin().is_none() && compaction.is_running());
        assert!(compaction.result_of(first.number).is_none());
        let number = first.number;
        first.finish(Ok(2));
        assert!(!compaction.is_running());
        assert_eq!(*compaction.result_of(number).unwrap().as_ref().as_ref().unwrap(), 2);
        // One that panicked has failed.
        let second = compaction.begin().unwrap();
        assert!(compaction.result_of(number).is_none());
        let number = second.number;
        drop(second);
        assert!(compaction.result_of(number).unwrap().is_err());
        assert!(compaction.begin().is_some());
    }
}
