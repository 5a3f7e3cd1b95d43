//! A session record: `memory/sessions/CMEM-20260402-101500.md`.
//!
//! The frontmatter identifies the session and the last entry covered; the body is the summary and the
//! transcript entries that it cites. An imported text (`session import`) is stored byte for byte: as
//! the record itself if it has our frontmatter, else as the body of a new record.

use chrono::{DateTime, FixedOffset};
use serde_yaml::Value;

use crate::memory::{
    address::Stem,
    frontmatter::{self, YAML_BYTES_MAX, write::FrontmatterWriter},
    log::TextOrigin,
};

/// The style of a record whose body was imported.
pub(crate) const IMPORTED: &str = "imported";

/// The frontmatter of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    /// The id of the record, which is also the name of its file.
    pub id: String,
    /// The folder of the project.
    pub project: Option<String>,
    pub branch: Option<String>,
    /// The time of the first entry covered.
    pub started: Option<DateTime<FixedOffset>>,
    /// The time of the last entry covered.
    pub ended: Option<DateTime<FixedOffset>>,
    /// The agent and its version.
    pub agent: Option<String>,
    /// What the session was about, on one line.
    pub description: Option<String>,
    /// Labels chosen by the user.
    pub tags: Vec<String>,
    /// The file of the transcript.
    pub transcript: Option<String>,
    /// The id of the session in the transcript.
    pub session: Option<String>,
    /// The id of the last transcript line covered.
    pub through: Option<String>,
    /// `full`, `partial`, `handoff`, `recovery`, or [`IMPORTED`].
    pub style: String,
    /// The engine id of the model that wrote the summary; `None` without a model.
    pub engine: Option<String>,
    /// Whether the daily log has an entry about it.
    pub is_logged: bool,
    /// Whether the text was written by others.
    pub is_external: bool,
}

/// Returns the id of a record of a session that ended at `ended`; `copy` counts records of the same
/// second, from 1.
pub(crate) fn record_id(ended: DateTime<FixedOffset>, copy: u32) -> String {
    let time = ended.format("%Y%m%d-%H%M%S");
    if copy <= 1 { format!("CMEM-{time}") } else { format!("CMEM-{time}-{copy}") }
}

impl RecordHeader {
    /// Prints the frontmatter.
    pub(crate) fn print(&self) -> String {
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
        // Whoever wrote its parts, a coding agent's program provided the text.
        let origin = if self.is_external { TextOrigin::External } else { TextOrigin::Agent };
        out.bare("origin", origin.name());
        out.finish()
    }

    /// Reads the frontmatter of a record; `None` for a text without our frontmatter.
    pub(crate) fn parse(text: &str) -> Option<Self> {
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
            is_external: get("origin").as_deref() == Some(TextOrigin::External.name()),
        })
    }

    /// Returns the number of lines of the frontmatter.
    pub(crate) fn line_count(&self) -> u32 {
        u32::try_from(self.print().matches('\n').count()).unwrap_or(u32::MAX)
    }
}

/// Returns the text for `session export`: an imported text as it was, or the whole record.
pub(crate) fn export_text(record: &str) -> &str {
    let is_body = RecordHeader::parse(record).is_some_and(|it| it.style == IMPORTED);
    if is_body { frontmatter::split(record).body(record) } else { record }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_header_is_parsed_again() {
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
            is_external: false,
        };
        assert_eq!(RecordHeader::parse(&format!("{}\nbody", header.print())), Some(header.clone()));
        assert_eq!(header.print().lines().count(), header.line_count() as usize);
        assert_eq!(RecordHeader::parse("no frontmatter"), None);
        assert_eq!(RecordHeader::parse("---\nid: 2026-04-02\n---\n"), None);
    }

    #[test]
    fn an_imported_text_is_exported_unchanged() {
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
