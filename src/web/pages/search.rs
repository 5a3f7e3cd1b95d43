//! Search: as the verb, with choices of tier, time, and person.

use maud::{Markup, html};

use super::page_of_file;
use crate::{
    memory::typed::MemoryType,
    operations::{
        error::{CommandError, CommandResult},
        search,
    },
    recall::{
        framing::sanitize_line,
        search::{
            self as recall_search, Highlighter, Query, SearchHit, SearchOptions, query::TIERS,
            time::date_words::DateWords,
        },
    },
    web::{
        address::PageAddress,
        context::{Fields, PageContext},
        layout::PageContent,
    },
};

/// How many hits are shown.
const HITS_MAX: usize = 30;

pub(super) fn render(context: &PageContext, fields: &Fields) -> CommandResult<PageContent> {
    let people = people(context)?;
    let words = fields.get("q").unwrap_or_default();
    let has_question =
        !words.is_empty() || fields.get("since").is_some() || fields.get("until").is_some();
    let hits = if has_question {
        super::or_error(hits(context, fields))
    } else {
        html! {}
    };
    let body = html! {
        (form(context, fields, &people))
        (hits)
    };
    let title = if words.is_empty() { "Search".to_owned() } else { format!("Search: {words}") };
    Ok(PageContent::new(title, body))
}

/// Returns the names of the people that have a memory.
fn people(context: &PageContext) -> CommandResult<Vec<String>> {
    let memories = context.root.typed_memories()?;
    let people = memories.into_iter().filter(|it| it.1.kind == MemoryType::User);
    let mut names: Vec<String> =
        people.map(|(_, it)| sanitize_line(&it.name, &context.root.rules)).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn form(context: &PageContext, fields: &Fields, people: &[String]) -> Markup {
    let chosen: Vec<&str> = fields.all("tier").collect();
    let value = |name: &str| fields.get(name).unwrap_or_default().to_owned();
    html! {
        form .search method="get" action=[context.href(&PageAddress::Search)] role="search" {
            p {
                label for="q" { "Question or words" }
                input #q name="q" type="search" value=(value("q")) autofocus data-search;
                button { "Search" }
            }
            fieldset {
                legend { "Found in" }
                @for tier in TIERS {
                    label { input type="checkbox" name="tier" value=(tier) checked[chosen.contains(&tier)]; " " (tier) }
                }
            }
            fieldset {
                legend { "Time and person" }
                label { "From " input name="since" value=(value("since")) placeholder="2026-04 or last week" size="16"; }
                label { "to " input name="until" value=(value("until")) placeholder="2026-W14" size="16"; }
                @if !people.is_empty() {
                    label {
                        "Person "
                        select name="person" {
                            option value="" { "anyone" }
                            @for name in people {
                                option value=(name) selected[fields.get("person") == Some(&name[..])] { (name) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Reads the fields as the verb reads its options.
fn query(context: &PageContext, fields: &Fields) -> CommandResult<Query> {
    let mut query = Query::parse(fields.get("q").unwrap_or_default());
    let today = context.today();
    let days = |name: &str| -> CommandResult<Option<(chrono::NaiveDate, chrono::NaiveDate)>> {
        let Some(text) = fields.get(name) else { return Ok(None) };
        let words: DateWords = text.parse().map_err(CommandError::usage)?;
        Ok(Some(words.days(today)))
    };
    query.since = days("since")?.map(|it| it.0).or(query.since);
    query.until = days("until")?.map(|it| it.1).or(query.until);
    query.tiers.extend(fields.all("tier").filter(|it| TIERS.contains(it)).map(str::to_owned));
    query.phrases.extend(fields.get("person").map(str::to_owned));
    Ok(query)
}

fn hits(context: &PageContext, fields: &Fields) -> CommandResult<Markup> {
    let query = query(context, fields)?;
    let options = SearchOptions { limit: HITS_MAX, context: 0, raw: false, today: context.today() };
    let found =
        search::find(&context.call, &context.root, &query, options, Some(&context.shared.search))?;
    let mut highlighter = Highlighter::of(&query.words);
    let groups = recall_search::group_duplicates(&found.hits);
    Ok(html! {
        @if let Some(why) = &found.words_only { p .meta { "Searched by words only: " (why) } }
        @if found.hits.is_empty() {
            p role="status" { "Nothing found." }
        } @else {
            @if found.similar_spelling { p .meta { "Nothing says exactly this; these lines have words of a similar spelling." } }
            p role="status" { (found.hits.len()) @if found.hits.len() == 1 { " hit" } @else { " hits" } }
            ol .hits lang="" {
                @for (hit, more) in groups { (hit_item(context, hit, more, &mut highlighter)) }
            }
        }
    })
}

fn hit_item(
    context: &PageContext,
    hit: &SearchHit,
    more: usize,
    highlighter: &mut Highlighter,
) -> Markup {
    html! {
        li {
            p .place {
                (context.link(&address(context, &hit.path, hit.line), format!("{}:{}", hit.path, hit.line)))
                " " (hit.date)
                @if hit.origin == "external" { " " span .tag { "external" } }
                @for by in hit.found_by.iter().filter(|it| **it != "words") { " " span .tag { "by " (by) } }
            }
            p dir="auto" { (highlighted(&hit.text, &highlighter.ranges(&hit.text))) }
            @if let Some(newer) = &hit.superseded_by {
                p .meta { "Superseded by " (context.link(&address(context, &newer.path, newer.line), format!("{}:{}", newer.path, newer.line))) }
            }
            @if !hit.via.is_empty() {
                p .meta {
                    "via "
                    @for via in &hit.via { (context.link(&address(context, &via.path, via.line), format!("{}:{}", via.path, via.line))) " " }
                }
            }
            @if more > 0 { p .meta { "and " (more) " more like it" } }
        }
    }
}

/// Returns the page about a line of a file.
fn address(context: &PageContext, path: &str, line: u32) -> PageAddress {
    match context.log_stem(path) {
        Some(stem) => PageAddress::Line(stem, line),
        // A hit through a memory names its first line, which is no item if the memory has several.
        None if line == 1 => page_of_file(context, path),
        None => PageAddress::Item(path.to_owned(), line),
    }
}

/// Marks ranges of a text, which are sorted.
fn highlighted(text: &str, ranges: &[std::ops::Range<usize>]) -> Markup {
    let mut parts = Vec::new();
    let mut at = 0;
    for range in ranges {
        let (Some(before), Some(marked)) = (text.get(at..range.start), text.get(range.clone()))
        else {
            continue;
        };
        parts.push((before, marked));
        at = range.end;
    }
    html! {
        @for (before, marked) in parts { (before) mark { (marked) } }
        (text.get(at..).unwrap_or_default())
    }
}
