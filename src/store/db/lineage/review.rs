//! The review queue: quarantined lines, proposed changes, and quarantined items, which are stored as
//! proposals.
//!
//! Lines are stored without their words. A proposal holds the words that would be written, so that a person
//! can read and edit them; `forget` removes them.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use rusqlite::{Row, Transaction, params};

use super::{
    Lineage, LineageError, TransactionError, column, jobs::RunId, record::LogRecord,
    row_checksum::RowChecksum,
};
use crate::memory::{
    address::{Address, Citation, Stem},
    hash::ContentHash,
    period::{Grain, Period},
};

/// A quarantined line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineRecord {
    /// The line, from 1.
    pub line: u32,
    /// Why: the names of concerns.
    pub why: Vec<String>,
}

/// What a quarantined line is excluded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuarantineScope {
    /// Everything.
    Line,
    /// Being the only source of a memory or of wisdom, because its text is external.
    Memory,
}

/// A change that a person may accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Its number.
    pub id: i64,
    /// The job that proposed it.
    pub fingerprint: ContentHash,
    /// The month, or the day.
    pub period: Period,
    /// The file that would change, relative to the root.
    pub target: String,
    /// The change, as JSON.
    pub change: String,
    /// The source lines, as a citation without brackets.
    pub sources: String,
    /// When it was proposed, UTC.
    pub at: DateTime<Utc>,
    /// Whether a person has decided.
    pub state: ProposalState,
}

/// A change to propose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProposal {
    /// The file that would change, relative to the root.
    pub target: String,
    /// The change, as JSON.
    pub change: String,
    /// The source lines, as a citation without brackets.
    pub sources: String,
}

/// A person's decision about a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposalState {
    /// Not decided.
    Open,
    /// The change was made.
    Accepted,
    /// The change will not be made.
    Refused,
}

impl QuarantineScope {
    fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Memory => "memory",
        }
    }
}

impl ProposalState {
    fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
        }
    }

    fn from_name(name: &str) -> Self {
        match name {
            "accepted" => Self::Accepted,
            "refused" => Self::Refused,
            _ => Self::Open,
        }
    }
}

impl Lineage {
    /// Returns the quarantined lines of the logs as they were last read.
    pub(crate) fn quarantined(
        &self,
    ) -> Result<BTreeMap<Address, (QuarantineScope, QuarantineRecord)>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT stem, line, why, what FROM held")?
                .query_map([], |row| {
                    let (stem, line): (Stem, u32) = (column::parsed(row, 0)?, row.get(1)?);
                    let why: String = row.get(2)?;
                    let why = why.split(' ').map(str::to_owned).collect();
                    let record = QuarantineRecord { line, why };
                    let what = match row.get::<_, String>(3)?.as_str() {
                        "memory" => QuarantineScope::Memory,
                        _ => QuarantineScope::Line,
                    };
                    Ok((Address { stem, line }, (what, record)))
                })?
                .collect()
        })
    }

    /// Returns how many lines and proposals wait for a person.
    pub(crate) fn review_queue_len(&self) -> Result<usize, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT (SELECT count(*) FROM held) \
                 + (SELECT count(*) FROM proposal WHERE state = 'open')",
            )?
            .query_row([], |row| row.get::<_, u32>(0))
            .map(|it| usize::try_from(it).unwrap_or(usize::MAX))
        })
    }

    /// Removes lines about which a person has decided.
    pub(crate) fn remove_quarantined(&mut self, lines: &[Address]) -> Result<(), LineageError> {
        self.write(|tx| {
            let mut remove = tx.prepare_cached("DELETE FROM held WHERE stem = ?1 AND line = ?2")?;
            for Address { stem, line } in lines {
                remove.execute(params![stem.as_str(), line])?;
            }
            Ok(())
        })
    }

    /// Returns the open proposals, oldest first; with `includes_decided` also the accepted and refused ones.
    pub(crate) fn proposals(&self, includes_decided: bool) -> Result<Vec<Proposal>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT id, fingerprint, period, target, change, sources, at, state FROM proposal \
                 WHERE ?1 OR state = 'open' ORDER BY id",
            )?
            .query_map([includes_decided], proposal_row)?
            .collect()
        })
    }

    /// Returns the last run with a job of this fingerprint.
    pub(crate) fn last_run_of_job(
        &self,
        fingerprint: ContentHash,
    ) -> Result<Option<RunId>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT max(run) FROM activity WHERE fingerprint = ?1")?
                .query_row([fingerprint.to_string()], |row| row.get::<_, Option<i64>>(0))
                .map(|it| it.map(RunId))
        })
    }

    /// Records a person's decision about a proposal.
    pub(crate) fn set_proposal_state(
        &mut self,
        id: i64,
        state: ProposalState,
    ) -> Result<(), LineageError> {
        self.write(|tx| {
            tx.execute("UPDATE proposal SET state = ?2 WHERE id = ?1", params![id, state.name()])?;
            checksum_proposal(tx, id)
        })
    }

    /// Deletes the proposals, decided or not, with a text for which `holds` is true or with sources for which
    /// `cites` is.
    pub(crate) fn forget_proposals(
        &mut self,
        holds: &dyn Fn(&str) -> bool,
        cites: &dyn Fn(&Citation) -> bool,
    ) -> Result<(), LineageError> {
        self.write(|tx| {
            let all: Vec<(i64, String, String)> = tx
                .prepare("SELECT id, change, sources FROM proposal")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect::<Result<_, _>>()?;
            let has_text = |change: &str| match serde_json::from_str(change) {
                Ok(change) => any_text_matches(&change, holds),
                Err(_) => holds(change),
            };
            let has_source = |sources: &str| sources.parse().is_ok_and(|it| cites(&it));
            let matching =
                all.iter().filter(|(_, change, sources)| has_text(change) || has_source(sources));
            for (id, ..) in matching {
                tx.execute("DELETE FROM proposal WHERE id = ?1", [id])?;
            }
            Ok(())
        })
    }
}

/// Returns whether `holds` is true for any text of a change. The JSON as a whole would not do, because it
/// escapes quotes and line ends.
fn any_text_matches(change: &serde_json::Value, holds: &dyn Fn(&str) -> bool) -> bool {
    match change {
        serde_json::Value::String(text) => holds(text),
        serde_json::Value::Array(all) => all.iter().any(|it| any_text_matches(it, holds)),
        serde_json::Value::Object(keys) => keys.values().any(|it| any_text_matches(it, holds)),
        _ => false,
    }
}

fn proposal_row(row: &Row<'_>) -> rusqlite::Result<Proposal> {
    Ok(Proposal {
        id: row.get(0)?,
        fingerprint: column::hash(row, 1)?,
        period: column::parsed(row, 2)?,
        target: row.get(3)?,
        change: row.get(4)?,
        sources: row.get(5)?,
        at: column::parsed(row, 6)?,
        state: ProposalState::from_name(&row.get::<_, String>(7)?),
    })
}

/// Records the quarantined lines of a log as it was read.
pub(super) fn put_quarantined_lines(
    tx: &Transaction<'_>,
    log: &LogRecord,
) -> Result<(), TransactionError> {
    // Lines quarantined for memories were found when the day was extracted; they stay until it is extracted
    // again.
    tx.prepare_cached("DELETE FROM held WHERE stem = ?1 AND what = 'line'")?
        .execute([log.stem.as_str()])?;
    put_quarantined(tx, &log.stem, &log.quarantined, QuarantineScope::Line)
}

/// Records the lines that may not be the only source of a memory. The log's earlier ones were removed when
/// its extraction was recorded.
pub(super) fn put_quarantined_memories(
    tx: &Transaction<'_>,
    (stem, records): &(Stem, Vec<QuarantineRecord>),
) -> Result<(), TransactionError> {
    put_quarantined(tx, stem, records, QuarantineScope::Memory)
}

fn put_quarantined(
    tx: &Transaction<'_>,
    stem: &Stem,
    records: &[QuarantineRecord],
    what: QuarantineScope,
) -> Result<(), TransactionError> {
    let mut put = tx.prepare_cached(
        "INSERT OR IGNORE INTO held (stem, line, why, what, seal) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for QuarantineRecord { line, why } in records {
        let (stem, why, what) = (stem.as_str(), why.join(" "), what.name());
        let seal = RowChecksum::default().text(stem).int((*line).into()).text(&why);
        put.execute(params![stem, line, why, what, seal.text(what).finish()])?;
    }
    Ok(())
}

/// Records what a job proposes. It replaces the open proposals for the same inputs; for a day, which is read
/// as a whole, also those from its earlier text.
pub(super) fn put_proposals(
    tx: &Transaction<'_>,
    (fingerprint, period): (ContentHash, Period),
    proposals: &[NewProposal],
    at: DateTime<Utc>,
) -> Result<(), TransactionError> {
    tx.prepare_cached(
        "DELETE FROM proposal WHERE state = 'open' AND (fingerprint = ?1 OR (?3 AND period = ?2))",
    )?
    .execute(params![
        fingerprint.to_string(),
        period.to_string(),
        period.grain() == Grain::Day
    ])?;
    insert_proposals(tx, (fingerprint, period), proposals, at)
}

fn insert_proposals(
    tx: &Transaction<'_>,
    (fingerprint, period): (ContentHash, Period),
    proposals: &[NewProposal],
    at: DateTime<Utc>,
) -> Result<(), TransactionError> {
    let fingerprint = fingerprint.to_string();
    for NewProposal { target, change, sources } in proposals {
        let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
        tx.execute(
            "INSERT INTO proposal (fingerprint, period, target, change, sources, state, at) \
             VALUES (?1, ?2, ?3, ?4, ?5, 'open', ?6)",
            params![fingerprint, period.to_string(), target, change, sources, at],
        )?;
        checksum_proposal(tx, tx.last_insert_rowid())?;
    }
    Ok(())
}

/// Records the items that a job quarantined. They replace the undecided ones of the last job for the same
/// period and file.
pub(super) fn put_quarantined_items(
    tx: &Transaction<'_>,
    (fingerprint, period, target): (ContentHash, Period, &str),
    items: &[NewProposal],
    at: DateTime<Utc>,
) -> Result<(), TransactionError> {
    // Each memory extracted from a day has a target of its own.
    tx.prepare_cached(
        "DELETE FROM proposal WHERE state = 'open' AND period = ?1 AND (?2 OR target = ?3) \
         AND CASE WHEN json_valid(change) THEN json_extract(change, '$.op') = 'item' ELSE 0 END",
    )?
    .execute(params![period.to_string(), period.grain() == Grain::Day, target])?;
    insert_proposals(tx, (fingerprint, period), items, at)
}

fn checksum_proposal(tx: &Transaction<'_>, id: i64) -> Result<(), TransactionError> {
    let values: Vec<String> = tx
        .prepare_cached(
            "SELECT fingerprint, period, target, change, sources, state, at FROM proposal \
             WHERE id = ?1",
        )?
        .query_row([id], |row| (0..7).map(|i| row.get(i)).collect())?;
    let seal = values.iter().fold(RowChecksum::default(), |seal, it| seal.text(it)).finish();
    tx.execute("UPDATE proposal SET seal = ?2 WHERE id = ?1", params![id, seal])?;
    Ok(())
}
