//! Elements of HTML that quote, line by line. Indented code is recognized by
//! [`markdown`](crate::memory::markdown).

use crate::memory::{authorship::OriginReason, markdown::LineKind};

/// The elements that quote, and how each ends.
const ELEMENTS: [(&str, &str); 4] =
    [("<blockquote", "</blockquote>"), ("<pre", "</pre>"), ("<samp", "</samp>"), ("<q>", "</q>")];

/// Follows elements that quote, each from a line that begins with it to one that contains its end.
#[derive(Default)]
pub(super) struct QuotingElement {
    /// The end of the open element.
    end: Option<&'static str>,
}

impl QuotingElement {
    /// Returns why the next line is external, if it is in such an element.
    pub(super) fn reason(&mut self, line: &str, kind: LineKind) -> Option<OriginReason> {
        let words = line.trim_start();
        let is_structure = matches!(kind, LineKind::Fence | LineKind::Code | LineKind::Comment);
        if words.is_empty() || is_structure {
            return self.end.map(|_| OriginReason::Quote);
        }
        if self.end.is_none() && !words.starts_with('<') {
            return None;
        }
        let words = words.to_ascii_lowercase();
        if self.end.is_none() {
            self.end = ELEMENTS.iter().find(|(start, _)| words.starts_with(start)).map(|it| it.1);
        }
        let end = self.end?;
        if words.contains(end) {
            self.end = None;
        }
        Some(OriginReason::Quote)
    }
}
