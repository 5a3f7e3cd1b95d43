//! Parses YAML to plain values, under limits.
//!
//! A file that travels with a root may come from anywhere, so dangerous YAML is refused: alias bombs, nesting that
//! takes minutes to scan, tags, duplicate keys. The result is JSON: the layers are merged and checked in that
//! form.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::memory::yaml::{self as guard, YamlScope, YamlViolation};

/// The maximum size of a text, in bytes.
pub(super) const BYTES_MAX: usize = 1024 * 1024;

/// The maximum number of values in a text, after aliases are expanded: this stops alias bombs.
const NODES_MAX: u32 = 50_000;

/// Why a text is refused.
#[derive(Debug, thiserror::Error)]
pub enum YamlError {
    /// Longer than 1 MiB.
    #[error("longer than {} bytes", BYTES_MAX)]
    TooLong,
    /// The guard refuses it.
    #[error(transparent)]
    Unsafe(#[from] YamlViolation),
    /// The text is not UTF-8.
    #[error("not UTF-8 text")]
    NotUtf8,
    /// The top level is not a mapping.
    #[error("expected lines of `key: value`, found {0}")]
    NotMapping(&'static str),
    /// Not YAML, or over the limits.
    #[error("{0}")]
    Syntax(#[from] serde_yaml::Error),
}

/// Parses a mapping. An empty text is an empty mapping.
pub(super) fn read_mapping(text: &str) -> Result<Map<String, Value>, YamlError> {
    match read_value(text)? {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::Array(_) => Err(YamlError::NotMapping("a list")),
        _ => Err(YamlError::NotMapping("a single value")),
    }
}

/// Parses one value of any type.
pub(super) fn read_value(text: &str) -> Result<Value, YamlError> {
    // A byte order mark, which some editors write; YAML allows it, but the scanner does not everywhere.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > BYTES_MAX {
        return Err(YamlError::TooLong);
    }
    guard::check(text, YamlScope::File)?;
    let nodes = Cell::new(0);
    Ok(ValueSeed { nodes: &nodes }.deserialize(serde_yaml::Deserializer::from_str(text))?)
}

/// Builds one value and counts it.
#[derive(Clone, Copy)]
struct ValueSeed<'a> {
    nodes: &'a Cell<u32>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.nodes.set(self.nodes.get() + 1);
        if self.nodes.get() > NODES_MAX {
            return Err(D::Error::custom(format!("more than {NODES_MAX} values")));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_f64<E: serde::de::Error>(self, it: f64) -> Result<Value, E> {
        let number = Number::from_f64(it).ok_or_else(|| E::custom("not a finite number"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key_seed(self)? {
            let Value::String(key) = key else {
                return Err(A::Error::custom("a key that is not text (write it in quotes)"));
            };
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{key}` appears twice")));
            }
            let value = entries.next_value_seed(self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Value) {
        assert_eq!(&Value::Object(read_mapping(text).unwrap()), expected);
    }

    #[track_caller]
    fn check_refused(text: &str, expected: &str) {
        let error = read_mapping(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn plain_values() {
        check(
            "a: 1\nb: [x, 0.5, true, null]\nc: {d: '1'}",
            &json!({"a":1,"b":["x",0.5,true,null],"c":{"d":"1"}}),
        );
        check("", &json!({}));
        check("# nothing\n", &json!({}));
        check("\u{feff}a: yes\n", &json!({"a":"yes"}));
        check("---\na: -5\n", &json!({"a":-5}));
        check("a: -5\n...\n", &json!({"a":-5}));
        check(&format!("# {}\na: b\n", "- ".repeat(80)), &json!({"a":"b"}));
        check("a: &x {b: 1}\nc: *x\n", &json!({"a":{"b":1},"c":{"b":1}}));
    }

    #[test]
    fn invalid_and_dangerous_yaml_is_refused() {
        check_refused("a: 1\na: 2\n", "the key `a` appears twice");
        check_refused("x:\n  a: 1\n  a: 2\n", "x: the key `a` appears twice at line 2");
        check_refused("1: a\n", "not text");
        check_refused("[a]: a\n", "not text");
        check_refused("a: !run x\n", "tags (`!`) are not read");
        check_refused("a: .nan\n", "not a finite number");
        check_refused("a: .inf\n", "not a finite number");
        check_refused("- a\n", "found a list");
        check_refused("hello\n", "found a single value");
        check_refused("a: 1\n---\nb: 2\n", "more than one document");
        check_refused("a: 1\n...\n---\nb: 2\n", "more than one document");
        check_refused("a: [1\n", "line");
        check_refused("a: *b\n", "unknown anchor");
        check_refused(&"x".repeat(BYTES_MAX + 1), "longer than");
        check_refused(&"[".repeat(100_000), "nested deeper");
        check_refused(&"- ".repeat(100_000), "nested deeper");
        check_refused(&"? ".repeat(100_000), "nested deeper");
        check_refused(&format!("--- {}", "- ".repeat(100_000)), "nested deeper");
        check_refused(&"- &a ".repeat(100_000), "nested deeper");
        check_refused(&"- !a ".repeat(100_000), "line 1");
        check_refused(&format!("a:{}", "\n- [".repeat(100_000)), "nested deeper");
    }

    #[test]
    fn alias_bombs_are_stopped() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..9 {
            let below = vec![format!("*a{}", level - 1); 9].join(", ");
            writeln!(text, "a{level}: &a{level} [{below}]").unwrap();
        }
        check_refused(&text, "");
        let mut wide = format!("a: &a [{}]\n", "x,".repeat(1000));
        for at in 0..1000 {
            writeln!(wide, "b{at}: *a").unwrap();
        }
        check_refused(&wide, "more than 50000 values");
    }
}
