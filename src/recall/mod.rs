//! Reading memory back: sources, coverage, versions, search, and the context of a session.
//!
//! Nothing here changes a file or the database. Output comes from the sanitized view of logs and from
//! the generated files; the lineage only says where to look.
//!
//! - [`trace`]: from an item down to log lines, and from a log line up to its items.
//! - `cited_hashes`: by which hashes a file identifies its lines.
//! - [`trace_formats`]: a trace as a tree, as a Graphviz graph, and as PROV-JSON.
//! - [`coverage`]: the source lines of a period that reached no item, and why.
//! - [`context`]: what an agent reads at the start of a session.
//! - `contradictions`: what newer logs contradict in an agent's own notes.
//! - [`instructions`]: instruction files of coding agents.
//! - [`external`]: which bullets of a summary are in the words of external text.
//! - [`framing`]: sanitized text for output, with its provenance.
//! - [`search`]: from words to the log lines that answer them.
//! - [`blame`]: the version in which each line of a file was added.
//! - [`history`]: the versions of a file, and the changes between two.

pub mod blame;
mod cited_hashes;
pub mod context;
pub(crate) mod contradictions;
pub mod coverage;
pub mod external;
pub mod framing;
pub mod history;
pub mod instructions;
pub mod search;
pub mod trace;
pub mod trace_formats;
pub(crate) mod wisdom_block;

#[cfg(test)]
mod tests;
