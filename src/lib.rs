//! memoird turns an agent's daily logs into long-term memory.
//!
//! People and agents write daily logs (`memory/2026-04-02.md`) into a folder. memoird folds closed
//! days into weekly files, weeks into monthly files, and what lasts into `WISDOM.md`; it extracts
//! typed memories; and it can lead every generated line back to the log lines that it came from.
//!
//! # The map
//!
//! One direction, one screen of code that knows the order ([`compaction`]):
//!
//! ```text
//! vault (scan) → plan → engine (draft) → ground → vault (write) → lineage (record)
//! ```
//!
//! | layer | module | what it is |
//! |---|---|---|
//! | 0 | `text` | natural language: words, sentences, stems, languages, the lexicon of `config/lexicon/` |
//! | 0 | [`memory`] | what a memory is: values and their written forms |
//! | 0 | `parallel` | work side by side, on threads that live no longer than the call |
//! | 1 | [`clock`] | the one reading of the time |
//! | 1 | [`config`] | files and variables, resolved per root; schedules; which root is meant |
//! | 1 | [`privacy`] | the served view: what anything but the vault may see of a log |
//! | 1 | [`store`] | the files, the database, the locks |
//! | 1 | [`model`] | the one door to a language model |
//! | 2 | [`engine`] | what drafts: the extractive engine, or a model |
//! | 2 | [`session`] | transcripts of coding agents, and what is made of them |
//! | 2 | [`compaction`] | the flow: plan, fold, check, merge, write, record; taking back, forgetting, repairing |
//! | 2 | [`recall`] | reading back: search, trace, coverage, history, what a session starts with |
//! | 3 | [`daemon`] | one loop over one `enum Event` |
//! | 4 | [`commands`] | one file per verb, and the server that agents ask; the only place that prints |
//! | 5 | [`folder`] | the public face: what the verbs do, as functions |
//!
//! Imports point down only, within a layer from a later row to an earlier one; a test holds that.
//!
//! # For other programs
//!
//! [`folder::Folder`] is what a program calls that has memoird built in: open a folder, search, trace,
//! compose the context of a session, see what is due, and do it. All else is public for the tests and
//! may change with any version.
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
//! # What is absent, on purpose
//!
//! - No engine, check, or plan reads a file or a clock: they are functions of data and `now`.
//! - No module but [`store::fs::vault`] writes Markdown; none but [`store::db::lineage`] and
//!   [`store::db::search_index`] speaks SQL, each to a database of its own; none but [`commands::ui`] prints.
//! - Nothing in a generated file depends on when it was written: same input, same bytes.
//! - No log is ever changed, but by `memoird log` and `memoird review edit`, which append to that of
//!   today, by [`session::save`] and [`session::imported_notes`], which append to those of a session's days or of a
//!   note's, and `memoird forget --from-log`, which removes.

pub mod clock;
pub mod commands;
pub mod compaction;
pub mod config;
pub mod daemon;
pub mod engine;
pub mod folder;
pub mod memory;
pub mod model;
mod parallel;
pub mod privacy;
pub mod recall;
pub mod session;
pub mod store;
mod text;
