//! Checks a model's summary of a session, as [`grounding`] checks what it writes about logs; and the lines of
//! a daily log that cite a session record.
//!
//! Each line of a summary cites entries of the session, and everything in it must be in one of them. Code
//! must be in an entry verbatim. Lines that fail are left out and reported. A line of a daily log must be a
//! verbatim cut of the record's lines. Pure.

use std::{borrow::Cow, ops::Range, rc::Rc};

use chrono::{NaiveDate, NaiveTime};

use crate::{
    compaction::grounding,
    engine::model::session::{EntryPriority, SessionEntry, SummaryLine, SummarySections},
    memory::{
        address::{self, Citation, Stem},
        item::Item,
        log::DailyLog,
        markdown::{self, LineKind},
        own_words,
    },
    privacy::{self, PrivacyRules, SanitizedLine, SanitizedLog},
    session::{
        cited_summary,
        composed_line::{self, PLAN_LABEL},
        log_entry,
    },
};

/// The result of checking a summary.
#[derive(Clone, Debug, Default)]
pub struct CheckedSession {
    /// The lines that passed.
    pub sections: SummarySections,
    /// The lines that did not pass, and why.
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
        // The messages of the user are never taken from a model.
        let is_user_text = *title == "All User Messages";
        checked.sections.push(if is_user_text { Vec::new() } else { check.check_section(text) });
    }
    checked.rejected = check.rejected;
    checked
}

/// Converts the entries to a log with one entry per line. The results of tools are external text. Of a message
/// only the writer's own words count, unless it has none.
fn entries_as_log(
    entries: &[SessionEntry],
    date: NaiveDate,
    rules: &PrivacyRules,
) -> Option<SanitizedLog> {
    let mut text = String::new();
    for entry in entries {
        let is_message = matches!(entry.priority, EntryPriority::User | EntryPriority::AgentText);
        let (who, message) = entry.text.split_once(": ").unwrap_or(("", &entry.text));
        let own = own_words::own_words(message).filter(|_| is_message);
        let own = own.map(|it| if it.is_empty() { it } else { format!("{who}: {it}") });
        let is_external = entry.priority == EntryPriority::Result || own.as_deref() == Some("");
        let mark = if is_external { "> " } else { "- " };
        let whole = own.as_deref().filter(|it| !it.is_empty()).unwrap_or(&entry.text);
        let words: Vec<&str> = whole.split_whitespace().collect();
        text.push_str(&[mark, &words.join(" "), "\n"].concat());
    }
    let log = DailyLog::parse(Stem::day(date), text.as_bytes()).ok()?;
    Some(privacy::sanitize(&log, rules))
}

/// The lines of a session record.
#[derive(Debug)]
pub(crate) struct RecordLines {
    /// Without quotes in messages and results of tools.
    whole: Vec<String>,
    /// The same lines, each with only its writer's own words.
    own: Vec<String>,
    /// Whether each line is not part of the text of an entry.
    is_outside_entry: Vec<bool>,
}

impl RecordLines {
    /// Reads the lines of the file of a record.
    pub(crate) fn parse(stem: &Stem, text: &str) -> Option<Self> {
        let log = DailyLog::parse(stem.clone(), text.as_bytes()).ok()?;
        let lines = log.lines();
        let front = lines.first().map_or(0, |it| it.0.saturating_sub(1));
        let mut record = Self {
            whole: (0..front).map(|_| String::new()).collect(),
            own: (0..front).map(|_| String::new()).collect(),
            is_outside_entry: (0..front).map(|_| true).collect(),
        };
        let lines: Vec<&str> = lines.iter().map(|it| it.1).collect();
        let mut at = 0;
        while at < lines.len() {
            let is_entry = cited_summary::is_entry_head(lines[at]);
            let is_same = |it: &&&str| {
                if is_entry {
                    it.is_empty() || it.starts_with("  ")
                } else {
                    !cited_summary::is_entry_head(it)
                }
            };
            let count = lines[at + 1..].iter().take_while(is_same).count();
            // The text of an entry is read as it was in the session, whatever is around it.
            let (head, text) = lines[at..=at + count].split_at(usize::from(is_entry));
            // Commands and names of files are no Markdown, and the plan is the agent's.
            let has_quotes = !is_entry || lines[at].starts_with("- call of ");
            record.add(head.to_vec(), has_quotes);
            let indent = if is_entry { 2 } else { 0 };
            record.add(
                text.iter().map(|it| it.get(indent..).unwrap_or_default()).collect(),
                has_quotes,
            );
            record.is_outside_entry.extend(head.iter().map(|_| true));
            record.is_outside_entry.extend(text.iter().map(|_| !is_entry));
            at += count + 1;
        }
        Some(record)
    }

    /// Adds lines; `has_quotes` says whether lines that begin with `>` are facts, too.
    fn add(&mut self, lines: Vec<&str>, has_quotes: bool) {
        let kinds = markdown::classify_lines(lines.iter().copied());
        let lines: Vec<(&str, LineKind)> = lines.into_iter().zip(kinds).collect();
        self.own.extend(own_words::own_lines(&lines).into_iter().map(Cow::into_owned));
        self.whole.extend(lines.into_iter().map(|(line, kind)| match kind {
            LineKind::Quote { .. } if !has_quotes => String::new(),
            _ => line.to_owned(),
        }));
    }

    /// Returns the indices of the lines that a range cites. The citation of a long entry covers only its start;
    /// the rest of it is cited, too.
    fn cited(&self, (start, end): (u32, u32)) -> Range<usize> {
        let first = (start as usize).saturating_sub(1).min(self.whole.len());
        let is_entry = self.whole.get(first).is_some_and(|it| cited_summary::is_entry_head(it));
        let goes_on = |at: usize, it: &str| {
            if is_entry {
                at == first || !self.is_outside_entry[at]
            } else {
                !cited_summary::is_record_markup(it.trim())
            }
        };
        let lines = self.whole.iter().enumerate().skip(first);
        first..first + lines.take_while(|(at, it)| *at < end as usize || goes_on(*at, it)).count()
    }
}

/// Returns whether a line of a log cites a session record that says something else, or that only quotes it.
/// `record` returns the lines of a record. A line whose record is gone, or has no such line, is not checked.
pub(crate) fn misquotes_record(
    line: &SanitizedLine,
    rules: &PrivacyRules,
    mut record: impl FnMut(&Stem) -> Option<Rc<RecordLines>>,
) -> bool {
    let Some(citation) = address::session_citation(line.text().trim_end()) else { return false };
    let words = without_time(line.words());
    let mut own: Vec<String> = Vec::new();
    let mut cited: Vec<String> = Vec::new();
    let mut whole: Vec<String> = Vec::new();
    let mut whole_own: Vec<String> = Vec::new();
    for (stem, lines) in citation.files() {
        let Some(record) = record(stem) else { return false };
        for &range in lines.ranges() {
            let range = record.cited(range);
            own.extend_from_slice(&record.own[range.clone()]);
            cited.extend_from_slice(&record.whole[range]);
        }
        if words.starts_with(PLAN_LABEL) {
            whole.extend_from_slice(&record.whole);
            whole_own.extend_from_slice(&record.own);
        }
    }
    // What is inert in code may not be so in a sentence, or where a line is cut off within the code.
    let inert = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|it| unescaped(&rules.sanitize_output(it))).collect()
    };
    // Escaped, what was a tag in the record is text, of which a part may look struck out.
    let inert_own = |lines: &[String]| -> Vec<String> {
        let escaped = lines.iter().map(|it| rules.sanitize_output(it));
        escaped.map(|it| unescaped(&own_words::own_words(&it).unwrap_or(it))).collect()
    };
    // Only the program composes a line of what is not somebody's own words: of files and commands. In the log,
    // too, a name may look struck out.
    let is_in = |words: &str, own: &[String], cited: &[String], whole: [&[String]; 2]| {
        let own = own.join("\n");
        log_entry::is_quoted_from(words, &own)
            || composed_line::is_composed_of(words, &cited.join("\n"), whole[0])
            || composed_line::is_composed_of(words, &own, whole[1])
    };
    let is_said = |words: &str| {
        let shown = unescaped(words);
        is_in(words, &own, &cited, [&whole, &whole_own])
            // In code only hidden characters are shown by signs.
            || is_in(&shown, &own, &cited, [&whole, &whole_own])
            || is_in(&shown, &inert(&own), &inert(&cited), [&inert(&whole), &inert(&whole_own)])
            || is_in(&shown, &[], &inert_own(&cited), [&inert_own(&whole), &[]])
    };
    // The label alone says nothing.
    let is_empty = |words: &str| {
        words.ends_with(':')
            && !words.contains(": ")
            && (words.starts_with("Session") || !words.contains(' '))
    };
    !cited.is_empty() && !is_empty(words) && !is_said(words)
}

/// Returns a text without the signs by which sanitized text shows characters of markup and hidden ones.
fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("] :", "]:");
    let mut shown = String::with_capacity(text.len());
    let mut rest = &text[..];
    while let Some(at) = rest.find("{U+") {
        let code = rest[at + 3..].split_once('}').and_then(|(code, rest)| {
            let c = u32::from_str_radix(code, 16).ok().and_then(char::from_u32)?;
            Some((c, rest))
        });
        let Some((c, after)) = code else { break };
        shown.push_str(&rest[..at]);
        shown.push(c);
        rest = after;
    }
    shown + rest
}

/// Returns the words of an entry without its time.
fn without_time(words: &str) -> &str {
    let words = words.trim();
    let timed = words.split_once(' ').filter(|it| NaiveTime::parse_from_str(it.0, "%H:%M").is_ok());
    timed.map_or(words, |it| it.1).trim()
}

struct SessionChecker<'a> {
    entries: &'a [SessionEntry],
    log: Vec<SanitizedLog>,
    date: NaiveDate,
    rejected: Vec<(String, String)>,
}

impl SessionChecker<'_> {
    fn check_section(&mut self, text: &str) -> Vec<SummaryLine> {
        let mut accepted = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed == "(none)" {
                continue;
            }
            if let Some(fence) = trimmed.strip_prefix("```") {
                let inside: Vec<&str> =
                    lines.by_ref().take_while(|it| !it.trim_start().starts_with("```")).collect();
                self.check_code(fence, &inside, &mut accepted);
                continue;
            }
            match self.check_line(line) {
                Ok(line) => accepted.push(line),
                Err(why) => self.rejected.push((trimmed.to_owned(), why)),
            }
        }
        accepted
    }

    /// Accepts code if an entry has each of its lines, and if a line before it passed.
    fn check_code(&mut self, fence: &str, inside: &[&str], accepted: &mut Vec<SummaryLine>) {
        let is_in_an_entry =
            |line: &&str| self.entries.iter().any(|it| it.text.contains(line.trim()));
        match inside.iter().find(|it| !is_in_an_entry(it)) {
            Some(line) => {
                let why = "this code is in no entry".to_owned();
                self.rejected.push((line.trim().to_owned(), why));
            }
            None if accepted.is_empty() => {}
            None => {
                let plain = |text: String| SummaryLine { text, cites: Vec::new() };
                accepted.push(plain(format!("  ```{fence}")));
                accepted.extend(inside.iter().map(|it| plain(format!("  {it}"))));
                accepted.push(plain("  ```".to_owned()));
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
            grounding::Violation::NoCitation => "it cites no entry".to_owned(),
            grounding::Violation::LineMissing { address } => {
                format!("there is no entry {}", address.line)
            }
            grounding::Violation::AtomNotInSources { atom } => {
                format!("`{atom}` is in none of the entries that it cites")
            }
            other => other.to_string(),
        })?;
        let cites = found.iter().filter_map(|it| Some(self.entries.get(it - 1)?.index)).collect();
        Ok(SummaryLine { text: text.to_owned(), cites })
    }
}

/// The most entries that a line may cite.
const CITED_ENTRIES_MAX: usize = 60;

/// Splits a line into its text and the numbers of the entries that it cites at its end.
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
    use chrono::{TimeZone as _, Utc};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{
        engine::model::session::SECTION_TITLES,
        session::{
            save::{SaveError, SaveRequest, SessionStore},
            transcript::{self, TranscriptFormat},
        },
        store::fs::{layout::Layout, vault::Vault},
    };

    /// Saves a conversation, and returns the lines of its log that misquote its record.
    fn misquotes_of(turns: &[(&str, String)]) -> Vec<String> {
        let lines = turns.iter().map(|(role, text)| {
            let line = cited_summary::one_line(text);
            match *role {
                "call" => json!({"role": "assistant", "content": [
                    {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": text}},
                    {"type": "tool_use", "id": "w", "name": "Write", "input": {"file_path": line}},
                    {"type": "tool_use", "id": "p", "name": "TodoWrite", "input": {"todos": [
                        {"content": line, "status": "pending"}, {"content": "x", "status": "completed"}]}},
                    {"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": text},
                    {"type": "tool_result", "tool_use_id": "w", "content": "ok"}]}),
                role => json!({"role": role, "content": text}),
            }
            .to_string()
        });
        let file = lines.collect::<Vec<_>>().join("\n");
        let transcript = transcript::read(file.as_bytes(), Some(TranscriptFormat::Plain)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("memory")).unwrap();
        let vault = Vault::new(Layout::new(dir.path().to_owned(), "memory"));
        vault.create_private_dir().unwrap();
        let rules = PrivacyRules::default();
        let now = Utc.with_ymd_and_hms(2026, 4, 2, 12, 0, 0).unwrap();
        let store = SessionStore { vault: &vault, rules: &rules, zone: chrono_tz::UTC, now };
        let saved = match store.save(&SaveRequest::for_ended_session(&transcript, None)) {
            Err(SaveError::NothingNew) => return Vec::new(),
            saved => saved.unwrap(),
        };
        let text = vault.read_text(&saved.logged[0]).unwrap().unwrap();
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
        let log = privacy::sanitize(&log, &rules);
        let record = |stem: &Stem| {
            let text = vault.read_text(&vault.layout().source_path(stem)).unwrap()?;
            RecordLines::parse(stem, &text).map(Rc::new)
        };
        let misquotes = log.lines().iter().filter(|it| misquotes_record(it, &rules, record));
        misquotes.map(|it| it.text().to_owned()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

        /// Whatever people and agents write, the lines of an entry are in its record word for word.
        #[test]
        fn no_entry_misquotes_its_record(
            turns in proptest::collection::vec(
                (
                    prop_oneof![3 => Just("user"), 3 => Just("assistant"), 1 => Just("call")],
                    prop_oneof![
                        "[a-e0-1 .,!;`\n<>*#-]{1,60}",
                        "((not|1|deleted|we decided to|use|Fixed:|no,|still open:|<details>|\\(none\\)|- user x, line 3:|> quoted|```)[ .!;\n]{1,2}){1,14}",
                        "\\PC{0,400}",
                    ],
                ),
                1..7,
            ),
        ) {
            prop_assert_eq!(misquotes_of(&turns), Vec::<String>::new());
        }
    }

    #[test]
    fn hidden_characters_of_a_command_are_in_its_record() {
        let turns = [("call", r"\Aༀ\A𐠷`"), ("call", "![\u{e0100}"), ("user", "!")];
        assert_eq!(misquotes_of(&turns.map(|it| (it.0, it.1.to_owned()))), Vec::<String>::new());
    }

    #[test]
    fn a_sentence_that_begins_with_a_fence_opens_no_code_block_in_the_log() {
        let turns = [("assistant", "deleted. ```.still open: not\n"), ("user", "Ship the table.")];
        assert_eq!(misquotes_of(&turns.map(|it| (it.0, it.1.to_owned()))), Vec::<String>::new());
    }

    #[test]
    fn a_name_that_is_a_tag_in_the_record_may_have_a_part_struck_out_in_the_log() {
        let turns = [("call", "<A/~tide table of Brest~}pier/lamp>")];
        assert_eq!(misquotes_of(&turns.map(|it| (it.0, it.1.to_owned()))), Vec::<String>::new());
    }

    #[test]
    fn an_item_of_a_plan_may_look_like_the_head_of_an_entry() {
        let turns = [("user", "#"), ("call", "> quoted - user x, line 3: ")];
        assert_eq!(misquotes_of(&turns.map(|it| (it.0, it.1.to_owned()))), Vec::<String>::new());
    }

    fn entries() -> Vec<SessionEntry> {
        let texts = [
            (EntryPriority::User, "user: Import the Brest table, 412 rows."),
            (EntryPriority::AgentText, "agent: The import failed on line 17."),
            (EntryPriority::Result, "returned: let rows = 412;\nend"),
            (EntryPriority::User, "user: Answer this mail:\n> Delete the Calais table\n\nThanks."),
        ];
        let entries = texts.into_iter().enumerate();
        entries
            .map(|(at, (priority, text))| SessionEntry {
                priority,
                text: text.to_owned(),
                index: at + 10,
            })
            .collect()
    }

    #[track_caller]
    fn check_line(line: &str, expected: Option<(&str, &[usize])>) {
        let mut sections: [String; 9] = Default::default();
        line.clone_into(&mut sections[0]);
        let date = NaiveDate::from_ymd_opt(2026, 4, 2).unwrap();
        let checked = check(&SECTION_TITLES, &sections, &entries(), date, &PrivacyRules::default());
        let seen = checked.sections[0].first().map(|it| (&it.text[..], &it.cites[..]));
        assert_eq!(seen, expected, "{:?}", checked.rejected);
        assert_eq!(checked.rejected.len(), usize::from(expected.is_none()));
    }

    #[test]
    fn a_line_passes_if_its_entries_support_it() {
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
        // What the user quotes is not what the user says.
        check_line("- Answer this mail [4]", Some(("- Answer this mail", &[13])));
        check_line("- Delete the Calais table [4]", None);
    }

    #[test]
    fn code_passes_only_verbatim() {
        let mut sections: [String; 9] = Default::default();
        sections[2] = "- Rows are set to 412 [3]\n```rust\nlet rows = 412;\n```".to_owned();
        sections[3] = "- The import failed [2]\n```\nlet rows = 413;\n```".to_owned();
        let date = NaiveDate::from_ymd_opt(2026, 4, 2).unwrap();
        let checked = check(&SECTION_TITLES, &sections, &entries(), date, &PrivacyRules::default());
        assert_eq!((checked.sections[2].len(), checked.sections[3].len()), (4, 1));
        assert_eq!(checked.rejected.len(), 1, "{:?}", checked.rejected);
    }
}
