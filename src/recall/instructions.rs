//! Instruction files of coding agents, parsed as the agents do: their lines, the files that they
//! include, and the files that a rule applies to.
//!
//! Pure: the caller finds and opens the files.

use regex::Regex;
use serde_yaml::Value;

use crate::memory::{
    frontmatter,
    markdown::{self, LineKind},
};

/// How deep files may include others.
pub const INCLUDE_DEPTH_MAX: usize = 5;

/// An instruction file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// Its lines, without frontmatter and comments.
    pub lines: Vec<String>,
    /// The paths that it includes, without the `@`.
    pub includes: Vec<String>,
    /// The files that it applies to; all if it names none.
    pub paths: Option<Vec<String>>,
}

impl Instructions {
    /// Parses a file.
    pub fn parse(text: &str) -> Self {
        let text = text.trim_start_matches('\u{feff}');
        let split = frontmatter::split(text);
        let paths = split.yaml.and_then(path_globs);
        let body = split.body(text);
        let mut instructions = Self { paths, ..Self::default() };
        let lines: Vec<&str> = body.lines().collect();
        let kinds = markdown::classify_lines(lines.iter().copied());
        let mut in_comment = false;
        for (at, (line, kind)) in lines.iter().zip(&kinds).enumerate() {
            let is_code = matches!(kind, LineKind::Fence | LineKind::Code);
            if is_code && !in_comment {
                instructions.lines.push((*line).to_owned());
                continue;
            }
            let closes_later = || lines[at + 1..].iter().any(|it| it.contains("-->"));
            let said = strip_comments(line, &mut in_comment, &closes_later);
            if said.trim().is_empty() && !line.trim().is_empty() {
                continue;
            }
            collect_includes(&said, &mut instructions.includes);
            instructions.lines.push(said);
        }
        let is_blank = |it: &String| it.trim().is_empty();
        instructions.lines.dedup_by(|a, b| is_blank(a) && is_blank(b));
        while instructions.lines.last().is_some_and(is_blank) {
            instructions.lines.pop();
        }
        if instructions.lines.first().is_some_and(is_blank) {
            instructions.lines.remove(0);
        }
        instructions
    }

    /// Returns whether it applies to one of these files, named relative to the project.
    pub fn applies_to(&self, files: &[String]) -> bool {
        self.paths.as_ref().is_none_or(|globs| {
            let globs: Vec<Regex> = globs.iter().filter_map(|it| glob_to_regex(it)).collect();
            files.iter().any(|file| globs.iter().any(|it| it.is_match(file)))
        })
    }
}

/// Returns the globs under `paths:`, a list or one text with commas.
fn path_globs(yaml: &str) -> Option<Vec<String>> {
    let map = frontmatter::parse(yaml, frontmatter::YAML_BYTES_MAX).ok()?;
    let globs = match map.get("paths")? {
        Value::String(text) => split_outside_braces(text),
        Value::Sequence(list) => {
            list.iter().filter_map(Value::as_str).flat_map(split_outside_braces).collect()
        }
        _ => return None,
    };
    Some(globs)
}

fn split_outside_braces(text: &str) -> Vec<String> {
    let mut depth = 0_i32;
    let parts = text.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth <= 0
    });
    parts.map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// Translates a glob: `**` for folders of any depth, `*` and `?` within a name, `{a,b}` for either.
fn glob_to_regex(text: &str) -> Option<Regex> {
    let text = text.strip_prefix("./").unwrap_or(text).trim_start_matches('/');
    let mut pattern = String::from("^");
    let mut depth = 0_u32;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (taken, piece) = match c {
            _ if rest.starts_with("**/") => (3, "(?:.*/)?".to_owned()),
            _ if rest.starts_with("**") => (2, ".*".to_owned()),
            '*' => (1, "[^/]*".to_owned()),
            '?' => (1, "[^/]".to_owned()),
            '{' => {
                depth += 1;
                (1, "(?:".to_owned())
            }
            '}' if depth > 0 => {
                depth -= 1;
                (1, ")".to_owned())
            }
            ',' if depth > 0 => (1, "|".to_owned()),
            c => (c.len_utf8(), regex::escape(&c.to_string())),
        };
        pattern.push_str(&piece);
        rest = &rest[taken..];
    }
    pattern.push('$');
    // An invalid glob applies to no file.
    Regex::new(&pattern).ok()
}

/// Returns a line without its comments. A comment that is never closed is text.
fn strip_comments(line: &str, in_comment: &mut bool, closes_later: &dyn Fn() -> bool) -> String {
    let mut text = String::new();
    let mut rest = line;
    loop {
        if *in_comment {
            let Some((_, behind)) = rest.split_once("-->") else { return text };
            *in_comment = false;
            rest = behind;
        }
        let Some(at) = find_outside_code(rest, "<!--") else {
            text.push_str(rest);
            return text;
        };
        let behind = &rest[at + 4..];
        if !behind.contains("-->") && !closes_later() {
            text.push_str(rest);
            return text;
        }
        text.push_str(&rest[..at]);
        *in_comment = true;
        rest = behind;
    }
}

/// Returns the position of a text in a line, outside of code between backticks.
fn find_outside_code(line: &str, needle: &str) -> Option<usize> {
    let code = code_spans(line);
    line.match_indices(needle).map(|it| it.0).find(|at| !code.iter().any(|it| it.contains(at)))
}

/// Returns the ranges of code between backticks.
fn code_spans(line: &str) -> Vec<std::ops::Range<usize>> {
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(start) = line[at..].find('`').map(|it| at + it) {
        let ticks = line[start..].bytes().take_while(|it| *it == b'`').count();
        let fence = &line[start..start + ticks];
        let mut from = start + ticks;
        at = from;
        while let Some(end) = line[from..].find(fence).map(|it| from + it) {
            let run = line[end..].bytes().take_while(|it| *it == b'`').count();
            from = end + run;
            if run == ticks {
                spans.push(start..from);
                at = from;
                break;
            }
        }
    }
    spans
}

/// Adds the paths that a line includes: `@` at the start of a word, outside of code.
fn collect_includes(line: &str, found: &mut Vec<String>) {
    let code = code_spans(line);
    for (at, _) in line.match_indices('@') {
        let is_start = line[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(');
        if !is_start || code.iter().any(|it| it.contains(&at)) {
            continue;
        }
        let word: String = line[at + 1..].chars().take_while(|c| !c.is_whitespace()).collect();
        let path = word.trim_end_matches(['.', ',', ';', ':', ')', '!', '?', '"', '\'']);
        let starts = |c: char| c.is_alphanumeric() || matches!(c, '.' | '~' | '/' | '_');
        let is_path = path.chars().next().is_some_and(starts) && path.contains(['.', '/']);
        if is_path && !found.iter().any(|it| it == path) {
            found.push(path.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_removed_and_code_stays() {
        let text = "\u{feff}# A\n<!-- for people\nonly -->\n\nuse `<!-- x -->` so <!-- no --> yes\n\n\n```html\n<!-- code @./no.md -->\n```\nend <!-- open\n";
        let instructions = Instructions::parse(text);
        assert_eq!(
            instructions.lines,
            [
                "# A",
                "",
                "use `<!-- x -->` so  yes",
                "",
                "```html",
                "<!-- code @./no.md -->",
                "```",
                "end <!-- open"
            ]
        );
        assert_eq!(instructions.includes, Vec::<String>::new());
    }

    #[test]
    fn an_include_is_at_the_start_of_a_word_outside_of_code() {
        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            assert_eq!(Instructions::parse(text).includes, expected);
        }
        check("see @./a.md, @~/b.md and (@/c/d.md)", &["./a.md", "~/b.md", "/c/d.md"]);
        check("@docs/x.md.\n- @docs/x.md", &["docs/x.md"]);
        check("`@./a.md` ``@b.md ` `` @c.md", &["c.md"]);
        check("```\n@./a.md\n```\n<!-- @./b.md -->", &[]);
        check("mail ada@example.org, ask @ada, a lone @", &[]);
    }

    #[test]
    fn a_rule_applies_to_the_files_that_it_names() {
        #[track_caller]
        fn check(paths: &str, file: &str, expected: bool) {
            let text = format!("---\npaths: {paths}\n---\nrule\n");
            assert_eq!(Instructions::parse(&text).applies_to(&[file.to_owned()]), expected);
        }
        check("src/**/*.rs", "src/main.rs", true);
        check("src/**/*.rs", "src/a/b.rs", true);
        check("src/*.rs", "src/a/b.rs", false);
        check("'**/*.{ts,tsx}, docs/**'", "web/a.tsx", true);
        check("'**/*.{ts,tsx}, docs/**'", "docs/a/b.md", true);
        check("['a?.md', \"[x].md\"]", "ab.md", true);
        check("['a?.md', \"[x].md\"]", "[x].md", true);
        check("['a?.md', \"[x].md\"]", "x.md", false);
        check("'{'", "a", false);
        assert!(Instructions::parse("rule\n").applies_to(&[]));
    }
}
