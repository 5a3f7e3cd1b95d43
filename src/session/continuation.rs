//! What an agent is told that goes on from a session that it cannot see any more.

use super::offline_summary::SummaryStyle;

/// So many files are attached again at most, the last ones.
pub const FILES_MAX: usize = 5;
/// So many tokens they take in all, at most.
pub const FILES_TOKENS_MAX: u64 = 50_000;

/// What goes with a summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContinuationParts<'a> {
    /// The transcript, for who wants to know more.
    pub transcript: Option<&'a str>,
    /// The record that holds the same for good.
    pub record: Option<&'a str>,
    /// What the user asked of the summary.
    pub instructions: Option<&'a str>,
    /// Whether to go on without asking.
    pub auto_continue: bool,
    /// Files as they stand now, each with its text.
    pub files: &'a [(String, String)],
    /// The plan as it stands now.
    pub plan: Option<&'a str>,
}

/// Wraps a summary.
pub fn continuation_message(
    style: SummaryStyle,
    summary: &str,
    around: &ContinuationParts<'_>,
) -> String {
    let what = match style {
        SummaryStyle::Partial => {
            "What follows sums up its later part; what came before it stands above, word for word."
        }
        _ => "What follows sums it up.",
    };
    let mut text = String::new();
    let mut add = |parts: &[&str]| parts.iter().for_each(|it| text.push_str(it));
    add(&["This work goes on from an earlier conversation that ran out of room. ", what, "\n\n"]);
    add(&[summary.trim_end(), "\n"]);
    if let Some(instructions) = around.instructions {
        add(&["\n## Additional Instructions\n\n", instructions.trim(), "\n"]);
    }
    if let Some(plan) = around.plan {
        add(&["\n## Plan\n\n", plan.trim_end(), "\n"]);
    }
    for (path, content) in around.files {
        let fence = fence(content);
        let content = content.trim_end_matches('\n');
        add(&["\n## File `", path, "`, as it stands now\n\n"]);
        add(&[&fence, "\n", content, "\n", &fence, "\n"]);
    }
    let detail = "\nFor anything in detail (code, errors, what was written): ";
    match (around.transcript, around.record) {
        (Some(path), _) => add(&[detail, "read the transcript ", path, "\n"]),
        (None, Some(id)) => add(&[detail, "memoird session show ", id, "\n"]),
        (None, None) => add(&["\n"]),
    }
    add(&["Recent messages stand verbatim.\n"]);
    if around.auto_continue {
        add(&[
            "Go on with the last task from where it was left. Ask nothing, and do not repeat this \
               summary.\n",
        ]);
    }
    text
}

/// Returns a fence that no line of a text closes.
fn fence(text: &str) -> String {
    let longest = text.lines().map(str::trim_start).filter(|it| it.starts_with("```"));
    let longest = longest.map(|it| it.chars().take_while(|c| *c == '`').count()).max();
    "`".repeat(longest.map_or(3, |it| it + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_with_a_summary_is_told() {
        let files = [("/p/a.md".to_owned(), "```\ncode\n```\n".to_owned())];
        let around = ContinuationParts {
            transcript: Some("/p/t.jsonl"),
            instructions: Some("Keep numbers."),
            auto_continue: true,
            files: &files,
            ..ContinuationParts::default()
        };
        let text = continuation_message(SummaryStyle::Full, "## 1. A\n\n- b\n\n", &around);
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
