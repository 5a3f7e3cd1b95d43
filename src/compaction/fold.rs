//! The fold of a week or a month: read, draft, check, merge, write.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{Days, NaiveDate};

use super::{
    Compactor, JobError, Made, View, ask,
    commit::{NewFile, Recorded},
    ground::{self, Grounded},
    merge,
    plan::Job,
    records,
};
use crate::{
    config::settings::Length,
    engine::{
        Budget, FoldInput, LeftOut, WeekSource,
        extractive::counts::{Corpus, Counts, WINDOW_DAYS},
    },
    memory::{
        address::{Address, Citation, Stem},
        document::{Owner, Summary, SummaryHeader},
        hash::ContentHash,
        item::{Item, Section, Tier},
        log::DailyLog,
        period::{Grain, Period},
    },
    privacy::{self, ServedLog},
    store::{
        inventory::Inventory,
        lineage::{
            jobs::{JobId, Outcome, Receipt},
            record::{CoverageRecord, LogRecord},
        },
        vault::{Vault, VaultError},
    },
};

/// The words of the root's logs, read as periods ask for them.
#[derive(Default)]
pub(super) struct CorpusReader {
    corpus: Corpus,
    read: HashSet<Stem>,
}

impl CorpusReader {
    /// Returns the counts for a fold of `period`.
    ///
    /// A log that cannot be read has been reported by the scan; its words are not counted.
    fn counts(
        &mut self,
        period: Period,
        vault: &Vault,
        inventory: &Inventory,
    ) -> Result<&Counts, VaultError> {
        let to = period.last_source_day();
        let from = to.checked_sub_days(Days::new(WINDOW_DAYS)).unwrap_or(NaiveDate::MIN);
        for stem in inventory.logs.keys().filter(|it| (from..=to).contains(&it.date())) {
            if self.read.insert(stem.clone())
                && let Some(log) = vault.read_log(stem)?
            {
                self.corpus.add(&privacy::serve(&log));
            }
        }
        Ok(self.corpus.counts(period))
    }
}

/// Everything that one fold is made of.
struct Sources {
    logs: Vec<ServedLog>,
    weeks: Vec<WeekSource>,
    /// Weekly files whose own lines are cited: foreign ones, and bullets of a person's.
    week_files: Vec<ServedLog>,
    pointers: Vec<String>,
    chars: usize,
}

impl Compactor<'_> {
    /// Makes a weekly file.
    pub(super) fn fold_week(
        &mut self,
        job: &Job,
        id: JobId,
        view: &View,
        corpus: &mut CorpusReader,
    ) -> Result<Made, JobError> {
        let logs = read_logs(self.vault, job)?;
        let sources = Sources {
            pointers: logs.iter().map(|it| self.vault.layout().source(it.stem())).collect(),
            chars: logs.iter().map(ServedLog::chars).sum(),
            weeks: Vec::new(),
            week_files: Vec::new(),
            logs,
        };
        self.fold(job, id, view, corpus, sources)
    }

    /// Makes a monthly file.
    pub(super) fn fold_month(
        &mut self,
        job: &Job,
        id: JobId,
        view: &View,
        corpus: &mut CorpusReader,
    ) -> Result<Made, JobError> {
        let mut sources = Sources {
            logs: Vec::new(),
            weeks: Vec::new(),
            week_files: Vec::new(),
            pointers: Vec::new(),
            chars: 0,
        };
        for (name, hash) in &job.inputs {
            let Ok(week) = name.parse::<Period>() else { continue };
            let path = self.vault.layout().summary(week);
            let text = self.vault.read_text(&path)?.ok_or_else(|| JobError::Stale(path.clone()))?;
            let summary = Summary::parse(week, &text).map_err(|e| unreadable(&path, &e))?;
            if summary.body_hash().hex16() != *hash {
                return Err(JobError::Stale(path));
            }
            sources.chars += summary.text_chars();
            let (source, cites_itself) = week_source(&summary, &text);
            if cites_itself {
                let stem = name.parse::<Stem>().map_err(|e| unreadable(&path, &e))?;
                let log =
                    DailyLog::parse(stem, text.as_bytes()).map_err(|e| unreadable(&path, &e))?;
                sources.week_files.push(privacy::serve(&log));
            }
            sources.weeks.push(source);
            sources.pointers.push(path);
            for stem in view.inventory.logs_of(week).map(|(stem, _)| stem) {
                if let Some(log) = self.vault.read_log(stem)? {
                    sources.logs.push(privacy::serve(&log));
                }
            }
        }
        self.fold(job, id, view, corpus, sources)
    }

    fn fold(
        &mut self,
        job: &Job,
        id: JobId,
        view: &View,
        corpus: &mut CorpusReader,
        sources: Sources,
    ) -> Result<Made, JobError> {
        let path = self.vault.layout().summary(job.period);
        let standing = self.vault.read_text(&path)?;
        let current = standing.as_deref().map(|text| Summary::parse(job.period, text)).transpose();
        let current = current.map_err(|e| unreadable(&path, &e))?;
        let counts = corpus.counts(job.period, self.vault, &view.inventory)?;
        let budget = self.budget(job.tier, sources.chars);
        let draft = ask(self.engine, |engine| {
            engine.fold(&FoldInput {
                period: job.period,
                logs: &sources.logs,
                weeks: &sources.weeks,
                budget,
                counts,
            })
        })?;
        let drafted: usize = draft.sections.iter().map(|(_, items)| items.len()).sum();
        let lines = Lines::of(sources.logs.iter().chain(&sources.week_files));
        let Grounded { sections, rejected } = ground::split(&draft, &lines);
        if drafted > 0 && sections.iter().all(|(_, items)| items.is_empty()) {
            return Err(JobError::AllRejected(drafted));
        }
        let header = self.header(job, view, &sources, current.as_ref());
        let sections = self.keep_orphans(sections, current.as_ref(), view);
        let decisions = &view.inventory.decisions;
        let is_deleted = |item: &Item| {
            let cited = item.citation.iter().flat_map(Citation::addresses);
            let line = |it: Address| {
                ground::Sources::line(&lines, &it.stem, it.line).map(privacy::ServedLine::text)
            };
            let texts: Option<Vec<&str>> = cited.map(line).collect();
            texts.is_some_and(|it| self.is_deleted_from(decisions, &path, job, it))
        };
        let merged = merge::merge(job.period, current.as_ref(), header, sections, &is_deleted);
        let text = merged.summary.print();
        let record = records::of_summary(&path, &merged.summary, &text);
        let items: Vec<&Citation> =
            record.items.iter().filter_map(|it| it.citation.as_ref()).collect();
        let mut left_out = draft.left_out;
        left_out.extend(cited_by(rejected.iter().map(|(_, item, _)| item), LeftOut::Rejected));
        left_out.extend(cited_by(merged.kept_out.iter(), LeftOut::Deleted));
        let uncovered = uncovered(&sources.logs, &items, left_out);
        let same_body = current.as_ref().is_some_and(|it| it.body() == merged.summary.body());
        let outcome = if same_body { Outcome::Unchanged } else { Outcome::Written };
        let mut receipt = Receipt::new(outcome, Some(job.reason.to_string()), (self.clock)());
        receipt.path = Some(path.clone());
        receipt.sources = count(job.inputs.len());
        receipt.source_chars = sources.chars as u64;
        receipt.output_chars = merged.summary.text_chars() as u64;
        receipt.items = count(record.items.len());
        receipt.rejected = count(rejected.len());
        receipt.uncovered = count(uncovered.len());
        let mut files = Vec::new();
        if standing.as_deref() != Some(&text) {
            if let (Some(old), Some(None)) =
                (&standing, current.as_ref().map(|it| it.header.as_ref()))
            {
                self.vault.keep_copy(&path, old.as_bytes())?;
            }
            let expected = standing.as_deref().map(ContentHash::of);
            files.push(NewFile { path: path.clone(), text, expected });
        }
        let logs =
            sources.logs.iter().map(|it| LogRecord::of(it, self.vault.layout().source(it.stem())));
        let recorded = Recorded {
            logs: logs.collect(),
            coverage: vec![CoverageRecord { path: path.clone(), lines: uncovered }],
            documents: vec![record],
            used: sources.pointers,
            ..Recorded::default()
        };
        self.write(Some((id, &receipt)), files, &recorded)?;
        let paths = if same_body { Vec::new() } else { vec![path] };
        Ok(Made { receipt, paths })
    }

    /// Returns how long the text may get.
    fn budget(&self, tier: Tier, chars: usize) -> Budget {
        let compaction = &self.settings.settings.compaction;
        let Length { ratio, max_ratio, max_chars } = *match tier {
            Tier::Monthly => &compaction.monthly,
            _ => &compaction.weekly,
        };
        let whole = chars < compaction.whole_below_chars;
        let cap = |it: usize| if max_chars == 0 { it } else { it.min(max_chars) };
        if whole {
            return Budget { target_chars: usize::MAX, limit_chars: usize::MAX, whole };
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "the product of a length and a checked ratio below 1 is a length"
        )]
        let share = |ratio: f64| cap((chars as f64 * ratio).floor() as usize);
        Budget { target_chars: share(ratio), limit_chars: share(max_ratio.max(ratio)), whole }
    }

    fn header(
        &self,
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
            engine: self.engine.id().to_owned(),
            sources: named,
            items: Vec::new(),
            extracted: if job.tier == Tier::Weekly {
                extracted_days(job, view, old)
            } else {
                Vec::new()
            },
            partial: job.partial,
        }
    }

    /// Adds the items of ours that rest on a vanished log: what made them is gone, so nothing can
    /// make them again.
    fn keep_orphans(
        &self,
        mut sections: Vec<(Section, Vec<Item>)>,
        current: Option<&Summary>,
        view: &View,
    ) -> Vec<(Section, Vec<Item>)> {
        let Some(current) = current.filter(|it| it.header.is_some()) else { return sections };
        let owners = current.ownership().owners;
        for ((_, item, section), owner) in current.bullets().zip(owners) {
            let gone = |citation: &Citation| {
                citation
                    .files()
                    .all(|(stem, _)| !stem.is_week() && !view.inventory.logs.contains_key(stem))
            };
            let (Some(section), true) = (section, item.citation.as_ref().is_some_and(gone)) else {
                continue;
            };
            let at = sections.iter().position(|(it, _)| *it == section);
            let under = match at {
                Some(at) => &mut sections[at].1,
                None => {
                    let at = sections.partition_point(|(it, _)| *it < section);
                    sections.insert(at, (section, Vec::new()));
                    &mut sections[at].1
                }
            };
            if owner == Owner::Ours && !under.contains(item) {
                under.insert(0, item.clone());
            }
        }
        sections
    }

    /// Returns whether a person deleted what rests on these lines, here or in a week below.
    fn is_deleted_from(
        &self,
        decisions: &crate::memory::decision::Decisions,
        path: &str,
        job: &Job,
        lines: Vec<&str>,
    ) -> bool {
        let layout = self.vault.layout();
        let below = job.inputs.keys().filter_map(|it| it.parse::<Period>().ok());
        let below = below.filter(|it| it.grain() == Grain::Week).map(|it| layout.summary(it));
        std::iter::once(path.to_owned())
            .chain(below)
            .any(|it| decisions.is_deleted(&it, lines.iter().copied()))
    }
}

/// Reads the logs that a job names, as they were when it was planned.
pub(super) fn read_logs(vault: &Vault, job: &Job) -> Result<Vec<ServedLog>, JobError> {
    let mut logs = Vec::new();
    for (name, hash) in &job.inputs {
        let stem: Stem = name.parse().map_err(|e| unreadable(name, &e))?;
        let path = vault.layout().source(&stem);
        let log = vault.read_log(&stem)?.ok_or_else(|| JobError::Stale(path.clone()))?;
        if log.hash.hex16() != *hash {
            return Err(JobError::Stale(path));
        }
        logs.push(privacy::serve(&log));
    }
    Ok(logs)
}

pub(super) fn unreadable(path: &str, error: &dyn std::error::Error) -> JobError {
    JobError::Unreadable { path: path.to_owned(), reason: error.to_string() }
}

/// Counts in receipts are of lines and files; none has four thousand million.
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Source lines by their address.
pub(super) struct Lines<'a>(HashMap<&'a Stem, &'a ServedLog>);

impl<'a> Lines<'a> {
    pub(super) fn of(logs: impl Iterator<Item = &'a ServedLog>) -> Self {
        Self(logs.map(|it| (it.stem(), it)).collect())
    }
}

impl ground::Sources for Lines<'_> {
    fn line(&self, stem: &Stem, number: u32) -> Option<&privacy::ServedLine> {
        self.0.get(stem)?.line(number)
    }
}

/// Returns the days of the week whose extraction is done for the logs as they stand.
fn extracted_days(job: &Job, view: &View, old: Option<&SummaryHeader>) -> Vec<String> {
    let mut days: BTreeMap<NaiveDate, bool> = BTreeMap::new();
    for (name, hash) in &job.inputs {
        let Ok(stem) = name.parse::<Stem>() else { continue };
        let listed = old.is_some_and(|it| {
            it.extracted.contains(&stem.date().to_string()) && it.sources.get(name) == Some(hash)
        });
        let done = view.record.extracted.get(name) == Some(hash) || listed;
        let all = days.entry(stem.date()).or_insert(true);
        *all &= done;
    }
    days.into_iter().filter(|&(_, done)| done).map(|(day, _)| day.to_string()).collect()
}

/// Reads a weekly file as the source of a month, and tells whether lines of its own are cited.
///
/// A bullet that a person wrote or changed is a source itself, above the lines that it cites.
fn week_source(summary: &Summary, text: &str) -> (WeekSource, bool) {
    let own_line = |line: u32| {
        let stem = summary.period.to_string().parse::<Stem>().ok()?;
        Some(Citation::one(stem, line))
    };
    let mut cites_itself = false;
    let mut items = Vec::new();
    let owners = summary.ownership().owners;
    for ((line, item, section), owner) in summary.bullets_as_read().zip(owners) {
        let mut item = item.clone();
        if owner == Owner::Person
            && let Some(own) = own_line(line)
        {
            cites_itself = true;
            match &mut item.citation {
                Some(citation) => citation.merge(&own),
                none => *none = Some(own),
            }
        }
        items.push((section, item));
    }
    if items.is_empty() && summary.header.is_none() {
        items = foreign_lines(summary.period, text);
        cites_itself = !items.is_empty();
    }
    (WeekSource { period: summary.period, items }, cites_itself)
}

/// Takes a file without bullets as it stands: each line that says something is an item.
fn foreign_lines(week: Period, text: &str) -> Vec<(Option<Section>, Item)> {
    let Ok(stem) = week.to_string().parse::<Stem>() else { return Vec::new() };
    let Ok(log) = DailyLog::parse(stem.clone(), text.as_bytes()) else { return Vec::new() };
    let served = privacy::serve(&log);
    let mut section = None;
    let mut items = Vec::new();
    for line in served.lines() {
        match line.kind() {
            crate::memory::markdown::LineKind::Heading { .. } => {
                section = Section::from_title(line.words())
            }
            kind if kind.is_content() => {
                let citation = Some(Citation::one(stem.clone(), line.number()));
                items.push((section, Item { text: line.words().to_owned(), citation }));
            }
            _ => {}
        }
    }
    items
}

fn cited_by<'a>(items: impl Iterator<Item = &'a Item>, why: LeftOut) -> Vec<(Address, LeftOut)> {
    items
        .flat_map(|it| it.citation.iter().flat_map(Citation::addresses))
        .map(|it| (it, why))
        .collect()
}

/// Returns the lines that say something and that no item cites, with the reason for each.
fn uncovered(
    logs: &[ServedLog],
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
        for line in log.lines().iter().filter(|it| it.kind().is_content()) {
            if covered.is_some_and(|it| it.contains(&line.number())) {
                continue;
            }
            let address = log.address(line);
            let reason = why.get(&address).copied().unwrap_or(match line.kind() {
                crate::memory::markdown::LineKind::Heading { .. } => LeftOut::Structure,
                _ => LeftOut::OverBudget,
            });
            lines.push((address, reason.name()));
        }
    }
    lines
}
