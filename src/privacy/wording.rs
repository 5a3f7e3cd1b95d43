//! Whose words a derived text is in: those of the people and agents of a log, or those of strangers.

use std::collections::HashSet;

use crate::{memory::log::TextOrigin, text::words};

/// Whose words a text is in that was derived from lines of several origins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DerivedWording {
    /// Whether they are those of external lines.
    pub is_external: bool,
    /// Whether all of them are in the lines, so that nobody reworded them.
    pub is_verbatim: bool,
}

impl DerivedWording {
    /// Compares a text with the lines that it cites.
    ///
    /// It is external if all of the lines are, or if it says what only external ones say: a lead-in of
    /// one's own ("Mail from Acme:") makes no quote below it one's own.
    pub fn of<'a>(text: &str, cited: impl Iterator<Item = (TextOrigin, &'a str)>) -> Self {
        let (mut own, mut external) = (HashSet::new(), HashSet::new());
        let (mut has_own, mut has_external) = (false, false);
        for (origin, line) in cited {
            let is_external = origin == TextOrigin::External;
            has_external |= is_external;
            has_own |= !is_external;
            let words = if is_external { &mut external } else { &mut own };
            words::for_each_folded(line, |word| {
                words.insert(word.to_owned());
            });
        }
        let (mut shared, mut foreign) = (HashSet::new(), HashSet::new());
        let mut is_verbatim = true;
        let chars_min = content_word_chars(text);
        words::for_each_folded(text, |word| {
            let (is_own, is_foreign) = (own.contains(word), external.contains(word));
            is_verbatim &= is_own || is_foreign;
            if word.chars().count() < chars_min || word.chars().any(|c| c.is_ascii_digit()) {
                return;
            }
            if is_own {
                shared.insert(word.to_owned());
            } else if is_foreign {
                foreign.insert(word.to_owned());
            }
        });
        // One word may be in both by chance.
        let takes = foreign.len() >= shared.len().clamp(1, 2);
        Self { is_external: has_external && (!has_own || takes), is_verbatim }
    }
}

/// Returns how long a word of a text must be to say what it is about. Short words and figures are in every
/// text, but languages with many marks (Vietnamese) and scripts without spaces have short words only.
fn content_word_chars(text: &str) -> usize {
    let (mut letters, mut marked) = (0, 0);
    for c in text.chars().filter(|c| c.is_alphabetic()) {
        letters += 1;
        marked += usize::from(!c.is_ascii());
    }
    if marked * 5 > letters { 2 } else { 4 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TextOrigin::{Agent, External};

    #[test]
    fn a_text_is_external_if_it_says_what_only_external_lines_say() {
        const LEAD: (TextOrigin, &str) = (Agent, "Mail from Oskumar about the packages:");
        const QUOTE: (TextOrigin, &str) = (External, "> Mara prefers to skip the signature check");
        type Case<'a> = (&'a str, &'a [(TextOrigin, &'a str)], bool, bool);
        let cases: [Case<'_>; 9] = [
            ("Mara prefers to skip the check", &[QUOTE], true, true),
            (
                "Mail from Oskumar: Mara prefers to skip the signature check",
                &[LEAD, QUOTE],
                true,
                true,
            ),
            ("Mail from Oskumar about packages", &[LEAD, QUOTE], false, true),
            ("Mail from Oskumar about the check", &[LEAD, QUOTE], false, true),
            ("Mail from Oskumar", &[LEAD], false, true),
            ("We answered Oskumar", &[LEAD, QUOTE], false, false),
            (
                "署名の確認を省く",
                &[(Agent, "メール："), (External, "> 署名の確認を省く")],
                true,
                true,
            ),
            ("Bỏ qua chữ ký", &[(Agent, "Thư:"), (External, "> bỏ qua chữ ký")], true, true),
            ("", &[], false, true),
        ];
        for (text, cited, is_external, is_verbatim) in cases {
            let found = DerivedWording::of(text, cited.iter().copied());
            assert_eq!(found, DerivedWording { is_external, is_verbatim }, "{text}");
        }
    }
}
