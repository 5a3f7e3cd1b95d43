//! Weekly and monthly summaries: drafted, checked, merged with user edits, and written.

pub(crate) mod draft;
pub(crate) mod orphaned_items;
pub(crate) mod user_edits;
pub(crate) mod week_batch;
pub(crate) mod write;
