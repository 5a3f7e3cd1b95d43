//! Reads a day and drafts its memories. Nothing is written, so that many days are read in parallel.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
    collections::BTreeSet,
    path::Path,
};

use super::{
    memory_match::{self, MaskedNames, MemoryUpdate, NamedMemories},
    seen_lines::SeenLines,
    validate::validate,
};
use crate::compaction::{
    error::{JobFailure, ask_engine},
    grounding,
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
    engine::{Engine, ExtractInput, Extraction, MemoryDraft},
    memory::{
        address::{Address, Citation, Stem},
        decision::Decisions,
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
    /// The names of memories that a model sees.
    pub(super) names: &'a MaskedNames,
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
        DayContext {
            reader: self,
            logs,
            known,
            intact: known.intact(),
            secrets: OnceCell::new(),
            is_reextraction: matches!(job.reason, DueReason::Forced | DueReason::OtherEngine(_)),
        }
    }

    /// Returns what is wrong with a draft about the week of a day.
    pub(super) fn check(
        &self,
        job: &CompactionJob,
        logs: &[SanitizedLog],
        known: &KnownMemories,
        draft: &MemoryDraft,
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
        let reading = self.context(job, &logs, known);
        let mut day = ExtractedDay {
            memories: Vec::new(),
            revised: Vec::new(),
            withdrawn: Vec::new(),
            proposed: Vec::new(),
            rejected: 0,
            kept_out: Vec::new(),
            recorded: RecordedChanges::default(),
            source_chars: 0,
        };
        let mut again: Vec<MemoryUpdate> = Vec::new();
        for log in &logs {
            day.source_chars += log.chars();
            let news =
                || self.seen_lines.map_or_else(|| Some(log.clone()), |it| it.unseen_lines(log));
            let Extraction { drafts, unreadable: unread } = match proposed {
                Some(proposed) => proposed.get(log.stem()).cloned().unwrap_or_default(),
                None => match news().filter(|_| !self.by_topic) {
                    Some(log) => reading.ask_engine(&log, &day.memories)?,
                    None => Extraction::default(),
                },
            };
            day.rejected += unread.len();
            day.kept_out.extend(unread.into_iter().map(exclude_unreadable));
            for draft in drafts {
                reading.add_draft(&draft, &mut day, &mut again)?;
            }
            day.recorded.extracted.push((log.stem().clone(), log.input_hash()));
            day.recorded.read_paths.push(layout.source_path(log.stem()));
            day.recorded.logs.push(LogRecord::of(log, layout.source_path(log.stem())));
        }
        let mut settled = stale::match_successors(&mut day.memories, &known.stale);
        for again in again {
            match again {
                MemoryUpdate::Revise(it) => settled.revised.push(it),
                MemoryUpdate::Propose(it) => settled.proposed.push(it),
            }
        }
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
        Ok(day)
    }
}

/// What the drafts of a day are checked against.
struct DayContext<'a> {
    reader: &'a DayExtractor<'a>,
    logs: &'a [SanitizedLog],
    known: &'a KnownMemories,
    /// Those of them that lost no line.
    intact: Vec<TypedMemory>,
    secrets: OnceCell<FileNameSecrets>,
    /// Whether the day is extracted again from scratch.
    is_reextraction: bool,
}

impl DayContext<'_> {
    /// Asks the engine for memories of a log. `new` are those of the day so far.
    fn ask_engine(
        &self,
        log: &SanitizedLog,
        new: &[TypedMemory],
    ) -> Result<Extraction, JobFailure> {
        let DayExtractor { engine, rules, vault, names, .. } = self.reader;
        let check = |draft: &MemoryDraft| self.check(draft);
        let mut known = Cow::Borrowed(&self.intact[..]);
        if !new.is_empty() {
            known.to_mut().extend_from_slice(new);
        }
        if engine.is_model() {
            known = Cow::Owned(memory_match::sanitized_memories(&known, names, vault, rules));
        }
        let input = ExtractInput { log, existing: &known, check: &check };
        ask_engine(*engine, |engine| engine.extract(&input))
    }

    /// Returns what is wrong with a draft.
    fn check(&self, draft: &MemoryDraft) -> Result<(), String> {
        if let Some(fault) = memory_match::draft_fault(draft, self.named(), self.is_reextraction) {
            return Err(fault);
        }
        let lines = self.cited_logs(self.target(draft));
        let accepted =
            validate(draft, &lines, &|_| false, self.reader.rules, self.spelled_secrets());
        accepted.map(drop).map_err(|it| it.reason)
    }

    /// Adds a draft to the day, or keeps it out.
    fn add_draft(
        &self,
        draft: &MemoryDraft,
        day: &mut ExtractedDay,
        again: &mut Vec<MemoryUpdate>,
    ) -> Result<(), JobFailure> {
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
        // A memory is updated once a day; another draft with its name is a new memory.
        let is_free =
            |it: &&TypedMemory| again.iter().all(|there| there.file_name() != it.file_name);
        let target = self.target(draft).filter(is_free);
        let lines = self.cited_logs(target);
        let memory = validate(draft, &lines, &is_taken, rules, self.spelled_secrets());
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
        if grounding::is_external(&words, &draft.citation, &*lines).unwrap_or(true) {
            day.rejected += 1;
            day.recorded.quarantined.extend(external_lines(&draft.citation));
            return Ok(());
        }
        let barred = is_deleted_in_type(draft.kind, &draft.citation, decisions, layout, &lines);
        match target {
            _ if barred => {}
            Some(old) => {
                let after = memory_match::updated_memory(draft, &memory, old, self.is_reextraction);
                // As it is in its file, with the old addresses.
                let stale = self.known.stale.iter().find(|it| it.memory.file_name == old.file_name);
                let before = stale.map_or(old, |it| &it.memory).clone();
                again.extend(after.map(|after| MemoryUpdate::new(before, after)));
            }
            None if memory_match::is_duplicate(&memory, &self.intact) => {}
            None => day.memories.push(memory),
        }
        Ok(())
    }

    fn named(&self) -> NamedMemories<'_> {
        NamedMemories { memories: &self.intact, names: self.reader.names }
    }

    /// Returns the memory that a draft updates. The built-in engine searches for itself.
    fn target(&self, draft: &MemoryDraft) -> Option<&TypedMemory> {
        let target = memory_match::target_memory(draft, self.named(), self.is_reextraction);
        target.filter(|_| self.reader.engine.is_model())
    }

    /// Returns the logs of the day, and those that the updated memory cites.
    fn cited_logs(&self, target: Option<&TypedMemory>) -> Cow<'_, [SanitizedLog]> {
        let stems: BTreeSet<&Stem> =
            target.iter().flat_map(|it| &it.sources).map(|(at, _)| &at.stem).collect();
        let mut lines = Cow::Borrowed(self.logs);
        for stem in stems.into_iter().filter(|stem| self.logs.iter().all(|it| it.stem() != *stem)) {
            // A log that cannot be read supports nothing, and is reported elsewhere.
            if let Ok(Some(log)) = self.reader.vault.read_log(stem) {
                lines.to_mut().push(privacy::sanitize(&log, self.reader.rules));
            }
        }
        if let Cow::Owned(lines) = &mut lines {
            lines.sort_by(|a, b| a.stem().cmp(b.stem()));
        }
        lines
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

/// Returns the lines that cannot support anything durable alone, for the quarantine.
pub(crate) fn external_lines(citation: &Citation) -> Vec<(Stem, Vec<QuarantineRecord>)> {
    let record = |line| QuarantineRecord { line, why: vec![FROM_EXTERNAL.to_owned()] };
    let files = citation.files();
    files.map(|(stem, lines)| (stem.clone(), lines.iter().map(record).collect())).collect()
}

/// Returns whether a person deleted what these lines say in a memory of a type. Compared by lines and type, since the
/// same memory may get another name.
pub(super) fn is_deleted_in_type(
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
