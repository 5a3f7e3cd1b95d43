//! Mails that somebody pasted into notes: the fields of the header, `From: …` and `Subject: …`, and the text below.
//!
//! A mail ends at the next heading or rule, after its sign-off, or where a note follows after a blank line: a list
//! that nothing in the mail introduces, or a part with a label such as `Next steps:`.

use std::ops::Range;

use super::{
    LineAuthorship, NumberedLine,
    host_text::{is_external_by_kind, words_of},
    pasted_text::{field_of, paste, starts_own_part},
};
use crate::{memory::markdown::LineKind, text::lexicon::AUTHORSHIP};

/// The most words of a sign-off, and of the name below it.
const SIGN_OFF_WORDS_MAX: usize = 4;

/// Marks the mails in a range of notes.
pub(super) fn mark(lines: &[NumberedLine<'_>], range: Range<usize>, found: &mut [LineAuthorship]) {
    let mut at = range.start;
    while at < range.end {
        let fields = leading_fields(&lines[at..range.end]);
        let body = at + fields.len();
        if !is_header(&fields) {
            // No rest of these fields is a header, either.
            at = body.max(at + 1);
            continue;
        }
        let end = body + body_len(&lines[body..range.end]);
        for (line, (_, _, kind)) in found[at..end].iter_mut().zip(&lines[at..end]) {
            if *kind != LineKind::Blank && !is_external_by_kind(*kind) {
                paste(line);
            }
        }
        at = end;
    }
}

/// Returns the fields of a header that the first lines are.
fn leading_fields(lines: &[NumberedLine<'_>]) -> Vec<MailField> {
    let field = |it: &NumberedLine<'_>| {
        let words = words_of(it.1, it.2);
        (it.2 == LineKind::Text).then(|| mail_field(words)).flatten()
    };
    lines.iter().map_while(field).collect()
}

/// Returns whether fields are the header of a mail: one is its subject, and one says who wrote to whom.
fn is_header(fields: &[MailField]) -> bool {
    fields.contains(&MailField::Subject) && fields.contains(&MailField::Correspondent)
}

/// What a field of a header says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MailField {
    Subject,
    Correspondent,
    Other,
}

fn mail_field(words: &str) -> Option<MailField> {
    const NAME_BYTES_MAX: usize = 24;
    let (name, value) = field_of(words).filter(|it| it.0.len() <= NAME_BYTES_MAX)?;
    let name = name.to_lowercase();
    let is_in = |list: &[&str]| list.contains(&&name[..]);
    match () {
        () if is_in(&AUTHORSHIP.mail_subjects) => Some(MailField::Subject),
        () if value.is_empty() => None,
        () if is_in(&AUTHORSHIP.mail_correspondents) => Some(MailField::Correspondent),
        () => is_in(&AUTHORSHIP.mail_fields).then_some(MailField::Other),
    }
}

/// Returns the number of the first lines that are the text of a mail.
fn body_len(lines: &[NumberedLine<'_>]) -> usize {
    let is_blank = |at: usize| lines.get(at).is_none_or(|it| it.2 == LineKind::Blank);
    let mut has_list = false;
    // The last line with words.
    let mut last = "";
    for (at, &(_, text, kind)) in lines.iter().enumerate() {
        let words = words_of(text, kind);
        match kind {
            LineKind::Heading { .. }
            | LineKind::Rule
            | LineKind::ListItem { task: Some(_), .. } => return at,
            LineKind::Blank => continue,
            LineKind::ListItem { .. } if !has_list => {
                let is_introduced = last.ends_with([':', '：']);
                if at > 0 && is_blank(at - 1) && !last.is_empty() && !is_introduced {
                    return at;
                }
                has_list = true;
            }
            LineKind::Text if at > 0 && is_blank(at - 1) => {
                let label = field_of(words).map(|it| it.0).filter(|it| *it != words);
                if label.is_some_and(starts_own_part) || is_header(&leading_fields(&lines[at..])) {
                    return at;
                }
            }
            _ => {}
        }
        if signs_off(words) {
            let mut end = (at..lines.len()).find(|it| is_blank(*it)).unwrap_or(lines.len());
            // The name may be below a blank line.
            let names = |it: &NumberedLine<'_>| it.2 == LineKind::Text && is_name(it.1);
            if end == at + 1 && lines.get(end + 1).is_some_and(names) {
                end += 2;
            }
            return end.min(lines.len());
        }
        last = words;
    }
    lines.len()
}

/// Returns whether a line ends a mail: `Best regards, Tom`, or the mark above a signature.
fn signs_off(words: &str) -> bool {
    let words = words.trim();
    let lower = words.to_lowercase();
    // `Thanks for that!` goes on, `Thanks, Tom` does not.
    let ends = |it: &str| {
        let rest: String = words.chars().skip(it.chars().count()).collect();
        let name = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        lower.starts_with(it)
            && !rest.starts_with(char::is_alphanumeric)
            && !name.starts_with(char::is_lowercase)
            && rest.split_whitespace().count() < SIGN_OFF_WORDS_MAX
            && !is_sentence(&rest)
    };
    lower == "--" || AUTHORSHIP.mail_sign_offs.iter().any(|it| ends(it))
}

fn is_name(words: &str) -> bool {
    (1..SIGN_OFF_WORDS_MAX).contains(&words.split_whitespace().count()) && !is_sentence(words)
}

/// Returns whether a text goes on or ends like a sentence; `Thanks!` ends nothing.
fn is_sentence(text: &str) -> bool {
    text.ends_with(['.', '?', ':']) || text.contains(". ")
}
