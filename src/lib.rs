//! memoird turns an agent's daily logs into long-term memory.
//!
//! People and agents write daily logs (`memory/2026-04-02.md`) into a folder. memoird summarizes closed weeks
//! and months, keeps typed memories by topic, and distills lasting statements into `WISDOM.md`. Every
//! generated line can be traced to the log lines that it was derived from.
//!
//! # For programs that embed memoird
//!
//! [`folder::Folder`] is the public interface: open a folder, see what is due, compact it, search it, trace a
//! line, compose the context of a session. Everything else may change with any version.
//!
//! ```
//! use memoird::folder::Folder;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # std::fs::create_dir(dir.path().join("memory"))?;
//! # std::fs::write(dir.path().join("memory/2026-03-03.md"), "- Importer v2 shipped\n")?;
//! # let path = dir.path();
//! let folder = Folder::open(path)?;
//! folder.compact()?;
//! let hits = folder.search("when did the importer ship?", 3)?.hits;
//! assert_eq!((hits[0].date.to_string(), &hits[0].text[..]), ("2026-03-03".to_owned(), "Importer v2 shipped"));
//! # Ok(())
//! # }
//! ```
//!
//! # The code map
//!
//! Data flows in one direction; [`compaction`] knows the order:
//!
//! ```text
//! vault (scan) → plan → engine (draft) → grounding → vault (write) → lineage (record)
//! ```
//!
//! | layer | module | what it is |
//! |---|---|---|
//! | 0 | [`memory`] | what a memory is: values and their written forms |
//! | 0 | [`text`] | natural language: words, sentences, stems, languages, the lexicon of `config/lexicon/` |
//! | 0 | [`parallel`] | parallel work on threads that end with the call |
//! | 1 | [`clock`] | the only reader of the time |
//! | 1 | [`config`] | files and variables, resolved per root; schedules; root selection |
//! | 1 | [`privacy`] | the sanitized view: what everything except the vault sees of a log |
//! | 1 | [`store`] | files, databases, locks |
//! | 1 | [`model`] | the client of language models |
//! | 2 | [`engine`] | drafts: the extractive engine, or a model |
//! | 2 | [`session`] | transcripts of coding agents, and the records derived from them |
//! | 2 | [`compaction`] | a run: plan, draft, check, merge, write, record; also undo, forget, repair |
//! | 2 | [`recall`] | reading back: search, trace, coverage, history, the context of a session |
//! | 3 | `fleet` | portable roots in object storage, and workers that compact them; only with the feature `fleet` |
//! | 3 | [`daemon`] | one loop over one `enum Event` |
//! | 4 | [`operations`] | what the verbs do, as functions that return values |
//! | 5 | [`commands`] | one file per verb, and the MCP server: arguments, output, exit codes; the only module that prints |
//! | 6 | [`folder`] | the public interface: one memory folder, and what can be done with it |
//! | 6 | [`web`] | the local page: what the verbs show and do, in a browser |
//!
//! Imports point down only, within a layer from a later row to an earlier one; a test checks that.
//! `cargo doc --document-private-items` shows all of it.
//!
//! # Invariants
//!
//! - Engines, checks, and plans are functions of data and `now`: they read no file and no clock.
//! - Only [`store::fs::vault`] writes Markdown, only [`store::db`] speaks SQL, and only [`commands::ui`]
//!   prints.
//! - No generated file depends on when it was written: same input, same bytes.
//! - Logs are read-only, with these exceptions: `memoird log`, `memoird review edit`, [`session::save`] and
//!   [`session::imported_notes`] append; `memoird forget --from-log` removes.

mod clock;
mod commands;
mod compaction;
mod config;
mod daemon;
mod engine;
#[cfg(feature = "fleet")]
mod fleet;
pub mod folder;
mod memory;
mod model;
mod operations;
mod parallel;
mod privacy;
mod recall;
mod session;
mod store;
mod text;
mod web;

/// What the program itself, its tests, benches and fuzz targets use. It is no part of the interface.
#[doc(hidden)]
pub mod internals {
    pub mod clock {
        pub use crate::clock::*;
    }
    pub mod commands {
        pub use crate::commands::*;
    }
    pub mod compaction {
        pub use crate::compaction::grounding;
    }
    pub mod config {
        pub use crate::config::*;
    }
    pub mod daemon {
        pub use crate::daemon::*;
    }
    pub mod engine {
        pub use crate::engine::*;
    }
    pub mod memory {
        pub use crate::memory::*;
    }
    pub mod model {
        pub use crate::model::*;
    }
    pub mod privacy {
        pub use crate::privacy::*;
    }
    pub mod recall {
        pub use crate::recall::*;
    }
    pub mod session {
        pub use crate::session::{
            cited_summary, digest, micro_compaction, offline_summary, recovery, transcript,
        };
    }
    pub mod store {
        pub use crate::store::*;
    }
    pub mod web {
        pub use crate::web::PROGRAM;
    }
}
