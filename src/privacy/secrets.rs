//! Stub.
use std::{
    ops::Range,
    sync::{Arc, LazyLock},
};
/// Stub.
#[derive(Debug)]
pub struct SecretRules;
/// Stub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Kind.
    pub kind: Arc<str>,
    /// Range.
    pub range: Range<usize>,
    /// Personal.
    pub is_personal: bool,
}
/// Stub.
#[derive(Debug, thiserror::Error)]
#[error("stub")]
pub struct RuleError;
static BUILT_IN: LazyLock<SecretRules> = LazyLock::new(|| SecretRules);
impl SecretRules {
    /// Stub.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }
    /// Stub.
    ///
    /// # Errors
    ///
    /// Stub.
    pub fn with_user(_yaml: &str) -> Result<Self, RuleError> {
        Ok(Self)
    }
    /// Stub.
    pub fn find(&self, text: &str) -> Vec<Found> {
        text.match_indices("ghp_STUB")
            .map(|(at, it)| Found {
                kind: "github-token".into(),
                range: at..at + it.len(),
                is_personal: false,
            })
            .collect()
    }
}
