//! Atoms: the parts of a text that must never be changed or invented.
