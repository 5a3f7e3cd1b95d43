//! Items that the checks kept out. Each is shown with its lines, the reason, and the run.
//!
//! No verdict can make true what the cited lines do not say, so such an item is only shown. An item
//! that says what its lines say and only looks like an attack can be accepted. The decision about
//! its words is recorded under the names of the file's sources, which changes the input hash of the
//! file, so that the next run writes it again with the item. A model words an item differently each
//! time, so what a model drafted is only shown, too.

use chrono::{DateTime, Utc};

use super::change::ProposedChange;
use crate::{
    engine::{Engine, UnreadableItem},
    memory::{
        address::{Citation, Stem},
        decision::{Decision, DecisionKind, Decisions, Verdict},
        item::Item,
        period::{Grain, Period},
    },
    privacy::{self, PrivacyRules},
    store::db::lineage::review::{NewProposal, Proposal},
};

/// An item that the checks kept out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExcludedItem {
    pub(crate) text: String,
    /// The lines that it cites.
    pub(crate) citation: Option<Citation>,
    /// Why it was kept out.
    pub(crate) reason: String,
    pub(crate) looks_like_attack: bool,
    /// Whether this is the only objection, so that a person may accept it.
    pub(crate) may_be_accepted: bool,
}

/// The most characters of an unreadable reply that are stored for a person to read.
const REPLY_CHARS_MAX: usize = 2000;

/// Turns an unreadable part of a reply into an excluded item.
pub(crate) fn exclude_unreadable(unread: UnreadableItem) -> ExcludedItem {
    let UnreadableItem { text, reason, citation } = unread;
    let text = text.chars().take(REPLY_CHARS_MAX).collect();
    ExcludedItem { text, citation, reason, looks_like_attack: false, may_be_accepted: false }
}

/// Returns the excluded items that a person is shown: what a model drafted, and what looks like an
/// attack. Other excluded drafts of the built-in engine are its own slips.
pub(crate) fn proposals_of_items(
    excluded: &[ExcludedItem],
    target: &str,
    engine: &dyn Engine,
    decisions: &Decisions,
    rules: &PrivacyRules,
) -> Vec<NewProposal> {
    let mut shown: Vec<NewProposal> = Vec::new();
    for ExcludedItem { text, citation, reason, looks_like_attack, may_be_accepted } in excluded {
        if !looks_like_attack && !engine.is_model() {
            continue;
        }
        let change = ProposedChange::Item {
            text: rules.mask_secrets(text).into_owned(),
            reason: rules.mask_secrets(reason).into_owned(),
            engine: engine.id().to_owned(),
            passes: *may_be_accepted && !engine.is_model(),
        };
        let sources = citation.as_ref().map(Citation::to_string).unwrap_or_default();
        if decisions.review_verdict(target, &change.decision_key(&sources))
            == Some(Verdict::Refused)
        {
            continue;
        }
        let new = change.to_row(target, sources);
        if !shown.contains(&new) {
            shown.push(new);
        }
    }
    shown
}

/// Describes excluded items for a receipt: cited lines and reasons, but not their words, which may
/// be those of an attack.
pub(crate) fn exclusion_note(excluded: &[ExcludedItem]) -> Option<String> {
    /// The most items that are described; more are counted.
    const DESCRIBED_MAX: usize = 3;
    let one = |it: &ExcludedItem| {
        let cited = it.citation.as_ref().map_or("no line".to_owned(), Citation::to_string);
        // Quoted parts are words of the item.
        let quoted = it.reason.find('`').zip(it.reason.rfind('`'));
        let why =
            quoted.map(|(from, to)| format!("{}`…`{}", &it.reason[..from], &it.reason[to + 1..]));
        format!("{cited} ({})", why.as_deref().unwrap_or(&it.reason))
    };
    let mut shown: Vec<String> = excluded.iter().take(DESCRIBED_MAX).map(one).collect();
    if excluded.len() > DESCRIBED_MAX {
        shown.push(format!("{} more", excluded.len() - DESCRIBED_MAX));
    }
    (!shown.is_empty()).then(|| format!("kept out: {}", shown.join(", ")))
}

/// Returns whether a person accepted the words of an item.
pub(crate) fn is_accepted(item: &Item, rules: &PrivacyRules) -> bool {
    let is_accepted =
        |stem: &Stem| rules.review_verdict(stem, &item.text) == Some(Verdict::Accepted);
    item.citation.as_ref().is_some_and(|it| {
        it.files()
            .all(|(stem, _)| is_accepted(stem) || week_of(stem).is_some_and(|it| is_accepted(&it)))
    })
}

/// Returns the names of the sources of the file of a period that contain these lines.
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

/// Returns the further decisions about the words of an item.
pub(crate) fn text_decisions(
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
        let hashes = decisions.line_hashes(&privacy::decision_text(&name, text)).collect();
        Decision { at, what, path: name.to_string(), hashes }
    };
    names.map(decision).collect()
}
