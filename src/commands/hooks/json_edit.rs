//! Changes single values in the text of JSON settings; everything else stays as its owner wrote it, comments
//! included.
//!
//! Comments are replaced by spaces first, so that every position of a value is the same in both texts.

use std::ops::Range;

use serde::Serialize as _;
use serde_json::{Value, ser::PrettyFormatter};

/// The indentation of a file that has none to follow.
const INDENT: &str = "  ";

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
        let end = if first == '"' { string_end(rest.as_bytes(), 0) } else { first.len_utf8() };
        plain.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    plain
}

/// Returns the text of settings whose value was `old`, with the changes that make it `new`.
///
/// Members and elements are added behind the others, and a value that changes otherwise is printed again.
pub(super) fn change(text: &str, old: &Value, new: &Value) -> serde_json::Result<String> {
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
            let comma = if n + 1 < items.len() { Some(items[n].value.end) } else { last_kept };
            let comma = comma.map(|it| self.skip_space(it)).filter(|it| self.plain[*it] == b',');
            self.edits.extend(comma.map(|it| (it..it + 1, String::new())));
        }
        if added.is_empty() {
            return;
        }
        if let Some(end) = last_kept {
            self.edits.push((end..end, ",".to_owned()));
        }
        let end = self.text[..close].trim_end().len();
        let line = self.line_start(depth + 1);
        let mut inserted =
            added.iter().map(|it| format!("{line}{it}")).collect::<Vec<_>>().join(",");
        if !self.text[end..close].contains('\n') {
            inserted.push_str(&self.line_start(depth));
        }
        self.edits.push((end..end, inserted));
    }

    /// Returns the items of an object or a list and the position of its end; none of another value.
    fn items(&self, start: usize) -> (Vec<Item>, usize) {
        let mut items = Vec::new();
        let mut at = self.skip_space(start + 1);
        if !matches!(self.plain[start], b'{' | b'[') {
            return (items, at);
        }
        while !matches!(self.plain.get(at), None | Some(b'}' | b']')) {
            let start = at;
            let mut key = None;
            if self.plain[at] == b'"' {
                let end = string_end(self.plain, at);
                let colon = self.skip_space(end);
                if self.plain.get(colon) == Some(&b':') {
                    key = serde_json::from_slice(&self.plain[at..end]).ok();
                    at = self.skip_space(colon + 1);
                }
            }
            let value = at..self.value_end(at);
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
                b'"' => at = string_end(self.plain, at) - 1,
                b'{' | b'[' => depth += 1,
                b'}' | b']' | b',' if depth == 0 => return at,
                b'}' | b']' => depth -= 1,
                it if depth == 0 && it.is_ascii_whitespace() => return at,
                _ => {}
            }
            at += 1;
            if depth == 0 && matches!(self.plain[at - 1], b'"' | b'}' | b']') {
                return at;
            }
        }
        at
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

/// Returns the position after the string that begins at `start`.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() && text[at] != b'"' {
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
