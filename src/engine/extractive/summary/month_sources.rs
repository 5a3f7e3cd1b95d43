//! The sources of a month: pieces of log lines that its weeks selected, and bullets that people wrote.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    engine::{SummaryInput, WeekSource},
    memory::{
        address::{Citation, Stem},
        item::{Item, SummarySection},
    },
};

use super::month_section;
use crate::engine::extractive::{
    annotations,
    candidates::PiecePosition,
    parsed_log::{self, ParsedLog},
    render,
};

/// The bullets that people wrote into the weeks of a month.
#[derive(Default)]
pub(super) struct UserBullets {
    pub(super) items: Vec<(SummarySection, Item)>,
    /// Indices of week and bullet of each.
    positions: BTreeSet<(usize, usize)>,
}

/// Returns the bullets that a person wrote or changed, which cite the weekly file itself. A month copies
/// them verbatim as far as they fit.
///
/// A file that memoird did not write at all is an ordinary source.
pub(super) fn user_bullets(input: &SummaryInput<'_>) -> UserBullets {
    let cites_week = |item: &Item| {
        item.citation.iter().flat_map(Citation::files).any(|(stem, _)| stem.is_week())
    };
    let mut bullets = UserBullets::default();
    let empty = render::body_chars(input.period, &[]);
    let mut chars = empty;
    let mut opened = BTreeSet::new();
    for (w, week) in input.weeks.iter().enumerate() {
        let is_foreign = |(_, item): &(Option<SummarySection>, Item)| {
            item.citation.iter().flat_map(Citation::files).all(|(stem, _)| stem.is_week())
        };
        if week.items.iter().all(is_foreign) {
            continue;
        }
        let changed = week.items.iter().enumerate().filter(|(_, (_, item))| cites_week(item));
        for (i, (section, item)) in changed {
            let section = month_section(section.unwrap_or(SummarySection::Context));
            let mut cost = render::bullet_chars(&item.text);
            if !opened.contains(&section) {
                cost += render::body_chars(input.period, &[(section, Vec::new())]) - empty;
            }
            if chars + cost <= input.budget.limit_chars {
                chars += cost;
                opened.insert(section);
                bullets.items.push((section, item.clone()));
                bullets.positions.insert((w, i));
            }
        }
    }
    bullets
}

/// Returns the pieces that the weeks' bullets contain, each with its section.
///
/// A bullet whose words occur in none of its cited lines becomes a page of its own, appended to `pages`.
pub(super) fn pieces_in_weeks(
    pages: &mut Vec<ParsedLog>,
    weeks: &[WeekSource],
    user_bullets: &UserBullets,
) -> BTreeMap<PiecePosition, SummarySection> {
    /// A bullet of which a smaller share occurs in its lines was written by a person or another program.
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
            head_at_line.insert((&page.stem, head.line), letters_and_digits(&head.text).len());
        }
    }
    let mut selected = BTreeMap::new();
    let mut written = Vec::new();
    for (w, week) in weeks.iter().enumerate() {
        let week_stem = week.period.to_string().parse::<Stem>();
        for (i, (section, item)) in week.items.iter().enumerate() {
            if user_bullets.positions.contains(&(w, i)) {
                continue;
            }
            let section = section.unwrap_or(SummarySection::Context);
            let bullet = letters_and_digits(&annotations::strip_annotations(&item.text));
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
                        found += letters_and_digits(statement.label_text()).len();
                        for piece in 0..statement.pieces.len() {
                            let words = annotations::strip_annotations(statement.piece_text(piece));
                            let words = letters_and_digits(&words);
                            if !words.is_empty() && bullet.contains(&words) {
                                found += words.len();
                                let at = PiecePosition { page: p, statement: s, piece };
                                selected.entry(at).or_insert(section);
                            }
                        }
                    }
                }
            }
            if found * 100 < bullet.len() * FOUND_PERCENT
                && let Ok(stem) = &week_stem
            {
                written.push((section, parsed_log::parse_bullet(stem, item)));
            }
        }
    }
    for (section, page) in written {
        for (statement, s) in page.statements.iter().enumerate() {
            for piece in 0..s.pieces.len() {
                selected.insert(PiecePosition { page: pages.len(), statement, piece }, section);
            }
        }
        pages.push(page);
    }
    selected
}

/// Returns only the letters and digits, by which a piece is found in its bullet.
fn letters_and_digits(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}
