//! What the verbs do, as functions that return values: what verbs, the local page, and programs that embed the crate
//! share.
//!
//! - [`workspace`] opens the configuration and the root that a call works on. [`error`] says what failed, with what
//!   to do next; [`format`] writes values in messages.

pub(crate) mod blame;
pub(crate) mod compact;
pub(crate) mod context;
pub(crate) mod correct;
pub(crate) mod coverage;
pub(crate) mod error;
pub(crate) mod forecast;
pub(crate) mod format;
pub(crate) mod history;
pub(crate) mod log;
pub(crate) mod review;
pub(crate) mod run_lock;
pub(crate) mod run_reporter;
pub(crate) mod search;
pub(crate) mod session_records;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod trace;
pub(crate) mod undo;
pub(crate) mod usage;
pub(crate) mod workspace;
