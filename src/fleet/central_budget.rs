//! The spending side of the ledger, in the claims database: one budget for all workers.
//!
//! A call is reserved in one transaction under the limits of the fleet, the tenant and the root, and only by the worker
//! that holds the root. Its reply is stored there before anything is done with it, so that the next worker does not
//! pay again. If the database does not answer, no call is made.

use std::sync::Arc;

use super::claims::{CallReservation, Claims, ExhaustedLimit, Lease, Reserved, error::ClaimsError};
use crate::{
    model::{
        CallError,
        shared_spending::{SharedReservation, SharedSpending},
    },
    store::db::ledger::CallBudgets,
};

/// The budget of a fleet, for calls about one root.
pub(crate) struct CentralBudget {
    claims: Arc<Claims>,
    lease: Lease,
}

impl CentralBudget {
    pub(crate) fn new(claims: Arc<Claims>, lease: Lease) -> Self {
        Self { claims, lease }
    }
}

impl SharedSpending for CentralBudget {
    fn nonce(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("memoird 2026 marker around data, fleet");
        for part in [self.claims.nonce(), &self.lease.root.to_string()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    fn stored_reply(&self, fingerprint: &str) -> Result<Option<String>, CallError> {
        self.claims.stored_reply(&self.lease.root, fingerprint).map_err(|it| no_call(&it))
    }

    fn reserve(
        &self,
        call: &SharedReservation<'_>,
        budgets: &CallBudgets,
    ) -> Result<i64, CallError> {
        let SharedReservation { fingerprint, day, tokens, usd } = *call;
        let call = CallReservation { fingerprint, day, tokens, usd };
        match self.claims.reserve(&self.lease, &call, budgets).map_err(|it| no_call(&it))? {
            Reserved::Call(number) => Ok(number),
            Reserved::Exhausted(limit) => Err(CallError::BudgetExhausted(message(&limit))),
            Reserved::Lost => {
                Err(CallError::Ledger(format!("the lease of {} was lost", self.lease.root)))
            }
        }
    }

    fn store_reply(&self, fingerprint: &str, reply: &str) -> Result<(), CallError> {
        self.claims.store_reply(&self.lease.root, fingerprint, reply).map_err(|it| no_call(&it))
    }

    fn settle(&self, call: i64, outcome: &str, used: Option<(u64, f64)>) -> Result<(), CallError> {
        self.claims.settle(self.lease.root.tenant(), call, outcome, used).map_err(|it| no_call(&it))
    }
}

fn no_call(error: &ClaimsError) -> CallError {
    CallError::Ledger(error.to_string())
}

/// Returns the one line that reports an exhausted limit.
fn message(exhausted: &ExhaustedLimit) -> String {
    let ExhaustedLimit { span, scope, unit, used, requested, limit } = exhausted;
    let amount = |it: f64| if unit == "usd" { format!("{it:.2}") } else { format!("{it:.0}") };
    let unit_name = if unit == "usd" { "USD" } else { unit };
    let next = if span == "day" { "tomorrow" } else { "next month" };
    format!(
        "the {scope}'s budget of the {span} is exhausted: {} of {} {unit_name} used, and the next call may need {}; \
         work continues {next}, or raise it in memoird.cap of the claims database",
        amount(*used),
        amount(*limit),
        amount(*requested),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhausted_limit_is_named() {
        let limit = ExhaustedLimit {
            span: "day".to_owned(),
            scope: "tenant".to_owned(),
            unit: "calls".to_owned(),
            used: 3.0,
            requested: 1.0,
            limit: 3.0,
        };
        let text = message(&limit);
        assert!(text.starts_with("the tenant's budget of the day is exhausted: 3 of 3 calls"));
    }
}
