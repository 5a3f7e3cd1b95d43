//! When a root is due next: pure.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::compaction::plan::{CompactionPlan, WaitCause};

/// The pause after the first failure; each further one is twice as long.
const BACKOFF_FIRST: Duration = Duration::from_secs(30);
/// The longest pause after a failure.
const BACKOFF_MAX: Duration = Duration::from_secs(6 * 3600);

/// Returns how long after `now` there is work by a plan that was made then; `None`: not before its files change.
///
/// `quiet` is how long a log must not have changed.
pub(crate) fn next_due(
    plan: &CompactionPlan,
    now: DateTime<Utc>,
    quiet: Duration,
) -> Option<Duration> {
    if !plan.jobs.is_empty() {
        return Some(Duration::ZERO);
    }
    let of = |cause: &WaitCause| match cause {
        // A plan that still waits for a past time would cause runs without end.
        WaitCause::Closes(at) => (at.with_timezone(&Utc) - now).to_std().ok(),
        WaitCause::BeingWritten(_) => Some(quiet.max(Duration::from_secs(1))),
        WaitCause::Stuck(_) | WaitCause::Undone | WaitCause::Damaged(_) => None,
    };
    plan.waiting.iter().filter_map(|it| of(&it.cause)).min()
}

/// Returns the pause after a root failed in this many claims in a row.
pub(crate) fn backoff(attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;

    use super::*;
    use crate::{compaction::plan::WaitingPeriod, memory::item::Tier};

    fn waiting(causes: Vec<WaitCause>) -> CompactionPlan {
        let period = "2026-W15".parse().unwrap();
        let waiting = causes.into_iter();
        let waiting = waiting.map(|cause| WaitingPeriod { tier: Tier::Weekly, period, cause });
        CompactionPlan { waiting: waiting.collect(), ..CompactionPlan::default() }
    }

    fn closes(at: &str) -> WaitCause {
        let at: DateTime<Utc> = at.parse().unwrap();
        WaitCause::Closes(at.with_timezone(&Tz::Europe__Berlin))
    }

    #[test]
    fn a_root_is_due_when_its_first_period_closes() {
        let now = "2026-04-12T12:00:00Z".parse().unwrap();
        let quiet = Duration::from_secs(2);
        let due = |causes| next_due(&waiting(causes), now, quiet).map(|it| it.as_secs());
        assert_eq!(due(vec![]), None);
        let (week, month) = (closes("2026-04-13T00:00:00Z"), closes("2026-05-01T00:00:00Z"));
        assert_eq!(due(vec![month.clone(), week.clone()]), Some(12 * 3600));
        assert_eq!(due(vec![month, WaitCause::BeingWritten(String::new()), week]), Some(2));
        // Nobody but a person, or a push, changes these.
        assert_eq!(due(vec![WaitCause::Undone, closes("2026-04-12T11:00:00Z")]), None);
    }

    #[test]
    fn pauses_grow_and_end_at_a_quarter_of_a_day() {
        let seconds: Vec<u64> = [0, 1, 2, 3, 12, 4000].map(|it| backoff(it).as_secs()).into();
        assert_eq!(seconds, [30, 30, 60, 120, 21_600, 21_600]);
    }
}
