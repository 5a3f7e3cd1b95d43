//! The state of servers and models: circuit breaker, dialect, characters per token.

use chrono::{DateTime, Utc};
use rusqlite::{OptionalExtension as _, params};

use super::{Ledger, LedgerError, ServerRow, TokenRatio};

impl Ledger {
    /// Returns the state of a server and a model; the default if nothing was recorded.
    pub(crate) fn server(&self, server: &str, model: &str) -> Result<ServerRow, LedgerError> {
        self.read(|conn| {
            let row = conn
                .prepare_cached(
                    "SELECT failures, open_until, barred, rung, is_thinking, context_tokens, \
                     direct_until FROM server WHERE server = ?1 AND model = ?2",
                )?
                .query_row([server, model], |row| {
                    let time = |column| -> rusqlite::Result<Option<DateTime<Utc>>> {
                        let text: Option<String> = row.get(column)?;
                        let time = text.and_then(|it| DateTime::parse_from_rfc3339(&it).ok());
                        Ok(time.map(|it| it.to_utc()))
                    };
                    Ok(ServerRow {
                        failures: row.get(0)?,
                        open_until: time(1)?,
                        refused_account: row.get(2)?,
                        schema_mode: row.get(3)?,
                        is_thinking: row.get(4)?,
                        context_tokens: row.get(5)?,
                        no_batches_until: time(6)?,
                    })
                })
                .optional()?;
            Ok(row.unwrap_or_default())
        })
    }

    /// Records the state of a server and a model.
    pub(crate) fn record_server(
        &mut self,
        server: &str,
        model: &str,
        row: &ServerRow,
    ) -> Result<(), LedgerError> {
        self.write(|tx| {
            tx.execute(
                "INSERT OR REPLACE INTO server \
                 (server, model, failures, open_until, barred, rung, is_thinking, context_tokens, \
                  direct_until) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                params![
                    server,
                    model,
                    row.failures,
                    row.open_until.map(|it| it.to_rfc3339()),
                    row.refused_account,
                    row.schema_mode,
                    row.is_thinking,
                    row.context_tokens,
                    row.no_batches_until.map(|it| it.to_rfc3339()),
                ],
            )?;
            Ok(())
        })
    }

    /// Returns the characters per token of a model.
    pub(crate) fn token_ratio(
        &self,
        server: &str,
        model: &str,
    ) -> Result<Option<TokenRatio>, LedgerError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT chars, tokens, least FROM weight WHERE server = ?1 AND model = ?2",
            )?
            .query_row([server, model], |row| {
                Ok(TokenRatio {
                    chars: row.get(0)?,
                    tokens: row.get(1)?,
                    min_chars_per_token: row.get(2)?,
                })
            })
            .optional()
        })
    }

    /// Records the characters per token of a model.
    pub(crate) fn record_token_ratio(
        &mut self,
        server: &str,
        model: &str,
        ratio: &TokenRatio,
    ) -> Result<(), LedgerError> {
        let TokenRatio { chars, tokens, min_chars_per_token: least } = ratio;
        self.write(|tx| {
            tx.execute(
                "INSERT OR REPLACE INTO weight (server, model, chars, tokens, least) \
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![server, model, chars, tokens, least],
            )?;
            Ok(())
        })
    }
}
