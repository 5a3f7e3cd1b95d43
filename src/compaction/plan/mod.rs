//! What is due: a pure function of the files, the record, the settings, and the time.
//!
//! A period is due when it has closed in the root's zone, the grace has passed, and its inputs
//! differ from those that its file names. Nothing else makes it due: no engine, no prompt, no
//! setting, no tick. So missed ticks, restarts, double ticks, and late logs all come out right,
//! and a second pass over the same files plans nothing.
//!
//! The tiers rest on each other: a month waits until none of its weeks is due, and wisdom takes
//! months oldest first. [`CompactionPlan::jobs`] can be done now; `CompactionPlan::due_after` when those are done.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use chrono::{DateTime, Duration, NaiveDate, TimeZone as _, Utc};
use chrono_tz::Tz;

use super::{integrity::damage::Damage, summary::orphaned_items};
use crate::{
    memory::{
        address::Stem,
        hash::ContentHash,
        item::Tier,
        period::{Grain, Period},
    },
    store::fs::inventory::{FileProblem, Inventory, LogFile, SummaryFile},
};

/// What a plan needs to know of the root beside its files.
#[derive(Clone, Debug)]
pub struct PlanSettings {
    /// The zone in which days begin.
    pub zone: Tz,
    /// How long after its end a period stays open for late lines.
    pub grace: Duration,
    /// A log changed less than this ago is still being written.
    pub quiet: Duration,
    /// Whether typed memories are extracted.
    pub extract: bool,
    /// The engine at work, for `--redo` and for counting older files.
    pub engine: String,
}

/// What the database knows beside the files.
#[derive(Clone, Debug, Default)]
pub struct RecordedState {
    /// Per log, the first 16 hex digits of the hash that it had when it was extracted.
    pub extracted: BTreeMap<String, String>,
    /// Which engine read a day last for its typed memories, as far as the database knows.
    pub extracted_by: BTreeMap<Period, String>,
    /// Logs with lines of which memories are made when a person accepts them.
    pub quarantined_logs: BTreeSet<String>,
    /// Months already distilled into `WISDOM.md`, each with the hash of its body then, if known.
    pub distilled: BTreeMap<Period, Option<String>>,
    /// Months whose entries in `WISDOM.md` cite a line that reads otherwise now, each with the log.
    pub stale_wisdom: Vec<(Period, String)>,
    /// Jobs that were done and left no file, because there was nothing to say.
    pub skipped: BTreeSet<ContentHash>,
    /// Jobs that failed three times, with the last reason.
    pub stuck: BTreeMap<ContentHash, String>,
    /// Generated files of which a person is to say whether they are damaged, each with what is odd
    /// and what to do: nothing is made of them, or in their place.
    pub damaged: BTreeMap<String, Damage>,
}

impl RecordedState {
    /// Returns the engine that read a day for its typed memories: as the database knows, else as the
    /// week's file says. `None` where nobody knows.
    pub fn extracting_engine<'a>(
        &'a self,
        day: Period,
        inventory: &'a Inventory,
    ) -> Option<&'a str> {
        let week = || {
            let header = inventory.weekly.get(&day.parent()?)?.header.as_ref()?;
            header.extracted.contains(&day.to_string()).then_some(&header.engine[..])
        };
        self.extracted_by.get(&day).map(String::as_str).or_else(week)
    }
}

/// What is asked for; by default all that is due.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
pub struct Selection {
    /// Only these tiers; empty for all.
    pub tiers: Vec<Tier>,
    /// Only this period.
    pub period: Option<Period>,
    /// Also what is not due, is parked, or is foreign (needs `period`).
    pub force: bool,
    /// Also files that another engine made and days that another one read, of periods that end on the
    /// date or after it.
    pub redo: Option<Option<NaiveDate>>,
    /// Also these, though their inputs are the same: a line of theirs was forgotten.
    pub rewrite: BTreeSet<(Tier, Period)>,
    /// Nothing but those.
    pub only_rewrite: bool,
    /// Files that are gone in numbers are gone for good.
    pub accept_missing: bool,
    /// Also the running week, provisionally, once its logs have been quiet for [`OPEN_WEEK_QUIET`].
    pub open_week: bool,
}

/// The file of the running week is made when no log of it was changed for so long: people who write
/// all day would have it made anew with each line.
pub const OPEN_WEEK_QUIET: Duration = Duration::minutes(10);

impl Selection {
    /// Returns whether the last tier is asked for, and no one period: what follows a pass follows
    /// then.
    pub fn is_whole(&self) -> bool {
        let wisdom = self.tiers.is_empty() || self.tiers.contains(&Tier::Wisdom);
        wisdom && self.period.is_none() && !self.only_rewrite
    }
}

/// One file to be made, or one day to be extracted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionJob {
    /// What is made.
    pub tier: Tier,
    /// For which time.
    pub period: Period,
    /// Why.
    pub reason: DueReason,
    /// Per source (a log's stem, a week's or month's name) the first 16 hex digits of its hash.
    pub inputs: BTreeMap<String, String>,
    /// Hash of tier, period, and inputs: the same work has the same fingerprint.
    pub fingerprint: ContentHash,
    /// Whether the period has not closed yet.
    pub partial: bool,
}

/// Why a job is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DueReason {
    /// There is no file yet.
    New,
    /// These sources are new or changed since the file was made.
    Changed(Vec<String>),
    /// The file was made before the period closed.
    Closed,
    /// A person asked for it.
    Forced,
    /// The file was made offline, since the model could not be had.
    MadeOffline,
    /// Another engine made the file, and a person asked to do it again.
    OtherEngine(String),
}

/// A period that is not due now but will be looked at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingPeriod {
    /// What is to be made.
    pub tier: Tier,
    /// For which time.
    pub period: Period,
    /// What it waits for.
    pub cause: WaitCause,
}

/// What a period waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// The end of the period and of its grace.
    Closes(DateTime<Tz>),
    /// A log that was changed moments ago.
    BeingWritten(String),
    /// A person, or changed input: it failed three times.
    Stuck(String),
    /// A person, or changed input: it was taken back.
    Undone,
    /// A person: the file, or one that it rests on, looks damaged.
    Damaged(String),
}

/// What is to be done, in the order in which to do it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionPlan {
    /// Jobs that can be done now.
    pub jobs: Vec<CompactionJob>,
    /// Periods that become due when the jobs are done.
    pub due_after: Vec<(Tier, Period)>,
    /// Periods that are not due yet, or are held up.
    pub waiting: Vec<WaitingPeriod>,
    /// Files of somebody else under our names: read, never written.
    pub foreign: Vec<(Tier, Period)>,
    /// Files made by another engine, per tier.
    pub other_engine: BTreeMap<Tier, usize>,
    /// What is asked for by force and has no source.
    pub without_source: Option<(Tier, Period)>,
    /// What is odd about the dates of logs.
    pub problems: Vec<FileProblem>,
}

/// Says what is due at `now`.
pub fn plan(
    inventory: &Inventory,
    record: &RecordedState,
    settings: &PlanSettings,
    selection: &Selection,
    now: DateTime<Utc>,
) -> CompactionPlan {
    let planner = Planner {
        inventory,
        record,
        settings,
        selection,
        now,
        closed_before: (now - settings.grace).with_timezone(&settings.zone).date_naive(),
        plan: CompactionPlan::default(),
    };
    planner.run()
}

/// Returns the instant at which a day begins in a zone.
///
/// Where the clocks skip midnight, the day begins when they go on; where midnight comes twice,
/// with the first.
pub fn start_of_day(date: NaiveDate, zone: Tz) -> DateTime<Utc> {
    let midnight = date.and_time(chrono::NaiveTime::MIN);
    // No zone has ever skipped more than a day.
    (0..=25 * 4)
        .find_map(|quarters| {
            zone.from_local_datetime(&(midnight + Duration::minutes(15 * quarters))).earliest()
        })
        .map_or_else(|| midnight.and_utc(), |it| it.with_timezone(&Utc))
}

struct Planner<'a> {
    inventory: &'a Inventory,
    record: &'a RecordedState,
    settings: &'a PlanSettings,
    selection: &'a Selection,
    now: DateTime<Utc>,
    /// A period has closed when it ends on or before this day: the local day of `now - grace`.
    closed_before: NaiveDate,
    plan: CompactionPlan,
}

impl Planner<'_> {
    fn run(mut self) -> CompactionPlan {
        self.note_future_logs();
        self.note_late_logs();
        if self.settings.extract {
            self.plan_days();
        }
        self.plan_weeks();
        self.plan_months();
        self.plan_wisdom();
        // Tiers wait for each other whether they are asked for or not, so what is not asked for
        // leaves the plan only now.
        self.plan.without_source = self.missing_source();
        let mut plan = std::mem::take(&mut self.plan);
        plan.jobs.retain(|it| self.is_selected(it.tier, it.period));
        plan.due_after.retain(|&(tier, period)| self.is_selected(tier, period));
        plan.waiting.retain(|it| self.is_selected(it.tier, it.period));
        plan.jobs.sort_by_key(|job| (job.tier, job.period));
        plan
    }

    /// Finds out whether what is forced has nothing to be made from: its logs are gone, or there were
    /// never any.
    fn missing_source(&self) -> Option<(Tier, Period)> {
        let period = self.selection.period.filter(|_| self.selection.force)?;
        let tier = *self.selection.tiers.first().unwrap_or(&Tier::of_period(period));
        let has_logs = |period: Period| self.inventory.logs_of(period).next().is_some();
        // A week outlives its logs.
        let is_there = |week: &Period| self.inventory.weekly.contains_key(week);
        let has_source = match tier {
            Tier::Extract | Tier::Weekly => has_logs(period),
            Tier::Monthly => period.weeks().iter().any(|week| has_logs(*week) || is_there(week)),
            Tier::Wisdom => self.inventory.monthly.contains_key(&period),
        };
        (!has_source).then_some((tier, period))
    }

    /// A log dated after tomorrow is a slip of the pen or a wrong clock.
    fn note_future_logs(&mut self) {
        let today = self.now.with_timezone(&self.settings.zone).date_naive();
        for (stem, log) in &self.inventory.logs {
            if stem.date() > today + Duration::days(1) {
                let reason =
                    format!("dated in the future (today is {today}); it waits for its day");
                self.plan.problems.push(FileProblem { path: log.path.clone(), reason });
            }
        }
    }

    /// A log that came after its day was archived is joined with it by the next pass, unless it is
    /// being written to.
    fn note_late_logs(&mut self) {
        for (stem, late) in &self.inventory.late_logs {
            if self.is_being_written(late) {
                let period = Period::containing(Grain::Week, stem.date());
                let cause = WaitCause::BeingWritten(late.path.clone());
                self.plan.waiting.push(WaitingPeriod { tier: Tier::Weekly, period, cause });
            }
        }
    }

    fn plan_days(&mut self) {
        let days: BTreeSet<NaiveDate> = self.inventory.logs.keys().map(Stem::date).collect();
        for day in days {
            let period = Period::containing(Grain::Day, day);
            if !self.is_closed(period) && !self.is_forced(Tier::Extract, period) {
                continue;
            }
            let inputs = self.log_inputs(period);
            let extracted = self.extracted_inputs(period);
            let changed = changed_inputs(&inputs, &extracted);
            let reason =
                if extracted.is_empty() { DueReason::New } else { DueReason::Changed(changed) };
            let due = reason != DueReason::Changed(Vec::new())
                || self.selection.rewrite.contains(&(Tier::Extract, period));
            let mut reason = due.then_some(reason);
            let engine = self.record.extracting_engine(period, self.inventory);
            if let Some(engine) =
                engine.filter(|it| reason.is_none() && *it != self.settings.engine)
            {
                *self.plan.other_engine.entry(Tier::Extract).or_default() += 1;
                reason = self.redo_reason(Tier::Extract, period, engine);
            }
            self.add_if_due(Tier::Extract, period, inputs, reason);
        }
    }

    /// What of a day was extracted, as the database knows it, else as the week's file says.
    fn extracted_inputs(&self, day: Period) -> BTreeMap<String, String> {
        let week = day.parent().and_then(|week| self.inventory.weekly.get(&week));
        let header = week
            .and_then(|file| file.header.as_ref())
            .filter(|header| header.extracted.contains(&day.to_string()));
        self.inventory
            .logs_of(day)
            .filter_map(|(stem, _)| {
                let name = stem.as_str();
                let known = self.record.extracted.get(name);
                let hash = known.or_else(|| header.and_then(|it| it.sources.get(name)))?;
                Some((name.to_owned(), hash.clone()))
            })
            .collect()
    }

    fn plan_weeks(&mut self) {
        let with_logs =
            self.inventory.logs.keys().map(|stem| Period::containing(Grain::Week, stem.date()));
        let weeks: BTreeSet<Period> =
            with_logs.chain(self.inventory.weekly.keys().copied()).collect();
        for week in weeks {
            let inputs = self.log_inputs(week);
            let file = self.inventory.weekly.get(&week);
            self.plan_summary(Tier::Weekly, week, inputs, file);
        }
    }

    fn plan_months(&mut self) {
        let weekly = self.inventory.weekly.keys().copied();
        let pending: BTreeSet<Period> = self.pending_periods(Tier::Weekly).collect();
        let months: BTreeSet<Period> =
            weekly.chain(pending.iter().copied()).filter_map(Period::parent).collect();
        for month in months {
            let inputs = self.week_inputs(month);
            let file = self.inventory.monthly.get(&month);
            let weeks_pending = month.weeks().iter().any(|week| pending.contains(week));
            let forced = self.is_forced(Tier::Monthly, month) && !inputs.is_empty();
            if weeks_pending && self.is_closed(month) && !forced {
                if file.is_none_or(|it| it.header.is_some()) {
                    self.plan.due_after.push((Tier::Monthly, month));
                }
                continue;
            }
            self.plan_summary(Tier::Monthly, month, inputs, file);
        }
    }

    /// Decides about a weekly or monthly file.
    fn plan_summary(
        &mut self,
        tier: Tier,
        period: Period,
        inputs: BTreeMap<String, String>,
        file: Option<&SummaryFile>,
    ) {
        let header = file.map(|it| it.header.as_ref());
        if let Some(Some(header)) = header
            && header.engine != self.settings.engine
        {
            *self.plan.other_engine.entry(tier).or_default() += 1;
        }
        if header == Some(None) && !self.is_forced(tier, period) {
            self.plan.foreign.push((tier, period));
            return;
        }
        if inputs.is_empty() {
            return; // The sources are gone; what was made of them stays.
        }
        if !self.is_closed(period) && !self.is_forced(tier, period) {
            let closes =
                start_of_day(period.last_source_day() + Duration::days(1), self.settings.zone);
            let closes = (closes + self.settings.grace).with_timezone(&self.settings.zone);
            let cause = WaitCause::Closes(closes);
            self.plan.waiting.push(WaitingPeriod { tier, period, cause });
            if !self.wants_open_week(tier, period) {
                return;
            }
        }
        let reason = match header.flatten() {
            None => Some(DueReason::New),
            Some(header) => {
                let mut changed = changed_inputs(&inputs, &header.sources);
                changed.extend(
                    orphaned_items::returned_sources(header, &inputs, self.inventory).cloned(),
                );
                changed.sort();
                changed.dedup();
                if !changed.is_empty() {
                    Some(DueReason::Changed(changed))
                } else if header.partial && self.is_closed(period) {
                    Some(DueReason::Closed)
                } else if self.selection.rewrite.contains(&(tier, period)) {
                    Some(DueReason::Forced)
                } else if header.fallback && header.engine != self.settings.engine {
                    Some(DueReason::MadeOffline)
                } else {
                    self.redo_reason(tier, period, &header.engine)
                }
            }
        };
        self.add_if_due(tier, period, inputs, reason);
    }

    /// Returns whether a provisional file of this open period is wanted now.
    fn wants_open_week(&self, tier: Tier, period: Period) -> bool {
        let today = self.now.with_timezone(&self.settings.zone).date_naive();
        let quiet = OPEN_WEEK_QUIET;
        self.selection.open_week
            && tier == Tier::Weekly
            && period.first() <= today
            && !self.inventory.logs_of(period).any(|(_, log)| self.was_changed_within(log, quiet))
    }

    fn redo_reason(&self, tier: Tier, period: Period, engine: &str) -> Option<DueReason> {
        let since = self.selection.redo?;
        let recent = since.is_none_or(|since| period.last() >= since);
        let wanted = recent && engine != self.settings.engine && self.is_selected(tier, period);
        wanted.then(|| DueReason::OtherEngine(engine.to_owned()))
    }

    fn plan_wisdom(&mut self) {
        let pending: BTreeSet<Period> = self.pending_periods(Tier::Monthly).collect();
        let months: BTreeSet<Period> =
            self.inventory.monthly.keys().chain(&pending).copied().collect();
        let mut held_up = false;
        for month in months {
            held_up |= pending.contains(&month);
            let Some(file) = self.inventory.monthly.get(&month).filter(|_| !held_up) else {
                if !self.record.distilled.contains_key(&month) {
                    self.plan.due_after.push((Tier::Wisdom, month));
                }
                continue;
            };
            let inputs = BTreeMap::from([(month.to_string(), file.body_hash.clone())]);
            let reason = match self.record.distilled.get(&month) {
                None => Some(DueReason::New),
                Some(Some(hash)) if *hash != file.body_hash => {
                    Some(DueReason::Changed(vec![month.to_string()]))
                }
                Some(_) => {
                    let unsettled = self.record.stale_wisdom.iter().filter(|it| it.0 == month);
                    let logs: Vec<String> = unsettled.map(|it| it.1.clone()).collect();
                    (!logs.is_empty()).then_some(DueReason::Changed(logs))
                }
            };
            let before = self.plan.waiting.len();
            self.add_if_due(Tier::Wisdom, month, inputs, reason);
            // A month that was just changed on disk must not be overtaken by a younger one.
            held_up |= self.plan.waiting[before..]
                .iter()
                .any(|it| !matches!(it.cause, WaitCause::Stuck(_) | WaitCause::Undone));
        }
    }

    /// Enters a job if it is due or forced, selected, not done before, and nothing holds it up.
    fn add_if_due(
        &mut self,
        tier: Tier,
        period: Period,
        inputs: BTreeMap<String, String>,
        reason: Option<DueReason>,
    ) {
        let forced = self.is_forced(tier, period);
        let Some(reason) = reason.or(forced.then_some(DueReason::Forced)) else { return };
        if inputs.is_empty() {
            return;
        }
        let fingerprint = match reason {
            // The same inputs have been folded before.
            DueReason::MadeOffline => {
                let again = fingerprint(tier, period, &inputs);
                ContentHash::of(format!("{again} {}", self.settings.engine))
            }
            _ => fingerprint(tier, period, &inputs),
        };
        let undone = !forced && self.inventory.decisions.is_undone(fingerprint);
        let redone = matches!(reason, DueReason::OtherEngine(_));
        if !forced && !undone && !redone && self.record.skipped.contains(&fingerprint) {
            return;
        }
        let held_up = if undone {
            Some(WaitCause::Undone)
        } else if let Some(why) = self.damage_reason(tier, period) {
            Some(WaitCause::Damaged(why))
        } else if let Some(why) = self.record.stuck.get(&fingerprint).filter(|_| !forced) {
            Some(WaitCause::Stuck(why.clone()))
        } else if matches!(tier, Tier::Extract | Tier::Weekly) {
            self.log_being_written(period).map(|log| WaitCause::BeingWritten(log.path.clone()))
        } else {
            None
        };
        if let Some(cause) = held_up {
            self.plan.waiting.push(WaitingPeriod { tier, period, cause });
        } else {
            let partial = !self.is_closed(period);
            self.plan.jobs.push(CompactionJob {
                tier,
                period,
                reason,
                inputs,
                fingerprint,
                partial,
            });
        }
    }

    /// Returns why nothing can be made of or in the place of a file that looks damaged.
    ///
    /// A month would lose what a week said that cannot be read. The week itself is made again.
    fn damage_reason(&self, tier: Tier, period: Period) -> Option<String> {
        let told = |path: &str| Some(format!("{path} {}", self.record.damaged.get(path)?));
        // Who makes a file of somebody else's anew by force has decided about it.
        let decided = |it: &SummaryFile| it.header.is_none() && self.is_forced(tier, period);
        let is_open = |it: &&SummaryFile| !decided(it);
        let week = |it: &Period| told(&self.inventory.weekly.get(it).filter(is_open)?.path);
        let month = |it: &Period| told(&self.inventory.monthly.get(it).filter(is_open)?.path);
        let unread = |it: &Period| {
            let name = format!("/{it}.md");
            let problem = self.inventory.problems.iter().find(|p| p.path.ends_with(&name))?;
            Some(format!("{} cannot be read: {}", problem.path, problem.reason))
        };
        match tier {
            Tier::Extract => None,
            Tier::Weekly => week(&period),
            Tier::Monthly => month(&period)
                .or_else(|| period.weeks().iter().find_map(|it| week(it).or_else(|| unread(it)))),
            Tier::Wisdom => month(&period).or_else(|| told("WISDOM.md")),
        }
    }

    /// Returns the log of the period that was changed moments ago. A time after `now` is settled:
    /// a wrong clock must not hold a file up for ever.
    fn log_being_written(&self, period: Period) -> Option<&LogFile> {
        self.inventory.logs_of(period).map(|(_, log)| log).find(|log| self.is_being_written(log))
    }

    fn is_being_written(&self, log: &LogFile) -> bool {
        self.was_changed_within(log, self.settings.quiet)
    }

    fn was_changed_within(&self, log: &LogFile, quiet: Duration) -> bool {
        let now = self.now.timestamp_nanos_opt().unwrap_or(i64::MAX);
        let quiet = quiet.num_nanoseconds().unwrap_or(i64::MAX);
        (0..quiet).contains(&now.saturating_sub(log.stamp.mtime_ns))
    }

    /// Returns the periods of a tier that will yet be made in this pass or wait for a quiet moment.
    fn pending_periods(&self, tier: Tier) -> impl Iterator<Item = Period> + '_ {
        let jobs = self.plan.jobs.iter().filter(move |it| it.tier == tier).map(|it| it.period);
        let following = self.plan.due_after.iter().filter(move |it| it.0 == tier).map(|it| it.1);
        let written = self
            .plan
            .waiting
            .iter()
            .filter(move |it| it.tier == tier && matches!(it.cause, WaitCause::BeingWritten(_)))
            .map(|it| it.period);
        jobs.chain(following).chain(written)
    }

    fn log_inputs(&self, period: Period) -> BTreeMap<String, String> {
        self.inventory
            .logs_of(period)
            .map(|(stem, log)| (stem.to_string(), log.input_hash.hex16()))
            .collect()
    }

    /// The weekly files of a month; a provisional one feeds no month.
    fn week_inputs(&self, month: Period) -> BTreeMap<String, String> {
        let weeks = month.weeks();
        let files = weeks.iter().filter_map(|week| Some((week, self.inventory.weekly.get(week)?)));
        files
            .filter(|(_, file)| !file.header.as_ref().is_some_and(|it| it.partial))
            .map(|(week, file)| (week.to_string(), file.body_hash.clone()))
            .collect()
    }

    fn is_closed(&self, period: Period) -> bool {
        period.last_source_day() < self.closed_before
    }

    fn is_selected(&self, tier: Tier, period: Period) -> bool {
        if self.selection.rewrite.contains(&(tier, period)) {
            return true;
        }
        if self.selection.only_rewrite {
            return false;
        }
        if tier == Tier::Extract && self.is_day_of_selected(period) {
            return true;
        }
        let tiers = &self.selection.tiers;
        let tier_wanted = if tiers.is_empty() {
            self.selection.period.is_none_or(|it| Tier::of_period(it) == tier)
        } else {
            tiers.contains(&tier)
        };
        tier_wanted && self.selection.period.is_none_or(|it| it == period)
    }

    /// Returns whether a day is asked for with the week or month that it lies in: where days are asked
    /// for, and where a week is made by force of which the day was taken back.
    fn is_day_of_selected(&self, day: Period) -> bool {
        let Some(period) = self.selection.period.filter(|it| it.grain() != Grain::Day) else {
            return false;
        };
        if !(period.first()..period.end()).contains(&day.first()) {
            return false;
        }
        let is_undone = || {
            let work = fingerprint(Tier::Extract, day, &self.log_inputs(day));
            self.inventory.decisions.is_undone(work)
        };
        match self.selection.tiers[..] {
            [] => self.selection.force && period.grain() == Grain::Week && is_undone(),
            _ => self.selection.tiers.contains(&Tier::Extract),
        }
    }

    fn is_forced(&self, tier: Tier, period: Period) -> bool {
        let named = self.selection.period == Some(period)
            || (tier == Tier::Extract && self.is_day_of_selected(period));
        self.selection.force && named && self.is_selected(tier, period)
    }
}

/// Returns the inputs that `known` lacks or names with another hash. A source that is only in
/// `known` has vanished, which changes nothing.
fn changed_inputs(
    inputs: &BTreeMap<String, String>,
    known: &BTreeMap<String, String>,
) -> Vec<String> {
    inputs
        .iter()
        .filter(|(name, hash)| known.get(*name) != Some(hash))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Names a piece of work by what goes into it.
pub fn fingerprint(tier: Tier, period: Period, inputs: &BTreeMap<String, String>) -> ContentHash {
    let mut text = format!("{tier}\n{period}\n");
    for (name, hash) in inputs {
        text.push_str(name);
        text.push(' ');
        text.push_str(hash);
        text.push('\n');
    }
    ContentHash::of(text)
}

impl fmt::Display for DueReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More names than this say nothing more.
        const NAMES_MAX: usize = 3;
        match self {
            Self::New => f.write_str("new"),
            Self::Changed(names) => {
                write!(f, "changed: {}", names[..names.len().min(NAMES_MAX)].join(", "))?;
                match names.len().saturating_sub(NAMES_MAX) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::Closed => f.write_str("the period has closed"),
            Self::Forced => f.write_str("asked for"),
            Self::MadeOffline => f.write_str("made without the model"),
            Self::OtherEngine(engine) => write!(f, "made by {engine}"),
        }
    }
}

impl fmt::Display for WaitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closes(at) => write!(f, "open until {}", at.format("%Y-%m-%d %H:%M %Z")),
            Self::BeingWritten(path) => write!(f, "{path} is still being written"),
            Self::Stuck(why) => write!(f, "stuck: {why}"),
            Self::Undone => f.write_str("taken back by undo; waits for changed input"),
            Self::Damaged(why) => write!(f, "held: {why}"),
        }
    }
}

#[cfg(test)]
mod tests;
