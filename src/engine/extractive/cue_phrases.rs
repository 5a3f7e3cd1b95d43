//! Cue phrases: the words by which a statement shows what it is.
//!
//! The phrases are in `config/lexicon/cues.yaml`, which describes each table; adding a phrase or a language
//! changes no rule. `statements` matches the phrases word by word, for `memories` and `wisdom`.

use std::sync::LazyLock;

use crate::text::{calendar, lexicon::CUES};

/// Phrases that are looked up among the words of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CueTable {
    /// The position in [`ALL_TABLES`].
    index: usize,
    /// The key in `cues.yaml`.
    name: &'static str,
}

impl CueTable {
    pub(super) fn phrases(self) -> &'static [&'static str] {
        type Phrases = LazyLock<Vec<&'static str>>;
        // The names of months are in `calendar.yaml`.
        static MONTH_NAMES: Phrases = LazyLock::new(calendar::month_names);
        static DEEDS: [Phrases; 2] = [
            LazyLock::new(|| CUES.deeds.iter().flat_map(|it| it.to_do.iter().copied()).collect()),
            LazyLock::new(|| CUES.deeds.iter().flat_map(|it| it.done.iter().copied()).collect()),
        ];
        match self.name {
            "months" => &MONTH_NAMES,
            "deeds_to_do" => &DEEDS[0],
            "deeds_done" => &DEEDS[1],
            name => CUES.tables.get(name).map_or(&[], |it| it),
        }
    }

    /// Returns the bit of this table in a mask of tables.
    pub(super) const fn bit(self) -> u64 {
        1 << self.index
    }

    pub(super) fn contains(self, word: &str) -> bool {
        self.phrases().contains(&word)
    }
}

/// Defines a constant for each table, in order, and the list of all.
macro_rules! cue_tables {
    (@after [$($before:literal)*]) => {};
    (@after [$($before:literal)*] $table:ident $name:literal $($rest:tt)*) => {
        pub(super) const $table: CueTable =
            CueTable { index: <[&str]>::len(&[$($before),*]), name: $name };
        cue_tables!(@after [$($before)* $name] $($rest)*);
    };
    ($($table:ident $name:literal)*) => {
        /// Every [`CueTable`] at its index.
        pub(super) const ALL_TABLES: &[CueTable] = &[$($table),*];
        cue_tables!(@after [] $($table $name)*);
    };
}

cue_tables! {
    RULE "rule"
    RULE_OPENERS "rule_openers"
    REQUESTS "requests"
    EXPECTATIONS "expectations"
    OBLIGATIONS "obligations"
    LIMITS "limits"
    NOT_RULES "not_rules"
    FROM_NOW_ON "from_now_on"
    INSTRUCTED "instructed"
    LASTING_WORDS "lasting_words"
    BECAUSE "because"
    SO_THAT "so_that"
    OTHERWISE "otherwise"
    SO_FIRST_PERSON "so_first_person"
    ARTICLES "articles"
    INSTEAD "instead"
    DECIDED "decided"
    NOT_DECISIONS "not_decisions"
    PREFERS "prefers"
    WANTS "wants"
    HABIT "habit"
    FIRST_PERSON_FACTS "first_person_facts"
    CONDITIONS "conditions"
    HAS_PREFERENCE "has_preference"
    PREFERENCE_AS "preference_as"
    PERSON_FACTS "person_facts"
    FAVORITE "favorite"
    PERSONS "persons"
    IS_A "is_a"
    DEADLINE "deadline"
    MONTHS "months"
    FAILURES "failures"
    ERROR_REPORTS "error_reports"
    REFERENCE_NOUNS "reference_nouns"
    LIVES_AT "lives_at"
    STORED_IN "stored_in"
    BACK_REFERENCES "back_references"
    STANDING_ORDERS "standing_orders"
    REMEMBER_THAT "remember_that"
    TRANSIENT "transient"
    DAY_BOUND "day_bound"
    WEEK_BOUND "week_bound"
    NARRATIVE "narrative"
    ROUTINE "routine"
    REPORT_OPENERS "report_openers"
    TASK_OPENERS "task_openers"
    LASTING_LIMITS "lasting_limits"
    ROLES "roles"
    MAKING "making"
    MADE "made"
    DEEDS_TO_DO "deeds_to_do"
    DEEDS_DONE "deeds_done"
    MILESTONES "milestones"
    RETIRED "retired"
    RESUMED "resumed"
    STATES "states"
    SUBJECTS "subjects"
    QUESTION_WORDS "question_words"
}

const _: () = assert!(ALL_TABLES.len() <= 64, "a mask has a bit for each table");

/// The tables of which one must match in a statement about a person.
pub(super) const PERSON_CUES: &[CueTable] =
    &[PREFERS, WANTS, HAS_PREFERENCE, FAVORITE, PERSON_FACTS, IS_A, FROM_NOW_ON, PREFERENCE_AS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_of_the_file_is_listed_and_has_phrases() {
        let elsewhere = [MONTHS.name, DEEDS_TO_DO.name, DEEDS_DONE.name];
        let named = ALL_TABLES.iter().map(|it| it.name).filter(|it| !elsewhere.contains(it));
        let mut named: Vec<&str> = named.collect();
        named.sort_unstable();
        assert_eq!(named, CUES.tables.keys().copied().collect::<Vec<_>>());
        assert!(ALL_TABLES.iter().all(|it| !it.phrases().is_empty()));
    }
}
