//! Checks what a model says of a session, as [`ground`] checks what it says of logs.
//!
//! Each line names the entries that it rests on, and nothing in it may stand in none of them. Code has to
//! stand in an entry as it is. What fails is kept out, and said. Pure.

use chrono::NaiveDate;

use super::ground;
use crate::{
    engine::model::session::{SaidLine, SaidSections, SessionEntry, Weight},
    memory::{
        address::{Citation, Stem},
        item::Item,
        log::DailyLog,
    },
    privacy::{self, Rules, ServedLog},
};

/// What of a summary stood the check.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// The lines that stood it.
    pub sections: SaidSections,
    /// Those that did not, and why.
    pub rejected: Vec<(String, String)>,
}

/// Checks the sections of a summary, under `titles`, against the entries of a session that ended on `date`.
pub fn check(
    titles: &[&str],
    sections: &[String],
    entries: &[SessionEntry],
    date: NaiveDate,
    rules: &Rules,
) -> Checked {
    let mut checked = Checked::default();
    let Some(log) = as_log(entries, date, rules) else {
        checked.sections = vec![Vec::new(); titles.len()];
        return checked;
    };
    let mut check = Check { entries, log: vec![log], date, rejected: Vec::new() };
    for (title, text) in titles.iter().zip(sections) {
        // The user's messages are never taken from a model.
        let is_theirs = *title == "All User Messages";
        checked.sections.push(if is_theirs { Vec::new() } else { check.section(text) });
    }
    checked.rejected = check.rejected;
    checked
}

/// Puts the entries in the form of a log, one to a line; what tools returned is text from elsewhere.
fn as_log(entries: &[SessionEntry], date: NaiveDate, rules: &Rules) -> Option<ServedLog> {
    let mut text = String::new();
    for entry in entries {
        let mark = if entry.weight == Weight::Result { "> " } else { "- " };
        let words: Vec<&str> = entry.text.split_whitespace().collect();
        text.push_str(&[mark, &words.join(" "), "\n"].concat());
    }
    let log = DailyLog::parse(Stem::day(date), text.as_bytes()).ok()?;
    Some(privacy::serve(&log, rules))
}

struct Check<'a> {
    entries: &'a [SessionEntry],
    log: Vec<ServedLog>,
    date: NaiveDate,
    rejected: Vec<(String, String)>,
}

impl Check<'_> {
    fn section(&mut self, text: &str) -> Vec<SaidLine> {
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
                self.code(fence, &inside, &mut said);
                continue;
            }
            match self.line(line) {
                Ok(line) => said.push(line),
                Err(why) => self.rejected.push((trimmed.to_owned(), why)),
            }
        }
        said
    }

    /// Takes code over that stands in an entry line by line, beneath a bullet that stood.
    fn code(&mut self, fence: &str, inside: &[&str], said: &mut Vec<SaidLine>) {
        let stands = |line: &&str| self.entries.iter().any(|it| it.text.contains(line.trim()));
        match inside.iter().find(|it| !stands(it)) {
            Some(line) => {
                let why = "this code stands in no entry".to_owned();
                self.rejected.push((line.trim().to_owned(), why));
            }
            None if said.is_empty() => {}
            None => {
                let plain = |text: String| SaidLine { text, cites: Vec::new() };
                said.push(plain(format!("  ```{fence}")));
                said.extend(inside.iter().map(|it| plain(format!("  {it}"))));
                said.push(plain("  ```".to_owned()));
            }
        }
    }

    fn line(&self, line: &str) -> Result<SaidLine, String> {
        let (text, numbers) = cited(line);
        let found: Vec<usize> = numbers.into_iter().filter(|it| *it >= 1).collect();
        let stem = Stem::day(self.date);
        let mut citation: Option<Citation> = None;
        for number in &found {
            let number = u32::try_from(*number).unwrap_or(u32::MAX);
            let one = Citation::one(stem.clone(), number);
            match &mut citation {
                Some(citation) => citation.merge(&one),
                None => citation = Some(one),
            }
        }
        let words = text.trim_start().trim_start_matches(['-', '*', '#']).trim();
        let item = Item { text: words.to_owned(), citation };
        ground::check_written(&item, &self.log).map_err(|it| match it {
            ground::Violation::NoCitation => "it names no entry".to_owned(),
            ground::Violation::LineMissing { address } => {
                format!("there is no entry {}", address.line)
            }
            ground::Violation::AtomNotInSources { atom } => {
                format!("`{atom}` stands in none of the entries that it names")
            }
            other => other.to_string(),
        })?;
        let cites = found.iter().filter_map(|it| Some(self.entries.get(it - 1)?.at)).collect();
        Ok(SaidLine { text: text.to_owned(), cites })
    }
}

/// So many entries a line may rest on.
const CITES_MAX: usize = 60;

/// Splits a line into its words and the numbers of entries at its end.
fn cited(line: &str) -> (&str, Vec<usize>) {
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
        numbers.extend((first..=last).take(CITES_MAX.saturating_sub(numbers.len())));
    }
    (text.trim_end(), numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::model::session::SECTIONS;

    fn entries() -> Vec<SessionEntry> {
        let said = [
            (Weight::User, "user: Import the Brest table, 412 rows."),
            (Weight::Words, "agent: The import failed on line 17."),
            (Weight::Result, "returned: let rows = 412;\nend"),
        ];
        let entries = said.into_iter().enumerate();
        entries
            .map(|(at, (weight, text))| SessionEntry { weight, text: text.to_owned(), at: at + 10 })
            .collect()
    }

    #[track_caller]
    fn check_line(line: &str, kept: Option<(&str, &[usize])>) {
        let mut sections: [String; 9] = Default::default();
        line.clone_into(&mut sections[0]);
        let date = NaiveDate::from_ymd_opt(2026, 4, 2).unwrap();
        let checked = check(&SECTIONS, &sections, &entries(), date, &Rules::default());
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
        let checked = check(&SECTIONS, &sections, &entries(), date, &Rules::default());
        assert_eq!((checked.sections[2].len(), checked.sections[3].len()), (4, 1));
        assert_eq!(checked.rejected.len(), 1, "{:?}", checked.rejected);
    }
}
