//! Removes forgotten words from a transcript, so that no summary contains them again.

use super::{EntryContent, ToolOutput, Transcript};
use crate::{engine::extractive::sentence_class, session::cited_summary};

/// The kind of lines that the user wants forgotten.
const FORGOTTEN: &str = "forgotten";

impl Transcript {
    /// Returns the session without lines and sentences of messages and results for which `is_forgotten` is true.
    pub(crate) fn without_words(&self, is_forgotten: &dyn Fn(&str) -> bool) -> Self {
        let mut left = self.clone();
        for entry in &mut left.entries {
            let own = entry.own_words().map(cited_summary::one_line);
            let changed = match &entry.content {
                EntryContent::Injected | EntryContent::Boundary { .. } => None,
                _ if own.is_some_and(|it| is_forgotten(&it)) => {
                    Some(EntryContent::Other(FORGOTTEN.to_owned()))
                }
                EntryContent::User(text) => {
                    remaining_words(text, is_forgotten).map(EntryContent::User)
                }
                EntryContent::Command(text) => {
                    remaining_words(text, is_forgotten).map(EntryContent::Command)
                }
                EntryContent::Assistant(text) => {
                    remaining_words(text, is_forgotten).map(EntryContent::Assistant)
                }
                EntryContent::Result(result) => remaining_words(&result.text, is_forgotten)
                    .map(|text| EntryContent::Result(ToolOutput { text, ..result.clone() })),
                _ => None,
            };
            if let Some(content) = changed {
                entry.set_content(content);
            }
        }
        left
    }
}

/// Returns a text without its forgotten lines and sentences; `None` if it contains none.
fn remaining_words(text: &str, is_forgotten: &dyn Fn(&str) -> bool) -> Option<String> {
    let mut is_changed = false;
    let lines = text.lines().map(|line| {
        if is_forgotten(line) {
            is_changed = true;
            return String::new();
        }
        let sentences = sentence_class::classify_sentences(line);
        let gone = sentences.iter().map(|it| it.text).filter(|it| is_forgotten(it));
        gone.fold(line.to_owned(), |line, sentence| {
            is_changed = true;
            line.replace(sentence, "")
        })
    });
    let left = lines.collect::<Vec<_>>().join("\n");
    is_changed.then_some(left)
}
