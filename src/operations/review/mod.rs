//! Review: what waits for a person's decision, and the decisions.

pub(crate) mod queue;
pub(crate) mod verdicts;
