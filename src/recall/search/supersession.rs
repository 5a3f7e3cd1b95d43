//! Orders what changed: of two hits that say the same with different values, and of a hit and a newer one that
//! says that it was done, stopped or exchanged, the older one is marked and comes second. It comes first if the
//! question asks for the former value; the order stays if it asks about a past time. If it says "currently" or
//! "now", the hits with all its other words are ordered by day, newest first.
//!
//! A value is a word with a digit. Two lines say the same when nearly all their other words are the
//! same, and there are enough of them, when the newer one says "now" and has all that the older one is about, or when
//! both have the same label. A newer line ends an older one if it has
//! a word such as `fixed` or `cancelled` and most content words of the older line, or if it is a
//! [`Replacement`] of what the older one plans.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{EXTERNAL, HitRef, SearchHit};
use crate::engine::extractive::{
    LABEL_VALUES_MAX, LabelledValue,
    replacement::{END_WORDS, OlderLine, Replacement, content_stems, name_stems},
};
use crate::text::{lexicon::SEARCH, words};

/// How many words besides the values two lines must share.
const SHARED_MIN: usize = 4;

/// Which share of all their words that must be.
const SHARE_MIN: f64 = 0.75;

/// How many content words a line must have to be replaced by one that says how it is now.
const PRESENT_SHARED_MIN: usize = 3;

/// How many content words a line must share with the one that ends it.
const ENDED_SHARED_MIN: usize = 3;

/// Which share of its content words that must be.
const ENDED_SHARE_MIN: f64 = 0.6;

/// How many other content words the newer line may have for each shared one: it may be about more.
const ENDED_OTHERS_MAX: usize = 2;

/// Which value a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValuePreference {
    Newer,
    Older,
    AsFound,
}

impl ValuePreference {
    fn of(question: &str) -> Self {
        let mut preference = Self::Newer;
        words::for_each_folded(question, |word| {
            if SEARCH.former_words.contains(&word) {
                preference = Self::Older;
            } else if SEARCH.past_words.contains(&word) && preference == Self::Newer {
                preference = Self::AsFound;
            }
        });
        if preference == Self::AsFound && names_present(question) {
            Self::Newer
        } else {
            preference
        }
    }
}

fn is_present_word(word: &str) -> bool {
    SEARCH.present_words.contains(&word)
}

/// Returns whether a question asks for the present state in a word: "currently", "jetzt".
fn names_present(question: &str) -> bool {
    let mut names = false;
    words::for_each_folded(question, |word| names |= is_present_word(word));
    names
}

/// Returns a question without the words that only say that it is about the present.
pub(super) fn without_present_words(question: &str) -> String {
    let kept = question.split_whitespace().filter(|it| !names_present(it));
    kept.collect::<Vec<_>>().join(" ")
}

/// The words of a line, separated from its values.
struct LineValues {
    words: BTreeSet<String>,
    values: BTreeSet<String>,
}

impl LineValues {
    fn of(text: &str) -> Self {
        let mut line = Self { words: BTreeSet::new(), values: BTreeSet::new() };
        // Neither the time at which a line was written is a value, nor what is in a reason: `port 9090, because 8080 …`.
        let reasons = [", because ", ", since ", ", weil ", ", da ", ", car "];
        let end = reasons.iter().filter_map(|it| text.find(it)).min().unwrap_or(text.len());
        let text = &text[..end];
        let text = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
        words::for_each_folded(text, |word| {
            let to = if word.contains(|c: char| c.is_ascii_digit()) {
                &mut line.values
            } else {
                &mut line.words
            };
            to.insert(word.to_owned());
        });
        line
    }

    /// Returns whether a newer line says the same with other values.
    fn conflicts_with(&self, other: &Self) -> bool {
        if self.values.is_empty() || other.values.is_empty() || self.values == other.values {
            return false;
        }
        // `Staging now runs on port 9191, after the move` of `Staging runs on port 8080`.
        let says_now = other.words.iter().any(|it| is_present_word(it))
            && !["also", "too", "auch", "aussi"].iter().any(|it| other.words.contains(*it));
        if says_now && self.values.is_disjoint(&other.values) {
            let (older, newer) = (self.content(), other.content());
            if older.len() >= PRESENT_SHARED_MIN && older.is_subset(&newer) {
                return true;
            }
        }
        let shared = self.words.intersection(&other.words).count();
        let all = self.words.union(&other.words).count();
        shared >= SHARED_MIN && share_of(shared, all) >= SHARE_MIN
    }

    /// Returns whether a newer line says that what this line says was done, stopped, or given up.
    fn is_ended_by(&self, newer: &Self) -> bool {
        let is_open = || self.words.iter().any(|it| END_WORDS.open.contains(it));
        let is_ended = |line: &Self| line.words.iter().any(|it| END_WORDS.retired.contains(it));
        let is_done = |line: &Self| line.words.iter().any(|it| END_WORDS.done.contains(it));
        let ends = is_ended(newer) || (is_done(newer) && is_open());
        if !ends
            || is_ended(self)
            || is_done(self)
            || !self.values.is_subset(&newer.values)
            || newer.words.iter().any(|it| END_WORDS.not_done.contains(it))
        {
            return false;
        }
        let (older, newer) = (self.content(), newer.content());
        let shared = older.intersection(&newer).count();
        shared >= ENDED_SHARED_MIN
            && share_of(shared, older.len()) >= ENDED_SHARE_MIN
            && newer.len() - shared <= ENDED_OTHERS_MAX * shared
    }

    fn content(&self) -> BTreeSet<String> {
        content_stems(self.words.iter().map(|it| &it[..]))
    }
}

/// Returns whether a newer line says that what an older one says was done, stopped, or given up.
pub(in crate::recall) fn is_ended_by(older: &str, newer: &str) -> bool {
    LineValues::of(older).is_ended_by(&LineValues::of(newer))
}

#[expect(clippy::cast_precision_loss, reason = "words of a line")]
fn share_of(part: usize, all: usize) -> f64 {
    part as f64 / all.max(1) as f64
}

/// What the files of hits say beyond their lines.
pub(super) trait HitSurroundings {
    /// Returns the words of the nearest heading above a hit, in lower case; empty without one.
    fn title(&mut self, hit: &SearchHit) -> String;

    /// Returns whether few logs have a word.
    fn is_rare(&mut self, word: &str) -> bool;
}

/// Marks superseded hits, and puts those first that the question asks for. `is_dated` says that it
/// names days, so it asks about a past time.
pub(super) fn mark_superseded(
    hits: &mut [SearchHit],
    question: &str,
    is_dated: bool,
    surroundings: &mut dyn HitSurroundings,
) {
    let lines: Vec<LineValues> = hits.iter().map(|it| LineValues::of(&it.text)).collect();
    let labels = changed_labels(hits, surroundings);
    let replacements: Vec<Option<Replacement>> =
        hits.iter().map(|it| Replacement::of(&it.text, it.date)).collect();
    for older in 0..hits.len() {
        let mut is_superseded_by = |newer: usize| {
            let (old, new) = (&hits[older], &hits[newer]);
            // What others say does not decide about the root's own words.
            if new.origin == EXTERNAL && old.origin != EXTERNAL {
                return false;
            }
            let is_later_day = new.date > old.date;
            // A correction is mostly written on the same day.
            let is_later_line = new.path == old.path && new.line > old.line;
            let is_replaced = |it: &Replacement| {
                if !(is_later_day || (is_later_line && it.is_correction)) {
                    return false;
                }
                let names = &name_stems(&old.text) | &name_stems(&new.text);
                it.ends(&OlderLine::of(&old.text, old.date), |it| {
                    names.contains(it) && surroundings.is_rare(it)
                })
            };
            (is_later_day
                && (lines[older].conflicts_with(&lines[newer])
                    || lines[older].is_ended_by(&lines[newer])
                    || labels.contains(&(older, newer))))
                || replacements[newer].as_ref().is_some_and(is_replaced)
        };
        // Of several hits of that day the best one.
        let newer = (0..hits.len())
            .rev()
            .filter(|&it| is_superseded_by(it))
            .max_by_key(|&it| hits[it].date);
        hits[older].superseded_by =
            newer.map(|it| HitRef { path: hits[it].path.clone(), line: hits[it].line });
    }
    reorder(hits, question, is_dated);
    if !is_dated && ValuePreference::of(question) == ValuePreference::Newer {
        newest_first(hits, question);
    }
}

/// Orders the hits that answer a question about the present by their days, the newest first, in the places that
/// they have. They have all content words of the question. The label of a state, such as `version`, may be left
/// out: then the hit has a value.
fn newest_first(hits: &mut [SearchHit], question: &str) {
    if !names_present(question) {
        return;
    }
    let asked = LineValues::of(&without_present_words(question));
    let (labels, names): (BTreeSet<&str>, BTreeSet<&str>) =
        asked.words.iter().map(String::as_str).partition(|it| SEARCH.state_labels.contains(it));
    let (labels, mut names) = (content_stems(labels.into_iter()), content_stems(names.into_iter()));
    names.extend(asked.values);
    if names.is_empty() {
        return;
    }
    let answers = |hit: &SearchHit| {
        let line = LineValues::of(&hit.text);
        let stems = &line.content() | &line.values;
        let has_value = labels.is_empty() || !line.values.is_empty() || labels.is_subset(&stems);
        hit.origin != EXTERNAL && has_value && names.is_subset(&stems)
    };
    let places: Vec<usize> = (0..hits.len()).filter(|&it| answers(&hits[it])).collect();
    let mut newest: Vec<SearchHit> = places.iter().map(|&it| hits[it].clone()).collect();
    newest.sort_by_key(|it| std::cmp::Reverse(it.date));
    for (place, hit) in places.into_iter().zip(newest) {
        hits[place] = hit;
    }
}

/// Returns the pairs of hits, the older one first, with the same label below the same title and another value. A label
/// with many values is that of a series, whose values belong to their days.
fn changed_labels(
    hits: &[SearchHit],
    surroundings: &mut dyn HitSurroundings,
) -> HashSet<(usize, usize)> {
    let mut by_label: HashMap<String, Vec<(usize, LabelledValue)>> = HashMap::new();
    for (at, hit) in hits.iter().enumerate() {
        if let Some(found) = LabelledValue::of_line(&hit.text) {
            by_label.entry(found.label.clone()).or_default().push((at, found));
        }
    }
    let mut changed = HashSet::new();
    for same in by_label.values().filter(|it| it.len() > 1) {
        let titles: Vec<String> = same.iter().map(|it| surroundings.title(&hits[it.0])).collect();
        let is_about_same = |a: usize, b: usize| {
            // `Gateway port` says what it is the port of, `Port` does not.
            (same[a].1.is_specific && shares_word(&titles[a], &titles[b]))
                || (!titles[a].is_empty() && titles[a] == titles[b])
        };
        for a in 0..same.len() {
            let group: Vec<usize> = (0..same.len()).filter(|&b| is_about_same(a, b)).collect();
            let mut values: Vec<&LabelledValue> = vec![&same[a].1];
            for &b in &group {
                if values.len() > LABEL_VALUES_MAX {
                    break;
                }
                if !values.iter().any(|it| it.has_same_value(&same[b].1)) {
                    values.push(&same[b].1);
                }
            }
            if values.len() <= LABEL_VALUES_MAX {
                let other = group.into_iter().filter(|&b| same[a].1.contradicts(&same[b].1));
                changed.extend(other.map(|b| (same[a].0, same[b].0)));
            }
        }
    }
    changed
}

/// Returns whether two titles share a word that says something, or one of them says nothing.
fn shares_word(a: &str, b: &str) -> bool {
    let (a, b) = (words::long_words(a), words::long_words(b));
    a.is_empty() || b.is_empty() || !a.is_disjoint(&b)
}

/// Puts those hits first that the question asks for.
fn reorder(hits: &mut [SearchHit], question: &str, is_dated: bool) {
    let preference =
        if is_dated { ValuePreference::AsFound } else { ValuePreference::of(question) };
    let place = |hits: &[SearchHit], of: &HitRef| {
        hits.iter().position(|it| it.path == of.path && it.line == of.line)
    };
    // The wanted hit takes the place of the first that is not wanted.
    for at in 0..hits.len() {
        let from = match preference {
            ValuePreference::AsFound => None,
            ValuePreference::Newer => {
                hits[at].superseded_by.as_ref().and_then(|it| place(hits, it))
            }
            ValuePreference::Older => {
                let newer = HitRef { path: hits[at].path.clone(), line: hits[at].line };
                let older = (at..hits.len())
                    .rev()
                    .filter(|&it| hits[it].superseded_by.as_ref() == Some(&newer));
                older.min_by_key(|&it| hits[it].date)
            }
        };
        if let Some(from) = from.filter(|it| *it > at) {
            hits[at..=from].rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The title of a hit is the line before it.
    struct Titles;

    impl HitSurroundings for Titles {
        fn title(&mut self, hit: &SearchHit) -> String {
            hit.before.first().cloned().unwrap_or_default()
        }

        fn is_rare(&mut self, word: &str) -> bool {
            word != "harbour"
        }
    }

    fn mark(hits: &mut [SearchHit], question: &str, is_dated: bool) {
        mark_superseded(hits, question, is_dated, &mut Titles);
    }

    fn hit(date: &str, text: &str) -> SearchHit {
        SearchHit {
            path: format!("memory/{date}.md"),
            line: 3,
            date: date.parse().unwrap(),
            tier: "daily",
            origin: "agent",
            score: 1.0,
            found_by: vec!["words"],
            text: text.to_owned(),
            before: Vec::new(),
            after: Vec::new(),
            via: Vec::new(),
            superseded_by: None,
        }
    }

    #[test]
    fn what_is_so_now_replaces_what_was_so() {
        let of = |older: &str, newer: &str| {
            let mut hits = [hit("2026-04-01", older), hit("2026-04-09", newer)];
            mark(&mut hits, "which port does staging run on", false);
            hits[1].superseded_by.is_some()
        };
        let older = "Staging runs on port 8080";
        assert!(of(older, "Staging now runs on port 9191, since the old box was sold"));
        assert!(!of(older, "Priya runs the tests of staging on 9191 pages"));
        assert!(of(
            "Router at the cabin: admin page on port 8080",
            "Router at the cabin: admin page on port 9090, because 8080 collided with the camera",
        ));
        assert!(!of(older, "The admin page now runs on port 9191"));
        assert!(!of(older, "Staging still runs on port 8080, now with 2 workers on it"));
    }

    #[test]
    fn the_newer_value_comes_first_for_a_question_about_the_present() {
        let all = [
            hit("2026-03-01", "The retry limit of the importer is 3 attempts"),
            hit("2026-03-02", "The importer writes to staging"),
            hit("2026-03-09", "The retry limit of the importer is 5 attempts"),
        ];
        let order = |question: &str, is_dated| {
            let mut hits = all.clone();
            mark(&mut hits, question, is_dated);
            let of = |it: &SearchHit| (it.date.to_string(), it.superseded_by.is_some());
            hits.iter().map(of).collect::<Vec<_>>()
        };
        let old = |it: &str| (it.to_owned(), true);
        let new = |it: &str| (it.to_owned(), false);
        let as_found = [old("2026-03-01"), new("2026-03-02"), new("2026-03-09")];
        let now = [new("2026-03-09"), old("2026-03-01"), new("2026-03-02")];
        assert_eq!(order("What is the retry limit now?", false), now);
        assert_eq!(order("retry limit", false), now);
        assert_eq!(order("What was the retry limit?", false), as_found);
        assert_eq!(order("What is the retry limit of March 1?", true), as_found);
    }

    #[test]
    fn a_question_about_the_present_puts_the_newest_answer_first() {
        let all = [
            hit("2026-03-01", "The PHP version on the board is 8.1"),
            hit("2026-03-02", "Version 2 of the flyer printed"),
            hit("2026-03-09", "Moved the board to PHP 8.3"),
            hit("2026-03-12", "Wrote to the PHP meetup"),
        ];
        let first = |question: &str, is_dated| {
            let mut hits = all.clone();
            mark(&mut hits, question, is_dated);
            hits[0].date.to_string()
        };
        for question in ["PHP version currently", "aktuelle PHP Version", "what was and is PHP now"]
        {
            let newest = if question.contains("ersion") { "2026-03-09" } else { "2026-03-12" };
            assert_eq!(first(question, false), newest, "{question}");
        }
        assert_eq!(first("PHP version", false), "2026-03-01");
        assert_eq!(first("PHP version currently", true), "2026-03-01");
        assert_eq!(without_present_words("PHP version currently?"), "PHP version");
    }

    #[test]
    fn a_line_that_ends_another_comes_before_it() {
        for (older, newer) in [
            ("The export of the tide tables fails at night", "Fixed the export of the tide tables"),
            ("Waiting for the licence of the depth sensor", "Licence of the depth sensor renewed"),
            (
                "The mirror in Brest copies every hour",
                "Disabled the hourly mirror in Brest, it copies nothing",
            ),
        ] {
            let mut hits = [hit("2026-03-01", older), hit("2026-03-05", newer)];
            mark(&mut hits, "what about it", false);
            assert_eq!(hits[0].text, newer);
            assert!(hits[1].superseded_by.is_some() && hits[0].superseded_by.is_none(), "{older}");
        }
        for (older, newer) in [
            (
                "The export of the tide tables fails at night",
                "The export of the tide tables is not fixed yet",
            ),
            ("The export of the tide tables fails at night", "Fixed the clock in the hall"),
            ("Fixed the export of the tide tables", "The export of the tide tables fails again"),
            (
                "Invoice 2026-014 of the pier house is open",
                "Invoice 2026-013 of the pier house paid",
            ),
            ("The backup server runs in the cellar", "Fixed the backup server in the cellar"),
            (
                "The export of the tide tables fails at night",
                "The export of the tide tables isn't fixed",
            ),
        ] {
            let mut hits = [hit("2026-03-01", older), hit("2026-03-05", newer)];
            mark(&mut hits, "what about it", false);
            assert!(hits.iter().all(|it| it.superseded_by.is_none()), "{older} / {newer}");
        }
    }

    #[test]
    fn different_statements_supersede_nothing() {
        for (a, b) in [
            ("The retry limit of the importer is 3", "The size limit of the exporter is 5"),
            ("The retry limit of the importer is 3", "The retry limit of the importer is 3"),
            ("10:02 ran the whole suite again", "11:45 ran the whole suite again"),
            ("port 80", "port 443"),
        ] {
            let mut hits = [hit("2026-03-01", a), hit("2026-03-02", b)];
            mark(&mut hits, "what is it", false);
            assert!(hits.iter().all(|it| it.superseded_by.is_none()), "{a} {b}");
        }
    }

    #[test]
    fn another_value_of_the_same_label_supersedes_the_older_one() {
        let check = |older: (&str, &str), newer: (&str, &str), is_superseded: bool| {
            let under = |day: &str, (title, text): (&str, &str)| SearchHit {
                before: vec![title.to_owned()],
                ..hit(day, text)
            };
            let mut hits = [under("2026-03-01", older), under("2026-03-05", newer)];
            mark(&mut hits, "what about it", false);
            let marked = hits.iter().filter(|it| it.superseded_by.is_some()).count();
            assert_eq!(marked, usize::from(is_superseded), "{older:?} {newer:?}");
            let first = if is_superseded { newer } else { older };
            assert_eq!(hits[0].text, first.1);
        };
        check(("gateway", "Port: 8080"), ("gateway", "**Port:** 9090"), true);
        check(("", "**Default model:** opus"), ("", "Default model: sonnet"), true);
        check(("", "Heartbeat interval — 30m"), ("", "Heartbeat interval — 60m"), true);
        check(("", "| Gateway port | 8080 |"), ("", "| Gateway port | 9090 |"), true);
        check(("gateway", "Port: 8080"), ("board", "Port: 9090"), false);
        check(("importer", "Retry limit: 3"), ("exporter", "Retry limit: 5"), false);
        check(("", "Port: 8080"), ("", "Port: 9090"), false);
        check(("gateway", "Status: open"), ("gateway", "Status: closed"), false);
        check(("gateway", "Total: 12"), ("gateway", "Total: 15"), false);
        check(("gateway", "Port: 8080"), ("gateway", "Port: 8080 (nginx)"), false);
    }

    #[test]
    fn external_text_supersedes_no_own_words() {
        let own = hit("2026-03-01", "The retry limit of the importer is 3 attempts");
        let quoted = hit("2026-03-05", "The retry limit of the importer is 5 attempts");
        let quoted = SearchHit { origin: EXTERNAL, ..quoted };
        let mut hits = [own, quoted];
        mark(&mut hits, "retry limit", false);
        assert!(hits.iter().all(|it| it.superseded_by.is_none()));
    }

    #[test]
    fn a_label_with_many_values_is_that_of_a_series() {
        let mut hits = ["3", "5", "8", "9"].map(|it| {
            let day = format!("2026-03-0{it}");
            hit(&day, &format!("Open orders: {it}"))
        });
        mark(&mut hits, "orders", false);
        assert!(hits.iter().all(|it| it.superseded_by.is_none()));
    }

    #[test]
    fn a_decision_comes_after_the_line_that_says_that_it_was_replaced() {
        let mut hits = [
            hit("2026-03-01", "Decision: the tide board is drawn with LeafletX"),
            hit("2026-03-05", "LeafletX abandoned, forked OpenTide instead"),
        ];
        mark(&mut hits, "what draws the board", false);
        assert!(hits[0].text.starts_with("LeafletX") && hits[1].superseded_by.is_some());
        // What both share is in most logs.
        let mut hits = [
            hit("2026-03-01", "Decision: the crane at the Harbour is painted in May"),
            hit("2026-03-05", "Removed Harbour photos"),
        ];
        mark(&mut hits, "what about it", false);
        assert!(hits[1].superseded_by.is_none() && hits[0].superseded_by.is_none());
    }
}
