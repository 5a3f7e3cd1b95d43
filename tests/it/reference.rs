//! Reference pages that people wrote, compared with the program: exit codes, environment variables, and the form of
//! the files.

use std::{collections::BTreeSet, fs, path::PathBuf};

use memoird::internals::{
    config::root::FOLDER_FORMAT,
    memory::{
        address::Citation,
        item::SummarySection,
        log::{DailyLog, TextOrigin},
        typed::MemoryType,
        wisdom::WisdomSection,
    },
    store::fs::layout::{FileKind, Layout},
};
use regex::Regex;
use serde_json::Value;

use crate::{
    documentation::{project, read},
    support::{Root, files_below},
};

fn page(name: &str) -> String {
    read(&project(&format!("docs/src/reference/{name}.md")))
}

/// Returns the rows of the tables of a page, without their heads.
fn rows(page: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|it| it.trim().to_owned()).collect()
    };
    let lines: Vec<&str> = page.lines().collect();
    let is_row = |at: &usize| {
        let next = lines.get(at + 1).is_some_and(|it| it.starts_with("|---"));
        lines[*at].starts_with('|') && !lines[*at].starts_with("|---") && !next
    };
    (0..lines.len()).filter(is_row).map(|at| cells(lines[at])).collect()
}

/// Returns the code spans of a text.
fn code_spans(text: &str) -> Vec<String> {
    let span = Regex::new("`([^`\n]+)`").unwrap();
    span.captures_iter(text).map(|it| it[1].to_owned()).collect()
}

fn set<T: Into<String>>(names: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    names.into_iter().map(Into::into).collect()
}

#[test]
fn the_page_of_exit_codes_lists_those_of_the_program() {
    let root = Root::empty("nobody");
    let help = root.run(&["--help"]).ok().stdout;
    // The lines are wrapped.
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, codes) = help.split_once("Exit codes: ").unwrap();
    let code = Regex::new(r"(?:^|, )(\d+) ").unwrap();
    let mut expected = set(code.captures_iter(codes).map(|it| it[1].to_owned()));
    assert_eq!(expected.len(), 8, "{codes}");
    // With this one the daemon asks the service manager for a restart.
    let daemon = read(&project("src/commands/run.rs"));
    let restart = Regex::new(r"EXIT_RESTART: u8 = (\d+);").unwrap();
    expected.insert(restart.captures(&daemon).unwrap()[1].to_owned());
    let page = page("exit-codes");
    assert_eq!(set(rows(&page).into_iter().map(|it| it[0].clone())), expected);

    let schema = read(&project("schema/error.schema.json"));
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let keys = schema["required"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    let (_, listed) = page.split_once("one JSON object on stderr: ").unwrap();
    assert_eq!(set(code_spans(listed)), set(keys));
}

/// Strings in the form of a variable that are none.
const NO_VARIABLES: [&str; 3] = ["NO_REPLY", "D3D_PRESENT_TOKEN_0", "ACCOUNT_NAME"];

/// Returns the names of environment variables in the sources, without those that only unit tests set.
fn variables_in_sources() -> BTreeSet<String> {
    // In capitals with an underscore, or any name that is read.
    let name = Regex::new(r#""([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)""#).unwrap();
    let reads = Regex::new(r#"(?:var|var_os|variable)\(\s*"([A-Z][A-Z0-9_]*)""#).unwrap();
    let by_compiler = Regex::new(r#"env!\(\s*"[A-Z_]+""#).unwrap();
    let mut files: Vec<PathBuf> = Vec::new();
    files_below(&project("src"), &["rs"], &mut files);
    let mut found = BTreeSet::new();
    for file in files.iter().filter(|it| !it.ends_with("tests.rs")) {
        let text = fs::read_to_string(file).unwrap();
        let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap();
        let code = by_compiler.replace_all(code, "");
        for pattern in [&name, &reads] {
            found.extend(pattern.captures_iter(&code).map(|it| it[1].to_owned()));
        }
    }
    found.retain(|it| !NO_VARIABLES.contains(&&it[..]));
    found
}

#[test]
fn the_page_of_the_environment_lists_each_variable() {
    let page = page("environment");
    let name = Regex::new(r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$").unwrap();
    let spans = code_spans(&page).into_iter();
    let spans = spans.map(|it| it.split('=').next().unwrap().to_owned());
    let listed: BTreeSet<String> = spans.filter(|it| name.is_match(it)).collect();
    let in_sources = variables_in_sources();
    let missing: Vec<_> = in_sources.difference(&listed).collect();
    assert!(missing.is_empty(), "environment.md lacks {missing:?}");

    // A variable that nothing reads is listed by mistake.
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in ["src", "tests", "benches"] {
        files_below(&project(folder), &["rs"], &mut files);
    }
    let all: String = files.iter().map(|it| read(it)).collect();
    // Read by libraries, or an example of its kind.
    let elsewhere = [
        "AWS_REGION",
        "XDG_STATE_HOME",
        "MEMOIRD_COMPACTION_WEEKLY_RATIO",
        "MEMOIRD_SECTION_KEY",
        "MEMOIRD_ENGINE",
    ];
    let unread =
        |it: &&String| !all.contains(&format!("\"{it}\"")) && !elsewhere.contains(&&it[..]);
    let unread: Vec<_> = listed.iter().filter(unread).collect();
    assert!(unread.is_empty(), "nothing reads {unread:?}");
}

#[test]
fn the_page_of_the_file_format_names_files_as_the_program_does() {
    let page = page("file-format");
    let layout = Layout::new("/agent", "memory");
    let (_, names) = page.split_once("\n## Names\n").unwrap();
    let (names, rest) = names.split_once("\n## Frontmatter\n").unwrap();
    let mut checked = 0;
    let mut prefixes = BTreeSet::new();
    for row in rows(names) {
        let kind = match &row[1][..] {
            "a daily log" => FileKind::Log,
            "a week, by ISO 8601" => FileKind::Weekly,
            "a month" => FileKind::Monthly,
            "a typed memory" => FileKind::Memory,
            "the record of a session" => FileKind::Session,
            "wisdom" => FileKind::Wisdom,
            it if it.starts_with("the index of the typed memories") => FileKind::Index,
            _ => continue,
        };
        for name in code_spans(&row[0]) {
            if kind == FileKind::Memory {
                let name = name.trim_start_matches("memory/");
                prefixes.insert(name.split('_').next().unwrap().to_owned());
            }
            let name = name.replace('…', "x");
            // A cell with several names gives the folder once.
            let is_whole = name.contains('/') || kind == FileKind::Wisdom;
            let path = if is_whole { name } else { format!("memory/{name}") };
            assert_eq!(layout.kind_of(&path), Some(kind), "{path}");
            checked += 1;
        }
    }
    assert_eq!(checked, 12);
    assert_eq!(prefixes, set(MemoryType::ALL.map(MemoryType::name)));
    assert_eq!(
        layout.hidden_path("memory/weekly/2026-W14.md").as_deref(),
        Some("memory/weekly/.2026-W14.json")
    );
    assert!(names.contains("`.NAME.json` beside `NAME.md`") && names.contains(".decisions.jsonl"));

    let (_, citations) = rest.split_once("\n## Citations\n").unwrap();
    let (citations, _) = citations.split_once("\n## ").unwrap();
    let samples = code_spans(citations);
    let samples = samples.iter().filter(|it| it.contains(':') && !it.starts_with("date"));
    let samples: Vec<&str> = samples.map(|it| it.trim_matches(['[', ']'])).collect();
    assert_eq!(samples.len(), 3, "{samples:?}");
    for sample in samples {
        let citation: Citation = sample.parse().unwrap_or_else(|e| panic!("{sample}: {e}"));
        assert_eq!(citation.to_string(), sample);
    }
    let format = format!("`format: {FOLDER_FORMAT}` in `memoird.yaml` names");
    assert!(page.contains(&format), "the page names another format than {FOLDER_FORMAT}");
}

/// Returns the keys of the frontmatter of a file.
fn keys_of(text: &str) -> BTreeSet<String> {
    let yaml = text.strip_prefix("---\n").and_then(|it| it.split_once("\n---\n")).unwrap().0;
    let keys = yaml.lines().filter(|it| !it.starts_with([' ', '-']));
    set(keys.filter_map(|it| it.split_once(':')).map(|it| it.0))
}

#[test]
fn the_page_of_the_file_format_lists_the_keys_and_headings_of_the_files() {
    let root = Root::new("mara");
    root.run_with_digest(&["compact"]).ok();
    let page = page("file-format");
    let (_, keys) = page.split_once("\n## Frontmatter\n").unwrap();
    let (keys, rest) = keys.split_once("\n## Citations\n").unwrap();
    let (_, headings) = rest.split_once("\n## Headings\n").unwrap();
    let rows_of_keys = rows(keys);
    let cell = |kind: &str| {
        let row = rows_of_keys.iter().find(|it| it[0] == kind);
        row.unwrap_or_else(|| panic!("{kind}: {keys}"))[1].clone()
    };
    let origins = cell("log");
    let origins: Vec<String> = code_spans(&origins)
        .iter()
        .map(|it| it.trim_start_matches("origin: ").to_owned())
        .collect();
    let all = [TextOrigin::Human, TextOrigin::Agent, TextOrigin::External];
    assert_eq!(set(origins.clone()), set(all.map(TextOrigin::name)));
    for origin in origins {
        let text = format!("---\norigin: {origin}\n---\n- a\n");
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
        assert_eq!(log.origin.map(TextOrigin::name), Some(&origin[..]));
    }
    for (kind, path) in
        [("weekly", "memory/weekly/2026-W14.md"), ("monthly", "memory/monthly/2026-03.md")]
    {
        let text = root.read(path);
        assert!(
            text.contains(&format!("\ntype: {kind}\n")) && text.starts_with("---\ntype: "),
            "{text}"
        );
        // The values of the first key are listed with it.
        let listed = cell("week, month").replace("type: ", "").replacen('`', "`type` `", 1);
        let mut expected = keys_of(&text);
        expected.extend(["weekly", "monthly"].map(str::to_owned));
        assert_eq!(set(code_spans(&listed)), expected, "{path}");
    }
    let of_memories = cell("typed memory");
    let (own, types) = of_memories.split_once('(').unwrap();
    let memory = root.files().into_keys().find(|it| it.starts_with("memory/feedback_")).unwrap();
    assert_eq!(keys_of(&root.read(&memory)), set(code_spans(own)));
    assert_eq!(set(code_spans(types)), set(MemoryType::ALL.map(MemoryType::name)));

    for titles in [
        SummarySection::WEEKLY.map(SummarySection::title).join(", "),
        SummarySection::MONTHLY.map(SummarySection::title).join(", "),
        WisdomSection::ALL.map(WisdomSection::title).join(", "),
    ] {
        assert!(headings.contains(&titles), "{titles}: {headings}");
    }
}
