//! Figures that replaced others.
//!
//! A subject is a label of at least two words (`Walk-away price: $650M`), or two words before `at`, `is`,
//! and the like (`the walk-away price at $650M`). Its figures are followed over the days. They count as a
//! revision only if each figure holds without a break until the next one, which is from another day, and
//! if some figure occurs on two days or the newest line itself reports a change. A series of measurements
//! (`Distance run: 5 km`) does not qualify.

use std::collections::HashMap;

use crate::memory::{
    atom::{self, AtomKind},
    log::TextOrigin,
};

use super::replaced_note;
use crate::engine::extractive::{
    candidates::{Annotation, PiecePosition},
    parsed_log::{LogStatement, ParsedLog, StatementForm},
    sections,
};
use crate::text::{hash::combine_hashes, lexicon::ANNOTATIONS, stems::StemCache};

/// A label with fewer content words is ambiguous.
const LABEL_STEMS_MIN: usize = 2;

/// More different figures than this within a period are a series.
const REVISIONS_MAX: usize = 3;

/// An older line with at most this many other words is covered by the note on the newer one.
const OTHER_WORDS_MAX: usize = 4;

/// Suffixes that belong to a time of day.
const DAY_HALF_SUFFIXES: [&str; 7] = [" AM", " PM", " am", " pm", " a.m.", " p.m.", " Uhr"];

pub(super) struct Revision {
    /// The pieces with the new figure, and the note for each.
    pub(super) newer: Vec<(PiecePosition, Annotation)>,
    /// Pieces that contain little more than the replaced figure.
    pub(super) older: Vec<PiecePosition>,
}

struct FigureMention<'p> {
    at: PiecePosition,
    page: &'p ParsedLog,
    statement: &'p LogStatement,
    /// The byte range of the figure in the statement.
    start: usize,
    end: usize,
    norm: String,
}

/// The subject of a figure: a hash of the stems of its label or name, and the kind of figure.
type FigureSubject = (u64, AtomKind);

pub(super) fn find_revisions(pages: &[ParsedLog]) -> Vec<Revision> {
    let mut reader = FigureReader::default();
    for (p, page) in pages.iter().enumerate() {
        for (s, statement) in page.statements.iter().enumerate() {
            let is_prose = matches!(statement.form, StatementForm::Item | StatementForm::Paragraph);
            if !is_prose || statement.origin == TextOrigin::External {
                continue;
            }
            for piece in 0..statement.pieces.len() {
                if may_hold_figure(statement.piece_text(piece)) {
                    reader.read(page, statement, PiecePosition { page: p, statement: s, piece });
                }
            }
        }
    }
    let FigureReader { subject_order: order, mentions_by_subject: series, .. } = &reader;
    order.iter().filter_map(|key| series.get(key)).filter_map(|it| revision_of(it)).collect()
}

#[derive(Default)]
struct FigureReader<'p> {
    stems: StemCache,
    subject_by_label: HashMap<&'p str, Option<u64>>,
    mentions_by_subject: HashMap<FigureSubject, Vec<FigureMention<'p>>>,
    /// The subjects in order of first occurrence.
    subject_order: Vec<FigureSubject>,
}

impl<'p> FigureReader<'p> {
    fn read(&mut self, page: &'p ParsedLog, statement: &'p LogStatement, at: PiecePosition) {
        let piece = statement.pieces[at.piece];
        let text = statement.piece_text(at.piece);
        let atoms = atom::find_atoms(text);
        let numbers = atoms.iter().filter(|it| is_figure(it.kind) || it.kind == AtomKind::Number);
        let alone = numbers.count() == 1;
        for figure in atoms.iter().filter(|it| is_figure(it.kind)) {
            let (before, after) = (&text[..figure.start], &text[figure.end..]);
            // One end of a range is not a figure.
            if before.ends_with(['-', '–', '—', '~', '<', '>'])
                || after.starts_with(['-', '–', '—'])
            {
                continue;
            }
            let subject = self.named_subject(page, before).or_else(|| {
                let labelled = alone && at.piece == 0 && statement.label > 0;
                labelled.then(|| self.label_subject(page, statement.label_text())).flatten()
            });
            let Some(subject) = subject else { continue };
            let half = DAY_HALF_SUFFIXES.iter().find(|half| after.starts_with(**half));
            let norm = figure.norm(text).into_owned() + half.unwrap_or(&"");
            let end = piece.start + figure.end + half.map_or(0, |half| half.len());
            let mention =
                FigureMention { at, page, statement, start: piece.start + figure.start, end, norm };
            let key = (subject, figure.kind);
            let mentions = self.mentions_by_subject.entry(key).or_default();
            if mentions.is_empty() {
                self.subject_order.push(key);
            }
            mentions.push(mention);
        }
    }

    /// Returns the subject that a label names, if it is specific enough.
    fn label_subject(&mut self, page: &ParsedLog, label: &'p str) -> Option<u64> {
        let stems = &mut self.stems;
        *self.subject_by_label.entry(label).or_insert_with(|| {
            let mut terms = Vec::new();
            stems.for_each_stem(page.language, label, |stem| terms.push(stem));
            let is_specific = terms.len() >= LABEL_STEMS_MIN && !sections::is_template_head(label);
            is_specific.then(|| terms.into_iter().fold(0, combine_hashes))
        })
    }

    /// Returns the subject named by two words before a link word such as `at` or `is` and a figure.
    fn named_subject(&mut self, page: &ParsedLog, before: &str) -> Option<u64> {
        let mut words = before.split_whitespace().rev().peekable();
        let mut has_link = false;
        while let Some(word) = words.peek()
            && ANNOTATIONS.value_links.contains(&word.to_lowercase().as_str())
        {
            has_link = true;
            words.next();
        }
        let (second, first) = (words.next()?, words.next()?);
        let is_word = |it: &str| it.chars().all(|c| c.is_alphabetic() || c == '-');
        if !has_link || !is_word(first) || !is_word(second) {
            return None;
        }
        let mut terms = Vec::new();
        for word in [first, second] {
            self.stems.for_each_stem(page.language, word, |stem| terms.push(stem));
        }
        (terms.len() >= LABEL_STEMS_MIN).then(|| terms.into_iter().fold(1, combine_hashes))
    }
}

/// Returns false if a text cannot contain a sum, percentage, date, or time. A fast test: most do not.
fn may_hold_figure(text: &str) -> bool {
    let marks = |it: &[u8]| {
        let marked =
            it[1].is_ascii_digit() && (matches!(it[0], b'$' | b':' | b'-') || it[0] >= 0x80);
        marked || (it[0].is_ascii_digit() && (it[1] == b'%' || it[1] >= 0x80))
    };
    let spaced =
        |it: &[u8]| it[0].is_ascii_digit() && it[1] == b' ' && (it[2] == b'%' || it[2] >= 0x80);
    text.as_bytes().windows(2).any(marks) || text.as_bytes().windows(3).any(spaced)
}

fn is_figure(kind: AtomKind) -> bool {
    matches!(kind, AtomKind::Money | AtomKind::Percent | AtomKind::Date | AtomKind::Time)
}

/// Returns the revision that the figures of one subject show, if they qualify.
fn revision_of(mentions: &[FigureMention<'_>]) -> Option<Revision> {
    let mut runs: Vec<&[FigureMention<'_>]> = Vec::new();
    for run in mentions.chunk_by(|a, b| a.norm == b.norm) {
        if runs.iter().any(|it| it[0].norm == run[0].norm) {
            return None;
        }
        runs.push(run);
    }
    let [.., former, latest] = &runs[..] else { return None };
    let last = former.last()?;
    let first = latest.first()?;
    let day = |it: &FigureMention<'_>| it.page.stem.date();
    let on_two_days = runs.iter().any(|it| day(&it[0]) < day(&it[it.len() - 1]));
    let is_change = on_two_days || first.states_change();
    let same_day = runs.windows(2).any(|it| day(&it[0][it[0].len() - 1]) >= day(&it[1][0]));
    if runs.len() > REVISIONS_MAX || !is_change || same_day {
        return None;
    }
    let was = &last.statement.text[last.start..last.end];
    let until = day(first);
    let mut cites = vec![last.address()];
    cites.push(first.address());
    let newer = latest.iter().filter(|it| !it.statement.text.contains(was)).map(|it| {
        let text = replaced_note(was, until);
        (it.at, Annotation { offset: it.end, text, citations: cites.clone() })
    });
    let newer: Vec<_> = newer.collect();
    let older = runs[..runs.len() - 1].iter().flat_map(|it| it.iter());
    let older = older.filter(|it| it.has_few_other_words()).map(|it| it.at);
    // The note names only the previous figure; lines with older ones must stay.
    let older = if runs.len() == 2 { older.collect() } else { Vec::new() };
    Some(Revision { newer, older })
}

impl FigureMention<'_> {
    /// Returns whether the line itself says that the figure changed.
    fn states_change(&self) -> bool {
        let before = self.statement.text[self.statement.label..self.start].trim_end();
        before.to_lowercase().ends_with("now") || sections::mentions_change(&self.statement.text)
    }

    fn address(&self) -> crate::memory::address::Address {
        let line = self.statement.lines_of(self.start, self.end).next().unwrap_or_default();
        self.page.address(line)
    }

    /// Returns whether there are few words besides the label and the figure.
    fn has_few_other_words(&self) -> bool {
        let rest = &self.statement.text[self.statement.label..];
        self.statement.label > 0
            && self.statement.pieces.len() == 1
            && rest.split_whitespace().count() <= OTHER_WORDS_MAX + 1
    }
}
