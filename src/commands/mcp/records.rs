//! Session records: list, read, and import.

use super::{
    page_limit,
    reads::file_response,
    requests::{self, CoreMemoryOperation},
    responses,
    service::{ServedFolder, write_not_allowed},
};
use crate::{
    memory::{address::Stem, period::Period},
    operations::{
        error::{CommandError, CommandResult},
        session_records::{RecordFilter, record_store, stored_records},
        show,
    },
    recall::framing::NOTICE,
    session::save::IMPORT_BYTES_MAX,
};

impl ServedFolder {
    pub(super) fn session_list(
        &self,
        params: &requests::SessionListParams,
    ) -> CommandResult<responses::RecordListResponse> {
        let start =
            page_limit::parse_cursor(params.cursor.as_ref()).map_err(CommandError::usage)?;
        let since = requests::parse_period("since", params.since.as_ref())?.map(Period::first);
        let until = requests::parse_period("until", params.until.as_ref())?.map(Period::last);
        let (project, tag) = (params.project.clone(), params.tag.clone());
        let filter = RecordFilter { project, tag, since, until };
        let records = stored_records(&self.call, &self.agent, &filter)?;
        let total = records.len();
        let records = records.into_iter().map(|it| responses::RecordEntry {
            id: it.id,
            path: it.path,
            project: it.project,
            ended: it.ended,
            agent: it.agent,
            description: it.description.map(|it| page_limit::truncate_piece(&it)),
            tags: it.tags,
            style: it.style,
        });
        let limit = params.limit.unwrap_or(20).clamp(1, 100);
        let (records, next_cursor) = page_limit::cut_page(records.collect(), start, limit);
        Ok(responses::RecordListResponse { notice: NOTICE, total, records, next_cursor })
    }

    /// Reads a sanitized session record.
    pub(super) fn session_export(
        &self,
        params: &requests::SessionExportParams,
    ) -> CommandResult<responses::FileResponse> {
        let name = params.id.trim_end_matches(".md");
        if !name.parse::<Stem>().is_ok_and(|it| it.is_session()) {
            let name: String = name.chars().take(80).collect();
            return Err(CommandError::usage(format!("`id`: `{name}` is not the name of a record"))
                .hint("a name like CMEM-20260402-101500; memory_session_list {} lists them all"));
        }
        let (path, handed, since) = show::sanitized_at(&self.call, &self.agent, name, None)?;
        file_response(&self.agent, path, handed, since, (params.from.unwrap_or(1), usize::MAX))
    }

    /// Imports a session record.
    pub(super) fn session_import(
        &self,
        params: &requests::SessionImportParams,
    ) -> CommandResult<responses::ImportResponse> {
        if params.text.trim().is_empty() {
            return Err(CommandError::usage("`text` is empty".to_owned()));
        }
        if params.text.len() as u64 > IMPORT_BYTES_MAX {
            return Err(CommandError::usage(format!(
                "`text` is larger than {} MiB",
                IMPORT_BYTES_MAX >> 20
            )));
        }
        self.agent.require_memory_folder()?;
        let (id, path, unchanged) = record_store(&self.call, &self.agent).import(&params.text)?;
        let date = id.parse::<Stem>().ok().map(|it| it.date().to_string());
        Ok(responses::ImportResponse { id, path, date, unchanged })
    }

    /// The three operations above in one tool.
    pub(super) fn core_memory(
        &self,
        params: requests::CoreMemoryParams,
    ) -> CommandResult<responses::CoreMemoryResponse> {
        let mut given = responses::CoreMemoryResponse::default();
        match params.operation {
            CoreMemoryOperation::List => {
                let requests::CoreMemoryParams { project, tag, limit, cursor, .. } = params;
                let (since, until) = (None, None);
                let params =
                    requests::SessionListParams { project, tag, since, until, limit, cursor };
                given.list = Some(self.session_list(&params)?);
            }
            CoreMemoryOperation::Export => {
                let id = params.id.ok_or_else(|| {
                    CommandError::usage("`id` is missing for `export`".to_owned())
                })?;
                let params = requests::SessionExportParams { id, from: params.from };
                given.export = Some(self.session_export(&params)?);
            }
            CoreMemoryOperation::Import => {
                if !self.allows_writes {
                    return Err(write_not_allowed("core_memory with `import`"));
                }
                let text = params.text.ok_or_else(|| {
                    CommandError::usage("`text` is missing for `import`".to_owned())
                })?;
                given.import = Some(self.session_import(&requests::SessionImportParams { text })?);
            }
        }
        Ok(given)
    }
}
