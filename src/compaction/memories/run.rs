//! Typed memories from days, and their index `MEMORY.md`.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
    collections::BTreeSet,
    path::Path,
};

use super::{
    memory_match::{self, MaskedNames, MemoryUpdate},
    seen_lines::SeenLines,
    validate::validate,
};
use crate::compaction::{
    CompactionError, Compactor, JobFailure, JobOutput, RootSnapshot, ask_engine, grounding,
    journal::{
        commit::{FileWrite, RecordedChanges},
        records,
    },
    plan::{CompactionJob, DueReason},
    reconcile::stale::{self, MemoryRevision, StaleMemory},
    report::{JobReport, RunReport},
    review::{self, ExcludedItem},
    summary::{
        draft::{SummaryDrafter, read_logs},
        week_batch::{WeekBatch, WeekExtraction},
        write::count_u32,
    },
};
use crate::{
    compaction::RunObserver,
    engine::{Engine, ExtractInput, Extraction, MemoryDraft},
    memory::{
        address::{Address, Citation, Stem},
        decision::Decisions,
        index,
        typed::{MemoryType, TypedMemory},
    },
    parallel,
    privacy::{self, FileNameSecrets, PrivacyRules, SanitizedLog},
    store::{
        db::lineage::{
            jobs::{JobId, JobOutcome, JobStage, NewJob, Receipt, RunId},
            record::{Commit, LogRecord},
            review::QuarantineRecord,
        },
        fs::{
            inventory::Inventory,
            layout::FileKind,
            vault::{Vault, VaultError},
        },
    },
};

/// How many days are read side by side and, where they have no memory, recorded at once: most days
/// have none, and a transaction costs more than reading the day.
const DAYS_AT_ONCE: usize = 64;

/// Why lines are held that alone carry no memory and no wisdom.
const FROM_EXTERNAL: &str = "from-elsewhere";

/// A day that was read.
struct ExtractedDay {
    /// New ones.
    memories: Vec<TypedMemory>,
    /// Those whose lines were changed or moved.
    revised: Vec<MemoryRevision>,
    /// Those whose lines were changed and that nothing says any more.
    withdrawn: Vec<TypedMemory>,
    /// Those of a person's whose lines were changed. What would become of them is in `recorded`.
    proposed: Vec<TypedMemory>,
    rejected: usize,
    /// What the check kept out.
    kept_out: Vec<ExcludedItem>,
    recorded: RecordedChanges,
    source_chars: usize,
}

impl Compactor<'_> {
    /// Extracts typed memories from days, then brings the index up to date.
    pub(crate) fn run_day_jobs(
        &mut self,
        run: RunId,
        jobs: &[CompactionJob],
        view: &RootSnapshot,
        watcher: &mut dyn RunObserver,
        report: &mut RunReport,
    ) -> Result<(), CompactionError> {
        let (mut existing, mut doubts) = self.current_memories(jobs, view);
        for (i, chunk) in jobs.chunks(DAYS_AT_ONCE).enumerate() {
            if watcher.should_stop() {
                report.left += jobs.len() - i * DAYS_AT_ONCE;
                break;
            }
            watcher.job_started(&chunk[0], jobs.len() - i * DAYS_AT_ONCE - 1);
            let mut quiet: Vec<(NewJob, Receipt, RecordedChanges)> = Vec::new();
            for (job, day) in chunk.iter().zip(self.extract_days(chunk, &existing, &doubts, view)) {
                let made = match day {
                    Ok(day) if day.changes_nothing() => {
                        let receipt = self.day_receipt(job, &day, JobOutcome::Unchanged);
                        quiet.push((self.new_job(job), receipt.clone(), day.recorded));
                        JobOutput { receipt, paths: Vec::new() }
                    }
                    first => {
                        let known = (&mut existing, &mut doubts);
                        match self.run_day_job(run, job, first, known, view)? {
                            Some(made) => made,
                            None => continue,
                        }
                    }
                };
                let due = match made.receipt.outcome {
                    JobOutcome::Unchanged => "nothing to remember".to_owned(),
                    _ => made.receipt.reason.clone().unwrap_or_else(|| job.reason.to_string()),
                };
                let done = JobReport::new(job.tier, job.period, &made.receipt, made.paths, &due);
                watcher.job_finished(&done);
                report.push(done);
            }
            self.record_empty_days(run, &quiet)?;
        }
        Ok(())
    }

    /// Returns the memories that stand, with the addresses that their lines have now, and those that
    /// lost lines.
    fn current_memories(
        &self,
        jobs: &[CompactionJob],
        view: &RootSnapshot,
    ) -> (Vec<TypedMemory>, Vec<StaleMemory>) {
        let mut existing = view.inventory.memories.clone();
        let doubts = stale::find_stale_memories(self.vault, jobs, &existing, &view.inventory.rules);
        for doubt in doubts.iter().filter(|it| !it.lost_a_line()) {
            let same = |it: &&mut TypedMemory| it.file_name == doubt.memory.file_name;
            if let Some(memory) = existing.iter_mut().find(same) {
                *memory = doubt.with_present_sources();
            }
        }
        (existing, doubts)
    }

    /// Asks a model for the typed memories of days, one after the other, the newest first. Stops when it
    /// cannot be had. `weeks` are those that are folded after them.
    pub(crate) fn run_model_day_jobs(
        &mut self,
        run: RunId,
        (jobs, weeks): (&[CompactionJob], &[CompactionJob]),
        view: &RootSnapshot,
        watcher: &mut dyn RunObserver,
        report: &mut RunReport,
    ) -> Result<(), CompactionError> {
        let (mut existing, mut doubts) = self.current_memories(jobs, view);
        let Inventory { decisions, rules, .. } = &view.inventory;
        let drafter = SummaryDrafter {
            vault: self.vault,
            engine: self.engine,
            settings: &self.settings.settings.compaction,
            inventory: &view.inventory,
        };
        let mut together = WeekBatch::new(drafter, weeks, jobs);
        let names = MaskedNames::of(&existing, &view.inventory, self.vault);
        let mut nearby = SeenLines::of(self.vault, jobs, view)?;
        for (i, job) in jobs.iter().rev().enumerate() {
            if watcher.should_stop() || report.model.is_some() {
                report.left += jobs.len() - i;
                break;
            }
            watcher.job_started(job, jobs.len() - i - 1);
            let Some(id) = self.begin_job(run, job)? else { continue };
            self.lineage.set_job_stage(id, JobStage::Called)?;
            // Who asks for a day by force wants all of it read.
            let known = (job.reason != DueReason::Forced).then_some(&nearby);
            let reader = DayExtractor {
                vault: self.vault,
                engine: self.engine,
                decisions,
                rules,
                seen_lines: known,
                names: &names,
            };
            let sound = without_stale(&existing, &doubts);
            let shown = memory_match::sanitized_memories(&sound, &names, rules);
            let check = |logs: &[SanitizedLog], draft: &MemoryDraft| {
                reader.check(job, logs, (&existing, &doubts), draft)
            };
            let day = together
                .extraction_for(job, &shown, &check)
                .and_then(|proposed| reader.extract(job, &existing, &doubts, proposed));
            let made = day.and_then(|it| self.write_day(job, id, it, (&mut existing, &mut doubts)));
            // What was kept out may be said better another day.
            if made.as_ref().is_ok_and(|it| it.receipt.metrics.rejected == 0) {
                read_logs(self.vault, job, rules).iter().flatten().for_each(|it| nearby.add(it));
            }
            self.finish_job(job, id, made, watcher, report)?;
        }
        Ok(())
    }

    /// Reads days side by side. Each is compared with the memories that stood before all of them.
    fn extract_days(
        &self,
        jobs: &[CompactionJob],
        existing: &[TypedMemory],
        doubts: &[StaleMemory],
        view: &RootSnapshot,
    ) -> Vec<Result<ExtractedDay, JobFailure>> {
        let reader = DayExtractor {
            vault: self.vault,
            engine: self.engine,
            decisions: &view.inventory.decisions,
            rules: &view.inventory.rules,
            seen_lines: None,
            names: &MaskedNames::default(),
        };
        parallel::map(jobs, |job| reader.extract(job, existing, doubts, None))
    }

    /// Makes a day that has something to remember, or could not be read. `None` when another
    /// process does the same right now.
    fn run_day_job(
        &mut self,
        run: RunId,
        job: &CompactionJob,
        first: Result<ExtractedDay, JobFailure>,
        (existing, doubts): (&mut Vec<TypedMemory>, &mut Vec<StaleMemory>),
        view: &RootSnapshot,
    ) -> Result<Option<JobOutput>, CompactionError> {
        let Some(id) = self.begin_job(run, job)? else { return Ok(None) };
        // The days before it may have said the same; what it adds is decided one day at a time.
        let day = first.and_then(|_| {
            let Inventory { decisions, rules, .. } = &view.inventory;
            let names = &MaskedNames::default();
            let reader = DayExtractor {
                vault: self.vault,
                engine: self.engine,
                decisions,
                rules,
                seen_lines: None,
                names,
            };
            reader.extract(job, existing, doubts, None)
        });
        let made = match day.and_then(|day| self.write_day(job, id, day, (existing, doubts))) {
            Ok(made) => made,
            Err(JobFailure::Critical(error)) => return Err(error),
            Err(error) => self.record_failure(job, id, &error)?,
        };
        Ok(Some(made))
    }

    /// Records days that left no memory, many in one transaction.
    fn record_empty_days(
        &mut self,
        run: RunId,
        quiet: &[(NewJob, Receipt, RecordedChanges)],
    ) -> Result<(), CompactionError> {
        if quiet.is_empty() {
            return Ok(());
        }
        let commits: Vec<_> = quiet
            .iter()
            .map(|(job, receipt, recorded)| {
                let commit = Commit {
                    logs: &recorded.logs,
                    extracted: &recorded.extracted,
                    quarantined_memories: &recorded.quarantined,
                    proposals: recorded.proposals(),
                    quarantined_items: recorded.kept_out_items(),
                    used: &recorded.read_paths,
                    at: receipt.ended,
                    ..Commit::default()
                };
                (job, receipt, commit)
            })
            .collect();
        Ok(self.lineage.commit_finished_jobs(run, &commits)?)
    }

    fn write_day(
        &mut self,
        job: &CompactionJob,
        id: JobId,
        mut day: ExtractedDay,
        (existing, doubts): (&mut Vec<TypedMemory>, &mut Vec<StaleMemory>),
    ) -> Result<JobOutput, JobFailure> {
        let mut files = Vec::new();
        for memory in &day.memories {
            let path = self.vault.layout().typed_memory(&memory.file_name.to_string_lossy());
            let text = memory.print();
            day.recorded.documents.push(records::of_memory(&path, memory, &text));
            files.push(FileWrite { path, text: Some(text), current: None });
        }
        for MemoryRevision { before, after } in &day.revised {
            let (path, standing) = self.unchanged_memory_file(before)?;
            let text = after.print();
            if text != standing {
                day.recorded.documents.push(records::of_memory(&path, after, &text));
                files.push(FileWrite { path, text: Some(text), current: Some(standing) });
            }
        }
        let paths: Vec<String> = files.iter().map(|it| it.path.clone()).collect();
        for memory in &day.withdrawn {
            let (path, standing) = self.unchanged_memory_file(memory)?;
            day.recorded.removed.push(path.clone());
            files.push(FileWrite { path, text: None, current: Some(standing) });
        }
        let outcome = match (files.is_empty(), day.recorded.proposal_count()) {
            (false, _) => JobOutcome::Written,
            (true, 0) => JobOutcome::Unchanged,
            (true, _) => JobOutcome::Skipped,
        };
        let mut receipt = self.day_receipt(job, &day, outcome);
        self.add_model_usage(&mut receipt);
        receipt.path = files.first().map(|it| it.path.clone());
        self.write_files(None, Some((id, &receipt)), &files, &day.recorded)?;
        // What was decided about a memory is decided for the days that come after, too.
        let is = |name: &Path| {
            let name = name.to_owned();
            move |it: &TypedMemory| it.file_name == name
        };
        for MemoryRevision { before, after } in day.revised {
            doubts.retain(|it| it.memory.file_name != before.file_name);
            if let Some(at) = existing.iter().position(is(&before.file_name)) {
                existing[at] = after;
            }
        }
        for memory in &day.withdrawn {
            doubts.retain(|it| it.memory.file_name != memory.file_name);
            existing.retain(|it| it.file_name != memory.file_name);
        }
        for memory in &day.proposed {
            doubts.retain(|it| it.memory.file_name != memory.file_name);
        }
        existing.append(&mut day.memories);
        Ok(JobOutput { receipt, paths })
    }

    /// Returns path and text of a memory's file, if it is still the one that was looked at.
    fn unchanged_memory_file(&self, memory: &TypedMemory) -> Result<(String, String), JobFailure> {
        let path = self.vault.layout().typed_memory(&memory.file_name.to_string_lossy());
        let text = self.vault.read_text(&path)?;
        let same = |it: &String| {
            TypedMemory::parse(&memory.file_name, it).is_ok_and(|found| found == *memory)
        };
        match text.filter(same) {
            Some(text) => Ok((path, text)),
            None => Err(JobFailure::SourceChanged(path)),
        }
    }

    fn day_receipt(&self, job: &CompactionJob, day: &ExtractedDay, outcome: JobOutcome) -> Receipt {
        let mut reason = job.reason.to_string();
        for memory in &day.withdrawn {
            let path = self.vault.layout().typed_memory(&memory.file_name.to_string_lossy());
            reason.extend(["; ", &path, " withdrawn: its source changed"]);
        }
        match day.recorded.proposal_count() {
            0 => {}
            proposed => reason = format!("{reason}; {}", review::waiting_message(proposed)),
        }
        if let Some(note) = review::exclusion_note(&day.kept_out) {
            reason = format!("{reason}; {note}");
        }
        let mut receipt = Receipt::new(outcome, Some(reason), (self.clock)());
        receipt.metrics.sources = count_u32(job.inputs.len());
        receipt.metrics.source_chars = day.source_chars as u64;
        let written = day.memories.iter().chain(day.revised.iter().map(|it| &it.after));
        receipt.metrics.output_chars =
            written.clone().map(|it| it.body.chars().count() as u64).sum();
        receipt.metrics.items = count_u32(written.count());
        receipt.metrics.rejected = count_u32(day.rejected);
        receipt
    }

    /// Brings `MEMORY.md` up to date with the typed memories that stand there, and returns its path
    /// if it had to be written.
    pub(crate) fn refresh_index(
        &mut self,
        run: Option<RunId>,
        view: &RootSnapshot,
    ) -> Result<Option<String>, CompactionError> {
        let inventory = &view.inventory;
        if inventory.memories.is_empty() && inventory.index.is_none() {
            return Ok(None);
        }
        let text = index::render(inventory.index.as_deref(), &inventory.memories, &|it| {
            inventory.rules.sanitize_output(it)
        });
        if inventory.index.as_deref() == Some(&text) {
            return Ok(None);
        }
        let path = self.vault.layout().index();
        let standing = inventory.index.clone();
        let file = FileWrite { path: path.clone(), text: Some(text), current: standing };
        match self.write_files(run, None, &[file], &RecordedChanges::default()) {
            Ok(()) => Ok(Some(path)),
            Err(JobFailure::Critical(error)) => Err(error),
            // A person is at it; the next pass finds what they wrote.
            // Of something else that has its name, the scan has told.
            Err(JobFailure::Vault(VaultError::Changed { .. } | VaultError::NotAFile { .. })) => {
                Ok(None)
            }
            Err(JobFailure::Vault(error)) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }
}

/// Reads a day and asks what of it is to be remembered. Writes nothing, so that many can do it.
struct DayExtractor<'a> {
    vault: &'a Vault,
    engine: &'a dyn Engine,
    decisions: &'a Decisions,
    rules: &'a PrivacyRules,
    /// What needs not be read once more.
    seen_lines: Option<&'a SeenLines>,
    /// What memories are called to a model.
    names: &'a MaskedNames,
}

impl ExtractedDay {
    /// Returns whether it changes no memory.
    fn changes_nothing(&self) -> bool {
        self.memories.is_empty()
            && self.revised.is_empty()
            && self.withdrawn.is_empty()
            && self.proposed.is_empty()
    }
}

impl DayExtractor<'_> {
    /// Returns what a day, or the logs of its week, are read with.
    fn context<'b>(
        &'b self,
        job: &CompactionJob,
        logs: &'b [SanitizedLog],
        existing: &'b [TypedMemory],
        doubts: &'b [StaleMemory],
    ) -> DayContext<'b> {
        DayContext {
            reader: self,
            logs,
            existing,
            intact: without_stale(existing, doubts),
            doubts,
            secrets: OnceCell::new(),
            is_reextraction: matches!(job.reason, DueReason::Forced | DueReason::OtherEngine(_)),
        }
    }

    /// Says what is wrong with a proposal about the week of a day.
    fn check(
        &self,
        job: &CompactionJob,
        logs: &[SanitizedLog],
        (existing, doubts): (&[TypedMemory], &[StaleMemory]),
        draft: &MemoryDraft,
    ) -> Result<(), String> {
        self.context(job, logs, existing, doubts).check(draft)
    }

    /// `proposed` is what was said of its week, where it was asked about together with it.
    fn extract(
        &self,
        job: &CompactionJob,
        existing: &[TypedMemory],
        doubts: &[StaleMemory],
        proposed: Option<&WeekExtraction>,
    ) -> Result<ExtractedDay, JobFailure> {
        let rules = self.rules;
        let logs = read_logs(self.vault, job, rules)?;
        let layout = self.vault.layout();
        let reading = self.context(job, &logs, existing, doubts);
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
                None => match news() {
                    Some(log) => reading.ask_engine(&log, &day.memories)?,
                    None => Extraction::default(),
                },
            };
            day.rejected += unread.len();
            day.kept_out.extend(unread.into_iter().map(review::exclude_unreadable));
            for draft in drafts {
                reading.add_draft(&draft, &mut day, &mut again)?;
            }
            day.recorded.extracted.push((log.stem().clone(), log.input_hash()));
            day.recorded.read_paths.push(layout.source_path(log.stem()));
            day.recorded.logs.push(LogRecord::of(log, layout.source_path(log.stem())));
        }
        let mut settled = stale::match_successors(&mut day.memories, doubts);
        for again in again {
            match again {
                MemoryUpdate::Revise(it) => settled.revised.push(it),
                MemoryUpdate::Propose(it) => settled.proposed.push(it),
            }
        }
        stale::decide_remaining(self.vault, job.period.first(), doubts, &mut settled, rules)?;
        day.revised = settled.revised;
        day.withdrawn = settled.withdrawn;
        let path = |it: &TypedMemory| layout.typed_memory(&it.file_name.to_string_lossy());
        let offers = settled.proposed.iter();
        let proposed =
            offers.filter_map(|it| review::propose_memory(it, &path(&it.before), self.decisions));
        day.recorded.proposed = Some((job.fingerprint, job.period, proposed.collect()));
        let index = layout.index();
        let told =
            review::proposals_of_items(&day.kept_out, &index, self.engine, self.decisions, rules);
        day.recorded.kept_out = Some((job.fingerprint, job.period, index, told));
        day.proposed = settled.proposed.into_iter().map(|it| it.before).collect();
        Ok(day)
    }
}

/// What a day is read with.
struct DayContext<'a> {
    reader: &'a DayExtractor<'a>,
    /// The logs of the day.
    logs: &'a [SanitizedLog],
    /// The memories that stand.
    existing: &'a [TypedMemory],
    /// Those of them that lost no line.
    intact: Vec<TypedMemory>,
    doubts: &'a [StaleMemory],
    secrets: OnceCell<FileNameSecrets>,
    /// Whether what stands of the day is to be made anew.
    is_reextraction: bool,
}

impl DayContext<'_> {
    /// Has the engine propose memories from a log. `new` are those of the day so far.
    fn ask_engine(
        &self,
        log: &SanitizedLog,
        new: &[TypedMemory],
    ) -> Result<Extraction, JobFailure> {
        let DayExtractor { engine, rules, .. } = self.reader;
        let check = |draft: &MemoryDraft| self.check(draft);
        let mut known = Cow::Borrowed(&self.intact[..]);
        if !new.is_empty() {
            known.to_mut().extend_from_slice(new);
        }
        if engine.is_model() {
            known = Cow::Owned(memory_match::sanitized_memories(&known, self.reader.names, rules));
        }
        let input = ExtractInput { log, existing: &known, check: &check };
        ask_engine(*engine, |engine| engine.extract(&input))
    }

    /// Says what is wrong with a proposal.
    fn check(&self, draft: &MemoryDraft) -> Result<(), String> {
        if let Some(fault) = memory_match::draft_fault(
            draft,
            (&self.intact, self.reader.names),
            self.is_reextraction,
        ) {
            return Err(fault);
        }
        let lines = self.cited_logs(self.target(draft));
        let accepted =
            validate(draft, &lines, &|_| false, (self.reader.rules, self.spelled_secrets()));
        accepted.map(drop).map_err(|it| it.reason)
    }

    /// Enters a proposal into the day, or keeps it out.
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
            let mut names = self.existing.iter().chain(&day.memories).map(|it| &it.file_name);
            names.any(|it| it.as_os_str().eq_ignore_ascii_case(name))
                // Also by a file that is no typed memory, or cannot be read as one.
                || vault.try_exists(&layout.typed_memory(name)).unwrap_or_else(|error| {
                    failed.set(Some(error));
                    false
                })
        };
        // A memory is said anew once a day; what else has its name is another one.
        let is_free =
            |it: &&TypedMemory| again.iter().all(|there| there.file_name() != it.file_name);
        let target = self.target(draft).filter(is_free);
        let lines = self.cited_logs(target);
        let memory = validate(draft, &lines, &is_taken, (rules, self.spelled_secrets()));
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
        if grounding::cites_only_external(&draft.citation, &*lines) {
            day.rejected += 1;
            day.recorded.quarantined.extend(external_lines(&draft.citation));
            return Ok(());
        }
        // By its lines and kind: the same thing may be given another name.
        let is_alike = |path: &&str| {
            let name = path.rsplit('/').next().unwrap_or(path);
            layout.kind_of(path) == Some(FileKind::Memory)
                && MemoryType::of_file_name(Path::new(name)) == Some(draft.kind)
        };
        let barred = decisions
            .files_with_deleted()
            .filter(is_alike)
            .any(|it| decisions.is_deleted(it, line_texts(&draft.citation, &lines)));
        match target {
            _ if barred => {}
            Some(old) => {
                let after = memory_match::updated_memory(draft, &memory, old, self.is_reextraction);
                // As it stands in its file, whatever moved beneath it.
                let doubt = self.doubts.iter().find(|it| it.memory.file_name == old.file_name);
                let before = doubt.map_or(old, |it| &it.memory).clone();
                again.extend(after.map(|after| MemoryUpdate::new(before, after)));
            }
            None if memory_match::is_duplicate(&memory, &self.intact) => {}
            None => day.memories.push(memory),
        }
        Ok(())
    }

    /// Returns the memory that a proposal is about. The built-in engine looks itself what is known.
    fn target(&self, draft: &MemoryDraft) -> Option<&TypedMemory> {
        let target = memory_match::target_memory(
            draft,
            (&self.intact, self.reader.names),
            self.is_reextraction,
        );
        target.filter(|_| self.reader.engine.is_model())
    }

    /// Returns the logs of the day, and those that a memory rests on which is said anew.
    fn cited_logs(&self, target: Option<&TypedMemory>) -> Cow<'_, [SanitizedLog]> {
        let stems: BTreeSet<&Stem> =
            target.iter().flat_map(|it| &it.sources).map(|(at, _)| &at.stem).collect();
        let mut lines = Cow::Borrowed(self.logs);
        for stem in stems.into_iter().filter(|stem| self.logs.iter().all(|it| it.stem() != *stem)) {
            // One that cannot be read bears nothing out, and is told of elsewhere.
            if let Ok(Some(log)) = self.reader.vault.read_log(stem) {
                lines.to_mut().push(privacy::sanitize(&log, self.reader.rules));
            }
        }
        if let Cow::Owned(lines) = &mut lines {
            lines.sort_by(|a, b| a.stem().cmp(b.stem()));
        }
        lines
    }

    /// Returns the secrets of the logs as names spell them: only where there is a draft is there a name
    /// to be made.
    fn spelled_secrets(&self) -> &FileNameSecrets {
        self.secrets.get_or_init(|| {
            let mut secrets = FileNameSecrets::default();
            let raw = self.logs.iter().filter_map(SanitizedLog::raw);
            raw.for_each(|it| secrets.add_from(self.reader.rules, it));
            secrets
        })
    }
}

/// Returns the memories that lost no line: one that did must not keep out what may take its place.
pub(crate) fn without_stale(existing: &[TypedMemory], doubts: &[StaleMemory]) -> Vec<TypedMemory> {
    let lost = |it: &&TypedMemory| {
        doubts.iter().any(|doubt| doubt.lost_a_line() && doubt.memory.file_name == it.file_name)
    };
    existing.iter().filter(|it| !lost(it)).cloned().collect()
}

/// Returns the lines that a person is asked about before something lasting may rest on them alone.
pub(crate) fn external_lines(citation: &Citation) -> Vec<(Stem, Vec<QuarantineRecord>)> {
    let record = |line| QuarantineRecord { line, why: vec![FROM_EXTERNAL.to_owned()] };
    let files = citation.files();
    files.map(|(stem, lines)| (stem.clone(), lines.iter().map(record).collect())).collect()
}

pub(crate) fn line_texts<'a>(citation: &Citation, logs: &'a [SanitizedLog]) -> Vec<&'a str> {
    let line = |it: Address| {
        let log = logs.iter().find(|log| *log.stem() == it.stem)?;
        Some(log.line(it.line)?.text())
    };
    citation.addresses().filter_map(line).collect()
}
