//! The message for an agent that continues a session which it can no longer see.

use super::offline_summary::SummaryStyle;

/// How many files are attached again at most; the most recent ones.
pub(crate) const FILES_MAX: usize = 5;
/// The total size of attached files, in tokens.
pub(crate) const FILES_TOKENS_MAX: u64 = 50_000;

/// What accompanies a summary.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContinuationParts<'a> {
    /// The path of the transcript, for details.
    pub transcript: Option<&'a str>,
    /// The id of the session's record.
    pub record: Option<&'a str>,
    /// The user's instructions for the summary.
    pub instructions: Option<&'a str>,
    /// Whether the agent continues without asking.
    pub auto_continue: bool,
    /// Paths and current texts of files.
    pub files: &'a [(String, String)],
    pub plan: Option<&'a str>,
}

/// Returns a summary with what accompanies it, as one message.
pub(crate) fn continuation_message(
    style: SummaryStyle,
    summary: &str,
    parts: &ContinuationParts<'_>,
) -> String {
    let what = match style {
        SummaryStyle::Partial => {
            "What follows summarizes its later part; the earlier part is above, word for word."
        }
        _ => "What follows summarizes it.",
    };
    let mut text = String::new();
    let mut add = |parts: &[&str]| parts.iter().for_each(|it| text.push_str(it));
    add(&["This work continues an earlier conversation that ran out of context. ", what, "\n\n"]);
    add(&[summary.trim_end(), "\n"]);
    if let Some(instructions) = parts.instructions {
        add(&["\n## Additional Instructions\n\n", instructions.trim(), "\n"]);
    }
    if let Some(plan) = parts.plan {
        add(&["\n## Plan\n\n", plan.trim_end(), "\n"]);
    }
    for (path, content) in parts.files {
        let fence = fence(content);
        let content = content.trim_end_matches('\n');
        add(&["\n## File `", path, "`, as it stands now\n\n"]);
        add(&[&fence, "\n", content, "\n", &fence, "\n"]);
    }
    let detail = "\nFor details (code, errors, exact text): ";
    match (parts.transcript, parts.record) {
        (Some(path), _) => add(&[detail, "read the transcript ", path, "\n"]),
        (None, Some(id)) => add(&[detail, "memoird session show ", id, "\n"]),
        (None, None) => add(&["\n"]),
    }
    add(&["Recent messages are verbatim.\n"]);
    if parts.auto_continue {
        add(&[
            "Continue the last task where it was interrupted. Ask nothing, and do not repeat this \
               summary.\n",
        ]);
    }
    text
}

/// Returns a code fence that no line of a text closes.
fn fence(text: &str) -> String {
    let longest = text.lines().map(str::trim_start).filter(|it| it.starts_with("```"));
    let longest = longest.map(|it| it.chars().take_while(|c| *c == '`').count()).max();
    "`".repeat(longest.map_or(3, |it| it + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_contains_everything_that_accompanies_the_summary() {
        let files = [("/p/a.md".to_owned(), "```\ncode\n```\n".to_owned())];
        let parts = ContinuationParts {
            transcript: Some("/p/t.jsonl"),
            instructions: Some("Keep numbers."),
            auto_continue: true,
            files: &files,
            ..ContinuationParts::default()
        };
        let text = continuation_message(SummaryStyle::Full, "## 1. A\n\n- b\n\n", &parts);
        for part in [
            "## 1. A\n\n- b\n\n## Additional",
            "Keep numbers.",
            "````\n```\ncode\n```\n````",
            "/p/t.jsonl",
            "verbatim",
            "Ask nothing",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            !continuation_message(SummaryStyle::Full, "a", &ContinuationParts::default())
                .contains("Ask nothing")
        );
    }
}
