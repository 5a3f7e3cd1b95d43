//! Typed memories extracted from closed days, and their index `MEMORY.md`.

pub(crate) mod day_reader;
pub(crate) mod index_file;
pub(crate) mod memory_match;
pub(crate) mod run;
pub(crate) mod seen_lines;
pub(crate) mod topics;
pub(crate) mod validate;
