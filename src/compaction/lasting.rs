//! What lasts: typed memories from days, their index, and `WISDOM.md` from months.

use std::{
    cell::{Cell, LazyCell},
    collections::BTreeSet,
    path::Path,
};

use super::{
    Compactor, JobError, Made, PassError, View, ask,
    commit::{NewFile, Recorded},
    draft::{read_logs, unreadable},
    fold::count,
    ground::{self, Violation},
    late::{self, Doubt, Revised, Shaken},
    nearby::Nearby,
    parallel,
    plan::{Job, Reason},
    records,
    report::{JobReport, PassReport},
    review::{self, KeptOut},
};
use crate::{
    compaction::Watcher,
    config::settings::Review,
    engine::{DistilInput, Engine, ExtractInput, MemoryDraft, WisdomOp},
    memory::{
        address::{Address, Citation, LineSet, Stem},
        decision::Decisions,
        document::Summary,
        index,
        item::{Item, Section},
        log::DailyLog,
        period::Period,
        typed::{self, TypedMemory},
        typed_schema,
        wisdom::{WisdomCaps, WisdomEntry, WisdomFile},
    },
    privacy::{self, Rules, ServedLog, SpelledSecrets},
    store::{
        inventory::Inventory,
        lineage::{
            jobs::{JobId, NewJob, Outcome, Receipt, RunId, State},
            record::{Commit, DocumentRecord, LogRecord},
            review::HeldRecord,
        },
        vault::{Vault, VaultError},
    },
};

/// How many days are read side by side and, where they have no memory, recorded at once: most days
/// have none, and a transaction costs more than reading the day.
const DAYS_AT_ONCE: usize = 64;

/// Why lines are held that alone carry no memory and no wisdom.
const ELSEWHERE: &str = "from-elsewhere";

/// A day that was read.
struct Day {
    /// New ones.
    memories: Vec<TypedMemory>,
    /// Those whose lines were changed or moved.
    revised: Vec<Revised>,
    /// Those whose lines were changed and that nothing says any more.
    withdrawn: Vec<TypedMemory>,
    /// Those of a person's whose lines were changed. What would become of them is in `recorded`.
    offered: Vec<TypedMemory>,
    rejected: usize,
    /// What the check kept out.
    kept_out: Vec<KeptOut>,
    recorded: Recorded,
    source_chars: usize,
}

impl Compactor<'_> {
    /// Extracts typed memories from days, then brings the index up to date.
    pub(super) fn make_extracts(
        &mut self,
        run: RunId,
        jobs: &[Job],
        view: &View,
        watcher: &mut dyn Watcher,
        report: &mut PassReport,
    ) -> Result<(), PassError> {
        let mut existing = view.inventory.memories.clone();
        let rules = view.inventory.rules.clone();
        let mut doubts = late::doubts(self.vault, jobs, &existing, &rules);
        for doubt in doubts.iter().filter(|it| !it.is_lost()) {
            let same = |it: &&mut TypedMemory| it.file_name == doubt.memory.file_name;
            if let Some(memory) = existing.iter_mut().find(same) {
                *memory = doubt.readdressed();
            }
        }
        if self.engine.is_model() {
            return self.ask_for_extracts(run, jobs, (existing, doubts), view, watcher, report);
        }
        for (i, chunk) in jobs.chunks(DAYS_AT_ONCE).enumerate() {
            if watcher.is_stopped() {
                report.left += jobs.len() - i * DAYS_AT_ONCE;
                break;
            }
            watcher.begins(&chunk[0], jobs.len() - i * DAYS_AT_ONCE - 1);
            let mut quiet: Vec<(NewJob, Receipt, Recorded)> = Vec::new();
            for (job, day) in chunk.iter().zip(self.read_days(chunk, &existing, &doubts, view)) {
                let made = match day {
                    Ok(day) if day.is_quiet() => {
                        let receipt = self.day_receipt(job, &day, Outcome::Unchanged);
                        quiet.push((self.new_job(job), receipt.clone(), day.recorded));
                        Made { receipt, paths: Vec::new() }
                    }
                    first => {
                        let known = (&mut existing, &mut doubts);
                        match self.make_day(run, job, first, known, view)? {
                            Some(made) => made,
                            None => continue,
                        }
                    }
                };
                let due = match made.receipt.outcome {
                    Outcome::Unchanged => "nothing to remember".to_owned(),
                    _ => made.receipt.reason.clone().unwrap_or_else(|| job.reason.to_string()),
                };
                let done = JobReport::new(job.tier, job.period, &made.receipt, made.paths, &due);
                watcher.ended(&done);
                report.push(done);
            }
            self.record_quiet(run, &quiet)?;
        }
        Ok(())
    }

    /// Asks a model for the typed memories of days, one after the other, the newest first. Stops when it
    /// cannot be had.
    fn ask_for_extracts(
        &mut self,
        run: RunId,
        jobs: &[Job],
        (mut existing, mut doubts): (Vec<TypedMemory>, Vec<Doubt>),
        view: &View,
        watcher: &mut dyn Watcher,
        report: &mut PassReport,
    ) -> Result<(), PassError> {
        let Inventory { decisions, rules, .. } = &view.inventory;
        let mut nearby = Nearby::of(&self.lineage.logs()?, &view.record, rules);
        for (i, job) in jobs.iter().rev().enumerate() {
            if watcher.is_stopped() || report.model.is_some() {
                report.left += jobs.len() - i;
                break;
            }
            watcher.begins(job, jobs.len() - i - 1);
            let Some(id) = self.begin(run, job)? else { continue };
            self.lineage.mark(id, State::Called)?;
            // Who asks for a day by force wants all of it read.
            let known = (job.reason != Reason::Forced).then_some(&nearby);
            let reader = DayReader {
                vault: self.vault,
                engine: self.engine,
                decisions,
                rules,
                nearby: known,
            };
            let day = reader.read(job, &existing, &doubts);
            let made = day.and_then(|it| self.write_day(job, id, it, (&mut existing, &mut doubts)));
            if made.is_ok() {
                read_logs(self.vault, job, rules).iter().flatten().for_each(|it| nearby.add(it));
            }
            self.finish(job, id, made, watcher, report)?;
        }
        Ok(())
    }

    /// Reads days side by side. Each is compared with the memories that stood before all of them.
    fn read_days(
        &self,
        jobs: &[Job],
        existing: &[TypedMemory],
        doubts: &[Doubt],
        view: &View,
    ) -> Vec<Result<Day, JobError>> {
        let reader = DayReader {
            vault: self.vault,
            engine: self.engine,
            decisions: &view.inventory.decisions,
            rules: &view.inventory.rules,
            nearby: None,
        };
        parallel::map(jobs, |job| reader.read(job, existing, doubts))
    }

    /// Makes a day that has something to remember, or could not be read. `None` when another
    /// process does the same right now.
    fn make_day(
        &mut self,
        run: RunId,
        job: &Job,
        first: Result<Day, JobError>,
        (existing, doubts): (&mut Vec<TypedMemory>, &mut Vec<Doubt>),
        view: &View,
    ) -> Result<Option<Made>, PassError> {
        let Some(id) = self.begin(run, job)? else { return Ok(None) };
        // The days before it may have said the same; what it adds is decided one day at a time.
        let day = first.and_then(|_| {
            let Inventory { decisions, rules, .. } = &view.inventory;
            DayReader { vault: self.vault, engine: self.engine, decisions, rules, nearby: None }
                .read(job, existing, doubts)
        });
        let made = match day.and_then(|day| self.write_day(job, id, day, (existing, doubts))) {
            Ok(made) => made,
            Err(JobError::Critical(error)) => return Err(error),
            Err(error) => self.fail(job, id, &error)?,
        };
        Ok(Some(made))
    }

    /// Records days that left no memory, many in one transaction.
    fn record_quiet(
        &mut self,
        run: RunId,
        quiet: &[(NewJob, Receipt, Recorded)],
    ) -> Result<(), PassError> {
        if quiet.is_empty() {
            return Ok(());
        }
        let commits: Vec<_> = quiet
            .iter()
            .map(|(job, receipt, recorded)| {
                let commit = Commit {
                    logs: &recorded.logs,
                    extracted: &recorded.extracted,
                    held: &recorded.held,
                    proposals: recorded.proposals(),
                    kept_out: recorded.told(),
                    used: &recorded.used,
                    at: receipt.ended,
                    ..Commit::default()
                };
                (job, receipt, commit)
            })
            .collect();
        Ok(self.lineage.commit_done(run, &commits)?)
    }

    fn write_day(
        &mut self,
        job: &Job,
        id: JobId,
        mut day: Day,
        (existing, doubts): (&mut Vec<TypedMemory>, &mut Vec<Doubt>),
    ) -> Result<Made, JobError> {
        let mut files = Vec::new();
        for memory in &day.memories {
            let path = self.vault.layout().typed(&memory.file_name.to_string_lossy());
            let text = memory.print();
            day.recorded.documents.push(records::of_memory(&path, memory, &text));
            files.push(NewFile { path, text: Some(text), standing: None });
        }
        for Revised { before, after } in &day.revised {
            let (path, standing) = self.standing_memory(before)?;
            let text = after.print();
            if text != standing {
                day.recorded.documents.push(records::of_memory(&path, after, &text));
                files.push(NewFile { path, text: Some(text), standing: Some(standing) });
            }
        }
        let paths: Vec<String> = files.iter().map(|it| it.path.clone()).collect();
        for memory in &day.withdrawn {
            let (path, standing) = self.standing_memory(memory)?;
            day.recorded.removed.push(path.clone());
            files.push(NewFile { path, text: None, standing: Some(standing) });
        }
        let outcome = match (files.is_empty(), day.recorded.count_proposed()) {
            (false, _) => Outcome::Written,
            (true, 0) => Outcome::Unchanged,
            (true, _) => Outcome::Skipped,
        };
        let mut receipt = self.day_receipt(job, &day, outcome);
        self.add_spent(&mut receipt);
        receipt.path = files.first().map(|it| it.path.clone());
        self.write(None, Some((id, &receipt)), &files, &day.recorded)?;
        // What was decided about a memory is decided for the days that come after, too.
        let is = |name: &Path| {
            let name = name.to_owned();
            move |it: &TypedMemory| it.file_name == name
        };
        for Revised { before, after } in day.revised {
            doubts.retain(|it| it.memory.file_name != before.file_name);
            if let Some(at) = existing.iter().position(is(&before.file_name)) {
                existing[at] = after;
            }
        }
        for memory in &day.withdrawn {
            doubts.retain(|it| it.memory.file_name != memory.file_name);
            existing.retain(|it| it.file_name != memory.file_name);
        }
        for memory in &day.offered {
            doubts.retain(|it| it.memory.file_name != memory.file_name);
        }
        existing.append(&mut day.memories);
        Ok(Made { receipt, paths })
    }

    /// Returns path and text of a memory's file, if it is still the one that was looked at.
    fn standing_memory(&self, memory: &TypedMemory) -> Result<(String, String), JobError> {
        let path = self.vault.layout().typed(&memory.file_name.to_string_lossy());
        let text = self.vault.read_text(&path)?;
        let same = |it: &String| {
            TypedMemory::parse(&memory.file_name, it).is_ok_and(|found| found == *memory)
        };
        match text.filter(same) {
            Some(text) => Ok((path, text)),
            None => Err(JobError::Stale(path)),
        }
    }

    fn day_receipt(&self, job: &Job, day: &Day, outcome: Outcome) -> Receipt {
        let mut reason = job.reason.to_string();
        for memory in &day.withdrawn {
            let path = self.vault.layout().typed(&memory.file_name.to_string_lossy());
            reason.extend(["; ", &path, " withdrawn: its source changed"]);
        }
        match day.recorded.count_proposed() {
            0 => {}
            proposed => reason = format!("{reason}; {}", review::wait(proposed)),
        }
        if let Some(note) = review::note(&day.kept_out) {
            reason = format!("{reason}; {note}");
        }
        let mut receipt = Receipt::new(outcome, Some(reason), (self.clock)());
        receipt.figures.sources = count(job.inputs.len());
        receipt.figures.source_chars = day.source_chars as u64;
        let written = day.memories.iter().chain(day.revised.iter().map(|it| &it.after));
        receipt.figures.output_chars =
            written.clone().map(|it| it.body.chars().count() as u64).sum();
        receipt.figures.items = count(written.count());
        receipt.figures.rejected = count(day.rejected);
        receipt
    }

    /// Brings `MEMORY.md` up to date with the typed memories that stand there, and returns its path
    /// if it had to be written.
    pub(super) fn refresh_index(
        &mut self,
        run: Option<RunId>,
        view: &View,
    ) -> Result<Option<String>, PassError> {
        let inventory = &view.inventory;
        if inventory.memories.is_empty() && inventory.index.is_none() {
            return Ok(None);
        }
        let text = index::render(inventory.index.as_deref(), &inventory.memories, &|it| {
            inventory.rules.written(it)
        });
        if inventory.index.as_deref() == Some(&text) {
            return Ok(None);
        }
        let path = self.vault.layout().index();
        let standing = inventory.index.clone();
        let file = NewFile { path: path.clone(), text: Some(text), standing };
        match self.write(run, None, &[file], &Recorded::default()) {
            Ok(()) => Ok(Some(path)),
            Err(JobError::Critical(error)) => Err(error),
            // A person is at it; the next pass finds what they wrote.
            // Of something else that has its name, the scan has told.
            Err(JobError::Vault(VaultError::Changed { .. } | VaultError::NotAFile { .. })) => {
                Ok(None)
            }
            Err(JobError::Vault(error)) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// Edits `WISDOM.md` by what one month says.
    pub(super) fn distil(&mut self, job: &Job, id: JobId, view: &View) -> Result<Made, JobError> {
        let layout = self.vault.layout();
        let (path, month_path) = (layout.wisdom(), layout.summary(job.period));
        let month_text = self
            .vault
            .read_text(&month_path)?
            .ok_or_else(|| JobError::Stale(month_path.clone()))?;
        let month =
            Summary::parse(job.period, &month_text).map_err(|e| unreadable(&month_path, &e))?;
        let Inventory { decisions, rules, .. } = &view.inventory;
        if job.inputs.values().ne([&rules.input_of_file(job.period, &month.body_hash().hex16())]) {
            return Err(JobError::Stale(month_path));
        }
        let logs = self.logs_beneath(job.period, view)?;
        let standing = self.vault.read_text(&path)?;
        let mut file = match &standing {
            Some(text) => WisdomFile::parse(text),
            None => WisdomFile::new(&view.inventory.rules.shown(&self.settings.agent_name)),
        };
        let items = cite_own_lines(&month, &month_text, rules);
        let summaries = self.summaries_cited(&month, &items, &file, rules)?;
        follow_summaries(&mut file, &summaries);
        let shaken = self.shaken(&mut file, &logs, rules)?;
        // An entry that nothing carries must not keep out what may take its place.
        let is_sound = |it: &&WisdomEntry| !shaken.iter().any(|s| it.id() == Some(&s.id));
        let entries: Vec<WisdomEntry> = file.entries().filter(is_sound).cloned().collect();
        let memories = memories_of(job.period, &view.inventory.memories);
        let wisdom = &self.settings.settings.wisdom;
        let ops = ask(self.engine, |engine| {
            engine.distil(&DistilInput {
                month: job.period,
                items: &items,
                logs: &logs,
                entries: &entries,
                memories: &memories,
                categories: &wisdom.categories,
            })
        })?;
        let caps = WisdomCaps { entries: wisdom.max_entries, chars: wisdom.max_chars };
        // What is said is checked against what people wrote above the logs, too.
        let written = summaries.iter().map(|(_, log)| log);
        let mut lines: Vec<ServedLog> = written.chain(&logs).cloned().collect();
        lines.sort_by(|a, b| a.stem().cmp(b.stem()));
        let edit = Edit {
            late: matches!(job.reason, Reason::Changed(_)),
            logs: &lines,
            memories: &memories,
            is_deleted: &|citation| decisions.is_deleted(&path, texts(citation, &lines)),
            rules,
            shaken: &shaken,
        };
        let before = file.clone();
        let mut done = edit.apply(&mut file, &ops, caps);
        let proposed = match wisdom.review {
            Review::Manual => review::changes_of(&done.ops, &done.dropped, &path, decisions),
            Review::Auto => Vec::new(),
        };
        if wisdom.review == Review::Manual && done.is_change() {
            file = before;
            done = done.undone();
        }
        if proposed.is_empty() {
            file.add_distilled(job.period);
        }
        done.newest.into_iter().for_each(|date| file.set_compacted(date));
        let text = file.print();
        let outcome = if !proposed.is_empty() {
            Outcome::Skipped
        } else if done.changed > 0 || !done.dropped.is_empty() || standing.is_none() {
            Outcome::Written
        } else {
            Outcome::Unchanged
        };
        let told = review::told(&done.kept_out, &path, self.engine, decisions, rules);
        let reason = reason_of(job, &done, proposed.len());
        let mut receipt = Receipt::new(outcome, Some(reason), (self.clock)());
        receipt.path = Some(path.clone());
        receipt.figures.sources = 1;
        receipt.figures.source_chars = month.text_chars() as u64;
        receipt.figures.output_chars = file.chars() as u64;
        receipt.figures.items = count(done.changed);
        self.add_spent(&mut receipt);
        receipt.figures.rejected = count(done.rejected);
        let is_kept = outcome == Outcome::Skipped;
        let documents = if is_kept { Vec::new() } else { vec![records::of_wisdom(&path, &text)] };
        let read = self.lines_read(&logs, &documents, view)?;
        let recorded = Recorded {
            documents,
            logs: read,
            used: vec![month_path],
            held: done.held.iter().flat_map(held_back).collect(),
            proposed: Some((job.fingerprint, job.period, proposed)),
            kept_out: Some((job.fingerprint, job.period, path.clone(), told)),
            ..Recorded::default()
        };
        let files = if standing.as_ref() == Some(&text) || is_kept {
            Vec::new()
        } else {
            vec![NewFile { path: path.clone(), text: Some(text), standing }]
        };
        self.write(None, Some((id, &receipt)), &files, &recorded)?;
        let paths = if outcome == Outcome::Written { vec![path] } else { Vec::new() };
        Ok(Made { receipt, paths })
    }

    /// Returns the lines of logs that were read, and of files that entries cite for the first time.
    fn lines_read(
        &self,
        logs: &[ServedLog],
        documents: &[DocumentRecord],
        view: &View,
    ) -> Result<Vec<LogRecord>, JobError> {
        let path = |log: &ServedLog| self.vault.layout().source(log.stem());
        let mut read: Vec<LogRecord> = logs.iter().map(|it| LogRecord::of(it, path(it))).collect();
        for document in documents {
            read.extend(self.newly_cited(&document.items, view)?);
        }
        Ok(read)
    }

    /// Reads the weekly and monthly files whose own lines are cited, by bullets or by entries.
    fn summaries_cited(
        &self,
        month: &Summary,
        items: &[(Option<Section>, Item)],
        file: &WisdomFile,
        rules: &Rules,
    ) -> Result<Vec<(Summary, ServedLog)>, JobError> {
        let mut stems: BTreeSet<Stem> = BTreeSet::new();
        let marks = file.entries().filter_map(|it| Some(&it.mark.as_ref()?.sources));
        for citation in items.iter().filter_map(|(_, it)| it.citation.as_ref()).chain(marks) {
            stems.extend(citation.files().map(|(stem, _)| stem.clone()).filter(Stem::is_summary));
        }
        let weeks = month.period.weeks();
        let mut found = Vec::new();
        for stem in stems {
            let Some(period) = stem.summary() else { continue };
            let path = self.vault.layout().source(&stem);
            let Some(text) = self.vault.read_text(&path)? else { continue };
            if period != month.period && !weeks.contains(&period) {
                continue;
            }
            let summary = Summary::parse(period, &text).map_err(|e| unreadable(&path, &e))?;
            let log = DailyLog::parse(stem, text.as_bytes()).map_err(|e| unreadable(&path, &e))?;
            found.push((summary, privacy::serve(&log, rules)));
        }
        Ok(found)
    }

    /// Reads the logs of all weeks of a month.
    fn logs_beneath(&self, month: Period, view: &View) -> Result<Vec<ServedLog>, JobError> {
        let rules = view.inventory.rules.clone();
        let mut logs = Vec::new();
        for week in month.weeks() {
            for stem in view.inventory.logs_of(week).map(|(stem, _)| stem) {
                if let Some(log) = self.vault.read_log(stem)? {
                    logs.push(privacy::serve(&log, &rules));
                }
            }
        }
        logs.sort_by(|a, b| a.stem().cmp(b.stem()));
        Ok(logs)
    }
}

/// Reads a day and asks what of it is to be remembered. Writes nothing, so that many can do it.
struct DayReader<'a> {
    vault: &'a Vault,
    engine: &'a dyn Engine,
    decisions: &'a Decisions,
    rules: &'a Rules,
    /// What needs not be read once more.
    nearby: Option<&'a Nearby>,
}

impl Day {
    /// Returns whether it changes no memory.
    fn is_quiet(&self) -> bool {
        self.memories.is_empty()
            && self.revised.is_empty()
            && self.withdrawn.is_empty()
            && self.offered.is_empty()
    }
}

impl DayReader<'_> {
    fn read(&self, job: &Job, existing: &[TypedMemory], doubts: &[Doubt]) -> Result<Day, JobError> {
        let rules = self.rules;
        let logs = read_logs(self.vault, job, rules)?;
        let layout = self.vault.layout();
        // A memory that lost a line must not keep out what may take its place.
        let lost = |it: &&TypedMemory| {
            doubts.iter().any(|doubt| doubt.is_lost() && doubt.memory.file_name == it.file_name)
        };
        let mut known: Vec<TypedMemory> = existing.iter().filter(|it| !lost(it)).cloned().collect();
        let sound = known.len();
        let mut day = Day {
            memories: Vec::new(),
            revised: Vec::new(),
            withdrawn: Vec::new(),
            offered: Vec::new(),
            rejected: 0,
            kept_out: Vec::new(),
            recorded: Recorded::default(),
            source_chars: 0,
        };
        // Only where there is a draft is there a name to be made.
        let secrets = LazyCell::new(|| {
            let mut secrets = SpelledSecrets::default();
            logs.iter().filter_map(ServedLog::raw).for_each(|it| secrets.learn(rules, it));
            secrets
        });
        for log in &logs {
            day.source_chars += log.chars();
            known.truncate(sound);
            known.extend(day.memories.iter().cloned());
            let news = self.nearby.map_or_else(|| Some(log.clone()), |it| it.news(log));
            let drafts = match &news {
                Some(log) => {
                    let input = ExtractInput { log, existing: &known };
                    ask(self.engine, |engine| engine.extract(&input))?
                }
                None => Vec::new(),
            };
            for draft in drafts {
                let failed = Cell::new(None);
                let is_taken = |name: &str| {
                    let mut names = existing.iter().chain(&day.memories).map(|it| &it.file_name);
                    names.any(|it| it.as_os_str().eq_ignore_ascii_case(name))
                        // Also by a file that is no typed memory, or cannot be read as one.
                        || self.vault.stands(&layout.typed(name)).unwrap_or_else(|error| {
                            failed.set(Some(error));
                            false
                        })
                };
                let memory = accept(&draft, &logs, &is_taken, (rules, &secrets));
                if let Some(error) = failed.into_inner() {
                    return Err(error.into());
                }
                let memory = match memory {
                    Ok(memory) => memory,
                    Err(kept_out) => {
                        day.rejected += 1;
                        day.kept_out.push(kept_out);
                        continue;
                    }
                };
                if ground::is_from_elsewhere(&draft.citation, &logs) {
                    day.rejected += 1;
                    day.recorded.held.extend(held_back(&draft.citation));
                    continue;
                }
                let path = layout.typed(&typed::file_name(draft.kind, &draft.topic));
                let barred = self.decisions.is_deleted(&path, texts(&draft.citation, &logs));
                if !barred && !is_known(&memory, &known[..sound]) {
                    day.memories.push(memory);
                }
            }
            day.recorded.extracted.push((log.stem().clone(), log.input()));
            day.recorded.used.push(layout.source(log.stem()));
            day.recorded.logs.push(LogRecord::of(log, layout.source(log.stem())));
        }
        let mut settled = late::take_over(&mut day.memories, doubts);
        late::settle(self.vault, job.period.first(), doubts, &mut settled, rules)?;
        day.revised = settled.revised;
        day.withdrawn = settled.withdrawn;
        let path = |it: &TypedMemory| layout.typed(&it.file_name.to_string_lossy());
        let offers = settled.offered.iter();
        let proposed =
            offers.filter_map(|it| review::offered(it, &path(&it.before), self.decisions));
        day.recorded.proposed = Some((job.fingerprint, job.period, proposed.collect()));
        let index = layout.index();
        let told = review::told(&day.kept_out, &index, self.engine, self.decisions, rules);
        day.recorded.kept_out = Some((job.fingerprint, job.period, index, told));
        day.offered = settled.offered.into_iter().map(|it| it.before).collect();
        Ok(day)
    }
}

/// Says why a month was distilled, and what came of it that is not seen in the file.
fn reason_of(job: &Job, done: &Edited, proposed: usize) -> String {
    let kept_out = review::note(&done.kept_out).map(|it| format!("; {it}")).unwrap_or_default();
    if proposed > 0 {
        return review::wait(proposed) + &kept_out;
    }
    let mut reason = job.reason.to_string();
    for id in &done.dropped {
        reason.extend(["; entry ", id, " dropped: its source changed"]);
    }
    reason + &kept_out
}

/// Returns the bullets of a month. One that a person wrote or changed is a source itself, above the
/// lines that it cites.
fn cite_own_lines(month: &Summary, text: &str, rules: &Rules) -> Vec<(Option<Section>, Item)> {
    let own = privacy::serve_own_lines(month, text, rules);
    let shown = |(section, mut item): (Option<Section>, Item)| {
        item.text = rules.shown(&item.text).into_owned();
        (section, item)
    };
    let seen = |(_, item): &(_, Item)| !own.as_ref().is_some_and(|it| it.holds(item));
    month.bullets_as_sources().map(shown).filter(seen).collect()
}

/// Follows the bullets of people whose words entries repeat to the lines where they stand now.
fn follow_summaries(file: &mut WisdomFile, summaries: &[(Summary, ServedLog)]) {
    let ours: Vec<WisdomEntry> = file.entries().filter(|it| it.is_ours()).cloned().collect();
    for entry in ours {
        let Some(mark) = &entry.mark else { continue };
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
        if sources.rests_on_summary() {
            file.readdress(&mark.id, &sources.addresses().map(source).collect::<Vec<_>>());
        }
    }
}

/// Turns a proposal into a file, or refuses it: words must stand in the cited lines, and the file
/// must pass the schema.
fn accept(
    draft: &MemoryDraft,
    logs: &Vec<ServedLog>,
    is_taken: &dyn Fn(&str) -> bool,
    (rules, secrets): (&Rules, &SpelledSecrets),
) -> Result<TypedMemory, KeptOut> {
    let parts = [Some(&draft.statement), draft.why.as_ref(), draft.how_to_apply.as_ref()];
    let words: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    let item = Item { text: words.join(" "), citation: Some(draft.citation.clone()) };
    let kept_out = |why: String, looks_ill: bool| KeptOut {
        text: format!("{}: {}", draft.name, item.text),
        citation: item.citation.clone(),
        why,
        looks_ill,
        passes: false,
    };
    if let Err(why) = ground::check(&item, logs) {
        return Err(kept_out(why.to_string(), why.is_look()));
    }
    let line_of = |address: &Address| {
        let log = logs.iter().find(|it| *it.stem() == address.stem)?;
        Some((address.clone(), log.line(address.line)?.hash().hex4()))
    };
    let mut memory = TypedMemory {
        file_name: secrets
            .free_file_name(rules, draft.kind, &rules.unmarked(&draft.topic), is_taken)
            .into(),
        kind: draft.kind,
        name: rules.written(&draft.name),
        description: rules.written_behind(&draft.name, &draft.description),
        created: Some(draft.citation.oldest_date()),
        updated: Some(draft.citation.newest_date()),
        sources: draft.citation.addresses().filter_map(|it| line_of(&it)).collect(),
        supersedes: None,
        recorded_body: None,
        other_keys: crate::memory::frontmatter::OtherKeys::default(),
        body: rules.written(&typed::body(
            &draft.statement,
            draft.why.as_deref(),
            draft.how_to_apply.as_deref(),
        )),
    };
    memory.seal();
    match typed_schema::check(&memory) {
        Ok(()) => Ok(memory),
        Err(why) => Err(kept_out(why.to_string(), false)),
    }
}

/// Returns the lines that a person is asked about before something lasting may rest on them alone.
fn held_back(citation: &Citation) -> Vec<(Stem, Vec<HeldRecord>)> {
    let record = |line| HeldRecord { line, why: vec![ELSEWHERE.to_owned()] };
    let files = citation.files();
    files.map(|(stem, lines)| (stem.clone(), lines.iter().map(record).collect())).collect()
}

/// Returns whether a memory that stands there rests on one of the same lines, or says the same.
fn is_known(memory: &TypedMemory, existing: &[TypedMemory]) -> bool {
    existing.iter().any(|it| {
        it.body.trim() == memory.body.trim()
            || (it.kind == memory.kind
                && it.sources.iter().any(|source| memory.sources.contains(source)))
    })
}

/// Returns the typed memories whose newest source lies in the weeks of the month.
fn memories_of(month: Period, memories: &[TypedMemory]) -> Vec<TypedMemory> {
    let weeks = month.weeks();
    let (Some(first), last) = (weeks.first().map(|it| it.first()), month.last_source_day()) else {
        return Vec::new();
    };
    let inside = |it: &&TypedMemory| it.updated.is_some_and(|day| (first..=last).contains(&day));
    memories.iter().filter(inside).cloned().collect()
}

fn texts<'a>(citation: &Citation, logs: &'a [ServedLog]) -> Vec<&'a str> {
    let line = |it: Address| {
        let log = logs.iter().find(|log| *log.stem() == it.stem)?;
        Some(log.line(it.line)?.text())
    };
    citation.addresses().filter_map(line).collect()
}

/// Returns the short hashes of cited lines.
fn hashes(citation: &Citation, logs: &[ServedLog]) -> Vec<(Address, String)> {
    let line = |at: Address| {
        let hash = logs.iter().find(|log| *log.stem() == at.stem)?.line(at.line)?.hash().hex4();
        Some((at, hash))
    };
    citation.addresses().filter_map(line).collect()
}

/// What an engine's operations may do to the file.
pub(super) struct Edit<'a> {
    /// The month was distilled before: only entries that rest on it are touched, and only what a
    /// person wrote is added.
    pub(super) late: bool,
    /// The logs, and the weekly and monthly files that people wrote in.
    pub(super) logs: &'a Vec<ServedLog>,
    pub(super) memories: &'a [TypedMemory],
    pub(super) is_deleted: &'a dyn Fn(&Citation) -> bool,
    /// What may be seen of what is written.
    pub(super) rules: &'a Rules,
    /// Entries that are rewritten by something new, or go.
    pub(super) shaken: &'a [Shaken],
}

/// What they did.
#[derive(Default)]
pub(super) struct Edited {
    pub(super) changed: usize,
    pub(super) rejected: usize,
    /// What the check kept out.
    kept_out: Vec<KeptOut>,
    /// Entries that nothing carries any more.
    dropped: Vec<String>,
    /// What was done, but for what was dropped.
    ops: Vec<WisdomOp>,
    /// What rests on nothing but text from elsewhere, and waits for a person.
    held: Vec<Citation>,
    pub(super) newest: Option<chrono::NaiveDate>,
}

impl Edited {
    /// Returns whether any entry is another one now.
    fn is_change(&self) -> bool {
        !self.ops.is_empty() || !self.dropped.is_empty()
    }

    /// Returns what is left of it when the file stays as it was.
    fn undone(self) -> Self {
        let Self { rejected, kept_out, held, .. } = self;
        Self { rejected, kept_out, held, ..Self::default() }
    }

    fn keep_out(&mut self, title: &str, text: &str, citation: &Citation, why: &Violation) {
        self.rejected += 1;
        self.kept_out.push(KeptOut {
            text: format!("{title}: {text}"),
            citation: Some(citation.clone()),
            why: why.to_string(),
            looks_ill: why.is_look(),
            passes: false,
        });
    }
}

impl Edit<'_> {
    pub(super) fn apply(
        &self,
        file: &mut WisdomFile,
        ops: &[WisdomOp],
        caps: WisdomCaps,
    ) -> Edited {
        let mut done = Edited::default();
        let mut touched = BTreeSet::new();
        let categories: Vec<String> = file.entries().filter_map(|it| it.category.clone()).collect();
        let mut open: Vec<&Shaken> = self.shaken.iter().collect();
        for op in ops {
            let (id, citation) = match op {
                WisdomOp::Add { title, text, category, citation, .. } => {
                    let heir = |it: &&Shaken| it.fit(title, text, citation);
                    let best = (0..open.len()).max_by_key(|&i| (heir(&open[i]), usize::MAX - i));
                    let best = best.filter(|&i| heir(&open[i]).is_some());
                    let late = self.late && best.is_none() && !citation.rests_on_summary();
                    if late || (self.is_deleted)(citation) {
                        continue;
                    }
                    if let Err(why) = self.stands(title, text, citation) {
                        done.keep_out(title, text, citation, &why);
                        continue;
                    }
                    if self.is_from_elsewhere(title, text, citation) {
                        done.held.push(citation.clone());
                        done.rejected += 1;
                        continue;
                    }
                    let (title, text) = self.written(title, text);
                    let id = if let Some(best) = best {
                        let old = open.remove(best);
                        file.readdress(&old.id, &old.sources_with(citation));
                        file.merge(&old.id, Some((&title, &text)), citation);
                        old.id.clone()
                    } else {
                        let category = category.as_deref().map(|it| self.rules.written(it));
                        file.add(&title, &text, category.as_deref(), citation.clone())
                    };
                    (id, citation)
                }
                WisdomOp::Merge { id, words, citation, .. } => {
                    let words = words.as_ref().map(|(title, text)| self.written(title, text));
                    let words = words.as_ref().map(|(title, text)| (&title[..], &text[..]));
                    if let Some((title, text)) = words
                        && let Err(why) = self.stands(title, text, citation)
                    {
                        done.keep_out(title, text, citation, &why);
                        continue;
                    }
                    // It would not even be said again: the same page twice is one voice.
                    if ground::is_from_elsewhere(citation, self.logs) {
                        done.rejected += 1;
                        continue;
                    }
                    if (self.late && !self.rests_here(file, id)) || !file.merge(id, words, citation)
                    {
                        continue;
                    }
                    (id.clone(), citation)
                }
                // An entry that nothing has reinforced is dropped where room is needed, not before.
                WisdomOp::Drop { .. } => continue,
            };
            file.note_lines(&id, hashes(citation, self.logs));
            touched.insert(id);
            done.ops.push(op.clone());
            done.changed += 1;
            done.newest = done.newest.max(Some(citation.newest_date()));
        }
        for entry in open {
            if file.drop_entry(&entry.id) {
                done.dropped.push(entry.id.clone());
            }
        }
        if done.changed > 0 || !done.dropped.is_empty() {
            for id in file.over_cap(caps, &touched) {
                file.drop_entry(&id);
                done.changed -= usize::from(touched.contains(&id));
            }
            file.tidy(&categories);
        }
        done
    }

    fn written(&self, title: &str, text: &str) -> (String, String) {
        (self.rules.written(title), self.rules.written_behind(title, text))
    }

    fn stands(&self, title: &str, text: &str, citation: &Citation) -> Result<(), Violation> {
        let item = Item { text: format!("{title}. {text}"), citation: Some(citation.clone()) };
        let checked = ground::check(&item, self.logs);
        if self.memories.iter().any(|it| is_said_by(it, &item)) { Ok(()) } else { checked }
    }

    /// Returns whether nothing carries the words but text from elsewhere: no person's or agent's line,
    /// and no memory that a person wrote.
    fn is_from_elsewhere(&self, title: &str, text: &str, citation: &Citation) -> bool {
        let item = Item { text: format!("{title}. {text}"), citation: Some(citation.clone()) };
        ground::is_from_elsewhere(citation, self.logs)
            && !self.memories.iter().any(|it| is_said_by(it, &item))
    }

    /// Returns whether the entry rests on a log of this month.
    fn rests_here(&self, file: &WisdomFile, id: &str) -> bool {
        let entry = file.entries().find(|it| it.id() == Some(id));
        entry.and_then(|it| it.mark.as_ref()).is_some_and(|mark| {
            mark.sources.files().any(|(stem, _)| self.logs.iter().any(|it| it.stem() == stem))
        })
    }
}

/// Returns whether the words of an item stand in a typed memory that a person changed and that rests
/// on the same lines.
fn is_said_by(memory: &TypedMemory, item: &Item) -> bool {
    let Some(citation) = &item.citation else { return false };
    let cited = Citation::from_addresses(memory.sources.iter().map(|(address, _)| address));
    let Some(day) = memory.sources.first().map(|(address, _)| address.stem.clone()) else {
        return false;
    };
    if memory.is_ours() || !cited.is_some_and(|it| it.shares_line_with(citation)) {
        return false;
    }
    let said = format!("{}\n{}", memory.name, memory.body);
    let Ok(log) = DailyLog::parse(day, said.as_bytes()) else { return false };
    let served = privacy::serve(&log, &Rules::default());
    let lines = served.lines().iter().filter(|it| !it.text().trim().is_empty());
    let addresses: Vec<Address> = lines.map(|it| served.address(it)).collect();
    let item = Item { text: item.text.clone(), citation: Citation::from_addresses(&addresses) };
    ground::check(&item, &vec![served]).is_ok()
}
