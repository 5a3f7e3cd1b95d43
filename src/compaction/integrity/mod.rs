//! Integrity: whether files, database, and history agree, and how they are repaired.

pub mod check;
pub mod damage;
pub mod rebuild;
pub mod repair;
pub mod vanished_files;
