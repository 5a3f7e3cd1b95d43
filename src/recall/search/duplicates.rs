//! Groups hits that say the same, for people. Programs get each hit.

use std::collections::{BTreeSet, HashMap};

use super::SearchHit;
use crate::text::{lexicon::SEARCH, words};

/// The share of common words, in percent, from which two texts with the same numbers say the same.
const SHARED_MIN: usize = 80;
/// In shorter texts each word counts too much for that.
const WORDS_MIN: usize = 5;

/// The words of a text, without the time of day at its start.
struct ComparedText {
    words: BTreeSet<String>,
    /// Words with a digit, and negations: with another value a text says something else.
    values: BTreeSet<String>,
}

impl ComparedText {
    fn of(text: &str) -> Self {
        let mut all: Vec<String> = words::runs(&text.to_lowercase(), ".:,%")
            .map(|it| it.trim_matches(['.', ':', ',']).to_owned())
            .filter(|it| !it.is_empty())
            .collect();
        if all.first().is_some_and(|it| is_time(it)) {
            all.remove(0);
        }
        let weighs = |it: &&String| {
            it.contains(|c: char| c.is_numeric()) || SEARCH.negations.contains(&it.as_str())
        };
        let values = all.iter().filter(weighs).cloned();
        Self { values: values.collect(), words: all.into_iter().collect() }
    }

    fn is_duplicate_of(&self, other: &Self) -> bool {
        if self.words == other.words {
            return true;
        }
        let shared = self.words.intersection(&other.words).count();
        let all = self.words.len() + other.words.len() - shared;
        self.values == other.values && shared >= WORDS_MIN && shared * 100 >= SHARED_MIN * all
    }
}

/// Returns whether it is a time of day: `9:05`.
fn is_time(word: &str) -> bool {
    let is_number =
        |it: &str| (1..=2).contains(&it.len()) && it.bytes().all(|b| b.is_ascii_digit());
    word.split_once(':').is_some_and(|(hour, minute)| is_number(hour) && is_number(minute))
}

/// Returns whether two texts say the same, in the same or nearly the same words.
pub(super) fn is_duplicate(one: &str, other: &str) -> bool {
    one.trim() == other.trim() || ComparedText::of(one).is_duplicate_of(&ComparedText::of(other))
}

/// Groups hits that say the same: the best of each group, and how many more there are.
pub fn group_duplicates(hits: &[SearchHit]) -> Vec<(&SearchHit, usize)> {
    let mut at: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<(&SearchHit, usize, ComparedText)> = Vec::new();
    for hit in hits {
        let text = hit.text.trim();
        let compared = ComparedText::of(text);
        let like = || groups.iter().position(|(.., it)| it.is_duplicate_of(&compared));
        if let Some(first) = at.get(text).copied().or_else(like) {
            groups[first].1 += 1;
        } else {
            at.insert(text, groups.len());
            groups.push((hit, 0, compared));
        }
    }
    groups.into_iter().map(|(hit, more, _)| (hit, more)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, is_like: bool) {
        assert_eq!(ComparedText::of(a).is_duplicate_of(&ComparedText::of(b)), is_like, "{a} / {b}");
    }

    #[test]
    fn duplicates_differ_neither_in_values_nor_in_negation() {
        check("Disk at 34%", "disk at 34%.", true);
        check("09:12 Disk at 34%", "17:40 disk at 34%", true);
        check("Disk at 34%", "Disk at 35%", false);
        check(
            "The backup ran, all checks are green on the archive host",
            "The backup ran, all checks were green on the archive host",
            true,
        );
        check(
            "The backup of 12 May ran, all is green",
            "The backup of 13 May ran, all is green",
            false,
        );
        check("Ines prefers tea", "Ines prefers coffee", false);
        let yes = "The old pump at station four was replaced by Ines in the night";
        check(yes, &yes.replace("was replaced", "was not replaced"), false);
        check(yes, &yes.replace("was", "wasn't"), false);
    }
}
