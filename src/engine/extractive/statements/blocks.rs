//! Splits a log into blocks, and blocks into sentences.
//!
//! The stamp of an entry (`[14:05]`, `14:05 EST:`) is no part of its text.
//!
//! External text (quotes, code, and logs of external origin) gives no block, and neither do the agent's
//! turns in a saved transcript: what it says there is an outcome at most, never a rule or a preference.
//!
//! # Invariants
//!
//! - The text of a block is the text of its lines, in order, without list markers, heading marks, and bold
//!   marks; no word is added or changed. A row of a table has the heads of its columns among its words.

use std::{borrow::Cow, cell::OnceCell};

use super::{labels::split_label, opening_time::opening_time, word_list::WordList};
use crate::{
    engine::{
        extractive::table_rows::{self, OpenTable},
        keep_mark::{KEEP_MARK, has_keep_mark},
    },
    memory::{
        authorship::{LineShape, Speaker},
        bare_words,
        log::TextOrigin,
        markdown::LineKind,
    },
    privacy::{SanitizedLine, SanitizedLog},
    text::sentences::sentence_ranges,
};

/// A heading, a bullet, a paragraph, or a row of a table.
#[derive(Clone, Debug)]
pub(crate) struct LogBlock {
    /// The text, on one line.
    pub(crate) text: String,
    pub(crate) shape: BlockShape,
    /// The block that introduces it: a bullet above, or the paragraph that ends in a colon.
    pub(crate) parent: Option<usize>,
    pub(crate) heading: Option<usize>,
    /// The lines that a person or agent marked with `#keep`.
    pub(crate) keep_lines: Vec<u32>,
    /// The byte offset in `text` at which each line begins, and the line's number; ascending, never empty.
    starts: Vec<(usize, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockShape {
    Heading(u8),
    /// A list item; a task box makes it a task.
    Bullet {
        task: bool,
    },
    Paragraph,
    Row,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogSentence {
    pub(crate) text: String,
    /// Line numbers, ascending.
    pub(crate) lines: Vec<u32>,
    /// Split when first needed.
    pub(super) words: OnceCell<WordList>,
}

/// Splits a log into blocks, in order, without lines of external origin.
pub(crate) fn parse_blocks(log: &SanitizedLog) -> Vec<LogBlock> {
    let mut cutter = BlockParser { day: log.date().to_string(), ..BlockParser::default() };
    let lines = log.lines();
    for (at, line) in lines.iter().enumerate() {
        let is_header = lines.get(at + 1).is_some_and(|it| it.kind() == LineKind::Rule);
        let own =
            line.origin() != TextOrigin::External && line.speaker() != Some(Speaker::Assistant);
        if line.kind() == LineKind::TableRow && own {
            cutter.push_row(line, is_header);
        } else {
            cutter.push_line(line);
        }
    }
    cutter.blocks
}

#[derive(Default)]
struct BlockParser {
    blocks: Vec<LogBlock>,
    headings: Vec<(u8, usize)>,
    bullets: Vec<(usize, usize)>,
    /// The paragraph that ends in a colon and introduces the list that follows.
    intro_block: Option<usize>,
    /// Whether the next text line continues the last block.
    continues: bool,
    /// The day of the log, as in the stamps of its entries.
    day: String,
    table: OpenTable,
}

impl BlockParser {
    fn push_line(&mut self, line: &SanitizedLine) {
        if line.origin() == TextOrigin::External || line.speaker() == Some(Speaker::Assistant) {
            self.continues = false;
            if matches!(line.kind(), LineKind::Quote { .. }) {
                // It is what the lead-in above it introduces.
                self.intro_block = None;
            }
            return;
        }
        if line.shape() == LineShape::TurnStart {
            let (blocks, day) = (std::mem::take(&mut self.blocks), std::mem::take(&mut self.day));
            *self = Self { blocks, day, ..Self::default() };
        }
        match line.kind() {
            LineKind::Heading { level, .. } => {
                self.headings.retain(|&(above, _)| above < level);
                self.bullets.clear();
                self.intro_block = None;
                self.push(line, BlockShape::Heading(level), None);
                self.headings.push((level, self.blocks.len() - 1));
                self.continues = false;
            }
            LineKind::ListItem { indent, task, .. } => {
                self.bullets.retain(|&(above, _)| above < indent);
                let parent = self.bullets.last().map(|&(_, at)| at).or(self.intro_block);
                self.push(line, BlockShape::Bullet { task: task.is_some() }, parent);
                self.bullets.push((indent, self.blocks.len() - 1));
                self.continues = true;
            }
            LineKind::Text if self.continues && !self.starts_new_block(line.words()) => {
                self.extend(line);
            }
            LineKind::Text | LineKind::AfterComment { .. } => {
                let indented = line.text().starts_with([' ', '\t']);
                let parent = self.bullets.last().map(|&(_, at)| at).filter(|_| indented);
                if parent.is_none() {
                    self.bullets.clear();
                }
                self.push(line, BlockShape::Paragraph, parent);
                self.continues = true;
            }
            LineKind::Blank => self.continues = false,
            // The line between the heads and the rows of a table.
            LineKind::Rule if self.table.has_heads() => {}
            _ => {
                self.continues = false;
                self.intro_block = None;
                self.bullets.clear();
            }
        }
        if line.kind() != LineKind::Rule {
            self.table = OpenTable::default();
        }
        let last = self.blocks.len().checked_sub(1);
        if let Some((at, LineKind::Text)) = last.map(|at| (at, line.kind())) {
            let introduces = self.blocks[at].shape == BlockShape::Paragraph
                && self.blocks[at].text.trim_end().ends_with(':');
            self.intro_block = introduces.then_some(at);
        }
    }

    /// Returns whether a label begins a new statement: `**Why:** …` under a rule, `Note: …` after a full
    /// stop.
    fn starts_new_block(&self, words: &str) -> bool {
        let closed = self.blocks.last().is_some_and(|it| it.text.ends_with(['.', '!', '?']));
        let labelled = split_label(words).is_some_and(|(label, _)| {
            label.starts_with(char::is_uppercase) && label.split_whitespace().count() <= 3
        });
        starts_with_bold_label(words) || (closed && labelled)
    }

    fn push_row(&mut self, line: &SanitizedLine, is_header: bool) {
        self.continues = false;
        self.bullets.clear();
        let cells: Vec<String> = table_rows::cells(line.words()).map(strip_bold).collect();
        if is_header {
            self.table = OpenTable::with_heads(cells, line.number());
            return;
        }
        let row = self.table.read_row(&cells, line.number());
        self.push(line, BlockShape::Row, self.intro_block);
        if let Some(block) = self.blocks.last_mut() {
            block.text = row.text;
            // Their words are all over the row: they are cited with its beginning.
            let others = [row.header_line, row.group.map(|it| it.1)].into_iter().flatten();
            let starts = (0..).zip(others.chain([line.number()]));
            block.starts = starts.collect();
        }
    }

    fn push(&mut self, line: &SanitizedLine, shape: BlockShape, parent: Option<usize>) {
        let mut text = strip_bold(line.words());
        if let Some(time) = opening_time(&text, &self.day).filter(|it| it.is_stamp) {
            text.drain(..time.len);
        }
        if let Some(lead) = bare_words::session_lead(&text).map(str::len) {
            text.drain(..lead);
        }
        // The words of an order are those after it.
        if text.starts_with(bare_words::USER_DECIDED) {
            text.drain(..bare_words::USER_DECIDED.len());
        }
        self.blocks.push(LogBlock {
            text,
            shape,
            parent,
            heading: self.headings.last().map(|&(_, at)| at),
            keep_lines: is_marked_keep(line).then_some(line.number()).into_iter().collect(),
            starts: vec![(0, line.number())],
        });
    }

    fn extend(&mut self, line: &SanitizedLine) {
        if let Some(block) = self.blocks.last_mut() {
            block.text.push(' ');
            block.starts.push((block.text.len(), line.number()));
            block.text.push_str(&strip_bold(line.words()));
            block.keep_lines.extend(is_marked_keep(line).then_some(line.number()));
        }
    }
}

impl LogBlock {
    pub(crate) fn lines(&self) -> Vec<u32> {
        self.starts.iter().map(|&(_, line)| line).collect()
    }

    pub(crate) fn first_line(&self) -> u32 {
        self.starts.first().map_or(0, |&(_, line)| line)
    }

    pub(crate) fn sentences_from(&self, from: usize) -> Vec<LogSentence> {
        let text = self.text.get(from..).unwrap_or_default();
        // The mark would hide where a sentence ends; spaces keep the offsets.
        let marked = !self.keep_lines.is_empty();
        let bare = if marked {
            Cow::Owned(text.replace(KEEP_MARK, BLANK_KEEP_MARK))
        } else {
            Cow::Borrowed(text)
        };
        sentence_ranges(&bare)
            .into_iter()
            .map(|(start, end)| {
                let text = bare[start..end].trim();
                let text = if marked {
                    text.split_whitespace().collect::<Vec<_>>().join(" ")
                } else {
                    text.to_owned()
                };
                let lines = self.lines_of(from + start, from + end);
                LogSentence { text, lines, words: OnceCell::new() }
            })
            .filter(|sentence| !sentence.text.is_empty())
            .collect()
    }

    fn lines_of(&self, start: usize, end: usize) -> Vec<u32> {
        let ends = self.starts.iter().skip(1).map(|&(at, _)| at).chain([usize::MAX]);
        self.starts
            .iter()
            .zip(ends)
            .filter(|&(&(at, _), next)| at < end && next > start)
            .map(|(&(_, line), _)| line)
            .collect()
    }
}

/// Returns the blocks that enclose a block, nearest first: those that introduce it, then headings.
pub(crate) fn enclosing_blocks(blocks: &[LogBlock], at: usize) -> impl Iterator<Item = usize> {
    let parents = std::iter::successors(blocks[at].parent, |&above| blocks[above].parent);
    parents.chain(std::iter::successors(blocks[at].heading, |&above| blocks[above].heading))
}

impl LogSentence {
    pub(crate) fn words(&self) -> &WordList {
        self.words.get_or_init(|| WordList::of(&self.text))
    }
}

/// Returns the text without the asterisks and underscores of bold, outside code.
fn strip_bold(text: &str) -> String {
    if !text.contains(['*', '_']) {
        return text.trim().to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for (i, piece) in text.split('`').enumerate() {
        if i > 0 {
            out.push('`');
        }
        if i % 2 == 0 {
            out.push_str(&piece.replace("**", "").replace("__", ""));
        } else {
            out.push_str(piece);
        }
    }
    out.trim().to_owned()
}

fn starts_with_bold_label(words: &str) -> bool {
    words.starts_with("**") && (words.contains(":**") || words.contains("**:"))
}

fn is_marked_keep(line: &SanitizedLine) -> bool {
    line.origin() != TextOrigin::External && has_keep_mark(line.text())
}

/// As many spaces as [`KEEP_MARK`] has bytes.
const BLANK_KEEP_MARK: &str = "     ";
