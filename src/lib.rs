//! memoird turns an agent's daily logs into long-term memory.

pub mod clock;
pub mod commands;
pub mod compaction;
pub mod config;
pub mod daemon;
pub mod engine;
pub mod memory;
pub mod privacy;
pub mod recall;
pub mod store;
