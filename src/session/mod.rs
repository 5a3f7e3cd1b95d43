//! Sessions of coding agents: from a transcript to a record, and to an entry of the daily log.
//!
//! - [`transcript`]: reads the session files of several agents into one form.
//! - [`transcript_file`]: opens transcripts, also those in a database.
//! - [`digest`]: the content of a session: messages, files, commands, failures, the plan.
//! - [`micro_compaction`]: shrinks a transcript so that the same agent can still load it.
//! - [`offline_summary`], [`recovery`]: summaries in four styles, made without a model.
//! - [`cited_summary`]: a summary whose lines cite entries of the transcript.
//! - [`model_view`]: a session as it is shown to a model that writes the summary.
//! - [`handoff_files`]: the project files that a model may read for a handoff.
//! - `message_lines`, `sentences`: the lists of a message, its sentences, and the orders of the user.
//! - [`composed_line`]: lines of an entry that combine several facts.
//! - [`record`], [`log_entry`]: what is stored of a session: a record file, and lines in the daily log.
//! - `logged_sessions`: which records that claim to be logged are to be believed.
//! - [`continuation`]: the message for an agent that continues a session.
//! - [`imported_notes`]: imports notes of other programs.
//! - [`unlogged`]: the part of a session that no log contains.
//! - [`record_update`]: which record of a session a save changes.
//! - [`save`]: writes record and log entry.
//! - [`queue`]: processes the sessions that hooks have queued.
//!
//! All but [`save`], [`queue`], [`transcript_file`], [`handoff_files`], `logged_sessions` and the writing part of
//! [`imported_notes`] is pure: the caller opens the files and passes the time.

pub mod cited_summary;
pub(crate) mod composed_line;
pub(crate) mod continuation;
pub mod digest;
pub(crate) mod handoff_files;
pub(crate) mod imported_notes;
pub(crate) mod log_entry;
mod logged_sessions;
mod message_lines;
pub mod micro_compaction;
pub(crate) mod model_view;
pub mod offline_summary;
pub(crate) mod queue;
pub(crate) mod record;
mod record_update;
pub mod recovery;
pub(crate) mod save;
mod sentences;
pub mod transcript;
pub(crate) mod transcript_file;
mod unlogged;
