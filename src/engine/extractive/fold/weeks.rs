//! What the weeks of a month kept: pieces of the log lines beneath, and bullets that people wrote.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    engine::{FoldInput, WeekSource},
    memory::{
        address::{Citation, Stem},
        item::{Item, Section},
    },
};

use super::{
    super::{
        gloss,
        material::PieceAt,
        page::{self, Page},
        render,
    },
    month_section,
};

/// What people wrote into the weeks of a month.
#[derive(Default)]
pub(super) struct Own {
    pub(super) items: Vec<(Section, Item)>,
    /// Week and bullet of each.
    places: BTreeSet<(usize, usize)>,
}

/// Finds the bullets that a person wrote or changed: they cite the weekly file itself. A month takes
/// them word for word, as far as they fit.
///
/// A file that is foreign as a whole is a source like any other.
pub(super) fn written_by_people(input: &FoldInput<'_>) -> Own {
    let cites_week = |item: &Item| {
        item.citation.iter().flat_map(Citation::files).any(|(stem, _)| stem.is_week())
    };
    let mut own = Own::default();
    let empty = render::body_chars(input.period, &[]);
    let mut chars = empty;
    let mut begun = BTreeSet::new();
    for (w, week) in input.weeks.iter().enumerate() {
        let foreign = |(_, item): &(Option<Section>, Item)| {
            item.citation.iter().flat_map(Citation::files).all(|(stem, _)| stem.is_week())
        };
        if week.items.iter().all(foreign) {
            continue;
        }
        let changed = week.items.iter().enumerate().filter(|(_, (_, item))| cites_week(item));
        for (i, (section, item)) in changed {
            let section = month_section(section.unwrap_or(Section::Context));
            let mut cost = render::bullet_chars(&item.text);
            if !begun.contains(&section) {
                cost += render::body_chars(input.period, &[(section, Vec::new())]) - empty;
            }
            if chars + cost <= input.budget.limit_chars {
                chars += cost;
                begun.insert(section);
                own.items.push((section, item.clone()));
                own.places.insert((w, i));
            }
        }
    }
    own
}

/// Finds the pieces that the weeks' bullets hold; bullets whose words stand in no cited line become
/// pages of their own.
pub(super) fn kept_by_weeks(
    pages: &mut Vec<Page>,
    weeks: &[WeekSource],
    own: &Own,
) -> BTreeMap<PieceAt, Section> {
    /// A bullet of which less is found in its lines was written by somebody.
    const FOUND_PERCENT: usize = 70;
    let mut at_line: HashMap<(&Stem, u32), Vec<(usize, usize)>> = HashMap::new();
    let mut head_at_line: HashMap<(&Stem, u32), usize> = HashMap::new();
    for (p, page) in pages.iter().enumerate() {
        for (s, statement) in page.statements.iter().enumerate() {
            for &(_, line) in &statement.lines {
                at_line.entry((&page.stem, line)).or_default().push((p, s));
            }
        }
        for head in &page.heads {
            head_at_line.insert((&page.stem, head.line), letters(&head.text).len());
        }
    }
    let mut kept = BTreeMap::new();
    let mut written = Vec::new();
    for (w, week) in weeks.iter().enumerate() {
        let week_stem = week.period.to_string().parse::<Stem>();
        for (i, (section, item)) in week.items.iter().enumerate() {
            if own.places.contains(&(w, i)) {
                continue;
            }
            let section = section.unwrap_or(Section::Context);
            let bullet = letters(&gloss::without(&item.text));
            let mut found = 0;
            let mut seen = BTreeSet::new();
            for (stem, lines) in item.citation.iter().flat_map(Citation::files) {
                for line in lines.iter() {
                    let statements = at_line.get(&(stem, line)).map_or(&[][..], Vec::as_slice);
                    if statements.is_empty() {
                        found += head_at_line.get(&(stem, line)).copied().unwrap_or(0);
                    }
                    for &(p, s) in statements.iter().filter(|key| seen.insert(**key)) {
                        let statement = &pages[p].statements[s];
                        found += letters(&statement.text[..statement.label]).len();
                        for (piece, cut) in statement.pieces.iter().enumerate() {
                            let words = &statement.text[cut.start..cut.end];
                            let words = letters(&gloss::without(words));
                            if !words.is_empty() && bullet.contains(&words) {
                                found += words.len();
                                kept.entry(PieceAt { page: p, statement: s, piece })
                                    .or_insert(section);
                            }
                        }
                    }
                }
            }
            if found * 100 < bullet.len() * FOUND_PERCENT
                && let Ok(stem) = &week_stem
            {
                written.push((section, page::read_bullet(stem, item)));
            }
        }
    }
    for (section, page) in written {
        for (statement, s) in page.statements.iter().enumerate() {
            for piece in 0..s.pieces.len() {
                kept.insert(PieceAt { page: pages.len(), statement, piece }, section);
            }
        }
        pages.push(page);
    }
    kept
}

/// Returns the letters and digits alone, by which a piece is found again in its bullet.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}
