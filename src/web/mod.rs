//! The local page: what the verbs show and do, in a browser.
//!
//! [`server`] listens on 127.0.0.1, [`connections`] bounds what others can hold of it, and [`guard`] decides who may
//! ask: one browser, by a link that works once.
//! [`address`] is the list of all pages and their URLs, and [`pages`] renders each from what the functions of the
//! verbs return, of which [`state_cache`] keeps what takes long until a file changes; [`actions`] are the forms, which
//! call the same functions as the verbs, a compaction as [`page_compaction`]. [`export`] writes the pages as files.
//!
//! # Invariants
//!
//! - A page shows only what the verbs show: logs and files through the sanitized view. The templates escape every
//!   text, so that markup in a log is text.
//! - No page has a script, style, or image from elsewhere, and none inline; each works without a script.
//! - A `GET` changes no memory file and records nothing; a page about a file that was edited since says so. A `POST`
//!   needs the cookie, our origin, and the token of the form.

mod actions;
mod address;
mod assets;
mod connections;
mod context;
mod export;
mod guard;
mod layout;
mod markdown;
mod page_compaction;
mod pages;
mod progress;
mod server;
mod state_cache;
mod svg;
mod word_diff;

use crate::operations::page::PageProgram;

/// What `memoird open`, `serve`, and `export` run.
pub const PROGRAM: PageProgram = PageProgram { serve: server::serve, export: export::export };
