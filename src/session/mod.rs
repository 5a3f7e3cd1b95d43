//! Sessions of coding agents: from a transcript to a record, and to an entry of the daily log.
//!
//! - [`transcript`]: the files that agents keep of a session, read into one form.
//! - [`digest`]: what a session holds: messages, files, commands, failures, the plan.
//! - [`micro_compaction`]: a transcript made smaller, which the same agent can still load.
//! - [`offline_summary`], [`recovery`]: summaries of four kinds, made without a model, on a [`cited_summary`] whose lines
//!   know what they rest on.
//! - [`model_view`]: a session as a model is shown it that words the summary.
//! - [`handoff_files`]: the files that a model may read which hands a session over.
//! - [`record`], [`log_entry`]: what is kept of a session: a file of its own, and lines in the daily log.
//!
//! - [`continuation`]: what an agent is told that goes on.
//! - [`imported_notes`]: what other programs have kept of their own.
//! - [`save`]: writes record and entry.
//! - [`queue`]: does what hooks ask for.
//!
//! All but [`save`], [`queue`], [`handoff_files`] and what [`imported_notes`] writes is pure: whoever calls opens the files and passes the time.

pub mod cited_summary;
pub mod continuation;
pub mod digest;
pub mod handoff_files;
pub mod imported_notes;
pub mod log_entry;
pub mod micro_compaction;
pub mod model_view;
pub mod offline_summary;
pub mod queue;
pub mod record;
pub mod recovery;
pub mod save;
pub mod transcript;
