//! Edits `WISDOM.md` by the facts of one month after the other.

use crate::compaction::{context::TierRun, error::CompactionError};
use std::collections::BTreeSet;

use chrono::NaiveDate;

use crate::compaction::{
    context::{JobOutput, RunContext},
    error::{JobFailure, ask_engine},
    grounding::{self, LineLookup, Violation},
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges},
        records,
    },
    memories::{
        day_reader::{external_lines, line_texts},
        memory_match,
    },
    plan::{CompactionJob, DueReason},
    proposals::{
        self,
        items::{ExcludedItem, exclude_unreadable, exclusion_note, proposals_of_items},
        waiting_message,
        wisdom::proposals_of_edit,
    },
    reconcile::{
        line_moves::newly_cited_summaries,
        stale::{StaleEntry, find_stale_entries},
    },
    report::count_u32,
    snapshot::RootSnapshot,
    summary::draft::unreadable,
};
use crate::{
    config::settings::Review,
    engine::{DistillInput, Distillation, WisdomOp, extractive::ModelReading},
    memory::{
        address::{Address, Citation, LineSet, Stem},
        document::Summary,
        item::{Item, SummarySection},
        log::DailyLog,
        period::Period,
        typed::{MemoryType, TypedMemory},
        wisdom::{WisdomEntry, WisdomFile, WisdomLimits},
    },
    privacy::{self, PrivacyRules, SanitizedLog},
    store::{
        db::lineage::{
            jobs::{JobId, JobOutcome, JobStage, Receipt},
            record::{DocumentRecord, LogRecord},
        },
        fs::{
            inventory::Inventory,
            vault::{Vault, VaultError},
        },
    },
    text::spacing,
};

/// What a month is distilled from.
struct MonthSources {
    /// The file of the month.
    path: String,
    month: Summary,
    /// Its bullets, as sources.
    items: Vec<(Option<SummarySection>, Item)>,
    /// The logs of its weeks.
    logs: Vec<SanitizedLog>,
}

/// Edits `WISDOM.md`, one month at a time.
pub(crate) struct WisdomEditor<'c, 'a> {
    pub(super) context: &'c mut RunContext<'a>,
}

impl<'c, 'a> WisdomEditor<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    /// Does one edit of `WISDOM.md` after the other, each on the result of the one before.
    pub(crate) fn run_jobs(
        &mut self,
        jobs: &[CompactionJob],
        tier: &mut TierRun<'_>,
    ) -> Result<(), CompactionError> {
        for (i, job) in jobs.iter().enumerate() {
            if tier.watcher.should_stop() || tier.report.model.is_some() {
                tier.report.left += jobs.len() - i;
                break;
            }
            tier.watcher.job_started(job, jobs.len() - i - 1);
            if let Some(id) = self.context.begin_job(tier.run, job)? {
                if self.context.engine.is_model() {
                    self.context.lineage.set_job_stage(id, JobStage::Called)?;
                }
                let made = if job.is_digest() {
                    self.choose_bullets(job, id, tier.view)
                } else {
                    self.distill(job, id, tier.view)
                };
                self.context.finish_job(job, id, made, tier)?;
            }
        }
        Ok(())
    }

    /// Edits `WISDOM.md` by the facts of one month.
    fn distill(
        &mut self,
        job: &CompactionJob,
        id: JobId,
        view: &RootSnapshot,
    ) -> Result<JobOutput, JobFailure> {
        let path = self.context.vault.layout().wisdom();
        let Inventory { decisions, rules, .. } = &view.inventory;
        let sources = self.read_month(job, view)?;
        let (old, mut file) = self.context.read_wisdom(rules)?;
        let (before, mut done) = self.edit_file(job, view, &sources, &mut file)?;
        let wisdom = &self.context.settings.settings.wisdom;
        let proposed = match wisdom.review {
            Review::Manual => proposals_of_edit(&done.ops, &done.dropped, &path, decisions),
            Review::Auto => Vec::new(),
        };
        if wisdom.review == Review::Manual && done.is_change() {
            file = before;
            done = done.without_changes();
        }
        if proposed.is_empty() {
            file.add_distilled(job.period);
        }
        done.newest.into_iter().for_each(|date| file.set_last_compacted(date));
        let text = file.print_over(old.as_deref());
        let outcome = if !proposed.is_empty() {
            JobOutcome::Skipped
        } else if done.changed > 0 || !done.dropped.is_empty() || old.is_none() {
            JobOutcome::Written
        } else {
            JobOutcome::Unchanged
        };
        let kept_out =
            proposals_of_items(&done.kept_out, &path, self.context.engine, decisions, rules);
        let reason = receipt_reason(job, &done, proposed.len());
        let mut receipt = Receipt::new(outcome, Some(reason), (self.context.clock)());
        receipt.path = Some(path.clone());
        receipt.metrics.sources = 1;
        receipt.metrics.source_chars = sources.month.text_chars() as u64;
        receipt.metrics.output_chars = file.chars() as u64;
        receipt.metrics.items = count_u32(done.changed);
        self.context.add_model_usage(&mut receipt);
        receipt.metrics.rejected = count_u32(done.rejected);
        let waits = outcome == JobOutcome::Skipped;
        let documents = if waits { Vec::new() } else { vec![records::of_wisdom(&path, &text)] };
        let recorded = RecordedChanges {
            logs: self.lines_read(&sources.logs, &documents, view)?,
            documents,
            read_paths: vec![sources.path],
            quarantined: done.quarantined.iter().flat_map(external_lines).collect(),
            proposed: Some((job.fingerprint, job.period, proposed)),
            kept_out: Some((job.fingerprint, job.period, path.clone(), kept_out)),
            ..RecordedChanges::default()
        };
        let files = if old.as_ref() == Some(&text) || waits {
            Vec::new()
        } else {
            vec![FileWrite { path: path.clone(), text: Some(text), current: old }]
        };
        Journal::new(self.context).write_files(None, Some((id, &receipt)), &files, &recorded)?;
        let paths = if outcome == JobOutcome::Written { vec![path] } else { Vec::new() };
        Ok(JobOutput { receipt, paths })
    }

    /// Reads the summary of a month and the logs of its weeks.
    fn read_month(
        &self,
        job: &CompactionJob,
        view: &RootSnapshot,
    ) -> Result<MonthSources, JobFailure> {
        let path = self.context.vault.layout().summary(job.period);
        let text = self.context.vault.read_text(&path)?;
        let text = text.ok_or_else(|| JobFailure::SourceChanged(path.clone()))?;
        let month = Summary::parse(job.period, &text).map_err(|e| unreadable(&path, &e))?;
        let rules = &view.inventory.rules;
        let input = rules.summary_input_hash(job.period, &month.body_hash().hex16());
        if job.inputs.values().ne([&input]) {
            return Err(JobFailure::SourceChanged(path));
        }
        let logs = self.month_logs(job.period, view)?;
        let items = month_bullets(&month, &text, rules);
        Ok(MonthSources { path, month, items, logs })
    }

    /// Returns whether an entry is not shown, because it looks like an attack and nobody accepted it.
    fn is_held(&self, entry: &WisdomEntry, rules: &PrivacyRules) -> bool {
        let citation = entry.meta.as_ref().map(|it| it.sources.clone());
        let item = || Item { text: entry.text.clone(), citation };
        !privacy::suspicious_lines(&entry.raw).is_empty()
            && !proposals::is_accepted(&item(), self.context.vault, rules)
    }

    /// Asks the engine for operations and applies them to the entries; returns also the file before
    /// them, with updated citations.
    fn edit_file(
        &self,
        job: &CompactionJob,
        view: &RootSnapshot,
        sources: &MonthSources,
        file: &mut WisdomFile,
    ) -> Result<(WisdomFile, WisdomEditResult), JobFailure> {
        let Inventory { decisions, rules, .. } = &view.inventory;
        let path = self.context.vault.layout().wisdom();
        let MonthSources { month, items, logs, .. } = sources;
        let summaries = self.cited_summaries(month, items, file, rules)?;
        update_summary_lines(file, &summaries);
        let stale = find_stale_entries(self.context, file, logs, rules)?;
        // An entry without support must not keep out what may replace it.
        let is_sound = |it: &&WisdomEntry| {
            !it.is_own_bullet()
                && !stale.iter().any(|s| it.id() == Some(&s.id))
                && !self.is_held(it, rules)
        };
        let entries: Vec<WisdomEntry> = file.entries().filter(is_sound).cloned().collect();
        let engine = self.context.engine;
        let mut memories = memories_in_month(job.period, &view.inventory.memories);
        // Without a model those about topics are made from the same logs, after the months of a first run and before
        // later ones: what is distilled must not depend on which came first.
        memories.retain(|it| !engine.files_by_topic() || !it.is_about_topic());
        let shown = memory_match::sanitized_memories(&memories, self.context.vault, rules);
        memories.retain(|it| shown.iter().any(|shown| shown.file_name == it.file_name));
        let wisdom = &self.context.settings.settings.wisdom;
        let limits = WisdomLimits { entries: wisdom.max_entries, chars: wisdom.max_chars };
        // Entries are also checked against what people wrote in the summaries.
        let written = summaries.iter().map(|(_, log)| log);
        let mut lines: Vec<SanitizedLog> = written.chain(logs).cloned().collect();
        let elsewhere = if engine.is_model() {
            stems_cited_elsewhere(&entries, &memories, &lines)
        } else {
            Vec::new()
        };
        lines.extend(read_logs(self.context.vault, &elsewhere, rules)?);
        lines.sort_by(|a, b| a.stem().cmp(b.stem()));
        let edit = WisdomEdit {
            is_redistillation: matches!(job.reason, DueReason::Changed(_)),
            is_by_model: engine.is_model(),
            logs: &lines,
            elsewhere: &elsewhere,
            memories: &memories,
            is_deleted: &|citation| decisions.is_deleted(&path, line_texts(citation, &lines)),
            rules,
            stale_entries: &stale,
            model: &NOTHING_READ,
        };
        let Distillation { ops, unreadable } = ask_engine(engine, |engine| {
            engine.distill(&DistillInput {
                month: job.period,
                items,
                logs,
                entries: &entries,
                memories: &shown,
                categories: &wisdom.categories,
                check: &|op| edit.check(file, op),
            })
        })?;
        let before = file.clone();
        let mut done = edit.apply(file, &ops, limits);
        done.rejected += unreadable.len();
        done.kept_out.extend(unreadable.into_iter().map(exclude_unreadable));
        Ok((before, done))
    }

    /// Returns the lines of logs that were read, and of files that entries cite for the first time.
    pub(super) fn lines_read(
        &self,
        logs: &[SanitizedLog],
        documents: &[DocumentRecord],
        view: &RootSnapshot,
    ) -> Result<Vec<LogRecord>, JobFailure> {
        let path = |log: &SanitizedLog| self.context.vault.layout().source_path(log.stem());
        let mut read: Vec<LogRecord> = logs.iter().map(|it| LogRecord::of(it, path(it))).collect();
        for document in documents {
            read.extend(newly_cited_summaries(self.context, &document.items, view)?);
        }
        Ok(read)
    }

    /// Reads the weekly and monthly files that bullets or entries cite themselves.
    fn cited_summaries(
        &self,
        month: &Summary,
        items: &[(Option<SummarySection>, Item)],
        file: &WisdomFile,
        rules: &PrivacyRules,
    ) -> Result<Vec<(Summary, SanitizedLog)>, JobFailure> {
        let mut stems: BTreeSet<Stem> = BTreeSet::new();
        let marks = file.entries().filter_map(|it| Some(&it.meta.as_ref()?.sources));
        for citation in items.iter().filter_map(|(_, it)| it.citation.as_ref()).chain(marks) {
            stems.extend(citation.files().map(|(stem, _)| stem.clone()).filter(Stem::is_summary));
        }
        let weeks = month.period.weeks();
        let mut found = Vec::new();
        for stem in stems {
            let Some(period) = stem.summary_period() else { continue };
            let path = self.context.vault.layout().source_path(&stem);
            let Some(text) = self.context.vault.read_text(&path)? else { continue };
            if period != month.period && !weeks.contains(&period) {
                continue;
            }
            let summary = Summary::parse(period, &text).map_err(|e| unreadable(&path, &e))?;
            let log = DailyLog::parse(stem, text.as_bytes()).map_err(|e| unreadable(&path, &e))?;
            found.push((summary, privacy::sanitize(&log, rules)));
        }
        Ok(found)
    }

    /// Reads the logs of all weeks of a month.
    fn month_logs(
        &self,
        month: Period,
        view: &RootSnapshot,
    ) -> Result<Vec<SanitizedLog>, JobFailure> {
        let weeks = month.weeks();
        let stems = weeks.iter().flat_map(|it| view.inventory.logs_of(*it)).map(|it| it.0.clone());
        let stems = stems.collect::<Vec<_>>();
        Ok(read_logs(self.context.vault, &stems, &view.inventory.rules)?)
    }
}

/// Reads logs, sorted by stem.
pub(super) fn read_logs(
    vault: &Vault,
    stems: &[Stem],
    rules: &PrivacyRules,
) -> Result<Vec<SanitizedLog>, VaultError> {
    let mut logs = Vec::new();
    for stem in stems {
        if let Some(log) = vault.read_log(stem)? {
            logs.push(privacy::sanitize(&log, rules));
        }
    }
    logs.sort_by(|a, b| a.stem().cmp(b.stem()));
    Ok(logs)
}

/// Returns why a month was distilled, and what the file does not show of the result.
fn receipt_reason(job: &CompactionJob, done: &WisdomEditResult, proposed: usize) -> String {
    let kept_out = exclusion_note(&done.kept_out).map(|it| format!("; {it}")).unwrap_or_default();
    if proposed > 0 {
        return waiting_message(proposed) + &kept_out;
    }
    let mut reason = job.reason.to_string();
    for id in &done.dropped {
        reason.extend(["; entry ", id, " dropped: its source changed"]);
    }
    for op in &done.ops {
        if let WisdomOp::Drop { id, .. } = op {
            reason.extend(["; entry ", id, " dropped by the model"]);
        }
    }
    reason + &kept_out
}

/// Returns the bullets of a month. One that a person wrote or changed is a source itself, in addition to
/// the lines that it cites.
fn month_bullets(
    month: &Summary,
    text: &str,
    rules: &PrivacyRules,
) -> Vec<(Option<SummarySection>, Item)> {
    let own = privacy::sanitize_own_lines(month, text, rules);
    let shown = |(section, mut item): (Option<SummarySection>, Item)| {
        item.text = rules.mask_secrets(&item.text).into_owned();
        (section, item)
    };
    let seen = |(_, item): &(_, Item)| !own.as_ref().is_some_and(|it| it.cites_quarantined(item));
    month.bullets_as_sources().map(shown).filter(seen).collect()
}

/// Updates the cited lines of entries that repeat bullets which people wrote in summaries.
fn update_summary_lines(file: &mut WisdomFile, summaries: &[(Summary, SanitizedLog)]) {
    let ours: Vec<WisdomEntry> = file.entries().filter(|it| it.is_managed()).cloned().collect();
    for entry in ours {
        let Some(mark) = &entry.meta else { continue };
        let (mut sources, mut known) = (mark.sources.clone(), mark.lines.clone());
        for (summary, log) in summaries {
            if sources.lines_of(log.stem()).is_none() {
                continue;
            }
            // An entry repeats the first sentences of a bullet.
            let says = |item: &Item| item.text.trim_start_matches("[ ] ").starts_with(&entry.text);
            let bullets = summary.bullets_with_lines().filter(|(_, item, _)| says(item));
            let lines: LineSet = bullets.flat_map(|(lines, ..)| lines).collect();
            if lines.is_empty() {
                continue;
            }
            for line in lines.iter().filter_map(|it| log.line(it)) {
                known.insert(log.address(line), line.hash().hex4());
            }
            sources.replace_lines(log.stem(), lines);
        }
        let source = |at: Address| (at.clone(), known.get(&at).cloned());
        if sources.cites_summary() {
            file.set_sources(&mark.id, &sources.addresses().map(source).collect::<Vec<_>>());
        }
    }
}

/// Returns the typed memories whose newest source lies in the weeks of the month.
fn memories_in_month(month: Period, memories: &[TypedMemory]) -> Vec<TypedMemory> {
    let weeks = month.weeks();
    let (Some(first), last) = (weeks.first().map(|it| it.first()), month.last_source_day()) else {
        return Vec::new();
    };
    let inside = |it: &&TypedMemory| it.updated.is_some_and(|day| (first..=last).contains(&day));
    memories.iter().filter(inside).cloned().collect()
}

/// Returns the logs that entries and memories cite, without those that were read.
fn stems_cited_elsewhere(
    entries: &[WisdomEntry],
    memories: &[TypedMemory],
    read: &[SanitizedLog],
) -> Vec<Stem> {
    let of_entries = entries.iter().filter_map(|it| it.meta.as_ref());
    let of_entries = of_entries.flat_map(|it| it.sources.files()).map(|it| it.0);
    let of_memories = memories.iter().flat_map(|it| &it.sources).map(|it| &it.0.stem);
    let cited: BTreeSet<&Stem> = of_entries.chain(of_memories).collect();
    let is_unread = |it: &&Stem| !it.is_summary() && read.iter().all(|log| log.stem() != *it);
    cited.into_iter().filter(is_unread).cloned().collect()
}

/// Returns the short hashes of cited lines.
pub(super) fn line_hashes(citation: &Citation, logs: &[SanitizedLog]) -> Vec<(Address, String)> {
    let line = |at: Address| {
        let hash = logs.iter().find(|log| *log.stem() == at.stem)?.line(at.line)?.hash().hex4();
        Some((at, hash))
    };
    citation.addresses().filter_map(line).collect()
}

/// What the operations of an engine are checked against.
pub(crate) struct WisdomEdit<'a> {
    /// Whether the month was distilled before: then only entries that cite it are changed, and only
    /// what a person wrote is added.
    pub(crate) is_redistillation: bool,
    /// Whether a model drafted the operations: then entries are dropped as it says.
    pub(crate) is_by_model: bool,
    /// The logs, and the summaries in which people wrote.
    pub(crate) logs: &'a Vec<SanitizedLog>,
    /// Those of these logs that are of other months.
    pub(crate) elsewhere: &'a [Stem],
    pub(crate) memories: &'a [TypedMemory],
    pub(crate) is_deleted: &'a dyn Fn(&Citation) -> bool,
    /// The rules by which the written text is sanitized.
    pub(crate) rules: &'a PrivacyRules,
    /// Entries that a new entry replaces, or that are dropped.
    pub(crate) stale_entries: &'a [StaleEntry],
    /// What a model read of the logs.
    pub(crate) model: &'a ModelReading,
}

/// No model read anything.
static NOTHING_READ: ModelReading = ModelReading { logs: BTreeSet::new(), statements: Vec::new() };

impl<'a> WisdomEdit<'a> {
    /// Builds an edit from logs alone.
    pub(crate) fn new(
        logs: &'a Vec<SanitizedLog>,
        rules: &'a PrivacyRules,
        is_deleted: &'a dyn Fn(&Citation) -> bool,
    ) -> Self {
        Self {
            is_redistillation: false,
            is_by_model: false,
            logs,
            elsewhere: &[],
            memories: &[],
            is_deleted,
            rules,
            stale_entries: &[],
            model: &NOTHING_READ,
        }
    }

    /// Returns it with what a model read of the logs.
    pub(super) fn with_model(self, model: &'a ModelReading) -> Self {
        Self { model, ..self }
    }
}

/// An entry that an engine wants to add.
struct AddedEntry<'a> {
    title: &'a str,
    text: &'a str,
    category: Option<&'a str>,
    citation: &'a Citation,
}

/// What the operations did to the file.
#[derive(Default)]
pub(crate) struct WisdomEditResult {
    pub(crate) changed: usize,
    pub(crate) rejected: usize,
    /// Items that the checks kept out.
    kept_out: Vec<ExcludedItem>,
    /// The ids of entries that were dropped, because their sources no longer support them.
    dropped: Vec<String>,
    /// The operations that were applied.
    ops: Vec<WisdomOp>,
    /// Citations of external text alone, which wait for a person.
    quarantined: Vec<Citation>,
    pub(crate) newest: Option<chrono::NaiveDate>,
}

impl WisdomEditResult {
    /// Returns whether any entry was changed.
    fn is_change(&self) -> bool {
        !self.ops.is_empty() || !self.dropped.is_empty()
    }

    /// Returns the result for a file that stays as it was.
    fn without_changes(self) -> Self {
        let Self { rejected, kept_out, quarantined, .. } = self;
        Self { rejected, kept_out, quarantined, ..Self::default() }
    }

    fn reject(&mut self, title: &str, text: &str, citation: &Citation, why: &Violation) {
        self.rejected += 1;
        self.kept_out.push(ExcludedItem {
            text: format!("{title}: {text}"),
            citation: Some(citation.clone()),
            reason: why.to_string(),
            looks_like_attack: why.is_suspicious(),
            may_be_accepted: false,
        });
    }
}

impl WisdomEdit<'_> {
    /// Applies operations to the entries of a file, and drops stale entries that nothing replaced.
    pub(crate) fn apply(
        &self,
        file: &mut WisdomFile,
        ops: &[WisdomOp],
        limits: WisdomLimits,
    ) -> WisdomEditResult {
        let mut done = WisdomEditResult::default();
        let mut touched = BTreeSet::new();
        let categories: Vec<String> = file.entries().filter_map(|it| it.category.clone()).collect();
        let mut stale: Vec<&StaleEntry> = self.stale_entries.iter().collect();
        for op in ops {
            let (id, citation) = match op {
                WisdomOp::Add { title, text, category, citation, .. } => {
                    let entry = AddedEntry { title, text, category: category.as_deref(), citation };
                    (self.add_entry(file, &entry, &mut stale, &mut done), citation)
                }
                WisdomOp::Merge { id, words, citation, .. } => {
                    let words = words.as_ref();
                    let is_merged = self.merge_entry(file, id, words, citation, &mut done);
                    (is_merged.then(|| id.clone()), citation)
                }
                WisdomOp::Drop { id, .. } => {
                    // Without a model, an entry that nothing reinforced is dropped only when room is needed.
                    if self.is_by_model && self.may_change(file, id) && file.remove_entry(id) {
                        done.ops.push(op.clone());
                        done.changed += 1;
                    }
                    continue;
                }
            };
            let Some(id) = id else { continue };
            file.record_line_hashes(&id, line_hashes(citation, self.logs));
            touched.insert(id);
            done.ops.push(op.clone());
            done.changed += 1;
            done.newest = done.newest.max(Some(citation.newest_date()));
        }
        for entry in stale {
            if file.remove_entry(&entry.id) {
                done.dropped.push(entry.id.clone());
            }
        }
        if done.changed > 0 || !done.dropped.is_empty() {
            for id in file.entries_over_limit(limits, &touched) {
                file.remove_entry(&id);
                done.changed -= usize::from(touched.contains(&id));
            }
            file.remove_empty_categories(&categories);
        }
        done
    }

    /// Adds an entry, or replaces the stale entry that it succeeds; returns its id, or `None` if it
    /// is kept out.
    fn add_entry(
        &self,
        file: &mut WisdomFile,
        entry: &AddedEntry<'_>,
        stale: &mut Vec<&StaleEntry>,
        done: &mut WisdomEditResult,
    ) -> Option<String> {
        let AddedEntry { title, text, category, citation } = *entry;
        let rank = |it: &StaleEntry| it.successor_rank(title, text, citation);
        let best = (0..stale.len()).max_by_key(|&i| (rank(stale[i]), usize::MAX - i));
        let best = best.filter(|&i| rank(stale[i]).is_some());
        let late = self.is_redistillation && best.is_none() && !citation.cites_summary();
        if late || (self.is_deleted)(citation) {
            return None;
        }
        if let Err(why) = self.check_grounding(title, text, citation) {
            done.reject(title, text, citation, &why);
            return None;
        }
        let citation = &grounding::without_blank_lines(citation, self.logs);
        if self.is_external_only(title, text, citation) {
            done.quarantined.push(citation.clone());
            done.rejected += 1;
            return None;
        }
        let (title, text) = self.sanitized_text(title, text);
        if let Some(best) = best {
            let old = stale.remove(best);
            file.set_sources(&old.id, &old.merged_sources(citation));
            file.reinforce(&old.id, Some((&title, &text)), citation);
            Some(old.id.clone())
        } else {
            let category = category.map(|it| self.rules.sanitize_output(it));
            Some(file.add(&title, &text, category.as_deref(), citation.clone()))
        }
    }

    /// Adds sources and new words to an entry; returns whether it did.
    fn merge_entry(
        &self,
        file: &mut WisdomFile,
        id: &str,
        words: Option<&(String, String)>,
        citation: &Citation,
        done: &mut WisdomEditResult,
    ) -> bool {
        let words = words.map(|(title, text)| self.sanitized_text(title, text));
        let words = words.as_ref().map(|(title, text)| (&title[..], &text[..]));
        if let Some((title, text)) = words
            && let Err(why) = self.check_merged(file, id, (title, text), citation)
        {
            done.reject(title, text, citation, &why);
            return false;
        }
        // The same external page twice is one voice, so it does not reinforce an entry either.
        let is_external = match words {
            Some((title, text)) => self.is_external_only(title, text, citation),
            None => grounding::is_external("", citation, self.logs).unwrap_or(true),
        };
        if is_external {
            done.rejected += 1;
            return false;
        }
        self.may_change(file, id) && file.reinforce(id, words, citation)
    }

    /// Returns what is wrong with an operation.
    fn check(&self, file: &WisdomFile, op: &WisdomOp) -> Result<(), String> {
        let (title, text, citation) = match op {
            WisdomOp::Add { title, text, citation, .. } => {
                self.check_grounding(title, text, citation).map_err(|it| it.to_string())?;
                (title, text, citation)
            }
            WisdomOp::Merge { id, words: Some((title, text)), citation, .. } => {
                self.check_merged(file, id, (title, text), citation)
                    .map_err(|it| it.to_string())?;
                (title, text, citation)
            }
            WisdomOp::Merge { .. } | WisdomOp::Drop { .. } => return Ok(()),
        };
        if !self.is_external_only(title, text, citation) {
            return Ok(());
        }
        let words = grounding::entry_words(title, text);
        grounding::external_fault(&words, citation, self.logs).map_or(Ok(()), Err)
    }

    /// Checks the new words of an entry against the new lines, or together with its old ones.
    fn check_merged(
        &self,
        file: &WisdomFile,
        id: &str,
        (title, text): (&str, &str),
        citation: &Citation,
    ) -> Result<(), Violation> {
        let checked = self.check_grounding(title, text, citation);
        let entry = file.entries().find(|it| it.id() == Some(id));
        let is_read = |stem: &Stem| self.logs.iter().any(|it| it.stem() == stem);
        let Some(mut all) = entry
            .and_then(|it| it.meta.as_ref()?.sources.filter_files(is_read))
            .filter(|_| checked.is_err())
        else {
            return checked;
        };
        all.merge(citation);
        self.check_grounding(title, text, &all)
    }

    /// Returns whether an entry may be changed: if the month was distilled before, only one that cites it.
    fn may_change(&self, file: &WisdomFile, id: &str) -> bool {
        !self.is_redistillation || self.cites_this_month(file, id)
    }

    fn sanitized_text(&self, title: &str, text: &str) -> (String, String) {
        (self.rules.sanitize_output(title), self.rules.sanitize_output_after(title, text))
    }

    pub(super) fn check_grounding(
        &self,
        title: &str,
        text: &str,
        citation: &Citation,
    ) -> Result<(), Violation> {
        let item =
            Item { text: grounding::entry_words(title, text), citation: Some(citation.clone()) };
        if self.memories.iter().any(|it| is_supported_by_memory(it, &item)) {
            return Ok(());
        }
        let lines =
            LogsWithStatements { logs: self.logs, statements: self.statements_on(citation) };
        grounding::check_entry(title, text, citation, &lines)
    }

    /// Returns the statements of memories that cite only these lines, each with its last day and, of projects and
    /// things, its topic.
    fn statements_on(&self, citation: &Citation) -> Vec<(NaiveDate, String)> {
        let about_topics = self.memories.iter().filter(|it| it.is_about_topic());
        let statements = about_topics.flat_map(|memory| {
            let (ours, _) = memory.statements_by_owner();
            let has_topic = matches!(memory.kind, MemoryType::Project | MemoryType::Reference);
            ours.into_iter().filter_map(move |it| {
                let lines = it.item.citation.as_ref()?;
                let topic = if has_topic { &memory.name[..] } else { "" };
                let text = grounding::entry_words(topic, &it.item.text);
                let text = spacing::spaced(&text).into_owned();
                citation.covers(lines).then(|| (lines.newest_date(), text))
            })
        });
        statements.collect()
    }

    /// Returns whether the words are those of external text, and no memory that a person wrote has
    /// them.
    pub(super) fn is_external_only(&self, title: &str, text: &str, citation: &Citation) -> bool {
        let item =
            Item { text: grounding::entry_words(title, text), citation: Some(citation.clone()) };
        grounding::is_external(&item.text, citation, self.logs).unwrap_or(true)
            && !self.memories.iter().any(|it| is_supported_by_memory(it, &item))
    }

    /// Returns whether the entry cites a log of this month.
    fn cites_this_month(&self, file: &WisdomFile, id: &str) -> bool {
        let entry = file.entries().find(|it| it.id() == Some(id));
        entry.and_then(|it| it.meta.as_ref()).is_some_and(|mark| {
            let is_here = |it: &Stem| {
                self.logs.iter().any(|log| log.stem() == it) && !self.elsewhere.contains(it)
            };
            mark.sources.files().any(|(stem, _)| is_here(stem))
        })
    }
}

/// Logs, and statements that were checked against them.
struct LogsWithStatements<'a> {
    logs: &'a Vec<SanitizedLog>,
    statements: Vec<(NaiveDate, String)>,
}

impl LineLookup for LogsWithStatements<'_> {
    fn log(&self, stem: &Stem) -> Option<&SanitizedLog> {
        self.logs.log(stem)
    }

    fn has_word(&self, word: &str) -> bool {
        self.logs.has_word(word)
    }

    fn is_person_name(&self, word: &str) -> bool {
        self.logs.is_person_name(word)
    }

    fn checked_texts(&self, _: &Citation) -> Vec<(NaiveDate, &str)> {
        self.statements.iter().map(|it| (it.0, &it.1[..])).collect()
    }
}

/// Returns whether a typed memory that a person changed says the words of an item and cites the same
/// lines.
fn is_supported_by_memory(memory: &TypedMemory, item: &Item) -> bool {
    let Some(citation) = &item.citation else { return false };
    let cited = Citation::from_addresses(memory.sources.iter().map(|(address, _)| address));
    let Some(day) = memory.sources.first().map(|(address, _)| address.stem.clone()) else {
        return false;
    };
    if memory.is_managed() || !cited.is_some_and(|it| it.overlaps(citation)) {
        return false;
    }
    let said = format!("{}\n{}", memory.name, memory.body);
    let Ok(log) = DailyLog::parse(day, said.as_bytes()) else { return false };
    let sanitized = privacy::sanitize(&log, &PrivacyRules::default());
    let lines = sanitized.lines().iter().filter(|it| !it.text().trim().is_empty());
    let addresses: Vec<Address> = lines.map(|it| sanitized.address(it)).collect();
    let logs = vec![sanitized];
    let item = Item { text: item.text.clone(), citation: Citation::from_addresses(&addresses) };
    let citation = item.citation.as_ref();
    let is_quoted = citation.and_then(|it| grounding::is_external(&item.text, it, &logs));
    is_quoted == Some(false) && grounding::check(&item, &logs).is_ok()
}
