//! Which section of `WISDOM.md` a statement belongs to.

use super::titles;
use crate::{
    engine::extractive::{
        cue_phrases,
        memories::{
            persons::is_about_person,
            reports::opens_as_report,
            roles::{BlockRole, role_of_label},
        },
        parsed_log::{LogStatement, ParsedLog},
        sections::{self, StatementClass},
        statements::{terms::is_stop_word, word_list::WordList},
        wisdom::candidate::is_lasting,
    },
    memory::{
        atom::{self, AtomKind},
        authorship::Speaker,
        statement::StatementKind,
        wisdom::WisdomSection,
    },
    text::{
        lexicon::{AUTHORSHIP, SEARCH, WISDOM},
        sentences::sentence_ranges,
        words,
    },
};

/// The longest statement about a place, in words: a longer one is a story.
const PLACE_WORDS_MAX: usize = 24;

/// The most words before the word that makes a sentence a rule.
const RULE_WORDS_BEFORE: usize = 6;

/// The most words before the word that says that something was stopped.
const STOPPED_WORDS_BEFORE: usize = 3;

/// What is worth a statement that says what was done: how things are lasts longer.
const EVENT_FACTOR: f64 = 0.6;

/// The kind of a statement, and how much more or less it is worth than others.
pub(super) struct StatementRole {
    pub(super) kind: StatementKind,
    pub(super) factor: f64,
}

/// Returns the section of statements of a kind.
pub(super) fn section_of(kind: StatementKind) -> WisdomSection {
    match kind {
        StatementKind::Rule => WisdomSection::HowToWork,
        StatementKind::Profile | StatementKind::Preference => WisdomSection::People,
        StatementKind::Lesson => WisdomSection::Lessons,
        StatementKind::Decision => WisdomSection::Decisions,
        StatementKind::State => WisdomSection::Projects,
        StatementKind::Environment => WisdomSection::Environment,
        StatementKind::Open => WisdomSection::Open,
        StatementKind::Retired => WisdomSection::Stopped,
    }
}

/// Sections that share a part of the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoomGroup {
    Guidance,
    State,
    Open,
    Stopped,
}

/// Returns the group of a section, and the most of the room that the group may take, in percent.
pub(super) fn room_of(section: WisdomSection) -> (RoomGroup, usize) {
    match section {
        WisdomSection::HowToWork
        | WisdomSection::People
        | WisdomSection::Lessons
        | WisdomSection::Decisions => (RoomGroup::Guidance, 45),
        WisdomSection::Projects | WisdomSection::Environment => (RoomGroup::State, 100),
        WisdomSection::Open => (RoomGroup::Open, 15),
        WisdomSection::Stopped => (RoomGroup::Stopped, 6),
    }
}

/// Returns the role of a statement with these words and this class.
pub(super) fn role_of(
    page: &ParsedLog,
    statement: &LogStatement,
    (text, words): (&str, &WordList),
    class: StatementClass,
) -> StatementRole {
    let role = |kind, factor| StatementRole { kind, factor };
    let after_label = text.strip_prefix(statement.label_text()).unwrap_or(text);
    let is_count = sections::counts_results(after_label);
    let is_report = is_count
        || class == StatementClass::Outcome
        || opens_as_report(words)
        || (after_label.len() < text.len() && opens_as_report(&WordList::of(after_label)));
    // What an agent says in a transcript is an outcome or a state at most.
    if statement.speaker != Some(Speaker::Assistant) {
        let is_former = titles::is_former(page, statement);
        let is_rule =
            !is_former && !titles::is_wish(page, statement) && says_rule(statement, text, words);
        let wishes = [cue_phrases::PREFERS, cue_phrases::WANTS, cue_phrases::FAVORITE];
        let wishes = wishes.into_iter().any(|it| words.has(it));
        // `From now on never push to main` is a wish of somebody, and an order.
        let is_order = is_rule && !wishes && words.opens_with(cue_phrases::RULE_OPENERS);
        if !is_order && is_about_person(text, words) {
            let kind = if wishes { StatementKind::Preference } else { StatementKind::Profile };
            return role(kind, 1.5);
        }
        if is_rule && statement.task.is_none() {
            let opens = words.opens_with(cue_phrases::RULE_OPENERS);
            return role(StatementKind::Rule, if opens { 1.8 } else { 1.3 });
        }
        let label_words = sections::normalized_label(statement.label_text());
        // `Rule: no shoes inside` and `Rule: washed cups go on the shelf` only open like reports.
        let is_rule_label = WISDOM.rule_labels.contains(&&*label_words);
        if statement.task.is_none() && is_rule_label && !is_count {
            return role(StatementKind::Rule, 1.3);
        }
        if statement.task.is_none() && changes_rule(words) {
            return role(StatementKind::Rule, 1.3);
        }
        let label = role_of_label(&label_words);
        // `Feedback: the tests use a real database, never a mock` is an order, praise is none.
        let may_order = label == Some(BlockRole::Feedback) && statement.task.is_none() && !is_count;
        if may_order && words.has(cue_phrases::RULE) && !words.has(cue_phrases::NOT_RULES) {
            return role(StatementKind::Rule, 1.3);
        }
        if !is_report
            && !is_former
            && statement.task.is_none()
            && titles::is_guidance(page, statement)
        {
            return role(StatementKind::Rule, 1.3);
        }
        if !is_report && statement.task.is_none() && titles::is_profile(page, statement) {
            return role(StatementKind::Profile, 1.3);
        }
        match block_role(page, statement) {
            _ if is_count => {}
            // `Mistake: I ran it without a backup` reports what happened, and is one.
            _ if label == Some(BlockRole::Lesson) && statement.task.is_none() => {
                return role(StatementKind::Lesson, 1.3);
            }
            Some(BlockRole::Preference) => return role(StatementKind::Preference, 1.4),
            // Below such a heading agents also list what they did.
            Some(BlockRole::Lesson) if class != StatementClass::Outcome => {
                return role(StatementKind::Lesson, 1.3);
            }
            Some(BlockRole::Decision) if statement.label == 0 => {
                return role(StatementKind::Decision, 1.3);
            }
            _ if sections::opens_with_decision(text) || decides_label(statement) => {
                return role(StatementKind::Decision, 1.3);
            }
            _ => {}
        }
    }
    let is_open = class == StatementClass::Open && !titles::is_wish(page, statement);
    if is_open && !is_report && !titles::is_finished(page, statement, text) {
        return role(StatementKind::Open, 0.8);
    }
    // Later in a sentence the same words say what an improvement did.
    let is_retired = words.find(cue_phrases::RETIRED).is_some_and(|(at, width)| {
        at + width == words.len() || (at <= STOPPED_WORDS_BEFORE && !is_attribute(words, at))
    });
    if is_retired && class != StatementClass::Context {
        return role(StatementKind::Retired, 1.0);
    }
    // In a longer text a place is where something happened.
    let is_place = |kind| matches!(kind, AtomKind::Url | AtomKind::Path);
    let value =
        after_label.trim_start_matches(|c: char| !c.is_alphanumeric() && !"/~.`".contains(c));
    let names_place =
        atom::find_atoms(value).first().is_some_and(|it| is_place(it.kind) && it.start <= 1);
    // Without a label that says what the place is, a statement with a path is about something else.
    let is_entry = statement.label > 0;
    if (names_place && is_entry && !is_report && words.len() <= PLACE_WORDS_MAX)
        || words.has(cue_phrases::LIVES_AT)
    {
        return role(StatementKind::Environment, 1.1);
    }
    role(StatementKind::State, if is_report { EVENT_FACTOR } else { 1.0 })
}

/// Returns whether a rule is about what cannot be taken back: money, messages to others, deletion, publication,
/// accounts.
pub(super) fn sets_boundary(text: &str) -> bool {
    titles::names_word(text, &WISDOM.boundary_words)
}

/// Returns whether the word after this one is what it says something of: `helping disabled sailors`, `for removed buoys`.
fn is_attribute(words: &WordList, at: usize) -> bool {
    let Some(before) = at.checked_sub(1).and_then(|it| words.get(it)) else { return false };
    // In French `a désactivé` is no article.
    if WISDOM.passive_words.contains(&before) {
        return false;
    }
    // `Boeing removed from the list` is no `helping disabled sailors`.
    let is_verb = before.len() > 4 && before.ends_with("ing");
    let goes_on = words.get(at + 1).is_none_or(is_stop_word);
    (is_verb && !goes_on)
        || WISDOM.articles.contains(&before)
        || WISDOM.attribute_openers.contains(&before)
}

/// Returns whether a statement says what to do whenever a case occurs.
fn says_rule(statement: &LogStatement, text: &str, words: &WordList) -> bool {
    // What a person says is to hold from now on is an order, whatever its verb.
    if statement.speaker == Some(Speaker::Owner) && words.has(cue_phrases::FROM_NOW_ON) {
        return true;
    }
    // `From now on I write the note first, because nobody knew what had changed` also says what happened.
    if sets_habit(words) {
        return true;
    }
    let Some((at, _)) = words.find(cue_phrases::RULE) else { return false };
    let opens = words.opens_with(cue_phrases::RULE_OPENERS);
    let next = words.get(at + 1).unwrap_or_default();
    // Rules say early that they are one; later in a sentence the same words tell what happened.
    let is_early = match at {
        // In a list `stop the pump` is a step.
        0 => statement.lead.is_none() || opens,
        _ => at <= RULE_WORDS_BEFORE && words.get(at - 1) != Some("to") && !says_habit(words, at),
    };
    let is_other = match words.get(at) {
        // `Stop 9 €`, `the next stop`, `no longer there`, `the pump must be older`.
        Some("stop") => !(next == "to" || next.ends_with("ing")),
        Some("no") => next == "longer",
        Some("immer") => next == "noch",
        Some(word) if words.find(cue_phrases::OBLIGATIONS).is_some_and(|it| it.0 == at) => {
            let upper = word.to_uppercase();
            let is_stressed = upper != word && text.contains(&upper);
            !words.has(cue_phrases::LIMITS) && !is_stressed
        }
        _ => false,
    };
    let is_price = || {
        let priced = |it: &atom::Atom| matches!(it.kind, AtomKind::Money | AtomKind::Percent);
        !words.has(cue_phrases::LIMITS) && atom::find_atoms(text).iter().any(priced)
    };
    is_early && !is_other && !is_price() && !asks_once(words) && is_lasting(text, words)
}

/// Returns whether a text says that a rule is another one now: `We changed the rule about screens: …`.
fn changes_rule(words: &WordList) -> bool {
    const WORDS: usize = 8;
    let opening = || words.iter().take(WORDS);
    opening().any(|it| WISDOM.rule_labels.contains(&it))
        && opening().any(|it| SEARCH.changed_words.contains(&it))
        && opening().any(|it| SEARCH.about_words.contains(&it))
}

/// Returns whether a sentence of a statement that reports something is an order: `Bea burnt her hand. From now on long
/// gloves at both ovens`.
pub(super) fn has_rule_sentence(statement: &LogStatement, text: &str) -> bool {
    const WORDS_MIN: usize = 4;
    // `Read the page. Always do it so, it says` repeats what somebody else orders.
    let repeats =
        |it: &str| AUTHORSHIP.message_words.contains(&it) || AUTHORSHIP.speech_verbs.contains(&it);
    if words::lowercase_runs(text).any(|it| repeats(&it)) {
        return false;
    }
    sentence_ranges(text).into_iter().any(|(start, end)| {
        // What follows a colon is the reason.
        let order = text[start..end].split([':', '：']).next().unwrap_or_default();
        let words = WordList::of(order);
        words.len() >= WORDS_MIN
            && words.opens_with(cue_phrases::RULE_OPENERS)
            && says_rule(statement, order, &words)
    })
}

/// Returns whether a text begins with what somebody does from now on; `In future releases we may` only plans.
fn sets_habit(words: &WordList) -> bool {
    words.opens_with(cue_phrases::FROM_NOW_ON)
        && words.opens_with(cue_phrases::RULE_OPENERS)
        && !words.iter().any(|it| WISDOM.hedged_verbs.contains(&it))
}

/// Returns whether a text asks for something to be done now, or says what is expected of a thing: `please check the
/// pump`, `the pump should work`.
fn asks_once(words: &WordList) -> bool {
    let is_lasting = || words.has(cue_phrases::RULE_OPENERS) || words.has(cue_phrases::LIMITS);
    (words.opens_with(cue_phrases::REQUESTS) || words.has(cue_phrases::EXPECTATIONS))
        && !is_lasting()
}

/// Returns whether a word such as `always` says how a thing is rather than what to do: `it always uses the default`,
/// `the pump was never connected`.
fn says_habit(words: &WordList, at: usize) -> bool {
    let is_adverb = words.get(at).is_some_and(|it| matches!(it, "always" | "never" | "immer"));
    let before = at.checked_sub(1).and_then(|it| words.get(it));
    let is_state = |it: &str| matches!(it, "was" | "were" | "been" | "has" | "have" | "had");
    let is_told = |it: &str| {
        let verb = it.len() > 3 && !it.ends_with("ss");
        verb && (it.ends_with('s') || it.ends_with("ed"))
    };
    // `always $0.00`, `immer aktuell` after `=`.
    let is_value = |it: &str| it.starts_with(|c: char| c.is_ascii_digit());
    is_adverb
        && (words.get(at + 1).is_some_and(|it| is_told(it) || is_value(it))
            || before.is_some_and(is_state))
}

/// Returns whether a text says how things are at the moment: `tonight`, `right now`.
pub(super) fn is_passing(words: &WordList) -> bool {
    words.has(cue_phrases::TRANSIENT) || words.has(cue_phrases::ROUTINE)
}

/// Returns whether the label of a statement says that it is a decision.
pub(super) fn decides_label(statement: &LogStatement) -> bool {
    let label = sections::normalized_label(statement.label_text());
    role_of_label(&label) == Some(BlockRole::Decision)
}

/// Returns whether the label of a statement, or a heading above it, says that it is a preference.
pub(super) fn prefers_something(page: &ParsedLog, statement: &LogStatement) -> bool {
    block_role(page, statement) == Some(BlockRole::Preference)
}

/// Returns what the label of a statement, or a heading above it, says about it.
fn block_role(page: &ParsedLog, statement: &LogStatement) -> Option<BlockRole> {
    let label = role_of_label(&sections::normalized_label(statement.label_text()));
    let above = std::iter::successors(statement.heading, |&it| page.heads[it].parent);
    let mut heads = statement.lead.into_iter().chain(above);
    label.or_else(|| heads.find_map(|it| role_of_label(&page.heads[it].text)))
}
