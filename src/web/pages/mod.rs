//! The pages: each renders what functions of the verbs return.

mod cost;
mod files;
mod lineage;
mod logs;
mod period;
pub(super) mod review;
pub(super) mod runs;
mod search;
mod sessions;
pub(super) mod timeline;
mod today;
mod topics;

use maud::{Markup, html};

use super::{
    address::PageAddress,
    context::{CitedLine, Fields, PageContext},
    layout::PageContent,
};
use crate::{
    operations::{
        error::{CommandError, CommandResult},
        workspace::no_such_file,
    },
    recall::context::blocks::days_between,
};

/// Returns the content of a page.
pub(super) fn render(
    context: &PageContext,
    address: &PageAddress,
    fields: &Fields,
) -> CommandResult<PageContent> {
    match address {
        PageAddress::Today => Ok(today::render(context)),
        PageAddress::Timeline(None) => timeline::years(context),
        PageAddress::Timeline(Some(year)) => timeline::year(context, *year),
        PageAddress::Period(period) => period::render(context, *period),
        PageAddress::Log(stem, part) => logs::render(context, stem, *part),
        PageAddress::Line(stem, line) => lineage::log_line(context, stem, *line),
        PageAddress::File(path) => files::render(context, path),
        PageAddress::Item(path, line) => lineage::item(context, path, *line),
        PageAddress::Versions(path) => files::versions(context, path, fields),
        PageAddress::Topics => topics::render(context),
        PageAddress::Search => search::render(context, fields),
        PageAddress::Review => review::render(context, fields),
        PageAddress::Correct(path, line) => review::correct_form(context, path, *line),
        PageAddress::Runs => runs::render(context, fields),
        PageAddress::Run(run) => runs::one(context, *run),
        PageAddress::Undo(run) => runs::undo_preview(context, *run),
        PageAddress::Cost => Ok(cost::render(context)),
        PageAddress::Sessions => sessions::render(context),
        PageAddress::Session(stem) => sessions::one(context, stem),
    }
}

/// Returns the path of a memory file, or that there is none.
fn memory_file<'a>(context: &PageContext, path: &'a str) -> CommandResult<&'a str> {
    let kind = context.root.vault.layout().kind_of(path);
    kind.map(|_| path).ok_or_else(|| no_such_file(path))
}

/// Cuts a text after at most `bytes_max` bytes, between two characters, and shows that it was cut.
fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let mut at = bytes_max;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    format!("{}…", text.get(..at).unwrap_or_default())
}

/// Returns lines of logs as a list, each with a link to what came of it.
fn line_list(context: &PageContext, lines: &[CitedLine]) -> Markup {
    html! {
        ol .lines lang="" {
            @for line in lines {
                li {
                    (context.link(
                        &PageAddress::Line(line.stem.clone(), line.number),
                        format!("{}:{}", line.stem, line.number),
                    ))
                    " "
                    @match &line.text {
                        Some(text) => span dir="auto" { (text.trim()) },
                        None => span .gone { "this line is gone" },
                    }
                }
            }
        }
    }
}

/// Returns how old a day is: `12 days old`, `today`.
fn age(context: &PageContext, day: chrono::NaiveDate) -> String {
    match (context.today() - day).num_days() {
        ..=0 => "today".to_owned(),
        _ => format!("{} old", days_between(day, context.today())),
    }
}

/// Describes a number of bytes: `12 KB`.
fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", bytes_as_mb(bytes)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn bytes_as_mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Returns `part` of `whole` in percent; `None` if the whole is empty.
fn percent(part: usize, whole: usize) -> Option<usize> {
    (part * 100).checked_div(whole)
}

/// Returns the address of the page about a memory file.
fn page_of_file(context: &PageContext, path: &str) -> PageAddress {
    let layout = context.root.vault.layout();
    if let Some(stem) = context.log_stem(path) {
        return PageAddress::of_log_line(&stem, 1);
    }
    let name = path.rsplit('/').next().and_then(|it| it.strip_suffix(".md"));
    let period = name.and_then(|it| it.parse::<crate::memory::period::Period>().ok());
    match period.filter(|it| layout.summary(*it) == path) {
        Some(period) => PageAddress::Period(period),
        None if path == layout.wisdom() => PageAddress::Today,
        None => PageAddress::File(path.to_owned()),
    }
}

/// Shows a part of a page, or why it cannot be shown: one failure does not hide the rest.
fn or_error(part: CommandResult<Markup>) -> Markup {
    part.unwrap_or_else(|error| problem(&error))
}

/// Shows what failed, and what to do.
fn problem(error: &CommandError) -> Markup {
    html! {
        p .problem role="alert" {
            (error.to_string())
            @for hint in error.hints() { " – " code { (hint) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("äöü", 3), "ä…");
        assert_eq!(cut("ö", 1), "…");
    }
}
