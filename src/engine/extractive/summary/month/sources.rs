//! The sources of a month: the bullets of its weeks with the pieces of log lines in them, and bullets that people
//! wrote.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    engine::SummaryInput,
    memory::{
        address::{Citation, Stem},
        item::{Item, SummarySection},
    },
    privacy::SanitizedLog,
};

use super::super::month_section;
use crate::engine::extractive::{
    annotations,
    candidates::PiecePosition,
    parsed_log::{self, ParsedLog},
    render,
};

/// The bullets that people wrote into the weeks of a month.
#[derive(Default)]
pub(in super::super) struct UserBullets {
    pub(in super::super) items: Vec<(SummarySection, Item)>,
    /// Indices of week and bullet of each.
    positions: BTreeSet<(usize, usize)>,
}

/// Returns the bullets that a person wrote or changed, which cite the weekly file itself. A month copies
/// them verbatim as far as they fit.
///
/// A file that memoird did not write at all is an ordinary source.
pub(in super::super) fn user_bullets(input: &SummaryInput<'_>) -> UserBullets {
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

/// A bullet of a week that may become one of the month.
pub(super) struct WeekBullet<'a> {
    pub(super) section: SummarySection,
    pub(super) item: &'a Item,
}

/// The bullets of the weeks, and what of the logs they contain.
pub(super) struct WeekBullets<'a> {
    /// In the order of the weeks.
    pub(super) all: Vec<WeekBullet<'a>>,
    /// The bullet that contains a piece, the first one if there are several.
    pub(super) of_piece: BTreeMap<PiecePosition, usize>,
}

/// Reads the bullets of the weeks, except those that a person wrote, and finds the pieces of log lines in them.
///
/// A bullet whose words occur in none of its cited lines becomes a page of its own, appended to `pages`; it is
/// left out if a person deleted one of these lines from the month.
pub(super) fn read_week_bullets<'a>(
    pages: &mut Vec<ParsedLog>,
    input: &SummaryInput<'a>,
    user_bullets: &UserBullets,
) -> WeekBullets<'a> {
    let finder = PieceFinder::new(pages);
    let mut found = WeekBullets { all: Vec::new(), of_piece: BTreeMap::new() };
    let mut written = Vec::new();
    for (w, week) in input.weeks.iter().enumerate() {
        let week_stem = week.period.to_string().parse::<Stem>();
        for (i, (section, item)) in week.items.iter().enumerate() {
            if user_bullets.positions.contains(&(w, i)) {
                continue;
            }
            let bullet = found.all.len();
            // Of a line that a person deleted no other bullet brings the words back.
            if lacks_line(input.logs, item) {
                continue;
            }
            let (pieces, is_found) = finder.pieces_of(pages, item);
            if !is_found {
                let Ok(stem) = &week_stem else { continue };
                written.push((bullet, parsed_log::parse_bullet(stem, item)));
            }
            for at in pieces {
                found.of_piece.entry(at).or_insert(bullet);
            }
            let section = section.unwrap_or(SummarySection::Context);
            found.all.push(WeekBullet { section, item });
        }
    }
    for (bullet, page) in written {
        for (statement, s) in page.statements.iter().enumerate() {
            for piece in 0..s.pieces.len() {
                let at = PiecePosition { page: pages.len(), statement, piece };
                found.of_piece.insert(at, bullet);
            }
        }
        pages.push(page);
    }
    found
}

/// Returns whether a log has no longer a line that a bullet cites.
fn lacks_line(logs: &[SanitizedLog], item: &Item) -> bool {
    let mut files = item.citation.iter().flat_map(Citation::files);
    files.any(|(stem, lines)| {
        let log = logs.iter().find(|it| it.stem() == stem);
        log.is_some_and(|log| lines.iter().any(|it| log.line(it).is_none()))
    })
}

/// Finds the words of bullets in the lines that they cite.
struct PieceFinder {
    at_line: HashMap<(Stem, u32), Vec<(usize, usize)>>,
    /// The number of letters and digits in the headings.
    head_at_line: HashMap<(Stem, u32), usize>,
}

impl PieceFinder {
    fn new(pages: &[ParsedLog]) -> Self {
        let mut finder = Self { at_line: HashMap::new(), head_at_line: HashMap::new() };
        for (p, page) in pages.iter().enumerate() {
            for (s, statement) in page.statements.iter().enumerate() {
                for &(_, line) in &statement.lines {
                    finder.at_line.entry((page.stem.clone(), line)).or_default().push((p, s));
                }
            }
            for head in &page.heads {
                let letters = letters_and_digits(&head.text).len();
                finder.head_at_line.insert((page.stem.clone(), head.line), letters);
            }
        }
        finder
    }

    /// Returns the pieces that a bullet contains, and whether these are most of it.
    fn pieces_of(&self, pages: &[ParsedLog], item: &Item) -> (Vec<PiecePosition>, bool) {
        /// A bullet of which a smaller share occurs in its lines was written by a person or another program.
        const FOUND_PERCENT: usize = 70;
        let bullet = letters_and_digits(&annotations::strip_annotations(&item.text));
        let (mut found, mut pieces, mut seen) = (0, Vec::new(), BTreeSet::new());
        let files = item.citation.iter().flat_map(Citation::files);
        for key in files.flat_map(|(stem, lines)| lines.iter().map(|it| (stem.clone(), it))) {
            let statements = self.at_line.get(&key).map_or(&[][..], Vec::as_slice);
            if statements.is_empty() {
                found += self.head_at_line.get(&key).copied().unwrap_or(0);
            }
            for &(page, statement) in statements.iter().filter(|key| seen.insert(**key)) {
                let of_log = &pages[page].statements[statement];
                found += letters_and_digits(of_log.label_text()).len();
                for piece in 0..of_log.pieces.len() {
                    let words = annotations::strip_annotations(of_log.piece_text(piece));
                    let words = letters_and_digits(&words);
                    if !words.is_empty() && bullet.contains(&words) {
                        found += words.len();
                        pieces.push(PiecePosition { page, statement, piece });
                    }
                }
            }
        }
        (pieces, found * 100 >= bullet.len() * FOUND_PERCENT)
    }
}

/// Returns only the letters and digits, by which a piece is found in its bullet.
fn letters_and_digits(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}
