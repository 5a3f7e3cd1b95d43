//! The markers that a version control system leaves in a file that it could not merge.

use super::markdown::{self, LineKind};

/// Returns the number of the first line, from 1, with a marker of an unresolved conflict.
///
/// A line of seven `<` begins a conflict. One of seven `>` counts only after a line `=======`, since a quote may
/// be seven levels deep. Code that shows a conflict is none, unless the conflict begins above the code.
pub fn first_conflict_line(text: &str) -> Option<usize> {
    // Most files have none, and are not split into lines for that.
    if !["<<<<<<<", ">>>>>>>"].iter().any(|it| text.contains(it)) {
        return None;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = text.split('\n').map(|it| it.strip_suffix('\r').unwrap_or(it)).collect();
    let kinds = markdown::classify_lines(lines.iter().copied());
    let mut divided = false;
    for (at, (line, kind)) in lines.iter().zip(kinds).enumerate() {
        if matches!(kind, LineKind::Code) {
            continue;
        }
        if is_marker(line, '<') || (divided && is_marker(line, '>')) {
            return Some(at + 1);
        }
        divided |= *line == "=======";
    }
    None
}

/// Returns whether a line is seven of a mark, alone or before a space.
fn is_marker(line: &str, mark: char) -> bool {
    let rest = line.trim_start_matches(mark);
    line.len() - rest.len() == 7 && (rest.is_empty() || rest.starts_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<usize>) {
        assert_eq!(first_conflict_line(text), expected, "{text}");
    }

    #[test]
    fn conflicts_are_found_by_their_markers() {
        let conflict = "<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> other\n";
        check(conflict, Some(1));
        check(&format!("# Log\n\n- x\n{conflict}"), Some(4));
        check(&format!("\u{feff}{}", conflict.replace('\n', "\r\n")), Some(1));
        check(&format!("---\norigin: human\n{conflict}---\n- a\n"), Some(3));
        check("- a\n<<<<<<< ours\n- b\n||||||| base\n- c\n=======\n>>>>>>> theirs\n", Some(2));
        // Half of it was resolved.
        check("- a\n=======\n- b\n>>>>>>> other\n", Some(4));
        check("- a\n<<<<<<<\n", Some(2));
        // The code begins within the conflict.
        check("- a\n<<<<<<< HEAD\n```\n=======\n>>>>>>> b\n```\n", Some(2));
    }

    #[test]
    fn what_only_looks_like_a_marker_is_none() {
        check("", None);
        check("Title\n=======\n\n- a\n", None);
        check("- saw <<<<<<< HEAD in main.rs\n", None);
        check("<<<<<<<< eight\n>>>>>>>> eight\n", None);
        check(">>>>>>> a quote of a quote\n", None);
        check("```\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n```\n", None);
        check("- fixed\n  ```\n  <<<<<<< HEAD\n  ```\n", None);
        check("<<<<<<<HEAD\n", None);
    }
}
