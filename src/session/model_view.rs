//! A session as it is shown to a model: sanitized, with short entries.

use super::{
    cited_summary::one_line,
    transcript::{EntryContent, Transcript, truncate, truncate_message, truncate_middle},
};
use crate::{
    engine::model::session::{EntryPriority, SessionEntry},
    memory::log::TextOrigin,
    privacy::{PrivacyRules, quarantine},
};

/// The longest tool result that is shown, in characters; the rest adds little.
const RESULT_CHARS_MAX: usize = 1_500;
/// The longest text of the agent that is shown, in characters.
const WORDS_CHARS_MAX: usize = 6_000;

/// Returns the entries of the session's own agent, without secrets and without text that looks like an
/// attack.
pub(crate) fn model_entries(transcript: &Transcript, rules: &PrivacyRules) -> Vec<SessionEntry> {
    let sanitized = |text: &str, origin: TextOrigin| {
        if quarantine::concerns(text, origin).is_empty() {
            rules.mask_secrets(text).into_owned()
        } else {
            quarantine::PLACEHOLDER.to_owned()
        }
    };
    let entry_text = |what: &EntryContent| {
        let (priority, text) = match what {
            EntryContent::User(text) | EntryContent::Command(text)
                if what.user_words().is_some() =>
            {
                (EntryPriority::User, format!("user: {}", sanitized(text, TextOrigin::Agent)))
            }
            EntryContent::Assistant(text) => {
                let text = truncate_message(text, WORDS_CHARS_MAX);
                (
                    EntryPriority::AgentText,
                    format!("agent: {}", sanitized(&text, TextOrigin::Agent)),
                )
            }
            EntryContent::Call(call) => {
                let what = call.command.as_deref().map(str::to_owned);
                let what = what.unwrap_or_else(|| call.files.join(", "));
                let what =
                    format!("{} {}", truncate(&one_line(&what), 400), truncate(&call.excerpt, 400));
                (
                    EntryPriority::Call,
                    format!("call of {}: {}", call.name, sanitized(what.trim(), TextOrigin::Agent)),
                )
            }
            EntryContent::Result(result) => {
                let how = if result.is_error { "failed" } else { "returned" };
                let text = truncate_middle(&result.text, RESULT_CHARS_MAX);
                (
                    EntryPriority::Result,
                    format!("{how}: {}", sanitized(&text, TextOrigin::External)),
                )
            }
            _ => return None,
        };
        Some((priority, text))
    };
    let own = transcript.entries.iter().enumerate().filter(|(_, it)| !it.is_subagent);
    own.filter_map(|(at, it)| {
        let (priority, text) = entry_text(&it.content)?;
        Some(SessionEntry { priority, text, index: at })
    })
    .collect()
}
