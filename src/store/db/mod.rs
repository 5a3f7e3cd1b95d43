//! The databases of a memory folder and of a person: the only code that speaks SQL.

pub(crate) mod cache_db;
pub mod ledger;
pub mod lineage;
pub mod search_index;
pub mod vectors;
