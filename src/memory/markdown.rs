//! The structure of Markdown, line by line.
//!
//! A log is addressed by lines, so each line is classified on its own, without a syntax tree. The
//! rules are those of `CommonMark` 0.31 and of GFM tables, as far as a single pass over lines can
//! apply them.

/// The kind of a line.
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
        /// `[ ]` or `[x]`, if present.
        task: Option<bool>,
    },
    /// A row of a table.
    TableRow,
    /// The line under a table's header, a thematic break, or the underline of a heading.
    Rule,
    /// The fence that opens or closes a code block.
    Fence,
    /// A line inside a code block, fenced or indented.
    Code,
    /// A line of a block quote, perhaps inside a list item, or a line that continues a paragraph of
    /// the quote without its own `>`. The text starts at byte `text_at`.
    Quote {
        /// Byte offset of the words after all `>`.
        text_at: usize,
    },
    /// A line of an HTML comment that begins a line.
    Comment,
    /// The end of such a comment and text after it, which starts at byte `text_at`.
    AfterComment {
        /// Byte offset of the words.
        text_at: usize,
    },
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
            | Self::Quote { text_at }
            | Self::AfterComment { text_at } => text_at,
            _ => line.len() - line.trim_start().len(),
        }
    }
}

/// Classifies each line of a body.
pub fn classify_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<LineKind> {
    let lines: Vec<&str> = lines.into_iter().collect();
    let mut reader = LineClassifier { lines: &lines, ..LineClassifier::default() };
    (0..lines.len()).map(|at| reader.classify(at)).collect()
}

/// Classifies each line of a file made of bullets: a `>` or three backticks at the start of a
/// bullet belong to its words.
pub fn classify_summary_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<LineKind> {
    let mut fence: Option<(char, usize)> = None;
    let mut in_comment = false;
    let mut kinds = Vec::new();
    for line in lines {
        let trimmed = line.trim();
        let kind = if let Some(open) = fence {
            let closes = is_closing_fence(trimmed, open);
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

/// An open code fence.
#[derive(Clone, Copy)]
struct OpenFence {
    mark: (char, usize),
    /// The column at which the enclosing list item has its words; 0 outside of lists.
    column: usize,
    /// Its own indent.
    indent: usize,
}

/// Classifies lines in order and remembers what earlier lines opened.
#[derive(Default)]
struct LineClassifier<'l> {
    lines: &'l [&'l str],
    fence: Option<OpenFence>,
    /// Where the next line that looks like a fence was searched from, and where it is.
    next_fence: Option<(usize, Option<usize>)>,
    in_comment: bool,
    /// From this line on, no comment is closed.
    unclosed_from: Option<usize>,
    /// The columns at which the open list items have their words.
    items: Vec<usize>,
    /// The open fence inside a quote.
    quoted_fence: Option<(char, usize)>,
    /// Whether a paragraph of a quote is open, which a line without `>` continues.
    in_quote_paragraph: bool,
    was_blank: bool,
    /// The kind of the line above.
    previous: Option<LineKind>,
}

impl LineClassifier<'_> {
    fn classify(&mut self, at: usize) -> LineKind {
        let line = self.lines[at];
        let trimmed = line.trim();
        let kind = if self.in_comment {
            self.classify_comment(line)
        } else if let Some(kind) = self.classify_in_fence(at, trimmed) {
            kind
        } else {
            self.classify_outside_fence(at, trimmed)
        };
        if !matches!(kind, LineKind::Quote { .. }) {
            (self.in_quote_paragraph, self.quoted_fence) = (false, None);
        }
        self.was_blank = trimmed.is_empty();
        self.previous = Some(kind);
        kind
    }

    /// Classifies a line while a fence is open; `None` if the line ends the fence without belonging
    /// to it.
    fn classify_in_fence(&mut self, at: usize, trimmed: &str) -> Option<LineKind> {
        let fence = self.fence?;
        let line = self.lines[at];
        let is_outside = !trimmed.is_empty() && indent_of(line) < fence.column;
        // Further to the right, it is a line of the code.
        let is_in_reach = indent_within(line, fence.column) < 4 || indent_of(line) <= fence.indent;
        let closes = is_in_reach && is_closing_fence(trimmed, fence.mark);
        // A closing fence that lost its indent still closes, right below the code.
        if closes && !(is_outside && self.was_blank) {
            self.fence = None;
            return Some(LineKind::Fence);
        }
        if is_outside {
            if !self.is_pasted_code(at, fence) {
                self.fence = None;
                return None;
            }
            self.fence = Some(OpenFence { column: 0, ..fence });
        }
        Some(LineKind::Code)
    }

    /// Returns whether a line outside the list item is still code, pasted without the indent of its
    /// fences.
    fn is_pasted_code(&mut self, at: usize, fence: OpenFence) -> bool {
        let line = self.lines[at];
        if self.was_blank || plain_kind(line, line.trim()) != LineKind::Text {
            return false;
        }
        self.next_fence(at).is_some_and(|it| {
            is_closing_fence(it.trim(), fence.mark) && indent_of(it) >= fence.column
        })
    }

    /// Returns the next line that looks like a fence. Each line is searched once, however many items with
    /// open fences come before it.
    fn next_fence(&mut self, at: usize) -> Option<&str> {
        let known =
            self.next_fence.filter(|&(from, found)| from <= at && found.is_none_or(|it| at <= it));
        let (from, found) = known.unwrap_or_else(|| {
            let is_fence = |it: &&str| opening_fence(it.trim()).is_some();
            (at, self.lines[at..].iter().position(is_fence).map(|it| at + it))
        });
        self.next_fence = Some((from, found));
        found.map(|it| self.lines[it])
    }

    fn classify_outside_fence(&mut self, at: usize, trimmed: &str) -> LineKind {
        let line = self.lines[at];
        if trimmed.is_empty() {
            return LineKind::Blank;
        }
        let plain = plain_kind(line, trimmed);
        let indent = indent_of(line);
        // A paragraph continues on lines with less indent.
        if plain != LineKind::Text || self.was_blank {
            while self.items.last().is_some_and(|&it| it > indent) {
                self.items.pop();
            }
        }
        let within = self.items.last().copied().unwrap_or(0);
        let inner_indent = indent_within(line, within);
        // Below an item, two columns more than its words were meant as code, or pasted, too.
        let is_in_item = within > 0
            && indent >= 4
            && inner_indent >= 2
            && plain == LineKind::Text
            && (self.was_blank || self.previous == Some(LineKind::Code));
        if is_in_item || (inner_indent >= 4 && self.begins_indented_code(at, within, plain)) {
            return LineKind::Code;
        }
        if is_item_of_code(line, plain) {
            return LineKind::Code;
        }
        let inner = parse_markers(line);
        if let Some(text_at) = inner.quote_at {
            self.items.extend(&inner.columns);
            return self.classify_quote(line, text_at);
        }
        let fence_at = inner.at + role_width(&line[inner.at..]);
        if let Some(mark) = opening_fence(line[fence_at..].trim()) {
            self.items.extend(&inner.columns);
            let column = self.items.iter().rev().find(|&&it| it <= columns(&line[..inner.at]));
            let column = column.copied().unwrap_or(0);
            self.fence = Some(OpenFence { mark, column, indent });
            return LineKind::Fence;
        }
        if trimmed.starts_with("<!--") && self.is_comment_closed(at) {
            return self.classify_comment(line);
        }
        if self.in_quote_paragraph && self.continues_quote(line, plain, indent) {
            return LineKind::Quote { text_at: line.len() - line.trim_start().len() };
        }
        if matches!(plain, LineKind::ListItem { .. }) {
            self.items.extend(&inner.columns);
        }
        plain
    }

    /// Returns whether a line with the indent of code is code: it continues no paragraph. Text far to the
    /// right of the text above it counts as code, too, because it was pasted; below the first line of a list
    /// item only after a colon, because there the indent may be the width of a time.
    fn begins_indented_code(&self, at: usize, within: usize, plain: LineKind) -> bool {
        let above = || self.lines[at - 1];
        let indent = |line: &str| indent_within(line, within);
        match self.previous {
            _ if self.was_blank => true,
            Some(LineKind::Text | LineKind::AfterComment { .. }) => {
                plain == LineKind::Text && indent(self.lines[at]) >= indent(above()) + 4
            }
            Some(LineKind::ListItem { .. }) => {
                plain == LineKind::Text && above().trim_end().ends_with(':')
            }
            Some(LineKind::Quote { .. }) => !self.in_quote_paragraph,
            Some(LineKind::TableRow) => false,
            _ => true,
        }
    }

    fn classify_quote(&mut self, line: &str, text_at: usize) -> LineKind {
        let text = &line[text_at..];
        let words = text[parse_markers(text).at..].trim();
        self.in_quote_paragraph = false;
        if let Some(mark) = self.quoted_fence {
            if is_closing_fence(words, mark) {
                self.quoted_fence = None;
            }
        } else if let Some(mark) = opening_fence(words) {
            self.quoted_fence = Some(mark);
        } else {
            let kind = plain_kind(words, words);
            self.in_quote_paragraph =
                !matches!(kind, LineKind::Blank | LineKind::Heading { .. } | LineKind::Rule);
        }
        LineKind::Quote { text_at }
    }

    /// Returns whether a line without `>` continues the paragraph of the quote above it: it does
    /// not begin anything that may interrupt a paragraph.
    fn continues_quote(&self, line: &str, plain: LineKind, indent: usize) -> bool {
        let within = self.items.last().copied().unwrap_or(0);
        match plain {
            LineKind::Text | LineKind::TableRow => true,
            LineKind::ListItem { .. } => {
                let marker = line.trim_start();
                let breaks_in = marker.starts_with(['-', '*', '+'])
                    || marker.starts_with("1.")
                    || marker.starts_with("1)");
                !breaks_in || indent >= within + 4
            }
            _ => false,
        }
    }

    /// Classifies a line that is, begins, or ends a comment.
    fn classify_comment(&mut self, line: &str) -> LineKind {
        let mut at = 0;
        loop {
            let Some(end) = line[at..].find("-->") else {
                self.in_comment = true;
                return LineKind::Comment;
            };
            self.in_comment = false;
            at += end + "-->".len();
            at += line[at..].len() - line[at..].trim_start().len();
            let rest = &line[at..];
            if rest.is_empty() {
                return LineKind::Comment;
            }
            if !(rest.starts_with("<!--") && rest.contains("-->")) {
                return LineKind::AfterComment { text_at: at };
            }
        }
    }

    /// Returns whether the comment that begins in a line is closed. An unclosed one hides nothing.
    fn is_comment_closed(&mut self, at: usize) -> bool {
        if self.unclosed_from.is_some_and(|it| it <= at) {
            return false;
        }
        let is_closed = self.lines[at..].iter().any(|it| it.contains("-->"));
        if !is_closed {
            self.unclosed_from = Some(at);
        }
        is_closed
    }
}

/// The list and quote markers at the start of a line.
struct LineMarkers {
    /// Byte offset after the last marker.
    at: usize,
    /// Byte offset of the words after the last `>`, if any.
    quote_at: Option<usize>,
    /// The columns at which the list items that begin here have their words.
    columns: Vec<usize>,
}

fn parse_markers(line: &str) -> LineMarkers {
    /// Nobody nests deeper; this bounds the cost of a line with a thousand markers.
    const MARKERS_MAX: usize = 32;
    let skip = |at: usize| at + (line[at..].len() - line[at..].trim_start().len());
    let mut found = LineMarkers { at: skip(0), quote_at: None, columns: Vec::new() };
    for _ in 0..MARKERS_MAX {
        let rest = &line[found.at..];
        if rest.starts_with('>') {
            found.at = line.len() - rest.trim_start_matches(['>', ' ', '\t']).len();
            found.quote_at = Some(found.at);
        } else if let Some(width) = list_marker(rest).filter(|_| !is_rule(rest.trim())) {
            let behind = found.at + width;
            found.at = task_box(line, skip(behind)).1;
            if found.quote_at.is_none() {
                // The box is a word of the item, not part of its marker.
                let words = skip(behind);
                let empty = usize::from(words == line.len());
                found.columns.push(columns(&line[..words]).max(columns(&line[..behind]) + empty));
            }
        } else {
            break;
        }
    }
    found
}

/// Returns whether the first block of a list item is indented code.
fn is_item_of_code(line: &str, kind: LineKind) -> bool {
    let LineKind::ListItem { text_at, task: None, .. } = kind else { return false };
    let lead = line.len() - line.trim_start().len();
    let marker = lead + list_marker(&line[lead..]).unwrap_or(0);
    columns(&line[..text_at]) > columns(&line[..marker]) + 4
}

/// Returns the width of the role before a message in a saved transcript: `assistant: `. The message may
/// begin with a fence.
fn role_width(text: &str) -> usize {
    ["user: ", "assistant: "].iter().find(|it| text.starts_with(**it)).map_or(0, |it| it.len())
}

/// Returns the columns of white space at the start of a line.
fn indent_of(line: &str) -> usize {
    columns(&line[..line.len() - line.trim_start().len()])
}

/// Returns the columns of white space after the column at which a list item has its words. A tab there counts as
/// in the text before it was indented.
fn indent_within(line: &str, column: usize) -> usize {
    let (mut outer, mut inner) = (0, 0);
    for c in line.chars().take_while(|it| it.is_whitespace()) {
        let at = if outer < column { &mut outer } else { &mut inner };
        *at = next_column(*at, c);
    }
    (outer + inner).saturating_sub(column)
}

/// Returns whether a line closes the fence with that mark and width.
fn is_closing_fence(trimmed: &str, (mark, width): (char, usize)) -> bool {
    trimmed.len() >= width && trimmed.chars().all(|c| c == mark)
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

/// A rule is three or more of one mark, or the separator line of a table.
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

/// Returns the state of the task box at byte `at`, and where the words begin.
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

/// Returns the width of white space: a tab counts to the next multiple of 4.
fn columns(lead: &str) -> usize {
    lead.chars().fold(0, next_column)
}

fn next_column(column: usize, c: char) -> usize {
    if c == '\t' { (column / 4 + 1) * 4 } else { column + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: LineKind, text: &str) {
        let kind = classify_lines([line])[0];
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
        check(" \t1. [x] c", LineKind::Code, "1. [x] c");
        check("   1. [x] c", LineKind::ListItem { indent: 3, text_at: 10, task: Some(true) }, "c");
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
        assert_eq!(classify_lines(body.split('\n')), expected);
        assert_eq!(classify_summary_lines(body.split('\n')), expected);
    }

    /// One letter per line for its kind.
    #[track_caller]
    fn check_body(body: &str, expected: &str) {
        let letter = |kind: &LineKind| match kind {
            LineKind::Blank => '.',
            LineKind::Heading { .. } => 'h',
            LineKind::ListItem { .. } => 'i',
            LineKind::TableRow => 'r',
            LineKind::Rule => '-',
            LineKind::Fence => 'f',
            LineKind::Code => 'c',
            LineKind::Quote { .. } => 'q',
            LineKind::Comment => 'o',
            LineKind::AfterComment { .. } => 'a',
            LineKind::Text => 't',
        };
        let found: String = classify_lines(body.split('\n')).iter().map(letter).collect();
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn a_message_of_a_transcript_may_begin_with_a_fence() {
        check_body("assistant: ```sh\nmake\n```\nuser: b", "fcft");
        check_body("note: ```sh\nmake", "tt");
    }

    #[test]
    fn a_list_item_may_begin_with_a_fence() {
        check_body("- Ran:\n- ```sh\n  make\n  ```\n- b\n\n```\nc\n```", "ifcfi.fcf");
        check_body("1. ```text\n   a\n   ```\nb", "fcft");
        check_body("- - ~~~\n    a\n    ~~~\n  b", "fcft");
        check_body("* [ ] ```\n  a\n  ```\nb", "fcft");
        // The fence ends with the item.
        check_body("- ```sh\n  make\n- b\nc", "fcit");
        check_body("- a\n  ```\n  make\n\n  all\n\nb", "ifcccct");
        check_body("- ```\n  a\nb", "fct");
        check_body("- ```\n  a\n\n```\nb\n```\nc", "fccfcft");
        // If the indent was forgotten, the fences still count.
        check_body("- a\n  ```\nb\n  ```\nc", "ifcft");
        check_body("- a\n  ```\n  b\n```\nc", "ifcft");
    }

    #[test]
    fn a_fence_or_an_item_may_be_too_far_to_the_right() {
        check_body("```\na\n    ```\nb\n```\nc", "fcccft");
        check_body("- a\n  ```\n  b\n      ```\n  c\n  ```\nd", "ifcccft");
        check_body("- a\n      ```\n      b\n      ```\nc", "ifcft");
        check_body("-     a\n-\ta\n1.  b\n1.      c\n- 09:05     d", "ciici");
    }

    #[test]
    fn quotes_in_items_and_their_continuation_lines() {
        for line in ["- > a", "1. > a", "* >a", "  - > a", "- [ ] > a", "- - > > a", "> - > a"] {
            let kind = classify_lines([line])[0];
            let is_quote = matches!(kind, LineKind::Quote { .. });
            assert!(is_quote && &line[kind.text_at(line)..] == "a", "{line}");
        }
        check_body("> a\nb\n\nc", "qq.t");
        check_body("- > a\n  b\nc\n- d", "qqqi");
        check_body("> a\n2. b\n• c\n1. d", "qqqi");
        check_body("> a\n    - b\n# c", "qqh");
        // Nothing is open that could continue.
        check_body("> # a\nb", "qt");
        check_body("> ```\n> a\n> ```\nb", "qqqt");
        check_body("> ```\n> a\nb", "qqt");
        check_body("> a\n>\nb", "qqt");
    }

    #[test]
    fn indented_code_is_code_but_a_paragraph_goes_on() {
        check_body("a\n\n    b\n\tc\n\n    - d\ne", "t.cc.ct");
        check_body("a\n    b\n# c\n    d", "tchc");
        check_body("- a\n  b\n      c\n  d", "itct");
        check_body("a:\n    b\n    c\nd", "tcct");
        check_body("a:\n    - b", "ti");
        check_body("- a\n\n  b\n\n      c\n    - d", "i.t.ci");
        check_body("- 09:05 a\n        b\n        c\n- d:\n      e", "ittic");
        check_body("1. a\n\n    b", "i.t");
        check_body("- a:\n  \tb\n  \tc\n\n\td", "icc.c");
        check_body("> a\n    b\n\n    > c", "qq.c");
    }

    #[test]
    fn comments_hide_only_their_own_text() {
        check_body("<!-- a -->\nb\n<!-- c\n\nd -->\ne", "otooot");
        check_body("<!-- a --> b\n<!-- c\nd --> e\n<!-- f --><!-- g -->", "aoao");
        check_body("<!-- a\nb\n\nc", "tt.t");
        check("<!-- a --> b", LineKind::AfterComment { text_at: 11 }, "b");
    }

    #[test]
    fn markup_at_the_start_of_a_summary_bullet_is_text() {
        let lines = ["- > a", "- ```", "- b"];
        let kinds = classify_summary_lines(lines);
        assert!(kinds.iter().all(|it| matches!(it, LineKind::ListItem { text_at: 2, .. })));
    }
}
