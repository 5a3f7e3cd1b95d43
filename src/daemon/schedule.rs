//! When a root is to be looked at: its crontab lines, and what falls due between two of them.
//!
//! Pure: the loop brings the time. Nothing is due because of an [`Agenda`]; it only says when to
//! ask the plan. A tick that was slept through is one tick, however many were missed, and a clock
//! that goes back asks once more, which does nothing that is done already.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};
use chrono_tz::Tz;

use crate::{
    compaction::plan::{Plan, WaitCause, start_of_day},
    config::{
        root::RootSettings,
        schedule::Schedule,
        settings::{EngineKind, Schedules, Settings},
        span::Span,
    },
    memory::item::Tier,
    store::inventory::Inventory,
};

/// A clock that is this much behind the last reading was set back; less is the usual slewing.
const SET_BACK: Duration = Duration::minutes(1);

/// The times at which one root is to be looked at.
#[derive(Clone, Debug)]
pub(super) struct Agenda {
    schedules: Schedules,
    zone: Tz,
    grace: Duration,
    quiet: Duration,
    /// Whether whatever falls due is made as it falls due, ticks or not.
    on_change: bool,
    /// When it was last asked.
    asked_at: DateTime<Utc>,
    /// Per tier, when its line fires next; a line that never fires is missing.
    ticks: BTreeMap<Tier, DateTime<Utc>>,
    /// Per tier, when something that waits will be due.
    wakes: BTreeMap<Tier, DateTime<Utc>>,
    /// Tiers that wait for one beneath them.
    awaiting: BTreeSet<Tier>,
}

/// Returns whether drafting costs no money, whatever is drafted.
fn is_free(settings: &Settings) -> bool {
    settings.engine == EngineKind::Extractive
}

impl Agenda {
    /// Makes the agenda of a root.
    pub(super) fn new(settings: &RootSettings, now: DateTime<Utc>) -> Self {
        let compaction = &settings.settings.compaction;
        let span = |it: Span| Duration::from_std(it.as_duration()).unwrap_or(Duration::MAX);
        let mut agenda = Self {
            schedules: settings.settings.schedule.clone(),
            zone: settings.zone.name.0,
            grace: span(compaction.grace),
            quiet: span(compaction.quiet),
            on_change: settings.settings.schedule.on_change.resolve(is_free(&settings.settings)),
            asked_at: now,
            ticks: BTreeMap::new(),
            wakes: BTreeMap::new(),
            awaiting: BTreeSet::new(),
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
        let set_back = now + SET_BACK < self.asked_at;
        self.asked_at = now;
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
        let above = self.awaiting.iter().copied();
        ticked.iter().chain(&woken).copied().chain(above).collect()
    }

    /// Takes note of what a look found: what waits, and until when.
    pub(super) fn note(&mut self, plan: &Plan, inventory: &Inventory, now: DateTime<Utc>) {
        self.wakes.clear();
        for waiting in &plan.waiting {
            let at = match &waiting.cause {
                WaitCause::Closes(at) => at.with_timezone(&Utc),
                WaitCause::StillWritten(path) => {
                    let mut logs = inventory.logs.values().chain(inventory.late.values());
                    let log = logs.find(|log| log.path == *path);
                    let Some(log) = log else { continue };
                    DateTime::from_timestamp_nanos(log.stamp.mtime_ns) + self.quiet
                }
                WaitCause::Parked(_) | WaitCause::Undone | WaitCause::Held(_) => continue,
            };
            self.wake(waiting.tier, at, now);
        }
        if self.on_change {
            // A day closes without being in the plan, since it may have no log yet.
            let last_closed = (now - self.grace).with_timezone(&self.zone).date_naive();
            let closes =
                last_closed.succ_opt().map(|day| start_of_day(day, self.zone) + self.grace);
            if let Some(at) = closes {
                self.wake(Tier::Extract, at, now);
            }
        }
        self.awaiting = plan.following.iter().map(|&(tier, _)| tier).collect();
    }

    /// Returns when the agenda has something to say next.
    pub(super) fn next(&self) -> Option<DateTime<Utc>> {
        self.ticks.values().chain(self.wakes.values()).min().copied()
    }

    /// Returns [`Agenda::next`] as people of the root read the clock.
    pub(super) fn next_local(&self) -> Option<DateTime<Tz>> {
        self.next().map(|it| it.with_timezone(&self.zone))
    }

    fn wake(&mut self, tier: Tier, at: DateTime<Utc>, now: DateTime<Utc>) {
        // A plan that still waits for a time that has passed would be asked without end.
        if at > now {
            let slot = self.wakes.entry(tier).or_insert(at);
            *slot = at.min(*slot);
        }
    }

    fn set_ticks(&mut self, now: DateTime<Utc>) {
        let now = now.with_timezone(&self.zone);
        let next = |line: &Schedule| line.next_after(now).map(|it| it.with_timezone(&Utc));
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
    use super::*;
    use crate::{
        compaction::plan::Waiting,
        config::{Config, surroundings::Surroundings},
    };

    /// The agenda of a root in Berlin under a configuration.
    fn agenda(config: &str, now: &str) -> Agenda {
        let around = Surroundings::default();
        let text = format!("roots: [{{path: /no/a, zone: Europe/Berlin}}]\n{config}");
        let file = std::path::Path::new("/no/config.yaml");
        let config = Config::from_text(Some((file, &text)), &[], &around).unwrap();
        let root = crate::config::root::RootFile::default();
        Agenda::new(&config.resolve("/no/a".into(), &root, &around).unwrap(), time(now))
    }

    /// Reads a time in UTC.
    fn time(text: &str) -> DateTime<Utc> {
        format!("{text}:00Z").parse().unwrap()
    }

    fn plan(waiting: &[(Tier, &str, &str)], following: &[(Tier, &str)]) -> Plan {
        let wait = |&(tier, period, at): &(Tier, &str, &str)| Waiting {
            tier,
            period: period.parse().unwrap(),
            cause: WaitCause::Closes(time(at).with_timezone(&Tz::Europe__Berlin)),
        };
        Plan {
            waiting: waiting.iter().map(wait).collect(),
            following: following.iter().map(|(tier, it)| (*tier, it.parse().unwrap())).collect(),
            ..Plan::default()
        }
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
        agenda.note(&plan(&closes, &[]), &Inventory::default(), time("2026-04-06T02:00"));
        check(agenda, "2026-04-07T00:30", &[Extract], "2026-04-08T00:30");
        agenda.note(
            &plan(&closes, &[(Monthly, "2026-03")]),
            &Inventory::default(),
            time("2026-04-12T01:00"),
        );
        check(agenda, "2026-04-12T21:00", &[Extract, Monthly], "2026-04-12T22:00");
        // The week closes before its line fires, and March waits for it.
        check(agenda, "2026-04-12T22:00", &[Weekly, Monthly], "2026-04-13T00:30");
    }

    #[test]
    fn on_change_wakes_when_a_day_closes() {
        let agenda = &mut agenda("compaction: {grace: 6h}", "2026-04-13T12:00");
        agenda.note(&Plan::default(), &Inventory::default(), time("2026-04-13T12:00"));
        check(agenda, "2026-04-14T01:59", &Tier::ALL, "2026-04-14T04:00"); // missed ticks
        check(agenda, "2026-04-14T04:00", &Tier::ALL, "2026-04-15T00:30");
        // Before the grace has passed, yesterday is still open.
        agenda.note(&Plan::default(), &Inventory::default(), time("2026-04-14T03:59"));
        assert_eq!(agenda.next(), Some(time("2026-04-14T04:00")));
    }

    #[test]
    fn a_time_that_has_passed_wakes_nobody() {
        let agenda = &mut agenda("schedule: {on_change: false}", "2026-04-13T12:00");
        let stale = plan(&[(Tier::Weekly, "2026-W15", "2026-04-13T11:00")], &[]);
        agenda.note(&stale, &Inventory::default(), time("2026-04-13T12:00"));
        check(agenda, "2026-04-13T12:01", &[], "2026-04-14T00:30");
    }
}
