//! What is kept: files, the database, and the locks that guard both.
//!
//! - [`vault`]: the files of a root. The only writer of Markdown.
//! - [`beneath`]: the way into a root, which leads to nothing outside of it.
//! - [`inventory`]: what a scan of the vault found, as values.
//! - [`layout`]: where each file of a root stands.
//! - [`lineage`]: the database. The only speaker of SQL, but for the ledger and what is made from the files:
//! - [`postings`]: the search index.
//! - [`vectors`]: what stands near what in meaning.
//! - `made`: how both are opened, and made anew.
//! - [`changes`]: whether anything changed since one looked, told by the system.
//! - [`filesystem`]: whether a disk can be trusted with a database.
//! - [`failpoint`]: where tests stop or fail a step.
//! - [`spool`]: notes that hooks leave, outside of all roots.
//! - [`private`]: witnesses beside the database, and the quarantine.
//! - [`standstill`]: the note that a root stands still, which any change of the database takes away.
//! - [`lock`]: who may write to a root, and which daemon serves it.

pub mod beneath;
pub mod changes;
pub mod failpoint;
pub mod filesystem;
pub mod inventory;
pub mod layout;
pub mod ledger;
pub mod lineage;
pub mod lock;
mod made;
pub mod postings;
pub mod private;
pub mod spool;
pub mod standstill;
pub mod vault;
pub mod vectors;
