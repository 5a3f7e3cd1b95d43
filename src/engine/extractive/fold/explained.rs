//! Why a week or a month says what it says.

use std::collections::HashSet;

use crate::engine::FoldInput;

use super::{
    super::{
        explain::{Choice, Explanation, Namer, Why},
        render,
    },
    Fold,
};

/// So many of those that were left out first are told of, and so many that repeat others.
const LEFT_OUT_TOLD: usize = 20;

/// Tells why a week or a month says what it says: what could be chosen, what it is worth, and where the
/// choice ended.
pub(in super::super) fn explain(input: &FoldInput<'_>) -> Explanation {
    let fold = Fold::new(input);
    let material = &fold.material;
    let mut told = Explanation {
        period: input.period,
        whole: input.budget.whole,
        target_chars: fold.target(),
        chars: 0,
        units: material.units.len(),
        chosen: Vec::new(),
        left_out: Vec::new(),
    };
    if input.budget.whole {
        return told;
    }
    let ranking = fold.rank();
    let section_of = fold.section_rule(&ranking.order, &ranking.worth);
    let order = fold.choose(&ranking, &section_of);
    told.chars = render::body_chars(input.period, &fold.print(&ranking, &order, &section_of));
    let mut namer = Namer::default();
    let mut tell = |unit: usize, why: Why| {
        let found = &material.units[unit];
        let (page, statement) = fold.statement(found.at);
        let piece = statement.pieces[found.at.piece];
        let words = &statement.text[piece.start..piece.end];
        let label = &statement.text[..statement.label];
        let line = statement.lines_of(piece.start, piece.end).next().unwrap_or_default();
        Choice {
            address: page.address(line),
            section: section_of(unit).title(),
            text: format!("{label}{words}"),
            chars: found.chars,
            value: 100.0 * ranking.worth.get(&unit).copied().unwrap_or(0.0),
            why,
            weighs_most: namer.heaviest(material, input.counts, (page, words)),
        }
    };
    told.chosen = order.iter().map(|&unit| tell(unit, Why::Chosen)).collect();
    let taken: HashSet<usize> = order.iter().copied().collect();
    let last = ranking.order.iter().rposition(|it| taken.contains(it)).unwrap_or(0);
    for (rank, &unit) in ranking.order.iter().enumerate() {
        if told.left_out.len() == LEFT_OUT_TOLD {
            break;
        }
        if !taken.contains(&unit) {
            let why = if rank < last { Why::DidNotFit } else { Why::WorthLess };
            told.left_out.push(tell(unit, why));
        }
    }
    let repeats = ranking.repeats.iter().take(LEFT_OUT_TOLD);
    told.left_out.extend(repeats.map(|&unit| tell(unit, Why::Repeats)));
    told
}
