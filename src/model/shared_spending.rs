//! What a client needs of a budget that several machines share: whoever implements it answers for all of them.
//!
//! Without an answer no call is made.

use chrono::NaiveDate;

use super::CallError;
use crate::store::db::ledger::CallBudgets;

/// The spending side of the ledger, of several machines.
pub(crate) trait SharedSpending: Send + Sync {
    /// Returns a secret that is the same on all machines, so that the same work sends the same bytes.
    fn nonce(&self) -> [u8; 32];

    /// Returns the reply to a request that another machine paid for.
    fn stored_reply(&self, fingerprint: &str) -> Result<Option<String>, CallError>;

    /// Charges a call at its worst case, and returns its number.
    fn reserve(
        &self,
        call: &SharedReservation<'_>,
        budgets: &CallBudgets,
    ) -> Result<i64, CallError>;

    /// Stores a reply before anything else is done with it.
    fn store_reply(&self, fingerprint: &str, reply: &str) -> Result<(), CallError>;

    /// Replaces the worst case of a call with tokens and US dollars used; `None` keeps it.
    fn settle(&self, call: i64, outcome: &str, used: Option<(u64, f64)>) -> Result<(), CallError>;
}

/// A call that is about to be made.
pub(crate) struct SharedReservation<'a> {
    /// Identifies the request.
    pub(crate) fingerprint: &'a str,
    /// The day in the root's time zone.
    pub(crate) day: NaiveDate,
    /// The worst case.
    pub(crate) tokens: u64,
    /// The worst case, in US dollars.
    pub(crate) usd: f64,
}
