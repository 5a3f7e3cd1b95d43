//! Finds words that make an item stronger than its lines, and reasons that the lines do not give.
//!
//! "The check failed" must not become "The check always fails", and no reason may be made up. A word of a group
//! of `strength.yaml` needs one of its group, or one that supports it, in the lines or in what is above them.
//! A reason needs a word in common with them. Pure.

use std::collections::HashSet;

use crate::text::{
    clauses::{ParsedWord, Separator, parse_sentences, span_text},
    lexicon::{CLAIMS, HEDGING, QUANTITIES, STRENGTH, StrengthGroup},
    scripts,
};

/// The words of lines, against which those of an item are compared.
pub(super) struct LineWords {
    sentences: Vec<SentenceWords>,
    starts: HashSet<String>,
}

/// The words of a sentence.
struct SentenceWords {
    /// Its words with one space around each.
    run: String,
    /// The first letters of those that say what it is about.
    starts: HashSet<String>,
    has_negation: bool,
    /// The first letters of the verb with which it orders something.
    ordered: Option<String>,
    /// Whether it is above a cited line, so that it may say something of any of them.
    is_context: bool,
}

impl SentenceWords {
    /// Returns whether it says that all others fail: `all other methods are blocked`.
    fn rules_out_others(&self) -> bool {
        let words: Vec<&str> = self.run.split_whitespace().collect();
        let names_others = words.windows(2).any(|it| {
            STRENGTH.others.contains(&&it.join(" ")[..]) || STRENGTH.others.contains(&it[0])
        });
        let fails = |it: &&&str| CLAIMS.failures.contains(*it);
        names_others && (self.has_negation || words.iter().any(|it| fails(&it)))
    }
}

impl LineWords {
    /// Returns the words of the cited lines and of what is above them.
    pub(super) fn of<'l>(
        lines: impl Iterator<Item = &'l str>,
        context: impl Iterator<Item = &'l str>,
    ) -> Self {
        let mut all = Self { sentences: Vec::new(), starts: HashSet::new() };
        let lines = lines.map(|it| (it, false)).chain(context.map(|it| (it, true)));
        for (line, is_context) in lines {
            let parts = identifier_parts(line);
            if !parts.is_empty() {
                all.sentences.push(SentenceWords {
                    run: format!(" {} ", parts.join("  ")),
                    starts: HashSet::new(),
                    has_negation: false,
                    ordered: None,
                    is_context: true,
                });
            }
            let mut before = HashSet::new();
            for sentence in parse_sentences(line) {
                let mut words: Vec<&str> = sentence.words.iter().map(|it| &it.text[..]).collect();
                let is_negation =
                    |it: &&&str| CLAIMS.negations.contains(*it) || it.ends_with("n't");
                let has_negation = words.iter().any(|it| is_negation(&it));
                all.starts.extend(words.iter().map(|it| start_of(it)));
                // `They go to the log`, `Fix this permanently`, not `That box fails`.
                let is_reference = |it: &&str| STRENGTH.back_references.contains(it);
                let refers_back = words.first().is_some_and(|it| ["it", "they"].contains(it))
                    || (words.len() <= 3 && words.get(1).is_some_and(is_reference));
                let own = content_starts(&sentence.words);
                let mut starts = own.clone();
                if refers_back && words.len() <= 8 {
                    starts.extend(before);
                }
                before = own;
                if sentence.text.contains('%') {
                    words.push("%");
                }
                // `Real orders, not adverts` are only real orders.
                let contrasts = |it: &ParsedWord| {
                    it.separator == Separator::Comma
                        && ["not", "nicht", "pas", "non"].contains(&&it.text[..])
                };
                let last = sentence.words.iter().rev().take(4);
                if last.clone().skip(1).any(contrasts) {
                    words.extend(["but", "not"]);
                }
                all.sentences.push(SentenceWords {
                    run: format!(" {} ", words.join("  ")),
                    starts,
                    has_negation,
                    ordered: ordered_verb(&sentence.words),
                    is_context,
                });
            }
        }
        all
    }

    /// Returns the first word of a text that makes it stronger than the lines.
    pub(super) fn strengthened<'t>(&self, text: &'t str) -> Option<&'t str> {
        /// With fewer words in common a sentence is about something else.
        const SHARED_MIN: usize = 2;
        let parsed = parse_sentences(text);
        parsed.iter().find_map(|sentence| {
            let words = &sentence.words;
            let starts = content_starts(words);
            let is_about = |it: &&SentenceWords| {
                let least = it.starts.len().clamp(1, SHARED_MIN);
                it.is_context || it.starts.intersection(&starts).count() >= least
            };
            let mut about: Vec<&SentenceWords> = self.sentences.iter().filter(is_about).collect();
            if about.iter().all(|it| it.is_context) {
                about = self.sentences.iter().collect();
            }
            let is_strong = |at: &usize, group: &StrengthGroup| {
                !words[*at].in_code
                    && !self.has_compound(text, words, *at)
                    && group.words.contains(&&words[*at].text[..])
                    && !is_cancelled(words, *at)
            };
            let unsupported = |group: &StrengthGroup| {
                let strong: Vec<usize> =
                    (0..words.len()).filter(|at| is_strong(at, group)).collect();
                let is_denied = || {
                    group.support.contains(&"not")
                        && self.sentences.iter().any(|it| it.has_negation)
                };
                let is_ordered = || group.words.contains(&"must") && self.orders(words);
                // Each of them needs one of its own.
                let count = |word: &&str| {
                    // A script without spaces has it within a run.
                    let run = if word.starts_with(scripts::is_spaceless) {
                        (*word).to_owned()
                    } else {
                        format!(" {} ", word.replace(' ', "  "))
                    };
                    about.iter().map(|it| it.run.matches(&run).count()).sum::<usize>()
                };
                let at = *strong.first()?;
                let is_beside = || {
                    group.words.contains(&"only")
                        && (self.has_beside(group, words, at)
                            || about.iter().any(|it| it.rules_out_others()))
                };
                let theirs: usize = group.words.iter().chain(group.support.iter()).map(count).sum();
                (strong.len() > theirs && !is_denied() && !is_ordered() && !is_beside())
                    .then_some(at)
            };
            let at = STRENGTH.groups.iter().filter_map(unsupported).min()?;
            Some(span_text(text, &words[at..=at]))
        })
    }

    /// Returns whether a word is the second part of a compound that the lines have, too: `read-only`.
    fn has_compound(&self, text: &str, words: &[ParsedWord], at: usize) -> bool {
        let Some(first) = at.checked_sub(1).map(|it| &words[it].text) else { return false };
        let pair = format!(" {first}  {} ", words[at].text);
        text[..words[at].start].ends_with('-')
            && self.sentences.iter().any(|it| it.run.contains(&pair))
    }

    /// Returns whether a line has a word of the group right before the word that follows it in the item, whatever else
    /// the line is about: `only on the Tugboat runtime` of `it is only on the Tugboat`.
    fn has_beside(&self, group: &StrengthGroup, words: &[ParsedWord], at: usize) -> bool {
        const REACH: usize = 4;
        let next = words[at + 1..].iter().take(REACH).find(|it| is_content(it));
        let Some(next) = next.map(|it| start_of(&it.text)) else { return false };
        self.sentences.iter().any(|it| {
            let run: Vec<&str> = it.run.split_whitespace().collect();
            run.iter().enumerate().any(|(from, word)| {
                let behind = run[from + 1..].iter().take(REACH);
                let mut content =
                    behind.filter(|it| it.chars().count() > 2 && !HEDGING.stop_words.contains(it));
                group.words.contains(word) && content.next().is_some_and(|it| start_of(it) == next)
            })
        })
    }

    /// Returns whether the lines order what must be done in a sentence of the item.
    fn orders(&self, words: &[ParsedWord]) -> bool {
        let mut duty = words.iter().skip_while(|it| it.text != "must").skip(1);
        let verb = duty.find(|it| it.text != "be").map(|it| start_of(&it.text));
        let about = content_starts(words);
        verb.is_some_and(|verb| {
            self.sentences.iter().any(|it| {
                let shared = it.starts.intersection(&about).filter(|it| **it != verb);
                it.ordered.as_ref() == Some(&verb) && shared.count() > 0
            })
        })
    }

    /// Returns the first reason in a text with which the lines have no word in common. Of lines in a script without
    /// spaces an item in another script has no word.
    pub(super) fn made_up_reason<'t>(&self, text: &'t str) -> Option<&'t str> {
        let is_spaceless = |it: &SentenceWords| scripts::is_mostly_spaceless(&it.run);
        if self.sentences.iter().any(is_spaceless) && !scripts::is_mostly_spaceless(text) {
            return None;
        }
        let parsed = parse_sentences(text);
        parsed.iter().find_map(|sentence| {
            let words = &sentence.words;
            (0..words.len()).find_map(|at| {
                let from = at + reason_length(&words[at..])?;
                let rest = &words[from..];
                let count =
                    rest.iter().take_while(|it| it.separator != Separator::ClauseMark).count();
                let reason = &rest[..count];
                let stems = content_starts(reason);
                let is_made_up = stems.len() >= 2 && stems.is_disjoint(&self.starts);
                is_made_up.then(|| span_text(text, &words[at..from + count]))
            })
        })
    }
}

/// Returns whether words around a word make it another one, or a number follows, which is checked by itself:
/// "only 6%", "all three".
fn is_cancelled(words: &[ParsedWord], at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |it| &words[it].text[..]);
    let word = |at: usize| words.get(at).map_or("", |it| &it.text[..]);
    let next = word(at + 1);
    let counts = is_number(next) || (STRENGTH.articles.contains(&next) && is_number(word(at + 2)));
    STRENGTH.cancelled_after.contains(&before)
        || STRENGTH.cancelled_before.contains(&next)
        || (STRENGTH.counting.contains(&word(at)) && counts)
}

/// Returns the first letters of the verb of an order: `Restart the pump`.
fn ordered_verb(words: &[ParsedWord]) -> Option<String> {
    let [verb, object, ..] = words else { return None };
    // `Restart of the pump` is a noun.
    let is_listed = STRENGTH.order_verbs.contains(&&verb.text[..])
        && !CLAIMS.of_words.contains(&&object.text[..])
        && !CLAIMS.to_be.contains(&&object.text[..])
        && !object.text.ends_with("ed")
        && !STRENGTH.past_forms.contains(&&object.text[..]);
    let is_order = (is_listed || STRENGTH.objects.contains(&&object.text[..]))
        && !verb.text.ends_with("ed")
        && !verb.text.ends_with('s')
        && !STRENGTH.past_forms.contains(&&verb.text[..]);
    is_order.then(|| start_of(&verb.text))
}

/// Returns the words within the identifiers of a line, in lower case: `get`, `all` and `pools` of `getAllPools`.
fn identifier_parts(line: &str) -> Vec<String> {
    let is_joint = |a: char, b: char| a.is_lowercase() && b.is_uppercase();
    let mut parts = Vec::new();
    for word in line.split(|c: char| !c.is_alphanumeric()) {
        let mut start = 0;
        for ((_, a), (at, b)) in word.char_indices().zip(word.char_indices().skip(1)) {
            if is_joint(a, b) {
                parts.push(word[start..at].to_lowercase());
                start = at;
            }
        }
        if start > 0 {
            parts.push(word[start..].to_lowercase());
        }
    }
    parts
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        || QUANTITIES.numbers.values().any(|it| it.contains_key(word))
}

/// Returns the number of words of the cue with which words begin, if it opens a reason.
fn reason_length(words: &[ParsedWord]) -> Option<usize> {
    let is_cue = |cue: &&&str| {
        let mut next = words.iter();
        cue.split(' ').all(|it| next.next().is_some_and(|word| word.text == it))
    };
    let cues = STRENGTH.reasons.iter().filter(is_cue);
    cues.map(|it| it.split(' ').count()).max()
}

fn is_content(word: &ParsedWord) -> bool {
    let text = &word.text[..];
    (text.chars().count() > 2 || text.bytes().any(|it| it.is_ascii_digit()))
        && !HEDGING.stop_words.contains(&text)
}

fn content_starts(words: &[ParsedWord]) -> HashSet<String> {
    words.iter().filter(|it| is_content(it)).map(|it| start_of(&it.text)).collect()
}

/// Returns the first letters of a word: an item may inflect it.
fn start_of(word: &str) -> String {
    const LETTERS: usize = 4;
    word.chars().take(LETTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, item: &str, expected: Option<&str>) {
        let words = LineWords::of([line].into_iter(), [].into_iter());
        assert_eq!(words.strengthened(item), expected, "{item:?} of {line:?}");
    }

    #[test]
    fn a_stronger_word_needs_one_of_its_kind_in_the_lines() {
        let line = "Ines runs the export on the small box.";
        check(line, "Ines runs the export only on the small box.", Some("only"));
        check(line, "Ines always runs the export on the small box.", Some("always"));
        check(line, "All exports run on the small box.", Some("All"));
        check(line, "The export must run on the small box.", Some("must"));
        check(line, "The best box for the export is small.", Some("best"));
        check(line, "The export runs permanently on the small box.", Some("permanently"));
        check(line, "Ines runs the export on her favourite box.", Some("favourite"));
        check(line, "Ines runs the export on the small box.", None);
        check("Der Export läuft.", "Der Export läuft immer.", Some("immer"));
        check("L'export marche.", "L'export marche toujours.", Some("toujours"));
        check("La copia funciona.", "La copia funciona siempre.", Some("siempre"));
    }

    #[test]
    fn a_word_that_means_the_same_supports_it() {
        check("Nothing runs there but the export.", "Only the export runs there.", None);
        check("No deploy on a Friday.", "Never deploy on a Friday.", None);
        check("Each file is hashed.", "Every file is hashed.", None);
        check("Each file is hashed. The list is long.", "Every list is long.", Some("Every"));
        check("The nightly job ran.", "The job runs every night.", None);
        check("Ines prefers tea.", "Tea is her favourite.", None);
        check("41% of it is parsing.", "Most of it is parsing.", None);
        check("- `const pools = getAllPools()`", "The fetch reads all pools.", None);
        check("Deploys need the approval of Ines.", "Deploy only with the approval of Ines.", None);
        check("Remaining fix: sign the key.", "The key must be signed.", None);
        check("Three days left.", "At most three days are left.", None);
        check("Dates are down to 6%.", "Dates are only 6%.", None);
        check("8 °C flags 25 rows.", "8 °C flags only the 25 rows.", None);
        check("It is a matter of a line.", "Only a line is needed.", None);
    }

    #[test]
    fn a_reason_must_be_in_the_lines() {
        let words = LineWords::of(
            ["We moved to SQLite, one file is easy to copy."].into_iter(),
            [].into_iter(),
        );
        let made_up = |it: &'static str| words.made_up_reason(it);
        assert_eq!(made_up("Moved to SQLite, because one file is easily copied"), None);
        let false_reason = "because Postgres licences got expensive";
        assert_eq!(
            made_up("Moved to SQLite, because Postgres licences got expensive; done"),
            Some(false_reason)
        );
        assert_eq!(
            made_up("Umzug auf SQLite, weil Lizenzen teuer waren"),
            Some("weil Lizenzen teuer waren")
        );
    }
}
