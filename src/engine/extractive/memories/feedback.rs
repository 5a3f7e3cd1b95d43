//! Guidance on how to work, with its reason: feedback, lessons, instructions, and rules.

use super::{
    CODE_SHARE_MAX,
    candidate::MemoryCandidate,
    extractor::MemoryExtractor,
    reasons::{StatedReason, reason_in_next, split_at_mark, split_reason, with_full_stop},
    reports::is_report,
    roles::{BlockRole, role_of_label},
};
use crate::{
    engine::extractive::{
        cue_phrases,
        statements::{
            blocks::LogSentence,
            labels::split_label,
            self_contained::{code_share, is_self_contained},
            word_list::WordList,
        },
    },
    memory::typed::MemoryType,
};

/// Marks between what went wrong and what follows from it.
const ERROR_MARKS: &[&str] = &[" — ", " – ", "; ", "→ ", "；"];

impl MemoryExtractor<'_> {
    /// Returns guidance on how to work, with its reason.
    pub(super) fn feedback(
        &self,
        at: usize,
        role: Option<BlockRole>,
        sentences: &[LogSentence],
    ) -> Option<MemoryCandidate> {
        match role {
            Some(BlockRole::Feedback) => return self.labelled_feedback(at, false, sentences),
            Some(BlockRole::Lesson) => return self.labelled_feedback(at, true, sentences),
            _ => {}
        }
        sentences.iter().enumerate().find_map(|(i, sentence)| {
            self.user_instruction(at, sentence, &sentences[i + 1..])
                .or_else(|| self.reasoned_rule(at, sentence, &sentences[i + 1..]))
        })
    }

    /// Returns guidance below a title or label, where the words need less to be a rule: a lesson with a
    /// reason needs no word such as `always`.
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
        let parts = split_at_mark(&lead.text, ERROR_MARKS);
        if reports_error(lead.words())
            || parts.is_some_and(|(error, _)| reports_error(&WordList::of(&error)))
        {
            return self.rule_after_error(at, sentences);
        }
        let opening = unquoted(&lead.text);
        if code_share(opening) > CODE_SHARE_MAX * 2.0 || is_report(opening) {
            return None;
        }
        let (mut statement, mut lines) = (opening.to_owned(), lead.lines.clone());
        let mut why = self.labelled_reason(at);
        if why.is_none() {
            why = split_reason(opening)
                .or_else(|| split_at_mark(opening, &[" — ", " – ", "; "]))
                .map(|(claim, text)| {
                    statement = claim;
                    StatedReason { text, lines: lead.lines.clone() }
                });
        }
        why =
            why.or_else(|| self.preceding_failure(at)).or_else(|| reason_in_next(&sentences[1..]));
        if let Some(rule) = rule {
            if rule > 0 && is_self_contained(&sentences[rule].text) {
                statement = format!("{} {}", with_full_stop(&statement), sentences[rule].text);
                lines.extend(&sentences[rule].lines);
            }
            // Another sentence next to a rule is taken as its reason.
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

    /// Returns the rule among sentences of which the first states an error: that is only the reason.
    fn rule_after_error(&self, at: usize, sentences: &[LogSentence]) -> Option<MemoryCandidate> {
        let (lead, rest) = sentences.split_first()?;
        let is_rule = |text: &str| {
            let words = WordList::of(text);
            // `should be 4` lacks what should be so.
            let is_whole = words.is_marked_as(cue_phrases::RULE_OPENERS)
                || !words.opens_with(cue_phrases::RULE);
            is_whole && words.has(cue_phrases::RULE) && is_self_contained(text) && !is_report(text)
        };
        if let Some(rule) = rest.iter().find(|it| is_rule(&it.text)) {
            let lines = lead.lines.iter().chain(&rule.lines).copied().collect();
            let why = Some(lead.text.trim_end_matches(['.', '。']).to_owned());
            return Some(self.candidate(MemoryType::Feedback, 14, at, &rule.text, why, lines));
        }
        // `Deleted the wrong branch — always ask before deleting a branch.`
        let (error, rule) = split_at_mark(&lead.text, ERROR_MARKS)?;
        let why = Some(error.trim_end_matches(['.', '。']).to_owned());
        is_rule(&rule)
            .then(|| self.candidate(MemoryType::Feedback, 14, at, &rule, why, lead.lines.clone()))
    }

    /// Returns the guidance of a heading such as `Lesson: never delete credentials`, with the first rule
    /// below it, which says when it holds, and the failure that a heading before it reports.
    pub(super) fn titled_lesson(&self, at: usize) -> Option<MemoryCandidate> {
        let heading = &self.blocks[at];
        let (label, rest) = split_label(&heading.text)?;
        let title = heading.text[rest..].trim();
        if role_of_label(label) != Some(BlockRole::Lesson) || !says_rule(title) {
            return None;
        }
        let below = self.blocks.iter().enumerate().skip(at + 1);
        let mut below = below.take_while(|(_, it)| it.heading == Some(at));
        let child = below.find_map(|(_, it)| {
            let first = it.sentences_from(0).into_iter().next()?;
            let words = first.words();
            (words.has(cue_phrases::RULE) && !reports_error(words)).then_some(first)
        });
        let why = self.labelled_reason(at).or_else(|| self.failure_before(at))?;
        let mut lines = heading.lines();
        lines.extend(&why.lines);
        let mut statement = title.to_owned();
        if let Some(child) = child {
            statement = format!("{} {}", with_full_stop(&statement), child.text);
            lines.extend(&child.lines);
        }
        Some(self.candidate(MemoryType::Feedback, 14, at, &statement, Some(why.text), lines))
    }

    /// Returns what went wrong by the headings before one at its level that name a failure: the last error
    /// that a sentence below them reports, or else the first sentence.
    fn failure_before(&self, at: usize) -> Option<StatedReason> {
        let lesson = &self.blocks[at];
        let is_failure = |&it: &usize| {
            let block = &self.blocks[it];
            block.shape == lesson.shape
                && block.heading == lesson.heading
                && WordList::of(&block.text).has(cue_phrases::FAILURES)
        };
        let below = |heading: usize| {
            let blocks = self.blocks[heading + 1..at].iter();
            blocks
                .take_while(move |it| it.heading == Some(heading))
                .flat_map(|it| it.sentences_from(0))
        };
        let headings = || (0..at).rev().filter(is_failure);
        let failure = headings()
            .find_map(|it| below(it).find(|sentence| reports_error(sentence.words())))
            .or_else(|| headings().find_map(|it| below(it).next()))?;
        Some(StatedReason { text: failure.text, lines: failure.lines })
    }

    /// Returns the failure described in the previous bullet, which is the reason of a lesson.
    fn preceding_failure(&self, at: usize) -> Option<StatedReason> {
        let before = self.blocks.get(at.checked_sub(1)?)?;
        let lesson = &self.blocks[at];
        let is_sibling = before.heading == lesson.heading
            && before.parent == lesson.parent
            && before.shape == lesson.shape;
        let (label, rest) = split_label(&before.text).filter(|_| is_sibling)?;
        let last = label.split_whitespace().next_back().unwrap_or_default();
        if !WordList::of(last).opens_with(cue_phrases::FAILURES) {
            return None;
        }
        let failure = before.sentences_from(rest).into_iter().next()?;
        Some(StatedReason { text: failure.text, lines: failure.lines })
    }

    /// Returns a relayed instruction: `User instructed: always …`.
    fn user_instruction(
        &self,
        at: usize,
        sentence: &LogSentence,
        rest: &[LogSentence],
    ) -> Option<MemoryCandidate> {
        /// The verb comes early: the sentence opens with the person who instructs.
        const INSTRUCTED_WORD_MAX: usize = 3;
        /// The word that makes the instruction lasting follows soon.
        const LASTING_REACH: usize = 6;
        /// Among characters that each count as a word, it follows later.
        const UNSPACED_REACH: usize = 14;
        let words = sentence.words();
        let (verb, width) = words.find(cue_phrases::INSTRUCTED)?;
        let lasting = words.find(cue_phrases::LASTING_WORDS)?.0;
        // Without such a word a relayed request is a task.
        if verb > INSTRUCTED_WORD_MAX
            || lasting + 1 < verb
            || lasting
                > verb + width + if words.is_unspaced() { UNSPACED_REACH } else { LASTING_REACH }
        {
            return None;
        }
        let after = words.offset(verb + width)?;
        let who = sentence.text[..after]
            .trim_end_matches([':', '：', ',', '，', '、', ' ', '—', '"', '“', '「'])
            .to_owned();
        let colon = sentence.text[..after]
            .trim_end_matches([' ', '"', '“', '「'])
            .ends_with([':', '：', '，', '、']);
        let (mut statement, mut why, mut lines) =
            (sentence.text.clone(), None, sentence.lines.clone());
        let reason =
            split_reason(&statement).or_else(|| split_at_mark(&statement, &["; ", " — ", " – "]));
        if let Some((claim, reason)) = reason {
            (statement, why) = (claim, Some(reason));
        } else if let Some(reason) = self.labelled_reason(at).or_else(|| reason_in_next(rest)) {
            lines.extend(reason.lines);
            why = Some(reason.text);
        }
        if colon {
            statement.replace_range(..after.min(statement.len()), "");
        }
        let why = why.unwrap_or(who);
        // `…, so I changed it`: that was a task, and it is done.
        let done = WordList::of(&why).opens_with(cue_phrases::SO_FIRST_PERSON);
        let passing = WordList::of(&statement).opens_with(cue_phrases::NOT_RULES);
        (is_self_contained(&statement) && !done && !passing)
            .then(|| self.candidate(MemoryType::Feedback, 13, at, &statement, Some(why), lines))
    }

    /// Returns an imperative with its reason: `Always … because …`.
    fn reasoned_rule(
        &self,
        at: usize,
        sentence: &LogSentence,
        rest: &[LogSentence],
    ) -> Option<MemoryCandidate> {
        if !sentence.words().is_marked_as(cue_phrases::RULE_OPENERS)
            || !is_command(&sentence.text)
            || code_share(&sentence.text) > CODE_SHARE_MAX
        {
            return None;
        }
        let (mut statement, mut lines) = (sentence.text.clone(), sentence.lines.clone());
        // After an imperative, the text behind a colon or a dash is the reason.
        let reason = split_reason(&statement)
            .or_else(|| split_at_mark(&statement, &[": ", "; ", " — ", " – "]));
        let why = if let Some((claim, why)) = reason {
            statement = claim;
            why
        } else {
            let why = self.labelled_reason(at).or_else(|| reason_in_next(rest))?;
            lines.extend(why.lines);
            why.text
        };
        // A reason that holds only today makes a rule that holds only today.
        (is_self_contained(&statement) && !WordList::of(&why).has(cue_phrases::TRANSIENT))
            .then(|| self.candidate(MemoryType::Feedback, 12, at, &statement, Some(why), lines))
    }
}

/// Returns whether a sentence opens as a rule, with an imperative after `always` or `never`.
fn is_command(text: &str) -> bool {
    let words = WordList::of(text);
    let Some((at, width)) = words.opening_cue(cue_phrases::RULE_OPENERS) else { return false };
    let Some(verb_at) = words.offset(at + width) else { return false };
    // `Always-on mode` is a name.
    let joined = text[..verb_at].ends_with(['-', '/', ':']);
    !joined && !words.is_marked_as(cue_phrases::NOT_RULES) && !is_report(&text[verb_at..])
}

/// Returns whether a sentence says what went wrong and nothing that has to be done.
fn reports_error(words: &WordList) -> bool {
    words.has(cue_phrases::ERROR_REPORTS) && !words.has(cue_phrases::RULE)
}

fn says_rule(title: &str) -> bool {
    let words = WordList::of(title);
    words.len() >= 2 && words.has(cue_phrases::RULE) && !title.contains(['?', '？'])
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix(['"', '“']).map_or(text, |rest| rest.trim_end_matches(['"', '”']))
}
