//! A time that a question names by what happened then: "in the week before the board meeting". The words are
//! read here, without a clock and a disk; the day of what happened is found by a search for it.

use chrono::NaiveDate;

use super::{
    expression::TimeExpression,
    relative::{DayRange, RelativeSpan},
};
use crate::recall::search::{
    index::{
        matches::{LOG_TIERS, QueryMatches},
        source::SearchSource,
    },
    rank,
    terms::{QueryStemmer, QueryTerms},
};
use crate::store::db::search_index::CacheDbError;

/// The most words by which it is called.
const NAME_WORDS_MAX: usize = 6;

/// What stands on more days than this is no event, or many.
const EVENT_DAYS_MAX: usize = 7;

/// Words with which what it is called ends at the latest.
const NAME_END_WORDS: [&str; 34] = [
    "what", "who", "whom", "when", "where", "which", "why", "how", "did", "do", "does", "was",
    "were", "is", "are", "has", "have", "had", "will", "would", "could", "can", "i", "we", "you",
    "he", "she", "it", "they", "this", "that", "there", "began", "started",
];

/// Words with which it may begin.
const ARTICLES: [&str; 9] = ["the", "a", "an", "our", "my", "your", "his", "her", "their"];

/// An event in a question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EventReference {
    /// What it is called.
    pub(crate) name: String,
    /// What is asked about: the days before it, after it, or around it.
    span: RelativeSpan,
    /// Where the question says so, in bytes.
    text_range: std::ops::Range<usize>,
}

impl EventReference {
    /// Reads a question in lower case and its words. A name with a date in it is one of a day, not of an
    /// event.
    pub(crate) fn parse(
        text: &str,
        words: &[&str],
        is_date: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let place = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
        (1..words.len()).find_map(|at| {
            let (span, from) = RelativeSpan::parse_ending_at(words, at)?;
            let mut name: Vec<&str> = Vec::new();
            for word in &words[at + 1..] {
                let before = words[at + name.len()];
                let gap = text.get(place(before) + before.len()..place(word)).unwrap_or_default();
                if NAME_END_WORDS.contains(word)
                    || name.len() == NAME_WORDS_MAX
                    || gap.contains([',', '.', '?', '!', ';', ':'])
                {
                    break;
                }
                name.push(word);
            }
            let to = name.last().map(|it| place(it) + it.len())?;
            let articles = name.iter().take_while(|it| ARTICLES.contains(it)).count();
            let mut name = &name[articles..];
            // "the board meeting's date"
            while let Some(("s" | "date" | "day", before)) =
                name.split_last().map(|(last, before)| (*last, before))
            {
                name = before;
            }
            let is_event = !name.is_empty() && !name.iter().any(|it| is_date(it));
            let said = place(words[from])..to;
            is_event.then(|| Self { name: name.join(" "), span, text_range: said })
        })
    }

    /// Returns the question without what it says of the event.
    pub(crate) fn remove_from(&self, question: &str) -> String {
        let mut rest = question.to_owned();
        rest.replace_range(self.text_range.clone(), &" ".repeat(self.text_range.len()));
        rest
    }

    /// Returns the days that are asked about, if it is known on which day that was: all words of its name
    /// stand in a line of that day, and of few others.
    pub(crate) fn find_days(
        &self,
        source: &SearchSource,
    ) -> Result<Option<DayRange>, CacheDbError> {
        let terms = QueryTerms::of(&self.name, &mut QueryStemmer::new());
        let count = u32::try_from(terms.stems.len()).unwrap_or(u32::MAX);
        let mut matched = QueryMatches::of(source, &terms)?;
        if !(1..=64).contains(&count) {
            return Ok(None);
        }
        let mut days: Vec<NaiveDate> = Vec::new();
        for (at, file) in matched.files.iter().enumerate() {
            let names_it = || matched.masks(at).iter().any(|it| it.count_ones() == count);
            if file.head.tier < LOG_TIERS && names_it() {
                days.push(file.head.date);
            }
        }
        days.sort_unstable();
        days.dedup();
        if days.len() > EVENT_DAYS_MAX {
            return Ok(None);
        }
        let (lines, _) = rank::rank(&mut matched, &[], &TimeExpression::default(), false, None);
        let of = lines.iter().map(|it| matched.files[it.file].head.date);
        let best = of.into_iter().find(|it| days.contains(it)).or(days.last().copied());
        Ok(best.map(|day| self.span.apply_to_day(day)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_with_the_days_around_it() {
        let day: NaiveDate = "2026-03-26".parse().unwrap();
        for (question, expected) in [
            (
                "what did we do in the week before the board meeting?",
                Some("board meeting 2026-03-19 2026-03-26"),
            ),
            (
                "in the week before the board meeting's date, what broke",
                Some("board meeting 2026-03-19 2026-03-26"),
            ),
            ("two days after our outage in lisbon", Some("outage in lisbon 2026-03-26 2026-03-28")),
            ("on the day of the release what failed", Some("release 2026-03-26 2026-03-26")),
            ("the friday before the offsite was sunny", Some("offsite 2026-03-20 2026-03-26")),
            ("what was known before the outage", None),
            ("the week before it broke", None),
            ("the week before march 26", None),
            ("the days of wine and roses", None),
            ("a week before", None),
        ] {
            let words: Vec<&str> = question
                .split(|c: char| !(c.is_alphanumeric() || c == '-'))
                .filter(|it| !it.is_empty())
                .collect();
            let event = EventReference::parse(question, &words, |it| it == "march");
            let told = event.map(|it| {
                let (from, to) = it.span.apply_to_day(day);
                format!("{} {from} {to}", it.name)
            });
            assert_eq!(told.as_deref(), expected, "{question}");
        }
    }
}
