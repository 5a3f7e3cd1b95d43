//! A session record: `memory/sessions/CMEM-20260402-101500.md`.
//!
//! Frontmatter says which session it is of, and up to where; the body is the summary and the entries of
//! the transcript that it rests on. A text that somebody brings (`session import`) is kept byte for byte:
//! one with a frontmatter of ours as the record that it is, any other as the body of a new one.

use chrono::{DateTime, FixedOffset};
use serde_yaml::Value;

use crate::memory::{
    address::Stem,
    frontmatter::{self, YAML_BYTES_MAX, write::FrontmatterWriter},
};

/// How a record is marked whose body somebody brought.
pub const IMPORTED: &str = "imported";

/// What the frontmatter of a record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordHeader {
    /// The name of the record: that of its file.
    pub id: String,
    /// The folder of the project.
    pub project: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// When what it covers began.
    pub started: Option<DateTime<FixedOffset>>,
    /// When it ended.
    pub ended: Option<DateTime<FixedOffset>>,
    /// The agent and its version.
    pub agent: Option<String>,
    /// What the session was about, on one line.
    pub description: Option<String>,
    /// What people call it.
    pub tags: Vec<String>,
    /// The file that it was made of.
    pub transcript: Option<String>,
    /// The id of the session in it.
    pub session: Option<String>,
    /// The id of the last line of the transcript that it covers.
    pub through: Option<String>,
    /// `full`, `partial`, `handoff`, `recovery`, or [`IMPORTED`].
    pub style: String,
    /// The model that worded it, as it is named in files; `None` where none did.
    pub engine: Option<String>,
    /// Whether the daily log has an entry of what it covers.
    pub is_logged: bool,
}

/// Returns the name of a record made of something that ended then; `copy` tells those of one second
/// apart, from 1.
pub fn record_id(ended: DateTime<FixedOffset>, copy: u32) -> String {
    let time = ended.format("%Y%m%d-%H%M%S");
    if copy <= 1 { format!("CMEM-{time}") } else { format!("CMEM-{time}-{copy}") }
}

impl RecordHeader {
    /// Prints the frontmatter.
    pub fn print(&self) -> String {
        let mut out = FrontmatterWriter::new();
        out.text("id", &self.id);
        let mut text = |key: &str, value: &Option<String>| {
            if let Some(value) = value {
                out.text(key, value);
            }
        };
        text("project", &self.project);
        text("branch", &self.branch);
        text("started", &self.started.map(|it| it.to_rfc3339()));
        text("ended", &self.ended.map(|it| it.to_rfc3339()));
        text("agent", &self.agent);
        text("description", &self.description);
        if !self.tags.is_empty() {
            out.flow_list("tags", self.tags.iter().map(String::as_str));
        }
        let mut text = |key: &str, value: &Option<String>| {
            if let Some(value) = value {
                out.text(key, value);
            }
        };
        text("transcript", &self.transcript);
        text("session", &self.session);
        text("through", &self.through);
        out.text("style", &self.style);
        if let Some(engine) = &self.engine {
            out.text("engine", engine);
        }
        if self.is_logged {
            out.bare("logged", true);
        }
        // Whoever wrote what is in it, an agent's program handed it over.
        out.bare("origin", "agent");
        out.finish()
    }

    /// Reads the frontmatter of a record; `None` for a text that has none of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let map = frontmatter::parse(frontmatter::split(text).yaml?, YAML_BYTES_MAX).ok()?;
        let get = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
        let time = |key: &str| DateTime::parse_from_rfc3339(&get(key)?).ok();
        let tags = map.get("tags").and_then(Value::as_sequence);
        let tags = tags.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned));
        let id = get("id").filter(|it| it.parse::<Stem>().is_ok_and(|it| it.is_session()))?;
        Some(Self {
            id,
            project: get("project"),
            branch: get("branch"),
            started: time("started"),
            ended: time("ended"),
            agent: get("agent"),
            description: get("description"),
            tags: tags.collect(),
            transcript: get("transcript"),
            session: get("session"),
            through: get("through"),
            style: get("style").unwrap_or_else(|| IMPORTED.to_owned()),
            engine: get("engine"),
            is_logged: map.get("logged").and_then(Value::as_bool) == Some(true),
        })
    }

    /// Returns the number of the line after the frontmatter.
    pub fn line_count(&self) -> u32 {
        u32::try_from(self.print().matches('\n').count()).unwrap_or(u32::MAX)
    }
}

/// Returns what `session export` gives back: the text as it was brought, or the whole record.
pub fn export_text(record: &str) -> &str {
    let is_body = RecordHeader::parse(record).is_some_and(|it| it.style == IMPORTED);
    if is_body { frontmatter::split(record).body(record) } else { record }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_prints_what_it_reads() {
        let header = RecordHeader {
            id: "CMEM-20260402-101500".to_owned(),
            project: Some("C:\\work: x".to_owned()),
            branch: Some("fix/a b".to_owned()),
            started: DateTime::parse_from_rfc3339("2026-04-02T09:00:00+02:00").ok(),
            ended: DateTime::parse_from_rfc3339("2026-04-02T10:15:00+02:00").ok(),
            agent: Some("claude-code 2.0.31".to_owned()),
            description: Some("say \"hi\" — yes".to_owned()),
            tags: vec!["a".to_owned(), "b, c".to_owned()],
            transcript: Some("/home/nia/x.jsonl".to_owned()),
            session: None,
            through: Some("1".to_owned()),
            style: "full".to_owned(),
            engine: Some("model/1 qwen3:8b".to_owned()),
            is_logged: true,
        };
        assert_eq!(RecordHeader::parse(&format!("{}\nbody", header.print())), Some(header.clone()));
        assert_eq!(header.print().lines().count(), header.line_count() as usize);
        assert_eq!(RecordHeader::parse("no frontmatter"), None);
        assert_eq!(RecordHeader::parse("---\nid: 2026-04-02\n---\n"), None);
    }

    #[test]
    fn what_was_brought_comes_back() {
        let header = RecordHeader {
            id: "CMEM-20260402-101500".to_owned(),
            style: IMPORTED.to_owned(),
            ..RecordHeader::default()
        };
        for text in ["a", "---\nb: 1\n---\r\nc\n\n", "\u{feff}x\r\n", "\n\n# t\n"] {
            let record = format!("{}{text}", header.print());
            assert_eq!(export_text(&record), text);
        }
        let own = RecordHeader { style: "full".to_owned(), ..header }.print();
        assert_eq!(export_text(&own), own);
    }
}
