//! Which section a statement belongs to: by its task box, a mark of its state, its headings, then its own
//! words.
//!
//! Structure works in every language, cue words in those of the lexicon.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use super::{
    memories::roles::{BlockRole, role_of_label},
    parsed_log::{LogStatement, ParsedLog, StatementForm},
    statements::{labels::split_label, terms::is_stop_word, word_list::WordList},
};
use crate::{
    memory::atom::{self, AtomKind},
    text::{
        calendar,
        hash::{HashedMap, hash_bytes},
        lexicon::{CUES, CuePosition, SEARCH, SECTIONS, WISDOM},
        scripts,
        stems::english_stem,
        words::split_at_punctuation,
    },
};

pub use crate::text::lexicon::StatementClass;

/// A front cue must be among this many first words.
const FRONT_WORDS: usize = 3;

/// In a script without spaces it must begin among this many first characters.
const FRONT_CHARS: usize = 8;

struct SectionCue {
    words: Vec<&'static str>,
    class: StatementClass,
    position: CuePosition,
}

/// A cue in a text.
struct FoundCue {
    /// Where it begins: the number of words before it, or of characters in a script without spaces.
    at: usize,
    is_in_front: bool,
    cue: &'static SectionCue,
}

/// The cues by the hash of their first word.
static CUE_TABLE: LazyLock<HashedMap<Vec<SectionCue>>> = LazyLock::new(|| {
    let mut table = HashedMap::<Vec<SectionCue>>::default();
    for cue in all_cues().filter(|it| !is_unspaced(it.words[0])) {
        table.entry(hash_bytes(cue.words[0].as_bytes())).or_default().push(cue);
    }
    table
});

/// The cues in scripts without spaces, which are found by their characters; longer ones first.
static UNSPACED_CUES: LazyLock<Vec<SectionCue>> = LazyLock::new(|| {
    let mut cues: Vec<_> = all_cues().filter(|it| is_unspaced(it.words[0])).collect();
    cues.sort_by_key(|it| std::cmp::Reverse(it.words[0].len()));
    cues
});

fn all_cues() -> impl Iterator<Item = SectionCue> {
    let phrases =
        SECTIONS.cues.iter().flat_map(|list| list.phrases.iter().map(move |it| (list, *it)));
    phrases.filter_map(|(list, phrase)| {
        let words: Vec<_> = phrase.split_whitespace().collect();
        (!words.is_empty()).then_some(SectionCue {
            words,
            class: list.class,
            position: list.position,
        })
    })
}

fn is_unspaced(word: &str) -> bool {
    word.contains(scripts::is_spaceless)
}

/// Returns the class of some `words` of a statement: from its task box, else a mark of its state, else its
/// heads, else the words.
pub(super) fn class_of(page: &ParsedLog, statement: &LogStatement, words: &str) -> StatementClass {
    if statement.is_pasted {
        return StatementClass::Context;
    }
    if let Some(done) = statement.task {
        return if done { StatementClass::Outcome } else { StatementClass::Open };
    }
    // `Next steps:` belongs to what is below it.
    if let Some(class) = class_of_head(&statement.text).filter(|_| statement.introduces) {
        return class;
    }
    let by_heads = class_of_heads(page, statement);
    let state = state_of(statement).filter(|_| by_heads != Some(StatementClass::Decision));
    match (state, by_heads) {
        (Some(State::Open), _) => StatementClass::Open,
        (Some(State::Done), Some(StatementClass::Open)) => StatementClass::Outcome,
        // A heading such as `Notes` says less than the words below it.
        (state, Some(StatementClass::Context) | None) => {
            // What somebody else says decides nothing here.
            let by_words = match statement.form {
                StatementForm::Quote => StatementClass::Context,
                _ => class_of_words(words, statement.label > 0),
            };
            match (by_words, state) {
                // A row of a table says how something is, not what was done.
                (StatementClass::Context, Some(State::Done))
                    if statement.form != StatementForm::Row && says_what_is_done(words) =>
                {
                    StatementClass::Outcome
                }
                (StatementClass::Context, Some(State::Caution)) => StatementClass::Open,
                (class, _) => class,
            }
        }
        (_, Some(class)) => class,
    }
}

/// What a mark such as `✅` says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Done,
    Caution,
    Open,
}

/// Returns the state that a mark at the beginning or the end of a statement or of a part of it shows; of
/// several the one that needs most attention.
fn state_of(statement: &LogStatement) -> Option<State> {
    /// The first characters of all marks.
    static FIRST: LazyLock<HashSet<char>> = LazyLock::new(|| {
        let marks = &SECTIONS.state_marks;
        let all = [&marks.open, &marks.caution, &marks.done];
        all.into_iter().flat_map(|it| it.iter()).filter_map(|it| it.chars().next()).collect()
    });
    let text = &statement.text;
    if text.is_ascii() || !text.chars().any(|c| !c.is_ascii() && FIRST.contains(&c)) {
        return None;
    }
    let parts = text.split([';', ',', '：', ':', '|', '—', '–', '→']).map(str::trim);
    let at_edge = |part: &str| {
        // In a row the head of the column precedes the mark.
        let is_row = statement.form == StatementForm::Row;
        let of = |marks: &[&str]| {
            let is_at_edge = |it: &&str| part.starts_with(it) || ends_with_mark(part, it);
            marks.iter().any(|it| is_at_edge(it) || (is_row && part.contains(it)))
        };
        let marks = &SECTIONS.state_marks;
        match () {
            () if of(&marks.open) => Some(State::Open),
            () if of(&marks.caution) => Some(State::Caution),
            () => of(&marks.done).then_some(State::Done),
        }
    };
    parts.filter_map(at_edge).max()
}

/// Emoji may be followed by the selector of their form.
fn ends_with_mark(part: &str, mark: &str) -> bool {
    part.trim_end_matches(['\u{FE0F}', '.']).ends_with(mark)
}

/// Returns whether a text with a mark says more than that something runs.
fn says_what_is_done(words: &str) -> bool {
    const WORDS_MIN: usize = 3;
    const UNSPACED_CHARS_MIN: usize = 5;
    has_more_words(words, WORDS_MIN - 1)
        || words.chars().filter(|&c| scripts::is_spaceless(c)).nth(UNSPACED_CHARS_MIN).is_some()
}

/// Returns the class that the label or the heads of a statement indicate.
pub(super) fn class_of_heads(page: &ParsedLog, statement: &LogStatement) -> Option<StatementClass> {
    let label = statement.label_text().trim_end_matches([':', ' ']);
    let head = |head: Option<usize>| head.and_then(|head| page.heads[head].class);
    let label_class =
        class_of_head(label).filter(|_| !counts_results(&statement.text[statement.label..]));
    label_class.or_else(|| head(statement.lead)).or_else(|| head(statement.heading))
}

/// Returns whether a statement is below the title of one decision, after the statement with that decision.
pub(super) fn follows_decision(page: &ParsedLog, statement: &LogStatement) -> bool {
    let is_first = |head: usize| {
        let first = page.statements.get(page.first_below(head));
        first.is_some_and(|it| std::ptr::eq(it, statement))
    };
    statement.heading.is_some_and(|head| is_single(&page.heads[head].text) && !is_first(head))
}

/// Returns whether a text counts what passed and failed: `3 of 7 fail`, `12 passed, 2 failed`.
pub(super) fn counts_results(text: &str) -> bool {
    /// The words that may belong to the count.
    const REACH: usize = 6;
    if !text.contains(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let lower = text.to_lowercase();
    let words: Vec<&str> = split_at_punctuation(&lower).into_iter().take(REACH).collect();
    let is_count = |it: &str| it.bytes().all(|b| b.is_ascii_digit());
    let counted = words.iter().position(|it| is_count(it)).filter(|at| *at <= 1);
    counted.is_some_and(|at| {
        let is_share = |it: &[&str]| SECTIONS.share_words.contains(&it[0]) && is_count(it[1]);
        words.get(at + 1..at + 3).is_some_and(is_share)
            || words[at + 1..].iter().take(2).any(|it| SECTIONS.result_words.contains(it))
    })
}

/// Returns whether a title names one decision or lesson, `Decision: limit 8 °C`: what follows the first statement below
/// it is often about something else.
pub(super) fn is_single(title: &str) -> bool {
    split_label(title).is_some_and(|(label, _)| {
        let role = role_of_label(&normalized_label(label));
        matches!(role, Some(BlockRole::Decision | BlockRole::Lesson))
    })
}

/// Returns the statement of which this one only says why it is so: `Why: …` below a rule.
pub(super) fn parent_of_reason(page: &ParsedLog, statement: &LogStatement) -> Option<usize> {
    let parent = statement.lead.and_then(|it| page.heads[it].statement)?;
    (!page.statements[parent].introduces && is_reason(statement)).then_some(parent)
}

/// Returns whether the label of a statement of somebody's own says that it is a reason: `Why: …`.
pub(super) fn is_reason(statement: &LogStatement) -> bool {
    let label = normalized_label(statement.label_text());
    statement.label > 0 && statement.is_own_words() && CUES.reason_titles.contains(&&*label)
}

/// Returns a title without the label that says what is below it: `Decision: limit 8 °C`.
pub(super) fn without_kind(title: &str) -> &str {
    split_label(title).filter(|_| is_single(title)).map_or(title, |(_, rest)| &title[rest..])
}

/// Returns whether a text has all words of a title that names one decision or lesson.
pub(super) fn says_title(text: &str, title: &str) -> bool {
    let stems = |it: &str| -> HashSet<String> {
        let words = WordList::of(it);
        let words = words.iter().filter(|it| !is_stop_word(it));
        words.map(|it| english_stem(it).into_owned()).collect()
    };
    let of_title = || stems(without_kind(title));
    let denies = || WordList::of(title).iter().any(|it| SEARCH.negations.contains(&it));
    is_single(title) && !denies() && !of_title().is_empty() && of_title().is_subset(&stems(text))
}

/// Returns the class that a heading or lead-in gives to the statements below it.
pub(super) fn class_of_head(head: &str) -> Option<StatementClass> {
    /// In a longer heading a cue proves little.
    const WORDS_MAX: usize = 6;
    const UNSPACED_CHARS_MAX: usize = 12;
    if head.is_empty() || has_more_words(head, WORDS_MAX) {
        return None;
    }
    let lower = head.to_lowercase();
    let words = split_at_punctuation(&lower);
    let unspaced = lower.chars().filter(|&c| scripts::is_spaceless(c));
    if words.len() > WORDS_MAX || unspaced.count() > UNSPACED_CHARS_MAX {
        return None;
    }
    let found = find_cues(&lower, &words).into_iter();
    let found = found.filter(|it| it.cue.position == CuePosition::Heading);
    let class = found.min_by_key(|it| (it.at, it.cue.class)).map(|it| it.cue.class);
    class.or_else(|| names_plan(&lower, &words).then_some(StatementClass::Open))
}

/// Returns whether a heading or lead-in in lower case is above what somebody means to do.
fn names_plan(lower: &str, words: &[&str]) -> bool {
    let is_plan = |word: &str| SECTIONS.plan_words.contains(&word);
    let in_front = words.iter().position(|it| !WISDOM.articles.contains(it)).unwrap_or(0);
    let (Some(first), Some(last)) = (words.get(in_front), words.last()) else { return false };
    let goes_on = words.get(in_front + 1).is_none_or(|it| SECTIONS.plan_followers.contains(it));
    let before = words.len().checked_sub(2).and_then(|it| words.get(it));
    let is_drawn = before.is_some_and(|it| SECTIONS.drawn_plans.contains(it));
    let ends_unspaced =
        || SECTIONS.plan_words.iter().any(|it| is_unspaced(it) && lower.ends_with(it));
    let opens = is_plan(first) || SECTIONS.idea_words.contains(first);
    opens && goes_on || is_plan(last) && !is_drawn || ends_unspaced()
}

/// Returns the class of a statement from its own words.
///
/// In speech (`spoken`) the first words do not mark a task: `I need to hear it`.
pub(super) fn class_of_words(text: &str, spoken: bool) -> StatementClass {
    let lower = text.to_lowercase();
    let words = split_at_punctuation(&lower);
    let mut front = None;
    let mut any = None;
    for FoundCue { is_in_front, cue, at } in find_cues(&lower, &words) {
        match cue.position {
            CuePosition::Front if spoken && cue.class == StatementClass::Open => {}
            CuePosition::Any if is_manner(cue, at, &words) => {}
            CuePosition::Front if is_in_front => {
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

/// Returns whether a cue is within words that say how something went: `it stopped instead of writing half a row`.
fn is_manner(cue: &SectionCue, at: usize, words: &[&str]) -> bool {
    let after = words.get(at + cue.words.len());
    cue.words == ["instead", "of"] && after.is_some_and(|it| it.ends_with("ing"))
}

/// Returns whether a text opens with a decision instead of only mentioning one.
pub(super) fn opens_with_decision(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = split_at_punctuation(&lower);
    find_cues(&lower, &words).iter().any(|it| {
        it.is_in_front
            && it.cue.class == StatementClass::Decision
            && it.cue.position != CuePosition::Front
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
    if is_unspaced(&lower)
        && SECTIONS.reasons.iter().any(|it| is_unspaced(it) && lower.contains(it))
    {
        return true;
    }
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
        || SECTIONS.changes.iter().any(|cue| {
            if cue.contains(' ') || is_unspaced(cue) { lower.contains(cue) } else { has(cue) }
        })
}

/// Returns whether a heading only names a kind of content, as in templates.
pub(super) fn is_template_head(head: &str) -> bool {
    static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        SECTIONS.template_titles.iter().chain(calendar::weekday_names()).copied().collect()
    });
    // Most heads say more than a template does, and leave here.
    if has_more_words(head, 5) {
        return false;
    }
    let lower = head.to_lowercase();
    let words = split_at_punctuation(&lower);
    let joined = words.join(" ");
    NAMES.contains(&joined[..]) || words.len() <= 3 && class_of_head(head).is_some()
}

/// Returns whether a label names an attribute of what the heading is about: `Status: …`, `Root cause: …`.
pub(super) fn is_attribute(label: &str) -> bool {
    is_in(label, &ATTRIBUTES)
}

/// Returns whether a labelled statement is only about the note, `Session ID: …`, names who attended, `Present: Ada, Bo`,
/// or is a date, `Date: …`, and no heading says of what.
pub(super) fn is_about_note(statement: &LogStatement, headed: bool) -> bool {
    const VALUE_WORDS_MAX: usize = 6;
    /// `his controller Frau Vogl`
    const NAME_WORDS_MAX: usize = 5;
    static ATTENDANCE_LABELS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| SECTIONS.attendance_labels.iter().copied().collect());
    static NOTE_LABELS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| SECTIONS.note_labels.iter().copied().collect());
    let label = statement.label_text();
    let value = &statement.text[statement.label..];
    let is_time = || {
        let atoms = atom::find_atoms(value);
        let times = atoms.iter().any(|it| matches!(it.kind, AtomKind::Date | AtomKind::Time));
        times && !headed && is_in(label, &ATTRIBUTES)
    };
    let is_list = |it: &str| {
        let mut parts = it.split([',', ';', '，', '、']);
        // `pump ok` names nobody.
        let has_name = |it: &str| it.chars().any(|c| c.is_uppercase() || scripts::is_spaceless(c));
        parts.all(|part| !has_more_words(part, NAME_WORDS_MAX) && has_name(part))
    };
    !has_more_words(value, VALUE_WORDS_MAX) && (is_in(label, &NOTE_LABELS) || is_time())
        || is_in(label, &ATTENDANCE_LABELS) && is_list(value)
}

static ATTRIBUTES: LazyLock<HashSet<&str>> =
    LazyLock::new(|| SECTIONS.attribute_labels.iter().copied().collect());

/// Returns whether the words of a label are among `names`.
fn is_in(label: &str, names: &HashSet<&str>) -> bool {
    !label.is_empty() && !has_more_words(label, 3) && names.contains(&normalized_label(label)[..])
}

/// Returns the words of a label in lower case, without marks.
pub(super) fn normalized_label(label: &str) -> String {
    let lower = label.to_lowercase();
    let words: Vec<&str> = split_at_punctuation(&lower)
        .into_iter()
        .map(|it| it.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|it| !it.is_empty())
        .collect();
    words.join(" ")
}

/// Returns whether a text has more than `most` words. A fast test.
fn has_more_words(text: &str, most: usize) -> bool {
    text.split_whitespace().filter(|it| it.contains(char::is_alphanumeric)).nth(most).is_some()
}

/// Returns the cues in a text in lower case, which has these words.
fn find_cues(lower: &str, words: &[&str]) -> Vec<FoundCue> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let cues = CUE_TABLE.get(&hash_bytes(word.as_bytes())).map_or(&[][..], Vec::as_slice);
        let cues = cues.iter().filter(|cue| words[at..].starts_with(&cue.words));
        found.extend(cues.map(|cue| FoundCue { at, is_in_front: at < FRONT_WORDS, cue }));
    }
    if !lower.is_ascii() && is_unspaced(lower) {
        let mut taken: Vec<(std::ops::Range<usize>, StatementClass)> = Vec::new();
        for cue in &*UNSPACED_CUES {
            let phrase = cue.words[0];
            let Some(start) = lower.find(phrase) else { continue };
            let end = start + phrase.len();
            // `未完成` contains `完成`, and says the opposite.
            let inside = |(longer, class): &(std::ops::Range<usize>, StatementClass)| {
                longer.start <= start && end <= longer.end && *class != cue.class
            };
            if taken.iter().any(inside) {
                continue;
            }
            taken.push((start..end, cue.class));
            let at = lower[..start].chars().filter(|c| c.is_alphanumeric()).count();
            found.push(FoundCue { at, is_in_front: at < FRONT_CHARS, cue });
        }
    }
    found
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
        check("Решили остаться на третьей версии", StatementClass::Decision);
        check("Ждём ответа от банка", StatementClass::Open);
        check("Исправили сортировку в журнале", StatementClass::Outcome);
        check("决定继续使用第三版", StatementClass::Decision);
        check("合同未完成，等待客户回复", StatementClass::Open);
        check("已修复排序错误", StatementClass::Outcome);
        check("港口天气很好", StatementClass::Context);
        check("第3版を使い続けることに決定した", StatementClass::Decision);
        check("契約は未完了、銀行の返事待ち", StatementClass::Open);
        check("並び順の不具合を修正した", StatementClass::Outcome);
    }

    #[test]
    fn marks_show_the_state() {
        #[track_caller]
        fn check(text: &str, expected: StatementClass) {
            let log = format!("## Notes\n\n- {text}\n");
            let log =
                crate::memory::log::DailyLog::parse("2026-04-01".parse().unwrap(), log.as_bytes());
            let log =
                crate::privacy::sanitize(&log.unwrap(), &crate::privacy::PrivacyRules::default());
            let page = super::super::parsed_log::parse(&log);
            let statement = &page.statements[0];
            assert_eq!(
                class_of(&page, statement, &statement.text[statement.label..]),
                expected,
                "{text}"
            );
        }
        check("✅ Boat painted for the season", StatementClass::Outcome);
        check("Boat painted for the season ✅", StatementClass::Outcome);
        check("Boat: ✅ running", StatementClass::Context);
        check("❌ The winch of pier 4", StatementClass::Open);
        check("Winch of pier 4: 🔴", StatementClass::Open);
        check("⚠️ The pump leaks", StatementClass::Open);
        check("⚠️ Decided to keep the pump", StatementClass::Decision);
        check("The ❌ in the plan is a stain", StatementClass::Context);
    }

    #[test]
    fn a_lead_in_gives_its_class_to_what_it_introduces() {
        #[track_caller]
        fn check(text: &str, expected: &[(&str, StatementClass)]) {
            let log =
                crate::memory::log::DailyLog::parse("2026-04-01".parse().unwrap(), text.as_bytes());
            let log =
                crate::privacy::sanitize(&log.unwrap(), &crate::privacy::PrivacyRules::default());
            let page = super::super::parsed_log::parse(&log);
            let found: Vec<_> = page
                .statements
                .iter()
                .map(|it| (&it.text[..], class_of(&page, it, &it.text[it.label..])))
                .collect();
            assert_eq!(found, expected, "{text}");
        }
        check(
            "Winter plan:\n\n- Moved the winch\n- [x] New ropes\n\nFixed the pump.\n",
            &[
                ("Winter plan:", StatementClass::Open),
                ("Moved the winch", StatementClass::Open),
                ("New ropes", StatementClass::Outcome),
                ("Fixed the pump.", StatementClass::Outcome),
            ],
        );
        check(
            "Open questions of Henk:\n> Where is the key?\n>\n> And the boat?\n- The fee is paid\n",
            &[
                ("Open questions of Henk:", StatementClass::Open),
                ("Where is the key?", StatementClass::Open),
                ("And the boat?", StatementClass::Open),
                ("The fee is paid", StatementClass::Context),
            ],
        );
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
        check("选用单个文件，因为备份更容易", true);
    }

    #[test]
    fn headings_determine_the_class() {
        assert_eq!(class_of_head("Key decisions"), Some(StatementClass::Decision));
        assert_eq!(class_of_head("Next steps"), Some(StatementClass::Open));
        assert_eq!(class_of_head("Offene Punkte"), Some(StatementClass::Open));
        assert_eq!(class_of_head("Открытые вопросы"), Some(StatementClass::Open));
        assert_eq!(class_of_head("📋 待办事项"), Some(StatementClass::Open));
        assert_eq!(class_of_head("今日已完成"), Some(StatementClass::Outcome));
        assert_eq!(class_of_head("未完了"), Some(StatementClass::Open));
        assert_eq!(class_of_head("決定事項"), Some(StatementClass::Decision));
        assert_eq!(class_of_head("What was done"), Some(StatementClass::Outcome));
        assert_eq!(class_of_head("Task: sort the list by date"), None);
        for plan in [
            "Plan",
            "Winter plan",
            "The plan for the week",
            "Plan für morgen",
            "Meine Pläne",
            "To do",
            "Ideas",
            "Ideas for the cabin",
            "Tomorrow",
            "Idées pour le bateau",
            "Планы на зиму",
            "明天的计划",
            "明日の予定",
        ] {
            assert_eq!(class_of_head(plan), Some(StatementClass::Open), "{plan}");
        }
        for other in
            ["Floor plan", "Plan B failed", "Ideas shaped the pier", "Planet", "Grand piano"]
        {
            assert_eq!(class_of_head(other), None, "{other}");
        }
        assert_eq!(class_of_head("What was done of the plan"), Some(StatementClass::Outcome));
    }
}
