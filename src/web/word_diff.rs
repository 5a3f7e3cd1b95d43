//! Two texts as HTML: what was added and removed, word by word.

use maud::{Markup, html};
use similar::{ChangeTag, DiffTag, TextDiff};

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 1;
/// Longer texts are compared by lines only.
const WORDS_BYTES_MAX: usize = 20_000;

/// What is shown of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Same,
    Removed,
    Added,
}

type Pieces = Vec<(PieceKind, String)>;

/// Returns what changed, with the removed words before the added ones; `None` if nothing did.
pub(super) fn changes(old: &str, new: &str) -> Option<Markup> {
    let diff = TextDiff::from_lines(old, new);
    let groups = diff.grouped_ops(CONTEXT);
    if groups.is_empty() {
        return None;
    }
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let joined = |lines: &[&str], range: std::ops::Range<usize>| {
        lines.get(range).map(<[&str]>::concat).unwrap_or_default()
    };
    Some(html! {
        div .diff lang="" {
            @for group in &groups {
                div .hunk {
                    @for op in group {
                        @let (before, after) = (joined(&old, op.old_range()), joined(&new, op.new_range()));
                        @match op.tag() {
                            DiffTag::Equal => (pieces(&vec![(PieceKind::Same, after)])),
                            DiffTag::Delete => (pieces(&vec![(PieceKind::Removed, before)])),
                            DiffTag::Insert => (pieces(&vec![(PieceKind::Added, after)])),
                            DiffTag::Replace => (pieces(&words(&before, &after))),
                        }
                    }
                }
            }
        }
    })
}

/// Returns two versions side by side; in each, what the other has not is marked.
pub(super) fn side_by_side(old: &str, new: &str, names: [&str; 2]) -> Markup {
    let all = words(old, new);
    let side = |without: PieceKind| -> Pieces {
        all.iter().filter(|it| it.0 != without).cloned().collect()
    };
    html! {
        div .sides {
            section aria-label=(names[0]) { h3 { (names[0]) } div .diff lang="" { (pieces(&side(PieceKind::Added))) } }
            section aria-label=(names[1]) { h3 { (names[1]) } div .diff lang="" { (pieces(&side(PieceKind::Removed))) } }
        }
    }
}

fn words(old: &str, new: &str) -> Pieces {
    let diff = if old.len() + new.len() > WORDS_BYTES_MAX {
        TextDiff::from_lines(old, new)
    } else {
        TextDiff::from_words(old, new)
    };
    let mut found: Pieces = Vec::new();
    for change in diff.iter_all_changes() {
        let kind = match change.tag() {
            ChangeTag::Equal => PieceKind::Same,
            ChangeTag::Delete => PieceKind::Removed,
            ChangeTag::Insert => PieceKind::Added,
        };
        match found.last_mut().filter(|it| it.0 == kind) {
            Some((_, text)) => text.push_str(change.value()),
            None => found.push((kind, change.value().to_owned())),
        }
    }
    found
}

fn pieces(all: &Pieces) -> Markup {
    html! {
        @for (kind, text) in all {
            @match kind {
                PieceKind::Same => (text),
                PieceKind::Removed => del { (text) },
                PieceKind::Added => ins { (text) },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_words_are_marked() {
        let shown = changes("a\nPort is 80 now\n", "a\nPort is 81 now\n").unwrap().into_string();
        assert!(shown.contains("Port is <del>80</del><ins>81</ins> now"), "{shown}");
        assert!(changes("a\n", "a\n").is_none());
        let shown = changes("", "<b>\n").unwrap().into_string();
        assert!(shown.contains("<ins>&lt;b&gt;\n</ins>"), "{shown}");
    }
}
