//! Finds bullets that repeat the prompt instead of the lines.

use std::sync::LazyLock;

use super::cited_text::CitedText;
use crate::{memory::address::Address, model::prompt::PromptName, text::words};

/// Returns the part of the prompt that a bullet repeats, unless its lines have it, too.
pub(super) fn find_prompt_echo(text: &str, cited: &CitedText<'_>) -> Option<String> {
    const RUN: usize = 6;
    const WORDS_MAX: usize = 60;
    const MARKS: [&str; 7] =
        ["<data-", "</data-", "```", "<TASK>", "<INPUT>", "<RULES>", "<OUTPUT_FORMAT>"];
    let mark = MARKS.iter().find(|it| text.contains(**it));
    let address = || {
        let words = text.split_whitespace().map(|it| it.trim_matches(['[', ']', '|', ',', ';']));
        let mut addresses = words.filter(|it| it.len() > 11 && it.parse::<Address>().is_ok());
        addresses.next()
    };
    if let Some(words) = mark.copied().or_else(address) {
        return (!cited.has_substring(words)).then(|| words.to_owned());
    }
    // A run of this many words of the instructions is no coincidence.
    let plain = normalize_words(text);
    let words: Vec<&str> = plain.split(' ').take(WORDS_MAX).collect();
    let mut runs = words.windows(RUN).map(|it| it.join(" "));
    let run = runs.find(|it| PROMPT_WORDS.contains(&it[..]))?;
    (!cited.lines().any(|it| normalize_words(it).contains(&run))).then_some(run)
}

/// The words of all prompts.
static PROMPT_WORDS: LazyLock<String> =
    LazyLock::new(|| PromptName::ALL.map(|it| normalize_words(it.built_in())).join(" "));

/// Returns the words of a text, in lower case, with one space between them.
fn normalize_words(text: &str) -> String {
    words::lowercase_runs(text).collect::<Vec<_>>().join(" ")
}
