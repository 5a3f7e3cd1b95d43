//! Shortens texts of a transcript.

use crate::memory::markdown::{self, LineKind};

/// Returns the first characters of a text, with `…` if it is longer.
pub(crate) fn truncate(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
    }
}

/// Returns the start and the end of a text, with a note on what was left out between them.
pub(crate) fn truncate_middle(text: &str, chars_max: usize) -> String {
    if text.len() <= chars_max {
        return text.to_owned();
    }
    let count = text.chars().count();
    if count <= chars_max {
        return text.to_owned();
    }
    let half = chars_max / 2;
    let at = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |it| it.0);
    let (head, tail) = (&text[..at(half)], &text[at(count - half)..]);
    let left_out = count - 2 * half;
    format!("{}\n[… {left_out} characters left out …]\n{}", head.trim_end(), tail.trim_start())
}

/// Returns the start and the end of a message, in whole lines, with a note on what was left out between them.
///
/// A line that is a quote or code is marked as a quote, because the mark of the block that it belongs to may
/// be left out.
pub(crate) fn truncate_message(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kinds = markdown::classify_lines(text.lines());
    let lines: Vec<String> = text
        .lines()
        .zip(kinds)
        .map(|(line, kind)| match kind {
            LineKind::Quote { .. } | LineKind::Fence | LineKind::Code => format!("> {line}"),
            _ => line.to_owned(),
        })
        .collect();
    let half = chars_max / 2;
    let count_fitting = |lines: &mut dyn Iterator<Item = &String>| {
        let mut left = half;
        lines
            .take_while(|it| {
                let rest = left.checked_sub(it.chars().count() + 1);
                left = rest.unwrap_or_default();
                rest.is_some()
            })
            .count()
    };
    let head = count_fitting(&mut lines.iter());
    let tail = count_fitting(&mut lines[head..].iter().rev());
    let inner = &lines[head..lines.len() - tail];
    let mut shown = lines[..head].to_vec();
    if head == 0 {
        shown.extend(inner.first().map(|it| truncate(it, half)));
    }
    shown.extend([String::new(), format!("[… {} lines left out …]", inner.len()), String::new()]);
    shown.extend_from_slice(&lines[lines.len() - tail..]);
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::own_words;

    #[test]
    fn a_message_is_cut_between_lines_and_its_code_stays_code() {
        let code = "We decided to skip it.\n".repeat(40);
        let text = format!("Look:\n```\n{code}```\nSo it is.\n> {}\nend", "quoted ".repeat(9));
        for chars_max in (20..text.len() + 40).step_by(7) {
            let cut = truncate_message(&text, chars_max);
            let own = own_words::own_words(&cut).unwrap_or_else(|| cut.clone());
            assert!(!own.contains("decided") && !own.contains("quoted"), "{chars_max}: {cut}");
            assert!(cut.chars().count() <= chars_max + 100, "{chars_max}: {cut}");
        }
        let long = "a".repeat(900);
        assert!(truncate_message(&long, 100).starts_with("aaaa"));
    }
}
