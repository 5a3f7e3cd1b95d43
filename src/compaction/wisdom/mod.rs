//! `WISDOM.md`: entries distilled from months, and bullets chosen from the newest logs.

pub(crate) mod bullets;
pub(crate) mod edit;
