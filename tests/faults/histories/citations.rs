//! Checks that each item of the generated files cites lines that say what it says.

use std::collections::BTreeSet;

use memoird::internals::memory::{
    address::Address,
    item::Item,
    joined,
    wisdom::{WisdomEntryMeta, WisdomFile},
};

use super::folder::{is_generated, numbers};
use crate::{files::Files, oracle::record_path};

/// Numbers of lines from here on say that the source is gone.
const REMOVED: usize = 10_000_000;

/// A cited line: the name of the file, the number, and the short hash if recorded.
type CitedLine = (String, usize, Option<String>);

/// Checks all generated files. Of `mixed` ones, what is no person's.
pub(super) fn check(files: &Files, mixed: &BTreeSet<String>) -> Result<(), String> {
    for (name, text) in files.iter().filter(|it| is_generated(it.0)) {
        let items = if name == "WISDOM.md" {
            wisdom_entries(text, files.get(".WISDOM.json").map(String::as_str))
        } else if name.contains("ly/") {
            bullets(text)
        } else {
            vec![memory(text)]
        };
        let record = files.get(&record_path(name)).filter(|_| mixed.contains(name));
        let is_listed = |words: &str| {
            let item = Item::parse(words.trim_start_matches("- "));
            record.is_none_or(|it| it.contains(&item.hash()))
        };
        for (words, cited) in items.into_iter().filter(|it| is_listed(&it.0)) {
            check_item(files, &words, &cited)
                .map_err(|it| format!("{name}: `{words}`: {it}\n{}", show(files, name, &cited)))?;
        }
    }
    Ok(())
}

fn show(files: &Files, name: &str, cited: &[CitedLine]) -> String {
    let numbered = |name: &str| {
        let lines = files.get(name).map_or("", |it| it).lines();
        let lines = lines.zip(1..).map(|(line, number)| format!("{number}: {line}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let stems: BTreeSet<&String> = cited.iter().map(|it| &it.0).collect();
    let sources = stems.into_iter().map(|it| path_of(it));
    let all = std::iter::once(name.to_owned()).chain(sources);
    all.map(|it| format!("{it}\n{}", numbered(&it))).collect::<Vec<_>>().join("\n")
}

fn check_item(files: &Files, words: &str, cited: &[CitedLine]) -> Result<(), String> {
    let mut said = BTreeSet::new();
    let mut is_gone = cited.is_empty();
    for (stem, number, hash) in cited {
        if *number >= REMOVED {
            is_gone = true;
            continue;
        }
        let Some(text) = files.get(&path_of(stem)) else {
            is_gone = true;
            continue;
        };
        let line = text.lines().nth(number - 1).unwrap_or_default();
        said.extend(numbers(line, 't'));
        if let Some(hash) = hash
            && stem.len() == 10
            && blake3::hash(line.as_bytes()).to_hex()[..4] != **hash
        {
            return Err(format!("{stem}:{number} is another line: `{line}`"));
        }
    }
    let mut missing = numbers(words, 't');
    missing.retain(|it| !said.contains(it));
    if missing.is_empty() || is_gone {
        return Ok(());
    }
    Err(format!("no line of {cited:?} says {missing:?}"))
}

/// Returns the file that a citation names.
fn path_of(stem: &str) -> String {
    let folder = match stem.len() {
        7 => "monthly/",
        8 => "weekly/",
        _ => "",
    };
    format!("memory/{folder}{stem}.md")
}

/// Reads a citation such as `2026-03-02:3,5-7; 2026-03-04:2`.
fn lines_of(citation: &str, separator: &str) -> Option<Vec<CitedLine>> {
    let mut found = Vec::new();
    for part in citation.split(separator) {
        let (stem, lines) = part.trim().split_once(':')?;
        if !stem.starts_with("20") {
            return None;
        }
        for range in lines.split(',') {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
            found.extend((from..=to).map(|it| (stem.to_owned(), it, None)));
        }
    }
    Some(found)
}

fn bullets(text: &str) -> Vec<(String, Vec<CitedLine>)> {
    let bullets = text.lines().filter(|it| it.starts_with("- ") && it.ends_with(']'));
    let cut = |line: &str| {
        let (words, citation) = line.rsplit_once(" [")?;
        Some((words.to_owned(), lines_of(citation.trim_end_matches(']'), ";")?))
    };
    bullets.filter_map(cut).collect()
}

fn memory(text: &str) -> (String, Vec<CitedLine>) {
    let (head, body) = text[4..].split_once("\n---\n").unwrap_or_default();
    let sources = head.lines().find_map(|it| it.strip_prefix("sources: ["));
    let sources = sources.and_then(|it| it.strip_suffix(']')).unwrap_or_default();
    let source = |it: &str| {
        let (address, hash) = it.trim().trim_matches(['"', '\'']).split_once('#')?;
        let (stem, number, _) = lines_of(address, ";")?.pop()?;
        Some((stem, number, Some(hash.to_owned())))
    };
    (body.to_owned(), sources.split(',').filter_map(source).collect())
}

fn wisdom_entries(text: &str, record: Option<&str>) -> Vec<(String, Vec<CitedLine>)> {
    let file = WisdomFile::parse(&joined::join(text, record));
    let entries = file.entries().filter_map(|it| Some((it.raw.clone(), it.meta.as_ref()?)));
    let cited = |meta: &WisdomEntryMeta| -> Vec<CitedLine> {
        let line = |at: Address| {
            let hash = meta.lines.get(&at).cloned();
            (at.stem.to_string(), usize::try_from(at.line).unwrap(), hash)
        };
        meta.sources.addresses().map(line).collect()
    };
    entries.map(|(words, meta)| (words, cited(meta))).collect()
}
