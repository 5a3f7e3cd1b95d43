//! The circuit breaker of a server, as the ledger keeps it for all processes.

use chrono::{DateTime, Utc};

use super::ModelClient;
use crate::{
    clock,
    model::{
        CallError,
        circuit_breaker::{CircuitBreaker, CircuitState},
    },
    store::db::ledger::{Ledger, LedgerError, ServerRow},
};

impl ModelClient {
    /// Closes the circuit, because a person who has fixed the cause asks for another try.
    pub(crate) fn reset_circuit(&self) -> Result<(), CallError> {
        let row = self.server_row()?;
        self.save_server_row(&ServerRow {
            failures: 0,
            open_until: None,
            refused_account: None,
            ..row
        })
    }

    /// Returns why no request would be sent now, or `None` if one would. Only reads.
    pub(crate) fn circuit_error(
        &self,
        ledger: &Ledger,
        now: DateTime<Utc>,
    ) -> Result<Option<CallError>, LedgerError> {
        let row = ledger.server(self.config.endpoint.server(), &self.config.model)?;
        Ok(self.check_circuit(&row, now).err())
    }

    /// Returns the state of the circuit, or an error if it lets no request through.
    pub(in crate::model) fn check_circuit(
        &self,
        row: &ServerRow,
        now: DateTime<Utc>,
    ) -> Result<CircuitState, CallError> {
        let server = || self.config.endpoint.server().to_owned();
        match circuit_of(row).state(&self.config.account, now) {
            CircuitState::Open(until) => {
                Err(CallError::CircuitOpen { server: server(), failures: row.failures, until })
            }
            CircuitState::AccountBlocked => Err(CallError::AccountBlocked { server: server() }),
            state => Ok(state),
        }
    }

    /// Announces the one request that a half-open circuit allows, so that no other is sent meanwhile.
    pub(super) fn announce_probe(
        &self,
        state: CircuitState,
        row: &ServerRow,
        now: DateTime<Utc>,
    ) -> Result<(), CallError> {
        if state != CircuitState::HalfOpen {
            return Ok(());
        }
        let probing = circuit_of(row).during_probe(self.config.deadlines.total, now);
        self.save_server_row(&ServerRow { open_until: probing.open_until, ..row.clone() })
    }

    /// Counts a request that failed.
    pub(in crate::model) fn record_failure(
        &self,
        row: ServerRow,
        error: &CallError,
        now: DateTime<Utc>,
    ) -> Result<(), CallError> {
        let next = circuit_of(&row).after_failure(error, &self.config.account, now);
        self.save_circuit(next, row)
    }

    /// Counts work whose replies were unusable; before it there were `failures` in a row.
    pub(super) fn record_wasted_work(&self, failures: u32) -> Result<(), CallError> {
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        let row = self.server_row()?;
        let failures = failures.max(row.failures);
        let next = CircuitBreaker { failures, ..circuit_of(&row) }.after_wasted_work(now);
        self.save_circuit(next, row)
    }

    fn save_circuit(&self, circuit: CircuitBreaker, row: ServerRow) -> Result<(), CallError> {
        let CircuitBreaker { failures, open_until, blocked_account: refused_account } = circuit;
        self.save_server_row(&ServerRow { failures, open_until, refused_account, ..row })
    }
}

/// Returns the circuit breaker of a server, as the ledger keeps it.
pub(super) fn circuit_of(row: &ServerRow) -> CircuitBreaker {
    CircuitBreaker {
        failures: row.failures,
        open_until: row.open_until,
        blocked_account: row.refused_account.clone(),
    }
}
