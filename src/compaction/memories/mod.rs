//! Typed memories extracted from closed days, and their index `MEMORY.md`.

pub(crate) mod day_reader;
mod day_topics;
pub(crate) mod index_file;
pub(crate) mod memory_match;
mod own_text;
pub(crate) mod run;
pub(crate) mod seen_lines;
pub(crate) mod topics;
pub(crate) mod validate;
