//! Asks a model for the summary of a week or month, and parses its Markdown.

use std::fmt::Write as _;

use super::{
    ModelEngine, align,
    request_data::{self, DataBlock},
    unreadable, with_follow_up,
};
use crate::{
    config::settings::Length,
    engine::{DraftFault, EngineDraft, EngineError, SummaryInput, extractive},
    memory::{
        item::{Item, SummarySection},
        period::{Grain, Period},
    },
    model::{
        Message, ModelRequest, Stage,
        prompt::{Prompt, PromptName},
    },
};

/// The least budget of one part of the data, in characters.
const PART_CHARS_MIN: usize = 400;

/// A parsed reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedSummary {
    /// Its bullets in the order of the file.
    pub sections: Vec<(SummarySection, Vec<Item>)>,
    /// What it contains that was not requested, worded for the model.
    pub faults: Vec<String>,
}

impl ParsedSummary {
    fn items(&self) -> impl Iterator<Item = &Item> {
        self.sections.iter().flat_map(|(_, items)| items)
    }
}

impl ModelEngine {
    pub(super) fn summarize_by_model(
        &self,
        input: &SummaryInput<'_>,
    ) -> Result<EngineDraft, EngineError> {
        let blocks = data_blocks(input);
        if blocks.is_empty() {
            return Err(EngineError::EmptySources { period: input.period });
        }
        let is_week = input.period.grain() == Grain::Week;
        let stored = is_week.then(|| self.stored_week(input)).transpose()?.flatten();
        let replies = if let Some(text) = stored {
            let lengths = (input.budget.target_chars, input.budget.limit_chars);
            let request = self.summary_request(input.period, &blocks, lengths);
            vec![parse_part(input.period, &blocks, request, text)?]
        } else {
            let empty = ModelRequest {
                messages: Vec::new(),
                ..self.summary_request(input.period, &[], (0, 0))
            };
            self.ask_in_parts(&blocks, &empty, |parts, i| {
                let part = &parts[i];
                let request =
                    self.summary_request(input.period, part, lengths_for_part(input, parts, i));
                let text = self.ask(&request)?;
                parse_part(input.period, part, request, text)
            })?
        };
        let mut all = EngineDraft::default();
        for (request, text, mut parsed) in replies {
            all.faults.append(&mut parsed.faults);
            all.replies.push((request, text));
            merge_sections(&mut all.sections, parsed.sections);
        }
        for (section, item) in extractive::pinned_items(input) {
            let mut items = all.sections.iter().flat_map(|(_, items)| items);
            if !items.any(|it| it.text == item.text) {
                merge_sections(&mut all.sections, vec![(section, vec![item])]);
            }
        }
        Ok(all)
    }

    pub(super) fn retry_by_model(
        &self,
        input: &SummaryInput<'_>,
        draft: &EngineDraft,
        faults: &[DraftFault],
    ) -> Result<Option<EngineDraft>, EngineError> {
        let allowed = sections_of(input.period);
        let mut all = EngineDraft::default();
        for (i, (request, reply)) in draft.replies.iter().enumerate() {
            let parsed = parse_reply(reply, allowed);
            let concerns_reply = |fault: &DraftFault| match &fault.item {
                Some(item) => parsed.items().any(|it| it.text == item.text),
                None => parsed.faults.contains(&fault.reason),
            };
            let faults: Vec<&DraftFault> = faults.iter().filter(|it| concerns_reply(it)).collect();
            if faults.is_empty() {
                continue;
            }
            let text =
                match self.ask(&with_follow_up(request.clone(), reply, retry_message(&faults))) {
                    Ok(text) => text,
                    // Keep the replacements that earlier parts gave.
                    Err(_) if i > 0 && !all.sections.is_empty() => break,
                    Err(error) => return Err(error),
                };
            let mut retried = parse_reply(&text, allowed);
            complete_citations(&mut retried.sections, &data_blocks(input));
            merge_sections(&mut all.sections, retried.sections);
        }
        Ok((!all.sections.is_empty()).then_some(all))
    }

    /// Returns the request for a part of the data; `lengths` are the target and the limit in characters.
    fn summary_request(
        &self,
        period: Period,
        part: &[DataBlock],
        lengths: (usize, usize),
    ) -> ModelRequest {
        let (stage, name, length) = match period.grain() {
            Grain::Month => (Stage::Monthly, PromptName::Monthly, &self.compaction.monthly),
            _ => (Stage::Weekly, PromptName::Weekly, &self.compaction.weekly),
        };
        let prompt = self.prompts.get(name);
        let lengths = self.lengths_within(lengths, self.output_tokens(prompt));
        let messages = vec![Message::user(self.summary_message(period, part, lengths))];
        let system = instructions(prompt, period, length);
        self.request(stage, period.to_string(), prompt, system, messages)
    }

    /// Limits the target and the limit in characters so that the reply, with its citations, fits into
    /// `tokens`; a truncated reply is useless.
    pub(super) fn lengths_within(&self, lengths: (usize, usize), tokens: u32) -> (usize, usize) {
        /// Growth of the text by citations and headings.
        const WITH_CITATIONS: f64 = 1.3;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "tokens times a few characters"
        )]
        let room = (f64::from(tokens) * self.client.chars_per_token() / WITH_CITATIONS) as usize;
        // Some models exceed the limit, but not by much.
        let limit = lengths.1.min(room);
        (lengths.0.min(room * 9 / 10), limit)
    }

    pub(super) fn summary_message(
        &self,
        period: Period,
        part: &[DataBlock],
        (target, limit): (usize, usize),
    ) -> String {
        let days = format!("{} to {}", period.first(), period.last());
        format!(
            "{period} ({days})\n\n{}\n\nWrite about {target} characters, never more than {limit}; \
             citations do not count.",
            request_data::fenced_blocks(part, &self.nonce)
        )
    }
}

/// Parses the reply about a part of the data.
fn parse_part(
    period: Period,
    part: &[DataBlock],
    request: ModelRequest,
    text: String,
) -> Result<(ModelRequest, String, ParsedSummary), EngineError> {
    let mut parsed = parse_reply(&text, sections_of(period));
    if parsed.sections.is_empty() {
        return Err(unreadable("it has no bullet under a heading that was asked for"));
    }
    complete_citations(&mut parsed.sections, part);
    Ok((request, text, parsed))
}

pub(super) fn instructions(prompt: &Prompt, period: Period, length: &Length) -> String {
    let headings: Vec<String> =
        sections_of(period).iter().map(|it| format!("### {}", it.title())).collect();
    let ratio = format!("{:.0}%", length.ratio * 100.0);
    prompt.fill(&[("sections", &headings.join("\n")), ("ratio", &ratio)])
}

/// Returns the target and the limit of a part of the data: its share of the file's budget.
fn lengths_for_part(
    input: &SummaryInput<'_>,
    parts: &[Vec<DataBlock>],
    i: usize,
) -> (usize, usize) {
    let chars_of = |part: &Vec<DataBlock>| part.iter().map(DataBlock::chars).sum::<usize>();
    let (chars, whole) = (chars_of(&parts[i]), parts.iter().map(chars_of).sum::<usize>());
    let share = |budget: usize| {
        let part = budget.saturating_mul(chars) / whole.max(1);
        if parts.len() == 1 { budget } else { part.max(PART_CHARS_MIN) }
    };
    (share(input.budget.target_chars), share(input.budget.limit_chars))
}

fn retry_message(faults: &[&DraftFault]) -> String {
    let mut message = String::from(
        "Some bullets failed the check. Reply with the corrected bullets only, each under its heading, \
         in the same format. Leave out a bullet that the lines do not support. Do not repeat bullets \
         that are not listed here.\n",
    );
    for DraftFault { item, reason } in faults {
        let _ = match item {
            Some(item) => write!(message, "\n- {item}\n  Fault: {reason}"),
            None => write!(message, "\n- {reason}"),
        };
    }
    message
}

pub(super) fn data_blocks(input: &SummaryInput<'_>) -> Vec<DataBlock> {
    match input.period.grain() {
        Grain::Month => request_data::blocks_of_bullets(
            input.weeks.iter().map(|it| (it.period, it.items.as_slice())),
        ),
        _ => request_data::blocks_of_logs(input.logs),
    }
}

fn sections_of(period: Period) -> &'static [SummarySection] {
    match period.grain() {
        Grain::Month => &SummarySection::MONTHLY,
        _ => &SummarySection::WEEKLY,
    }
}

/// Expands the citations of bullets to all addresses, and finds lines for bullets without a citation.
fn complete_citations(sections: &mut [(SummarySection, Vec<Item>)], blocks: &[DataBlock]) {
    let labels = request_data::LineLabels::of(blocks);
    for item in sections.iter_mut().flat_map(|(_, items)| items) {
        item.citation = match &item.citation {
            Some(citation) => Some(labels.expand(citation)),
            None => align::find_citation(&item.text, blocks),
        };
    }
}

/// Adds bullets to the section that they belong to.
pub fn merge_sections(
    all: &mut Vec<(SummarySection, Vec<Item>)>,
    more: Vec<(SummarySection, Vec<Item>)>,
) {
    for (section, items) in more {
        match all.iter_mut().find(|it| it.0 == section) {
            Some((_, present)) => present.extend(items),
            None => all.push((section, items)),
        }
    }
    all.sort_by_key(|it| it.0);
}

/// Parses a reply: bullets under the requested headings.
///
/// Removes a code fence around the whole reply. Everything else that was not requested is left out and
/// reported as a fault.
pub fn parse_reply(text: &str, allowed: &[SummarySection]) -> ParsedSummary {
    let mut parsed = ParsedSummary::default();
    let mut section: Option<SummarySection> = None;
    let mut open = false;
    for line in without_code_fence(text).lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            open = false;
            continue;
        }
        if let Some(title) = heading_title(trimmed) {
            open = false;
            section = SummarySection::from_title(title).filter(|it| allowed.contains(it));
            if section.is_none() {
                parsed.faults.push(format!("the heading `{}` was not requested", truncated(title)));
            }
            continue;
        }
        let bullet = ["- ", "* ", "• ", "+ "].iter().find_map(|it| trimmed.strip_prefix(it));
        match (bullet, section) {
            (Some(bullet), Some(section)) => {
                merge_sections(&mut parsed.sections, vec![(section, vec![Item::parse(bullet)])]);
                open = true;
            }
            // A bullet may span several lines.
            (None, Some(section)) if open => {
                let items = parsed.sections.iter_mut().find(|it| it.0 == section);
                if let Some(item) = items.and_then(|it| it.1.last_mut()) {
                    *item = Item::parse(&format!("{item} {trimmed}"));
                }
            }
            _ => {
                if !parsed.faults.iter().any(|it| it.starts_with("text outside")) {
                    parsed.faults.push("text outside the bullets was not requested".to_owned());
                }
            }
        }
    }
    parsed.sections.retain(|(_, items)| !items.is_empty());
    parsed
}

fn heading_title(line: &str) -> Option<&str> {
    let marks = line.bytes().take_while(|it| *it == b'#').count();
    let title = (1..=6).contains(&marks).then(|| line[marks..].trim())?;
    Some(title.trim_matches(|c| c == '*' || c == ':'))
}

fn truncated(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Returns a reply without the code fence around all of it.
pub fn without_code_fence(text: &str) -> &str {
    let trimmed = text.trim();
    let Some(inner) = trimmed.strip_prefix("```") else { return trimmed };
    let Some((language, rest)) = inner.split_once('\n') else { return trimmed };
    if language.trim().chars().any(|c| !c.is_alphanumeric()) {
        return trimmed;
    }
    rest.trim_end().strip_suffix("```").map_or(trimmed, str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str], faults: usize) {
        let parsed = parse_reply(text, &SummarySection::WEEKLY);
        let seen: Vec<String> = parsed
            .sections
            .iter()
            .flat_map(|(section, items)| {
                items.iter().map(|it| format!("{}: {it}", section.title()))
            })
            .collect();
        assert_eq!(seen, expected, "{text:?}");
        assert_eq!(parsed.faults.len(), faults, "{:?}", parsed.faults);
    }

    #[test]
    fn bullets_are_parsed_despite_text_around_them() {
        let good = "### Decisions\n- SQLite, since one file [2026-04-02:4]\n";
        let bullet = "Decisions: SQLite, since one file [2026-04-02:4]";
        check(good, &[bullet], 0);
        check(&format!("```markdown\n{good}```"), &[bullet], 0);
        check(&format!("Here is the summary:\n\n{good}"), &[bullet], 1);
        check(&format!("# Week 2026-W14\n\n{good}"), &[bullet], 1);
        check(&format!("{good}\nLet me know if you need more."), &[bullet], 1);
        check("## Decisions\n* SQLite,\n  since one file [2026-04-02:4]", &[bullet], 0);
        check("**Decisions**\n- SQLite", &[], 1);
        check("### Thoughts\n- Something [2026-04-02:1]", &[], 2);
        check("", &[], 0);
    }
}
