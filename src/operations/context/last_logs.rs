//! The last daily logs, as `memoird context --logs` shows them.

use crate::{
    memory::{
        address::Stem,
        frontmatter,
        markdown::{self, LineKind},
    },
    operations::{error::CommandResult, workspace::MemoryRoot},
    recall::{
        context::{ContextBlock, ContextPart, ContextPartKind},
        framing::FramedText,
    },
    store::fs::layout::FileKind,
};

/// Returns the logs among these files, each with its path, oldest first.
pub(super) fn logs_among(root: &MemoryRoot, files: &[String]) -> Vec<(Stem, String)> {
    let layout = root.vault.layout();
    let is_log = |it: &&String| layout.kind_of(it) == Some(FileKind::Log);
    let logs = files.iter().filter(is_log);
    let mut logs: Vec<_> = logs.filter_map(|it| Some((layout.stem_at(it)?, it.clone()))).collect();
    logs.sort();
    logs
}

/// Adds the last `count` of these logs as parts.
pub(super) fn add_last_logs(
    root: &MemoryRoot,
    logs: &[(Stem, String)],
    count: usize,
    parts: &mut Vec<ContextPart>,
) -> CommandResult<()> {
    for (stem, path) in &logs[logs.len().saturating_sub(count)..] {
        let Some(FramedText { text, .. }) = root.read_sanitized(path)? else { continue };
        let body = frontmatter::split(&text).body(&text).to_owned();
        // A comment is seen by nobody who reads the log as it is shown, so no agent acts on it.
        let kinds = markdown::classify_lines(body.lines());
        let shown = body.lines().zip(kinds).filter(|(_, it)| *it != LineKind::Comment);
        let lines = shown.map(|(line, kind)| match kind {
            LineKind::AfterComment { text_at } => &line[text_at..],
            _ => line,
        });
        let lines = lines.map(strip_inline_comments);
        let lines = lines.filter(|it| !it.trim().is_empty() && !it.starts_with("# ")).collect();
        let (head, command) = (format!("Log {stem}"), format!("memoird show {stem}"));
        let (kind, blocks) = (ContextPartKind::Log, ContextBlock::of_lines(lines));
        if !blocks.is_empty() {
            parts.push(ContextPart { kind, head, blocks, left_out: 0, command });
        }
    }
    Ok(())
}

/// Removes the HTML comments within a line; one that is not closed hides the rest of it.
fn strip_inline_comments(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some((before, comment)) = rest.split_once("<!--") {
        shown.push_str(before);
        rest = comment.split_once("-->").map_or("", |it| it.1);
    }
    shown + rest
}
