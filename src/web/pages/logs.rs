//! The lines of a log, each with a link to what came of it.

use maud::{Markup, html};

use super::{
    cut,
    period::{self, LeftOut},
    timeline::neighbours,
};
use crate::{
    memory::{
        address::Stem,
        period::{Grain, Period},
    },
    operations::{error::CommandResult, workspace::no_such_file},
    privacy::SanitizedLine,
    web::{
        address::{LINES_PER_PART, PageAddress},
        context::{PageContext, shown_text},
        layout::PageContent,
    },
};

/// How many bytes of a line are shown in a list; the page of the line shows all.
const LINE_BYTES_MAX: usize = 600;

/// A part of a log.
pub(super) fn render(context: &PageContext, stem: &Stem, part: u32) -> CommandResult<PageContent> {
    let log = context.log(stem).ok_or_else(|| no_such_file(stem.as_str()))?;
    let (first, last) = (
        part.saturating_mul(LINES_PER_PART),
        part.saturating_add(1).saturating_mul(LINES_PER_PART),
    );
    let lines: Vec<&SanitizedLine> =
        log.lines().iter().filter(|it| first < it.number() && it.number() <= last).collect();
    if lines.is_empty() && part > 0 {
        return Err(no_such_file(&format!("{stem}, part {part}")));
    }
    let day = Period::containing(Grain::Day, stem.date());
    let coverage = context.coverage(day);
    let left_out = period::left_out(coverage.as_ref());
    let has_more = log.lines().last().is_some_and(|it| it.number() > last);
    let page =
        |part: u32, label: &str| Some((PageAddress::Log(stem.clone(), part), label.to_owned()));
    let around = [
        part.checked_sub(1).and_then(|it| page(it, "earlier lines")),
        has_more.then(|| page(part + 1, "later lines")).flatten(),
    ];
    let body = html! {
        p .crumbs {
            @if let Some(week) = day.parent() {
                (context.link(&PageAddress::Period(week), week.to_string())) " › "
            }
            (context.link(&PageAddress::Period(day), day.to_string()))
        }
        (list(context, stem, &lines, coverage.as_ref().map(|_| &left_out), true))
        (neighbours(context, "Parts of the log", &around))
    };
    let of = if part > 0 || has_more {
        format!(", lines {} to {}", first + 1, last)
    } else {
        String::new()
    };
    Ok(PageContent::new(format!("Log {stem}{of}"), body))
}

/// The first lines of a log that are not blank.
pub(super) fn excerpt(
    context: &PageContext,
    stem: &Stem,
    max: usize,
    left_out: Option<&LeftOut>,
) -> Markup {
    let Some(log) = context.log(stem) else {
        return html! { p .problem { "This log cannot be read." } };
    };
    let is_shown = |it: &&SanitizedLine| !it.text().trim().is_empty();
    let lines: Vec<&SanitizedLine> = log.lines().iter().filter(is_shown).take(max).collect();
    let count = log.lines().iter().filter(is_shown).count();
    html! {
        (list(context, stem, &lines, left_out, false))
        @if count > lines.len() {
            p { (context.link(&PageAddress::Log(stem.clone(), 0), format!("All {count} lines of {stem}"))) }
        }
    }
}

fn list(
    context: &PageContext,
    stem: &Stem,
    lines: &[&SanitizedLine],
    left_out: Option<&LeftOut>,
    is_own_page: bool,
) -> Markup {
    let path = context.root.vault.log_path(stem);
    html! {
        ol .log lang="" {
            @for line in lines.iter().filter(|it| !it.text().trim().is_empty()) {
                @let number = line.number();
                @let reason = left_out.and_then(|it| it.get(&(path.clone(), number)));
                li id=[is_own_page.then(|| format!("L{number}"))] class=[reason.map(|_| "out")] {
                    @if context.is_export() && is_own_page {
                        span .n { (number) }
                    } @else {
                        (context.link(&PageAddress::Line(stem.clone(), number), number))
                    }
                    " " span dir="auto" { (cut(shown_text(line), if context.is_export() { usize::MAX } else { LINE_BYTES_MAX })) }
                    @if let Some(reason) = reason { " " small { (reason) } }
                }
            }
        }
    }
}
