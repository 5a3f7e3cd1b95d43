//! The records of sessions.

use chrono::NaiveDate;
use serde::Serialize;

use super::{
    error::{CommandError, CommandResult},
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    memory::address::Stem,
    recall::framing,
    session::{
        record::RecordHeader,
        save::{SaveError, SessionStore, StoredRecord},
    },
};

/// A record of a session, sanitized.
#[derive(Serialize)]
pub(crate) struct RecordListItem {
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) project: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) started: Option<String>,
    pub(crate) ended: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) style: String,
    pub(crate) transcript: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) logged: bool,
}

/// Which records to list; a field that is `None` matches all.
#[derive(Debug, Default)]
pub(crate) struct RecordFilter {
    /// The folder of the project, or a part of its path.
    pub(crate) project: Option<String>,
    pub(crate) tag: Option<String>,
    /// Records that ended on this day or later.
    pub(crate) since: Option<NaiveDate>,
    /// Records that ended on this day or before.
    pub(crate) until: Option<NaiveDate>,
}

impl RecordFilter {
    fn matches(&self, header: &RecordHeader) -> bool {
        let date = header.ended.map(|it| it.date_naive());
        let date = date.or_else(|| Some(header.id.parse::<Stem>().ok()?.date()));
        let project = header.project.as_deref().unwrap_or_default();
        self.project.as_deref().is_none_or(|it| project.contains(it.trim_end_matches('/')))
            && self.tag.as_ref().is_none_or(|it| header.tags.contains(it))
            && self.since.is_none_or(|since| date.is_some_and(|date| since <= date))
            && self.until.is_none_or(|until| date.is_some_and(|date| date <= until))
    }
}

pub(crate) fn record_store<'a>(call: &Invocation, root: &'a MemoryRoot) -> SessionStore<'a> {
    SessionStore {
        vault: &root.vault,
        rules: &root.rules,
        zone: root.settings.zone.name.0,
        now: call.now,
    }
}

/// Returns the records that match, the newest first, sanitized.
pub(crate) fn stored_records(
    call: &Invocation,
    root: &MemoryRoot,
    filter: &RecordFilter,
) -> CommandResult<Vec<RecordListItem>> {
    let mut records = record_store(call, root).records()?;
    records.retain(|it| filter.matches(&it.header));
    records.sort_by(|a, b| b.header.ended.cmp(&a.header.ended).then_with(|| b.path.cmp(&a.path)));
    Ok(records.into_iter().map(|it| list_item(root, it)).collect())
}

/// Returns a sanitized record, because others may have written it.
fn list_item(root: &MemoryRoot, record: StoredRecord) -> RecordListItem {
    let seen = |text: String| framing::sanitize_line(&text, &root.rules);
    let header = record.header;
    RecordListItem {
        id: header.id,
        path: record.path,
        project: header.project.map(seen),
        branch: header.branch.map(seen),
        started: header.started.map(|it| it.to_rfc3339()),
        ended: header.ended.map(|it| it.to_rfc3339()),
        agent: header.agent.map(seen),
        description: header.description.map(seen),
        tags: header.tags.into_iter().map(seen).collect(),
        style: seen(header.style),
        transcript: header.transcript.map(seen),
        session: header.session.map(seen),
        logged: header.is_logged,
    }
}

impl From<SaveError> for CommandError {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::Vault(error) => error.into(),
            SaveError::Lock(error) => error.into(),
            error @ SaveError::NameTaken { .. } => Self::data(error)
                .hint("give it another `id:` in its frontmatter, then import it again"),
            error => Self::data(error).hint("memoird session list"),
        }
    }
}
