//! Frontmatter: YAML between two `---` lines, parsed under limits and written with quotes.
//!
//! Parsing is defensive, because anyone may have written the file: the size is capped, and
//! `serde_yaml` sees the text only after the guard ([`super::yaml`]). No error quotes the input.
//! Writing is strict: a string has no quotes only where every YAML reader, 1.1 or 1.2, reads that
//! string.
//!
//! # Invariants
//!
//! - [`split`] changes nothing: frontmatter and body are slices of the text.
//! - What [`write::FrontmatterWriter`] writes, [`parse`] reads back to the same values.
//!
//! Called by [`log`](super::log), [`document`](super::document), and [`typed`](super::typed).

pub mod write;

use serde_yaml::{Mapping, Value};

use super::yaml::{self, BRACKETS_MAX, YamlScope, YamlViolation, check_open_brackets};

/// The most YAML that is parsed from one file, in bytes.
pub const YAML_BYTES_MAX: usize = 16 * 1024;

/// The most YAML that is parsed from a generated weekly or monthly file, in bytes: it lists one
/// hash per bullet.
pub const GENERATED_YAML_BYTES_MAX: usize = 1024 * 1024;

/// A file split at its frontmatter, by byte offsets.
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

/// Frontmatter that is not parsed. Lines are those of the file, whose first line is the fence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrontmatterError {
    /// It is too long.
    #[error("the frontmatter has {bytes} bytes, more than the {bytes_max} that are read")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The guard refuses it.
    #[error(transparent)]
    Unsafe(#[from] YamlViolation),
    /// One key twice in one mapping.
    #[error("a key appears twice in the frontmatter{}", at_line(*.line))]
    DuplicateKey {
        /// The line that the parser reports, if any.
        line: Option<usize>,
    },
    /// Not YAML.
    #[error("the frontmatter is not valid YAML{}", at_line(*.line))]
    Syntax {
        /// The line that the parser reports, if any.
        line: Option<usize>,
    },
    /// A list or a single value where keys are expected.
    #[error("the frontmatter must consist of lines like `key: value`")]
    NotAMapping,
}

fn at_line(line: Option<usize>) -> String {
    line.map(|it| format!(" (near line {it})")).unwrap_or_default()
}

/// Finds the frontmatter of `text`: the lines between a first line `---` and the next one.
///
/// A byte-order mark before the fence, and blanks or a carriage return after it, do not matter. A
/// fence that is never closed is text. The result is compared with that of `gray_matter`, which
/// other programs use: where the two disagree, the author's intent is unclear and all of the text
/// is body.
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

/// Returns the frontmatter that `gray_matter` finds, with normalized line ends.
fn gray_matter_yaml(head: &str) -> Option<String> {
    /// Does not parse the YAML: the crate's own parser expands aliases without limit.
    struct NoopEngine;

    impl gray_matter::engine::Engine for NoopEngine {
        fn parse(_: &str) -> gray_matter::Result<gray_matter::Pod> {
            Ok(gray_matter::Pod::Null)
        }
    }

    let matter = gray_matter::Matter::<NoopEngine>::new();
    matter.parse::<serde::de::IgnoredAny>(head).ok().map(|entity| entity.matter)
}

/// Parses the YAML of a frontmatter under limits.
///
/// Keys must be unique; empty text is an empty mapping.
///
/// # Errors
///
/// Returns the limit or rule that the text breaks.
pub fn parse(yaml: &str, bytes_max: usize) -> Result<Mapping, FrontmatterError> {
    if yaml.len() > bytes_max {
        return Err(FrontmatterError::TooLong { bytes: yaml.len(), bytes_max });
    }
    yaml::check(yaml, YamlScope::Frontmatter)?;
    match serde_yaml::from_str::<Value>(yaml) {
        Ok(Value::Mapping(mapping)) => Ok(mapping),
        Ok(Value::Null) => Ok(Mapping::new()),
        Ok(_) => Err(FrontmatterError::NotAMapping),
        Err(error) => {
            // The parser's message quotes the input, so only the line and the kind are passed on.
            let line = error.location().map(|it| it.line() + 1);
            Err(if error.to_string().contains("duplicate entry") {
                FrontmatterError::DuplicateKey { line }
            } else {
                FrontmatterError::Syntax { line }
            })
        }
    }
}

/// Frontmatter keys that are not ours: their values, and their lines as read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtherKeys {
    values: Mapping,
    /// With the comments before each; `None` where the lines do not parse to exactly these values.
    lines: Option<String>,
}

impl OtherKeys {
    /// Takes the keys of `yaml` that remain after ours were removed.
    pub fn new(values: Mapping, yaml: &str) -> Self {
        let lines = extract_lines(yaml, &values);
        Self { values, lines }
    }

    /// Returns the keys and their values, in order.
    pub fn values(&self) -> &Mapping {
        &self.values
    }

    /// Returns the keys that remain when those that `goes` matches are forgotten; `None` when all
    /// remain.
    ///
    /// All comments go with them, since one may contain the same words.
    pub fn without(&self, goes: &dyn Fn(&str) -> bool) -> Option<Self> {
        let holds = |key: &Value, value: &Value| {
            serde_yaml::to_string(&(key, value)).is_ok_and(|it| goes(&it))
        };
        let mut values = self.values.clone();
        values.retain(|key, value| !holds(key, value));
        let same = values.len() == self.values.len();
        let in_lines = self.lines.as_deref().is_some_and(|it| it.lines().any(goes));
        (!same || in_lines).then_some(Self { values, lines: None })
    }
}

/// Cuts the lines of `keys` out of YAML, each with its nested lines and the comments before it.
///
/// Returns `None` where they would not parse to the same values; then the values are written
/// instead.
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
        // Comments stay, even those before one of our keys.
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
    // Our own lines need room within the limit too.
    let fits = check_open_brackets(&lines, BRACKETS_MAX / 2).is_ok();
    (same && fits && !lines.is_empty()).then_some(lines)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        write::{FrontmatterWriter, scalar},
        *,
    };

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
        // Other readers close at the fence with the no-break space, so the intent is unclear.
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
    fn limits_and_rules_are_enforced() {
        use FrontmatterError::{DuplicateKey, NotAMapping, Syntax, Unsafe};
        use YamlViolation::{Alias, MultipleDocuments, Tag, TooDeep};
        check("", Ok(0));
        check("# nothing\n", Ok(0));
        check("a: 1\nb: [x, {y: z}]\nc:\n  - d: e\n    f: |\n      &g\n  - h\n", Ok(3));
        check("- a\n- b\n", Err(NotAMapping));
        check("word\n", Err(NotAMapping));
        check("a: 1\na: 2\n", Err(DuplicateKey { line: Some(2) }));
        check("a: b: c\n", Err(Syntax { line: Some(2) }));
        check("a: &x 1\n", Err(Unsafe(Alias { line: 2 })));
        check("b: 1\na: *x\n", Err(Unsafe(Alias { line: 3 })));
        check("b: 1\na: [x, *x]\n", Err(Unsafe(Alias { line: 3 })));
        check("a:\n  - - *x\n", Err(Unsafe(Alias { line: 3 })));
        check("a: !!binary aGk=\n", Err(Unsafe(Tag { line: 2 })));
        check("!x a: b\n", Err(Unsafe(Tag { line: 2 })));
        check("a: 1\n--- \nb: 2\n", Err(Unsafe(MultipleDocuments { line: 3 })));
        check("a: 1\n...\n", Err(Unsafe(MultipleDocuments { line: 3 })));
        check("%YAML 1.1\n", Err(Unsafe(MultipleDocuments { line: 2 })));
        check(&format!("a: {}{}\n", "[".repeat(31), "]".repeat(31)), Ok(1));
        check(
            &format!("a: {}{}\n", "[".repeat(32), "]".repeat(32)),
            Err(Unsafe(TooDeep { line: 2 })),
        );
        check(&"- ".repeat(40), Err(Unsafe(TooDeep { line: 2 })));
        let steps: String = (0..40).flat_map(|i| [" ".repeat(i), "k:\n".to_owned()]).collect();
        check(&steps, Err(Unsafe(TooDeep { line: 34 })));
        // A quote that only a naive scan sees as open must not hide what follows.
        check(
            &format!("k: |1\n    a\n \"b\nx: {}", "[".repeat(100)),
            Err(Unsafe(TooDeep { line: 5 })),
        );
        check("k:\n  |\n&a : x\n", Err(Unsafe(Alias { line: 4 })));
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
    fn hostile_text_is_cheap_and_never_quoted() {
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
    fn only_unambiguous_words_are_written_without_quotes() {
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
    fn unbalanced_brackets_are_escaped_and_read_back() {
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
        assert!(file.contains("\"[x] [y]\""), "balanced brackets need no escape");
        let map = parse(split(&file).yaml.unwrap(), 1 << 20).unwrap();
        for (i, text) in many.iter().enumerate() {
            assert_eq!(map["list"][i].as_str(), Some(text.as_str()));
            assert_eq!(map[format!("k{i}").as_str()].as_str(), Some(text.as_str()));
        }
        // Two foreign keys, each within the limit only together with our key between them.
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

    /// Values that a person's frontmatter may contain.
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
        fn foreign_keys_keep_their_values(key in any_value(), value in any_value()) {
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
