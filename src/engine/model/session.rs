//! Asks a model for the summary of a session, and parses its sections.

use super::{ModelEngine, request_data, unreadable, with_follow_up};
use crate::{
    engine::EngineError,
    model::{CallError, Message, ModelRequest, Stage, prompt::PromptName},
};

/// The headings of a session summary, in order.
pub const SECTION_TITLES: [&str; 9] = [
    "Primary Request and Intent",
    "Key Technical Concepts",
    "Files and Code Sections",
    "Errors and Fixes",
    "Problem Solving",
    "All User Messages",
    "Pending Tasks",
    "Current Work",
    "Optional Next Step",
];

/// The headings of the part of a recovery record that a model writes, in order.
pub const RECOVERY_TITLES: [&str; 5] =
    ["Objective", "Decisions", "Known Issues", "Pending", "Notes"];

/// Which part of a session is summarized, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryScope {
    /// The whole session, in nine sections.
    Whole,
    /// Its later part, in the same sections.
    LaterPart,
    /// Its current state, for a recovery record.
    Recovery,
}

impl SummaryScope {
    /// Returns the headings of its sections, in order.
    pub fn titles(self) -> &'static [&'static str] {
        match self {
            Self::Whole | Self::LaterPart => &SECTION_TITLES,
            Self::Recovery => &RECOVERY_TITLES,
        }
    }
}

/// Checks sections and returns each rejected line with the reason.
pub type LineChecker<'a> = dyn Fn(&[String]) -> Vec<(String, String)> + 'a;

/// The most rejected lines that are listed for the model.
const REJECTED_SHOWN_MAX: usize = 12;

/// How often a session is shortened because the model refused it as too long.
const CUTS_MAX: usize = 4;

/// How early an entry is left out of a session that is too long, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryPriority {
    /// The result of a tool.
    Result,
    /// A tool call.
    Call,
    /// Text of the agent.
    AgentText,
    /// Text of the user.
    User,
}

/// An entry of a session, sanitized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEntry {
    /// How early it is left out.
    pub priority: EntryPriority,
    /// Speaker and text.
    pub text: String,
    /// Its position in the transcript.
    pub index: usize,
}

/// A checked line of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryLine {
    /// The line without its citation.
    pub text: String,
    /// The positions of its source entries in the transcript.
    pub cites: Vec<usize>,
}

/// The sections of a summary, checked line by line.
pub type SummarySections = Vec<Vec<SummaryLine>>;

impl ModelEngine {
    /// Asks for the summary of a session or of a part of it. `name` identifies it in the ledger.
    ///
    /// If `rejects` returns lines, asks once more and returns the reply with fewer rejected lines.
    ///
    /// # Errors
    ///
    /// Returns why there is no readable summary.
    pub fn summarize_session(
        &self,
        name: &str,
        entries: &[SessionEntry],
        scope: SummaryScope,
        instructions: Option<&str>,
        rejects: &LineChecker<'_>,
    ) -> Result<Vec<String>, EngineError> {
        let request = |data: &str| self.session_request(name, data, scope, instructions);
        let titles = scope.titles();
        let mut room = self.room_chars(&request(""));
        for _ in 0..CUTS_MAX {
            let data = request_data::fence(&fit_entries(entries, room), &self.nonce);
            match self.ask_session(request(&data), titles, rejects) {
                Err(EngineError::Model(CallError::TooLong { .. })) => room /= 2,
                result => return result,
            }
        }
        let data = request_data::fence(&fit_entries(entries, room), &self.nonce);
        self.ask_session(request(&data), titles, rejects)
    }

    fn session_request(
        &self,
        name: &str,
        data: &str,
        scope: SummaryScope,
        instructions: Option<&str>,
    ) -> ModelRequest {
        let part = "It is the later part of the session; what came before it stays as it is and needs no summary.";
        let (prompt, scope) = match scope {
            SummaryScope::Whole => (PromptName::Session, Some("It is the whole session.")),
            SummaryScope::LaterPart => (PromptName::Session, Some(part)),
            SummaryScope::Recovery => (PromptName::Recovery, None),
        };
        let prompt = self.prompts.get(prompt);
        let mut system = match scope {
            Some(scope) => prompt.fill(&[("scope", scope)]),
            None => prompt.fill(&[]),
        };
        if let Some(instructions) = instructions {
            system.push_str("\n\n## Additional Instructions\n");
            system.push_str(instructions.trim());
            system.push_str("\n\nCall no tools. Answer with text alone.");
        }
        let messages = vec![Message::user(data)];
        self.request(Stage::Session, name.to_owned(), prompt, system, messages)
    }

    /// Asks once, and once more if a section is missing or lines are rejected.
    fn ask_session(
        &self,
        request: ModelRequest,
        titles: &[&'static str],
        rejects: &LineChecker<'_>,
    ) -> Result<Vec<String>, EngineError> {
        let text = self.ask(&request)?;
        let missing = match parse_reply(&text, titles) {
            Ok(first) => {
                let rejected = rejects(&first);
                if rejected.is_empty() {
                    return Ok(first);
                }
                let retry = with_follow_up(request, &text, retry_message(&rejected));
                // The first reply is usable, so a failed retry is no error.
                let second = self.ask(&retry).ok().and_then(|it| parse_reply(&it, titles).ok());
                let better = second.filter(|it| rejects(it).len() < rejected.len());
                return Ok(better.unwrap_or(first));
            }
            Err(missing) => missing,
        };
        let message = format!(
            "The section \"{missing}\" is missing. Write `<summary>` again with all {} sections.",
            titles.len()
        );
        parse_reply(&self.ask(&with_follow_up(request, &text, message))?, titles)
            .map_err(|missing| unreadable(format!("the section \"{missing}\" is missing")))
    }
}

/// Returns the entries that fit into `room_chars`, numbered. Leaves out the lowest priority first, and of
/// equal priority the oldest.
pub(super) fn fit_entries(entries: &[SessionEntry], room_chars: usize) -> String {
    // 8 characters for the number and the line end.
    let chars = |entry: &SessionEntry| entry.text.chars().count() + 8;
    let mut total: usize = entries.iter().map(chars).sum();
    let mut is_out = vec![false; entries.len()];
    for priority in
        [EntryPriority::Result, EntryPriority::Call, EntryPriority::AgentText, EntryPriority::User]
    {
        for (entry, is_out) in entries.iter().zip(&mut is_out) {
            if total > room_chars && entry.priority == priority {
                *is_out = true;
                total -= chars(entry);
            }
        }
    }
    let mut text = String::new();
    let left_out = is_out.iter().filter(|it| **it).count();
    if left_out > 0 {
        let count = left_out.to_string();
        text.push_str(&["[", &count, " entries are left out for lack of room]\n"].concat());
    }
    let numbered = (1_usize..).zip(entries).zip(is_out);
    for ((number, entry), _) in numbered.filter(|(_, is_out)| !is_out) {
        text.push_str(&["[", &number.to_string(), "] ", &entry.text].concat());
        text.push('\n');
    }
    text
}

/// Parses the sections of a reply, without its notes and tags; runs of blank lines become one.
///
/// The error is the heading of the first section that is missing.
fn parse_reply(reply: &str, titles: &[&'static str]) -> Result<Vec<String>, &'static str> {
    let behind = reply.rsplit_once("</analysis>").map_or(reply, |it| it.1);
    let summary = behind.split_once("<summary>").map_or(behind, |it| it.1);
    let summary = summary.split_once("</summary>").map_or(summary, |it| it.0);
    split_at_titles(summary, titles)
}

fn retry_message(rejected: &[(String, String)]) -> String {
    let mut message =
        String::from("These lines are not supported by the entries that they cite:\n");
    for (line, why) in rejected.iter().take(REJECTED_SHOWN_MAX) {
        message.push_str(&[line.trim(), "\n  ", why, "\n"].concat());
    }
    if rejected.len() > REJECTED_SHOWN_MAX {
        let more = (rejected.len() - REJECTED_SHOWN_MAX).to_string();
        message.push_str(&["and ", &more, " more\n"].concat());
    }
    message.push_str(
        "Write `<summary>` again with all sections: cite the right entries for these lines, write only \
         what those entries say, or leave the lines out. Keep the other lines as they are.",
    );
    message
}

/// Splits a text at `titles`, which must occur in this order. The error is the first that is missing.
pub(super) fn split_at_titles(
    text: &str,
    titles: &[&'static str],
) -> Result<Vec<String>, &'static str> {
    let mut found: Vec<Option<String>> = vec![None; titles.len()];
    let mut open: Option<usize> = None;
    for line in text.lines() {
        let next = open.map_or(0, |it| it + 1);
        if titles.get(next).is_some_and(|title| is_heading(line, title)) {
            found[next] = Some(String::new());
            open = Some(next);
        } else if let Some(text) = open.and_then(|it| found[it].as_mut()) {
            let is_second_blank =
                line.trim().is_empty() && (text.is_empty() || text.ends_with("\n\n"));
            if !is_second_blank {
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
    }
    if let Some(at) = found.iter().position(Option::is_none) {
        return Err(titles[at]);
    }
    Ok(found.into_iter().map(|it| it.unwrap_or_default().trim_end().to_owned()).collect())
}

/// Returns whether a line is that heading, in any markup.
fn is_heading(line: &str, title: &str) -> bool {
    let plain = line.trim().trim_matches(['#', '*', ':', ' ']);
    let plain =
        plain.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(['.', ')', ' ']);
    plain.trim_matches(['*', ':', ' ']).eq_ignore_ascii_case(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_found_in_any_markup() {
        let mut reply = String::from(
            "<analysis>\n## 1. Primary Request and Intent\nx\n</analysis>\n<summary>\n",
        );
        for (n, title) in SECTION_TITLES.iter().enumerate() {
            let head = [
                format!("## {}. {title}", n + 1),
                format!("{}. **{title}:**", n + 1),
                format!("**{title}**"),
            ];
            let about = n.to_string();
            reply.push_str(&[&head[n % 3], "\n\n\n- about ", &about, "\n\n\n\n- more\n"].concat());
        }
        let sections = parse_reply(&format!("{reply}</summary> bye"), &SECTION_TITLES).unwrap();
        assert_eq!(sections[4], "- about 4\n\n- more");
        let cut = reply.split("Pending Tasks").next().unwrap();
        assert_eq!(super::parse_reply(cut, &SECTION_TITLES), Err("Pending Tasks"));
    }

    #[test]
    fn user_text_is_left_out_last() {
        let entry =
            |priority, text: &str| SessionEntry { priority, text: text.to_owned(), index: 0 };
        let entries = [
            entry(EntryPriority::User, "user: aaaa"),
            entry(EntryPriority::Result, "result: bbbb"),
            entry(EntryPriority::AgentText, "agent: cccc"),
            entry(EntryPriority::Result, "result: dddd"),
        ];
        assert_eq!(
            fit_entries(&entries, 1_000),
            "[1] user: aaaa\n[2] result: bbbb\n[3] agent: cccc\n[4] result: dddd\n"
        );
        let fitting = |room: usize| fit_entries(&entries, room).matches(": ").count();
        assert_eq!([fitting(64), fitting(45), fitting(20), fitting(0)], [3, 2, 1, 0]);
        assert!(fit_entries(&entries, 20).ends_with("[1] user: aaaa\n"));
    }
}
