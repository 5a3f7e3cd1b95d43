//! Suggests the known word that is most similar to an unknown one. Pure.

/// Returns the candidate that `word` is probably a misspelling of.
///
/// Ignores case. A third of the letters may differ, at least one; of equally similar candidates the first wins.
pub(super) fn closest_match<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|it| (strsim::damerau_levenshtein(&word, &it.to_lowercase()), it))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, it)| it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expected: Option<&str>) {
        assert_eq!(closest_match(word, ["weekly", "monthly", "model", "on_change"]), expected);
    }

    #[test]
    fn only_similar_words_are_suggested() {
        check("wekly", Some("weekly"));
        check("Weekly", Some("weekly"));
        check("on-change", Some("on_change"));
        check("modle", Some("model"));
        check("banana", None);
        check("", None);
    }
}
