//! `memoird correct`: corrects an item, and updates the files above it.

use serde::Serialize;

use super::{GlobalArgs, error_report::exit_code_if_failed, ui::Ui};
use crate::{
    compaction::{RunOutcome, correct::CorrectionDraft, report::JobReport},
    memory::item::Tier,
    operations::{
        correct::{CorrectOptions, correct_item, items_of_same_source},
        error::CommandResult,
        workspace::{Invocation, MemoryRoot},
    },
    store::db::lineage::query::ItemLocation,
};

/// Correct an item, and update the summaries above it
///
/// TEXT replaces the text of the bullet, entry or memory. The citation stays unless TEXT ends with its
/// own. From then on the item is yours: memoird keeps it as it is, and updates the month of a week and the
/// entries of WISDOM.md that come from a month.
///
/// Memories and lines of WISDOM.md that come from the same log lines are written from the logs. They are not
/// changed, but listed with the command that corrects each.
#[derive(Debug, clap::Args)]
pub(super) struct CorrectArgs {
    /// A line of a weekly or monthly file or of WISDOM.md, or a typed memory
    /// (2026-W14:19, memory/monthly/2026-04.md:9, WISDOM.md:12)
    #[arg(value_name = "PATH:LINE")]
    target: String,
    /// The correct text
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,
    /// Leave what is derived from it to the next `compact`
    #[arg(long)]
    no_fold: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `--json` prints; a document of `schema/correct.schema.json`.
#[derive(Serialize)]
struct CorrectReport<'a> {
    path: &'a str,
    line: u32,
    before: &'a str,
    after: &'a str,
    citation: Option<String>,
    dry_run: bool,
    changed: bool,
    above: Vec<DependentFile>,
    same_source: Vec<SameSourceItem<'a>>,
    jobs: &'a [JobReport],
}

#[derive(Serialize)]
struct DependentFile {
    tier: &'static str,
    period: String,
}

/// An item that comes from the same log lines.
#[derive(Serialize)]
struct SameSourceItem<'a> {
    path: &'a str,
    line: u32,
    kind: &'static str,
}

pub(super) fn run(global: &GlobalArgs, args: &CorrectArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root_to_write(global, ui)?;
    let text = args.text.join(" ");
    if root.rules.mask_secrets(&text) != text {
        ui.warn("the text contains a secret, which is masked");
    }
    let options =
        CorrectOptions { update_dependents: !args.no_fold, dry_run: args.dry_run, seen: None };
    let (draft, outcome) = correct_item(&call, &root, &args.target, &text, options)?;
    let failed = outcome.as_ref().is_some_and(|it| it.report.failed > 0);
    // The item is corrected, whatever can be found out about others.
    let same_source = items_of_same_source(&root, &draft).unwrap_or_else(|error| {
        ui.warn(format!("cannot look for other items of these log lines: {error}"));
        Vec::new()
    });
    show(&root, &draft, args, outcome.as_ref(), &same_source, ui);
    Ok(exit_code_if_failed(failed))
}

fn show(
    root: &MemoryRoot,
    draft: &CorrectionDraft,
    args: &CorrectArgs,
    outcome: Option<&RunOutcome>,
    same_source: &[ItemLocation],
    ui: &Ui,
) {
    let jobs = outcome.map_or(&[][..], |it| &it.report.jobs);
    let (path, corrected) = (&draft.path, &draft.corrected);
    let line = corrected.line;
    let (before, after) =
        (root.rules.mask_secrets(&corrected.before), root.rules.mask_secrets(&corrected.after));
    let (before, after) = (&*before, &*after);
    if ui.is_json() {
        let above = draft.dependents.iter();
        ui.json(&CorrectReport {
            path,
            line,
            before,
            after,
            citation: corrected.citation.as_ref().map(ToString::to_string),
            dry_run: args.dry_run,
            changed: !draft.is_unchanged() && !args.dry_run,
            above: above
                .map(|(tier, period)| DependentFile {
                    tier: tier.name(),
                    period: period.to_string(),
                })
                .collect(),
            same_source: same_source
                .iter()
                .map(|it| SameSourceItem { path: &it.path, line: it.line, kind: it.kind.name() })
                .collect(),
            jobs,
        });
        return;
    }
    if draft.is_unchanged() {
        ui.note(format!("{path}:{line} already says that; nothing was changed"));
        return;
    }
    if outcome.is_none() || !ui.is_quiet() {
        ui.heading(format!("{path}:{line}"));
        for (sign, text, other) in [("-", before, after), ("+", after, before)] {
            for line in text.lines().filter(|line| !other.lines().any(|it| it == *line)) {
                ui.data(format!("{sign} {line}"));
            }
        }
    }
    let names: Vec<String> = draft
        .dependents
        .iter()
        .map(|(tier, period)| match tier {
            Tier::Wisdom => "the entries of WISDOM.md that come from months".to_owned(),
            _ => root.vault.layout().summary(*period),
        })
        .collect();
    let above = names.join(" and ");
    let Some(RunOutcome { report, plan, .. }) = outcome else {
        ui.note("nothing was changed");
        if !above.is_empty() {
            ui.note(format!("would also update what is derived from it: {above}"));
        }
        return;
    };
    ui.success("corrected; the item is yours now, and memoird will not change it");
    for job in &report.jobs {
        let what = job.path.as_deref().unwrap_or(job.tier);
        let line = match job.outcome {
            "written" => format!("{what} was updated"),
            "unchanged" => format!("{what} did not change"),
            other => format!("{what} {other}: {}", job.reason),
        };
        if matches!(job.outcome, "failed" | "parked") { ui.warn(line) } else { ui.note(line) }
    }
    if args.no_fold && !above.is_empty() {
        ui.note(format!("the next `memoird compact` updates {above}"));
    } else if !plan.due_after.is_empty() || (report.jobs.is_empty() && !draft.dependents.is_empty())
    {
        ui.note(format!("{above} will be updated when due; see `memoird status`"));
    }
    show_same_source(same_source, ui);
}

/// Says which other items have the same source, and how to correct them.
fn show_same_source(items: &[ItemLocation], ui: &Ui) {
    const SHOWN_MAX: usize = 5;
    if items.is_empty() {
        return;
    }
    ui.note("these say the same, from the same log lines, and were not corrected:");
    for item in items.iter().take(SHOWN_MAX) {
        ui.note(format!("  memoird correct {}:{} \"TEXT\"", item.path, item.line));
    }
    if let Some(more) = items.len().checked_sub(SHOWN_MAX).filter(|it| *it > 0) {
        ui.note(format!("  and {more} more; --json lists them"));
    }
}
