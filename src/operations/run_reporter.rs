//! How a run that takes long reports to the user while it goes on.

use crate::compaction::RunObserver;

/// Shows messages and the progress of a run.
pub(crate) trait RunReporter {
    /// Shows a warning.
    fn warn(&self, text: &str);
    /// Shows a message.
    fn note(&self, text: &str);
    /// Shows a message to a user who wants details.
    fn detail(&self, text: &str);
    /// Starts to show the progress of a run.
    fn progress(&self) -> Box<dyn RunObserver + '_>;
}

/// Reports warnings to the program's log, where nobody watches the run.
pub(crate) struct LogReporter;

impl RunReporter for LogReporter {
    fn warn(&self, text: &str) {
        tracing::warn!("{text}");
    }

    fn note(&self, _text: &str) {}

    fn detail(&self, _text: &str) {}

    fn progress(&self) -> Box<dyn RunObserver + '_> {
        Box::new(())
    }
}
