//! A memory file as it is now, and its versions side by side.

use maud::{Markup, html};

use super::{age, memory_file, or_error, page_of_file};
use crate::{
    memory::{
        joined,
        typed::{MemoryType, TypedMemory},
    },
    operations::{
        error::{CommandError, CommandResult},
        history::HistoryReader,
        workspace::no_such_file,
    },
    recall::{
        framing::sanitize_line,
        history::{FileHistory, FileVersion},
    },
    store::db::lineage::history::VersionId,
    web::{
        address::PageAddress,
        context::{Fields, PageContext},
        layout::PageContent,
        markdown, word_diff,
    },
};

/// How many versions are listed.
const VERSIONS_MAX: usize = 100;

pub(super) fn render(context: &PageContext, path: &str) -> CommandResult<PageContent> {
    let path = memory_file(context, path)?;
    let file = context.file(path)?.ok_or_else(|| no_such_file(path))?;
    let name = path.rsplit('/').next().unwrap_or(path);
    let memory = MemoryType::of_file_name(name.as_ref())
        .and_then(|_| context.root.vault.read_text(path).ok().flatten())
        .and_then(|it| TypedMemory::parse(name.as_ref(), &it).ok());
    let body = html! {
        @if let Some(memory) = &memory { (facts(context, memory)) }
        (markdown::memory_file(context, path, &file.text, &file.external_lines))
        p { (context.versions_link(path, "Versions")) }
    };
    let title = memory.map(|it| sanitize_line(&it.name, &context.root.rules));
    Ok(PageContent::new(title.unwrap_or_else(|| path.to_owned()), body))
}

fn facts(context: &PageContext, memory: &TypedMemory) -> Markup {
    let rules = &context.root.rules;
    html! {
        p dir="auto" lang="" { (sanitize_line(&memory.description, rules)) }
        p .meta {
            span .tag { (memory.kind.name()) }
            @if let Some(day) = memory.updated.or(memory.created) { " newest source " (day) ", " (age(context, day)) }
            @if !memory.is_managed() { ", edited by you" }
        }
    }
}

/// The versions of a file, and two of them side by side: `from` and `to`, or the newest two.
pub(super) fn versions(
    context: &PageContext,
    path: &str,
    fields: &Fields,
) -> CommandResult<PageContent> {
    let path = memory_file(context, path)?;
    let past = HistoryReader::open(&context.call, &context.root)?;
    let history = past.history_of(path)?;
    let Some(newest) = history.versions.last() else { return Err(no_such_file(path)) };
    let chosen = |name: &str| -> CommandResult<Option<&FileVersion>> {
        let Some(id) = fields.get(name) else { return Ok(None) };
        let found = id
            .parse()
            .ok()
            .and_then(|id| history.versions.iter().find(|it| it.id == Some(VersionId(id))));
        let missing = || CommandError::usage(format!("`{path}` has no version {id}"));
        found.map(Some).ok_or_else(missing)
    };
    let to = chosen("to")?.unwrap_or(newest);
    let from = chosen("from")?.or_else(|| history.previous(to));
    let text = |version: &FileVersion| -> CommandResult<String> {
        Ok(joined::visible(&past.version_text(&history, version)?).to_owned())
    };
    let named = |it: &FileVersion| format!("{it}, {}", past.local_time(it.at));
    let compared = from.map(|from| -> CommandResult<Markup> {
        let (old, new) = (text(from)?, text(to)?);
        Ok(html! {
            p { "What caused the change: " strong { (history.describe_cause(to)) } "." }
            (word_diff::side_by_side(&old, &new, [&named(from), &named(to)]))
        })
    });
    let body = html! {
        p { (context.link(&page_of_file(context, path), path)) }
        @if let Some(compared) = compared {
            (or_error(compared))
        } @else {
            p { "There is no older version to compare with." }
        }
        h2 { "All versions" }
        (version_list(context, path, &past, &history))
    };
    Ok(PageContent::new(format!("Versions of {path}"), body))
}

fn version_list(
    context: &PageContext,
    path: &str,
    past: &HistoryReader<'_>,
    history: &FileHistory,
) -> Markup {
    let url = context.href(&PageAddress::Versions(path.to_owned()));
    let older = history.versions.len().saturating_sub(VERSIONS_MAX);
    let listed = || history.versions.iter().skip(older).rev().filter_map(|it| Some((it.id?.0, it)));
    html! {
        @if let Some(url) = url.as_ref().filter(|_| history.versions.len() > 2) {
            form method="get" action=(url) {
                p .buttons {
                    @for (name, label) in [("from", "Compare "), ("to", "with ")] {
                        label {
                            (label)
                            select name=(name) {
                                @for (id, version) in listed() { option value=(id) { (version) ", " (past.local_time(version.at)) } }
                            }
                        }
                    }
                    button { "Compare" }
                }
            }
        }
        ol .plain {
            @for version in history.versions.iter().skip(older).rev() {
                li {
                    @match (&url, version.id) {
                        (Some(url), Some(id)) => a href=(format!("{url}?to={}", id.0)) { (version.to_string()) },
                        _ => (version.to_string()),
                    }
                    ", " (past.local_time(version.at)) ": " (history.describe_cause(version))
                    @if let Some(run) = version.run { " (" (context.link(&PageAddress::Run(run.0), format!("run {run}"))) ")" }
                }
            }
        }
        @if older > 0 { p { "and " (older) " older" } }
    }
}
