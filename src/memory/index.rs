//! `MEMORY.md`: the index of typed memories.
//!
//! Agents read this file at session start, some of them only its first 200 lines or 25,000 bytes,
//! so the whole file stays below both limits. Our part is a block between two comments; the rest is
//! a person's.
//!
//! # Invariants
//!
//! - A person's lines outside the block stay byte for byte; a person's line inside it moves below
//!   it.
//! - Rendering is idempotent.
//! - Memories that do not fit are counted in the last line of the block, never dropped silently.
//!
//! Called by `compaction` after typed memories changed.

use std::cmp::Reverse;

use chrono::NaiveDate;

use super::{
    hash::hex,
    typed::{MemoryType, TypedMemory, one_line},
    wisdom_block,
};

/// The comment before our block.
pub const BEGIN: &str = "<!-- memoird:begin -->";
/// The comment after our block.
pub const END: &str = "<!-- memoird:end -->";

/// The most lines of the whole file.
pub const LINES_MAX: usize = 200;
/// The most bytes of the whole file.
pub const BYTES_MAX: usize = 25_000;
/// The most characters of one line.
const LINE_CHARS_MAX: usize = 149;
/// The most characters of a name, which leaves room for the description.
const NAME_CHARS_MAX: usize = 60;

/// The start of the line that counts the omitted memories.
const OMITTED_PREFIX: &str = "- … and ";
/// The most bytes of that line: four types, each with a number.
const OMITTED_BYTES_MAX: usize = 200;

/// Renders the index of `memories` into the existing file or a new one.
///
/// The lines are sorted by type and name. If not all fit, those updated longest ago are omitted
/// first; a person's, which have no date, stay.
///
/// Names and descriptions are listed as `seen` returns them, since a person's memory may contain
/// anything.
pub fn render(
    existing: Option<&str>,
    memories: &[TypedMemory],
    seen: &dyn Fn(&str) -> String,
) -> String {
    let (before, after) = match existing {
        Some(text) => {
            let (before, strays, after) = split_at_block(text);
            (before, strays + &after)
        }
        None => ("# Memory\n\n".to_owned(), String::new()),
    };
    let mut lines: Vec<IndexLine> = memories.iter().map(|it| IndexLine::of(it, seen)).collect();
    lines.sort_by(|a, b| a.order.cmp(&b.order));
    let frame_lines = before.matches('\n').count() + after.matches('\n').count() + 2;
    let frame_bytes = before.len() + after.len() + BEGIN.len() + END.len() + 2;
    let room = IndexRoom {
        lines: LINES_MAX.saturating_sub(frame_lines),
        bytes: BYTES_MAX.saturating_sub(frame_bytes),
    };
    omit_oldest(&mut lines, &room);
    let mut text = before;
    text.push_str(BEGIN);
    text.push('\n');
    text.extend(lines.iter().filter(|it| it.included).flat_map(|it| [it.text.as_str(), "\n"]));
    text.push_str(&omitted_line(&lines));
    text.push_str(END);
    text.push('\n');
    text.push_str(&after);
    text
}

/// The room that the frame leaves for lines of memories.
struct IndexRoom {
    lines: usize,
    bytes: usize,
}

/// The line of a memory, with what decides its position.
struct IndexLine {
    text: String,
    kind: MemoryType,
    /// Type, lower-case name, file.
    order: (MemoryType, String, String),
    /// When it was updated; a person's memory may have no date.
    updated: Option<NaiveDate>,
    included: bool,
}

impl IndexLine {
    fn of(memory: &TypedMemory, seen: &dyn Fn(&str) -> String) -> Self {
        let file = memory.file_name.to_string_lossy();
        let name = shorten(&one_line(&seen(&memory.name)), NAME_CHARS_MAX);
        let name = escape(&name, &['\\', '[', ']', '<', '`']);
        let head = format!("- [{name}]({})", encode_link_target(&file));
        let room = LINE_CHARS_MAX.saturating_sub(head.chars().count() + 2);
        let words = one_line(&seen(&memory.description));
        // Escaping adds characters, so the escaped text is measured.
        let description = (0..=room)
            .rev()
            .step_by(4)
            .map(|room| escape(&shorten(&words, room), &['<']))
            .find(|it| it.chars().count() <= room)
            .unwrap_or_default();
        let text = if description.is_empty() { head } else { format!("{head}: {description}") };
        Self {
            // A name too long for any line counts as omitted.
            included: text.chars().count() <= LINE_CHARS_MAX,
            text,
            kind: memory.kind,
            order: (memory.kind, memory.name.to_lowercase(), file.into_owned()),
            updated: memory.updated,
        }
    }
}

/// Omits lines until the limits are met, with room for the line that counts them.
fn omit_oldest(lines: &mut [IndexLine], room: &IndexRoom) {
    let included = lines.iter().filter(|it| it.included);
    let (mut count, mut bytes) = included.fold((0, 0), |(n, b), it| (n + 1, b + it.text.len() + 1));
    if count == lines.len() && count <= room.lines && bytes <= room.bytes {
        return;
    }
    let lines_left = room.lines.saturating_sub(1);
    let bytes_left = room.bytes.saturating_sub(OMITTED_BYTES_MAX);
    let mut oldest: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].included).collect();
    oldest.sort_by_key(|&i| (lines[i].updated.is_none(), lines[i].updated, Reverse(i)));
    for i in oldest {
        if count <= lines_left && bytes <= bytes_left {
            return;
        }
        lines[i].included = false;
        count -= 1;
        bytes -= lines[i].text.len() + 1;
    }
}

/// Returns the line that counts the omitted memories by type, or nothing.
fn omitted_line(lines: &[IndexLine]) -> String {
    let count = |kind| lines.iter().filter(|it| !it.included && it.kind == kind).count();
    let counts = MemoryType::ALL.map(|kind| (kind, count(kind)));
    let total: usize = counts.iter().map(|it| it.1).sum();
    if total == 0 {
        return String::new();
    }
    let parts = counts.iter().filter(|it| it.1 > 0);
    let parts: Vec<String> = parts.map(|(kind, n)| format!("{n} in {kind}_*.md")).collect();
    format!("{OMITTED_PREFIX}{total} more that did not fit, in this folder: {}\n", parts.join(", "))
}

/// Returns the text with blank lines in place of our blocks: what is left is a person's or an agent's, and each line
/// keeps its number.
pub fn own_lines(text: &str) -> String {
    let own = |(line, is_ours)| if is_ours { "\n" } else { line };
    lines_with_owner(text).into_iter().map(own).collect()
}

/// Returns the text without our blocks: the same, whatever is in them.
pub fn own_text(text: &str) -> String {
    let lines = lines_with_owner(text).into_iter();
    lines.filter(|it| !it.1).map(|it| it.0).collect()
}

/// Returns the lines of a text, each with whether it is in one of our blocks. All that follows a block of
/// [`wisdom_block`] without an end counts as ours.
fn lines_with_owner(text: &str) -> Vec<(&str, bool)> {
    let mut found = Vec::new();
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let is_wisdom = wisdom_block::is_begin(line);
        if line.trim() != BEGIN && !is_wisdom {
            found.push((line, false));
            continue;
        }
        found.push((line, true));
        let ends = is_wisdom || has_end(lines.clone());
        while let Some(line) = lines.next_if(|it| ends || is_index_line(it)) {
            found.push((line, true));
            if line.trim() == END {
                break;
            }
        }
    }
    found
}

/// Returns the text without the index of memories; lines that somebody wrote inside it stay.
pub(super) fn without_block(text: &str) -> String {
    if !text.lines().any(|it| it.trim() == BEGIN) {
        return text.to_owned();
    }
    let (before, strays, after) = split_at_block(text);
    before + &strays + &after
}

/// Returns whether the block that begins before these lines has an end.
fn has_end<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    lines.map(str::trim).find(|it| [BEGIN, END].contains(it)) == Some(END)
}

/// Returns the text before our block, what somebody wrote inside it, and the text after it.
///
/// In a block without an end, only lines that look like ours belong to it. A second block, left by
/// a merge of two copies, is removed.
fn split_at_block(text: &str) -> (String, String, String) {
    let (mut before, mut strays, mut after) = (String::new(), String::new(), String::new());
    let mut lines = text.split_inclusive('\n').peekable();
    let mut found = false;
    while let Some(line) = lines.next() {
        if line.trim() != BEGIN {
            let side = if found { &mut after } else { &mut before };
            side.push_str(line);
            continue;
        }
        found = true;
        let ends = has_end(lines.clone());
        while let Some(line) = lines.next_if(|it| ends || is_index_line(it)) {
            if line.trim() == END {
                break;
            }
            if !is_index_line(line) && !line.trim().is_empty() {
                strays.push_str(line);
                if !line.ends_with('\n') {
                    strays.push('\n');
                }
            }
        }
    }
    if !found && !before.is_empty() {
        // A blank line separates our block from the person's text.
        let gap = if before.ends_with("\n\n") || before.ends_with("\r\n\r\n") {
            ""
        } else if before.ends_with('\n') {
            "\n"
        } else {
            "\n\n"
        };
        before.push_str(gap);
    }
    (before, strays, after)
}

/// Returns whether a line inside the block looks like one of ours.
fn is_index_line(line: &str) -> bool {
    let line = line.trim();
    let targets = line.match_indices("](").filter_map(|(at, _)| {
        let (target, _) = line[at + 2..].split_once(')')?;
        target.strip_suffix(".md")?.split_once('_')
    });
    let mut kinds = targets.map(|(kind, _)| MemoryType::from_name(kind));
    line.starts_with(OMITTED_PREFIX) || (line.starts_with("- [") && kinds.any(|it| it.is_some()))
}

/// Returns the file without the link targets of our lines, line for line: they name files and are
/// not text.
pub fn strip_link_targets(text: &str) -> String {
    let plain = |line: &str| match line.rsplit_once("](") {
        Some((before, after)) if is_index_line(line) => {
            let rest = after.split_once(')').map_or("", |it| it.1);
            format!("{before}]{rest}")
        }
        _ => line.to_owned(),
    };
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// Returns the file with a person's lines replaced by `lines`; ours stay until the next rendering.
pub fn replace_user_lines(text: &str, lines: &[String]) -> String {
    let line = |(old, new): (&str, &String)| {
        if is_index_line(old) { old.to_owned() } else { new.clone() }
    };
    text.split('\n').zip(lines).map(line).collect::<Vec<_>>().join("\n")
}

/// Shortens a text to `chars_max` characters, between words if possible, and appends `…`.
fn shorten(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let Some(keep) = chars_max.checked_sub(1) else { return String::new() };
    let end = text.char_indices().nth(keep).map_or(text.len(), |it| it.0);
    let head = &text[..end];
    let cut = if text[end..].starts_with(' ') { Some(end) } else { head.rfind(' ') };
    let head = cut.filter(|&it| it >= end / 2).map_or(head, |it| &head[..it]);
    format!("{}…", head.trim_end())
}

fn escape(text: &str, marks: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if marks.contains(&c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Percent-encodes a file name as a link target.
fn encode_link_target(file: &str) -> String {
    let mut out = String::with_capacity(file.len());
    for c in file.chars() {
        if c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '~') {
            out.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                out.extend(["%", &hex(&[byte]).to_uppercase()]);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn memory(file: &str, name: &str, description: &str) -> TypedMemory {
        let kind = MemoryType::of_file_name(file.as_ref()).unwrap();
        let text = format!("---\ntype: {kind}\nname: x\ndescription: x\n---\nbody\n");
        let memory = TypedMemory::parse(file.as_ref(), &text).unwrap();
        TypedMemory { name: name.to_owned(), description: description.to_owned(), ..memory }
    }

    fn sample_memories() -> Vec<TypedMemory> {
        vec![
            memory("reference_z.md", "Zed", "where"),
            memory("feedback_b.md", "beta", "second"),
            memory("feedback_a.md", "Alpha", "first"),
        ]
    }

    const BLOCK: &str = "<!-- memoird:begin -->\n- [Alpha](feedback_a.md): first\n- [beta](feedback_b.md): second\n- [Zed](reference_z.md): where\n<!-- memoird:end -->\n";

    #[track_caller]
    fn check(existing: Option<&str>, expected: &str) {
        let rendered = render(existing, &sample_memories(), &str::to_owned);
        assert_eq!(rendered, expected.replace("BLOCK", BLOCK));
        assert_eq!(render(Some(&rendered), &sample_memories(), &str::to_owned), rendered);
    }

    #[test]
    fn the_block_keeps_its_position() {
        check(None, "# Memory\n\nBLOCK");
        check(Some(""), "BLOCK");
        check(Some("mine"), "mine\n\nBLOCK");
        check(Some("mine\n\n"), "mine\n\nBLOCK");
        check(Some(&format!("a\r\n{BLOCK}b")), "a\r\nBLOCKb");
        // A person's line inside moves below; our line of a removed memory is dropped.
        let inside = "a\n<!-- memoird:begin -->\n- [Old](user_old.md): x\n- [Mine](notes.md): y\n- … and 3 more\n<!-- memoird:end -->\nb\n";
        check(Some(inside), "a\nBLOCK- [Mine](notes.md): y\nb\n");
        check(Some("<!-- memoird:begin -->\n- [Old](user_old.md): x\nmine\n"), "BLOCKmine\n");
        check(Some(&format!("{BLOCK}b\n{BLOCK}c\n")), "BLOCKb\nc\n");
    }

    #[track_caller]
    fn check_line(file: &str, name: &str, description: &str, expected: &str) {
        let text = IndexLine::of(&memory(file, name, description), &str::to_owned).text;
        assert_eq!(text, expected);
        assert!(text.chars().count() < 150 && is_index_line(&text));
    }

    #[test]
    fn a_line_is_short_and_cannot_break_the_list() {
        check_line("user_a.md", "A", "b\n- c\u{1b}", r"- [A](user_a.md): b - c");
        check_line(
            "user_a.md",
            "a](x) <!-- `",
            "<!-- x -->",
            r"- [a\](x) \<!-- \`](user_a.md): \<!-- x -->",
        );
        check_line("user_a (1).md", "A", "", "- [A](user_a%20%281%29.md)");
        let long = "wörter ".repeat(30);
        let expected = format!("- [A](user_a.md): {}…", "wörter ".repeat(18).trim_end());
        check_line("user_a.md", "A", &long, &expected);
    }

    #[test]
    fn names_and_descriptions_are_sanitized() {
        let memories = [memory("user_a.md", "the token", "is token")];
        let text = render(None, &memories, &|it| it.replace("token", "[secret:x#1a2b]"));
        assert!(
            text.contains(r"- [the \[secret:x#1a2b\]](user_a.md): is [secret:x#1a2b]"),
            "{text}"
        );
    }

    #[test]
    fn omitted_memories_are_counted_and_the_newest_stay() {
        let mut memories: Vec<TypedMemory> = (0..300)
            .map(|i| memory(&format!("project_{i:03}.md"), &format!("{i:03}"), &"é".repeat(200)))
            .collect();
        for (i, memory) in memories.iter_mut().enumerate() {
            let day = NaiveDate::from_num_days_from_ce_opt(i32::try_from(i).unwrap());
            memory.updated = day.filter(|_| i > 0);
        }
        let person = "x\n".repeat(50);
        let text = render(Some(&person), &memories, &str::to_owned);
        assert!(text.starts_with(&person) && text.len() <= BYTES_MAX);
        assert!(
            text.lines().count() <= LINES_MAX && text.lines().all(|it| it.chars().count() < 150)
        );
        assert!(text.contains("[299]") && text.contains("[000]") && !text.contains("[001]"));
        let shown = text.matches("](project_").count();
        let more = format!(
            "- … and {0} more that did not fit, in this folder: {0} in project_*.md\n{END}\n",
            300 - shown
        );
        assert!(shown > 50 && text.ends_with(&more), "{text}");
        assert_eq!(render(Some(&text), &memories, &str::to_owned), text);

        let short: Vec<TypedMemory> =
            (0..300).map(|i| memory(&format!("user_{i}.md"), "n", "d")).collect();
        assert_eq!(render(Some(&person), &short, &str::to_owned).lines().count(), LINES_MAX);
        // A person's text that leaves no room is not touched, and our block says where to look.
        let full = render(Some(&"x\n".repeat(400)), &short, &str::to_owned);
        assert_eq!(full.lines().count(), 404);
    }

    proptest! {
        #[test]
        fn rendering_is_idempotent_and_keeps_a_persons_lines(
            lines in proptest::collection::vec(prop_oneof![
                Just(BEGIN.to_owned()), Just(END.to_owned()), Just("- [a](user_a.md): x".to_owned()), "\\PC{0,12}".prop_map(|it| it),
            ], 0..12),
            name in any::<String>(),
            description in any::<String>(),
        ) {
            let text = lines.join("\n");
            let memories = [memory("user_a.md", &name, &description)];
            let rendered = render(Some(&text), &memories, &str::to_owned);
            prop_assert_eq!(&render(Some(&rendered), &memories, &str::to_owned), &rendered);
            for line in lines.iter().filter(|it| !it.trim().is_empty() && !it.contains("memoird:") && !is_index_line(it)) {
                prop_assert!(rendered.contains(line.as_str()), "{:?} in {}", line, rendered);
            }
        }
    }
}
