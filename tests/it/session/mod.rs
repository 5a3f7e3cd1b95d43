//! Agent sessions: transcripts, their records and summaries, and the commands and hooks for both.

mod chain;
mod context;
mod first_use;
mod generate;
mod hooks;
mod imported_notes;
mod micro;
mod other_programs;
mod quotes;
mod records;
mod transcripts;

use std::{fs, path::PathBuf};

use memoird::internals::session::transcript::{self, EntryContent, Transcript};

/// Returns the path of a sample transcript.
fn sample_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/transcripts").join(name)
}

/// Returns the text of a sample transcript.
fn sample_text(name: &str) -> String {
    fs::read_to_string(sample_path(name)).unwrap()
}

/// Reads a text as a transcript.
#[track_caller]
fn read(text: &str) -> Transcript {
    transcript::read(text.as_bytes(), None).unwrap()
}

/// Returns the messages of the user, in order.
fn messages(transcript: &Transcript) -> Vec<&str> {
    let messages = transcript.own_entries().filter_map(|it| match &it.content {
        EntryContent::User(text) => Some(&text[..]),
        _ => None,
    });
    messages.collect()
}
