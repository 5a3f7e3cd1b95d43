//! Typed memories from days, and their index `MEMORY.md`.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
    collections::BTreeSet,
    path::Path,
};

use super::{
    Compactor, JobError, Made, PassError, View,
    accept::accept,
    ask,
    commit::{NewFile, Recorded},
    draft::{Drafter, read_logs},
    fold::count,
    ground,
    known::{self, Again, OtherNames},
    late::{self, Doubt, Revised},
    nearby::Nearby,
    plan::{Job, Reason},
    records,
    report::{JobReport, PassReport},
    review::{self, KeptOut},
    together::{Proposed, Together},
};
use crate::{
    compaction::Watcher,
    engine::{Engine, ExtractInput, Extraction, MemoryDraft},
    memory::{
        address::{Address, Citation, Stem},
        decision::Decisions,
        index,
        typed::{MemoryType, TypedMemory},
    },
    parallel,
    privacy::{self, Rules, ServedLog, SpelledSecrets},
    store::{
        inventory::Inventory,
        layout::FileKind,
        lineage::{
            jobs::{JobId, NewJob, Outcome, Receipt, RunId, State},
            record::{Commit, LogRecord},
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
        let (mut existing, mut doubts) = self.known_memories(jobs, view);
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

    /// Returns the memories that stand, with the addresses that their lines have now, and those that
    /// lost lines.
    fn known_memories(&self, jobs: &[Job], view: &View) -> (Vec<TypedMemory>, Vec<Doubt>) {
        let mut existing = view.inventory.memories.clone();
        let doubts = late::doubts(self.vault, jobs, &existing, &view.inventory.rules);
        for doubt in doubts.iter().filter(|it| !it.is_lost()) {
            let same = |it: &&mut TypedMemory| it.file_name == doubt.memory.file_name;
            if let Some(memory) = existing.iter_mut().find(same) {
                *memory = doubt.readdressed();
            }
        }
        (existing, doubts)
    }

    /// Asks a model for the typed memories of days, one after the other, the newest first. Stops when it
    /// cannot be had. `weeks` are those that are folded after them.
    pub(super) fn ask_for_extracts(
        &mut self,
        run: RunId,
        (jobs, weeks): (&[Job], &[Job]),
        view: &View,
        watcher: &mut dyn Watcher,
        report: &mut PassReport,
    ) -> Result<(), PassError> {
        let (mut existing, mut doubts) = self.known_memories(jobs, view);
        let Inventory { decisions, rules, .. } = &view.inventory;
        let drafter = Drafter {
            vault: self.vault,
            engine: self.engine,
            settings: &self.settings.settings.compaction,
            inventory: &view.inventory,
        };
        let mut together = Together::new(drafter, weeks, jobs);
        let names = OtherNames::of(&existing, &view.inventory, self.vault);
        let mut nearby = Nearby::of(self.vault, jobs, view)?;
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
                names: &names,
            };
            let sound = sound(&existing, &doubts);
            let shown = known::shown(&sound, &names, rules);
            let check = |logs: &[ServedLog], draft: &MemoryDraft| {
                reader.check(job, logs, (&existing, &doubts), draft)
            };
            let day = together
                .proposed(job, &shown, &check)
                .and_then(|proposed| reader.read(job, &existing, &doubts, proposed));
            let made = day.and_then(|it| self.write_day(job, id, it, (&mut existing, &mut doubts)));
            // What was kept out may be said better another day.
            if made.as_ref().is_ok_and(|it| it.receipt.figures.rejected == 0) {
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
            names: &OtherNames::default(),
        };
        parallel::map(jobs, |job| reader.read(job, existing, doubts, None))
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
            let names = &OtherNames::default();
            let reader = DayReader {
                vault: self.vault,
                engine: self.engine,
                decisions,
                rules,
                nearby: None,
                names,
            };
            reader.read(job, existing, doubts, None)
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
}

/// Reads a day and asks what of it is to be remembered. Writes nothing, so that many can do it.
struct DayReader<'a> {
    vault: &'a Vault,
    engine: &'a dyn Engine,
    decisions: &'a Decisions,
    rules: &'a Rules,
    /// What needs not be read once more.
    nearby: Option<&'a Nearby>,
    /// What memories are called to a model.
    names: &'a OtherNames,
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
    /// Returns what a day, or the logs of its week, are read with.
    fn reading<'b>(
        &'b self,
        job: &Job,
        logs: &'b [ServedLog],
        existing: &'b [TypedMemory],
        doubts: &'b [Doubt],
    ) -> Reading<'b> {
        Reading {
            reader: self,
            logs,
            existing,
            sound: sound(existing, doubts),
            doubts,
            secrets: OnceCell::new(),
            rereads: matches!(job.reason, Reason::Forced | Reason::OtherEngine(_)),
        }
    }

    /// Says what is wrong with a proposal about the week of a day.
    fn check(
        &self,
        job: &Job,
        logs: &[ServedLog],
        (existing, doubts): (&[TypedMemory], &[Doubt]),
        draft: &MemoryDraft,
    ) -> Result<(), String> {
        self.reading(job, logs, existing, doubts).check(draft)
    }

    /// `proposed` is what was said of its week, where it was asked about together with it.
    fn read(
        &self,
        job: &Job,
        existing: &[TypedMemory],
        doubts: &[Doubt],
        proposed: Option<&Proposed>,
    ) -> Result<Day, JobError> {
        let rules = self.rules;
        let logs = read_logs(self.vault, job, rules)?;
        let layout = self.vault.layout();
        let reading = self.reading(job, &logs, existing, doubts);
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
        let mut again: Vec<Again> = Vec::new();
        for log in &logs {
            day.source_chars += log.chars();
            let news = || self.nearby.map_or_else(|| Some(log.clone()), |it| it.news(log));
            let Extraction { drafts, unread } = match proposed {
                Some(proposed) => proposed.get(log.stem()).cloned().unwrap_or_default(),
                None => match news() {
                    Some(log) => reading.ask(&log, &day.memories)?,
                    None => Extraction::default(),
                },
            };
            day.rejected += unread.len();
            day.kept_out.extend(unread.into_iter().map(review::unread));
            for draft in drafts {
                reading.take(&draft, &mut day, &mut again)?;
            }
            day.recorded.extracted.push((log.stem().clone(), log.input()));
            day.recorded.used.push(layout.source(log.stem()));
            day.recorded.logs.push(LogRecord::of(log, layout.source(log.stem())));
        }
        let mut settled = late::take_over(&mut day.memories, doubts);
        for again in again {
            match again {
                Again::Ours(it) => settled.revised.push(it),
                Again::Theirs(it) => settled.offered.push(it),
            }
        }
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

/// What a day is read with.
struct Reading<'a> {
    reader: &'a DayReader<'a>,
    /// The logs of the day.
    logs: &'a [ServedLog],
    /// The memories that stand.
    existing: &'a [TypedMemory],
    /// Those of them that lost no line.
    sound: Vec<TypedMemory>,
    doubts: &'a [Doubt],
    secrets: OnceCell<SpelledSecrets>,
    /// Whether what stands of the day is to be made anew.
    rereads: bool,
}

impl Reading<'_> {
    /// Has the engine propose memories from a log. `new` are those of the day so far.
    fn ask(&self, log: &ServedLog, new: &[TypedMemory]) -> Result<Extraction, JobError> {
        let DayReader { engine, rules, .. } = self.reader;
        let check = |draft: &MemoryDraft| self.check(draft);
        let mut known = Cow::Borrowed(&self.sound[..]);
        if !new.is_empty() {
            known.to_mut().extend_from_slice(new);
        }
        if engine.is_model() {
            known = Cow::Owned(known::shown(&known, self.reader.names, rules));
        }
        let input = ExtractInput { log, existing: &known, check: &check };
        ask(*engine, |engine| engine.extract(&input))
    }

    /// Says what is wrong with a proposal.
    fn check(&self, draft: &MemoryDraft) -> Result<(), String> {
        if let Some(fault) = known::fault(draft, (&self.sound, self.reader.names), self.rereads) {
            return Err(fault);
        }
        let lines = self.lines(self.target(draft));
        let accepted = accept(draft, &lines, &|_| false, (self.reader.rules, self.secrets()));
        accepted.map(drop).map_err(|it| it.why)
    }

    /// Enters a proposal into the day, or keeps it out.
    fn take(
        &self,
        draft: &MemoryDraft,
        day: &mut Day,
        again: &mut Vec<Again>,
    ) -> Result<(), JobError> {
        let DayReader { vault, decisions, rules, .. } = self.reader;
        let layout = vault.layout();
        let failed = Cell::new(None);
        let is_taken = |name: &str| {
            let mut names = self.existing.iter().chain(&day.memories).map(|it| &it.file_name);
            names.any(|it| it.as_os_str().eq_ignore_ascii_case(name))
                // Also by a file that is no typed memory, or cannot be read as one.
                || vault.stands(&layout.typed(name)).unwrap_or_else(|error| {
                    failed.set(Some(error));
                    false
                })
        };
        // A memory is said anew once a day; what else has its name is another one.
        let is_free =
            |it: &&TypedMemory| again.iter().all(|there| there.file_name() != it.file_name);
        let target = self.target(draft).filter(is_free);
        let lines = self.lines(target);
        let memory = accept(draft, &lines, &is_taken, (rules, self.secrets()));
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
        if ground::is_from_elsewhere(&draft.citation, &*lines) {
            day.rejected += 1;
            day.recorded.held.extend(held_back(&draft.citation));
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
            .any(|it| decisions.is_deleted(it, texts(&draft.citation, &lines)));
        match target {
            _ if barred => {}
            Some(old) => {
                let after = known::merged(draft, &memory, old, self.rereads);
                // As it stands in its file, whatever moved beneath it.
                let doubt = self.doubts.iter().find(|it| it.memory.file_name == old.file_name);
                let before = doubt.map_or(old, |it| &it.memory).clone();
                again.extend(after.map(|after| Again::new(before, after)));
            }
            None if known::is_known(&memory, &self.sound) => {}
            None => day.memories.push(memory),
        }
        Ok(())
    }

    /// Returns the memory that a proposal is about. The built-in engine looks itself what is known.
    fn target(&self, draft: &MemoryDraft) -> Option<&TypedMemory> {
        let target = known::target(draft, (&self.sound, self.reader.names), self.rereads);
        target.filter(|_| self.reader.engine.is_model())
    }

    /// Returns the logs of the day, and those that a memory rests on which is said anew.
    fn lines(&self, target: Option<&TypedMemory>) -> Cow<'_, [ServedLog]> {
        let stems: BTreeSet<&Stem> =
            target.iter().flat_map(|it| &it.sources).map(|(at, _)| &at.stem).collect();
        let mut lines = Cow::Borrowed(self.logs);
        for stem in stems.into_iter().filter(|stem| self.logs.iter().all(|it| it.stem() != *stem)) {
            // One that cannot be read bears nothing out, and is told of elsewhere.
            if let Ok(Some(log)) = self.reader.vault.read_log(stem) {
                lines.to_mut().push(privacy::serve(&log, self.reader.rules));
            }
        }
        if let Cow::Owned(lines) = &mut lines {
            lines.sort_by(|a, b| a.stem().cmp(b.stem()));
        }
        lines
    }

    /// Returns the secrets of the logs as names spell them: only where there is a draft is there a name
    /// to be made.
    fn secrets(&self) -> &SpelledSecrets {
        self.secrets.get_or_init(|| {
            let mut secrets = SpelledSecrets::default();
            let raw = self.logs.iter().filter_map(ServedLog::raw);
            raw.for_each(|it| secrets.learn(self.reader.rules, it));
            secrets
        })
    }
}

/// Returns the memories that lost no line: one that did must not keep out what may take its place.
pub(super) fn sound(existing: &[TypedMemory], doubts: &[Doubt]) -> Vec<TypedMemory> {
    let lost = |it: &&TypedMemory| {
        doubts.iter().any(|doubt| doubt.is_lost() && doubt.memory.file_name == it.file_name)
    };
    existing.iter().filter(|it| !lost(it)).cloned().collect()
}

/// Returns the lines that a person is asked about before something lasting may rest on them alone.
pub(super) fn held_back(citation: &Citation) -> Vec<(Stem, Vec<HeldRecord>)> {
    let record = |line| HeldRecord { line, why: vec![ELSEWHERE.to_owned()] };
    let files = citation.files();
    files.map(|(stem, lines)| (stem.clone(), lines.iter().map(record).collect())).collect()
}

pub(super) fn texts<'a>(citation: &Citation, logs: &'a [ServedLog]) -> Vec<&'a str> {
    let line = |it: Address| {
        let log = logs.iter().find(|log| *log.stem() == it.stem)?;
        Some(log.line(it.line)?.text())
    };
    citation.addresses().filter_map(line).collect()
}
