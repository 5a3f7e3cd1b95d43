//! The fold of a week or a month: drafts merged with what stands there, written, and recorded.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::NaiveDate;

use super::{
    Compactor, JobError, Made, PassError, View, Watcher,
    commit::{NewFile, Recorded},
    draft::{self, CorpusReader, Drafted, Drafter, Sources},
    ground,
    kept::{self, Kept},
    merge,
    plan::{Job, Reason},
    records,
    report::PassReport,
    review,
};
use crate::{
    config::settings::{Fallback, Model},
    engine::{
        Engine, EngineError, LeftOut,
        extractive::{Extractive, counts::Counts},
    },
    memory::{
        address::{Address, Citation, Stem},
        decision::Decisions,
        document::{Summary, SummaryHeader},
        item::{Item, Tier},
        markdown::LineKind,
        period::{Grain, Period},
    },
    model::failure::Fault,
    parallel,
    privacy::{ServedLine, ServedLog},
    store::{
        inventory::Inventory,
        lineage::{
            jobs::{JobId, Outcome, Receipt, RunId, State},
            record::{Commit, CoverageRecord, LogRecord},
        },
    },
};

/// How many periods are drafted side by side. Each holds its sources and a copy of the counts.
const FOLDS_AT_ONCE: usize = 8;

fn newest_first(jobs: &[Job]) -> Vec<&Job> {
    let mut jobs: Vec<&Job> = jobs.iter().collect();
    jobs.sort_by_key(|it| std::cmp::Reverse(it.period));
    jobs
}

impl Compactor<'_> {
    /// Makes weekly or monthly files, the newest first: what is most likely to be read is there first
    /// after a long time away. Several are drafted side by side, and the next ones while those are
    /// written one after the other: a write waits for the disk.
    pub(super) fn make_folds<'a>(
        &mut self,
        run: RunId,
        jobs: &'a [Job],
        view: &View,
        corpus: &mut CorpusReader,
        watcher: &mut dyn Watcher,
        report: &mut PassReport,
    ) -> Result<(), PassError> {
        if self.engine.is_model() {
            return self.ask_for_folds(run, jobs, view, corpus, watcher, report);
        }
        let jobs = &newest_first(jobs)[..];
        let drafter = &Drafter {
            vault: self.vault,
            engine: self.engine,
            settings: &self.settings.settings.compaction,
            inventory: &view.inventory,
        };
        std::thread::scope(|scope| {
            let mut ahead = None;
            for (i, chunk) in jobs.chunks(FOLDS_AT_ONCE).enumerate() {
                let before = i * FOLDS_AT_ONCE;
                if watcher.is_stopped() {
                    report.left += jobs.len() - before;
                    break;
                }
                corpus.prepare(chunk.iter().map(|it| it.period), self.vault, &view.inventory)?;
                let mut begun = Vec::new();
                for (n, &job) in chunk.iter().enumerate() {
                    watcher.begins(job, jobs.len() - before - n - 1);
                    if let Some(id) = self.begin(run, job)? {
                        begun.push((job, id, corpus.counts(job.period).clone()));
                    }
                }
                let drafting = scope.spawn(move || {
                    let draft = |(job, id, counts): &(&'a Job, JobId, Counts)| {
                        (*job, *id, drafter.draft(job, counts))
                    };
                    parallel::map(&begun, draft)
                });
                if let Some(drafts) = ahead.replace(drafting) {
                    self.finish_folds(joined(drafts), view, watcher, report)?;
                }
            }
            match ahead {
                Some(drafts) => self.finish_folds(joined(drafts), view, watcher, report),
                None => Ok(()),
            }
        })
    }

    /// Makes weekly or monthly files by asking a model, one after the other, the newest first: where a
    /// budget ends, what is most likely to be read is made. Stops when the model cannot be had.
    fn ask_for_folds(
        &mut self,
        run: RunId,
        jobs: &[Job],
        view: &View,
        corpus: &mut CorpusReader,
        watcher: &mut dyn Watcher,
        report: &mut PassReport,
    ) -> Result<(), PassError> {
        let jobs = newest_first(jobs);
        for (i, job) in jobs.iter().enumerate() {
            if watcher.is_stopped() {
                report.left += jobs.len() - i;
                break;
            }
            let may_fall_back = self.may_fall_back(job);
            if report.model.is_some() && !may_fall_back {
                report.left += 1;
                continue;
            }
            watcher.begins(job, jobs.len() - i - 1);
            corpus.prepare([job.period], self.vault, &view.inventory)?;
            let Some(id) = self.begin(run, job)? else { continue };
            let counts = corpus.counts(job.period);
            let drafter = |engine| Drafter {
                vault: self.vault,
                engine,
                settings: &self.settings.settings.compaction,
                inventory: &view.inventory,
            };
            let mut draft = None;
            if report.model.is_none() {
                self.lineage.mark(id, State::Called)?;
                let asked = drafter(self.engine).draft(job, counts);
                match out_of_reach(&asked) {
                    Some(why) if may_fall_back => report.model = Some(why),
                    _ => draft = Some(asked),
                }
            }
            let draft = draft.unwrap_or_else(|| {
                let why = report.model.as_deref().unwrap_or_default();
                drafter(&Extractive).draft(job, counts).map(|it| it.offline(why))
            });
            let made = draft.and_then(|draft| self.fold(job, id, view, draft));
            self.finish(job, id, made, watcher, report)?;
        }
        Ok(())
    }

    /// Returns whether a fold is made offline where the model cannot be had. One that was made so
    /// before waits for the model.
    fn may_fall_back(&self, job: &Job) -> bool {
        let Model { fallback, .. } = &self.settings.settings.model;
        *fallback == Fallback::Extractive && job.reason != Reason::MadeOffline
    }

    fn finish_folds(
        &mut self,
        drafts: Vec<(&Job, JobId, Result<Drafted, JobError>)>,
        view: &View,
        watcher: &mut dyn Watcher,
        report: &mut PassReport,
    ) -> Result<(), PassError> {
        for (job, id, draft) in drafts {
            let made = draft.and_then(|draft| self.fold(job, id, view, draft));
            self.finish(job, id, made, watcher, report)?;
        }
        Ok(())
    }

    /// Merges a draft with the file that stands there, writes it, and records it.
    fn fold(
        &mut self,
        job: &Job,
        id: JobId,
        view: &View,
        draft: Drafted,
    ) -> Result<Made, JobError> {
        let Drafted {
            sources,
            sections,
            rejected,
            kept_out,
            all_rejected,
            mut left_out,
            note,
            amounts,
            is_offline,
        } = draft;
        let path = self.vault.layout().summary(job.period);
        let Inventory { decisions, rules, .. } = &view.inventory;
        let engine: &dyn Engine = if is_offline { &Extractive } else { self.engine };
        let told = review::told(&kept_out, &path, engine, decisions, rules);
        if let Some(drafted) = all_rejected {
            let kept_out = Some((job.fingerprint, job.period, &path[..], &told[..]));
            let at = (self.clock)();
            self.lineage.commit(&Commit { kept_out, at, ..Commit::default() })?;
            return Err(JobError::AllRejected(drafted));
        }
        let standing = self.vault.read_text(&path)?;
        let current = draft::current(&path, job.period, standing.as_deref())?;
        let lines = sources.lines();
        let engine = engine.id();
        let mut header = Self::header(job, view, &sources, current.as_ref());
        engine.clone_into(&mut header.engine);
        header.fallback = is_offline;
        let sections = Kept::of(current.as_ref(), &view.inventory, &sources.said).join(sections);
        let decisions = &view.inventory.decisions;
        let is_deleted = |item: &Item| {
            let cited = item.citation.iter().flat_map(Citation::addresses);
            let line = |it: Address| {
                ground::Sources::line(&lines, &it.stem, it.line).map(ServedLine::text)
            };
            let texts: Option<Vec<&str>> = cited.map(line).collect();
            texts.is_some_and(|it| self.is_deleted_from(decisions, &path, job, &it))
        };
        let merged = merge::merge(job.period, current.as_ref(), header, sections, &is_deleted);
        let text = merged.summary.print();
        let record = records::of_summary(&path, &merged.summary, &text);
        let items: Vec<&Citation> =
            record.items.iter().filter_map(|it| it.citation.as_ref()).collect();
        left_out.extend(cited_by(rejected.iter().map(|(_, item, _)| item), LeftOut::Rejected));
        left_out.extend(cited_by(merged.kept_out.iter(), LeftOut::Deleted));
        let read = sources.logs.iter().chain(&sources.held);
        let uncovered = uncovered(read, &items, left_out);
        let same_body = current.as_ref().is_some_and(|it| it.body() == merged.summary.body());
        let outcome = if same_body { Outcome::Unchanged } else { Outcome::Written };
        let reason = std::iter::once(job.reason.to_string()).chain(note);
        let reason = reason.chain(review::note(&kept_out)).collect::<Vec<_>>();
        let mut receipt = Receipt::new(outcome, Some(reason.join("; ")), (self.clock)());
        receipt.path = Some(path.clone());
        receipt.figures.sources = count(job.inputs.len());
        receipt.figures.source_chars = sources.chars as u64;
        receipt.figures.output_chars = merged.summary.text_chars() as u64;
        receipt.figures.items = count(record.items.len());
        receipt.figures.rejected = count(rejected.len());
        receipt.figures.uncovered = count(uncovered.len());
        (receipt.figures.amounts, receipt.figures.amounts_kept) =
            (count(amounts.0), count(amounts.1));
        self.add_spent(&mut receipt);
        let mut files = Vec::new();
        if standing.as_ref() != Some(&text) {
            files.push(NewFile { path: path.clone(), text: Some(text), standing });
        }
        let logs =
            sources.logs.iter().map(|it| LogRecord::of(it, self.vault.layout().source(it.stem())));
        let mut logs: Vec<LogRecord> = logs.collect();
        logs.extend(self.newly_cited(&record.items, view)?);
        let recorded = Recorded {
            logs,
            coverage: vec![CoverageRecord { path: path.clone(), lines: uncovered }],
            documents: vec![record],
            kept_out: Some((job.fingerprint, job.period, path.clone(), told)),
            used: sources.pointers,
            ..Recorded::default()
        };
        self.write(None, Some((id, &receipt)), &files, &recorded)?;
        self.note_deleted(view, &path, &merged.deleted, (self.clock)())?;
        let paths = if same_body { Vec::new() } else { vec![path] };
        Ok(Made { receipt, paths })
    }

    /// Returns what the file says of itself, but who made it.
    fn header(
        job: &Job,
        view: &View,
        sources: &Sources,
        current: Option<&Summary>,
    ) -> SummaryHeader {
        let old = current.and_then(|it| it.header.as_ref());
        let mut named = job.inputs.clone();
        let mut pointers = sources.pointers.clone();
        // Sources that have vanished stay named, since items that rest on them stay.
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
            gone: kept::gone_sources(job, &view.inventory, old),
            partial: job.partial,
            ..SummaryHeader::default()
        }
    }

    /// Returns whether a person deleted what rests on these lines, here or in a week below.
    fn is_deleted_from(
        &self,
        decisions: &Decisions,
        path: &str,
        job: &Job,
        lines: &[&str],
    ) -> bool {
        let layout = self.vault.layout();
        let below = job.inputs.keys().filter_map(|it| it.parse::<Period>().ok());
        let below = below.filter(|it| it.grain() == Grain::Week).map(|it| layout.summary(it));
        std::iter::once(path.to_owned())
            .chain(below)
            .any(|it| decisions.is_deleted(&it, lines.iter().copied()))
    }
}

/// Returns why there is no draft, where that is not due to this piece of work.
fn out_of_reach(draft: &Result<Drafted, JobError>) -> Option<String> {
    match draft {
        Err(JobError::Engine(EngineError::Model(call)))
            if !matches!(call.fault(), Fault::Work | Fault::Later) =>
        {
            Some(call.to_string())
        }
        _ => None,
    }
}

/// Waits for a thread; its panic goes on here.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Counts in receipts are of lines and files; none has four thousand million.
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the days of the week whose extraction is done for the logs as they stand. A day that waits
/// for a person is not among them: where the database is lost, only reading it again says so.
fn extracted_days(job: &Job, view: &View, old: Option<&SummaryHeader>) -> Vec<String> {
    let mut days: BTreeMap<NaiveDate, bool> = BTreeMap::new();
    for (name, hash) in &job.inputs {
        let Ok(stem) = name.parse::<Stem>() else { continue };
        let listed = old.is_some_and(|it| {
            it.extracted.contains(&stem.date().to_string()) && it.sources.get(name) == Some(hash)
        });
        let done = view.record.extracted.get(name) == Some(hash) || listed;
        let done = done && !view.record.waiting.contains(name);
        let all = days.entry(stem.date()).or_insert(true);
        *all &= done;
    }
    days.into_iter().filter(|&(_, done)| done).map(|(day, _)| day.to_string()).collect()
}

fn cited_by<'a>(items: impl Iterator<Item = &'a Item>, why: LeftOut) -> Vec<(Address, LeftOut)> {
    items
        .flat_map(|it| it.citation.iter().flat_map(Citation::addresses))
        .map(|it| (it, why))
        .collect()
}

/// Returns the lines that say something and that no item cites, with the reason for each.
fn uncovered<'a>(
    logs: impl Iterator<Item = &'a ServedLog>,
    items: &[&Citation],
    left_out: Vec<(Address, LeftOut)>,
) -> Vec<(Address, &'static str)> {
    let mut covered: HashMap<&Stem, HashSet<u32>> = HashMap::new();
    for (stem, lines) in items.iter().flat_map(|it| it.files()) {
        covered.entry(stem).or_default().extend(lines.iter());
    }
    let why: HashMap<Address, LeftOut> = left_out.into_iter().collect();
    let mut lines = Vec::new();
    for log in logs {
        let covered = covered.get(log.stem());
        for line in log.lines().iter().filter(|it| it.is_content() || it.is_held()) {
            if covered.is_some_and(|it| it.contains(&line.number())) {
                continue;
            }
            let address = log.address(line);
            let reason = why.get(&address).copied().unwrap_or(match line.kind() {
                _ if line.is_held() => LeftOut::Held,
                LineKind::Heading { .. } => LeftOut::Structure,
                _ => LeftOut::OverBudget,
            });
            lines.push((address, reason.name()));
        }
    }
    lines
}
