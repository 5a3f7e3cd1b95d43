//! The rules by which a period is due, waits, or is up to date.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, NaiveDate, Utc};

use super::{
    CompactionJob, CompactionPlan, DueReason, LASTING_LOGS_MAX, OPEN_WEEK_QUIET, PlanSettings,
    RecordedState, RedoFrom, Selection, WaitCause, WaitingPeriod, fingerprint, start_of_day,
    states_from,
};
use crate::{
    memory::{
        address::Stem,
        document::SummaryHeader,
        hash::ContentHash,
        item::Tier,
        period::{Grain, Period},
    },
    store::fs::inventory::{FileProblem, Inventory, LogFile, SummaryFile},
};

pub(super) struct Planner<'a> {
    inventory: &'a Inventory,
    record: &'a RecordedState,
    settings: &'a PlanSettings,
    selection: &'a Selection,
    now: DateTime<Utc>,
    /// A period has closed when it ends on or before this day: the local day of `now - grace`.
    closed_before: NaiveDate,
    plan: CompactionPlan,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        inventory: &'a Inventory,
        record: &'a RecordedState,
        settings: &'a PlanSettings,
        selection: &'a Selection,
        now: DateTime<Utc>,
    ) -> Self {
        let closed_before = (now - settings.grace).with_timezone(&settings.zone).date_naive();
        let plan = CompactionPlan::default();
        Self { inventory, record, settings, selection, now, closed_before, plan }
    }

    pub(super) fn run(mut self) -> CompactionPlan {
        self.note_future_logs();
        self.note_late_logs();
        if self.settings.extract {
            self.plan_days();
        }
        self.plan_weeks();
        self.plan_months();
        self.plan_wisdom();
        if self.settings.digest {
            self.plan_digest();
        }
        // Tiers wait for each other whether they are selected or not, so unselected work leaves the
        // plan only now.
        self.plan.without_source = self.missing_source();
        let mut plan = std::mem::take(&mut self.plan);
        plan.jobs.retain(|it| self.is_selected(it.tier, it.period));
        plan.due_after.retain(|&(tier, period)| self.is_selected(tier, period));
        plan.waiting.retain(|it| self.is_selected(it.tier, it.period));
        // The bullets of `WISDOM.md` take the room that its entries leave.
        plan.jobs.sort_by_key(|job| (job.tier, job.is_digest(), job.period));
        plan
    }

    /// Returns the forced tier and period if it has no source: its logs are gone, or never existed.
    fn missing_source(&self) -> Option<(Tier, Period)> {
        let period = self.selection.period.filter(|_| self.selection.force)?;
        let tier = *self.selection.tiers.first().unwrap_or(&Tier::of_period(period));
        let has_logs = |period: Period| self.inventory.logs_of(period).next().is_some();
        // A week remains when its logs are gone.
        let is_there = |week: &Period| self.inventory.weekly.contains_key(week);
        let has_source = match tier {
            Tier::Extract | Tier::Weekly => has_logs(period),
            Tier::Monthly => period.weeks().iter().any(|week| has_logs(*week) || is_there(week)),
            // Bullets are chosen from logs, entries from months.
            Tier::Wisdom if period.grain() == Grain::Day => has_logs(period),
            Tier::Wisdom => self.inventory.monthly.contains_key(&period),
        };
        (!has_source).then_some((tier, period))
    }

    /// A log dated after tomorrow has a typing error or a wrong clock.
    fn note_future_logs(&mut self) {
        let today = self.now.with_timezone(&self.settings.zone).date_naive();
        for (stem, log) in &self.inventory.logs {
            if stem.date() > today + Duration::days(1) {
                let reason =
                    format!("dated in the future (today is {today}); it waits for its day");
                self.plan.problems.push(FileProblem::new(&log.path[..], reason));
            }
        }
    }

    /// The next run joins a log with its archived day, unless it is being written.
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

    /// Returns what was extracted of a day, from the database, else from the week's file.
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

    /// Plans a weekly or monthly file.
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
                changed.extend(returned_sources(header, &inputs, self.inventory).cloned());
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

    /// Returns whether a provisional file of this open period is due now.
    fn wants_open_week(&self, tier: Tier, period: Period) -> bool {
        let today = self.now.with_timezone(&self.settings.zone).date_naive();
        let quiet = OPEN_WEEK_QUIET;
        self.selection.open_week
            && tier == Tier::Weekly
            && period.first() <= today
            && !self.inventory.logs_of(period).any(|(_, log)| self.was_changed_within(log, quiet))
    }

    fn redo_reason(&self, tier: Tier, period: Period, engine: &str) -> Option<DueReason> {
        let recent = match self.selection.redo? {
            RedoFrom::Beginning => true,
            RedoFrom::Date(since) => period.last() >= since,
        };
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
            // A younger month must not overtake one that just changed on disk.
            held_up |= self.plan.waiting[before..]
                .iter()
                .any(|it| !matches!(it.cause, WaitCause::Stuck(_) | WaitCause::Undone));
        }
    }

    /// Plans the choice of bullets from the newest logs.
    fn plan_digest(&mut self) {
        let today = self.now.with_timezone(&self.settings.zone).date_naive();
        let past = self.inventory.logs.iter().filter(|it| it.0.date() <= today);
        let (open, logs): (Vec<_>, Vec<_>) = past.partition(|it| self.is_being_written(it.1));
        // What is being written is read when it is quiet.
        if let Some((_, log)) = open.first() {
            let period = Period::containing(Grain::Day, today);
            let cause = WaitCause::BeingWritten(log.path.clone());
            self.plan.waiting.push(WaitingPeriod { tier: Tier::Wisdom, period, cause });
        }
        let Some(newest) = logs.iter().map(|it| it.0.date()).max() else { return };
        let (older, recent): (Vec<_>, Vec<_>) =
            logs.into_iter().partition(|it| it.0.date() < states_from(Some(newest)));
        let mut inputs: BTreeMap<String, String> = recent
            .into_iter()
            .chain(older.into_iter().rev().take(LASTING_LOGS_MAX))
            .map(|(stem, log)| {
                // Of what a model read they are what it found.
                let is_read = self.record.is_read_by_model(stem, self.inventory);
                let mark = if is_read { ", read by a model" } else { "" };
                (stem.to_string(), format!("{}{mark}", log.input_hash.hex16()))
            })
            .collect();
        // Bullets are chosen beside the entries, so they are chosen again after a month.
        let planned = self.plan.jobs.iter().filter(|it| it.tier == Tier::Wisdom);
        let months = self.record.distilled.keys().copied().chain(planned.map(|it| it.period));
        inputs.extend(months.filter_map(|month| {
            Some((month.to_string(), self.inventory.monthly.get(&month)?.body_hash.clone()))
        }));
        let by_model = self.inventory.memories.iter().filter(|it| !it.by_model.is_empty());
        inputs.extend(by_model.map(|it| {
            let statements = format!("{}\n{}", it.name, it.by_model.join("\n"));
            (it.file_name.display().to_string(), ContentHash::of(statements.as_bytes()).hex16())
        }));
        // No bullet repeats the agent's own notes.
        let notes = &self.inventory.curated;
        inputs.extend(notes.iter().map(|it| (it.path.clone(), it.hash.hex16())));
        let reason = if notes.is_empty() { DueReason::NewerLogs } else { DueReason::NewerNotes };
        let period = Period::containing(Grain::Day, newest);
        let is_done = self.inventory.wisdom.is_some()
            && self.record.digested.contains(&fingerprint(Tier::Wisdom, period, &inputs))
            && !self.plan.jobs.iter().any(|it| it.tier == Tier::Wisdom);
        self.add_if_due(Tier::Wisdom, period, inputs, (!is_done).then_some(reason));
    }

    /// Adds a job if it is due or forced, selected, not done before, and nothing blocks it.
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
            // A job with the same inputs was done before.
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

    /// Returns why nothing can be made from a file that may be damaged, or in its place.
    ///
    /// A month would lose what an unreadable week said. The week itself is made again.
    fn damage_reason(&self, tier: Tier, period: Period) -> Option<String> {
        let damage = |path: &str| Some(format!("{path} {}", self.record.damaged.get(path)?));
        // A person who forces a foreign file has decided about it.
        let decided = |it: &SummaryFile| it.header.is_none() && self.is_forced(tier, period);
        let is_open = |it: &&SummaryFile| !decided(it);
        let week = |it: &Period| damage(&self.inventory.weekly.get(it).filter(is_open)?.path);
        let month = |it: &Period| damage(&self.inventory.monthly.get(it).filter(is_open)?.path);
        // Only the week's own file: a note of this name elsewhere is reported and blocks nothing.
        let unread = |it: &Period| {
            let name = format!("weekly/{it}.md");
            let problem = self.inventory.problems.iter().find(|p| p.path.ends_with(&name))?;
            Some(format!("{} cannot be read: {}", problem.path, problem.reason))
        };
        if let Some(conflict) = self.merge_conflict(tier, period) {
            return Some(conflict.reason.clone());
        }
        match tier {
            Tier::Extract => None,
            Tier::Weekly => week(&period),
            Tier::Monthly => month(&period)
                .or_else(|| period.weeks().iter().find_map(|it| week(it).or_else(|| unread(it)))),
            Tier::Wisdom if period.grain() == Grain::Day => damage("WISDOM.md"),
            Tier::Wisdom => month(&period).or_else(|| damage("WISDOM.md")),
        }
    }

    /// Returns the file that could not be merged and that a job reads or would write.
    fn merge_conflict(&self, tier: Tier, period: Period) -> Option<&FileProblem> {
        let is_within = |day: NaiveDate| match tier {
            Tier::Monthly => {
                period.weeks().iter().any(|week| (week.first()..week.end()).contains(&day))
            }
            _ => (period.first()..period.end()).contains(&day),
        };
        self.inventory.merge_conflicts().find(|it| {
            let name = it.path.rsplit('/').next().and_then(|it| it.strip_suffix(".md"));
            let stem = name.and_then(|it| it.parse::<Stem>().ok());
            match (tier, stem) {
                (Tier::Wisdom, _) => true,
                (_, Some(stem)) => match stem.summary_period() {
                    Some(file) => {
                        file == period || (tier == Tier::Monthly && period.weeks().contains(&file))
                    }
                    None => is_within(stem.date()),
                },
                // A day might write a memory a second time.
                (Tier::Extract, None) => name != Some("WISDOM"),
                (Tier::Weekly | Tier::Monthly, None) => false,
            }
        })
    }

    /// Returns the log of the period that changed moments ago. A time after `now` counts as
    /// settled: a wrong clock must not block a file for ever.
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

    /// Returns the periods of a tier that this run will still do or that wait for a quiet log.
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

    /// Returns the weekly files of a month, without provisional ones.
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
            // The room of a forgotten bullet is used at once, so that an interrupted run ends with the same file.
            return tier == Tier::Wisdom && period.grain() == Grain::Day;
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

    /// Returns whether a day is selected by its week or month: if days are selected, or if a week
    /// is forced whose day was undone.
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

/// Returns the inputs that `known` lacks or has with another hash. A source that is only in `known`
/// has vanished, which changes nothing.
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

/// Returns the sources that were missing when a file was made and exist again.
fn returned_sources<'a>(
    header: &'a SummaryHeader,
    inputs: &'a BTreeMap<String, String>,
    inventory: &'a Inventory,
) -> impl Iterator<Item = &'a String> {
    header.missing_sources.iter().filter(|name| {
        inputs.contains_key(*name)
            || name.parse::<Stem>().is_ok_and(|it| inventory.logs.contains_key(&it))
    })
}
