//! Pasted text without quote marks or fences.

use crate::memory::{
    authorship::OriginReason,
    markdown::{self, LineKind},
};

/// The columns of indent that make code.
const CODE_INDENT: usize = 4;

/// Recognizes pasted text without quote marks or fences, line by line: indented code, and elements of
/// HTML that quote.
#[derive(Default)]
pub(super) struct PastedText {
    /// The columns at which the open list items have their words.
    items: Vec<usize>,
    follows_text: bool,
    in_code: bool,
    /// The end of the open element.
    element_end: Option<&'static str>,
}

impl PastedText {
    /// Returns why the next line is external, if it is pasted.
    pub(super) fn reason(&mut self, line: &str, kind: LineKind) -> Option<OriginReason> {
        let words = line.trim_start();
        let is_structure = matches!(kind, LineKind::Fence | LineKind::Code | LineKind::Comment);
        if words.is_empty() || is_structure {
            self.follows_text = false;
            return self.element_end.map(|_| OriginReason::Quote);
        }
        let is_in_element = self.is_in_element(words);
        let indent = markdown::columns(&line[..line.len() - words.len()]);
        if !self.follows_text {
            self.items.retain(|it| *it <= indent);
        }
        // A paragraph of a list item begins where the words of the item do.
        let is_of_item = self.items.iter().any(|it| *it <= indent && indent < it + CODE_INDENT / 2);
        let is_nested = matches!(kind, LineKind::ListItem { .. }) && !self.items.is_empty();
        self.in_code = (self.in_code || !self.follows_text)
            && indent >= CODE_INDENT
            && !is_of_item
            && !is_nested
            && !matches!(kind, LineKind::Quote { .. });
        if let LineKind::ListItem { text_at, task, .. } = kind
            && !self.in_code
        {
            // A task box belongs to the words.
            let box_width = if task.is_some() { CODE_INDENT } else { 0 };
            self.items.retain(|it| *it <= indent);
            self.items.push(markdown::columns(&line[..text_at]).saturating_sub(box_width));
        }
        self.follows_text = true;
        let of_code = self.in_code.then_some(OriginReason::Code);
        is_in_element.then_some(OriginReason::Quote).or(of_code)
    }

    /// Follows elements that quote, each from a line that begins with it to one that contains its end.
    fn is_in_element(&mut self, words: &str) -> bool {
        const ELEMENTS: [(&str, &str); 4] = [
            ("<blockquote", "</blockquote>"),
            ("<pre", "</pre>"),
            ("<samp", "</samp>"),
            ("<q>", "</q>"),
        ];
        if self.element_end.is_none() && !words.starts_with('<') {
            return false;
        }
        let words = words.to_ascii_lowercase();
        if self.element_end.is_none() {
            let opened = ELEMENTS.iter().find(|(start, _)| words.starts_with(start));
            self.element_end = opened.map(|(_, end)| *end);
        }
        let Some(end) = self.element_end else { return false };
        if words.contains(end) {
            self.element_end = None;
        }
        true
    }
}
