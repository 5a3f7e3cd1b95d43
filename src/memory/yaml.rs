//! The guard in front of every YAML reader: what costs a reader time or memory out of proportion is
//! refused by one linear scan before `serde_yaml` sees the text.
//!
//! Any file may come from a stranger. The scan refuses deep nesting (`libyaml` takes quadratic time
//! over nested brackets), tags, several documents, and, in frontmatter, anchors and aliases. No error
//! quotes the text.
//!
//! Called by [`frontmatter`](super::frontmatter) and by the reader of `memoird.yaml`.

/// The deepest nesting that is read.
const DEPTH_MAX: usize = 32;

/// The most brackets that may be open in frontmatter, quoted text included.
pub(super) const BRACKETS_MAX: usize = 1000;

/// The same in other files, which quote less text.
const FILE_BRACKETS_MAX: usize = 64;

/// The kind of text that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YamlScope {
    /// The text between two fences. Lines count from 2, since the fence is the first line of the
    /// file. Anchors and aliases are refused.
    Frontmatter,
    /// A whole file. It may begin with directives and `---`. Its reader limits what aliases expand
    /// to.
    File,
}

/// YAML that is not passed on to a reader.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlViolation {
    /// Lists in lists in lists.
    #[error("line {line}: nested deeper than {DEPTH_MAX} levels")]
    TooDeep {
        /// Where the limit is exceeded.
        line: usize,
    },
    /// `&name` or `*name`.
    #[error("line {line}: anchors (`&`) and aliases (`*`) are not read; put such text in quotes")]
    Alias {
        /// Its line.
        line: usize,
    },
    /// `!name`.
    #[error("line {line}: tags (`!`) are not read; put such text in quotes")]
    Tag {
        /// Its line.
        line: usize,
    },
    /// A second document, or a directive.
    #[error("line {line}: more than one document, or a directive; write a single document")]
    MultipleDocuments {
        /// Its line.
        line: usize,
    },
}

/// Checks YAML text in one linear scan.
///
/// # Errors
///
/// Returns the first violation.
pub fn check(yaml: &str, scope: YamlScope) -> Result<(), YamlViolation> {
    YamlScanner::new(yaml, scope).run()
}

/// One pass over YAML text that knows just enough of the grammar to distinguish a nested list, an
/// alias, or a tag from the same characters in a string.
struct YamlScanner<'a> {
    rest: &'a str,
    /// The current line of the file.
    line: usize,
    scope: YamlScope,
    /// Whether the document may still begin with directives or a marker.
    may_begin: bool,
    /// Columns of the open block collections, ascending; a list and a mapping may share one.
    open: Vec<(usize, bool)>,
    flow_depth: usize,
}

impl<'a> YamlScanner<'a> {
    fn new(yaml: &'a str, scope: YamlScope) -> Self {
        let line = match scope {
            YamlScope::Frontmatter => 2,
            YamlScope::File => 1,
        };
        let may_begin = scope == YamlScope::File;
        Self { rest: yaml, line, scope, may_begin, open: Vec::new(), flow_depth: 0 }
    }

    fn run(mut self) -> Result<(), YamlViolation> {
        // Even in text that this scan takes for quoted, a reader never gets many open brackets.
        let brackets_max = match self.scope {
            YamlScope::Frontmatter => BRACKETS_MAX,
            YamlScope::File => FILE_BRACKETS_MAX,
        };
        if let Err(at) = check_open_brackets(self.rest, brackets_max) {
            let line = self.line + self.rest[..at].matches('\n').count();
            return Err(YamlViolation::TooDeep { line });
        }
        while !self.rest.is_empty() {
            self.line()?;
        }
        Ok(())
    }

    /// Returns whether the rest begins with a line that begins or ends a document.
    fn starts_with_marker(&self) -> bool {
        let after = self.rest.strip_prefix("---").or_else(|| self.rest.strip_prefix("..."));
        after.is_some_and(|it| !it.starts_with(|c: char| !c.is_whitespace()))
    }

    /// Reads a directive or a marker at the start of a line; a second document is refused.
    fn read_document_start(&mut self) -> Result<(), YamlViolation> {
        let is_directive = self.rest.starts_with('%');
        if is_directive || self.starts_with_marker() {
            let is_end = self.scope == YamlScope::File && self.rest.starts_with("...");
            if !self.may_begin && !is_end {
                return Err(YamlViolation::MultipleDocuments { line: self.line });
            }
            if is_directive {
                self.skip_to_break();
            } else {
                self.rest = &self.rest[3..];
                // What follows the end of a document is left to the reader, which refuses a second one.
                self.may_begin = is_end;
            }
        }
        Ok(())
    }

    /// Scans one line, and the further lines of its last value.
    fn line(&mut self) -> Result<(), YamlViolation> {
        self.read_document_start()?;
        let mut column = self.skip_blanks();
        // The column of the innermost key or dash of the line; a block scalar is indented deeper.
        let mut parent = None;
        let mut value_next = true;
        while let Some(c) = self.rest.chars().next() {
            if is_break(c) {
                self.advance();
                return Ok(());
            }
            self.may_begin &= c == '#';
            let next_blank = self.rest[c.len_utf8()..].chars().next().is_none_or(is_blank);
            let in_block = self.flow_depth == 0;
            match c {
                '#' => {
                    self.skip_to_break();
                    continue;
                }
                '-' | '?' if in_block && next_blank && value_next => {
                    self.push_block(column, c == '-')?;
                    parent = Some(column);
                    self.advance();
                    column += 1 + self.skip_blanks();
                    continue;
                }
                '[' | '{' if value_next || !in_block => {
                    self.flow_depth += 1;
                    if self.flow_depth + self.open.len() > DEPTH_MAX {
                        return Err(YamlViolation::TooDeep { line: self.line });
                    }
                    self.advance();
                }
                ']' | '}' | ',' if !in_block => {
                    if c != ',' {
                        self.flow_depth -= 1;
                    }
                    self.advance();
                }
                '&' | '*' if value_next => {
                    if self.scope == YamlScope::Frontmatter {
                        return Err(YamlViolation::Alias { line: self.line });
                    }
                    column += self.skip_anchor() + self.skip_blanks();
                    // An anchor is followed by its value; an alias is a value.
                    value_next = c == '&';
                    continue;
                }
                '!' if value_next => return Err(YamlViolation::Tag { line: self.line }),
                '|' | '>' if in_block && value_next => {
                    // On a line of its own it belongs to the innermost collection further left.
                    let outer = || self.open.iter().rev().find(|it| it.0 < column).map(|it| it.0);
                    self.skip_block_scalar(parent.or_else(outer));
                    return Ok(());
                }
                '"' | '\'' if value_next => {
                    self.open_block(column, parent)?;
                    self.skip_quoted(c);
                    value_next = false;
                    column += 1;
                    continue;
                }
                ':' if next_blank || !in_block => {
                    parent = parent.max(self.open.last().map(|&(column, _)| column));
                    self.advance();
                }
                _ => {
                    self.open_block(column, parent)?;
                    column += self.skip_plain();
                    value_next = false;
                    continue;
                }
            }
            value_next = true;
            column += 1 + self.skip_blanks();
        }
        Ok(())
    }

    /// Opens a mapping or scalar at this column, unless the line already opened one.
    fn open_block(&mut self, column: usize, parent: Option<usize>) -> Result<(), YamlViolation> {
        let begins = parent.is_none_or(|it| it < column && self.open.last() == Some(&(it, true)));
        if self.flow_depth == 0 && begins { self.push_block(column, false) } else { Ok(()) }
    }

    fn push_block(&mut self, column: usize, is_list: bool) -> Result<(), YamlViolation> {
        while self.open.last().is_some_and(|&it| it > (column, is_list)) {
            self.open.pop();
        }
        if self.open.last() != Some(&(column, is_list)) {
            self.open.push((column, is_list));
        }
        if self.open.len() > DEPTH_MAX {
            return Err(YamlViolation::TooDeep { line: self.line });
        }
        Ok(())
    }

    fn advance(&mut self) {
        let mut chars = self.rest.chars();
        let c = chars.next();
        self.rest = chars.as_str();
        if c == Some('\r') && self.rest.starts_with('\n') {
            self.rest = &self.rest[1..];
        }
        self.line += usize::from(c.is_some_and(is_break));
    }

    /// Skips blanks within the line and returns their number.
    fn skip_blanks(&mut self) -> usize {
        let trimmed = self.rest.trim_start_matches([' ', '\t']);
        let width = self.rest.len() - trimmed.len();
        self.rest = trimmed;
        width
    }

    fn skip_to_break(&mut self) {
        self.rest = &self.rest[self.rest.find(is_break).unwrap_or(self.rest.len())..];
    }

    fn skip_quoted(&mut self, quote: char) {
        self.advance();
        while let Some(c) = self.rest.chars().next() {
            self.advance();
            if c == '\\' && quote == '"' {
                self.advance();
            } else if c == quote {
                if quote == '\'' && self.rest.starts_with('\'') {
                    self.advance();
                } else {
                    return;
                }
            }
        }
    }

    /// Skips a plain scalar up to its end on this line; returns its width in characters.
    fn skip_plain(&mut self) -> usize {
        let mut width = 0;
        let mut after_blank = false;
        while let Some(c) = self.rest.chars().next() {
            let next = self.rest[c.len_utf8()..].chars().next();
            let flow = self.flow_depth > 0;
            let ends = is_break(c)
                || (c == '#' && after_blank)
                || (c == ':' && width > 0 && next.is_none_or(is_blank))
                || (flow && matches!(c, ',' | '[' | ']' | '{' | '}') && width > 0);
            if ends {
                break;
            }
            after_blank = is_blank(c);
            width += 1;
            self.advance();
        }
        width
    }

    /// Skips an anchor or an alias; returns its width in bytes.
    fn skip_anchor(&mut self) -> usize {
        let ends = |c: char| is_blank(c) || matches!(c, ',' | '[' | ']' | '{' | '}');
        let width = self.rest.find(ends).unwrap_or(self.rest.len());
        self.rest = &self.rest[width..];
        width
    }

    /// Skips the header of a block scalar and all lines that belong to it.
    fn skip_block_scalar(&mut self, parent: Option<usize>) {
        let header = &self.rest[..self.rest.find(is_break).unwrap_or(self.rest.len())];
        let explicit = header.chars().take(3).find_map(|c| c.to_digit(10));
        let mut indent = explicit.map(|it| parent.unwrap_or(0) + it as usize);
        self.skip_to_break();
        self.advance();
        while !self.rest.is_empty() {
            let line = &self.rest[..self.rest.find(is_break).unwrap_or(self.rest.len())];
            let spaces = line.len() - line.trim_start_matches(' ').len();
            if line.len() > spaces {
                let least = *indent.get_or_insert(spaces);
                if spaces < least || parent.is_some_and(|it| spaces <= it) {
                    return;
                }
            }
            self.skip_to_break();
            self.advance();
        }
    }
}

/// The line breaks of YAML 1.1, which `libyaml` follows.
fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t') || is_break(c)
}

/// Counts open brackets, quoted ones included; fails at the offset where there are more than `max`.
pub(super) fn check_open_brackets(yaml: &str, max: usize) -> Result<(), usize> {
    let mut open = 0_usize;
    for (at, b) in yaml.bytes().enumerate() {
        match b {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        if open > max {
            return Err(at);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "one-line cases")]
    fn check_file(yaml: &str, expected: Result<(), YamlViolation>) {
        assert_eq!(check(yaml, YamlScope::File), expected, "{yaml:?}");
    }

    #[test]
    fn a_file_may_begin_with_a_marker_and_use_aliases() {
        use YamlViolation::{MultipleDocuments, Tag, TooDeep};
        for begin in ["---\n", "--- # mine\n", "# mine\n\n---\n", "%YAML 1.1\n---\n"] {
            check_file(&format!("{begin}a: 1\n"), Ok(()));
        }
        check_file("a: 1\n%YAML 1.1\n", Err(MultipleDocuments { line: 2 }));
        check_file("a: &x [1, {b: 2}]\nc: *x\nd: [*x, *x]\n", Ok(()));
        check_file("a: 1\n---\nb: 2\n", Err(MultipleDocuments { line: 2 }));
        check_file("a: 1\n...\n", Ok(()));
        check_file("a: 1\n... # the end\n\n", Ok(()));
        check_file(&format!("a: '{}'\n", "[".repeat(64)), Ok(()));
        check_file(&format!("a: '{}'\n", "[".repeat(65)), Err(TooDeep { line: 1 }));
        check_file("a: !x 1\n", Err(Tag { line: 1 }));
        check_file(&"&a [".repeat(40), Err(TooDeep { line: 1 }));
        check_file(&format!("--- {}", "- &a ".repeat(40)), Err(TooDeep { line: 1 }));
    }
}
