//! What happened to the files since the last pass: lines that moved, and edits of people.
//!
//! Lines that only moved are followed by program: citations are rewritten, no engine is asked, and
//! nothing becomes due. What a person deleted is written down in `.decisions.jsonl`, so that it
//! stays deleted after the database is lost; what they wrote back is lifted from there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::{
    line_map::{LineHashes, LineMap},
    source_match::CitedLine,
};
use crate::compaction::{
    CompactionError, Compactor, JobFailure, RootSnapshot,
    integrity::repair,
    journal::{
        commit::{FileWrite, RecordedChanges},
        records,
    },
    plan::{self, CompactionJob, DueReason},
    report::{JobReport, RunReport},
    summary::write::count_u32,
};
use crate::{
    memory::{
        address::{Address, Citation, Stem, is_removed_line, removed_line_number},
        decision::{Decision, DecisionKind, Decisions},
        document::{self, BulletOwner, Summary, SummaryBlock, SummaryHeader},
        hash::{self, ContentHash},
        item::{Item, Tier},
        log::DailyLog,
        period::{Grain, Period},
        typed::TypedMemory,
        wisdom::{WisdomEntryMeta, WisdomFile},
    },
    privacy::{self, PrivacyRules, SanitizedLine, SanitizedLog},
    store::{
        db::lineage::{
            jobs::{JobOutcome, NewJob, Receipt, RunId},
            record::{Commit, DocumentKind, DocumentRecord, ItemRecord, LogRecord},
        },
        fs::{
            inventory::{Inventory, SummaryFile},
            vault::VaultError,
        },
    },
};

/// Per log that changed, or file that is cited itself, where its lines went.
pub(crate) type LineMaps = BTreeMap<Stem, LineMap>;

/// What the receipt of a job says whose work was to follow lines that moved.
pub(crate) const LINES_MOVED: &str = "lines moved";

/// The pass that takes notice; its run begins with the first thing to record.
pub(crate) struct ReconcileRun<'a> {
    pub(crate) run: Option<RunId>,
    pub(crate) trigger: &'a str,
    pub(crate) now: DateTime<Utc>,
    pub(crate) report: RunReport,
}

impl<'a> ReconcileRun<'a> {
    pub(crate) fn new(trigger: &'a str, now: DateTime<Utc>) -> Self {
        Self { run: None, trigger, now, report: RunReport::default() }
    }
}

/// Files in which citations follow logs whose lines moved, or that have another name.
pub(crate) struct CitationUpdate<'a> {
    /// In a word; it sets the job apart from a fold of the same logs.
    pub(crate) what: &'static str,
    /// What the receipt says.
    pub(crate) reason: String,
    pub(crate) period: Period,
    /// The logs, by the names that they have now.
    pub(crate) logs: Vec<&'a Stem>,
    /// Names what happened to them.
    pub(crate) id: ContentHash,
    pub(crate) files: Vec<FileWrite>,
    pub(crate) recorded: RecordedChanges,
}

impl Compactor<'_> {
    /// Takes notice of what happened, and returns whether any file was written.
    pub(crate) fn reconcile_changes(
        &mut self,
        noticing: &mut ReconcileRun<'_>,
        view: &RootSnapshot,
    ) -> Result<bool, CompactionError> {
        let now = noticing.now;
        let edited = self.record_edits(view, now)?;
        let renamed = defer_if_changed(self.update_renamed_citations(noticing, view))?;
        let fresh = renamed.then(|| self.take_snapshot(now)).transpose()?;
        let view = fresh.as_ref().unwrap_or(view);
        self.record_vanished_logs(view)?;
        self.record_missing_versions(view, now)?;
        let moved = defer_if_changed(self.update_moved_citations(noticing, view))?;
        Ok(edited | renamed | moved)
    }

    /// Records files that people changed, and what they deleted or wrote back in them.
    fn record_edits(
        &mut self,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<bool, CompactionError> {
        let inventory = &view.inventory;
        let recorded = self.lineage.documents()?;
        let layout = self.vault.layout().clone();
        let mut there: BTreeMap<String, Option<ContentHash>> = BTreeMap::new();
        let summaries = inventory.weekly.values().chain(inventory.monthly.values());
        there.extend(summaries.map(|it| (it.path.clone(), Some(it.hash))));
        let memories = inventory.memories.iter();
        there.extend(
            memories.map(|it| (layout.typed_memory(&it.file_name.to_string_lossy()), None)),
        );
        if let Some(text) = &inventory.wisdom {
            there.insert(layout.wisdom(), Some(ContentHash::of(text)));
        }
        let mut changes = RecordedChanges::default();
        let mut decisions = Vec::new();
        for (path, hash) in &there {
            let known = recorded.get(path).map(|(_, hash)| *hash);
            if known.is_some() && known == *hash {
                continue;
            }
            let Ok(Some(text)) = self.vault.read_text(path) else { continue };
            let Some(document) = records::of_path(&layout, path, &text) else { continue };
            // A file that a disk lost is not one that a person emptied; `doctor` tells.
            if known == Some(document.hash)
                || known.is_some() && repair::text_damage(&text).is_some()
            {
                continue;
            }
            if view.record.damaged.contains_key(path) {
                continue;
            }
            if known.is_none() {
                // A memory or a file that was deleted may have been put back.
                decisions.extend(self.decisions_from_edit(
                    view,
                    path,
                    &[],
                    &document.items,
                    now,
                )?);
            } else {
                let mut before = self.lineage.items_of(path)?;
                if *path == layout.wisdom() && self.is_newer_than_database(path, &text)? {
                    before.clear();
                }
                // The file itself lists what we wrote in it. What the database knows beyond that
                // is older than the file (it was restored, say), and nobody deleted it.
                match listed_hashes(path, &text) {
                    Some(listed) => before.retain(|it| listed.contains(&it.hash)),
                    // A person has put a file of their own in its place, and decided about no line.
                    None if matches!(
                        document.kind,
                        DocumentKind::Weekly | DocumentKind::Monthly
                    ) =>
                    {
                        before.clear();
                    }
                    None => {}
                }
                decisions.extend(self.decisions_from_edit(
                    view,
                    path,
                    &before,
                    &document.items,
                    now,
                )?);
            }
            changes.external_changes.push((path.clone(), Some(text.into_bytes())));
            changes.documents.push(document);
        }
        for (path, (kind, _)) in &recorded {
            // What cannot be read just now is not gone: the scan has told of it.
            if there.contains_key(path) || !matches!(self.vault.read(path), Ok(None)) {
                continue;
            }
            // A summary that was deleted is folded anew; a memory or an entry stays deleted.
            if matches!(kind, DocumentKind::Memory | DocumentKind::Wisdom) {
                let before = self.lineage.items_of(path)?;
                decisions.extend(self.decisions_from_edit(view, path, &before, &[], now)?);
            }
            changes.external_changes.push((path.clone(), None));
            changes.removed.push(path.clone());
        }
        if changes.documents.is_empty() && changes.removed.is_empty() {
            return Ok(false);
        }
        self.append_decisions(&decisions)?;
        match self.write_files(None, None, &[], &changes) {
            Ok(()) => Ok(!decisions.is_empty()),
            Err(JobFailure::Critical(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Returns whether we wrote this `WISDOM.md` and the database does not know it: an older copy of
    /// the database was put back, and what it knows beyond the file is older than the file.
    fn is_newer_than_database(&self, path: &str, text: &str) -> Result<bool, CompactionError> {
        let mut known = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for version in self.lineage.versions_of(path)? {
            let Some(hash) = version.hash else { continue };
            let bytes = self.lineage.content(hash)?.unwrap_or_default();
            let file = WisdomFile::parse(&String::from_utf8_lossy(&bytes));
            known.extend(file.distilled().iter().copied());
            ids.extend(file.entries().filter_map(|it| it.id().map(str::to_owned)));
        }
        let file = WisdomFile::parse(text);
        let unknown = |it: &str| !ids.contains(it);
        Ok(!ids.is_empty()
            && (!file.distilled().is_subset(&known)
                || file.entries().any(|it| it.is_managed() && it.id().is_some_and(unknown))))
    }

    /// Compares the items of a file before and after, and says what was decided about their lines.
    fn decisions_from_edit(
        &self,
        view: &RootSnapshot,
        path: &str,
        before: &[ItemRecord],
        after: &[ItemRecord],
        now: DateTime<Utc>,
    ) -> Result<Vec<Decision>, CompactionError> {
        let mut left: HashMap<&str, usize> = HashMap::new();
        for item in after {
            *left.entry(&item.hash).or_default() += 1;
        }
        let rules = view.inventory.rules.clone();
        let mut made = Vec::new();
        let mut key = None;
        let mut decide = |what, citation: &Citation| -> Result<(), CompactionError> {
            // Only who decides something needs a key.
            let key = match &mut key {
                Some(key) => key,
                none => none.insert(match &view.inventory.decisions {
                    known if known.has_key() => known.clone(),
                    _ => self.create_decisions_key()?,
                }),
            };
            let hashes = self
                .cited_texts(citation, &rules)?
                .iter()
                .filter_map(|it| key.line_hash(it))
                .collect::<Vec<_>>();
            if !hashes.is_empty() {
                made.push(Decision { at: now, what, path: path.to_owned(), hashes });
            }
            Ok(())
        };
        for item in before {
            let kept =
                left.get_mut(&item.hash[..]).filter(|it| **it > 0).map(|it| *it -= 1).is_some();
            let Some(citation) = item.citation.as_ref().filter(|_| !kept) else { continue };
            // An item with other words and the same sources was changed, not deleted.
            let reworded = after.iter().any(|it| it.citation.as_ref() == Some(citation));
            if !reworded {
                decide(DecisionKind::Deleted, citation)?;
            }
        }
        let known: BTreeSet<&str> = before.iter().map(|it| &it.hash[..]).collect();
        for item in after.iter().filter(|it| !known.contains(&it.hash[..])) {
            let Some(citation) = &item.citation else { continue };
            let texts = self.cited_texts(citation, &rules)?;
            if view.inventory.decisions.is_deleted(path, texts.iter().map(String::as_str)) {
                decide(DecisionKind::Restored, citation)?;
            }
        }
        Ok(made)
    }

    /// Returns the texts of cited lines as they read when they were cited, as far as they are known.
    ///
    /// A log may have changed in the same breath: what stands under the numbers now may be something
    /// else. The recorded hashes say what stood there, and its words are in the log or in the history.
    fn cited_texts(
        &self,
        citation: &Citation,
        rules: &PrivacyRules,
    ) -> Result<Vec<String>, CompactionError> {
        let mut texts = Vec::new();
        for (stem, lines) in citation.files() {
            // A log that cannot be read is reported by the scan; its lines cannot come back.
            let log = self.vault.read_log(stem).ok().flatten();
            let log = log.map(|it| privacy::sanitize(&it, rules));
            let text = |log: &SanitizedLog, line| Some(log.line(line)?.text().to_owned());
            let hash_of = |line: &SanitizedLine| {
                if stem.is_summary() {
                    records::summary_line_hash(line.text())
                } else {
                    line.hash().prefix64()
                }
            };
            let Some(known) = self
                .lineage
                .log(stem)?
                .filter(|it| log.as_ref().map(SanitizedLog::hash) != Some(it.hash))
            else {
                texts.extend(lines.iter().filter_map(|it| text(log.as_ref()?, it)));
                continue;
            };
            let mut logs: Vec<SanitizedLog> = log.into_iter().collect();
            let bytes = self.lineage.content(known.hash)?;
            let folded = bytes.and_then(|it| DailyLog::parse(stem.clone(), &it).ok());
            logs.extend(folded.map(|it| privacy::sanitize(&it, rules)));
            for hash in lines.iter().filter_map(|it| known.line_hash(it)) {
                let mut all = logs.iter().flat_map(SanitizedLog::lines);
                let line = all.find(|it| hash_of(it) == hash);
                texts.extend(line.map(|it| it.text().to_owned()));
            }
        }
        Ok(texts)
    }

    /// Makes the key of a root whose first decision this is.
    pub(crate) fn create_decisions_key(&self) -> Result<Decisions, CompactionError> {
        let path = self.vault.layout().decisions();
        let text = self.vault.read_text(&path)?;
        let known = text.as_deref().map(Decisions::parse).unwrap_or_default();
        if known.has_key() {
            return Ok(known);
        }
        let fresh = new_key()?;
        // A record of work that was taken back alone has none yet, and gets it behind that.
        let head = fresh.header_line();
        self.vault.append(
            &self.write_lock()?,
            &path,
            &head,
            text.as_ref().map_or("", |_| &head),
            true,
        )?;
        self.update_decisions_copy()?;
        Ok(Decisions::parse(&format!("{}\n{head}", text.unwrap_or_default())))
    }

    /// Writes down that bullets were deleted whose words the fold of a file would bring back. Where
    /// the database was lost before, only the file itself tells of that.
    pub(crate) fn record_deleted_items(
        &self,
        view: &RootSnapshot,
        path: &str,
        items: &[Item],
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let decisions = &view.inventory.decisions;
        let mut gone = Vec::new();
        for item in items {
            let Some(citation) = &item.citation else { continue };
            let texts = self.cited_texts(citation, &view.inventory.rules)?;
            if !decisions.is_deleted(path, texts.iter().map(String::as_str)) {
                let citation = item.citation.clone();
                gone.push(ItemRecord { line: 0, hash: item.hash(), citation });
            }
        }
        let made = self.decisions_from_edit(view, path, &gone, &[], now)?;
        self.append_decisions(&made)
    }

    pub(crate) fn append_decisions(&self, made: &[Decision]) -> Result<(), CompactionError> {
        if made.is_empty() {
            return Ok(());
        }
        let text: String = made.iter().map(Decision::print).collect();
        let path = self.vault.layout().decisions();
        // `decide` made the file with its key, so an empty head never stands in it.
        self.vault.append(&self.write_lock()?, &path, "", &text, true)?;
        self.update_decisions_copy()
    }

    /// Has citations follow what a tier did to files that are cited themselves; returns whether any
    /// file was written.
    pub(crate) fn update_citations_after_tier(
        &mut self,
        run: RunId,
        (trigger, now): (&str, DateTime<Utc>),
        report: &mut RunReport,
        view: &RootSnapshot,
    ) -> Result<bool, CompactionError> {
        let run = Some(run);
        let mut noticing = ReconcileRun { run, ..ReconcileRun::new(trigger, now) };
        let followed = defer_if_changed(self.update_moved_citations(&mut noticing, view));
        noticing.report.jobs.into_iter().for_each(|it| report.push(it));
        followed
    }

    /// Rewrites the citations of lines that moved.
    fn update_moved_citations(
        &mut self,
        noticing: &mut ReconcileRun<'_>,
        view: &RootSnapshot,
    ) -> Result<bool, JobFailure> {
        let rules = view.inventory.rules.clone();
        let mut known = self.lineage.logs()?;
        let mut changed = LineMaps::new();
        let mut recorded = RecordedChanges::default();
        let extracted = self.lineage.extracted_logs()?;
        for (stem, file) in &view.inventory.logs {
            let Some(old) = known.get(stem).filter(|it| it.hash != file.hash) else { continue };
            let Some(log) = self.vault.read_log(stem)? else { continue };
            let new = LogRecord::of(
                &privacy::sanitize(&log, &rules),
                self.vault.layout().source_path(stem),
            );
            let moves = map_lines(old, &new);
            if moves.only_moved() && extracted.get(stem) == Some(&rules.input_hash(stem, old.hash))
            {
                recorded.extracted.push((stem.clone(), rules.input_hash(stem, new.hash)));
            }
            recorded.logs.push(new);
            changed.insert(stem.clone(), moves);
        }
        for (old, new) in self.changed_cited_summaries(view)? {
            if let Some(old) = old {
                changed.insert(old.stem.clone(), map_lines(&old, &new));
                known.insert(old.stem.clone(), old);
            }
            recorded.logs.push(new);
        }
        let Some(first) = recorded.logs.first() else { return Ok(false) };
        let first = Period::containing(Grain::Week, first.stem.date());
        let step = update_id(&known, &changed, view);
        let mut files = Vec::new();
        self.update_memory_and_wisdom_citations(view, &known, &changed, &mut files, &mut recorded)?;
        let weeks =
            self.update_summary_citations(view, &known, &changed, &mut files, &mut recorded)?;
        // A crash may have come between some of the files and the record of where lines stand: to
        // shift those files once more would have them cite other lines.
        let done = self.lineage.interrupted_writes(step)?;
        files.retain(|it| !done.contains(&it.path));
        recorded.documents.retain(|it| !done.contains(&it.path));
        let followed = CitationUpdate {
            what: "moved",
            reason: LINES_MOVED.to_owned(),
            period: weeks.first().copied().unwrap_or(first),
            logs: changed.keys().collect(),
            id: step,
            files,
            recorded,
        };
        self.record_citation_update(noticing, view, followed)
    }

    /// Returns the weekly and monthly files that are cited and read otherwise than when citations of
    /// them were right, each as it was, if that is known, and as it is.
    fn changed_cited_summaries(
        &self,
        view: &RootSnapshot,
    ) -> Result<Vec<(Option<LogRecord>, LogRecord)>, JobFailure> {
        let mut known = self.lineage.cited_summaries()?;
        let mut stems = self.lineage.cited_summary_stems()?;
        stems.extend(known.keys().cloned());
        let mut found = Vec::new();
        for stem in stems {
            let Some(file) = summary_file(&view.inventory, &stem) else { continue };
            let old = known.remove(&stem);
            let same = old.as_ref().is_some_and(|it| it.hash == file.hash);
            if same || view.record.damaged.contains_key(&file.path) {
                continue;
            }
            let Some(text) = self.vault.read_text(&file.path)? else { continue };
            let now = records::lines_of_summary(&stem, &file.path, &text);
            found.extend(now.filter(|it| it.hash == file.hash).map(|now| (old, now)));
        }
        Ok(found)
    }

    /// Returns the lines of the weekly and monthly files that items cite and that were not cited before.
    ///
    /// # Errors
    ///
    /// Returns [`JobFailure::Stale`] where one reads otherwise than citations of it suppose: then they
    /// are to follow first.
    pub(crate) fn newly_cited_summaries(
        &self,
        items: &[ItemRecord],
        view: &RootSnapshot,
    ) -> Result<Vec<LogRecord>, JobFailure> {
        let cited = items.iter().filter_map(|it| it.citation.as_ref());
        let stems: BTreeSet<&Stem> =
            cited.flat_map(Citation::files).map(|it| it.0).filter(|it| it.is_summary()).collect();
        let mut found = Vec::new();
        for stem in stems {
            let path = self.vault.layout().source_path(stem);
            if view.record.damaged.contains_key(&path) {
                continue;
            }
            let Some(text) = self.vault.read_text(&path)? else { continue };
            let Some(now) = records::lines_of_summary(stem, &path, &text) else { continue };
            match self.lineage.log(stem)? {
                None => found.push(now),
                Some(known) if known.hash == now.hash => {}
                Some(_) => return Err(JobFailure::SourceChanged(path)),
            }
        }
        Ok(found)
    }

    /// Has citations follow weekly and monthly files that are about to be written with other lines,
    /// in all files but those of `whole`, which cite these lines already.
    pub(crate) fn update_citations_of_written(
        &self,
        view: &RootSnapshot,
        whole: &BTreeSet<&str>,
        files: &mut Vec<FileWrite>,
        recorded: &mut RecordedChanges,
    ) -> Result<(), JobFailure> {
        let known = self.lineage.cited_summaries()?;
        let mut changed = LineMaps::new();
        for file in &*files {
            let stem = period_of_path(&file.path).and_then(Stem::of_summary);
            let Some(old) = stem.and_then(|it| known.get(&it)) else { continue };
            let text = file.text.as_deref();
            let new = text.and_then(|it| records::lines_of_summary(&old.stem, &file.path, it));
            if let Some(new) = new.filter(|it| it.hash != old.hash) {
                changed.insert(old.stem.clone(), map_lines(old, &new));
                recorded.logs.push(new);
            }
        }
        let (mut above, mut of_above) = (Vec::new(), RecordedChanges::default());
        self.update_memory_and_wisdom_citations(view, &known, &changed, &mut above, &mut of_above)?;
        self.update_summary_citations(view, &known, &changed, &mut above, &mut of_above)?;
        above.retain(|it| !whole.contains(&it.path[..]));
        of_above.documents.retain(|it| !whole.contains(&it.path[..]));
        files.append(&mut above);
        recorded.documents.append(&mut of_above.documents);
        Ok(())
    }

    /// Writes files that followed their logs, and a job that says so; returns whether there were any.
    pub(crate) fn record_citation_update(
        &mut self,
        noticing: &mut ReconcileRun<'_>,
        view: &RootSnapshot,
        followed: CitationUpdate<'_>,
    ) -> Result<bool, JobFailure> {
        let CitationUpdate { what, reason, period, logs, id: step, files, recorded } = followed;
        if files.is_empty() {
            self.write_files(None, None, &[], &recorded)?;
            return Ok(false);
        }
        let ReconcileRun { run, trigger, now, report } = noticing;
        let run = self.ensure_run(run, trigger, *now).map_err(JobFailure::Critical)?;
        let hash_of = |stem: &Stem| match view.inventory.logs.get(stem) {
            Some(log) => log.input_hash.hex16(),
            None => {
                summary_file(&view.inventory, stem).map_or_else(String::new, |it| it.hash.hex16())
            }
        };
        let input = |it: &&Stem| (it.to_string(), hash_of(it));
        let inputs: BTreeMap<String, String> = logs.iter().map(input).collect();
        let fold = plan::fingerprint(Tier::Weekly, period, &inputs);
        let job = NewJob {
            // Not the fingerprint of a fold: the fold of these inputs may still be due.
            fingerprint: ContentHash::of(format!("{what} {fold}")),
            tier: Tier::Weekly,
            period,
            engine: self.engine.id().to_owned(),
            inputs: step,
            now: *now,
        };
        let id = self.lineage.begin_job(run, &job)?;
        let mut receipt = Receipt::new(JobOutcome::Written, Some(reason.clone()), (self.clock)());
        let paths: Vec<String> = files.iter().map(|it| it.path.clone()).collect();
        receipt.path = paths.first().cloned();
        receipt.metrics.sources = count_u32(logs.len());
        self.write_files(None, Some((id, &receipt)), &files, &recorded)?;
        report.push(JobReport::new(Tier::Weekly, period, &receipt, paths, &reason));
        self.mark_months_distilled(run, view, &files, &reason)?;
        Ok(true)
    }

    /// A month in which nothing but citations followed says what it said: what lasts of it is in
    /// `WISDOM.md` already. Should a crash come before, it is looked at once more.
    fn mark_months_distilled(
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
            let job = self.new_job(&CompactionJob {
                tier: Tier::Wisdom,
                period: month,
                reason: DueReason::Changed(vec![month.to_string()]),
                fingerprint: plan::fingerprint(Tier::Wisdom, month, &inputs),
                inputs,
                partial: false,
            });
            let receipt =
                Receipt::new(JobOutcome::Unchanged, Some(reason.to_owned()), (self.clock)());
            let commit = Commit { at: receipt.ended, ..Commit::default() };
            self.lineage.commit_finished_jobs(run, &[(&job, &receipt, commit)])?;
        }
        Ok(())
    }

    /// Typed memories and wisdom entries follow whatever became of the rest of the log. Where a line
    /// of a memory is gone, its hash stays and tells so; in a person's file its number does, too, and
    /// their words stay as they are.
    fn update_memory_and_wisdom_citations(
        &self,
        view: &RootSnapshot,
        known: &BTreeMap<Stem, LogRecord>,
        changed: &LineMaps,
        files: &mut Vec<FileWrite>,
        recorded: &mut RecordedChanges,
    ) -> Result<(), JobFailure> {
        let layout = self.vault.layout();
        for memory in &view.inventory.memories {
            let place = |(at, hash): &(Address, String)| {
                let now = |it: &LineMap| match it.new_line(at.line) {
                    None if memory.is_managed() => it.line_or_position(at.line),
                    now => now.unwrap_or(at.line),
                };
                let line = changed.get(&at.stem).map_or(at.line, now);
                (Address { stem: at.stem.clone(), line }, hash.clone())
            };
            let sources: Vec<_> = memory.sources.iter().map(place).collect();
            if sources == memory.sources {
                continue;
            }
            let path = layout.typed_memory(&memory.file_name.to_string_lossy());
            let Some(old) = self.vault.read_text(&path)? else { continue };
            let moved = TypedMemory { sources, ..memory.clone() };
            let text = if memory.is_managed() {
                moved.print()
            } else {
                let text = replace_sources(&old, &moved.print());
                // One that spells its sources in another way than we do is left alone.
                let read = TypedMemory::parse(&memory.file_name, &text);
                if read.ok().as_ref() != Some(&moved) {
                    continue;
                }
                text
            };
            recorded.documents.push(records::of_memory(&path, &moved, &text));
            files.push(FileWrite { path, text: Some(text), current: Some(old) });
        }
        if let Some(old) = &view.inventory.wisdom {
            let mut file = WisdomFile::parse(old);
            let any = file.update_all_sources(&|entry, mark| {
                let concerned = mark.sources.files().any(|(stem, _)| changed.contains_key(stem));
                let found = concerned.then(|| remap_wisdom_sources(known, changed, mark))?;
                if entry.is_managed() {
                    return Some(found);
                }
                let hash = |at: &Address| {
                    let found = found.iter().find(|it| it.0 == *at).and_then(|it| it.1.clone());
                    found.or_else(|| mark.lines.get(at).cloned())
                };
                let now = remap_citation(changed, &mark.sources);
                Some(now.addresses().map(|at| (at.clone(), hash(&at))).collect())
            });
            if any {
                let (path, text) = (layout.wisdom(), file.print());
                recorded.documents.push(records::of_wisdom(&path, &text));
                files.push(FileWrite { path, text: Some(text), current: Some(old.clone()) });
            }
        }
        Ok(())
    }

    /// Weeks follow where all their changed logs only moved, and months above them with them. Any
    /// other week is due and cites what stands there now; only what a person wrote in it, and in the
    /// month above it, follows here, since the fold keeps that as it stands.
    fn update_summary_citations(
        &self,
        view: &RootSnapshot,
        known: &BTreeMap<Stem, LogRecord>,
        changed: &LineMaps,
        files: &mut Vec<FileWrite>,
        recorded: &mut RecordedChanges,
    ) -> Result<Vec<Period>, JobFailure> {
        let inventory = &view.inventory;
        let is_held = |it: &SummaryFile| view.record.damaged.contains_key(&it.path);
        let mut months: BTreeMap<Period, BTreeMap<String, (String, String)>> = BTreeMap::new();
        let is_log = |it: &&Stem| !it.is_summary();
        let logs = changed.keys().filter(is_log);
        let weeks: BTreeSet<Period> =
            logs.map(|it| Period::containing(Grain::Week, it.date())).collect();
        let mut done = Vec::new();
        let mut parents: BTreeSet<Period> = weeks.iter().filter_map(|it| it.parent()).collect();
        for stem in changed.keys().filter(|it| it.is_summary()) {
            let citing = self.lineage.items_citing_range(stem, (1, u32::MAX))?;
            let periods = citing.iter().filter_map(|it| period_of_path(&it.item.path));
            parents.extend(periods.filter(|it| it.grain() == Grain::Month));
        }
        let none = BTreeMap::new();
        for week in weeks {
            let Some(file) = inventory.weekly.get(&week).filter(|it| !is_held(it)) else {
                continue;
            };
            let of_week = changed
                .iter()
                .filter(|(stem, _)| is_log(stem))
                .filter(|(stem, _)| Period::containing(Grain::Week, stem.date()) == week);
            let of_week: Vec<(&Stem, &LineMap)> = of_week.collect();
            let sources = file.header.as_ref().map(|it| &it.sources);
            let named = |stem: &Stem| {
                sources.and_then(|it| it.get(stem.as_str()))
                    == known
                        .get(stem)
                        .map(|it| inventory.rules.input_hash(stem, it.hash).hex16())
                        .as_ref()
            };
            if !of_week.iter().all(|(stem, moves)| moves.only_moved() && named(stem)) {
                self.update_file_citations(
                    week,
                    file,
                    BulletScope::UserOnly,
                    &none,
                    changed,
                    files,
                    recorded,
                )?;
                continue;
            }
            let renames: BTreeMap<String, String> = of_week
                .iter()
                .map(|(stem, _)| (stem.to_string(), inventory.logs[*stem].input_hash.hex16()))
                .collect();
            let followed = self.update_file_citations(
                week,
                file,
                BulletScope::All,
                &renames,
                changed,
                files,
                recorded,
            )?;
            let Some(body_hash) = followed else { continue };
            let body_hash = inventory.rules.summary_input_hash(week, &body_hash);
            done.push(week);
            if let Some(month) = week.parent() {
                months
                    .entry(month)
                    .or_default()
                    .insert(week.to_string(), (file.body_hash.clone(), body_hash));
            }
        }
        for month in parents {
            let Some(file) = inventory.monthly.get(&month).filter(|it| !is_held(it)) else {
                continue;
            };
            let Some(header) = &file.header else { continue };
            let Some(weeks) = months.remove(&month) else {
                self.update_file_citations(
                    month,
                    file,
                    BulletScope::UserOnly,
                    &none,
                    changed,
                    files,
                    recorded,
                )?;
                continue;
            };
            // A month that was due before stays due: only hashes that it knew are replaced.
            let renames: BTreeMap<String, String> = weeks
                .into_iter()
                .filter(|(week, (old, _))| header.sources.get(week) == Some(old))
                .map(|(week, (_, new))| (week, new))
                .collect();
            self.update_file_citations(
                month,
                file,
                BulletScope::All,
                &renames,
                changed,
                files,
                recorded,
            )?;
        }
        Ok(done)
    }

    /// Rewrites the citations of one file and the hashes of its sources; returns the hash of the
    /// new body, or `None` when the file cannot be followed now.
    #[expect(clippy::too_many_arguments, reason = "what is rewritten, by what, and where it goes")]
    fn update_file_citations(
        &self,
        period: Period,
        file: &SummaryFile,
        whose: BulletScope,
        renames: &BTreeMap<String, String>,
        changed: &LineMaps,
        files: &mut Vec<FileWrite>,
        recorded: &mut RecordedChanges,
    ) -> Result<Option<String>, JobFailure> {
        let Some(old) =
            self.vault.read_text(&file.path)?.filter(|it| ContentHash::of(it) == file.hash)
        else {
            return Ok(None);
        };
        let Ok(mut summary) = Summary::parse(period, &old) else { return Ok(None) };
        let Some(header) = &mut summary.header else { return Ok(None) };
        for (name, hash) in renames {
            header.sources.insert(name.clone(), hash.clone());
        }
        let theirs = user_bullets(&summary);
        // The fold cites lines of logs where they stand now; it may not be due for the others.
        let files_alone: LineMaps = changed
            .iter()
            .filter(|(stem, _)| stem.is_summary())
            .map(|(stem, moves)| (stem.clone(), moves.clone()))
            .collect();
        for (i, block) in summary.blocks.iter_mut().enumerate() {
            let SummaryBlock::Bullet(item, raw) = block else { continue };
            let is_made_anew = whose == BulletScope::UserOnly && !theirs.contains(&i);
            let changed = if is_made_anew { &files_alone } else { changed };
            let Some(citation) = &item.citation else { continue };
            let moved = remap_citation(changed, citation);
            if moved != *citation {
                *raw = replace_citation(raw, &moved);
                *item = Item { text: item.text.clone(), citation: Some(moved) };
            }
        }
        let text = summary.print();
        if text != old {
            let document: DocumentRecord = records::of_summary(&file.path, &summary, &text);
            recorded.documents.push(document);
            files.push(FileWrite { path: file.path.clone(), text: Some(text), current: Some(old) });
        }
        Ok(Some(summary.body_hash().hex16()))
    }
}

/// Returns the week or month whose file stands at a path.
pub(crate) fn period_of_path(path: &str) -> Option<Period> {
    path.rsplit('/').next()?.strip_suffix(".md")?.parse().ok()
}

/// Returns the weekly or monthly file that is cited by this name.
fn summary_file<'a>(inventory: &'a Inventory, stem: &Stem) -> Option<&'a SummaryFile> {
    let period = stem.summary_period()?;
    match period.grain() {
        Grain::Week => inventory.weekly.get(&period),
        _ => inventory.monthly.get(&period),
    }
}

/// Names the step from the files that citations were right for to those that stand now. What stands
/// now of a weekly or monthly file is left out, since the step itself may rewrite it.
fn update_id(
    known: &BTreeMap<Stem, LogRecord>,
    changed: &LineMaps,
    view: &RootSnapshot,
) -> ContentHash {
    let hex = |it: Option<ContentHash>| it.map_or_else(String::new, |it| it.hex16());
    let of = |stem: &Stem| {
        let before = hex(known.get(stem).map(|it| it.hash));
        format!("{stem} {before} {}", hex(view.inventory.logs.get(stem).map(|it| it.hash)))
    };
    ContentHash::of(changed.keys().map(of).collect::<Vec<_>>().join("\n"))
}

/// Returns where the lines went between two records.
pub(crate) fn map_lines(old: &LogRecord, new: &LogRecord) -> LineMap {
    let hashes =
        |it: &LogRecord| LineHashes { first: it.first_line, hashes: it.line_hashes.clone() };
    LineMap::between(&hashes(old), &hashes(new))
}

/// A file that is being changed right now is looked at again by the next pass.
fn defer_if_changed(followed: Result<bool, JobFailure>) -> Result<bool, CompactionError> {
    match followed {
        Ok(any) => Ok(any),
        Err(JobFailure::Critical(error)) => Err(error),
        Err(JobFailure::Vault(VaultError::Changed { .. }) | JobFailure::Unreadable { .. }) => {
            Ok(false)
        }
        Err(JobFailure::Vault(error)) => Err(error.into()),
        Err(_) => Ok(false),
    }
}

/// Returns the hashes of the bullets that a weekly or monthly file says we wrote in it.
fn listed_hashes(path: &str, text: &str) -> Option<BTreeSet<String>> {
    let name = path.rsplit('/').next()?.strip_suffix(".md")?;
    let header = SummaryHeader::read(name.parse().ok()?, text).ok().flatten()?;
    Some(header.items.into_iter().collect())
}

/// Whose bullets are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BulletScope {
    All,
    UserOnly,
}

/// Returns the places of the bullets that the next fold may keep as they stand: those of a person's,
/// and those of ours beneath which a person wrote something.
pub(crate) fn user_bullets(summary: &Summary) -> BTreeSet<usize> {
    let mut owners = summary.ownership().owners.into_iter();
    let mut found = BTreeSet::new();
    for (i, block) in summary.blocks.iter().enumerate() {
        let next = summary.blocks.get(i + 1).map(SummaryBlock::raw);
        let beneath = next.is_some_and(|it| it.starts_with([' ', '\t']) && !it.trim().is_empty());
        if block.item().is_some() && (owners.next() == Some(BulletOwner::User) || beneath) {
            found.insert(i);
        }
    }
    found
}

/// Returns the text of a memory with the sources that another text of it has, and no other byte
/// changed.
pub(crate) fn replace_sources(text: &str, other: &str) -> String {
    let span = |text: &str| {
        let from = text.find("\nsources:")? + 1;
        let rest = text[from..].split_inclusive('\n').skip(1);
        let more = rest.take_while(|it| it.starts_with([' ', '\t', '-']) && !it.starts_with("---"));
        let first = text[from..].find('\n')? + 1;
        Some(from..from + first + more.map(str::len).sum::<usize>())
    };
    match (span(text), span(other)) {
        (Some(old), Some(new)) => {
            let end = if text[old.clone()].ends_with("\r\n") { "\r\n" } else { "\n" };
            let sources = other[new].trim_end();
            [&text[..old.start], sources, end, &text[old.end..]].concat()
        }
        _ => text.to_owned(),
    }
}

pub(crate) fn remap_citation(changed: &LineMaps, citation: &Citation) -> Citation {
    changed.iter().fold(citation.clone(), |citation, (stem, moves)| moves.remap(stem, &citation))
}

/// Returns the sources of an entry where they stand now, each with the hash of its line as it was
/// when it was cited.
pub(crate) fn remap_wisdom_sources(
    known: &BTreeMap<Stem, LogRecord>,
    changed: &LineMaps,
    mark: &WisdomEntryMeta,
) -> Vec<CitedLine> {
    let before = |at: &Address| known.get(&at.stem)?.line_hash(at.line).map(hash::hex4_of);
    let mut sources: BTreeMap<Address, Option<String>> = BTreeMap::new();
    let mut lost = Vec::new();
    for at in mark.sources.addresses() {
        let Some(moves) = changed.get(&at.stem) else {
            let hash = mark.lines.get(&at).cloned();
            sources.insert(at, hash);
            continue;
        };
        let stem = at.stem.clone();
        let hash = mark.lines.get(&at).cloned();
        if stem.is_summary() {
            // Its words are looked for again when the month is distilled.
            let line = moves.new_line(at.line).unwrap_or_else(|| moves.lost_line(at.line));
            sources.insert(Address { stem, line }, hash);
            continue;
        }
        let hash = hash.or_else(|| before(&at));
        match moves.new_line(at.line) {
            Some(line) => drop(sources.insert(Address { stem, line }, hash)),
            None => lost.push((Address { stem, line: moves.line_or_position(at.line) }, hash)),
        }
    }
    // An address names one line: a lost one that stands where another line is cited gets a number
    // that no line of the log has.
    for (mut at, hash) in lost {
        while sources.contains_key(&at) {
            at.line =
                if is_removed_line(at.line) { at.line + 1 } else { removed_line_number(at.line) };
        }
        sources.insert(at, hash);
    }
    sources.into_iter().collect()
}

/// Puts another citation in the place of the one that ends a bullet; its words stay byte for byte.
pub(crate) fn replace_citation(raw: &str, citation: &Citation) -> String {
    let cut = raw.rfind(']').and_then(|close| Some((raw[..close].rfind('[')?, close)));
    match cut {
        Some((open, close)) => format!("{}{citation}{}", &raw[..=open], &raw[close..]),
        None => raw.to_owned(),
    }
}

/// Draws a key for a record of decisions.
pub(crate) fn new_key() -> Result<Decisions, CompactionError> {
    let mut random = [0; 32];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| CompactionError::NoRandomness(errno.into()))?;
    Ok(Decisions::with_key(random))
}
