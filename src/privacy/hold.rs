//! Stub.
use crate::memory::log::Origin;
/// Stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// Stub.
    IgnoreInstructions,
}
impl Concern {
    /// Stub.
    pub fn name(self) -> &'static str {
        "ignore-instructions"
    }
}
/// Stub.
pub fn concerns(line: &str, _origin: Origin) -> Vec<Concern> {
    if line.to_lowercase().contains("ignore previous instructions") {
        vec![Concern::IgnoreInstructions]
    } else {
        vec![]
    }
}

impl std::fmt::Display for Concern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
