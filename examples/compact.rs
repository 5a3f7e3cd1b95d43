//! Compacts a memory folder and traces a bullet to its source lines: `cargo run --example compact`.
//!
//! Works on a temporary copy of the sample journal.
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use memoird::folder::Folder;

mod sample;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let journal = sample::copy_journal()?;
    let folder = Folder::open(journal.path())?.with_now(sample::NOW.parse()?);

    println!("{} jobs are due", folder.plan()?.jobs.len());
    let report = folder.compact()?;
    println!("{} files written, {} jobs failed", report.written, report.failed);

    // The first bullet of a week, and the log lines that it cites.
    let week = folder.trace("2026-W10")?;
    if let Some(bullet) = week.items.first() {
        println!("\n{}", bullet.target.text);
        for source in &bullet.sources {
            println!("  from {}:{}", source.path, source.line_start);
        }
    }
    Ok(())
}
