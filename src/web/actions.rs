//! The forms: each calls the function of a verb.

use maud::html;

use super::{
    address::PageAddress,
    context::{Fields, PageContext},
    layout::PageContent,
    page_compaction::RunningCompaction,
    pages, progress, word_diff,
};
use crate::{
    compaction::undo::UndoRequest,
    memory::decision::Verdict,
    operations::{
        correct::{CorrectOptions, correct_item},
        error::{CommandError, CommandErrorKind, CommandResult},
        review::{queue, verdicts},
        undo,
        workspace::require_writer,
    },
    store::db::lineage::jobs::RunId,
};

/// What follows after a form.
pub(super) enum ActionResult {
    /// Another page, with a query that says what was done.
    GoTo(PageAddress, String),
    /// A page in its place.
    Show(PageContent),
    /// A compaction, whose progress the page of runs shows.
    Compact(RunningCompaction),
}

/// Does what a form asks for.
pub(super) fn apply(
    context: &PageContext,
    address: &PageAddress,
    fields: &Fields,
) -> CommandResult<ActionResult> {
    let action = fields.get("do").unwrap_or_default();
    match (address, action) {
        (PageAddress::Review, "accept" | "refuse" | "reopen" | "edit") => {
            decide(context, action, fields)
        }
        (PageAddress::Correct(path, line), "preview" | "apply") => {
            correct(context, path, *line, fields, action == "apply")
        }
        (PageAddress::Undo(_), "undo") => undo_runs(context, fields),
        (PageAddress::Runs, "compact") => {
            // What keeps it from running at all is reported at once.
            require_writer(&context.call, &context.root)?;
            let ours = &context.shared.compaction;
            let busy = |what: String| {
                let error = format!("this folder is being compacted now ({what})");
                CommandError::new(CommandErrorKind::Busy, error)
            };
            if let Some(what) = progress::running(context.root.vault.layout(), ours)? {
                return Err(busy(what));
            }
            let begun = ours.begin().ok_or_else(|| busy("started here".to_owned()))?;
            Ok(ActionResult::Compact(begun))
        }
        _ => Err(CommandError::usage(format!("this page has no form `{action}`"))),
    }
}

fn decide(context: &PageContext, action: &str, fields: &Fields) -> CommandResult<ActionResult> {
    let (call, root) = (&context.call, &context.root);
    let ids: Vec<String> = fields.all("id").map(str::to_owned).collect();
    if ids.is_empty() {
        return Err(CommandError::usage("no entry is selected").hint("go back and select some"));
    }
    let mut queue = queue::load_queue(root, action == "reopen")?;
    // What was decided in another tab meanwhile does not keep the others back.
    let (ids, mut left): (Vec<String>, Vec<String>) = if action == "edit" || ids.len() == 1 {
        (ids, Vec::new())
    } else {
        ids.into_iter().partition(|it| queue::has_entry(&queue, it))
    };
    queue::retain_ids(&mut queue, &ids)?;
    let mut done = ids.len();
    match action {
        "accept" => {
            let batch = verdicts::accept_possible(call, root, queue)?;
            done = batch.accepted;
            left.extend(batch.left);
        }
        "refuse" => verdicts::record_verdict(call, root, &queue, Some(Verdict::Refused))?,
        "reopen" => verdicts::reopen(call, root, queue)?,
        _ => verdicts::edit(call, root, &queue, fields.get("text").unwrap_or_default())?,
    }
    let mut query = form_urlencoded::Serializer::for_suffix("?".to_owned(), 1);
    query.append_pair("done", action).append_pair("count", &done.to_string());
    query.extend_pairs(left.iter().map(|it| ("left", it)));
    Ok(ActionResult::GoTo(PageAddress::Review, query.finish()))
}

fn correct(
    context: &PageContext,
    path: &str,
    line: u32,
    fields: &Fields,
    is_final: bool,
) -> CommandResult<ActionResult> {
    let text = fields.get("text").unwrap_or_default();
    let Some(seen) = fields.get("item").and_then(|it| it.parse().ok()) else {
        return Err(CommandError::usage(
            "the form does not say which item it shows; open it again",
        ));
    };
    // Lines move while somebody types, so the item must still be the one that was shown.
    let options = CorrectOptions { update_dependents: true, dry_run: !is_final, seen: Some(seen) };
    let target = format!("{path}:{line}");
    let (draft, outcome) = correct_item(&context.call, &context.root, &target, text, options)?;
    if is_final {
        return Ok(ActionResult::GoTo(
            PageAddress::Item(draft.path, draft.corrected.line),
            String::new(),
        ));
    }
    debug_assert!(outcome.is_none());
    let rules = &context.root.rules;
    let (before, after) =
        (rules.mask_secrets(&draft.corrected.before), rules.mask_secrets(&draft.corrected.after));
    let preview = html! {
        section aria-label="What would change" {
            @match word_diff::changes(&before, &after) {
                Some(changed) => (changed),
                None => p { "It already says that." },
            }
            @if !draft.dependents.is_empty() {
                p {
                    "Also updated: "
                    @for (i, (tier, period)) in draft.dependents.iter().enumerate() {
                        @if i > 0 { ", " }
                        (tier.name()) " " (period)
                    }
                    "."
                }
            }
        }
    };
    let page = pages::review::correct_page(context, (path, line), seen, text, Some(preview));
    Ok(ActionResult::Show(page))
}

/// Undoes the runs that the form showed, newest first.
fn undo_runs(context: &PageContext, fields: &Fields) -> CommandResult<ActionResult> {
    let runs = fields.all("run").map(|it| it.parse().map(RunId));
    let runs: Vec<RunId> = runs.collect::<Result<_, _>>().map_err(CommandError::usage)?;
    let request =
        UndoRequest { run: runs.last().copied(), with_dependents: fields.get("later").is_some() };
    let (run, _) = undo::undo_runs(&context.call, &context.root, request, &runs)?;
    Ok(ActionResult::GoTo(PageAddress::Runs, format!("?undone={run}")))
}
