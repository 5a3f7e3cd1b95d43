//! Finds the JSON value in a reply.
//!
//! Providers that enforce a schema return one value. Others wrap it in a code fence or in prose, which
//! may contain braces itself, so the text from the first `{` to the last `}` need not be JSON. The
//! search tries every possible start and takes the longest value that parses.

use serde::Deserialize as _;
use serde_json::Value;

use super::summary::without_code_fence;

/// The most starts to try; a reply has little prose before its value.
const STARTS_MAX: usize = 64;

/// Returns the object or array in a reply.
pub fn find_value(text: &str) -> Option<Value> {
    let text = without_code_fence(text);
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return is_compound(&value).then_some(value);
    }
    let starts = text.match_indices(['{', '[']).map(|(at, _)| at).take(STARTS_MAX);
    let found = starts.filter_map(|at| {
        let mut stream = serde_json::Deserializer::from_str(&text[at..]);
        let value = Value::deserialize(&mut stream).ok()?;
        is_compound(&value).then_some(value)
    });
    found.max_by_key(|it| it.to_string().len())
}

fn is_compound(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_among_words_with_braces() {
        for (text, expected) in [
            (r#"{"a": 1}"#, Some(r#"{"a":1}"#)),
            ("```json\n{\"a\": 1}\n```", Some(r#"{"a":1}"#)),
            (r#"The set {x} gives: {"a": [1, 2]} as {asked}."#, Some(r#"{"a":[1,2]}"#)),
            (r#"[] or rather [{"a": 1}]"#, Some(r#"[{"a":1}]"#)),
            ("[]", Some("[]")),
            (r#"{"a": 1"#, None),
            ("nothing", None),
            ("3", None),
        ] {
            assert_eq!(find_value(text).map(|it| it.to_string()).as_deref(), expected, "{text}");
        }
    }
}
