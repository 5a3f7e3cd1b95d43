//! Extracts typed memories from days and writes them.

use super::{
    day_reader::{DayExtractor, ExtractedDay, KnownMemories, is_reread, with_current_statements},
    memory_match,
    seen_lines::SeenLines,
    topics::TopicWriter,
};
use crate::compaction::{
    context::{JobOutput, RunContext, TierRun},
    error::{CompactionError, JobFailure},
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges},
        records,
    },
    plan::{CompactionJob, DueReason},
    proposals::{items::exclusion_note, waiting_message},
    reconcile::stale::MemoryRevision,
    report::{JobReport, count_u32},
    summary::{
        draft::{SummaryDrafter, read_logs},
        week_batch::WeekBatch,
    },
};
use crate::{
    engine::StatementDraft,
    memory::typed::TypedMemory,
    parallel,
    privacy::{PrivacyRules, SanitizedLog},
    store::{
        db::lineage::{
            jobs::{JobId, JobOutcome, JobStage, NewJob, Receipt, RunId},
            record::Commit,
        },
        fs::inventory::Inventory,
    },
};

/// How many days are read in parallel and, if they have no memory, recorded at once: most days have
/// none, and a transaction costs more than reading the day.
const DAYS_AT_ONCE: usize = 64;

/// Writes the typed memories of days.
pub(crate) struct MemoryWriter<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> MemoryWriter<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    /// Extracts the typed memories of days. `weeks` are those that are summarized after them.
    pub(crate) fn run_jobs(
        &mut self,
        jobs: &[CompactionJob],
        weeks: &[CompactionJob],
        tier: &mut TierRun<'_>,
    ) -> Result<(), CompactionError> {
        let inventory = &tier.view.inventory;
        let known =
            KnownMemories::of(self.context.vault, jobs, &inventory.memories, &inventory.rules)
                .with_present_sources();
        if self.context.engine.is_model() {
            self.run_model_jobs(jobs, weeks, known, tier)
        } else {
            self.run_chunks(jobs, known, tier)
        }
    }

    /// Reads days in parallel, and writes those with memories one after the other.
    fn run_chunks(
        &mut self,
        jobs: &[CompactionJob],
        mut known: KnownMemories,
        tier: &mut TierRun<'_>,
    ) -> Result<(), CompactionError> {
        for (i, chunk) in jobs.chunks(DAYS_AT_ONCE).enumerate() {
            if tier.watcher.should_stop() {
                tier.report.left += jobs.len() - i * DAYS_AT_ONCE;
                break;
            }
            tier.watcher.job_started(&chunk[0], jobs.len() - i * DAYS_AT_ONCE - 1);
            let reader = self.day_extractor(&tier.view.inventory, None);
            let days = parallel::map(chunk, |job| reader.extract(job, &known, None));
            let mut empty_days: Vec<(NewJob, Receipt, RecordedChanges)> = Vec::new();
            for (job, day) in chunk.iter().zip(days) {
                let made = match day {
                    Ok(day) if day.changes_nothing() => {
                        let receipt = self.day_receipt(job, &day, JobOutcome::Unchanged);
                        empty_days.push((self.context.new_job(job), receipt.clone(), day.recorded));
                        JobOutput { receipt, paths: Vec::new() }
                    }
                    first => match self.run_day_job(job, first.map(drop), &mut known, tier)? {
                        Some(made) => made,
                        None => continue,
                    },
                };
                let reason = match made.receipt.outcome {
                    JobOutcome::Unchanged => "nothing to remember".to_owned(),
                    _ => made.receipt.reason.clone().unwrap_or_else(|| job.reason.to_string()),
                };
                tier.finish(JobReport::new(
                    job.tier,
                    job.period,
                    &made.receipt,
                    made.paths,
                    &reason,
                ));
            }
            self.record_empty_days(tier.run, &empty_days)?;
        }
        Ok(())
    }

    /// Asks a model for the memories of days, one after the other, the newest first. Stops when it
    /// is unavailable.
    fn run_model_jobs(
        &mut self,
        jobs: &[CompactionJob],
        weeks: &[CompactionJob],
        mut known: KnownMemories,
        tier: &mut TierRun<'_>,
    ) -> Result<(), CompactionError> {
        let view = tier.view;
        let drafter = SummaryDrafter {
            vault: self.context.vault,
            engine: self.context.engine,
            settings: &self.context.settings.settings.compaction,
            inventory: &view.inventory,
        };
        let rules = &view.inventory.rules;
        let mut batch = WeekBatch::new(drafter, weeks, jobs);
        let mut seen_lines = SeenLines::of(self.context.vault, jobs, view)?;
        let mut changed_logs = Vec::new();
        for job in jobs.iter().filter(|it| matches!(it.reason, DueReason::Changed(_))) {
            // One that cannot be read fails its own job.
            changed_logs.extend(read_logs(self.context.vault, job, rules).into_iter().flatten());
        }
        for (i, job) in jobs.iter().rev().enumerate() {
            if tier.watcher.should_stop() || tier.report.model.is_some() {
                tier.report.left += jobs.len() - i;
                break;
            }
            tier.watcher.job_started(job, jobs.len() - i - 1);
            let Some(id) = self.context.begin_job(tier.run, job)? else { continue };
            self.context.lineage.set_job_stage(id, JobStage::Called)?;
            // A forced day is read completely.
            let seen = (job.reason != DueReason::Forced).then_some(&seen_lines);
            let reader = self.day_extractor(&view.inventory, seen);
            let current = with_current_statements(known.intact(), &changed_logs);
            let shown = memory_match::sanitized_memories(&current, self.context.vault, rules);
            let check = |logs: &[SanitizedLog], draft: &StatementDraft| {
                reader.check(job, logs, &known, draft)
            };
            let day = batch
                .extraction_for(job, &shown, &check)
                .and_then(|proposed| reader.extract(job, &known, proposed));
            let made = day.and_then(|it| self.write_day(job, id, it, &mut known, rules));
            // What was rejected may be said better another day.
            if made.as_ref().is_ok_and(|it| it.receipt.metrics.rejected == 0) {
                let logs = read_logs(self.context.vault, job, rules);
                logs.iter().flatten().for_each(|it| seen_lines.add(it));
            }
            self.context.finish_job(job, id, made, tier)?;
        }
        Ok(())
    }

    fn day_extractor<'d>(
        &self,
        inventory: &'d Inventory,
        seen_lines: Option<&'d SeenLines>,
    ) -> DayExtractor<'d>
    where
        'a: 'd,
    {
        DayExtractor {
            vault: self.context.vault,
            engine: self.context.engine,
            decisions: &inventory.decisions,
            rules: &inventory.rules,
            seen_lines,
            by_topic: self.context.engine.files_by_topic()
                && self.context.settings.settings.wisdom.has_digest(),
        }
    }

    /// Does a day that has memories, or could not be read. `None` if another process does the same
    /// day now.
    fn run_day_job(
        &mut self,
        job: &CompactionJob,
        first: Result<(), JobFailure>,
        known: &mut KnownMemories,
        tier: &TierRun<'_>,
    ) -> Result<Option<JobOutput>, CompactionError> {
        let Some(id) = self.context.begin_job(tier.run, job)? else { return Ok(None) };
        // An earlier day may have the same memory, so each day is compared again in turn.
        let day = first.and_then(|()| {
            self.day_extractor(&tier.view.inventory, None).extract(job, known, None)
        });
        let made = match day
            .and_then(|day| self.write_day(job, id, day, known, &tier.view.inventory.rules))
        {
            Ok(made) => made,
            Err(JobFailure::Critical(error)) => return Err(error),
            Err(error) => self.context.record_failure(job, id, &error)?,
        };
        Ok(Some(made))
    }

    /// Records days without memories, many in one transaction.
    fn record_empty_days(
        &mut self,
        run: RunId,
        empty_days: &[(NewJob, Receipt, RecordedChanges)],
    ) -> Result<(), CompactionError> {
        if empty_days.is_empty() {
            return Ok(());
        }
        let commits: Vec<_> = empty_days
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
        Ok(self.context.lineage.commit_finished_jobs(run, &commits)?)
    }

    fn write_day(
        &mut self,
        job: &CompactionJob,
        id: JobId,
        mut day: ExtractedDay,
        known: &mut KnownMemories,
        rules: &PrivacyRules,
    ) -> Result<JobOutput, JobFailure> {
        let mut files = Vec::new();
        for memory in &day.memories {
            let path =
                self.context.vault.layout().typed_memory(&memory.file_name.to_string_lossy());
            let text = memory.print();
            day.recorded.documents.push(records::of_memory(&path, memory, &text));
            files.push(FileWrite { path, text: Some(text), current: None });
        }
        for MemoryRevision { before, after } in &day.revised {
            let (path, current) = self.unchanged_memory_file(before)?;
            let text = after.print();
            if text != current {
                day.recorded.documents.push(records::of_memory(&path, after, &text));
                files.push(FileWrite { path, text: Some(text), current: Some(current) });
            }
        }
        let mut paths: Vec<String> = files.iter().map(|it| it.path.clone()).collect();
        let mut topics = Vec::new();
        if self.context.engine.is_model() {
            let memories = known.settled();
            let vault = self.context.vault;
            let writer = TopicWriter { vault, memories: &memories, logs: &day.logs, rules };
            writer.add_day(&day.statements, is_reread(job), &mut topics, &mut day.recorded)?;
        }
        let written = topics.iter().filter(|it| it.text.is_some());
        paths.extend(written.map(|it| it.path.clone()));
        files.extend(topics.iter().cloned());
        for memory in &day.withdrawn {
            let (path, current) = self.unchanged_memory_file(memory)?;
            day.recorded.removed.push(path.clone());
            files.push(FileWrite { path, text: None, current: Some(current) });
        }
        let outcome = match (files.is_empty(), day.recorded.proposal_count()) {
            (false, _) => JobOutcome::Written,
            (true, 0) => JobOutcome::Unchanged,
            (true, _) => JobOutcome::Skipped,
        };
        let mut receipt = self.day_receipt(job, &day, outcome);
        self.context.add_model_usage(&mut receipt);
        receipt.path = files.first().map(|it| it.path.clone());
        Journal::new(self.context).write_files(
            None,
            Some((id, &receipt)),
            &files,
            &day.recorded,
        )?;
        known.apply(day);
        for file in &topics {
            known.update_file(&file.path, file.text.as_deref());
        }
        Ok(JobOutput { receipt, paths })
    }

    /// Returns path and text of a memory's file, if it did not change since it was read.
    fn unchanged_memory_file(&self, memory: &TypedMemory) -> Result<(String, String), JobFailure> {
        let path = self.context.vault.layout().typed_memory(&memory.file_name.to_string_lossy());
        let text = self.context.vault.read_text(&path)?;
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
            let path =
                self.context.vault.layout().typed_memory(&memory.file_name.to_string_lossy());
            reason.extend(["; ", &path, " withdrawn: its source changed"]);
        }
        match day.recorded.proposal_count() {
            0 => {}
            proposed => reason = format!("{reason}; {}", waiting_message(proposed)),
        }
        if let Some(note) = exclusion_note(&day.kept_out) {
            reason = format!("{reason}; {note}");
        }
        let mut receipt = Receipt::new(outcome, Some(reason), (self.context.clock)());
        receipt.metrics.sources = count_u32(job.inputs.len());
        receipt.metrics.source_chars = day.source_chars as u64;
        let written = day.memories.iter().chain(day.revised.iter().map(|it| &it.after));
        receipt.metrics.output_chars =
            written.clone().map(|it| it.body.chars().count() as u64).sum::<u64>()
                + day.statements.iter().map(|it| it.text.chars().count() as u64).sum::<u64>();
        receipt.metrics.items = count_u32(written.count() + day.statements.len());
        receipt.metrics.rejected = count_u32(day.rejected);
        receipt
    }
}
