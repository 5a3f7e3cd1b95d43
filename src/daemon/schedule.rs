//! When a root is to be looked at: its crontab lines, and what falls due between two of them.
//!
//! Pure: the loop brings the time. Nothing is due because of an [`Agenda`]; it only says when to
//! ask the plan. A tick that was slept through is one tick, however many were missed, and a clock
//! that goes back asks once more, which does nothing that is done already.

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

/// A clock that is this much behind the last reading was set back; less is the usual slewing.
const SET_BACK: Duration = Duration::minutes(1);
/// The ticks of many roots are spread over no more than this.
const JITTER_MAX: Duration = Duration::minutes(10);

/// The times at which one root is to be looked at.
#[derive(Clone, Debug)]
pub(super) struct Agenda {
    schedules: Schedules,
    zone: Tz,
    grace: Duration,
    quiet: Duration,
    /// Whether whatever falls due is made as it falls due, ticks or not.
    on_change: bool,
    /// Whether the running week has a file.
    open_week: bool,
    /// How long after its lines fire it asks.
    jitter: Duration,
    /// When it was last asked.
    last_asked: DateTime<Utc>,
    /// Per tier, when its line fires next; a line that never fires is missing.
    ticks: BTreeMap<Tier, DateTime<Utc>>,
    /// Per tier, when something that waits will be due.
    wakes: BTreeMap<Tier, DateTime<Utc>>,
    /// Tiers that wait for one beneath them.
    blocked_tiers: BTreeSet<Tier>,
}

/// Returns whether drafting costs no money, whatever is drafted.
fn is_free(settings: &Settings) -> bool {
    settings.engine == EngineKind::Extractive
}

/// Returns whether the running week of a root has a provisional file.
pub(super) fn is_open_week(settings: &RootSettings) -> bool {
    let settings = &settings.settings;
    settings.compaction.open_week.resolve(is_free(settings))
}

/// Returns how long one of so many roots waits after its lines fire: the same from start to start, and
/// nothing for a root that is alone. A second for each, so that they take turns.
pub(super) fn jitter(root: &Path, roots: usize) -> std::time::Duration {
    let spread = i32::try_from(roots.saturating_sub(1)).unwrap_or(i32::MAX);
    let spread = (Duration::seconds(1) * spread).min(JITTER_MAX).to_std().unwrap_or_default();
    let hash = ContentHash::of(root.as_os_str().as_encoded_bytes()).to_string();
    let part = hash.get(..4).and_then(|it| u32::from_str_radix(it, 16).ok()).unwrap_or_default();
    spread * part / 0x1_0000
}

impl Agenda {
    /// Makes the agenda of a root whose lines are asked `jitter` after they fire.
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

    /// Returns whether changes are made into summaries as soon as they are noticed.
    pub(super) fn is_on_change(&self) -> bool {
        self.on_change
    }

    /// Returns the tiers to be made now, and crosses out what asked for them.
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
        // What waited for a tier beneath falls due with it, so it is not left to its own next tick.
        let above = self.blocked_tiers.iter().copied();
        ticked.iter().chain(&woken).copied().chain(above).collect()
    }

    /// Takes note of what a look found at `now` that ends a pass which began at `begun`: what waits, and
    /// until when. `written` are the logs that are still being written to, by path, each with the time of
    /// its last change, and `changed` is that of the one changed last.
    pub(super) fn update(
        &mut self,
        plan: &CompactionPlan,
        written: &BTreeMap<String, DateTime<Utc>>,
        changed: Option<DateTime<Utc>>,
        (begun, now): (DateTime<Utc>, DateTime<Utc>),
    ) {
        // What has fallen due meanwhile is to be asked for still, though nothing waits for it any more.
        self.wakes.retain(|_, at| *at <= now);
        if self.first_open_day(begun) != self.first_open_day(now) {
            // So has what closed while the pass was at work; it may not have known of it.
            self.wakes.extend([Tier::Extract, Tier::Weekly, Tier::Monthly].map(|tier| (tier, now)));
        }
        for waiting in &plan.waiting {
            let at = match &waiting.cause {
                WaitCause::Closes(at) => at.with_timezone(&Utc),
                WaitCause::BeingWritten(path) => {
                    let Some(at) = written.get(path) else { continue };
                    *at + self.quiet
                }
                WaitCause::Stuck(_) | WaitCause::Undone | WaitCause::Damaged(_) => continue,
            };
            self.add_wake(waiting.tier, at, now);
        }
        if self.open_week
            && let Some(at) = changed
        {
            self.add_wake(Tier::Weekly, at + OPEN_WEEK_QUIET, now);
        }
        if self.on_change {
            // A day closes without being in the plan, since it may have no log yet.
            let next = self.first_open_day(now).succ_opt();
            let closes = next.map(|day| start_of_day(day, self.zone) + self.grace);
            if let Some(at) = closes {
                self.add_wake(Tier::Extract, at, now);
            }
        }
        self.blocked_tiers = plan.due_after.iter().map(|&(tier, _)| tier).collect();
    }

    /// Returns when the agenda has something to say next.
    pub(super) fn next(&self) -> Option<DateTime<Utc>> {
        self.ticks.values().chain(self.wakes.values()).min().copied()
    }

    /// Returns [`Agenda::next`] as people of the root read the clock.
    pub(super) fn next_local(&self) -> Option<DateTime<Tz>> {
        self.next().map(|it| it.with_timezone(&self.zone))
    }

    /// Returns the day that is the first one not to have closed at `now`.
    fn first_open_day(&self, now: DateTime<Utc>) -> NaiveDate {
        (now - self.grace).with_timezone(&self.zone).date_naive()
    }

    fn add_wake(&mut self, tier: Tier, at: DateTime<Utc>, now: DateTime<Utc>) {
        // A plan that still waits for a time that has passed would be asked without end.
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

    /// The agenda of a root in Berlin under a configuration.
    fn agenda(config: &str, now: &str) -> Agenda {
        let around = Environment::default();
        let text = format!("roots: [{{path: /no/a, zone: Europe/Berlin}}]\n{config}");
        let file = std::path::Path::new("/no/config.yaml");
        let config = Config::from_text(Some((file, &text)), &[], &around).unwrap();
        let root = crate::config::root::RootFile::default();
        let settings = config.resolve("/no/a".into(), &root, &around).unwrap();
        Agenda::new(&settings, std::time::Duration::ZERO, time(now))
    }

    /// Reads a time in UTC.
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

    /// Has the agenda note what a short pass found.
    fn note(agenda: &mut Agenda, plan: &CompactionPlan, at: &str) {
        agenda.update(plan, &BTreeMap::new(), None, (time(at), time(at)));
    }

    #[track_caller]
    fn check(agenda: &mut Agenda, now: &str, due: &[Tier], next: &str) {
        let seen = agenda.take_due(time(now));
        assert_eq!(seen, due.iter().copied().collect(), "due at {now}");
        assert_eq!(agenda.next(), Some(time(next)), "after {now}");
    }

    #[test]
    fn each_line_asks_for_its_own_tier() {
        use Tier::{Extract, Monthly, Weekly, Wisdom};
        // In April Berlin is two hours ahead.
        let agenda = &mut agenda("schedule: {on_change: false}", "2026-04-13T00:00");
        check(agenda, "2026-04-13T00:29", &[], "2026-04-13T00:30");
        check(agenda, "2026-04-13T00:30", &[Extract], "2026-04-13T01:00");
        check(agenda, "2026-04-13T01:01", &[Weekly], "2026-04-13T01:15");
        check(agenda, "2026-04-13T01:15", &[Monthly], "2026-04-13T01:30");
        check(agenda, "2026-04-13T01:30", &[Wisdom], "2026-04-14T00:30");
        // Slept for a week: once each, together.
        check(agenda, "2026-04-20T12:00", &Tier::ALL, "2026-04-21T00:30");
        // The clock was put right by a month.
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
        // The week closes before its line fires, and March waits for it.
        check(agenda, "2026-04-12T22:00", &[Weekly, Monthly], "2026-04-13T00:30");
    }

    #[test]
    fn on_change_wakes_when_a_day_closes() {
        let agenda = &mut agenda("compaction: {grace: 6h}", "2026-04-13T12:00");
        note(agenda, &CompactionPlan::default(), "2026-04-13T12:00");
        check(agenda, "2026-04-14T01:59", &Tier::ALL, "2026-04-14T04:00"); // missed ticks
        check(agenda, "2026-04-14T04:00", &Tier::ALL, "2026-04-15T00:30");
        // Before the grace has passed, yesterday is still open.
        note(agenda, &CompactionPlan::default(), "2026-04-14T03:59");
        assert_eq!(agenda.next(), Some(time("2026-04-14T04:00")));
    }

    #[test]
    fn what_falls_due_while_a_pass_is_at_work_is_asked_for_after_it() {
        use Tier::{Extract, Monthly, Weekly};
        let config = "schedule: {on_change: false, extract: '@yearly', weekly: '@yearly', monthly: '@yearly', \
                      wisdom: '@yearly'}";
        let agenda = &mut agenda(config, "2026-04-12T12:00");
        // Two hours after midnight.
        let closes = [(Weekly, "2026-W15", "2026-04-13T00:00")];
        note(agenda, &plan(&closes, &[]), "2026-04-12T12:00");
        // A look ends after the week has closed, before its tick, and finds nothing that waits.
        note(agenda, &CompactionPlan::default(), "2026-04-13T00:00");
        check(agenda, "2026-04-13T00:00", &[Weekly], "2026-12-31T23:00");
        // A pass that began before a week closed did not know of it.
        let (begun, at) = (time("2026-04-19T23:59"), time("2026-04-20T00:01"));
        agenda.update(&CompactionPlan::default(), &BTreeMap::new(), None, (begun, at));
        check(agenda, "2026-04-20T00:01", &[Extract, Weekly, Monthly], "2026-12-31T23:00");
    }

    #[test]
    fn a_time_that_has_passed_wakes_nobody() {
        let agenda = &mut agenda("schedule: {on_change: false}", "2026-04-13T12:00");
        let stale = plan(&[(Tier::Weekly, "2026-W15", "2026-04-13T11:00")], &[]);
        note(agenda, &stale, "2026-04-13T12:00");
        check(agenda, "2026-04-13T12:01", &[], "2026-04-14T00:30");
    }

    #[test]
    fn many_roots_take_turns_and_one_root_waits_for_nobody() {
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

    /// The days of ten years around which the clock of a zone is changed, each with its neighbours.
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
        // Zones whose clocks are changed alike need to be walked once.
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
                    // Islands that crossed the date line have days that never were.
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
