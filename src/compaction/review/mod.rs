//! What waits for a person, and what comes of their word.
//!
//! Two kinds of things wait, and [`waiting`] lists both:
//!
//! - [`lines`]: lines of logs that the served view holds back. What is said of one is a decision, and
//!   makes another input of its log, so that the next pass makes what rests on it again.
//! - [`wisdom`]: changes of `WISDOM.md`, where a person wants to see each before it is made. What is
//!   said of one is done at once, and is a decision too: without it the change would be proposed
//!   again when the database is lost.
//!
//! A line is known by the hash that decisions know it by, a change by its number, and to decisions by
//! the hash of what it would write.

mod lines;
mod wisdom;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use self::wisdom::changes_of;
pub use self::wisdom::{Change, ReviewError};
use super::PassError;
use crate::{
    memory::{
        address::{Address, Stem},
        decision::Verdict,
        hash::ContentHash,
        log::Origin,
        wisdom::{WisdomEntry, WisdomFile},
    },
    privacy,
    store::{
        inventory::Inventory,
        lineage::{
            Lineage,
            review::{HeldWhat, Proposal},
        },
        vault::Vault,
    },
};

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
        // A secret may begin in a line above, so each line is seen as part of its log.
        let seen = inventory.rules.shown_lines(log.raw());
        for (line, (number, text, _)) in served.lines().iter().zip(raw) {
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
                text: line_of(&seen, number, text).to_owned(),
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

/// Returns a line of a log as it was seen, without its line end; as long as the raw one stands there.
fn line_of<'a>(seen: &'a [String], number: u32, raw: &str) -> &'a str {
    let at = usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
    let line = seen.get(at).map_or("", |it| it.trim_end_matches('\r'));
    // The mark at the start of a file belongs to no line.
    if raw.starts_with('\u{feff}') { line } else { line.trim_start_matches('\u{feff}') }
}

/// Names a line for people, without the key of the root: the same words on two lines of a log have
/// one name, and one decision.
fn line_id(stem: &Stem, text: &str) -> String {
    ContentHash::of(format!("{stem} {}", text.trim())).hex8()
}
