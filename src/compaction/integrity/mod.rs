//! Integrity: whether files, database, and history agree, and how they are repaired.

pub(crate) mod check;
pub(crate) mod damage;
pub(crate) mod rebuild;
pub(crate) mod repair;
pub(crate) mod vanished_files;
