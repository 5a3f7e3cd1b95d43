//! The second try: one small request for all items of a job that failed the checks.
//!
//! Each item is shown with what is wrong with it, and with the lines around those that it cites; nothing else is sent
//! again. A correction replaces the item of its number and no other.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde_json::{Value, json};

use super::{
    ModelEngine, json as reply,
    request_data::{self, BlockKind, DataBlock},
};
use crate::{
    memory::{address::Citation, correction::shorten},
    model::{Message, ModelRequest, OutputSchema, Stage, prompt::PromptName},
    text::words,
};

/// The most items in a request: the reply has room for as many.
pub(super) const ITEMS_MAX: usize = 24;

/// How many lines before and after a cited one are shown.
const LINES_AROUND: usize = 2;

/// How many characters are shown of a line that no item cites or lacks.
const AROUND_CHARS_MAX: usize = 240;

/// How many characters a line with a word that an item lacks may have to be shown whole.
const HINT_CHARS_MAX: usize = 1000;

/// A shorter word, such as `PR` or `7`, is in many lines: another one has the same only this near.
const NAME_CHARS_MIN: usize = 4;
const LINES_NEAR: usize = 8;

/// An item of a reply that failed the checks.
#[derive(Clone, Debug)]
pub(super) struct FaultyItem {
    /// The item as the reply has it, or as it would be in one.
    pub(super) item: Value,
    pub(super) citation: Option<Citation>,
    /// What is wrong, worded for the model.
    pub(super) fault: String,
}

impl ModelEngine {
    /// Returns the request for corrections of the items of a reply to `first`. `blocks` are the data of that, and
    /// `properties` those of an item.
    pub(super) fn repair_request(
        &self,
        first: &ModelRequest,
        items: &[FaultyItem],
        blocks: &[DataBlock],
        properties: &Value,
    ) -> ModelRequest {
        let prompt = self.prompts.get(PromptName::Repair);
        let mut shown = ShownLines::new(blocks);
        let mut list = String::new();
        for (item, number) in items.iter().zip(1..) {
            let hint = shown.add(item);
            let _ = writeln!(list, "{number}. {}\n   Fault: {}.{hint}", item.item, item.fault);
        }
        let list = request_data::fence(&list, &self.nonce);
        let lines = request_data::fenced_blocks(&shown.into_blocks(), &self.nonce);
        let message = format!("{list}\n\n{lines}\n\nReply with the JSON object only.");
        let mut numbered = properties.clone();
        numbered["n"] = json!({ "type": "integer" });
        let schema = reply::list_schema("items", &reply::object_schema(&numbered));
        ModelRequest {
            schema: Some(OutputSchema { name: "corrections".to_owned(), ..schema }),
            ..self.request(
                Stage::Repair,
                first.period.clone(),
                prompt,
                prompt.fill(&[]),
                vec![Message::user(message)],
            )
        }
    }
}

/// Returns the corrected items of a reply by their index; those that the model withdrew are missing.
pub(super) fn parse_corrections(text: &str, items: usize) -> BTreeMap<usize, Value> {
    let list = reply::find_value(text).and_then(|it| reply::find_list(it, "items", 2 * items).ok());
    let numbered = list.unwrap_or_default().into_iter().filter_map(|mut item| {
        let number = item.as_object_mut()?.remove("n")?.as_u64()?;
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        (index < items).then_some((index, item))
    });
    // Of two with the same number the first one counts.
    let mut found = BTreeMap::new();
    for (index, item) in numbered {
        found.entry(index).or_insert(item);
    }
    found
}

/// The lines that are shown with the items.
struct ShownLines<'a> {
    blocks: &'a [DataBlock],
    /// The indices of block and line.
    places: BTreeSet<(usize, usize)>,
    /// Of those the ones that are shown whole.
    whole: BTreeSet<(usize, usize)>,
    /// Of the others the ones that have a word that an item lacks, and where it is, in bytes.
    with_missing: BTreeMap<(usize, usize), usize>,
}

impl<'a> ShownLines<'a> {
    fn new(blocks: &'a [DataBlock]) -> Self {
        Self {
            blocks,
            places: BTreeSet::new(),
            whole: BTreeSet::new(),
            with_missing: BTreeMap::new(),
        }
    }

    /// Shows the lines of an item; returns where the words are that its lines lack, if they are anywhere.
    fn add(&mut self, item: &FaultyItem) -> String {
        let cited: Vec<(usize, usize)> = item.citation.as_ref().map_or_else(Vec::new, |citation| {
            let is_cited = |it: &(usize, usize)| {
                let line = self.line(*it);
                line.number > 0 && line.citation.overlaps(citation)
            };
            self.all_places().filter(is_cited).collect()
        });
        self.whole.extend(&cited);
        for &(b, l) in &cited {
            let lines = &self.blocks[b].lines;
            let around = if self.blocks[b].kind == BlockKind::Lines { LINES_AROUND } else { 0 };
            let near = l.saturating_sub(around)..=(l + around).min(lines.len() - 1);
            self.places.extend(near.map(|it| (b, it)));
            let is_heading = |it: &usize| lines[*it].text.starts_with('#');
            self.places.extend((0..l).rev().find(is_heading).map(|it| (b, it)));
        }
        let mut hints = String::new();
        let about = words::long_words(item.item["text"].as_str().unwrap_or_default());
        // A small number counts something else in every line.
        let counts = |it: &&str| it.len() < 3 && it.bytes().all(|it| it.is_ascii_digit());
        for missing in missing_words(&item.fault).filter(|it| !counts(it)) {
            // What another log says of the same name is about something else.
            let is_of_logs = |b: usize| self.blocks[b].kind == BlockKind::Lines;
            let is_near = |it: &(usize, usize)| {
                let is_by =
                    |at: &(usize, usize)| at.0 == it.0 || !is_of_logs(at.0) || !is_of_logs(it.0);
                cited.iter().any(is_by)
            };
            let is_long = missing.chars().count() >= NAME_CHARS_MIN;
            let is_clear = |it: &(usize, usize)| {
                let is_by = |at: &(usize, usize)| {
                    at.0 != it.0 || at.1.abs_diff(it.1) <= LINES_NEAR || !is_of_logs(it.0)
                };
                is_long || cited.iter().any(is_by)
            };
            let has_it = |it: &(usize, usize)| {
                self.line(*it).number > 0
                    && is_near(it)
                    && is_clear(it)
                    && has_words(&self.line(*it).text, missing)
                    && !cited.contains(it)
            };
            let shared = |it: &(usize, usize)| {
                words::long_words(&self.line(*it).text).intersection(&about).count()
            };
            // A bullet that shares nothing else is about something else.
            let is_about = |it: &(usize, usize)| is_of_logs(it.0) || shared(it) > 1;
            let order = |place: &(usize, usize)| {
                let &(b, l) = place;
                let near = cited.iter().map(|at| (at.0.abs_diff(b), at.1.abs_diff(l)));
                (Reverse(shared(place)), near.min().unwrap_or_default())
            };
            let found = self.all_places().filter(|it| has_it(it) && is_about(it));
            if let Some(place) = found.min_by_key(order) {
                self.places.insert(place);
                let line = &self.line(place).text;
                let at = line.find(missing).unwrap_or_default();
                // Of a long line only what is around one word is shown.
                let is_other = self.with_missing.insert(place, at).is_some_and(|it| it != at);
                if is_other || line.chars().count() <= HINT_CHARS_MAX {
                    self.whole.insert(place);
                }
                let id = self.blocks[place.0].id_of(self.line(place));
                let _ = write!(hints, " `{missing}` is in {id}.");
            }
        }
        hints
    }

    fn all_places(&self) -> impl Iterator<Item = (usize, usize)> + 'a {
        let blocks = self.blocks.iter().enumerate();
        blocks.flat_map(|(b, block)| (0..block.lines.len()).map(move |l| (b, l)))
    }

    fn line(&self, (b, l): (usize, usize)) -> &'a request_data::DataLine {
        &self.blocks[b].lines[l]
    }

    fn into_blocks(self) -> Vec<DataBlock> {
        let blocks = self.blocks.iter().enumerate().map(|(b, block)| {
            let lines = self.places.range((b, 0)..(b + 1, 0)).map(|place| {
                let mut line = block.lines[place.1].clone();
                if !self.whole.contains(place) {
                    let at = self.with_missing.get(place).copied().unwrap_or_default();
                    line.text = shorten_around(&line.text, at);
                }
                line
            });
            DataBlock { lines: lines.collect(), ..block.clone() }
        });
        blocks.filter(|it| !it.lines.is_empty()).collect()
    }
}

/// Returns the characters of a line around a byte that are shown, with an ellipsis for what is left out.
fn shorten_around(line: &str, at: usize) -> String {
    let before = line[..at].chars().count();
    // A word at the beginning is seen there.
    if before < AROUND_CHARS_MAX / 2 {
        return shorten(line, AROUND_CHARS_MAX);
    }
    let from = before - AROUND_CHARS_MAX / 2;
    let rest: String = line.chars().skip(from).collect();
    format!("…{}", shorten(&rest, AROUND_CHARS_MAX))
}

/// Returns the words that a fault says are in none of the cited lines.
fn missing_words(fault: &str) -> impl Iterator<Item = &str> {
    let ends = fault.match_indices("` is in none of the cited lines");
    let words = ends.filter_map(|(end, _)| fault[..end].rsplit('`').next());
    words.filter(|it| !it.trim().is_empty())
}

/// Returns whether a text has some words, and not as a part of others.
fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + words.len()..]);
        // `6. Boats` counts a list.
        let is_ordinal =
            before.trim().is_empty() && [". ", ") "].iter().any(|it| after.starts_with(it));
        !is_ordinal
            && !before.ends_with(char::is_alphanumeric)
            && !after.starts_with(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{memory::log::DailyLog, privacy};

    fn blocks() -> Vec<DataBlock> {
        let lines: Vec<String> = (1..=40)
            .map(|it| match it {
                10 => "## Pump house".to_owned(),
                17 => "- line 17 of the PR".to_owned(),
                32 => format!("- line 32 {}", "of the log ".repeat(40)),
                30 => "- Ottilie paid the invoice".to_owned(),
                _ => format!("- line {it}"),
            })
            .collect();
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), lines.join("\n").as_bytes());
        let log = privacy::sanitize(&log.unwrap(), &privacy::PrivacyRules::default());
        request_data::blocks_of_logs(&[log])
    }

    fn shown(citation: &str, fault: &str) -> (String, Vec<String>) {
        let blocks = blocks();
        let mut shown = ShownLines::new(&blocks);
        let citation = citation.parse().ok();
        let hint = shown.add(&FaultyItem { item: Value::Null, citation, fault: fault.to_owned() });
        let lines = shown.into_blocks().into_iter().flat_map(|it| it.lines);
        (hint, lines.map(|it| it.text).collect())
    }

    #[test]
    fn the_lines_around_an_item_its_heading_and_what_it_lacks_are_shown() {
        let (hint, lines) = shown("2026-04-02:20", "`Ottilie` is in none of the cited lines");
        assert_eq!(hint, " `Ottilie` is in L30.");
        assert_eq!(
            lines,
            [
                "## Pump house",
                "- line 18",
                "- line 19",
                "- line 20",
                "- line 21",
                "- line 22",
                "- Ottilie paid the invoice"
            ]
        );
        let both = "`Ottilie` is in none of the cited lines; `PR` is in none of the cited lines";
        assert_eq!(shown("2026-04-02:20", both).0, " `Ottilie` is in L30. `PR` is in L17.");
        assert_eq!(shown("2026-04-02:30", "`PR` is in none of the cited lines").0, "");
        assert_eq!(shown("2026-04-02:19", "`17` is in none of the cited lines").0, "");
        let (hint, lines) = shown("2026-04-02:1", "`Mona` is in none of the cited lines");
        assert_eq!((hint.as_str(), lines.len()), ("", 3));
        let whole = shown("2026-04-02:32", "it is longer").1;
        let around = shown("2026-04-02:31", "it is longer").1;
        let chars = |lines: &[String]| lines.iter().map(|it| it.chars().count()).max();
        assert_eq!((chars(&whole), chars(&around)), (Some(449), Some(237)));
        assert_eq!(shown("no lines", "the bullet cites no line"), (String::new(), Vec::new()));
    }

    #[test]
    fn corrections_are_found_by_number() {
        let reply = r#"{"items": [{"n": 2, "text": "b"}, {"n": 2, "text": "c"}, {"n": 9, "text": "d"}, {"text": "e"}, {"n": 0}]}"#;
        let found = parse_corrections(reply, 3);
        assert_eq!(found, BTreeMap::from([(1, json!({ "text": "b" }))]));
        assert!(parse_corrections("I am sorry.", 3).is_empty());
    }
}
