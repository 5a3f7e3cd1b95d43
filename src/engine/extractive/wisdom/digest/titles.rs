//! What the titles and labels of a log say about the statements below them.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::LazyLock,
};

use crate::{
    engine::extractive::{
        cue_phrases,
        parsed_log::{LogStatement, ParsedLog},
        sections::{self, StatementClass, is_attribute, normalized_label},
        statements::{labels::split_label, word_list::WordList},
    },
    text::{
        lexicon::{ANNOTATIONS, CUES, SEARCH, SECTIONS, WISDOM},
        scripts,
    },
};

/// The longest title that is looked up, in bytes: longer ones are sentences.
const TITLE_BYTES_MAX: usize = 60;

fn is_in(title: &str, words: &[&'static str]) -> bool {
    title.len() <= TITLE_BYTES_MAX && words.contains(&&*normalized_label(title))
}

/// Returns whether a title says nothing without the one above it: `Options`, `Status`.
pub(super) fn is_generic(title: &str) -> bool {
    static GENERIC: LazyLock<HashSet<&str>> =
        LazyLock::new(|| WISDOM.generic_titles.iter().copied().collect());
    title.len() <= TITLE_BYTES_MAX && {
        let label = normalized_label(title);
        GENERIC.contains(&*label) || is_attribute(&label) || is_former_label(&label)
    }
}

fn is_former_label(label: &str) -> bool {
    WISDOM.former_titles.contains(&label)
}

/// Returns the titles of a statement: its label, what leads it in, and the headings above it.
fn titles<'a>(page: &'a ParsedLog, statement: &'a LogStatement) -> impl Iterator<Item = &'a str> {
    let above = std::iter::successors(statement.heading, |&it| page.heads[it].parent);
    let heads = statement.lead.into_iter().chain(above).map(|it| &*page.heads[it].text);
    std::iter::once(statement.label_text()).chain(heads)
}

/// Returns whether a heading above a statement has a word that begins with one of these.
pub(super) fn has_word(page: &ParsedLog, statement: &LogStatement, words: &[&'static str]) -> bool {
    let above = std::iter::successors(statement.heading, |&it| page.heads[it].parent);
    above.map(|it| &page.heads[it].text).any(|it| names_word(it, words))
}

/// Returns whether a statement is of a round of checks, by its label or the titles nearest to it: `Heartbeat`.
pub(super) fn is_round(page: &ParsedLog, statement: &LogStatement) -> bool {
    titles(page, statement).take(3).any(|it| names_word(it, &WISDOM.round_words))
}

/// Returns whether a statement is a remark on a change of code: its life ends with the change.
pub(super) fn is_review(page: &ParsedLog, statement: &LogStatement) -> bool {
    titles(page, statement).take(3).any(|it| names_word(it, &WISDOM.review_words))
}

/// Returns whether the label of a statement or the title above it says that it is a report of a moment: `Status`.
pub(super) fn is_report(page: &ParsedLog, statement: &LogStatement) -> bool {
    titles(page, statement).take(2).any(|it| names_word(it, &WISDOM.report_words))
}

/// Returns whether a text has a word that begins with one of these.
pub(super) fn names_word(title: &str, words: &[&'static str]) -> bool {
    let title = title.to_lowercase();
    let mut before = None;
    for (at, c) in title.char_indices() {
        let is_inside = before.replace(c).is_some_and(char::is_alphanumeric);
        if (!is_inside || scripts::is_spaceless(c))
            && words.iter().any(|it| title[at..].starts_with(it))
        {
            return true;
        }
    }
    false
}

/// Returns whether an item that looks open is done, by a sign such as `✅`, or by its label or title: `Fix`, `Done`.
pub(super) fn is_finished(page: &ParsedLog, statement: &LogStatement, text: &str) -> bool {
    let has_mark =
        |it: &str| !it.is_ascii() && SECTIONS.state_marks.done.iter().any(|mark| it.contains(mark));
    has_mark(text)
        || titles(page, statement).take(2).any(|title| {
            let label = normalized_label(title);
            let mut words = label.split(' ');
            has_mark(title) || words.any(|it| WISDOM.done_words.contains(&it))
        })
}

/// Returns the indices of the statements of a page that say what was wrong, of which the next one of the same section
/// with such a label says what mended it.
pub(super) fn cured_problems(page: &ParsedLog) -> BTreeSet<usize> {
    let mut last = HashMap::<usize, usize>::new();
    let mut cured = BTreeSet::new();
    for (at, statement) in page.statements.iter().enumerate() {
        let Some(heading) = statement.heading.filter(|_| statement.label > 0) else { continue };
        if is_in(statement.label_text(), &WISDOM.problem_labels) {
            last.insert(heading, at);
        } else if is_in(statement.label_text(), &WISDOM.cure_labels)
            && let Some(problem) = last.remove(&heading)
            && !leaves_open(&statement.text[statement.label..])
        {
            cured.insert(problem);
        }
    }
    cured
}

/// Returns whether a text says that something does not work, by its label or its words.
pub(super) fn complains(text: &str, words: &WordList) -> bool {
    let label = split_label(text).map(|it| it.0);
    label.is_some_and(|it| is_in(it, &WISDOM.problem_labels))
        || words.iter().any(|it| SEARCH.failure_words.contains(&it))
}

/// Returns whether a text says that something works since: `Fixed the lock`, `the lock closes again`, `no longer leaks`.
pub(super) fn mends(words: &WordList) -> bool {
    let is_done = |it: &str| ANNOTATIONS.done.contains(&it) || WISDOM.done_words.contains(&it);
    let ends_it = |at: usize| {
        let next = words.get(at + 1).unwrap_or_default();
        matches!((words.get(at).unwrap_or_default(), next), ("no", "longer") | ("nicht", "mehr"))
    };
    let is_over = (0..words.len()).any(ends_it);
    let is_denied = !is_over && words.iter().any(|it| SEARCH.negations.contains(&it));
    let fails = || words.iter().any(|it| SEARCH.failure_words.contains(&it));
    // `Closes again`, and not `ran the backup again`.
    let recovers = |at: usize| {
        let verb = at.checked_sub(1).and_then(|it| words.get(it)).unwrap_or_default();
        match words.get(at) {
            Some("again") => verb.ends_with('s'),
            Some("wieder") => verb.ends_with('t'),
            // `It prints all labels now`
            Some("now" | "jetzt") => at + 1 == words.len(),
            _ => false,
        }
    };
    let is_mended = || words.iter().any(is_done) || (0..words.len()).any(recovers);
    !is_denied && (words.get(0).is_some_and(is_done) || is_over || !fails() && is_mended())
}

/// Returns whether what should be a solution is none yet: `Fix: none yet`, `Resolution: pending`.
fn leaves_open(text: &str) -> bool {
    let words = WordList::of(text);
    words.iter().any(|it| CUES.negations.contains(&it) || WISDOM.unreal_words.contains(&it))
        || words.has(cue_phrases::ROUTINE)
        || sections::class_of_words(text, false) == StatementClass::Open
}

/// Returns whether a statement is about what is over or is not done.
pub(super) fn is_former(page: &ParsedLog, statement: &LogStatement) -> bool {
    titles(page, statement).any(|it| is_in(it, &WISDOM.former_titles))
        || titles(page, statement).skip(1).take(2).any(|it| names_word(it, &WISDOM.removed_words))
}

/// Returns whether a statement is only considered or asked, or about what is gone, by its label or the titles nearest to
/// it: `Integration ideas`, `What was lost`.
pub(super) fn is_unsettled(page: &ParsedLog, statement: &LogStatement) -> bool {
    titles(page, statement).take(2).any(|title| {
        title.len() <= TITLE_BYTES_MAX && {
            let label = normalized_label(title);
            let has = |it: Option<&str>| it.is_some_and(|it| WISDOM.unsettled_words.contains(&it));
            is_former_label(&label) || has(label.split(' ').next()) || has(label.rsplit(' ').next())
        }
    })
}

/// Returns whether a page collects what others posted: several titles name their accounts, `(@name)`, and several lines
/// link to posts.
pub(super) fn collects_posts(page: &ParsedLog) -> bool {
    const POSTS_MIN: usize = 3;
    let titles = page.heads.iter().filter(|it| it.text.contains("(@")).count();
    let links = || page.statements.iter().filter(|it| it.text.contains("/status/")).count();
    titles >= POSTS_MIN && links() >= POSTS_MIN
}

/// Returns whether a statement says what is wanted or expected of a thing.
pub(super) fn is_wish(page: &ParsedLog, statement: &LogStatement) -> bool {
    titles(page, statement).take(2).any(|it| is_in(it, &WISDOM.wish_labels))
}

/// Returns whether the label of a statement says that it is guidance, `New rule`, `Preference learned from Ines`, or
/// the title above it: `Operating instructions`.
pub(super) fn is_guidance(page: &ParsedLog, statement: &LogStatement) -> bool {
    const LABEL_WORDS_MAX: usize = 5;
    const TITLE_WORDS_MAX: usize = 3;
    let label = statement.label_text();
    let is_label = label.len() <= TITLE_BYTES_MAX && {
        let label = normalized_label(label);
        let words = || label.split(' ');
        words().count() <= LABEL_WORDS_MAX && words().any(|it| WISDOM.guidance_nouns.contains(&it))
    };
    let ends_with_noun = |title: &str| {
        let title = normalized_label(title);
        let last = title.rsplit(' ').next().unwrap_or_default();
        title.split(' ').count() <= TITLE_WORDS_MAX && WISDOM.guidance_nouns.contains(&last)
    };
    let title = statement.heading.map(|it| &*page.heads[it].text);
    is_label || title.is_some_and(|it| it.len() <= TITLE_BYTES_MAX && ends_with_noun(it))
}

/// Returns whether a statement is about a person, by its label or the titles above it.
pub(super) fn is_profile(page: &ParsedLog, statement: &LogStatement) -> bool {
    is_in(statement.label_text(), &WISDOM.profile_labels)
        || titles(page, statement).skip(1).take(2).any(|it| is_in(it, &WISDOM.profile_titles))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        memory::log::DailyLog,
        privacy::{self, PrivacyRules},
    };

    fn with_last<T>(log: &str, read: impl Fn(&ParsedLog, &LogStatement) -> T) -> T {
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), log.as_bytes()).unwrap();
        let page = crate::engine::extractive::parsed_log::parse(&privacy::sanitize(
            &log,
            &PrivacyRules::default(),
        ));
        read(&page, page.statements.last().unwrap())
    }

    #[test]
    fn a_complaint_differs_from_what_mends_it() {
        for (text, complaint, cure) in [
            ("The lock fails at low tide", true, false),
            ("Problem: the lock opens by itself", true, false),
            ("Fixed the error of the lock", true, true),
            ("The lock closes again", false, true),
            ("The lock no longer fails", true, true),
            ("The lock fails again", true, false),
            ("Ran the backup of the lock again", false, false),
            ("Moved the printer to the lock", false, false),
            ("Das Tor schließt wieder", false, true),
            ("The lock is not fixed", false, false),
            ("The lock has two gates", false, false),
        ] {
            let words = WordList::of(text);
            assert_eq!((complains(text, &words), mends(&words)), (complaint, cure), "{text}");
        }
    }

    #[test]
    fn titles_say_what_is_below_them() {
        assert!(with_last("## Pump\n\n### Before\n\n- Two valves of steel\n", is_former));
        assert!(!with_last("## Pump\n\n- Two valves of steel\n", is_former));
        assert!(with_last("- Goal: every valve is closed at night\n", is_wish));
        assert!(with_last("- New rule: close each valve at night\n", is_guidance));
        assert!(with_last("- Preference learned from Ines: short reports\n", is_guidance));
        assert!(with_last("## Operating instructions\n\n- Reports by noon\n", is_guidance));
        assert!(!with_last("## Rule of the lock works again\n\n- By noon\n", is_guidance));
        assert!(!with_last("- Ruler: the steel one\n", is_guidance));
        assert!(with_last("- Timezone: Europe/Berlin\n", is_profile));
        assert!(with_last("## First meeting\n\n- Keeps the lighthouse of Brest\n", is_profile));
        assert!(!with_last("## First boat\n\n- Keeps the lighthouse of Brest\n", is_profile));
        assert!(is_generic("Options:") && is_generic("Status") && !is_generic("Pump house"));
    }
}
