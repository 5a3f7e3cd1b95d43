//! Drafts a month from the bullets of its weeks: topic by topic, each from its first to its last state.
//!
//! - [`sources`]: the bullets of the weeks with the pieces of log lines in them, and bullets that people wrote.
//! - [`bullets`]: what each bullet is about, of what kind it is, and what it is worth.
//! - [`choice`]: which bullets are in the month, and where.
//!
//! # Invariants
//!
//! - The text of a bullet is that of the week, but for the notes that later weeks add ([`annotations`]).
//! - `Themes` holds the topics of the month, the one with most days and lines first, each in the order of days;
//!   then what is about something else.

mod bullets;
mod choice;
pub(super) mod sources;

use std::collections::HashSet;

use self::{
    bullets::{MonthBullet, rate_bullets},
    choice::{BulletOutcome, MonthChoice},
    sources::{WeekBullets, read_week_bullets, user_bullets},
};
use super::{class_of_section, cut_to_fit, insert_item, keep_items, omissions};
use crate::{
    engine::{
        EngineDraft, SummaryInput,
        extractive::{
            annotations,
            candidates::{self, CandidateSet, PiecePosition},
            explain::{ExplainedUnit, SelectionOutcome, SummaryExplanation, heaviest_terms},
            parsed_log::{self, ParsedLog},
            render,
            sections::StatementClass,
        },
    },
    memory::{
        address::Citation,
        item::{Item, SummarySection},
        statement::StatementKind,
    },
    text::stems::StemCache,
};

/// Drafts a month.
pub(super) fn draft_month(input: &SummaryInput<'_>) -> EngineDraft {
    let month = MonthSources::read(input);
    let choice = month.choose(input);
    let mut sections: Vec<(SummarySection, Vec<Item>)> = Vec::new();
    for (section, at) in choice.in_order() {
        let item = month.bullets[at].item.clone();
        match sections.last_mut().filter(|(last, _)| *last == section) {
            Some((_, items)) => items.push(item),
            None => sections.push((section, vec![item])),
        }
    }
    if sections.is_empty() && month.user_items.is_empty() && month.keep_items.is_empty() {
        let is_allowed = |at: PiecePosition| month.pieces.contains(&at);
        let best = month.material.units.first().map(|it| it.at);
        sections.extend(cut_to_fit(
            input,
            &month.material,
            SummarySection::Themes,
            best,
            is_allowed,
        ));
    }
    for (section, item) in month.user_items.iter().chain(&month.keep_items) {
        insert_item(&mut sections, *section, item.clone());
    }
    let repeats =
        (0..month.bullets.len()).filter(|it| choice.outcomes[*it] == BulletOutcome::Repeats);
    let repeats: Vec<usize> = repeats.flat_map(|it| month.units_of[it].iter().copied()).collect();
    let omitted = omissions(&month.material, &sections, &repeats, true);
    EngineDraft { sections, omitted, ..EngineDraft::default() }
}

/// Explains the choice for a month.
pub(super) fn explain_month(input: &SummaryInput<'_>) -> SummaryExplanation {
    /// The most bullets left out that are listed, and the most repeating ones.
    const OMITTED_SHOWN_MAX: usize = 20;
    let month = MonthSources::read(input);
    let choice = month.choose(input);
    let mut stems = StemCache::default();
    let mut explained: Vec<(BulletOutcome, ExplainedUnit)> = Vec::new();
    for (at, bullet) in month.bullets.iter().enumerate() {
        let address = bullet.item.citation.as_ref().and_then(|it| it.addresses().next());
        let (Some(address), Some(unit)) = (address, month.units_of[at].first()) else { continue };
        let (page, _) = month.material.units[*unit].at.statement_in(&month.material.pages);
        let outcome = choice.outcomes[at];
        let unit = ExplainedUnit {
            address,
            section: choice.section_of(at).title(),
            text: bullet.item.text.clone(),
            chars: bullet.chars,
            value: 100.0 * choice.values[at],
            why: match outcome {
                BulletOutcome::Chosen(_) => SelectionOutcome::Chosen,
                BulletOutcome::Repeats => SelectionOutcome::Repeats,
                BulletOutcome::NoRoom => SelectionOutcome::DidNotFit,
                BulletOutcome::WorthLess => SelectionOutcome::WorthLess,
            },
            weighs_most: heaviest_terms(
                &mut stems,
                &month.material,
                input.counts,
                (page, &bullet.item.text),
            ),
        };
        explained.push((outcome, unit));
    }
    explained.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    let is_chosen = |it: &(BulletOutcome, ExplainedUnit)| matches!(it.0, BulletOutcome::Chosen(_));
    let chars = explained.iter().filter(|it| is_chosen(it)).map(|it| it.1.chars + 3).sum();
    let units = explained.len();
    let (chosen, left_out): (Vec<_>, Vec<_>) = explained.into_iter().partition(is_chosen);
    let (repeats, others): (Vec<_>, Vec<_>) =
        left_out.into_iter().partition(|it| it.0 == BulletOutcome::Repeats);
    let shown = |all: Vec<(BulletOutcome, ExplainedUnit)>| {
        all.into_iter().map(|it| it.1).take(OMITTED_SHOWN_MAX)
    };
    SummaryExplanation {
        period: input.period,
        whole: false,
        target_chars: input.budget.target_chars.min(input.budget.limit_chars),
        chars,
        units,
        chosen: chosen.into_iter().map(|it| it.1).collect(),
        left_out: shown(others).chain(shown(repeats)).collect(),
    }
}

struct MonthSources {
    material: CandidateSet,
    /// The pieces of log lines in bullets.
    pieces: HashSet<PiecePosition>,
    bullets: Vec<MonthBullet>,
    /// The units in each bullet.
    units_of: Vec<Vec<usize>>,
    keep_items: Vec<(SummarySection, Item)>,
    /// The bullets that a person wrote or changed.
    user_items: Vec<(SummarySection, Item)>,
}

impl MonthSources {
    fn read(input: &SummaryInput<'_>) -> Self {
        let read = |log| parsed_log::parse_with_language(log, |page| input.counts.language(page));
        let mut pages: Vec<ParsedLog> = input.logs.iter().map(read).collect();
        let own = user_bullets(input);
        let weeks = read_week_bullets(&mut pages, input, &own);
        let keep_items = keep_items(&pages, input);
        let mut material = candidates::collect_candidates(pages, input.counts, |_, at| {
            weeks.of_piece.contains_key(&at)
        });
        let bullet_of = |at: PiecePosition| weeks.of_piece.get(&at).copied();
        let class_of = |at| {
            let section = bullet_of(at).map(|it| weeks.all[it].section);
            section.map_or(StatementClass::Context, class_of_section)
        };
        let classes: Vec<StatementClass> =
            material.units.iter().map(|unit| class_of(unit.at)).collect();
        annotations::annotate(&mut material, &classes, |_| false);
        let log_pages = &material.pages[..input.logs.len()];
        let mut bullets = rate_bullets(log_pages, &weeks.all);
        let mut units_of = vec![Vec::new(); bullets.len()];
        for (unit, found) in material.units.iter().enumerate() {
            if let Some(bullet) = bullet_of(found.at) {
                units_of[bullet].push(unit);
            }
        }
        add_notes(&mut bullets, &material, &units_of);
        let WeekBullets { of_piece, .. } = weeks;
        let pieces = of_piece.into_keys().collect();
        Self { material, pieces, bullets, units_of, keep_items, user_items: own.items }
    }

    fn choose(&self, input: &SummaryInput<'_>) -> MonthChoice<'_> {
        let of_user = self.user_items.iter();
        let pinned: Vec<_> =
            of_user.map(|(section, it)| (*section, render::bullet_chars(&it.text))).collect();
        let mut choice =
            MonthChoice::new(input.period, &self.bullets, &self.material, &self.units_of, &pinned);
        choice.run(input.budget.target_chars.min(input.budget.limit_chars));
        if choice.in_order().is_empty() && pinned.is_empty() {
            choice.choose_any(input.budget.limit_chars);
        }
        choice
    }
}

/// Adds the notes on units to the words of bullets: what was open and was done in a later week.
fn add_notes(bullets: &mut [MonthBullet], material: &CandidateSet, units_of: &[Vec<usize>]) {
    for (bullet, units) in bullets.iter_mut().zip(units_of) {
        for unit in units.iter().map(|it| &material.units[*it]) {
            let (_, statement) = unit.at.statement_in(&material.pages);
            let piece = statement.pieces[unit.at.piece];
            let words = statement.piece_text(unit.at.piece);
            // The last one first, so that the places of the others stay.
            let Some(start) = bullet.item.text.find(words) else { continue };
            for note in unit.annotations.iter().rev() {
                let text = &bullet.item.text;
                let at = start + note.offset - piece.start;
                let added = format!(" {}", note.text);
                if text[at..].starts_with(&added) {
                    continue;
                }
                bullet.item.text.insert_str(at, &added);
                bullet.is_resolved |=
                    bullet.kind == StatementKind::Open && !note.citations.is_empty();
                if let (Some(citation), Some(more)) =
                    (&mut bullet.item.citation, Citation::from_addresses(&note.citations))
                {
                    citation.merge(&more);
                }
            }
        }
        bullet.chars = bullet.item.text.chars().count();
    }
}

#[cfg(test)]
mod tests;
