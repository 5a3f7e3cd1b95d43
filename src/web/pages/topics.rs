//! Topics: the typed memories, what changed in them, decisions, and what is open.

use chrono::NaiveDate;
use maud::{Markup, html};

use super::age;
use crate::{
    memory::{
        address::Citation,
        item::Item,
        statement::{MemoryStatement, StatementKind, statements_of},
        typed::{MemoryType, TypedMemory},
    },
    operations::error::CommandResult,
    recall::framing::{self, sanitize_line},
    web::{address::PageAddress, context::PageContext, layout::PageContent, markdown},
};

/// How many statements a list has; each memory has a page with all of its own.
const STATEMENTS_MAX: usize = 60;

/// How many statements unfold below a memory.
const STATES_MAX: usize = 6;
/// How many memories of a type unfold; the others have their pages.
const UNFOLDED_MAX: usize = 20;

/// A memory with its sanitized statements.
struct Topic {
    path: String,
    memory: TypedMemory,
    name: String,
    /// Each with its line in the file.
    statements: Vec<(u32, MemoryStatement)>,
    newest: Option<NaiveDate>,
}

pub(super) fn render(context: &PageContext) -> CommandResult<PageContent> {
    let topics = read(context)?;
    let body = html! {
        @if topics.is_empty() {
            p { "There are no typed memories yet. " code { "memoird compact" } " extracts them from the logs of closed days." }
        }
        @for kind in MemoryType::ALL {
            @let of_kind: Vec<&Topic> = topics.iter().filter(|it| it.memory.kind == kind).collect();
            @if !of_kind.is_empty() {
                section aria-labelledby=(kind.name()) {
                    h2 id=(kind.name()) { (title(kind)) }
                    ul .topics {
                        @for (i, topic) in of_kind.into_iter().enumerate() {
                            li {
                                (context.link(&PageAddress::File(topic.path.clone()), html! { span dir="auto" lang="" { (topic.name) } }))
                                span .meta {
                                    " " (topic.statements.len())
                                    @if topic.statements.len() == 1 { " statement" } @else { " statements" }
                                    @if let Some(day) = topic.newest { ", " (age(context, day)) }
                                }
                                @if i < UNFOLDED_MAX { (states(context, topic)) }
                            }
                        }
                    }
                }
            }
        }
        (list(context, &topics, "changed", "Was, and is", |it| markdown::former_value(&it.item.text).is_some()))
        (list(context, &topics, "decisions", "Decisions", |it| it.kind == StatementKind::Decision))
        (list(context, &topics, "open", "Open", |it| it.kind == StatementKind::Open))
        (list(context, &topics, "stopped", "Stopped", |it| it.kind == StatementKind::Retired))
    };
    Ok(PageContent::new("Topics", body))
}

/// Shows what a memory says of its topic: how it was and is first, then what is newest.
fn states(context: &PageContext, topic: &Topic) -> Markup {
    let has_changed = |it: &MemoryStatement| markdown::former_value(&it.item.text).is_some();
    let mut shown: Vec<&(u32, MemoryStatement)> = topic.statements.iter().collect();
    shown.sort_by_key(|(_, it)| std::cmp::Reverse((has_changed(it), newest_day(&it.item))));
    shown.truncate(STATES_MAX);
    html! {
        @if !shown.is_empty() {
            details {
                summary { @if shown.iter().any(|it| has_changed(&it.1)) { "how it was and is" } @else { "what it says" } }
                ul .lines lang="" {
                    @for (line, statement) in shown {
                        li {
                            span dir="auto" { (markdown::statement_text(&statement.item.text)) }
                            @if let Some(day) = newest_day(&statement.item) { span .meta { " " (age(context, day)) } }
                            (markdown::item_actions(context, &topic.path, *line))
                        }
                    }
                }
            }
        }
    }
}

fn newest_day(item: &Item) -> Option<NaiveDate> {
    item.citation.as_ref().map(Citation::newest_date)
}

fn read(context: &PageContext) -> CommandResult<Vec<Topic>> {
    let rules = &context.root.rules;
    let accepted = framing::accepted_in(&context.root.vault, rules);
    let mut topics: Vec<Topic> = Vec::new();
    for (path, memory) in context.root.typed_memories()? {
        let body = framing::frame_memory_body(&memory, rules, &accepted);
        // The body ends where the file ends, whatever is above it.
        let text = context.root.vault.read_text(&path)?.unwrap_or_default();
        let visible = crate::memory::joined::visible(&text);
        let above = visible.lines().count().saturating_sub(memory.body.lines().count());
        let above = u32::try_from(above).unwrap_or(0);
        let statements: Vec<(u32, MemoryStatement)> =
            statements_of(&body).into_iter().map(|it| (above + it.line, it)).collect();
        let cited = memory.sources.iter().map(|it| it.0.stem.date()).max();
        topics.push(Topic {
            name: sanitize_line(&memory.name, rules),
            newest: cited.or(memory.updated).or(memory.created),
            path,
            memory,
            statements,
        });
    }
    topics.sort_by(|a, b| b.newest.cmp(&a.newest).then_with(|| a.path.cmp(&b.path)));
    Ok(topics)
}

fn title(kind: MemoryType) -> &'static str {
    match kind {
        MemoryType::User => "People",
        MemoryType::Feedback => "How to work",
        MemoryType::Project => "Projects",
        MemoryType::Reference => "Systems",
    }
}

fn list(
    context: &PageContext,
    topics: &[Topic],
    id: &str,
    title: &str,
    is_listed: impl Fn(&MemoryStatement) -> bool,
) -> Markup {
    let mut found: Vec<(&Topic, u32, &Item)> = topics
        .iter()
        .flat_map(|topic| topic.statements.iter().map(move |(line, it)| (topic, *line, it)))
        .filter(|(_, _, it)| is_listed(it))
        .map(|(topic, line, it)| (topic, line, &it.item))
        .collect();
    found.sort_by_key(|it| std::cmp::Reverse(newest_day(it.2)));
    html! {
        @if !found.is_empty() {
            section aria-labelledby=(id) {
                h2 id=(id) { (title) }
                ul lang="" {
                    @for (topic, line, item) in found.iter().take(STATEMENTS_MAX) {
                        li {
                            span dir="auto" { (markdown::statement_text(&item.text)) }
                            span .meta {
                                " " (context.link(&PageAddress::File(topic.path.clone()), &topic.name))
                                @if let Some(day) = newest_day(item) { ", " (age(context, day)) }
                            }
                            (markdown::item_actions(context, &topic.path, *line))
                        }
                    }
                }
                @if found.len() > STATEMENTS_MAX { p { "and " (found.len() - STATEMENTS_MAX) " more" } }
            }
        }
    }
}
