//! Secrets that are split in a log and would be whole in a generated text.
//!
//! Generated text joins what a log separates: invisible characters are dropped, and a bullet takes the
//! words of its heading, a cell the head of its column. So a text is also scanned in its joined form before
//! any of it is shown: without hidden characters, each line after its label (the heading, the parent
//! item, or a preceding line that ends in a colon), and each cell of a table after its labels (the head
//! of its column, and the first cell of its row).

use std::ops::Range;

use super::{
    rules::CompiledSecretRules,
    scan::{SecretCandidate, candidates, has_value_keyword},
};

/// The most bytes of a label that are read, from its end.
const LABEL_MAX: usize = 60;

/// The shortest line that may be a value, in bytes.
const VALUE_MIN: usize = 4;

/// A text composed of parts of another.
#[derive(Default)]
struct JoinedText {
    text: String,
    /// The range of each part in this text, and its start in the other; ascending.
    parts: Vec<(Range<usize>, usize)>,
}

/// Returns the secrets in the joined form of a text, as ranges of the text itself.
pub(super) fn find_split(rules: &CompiledSecretRules, text: &str) -> Vec<SecretCandidate> {
    let mut found = Vec::new();
    if let Some(plain) = without_hidden(text) {
        found.extend(plain.find(rules));
    }
    found.extend(join_labels(rules, text).find(rules));
    found
}

impl JoinedText {
    fn find(&self, rules: &CompiledSecretRules) -> Vec<SecretCandidate> {
        if self.text.is_empty() {
            return Vec::new();
        }
        let found = candidates(rules, &self.text);
        found
            .into_iter()
            .filter_map(|it| Some(SecretCandidate { range: self.source_range(&it.range)?, ..it }))
            .collect()
    }

    /// Returns the range in the original text; `None` if the match does not start in a part of it.
    fn source_range(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let part = |at: usize| {
            let index = self.parts.partition_point(|(here, _)| here.end <= at);
            let (here, there) = self.parts.get(index)?;
            (here.start <= at).then(|| (there + at - here.start, there + here.len()))
        };
        let (start, start_end) = part(range.start)?;
        let end = part(range.end - 1).map_or(start_end, |(last, _)| last + 1);
        Some(start..end.max(start + 1))
    }

    fn push(&mut self, text: &str, range: Range<usize>) {
        let from = self.text.len();
        self.text.push_str(&text[range.clone()]);
        self.parts.push((from..self.text.len(), range.start));
    }

    /// Adds a part after a label, as a line.
    fn push_labelled(&mut self, label: &str, text: &str, range: Range<usize>) {
        self.text.push_str(label);
        self.text.push_str(": ");
        self.push(text, range);
        // Without an empty line, a token might continue in the next line.
        self.text.push_str("\n\n");
    }
}

/// Returns whether a character has no width, so that some readers drop it.
pub(in crate::privacy) fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e01ef}')
}

/// Returns where the next hidden character or backslash is.
fn next_hidden(text: &str, mut at: usize) -> Option<usize> {
    // Most of a text is ASCII, which is skipped byte by byte.
    loop {
        let rest = &text.as_bytes()[at..];
        at += rest.iter().position(|it| *it == b'\\' || !it.is_ascii())?;
        let c = text[at..].chars().next()?;
        if c == '\\' || is_hidden(c) {
            return Some(at);
        }
        at += c.len_utf8();
    }
}

/// Returns a text without the hidden characters within words; `None` if there are none.
fn without_hidden(text: &str) -> Option<JoinedText> {
    let is_word =
        |it: Option<char>| it.is_some_and(|c| c.is_alphanumeric() || c.is_ascii_graphic());
    let mut joined = JoinedText::default();
    let mut at = 0;
    let mut done = 0;
    while let Some(start) = next_hidden(text, done) {
        let rest = &text[start..];
        let rest = match rest.strip_prefix('\\') {
            // Markdown shows `ghp\_` without the backslash.
            Some(after) if after.starts_with(['_', '-']) => after,
            Some(after) => {
                done = text.len() - after.len();
                continue;
            }
            None => rest.trim_start_matches(is_hidden),
        };
        done = text.len() - rest.len();
        if is_word(text[..start].chars().next_back()) && is_word(rest.chars().next()) {
            joined.push(text, at..start);
            at = done;
        }
    }
    (at > 0).then(|| {
        joined.push(text, at..text.len());
        joined
    })
}

/// Returns the lines and cells that have a label, each after its label.
fn join_labels(rules: &CompiledSecretRules, text: &str) -> JoinedText {
    let mut joined = JoinedText::default();
    let mut heading: Option<&str> = None;
    let mut items: Vec<(usize, &str)> = Vec::new();
    let mut colon: Option<&str> = None;
    let mut table: Option<Vec<Option<&str>>> = None;
    let mut at = 0;
    for raw in text.split_inclusive('\n') {
        let start = at;
        at += raw.len();
        let line = raw.trim_end();
        let body = line.trim_start_matches([' ', '\t', '>']);
        if body.is_empty() || body.starts_with("```") || body.starts_with("~~~") {
            table = None;
            continue;
        }
        if body.starts_with('|') {
            let row = cells(body);
            join_cells(rules, text, &row, table.as_deref(), &mut joined);
            table.get_or_insert_with(|| row.iter().map(|it| label(rules, it)).collect());
        } else {
            table = None;
        }
        let indent = line.len() - body.len();
        let (is_item, words) = words(body);
        let is_heading = body.starts_with('#') || is_bold(body);
        while items.last().is_some_and(|it| it.0 >= indent) {
            items.pop();
        }
        let has_label = heading.is_some() || colon.is_some() || !items.is_empty();
        if !is_heading && has_label && may_be_value(words) {
            let parent = items.last().and_then(|it| label(rules, it.1));
            let from = start + line.len() - words.len();
            let mut before = None;
            for it in [heading, parent, colon].into_iter().flatten() {
                if before != Some(it) {
                    joined.push_labelled(it, text, from..start + line.len());
                }
                before = Some(it);
            }
        }
        if is_heading {
            heading = label(rules, words);
            items.clear();
        } else if is_item {
            items.push((indent, words));
        }
        colon = if words.ends_with([':', '：']) { label(rules, words) } else { None };
    }
    joined
}

/// Adds the cells of a row, after the head of their column and after the first cell.
fn join_cells(
    rules: &CompiledSecretRules,
    text: &str,
    row: &[&str],
    head: Option<&[Option<&str>]>,
    joined: &mut JoinedText,
) {
    let first = row.first().and_then(|it| label(rules, it));
    for (at, cell) in row.iter().enumerate() {
        let head = head.and_then(|it| it.get(at).copied().flatten());
        let labels = [head, first.filter(|_| at > 0)];
        if labels == [None, None] || !may_be_value(cell) {
            continue;
        }
        let from = cell.as_ptr() as usize - text.as_ptr() as usize;
        for it in labels.into_iter().flatten() {
            joined.push_labelled(it, text, from..from + cell.len());
        }
    }
}

/// Returns the end of a text that may name the value after it; `None` if it contains no keyword.
fn label<'a>(rules: &CompiledSecretRules, words: &'a str) -> Option<&'a str> {
    let words = words.trim_end_matches([':', '*', '_', '`', '#', ' ', '\t', '：']);
    let mut start = words.len().saturating_sub(LABEL_MAX);
    while !words.is_char_boundary(start) {
        start += 1;
    }
    let label = &words[start..];
    (!label.is_empty() && has_value_keyword(rules, label)).then_some(label)
}

/// Returns whether a line is a list item, and its text without list or heading marks.
fn words(body: &str) -> (bool, &str) {
    let plain = body.trim_start_matches('#').trim_start();
    if plain.len() < body.len() {
        return (false, plain);
    }
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let marker = if digits > 0 && digits < 10 && body[digits..].starts_with(['.', ')']) {
        digits + 1
    } else {
        usize::from(body.starts_with(['-', '*', '+']))
    };
    let after = &body[marker..];
    if marker > 0 && after.starts_with([' ', '\t']) {
        let after = after.trim_start();
        let task = ["[ ] ", "[x] ", "[X] "].iter().find_map(|it| after.strip_prefix(it));
        return (true, task.unwrap_or(after));
    }
    (false, body)
}

/// Returns the cells of a table row, trimmed.
fn cells(row: &str) -> Vec<&str> {
    let row = row.trim().trim_start_matches('|');
    let row = row.strip_suffix('|').unwrap_or(row);
    let mut cells = Vec::new();
    let mut from = 0;
    for (at, _) in row.match_indices('|') {
        if !row[..at].ends_with('\\') {
            cells.push(row[from..at].trim());
            from = at + 1;
        }
    }
    cells.push(row[from..].trim());
    cells
}

fn is_bold(body: &str) -> bool {
    let body = body.trim_end_matches(':');
    body.len() > 4 && body.starts_with("**") && body.ends_with("**")
}

/// Returns whether a line may contain a value. Most lines are sentences and are skipped.
fn may_be_value(words: &str) -> bool {
    words.len() >= VALUE_MIN && words.contains(|c: char| !c.is_alphabetic() && !" ,.;-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::super::SecretRules;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let rules = SecretRules::built_in();
        let found: Vec<&str> = rules.find(text).into_iter().map(|it| &text[it.range]).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn a_hidden_character_does_not_split_a_token() {
        let body = "G37LeXSyYV4g6snRoUYA4fXr6nzrvZcmT4a4";
        for hidden in ["\u{200b}", "\u{2060}", "\u{feff}", "\u{ad}", "\u{200d}\u{200b}"] {
            let token = format!("ghp_{hidden}{body}");
            check(&format!("use {token} for CI"), &[&token]);
            let token = format!("gh{hidden}p_{}{hidden}{}", &body[..9], &body[9..]);
            check(&format!("ü use {token} for CI"), &[&token]);
        }
        check("⚠\u{fe0f} the token \u{200b} is gone", &[]);
    }

    #[test]
    fn markdown_around_a_token_does_not_hide_it() {
        let token = "ghp_G37LeXSyYV4g6snRoUYA4fXr6nzrvZcmT4a4";
        for (before, after) in
            [("_", "_"), ("__", "__"), ("**", "**"), ("", "_prod"), ("deploy-", ""), ("ci_", ".")]
        {
            check(&format!("use {before}{token}{after} for CI"), &[token]);
        }
        let escaped = token.replace('_', "\\_");
        check(&format!("use {escaped} for CI"), &[&escaped]);
    }

    #[test]
    fn the_label_of_a_value_may_be_in_another_line() {
        check("## Staging password\n\n- tr0ub4dor8xK\n", &["tr0ub4dor8xK"]);
        check("## Staging password\n\ntr0ub4dor8xK\n", &["tr0ub4dor8xK"]);
        check("- Staging password\n  - tr0ub4dor8xK\n- tr0ub4dor9xK", &["tr0ub4dor8xK"]);
        check("- the password:\n\n      tr0ub4dor8xK\n\nRelease 4", &["tr0ub4dor8xK"]);
        check("db:\n  password:\n    vbgv8prmdAin\n", &["vbgv8prmdAin"]);
        check("**Password**\n```\ntr0ub4dor8xK\n```\n", &["tr0ub4dor8xK"]);
        check("## Password reset\n\n- done in v2\n- 14 users asked\n", &[]);
        check("## Password\n\n- hashed with argon2id now\n## Other\n- tr0ub4dor8xK", &[]);
        check("## Tokens\n\n- 128000 of 200000\n", &[]);
    }

    #[test]
    fn the_label_of_a_cell_is_its_column_or_the_first_cell_of_its_row() {
        let head = "| Host | Login | Password |\n|:--|---|--:|\n";
        check(&format!("{head}| nas | mara | tr0ub4dor8xK |\n"), &["tr0ub4dor8xK"]);
        check(&format!("{head}| nas | mara | `tr0ub\\|4dor8xK` |\n"), &["tr0ub\\|4dor8xK"]);
        check(&format!("{head}| nas | mara |\n\n| 密码 | tr0ub4dor8xK\n"), &["tr0ub4dor8xK"]);
        check("| What | Value |\n|---|---|\n| Password | tr0ub4dor8xK |\n", &["tr0ub4dor8xK"]);
        check("> | **Пароль** | tr0ub4dor8xK |\n", &["tr0ub4dor8xK"]);
        check(&format!("{head}| nas | mara2 | changed |\n\n| a | b | tr0ub4dor8xK |"), &[]);
        check("| Password | Users |\n|---|---|\n| reset | build_12_of_the_app |\n", &[]);
    }
}
