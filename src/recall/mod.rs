//! Reading memory back: from a generated line to its sources, and from a period to what it left out,
//! and to what stood in a file before.
//!
//! Nothing here changes a file or the database. What is shown comes from the served view of logs and
//! from the generated files; the lineage only says where to look.
//!
//! - [`trace`]: from an item down to log lines, and from a log line up to all that came of it.
//! - [`trace_formats`]: a trace as a tree, as a drawing for Graphviz, and as PROV-JSON.
//! - [`coverage`]: the source lines of a period that reached no item, and why.
//! - [`context`]: what an agent reads at the start of a session.
//! - [`instructions`]: the files in which people tell agents what to do, as agents read them.
//! - [`framing`]: what is shown of a file, and what is said with it.
//! - [`search`]: from words to the log lines that answer them.
//! - [`blame`]: in which version a line of a file came.
//! - [`history`]: which version of a file is meant, and what changed between two.

pub mod blame;
pub mod context;
pub mod coverage;
pub mod framing;
pub mod history;
pub mod instructions;
pub mod search;
pub mod trace;
pub mod trace_formats;

#[cfg(test)]
mod tests;
