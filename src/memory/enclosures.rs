//! Pairs of marks that enclose text, such as the tags of an element.
//!
//! Whoever writes the enclosed text may write such marks, too, so a pair is read in the way that encloses
//! more: pairs nest, an end with another id ends nothing, and an end that nothing opened extends the pair
//! before it. Linear in the number of marks.

use std::{borrow::Cow, collections::HashMap};

/// What a mark does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkRole {
    Open,
    /// A heading above a pair, which may also enclose the text by itself. It ends with the pair.
    Heading,
    Close,
}

/// A mark that opens or closes an enclosure.
#[derive(Clone, Debug)]
pub(super) struct EnclosureMark<'t> {
    /// Only marks of the same name form pairs.
    pub name: Cow<'t, str>,
    pub id: Option<&'t str>,
    pub role: MarkRole,
}

/// The most open marks among which the one with the id of an end is searched. Nobody nests deeper.
const DEPTH_MAX: usize = 64;

/// The open marks of one name.
#[derive(Default)]
struct OpenMarks<'t> {
    open: Vec<(usize, Option<&'t str>, MarkRole)>,
    /// The outermost mark that was closed last, while none is open.
    last: Option<usize>,
}

/// Returns for each mark that opens something the index of the mark that ends it.
pub(super) fn enclosure_ends(marks: &[EnclosureMark<'_>]) -> Vec<Option<usize>> {
    let mut ends = vec![None; marks.len()];
    let mut by_name: HashMap<&str, OpenMarks<'_>> = HashMap::new();
    for (at, mark) in marks.iter().enumerate() {
        let state = by_name.entry(&mark.name).or_default();
        if mark.role != MarkRole::Close {
            state.open.push((at, mark.id, mark.role));
            state.last = None;
            continue;
        }
        let from = state.open.len().saturating_sub(DEPTH_MAX);
        let fits =
            |it: &(usize, Option<&str>, MarkRole)| it.1 == mark.id || it.2 == MarkRole::Heading;
        if let Some(mut from) = state.open[from..].iter().rposition(fits).map(|it| from + it) {
            while from > 0 && state.open[from - 1].2 == MarkRole::Heading {
                from -= 1;
            }
            let outermost = state.open[from].0;
            state.open.drain(from..).for_each(|it| ends[it.0] = Some(at));
            state.last = state.open.is_empty().then_some(outermost);
        } else if let Some(last) = state.last {
            ends[last] = Some(at);
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(` and `)` with an optional digit as id, `#` for a heading; the index of each end, or `-`.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let marks: Vec<EnclosureMark<'_>> = text
            .split(' ')
            .map(|it| EnclosureMark {
                name: "a".into(),
                id: Some(&it[1..]).filter(|it| !it.is_empty()),
                role: match &it[..1] {
                    "(" => MarkRole::Open,
                    "#" => MarkRole::Heading,
                    _ => MarkRole::Close,
                },
            })
            .collect();
        let ends = enclosure_ends(&marks);
        let ends: Vec<_> =
            ends.iter().map(|it| it.map_or("-".into(), |it| it.to_string())).collect();
        assert_eq!(ends.join(" "), expected, "{text}");
    }

    #[test]
    fn pairs_nest_and_are_read_as_the_longer_ones() {
        check("( ) ( )", "1 - 3 -");
        check("( ( ) )", "3 2 - -");
        check("( ) )", "2 - -");
        check("( ( )", "- 2 -");
        check("(1 )2 ) )1", "3 - - -");
        check("(1 (2 )1", "2 2 -");
        check(") ( )", "- 2 -");
        check("# ( ) ( )", "2 2 - 4 -");
        check("# )1", "1 -");
    }
}
