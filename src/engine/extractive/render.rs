//! Renders chosen units as cited bullets in sections.
//!
//! Words are never changed, only cut and joined: clauses of one statement by ` … `, statements under
//! one heading by `; `, a heading and its statements by `: `.

use std::collections::{BTreeSet, HashSet};

use crate::{
    memory::{
        address::{Address, Citation},
        item::{Item, SummarySection},
        period::{Grain, Period},
    },
    text::calendar,
};

use super::{
    candidates::{Annotation, CandidateSet, CandidateUnit, SELF_CONTAINED_STEMS},
    parsed_log::StatementForm,
    sections,
};

/// The longest bullet of merged neighbours without a heading, in characters.
const BULLET_CHARS_MAX: usize = 320;

/// The longest bullet of merged neighbours under one heading; longer, so that the heading is not repeated.
const HEADED_CHARS_MAX: usize = 400;

/// Without an opened heading, statements further apart than this are not merged.
const GAP_MAX: usize = 12;

struct BulletBuilder {
    page: usize,
    section: SummarySection,
    heading: Option<usize>,
    /// The heading above it, whether the bullet contains it or not.
    under_heading: Option<usize>,
    text: String,
    chars: usize,
    lines: BTreeSet<u32>,
    /// The sources of the program's notes, on other pages.
    annotation_sources: Vec<Address>,
    /// Citations of bullets of weekly files.
    cites: Option<Citation>,
    last_statement: usize,
    last_lead: Option<usize>,
    last_label: String,
    first: (usize, usize),
    /// Whether it is code, which no sentence is joined to.
    is_code: bool,
}

/// Returns the sections of a file with the `chosen` units, in order; bullets contain only `opened` heads.
pub(super) fn render_sections(
    material: &CandidateSet,
    chosen: &[usize],
    section_of: impl Fn(usize) -> SummarySection,
    opened: &HashSet<usize>,
) -> Vec<(SummarySection, Vec<Item>)> {
    let mut done = build_bullets(material, chosen, section_of, opened);
    done.sort_by_key(|b| (b.section, material.pages[b.page].stem.date(), b.first));
    let mut sections: Vec<(SummarySection, Vec<Item>)> = Vec::new();
    for bullet in done {
        let section = bullet.section;
        let item = bullet.finish(material);
        match sections.last_mut().filter(|(last, _)| *last == section) {
            Some((_, items)) => items.push(item),
            None => sections.push((section, vec![item])),
        }
    }
    sections
}

/// Returns how many characters the bullets of `chosen` units take in each section, including marks and line
/// ends. Pages do not affect each other.
pub(super) fn section_chars(
    material: &CandidateSet,
    chosen: &[usize],
    section_of: impl Fn(usize) -> SummarySection,
    opened: &HashSet<usize>,
) -> Vec<(SummarySection, usize)> {
    let mut sections: Vec<(SummarySection, usize)> = Vec::new();
    for bullet in build_bullets(material, chosen, section_of, opened) {
        let chars = bullet.chars + BULLET_MARKS;
        match sections.iter_mut().find(|(section, _)| *section == bullet.section) {
            Some((_, sum)) => *sum += chars,
            None => sections.push((bullet.section, chars)),
        }
    }
    sections
}

/// Joins `chosen` units into bullets, page by page.
fn build_bullets(
    material: &CandidateSet,
    chosen: &[usize],
    section_of: impl Fn(usize) -> SummarySection,
    opened: &HashSet<usize>,
) -> Vec<BulletBuilder> {
    let mut units: Vec<usize> = chosen.to_vec();
    units.sort_unstable_by_key(|&u| material.units[u].at);
    let mut done: Vec<BulletBuilder> = Vec::new();
    // The open bullet of each section; it is closed when the heading changes.
    let mut open: Vec<BulletBuilder> = Vec::new();
    let mut rest = units.as_slice();
    while let Some(&first) = rest.first() {
        let at = material.units[first].at;
        let here = rest
            .iter()
            .take_while(|&&u| {
                let other = material.units[u].at;
                (other.page, other.statement) == (at.page, at.statement)
            })
            .count();
        let (statement_units, after) = rest.split_at(here);
        rest = after;
        // A statement is in one section, that of its first clause.
        let section = section_of(first);
        let piece = join_pieces(material, statement_units);
        let heading = material.units[first].heading.filter(|head| opened.contains(head));
        let stems = statement_units.iter().map(|&u| material.units[u].stems).max().unwrap_or(0);
        // Whether the bullet above contains the heading, and the statement needs no repetition.
        let mut is_heading_shown = false;
        if let Some(index) = open.iter().position(|b| b.section == section) {
            if open[index].accepts(material, &material.units[first], heading, &piece) {
                open[index].add(material, statement_units, &piece);
                continue;
            }
            let above = open.remove(index);
            let (_, statement) = at.statement_in(&material.pages);
            // A label like `Files changed: …` is incomplete without the heading.
            let asks = material.units[first].needs_heading
                || sections::is_template_head(statement.label_text());
            is_heading_shown = above.heading == heading && stems >= SELF_CONTAINED_STEMS && !asks;
            done.push(above);
        }
        let page = &material.pages[at.page];
        let title = heading.map(|it| &page.heads[material.heads[it].head].text);
        is_heading_shown |= title.is_some_and(|it| sections::says_title(&piece, it));
        let place = (section, heading);
        let mut bullet =
            BulletBuilder::new(material, &material.units[first], place, is_heading_shown);
        bullet.add(material, statement_units, &piece);
        open.push(bullet);
    }
    done.append(&mut open);
    done
}

/// Returns the length of a body with `sections`, without citations.
pub(super) fn body_chars(period: Period, sections: &[(SummarySection, Vec<Item>)]) -> usize {
    let bullets = |items: &[Item]| items.iter().map(|it| bullet_chars(&it.text)).sum::<usize>();
    let heads = sections.iter().map(|(section, items)| head_chars(*section) + bullets(items));
    title_chars(period) + heads.sum::<usize>()
}

/// Returns the length of the title of a period's file, with its line end.
pub(super) fn title_chars(period: Period) -> usize {
    period.to_string().chars().count()
        + if period.grain() == Grain::Week { "# Week \n".len() } else { "# \n".len() }
}

/// Returns the length of the heading of a section.
pub(super) fn head_chars(section: SummarySection) -> usize {
    "\n### \n".len() + section.title().chars().count()
}

const BULLET_MARKS: usize = "- \n".len();

/// Returns the length of a bullet with its marks and line end.
pub(super) fn bullet_chars(text: &str) -> usize {
    text.chars().count() + BULLET_MARKS
}

/// Joins the chosen pieces of one statement, without its label.
fn join_pieces(material: &CandidateSet, units: &[usize]) -> String {
    let (_, statement) = material.units[units[0]].at.statement_in(&material.pages);
    let mut text = String::new();
    let mut last: Option<usize> = None;
    for &unit in units {
        let index = material.units[unit].at.piece;
        let piece = statement.pieces[index];
        let words = statement.piece_text(index);
        match last {
            Some(before) if before + 1 == index => {
                text.push_str(&statement.text[statement.pieces[before].end..piece.start]);
            }
            // Whole sentences follow each other; an ellipsis marks an omission.
            Some(_) if piece.starts_sentence && ends_sentence(&text) => text.push(' '),
            Some(_) => text.push_str(" … "),
            None => {}
        }
        push_annotated(&mut text, (words, piece.start), &material.units[unit].annotations);
        last = Some(index);
    }
    without_unbalanced_marks(text.trim_end_matches([',', ';', ' ', '—', '–']))
}

/// Appends words, which begin at byte `start` of their statement, with the program's notes.
fn push_annotated(text: &mut String, (words, start): (&str, usize), notes: &[Annotation]) {
    let mut from = 0;
    for note in notes {
        let at = note.offset - start;
        text.push_str(&words[from..at]);
        text.push(' ');
        text.push_str(&note.text);
        from = at;
    }
    text.push_str(&words[from..]);
}

impl BulletBuilder {
    fn new(
        material: &CandidateSet,
        unit: &CandidateUnit,
        (section, heading): (SummarySection, Option<usize>),
        is_heading_shown: bool,
    ) -> Self {
        let page = &material.pages[unit.at.page];
        let mut lines = BTreeSet::new();
        let mut text = String::new();
        if let Some(head) =
            heading.filter(|_| !is_heading_shown).map(|h| &page.heads[material.heads[h].head])
        {
            text = without_list_number(sections::without_kind(&head.text));
            text.push_str(": ");
            lines.extend(&head.lines);
        }
        Self {
            page: unit.at.page,
            section,
            heading,
            under_heading: unit.heading,
            chars: text.chars().count(),
            text,
            lines,
            annotation_sources: Vec::new(),
            cites: None,
            last_statement: unit.at.statement,
            last_lead: None,
            last_label: String::new(),
            first: (unit.at.page, unit.at.statement),
            is_code: page.statements[unit.at.statement].form == StatementForm::Code,
        }
    }

    /// Returns whether the next statement fits into this bullet.
    fn accepts(
        &self,
        material: &CandidateSet,
        unit: &CandidateUnit,
        heading: Option<usize>,
        piece: &str,
    ) -> bool {
        let (_, statement) = unit.at.statement_in(&material.pages);
        let label = statement.label_text().chars().count();
        let lead = match unit.lead.filter(|_| unit.lead != self.last_lead) {
            Some(lead) => material.heads[lead].chars,
            None => 0,
        };
        self.page == unit.at.page
            && self.is_code == (statement.form == StatementForm::Code)
            && self.heading == heading
            && self.under_heading == unit.heading
            && self.cites.is_none()
            && statement.cites.is_none()
            && (heading.is_some() || unit.at.statement - self.last_statement <= GAP_MAX)
            && self.chars + label + lead + piece.chars().count() + 2
                <= if heading.is_some() { HEADED_CHARS_MAX } else { BULLET_CHARS_MAX }
    }

    fn add(&mut self, material: &CandidateSet, units: &[usize], phrase: &str) {
        let unit = &material.units[units[0]];
        let (page, statement) = unit.at.statement_in(&material.pages);
        let fresh = self.text.is_empty() || self.text.ends_with(": ");
        let mut next = String::new();
        if let Some(lead) = unit.lead
            && unit.lead != self.last_lead
        {
            let head = &page.heads[material.heads[lead].head];
            // A parent that precedes directly need not be repeated.
            if fresh || head.statement != Some(self.last_statement) {
                next.push_str(&without_list_number(&head.text));
                next.push_str(": ");
            }
            self.lines.extend(&head.lines);
        }
        let label = statement.label_text();
        if label != self.last_label {
            next.push_str(label);
            // What the label introduces is left out.
            if !label.is_empty() && unit.at.piece > 0 {
                next.push_str("… ");
            }
            label.clone_into(&mut self.last_label);
        }
        next.push_str(phrase);
        if !fresh {
            append_statement(&mut self.text, &next);
        }
        self.text.push_str(&next);
        self.chars = self.text.chars().count();
        self.last_lead = unit.lead;
        self.last_statement = unit.at.statement;
        for &unit in units {
            let piece = statement.pieces[material.units[unit].at.piece];
            self.lines.extend(statement.lines_of(piece.start, piece.end));
            let cites = material.units[unit].annotations.iter().flat_map(|it| &it.citations);
            self.annotation_sources.extend(cites.cloned());
        }
        if !label.is_empty() {
            self.lines.extend(statement.lines_of(0, statement.label));
        }
        if let Some(citation) = &statement.cites {
            self.cites = Some(citation.clone());
        }
        if statement.form == StatementForm::Row {
            // The row may contain words of the header.
            self.lines.extend(statement.header);
        }
    }

    fn finish(self, material: &CandidateSet) -> Item {
        let page = &material.pages[self.page];
        let own = self.lines.iter().map(|&line| page.address(line));
        let addresses: Vec<Address> = own.chain(self.annotation_sources).collect();
        let citation = self.cites.or_else(|| Citation::from_addresses(&addresses));
        Item { text: self.text, citation }
    }
}

/// Returns the words of a head without its number.
fn without_list_number(text: &str) -> String {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text[digits..].strip_prefix(['.', ')']).and_then(|rest| rest.strip_prefix(' '));
    let is_month = |words: &str| {
        let word = words.split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
        calendar::month_number(word).is_some()
    };
    match rest.filter(|_| (1..=2).contains(&digits)) {
        // `2. April` is a day.
        Some(words) if !is_month(words) => without_unbalanced_marks(words),
        _ => without_unbalanced_marks(text),
    }
}

/// Returns whether the text ends with the mark of a sentence.
fn ends_sentence(text: &str) -> bool {
    let closed = text.trim_end_matches(CLOSERS);
    closed.ends_with(['.', '!', '?', '…', '。', '！', '？', '؟', '।', '۔'])
}

/// Marks that may follow the mark at the end of a sentence.
const CLOSERS: [char; 7] = [')', '"', '”', '’', '»', ']', '\''];

/// Appends the mark before the next statement of a bullet, so that no small letter follows a full stop.
fn append_statement(text: &mut String, next: &str) {
    if ends_sentence(text) && text.ends_with('.') && next.starts_with(char::is_lowercase) {
        text.truncate(text.trim_end_matches('.').len());
        text.push_str("; ");
    } else if ends_sentence(text) || text.trim_end_matches(CLOSERS).ends_with([':', ';']) {
        text.push(' ');
    } else {
        text.push_str("; ");
    }
}

/// Returns a text without unbalanced backticks, brackets, and quotes.
pub(super) fn without_unbalanced_marks(text: &str) -> String {
    // A fast test: most texts contain no such mark. All these quotes begin with the same byte.
    let quote = "“".as_bytes()[0];
    if !text.bytes().any(|b| matches!(b, b'`' | b'(' | b')' | b'[' | b']') || b == quote) {
        return text.to_owned();
    }
    let mut drop: Vec<usize> = Vec::new();
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut in_code: Option<usize> = None;
    for (at, c) in text.char_indices() {
        if c == '`' {
            in_code = if in_code.is_some() { None } else { Some(at) };
            continue;
        }
        if in_code.is_some() {
            continue;
        }
        match c {
            '(' | '[' | '“' => open.push((c, at)),
            ')' | ']' | '”' => {
                let partner = match c {
                    ')' => '(',
                    ']' => '[',
                    _ => '“',
                };
                if open.last().is_some_and(|&(o, _)| o == partner) {
                    open.pop();
                } else {
                    drop.push(at);
                }
            }
            _ => {}
        }
    }
    drop.extend(open.into_iter().map(|(_, at)| at));
    drop.extend(in_code);
    drop.retain(|&at| !parts_number_from_word(text, at));
    if drop.is_empty() {
        return text.to_owned();
    }
    drop.sort_unstable();
    let mut cleaned = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if drop.binary_search(&at).is_err() {
            cleaned.push(c);
            continue;
        }
        // A mark between letters separated two words; a space keeps them apart.
        let parted =
            |c: char| c.is_whitespace() || matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | ')');
        let next = text[at + c.len_utf8()..].chars().next();
        let glued = cleaned.ends_with(|c: char| !c.is_whitespace() && c != '(')
            && next.is_some_and(|c| !parted(c));
        if glued {
            cleaned.push(' ');
        }
    }
    cleaned
}

/// Returns whether the mark at `at` separates a number from a word that would otherwise read as one amount:
/// `0) pM` is no time of day, `CNY (3` no price.
fn parts_number_from_word(text: &str, at: usize) -> bool {
    let between = |c: char| c.is_whitespace() || "()[]“”`".contains(c);
    let left = text[..at].trim_end_matches(between);
    let right = text[at..].trim_start_matches(between);
    // Without a space between them, one replaces the mark.
    if !text[left.len()..text.len() - right.len()].contains(char::is_whitespace) {
        return false;
    }
    left.chars().next_back().zip(right.chars().next()).is_some_and(|(before, after)| {
        (before.is_numeric() && after.is_alphabetic())
            || (before.is_alphabetic() && after.is_numeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_joined_with_the_right_mark() {
        #[track_caller]
        fn check(text: &str, next: &str, expected: &str) {
            let mut text = text.to_owned();
            append_statement(&mut text, next);
            assert_eq!(text + next, expected);
        }
        check(
            "Nothing late.",
            "The next one is on 7 April",
            "Nothing late. The next one is on 7 April",
        );
        check("Nothing late.", "the next one", "Nothing late; the next one");
        check("Nothing late", "The next one", "Nothing late; The next one");
        check("Late?", "the next one", "Late? the next one");
        check("(late.)", "Next", "(late.) Next");
        check("Plan:", "next", "Plan: next");
    }

    #[test]
    fn list_numbers_of_heads_are_removed() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(without_list_number(text), expected);
        }
        check("2. Partial weekly merge", "Partial weekly merge");
        check("3) Console tests", "Console tests");
        check("2. April, Abnahme", "2. April, Abnahme");
        check("3.2 seconds", "3.2 seconds");
        check("2026 plan", "2026 plan");
    }

    #[test]
    fn unbalanced_marks_are_removed() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(without_unbalanced_marks(text), expected);
        }
        check("a `b` (c)", "a `b` (c)");
        check("a `b (c", "a b (c");
        check("a) (b", "a b");
        check("a [b](c", "a [b] c");
        check("A`0b", "A 0b");
        check("„x”", "„x");
        // Numbers and words that a mark held apart would read as one amount.
        check("0) pM", "0) pM");
        check("came 3 (km", "came 3 (km");
        check("CNY (3", "CNY (3");
        check("step 2) (", "step 2 ");
    }
}
