//! The served view: what anything but the vault and the history may see of a source.
//!
//! Engines, grounding, lineage, and everything printed take [`ServedLog`], which only [`serve`]
//! makes. So there is one place that decides what may be seen, and the type proves that it was
//! asked. What is decided there:
//!
//! | of a line | by | it is served |
//! |---|---|---|
//! | a secret in it | [`secrets`] | as a mark that names its kind |
//! | a line like an instruction, or with hidden text | [`hold`] | as if it were blank, until a person accepts it |
//! | a line that a person had forgotten | [`Rules`] | as if it were blank |
//! | whose words it is | `origin` | with each line |
//!
//! [`Policy`] is what the configuration says of all that, and [`Rules`] what it says together with
//! what the people of one root decided. What is shown of other files than logs goes through
//! [`Rules::shown`], and what is written through [`inert()`]. What all of it costs is counted in tests
//! ([`effort`]). Expressions whose scratch memory would stay are lent, and had back by [`rest`].

pub(crate) mod effort;
pub mod hold;
mod inert;
mod lent;
mod names;
mod origin;
mod rules;
pub mod secrets;
mod served;

pub use inert::inert;
pub use lent::rest;
pub use names::SpelledSecrets;
pub use rules::{Policy, PolicyError, Rules, words_decided};
pub use served::{Held, ServedLine, ServedLog, serve, serve_own_lines, whole_line};
