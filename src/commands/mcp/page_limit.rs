//! Limits the size of a response: an agent pays for every byte, and most clients cut long responses.

use serde::Serialize;

/// The most bytes of the entries of one response, as JSON.
pub(super) const PAGE_BYTES_MAX: usize = 20_000;
/// The most bytes of a resource, which a person selects, not an agent.
pub(super) const RESOURCE_BYTES_MAX: usize = 256 * 1024;
/// The longest text of one entry.
const PIECE_CHARS_MAX: usize = 2_000;
/// The most entries that pages can reach.
pub(super) const PIECES_MAX: usize = 1_000;

/// Parses a cursor: the number of entries on earlier pages.
pub(super) fn parse_cursor(cursor: Option<&String>) -> Result<usize, String> {
    let Some(cursor) = cursor else { return Ok(0) };
    let read = cursor.parse::<usize>().ok().filter(|it| *it <= PIECES_MAX * 1_000);
    read.ok_or_else(|| {
        let shown: String = cursor.chars().take(40).collect();
        format!("`cursor`: `{shown}` is not a `next_cursor` of an earlier response")
    })
}

/// Returns one page: at most `limit` entries and what fits, at least one. Also returns the cursor of
/// the next page.
pub(super) fn cut_page<T: Serialize>(
    all: Vec<T>,
    start: usize,
    limit: usize,
) -> (Vec<T>, Option<String>) {
    let count = all.len();
    let mut page = Vec::new();
    let mut bytes = 0;
    for piece in all.into_iter().skip(start).take(limit.max(1)) {
        bytes += serde_json::to_vec(&piece).map_or(PAGE_BYTES_MAX, |it| it.len());
        if bytes > PAGE_BYTES_MAX && !page.is_empty() {
            break;
        }
        page.push(piece);
    }
    let end = start.saturating_add(page.len());
    (page, (end < count).then(|| end.to_string()))
}

/// Truncates a text that is longer than an entry may be, and marks the cut.
pub(super) fn truncate_piece(text: &str) -> String {
    match text.char_indices().nth(PIECE_CHARS_MAX) {
        Some((end, _)) => format!("{}… [cut; read the file for the rest]", &text[..end]),
        None => text.to_owned(),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinePage {
    /// The first line, from 1.
    pub(super) from: usize,
    /// The last line; less than `first` if there is none.
    pub(super) to: usize,
    /// The number of lines in the text.
    pub(super) all: usize,
    /// The lines.
    pub(super) text: String,
}

/// Returns as many lines as fit into `bytes_max`, at least one. A line that does not fit by itself is
/// cut.
pub(super) fn cut_lines(text: &str, from: usize, to: usize, bytes_max: usize) -> LinePage {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let all = if body.is_empty() { 0 } else { body.split('\n').count() };
    let from = from.max(1);
    let mut taken = String::new();
    let mut last = from - 1;
    for (number, line) in (1..=all).zip(body.split('\n')).skip(from - 1) {
        if number > to {
            break;
        }
        if taken.len() + line.len() + 1 > bytes_max {
            if taken.is_empty() {
                let mut end = bytes_max.min(line.len());
                while !line.is_char_boundary(end) {
                    end -= 1;
                }
                taken.push_str(&line[..end]);
                taken.push_str("… [the line is cut]\n");
                last = number;
            }
            break;
        }
        taken.push_str(line);
        taken.push('\n');
        last = number;
    }
    LinePage { from, to: last, all, text: taken }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_continue_without_gap_or_repeat() {
        let all: Vec<String> = (0..97).map(|it| format!("{it}-{}", "x".repeat(it * 40))).collect();
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let (page, next) = cut_page(all.clone(), parse_cursor(cursor.as_ref()).unwrap(), 20);
            let bytes: usize = page.iter().map(String::len).sum();
            assert!(!page.is_empty() && page.len() <= 20 && bytes <= PAGE_BYTES_MAX);
            seen.extend(page);
            let Some(next) = next else { break };
            cursor = Some(next);
        }
        assert_eq!(seen, all);
        assert!(parse_cursor(Some(&"-1".to_owned())).is_err());
        assert!(parse_cursor(Some(&"9".repeat(60))).is_err());
        assert_eq!(cut_page(all, 4_000, 20), (Vec::new(), None));
    }

    #[track_caller]
    fn check(from: usize, to: usize, bytes: usize, expected: (usize, usize, &str)) {
        let LinePage { from, to, all, text } = cut_lines("ä\nbb\n\nccc\n", from, to, bytes);
        assert_eq!((all, (from, to, &text[..])), (4, expected));
    }

    #[test]
    fn lines_are_selected_by_number_and_size() {
        check(1, usize::MAX, 100, (1, 4, "ä\nbb\n\nccc\n"));
        check(2, 3, 100, (2, 3, "bb\n\n"));
        check(2, 1, 100, (2, 1, ""));
        check(9, 12, 100, (9, 8, ""));
        check(1, usize::MAX, 6, (1, 2, "ä\nbb\n"));
        check(1, usize::MAX, 1, (1, 1, "… [the line is cut]\n"));
        assert_eq!(
            cut_lines("", 1, 9, 10),
            LinePage { from: 1, to: 0, all: 0, text: String::new() }
        );
    }

    #[test]
    fn a_truncated_entry_is_marked() {
        assert_eq!(truncate_piece("äö"), "äö");
        let long = truncate_piece(&"ä".repeat(PIECE_CHARS_MAX + 1));
        assert!(long.ends_with("rest]") && long.chars().count() < PIECE_CHARS_MAX + 60);
    }
}
