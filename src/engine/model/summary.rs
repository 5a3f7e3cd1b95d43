//! Asks a model for the summary of a week or month, and parses its Markdown.

use serde_json::{Value, json};

use super::{
    ModelEngine, align,
    repair::{self, FaultyItem},
    request_data::{self, DataBlock, LineIds},
    unreadable,
};
use crate::{
    config::settings::Length,
    engine::{
        BulletFault, EngineDraft, EngineError, SummaryInput, extractive,
        keep_mark::without_keep_mark,
    },
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

/// As many bullets that leave out an amount are worth a call by themselves.
const INCOMPLETE_WORTH_A_CALL: usize = 3;

/// Bullets in their sections, in the order of the file.
pub type Sections = Vec<(SummarySection, Vec<Item>)>;

/// A bullet with a fault: the index of its section and its own, and the fault.
pub(super) type FaultyBullet = ((usize, usize), BulletFault);

impl ModelEngine {
    pub(super) fn summarize_by_model(
        &self,
        input: &SummaryInput<'_>,
    ) -> Result<EngineDraft, EngineError> {
        let blocks = data_blocks(input);
        if blocks.is_empty() {
            return Err(EngineError::EmptySources { period: input.period });
        }
        let ids = LineIds::of(&blocks);
        let is_week = input.period.grain() == Grain::Week;
        let stored = is_week.then(|| self.stored_week(input)).transpose()?.flatten();
        let empty = ModelRequest {
            messages: Vec::new(),
            ..self.summary_request(input.period, &[], (0, 0))
        };
        let mut draft = EngineDraft::default();
        let corrected = stored.as_ref().and_then(|it| it.corrected.clone());
        if let Some(stored) = stored {
            draft.sections = parse_part(input.period, &blocks, &ids, &stored.week)?;
        } else {
            let replies = self.ask_in_parts(&blocks, &empty, |parts, i| {
                let lengths = lengths_for_part(input, parts, i);
                let request = self.summary_request(input.period, &parts[i], lengths);
                parse_part(input.period, &parts[i], &ids, &self.ask(&request)?)
            })?;
            for sections in replies {
                merge_sections(&mut draft.sections, sections);
            }
        }
        if let Some(corrected) = corrected {
            draft.corrected = corrected;
        } else {
            let faulty = faulty_bullets(input, &draft.sections);
            if !faulty.is_empty() {
                let items = faulty.iter().map(|it| faulty_item(&draft.sections, it, &ids));
                let items: Vec<FaultyItem> = items.collect();
                let repair = self.repair_request(&empty, &items, &blocks, &bullet_properties());
                // Without corrections the first reply is used as it is.
                let text = Some(&repair).filter(|it| self.fits_one_request(it));
                let text = text.and_then(|it| self.ask(it).ok()).unwrap_or_default();
                for (at, value) in repair::parse_corrections(&text, faulty.len()) {
                    correct_bullet(input, &mut draft, &faulty[at], &value, &ids);
                }
            }
        }
        for item in draft.sections.iter_mut().flat_map(|(_, items)| items) {
            // Models copy the mark with the line.
            item.text = without_keep_mark(&item.text);
        }
        for (section, item) in extractive::pinned_items(input) {
            let mut items = draft.sections.iter().flat_map(|(_, items)| items);
            if !items.any(|it| it.text == item.text) {
                merge_sections(&mut draft.sections, vec![(section, vec![item])]);
            }
        }
        Ok(draft)
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
    ids: &LineIds,
    text: &str,
) -> Result<Sections, EngineError> {
    let sections = parse_cited(text, sections_of(period), part, ids);
    if sections.is_empty() {
        return Err(unreadable("it has no bullet under a heading that was asked for"));
    }
    Ok(sections)
}

/// Parses a reply, and finds lines for bullets without a citation: small models forget those.
pub(super) fn parse_cited(
    text: &str,
    allowed: &[SummarySection],
    blocks: &[DataBlock],
    ids: &LineIds,
) -> Sections {
    let mut sections = parse_reply(text, allowed, ids);
    let items = sections.iter_mut().flat_map(|it| &mut it.1);
    for item in items.filter(|it| it.citation.is_none()) {
        item.citation = align::find_citation(&item.text, blocks);
    }
    sections
}

/// Prints sections as a reply has them.
pub(super) fn print_sections(sections: &Sections) -> String {
    let mut text = String::new();
    for (section, items) in sections {
        text.extend(["### ", section.title(), "\n"]);
        for item in items {
            text.extend(["- ", &item.to_string(), "\n"]);
        }
    }
    text
}

/// Returns the bullets that are worth a second try.
pub(super) fn faulty_bullets(input: &SummaryInput<'_>, sections: &Sections) -> Vec<FaultyBullet> {
    let mut faulty: Vec<FaultyBullet> = Vec::new();
    for (s, (_, items)) in sections.iter().enumerate() {
        let found = items.iter().enumerate().filter_map(|(i, it)| Some((i, (input.check)(it)?)));
        faulty.extend(found.map(|(i, fault)| ((s, i), fault)));
    }
    let is_refused = |it: &FaultyBullet| matches!(it.1, BulletFault::Refused(_));
    let is_worth_it = faulty.iter().any(is_refused) || faulty.len() >= INCOMPLETE_WORTH_A_CALL;
    faulty.sort_by_key(|it| !is_refused(it));
    faulty.truncate(if is_worth_it { repair::ITEMS_MAX } else { 0 });
    faulty
}

/// Returns a bullet as an item to be corrected.
pub(super) fn faulty_item(
    sections: &Sections,
    ((s, i), fault): &FaultyBullet,
    ids: &LineIds,
) -> FaultyItem {
    let Item { text, citation } = &sections[*s].1[*i];
    let cited = citation.as_ref().map(|it| ids.print(it)).unwrap_or_default();
    let (BulletFault::Refused(fault) | BulletFault::Incomplete { reason: fault, .. }) = fault;
    FaultyItem {
        item: json!({ "text": text, "citations": cited }),
        citation: citation.clone(),
        fault: fault.clone(),
    }
}

pub(super) fn bullet_properties() -> Value {
    json!({ "text": { "type": "string" }, "citations": { "type": "string" } })
}

/// Replaces a bullet by its correction, unless that is worse: no other bullet changes.
pub(super) fn correct_bullet(
    input: &SummaryInput<'_>,
    draft: &mut EngineDraft,
    ((s, i), fault): &FaultyBullet,
    value: &Value,
    ids: &LineIds,
) {
    let text = value["text"].as_str().map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
    let citation = value["citations"].as_str().and_then(|it| ids.parse(it).ok());
    let (Some(text), Some(citation)) = (text.filter(|it| !it.is_empty()), citation) else { return };
    let correction = Item { text, citation: Some(citation) };
    let verdict = (input.check)(&correction);
    // Of two that are refused, a person reviews the last words.
    let is_refused_again =
        matches!((&verdict, fault), (Some(BulletFault::Refused(_)), BulletFault::Refused(_)));
    let is_better = match (verdict, fault) {
        (None, _) | (Some(BulletFault::Incomplete { .. }), BulletFault::Refused(_)) => true,
        (
            Some(BulletFault::Incomplete { missing: now, .. }),
            BulletFault::Incomplete { missing: before, .. },
        ) => now < *before,
        (Some(BulletFault::Refused(_)), _) => false,
    };
    if is_refused_again {
        draft.sections[*s].1[*i] = correction;
    } else if is_better {
        let before = std::mem::replace(&mut draft.sections[*s].1[*i], correction.clone());
        draft.corrected.push((before, correction));
    }
}

pub(super) fn instructions(prompt: &Prompt, period: Period, length: &Length) -> String {
    let headings: Vec<String> =
        sections_of(period).iter().map(|it| format!("### {}", it.title())).collect();
    let ratio = format!("{:.0}%", length.ratio * 100.0);
    prompt.fill(&[("sections", &headings.join("\n")), ("ratio", &ratio)])
}

/// Returns the target and the limit of a part of the data: its share of the file's budget.
pub(super) fn lengths_for_part(
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

/// Adds bullets to the section that they belong to.
pub fn merge_sections(all: &mut Sections, more: Sections) {
    for (section, items) in more {
        match all.iter_mut().find(|it| it.0 == section) {
            Some((_, present)) => present.extend(items),
            None => all.push((section, items)),
        }
    }
    all.sort_by_key(|it| it.0);
}

/// Parses a reply: bullets under the requested headings. Everything else that was not requested is left out.
pub fn parse_reply(text: &str, allowed: &[SummarySection], ids: &LineIds) -> Sections {
    let mut sections = Sections::new();
    let mut section: Option<SummarySection> = None;
    let mut open: Option<String> = None;
    for line in without_code_fence(text).lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            open = None;
            continue;
        }
        if let Some(title) = heading_title(trimmed) {
            open = None;
            section = SummarySection::from_title(title).filter(|it| allowed.contains(it));
            continue;
        }
        let bullet = ["- ", "* ", "• ", "+ "].iter().find_map(|it| trimmed.strip_prefix(it));
        match (bullet, section) {
            (Some(bullet), Some(section)) => {
                let item = ids.parse_bullet(bullet);
                merge_sections(&mut sections, vec![(section, vec![item])]);
                open = Some(bullet.to_owned());
            }
            // A bullet may span several lines.
            (None, Some(section)) => {
                let items = sections.iter_mut().find(|it| it.0 == section);
                let item = items.and_then(|it| it.1.last_mut());
                if let (Some(open), Some(item)) = (&mut open, item) {
                    open.extend([" ", trimmed]);
                    *item = ids.parse_bullet(open);
                }
            }
            _ => {}
        }
    }
    sections.retain(|(_, items)| !items.is_empty());
    sections
}

fn heading_title(line: &str) -> Option<&str> {
    let marks = line.bytes().take_while(|it| *it == b'#').count();
    let title = (1..=6).contains(&marks).then(|| line[marks..].trim())?;
    Some(title.trim_matches(|c| c == '*' || c == ':'))
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
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::engine::{LengthBudget, extractive::corpus_stats::CorpusCounts};

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let sections = parse_reply(text, &SummarySection::WEEKLY, &LineIds::default());
        let seen: Vec<String> = sections
            .iter()
            .flat_map(|(section, items)| {
                items.iter().map(|it| format!("{}: {it}", section.title()))
            })
            .collect();
        assert_eq!(seen, expected, "{text:?}");
    }

    #[test]
    fn bullets_are_parsed_despite_text_around_them() {
        let good = "### Decisions\n- SQLite, since one file [2026-04-02:4]\n";
        let bullet = "Decisions: SQLite, since one file [2026-04-02:4]";
        check(good, &[bullet]);
        check(&format!("```markdown\n{good}```"), &[bullet]);
        check(&format!("Here is the summary:\n\n{good}"), &[bullet]);
        check(&format!("# Week 2026-W14\n\n{good}"), &[bullet]);
        check(&format!("{good}\nLet me know if you need more."), &[bullet]);
        check("## Decisions\n* SQLite,\n  since one file [2026-04-02:4]", &[bullet]);
        check("**Decisions**\n- SQLite", &[]);
        check("### Thoughts\n- Something [2026-04-02:1]", &[]);
        check("", &[]);
    }

    /// The last words of bullets, which say what is wrong with them; the better ones first.
    const LAST_WORDS: [&str; 4] = ["good", "short", "shorter", "refused"];

    fn rank(item: &Item) -> usize {
        LAST_WORDS.iter().position(|it| item.text.ends_with(&format!(" {it}"))).unwrap()
    }

    fn fault(item: &Item) -> Option<BulletFault> {
        match rank(item) {
            0 => None,
            3 => Some(BulletFault::Refused("it is refused".to_owned())),
            missing => Some(BulletFault::Incomplete { missing, reason: String::new() }),
        }
    }

    fn bullet(name: &str, (number, line, last): (usize, u32, usize)) -> Item {
        let last = LAST_WORDS[last];
        Item::parse(&format!("{name} {number} is {last} [2026-04-02:{line}]"))
    }

    proptest! {
        #[test]
        fn a_correction_replaces_its_own_bullet_or_none(
            bullets in vec((0usize..2, 1u32..4, 0usize..4), 1..12),
            corrections in vec((0usize..14, 1u32..4, 0usize..4), 0..24),
        ) {
            let mut draft = EngineDraft::default();
            for (i, (section, line, last)) in bullets.into_iter().enumerate() {
                let bullet = bullet("Bullet", (i, line, last));
                let section = SummarySection::WEEKLY[section];
                merge_sections(&mut draft.sections, vec![(section, vec![bullet])]);
            }
            let input = SummaryInput {
                period: "2026-W14".parse().unwrap(),
                logs: &[],
                weeks: &[],
                budget: LengthBudget { target_chars: 0, limit_chars: 0, verbatim: false },
                counts: &CorpusCounts::default(),
                check: &fault,
            };
            let before = draft.sections.clone();
            let faulty = faulty_bullets(&input, &before);
            let corrections = &corrections[..corrections.len().min(2 * faulty.len())];
            let items = corrections.iter().map(|it| {
                let Item { text, citation } = bullet("Correction", *it);
                json!({ "n": it.0, "text": text, "citations": citation.unwrap().to_string() })
            });
            let reply = json!({ "items": items.collect::<Vec<_>>() }).to_string();
            for (at, value) in repair::parse_corrections(&reply, faulty.len()) {
                correct_bullet(&input, &mut draft, &faulty[at], &value, &LineIds::default());
            }
            let mut expected = before.clone();
            for (number, ((s, i), _)) in (1..).zip(&faulty) {
                let own = corrections.iter().find(|it| it.0 == number);
                let old = &mut expected[*s].1[*i];
                let is_refused = rank(old) + 1 == LAST_WORDS.len();
                let better = own.map(|it| bullet("Correction", *it));
                let better = better.filter(|it| rank(it) < rank(old) || is_refused);
                if let Some(better) = better {
                    *old = better;
                }
            }
            prop_assert_eq!(&draft.sections, &expected);
            let after = print_sections(&draft.sections);
            for item in before.iter().flat_map(|it| &it.1).filter(|it| fault(it).is_none()) {
                prop_assert!(after.contains(&format!("- {item}\n")), "{} in {}", item, after);
            }
        }
    }
}
