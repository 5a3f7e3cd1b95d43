//! What waits for a person: lines that are held, changes that are proposed, and items that were kept
//! out, which are proposals that most of nobody can make.
//!
//! Of lines no words are kept. A proposal holds the words that would be written, so that a person can
//! read and edit them; `forget` takes them out.

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

/// A line that is held for review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineRecord {
    /// The line, from 1.
    pub line: u32,
    /// Why, by the names of concerns.
    pub why: Vec<String>,
}

/// What is held of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuarantineScope {
    /// The line itself, everywhere.
    Line,
    /// The memory or the wisdom that rests on nothing but text from elsewhere.
    Memory,
}

/// A change that is made when a person accepts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Its number.
    pub id: i64,
    /// The work that it came of.
    pub fingerprint: ContentHash,
    /// The month, or the day.
    pub period: Period,
    /// The file that would be changed, relative to the root.
    pub target: String,
    /// What would be done, as JSON.
    pub change: String,
    /// The lines that it rests on, as a citation without brackets.
    pub sources: String,
    /// When it was made, UTC.
    pub at: DateTime<Utc>,
    /// What became of it.
    pub state: ProposalState,
}

/// A change to be proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProposal {
    /// The file that would be changed, relative to the root.
    pub target: String,
    /// What would be done, as JSON.
    pub change: String,
    /// The lines that it rests on, as a citation without brackets.
    pub sources: String,
}

/// What became of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposalState {
    /// It waits.
    Open,
    /// It was made.
    Accepted,
    /// It is not made.
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
    /// Returns the lines that wait for a person, as their logs were last read.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn quarantined(
        &self,
    ) -> Result<BTreeMap<Address, (QuarantineScope, QuarantineRecord)>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT stem, line, why, what FROM held")?
                .query_map([], |row| {
                    let (stem, line): (Stem, u32) = (column::parsed(row, 0)?, row.get(1)?);
                    let why: String = row.get(2)?;
                    let why = why.split(' ').map(str::to_owned).collect();
                    let held = QuarantineRecord { line, why };
                    let what = match row.get::<_, String>(3)?.as_str() {
                        "memory" => QuarantineScope::Memory,
                        _ => QuarantineScope::Line,
                    };
                    Ok((Address { stem, line }, (what, held)))
                })?
                .collect()
        })
    }

    /// Returns how many lines and changes wait for a person.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn review_queue_len(&self) -> Result<usize, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT (SELECT count(*) FROM held) \
                 + (SELECT count(*) FROM proposal WHERE state = 'open')",
            )?
            .query_row([], |row| row.get::<_, u32>(0))
            .map(|it| usize::try_from(it).unwrap_or(usize::MAX))
        })
    }

    /// Takes note that a person was asked about lines.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written.
    pub fn remove_quarantined(&mut self, lines: &[Address]) -> Result<(), LineageError> {
        self.write(|tx| {
            let mut settle = tx.prepare_cached("DELETE FROM held WHERE stem = ?1 AND line = ?2")?;
            for Address { stem, line } in lines {
                settle.execute(params![stem.as_str(), line])?;
            }
            Ok(())
        })
    }

    /// Returns the changes that wait for a person, oldest first, and with `decided` also those that
    /// they have spoken about.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn proposals(&self, decided: bool) -> Result<Vec<Proposal>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT id, fingerprint, period, target, change, sources, at, state FROM proposal \
                 WHERE ?1 OR state = 'open' ORDER BY id",
            )?
            .query_map([decided], proposal_row)?
            .collect()
        })
    }

    /// Returns the last run that did this piece of work.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn last_run_of_job(&self, fingerprint: ContentHash) -> Result<Option<RunId>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT max(run) FROM activity WHERE fingerprint = ?1")?
                .query_row([fingerprint.to_string()], |row| row.get::<_, Option<i64>>(0))
                .map(|it| it.map(RunId))
        })
    }

    /// Takes note of what became of a proposal.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written.
    pub fn set_proposal_state(
        &mut self,
        id: i64,
        state: ProposalState,
    ) -> Result<(), LineageError> {
        self.write(|tx| {
            tx.execute("UPDATE proposal SET state = ?2 WHERE id = ?1", params![id, state.name()])?;
            checksum_proposal(tx, id)
        })
    }

    /// Forgets the proposals that `holds` names by their words, or `rests` by the lines that they rest
    /// on, whatever was said of them.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written.
    pub fn forget_proposals(
        &mut self,
        holds: &dyn Fn(&str) -> bool,
        rests: &dyn Fn(&Citation) -> bool,
    ) -> Result<(), LineageError> {
        self.write(|tx| {
            let all: Vec<(i64, String, String)> = tx
                .prepare("SELECT id, change, sources FROM proposal")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect::<Result<_, _>>()?;
            let says = |change: &str| match serde_json::from_str(change) {
                Ok(change) => any_text_matches(&change, holds),
                Err(_) => holds(change),
            };
            let cites = |sources: &str| sources.parse().is_ok_and(|it| rests(&it));
            let gone = all.iter().filter(|(_, change, at)| says(change) || cites(at));
            for (id, ..) in gone {
                tx.execute("DELETE FROM proposal WHERE id = ?1", [id])?;
            }
            Ok(())
        })
    }
}

/// Returns whether any text of a change is such a one: as JSON its quotes and line ends are spelled
/// otherwise.
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

/// Records the lines that are held of logs as they were read.
pub(super) fn put_quarantined_lines(
    tx: &Transaction<'_>,
    log: &LogRecord,
) -> Result<(), TransactionError> {
    // What alone carries no memory was found by who extracted the day, and stands as long as its
    // line does.
    tx.prepare_cached("DELETE FROM held WHERE stem = ?1 AND what = 'line'")?
        .execute([log.stem.as_str()])?;
    put_quarantined(tx, &log.stem, &log.quarantined, QuarantineScope::Line)
}

/// Records the lines that alone carry no memory. What was known of the log was forgotten when it was
/// extracted anew.
pub(super) fn put_quarantined_memories(
    tx: &Transaction<'_>,
    (stem, held): &(Stem, Vec<QuarantineRecord>),
) -> Result<(), TransactionError> {
    put_quarantined(tx, stem, held, QuarantineScope::Memory)
}

fn put_quarantined(
    tx: &Transaction<'_>,
    stem: &Stem,
    held: &[QuarantineRecord],
    what: QuarantineScope,
) -> Result<(), TransactionError> {
    let mut put = tx.prepare_cached(
        "INSERT OR IGNORE INTO held (stem, line, why, what, seal) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for QuarantineRecord { line, why } in held {
        let (stem, why, what) = (stem.as_str(), why.join(" "), what.name());
        let seal = RowChecksum::default().text(stem).int((*line).into()).text(&why);
        put.execute(params![stem, line, why, what, seal.text(what).finish()])?;
    }
    Ok(())
}

/// Records what a job proposes, in the place of what was proposed for the same inputs and waits. A day
/// is read as a whole, so what was proposed for it as it was before goes, too.
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

/// Records the items that a job kept out, in the place of what the last one that made the same of the
/// period kept out and nobody has spoken about.
pub(super) fn put_quarantined_items(
    tx: &Transaction<'_>,
    (fingerprint, period, target): (ContentHash, Period, &str),
    items: &[NewProposal],
    at: DateTime<Utc>,
) -> Result<(), TransactionError> {
    // What is extracted of a day has a target of its own each.
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
