//! store
pub mod lineage;
