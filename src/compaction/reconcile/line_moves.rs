//! Updates citations of the lines of changed logs and cited summaries.
//!
//! For lines that only moved the program rewrites the citations: no engine is asked, and nothing
//! becomes due.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::{
    ReconcileRun,
    changed_lines::{ChangedFiles, ChangedLines, PresentLines},
    citations::{CitationRewriter, period_of_path},
    defer_if_changed,
};
use crate::compaction::{
    context::RunContext,
    error::{CompactionError, JobFailure},
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges},
        records,
    },
    plan::{self, CompactionJob, DueReason},
    report::{JobReport, RunReport, count_u32},
    snapshot::RootSnapshot,
};
use crate::{
    memory::{
        address::{Citation, Stem},
        document,
        hash::ContentHash,
        item::Tier,
        joined,
        period::{Grain, Period},
    },
    privacy,
    store::{
        db::lineage::{
            jobs::{JobOutcome, NewJob, Receipt, RunId},
            record::{Commit, ItemRecord, LogRecord},
        },
        fs::inventory::{Inventory, SummaryFile},
    },
};

/// The reason in the receipt of a job that updated citations of moved lines.
pub(crate) const LINES_MOVED: &str = "lines moved";

/// Files whose citations are updated, for moved lines or renamed logs.
pub(crate) struct CitationUpdate<'a> {
    /// One word that distinguishes the job from a summary job of the same logs.
    pub(crate) what: &'static str,
    /// What the receipt says.
    pub(crate) reason: String,
    pub(crate) period: Period,
    /// The logs, by their present names.
    pub(crate) logs: Vec<&'a Stem>,
    /// Identifies the change of the logs.
    pub(crate) id: ContentHash,
    pub(crate) files: Vec<FileWrite>,
    pub(crate) recorded: RecordedChanges,
}

/// Updates the citations of changed lines.
pub(crate) struct CitationUpdater<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> CitationUpdater<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    /// Updates citations after a tier changed files that are cited themselves; returns whether any
    /// file was written.
    pub(crate) fn update_citations_after_tier(
        &mut self,
        run: RunId,
        trigger: &str,
        now: DateTime<Utc>,
        report: &mut RunReport,
        view: &RootSnapshot,
    ) -> Result<bool, CompactionError> {
        let run = Some(run);
        let mut reconcile_run = ReconcileRun { run, ..ReconcileRun::new(trigger, now) };
        let nobody = BTreeSet::new();
        let result =
            defer_if_changed(self.update_moved_citations(&mut reconcile_run, view, &nobody));
        reconcile_run.report.jobs.into_iter().for_each(|it| report.push(it));
        result
    }

    /// Rewrites the citations of lines that moved. `external` are the files that somebody else
    /// wrote since the last run: they may cite any version of a log.
    pub(super) fn update_moved_citations(
        &mut self,
        reconcile_run: &mut ReconcileRun<'_>,
        view: &RootSnapshot,
        external: &BTreeSet<String>,
    ) -> Result<bool, JobFailure> {
        // A record of another text says nothing about this one.
        let summaries = view.inventory.weekly.values().chain(view.inventory.monthly.values());
        let mixed = summaries.filter(|it| it.is_mixed).map(|it| it.path.clone());
        let external = &external.iter().cloned().chain(mixed).collect();
        let mut known = self.context.lineage.logs()?;
        let mut recorded = RecordedChanges::default();
        let mut changed = self.changed_logs(view, &known, &mut recorded)?;
        for (old, new, text) in self.changed_cited_summaries(view)? {
            if let Some(old) = old {
                let now = PresentLines::of_summary(&old.stem, &text);
                changed.insert(old.stem.clone(), ChangedLines::between(&old, &new, now));
                known.insert(old.stem.clone(), old);
            }
            recorded.logs.push(new);
        }
        self.add_logs_of(external, view, &mut changed)?;
        let first = recorded.logs.first().map(|it| &it.stem).or_else(|| changed.keys().next());
        let Some(first) = first else { return Ok(false) };
        let first = Period::containing(Grain::Week, first.date());
        let step = update_id(&known, &changed, view);
        let mut rewriter = CitationRewriter::new(self.context, view, &known, &changed, external);
        rewriter.update_memories_and_wisdom()?;
        let weeks = rewriter.update_summaries()?;
        let CitationRewriter { mut files, documents, .. } = rewriter;
        recorded.documents = documents;
        // A crash may have come between some of the files and the record of the lines: shifting
        // those files again would make them cite other lines.
        let mut done = self.context.lineage.interrupted_writes(step)?;
        done.retain(|it| !external.contains(it));
        files.retain(|it| !done.contains(&it.path));
        recorded.documents.retain(|it| !done.contains(&it.path));
        let any_shifts = self.record_written_summaries(&files, &mut recorded)?;
        let update = CitationUpdate {
            what: "moved",
            reason: LINES_MOVED.to_owned(),
            period: weeks.first().copied().unwrap_or(first),
            logs: changed.keys().collect(),
            id: step,
            files,
            recorded,
        };
        let written = self.record_citation_update(reconcile_run, view, update)?;
        if written && any_shifts {
            let view =
                self.context.take_snapshot(reconcile_run.now).map_err(JobFailure::Critical)?;
            self.update_moved_citations(reconcile_run, &view, &BTreeSet::new())?;
        }
        Ok(written)
    }

    /// Records the lines of cited weekly and monthly files of which only citations will change, so that a
    /// job of the same run may cite them again. Returns whether in any of them the numbers of the lines change,
    /// because its frontmatter takes our form again: citations of those lines must follow.
    fn record_written_summaries(
        &self,
        files: &[FileWrite],
        recorded: &mut RecordedChanges,
    ) -> Result<bool, JobFailure> {
        let mut cited = self.context.lineage.cited_summary_stems()?;
        cited.extend(self.context.lineage.cited_summaries()?.into_keys());
        let line_count = |it: &str| joined::visible(it).matches('\n').count();
        let mut any_shifts = false;
        for file in files {
            let stem = period_of_path(&file.path).and_then(Stem::of_summary);
            let Some(stem) = stem.filter(|it| cited.contains(it)) else { continue };
            let text = file.text.as_deref().unwrap_or_default();
            let before = file.current.as_deref().unwrap_or(text);
            let shifts = line_count(text) != line_count(before);
            any_shifts |= shifts;
            let text = if shifts { before } else { text };
            recorded.logs.retain(|it| it.stem != stem);
            recorded.logs.extend(records::lines_of_summary(&stem, &file.path, text));
        }
        Ok(any_shifts)
    }

    /// Compares the logs with their recorded versions, and records the present ones.
    fn changed_logs(
        &self,
        view: &RootSnapshot,
        known: &BTreeMap<Stem, LogRecord>,
        recorded: &mut RecordedChanges,
    ) -> Result<ChangedFiles, JobFailure> {
        let rules = &view.inventory.rules;
        let mut changed = ChangedFiles::new();
        let extracted = self.context.lineage.extracted_logs()?;
        for (stem, file) in &view.inventory.logs {
            let Some(old) = known.get(stem).filter(|it| it.hash != file.hash) else { continue };
            let Some(log) = self.context.vault.read_log(stem)? else { continue };
            let log = privacy::sanitize(&log, rules);
            let new = LogRecord::of(&log, self.context.vault.layout().source_path(stem));
            let lines = ChangedLines::between(old, &new, PresentLines::of_log(&log));
            if lines.only_moved() && extracted.get(stem) == Some(&rules.input_hash(stem, old.hash))
            {
                recorded.extracted.push((stem.clone(), rules.input_hash(stem, new.hash)));
            }
            recorded.logs.push(new);
            changed.insert(stem.clone(), lines);
        }
        Ok(changed)
    }

    /// Adds the logs and summaries that files of somebody else cite, unless the files name their present
    /// versions.
    fn add_logs_of(
        &self,
        external: &BTreeSet<String>,
        view: &RootSnapshot,
        changed: &mut ChangedFiles,
    ) -> Result<(), JobFailure> {
        let layout = self.context.vault.layout();
        let mut stems = BTreeSet::new();
        for path in external {
            let Some(text) = self.context.vault.read_text(path)? else { continue };
            let Some(document) = records::of_path(layout, path, &text) else { continue };
            let cited = document.items.iter().filter_map(|it| it.citation.as_ref());
            let cited = cited.flat_map(Citation::files).map(|(stem, _)| stem.clone());
            let week = period_of_path(path).and_then(|it| view.inventory.weekly.get(&it));
            let week = week.filter(|it| !it.is_mixed);
            let sources = week.and_then(|it| it.header.as_ref()).map(|it| &it.sources);
            let is_named = |stem: &Stem| {
                let now = view.inventory.logs.get(stem).map(|it| it.input_hash.hex16());
                now.is_some() && sources.and_then(|it| it.get(stem.as_str())) == now.as_ref()
            };
            stems.extend(cited.filter(|it| !is_named(it)));
        }
        stems.retain(|it| !changed.contains_key(it));
        for stem in stems {
            let path = layout.source_path(&stem);
            let (same, now) = if stem.is_summary() {
                let is_there = summary_file(&view.inventory, &stem).is_some();
                let is_usable = is_there && !view.record.damaged.contains_key(&path);
                let text = if is_usable { self.context.vault.read_text(&path)? } else { None };
                let Some(text) = text else { continue };
                let Some(same) = records::lines_of_summary(&stem, &path, &text) else { continue };
                (same, PresentLines::of_summary(&stem, &text))
            } else {
                let is_there = view.inventory.logs.contains_key(&stem);
                let log = if is_there { self.context.vault.read_log(&stem)? } else { None };
                let Some(log) = log else { continue };
                let log = privacy::sanitize(&log, &view.inventory.rules);
                (LogRecord::of(&log, path), PresentLines::of_log(&log))
            };
            changed.insert(stem, ChangedLines::between(&same, &same, now));
        }
        Ok(())
    }

    /// Returns the cited weekly and monthly files that changed since their citations were right:
    /// each as it was, if that is known, as it is, and its text.
    fn changed_cited_summaries(
        &self,
        view: &RootSnapshot,
    ) -> Result<Vec<(Option<LogRecord>, LogRecord, String)>, JobFailure> {
        let mut known = self.context.lineage.cited_summaries()?;
        let mut stems = self.context.lineage.cited_summary_stems()?;
        stems.extend(known.keys().cloned());
        let mut found = Vec::new();
        for stem in stems {
            let Some(file) = summary_file(&view.inventory, &stem) else { continue };
            let old = known.remove(&stem);
            let same = old.as_ref().is_some_and(|it| it.hash == file.hash);
            if same || view.record.damaged.contains_key(&file.path) {
                continue;
            }
            let Some(text) = self.context.vault.read_text(&file.path)? else { continue };
            let now = records::lines_of_summary(&stem, &file.path, &text);
            found.extend(now.filter(|it| it.hash == file.hash).map(|now| (old, now, text)));
        }
        Ok(found)
    }

    /// Updates citations of weekly and monthly files that will be written with other lines, in all
    /// files except `whole`, which cite the new lines already.
    pub(crate) fn update_citations_of_written(
        &self,
        view: &RootSnapshot,
        whole: &BTreeSet<&str>,
        files: &mut Vec<FileWrite>,
        recorded: &mut RecordedChanges,
    ) -> Result<(), JobFailure> {
        let known = self.context.lineage.cited_summaries()?;
        let mut changed = ChangedFiles::new();
        for file in &*files {
            let stem = period_of_path(&file.path).and_then(Stem::of_summary);
            let Some(old) = stem.and_then(|it| known.get(&it)) else { continue };
            let text = file.text.as_deref();
            let new = text.and_then(|it| records::lines_of_summary(&old.stem, &file.path, it));
            if let Some(new) = new.filter(|it| it.hash != old.hash) {
                let now = PresentLines::of_summary(&old.stem, text.unwrap_or_default());
                changed.insert(old.stem.clone(), ChangedLines::between(old, &new, now));
                recorded.logs.push(new);
            }
        }
        let nobody = BTreeSet::new();
        let mut rewriter = CitationRewriter::new(self.context, view, &known, &changed, &nobody);
        rewriter.update_memories_and_wisdom()?;
        rewriter.update_summaries()?;
        let CitationRewriter { files: citing, documents, .. } = rewriter;
        // A file that is to be removed needs no new citations.
        let written: BTreeSet<String> = files.iter().map(|it| it.path.clone()).collect();
        let is_other = |path: &str| !whole.contains(path) && !written.contains(path);
        files.extend(citing.into_iter().filter(|it| is_other(&it.path)));
        recorded.documents.extend(documents.into_iter().filter(|it| is_other(&it.path)));
        Ok(())
    }

    /// Writes files with updated citations, and a job for it; returns whether there were any.
    pub(crate) fn record_citation_update(
        &mut self,
        reconcile_run: &mut ReconcileRun<'_>,
        view: &RootSnapshot,
        update: CitationUpdate<'_>,
    ) -> Result<bool, JobFailure> {
        let CitationUpdate { what, reason, period, logs, id: step, files, recorded } = update;
        if files.is_empty() {
            Journal::new(self.context).write_files(None, None, &[], &recorded)?;
            return Ok(false);
        }
        let ReconcileRun { run, trigger, now, report } = reconcile_run;
        let run = self.context.ensure_run(run, trigger, *now).map_err(JobFailure::Critical)?;
        let hash_of = |stem: &Stem| match view.inventory.logs.get(stem) {
            Some(log) => log.input_hash.hex16(),
            None => {
                summary_file(&view.inventory, stem).map_or_else(String::new, |it| it.hash.hex16())
            }
        };
        let input = |it: &&Stem| (it.to_string(), hash_of(it));
        let inputs: BTreeMap<String, String> = logs.iter().map(input).collect();
        let summary_job = plan::fingerprint(Tier::Weekly, period, &inputs);
        let job = NewJob {
            // Not the fingerprint of a summary job, which may still be due for these inputs.
            fingerprint: ContentHash::of(format!("{what} {summary_job}")),
            tier: Tier::Weekly,
            period,
            engine: self.context.engine.id().to_owned(),
            inputs: step,
            now: *now,
        };
        let id = self.context.lineage.begin_job(run, &job)?;
        let mut receipt =
            Receipt::new(JobOutcome::Written, Some(reason.clone()), (self.context.clock)());
        let paths: Vec<String> = files.iter().map(|it| it.path.clone()).collect();
        receipt.path = paths.first().cloned();
        receipt.metrics.sources = count_u32(logs.len());
        Journal::new(self.context).write_files(None, Some((id, &receipt)), &files, &recorded)?;
        report.push(JobReport::new(Tier::Weekly, period, &receipt, paths, &reason));
        self.mark_months_distilled(run, view, &files, &reason)?;
        Ok(true)
    }

    /// Marks months as distilled in which only citations changed: their facts are in `WISDOM.md`
    /// already. After a crash before this they are distilled once more.
    pub(crate) fn mark_months_distilled(
        &mut self,
        run: RunId,
        view: &RootSnapshot,
        files: &[FileWrite],
        reason: &str,
    ) -> Result<(), JobFailure> {
        for file in files {
            let (Some(month), Some(text)) = (period_of_path(&file.path), &file.text) else {
                continue;
            };
            let Some(before) = view.inventory.monthly.get(&month) else { continue };
            if view.record.distilled.get(&month) != Some(&Some(before.body_hash.clone())) {
                continue;
            }
            let body = document::body_hash(text).hex16();
            let input = view.inventory.rules.summary_input_hash(month, &body);
            let inputs = BTreeMap::from([(month.to_string(), input)]);
            let job = self.context.new_job(&CompactionJob {
                tier: Tier::Wisdom,
                period: month,
                reason: DueReason::Changed(vec![month.to_string()]),
                fingerprint: plan::fingerprint(Tier::Wisdom, month, &inputs),
                inputs,
                partial: false,
            });
            let receipt = Receipt::new(
                JobOutcome::Unchanged,
                Some(reason.to_owned()),
                (self.context.clock)(),
            );
            let commit = Commit { at: receipt.ended, ..Commit::default() };
            self.context.lineage.commit_finished_jobs(run, &[(&job, &receipt, commit)])?;
        }
        Ok(())
    }
}

/// Returns the lines of the weekly and monthly files that items cite and that were not cited
/// before.
/// Returns [`JobFailure::SourceChanged`] if such a file changed since its citations were right:
/// they are updated first.
pub(crate) fn newly_cited_summaries(
    context: &RunContext<'_>,
    items: &[ItemRecord],
    view: &RootSnapshot,
) -> Result<Vec<LogRecord>, JobFailure> {
    let cited = items.iter().filter_map(|it| it.citation.as_ref());
    let stems: BTreeSet<&Stem> =
        cited.flat_map(Citation::files).map(|it| it.0).filter(|it| it.is_summary()).collect();
    let mut found = Vec::new();
    for stem in stems {
        let path = context.vault.layout().source_path(stem);
        if view.record.damaged.contains_key(&path) {
            continue;
        }
        let Some(text) = context.vault.read_text(&path)? else { continue };
        let Some(now) = records::lines_of_summary(stem, &path, &text) else { continue };
        match context.lineage.log(stem)? {
            None => found.push(now),
            Some(known) if known.hash == now.hash => {}
            Some(_) => return Err(JobFailure::SourceChanged(path)),
        }
    }
    Ok(found)
}

/// Returns the weekly or monthly file with this name in citations.
fn summary_file<'a>(inventory: &'a Inventory, stem: &Stem) -> Option<&'a SummaryFile> {
    let period = stem.summary_period()?;
    match period.grain() {
        Grain::Week => inventory.weekly.get(&period),
        _ => inventory.monthly.get(&period),
    }
}

/// Identifies the step from the recorded files to the present ones. The present text of a summary
/// is left out, since the step itself may rewrite it.
fn update_id(
    known: &BTreeMap<Stem, LogRecord>,
    changed: &ChangedFiles,
    view: &RootSnapshot,
) -> ContentHash {
    let hex = |it: Option<ContentHash>| it.map_or_else(String::new, |it| it.hex16());
    let of = |stem: &Stem| {
        let before = hex(known.get(stem).map(|it| it.hash));
        format!("{stem} {before} {}", hex(view.inventory.logs.get(stem).map(|it| it.hash)))
    };
    ContentHash::of(changed.keys().map(of).collect::<Vec<_>>().join("\n"))
}
