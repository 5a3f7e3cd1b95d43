//! The files of a memory folder: how they are found, opened, locked, read and written.
//!
//! - [`vault`]: reads and writes the files; the only writer of Markdown.
//! - [`rooted_dir`]: opens files and folders inside a root, and nothing outside of it.
//! - [`layout`]: the path of each file.
//! - `log_names`: the name that a file should have that is named after a day in another form.
//! - [`inventory`]: the result of a scan, as values.
//! - [`lock`]: which process may serve, compact, or write.
//! - [`change_monitor`]: whether anything changed since the last look.
//! - [`filesystem`]: whether a file system is safe for a database.
//! - [`private_append`]: a private file to which lines are appended.
//! - [`private_folder`]: small files beside the database.
//! - [`up_to_date_note`]: the note that a root has nothing to do.
//! - [`spool`]: notes that hooks leave, outside of all roots.

pub mod change_monitor;
pub mod filesystem;
pub mod inventory;
pub mod layout;
pub mod lock;
mod log_names;
pub(crate) mod private_append;
pub mod private_folder;
pub mod rooted_dir;
pub mod spool;
pub mod up_to_date_note;
pub mod vault;
