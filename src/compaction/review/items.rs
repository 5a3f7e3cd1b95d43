//! Items that the check kept out. Each is told with its lines, the reason, and the run.
//!
//! No word of a person makes true what the cited lines do not say, so such an item is only told. One
//! that says what its lines say, and looks like an attack only as a whole, may be let pass: its words
//! are decided about under the names of what the file is made of, which makes another input of that, so
//! that the next pass makes the file again and lets it stand. A model says it in other words each time,
//! so that what it drafted is only told, too.

use chrono::{DateTime, Utc};

use super::{ReviewProposal, file_changes::ProposedChange};
use crate::{
    compaction::{CompactionError, Compactor},
    engine::{Engine, UnreadableMemory},
    memory::{
        address::{Citation, Stem},
        decision::{Decision, DecisionKind, Decisions, Verdict},
        item::Item,
        period::{Grain, Period},
    },
    privacy::{self, PrivacyRules},
    store::db::lineage::review::{NewProposal, Proposal, ProposalState},
};

/// An item that the check kept out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExcludedItem {
    /// What it says.
    pub(in crate::compaction) text: String,
    /// The lines that it cites.
    pub(in crate::compaction) citation: Option<Citation>,
    /// Why.
    pub(in crate::compaction) reason: String,
    /// Whether it looks like an attack.
    pub(in crate::compaction) looks_like_attack: bool,
    /// Whether nothing else speaks against it, and a person may let it pass.
    pub(in crate::compaction) may_be_accepted: bool,
}

/// The longest part of a reply that is kept for a person to read, in characters.
const SAID_CHARS_MAX: usize = 2000;

/// Returns a part of a reply that is no memory as what was kept out: as it came.
pub(in crate::compaction) fn exclude_unreadable(unread: UnreadableMemory) -> ExcludedItem {
    let UnreadableMemory { text: said, reason: why, citation } = unread;
    let text = said.chars().take(SAID_CHARS_MAX).collect();
    ExcludedItem { text, citation, reason: why, looks_like_attack: false, may_be_accepted: false }
}

/// Returns what of it a person is told: what a model drafted, and what looks like an attack. The built-in
/// engine says again what its lines say, and what else is kept out of its drafts are slips of its own.
pub(in crate::compaction) fn proposals_of_items(
    kept_out: &[ExcludedItem],
    target: &str,
    engine: &dyn Engine,
    decisions: &Decisions,
    rules: &PrivacyRules,
) -> Vec<NewProposal> {
    let mut told: Vec<NewProposal> = Vec::new();
    for ExcludedItem {
        text,
        citation,
        reason: why,
        looks_like_attack: looks_ill,
        may_be_accepted: passes,
    } in kept_out
    {
        if !looks_ill && !engine.is_model() {
            continue;
        }
        let change = ProposedChange::Item {
            text: rules.mask_secrets(text).into_owned(),
            reason: rules.mask_secrets(why).into_owned(),
            engine: engine.id().to_owned(),
            passes: *passes && !engine.is_model(),
        };
        let sources = citation.as_ref().map(Citation::to_string).unwrap_or_default();
        if decisions.review_verdict(target, &change.decision_key(&sources))
            == Some(Verdict::Refused)
        {
            continue;
        }
        let new = change.to_row(target, sources);
        if !told.contains(&new) {
            told.push(new);
        }
    }
    told
}

/// Says in a receipt what was kept out: which lines it rests on, and why; no words of it, which may be
/// those of an attack.
pub(in crate::compaction) fn exclusion_note(kept_out: &[ExcludedItem]) -> Option<String> {
    /// More than these are only counted.
    const TOLD_MAX: usize = 3;
    let one = |it: &ExcludedItem| {
        let cited = it.citation.as_ref().map_or("no line".to_owned(), Citation::to_string);
        // What is quoted in it are words of the item.
        let quoted = it.reason.find('`').zip(it.reason.rfind('`'));
        let why =
            quoted.map(|(from, to)| format!("{}`…`{}", &it.reason[..from], &it.reason[to + 1..]));
        format!("{cited} ({})", why.as_deref().unwrap_or(&it.reason))
    };
    let mut told: Vec<String> = kept_out.iter().take(TOLD_MAX).map(one).collect();
    if kept_out.len() > TOLD_MAX {
        told.push(format!("{} more", kept_out.len() - TOLD_MAX));
    }
    (!told.is_empty()).then(|| format!("kept out: {}", told.join(", ")))
}

/// Returns whether a person let the words of an item pass.
pub(in crate::compaction) fn is_accepted(item: &Item, rules: &PrivacyRules) -> bool {
    let is_accepted =
        |stem: &Stem| rules.review_verdict(stem, &item.text) == Some(Verdict::Accepted);
    item.citation.as_ref().is_some_and(|it| {
        it.files()
            .all(|(stem, _)| is_accepted(stem) || week_of(stem).is_some_and(|it| is_accepted(&it)))
    })
}

/// Returns the names of what the file of a period is made of, as far as these lines stand there.
fn input_stems(period: Period, sources: &str) -> Vec<Stem> {
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
pub(super) fn text_decisions(
    row: &Proposal,
    change: &ProposedChange,
    what: DecisionKind,
    decisions: &Decisions,
    at: DateTime<Utc>,
) -> Vec<Decision> {
    let ProposedChange::Item { text, passes: true, .. } = change else { return Vec::new() };
    if what == DecisionKind::Refused {
        return Vec::new();
    }
    let names = input_stems(row.period, &row.sources).into_iter();
    let decision = |name: Stem| {
        let hash = decisions.line_hash(&privacy::decision_text(&name, text));
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
    pub fn accept_items(&mut self, items: &[ReviewProposal]) -> Result<(), CompactionError> {
        self.record_verdicts(items, DecisionKind::Accepted, ProposalState::Accepted)
    }
}
