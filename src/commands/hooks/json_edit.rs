//! Changes single values in the text of JSON or JSON5 settings; everything else stays as its owner wrote it, comments
//! included.
//!
//! Of JSON5 it knows what people write by hand: comments, keys without quotes, strings in single quotes, commas after
//! the last item, and numbers in any form.
//!
//! Comments are replaced by spaces first, so that every position of a value is the same in both texts.

use std::ops::Range;

use serde::Serialize as _;
use serde_json::{Map, Value, ser::PrettyFormatter};

/// The indentation of a file that has none to follow.
const INDENT: &str = "  ";
/// How deep values may be nested.
const DEPTH_MAX: usize = 100;

/// Returns JSON with spaces in place of its comments, in the same number of bytes.
pub(super) fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let comment = match rest.get(..2) {
            Some("//") => rest.find('\n').unwrap_or(rest.len()),
            Some("/*") => rest.find("*/").map_or(rest.len(), |it| it + 2),
            _ => 0,
        };
        if comment > 0 {
            plain.extend(rest[..comment].bytes().map(|it| if it == b'\n' { '\n' } else { ' ' }));
            rest = &rest[comment..];
            continue;
        }
        let is_string = matches!(first, '"' | '\'');
        let end = if is_string { string_end(rest.as_bytes(), 0) } else { first.len_utf8() };
        plain.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    plain
}

/// What a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// JSON and nothing else.
    Json,
    /// JSON5, or less of it: comments and trailing commas.
    Json5,
}

/// Returns the value of settings; an empty object for a text without a value.
///
/// Returns the line where the text is something else.
pub(super) fn parse(text: &str, syntax: Syntax) -> Result<Value, String> {
    match syntax {
        Syntax::Json if text.trim().is_empty() => Ok(Value::Object(Map::new())),
        Syntax::Json => serde_json::from_str(text).map_err(|e| e.to_string()),
        Syntax::Json5 => parse_json5(text),
    }
}

/// Parses JSON5. Numbers that are none of JSON, and words, are returned as texts: nothing here changes them.
///
/// Returns the line where it is no JSON5.
fn parse_json5(text: &str) -> Result<Value, String> {
    let plain = without_comments(text);
    let plain = plain.trim_start_matches('\u{feff}');
    let reader = Editor { text: plain, plain: plain.as_bytes(), unit: INDENT, edits: vec![] };
    let start = reader.skip_space(0);
    let at_line = |at: usize| {
        let breaks = plain.bytes().take(at).filter(|it| *it == b'\n').count();
        format!("no JSON5 at line {}", breaks + 1)
    };
    if start == plain.len() {
        return Ok(Value::Object(Map::new()));
    }
    let (value, end) = reader.parse_value(start, 0).map_err(at_line)?;
    match reader.skip_space(end) {
        end if end == plain.len() => Ok(value),
        end => Err(at_line(end)),
    }
}

/// Returns the text of settings whose value was `old`, with the changes that make it `new`.
///
/// Members and elements are added behind the others, and a value that changes otherwise is printed again.
pub(super) fn change(text: &str, old: &Value, new: &Value) -> serde_json::Result<String> {
    const MARK: char = '\u{feff}';
    if let Some(rest) = text.strip_prefix(MARK) {
        return Ok(format!("{MARK}{}", change(rest, old, new)?));
    }
    let plain = without_comments(text);
    let unit = text.lines().find_map(|line| {
        let spaces = line.len() - line.trim_start_matches([' ', '\t']).len();
        (spaces > 0 && spaces < line.len()).then(|| &line[..spaces])
    });
    let mut editor =
        Editor { text, plain: plain.as_bytes(), unit: unit.unwrap_or(INDENT), edits: vec![] };
    match editor.skip_space(0) {
        at if at < plain.len() => editor.compare(at, old, new, 0)?,
        at => editor.edits.push((at..at, editor.print(new, 0)? + "\n")),
    }
    let mut changed = String::new();
    let mut done = 0;
    // Edits at one position stay in their order.
    editor.edits.sort_by_key(|it| it.0.start);
    for (range, inserted) in &editor.edits {
        changed.push_str(&text[done..range.start]);
        changed.push_str(inserted);
        done = range.end;
    }
    Ok(changed + &text[done..])
}

/// Collects what is to be replaced in a text.
struct Editor<'a> {
    text: &'a str,
    plain: &'a [u8],
    /// One level of indentation.
    unit: &'a str,
    edits: Vec<(Range<usize>, String)>,
}

/// A member of an object or an element of a list.
struct Item {
    key: Option<String>,
    start: usize,
    value: Range<usize>,
}

impl Editor<'_> {
    /// Changes the value that begins at `start`, `depth` levels inside the document.
    fn compare(
        &mut self,
        start: usize,
        old: &Value,
        new: &Value,
        depth: usize,
    ) -> serde_json::Result<()> {
        if old == new {
            return Ok(());
        }
        let (items, close) = self.items(start);
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                let mut removed = Vec::new();
                for (n, item) in items.iter().enumerate() {
                    let key = item.key.as_deref().unwrap_or_default();
                    match (old.get(key), new.get(key)) {
                        (Some(old), Some(new)) => {
                            self.compare(item.value.start, old, new, depth + 1)?;
                        }
                        _ => removed.push(n),
                    }
                }
                let mut added = Vec::new();
                for (key, value) in new.iter().filter(|it| !old.contains_key(it.0)) {
                    let value = self.print(value, depth + 1)?;
                    added.push(format!("{}: {value}", Value::from(key.as_str())));
                }
                self.replace_items(&items, start..close, &removed, &added, depth);
            }
            (Value::Array(old), Value::Array(new)) => {
                let same = |it: &(&Value, &Value)| it.0 == it.1;
                let head = old.iter().zip(new).take_while(same).count();
                let (old, new) = (&old[head..], &new[head..]);
                let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
                // What is added comes behind all others.
                let tail = if new.len() > old.len() { 0 } else { tail };
                let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
                for (n, (old, new)) in old.iter().zip(new).enumerate() {
                    self.compare(items[head + n].value.start, old, new, depth + 1)?;
                }
                let removed: Vec<usize> = (head + new.len()..head + old.len()).collect();
                let added = new.iter().skip(old.len()).map(|it| self.print(it, depth + 1));
                let added = added.collect::<Result<Vec<_>, _>>()?;
                self.replace_items(&items, start..close, &removed, &added, depth);
            }
            _ => {
                let printed = self.print(new, depth)?;
                self.edits.push((start..self.value_end(start), printed));
            }
        }
        Ok(())
    }

    /// Removes items of an object or a list, whose brackets bound the range, and adds printed ones.
    fn replace_items(
        &mut self,
        items: &[Item],
        Range { start: open, end: close }: Range<usize>,
        removed: &[usize],
        added: &[String],
        depth: usize,
    ) {
        let mut kept = (0..items.len()).rev().filter(|it| !removed.contains(it));
        let last_kept = kept.next().map(|it| items[it].value.end);
        for &n in removed {
            let start = self.text[..items[n].start].trim_end().len();
            let end = items[n].value.end;
            // An object or a list that began in one line ends in it again.
            let rest = &self.text[end..close];
            let is_last = rest.trim().is_empty() && !self.text[open..items[0].start].contains('\n');
            let end = if is_last && added.is_empty() { close } else { end };
            self.edits.push((start..end, String::new()));
            // The comma after it, or the one after the last item that stays.
            let comma_after = |it: usize| {
                Some(self.skip_space(it)).filter(|it| self.plain.get(*it) == Some(&b','))
            };
            let own = comma_after(items[n].value.end);
            let comma = own.or_else(|| last_kept.and_then(comma_after));
            self.edits.extend(comma.map(|it| (it..it + 1, String::new())));
        }
        if added.is_empty() {
            return;
        }
        // With a comma after the last item, the new ones have one, too.
        let has_comma = last_kept.is_some_and(|it| {
            let last = items.last().is_some_and(|last| last.value.end == it);
            last && self.plain.get(self.skip_space(it)) == Some(&b',')
        });
        if let Some(end) = last_kept.filter(|_| !has_comma) {
            self.edits.push((end..end, ",".to_owned()));
        }
        let end = self.text[..close].trim_end().len();
        let line = self.line_start(depth + 1);
        let mut inserted =
            added.iter().map(|it| format!("{line}{it}")).collect::<Vec<_>>().join(",");
        if has_comma {
            inserted.push(',');
        }
        if !self.text[end..close].contains('\n') {
            inserted.push_str(&self.line_start(depth));
        }
        self.edits.push((end..end, inserted));
    }

    /// Returns the items of an object or a list and the position of its end; none of another value.
    fn items(&self, start: usize) -> (Vec<Item>, usize) {
        let mut items = Vec::new();
        let mut at = self.skip_space(start + 1);
        let is_object = self.plain.get(start) == Some(&b'{');
        if !is_object && self.plain.get(start) != Some(&b'[') {
            return (items, at);
        }
        while !matches!(self.plain.get(at), None | Some(b'}' | b']')) {
            let start = at;
            let mut key = None;
            if is_object {
                let end = self.key_end(at);
                let colon = self.skip_space(end);
                if self.plain.get(colon) == Some(&b':') {
                    key = unquoted(&self.text_at(at..end));
                    at = self.skip_space(colon + 1);
                }
            }
            let value = at..self.value_end(at).max(start + 1);
            at = self.skip_space(value.end);
            if self.plain.get(at) == Some(&b',') {
                at = self.skip_space(at + 1);
            }
            items.push(Item { key, start, value });
        }
        (items, at)
    }

    fn value_end(&self, start: usize) -> usize {
        let mut at = start;
        let mut depth = 0;
        while let Some(byte) = self.plain.get(at) {
            match byte {
                b'"' | b'\'' => at = string_end(self.plain, at) - 1,
                b'{' | b'[' => depth += 1,
                b'}' | b']' | b',' if depth == 0 => return at,
                b'}' | b']' => depth -= 1,
                it if depth == 0 && it.is_ascii_whitespace() => return at,
                _ => {}
            }
            at += 1;
            if depth == 0 && matches!(self.plain[at - 1], b'"' | b'\'' | b'}' | b']') {
                return at;
            }
        }
        at
    }

    /// Parses the value that begins at `start`, and returns it with its end, or where it is none.
    fn parse_value(&self, start: usize, depth: usize) -> Result<(Value, usize), usize> {
        let (items, close) = self.items(start);
        let end = self.value_end(start);
        let close_mark = match self.plain.get(start) {
            Some(b'{') => b'}',
            Some(b'[') => b']',
            _ => {
                let value = scalar(&self.text_at(start..end)).filter(|_| end > start);
                return value.map(|it| (it, end)).ok_or(start);
            }
        };
        if depth > DEPTH_MAX || self.plain.get(close) != Some(&close_mark) {
            return Err(start);
        }
        let mut object = Map::new();
        let mut list = Vec::new();
        for (n, item) in items.iter().enumerate() {
            let (value, end) = self.parse_value(item.value.start, depth + 1)?;
            let next = items.get(n + 1).map_or(close, |it| it.start);
            let between = self.text_at(end..next);
            let between = between.trim();
            // One comma between two items; after the last one it is free.
            if end != item.value.end || between != "," && (next != close || !between.is_empty()) {
                return Err(end);
            }
            match &item.key {
                Some(key) => drop(object.insert(key.clone(), value)),
                None if close_mark == b'}' => return Err(item.start),
                None => list.push(value),
            }
        }
        let value = if close_mark == b'}' { Value::Object(object) } else { Value::Array(list) };
        Ok((value, close + 1))
    }

    /// Returns the end of the key that begins at `start`, in quotes or not.
    fn key_end(&self, start: usize) -> usize {
        if matches!(self.plain[start], b'"' | b'\'') {
            return string_end(self.plain, start);
        }
        let is_word = |it: &&u8| !it.is_ascii_whitespace() && !b":,{}[]\"'".contains(it);
        start + self.plain[start..].iter().take_while(is_word).count()
    }

    fn text_at(&self, range: Range<usize>) -> String {
        String::from_utf8_lossy(&self.plain[range]).into_owned()
    }

    fn skip_space(&self, start: usize) -> usize {
        let rest = self.plain.get(start..).unwrap_or_default();
        start + rest.iter().take_while(|it| it.is_ascii_whitespace()).count()
    }

    fn line_start(&self, depth: usize) -> String {
        format!("\n{}", self.unit.repeat(depth))
    }

    /// Prints a value that begins in a line of this depth.
    fn print(&self, value: &Value, depth: usize) -> serde_json::Result<String> {
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.unit.as_bytes());
        value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter))?;
        Ok(String::from_utf8_lossy(&bytes).replace('\n', &self.line_start(depth)))
    }
}

/// Returns the value of a string, a number, or a word.
fn scalar(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    if text.starts_with(['"', '\'']) {
        return unquoted(text).map(Value::String);
    }
    let is_word = |c: char| c.is_alphanumeric() || "+-._$".contains(c);
    text.chars().all(is_word).then(|| Value::String(text.to_owned()))
}

/// Returns what a string or a key says; `None` if it is cut off.
fn unquoted(text: &str) -> Option<String> {
    if let Ok(plain) = serde_json::from_str(text) {
        return Some(plain);
    }
    let Some(quote @ ('"' | '\'')) = text.chars().next() else {
        return (!text.is_empty()).then(|| text.to_owned());
    };
    let inner = text.get(1..)?.strip_suffix(quote)?;
    let mut plain = String::new();
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        let escaped = chars.next()?;
        let code = |chars: &mut dyn Iterator<Item = char>, count| {
            let digits: String = chars.take(count).collect();
            u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
        };
        match escaped {
            'n' => plain.push('\n'),
            't' => plain.push('\t'),
            'r' => plain.push('\r'),
            'b' => plain.push('\u{8}'),
            'f' => plain.push('\u{c}'),
            'u' => plain.push(code(&mut chars, 4).unwrap_or(char::REPLACEMENT_CHARACTER)),
            'x' => plain.push(code(&mut chars, 2).unwrap_or(char::REPLACEMENT_CHARACTER)),
            '\n' => {}
            other => plain.push(other),
        }
    }
    Some(plain)
}

/// Returns the position after the string that begins at `start`.
fn string_end(text: &[u8], start: usize) -> usize {
    let quote = text[start];
    let mut at = start + 1;
    while at < text.len() && text[at] != quote {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Value {
        let plain = without_comments(text);
        let plain = if plain.trim().is_empty() { "{}" } else { &plain };
        serde_json::from_str(plain).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    /// Changes a text into a value, which must then be in it, and back.
    #[track_caller]
    fn check(text: &str, new: &Value, expected: &str) {
        let old = parse(text);
        let changed = change(text, &old, new).unwrap();
        assert_eq!(changed, expected);
        assert_eq!(parse(&changed), *new);
        let again = change(&changed, new, &old).unwrap();
        assert_eq!(parse(&again), old, "{again}");
        for comment in ["// mine", "/* a, \"b\" */"] {
            assert_eq!(text.contains(comment), again.contains(comment), "{again}");
        }
    }

    #[test]
    fn comments_and_form_stay() {
        check(
            "",
            &json!({"a": {"b": [1]}}),
            "{\n  \"a\": {\n    \"b\": [\n      1\n    ]\n  }\n}\n",
        );
        check("{}", &json!({"a": 1}), "{\n  \"a\": 1\n}");
        check("{ // mine\n}\n", &json!({"a": 1}), "{ // mine\n  \"a\": 1\n}\n");
        check(
            "{\n\t\"x\": 1.50, // mine\n\t\"y\": [1,2] /* a, \"b\" */\n}\n",
            &json!({"x": 1.50, "y": [1, 2], "a": {"b": "//"}}),
            "{\n\t\"x\": 1.50, // mine\n\t\"y\": [1,2], /* a, \"b\" */\n\t\"a\": {\n\t\t\"b\": \"//\"\n\t}\n}\n",
        );
        check(
            "{\"u\": \"http://é\", \"h\": {\"e\": [{\"c\": 1}] // mine\n}}",
            &json!({"u": "http://é", "h": {"e": [{"c": 1}, {"d": 2}]}}),
            "{\"u\": \"http://é\", \"h\": {\"e\": [{\"c\": 1},\n      {\n        \"d\": 2\n      }\n    ] // mine\n}}",
        );
        check(
            "{\n  \"a\": 1,\n  // mine\n  \"b\": 2\n}",
            &json!({"b": 2}),
            "{\n  // mine\n  \"b\": 2\n}",
        );
        check("{\n  \"a\": 1,\n  \"b\": 2, \"c\": 3\n}", &json!({"a": 1}), "{\n  \"a\": 1\n}");
        check("[1, 2, 3, 4]", &json!([1, 5, 6, 4, 7]), "[1, 5, 6, 4,\n  7\n]");
        check("[1, 2, 3]", &json!([4, 3]), "[4, 3]");
        check("{\"a\": {\"b\": 1}}", &json!({"a": "c"}), "{\"a\": \"c\"}");
    }

    #[test]
    fn json5_is_read_and_changed() {
        let text = "{\n  // mine\n  a: 'it\\'s // a', /* b */\n  $b_1: [0x1F, +.5, NaN,],\n  \"c\": { d: true, },\n}\n";
        let old = parse_json5(text).unwrap();
        assert_eq!(
            old,
            json!({"a": "it's // a", "$b_1": ["0x1F", "+.5", "NaN"], "c": {"d": true}})
        );
        let mut new = old.clone();
        new["c"]["e"] = json!({"f": ["g"]});
        new["z"] = json!(1);
        let changed = change(text, &old, &new).unwrap();
        assert_eq!(parse_json5(&changed).unwrap(), new);
        let expected = text
            .replace(
                "true, }",
                "true,\n    \"e\": {\n      \"f\": [\n        \"g\"\n      ]\n    },\n   }",
            )
            .replace("},\n}\n", "},\n  \"z\": 1,\n}\n");
        assert_eq!(changed, expected);
        new["c"].as_object_mut().unwrap().remove("e");
        assert_eq!(
            parse_json5(&change(&changed, &parse_json5(&changed).unwrap(), &old).unwrap()),
            Ok(old)
        );
        for text in ["{a: }", "{\n a: 1\n b: 2}", "[1 2]", "{a: 1", "{} x", "{,}"] {
            let error = parse_json5(text);
            assert!(error.is_err(), "{text}: {error:?}");
        }
        assert_eq!(parse_json5(" // nothing\n"), Ok(json!({})));
        let changed = change("\u{feff}{a: 1}", &json!({"a": 1}), &json!({"a": 2})).unwrap();
        assert_eq!(changed, "\u{feff}{a: 2}");
    }

    #[test]
    fn what_was_added_is_removed_without_a_trace() {
        for text in [
            "{\n  // mine\n  \"a\": [1,\n 2]\n}\n",
            "{\"a\": [1] /* a, \"b\" */}",
            "{\n\t\"a\": {}, // mine\n\t\"b\": 2 /* a, \"b\" */\n}",
        ] {
            let old = parse(text);
            let mut new = old.clone();
            new["hooks"] = json!({"S": [{"hooks": [{"command": "x"}]}]});
            new["z"] = json!(null);
            let changed = change(text, &old, &new).unwrap();
            assert_eq!(change(&changed, &new, &old).unwrap(), text, "{changed}");
        }
    }
}
