//! Frontmatter: YAML between two `---` lines, read under limits and written with quotes.
//!
//! Reading is defensive, because anyone may have written the file: the size is capped, a linear
//! scan refuses what costs a YAML reader time or memory out of proportion (deep nesting, anchors,
//! aliases, tags, several documents), and only then `serde_yaml` sees the text. No error quotes
//! the input. Writing is strict: a string stands bare only where every YAML reader, 1.1 or 1.2,
//! takes it for that string.
//!
//! # Invariants
//!
//! - [`split`] changes nothing: frontmatter and body are slices of the text.
//! - What [`FrontmatterWriter`] writes, [`parse`] reads back to the same values.
//!
//! Called by [`log`](super::log), [`document`](super::document), and [`typed`](super::typed).

use std::fmt::{Display, Write as _};

use serde_yaml::{Mapping, Value};

/// The most YAML that is read from one file, in bytes.
pub const YAML_BYTES_MAX: usize = 16 * 1024;

/// The most YAML that is read from a weekly or monthly file of ours, in bytes: it lists one hash
/// for each bullet.
pub const GENERATED_YAML_BYTES_MAX: usize = 1024 * 1024;

/// The deepest nesting that is read. `libyaml` takes quadratic time over nested brackets.
const DEPTH_MAX: usize = 32;

/// The most brackets that may be open even in quoted text.
const BRACKETS_MAX: usize = 1000;

/// The deepest nesting of brackets in a string that is written as it stands.
const WRITTEN_BRACKETS_MAX: usize = 100;

/// A file cut at its frontmatter, by byte offsets: nothing is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontmatterSplit<'a> {
    /// The text between the fences, or `None` without frontmatter.
    pub yaml: Option<&'a str>,
    /// Byte offset at which the body begins.
    pub body_at: usize,
}

impl FrontmatterSplit<'_> {
    /// Returns the body of the text that was split.
    pub fn body<'t>(&self, text: &'t str) -> &'t str {
        &text[self.body_at..]
    }
}

/// Frontmatter that is not read. Lines are those of the file, whose first line is the fence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrontmatterError {
    /// More YAML than is read.
    #[error("the frontmatter has {bytes} bytes, more than the {bytes_max} that are read")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Lists in lists in lists.
    #[error("line {line}: the frontmatter is nested more than {DEPTH_MAX} deep")]
    TooDeep {
        /// Where the limit is passed.
        line: usize,
    },
    /// `&name` or `*name`.
    #[error("line {line}: anchors (`&`) and aliases (`*`) are not read; put such text in quotes")]
    Alias {
        /// Where it stands.
        line: usize,
    },
    /// `!name`.
    #[error("line {line}: tags (`!`) are not read; put such text in quotes")]
    Tag {
        /// Where it stands.
        line: usize,
    },
    /// A second document, or a directive.
    #[error("line {line}: the frontmatter must be a single document without directives")]
    MultipleDocuments {
        /// Where it stands.
        line: usize,
    },
    /// One key twice in one mapping.
    #[error("a key stands twice in the frontmatter{}", at_line(*.line))]
    DuplicateKey {
        /// Where the reader noticed it, if it says.
        line: Option<usize>,
    },
    /// Not YAML.
    #[error("the frontmatter is not valid YAML{}", at_line(*.line))]
    Syntax {
        /// Where the reader noticed it, if it says.
        line: Option<usize>,
    },
    /// A list or a single value where keys are expected.
    #[error("the frontmatter must consist of lines like `key: value`")]
    NotAMapping,
}

fn at_line(line: Option<usize>) -> String {
    line.map(|it| format!(" (near line {it})")).unwrap_or_default()
}

/// Finds the frontmatter of `text`: what stands between a first line `---` and the next one.
///
/// A byte-order mark before the fence, and blanks or a carriage return after it, do not matter. A
/// fence that is never closed is text. What this finds is shown to `gray_matter`, the reader that
/// other programs use: where the two do not see the same frontmatter, nobody can say what its
/// author meant, and all of the text is body.
pub fn split(text: &str) -> FrontmatterSplit<'_> {
    let none = FrontmatterSplit { yaml: None, body_at: 0 };
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lines = text[start..].split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line) && line.ends_with('\n')) else {
        return none;
    };
    let yaml_at = start + first.len();
    let mut at = yaml_at;
    for line in lines {
        if is_fence(line) {
            let (yaml, body_at) = (&text[yaml_at..at], at + line.len());
            let agreed = gray_matter_yaml(&text[start..body_at])
                .is_some_and(|seen| seen.trim().lines().eq(yaml.trim().lines()));
            return if agreed { FrontmatterSplit { yaml: Some(yaml), body_at } } else { none };
        }
        at += line.len();
    }
    none
}

fn is_fence(line: &str) -> bool {
    line.trim_end_matches([' ', '\t', '\r', '\n']) == "---"
}

/// Returns the frontmatter as `gray_matter` cuts it out, line ends normalised.
fn gray_matter_yaml(head: &str) -> Option<String> {
    /// Leaves the YAML unread: the reader that comes with the crate expands aliases without limit.
    struct NoopEngine;

    impl gray_matter::engine::Engine for NoopEngine {
        fn parse(_: &str) -> gray_matter::Result<gray_matter::Pod> {
            Ok(gray_matter::Pod::Null)
        }
    }

    let matter = gray_matter::Matter::<NoopEngine>::new();
    matter.parse::<serde::de::IgnoredAny>(head).ok().map(|entity| entity.matter)
}

/// Reads the YAML of a frontmatter under limits.
///
/// Keys must be unique; no text at all is a mapping without keys.
///
/// # Errors
///
/// Returns what limit or rule the text breaks.
pub fn parse(yaml: &str, bytes_max: usize) -> Result<Mapping, FrontmatterError> {
    if yaml.len() > bytes_max {
        return Err(FrontmatterError::TooLong { bytes: yaml.len(), bytes_max });
    }
    YamlScanner::new(yaml).run()?;
    match serde_yaml::from_str::<Value>(yaml) {
        Ok(Value::Mapping(mapping)) => Ok(mapping),
        Ok(Value::Null) => Ok(Mapping::new()),
        Ok(_) => Err(FrontmatterError::NotAMapping),
        Err(error) => {
            // The text of the error quotes the input; only its place and its kind are passed on.
            let line = error.location().map(|it| it.line() + 1);
            Err(if error.to_string().contains("duplicate entry") {
                FrontmatterError::DuplicateKey { line }
            } else {
                FrontmatterError::Syntax { line }
            })
        }
    }
}

/// One pass over YAML text that knows just enough of its grammar to tell a nested list, an alias,
/// or a tag from the same characters in a string.
struct YamlScanner<'a> {
    rest: &'a str,
    /// Line in the file, from 2: the fence is the first.
    line: usize,
    /// Columns of the open block collections, ascending; a list and a mapping may share one.
    open: Vec<(usize, bool)>,
    flow_depth: usize,
}

impl<'a> YamlScanner<'a> {
    fn new(yaml: &'a str) -> Self {
        Self { rest: yaml, line: 2, open: Vec::new(), flow_depth: 0 }
    }

    fn run(mut self) -> Result<(), FrontmatterError> {
        // Whatever this scan may take for quoted, brackets by the thousand never reach the reader.
        if let Err(at) = check_open_brackets(self.rest, BRACKETS_MAX) {
            let line = 2 + self.rest[..at].matches('\n').count();
            return Err(FrontmatterError::TooDeep { line });
        }
        while !self.rest.is_empty() {
            self.line()?;
        }
        Ok(())
    }

    /// Reads one line, and what its last value needs of the following ones.
    fn line(&mut self) -> Result<(), FrontmatterError> {
        let head = &self.rest[..self.rest.find(is_break).unwrap_or(self.rest.len())];
        let marker = head.get(..3).is_some_and(|it| it == "---" || it == "...")
            && !head[3..].starts_with(|c: char| !c.is_whitespace());
        if marker || head.starts_with('%') {
            return Err(FrontmatterError::MultipleDocuments { line: self.line });
        }
        let mut column = self.skip_blanks();
        // The column of the innermost key or dash of the line: a block scalar is indented by more.
        let mut parent = None;
        let mut value_next = true;
        while let Some(c) = self.rest.chars().next() {
            if is_break(c) {
                self.advance();
                return Ok(());
            }
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
                        return Err(FrontmatterError::TooDeep { line: self.line });
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
                    return Err(FrontmatterError::Alias { line: self.line });
                }
                '!' if value_next => return Err(FrontmatterError::Tag { line: self.line }),
                '|' | '>' if in_block && value_next => {
                    // On a line of its own it hangs in the innermost collection further out.
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

    /// Notes that a mapping or scalar begins here, unless the line has begun one already.
    fn open_block(&mut self, column: usize, parent: Option<usize>) -> Result<(), FrontmatterError> {
        let begins = parent.is_none_or(|it| it < column && self.open.last() == Some(&(it, true)));
        if self.flow_depth == 0 && begins { self.push_block(column, false) } else { Ok(()) }
    }

    fn push_block(&mut self, column: usize, is_list: bool) -> Result<(), FrontmatterError> {
        while self.open.last().is_some_and(|&it| it > (column, is_list)) {
            self.open.pop();
        }
        if self.open.last() != Some(&(column, is_list)) {
            self.open.push((column, is_list));
        }
        if self.open.len() > DEPTH_MAX {
            return Err(FrontmatterError::TooDeep { line: self.line });
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

    /// Skips blanks inside the line and returns their number.
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

    /// Skips a bare string up to what ends it on this line; returns its width.
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

    /// Skips the header of a block scalar and all lines that belong to it.
    fn skip_block_scalar(&mut self, parent: Option<usize>) {
        let header = &self.rest[..self.rest.find(is_break).unwrap_or(self.rest.len())];
        let told = header.chars().take(3).find_map(|c| c.to_digit(10));
        let mut indent = told.map(|it| parent.unwrap_or(0) + it as usize);
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

/// Keys that are not ours: their values, and their lines as they stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtherKeys {
    values: Mapping,
    /// With the comments before each; `None` where the lines do not tell the values alone.
    lines: Option<String>,
}

impl OtherKeys {
    /// Takes what is left of the keys of `yaml` after ours were taken out.
    pub fn new(values: Mapping, yaml: &str) -> Self {
        let lines = extract_lines(yaml, &values);
        Self { values, lines }
    }

    /// Returns the keys and their values, in order.
    pub fn values(&self) -> &Mapping {
        &self.values
    }

    /// Returns what is left without the keys that are to be forgotten, or `None` where all stay. The
    /// comments go with them, since one may say the same.
    pub fn without(&self, goes: &dyn Fn(&str) -> bool) -> Option<Self> {
        let holds = |key: &Value, value: &Value| {
            serde_yaml::to_string(&(key, value)).is_ok_and(|it| goes(&it))
        };
        let mut values = self.values.clone();
        values.retain(|key, value| !holds(key, value));
        let same = values.len() == self.values.len();
        let said = self.lines.as_deref().is_some_and(|it| it.lines().any(goes));
        (!same || said).then_some(Self { values, lines: None })
    }
}

/// Cuts the lines of `keys` out of YAML, each with what belongs to it and the comments before it.
///
/// `None` where they would not be read as the same values: then those are written anew.
fn extract_lines(yaml: &str, keys: &Mapping) -> Option<String> {
    let mut lines = String::new();
    let mut comments = String::new();
    let mut other = false;
    for line in yaml.lines() {
        let is_key = line.contains(':') && !line.starts_with([' ', '\t', '#', '-', '?', '}', ']']);
        if line.starts_with('#') {
            comments.extend([line, "\n"]);
            continue;
        }
        if is_key {
            let key = line.split(':').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
            other = keys.contains_key(key);
        }
        // Comments stay, also those before a key of ours.
        lines.push_str(&std::mem::take(&mut comments));
        if other {
            lines.extend([line, "\n"]);
        }
    }
    lines.push_str(&comments);
    let same = match serde_yaml::from_str::<Value>(&lines) {
        Ok(Value::Mapping(read)) => read.iter().eq(keys.iter()),
        Ok(Value::Null) => keys.is_empty(),
        _ => false,
    };
    // Beside lines of ours there must be room for theirs.
    let fits = check_open_brackets(&lines, BRACKETS_MAX / 2).is_ok();
    (same && fits && !lines.is_empty()).then_some(lines)
}

/// Counts the brackets that are open, in quotes or not; fails where they become more than `max`.
fn check_open_brackets(yaml: &str, max: usize) -> Result<(), usize> {
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

/// Ends every line in `\r\n`.
pub fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Returns whether every line of the text ends in `\r\n`, and there is one.
pub fn is_crlf(text: &str) -> bool {
    text.contains("\r\n")
        && text.split_inclusive('\n').all(|it| !it.ends_with('\n') || it.ends_with("\r\n"))
}

/// Writes a frontmatter key by key, in the order of the calls.
#[derive(Debug)]
pub struct FrontmatterWriter {
    text: String,
    indent: &'static str,
}

impl Default for FrontmatterWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl FrontmatterWriter {
    /// Opens the fence.
    pub fn new() -> Self {
        Self { text: "---\n".to_owned(), indent: "" }
    }

    /// Writes a date, a period, or a flag, which stand without quotes.
    pub fn bare(&mut self, key: &str, value: impl Display) {
        self.line(key, value);
    }

    /// Writes a string.
    pub fn text(&mut self, key: &str, value: &str) {
        self.line(key, scalar(value));
    }

    /// Writes one string to a line.
    pub fn block_list<'a>(&mut self, key: &str, values: impl IntoIterator<Item = &'a String>) {
        self.key_line(key);
        for value in values {
            let line = format!("{}  - {}\n", self.indent, scalar(value));
            self.text.push_str(&line);
        }
    }

    /// Writes strings in brackets on one line.
    pub fn flow_list<'a>(&mut self, key: &str, values: impl IntoIterator<Item = &'a str>) {
        self.line(key, format!("[{}]", join(values.into_iter().map(scalar))));
    }

    /// Writes pairs of strings in braces on one line.
    pub fn flow_map<'a>(
        &mut self,
        key: &str,
        pairs: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) {
        let pairs = pairs.into_iter().map(|(k, v)| {
            // A day is meant as a day where it is a key, whatever a reader makes of it.
            let day = k.parse::<chrono::NaiveDate>().is_ok() && k.len() == 10;
            format!("{}: {}", if day { k.clone() } else { scalar(k) }, scalar(v))
        });
        let pairs = join(pairs);
        self.line(key, if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {pairs} }}") });
    }

    /// Writes a key whose own keys follow, two columns further in, up to `FrontmatterWriter::close_map`.
    pub fn open_map(&mut self, key: &str) {
        self.key_line(key);
        self.indent = "  ";
    }

    /// Ends what `FrontmatterWriter::open_map` began.
    pub fn close_map(&mut self) {
        self.indent = "";
    }

    /// Writes keys that are not ours as they stood, or at least with the values that were read.
    pub fn other_keys(&mut self, keys: &OtherKeys) {
        if let Some(lines) = &keys.lines {
            self.text.push_str(lines);
            return;
        }
        for (key, value) in &keys.values {
            self.other_value(key, value);
        }
    }

    /// Writes a key of somebody else's with the value that was read.
    fn other_value(&mut self, key: &Value, value: &Value) {
        match key {
            Value::Sequence(_) | Value::Mapping(_) => {
                let line = format!(
                    "{}? {}\n{}: {}\n",
                    self.indent,
                    format_flow(key),
                    self.indent,
                    format_flow(value)
                );
                self.text.push_str(&line);
            }
            _ => self.line(&format_flow(key), format_flow(value)),
        }
    }

    /// Closes the fence and returns all of it.
    pub fn finish(mut self) -> String {
        self.text.push_str("---\n");
        self.text
    }

    fn key_line(&mut self, key: &str) {
        let written = writeln!(self.text, "{}{key}:", self.indent);
        written.expect("writing to a string cannot fail");
    }

    fn line(&mut self, key: &str, value: impl Display) {
        let written = writeln!(self.text, "{}{key}: {value}", self.indent);
        written.expect("writing to a string cannot fail");
    }
}

fn join(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(", ")
}

/// Spells a value that was read, on one line.
fn format_flow(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => it.to_string(),
        Value::String(it) => scalar(it),
        Value::Sequence(values) => format!("[{}]", join(values.iter().map(format_flow))),
        Value::Mapping(pairs) => {
            let pairs = pairs.iter().map(|(k, v)| match k {
                Value::Sequence(_) | Value::Mapping(_) => {
                    format!("? {} : {}", format_flow(k), format_flow(v))
                }
                _ => format!("{}: {}", format_flow(k), format_flow(v)),
            });
            format!("{{{}}}", join(pairs))
        }
        // `parse` refuses tags, so none can be here; the value beneath is what counts.
        Value::Tagged(tagged) => format_flow(&tagged.value),
    }
}

/// Spells a string so that every YAML reader reads that string: bare where it is safe, else in
/// double quotes.
pub fn scalar(text: &str) -> String {
    if is_safe_bare(text) { text.to_owned() } else { quoted(text) }
}

/// Returns whether no YAML reader takes the bare text for anything else than a string.
///
/// Two shapes are safe: a word that begins with a letter and is none of the names that YAML
/// reserves; and what begins with a digit, as hashes, days, and addresses do, where it holds a
/// character that is in no number, or is a day with a slug or a line after it.
pub(super) fn is_safe_bare(text: &str) -> bool {
    const RESERVED: [&str; 13] = [
        "y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf",
        "infinity",
    ];
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/');
    if is_unambiguous_hash(text) {
        return true;
    }
    match text.as_bytes() {
        [first, rest @ ..] if first.is_ascii_alphabetic() => {
            rest.iter().all(|&b| plain(b))
                && !RESERVED.iter().any(|word| word.eq_ignore_ascii_case(text))
        }
        [first, ..] if first.is_ascii_digit() => is_address(text),
        _ => false,
    }
}

/// Digits, `e`, and a leading `0b` may be a number; a hash with any other letter is none.
fn is_unambiguous_hash(text: &str) -> bool {
    let mut letters = false;
    text.bytes().all(|b| {
        letters |= matches!(b, b'a' | b'c' | b'd' | b'f');
        matches!(b, b'0'..=b'9' | b'a'..=b'f')
    }) && letters
}

/// Returns whether the text is a day and a slug, or a line of such a log with the check beside it.
fn is_address(text: &str) -> bool {
    let (stem, line) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
    let Some((day, slug)) = stem.split_at_checked(10) else { return false };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let day_ok = day.bytes().enumerate().all(|(i, b)| match i {
        4 | 7 => b == b'-',
        _ => b.is_ascii_digit(),
    });
    let slug_ok = slug.is_empty()
        || slug.strip_prefix('-').is_some_and(|it| {
            it.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        });
    let line_ok = line.is_none_or(|it| {
        let (number, check) = it.split_once('#').unwrap_or((it, "0"));
        digits(number) && !check.is_empty() && check.bytes().all(|b| b.is_ascii_hexdigit())
    });
    day_ok && slug_ok && line_ok && (line.is_some() || !slug.is_empty())
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    let loose = unbalanced_brackets(text);
    out.push('"');
    for (at, c) in text.char_indices() {
        let code = u32::from(c);
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '[' | '{' if loose.binary_search(&at).is_ok() => {
                write!(out, "\\x{code:02x}").expect("writing to a string cannot fail");
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if !must_escape(c) => out.push(c),
            _ if code <= 0xff => {
                write!(out, "\\x{code:02x}").expect("writing to a string cannot fail");
            }
            _ if code <= 0xffff => {
                write!(out, "\\u{code:04x}").expect("writing to a string cannot fail");
            }
            _ => write!(out, "\\U{code:08x}").expect("writing to a string cannot fail"),
        }
    }
    out.push('"');
    out
}

/// Returns where brackets open that never close, or that are nested without end. [`parse`] counts
/// brackets whatever they stand in, so these may not stand in a file.
fn unbalanced_brackets(text: &str) -> Vec<usize> {
    let (mut open, mut deep) = (Vec::new(), Vec::new());
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'[' | b'{' if open.len() < WRITTEN_BRACKETS_MAX => open.push(at),
            b'[' | b'{' => deep.push(at),
            b']' | b'}' => drop(open.pop()),
            _ => {}
        }
    }
    deep.extend(open);
    deep.sort_unstable();
    deep
}

/// What YAML cannot hold as it stands, and what a reader of the file could not see.
fn must_escape(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{e0000}'..='\u{e007f}')
        || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_split(text: &str, yaml: Option<&str>, body: &str) {
        let split = split(text);
        assert_eq!((split.yaml, split.body(text)), (yaml, body), "{text:?}");
    }

    #[test]
    fn a_fence_opens_the_file_and_a_fence_closes() {
        check_split("---\na: b\n---\nbody", Some("a: b\n"), "body");
        check_split("---\r\na: b\r\n---\r\n\r\nbody", Some("a: b\r\n"), "\r\nbody");
        check_split("\u{feff}---\na: b\n---\n", Some("a: b\n"), "");
        check_split("--- \na: b\n---\t\nbody", Some("a: b\n"), "body");
        check_split("---\n---\nbody", Some(""), "body");
        check_split("---\n\n---", Some("\n"), "");
        check_split(
            "---\na: |\n  x\n  ---\n---\nbody\n---\n",
            Some("a: |\n  x\n  ---\n"),
            "body\n---\n",
        );
        check_split("---\na: b\nnever closed", None, "---\na: b\nnever closed");
        check_split("---", None, "---");
        check_split("", None, "");
        check_split("\n---\na: b\n---\n", None, "\n---\na: b\n---\n");
        check_split("----\na: b\n----\n", None, "----\na: b\n----\n");
        // Other readers close at the fence with the no-break space: nobody knows what is meant.
        let odd = "---\na: b\n---\u{a0}\nbody\n---\n";
        check_split(odd, None, odd);
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "one-line cases")]
    fn check(yaml: &str, expected: Result<usize, FrontmatterError>) {
        let keys = parse(yaml, YAML_BYTES_MAX).map(|it| it.len());
        assert_eq!(keys, expected, "{yaml:?}");
    }

    #[test]
    fn limits_and_rules_are_kept() {
        use FrontmatterError::{
            Alias, DuplicateKey, MultipleDocuments, NotAMapping, Syntax, Tag, TooDeep,
        };
        check("", Ok(0));
        check("# nothing\n", Ok(0));
        check("a: 1\nb: [x, {y: z}]\nc:\n  - d: e\n    f: |\n      &g\n  - h\n", Ok(3));
        check("- a\n- b\n", Err(NotAMapping));
        check("word\n", Err(NotAMapping));
        check("a: 1\na: 2\n", Err(DuplicateKey { line: Some(2) }));
        check("a: b: c\n", Err(Syntax { line: Some(2) }));
        check("a: &x 1\n", Err(Alias { line: 2 }));
        check("b: 1\na: *x\n", Err(Alias { line: 3 }));
        check("b: 1\na: [x, *x]\n", Err(Alias { line: 3 }));
        check("a:\n  - - *x\n", Err(Alias { line: 3 }));
        check("a: !!binary aGk=\n", Err(Tag { line: 2 }));
        check("!x a: b\n", Err(Tag { line: 2 }));
        check("a: 1\n--- \nb: 2\n", Err(MultipleDocuments { line: 3 }));
        check("a: 1\n...\n", Err(MultipleDocuments { line: 3 }));
        check("%YAML 1.1\n", Err(MultipleDocuments { line: 2 }));
        check(&format!("a: {}{}\n", "[".repeat(31), "]".repeat(31)), Ok(1));
        check(&format!("a: {}{}\n", "[".repeat(32), "]".repeat(32)), Err(TooDeep { line: 2 }));
        check(&"- ".repeat(40), Err(TooDeep { line: 2 }));
        let steps: String = (0..40).flat_map(|i| [" ".repeat(i), "k:\n".to_owned()]).collect();
        check(&steps, Err(TooDeep { line: 34 }));
        // A quote that only a loose scan would see as open must not hide what follows.
        check(&format!("k: |1\n    a\n \"b\nx: {}", "[".repeat(100)), Err(TooDeep { line: 5 }));
        check("k:\n  |\n&a : x\n", Err(Alias { line: 4 }));
        let long = "a".repeat(YAML_BYTES_MAX + 1);
        check(
            &long,
            Err(FrontmatterError::TooLong { bytes: long.len(), bytes_max: YAML_BYTES_MAX }),
        );
    }

    #[test]
    fn text_that_only_looks_like_markup_is_read() {
        for yaml in [
            "a: \"&x *y !z [[[[\"\n",
            "a: '*x it''s [ &y'\nb: c\n",
            "a: |\n  *x\n  [[[[ &y\n\n  !z\nb: 1\n",
            "a: >-\n  *x\nb: 1\n",
            "a: b & c * d ! e [f] \"g\n",
            "a: http://x/y#z # *x\n",
            "a: [b&c, d*e, \"}\"]\n",
            "a: R&D\n",
            "- a: x\n",
        ] {
            let expected =
                if yaml.starts_with('-') { Err(FrontmatterError::NotAMapping) } else { Ok(()) };
            assert_eq!(parse(yaml, YAML_BYTES_MAX).map(|_| ()), expected, "{yaml:?}");
        }
    }

    #[test]
    fn hostile_text_costs_little_and_is_never_quoted() {
        let secret = "hunter2";
        let units = [
            "[",
            "{a: ",
            "- ",
            "? ",
            "a:\n ",
            "\"",
            "'",
            "&a ",
            "|\n ",
            "{",
            "x: [",
            "a,",
            ": ",
            "\t",
            "[\n",
            "k: |1\n  \"\n ",
        ];
        for unit in units {
            let count = GENERATED_YAML_BYTES_MAX / 10 / unit.len();
            let text = format!("{secret}: {secret}{}", unit.repeat(count));
            for bytes_max in [YAML_BYTES_MAX, GENERATED_YAML_BYTES_MAX] {
                let head = &text[..text.len().min(bytes_max)];
                if let Err(error) = parse(head, bytes_max) {
                    assert!(!error.to_string().contains(secret), "{error}");
                }
            }
        }
    }

    #[track_caller]
    fn check_scalar(text: &str, bare: bool) {
        assert_eq!(scalar(text) == text, bare, "{text:?} -> {}", scalar(text));
    }

    #[test]
    fn only_safe_words_stand_bare() {
        for text in [
            "weekly",
            "extractive/1",
            "memory/x.md",
            "a1b2c3d4",
            "5e6f7081",
            "2026-04-02:12#3fa9",
            "2026-04-02-standup",
            "CMEM-20260402-101500",
        ] {
            check_scalar(text, true);
        }
        for text in [
            "",
            " ",
            "no",
            "Yes",
            "ON",
            "y",
            "~",
            "null",
            "Null",
            "1.10",
            "1e3",
            "0x1f",
            "12:30",
            "12345678",
            "1234e678",
            "0b101010",
            "2026-11-21",
            ".inf",
            ".nan",
            "a: b",
            "a #b",
            "&a",
            "*a",
            "!!binary",
            "x\ny",
            "- a",
            "[a",
            "@a",
            "%a",
            "two words",
            "é",
            "---",
            "=",
            "<<",
            "0o17",
            "+1",
            "a,b",
            "12_000",
        ] {
            check_scalar(text, false);
        }
    }

    #[test]
    fn brackets_without_end_are_written_so_that_they_are_read() {
        let many = [
            "[".repeat(1500),
            "{a".repeat(1200),
            ["[".repeat(1500), "]".repeat(1500)].concat(),
            "[x] [y]".to_owned(),
            "] [a {b".to_owned(),
        ];
        let mut writer = FrontmatterWriter::new();
        writer.flow_list("list", many.iter().map(String::as_str));
        for (i, text) in many.iter().enumerate() {
            writer.text(&format!("k{i}"), text);
        }
        let file = writer.finish();
        assert!(file.contains("\"[x] [y]\""), "what is closed stands as it is");
        let map = parse(split(&file).yaml.unwrap(), 1 << 20).unwrap();
        for (i, text) in many.iter().enumerate() {
            assert_eq!(map["list"][i].as_str(), Some(text.as_str()));
            assert_eq!(map[format!("k{i}").as_str()].as_str(), Some(text.as_str()));
        }
        // Two keys of somebody else's, each within the limit beside the key of ours that goes.
        let (open, close) = ("[".repeat(900), "]".repeat(900));
        let theirs = format!("a: '{open}'\nours: '{close}'\nb: '{open}'\n");
        let mut values = parse(&theirs, 1 << 20).unwrap();
        values.remove("ours");
        let mut writer = FrontmatterWriter::new();
        writer.other_keys(&OtherKeys::new(values.clone(), &theirs));
        writer.text("ours", &many[2]);
        let file = writer.finish();
        let mut read = parse(split(&file).yaml.unwrap(), 1 << 20).unwrap();
        read.remove("ours");
        assert_eq!(read, values);
    }

    /// Values as a person's frontmatter may hold them.
    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[0-9e.xo:-]{1,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Sequence),
                proptest::collection::vec((inner.clone(), inner), 0..4)
                    .prop_map(|pairs| Value::Mapping(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_string_survives(text in any::<String>(), other in "[\\x00-\\x7f\\u{80}-\\u{a0}\\u{2028}\\u{feff}\\u{fffe}'\"\\\\]{0,8}") {
            let mut writer = FrontmatterWriter::new();
            writer.text("a", &text);
            writer.open_map("b");
            writer.flow_list("c", [text.as_str(), &other]);
            writer.flow_map("d", [(&other, &text)]);
            writer.block_list("e", &[other.clone(), text.clone()]);
            writer.close_map();
            writer.bare("f", "2026-04-02");
            let file = writer.finish();
            let split = split(&file);
            prop_assert_eq!(split.body_at, file.len());
            let map = parse(split.yaml.unwrap(), 1 << 20).unwrap();
            prop_assert_eq!(map["a"].as_str(), Some(text.as_str()));
            prop_assert_eq!(map["b"]["c"][0].as_str(), Some(text.as_str()));
            prop_assert_eq!(map["b"]["c"][1].as_str(), Some(other.as_str()));
            prop_assert_eq!(map["b"]["d"][other.as_str()].as_str(), Some(text.as_str()));
            prop_assert_eq!(map["b"]["e"][0].as_str(), Some(other.as_str()));
            prop_assert_eq!(map["f"].as_str(), Some("2026-04-02"));
        }

        #[test]
        fn other_peoples_keys_keep_their_values(key in any_value(), value in any_value()) {
            let mut writer = FrontmatterWriter::new();
            writer.other_value(&key, &value);
            let file = writer.finish();
            let map = parse(split(&file).yaml.unwrap(), 1 << 20).unwrap();
            prop_assert_eq!(map.get(&key), Some(&value), "{}", file);
        }

        #[test]
        fn garbage_never_panics(text in any::<String>(), yaml in "[a-c:\\[\\]{}&*!|>\"'# \n-]{0,80}") {
            let _split = split(&text);
            let _parsed = parse(&yaml, YAML_BYTES_MAX);
            let fenced = format!("---\n{yaml}\n---\n{text}");
            prop_assert!(split(&fenced).body(&fenced).ends_with(text.as_str()));
        }
    }
}
