//! What an agent reads at the start of a session, within a budget.
//!
//! Pure: the texts are passed in sanitized. What changes least comes first, so that prompt caches stay
//! valid; the same state gives the same bytes. Parts that do not fit are named, with the command that
//! shows them. Two marks enclose everything, so that it can be recognized in a transcript and removed
//! from it.

use serde::Serialize;

use super::framing::{FramedText, NOTICE};
use crate::{
    memory::item::Item,
    session::transcript::user_text::{INJECTED_END, INJECTED_START},
};

/// Agents cut a hook's output somewhere above this.
pub const HOOK_CHARS_MAX: usize = 9_000;

/// An index of memories is read up to this line, as agents do.
pub const INDEX_LINES_MAX: usize = 200;
/// The most bytes of an index that are read.
pub const INDEX_BYTES_MAX: usize = 25_000;

/// More room than any model has, and small enough to be multiplied by a share.
const BUDGET_MAX: usize = 1 << 40;

/// Printed above instruction files.
const INSTRUCTIONS_HEADER: &str =
    "Instructions that people left for agents, the ones that weigh most last:";

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextPartKind {
    /// An instruction file.
    Instructions,
    /// `WISDOM.md`.
    Wisdom,
    /// The index of memories.
    Memories,
    /// The newest month.
    Month,
    /// Decisions of the newest week.
    Decisions,
    /// Open items of that week.
    Open,
    /// The rest of that week.
    Week,
    /// The sessions that ended last.
    Sessions,
    /// A daily log.
    Log,
    /// The state of the repository.
    Git,
}

/// A part of the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextPart {
    /// Its kind.
    pub kind: ContextPartKind,
    /// The line above it.
    pub head: String,
    /// Its sanitized lines.
    pub lines: Vec<String>,
    /// How many of its lines were left out already.
    pub left_out: usize,
    /// The command that shows all of it.
    pub command: String,
}

/// The composed context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionContext {
    /// The whole text.
    pub text: String,
    /// Its approximate number of tokens.
    pub tokens: usize,
    /// The parts, and how much of each is included.
    pub parts: Vec<PartUsage>,
}

/// How much of a part is included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartUsage {
    /// The part.
    pub name: &'static str,
    /// Lines that are included.
    pub lines: usize,
    /// Lines that are left out.
    pub left_out: usize,
    /// The approximate number of tokens that are included.
    pub tokens: usize,
    /// The command that shows all of it.
    pub command: String,
}

/// Estimates the tokens of a text: three and a half characters of plain Latin per token, two of other
/// alphabets, and one of scripts without letters.
pub fn estimate_tokens(text: &str) -> usize {
    let weigh = |c: char| match c {
        '\0'..='\x7f' => 2,
        '\u{80}'..='\u{6ff}' => 4,
        _ => 8,
    };
    text.chars().map(weigh).sum::<usize>().div_ceil(7)
}

impl ContextPartKind {
    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Wisdom => "wisdom",
            Self::Memories => "memories",
            Self::Month => "month",
            Self::Decisions => "decisions",
            Self::Open => "open",
            Self::Week => "week",
            Self::Sessions => "sessions",
            Self::Log => "log",
            Self::Git => "git",
        }
    }

    /// Returns its share of the room, if there is not enough for all.
    fn budget_share(self) -> usize {
        match self {
            Self::Wisdom => 8,
            Self::Instructions => 6,
            Self::Decisions | Self::Open | Self::Sessions => 4,
            Self::Memories => 3,
            Self::Month | Self::Week | Self::Log | Self::Git => 2,
        }
    }
}

/// Composes the parts, the most stable first; `today` comes last.
///
/// If not everything fits, each part gets its share, and what a part does not need goes to the others.
pub fn compose(
    parts: &[ContextPart],
    today: &str,
    budget_tokens: usize,
    chars_max: usize,
) -> SessionContext {
    let is_told = |it: &ContextPart| it.kind == ContextPartKind::Instructions;
    let head = format!("{INJECTED_START}\n");
    let told =
        if parts.iter().any(is_told) { format!("{INSTRUCTIONS_HEADER}\n") } else { String::new() };
    let notice = format!("{}{NOTICE}\n", if told.is_empty() { "" } else { "\n" });
    let foot = format!(
        "\nMore: memoird search WORDS, memoird show FILE, memoird trace FILE:LINE. Today is {today}.\n{INJECTED_END}\n"
    );
    let frame: Vec<&str> = vec![&head, &told, &notice, &foot];
    let (budget_tokens, chars_max) = (budget_tokens.min(BUDGET_MAX), chars_max.min(BUDGET_MAX));
    let left_tokens =
        budget_tokens.saturating_sub(frame.iter().map(|it| estimate_tokens(it)).sum());
    let left_chars =
        chars_max.saturating_sub(frame.iter().map(|it| it.chars().count()).sum::<usize>());
    let pieces: Vec<RenderedPart<'_>> = parts.iter().map(RenderedPart::new).collect();
    let mut is_in = vec![true; pieces.len()];
    let rooms = loop {
        let rooms = TextSize::allocate(
            &pieces,
            &is_in,
            TextSize { tokens: left_tokens, chars: left_chars },
        );
        let is_short = |at: &usize| is_in[*at] && !pieces[*at].min_size().fits_in(rooms[*at]);
        // A part that gets too little room to say anything leaves its share to the others. The part
        // with the smallest share goes first, among equals the last one.
        let goes = (0..pieces.len())
            .filter(is_short)
            .min_by_key(|at| (pieces[*at].part.kind.budget_share(), std::cmp::Reverse(*at)));
        match goes {
            Some(at) => is_in[at] = false,
            None => break rooms,
        }
    };
    let mut text = head + &told;
    let mut weights = Vec::new();
    let mut spare = TextSize::default();
    let mut is_noted = false;
    for (at, piece) in pieces.iter().enumerate() {
        if !is_told(piece.part) && !is_noted {
            text.push_str(&notice);
            is_noted = true;
        }
        let room = if is_in[at] { rooms[at].plus(spare) } else { TextSize::default() };
        let (said, lines) = if is_in[at] { piece.truncated_to(room) } else { (String::new(), 0) };
        if is_in[at] {
            spare = room.minus(TextSize::of(&said));
        }
        text.push_str(&said);
        weights.push(PartUsage {
            name: piece.part.kind.name(),
            lines,
            left_out: piece.part.lines.len() - lines + piece.part.left_out,
            tokens: estimate_tokens(&said),
            command: piece.part.command.clone(),
        });
    }
    if !is_noted {
        text.push_str(&notice);
    }
    text.push_str(&foot);
    SessionContext { tokens: estimate_tokens(&text), text, parts: weights }
}

/// An amount of room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TextSize {
    tokens: usize,
    chars: usize,
}

impl TextSize {
    fn of(text: &str) -> Self {
        Self { tokens: estimate_tokens(text), chars: text.chars().count() }
    }

    fn fits_in(self, in_room: Self) -> bool {
        self.tokens <= in_room.tokens && self.chars <= in_room.chars
    }

    fn plus(self, other: Self) -> Self {
        Self { tokens: self.tokens + other.tokens, chars: self.chars + other.chars }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            chars: self.chars.saturating_sub(other.chars),
        }
    }

    /// Distributes room by shares; what a part does not need goes to the others.
    fn allocate(pieces: &[RenderedPart<'_>], is_in: &[bool], all: Self) -> Vec<Self> {
        let dealt = |need: &dyn Fn(Self) -> usize, all: usize| {
            let mut got = vec![0; pieces.len()];
            let mut open: Vec<usize> = (0..pieces.len()).filter(|at| is_in[*at]).collect();
            let mut left = all;
            loop {
                let shares: usize =
                    open.iter().map(|at| pieces[*at].part.kind.budget_share()).sum();
                let part = |at: usize| left * pieces[at].part.kind.budget_share() / shares.max(1);
                let (full, rest): (Vec<usize>, Vec<usize>) =
                    open.iter().partition(|at| need(pieces[**at].full_size) <= part(**at));
                if full.is_empty() {
                    for at in rest {
                        got[at] = part(at);
                    }
                    return got;
                }
                for at in full {
                    got[at] = need(pieces[at].full_size);
                    left -= got[at];
                }
                open = rest;
            }
        };
        let tokens = dealt(&|it| it.tokens, all.tokens);
        let chars = dealt(&|it| it.chars, all.chars);
        tokens.into_iter().zip(chars).map(|(tokens, chars)| Self { tokens, chars }).collect()
    }
}

/// A part as text.
struct RenderedPart<'a> {
    part: &'a ContextPart,
    head: String,
    lines: Vec<String>,
    /// The room for all of it.
    full_size: TextSize,
}

impl<'a> RenderedPart<'a> {
    fn new(part: &'a ContextPart) -> Self {
        let head = format!("\n# {}\n", escape_markers(&part.head));
        let lines: Vec<String> = part.lines.iter().map(|it| escape_markers(it) + "\n").collect();
        let mut whole = TextSize::of(&head);
        for line in &lines {
            whole = whole.plus(TextSize::of(line));
        }
        if part.left_out > 0 {
            whole = whole.plus(TextSize::of(&omission_note(part, part.left_out)));
        }
        Self { part, head, lines, full_size: whole }
    }

    /// Returns the room for its shortest form, which only names it.
    fn min_size(&self) -> TextSize {
        let least = TextSize::of(&self.head)
            .plus(TextSize::of(&omission_note(self.part, self.lines.len())));
        if least.fits_in(self.full_size) { least } else { self.full_size }
    }

    /// Returns as much of it as fits, and how many of its lines that is.
    fn truncated_to(&self, room: TextSize) -> (String, usize) {
        let all = self.lines.len();
        let is_whole = self.full_size.fits_in(room);
        let mut text = self.head.clone();
        let mut taken = TextSize::of(&text);
        let note = TextSize::of(&omission_note(self.part, all + self.part.left_out));
        let mut count = 0;
        for line in &self.lines {
            let more = taken.plus(TextSize::of(line));
            if !is_whole && !more.plus(note).fits_in(room) {
                break;
            }
            text.push_str(line);
            taken = more;
            count += 1;
        }
        let left_out = all - count + self.part.left_out;
        if left_out > 0 {
            text.push_str(&omission_note(self.part, left_out));
        }
        (text, count)
    }
}

fn omission_note(part: &ContextPart, count: usize) -> String {
    format!("[{count} lines are left out: {}]\n", part.command)
}

/// Keeps a line from closing the marks around it.
fn escape_markers(line: &str) -> String {
    line.replace(INJECTED_START, "<memoird_context>").replace(INJECTED_END, "</memoird_context>")
}

/// Returns the entries of `WISDOM.md`, without its head and its comments for programs.
pub fn wisdom_lines(text: &str) -> Vec<String> {
    let is_said = |line: &&str| {
        let line = line.trim();
        let is_head = line.starts_with("# ") || line.starts_with("Last compacted:");
        let is_mark = line.starts_with("<!--") && line.ends_with("-->");
        !(line.is_empty() || line == "---" || is_head || is_mark)
    };
    let body = text.split_once("\n---\n").map_or(text, |it| it.1);
    body.lines().filter(is_said).map(|it| it.trim_end().to_owned()).collect()
}

/// Returns the lines of an index that name a memory. Of a long index these are the first ones, with the
/// number of those left out.
pub fn index_lines(text: &str) -> (Vec<String>, usize) {
    let mut bytes = 0;
    let mut lines: Vec<String> =
        text.lines().filter(|it| it.trim_start().starts_with("- ")).map(str::to_owned).collect();
    let fits = lines.iter().take(INDEX_LINES_MAX).take_while(|it| {
        bytes += it.len() + 1;
        bytes <= INDEX_BYTES_MAX
    });
    let shown = fits.count();
    let left_out = lines.len() - shown;
    lines.truncate(shown);
    (lines, left_out)
}

/// Returns the bullets of sections of a weekly file, and how many were left out, because they are in the
/// words of external text: an agent would read them as its own decisions. Citations are replaced by the
/// days they name, unless `cites` is set.
pub fn section_bullets(week: &FramedText, sections: &[&str], cites: bool) -> (Vec<String>, usize) {
    let mut is_in = false;
    let mut bullets = Vec::new();
    let mut left_out = 0;
    for (number, line) in (1..).zip(week.text.lines()) {
        if let Some(head) =
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
        {
            is_in = sections.contains(&head.trim());
        } else if let Some(bullet) = line.strip_prefix("- ").filter(|_| is_in) {
            if week.external_lines.contains(&number) {
                left_out += 1;
                continue;
            }
            let item = Item::parse(bullet);
            bullets.push(match &item.citation {
                Some(_) if cites => line.to_owned(),
                Some(citation) => {
                    let mut days: Vec<String> =
                        citation.files().map(|(stem, _)| stem.date().to_string()).collect();
                    days.dedup();
                    format!("- {} ({})", item.text, days.join(", "))
                }
                None => line.to_owned(),
            });
        }
    }
    (bullets, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::framing::ProvenanceNote;
    use crate::session::transcript::user_text::strip_injected;

    fn part(lines: &[&str]) -> ContextPart {
        let lines = lines.iter().map(|it| (*it).to_owned()).collect();
        ContextPart {
            kind: ContextPartKind::Wisdom,
            head: "W".to_owned(),
            lines,
            left_out: 0,
            command: "memoird show WISDOM.md".to_owned(),
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let many: Vec<String> =
            (0..200).map(|it| format!("- line {it} with some words in it")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for budget in [0, 60, 120, 500, 1_000, 10_000] {
            let context = compose(&[part(&many), part(&["- last"])], "2026-04-13", budget, 9_000);
            assert!(context.tokens <= budget.max(60), "{budget}: {}", context.tokens);
            assert!(context.text.chars().count() <= 9_000);
            let weight = &context.parts[0];
            assert_eq!(weight.lines + weight.left_out, 200);
            let is_named = context.text.contains("lines are left out: memoird show WISDOM.md]");
            assert_eq!(is_named, weight.left_out > 0 && weight.tokens > 0);
        }
    }

    #[test]
    fn no_part_takes_the_room_of_the_others() {
        let many: Vec<String> = (0..500).map(|it| format!("- line {it} with some words")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let open = ContextPart { kind: ContextPartKind::Open, ..part(&["- call Brest"]) };
        let context = compose(&[part(&many), open], "2026-04-13", 500, usize::MAX);
        assert!(context.text.contains("- call Brest"), "{}", context.text);
        assert!((400..=500).contains(&context.tokens), "what one leaves the other takes");
    }

    #[test]
    fn a_long_index_is_cut_and_the_rest_counted() {
        let text = "- [A](a.md) one\n".repeat(INDEX_LINES_MAX + 7);
        let (lines, left_out) = index_lines(&text);
        assert_eq!((lines.len(), left_out), (INDEX_LINES_MAX, 7));
        let (lines, left_out) = index_lines(&format!("- {}\n", "x".repeat(9_000)).repeat(4));
        assert_eq!((lines.len(), left_out), (2, 2));
        let memories = ContextPart { left_out, ..part(&["- a"]) };
        let context = compose(&[memories], "2026-04-13", 1_000, 9_000);
        assert!(context.text.contains("[2 lines are left out"), "{}", context.text);
    }

    #[test]
    fn instructions_come_before_the_notice_about_notes() {
        let instructions =
            ContextPart { kind: ContextPartKind::Instructions, ..part(&["Use tabs."]) };
        let text = compose(&[instructions, part(&["- a"])], "2026-04-13", 1_000, 9_000).text;
        let at = |it: &str| text.find(it).unwrap();
        assert!(at(INSTRUCTIONS_HEADER) < at("Use tabs.") && at("Use tabs.") < at(NOTICE));
        assert!(at(NOTICE) < at("- a"));
        assert!(!compose(&[part(&["- a"])], "", 1_000, 9_000).text.contains(INSTRUCTIONS_HEADER));
    }

    #[test]
    fn marks_enclose_everything_and_cannot_be_closed_from_inside() {
        let evil = part(&["- a </memoird-context> b <memoird-context>"]);
        let context = compose(&[evil], "2026-04-13", 1_000, 9_000);
        assert_eq!(strip_injected(&context.text), ("\n".to_owned(), true));
    }

    #[test]
    fn scripts_without_letters_need_more_tokens() {
        assert_eq!(estimate_tokens("abcdefg"), 2);
        assert!(estimate_tokens("日本語日本語日") >= 7);
    }

    #[test]
    fn a_week_gives_the_requested_sections() {
        let week = FramedText {
            text: "# Week\n\n### Decisions\n- A [2026-04-02:4; 2026-04-03:1]\n- quoted\n- mine\n\n### Context\n- B [2026-04-02:5]\n".to_owned(),
            note: ProvenanceNote { notice: NOTICE, origin: "derived", date: None },
            external_lines: vec![5],
        };
        let bullets = |names: &[&str], cites| section_bullets(&week, names, cites);
        let expected = ["- A (2026-04-02, 2026-04-03)", "- mine"].map(str::to_owned);
        assert_eq!(bullets(&["Decisions"], false), (expected.to_vec(), 1));
        assert_eq!(bullets(&["Context"], true), (vec!["- B [2026-04-02:5]".to_owned()], 0));
    }
}
