//! `memoird review`: the queue of quarantined lines and proposed changes.
//!
//! Quarantined lines are shown here and nowhere else, with secrets masked and invisible characters
//! escaped.

use std::process::ExitCode;

use serde::Serialize;

use super::{GlobalArgs, ui::Ui};
use crate::{
    compaction::review::{QuarantinedLine, ReviewContradiction, ReviewProposal, ReviewQueue},
    memory::decision::Verdict,
    operations::{
        error::CommandResult,
        review::{
            queue::{
                CONTRADICTION, NO_CHANGE, ReviewEntry, STALE, SourceLine, UNACCEPTABLE,
                change_kind, entries, is_unacceptable, load_queue, retain_ids,
            },
            verdicts::{
                UnacceptableEntry, accept, edit, record_verdict, remove_unacceptable,
                retain_decided,
            },
        },
        workspace::{Invocation, MemoryRoot, require_writer},
    },
};

/// The kind of a file in conflict with a store, as JSON names it.
const CONFLICT: &str = "conflict";

const CONFLICT_HINT: &str = "of a conflict, `memoird review accept ID` takes the store's version and saves yours, and \
                             `refuse ID` publishes yours";

/// Accept, refuse, or edit quarantined lines and proposed changes
///
/// Quarantined lines are external text that reads like an instruction, text with hidden characters, and
/// memories that only external text supports. No file contains them until you accept them.
///
/// Proposed changes are updates to memories that you wrote or edited, if their log lines now say something
/// else; with `wisdom.review: manual`, also changes of WISDOM.md.
///
/// Contradictions are lines of curated files (`curated` in memoird.yaml) about which newer logs say something
/// else. Change the file, or refuse the contradiction.
///
/// Unsupported items are drafts of a model that their log lines do not support. They are listed, but cannot
/// be accepted.
///
/// Without a subcommand, asks about each entry on a terminal, and lists them otherwise.
#[derive(Debug, clap::Args)]
pub(super) struct ReviewArgs {
    #[command(subcommand)]
    verb: Option<ReviewCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum ReviewCommand {
    /// List the queue
    List {
        /// Also list what was decided before
        #[arg(long)]
        decided: bool,
    },
    /// Release quarantined lines and apply proposed changes
    Accept(ReviewSelection),
    /// Keep lines out permanently, drop proposed changes, and dismiss contradictions
    Refuse(ReviewSelection),
    /// Withdraw a decision, so that it waits again; use `undo` first for a change that was applied
    Reopen(ReviewSelection),
    /// Use your own words: for a change, they are written instead; for a line, they become an entry of
    /// today's log, and the line stays out
    Edit {
        /// The id in the list
        id: String,
        /// Your words; for a change of WISDOM.md, "Heading: text"
        text: String,
    },
}

/// Selects parts of the queue.
#[derive(Debug, clap::Args)]
struct ReviewSelection {
    /// The ids in the list; a log (2026-04-02) selects all of its lines
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// Everything in the list
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// With --all: only those with this reason (as in the list)
    #[arg(long, value_name = "REASON", requires = "all")]
    why: Option<String>,
}

/// What `--json` prints; a document of `schema/review.schema.json`.
#[derive(Debug, Serialize)]
struct ReviewReport {
    /// The listed or decided entries.
    items: Vec<ReviewEntry>,
    /// The decision; missing for a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<&'static str>,
}

pub(super) fn run(global: &GlobalArgs, args: &ReviewArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root_to_write(global, ui)?;
    let decided = matches!(
        &args.verb,
        Some(ReviewCommand::List { decided: true } | ReviewCommand::Reopen(_))
    );
    let mut queue = load_queue(&root, decided)?;
    match &args.verb {
        None if ui.is_interactive() => return review_interactively(&call, &root, &queue, ui),
        None | Some(ReviewCommand::List { .. }) => {
            list(&root, &queue, ui);
        }
        Some(ReviewCommand::Accept(selection)) if selects_conflicts(selection)? => {
            settle_conflicts(&call, &root, selection, true, ui)?;
        }
        Some(ReviewCommand::Refuse(selection)) if selects_conflicts(selection)? => {
            settle_conflicts(&call, &root, selection, false, ui)?;
        }
        Some(ReviewCommand::Accept(selection)) => {
            retain_selected(&mut queue, selection)?;
            if selection.all {
                warn_of_skipped(&remove_unacceptable(&mut queue), ui);
            }
            accept(&call, &root, &queue)?;
            show_done(&queue, "accepted", ui);
        }
        Some(ReviewCommand::Refuse(selection)) => {
            retain_selected(&mut queue, selection)?;
            record_verdict(&call, &root, &queue, Some(Verdict::Refused))?;
            show_done(&queue, "refused", ui);
        }
        Some(ReviewCommand::Reopen(selection)) => {
            retain_decided(&mut queue);
            retain_selected(&mut queue, selection)?;
            record_verdict(&call, &root, &queue, None)?;
            show_done(&queue, "reopened", ui);
        }
        Some(ReviewCommand::Edit { id, text }) => {
            let ids = vec![id.clone()];
            retain_selected(&mut queue, &ReviewSelection { ids, all: false, why: None })?;
            warn_of_secret(&root, text, ui);
            edit(&call, &root, &queue, text)?;
            show_done(&queue, "edited", ui);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether the selected entries are files in conflict with a store, which are settled by themselves.
#[cfg(feature = "fleet")]
fn selects_conflicts(selection: &ReviewSelection) -> CommandResult<bool> {
    let count = selection.ids.iter().filter(|it| super::bundle::is_conflict_id(it)).count();
    if count > 0 && count < selection.ids.len() {
        return Err(crate::operations::error::CommandError::usage(
            "settle files in conflict by themselves, in a call of their own",
        ));
    }
    Ok(count > 0)
}

#[cfg(feature = "fleet")]
fn settle_conflicts(
    call: &Invocation,
    root: &MemoryRoot,
    selection: &ReviewSelection,
    takes_theirs: bool,
    ui: &Ui,
) -> CommandResult<()> {
    require_writer(call, root)?;
    let items = super::bundle::settle_conflicts(call, root, &selection.ids, takes_theirs, ui)?;
    let done = if takes_theirs { "accepted" } else { "refused" };
    if ui.is_json() {
        ui.json(&ReviewReport { items, done: Some(done) });
        return Ok(());
    }
    let version = if takes_theirs { "the store's" } else { "yours" };
    for item in &items {
        ui.success(format!("{}: {version}", item.path));
    }
    Ok(())
}

#[cfg(not(feature = "fleet"))]
#[expect(clippy::unnecessary_wraps, reason = "the other one refuses a mixed selection")]
fn selects_conflicts(_: &ReviewSelection) -> CommandResult<bool> {
    Ok(false)
}

#[cfg(not(feature = "fleet"))]
#[expect(clippy::unnecessary_wraps, reason = "the other one may fail")]
fn settle_conflicts(
    _: &Invocation,
    _: &MemoryRoot,
    _: &ReviewSelection,
    _: bool,
    _: &Ui,
) -> CommandResult<()> {
    Ok(())
}

#[cfg(feature = "fleet")]
fn conflict_entries(root: &MemoryRoot) -> Vec<ReviewEntry> {
    super::bundle::conflict_entries(root)
}

#[cfg(not(feature = "fleet"))]
fn conflict_entries(_: &MemoryRoot) -> Vec<ReviewEntry> {
    Vec::new()
}

/// Removes everything from the queue that was not selected.
fn retain_selected(queue: &mut ReviewQueue, selection: &ReviewSelection) -> CommandResult<()> {
    if selection.all {
        if let Some(why) = &selection.why {
            queue.lines.retain(|it| it.reasons.contains(why));
            queue.changes.retain(|it| why == change_kind(&it.change));
            queue.contradictions.retain(|_| why == CONTRADICTION);
        }
        return Ok(());
    }
    retain_ids(queue, &selection.ids)
}

/// Warns about what is not accepted of a batch: each change that came too late, and how many others.
fn warn_of_skipped(skipped: &[UnacceptableEntry], ui: &Ui) {
    for stale in skipped.iter().filter(|it| it.why == STALE) {
        ui.warn(format!("skipped {}: {STALE}", stale.id));
    }
    for why in [UNACCEPTABLE, NO_CHANGE] {
        let count = skipped.iter().filter(|it| it.why == why).count();
        if count > 0 {
            ui.warn(format!("skipped {count}: {why}"));
        }
    }
}

fn warn_of_secret(root: &MemoryRoot, text: &str, ui: &Ui) {
    if root.rules.mask_secrets(text) != text {
        ui.warn("the text contains a secret, which is masked");
    }
}

/// Asks about each entry of the queue.
fn review_interactively(
    call: &Invocation,
    root: &MemoryRoot,
    queue: &ReviewQueue,
    ui: &Ui,
) -> CommandResult {
    let ReviewQueue { lines, changes, contradictions } = queue;
    let conflicts = conflict_entries(root);
    for it in &conflicts {
        show(it, ui);
    }
    if !conflicts.is_empty() {
        ui.note(CONFLICT_HINT);
    }
    if lines.is_empty() && changes.is_empty() && contradictions.is_empty() {
        ui.note("nothing to review");
        return Ok(ExitCode::SUCCESS);
    }
    require_writer(call, root)?;
    let none = ReviewQueue::default;
    let line = |it: &QuarantinedLine| ReviewQueue { lines: vec![it.clone()], ..none() };
    let change = |it: &ReviewProposal| ReviewQueue { changes: vec![it.clone()], ..none() };
    let contradiction =
        |it: &ReviewContradiction| ReviewQueue { contradictions: vec![it.clone()], ..none() };
    let items = lines.iter().map(line).chain(changes.iter().map(change));
    let all: Vec<ReviewQueue> = items.chain(contradictions.iter().map(contradiction)).collect();
    for (i, one) in all.iter().enumerate() {
        let Some(item) = entries(one).pop() else { continue };
        ui.note(format!("\n{} of {}", i + 1, all.len()));
        show(&item, ui);
        loop {
            let answer = ui.prompt("accept, refuse, edit, skip, quit? [a/r/e/s/q]");
            match answer.as_deref() {
                Some("a" | "accept")
                    if one.changes.iter().any(|it| is_unacceptable(&it.change)) =>
                {
                    ui.warn(UNACCEPTABLE);
                    continue;
                }
                Some("a" | "accept") if !one.contradictions.is_empty() => {
                    ui.warn(NO_CHANGE);
                    continue;
                }
                Some("a" | "accept") => accept(call, root, one)?,
                Some("r" | "refuse") => record_verdict(call, root, one, Some(Verdict::Refused))?,
                Some("e" | "edit") => {
                    let Some(text) = ui.prompt("your text:") else { continue };
                    warn_of_secret(root, &text, ui);
                    if let Err(error) = edit(call, root, one, &text) {
                        ui.warn(error);
                        continue;
                    }
                }
                Some("s" | "skip" | "") => {}
                Some("q" | "quit") | None => return Ok(ExitCode::SUCCESS),
                Some(_) => continue,
            }
            break;
        }
    }
    ui.note("`memoird compact` (or the daemon) updates the summaries; `memoird review reopen` withdraws a decision");
    Ok(ExitCode::SUCCESS)
}

fn list(root: &MemoryRoot, queue: &ReviewQueue, ui: &Ui) {
    let mut items = entries(queue);
    items.extend(conflict_entries(root));
    if ui.is_json() {
        ui.json(&ReviewReport { items, done: None });
        return;
    }
    if items.is_empty() {
        ui.note("nothing to review");
        return;
    }
    for item in &items {
        show(item, ui);
    }
    let waits = match items.iter().filter(|it| it.verdict.is_none()).count() {
        0 => return ui.note("nothing to review; `memoird review reopen ID…` withdraws a decision"),
        count => format!("{count} to review"),
    };
    ui.note(format!(
        "{waits}: `memoird review accept ID…`, `refuse ID…`, `edit ID TEXT`, or all: `accept --all`"
    ));
    if items.iter().any(|it| it.what == CONFLICT) {
        ui.note(CONFLICT_HINT);
    }
}

fn show(item: &ReviewEntry, ui: &Ui) {
    let place = match item.line {
        Some(line) => format!("{}:{line}", item.path),
        None => item.path.clone(),
    };
    let origin = item.origin.map(|it| format!(", {it}")).unwrap_or_default();
    let verdict = item.verdict.map(|it| format!(" – {it}")).unwrap_or_default();
    let run = item.run.map(|it| format!(", run {it}")).unwrap_or_default();
    let by = item.engine.as_ref().map(|it| format!(", rejected draft of {it}{run}"));
    let by = by.unwrap_or_default();
    ui.heading(format!("{}  {place}{origin}{by}: {}{verdict}", item.id, item.why.join(", ")));
    if let Some(since) = item.since {
        show_text(&format!("{} line {} says: ", item.path, item.line.unwrap_or(0)), &item.text, ui);
        for SourceLine { address, text } in &item.source_lines {
            show_text(&format!("since {since} the logs say: "), &format!("{text} [{address}]"), ui);
        }
        return;
    }
    if item.acceptable == Some(false) {
        ui.data("  cannot be accepted: `refuse` it, or `edit` it to write it in your own words");
    }
    if item.stale {
        ui.data(format!("  stale: {STALE}"));
    }
    match &item.before {
        Some(before) => {
            show_text("now: ", before, ui);
            show_text("new: ", &item.text, ui);
        }
        None => show_text("", &item.text, ui),
    }
    for SourceLine { address, text } in &item.source_lines {
        ui.data(format!("  of {address}: {}", text.trim()));
    }
    if let (Some(sources), []) = (&item.sources, &item.source_lines[..]) {
        ui.data(format!("  of {sources}"));
    }
}

/// Shows a text of several lines, indented below its label.
fn show_text(label: &str, text: &str, ui: &Ui) {
    for (i, line) in text.trim().lines().filter(|it| !it.trim().is_empty()).enumerate() {
        let label = if i == 0 { label.to_owned() } else { " ".repeat(label.len()) };
        ui.data(format!("  {label}{line}"));
    }
}

fn show_done(decided: &ReviewQueue, what: &'static str, ui: &Ui) {
    let items = entries(decided);
    if ui.is_json() {
        ui.json(&ReviewReport { items, done: Some(what) });
        return;
    }
    ui.success(format!("{what}: {}", items.len()));
    let is_item = |it: &ReviewProposal| change_kind(&it.change) == "item";
    let has_dependents = !decided.lines.is_empty() || decided.changes.iter().any(is_item);
    if what == "accepted" && has_dependents {
        ui.note("`memoird compact` (or the daemon) updates what is derived from it");
    }
}
