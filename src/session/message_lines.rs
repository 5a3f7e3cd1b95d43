//! The lines of a message: labels and headings, the items of their lists, and prose.
//!
//! Agents end their work with lists such as `Still open:` or `## Next steps`. An item of such a list gets its class from
//! the label or heading above it, the item of a task list from its box. A label or heading alone says nothing.
//! Pure; all texts are slices of the message.

use super::sentences::{split_sentences, words_of};
use crate::{
    engine::extractive::{WordList, sentence_class::StatementClass},
    memory::markdown::{self, LineKind},
    text::lexicon::{ANNOTATIONS, SECTIONS, SESSIONS},
};

/// A longer line is no label.
const LABEL_WORDS_MAX: usize = 12;
/// A longer line without a colon is no label, unless it is bold.
const PLAIN_LABEL_WORDS_MAX: usize = 3;

/// A line of a message that says something, or several lines of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageLine<'a> {
    /// A heading, a label above a list, or a detail below an item.
    Structure {
        /// Its words.
        text: &'a str,
    },
    /// An item that its label, heading, or task box gives a class.
    Item {
        /// Its words, with the lines that continue it.
        text: &'a str,
        /// An open item, a decision, or an outcome: what is done.
        class: StatementClass,
    },
    /// Any other line.
    Prose {
        /// The line without the marker of a list.
        text: &'a str,
    },
}

/// Returns the lines of a message that say something, in order.
pub(super) fn message_lines(own: &str) -> Vec<MessageLine<'_>> {
    let lines: Vec<&str> = own.lines().collect();
    let kinds = markdown::classify_lines(lines.iter().copied());
    let mut reader = LineReader { own, lines: &lines, kinds: &kinds, ..LineReader::default() };
    for at in 0..lines.len() {
        reader.read(at);
    }
    reader.found
}

/// Returns the class that a label or heading gives to the items below it. Only whole labels count: `Decided against`,
/// `No longer open` and `Open ports` say something else.
pub(super) fn label_class(label: &str) -> Option<StatementClass> {
    let words = words_of(label);
    let label = words.join(" ");
    // `Done since Monday`.
    let is_done = words.iter().any(|it| SESSIONS.done_labels.contains(&&it[..]));
    let is_in = |list: &[&str]| list.contains(&&label[..]);
    match () {
        () if is_in(&SESSIONS.open_labels) => Some(StatementClass::Open),
        () if is_in(&SESSIONS.decision_labels) => Some(StatementClass::Decision),
        () if is_done => Some(StatementClass::Outcome),
        () => None,
    }
}

/// A label above a list.
#[derive(Clone, Copy, Debug)]
struct ListLabel {
    /// The indent of the item that it is, if it is one.
    indent: Option<usize>,
    class: Option<StatementClass>,
}

/// Reads lines in order and remembers what is above them.
#[derive(Default)]
struct LineReader<'a, 'l> {
    own: &'a str,
    lines: &'l [&'a str],
    kinds: &'l [LineKind],
    found: Vec<MessageLine<'a>>,
    headings: Vec<(u8, Option<StatementClass>)>,
    labels: Vec<ListLabel>,
    /// The indent of the last item with a class, and whether a blank line followed it.
    item: Option<(usize, bool)>,
}

impl<'a> LineReader<'a, '_> {
    fn read(&mut self, at: usize) {
        let (line, kind) = (self.lines[at], self.kinds[at]);
        let text = line.get(kind.text_at(line)..).unwrap_or(line).trim();
        match kind {
            LineKind::Blank => self.item = self.item.map(|it| (it.0, true)),
            LineKind::Heading { level, .. } => self.open_heading(level, text),
            LineKind::ListItem { indent, task, .. } => self.read_item(at, indent, task, text),
            LineKind::Rule => self.close_list(),
            _ => self.read_text(at, text),
        }
    }

    fn open_heading(&mut self, level: u8, title: &'a str) {
        self.close_list();
        self.headings.retain(|it| it.0 < level);
        self.headings.push((level, label_class(title)));
        self.found.push(MessageLine::Structure { text: title });
    }

    fn close_list(&mut self) {
        self.labels.clear();
        self.item = None;
    }

    /// Returns the class of an item, from the nearest label or heading that has one. What is below `Rejected` is no
    /// decision, although that is below `Decisions`.
    fn class_above(&self) -> Option<StatementClass> {
        let by_label = self.labels.iter().rev().map(|it| it.class);
        let mut above = by_label.chain(self.headings.iter().rev().map(|it| it.1));
        let nearest = above.next()?;
        let class = nearest.or_else(|| above.flatten().next())?;
        let is_inherited = nearest.is_none();
        match class {
            StatementClass::Open => Some(class),
            StatementClass::Decision => (!is_inherited).then_some(class),
            _ => None,
        }
    }

    fn read_item(&mut self, at: usize, indent: usize, task: Option<bool>, text: &'a str) {
        self.labels.retain(|it| it.indent.is_none_or(|label| label < indent));
        let class = match task {
            Some(true) => Some(StatementClass::Outcome),
            Some(false) => Some(StatementClass::Open),
            None => self.class_above(),
        };
        let is_detail = task.is_none() && self.item.is_some_and(|it| indent > it.0 + 1);
        let has_below = || {
            let next = self.kinds[at + 1..].iter().find(|it| **it != LineKind::Blank);
            matches!(next, Some(LineKind::ListItem { indent: below, .. }) if *below > indent)
        };
        if is_detail {
            self.found.push(MessageLine::Structure { text });
            return;
        }
        self.item = None;
        if is_label_end(text) && has_below() {
            let own_class = label_class(text);
            self.labels.push(ListLabel { indent: Some(indent), class: own_class });
            let is_known = own_class.or(class).is_some();
            self.found.push(if is_known { MessageLine::Structure { text } } else { prose(text) });
            return;
        }
        let Some(class) = class else { return self.found.push(prose(text)) };
        self.item = Some((indent, false));
        let is_marked_done = SECTIONS.state_marks.done.iter().any(|it| text.starts_with(it));
        let class = match class {
            StatementClass::Open if is_marked_done => StatementClass::Outcome,
            class => class,
        };
        let is_none = class == StatementClass::Open && says_nothing_is_open(text);
        let says = text.contains(char::is_alphanumeric) && !is_none;
        self.found.push(if says {
            MessageLine::Item { text, class }
        } else {
            MessageLine::Structure { text }
        });
    }

    fn read_text(&mut self, at: usize, text: &'a str) {
        if let Some((_, after_blank)) = self.item {
            if self.lines[at].starts_with([' ', '\t']) {
                let own = self.own;
                match self.found.last_mut() {
                    Some(MessageLine::Item { text: item, .. }) if !after_blank => {
                        *item = joined(own, item, text);
                    }
                    _ => self.found.push(MessageLine::Structure { text }),
                }
                return;
            }
            self.close_list();
        } else if !self.lines[at].starts_with([' ', '\t']) {
            self.labels.clear();
        }
        let next = self.kinds[at + 1..].iter().find(|it| **it != LineKind::Blank);
        let is_underlined = self.kinds.get(at + 1) == Some(&LineKind::Rule);
        if is_underlined && words_of(text).len() <= LABEL_WORDS_MAX && !text.ends_with('.') {
            return self.open_heading(2, text);
        }
        if !matches!(next, Some(LineKind::ListItem { .. })) {
            return self.found.push(prose(text));
        }
        let (before, label) = split_label(text);
        let class = label.and_then(label_class);
        self.labels.push(ListLabel { indent: None, class });
        if label.is_none() {
            self.labels.pop();
        }
        let is_known = label.is_some() && (class.is_some() || self.class_above().is_some());
        if !is_known {
            return self.found.push(prose(text));
        }
        if !before.is_empty() {
            self.found.push(prose(before));
        }
        self.found.push(MessageLine::Structure { text });
    }
}

/// Returns the text from the start of an item to the end of a line that continues it.
fn joined<'a>(own: &'a str, item: &'a str, line: &str) -> &'a str {
    let offset = |it: &str| it.as_ptr().addr() - own.as_ptr().addr();
    own.get(offset(item)..offset(line) + line.len()).unwrap_or(item)
}

fn prose(text: &str) -> MessageLine<'_> {
    MessageLine::Prose { text }
}

/// Returns whether a line ends with a colon, behind which its marks may follow.
pub(super) fn is_label_end(text: &str) -> bool {
    text.trim_end_matches(['*', '_', ' ']).ends_with([':', '：'])
}

/// Splits a line above a list before the label that ends it: the last sentence of the line, if it ends in a colon,
/// or a whole line that is short or bold.
fn split_label(text: &str) -> (&str, Option<&str>) {
    if is_label_end(text) {
        let sentences = split_sentences(text);
        let last = sentences.last().map_or(text, |it| it.text);
        let before = text.strip_suffix(last).unwrap_or_default();
        return (before.trim_end(), Some(last));
    }
    let is_bold = ["**", "__"].iter().any(|it| {
        let inner = text.strip_prefix(it).and_then(|rest| rest.strip_suffix(it));
        inner.is_some_and(|inner| !inner.contains(it))
    });
    let words = words_of(text).len();
    let is_short = words <= PLAIN_LABEL_WORDS_MAX && !text.ends_with(['.', '!', '?', '…']);
    let is_label = if is_bold { words <= LABEL_WORDS_MAX } else { is_short };
    ("", is_label.then_some(text))
}

/// Returns whether an item only says that there is none: `None.`, `No blockers`.
fn says_nothing_is_open(text: &str) -> bool {
    const WORDS_MAX: usize = 2;
    let words = WordList::of(text);
    words.len() <= WORDS_MAX && words.phrase_at(0, &ANNOTATIONS.nothing_open).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the items of a message, each with a mark of its class, and the prose between them.
    fn shown(text: &str) -> Vec<String> {
        let show = |line: MessageLine<'_>| match line {
            MessageLine::Structure { .. } => "#".to_owned(),
            MessageLine::Item { text, class } => {
                format!("{class:?}: {}", text.split_whitespace().collect::<Vec<_>>().join(" "))
            }
            MessageLine::Prose { text } => text.to_owned(),
        };
        message_lines(text).into_iter().map(show).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(shown(text), expected, "{text}");
    }

    #[test]
    fn items_get_the_class_of_the_label_or_heading_above_them() {
        let open = ["#", "Open: paint the buoy", "Open: call Mirko"];
        for head in [
            "Still open:",
            "**Still open:**",
            "**Still open**:",
            "### Open items",
            "## Next steps",
            "**Next steps**",
            "Next steps",
            "TODO:",
            "Offene Punkte:",
            "Prochaines étapes :",
            "Next steps\n----------",
            "待办：",
        ] {
            check(&format!("{head}\n- paint the buoy\n- call Mirko"), &open);
            check(&format!("{head}\n\n1. paint the buoy\n2. call Mirko"), &open);
        }
        let decided = ["#", "Decision: one pier stays open until May"];
        for head in ["Decisions:", "## Key decisions", "**Decisions made**", "Entscheidungen:"] {
            check(&format!("{head}\n* one pier stays open until May"), &decided);
        }
        let text =
            "The pier is painted. Still open:\n- paint the buoy\n\nTell me what comes first.";
        check(
            text,
            &["The pier is painted.", "#", "Open: paint the buoy", "Tell me what comes first."],
        );
    }

    #[test]
    fn a_list_goes_on_to_its_end() {
        check(
            "## Next steps\n### Harbour\n- paint the buoy\n  before the regatta\n  - in red\n\n### Office\n- call Mirko\n\n## Files\n- pier.rs",
            &[
                "#",
                "#",
                "Open: paint the buoy before the regatta",
                "#",
                "#",
                "Open: call Mirko",
                "#",
                "pier.rs",
            ],
        );
        check(
            "Still open:\n- paint the buoy\n- Done since Monday:\n  - the pier\nThat is all.\n- call Mirko",
            &["#", "Open: paint the buoy", "#", "the pier", "That is all.", "call Mirko"],
        );
        check(
            "Next:\n- Harbour:\n  - paint the buoy\n- call Mirko",
            &["#", "#", "Open: paint the buoy", "Open: call Mirko"],
        );
    }

    #[test]
    fn boxes_and_marks_show_what_is_done() {
        let tasks = "The pier is painted.\n\n- [ ] paint the buoy\n- [x] call Mirko";
        check(tasks, &["The pier is painted.", "Open: paint the buoy", "Outcome: call Mirko"]);
        check(
            "Still open:\n- ✅ the pier\n- the buoy",
            &["#", "Outcome: ✅ the pier", "Open: the buoy"],
        );
        for nothing in ["None.", "nothing", "no blockers", "keine"] {
            check(&format!("Open items:\n- {nothing}"), &["#", "#"]);
        }
        check("Open items:\n- No tests for the tides", &["#", "Open: No tests for the tides"]);
    }

    #[test]
    fn other_lists_decide_nothing() {
        for head in ["Two ways:", "Choices:", "## Summary", "Changes:", "What I looked at:"] {
            let lines = shown(&format!("{head}\n- a red pier\n- a blue pier"));
            assert_eq!(lines[1..], ["a red pier", "a blue pier"], "{head}");
        }
        check("Decisions for you:\n- red or blue?", &["#", "Open: red or blue?"]);
        check("Open decisions:\n- red or blue?", &["#", "Open: red or blue?"]);
        check("## Next steps", &["#"]);
    }
}
