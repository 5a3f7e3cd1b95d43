//! Explains the selection for a week or a month.

use std::collections::HashSet;

use crate::{engine::SummaryInput, memory::period::Grain, text::stems::StemCache};

use super::{
    super::{
        explain::{ExplainedUnit, SelectionOutcome, SummaryExplanation, heaviest_terms},
        render,
    },
    SummaryBuilder, month,
};

/// The most left-out units that are listed, and the most repeating ones.
const OMITTED_SHOWN_MAX: usize = 20;

/// Explains the selection for a week or a month: the candidates, their values, and where it ended.
pub(in super::super) fn explain(input: &SummaryInput<'_>) -> SummaryExplanation {
    if input.period.grain() == Grain::Month && !input.budget.verbatim {
        return month::explain_month(input);
    }
    let builder = SummaryBuilder::new(input);
    let material = &builder.material;
    let mut explanation = SummaryExplanation {
        period: input.period,
        whole: input.budget.verbatim,
        target_chars: builder.target(),
        chars: 0,
        units: material.units.len(),
        chosen: Vec::new(),
        left_out: Vec::new(),
    };
    if input.budget.verbatim {
        return explanation;
    }
    let ranking = builder.rank();
    let section_of = builder.section_rule(&ranking.order);
    let order = builder.choose_units(&ranking, &section_of);
    let sections = builder.render(&ranking, &order, &section_of);
    explanation.chars = render::body_chars(input.period, &sections);
    let mut stems = StemCache::default();
    let mut explain_unit = |unit: usize, why: SelectionOutcome| {
        let found = &material.units[unit];
        let (page, statement) = builder.statement(found.at);
        let piece = statement.pieces[found.at.piece];
        let words = statement.piece_text(found.at.piece);
        let label = statement.label_text();
        let line = statement.lines_of(piece.start, piece.end).next().unwrap_or_default();
        ExplainedUnit {
            address: page.address(line),
            section: section_of(unit).title(),
            text: format!("{label}{words}"),
            chars: found.chars,
            value: 100.0 * ranking.values.get(&unit).copied().unwrap_or(0.0),
            why,
            weighs_most: heaviest_terms(&mut stems, material, input.counts, (page, words)),
        }
    };
    let chosen = order.iter().map(|&unit| explain_unit(unit, SelectionOutcome::Chosen));
    explanation.chosen = chosen.collect();
    let chosen: HashSet<usize> = order.iter().copied().collect();
    let last = ranking.order.iter().rposition(|it| chosen.contains(it)).unwrap_or(0);
    for (rank, &unit) in ranking.order.iter().enumerate() {
        if explanation.left_out.len() == OMITTED_SHOWN_MAX {
            break;
        }
        if !chosen.contains(&unit) {
            let why =
                if rank < last { SelectionOutcome::DidNotFit } else { SelectionOutcome::WorthLess };
            explanation.left_out.push(explain_unit(unit, why));
        }
    }
    let repeats = ranking.repeats.iter().take(OMITTED_SHOWN_MAX);
    let repeats = repeats.map(|&unit| explain_unit(unit, SelectionOutcome::Repeats));
    explanation.left_out.extend(repeats);
    explanation
}
