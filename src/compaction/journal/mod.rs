//! How a run writes files and records them: intents, bytes, one transaction.

pub(crate) mod commit;
pub(crate) mod decision_file;
pub(crate) mod hidden_records;
mod history;
pub(crate) mod records;
mod recovery;

use super::context::RunContext;

/// Writes files with their records, finishes what a crash cut off, and keeps the history.
pub(crate) struct Journal<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> Journal<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }
}
