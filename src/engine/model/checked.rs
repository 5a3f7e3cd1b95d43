//! The items of a reply after the checks, and the second try for those that failed.
//!
//! Items that cannot be read or fail the checks are returned to the model once, together ([`repair`]). Afterwards the
//! valid ones are used, and the user sees the others unchanged.

use serde_json::Value;

use super::{
    ModelEngine,
    repair::{self, FaultyItem},
    request_data::{DataBlock, LineIds},
    unreadable, unreadable_message, with_follow_up,
};
use crate::{
    engine::{EngineError, UnreadableItem},
    memory::address::Citation,
    model::ModelRequest,
};

/// An item of a reply, such as a statement.
pub(super) trait ReplyItem {
    /// Returns it as it would be in a reply.
    fn to_json(&self, ids: &LineIds) -> Value;

    /// Returns the lines that it cites.
    fn citation(&self) -> Option<&Citation>;

    /// Returns whether it may replace an item that could not be read, or this one.
    fn may_correct(&self, _faulty: Option<&Self>) -> bool {
        true
    }
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

type ReadReply<'a, T> = dyn Fn(&str) -> Result<Vec<Checked<T>>, String> + 'a;

/// How a reply is read and checked.
pub(super) struct ReplyReading<'a, T> {
    /// The data of the request.
    pub(super) blocks: &'a [DataBlock],
    pub(super) ids: &'a LineIds,
    /// The properties of an item in the schema.
    pub(super) properties: Value,
    /// Reads and checks a reply. The error is worded for the model.
    pub(super) read: &'a ReadReply<'a, T>,
    /// Reads and checks one item.
    pub(super) read_item: &'a dyn Fn(Value) -> Checked<T>,
}

impl<T: ReplyItem> Checked<T> {
    /// Returns it as an item to be corrected; `None` if it is valid.
    pub(super) fn faulty(&self, ids: &LineIds) -> Option<FaultyItem> {
        match self {
            Self::Valid(_) => None,
            Self::Invalid(it, why) => Some(FaultyItem {
                item: it.to_json(ids),
                citation: it.citation().cloned(),
                fault: why.clone(),
            }),
            Self::Unreadable(UnreadableItem { text, reason, citation }) => Some(FaultyItem {
                item: serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
                citation: citation.clone(),
                fault: reason.clone(),
            }),
        }
    }

    pub(super) fn is_valid(&self) -> bool {
        matches!(self, Self::Valid(_))
    }
}

impl ModelEngine {
    /// Asks for a list. If some items fail the checks, asks once for corrections of those.
    pub(super) fn ask_checked<T: ReplyItem>(
        &self,
        request: &ModelRequest,
        reading: &ReplyReading<'_, T>,
    ) -> Result<Vec<Checked<T>>, EngineError> {
        let text = self.ask(request)?;
        let mut items = match (reading.read)(&text) {
            Ok(items) => items,
            Err(why) => {
                let again = with_follow_up(request.clone(), &text, unreadable_message(&why));
                return (reading.read)(&self.ask(&again)?).map_err(unreadable);
            }
        };
        let faulty: Vec<(usize, FaultyItem)> = faulty_items(&items, reading.ids);
        if faulty.is_empty() {
            return Ok(items);
        }
        let shown: Vec<FaultyItem> = faulty.iter().map(|it| it.1.clone()).collect();
        let repair = self.repair_request(request, &shown, reading.blocks, &reading.properties);
        match self.ask(&repair) {
            Ok(text) => {
                for (index, value) in repair::parse_corrections(&text, faulty.len()) {
                    correct(&mut items[faulty[index].0], (reading.read_item)(value));
                }
                Ok(items)
            }
            // The valid items of the first reply are enough.
            Err(_) if items.iter().any(Checked::is_valid) => Ok(items),
            Err(error) => Err(error),
        }
    }
}

/// Returns the items to be corrected, each with its index.
pub(super) fn faulty_items<T: ReplyItem>(
    items: &[Checked<T>],
    ids: &LineIds,
) -> Vec<(usize, FaultyItem)> {
    let faulty = items.iter().enumerate().filter_map(|(at, it)| Some((at, it.faulty(ids)?)));
    faulty.take(repair::ITEMS_MAX).collect()
}

/// Replaces an item by its correction, if that is valid; or, of two that fail the checks, if it could be read: a person
/// reviews the last words.
pub(super) fn correct<T: ReplyItem>(item: &mut Checked<T>, correction: Checked<T>) {
    let is_valid = item.is_valid();
    let faulty = match &*item {
        Checked::Valid(it) | Checked::Invalid(it, _) => Some(it),
        Checked::Unreadable(_) => None,
    };
    let replaces = match &correction {
        Checked::Valid(it) => it.may_correct(faulty),
        Checked::Invalid(it, _) => !is_valid && it.may_correct(faulty),
        Checked::Unreadable(_) => false,
    };
    if replaces {
        *item = correction;
    }
}

/// Reads one item of a list.
pub(super) fn read_item<T>(
    value: &Value,
    ids: &LineIds,
    read: impl Fn(&Value) -> Result<T, String>,
) -> Result<T, UnreadableItem> {
    read(value).map_err(|reason| {
        let citation = value["citations"].as_str().and_then(|it| ids.parse(it).ok());
        UnreadableItem { text: value.to_string(), reason, citation }
    })
}

/// Checks an item that could be read.
pub(super) fn check_item<T>(
    item: Result<T, UnreadableItem>,
    check: impl Fn(&mut T) -> Result<(), String>,
) -> Checked<T> {
    match item {
        Ok(mut item) => match check(&mut item) {
            Ok(()) => Checked::Valid(item),
            Err(why) => Checked::Invalid(item, why),
        },
        Err(part) => Checked::Unreadable(part),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Statement(&'static str);

    impl ReplyItem for Statement {
        fn to_json(&self, _: &LineIds) -> Value {
            Value::String(self.0.to_owned())
        }

        fn citation(&self) -> Option<&Citation> {
            None
        }
    }

    #[test]
    fn the_last_words_of_what_fails_twice_are_kept() {
        let valid = |it| Checked::Valid(Statement(it));
        let invalid = |it| Checked::Invalid(Statement(it), "too strong".to_owned());
        let unreadable = || {
            let (text, reason) = ("{".to_owned(), "no JSON".to_owned());
            Checked::Unreadable(UnreadableItem { text, reason, citation: None })
        };
        for (first, second, expected) in [
            (invalid("a"), valid("b"), valid("b")),
            (invalid("a"), invalid("b"), invalid("b")),
            (invalid("a"), unreadable(), invalid("a")),
            (unreadable(), invalid("b"), invalid("b")),
            (valid("a"), invalid("b"), valid("a")),
        ] {
            let mut item = first;
            correct(&mut item, second);
            assert_eq!(item, expected);
        }
    }
}
