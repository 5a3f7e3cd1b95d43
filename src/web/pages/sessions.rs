//! Sessions: the records, their text, and what came of each.

use maud::{Markup, html};

use crate::{
    memory::address::Stem,
    operations::{
        error::CommandResult,
        session_records::{RecordFilter, RecordListItem, stored_records},
        workspace::no_such_file,
    },
    recall::framing::sanitize_line,
    web::{
        address::PageAddress,
        context::{CitedLine, PageContext, shown_text},
        layout::PageContent,
        pages::line_list,
    },
};

/// How many records are listed.
const RECORDS_MAX: usize = 200;
/// How many lines of a record are shown.
const LINES_MAX: usize = 1_500;
/// How many characters of the lines of a record are shown.
const CHARS_MAX: usize = 150_000;

pub(super) fn render(context: &PageContext) -> CommandResult<PageContent> {
    let records = stored_records(&context.call, &context.root, &RecordFilter::default())?;
    let body = html! {
        @if records.is_empty() {
            p { "There are no records of sessions. " code { "memoird session compact FILE" } " writes one from a transcript." }
        }
        ul .sessions {
            @for record in records.iter().take(RECORDS_MAX) {
                li data-row { (record_line(context, record)) }
            }
        }
        @if records.len() > RECORDS_MAX { p { "and " (records.len() - RECORDS_MAX) " older" } }
    };
    Ok(PageContent::new("Sessions", body))
}

fn record_line(context: &PageContext, record: &RecordListItem) -> Markup {
    let when: Option<String> = record.ended.as_ref().map(|it| it.chars().take(16).collect());
    let id = sanitize_line(&record.id, &context.root.rules);
    let about = record.description.as_deref().unwrap_or(&id);
    html! {
        @match record.id.parse::<Stem>() {
            Ok(stem) => (context.link(&PageAddress::Session(stem), html! { bdi lang="" { (about) } })),
            Err(_) => bdi lang="" { (about) },
        }
        span .meta {
            @if let Some(when) = when { " " (when.replace('T', " ")) }
            @if let Some(project) = &record.project { ", " bdi { (project) } }
            @if let Some(agent) = &record.agent { ", " bdi { (agent) } }
            @if !record.logged { ", not in a log" }
        }
    }
}

pub(super) fn one(context: &PageContext, stem: &Stem) -> CommandResult<PageContent> {
    let is_record = stem.is_session();
    let log = context.log(stem).filter(|_| is_record).ok_or_else(|| no_such_file(stem.as_str()))?;
    let citing = citing_lines(context, stem)?;
    let mut chars = 0;
    let lines: Vec<_> = log
        .lines()
        .iter()
        .filter(|it| !it.text().trim().is_empty())
        .take(LINES_MAX)
        .take_while(|it| {
            chars += it.text().len();
            chars <= CHARS_MAX || context.is_export()
        })
        .collect();
    let count = log.lines().iter().filter(|it| !it.text().trim().is_empty()).count();
    let body = html! {
        h2 { "What came of it" }
        @if citing.is_empty() {
            p { "No log names this record." }
        } @else {
            p { "Entries of logs; each leads to what was derived from it." }
            (line_list(context, &citing))
        }
        h2 { "The record" }
        ol .log lang="" {
            @for line in &lines {
                li id=[context.is_export().then(|| format!("L{}", line.number()))] {
                    @if context.is_export() {
                        span .n { (line.number()) }
                    } @else {
                        (context.link(&PageAddress::Line(stem.clone(), line.number()), line.number()))
                    }
                    " " span dir="auto" { (shown_text(line)) }
                }
            }
        }
        @if count > lines.len() { p { "and " (count - lines.len()) " more lines: " code { "memoird session show " (stem) } } }
    };
    Ok(PageContent::new(format!("Session {stem}"), body))
}

/// Returns the lines of logs that name a record.
fn citing_lines(context: &PageContext, record: &Stem) -> CommandResult<Vec<CitedLine>> {
    let mut found = Vec::new();
    for stem in context.logs_naming(record)? {
        let Some(log) = context.log(&stem) else { continue };
        for line in log.lines().iter().filter(|it| it.text().contains(record.as_str())) {
            let text = Some(shown_text(line).to_owned());
            found.push(CitedLine { stem: stem.clone(), number: line.number(), text });
        }
    }
    Ok(found)
}
