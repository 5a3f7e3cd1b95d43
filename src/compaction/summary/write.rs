//! Writes a week or a month: drafts are merged with the present file, written, and recorded.

use crate::compaction::{context::TierRun, report::count_u32};
use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::NaiveDate;

use super::{
    draft::{self, CorpusReader, SummaryDraft, SummaryDrafter, SummarySources},
    orphaned_items::{self, OrphanedItems},
    user_edits::{self, MergedSummary},
};
use crate::compaction::{
    context::{JobOutput, RunContext},
    error::{CompactionError, JobFailure},
    grounding,
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges},
        records,
    },
    plan::{CompactionJob, DueReason},
    proposals::items::{exclusion_note, proposals_of_items},
    reconcile::{Reconciler, line_moves::newly_cited_summaries},
    snapshot::RootSnapshot,
};
use crate::{
    config::settings::{Fallback, Model},
    engine::{
        Engine, EngineError, OmissionReason,
        extractive::{Extractive, corpus_stats::CorpusCounts},
    },
    memory::{
        address::{Address, Citation, Stem},
        decision::Decisions,
        document::{BulletOwner, Summary, SummaryBlock, SummaryHeader},
        item::{Item, Tier},
        markdown::LineKind,
        period::{Grain, Period},
    },
    model::failure::ErrorClass,
    parallel,
    privacy::{SanitizedLine, SanitizedLog},
    store::{
        db::lineage::{
            jobs::{JobId, JobMetrics, JobOutcome, JobStage, Receipt},
            record::{Commit, CoverageRecord, DocumentRecord, LogRecord},
        },
        fs::inventory::Inventory,
    },
};

/// How many periods are drafted in parallel. Each holds its sources and a copy of the counts.
const SUMMARIES_AT_ONCE: usize = 8;

fn newest_first(jobs: &[CompactionJob]) -> Vec<&CompactionJob> {
    let mut jobs: Vec<&CompactionJob> = jobs.iter().collect();
    jobs.sort_by_key(|it| std::cmp::Reverse(it.period));
    jobs
}

pub(crate) struct SummaryWriter<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> SummaryWriter<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    /// Writes weekly or monthly files, the newest first: after a long time away, what is most
    /// likely to be read exists first. Several are drafted in parallel, and the next ones while
    /// those are written one after the other, since a write waits for the disk.
    pub(crate) fn run_jobs<'j>(
        &mut self,
        jobs: &'j [CompactionJob],
        corpus: &mut CorpusReader,
        tier: &mut TierRun<'_>,
    ) -> Result<(), CompactionError> {
        if self.context.engine.is_model() {
            return self.run_model_jobs(jobs, corpus, tier);
        }
        let jobs = &newest_first(jobs)[..];
        let drafter = &SummaryDrafter {
            vault: self.context.vault,
            engine: self.context.engine,
            settings: &self.context.settings.settings.compaction,
            inventory: &tier.view.inventory,
        };
        std::thread::scope(|scope| {
            let mut ahead = None;
            for (i, chunk) in jobs.chunks(SUMMARIES_AT_ONCE).enumerate() {
                let before = i * SUMMARIES_AT_ONCE;
                if tier.watcher.should_stop() {
                    tier.report.left += jobs.len() - before;
                    break;
                }
                corpus.prepare(
                    chunk.iter().map(|it| it.period),
                    self.context.vault,
                    &tier.view.inventory,
                )?;
                let mut begun = Vec::new();
                for (n, &job) in chunk.iter().enumerate() {
                    tier.watcher.job_started(job, jobs.len() - before - n - 1);
                    if let Some(id) = self.context.begin_job(tier.run, job)? {
                        begun.push((job, id, corpus.counts(job.period).clone()));
                    }
                }
                let drafting = scope.spawn(move || {
                    let draft = |(job, id, counts): &(&'j CompactionJob, JobId, CorpusCounts)| {
                        (*job, *id, drafter.draft(job, counts))
                    };
                    parallel::map(&begun, draft)
                });
                if let Some(drafts) = ahead.replace(drafting) {
                    self.finish_summaries(join_thread(drafts), tier)?;
                }
            }
            match ahead {
                Some(drafts) => self.finish_summaries(join_thread(drafts), tier),
                None => Ok(()),
            }
        })
    }

    /// Writes weekly or monthly files by asking a model, one after the other, the newest first:
    /// when a budget ends, what is most likely to be read exists. Stops when the model is
    /// unavailable.
    fn run_model_jobs(
        &mut self,
        jobs: &[CompactionJob],
        corpus: &mut CorpusReader,
        tier: &mut TierRun<'_>,
    ) -> Result<(), CompactionError> {
        let jobs = newest_first(jobs);
        for (i, job) in jobs.iter().enumerate() {
            if tier.watcher.should_stop() {
                tier.report.left += jobs.len() - i;
                break;
            }
            let may_fall_back = self.may_fall_back(job);
            if tier.report.model.is_some() && !may_fall_back {
                tier.report.left += 1;
                continue;
            }
            tier.watcher.job_started(job, jobs.len() - i - 1);
            corpus.prepare([job.period], self.context.vault, &tier.view.inventory)?;
            let Some(id) = self.context.begin_job(tier.run, job)? else { continue };
            let counts = corpus.counts(job.period);
            let drafter = |engine| SummaryDrafter {
                vault: self.context.vault,
                engine,
                settings: &self.context.settings.settings.compaction,
                inventory: &tier.view.inventory,
            };
            let mut draft = None;
            if tier.report.model.is_none() {
                self.context.lineage.set_job_stage(id, JobStage::Called)?;
                let result = drafter(self.context.engine).draft(job, counts);
                match model_unavailable(&result) {
                    Some(why) if may_fall_back => tier.report.model = Some(why),
                    _ => draft = Some(result),
                }
            }
            let draft = draft.unwrap_or_else(|| {
                let why = tier.report.model.as_deref().unwrap_or_default();
                drafter(&Extractive).draft(job, counts).map(|it| it.made_offline(why))
            });
            let made = draft.and_then(|draft| self.write_summary(job, id, tier.view, draft));
            self.context.finish_job(job, id, made, tier)?;
        }
        Ok(())
    }

    /// Returns whether a job may be done offline if the model is unavailable. One that was done so
    /// before waits for the model.
    fn may_fall_back(&self, job: &CompactionJob) -> bool {
        let Model { fallback, .. } = &self.context.settings.settings.model;
        *fallback == Fallback::Extractive && job.reason != DueReason::MadeOffline
    }

    fn finish_summaries(
        &mut self,
        drafts: Vec<(&CompactionJob, JobId, Result<SummaryDraft, JobFailure>)>,
        tier: &mut TierRun<'_>,
    ) -> Result<(), CompactionError> {
        for (job, id, draft) in drafts {
            let made = draft.and_then(|draft| self.write_summary(job, id, tier.view, draft));
            self.context.finish_job(job, id, made, tier)?;
        }
        Ok(())
    }

    /// Merges a draft with the present file, writes it, and records it.
    fn write_summary(
        &mut self,
        job: &CompactionJob,
        id: JobId,
        view: &RootSnapshot,
        draft: SummaryDraft,
    ) -> Result<JobOutput, JobFailure> {
        let path = self.context.vault.layout().summary(job.period);
        let Inventory { decisions, rules, .. } = &view.inventory;
        let engine: &dyn Engine = if draft.is_offline { &Extractive } else { self.context.engine };
        let proposals = proposals_of_items(&draft.kept_out, &path, engine, decisions, rules);
        if let Some(drafted) = draft.all_rejected {
            let kept_out = Some((job.fingerprint, job.period, &path[..], &proposals[..]));
            let at = (self.context.clock)();
            self.context.lineage.commit(&Commit {
                quarantined_items: kept_out,
                at,
                ..Commit::default()
            })?;
            return Err(JobFailure::AllRejected(drafted));
        }
        let old = self.context.vault.read_text(&path)?;
        let current = draft::read_current(&path, job.period, old.as_deref())?;
        let merged = self.merge_draft(job, view, &draft, current.as_ref(), engine.id());
        let text = merged.summary.print();
        let record = records::of_summary(&path, &merged.summary, &text);
        let uncovered = uncovered_lines_of(&draft, &merged, &record);
        let same_body = current.as_ref().is_some_and(|it| it.body() == merged.summary.body());
        let outcome = if same_body { JobOutcome::Unchanged } else { JobOutcome::Written };
        let reason = std::iter::once(job.reason.to_string()).chain(draft.note.clone());
        let reason = reason.chain(exclusion_note(&draft.kept_out)).collect::<Vec<_>>();
        let mut receipt = Receipt::new(outcome, Some(reason.join("; ")), (self.context.clock)());
        receipt.path = Some(path.clone());
        receipt.metrics = JobMetrics {
            sources: count_u32(job.inputs.len()),
            source_chars: draft.sources.chars as u64,
            output_chars: merged.summary.text_chars() as u64,
            items: count_u32(record.items.len()),
            rejected: count_u32(draft.rejected.len()),
            uncovered: count_u32(uncovered.len()),
            amounts: count_u32(draft.amounts.0),
            amounts_kept: count_u32(draft.amounts.1),
            ..receipt.metrics
        };
        self.context.add_model_usage(&mut receipt);
        let mut files = Vec::new();
        if old.as_ref() != Some(&text) {
            files.push(FileWrite { path: path.clone(), text: Some(text), current: old });
        }
        let layout = self.context.vault.layout();
        let logs = draft.sources.logs.iter();
        let mut logs: Vec<LogRecord> =
            logs.map(|it| LogRecord::of(it, layout.source_path(it.stem()))).collect();
        logs.extend(newly_cited_summaries(self.context, &record.items, view)?);
        let recorded = RecordedChanges {
            logs,
            coverage: vec![CoverageRecord { path: path.clone(), lines: uncovered }],
            documents: vec![record],
            kept_out: Some((job.fingerprint, job.period, path.clone(), proposals)),
            read_paths: draft.sources.pointers,
            ..RecordedChanges::default()
        };
        Journal::new(self.context).write_files(None, Some((id, &receipt)), &files, &recorded)?;
        let now = (self.context.clock)();
        Reconciler::new(self.context).record_deleted_items(view, &path, &merged.deleted, now)?;
        let paths = if same_body { Vec::new() } else { vec![path] };
        Ok(JobOutput { receipt, paths })
    }

    /// Merges a draft with the user edits and the orphaned items of the present file.
    fn merge_draft(
        &self,
        job: &CompactionJob,
        view: &RootSnapshot,
        draft: &SummaryDraft,
        current: Option<&Summary>,
        engine: &str,
    ) -> MergedSummary {
        let path = self.context.vault.layout().summary(job.period);
        let lines = draft.sources.lines();
        let mut header = Self::summary_header(job, view, &draft.sources, current);
        engine.clone_into(&mut header.engine);
        header.fallback = draft.is_offline;
        let orphaned = OrphanedItems::of(current, &view.inventory, &draft.sources.week_citations);
        let sections = orphaned.merge_into(draft.sections.clone());
        let decisions = &view.inventory.decisions;
        let is_deleted = |item: &Item| {
            let cited = item.citation.iter().flat_map(Citation::addresses);
            let line = |it: Address| {
                grounding::LineLookup::line(&lines, &it.stem, it.line).map(SanitizedLine::text)
            };
            let texts: Option<Vec<&str>> = cited.map(line).collect();
            texts.is_some_and(|it| self.is_deleted_from(decisions, &path, job, &it))
        };
        let mut merged = user_edits::merge(job.period, current, header, sections, &is_deleted);
        note_external_bullets(&mut merged.summary, current, &draft.sources);
        merged
    }

    /// Returns what is recorded about the file, except its engine.
    fn summary_header(
        job: &CompactionJob,
        view: &RootSnapshot,
        sources: &SummarySources,
        current: Option<&Summary>,
    ) -> SummaryHeader {
        let old = current.and_then(|it| it.header.as_ref());
        let mut named = job.inputs.clone();
        let mut pointers = sources.pointers.clone();
        // Vanished sources stay named, since orphaned items that cite them stay.
        for (name, hash) in old.iter().flat_map(|it| &it.sources) {
            named.entry(name.clone()).or_insert_with(|| hash.clone());
        }
        for pointer in old.iter().flat_map(|it| &it.pointers) {
            if !pointers.contains(pointer) {
                pointers.push(pointer.clone());
            }
        }
        pointers.sort();
        SummaryHeader {
            pointers,
            sources: named,
            extracted: if job.tier == Tier::Weekly {
                extracted_days(job, view, old)
            } else {
                Vec::new()
            },
            missing_sources: orphaned_items::missing_sources(job, &view.inventory, old),
            partial: job.partial,
            ..SummaryHeader::default()
        }
    }

    /// Returns whether a person deleted what these lines support, here or in a week of the month.
    fn is_deleted_from(
        &self,
        decisions: &Decisions,
        path: &str,
        job: &CompactionJob,
        lines: &[&str],
    ) -> bool {
        let layout = self.context.vault.layout();
        let below = job.inputs.keys().filter_map(|it| it.parse::<Period>().ok());
        let below = below.filter(|it| it.grain() == Grain::Week).map(|it| layout.summary(it));
        std::iter::once(path.to_owned())
            .chain(below)
            .any(|it| decisions.is_deleted(&it, lines.iter().copied()))
    }
}

/// Lists the generated bullets that are in the words of external text. Where a cited line is gone, the
/// list of the present file or of the week decides.
fn note_external_bullets(
    summary: &mut Summary,
    current: Option<&Summary>,
    sources: &SummarySources,
) {
    let lines = sources.lines();
    let listed = current.and_then(|it| it.header.as_ref()).map_or(&[][..], |it| &it.external);
    let is_external = |item: &Item| {
        let Some(citation) = &item.citation else { return false };
        let is_there = |it: Address| grounding::LineLookup::line(&lines, &it.stem, it.line);
        let is_listed = || {
            let hash = item.hash();
            sources.external_bullets.contains(&hash) || listed.contains(&hash)
        };
        grounding::is_external(&item.text, citation, &lines) == Some(true)
            || citation.addresses().any(|it| is_there(it).is_none()) && is_listed()
    };
    let owners = summary.ownership().owners;
    let items = summary.blocks.iter().filter_map(SummaryBlock::item).zip(owners);
    let ours = items.filter(|(item, owner)| *owner == BulletOwner::Memoird && is_external(item));
    let external = ours.map(|(item, _)| item.hash()).collect();
    if let Some(header) = &mut summary.header {
        header.external = external;
    }
}

/// Returns why there is no draft, if this job is not at fault.
fn model_unavailable(draft: &Result<SummaryDraft, JobFailure>) -> Option<String> {
    match draft {
        Err(JobFailure::Engine(EngineError::Model(call)))
            if !matches!(call.class(), ErrorClass::Request | ErrorClass::Pending) =>
        {
            Some(call.to_string())
        }
        _ => None,
    }
}

/// Waits for a thread, and passes on its panic.
fn join_thread<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the days of the week whose present logs are extracted. A day that waits for a person is
/// not among them: after a loss of the database, only reading it again shows that it waits.
fn extracted_days(
    job: &CompactionJob,
    view: &RootSnapshot,
    old: Option<&SummaryHeader>,
) -> Vec<String> {
    let mut days: BTreeMap<NaiveDate, bool> = BTreeMap::new();
    for (name, hash) in &job.inputs {
        let Ok(stem) = name.parse::<Stem>() else { continue };
        let listed = old.is_some_and(|it| {
            it.extracted.contains(&stem.date().to_string()) && it.sources.get(name) == Some(hash)
        });
        let done = view.record.extracted.get(name) == Some(hash) || listed;
        let done = done && !view.record.quarantined_logs.contains(name);
        let all = days.entry(stem.date()).or_insert(true);
        *all &= done;
    }
    days.into_iter().filter(|&(_, done)| done).map(|(day, _)| day.to_string()).collect()
}

/// Returns the lines of the sources that no item of the merged file cites, with the reason for each.
fn uncovered_lines_of(
    draft: &SummaryDraft,
    merged: &MergedSummary,
    record: &DocumentRecord,
) -> Vec<(Address, &'static str)> {
    let cited: Vec<&Citation> = record.items.iter().filter_map(|it| it.citation.as_ref()).collect();
    let mut left_out = draft.left_out.clone();
    let rejected = draft.rejected.iter().map(|(_, item, _)| item);
    left_out.extend(left_out_lines(rejected, OmissionReason::Rejected));
    left_out.extend(left_out_lines(merged.kept_out.iter(), OmissionReason::Deleted));
    uncovered_lines(draft.sources.logs.iter().chain(&draft.sources.quarantined), &cited, left_out)
}

fn left_out_lines<'a>(
    items: impl Iterator<Item = &'a Item>,
    why: OmissionReason,
) -> Vec<(Address, OmissionReason)> {
    items
        .flat_map(|it| it.citation.iter().flat_map(Citation::addresses))
        .map(|it| (it, why))
        .collect()
}

/// Returns the lines with content that no item cites, with the reason for each.
fn uncovered_lines<'a>(
    logs: impl Iterator<Item = &'a SanitizedLog>,
    items: &[&Citation],
    left_out: Vec<(Address, OmissionReason)>,
) -> Vec<(Address, &'static str)> {
    let mut covered: HashMap<&Stem, HashSet<u32>> = HashMap::new();
    for (stem, lines) in items.iter().flat_map(|it| it.files()) {
        covered.entry(stem).or_default().extend(lines.iter());
    }
    let why: HashMap<Address, OmissionReason> = left_out.into_iter().collect();
    let mut lines = Vec::new();
    for log in logs {
        let covered = covered.get(log.stem());
        for line in log.lines().iter().filter(|it| it.is_content() || it.is_quarantined()) {
            if covered.is_some_and(|it| it.contains(&line.number())) {
                continue;
            }
            let address = log.address(line);
            let recorded = why.get(&address).copied().filter(|it| !it.is_unspecific());
            let reason = recorded
                .or_else(|| OmissionReason::of_line(line))
                .or_else(|| why.get(&address).copied())
                .unwrap_or(match line.kind() {
                    LineKind::Heading { .. } => OmissionReason::Structure,
                    _ => OmissionReason::OverBudget,
                });
            lines.push((address, reason.name()));
        }
    }
    lines
}
