//! The word lists of `config/lexicon/`: data, so that a word or a language is added without touching a rule.
//!
//! Each file is part of the program, as JSON made from it by `build.rs`, and is parsed when it is first used. A list is
//! either plain or keyed by language; a keyed list is the lists of its languages one after the other, in the order of
//! the file.

use std::{borrow::Cow, collections::BTreeMap, fmt, ops::Deref, sync::LazyLock};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// Words or phrases, in the order of their file.
#[derive(Clone, Debug, Default)]
pub(crate) struct LexiconWords(Vec<&'static str>);

impl Deref for LexiconWords {
    type Target = [&'static str];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'de: 'static> Deserialize<'de> for LexiconWords {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordsVisitor;

        impl<'de: 'static> Visitor<'de> for WordsVisitor {
            type Value = LexiconWords;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of words, or a map from language to such a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = seq.next_element::<LexiconWord>()? {
                    words.push(word.text());
                }
                Ok(LexiconWords(words))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut words = Vec::new();
                while let Some((_, list)) = map.next_entry::<&'de str, Vec<LexiconWord>>()? {
                    words.extend(list.into_iter().map(LexiconWord::text));
                }
                Ok(LexiconWords(words))
            }
        }

        deserializer.deserialize_any(WordsVisitor)
    }
}

/// A word of a list. JSON has one with a quotation mark in other bytes.
#[derive(Deserialize)]
#[serde(transparent)]
struct LexiconWord(#[serde(borrow)] Cow<'static, str>);

impl LexiconWord {
    /// Returns the word. One that is no part of the JSON is kept as long as the program runs, like all others.
    fn text(self) -> &'static str {
        match self.0 {
            Cow::Borrowed(word) => word,
            Cow::Owned(word) => word.leak(),
        }
    }
}

/// Lists of which each holds the forms or spellings of one thing, the first of which stands for all.
type FormLists = Vec<Vec<&'static str>>;

/// Values of words, by language.
type ValuesByLanguage<V> = BTreeMap<&'static str, BTreeMap<&'static str, V>>;

/// `annotations.yaml`: whether an open item was resolved, and whether a figure still holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct AnnotationLexicon {
    pub(crate) done: LexiconWords,
    pub(crate) not_done: LexiconWords,
    pub(crate) open: LexiconWords,
    pub(crate) value_links: LexiconWords,
    pub(crate) nothing_open: LexiconWords,
}

/// `authorship.yaml`: text in a log that nobody wrote as a note.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct AuthorshipLexicon {
    pub(crate) session_titles: LexiconWords,
    pub(crate) session_fields: LexiconWords,
    pub(crate) session_sections: LexiconWords,
    pub(crate) owner_roles: LexiconWords,
    pub(crate) assistant_roles: LexiconWords,
    pub(crate) machine_roles: LexiconWords,
    pub(crate) channels: LexiconWords,
    pub(crate) group_marks: LexiconWords,
    pub(crate) metadata_headers: LexiconWords,
    pub(crate) metadata_marks: LexiconWords,
    pub(crate) metadata_lines: LexiconWords,
    pub(crate) reply_tags: LexiconWords,
    pub(crate) silent_replies: LexiconWords,
    pub(crate) heartbeat_tokens: LexiconWords,
    /// By the name of the reason.
    pub(crate) prompts: BTreeMap<&'static str, LexiconWords>,
    pub(crate) paragraphs: BTreeMap<&'static str, LexiconWords>,
    pub(crate) notices: BTreeMap<&'static str, LexiconWords>,
    pub(crate) spans: Vec<TextSpan>,
    pub(crate) dream_titles: LexiconWords,
    pub(crate) dream_fields: LexiconWords,
    pub(crate) promotion_marks: LexiconWords,
    pub(crate) heartbeat_titles: LexiconWords,
    pub(crate) reading_titles: LexiconWords,
    pub(crate) reading_title_ends: LexiconWords,
    pub(crate) source_fields: LexiconWords,
    pub(crate) post_fields: LexiconWords,
    pub(crate) mail_subjects: LexiconWords,
    pub(crate) mail_correspondents: LexiconWords,
    pub(crate) mail_fields: LexiconWords,
    pub(crate) mail_sign_offs: LexiconWords,
    pub(crate) own_titles: LexiconWords,
    pub(crate) own_title_words: LexiconWords,
    pub(crate) own_words: LexiconWords,
    pub(crate) own_characters: LexiconWords,
    pub(crate) speech_verbs: LexiconWords,
    pub(crate) message_words: LexiconWords,
    pub(crate) speech_characters: LexiconWords,
    pub(crate) owner_words: LexiconWords,
    pub(crate) owner_subjects: LexiconWords,
    pub(crate) own_work: LexiconWords,
    pub(crate) own_states: LexiconWords,
    pub(crate) marketing: LexiconWords,
}

/// Text between two marks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TextSpan {
    /// The name of the reason.
    pub(crate) reason: &'static str,
    /// The start of its first line.
    pub(crate) opens: &'static str,
    /// A part of its last line.
    pub(crate) closes: &'static str,
}

/// `calendar.yaml`: months, weekdays, and days by their distance.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct CalendarLexicon {
    /// Per language twelve lists: the name, then its short forms.
    pub(crate) months: BTreeMap<&'static str, FormLists>,
    pub(crate) weekdays: BTreeMap<&'static str, WeekdayNames>,
    /// Days from the day of the text.
    pub(crate) relative_days: ValuesByLanguage<i64>,
    pub(crate) ambiguous_days: LexiconWords,
    pub(crate) time_zones: LexiconWords,
    pub(crate) period_steps: ValuesByLanguage<i64>,
}

/// The weekdays in one language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct WeekdayNames {
    /// From Monday to Sunday.
    pub(crate) names: LexiconWords,
    /// From Monday to Sunday: "mondays".
    #[serde(default)]
    pub(crate) recurring: LexiconWords,
    /// By the number of the day; Monday is 1.
    #[serde(default)]
    pub(crate) regional: BTreeMap<&'static str, u32>,
}

/// `claims.yaml`: who did what, and what is negated.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct ClaimLexicon {
    pub(crate) negations: LexiconWords,
    /// What negates within a run of a script without spaces.
    pub(crate) negations_in_runs: LexiconWords,
    pub(crate) cancels_negation: LexiconWords,
    pub(crate) implicit_negations: LexiconWords,
    pub(crate) failures: LexiconWords,
    pub(crate) troubles: LexiconWords,
    pub(crate) repairs: LexiconWords,
    pub(crate) now_words: LexiconWords,
    pub(crate) no_longer: LexiconWords,
    pub(crate) use_openers: LexiconWords,
    pub(crate) without_words: LexiconWords,
    pub(crate) pronouns: LexiconWords,
    pub(crate) none_words: LexiconWords,
    /// Words of names, and how scripts without spaces write them.
    pub(crate) translated_names: BTreeMap<&'static str, LexiconWords>,
    pub(crate) by_words: LexiconWords,
    pub(crate) of_words: LexiconWords,
    pub(crate) to_be: LexiconWords,
    pub(crate) terminations: LexiconWords,
    pub(crate) requirements: LexiconWords,
    pub(crate) sole_words: LexiconWords,
    pub(crate) ban_nouns: LexiconWords,
    pub(crate) changes: LexiconWords,
    pub(crate) from_words: LexiconWords,
    pub(crate) to_words: LexiconWords,
    pub(crate) advice_openers: LexiconWords,
    pub(crate) ban_openers: LexiconWords,
    pub(crate) action_forms: FormLists,
    pub(crate) between_subject_and_verb: LexiconWords,
    pub(crate) before_things: LexiconWords,
    pub(crate) unnamed_subjects: LexiconWords,
    pub(crate) attempts: LexiconWords,
    pub(crate) harms: LexiconWords,
    pub(crate) otherwise_words: LexiconWords,
    pub(crate) names_with_no: LexiconWords,
    pub(crate) first_names: LexiconWords,
    pub(crate) german_noun_endings: LexiconWords,
    pub(crate) common_german_nouns: LexiconWords,
    pub(crate) german_words: LexiconWords,
}

/// `strength.yaml`: words that make a statement stronger than its lines.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct StrengthLexicon {
    pub(crate) groups: Vec<StrengthGroup>,
    pub(crate) others: LexiconWords,
    pub(crate) back_references: LexiconWords,
    pub(crate) objects: LexiconWords,
    pub(crate) past_forms: LexiconWords,
    pub(crate) order_verbs: LexiconWords,
    pub(crate) cancelled_after: LexiconWords,
    pub(crate) cancelled_before: LexiconWords,
    pub(crate) counting: LexiconWords,
    pub(crate) articles: LexiconWords,
    pub(crate) reasons: LexiconWords,
}

/// Words that are equally strong.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct StrengthGroup {
    pub(crate) words: LexiconWords,
    /// Words of lines that support each of them; `not` stands for any negation.
    pub(crate) support: LexiconWords,
}

/// `cues.yaml`: what kind of statement a sentence of a log is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct CueLexicon {
    pub(crate) feedback_titles: LexiconWords,
    pub(crate) report_subjects: LexiconWords,
    pub(crate) polite_words: LexiconWords,
    pub(crate) lesson_titles: LexiconWords,
    pub(crate) lesson_nouns: LexiconWords,
    pub(crate) decision_titles: LexiconWords,
    pub(crate) preference_titles: LexiconWords,
    pub(crate) reason_titles: LexiconWords,
    pub(crate) how_to_apply_titles: LexiconWords,
    pub(crate) task_titles: LexiconWords,
    pub(crate) negations: LexiconWords,
    pub(crate) after_so: LexiconWords,
    pub(crate) clause_starts: LexiconWords,
    pub(crate) name_prepositions: LexiconWords,
    pub(crate) not_reasons: LexiconWords,
    pub(crate) first_person: LexiconWords,
    pub(crate) to_be_present: LexiconWords,
    pub(crate) location_prepositions: LexiconWords,
    pub(crate) person_adverbs: LexiconWords,
    pub(crate) person_pronouns: LexiconWords,
    pub(crate) not_reports: LexiconWords,
    pub(crate) stop_words: LexiconWords,
    pub(crate) deeds: Vec<DeedForms>,
    /// Phrases that are looked up among the words of a text, by the name of their table.
    pub(crate) tables: BTreeMap<&'static str, LexiconWords>,
}

/// The verb of a task, and of the report that it was done.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct DeedForms {
    pub(crate) to_do: LexiconWords,
    pub(crate) done: LexiconWords,
}

/// `hedging.yaml`: what a source only supposes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct HedgingLexicon {
    pub(crate) hedges: LexiconWords,
    pub(crate) conditions: LexiconWords,
    pub(crate) opening_conditions: LexiconWords,
    pub(crate) italian_after_si: LexiconWords,
    pub(crate) spanish_or_french: LexiconWords,
    pub(crate) no_condition_after: LexiconWords,
    pub(crate) permission_words: LexiconWords,
    pub(crate) no_hedge_after_could: LexiconWords,
    pub(crate) before_month_may: LexiconWords,
    pub(crate) after_month_may: LexiconWords,
    pub(crate) item_hedges: LexiconWords,
    pub(crate) settling_words: LexiconWords,
    pub(crate) stop_words: LexiconWords,
}

/// `languages.yaml`: the frequent words of one language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct LanguageWords {
    /// They show the language and say nothing else.
    pub(crate) function_words: LexiconWords,
    /// More words that say nothing: greetings, agreement, filler.
    #[serde(default)]
    pub(crate) filler_words: LexiconWords,
}

/// `quantities.yaml`: numbers and units in words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct QuantityLexicon {
    pub(crate) units: UnitLexicon,
    /// Powers of ten.
    pub(crate) magnitudes: BTreeMap<&'static str, i32>,
    pub(crate) numbers: ValuesByLanguage<u32>,
    /// What numbers count, in languages without spaces.
    pub(crate) counters: LexiconWords,
    pub(crate) ambiguous_numbers: LexiconWords,
}

/// Spellings of units.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct UnitLexicon {
    /// Percent and money, which may not be added to a bare number.
    pub(crate) strict: FormLists,
    pub(crate) lenient: FormLists,
}

/// `search.yaml`: how a question is meant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct SearchLexicon {
    pub(crate) stop_words: LexiconWords,
    pub(crate) irregular_forms: FormLists,
    pub(crate) question_words: LexiconWords,
    pub(crate) former_words: LexiconWords,
    pub(crate) past_words: LexiconWords,
    pub(crate) present_words: LexiconWords,
    pub(crate) time_words: LexiconWords,
    pub(crate) event_name_ends: LexiconWords,
    pub(crate) articles: LexiconWords,
    pub(crate) negations: LexiconWords,
    pub(crate) failure_words: LexiconWords,
    pub(crate) korean_particles: LexiconWords,
    pub(crate) state_labels: LexiconWords,
    pub(crate) passing_label_words: LexiconWords,
    pub(crate) revocable_words: LexiconWords,
    pub(crate) revoked_words: LexiconWords,
    pub(crate) changed_words: LexiconWords,
    pub(crate) hold_words: LexiconWords,
    pub(crate) about_words: LexiconWords,
    pub(crate) take_words: LexiconWords,
    pub(crate) cancel_words: LexiconWords,
    pub(crate) passive_words: LexiconWords,
    pub(crate) unsure_words: LexiconWords,
    pub(crate) day_articles: LexiconWords,
    pub(crate) removal_words: LexiconWords,
    pub(crate) switch_words: LexiconWords,
    pub(crate) value_change_words: LexiconWords,
    pub(crate) future_words: LexiconWords,
    pub(crate) move_words: LexiconWords,
    pub(crate) stating_words: LexiconWords,
    pub(crate) change_words: LexiconWords,
    pub(crate) additions: LexiconWords,
    pub(crate) numbered_nouns: LexiconWords,
    pub(crate) to_words: LexiconWords,
    pub(crate) instead_words: LexiconWords,
    pub(crate) correction_words: LexiconWords,
    pub(crate) plan_words: LexiconWords,
    pub(crate) span_ends: LexiconWords,
}

/// `sections.yaml`: the section of a summary that a statement belongs to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct SectionLexicon {
    pub(crate) cues: Vec<SectionCueList>,
    pub(crate) plan_words: LexiconWords,
    pub(crate) idea_words: LexiconWords,
    pub(crate) plan_followers: LexiconWords,
    pub(crate) drawn_plans: LexiconWords,
    pub(crate) reasons: LexiconWords,
    pub(crate) changes: LexiconWords,
    pub(crate) template_titles: LexiconWords,
    pub(crate) attribute_labels: LexiconWords,
    pub(crate) note_labels: LexiconWords,
    pub(crate) attendance_labels: LexiconWords,
    pub(crate) result_words: LexiconWords,
    pub(crate) share_words: LexiconWords,
    pub(crate) stamp_labels: LexiconWords,
    pub(crate) routine_reports: LexiconWords,
    pub(crate) reading_verbs: LexiconWords,
    pub(crate) instruction_files: LexiconWords,
    pub(crate) normal_states: LexiconWords,
    pub(crate) unspecific_columns: LexiconWords,
    pub(crate) number_columns: LexiconWords,
    pub(crate) state_marks: StateMarks,
}

/// `wisdom.yaml`: what the titles and labels of a log say about the bullets of `WISDOM.md`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct WisdomLexicon {
    pub(crate) generic_titles: LexiconWords,
    pub(crate) unsettled_words: LexiconWords,
    pub(crate) former_titles: LexiconWords,
    pub(crate) wish_labels: LexiconWords,
    pub(crate) guidance_nouns: LexiconWords,
    pub(crate) profile_titles: LexiconWords,
    pub(crate) profile_labels: LexiconWords,
    pub(crate) generic_names: LexiconWords,
    pub(crate) platform_names: LexiconWords,
    pub(crate) person_verbs: LexiconWords,
    pub(crate) profile_verbs: LexiconWords,
    pub(crate) hedged_verbs: LexiconWords,
    pub(crate) words_for_today: LexiconWords,
    pub(crate) lasting_events: LexiconWords,
    pub(crate) address_verbs: LexiconWords,
    pub(crate) study_words: LexiconWords,
    pub(crate) report_words: LexiconWords,
    pub(crate) commit_words: LexiconWords,
    pub(crate) schedule_words: LexiconWords,
    pub(crate) lesson_words: LexiconWords,
    pub(crate) articles: LexiconWords,
    pub(crate) removed_words: LexiconWords,
    pub(crate) unreal_words: LexiconWords,
    pub(crate) pause_words: LexiconWords,
    pub(crate) passive_words: LexiconWords,
    pub(crate) rule_labels: LexiconWords,
    pub(crate) confirmations: LexiconWords,
    pub(crate) due_words: LexiconWords,
    pub(crate) boundary_words: LexiconWords,
    pub(crate) decision_words: LexiconWords,
    pub(crate) rule_words: LexiconWords,
    pub(crate) round_words: LexiconWords,
    pub(crate) review_words: LexiconWords,
    pub(crate) problem_labels: LexiconWords,
    pub(crate) cure_labels: LexiconWords,
    pub(crate) attribute_openers: LexiconWords,
    pub(crate) since_words: LexiconWords,
    pub(crate) done_words: LexiconWords,
    pub(crate) noun_articles: LexiconWords,
    pub(crate) copulas: LexiconWords,
    pub(crate) place_prepositions: LexiconWords,
}

/// Marks that show a state.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct StateMarks {
    pub(crate) done: LexiconWords,
    pub(crate) open: LexiconWords,
    /// They also point out what is no state.
    pub(crate) caution: LexiconWords,
}

/// Phrases that give a statement a class when they are at a position of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct SectionCueList {
    pub(crate) class: StatementClass,
    pub(crate) position: CuePosition,
    pub(crate) phrases: LexiconWords,
}

/// The class of a statement, which decides its section in a week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatementClass {
    /// Done, shipped, fixed, measured.
    Outcome,
    /// Chosen, and perhaps why.
    Decision,
    /// Blocked, waiting, to do, asked.
    Open,
    /// The rest.
    Context,
}

/// Where a cue must be to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CuePosition {
    /// Among the first words.
    Front,
    /// Anywhere.
    Any,
    /// In a heading or lead-in.
    Heading,
}

/// `sentences.yaml`: where sentences and clauses end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct SentenceLexicon {
    pub(crate) abbreviations: LexiconWords,
    pub(crate) statement_abbreviations: LexiconWords,
    pub(crate) clause_conjunctions: LexiconWords,
    pub(crate) list_conjunctions: LexiconWords,
    pub(crate) back_references: LexiconWords,
    pub(crate) early_references: LexiconWords,
    pub(crate) first_persons: LexiconWords,
    pub(crate) list_references: LexiconWords,
    pub(crate) counts: LexiconWords,
    pub(crate) after_counts: LexiconWords,
    pub(crate) definite_articles: LexiconWords,
    pub(crate) subjectless: LexiconWords,
    pub(crate) subjectless_before_numbers: LexiconWords,
    pub(crate) contacts: LexiconWords,
    pub(crate) inner_references: LexiconWords,
    pub(crate) opening_conditions: LexiconWords,
    pub(crate) kept_clauses: LexiconWords,
    pub(crate) unspaced: UnspacedSentenceLexicon,
    pub(crate) conjunctions: LexiconWords,
    pub(crate) clause_openers: LexiconWords,
    pub(crate) contrasts: LexiconWords,
    pub(crate) no_contrast_after: LexiconWords,
    pub(crate) clause_verbs: LexiconWords,
}

/// The same for scripts without spaces, which are matched by characters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct UnspacedSentenceLexicon {
    pub(crate) back_references: LexiconWords,
    pub(crate) opening_conditions: LexiconWords,
    pub(crate) kept_clauses: LexiconWords,
    /// Endings of a clause with which the next one belongs together.
    pub(crate) reason_ends: LexiconWords,
    pub(crate) binding_ends: LexiconWords,
}

/// `sessions.yaml`: orders and lists in messages to and from an agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct SessionLexicon {
    pub(crate) order_prefixes: LexiconWords,
    pub(crate) order_lead_ins: LexiconWords,
    pub(crate) prohibitions: LexiconWords,
    pub(crate) passing_prohibitions: LexiconWords,
    pub(crate) passing_times: LexiconWords,
    pub(crate) setting_verbs: LexiconWords,
    pub(crate) setting_prepositions: LexiconWords,
    pub(crate) setting_pronouns: LexiconWords,
    pub(crate) reply_words: LexiconWords,
    pub(crate) after_number_starters: LexiconWords,
    pub(crate) open_labels: LexiconWords,
    pub(crate) decision_labels: LexiconWords,
    pub(crate) done_labels: LexiconWords,
}

/// Declares the lexicon files: each is parsed when it is first used.
macro_rules! lexicons {
    ($($(#[$doc:meta])* $name:ident: $lexicon:ty = $file:literal;)*) => {
        $(
            $(#[$doc])*
            pub(crate) static $name: LazyLock<$lexicon> = LazyLock::new(|| {
                parse(include_str!(concat!(env!("OUT_DIR"), "/", $file, ".json")))
            });
        )*

        /// Each lexicon by its name, with the text of its file and what parses it.
        #[cfg(test)]
        const FILES: &[(&str, &str, fn())] = &[$((
            stringify!($name),
            include_str!(concat!("../../config/lexicon/", $file, ".yaml")),
            || { LazyLock::force(&$name); },
        )),*];
    };
}

lexicons! {
    /// Words by which a summary notices that something was resolved.
    ANNOTATIONS: AnnotationLexicon = "annotations";
    /// What host programs of agents write into logs.
    AUTHORSHIP: AuthorshipLexicon = "authorship";
    /// Names of months and days.
    CALENDAR: CalendarLexicon = "calendar";
    /// Words by which grounding compares claims.
    CLAIMS: ClaimLexicon = "claims";
    /// Cue phrases of memories and wisdom entries.
    CUES: CueLexicon = "cues";
    /// Hedging words.
    HEDGING: HedgingLexicon = "hedging";
    /// Frequent words of each language, by its code.
    LANGUAGES: BTreeMap<&'static str, LanguageWords> = "languages";
    /// Numbers and units in words.
    QUANTITIES: QuantityLexicon = "quantities";
    /// Words of a search.
    SEARCH: SearchLexicon = "search";
    /// Cues of the sections of a summary.
    SECTIONS: SectionLexicon = "sections";
    /// Words at which texts are cut.
    SENTENCES: SentenceLexicon = "sentences";
    /// Orders and lists in messages of sessions.
    SESSIONS: SessionLexicon = "sessions";
    /// Words that make a statement stronger.
    STRENGTH: StrengthLexicon = "strength";
    /// Titles and labels for the bullets of `WISDOM.md`.
    WISDOM: WisdomLexicon = "wisdom";
}

/// Parses a file of word lists.
///
/// # Panics
///
/// If the file is broken, which the tests of this module rule out: they parse each one.
fn parse<T: Deserialize<'static>>(json: &'static str) -> T {
    serde_json::from_str(json).expect("a test parses each file of word lists")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_yaml::Value;

    use super::*;

    #[test]
    fn each_file_is_parsed_and_none_is_forgotten() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/config/lexicon");
        let on_disk: BTreeSet<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(
            on_disk,
            FILES.iter().map(|it| format!("{}.yaml", it.0.to_lowercase())).collect()
        );
        for (_, _, force) in FILES {
            force();
        }
    }

    /// Checks each list below `value`: words in lower case, none twice in a list, no list empty.
    fn check(at: &str, value: &Value) {
        match value {
            Value::Mapping(map) => {
                assert!(!map.is_empty(), "{at} is empty");
                for (key, value) in map {
                    let key = key.as_str().unwrap();
                    assert_eq!(key, key.to_lowercase(), "{at}");
                    check(&format!("{at}.{key}"), value);
                }
            }
            Value::Sequence(list) => {
                assert!(!list.is_empty(), "{at} is empty");
                let mut seen = BTreeSet::new();
                for value in list {
                    check(at, value);
                    if let Some(word) = value.as_str() {
                        assert!(seen.insert(word), "{at}: `{word}` is there twice");
                    }
                }
            }
            Value::String(word) => {
                assert!(!word.trim().is_empty(), "{at}");
                assert_eq!(*word, word.to_lowercase(), "{at}");
            }
            Value::Number(_) => {}
            other => panic!("{at}: {other:?} is no word; quote it"),
        }
    }

    #[test]
    fn lists_hold_each_word_once_and_in_lower_case() {
        for (file, text, _) in FILES {
            check(file, &serde_yaml::from_str(text).unwrap());
        }
    }

    #[test]
    fn calendars_are_whole() {
        assert!(CALENDAR.months.values().all(|it| it.len() == 12));
        for days in CALENDAR.weekdays.values() {
            assert_eq!(days.names.len(), 7);
            assert!(days.recurring.is_empty() || days.recurring.len() == 7);
            assert!(days.regional.values().all(|it| (1..=7).contains(it)));
        }
    }
}
