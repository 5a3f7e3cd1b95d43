//! The structure of Markdown, line by line.
//!
//! A log is addressed by lines, so its structure is told by lines too: what a line is, not which
//! tree it hangs in. The rules are those of `CommonMark` 0.31 and the tables of GFM as far as a
//! single pass over lines can tell them.

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Only white space.
    Blank,
    /// `# Title`, level 1 to 6. The text starts at byte `text_at`.
    Heading {
        /// 1 to 6.
        level: u8,
        /// Byte offset of the title.
        text_at: usize,
    },
    /// The first line of a list item.
    ListItem {
        /// Columns of white space before the marker (a tab counts to the next multiple of 4).
        indent: usize,
        /// Byte offset of the words, after marker and task box.
        text_at: usize,
        /// `[ ]` or `[x]`, when there is one.
        task: Option<bool>,
    },
    /// A row of a table.
    TableRow,
    /// The line under a table's header, a thematic break, or the underline of a heading.
    Rule,
    /// The fence that opens or closes a code block.
    Fence,
    /// A line inside a fenced code block.
    Code,
    /// A line of a block quote. The text starts at byte `text_at`.
    Quote {
        /// Byte offset of the words after all `>`.
        text_at: usize,
    },
    /// A line of an HTML comment that begins a line.
    Comment,
    /// Any other text: a paragraph, or the continuation of a list item.
    Text,
}

impl LineKind {
    /// Returns whether the line can carry a statement.
    pub fn is_content(self) -> bool {
        !matches!(self, Self::Blank | Self::Rule | Self::Fence | Self::Comment)
    }

    /// Returns the byte offset at which the words of the line start.
    pub fn text_at(self, line: &str) -> usize {
        match self {
            Self::Heading { text_at, .. }
            | Self::ListItem { text_at, .. }
            | Self::Quote { text_at } => text_at,
            _ => line.len() - line.trim_start().len(),
        }
    }
}

/// Tells the kind of each line of a body.
pub fn kinds<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<LineKind> {
    let mut fence: Option<(char, usize)> = None;
    let mut in_comment = false;
    let mut kinds = Vec::new();
    for line in lines {
        let trimmed = line.trim();
        let kind = if let Some((mark, width)) = fence {
            let closes = trimmed.len() >= width && trimmed.chars().all(|c| c == mark);
            if closes {
                fence = None;
            }
            if closes { LineKind::Fence } else { LineKind::Code }
        } else if in_comment {
            in_comment = !trimmed.contains("-->");
            LineKind::Comment
        } else if let Some(opened) = opening_fence(trimmed) {
            fence = Some(opened);
            LineKind::Fence
        } else if trimmed.starts_with("<!--") {
            in_comment = !trimmed.contains("-->");
            LineKind::Comment
        } else {
            plain_kind(line, trimmed)
        };
        kinds.push(kind);
    }
    kinds
}

/// Returns mark and width of the code fence that the line opens.
fn opening_fence(trimmed: &str) -> Option<(char, usize)> {
    let mark = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let width = trimmed.chars().take_while(|&c| c == mark).count();
    let info = &trimmed[width..];
    (width >= 3 && !(mark == '`' && info.contains('`'))).then_some((mark, width))
}

fn plain_kind(line: &str, trimmed: &str) -> LineKind {
    if trimmed.is_empty() {
        return LineKind::Blank;
    }
    let lead = line.len() - line.trim_start().len();
    if trimmed.starts_with('#') {
        let level = trimmed.bytes().take_while(|&b| b == b'#').count();
        let rest = &trimmed[level..];
        if level <= 6 && (rest.is_empty() || rest.starts_with([' ', '\t'])) {
            let text_at = lead + level + (rest.len() - rest.trim_start().len());
            return LineKind::Heading { level: u8::try_from(level).unwrap_or(6), text_at };
        }
    }
    if is_rule(trimmed) {
        return LineKind::Rule;
    }
    if trimmed.starts_with('>') {
        let text = line[lead..].trim_start_matches(['>', ' ', '\t']);
        return LineKind::Quote { text_at: line.len() - text.len() };
    }
    if trimmed.starts_with('|') && trimmed.len() > 1 {
        return LineKind::TableRow;
    }
    match list_marker(&line[lead..]) {
        Some(width) => {
            let after = &line[lead + width..];
            let at = lead + width + (after.len() - after.trim_start().len());
            let (task, text_at) = task_box(line, at);
            LineKind::ListItem { indent: columns(&line[..lead]), text_at, task }
        }
        None => LineKind::Text,
    }
}

/// Rules are three or more of one mark, and the header lines of tables.
fn is_rule(trimmed: &str) -> bool {
    let marks = trimmed.chars().filter(|c| !c.is_whitespace());
    let break_of = |mark: char| marks.clone().all(|c| c == mark) && marks.clone().count() >= 3;
    let table =
        trimmed.contains('-') && trimmed.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
    break_of('-')
        || break_of('*')
        || break_of('_')
        || break_of('=')
        || (table && trimmed.contains("--"))
}

/// Returns the width in bytes of a list marker (`-`, `*`, `+`, `•`, `12.`, `12)`) before a space.
fn list_marker(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    let width = if matches!(first, '-' | '*' | '+' | '•' | '–') {
        first.len_utf8()
    } else {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        ((1..=9).contains(&digits) && text[digits..].starts_with(['.', ')']))
            .then_some(digits + 1)?
    };
    let rest = &text[width..];
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some(width)
}

/// Returns what the task box at byte `at` says, and where the words begin.
fn task_box(line: &str, at: usize) -> (Option<bool>, usize) {
    let rest = &line[at..];
    let done = match rest.get(..3) {
        Some("[ ]") => false,
        Some("[x]" | "[X]") => true,
        _ => return (None, at),
    };
    let after = &rest[3..];
    if !after.is_empty() && !after.starts_with([' ', '\t']) {
        return (None, at);
    }
    (Some(done), at + 3 + (after.len() - after.trim_start().len()))
}

fn columns(lead: &str) -> usize {
    lead.chars().fold(0, |column, c| if c == '\t' { (column / 4 + 1) * 4 } else { column + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: LineKind, text: &str) {
        let kind = kinds([line])[0];
        assert_eq!(kind, expected, "{line:?}");
        assert_eq!(&line[kind.text_at(line)..], text);
    }

    #[test]
    fn single_lines() {
        check("", LineKind::Blank, "");
        check("  \t", LineKind::Blank, "");
        check("## Task: x", LineKind::Heading { level: 2, text_at: 3 }, "Task: x");
        check("#keep this", LineKind::Text, "#keep this");
        check("####### seven", LineKind::Text, "####### seven");
        check("- a", LineKind::ListItem { indent: 0, text_at: 2, task: None }, "a");
        check("  * [ ] b", LineKind::ListItem { indent: 2, text_at: 8, task: Some(false) }, "b");
        check("\t1. [x] c", LineKind::ListItem { indent: 4, text_at: 8, task: Some(true) }, "c");
        check("• d", LineKind::ListItem { indent: 0, text_at: 4, task: None }, "d");
        check("2026. was", LineKind::ListItem { indent: 0, text_at: 6, task: None }, "was");
        check("-5 degrees", LineKind::Text, "-5 degrees");
        check("---", LineKind::Rule, "---");
        check("|---|:-:|", LineKind::Rule, "|---|:-:|");
        check("| a | b |", LineKind::TableRow, "| a | b |");
        check("> > quoted", LineKind::Quote { text_at: 4 }, "quoted");
        check("**bold** start", LineKind::Text, "**bold** start");
    }

    #[test]
    fn fences_and_comments_span_lines() {
        use LineKind::{Code, Comment, Fence, Text};
        let body = "a\n```rust\n# no heading\n```\nb\n<!-- x\ny -->\nc\n~~~~\n~~~\n~~~~\nd\n```";
        let expected = [
            Text, Fence, Code, Fence, Text, Comment, Comment, Text, Fence, Code, Fence, Text, Fence,
        ];
        assert_eq!(kinds(body.split('\n')), expected);
    }
}
