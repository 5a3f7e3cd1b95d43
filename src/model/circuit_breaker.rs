//! When a server is left alone. Pure: the ledger keeps what is known of it across restarts.
//!
//! After [`FAILURES_MAX`] failed requests, or pieces of work that came to nothing, in a row it is left
//! alone: at first for five minutes, since a server on this machine may still be loading its model, then
//! for a quarter of an hour, then for an hour each time; or for as long as it asks. Then one request may
//! try (half-open): if that fails, it is left alone again. Work that came to nothing takes more
//! than one request and may have cost, so that the pauses after it grow to six hours. A refused key or an empty account bars it until the configuration changes or a person tries by hand.
//!
//! Source of the pattern: M. Nygard, "Release It!", 2007, chapter 5.2.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::failure::{CallError, ErrorClass};

/// So many failures in a row open it.
pub const FAILURES_MAX: u32 = 3;

/// How long it stays open, after so many failures more than [`FAILURES_MAX`].
const PAUSES: [TimeDelta; 3] = [TimeDelta::minutes(5), TimeDelta::minutes(15), TimeDelta::hours(1)];

/// How long after work that came to nothing.
const PAUSES_WASTED: [TimeDelta; 4] =
    [TimeDelta::minutes(5), TimeDelta::hours(1), TimeDelta::hours(3), TimeDelta::hours(6)];

/// A server that asks for more than this is asked again after it all the same.
const PAUSE_MAX: TimeDelta = TimeDelta::hours(6);

/// What is known of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CircuitBreaker {
    /// Failed requests since the last that went well.
    pub failures: u32,
    /// Until when it is left alone.
    pub open_until: Option<DateTime<Utc>>,
    /// The account that was refused: a name for address and key source, no key.
    pub blocked_account: Option<String>,
}

/// Whether a request may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// It may.
    Closed,
    /// One may, and no second before it is answered.
    HalfOpen,
    /// None may until then.
    Open(DateTime<Utc>),
    /// None may: the account was refused.
    AccountBlocked,
}

impl CircuitBreaker {
    /// Says whether a request of `account` may go out.
    pub fn state(&self, account: &str, now: DateTime<Utc>) -> CircuitState {
        if self.blocked_account.as_deref() == Some(account) {
            return CircuitState::AccountBlocked;
        }
        match self.open_until {
            // A time that lies further ahead was said before the clock was set back.
            Some(until) if now < until && until - now <= PAUSE_MAX => CircuitState::Open(until),
            Some(_) => CircuitState::HalfOpen,
            None => CircuitState::Closed,
        }
    }

    /// Returns what is known after a request went well.
    pub fn after_success() -> Self {
        Self::default()
    }

    /// Returns what is known after a request failed. What is not the server's fault changes nothing
    /// yet: whether it was of use is said when its work is done (`wasted`).
    pub fn after_failure(&self, error: &CallError, account: &str, now: DateTime<Utc>) -> Self {
        match error.class() {
            ErrorClass::Account => {
                Self { blocked_account: Some(account.to_owned()), ..self.clone() }
            }
            ErrorClass::Server => {
                let failures = self.failures.saturating_add(1);
                let asked = error.retry_after().map(clamp_pause);
                let tired = failures >= FAILURES_MAX;
                let pause =
                    asked.into_iter().chain(tired.then(|| pause_after(failures, &PAUSES))).max();
                let long = pause.filter(|it| tired || *it > TimeDelta::minutes(1));
                Self { failures, open_until: long.map(|it| now + it), blocked_account: None }
            }
            ErrorClass::Request | ErrorClass::Blocked | ErrorClass::Pending => self.clone(),
        }
    }

    /// Returns what is known after work came to nothing that a model was asked for: a refused request,
    /// an empty reply, one that cannot be read. One is its own fault; several in a row are the model's,
    /// and each may cost money.
    pub fn after_wasted_work(&self, now: DateTime<Utc>) -> Self {
        let failures = self.failures.saturating_add(1);
        let open_until =
            (failures >= FAILURES_MAX).then(|| now + pause_after(failures, &PAUSES_WASTED));
        Self { failures, open_until, blocked_account: None }
    }

    /// Returns what others see while a half-open request is under way.
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
    fn a_clock_that_is_set_far_back_does_not_keep_it_open() {
        let breaker = CircuitBreaker { open_until: Some(at(60)), ..CircuitBreaker::default() };
        assert_eq!(breaker.state("a", at(0)), CircuitState::Open(at(60)));
        assert_eq!(breaker.state("a", at(-99_999)), CircuitState::HalfOpen);
        let longest = breaker.during_probe(Duration::MAX, at(0));
        assert!(matches!(longest.state("a", at(0)), CircuitState::Open(_)));
    }

    #[test]
    fn a_server_that_always_fails_is_soon_asked_once_an_hour() {
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
    fn what_a_server_asks_for_is_kept_up_to_a_limit() {
        for (seconds, minutes) in [(0, None), (30, None), (600, Some(10)), (999_999, Some(360))] {
            let breaker =
                CircuitBreaker::default().after_failure(&unavailable(Some(seconds)), "a", at(0));
            assert_eq!(breaker.open_until, minutes.map(at), "{seconds}");
        }
    }

    #[test]
    fn a_refused_account_bars_until_it_is_another() {
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
    fn one_success_closes_it() {
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
    fn work_that_comes_to_nothing_three_times_opens_it() {
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
