//! Items that the check kept out. Each is told with its lines, the reason, and the run.
//!
//! No word of a person makes true what the cited lines do not say, so such an item is only told. One
//! that says what its lines say, and looks like an attack only as a whole, may be let pass: its words
//! are decided about under the names of what the file is made of, which makes another input of that, so
//! that the next pass makes the file again and lets it stand. A model says it in other words each time,
//! so that what it drafted is only told, too.

use chrono::{DateTime, Utc};

use super::{Proposed, changes::Change};
use crate::{
    compaction::{Compactor, PassError},
    engine::{Engine, Unread},
    memory::{
        address::{Citation, Stem},
        decision::{Decision, Decisions, Verdict, What},
        item::Item,
        period::{Grain, Period},
    },
    privacy::{self, Rules},
    store::lineage::review::{NewProposal, Proposal, ProposalState},
};

/// An item that the check kept out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::compaction) struct KeptOut {
    /// What it says.
    pub(in crate::compaction) text: String,
    /// The lines that it cites.
    pub(in crate::compaction) citation: Option<Citation>,
    /// Why.
    pub(in crate::compaction) why: String,
    /// Whether it looks like an attack.
    pub(in crate::compaction) looks_ill: bool,
    /// Whether nothing else speaks against it, and a person may let it pass.
    pub(in crate::compaction) passes: bool,
}

/// The longest part of a reply that is kept for a person to read, in characters.
const SAID_CHARS_MAX: usize = 2000;

/// Returns a part of a reply that is no memory as what was kept out: as it came.
pub(in crate::compaction) fn unread(unread: Unread) -> KeptOut {
    let Unread { said, why, citation } = unread;
    let text = said.chars().take(SAID_CHARS_MAX).collect();
    KeptOut { text, citation, why, looks_ill: false, passes: false }
}

/// Returns what of it a person is told: what a model drafted, and what looks like an attack. The built-in
/// engine says again what its lines say, and what else is kept out of its drafts are slips of its own.
pub(in crate::compaction) fn told(
    kept_out: &[KeptOut],
    target: &str,
    engine: &dyn Engine,
    decisions: &Decisions,
    rules: &Rules,
) -> Vec<NewProposal> {
    let mut told: Vec<NewProposal> = Vec::new();
    for KeptOut { text, citation, why, looks_ill, passes } in kept_out {
        if !looks_ill && !engine.is_model() {
            continue;
        }
        let change = Change::Item {
            text: rules.shown(text).into_owned(),
            reason: rules.shown(why).into_owned(),
            engine: engine.id().to_owned(),
            passes: *passes && !engine.is_model(),
        };
        let sources = citation.as_ref().map(Citation::to_string).unwrap_or_default();
        if decisions.reviewed(target, &change.key(&sources)) == Some(Verdict::Refused) {
            continue;
        }
        let new = change.as_row(target, sources);
        if !told.contains(&new) {
            told.push(new);
        }
    }
    told
}

/// Says in a receipt what was kept out: which lines it rests on, and why; no words of it, which may be
/// those of an attack.
pub(in crate::compaction) fn note(kept_out: &[KeptOut]) -> Option<String> {
    /// More than these are only counted.
    const TOLD_MAX: usize = 3;
    let one = |it: &KeptOut| {
        let cited = it.citation.as_ref().map_or("no line".to_owned(), Citation::to_string);
        // What is quoted in it are words of the item.
        let quoted = it.why.find('`').zip(it.why.rfind('`'));
        let why = quoted.map(|(from, to)| format!("{}`…`{}", &it.why[..from], &it.why[to + 1..]));
        format!("{cited} ({})", why.as_deref().unwrap_or(&it.why))
    };
    let mut told: Vec<String> = kept_out.iter().take(TOLD_MAX).map(one).collect();
    if kept_out.len() > TOLD_MAX {
        told.push(format!("{} more", kept_out.len() - TOLD_MAX));
    }
    (!told.is_empty()).then(|| format!("kept out: {}", told.join(", ")))
}

/// Returns whether a person let the words of an item pass.
pub(in crate::compaction) fn may_pass(item: &Item, rules: &Rules) -> bool {
    let is_accepted = |stem: &Stem| rules.reviewed(stem, &item.text) == Some(Verdict::Accepted);
    item.citation.as_ref().is_some_and(|it| {
        it.files()
            .all(|(stem, _)| is_accepted(stem) || week_of(stem).is_some_and(|it| is_accepted(&it)))
    })
}

/// Returns the names of what the file of a period is made of, as far as these lines stand there.
fn inputs_of(period: Period, sources: &str) -> Vec<Stem> {
    let Ok(citation) = sources.parse::<Citation>() else { return Vec::new() };
    let name = |stem: &Stem| match period.grain() {
        Grain::Month => week_of(stem).unwrap_or_else(|| stem.clone()),
        Grain::Day | Grain::Week => stem.clone(),
    };
    let mut names: Vec<Stem> = citation.files().map(|(stem, _)| name(stem)).collect();
    names.sort();
    names.dedup();
    names
}

fn week_of(log: &Stem) -> Option<Stem> {
    if log.is_summary() {
        return None;
    }
    Stem::of_summary(Period::containing(Grain::Week, log.date()))
}

/// Returns what is decided about the words of an item, besides that it is decided about.
pub(super) fn decisions_of(
    row: &Proposal,
    change: &Change,
    what: What,
    decisions: &Decisions,
    at: DateTime<Utc>,
) -> Vec<Decision> {
    let Change::Item { text, passes: true, .. } = change else { return Vec::new() };
    if what == What::Refused {
        return Vec::new();
    }
    let names = inputs_of(row.period, &row.sources).into_iter();
    let decision = |name: Stem| {
        let hash = decisions.line_hash(&privacy::words_decided(&name, text));
        Decision { at, what, path: name.to_string(), hashes: hash.into_iter().collect() }
    };
    names.map(decision).collect()
}

impl Compactor<'_> {
    /// Lets items pass that a person has read. The next pass makes their files again.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be written.
    pub fn accept_items(&mut self, items: &[Proposed]) -> Result<(), PassError> {
        self.say_of_all(items, What::Accepted, ProposalState::Accepted)
    }
}
