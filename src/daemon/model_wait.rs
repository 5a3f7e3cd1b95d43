//! Work that must wait because its model cannot be asked; pure.
//!
//! A run that only asks a paused server, or exhausts the budget again, does nothing but fill the
//! database. So the work waits: until the circuit closes, or longer after each failure.

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::CallError;

/// The first delay; it doubles with each failure …
const RETRY_DELAY_MIN: TimeDelta = TimeDelta::minutes(1);
/// … up to this, unless the circuit breaker names a time.
const RETRY_DELAY_MAX: TimeDelta = TimeDelta::hours(1);
/// The circuit breaker pauses no server for longer. A later time was computed before the clock was set
/// back.
const WAIT_MAX: TimeDelta = TimeDelta::hours(7);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelWait {
    /// Why it waits, for people.
    pub(super) reason: String,
    /// When it is tried again.
    pub(super) until: DateTime<Utc>,
    /// The delay before that.
    pause: TimeDelta,
    /// The circuit is open, or the account is blocked.
    is_blocked: bool,
}

impl ModelWait {
    /// Returns the wait after a run that ended at `at`. `closed` is why the model cannot be asked now,
    /// `unanswered` why it could not be asked during the run; without either there is no wait.
    pub(super) fn after(
        before: Option<&Self>,
        closed: Option<&CallError>,
        unanswered: Option<&str>,
        at: DateTime<Utc>,
    ) -> Option<Self> {
        let why = closed.map(ToString::to_string).or_else(|| unanswered.map(str::to_owned))?;
        let before = before.map_or(TimeDelta::zero(), |it| it.pause);
        let pause = (before * 2).clamp(RETRY_DELAY_MIN, RETRY_DELAY_MAX);
        let blocked_until = match closed {
            Some(CallError::CircuitOpen { until, .. }) => Some(*until),
            // Only a person can help, and that may take hours.
            Some(CallError::AccountBlocked { .. }) => Some(at + RETRY_DELAY_MAX),
            _ => None,
        };
        let soonest = at + TimeDelta::seconds(1);
        let until = blocked_until.unwrap_or(at + pause).clamp(soonest, at + WAIT_MAX);
        Some(Self { reason: why, until, pause, is_blocked: closed.is_some() })
    }

    /// Returns whether a person may want to know. A server that answers at the second try is no
    /// problem.
    pub(super) fn is_problem(&self) -> bool {
        self.is_blocked || self.pause > RETRY_DELAY_MIN
    }

    pub(super) fn is_over(&self, now: DateTime<Utc>) -> bool {
        self.until <= now || self.until > now + WAIT_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    fn open(until: i64) -> CallError {
        CallError::CircuitOpen { server: "s".to_owned(), failures: 3, until: at(until) }
    }

    #[test]
    fn work_waits_longer_each_time() {
        let mut waiting: Option<ModelWait> = None;
        let pauses: Vec<i64> = (0..8)
            .map(|_| {
                waiting = ModelWait::after(waiting.as_ref(), None, Some("a cap is reached"), at(0));
                waiting.as_ref().map_or(0, |it| (it.until - at(0)).num_minutes())
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(ModelWait::after(waiting.as_ref(), None, None, at(0)), None);
    }

    #[test]
    fn work_waits_as_long_as_the_circuit_is_open() {
        let waiting = ModelWait::after(None, Some(&open(15)), Some("no answer"), at(0)).unwrap();
        assert_eq!(waiting.until, at(15));
        assert!(waiting.reason.contains("is paused until"), "{}", waiting.reason);
        assert!(!waiting.is_over(at(14)) && waiting.is_over(at(15)));
        let barred = CallError::AccountBlocked { server: "s".to_owned() };
        assert_eq!(ModelWait::after(None, Some(&barred), None, at(0)).unwrap().until, at(60));
    }

    #[test]
    fn a_clock_that_was_set_back_delays_no_work_for_long() {
        let waiting = ModelWait::after(None, Some(&open(15)), None, at(0)).unwrap();
        assert!(waiting.is_over(at(-99_999)));
        let again = ModelWait::after(Some(&waiting), Some(&open(15)), None, at(-99_999)).unwrap();
        assert_eq!(again.until, at(-99_999) + WAIT_MAX);
        assert!(!again.is_over(at(-99_999)));
    }
}
