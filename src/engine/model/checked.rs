//! The items of a reply after the checks, and the second try for those that failed.
//!
//! Items that cannot be read or fail the checks are returned to the model once, together, each with its problem.
//! Afterwards the valid ones are used, and the user sees the others unchanged.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{ModelEngine, unreadable, unreadable_message, with_follow_up};
use crate::{
    engine::{EngineError, UnreadableItem},
    memory::address::Citation,
    model::ModelRequest,
};

/// An item of a reply, such as a statement.
pub(super) trait ReplyItem: Clone + PartialEq {
    /// What an item is called in a message to the model.
    const NOUN: &'static str;

    /// Returns the words that say what it is about, as they are in the reply.
    fn subject(&self) -> &str;

    /// Returns the lines that it cites.
    fn citation(&self) -> Option<&Citation>;
}

/// An item of a reply after the checks.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Checked<T> {
    Valid(T),
    /// A readable item that failed the checks, and why.
    Invalid(T, String),
    Unreadable(UnreadableItem),
}

/// The items of a reply: each read, or why it could not be.
pub(super) type ReadItems<T> = Vec<Result<T, UnreadableItem>>;

/// Reads and checks a reply. The error is worded for the model.
type Read<'a, T> = dyn Fn(&str) -> Result<Vec<Checked<T>>, String> + 'a;

impl<T: ReplyItem> Checked<T> {
    pub(super) fn problem(&self) -> Option<&str> {
        match self {
            Self::Valid(_) => None,
            Self::Invalid(_, why) | Self::Unreadable(UnreadableItem { reason: why, .. }) => {
                Some(why)
            }
        }
    }

    /// Returns how likely a valid item corrects this one; 0 if it is about something else.
    fn likeness(&self, item: &T) -> u8 {
        let (is_same, citation) = match self {
            Self::Valid(it) | Self::Invalid(it, _) => {
                (it.subject() == item.subject(), it.citation())
            }
            Self::Unreadable(it) => {
                (it.text.contains(&json!(item.subject()).to_string()), it.citation.as_ref())
            }
        };
        let shares = citation.zip(item.citation()).is_some_and(|(a, b)| a.overlaps(b));
        2 * u8::from(shares) + u8::from(is_same)
    }
}

impl ModelEngine {
    /// Asks for a list. If some items fail the checks, asks for those once more and names the problems.
    pub(super) fn ask_checked<T: ReplyItem>(
        &self,
        request: ModelRequest,
        read: &Read<'_, T>,
    ) -> Result<Vec<Checked<T>>, EngineError> {
        let text = self.ask(&request)?;
        let (mut first, message) = match read(&text) {
            Ok(first) => {
                let message = retry_message(&first);
                (first, message)
            }
            Err(why) => (Vec::new(), Some(unreadable_message(&why))),
        };
        let Some(message) = message else { return Ok(first) };
        let is_all_bad = !first.iter().any(|it| it.problem().is_none());
        let second = match self.ask(&with_follow_up(request, &text, message)) {
            Ok(second) => second,
            // The valid items of the first reply are enough.
            Err(_) if !is_all_bad => return Ok(first),
            Err(error) => return Err(error),
        };
        let second = match read(&second) {
            Ok(second) => second,
            Err(_) if !first.is_empty() => return Ok(first),
            Err(why) => return Err(unreadable(why)),
        };
        merge_retry(&mut first, second);
        Ok(first)
    }
}

/// Reads each item of a list by itself.
pub(super) fn read_items<T>(
    list: Vec<Value>,
    read: impl Fn(&Value) -> Result<T, String>,
) -> ReadItems<T> {
    let read = |value: Value| {
        read(&value).map_err(|reason| {
            let citation = value["citations"].as_str().and_then(parse_citation);
            UnreadableItem { text: value.to_string(), reason, citation }
        })
    };
    list.into_iter().map(read).collect()
}

/// Checks each item that could be read.
pub(super) fn check_items<T>(
    items: ReadItems<T>,
    check: impl Fn(&mut T) -> Result<(), String>,
) -> Vec<Checked<T>> {
    let check = |item: Result<T, UnreadableItem>| match item {
        Ok(mut item) => match check(&mut item) {
            Ok(()) => Checked::Valid(item),
            Err(why) => Checked::Invalid(item, why),
        },
        Err(part) => Checked::Unreadable(part),
    };
    items.into_iter().map(check).collect()
}

/// Replaces failed items of the first reply by those of the second one.
pub(super) fn merge_retry<T: ReplyItem>(first: &mut Vec<Checked<T>>, second: Vec<Checked<T>>) {
    for proposed in second {
        // A repeated item corrects nothing.
        if first.contains(&proposed) {
            continue;
        }
        if let Checked::Valid(item) = &proposed {
            let faulty = first.iter().enumerate().filter(|it| it.1.problem().is_some());
            let likest = faulty.map(|(at, it)| (it.likeness(item), usize::MAX - at)).max();
            // It replaces one failed item only: others that share a line with it are still reported.
            if let Some((_, at)) = likest.filter(|it| it.0 > 0) {
                first.remove(usize::MAX - at);
            }
        }
        first.push(proposed);
    }
}

/// Splits items into those that could be read and those that could not. The run checks the former itself and reports
/// invalid ones.
pub(super) fn split_unreadable<T>(
    items: impl IntoIterator<Item = Checked<T>>,
) -> (Vec<T>, Vec<UnreadableItem>) {
    let (mut read, mut unread) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            Checked::Valid(item) | Checked::Invalid(item, _) => read.push(item),
            Checked::Unreadable(part) => unread.push(part),
        }
    }
    (read, unread)
}

/// Returns the message that asks for corrected items, or `None` if all are valid.
pub(super) fn retry_message<T: ReplyItem>(items: &[Checked<T>]) -> Option<String> {
    let noun = T::NOUN;
    let mut message = format!(
        "Some {noun}s failed the check. Reply with the JSON object again, in the same format, with only \
         these {noun}s, corrected, in its list. Leave out a {noun} that the lines do not support.\n",
    );
    let faults = items.iter().enumerate().filter_map(|(i, it)| Some((i, it.problem()?)));
    let mut any = false;
    for (i, why) in faults {
        any = true;
        let _ = write!(message, "\n- {noun} {}: {why}", i + 1);
    }
    any.then_some(message)
}

/// Parses a citation with or without brackets.
pub(super) fn parse_citation(text: &str) -> Option<Citation> {
    text.trim().trim_start_matches('[').trim_end_matches(']').parse().ok()
}
