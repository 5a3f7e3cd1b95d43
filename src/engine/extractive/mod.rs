//! The extractive engine: deterministic, offline, made of the words of the logs.

pub mod counts;
// Tables of words, packed: a word per line would make it thousands of lines.
#[rustfmt::skip]
mod cues;
pub mod memories;
mod statements;
pub mod wisdom;
