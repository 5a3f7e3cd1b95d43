//! Elements of HTML, and those of agents' programs, that enclose somebody else's text.
//!
//! Only elements that format a writer's own text are listed. Every other one that is closed encloses text
//! from elsewhere: `<details>`, `<tool_result>`, `<document>`.

/// Elements that format a writer's own text, or contain none.
const FORMATTING: [&str; 82] = [
    "a",
    "abbr",
    "acronym",
    "area",
    "audio",
    "b",
    "base",
    "bdi",
    "bdo",
    "big",
    "br",
    "button",
    "canvas",
    "caption",
    "center",
    "code",
    "col",
    "colgroup",
    "data",
    "dd",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "figcaption",
    "figure",
    "font",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "input",
    "ins",
    "kbd",
    "label",
    "li",
    "link",
    "mark",
    "meta",
    "meter",
    "ol",
    "option",
    "p",
    "param",
    "path",
    "picture",
    "progress",
    "rp",
    "rt",
    "ruby",
    "small",
    "source",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "svg",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "tr",
    "track",
    "tt",
    "u",
    "ul",
    "var",
    "video",
    "wbr",
    "g",
    "select",
];

/// Elements that quote, show, or hide text wherever they are.
const QUOTING: [&str; 15] = [
    "blockquote",
    "cite",
    "details",
    "iframe",
    "listing",
    "noscript",
    "plaintext",
    "pre",
    "q",
    "samp",
    "script",
    "style",
    "template",
    "textarea",
    "xmp",
];

/// Those that extend to the end of the text if they are never closed.
const UNENDED: [&str; 10] = [
    "blockquote",
    "listing",
    "plaintext",
    "pre",
    "q",
    "samp",
    "script",
    "style",
    "textarea",
    "xmp",
];

/// The elements of struck-out text, each with its end.
const STRUCK: [(&str, &str); 3] = [("del", "</del>"), ("s", "</s>"), ("strike", "</strike>")];

/// A tag in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ElementTag {
    /// In lower case.
    pub name: String,
    pub is_end: bool,
    /// Byte length of `<`, the slash, and the name.
    pub name_end: usize,
}

impl ElementTag {
    /// Reads the tag at the start of a text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        const NAME_MAX: usize = 60;
        let rest = text.strip_prefix('<')?;
        let is_end = rest.starts_with('/');
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let in_name = |it: &u8| it.is_ascii_alphanumeric() || b"_:.-".contains(it);
        let width = rest.bytes().take(NAME_MAX).take_while(in_name).count();
        let name = &rest[..width];
        let ends =
            rest[width..].chars().next().is_none_or(|c| c.is_whitespace() || ">/".contains(c));
        // `<https://example.org>` is a link.
        (ends && !name.ends_with(':')).then(|| Self {
            name: name.to_ascii_lowercase(),
            is_end,
            name_end: text.len() - rest.len() + width,
        })
    }

    /// Returns whether the element encloses text that counts as somebody else's, or as nobody's.
    /// `attributes` is the rest of the tag.
    pub(super) fn encloses(&self, attributes: &str) -> bool {
        // Programs write such a division around a quoted mail.
        let is_styled = |it: &str| ["class", "id=", "style"].iter().any(|word| it.contains(word));
        (self.name == "div" && is_styled(attributes)) || !FORMATTING.contains(&&self.name[..])
    }

    /// Returns whether it quotes wherever it is in a line. `before` is the text of the line up to it.
    pub(super) fn quotes_after(&self, before: &str) -> bool {
        QUOTING.contains(&&self.name[..])
            || self.name.contains(['_', '-', ':', '.'])
            || self.is_struck()
            || is_block_start(before)
    }

    /// Returns whether it extends to the end of the text if it is never closed.
    pub(super) fn may_be_unended(&self, before: &str) -> bool {
        UNENDED.contains(&&self.name[..]) && is_block_start(before)
    }

    pub(super) fn is_struck(&self) -> bool {
        self.struck_end().is_some()
    }

    /// Returns the end tag of struck-out text.
    pub(super) fn struck_end(&self) -> Option<&'static str> {
        STRUCK.iter().find(|it| it.0 == self.name).map(|it| it.1)
    }
}

/// Returns whether a block can begin after the start of a line: markers, a time, a label, or other tags.
pub(super) fn is_block_start(before: &str) -> bool {
    const BEFORE_MAX: usize = 200;
    let before = before.trim();
    let is_tag = |it: &str| it.starts_with('<') && it.ends_with('>');
    let is_mark = |it: &str| {
        let word = it.trim_matches(['[', ']', '(', ')', ':', ',', '*', '_']);
        !it.contains(char::is_alphabetic) || matches!(word, "AM" | "PM" | "am" | "pm" | "x" | "X")
    };
    before.len() <= BEFORE_MAX
        && (before.ends_with([':', '：', '|'])
            || is_tag(before)
            || before.split_whitespace().all(is_mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_with_their_names() {
        let name = |it: &str| ElementTag::parse(it).map(|it| (it.name, it.is_end));
        assert_eq!(name("<Tool_Result id=1>"), Some(("tool_result".to_owned(), false)));
        assert_eq!(name("</q>"), Some(("q".to_owned(), true)));
        assert_eq!(name("<br/>"), Some(("br".to_owned(), false)));
        for text in ["<https://a.example>", "<a@b.example>", "< b>", "<3", "<", "<!--", "</>"] {
            assert_eq!(name(text), None, "{text}");
        }
    }

    #[test]
    fn a_block_begins_after_markers_times_and_labels() {
        for before in ["", "- ", "09:41 ", "[9:41 AM] ", "1. [x] ", "Mail: ", "<p>", "| a |"] {
            assert!(is_block_start(before), "{before}");
        }
        assert!(!is_block_start("Use the "));
    }
}
