//! Portable roots: the files and the database of a root, published to object storage and brought back; and what
//! workers of a fleet share.
//!
//! A bundle is one root in one store. Its manifest names every file with the hash of its content, and the
//! immutable objects that hold the contents. Object storage keeps the truth; there is no server of ours, and no
//! other module knows about bundles, except that verbs that write finish a pull that was interrupted.
//!
//! ```text
//! URL/manifest.json        the one object that is ever replaced, by compare-and-swap
//! URL/objects/ab/abcd…     packs, named by the BLAKE3 hash of their bytes
//! URL/races/…              objects of the first test of a store, removed after it
//! STORE/due/TENANT/ROOT    when a root is due, if no claims database knows it
//! ```
//!
//! - [`storage`]: what is needed of a store; `file_storage` and `cloud_storage` implement it.
//! - [`races`]: the test that a store must pass before its first use.
//! - [`tested_stores`]: which stores passed it from this machine.
//! - [`manifest`]: the manifest, and what is checked before anything is taken from it.
//! - [`pack`]: objects that hold the contents of files.
//! - [`repack`]: which contents are written again, so that there are few objects; pure.
//! - [`local_files`]: the files of the root that belong to a bundle.
//! - [`merge`]: compares this root, the last common state, and the store; pure.
//! - [`state`]: what this root knows about a store, in its private folder.
//! - [`push`]: publishes; also removes from the store what `forget` removed here.
//! - [`pull`]: brings what others published.
//!
//! A worker claims a root, pulls it, runs the same compaction as anybody, and pushes it:
//!
//! - [`root_name`]: tenant and name of a root, which are its path in the store.
//! - [`claims`]: the database of what is due, of leases, and of what was spent.
//! - [`heartbeat`]: extends a lease while its root is worked on.
//! - [`next_due`]: when a root is due again; pure.
//! - [`due_notes`]: when roots are due, in the store, where there is no claims database.
//! - [`sweep`]: finds pushes that were not reported.
//! - [`central_budget`]: the spending side of the ledger, in the claims database.
//!
//! # Invariants
//!
//! - Objects are uploaded before the manifest that names them is published. Up to that moment nobody sees a
//!   push, afterwards all of it.
//! - A worker publishes only if the claims database confirms its lease after the manifest was read, and nobody else
//!   published since.
//! - Nothing is overwritten or removed here unless its bytes are those of the last common state.
//! - What could not be read here never counts as deleted.
//! - No object is used again by another push, so removing what no manifest names cannot break one, unless it is
//!   younger than [`push::GARBAGE_GRACE`]. A pull that misses an object because of that begins again. Only a manifest that is marked as `removing` permits removal of younger
//!   objects: nobody else publishes while it is.

pub(crate) mod central_budget;
pub(crate) mod claims;
mod cloud_storage;
pub(crate) mod due_notes;
pub(crate) mod error;
mod file_storage;
pub(crate) mod heartbeat;
pub(crate) mod local_files;
pub(crate) mod manifest;
pub(crate) mod merge;
pub(crate) mod next_due;
mod pack;
pub(crate) mod pull;
pub(crate) mod push;
mod races;
mod repack;
pub(crate) mod root_name;
pub(crate) mod state;
pub(crate) mod storage;
pub(crate) mod sweep;
mod tested_stores;
