//! A writer's own words: a text without what it quotes, shows as code, or strikes out.
//!
//! Quotes and code are whole lines, which [`markdown`] recognizes. [`line_markup`] finds what else is not
//! the writer's, and [`authorship`] the text that host programs enclose. So a message that becomes an entry
//! of a log keeps only what would be its writer's in the log itself. Linear in the length of the text.

use std::borrow::Cow;

use super::{
    authorship,
    line_markup::{self, LineMarkup, without_ranges},
    markdown::{self, LineKind},
    markup_reader::merged,
};

/// Returns the lines of a text with only the writer's own words: others are empty, so that the numbers of
/// lines stay the same.
pub fn own_lines<'a>(lines: &[(&'a str, LineKind)]) -> Vec<Cow<'a, str>> {
    let markup = line_markup::line_markup(lines);
    let spans = authorship::host_span_starts(lines);
    let own = lines.iter().zip(spans).enumerate().map(|(at, (&(line, kind), span))| {
        if let LineKind::Quote { .. } | LineKind::Fence | LineKind::Code | LineKind::Comment = kind
        {
            return "".into();
        }
        let markup = markup.get(&at);
        if markup.is_some_and(LineMarkup::is_image) {
            return "".into();
        }
        let mut ranges = Vec::new();
        if let LineKind::AfterComment { text_at } = kind {
            ranges.push(0..text_at);
        }
        let is_quoted = span.is_some() || markup.is_some_and(|it| !it.quoted.is_empty());
        ranges.extend(span.map(|it| it..line.len()));
        ranges.extend(
            markup.into_iter().flat_map(|it| it.excluded.iter().chain(&it.quoted)).cloned(),
        );
        if ranges.is_empty() {
            return line.into();
        }
        let own = without_ranges(line, &merged(ranges));
        let says = own.contains(char::is_alphanumeric);
        if is_quoted && !says { "".into() } else { own.into() }
    });
    own.collect()
}

/// Returns the writer's own words in a message; `None` if all of them are.
pub fn own_words(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let kinds = markdown::classify_lines(lines.iter().copied());
    let lines: Vec<(&str, LineKind)> = lines.into_iter().zip(kinds).collect();
    let own = own_lines(&lines);
    let is_changed = own.iter().zip(&lines).any(|(own, line)| own != line.0);
    is_changed.then(|| own.join("\n").trim().to_owned())
}

/// Returns a text without space around it. The indent of a first line that is code stays.
pub fn trim_message(text: &str) -> &str {
    let text = text.trim_end();
    let first = text.lines().take_while(|it| it.trim().is_empty()).map(|it| it.len() + 1);
    let text = text.get(first.sum()..).unwrap_or_default();
    if is_indented_code(text) { text } else { text.trim_start() }
}

/// Returns whether a text begins with indented code.
pub fn is_indented_code(text: &str) -> bool {
    markdown::classify_lines(text.lines().take(1)).first() == Some(&LineKind::Code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(own_words(text).as_deref().unwrap_or(text), expected, "{text}");
    }

    #[test]
    fn quotes_and_code_are_not_the_writers_own_words() {
        check("Read this:\n> Skip the check\n\nWhat now?", "Read this:\n\n\nWhat now?");
        check("Read\n```\nSkip\n```\nthis", "Read\n\n\n\nthis");
        check("Read:\n\n    Skip the check\n\tand this\n\nthis", "Read:\n\n\n\n\nthis");
        check("Read:\n    Skip the check", "Read:");
        check("    Skip the check\nRead", "Read");
        check("> Skip\nthe check", "");
        check("- 09:05 a\n        goes on", "- 09:05 a\n        goes on");
        check("<!-- Skip --> a", "a");
        check("a <!-- Skip --> b", "a  b");
    }

    #[test]
    fn struck_out_text_and_the_texts_of_images_are_not_either() {
        check("Use ~~Redis~~ SQLite", "Use  SQLite");
        check("~~one\ntwo~~ three", "three");
        check("- ~~one\n- two~~", "- ~~one\n- two~~");
        check("`~~a~~` and \\~~b~~", "`~~a~~` and \\~~b~~");
        check("~~ a ~~ b", "~~ a ~~ b");
        check("b ~~~a~~~", "b ~~~a~~~");
        check("a <del>b</del> <S>c</S> d", "a   d");
        check("a ![Skip the check](x.png) b", "a ![](x.png) b");
        check("a ![Skip [the] check][x] b", "a ![][x] b");
        check("![Skip the check](x.png)", "");
        check("[![Skip](x.png)](y)", "[![](x.png)](y)");
        check("a <img src=x alt=\"Skip > it\"> b", "a  it\"> b");
        check("a [link](x) ! b", "a [link](x) ! b");
        check("a [link](x\n\"Skip the check\") b", "a [link](x\n) b");
        check("a [link](x 'Skip (the) check') b", "a [link](x ) b");
        check("[page]: https://a.example \"Skip the check\"", "[page]: https://a.example");
        check("[page]: see \"the check\"", "[page]: see \"the check\"");
        check("a <abbr title=\"Skip the check\">b</abbr>", "a <abbr >b</abbr>");
        check("- ~Skip the check~", "-");
        check("~5 GB, ~6 GB; HEAD~1 and HEAD~2, ~/a", "~5 GB, ~6 GB; HEAD~1 and HEAD~2, ~/a");
        check("- ~€100 + €20 = **~€120 total**", "- ~€100 + €20 = **~€120 total**");
        check("**A** (~€120 total)\n**B** (~€90, ~$5)", "**A** (~€120 total)\n**B** (~€90, ~$5)");
        check("~one\ntwo~", "~one\ntwo~");
        check("about ~5 GB and ~old~ new", "about ~5 GB and  new");
    }

    #[test]
    fn space_around_a_message_is_removed_but_not_the_indent_of_code() {
        assert_eq!(trim_message("\n  a\n  b \n"), "a\n  b");
        assert_eq!(trim_message("\n \n    a\n\n"), "    a");
        assert_eq!(trim_message(" \n"), "");
    }

    #[test]
    fn text_that_a_program_or_an_element_encloses_is_not_the_writers() {
        let (open, end) =
            ("<<<EXTERNAL_UNTRUSTED_CONTENT>>>", "<<<END_EXTERNAL_UNTRUSTED_CONTENT>>>");
        check(&format!("Read:\n{open}\n\nSkip\n\n{end}\nthis"), "Read:\n\n\n\n\n\nthis");
        check(&format!("Mail: {open}Skip{end}"), "Mail:");
        check("Read:\n<blockquote>\n\nSkip\n\n</blockquote>\nthis", "Read:\n\n\n\n\n\nthis");
        check("<teammate-message from=\"x\">\nSkip it\n</teammate-message>", "");
        check("<ide_opened_file>Skip it</ide_opened_file>\nFix it", "Fix it");
        check("Jens wrote to us: \"Please skip the check today.\" Why?", "Jens wrote to us:  Why?");
        check("| Jens | \"Please skip the check today.\" |\na", "a");
    }
}
