//! Writing frontmatter: a string has no quotes only where every YAML reader reads that string.

use std::fmt::{Display, Write as _};

use serde_yaml::Value;

use super::OtherKeys;

/// The deepest nesting of brackets in a string that is written without escapes.
const WRITTEN_BRACKETS_MAX: usize = 100;

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
    /// Begins with the opening fence.
    pub fn new() -> Self {
        Self { text: "---\n".to_owned(), indent: "" }
    }

    /// Writes a date, a period, or a flag without quotes.
    pub fn bare(&mut self, key: &str, value: impl Display) {
        self.line(key, value);
    }

    /// Writes a string.
    pub fn text(&mut self, key: &str, value: &str) {
        self.line(key, scalar(value));
    }

    /// Writes a list, one string per line.
    pub fn block_list<'a>(&mut self, key: &str, values: impl IntoIterator<Item = &'a String>) {
        self.key_line(key);
        for value in values {
            let line = format!("{}  - {}\n", self.indent, scalar(value));
            self.text.push_str(&line);
        }
    }

    /// Writes a list of strings in brackets on one line.
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
            // A day as a key has no quotes, even though a reader may parse it as a date.
            let day = k.parse::<chrono::NaiveDate>().is_ok() && k.len() == 10;
            format!("{}: {}", if day { k.clone() } else { scalar(k) }, scalar(v))
        });
        let pairs = join(pairs);
        self.line(key, if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {pairs} }}") });
    }

    /// Writes a key whose own keys follow, indented by two, until `FrontmatterWriter::close_map`.
    pub fn open_map(&mut self, key: &str) {
        self.key_line(key);
        self.indent = "  ";
    }

    /// Ends the mapping that `FrontmatterWriter::open_map` began.
    pub fn close_map(&mut self) {
        self.indent = "";
    }

    /// Writes keys that are not ours with their original lines, or else with their values.
    pub fn other_keys(&mut self, keys: &OtherKeys) {
        if let Some(lines) = &keys.lines {
            self.text.push_str(lines);
            return;
        }
        for (key, value) in &keys.values {
            self.other_value(key, value);
        }
    }

    /// Writes one key that is not ours with its value.
    pub(super) fn other_value(&mut self, key: &Value, value: &Value) {
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

    /// Writes the closing fence and returns the text.
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

/// Formats a parsed value on one line.
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
        // `parse` refuses tags, so there are none; the inner value is what counts.
        Value::Tagged(tagged) => format_flow(&tagged.value),
    }
}

/// Formats a string so that every YAML reader reads that string: without quotes where that is safe,
/// else in double quotes.
pub fn scalar(text: &str) -> String {
    if is_safe_bare(text) { text.to_owned() } else { quoted(text) }
}

/// Returns whether every YAML reader reads the text without quotes as a string.
///
/// Two shapes are safe: a word that begins with a letter and is not a name that YAML reserves; and
/// text that begins with a digit, as hashes, days, and addresses do, if it contains a character
/// that no number has, or is a day followed by a slug or a line.
pub(in crate::memory) fn is_safe_bare(text: &str) -> bool {
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

/// Digits, `e`, and a leading `0b` may form a number; a hash with any other letter cannot.
fn is_unambiguous_hash(text: &str) -> bool {
    let mut letters = false;
    text.bytes().all(|b| {
        letters |= matches!(b, b'a' | b'c' | b'd' | b'f');
        matches!(b, b'0'..=b'9' | b'a'..=b'f')
    }) && letters
}

/// Returns whether the text is a day with a slug, or a line of such a log with its check.
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

/// Returns the offsets of brackets that never close or are nested too deep. The guard counts
/// brackets even in quotes, so these must be escaped.
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

/// Returns whether YAML cannot contain the character as it is, or a reader of the file could not
/// see it.
fn must_escape(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{e0000}'..='\u{e007f}')
        || u32::from(c) & 0xfffe == 0xfffe
}
