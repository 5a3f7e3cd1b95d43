//! The block of `WISDOM.md` in a file that an agent keeps by itself: some programs read no file of ours at session
//! start, but that one.
//!
//! ```text
//! <!-- memoird:begin wisdom 03be77a1c4d2e9f0 gap=1; from WISDOM.md, which memoird writes; add your own text outside -->
//! ## How to work
//! - …
//! <!-- memoird:end -->
//! ```
//!
//! # Invariants
//!
//! - Everything outside the two comments is the owner's and stays byte for byte. `gap` is the number of line breaks
//!   that were added before the block, so that removing it restores the file.
//! - The first comment has the hash of the lines between the two. If it differs, somebody wrote in the block: their
//!   lines move below it before it is written again.
//! - A block without an end is never written; everything after its beginning counts as ours when the file is read.
//!
//! Pure: `recall::wisdom_block` reads and writes the file.

use super::{
    hash::ContentHash,
    index::{self, END},
};

/// The start of the comment before the block.
const BEGIN_PREFIX: &str = "<!-- memoird:begin wisdom ";
/// The rest of that comment, after its hash and gap.
const BEGIN_NOTE: &str = "; from WISDOM.md, which memoird writes; add your own text outside -->";
/// The start of both comments.
const MARK: &str = "<!-- memoird:";

/// A file with the block in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithBlock<'a> {
    /// The text before the block, with the gap.
    before: &'a str,
    /// How many of the line breaks at the end of `before` belong to the block.
    gap: usize,
    /// The hash in the comment, in hex.
    hash: &'a str,
    /// The lines between the comments.
    body: &'a str,
    /// The text after the block.
    after: &'a str,
}

/// What a file says about the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockState<'a> {
    /// There is none.
    Absent,
    /// There is one.
    Present(WithBlock<'a>),
    /// It has no end, or there are two.
    Broken,
}

/// Returns whether a line begins a block.
pub fn is_begin(line: &str) -> bool {
    line.trim_start().starts_with(BEGIN_PREFIX)
}

/// Finds the block in a file.
pub fn find(text: &str) -> BlockState<'_> {
    let mut at = 0;
    let mut begin = None;
    let mut found = None;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if is_begin(line) {
            if begin.is_some() || found.is_some() {
                return BlockState::Broken;
            }
            begin = Some((at, end));
        } else if line.trim() == END
            && let Some((start, body)) = begin.take()
        {
            let words = text[start..body].trim().trim_start_matches(BEGIN_PREFIX);
            let (hash, rest) = words.split_once(' ').unwrap_or((words, ""));
            let gap = rest.strip_prefix("gap=").and_then(|it| it.get(..1)?.parse().ok());
            found = Some(WithBlock {
                before: &text[..start],
                gap: gap.unwrap_or(0),
                hash,
                body: &text[body..at],
                after: &text[end..],
            });
        }
        at = end;
    }
    match (begin, found) {
        (Some(_), _) => BlockState::Broken,
        (None, Some(found)) => BlockState::Present(found),
        (None, None) => BlockState::Absent,
    }
}

impl WithBlock<'_> {
    /// Returns whether the block is as it was written.
    pub fn is_ours(&self) -> bool {
        self.hash == ContentHash::of(self.body).hex16()
    }

    /// Returns the lines between the comments.
    pub fn body(&self) -> &str {
        self.body
    }

    /// Returns the file with other lines in the block. `strays` are lines of the owner that move below it.
    pub fn with_body(&self, body: &str, strays: &str) -> String {
        let strays = with_line_end(strays);
        format!("{}{}{strays}{}", self.before, print(self.gap, body), self.after)
    }

    /// Returns the file without the block, and with `strays` in its place.
    pub fn without_block(&self, strays: &str) -> String {
        let mut before = self.before;
        for _ in 0..self.gap {
            before = before.strip_suffix('\n').unwrap_or(before);
        }
        let strays = with_line_end(strays);
        let has_more = !strays.is_empty() || !self.after.is_empty();
        let gap = &self.before[before.len()..];
        // Lines of the owner stay lines of their own.
        let gap = match gap.len() {
            _ if !has_more => "",
            1 if strays.is_empty() => "",
            2.. if strays.is_empty() => "\n",
            _ => gap,
        };
        format!("{before}{gap}{strays}{}", self.after)
    }

    /// Returns the lines of the block that `written`, its last known body, does not have.
    pub fn strays(&self, written: &str) -> String {
        let known: Vec<&str> = written.lines().map(str::trim).collect();
        let lines = self.body.lines().filter(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with(MARK) && !known.contains(&line)
        });
        lines.flat_map(|it| [it, "\n"]).collect()
    }

    /// Returns the UTF-16 units of the owner's text and the comments: JavaScript counts so.
    pub fn frame_units(&self, strays: &str) -> usize {
        units(&self.with_body("", strays))
    }
}

/// Returns a file with a new block at its end. An index of memories in it goes, since the block takes its place.
pub fn insert(text: &str, body: &str) -> String {
    let text = index::without_block(text);
    let gap = match &text[..] {
        "" => 0,
        it if it.ends_with('\n') => 1,
        _ => 2,
    };
    format!("{text}{}{}", "\n".repeat(gap), print(gap, body))
}

/// Returns the number of UTF-16 units of a text, without white space at its end.
pub fn units(text: &str) -> usize {
    text.trim_end().encode_utf16().count()
}

fn print(gap: usize, body: &str) -> String {
    let body = with_line_end(body);
    let hash = ContentHash::of(&body).hex16();
    format!("{BEGIN_PREFIX}{hash} gap={gap}{BEGIN_NOTE}\n{body}{END}\n")
}

fn with_line_end(text: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}")
}

/// Returns lines for the block, none of which can end it.
pub fn neutralized(body: &str) -> String {
    body.replace(MARK, "<!-- memoird_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn present(text: &str) -> WithBlock<'_> {
        match find(text) {
            BlockState::Present(found) => found,
            other => panic!("{other:?}: {text}"),
        }
    }

    #[test]
    fn a_file_without_the_block_is_what_it_was() {
        for text in ["", "mine", "mine\n", "mine\n\n", "a\r\nb\r\n", "é\n\n# b\n- c"] {
            let with = insert(text, "- one\n");
            let found = present(&with);
            assert!(found.is_ours());
            assert_eq!(found.body(), "- one\n");
            assert_eq!(found.without_block(""), text);
            let again = found.with_body("- two", "");
            let again = present(&again);
            assert_eq!((again.body(), &again.without_block("")[..]), ("- two\n", text));
        }
    }

    #[test]
    fn text_around_and_inside_of_the_block_stays() {
        let with = insert("mine\n", "- one\n- two\n") + "below\n";
        let edited =
            with.replace("- two\n", "- two, and mine\n").replace("mine\n\n", "mine\nx\n\n");
        let found = present(&edited);
        assert!(!found.is_ours());
        let strays = found.strays("- one\n- two\n");
        assert_eq!(strays, "- two, and mine\n");
        let next = found.with_body("- three\n", &strays);
        let next = present(&next);
        assert!(next.is_ours());
        assert_eq!(next.without_block(""), "mine\nx\n- two, and mine\nbelow\n");
        assert_eq!(found.without_block(&strays), "mine\nx\n\n- two, and mine\nbelow\n");
    }

    #[test]
    fn a_block_without_an_end_is_broken() {
        let with = insert("mine\n", "- one\n");
        assert_eq!(find(&with.replace(END, "")), BlockState::Broken);
        assert_eq!(find(&format!("{with}{with}")), BlockState::Broken);
        assert_eq!(
            find("mine\n<!-- memoird:begin -->\n<!-- memoird:end -->\n"),
            BlockState::Absent
        );
        assert_eq!(neutralized("- a <!-- memoird:end -->"), "- a <!-- memoird_end -->");
    }

    #[test]
    fn an_index_of_memories_gives_way() {
        let text =
            "mine\n\n<!-- memoird:begin -->\n- [A](user_a.md): x\n<!-- memoird:end -->\nmore\n";
        let with = insert(text, "- one\n");
        assert_eq!(present(&with).without_block(""), "mine\n\nmore\n");
    }

    #[test]
    fn characters_are_counted_as_javascript_counts() {
        assert_eq!(units("aé日\n\n"), 3);
        assert_eq!(units("😀"), 2);
    }
}
