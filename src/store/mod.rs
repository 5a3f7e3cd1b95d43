//! What is kept: files, the database, and the locks that guard both.
//!
//! - `vault`: the files of a root. The only writer of Markdown.
//! - `rooted_dir`: the way into a root, which leads to nothing outside of it.
//! - `inventory`: what a scan of the vault found, as values.
//! - `layout`: where each file of a root stands.
//! - `lineage`: the database. The only speaker of SQL, but for the ledger and what is made from the files:
//! - `search_index`: the search index.
//! - `vectors`: what stands near what in meaning.
//! - `made`: how both are opened, and made anew.
//! - `change_monitor`: whether anything changed since one looked, told by the system.
//! - `filesystem`: whether a disk can be trusted with a database.
//! - [`failpoint`]: where tests stop or fail a step.
//! - `spool`: notes that hooks leave, outside of all roots.
//! - `private_folder`: witnesses beside the database, and the quarantine.
//! - `up_to_date_note`: the note that a root stands still, which any change of the database takes away.
//! - `lock`: who may write to a root, and which daemon serves it.

pub mod db;
pub mod failpoint;
pub mod fs;
