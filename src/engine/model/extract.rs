//! Typed memories: a log out, JSON back.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{ModelEngine, data, json as reply};
use crate::{
    engine::{EngineError, ExtractInput, MemoryDraft},
    memory::{address::Citation, frontmatter, typed::MemoryType},
    model::{Message, OutputSchema, Request, Stage, prompt::PromptName},
};

/// A day that holds more is not read as what a person wanted to keep.
const MEMORIES_MAX: usize = 50;

/// How many names of existing memories go along, the newest.
const NAMES_MAX: usize = 200;

/// A memory as the model writes it. What it says of paths is not asked for.
#[derive(Debug, Deserialize)]
struct Written {
    #[serde(rename = "type")]
    kind: String,
    topic: String,
    name: String,
    description: String,
    statement: String,
    why: Option<String>,
    how_to_apply: Option<String>,
    citations: String,
}

impl ModelEngine {
    pub(super) fn extract_by_model(
        &self,
        input: &ExtractInput<'_>,
    ) -> Result<Vec<MemoryDraft>, EngineError> {
        let blocks = data::of_logs(std::slice::from_ref(input.log));
        if blocks.is_empty() {
            return Ok(Vec::new());
        }
        let empty = self.request_of(input, "");
        let read_part = |parts: &[Vec<data::Block>], i: usize| {
            let request = self.request_of(input, &data::fenced(&parts[i], &self.nonce));
            self.ask_for_list(request, &read)
        };
        Ok(self.in_parts(&blocks, &empty, read_part)?.into_iter().flatten().collect())
    }

    fn request_of(&self, input: &ExtractInput<'_>, data: &str) -> Request {
        let prompt = self.prompts.get(PromptName::Extract);
        let mut known = String::from("Memories that exist:\n");
        if input.existing.is_empty() {
            known.push_str("none\n");
        }
        let newest = input.existing.len().saturating_sub(NAMES_MAX);
        for memory in &input.existing[newest..] {
            let _ = writeln!(known, "- {}: {}", memory.name, memory.description);
        }
        // They were made from logs, so they are data as the log is.
        let known = data::fence(&known, &self.nonce);
        Request {
            stage: Stage::Extract,
            period: input.log.stem().to_string(),
            system: prompt.fill(&[]),
            messages: vec![Message::user(format!("{known}\n\n{data}"))],
            schema: Some(schema()),
            max_output_tokens: prompt.max_output_tokens.min(self.max_output_tokens),
            temperature: prompt.temperature,
        }
    }
}

/// Returns the form of a reply: what providers can enforce, so all keys are required and bounds are
/// checked by us.
fn schema() -> OutputSchema {
    let text = json!({ "type": "string" });
    let text_or_null = json!({ "type": ["string", "null"] });
    let memory = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["type", "topic", "name", "description", "statement", "why", "how_to_apply", "citations"],
        "properties": {
            "type": { "type": "string", "enum": ["user", "feedback", "project", "reference"] },
            "topic": text,
            "name": text,
            "description": text,
            "statement": text,
            "why": text_or_null,
            "how_to_apply": text_or_null,
            "citations": text,
        },
    });
    OutputSchema {
        name: "memories".to_owned(),
        schema: json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["memories"],
            "properties": { "memories": { "type": "array", "items": memory } },
        }),
    }
}

/// Reads a reply: `{"memories": […]}`, or the list alone; each memory as its fields, or as a file.
///
/// # Errors
///
/// Returns what is wrong with it, in words that can be said to the model.
fn read(text: &str) -> Result<Vec<MemoryDraft>, String> {
    let value = reply::value(text).ok_or("it holds no JSON")?;
    let list = match value {
        Value::Array(list) => list,
        Value::Object(mut object) => match object.remove("memories") {
            Some(Value::Array(list)) => list,
            _ => return Err("`memories` is no list".to_owned()),
        },
        _ => return Err("it is no object".to_owned()),
    };
    if list.len() > MEMORIES_MAX {
        return Err(format!("it holds {} memories; at most {MEMORIES_MAX} are read", list.len()));
    }
    list.into_iter()
        .enumerate()
        .map(|(i, it)| memory(it).map_err(|e| format!("memory {}: {e}", i + 1)))
        .collect()
}

fn memory(value: Value) -> Result<MemoryDraft, String> {
    let written = match value.get("content").and_then(Value::as_str) {
        Some(content) => of_file(content, &value)?,
        None => serde_json::from_value::<Written>(value).map_err(|e| e.to_string())?,
    };
    let kind = MemoryType::from_name(&written.kind)
        .ok_or("`type` is none of user, feedback, project, reference")?;
    let citation: Citation = written
        .citations
        .trim()
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .map_err(|_| "`citations` names no lines".to_owned())?;
    let one_line = |text: &str, chars_max: usize, name: &str| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.chars().count() {
            0 => Err(format!("`{name}` is empty")),
            chars if chars > chars_max => Err(format!("`{name}` is over {chars_max} characters")),
            _ => Ok(line),
        }
    };
    let some = |text: Option<String>| text.filter(|it| !it.trim().is_empty());
    Ok(MemoryDraft {
        kind,
        topic: one_line(&written.topic, 200, "topic")?,
        name: one_line(&written.name, 120, "name")?,
        description: one_line(&written.description, 119, "description")?,
        statement: one_line(&written.statement, 4000, "statement")?,
        why: some(written.why),
        how_to_apply: some(written.how_to_apply),
        citation,
    })
}

/// Takes a whole file apart: frontmatter, then the statement, then `**Why:**` and `**How to apply:**`.
/// Its name is a proposal for the topic, no more.
fn of_file(content: &str, value: &Value) -> Result<Written, String> {
    let split = frontmatter::split(content);
    let yaml = split.yaml.ok_or("`content` has no frontmatter")?;
    let head = frontmatter::parse(yaml, frontmatter::YAML_BYTES_MAX).map_err(|e| e.to_string())?;
    let text = |key: &str| head.get(key).and_then(serde_yaml::Value::as_str).unwrap_or_default();
    let file = value.get("filename").and_then(Value::as_str).unwrap_or_default();
    let stem = file.rsplit(['/', '\\']).next().unwrap_or_default().trim_end_matches(".md");
    let topic = stem.split_once('_').map_or(stem, |(_, topic)| topic);
    let citations = match head.get("sources") {
        Some(serde_yaml::Value::Sequence(list)) => {
            let lines = list.iter().filter_map(serde_yaml::Value::as_str);
            lines.map(|it| it.split('#').next().unwrap_or(it)).collect::<Vec<_>>().join("; ")
        }
        _ => text("citations").to_owned(),
    };
    let body = split.body(content).trim();
    let part = |mark: &str| {
        let after = body.split_once(mark)?.1;
        Some(after.split("\n**").next().unwrap_or(after).trim().to_owned())
    };
    let statement = body.split("\n**Why:**").next().unwrap_or(body);
    let statement = statement.split("\n**How to apply:**").next().unwrap_or(statement);
    Ok(Written {
        kind: text("type").to_owned(),
        topic: if topic.is_empty() { text("name").to_owned() } else { topic.to_owned() },
        name: text("name").to_owned(),
        description: text("description").to_owned(),
        statement: statement.trim().to_owned(),
        why: part("**Why:**"),
        how_to_apply: part("**How to apply:**"),
        citations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Value {
        json!({
            "type": "feedback", "topic": "run tests", "name": "Run the tests", "description": "Before a push",
            "statement": "Run the tests before a push.", "why": "A push broke main", "how_to_apply": null,
            "citations": "2026-04-02:1,3",
        })
    }

    #[test]
    fn both_forms_and_both_roots_are_read() {
        let content = "---\nname: Run the tests\ndescription: Before a push\ntype: feedback\n\
            sources: [\"2026-04-02:1#3fa9\", \"2026-04-02:3\"]\n---\nRun the tests before a push.\n\n\
            **Why:** A push broke main\n";
        let file = json!({ "filename": "../feedback_run-tests.md", "content": content });
        let whole = |it: Value| json!({ "memories": [it] }).to_string();
        let expected = read(&whole(fields())).unwrap();
        assert_eq!(expected[0].citation.to_string(), "2026-04-02:1,3");
        assert_eq!(read(&json!([fields()]).to_string()).unwrap(), expected);
        let from_file = read(&whole(file)).unwrap();
        assert_eq!(from_file[0].topic, "run-tests");
        assert_eq!(from_file[0].statement, expected[0].statement);
        assert_eq!(from_file[0].why, expected[0].why);
        assert_eq!(from_file[0].citation, expected[0].citation);
        assert_eq!(read("[]").unwrap(), []);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (key, value, expected) in [
            ("type", json!("instruction"), "`type` is none of"),
            ("citations", json!("line 4"), "`citations` names no lines"),
            ("name", json!("x".repeat(121)), "`name` is over 120"),
            ("statement", json!(" "), "`statement` is empty"),
            ("why", json!(3), "invalid type"),
        ] {
            let mut memory = fields();
            memory[key] = value;
            let error = read(&json!({ "memories": [memory] }).to_string()).unwrap_err();
            assert!(error.contains(expected) && error.contains("memory 1"), "{error}");
        }
        assert!(read("I found nothing.").unwrap_err().contains("no JSON"));
        assert!(read(r#"{"memory": []}"#).unwrap_err().contains("`memories`"));
    }
}
