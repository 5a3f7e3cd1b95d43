//! The data of a request: source lines with short ids, between two markers.
//!
//! A line that occurs more than once in the period is sent once, since most of what agents log repeats
//! word for word. Its id ([`LineIds`]) stands for all its addresses. Only a heading is sent again in each log, with
//! no id, so that the lines below it do not seem to be below another one.

use std::{borrow::Cow, collections::HashMap, fmt::Write as _};

use crate::{
    memory::{
        address::{self, Address, Citation},
        authorship,
        item::{Item, SummarySection},
        markdown::LineKind,
        period::Period,
    },
    privacy::{SanitizedLine, SanitizedLog},
};

/// What the lines of a block are, which the letter of their ids shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Lines of logs: `L12`.
    Lines,
    /// Bullets of weekly or monthly files: `b12`.
    Bullets,
    /// Statements of memories: `s3f2a90`, the first digits of their hashes.
    Statements,
}

/// A line of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct DataLine {
    /// The number in its id, from 1 on in the whole data, however it is split into requests. 0 for a heading that was
    /// sent before, which has no id.
    pub number: u32,
    /// All addresses of the text.
    pub citation: Citation,
    /// The text.
    pub text: String,
}

/// A group of lines under one heading: a day, or a section of a week.
#[derive(Clone, Debug, PartialEq)]
pub struct DataBlock {
    /// What its lines are.
    pub kind: BlockKind,
    /// `2026-04-02`, or `2026-W14, Decisions`.
    pub heading: String,
    /// The lines.
    pub lines: Vec<DataLine>,
}

impl BlockKind {
    fn letter(self) -> char {
        match self {
            Self::Lines => 'L',
            Self::Bullets => 'b',
            Self::Statements => 's',
        }
    }
}

impl DataBlock {
    fn new(kind: BlockKind, heading: String) -> Self {
        Self { kind, heading, lines: Vec::new() }
    }

    /// Returns how many characters it takes in a request.
    pub fn chars(&self) -> usize {
        self.heading.chars().count() + 4 + self.lines.iter().map(DataLine::chars).sum::<usize>()
    }

    /// Returns the id of one of its lines.
    pub fn id_of(&self, line: &DataLine) -> String {
        match self.kind {
            BlockKind::Statements => format!("s{:0width$x}", line.number, width = STATEMENT_DIGITS),
            kind => format!("{}{}", kind.letter(), line.number),
        }
    }
}

impl DataLine {
    /// Returns approximately how many characters it takes in a request.
    pub fn chars(&self) -> usize {
        const ID: usize = "L117 | \n".len();
        self.text.chars().count() + ID
    }
}

/// What the ids in a reply stand for: lines (`L12`), bullets (`b17`), and statements of memories (`s3f2a90`, the first
/// digits of [`Item::hash`]). Lines may be named by their addresses, too.
#[derive(Clone, Debug, Default)]
pub struct LineIds {
    by_number: HashMap<(char, u32), Citation>,
    /// All addresses of a line by its first one; `None` if several bullets of a week share that.
    by_address: HashMap<Address, Option<Citation>>,
    /// The hash and the lines of each statement.
    statements: Vec<(String, Option<Citation>)>,
}

impl LineIds {
    /// The longest range in a reply, in lines.
    const RANGE_MAX: u32 = 2_000;

    /// Reads the ids of the lines of a request.
    pub fn of(blocks: &[DataBlock]) -> Self {
        let mut ids = Self::default();
        for block in blocks {
            for line in &block.lines {
                let letter = block.kind.letter().to_ascii_lowercase();
                if line.number == 0 {
                    continue;
                }
                ids.by_number.insert((letter, line.number), line.citation.clone());
                let Some(first) = line.citation.addresses().next() else { continue };
                let all = Some(line.citation.clone());
                ids.by_address.entry(first).and_modify(|it| *it = None).or_insert(all);
            }
        }
        ids
    }

    /// Adds statements of memories: the hash and the lines of each.
    pub fn with_statements(
        mut self,
        statements: impl IntoIterator<Item = (String, Option<Citation>)>,
    ) -> Self {
        self.statements.extend(statements);
        self
    }

    /// Returns the hash of a statement by its id, or the beginning of one; `None` if there is none or several.
    pub fn statement(&self, id: &str) -> Option<&str> {
        self.statement_with(id).map(|it| &it.0[..])
    }

    /// Returns the id of a statement by its hash; any other text as it is.
    pub fn print_statement(&self, hash: &str) -> String {
        let id = statement_id(hash);
        if self.statement(&id) == Some(hash) { id } else { hash.to_owned() }
    }

    fn statement_with(&self, id: &str) -> Option<&(String, Option<Citation>)> {
        let begin = id.trim().trim_start_matches(['s', 'S']);
        let mut found = self.statements.iter().filter(|it| it.0.starts_with(begin));
        let first = found.next().filter(|_| begin.len() >= STATEMENT_DIGITS_MIN)?;
        found.all(|it| it.0 == first.0).then_some(first)
    }

    /// Parses what a reply cites, in brackets or not: `L3, L7-L9; s3f2a90`, or addresses as in `2026-04-02:12,14-16`.
    ///
    /// # Errors
    ///
    /// Returns what is unknown, worded for the model.
    pub fn parse(&self, text: &str) -> Result<Citation, String> {
        let bare = text.trim().trim_start_matches('[').trim_end_matches(']');
        let mut all: Option<Citation> = None;
        let mut add = |more: &Citation| match &mut all {
            Some(all) => all.merge(more),
            None => all = Some(more.clone()),
        };
        for part in bare.split(';').map(str::trim) {
            if let Ok(addresses) = part.parse::<Citation>() {
                add(&self.expand(&addresses));
                continue;
            }
            for id in part.split([',', ' ']).filter(|it| !it.is_empty()) {
                // A number of a bullet may also begin a hash, as in `b123`.
                match (self.lines_of_range(id), self.statement_with(id)) {
                    (Ok(lines), _) => lines.into_iter().for_each(&mut add),
                    (Err(_), Some((_, lines))) => lines.iter().for_each(&mut add),
                    (Err(why), None) => return Err(why),
                }
            }
        }
        all.ok_or_else(|| "`citations` names no lines".to_owned())
    }

    /// Returns the lines of `L7-L9`, or of one id.
    fn lines_of_range(&self, range: &str) -> Result<Vec<&Citation>, String> {
        let missing =
            |id: &str| format!("there is no line `{}`", id.chars().take(40).collect::<String>());
        let (first, last) = range.split_once(['-', '–']).unwrap_or((range, range));
        let parse = |id: &str| {
            let letter = id.chars().next().filter(char::is_ascii_alphabetic)?;
            Some((letter.to_ascii_lowercase(), id[1..].parse::<u32>().ok()?))
        };
        let (letter, from) = parse(first).ok_or_else(|| missing(range))?;
        let to = parse(last).filter(|it| it.0 == letter).map(|it| it.1);
        let to = to.or_else(|| last.parse().ok()).ok_or_else(|| missing(range))?;
        if to < from || to - from > Self::RANGE_MAX {
            return Err(missing(range));
        }
        let lines = (from..=to).filter_map(|it| self.by_number.get(&(letter, it)));
        let lines: Vec<&Citation> = lines.collect();
        let ends = [from, to].iter().all(|it| self.by_number.contains_key(&(letter, *it)));
        if ends { Ok(lines) } else { Err(missing(range)) }
    }

    /// Parses a bullet of a reply. One that names no known line has no citation.
    pub fn parse_bullet(&self, text: &str) -> Item {
        let item = Item::parse(text);
        if let Some(citation) = &item.citation {
            return Item { citation: Some(self.expand(citation)), ..item };
        }
        let cited = item.text.trim_end_matches(['.', ' ']).strip_suffix(']');
        let Some((words, ids)) = cited.and_then(|it| it.rsplit_once('[')) else { return item };
        // What looks like an id is no part of the words, even if there is no such line.
        let is_id = |it: &str| {
            it.starts_with(['L', 'b', 's']) && it[1..].starts_with(|c: char| c.is_ascii_hexdigit())
        };
        let citation = self.parse(ids).ok();
        let are_ids = ids.split([',', ';', ' ']).filter(|it| !it.is_empty()).all(is_id);
        if citation.is_none() && !are_ids {
            return item;
        }
        Item { text: words.trim_end().to_owned(), citation }
    }

    /// Returns the ids of lines, as a reply would name them: lines, bullets and statements that the citation covers
    /// completely; of those that were not shown the addresses.
    pub fn print(&self, citation: &Citation) -> String {
        let printed = self.print_parts(citation, false);
        printed.join(printed.names.iter().chain(&printed.statements))
    }

    /// Returns the ids of statements, and those of the lines and bullets that are not theirs.
    pub fn print_apart(&self, citation: &Citation) -> (String, Vec<String>) {
        let printed = self.print_parts(citation, true);
        (printed.join(&printed.names), printed.statements)
    }

    fn print_parts(&self, citation: &Citation, prefers_statements: bool) -> PrintedIds {
        let mut ids: Vec<(char, u32)> = self
            .by_number
            .iter()
            .filter(|((letter, _), lines)| match letter {
                // A line that recurs has several addresses.
                'l' => citation.overlaps(lines),
                _ => citation.covers(lines),
            })
            .map(|it| *it.0)
            .collect();
        ids.sort_unstable();
        let is_shown = |shown: &[&Citation], lines: &Citation| {
            lines.addresses().all(|it| shown.iter().any(|lines| lines.cites(&it)))
        };
        let mut shown: Vec<&Citation> = Vec::new();
        if !prefers_statements {
            shown.extend(ids.iter().map(|it| &self.by_number[it]));
        }
        let mut statements = Vec::new();
        for (hash, lines) in &self.statements {
            let Some(lines) = lines.as_ref().filter(|it| citation.covers(it)) else { continue };
            if !is_shown(&shown, lines) {
                statements.push(self.print_statement(hash));
                shown.push(lines);
            }
        }
        if prefers_statements {
            ids.retain(|it| !is_shown(&shown, &self.by_number[it]));
            shown.extend(ids.iter().map(|it| &self.by_number[it]));
        }
        let letter = |it: char| if it == 'l' { 'L' } else { it };
        let names = ids.iter().map(|it| format!("{}{}", letter(it.0), it.1)).collect();
        let is_other = |it: &Address| !shown.iter().any(|lines| lines.cites(it));
        let others: Vec<Address> = citation.addresses().filter(is_other).collect();
        let others = Citation::from_addresses(&others).map(|it| it.to_string());
        PrintedIds { names, statements, others }
    }

    /// Returns all addresses meant by a citation of addresses.
    fn expand(&self, citation: &Citation) -> Citation {
        let mut whole = citation.clone();
        for address in citation.addresses() {
            if let Some(Some(all)) = self.by_address.get(&address) {
                whole.merge(all);
            }
        }
        whole
    }
}

/// What a citation names.
struct PrintedIds {
    /// The ids of lines and bullets.
    names: Vec<String>,
    statements: Vec<String>,
    /// The addresses of lines without an id.
    others: Option<String>,
}

impl PrintedIds {
    fn join<'a>(&self, ids: impl IntoIterator<Item = &'a String>) -> String {
        let names: Vec<&str> = ids.into_iter().map(String::as_str).collect();
        let mut parts = vec![names.join(", ")];
        parts.extend(self.others.clone());
        parts.retain(|it| !it.is_empty());
        parts.join("; ")
    }
}

/// As many digits of its hash are the id of a statement, of which a reply may leave out some.
const STATEMENT_DIGITS: usize = 6;
const STATEMENT_DIGITS_MIN: usize = 4;

/// Returns the id of a statement of a memory.
pub fn statement_id(hash: &str) -> String {
    format!("s{}", hash.get(..STATEMENT_DIGITS).unwrap_or(hash))
}

/// Returns the statements of memories as a block, which a second try shows where an item is derived from them.
pub fn block_of_statements(statements: impl IntoIterator<Item = Item>) -> DataBlock {
    let line = |it: Item| {
        let hash = it.hash();
        let number = u32::from_str_radix(hash.get(..STATEMENT_DIGITS)?, 16).ok()?;
        Some(DataLine { number, citation: it.citation?, text: it.text })
    };
    let lines = statements.into_iter().filter_map(line).collect();
    DataBlock { lines, ..DataBlock::new(BlockKind::Statements, "Memories".to_owned()) }
}

/// Returns the lines of logs, one block per log.
pub fn blocks_of_logs(logs: &[SanitizedLog]) -> Vec<DataBlock> {
    let is_sent =
        |it: &&SanitizedLine| !it.text().trim().is_empty() && it.kind() != LineKind::Blank;
    // The first position of a text: block and line.
    let mut seen: HashMap<Cow<'_, str>, (usize, usize)> = HashMap::new();
    let mut blocks: Vec<DataBlock> = Vec::new();
    let mut number = 0;
    for log in logs {
        let mut block = DataBlock::new(BlockKind::Lines, log.stem().to_string());
        for line in log.lines().iter().filter(is_sent) {
            let text = address::strip_session_citation(line.text().trim_end());
            let text = authorship::without_message_id(text);
            let citation = Citation::single_line(log.stem().clone(), line.number());
            let at = (blocks.len(), block.lines.len());
            match seen.get(&text) {
                Some(&(b, l)) if b == blocks.len() => block.lines[l].citation.merge(&citation),
                Some(&(b, l)) if matches!(line.kind(), LineKind::Heading { .. }) => {
                    blocks[b].lines[l].citation.merge(&citation);
                    block.lines.push(DataLine { number: 0, citation, text: text.to_string() });
                }
                Some(&(b, l)) => blocks[b].lines[l].citation.merge(&citation),
                None => {
                    number += 1;
                    block.lines.push(DataLine { number, citation, text: text.to_string() });
                    seen.insert(text, at);
                }
            }
        }
        blocks.push(block);
    }
    blocks.retain(|it| !it.lines.is_empty());
    blocks
}

/// Joins the blocks of several weeks into those of one request, whose lines it numbers.
pub fn joined(weeks: impl Iterator<Item = Vec<DataBlock>>) -> Vec<DataBlock> {
    let mut blocks: Vec<DataBlock> = Vec::new();
    let mut last = 0;
    for mut week in weeks {
        let lines = week.iter_mut().flat_map(|it| &mut it.lines);
        lines.filter(|it| it.number > 0).for_each(|it| it.number += last);
        last = week.iter().flat_map(|it| &it.lines).map(|it| it.number).fold(last, u32::max);
        blocks.extend(week);
    }
    blocks
}

/// Returns bullets of weekly files, one block per week and section, without the uncited bullets.
pub fn blocks_of_bullets<'a>(
    weeks: impl Iterator<Item = (Period, &'a [(Option<SummarySection>, Item)])>,
) -> Vec<DataBlock> {
    let mut blocks: Vec<DataBlock> = Vec::new();
    let mut number = 0;
    for (week, items) in weeks {
        for (section, item) in items {
            let Some(citation) = &item.citation else { continue };
            let heading = match section {
                Some(section) => format!("{week}, {}", section.title()),
                None => week.to_string(),
            };
            if blocks.last().is_none_or(|it| it.heading != heading) {
                blocks.push(DataBlock::new(BlockKind::Bullets, heading));
            }
            if let Some(block) = blocks.last_mut() {
                number += 1;
                let (citation, text) = (citation.clone(), item.text.clone());
                let line = DataLine { number, citation, text };
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
        let empty = DataBlock::new(block.kind, block.heading);
        let mut open = empty.clone();
        let mut chars = open.chars();
        for line in block.lines {
            if chars + line.chars() > room && !open.lines.is_empty() {
                let half = open.lines.len() / 2;
                let begins = |it: &DataLine| it.text.starts_with('#');
                let cut = open.lines[half..].iter().rposition(begins).map(|it| half + it);
                let lines = cut.filter(|it| *it > 0).map(|it| open.lines.split_off(it));
                let next = DataBlock { lines: lines.unwrap_or_default(), ..empty.clone() };
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
    let mut body = String::new();
    for block in blocks {
        let _ = writeln!(body, "## {}", block.heading);
        for line in &block.lines {
            let _ = match line.number {
                0 => writeln!(body, "{}", line.text),
                _ => writeln!(body, "{} | {}", block.id_of(line), line.text),
            };
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
    fn repeated_lines_are_sent_once_and_their_id_cites_every_occurrence() {
        let logs = [
            log("2026-04-02", "- Run the tests\n\n- Ship v1.2\n- Run the tests"),
            log("2026-04-03", "- Run the tests\n- Fixed #412"),
        ];
        assert_eq!(
            fenced_blocks(
                &joined(
                    [
                        vec![
                            log("2026-04-02", "# Done\n- Ship v1.2\n# Open\n- Sail"),
                            log("2026-04-03", "# Open\n- Sail\n- Row"),
                        ],
                        vec![log("2026-04-06", "# Open\n- Sail")],
                    ]
                    .into_iter()
                    .map(|it| blocks_of_logs(&it))
                ),
                &[7; 32]
            )
            .lines()
            .filter_map(|it| it.split_once(" | ").map(|it| it.0))
            .collect::<Vec<_>>(),
            ["L1", "L2", "L3", "L4", "L5", "L6", "L7"]
        );
        let text = fenced_blocks(&blocks_of_logs(&logs), &[7; 32]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1..lines.len() - 1],
            [
                "## 2026-04-02",
                "L1 | - Run the tests",
                "L2 | - Ship v1.2",
                "## 2026-04-03",
                "L3 | - Fixed #412",
            ]
        );
        let blocks = blocks_of_logs(&logs);
        let ids = LineIds::of(&blocks);
        for (cited, expected) in [
            ("L1", Ok("2026-04-02:1,4; 2026-04-03:1")),
            ("[L2, l3]", Ok("2026-04-02:3; 2026-04-03:2")),
            ("L2-L3", Ok("2026-04-02:3; 2026-04-03:2")),
            ("L2–3; 2026-04-03:1", Ok("2026-04-02:3; 2026-04-03:1-2")),
            ("2026-04-02:1", Ok("2026-04-02:1,4; 2026-04-03:1")),
            ("2026-01-01:7", Ok("2026-01-01:7")),
            ("L4", Err("there is no line `L4`")),
            ("L2-L9", Err("there is no line `L2-L9`")),
            ("L3-L2", Err("there is no line `L3-L2`")),
            ("b1", Err("there is no line `b1`")),
            ("[]", Err("`citations` names no lines")),
            ("line 4", Err("there is no line `line`")),
        ] {
            let found = ids.parse(cited).map(|it| it.to_string());
            assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{cited}");
        }
        assert_eq!(ids.print(&"2026-04-03:1-2".parse().unwrap()), "L1, L3");
        assert_eq!(ids.print(&"2026-01-01:7; 2026-04-02:3".parse().unwrap()), "L2; 2026-01-01:7");
    }

    #[test]
    fn the_ids_of_messages_are_not_sent() {
        let logs = [
            log(
                "2026-04-02",
                "- [Telegram Ada id:77123 2026-04-02 08:59 UTC] Ship it\n- Set id:7 in [a] id:9",
            ),
            log(
                "2026-04-03",
                "- [Discord Guild #ops id:4] on\n- [Telegram Ada id:4 +2m 2026-03-01T09:30Z] on",
            ),
        ];
        let text = fenced_blocks(&blocks_of_logs(&logs), &[7; 32]);
        for line in [
            "L1 | - [Telegram Ada 2026-04-02 08:59 UTC] Ship it",
            "L2 | - Set id:7 in [a] id:9",
            "L3 | - [Discord Guild #ops] on",
            "L4 | - [Telegram Ada +2m 2026-03-01T09:30Z] on",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
        }
    }

    #[test]
    fn ids_at_the_end_of_a_bullet_are_its_citation() {
        let blocks = blocks_of_logs(&[log("2026-04-02", "- Run the tests\n- Ship v1.2")]);
        let ids = LineIds::of(&blocks);
        for (bullet, expected) in [
            ("Shipped v1.2 [L2]", "Shipped v1.2 [2026-04-02:2]"),
            ("Shipped [it] v1.2 [L1, L2].", "Shipped [it] v1.2 [2026-04-02:1-2]"),
            ("Shipped v1.2 [2026-04-02:2]", "Shipped v1.2 [2026-04-02:2]"),
            ("Shipped v1.2 [L9]", "Shipped v1.2"),
            ("Shipped v1.2 [later]", "Shipped v1.2 [later]"),
            ("Shipped v1.2", "Shipped v1.2"),
        ] {
            assert_eq!(ids.parse_bullet(bullet).to_string(), expected);
        }
    }

    #[test]
    fn statements_are_cited_by_the_beginning_of_their_hash() {
        let lines = |text: &str| Some(text.parse().unwrap());
        let ids = LineIds::default().with_statements([
            ("3f2a90c1".to_owned(), lines("2026-03-01:4")),
            ("3f2b90c1".to_owned(), None),
            ("77aa0000".to_owned(), lines("2026-03-02:1")),
            ("77aa0011".to_owned(), lines("2026-03-03:1")),
        ]);
        assert_eq!(statement_id("3f2a90c1"), "s3f2a90");
        assert_eq!(ids.statement("s3f2a90"), Some("3f2a90c1"));
        assert_eq!(ids.statement("3f2a90c1"), Some("3f2a90c1"));
        assert_eq!(ids.statement("s3f2a"), Some("3f2a90c1"));
        assert_eq!(ids.statement("s3f2"), None);
        assert_eq!(ids.statement("s77aa00"), None, "of two it is neither");
        let printed = ["3f2a90c1", "77aa0000", "s99ff"].map(|it| ids.print_statement(it));
        assert_eq!(printed, ["s3f2a90", "77aa0000", "s99ff"]);
        assert_eq!(ids.parse("s3f2a90").unwrap().to_string(), "2026-03-01:4");
        assert!(ids.parse("s77aa00").is_err());
        let all: Citation = "2026-03-01:4; 2026-03-02:1,9".parse().unwrap();
        let apart = ids.print_apart(&all);
        assert_eq!(apart.0, "2026-03-02:9");
        assert_eq!(apart.1, ["s3f2a90", "77aa0000"]);
        let items = vec![(None, Item::parse("Shipped v2 [2026-04-02:1]")); 123];
        let blocks = blocks_of_bullets(std::iter::once(("2026-W14".parse().unwrap(), &items[..])));
        let ids = LineIds::of(&blocks).with_statements([("b1230000".to_owned(), None)]);
        assert_eq!(ids.parse("b123").unwrap().to_string(), "2026-04-02:1");
    }

    #[test]
    fn bullets_that_share_their_first_line_have_their_own_ids() {
        let item = |text: &str| (None, Item::parse(text));
        let items = [
            item("Shipped v2 and closed #412 [2026-04-02:1,4]"),
            item("Shipped v2 to all [2026-04-02:1]"),
            item("Hired Bob [2026-04-03:1; 2026-04-04:2]"),
        ];
        let week = "2026-W14".parse().unwrap();
        let blocks = blocks_of_bullets(std::iter::once((week, &items[..])));
        let text = fenced_blocks(&blocks, &[7; 32]);
        for line in ["b1 | Shipped", "b2 | Shipped", "b3 | Hired"] {
            assert!(text.contains(line), "{text}");
        }
        let ids = LineIds::of(&blocks);
        let whole = |cited: &str| ids.parse(cited).unwrap().to_string();
        assert_eq!(whole("b1"), "2026-04-02:1,4");
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
        let parts = split_into_parts(blocks_of_logs(&[log("2026-04-02", &lines.join("\n"))]), 450);
        assert!(parts.len() > 2, "{}", parts.len());
        for part in &parts {
            assert!(part[0].lines[0].text.starts_with("## "), "{:?}", part[0].lines[0]);
        }
    }
}
