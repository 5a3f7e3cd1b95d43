//! The extractive engine: deterministic, offline, made of the words of the logs.

pub mod counts;
pub mod cues;
pub mod memories;
pub mod statements;
pub mod wisdom;
