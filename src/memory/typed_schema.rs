//! The schema of typed memories, `schema/typed-memory.schema.json`, and the check against it.
//!
//! A person's file must have a name, a description, and a type that agrees with the file name. A
//! managed file must be complete: days, sources, hash, lengths, and for feedback the reason.
//!
//! Called by `compaction` before a typed memory is written, and by `commands` to check a root.

use std::sync::LazyLock;

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use serde_json::{Map, Value, json};

use super::typed::TypedMemory;

/// The text of the schema.
pub const TYPED_MEMORY_SCHEMA: &str = include_str!("../../schema/typed-memory.schema.json");

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    let schema = serde_json::from_str(TYPED_MEMORY_SCHEMA).expect("a test reads the schema");
    jsonschema::validator_for(&schema).expect("a test compiles the schema")
});

/// The rules that a typed memory breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{file}` breaks the rules of a typed memory: {}", .problems.join("; "))]
pub struct SchemaError {
    /// The name of the file.
    pub file: String,
    /// Each key and what is wrong with it, without quoting the value.
    pub problems: Vec<String>,
}

/// Checks a memory against the schema.
///
/// # Errors
///
/// Returns all rules that the memory breaks.
pub fn validate(memory: &TypedMemory) -> Result<(), SchemaError> {
    let file = memory.file_name.to_string_lossy().into_owned();
    let document =
        json!({ "file": file, "frontmatter": frontmatter_json(memory), "body": memory.body });
    let mut problems: Vec<String> =
        VALIDATOR.iter_errors(&document).map(|it| describe_violation(&it)).collect();
    problems.sort();
    problems.dedup();
    if problems.is_empty() { Ok(()) } else { Err(SchemaError { file, problems }) }
}

/// Returns the keys that the schema covers, as JSON.
fn frontmatter_json(memory: &TypedMemory) -> Value {
    let mut keys = Map::new();
    let mut insert = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            keys.insert(key.to_owned(), value);
        }
    };
    insert("name", Some(memory.name.as_str().into()));
    insert("description", Some(memory.description.as_str().into()));
    insert("type", Some(memory.kind.name().into()));
    insert("created", memory.created.map(|it| it.to_string().into()));
    insert("updated", memory.updated.map(|it| it.to_string().into()));
    let sources = memory.sources.iter().map(|(at, hash)| format!("{at}#{hash}"));
    insert("sources", (!memory.sources.is_empty()).then(|| sources.collect()));
    insert("supersedes", memory.supersedes.as_deref().map(Value::from));
    insert("memoird", memory.recorded_body.as_deref().map(|it| json!({ "body": it })));
    Value::Object(keys)
}

/// Describes in plain words which key is wrong, and how.
fn describe_violation(error: &ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let key = path.trim_start_matches('/').trim_start_matches("frontmatter/").replace('/', ".");
    let subject = if key.is_empty() || key == "frontmatter" {
        "frontmatter".to_owned()
    } else {
        format!("`{key}`")
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("`{}` is missing", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::MaxLength { limit } => {
            format!("{subject} is longer than {limit} characters")
        }
        ValidationErrorKind::Pattern { pattern } if key == "body" && pattern.contains("Why") => {
            "feedback needs a paragraph that begins with `**Why:**`".to_owned()
        }
        ValidationErrorKind::Pattern { pattern } if pattern == "\\S" => {
            format!("{subject} is empty")
        }
        ValidationErrorKind::Pattern { .. } => {
            format!("{subject} does not have the form it must have")
        }
        _ => format!("{subject}: {}", error.masked()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::memory::typed;

    const OURS: &str = "\
---
name: Testing approach
description: Use real databases
type: feedback
created: 2026-04-02
updated: 2026-04-03
sources: [2026-04-02:12#3fa9]
memoird: { body: \"0000000000000000\" }
---

Test against a real database.

**Why:** Mocks hid a bug.
";

    #[track_caller]
    fn check_file(name: &str, text: &str, problems: &[&str]) {
        let memory = TypedMemory::parse(Path::new(name), text).unwrap();
        let found = validate(&memory).err().map(|it| it.problems).unwrap_or_default();
        assert_eq!(found, problems, "{text}");
    }

    #[test]
    fn a_managed_memory_must_be_complete() {
        let name = "feedback_testing-approach.md";
        check_file(name, OURS, &[]);
        check_file(
            name,
            &OURS.replace("**Why:**", "Because"),
            &["feedback needs a paragraph that begins with `**Why:**`"],
        );
        check_file(name, &OURS.replace("created: 2026-04-02\n", ""), &["`created` is missing"]);
        check_file(
            name,
            &OURS.replace("updated: 2026-04-03\nsources: [2026-04-02:12#3fa9]\n", ""),
            &["`sources` is missing", "`updated` is missing"],
        );
        check_file(
            name,
            &OURS.replace("Use", &"u".repeat(120)),
            &["`description` is longer than 120 characters"],
        );
        check_file(
            name,
            &OURS.replace("\"0000", "\"xx00"),
            &["`memoird.body` does not have the form it must have"],
        );
        check_file("feedback_Upper.md", OURS, &["`file` does not have the form it must have"]);
        let long = OURS.replace("Mocks", &"é".repeat(4096));
        check_file(name, &long, &["`body` is longer than 4096 characters"]);
        let memory = TypedMemory::parse(Path::new("feedback_x.md"), &long).unwrap();
        let error = validate(&memory).unwrap_err().to_string();
        assert!(
            error.starts_with("`feedback_x.md` breaks the rules") && !error.contains('é'),
            "{error}"
        );
    }

    #[test]
    fn a_persons_memory_needs_little() {
        let person = |body: &str| {
            format!(
                "---\nname: Ä b\ndescription: {}\ntype: feedback\ncreated: once\n---\n{body}",
                "d".repeat(300)
            )
        };
        check_file("feedback_Über_alles.md", &person("Just words.\n"), &[]);
        check_file("feedback_x.md", &person(" \n"), &["`body` is empty"]);
    }

    #[test]
    fn generated_memories_satisfy_the_schema() {
        let mut memory = TypedMemory::parse(Path::new("feedback_x.md"), OURS).unwrap();
        memory.file_name = typed::file_name(memory.kind, "Größe & Ж").into();
        memory.body = typed::format_body("State it.", Some("Because."), Some("Always."));
        memory.supersedes = Some("feedback_old.md".to_owned());
        memory.record_body_hash();
        assert_eq!(validate(&memory), Ok(()));
    }
}
