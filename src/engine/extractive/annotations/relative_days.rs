//! Dates for words like `yesterday` and `tomorrow`.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use chrono::TimeDelta;

use crate::memory::{
    atom::{self, AtomKind},
    log::TextOrigin,
};

use super::date_note;
use crate::text::language::Language;
use crate::engine::extractive::{
    candidates::Annotation,
    parsed_log::{LogStatement, ParsedLog, StatementForm},
};

/// Words for such days, the language that the log must have, and the distance in days.
///
/// Words for the day of the log itself are left out, since the citation names it; so are ambiguous words
/// (`morgen`, `mañana`).
const RELATIVE_DAY_WORDS: [(&str, Option<Language>, i64); 9] = [
    ("yesterday", None, -1),
    ("tomorrow", None, 1),
    ("vorgestern", None, -2),
    ("gestern", None, -1),
    ("übermorgen", None, 2),
    ("hier", Some(Language::FRENCH), -1),
    ("demain", Some(Language::FRENCH), 1),
    ("ayer", Some(Language::SPANISH), -1),
    ("domani", Some(Language::ITALIAN), 1),
];

/// Returns the dates for the relative days of a piece; none if the piece contains dates itself.
pub(super) fn relative_day_notes(
    page: &ParsedLog,
    statement: &LogStatement,
    piece: usize,
) -> Vec<Annotation> {
    static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let words = RELATIVE_DAY_WORDS.iter().map(|it| it.0);
        AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()
    });
    if matches!(statement.form, StatementForm::Code | StatementForm::Quote)
        || statement.origin == TextOrigin::External
    {
        return Vec::new();
    }
    let Some(words) = &*WORDS else { return Vec::new() };
    let cut = statement.pieces[piece];
    let text = statement.piece_text(piece);
    let mut found = Vec::new();
    for hit in words.find_iter(text) {
        let (_, language, days) = RELATIVE_DAY_WORDS[hit.pattern().as_usize()];
        let joins = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’' | '-' | '_' | '/');
        let is_word = !text[..hit.start()].ends_with(joins)
            && !text[hit.end()..].starts_with(joins)
            && text[..hit.start()].matches('`').count().is_multiple_of(2);
        let day = page.stem.date().checked_add_signed(TimeDelta::days(days));
        if let Some(day) = day
            && is_word
            && language.is_none_or(|it| it == page.language)
        {
            found.push(Annotation {
                offset: cut.start + hit.end(),
                text: date_note(day),
                citations: Vec::new(),
            });
        }
    }
    if !found.is_empty() && atom::find_atoms(text).iter().any(|it| it.kind == AtomKind::Date) {
        found.clear();
    }
    found
}
