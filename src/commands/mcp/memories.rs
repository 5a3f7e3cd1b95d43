//! Typed memories: list and read.

use super::{
    page_limit::{self, PAGE_BYTES_MAX},
    requests::{self, MemoryOwner},
    responses,
    service::ServedFolder,
};
use crate::{
    commands::memories::MemoryTypeFilter,
    memory::typed::{MemoryType, TypedMemory},
    operations::error::{CommandError, CommandResult},
    privacy::PrivacyRules,
    recall::framing::{self, NOTICE},
};

impl ServedFolder {
    fn typed_memories(&self, whose: MemoryOwner) -> CommandResult<Vec<(String, TypedMemory)>> {
        self.root_of(whose)?.typed_memories()
    }

    pub(super) fn list_memories(
        &self,
        params: &requests::MemoryListParams,
    ) -> CommandResult<responses::MemoryListResponse> {
        let start =
            page_limit::parse_cursor(params.cursor.as_ref()).map_err(CommandError::usage)?;
        let kind: Option<MemoryType> = params.kind.map(MemoryTypeFilter::memory_type);
        let mut all = Vec::new();
        for whose in [MemoryOwner::Person, MemoryOwner::Agent] {
            if whose == MemoryOwner::Person && self.person.is_none() {
                continue;
            }
            let root = self.root_of(whose)?;
            for (path, it) in self.typed_memories(whose)? {
                if kind.is_none_or(|kind| it.kind == kind) {
                    all.push(memory_entry(whose, path, &it, &root.rules));
                }
            }
        }
        let total = all.len();
        let (memories, next_cursor) =
            page_limit::cut_page(all, start, params.limit.unwrap_or(50).clamp(1, 200));
        Ok(responses::MemoryListResponse { notice: NOTICE, total, memories, next_cursor })
    }

    pub(super) fn get_memory(
        &self,
        params: &requests::MemoryGetParams,
    ) -> CommandResult<responses::MemoryResponse> {
        let root = self.root_of(params.of)?;
        let wanted = params.name.trim_end_matches(".md");
        let found = self.typed_memories(params.of)?.into_iter().find(|(_, it)| {
            let file = it.file_name.to_string_lossy();
            it.name == wanted || file.trim_end_matches(".md") == wanted
        });
        let Some((path, it)) = found else {
            let name: String = params.name.chars().take(80).collect();
            return Err(CommandError::usage(format!("`name`: there is no memory `{name}`"))
                .hint("memory_list {} lists them all"));
        };
        let accepted = framing::accepted_in(&root.vault, &root.rules);
        let body = framing::frame_memory_body(&it, &root.rules, &accepted);
        let read = page_limit::cut_lines(&body, 1, usize::MAX, PAGE_BYTES_MAX);
        Ok(responses::MemoryResponse {
            notice: NOTICE,
            memory: memory_entry(params.of, path, &it, &root.rules),
            text: read.text,
            sources: it.sources.iter().map(|(at, _)| at.to_string()).collect(),
            supersedes: it.supersedes.as_deref().map(|it| framing::sanitize_line(it, &root.rules)),
        })
    }
}

fn memory_entry(
    whose: MemoryOwner,
    path: String,
    it: &TypedMemory,
    rules: &PrivacyRules,
) -> responses::MemoryEntry {
    let seen = |it: &str| page_limit::truncate_piece(&framing::sanitize_line(it, rules));
    let of = if whose == MemoryOwner::Person { "person" } else { "agent" };
    responses::MemoryEntry {
        of: of.to_owned(),
        name: seen(&it.name),
        kind: it.kind.name().to_owned(),
        description: seen(&it.description),
        path,
        origin: if it.is_managed() { "derived" } else { "human" }.to_owned(),
        date: it.updated.or(it.created).map(|it| it.to_string()),
    }
}
