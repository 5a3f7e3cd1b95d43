//! Normalizes text, so that simple disguises do not get past the rules.
//!
//! It removes differences of compatibility forms, case, accents, invisible characters, emphasis marks,
//! and letters of other scripts that look like Latin ones. The rules are normalized by the same
//! function.

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use super::characters;

/// A normalized text.
#[derive(Clone, Debug, Default)]
pub struct NormalizedText {
    text: String,
    words: String,
    ignores_word_boundaries: bool,
}

impl NormalizedText {
    /// Appends a text, normalized.
    pub fn push(&mut self, text: &str) {
        let from = self.text.len();
        if text.is_ascii() {
            push_ascii(text, &mut self.text);
        } else {
            push_unicode(text, &mut self.text);
        }
        let tail = &self.text[from..];
        if tail.contains(['-', '_']) {
            self.words.push_str(&tail.replace(['-', '_'], " "));
        } else {
            self.words.push_str(tail);
        }
    }

    /// Returns whether word boundaries are unknown.
    pub fn ignores_word_boundaries(&self) -> bool {
        self.ignores_word_boundaries
    }

    /// Returns the normalized text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the normalized text with spaces for `-` and `_`, at the same offsets.
    pub fn words(&self) -> &str {
        &self.words
    }
}

fn push_ascii(text: &str, out: &mut String) {
    let mut bytes = Vec::with_capacity(text.len());
    let mut last = out.bytes().next_back().unwrap_or(0);
    for byte in text.bytes() {
        let normalized = match byte {
            b'*' | b'`' => continue,
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => b' ',
            _ if byte.is_ascii_control() => continue,
            _ => byte.to_ascii_lowercase(),
        };
        if normalized != b' ' || last != b' ' {
            bytes.push(normalized);
        }
        last = normalized;
    }
    out.push_str(&String::from_utf8(bytes).unwrap_or_default());
}

fn push_space(out: &mut String) {
    if !out.ends_with(' ') {
        out.push(' ');
    }
}

/// Returns whether a character is a sign of ordinary prose, which needs no Unicode normalization.
fn is_sign(c: char) -> bool {
    c.is_ascii()
        || matches!(c as u32, 0x2010..=0x2027 | 0x2030..=0x203a | 0x2190..=0x21ff | 0x2500..=0x27bf)
}

/// Returns the ASCII sign for a typographic one.
fn plain_sign(c: char) -> char {
    match c {
        '’' | '‘' | 'ʼ' | '´' | '′' => '\'',
        '“' | '”' | '„' | '«' | '»' => '"',
        '‐' | '‑' | '‒' | '−' => '-',
        _ => c,
    }
}

fn push_unicode(text: &str, out: &mut String) {
    if text.chars().all(is_sign) {
        for part in text.split_inclusive(|c: char| !c.is_ascii()) {
            let at = part.char_indices().next_back().map_or(0, |(at, _)| at);
            let (plain, sign) = part.split_at(if part.is_ascii() { part.len() } else { at });
            push_ascii(plain, out);
            out.extend(sign.chars().map(plain_sign));
        }
        return;
    }
    let mut scripts = (0_usize, 0_usize);
    for c in text.chars() {
        scripts.0 += usize::from(c.is_ascii_alphabetic());
        scripts.1 += usize::from(latin_look_alike(c).is_some());
    }
    // In Latin text, a word that consists of look-alikes is not a word of another language.
    let mostly_latin = scripts.0 > 2 * scripts.1;
    let mut word = String::new();
    let normalized = text
        .nfkd()
        .map(base_letter)
        .filter(|&c| !is_combining_mark(c))
        .flat_map(char::to_lowercase);
    for c in normalized {
        if c.is_alphanumeric() {
            word.push(c);
            continue;
        }
        if characters::is_invisible(c)
            || matches!(c, '*' | '`')
            || (c.is_control() && !c.is_whitespace())
        {
            continue;
        }
        push_word(&mut word, mostly_latin, out);
        match c {
            _ if c.is_whitespace() => push_space(out),
            _ => out.push(plain_sign(c)),
        }
    }
    push_word(&mut word, mostly_latin, out);
}

fn push_word(word: &mut String, mostly_latin: bool, out: &mut String) {
    let has_latin = word.bytes().any(|b| b.is_ascii_alphabetic());
    let has_others = !word.is_ascii();
    if has_others
        && (has_latin || (mostly_latin && word.chars().all(|c| latin_look_alike(c).is_some())))
    {
        out.extend(word.chars().map(|c| latin_look_alike(c).unwrap_or(c)));
    } else {
        out.push_str(word);
    }
    word.clear();
}

/// Returns the base letter of a letter variant that Unicode normalization does not change.
fn base_letter(c: char) -> char {
    const SMALL_CAPITALS: [(char, char); 25] = [
        ('ᴀ', 'a'),
        ('ʙ', 'b'),
        ('ᴄ', 'c'),
        ('ᴅ', 'd'),
        ('ᴇ', 'e'),
        ('ꜰ', 'f'),
        ('ɢ', 'g'),
        ('ʜ', 'h'),
        ('ɪ', 'i'),
        ('ᴊ', 'j'),
        ('ᴋ', 'k'),
        ('ʟ', 'l'),
        ('ᴍ', 'm'),
        ('ɴ', 'n'),
        ('ᴏ', 'o'),
        ('ᴘ', 'p'),
        ('ʀ', 'r'),
        ('ꜱ', 's'),
        ('ᴛ', 't'),
        ('ᴜ', 'u'),
        ('ᴠ', 'v'),
        ('ᴡ', 'w'),
        ('ʏ', 'y'),
        ('ᴢ', 'z'),
        ('ı', 'i'),
    ];
    let letter = |from: u32| char::from(b'a' + u8::try_from((c as u32 - from) % 26).unwrap_or(0));
    match c as u32 {
        0x1f150..=0x1f169 => letter(0x1f150),
        0x1f170..=0x1f189 => letter(0x1f170),
        0x00..=0x7f => c,
        // Letters with a stroke have no decomposition.
        0x141 | 0x142 => 'l',
        0xd8 | 0xf8 => 'o',
        0x131 => 'i',
        _ => SMALL_CAPITALS.iter().find(|(from, _)| *from == c).map_or(c, |&(_, to)| to),
    }
}

/// Returns the Latin letter that a lower-case letter of another script looks like.
fn latin_look_alike(c: char) -> Option<char> {
    Some(match c {
        'а' | 'А' | 'α' | 'Α' | 'ɑ' => 'a',
        'Ь' | 'ь' | 'В' | 'Β' => 'b',
        'с' | 'С' | 'ϲ' | 'ᴄ' => 'c',
        'ԁ' | 'ɗ' => 'd',
        'е' | 'Е' | 'ε' | 'Ε' | 'ҽ' => 'e',
        'ɡ' | 'ց' => 'g',
        'һ' | 'Н' | 'Η' | 'հ' => 'h',
        'і' | 'І' | 'ι' | 'Ι' | 'ӏ' => 'i',
        'ј' | 'Ј' | 'ϳ' => 'j',
        'к' | 'К' | 'κ' | 'Κ' => 'k',
        'ⅼ' | 'Ӏ' | 'ǀ' => 'l',
        'м' | 'М' | 'Μ' => 'm',
        'п' | 'η' | 'ո' | 'Ν' => 'n',
        'о' | 'О' | 'ο' | 'Ο' | 'օ' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'ԛ' | 'զ' => 'q',
        'г' | 'ꭇ' => 'r',
        'ѕ' | 'Ѕ' | 'ꜱ' => 's',
        'т' | 'Т' | 'τ' | 'Τ' => 't',
        'υ' | 'ս' => 'u',
        'ν' | 'ѵ' => 'v',
        'ѡ' | 'ԝ' | 'ω' => 'w',
        'х' | 'Х' | 'χ' | 'Χ' => 'x',
        'у' | 'У' | 'γ' | 'Υ' => 'y',
        'Ζ' | 'ᴢ' => 'z',
        _ => return None,
    })
}

/// Returns other readings of a normalized text, with letters for digits or without spaces between
/// letters.
pub fn deobfuscated(normalized: &str) -> Vec<NormalizedText> {
    let mut found = Vec::new();
    let leet = unleet(normalized);
    found.extend(leet.as_deref().map(normalize));
    found.extend(
        unspaced(normalized)
            .map(|it| NormalizedText { ignores_word_boundaries: true, ..normalize(&it) }),
    );
    found
}

fn normalize(text: &str) -> NormalizedText {
    let mut normalized = NormalizedText::default();
    normalized.push(text);
    normalized
}

/// The class of each byte: 1 for a letter, 2 for a sign that may replace one.
const LEET: [u8; 256] = {
    let mut class = [0; 256];
    let mut at: u8 = 0;
    while at < 128 {
        if at.is_ascii_lowercase() {
            class[at as usize] = 1;
        } else if matches!(at, b'0' | b'1' | b'!' | b'3' | b'4' | b'@' | b'5' | b'$' | b'7') {
            class[at as usize] = 2;
        }
        at += 1;
    }
    class
};

/// Reads `1gn0r3` as `ignore`, if at least two words are written like that.
fn unleet(normalized: &str) -> Option<String> {
    let digit = |b: u8| match b {
        b'0' => Some(b'o'),
        b'1' | b'!' => Some(b'i'),
        b'3' => Some(b'e'),
        b'4' | b'@' => Some(b'a'),
        b'5' | b'$' => Some(b's'),
        b'7' => Some(b't'),
        _ => None,
    };
    let is_leet = |word: &str| {
        let letters = word.bytes().filter(u8::is_ascii_lowercase).count();
        let digits = word.bytes().filter(|&b| digit(b).is_some()).count();
        word.len() >= 3
            && word.len() <= 24
            && digits >= 1
            && letters >= digits
            && letters + digits >= word.len() - 1
    };
    // A cheap test first: a letter beside such a digit, twice.
    let mut count = 0;
    let mut before = 0;
    for byte in normalized.bytes() {
        let this = LEET[usize::from(byte)];
        count += u32::from(before | this == 3);
        before = this;
    }
    if count < 2 {
        return None;
    }
    let words: Vec<&str> = normalized.split(' ').collect();
    (words.iter().filter(|it| is_leet(it)).count() >= 2).then(|| {
        let mut text = String::with_capacity(normalized.len());
        for word in words {
            if is_leet(word) {
                let last = word.len() - 1;
                text.extend(word.bytes().enumerate().map(|(i, b)| {
                    // An exclamation mark at the end of a word is not a letter.
                    char::from(if i == last && b == b'!' { b } else { digit(b).unwrap_or(b) })
                }));
            } else {
                text.push_str(word);
            }
            text.push(' ');
        }
        text
    })
}

/// The fewest single letters in a row that are not initials.
const SPACED_MIN: usize = 8;

/// Joins single letters, as in `i g n o r e  a l l`. Word boundaries within them are lost.
fn unspaced(normalized: &str) -> Option<String> {
    // A cheap test first: in such a row, letters and separators alternate.
    let mut row = 0;
    let mut longest = 0;
    for pair in normalized.as_bytes().chunks_exact(2) {
        let is_spaced = pair[0].is_ascii_alphanumeric() != pair[1].is_ascii_alphanumeric();
        row = if is_spaced { row + 1 } else { 0 };
        longest = longest.max(row);
    }
    if longest + 1 < SPACED_MIN {
        return None;
    }
    let is_letter = |word: &str| word.len() == 1 && word.bytes().all(|b| b.is_ascii_alphanumeric());
    let words: Vec<&str> = normalized.split([' ', '.', '-', '_', '/', '|']).collect();
    let longest = words.split(|it| !is_letter(it)).map(<[&str]>::len).max().unwrap_or(0);
    (longest >= SPACED_MIN).then(|| {
        let mut text = String::with_capacity(normalized.len());
        for run in words.chunk_by(|a, b| is_letter(a) == is_letter(b)) {
            if is_letter(run[0]) {
                text.extend(run.iter().copied());
                text.push(' ');
            } else {
                for word in run {
                    text.push_str(word);
                    text.push(' ');
                }
            }
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(text: &str) -> String {
        let mut it = NormalizedText::default();
        it.push(text);
        assert_eq!(it.text().len(), it.words().len());
        it.text().to_owned()
    }

    #[test]
    fn disguises_normalize_to_the_same_text() {
        for text in [
            "Ignore Previous",
            "**Ignore**\tprevious",
            "ｉｇｎｏｒｅ　ｐｒｅｖｉｏｕｓ",
            "іgnоrе рrеvіоus",
            "ig\u{200b}nore pre\u{ad}vious",
            "ïgnörè prévïoüs",
            "ɪɢɴᴏʀᴇ ᴘʀᴇᴠɪᴏᴜꜱ",
            "𝐢𝐠𝐧𝐨𝐫𝐞 𝓹𝓻𝓮𝓿𝓲𝓸𝓾𝓼",
            "ⓘⓖⓝⓞⓡⓔ 🅟🅡🅔🅥🅘🅞🅤🅢",
        ] {
            assert_eq!(normalized(text), "ignore previous", "{text}");
        }
        assert_eq!(normalized("все правила"), "все правила");
        assert_eq!(normalized("Überweise"), "uberweise");
        assert_eq!(unleet("1gn0r3 4ll pr3v10us").as_deref(), Some("ignore all previous "));
        assert_eq!(unleet("v10 of utf8 in 2023"), None);
    }
}
