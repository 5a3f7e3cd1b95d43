//! Conditions on a value beyond its form.
//!
//! Without a prefix the form alone says little: `token: expired` is not a secret. These checks exclude
//! words, code, hashes, and similar numbers.

use serde::Deserialize;

/// The shortest value of letters and digits that is a secret, in bytes.
const MIXED_MIN: usize = 6;

/// The condition on a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueCheck {
    /// None: the form is sufficient.
    #[default]
    None,
    /// Letters and digits, and neither words nor code.
    Mixed,
    /// Like `Mixed`, and neither a hash nor a public identifier.
    Random,
    /// What follows a prefix that only keys have: anything but words in lower case.
    Issued,
    /// What follows a label such as `token:`. Words pass if they are quoted and have a long number.
    Labelled,
    /// A likely password. The condition depends on what precedes the value.
    Password,
    /// A likely password beside or instead of a name, which is more often a name.
    Login,
    /// The checksum of a card number.
    Card,
    /// The checksum of an account number.
    Iban,
    /// As many digits as a telephone number has.
    Phone,
}

impl ValueCheck {
    /// Returns whether a text may contain a value that passes: most lines with a keyword have none, which
    /// is faster to see than to search.
    pub fn may_pass(self, text: &str) -> bool {
        let needs_mix = matches!(self, Self::Mixed | Self::Random | Self::Labelled | Self::Login);
        let is_mix = |run: &[u8]| {
            run.len() >= MIXED_MIN
                && run.iter().any(u8::is_ascii_digit)
                && run.iter().any(|it| !it.is_ascii_digit() && !it.is_ascii_punctuation())
        };
        !needs_mix || text.as_bytes().split(u8::is_ascii_whitespace).any(is_mix)
    }

    /// Returns whether `value`, which follows `before`, passes.
    pub fn passes(self, value: &str, before: &str) -> bool {
        match self {
            Self::None => true,
            Self::Mixed => is_mixed(value) && !is_address(value),
            Self::Random => is_mixed(value) && !is_public_name(value) && !is_address(value),
            Self::Issued => is_issued(value),
            Self::Labelled => is_labelled(value, before),
            Self::Password => is_password(value, before) && !is_address(value),
            Self::Login => is_login_secret(value),
            Self::Card => is_card(value),
            Self::Iban => is_iban(value),
            Self::Phone => is_phone(value),
        }
    }
}

/// Returns the Shannon entropy of `value`, in bits per byte.
pub fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value.bytes().for_each(|it| counts[usize::from(it)] += 1);
    let all = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let share = |count: &u32| f64::from(*count) / all;
    counts.iter().filter(|it| **it > 0).map(share).map(|p| -p * p.log2()).sum()
}

/// The classes of characters in a value.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a set of four")]
struct CharClasses {
    lower: bool,
    upper: bool,
    digit: bool,
    symbol: bool,
}

impl CharClasses {
    fn of(value: &str) -> Self {
        let mut classes = Self::default();
        for c in value.chars() {
            match c {
                '0'..='9' => classes.digit = true,
                '-' | '_' | '.' | '/' | ':' => {} // They join words.
                _ if c.is_lowercase() => classes.lower = true,
                _ if c.is_uppercase() => classes.upper = true,
                _ if c.is_alphabetic() => classes.lower = true, // A script without cases.
                _ if c.is_ascii() => classes.symbol = true,
                _ => {} // An emoji, an arrow: no part of a password.
            }
        }
        classes
    }

    fn count(self) -> u8 {
        [self.lower, self.upper, self.digit, self.symbol].into_iter().map(u8::from).sum()
    }
}

/// Returns whether a value is an e-mail address or a URL. Credentials in URLs have rules of their own.
fn is_address(value: &str) -> bool {
    let value = value.trim_matches(['*', '_', '<', '>', '(', ')', ',', '.', ';']);
    let is_name = |it: &str| {
        !it.is_empty() && it.bytes().all(|b| b.is_ascii_alphanumeric() || b"._%+-".contains(&b))
    };
    let is_mail = |(name, host): (&str, &str)| {
        let (domain, top) = host.rsplit_once('.').unwrap_or_default();
        is_name(name)
            && is_name(domain)
            && (2..=24).contains(&top.len())
            && top.bytes().all(|it| it.is_ascii_alphabetic())
    };
    value.contains("://") || value.split_once('@').is_some_and(is_mail)
}

/// Returns whether a value was issued by a machine rather than written as words.
fn is_issued(value: &str) -> bool {
    value.bytes().any(|it| it.is_ascii_digit() || it.is_ascii_uppercase())
        || value.split(['-', '_', '.']).any(|it| it.len() > 15)
}

fn is_labelled(value: &str, before: &str) -> bool {
    let glue = before.trim_end_matches(['"', '\'', '`', '*', ' ']);
    let is_code_like = is_code(value) || is_address(value) || is_path(value);
    let classes = CharClasses::of(value);
    if is_code_like || !classes.digit || !(classes.lower || classes.upper) {
        return false;
    }
    if is_words(value) {
        // In prose a word with a number is more often a name. Eight digits are a date.
        let name = glue.strip_suffix('=').unwrap_or_default();
        let is_assigned = name.trim_end().ends_with(|it: char| it.is_ascii_uppercase());
        let is_quoted = before.ends_with(QUOTES);
        let digits = digit_run(value);
        return (is_assigned || is_quoted) && digits > 3 && digits != 8;
    }
    let is_hash = [40, 64, 128].contains(&value.len()) || value.len() < 16;
    let names_key = || {
        const NAMES: [&str; 6] = ["key", "token", "secret", "密", "ключ", "токен"];
        let before = before.to_lowercase();
        NAMES.iter().any(|it| before.contains(it))
    };
    !is_public_name(value) || (is_hex(value) && (!is_hash || (value.len() > 16 && names_key())))
}

/// Returns the length of the longest run of digits.
fn digit_run(value: &str) -> usize {
    let runs = value.split(|it: char| !it.is_ascii_digit());
    runs.map(str::len).max().unwrap_or(0)
}

/// Returns whether a value is a path of words, such as `keys/deploy_ed25519`.
fn is_path(value: &str) -> bool {
    let mut parts = value.split('/').filter(|it| !it.is_empty());
    value.contains('/')
        && parts.all(|it| it.split(['-', '_', '.']).all(|it| is_words(it) || is_type_or_scheme(it)))
}

/// Returns whether a value is a package with a version, such as `left-pad@^1.3.0`.
fn is_package(value: &str) -> bool {
    let version = |it: &str| it.trim_start_matches(['^', '~', 'v', '=']).starts_with(is_digit);
    value.rsplit_once('@').is_some_and(|(_, it)| version(it) && it.contains('.'))
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn is_login_secret(value: &str) -> bool {
    let value = value.trim_end_matches(['.', ')', ']']);
    let classes = CharClasses::of(value);
    value.chars().count() >= 6
        && classes.count() > 2
        && classes.digit
        && !(is_address(value) || is_code(value) || is_path(value) || is_package(value))
        && !value.starts_with(['@', '+', '/', '~', '.'])
        && !is_words(value)
}

fn is_mixed(value: &str) -> bool {
    let classes = CharClasses::of(value);
    classes.digit && (classes.lower || classes.upper) && !is_code(value) && !is_words(value)
}

/// Returns whether a value consists of words and numbers, such as `step-2-of-the-plan`.
fn is_words(value: &str) -> bool {
    let parts =
        || value.split(['-', '_', '.', '/', ':', ' ', '=', '+']).filter(|it| !it.is_empty());
    let is_plain = |part: &str| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        let letters = part.chars().filter(|it| it.is_alphabetic()).count();
        if digits + letters < part.chars().count() {
            return false;
        }
        // A word, a number, a word with a number after it (`v2`, `sha256`), `4o`, a time, or camel case.
        let stem = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_time = || part.bytes().all(|it| it.is_ascii_digit() || matches!(it, b'T' | b'Z'));
        (letters == 0 && digits <= 8)
            || part.len() <= 2
            || (digits >= 8 && letters <= 2 && is_time())
            || (letters == stem.chars().count()
                && digits <= 4
                && case_changes(stem) <= stem.len() / 4 + 1)
    };
    parts().count() > 0 && parts().all(is_plain) && (parts().count() > 1 || value.len() < 20)
}

/// Counts changes from lower to upper case: one per word in camel case, many in a key.
fn case_changes(word: &str) -> usize {
    let chars = || word.chars().map(char::is_uppercase);
    chars().zip(chars().skip(1)).filter(|(a, b)| !a && *b).count()
}

/// Returns whether a value is an expression of code.
fn is_code(value: &str) -> bool {
    let is_path = |it: &str| it.split('.').all(is_identifier);
    let opened = value.find(['(', '[', '<']).map(|at| &value[..at]);
    value.contains("()")
        || value.contains("::")
        || value.contains("->")
        || opened.is_some_and(is_path) // A call, an index, or a type, perhaps cut at a comma.
        || (value.contains('.') && is_path(value))
        || (value.contains('_') && value.split('_').all(is_constant))
        || ["*const", "*mut", "&self", "&mut", "%s"].iter().any(|it| value.starts_with(it))
}

/// Returns whether a part of a name is written like that of a constant.
fn is_constant(part: &str) -> bool {
    part.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit()) && part.len() <= 20
}

fn is_identifier(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && part.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
        && part.len() <= 24
}

fn is_hex(value: &str) -> bool {
    value.bytes().all(|it| it.is_ascii_hexdigit())
}

/// Returns whether a value is a hash, a UUID, or a path, which are public.
fn is_public_name(value: &str) -> bool {
    // Words and numbers of any length between colons, such as `agent:main:12345678901234`.
    let is_label = |it: &str| is_words(it) || it.bytes().all(|b| b.is_ascii_digit());
    let groups: Vec<_> = value.split('-').map(str::len).collect();
    is_hex(value)
        || (groups == [8, 4, 4, 4, 12] && is_hex(&value.replace('-', "")))
        || ["sha256-", "sha384-", "sha512-", "sha256:", "sha512:"]
            .iter()
            .any(|it| value.starts_with(it))
        || value.split('/').filter(|it| it.len() > 1).count() > 2
        || (value.contains(':') && value.split(':').all(is_label))
}

/// What opens a quoted value.
const QUOTES: [char; 6] = ['"', '\'', '`', '“', '「', '『'];

fn is_password(value: &str, before: &str) -> bool {
    let length = value.chars().count();
    if length < 4 || is_code(value) {
        return false;
    }
    let classes = CharClasses::of(value);
    let glue = before.trim_end_matches(QUOTES);
    if glue.len() < before.len() {
        // In quotes. Words with spaces are a text about passwords.
        let is_one = !value.contains(' ') || (classes.digit && classes.count() > 2);
        return is_one && !is_type_or_scheme(value);
    }
    let value = value.trim_end_matches(['.', ')', ']']);
    if is_type_or_scheme(value) {
        return false;
    }
    let is_flag = || ["-p", "--password"].iter().any(|it| glue.trim_end().ends_with(it));
    if glue.ends_with(['=', '>']) {
        return true;
    }
    if is_flag() {
        return classes.count() > 1;
    }
    let sign = glue.trim_end_matches(['*', '_', ' ', '\t', '|']);
    if sign.ends_with([':', '=', '>', '：', '＝', '|']) {
        let label = sign.trim_end_matches([':', '=', '>', '：', '＝', ' ', '*', '_']);
        // `pass: 120000` and `Passwords: 120000` count something; a `fix pass` is a round of work.
        let is_plural = label.ends_with(['s', 'S']);
        if is_round_of_work(label) {
            return false;
        }
        let is_no_word = classes.count() > 1 && (classes.digit || classes.symbol);
        let words = value.trim_end_matches(['!', '?', '*']);
        let is_number = !is_plural && length <= 12 && value.bytes().all(|it| it.is_ascii_digit());
        let is_phrase = is_passphrase(words);
        return length >= 6 && ((is_no_word && (is_phrase || !is_words_only(words))) || is_number);
    }
    length >= 6 && classes.count() > 2 && classes.digit
}

/// Returns whether words are joined with a number between them that is no year, as in passwords to remember:
/// `Gull-4471-Pier`.
fn is_passphrase(value: &str) -> bool {
    const PARTS_MIN: usize = 3;
    let parts: Vec<&str> = value.split(['-', '_', '.']).collect();
    let is_number = |it: &str| {
        let year = it.starts_with("19") || it.starts_with("20");
        it.len() > 2 && it.bytes().all(|b| b.is_ascii_digit()) && !(it.len() == 4 && year)
    };
    let is_name =
        |it: &&str| it.starts_with(char::is_uppercase) && it.chars().all(char::is_alphabetic);
    parts.len() >= PARTS_MIN
        && parts.iter().copied().any(is_number)
        && parts.iter().copied().filter(is_name).count() > 1
}

/// Returns whether a label is about going through something: `Fix pass`.
fn is_round_of_work(label: &str) -> bool {
    const ROUNDS: [&str; 3] = ["fix", "review", "cleanup"];
    let mut words = label.rsplit(|c: char| !c.is_alphanumeric());
    words.next().is_some_and(|it| it.eq_ignore_ascii_case("pass"))
        && words.next().is_some_and(|it| ROUNDS.iter().any(|round| it.eq_ignore_ascii_case(round)))
}

/// Returns whether a value is only words joined by dashes, slashes and the like. Letters and digits in one of
/// them, with capitals elsewhere than in acronyms, are no words.
fn is_words_only(value: &str) -> bool {
    let classes = CharClasses::of(value);
    let is_mixed = |part: &str| {
        part.contains(char::is_alphabetic) && part.contains(|c: char| c.is_ascii_digit())
    };
    let has_mixed = || value.split(|c: char| !c.is_alphanumeric()).any(is_mixed);
    let is_one = classes.digit && value.chars().all(char::is_alphanumeric);
    is_words(value) && !is_one && !(classes.upper && classes.lower && has_mixed())
}

/// Returns whether a value is the name of a type, or of a hash or encoding.
fn is_type_or_scheme(value: &str) -> bool {
    const TYPES: [&str; 20] = [
        "string",
        "str",
        "&str",
        "text",
        "none",
        "null",
        "nil",
        "true",
        "false",
        "undefined",
        "bool",
        "bytes",
        "any",
        "self",
        "password",
        "secret",
        "token",
        "hash",
        "required",
        "optional",
    ];
    const SCHEMES: [&str; 16] = [
        "sha", "md", "argon", "argon2id", "argon2i", "pbkdf", "blake", "base", "utf", "oauth",
        "http", "ed", "x", "rsa", "aes", "utf8mb",
    ];
    let stem = value.trim_end_matches(|it: char| it.is_ascii_digit());
    TYPES.iter().any(|it| value.eq_ignore_ascii_case(it))
        || SCHEMES.iter().any(|it| stem.eq_ignore_ascii_case(it))
}

fn digits(value: &str) -> impl DoubleEndedIterator<Item = u32> {
    value.chars().filter_map(|it| it.to_digit(10))
}

/// Returns whether a number has a valid Luhn checksum and more than one different digit.
fn is_card(value: &str) -> bool {
    let count = digits(value).count();
    let first = digits(value).next();
    let sum: u32 = digits(value)
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => digit * 2 - 9,
            (_, digit) => digit * 2,
        })
        .sum();
    (13..=19).contains(&count)
        && sum.is_multiple_of(10)
        && digits(value).any(|it| Some(it) != first)
}

/// Returns whether the ISO 7064 checksum is valid; it moves country and check digits to the end.
fn is_iban(value: &str) -> bool {
    let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
    if !(15..=34).contains(&plain.len()) {
        return false;
    }
    let (head, tail) = plain.split_at(4);
    let rest =
        tail.chars().chain(head.chars()).filter_map(|it| it.to_digit(36)).fold(0, |rest, it| {
            if it < 10 { (rest * 10 + it) % 97 } else { (rest * 100 + it) % 97 }
        });
    rest == 1
}

fn is_phone(value: &str) -> bool {
    let count = digits(value).count();
    let is_grouped = value.trim_start_matches('+').bytes().any(|it| !it.is_ascii_digit());
    (if is_grouped { 9..=15 } else { 10..=15 }).contains(&count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_counts_bits() {
        let bits = |value: &str| (entropy(value) * 100.0).round() / 100.0;
        assert!((bits("aaaa"), bits("abab"), bits("abcd")) == (0.0, 1.0, 2.0));
        assert!(bits("").abs() < f64::EPSILON);
    }

    #[track_caller]
    fn check(check: ValueCheck, before: &str, value: &str, passes: bool) {
        assert_eq!(check.passes(value, before), passes, "{check:?} {before}{value}");
    }

    #[test]
    fn words_code_and_hashes_are_not_secrets() {
        check(ValueCheck::Mixed, "", "k3J9fQ2mZx81LtPw", true);
        check(ValueCheck::Mixed, "", "0123deadbeef4567", true);
        check(ValueCheck::Mixed, "", "refresh-token-v2", false);
        check(ValueCheck::Mixed, "", "process.env.API_KEY_2", false);
        check(ValueCheck::Mixed, "", "getToken2()", false);
        check(ValueCheck::Mixed, "", "D3D_PRESENT_TOKEN_0", false);
        check(ValueCheck::Mixed, "", "onlyletters", false);
        check(ValueCheck::Random, "", "9c1f2ab04d7e6f589c1f2ab04d7e6f589c1f2ab0", false);
        check(ValueCheck::Random, "", "3f2b8c1e-0d4a-4c59-9e7b-5a1d2c3b4e5f", false);
        check(ValueCheck::Random, "", "src/privacy/secrets/rules2.rs", false);
        check(ValueCheck::Random, "", "k3J9fQ2mZx81LtPwk3J9fQ2mZx81LtPw", true);
    }

    #[test]
    fn what_precedes_a_password_decides() {
        check(ValueCheck::Password, "password=", "hunter2", true);
        check(ValueCheck::Password, "password=", "correcthorse", true);
        check(ValueCheck::Password, "password=", "string", false);
        check(ValueCheck::Password, "password: \"", "correcthorse", true);
        check(ValueCheck::Password, "password: \"", "must not be shown", false);
        check(ValueCheck::Password, "password: ", "hunter2", true);
        check(ValueCheck::Password, "password: ", "reset", false);
        check(ValueCheck::Password, "password: ", "two-step-v2", false);
        check(ValueCheck::Password, "Fix pass: ", "Tide2Board", false);
        check(ValueCheck::Password, "wiki pass: ", "Tide2Board", true);
        check(ValueCheck::Password, "password is ", "Sommer2024!", true);
        check(ValueCheck::Password, "password is ", "sha256-hashed", false);
        check(ValueCheck::Password, "password=", "get_password()", false);
        check(ValueCheck::Password, "password=", "self.password", false);
        check(ValueCheck::Password, "password: ", "typing.Optional[bytes]", false);
        check(ValueCheck::Password, "password = ", "getpass.getpass(", false);
    }

    #[test]
    fn personal_numbers_need_valid_checksums() {
        check(ValueCheck::Card, "", "4242 4242 4242 4242", true);
        check(ValueCheck::Card, "", "4242 4242 4242 4243", false);
        check(ValueCheck::Card, "", "0000000000000000", false);
        check(ValueCheck::Iban, "", "DE89 3704 0044 0532 0130 00", true);
        check(ValueCheck::Iban, "", "DE88 3704 0044 0532 0130 00", false);
        check(ValueCheck::Phone, "", "+49 170 1234567", true);
        check(ValueCheck::Phone, "", "+12 345", false);
        check(ValueCheck::Phone, "", "+123456789", false);
    }
}
