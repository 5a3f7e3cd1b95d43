//! The served view: what anything but the vault and the history may see of a source.
//!
//! Engines, grounding, lineage, and everything printed take [`SanitizedLog`], which only [`sanitize`]
//! makes. So there is one place that decides what may be seen, and the type proves that it was
//! asked. What is decided there:
//!
//! | of a line | by | it is served |
//! |---|---|---|
//! | a secret in it | [`secrets`] | as a mark that names its kind |
//! | a line like an instruction, or with hidden text | [`quarantine`] | as if it were blank, until a person accepts it |
//! | a line that a person had forgotten | [`PrivacyRules`] | as if it were blank |
//! | whose words it is | `origin` | with each line |
//!
//! [`PrivacyPolicy`] is what the configuration says of all that, and [`PrivacyRules`] what it says together with
//! what the people of one root decided. What is shown of other files than logs goes through
//! `PrivacyRules::mask_secrets`, and what is written through [`neutralize()`]. What all of it costs is counted in tests
//! ([`work_counter`]). Expressions whose scratch memory would stay are lent, and had back by [`reclaim_memory`].

mod file_names;
mod neutralize;
mod origin;
mod policy;
pub mod quarantine;
mod reclaimable;
mod sanitized;
pub mod secrets;
pub(crate) mod work_counter;

pub use self::file_names::FileNameSecrets;
pub use self::neutralize::neutralize;
pub use self::policy::{PrivacyPolicy, PrivacyPolicyError, PrivacyRules, decision_text};
pub use self::reclaimable::reclaim_memory;
pub use self::sanitized::{
    QuarantineStatus, SanitizedLine, SanitizedLog, sanitize, sanitize_own_lines, unchanged_line,
};
