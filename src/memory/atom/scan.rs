//! The scanner that finds atoms in one pass over a line.

use super::{Atom, AtomKind, CURRENCIES, CURRENCY_CODES};
use crate::text::{calendar, spacing};

/// The longest token that is scanned as one atom.
const TOKEN_BYTES_MAX: usize = 512;

/// Words in capitals at the start of a sentence that are not names.
const NOT_NAMES: [&str; 3] = ["I", "A", "OK"];

pub(super) struct AtomScanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    found: Vec<Atom>,
    /// Whether the next word opens a sentence, so that its capital proves nothing.
    at_sentence_start: bool,
}

impl<'t> AtomScanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, bytes: text.as_bytes(), found: Vec::new(), at_sentence_start: true }
    }

    /// Returns the atoms in order.
    pub(super) fn run(mut self) -> Vec<Atom> {
        let mut at = 0;
        while at < self.bytes.len() {
            at = self.scan_at(at);
        }
        self.found
    }

    /// Scans at `at` and returns where to continue.
    fn scan_at(&mut self, at: usize) -> usize {
        match self.bytes[at] {
            b'`' => self.read_code(at),
            b'0'..=b'9' => self.read_number(at, None),
            b'#' | b'@' if self.starts_tag(at) => self.read_tag(at),
            b'/' | b'~' | b'.' if self.starts_path(at) => self.read_word(at),
            b'.' | b'!' | b'?' | b':' | b';' => {
                self.at_sentence_start = true;
                at + 1
            }
            b'(' | b'"' | b'[' | b'|' | b'*' | b'>' => {
                // An opening mark often opens a sentence too, so a capital after it proves nothing.
                self.at_sentence_start = true;
                at + 1
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.read_word(at),
            byte if byte < 0x80 => {
                if !matches!(byte, b' ' | b'\'' | b'<') {
                    self.at_sentence_start = self.at_sentence_start && !matches!(byte, b',' | b'-');
                }
                if byte == b'$' { self.read_money(at) } else { at + 1 }
            }
            _ => {
                let c = self.char_at(at);
                if CURRENCIES.iter().any(|(sign, _)| sign.starts_with(c)) {
                    self.read_money(at)
                } else if c.is_alphanumeric() {
                    self.read_word(at)
                } else {
                    if matches!(
                        c,
                        '…' | '。' | '！' | '？' | '“' | '„' | '«' | '¿' | '¡' | '—' | '–'
                    ) {
                        self.at_sentence_start = true;
                    }
                    at + c.len_utf8()
                }
            }
        }
    }

    fn char_at(&self, at: usize) -> char {
        self.text[at..].chars().next().unwrap_or(' ')
    }

    fn push(&mut self, kind: AtomKind, start: usize, end: usize) {
        self.push_date(kind, start, end, None);
    }

    fn push_date(&mut self, kind: AtomKind, start: usize, end: usize, date: Option<String>) {
        self.found.push(Atom { kind, start, end, date: date.map(String::into_boxed_str) });
        self.at_sentence_start = false;
    }

    /// Reads a code span; an unpaired backtick is skipped.
    fn read_code(&mut self, at: usize) -> usize {
        /// A span longer than this is a broken pair, not a name.
        const SPAN_BYTES_MAX: usize = 400;
        let width = self.bytes[at..].iter().take_while(|&&b| b == b'`').count();
        let inner = at + width;
        let limit = self.bytes.len().min(inner + SPAN_BYTES_MAX);
        let mut close = inner;
        while close < limit {
            if self.bytes[close] == b'`' {
                let run = self.bytes[close..].iter().take_while(|&&b| b == b'`').count();
                if run == width {
                    if self.text[inner..close].trim().is_empty() {
                        break;
                    }
                    self.push(AtomKind::Code, at, close + width);
                    return close + width;
                }
                close += run;
            } else {
                close += 1;
            }
        }
        inner
    }

    fn starts_tag(&self, at: usize) -> bool {
        let before_ok = at == 0 || !is_word_byte(self.bytes[at - 1]);
        let next = self.bytes.get(at + 1).copied().unwrap_or(b' ');
        before_ok
            && (next.is_ascii_digit() || (self.bytes[at] == b'@' && next.is_ascii_alphabetic()))
    }

    /// Reads `#412` or `@handle`.
    fn read_tag(&mut self, at: usize) -> usize {
        let rest = &self.text[at + 1..];
        let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
        let tag = &rest[..rest.find(|c| !goes_on(c)).unwrap_or(rest.len())];
        let end = at + 1 + tag.trim_end_matches(['.', '-', '/']).len();
        self.push(AtomKind::Identifier, at, end);
        end.max(at + 1)
    }

    fn starts_path(&self, at: usize) -> bool {
        let before_ok = at == 0
            || matches!(self.bytes[at - 1], b' ' | b'(' | b'"' | b'\'' | b'<' | b'=' | b'\t');
        let rest = &self.bytes[at..];
        let lead = if rest.starts_with(b"../") {
            3
        } else if rest.starts_with(b"./") || rest.starts_with(b"~/") {
            2
        } else if rest[0] == b'/' || rest[0] == b'.' {
            1
        } else {
            return false;
        };
        before_ok
            && rest.get(lead).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_' || *b == b'.')
    }

    fn read_money(&mut self, at: usize) -> usize {
        let after = at + self.char_at(at).len_utf8();
        let digits = after + usize::from(self.bytes.get(after) == Some(&b' '));
        if self.bytes.get(digits).is_some_and(u8::is_ascii_digit) {
            self.read_number(digits, Some(at))
        } else {
            after
        }
    }

    /// Scans a number at `at`; `sign` is the offset of a currency sign before it.
    fn read_number(&mut self, at: usize, sign: Option<usize>) -> usize {
        let start = sign.unwrap_or(at);
        let digits_end = self.digits_end(at);
        let digits = &self.text[at..digits_end];
        if sign.is_some() {
            let end = self.magnitude_end(digits_end);
            self.push(AtomKind::Money, start, end);
            return end;
        }
        if let Some(date) = spacing::east_asian_date(&self.text[at..]) {
            let end = at + date.length;
            let named = |day| Some(format_date(date.year, date.month, day));
            let first_end = date.until.map_or(end, |it| at + it.0);
            self.push_date(AtomKind::Date, at, first_end, named(date.day));
            if let Some((_, last)) = date.until {
                self.push_date(AtomKind::Date, first_end, end, named(last));
            }
            return end;
        }
        if let Some(date) = parse_iso_date(digits) {
            // `2026-04-02-standup` is the name of a log, and still that day.
            self.push_date(AtomKind::Date, start, start + 10, Some(date));
            return start + 10;
        }
        let tail = &self.text[digits_end..];
        if let Some(mark) = tail.strip_prefix([' ', '\u{a0}']).unwrap_or(tail).chars().next()
            && matches!(mark, '%' | '٪' | '％')
        {
            let end = digits_end + (tail.len() - tail.trim_start_matches([' ', '\u{a0}']).len());
            let end = end + mark.len_utf8();
            self.push(AtomKind::Percent, start, end);
            return end;
        }
        let letters = self.letters_end(digits_end);
        if letters > digits_end {
            return self.read_number_with_letters(at, digits_end, letters);
        }
        if let Some(end) = self.read_day_before_month(at, digits_end) {
            return end;
        }
        if let Some(end) = self.currency_end(digits_end) {
            self.push(AtomKind::Money, start, end);
            return end;
        }
        self.push(number_kind(digits), start, digits_end);
        digits_end
    }

    /// Returns the end of digits with single separators between them: `1,200.5`, `10:30`, `4/5`.
    fn digits_end(&self, at: usize) -> usize {
        let mut end = at;
        while let Some(&byte) = self.bytes.get(end) {
            let next_digit = self.bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
            let joins = matches!(byte, b'.' | b',' | b':' | b'/' | b'-') && next_digit;
            if !(byte.is_ascii_digit() || joins) {
                break;
            }
            end += 1;
        }
        // A range `420-475` or a ratio `4/5` is two numbers; a date or a phone number is one.
        let run = &self.bytes[at..end];
        let cut = |sep: u8| {
            run.iter().position(|&b| b == sep).filter(|&first| !run[first + 1..].contains(&sep))
        };
        match cut(b'-').or_else(|| cut(b'/')) {
            Some(len) => at + len,
            None => end,
        }
    }

    fn letters_end(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        at + rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
    }

    /// Returns the end of a magnitude after an amount: `2M`, `4.1 million`, `3bn`.
    fn magnitude_end(&self, at: usize) -> usize {
        let skip = at + usize::from(self.bytes.get(at) == Some(&b' '));
        let end = self.letters_end(skip);
        let word = self.text[skip..end].to_lowercase();
        let known = ["k", "m", "mm", "bn", "b", "tn"].contains(&word.as_str()) && skip == at
            || ["million", "billion", "thousand", "bn", "mio", "mrd"].contains(&word.as_str());
        if known { end } else { at }
    }

    fn read_number_with_letters(&mut self, at: usize, digits_end: usize, letters: usize) -> usize {
        let suffix = &self.text[digits_end..letters];
        let ordinal = ["st", "nd", "rd", "th"].contains(&suffix);
        if ordinal && let Some(end) = self.read_day_before_month_at(at, digits_end, letters) {
            return end;
        }
        if (suffix.eq_ignore_ascii_case("am") || suffix.eq_ignore_ascii_case("pm"))
            && self.text[at..digits_end].len() <= 5
        {
            self.push(AtomKind::Time, at, letters);
            return letters;
        }
        let all_letters = suffix.chars().all(char::is_alphabetic);
        let kind = if all_letters && suffix.chars().count() <= 3 {
            AtomKind::Number
        } else {
            AtomKind::Identifier
        };
        // `3h-5h` or `9c1f-22`: an identifier continues across hyphens and dots between letters.
        let end = if kind == AtomKind::Identifier { self.token_end(at).0 } else { letters };
        self.push(kind, at, end);
        end
    }

    fn read_day_before_month(&mut self, at: usize, digits_end: usize) -> Option<usize> {
        let after = digits_end + usize::from(self.bytes.get(digits_end) == Some(&b'.'));
        self.read_day_before_month_at(at, digits_end, after)
    }

    /// Reads `2 April 2026`, `2. April`, `2nd of April`, `2 de abril de 2026`.
    fn read_day_before_month_at(
        &mut self,
        at: usize,
        digits_end: usize,
        from: usize,
    ) -> Option<usize> {
        let day: u32 = self.text[at..digits_end].parse().ok().filter(|d| (1..=31).contains(d))?;
        let mut next = self.skip_space(from)?;
        let mut word_end = self.letters_end(next);
        if ["of", "de", "di"].contains(&&self.text[next..word_end]) {
            next = self.skip_space(word_end)?;
            word_end = self.letters_end(next);
        }
        let word = &self.text[next..word_end];
        let month = calendar::month_number(word)?;
        // `3 out of 6`, `2 set up`, `5 may fail`: months in some language, followed by an English word.
        let follows = self.text[word_end..].strip_prefix(' ').unwrap_or_default();
        let is_plain = ["out", "set", "ago", "may", "march"].contains(&word)
            && follows.starts_with(char::is_lowercase)
            && !follows.starts_with("de ");
        if is_plain {
            return None;
        }
        let (end, year) = self.read_year(word_end);
        self.push_date(AtomKind::Date, at, end, Some(format_date(year, month, day)));
        Some(end)
    }

    fn skip_space(&self, at: usize) -> Option<usize> {
        (self.bytes.get(at) == Some(&b' ')).then_some(at + 1)
    }

    /// Reads a year after a month or a day of it, with `,`, `de` or nothing between.
    fn read_year(&self, at: usize) -> (usize, Option<u32>) {
        let rest = &self.text[at..];
        let rest = rest.strip_prefix(['.', ',']).unwrap_or(rest);
        let Some(rest) = rest.strip_prefix(' ') else { return (at, None) };
        let rest = rest.strip_prefix("de ").unwrap_or(rest);
        let year = rest.get(..4).filter(|y| y.bytes().all(|b| b.is_ascii_digit()));
        let ends = rest.get(4..).is_none_or(|r| !r.starts_with(|c: char| c.is_alphanumeric()));
        match year.and_then(|y| y.parse().ok()).filter(|y| ends && (1900..2200).contains(y)) {
            Some(year) => (self.text.len() - rest.len() + 4, Some(year)),
            None => (at, None),
        }
    }

    fn currency_end(&self, at: usize) -> Option<usize> {
        let at = self.magnitude_end(at);
        let rest = &self.text[at..];
        let gap = rest.len() - rest.trim_start_matches([' ', '\u{a0}']).len();
        let tail = &rest[gap..];
        let sign = tail.chars().next()?;
        if CURRENCIES.iter().any(|(s, _)| s.starts_with(sign)) {
            let end = at + gap + sign.len_utf8();
            // `5 $HOME`: a sign followed by a letter belongs to that word.
            return (!self.text[end..].starts_with(|c: char| c.is_alphanumeric())).then_some(end);
        }
        let end = self.letters_end(at + gap);
        let code = &self.text[at + gap..end];
        (code.len() == 3 && CURRENCY_CODES.iter().any(|c| c.eq_ignore_ascii_case(code)))
            .then_some(end)
    }

    /// Returns the end of a token (letters, digits, `_`, and marks inside it) and its shape.
    fn token_end(&self, at: usize) -> (usize, TokenShape) {
        let mut shape = TokenShape::default();
        let mut previous = ' ';
        let mut end = at;
        let mut chars = self.text[at..].char_indices().peekable();
        while let Some((offset, c)) = chars.next() {
            // Endlessly joined words are scanned again from each word, so each scan is bounded.
            if offset > TOKEN_BYTES_MAX {
                break;
            }
            let joins = matches!(c, '-' | '.' | '/' | ':' | '~' | '\\');
            if !(c.is_alphanumeric() || c == '_') {
                let next_ok = chars.peek().is_some_and(|&(_, n)| {
                    n.is_alphanumeric() || n == '_' || (matches!(n, '.' | '/' | '~') && c != ':')
                });
                let colon_ok =
                    c != ':' || (shape.digit && chars.peek().is_some_and(|p| p.1.is_ascii_digit()));
                if !joins || !next_ok || !colon_ok {
                    break;
                }
            }
            shape.add_char(previous, c);
            previous = c;
            end = at + offset + c.len_utf8();
        }
        (end, shape)
    }

    /// Scans a token that begins with a letter, `_`, or the start of a path.
    fn read_word(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        if rest.starts_with("http://") || rest.starts_with("https://") || rest.starts_with("www.") {
            let end = at + url_len(rest);
            self.push(AtomKind::Url, at, end);
            return end;
        }
        if let Some(end) = self.plain_word_end(at) {
            return self.read_plain_word(at, end);
        }
        let (end, shape) = self.token_end(at);
        let token = &self.text[at..end];
        if end == at {
            return at + self.char_at(at).len_utf8();
        }
        if shape.is_path(token) {
            self.push(AtomKind::Path, at, end);
            return end;
        }
        if shape.is_version(token) {
            self.push(AtomKind::Version, at, end);
            return end;
        }
        if shape.is_identifier() {
            self.push(AtomKind::Identifier, at, end);
            return end;
        }
        // Not a single token: take the letters alone; the marks are punctuation.
        self.read_plain_word(at, self.letters_end(at).max(at + self.char_at(at).len_utf8()))
    }

    /// Returns the end of a plain word: ASCII letters without a camel-case hump and without a
    /// joining mark after it. Most words are plain.
    fn plain_word_end(&self, at: usize) -> Option<usize> {
        let rest = &self.bytes[at..];
        let len = rest.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let ends = rest.get(len).is_none_or(|&b| {
            !is_word_byte(b) && !matches!(b, b'-' | b'.' | b'/' | b':' | b'~' | b'\\')
        });
        let word = &rest[..len];
        let hump = || {
            word.iter()
                .zip(&word[1..])
                .any(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase())
        };
        (len > 0 && ends && !hump()).then_some(at + len)
    }

    /// Scans a word whose shape says nothing: a month, a name, or no atom.
    fn read_plain_word(&mut self, at: usize, word_end: usize) -> usize {
        let was_fresh = std::mem::replace(&mut self.at_sentence_start, false);
        let word = &self.text[at..word_end];
        if let Some(end) = self.read_month_then_day(at, word_end, word) {
            return end;
        }
        let capital = word.chars().next().is_some_and(char::is_uppercase);
        let shouted = || word.chars().count() >= 2 && word.chars().all(char::is_uppercase);
        if capital && (!was_fresh || shouted()) && !NOT_NAMES.contains(&word) {
            self.push(AtomKind::Name, at, word_end);
        }
        word_end
    }

    /// Reads `April 2, 2026`, `Apr 2`, `April 2026`.
    fn read_month_then_day(&mut self, at: usize, word_end: usize, word: &str) -> Option<usize> {
        let next = word_end + usize::from(self.bytes.get(word_end) == Some(&b'.'));
        let next = self.skip_space(next)?;
        let digits = self.bytes[next..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let number: u32 = self.text[next..next + digits].parse().ok()?;
        // Looked up last, since few words have a number after them.
        let month = calendar::month_number(word)?;
        let mut end = next + digits;
        if digits == 4 && (1900..2200).contains(&number) {
            self.push_date(AtomKind::Date, at, end, Some(format!("{number:04}-{month:02}")));
            return Some(end);
        }
        // `may 3 people come`: only a capital, or an unambiguous month name, makes a date.
        let sure = word.starts_with(char::is_uppercase) || word.chars().count() > 4;
        if !(1..=31).contains(&number) || digits > 2 || !sure {
            return None;
        }
        let suffix = self.letters_end(end);
        if ["st", "nd", "rd", "th"].contains(&&self.text[end..suffix]) {
            end = suffix;
        } else if suffix > end {
            return None;
        }
        let (end, year) = self.read_year(end);
        self.push_date(AtomKind::Date, at, end, Some(format_date(year, month, number)));
        Some(end)
    }
}

/// What kinds of characters a token holds.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "five facts that do not depend on each other")]
struct TokenShape {
    digit: bool,
    letter: bool,
    underscore: bool,
    hump: bool,
    dot: bool,
    slashes: u32,
}

impl TokenShape {
    fn add_char(&mut self, previous: char, c: char) {
        self.digit |= c.is_ascii_digit();
        self.letter |= c.is_alphabetic();
        self.underscore |= c == '_';
        self.hump |= previous.is_lowercase() && c.is_uppercase();
        self.dot |= c == '.';
        self.slashes += u32::from(c == '/' || c == '\\');
    }

    fn is_path(self, token: &str) -> bool {
        if self.slashes > 0 {
            let rooted = token.starts_with(['/', '~', '.']);
            return self.letter
                && (rooted || self.slashes > 1 || self.dot || self.underscore || self.digit);
        }
        let Some((stem, extension)) = token.rsplit_once('.') else { return false };
        let short = (1..=5).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && extension.bytes().any(|b| b.is_ascii_lowercase());
        let dotfile = stem.is_empty() && extension.len() > 1 && token.is_ascii();
        dotfile || (short && stem.chars().count() >= 2 && !stem.ends_with('.'))
    }

    fn is_version(self, token: &str) -> bool {
        let digits = token.strip_prefix(['v', 'V']).unwrap_or(token);
        self.dot && digits.len() < token.len() && digits.starts_with(|c: char| c.is_ascii_digit())
    }

    fn is_identifier(self) -> bool {
        (self.underscore && self.letter) || self.hump || (self.digit && self.letter)
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Full-width marks, which are no part of a web address.
const FULL_WIDTH_MARKS: [char; 11] =
    ['；', '，', '。', '、', '：', '（', '）', '】', '」', '！', '？'];

/// Returns the length of a web address without closing punctuation.
fn url_len(rest: &str) -> usize {
    let end = rest
        .find(|c: char| {
            c.is_whitespace()
                || c.is_control()
                || matches!(c, '>' | '<' | '"' | '`' | '|' | ']')
                || FULL_WIDTH_MARKS.contains(&c)
        })
        .unwrap_or(rest.len());
    let mut url = &rest[..end];
    loop {
        let shorter = url.trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '\'']);
        let shorter = match shorter.strip_suffix(')') {
            Some(inner) if !shorter.contains('(') => inner,
            _ => shorter,
        };
        if shorter.len() == url.len() {
            return url.len();
        }
        url = shorter;
    }
}

fn parse_iso_date(digits: &str) -> Option<String> {
    let day = digits.get(..10)?;
    let b = day.as_bytes();
    let plain = |r: std::ops::Range<usize>| b[r].iter().all(u8::is_ascii_digit);
    let shape = plain(0..4) && plain(5..7) && plain(8..10) && b[4] == b[7];
    let bounded = digits.as_bytes().get(10).is_none_or(|c| !c.is_ascii_digit());
    let (month, date): (u32, u32) = (day.get(5..7)?.parse().ok()?, day.get(8..)?.parse().ok()?);
    let real = (1..=12).contains(&month) && (1..=31).contains(&date);
    (shape && bounded && real && matches!(b[4], b'-' | b'/' | b'.'))
        .then(|| format!("{}-{month:02}-{date:02}", &day[..4]))
}

fn format_date(year: Option<u32>, month: u32, day: u32) -> String {
    match year {
        Some(year) => format!("{year:04}-{month:02}-{day:02}"),
        None => format!("--{month:02}-{day:02}"),
    }
}

fn number_kind(digits: &str) -> AtomKind {
    if digits.contains(':') {
        AtomKind::Time
    } else if digits.matches('.').count() >= 2 {
        AtomKind::Version
    } else {
        AtomKind::Number
    }
}
