//! The markup within a paragraph: struck-out text, images, code, comments, and tags of elements.

use std::{collections::HashMap, ops::Range};

use super::quoting_element::ElementTag;

/// Returns the ranges in order, with those joined that touch.
pub(super) fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
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
pub(super) struct Markup {
    /// What counts for nothing: the texts of images, titles of links, struck-out text, comments.
    pub excluded: Vec<Range<usize>>,
    /// Whole images.
    pub images: Vec<Range<usize>>,
    /// Code, with its marks.
    pub code: Vec<Range<usize>>,
    /// The tags of elements, except those that only format text.
    pub tags: Vec<FoundTag>,
}

/// A tag of a paragraph.
#[derive(Debug)]
pub(super) struct FoundTag {
    pub range: Range<usize>,
    pub tag: ElementTag,
    /// Whether the element encloses what counts as somebody else's text, or as nobody's.
    pub encloses: bool,
}

/// Reads a paragraph from left to right.
struct MarkupReader<'t> {
    text: &'t str,
    markup: Markup,
    /// The starts of backtick runs by their length, in reverse order.
    code_marks: HashMap<usize, Vec<usize>>,
    /// The open brackets, and whether each begins an image.
    brackets: Vec<(usize, bool)>,
    /// Where text struck out with one or two tildes begins.
    strikes: [Option<usize>; 2],
    /// Where the last search for a text began, and what it found.
    searches: HashMap<&'static str, (usize, Option<usize>)>,
}

impl Markup {
    pub(super) fn of(text: &str) -> Self {
        let mut reader = MarkupReader {
            text,
            markup: Self::default(),
            code_marks: HashMap::new(),
            brackets: Vec::new(),
            strikes: [None; 2],
            searches: HashMap::new(),
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
        let Self { excluded, images, code, tags } = reader.markup;
        Self { excluded: merged(excluded), images: merged(images), code, tags }
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
                let Some(end) = marks.last().map(|it| it + width) else { return at + width };
                self.markup.code.push(at..end);
                end
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
        if width > 2 {
            return end;
        }
        let before = self.text[..at].chars().next_back();
        let after = self.text[end..].chars().next();
        // `~5` and `~€120` are amounts.
        let is_amount = |it: char| it.is_ascii_digit() || matches!(it, '$' | '€' | '£' | '¥');
        if width == 1 && after.is_some_and(is_amount) {
            return end;
        }
        let has_space = |it: Option<char>| it.is_none_or(char::is_whitespace);
        // One tilde in a word, as in `HEAD~1`, strikes nothing out.
        let in_word = |it: Option<char>| width == 1 && it.is_some_and(char::is_alphanumeric);
        let strike = &mut self.strikes[width - 1];
        match *strike {
            // One tilde strikes out words of its own line.
            Some(start)
                if !has_space(before)
                    && !in_word(after)
                    && (width > 1 || !self.text[start..at].contains('\n')) =>
            {
                self.markup.excluded.push(start..end);
                *strike = None;
            }
            None if !has_space(after) && !in_word(before) => *strike = Some(at),
            // The first of two opens nothing.
            Some(_) if width == 1 && !has_space(after) && !in_word(before) => *strike = Some(at),
            _ => {}
        }
        end
    }

    fn close_bracket(&mut self, at: usize) -> usize {
        let Some((open, is_image)) = self.brackets.pop() else { return at + 1 };
        if !is_image {
            return self.read_link_title(at + 1).unwrap_or(at + 1);
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

    /// Excludes the title in the target of a link, or of the definition of one, and returns where it ends.
    fn read_link_title(&mut self, at: usize) -> Option<usize> {
        const TARGET_MAX: usize = 2_048;
        let rest = self.text.get(at..)?;
        let is_definition = rest.starts_with(": ");
        let target = rest.strip_prefix(if is_definition { ": " } else { "(" })?;
        let from = self.text.len() - target.len();
        let ends = |it: u8| it.is_ascii_whitespace() || (it == b')' && !is_definition);
        let space = from + target.bytes().take(TARGET_MAX).position(ends)?;
        if is_definition && !self.text[from..space].contains(['/', '.']) {
            return None;
        }
        let title = self.text[space..].trim_start_matches([' ', '\t', '\n']);
        let start = self.text.len() - title.len();
        let close = match title.as_bytes().first().filter(|_| start > space)? {
            b'"' => "\"",
            b'\'' => "'",
            b'(' => ")",
            _ => return None,
        };
        let end = self.find(close, start + 1)? + 1;
        let behind = &self.text[end..];
        let is_closed = if is_definition {
            behind.starts_with('\n')
        } else {
            behind.trim_start_matches([' ', '\n']).starts_with(')')
        };
        is_closed.then(|| {
            self.markup.excluded.push(start..end);
            end
        })
    }

    /// Excludes what is between a start at a byte and an end, or skips the start.
    fn exclude_to(&mut self, at: usize, start: &str, end: &'static str) -> usize {
        let from = at + start.len();
        let Some(end) = self.find(end, from).map(|it| it + end.len()) else { return from };
        self.markup.excluded.push(at..end);
        end
    }

    fn read_element(&mut self, at: usize) -> usize {
        for (start, end) in [("<!--", "-->"), ("<?", "?>")] {
            if self.text[at..].starts_with(start) {
                return self.exclude_to(at, start, end);
            }
        }
        let Some(tag) = ElementTag::parse(&self.text[at..]) else { return at + 1 };
        let end = self.find(">", at).map(|it| it + 1);
        let after = end.unwrap_or(at + tag.name_end);
        if tag.is_end {
            self.markup.tags.push(FoundTag { range: at..after, tag, encloses: false });
            return after;
        }
        match (&tag.name[..], end) {
            ("img", None) => return after,
            ("img", Some(end)) => {
                self.markup.excluded.push(at..end);
                self.markup.images.push(at..end);
                return end;
            }
            ("code", _) => {
                let Some(end) = self.find("</code>", after).map(|it| it + "</code>".len()) else {
                    return after;
                };
                self.markup.code.push(at..end);
                return end;
            }
            _ => {}
        }
        let struck = tag.struck_end().and_then(|it| Some(self.find(it, after)? + it.len()));
        if let Some(end) = struck {
            self.markup.excluded.push(at..end);
            return end;
        }
        let attributes = &self.text[at + tag.name_end..after];
        // The words of a title are shown, but are no words of the line.
        if let Some(title) = attributes.find("title=").filter(|_| end.is_some()) {
            self.markup.excluded.push(at + tag.name_end + title..after - 1);
        }
        let encloses = tag.encloses(attributes);
        if !attributes.ends_with("/>") && (encloses || tag.name == "div") {
            self.markup.tags.push(FoundTag { range: at..after, tag, encloses });
        }
        after
    }

    /// Returns where a text occurs at or after a byte, in any case. Nothing is searched twice.
    fn find(&mut self, sought: &'static str, from: usize) -> Option<usize> {
        if let Some(&(began, found)) = self.searches.get(sought)
            && began <= from
            && found.is_none_or(|it| from <= it)
        {
            return found;
        }
        let rest = self.text.as_bytes().get(from..)?;
        let found = rest
            .windows(sought.len())
            .position(|it| it.eq_ignore_ascii_case(sought.as_bytes()))
            .map(|it| from + it);
        self.searches.insert(sought, (from, found));
        found
    }
}
