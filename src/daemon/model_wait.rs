//! Work that cannot be done before its model can be asked; pure.
//!
//! A pass that only asks a server that is left alone, or runs into a cap again, does nothing but fill
//! the record. So the work waits: for as long as the breaker is open, else longer each time.

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::CallError;

/// Work is tried again after so long, then after twice as long, …
const RETRY_DELAY_MIN: TimeDelta = TimeDelta::minutes(1);
/// … up to this, where the model's server does not say itself when to come again.
const RETRY_DELAY_MAX: TimeDelta = TimeDelta::hours(1);
/// The breaker leaves no server alone for longer. A time that lies further ahead was said before the
/// clock was set back.
const WAIT_MAX: TimeDelta = TimeDelta::hours(7);

/// Work that waits for its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelWait {
    /// Why it waits, in plain words.
    pub(super) reason: String,
    /// When it is tried again.
    pub(super) until: DateTime<Utc>,
    /// The pause before that.
    pause: TimeDelta,
    /// The model's server is left alone.
    is_blocked: bool,
}

impl ModelWait {
    /// Returns what waits after a pass that ended at `at`: `closed` says why the model would not be
    /// asked now, `unanswered` why it could not be asked during the pass.
    pub(super) fn after(
        before: Option<&Self>,
        closed: Option<&CallError>,
        unanswered: Option<&str>,
        at: DateTime<Utc>,
    ) -> Option<Self> {
        let why = closed.map(ToString::to_string).or_else(|| unanswered.map(str::to_owned))?;
        let before = before.map_or(TimeDelta::zero(), |it| it.pause);
        let pause = (before * 2).clamp(RETRY_DELAY_MIN, RETRY_DELAY_MAX);
        let said = match closed {
            Some(CallError::CircuitOpen { until, .. }) => Some(*until),
            // Nothing goes until a person has seen to it, and a person may take hours.
            Some(CallError::AccountBlocked { .. }) => Some(at + RETRY_DELAY_MAX),
            _ => None,
        };
        let soonest = at + TimeDelta::seconds(1);
        let until = said.unwrap_or(at + pause).clamp(soonest, at + WAIT_MAX);
        Some(Self { reason: why, until, pause, is_blocked: closed.is_some() })
    }

    /// Returns whether a person may want to know: a server that answers at the second try is none.
    pub(super) fn is_problem(&self) -> bool {
        self.is_blocked || self.pause > RETRY_DELAY_MIN
    }

    /// Returns whether it is time to try again.
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
    fn it_waits_as_long_as_the_server_is_left_alone() {
        let waiting = ModelWait::after(None, Some(&open(15)), Some("no answer"), at(0)).unwrap();
        assert_eq!(waiting.until, at(15));
        assert!(waiting.reason.contains("is paused until"), "{}", waiting.reason);
        assert!(!waiting.is_over(at(14)) && waiting.is_over(at(15)));
        let barred = CallError::AccountBlocked { server: "s".to_owned() };
        assert_eq!(ModelWait::after(None, Some(&barred), None, at(0)).unwrap().until, at(60));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nobody_wait_for_long() {
        let waiting = ModelWait::after(None, Some(&open(15)), None, at(0)).unwrap();
        assert!(waiting.is_over(at(-99_999)));
        let again = ModelWait::after(Some(&waiting), Some(&open(15)), None, at(-99_999)).unwrap();
        assert_eq!(again.until, at(-99_999) + WAIT_MAX);
        assert!(!again.is_over(at(-99_999)));
    }
}
