//! A session as a model is shown it: what may be seen, each entry short.

use super::{
    page::one_line,
    transcript::{Transcript, What, cut, cut_middle},
};
use crate::{
    engine::model::session::{SessionEntry, Weight},
    memory::log::Origin,
    privacy::{Rules, hold},
};

/// So much of what a tool returned is shown; the rest says little more.
const RESULT_CHARS_MAX: usize = 1_500;
/// So much of the agent's words.
const WORDS_CHARS_MAX: usize = 6_000;
/// Stands in the place of a text that waits for a person.
const HELD: &str = "[held for review]";

/// Returns the entries of the session's own agent, secrets marked, and what looks like an attack left out.
pub fn entries(transcript: &Transcript, rules: &Rules) -> Vec<SessionEntry> {
    let seen = |text: &str, origin: Origin| {
        if hold::concerns(text, origin).is_empty() {
            rules.shown(text).into_owned()
        } else {
            HELD.to_owned()
        }
    };
    let shown = |what: &What| {
        let (weight, text) = match what {
            What::User(text) => (Weight::User, format!("user: {}", seen(text, Origin::Agent))),
            What::Assistant(text) => {
                let text = cut_middle(text, WORDS_CHARS_MAX);
                (Weight::Words, format!("agent: {}", seen(&text, Origin::Agent)))
            }
            What::Call(call) => {
                let what = call.command.as_deref().map(str::to_owned);
                let what = what.unwrap_or_else(|| call.files.join(", "));
                let what = format!("{} {}", cut(&one_line(&what), 400), cut(&call.brief, 400));
                (
                    Weight::Call,
                    format!("call of {}: {}", call.name, seen(what.trim(), Origin::Agent)),
                )
            }
            What::Result(result) => {
                let how = if result.is_error { "failed" } else { "returned" };
                let text = cut_middle(&result.text, RESULT_CHARS_MAX);
                (Weight::Result, format!("{how}: {}", seen(&text, Origin::External)))
            }
            _ => return None,
        };
        Some((weight, text))
    };
    let own = transcript.entries.iter().enumerate().filter(|(_, it)| !it.is_side);
    own.filter_map(|(at, it)| {
        let (weight, text) = shown(&it.what)?;
        Some(SessionEntry { weight, text, at })
    })
    .collect()
}
