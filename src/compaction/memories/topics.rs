//! Writes the typed memories by topic, together with the bullets of `WISDOM.md` that are chosen from the same statements.
//!
//! Without a model, a memory about a topic is made again from the newest logs whenever they change
//! ([`TopicWriter::add_changes`]). Its statements from older logs stay as they are, and so do those that a model wrote.
//! With a model, each day adds its statements ([`TopicWriter::add_day`]); those of the other days stay. In both cases a
//! newer statement replaces an older one with the same label or words, and what a person wrote or deleted stays so.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use super::{day_reader::is_deleted_in_type, own_text::OwnText};
use crate::compaction::{
    error::JobFailure,
    journal::{
        commit::{FileWrite, RecordedChanges},
        records,
    },
    plan::states_from,
};
use crate::{
    engine::extractive::{FiledTopics, SeenStatements, StatementPlace, TopicMemory},
    memory::{
        address::{Address, Citation},
        correction::shorten,
        decision::Decisions,
        frontmatter::OtherKeys,
        item::Item,
        statement::{MemoryStatement, StatementKind},
        typed::{self, MemoryType, TypedMemory, description_hash},
        typed_schema,
        wisdom::is_beginning_of,
    },
    privacy::{self, FileNameSecrets, PrivacyRules, SanitizedLog},
    store::fs::{
        layout::Layout,
        vault::{Vault, VaultError},
    },
};

/// The most statements of a kind with those of older logs, if it passes: of how things are the newest say most.
const STATEMENTS_MAX: usize = 12;

/// The same for what a model picked of kinds that last: a rule does not end because there are newer ones.
pub(super) const LASTING_STATEMENTS_MAX: usize = 100;

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

/// What must not be in the memories about topics: what a person deleted, and what other files have already.
pub(crate) struct TopicExclusions<'a> {
    /// The lines of memories that are not made again, and of statements that a person wrote.
    said: Vec<Citation>,
    decisions: &'a Decisions,
    layout: &'a Layout,
    logs: &'a [SanitizedLog],
}

impl<'a> TopicExclusions<'a> {
    pub(crate) fn of(
        memories: &[TypedMemory],
        decisions: &'a Decisions,
        layout: &'a Layout,
        logs: &'a [SanitizedLog],
    ) -> Self {
        // A copy of a file of ours that lost its record says nothing itself.
        let is_copy = |copy: &TypedMemory| {
            let is_original = |it: &TypedMemory| {
                it.recorded_body.is_some() && (it.kind, &it.name) == (copy.kind, &copy.name)
            };
            copy.recorded_body.is_none() && memories.iter().any(is_original)
        };
        let mut said = Vec::new();
        for memory in memories {
            if !memory.is_about_topic() {
                said.extend(Citation::from_addresses(memory.sources.iter().map(|it| &it.0)));
            } else if !is_copy(memory) {
                let (ours, own) = memory.statements_by_owner();
                said.extend(own.into_iter().filter_map(|it| it.item.citation));
                // What is there from old logs stays where it is.
                let old = ours.into_iter().filter_map(|it| it.item.citation);
                said.extend(old.filter(|it| is_old(it, logs)));
            }
        }
        Self { said, decisions, layout, logs }
    }

    /// Returns them with what a model said, which is not said again in the words of its lines.
    pub(crate) fn with_model_statements(mut self, memories: &[TypedMemory]) -> Self {
        let statements = memories.iter().flat_map(|it| current_of_model(it, self.logs));
        self.said.extend(statements.filter_map(|it| it.item.citation));
        self
    }

    /// Returns them without what a model said about these lines.
    pub(crate) fn without(mut self, ended: &[Citation]) -> Self {
        for citation in ended {
            if let Some(at) = self.said.iter().position(|it| it == citation) {
                self.said.remove(at);
            }
        }
        self
    }

    /// Returns whether a statement with these lines must not be in a memory of a type.
    pub(crate) fn contain(&self, kind: MemoryType, citation: &Citation) -> bool {
        self.said.iter().any(|it| it.covers(citation))
            || is_deleted_in_type(kind, citation, self.decisions, self.layout, self.logs)
    }
}

impl TopicWriter<'_> {
    /// Adds the changed files of the memories about topics to what is written.
    pub(crate) fn add_changes(
        &self,
        topics: &FiledTopics,
        files: &mut Vec<FileWrite>,
        recorded: &mut RecordedChanges,
    ) -> Result<(), JobFailure> {
        let mut names = NewNames::of(self);
        let mut written: Vec<&TypedMemory> = Vec::new();
        for topic in &topics.topics {
            let name = self.shown_name(&topic.name);
            let known = self.known_memory(topic.kind, &name);
            let is_done = known.is_some_and(|it| written.contains(&it));
            written.extend(known);
            if is_done || known.is_some_and(|it| it.recorded_body.is_none()) {
                continue;
            }
            let new = topic.statements.iter().map(|(kind, item)| (*kind, self.sanitized(item)));
            let older = known.map(|it| self.older_statements(it)).transpose()?.unwrap_or_default();
            let by_model = known.map(|it| self.recent_of_model(it)).unwrap_or_default();
            let [older, by_model] = self.without_ended(known, [older, by_model], topics);
            let lasting_max = lasting_max(known);
            let new = with_those_of_model(new.collect(), by_model);
            let statements = with_older(new, older, false, lasting_max);
            let memory =
                self.memory(topic.kind, &topic.name, &topic.description, known, &mut names);
            self.add_file(memory, known, statements, files, recorded)?;
        }
        let is_over = |it: &&TypedMemory| {
            it.is_about_topic()
                && it.recorded_body.is_some()
                && !written.iter().any(|written| written.file_name == it.file_name)
        };
        for memory in self.memories.iter().filter(is_over) {
            let all = [self.older_statements(memory)?, self.recent_of_model(memory)];
            let [older, by_model] = self.without_ended(Some(memory), all, topics);
            let statements = with_older(by_model, older, false, lasting_max(Some(memory)));
            let says =
                |it: &(StatementKind, Item)| is_beginning_of(&memory.description, &it.1.text);
            // A description does not outlive what it says.
            let was_said = || memory.statements().into_iter().any(|it| says(&(it.kind, it.item)));
            let described = statements.first().filter(|_| {
                !statements.iter().any(says) && (was_said() || !deleted_items(memory).is_empty())
            });
            let description = described.map_or(&memory.description, |it| &it.1.text);
            let made =
                self.memory(memory.kind, &memory.name, description, Some(memory), &mut names);
            self.add_file(made, Some(memory), statements, files, recorded)?;
        }
        Ok(())
    }

    /// Returns the lines of what a model said that these topics end or replace.
    pub(crate) fn ended_of_model(&self, topics: &FiledTopics) -> Vec<Citation> {
        let mut ended = Vec::new();
        for memory in self.memories.iter().filter(|it| it.is_about_topic()) {
            let all = self.recent_of_model(memory);
            if all.is_empty() {
                continue;
            }
            let is_of = |it: &&TopicMemory| {
                it.kind == memory.kind && self.has_name(memory, &self.shown_name(&it.name))
            };
            let new = topics.topics.iter().filter(is_of).flat_map(|it| &it.statements);
            let new = new.map(|(kind, item)| (*kind, self.sanitized(item))).collect();
            let [holds] = self.without_ended(Some(memory), [all.clone()], topics);
            let kept = with_those_of_model(new, holds);
            let is_over = all.into_iter().filter(|it| !kept.contains(it));
            ended.extend(is_over.filter_map(|it| it.1.citation));
        }
        ended
    }

    /// Drops statements of a memory that no longer hold: those about what was stopped since, and if it runs again, those
    /// that say that it was stopped.
    fn without_ended<const N: usize>(
        &self,
        memory: Option<&TypedMemory>,
        mut statements: [Vec<(StatementKind, Item)>; N],
        topics: &FiledTopics,
    ) -> [Vec<(StatementKind, Item)>; N] {
        if let Some(memory) = memory {
            let is_general = |it: &TypedMemory| it.kind.is_general_topic(&it.name);
            let is_named = |it: &&TypedMemory| it.is_about_topic() && !is_general(it);
            let names: Vec<&str> = if is_general(memory) {
                self.memories.iter().filter(is_named).map(|it| it.name.as_str()).collect()
            } else {
                vec![&memory.name]
            };
            let place = StatementPlace {
                names: &names,
                is_general: is_general(memory),
                is_about: &|it| self.has_name(memory, &self.shown_name(it)),
            };
            let ends = topics.ends(&place);
            for all in &mut statements {
                all.retain(|it| !ends.end(it.0, &it.1));
            }
        }
        statements
    }

    pub(super) fn shown_name(&self, name: &str) -> String {
        shorten(&self.rules.sanitize_output(name), LINE_CHARS_MAX)
    }

    pub(super) fn sanitized(&self, item: &Item) -> Item {
        Item { text: self.rules.sanitize_output(&item.text), citation: item.citation.clone() }
    }

    /// Returns a memory without its statements.
    pub(super) fn memory(
        &self,
        kind: MemoryType,
        topic: &str,
        description: &str,
        known: Option<&TypedMemory>,
        names: &mut NewNames,
    ) -> TypedMemory {
        let file_name = known
            .map_or_else(|| names.free_file_name(self, kind, topic), |it| it.file_name.clone());
        let description = describe(self.rules, description);
        // What a person wrote there stays.
        let described = known.filter(|it| it.has_own_description()).map(|it| &it.description);
        TypedMemory {
            file_name,
            kind,
            name: known.map_or_else(|| self.shown_name(topic), |it| it.name.clone()),
            description: described.unwrap_or(&description).clone(),
            recorded_description: Some(description_hash(&description)),
            created: None,
            updated: None,
            sources: Vec::new(),
            supersedes: known.and_then(|it| it.supersedes.clone()),
            recorded_body: None,
            items: Vec::new(),
            by_model: known.map_or_else(Vec::new, |it| it.by_model.clone()),
            other_keys: known.map_or_else(OtherKeys::default, |it| it.other_keys.clone()),
            body: String::new(),
        }
    }

    /// Returns the memory about a topic: by its name, or by the name of its file where a person gave it another one.
    pub(super) fn known_memory(&self, kind: MemoryType, name: &str) -> Option<&TypedMemory> {
        let is_same =
            |it: &&TypedMemory| it.kind == kind && it.is_about_topic() && self.has_name(it, name);
        let mut found = self.memories.iter().filter(is_same);
        let first = found.next()?;
        // A copy that a sync tool made has no record.
        if first.recorded_body.is_some() {
            return Some(first);
        }
        found.find(|it| it.recorded_body.is_some()).or(Some(first))
    }

    pub(super) fn has_name(&self, memory: &TypedMemory, name: &str) -> bool {
        let is_file_of =
            |it: &str| memory.file_name.as_os_str() == typed::file_name(memory.kind, it).as_str();
        // Two names may be spelled alike in a file name.
        memory.name == name
            || (is_file_of(name) && !is_file_of(&memory.name))
            // A model reads names without secrets.
            || self.rules.mask_secrets(&memory.name) == name
    }

    fn is_taken(&self, name: &str, names: &[String]) -> bool {
        let is_same = |it: &TypedMemory| it.file_name.as_os_str().eq_ignore_ascii_case(name);
        self.memories.iter().any(is_same)
            || names.iter().any(|it| it.eq_ignore_ascii_case(name))
            // Of a file that cannot be looked at, the name is not used.
            || self.vault.try_exists(&self.vault.layout().typed_memory(name)).unwrap_or(true)
    }

    /// Returns our statements of a memory from old logs whose lines are still there.
    fn older_statements(
        &self,
        memory: &TypedMemory,
    ) -> Result<Vec<(StatementKind, Item)>, VaultError> {
        let (ours, _) = memory.statements_by_owner();
        let mut logs = BTreeMap::new();
        let mut found = Vec::new();
        for MemoryStatement { kind, item, .. } in ours {
            let Some(citation) = item.citation.as_ref().filter(|it| is_old(it, self.logs)) else {
                continue;
            };
            let mut is_there = true;
            for at in citation.addresses() {
                if !logs.contains_key(&at.stem) {
                    let log = self.vault.read_log(&at.stem)?;
                    logs.insert(at.stem.clone(), log.map(|it| privacy::sanitize(&it, self.rules)));
                }
                // A log that vanished removes nothing.
                let Some(log) = logs.get(&at.stem).and_then(Option::as_ref) else { continue };
                is_there &= is_line_in(log, &at, memory);
            }
            if is_there {
                found.push((kind, item));
            }
        }
        Ok(found)
    }

    /// Returns the statements of a memory that a model wrote about the logs that are read, if their lines are unchanged.
    fn recent_of_model(&self, memory: &TypedMemory) -> Vec<(StatementKind, Item)> {
        let is_recent = |it: &MemoryStatement| {
            !self.logs.is_empty()
                && it.item.citation.as_ref().is_some_and(|at| !is_old(at, self.logs))
        };
        current_of_model(memory, self.logs).filter(is_recent).map(|it| (it.kind, it.item)).collect()
    }

    /// Adds the file of a memory with these statements, or its removal if nothing is left of it.
    pub(super) fn add_file(
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
        let own = known.filter(|it| it.is_about_topic()).map(OwnText::of).unwrap_or_default();
        let deleted = known.map(deleted_items).unwrap_or_default();
        // A value that a person changed is not replaced by a newer one. Of a memory about nothing in particular the same
        // label may be that of another thing.
        let is_keyed = !memory.kind.is_general_topic(&memory.name);
        let is_own = |it: &(StatementKind, Item)| {
            let says = |own: &(StatementKind, Item)| {
                let has_value = is_keyed && own.1.citation.is_some();
                own.1.text == it.1.text || has_value && has_label_of(own, it)
            };
            own.statements().iter().any(says)
        };
        statements.retain(|it| !deleted.contains(&it.1.hash()) && !is_own(it));
        statements.sort_by_key(|it| it.0);
        self.fill(&mut memory, known, &own, &statements, &deleted);
        // The schema limits the length: what passes leaves first, the oldest before others, never a person's words.
        while typed_schema::validate(&memory).is_err() && !statements.is_empty() {
            let newest = |it: &(StatementKind, Item)| {
                it.1.citation.as_ref().map(|it| (it.newest_date(), it.oldest_date()))
            };
            let ages =
                statements.iter().enumerate().min_by_key(|it| (it.1.0.is_lasting(), newest(it.1)));
            let Some((oldest, _)) = ages else { break };
            statements.remove(oldest);
            self.fill(&mut memory, known, &own, &statements, &deleted);
        }
        if statements.is_empty() {
            if own.is_empty() {
                if current.is_some() {
                    recorded.removed.push(path.clone());
                    files.push(FileWrite { path, text: None, current });
                }
                return Ok(());
            }
            // What is left is the person's: not as we wrote it, but with its sources and what they deleted.
            memory.recorded_body = known.and_then(|it| it.recorded_body.clone());
        }
        let text = memory.print();
        recorded.documents.push(records::of_memory(&path, &memory, &text));
        if current.as_ref() != Some(&text) {
            files.push(FileWrite { path, text: Some(text), current });
        }
        Ok(())
    }

    /// Fills what follows from the statements of a memory.
    fn fill(
        &self,
        memory: &mut TypedMemory,
        known: Option<&TypedMemory>,
        own: &OwnText,
        statements: &[(StatementKind, Item)],
        deleted: &[String],
    ) {
        let theirs: Vec<Item> = own.statements().into_iter().map(|it| it.1).collect();
        let lines_of = |items: &[&Item]| -> BTreeSet<Address> {
            let citations = items.iter().filter_map(|it| it.citation.as_ref());
            citations.flat_map(Citation::addresses).collect()
        };
        let ours: Vec<&Item> = statements.iter().map(|it| &it.1).collect();
        let (our_lines, their_lines) =
            (lines_of(&ours), lines_of(&theirs.iter().collect::<Vec<_>>()));
        let all: BTreeSet<&Address> = our_lines.iter().chain(&their_lines).collect();
        memory.created = all.iter().map(|it| it.stem.date()).min();
        memory.updated = all.iter().map(|it| it.stem.date()).max();
        memory.sources = all
            .into_iter()
            .filter_map(|at| {
                let now = self.line_hash(at);
                let then = known.and_then(|it| it.sources.iter().find(|it| it.0 == *at));
                let then = then.map(|it| it.1.clone());
                // A person's statement stays bound to the line that it was about.
                let hash = if our_lines.contains(at) { now.or(then) } else { then.or(now) };
                Some((at.clone(), hash?))
            })
            .collect();
        memory.body = own.body_with(statements);
        memory.record_body_hash();
        memory.items = ours.iter().map(|it| it.hash()).chain(deleted.iter().cloned()).collect();
        memory.by_model.retain(|it| memory.items.contains(it));
    }

    fn line_hash(&self, at: &Address) -> Option<String> {
        let log = self.logs.iter().find(|it| *it.stem() == at.stem)?;
        Some(log.line(at.line)?.hash().hex4())
    }
}

/// Returns the statements of a memory that a model wrote, if their lines are unchanged as far as they are in these logs.
pub(crate) fn current_of_model(
    memory: &TypedMemory,
    logs: &[SanitizedLog],
) -> impl Iterator<Item = MemoryStatement> {
    let log = |at: &Address| logs.iter().find(|it| *it.stem() == at.stem);
    let (ours, _) = memory.statements_by_owner();
    ours.into_iter().filter(move |it| {
        let mut lines = it.item.citation.iter().flat_map(Citation::addresses);
        memory.by_model.contains(&it.item.hash())
            && lines.all(|at| log(&at).is_none_or(|it| is_line_in(it, &at, memory)))
    })
}

/// Returns whether lines are older than the logs of which more than rules, people, lessons and decisions is read.
fn is_old(citation: &Citation, logs: &[SanitizedLog]) -> bool {
    citation.newest_date() < states_from(logs.last().map(|it| it.stem().date()))
}

/// Returns the description of a memory as it is written.
pub(crate) fn describe(rules: &PrivacyRules, description: &str) -> String {
    shorten(&rules.sanitize_output(description), LINE_CHARS_MAX)
}

/// The names of new files.
pub(super) struct NewNames {
    secrets: FileNameSecrets,
    names: Vec<String>,
}

impl NewNames {
    pub(super) fn of(writer: &TopicWriter<'_>) -> Self {
        let mut secrets = FileNameSecrets::default();
        let raw = writer.logs.iter().filter_map(SanitizedLog::raw);
        raw.for_each(|it| secrets.add_from(writer.rules, it));
        Self { secrets, names: Vec::new() }
    }

    fn free_file_name(
        &mut self,
        writer: &TopicWriter<'_>,
        kind: MemoryType,
        topic: &str,
    ) -> PathBuf {
        let bare = writer.rules.without_marks(topic);
        let is_taken = |it: &str| writer.is_taken(it, &self.names);
        let free = self.secrets.free_file_name(writer.rules, kind, &bare, is_taken);
        self.names.push(free.clone());
        PathBuf::from(free)
    }
}

/// Returns whether a line that a memory cites is unchanged.
pub(super) fn is_line_in(log: &SanitizedLog, at: &Address, memory: &TypedMemory) -> bool {
    let then = memory.sources.iter().find(|it| it.0 == *at).map(|it| &it.1);
    let now = log.line(at.line).map(|it| it.hash().hex4());
    then.is_some() && now.as_ref() == then
}

/// Returns the label and the value of a statement such as `Poll interval: 5 minutes (was 10 minutes until 2026-04-10)`.
/// Only how things and people are has one, and a sentence is no value: `Decision: …` or a title may be before several
/// statements that all hold.
fn label_and_value(kind: StatementKind, text: &str) -> Option<(String, &str)> {
    const LABEL_WORDS_MAX: usize = 6;
    const VALUE_CHARS_MAX: usize = 60;
    let (label, value) = text.split_once(": ")?;
    let has_values = matches!(
        kind,
        StatementKind::State
            | StatementKind::Environment
            | StatementKind::Profile
            | StatementKind::Preference
    );
    let value = value.split_once(" (was ").map_or(value, |it| it.0);
    let is_label = has_values
        && label.split_whitespace().count() <= LABEL_WORDS_MAX
        && value.chars().count() <= VALUE_CHARS_MAX;
    is_label.then(|| (label.to_lowercase(), value.trim_end_matches(['.', ';'])))
}

/// Adds the value that a state replaces, with its lines.
pub(super) fn with_former_value(
    kind: StatementKind,
    item: Item,
    older: &[(StatementKind, Item)],
) -> Item {
    const VALUE_CHARS_MAX: usize = 40;
    let is_state = matches!(kind, StatementKind::State | StatementKind::Environment)
        && !item.text.contains(" (was ");
    let (Some((label, value)), Some(lines)) = (label_and_value(kind, &item.text), &item.citation)
    else {
        return item;
    };
    let former = older.iter().rev().filter(|it| it.0 == kind).find_map(|it| {
        let (older_label, former) = label_and_value(it.0, &it.1.text)?;
        let citation = it.1.citation.as_ref()?;
        let is_older = citation.newest_date() < lines.newest_date();
        (older_label == label && is_older).then_some((former, citation))
    });
    let is_short = |it: &str| it.chars().count() <= VALUE_CHARS_MAX;
    match former.filter(|it| is_state && it.0 != value && is_short(it.0)) {
        Some((former, former_lines)) => {
            let bare = item.text.trim_end_matches(['.', ';']);
            let mut citation = lines.clone();
            citation.merge(former_lines);
            let text = format!("{bare} (was {former} until {})", lines.newest_date());
            Item { text, citation: Some(citation) }
        }
        None => item,
    }
}

/// Returns the statements chosen without a model with those of the same logs that a model wrote. Of two with the same
/// label or words the newer one stays, and of the same day that of the model.
fn with_those_of_model(
    chosen: Vec<(StatementKind, Item)>,
    by_model: Vec<(StatementKind, Item)>,
) -> Vec<(StatementKind, Item)> {
    if by_model.is_empty() {
        return chosen;
    }
    let day = |it: &Item| it.citation.as_ref().map(Citation::newest_date);
    let chosen =
        chosen.into_iter().map(|(kind, it)| (kind, with_former_value(kind, it, &by_model)));
    let mut chosen: Vec<_> = chosen.collect();
    let mut kept = by_model;
    kept.retain(|it| {
        let is_newer = |new: &&(StatementKind, Item)| {
            day(&new.1) > day(&it.1) && (has_label_of(new, it) || repeats(&new.1, &it.1))
        };
        !chosen.iter().any(|new| is_newer(&new))
    });
    chosen.retain(|new| !kept.iter().any(|it| has_label_of(new, it) || repeats(&new.1, &it.1)));
    kept.extend(chosen);
    kept
}

/// Returns whether two statements have the same label.
fn has_label_of(a: &(StatementKind, Item), b: &(StatementKind, Item)) -> bool {
    label(a).is_some_and(|it| label(b) == Some(it))
}

fn label((kind, item): &(StatementKind, Item)) -> Option<String> {
    label_and_value(*kind, &item.text).map(|it| it.0)
}

/// Returns whether two statements say the same.
fn repeats(a: &Item, b: &Item) -> bool {
    let mut seen = SeenStatements::default();
    seen.add(&a.text);
    seen.find_repeated(&b.text).is_some()
}

/// Returns whether statements of a kind no longer hold once their topic was stopped.
pub(super) fn ends_with_topic(kind: StatementKind) -> bool {
    matches!(kind, StatementKind::State | StatementKind::Open | StatementKind::Environment)
}

/// Returns how many statements of a kind that lasts a memory may have: more if a model picked some.
fn lasting_max(memory: Option<&TypedMemory>) -> usize {
    match memory {
        Some(memory) if !memory.by_model.is_empty() => LASTING_STATEMENTS_MAX,
        _ => STATEMENTS_MAX,
    }
}

/// Returns new statements with those older ones that still hold: no new one has their label or words, and their topic
/// was not stopped. Of each kind the newest ones stay, of kinds that last at most `lasting_max`.
pub(super) fn with_older(
    new: Vec<(StatementKind, Item)>,
    mut older: Vec<(StatementKind, Item)>,
    is_stopped: bool,
    lasting_max: usize,
) -> Vec<(StatementKind, Item)> {
    let mut said = SeenStatements::default();
    for (_, item) in &new {
        said.add(&item.text);
    }
    let labels: BTreeSet<String> = new.iter().filter_map(label).collect();
    older.retain(|it| {
        !(is_stopped && ends_with_topic(it.0))
            && label(it).is_none_or(|it| !labels.contains(&it))
            && said.find_repeated(&it.1.text).is_none()
    });
    let mut counts = BTreeMap::<StatementKind, usize>::new();
    for (kind, _) in &new {
        *counts.entry(*kind).or_default() += 1;
    }
    // The older ones are sorted by day within a kind.
    let mut kept: Vec<_> = older
        .into_iter()
        .rev()
        .filter(|(kind, _)| {
            let count = counts.entry(*kind).or_default();
            *count += 1;
            *count <= if kind.is_lasting() { lasting_max } else { STATEMENTS_MAX }
        })
        .collect();
    kept.reverse();
    kept.extend(new);
    kept
}

/// Returns the hashes of our statements that a person deleted or changed in a file.
fn deleted_items(memory: &TypedMemory) -> Vec<String> {
    let mut present: Vec<String> = memory.statements().iter().map(|it| it.item.hash()).collect();
    let is_gone = |hash: &&String| {
        let at = present.iter().position(|it| it == *hash);
        at.map(|it| present.swap_remove(it)).is_none()
    };
    memory.items.iter().filter(is_gone).cloned().collect()
}
