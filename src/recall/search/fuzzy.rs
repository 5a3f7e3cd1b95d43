//! Finds similar spellings if nothing matches exactly: parts of words, and words with one or two typos.
//! Reads all logs.

use std::collections::HashMap;

use super::{
    EXTERNAL, Query, SearchHit, SearchOptions, index::indexed_file, snippets::SnippetReader,
};
use crate::{
    memory::address::Stem,
    parallel,
    store::fs::{
        inventory::Inventory,
        vault::{Vault, VaultError},
    },
    text::{lexicon::SEARCH, words},
};

/// How its hits were found.
pub(super) const FOUND_BY: &str = "spelling";

/// From how many letters one typo is allowed, and two.
const ONE_TYPO_CHARS_MIN: usize = 5;
const TWO_TYPOS_CHARS_MIN: usize = 9;

/// How many words of a query count: as many as a mask has bits.
const WORDS_MAX: usize = 64;

/// Finds lines that contain more than half of the words of a query in a similar spelling, best first.
pub(super) fn find<'a>(
    vault: &Vault,
    inventory: &Inventory,
    query: &Query,
    how: SearchOptions,
    logs: impl Iterator<Item = (Stem, &'a str)>,
) -> Result<Vec<SearchHit>, VaultError> {
    let mut typed = Vec::new();
    words::for_each_folded(&query.words, |word| typed.push(word.to_owned()));
    // A line that is only similar to "what is the" answers nothing.
    if typed.iter().any(|it| !SEARCH.stop_words.contains(&&it[..])) {
        typed.retain(|it| !SEARCH.stop_words.contains(&&it[..]));
    }
    typed.dedup();
    if typed.is_empty() || !query.tiers.iter().all(|it| it == "daily" || it == "session") {
        return Ok(Vec::new());
    }
    let selected = |stem: &Stem| {
        let tier = if stem.is_session() { "session" } else { "daily" };
        let is_of_tier = query.tiers.is_empty() || query.tiers.iter().any(|it| it == tier);
        is_of_tier && query.includes_day(stem.date())
    };
    let logs: Vec<(Stem, &str)> = logs.filter(|it| selected(&it.0)).collect();
    let parts: Vec<&[(Stem, &str)]> = logs.chunks(LOGS_PER_TASK).collect();
    let mut best = Vec::new();
    for found in parallel::map(&parts, |part| matches_in(vault, part, &typed)) {
        best.extend(found?);
    }
    best.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
    let most = best.first().map_or(0, |it| it.0);
    if most as usize * 2 <= typed.len().min(WORDS_MAX) {
        return Ok(Vec::new());
    }
    let mut texts = SnippetReader::new(vault, inventory);
    // Own words come first, so that external text takes no place of theirs.
    let (mut hits, mut external) = (Vec::new(), Vec::new());
    for (found, (stem, path), number) in best.into_iter().take_while(|it| it.0 == most) {
        if hits.len() == how.candidates_max() {
            break;
        }
        let Some(log) = texts.log(stem)? else { continue };
        let is_external = log.origin(number) == Some(EXTERNAL);
        // However many lines of external text match, no more of them are shown.
        if is_external && external.len() == how.candidates_max() {
            continue;
        }
        let Some(line) = log.line(number, how.context) else { continue };
        let of_project = query
            .project
            .as_ref()
            .is_none_or(|it| path.to_lowercase().contains(it) || line.is_under_heading(it));
        if !(of_project && query.kind.is_none() && query.matches_text(&line.text)) {
            continue;
        }
        // The match may have been in text that is masked.
        let mut shown = 0;
        words::for_each_folded(&line.text, |word| shown |= matching_words(&typed, word));
        if shown.count_ones() < found {
            continue;
        }
        #[expect(clippy::cast_precision_loss, reason = "words of a query")]
        let score = 0.1 * f64::from(found) / typed.len() as f64;
        let hit = SearchHit {
            path: (*path).to_owned(),
            line: number,
            date: stem.date(),
            tier: indexed_file::TIERS[usize::from(stem.is_session())],
            origin: line.origin,
            score,
            found_by: vec![FOUND_BY],
            text: line.text,
            before: line.before,
            after: line.after,
            via: Vec::new(),
            superseded_by: None,
        };
        (if is_external { &mut external } else { &mut hits }).push(hit);
    }
    hits.extend(external);
    hits.truncate(how.candidates_max());
    Ok(hits)
}

/// How many query words match, and where: the log's name and path, the line.
type FuzzyMatch<'a> = (u32, &'a (Stem, &'a str), u32);

/// How many logs one task searches.
const LOGS_PER_TASK: usize = 64;

/// Returns the lines of some logs with similar words: how many words, and where.
fn matches_in<'a>(
    vault: &Vault,
    logs: &'a [(Stem, &'a str)],
    typed: &[String],
) -> Result<Vec<FuzzyMatch<'a>>, VaultError> {
    let mut near: HashMap<String, u64> = HashMap::new();
    let mut best = Vec::new();
    for file in logs {
        let Some(log) = vault.read_log(&file.0)? else { continue };
        for (number, text, _) in log.lines() {
            let mut found = 0_u64;
            words::for_each_folded(text, |word| {
                found |= near.get(word).copied().unwrap_or_else(|| {
                    let which = matching_words(typed, word);
                    near.insert(word.to_owned(), which);
                    which
                });
            });
            if found != 0 {
                best.push((found.count_ones(), file, number));
            }
        }
    }
    Ok(best)
}

/// Returns which query words a word is similar to, as bits.
fn matching_words(typed: &[String], word: &str) -> u64 {
    let near =
        typed.iter().take(WORDS_MAX).enumerate().filter(|(_, typed)| is_similar(typed, word));
    near.fold(0, |all, (at, _)| all | 1 << at)
}

fn is_similar(typed: &str, word: &str) -> bool {
    let letters = typed.chars().count();
    if word == typed || (letters >= 3 && word.contains(typed)) {
        return true;
    }
    let wrong = match letters {
        ..ONE_TYPO_CHARS_MIN => return false,
        ONE_TYPO_CHARS_MIN..TWO_TYPOS_CHARS_MIN => 1,
        _ => 2,
    };
    // A number with another digit is another number.
    !typed.contains(|c: char| c.is_ascii_digit()) && edit_distance(typed, word, wrong) <= wrong
}

/// Counts deleted, inserted, changed and swapped letters; more than `most` count as `most + 1`.
fn edit_distance(a: &str, b: &str, most: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most {
        return most + 1;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &of_a) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &of_b) in b.iter().enumerate() {
            let changed = last[j] + usize::from(of_a != of_b);
            let mut fewest = changed.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && of_a == b[j - 1] && a[i - 1] == of_b {
                fewest = fewest.min(before_last[j - 1] + 1);
            }
            row.push(fewest);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()].min(most + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_one_or_two_typos_are_similar() {
        for (typed, word, expected) in [
            ("importr", "importer", true),
            ("improter", "importer", true),
            ("stagign", "staging", true),
            ("deduplicaton", "deduplication", true),
            ("port", "importer", true),
            ("cat", "car", false),
            ("v2024", "v2025", false),
            ("importer", "exporter", false),
        ] {
            assert_eq!(is_similar(typed, word), expected, "{typed} {word}");
        }
    }
}
