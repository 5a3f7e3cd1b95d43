//! Finds what must not be seen in a text: keys, passwords, and data about persons.
//!
//! - [`rules`]: what is looked for, read from `config/secrets.yaml` and a file of the user's own.
//! - [`scan`]: one walk over a text that says where it stands.
//! - [`split_secrets`]: what a text holds once its parts are joined.
//! - [`check`]: what a value must look like, beyond its form.
//!
//! Pure: text in, places out. The value itself is never kept, so that no error can show it.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, LazyLock},
};

use rules::{CompiledSecretRules, SecretRuleError};

pub mod check;
pub mod rules;
pub mod scan;
pub(super) mod split_secrets;
#[cfg(test)]
mod tests;

/// The rules that come with the program.
const BUILT_IN: &str = include_str!("../../../config/secrets.yaml");

/// What is looked for, ready to be used. Cheap to copy.
#[derive(Clone)]
pub struct SecretRules(Arc<CompiledSecretRules>);

/// A place in a text that must not be seen, or that tells of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretMatch {
    /// The id of the rule, such as `github-token`: what a mark calls it.
    pub kind: Arc<str>,
    /// Where it stands, in bytes of the whole text.
    pub range: Range<usize>,
    /// Whether it tells of a person, rather than opens a door.
    pub is_personal: bool,
}

impl SecretRules {
    /// Returns the rules that come with the program.
    ///
    /// # Panics
    ///
    /// Where the file of these rules is broken, which the tests of this crate rule out.
    pub fn built_in() -> &'static Self {
        static RULES: LazyLock<SecretRules> = LazyLock::new(|| {
            let compiled = rules::compile(BUILT_IN, None);
            SecretRules(Arc::new(compiled.expect("a test compiles the rules of the program")))
        });
        &RULES
    }

    /// Returns the rules of the program with those of a user, who may add kinds, replace one of the
    /// same id, turn some `off`, and `allow` what is no secret.
    ///
    /// # Errors
    ///
    /// Names the rule, what is wrong with it, and how to mend it.
    pub fn with_user(yaml: &str) -> Result<Self, SecretRuleError> {
        rules::compile(BUILT_IN, Some(yaml)).map(|it| Self(Arc::new(it)))
    }

    /// Returns the places to be hidden, in their order; none touches another.
    ///
    /// Give it a whole log: a key may go over several lines.
    pub fn find(&self, text: &str) -> Vec<SecretMatch> {
        scan::find(&self.0, text)
    }

    /// Returns the kinds that are looked for, in the order of the rules.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.kinds()
    }
}

impl fmt::Debug for SecretRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretRules").field("kinds", &self.kinds().count()).finish()
    }
}
