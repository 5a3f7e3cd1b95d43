//! Which section a statement belongs to: by its task box, its headings, then its own words.
//!
//! Structure works in every language, cue words in those of the lexicon.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use super::parsed_log::{LogStatement, ParsedLog};
use crate::text::{
    calendar,
    hash::{HashedMap, hash_bytes},
    lexicon::{CuePosition, SECTIONS},
    words::split_at_punctuation,
};

pub use crate::text::lexicon::StatementClass;

/// A front cue must be among this many first words.
const FRONT_WORDS: usize = 3;

struct SectionCue {
    words: Vec<&'static str>,
    class: StatementClass,
    position: CuePosition,
}

/// The cues by the hash of their first word.
static CUE_TABLE: LazyLock<HashedMap<Vec<SectionCue>>> = LazyLock::new(|| {
    let mut table = HashedMap::<Vec<SectionCue>>::default();
    for list in &SECTIONS.cues {
        for phrase in &*list.phrases {
            let words: Vec<_> = phrase.split_whitespace().collect();
            let Some(first) = words.first() else { continue };
            let cue =
                SectionCue { class: list.class, position: list.position, words: words.clone() };
            table.entry(hash_bytes(first.as_bytes())).or_default().push(cue);
        }
    }
    table
});

/// Returns the class of some `words` of a statement: from its task box, else its heads, else the words.
pub(super) fn class_of(page: &ParsedLog, statement: &LogStatement, words: &str) -> StatementClass {
    if let Some(done) = statement.task {
        return if done { StatementClass::Outcome } else { StatementClass::Open };
    }
    match class_of_heads(page, statement) {
        // A heading such as `Notes` says less than the words below it.
        Some(StatementClass::Context) | None => class_of_words(words, statement.label > 0),
        Some(class) => class,
    }
}

/// Returns the class that the label or the heads of a statement indicate.
pub(super) fn class_of_heads(page: &ParsedLog, statement: &LogStatement) -> Option<StatementClass> {
    let label = statement.label_text().trim_end_matches([':', ' ']);
    let head = |head: Option<usize>| head.and_then(|head| class_of_head(&page.heads[head].text));
    class_of_head(label).or_else(|| head(statement.lead).or(head(statement.heading)))
}

/// Returns the class that a heading or lead-in gives to the statements below it.
pub(super) fn class_of_head(head: &str) -> Option<StatementClass> {
    /// In a longer heading a cue proves little.
    const WORDS_MAX: usize = 6;
    if has_more_words(head, WORDS_MAX) {
        return None;
    }
    let lower = head.to_lowercase();
    let words = split_at_punctuation(&lower);
    if words.len() > WORDS_MAX {
        return None;
    }
    let found = matching_cues(&words).filter(|(_, cue)| cue.position == CuePosition::Heading);
    found.min_by_key(|&(at, cue)| (at, cue.class)).map(|(_, cue)| cue.class)
}

/// Returns the class of a statement from its own words.
///
/// In speech (`spoken`) the first words do not mark a task: `I need to hear it`.
pub(super) fn class_of_words(text: &str, spoken: bool) -> StatementClass {
    let lower = text.to_lowercase();
    let words = split_at_punctuation(&lower);
    let mut front = None;
    let mut any = None;
    for (at, cue) in matching_cues(&words) {
        match cue.position {
            CuePosition::Front if spoken && cue.class == StatementClass::Open => {}
            CuePosition::Front if at < FRONT_WORDS => {
                front.get_or_insert(cue.class);
            }
            // Of several cues, a decision takes precedence, then an open item.
            CuePosition::Any => {
                let rank = |class| {
                    matches!(class, StatementClass::Decision)
                        .then_some(2)
                        .unwrap_or(u8::from(class == StatementClass::Open))
                };
                if any.is_none_or(|class| rank(class) < rank(cue.class)) {
                    any = Some(cue.class);
                }
            }
            _ => {}
        }
    }
    match (front, any) {
        (_, Some(StatementClass::Decision)) => StatementClass::Decision,
        (Some(class), _) => class,
        (None, class) => class.unwrap_or(StatementClass::Context),
    }
}

/// Returns whether a text opens with a decision instead of only mentioning one.
pub(super) fn opens_with_decision(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = split_at_punctuation(&lower);
    matching_cues(&words).any(|(at, cue)| {
        at < FRONT_WORDS
            && cue.class == StatementClass::Decision
            && cue.position != CuePosition::Front
    })
}

pub(super) fn gives_reason(text: &str) -> bool {
    /// The first word of each phrase, and the rest.
    static REASONS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
        let phrases = SECTIONS.reasons.iter();
        phrases.map(|it| it.split_once(' ').unwrap_or((it, ""))).collect()
    });
    let lower = text.to_lowercase();
    let words = split_at_punctuation(&lower);
    // A reason follows what it is the reason of.
    (1..words.len()).any(|at| {
        let second = words.get(at + 1).copied().unwrap_or("");
        REASONS.get(words[at]).is_some_and(|&it| it.is_empty() || it == second)
    })
}

pub(super) fn mentions_change(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = split_at_punctuation(&lower);
    let has = |cue: &str| words.contains(&cue);
    (has("from") && has("to"))
        || (has("was") && has("now"))
        || SECTIONS
            .changes
            .iter()
            .any(|cue| if cue.contains(' ') { lower.contains(cue) } else { has(cue) })
}

/// Returns whether a heading only names a kind of content, as in templates.
pub(super) fn is_template_head(head: &str) -> bool {
    static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        SECTIONS.template_titles.iter().chain(calendar::weekday_names()).copied().collect()
    });
    // Most heads say more than a template does, and leave here.
    if has_more_words(head, 3) {
        return false;
    }
    let lower = head.to_lowercase();
    let words = split_at_punctuation(&lower);
    let joined = words.join(" ");
    words.len() <= 3 && (NAMES.contains(&joined[..]) || class_of_head(head).is_some())
}

/// Returns whether a text has more than `most` words. A fast test.
fn has_more_words(text: &str, most: usize) -> bool {
    text.split_whitespace().filter(|it| it.contains(char::is_alphanumeric)).nth(most).is_some()
}

fn matching_cues<'w>(
    words: &'w [&'w str],
) -> impl Iterator<Item = (usize, &'static SectionCue)> + 'w {
    words.iter().enumerate().flat_map(move |(at, word)| {
        let cues = CUE_TABLE.get(&hash_bytes(word.as_bytes())).map_or(&[][..], Vec::as_slice);
        cues.iter().filter(move |cue| words[at..].starts_with(&cue.words)).map(move |cue| (at, cue))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: StatementClass) {
        assert_eq!(class_of_words(text, false), expected, "{text:?}");
    }

    #[test]
    fn cue_words_determine_the_class() {
        check("Fixed the race in the queue", StatementClass::Outcome);
        check("I finally fixed it", StatementClass::Outcome);
        check("We decided to stay on version 3", StatementClass::Decision);
        check("SQLite instead of Postgres", StatementClass::Decision);
        check("Blocked on the vendor's reply", StatementClass::Open);
        check("The room was full of people", StatementClass::Context);
        check("Wir haben beschlossen, bei Version 3 zu bleiben", StatementClass::Decision);
        check("Warten auf die Antwort", StatementClass::Open);
        check("Corrigé le bogue du tri", StatementClass::Outcome);
        check("Queda pendiente la respuesta del banco", StatementClass::Open);
        check("Abbiamo deciso di aspettare", StatementClass::Decision);
        check("Ainda não temos resposta", StatementClass::Open);
        check("Opgelost: de fout in de sortering", StatementClass::Outcome);
    }

    #[test]
    fn wishes_in_speech_are_not_open_items() {
        assert_eq!(class_of_words("I need to hear that song again", true), StatementClass::Context);
        assert_eq!(class_of_words("Need to renew the insurance", false), StatementClass::Open);
        assert_eq!(class_of_words("I am still waiting for the visa", true), StatementClass::Open);
    }

    #[test]
    fn a_reason_follows_what_it_explains() {
        #[track_caller]
        fn check(text: &str, expected: bool) {
            assert_eq!(gives_reason(text), expected, "{text:?}");
        }
        check("SQLite over Postgres, because one file is easier to copy", true);
        check("Wir bleiben bei SQLite, weil eine Datei reicht", true);
        check("SQLite porque basta un archivo", true);
        check("SQLite over Postgres", false);
        check("Because", false);
    }

    #[test]
    fn headings_determine_the_class() {
        assert_eq!(class_of_head("Key decisions"), Some(StatementClass::Decision));
        assert_eq!(class_of_head("Next steps"), Some(StatementClass::Open));
        assert_eq!(class_of_head("Offene Punkte"), Some(StatementClass::Open));
        assert_eq!(class_of_head("What was done"), Some(StatementClass::Outcome));
        assert_eq!(class_of_head("Task: sort the list by date"), None);
    }
}
