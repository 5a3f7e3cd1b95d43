//! The mark `#keep`, by which a person or an agent has a line copied word for word.

/// The mark, a word of its own.
pub(crate) const KEEP_MARK: &str = "#keep";

/// Returns whether a line contains the mark outside code.
pub(crate) fn has_keep_mark(line: &str) -> bool {
    mark_places(line).next().is_some()
}

/// Returns a line without the mark, which is for the engine and says nothing to readers. A line of nothing else is
/// returned unchanged.
pub(crate) fn without_keep_mark(line: &str) -> String {
    let mut text = line.to_owned();
    for at in mark_places(line).collect::<Vec<_>>().into_iter().rev() {
        let (mut from, mut to) = (at, at + KEEP_MARK.len());
        if text[..from].ends_with('(') && text[to..].starts_with(')') {
            (from, to) = (from - 1, to + 1);
        }
        from = text[..from].trim_end().len();
        text.replace_range(from..to, "");
    }
    let text = text.trim();
    if text.contains(char::is_alphanumeric) { text.to_owned() } else { line.to_owned() }
}

/// Returns the places of the mark in a line.
fn mark_places(line: &str) -> impl Iterator<Item = usize> {
    let mut is_code = true;
    let parts = line.contains(KEEP_MARK).then(|| line.split('`')).into_iter().flatten();
    let outside = parts.filter(move |_| {
        is_code = !is_code;
        !is_code
    });
    outside.flat_map(move |part| {
        let start = part.as_ptr() as usize - line.as_ptr() as usize;
        let is_word = |at: usize| {
            let before = part[..at].chars().next_back();
            let after = part[at + KEEP_MARK.len()..].chars().next();
            let ends =
                |c: char| c.is_whitespace() || matches!(c, '.' | ',' | ';' | ':' | '!' | ')' | '(');
            before.is_none_or(ends) && after.is_none_or(ends)
        };
        let places = part.match_indices(KEEP_MARK).map(|it| it.0).filter(|it| is_word(*it));
        places.map(|it| start + it).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_removed_and_nothing_else() {
        for (line, expected) in [
            ("Never dive alone #keep", "Never dive alone"),
            ("#keep Never dive alone", "Never dive alone"),
            ("Never dive  alone (#keep)", "Never dive  alone"),
            ("Never dive #keep alone", "Never dive alone"),
            ("Never dive alone #keep.", "Never dive alone."),
            ("Write `#keep` into it", "Write `#keep` into it"),
            ("The tag #keeper stays", "The tag #keeper stays"),
            ("#keep", "#keep"),
        ] {
            assert_eq!(without_keep_mark(line), expected, "{line}");
        }
    }
}
