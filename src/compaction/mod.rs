//! The flow from logs to files: what is due, drafted, checked, and written.

pub mod ground;
