//! Searches a memory folder: `cargo run --example search -- "why SQLite?"`.
//!
//! Works on a temporary copy of the sample journal.
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use memoird::folder::Folder;

mod sample;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let question = std::env::args().nth(1).unwrap_or_else(|| "why SQLite?".to_owned());
    let journal = sample::copy_journal()?;
    let folder = Folder::open(journal.path())?.with_now(sample::NOW.parse()?);

    for hit in folder.search(&question, 3)?.hits {
        println!("{} {}:{}\n  {}", hit.date, hit.path, hit.line, hit.text);
    }
    Ok(())
}
