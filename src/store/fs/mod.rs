//! The files of a memory folder: how they are found, opened, locked, read and written.

pub mod change_monitor;
pub mod filesystem;
pub mod inventory;
pub mod layout;
pub mod lock;
pub mod private_folder;
pub mod rooted_dir;
pub mod spool;
pub mod up_to_date_note;
pub mod vault;
