//! Session records, listed, read, and kept.

use super::{
    desk::{Seat, bad, not_allowed},
    give, page,
    reading::text,
    take::{self, Operation},
};
use crate::{
    commands::{error::CommandError, session::keeper, show},
    memory::{address::Stem, period::Period},
    recall::handed::{self, NOTICE},
    session::keep::IMPORT_BYTES_MAX,
};

impl Seat {
    /// Lists session records.
    pub(super) fn session_list(
        &self,
        asked: &take::SessionList,
    ) -> Result<give::Records, CommandError> {
        let root = &self.agent;
        let start = page::start(asked.cursor.as_ref()).map_err(bad)?;
        let since = take::period("since", asked.since.as_ref()).map_err(bad)?.map(Period::first);
        let until = take::period("until", asked.until.as_ref()).map_err(bad)?.map(Period::last);
        let mut records = keeper(&self.call, root).records()?;
        records.retain(|it| {
            let date = it.header.ended.map(|it| it.date_naive());
            let date = date.or_else(|| Some(it.header.id.parse::<Stem>().ok()?.date()));
            let project = it.header.project.as_deref().unwrap_or_default();
            asked.project.as_ref().is_none_or(|it| project.contains(it.trim_end_matches('/')))
                && asked.tag.as_ref().is_none_or(|tag| it.header.tags.contains(tag))
                && since.is_none_or(|it| date.is_some_and(|date| it <= date))
                && until.is_none_or(|it| date.is_some_and(|date| date <= it))
        });
        records
            .sort_by(|a, b| b.header.ended.cmp(&a.header.ended).then_with(|| b.path.cmp(&a.path)));
        let seen = |it: String| handed::hand_line(&it, &root.rules);
        let total = records.len();
        let records = records.into_iter().map(|it| give::Record {
            id: it.header.id,
            path: it.path,
            project: it.header.project.map(seen),
            ended: it.header.ended.map(|it| it.to_rfc3339()),
            agent: it.header.agent.map(seen),
            description: it.header.description.map(|it| page::short(&seen(it))),
            tags: it.header.tags.into_iter().map(seen).collect(),
            style: seen(it.header.style),
        });
        let limit = asked.limit.unwrap_or(20).clamp(1, 100);
        let (records, next_cursor) = page::cut(records.collect(), start, limit);
        Ok(give::Records { notice: NOTICE, total, records, next_cursor })
    }

    /// Reads a session record as it may be seen.
    pub(super) fn session_export(
        &self,
        asked: &take::SessionExport,
    ) -> Result<give::Text, CommandError> {
        let name = asked.id.trim_end_matches(".md");
        if !name.parse::<Stem>().is_ok_and(|it| it.is_session()) {
            let name: String = name.chars().take(80).collect();
            return Err(bad(format!("`id`: `{name}` is not the name of a record"))
                .hint("a name like CMEM-20260402-101500; memory_session_list {} has them all"));
        }
        let (path, handed, since) = show::handed_at(&self.call, &self.agent, name, None)?;
        text(&self.agent, path, handed, since, (asked.from.unwrap_or(1), usize::MAX))
    }

    /// Keeps a session record.
    pub(super) fn session_import(
        &self,
        asked: &take::SessionImport,
    ) -> Result<give::Imported, CommandError> {
        if asked.text.trim().is_empty() {
            return Err(bad("`text` is empty".to_owned()));
        }
        if asked.text.len() as u64 > IMPORT_BYTES_MAX {
            return Err(bad(format!("`text` holds more than {} MiB", IMPORT_BYTES_MAX >> 20)));
        }
        self.agent.refuse_stranger()?;
        let (id, path, unchanged) = keeper(&self.call, &self.agent).import(&asked.text)?;
        let date = id.parse::<Stem>().ok().map(|it| it.date().to_string());
        Ok(give::Imported { id, path, date, unchanged })
    }

    /// The three above in one.
    pub(super) fn core_memory(
        &self,
        asked: take::CoreMemory,
    ) -> Result<give::CoreMemory, CommandError> {
        let mut given = give::CoreMemory::default();
        match asked.operation {
            Operation::List => {
                let take::CoreMemory { project, tag, limit, cursor, .. } = asked;
                let (since, until) = (None, None);
                let asked = take::SessionList { project, tag, since, until, limit, cursor };
                given.list = Some(self.session_list(&asked)?);
            }
            Operation::Export => {
                let id = asked.id.ok_or_else(|| bad("`id` is missing for `export`".to_owned()))?;
                let asked = take::SessionExport { id, from: asked.from };
                given.export = Some(self.session_export(&asked)?);
            }
            Operation::Import => {
                if !self.writes {
                    return Err(not_allowed("core_memory with `import`"));
                }
                let text =
                    asked.text.ok_or_else(|| bad("`text` is missing for `import`".to_owned()))?;
                given.import = Some(self.session_import(&take::SessionImport { text })?);
            }
        }
        Ok(given)
    }
}
