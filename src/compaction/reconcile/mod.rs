//! What people did to the files since the last run, and log lines that were relocated.

pub(crate) mod edits;
pub mod line_map;
pub(crate) mod renames;
pub(crate) mod source_match;
pub(crate) mod stale;
