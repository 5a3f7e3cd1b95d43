//! `WISDOM.md` from months.

use std::collections::BTreeSet;

use crate::compaction::{
    Compactor, JobFailure, JobOutput, RootSnapshot, ask_engine,
    grounding::{self, Violation},
    journal::{
        commit::{FileWrite, RecordedChanges},
        records,
    },
    memories::run::{external_lines, line_texts},
    plan::{CompactionJob, DueReason},
    reconcile::stale::StaleEntry,
    review::{self, ExcludedItem},
    summary::{draft::unreadable, write::count_u32},
};
use crate::{
    config::settings::Review,
    engine::{DistillInput, WisdomOp},
    memory::{
        address::{Address, Citation, LineSet, Stem},
        document::Summary,
        item::{Item, SummarySection},
        log::DailyLog,
        period::Period,
        typed::TypedMemory,
        wisdom::{WisdomEntry, WisdomFile, WisdomLimits},
    },
    privacy::{self, PrivacyRules, SanitizedLog},
    store::{
        db::lineage::{
            jobs::{JobId, JobOutcome, Receipt},
            record::{DocumentRecord, LogRecord},
        },
        fs::inventory::Inventory,
    },
};

impl Compactor<'_> {
    /// Edits `WISDOM.md` by what one month says.
    #[expect(clippy::too_many_lines, reason = "the steps of one edit, in their order")]
    pub(crate) fn distill(
        &mut self,
        job: &CompactionJob,
        id: JobId,
        view: &RootSnapshot,
    ) -> Result<JobOutput, JobFailure> {
        let layout = self.vault.layout();
        let (path, month_path) = (layout.wisdom(), layout.summary(job.period));
        let month_text = self
            .vault
            .read_text(&month_path)?
            .ok_or_else(|| JobFailure::SourceChanged(month_path.clone()))?;
        let month =
            Summary::parse(job.period, &month_text).map_err(|e| unreadable(&month_path, &e))?;
        let Inventory { decisions, rules, .. } = &view.inventory;
        if job
            .inputs
            .values()
            .ne([&rules.summary_input_hash(job.period, &month.body_hash().hex16())])
        {
            return Err(JobFailure::SourceChanged(month_path));
        }
        let logs = self.month_logs(job.period, view)?;
        let standing = self.vault.read_text(&path)?;
        let mut file = match &standing {
            Some(text) => WisdomFile::parse(text),
            None => WisdomFile::new(&view.inventory.rules.mask_secrets(&self.settings.agent_name)),
        };
        let items = month_bullets(&month, &month_text, rules);
        let summaries = self.cited_summaries(&month, &items, &file, rules)?;
        update_summary_lines(&mut file, &summaries);
        let shaken = self.find_stale_entries(&mut file, &logs, rules)?;
        // An entry that nothing carries must not keep out what may take its place.
        let is_sound = |it: &&WisdomEntry| !shaken.iter().any(|s| it.id() == Some(&s.id));
        let entries: Vec<WisdomEntry> = file.entries().filter(is_sound).cloned().collect();
        let memories = memories_in_month(job.period, &view.inventory.memories);
        let wisdom = &self.settings.settings.wisdom;
        let ops = ask_engine(self.engine, |engine| {
            engine.distill(&DistillInput {
                month: job.period,
                items: &items,
                logs: &logs,
                entries: &entries,
                memories: &memories,
                categories: &wisdom.categories,
            })
        })?;
        let caps = WisdomLimits { entries: wisdom.max_entries, chars: wisdom.max_chars };
        // What is said is checked against what people wrote above the logs, too.
        let written = summaries.iter().map(|(_, log)| log);
        let mut lines: Vec<SanitizedLog> = written.chain(&logs).cloned().collect();
        lines.sort_by(|a, b| a.stem().cmp(b.stem()));
        let edit = WisdomEdit {
            is_redistillation: matches!(job.reason, DueReason::Changed(_)),
            logs: &lines,
            memories: &memories,
            is_deleted: &|citation| decisions.is_deleted(&path, line_texts(citation, &lines)),
            rules,
            stale_entries: &shaken,
        };
        let before = file.clone();
        let mut done = edit.apply(&mut file, &ops, caps);
        let proposed = match wisdom.review {
            Review::Manual => review::proposals_of_edit(&done.ops, &done.dropped, &path, decisions),
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
        let text = file.print();
        let outcome = if !proposed.is_empty() {
            JobOutcome::Skipped
        } else if done.changed > 0 || !done.dropped.is_empty() || standing.is_none() {
            JobOutcome::Written
        } else {
            JobOutcome::Unchanged
        };
        let told = review::proposals_of_items(&done.kept_out, &path, self.engine, decisions, rules);
        let reason = receipt_reason(job, &done, proposed.len());
        let mut receipt = Receipt::new(outcome, Some(reason), (self.clock)());
        receipt.path = Some(path.clone());
        receipt.metrics.sources = 1;
        receipt.metrics.source_chars = month.text_chars() as u64;
        receipt.metrics.output_chars = file.chars() as u64;
        receipt.metrics.items = count_u32(done.changed);
        self.add_model_usage(&mut receipt);
        receipt.metrics.rejected = count_u32(done.rejected);
        let is_kept = outcome == JobOutcome::Skipped;
        let documents = if is_kept { Vec::new() } else { vec![records::of_wisdom(&path, &text)] };
        let read = self.lines_read(&logs, &documents, view)?;
        let recorded = RecordedChanges {
            documents,
            logs: read,
            read_paths: vec![month_path],
            quarantined: done.quarantined.iter().flat_map(external_lines).collect(),
            proposed: Some((job.fingerprint, job.period, proposed)),
            kept_out: Some((job.fingerprint, job.period, path.clone(), told)),
            ..RecordedChanges::default()
        };
        let files = if standing.as_ref() == Some(&text) || is_kept {
            Vec::new()
        } else {
            vec![FileWrite { path: path.clone(), text: Some(text), current: standing }]
        };
        self.write_files(None, Some((id, &receipt)), &files, &recorded)?;
        let paths = if outcome == JobOutcome::Written { vec![path] } else { Vec::new() };
        Ok(JobOutput { receipt, paths })
    }

    /// Returns the lines of logs that were read, and of files that entries cite for the first time.
    fn lines_read(
        &self,
        logs: &[SanitizedLog],
        documents: &[DocumentRecord],
        view: &RootSnapshot,
    ) -> Result<Vec<LogRecord>, JobFailure> {
        let path = |log: &SanitizedLog| self.vault.layout().source_path(log.stem());
        let mut read: Vec<LogRecord> = logs.iter().map(|it| LogRecord::of(it, path(it))).collect();
        for document in documents {
            read.extend(self.newly_cited_summaries(&document.items, view)?);
        }
        Ok(read)
    }

    /// Reads the weekly and monthly files whose own lines are cited, by bullets or by entries.
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
            let path = self.vault.layout().source_path(&stem);
            let Some(text) = self.vault.read_text(&path)? else { continue };
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
        let rules = view.inventory.rules.clone();
        let mut logs = Vec::new();
        for week in month.weeks() {
            for stem in view.inventory.logs_of(week).map(|(stem, _)| stem) {
                if let Some(log) = self.vault.read_log(stem)? {
                    logs.push(privacy::sanitize(&log, &rules));
                }
            }
        }
        logs.sort_by(|a, b| a.stem().cmp(b.stem()));
        Ok(logs)
    }
}

/// Says why a month was distilled, and what came of it that is not seen in the file.
fn receipt_reason(job: &CompactionJob, done: &WisdomEditResult, proposed: usize) -> String {
    let kept_out =
        review::exclusion_note(&done.kept_out).map(|it| format!("; {it}")).unwrap_or_default();
    if proposed > 0 {
        return review::waiting_message(proposed) + &kept_out;
    }
    let mut reason = job.reason.to_string();
    for id in &done.dropped {
        reason.extend(["; entry ", id, " dropped: its source changed"]);
    }
    reason + &kept_out
}

/// Returns the bullets of a month. One that a person wrote or changed is a source itself, above the
/// lines that it cites.
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

/// Follows the bullets of people whose words entries repeat to the lines where they stand now.
fn update_summary_lines(file: &mut WisdomFile, summaries: &[(Summary, SanitizedLog)]) {
    let ours: Vec<WisdomEntry> = file.entries().filter(|it| it.is_managed()).cloned().collect();
    for entry in ours {
        let Some(mark) = &entry.meta else { continue };
        let (mut sources, mut known) = (mark.sources.clone(), mark.lines.clone());
        for (summary, log) in summaries {
            if sources.lines_of(log.stem()).is_none() {
                continue;
            }
            // An entry says the first sentences of a bullet.
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

/// Returns the short hashes of cited lines.
fn line_hashes(citation: &Citation, logs: &[SanitizedLog]) -> Vec<(Address, String)> {
    let line = |at: Address| {
        let hash = logs.iter().find(|log| *log.stem() == at.stem)?.line(at.line)?.hash().hex4();
        Some((at, hash))
    };
    citation.addresses().filter_map(line).collect()
}

/// What an engine's operations may do to the file.
pub(crate) struct WisdomEdit<'a> {
    /// The month was distilled before: only entries that rest on it are touched, and only what a
    /// person wrote is added.
    pub(crate) is_redistillation: bool,
    /// The logs, and the weekly and monthly files that people wrote in.
    pub(crate) logs: &'a Vec<SanitizedLog>,
    pub(crate) memories: &'a [TypedMemory],
    pub(crate) is_deleted: &'a dyn Fn(&Citation) -> bool,
    /// What may be seen of what is written.
    pub(crate) rules: &'a PrivacyRules,
    /// Entries that are rewritten by something new, or go.
    pub(crate) stale_entries: &'a [StaleEntry],
}

/// What they did.
#[derive(Default)]
pub(crate) struct WisdomEditResult {
    pub(crate) changed: usize,
    pub(crate) rejected: usize,
    /// What the check kept out.
    kept_out: Vec<ExcludedItem>,
    /// Entries that nothing carries any more.
    dropped: Vec<String>,
    /// What was done, but for what was dropped.
    ops: Vec<WisdomOp>,
    /// What rests on nothing but text from elsewhere, and waits for a person.
    quarantined: Vec<Citation>,
    pub(crate) newest: Option<chrono::NaiveDate>,
}

impl WisdomEditResult {
    /// Returns whether any entry is another one now.
    fn is_change(&self) -> bool {
        !self.ops.is_empty() || !self.dropped.is_empty()
    }

    /// Returns what is left of it when the file stays as it was.
    fn without_changes(self) -> Self {
        let Self { rejected, kept_out, quarantined: held, .. } = self;
        Self { rejected, kept_out, quarantined: held, ..Self::default() }
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
    pub(crate) fn apply(
        &self,
        file: &mut WisdomFile,
        ops: &[WisdomOp],
        caps: WisdomLimits,
    ) -> WisdomEditResult {
        let mut done = WisdomEditResult::default();
        let mut touched = BTreeSet::new();
        let categories: Vec<String> = file.entries().filter_map(|it| it.category.clone()).collect();
        let mut open: Vec<&StaleEntry> = self.stale_entries.iter().collect();
        for op in ops {
            let (id, citation) = match op {
                WisdomOp::Add { title, text, category, citation, .. } => {
                    let heir = |it: &&StaleEntry| it.successor_rank(title, text, citation);
                    let best = (0..open.len()).max_by_key(|&i| (heir(&open[i]), usize::MAX - i));
                    let best = best.filter(|&i| heir(&open[i]).is_some());
                    let late =
                        self.is_redistillation && best.is_none() && !citation.cites_summary();
                    if late || (self.is_deleted)(citation) {
                        continue;
                    }
                    if let Err(why) = self.check_grounding(title, text, citation) {
                        done.reject(title, text, citation, &why);
                        continue;
                    }
                    if self.is_external_only(title, text, citation) {
                        done.quarantined.push(citation.clone());
                        done.rejected += 1;
                        continue;
                    }
                    let (title, text) = self.sanitized_text(title, text);
                    let id = if let Some(best) = best {
                        let old = open.remove(best);
                        file.set_sources(&old.id, &old.merged_sources(citation));
                        file.reinforce(&old.id, Some((&title, &text)), citation);
                        old.id.clone()
                    } else {
                        let category = category.as_deref().map(|it| self.rules.sanitize_output(it));
                        file.add(&title, &text, category.as_deref(), citation.clone())
                    };
                    (id, citation)
                }
                WisdomOp::Merge { id, words, citation, .. } => {
                    let words =
                        words.as_ref().map(|(title, text)| self.sanitized_text(title, text));
                    let words = words.as_ref().map(|(title, text)| (&title[..], &text[..]));
                    if let Some((title, text)) = words
                        && let Err(why) = self.check_grounding(title, text, citation)
                    {
                        done.reject(title, text, citation, &why);
                        continue;
                    }
                    // It would not even be said again: the same page twice is one voice.
                    if grounding::cites_only_external(citation, self.logs) {
                        done.rejected += 1;
                        continue;
                    }
                    if (self.is_redistillation && !self.cites_this_month(file, id))
                        || !file.reinforce(id, words, citation)
                    {
                        continue;
                    }
                    (id.clone(), citation)
                }
                // An entry that nothing has reinforced is dropped where room is needed, not before.
                WisdomOp::Drop { .. } => continue,
            };
            file.record_line_hashes(&id, line_hashes(citation, self.logs));
            touched.insert(id);
            done.ops.push(op.clone());
            done.changed += 1;
            done.newest = done.newest.max(Some(citation.newest_date()));
        }
        for entry in open {
            if file.remove_entry(&entry.id) {
                done.dropped.push(entry.id.clone());
            }
        }
        if done.changed > 0 || !done.dropped.is_empty() {
            for id in file.entries_over_limit(caps, &touched) {
                file.remove_entry(&id);
                done.changed -= usize::from(touched.contains(&id));
            }
            file.remove_empty_categories(&categories);
        }
        done
    }

    fn sanitized_text(&self, title: &str, text: &str) -> (String, String) {
        (self.rules.sanitize_output(title), self.rules.sanitize_output_after(title, text))
    }

    fn check_grounding(
        &self,
        title: &str,
        text: &str,
        citation: &Citation,
    ) -> Result<(), Violation> {
        let item = Item { text: format!("{title}. {text}"), citation: Some(citation.clone()) };
        let checked = grounding::check(&item, self.logs);
        if self.memories.iter().any(|it| is_supported_by_memory(it, &item)) {
            Ok(())
        } else {
            checked
        }
    }

    /// Returns whether nothing carries the words but text from elsewhere: no person's or agent's line,
    /// and no memory that a person wrote.
    fn is_external_only(&self, title: &str, text: &str, citation: &Citation) -> bool {
        let item = Item { text: format!("{title}. {text}"), citation: Some(citation.clone()) };
        grounding::cites_only_external(citation, self.logs)
            && !self.memories.iter().any(|it| is_supported_by_memory(it, &item))
    }

    /// Returns whether the entry rests on a log of this month.
    fn cites_this_month(&self, file: &WisdomFile, id: &str) -> bool {
        let entry = file.entries().find(|it| it.id() == Some(id));
        entry.and_then(|it| it.meta.as_ref()).is_some_and(|mark| {
            mark.sources.files().any(|(stem, _)| self.logs.iter().any(|it| it.stem() == stem))
        })
    }
}

/// Returns whether the words of an item stand in a typed memory that a person changed and that rests
/// on the same lines.
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
    let served = privacy::sanitize(&log, &PrivacyRules::default());
    let lines = served.lines().iter().filter(|it| !it.text().trim().is_empty());
    let addresses: Vec<Address> = lines.map(|it| served.address(it)).collect();
    let item = Item { text: item.text.clone(), citation: Citation::from_addresses(&addresses) };
    grounding::check(&item, &vec![served]).is_ok()
}
