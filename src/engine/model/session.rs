//! Sessions: the entries of a transcript out, sections back.

use super::{ModelEngine, request_data, unreadable, with_follow_up};
use crate::{
    engine::EngineError,
    model::{CallError, Message, ModelRequest, Stage, prompt::PromptName},
};

/// The headings of the sections, in their order.
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

/// The headings of what a recovery record has of a model, in their order.
pub const RECOVERY_TITLES: [&str; 5] =
    ["Objective", "Decisions", "Known Issues", "Pending", "Notes"];

/// What of a session is summed up, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryScope {
    /// All of it, in nine sections.
    Whole,
    /// Its later part, in the same.
    LaterPart,
    /// Where it stands, for a recovery record.
    Recovery,
}

impl SummaryScope {
    /// Returns the headings of its sections, in their order.
    pub fn titles(self) -> &'static [&'static str] {
        match self {
            Self::Whole | Self::LaterPart => &SECTION_TITLES,
            Self::Recovery => &RECOVERY_TITLES,
        }
    }
}

/// What is wrong with sections: each line that may not stand, and why.
pub type LineChecker<'a> = dyn Fn(&[String]) -> Vec<(String, String)> + 'a;

/// So many lines that may not stand are named to the model.
const REJECTED_SHOWN_MAX: usize = 12;

/// How often a session is cut shorter because the model cannot take it.
const CUTS_MAX: usize = 4;

/// How soon an entry is left out where the session is too long. In this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryPriority {
    /// What a tool returned.
    Result,
    /// That it was called.
    Call,
    /// What the agent said.
    AgentText,
    /// What the user said.
    User,
}

/// An entry of a session, as it may be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEntry {
    /// How soon it is left out.
    pub priority: EntryPriority,
    /// Who, and what.
    pub text: String,
    /// Its place in the transcript.
    pub index: usize,
}

/// A line of a section, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryLine {
    /// The line as it is to stand, without what it rests on.
    pub text: String,
    /// The places in the transcript that it rests on.
    pub cites: Vec<usize>,
}

/// The sections of a summary, checked line by line.
pub type SummarySections = Vec<Vec<SummaryLine>>;

impl ModelEngine {
    /// Asks for the summary of a session, or of a part of one. `name` is what the ledger calls it. Where
    /// lines of it may not stand, which `rejects` says, it is asked for once more, and the better one counts.
    ///
    /// # Errors
    ///
    /// Returns why there is no summary that could be read.
    pub fn summarize_session(
        &self,
        name: &str,
        entries: &[SessionEntry],
        wanted: SummaryScope,
        instructions: Option<&str>,
        rejects: &LineChecker<'_>,
    ) -> Result<Vec<String>, EngineError> {
        let request = |data: &str| self.session_request(name, data, wanted, instructions);
        let titles = wanted.titles();
        let mut room = self.room_chars(&request(""));
        for _ in 0..CUTS_MAX {
            let asked = request(&request_data::fence(&fit_entries(entries, room), &self.nonce));
            match self.ask_session(asked, titles, rejects) {
                Err(EngineError::Model(CallError::TooLong { .. })) => room /= 2,
                asked => return asked,
            }
        }
        let asked = request(&request_data::fence(&fit_entries(entries, room), &self.nonce));
        self.ask_session(asked, titles, rejects)
    }

    fn session_request(
        &self,
        name: &str,
        data: &str,
        wanted: SummaryScope,
        instructions: Option<&str>,
    ) -> ModelRequest {
        let part = "It is the later part of the session; what came before it stays as it is and needs no summary.";
        let (prompt, scope) = match wanted {
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
        ModelRequest {
            stage: Stage::Session,
            name: None,
            period: name.to_owned(),
            system,
            messages: vec![Message::user(data)],
            schema: None,
            tools: Vec::new(),
            max_output_tokens: prompt.max_output_tokens.min(self.max_output_tokens),
            temperature: prompt.temperature,
        }
    }

    /// Asks, and once more where a section is missing or lines may not stand.
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
                let again = self.ask(&with_follow_up(request, &text, retry_message(&rejected)));
                // What stands of the first one stands, whatever becomes of the second.
                let again = again.ok().and_then(|it| parse_reply(&it, titles).ok());
                let better = again.filter(|it| rejects(it).len() < rejected.len());
                return Ok(better.unwrap_or(first));
            }
            Err(missing) => missing,
        };
        let told = format!(
            "The section \"{missing}\" is missing. Write `<summary>` again with all {} sections.",
            titles.len()
        );
        parse_reply(&self.ask(&with_follow_up(request, &text, told))?, titles)
            .map_err(|missing| unreadable(format!("the section \"{missing}\" is missing")))
    }
}

/// Returns the entries that fit: results go first, and the oldest of them, what the user said last.
pub(super) fn fit_entries(entries: &[SessionEntry], room_chars: usize) -> String {
    // Room for the number before it.
    let chars = |entry: &SessionEntry| entry.text.chars().count() + 8;
    let mut total: usize = entries.iter().map(chars).sum();
    let mut is_out = vec![false; entries.len()];
    for weight in
        [EntryPriority::Result, EntryPriority::Call, EntryPriority::AgentText, EntryPriority::User]
    {
        for (entry, is_out) in entries.iter().zip(&mut is_out) {
            if total > room_chars && entry.priority == weight {
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

/// Reads the sections of a reply: its notes are dropped, its tags go, runs of blank lines become one.
///
/// # Errors
///
/// Returns the heading of the first section that is missing.
fn parse_reply(reply: &str, titles: &[&'static str]) -> Result<Vec<String>, &'static str> {
    let behind = reply.rsplit_once("</analysis>").map_or(reply, |it| it.1);
    let summary = behind.split_once("<summary>").map_or(behind, |it| it.1);
    let summary = summary.split_once("</summary>").map_or(summary, |it| it.0);
    split_at_titles(summary, titles)
}

/// Says which lines of a reply may not stand.
fn retry_message(rejected: &[(String, String)]) -> String {
    let mut told = String::from("These lines do not stand in the entries that they name:\n");
    for (line, why) in rejected.iter().take(REJECTED_SHOWN_MAX) {
        told.push_str(&[line.trim(), "\n  ", why, "\n"].concat());
    }
    if rejected.len() > REJECTED_SHOWN_MAX {
        let more = (rejected.len() - REJECTED_SHOWN_MAX).to_string();
        told.push_str(&["and ", &more, " more\n"].concat());
    }
    told.push_str(
        "Write `<summary>` again with all sections: name the right entries for these lines, say only what \
         stands there, or leave them out. Keep the other lines as they are.",
    );
    told
}

/// Splits a text at headings that stand in it in this order.
///
/// # Errors
///
/// Returns the first heading that is missing.
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

/// Returns whether a line is that heading, however it is marked.
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
    fn a_reply_is_read_however_its_headings_are_marked() {
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
    fn what_the_user_said_is_left_out_last() {
        let entry =
            |weight, text: &str| SessionEntry { priority: weight, text: text.to_owned(), index: 0 };
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
        let kept = |room: usize| fit_entries(&entries, room).matches(": ").count();
        assert_eq!([kept(64), kept(45), kept(20), kept(0)], [3, 2, 1, 0]);
        assert!(fit_entries(&entries, 20).ends_with("[1] user: aaaa\n"));
    }
}
