//! Why a week or a month says what it says.

use std::collections::HashSet;

use crate::engine::SummaryInput;

use super::{
    super::{
        explain::{ExplainedUnit, SelectionOutcome, SummaryExplanation, TermNamer},
        render,
    },
    SummaryBuilder,
};

/// So many of those that were left out first are told of, and so many that repeat others.
const OMITTED_SHOWN_MAX: usize = 20;

/// Tells why a week or a month says what it says: what could be chosen, what it is worth, and where the
/// choice ended.
pub(in super::super) fn explain(input: &SummaryInput<'_>) -> SummaryExplanation {
    let fold = SummaryBuilder::new(input);
    let material = &fold.material;
    let mut told = SummaryExplanation {
        period: input.period,
        whole: input.budget.verbatim,
        target_chars: fold.target(),
        chars: 0,
        units: material.units.len(),
        chosen: Vec::new(),
        left_out: Vec::new(),
    };
    if input.budget.verbatim {
        return told;
    }
    let ranking = fold.rank();
    let section_of = fold.section_rule(&ranking.order, &ranking.values);
    let order = fold.choose_units(&ranking, &section_of);
    told.chars = render::body_chars(input.period, &fold.render(&ranking, &order, &section_of));
    let mut namer = TermNamer::default();
    let mut tell = |unit: usize, why: SelectionOutcome| {
        let found = &material.units[unit];
        let (page, statement) = fold.statement(found.at);
        let piece = statement.pieces[found.at.piece];
        let words = &statement.text[piece.start..piece.end];
        let label = &statement.text[..statement.label];
        let line = statement.lines_of(piece.start, piece.end).next().unwrap_or_default();
        ExplainedUnit {
            address: page.address(line),
            section: section_of(unit).title(),
            text: format!("{label}{words}"),
            chars: found.chars,
            value: 100.0 * ranking.values.get(&unit).copied().unwrap_or(0.0),
            why,
            weighs_most: namer.heaviest_terms(material, input.counts, (page, words)),
        }
    };
    told.chosen = order.iter().map(|&unit| tell(unit, SelectionOutcome::Chosen)).collect();
    let taken: HashSet<usize> = order.iter().copied().collect();
    let last = ranking.order.iter().rposition(|it| taken.contains(it)).unwrap_or(0);
    for (rank, &unit) in ranking.order.iter().enumerate() {
        if told.left_out.len() == OMITTED_SHOWN_MAX {
            break;
        }
        if !taken.contains(&unit) {
            let why =
                if rank < last { SelectionOutcome::DidNotFit } else { SelectionOutcome::WorthLess };
            told.left_out.push(tell(unit, why));
        }
    }
    let repeats = ranking.repeats.iter().take(OMITTED_SHOWN_MAX);
    told.left_out.extend(repeats.map(|&unit| tell(unit, SelectionOutcome::Repeats)));
    told
}
