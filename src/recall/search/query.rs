//! The query syntax: words, `"phrases"`, `-not`, `OR`, and a few fields. Any text is a query.

use chrono::NaiveDate;

use unicode_normalization::UnicodeNormalization as _;

use crate::{
    memory::period::Period,
    text::{lexicon::SEARCH, scripts},
};

/// The tiers of hits, as people and programs name them.
pub const TIERS: [&str; 6] = ["daily", "session", "weekly", "monthly", "wisdom", "memory"];

/// The kinds of typed memories, as `type:` names them.
const MEMORY_KINDS: [&str; 4] = ["user", "feedback", "project", "reference"];

/// The fields of a query.
const FIELDS: [&str; 8] = ["tier", "type", "after", "since", "before", "until", "on", "project"];

/// What people type for one of them, whatever its value is.
const NO_FIELDS: [&str; 8] = ["kind", "date", "day", "week", "month", "person", "author", "tag"];

/// A field of a query whose value is not understood, or a field that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}`: {}", match key.as_str() {
    "tier" => format!("there is no tier of this name ({})", TIERS.join(", ")),
    "type" => format!("there is no type of this name ({})", MEMORY_KINDS.join(", ")),
    key if !FIELDS.contains(&key) => format!("there is no filter `{key}:` ({}:)", FIELDS.join(":, ")),
    _ => format!("`{key}:` needs a day, week or month (2026-04-02, 2026-W14, 2026-04)"),
})]
pub struct UnknownFilter {
    /// The word, as typed.
    pub word: String,
    /// The name of the field.
    pub key: String,
}

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The query as typed.
    pub text: String,
    /// The words, without fields and exclusions.
    pub words: String,
    /// Phrases that a hit must contain, ignoring case; with `OR` one is enough. In a question quotes
    /// mark a name instead, because the line that answers it need not repeat the name.
    pub phrases: Vec<String>,
    /// Words and phrases that a hit must not contain.
    pub excluded: Vec<String>,
    /// Whether one phrase is enough.
    pub any_phrase: bool,
    /// Only these tiers; empty for all.
    pub tiers: Vec<String>,
    /// Only typed memories of this kind.
    pub kind: Option<String>,
    /// Only from this day on.
    pub since: Option<NaiveDate>,
    /// Only up to this day.
    pub until: Option<NaiveDate>,
    /// Only hits whose path or a heading above contains this.
    pub project: Option<String>,
}

impl UnknownFilter {
    /// Returns whether it was meant to be a time.
    pub fn is_time(&self) -> bool {
        const TIMES: [&str; 9] =
            ["after", "since", "before", "until", "on", "date", "day", "week", "month"];
        TIMES.contains(&&self.key[..])
    }
}

impl Query {
    /// Parses a query. An unknown field, or a field with an unknown value, is words.
    pub fn parse(text: &str) -> Self {
        let mut query = Self { text: text.to_owned(), ..Self::default() };
        let asks = is_question(text);
        for part in tokenize(text) {
            match part {
                QueryPart::Phrase { text, not: true } => query.excluded.push(text),
                QueryPart::Phrase { text, not: false } => {
                    query.words.extend([" ", &text]);
                    query.phrases.extend((!asks).then_some(text));
                }
                QueryPart::Word("OR") => query.any_phrase = true,
                QueryPart::Word(word) => match word.strip_prefix('-').filter(|it| !it.is_empty()) {
                    Some(not) if not.starts_with(char::is_alphanumeric) => {
                        query.excluded.push(not.to_owned());
                    }
                    _ if query.parse_field(word) => {}
                    _ => query.words.extend([" ", word]),
                },
            }
        }
        query.words = query.words.trim().to_owned();
        let says = !query.words.is_empty() || query.has_field();
        if !says {
            text.trim().clone_into(&mut query.words);
        }
        query
    }

    fn has_field(&self) -> bool {
        let dated = self.since.is_some() || self.until.is_some();
        dated || !self.tiers.is_empty() || self.kind.is_some() || self.project.is_some()
    }

    /// Parses `key:value` if both are known.
    fn parse_field(&mut self, word: &str) -> bool {
        let Some((key, value)) = word.split_once(':') else { return false };
        let days = || -> Option<(NaiveDate, NaiveDate)> {
            let period: Period = value.to_uppercase().parse().ok()?;
            Some((period.first(), period.last()))
        };
        match (key, days()) {
            ("after" | "since", Some((first, _))) => self.since = Some(first),
            ("before", Some((first, _))) => self.until = first.pred_opt(),
            ("until", Some((_, last))) => self.until = Some(last),
            ("on", Some((first, last))) => {
                self.since = Some(first);
                self.until = Some(last);
            }
            ("tier", _) if TIERS.contains(&value) => self.tiers.push(value.to_owned()),
            ("type", _) if MEMORY_KINDS.contains(&value) => {
                self.kind = Some(value.to_owned());
            }
            ("project", _) if !value.is_empty() => self.project = Some(value.to_lowercase()),
            _ => return false,
        }
        true
    }

    /// Returns the first field of a query that does not exist or has a value that it cannot have. In quotes it is
    /// words.
    ///
    /// [`Self::parse`] searches for it as words, which a person who typed a filter does not expect.
    pub fn unknown_filter(text: &str) -> Option<UnknownFilter> {
        let mut parts = tokenize(text).into_iter();
        parts.find_map(|part| {
            let QueryPart::Word(word) = part else { return None };
            let (key, value) = word.split_once(':').filter(|it| !it.1.is_empty())?;
            let is_field =
                FIELDS.contains(&key) || NO_FIELDS.contains(&key) || looks_like_filter(key, value);
            let is_known = Self::default().parse_field(word);
            let filter = || UnknownFilter { word: word.to_owned(), key: key.to_owned() };
            // As in `until:12:30`, which is a time in a text.
            (is_field && !is_known && !value.contains(':')).then(filter)
        })
    }

    /// Returns whether something besides the words filters hits.
    pub(super) fn has_filters(&self) -> bool {
        self.has_field() || !self.phrases.is_empty() || !self.excluded.is_empty()
    }

    /// Returns whether a day passes the filters.
    pub(super) fn includes_day(&self, day: NaiveDate) -> bool {
        self.since.is_none_or(|it| day >= it) && self.until.is_none_or(|it| day <= it)
    }

    /// Returns whether a text contains all phrases and no exclusion.
    pub(super) fn matches_text(&self, text: &str) -> bool {
        if self.phrases.is_empty() && self.excluded.is_empty() {
            return true;
        }
        // Full-width letters are the same letters.
        let fold = |text: &str| text.nfkc().collect::<String>().to_lowercase();
        let text = fold(text);
        let has = |it: &String| contains_phrase(&text, &fold(it));
        let wanted = if self.any_phrase {
            self.phrases.is_empty() || self.phrases.iter().any(has)
        } else {
            self.phrases.iter().all(has)
        };
        wanted && !self.excluded.iter().any(has)
    }
}

/// Returns whether a word has the form of a filter, although there is none of its name. Addresses, paths, times and names
/// of code, such as `https://a.io`, `host:/srv`, `12:30` and `std::fs`, are words of logs.
fn looks_like_filter(key: &str, value: &str) -> bool {
    /// One letter may be a drive.
    const NAME_CHARS_MIN: usize = 2;
    let is_name = key.len() >= NAME_CHARS_MIN && key.bytes().all(|it| it.is_ascii_lowercase());
    let in_value = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    is_name && value.starts_with(char::is_alphabetic) && value.chars().all(in_value)
}

/// Returns whether a text is a question, not a list of words.
fn is_question(text: &str) -> bool {
    let unquoted = text.split('"').step_by(2);
    let is_sentence = unquoted.clone().flat_map(str::split_whitespace).nth(1).is_some()
        || unquoted.clone().any(|it| it.contains(scripts::is_spaceless));
    let first = text.split_whitespace().next().map(str::to_lowercase).unwrap_or_default();
    is_sentence
        && (text.trim_end().ends_with(['?', '？']) || SEARCH.question_words.contains(&&first[..]))
}

/// Returns whether a text contains a phrase, from the start of a word to the end of one. Words of scripts without
/// spaces may start anywhere, and particles follow Korean ones.
fn contains_phrase(text: &str, phrase: &str) -> bool {
    let is_joined = |c: char| scripts::is_spaceless(c) || scripts::is_hangul_syllable(c);
    let is_inner = |it: Option<char>| it.is_some_and(|c| c.is_alphanumeric() && !is_joined(c));
    text.match_indices(phrase).any(|(at, found)| {
        let (first, last) = (found.chars().next(), found.chars().next_back());
        let before = is_inner(first) && is_inner(text[..at].chars().next_back());
        let after = is_inner(last) && is_inner(text[at + found.len()..].chars().next());
        !before && !after
    })
}

enum QueryPart<'a> {
    Word(&'a str),
    Phrase { text: String, not: bool },
}

/// Splits a query at blanks, except in quotes. A quote that is never closed is a word.
fn tokenize(text: &str) -> Vec<QueryPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return parts;
        }
        let (not, quoted) = match rest.strip_prefix('-') {
            Some(after) if after.starts_with('"') => (true, after),
            _ => (false, rest),
        };
        if let Some((phrase, after)) = quoted.strip_prefix('"').and_then(|it| it.split_once('"')) {
            if !phrase.trim().is_empty() {
                parts.push(QueryPart::Phrase { text: phrase.trim().to_owned(), not });
            }
            rest = after;
            continue;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        parts.push(QueryPart::Word(&rest[..end]));
        rest = &rest[end..];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_query_syntax_is_parsed() {
        let query =
            Query::parse(r#"importer "one row" -draft -"cold start" tier:weekly after:2026-03 on"#);
        assert_eq!(query.words, "importer one row on");
        assert_eq!(query.phrases, ["one row"]);
        assert_eq!(query.excluded, ["draft", "cold start"]);
        assert_eq!(query.tiers, ["weekly"]);
        assert_eq!(query.since, "2026-03-01".parse().ok());
        assert!(
            query.matches_text("It loses one row, at most.")
                && !query.matches_text("a draft with one row")
        );
        assert!(!query.matches_text("one rowboat"));
        for (phrase, text) in [
            ("潮汐表", "港口的潮汐表已更新"),
            ("東京", "今日東京に行く"),
            ("API", "新しいＡＰＩキー"),
            ("서버", "서버가 멈췄다"),
        ] {
            assert!(Query::parse(&format!("\"{phrase}\"")).matches_text(text), "{phrase}");
        }
        let asked = Query::parse("\"潮汐表\"在哪里？");
        assert!(asked.phrases.is_empty() && asked.words.contains("潮汐表"), "{asked:?}");
        let day = Query::parse("before:2026-W14 until:2026-04-02");
        assert_eq!(day.until, "2026-04-02".parse().ok());
        let any = Query::parse(r#""one row" OR "two rows""#);
        assert!(
            any.matches_text("two rows")
                && any.matches_text("one row")
                && !any.matches_text("rows")
        );
        // In a question quotes mark a name.
        for asked in ["What did Ines take from \"one row\"?", "when did I read \"one row\""] {
            let asked = Query::parse(asked);
            assert!(asked.phrases.is_empty() && asked.words.contains("one row"), "{asked:?}");
        }
        assert_eq!(Query::parse(r#"what "one row""#).phrases, ["one row"]);
        for (text, expected) in [
            ("tier:foo backup", Some("tier:foo")),
            ("backup after:yesterday", Some("after:yesterday")),
            ("type:rule", Some("type:rule")),
            ("kind:rule jig", Some("kind:rule")),
            ("foo:bar", Some("foo:bar")),
            ("the jig tags:oak", Some("tags:oak")),
            ("\"tier:foo\"", None),
            ("\"foo:bar\"", None),
            (
                "foo: bar foo:/bar host:srv/data mailto:a@b.io std::fs C:temp c:temp foo:12 Foo:bar",
                None,
            ),
            ("localhost:8080 src/main.rs:main a.io:x 会议:港口", None),
            ("https://a.io note: tier: 12:30 project:x tier:weekly", None),
        ] {
            assert_eq!(Query::unknown_filter(text).map(|it| it.word).as_deref(), expected);
        }
        // A field with an unknown value is words.
        for text in ["tier:none", "after:yesterday", "https://a.io", "a -- b", "\"", "-", "12:30"] {
            let query = Query::parse(text);
            assert_eq!(query.words, text, "{query:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_query(text in "\\PC{0,60}") {
            let query = Query::parse(&text);
            query.matches_text(&text);
        }
    }
}
