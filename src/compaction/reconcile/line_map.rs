//! Maps the lines of an older version of a log to the lines of a newer one.
//!
//! Citations are line numbers, so a line inserted at the top of a log shifts all that cite it. Only
//! the hashes of the older lines are known; they are matched with the new ones, and citations are
//! updated without asking an engine.

use std::collections::{HashMap, HashSet};

use crate::memory::hash::ContentHash;

/// The lines of one version of a log, by the first 8 bytes of their hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineHashes {
    /// The number of the first line; frontmatter has no hashes.
    pub first: u32,
    /// One hash per line, blank lines included.
    pub hashes: Vec<u64>,
}

/// The new positions of the lines of an older version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineMap {
    /// Old line number to new one; lines that are gone are missing.
    to: HashMap<u32, u32>,
    /// For lines that are gone, the one written in their place, if the counts match.
    replaced: HashMap<u32, u32>,
    /// The first line of the older version, and the one after its last.
    old: (u32, u32),
    /// Whether both versions hold the same text, blank lines aside.
    only_moved: bool,
}

impl LineMap {
    /// Matches the lines of two versions.
    ///
    /// The equal beginning and end are matched in order. Between them, the n-th of equal lines
    /// goes to the n-th; so a paragraph that moved is followed too.
    pub(crate) fn between(old: &LineHashes, new: &LineHashes) -> Self {
        let (a, b) = (&old.hashes, &new.hashes);
        let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
        let tail =
            a[head..].iter().rev().zip(b[head..].iter().rev()).take_while(|(x, y)| x == y).count();
        let number =
            |first: u32, index: usize| u32::try_from(index).ok().and_then(|i| first.checked_add(i));
        let pairs = (0..head)
            .map(|i| (i, i))
            .chain((1..=tail).map(|back| (a.len() - back, b.len() - back)))
            .chain(match_middle(a, b, head, tail));
        let pairs: Vec<(usize, usize)> = pairs.collect();
        let numbered = |pairs: &[(usize, usize)]| -> HashMap<u32, u32> {
            let lines = |&(i, j): &_| Some((number(old.first, i)?, number(new.first, j)?));
            pairs.iter().filter_map(lines).collect()
        };
        Self {
            only_moved: same_text(a, b),
            replaced: numbered(&pair_rewritten_lines(&pairs, a.len(), b.len())),
            to: numbered(&pairs),
            old: (old.first, number(old.first, a.len()).unwrap_or(u32::MAX)),
        }
    }

    /// Returns whether no line was added, removed, or changed, except blank ones.
    pub(crate) fn only_moved(&self) -> bool {
        self.only_moved
    }

    /// Returns the present number of a line, or `None` if it is gone.
    pub(crate) fn new_line(&self, old: u32) -> Option<u32> {
        self.to.get(&old).copied()
    }

    /// Returns the present number of a line or, if it is gone, of the line after its predecessor.
    pub(crate) fn line_or_position(&self, old: u32) -> u32 {
        let before = (1..old).rev().find_map(|it| Some((it, self.new_line(it)?)));
        self.new_line(old).or_else(|| before.map(|(it, now)| now + (old - it))).unwrap_or(old)
    }

    /// Returns the line that was written in the place of a line that is gone.
    pub(crate) fn rewritten_line(&self, old: u32) -> Option<u32> {
        self.replaced.get(&old).copied()
    }

    /// Returns whether the older version had a line with this number.
    pub(crate) fn had_line(&self, line: u32) -> bool {
        (self.old.0..self.old.1).contains(&line)
    }
}

/// Pairs lost lines with new ones if the same neighbours enclose equally many of both.
fn pair_rewritten_lines(
    pairs: &[(usize, usize)],
    old_len: usize,
    new_len: usize,
) -> Vec<(usize, usize)> {
    let mut fixed: Vec<(usize, usize)> = pairs.iter().map(|&(i, j)| (i + 1, j + 1)).collect();
    fixed.push((0, 0));
    fixed.push((old_len + 1, new_len + 1));
    fixed.sort_unstable();
    let taken: HashSet<usize> = fixed.iter().map(|it| it.1).collect();
    let mut found = Vec::new();
    for pair in fixed.windows(2) {
        let ((i, j), (next_i, next_j)) = (pair[0], pair[1]);
        let gone = next_i - i - 1;
        if next_j > j && next_j - j - 1 == gone && (j + 1..next_j).all(|it| !taken.contains(&it)) {
            found.extend((0..gone).map(|it| (i + it, j + it)));
        }
    }
    found
}

fn blank_hash() -> u64 {
    ContentHash::of("").prefix64()
}

fn match_middle(a: &[u64], b: &[u64], head: usize, tail: usize) -> Vec<(usize, usize)> {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for j in (head..b.len() - tail).rev() {
        places.entry(b[j]).or_default().push(j);
    }
    let middle = head..a.len() - tail;
    middle.filter_map(|i| places.get_mut(&a[i]).and_then(Vec::pop).map(|j| (i, j))).collect()
}

fn same_text(a: &[u64], b: &[u64]) -> bool {
    let blank = blank_hash();
    let sorted = |lines: &[u64]| {
        let mut lines: Vec<u64> = lines.iter().copied().filter(|&it| it != blank).collect();
        lines.sort_unstable();
        lines
    };
    sorted(a) == sorted(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(first: u32, text: &str) -> LineHashes {
        LineHashes {
            first,
            hashes: text.split('\n').map(|line| ContentHash::of(line).prefix64()).collect(),
        }
    }

    /// `lines` are the new numbers of the old lines 1, 2, 3, … (`-` where gone).
    #[track_caller]
    fn check(old: &str, new: &str, lines: &str, only_moved: bool) {
        let moves = LineMap::between(&hashes(1, old), &hashes(1, new));
        let found: Vec<_> = (1..=u32::try_from(old.split('\n').count()).unwrap())
            .map(|line| moves.new_line(line).map_or("-".to_owned(), |it| it.to_string()))
            .collect();
        assert_eq!((found.join(" ").as_str(), moves.only_moved()), (lines, only_moved));
    }

    #[test]
    fn moved_lines_are_found() {
        check("a\nb\nc", "a\nb\nc", "1 2 3", true);
        check("a\nb\nc", "\na\nb\nc", "2 3 4", true);
        check("a\nb\nc", "new\na\nb\nc", "2 3 4", false);
        check("a\nb\nc", "a\nc", "1 - 2", false);
        check("a\nb\nc", "c\na\nb", "2 3 1", true);
        check("a\nx\nx\nb", "x\na\nx\nb\nx", "2 1 3 4", false);
        check("a\nb", "a\nB", "1 -", false);
        check("", "", "1", true);
    }

    #[test]
    fn a_lost_line_keeps_its_position() {
        let moves = LineMap::between(&hashes(1, "a\nb\nc\nd"), &hashes(1, "top\na\nB\nC\nd"));
        let places: Vec<u32> = (1..=4).map(|line| moves.line_or_position(line)).collect();
        assert_eq!(places, [2, 3, 4, 5]);
        assert_eq!(LineMap::between(&hashes(1, "a\nb"), &hashes(1, "b")).line_or_position(1), 1);
    }

    #[test]
    fn a_changed_frontmatter_shifts_the_body() {
        let moves = LineMap::between(&hashes(4, "a\nb"), &hashes(6, "a\nb"));
        assert_eq!(
            (moves.new_line(4), moves.new_line(5), moves.new_line(6)),
            (Some(6), Some(7), None)
        );
        assert!(moves.only_moved());
    }
}
