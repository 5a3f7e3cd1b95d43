//! The claims database: which root is due, who works on it, and what the fleet has spent.
//!
//! All rules that must hold at once for several workers are functions of `schema/claims.sql`; this module calls them,
//! one statement each, and is the only one that speaks SQL to PostgreSQL. Without an answer nothing is decided: a
//! worker then claims no root, publishes nothing, and calls no model.
//!
//! - `connection`: the connection and TLS.
//! - [`error`]: why a call failed.

mod connection;
pub(crate) mod error;

use std::time::Duration;

use serde::Deserialize;
use tokio_postgres::types::Type;

use self::{
    connection::Connection,
    error::{ClaimsError, ClaimsErrorKind},
};
use super::root_name::RootName;
use crate::store::db::ledger::{BudgetLimits, CallBudgets};

/// Tables and functions of a new claims database.
const SCHEMA: &str = include_str!("../../../schema/claims.sql");
/// The version of [`SCHEMA`].
const SCHEMA_VERSION: i32 = 2;
/// A sweep looks at every tenant.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(600);

/// The claims database.
pub(crate) struct Claims {
    connection: Connection,
    /// The secret of the fleet, from which prompts derive their markers.
    nonce: String,
}

/// Whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A tenant that has a root that may be claimed.
    Tenant(String),
    /// No tenant has one before this has passed; `None` if none waits for a time.
    Wait(Option<Duration>),
}

/// What a claim is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClaimTarget<'a> {
    /// The root of a tenant that has been due longest.
    DueOf(&'a str),
    /// This root, due or not.
    Named(&'a RootName),
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    Lease(Lease),
    /// Nothing is due.
    Nothing,
    /// Another worker holds the named root, for so long if it dies.
    Held(Duration),
}

/// A root that this worker holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) root: RootName,
    pub(crate) owner: String,
    /// Rises with each claim of the root.
    pub(crate) fence: i64,
    /// The newest generation that anybody reported.
    pub(crate) generation: i64,
    /// Claims since the last success, this one included.
    pub(crate) attempts: u32,
    pub(crate) duration: Duration,
}

/// How work on a root ended.
#[derive(Clone, Debug)]
pub(crate) struct FinishedRoot {
    /// The generation that was published or found; 0 if unknown.
    pub(crate) generation: u64,
    /// Identifies the bundle; `None` if unknown.
    pub(crate) bundle: Option<String>,
    /// When it is due again, from now on; `None`: not before a push.
    pub(crate) next_due: Option<Duration>,
    /// Why it failed.
    pub(crate) problem: Option<String>,
    /// Whether the stored replies of its model are needed no more.
    pub(crate) drops_replies: bool,
}

/// What was last reported about a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownRoot {
    pub(crate) generation: u64,
    pub(crate) bundle: Option<String>,
    pub(crate) seen_at: Option<chrono::DateTime<chrono::Utc>>,
}

/// A call of a model, as it is reserved.
#[derive(Clone, Debug)]
pub(crate) struct CallReservation<'a> {
    pub(crate) fingerprint: &'a str,
    /// In the zone of the root.
    pub(crate) day: chrono::NaiveDate,
    /// The worst case.
    pub(crate) tokens: u64,
    /// The worst case.
    pub(crate) usd: f64,
}

/// A limit that leaves no room for a call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ExhaustedLimit {
    /// `day` or `month`.
    pub(crate) span: String,
    /// `fleet`, `tenant`, or `root`.
    pub(crate) scope: String,
    /// `usd`, `tokens`, or `calls`.
    pub(crate) unit: String,
    pub(crate) used: f64,
    pub(crate) requested: f64,
    pub(crate) limit: f64,
}

/// The result of a reservation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reserved {
    /// The number of the call.
    Call(i64),
    Exhausted(ExhaustedLimit),
    /// The lease was lost.
    Lost,
}

impl Claims {
    /// Connects, and checks the version of the tables.
    pub(crate) fn open(url: &str) -> Result<Self, ClaimsError> {
        let mut claims = Self { connection: Connection::new(url)?, nonce: String::new() };
        let found =
            claims.connection.query("SELECT to_regclass('memoird.meta') IS NOT NULL", &[])?;
        if !found.first().is_some_and(|it| it.get(0)) {
            let server = &claims.connection.server;
            return Err(ClaimsError::new(ClaimsErrorKind::NoTables, server, ""));
        }
        let rows = claims.connection.query("SELECT version, nonce FROM memoird.meta", &[])?;
        let row = rows.first();
        let version: i32 = row.map_or(0, |it| it.get(0));
        if version != SCHEMA_VERSION {
            let reason = format!("version {version}, this memoird knows {SCHEMA_VERSION}");
            let server = &claims.connection.server;
            let is_newer = version > SCHEMA_VERSION;
            let kind = if is_newer { ClaimsErrorKind::Newer } else { ClaimsErrorKind::Older };
            return Err(ClaimsError::new(kind, server, reason));
        }
        claims.nonce = row.map(|it| it.get(1)).unwrap_or_default();
        Ok(claims)
    }

    /// Creates the tables. Returns whether they were missing.
    pub(crate) fn create_tables(url: &str) -> Result<bool, ClaimsError> {
        match Self::open(url) {
            Ok(_) => return Ok(false),
            Err(error) if error.kind == ClaimsErrorKind::NoTables => {}
            Err(error) => return Err(error),
        }
        let created = Connection::new(url)?.execute_all(SCHEMA);
        match created {
            Ok(()) => Ok(true),
            // Another process created them at the same time.
            Err(_) if Self::open(url).is_ok() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the ports that an address names. Nothing is sent.
    pub(crate) fn ports_of(url: &str) -> Result<Vec<u16>, ClaimsError> {
        Ok(Connection::new(url)?.ports())
    }

    /// Returns the secret of the fleet.
    pub(crate) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Returns whether this user may see the rows of all tenants, whatever the policies are.
    pub(crate) fn bypasses_policies(&self) -> Result<bool, ClaimsError> {
        let rows = self.connection.query(
            "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user",
            &[],
        )?;
        Ok(rows.first().is_some_and(|it| it.get(0)))
    }

    /// Takes the next tenant in the line.
    pub(crate) fn next_turn(&self) -> Result<Turn, ClaimsError> {
        let rows = self.connection.query("SELECT picked, wait_ms FROM memoird.next_turn()", &[])?;
        let row = rows.first().ok_or_else(|| self.no_answer())?;
        let (tenant, wait_ms): (Option<String>, Option<i64>) = (row.get(0), row.get(1));
        Ok(match tenant {
            Some(tenant) => Turn::Tenant(tenant),
            None => Turn::Wait(wait_ms.map(millis)),
        })
    }

    /// Claims a root for `duration`.
    pub(crate) fn claim(
        &self,
        target: ClaimTarget<'_>,
        owner: &str,
        duration: Duration,
    ) -> Result<Claimed, ClaimsError> {
        let (tenant, named) = match target {
            ClaimTarget::DueOf(tenant) => (tenant, None),
            ClaimTarget::Named(root) => (root.tenant(), Some(root.id())),
        };
        let lease_ms = whole_millis(duration);
        let rows = self.connection.query(
            "SELECT id, gen, fence, attempts, held_ms FROM memoird.claim_root($1, $2, $3, $4)",
            &[
                (&tenant, Type::TEXT),
                (&named, Type::TEXT),
                (&owner, Type::TEXT),
                (&lease_ms, Type::INT8),
            ],
        )?;
        let row = rows.first().ok_or_else(|| self.no_answer())?;
        let id: Option<String> = row.get(0);
        let Some(id) = id else {
            let held: Option<i64> = row.get(4);
            return Ok(held.map_or(Claimed::Nothing, |it| Claimed::Held(millis(it))));
        };
        let root = RootName::new(tenant, &id).map_err(|reason| {
            ClaimsError::new(ClaimsErrorKind::Failed, &self.connection.server, reason)
        })?;
        let attempts: i32 = row.get(3);
        Ok(Claimed::Lease(Lease {
            root,
            owner: owner.to_owned(),
            generation: row.get(1),
            fence: row.get(2),
            attempts: u32::try_from(attempts).unwrap_or(0),
            duration,
        }))
    }

    /// Extends a lease. Returns whether it is still held.
    pub(crate) fn renew(&self, lease: &Lease) -> Result<bool, ClaimsError> {
        self.is_true(
            "SELECT memoird.renew_lease($1, $2, $3, $4, $5)",
            &[
                (&lease.root.tenant(), Type::TEXT),
                (&lease.root.id(), Type::TEXT),
                (&lease.owner, Type::TEXT),
                (&lease.fence, Type::INT8),
                (&whole_millis(lease.duration), Type::INT8),
            ],
        )
    }

    /// Ends a lease. Returns whether it was still held.
    pub(crate) fn finish(&self, lease: &Lease, end: &FinishedRoot) -> Result<bool, ClaimsError> {
        let how = if end.problem.is_none() { "done" } else { "failed" };
        self.is_true(
            "SELECT memoird.finish_root($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            &[
                (&lease.root.tenant(), Type::TEXT),
                (&lease.root.id(), Type::TEXT),
                (&lease.owner, Type::TEXT),
                (&lease.fence, Type::INT8),
                (&to_i64(end.generation), Type::INT8),
                (&end.bundle, Type::TEXT),
                (&end.next_due.map(whole_millis), Type::INT8),
                (&how, Type::TEXT),
                (&end.problem, Type::TEXT),
                (&end.drops_replies, Type::BOOL),
            ],
        )
    }

    /// Ends the lease of a root without a bundle. Returns whether nobody ever reported it, so that nothing is recorded
    /// about it any more.
    pub(crate) fn abandon(&self, lease: &Lease) -> Result<bool, ClaimsError> {
        self.is_true(
            "SELECT memoird.abandon_root($1, $2, $3, $4)",
            &[
                (&lease.root.tenant(), Type::TEXT),
                (&lease.root.id(), Type::TEXT),
                (&lease.owner, Type::TEXT),
                (&lease.fence, Type::INT8),
            ],
        )
    }

    /// Records that a generation of a bundle was published, and when the root is due.
    pub(crate) fn report(
        &self,
        root: &RootName,
        generation: u64,
        bundle: Option<&str>,
        next_due: Option<Duration>,
    ) -> Result<(), ClaimsError> {
        let rows = self.connection.query(
            "SELECT memoird.report_root($1, $2, $3, $4, $5)::text",
            &[
                (&root.tenant(), Type::TEXT),
                (&root.id(), Type::TEXT),
                (&to_i64(generation), Type::INT8),
                (&bundle, Type::TEXT),
                (&next_due.map(whole_millis), Type::INT8),
            ],
        );
        rows.map(drop)
    }

    /// Returns what was last reported; `None` for an unknown root.
    pub(crate) fn known_root(&self, root: &RootName) -> Result<Option<KnownRoot>, ClaimsError> {
        let rows = self.connection.query(
            "SELECT gen, bundle, seen_at FROM memoird.known_root($1, $2)",
            &[(&root.tenant(), Type::TEXT), (&root.id(), Type::TEXT)],
        )?;
        Ok(rows.first().map(|row| {
            let generation: i64 = row.get(0);
            let generation = u64::try_from(generation).unwrap_or(0);
            KnownRoot { generation, bundle: row.get(1), seen_at: row.get(2) }
        }))
    }

    /// Returns whether the last sweep of any worker began longer ago than `every`; then this one begins.
    pub(crate) fn begin_sweep(&self, every: Duration) -> Result<bool, ClaimsError> {
        let every = whole_millis(every);
        self.is_true("SELECT memoird.begin_sweep($1)", &[(&every, Type::INT8)])
    }

    /// Lets the next worker sweep at once, since this sweep failed.
    pub(crate) fn abandon_sweep(&self) -> Result<(), ClaimsError> {
        self.connection.query("SELECT memoird.abandon_sweep()::text", &[]).map(drop)
    }

    /// Records that a sweep has seen the manifest of a root that was last changed at `changed`, by the clock of the store.
    pub(crate) fn note_seen(
        &self,
        root: &RootName,
        changed: chrono::DateTime<chrono::Utc>,
    ) -> Result<(), ClaimsError> {
        let rows = self.connection.query(
            "SELECT memoird.note_seen($1, $2, $3)::text",
            &[
                (&root.tenant(), Type::TEXT),
                (&root.id(), Type::TEXT),
                (&changed, Type::TIMESTAMPTZ),
            ],
        );
        rows.map(drop)
    }

    /// Puts each tenant into the line at the right place, and removes old runs and replies.
    pub(crate) fn sweep(&self) -> Result<(), ClaimsError> {
        self.connection.query_within(SWEEP_TIMEOUT, "SELECT memoird.sweep()::text", &[]).map(drop)
    }

    /// Reserves a call under all limits.
    pub(crate) fn reserve(
        &self,
        lease: &Lease,
        call: &CallReservation<'_>,
        budgets: &CallBudgets,
    ) -> Result<Reserved, ClaimsError> {
        #[expect(clippy::cast_precision_loss, reason = "no call has 2^52 tokens")]
        let tokens = call.tokens as f64;
        let limits = limits_json(budgets).to_string();
        let rows = self.connection.query(
            "SELECT memoird.reserve_call($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10)",
            &[
                (&lease.root.tenant(), Type::TEXT),
                (&lease.root.id(), Type::TEXT),
                (&lease.owner, Type::TEXT),
                (&lease.fence, Type::INT8),
                (&call.fingerprint, Type::TEXT),
                (&call.day.to_string(), Type::TEXT),
                (&tokens, Type::FLOAT8),
                (&call.usd, Type::FLOAT8),
                (&limits, Type::TEXT),
                (&whole_millis(lease.duration), Type::INT8),
            ],
        )?;
        let answer: String = rows.first().ok_or_else(|| self.no_answer())?.get(0);
        let answer: ReserveAnswer = serde_json::from_str(&answer)
            .map_err(|e| ClaimsError::new(ClaimsErrorKind::Failed, &self.connection.server, e))?;
        Ok(match answer {
            ReserveAnswer { call: Some(call), .. } => Reserved::Call(call),
            ReserveAnswer { exhausted: Some(it), .. } => Reserved::Exhausted(it),
            _ => Reserved::Lost,
        })
    }

    /// Replaces the worst case of a call with its use; `None` keeps it.
    pub(crate) fn settle(
        &self,
        tenant: &str,
        call: i64,
        outcome: &str,
        used: Option<(u64, f64)>,
    ) -> Result<(), ClaimsError> {
        #[expect(clippy::cast_precision_loss, reason = "no call has 2^52 tokens")]
        let (tokens, price) = used.map(|(tokens, usd)| (tokens as f64, usd)).unzip();
        let rows = self.connection.query(
            "SELECT memoird.settle_call($1, $2, $3, $4, $5)::text",
            &[
                (&tenant, Type::TEXT),
                (&call, Type::INT8),
                (&outcome, Type::TEXT),
                (&tokens, Type::FLOAT8),
                (&price, Type::FLOAT8),
            ],
        );
        rows.map(drop)
    }

    /// Stores the reply to a request.
    pub(crate) fn store_reply(
        &self,
        root: &RootName,
        fingerprint: &str,
        reply: &str,
    ) -> Result<(), ClaimsError> {
        let rows = self.connection.query(
            "SELECT memoird.store_reply($1, $2, $3, $4)::text",
            &[
                (&root.tenant(), Type::TEXT),
                (&root.id(), Type::TEXT),
                (&fingerprint, Type::TEXT),
                (&reply, Type::TEXT),
            ],
        );
        rows.map(drop)
    }

    /// Returns the stored reply to a request.
    pub(crate) fn stored_reply(
        &self,
        root: &RootName,
        fingerprint: &str,
    ) -> Result<Option<String>, ClaimsError> {
        let rows = self.connection.query(
            "SELECT memoird.stored_reply($1, $2, $3)",
            &[(&root.tenant(), Type::TEXT), (&root.id(), Type::TEXT), (&fingerprint, Type::TEXT)],
        )?;
        Ok(rows.first().and_then(|it| it.get(0)))
    }

    fn is_true(
        &self,
        statement: &str,
        parameters: &[connection::Parameter<'_>],
    ) -> Result<bool, ClaimsError> {
        let rows = self.connection.query(statement, parameters)?;
        Ok(rows.first().is_some_and(|it| it.get(0)))
    }

    fn no_answer(&self) -> ClaimsError {
        ClaimsError::new(ClaimsErrorKind::Failed, &self.connection.server, "it returned no row")
    }
}

/// The answer of `memoird.reserve_call`.
#[derive(Deserialize)]
struct ReserveAnswer {
    call: Option<i64>,
    exhausted: Option<ExhaustedLimit>,
}

/// Returns the limits of the configuration as `memoird.reserve_call` reads them.
fn limits_json(budgets: &CallBudgets) -> serde_json::Value {
    let of = |it: &BudgetLimits| serde_json::json!({ "usd": it.usd, "tokens": it.tokens, "calls": it.calls });
    serde_json::json!({
        "fleet": { "day": of(&budgets.day), "month": of(&budgets.month) },
        "root": { "day": of(&budgets.root_day), "month": of(&budgets.root_month) },
    })
}

fn millis(amount: i64) -> Duration {
    Duration::from_millis(u64::try_from(amount).unwrap_or(0))
}

fn whole_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_sent_by_scope_and_span() {
        let day = BudgetLimits { usd: Some(2.5), tokens: None, calls: Some(7) };
        let sent = limits_json(&CallBudgets { day, ..CallBudgets::default() });
        assert_eq!(sent["fleet"]["day"]["usd"], 2.5);
        assert_eq!(sent["fleet"]["day"]["calls"], 7);
        assert!(sent["root"]["month"]["usd"].is_null());
    }
}
