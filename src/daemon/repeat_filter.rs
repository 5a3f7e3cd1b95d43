//! Decides whether a recurring warning is logged again.
//!
//! A fault that lasts is met again on every tick or run. It is logged when it begins and when its cause
//! changes. Causes are compared by a key without random names, process ids or times, because the
//! message itself may differ each time.

use crate::model::{CallError, failure::ErrorClass};

/// The cause that was logged last and has not been resolved since.
#[derive(Debug, Default)]
pub(super) struct RepeatFilter {
    last_cause: Option<String>,
    /// Whether that was a call that failed at the server, and so counts towards an open circuit.
    is_server_fault: bool,
}

impl RepeatFilter {
    /// Records `cause`, and returns whether it differs from the last one.
    pub(super) fn is_new(&mut self, cause: String) -> bool {
        let is_new = self.last_cause.as_ref() != Some(&cause);
        self.last_cause = Some(cause);
        self.is_server_fault = false;
        is_new
    }

    /// Records a failed model call, and returns whether its cause is new.
    ///
    /// An open circuit is no news after failures of the server, because it is their consequence; and its
    /// message names another time whenever it opens.
    pub(super) fn is_new_call_error(&mut self, error: &CallError) -> bool {
        let is_new = match error {
            CallError::CircuitOpen { .. } if self.is_server_fault => false,
            CallError::CircuitOpen { server, .. } => self.is_new(format!("circuit open: {server}")),
            error => self.is_new(error.to_string()),
        };
        self.is_server_fault =
            matches!(error, CallError::CircuitOpen { .. }) || error.class() == ErrorClass::Server;
        is_new
    }

    /// Records that the fault is gone: the next one is logged, whatever its cause.
    pub(super) fn clear(&mut self) {
        self.last_cause = None;
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

    use super::*;

    #[test]
    fn a_cause_is_new_once_until_it_changes_or_is_resolved() {
        let mut filter = RepeatFilter::default();
        let causes = ["full", "full", "gone", "gone", "full"];
        assert_eq!(causes.map(|it| filter.is_new(it.to_owned())), [true, false, true, false, true]);
        filter.clear();
        assert!(filter.is_new("full".to_owned()));
    }

    #[test]
    fn a_circuit_that_opens_again_later_is_not_news() {
        let open = |minutes| CallError::CircuitOpen {
            server: "s".to_owned(),
            failures: 3,
            until: DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes),
        };
        let lost = CallError::ConnectionLost { server: "s".to_owned() };
        let mut filter = RepeatFilter::default();
        let errors = [open(1), open(2), lost.clone(), open(3), lost, open(4)];
        let news = errors.map(|it| filter.is_new_call_error(&it));
        assert_eq!(news, [true, false, true, false, false, false]);
        let exhausted = CallError::BudgetExhausted("5 USD".to_owned());
        let news = [exhausted, open(5), open(6)].map(|it| filter.is_new_call_error(&it));
        assert_eq!(news, [true, true, false], "an open circuit after another fault");
    }
}
