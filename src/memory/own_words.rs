//! A writer's own words: a text without what it quotes, shows as code, or strikes out.
//!
//! Quotes and code are whole lines, which [`markdown`] recognizes. Within a line, the text of an image
//! belongs to whoever made the image, and struck-out text counts for nothing. Linear in the length of
//! the text.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use super::markdown::{self, LineKind};

/// What a line contains besides the writer's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InlineMarkup {
    /// Bytes of the line that are not the writer's: the texts of images, and struck-out text. Ascending,
    /// without overlap.
    pub excluded: Vec<Range<usize>>,
    /// Whether the line says nothing but what an image shows.
    pub is_image: bool,
}

/// Returns the markup within each line of a body. Only lines that have some are returned, by their index.
pub fn inline_markup(lines: &[(&str, LineKind)]) -> HashMap<usize, InlineMarkup> {
    let mut found = HashMap::new();
    let mut at = 0;
    while at < lines.len() {
        let end = paragraph_end(lines, at);
        let has_markup = |(line, _): &(&str, LineKind)| {
            line.contains("~~") || line.contains("![") || line.contains('<')
        };
        if lines[at..end].iter().any(has_markup) {
            read_paragraph(lines, at..end, &mut found);
        }
        at = end;
    }
    found
}

/// Returns the lines of a text with only the writer's own words: others are empty, so that the numbers of
/// lines stay the same.
pub fn own_lines<'a>(lines: &[(&'a str, LineKind)]) -> Vec<Cow<'a, str>> {
    let markup = inline_markup(lines);
    let own = lines.iter().enumerate().map(|(at, &(line, kind))| match kind {
        LineKind::Quote { .. } | LineKind::Fence | LineKind::Code | LineKind::Comment => "".into(),
        LineKind::AfterComment { text_at } if !markup.contains_key(&at) => line[text_at..].into(),
        _ => match markup.get(&at) {
            None => line.into(),
            Some(it) if it.is_image => "".into(),
            Some(it) => without_ranges(line, &it.excluded).into(),
        },
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

/// Returns a line without some of its bytes.
fn without_ranges(line: &str, ranges: &[Range<usize>]) -> String {
    let mut left = String::with_capacity(line.len());
    let mut at = 0;
    for range in ranges {
        left.push_str(&line[at..range.start]);
        at = range.end;
    }
    left + &line[at..]
}

/// Returns the index after the last line of the paragraph that begins at a line.
fn paragraph_end(lines: &[(&str, LineKind)], start: usize) -> usize {
    let goes_on = |it: &(&str, LineKind)| match lines[start].1 {
        LineKind::Quote { .. } => matches!(it.1, LineKind::Quote { .. }),
        LineKind::Text | LineKind::ListItem { .. } | LineKind::AfterComment { .. } => {
            it.1 == LineKind::Text
        }
        _ => false,
    };
    start + 1 + lines[start + 1..].iter().take_while(|it| goes_on(it)).count()
}

/// Adds the markup of the lines of a paragraph.
fn read_paragraph(
    lines: &[(&str, LineKind)],
    range: Range<usize>,
    found: &mut HashMap<usize, InlineMarkup>,
) {
    if !lines[range.start].1.is_content() || lines[range.start].1 == LineKind::Code {
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
    let Markup { excluded, images } = Markup::of(&text);
    for (index, &(start, words_at)) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(text.len(), |it| it.0) - 1;
        let within = |it: &Range<usize>| {
            let part = it.start.max(start)..it.end.min(end);
            (part.start < part.end).then_some(part)
        };
        let parts: Vec<Range<usize>> = excluded.iter().filter_map(within).collect();
        let shown: Vec<Range<usize>> = images.iter().filter_map(within).collect();
        if parts.is_empty() {
            continue;
        }
        let rest = |ranges: &[Range<usize>]| {
            let ranges: Vec<_> = ranges.iter().map(|it| it.start - start..it.end - start).collect();
            without_ranges(&text[start..end], &ranges).contains(char::is_alphanumeric)
        };
        let all = merged(parts.iter().chain(&shown).cloned().collect());
        let in_line = |it: &Range<usize>| it.start - start + words_at..it.end - start + words_at;
        found.insert(
            range.start + index,
            InlineMarkup {
                is_image: !shown.is_empty() && !rest(&all),
                excluded: parts.iter().map(in_line).collect(),
            },
        );
    }
}

/// Returns the ranges in order, with those joined that touch.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|it| (it.start, it.end));
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The markup of a paragraph.
#[derive(Debug, Default)]
struct Markup {
    /// The texts of images, and struck-out text.
    excluded: Vec<Range<usize>>,
    /// Whole images.
    images: Vec<Range<usize>>,
}

/// Reads a paragraph from left to right.
struct MarkupReader<'t> {
    text: &'t str,
    markup: Markup,
    /// The starts of backtick runs by their length, in reverse order.
    code_marks: HashMap<usize, Vec<usize>>,
    /// The open brackets, and whether each begins an image.
    brackets: Vec<(usize, bool)>,
    /// Where struck-out text begins.
    strike: Option<usize>,
    /// The texts after which a search was without result, by what was sought.
    absent_from: HashMap<&'static str, usize>,
}

/// The elements of struck-out text.
const STRUCK_ELEMENTS: [(&str, &str); 3] =
    [("<del>", "</del>"), ("<s>", "</s>"), ("<strike>", "</strike>")];

impl Markup {
    fn of(text: &str) -> Self {
        let mut reader = MarkupReader {
            text,
            markup: Self::default(),
            code_marks: HashMap::new(),
            brackets: Vec::new(),
            strike: None,
            absent_from: HashMap::new(),
        };
        let mut at = 0;
        while let Some(start) = text[at..].find('`').map(|it| at + it) {
            let width = reader.run_of('`', start);
            reader.code_marks.entry(width).or_default().push(start);
            at = start + width;
        }
        reader.code_marks.values_mut().for_each(|it| it.reverse());
        let mut at = 0;
        while let Some(next) = text[at..].find(['\\', '`', '~', '[', '!', ']', '<']) {
            at += next;
            at = reader.read_mark(at);
        }
        let Self { excluded, images } = reader.markup;
        Self { excluded: merged(excluded), images: merged(images) }
    }
}

impl MarkupReader<'_> {
    fn run_of(&self, mark: char, at: usize) -> usize {
        self.text[at..].bytes().take_while(|it| *it == mark as u8).count()
    }

    /// Reads the mark at a byte, and returns where to continue.
    fn read_mark(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        match rest.as_bytes()[0] {
            b'\\' => at + 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            b'`' => {
                let width = self.run_of('`', at);
                let marks = self.code_marks.entry(width).or_default();
                while marks.last().is_some_and(|it| *it <= at) {
                    marks.pop();
                }
                marks.last().map_or(at + width, |it| it + width)
            }
            b'~' => self.read_tildes(at),
            b'!' if rest.starts_with("![") => {
                self.brackets.push((at, true));
                at + 2
            }
            b'[' => {
                self.brackets.push((at, false));
                at + 1
            }
            b']' => self.close_bracket(at),
            b'<' => self.read_element(at),
            _ => at + 1,
        }
    }

    fn read_tildes(&mut self, at: usize) -> usize {
        let width = self.run_of('~', at);
        let end = at + width;
        if width != 2 {
            return end;
        }
        let has_space = |it: Option<char>| it.is_none_or(char::is_whitespace);
        match self.strike {
            Some(start) if !has_space(self.text[..at].chars().next_back()) => {
                self.markup.excluded.push(start..end);
                self.strike = None;
            }
            None if !has_space(self.text[end..].chars().next()) => self.strike = Some(at),
            _ => {}
        }
        end
    }

    fn close_bracket(&mut self, at: usize) -> usize {
        let Some((open, is_image)) = self.brackets.pop() else { return at + 1 };
        if !is_image {
            return at + 1;
        }
        let target = match self.text.as_bytes().get(at + 1) {
            Some(b'(') => self.find(")", at + 2),
            Some(b'[') => self.find("]", at + 2),
            _ => None,
        };
        self.markup.excluded.push(open + 2..at);
        self.markup.images.push(open..target.map_or(at + 1, |it| it + 1));
        at + 1
    }

    fn read_element(&mut self, at: usize) -> usize {
        let has_prefix = |prefix: &str| {
            let start = self.text.as_bytes().get(at..at + prefix.len());
            start.is_some_and(|it| it.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        if has_prefix("<img") {
            if let Some(end) = self.find(">", at) {
                self.markup.excluded.push(at..end + 1);
                self.markup.images.push(at..end + 1);
                return end + 1;
            }
            return at + 1;
        }
        let element = STRUCK_ELEMENTS.into_iter().find(|it| has_prefix(it.0));
        let Some((open, close)) = element else { return at + 1 };
        let from = at + open.len();
        match self.find(close, from) {
            Some(end) => {
                self.markup.excluded.push(at..end + close.len());
                end + close.len()
            }
            None => from,
        }
    }

    /// Returns where a text occurs at or after a byte, in any case. A search without result is not repeated.
    fn find(&mut self, sought: &'static str, from: usize) -> Option<usize> {
        if self.absent_from.get(sought).is_some_and(|it| *it <= from) {
            return None;
        }
        let rest = self.text.as_bytes().get(from..)?;
        let found =
            rest.windows(sought.len()).position(|it| it.eq_ignore_ascii_case(sought.as_bytes()));
        if found.is_none() {
            self.absent_from.insert(sought, from);
        }
        found.map(|it| from + it)
    }
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
    }

    #[test]
    fn space_around_a_message_is_removed_but_not_the_indent_of_code() {
        assert_eq!(trim_message("\n  a\n  b \n"), "a\n  b");
        assert_eq!(trim_message("\n \n    a\n\n"), "    a");
        assert_eq!(trim_message(" \n"), "");
    }

    #[test]
    fn long_lines_of_marks_take_linear_time() {
        for mark in ["~~a", "![", "![a](", "`a``b", "<del>", "<img ", "~~a~~ ", "![a](b) "] {
            let line = mark.repeat(50_000);
            let lines = [(&line[..], LineKind::Text)];
            assert!(inline_markup(&lines).len() <= 1, "{mark}");
        }
    }
}
