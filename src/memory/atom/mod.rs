//! Atoms: the parts of a text that must never be changed or invented.
//!
//! Numbers, money, dates, names, addresses, code: what a summary must not get wrong. One pass finds
//! them. Their normal form makes `1,200` equal to `1200` and `2 April 2026` equal to `2026-04-02`.
//! The extractive engine weighs atoms, and grounding looks each one up in the cited lines.
//!
//! # Invariants
//!
//! - Atoms are sorted and do not overlap; offsets are on character boundaries.
//! - The same words have the same normal form anywhere in a text.

mod normalize;
mod scan;

use std::borrow::Cow;

use self::{
    normalize::{lowercase, normalize_money, normalize_number},
    scan::AtomScanner,
};

/// The kind of an [`Atom`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AtomKind {
    /// A plain number, perhaps with a short unit: `1,200`, `2.8x`, `15ms`.
    Number,
    /// A number with a currency.
    Money,
    /// A number with a percent sign.
    Percent,
    /// A day, with or without its year, or a month of a year.
    Date,
    /// A time of day.
    Time,
    /// `1.12.3`, `v2.0`.
    Version,
    /// A web address.
    Url,
    /// A file or folder.
    Path,
    /// Text between backticks.
    Code,
    /// `snake_case`, `camelCase`, `#123`, `@handle`, letters with digits.
    Identifier,
    /// A capitalised word inside a sentence.
    Name,
}

/// One atom of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    /// Its kind.
    pub kind: AtomKind,
    /// Byte offset of its first character.
    pub start: usize,
    /// Byte offset after its last character.
    pub end: usize,
    /// The normal form of a date (`2026-04-02`, `--04-02`, `2026-04`), which depends on the words
    /// around the number; all others are computed on demand.
    date: Option<Box<str>>,
}

impl Atom {
    /// Returns the words of the atom; `text` is the text in which it was found.
    pub fn text<'t>(&self, text: &'t str) -> &'t str {
        &text[self.start..self.end]
    }

    /// Returns the normal form: equal for two spellings of the same thing.
    pub fn norm<'t>(&'t self, text: &'t str) -> Cow<'t, str> {
        let raw = self.text(text);
        match self.kind {
            AtomKind::Date => self.date.as_deref().map_or(Cow::Borrowed(raw), Cow::Borrowed),
            AtomKind::Code => Cow::Borrowed(raw.trim_matches('`').trim()),
            AtomKind::Number => normalize_number(raw),
            AtomKind::Percent => {
                let digits = raw.trim_end_matches(['%', '\u{a0}', ' ', '٪', '％']);
                Cow::Owned(format!("{}%", normalize_number(digits)))
            }
            AtomKind::Money => Cow::Owned(normalize_money(raw)),
            AtomKind::Time | AtomKind::Version | AtomKind::Identifier | AtomKind::Name => {
                lowercase(raw)
            }
            AtomKind::Url | AtomKind::Path => Cow::Borrowed(raw.trim_end_matches('/')),
        }
    }
}

/// Finds the atoms of one line of text.
pub fn find_atoms(text: &str) -> Vec<Atom> {
    AtomScanner::new(text).run()
}

const CURRENCIES: [(&str, &str); 7] = [
    ("$", "usd"),
    ("€", "eur"),
    ("£", "gbp"),
    ("¥", "jpy"),
    ("₹", "inr"),
    ("₩", "krw"),
    ("₽", "rub"),
];
const CURRENCY_CODES: [&str; 14] = [
    "usd", "eur", "gbp", "jpy", "inr", "chf", "cad", "aud", "cny", "sek", "nok", "dkk", "pln",
    "brl",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(AtomKind, &str)]) {
        let found = find_atoms(text);
        let seen: Vec<_> = found.iter().map(|a| (a.kind, a.norm(text).into_owned())).collect();
        let expected: Vec<_> = expected.iter().map(|&(k, n)| (k, n.to_owned())).collect();
        assert_eq!(seen, expected, "{text:?}");
    }

    #[test]
    fn numbers_and_money() {
        use AtomKind::{Money, Number, Percent, Time, Version};
        check("took 1,200 of 1200 rows", &[(Number, "1200"), (Number, "1200")]);
        check("up 3.5% or 4 %", &[(Percent, "3.5%"), (Percent, "4%")]);
        check("cost $1,200, 1200 USD", &[(Money, "usd1200"), (Money, "usd1200")]);
        check("raised $4.2 million for 3 €", &[(Money, "usd4.2m"), (Money, "eur3")]);
        check("at 14:05 or 6:30 PM", &[(Time, "14:05"), (Time, "6:30"), (AtomKind::Name, "pm")]);
        check("in 15ms, 2.8x", &[(Number, "15ms"), (Number, "2.8x")]);
        check("between 420-475", &[(Number, "420"), (Number, "475")]);
        check("from 1.12.3 to v2.0", &[(Version, "1.12.3"), (Version, "v2.0")]);
    }

    #[test]
    fn dates_in_many_spellings() {
        use AtomKind::Date;
        check("on 2026-04-02", &[(Date, "2026-04-02")]);
        check("by 2 April 2026.", &[(Date, "2026-04-02")]);
        check("by April 2, 2026.", &[(Date, "2026-04-02")]);
        check("on Apr 2nd we met", &[(Date, "--04-02")]);
        check("in March 2026", &[(Date, "2026-03")]);
        check("2026年4月9日", &[(Date, "2026-04-09")]);
        check("4月9号", &[(Date, "--04-09")]);
        check("4月2-5日", &[(Date, "--04-02"), (Date, "--04-05")]);
        check("am 2. April kam", &[(Date, "--04-02")]);
        check("el 3 de mayo de 2026", &[(Date, "2026-05-03")]);
        check("we may 3 times", &[(AtomKind::Number, "3")]);
    }

    #[test]
    fn technical_tokens() {
        use AtomKind::{Code, Identifier, Name, Path, Url};
        check("see https://a.io/x_(y)?q=1.", &[(Url, "https://a.io/x_(y)?q=1")]);
        check("(https://a.io/x)", &[(Url, "https://a.io/x")]);
        check("ran `cargo  test` now", &[(Code, "cargo  test")]);
        check("an open ` tick", &[]);
        check("in src/main.rs and WISDOM.md", &[(Path, "src/main.rs"), (Path, "WISDOM.md")]);
        check("keep ~/bin/run safe", &[(Path, "~/bin/run")]);
        check("and/or, e.g. this", &[]);
        check("fixed #412 for @bob", &[(Identifier, "#412"), (Identifier, "@bob")]);
        check(
            "the max_len of fooBar, FY27",
            &[(Identifier, "max_len"), (Identifier, "foobar"), (Identifier, "fy27")],
        );
        check(
            "Then Alice met Bob. Later the API broke",
            &[(Name, "alice"), (Name, "bob"), (Name, "api")],
        );
        check("nach Zürich mit Łukasz", &[(Name, "zürich"), (Name, "łukasz")]);
    }

    proptest! {
        #[test]
        fn atoms_are_sorted_and_disjoint(text in "\\PC{0,80}") {
            let mut last = 0;
            for atom in find_atoms(&text) {
                prop_assert!(atom.start >= last && atom.end > atom.start);
                prop_assert!(!atom.text(&text).is_empty());
                let _norm = atom.norm(&text);
                last = atom.end;
            }
        }
    }
}
