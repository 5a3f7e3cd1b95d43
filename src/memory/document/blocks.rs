//! The body of a summary, cut into blocks that join back to the same bytes.

use super::SummaryBlock;
use crate::memory::{
    item::{Item, SummarySection},
    markdown::{self, LineKind},
};

impl SummaryBlock {
    /// Returns the block's lines as read.
    pub fn raw(&self) -> &str {
        match self {
            Self::Section(_, raw) | Self::Bullet(_, raw) | Self::Other(raw) => raw,
        }
    }

    /// Returns whether this is a heading, one of memoird's or a person's.
    pub fn is_heading(&self) -> bool {
        self.item().is_none() && heading_level(self.raw()) > 0
    }

    /// Returns the byte offset at which an unclosed code fence or comment begins.
    pub fn unclosed_at(&self) -> Option<usize> {
        let lines: Vec<&str> = self.raw().split_inclusive('\n').collect();
        let is_open = |lines: &[&str]| {
            let kinds = markdown::classify_summary_lines(lines.iter().copied().chain(["- probe"]));
            !matches!(kinds.last(), Some(LineKind::ListItem { .. }))
        };
        if !is_open(&lines) {
            return None;
        }
        let closed = (0..lines.len()).rev().find(|&it| !is_open(&lines[..it])).unwrap_or(0);
        Some(lines[..closed].iter().map(|it| it.len()).sum())
    }

    /// Returns the item of a bullet.
    pub fn item(&self) -> Option<&Item> {
        match self {
            Self::Bullet(item, _) => Some(item),
            Self::Section(..) | Self::Other(_) => None,
        }
    }
}

/// Cuts a body into blocks.
pub(super) fn split_blocks(body: &str) -> Vec<SummaryBlock> {
    let lines: Vec<&str> = body.split_inclusive('\n').collect();
    let plain = |line: &'_ str| line.trim_end_matches(['\n', '\r']).len();
    let kinds = markdown::classify_summary_lines(lines.iter().map(|line| &line[..plain(line)]));
    let mut blocks = Vec::<SummaryBlock>::new();
    // Whether a line may still join the bullet before it, or the text before it.
    let (mut open, mut joins) = (false, false);
    for (line, kind) in lines.into_iter().zip(kinds) {
        let text = &line[..plain(line)];
        let words = text.get(kind.text_at(text)..).unwrap_or_default();
        match kind {
            LineKind::ListItem { text_at, task, .. } => {
                let at = match task {
                    // The box belongs to the words: ticking it changes the bullet.
                    Some(_) => text[..text_at].rfind('[').unwrap_or(text_at),
                    None => text_at,
                };
                blocks.push(SummaryBlock::Bullet(Item::parse(&text[at..]), line.to_owned()));
                (open, joins) = (true, false);
                continue;
            }
            LineKind::Heading { level, .. } => {
                let section = SummarySection::from_title(words).filter(|_| level >= 2);
                blocks.push(match section {
                    Some(section) => SummaryBlock::Section(section, line.to_owned()),
                    None => SummaryBlock::Other(line.to_owned()),
                });
                // A heading is a block of its own.
                (open, joins) = (false, false);
                continue;
            }
            LineKind::Text if open => {
                if let Some(SummaryBlock::Bullet(item, raw)) = blocks.last_mut() {
                    let indented = text.starts_with([' ', '\t']);
                    // A citation ends a bullet; after it only indented lines belong to it.
                    if indented || item.citation.is_none() {
                        append_to_item(item, words);
                        raw.push_str(line);
                        continue;
                    }
                }
            }
            _ => {}
        }
        match blocks.last_mut() {
            Some(SummaryBlock::Other(raw)) if joins => raw.push_str(line),
            _ => blocks.push(SummaryBlock::Other(line.to_owned())),
        }
        (open, joins) = (false, true);
    }
    blocks
}

/// Appends a line to a bullet; citations at the end of both are merged.
fn append_to_item(item: &mut Item, words: &str) {
    let Item { text, citation } = Item::parse(words);
    // In place, since a bullet may continue for thousands of lines.
    item.text.truncate(item.text.trim_end().len());
    item.text.drain(..item.text.len() - item.text.trim_start().len());
    let more = text.trim();
    if !more.is_empty() && !item.text.is_empty() {
        item.text.push(' ');
    }
    item.text.push_str(more);
    item.citation = match (item.citation.take(), citation) {
        (Some(mut all), Some(more)) => {
            all.merge(&more);
            Some(all)
        }
        (one, other) => one.or(other),
    };
}

/// Returns the level of the heading, or 0 if the block is not one.
pub(super) fn heading_level(raw: &str) -> usize {
    let line = raw.strip_suffix('\n').unwrap_or(raw);
    match markdown::classify_summary_lines([line])[..] {
        [LineKind::Heading { level, .. }] if !line.contains('\n') => level.into(),
        _ => 0,
    }
}
