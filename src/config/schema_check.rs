//! Checks values against the JSON schema of their types.
//!
//! Deserializing would stop at the first mistake and lose its path. Here all mistakes are found, each with its
//! path, the value, and what is expected; an unknown key is reported with the most similar known one. A general
//! schema validator would do none of the latter, and it would quote secrets that are in the wrong place. Pure.

use std::fmt;

use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::{
    base_url::check_base_url,
    duration::Span,
    schedule::Schedule,
    stray_key::{check_file_path, is_quotable, mask_keys},
    suggestion::closest_match,
    zone::ZoneName,
};

/// How many characters of a wrong value are shown.
const SHOWN_CHARS_MAX: usize = 40;

/// One mistake in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The key: `compaction.weekly.ratio`, `roots[1].path`; empty for the whole text.
    pub path: String,
    /// What is wrong and what is expected.
    pub message: String,
}

/// The keys that a source may contain, and the values of each.
pub(super) struct KeySchema {
    schema: Value,
}

impl ConfigProblem {
    pub(super) fn new(path: &str, what: String) -> Self {
        Self { path: path.to_owned(), message: what }
    }
}

impl fmt::Display for ConfigProblem {
    /// Masks API keys that somebody put in the wrong place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = |it| if is_quotable(it) { it } else { "…" };
        let path = self.path.split('.').map(step).collect::<Vec<_>>().join(".");
        let what = mask_keys(&self.message);
        if path.is_empty() { f.write_str(&what) } else { write!(f, "{path}: {what}") }
    }
}

impl KeySchema {
    /// Returns the schema of a type.
    pub(super) fn of<T: JsonSchema>() -> Self {
        Self { schema: schemars::schema_for!(T).to_value() }
    }

    /// Returns all mistakes.
    ///
    /// Removes sections and lists without a value, because all their lines are comments.
    pub(super) fn check(&self, map: &mut Map<String, Value>) -> Vec<ConfigProblem> {
        let mut problems = Vec::new();
        self.check_keys(&self.schema, map, "", &mut problems);
        problems
    }

    /// Returns the paths of all keys that have a value and not a section, in order.
    pub(super) fn value_paths(&self) -> Vec<Vec<String>> {
        let mut leaves = Vec::new();
        self.collect_value_paths(&self.schema, &mut Vec::new(), &mut leaves);
        leaves
    }

    /// Returns whether the key at `path` accepts only text, not a number or a switch.
    pub(super) fn is_text_only(&self, path: &[String]) -> bool {
        let mut node = &self.schema;
        for key in path {
            let Some(next) = self.resolve_ref(node).get("properties").and_then(|it| it.get(key))
            else {
                return false;
            };
            node = next;
        }
        let node = self.resolve_ref(node);
        let types = types(node);
        let words = allowed_values(node).is_some_and(|all| all.iter().all(|it| it.is_string()));
        words || types.contains(&"string") && types.iter().all(|it| ["string", "null"].contains(it))
    }

    fn collect_value_paths(
        &self,
        node: &Value,
        path: &mut Vec<String>,
        leaves: &mut Vec<Vec<String>>,
    ) {
        match properties(self.resolve_ref(node)) {
            Some(keys) => {
                for (key, below) in keys {
                    path.push(key.clone());
                    self.collect_value_paths(below, path, leaves);
                    path.pop();
                }
            }
            None => leaves.push(path.clone()),
        }
    }

    fn check_keys(
        &self,
        node: &Value,
        map: &mut Map<String, Value>,
        path: &str,
        problems: &mut Vec<ConfigProblem>,
    ) {
        let Some(known) = properties(node) else { return };
        map.retain(|key, value| {
            let expected = known.get(key).filter(|it| !self.is_nullable(it));
            let expected = expected.map(|it| self.resolve_ref(it));
            let empty = |it: &Value| ["object", "array"].iter().any(|kind| types(it) == [*kind]);
            !(value.is_null() && expected.is_some_and(empty))
        });
        for (key, value) in map.iter_mut() {
            let path = join(path, key);
            match known.get(key) {
                Some(below) => self.check_value(below, value, &path, problems),
                None => problems
                    .push(ConfigProblem { message: self.unknown_key_message(key, known), path }),
            }
        }
        for key in node.get("required").and_then(Value::as_array).into_iter().flatten() {
            if let Some(key) = key.as_str().filter(|it| !map.contains_key(*it)) {
                problems
                    .push(ConfigProblem { path: join(path, key), message: "missing".to_owned() });
            }
        }
    }

    fn check_value(
        &self,
        node: &Value,
        value: &mut Value,
        path: &str,
        problems: &mut Vec<ConfigProblem>,
    ) {
        let nullable = self.is_nullable(node);
        if value.is_null() && nullable {
            return;
        }
        let node = self.resolve_ref(node);
        if !matches_type(node, value) {
            // A number instead of a path may be the key itself.
            if format_of(node) == "key-file" && value.is_number() {
                let what = "found a number, expected the path of a file; write it in quotes";
                problems.push(ConfigProblem { path: path.to_owned(), message: what.to_owned() });
                return;
            }
            problems.push(ConfigProblem {
                path: path.to_owned(),
                message: type_mismatch(node, value, nullable),
            });
            return;
        }
        match value {
            Value::Object(map) => self.check_keys(node, map, path, problems),
            Value::Array(list) => {
                let least = node.get("minItems").and_then(Value::as_u64).unwrap_or(0);
                if (list.len() as u64) < least {
                    let what = format!("an empty list (expected at least {least})");
                    problems.push(ConfigProblem { path: path.to_owned(), message: what });
                }
                for (at, item) in list.iter_mut().enumerate() {
                    if let Some(below) = node.get("items") {
                        self.check_value(below, item, &format!("{path}[{at}]"), problems);
                    }
                }
            }
            Value::String(text) => {
                if let Err(mut what) = check_format(node, text) {
                    if !is_quotable(text) && (what.contains('`') || what.contains(text.as_str())) {
                        let expected = expected_text(node);
                        what = format!("found {}, expected {expected}", describe_hidden_text(text));
                    }
                    problems.push(ConfigProblem { path: path.to_owned(), message: what });
                }
            }
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or(f64::NAN);
                let limit = |key| node.get(key).and_then(Value::as_f64);
                let (least, most) = (limit("minimum"), limit("maximum"));
                if least.is_some_and(|it| number < it) || most.is_some_and(|it| number > it) {
                    let range = match (least, most) {
                        (Some(least), Some(most)) => format!("from {least} to {most}"),
                        (Some(least), None) => format!("of at least {least}"),
                        (None, Some(most)) => format!("of at most {most}"),
                        (None, None) => String::new(),
                    };
                    let what = format!("{number} is out of range (expected a number {range})");
                    problems.push(ConfigProblem { path: path.to_owned(), message: what });
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Returns the message for a key that is not known here.
    fn unknown_key_message(&self, key: &str, known: &Map<String, Value>) -> String {
        if let Some(suggestion) = closest_match(key, known.keys().map(String::as_str)) {
            return format!("unknown key, did you mean {suggestion}?");
        }
        let elsewhere =
            self.value_paths().into_iter().find(|it| it.last().is_some_and(|it| it == key));
        if let Some(path) = elsewhere {
            return format!("unknown key here, did you mean {}?", path.join("."));
        }
        let all = known.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        format!("unknown key (known here: {all})")
    }

    /// Follows references, and resolves `x or null` to `x`.
    fn resolve_ref<'a>(&'a self, node: &'a Value) -> &'a Value {
        if let Some(name) = node.get("$ref").and_then(Value::as_str) {
            let target = name.strip_prefix('#').and_then(|it| self.schema.pointer(it));
            return target.map_or(node, |it| self.resolve_ref(it));
        }
        let either = node.get("anyOf").and_then(Value::as_array);
        let other = either.and_then(|all| all.iter().find(|it| types(it) != ["null"]));
        other.map_or(node, |it| self.resolve_ref(it))
    }

    fn is_nullable(&self, node: &Value) -> bool {
        let either = node.get("anyOf").and_then(Value::as_array);
        either.is_some_and(|all| all.iter().any(|it| types(it) == ["null"]))
            || types(self.resolve_ref(node)).contains(&"null")
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn properties(node: &Value) -> Option<&Map<String, Value>> {
    node.get("properties").and_then(Value::as_object)
}

/// Returns the types that a schema allows.
fn types(node: &Value) -> Vec<&str> {
    match node.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns the allowed values, if the schema lists them.
fn allowed_values(node: &Value) -> Option<Vec<&Value>> {
    if let Some(one) = node.get("const") {
        return Some(vec![one]);
    }
    if let Some(all) = node.get("enum").and_then(Value::as_array) {
        return Some(all.iter().collect());
    }
    let all = node.get("oneOf").and_then(Value::as_array)?;
    Some(all.iter().filter_map(allowed_values).flatten().collect())
}

fn matches_type(node: &Value, value: &Value) -> bool {
    if let Some(all) = allowed_values(node) {
        return all.contains(&value);
    }
    types(node).iter().any(|it| match *it {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => false,
    })
}

fn type_mismatch(node: &Value, value: &Value, nullable: bool) -> String {
    let options = allowed_values(node);
    let words: Vec<&str> = options.iter().flatten().filter_map(|it| it.as_str()).collect();
    if let Some(suggestion) = value.as_str().and_then(|it| closest_match(it, words)) {
        return format!("found {}, did you mean {suggestion}?", describe_value(value));
    }
    let types = types(node);
    // YAML reads `0123` and `1.10` as numbers, and `true` as a switch.
    let quotable = value.is_number() || value.is_boolean();
    let hint = if types.contains(&"string") && quotable { "; write it in quotes" } else { "" };
    let or_null = if nullable { " or null" } else { "" };
    let expected = match options {
        Some(all) => {
            let all: Vec<String> = all
                .iter()
                .map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
                .collect();
            format!("one of {}", all.join(", "))
        }
        None => match types.iter().find(|it| **it != "null") {
            Some(&"object") => "a section".to_owned(),
            Some(&"array") => "a list".to_owned(),
            Some(&"boolean") => "true or false".to_owned(),
            Some(&"integer") => "a whole number".to_owned(),
            Some(&"number") => "a number".to_owned(),
            _ => expected_text(node).to_owned(),
        },
    };
    format!("found {}, expected {expected}{or_null}{hint}", describe_value(value))
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => format!("the number {it}"),
        Value::String(it) if !is_quotable(it) => describe_hidden_text(it),
        Value::String(it) => {
            let shown: String = it.escape_debug().take(SHOWN_CHARS_MAX).collect();
            let more = if it.chars().count() > SHOWN_CHARS_MAX { "…" } else { "" };
            format!("`{shown}{more}`")
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a section".to_owned(),
    }
}

/// Describes a text without quoting it.
fn describe_hidden_text(text: &str) -> String {
    format!("a text of {} characters that may be a secret", text.chars().count())
}

fn format_of(node: &Value) -> &str {
    node.get("format").and_then(Value::as_str).unwrap_or_default()
}

fn expected_text(node: &Value) -> &'static str {
    match format_of(node) {
        "span" => "a length of time like 6h",
        "keep" => "forever, or a length of time like 90d",
        "crontab" => "a crontab line like \"0 3 * * *\"",
        "zone" => "a time zone like Europe/Berlin",
        _ => "text",
    }
}

/// Checks the format of a text.
fn check_format(node: &Value, text: &str) -> Result<(), String> {
    match format_of(node) {
        "span" => text.parse::<Span>().map(drop).map_err(|it| it.to_string()),
        "keep" if text == "forever" => Ok(()),
        "keep" => text.parse::<Span>().map(drop).map_err(|it| format!("{it}, or forever")),
        "crontab" => Schedule::parse(text).map(drop).map_err(|it| it.to_string()),
        "zone" => text.parse::<ZoneName>().map(drop).map_err(|it| it.to_string()),
        "name" => check_name(text),
        "folder" => check_folder(text),
        "note" => check_note(text),
        "http-url" => check_base_url(text).map(drop).map_err(|it| it.to_string()),
        "key-file" | "path" => check_file_path(text),
        _ => Ok(()),
    }
}

/// The longest name of an agent, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 120;

/// Returns whether a name may contain a character: it is visible, and does not end the line.
pub(crate) fn is_name_char(it: char) -> bool {
    // YAML line breaks that are not control characters, and bidirectional marks.
    let invisible = [
        '\u{2028}', '\u{2029}', '\u{feff}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}',
        '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
    ];
    !it.is_control() && !invisible.contains(&it)
}

fn check_name(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("empty".to_owned());
    }
    if !text.chars().all(is_name_char) {
        return Err("more than one line, or invisible characters".to_owned());
    }
    if text.chars().count() > NAME_CHARS_MAX {
        return Err(format!("longer than {NAME_CHARS_MAX} characters"));
    }
    Ok(())
}

/// Checks a file of notes inside a root: it must not lead out of it or be hidden.
fn check_note(text: &str) -> Result<(), String> {
    check_name(text)?;
    let is_step = |it: &str| !it.is_empty() && !it.starts_with(['.', '~']);
    if !text.split('/').all(is_step) || text.strip_suffix(".md").is_none() {
        return Err(format!(
            "`{text}` is not a Markdown file within the root (expected one like MEMORY.md or memory/notes.md)"
        ));
    }
    Ok(())
}

/// Checks a folder inside a root: it must not lead out of it or be the private one.
fn check_folder(text: &str) -> Result<(), String> {
    check_name(text)?;
    let steps = || text.trim_end_matches('/').split('/');
    if text.starts_with(['/', '~']) || steps().any(|it| it == ".." || it.is_empty()) {
        return Err(format!(
            "`{text}` is not a folder within the root (expected one like memory, or \".\")"
        ));
    }
    if steps().find(|it| *it != ".") == Some(".memoird") {
        return Err("`.memoird` is private to memoird and contains no memories".to_owned());
    }
    Ok(())
}
