//! lineage
