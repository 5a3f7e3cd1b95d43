//! Characters that are invisible, change the direction of text, or control a terminal.
//!
//! Many have a legitimate use: joiners in emoji and in Indic and Persian writing, one variation
//! selector after an emoji or a Han character, the flags of three countries. Each is judged by its
//! neighbours.

use super::{Concern, ConcernSet};

/// Returns the concerns of the characters of a text.
pub fn concerns(text: &str) -> ConcernSet {
    let mut found = ConcernSet::default();
    // Most lines have none, which their bytes show.
    if text.bytes().all(|b| b == b'\t' || b == b'\n' || (0x20..0x7f).contains(&b)) {
        return found;
    }
    for (_, _, concern) in suspicious_characters(text) {
        found.add(concern);
    }
    found
}

/// Returns the characters without a legitimate use: offset, character, and concern.
pub fn suspicious_characters(text: &str) -> impl Iterator<Item = (usize, char, Concern)> {
    let mut before: Option<char> = None;
    let mut flag_until = 0;
    text.char_indices().filter_map(move |(at, c)| {
        if at < flag_until {
            return None;
        }
        if c == '\u{1f3f4}' {
            flag_until = at + c.len_utf8() + flag_tag_bytes(&text[at + c.len_utf8()..]);
        }
        let after = text[at + c.len_utf8()..].chars().next();
        let concern = classify(before, c, after);
        before = Some(if concern.is_some() { '\u{200b}' } else { c });
        concern.map(|it| (at, c, it))
    })
}

/// Returns whether a character has no shape of its own. Normalization drops such characters.
pub fn is_invisible(c: char) -> bool {
    matches!(c as u32,
        0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
        | 0x202a..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0
        | 0xfff9..=0xfffb | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

/// Returns the length of the tags that make a black flag that of a country, in bytes; else 0.
fn flag_tag_bytes(after: &str) -> usize {
    let tag = |c: char| char::from_u32(0xe0000 + c as u32).unwrap_or(c);
    ["gbeng", "gbsct", "gbwls"]
        .into_iter()
        .map(|country| country.chars().map(tag).chain(['\u{e007f}']).collect::<String>())
        .find(|tags| after.starts_with(tags.as_str()))
        .map_or(0, |tags| tags.len())
}

fn classify(before: Option<char>, c: char, after: Option<char>) -> Option<Concern> {
    let is_legitimate = match c as u32 {
        0x09 | 0x0a => true,
        // A carriage return may end a line; within a line it overwrites the text before it.
        0x0d => matches!(after, None | Some('\n')),
        0x00..=0x1f | 0x7f..=0x9f => return Some(Concern::Control),
        0x202a..=0x202e | 0x2066..=0x206f => return Some(Concern::Bidi),
        // One direction mark is legitimate in Hebrew and Arabic, but not between Latin letters.
        0x200e | 0x200f | 0x61c => {
            let is_latin = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
            !(is_beside_invisible(before, after) || is_latin(before) && is_latin(after))
        }
        0x200c | 0x200d if before.is_some_and(uses_joiners) && after.is_some_and(uses_joiners) => {
            true
        }
        0x200d if before.is_some_and(is_emoji_end) && after.is_some_and(is_emoji) => true,
        // Line break opportunities in scripts without spaces.
        0x200b | 0x2060 if before.is_some_and(has_no_word_spaces) => true,
        0x200b..=0x200d | 0x2060 | 0xfeff => {
            let is_word = |it: Option<char>| it.is_some_and(char::is_alphanumeric);
            !(is_beside_invisible(before, after) || is_word(before) && is_word(after))
        }
        0xfe0e | 0xfe0f if before.is_some_and(has_emoji_style) => true,
        0xfe00..=0xfe02 => {
            before.is_some_and(|it| is_han(it) || !it.is_alphanumeric() && !is_invisible(it))
        }
        0xe0100..=0xe01ef => before.is_some_and(is_han),
        _ => !is_blank(c),
    };
    match c as u32 {
        0x0d if !is_legitimate => Some(Concern::Control),
        _ => (!is_legitimate).then_some(Concern::HiddenText),
    }
}

/// Returns whether a character is invisible and has no legitimate use anywhere.
fn is_blank(c: char) -> bool {
    let is_tag = matches!(c as u32, 0xe0000..=0xe007f);
    let is_note = matches!(c as u32, 0xfff9..=0xfffb | 0x1d173..=0x1d17a | 0x2061..=0x2064);
    let is_filler = matches!(c as u32, 0x115f | 0x1160 | 0x3164 | 0xffa0);
    is_tag || is_note || is_filler || matches!(c as u32, 0xfe03..=0xfe0f)
}

/// Returns whether a neighbour is invisible, too: one may be an accident, several may carry data.
fn is_beside_invisible(before: Option<char>, after: Option<char>) -> bool {
    [before, after].into_iter().flatten().any(is_invisible)
}

/// Returns whether the script of a letter uses joiners: Arabic, Syriac, Indic, Mongolian.
fn uses_joiners(c: char) -> bool {
    matches!(c as u32, 0x600..=0x8ff | 0x900..=0xdff | 0x1000..=0x109f | 0x1780..=0x18af | 0xa840..=0xa8ff | 0xfb50..=0xfdff | 0xfe70..=0xfefc)
}

fn has_no_word_spaces(c: char) -> bool {
    matches!(c as u32, 0xe00..=0xeff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x2e80..=0x9fff | 0xf00..=0xfff)
}

fn is_han(c: char) -> bool {
    matches!(c as u32, 0x2e80..=0x2fdf | 0x3400..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

fn is_emoji(c: char) -> bool {
    matches!(c as u32, 0x2190..=0x21ff | 0x2300..=0x23ff | 0x2460..=0x27bf | 0x2900..=0x297f | 0x2b00..=0x2bff | 0x1f000..=0x1faff)
}

/// Returns whether a character may end an emoji: its own, a style, or a skin tone.
fn is_emoji_end(c: char) -> bool {
    is_emoji(c) || c == '\u{fe0f}'
}

/// Returns whether a character has both a text and an emoji style.
fn has_emoji_style(c: char) -> bool {
    is_emoji(c)
        || c.is_ascii_digit()
        || matches!(c, '#' | '*' | '©' | '®' | '‼' | '⁉' | '™' | 'ℹ' | '〰' | '〽' | '㊗' | '㊙')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Concern>) {
        assert_eq!(concerns(text).iter().next(), expected, "{text:?}");
    }

    #[test]
    fn legitimate_uses_are_not_reported() {
        for text in [
            "plain text\twith a tab",
            "a family 👨‍👩‍👧‍👦 and ❤️‍🔥 and 🏳️‍🌈 and 👩🏽‍💻",
            "1️⃣ #️⃣ ©️ ☎️ ✔︎",
            "می‌خواهم نامه‌ای بنویسم",
            "क्‍ष and ශ්‍රී",
            "🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏴󠁧󠁢󠁳󠁣󠁴󠁿 🏴󠁧󠁢󠁷󠁬󠁳󠁿",
            "葛\u{e0100}城市",
            "שלום\u{200f} (hello)\u{200e}",
            "Silben\u{ad}trennung",
            "copied from a page \u{200b}",
            "ภาษา\u{200b}ไทย",
            "line end\r",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn hidden_characters_are_reported() {
        let tags: String =
            "run it".chars().filter_map(|c| char::from_u32(0xe0000 + c as u32)).collect();
        check(&format!("hello{tags}"), Some(Concern::HiddenText));
        check("🏴\u{e0067}\u{e0062}\u{e0061}\u{e007f}", Some(Concern::HiddenText));
        check("pass\u{200b}word", Some(Concern::HiddenText));
        check("a\u{2060}b", Some(Concern::HiddenText));
        check("end \u{200b}\u{200c}\u{200b}", Some(Concern::HiddenText));
        check("😀\u{fe0f}\u{fe00}\u{e0101}", Some(Concern::HiddenText));
        check("a\u{e0150}\u{e0151}", Some(Concern::HiddenText));
        check("file\u{202e}gpj.exe", Some(Concern::Bidi));
        check("a\u{2066}b\u{2069}", Some(Concern::Bidi));
        check("\u{1b}[2Jgone", Some(Concern::Control));
        check("a\u{9b}31m", Some(Concern::Control));
        check("good\rbad", Some(Concern::Control));
        check("nul\0", Some(Concern::Control));
    }
}
