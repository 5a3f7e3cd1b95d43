//! The files that a client may list, read, and subscribe to: WISDOM.md, the index of memories, weeks
//! and months; by template also days, memories, and session records.

use rmcp::model::{Annotations, MetaObject, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use super::{page_limit, reads::date_from_text, requests::MemoryOwner, service::ServedFolder};
use crate::{
    memory::period::{Grain, Period},
    operations::{
        error::{CommandError, CommandResult},
        show,
        workspace::MemoryRoot,
    },
    recall::framing::NOTICE,
};

pub(super) const RESOURCES_PER_PAGE: usize = 100;
const SCHEME: &str = "memoird://";
const MARKDOWN: &str = "text/markdown";

/// Stops listing a folder after this many files.
const FILES_MAX: usize = 20_000;

/// Returns the listed resources: WISDOM.md and the index first, then months and weeks, the newest
/// first.
pub(super) fn list(folder: &ServedFolder) -> Vec<Resource> {
    let mut all = Vec::new();
    let standing = |root: &MemoryRoot, path: &str| root.vault.layout().full(path).is_file();
    let mut add = |root: &MemoryRoot, [place, whose]: [&str; 2], priority: f32| {
        let layout = root.vault.layout();
        let of_both = [
            (layout.wisdom(), "wisdom", "WISDOM.md", "What lasts"),
            (layout.index(), "memories", "MEMORY.md", "Index of typed memories"),
        ];
        for (path, name, file, title) in of_both {
            if standing(root, &path) {
                let name = format!("{place}{name}");
                let title = format!("{title}{whose}");
                all.push(resource(&name, file, &title).with_annotations(with_priority(priority)));
            }
        }
    };
    add(&folder.agent, ["", ""], 1.0);
    if let Some(person) = &folder.person {
        add(person, ["person/", " about the person"], 0.9);
    }
    let month = |it: &Period| resource(&format!("month/{it}"), &format!("{it}.md"), "A month");
    let week = |it: &Period| resource(&format!("week/{it}"), &format!("{it}.md"), "A week");
    let months = summary_periods(&folder.agent, Grain::Month);
    all.extend(months.iter().map(|it| month(it).with_annotations(with_priority(0.5))));
    let weeks = summary_periods(&folder.agent, Grain::Week);
    all.extend(weeks.iter().map(|it| week(it).with_annotations(with_priority(0.4))));
    all
}

fn with_priority(priority: f32) -> Annotations {
    Annotations::default().with_priority(priority)
}

fn resource(place: &str, name: &str, title: &str) -> Resource {
    Resource::new(format!("{SCHEME}{place}"), name)
        .with_title(title)
        .with_mime_type(MARKDOWN)
        .with_description(NOTICE)
}

/// Returns the periods of a grain that have a file, the newest first.
pub(super) fn summary_periods(root: &MemoryRoot, grain: Grain) -> Vec<Period> {
    let layout = root.vault.layout();
    let (paths, _) = root.vault.files_below(&layout.summary_dir(grain), FILES_MAX);
    let period = |path: &String| {
        let period = path.rsplit('/').next()?.strip_suffix(".md")?.parse::<Period>().ok()?;
        (period.grain() == grain && layout.summary(period) == *path).then_some(period)
    };
    let mut all: Vec<Period> = paths.iter().filter_map(period).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    [
        ("day/{date}", "day", "The log of a day (2026-04-02)"),
        ("week/{week}", "week", "The file of an ISO week (2026-W14)"),
        ("month/{month}", "month", "The file of a month (2026-04)"),
        ("memory/{name}", "memory", "A typed memory, by its name"),
        ("session/{id}", "session", "The record of a session (CMEM-20260402-101500)"),
    ]
    .map(|(place, name, title)| {
        ResourceTemplate::new(format!("{SCHEME}{place}"), name)
            .with_title(title)
            .with_description(NOTICE)
            .with_mime_type(MARKDOWN)
    })
    .to_vec()
}

fn resolve_uri<'a>(folder: &'a ServedFolder, uri: &str) -> CommandResult<(&'a MemoryRoot, String)> {
    let shown: String = uri.chars().take(120).collect();
    let unknown = || {
        let what = format!("`{shown}` is not the URI of a resource");
        CommandError::usage(what)
            .hint("resources/list and resources/templates/list return the valid URIs")
    };
    let place = uri.strip_prefix(SCHEME).ok_or_else(unknown)?;
    let (root, place) = match place.strip_prefix("person/") {
        Some(place) => (folder.root_of(MemoryOwner::Person)?, place),
        None => (&folder.agent, place),
    };
    let layout = root.vault.layout();
    let file = match place.split_once('/') {
        None if place == "wisdom" => layout.wisdom(),
        None if place == "memories" => layout.index(),
        Some(("day" | "week" | "month" | "memory" | "session", name))
            if !name.is_empty() && !name.contains(['/', '\\', '%', '\0']) && name != ".." =>
        {
            name.to_owned()
        }
        _ => return Err(unknown()),
    };
    Ok((root, file))
}

/// Returns the path of a URI's file relative to its root, whether or not it exists.
pub(super) fn path_of_uri(folder: &ServedFolder, uri: &str) -> Option<std::path::PathBuf> {
    let (root, file) = resolve_uri(folder, uri).ok()?;
    let (path, _) = root.resolve_file(&folder.call.environment, &file).ok()?;
    Some(root.vault.layout().full(&path))
}

pub(super) fn read(folder: &ServedFolder, uri: &str) -> CommandResult<ResourceContents> {
    let (root, file) = resolve_uri(folder, uri)?;
    let (path, handed, _) = show::sanitized_at(&folder.call, root, &file, None)?;
    let origin = handed.note.origin;
    let kind = root.vault.layout().kind_of(&path);
    let text = handed.marked_text();
    let date = handed.note.date.clone().or_else(|| date_from_text(kind, &text));
    let lines = page_limit::cut_lines(&text, 1, usize::MAX, page_limit::RESOURCE_BYTES_MAX);
    let of = date.as_ref().map_or(String::new(), |it| format!(" of {it}"));
    let rest = match lines.all - lines.to {
        0 => String::new(),
        left => format!(
            "\n[{left} lines are left out: memory_read {{\"file\": \"{path}\", \"from\": {}}}]\n",
            lines.to + 1
        ),
    };
    let head = format!("[{path}: a note{of}, origin {origin}. {NOTICE}]\n\n");
    let text = head + &lines.text + &rest;
    let mut meta = serde_json::Map::new();
    meta.insert("memoird/note".to_owned(), {
        json!({ "path": path, "date": date, "origin": origin, "notice": NOTICE })
    });
    Ok(ResourceContents::text(text, uri).with_mime_type(MARKDOWN).with_meta(MetaObject(meta)))
}
