//! Reads a block and returns its best memory: persons and decisions here, other kinds in their own modules.

use std::{collections::BTreeSet, sync::LazyLock};

use super::{
    CODE_SHARE_MAX, NAME_CHARS_MAX,
    candidate::MemoryCandidate,
    deadlines::deadline,
    keep_mark::without_keep,
    persons::{about_person, opening_label, preference_of, speaker},
    reasons::{StatedReason, reason_in_next, split_at_mark, split_reason},
    references::reference,
    reports::is_report,
    roles::{BlockRole, BlockRoles, role_of_label},
};
use crate::{
    engine::extractive::{
        cue_phrases,
        routine_reports::is_routine_report,
        statements::{
            blocks::{BlockShape, LogBlock, LogSentence},
            labels::{is_one_of_titles, split_label},
            self_contained::{code_share, is_self_contained},
            titles::{capitalize_title, title_of},
            word_list::WordList,
        },
    },
    memory::typed::MemoryType,
    text::{calendar, lexicon::CUES},
};

pub(super) struct MemoryExtractor<'a> {
    pub(super) blocks: &'a [LogBlock],
    pub(super) roles: BlockRoles<'a>,
}

impl MemoryExtractor<'_> {
    /// Returns the best memory of one block, if any.
    pub(super) fn read_block(&self, at: usize) -> Option<MemoryCandidate> {
        let block = &self.blocks[at];
        match block.shape {
            BlockShape::Heading(_) => return self.titled_lesson(at),
            BlockShape::Bullet { task: true } => return None,
            BlockShape::Bullet { task: false } | BlockShape::Paragraph | BlockShape::Row => {}
        }
        let section = self.roles.role_above(at);
        if matches!(section, Some(BlockRole::Task | BlockRole::Reason)) {
            return None;
        }
        let label = split_label(&block.text);
        let label_role = label.and_then(|(label, _)| role_of_label(label));
        if matches!(label_role, Some(BlockRole::Task | BlockRole::Reason)) {
            return None;
        }
        let role = label_role.or(section);
        if role.is_none() && !may_hold_memory(&block.text) {
            return None;
        }
        let from = match (label_role, label) {
            (Some(_), Some((_, rest))) => rest,
            _ => 0,
        };
        let sentences = block.sentences_from(from);
        let guidance = self
            .feedback(at, role, &sentences)
            .or_else(|| self.person(at, role == Some(BlockRole::Preference), &sentences));
        if block.shape == BlockShape::Row {
            // The dates and links of a table say what is, not what lasts.
            return guidance;
        }
        let lasting =
            guidance.or_else(|| self.decision(at, role == Some(BlockRole::Decision), &sentences));
        if lasting.is_none() && is_routine_report(&block.text) {
            // What a check of old tasks finds is no news of them.
            return None;
        }
        lasting.or_else(|| deadline(&sentences)).or_else(|| reference(block))
    }

    /// Returns a person's preference, role, or lasting wish.
    fn person(
        &self,
        at: usize,
        labelled: bool,
        sentences: &[LogSentence],
    ) -> Option<MemoryCandidate> {
        if labelled {
            let lead = sentences.first().filter(|it| is_self_contained(&it.text))?;
            let opens = lead.words();
            let passing = opens.opens_with(cue_phrases::TASK_OPENERS) || is_report(&lead.text);
            return (!passing && code_share(&lead.text) <= CODE_SHARE_MAX).then(|| {
                let statement = lead.text.clone();
                self.candidate(MemoryType::User, 11, at, &statement, None, lead.lines.clone())
            });
        }
        let speaker = speaker(&self.blocks[at].text);
        let has_cue =
            |it: &&LogSentence| cue_phrases::PERSON_CUES.iter().any(|cues| it.words().has(*cues));
        sentences.iter().filter(has_cue).find_map(|sentence| {
            let (phrase, spoken_at) = match speaker {
                Some((_, rest))
                    if sentence.text.starts_with(opening_label(&self.blocks[at].text)) =>
                {
                    (sentence.text.get(rest..).unwrap_or_default(), true)
                }
                _ => (sentence.text.as_str(), false),
            };
            let wish = preference_of(phrase);
            let phrase = wish.unwrap_or(phrase);
            // A wish may concern a possible event: `… when a date might slip`.
            let certain = phrase.replace(" might ", " ").replace(" could ", " ");
            let about = wish.is_some() || about_person(phrase);
            if !is_self_contained(&certain) || code_share(phrase) > CODE_SHARE_MAX || !about {
                return None;
            }
            let first_person = WordList::of(phrase).iter().any(|w| CUES.first_person.contains(&w));
            let statement = match speaker {
                Some((name, _)) if first_person || spoken_at => format!("{name}: {phrase}"),
                _ => phrase.to_owned(),
            };
            let mut lines = sentence.lines.clone();
            if statement.len() > phrase.len() {
                lines.push(self.blocks[at].first_line());
            }
            let (statement, why) = match split_reason(&statement) {
                Some((claim, why)) => (claim, Some(why)),
                None => (statement, None),
            };
            Some(self.candidate(MemoryType::User, 10, at, &statement, why, lines))
        })
    }

    fn decision(
        &self,
        at: usize,
        labelled: bool,
        sentences: &[LogSentence],
    ) -> Option<MemoryCandidate> {
        sentences.iter().enumerate().find_map(|(i, sentence)| {
            let words = sentence.words();
            let decided = (words.is_marked_as(cue_phrases::DECIDED)
                && !words.opens_with(cue_phrases::NOT_DECISIONS))
                || split_label(&sentence.text).is_some_and(|(_, rest)| {
                    WordList::of(&sentence.text[rest..]).opens_with(cue_phrases::DECIDED)
                });
            let first_of_labelled = labelled && i == 0;
            if (!decided && (!first_of_labelled || is_report(&sentence.text)))
                || code_share(&sentence.text) > if decided { CODE_SHARE_MAX } else { 0.0 }
            {
                return None;
            }
            let (mut statement, mut lines) = (sentence.text.clone(), sentence.lines.clone());
            // A plain `so` explains how a thing works as often as why it was chosen.
            let reason = split_reason(&statement).filter(|(_, why)| {
                decided || !why.starts_with("so ") || why.starts_with("so that ")
            });
            let why = if let Some((claim, why)) = reason {
                statement = claim;
                Some(why)
            } else if let Some(reason) =
                self.labelled_reason(at).or_else(|| reason_in_next(&sentences[i + 1..]))
            {
                lines.extend(reason.lines);
                Some(reason.text)
            } else {
                // A rejected alternative is reason enough only for an explicit decision.
                words.find(cue_phrases::INSTEAD).filter(|_| decided)?;
                let dashed = split_at_mark(&statement, &[" — ", " – "]);
                if let Some((claim, _)) = &dashed {
                    statement.clone_from(claim);
                }
                dashed.map(|(_, why)| why)
            };
            let score = if decided { 9 } else { 7 };
            let last =
                statement.trim_end_matches('.').split_whitespace().next_back().unwrap_or_default();
            // `Check removed` reports a change, and `chose this` names nothing.
            let empty = matches!(last, "this" | "that" | "it" | "them")
                || (!decided && last.ends_with("ed"));
            // Appointments and private matters have reasons, too, but are no project memories.
            let is_private = why
                .as_deref()
                .is_some_and(|why| WordList::of(why).iter().any(|w| CUES.not_reasons.contains(&w)));
            let names_weekday = words.iter().any(|w| calendar::weekday_names().contains(&w));
            (is_self_contained(&statement) && !empty && !is_private && !names_weekday)
                .then(|| self.candidate(MemoryType::Project, score, at, &statement, why, lines))
        })
    }

    /// Returns the reason in a labelled neighbour: a child, or one of the next blocks.
    pub(super) fn labelled_reason(&self, at: usize) -> Option<StatedReason> {
        self.labelled_neighbour(at, &CUES.reason_titles)
    }

    fn labelled_neighbour(&self, at: usize, titles: &[&str]) -> Option<StatedReason> {
        /// The reason of a rule follows closely.
        const REACH: usize = 4;
        self.blocks.iter().enumerate().skip(at + 1).take(REACH).find_map(|(i, block)| {
            let near = block.parent == Some(at)
                || (block.heading == self.blocks[at].heading
                    && block.shape == BlockShape::Paragraph
                    && (at + 1..i)
                        .all(|between| self.blocks[between].shape == BlockShape::Paragraph));
            let (label, rest) = split_label(&block.text)?;
            let text = block.text[rest..].trim();
            (near && is_one_of_titles(label, titles) && !text.is_empty())
                .then(|| StatedReason { text: text.to_owned(), lines: block.lines() })
        })
    }

    pub(super) fn candidate(
        &self,
        kind: MemoryType,
        score: u32,
        at: usize,
        statement: &str,
        why: Option<String>,
        lines: Vec<u32>,
    ) -> MemoryCandidate {
        let how = self.labelled_neighbour(at, &CUES.how_to_apply_titles);
        let mut lines: BTreeSet<u32> = lines.into_iter().collect();
        let how_to_apply = how.map(|how| {
            lines.extend(how.lines);
            how.text
        });
        let statement = without_keep(statement).into_owned();
        let score = score
            + u32::from(how_to_apply.is_some())
            + 4 * u32::from(!self.blocks[at].keep_lines.is_empty());
        let title = capitalize_title(&title_of(&statement, NAME_CHARS_MAX));
        MemoryCandidate {
            kind,
            score,
            title,
            statement,
            why: why.map(|it| without_keep(&it).into_owned()),
            how_to_apply,
            lines,
        }
    }
}

/// Returns false if a block contains none of the words that every rule needs. A fast test: most blocks
/// contain none.
fn may_hold_memory(text: &str) -> bool {
    static TABLES: LazyLock<u64> = LazyLock::new(|| {
        let tables = [
            cue_phrases::INSTRUCTED,
            cue_phrases::RULE_OPENERS,
            cue_phrases::DECIDED,
            cue_phrases::DEADLINE,
            cue_phrases::STORED_IN,
            cue_phrases::ROLES,
        ];
        // `is a` needs a role after it, which is in the list.
        let person =
            cue_phrases::PERSON_CUES.iter().filter(|it| it.bit() != cue_phrases::IS_A.bit());
        tables.iter().chain(person).fold(0, |all, table| all | table.bit())
    });
    text.contains("http") || WordList::may_occur_in(text, *TABLES)
}
