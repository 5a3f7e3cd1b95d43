//! The databases of a memory folder and of a person: the only code that speaks SQL.
//!
//! - [`lineage`]: what was made from what, and the history of every file; one per folder.
//! - [`ledger`]: every model call and what it cost; one per person.
//! - [`search_index`] and [`vectors`]: caches, made again from the files when they are lost.
//! - `openclaw_sessions`: reads the sessions in a database of `OpenClaw`.
//! - `opencode_sessions`: reads the sessions in the database of opencode.
//! - `cache_db`: how both caches are opened and replaced.
//! - `connection`: how any of these is opened.

pub(crate) mod cache_db;
mod connection;
pub mod ledger;
pub mod lineage;
pub(crate) mod openclaw_sessions;
pub(crate) mod opencode_sessions;
pub mod search_index;
pub mod vectors;
