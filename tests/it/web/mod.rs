//! The local page: who may ask, what each page shows, the forms, and a browser that uses it.

mod browser;
mod client;
mod export;
mod forms;
mod html;
mod pages;
mod security;

use crate::support::Root;

/// Returns a folder with a sample journal and everything derived from it.
fn compacted() -> Root {
    let root = Root::new("mara");
    root.run_with_digest(&["compact"]).ok();
    root
}
