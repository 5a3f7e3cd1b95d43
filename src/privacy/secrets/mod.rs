//! Finds secrets in a text: keys, passwords, and personal data.
//!
//! - `literals`: the words that rules start from.
//! - [`rules`]: the rules, read from `config/secrets.yaml` and the user's own file.
//! - [`scan`]: finds secrets in one pass over a text.
//! - `split_secrets`: finds secrets whose parts are separated in a text.
//! - [`check`]: conditions on a value beyond its form.
//!
//! Pure: text in, ranges out. The value itself is never stored, so that no error can show it.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, LazyLock},
};

use rules::{CompiledSecretRules, SecretRuleError};

pub mod check;
mod literals;
pub mod rules;
pub mod scan;
pub(super) mod split_secrets;
#[cfg(test)]
mod tests;

/// The rules that come with the program: JSON that `build.rs` makes from `config/secrets.yaml`.
const BUILT_IN: &str = include_str!(concat!(env!("OUT_DIR"), "/secrets.json"));

/// Compiled secret rules. Cheap to copy.
#[derive(Clone)]
pub struct SecretRules(Arc<CompiledSecretRules>);

/// A secret, or personal data, in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretMatch {
    /// The id of the rule, such as `github-token`; the placeholder names it.
    pub kind: Arc<str>,
    /// The bytes of the whole text.
    pub range: Range<usize>,
    /// Whether it is personal data rather than a credential.
    pub is_personal: bool,
}

impl SecretRules {
    /// Returns the rules that come with the program.
    ///
    /// # Panics
    ///
    /// If the file of these rules is invalid, which the tests of this crate rule out.
    pub fn built_in() -> &'static Self {
        static RULES: LazyLock<SecretRules> = LazyLock::new(|| {
            let compiled = rules::compile(BUILT_IN, None);
            SecretRules(Arc::new(compiled.expect("a test compiles the rules of the program")))
        });
        &RULES
    }

    /// Returns the built-in rules with those of the user, who may add kinds, replace a rule of the same
    /// id, turn some `off`, and `allow` values that are not secrets.
    ///
    /// Returns which rule is wrong, why, and how to fix it.
    pub(crate) fn with_user(yaml: &str) -> Result<Self, SecretRuleError> {
        rules::compile(BUILT_IN, Some(yaml)).map(|it| Self(Arc::new(it)))
    }

    /// Returns the secrets in a text, in order and disjoint.
    ///
    /// The text should be a whole log, because a key may span several lines.
    pub fn find(&self, text: &str) -> Vec<SecretMatch> {
        scan::find(&self.0, text)
    }

    /// Returns the kinds of secrets, in the order of the rules.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.kinds()
    }
}

impl fmt::Debug for SecretRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretRules").field("kinds", &self.kinds().count()).finish()
    }
}
