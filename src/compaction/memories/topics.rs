//! Writes the typed memories by topic, together with the bullets of `WISDOM.md` that are chosen from the same statements.
//!
//! A memory about a topic is made again from the newest logs whenever they change. Its statements from older logs stay
//! as they are. A file that a person changed is theirs.

use std::path::{Path, PathBuf};

use super::day_reader::line_texts;
use crate::compaction::{
    error::JobFailure,
    journal::{
        commit::{FileWrite, RecordedChanges},
        records,
    },
};
use crate::{
    engine::extractive::TopicMemory,
    memory::{
        address::{Address, Citation},
        decision::Decisions,
        frontmatter::OtherKeys,
        item::Item,
        statement::{self, StatementKind},
        typed::{MemoryType, TypedMemory},
        typed_schema,
    },
    privacy::{FileNameSecrets, PrivacyRules, SanitizedLog},
    store::fs::{
        layout::{FileKind, Layout},
        vault::Vault,
    },
};

/// The longest `name` and `description`, in characters, as the schema has it.
const LINE_CHARS_MAX: usize = 120;

/// The memories of a root about topics, and what they are made from.
pub(crate) struct TopicWriter<'a> {
    pub(crate) vault: &'a Vault,
    pub(crate) memories: &'a [TypedMemory],
    /// The newest logs.
    pub(crate) logs: &'a [SanitizedLog],
    pub(crate) rules: &'a PrivacyRules,
}

/// Returns whether a memory is about a topic, rather than one statement.
pub(crate) fn is_about_topic(memory: &TypedMemory) -> bool {
    !statement::statements_of(&memory.body).is_empty()
}

/// Returns whether a statement must not be in a memory of a type: a person deleted it, or a memory that is not made
/// again has its lines.
pub(crate) fn is_kept_out(
    kind: MemoryType,
    citation: &Citation,
    memories: &[TypedMemory],
    decisions: &Decisions,
    layout: &Layout,
    logs: &[SanitizedLog],
) -> bool {
    let is_alike = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        layout.kind_of(path) == Some(FileKind::Memory)
            && MemoryType::of_file_name(Path::new(name)) == Some(kind)
    };
    let cites_all = |it: &TypedMemory| {
        citation.addresses().all(|at| it.sources.iter().any(|(there, _)| *there == at))
    };
    let mut others = memories.iter().filter(|it| !it.is_managed() || !is_about_topic(it));
    others.any(cites_all)
        || decisions
            .files_with_deleted()
            .filter(is_alike)
            .any(|it| decisions.is_deleted(it, line_texts(citation, logs)))
}

impl TopicWriter<'_> {
    /// Adds the changed files of the memories about topics to what is written.
    pub(crate) fn add_changes(
        &self,
        topics: &[TopicMemory],
        files: &mut Vec<FileWrite>,
        recorded: &mut RecordedChanges,
    ) -> Result<(), JobFailure> {
        let mut secrets = FileNameSecrets::default();
        let raw = self.logs.iter().filter_map(SanitizedLog::raw);
        raw.for_each(|it| secrets.add_from(self.rules, it));
        let mut names: Vec<String> = Vec::new();
        let mut written: Vec<&TypedMemory> = Vec::new();
        for topic in topics {
            let name = cut(&self.rules.sanitize_output(&topic.name), LINE_CHARS_MAX);
            let known = self
                .memories
                .iter()
                .find(|it| it.kind == topic.kind && it.name == name && is_about_topic(it));
            written.extend(known);
            if known.is_some_and(|it| !it.is_managed()) {
                continue;
            }
            let file_name = known.map_or_else(
                || {
                    let bare = self.rules.without_marks(&topic.name);
                    let is_taken = |it: &str| self.is_taken(it, &names);
                    let free = secrets.free_file_name(self.rules, topic.kind, &bare, is_taken);
                    names.push(free.clone());
                    PathBuf::from(free)
                },
                |it| it.file_name.clone(),
            );
            let mut statements = known.map(|it| self.older_statements(it)).unwrap_or_default();
            statements.extend(topic.statements.iter().map(|(kind, item)| {
                let text = self.rules.sanitize_output(&item.text);
                (*kind, Item { text, citation: item.citation.clone() })
            }));
            let description = self.rules.sanitize_output(&topic.description);
            let memory = TypedMemory {
                file_name,
                kind: topic.kind,
                name,
                description: cut(&description, LINE_CHARS_MAX),
                created: None,
                updated: None,
                sources: Vec::new(),
                supersedes: known.and_then(|it| it.supersedes.clone()),
                recorded_body: None,
                other_keys: known.map_or_else(OtherKeys::default, |it| it.other_keys.clone()),
                body: String::new(),
            };
            self.add_file(memory, known, statements, files, recorded)?;
        }
        let is_over = |it: &&TypedMemory| {
            is_about_topic(it)
                && it.is_managed()
                && !written.iter().any(|written| written.file_name == it.file_name)
        };
        for memory in self.memories.iter().filter(is_over) {
            let statements = self.older_statements(memory);
            self.add_file(memory.clone(), Some(memory), statements, files, recorded)?;
        }
        Ok(())
    }

    fn is_taken(&self, name: &str, names: &[String]) -> bool {
        let is_same = |it: &TypedMemory| it.file_name.as_os_str().eq_ignore_ascii_case(name);
        self.memories.iter().any(is_same)
            || names.iter().any(|it| it.eq_ignore_ascii_case(name))
            // Of a file that cannot be looked at, the name is not used.
            || self.vault.try_exists(&self.vault.layout().typed_memory(name)).unwrap_or(true)
    }

    /// Returns the statements of a memory whose lines are all older than the logs that are read.
    fn older_statements(&self, memory: &TypedMemory) -> Vec<(StatementKind, Item)> {
        let Some(first) = self.logs.first().map(|it| it.stem().date()) else { return Vec::new() };
        let is_older = |it: &Item| it.citation.as_ref().is_some_and(|it| it.newest_date() < first);
        let statements = statement::statements_of(&memory.body).into_iter();
        statements.filter(|it| is_older(&it.item)).map(|it| (it.kind, it.item)).collect()
    }

    /// Adds the file of a memory with these statements, or its removal if there are none.
    fn add_file(
        &self,
        mut memory: TypedMemory,
        known: Option<&TypedMemory>,
        mut statements: Vec<(StatementKind, Item)>,
        files: &mut Vec<FileWrite>,
        recorded: &mut RecordedChanges,
    ) -> Result<(), JobFailure> {
        let path = self.vault.layout().typed_memory(&memory.file_name.to_string_lossy());
        let current = match known {
            Some(known) => {
                let text = self.vault.read_text(&path)?;
                let is_same =
                    |it: &String| TypedMemory::parse(&known.file_name, it).as_ref() == Ok(known);
                let text = text.filter(is_same);
                Some(text.ok_or_else(|| JobFailure::SourceChanged(path.clone()))?)
            }
            None => None,
        };
        statements.sort_by_key(|it| it.0);
        let citations = || statements.iter().filter_map(|it| it.1.citation.as_ref());
        let mut lines: Vec<Address> = citations().flat_map(Citation::addresses).collect();
        lines.sort();
        lines.dedup();
        memory.sources = lines.into_iter().filter_map(|it| self.source(it, known)).collect();
        memory.created = citations().map(Citation::oldest_date).min();
        memory.updated = citations().map(Citation::newest_date).max();
        memory.body = statement::body_of(statements.iter().map(|(kind, item)| (*kind, item)));
        memory.record_body_hash();
        if statements.is_empty() || typed_schema::validate(&memory).is_err() {
            if current.is_some() {
                recorded.removed.push(path.clone());
                files.push(FileWrite { path, text: None, current });
            }
            return Ok(());
        }
        let text = memory.print();
        recorded.documents.push(records::of_memory(&path, &memory, &text));
        if current.as_ref() != Some(&text) {
            files.push(FileWrite { path, text: Some(text), current });
        }
        Ok(())
    }

    /// Returns a cited line with the start of its hash.
    fn source(&self, at: Address, known: Option<&TypedMemory>) -> Option<(Address, String)> {
        let log = self.logs.iter().find(|it| *it.stem() == at.stem);
        let now = log.and_then(|it| Some(it.line(at.line)?.hash().hex4()));
        let then = || known?.sources.iter().find(|it| it.0 == at).map(|it| it.1.clone());
        let hash = now.or_else(then)?;
        Some((at, hash))
    }
}

/// Cuts a text at the end of a word.
fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let end = text.char_indices().nth(chars_max - 1).map_or(text.len(), |it| it.0);
    let end = text[..end].rfind(' ').filter(|it| *it > end / 2).unwrap_or(end);
    format!("{}…", text[..end].trim_end_matches([' ', ',', ';', ':', '—', '-']))
}
