//! What the engine knows of a root: how common each word is in its logs.

/// Counts over logs dated up to some day.
#[derive(Clone, Debug, Default)]
pub struct Counts {}
