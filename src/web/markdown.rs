//! Memory files as HTML: headings, bullets with their citations as links, and text with code and bold words.
//!
//! This is not Markdown in general: what it does not know stays text. Links and images in a text stay text, too, so
//! that no page leads elsewhere.

use maud::{Markup, html};

use super::{address::PageAddress, context::PageContext};
use crate::{
    memory::{address::Citation, frontmatter, item::Item, joined},
    store::fs::layout::FileKind,
};

/// Returns a text on one line: `code` and **bold** words are marked.
pub(super) fn inline(text: &str) -> Markup {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((kind, start, end)) = next_span(rest) {
        let mark = kind.mark().len();
        let (before, span) = (rest.get(..start), rest.get(start + mark..end));
        let (Some(before), Some(span)) = (before, span) else { break };
        parts.push((None, before));
        parts.push((Some(kind), span));
        rest = rest.get(end + mark..).unwrap_or_default();
    }
    parts.push((None, rest));
    html! {
        @for (kind, text) in parts {
            @match kind {
                Some(SpanKind::Code) => code { (text) },
                Some(SpanKind::Bold) => strong { (text) },
                None => (text),
            }
        }
    }
}

#[derive(Clone, Copy)]
enum SpanKind {
    Code,
    Bold,
}

impl SpanKind {
    fn mark(self) -> &'static str {
        match self {
            Self::Code => "`",
            Self::Bold => "**",
        }
    }
}

/// Finds the first span: its kind, where its opening mark begins, and where its closing mark begins.
fn next_span(text: &str) -> Option<(SpanKind, usize, usize)> {
    let find = |kind: SpanKind| {
        let start = text.find(kind.mark())?;
        let within = start + kind.mark().len();
        let length = text.get(within..)?.find(kind.mark()).filter(|it| *it > 0)?;
        Some((kind, start, within + length))
    };
    let found = [SpanKind::Code, SpanKind::Bold].into_iter().filter_map(find);
    found.min_by_key(|it| it.1)
}

/// Returns the lines of a citation as links.
pub(super) fn citation(context: &PageContext, citation: &Citation) -> Markup {
    html! {
        span .cite {
            @for (stem, lines) in citation.files() {
                " "
                @for (i, (start, end)) in lines.ranges().iter().enumerate() {
                    @let range = if start == end { start.to_string() } else { format!("{start}–{end}") };
                    @let name = if i == 0 { format!("{stem}:{range}") } else { format!(",{range}") };
                    (context.link(&PageAddress::Line(stem.clone(), *start), name))
                }
            }
        }
    }
}

/// A block of a memory file.
enum Block<'a> {
    Heading(&'a str),
    /// A bullet with the number of its line, from 1, and the lines below it.
    Bullet(u32, &'a str, Vec<&'a str>),
    /// The lines of a paragraph.
    Text(Vec<&'a str>),
}

/// Returns a summary, a typed memory, or another generated file. Each bullet leads to its sources.
///
/// `external` are the lines of bullets in the words of external text.
pub(super) fn memory_file(
    context: &PageContext,
    path: &str,
    text: &str,
    external: &[u32],
) -> Markup {
    let blocks = blocks_of(text);
    html! {
        div .memory lang="" {
            @for group in blocks.chunk_by(|a, b| matches!((a, b), (Block::Bullet(..), Block::Bullet(..)))) {
                @match group {
                    [Block::Heading(title)] => h3 dir="auto" { (inline(title)) },
                    [Block::Text(lines)] => p dir="auto" { (inline(&lines.join(" "))) },
                    bullets => ul {
                        @for bullet in bullets {
                            @if let Block::Bullet(line, words, more) = bullet {
                                (bullet_item(context, path, *line, words, more, external))
                            }
                        }
                    },
                }
            }
        }
    }
}

fn bullet_item(
    context: &PageContext,
    path: &str,
    line: u32,
    words: &str,
    more: &[&str],
    external: &[u32],
) -> Markup {
    let whole = [&[words][..], more].concat().join(" ");
    let item = Item::parse(&whole);
    html! {
        li id=(format!("L{line}")) {
            span dir="auto" { (statement_text(&item.text)) }
            @if external.contains(&line) { " " span .tag { "external" } }
            @if let Some(cited) = &item.citation { (citation(context, cited)) }
            @if is_item_file(context, path) { (item_actions(context, path, line)) }
        }
    }
}

/// Returns whether the bullets of a file are items with sources: those of the index are not.
fn is_item_file(context: &PageContext, path: &str) -> bool {
    context.root.vault.layout().kind_of(path) != Some(FileKind::Index)
}

/// Returns the links that each item has: where it comes from, and a form to correct it.
pub(super) fn item_actions(context: &PageContext, path: &str, line: u32) -> Markup {
    let why = PageAddress::Item(path.to_owned(), line);
    let correct = PageAddress::Correct(path.to_owned(), line);
    html! {
        " " span .actions {
            @if let Some(href) = context.href(&why) {
                a href=(href) aria-label=(format!("Why: sources of line {line}")) { "why" }
            }
            @if context.form_token().is_some() && let Some(href) = context.href(&correct) {
                " " a href=(href) aria-label=(format!("Correct line {line}")) { "correct" }
            }
        }
    }
}

/// Returns a statement; what it was before, `(was X until 2026-04-02)`, is marked.
pub(super) fn statement_text(text: &str) -> Markup {
    let Some((now, was)) = former_value(text) else { return inline(text) };
    html! { (inline(now)) " " span .was { "was " del { (inline(was.0)) } " until " (was.1) } }
}

/// Splits off a former value: the statement, and the value with the day until which it held.
pub(super) fn former_value(text: &str) -> Option<(&str, (&str, &str))> {
    let (now, was) = text.rsplit_once("(was ")?;
    // Only at the end it is a note; what follows would be lost.
    let was = was.strip_suffix(')')?;
    let (value, until) = was.rsplit_once(" until ")?;
    Some((now.trim_end(), (value, until)))
}

fn blocks_of(text: &str) -> Vec<Block<'_>> {
    let visible = joined::visible(text);
    let body_at = frontmatter::split(visible).body_at;
    let body = visible.get(body_at..).unwrap_or_default();
    let first = visible.get(..body_at).map_or(0, |it| it.matches('\n').count());
    let mut number = u32::try_from(first).unwrap_or(u32::MAX);
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut is_open = false;
    for line in body.lines() {
        number = number.saturating_add(1);
        let bare = line.trim();
        let is_comment = bare.starts_with("<!--") && bare.ends_with("-->");
        // The page has a title of its own.
        if bare.is_empty() || bare == "---" || is_comment || line.starts_with("# ") {
            is_open = false;
        } else if let Some(title) = heading(line) {
            blocks.push(Block::Heading(title));
            is_open = false;
        } else if let Some(words) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
            blocks.push(Block::Bullet(number, words, Vec::new()));
            is_open = true;
        } else {
            match blocks.last_mut().filter(|_| is_open) {
                Some(Block::Bullet(_, _, more)) => more.push(bare),
                Some(Block::Text(lines)) => lines.push(bare),
                _ => blocks.push(Block::Text(vec![bare])),
            }
            is_open = true;
        }
    }
    blocks
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' ')).then(|| title.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_text_stays_text() {
        let shown = |text: &str| inline(text).into_string();
        assert_eq!(
            shown("a `<b>` **c & d** e"),
            "a <code>&lt;b&gt;</code> <strong>c &amp; d</strong> e"
        );
        assert_eq!(shown("<script>alert(1)</script>"), "&lt;script&gt;alert(1)&lt;/script&gt;");
        assert_eq!(shown("![x](http://example.com/x.png)"), "![x](http://example.com/x.png)");
        assert_eq!(shown("an open ` and ** mark"), "an open ` and ** mark");
        assert_eq!(shown("``"), "``");
    }

    #[test]
    fn a_former_value_is_split_off() {
        let text = "Port is 8080 (was 80 until 2026-04-02)";
        assert_eq!(former_value(text), Some(("Port is 8080", ("80", "2026-04-02"))));
        assert_eq!(former_value("Port is 8080 (was wrong)"), None);
        assert_eq!(former_value("Port is 8080 (was 80 until 2026-04-02), for TLS"), None);
    }
}
