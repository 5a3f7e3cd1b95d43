//! Cue phrases: the words by which a statement shows what it is.
//!
//! The phrases are in `config/lexicon/cues.yaml`, so that a phrase or a language is added without touching a
//! rule. `statements` matches tables of them word by word. Called by `memories` and `wisdom`.

use std::sync::LazyLock;

use crate::text::{calendar, lexicon::CUES};

/// Phrases that are looked up among the words of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct CueTable {
    /// The place in [`ALL_TABLES`], and so the bit that marks a word as the first of one of the phrases.
    index: u32,
    /// The key in `cues.yaml`.
    name: &'static str,
}

impl CueTable {
    const fn new(index: u32, name: &'static str) -> Self {
        Self { index, name }
    }

    /// Returns the phrases.
    pub(super) fn phrases(self) -> &'static [&'static str] {
        static MONTH_NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(calendar::month_names);
        if self.index == MONTHS.index {
            return &MONTH_NAMES;
        }
        CUES.tables.get(self.name).map_or(&[], |it| it)
    }

    /// Returns the bit of this table in a mask of tables.
    pub(super) const fn bit(self) -> u64 {
        1 << self.index
    }

    /// Returns whether a word is one of the phrases.
    pub(super) fn contains(self, word: &str) -> bool {
        self.phrases().contains(&word)
    }
}

/// Every [`CueTable`], each at its place.
pub(super) const ALL_TABLES: &[CueTable] = &[
    RULE,
    RULE_OPENERS,
    NOT_RULES,
    FROM_NOW_ON,
    INSTRUCTED,
    LASTING_WORDS,
    BECAUSE,
    SO_THAT,
    OTHERWISE,
    SO_FIRST_PERSON,
    ARTICLES,
    INSTEAD,
    DECIDED,
    NOT_DECISIONS,
    PREFERS,
    WANTS,
    HABIT,
    FIRST_PERSON_FACTS,
    CONDITIONS,
    HAS_PREFERENCE,
    PREFERENCE_AS,
    PERSON_FACTS,
    FAVORITE,
    PERSONS,
    IS_A,
    DEADLINE,
    MONTHS,
    FAILURES,
    REFERENCE_NOUNS,
    LIVES_AT,
    STORED_IN,
    BACK_REFERENCES,
    TRANSIENT,
    NARRATIVE,
    ROUTINE,
    REPORT_OPENERS,
    TASK_OPENERS,
    LASTING_LIMITS,
    ROLES,
];

const _: () = {
    assert!(ALL_TABLES.len() <= 64, "a mask has a bit for each table");
    let mut at = 0;
    while at < ALL_TABLES.len() {
        assert!(ALL_TABLES[at].index as usize == at, "each table is at its own place");
        at += 1;
    }
};

/// Tables of which one must match where something is said of a person.
pub(super) const PERSON_CUES: &[CueTable] =
    &[PREFERS, WANTS, HAS_PREFERENCE, FAVORITE, PERSON_FACTS, IS_A, FROM_NOW_ON, PREFERENCE_AS];

/// Words that make a sentence a lasting rule.
pub(super) const RULE: CueTable = CueTable::new(0, "rule");

/// How a rule begins that names nobody: the imperative.
pub(super) const RULE_OPENERS: CueTable = CueTable::new(1, "rule_openers");

/// Phrases that look like the beginning of a rule but are small talk.
pub(super) const NOT_RULES: CueTable = CueTable::new(2, "not_rules");

/// Openers of a lasting wish, which reaches beyond the current task.
pub(super) const FROM_NOW_ON: CueTable = CueTable::new(3, "from_now_on");

/// Somebody instructed the writer. Counts only together with one of [`LASTING_WORDS`].
pub(super) const INSTRUCTED: CueTable = CueTable::new(4, "instructed");

/// Words that make an instruction outlast its task.
pub(super) const LASTING_WORDS: CueTable = CueTable::new(5, "lasting_words");

/// Markers before a reason; the reason is what follows.
pub(super) const BECAUSE: CueTable = CueTable::new(6, "because");

/// Markers that are part of the reason.
pub(super) const SO_THAT: CueTable = CueTable::new(7, "so_that");

/// Markers of what happens otherwise; they may also end the reason.
pub(super) const OTHERWISE: CueTable = CueTable::new(8, "otherwise");

/// `so` continues with what the writer did.
pub(super) const SO_FIRST_PERSON: CueTable = CueTable::new(9, "so_first_person");

/// Articles before a word for a person: "the user".
pub(super) const ARTICLES: CueTable = CueTable::new(10, "articles");

/// What a rule or decision is weighed against: enough of a reason next to the verb of a decision.
pub(super) const INSTEAD: CueTable = CueTable::new(11, "instead");

/// How a decision begins.
pub(super) const DECIDED: CueTable = CueTable::new(12, "decided");

/// Phrases that look like the beginning of a decision but report something else.
pub(super) const NOT_DECISIONS: CueTable = CueTable::new(13, "not_decisions");

/// Verbs and nouns of a preference; the words before must name the person.
pub(super) const PREFERS: CueTable = CueTable::new(14, "prefers");

/// A wish, which lasts only if one of [`HABIT`] follows.
pub(super) const WANTS: CueTable = CueTable::new(15, "wants");

/// Words that make a wish or a fact a regular one.
pub(super) const HABIT: CueTable = CueTable::new(16, "habit");

/// First words of a wish or a fact that people state about themselves.
pub(super) const FIRST_PERSON_FACTS: CueTable = CueTable::new(17, "first_person_facts");

/// First words of what is open or supposed.
pub(super) const CONDITIONS: CueTable = CueTable::new(18, "conditions");

/// What a person has; the rest of the sentence says what it is: "Ana's preference for ...".
pub(super) const HAS_PREFERENCE: CueTable = CueTable::new(19, "has_preference");

/// Half of a preference: what it is must follow after a colon.
pub(super) const PREFERENCE_AS: CueTable = CueTable::new(20, "preference_as");

/// Phrases of a lasting fact about a person, anywhere in the sentence.
pub(super) const PERSON_FACTS: CueTable = CueTable::new(21, "person_facts");

/// What a person likes best.
pub(super) const FAVORITE: CueTable = CueTable::new(22, "favorite");

/// People who are named by what they are.
pub(super) const PERSONS: CueTable = CueTable::new(23, "persons");

/// "is our", "is a": between a name and a role.
pub(super) const IS_A: CueTable = CueTable::new(24, "is_a");

/// What has a date by which it must be ready.
pub(super) const DEADLINE: CueTable = CueTable::new(25, "deadline");

/// Names of months, for dates in words. They are in `calendar.yaml`.
pub(super) const MONTHS: CueTable = CueTable::new(26, "months");

/// Words for what went wrong: the lesson that follows has its reason there.
pub(super) const FAILURES: CueTable = CueTable::new(27, "failures");

/// What a link must be of to be worth keeping.
pub(super) const REFERENCE_NOUNS: CueTable = CueTable::new(28, "reference_nouns");

/// Between a thing and where it is found.
pub(super) const LIVES_AT: CueTable = CueTable::new(29, "lives_at");

/// Between a thing and the named, external place where it is kept.
pub(super) const STORED_IN: CueTable = CueTable::new(30, "stored_in");

/// Openers that point back to something: the statement cannot stand alone.
pub(super) const BACK_REFERENCES: CueTable = CueTable::new(31, "back_references");

/// Words that make a statement a guess, or tie it to the day.
pub(super) const TRANSIENT: CueTable = CueTable::new(32, "transient");

/// Verbs and pronouns of a story: what happened once, to people named elsewhere.
pub(super) const NARRATIVE: CueTable = CueTable::new(33, "narrative");

/// Words of routine and of the state of one task.
pub(super) const ROUTINE: CueTable = CueTable::new(34, "routine");

/// Verbs that open a report of something done, besides those in `-ed`.
pub(super) const REPORT_OPENERS: CueTable = CueTable::new(35, "report_openers");

/// Openers of a task still to do, or of one step.
pub(super) const TASK_OPENERS: CueTable = CueTable::new(36, "task_openers");

/// Words that make a recurring statement a limit, a habit, or a lasting rule.
pub(super) const LASTING_LIMITS: CueTable = CueTable::new(37, "lasting_limits");

/// Roles of which a team has one: "Dana is our release manager".
pub(super) const ROLES: CueTable = CueTable::new(38, "roles");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_of_the_file_is_listed_and_has_phrases() {
        let named = ALL_TABLES.iter().map(|it| it.name).filter(|it| *it != MONTHS.name);
        let mut named: Vec<&str> = named.collect();
        named.sort_unstable();
        assert_eq!(named, CUES.tables.keys().copied().collect::<Vec<_>>());
        assert!(ALL_TABLES.iter().all(|it| !it.phrases().is_empty()));
    }
}
