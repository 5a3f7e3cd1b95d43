//! A line of a log from which others are removed: what must stay of it, so that what is below it does not move to what
//! is above it and say something new. Pure.

use crate::memory::markdown::LineKind;

/// What is left of the words of a removed list item or heading.
const LEFT_OUT: &str = "…";

/// A line of a log from which lines are removed.
pub(super) struct LogLine<'a> {
    /// With its end.
    pub(super) raw: &'a str,
    /// `None` in the frontmatter.
    pub(super) kind: Option<LineKind>,
    /// Whether it is removed.
    pub(super) goes: bool,
}

impl LogLine<'_> {
    /// Returns whether it has words, or anything else that somebody wrote.
    pub(super) fn says_something(&self) -> bool {
        let words = self.kind.map(|it| self.raw[it.text_at(self.raw)..].trim());
        words.is_some_and(|it| !it.is_empty() && it != LEFT_OUT)
    }

    /// Returns the mark of a removed list item or heading to which the next line that stays belongs.
    pub(super) fn mark_above(&self, next: &Self) -> Option<String> {
        let text = self.raw.trim_end_matches(['\r', '\n']);
        let (kept, holds) = match self.kind? {
            LineKind::Heading { level, text_at } => {
                let ends = matches!(next.kind?, LineKind::Heading { level: it, .. } if it <= level);
                (&text[..text_at], !ends)
            }
            LineKind::ListItem { indent, text_at, .. } => {
                let below = match next.kind? {
                    LineKind::ListItem { indent, .. } => indent,
                    _ => next.raw.len() - next.raw.trim_start().len(),
                };
                // Without the box of a task, which would be an open one.
                let mark = text[..text_at].split('[').next().unwrap_or_default();
                (mark, below > indent)
            }
            _ => return None,
        };
        holds.then(|| format!("{}{LEFT_OUT}{}", kept, &self.raw[text.len()..]))
    }
}
