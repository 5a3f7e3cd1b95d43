//! An event that dates a question: "in the week before the board meeting". Pure: `event_days` finds its days.

use super::relative::RelativeSpan;
use crate::text::lexicon::SEARCH;

/// The most words of an event's name.
const NAME_WORDS_MAX: usize = 6;

/// An event in a question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EventReference {
    /// The words of its name.
    pub(crate) name: String,
    /// The days that the question means: before the event, after it, or around it.
    pub(crate) span: RelativeSpan,
    /// Its byte range in the question.
    text_range: std::ops::Range<usize>,
}

impl EventReference {
    /// Parses a question in lower case and its words. A name that contains a date is no event.
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
                if SEARCH.event_name_ends.contains(word)
                    || name.len() == NAME_WORDS_MAX
                    || gap.contains([',', '.', '?', '!', ';', ':'])
                {
                    break;
                }
                name.push(word);
            }
            let to = name.last().map(|it| place(it) + it.len())?;
            let articles = name.iter().take_while(|it| SEARCH.articles.contains(it)).count();
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

    /// Returns the question with the event blanked out.
    pub(crate) fn remove_from(&self, question: &str) -> String {
        let mut rest = question.to_owned();
        rest.replace_range(self.text_range.clone(), &" ".repeat(self.text_range.len()));
        rest
    }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::*;
    use crate::text::words;

    #[test]
    fn an_event_is_parsed_with_the_days_around_it() {
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
            let words: Vec<&str> = words::runs(question, "-").collect();
            let event = EventReference::parse(question, &words, |it| it == "march");
            let told = event.map(|it| {
                let (from, to) = it.span.apply_to_day(day);
                format!("{} {from} {to}", it.name)
            });
            assert_eq!(told.as_deref(), expected, "{question}");
        }
    }
}
