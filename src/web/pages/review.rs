//! Review: what waits for a decision, with its sources; and the form to correct an item.

use std::sync::Arc;

use maud::{Markup, html};

use super::{
    cut,
    lineage::{self, bare},
    memory_file, page_of_file,
};
use crate::{
    memory::item::Item,
    operations::{
        correct,
        error::CommandResult,
        review::queue::{self, ReviewEntry},
    },
    privacy::quarantine::PLACEHOLDER,
    web::{
        address::PageAddress,
        context::{Fields, PageContext},
        layout::{self, PageContent},
        word_diff,
    },
};

/// How many entries a page has; the next ones follow when these are decided.
const ENTRIES_MAX: usize = 100;
/// How many bytes of a text are shown.
const TEXT_BYTES_MAX: usize = 2_000;

pub(super) fn render(context: &PageContext, fields: &Fields) -> CommandResult<PageContent> {
    let decided = fields.get("decided").is_some();
    let entries = if decided {
        Arc::new(queue::entries(&queue::load_queue(&context.root, true)?))
    } else {
        context.review_entries()?
    };
    let waiting = entries.iter().filter(|it| it.verdict.is_none()).count();
    let body = html! {
        (outcome(fields, &entries))
        @if waiting == 0 { p { "Nothing waits for a decision." } }
        @match layout::form_token(context) {
            Some(token) if !entries.is_empty() => (decision_form(context, &token, &entries)),
            _ => {
                ul .queue { @for entry in entries.iter().take(ENTRIES_MAX) { li { (entry_text(context, entry)) } } }
                (more(&entries))
            }
        }
        p .actions {
            @if let Some(href) = context.href(&PageAddress::Review) {
                @if decided { a href=(href) { "Only what waits" } }
                @else { a href=(format!("{href}?decided=1")) { "Also what was decided" } }
            }
        }
    };
    Ok(PageContent::new("Review", body))
}

/// Says what the last form did, and to which entries it did not: `done`, `count`, and `left` in the URL.
fn outcome(fields: &Fields, entries: &[ReviewEntry]) -> Markup {
    let count = fields.get("count").and_then(|it| it.parse::<usize>().ok()).unwrap_or(0);
    let done = match fields.get("done") {
        Some("accept") if count == 0 => "Nothing was accepted.".to_owned(),
        Some("accept") => {
            format!("Accepted: {count}. The next compaction updates what is derived from it.")
        }
        Some("refuse") => format!("Refused: {count}."),
        Some("reopen") => format!("Withdrawn: {count}."),
        Some("edit") => "Your words are written.".to_owned(),
        _ => return html! {},
    };
    let left: Vec<&str> = fields.all("left").take(ENTRIES_MAX).collect();
    html! {
        p .done role="status" { (done) }
        @if !left.is_empty() {
            p { "Left as they were:" }
            ul {
                @for id in left {
                    li { code { (id) } ": " (why_left(id, entries)) }
                }
            }
        }
    }
}

fn why_left(id: &str, entries: &[ReviewEntry]) -> &'static str {
    match entries.iter().find(|it| it.id == id) {
        Some(entry) => entry.refusal().unwrap_or("it could not be applied; try it alone"),
        None => "it waits no longer",
    }
}

/// Says how many entries are not shown.
fn more(entries: &[ReviewEntry]) -> Markup {
    html! {
        @if let Some(count) = entries.len().checked_sub(ENTRIES_MAX).filter(|it| *it > 0) {
            p { "and " (count) " more" }
        }
    }
}

fn decision_form(context: &PageContext, token: &Markup, entries: &[ReviewEntry]) -> Markup {
    let action = context.href(&PageAddress::Review);
    html! {
        form method="post" action=[&action] {
            (token)
            p .buttons {
                label { input type="checkbox" data-all="id" hidden; }
                button name="do" value="accept" { "Accept selected" }
                button name="do" value="refuse" { "Refuse selected" }
                @if entries.iter().any(|it| it.verdict.is_some()) {
                    button name="do" value="reopen" { "Withdraw decisions" }
                }
            }
            ul .queue {
                @for entry in entries.iter().take(ENTRIES_MAX) {
                    li data-row {
                        label .choice {
                            input type="checkbox" name="id" value=(entry.id);
                            " " span .tag { (entry.what) } " " (entry.why.join(", "))
                            @if let Some(verdict) = entry.verdict { " " span .tag { (verdict) } }
                        }
                        (entry_text(context, entry))
                    }
                }
            }
            (more(entries))
        }
        @let editable: Vec<&ReviewEntry> = entries.iter().filter(|it| is_editable(it)).take(ENTRIES_MAX).collect();
        @if !editable.is_empty() {
            h2 { "In your own words" }
            p .meta { "For a line, your words become an entry of today's log, and the line stays out; for a change, they are written instead." }
            form method="post" action=[&action] {
                (token)
                p {
                    label for="edit-id" { "Entry " }
                    select #edit-id name="id" {
                        @for entry in editable {
                            option value=(entry.id) { (entry.id) ": " (cut(&entry.text, 60)) }
                        }
                    }
                }
                p {
                    label for="edit-text" { "Your words (for an entry of WISDOM.md: heading, colon, text)" }
                    textarea #edit-text name="text" rows="3" required {}
                }
                p { button name="do" value="edit" { "Write them" } }
            }
        }
    }
}

fn is_editable(entry: &ReviewEntry) -> bool {
    entry.verdict.is_none() && entry.what != "contradiction"
}

fn entry_text(context: &PageContext, entry: &ReviewEntry) -> Markup {
    let stem = context.log_stem(&entry.path);
    let place = match (stem, entry.line) {
        (Some(stem), Some(line)) => PageAddress::Line(stem, line),
        _ => page_of_file(context, &entry.path),
    };
    let line = entry.line.map(|it| format!(":{it}")).unwrap_or_default();
    let text = cut(&entry.text, TEXT_BYTES_MAX);
    html! {
        p .meta {
            (entry.id) " · " (context.link(&place, format!("{}{line}", entry.path)))
            @if let Some(origin) = entry.origin { ", " (origin) }
            @if let Some(engine) = &entry.engine { ", rejected draft of " (engine) }
            @if entry.stale { ", stale: its file or its source lines changed since" }
            @if entry.acceptable == Some(false) { ", cannot be accepted" }
        }
        div lang="" {
            @match &entry.before {
                Some(before) => (word_diff::side_by_side(&cut(before, TEXT_BYTES_MAX), &text, ["Now", "New"])),
                None => blockquote dir="auto" { (text) },
            }
            @if !entry.source_lines.is_empty() {
                ol .lines {
                    @for line in &entry.source_lines {
                        li { (line.address) " " span dir="auto" { (cut(line.text.trim(), TEXT_BYTES_MAX)) } }
                    }
                }
            }
        }
    }
}

/// The form to correct an item, with its sources.
pub(super) fn correct_form(
    context: &PageContext,
    path: &str,
    line: u32,
) -> CommandResult<PageContent> {
    let path = memory_file(context, path)?;
    let trace = lineage::sources_of(context, &format!("{path}:{line}"))?;
    let item = Item::parse(bare(&trace.target.text));
    if context.form_token().is_none() {
        return Ok(correct_page(context, (path, line), 0, &item.text, None));
    }
    let draft = match correct::current_item(&context.call, &context.root, &format!("{path}:{line}"))
    {
        Ok(draft) => draft,
        // What cannot be corrected has no form.
        Err(error) => return Ok(layout::error_content(&error)),
    };
    // Who sends a form with masked words would write the mask into the file.
    let before = &draft.corrected.before;
    let is_masked =
        context.root.rules.mask_secrets(before) != *before || item.text.contains(PLACEHOLDER);
    let text = if is_masked { "" } else { &item.text };
    Ok(correct_page(context, (path, line), draft.item_hash(), text, None))
}

/// Returns the form with a text, and what it would change. `seen` is the hash of the item that is shown.
pub(in crate::web) fn correct_page(
    context: &PageContext,
    (path, line): (&str, u32),
    seen: u64,
    text: &str,
    preview: Option<Markup>,
) -> PageContent {
    let address = PageAddress::Correct(path.to_owned(), line);
    let token = layout::form_token(context);
    let body = html! {
        p { (context.link(&page_of_file(context, path), path)) ", line " (line) }
        @let is_preview = preview.is_some();
        @if let Some(preview) = preview { (preview) }
        @match token {
            Some(token) => form method="post" action=[context.href(&address)] {
                (token)
                input type="hidden" name="item" value=(seen);
                @if text.is_empty() {
                    p { "The text is not filled in, because some of it is masked here. Write all of it." }
                }
                p {
                    label for="text" { "The correct text" }
                    textarea #text name="text" rows="4" required lang="" { (text) }
                }
                p .meta { "Its citation stays. The item is yours from then on, and what is derived from it is updated." }
                p .buttons {
                    button name="do" value="preview" { "Show what would change" }
                    @if is_preview { button name="do" value="apply" { "Correct it" } }
                }
            },
            None => p { "Nothing can be changed here: the page was opened with --read-only." },
        }
        p { (context.link(&PageAddress::Item(path.to_owned(), line), "Where it comes from")) }
    };
    PageContent::new("Correct", body)
}
