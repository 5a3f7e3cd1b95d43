//! The review queue: everything that waits for a person, and what their verdicts do.
//!
//! The queue has four kinds of things, all but the last from [`review_queue`]:
//!
//! - `lines`: quarantined lines of logs, and of what people wrote in weekly and monthly files. A
//!   verdict is recorded as a decision and changes the input hash of the file, so that the next run
//!   writes the derived files again.
//! - `file_changes`: proposed changes of files. A verdict takes effect at once and is recorded as a
//!   decision too; otherwise the change would be proposed again after a loss of the database.
//!   Proposed are all changes of `WISDOM.md`, if a person wants to review each (`wisdom`), and
//!   those of typed memories that a person wrote or edited (`memories`).
//! - `items`: drafts that the checks kept out. Most are only shown.
//! - `contradictions`: statements of curated files that newer logs contradict. They are only shown, until a person
//!   says that they are none.
//!
//! A line is identified by its decision hash. A change is identified by its number, and in
//! decisions by the hash of what it would write.

mod contradictions;
mod file_changes;
#[cfg(test)]
mod items_tests;
mod lines;
mod memories;
mod wisdom;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

pub(super) use self::file_changes::{ChangeVerdict, record_change_decisions};
pub(crate) use self::{
    contradictions::ReviewContradiction,
    file_changes::{ReviewError, UserReplacement},
};
use crate::compaction::{
    Compactor,
    context::REVIEW_TRIGGER,
    error::CompactionError,
    proposals::{
        change::ProposedChange,
        memories::{base_hash, memory_text, parse_memory},
        read_sanitized,
    },
};
use crate::{
    memory::{
        address::{Address, Citation, Stem},
        decision::Verdict,
        document::Summary,
        hash::ContentHash,
        log::{DailyLog, TextOrigin},
        period::Period,
        wisdom::{WisdomEntry, WisdomFile},
    },
    parallel,
    privacy::{self, PrivacyRules, SanitizedLog},
    store::{
        db::lineage::{
            Lineage,
            jobs::RunId,
            review::{Proposal, ProposalState, QuarantineRecord, QuarantineScope},
        },
        fs::{
            inventory::{Inventory, SummaryFile},
            vault::{Vault, VaultError},
        },
    },
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuarantinedLine {
    /// Its id: the beginning of the hash of its words and the name of its log.
    pub id: String,
    pub address: Address,
    /// Its log, relative to the root.
    pub path: String,
    /// The line with secrets masked.
    pub text: String,
    pub origin: TextOrigin,
    /// The names of the concerns about it.
    pub reasons: Vec<String>,
    /// Whether the line itself is kept out, or only a memory that would cite it alone.
    pub what: QuarantineScope,
    /// The verdict; `None` while it waits.
    pub verdict: Option<Verdict>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReviewProposal {
    pub id: String,
    pub row: Proposal,
    pub change: ProposedChange,
    /// The current text, with secrets masked; `None` if there is none yet.
    pub current: Option<String>,
    pub source_lines: Vec<(Address, String)>,
    /// Whether it can no longer be made because the file or its lines changed.
    pub is_stale: bool,
    /// The run that proposed it, if still known.
    pub run: Option<RunId>,
    /// The verdict; `None` while it waits.
    pub verdict: Option<Verdict>,
}

/// Everything that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReviewQueue {
    /// Lines, by log and number.
    pub lines: Vec<QuarantinedLine>,
    /// Changes, oldest first.
    pub changes: Vec<ReviewProposal>,
    /// What newer logs contradict in curated files; found by `recall`.
    pub contradictions: Vec<ReviewContradiction>,
}

impl Compactor<'_> {
    /// Records a run without files: a person said something in `review`. With `lifted` they
    /// withdrew what they said last.
    pub(super) fn record_review_run(
        &mut self,
        lifted: bool,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let before: Vec<RunId> = if lifted {
            let runs = self.context.lineage.last_runs(u32::MAX)?;
            let writes = self.context.lineage.writes()?;
            let wrote = |run: RunId| writes.iter().any(|it| it.run == Some(run));
            let reviews = runs.iter().filter(|it| it.trigger == REVIEW_TRIGGER && !wrote(it.id));
            reviews.map(|it| it.id).collect()
        } else {
            Vec::new()
        };
        let run = self.context.ensure_run(&mut None, REVIEW_TRIGGER, now)?;
        self.context.lineage.record_undone_runs(run, &before)?;
        self.context.end_run(run)
    }
}

/// Returns everything that waits for a person, and with `decided` also what they have decided
/// about.
///
/// Only the logs are read that had quarantined lines, or that changed since they were recorded.
pub(crate) fn review_queue(
    vault: &Vault,
    lineage: Option<&Lineage>,
    inventory: &Inventory,
    decided: bool,
) -> Result<ReviewQueue, CompactionError> {
    let held = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::quarantined)?;
    let known = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::logs)?;
    let mut waiting = ReviewQueue::default();
    let marked: BTreeSet<&Stem> = held.keys().map(|it| &it.stem).collect();
    let none = BTreeMap::new();
    let rules = &inventory.rules;
    for (stem, file) in &inventory.logs {
        let is_known = known.get(stem).is_some_and(|it| it.hash == file.hash);
        if is_known && !decided && !marked.contains(stem) {
            continue;
        }
        let Some(log) = vault.read_log(stem)? else { continue };
        let sanitized = privacy::sanitize(&log, rules);
        let alone = if is_known { &held } else { &none };
        waiting
            .lines
            .extend(quarantined_lines(&log, &sanitized, &file.path, alone, rules, decided));
    }
    waiting.lines.extend(quarantined_in_summaries(vault, inventory, decided)?);
    for row in lineage.map_or_else(|| Ok(Vec::new()), |it| it.proposals(decided))? {
        // A change of an unknown kind waits for a newer memoird.
        let Ok(change) = serde_json::from_str::<ProposedChange>(&row.change) else { continue };
        let run = lineage.map(|it| it.last_run_of_job(row.fingerprint)).transpose()?.flatten();
        waiting
            .changes
            .push(ReviewProposal { run, ..load_proposal(vault, inventory, row, change)? });
    }
    Ok(waiting)
}

/// Returns the quarantined lines of weekly and monthly files: what people wrote there, and foreign
/// files. With `decided` also those that a person has decided about.
pub(crate) fn quarantined_in_summaries(
    vault: &Vault,
    inventory: &Inventory,
    decided: bool,
) -> Result<Vec<QuarantinedLine>, VaultError> {
    let files: Vec<(&Period, &SummaryFile)> =
        inventory.weekly.iter().chain(&inventory.monthly).collect();
    let rules = &inventory.rules;
    let folders = vault.folder_cache();
    let of = |(period, file): &(&Period, &SummaryFile)| {
        let Some(text) = folders.read_text(&file.path)? else { return Ok(Vec::new()) };
        // The inventory reports files that cannot be parsed.
        let Ok(summary) = Summary::parse(**period, &text) else { return Ok(Vec::new()) };
        let sanitized = privacy::sanitize_own_lines(&summary, &text, rules);
        let log = |it: &SanitizedLog| DailyLog::parse(it.stem().clone(), text.as_bytes()).ok();
        let Some((log, sanitized)) = sanitized.and_then(|it| Some((log(&it)?, it))) else {
            return Ok(Vec::new());
        };
        Ok(quarantined_lines(&log, &sanitized, &file.path, &BTreeMap::new(), rules, decided))
    };
    let mut lines = Vec::new();
    for held in parallel::map(&files, of) {
        lines.extend(held?);
    }
    Ok(lines)
}

/// Returns the quarantined lines of a file, and with `decided` also those that a person has decided
/// about. `alone` are lines that cannot support a memory alone.
fn quarantined_lines(
    log: &DailyLog,
    sanitized: &SanitizedLog,
    path: &str,
    alone: &BTreeMap<Address, (QuarantineScope, QuarantineRecord)>,
    rules: &PrivacyRules,
    decided: bool,
) -> Vec<QuarantinedLine> {
    let stem = &log.stem;
    let mut lines = Vec::new();
    // A secret may begin on an earlier line, so each line is masked as part of its log.
    let seen = rules.mask_secret_lines(log.raw());
    for (line, (number, text, _)) in sanitized.lines().iter().zip(log.lines()) {
        let address = sanitized.address(line);
        let alone = alone.get(&address).filter(|it| it.0 == QuarantineScope::Memory);
        let verdict = rules.review_verdict(stem, text);
        if verdict.is_some() && !decided {
            continue;
        }
        let (what, why) = match (line.quarantine(), alone, verdict) {
            (Some(it), ..) => {
                (QuarantineScope::Line, it.concerns.iter().map(|it| it.name().to_owned()).collect())
            }
            (None, Some((_, it)), _) => (QuarantineScope::Memory, it.why.clone()),
            (None, None, Some(_)) => (QuarantineScope::Line, Vec::new()),
            (None, None, None) => continue,
        };
        lines.push(QuarantinedLine {
            id: line_id(stem, &privacy::decision_text(stem, text)),
            path: path.to_owned(),
            text: displayed_line(&seen, number, text).to_owned(),
            origin: line.origin(),
            reasons: why,
            what,
            verdict,
            address,
        });
    }
    lines
}

/// Returns a line of the masked log without its line end.
fn displayed_line<'a>(seen: &'a [String], number: u32, raw: &str) -> &'a str {
    let at = usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
    let line = seen.get(at).map_or("", |it| it.trim_end_matches('\r'));
    // The byte-order mark at the start of a file belongs to no line.
    if raw.starts_with('\u{feff}') { line } else { line.trim_start_matches('\u{feff}') }
}

/// Loads the current text and the source lines of a change.
fn load_proposal(
    vault: &Vault,
    inventory: &Inventory,
    row: Proposal,
    change: ProposedChange,
) -> Result<ReviewProposal, CompactionError> {
    let rules = &inventory.rules;
    let cited = row.sources.parse::<Citation>().ok();
    let mut cited: Vec<Address> = cited.iter().flat_map(Citation::addresses).collect();
    let (before, is_stale) = if let ProposedChange::Memory { words, base, .. } = &change {
        let text = vault.read_text(&row.target)?;
        let memory = text.and_then(|it| parse_memory(&row.target, &it));
        let mut is_stale = memory.as_ref().is_none_or(|it| base_hash(it) != *base);
        if let Some(words) = words {
            let found = words.find_sources(vault, rules)?;
            is_stale |= !found.lost.is_empty() || found.log_missing;
            cited = found.present.into_iter().chain(found.lost).map(|it| it.0).collect();
        }
        (memory.map(|it| memory_text(&it.name, &it.description, &it.body)), is_stale)
    } else {
        let wisdom = inventory.wisdom.as_deref().map(WisdomFile::parse);
        let mut entries = wisdom.iter().flat_map(WisdomFile::entries);
        let entry = change.entry_id().and_then(|id| entries.find(|it| it.id() == Some(id)));
        let before = entry.map(WisdomEntry::words);
        let is_stale = change.entry_id().is_some() && before.is_none();
        (before, is_stale)
    };
    let mut logs = BTreeMap::new();
    let mut lines = Vec::new();
    for at in cited {
        if !logs.contains_key(&at.stem) {
            logs.insert(at.stem.clone(), read_sanitized(vault, &at.stem, rules)?);
        }
        let log = logs.get(&at.stem).and_then(Option::as_ref);
        if let Some(line) = log.and_then(|it| it.line(at.line)) {
            let text = line.text().to_owned();
            lines.push((at, text));
        }
    }
    let verdict = match row.state {
        ProposalState::Open => None,
        ProposalState::Accepted => Some(Verdict::Accepted),
        ProposalState::Refused => Some(Verdict::Refused),
    };
    let before = before.map(|it| rules.mask_secrets(&it).into_owned());
    let is_stale = is_stale && verdict.is_none();
    let id = format!("w{}", row.id);
    Ok(ReviewProposal {
        id,
        row,
        change,
        current: before,
        source_lines: lines,
        is_stale,
        run: None,
        verdict,
    })
}

/// Returns the id of a line for people, without the key of the root: equal words on two lines of a
/// log have one id and one decision.
fn line_id(stem: &Stem, text: &str) -> String {
    ContentHash::of(format!("{stem} {}", text.trim())).hex8()
}
