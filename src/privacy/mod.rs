//! The sanitized view: what everything but the vault and the history may see of a source.
//!
//! Engines, grounding, lineage, and all output take a [`SanitizedLog`], which only [`sanitize`] creates.
//! So one place decides what may be seen, and the type proves that it did:
//!
//! | part of a line | decided by | in the view |
//! |---|---|---|
//! | a secret | [`secrets`] | a placeholder that names its kind |
//! | a line like an instruction, or with hidden text | [`quarantine`] | blank, until a person accepts it |
//! | a line that a person had forgotten | [`PrivacyRules`] | blank |
//! | the author of the line | `origin` | an attribute of each line; metadata is blank |
//!
//! [`PrivacyPolicy`] holds the configuration; [`PrivacyRules`] adds the decisions of the people of one
//! root. Files other than logs are shown without the lines of [`suspicious_lines`] and with
//! `PrivacyRules::mask_secrets`; text is written through [`neutralize()`]. Tests count the work (`work_counter`). [`reclaim_memory`] frees
//! the memory of compiled expressions.

mod file_names;
mod generated;
mod neutralize;
mod origin;
mod policy;
pub mod quarantine;
mod reclaimable;
mod sanitized;
pub mod secrets;
mod wording;
pub(crate) mod work_counter;

pub use self::file_names::FileNameSecrets;
pub use self::generated::suspicious_lines;
pub use self::neutralize::neutralize;
pub use self::policy::{LineText, PrivacyPolicy, PrivacyPolicyError, PrivacyRules, decision_text};
pub use self::reclaimable::reclaim_memory;
pub use self::sanitized::{
    QuarantineStatus, SanitizedLine, SanitizedLog, sanitize, sanitize_notes, sanitize_own_lines,
    unchanged_line,
};
pub use self::wording::DerivedWording;
