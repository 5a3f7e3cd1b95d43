//! Typed memories of one day, found by cue phrases and structure: high precision, no model.
//!
//! A memory is a statement that a line of the log makes by itself and that outlasts its day: a
//! person's preference or role, guidance with its reason, a decision with its reason, a deadline
//! with its date, a place outside where something is found. In doubt there is none. Words are those
//! of the log; a label, a speaker, or a reason is set apart, and never reworded.
//!
//! # Invariants
//!
//! - Text of external origin is never read (`statements` gives no block for it).
//! - Feedback always has a reason; a project memory has a reason, a road not taken, or a date.
//! - The same day and the same existing memories give the same drafts, best first.
//!
//! Called by the extractive engine.

use std::{
    borrow::Cow,
    cell::OnceCell,
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

use super::{
    cue_phrases,
    statements::{
        self, BlockShape, KEEP_MARK, LogBlock, LogSentence, StatementTerms, WordList,
        capitalize_title, code_share, has_keep_mark, is_one_of_titles, is_self_contained,
        is_stop_word, normalized_title, split_label, title_of, truncate_at_word,
    },
};
use crate::{
    engine::{ExtractInput, MemoryDraft},
    memory::{
        address::{Address, Citation},
        decision::Decisions,
        typed::{MemoryType, TypedMemory},
    },
    text::{calendar, lexicon::CUES},
};

/// A day that teaches more than this was read too generously.
const DRAFTS_MAX: usize = 5;
/// `name` in frontmatter.
const NAME_CHARS_MAX: usize = 120;
/// A line of the index: under 120 characters.
const DESCRIPTION_CHARS_MAX: usize = 119;
/// From this share of common content words on, two memories say the same.
const DUPLICATE_OVERLAP: f64 = 0.6;
const DUPLICATE_PREFERENCE_OVERLAP: f64 = 0.4;
/// Above this share of code words a rule is about code, and code can be read.
const CODE_SHARE_MAX: f64 = 0.3;

/// Proposes typed memories from one day; none is the usual answer.
pub(super) fn extract(input: &ExtractInput<'_>) -> Vec<MemoryDraft> {
    let blocks = statements::parse_blocks(input.log);
    let day = MemoryExtractor { blocks: &blocks, roles: BlockRoles::of(&blocks) };
    let mut found: Vec<MemoryCandidate> =
        (0..blocks.len()).filter_map(|at| day.read_block(at)).collect();
    // Best first; of equals the one that was said last, since it may correct the others.
    found.sort_by(|a, b| b.score.cmp(&a.score).then(b.first_line().cmp(&a.first_line())));

    if found.is_empty() {
        return Vec::new();
    }
    let mut known: Vec<ComparableMemory> =
        input.existing.iter().map(ComparableMemory::of_memory).collect();
    let mut drafts = Vec::new();
    for found in found {
        let own = ComparableMemory::of_statement(found.kind, &found.statement, &found.statement);
        if known.iter().any(|it| own.is_duplicate_of(it)) || shares_unchanged_source(&found, input)
        {
            continue;
        }
        let addresses: Vec<Address> = found
            .lines
            .iter()
            .map(|&line| Address { stem: input.log.stem().clone(), line })
            .collect();
        let Some(citation) = Citation::from_addresses(&addresses) else { continue };
        known.push(own);
        drafts.push(found.into_draft(citation));
        if drafts.len() == DRAFTS_MAX {
            break;
        }
    }
    drafts
}

/// What a memory says, for comparing.
struct ComparableMemory {
    kind: MemoryType,
    /// The word that opens the statement: of a person's wish, the name.
    opener: Option<String>,
    gist: StatementTerms,
}

impl ComparableMemory {
    fn of_memory(memory: &TypedMemory) -> Self {
        let all = format!("{} {} {}", memory.name, memory.description, memory.body);
        Self::of_statement(memory.kind, &memory.body, &all)
    }

    fn of_statement(kind: MemoryType, statement: &str, all: &str) -> Self {
        let opener = WordList::of(statement).iter().next().map(str::to_owned);
        Self { kind, opener, gist: StatementTerms::of(all) }
    }

    /// Two wishes of one person need less in common to be the same.
    fn is_duplicate_of(&self, other: &Self) -> bool {
        let one_person =
            self.kind == MemoryType::User && other.kind == self.kind && self.opener == other.opener;
        let same = if one_person { DUPLICATE_PREFERENCE_OVERLAP } else { DUPLICATE_OVERLAP };
        self.gist.containment(&other.gist) >= same || self.gist.similarity(&other.gist) >= same
    }
}

/// What a block holds, before it is compared with what is known.
#[derive(Debug)]
struct MemoryCandidate {
    kind: MemoryType,
    score: u32,
    title: String,
    statement: String,
    why: Option<String>,
    how_to_apply: Option<String>,
    /// All lines whose words are used.
    lines: BTreeSet<u32>,
}

impl MemoryCandidate {
    fn first_line(&self) -> u32 {
        self.lines.first().copied().unwrap_or_default()
    }

    fn into_draft(self, citation: Citation) -> MemoryDraft {
        MemoryDraft {
            kind: self.kind,
            topic: topic_words(&self.title, &self.statement),
            name: truncate_at_word(&self.title, NAME_CHARS_MAX),
            description: truncate_at_word(&self.statement, DESCRIPTION_CHARS_MAX),
            statement: self.statement,
            why: self.why,
            how_to_apply: self.how_to_apply,
            citation,
            updates: None,
        }
    }
}

/// The sections that say what the blocks beneath them are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockRole {
    /// What was said about somebody's work.
    Feedback,
    /// Guidance, named as such.
    Lesson,
    Decision,
    Preference,
    Reason,
    Task,
}

struct MemoryExtractor<'a> {
    blocks: &'a [LogBlock],
    roles: BlockRoles<'a>,
}

/// What the titled blocks of a log say; each is asked once for every block beneath it.
pub(super) struct BlockRoles<'a> {
    blocks: &'a [LogBlock],
    roles: Vec<OnceCell<Option<BlockRole>>>,
}

impl<'a> BlockRoles<'a> {
    /// Returns those of a log's blocks.
    pub(super) fn of(blocks: &'a [LogBlock]) -> Self {
        Self { blocks, roles: vec![OnceCell::new(); blocks.len()] }
    }

    /// Returns what the nearest titled block above a block says.
    pub(super) fn role_above(&self, at: usize) -> Option<BlockRole> {
        statements::enclosing_blocks(self.blocks, at).find_map(|above| {
            *self.roles[above].get_or_init(|| {
                let text = self.blocks[above].text.trim_end_matches(':');
                role_of_label(split_label(text).map_or(text, |(label, _)| label))
            })
        })
    }
}

/// A reason, and the lines that it stands on.
struct StatedReason {
    text: String,
    lines: Vec<u32>,
}

impl MemoryExtractor<'_> {
    /// Reads one block: the best that it says, if anything.
    fn read_block(&self, at: usize) -> Option<MemoryCandidate> {
        let block = &self.blocks[at];
        if matches!(block.shape, BlockShape::Heading(_) | BlockShape::Bullet { task: true }) {
            return None;
        }
        let section = self.roles.role_above(at);
        if matches!(section, Some(BlockRole::Task | BlockRole::Reason)) {
            return None;
        }
        let label = split_label(&block.text);
        let own = label.and_then(|(label, _)| role_of_label(label));
        if matches!(own, Some(BlockRole::Task | BlockRole::Reason)) {
            return None;
        }
        let class = own.or(section);
        if class.is_none() && !may_hold_memory(&block.text) {
            return None;
        }
        let from = match (own, label) {
            (Some(_), Some((_, rest))) => rest,
            _ => 0,
        };
        let sentences = block.sentences_from(from);
        self.feedback(at, class, &sentences)
            .or_else(|| self.person(at, class == Some(BlockRole::Preference), &sentences))
            .or_else(|| self.decision(at, class == Some(BlockRole::Decision), &sentences))
            .or_else(|| deadline(&sentences))
            .or_else(|| reference(block))
    }

    /// Guidance on how to work, with why.
    fn feedback(
        &self,
        at: usize,
        class: Option<BlockRole>,
        sentences: &[LogSentence],
    ) -> Option<MemoryCandidate> {
        match class {
            Some(BlockRole::Feedback) => return self.labelled_feedback(at, false, sentences),
            Some(BlockRole::Lesson) => return self.labelled_feedback(at, true, sentences),
            _ => {}
        }
        sentences.iter().enumerate().find_map(|(i, sentence)| {
            self.user_instruction(at, sentence, &sentences[i + 1..])
                .or_else(|| self.reasoned_rule(at, sentence, &sentences[i + 1..]))
        })
    }

    /// Under a title or label the words need less to be a rule: a lesson needs no word such as
    /// `always`, if its reason is told.
    fn labelled_feedback(
        &self,
        at: usize,
        lesson: bool,
        sentences: &[LogSentence],
    ) -> Option<MemoryCandidate> {
        let rule = sentences.iter().position(|it| it.words().has(cue_phrases::RULE));
        if rule.is_none() && !lesson {
            return None;
        }
        let lead = sentences.first()?;
        let said = unquoted(&lead.text);
        if code_share(said) > CODE_SHARE_MAX * 2.0 || is_report(said) {
            return None;
        }
        let (mut statement, mut lines) = (said.to_owned(), lead.lines.clone());
        let mut why = self.labelled_reason(at);
        if why.is_none() {
            why = split_reason(said).or_else(|| split_at_mark(said, &[" — ", " – ", "; "])).map(
                |(said, text)| {
                    statement = said;
                    StatedReason { text, lines: lead.lines.clone() }
                },
            );
        }
        why =
            why.or_else(|| self.preceding_failure(at)).or_else(|| reason_in_next(&sentences[1..]));
        if let Some(rule) = rule {
            if rule > 0 && is_self_contained(&sentences[rule].text) {
                statement = format!("{} {}", with_full_stop(&statement), sentences[rule].text);
                lines.extend(&sentences[rule].lines);
            }
            // What else is said beside a rule is said for it.
            why = why.or_else(|| {
                let mut rest = sentences.iter().enumerate().skip(1).filter(|&(i, _)| i != rule);
                let (_, next) = rest.next().filter(|(_, it)| it.words().len() >= 4)?;
                Some(StatedReason { text: next.text.clone(), lines: next.lines.clone() })
            });
        }
        let why = why?;
        lines.extend(&why.lines);
        is_self_contained(&statement).then(|| {
            self.candidate(MemoryType::Feedback, 14, at, &statement, Some(why.text), lines)
        })
    }

    /// A lesson right after the bullet that tells what went wrong has its reason there.
    fn preceding_failure(&self, at: usize) -> Option<StatedReason> {
        let before = self.blocks.get(at.checked_sub(1)?)?;
        let lesson = &self.blocks[at];
        let beside = before.heading == lesson.heading
            && before.parent == lesson.parent
            && before.shape == lesson.shape;
        let (label, rest) = split_label(&before.text).filter(|_| beside)?;
        let last = label.split_whitespace().next_back().unwrap_or_default();
        if !WordList::of(last).opens_with(cue_phrases::FAILURES) {
            return None;
        }
        let told = before.sentences_from(rest).into_iter().next()?;
        Some(StatedReason { text: told.text, lines: told.lines })
    }

    /// `User instructed: always … ` and its like.
    fn user_instruction(
        &self,
        at: usize,
        sentence: &LogSentence,
        rest: &[LogSentence],
    ) -> Option<MemoryCandidate> {
        /// The one who instructs opens the sentence.
        const INSTRUCTED_WORD_MAX: usize = 3;
        /// And says early that it is meant to last.
        const STANDING_REACH: usize = 6;
        let words = sentence.words();
        let (told, width) = words.find(cue_phrases::INSTRUCTED)?;
        let standing = words.find(cue_phrases::LASTING_WORDS)?.0;
        // A relayed request that names no lasting rule is a task.
        if told > INSTRUCTED_WORD_MAX
            || standing + 1 < told
            || standing > told + width + STANDING_REACH
        {
            return None;
        }
        let after = words.offset(told + width)?;
        let who =
            sentence.text[..after].trim_end_matches([':', ',', ' ', '—', '"', '“']).to_owned();
        let colon = sentence.text[..after].trim_end_matches([' ', '"', '“']).ends_with(':');
        let (mut statement, mut why, mut lines) =
            (sentence.text.clone(), None, sentence.lines.clone());
        let reason =
            split_reason(&statement).or_else(|| split_at_mark(&statement, &["; ", " — ", " – "]));
        if let Some((said, reason)) = reason {
            (statement, why) = (said, Some(reason));
        } else if let Some(told) = self.labelled_reason(at).or_else(|| reason_in_next(rest)) {
            lines.extend(told.lines);
            why = Some(told.text);
        }
        if colon {
            statement.replace_range(..after.min(statement.len()), "");
        }
        let why = why.unwrap_or(who);
        // `…, so I changed it`: that was the task, and it is done.
        let done = WordList::of(&why).opens_with(cue_phrases::SO_FIRST_PERSON);
        let passing = WordList::of(&statement).opens_with(cue_phrases::NOT_RULES);
        (is_self_contained(&statement) && !done && !passing)
            .then(|| self.candidate(MemoryType::Feedback, 13, at, &statement, Some(why), lines))
    }

    /// `Always … because …`: an imperative with its reason near it.
    fn reasoned_rule(
        &self,
        at: usize,
        sentence: &LogSentence,
        rest: &[LogSentence],
    ) -> Option<MemoryCandidate> {
        if !sentence.words().opens_with(cue_phrases::RULE_OPENERS)
            || !is_command(&sentence.text)
            || code_share(&sentence.text) > CODE_SHARE_MAX
        {
            return None;
        }
        let (mut statement, mut lines) = (sentence.text.clone(), sentence.lines.clone());
        // After an imperative, what stands behind a colon or a dash says why.
        let reason = split_reason(&statement)
            .or_else(|| split_at_mark(&statement, &[": ", "; ", " — ", " – "]));
        let why = if let Some((said, why)) = reason {
            statement = said;
            why
        } else {
            let why = self.labelled_reason(at).or_else(|| reason_in_next(rest))?;
            lines.extend(why.lines);
            why.text
        };
        // A reason of today makes a rule of today.
        (is_self_contained(&statement) && !WordList::of(&why).has(cue_phrases::TRANSIENT))
            .then(|| self.candidate(MemoryType::Feedback, 12, at, &statement, Some(why), lines))
    }

    /// A person's preference, role, or standing wish.
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
        let may_tell =
            |it: &&LogSentence| cue_phrases::PERSON_CUES.iter().any(|cues| it.words().has(*cues));
        sentences.iter().filter(may_tell).find_map(|sentence| {
            let (said, spoken_at) = match speaker {
                Some((_, rest))
                    if sentence.text.starts_with(opening_label(&self.blocks[at].text)) =>
                {
                    (sentence.text.get(rest..).unwrap_or_default(), true)
                }
                _ => (sentence.text.as_str(), false),
            };
            let wish = preference_of(said);
            let said = wish.unwrap_or(said);
            // A wish may hold for what might come: `… when a date might slip`.
            let certain = said.replace(" might ", " ").replace(" could ", " ");
            let about = wish.is_some() || about_person(said);
            if !is_self_contained(&certain) || code_share(said) > CODE_SHARE_MAX || !about {
                return None;
            }
            let first_person = WordList::of(said).iter().any(|w| CUES.first_person.contains(&w));
            let statement = match speaker {
                Some((name, _)) if first_person || spoken_at => format!("{name}: {said}"),
                _ => said.to_owned(),
            };
            let mut lines = sentence.lines.clone();
            if statement.len() > said.len() {
                lines.push(self.blocks[at].first_line());
            }
            let (statement, why) = match split_reason(&statement) {
                Some((said, why)) => (said, Some(why)),
                None => (statement, None),
            };
            Some(self.candidate(MemoryType::User, 10, at, &statement, why, lines))
        })
    }

    /// A decision with its reason.
    fn decision(
        &self,
        at: usize,
        labelled: bool,
        sentences: &[LogSentence],
    ) -> Option<MemoryCandidate> {
        sentences.iter().enumerate().find_map(|(i, sentence)| {
            let words = sentence.words();
            let decided = (words.opens_with(cue_phrases::DECIDED)
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
            // A plain `so` tells how a thing works as often as why it was chosen.
            let reason = split_reason(&statement).filter(|(_, why)| {
                decided || !why.starts_with("so ") || why.starts_with("so that ")
            });
            let why = if let Some((said, why)) = reason {
                statement = said;
                Some(why)
            } else if let Some(told) =
                self.labelled_reason(at).or_else(|| reason_in_next(&sentences[i + 1..]))
            {
                lines.extend(told.lines);
                Some(told.text)
            } else {
                // The road not taken is reason enough only where a choice is named as such.
                words.find(cue_phrases::INSTEAD).filter(|_| decided)?;
                let dashed = split_at_mark(&statement, &[" — ", " – "]);
                if let Some((said, _)) = &dashed {
                    statement.clone_from(said);
                }
                dashed.map(|(_, why)| why)
            };
            let score = if decided { 9 } else { 7 };
            let last =
                statement.trim_end_matches('.').split_whitespace().next_back().unwrap_or_default();
            // `Check removed` is a change, and `chose this` names nothing.
            let empty = matches!(last, "this" | "that" | "it" | "them")
                || (!decided && last.ends_with("ed"));
            // Appointments and private days have reasons too.
            let own = why
                .as_deref()
                .is_some_and(|why| WordList::of(why).iter().any(|w| CUES.not_reasons.contains(&w)));
            let day = words.iter().any(|w| calendar::weekday_names().contains(&w));
            (is_self_contained(&statement) && !empty && !own && !day)
                .then(|| self.candidate(MemoryType::Project, score, at, &statement, why, lines))
        })
    }

    /// Returns the reason that a labelled neighbour gives: a child, or the next lines.
    fn labelled_reason(&self, at: usize) -> Option<StatedReason> {
        self.labelled_neighbour(at, &CUES.reason_titles)
    }

    fn labelled_neighbour(&self, at: usize, titles: &[&str]) -> Option<StatedReason> {
        /// A rule's `StatedReason` stands right beneath it.
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

    fn candidate(
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
        let statement = without_keep(statement);
        let score = score
            + u32::from(how_to_apply.is_some())
            + 4 * u32::from(!self.blocks[at].keep_lines.is_empty());
        let title = capitalize_title(&title_of(&statement, NAME_CHARS_MAX));
        MemoryCandidate {
            kind,
            score,
            title,
            statement,
            why: why.map(|it| without_keep(&it)),
            how_to_apply,
            lines,
        }
    }
}

/// Returns whether a block holds a word without which no rule here finds anything: most hold none,
/// and are not read further.
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
        // `is a` says nothing without a role behind it.
        let person =
            cue_phrases::PERSON_CUES.iter().filter(|it| it.bit() != cue_phrases::IS_A.bit());
        tables.iter().chain(person).fold(0, |all, table| all | table.bit())
    });
    text.contains("http") || WordList::may_occur_in(text, *TABLES)
}

/// A goal or deadline with an explicit date.
fn deadline(sentences: &[LogSentence]) -> Option<MemoryCandidate> {
    let sentence = sentences.iter().find(|it| {
        let words = it.words();
        words.has(cue_phrases::DEADLINE)
            && has_date(words)
            && is_self_contained(&it.text)
            && !is_report(&it.text)
            && (!words.opens_with(cue_phrases::TASK_OPENERS)
                || words.opens_with(cue_phrases::DEADLINE))
            && code_share(&it.text) <= CODE_SHARE_MAX
    })?;
    let statement = without_keep(&sentence.text);
    Some(MemoryCandidate {
        kind: MemoryType::Project,
        score: 8,
        title: capitalize_title(&title_of(&statement, NAME_CHARS_MAX)),
        statement,
        why: None,
        how_to_apply: None,
        lines: sentence.lines.iter().copied().collect(),
    })
}

/// A link with a purpose: what is found there is named, and nothing is done with it.
fn reference(block: &LogBlock) -> Option<MemoryCandidate> {
    const WORDS_MAX: usize = 14;
    /// `Okta dashboard https://…`: no more than a name stands before the link.
    const BARE_WORDS_MAX: usize = 5;
    /// A label is a name, and a note after the link is short.
    const LABEL_WORDS_MAX: usize = 6;
    const NOTE_WORDS_MAX: usize = 4;
    /// Pages of one piece of work.
    const WORK_ITEMS: &[&str] =
        &["/pull/", "/issues/", "/commit/", "/merge_requests/", "/runs/", "/jobs/"];
    let text = block.text.as_str();
    let Some(at) = text.find("https://").or_else(|| text.find("http://")) else {
        return named_location(block);
    };
    if text[at + 4..].contains("http") {
        return None;
    }
    let url_end = text[at..].find([' ', '>', ')', '"']).map_or(text.len(), |end| at + end);
    let (before, after) = (&text[..at], &text[url_end..]);
    let words = WordList::of(before);
    let tail = before.trim_end_matches(['<', '(', '[', ']', '`', ' ']);
    let bare = tail.split(" (").next().unwrap_or(tail);
    let names_place = bare
        .split_whitespace()
        .next_back()
        .is_some_and(|w| WordList::of(w).opens_with(cue_phrases::REFERENCE_NOUNS))
        && words.len() <= BARE_WORDS_MAX;
    let named = tail.ends_with([':', '—', '–']) || before.ends_with("](") || names_place;
    // `docs for the API`, `API docs`; but not `docs cleanup`.
    let place = words.find(cue_phrases::REFERENCE_NOUNS);
    let named_as = WordList::of(bare);
    let place_alone =
        place.is_some_and(|(at, width)| named_as.iter().nth(at + width).is_none_or(is_stop_word));
    // `Supplier price sheet: https://…`: a label that names a thing, and nothing but the link.
    let labelled = tail.ends_with(':')
        && split_label(text).is_some_and(|(label, rest)| {
            rest + 1 >= at
                && (2..=LABEL_WORDS_MAX).contains(&label.split_whitespace().count())
                && label.starts_with(char::is_uppercase)
        })
        && WordList::of(after).len() <= NOTE_WORDS_MAX
        && !words.has(cue_phrases::NARRATIVE);
    let at_last = tail
        .split_whitespace()
        .next_back()
        .is_some_and(|w| CUES.location_prepositions.contains(&w));
    let before_last = tail.split_whitespace().rev().nth(1).unwrap_or_default();
    let found_at = words.has(cue_phrases::LIVES_AT)
        || (at_last
            && WordList::of(before_last).opens_with(cue_phrases::REFERENCE_NOUNS)
            && !WordList::of(after).has(cue_phrases::TRANSIENT));
    let fits = (1..=WORDS_MAX).contains(&words.len())
        && ((labelled && (place.is_none() || place_alone))
            || place.is_some() && ((named && place_alone) || found_at))
        && WordList::of(after).len() <= WORDS_MAX
        && !is_report(before)
        && !words.opens_with(cue_phrases::TASK_OPENERS)
        && !words.opens_with(cue_phrases::BACK_REFERENCES)
        && !words.has(cue_phrases::TRANSIENT)
        && !text.contains('?')
        && !WORK_ITEMS.iter().any(|part| text[at..url_end].contains(part));
    let statement = without_keep(text);
    let name = if at_last { tail.rsplit_once(' ').map_or(tail, |(name, _)| name) } else { before };
    fits.then(|| MemoryCandidate {
        kind: MemoryType::Reference,
        score: 6,
        title: truncate_at_word(
            name.trim_matches(|c: char| !c.is_alphanumeric() && c != '"' && c != ')'),
            NAME_CHARS_MAX,
        ),
        statement,
        why: None,
        how_to_apply: None,
        lines: block.lines().into_iter().collect(),
    })
}

/// `Importer bugs are tracked in the Linear project "INGEST"`: a named place without a link.
fn named_location(block: &LogBlock) -> Option<MemoryCandidate> {
    const SUBJECT_WORDS_MAX: usize = 6;
    let sentence = block.sentences_from(0).into_iter().next()?;
    let text = sentence.text.as_str();
    let words = WordList::of(text);
    let (at, width) = words.find(cue_phrases::STORED_IN)?;
    let place = words.offset(at + width).map(|from| &text[from..])?;
    let named = place.contains(['"', '“'])
        || place.split_whitespace().any(|w| w.starts_with(char::is_uppercase));
    let fits = (1..=SUBJECT_WORDS_MAX).contains(&at)
        && named
        && !words.has(cue_phrases::NARRATIVE)
        && code_share(text) <= 0.0
        && !is_report(text)
        && is_self_contained(text);
    fits.then(|| MemoryCandidate {
        kind: MemoryType::Reference,
        score: 5,
        title: capitalize_title(&title_of(text, NAME_CHARS_MAX)),
        statement: without_keep(text),
        why: None,
        how_to_apply: None,
        lines: sentence.lines.iter().copied().collect(),
    })
}

pub(super) fn role_of_label(label: &str) -> Option<BlockRole> {
    static CLASSES: LazyLock<HashMap<&str, BlockRole>> = LazyLock::new(|| {
        let tables = [
            (BlockRole::Task, &CUES.task_titles),
            (BlockRole::Reason, &CUES.how_to_apply_titles),
            (BlockRole::Reason, &CUES.reason_titles),
            (BlockRole::Preference, &CUES.preference_titles),
            (BlockRole::Decision, &CUES.decision_titles),
            (BlockRole::Lesson, &CUES.lesson_titles),
            (BlockRole::Feedback, &CUES.feedback_titles),
        ];
        // Of a title in two tables the later one wins.
        tables.iter().flat_map(|(class, titles)| titles.iter().map(|it| (*it, *class))).collect()
    });
    let title = normalized_title(label);
    if let Some(class) = CLASSES.get(title.as_str()) {
        return Some(*class);
    }
    // `Correction from Ines` is titled `Correction`.
    let short = CUES
        .name_prepositions
        .iter()
        .filter_map(|word| title.find(word))
        .min()
        .map(|at| &title[..at]);
    let short = short.unwrap_or(&title);
    if let Some(class) = CLASSES.get(short) {
        return Some(*class);
    }
    let (words, last) = (short.split(' ').count(), short.rsplit(' ').next()?);
    match last {
        "feedback" if words <= 3 => Some(BlockRole::Feedback),
        _ if words <= 3 && CUES.lesson_nouns.contains(&last) => Some(BlockRole::Lesson),
        _ => None,
    }
}

/// Returns whether a sentence opens as a rule, with a verb that commands after `always` or `never`.
fn is_command(text: &str) -> bool {
    let words = WordList::of(text);
    let Some((0, width)) = words.find(cue_phrases::RULE_OPENERS) else { return false };
    let Some(verb_at) = words.offset(width) else { return false };
    // `Always-on mode` is a name.
    let joined = text[..verb_at].ends_with(['-', '/', ':']);
    !joined && !words.opens_with(cue_phrases::NOT_RULES) && !is_report(&text[verb_at..])
}

/// Splits a sentence at the marker of a reason: what is said, and why.
pub(super) fn split_reason(text: &str) -> Option<(String, String)> {
    const SAID_WORDS_MIN: usize = 3;
    const WHY_WORDS_MIN: usize = 2;
    if let Some(split) = split_otherwise(text) {
        return Some(split);
    }
    let words = WordList::of(text);
    let list: Vec<&str> = words.iter().collect();
    let offsets: Vec<usize> = (0..list.len()).filter_map(|at| words.offset(at)).collect();
    let mut from = SAID_WORDS_MIN;
    while from < list.len() {
        let because = words.find_from(from, cue_phrases::BECAUSE);
        let so_that = words.find_from(from, cue_phrases::SO_THAT);
        let (at, width, keeps) = match (because, so_that) {
            (Some((a, w)), Some((b, _))) if a <= b => (a, w, false),
            (_, Some((b, w))) => (b, w, true),
            (Some((a, w)), None) => (a, w, false),
            (None, None) => return None,
        };
        from = at + 1;
        let before = &text[..offsets[at]];
        let next = list.get(at + width).copied().unwrap_or_default();
        let marks = match list[at] {
            // `since` also tells the time, and `so` also goes on with the story.
            "since" => {
                before.trim_end().ends_with([',', '—', ';'])
                    && !next.chars().any(|c| c.is_ascii_digit())
            }
            "so" if width == 1 => CUES.after_so.contains(&next),
            _ => true,
        };
        // In `do X, never do Y because of Z` the reason given is the one that does not count.
        let refused = list[1..at].iter().any(|w| CUES.negations.contains(w))
            && !before.trim_end().ends_with([',', '—', ';']);
        let negated = refused || CUES.negations.contains(&list[at - 1]);
        if !marks || negated || list.len() - at - width < WHY_WORDS_MIN {
            continue;
        }
        let why_at = if keeps { offsets[at] } else { offsets[at + width] };
        let said = before.trim_end().trim_end_matches(['(', ',', ';', '—', '–', '-', ' ']);
        let opened = before.matches('(').count() > before.matches(')').count();
        let mut why = text[why_at..].trim();
        if opened {
            why = why.split(')').next().unwrap_or(why);
        }
        return Some((with_full_stop(said), why.trim_end_matches(['.', ' ']).to_owned()));
    }
    None
}

/// Splits at the first of `marks`: what is said, and after the mark why.
fn split_at_mark(text: &str, marks: &[&str]) -> Option<(String, String)> {
    let found = marks.iter().filter_map(|mark| text.find(mark).map(|at| (at, mark.len())));
    let (at, width) = found.min()?;
    let (said, why) = (&text[..at], &text[at + width..]);
    // What follows a colon in many parts is a list of steps.
    let list = text[at..].starts_with(':') && why.matches(", ").count() > 1;
    (WordList::of(said).len() >= 4 && WordList::of(why).len() >= 4 && !list)
        .then(|| (with_full_stop(said), why.trim_end_matches('.').to_owned()))
}

/// `…, readers lose track otherwise`: the marker may also end the reason.
fn split_otherwise(text: &str) -> Option<(String, String)> {
    let words = WordList::of(text);
    let last = words.iter().last()?;
    if !cue_phrases::OTHERWISE.contains(last) {
        return None;
    }
    let at = [", ", "; ", " — ", " – "].iter().filter_map(|mark| text.rfind(mark)).max()?;
    let why = text[at..].trim_start_matches([',', ';', ' ', '—', '–']).trim_end_matches('.');
    Some((with_full_stop(&text[..at]), why.to_owned()))
}

/// The next sentence gives the reason where it says so itself.
fn reason_in_next(rest: &[LogSentence]) -> Option<StatedReason> {
    let next = rest.first()?;
    let words = next.words();
    let says_why = words.opens_with(cue_phrases::BECAUSE)
        || words.opens_with(cue_phrases::OTHERWISE)
        || split_label(&next.text)
            .is_some_and(|(label, _)| is_one_of_titles(label, &CUES.reason_titles));
    says_why.then(|| StatedReason { text: next.text.clone(), lines: next.lines.clone() })
}

/// Returns whether the words name a person and say what that person wants or is.
pub(super) fn about_person(text: &str) -> bool {
    is_about_person(text, &WordList::of(text))
}

/// Like [`about_person`], of a text whose words are known.
pub(super) fn is_about_person(text: &str, words: &WordList) -> bool {
    /// `is a senior Go engineer`: so many words after `is a` the role must stand.
    const ROLE_REACH: usize = 4;
    /// No other table tells of a person.
    static TABLES: LazyLock<u64> =
        LazyLock::new(|| cue_phrases::PERSON_CUES.iter().fold(0, |all, table| all | table.bit()));
    if !words.may_contain(*TABLES) {
        return false;
    }
    let wish = words.opens_with(cue_phrases::FIRST_PERSON_FACTS);
    if (opens_as_report(words) && !wish) || words.opens_with(cue_phrases::CONDITIONS) {
        return false;
    }
    let person_at = |at: usize| words.offset(at).is_some_and(|o| is_person(&text[o..]));
    // The one or two words before must be the name: `Jamie prefers`, `the user prefers`.
    let of_person = |at: usize| (1..=3).contains(&at) && person_at(at - 1);
    if let Some((at, _)) = words.find(cue_phrases::PREFERS) {
        return of_person(at);
    }
    if let Some((at, width)) = words.find(cue_phrases::WANTS) {
        // To want something once is a task.
        return of_person(at) && words.find_from(at + width, cue_phrases::HABIT).is_some();
    }
    if preference_in(text, words).is_some_and(|from_name| from_name.len() == text.len()) {
        return true;
    }
    if let Some((at, width)) = words.find(cue_phrases::FAVORITE) {
        let near = |from: usize, to: usize| {
            words.iter().skip(from).take(to).any(|w| CUES.to_be_present.contains(&w))
        };
        return at <= 3 && near(at + width, 5) || at > 0 && near(at - 1, 1);
    }
    if words.has(cue_phrases::PERSON_FACTS) {
        return words.iter().any(|w| CUES.first_person.contains(&w)) || person_at(0);
    }
    if let Some((at, width)) = words.find(cue_phrases::IS_A) {
        let role =
            words.iter().skip(at + width).take(ROLE_REACH).any(|w| cue_phrases::ROLES.contains(w));
        let article = usize::from(words.opens_with(cue_phrases::ARTICLES));
        let named = (article..at).all(person_at) && (article + 1..=article + 3).contains(&at);
        return role && named && !words.has(cue_phrases::NARRATIVE)
            || role && words.opens_with(cue_phrases::FIRST_PERSON_FACTS);
    }
    // `In future, don't …`: whoever says this wants it to last.
    let opener = words.find(cue_phrases::FROM_NOW_ON).filter(|&(at, _)| at == 0);
    opener.is_some_and(|(_, width)| words.find_from(width, cue_phrases::RULE).is_some())
}

/// Returns the part from the name on of `Matched Ana's preference for short agendas`.
fn preference_of(text: &str) -> Option<&str> {
    preference_in(text, &WordList::of(text))
}

fn preference_in<'t>(text: &'t str, words: &WordList) -> Option<&'t str> {
    // `as` says only where it holds; what it is comes after a colon.
    let from = |at: usize| words.offset(at).map_or("", |offset| &text[offset..]);
    let (at, width) = words.find(cue_phrases::HAS_PREFERENCE).or_else(|| {
        let found = words.find(cue_phrases::PREFERENCE_AS)?;
        from(found.0).contains(": ").then_some(found)
    })?;
    // `Ana's preference for the later slot` is about one slot.
    if words.iter().nth(at + width).is_some_and(|w| matches!(w, "the" | "this" | "that" | "either"))
    {
        return None;
    }
    let mut owner = (at.saturating_sub(2)..at).rev().find(|&i| {
        let word = from(i).split_whitespace().next().unwrap_or_default();
        word.ends_with("'s") || word.ends_with("’s")
    })?;
    if !is_name(from(owner)) {
        return None;
    }
    // `Henry Whitfield's` is one name; the word that opens the sentence may be a verb.
    if owner > 1 && is_name(from(owner - 1)) {
        owner -= 1;
    }
    Some(from(owner))
}

fn is_person(text: &str) -> bool {
    let word = WordList::of(text);
    word.opens_with(cue_phrases::PERSONS) || is_name(text)
}

fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(char::is_uppercase)
        && !WordList::of(text).iter().next().is_some_and(is_stop_word)
}

/// Returns whether a sentence reports what was done: a verb in the past opens it.
pub(super) fn is_report(text: &str) -> bool {
    opens_as_report(&WordList::of(text))
}

/// Like [`is_report`], of a text whose words are known.
pub(super) fn opens_as_report(words: &WordList) -> bool {
    let first = words.iter().next().unwrap_or_default();
    let past = first.chars().count() > 4 && first.ends_with("ed");
    let ongoing = first.chars().count() > 5 && first.ends_with("ing");
    words.opens_with(cue_phrases::REPORT_OPENERS)
        || ((past || ongoing) && !CUES.not_reports.contains(&first))
}

/// Returns the speaker of `14:03 Ana: …` and the byte offset of the words.
fn speaker(text: &str) -> Option<(&str, usize)> {
    let (label, rest) = split_label(text)?;
    let name = label.trim_start_matches(|c: char| {
        c.is_ascii_digit() || matches!(c, ':' | '.' | ' ' | '[' | ']')
    });
    let named = name.split_whitespace().count() <= 2
        && name.split_whitespace().all(|w| w.chars().next().is_some_and(char::is_uppercase))
        && !name.is_empty();
    named.then_some((name, rest))
}

/// The start by which the first sentence of a block is known.
fn opening_label(text: &str) -> &str {
    split_label(text).map_or(text, |(label, _)| label)
}

/// Returns whether a date stands among the words: a full one, or a day beside a month.
pub(super) fn has_date(words: &WordList) -> bool {
    let list: Vec<&str> = words.iter().collect();
    let is_day = |w: &str| {
        let digits = w.trim_end_matches(|c: char| c.is_alphabetic());
        digits.parse::<u32>().is_ok_and(|n| (1..=31).contains(&n))
    };
    let is_year =
        |w: &str| w.len() == 4 && w.parse::<u32>().is_ok_and(|n| (1990..2200).contains(&n));
    list.iter().enumerate().any(|(i, word)| {
        let near = |from: usize, to: usize| list.get(from..to.min(list.len())).unwrap_or_default();
        if cue_phrases::MONTHS.contains(word) {
            near(i.saturating_sub(2), i + 2).iter().any(|w| is_day(w) || is_year(w))
        } else {
            is_year(word) && near(i + 1, i + 3).iter().filter(|w| is_day(w)).count() == 2
        }
    })
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix(['"', '“']).map_or(text, |rest| rest.trim_end_matches(['"', '”']))
}

/// Ends a sentence that was cut.
fn with_full_stop(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', ')', '”', '"']) { text.to_owned() } else { format!("{text}.") }
}

/// Takes the mark, and a note in brackets at the end, away.
pub(super) fn without_keep(text: &str) -> String {
    without_keep_mark(text).into_owned()
}

/// Like [`without_keep`], in place where there is no mark.
pub(super) fn without_keep_mark(text: &str) -> Cow<'_, str> {
    let text = without_note(text);
    if !has_keep_mark(text) {
        return Cow::Borrowed(text.trim());
    }
    let words = text.split_whitespace().filter(|word| *word != KEEP_MARK);
    Cow::Owned(words.collect::<Vec<_>>().join(" "))
}

/// A bracket at the end would be read as a citation; what stands in it is a note on the line.
fn without_note(text: &str) -> &str {
    let text = text.trim_end();
    match text
        .strip_suffix(']')
        .and_then(|rest| rest.rfind('[').map(|at| (at, text[..at].trim_end())))
    {
        Some((at, said)) if at > 0 && said.len() < at => said,
        _ => text,
    }
}

/// Returns two to six content words for the file's name.
fn topic_words(title: &str, statement: &str) -> String {
    const WORDS_MIN: usize = 2;
    const WORDS_MAX: usize = 6;
    let content = |text: &str| -> Vec<String> {
        let mut seen = BTreeSet::new();
        WordList::of(&Decisions::strip_secret_placeholders(text))
            .iter()
            .filter(|w| !is_stop_word(w) && !w.starts_with("http") && w.chars().count() <= 24)
            .filter(|w| seen.insert((*w).to_owned()))
            .map(str::to_owned)
            .take(WORDS_MAX)
            .collect()
    };
    let mut words = content(title);
    if words.len() < WORDS_MIN {
        words = content(statement);
    }
    words.join(" ")
}

/// Returns whether a memory already rests on a line of this one, unchanged since.
fn shares_unchanged_source(found: &MemoryCandidate, input: &ExtractInput<'_>) -> bool {
    input.existing.iter().flat_map(|memory| &memory.sources).any(|(address, hash)| {
        address.stem == *input.log.stem()
            && found.lines.contains(&address.line)
            && input.log.line(address.line).is_some_and(|line| line.hash().hex4() == *hash)
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{
        memory::{hash::ContentHash, log::DailyLog},
        privacy::{self, SanitizedLog},
    };

    fn served(text: &str) -> SanitizedLog {
        let stem = "2026-04-02".parse().unwrap();
        privacy::sanitize(
            &DailyLog::parse(stem, text.as_bytes()).unwrap(),
            &privacy::PrivacyRules::default(),
        )
    }

    fn drafts(text: &str) -> Vec<MemoryDraft> {
        extract(&ExtractInput::unchecked(&served(text), &[]))
    }

    /// Checks the one memory that a log holds: kind, statement, reason.
    #[track_caller]
    fn check(text: &str, kind: MemoryType, statement: &str, why: Option<&str>) {
        let drafts = drafts(text);
        let [draft] = drafts.as_slice() else { panic!("{text:?} gave {drafts:#?}") };
        assert_eq!((draft.kind, draft.statement.as_str()), (kind, statement), "{text}");
        assert_eq!(draft.why.as_deref(), why, "{text}");
        assert!(draft.kind != MemoryType::Feedback || draft.why.is_some());
        assert!(draft.name.chars().count() <= 120 && draft.description.chars().count() < 120);
        assert!((2..=6).contains(&draft.topic.split(' ').count()), "{}", draft.topic);
    }

    #[track_caller]
    fn check_none(text: &str) {
        assert_eq!(drafts(text), [], "{text}");
    }

    use MemoryType::{Feedback, Project, Reference, User};

    #[test]
    fn people_and_their_wishes() {
        check(
            "- Jamie prefers short agendas, decision first",
            User,
            "Jamie prefers short agendas, decision first",
            None,
        );
        check(
            "The client always wants the invoice as a PDF.",
            User,
            "The client always wants the invoice as a PDF.",
            None,
        );
        check(
            "I prefer tabs over spaces in Makefiles, because make insists on them.",
            User,
            "I prefer tabs over spaces in Makefiles.",
            Some("make insists on them"),
        );
        check(
            "- Added preference: when Ola asks for a chart, draw bars",
            User,
            "when Ola asks for a chart, draw bars",
            None,
        );
        check(
            "In future, don't book calls before nine.",
            User,
            "In future, don't book calls before nine.",
            None,
        );
        check(
            "Noor is our release manager for the mobile apps.",
            User,
            "Noor is our release manager for the mobile apps.",
            None,
        );
        check(
            "- 14:03 Ana: I'm allergic to peanuts and shellfish",
            User,
            "Ana: I'm allergic to peanuts and shellfish",
            None,
        );
        check(
            "- Honoured Mia Chen’s preference for one page with no charts.",
            User,
            "Mia Chen’s preference for one page with no charts.",
            None,
        );
    }

    #[test]
    fn roles_and_habits() {
        for text in [
            "Sam is a data scientist with a focus on logs.",
            "The user is a senior Go engineer, new to React.",
            "Maria wants weekly reports on Mondays.",
            "My name is Lena and I am the head of operations.",
            "Petra ist unsere Ansprechpartnerin für den Vertrag.",
        ] {
            check(text, User, text, None);
        }
        for text in [
            "Maria wants the logo in blue.",
            "Kubernetes is a complex tool.",
            "The parser is the owner of the buffer.",
        ] {
            check_none(text);
        }
    }

    #[test]
    fn guidance_with_its_reason() {
        check(
            "- Always squash before merging, because the release notes list commits.",
            Feedback,
            "Always squash before merging.",
            Some("the release notes list commits"),
        );
        check(
            "- **Correction from Ines:** the price does not belong in the title — feeds cut it off. Moved it.",
            Feedback,
            "the price does not belong in the title.",
            Some("feeds cut it off"),
        );
        check(
            "## Lessons\n\n- Never deploy on a Friday, since nobody is on call at the weekend.",
            Feedback,
            "Never deploy on a Friday.",
            Some("nobody is on call at the weekend"),
        );
        check(
            "User instructed: always quote the ticket number in commits. Saved.",
            Feedback,
            "always quote the ticket number in commits.",
            Some("User instructed"),
        );
        check(
            "Never edit the generated files by hand.\n**Why:** The next build overwrites them.\n**How to apply:** Change the template.",
            Feedback,
            "Never edit the generated files by hand.",
            Some("The next build overwrites them."),
        );
        check(
            "- **Backup failure:** the nightly copy went to a full disk.\n- **Lesson:** Always check free space first.",
            Feedback,
            "Always check free space first.",
            Some("the nightly copy went to a full disk."),
        );
    }

    #[test]
    fn lessons_need_no_always() {
        check(
            "- Lesson: check the free space before the nightly copy, otherwise the archive is cut short.",
            Feedback,
            "check the free space before the nightly copy.",
            Some("otherwise the archive is cut short"),
        );
        check(
            "## Takeaways\n\n- One owner per migration — two people undid each other",
            Feedback,
            "One owner per migration.",
            Some("two people undid each other"),
        );
        check(
            "User feedback: summaries should come before details because readers stop early.",
            Feedback,
            "summaries should come before details.",
            Some("readers stop early"),
        );
        check(
            "User instructed: always quote the ticket, because the report groups by it.",
            Feedback,
            "always quote the ticket.",
            Some("the report groups by it"),
        );
        check(
            "### Feedback from Dana\n- Please keep changes under 400 lines, reviewers lose track otherwise.",
            Feedback,
            "Please keep changes under 400 lines.",
            Some("reviewers lose track otherwise"),
        );
        check(
            "- Do not deploy on Fridays: nobody is around to mend things",
            Feedback,
            "Do not deploy on Fridays.",
            Some("nobody is around to mend things"),
        );
        check(
            "Log of a call.\nCorrection: prices start with the net, since the books do.\nNote: done.",
            Feedback,
            "prices start with the net.",
            Some("the books do"),
        );
        check_none("## Lessons\n\n- The copy ran for an hour");
        check_none("## Feedback\n\n- The demo went well because the data was real");
        check_none("- Lesson: fixed the copy because the disk was full");
    }

    /// Pieces from which logs are put together: cues, marks, names, and letters of several bytes.
    const PIECES: &[&str] = &[
        "- ",
        "  - ",
        "## Lessons\n",
        "**Why:** ",
        "Jamie prefers ",
        "Always ",
        "because ",
        "so that ",
        "naïve café ",
        "— ",
        ": ",
        "…",
        "’s preference for ",
        "Zoë",
        "`code",
        "` ",
        "\n",
        "\n\n",
        "日本語の ",
        "🦀 ",
        "[x] ",
        "User instructed: ",
        "never ",
        "We decided to ",
        ", since ",
        "(",
        ") ",
        "\"",
        "“",
        "”",
        ". ",
        "ßé ",
        "https://docs.example ",
        "dashboard ",
        "İ ",
        "deadline ",
        "2026-05-01 ",
        "#keep ",
        "10:37 Eva: ",
        "I prefer ",
        "red blue green ",
        "> ",
        "# ",
        "must ",
        "is our manager ",
    ];

    proptest::proptest! {
        #[test]
        fn nothing_is_said_that_the_cited_lines_do_not_say(
            picks in proptest::collection::vec(0..PIECES.len(), 1..60)
        ) {
            let text: String = picks.iter().map(|&i| PIECES[i]).collect();
            let log = served(&text);
            for draft in drafts(&text) {
                let lines: Vec<String> = draft
                    .citation
                    .addresses()
                    .map(|it| log.line(it.line).unwrap().text())
                    .flat_map(|line| [line.to_owned(), line.replace("**", "")])
                    .collect();
                let source = WordList::of(&lines.join(" "));
                let said = format!("{} {}", draft.statement, draft.why.unwrap_or_default());
                for word in WordList::of(&said).iter() {
                    proptest::prop_assert!(source.iter().any(|it| it == word), "{word} in {text:?}");
                }
            }
        }
    }

    #[test]
    fn decisions_deadlines_and_places() {
        check(
            "We decided to keep SQLite because one file is easier to back up.",
            Project,
            "We decided to keep SQLite.",
            Some("one file is easier to back up"),
        );
        check(
            "### Key decisions\n- Importer stays in its own process so that a crash cannot take the server down\n- Renamed the flag",
            Project,
            "Importer stays in its own process.",
            Some("so that a crash cannot take the server down"),
        );
        check(
            "Chose plain text instead of JSON — people read these logs by eye.",
            Project,
            "Chose plain text instead of JSON.",
            Some("people read these logs by eye"),
        );
        check(
            "- The launch date for the beta is 14 May 2026",
            Project,
            "The launch date for the beta is 14 May 2026",
            None,
        );
        check(
            "- Tax filing deadline: 2026-07-31 for all branches",
            Project,
            "Tax filing deadline: 2026-07-31 for all branches",
            None,
        );
        check(
            "- Grafana dashboard for checkout: https://grafana.example/d/42",
            Reference,
            "Grafana dashboard for checkout: https://grafana.example/d/42",
            None,
        );
        check(
            "- Frist für die Steuer: 31. Juli 2026.",
            Project,
            "Frist für die Steuer: 31. Juli 2026.",
            None,
        );
        check(
            "- Pipeline bugs are tracked in the Linear project \"INGEST\".",
            Reference,
            "Pipeline bugs are tracked in the Linear project \"INGEST\".",
            None,
        );
        check(
            "- The board at https://grafana.example/d/api is what oncall watches.",
            Reference,
            "The board at https://grafana.example/d/api is what oncall watches.",
            None,
        );
        check(
            "- Supplier contracts: https://files.example/contracts",
            Reference,
            "Supplier contracts: https://files.example/contracts",
            None,
        );
        check(
            "- Billing runbook https://wiki.example/billing",
            Reference,
            "Billing runbook https://wiki.example/billing",
            None,
        );
    }

    #[test]
    fn other_languages() {
        check(
            "- Immer zuerst das Handbuch lesen, weil die Vorgaben wechseln.",
            Feedback,
            "Immer zuerst das Handbuch lesen.",
            Some("die Vorgaben wechseln"),
        );
        check(
            "- Petra bevorzugt kurze Berichte ohne Tabellen.",
            User,
            "Petra bevorzugt kurze Berichte ohne Tabellen.",
            None,
        );
        check(
            "Wir haben entschieden, bei Postgres zu bleiben, weil das Team es kennt.",
            Project,
            "Wir haben entschieden, bei Postgres zu bleiben.",
            Some("das Team es kennt"),
        );
        check(
            "- Toujours relire le contrat avant envoi, parce que les prix changent souvent.",
            Feedback,
            "Toujours relire le contrat avant envoi.",
            Some("les prix changent souvent"),
        );
        check(
            "- Claire préfère les réunions courtes.",
            User,
            "Claire préfère les réunions courtes.",
            None,
        );
        check(
            "- Nunca borrar los registros viejos, porque auditoría los revisa.",
            Feedback,
            "Nunca borrar los registros viejos.",
            Some("auditoría los revisa"),
        );
        check(
            "- Lucía prefiere informes breves sin tablas.",
            User,
            "Lucía prefiere informes breves sin tablas.",
            None,
        );
        check(
            "- Sempre salvare prima una copia, perché il disco è vecchio.",
            Feedback,
            "Sempre salvare prima una copia.",
            Some("il disco è vecchio"),
        );
        check(
            "- Marco preferisce riunioni brevi la mattina.",
            User,
            "Marco preferisce riunioni brevi la mattina.",
            None,
        );
        check(
            "- Nunca apagar os ficheiros antigos, já que o cliente os consulta.",
            Feedback,
            "Nunca apagar os ficheiros antigos.",
            Some("o cliente os consulta"),
        );
        check(
            "- Altijd eerst een kopie maken, omdat de schijf oud is.",
            Feedback,
            "Altijd eerst een kopie maken.",
            Some("de schijf oud is"),
        );
        check(
            "- Sanne verkiest korte verslagen zonder tabellen.",
            User,
            "Sanne verkiest korte verslagen zonder tabellen.",
            None,
        );
    }

    #[test]
    fn what_passes_is_left() {
        for text in [
            // Status, steps, counts, and lists.
            "- Fixed the flaky login test because it timed out",
            "- All tests pass after the rename, 214 of them",
            "- Waiting for Omar's answer because he owns the list",
            "### Next steps\n- Always rerun the import because the data changed",
            "### Files changed\n- `src/lib.rs` — always exported because the CLI needs it",
            "- [ ] Never forget to call the bank, because the offer ends",
            "### Decisions\n- No new crate added because serde does it",
            "### Decisions\n- Kept the slot because the room was free",
            "Today we chose the small room because the large one was taken.",
            "- Moved the deadline task to 2026-05-01",
            "- Removed the retry: it hid the real error",
            "- Rules engine now loads YAML because JSON has no comments",
            "- Please look at PR 45 because it blocks the release",
            "- Picked up the kids because school ended early",
            "- We agreed to meet on Friday because Omar travels on Thursday",
            "- Decided to leave early because I slept badly",
            "- Stop the server, then migrate; otherwise it hangs",
            "- Don't press the blue button; it is broken today",
            "- User asked to always show the banner, so I changed the template",
            "- User said: \"never mind\"",
            "- Correction: the meeting is at three",
            "- Takeaways: none",
            "- Always-on mode fails because the socket closes early",
            "- Never got a reply from the vendor, since their office is closed",
            "- In the future section of the plan we list ideas",
            "- Going forward with plan B",
            "- Bob is a manager at the store, he helped us",
            "- Folder cleanup: https://drive.example/old",
            "- Merged change: https://git.example/x/pull/12",
            "- Read: https://blog.example/post",
            "- Talk that Eva gave last year: https://video.example/9 and my notes on the good parts",
            // Rules and choices without a reason.
            "- Always squash before merging.",
            "Never deploy on a Friday.",
            "We decided to keep SQLite.",
            "### Decisions\n- SQLite for the ledger",
            // Code facts.
            "### Decisions\n- `drain()` is called last because `flush()` locks",
            "- Errors always go to the feed because `silent` hides them",
            // Nobody is named, or something else prefers.
            "It prefers the second form because it is shorter.",
            "- the parser prefers the longest match",
            "- She always wants the report on Mondays",
            // Guesses, questions, chat.
            "Maybe Jamie prefers tea over coffee in the morning.",
            "Should we always squash, because the notes list commits?",
            "- 10:37 Eva: Don't forget to rest, since the week was long",
            "- 20:02 Eva: I chose to write about this because it's personal",
            "My favorite moment was the sunrise over the bay.",
            // Dates and links of one task.
            "- Deadline moved, new one to be told",
            "- reviewed the docs https://docs.example/start",
            "- See https://example.org/a for more",
            "- opened docs issue: https://git.example/docs/issues/7",
            "- dashboard work continues at https://git.example/dash/pull/9",
            // Reasons that are none.
            "- Never met Omar since 2019 in person",
            "- Do not pick it only because it is cheap",
            // The same in other languages.
            "- Fehler behoben, weil der Pfad falsch war",
            "- Stattdessen gibt es nun Kaffee, weil der Tee alle ist",
            "- Hafermilch gekauft statt vorher Kuhmilch",
            "- Heute prüfen wir alles noch einmal, weil Petra fehlt",
            "- Corrigé le lien parce que la page manquait",
            "- Hoy decidimos esperar porque faltan datos",
            "- Immer wieder derselbe Fehler im Protokoll",
            "",
        ] {
            check_none(text);
        }
    }

    #[test]
    fn titles_name_the_thing() {
        let title = |text: &str| drafts(text)[0].name.clone();
        assert_eq!(
            title("- Decided with Tobias: the logo stays blue because customers know it"),
            "The logo stays blue"
        );
        assert_eq!(
            title("- Jamie prefers short agendas — decision first"),
            "Jamie prefers short agendas"
        );
    }

    #[test]
    fn text_from_outside_is_not_read() {
        check_none("> Jamie prefers short agendas, decision first");
        check_none("```\nAlways squash before merging, because the notes list commits.\n```");
        check_none("Pasted:\n> We decided to pay them because they asked.");
    }

    #[test]
    fn citations_name_each_line_that_is_used() {
        let text = "# Log\n\n- Always squash before merging\n  to main, because the release\n  notes list commits.\n- other";
        assert_eq!(drafts(text)[0].citation.to_string(), "2026-04-02:3-5");
        let text =
            "Never edit generated files.\n\n**Why:** The next build\noverwrites them.\n\nElse.";
        assert_eq!(drafts(text)[0].citation.to_string(), "2026-04-02:1,3-4");
        let text = "Some words first. Jamie prefers short agendas with few items.\nMore words.";
        assert_eq!(drafts(text)[0].citation.to_string(), "2026-04-02:1");
    }

    fn memory(body: &str, sources: Vec<(Address, String)>) -> TypedMemory {
        TypedMemory {
            file_name: PathBuf::from("user_agendas.md"),
            kind: User,
            name: "Agendas".to_owned(),
            description: String::new(),
            created: None,
            updated: None,
            sources,
            supersedes: None,
            recorded_body: None,
            other_keys: crate::memory::frontmatter::OtherKeys::default(),
            body: body.to_owned(),
        }
    }

    #[test]
    fn what_a_memory_already_says_is_skipped() {
        let line = "- Jamie prefers short agendas, decision first";
        let log = served(line);
        let count =
            |existing: &[TypedMemory]| extract(&ExtractInput::unchecked(&log, existing)).len();
        assert_eq!(count(&[memory("Noor prefers tea.", Vec::new())]), 1);
        assert_eq!(
            count(&[memory("Jamie prefers short agendas with the decision first.", Vec::new())]),
            0
        );
        let source = |hash: String| vec![("2026-04-02:1".parse().unwrap(), hash)];
        assert_eq!(count(&[memory("Reworded by hand.", source(ContentHash::of(line).hex4()))]), 0);
        assert_eq!(count(&[memory("Reworded by hand.", source("0000".to_owned()))]), 1);
    }

    #[test]
    fn a_day_gives_few_and_the_same_each_time() {
        let names = ["Ana", "Bo", "Cleo", "Dirk", "Eva", "Finn", "Gus"];
        let wishes = [
            "tea",
            "short mails",
            "long walks",
            "quiet rooms",
            "paper maps",
            "late trains",
            "red ink",
        ];
        let lines: Vec<String> = names
            .iter()
            .zip(wishes)
            .map(|(name, wish)| format!("- {name} prefers {wish} over anything else"))
            .collect();
        let rule = "- Always squash before merging, because the release notes list commits.";
        let text = format!("{}\n{rule}\n{}", lines[0], lines[0]);
        assert_eq!(drafts(&text).len(), 2, "the repeat gives nothing");
        assert_eq!(drafts(&text)[0].kind, Feedback, "the best comes first");
        let text = lines.join("\n");
        assert_eq!(drafts(&text).len(), DRAFTS_MAX);
        assert_eq!(drafts(&text), drafts(&text));
    }
}
