//! Today: what lasts, each entry with its age and its sources; what changed; what waits for review.

use chrono::TimeDelta;
use maud::{Markup, html};

use super::{age, cut, line_list, or_error};
use crate::{
    memory::{
        joined,
        wisdom::{WisdomEntry, WisdomPart},
    },
    operations::{
        error::CommandResult,
        format::counted,
        history::HistoryReader,
        review::queue::ReviewEntry,
        status::health::{FolderHealth, daemon_state},
    },
    privacy::quarantine,
    recall::framing::sanitize_line,
    web::{address::PageAddress, context::PageContext, layout::PageContent, markdown, word_diff},
};

/// A heading, and the entries below it with their lines in the file.
type WisdomGroup<'a> = (Option<&'a str>, Vec<(u32, &'a WisdomEntry)>);

/// How many lines of an entry are shown.
const LINES_MAX: usize = 12;
/// How many dots a strong entry has.
const STRENGTH_MAX: usize = 5;
/// How many entries of the review queue are named.
const REVIEW_MAX: usize = 3;
/// How many bytes of each are shown.
const REVIEW_BYTES_MAX: usize = 160;

pub(super) fn render(context: &PageContext) -> PageContent {
    let health = context.health();
    // Without a database, the queue would be made from all logs; the review page does that.
    let has_curated = !context.root.vault.layout().curated().is_empty();
    let is_empty = health.as_ref().is_ok_and(|it| it.review == 0) && !has_curated;
    let body = html! {
        (or_error(health.and_then(|it| health_line(context, &it))))
        div .columns {
            section aria-labelledby="wisdom" {
                h2 #wisdom { "What lasts" }
                (wisdom(context))
            }
            div {
                section aria-labelledby="review" {
                    h2 #review { "To review" }
                    @if is_empty {
                        p { "Nothing waits for a decision." }
                    } @else {
                        (or_error(to_review(context)))
                    }
                }
                section aria-labelledby="changes" {
                    h2 #changes { "What changed" }
                    (or_error(changes(context)))
                }
            }
        }
    };
    PageContent::new("Today", body)
}

fn health_line(context: &PageContext, health: &FolderHealth) -> CommandResult<Markup> {
    let daemon = daemon_state(&context.root)?;
    Ok(html! {
        p class=(if health.is_good() { "health good" } else { "health bad" }) {
            (context.link(&PageAddress::Runs, health.line(daemon)))
            span .run-state data-run="" {}
        }
    })
}

fn wisdom(context: &PageContext) -> Markup {
    let path = context.root.vault.layout().wisdom();
    let Some(file) = context.wisdom() else {
        return html! {
            p { "There is no WISDOM.md yet. " code { "memoird compact" } " writes it from the logs of closed days." }
        };
    };
    let mut lines = file.entries_with_lines().into_iter().map(|it| it.0);
    let mut groups: Vec<WisdomGroup<'_>> = vec![(None, Vec::new())];
    for part in file.parts() {
        match part {
            WisdomPart::Heading(title) => {
                groups.push((Some(title.trim_start_matches('#').trim()), Vec::new()));
            }
            WisdomPart::Entry(entry) => {
                let line = lines.next().unwrap_or(1);
                if let Some((_, entries)) = groups.last_mut() {
                    entries.push((line, entry));
                }
            }
            WisdomPart::Text(_) => {}
        }
    }
    html! {
        @for (title, entries) in groups.iter().filter(|it| !it.1.is_empty()) {
            @if let Some(title) = title { h3 dir="auto" { (title) } }
            ul .entries lang="" {
                @for (line, entry) in entries { (entry_item(context, &path, *line, entry)) }
            }
        }
        p { (context.versions_link(&path, "All versions of WISDOM.md")) }
    }
}

fn entry_item(context: &PageContext, path: &str, line: u32, entry: &WisdomEntry) -> Markup {
    html! {
        li id=(format!("L{line}")) {
            span dir="auto" {
                @if !entry.title.is_empty() { strong { (entry.title) } ": " }
                (markdown::statement_text(&entry.text))
            }
            @match &entry.meta {
                Some(meta) => {
                    @let (lines, count) = context.cited_lines(&meta.sources, LINES_MAX);
                    @let days = meta.sources.files().count();
                    details {
                        summary {
                            "why" span .meta {
                                " " (strength(days)) (count) @if count == 1 { " line" } @else { " lines" }
                                @if days > 1 { " of " (days) " logs" }
                                ", " (age(context, meta.last_reinforced))
                                @if !entry.is_managed() { ", edited by you" }
                            }
                        }
                        @if meta.first_seen != meta.last_reinforced {
                            p .meta { "Since " (meta.first_seen) ", last confirmed " (meta.last_reinforced) "." }
                        }
                        (line_list(context, &lines))
                        @if count > lines.len() { p { "and " (count - lines.len()) " more" } }
                        p { (markdown::item_actions(context, path, line)) }
                    }
                }
                None => span .meta { " written by you" (markdown::item_actions(context, path, line)) },
            }
        }
    }
}

/// Shows how well an entry is supported: a dot for each log that says it, up to [`STRENGTH_MAX`]. What few logs say is
/// the first to go when `WISDOM.md` is full.
fn strength(logs: usize) -> Markup {
    let filled = logs.min(STRENGTH_MAX);
    html! {
        span .strength title=(format!("strength: in {}", counted(logs, "log", "logs"))) aria-hidden="true" {
            ("●".repeat(filled)) ("○".repeat(STRENGTH_MAX - filled))
        }
        " "
    }
}

fn to_review(context: &PageContext) -> CommandResult<Markup> {
    let entries = context.review_entries()?;
    let rules = &context.root.rules;
    // What waits is shown on the review page alone, which an export does not have.
    let shown = |entry: &ReviewEntry| match entry.what {
        "line" => quarantine::PLACEHOLDER.to_owned(),
        _ => cut(&sanitize_line(&entry.text, rules), REVIEW_BYTES_MAX),
    };
    Ok(html! {
        @if entries.is_empty() {
            p { "Nothing waits for a decision." }
        } @else {
            @if !context.is_export() {
                ul lang="" {
                    @for entry in entries.iter().take(REVIEW_MAX) {
                        li { span .tag { (entry.what) } " " span dir="auto" { (shown(entry)) } }
                    }
                }
            }
            p {
                (context.link(&PageAddress::Review, format!("{} to review", entries.len())))
            }
        }
    })
}

/// Shows what changed in `WISDOM.md` since yesterday at this time; if nothing did, what its last version changed.
fn changes(context: &PageContext) -> CommandResult<Markup> {
    let past = HistoryReader::open(&context.call, &context.root)?;
    let path = context.root.vault.layout().wisdom();
    let history = past.history_of(&path)?;
    let (Some(newest), false) = (history.versions.last(), history.is_unrecorded()) else {
        return Ok(html! { p { "No version is recorded yet." } });
    };
    if context.is_export() {
        return Ok(html! { p { "WISDOM.md was written " (past.local_time(newest.at)) "." } });
    }
    let text = |version| -> CommandResult<String> {
        Ok(joined::visible(&past.version_text(&history, version)?).to_owned())
    };
    let now = text(newest)?;
    let yesterday = history.at(context.call.now - TimeDelta::days(1));
    if let Some(before) = yesterday
        && let Some(changed) = word_diff::changes(&text(before)?, &now)
    {
        return Ok(html! { p { "WISDOM.md since yesterday:" } (changed) });
    }
    let before = history.previous(newest);
    let changed = match before {
        Some(before) => word_diff::changes(&text(before)?, &now),
        None => None,
    };
    Ok(html! {
        @match changed {
            Some(changed) => {
                p { "Nothing since yesterday. The last change of WISDOM.md, " (past.local_time(newest.at)) ", " (history.describe_cause(newest)) ":" }
                (changed)
            }
            None => p { "Nothing since yesterday. WISDOM.md was written " (past.local_time(newest.at)) "." },
        }
    })
}
