//! What is above a line: it says more in its place than alone.
//!
//! A row of a table means nothing without the head of the table, and "- moved to May" names its subject in the
//! heading or in the item above. Names, dates, and numbers of these lines support an item as if it cited them.
//! Nothing here decides whose words an item is in: only the cited lines do.
//!
//! Pure. [`cited_text`](super::cited_text) looks things up in it after the cited lines.

use crate::{
    memory::{log::TextOrigin, markdown::LineKind},
    privacy::{SanitizedLine, SanitizedLog},
    text::words,
};

/// The lines above a line that say what it is about.
#[derive(Default)]
pub(super) struct LineContext<'s> {
    /// Headings, the head of a table, the parents of a list item, and the line that introduces a list, a table,
    /// or a quote.
    pub(super) above: Vec<&'s SanitizedLine>,
    /// The paragraphs that "he" or "it" may refer back to: the nearest one, and the first of the section. Only
    /// names in them count.
    pub(super) antecedents: Vec<&'s SanitizedLine>,
}

/// A longer paragraph before a list is a text of its own.
const INTRODUCTION_CHARS_MAX: usize = 160;

/// What is further above is not read: each line of a log is looked up, so that the walks of a log of one long section
/// would take the square of its length.
const LINES_MAX: usize = 1_000;

/// The level of a line that is bold as a whole, below all headings.
const LABEL_LEVEL: u8 = 7;

/// Returns what is above a line of a log.
pub(super) fn of_line(log: &SanitizedLog, number: u32) -> LineContext<'_> {
    let mut context = LineContext::default();
    let lines = log.lines();
    let first = lines.first().map_or(0, SanitizedLine::number);
    let at = number.checked_sub(first).and_then(|it| usize::try_from(it).ok());
    let Some(at) = at.filter(|it| *it < lines.len()) else { return context };
    let is_foreign = lines[at].origin() == TextOrigin::External;
    // The words of strangers say nothing about one's own.
    let may_count = |it: &SanitizedLine| is_foreign || it.origin() != TextOrigin::External;
    let mut walk = Walk::from(&lines[at]);
    for line in lines[..at].iter().rev().take(LINES_MAX) {
        let is_shown = line.is_content() && !line.is_quarantined() && may_count(line);
        if walk.is_above(line) && is_shown {
            context.above.push(line);
        }
        let is_paragraph = line.kind() == LineKind::Text && leading_spaces(line) == 0;
        if walk.is_in_section && is_shown && is_paragraph {
            // The first one is the nearest; the last one that is found replaces the others.
            context.antecedents.truncate(1);
            context.antecedents.push(line);
        }
        if walk.level <= 1 {
            break;
        }
    }
    context
}

/// Where the walk from a line up to the top of its log has got.
struct Walk {
    /// The level of the last heading.
    level: u8,
    /// The indent of the last list item above which its parent is; `None` outside of lists.
    indent: Option<usize>,
    table: TableWalk,
    /// Whether the next paragraph introduces what the line is part of.
    awaits_introduction: bool,
    /// Whether no heading was met.
    is_in_section: bool,
    /// Whether the line counts on the item before it: "of these, two are new".
    refers_to_sibling: bool,
}

/// Where the walk is in the table of the line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TableWalk {
    Outside,
    Rows,
    /// The line below is the one between the head and the rows.
    Head,
}

impl Walk {
    fn from(line: &SanitizedLine) -> Self {
        let indent = match line.kind() {
            LineKind::ListItem { indent, .. } => Some(indent),
            // The continuation of an item.
            _ => Some(leading_spaces(line)).filter(|it| *it > 0),
        };
        let level = heading_level(line);
        Self {
            level: level.unwrap_or(u8::MAX),
            indent,
            table: if line.kind() == LineKind::TableRow {
                TableWalk::Rows
            } else {
                TableWalk::Outside
            },
            awaits_introduction: level.is_none()
                && (indent.is_some() || line.kind() != LineKind::Text),
            is_in_section: level.is_none(),
            refers_to_sibling: refers_to_sibling(line),
        }
    }

    /// Returns whether the line is above that from which the walk began; lines come in reverse order.
    fn is_above(&mut self, line: &SanitizedLine) -> bool {
        if let Some(level) = heading_level(line) {
            self.is_in_section = false;
            self.awaits_introduction = false;
            let is_above = level < self.level;
            self.level = self.level.min(level);
            return is_above;
        }
        if !self.is_in_section {
            return false;
        }
        match line.kind() {
            LineKind::ListItem { indent, .. } => {
                self.table = TableWalk::Outside;
                let is_parent = self.indent.is_some_and(|it| indent < it);
                // A list at the side of a table or a quote introduces nothing.
                self.awaits_introduction &= self.indent.is_some();
                if is_parent {
                    self.indent = Some(indent);
                }
                is_parent || std::mem::take(&mut self.refers_to_sibling)
            }
            LineKind::TableRow => self.table == TableWalk::Head,
            LineKind::Rule if self.table == TableWalk::Rows => {
                self.table = TableWalk::Head;
                false
            }
            LineKind::Blank => {
                self.table = TableWalk::Outside;
                false
            }
            LineKind::Text if leading_spaces(line) == 0 => {
                let introduces = self.awaits_introduction && is_introduction(line);
                self.awaits_introduction = false;
                self.indent = None;
                self.table = TableWalk::Outside;
                introduces
            }
            _ => false,
        }
    }
}

/// Returns the level of a heading, or of a line that is bold as a whole: `**Results**`.
fn heading_level(line: &SanitizedLine) -> Option<u8> {
    match line.kind() {
        LineKind::Heading { level, .. } => Some(level),
        LineKind::Text => {
            let text = line.text().trim().trim_end_matches(':');
            let inside = text.strip_prefix("**").and_then(|it| it.strip_suffix("**"))?;
            (!inside.is_empty() && !inside.contains("**")).then_some(LABEL_LEVEL)
        }
        _ => None,
    }
}

fn refers_to_sibling(line: &SanitizedLine) -> bool {
    const OPENING_WORDS: usize = 2;
    let mut opening = words::lowercase_runs(line.words()).take(OPENING_WORDS);
    matches!(line.kind(), LineKind::ListItem { .. })
        && opening.any(|it| ["these", "those", "them", "diese", "davon"].contains(&&it[..]))
}

fn is_introduction(line: &SanitizedLine) -> bool {
    let text = line.text().trim();
    text.ends_with(':') || text.chars().count() <= INTRODUCTION_CHARS_MAX
}

fn leading_spaces(line: &SanitizedLine) -> usize {
    line.text().chars().take_while(|it| it.is_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use crate::{memory::log::DailyLog, privacy};

    use super::*;

    const LOG: &str = "# Tide board\n\nMoved to the pier.\n\n## Pumps\n### North\n| pump | flow |\n|---|---|\n| a | 3 |\n| b | 4 |\n\nFaults:\n\n- valve\n  - stuck\n    twice\n- seal\n\n> Read me first\n\n**Costs**\nTwo weeks.\n";

    #[track_caller]
    fn check(number: u32, above: &[&str], antecedents: &[&str]) {
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), LOG.as_bytes()).unwrap();
        let log = privacy::sanitize(&log, &privacy::PrivacyRules::default());
        let context = of_line(&log, number);
        let text = |it: &[&SanitizedLine]| -> Vec<String> {
            it.iter().map(|it| it.words().trim().to_owned()).collect()
        };
        assert_eq!(text(&context.above), above, "above {number}");
        assert_eq!(text(&context.antecedents), antecedents, "before {number}");
    }

    #[test]
    fn above_a_line_are_headings_heads_and_parents() {
        check(3, &["Tide board"], &[]);
        check(9, &["| pump | flow |", "North", "Pumps", "Tide board"], &[]);
        check(14, &["Faults:", "North", "Pumps", "Tide board"], &["Faults:"]);
        check(16, &["stuck", "valve", "Faults:", "North", "Pumps", "Tide board"], &["Faults:"]);
        check(17, &["Faults:", "North", "Pumps", "Tide board"], &["Faults:"]);
        check(22, &["**Costs**", "North", "Pumps", "Tide board"], &[]);
        check(6, &["Pumps", "Tide board"], &[]);
        check(99, &[], &[]);
    }

    #[test]
    fn a_heading_far_above_is_not_read() {
        let text = |lines: usize| format!("# Pier{}", "\n- x".repeat(lines));
        let has_context = |lines: usize| {
            let log =
                DailyLog::parse("2026-04-02".parse().unwrap(), text(lines).as_bytes()).unwrap();
            let log = privacy::sanitize(&log, &privacy::PrivacyRules::default());
            let last = log.lines().last().unwrap().number();
            !of_line(&log, last).above.is_empty()
        };
        assert!(has_context(LINES_MAX));
        assert!(!has_context(LINES_MAX + 1));
    }

    #[test]
    fn an_item_may_count_on_the_one_before_it() {
        let text = "- 30 gaps of January\n- of these, two are new\n- two more";
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
        let log = privacy::sanitize(&log, &privacy::PrivacyRules::default());
        assert_eq!(of_line(&log, 2).above[0].words(), "30 gaps of January");
        assert!(of_line(&log, 3).above.is_empty());
    }

    #[test]
    fn the_words_of_strangers_are_no_context_of_ones_own() {
        let text = "> # Orders of Zeta\n> sign it\n\n- done";
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
        let log = privacy::sanitize(&log, &privacy::PrivacyRules::default());
        assert!(of_line(&log, 4).above.is_empty());
    }
}
