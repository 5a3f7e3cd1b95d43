//! A session as a model is shown it: what may be seen, each entry short.

use super::{
    cited_summary::one_line,
    transcript::{EntryContent, Transcript, truncate, truncate_middle},
};
use crate::{
    engine::model::session::{EntryPriority, SessionEntry},
    memory::log::TextOrigin,
    privacy::{PrivacyRules, quarantine},
};

/// So much of what a tool returned is shown; the rest says little more.
const RESULT_CHARS_MAX: usize = 1_500;
/// So much of the agent's words.
const WORDS_CHARS_MAX: usize = 6_000;

/// Returns the entries of the session's own agent, secrets marked, and what looks like an attack left out.
pub fn model_entries(transcript: &Transcript, rules: &PrivacyRules) -> Vec<SessionEntry> {
    let seen = |text: &str, origin: TextOrigin| {
        if quarantine::concerns(text, origin).is_empty() {
            rules.mask_secrets(text).into_owned()
        } else {
            quarantine::PLACEHOLDER.to_owned()
        }
    };
    let shown = |what: &EntryContent| {
        let (weight, text) = match what {
            EntryContent::User(text) => {
                (EntryPriority::User, format!("user: {}", seen(text, TextOrigin::Agent)))
            }
            EntryContent::Assistant(text) => {
                let text = truncate_middle(text, WORDS_CHARS_MAX);
                (EntryPriority::AgentText, format!("agent: {}", seen(&text, TextOrigin::Agent)))
            }
            EntryContent::Call(call) => {
                let what = call.command.as_deref().map(str::to_owned);
                let what = what.unwrap_or_else(|| call.files.join(", "));
                let what =
                    format!("{} {}", truncate(&one_line(&what), 400), truncate(&call.excerpt, 400));
                (
                    EntryPriority::Call,
                    format!("call of {}: {}", call.name, seen(what.trim(), TextOrigin::Agent)),
                )
            }
            EntryContent::Result(result) => {
                let how = if result.is_error { "failed" } else { "returned" };
                let text = truncate_middle(&result.text, RESULT_CHARS_MAX);
                (EntryPriority::Result, format!("{how}: {}", seen(&text, TextOrigin::External)))
            }
            _ => return None,
        };
        Some((weight, text))
    };
    let own = transcript.entries.iter().enumerate().filter(|(_, it)| !it.is_subagent);
    own.filter_map(|(at, it)| {
        let (weight, text) = shown(&it.content)?;
        Some(SessionEntry { priority: weight, text, index: at })
    })
    .collect()
}
