//! Typed memories, listed and read.

use super::{
    desk::{Seat, bad},
    give,
    page::{self, PAGE_BYTES_MAX},
    take::{self, Whose},
};
use crate::{
    commands::error::CommandError,
    memory::typed::{MemoryType, TypedMemory},
    privacy::Rules,
    recall::handed::{self, NOTICE},
    store::layout::FileKind,
};

/// A folder with more files than this is looked at no further.
const FILES_MAX: usize = 20_000;

impl Seat {
    /// Returns all typed memories of a folder.
    fn memories(&self, whose: Whose) -> Result<Vec<(String, TypedMemory)>, CommandError> {
        let root = self.of(whose)?;
        let layout = root.vault.layout();
        let (paths, _) = root.vault.files_below(layout.memory_dir(), FILES_MAX);
        let mut memories = Vec::new();
        for path in paths {
            let name = path.rsplit('/').next().unwrap_or(&path);
            if layout.kind_of(&path) != Some(FileKind::Memory) || layout.typed(name) != path {
                continue;
            }
            let Some(text) = root.vault.read_text(&path)? else { continue };
            // One that cannot be read as such is told of by `status`.
            memories.extend(TypedMemory::parse(name.as_ref(), &text).ok().map(|it| (path, it)));
        }
        memories.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(memories)
    }

    /// Lists typed memories.
    pub(super) fn list(&self, asked: &take::List) -> Result<give::Memories, CommandError> {
        let start = page::start(asked.cursor.as_ref()).map_err(bad)?;
        let kind: Option<MemoryType> = asked.kind.map(take::Type::kind);
        let mut all = Vec::new();
        for whose in [Whose::Person, Whose::Agent] {
            if whose == Whose::Person && self.person.is_none() {
                continue;
            }
            let root = self.of(whose)?;
            for (path, it) in self.memories(whose)? {
                if kind.is_none_or(|kind| it.kind == kind) {
                    all.push(memory(whose, path, &it, &root.rules));
                }
            }
        }
        let total = all.len();
        let (memories, next_cursor) =
            page::cut(all, start, asked.limit.unwrap_or(50).clamp(1, 200));
        Ok(give::Memories { notice: NOTICE, total, memories, next_cursor })
    }

    /// Reads one typed memory.
    pub(super) fn get(&self, asked: &take::Get) -> Result<give::OneMemory, CommandError> {
        let root = self.of(asked.of)?;
        let wanted = asked.name.trim_end_matches(".md");
        let found = self.memories(asked.of)?.into_iter().find(|(_, it)| {
            let file = it.file_name.to_string_lossy();
            it.name == wanted || file.trim_end_matches(".md") == wanted
        });
        let Some((path, it)) = found else {
            let name: String = asked.name.chars().take(80).collect();
            return Err(bad(format!("`name`: there is no memory `{name}`"))
                .hint("memory_list {} says which there are"));
        };
        let body = handed::hand(None, None, &it.body, &root.rules).text;
        let read = page::lines(&body, 1, usize::MAX, PAGE_BYTES_MAX);
        Ok(give::OneMemory {
            notice: NOTICE,
            memory: memory(asked.of, path, &it, &root.rules),
            text: read.text,
            sources: it.sources.iter().map(|(at, _)| at.to_string()).collect(),
            supersedes: it.supersedes.as_deref().map(|it| handed::hand_line(it, &root.rules)),
        })
    }
}

fn memory(whose: Whose, path: String, it: &TypedMemory, rules: &Rules) -> give::Memory {
    let seen = |it: &str| page::short(&handed::hand_line(it, rules));
    let of = if whose == Whose::Person { "person" } else { "agent" };
    give::Memory {
        of: of.to_owned(),
        name: seen(&it.name),
        kind: it.kind.name().to_owned(),
        description: seen(&it.description),
        path,
        origin: if it.is_ours() { "derived" } else { "human" }.to_owned(),
        date: it.updated.or(it.created).map(|it| it.to_string()),
    }
}
