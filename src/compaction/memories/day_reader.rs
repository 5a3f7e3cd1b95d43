//! Reads a day and drafts its memories. Nothing is written, so that many days are read in parallel.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
    collections::BTreeSet,
    path::Path,
};

use super::{
    memory_match,
    seen_lines::SeenLines,
    topics::{TopicExclusions, is_line_in},
    validate::{check_statement, validate},
};
use crate::compaction::{
    cited_records::CitedRecords,
    error::{JobFailure, ask_engine},
    grounding::{
        self,
        people::{self, LogsWithPeople},
    },
    journal::commit::RecordedChanges,
    plan::{CompactionJob, DueReason},
    proposals::{
        items::{ExcludedItem, exclude_unreadable, proposals_of_items},
        memories::propose_memory,
    },
    reconcile::stale::{self, MemoryRevision, StaleMemory},
    summary::{draft::read_logs, week_batch::WeekExtraction},
};
use crate::{
    engine::{Engine, ExtractInput, Extraction, MemoryDraft, StatementDraft},
    memory::{
        address::{Address, Citation, Stem},
        decision::Decisions,
        item::Item,
        statement,
        typed::{MemoryType, TypedMemory},
    },
    privacy::{self, FileNameSecrets, PrivacyRules, SanitizedLog},
    store::{
        db::lineage::{record::LogRecord, review::QuarantineRecord},
        fs::{
            layout::{FileKind, Layout},
            vault::Vault,
        },
    },
};

/// The reason for quarantining lines that cannot support a memory or an entry alone.
const FROM_EXTERNAL: &str = "from-elsewhere";

/// The typed memories of a root, and which of them are stale.
pub(crate) struct KnownMemories {
    /// All, with the present addresses of their lines.
    pub(crate) memories: Vec<TypedMemory>,
    /// Those whose lines were changed.
    pub(crate) stale: Vec<StaleMemory>,
}

/// The result of reading a day.
pub(super) struct ExtractedDay {
    pub(super) memories: Vec<TypedMemory>,
    /// New statements for memories about topics.
    pub(super) statements: Vec<StatementDraft>,
    /// The logs of the day.
    pub(super) logs: Vec<SanitizedLog>,
    /// Memories whose lines changed or moved.
    pub(super) revised: Vec<MemoryRevision>,
    /// Memories whose lines changed and that nothing supports any more.
    pub(super) withdrawn: Vec<TypedMemory>,
    /// Memories of a person whose lines changed. The proposed changes are in `recorded`.
    pub(super) proposed: Vec<TypedMemory>,
    pub(super) rejected: usize,
    /// Items that the checks kept out.
    pub(super) kept_out: Vec<ExcludedItem>,
    pub(super) recorded: RecordedChanges,
    pub(super) source_chars: usize,
}

impl KnownMemories {
    /// Finds the memories of a root that are stale by the logs of these days.
    pub(crate) fn of(
        vault: &Vault,
        jobs: &[CompactionJob],
        memories: &[TypedMemory],
        rules: &PrivacyRules,
    ) -> Self {
        let stale = stale::find_stale_memories(vault, jobs, memories, rules);
        Self { memories: memories.to_vec(), stale }
    }

    /// Updates the addresses of memories that lost no line.
    pub(super) fn with_present_sources(mut self) -> Self {
        for stale in self.stale.iter().filter(|it| !it.lost_a_line()) {
            let same = |it: &&mut TypedMemory| it.file_name == stale.memory.file_name;
            if let Some(memory) = self.memories.iter_mut().find(same) {
                *memory = stale.with_present_sources();
            }
        }
        self
    }

    /// Returns the memories that lost no line; a stale one must not keep out its replacement.
    pub(crate) fn intact(&self) -> Vec<TypedMemory> {
        let lost = |it: &&TypedMemory| {
            self.stale
                .iter()
                .any(|stale| stale.lost_a_line() && stale.memory.file_name == it.file_name)
        };
        self.memories.iter().filter(|it| !lost(it)).cloned().collect()
    }

    /// Applies the decisions of a day, for the days that follow.
    pub(super) fn apply(&mut self, day: ExtractedDay) {
        let ExtractedDay { memories, revised, withdrawn, proposed, .. } = day;
        for MemoryRevision { before, after } in revised {
            self.settle(&before.file_name);
            let same = |it: &TypedMemory| it.file_name == before.file_name;
            if let Some(at) = self.memories.iter().position(same) {
                self.memories[at] = after;
            }
        }
        for memory in &withdrawn {
            self.settle(&memory.file_name);
            self.memories.retain(|it| it.file_name != memory.file_name);
        }
        for memory in &proposed {
            self.settle(&memory.file_name);
        }
        self.memories.extend(memories);
    }

    /// Returns the memories that no day has to decide about any more.
    pub(super) fn settled(&self) -> Vec<TypedMemory> {
        let is_stale =
            |it: &&TypedMemory| self.stale.iter().any(|at| at.memory.file_name == it.file_name);
        self.memories.iter().filter(|it| !is_stale(it)).cloned().collect()
    }

    /// Replaces a memory by what is in its file now.
    pub(super) fn update_file(&mut self, path: &str, text: Option<&str>) {
        let Some(name) = Path::new(path).file_name() else { return };
        self.memories.retain(|it| it.file_name.as_os_str() != name);
        self.memories.extend(text.and_then(|it| TypedMemory::parse(name.as_ref(), it).ok()));
    }

    fn settle(&mut self, file_name: &Path) {
        self.stale.retain(|it| it.memory.file_name != file_name);
    }
}

/// Reads a day and drafts its memories.
pub(super) struct DayExtractor<'a> {
    pub(super) vault: &'a Vault,
    pub(super) engine: &'a dyn Engine,
    pub(super) decisions: &'a Decisions,
    pub(super) rules: &'a PrivacyRules,
    /// Lines that need not be read again.
    pub(super) seen_lines: Option<&'a SeenLines>,
    /// Whether the statements of the newest logs are filed by topic, so that a day has no memories of its own.
    pub(super) by_topic: bool,
}

impl ExtractedDay {
    /// Returns whether the day changes no memory.
    pub(super) fn changes_nothing(&self) -> bool {
        self.memories.is_empty()
            && self.revised.is_empty()
            && self.withdrawn.is_empty()
            && self.proposed.is_empty()
    }
}

impl DayExtractor<'_> {
    /// Returns the context for checking a day, or the logs of its week.
    fn context<'b>(
        &'b self,
        job: &CompactionJob,
        logs: &'b [SanitizedLog],
        known: &'b KnownMemories,
    ) -> DayContext<'b> {
        let mut intact = known.intact();
        // A model that reads a day again does not know what it said about it.
        if self.engine.is_model() && is_reread(job) {
            let is_of_day = |_: &TypedMemory, item: &Item| is_filed_under(item, logs);
            intact = intact.into_iter().filter_map(|it| without(it, &is_of_day)).collect();
        } else if self.engine.is_model() {
            intact = with_current_statements(intact, logs);
        }
        let people = people::names_in_memories(&intact);
        let readable = Cow::Borrowed(logs);
        DayContext { reader: self, logs, readable, known, intact, people, secrets: OnceCell::new() }
    }

    /// Returns what is wrong with a statement of the week of a day.
    pub(super) fn check(
        &self,
        job: &CompactionJob,
        logs: &[SanitizedLog],
        known: &KnownMemories,
        draft: &StatementDraft,
    ) -> Result<(), String> {
        self.context(job, logs, known).check(draft)
    }

    /// Reads a day. `proposed` are the drafts for its week, if the week was asked in one request.
    pub(super) fn extract(
        &self,
        job: &CompactionJob,
        known: &KnownMemories,
        proposed: Option<&WeekExtraction>,
    ) -> Result<ExtractedDay, JobFailure> {
        let rules = self.rules;
        let logs = read_logs(self.vault, job, rules)?;
        let layout = self.vault.layout();
        let mut reading = self.context(job, &logs, known);
        if let Some(week) = proposed {
            reading.add_readable(&week.logs);
        }
        let mut day = ExtractedDay {
            memories: Vec::new(),
            statements: Vec::new(),
            logs: Vec::new(),
            revised: Vec::new(),
            withdrawn: Vec::new(),
            proposed: Vec::new(),
            rejected: 0,
            kept_out: Vec::new(),
            recorded: RecordedChanges::default(),
            source_chars: 0,
        };
        for log in &logs {
            day.source_chars += log.chars();
            let news =
                || self.seen_lines.map_or_else(|| Some(log.clone()), |it| it.unseen_lines(log));
            let Extraction { drafts, statements, unreadable: unread } = match proposed {
                Some(proposed) => proposed.by_log.get(log.stem()).cloned().unwrap_or_default(),
                None => match news().filter(|_| !self.by_topic) {
                    Some(log) => reading.ask_engine(&log, &day.memories)?,
                    None => Extraction::default(),
                },
            };
            day.rejected += unread.len();
            day.kept_out.extend(unread.into_iter().map(exclude_unreadable));
            for draft in drafts {
                reading.add_draft(&draft, &mut day)?;
            }
            for statement in statements {
                reading.add_statement(statement, &mut day);
            }
            day.recorded.extracted.push((log.stem().clone(), log.input_hash()));
            day.recorded.read_paths.push(layout.source_path(log.stem()));
            day.recorded.logs.push(LogRecord::of(log, layout.source_path(log.stem())));
        }
        let mut settled = stale::match_successors(&mut day.memories, &known.stale);
        stale::decide_remaining(self.vault, job.period.first(), &known.stale, &mut settled, rules)?;
        day.revised = settled.revised;
        day.withdrawn = settled.withdrawn;
        let path = |it: &TypedMemory| layout.typed_memory(&it.file_name.to_string_lossy());
        let offers = settled.proposed.iter();
        let proposed =
            offers.filter_map(|it| propose_memory(it, &path(&it.before), self.decisions));
        day.recorded.proposed = Some((job.fingerprint, job.period, proposed.collect()));
        let index = layout.index();
        let proposals =
            proposals_of_items(&day.kept_out, &index, self.engine, self.decisions, rules);
        day.recorded.kept_out = Some((job.fingerprint, job.period, index, proposals));
        day.proposed = settled.proposed.into_iter().map(|it| it.before).collect();
        let others = reading.other_logs(&day.statements);
        drop(reading);
        day.logs = logs;
        day.logs.extend(others);
        day.logs.sort_by(|a, b| a.stem().cmp(b.stem()));
        Ok(day)
    }
}

/// What the drafts of a day are checked against.
struct DayContext<'a> {
    reader: &'a DayExtractor<'a>,
    logs: &'a [SanitizedLog],
    /// These, and the others that the reply was checked against: which words are names is known from all of them.
    readable: Cow<'a, [SanitizedLog]>,
    known: &'a KnownMemories,
    /// Those of them that lost no line.
    intact: Vec<TypedMemory>,
    /// The people that these name.
    people: BTreeSet<String>,
    secrets: OnceCell<FileNameSecrets>,
}

impl DayContext<'_> {
    /// Asks the engine for memories of a log. `new` are those of the day so far.
    fn ask_engine(
        &self,
        log: &SanitizedLog,
        new: &[TypedMemory],
    ) -> Result<Extraction, JobFailure> {
        let DayExtractor { engine, rules, vault, .. } = self.reader;
        let check = |draft: &StatementDraft| self.check(draft);
        let mut known = Cow::Borrowed(&self.intact[..]);
        if !new.is_empty() {
            known.to_mut().extend_from_slice(new);
        }
        if engine.is_model() {
            known = Cow::Owned(memory_match::sanitized_memories(&known, vault, rules));
        }
        let input = ExtractInput { log, existing: &known, check: &check };
        ask_engine(*engine, |engine| engine.extract(&input))
    }

    /// Adds logs of other days that drafts were checked against.
    fn add_readable(&mut self, logs: &[SanitizedLog]) {
        let is_new = |it: &&SanitizedLog| self.logs.iter().all(|own| own.stem() != it.stem());
        let others: Vec<SanitizedLog> = logs.iter().filter(is_new).cloned().collect();
        if !others.is_empty() {
            self.readable.to_mut().extend(others);
            self.readable.to_mut().sort_by(|a, b| a.stem().cmp(b.stem()));
        }
    }

    /// Returns what is wrong with a statement.
    fn check(&self, draft: &StatementDraft) -> Result<(), String> {
        if !self.logs.iter().any(|it| draft.citation.lines_of(it.stem()).is_some()) {
            return Err("`citations` names no line of these logs".to_owned());
        }
        let ids = || memory_match::statement_ids(&self.intact, self.reader.rules);
        if draft.replaces.as_ref().is_some_and(|it| !ids().contains(it)) {
            return Err("`replaces` names no statement that exists".to_owned());
        }
        let logs = self.cited_logs(&draft.citation);
        let lines = self.with_people(&logs);
        check_statement(draft, &lines, self.is_known_topic(&draft.topic))
            .map_err(|it| it.reason)?;
        match grounding::external_fault(&draft.text, &draft.citation, &*logs) {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    /// Returns whether a memory is about a topic.
    fn is_known_topic(&self, topic: &str) -> bool {
        let topic = topic.to_lowercase();
        let shown = |it: &TypedMemory| self.reader.rules.sanitize_output(&it.name).to_lowercase();
        self.intact.iter().any(|it| it.name.to_lowercase() == topic || shown(it) == topic)
    }

    /// Adds a statement to the day, or keeps it out.
    fn add_statement(&self, mut draft: StatementDraft, day: &mut ExtractedDay) {
        let DayExtractor { engine, vault, decisions, .. } = self.reader;
        let lines = self.cited_logs(&draft.citation);
        let is_known = self.is_known_topic(&draft.topic);
        if let Err(kept_out) = check_statement(&draft, &self.with_people(&lines), is_known) {
            day.rejected += 1;
            day.kept_out.push(kept_out);
            return;
        }
        draft.citation = grounding::without_blank_lines(&draft.citation, &*lines);
        if grounding::is_external(&draft.text, &draft.citation, &*lines).unwrap_or(true) {
            day.rejected += 1;
            day.recorded.quarantined.extend(external_lines(&draft.citation));
            return;
        }
        let mut exclusions = TopicExclusions::of(&self.intact, decisions, vault.layout(), &lines);
        if !engine.is_model() {
            exclusions = exclusions.with_model_statements(&self.intact);
        }
        if !exclusions.contain(draft.kind.memory_type(), &draft.citation) {
            day.statements.push(draft);
        }
    }

    /// Adds a draft to the day, or keeps it out.
    fn add_draft(&self, draft: &MemoryDraft, day: &mut ExtractedDay) -> Result<(), JobFailure> {
        let DayExtractor { vault, decisions, rules, .. } = self.reader;
        let layout = vault.layout();
        let failed = Cell::new(None);
        let is_taken = |name: &str| {
            let mut names = self.known.memories.iter().chain(&day.memories).map(|it| &it.file_name);
            names.any(|it| it.as_os_str().eq_ignore_ascii_case(name))
                // Or the name of a file that is no typed memory, or cannot be parsed as one.
                || vault.try_exists(&layout.typed_memory(name)).unwrap_or_else(|error| {
                    failed.set(Some(error));
                    false
                })
        };
        let lines = self.logs;
        let people = self.with_people(lines);
        let memory = validate(draft, &people, &is_taken, rules, self.spelled_secrets());
        if let Some(error) = failed.into_inner() {
            return Err(error.into());
        }
        let memory = match memory {
            Ok(memory) => memory,
            Err(kept_out) => {
                day.rejected += 1;
                day.kept_out.push(kept_out);
                return Ok(());
            }
        };
        let words = [&memory.name[..], &memory.description, &memory.body].join(" ");
        if grounding::is_external(&words, &draft.citation, lines).unwrap_or(true) {
            day.rejected += 1;
            day.recorded.quarantined.extend(external_lines(&draft.citation));
            return Ok(());
        }
        if !is_deleted_in_type(draft.kind, &draft.citation, decisions, layout, lines)
            && !memory_match::is_duplicate(&memory, &self.intact)
        {
            day.memories.push(memory);
        }
        Ok(())
    }

    fn with_people<'l>(&'l self, logs: &'l [SanitizedLog]) -> LogsWithPeople<'l> {
        LogsWithPeople { logs, people: &self.people }
    }

    /// Returns the logs that can be read, and the others that are cited.
    fn cited_logs(&self, citation: &Citation) -> Cow<'_, [SanitizedLog]> {
        let stems = citation.files().map(|(stem, _)| stem);
        let mut lines = Cow::Borrowed(&*self.readable);
        for stem in stems.filter(|stem| self.readable.iter().all(|it| it.stem() != *stem)) {
            // A log that cannot be read supports nothing, and is reported elsewhere.
            if let Ok(Some(log)) = self.reader.vault.read_log(stem) {
                let log = privacy::sanitize(&log, self.reader.rules);
                let mut records = CitedRecords::new(self.reader.vault, self.reader.rules);
                lines.to_mut().push(records.without_misquotes(log));
            }
        }
        if let Cow::Owned(lines) = &mut lines {
            lines.sort_by(|a, b| a.stem().cmp(b.stem()));
        }
        lines
    }

    /// Returns the logs of other days that statements cite.
    fn other_logs(&self, statements: &[StatementDraft]) -> Vec<SanitizedLog> {
        let mut others = Vec::<SanitizedLog>::new();
        for statement in statements {
            let cited = self.cited_logs(&statement.citation);
            let is_new = |it: &&SanitizedLog| {
                let mut known = self.logs.iter().chain(&others);
                statement.citation.lines_of(it.stem()).is_some()
                    && known.all(|known| known.stem() != it.stem())
            };
            let new: Vec<SanitizedLog> = cited.iter().filter(is_new).cloned().collect();
            others.extend(new);
        }
        others
    }

    /// Returns the secrets of the logs as file names spell them, computed for the first draft only.
    fn spelled_secrets(&self) -> &FileNameSecrets {
        self.secrets.get_or_init(|| {
            let mut secrets = FileNameSecrets::default();
            let raw = self.logs.iter().filter_map(SanitizedLog::raw);
            raw.for_each(|it| secrets.add_from(self.reader.rules, it));
            secrets
        })
    }
}

/// Returns whether a day is extracted again from scratch.
pub(super) fn is_reread(job: &CompactionJob) -> bool {
    matches!(job.reason, DueReason::Forced | DueReason::OtherEngine(_))
}

/// Returns memories without those statements of ours of which a line in these logs is no longer as it was: a model
/// that is shown them says nothing about the new line.
pub(super) fn with_current_statements(
    memories: Vec<TypedMemory>,
    logs: &[SanitizedLog],
) -> Vec<TypedMemory> {
    let has_changed = |memory: &TypedMemory, item: &Item| {
        item.citation.iter().flat_map(Citation::addresses).any(|at| {
            let log = logs.iter().find(|it| *it.stem() == at.stem);
            log.is_some_and(|it| !is_line_in(it, &at, memory))
        })
    };
    let is_topic = |it: &TypedMemory| it.is_about_topic();
    let current =
        |it: TypedMemory| if is_topic(&it) { without(it, &has_changed) } else { Some(it) };
    memories.into_iter().filter_map(current).collect()
}

/// Returns whether the last log that an item cites is one of these.
fn is_filed_under(item: &Item, logs: &[SanitizedLog]) -> bool {
    let cited = item.citation.iter().flat_map(Citation::files).map(|it| it.0);
    let last = cited.max_by_key(|it| (it.date(), *it));
    last.is_some_and(|stem| logs.iter().any(|it| it.stem() == stem))
}

/// Returns a memory without those statements of ours that ended; `None` if it has no others.
fn without(
    memory: TypedMemory,
    is_ended: &dyn Fn(&TypedMemory, &Item) -> bool,
) -> Option<TypedMemory> {
    if !memory.is_about_topic() {
        let is_ended = memory.known_statements().iter().all(|it| is_ended(&memory, &it.item));
        return (!memory.is_managed() || !is_ended).then_some(memory);
    }
    let (mut left, own) = memory.statements_by_owner();
    left.retain(|it| !is_ended(&memory, &it.item));
    left.extend(own);
    left.sort_by_key(|it| it.kind);
    let body = statement::body_of(left.iter().map(|it| (it.kind, &it.item)));
    (!left.is_empty()).then(|| TypedMemory { body, ..memory })
}

/// Returns the lines that cannot support anything durable alone, for the quarantine.
pub(crate) fn external_lines(citation: &Citation) -> Vec<(Stem, Vec<QuarantineRecord>)> {
    let record = |line| QuarantineRecord { line, why: vec![FROM_EXTERNAL.to_owned()] };
    let files = citation.files();
    files.map(|(stem, lines)| (stem.clone(), lines.iter().map(record).collect())).collect()
}

/// Returns whether a person deleted what these lines say in a memory of a type. Compared by lines and type, since the
/// same memory may get another name.
pub(crate) fn is_deleted_in_type(
    kind: MemoryType,
    citation: &Citation,
    decisions: &Decisions,
    layout: &Layout,
    logs: &[SanitizedLog],
) -> bool {
    let is_alike = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        layout.kind_of(path) == Some(FileKind::Memory)
            && MemoryType::of_file_name(Path::new(name)) == Some(kind)
    };
    decisions
        .files_with_deleted()
        .filter(is_alike)
        .any(|it| decisions.is_deleted(it, line_texts(citation, logs)))
}

pub(crate) fn line_texts<'a>(citation: &Citation, logs: &'a [SanitizedLog]) -> Vec<&'a str> {
    let line = |it: Address| {
        let log = logs.iter().find(|log| *log.stem() == it.stem)?;
        Some(log.line(it.line)?.text())
    };
    citation.addresses().filter_map(line).collect()
}
