//! Sessions of coding agents: from a transcript to a record, and to an entry of the daily log.
//!
//! - [`transcript`]: the files that agents keep of a session, read into one form.
//! - [`digest`]: what a session holds: messages, files, commands, failures, the plan.
//! - [`micro`]: a transcript made smaller, which the same agent can still load.
//! - [`style`], [`recovery`]: summaries of four kinds, made without a model, on a [`page`] whose lines
//!   know what they rest on.
//! - [`model`]: a session as a model is shown it that words the summary.
//! - [`reading`]: the files that a model may read which hands a session over.
//! - [`record`], [`entry`]: what is kept of a session: a file of its own, and lines in the daily log.
//!
//! - [`continuation`]: what an agent is told that goes on.
//! - [`notes`]: what other programs have kept of their own.
//! - [`keep`]: writes record and entry.
//! - [`queue`]: does what hooks ask for.
//!
//! All but [`keep`], [`queue`], [`reading`] and what [`notes`] writes is pure: whoever calls opens the files and passes the time.

pub mod continuation;
pub mod digest;
pub mod entry;
pub mod keep;
pub mod micro;
pub mod model;
pub mod notes;
pub mod page;
pub mod queue;
pub mod reading;
pub mod record;
pub mod recovery;
pub mod style;
pub mod transcript;
