//! The bullets of `WISDOM.md`, chosen again whenever the newest logs change.

use std::{cell::LazyCell, collections::BTreeSet};

use super::edit::{WisdomEdit, WisdomEditor, line_hashes, read_logs};
use crate::{
    compaction::{
        context::{JobOutput, read_wisdom},
        error::JobFailure,
        grounding::hedge,
        journal::{
            Journal,
            commit::{FileWrite, RecordedChanges},
            records,
        },
        memories::{
            day_reader::{is_deleted_in_type, line_texts},
            topics::{TopicExclusions, TopicWriter, current_of_model, describe},
        },
        plan::{CompactionJob, LASTING_LOGS_MAX, states_from},
        report::count_u32,
        snapshot::RootSnapshot,
    },
    config::root::RootSettings,
    engine::extractive::{
        self, Digest, DigestExplanation, DigestInput, DigestOutcome, FailedCheck, HeldBullet,
        ModelReading, ModelStatement, SeenStatements, TopicMemory,
    },
    memory::{
        address::{Address, Citation, Stem},
        decision::Decisions,
        item::Item,
        markdown::LineKind,
        typed::{MemoryType, TypedMemory},
        wisdom::{WisdomEntry, WisdomFile, WisdomSection},
    },
    privacy::{self, SanitizedLog, quarantine::PLACEHOLDER},
    store::{
        db::lineage::jobs::{JobId, JobOutcome, Receipt},
        fs::{
            inventory::Inventory,
            layout::Layout,
            vault::{Vault, VaultError},
        },
    },
};

impl WisdomEditor<'_, '_> {
    /// Chooses the bullets again from the newest logs, without asking a model.
    pub(super) fn choose_bullets(
        &mut self,
        job: &CompactionJob,
        id: JobId,
        view: &RootSnapshot,
    ) -> Result<JobOutput, JobFailure> {
        let layout = self.context.vault.layout();
        let path = layout.wisdom();
        let Inventory { decisions, rules, .. } = &view.inventory;
        let logs = logs_of_job(self.context.vault, job, &view.inventory)?;
        let (old, mut file) = self.context.read_wisdom(rules)?;
        let is_deleted = |it: &Citation| is_deleted(decisions, layout, it, &logs);
        let model = read_by_model(view, &file, &logs, &is_deleted);
        let edit = WisdomEdit::new(&logs, rules, &is_deleted).with_model(&model);
        let room = self.context.settings.settings.wisdom.max_chars;
        let memories = &view.inventory.memories;
        let exclusions =
            TopicExclusions::of(memories, decisions, layout, &logs).with_model_statements(memories);
        let is_out = |kind, citation: &Citation| exclusions.contain(kind, citation);
        let notes = what_notes_say(&view.inventory);
        let digest = edit.choose_bullets(&mut file, &notes, room, &is_out);
        if let Some(newest) = logs.last() {
            file.set_last_compacted(newest.stem().date());
        }
        let text = file.print_over(old.as_deref());
        let is_same = old.as_ref() == Some(&text);
        let outcome = if is_same { JobOutcome::Unchanged } else { JobOutcome::Written };
        let reason = Some(job.reason.to_string());
        let mut receipt = Receipt::new(outcome, reason, (self.context.clock)());
        receipt.path = Some(path.clone());
        receipt.metrics.sources = count_u32(logs.len());
        receipt.metrics.source_chars = logs.iter().map(|it| it.chars() as u64).sum();
        receipt.metrics.output_chars = file.chars() as u64;
        receipt.metrics.items = count_u32(digest.bullets.len());
        let documents = vec![records::of_wisdom(&path, &text)];
        let mut recorded = RecordedChanges {
            logs: self.lines_read(&logs, &documents, view)?,
            documents,
            ..RecordedChanges::default()
        };
        let mut files = if is_same {
            Vec::new()
        } else {
            vec![FileWrite { path: path.clone(), text: Some(text), current: old }]
        };
        if self.context.engine.files_by_topic() {
            let writer = TopicWriter { vault: self.context.vault, memories, logs: &logs, rules };
            // The memories have what a model said; beside that is filed what the lines say.
            let of_lines = WisdomEdit::new(&logs, rules, &is_deleted);
            let input = (&file, &notes, &[][..]);
            let read = LazyCell::new(|| {
                let all = |_, _: &Citation| false;
                of_lines.with_digest_input(input, room, &all, extractive::read_statements)
            });
            let file_lines = |is_out: &dyn Fn(MemoryType, &Citation) -> bool| {
                of_lines.with_digest_input(input, room, is_out, |input| {
                    extractive::file_statements(input, &read)
                })
            };
            let is_read = !model.logs.is_empty() || !model.statements.is_empty();
            let mut topics = if is_read { file_lines(&is_out) } else { digest.filed };
            let ended = writer.ended_of_model(&topics);
            if !ended.is_empty() {
                // Where what a model said is over, the line may be said in its own words.
                let exclusions = exclusions.without(&ended);
                topics = file_lines(&|kind, citation| exclusions.contain(kind, citation));
            }
            writer.add_changes(&topics, &mut files, &mut recorded)?;
        }
        if !files.is_empty() {
            receipt.outcome = JobOutcome::Written;
        }
        Journal::new(self.context).write_files(None, Some((id, &receipt)), &files, &recorded)?;
        let paths = files.into_iter().map(|it| it.path).collect();
        Ok(JobOutput { receipt, paths })
    }
}

/// Returns what a model read of logs, without what joins a line about which a person decided.
fn read_by_model(
    view: &RootSnapshot,
    file: &WisdomFile,
    logs: &[SanitizedLog],
    is_deleted: &dyn Fn(&Citation) -> bool,
) -> ModelReading {
    let Inventory { memories, .. } = &view.inventory;
    let is_read = |it: &&SanitizedLog| view.record.is_read_by_model(it.stem(), &view.inventory);
    let read = logs.iter().filter(is_read).map(|it| it.stem().clone()).collect();
    let entries: Vec<&WisdomEntry> = file.entries().collect();
    // A heading is above other lines, too.
    let says_something = |at: &Address| {
        let log = logs.iter().find(|it| *it.stem() == at.stem);
        let line = log.and_then(|it| it.line(at.line));
        line.is_some_and(|it| it.is_content() && !matches!(it.kind(), LineKind::Heading { .. }))
    };
    let is_decided = |citation: &Citation| {
        let mut lines = citation.addresses().filter(says_something);
        lines.any(|it| is_decided(&Citation::single_line(it.stem, it.line), &entries, is_deleted))
    };
    let statements = memories.iter().flat_map(|memory| {
        current_of_model(memory, logs).filter_map(|it| {
            let is_general = memory.kind.is_general_topic(&memory.name);
            let topic = if is_general { String::new() } else { memory.name.clone() };
            let citation = it.item.citation.filter(|it| !is_decided(it))?;
            Some(ModelStatement { kind: it.kind, topic, text: it.item.text, citation })
        })
    });
    ModelReading { logs: read, statements: statements.collect() }
}

/// Returns whether a person deleted what these lines say, or wrote it in other words.
fn is_decided(
    citation: &Citation,
    entries: &[&WisdomEntry],
    is_deleted: &dyn Fn(&Citation) -> bool,
) -> bool {
    let is_taken_over = |it: &&WisdomEntry| {
        !it.is_managed() && it.meta.as_ref().is_some_and(|it| it.sources.covers(citation))
    };
    is_deleted(citation) || entries.iter().any(is_taken_over)
}

/// Returns what the curated files say.
fn what_notes_say(inventory: &Inventory) -> SeenStatements {
    let notes = inventory.curated.iter().filter_map(|it| it.sanitized(&inventory.rules));
    SeenStatements::of_notes(&notes.collect::<Vec<_>>())
}

/// Reads the logs of a job, and older ones that rules, people, lessons and decisions of our memories cite.
fn logs_of_job(
    vault: &Vault,
    job: &CompactionJob,
    inventory: &Inventory,
) -> Result<Vec<SanitizedLog>, VaultError> {
    let stems = job.inputs.keys().filter_map(|it| it.parse().ok());
    // The months among the inputs are in the entries, the notes in the inventory.
    let mut stems: BTreeSet<Stem> = stems.filter(|it: &Stem| !it.is_summary()).collect();
    let Some(first) = stems.first().cloned() else { return Ok(Vec::new()) };
    let ours = inventory.memories.iter().filter(|it| it.is_about_topic());
    let lasting = ours.flat_map(|it| it.statements_by_owner().0).filter(|it| it.kind.is_lasting());
    let cited: BTreeSet<Stem> = lasting
        .filter_map(|it| it.item.citation)
        .flat_map(|it| it.files().map(|it| it.0.clone()).collect::<Vec<_>>())
        .filter(|it| !it.is_summary() && *it < first)
        .collect();
    stems.extend(cited.into_iter().rev().take(LASTING_LOGS_MAX));
    read_logs(vault, &stems.into_iter().collect::<Vec<_>>(), &inventory.rules)
}

/// Explains how the bullets are chosen from the logs of a job; writes nothing.
pub(crate) fn explain_bullets(
    vault: &Vault,
    settings: &RootSettings,
    view: &RootSnapshot,
    job: &CompactionJob,
) -> Result<DigestExplanation, VaultError> {
    let Inventory { decisions, rules, .. } = &view.inventory;
    let logs = logs_of_job(vault, job, &view.inventory)?;
    let layout = vault.layout();
    let (_, file) = read_wisdom(vault, settings, rules)?;
    let is_deleted = |it: &Citation| is_deleted(decisions, layout, it, &logs);
    let model = read_by_model(view, &file, &logs, &is_deleted);
    let edit = WisdomEdit::new(&logs, rules, &is_deleted).with_model(&model);
    let room = settings.settings.wisdom.max_chars;
    let notes = what_notes_say(&view.inventory);
    let held = bullets_of(&file);
    let input = (&file, &notes, &held[..]);
    let mut explanation =
        edit.with_digest_input(input, room, &|_, _| false, extractive::explain_digest);
    // What is held in the file is held here, too.
    for statement in explanation.chosen.iter_mut().chain(&mut explanation.left_out) {
        statement.text = if privacy::suspicious_lines(&statement.text).is_empty() {
            rules.sanitize_output(&statement.text)
        } else {
            PLACEHOLDER.to_owned()
        };
    }
    Ok(explanation)
}

/// Memories of one statement whose statement is in the memory about its topic instead.
#[derive(Default)]
pub(crate) struct JoinedMemories {
    /// Their paths.
    pub(crate) joined: BTreeSet<String>,
    /// They are removed, and the memories about topics written.
    pub(crate) files: Vec<FileWrite>,
    pub(crate) recorded: RecordedChanges,
}

impl JoinedMemories {
    /// Drops the files without a statement of these memories: they are written when they are due. Returns the
    /// memories that a file states.
    fn keep_files_that_state(&mut self, joined: &[TypedMemory]) -> Vec<TypedMemory> {
        let mut stated = BTreeSet::<usize>::new();
        self.files.retain(|file| {
            let name = file.path.rsplit('/').next().unwrap_or(&file.path);
            let text = file.text.as_deref().unwrap_or_default();
            let memory = TypedMemory::parse(name.as_ref(), text);
            let statements = memory.map(|it| it.statements()).unwrap_or_default();
            let has_statement = |lines: Citation| {
                let mut cited = statements.iter().filter_map(|it| it.item.citation.as_ref());
                cited.any(|it| it.covers(&lines))
            };
            let found: Vec<usize> = (0..joined.len())
                .filter(|it| cited_lines(&joined[*it]).is_some_and(&has_statement))
                .collect();
            stated.extend(&found);
            !found.is_empty()
        });
        let is_written = |path: &str| self.files.iter().any(|it| it.path == path);
        self.recorded.documents.retain(|it| is_written(&it.path));
        self.recorded.removed.clear();
        stated.into_iter().map(|it| joined[it].clone()).collect()
    }
}

/// Returns the lines that a memory cites.
fn cited_lines(memory: &TypedMemory) -> Option<Citation> {
    Citation::from_addresses(memory.sources.iter().map(|it| &it.0))
}

/// Files the statements of the newest logs by topic as if the memories of one statement that memoird wrote were not
/// there, and removes those whose lines a statement about a topic has. The others stay; writes nothing.
pub(crate) fn join_memories(
    vault: &Vault,
    settings: &RootSettings,
    view: &RootSnapshot,
    job: &CompactionJob,
) -> Result<JoinedMemories, JobFailure> {
    let Inventory { decisions, rules, .. } = &view.inventory;
    let layout = vault.layout();
    let logs = logs_of_job(vault, job, &view.inventory)?;
    let (_, file) = read_wisdom(vault, settings, rules)?;
    let is_deleted = |it: &Citation| is_deleted(decisions, layout, it, &logs);
    let edit = WisdomEdit::new(&logs, rules, &is_deleted);
    let notes = what_notes_say(&view.inventory);
    let room = settings.settings.wisdom.max_chars;
    // What a person added to the frontmatter has no place in another file.
    let is_single = |it: &&TypedMemory| {
        it.is_managed() && !it.is_about_topic() && it.other_keys.values().is_empty()
    };
    let mut joined: Vec<TypedMemory> =
        view.inventory.memories.iter().filter(is_single).cloned().collect();
    if joined.is_empty() {
        return Ok(JoinedMemories::default());
    }
    let input = (&file, &notes, &[][..]);
    let read = edit.with_digest_input(input, room, &|_, _| false, extractive::read_statements);
    loop {
        let mut rest = view.inventory.clone();
        rest.memories.retain(|it| !joined.contains(it));
        let exclusions = TopicExclusions::of(&rest.memories, decisions, layout, &logs)
            .with_model_statements(&rest.memories);
        let is_out = |kind, citation: &Citation| exclusions.contain(kind, citation);
        let filed = edit.with_digest_input(input, room, &is_out, |input| {
            extractive::file_statements(input, &read)
        });
        let is_stated = |memory: &TypedMemory| {
            let lines = cited_lines(memory);
            let of_type = filed.topics.iter().filter(|it| it.kind == memory.kind);
            let mut cited =
                of_type.flat_map(|it| &it.statements).filter_map(|it| it.1.citation.as_ref());
            lines.is_some_and(|lines| cited.any(|it| it.covers(&lines)))
        };
        let before = joined.len();
        joined.retain(is_stated);
        if joined.len() < before {
            continue;
        }
        let mut made = JoinedMemories::default();
        if joined.is_empty() {
            return Ok(made);
        }
        let writer = TopicWriter { vault, memories: &rest.memories, logs: &logs, rules };
        writer.add_changes(&filed, &mut made.files, &mut made.recorded)?;
        // A file about the topic may be a person's, or have no room.
        let stated = made.keep_files_that_state(&joined);
        if stated.len() < joined.len() {
            joined = stated;
            continue;
        }
        for memory in joined {
            let path = layout.typed_memory(&memory.file_name.to_string_lossy());
            let current = vault.read_text(&path)?;
            let is_same = |it: &String| {
                TypedMemory::parse(&memory.file_name, it).is_ok_and(|found| found == memory)
            };
            if !current.as_ref().is_some_and(is_same) {
                return Err(JobFailure::SourceChanged(path));
            }
            made.recorded.removed.push(path.clone());
            made.files.push(FileWrite { path: path.clone(), text: None, current });
            made.joined.insert(path);
        }
        return Ok(made);
    }
}

/// What is chosen from the newest logs where nothing is recorded yet.
#[derive(Default)]
pub(crate) struct RedraftedDigest {
    bullets: Vec<(WisdomSection, String, Citation)>,
    topics: Vec<TopicMemory>,
}

impl RedraftedDigest {
    /// Returns the lines of a bullet in a section.
    pub(crate) fn citation(&self, section: WisdomSection, text: &str) -> Option<Citation> {
        let found = self.bullets.iter().find(|it| it.0 == section && it.1 == text);
        found.map(|it| it.2.clone())
    }

    /// Returns whether a memory of this type has a statement, with its citation.
    pub(crate) fn states(&self, kind: MemoryType, item: &Item) -> bool {
        let topics = self.topics.iter().filter(|it| it.kind == kind);
        topics.flat_map(|it| &it.statements).any(|it| it.1 == *item)
    }

    /// Returns whether a memory of this type has a description.
    pub(crate) fn describes(&self, kind: MemoryType, description: &str) -> bool {
        self.topics.iter().any(|it| it.kind == kind && it.description == description)
    }
}

/// Chooses bullets and statements from the logs of a job, as if `WISDOM.md` had none and there were no memories.
pub(crate) fn redraft(
    vault: &Vault,
    settings: &RootSettings,
    view: &RootSnapshot,
    job: &CompactionJob,
) -> Result<RedraftedDigest, VaultError> {
    let Inventory { rules, .. } = &view.inventory;
    let logs = logs_of_job(vault, job, &view.inventory)?;
    let text = vault.read_text(&vault.layout().wisdom())?.unwrap_or_default();
    let (bullets, kept): (Vec<&str>, Vec<&str>) =
        text.split_inclusive('\n').partition(|it| it.starts_with("- "));
    let held: Vec<HeldBullet> =
        bullets.iter().map(|it| (it[2..].trim().to_owned(), None)).collect();
    let file = WisdomFile::parse(&kept.concat());
    let edit = WisdomEdit::new(&logs, rules, &|_| false);
    let notes = what_notes_say(&view.inventory);
    let room = settings.settings.wisdom.max_chars;
    let input = (&file, &notes, &held[..]);
    let digest = edit.with_digest_input(input, room, &|_, _| false, extractive::digest);
    let shown = |text: &str| rules.sanitize_output(text);
    let bullets = digest.bullets.iter();
    let bullets = bullets.map(|it| (it.section, shown(&it.text), it.citation.clone())).collect();
    let mut topics = digest.filed.topics;
    for topic in &mut topics {
        topic.description = describe(rules, &topic.description);
        topic.statements.iter_mut().for_each(|it| it.1.text = shown(&it.1.text));
    }
    Ok(RedraftedDigest { bullets, topics })
}

/// Returns whether a person deleted what these lines say from `WISDOM.md`, or from a memory below it.
fn is_deleted(
    decisions: &Decisions,
    layout: &Layout,
    citation: &Citation,
    logs: &[SanitizedLog],
) -> bool {
    decisions.is_deleted(&layout.wisdom(), line_texts(citation, logs))
        || MemoryType::ALL
            .iter()
            .any(|kind| is_deleted_in_type(*kind, citation, decisions, layout, logs))
}

/// Returns our bullets in a file, with their lines.
fn bullets_of(file: &WisdomFile) -> Vec<HeldBullet> {
    let bullets = file.entries().filter(|it| it.is_own_bullet());
    let sources = |it: &WisdomEntry| it.meta.as_ref().map(|it| it.sources.clone());
    bullets.map(|it| (it.text.clone(), sources(it))).collect()
}

impl WisdomEdit<'_> {
    /// Calls `choose` with what the bullets of a file are chosen from, beside what notes say.
    fn with_digest_input<T>(
        &self,
        (file, notes, held): (&WisdomFile, &SeenStatements, &[HeldBullet]),
        max_chars: usize,
        is_out_of_memory: &dyn Fn(MemoryType, &Citation) -> bool,
        choose: impl FnOnce(&DigestInput<'_>) -> T,
    ) -> T {
        let entries: Vec<WisdomEntry> =
            file.entries().filter(|it| !it.is_own_bullet()).cloned().collect();
        let entry_refs: Vec<&WisdomEntry> = entries.iter().collect();
        let failed_check = |text: &str, citation: &Citation| {
            // Whether the lines support a text is the one check that not all texts need.
            if !privacy::suspicious_lines(text).is_empty() {
                Some(FailedCheck::Quarantined)
            } else if hedge::is_guess(text) {
                Some(FailedCheck::Guess)
            } else if self.is_external_only("", text, citation) {
                Some(FailedCheck::External)
            } else {
                let checked = self.check_grounding("", text, citation);
                checked.err().map(|_| FailedCheck::Unsupported)
            }
        };
        let kept_out = |text: &str, citation: &Citation, own: &Citation| {
            if is_decided(own, &entry_refs, self.is_deleted) {
                return Some(DigestOutcome::KeptOutByPerson);
            }
            failed_check(text, citation).map(DigestOutcome::HeldByChecks)
        };
        choose(&DigestInput {
            logs: self.logs,
            states_from: states_from(self.logs.last().map(|it| it.stem().date())),
            model: self.model,
            held,
            shown: &|it| self.rules.sanitize_output(it),
            entries: &entries,
            notes,
            kept_out: &kept_out,
            kept_out_of_memory: &|kind, text, citation, own| {
                is_out_of_memory(kind, own) || failed_check(text, citation).is_some()
            },
            room: max_chars.saturating_sub(file.chars_without_bullets()),
        })
    }

    /// Replaces the bullets of the file; returns what they were chosen from.
    fn choose_bullets(
        &self,
        file: &mut WisdomFile,
        notes: &SeenStatements,
        max_chars: usize,
        is_out_of_memory: &dyn Fn(MemoryType, &Citation) -> bool,
    ) -> Digest {
        let held = bullets_of(file);
        let input = (&*file, notes, &held[..]);
        let digest = self.with_digest_input(input, max_chars, is_out_of_memory, extractive::digest);
        let bullets: Vec<(WisdomSection, String, Citation)> = digest
            .bullets
            .iter()
            .map(|it| (it.section, self.rules.sanitize_output(&it.text), it.citation.clone()))
            .collect();
        file.replace_bullets(&bullets);
        let ids: Vec<(String, Citation)> = file
            .entries()
            .filter(|it| it.is_own_bullet())
            .filter_map(|it| it.meta.as_ref())
            .map(|it| (it.id.clone(), it.sources.clone()))
            .collect();
        for (id, citation) in &ids {
            file.record_line_hashes(id, line_hashes(citation, self.logs));
        }
        digest
    }
}
