//! Checks what a model says of a session, as [`grounding`] checks what it says of logs.
//!
//! Each line names the entries that it rests on, and nothing in it may stand in none of them. Code has to
//! stand in an entry as it is. What fails is kept out, and said. Pure.

use chrono::NaiveDate;

use crate::compaction::grounding;
use crate::{
    engine::model::session::{EntryPriority, SessionEntry, SummaryLine, SummarySections},
    memory::{
        address::{Citation, Stem},
        item::Item,
        log::DailyLog,
    },
    privacy::{self, PrivacyRules, SanitizedLog},
};

/// What of a summary stood the check.
#[derive(Clone, Debug, Default)]
pub struct CheckedSession {
    /// The lines that stood it.
    pub sections: SummarySections,
    /// Those that did not, and why.
    pub rejected: Vec<(String, String)>,
}

/// Checks the sections of a summary, under `titles`, against the entries of a session that ended on `date`.
pub fn check(
    titles: &[&str],
    sections: &[String],
    entries: &[SessionEntry],
    date: NaiveDate,
    rules: &PrivacyRules,
) -> CheckedSession {
    let mut checked = CheckedSession::default();
    let Some(log) = entries_as_log(entries, date, rules) else {
        checked.sections = vec![Vec::new(); titles.len()];
        return checked;
    };
    let mut check = SessionChecker { entries, log: vec![log], date, rejected: Vec::new() };
    for (title, text) in titles.iter().zip(sections) {
        // The user's messages are never taken from a model.
        let is_theirs = *title == "All User Messages";
        checked.sections.push(if is_theirs { Vec::new() } else { check.check_section(text) });
    }
    checked.rejected = check.rejected;
    checked
}

/// Puts the entries in the form of a log, one to a line; what tools returned is text from elsewhere.
fn entries_as_log(
    entries: &[SessionEntry],
    date: NaiveDate,
    rules: &PrivacyRules,
) -> Option<SanitizedLog> {
    let mut text = String::new();
    for entry in entries {
        let mark = if entry.priority == EntryPriority::Result { "> " } else { "- " };
        let words: Vec<&str> = entry.text.split_whitespace().collect();
        text.push_str(&[mark, &words.join(" "), "\n"].concat());
    }
    let log = DailyLog::parse(Stem::day(date), text.as_bytes()).ok()?;
    Some(privacy::sanitize(&log, rules))
}

struct SessionChecker<'a> {
    entries: &'a [SessionEntry],
    log: Vec<SanitizedLog>,
    date: NaiveDate,
    rejected: Vec<(String, String)>,
}

impl SessionChecker<'_> {
    fn check_section(&mut self, text: &str) -> Vec<SummaryLine> {
        let mut said = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed == "(none)" {
                continue;
            }
            if let Some(fence) = trimmed.strip_prefix("```") {
                let inside: Vec<&str> =
                    lines.by_ref().take_while(|it| !it.trim_start().starts_with("```")).collect();
                self.check_code(fence, &inside, &mut said);
                continue;
            }
            match self.check_line(line) {
                Ok(line) => said.push(line),
                Err(why) => self.rejected.push((trimmed.to_owned(), why)),
            }
        }
        said
    }

    /// Takes code over that stands in an entry line by line, beneath a bullet that stood.
    fn check_code(&mut self, fence: &str, inside: &[&str], said: &mut Vec<SummaryLine>) {
        let stands = |line: &&str| self.entries.iter().any(|it| it.text.contains(line.trim()));
        match inside.iter().find(|it| !stands(it)) {
            Some(line) => {
                let why = "this code stands in no entry".to_owned();
                self.rejected.push((line.trim().to_owned(), why));
            }
            None if said.is_empty() => {}
            None => {
                let plain = |text: String| SummaryLine { text, cites: Vec::new() };
                said.push(plain(format!("  ```{fence}")));
                said.extend(inside.iter().map(|it| plain(format!("  {it}"))));
                said.push(plain("  ```".to_owned()));
            }
        }
    }

    fn check_line(&self, line: &str) -> Result<SummaryLine, String> {
        let (text, numbers) = split_citation(line);
        let found: Vec<usize> = numbers.into_iter().filter(|it| *it >= 1).collect();
        let stem = Stem::day(self.date);
        let mut citation: Option<Citation> = None;
        for number in &found {
            let number = u32::try_from(*number).unwrap_or(u32::MAX);
            let one = Citation::single_line(stem.clone(), number);
            match &mut citation {
                Some(citation) => citation.merge(&one),
                None => citation = Some(one),
            }
        }
        let words = text.trim_start().trim_start_matches(['-', '*', '#']).trim();
        let item = Item { text: words.to_owned(), citation };
        grounding::check_model_item(&item, &self.log).map_err(|it| match it {
            grounding::Violation::NoCitation => "it names no entry".to_owned(),
            grounding::Violation::LineMissing { address } => {
                format!("there is no entry {}", address.line)
            }
            grounding::Violation::AtomNotInSources { atom } => {
                format!("`{atom}` stands in none of the entries that it names")
            }
            other => other.to_string(),
        })?;
        let cites = found.iter().filter_map(|it| Some(self.entries.get(it - 1)?.index)).collect();
        Ok(SummaryLine { text: text.to_owned(), cites })
    }
}

/// So many entries a line may rest on.
const CITED_ENTRIES_MAX: usize = 60;

/// Splits a line into its words and the numbers of entries at its end.
fn split_citation(line: &str) -> (&str, Vec<usize>) {
    let line = line.trim_end();
    let none = || (line, Vec::new());
    let Some((text, inside)) =
        line.trim_end_matches('.').strip_suffix(']').and_then(|it| it.rsplit_once('['))
    else {
        return none();
    };
    let mut numbers = Vec::new();
    for part in inside.split([',', ';']).map(|it| it.trim().trim_start_matches('#')) {
        let (first, last) = part.split_once(['-', '–']).unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>())
        else {
            return none();
        };
        numbers.extend((first..=last).take(CITED_ENTRIES_MAX.saturating_sub(numbers.len())));
    }
    (text.trim_end(), numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::model::session::SECTION_TITLES;

    fn entries() -> Vec<SessionEntry> {
        let said = [
            (EntryPriority::User, "user: Import the Brest table, 412 rows."),
            (EntryPriority::AgentText, "agent: The import failed on line 17."),
            (EntryPriority::Result, "returned: let rows = 412;\nend"),
        ];
        let entries = said.into_iter().enumerate();
        entries
            .map(|(at, (weight, text))| SessionEntry {
                priority: weight,
                text: text.to_owned(),
                index: at + 10,
            })
            .collect()
    }

    #[track_caller]
    fn check_line(line: &str, kept: Option<(&str, &[usize])>) {
        let mut sections: [String; 9] = Default::default();
        line.clone_into(&mut sections[0]);
        let date = NaiveDate::from_ymd_opt(2026, 4, 2).unwrap();
        let checked = check(&SECTION_TITLES, &sections, &entries(), date, &PrivacyRules::default());
        let seen = checked.sections[0].first().map(|it| (&it.text[..], &it.cites[..]));
        assert_eq!(seen, kept, "{:?}", checked.rejected);
        assert_eq!(checked.rejected.len(), usize::from(kept.is_none()));
    }

    #[test]
    fn a_line_says_nothing_that_its_entries_do_not() {
        check_line(
            "- Import the Brest table of 412 rows [1]",
            Some(("- Import the Brest table of 412 rows", &[10])),
        );
        check_line(
            "- The import failed on line 17 [1-2].",
            Some(("- The import failed on line 17", &[10, 11])),
        );
        check_line("- Import the Brest table of 413 rows [1]", None);
        check_line("- Import the Calais table [1]", None);
        check_line("- The import failed on line 17 [1]", None);
        check_line("- The import failed on line 17", None);
        check_line("- The import failed on line 17 [9]", None);
        check_line("- The import did not fail on line 17 [2]", None);
    }

    #[test]
    fn code_stands_as_it_is_or_not_at_all() {
        let mut sections: [String; 9] = Default::default();
        sections[2] = "- Rows are set to 412 [3]\n```rust\nlet rows = 412;\n```".to_owned();
        sections[3] = "- The import failed [2]\n```\nlet rows = 413;\n```".to_owned();
        let date = NaiveDate::from_ymd_opt(2026, 4, 2).unwrap();
        let checked = check(&SECTION_TITLES, &sections, &entries(), date, &PrivacyRules::default());
        assert_eq!((checked.sections[2].len(), checked.sections[3].len()), (4, 1));
        assert_eq!(checked.rejected.len(), 1, "{:?}", checked.rejected);
    }
}
