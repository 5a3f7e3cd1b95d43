//! What the parts of a context say: entries of `WISDOM.md`, statements of memories, bullets of a week, open items.
//!
//! No part repeats another one: what the agent's own notes say is left out everywhere, what `WISDOM.md` says is left
//! out of everything after it, and so on.

use std::cmp::Reverse;

use chrono::{Days, NaiveDate};

use super::ContextBlock;
use crate::{
    engine::extractive::{
        DatedLine, OpenTask, SeenStatements, due_day, finished_tasks, says_title, shared_words,
    },
    memory::{
        address::Citation,
        item::Item,
        log::TextOrigin,
        markdown::LineKind,
        typed::{BodyStatement, MemoryType},
        wisdom::{WisdomFile, WisdomPart, WisdomSection},
    },
    privacy::{SanitizedLine, SanitizedLog, quarantine::PLACEHOLDER},
    recall::framing::FramedText,
};

/// A longer statement is a text of its own, of which the description says enough.
const STATEMENT_CHARS_MAX: usize = 400;

/// As many statements fill any context.
const STATEMENTS_MAX: usize = 1_000;

const BULLET: &str = "- ";

/// The entries of a `WISDOM.md`.
#[derive(Clone, Debug, Default)]
pub struct WisdomBlocks {
    /// All but the open items.
    pub lasting: Vec<ContextBlock>,
    /// The bullets below `## Open`.
    pub open: Vec<SourcedBullet>,
    /// Everything that it says, whether shown or not.
    pub said: SeenStatements,
}

/// A bullet and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcedBullet {
    /// Its words.
    pub text: String,
    /// The lines that it cites, where they are known.
    pub citation: Option<Citation>,
    /// The day of its first source.
    pub since: Option<NaiveDate>,
}

/// A typed memory, sanitized.
#[derive(Clone, Debug)]
pub struct MemoryToShow {
    /// `feedback_testing-approach.md`.
    pub file: String,
    /// Its type.
    pub kind: MemoryType,
    /// Its title.
    pub name: String,
    /// The line for the index.
    pub description: String,
    /// The day of its newest source.
    pub newest: Option<NaiveDate>,
    /// Its statements.
    pub statements: Vec<BodyStatement>,
    /// The memory that replaced it.
    pub replaced_by: Option<String>,
}

/// Where a statement of a memory is shown, or why it is not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatementUse {
    /// `WISDOM.md` says it.
    Wisdom,
    /// It is a statement of the context.
    Context,
    /// There was no room for it.
    NoRoom,
    /// The agent's own notes say it.
    OwnNotes,
    /// Another memory says it.
    Repeats(String),
    /// A newer memory replaced it.
    Replaced(String),
    /// It waits for a decision.
    Held,
}

/// The statements of memories for the context.
#[derive(Clone, Debug, Default)]
pub struct MemoryBlocks {
    /// Those that are worth showing.
    pub blocks: Vec<ContextBlock>,
    /// The memory and the statement of each block.
    places: Vec<(usize, usize)>,
    /// What became of each statement of each memory; of those in `blocks`, [`StatementUse::Context`].
    pub uses: Vec<Vec<StatementUse>>,
}

/// Reads the entries of a `WISDOM.md`, without its head and its comments for programs.
///
/// Rules, people, and what has no section come first, in the order of the file; then what shares words with `topic`,
/// else the newest of each other section in turn.
pub fn wisdom_blocks(text: &str, topic: &str, notes: &SeenStatements) -> WisdomBlocks {
    let mut found = WisdomBlocks::default();
    let mut states = Vec::new();
    for (heading, entry) in wisdom_entries(text) {
        let section =
            WisdomSection::ALL.into_iter().find(|it| heading == format!("## {}", it.title()));
        let (words, day) = split_day(&entry);
        let bare = words.trim_start_matches(BULLET);
        found.said.add(bare);
        let is_in_notes = match section {
            Some(WisdomSection::Stopped) => notes.say_all_of(bare),
            _ => notes.find_repeated(bare).is_some(),
        };
        if is_in_notes {
            continue;
        }
        if section == Some(WisdomSection::Open) {
            let text = bare.to_owned();
            found.open.push(SourcedBullet { text, citation: None, since: day });
            continue;
        }
        let is_order = |it| matches!(it, WisdomSection::HowToWork | WisdomSection::People);
        if section.is_some_and(|it| !is_order(it)) {
            let shared = shared_words(topic, bare);
            states.push((Reverse(shared), Reverse(day), section, found.lasting.len()));
        }
        let heading = (!heading.is_empty()).then(|| heading.clone());
        found.lasting.push(ContextBlock { heading, text: entry, rank: 0 });
    }
    states.sort_unstable();
    // Two projects for each lesson, decision or place.
    let mut turns = [0; WisdomSection::ALL.len()];
    let mut turn_of = |section: WisdomSection| {
        turns[section.index()] += if section == WisdomSection::Projects { 1 } else { 2 };
        turns[section.index()]
    };
    let in_turn = |(shared, _, section, at): (_, _, Option<WisdomSection>, _)| {
        (shared, section.map(&mut turn_of), section, at)
    };
    let mut states: Vec<_> = states.into_iter().map(in_turn).collect();
    states.sort_unstable();
    for (rank, (.., at)) in (1..).zip(states) {
        found.lasting[at].rank = rank;
    }
    found
}

/// Returns the entries of a wisdom file, each with its heading. An entry is a bullet; other text is as it was.
fn wisdom_entries(text: &str) -> Vec<(String, String)> {
    let body = text.split_once("\n---\n").map_or(text, |it| it.1);
    let mut entries: Vec<(String, String)> = Vec::new();
    let mut heading = String::new();
    for part in WisdomFile::parse(body).parts() {
        match part {
            WisdomPart::Heading(it) => it.clone_into(&mut heading),
            WisdomPart::Text(text) => push_paragraphs(text, &mut heading, &mut entries),
            WisdomPart::Entry(entry) => {
                let words = match (&entry.title[..], &entry.text[..]) {
                    (title, text) if says_title(title, text) => text.to_owned(),
                    (title, "") => title.to_owned(),
                    (title, list) if list.starts_with(BULLET) => format!("{title}:\n{list}"),
                    (title, text) => format!("{title}: {text}"),
                };
                let words = words.lines().filter(|it| !it.trim().is_empty() && !is_comment(it));
                let words: Vec<&str> = words.map(str::trim_end).collect();
                entries.push((heading.clone(), format!("{BULLET}{}", words.join("\n"))));
            }
        }
    }
    entries
}

/// Adds the paragraphs, bullets and code of a text that a person wrote.
fn push_paragraphs(text: &str, heading: &mut String, entries: &mut Vec<(String, String)>) {
    let (mut continues, mut is_fenced) = (false, false);
    for line in text.lines().map(str::trim_end) {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        if !is_fenced && !is_fence {
            if line.starts_with('#') {
                *heading = if line.starts_with("# ") { String::new() } else { line.to_owned() };
            }
            let is_head = line.starts_with('#') || line.starts_with("Last compacted:");
            if line.is_empty() || line == "---" || is_comment(line) || is_head {
                continues = false;
                continue;
            }
            continues &= !line.starts_with(BULLET);
        }
        match entries.last_mut() {
            Some((_, last)) if continues => last.extend(["\n", line]),
            _ => entries.push((heading.clone(), line.to_owned())),
        }
        continues = true;
    }
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("<!--") && line.trim_end().ends_with("-->")
}

/// Splits the day at the end of a bullet off: `Renew the licence (2026-04-10)`.
fn split_day(text: &str) -> (&str, Option<NaiveDate>) {
    let found = text.strip_suffix(')').and_then(|it| it.rsplit_once(" ("));
    match found.and_then(|(words, day)| Some((words, day.parse().ok()?))) {
        Some((words, day)) => (words, Some(day)),
        None => (text, None),
    }
}

/// Chooses the statements of memories that nothing else says, by what they share with `topic`, the newest first.
pub fn memory_blocks(
    memories: &[MemoryToShow],
    topic: &str,
    notes: &SeenStatements,
    wisdom: &SeenStatements,
) -> MemoryBlocks {
    let shown: Vec<Vec<BodyStatement>> =
        memories.iter().map(MemoryToShow::shown_statements).collect();
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (at, texts) in shown.iter().enumerate() {
        order.extend((0..texts.len()).map(|it| (at, it)));
    }
    order.sort_by_cached_key(|&(at, it)| {
        let BodyStatement { text, newest } = &shown[at][it];
        let rank = (shared_words(topic, text), *newest);
        (Reverse(rank), at, it)
    });
    let mut found = MemoryBlocks {
        uses: shown.iter().map(|it| vec![StatementUse::Held; it.len()]).collect(),
        ..MemoryBlocks::default()
    };
    let mut chosen = SeenStatements::default();
    for (at, it) in order {
        let (memory, BodyStatement { text, newest }) = (&memories[at], &shown[at][it]);
        found.uses[at][it] = if text.contains(PLACEHOLDER) {
            StatementUse::Held
        } else if let Some(newer) = &memory.replaced_by {
            StatementUse::Replaced(newer.clone())
        } else if wisdom.find_repeated(text).is_some() {
            StatementUse::Wisdom
        } else if notes.find_repeated(text).is_some() {
            StatementUse::OwnNotes
        } else if found.blocks.len() == STATEMENTS_MAX {
            StatementUse::NoRoom
        } else if let Some(same) = chosen.find_repeated(text) {
            StatementUse::Repeats(memories[found.places[same].0].file.clone())
        } else {
            chosen.add(text);
            let is_dated = matches!(memory.kind, MemoryType::Project | MemoryType::Reference);
            let day = newest.filter(|_| is_dated).map(|it| format!(" ({it})"));
            let text = format!("- {text}{}", day.unwrap_or_default());
            let rank = found.blocks.len();
            found.blocks.push(ContextBlock { heading: None, text, rank });
            found.places.push((at, it));
            StatementUse::Context
        };
    }
    found
}

impl MemoryBlocks {
    /// Returns what became of each statement when only these blocks are in the context.
    pub fn uses_with_shown(&self, shown: &[usize]) -> Vec<Vec<StatementUse>> {
        let mut uses = self.uses.clone();
        for (block, &(memory, statement)) in self.places.iter().enumerate() {
            if !shown.contains(&block) {
                uses[memory][statement] = StatementUse::NoRoom;
            }
        }
        uses
    }
}

impl MemoryToShow {
    /// Returns its statements as they are shown: with the title, if they do not say it, and the description in
    /// place of long ones.
    fn shown_statements(&self) -> Vec<BodyStatement> {
        let is_short = |it: &&BodyStatement| it.text.chars().count() <= STATEMENT_CHARS_MAX;
        let mut shown: Vec<BodyStatement> =
            self.statements.iter().filter(is_short).cloned().collect();
        if shown.is_empty() {
            shown.push(BodyStatement { text: self.description.clone(), newest: None });
        }
        for statement in &mut shown {
            let is_about_nothing = self.kind.is_general_topic(&self.name);
            if !is_about_nothing && !says_title(&self.name, &statement.text) {
                statement.text = format!("{}: {}", self.name, statement.text);
            }
            // A statement without a citation of its own has those of the memory.
            statement.newest = statement.newest.or(self.newest);
        }
        shown
    }
}

/// Returns the bullets of sections of a weekly file, and how many were left out, because they are in the
/// words of external text: an agent would read them as its own decisions.
pub fn section_bullets(week: &FramedText, sections: &[&str]) -> (Vec<SourcedBullet>, usize) {
    let mut is_in = false;
    let mut bullets = Vec::new();
    let mut left_out = 0;
    for (number, line) in (1..).zip(week.text.lines()) {
        if let Some(head) =
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
        {
            is_in = sections.contains(&head.trim());
        } else if let Some(bullet) = line.strip_prefix(BULLET).filter(|_| is_in) {
            if week.external_lines.contains(&number) {
                left_out += 1;
                continue;
            }
            let Item { text, citation } = Item::parse(bullet);
            let since = citation.as_ref().map(Citation::oldest_date);
            bullets.push(SourcedBullet { text, citation, since });
        }
    }
    (bullets, left_out)
}

impl SourcedBullet {
    /// Returns it as a line, with the days of its sources, or with the lines if `cites` is set.
    pub fn line(&self, cites: bool) -> String {
        let Some(citation) = &self.citation else { return format!("- {}", self.text) };
        if cites {
            return format!("- {} [{citation}]", self.text);
        }
        let mut days: Vec<String> =
            citation.files().map(|(stem, _)| stem.date().to_string()).collect();
        days.dedup();
        format!("- {} ({})", self.text, days.join(", "))
    }

    /// Returns it as the line of an open item, with its age and whether it is overdue, or with its cited lines if
    /// `cites` is set.
    pub fn open_line(&self, today: NaiveDate, cites: bool) -> String {
        if cites && self.citation.is_some() {
            return self.line(true);
        }
        let Some(since) = self.since else { return format!("- {}", self.text) };
        let late = self.due().filter(|it| *it < today);
        let late = late.map(|it| format!("overdue since {it}, ")).unwrap_or_default();
        format!("- {} ({late}open for {})", self.text, days_between(since, today))
    }

    /// Returns the day up to which it is to be done, if it names one.
    fn due(&self) -> Option<NaiveDate> {
        due_day(&self.text, self.since?)
    }
}

/// Returns a number of days in words.
pub fn days_between(day: NaiveDate, today: NaiveDate) -> String {
    match (today - day).num_days().max(0) {
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

/// Removes the bullets that were seen, and adds the others to them.
pub fn remove_seen(
    bullets: &mut Vec<SourcedBullet>,
    notes: &SeenStatements,
    seen: &mut SeenStatements,
) {
    bullets.retain(|it| {
        let is_new =
            notes.find_repeated(&it.text).is_none() && seen.find_repeated(&it.text).is_none();
        if is_new {
            seen.add(&it.text);
        }
        is_new
    });
}

/// Removes the open items of which a later line of these logs, oldest first, says that just that was done.
pub fn remove_finished(open: &mut Vec<SourcedBullet>, logs: &[SanitizedLog]) {
    let lines = logs.iter().flat_map(|log| {
        log.lines().iter().filter(|it| is_own_line(it)).map(|it| DatedLine {
            day: log.date(),
            words: it.words(),
            is_ticked: ticked(it.kind()),
        })
    });
    let tasks: Vec<_> =
        open.iter().map(|it| OpenTask { text: &it.text, since: it.since }).collect();
    let mut is_finished = finished_tasks(&tasks, &lines.collect::<Vec<_>>()).into_iter();
    open.retain(|_| is_finished.next() != Some(true));
}

fn is_own_line(line: &SanitizedLine) -> bool {
    line.is_content() && !line.is_quarantined() && line.origin() != TextOrigin::External
}

/// Returns whether the box of a line is ticked; `None` without a box.
pub fn ticked(kind: LineKind) -> Option<bool> {
    match kind {
        LineKind::ListItem { task, .. } => task,
        _ => None,
    }
}

/// Sorts open items: what is overdue or due soon by its day, then by what they share with `topic`, the newest first.
pub fn sort_open_items(bullets: &mut [SourcedBullet], topic: &str, today: NaiveDate) {
    const SOON: Days = Days::new(14);
    let soon = today.checked_add_days(SOON).unwrap_or(NaiveDate::MAX);
    bullets.sort_by_cached_key(|it| {
        let due = it.due().filter(|it| *it <= soon).unwrap_or(NaiveDate::MAX);
        (due, Reverse((shared_words(topic, &it.text), it.since)))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::framing::{NOTICE, ProvenanceNote};

    #[test]
    fn a_week_gives_the_requested_sections() {
        let week = FramedText {
            text: "# Week\n\n### Decisions\n- A [2026-04-02:4; 2026-04-03:1]\n- quoted\n- mine\n\n### Context\n- B [2026-04-02:5]\n".to_owned(),
            note: ProvenanceNote { notice: NOTICE, origin: "derived", date: None },
            external_lines: vec![5],
        };
        let lines = |name: &str, cites: bool| {
            let (bullets, left_out) = section_bullets(&week, &[name]);
            (bullets.iter().map(|it| it.line(cites)).collect::<Vec<_>>(), left_out)
        };
        let expected = ["- A (2026-04-02, 2026-04-03)", "- mine"].map(str::to_owned);
        assert_eq!(lines("Decisions", false), (expected.to_vec(), 1));
        assert_eq!(lines("Context", true), (vec!["- B [2026-04-02:5]".to_owned()], 0));
    }

    #[test]
    fn what_is_due_comes_first_and_what_is_overdue_says_so() {
        let day = |it: &str| it.parse::<NaiveDate>().unwrap();
        let bullet = |(text, since)| SourcedBullet {
            text: str::to_owned(text),
            citation: None,
            since: Some(day(since)),
        };
        let mut open = [
            ("Order the charts", "2026-11-25"),
            ("Send the contract by 10 December", "2026-11-20"),
            ("Renew the licence by 20 November", "2026-11-03"),
            ("Book the yard by 2027-02-01", "2026-11-24"),
        ]
        .map(bullet);
        let today = day("2026-11-30");
        sort_open_items(&mut open, "", today);
        let lines = open.map(|it| it.open_line(today, false));
        let expected = [
            "- Renew the licence by 20 November (overdue since 2026-11-20, open for 27 days)",
            "- Send the contract by 10 December (open for 10 days)",
            "- Order the charts (open for 5 days)",
            "- Book the yard by 2027-02-01 (open for 6 days)",
        ];
        assert_eq!(lines, expected);
    }

    #[track_caller]
    fn check_entries(text: &str, expected: &[(&str, &str)]) {
        let found = wisdom_entries(text);
        let found: Vec<_> = found.iter().map(|(head, entry)| (&head[..], &entry[..])).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_a_person_wrote_is_shown_whole() {
        check_entries(
            "# A\n\nLast compacted: 2026-04-01\n\n---\nTwo lines\nof text.\n- a\n  b\n<!-- x -->\n### Sub\n```\n# c\n\n- d\n```\n",
            &[("", "Two lines\nof text."), ("", "- a\n  b"), ("### Sub", "```\n# c\n\n- d\n```")],
        );
        check_entries(
            "**Only a title**\n\n**Steps**\n- one\n- two\n\n## People\n\n**Mara**\nMara sails.\n",
            &[
                ("", "- Only a title"),
                ("", "- Steps:\n- one\n- two"),
                ("## People", "- Mara sails."),
            ],
        );
    }
}
