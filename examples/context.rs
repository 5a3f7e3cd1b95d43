//! Prints what an agent should read at the start of a session: `cargo run --example context`.
//!
//! Works on a temporary copy of the sample journal.
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use memoird::folder::Folder;

mod sample;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let journal = sample::copy_journal()?;
    let folder = Folder::open(journal.path())?.with_now(sample::NOW.parse()?);
    folder.compact()?;

    let context = folder.context(Some(1000))?;
    println!("{}", context.text);
    println!("about {} tokens", context.tokens);
    Ok(())
}
