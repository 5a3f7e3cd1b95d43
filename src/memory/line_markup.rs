//! What a line contains besides its writer's own words, found with the lines around it.

use std::{collections::HashMap, ops::Range};

use super::{
    authorship::OriginReason,
    enclosures::{self, EnclosureMark, MarkRole},
    markdown::LineKind,
    markup_reader::{FoundTag, Markup, merged},
    quoted_speech,
};

/// What a line contains besides the writer's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineMarkup {
    /// Bytes of the line that count for nothing: the texts of images, titles of links, struck-out text,
    /// comments. Ascending, without overlap.
    pub excluded: Vec<Range<usize>>,
    /// Bytes that somebody else wrote. Ascending, without overlap.
    pub quoted: Vec<Range<usize>>,
    /// Why the line counts as external.
    pub reason: Option<OriginReason>,
}

impl LineMarkup {
    /// Returns whether the line says nothing but what an image shows.
    pub fn is_image(&self) -> bool {
        self.reason == Some(OriginReason::Image)
    }

    /// Returns the bytes that are not the writer's own words. Ascending, without overlap.
    pub fn not_own(&self) -> Vec<Range<usize>> {
        merged(self.excluded.iter().chain(&self.quoted).cloned().collect())
    }

    fn quote(&mut self, range: Range<usize>, reason: OriginReason) {
        self.reason = Some(reason);
        self.quoted.push(range);
    }
}

/// The markup of lines by their index. Lines without any are left out.
pub type MarkupByLine = HashMap<usize, LineMarkup>;

/// A tag in a line.
struct LineTag {
    line: usize,
    found: FoundTag,
}

/// Returns the markup of each line of a body that has some.
pub fn line_markup(lines: &[(&str, LineKind)]) -> MarkupByLine {
    let mut found = HashMap::new();
    let mut tags = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let end = paragraph_end(lines, at);
        let has_markup = |(line, _): &(&str, LineKind)| line.contains(['~', '!', '<', '`', ']']);
        if lines[at..end].iter().any(has_markup) {
            read_paragraph(lines, at..end, &mut found, &mut tags);
        }
        at = end;
    }
    mark_elements(lines, &tags, &mut found);
    for (at, range) in quoted_speech::find(lines) {
        found.entry(at).or_default().quote(range, OriginReason::Quote);
    }
    for markup in found.values_mut() {
        markup.excluded = merged(std::mem::take(&mut markup.excluded));
        markup.quoted = merged(std::mem::take(&mut markup.quoted));
    }
    found
}

/// Returns the index after the last line of the paragraph that begins at a line.
fn paragraph_end(lines: &[(&str, LineKind)], start: usize) -> usize {
    let goes_on = |it: &(&str, LineKind)| match lines[start].1 {
        LineKind::Quote { .. } => matches!(it.1, LineKind::Quote { .. }),
        LineKind::Text | LineKind::ListItem { .. } | LineKind::AfterComment { .. } => {
            // A tag at the start of a line begins a block, so it is not within a code span.
            it.1 == LineKind::Text && !it.0.trim_start().starts_with('<')
        }
        _ => false,
    };
    start + 1 + lines[start + 1..].iter().take_while(|it| goes_on(it)).count()
}

/// Adds the markup of the lines of a paragraph, and its tags.
fn read_paragraph(
    lines: &[(&str, LineKind)],
    range: Range<usize>,
    found: &mut MarkupByLine,
    tags: &mut Vec<LineTag>,
) {
    let kind = lines[range.start].1;
    if !kind.is_content() || kind == LineKind::Code {
        return;
    }
    let mut text = String::new();
    let mut starts = Vec::new();
    for &(line, kind) in &lines[range.clone()] {
        let words_at = kind.text_at(line);
        starts.push((text.len(), words_at));
        text.push_str(line.get(words_at..).unwrap_or_default());
        text.push('\n');
    }
    let markup = Markup::of(&text);
    for (index, &(start, words_at)) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(text.len(), |it| it.0) - 1;
        let line = ParagraphLine { text: &text, range: start..end, words_at };
        if let Some(line) = line.markup(&markup) {
            found.insert(range.start + index, line);
        }
    }
    // Somebody else's text is not searched for more of it.
    if matches!(kind, LineKind::Quote { .. }) {
        return;
    }
    for FoundTag { range: at, tag, encloses } in markup.tags {
        let index = starts.partition_point(|it| it.0 <= at.start) - 1;
        let (start, words_at) = starts[index];
        let end = starts.get(index + 1).map_or(text.len(), |it| it.0) - 1;
        let at = at.start - start + words_at..at.end.min(end) - start + words_at;
        tags.push(LineTag {
            line: range.start + index,
            found: FoundTag { range: at, tag, encloses },
        });
    }
}

/// A line within the text of its paragraph.
struct ParagraphLine<'t> {
    text: &'t str,
    range: Range<usize>,
    /// Where its words are in the line itself.
    words_at: usize,
}

impl ParagraphLine<'_> {
    /// Returns the parts of ranges that are in the line.
    fn parts(&self, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
        let first = ranges.partition_point(|it| it.end <= self.range.start);
        let ranges = ranges[first..].iter().take_while(|it| it.start < self.range.end);
        let part = |it: &Range<usize>| {
            let part = it.start.max(self.range.start)..it.end.min(self.range.end);
            (part.start < part.end).then_some(part)
        };
        ranges.filter_map(part).collect()
    }

    /// Returns the text outside of the ranges.
    fn rest(&self, ranges: &[Range<usize>]) -> String {
        let start = self.range.start;
        let ranges: Vec<_> = ranges.iter().map(|it| it.start - start..it.end - start).collect();
        without_ranges(&self.text[self.range.clone()], &ranges)
    }

    fn markup(&self, markup: &Markup) -> Option<LineMarkup> {
        let excluded = self.parts(&markup.excluded);
        let shown = self.parts(&markup.images);
        let code = self.parts(&markup.code);
        let all = merged(excluded.iter().chain(&shown).chain(&code).cloned().collect());
        let is_image = !shown.is_empty()
            && code.is_empty()
            && !self.rest(&all).contains(char::is_alphanumeric);
        let is_broken = |it: &&Range<usize>| {
            let is_whole =
                markup.code.binary_search_by_key(&(it.start, it.end), |it| (it.start, it.end));
            is_whole.is_err() && quoted_speech::is_sentence(&self.text[(**it).clone()])
        };
        let is_code = match &code[..] {
            [] => false,
            code => {
                code.iter().any(|it| is_broken(&it))
                    || (code.iter().any(|it| quoted_speech::is_sentence(&self.text[it.clone()]))
                        && !self.rest(&all).contains(char::is_alphabetic))
            }
        };
        if excluded.is_empty() && !is_code {
            return None;
        }
        let in_line = |it: &Range<usize>| {
            let start = self.range.start;
            it.start - start + self.words_at..it.end - start + self.words_at
        };
        Some(LineMarkup {
            excluded: excluded.iter().map(in_line).collect(),
            quoted: if is_code { code.iter().map(in_line).collect() } else { Vec::new() },
            reason: match () {
                () if is_image => Some(OriginReason::Image),
                () if is_code => Some(OriginReason::Code),
                () => None,
            },
        })
    }
}

/// Marks the lines in elements that quote, or that strike out more than a paragraph.
fn mark_elements(lines: &[(&str, LineKind)], tags: &[LineTag], found: &mut MarkupByLine) {
    let marks: Vec<EnclosureMark<'_>> = tags
        .iter()
        .map(|it| EnclosureMark {
            name: (&it.found.tag.name[..]).into(),
            id: None,
            role: if it.found.tag.is_end { MarkRole::Close } else { MarkRole::Open },
        })
        .collect();
    let ends = enclosures::enclosure_ends(&marks);
    let mut marked_to = (0, 0);
    for (LineTag { line, found: it }, end) in tags.iter().zip(ends) {
        let (line, tag) = (*line, &it.tag);
        let (text, kind) = lines[line];
        let before = text.get(kind.text_at(text)..it.range.start).unwrap_or_default();
        let end = match end.map(|it| &tags[it]) {
            Some(end) if it.encloses && tag.quotes_after(before) => {
                let inner = text.get(it.range.end..end.found.range.start);
                if end.line == line && !is_quotation(before, inner.unwrap_or_default()) {
                    continue;
                }
                (end.line, end.found.range.end)
            }
            None if !tag.is_end && tag.may_be_unended(before) => (lines.len() - 1, usize::MAX),
            _ => continue,
        };
        let start = (line, it.range.start).max(marked_to);
        if start >= end {
            continue;
        }
        for (at, &(text, _)) in lines.iter().enumerate().take(end.0 + 1).skip(start.0) {
            let from = if at == start.0 { start.1.min(text.len()) } else { 0 };
            let to = if at == end.0 { end.1.min(text.len()) } else { text.len() };
            let markup = found.entry(at).or_default();
            if tag.is_struck() {
                markup.excluded.push(from..to);
            } else {
                markup.quote(from..to, OriginReason::Quote);
            }
        }
        marked_to = end;
    }
}

/// Returns whether what an element encloses within a line is more than a word or a title.
fn is_quotation(before: &str, inner: &str) -> bool {
    const BYTES_MAX: usize = 400;
    inner.len() > BYTES_MAX
        || quoted_speech::is_sentence(inner)
        || !before.contains(char::is_alphabetic)
}

/// Returns a line without some of its bytes.
pub fn without_ranges(line: &str, ranges: &[Range<usize>]) -> String {
    let mut left = String::with_capacity(line.len());
    let mut at = 0;
    for range in ranges {
        left.push_str(&line[at..range.start]);
        at = range.end;
    }
    left + &line[at..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::markdown;

    /// One letter per line for why it is external: `q`uote, `c`ode, `i`mage.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let kinds = markdown::classify_lines(text.split('\n'));
        let lines: Vec<(&str, LineKind)> = text.split('\n').zip(kinds).collect();
        let markup = line_markup(&lines);
        let letter = |at: usize| match markup.get(&at).and_then(|it| it.reason) {
            None => '.',
            Some(reason) => reason.name().chars().next().unwrap(),
        };
        let found: String = (0..lines.len()).map(letter).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn elements_quote_to_their_own_end() {
        check("- <blockquote>\n\n  a\n  </blockquote>\nb", "qqqq.");
        check("- 09:41 <pre>\n\na\n\n</pre>\nb", "qqqqq.");
        check("Jens says: <blockquote>hello\n\na\n\n</blockquote>\nb", "qqqqq.");
        check("<blockquote><blockquote>a</blockquote>\n\nb\n\n</blockquote>\nc", "qqqqq.");
        check("<blockquote>a</blockquote>\n\nb\n\n</blockquote>\nc", "qqqqq.");
        check("<blockquote>\n`</blockquote>`\n\nb\n</blockquote>\nc", "qqqqq.");
        check("<pre>a</pre>\nb\n<p>c", "q..");
        check("x `y\n<blockquote>` z\n\na\n</blockquote>\nb", ".qqqq.");
        check("a\n<blockquote>\nb\n\nc", ".qqqq");
    }

    #[test]
    fn every_element_that_does_not_only_format_quotes() {
        for name in [
            "details",
            "tool_result",
            "function_results",
            "document",
            "script",
            "style",
            "textarea",
        ] {
            check(&format!("<{name}>\n\na\n\n</{name}>\nb"), "qqqqq.");
        }
        check("<div class=\"gmail_quote\">\n\n<div>a</div>\n\nb\n\n</div>\nc", "qqqqqqq.");
        check("<div align=\"center\">\n\na\n\n</div>", ".....");
        check("<b>a</b> is <p>one</p>\n<ul><li>b</li></ul>", "..");
        check("- <project> uses pnpm\n- <name>\n- a", "...");
        check("- Renders <Button>all of the words in it</Button> now", ".");
        check("- Mail: <Message>all of the words in it</Message>", "q");
        check("<del>\n\na\n\n</del>", ".....");
    }

    #[test]
    fn sentences_quoted_or_shown_as_code_within_a_line() {
        check("Jens wrote <q>pay them all today at once</q>.", "q");
        check("Read <cite>Middlemarch</cite> by <q>Eliot</q>", ".");
        check("<cite>a</cite>", "q");
        check("- `` Karla prefers that they are paid today ``", "c");
        check("- 09:41 <code>Karla prefers that they are paid today</code>", "c");
        check("The mail said `hello\nKarla prefers that they are paid` ok", ".c");
        check("- Run `docker compose up -d --build app` first", ".");
        check("- `cargo test`", ".");
    }

    #[test]
    fn long_lines_of_marks_take_linear_time() {
        for mark in [
            "~~a",
            "![",
            "![a](",
            "`a``b",
            "<del>",
            "<img ",
            "~~a~~ ",
            "![a](b) ",
            "~a",
            "[a](b \"",
            "<q>",
            "<q>a</q>",
            "<x_y>",
            "</q>",
            "<!--",
            "<a_b></a_c>",
            "\"a ",
            "a: \"b\" ",
            "<details>",
            "<q>a b c d e</q>",
            "`a b c d e`",
        ] {
            let line = mark.repeat(50_000) + ")";
            let lines = [(&line[..], LineKind::Text)];
            assert!(line_markup(&lines).len() <= 1, "{mark}");
            let lines = vec![(mark, LineKind::Text); 50_000];
            assert!(line_markup(&lines).len() <= lines.len(), "{mark}");
        }
    }
}
