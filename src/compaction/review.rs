//! What waits for a person, and what comes of their word.
//!
//! Two kinds of things wait: lines of logs that the served view holds back, and changes of
//! `WISDOM.md` where a person wants to see each before it is made. What is said of a line is a
//! decision, and makes another input of its log, so that the next pass makes what rests on it again;
//! what is said of a change is done at once, and is a decision too: without it the change would be
//! proposed again when the database is lost. A line is known by the hash that decisions know it by,
//! a change by its number, and to decisions by the hash of what it would write.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    Compactor, JobError, PassError, View,
    commit::{NewFile, Recorded},
    lasting::Edit,
    records,
};
use crate::{
    engine::WisdomOp,
    memory::{
        address::{Address, Citation, Stem},
        decision::{Decision, Decisions, Verdict, What},
        hash::ContentHash,
        log::{DailyLog, Origin},
        period::Period,
        wisdom::{WisdomCaps, WisdomEntry, WisdomFile},
    },
    privacy,
    store::{
        inventory::Inventory,
        lineage::{
            Lineage, LineageError,
            record::{Commit, LogRecord},
            review::{HeldWhat, NewProposal, Proposal, ProposalState},
        },
        vault::{Vault, VaultError},
    },
};

/// A change of `WISDOM.md`, as it is kept until a person has seen it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Change {
    /// A new entry.
    Add {
        /// Its heading.
        title: String,
        /// What it says.
        text: String,
        /// Under which heading it would stand.
        category: Option<String>,
        /// Why it is worth keeping.
        reason: String,
    },
    /// An entry that was said again or got richer.
    Merge {
        /// The entry.
        id: String,
        /// Heading and text, where they change.
        words: Option<(String, String)>,
        /// Why.
        reason: String,
    },
    /// An entry that nothing carries any more.
    Drop {
        /// The entry.
        id: String,
        /// Why.
        reason: String,
    },
}

/// A line of a log that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLine {
    /// What it is called: the beginning of the keyed hash of its words and the name of its log.
    pub id: String,
    /// Where it stands.
    pub address: Address,
    /// Its log, relative to the root.
    pub path: String,
    /// The line as it stands, with secrets marked.
    pub text: String,
    /// Whose words it is.
    pub origin: Origin,
    /// Why it is held, by the names of concerns.
    pub why: Vec<String>,
    /// Whether the line itself is kept out, or only what would rest on it alone.
    pub what: HeldWhat,
    /// What was said of it; `None` while it waits.
    pub verdict: Option<Verdict>,
}

/// A change that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// What it is called.
    pub id: String,
    /// The row.
    pub row: Proposal,
    /// What would be done.
    pub change: Change,
    /// The entry that it is about, as it stands.
    pub entry: Option<WisdomEntry>,
}

/// All that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Lines, by log and number.
    pub lines: Vec<HeldLine>,
    /// Changes, oldest first.
    pub changes: Vec<Proposed>,
}

/// Why a change cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// What it rests on is no longer there or says something else.
    #[error(
        "{id} cannot be made: its source lines say it no longer; refuse it, or write the entry yourself"
    )]
    Stale {
        /// The change.
        id: String,
    },
    /// The file cannot be read or was changed meanwhile.
    #[error("{0}")]
    File(String),
    /// What ends any work.
    #[error(transparent)]
    Pass(#[from] PassError),
}

impl From<LineageError> for ReviewError {
    fn from(error: LineageError) -> Self {
        Self::Pass(error.into())
    }
}

impl From<VaultError> for ReviewError {
    fn from(error: VaultError) -> Self {
        Self::Pass(error.into())
    }
}

impl Change {
    /// Returns the words by which decisions know it, as they know a line by its own: what would be
    /// written, not why. What only says an entry again is another change where other lines say it.
    fn key(&self, sources: &str) -> String {
        match self {
            Self::Add { title, text, .. } => format!("add {title}: {text}"),
            Self::Merge { id, words: Some((title, text)), .. } => {
                format!("merge {id} {title}: {text}")
            }
            Self::Merge { id, words: None, .. } => format!("merge {id} {sources}"),
            Self::Drop { id, .. } => format!("drop {id}"),
        }
    }
}

/// Returns what an edit of `WISDOM.md` would have done, as changes to be proposed; without those that
/// a person has decided about before.
pub(super) fn changes_of(
    ops: &[WisdomOp],
    dropped: &[String],
    target: &str,
    decisions: &Decisions,
) -> Vec<NewProposal> {
    let new = |change: &Change, sources: String| {
        let is_settled = decisions.reviewed(target, &change.key(&sources)).is_some();
        (!is_settled).then(|| NewProposal {
            target: target.to_owned(),
            change: serde_json::json!(change).to_string(),
            sources,
        })
    };
    let of_op = |op: &WisdomOp| match op.clone() {
        WisdomOp::Add { title, text, category, reason, citation } => {
            new(&Change::Add { title, text, category, reason }, citation.to_string())
        }
        WisdomOp::Merge { id, words, reason, citation } => {
            new(&Change::Merge { id, words, reason }, citation.to_string())
        }
        WisdomOp::Drop { id, reason } => new(&Change::Drop { id, reason }, String::new()),
    };
    let gone = |id: &String| {
        let reason = "its source changed".to_owned();
        new(&Change::Drop { id: id.clone(), reason }, String::new())
    };
    ops.iter().map(of_op).chain(dropped.iter().map(gone)).flatten().collect()
}

/// Returns all that waits for a person, and with `decided` what they have said of lines before.
///
/// The logs are read in which something was held when they were last read, and those that were not
/// read since they were changed.
///
/// # Errors
///
/// Returns why files or the database cannot be read.
pub fn waiting(
    vault: &Vault,
    lineage: Option<&Lineage>,
    inventory: &Inventory,
    decided: bool,
) -> Result<Waiting, PassError> {
    let held = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::held)?;
    let known = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::logs)?;
    let mut waiting = Waiting::default();
    let marked: BTreeSet<&Stem> = held.keys().map(|it| &it.stem).collect();
    for (stem, file) in &inventory.logs {
        let is_known = known.get(stem).is_some_and(|it| it.hash == file.hash);
        if is_known && !decided && !marked.contains(stem) {
            continue;
        }
        let Some(log) = vault.read_log(stem)? else { continue };
        let served = privacy::serve(&log, &inventory.rules);
        let raw = log.lines();
        for (line, (_, text, _)) in served.lines().iter().zip(raw) {
            let address = served.address(line);
            let alone = held.get(&address).filter(|it| it.0 == HeldWhat::Memory && is_known);
            let verdict = inventory.rules.reviewed(stem, text);
            if verdict.is_some() && !decided {
                continue;
            }
            let (what, why) = match (line.held(), alone, verdict) {
                (Some(it), ..) => {
                    (HeldWhat::Line, it.concerns.iter().map(|it| it.name().to_owned()).collect())
                }
                (None, Some((_, it)), _) => (HeldWhat::Memory, it.why.clone()),
                (None, None, Some(_)) => (HeldWhat::Line, Vec::new()),
                (None, None, None) => continue,
            };
            waiting.lines.push(HeldLine {
                id: line_id(stem, text),
                path: file.path.clone(),
                text: inventory.rules.shown(text).into_owned(),
                origin: line.origin(),
                why,
                what,
                verdict,
                address,
            });
        }
    }
    let wisdom = inventory.wisdom.as_deref().map(WisdomFile::parse);
    for row in lineage.map_or_else(|| Ok(Vec::new()), Lineage::proposals)? {
        // One of a newer memoird waits for it.
        let Ok(change) = serde_json::from_str::<Change>(&row.change) else { continue };
        let about = match &change {
            Change::Merge { id, .. } | Change::Drop { id, .. } => Some(id.as_str()),
            Change::Add { .. } => None,
        };
        let mut entries = wisdom.iter().flat_map(WisdomFile::entries);
        let entry = about.and_then(|id| entries.find(|it| it.id() == Some(id))).cloned();
        waiting.changes.push(Proposed { id: format!("w{}", row.id), row, change, entry });
    }
    Ok(waiting)
}

/// Names a line for people, without the key of the root: the same words on two lines of a log have
/// one name, and one decision.
fn line_id(stem: &Stem, text: &str) -> String {
    ContentHash::of(format!("{stem} {}", text.trim())).hex8()
}

impl Compactor<'_> {
    /// Writes down what a person said of lines; `None` takes back what they said before.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be written.
    pub fn review_lines(
        &mut self,
        lines: &[HeldLine],
        verdict: Option<Verdict>,
    ) -> Result<(), PassError> {
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        self.refuse_if_missing(false)?;
        self.recover(now)?;
        let decisions = self.new_decisions()?;
        let view = self.look(now)?;
        let mut made = Vec::new();
        let mut logs = BTreeMap::new();
        for line in lines {
            let stem = &line.address.stem;
            let Some(log) = self.vault.read_log(stem)? else { continue };
            let all = log.lines();
            let Some((_, text, _)) = all.iter().find(|it| it.0 == line.address.line) else {
                continue;
            };
            let what = match verdict {
                Some(Verdict::Accepted) => What::Accepted,
                Some(Verdict::Refused) => What::Refused,
                None => What::Restored,
            };
            let hashes = decisions.line_hash(text).into_iter().collect();
            made.push(Decision { at: now, what, path: stem.to_string(), hashes });
            logs.insert(stem.clone(), log);
        }
        self.append_decisions(&made)?;
        // What waits is told from the record, which is to say so at once.
        let view = if made.is_empty() { view } else { self.look(now)? };
        self.record_review(lines, &logs, &view, now)
    }

    fn record_review(
        &mut self,
        lines: &[HeldLine],
        logs: &BTreeMap<Stem, DailyLog>,
        view: &View,
        now: DateTime<Utc>,
    ) -> Result<(), PassError> {
        let addresses: Vec<Address> = lines.iter().map(|it| it.address.clone()).collect();
        self.lineage.settle_held(&addresses)?;
        let known = self.lineage.logs()?;
        let records: Vec<LogRecord> = logs
            .iter()
            .filter(|(stem, log)| known.get(*stem).is_some_and(|it| it.hash == log.hash))
            .map(|(stem, log)| {
                let served = privacy::serve(log, &view.inventory.rules);
                LogRecord::of(&served, self.vault.layout().source(stem))
            })
            .collect();
        self.lineage.commit(&Commit { logs: &records, at: now, ..Commit::default() })?;
        Ok(())
    }

    /// Makes changes of `WISDOM.md` that a person accepted, each as proposed or in their own words.
    /// It is a run, and `undo` takes it back.
    ///
    /// # Errors
    ///
    /// Returns why nothing was changed.
    pub fn accept_changes(
        &mut self,
        changes: &[(Proposed, Option<(String, String)>)],
    ) -> Result<(), ReviewError> {
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        self.notice_alone(TRIGGER, now)?;
        let view = self.look(now)?;
        let path = self.vault.layout().wisdom();
        let standing = self.vault.read_text(&path)?;
        let mut file = match &standing {
            Some(text) => WisdomFile::parse(text),
            None => WisdomFile::new(&self.settings.agent_name),
        };
        for (proposed, own_words) in changes {
            self.make_change(&mut file, proposed, own_words.as_ref(), &view)?;
        }
        let months: BTreeSet<Period> = changes.iter().map(|it| it.0.row.period).collect();
        let open = self.lineage.proposals()?;
        let is_made = |id: i64| changes.iter().any(|it| it.0.row.id == id);
        for month in months {
            // The last word on a month says that it is distilled.
            if !open.iter().any(|it| it.period == month && !is_made(it.id)) {
                file.add_distilled(month);
            }
        }
        let text = file.print();
        let recorded =
            Recorded { documents: vec![records::of_wisdom(&path, &text)], ..Recorded::default() };
        let new = NewFile { path: path.clone(), text: Some(text), standing };
        let mut run = None;
        let run = self.run(&mut run, TRIGGER, now)?;
        let written = self.write(Some(run), None, &[new], &recorded);
        if written.is_ok() {
            let settled = changes.iter().map(|(proposed, own_words)| {
                // In its place stand the words of the person.
                let what = if own_words.is_some() { What::Refused } else { What::Accepted };
                (proposed, what, ProposalState::Accepted)
            });
            self.settle_changes(&settled.collect::<Vec<_>>(), now)?;
        }
        self.end_run(run)?;
        match written {
            Ok(()) => Ok(()),
            Err(JobError::Critical(error)) => Err(error.into()),
            Err(error) => Err(ReviewError::File(error.to_string())),
        }
    }

    /// Writes down that changes are not to be made.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be written.
    pub fn refuse_changes(&mut self, changes: &[Proposed]) -> Result<(), PassError> {
        if changes.is_empty() {
            return Ok(());
        }
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        self.refuse_if_missing(false)?;
        self.recover(now)?;
        let settled = changes.iter().map(|it| (it, What::Refused, ProposalState::Refused));
        self.settle_changes(&settled.collect::<Vec<_>>(), now)
    }

    /// Writes down what was said of changes, so that it holds without the database too.
    fn settle_changes(
        &mut self,
        changes: &[(&Proposed, What, ProposalState)],
        now: DateTime<Utc>,
    ) -> Result<(), PassError> {
        let decisions = self.new_decisions()?;
        let made: Vec<Decision> = changes
            .iter()
            .map(|(Proposed { row, change, .. }, what, _)| {
                let hashes = decisions.line_hash(&change.key(&row.sources)).into_iter().collect();
                Decision { at: now, what: *what, path: row.target.clone(), hashes }
            })
            .collect();
        self.append_decisions(&made)?;
        for (proposed, _, state) in changes {
            self.lineage.settle_proposal(proposed.row.id, *state)?;
        }
        Ok(())
    }

    fn make_change(
        &self,
        file: &mut WisdomFile,
        proposed: &Proposed,
        own_words: Option<&(String, String)>,
        view: &View,
    ) -> Result<(), ReviewError> {
        let stale = || ReviewError::Stale { id: proposed.id.clone() };
        if let Some((title, text)) = own_words {
            if let Change::Merge { id, .. } | Change::Drop { id, .. } = &proposed.change {
                file.drop_entry(id);
            }
            file.add_own(title, text);
            return Ok(());
        }
        let citation = proposed.row.sources.parse::<Citation>().ok();
        let op = match (proposed.change.clone(), citation) {
            (Change::Drop { id, .. }, _) => {
                return if file.drop_entry(&id) { Ok(()) } else { Err(stale()) };
            }
            (Change::Add { title, text, category, reason }, Some(citation)) => {
                WisdomOp::Add { title, text, category, reason, citation }
            }
            (Change::Merge { id, words, reason }, Some(citation)) => {
                WisdomOp::Merge { id, words, reason, citation }
            }
            (_, None) => return Err(stale()),
        };
        let (WisdomOp::Add { citation, .. } | WisdomOp::Merge { citation, .. }) = &op else {
            return Err(stale());
        };
        let mut logs = Vec::new();
        for (stem, _) in citation.files() {
            let log = if stem.is_summary() {
                let path = self.vault.layout().source(stem);
                let text = self.vault.read_text(&path)?.ok_or_else(stale)?;
                DailyLog::parse(stem.clone(), text.as_bytes()).map_err(|_| stale())?
            } else {
                self.vault.read_log(stem)?.ok_or_else(stale)?
            };
            logs.push(privacy::serve(&log, &view.inventory.rules));
        }
        logs.sort_by(|a, b| a.stem().cmp(b.stem()));
        let wisdom = &self.settings.settings.wisdom;
        let caps = WisdomCaps { entries: wisdom.max_entries, chars: wisdom.max_chars };
        let edit = Edit {
            late: false,
            logs: &logs,
            memories: &view.inventory.memories,
            is_deleted: &|_| false,
            shaken: &[],
        };
        let done = edit.apply(file, &[op], caps);
        if done.changed == 0 {
            return Err(stale());
        }
        if let Some(date) = done.newest {
            file.set_compacted(date);
        }
        Ok(())
    }
}

/// What began the run.
const TRIGGER: &str = "review";
