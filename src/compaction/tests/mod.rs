//! Tests of whole runs over small folders.

#[cfg(test)]
pub(crate) mod poisoned_logs;
#[cfg(test)]
pub(crate) mod scripted_engine;
#[cfg(test)]
pub(crate) mod unhedged_drafts;
