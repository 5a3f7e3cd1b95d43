//! What the verbs do, as functions that return values. The verbs, the MCP server, the local page, and programs that
//! embed the crate share them.
//!
//! - [`workspace`] opens the configuration and the root that a call works on.
//! - [`error`] says what failed, and what to do next; [`format`](mod@format) writes values in messages.
//! - [`search`], [`trace`], [`coverage`], [`history`], [`show`], [`blame`], [`context`], [`session_records`],
//!   [`status`], [`usage`], [`forecast`]: what is read.
//! - [`log`](mod@log), [`correct`], [`review`], [`undo`], [`compact`]: what is written. [`run_lock`] waits for other
//!   processes, [`run_reporter`] is how a run reports meanwhile.
//! - `worker` works on one root of a fleet, `replica` brings what workers published (feature `fleet`).
//! - [`page`] is what serves the local page.
//!
//! Nothing here reads arguments, prints, or asks. The hints of errors name commands, whoever the caller is.

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
pub(crate) mod page;
#[cfg(feature = "fleet")]
pub(crate) mod replica;
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
#[cfg(feature = "fleet")]
pub(crate) mod worker;
pub(crate) mod workspace;
