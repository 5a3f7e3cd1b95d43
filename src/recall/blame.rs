//! Finds the version in which each line of a file was added.
//!
//! Pure: the texts of the versions are passed in, the oldest first. A line that moved within the file
//! keeps its version; a rewritten line gets the version with its new words.

use similar::{ChangeTag, TextDiff};

/// Returns, for each line of the last text, the index of the text that added it.
pub fn origins(texts: &[String]) -> Vec<usize> {
    let mut origins: Vec<usize> = Vec::new();
    let mut old = "";
    for (at, new) in texts.iter().enumerate() {
        let diff = TextDiff::from_lines(old, new);
        let mut removed: Vec<(&str, usize)> = Vec::new();
        let mut changes = Vec::new();
        for change in diff.iter_all_changes() {
            let before = change.old_index().and_then(|it| origins.get(it)).copied();
            if change.tag() == ChangeTag::Delete {
                removed.extend(before.map(|it| (change.value(), it)));
            } else {
                changes.push((change.value(), before));
            }
        }
        // A line removed at one place and added at another was moved.
        let mut moved = |line: &str| {
            let position = removed.iter().position(|it| it.0 == line && !line.trim().is_empty())?;
            Some(removed.swap_remove(position).1)
        };
        origins = changes
            .into_iter()
            .map(|(line, before)| before.or_else(|| moved(line)).unwrap_or(at))
            .collect();
        old = new;
    }
    origins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(texts: &[&str], expected: &[usize]) {
        let texts: Vec<String> = texts.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(origins(&texts), expected);
    }

    #[test]
    fn a_line_belongs_to_the_version_that_first_contained_it() {
        check(&[], &[]);
        check(&["a\nb\n"], &[0, 0]);
        check(&["a\nb\n", "a\nc\nb\n"], &[0, 1, 0]);
        check(&["a\nb\n", "a\nB\n", "a\nB\nd\n"], &[0, 1, 2]);
        check(&["a\nb\n", ""], &[]);
        check(&["a\nb\n", "", "a\n"], &[2]);
        check(&["a\nb\nc\n", "c\na\nb\n", "c\na\nb\nx\n"], &[0, 0, 0, 2]);
    }

    #[test]
    fn repeated_lines_keep_their_own_versions() {
        check(&["a\n", "a\na\n", "a\n"], &[0]);
    }
}
