//! The data of a request: source lines with their addresses, between two markers.
//!
//! A line that occurs more than once in the period is sent once, since most of what agents log repeats
//! word for word. It is labelled with its first address ([`LineLabels`]); a citation of that address
//! means all of them.

use std::{collections::HashMap, fmt::Write as _};

use crate::{
    memory::{
        address::{self, Address, Citation},
        item::{Item, SummarySection},
        markdown::LineKind,
        period::Period,
    },
    privacy::{SanitizedLine, SanitizedLog},
};

/// A line of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct DataLine {
    /// All addresses of the text.
    pub citation: Citation,
    /// The text.
    pub text: String,
}

/// A group of lines under one heading: a day, or a section of a week.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataBlock {
    /// `2026-04-02`, or `2026-W14, Decisions`.
    pub heading: String,
    /// The lines.
    pub lines: Vec<DataLine>,
}

impl DataBlock {
    /// Returns how many characters it takes in a request.
    pub fn chars(&self) -> usize {
        self.heading.chars().count() + 4 + self.lines.iter().map(DataLine::chars).sum::<usize>()
    }
}

impl DataLine {
    /// Returns approximately how many characters it takes in a request.
    pub fn chars(&self) -> usize {
        const ADDRESS: usize = "2026-04-02:117 | ".len();
        self.text.chars().count() + ADDRESS
    }
}

/// Maps the label of each line in a request to the line's citation.
pub struct LineLabels<'a>(HashMap<Address, Option<&'a Citation>>);

impl<'a> LineLabels<'a> {
    /// Labels the lines of a request.
    pub fn of(blocks: &'a [DataBlock]) -> Self {
        let mut labels = HashMap::new();
        for DataLine { citation, .. } in blocks.iter().flat_map(|it| &it.lines) {
            let Some(first) = citation.addresses().next() else { continue };
            // Several bullets of a week may share their first line; those get their whole citation.
            labels.entry(first).and_modify(|it| *it = None).or_insert(Some(citation));
        }
        Self(labels)
    }

    fn label(&self, line: &DataLine) -> String {
        match line.citation.addresses().next() {
            Some(first) if self.0.get(&first).is_some_and(Option::is_some) => first.to_string(),
            _ => line.citation.to_string(),
        }
    }

    /// Returns all addresses meant by a citation that uses labels.
    pub fn expand(&self, citation: &Citation) -> Citation {
        let mut whole = citation.clone();
        for address in citation.addresses() {
            if let Some(Some(all)) = self.0.get(&address) {
                whole.merge(all);
            }
        }
        whole
    }
}

/// Returns the lines of logs, one block per log.
pub fn blocks_of_logs(logs: &[SanitizedLog]) -> Vec<DataBlock> {
    let is_sent =
        |it: &&SanitizedLine| !it.text().trim().is_empty() && it.kind() != LineKind::Blank;
    // The first position of a text: block and line.
    let mut seen: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut blocks: Vec<DataBlock> = Vec::new();
    for log in logs {
        let mut block = DataBlock { heading: log.stem().to_string(), lines: Vec::new() };
        for line in log.lines().iter().filter(is_sent) {
            let text = address::strip_session_citation(line.text().trim_end());
            let citation = Citation::single_line(log.stem().clone(), line.number());
            let at = (blocks.len(), block.lines.len());
            match seen.get(text) {
                Some(&(b, l)) if b == blocks.len() => block.lines[l].citation.merge(&citation),
                Some(&(b, l)) => blocks[b].lines[l].citation.merge(&citation),
                None => {
                    seen.insert(text, at);
                    block.lines.push(DataLine { citation, text: text.to_owned() });
                }
            }
        }
        blocks.push(block);
    }
    blocks.retain(|it| !it.lines.is_empty());
    blocks
}

/// Returns bullets of weekly files, one block per week and section, without the uncited bullets.
pub fn blocks_of_bullets<'a>(
    weeks: impl Iterator<Item = (Period, &'a [(Option<SummarySection>, Item)])>,
) -> Vec<DataBlock> {
    let mut blocks: Vec<DataBlock> = Vec::new();
    for (week, items) in weeks {
        for (section, item) in items {
            let Some(citation) = &item.citation else { continue };
            let heading = match section {
                Some(section) => format!("{week}, {}", section.title()),
                None => week.to_string(),
            };
            if blocks.last().is_none_or(|it| it.heading != heading) {
                blocks.push(DataBlock { heading, lines: Vec::new() });
            }
            if let Some(block) = blocks.last_mut() {
                let line = DataLine { citation: citation.clone(), text: item.text.clone() };
                block.lines.push(line);
            }
        }
    }
    blocks
}

/// Splits blocks into parts of at most `chars_max` characters: between blocks if possible, else before a
/// heading in the second half of a part, else between lines.
pub fn split_into_parts(blocks: Vec<DataBlock>, chars_max: usize) -> Vec<Vec<DataBlock>> {
    let mut parts: Vec<Vec<DataBlock>> = vec![Vec::new()];
    let mut room = chars_max;
    for block in blocks {
        if block.chars() > room && !parts.last().is_none_or(Vec::is_empty) {
            parts.push(Vec::new());
            room = chars_max;
        }
        if block.chars() <= room {
            room -= block.chars();
            if let Some(part) = parts.last_mut() {
                part.push(block);
            }
            continue;
        }
        // The block alone is longer than a part.
        let heading = block.heading;
        let mut open = DataBlock { heading: heading.clone(), lines: Vec::new() };
        let mut chars = open.chars();
        for line in block.lines {
            if chars + line.chars() > room && !open.lines.is_empty() {
                let half = open.lines.len() / 2;
                let begins = |it: &DataLine| it.text.starts_with('#');
                let cut = open.lines[half..].iter().rposition(begins).map(|it| half + it);
                let lines = cut.filter(|it| *it > 0).map(|it| open.lines.split_off(it));
                let next = DataBlock { heading: heading.clone(), lines: lines.unwrap_or_default() };
                if let Some(part) = parts.last_mut() {
                    part.push(std::mem::replace(&mut open, next));
                }
                parts.push(Vec::new());
                room = chars_max;
                chars = open.chars();
            }
            chars += line.chars();
            open.lines.push(line);
        }
        room = room.saturating_sub(chars);
        if let Some(part) = parts.last_mut() {
            part.push(open);
        }
    }
    parts.retain(|it| !it.is_empty());
    parts
}

/// Returns the data between its markers.
///
/// The marker is derived from the nonce and the data, so that equal requests have equal bytes.
pub fn fenced_blocks(blocks: &[DataBlock], nonce: &[u8; 32]) -> String {
    let labels = LineLabels::of(blocks);
    let mut body = String::new();
    for block in blocks {
        let _ = writeln!(body, "## {}", block.heading);
        for line in &block.lines {
            let _ = writeln!(body, "{} | {}", labels.label(line), line.text);
        }
    }
    fence(&body, nonce)
}

/// Puts text between markers.
pub fn fence(body: &str, nonce: &[u8; 32]) -> String {
    let marker = marker(body, nonce);
    format!("<data-{marker}>\n{}\n</data-{marker}>", body.trim_end())
}

fn marker(body: &str, nonce: &[u8; 32]) -> String {
    let hash = blake3::keyed_hash(nonce, body.as_bytes());
    hash.to_hex()[..12].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{memory::log::DailyLog, privacy};

    fn log(stem: &str, text: &str) -> SanitizedLog {
        let log = DailyLog::parse(stem.parse().unwrap(), text.as_bytes()).unwrap();
        privacy::sanitize(&log, &privacy::PrivacyRules::default())
    }

    #[test]
    fn repeated_lines_are_sent_once_and_their_label_cites_every_occurrence() {
        let logs = [
            log("2026-04-02", "- Run the tests\n\n- Ship v1.2\n- Run the tests"),
            log("2026-04-03", "- Run the tests\n- Fixed #412"),
        ];
        let text = fenced_blocks(&blocks_of_logs(&logs), &[7; 32]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1..lines.len() - 1],
            [
                "## 2026-04-02",
                "2026-04-02:1 | - Run the tests",
                "2026-04-02:3 | - Ship v1.2",
                "## 2026-04-03",
                "2026-04-03:2 | - Fixed #412",
            ]
        );
        let blocks = blocks_of_logs(&logs);
        let whole =
            |cited: &str| LineLabels::of(&blocks).expand(&cited.parse().unwrap()).to_string();
        assert_eq!(whole("2026-04-02:1"), "2026-04-02:1,4; 2026-04-03:1");
        assert_eq!(whole("2026-04-02:3; 2026-04-03:2"), "2026-04-02:3; 2026-04-03:2");
        assert_eq!(whole("2026-01-01:7"), "2026-01-01:7");
    }

    #[test]
    fn bullets_that_share_their_first_line_get_distinct_labels() {
        let item = |text: &str| (None, Item::parse(text));
        let items = [
            item("Shipped v2 and closed #412 [2026-04-02:1,4]"),
            item("Shipped v2 to all [2026-04-02:1]"),
            item("Hired Bob [2026-04-03:1; 2026-04-04:2]"),
        ];
        let week = "2026-W14".parse().unwrap();
        let blocks = blocks_of_bullets(std::iter::once((week, &items[..])));
        let text = fenced_blocks(&blocks, &[7; 32]);
        for line in ["2026-04-02:1,4 | Shipped", "2026-04-02:1 | Shipped", "2026-04-03:1 | Hired"] {
            assert!(text.contains(line), "{text}");
        }
        let labels = LineLabels::of(&blocks);
        let whole = |cited: &str| labels.expand(&cited.parse().unwrap()).to_string();
        assert_eq!(whole("2026-04-02:1"), "2026-04-02:1");
        assert_eq!(whole("2026-04-03:1"), "2026-04-03:1; 2026-04-04:2");
    }

    #[test]
    fn the_marker_depends_on_the_nonce_and_is_stable() {
        let of = |nonce| fence("a", &[nonce; 32]);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn parts_contain_every_line_once_and_respect_the_limit() {
        let lines: Vec<String> =
            (0..400).map(|i| format!("- line number {i} of this log")).collect();
        let text = lines.join("\n");
        let blocks = blocks_of_logs(&[log("2026-04-02", &text), log("2026-04-03", "- short")]);
        let all: Vec<DataLine> = blocks.iter().flat_map(|it| it.lines.clone()).collect();
        let parts = split_into_parts(blocks, 2000);
        assert!(parts.len() > 5);
        let chars = |part: &Vec<DataBlock>| part.iter().map(DataBlock::chars).sum::<usize>();
        assert!(parts.iter().all(|it| chars(it) <= 2100), "{:?}", parts.iter().map(chars).max());
        let joined: Vec<DataLine> = parts.into_iter().flatten().flat_map(|it| it.lines).collect();
        assert_eq!(joined, all);
    }

    #[test]
    fn a_long_log_is_split_before_headings() {
        let lines: Vec<String> = (0..90)
            .map(|i| if i % 15 == 0 { format!("## Part {i}") } else { format!("- line {i}") })
            .collect();
        let parts = split_into_parts(blocks_of_logs(&[log("2026-04-02", &lines.join("\n"))]), 800);
        assert!(parts.len() > 2, "{}", parts.len());
        for part in &parts {
            assert!(part[0].lines[0].text.starts_with("## "), "{:?}", part[0].lines[0]);
        }
    }
}
