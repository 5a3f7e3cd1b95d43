//! Hits that say the same, folded for who reads them. A program gets each of them.

use std::collections::{BTreeSet, HashMap};

use super::SearchHit;

/// Texts that share so much of their words say the same, if their numbers are the same, in percent.
const SHARED_MIN: usize = 80;
/// Of shorter ones each word counts too much for that.
const WORDS_MIN: usize = 5;

/// What turns a text into its opposite. `don't` ends in the word `t`.
const NEGATIONS: [&str; 20] = [
    "not", "no", "never", "none", "nobody", "nothing", "without", "cannot", "t", "nicht", "kein",
    "keine", "nie", "ohne", "pas", "jamais", "sans", "sin", "nunca", "niet",
];

/// The words of a text, without the time of day at its start.
struct ComparedText {
    words: BTreeSet<String>,
    /// Those with a digit, and those that deny: another value is another thing.
    values: BTreeSet<String>,
}

impl ComparedText {
    fn of(text: &str) -> Self {
        let mut all: Vec<String> = text
            .to_lowercase()
            .split(|c: char| !(c.is_alphanumeric() || ".:,%".contains(c)))
            .map(|it| it.trim_matches(['.', ':', ',']).to_owned())
            .filter(|it| !it.is_empty())
            .collect();
        if all.first().is_some_and(|it| is_time(it)) {
            all.remove(0);
        }
        let weighs = |it: &&String| {
            it.contains(|c: char| c.is_numeric()) || NEGATIONS.contains(&it.as_str())
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

/// Returns whether two texts say the same, in these words or nearly.
pub(super) fn is_duplicate(one: &str, other: &str) -> bool {
    one.trim() == other.trim() || ComparedText::of(one).is_duplicate_of(&ComparedText::of(other))
}

/// Folds hits that say the same, in these words or nearly: the best of each, and how many more there are.
pub fn group_duplicates(hits: &[SearchHit]) -> Vec<(&SearchHit, usize)> {
    let mut at: HashMap<&str, usize> = HashMap::new();
    let mut kept: Vec<(&SearchHit, usize, ComparedText)> = Vec::new();
    for hit in hits {
        let text = hit.text.trim();
        let said = ComparedText::of(text);
        let like = || kept.iter().position(|(.., it)| it.is_duplicate_of(&said));
        if let Some(first) = at.get(text).copied().or_else(like) {
            kept[first].1 += 1;
        } else {
            at.insert(text, kept.len());
            kept.push((hit, 0, said));
        }
    }
    kept.into_iter().map(|(hit, more, _)| (hit, more)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, is_like: bool) {
        assert_eq!(ComparedText::of(a).is_duplicate_of(&ComparedText::of(b)), is_like, "{a} / {b}");
    }

    #[test]
    fn what_says_the_same_is_told_from_what_says_another_value() {
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
