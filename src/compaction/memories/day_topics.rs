//! Files the statements of a day by topic, as a model wrote them.
//!
//! Those of other days stay in their memories, unless a new one replaces them.

use super::{
    memory_match,
    topics::{
        LASTING_STATEMENTS_MAX, NewNames, TopicWriter, ends_with_topic, is_line_in,
        with_former_value, with_older,
    },
};
use crate::{
    compaction::{
        error::JobFailure,
        journal::commit::{FileWrite, RecordedChanges},
    },
    engine::{
        StatementDraft,
        extractive::{SeenStatements, says_resumed, says_stopped, says_stopped_for_good},
    },
    memory::{
        address::{Address, Citation},
        item::Item,
        statement::StatementKind,
        typed::{MemoryType, TypedMemory},
    },
};

impl TopicWriter<'_> {
    /// Files the statements of a day. The others of its topics stay if their lines are unchanged and no new one
    /// replaces them: by its id, its label or its words, or by its lines if the day is read again from scratch.
    pub(crate) fn add_day(
        &self,
        drafts: &[StatementDraft],
        is_reread: bool,
        files: &mut Vec<FileWrite>,
        recorded: &mut RecordedChanges,
    ) -> Result<(), JobFailure> {
        let mut names = NewNames::of(self);
        let ends = |memory: &TypedMemory, (kind, item): &(StatementKind, Item)| {
            // Whether one statement alone still has its lines is decided elsewhere.
            memory.is_about_topic() && !self.is_current(memory, item)
                || drafts.iter().any(|it| {
                    self.replaces(it, memory.kind, item, is_reread)
                        || self.stops_or_resumes(it, memory, *kind, item)
                })
        };
        let mut topics = self.topics_of(drafts, is_reread);
        for memory in self.memories.iter().filter(|it| is_ours(it)) {
            let is_there = |it: &DayTopic<'_>| it.known.is_some_and(|it| it == memory);
            let mut statements = our_statements(memory).into_iter();
            if !topics.iter().any(is_there) && statements.any(|it| ends(memory, &it)) {
                topics.push(DayTopic { known: Some(memory), name: &memory.name, new: Vec::new() });
            }
        }
        for DayTopic { known, name, new } in topics {
            let mut current = known.map(our_statements).unwrap_or_default();
            current.retain(|it| known.is_none_or(|known| !ends(known, it)));
            let statements = self.with_new(name, current, &new);
            let Some(kind) =
                known.map(|it| it.kind).or(new.first().map(|it| it.kind.memory_type()))
            else {
                continue;
            };
            // What a thing is says most about it.
            let first = statements.iter().find(|it| it.0 == StatementKind::State);
            let first = first.or(statements.first()).map_or("", |it| &it.1.text);
            let described = known.filter(|it| !it.is_about_topic() || statements.is_empty());
            let description = described.map_or(first, |it| &it.description);
            let mut memory = self.memory(kind, name, description, known, &mut names);
            let is_old = |it: &String| known.is_some_and(|known| known.items.contains(it));
            let new = statements.iter().map(|it| it.1.hash()).filter(|it| !is_old(it));
            memory.by_model.extend(new);
            self.add_file(memory, known, statements, files, recorded)?;
        }
        Ok(())
    }

    /// Returns the topics of some statements. One that replaces another of its type is about the same topic.
    fn topics_of<'d>(&'d self, drafts: &'d [StatementDraft], is_reread: bool) -> Vec<DayTopic<'d>> {
        let mut topics: Vec<DayTopic<'_>> = Vec::new();
        for draft in drafts {
            let kind = draft.kind.memory_type();
            let name = self.shown_name(&draft.topic);
            let ours = || self.memories.iter().filter(|it| it.kind == kind && is_ours(it));
            let is_replaced = |memory: &&TypedMemory, is_reread: bool| {
                let mut statements = our_statements(memory).into_iter();
                statements.any(|it| self.replaces(draft, kind, &it.1, is_reread))
            };
            // A line may say something about two topics, so that the name counts more than the line.
            let known = ours()
                .find(|it| is_replaced(it, false))
                .or_else(|| self.known_memory(kind, &name).filter(|it| is_ours(it)))
                .or_else(|| ours().find(|it| self.has_name(it, &name)))
                .or_else(|| ours().find(|it| is_replaced(it, is_reread)));
            let is_same = |it: &&mut DayTopic<'_>| {
                it.known == known
                    && (known.is_some()
                        || it.new.iter().any(|it| it.kind.memory_type() == kind)
                            && it.name.to_lowercase() == draft.topic.to_lowercase())
            };
            match topics.iter_mut().find(is_same) {
                Some(topic) => topic.new.push(draft),
                None => topics.push(DayTopic { known, name: &draft.topic, new: vec![draft] }),
            }
        }
        topics
    }

    /// Returns whether a statement of a day names one that is not newer, or has a line of it if the day is read again.
    fn replaces(
        &self,
        draft: &StatementDraft,
        kind: MemoryType,
        item: &Item,
        is_reread: bool,
    ) -> bool {
        let Some(citation) = &item.citation else { return false };
        let is_named = || {
            let id = draft.replaces.as_ref();
            id.is_some_and(|id| *id == memory_match::shown_id(item, self.rules))
        };
        let is_said_again =
            || is_reread && kind == draft.kind.memory_type() && citation.overlaps(&draft.citation);
        citation.newest_date() <= draft.citation.newest_date() && (is_named() || is_said_again())
    }

    /// Returns whether a statement of a day says that the topic of an older one was stopped, or that it runs again.
    fn stops_or_resumes(
        &self,
        draft: &StatementDraft,
        memory: &TypedMemory,
        kind: StatementKind,
        item: &Item,
    ) -> bool {
        let (topic, text) = (&draft.topic, &draft.text);
        let is_older = || {
            let newest = item.citation.as_ref().map(Citation::newest_date);
            newest < Some(draft.citation.newest_date())
                && self.has_name(memory, &self.shown_name(topic))
        };
        match kind {
            _ if ends_with_topic(kind) => {
                draft.kind == StatementKind::Retired
                    && is_older()
                    && says_stopped_for_good(topic, text)
            }
            StatementKind::Retired => {
                draft.kind != kind
                    && is_older()
                    && says_resumed(topic, text)
                    && says_stopped(topic, &item.text)
            }
            _ => false,
        }
    }

    /// Returns whether the lines of a statement are unchanged, as far as they are in the logs of the day.
    fn is_current(&self, memory: &TypedMemory, item: &Item) -> bool {
        let log = |at: &Address| self.logs.iter().find(|it| *it.stem() == at.stem);
        let mut lines = item.citation.iter().flat_map(Citation::addresses);
        lines.all(|at| log(&at).is_none_or(|it| is_line_in(it, &at, memory)))
    }

    /// Returns the statements of a topic with new ones. Those of newer days replace the new ones, not the reverse.
    fn with_new(
        &self,
        topic: &str,
        current: Vec<(StatementKind, Item)>,
        drafts: &[&StatementDraft],
    ) -> Vec<(StatementKind, Item)> {
        let day = drafts.iter().map(|it| it.citation.newest_date()).max();
        let is_newer = |it: &(StatementKind, Item)| {
            day.is_some() && it.1.citation.as_ref().map(Citation::newest_date) > day
        };
        let (newer, older): (Vec<_>, Vec<_>) = current.into_iter().partition(is_newer);
        let mut new: Vec<(StatementKind, Item)> = Vec::new();
        let mut said = SeenStatements::default();
        for StatementDraft { kind, text, citation, .. } in drafts {
            let is_known = |it: &(StatementKind, Item)| {
                it.0 == *kind && it.1.citation.as_ref().is_some_and(|it| it.covers(citation))
            };
            if older.iter().any(is_known) || said.find_repeated(text).is_some() {
                continue;
            }
            said.add(text);
            let item = Item { text: text.clone(), citation: Some(citation.clone()) };
            new.push((*kind, with_former_value(*kind, self.sanitized(&item), &older)));
        }
        let newer = newer.into_iter().map(|(kind, it)| (kind, with_former_value(kind, it, &new)));
        let is_stop = |(kind, it): &(StatementKind, Item)| {
            *kind == StatementKind::Retired && says_stopped_for_good(topic, &it.text)
        };
        let is_retired = |it: &[(StatementKind, Item)]| it.iter().any(is_stop);
        let newer: Vec<_> = newer.collect();
        let (is_over, was_over) = (is_retired(&newer), is_retired(&new));
        let all = with_older(new, older, was_over, LASTING_STATEMENTS_MAX);
        with_older(newer, all, is_over, LASTING_STATEMENTS_MAX)
    }
}

/// The statements of a day about a topic.
struct DayTopic<'d> {
    /// The memory that has others about it.
    known: Option<&'d TypedMemory>,
    /// As the statements call it.
    name: &'d str,
    new: Vec<&'d StatementDraft>,
}

/// Returns whether the words of a memory are ours to replace.
fn is_ours(memory: &TypedMemory) -> bool {
    if memory.is_about_topic() { memory.recorded_body.is_some() } else { memory.is_managed() }
}

/// Returns the statements of a memory that we wrote; of a memory of one statement that one.
fn our_statements(memory: &TypedMemory) -> Vec<(StatementKind, Item)> {
    let ours = if memory.is_about_topic() {
        memory.statements_by_owner().0
    } else {
        memory.known_statements()
    };
    ours.into_iter().map(|it| (it.kind, it.item)).collect()
}
