//! The extractive engine: deterministic, offline, made of the words of the logs.

pub mod counts;
