//! How a run writes files and records them: intents, bytes, one transaction.

pub mod commit;
pub(crate) mod history;
pub mod records;
