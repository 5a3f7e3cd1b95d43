//! The documentation says what the program does: reference pages are made from its own help and
//! schema, links lead somewhere, command lines that are shown exist, samples are what `demo` writes.
//!
//! `MEMOIRD_UPDATE_DOCS=1 cargo test --test it documentation` writes the reference pages again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;
use serde_json::Value;

use crate::support::{Root, files_below, write_file};

const UPDATE: &str = "MEMOIRD_UPDATE_DOCS";

/// Verbs that only a build with a feature has.
const OF_FEATURES: [&str; 2] = ["bundle", "worker"];

pub(crate) fn project(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns the Markdown files that people read, in order.
fn pages() -> Vec<PathBuf> {
    let mut found: Vec<_> =
        ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(project).into();
    for folder in ["docs/src", "integrations"] {
        files_below(&project(folder), &["md"], &mut found);
    }
    found.sort();
    found
}

/// Compares a generated page with the file, or writes the file.
fn check_page(relative: &str, text: &str) {
    let path = project(relative);
    if std::env::var_os(UPDATE).is_some() {
        return write_file(&path, text);
    }
    let present = fs::read_to_string(&path).unwrap_or_default();
    assert!(present == text, "{relative} differs from the program; {UPDATE}=1 writes it again");
}

/// The help pages of the program, by command line without the program's name.
struct Help(BTreeMap<String, String>);

impl Help {
    fn new() -> Self {
        let mut help = Self(BTreeMap::new());
        let root = Root::empty("nobody");
        let overview = root.run(&["--help"]).ok().stdout;
        let (verbs, _) = overview.split_once("\nGlobal options:\n").unwrap();
        for verb in verbs.lines().filter_map(listed_command).filter(|it| *it != "memoird") {
            help.add(&root, &[verb]);
        }
        help.0.insert(String::new(), overview);
        help
    }

    fn add(&mut self, root: &Root, command: &[&str]) {
        let text = root.run(&[command, &["--help"]].concat()).ok().stdout;
        let subcommands = text.split_once("\nCommands:\n").map_or("", |it| it.1);
        let subcommands = subcommands.split("\n\n").next().unwrap_or("");
        for subcommand in subcommands.lines().filter_map(listed_command).filter(|it| *it != "help")
        {
            self.add(root, &[command, &[subcommand]].concat());
        }
        self.0.insert(command.join(" "), text);
    }

    /// Returns the verbs with their help and that of their subcommands.
    fn verbs(&self) -> BTreeMap<&str, Vec<(&str, &str)>> {
        let mut verbs = BTreeMap::<&str, Vec<_>>::new();
        for (command, text) in self.0.iter().filter(|it| !it.0.is_empty()) {
            let verb = command.split(' ').next().unwrap();
            verbs.entry(verb).or_default().push((command.as_str(), text.as_str()));
        }
        verbs
    }

    /// Returns why a command line that is shown cannot be typed, if so.
    fn mistake(&self, words: &[&str]) -> Option<String> {
        let plain: Vec<_> = words.iter().take_while(|it| !it.starts_with('-')).copied().collect();
        let known = (0..=plain.len()).rev().find_map(|n| self.0.get(&plain[..n].join(" ")))?;
        let is_verb = plain.first().is_none_or(|it| self.0.contains_key(*it));
        if !is_verb {
            return Some(format!("there is no verb `{}`", plain[0]));
        }
        let unknown = words.iter().filter(|it| it.starts_with("--") && it.len() > 2).find(|it| {
            let name = it.split('=').next().unwrap();
            !known
                .split(|c: char| c.is_whitespace() || matches!(c, ',' | '`' | '[' | '=' | '.'))
                .any(|it| it == name)
        });
        unknown.map(|it| format!("`{}` has no option `{it}`", plain.join(" ")))
    }
}

/// Returns the command that a line of a help page lists.
fn listed_command(line: &str) -> Option<&str> {
    let line = line.strip_prefix("  ")?;
    line.split(' ').next().filter(|it| it.starts_with(|c: char| c.is_ascii_lowercase()))
}

#[test]
fn each_verb_has_a_page_with_its_help() {
    let help = Help::new();
    let summary = read(&project("docs/src/SUMMARY.md"));
    let mut expected = BTreeSet::new();
    for (verb, commands) in help.verbs() {
        let mut page = format!("# memoird {verb}\n\n[All verbs](../verbs.md)\n");
        for (command, text) in commands {
            if command != verb {
                write!(page, "\n## memoird {command}\n").unwrap();
            }
            write!(page, "\n```text\n{}\n```\n", text.trim_end()).unwrap();
        }
        check_page(&format!("docs/src/reference/cli/{verb}.md"), &page);
        assert!(summary.contains(&format!("(reference/cli/{verb}.md)")), "SUMMARY.md lacks {verb}");
        expected.insert(format!("{verb}.md"));
    }
    let present = fs::read_dir(project("docs/src/reference/cli")).unwrap();
    let present = present.map(|it| it.unwrap().file_name().into_string().unwrap());
    assert_eq!(present.collect::<BTreeSet<_>>(), expected, "pages of verbs");
    let overview = read(&project("docs/src/reference/verbs.md"));
    for verb in help.verbs().keys() {
        assert!(overview.contains(&format!("(cli/{verb}.md)")), "verbs.md lacks {verb}");
    }
}

#[test]
fn the_configuration_page_lists_each_key() {
    let schema = read(&project("schema/config.schema.json"));
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let mut page = "# Configuration keys\n\nAll keys of `config.yaml`, made from the schema that the program checks it against. [Configuration](../guides/configuration.md) explains where the file is and which source wins.\n".to_owned();
    let mut plain = Vec::new();
    for (name, key) in schema["properties"].as_object().unwrap() {
        let definition =
            definition(&schema, key["items"].as_object().map_or(key, |_| &key["items"]));
        let Some(keys) = definition["properties"].as_object() else {
            plain.push((name.clone(), key));
            continue;
        };
        write!(page, "\n## {name}\n\n{}\n\n", key["description"].as_str().unwrap()).unwrap();
        let is_list = key["items"].is_object();
        let prefix = if is_list { format!("{name}[]") } else { name.clone() };
        // Any section may appear in a root, too.
        let own = keys.iter().filter(|(name, _)| !is_list || schema["properties"][name].is_null());
        page.push_str(&table(
            &schema,
            own.map(|(key, it)| (format!("{prefix}.{key}"), it)).collect(),
        ));
        if is_list {
            page.push_str(
                "\nAny section of this page may also be here, to apply to that folder alone.\n",
            );
        }
    }
    let (intro, sections) = page.split_once("\n## ").unwrap();
    let page = format!("{intro}\n## Single keys\n\n{}\n## {sections}", table(&schema, plain));
    check_page("docs/src/reference/config.md", &page);
}

/// Returns the schema that `$ref` names, or the schema itself.
fn definition<'a>(schema: &'a Value, key: &'a Value) -> &'a Value {
    let reference = key["$ref"].as_str().and_then(|it| it.strip_prefix("#/$defs/"));
    reference.map_or(key, |name| &schema["$defs"][name])
}

fn table(schema: &Value, keys: Vec<(String, &Value)>) -> String {
    let mut rows = String::new();
    add_rows(schema, keys, &mut rows);
    format!("| key | values | default | what it is |\n|---|---|---|---|\n{rows}")
}

fn add_rows(schema: &Value, keys: Vec<(String, &Value)>, rows: &mut String) {
    for (path, key) in keys {
        let definition = definition(schema, key);
        if let Some(nested) = definition["properties"].as_object() {
            let defaults = &key["default"];
            for (name, it) in nested {
                let mut it = it.clone();
                if !defaults[name].is_null() {
                    it["default"] = defaults[name].clone();
                }
                add_rows(schema, vec![(format!("{path}.{name}"), &it)], rows);
            }
            continue;
        }
        let default = key.get("default").map_or(String::new(), |it| format!("`{it}`"));
        let what = key["description"].as_str().or(definition["description"].as_str()).unwrap_or("");
        let what = what.replace('\n', " ").replace('|', "\\|");
        writeln!(rows, "| `{path}` | {} | {default} | {what} |", values(schema, key)).unwrap();
    }
}

/// Returns the values that a key takes, in words.
fn values(schema: &Value, key: &Value) -> String {
    let key = definition(schema, key);
    if let Some(values) = key["enum"].as_array() {
        let values: Vec<_> = values.iter().map(|it| format!("`{}`", plain_value(it))).collect();
        return values.join(", ");
    }
    if let Some(parts) = key["anyOf"].as_array().or(key["oneOf"].as_array()) {
        let parts: Vec<_> = parts.iter().map(|it| values(schema, it)).collect();
        return parts.join(" or ");
    }
    if let Some(value) = key.get("const") {
        return format!("`{}`", plain_value(value));
    }
    let format = key["format"].as_str().unwrap_or("");
    let name = |kind: &str| match (kind, format) {
        ("string", "" | "name") => "text".to_owned(),
        ("string", format) => format.replace('-', " "),
        ("array", _) => format!("list of {}", values(schema, &key["items"])),
        ("integer", _) => range(key, "whole number"),
        ("number", _) => range(key, "number"),
        ("boolean", _) => "`true`, `false`".to_owned(),
        (kind, _) => kind.to_owned(),
    };
    match &key["type"] {
        Value::String(kind) => name(kind),
        Value::Array(kinds) => {
            kinds.iter().map(|it| name(it.as_str().unwrap())).collect::<Vec<_>>().join(" or ")
        }
        _ => String::new(),
    }
}

fn range(key: &Value, kind: &str) -> String {
    match (&key["minimum"], &key["maximum"]) {
        (Value::Null, Value::Null) => kind.to_owned(),
        (min, Value::Null) => format!("{kind}, at least {min}"),
        (Value::Null, max) => format!("{kind}, at most {max}"),
        (min, max) => format!("{kind}, {min} to {max}"),
    }
}

fn plain_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn links_lead_to_files_and_headings() {
    // In the text, or defined on a line of its own.
    let link = Regex::new(r"(?m)\]\(([^()\s]+)\)|^\[[^\]\n]+\]: (\S+)$").unwrap();
    let mut broken = Vec::new();
    for page in pages() {
        let text = without_code(&read(&page));
        let targets = link.captures_iter(&text).map(|it| it.get(1).or(it.get(2)).unwrap().as_str());
        for target in targets {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path =
                if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let found = path.exists()
                && (anchor.is_empty() || anchors(&read(&path)).iter().any(|it| it == anchor));
            if !found {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_book_lists_each_of_its_pages() {
    let summary = read(&project("docs/src/SUMMARY.md"));
    let book = project("docs/src");
    for page in pages().iter().filter_map(|it| it.strip_prefix(&book).ok()) {
        let name = page.to_str().unwrap();
        assert!(name == "SUMMARY.md" || summary.contains(&format!("({name})")), "{name}");
    }
}

#[test]
fn the_page_of_schemas_lists_each_file() {
    let page = read(&project("docs/src/reference/schemas.md"));
    for entry in fs::read_dir(project("schema")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(page.contains(&format!("| `{name}` |")), "schemas.md lacks {name}");
    }
}

/// Returns a page without what is in code blocks and code spans.
fn without_code(text: &str) -> String {
    let prose = outside_blocks(text);
    Regex::new("`[^`\n]*`").unwrap().replace_all(&prose, "``").into_owned()
}

fn outside_blocks(text: &str) -> String {
    let mut is_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// Returns the anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let prose = outside_blocks(text);
    let headings = prose.lines().filter(|it| it.starts_with('#'));
    let anchors = headings.map(|line| {
        let title = line.trim_start_matches('#').trim();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let nth = seen.entry(anchor.clone()).or_default();
        *nth += 1;
        if *nth == 1 { anchor } else { format!("{anchor}-{}", *nth - 1) }
    });
    anchors.collect()
}

#[test]
fn command_lines_that_are_shown_exist() {
    let help = Help::new();
    let span = Regex::new(r"`memoird ([^`\n]+)`").unwrap();
    let mut wrong = Vec::new();
    for page in pages().into_iter().filter(|it| !it.ends_with("CHANGELOG.md")) {
        let text = read(&page);
        let mut shown: Vec<String> = shell_lines(&text);
        shown.extend(span.captures_iter(&text).map(|it| it[1].to_owned()));
        for line in shown {
            let words: Vec<_> = line.split_whitespace().collect();
            // `VERB` and the like stand for any.
            if words
                .first()
                .is_some_and(|it| it.starts_with(|c: char| c.is_uppercase() || c == '…'))
            {
                continue;
            }
            if words.first().is_some_and(|it| OF_FEATURES.contains(it)) {
                continue;
            }
            if let Some(mistake) = help.mistake(&words) {
                wrong.push(format!("{}: memoird {line}: {mistake}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the calls of the program in blocks of shell commands, without its name and comments.
fn shell_lines(text: &str) -> Vec<String> {
    let mut calls = Vec::new();
    let mut is_shell = false;
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            is_shell = matches!(language, "sh" | "bash" | "console");
            continue;
        }
        let line = line.split(" #").next().unwrap();
        for part in line.split(&['|', ';', '&'][..]).filter(|_| is_shell) {
            let part = part.trim_start_matches(['$', ' ', '(']);
            calls.extend(
                part.strip_prefix("memoird ").map(|it| it.trim_end_matches(')').to_owned()),
            );
        }
    }
    calls
}

#[test]
fn the_samples_are_what_the_demo_writes() {
    let root = Root::empty("here");
    let mut demo = root.command(&["demo"]);
    // As a person calls it: with the defaults, and the day after the journal as its date.
    demo.env_remove("MEMOIRD_WISDOM_DIGEST").env_remove("MEMOIRD_NOW");
    root.finish(demo, &["demo"]).ok();
    let readme = read(&project("README.md"));
    let (_, samples) = readme.split_once("\n## What it writes\n").unwrap();
    let (samples, _) = samples.split_once("\n## Compared").unwrap();
    let written = ["memory/weekly/2026-W14.md", "WISDOM.md"]
        .map(|name| root.read(&format!("memoird-demo/{name}")));
    let mut blocks = samples.split("\n```").skip(1).step_by(2);
    for (name, written) in ["week", "wisdom"].into_iter().zip(written) {
        let block = blocks.next().unwrap().trim_start_matches("markdown\n");
        for line in block.lines() {
            assert!(written.lines().any(|it| it == line), "{name}: {line}\n\n{written}");
        }
    }
    let block = blocks.next().unwrap().strip_prefix("text\n$ cd memoird-demo\n").unwrap();
    let (call, printed) = block.split_once('\n').unwrap();
    let args: Vec<_> = call.trim_start_matches("$ memoird ").split(' ').collect();
    let traced = root.run(&[&["--root", "memoird-demo"], &args[..]].concat()).ok();
    assert_eq!(traced.stdout.trim_end(), printed, "{call}");

    let page = read(&project("docs/src/files.md"));
    let (_, sample) = page.split_once("as `memoird demo` writes it:\n\n```markdown\n").unwrap();
    let (sample, _) = sample.split_once("\n```").unwrap();
    assert_eq!(sample, root.read("memoird-demo/memory/weekly/2026-W14.md").trim_end(), "files.md");
}
