//! Everything on disk: files, databases, and the locks that protect both.
//!
//! - [`fs`]: the files of a memory folder.
//! - [`db`]: the databases; the only code that speaks SQL.
//! - [`failpoint`]: named steps at which tests stop the process or inject errors.

pub mod db;
pub mod failpoint;
pub mod fs;
