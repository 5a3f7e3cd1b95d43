//! config

mod nearest;
pub mod schedule;
pub mod span;
pub mod zone;
