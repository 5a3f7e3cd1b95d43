//! Finds the JSON value in a reply.
//!
//! Providers that enforce a schema return one value. Others wrap it in a code fence or in prose, which
//! may contain braces itself, so the text from the first `{` to the last `}` need not be JSON. The
//! search tries every possible start and takes the longest value that parses.

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::summary::without_code_fence;
use crate::model::OutputSchema;

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

/// Parses a reply with a list under `key`, or the bare list, of at most `items_max` items. The error is
/// worded for the model.
pub(super) fn find_list(value: Value, key: &str, items_max: usize) -> Result<Vec<Value>, String> {
    let list = match value {
        Value::Array(list) => list,
        Value::Object(mut object) => match object.remove(key) {
            Some(Value::Array(list)) => list,
            _ => return Err(format!("`{key}` is not a list")),
        },
        _ => return Err("it is not an object".to_owned()),
    };
    if list.len() > items_max {
        return Err(format!("it contains {} {key}; at most {items_max} are allowed", list.len()));
    }
    Ok(list)
}

/// Returns the schema of a reply with a list of `items` under `key`.
pub(super) fn list_schema(key: &str, items: &Value) -> OutputSchema {
    OutputSchema {
        name: key.to_owned(),
        schema: object_schema(&json!({ key: { "type": "array", "items": items } })),
    }
}

/// Returns the schema of an object that must have all of these keys, and no others.
pub(super) fn object_schema(properties: &Value) -> Value {
    let keys: Vec<&String> =
        properties.as_object().into_iter().flat_map(serde_json::Map::keys).collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": keys,
        "properties": properties,
    })
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
