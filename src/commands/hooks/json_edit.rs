//! Changes single values in the text of JSON or JSON5 settings; everything else stays as its owner wrote it, comments and
//! trailing commas included. An object in one line that gets another member is written in several.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstNode, CstRootNode},
    errors::ParseError,
};
use serde_json::{Value, json};

/// What a program reads besides JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// Nothing.
    Json,
    /// Comments and trailing commas.
    Jsonc,
    /// The whole of JSON5.
    Json5,
}

impl Syntax {
    fn options(self) -> ParseOptions {
        let (is_jsonc, is_json5) = (self != Self::Json, self == Self::Json5);
        ParseOptions {
            allow_comments: is_jsonc,
            allow_trailing_commas: is_jsonc,
            allow_loose_object_property_names: is_json5,
            allow_missing_commas: false,
            allow_single_quoted_strings: is_json5,
            allow_hexadecimal_numbers: is_json5,
            allow_unary_plus_numbers: is_json5,
            allow_bare_decimal_point_numbers: is_json5,
            allow_non_finite_numbers: is_json5,
            allow_extended_string_escapes: is_json5,
        }
    }
}

/// Returns the value of settings; an empty object for a text without a value.
pub(super) fn parse(text: &str, syntax: Syntax) -> Result<Value, ParseError> {
    let root = CstRootNode::parse(text.trim_start_matches('\u{feff}'), &syntax.options())?;
    Ok(root.to_serde_value().unwrap_or_else(|| json!({})))
}

/// Returns the text of settings with the changes that make their value `new`.
///
/// Members and elements are added behind the others.
pub(super) fn change(text: &str, new: &Value, syntax: Syntax) -> Result<String, ParseError> {
    let root = CstRootNode::parse(text, &syntax.options())?;
    match root.value().filter(|it| is_same_kind(it, new)) {
        Some(node) => change_items(&node, new),
        None => {
            root.set_value(input(new));
        }
    }
    Ok(root.to_string())
}

/// Returns whether a value is a list or an object of the same kind, so that its items can be changed.
fn is_same_kind(node: &CstNode, new: &Value) -> bool {
    node.as_object().is_some() && new.is_object() || node.as_array().is_some() && new.is_array()
}

/// Changes the members of an object or the elements of a list.
fn change_items(node: &CstNode, new: &Value) {
    // Values that JSON does not have, such as `NaN`, are in neither.
    if node.to_serde_value().as_ref() == Some(new) {
        return;
    }
    if let (Some(object), Value::Object(new)) = (node.as_object(), new) {
        for member in object.properties() {
            let name = member.decoded_name().unwrap_or_default();
            match (member.value(), new.get(&name)) {
                (Some(old), Some(new)) if is_same_kind(&old, new) => change_items(&old, new),
                (Some(old), Some(new)) if old.to_serde_value().as_ref() == Some(new) => {}
                (_, Some(new)) => member.set_value(input(new)),
                (Some(old), None) if old.to_serde_value().is_none() => {}
                (_, None) => member.remove(),
            }
        }
        for (name, value) in new.iter().filter(|it| object.get(it.0).is_none()) {
            object.append(name, input(value));
        }
    } else if let (Some(list), Value::Array(new)) = (node.as_array(), new) {
        let elements = list.elements();
        let mut new = new.iter();
        for (n, old) in elements.iter().enumerate() {
            let value = old.to_serde_value();
            let is_same = new.as_slice().first().is_some_and(|it| value.as_ref() == Some(it));
            if !is_same && elements.len() - n > new.len() {
                old.clone().remove();
            } else if let Some(new) = new.next().filter(|_| !is_same) {
                if is_same_kind(old, new) {
                    change_items(old, new);
                } else {
                    list.insert(old.element_index().unwrap_or(n), input(new));
                    old.clone().remove();
                }
            }
        }
        for value in new {
            list.append(input(value));
        }
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(name, value)| (name.clone(), input(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes a text into a value, which must then be in it, and back.
    #[track_caller]
    fn check(text: &str, new: &Value, expected: &str) {
        let old = parse(text, Syntax::Jsonc).unwrap();
        let changed = change(text, new, Syntax::Jsonc).unwrap();
        assert_eq!(changed, expected);
        assert_eq!(parse(&changed, Syntax::Jsonc).unwrap(), *new);
        let again = change(&changed, &old, Syntax::Jsonc).unwrap();
        assert_eq!(parse(&again, Syntax::Jsonc).unwrap(), old, "{again}");
        for comment in ["// mine", "/* a, \"b\" */"] {
            assert_eq!(text.contains(comment), again.contains(comment), "{again}");
        }
    }

    #[test]
    fn comments_and_form_stay() {
        check("", &json!({"a": {"b": 1}}), "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n");
        check("{}", &json!({"a": 1}), "{\n  \"a\": 1\n}");
        check("{ // mine\n}\n", &json!({"a": 1}), "{ // mine\n  \"a\": 1\n}\n");
        check(
            "{\n\t\"x\": 1.50, // mine\n\t\"y\": [1,2] /* a, \"b\" */\n}\n",
            &json!({"x": 1.50, "y": [1, 2], "a": {"b": "//"}}),
            "{\n\t\"x\": 1.50, // mine\n\t\"y\": [1,2], /* a, \"b\" */\n\t\"a\": {\n\t\t\"b\": \"//\"\n\t}\n}\n",
        );
        check(
            "{\n  \"a\": 1,\n  // mine\n  \"b\": 2\n}",
            &json!({"b": 2}),
            "{\n  // mine\n  \"b\": 2\n}",
        );
        check(
            "{\n  \"a\": \"http://é\", // mine\n}\n",
            &json!({"a": "http://é", "b": 1}),
            "{\n  \"a\": \"http://é\", // mine\n  \"b\": 1,\n}\n",
        );
        check("[1, 2, 3, 4]", &json!([1, 5, 6, 4, 7]), "[1, 5, 6, 4, 7]");
        check("[1, 2, 3]", &json!([4, 3]), "[4, 3]");
        check("{\"a\": {\"b\": 1}}", &json!({"a": "c"}), "{\"a\": \"c\"}");
        for text in ["{a: 1}", "{\"a\": 1 \"b\": 2}"] {
            assert!(parse(text, Syntax::Jsonc).is_err(), "{text}");
        }
        assert!(parse("{} // mine", Syntax::Json).is_err());
    }

    #[test]
    fn json5_is_read_and_changed() {
        let text = "{\n  // mine\n  a: 'it\\'s // a', /* b */\n  $b: [0x1F, NaN,],\n  n: NaN,\n  \"c\": { d: true, },\n}\n";
        let old = parse(text, Syntax::Json5).unwrap();
        assert_eq!((&old["a"], &old["c"]), (&json!("it's // a"), &json!({"d": true})));
        let mut new = old.clone();
        new["c"]["e"] = json!({"f": ["g"]});
        new["z"] = json!(1);
        let changed = change(text, &new, Syntax::Json5).unwrap();
        assert_eq!(parse(&changed, Syntax::Json5).unwrap(), new);
        let again = change(&changed, &old, Syntax::Json5).unwrap();
        assert_eq!(parse(&again, Syntax::Json5).unwrap(), old);
        for kept in ["// mine", "/* b */", "$b: [0x1F, NaN,]", "n: NaN", "'it\\'s // a'"] {
            assert!(changed.contains(kept) && again.contains(kept), "{changed}{again}");
        }
        for text in ["{a: }", "{\n a: 1\n b: 2}", "[1 2]", "{a: 1", "{} x"] {
            assert!(parse(text, Syntax::Json5).is_err(), "{text}");
        }
        assert_eq!(parse(" // nothing\n", Syntax::Json5).unwrap(), json!({}));
    }

    #[test]
    fn what_was_added_is_removed_without_a_trace() {
        for text in [
            "{\n  // mine\n  \"a\": [1,\n 2]\n}\n",
            "{\r\n  \"a\": 1,\r\n}\r\n",
            "{\n\t\"a\": {}, // mine\n\t\"b\": 2 /* a, \"b\" */\n}",
        ] {
            let old = parse(text, Syntax::Jsonc).unwrap();
            let mut new = old.clone();
            new["hooks"] = json!({"S": [{"hooks": [{"command": "x"}]}]});
            new["z"] = json!(null);
            let changed = change(text, &new, Syntax::Jsonc).unwrap();
            assert_eq!(change(&changed, &old, Syntax::Jsonc).unwrap(), text, "{changed}");
        }
    }
}
