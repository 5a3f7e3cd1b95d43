//! What the verbs do, as functions that return values: what verbs, the local page, and programs that embed the crate
//! share.
//!
//! - [`workspace`] opens the configuration and the root that a call works on. [`error`] says what failed, with what
//!   to do next; [`format`] writes values in messages.

pub(crate) mod error;
pub(crate) mod format;
pub(crate) mod workspace;
