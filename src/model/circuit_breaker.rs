//! When a server is paused. Pure: the ledger keeps the state across restarts.
//!
//! After [`FAILURES_MAX`] failed requests, or pieces of work with unusable replies, in a row the
//! circuit opens: at first for five minutes, because a server on this machine may still be loading its
//! model, then for a quarter of an hour, then for an hour each time; or for as long as the server asks.
//! Then one request may try (half-open); if it fails, the circuit opens again. Work with unusable
//! replies takes more than one request and may have cost money, so the pauses after it grow to six
//! hours. A refused key or an empty account blocks the account until the configuration changes or a
//! person tries by hand.
//!
//! Source of the pattern: M. Nygard, "Release It!", 2007, chapter 5.2.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::failure::{CallError, ErrorClass};

/// How many failures in a row open the circuit.
pub const FAILURES_MAX: u32 = 3;

/// How long the circuit stays open, by the number of failures above [`FAILURES_MAX`].
const PAUSES: [TimeDelta; 3] = [TimeDelta::minutes(5), TimeDelta::minutes(15), TimeDelta::hours(1)];

/// How long it stays open after work with unusable replies.
const PAUSES_WASTED: [TimeDelta; 4] =
    [TimeDelta::minutes(5), TimeDelta::hours(1), TimeDelta::hours(3), TimeDelta::hours(6)];

/// The longest pause, even if a server asks for more.
const PAUSE_MAX: TimeDelta = TimeDelta::hours(6);

/// The state of a server's circuit breaker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CircuitBreaker {
    /// Failures since the last success.
    pub failures: u32,
    /// The end of the pause.
    pub open_until: Option<DateTime<Utc>>,
    /// The account that was refused: a name of address and key source, not a key.
    pub blocked_account: Option<String>,
}

/// Whether a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// Requests may be sent.
    Closed,
    /// One request may be sent, and no other before it is answered.
    HalfOpen,
    /// No request may be sent until this time.
    Open(DateTime<Utc>),
    /// No request may be sent, because the account was refused.
    AccountBlocked,
}

impl CircuitBreaker {
    /// Returns whether a request of `account` may be sent.
    pub fn state(&self, account: &str, now: DateTime<Utc>) -> CircuitState {
        if self.blocked_account.as_deref() == Some(account) {
            return CircuitState::AccountBlocked;
        }
        match self.open_until {
            // A time further ahead was recorded before the clock was set back.
            Some(until) if now < until && until - now <= PAUSE_MAX => CircuitState::Open(until),
            Some(_) => CircuitState::HalfOpen,
            None => CircuitState::Closed,
        }
    }

    /// Returns the state after a request failed.
    ///
    /// Errors of other classes change nothing yet: whether a reply was usable is known only when its
    /// work has ended ([`Self::after_wasted_work`]).
    pub fn after_failure(&self, error: &CallError, account: &str, now: DateTime<Utc>) -> Self {
        match error.class() {
            ErrorClass::Account => {
                Self { blocked_account: Some(account.to_owned()), ..self.clone() }
            }
            ErrorClass::Server => {
                let failures = self.failures.saturating_add(1);
                let asked = error.retry_after().map(clamp_pause);
                let is_limit_reached = failures >= FAILURES_MAX;
                let own = is_limit_reached.then(|| pause_after(failures, &PAUSES));
                let pause = asked.into_iter().chain(own).max();
                // A shorter pause is the client's retry delay.
                let pause = pause.filter(|it| is_limit_reached || *it > TimeDelta::minutes(1));
                Self { failures, open_until: pause.map(|it| now + it), blocked_account: None }
            }
            ErrorClass::Request | ErrorClass::Blocked | ErrorClass::Pending => self.clone(),
        }
    }

    /// Returns the state after work whose replies were unusable: refused, empty, or unreadable.
    ///
    /// One such reply may be due to its request; several in a row are due to the model, and each may
    /// cost money.
    pub fn after_wasted_work(&self, now: DateTime<Utc>) -> Self {
        let failures = self.failures.saturating_add(1);
        let open_until =
            (failures >= FAILURES_MAX).then(|| now + pause_after(failures, &PAUSES_WASTED));
        Self { failures, open_until, blocked_account: None }
    }

    /// Returns the state that other processes see during a half-open request.
    pub fn during_probe(&self, at_most: Duration, now: DateTime<Utc>) -> Self {
        Self { open_until: Some(now + clamp_pause(at_most)), ..self.clone() }
    }
}

fn pause_after(failures: u32, pauses: &[TimeDelta]) -> TimeDelta {
    let more = usize::try_from(failures.saturating_sub(FAILURES_MAX)).unwrap_or(usize::MAX);
    pauses[more.min(pauses.len() - 1)]
}

fn clamp_pause(asked: Duration) -> TimeDelta {
    TimeDelta::from_std(asked).unwrap_or(PAUSE_MAX).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::failure::ProviderMessage;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    fn unavailable(retry_after: Option<u64>) -> CallError {
        CallError::Unavailable {
            server: "s".to_owned(),
            status: 529,
            code: None,
            retry_after: retry_after.map(Duration::from_secs),
            provider_message: ProviderMessage::default(),
        }
    }

    #[test]
    fn a_clock_set_far_back_does_not_keep_the_circuit_open() {
        let breaker = CircuitBreaker { open_until: Some(at(60)), ..CircuitBreaker::default() };
        assert_eq!(breaker.state("a", at(0)), CircuitState::Open(at(60)));
        assert_eq!(breaker.state("a", at(-99_999)), CircuitState::HalfOpen);
        let longest = breaker.during_probe(Duration::MAX, at(0));
        assert!(matches!(longest.state("a", at(0)), CircuitState::Open(_)));
    }

    #[test]
    fn a_server_that_always_fails_is_soon_tried_once_an_hour() {
        let mut breaker = CircuitBreaker::default();
        let mut asked = 0;
        for minute in 0..24 * 60 {
            if matches!(
                breaker.state("a", at(minute)),
                CircuitState::Closed | CircuitState::HalfOpen
            ) {
                breaker = breaker.after_failure(&unavailable(None), "a", at(minute));
                asked += 1;
            }
        }
        assert_eq!(asked, 3 + 1 + 24);
    }

    #[test]
    fn a_requested_pause_is_kept_up_to_a_limit() {
        for (seconds, minutes) in [(0, None), (30, None), (600, Some(10)), (999_999, Some(360))] {
            let breaker =
                CircuitBreaker::default().after_failure(&unavailable(Some(seconds)), "a", at(0));
            assert_eq!(breaker.open_until, minutes.map(at), "{seconds}");
        }
    }

    #[test]
    fn a_refused_account_is_blocked_until_it_changes() {
        let refused = CallError::Account {
            server: "s".to_owned(),
            status: 401,
            code: None,
            provider_message: ProviderMessage::default(),
        };
        let breaker = CircuitBreaker::default().after_failure(&refused, "a", at(0));
        assert_eq!(breaker.state("a", at(999_999)), CircuitState::AccountBlocked);
        assert_eq!(breaker.state("b", at(0)), CircuitState::Closed);
    }

    #[test]
    fn the_circuit_is_half_open_after_its_pause() {
        let open = CircuitBreaker { failures: 7, open_until: Some(at(60)), blocked_account: None };
        assert_eq!(open.state("a", at(59)), CircuitState::Open(at(60)));
        assert_eq!(open.state("a", at(60)), CircuitState::HalfOpen);
        assert_eq!(
            open.during_probe(Duration::from_secs(600), at(60)).state("a", at(61)),
            CircuitState::Open(at(70))
        );
        assert_eq!(open.after_failure(&CallError::EmptyReply, "a", at(60)), open);
        assert_eq!(open.after_failure(&unavailable(None), "a", at(60)).open_until, Some(at(120)));
    }

    #[test]
    fn unusable_replies_three_times_in_a_row_open_the_circuit() {
        let mut breaker = CircuitBreaker::default();
        for (minute, until) in [
            (0, None),
            (1, None),
            (2, Some(7)),
            (7, Some(67)),
            (67, Some(247)),
            (247, Some(607)),
            (607, Some(967)),
        ] {
            breaker = breaker.after_wasted_work(at(minute));
            assert_eq!(breaker.open_until, until.map(at));
        }
    }
}
