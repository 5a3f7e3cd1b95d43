//! `WISDOM.md`, distilled from months.

pub(crate) mod edit;
