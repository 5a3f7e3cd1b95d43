//! What people read is plain English: words of the project's early dialect do not come back.

use std::{fs, path::Path};

use regex::Regex;

use crate::support::files_below;

/// Words that the early texts used in a sense of their own, as patterns, and what to write instead.
const AVOIDED: [(&str, &str); 12] = [
    (r"\b(stands?|stood)\b", "exists, holds, is, appears"),
    (r"\b(told|tells)\b", "reports, says, shows"),
    (r"\b(rests?|rested) on\b", "is derived from, depends on"),
    (r"\banew\b", "again"),
    (r"\bbeneath\b", "below, source"),
    (r"\b(lets?|letting) go of\b", "drops, releases"),
    (r"\b(is|are|was|were) said\b", "is reported"),
    (r"\b(brings?|brought) in\b", "adds, imports"),
    (r"\b(comes?|came) about\b", "happens, arises"),
    (r"\bfor who\b", "for those who"),
    (r"\bso many\b", "a number of, N"),
    (r"\bby which it is known\b", "its name, its identifier"),
];

/// Places where a word is used as everybody uses it: end of the file's name, and words around it.
const NORMAL_USE: [(&str, &str); 12] = [
    ("", "stands for"),
    ("", "stand for"),
    ("", "stands in for"),
    ("", "stand alone"),
    ("SECURITY.md", "told it to do"),
    ("", "told from"),
    ("", "told apart"),
    ("schema/mcp-tools.json", "\"beneath\""),
    // Texts of files and databases that exist.
    ("src/compaction/undo/refused_jobs.rs", "rests on what was taken back by undo"),
    ("src/session/continuation.rs", "as it stands now"),
    ("src/session/micro_compaction.rs", "The call stands above"),
    ("src/session/offline_summary.rs", "as it stood last"),
];

/// The parts of a line that people read: of code its comment and its longer string literals (short
/// ones are data), of YAML its comment (the rest are keys and words to look for), of a text all of it.
fn prose(line: &str, ending: &str) -> String {
    let trimmed = line.trim_start();
    match ending {
        "rs" if trimmed.starts_with("//") => return trimmed.to_owned(),
        "rs" => {}
        "yaml" => return line.split_once('#').map_or("", |it| it.1).to_owned(),
        _ => return line.to_owned(),
    }
    let mut parts = Vec::new();
    for (at, part) in line.split('"').enumerate() {
        if at % 2 == 1 {
            if part.split(' ').count() > 4 {
                parts.push(part);
            }
        } else if let Some((_, comment)) = part.split_once(" // ") {
            parts.push(comment);
        }
    }
    parts.join(" ")
}

/// Returns the lines that use an avoided word, as `file:line: word → better: text`.
fn dialect(name: &str, text: &str) -> Vec<String> {
    let patterns =
        AVOIDED.map(|(word, better)| (Regex::new(&format!("(?i){word}")).unwrap(), better));
    let ending = name.rsplit('.').next().unwrap();
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let prose = prose(line, ending);
        let normal = |at: std::ops::Range<usize>| {
            NORMAL_USE.iter().any(|(file, words)| {
                name.ends_with(file)
                    && prose
                        .match_indices(words)
                        .any(|(start, words)| start <= at.start && at.end <= start + words.len())
            })
        };
        for (pattern, better) in &patterns {
            if let Some(word) = pattern.find_iter(&prose).find(|it| !normal(it.range())) {
                let (number, line) = (number + 1, line.trim());
                lines.push(format!("{name}:{number}: {:?} → {better}: {line}", word.as_str()));
            }
        }
    }
    lines
}

#[test]
fn product_prose_uses_no_word_of_the_early_dialect() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for name in ["README.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md", "Cargo.toml"] {
        found.push(root.join(name));
    }
    files_below(&root.join("src"), &["rs"], &mut found);
    files_below(&root.join("docs"), &["md"], &mut found);
    files_below(&root.join("schema"), &["json", "sql"], &mut found);
    files_below(&root.join("systemd"), &["service", "timer"], &mut found);
    for entry in fs::read_dir(root.join("config")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            found.push(path);
        }
    }
    let mut lines = Vec::new();
    for path in found {
        let name = path.strip_prefix(root).unwrap().to_string_lossy();
        // Texts of attacks are other people's words.
        let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
        if is_test || name.ends_with("quarantine/poisons.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        lines.extend(dialect(&name, text.split("\n#[cfg(test)]\nmod ").next().unwrap()));
    }
    assert!(lines.is_empty(), "{} lines:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn comments_and_messages_are_prose_and_identifiers_are_not() {
    let cases = [
        ("a.rs", "// what stands in a file", 1),
        ("a.rs", "let told = stands();", 0),
        ("a.rs", "let x = \"told\"; // it stands for a name", 0),
        ("a.yaml", "told: [stands] # anew", 1),
        ("a.rs", "fail(\"the file was told to be gone\")", 1),
        ("a.md", "It rests on two lines, anew.", 2),
        ("a.md", "A standard, a bystander.", 0),
    ];
    for (name, line, expected) in cases {
        assert_eq!(dialect(name, line).len(), expected, "{line}");
    }
}
