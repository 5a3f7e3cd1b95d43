//! When a root is checked: its cron schedules, and what becomes due between two ticks.
//!
//! Pure: the caller passes the time. An [`Agenda`] makes nothing due; it only says when to ask the
//! plan. Any number of missed ticks count as one. A clock that is set back causes one more check, which
//! repeats nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use chrono::{DateTime, Duration, NaiveDate, Utc};
use chrono_tz::Tz;

use crate::{
    compaction::plan::{CompactionPlan, OPEN_WEEK_QUIET, WaitCause, start_of_day},
    config::{
        duration::Span,
        root::RootSettings,
        schedule::Schedule,
        settings::{EngineKind, Schedules, Settings},
    },
    memory::{hash::ContentHash, item::Tier},
};

/// A clock this far behind the last reading was set back; less is normal slewing.
const SET_BACK: Duration = Duration::minutes(1);
/// The ticks of many roots are spread over at most this.
const JITTER_MAX: Duration = Duration::minutes(10);

/// The times at which one root is checked.
#[derive(Clone, Debug)]
pub(super) struct Agenda {
    schedules: Schedules,
    zone: Tz,
    grace: Duration,
    quiet: Duration,
    /// Whether whatever becomes due is written at once, without waiting for a tick.
    on_change: bool,
    /// Whether the current week has a provisional file.
    open_week: bool,
    /// The delay after each tick.
    jitter: Duration,
    /// When `take_due` was called last.
    last_asked: DateTime<Utc>,
    /// The next tick of each tier; a schedule that never fires is missing.
    ticks: BTreeMap<Tier, DateTime<Utc>>,
    /// Per tier, when something that waits becomes due.
    wakes: BTreeMap<Tier, DateTime<Utc>>,
    blocked_tiers: BTreeSet<Tier>,
}

/// What a run found out about the times of its root.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanUpdate<'a> {
    pub(super) plan: &'a CompactionPlan,
    /// The last change of each log that is still being written, by path.
    pub(super) being_written: &'a BTreeMap<String, DateTime<Utc>>,
    /// When any log was last changed.
    pub(super) last_change: Option<DateTime<Utc>>,
    pub(super) started_at: DateTime<Utc>,
    pub(super) ended_at: DateTime<Utc>,
}

/// Returns whether drafts cost nothing.
fn is_free(settings: &Settings) -> bool {
    settings.engine == EngineKind::Extractive
}

/// Returns whether the current week of a root has a provisional file.
pub(super) fn is_open_week(settings: &RootSettings) -> bool {
    let settings = &settings.settings;
    settings.compaction.open_week.resolve(is_free(settings))
}

/// Returns the delay of one root's ticks, so that `roots` roots take turns, a second apart on average.
/// It is the same after each start, and zero for a single root.
pub(super) fn jitter(root: &Path, roots: usize) -> std::time::Duration {
    let spread = i32::try_from(roots.saturating_sub(1)).unwrap_or(i32::MAX);
    let spread = (Duration::seconds(1) * spread).min(JITTER_MAX).to_std().unwrap_or_default();
    let hash = ContentHash::of(root.as_os_str().as_encoded_bytes()).to_string();
    let part = hash.get(..4).and_then(|it| u32::from_str_radix(it, 16).ok()).unwrap_or_default();
    spread * part / 0x1_0000
}

impl Agenda {
    /// Returns the agenda of a root whose ticks are delayed by `jitter`.
    pub(super) fn new(
        settings: &RootSettings,
        jitter: std::time::Duration,
        now: DateTime<Utc>,
    ) -> Self {
        let compaction = &settings.settings.compaction;
        let span = |it: Span| Duration::from_std(it.as_duration()).unwrap_or(Duration::MAX);
        let mut agenda = Self {
            schedules: settings.settings.schedule.clone(),
            zone: settings.zone.name.0,
            grace: span(compaction.grace),
            quiet: span(compaction.quiet),
            on_change: settings.settings.schedule.on_change.resolve(is_free(&settings.settings)),
            open_week: is_open_week(settings),
            jitter: Duration::from_std(jitter).unwrap_or_default(),
            last_asked: now,
            ticks: BTreeMap::new(),
            wakes: BTreeMap::new(),
            blocked_tiers: BTreeSet::new(),
        };
        agenda.set_ticks(now);
        agenda
    }

    /// Returns whether changes are written as soon as they are noticed.
    pub(super) fn is_on_change(&self) -> bool {
        self.on_change
    }

    /// Returns the tiers that are due at `now`, and removes the times that made them due.
    pub(super) fn take_due(&mut self, now: DateTime<Utc>) -> BTreeSet<Tier> {
        let set_back = now + SET_BACK < self.last_asked;
        self.last_asked = now;
        if set_back {
            self.wakes.clear();
            self.set_ticks(now);
            return Tier::ALL.into();
        }
        let is_due = |it: &&Tier, times: &BTreeMap<Tier, DateTime<Utc>>| times[*it] <= now;
        let ticked: BTreeSet<Tier> =
            self.ticks.keys().filter(|it| is_due(it, &self.ticks)).copied().collect();
        let woken: BTreeSet<Tier> =
            self.wakes.keys().filter(|it| is_due(it, &self.wakes)).copied().collect();
        if ticked.is_empty() && woken.is_empty() {
            return BTreeSet::new();
        }
        self.wakes.retain(|tier, _| !woken.contains(tier));
        if !ticked.is_empty() {
            self.set_ticks(now);
        }
        if self.on_change {
            return Tier::ALL.into();
        }
        // A tier that waited for a lower one becomes due with it, without waiting for its own tick.
        let above = self.blocked_tiers.iter().copied();
        ticked.iter().chain(&woken).copied().chain(above).collect()
    }

    /// Records what waits after a run, and until when.
    pub(super) fn update(&mut self, update: &PlanUpdate<'_>) {
        let &PlanUpdate { plan, being_written, last_change, started_at, ended_at: now } = update;
        // Times that have passed during the run are still to be handled, although nothing waits for
        // them any more.
        self.wakes.retain(|_, at| *at <= now);
        if self.first_open_day(started_at) != self.first_open_day(now) {
            // A day that closed during the run may be unknown to it.
            self.wakes.extend([Tier::Extract, Tier::Weekly, Tier::Monthly].map(|tier| (tier, now)));
        }
        for waiting in &plan.waiting {
            let at = match &waiting.cause {
                WaitCause::Closes(at) => at.with_timezone(&Utc),
                WaitCause::BeingWritten(path) => {
                    let Some(at) = being_written.get(path) else { continue };
                    *at + self.quiet
                }
                WaitCause::Stuck(_) | WaitCause::Undone | WaitCause::Damaged(_) => continue,
            };
            self.add_wake(waiting.tier, at, now);
        }
        if self.open_week
            && let Some(at) = last_change
        {
            self.add_wake(Tier::Weekly, at + OPEN_WEEK_QUIET, now);
        }
        if self.on_change {
            // The plan does not contain the current day, which may have no log yet.
            let next = self.first_open_day(now).succ_opt();
            let closes = next.map(|day| start_of_day(day, self.zone) + self.grace);
            if let Some(at) = closes {
                self.add_wake(Tier::Extract, at, now);
            }
        }
        self.blocked_tiers = plan.due_after.iter().map(|&(tier, _)| tier).collect();
    }

    pub(super) fn next(&self) -> Option<DateTime<Utc>> {
        self.ticks.values().chain(self.wakes.values()).min().copied()
    }

    /// Returns [`Agenda::next`] in the root's time zone.
    pub(super) fn next_local(&self) -> Option<DateTime<Tz>> {
        self.next().map(|it| it.with_timezone(&self.zone))
    }

    fn first_open_day(&self, now: DateTime<Utc>) -> NaiveDate {
        (now - self.grace).with_timezone(&self.zone).date_naive()
    }

    fn add_wake(&mut self, tier: Tier, at: DateTime<Utc>, now: DateTime<Utc>) {
        // A plan that still waits for a past time would cause checks without end.
        if at > now {
            let slot = self.wakes.entry(tier).or_insert(at);
            *slot = at.min(*slot);
        }
    }

    fn set_ticks(&mut self, now: DateTime<Utc>) {
        let fired = (now - self.jitter).with_timezone(&self.zone);
        let next =
            |line: &Schedule| Some(line.next_after(fired)?.with_timezone(&Utc) + self.jitter);
        let Schedules { extract, weekly, monthly, wisdom, .. } = &self.schedules;
        self.ticks = [
            (Tier::Extract, extract),
            (Tier::Weekly, weekly),
            (Tier::Monthly, monthly),
            (Tier::Wisdom, wisdom),
        ]
        .into_iter()
        .filter_map(|(tier, line)| Some((tier, next(line)?)))
        .collect();
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Days, Offset as _, TimeZone as _};

    use super::*;
    use crate::{
        compaction::plan::WaitingPeriod,
        config::{Config, environment::Environment},
    };

    /// Returns the agenda of a root in Berlin.
    fn agenda(config: &str, now: &str) -> Agenda {
        let around = Environment::default();
        let text = format!("roots: [{{path: /no/a, zone: Europe/Berlin}}]\n{config}");
        let file = std::path::Path::new("/no/config.yaml");
        let config = Config::from_text(Some((file, &text)), &[], &around).unwrap();
        let root = crate::config::root::RootFile::default();
        let settings = config.resolve("/no/a".into(), &root, &around).unwrap();
        Agenda::new(&settings, std::time::Duration::ZERO, time(now))
    }

    /// Parses a time in UTC.
    fn time(text: &str) -> DateTime<Utc> {
        format!("{text}:00Z").parse().unwrap()
    }

    fn plan(waiting: &[(Tier, &str, &str)], following: &[(Tier, &str)]) -> CompactionPlan {
        let wait = |&(tier, period, at): &(Tier, &str, &str)| WaitingPeriod {
            tier,
            period: period.parse().unwrap(),
            cause: WaitCause::Closes(time(at).with_timezone(&Tz::Europe__Berlin)),
        };
        CompactionPlan {
            waiting: waiting.iter().map(wait).collect(),
            due_after: following.iter().map(|(tier, it)| (*tier, it.parse().unwrap())).collect(),
            ..CompactionPlan::default()
        }
    }

    /// Updates the agenda after a short run.
    fn note(agenda: &mut Agenda, plan: &CompactionPlan, at: &str) {
        note_run(agenda, plan, at, at);
    }

    /// Updates the agenda after a run.
    fn note_run(agenda: &mut Agenda, plan: &CompactionPlan, started_at: &str, ended_at: &str) {
        agenda.update(&PlanUpdate {
            plan,
            being_written: &BTreeMap::new(),
            last_change: None,
            started_at: time(started_at),
            ended_at: time(ended_at),
        });
    }

    #[track_caller]
    fn check(agenda: &mut Agenda, now: &str, due: &[Tier], next: &str) {
        let seen = agenda.take_due(time(now));
        assert_eq!(seen, due.iter().copied().collect(), "due at {now}");
        assert_eq!(agenda.next(), Some(time(next)), "after {now}");
    }

    #[test]
    fn each_schedule_makes_its_own_tier_due() {
        use Tier::{Extract, Monthly, Weekly, Wisdom};
        // In April Berlin is two hours ahead.
        let agenda = &mut agenda("schedule: {on_change: false}", "2026-04-13T00:00");
        check(agenda, "2026-04-13T00:29", &[], "2026-04-13T00:30");
        check(agenda, "2026-04-13T00:30", &[Extract], "2026-04-13T01:00");
        check(agenda, "2026-04-13T01:01", &[Weekly], "2026-04-13T01:15");
        check(agenda, "2026-04-13T01:15", &[Monthly], "2026-04-13T01:30");
        check(agenda, "2026-04-13T01:30", &[Wisdom], "2026-04-14T00:30");
        // After a week asleep all tiers are due once, together.
        check(agenda, "2026-04-20T12:00", &Tier::ALL, "2026-04-21T00:30");
        // The clock was set back by a month.
        check(agenda, "2026-03-20T12:00", &Tier::ALL, "2026-03-21T01:30");
    }

    #[test]
    fn a_tick_opens_a_window() {
        use Tier::{Extract, Monthly, Weekly};
        let config = "schedule: {on_change: false, weekly: '0 3 * * 1', monthly: '0 4 1 * *', wisdom: '@yearly'}\n\
                      compaction: {grace: 12h}";
        let agenda = &mut agenda(config, "2026-04-06T02:00");
        let closes =
            [(Weekly, "2026-W15", "2026-04-12T22:00"), (Monthly, "2026-04", "2026-05-04T10:00")];
        note(agenda, &plan(&closes, &[]), "2026-04-06T02:00");
        check(agenda, "2026-04-07T00:30", &[Extract], "2026-04-08T00:30");
        note(agenda, &plan(&closes, &[(Monthly, "2026-03")]), "2026-04-12T01:00");
        check(agenda, "2026-04-12T21:00", &[Extract, Monthly], "2026-04-12T22:00");
        // The week closes before its tick, and March waits for it.
        check(agenda, "2026-04-12T22:00", &[Weekly, Monthly], "2026-04-13T00:30");
    }

    #[test]
    fn on_change_makes_all_tiers_due_when_a_day_closes() {
        let agenda = &mut agenda("compaction: {grace: 6h}", "2026-04-13T12:00");
        note(agenda, &CompactionPlan::default(), "2026-04-13T12:00");
        check(agenda, "2026-04-14T01:59", &Tier::ALL, "2026-04-14T04:00"); // missed ticks
        check(agenda, "2026-04-14T04:00", &Tier::ALL, "2026-04-15T00:30");
        // Before the grace has passed, yesterday is still open.
        note(agenda, &CompactionPlan::default(), "2026-04-14T03:59");
        assert_eq!(agenda.next(), Some(time("2026-04-14T04:00")));
    }

    #[test]
    fn tiers_that_become_due_during_a_run_are_due_after_it() {
        use Tier::{Extract, Monthly, Weekly};
        let config = "schedule: {on_change: false, extract: '@yearly', weekly: '@yearly', monthly: '@yearly', \
                      wisdom: '@yearly'}";
        let agenda = &mut agenda(config, "2026-04-12T12:00");
        // Two hours after midnight.
        let closes = [(Weekly, "2026-W15", "2026-04-13T00:00")];
        note(agenda, &plan(&closes, &[]), "2026-04-12T12:00");
        // A run ends after the week has closed, before its tick, and nothing waits any more.
        note(agenda, &CompactionPlan::default(), "2026-04-13T00:00");
        check(agenda, "2026-04-13T00:00", &[Weekly], "2026-12-31T23:00");
        // A run that began before a week closed did not know about it.
        note_run(agenda, &CompactionPlan::default(), "2026-04-19T23:59", "2026-04-20T00:01");
        check(agenda, "2026-04-20T00:01", &[Extract, Weekly, Monthly], "2026-12-31T23:00");
    }

    #[test]
    fn a_past_time_in_the_plan_makes_nothing_due() {
        let agenda = &mut agenda("schedule: {on_change: false}", "2026-04-13T12:00");
        let stale = plan(&[(Tier::Weekly, "2026-W15", "2026-04-13T11:00")], &[]);
        note(agenda, &stale, "2026-04-13T12:00");
        check(agenda, "2026-04-13T12:01", &[], "2026-04-14T00:30");
    }

    #[test]
    fn many_roots_take_turns_and_a_single_root_has_no_delay() {
        use std::time::Duration as Span;
        let of = |n: usize, roots| jitter(Path::new(&format!("/home/ada/agents/{n}")), roots);
        assert_eq!(of(7, 1), Span::ZERO);
        let waits: BTreeSet<Span> = (0..1000).map(|n| of(n, 1000)).collect();
        assert!(waits.len() > 950, "{}", waits.len());
        assert!(waits.iter().all(|it| *it < Span::from_secs(600)));
        assert_eq!(of(7, 1000), of(7, 1000));
        let mut agenda = agenda("schedule: {on_change: false}", "2026-04-13T00:00");
        agenda.jitter = Duration::minutes(9);
        agenda.set_ticks(time("2026-04-13T00:35"));
        check(&mut agenda, "2026-04-13T00:38", &[], "2026-04-13T00:39");
        check(&mut agenda, "2026-04-13T00:39", &[Tier::Extract], "2026-04-13T01:09");
    }

    /// The days of ten years around which a zone changes its clocks, with their neighbours.
    fn odd_days(zone: Tz) -> BTreeSet<NaiveDate> {
        let from = NaiveDate::from_ymd_opt(2020, 1, 1).unwrap();
        let offset = |day: NaiveDate| {
            zone.offset_from_utc_datetime(&day.and_hms_opt(0, 0, 0).unwrap()).fix()
        };
        let changed = from
            .iter_days()
            .take(3653)
            .filter(|day| offset(*day) != offset(day.succ_opt().unwrap()));
        changed.flat_map(|day| (day - Days::new(2)).iter_days().take(5)).collect()
    }

    #[test]
    fn every_local_day_of_ten_years_is_asked_about_once_in_every_zone() {
        let base = agenda("schedule: {on_change: false}", "2020-01-01T00:00");
        // Zones with the same changes are checked once.
        let mut seen = BTreeSet::new();
        let mut walked = 0;
        for zone in chrono_tz::TZ_VARIANTS {
            let days = odd_days(zone);
            let start = |day: &NaiveDate| start_of_day(*day, zone);
            if !seen.insert(days.iter().map(start).collect::<Vec<_>>()) {
                continue;
            }
            walked += 1;
            let stretches = days.iter().filter(|it| !days.contains(&it.pred_opt().unwrap()));
            for first in stretches {
                let length = first.iter_days().take_while(|it| days.contains(it)).count();
                let mut agenda = Agenda { zone, ..base.clone() };
                agenda.last_asked = start(first);
                agenda.set_ticks(start(first) - Duration::seconds(1));
                let mut asked: BTreeMap<(NaiveDate, Tier), usize> = BTreeMap::new();
                let end = start(&(*first + Days::new(length as u64)));
                while let Some(at) = agenda.next().filter(|it| *it < end) {
                    let day = at.with_timezone(&zone).date_naive();
                    for tier in agenda.take_due(at) {
                        *asked.entry((day, tier)).or_default() += 1;
                    }
                }
                for day in first.iter_days().take(length) {
                    // Islands that crossed the date line skipped a day.
                    let is_there = start_of_day(day, zone).with_timezone(&zone).date_naive() == day;
                    for tier in Tier::ALL {
                        let times = asked.get(&(day, tier)).copied().unwrap_or(0);
                        assert_eq!(times, usize::from(is_there), "{zone} {day} {tier}");
                    }
                }
            }
        }
        assert!(walked > 40, "{walked} zones");
    }
}
