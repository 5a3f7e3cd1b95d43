//! `memoird compact`: runs all jobs that are due.

mod explain;
mod model_preview;
mod preview;
mod report;

use std::{collections::HashMap, process::ExitCode};

use chrono::NaiveDate;

use self::report::{Requested, RequestedPeriod, exit_code, show_report};
use super::{GlobalArgs, embed_lines::embed_new_lines, ui::Ui};
use crate::{
    compaction::{
        self, RunOutcome,
        integrity::vanished_files,
        plan::{RedoFrom, Selection},
        report::{DamagedFile, RunReport},
        up_to_date,
    },
    config::settings::Keep,
    memory::{
        item::Tier,
        period::{Grain, Period},
    },
    operations::{
        compact::compact_due,
        error::{CommandError, CommandResult},
        run_lock::wait_for_run_lock,
        workspace::{Invocation, MemoryRoot, require_writer},
    },
    recall::search::{self, time::date_words::DateWords},
    store::db::lineage::Lineage,
};

/// Run everything that is due now
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct CompactArgs {
    /// Only this tier
    #[arg(value_enum)]
    tier: Option<TierArg>,
    /// Only this day, week, or month (2026-04-02, 2026-W14, 2026-04)
    #[arg(long, value_name = "PERIOD")]
    period: Option<Period>,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the prompts for the model, and send nothing
    #[arg(long, conflicts_with = "dry_run")]
    show_prompt: bool,
    /// Show how the extractive engine chooses for this week or month, or the bullets of WISDOM.md: the value of
    /// each sentence, what was chosen, and why others were left out; changes nothing
    #[arg(long, value_name = "PERIOD|WISDOM.md", conflicts_with_all = ["tier", "period", "dry_run", "show_prompt", "force", "redo"])]
    explain: Option<explain::ExplainTarget>,
    /// Run even if the period is not due, is stuck or was undone, or its file was not written by memoird
    /// (the old text stays in the history). A week includes the undone typed memories of its days;
    /// `compact extract` does only the days; force a month and its wisdom separately. Needs --period, except
    /// for `compact wisdom`, which chooses the bullets of WISDOM.md again
    #[arg(long)]
    force: bool,
    /// Redo summaries, wisdom and typed memories that another engine wrote; if that takes model calls,
    /// show the cost first and ask
    #[arg(long)]
    redo: bool,
    /// With --redo: do not ask for confirmation
    #[arg(long, short = 'y', requires = "redo")]
    yes: bool,
    /// Go on although many known files are missing or a file is cut short, and accept that as permanent
    #[arg(long)]
    accept_missing: bool,
    /// With --redo: only periods that end on or after this day (2026-04-02, "last month")
    #[arg(long, value_name = "DATE", requires = "redo")]
    since: Option<DateWords>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum TierArg {
    Extract,
    Weekly,
    Monthly,
    Wisdom,
}

impl TierArg {
    fn tier(self) -> Tier {
        match self {
            Self::Extract => Tier::Extract,
            Self::Weekly => Tier::Weekly,
            Self::Monthly => Tier::Monthly,
            Self::Wisdom => Tier::Wisdom,
        }
    }
}

pub(super) fn run(global: &GlobalArgs, args: &CompactArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root_to_write(global, ui)?;
    args.require_matching_period()?;
    let today = call.now.with_timezone(&root.settings.zone.name.0).date_naive();
    let mut selection = args.selection(today);
    if args.force && args.period.is_none() {
        selection.period = Some(args.default_period(&root, today)?);
    }
    if let Some(target) = args.explain {
        return explain::show_explanation(&call, &root, target, ui);
    }
    let engine = root.engine(&call)?;
    if args.show_prompt {
        return model_preview::show_prompts(&call, &root, &selection, ui);
    }
    if args.dry_run {
        preview::dry_run(&call, &root, &selection, engine.id(), ui)?;
        return Ok(ExitCode::SUCCESS);
    }
    require_writer(&call, &root)?;
    root.require_memory_folder()?;
    if args.redo && !args.yes && !model_preview::confirm_cost(&call, &root, &selection, ui)? {
        ui.note("nothing was changed");
        return Ok(ExitCode::SUCCESS);
    }
    wait_for_run_lock(&root, ui)?;
    // Replies to a batch that the daemon sent may have arrived since.
    if let Some(batching) = engine.batching()
        && let Err(error) = batching.fetch_batched()
    {
        ui.warn(format!("cannot fetch the replies of a batch: {error}"));
    }
    if up_to_date::is_full_selection(&selection)
        && let Some(current) = up_to_date::check(
            &root.vault,
            &root.settings,
            engine.id(),
            selection.open_week,
            call.now,
        )
    {
        let requested = Requested { tier: None, period: None };
        show_report(&RunReport::default(), &current.plan, None, current.has_logs, requested, ui);
        embed_new_lines(&call, &root, None, ui);
        return Ok(ExitCode::SUCCESS);
    }
    if selection.accept_missing {
        show_accepted_damage(&root, ui)?;
    }
    let outcome = compact_due(&call, &root, engine.as_ref(), &selection, ui)?;
    let RunOutcome { report, snapshot: view, plan } = outcome;
    if report.pruned > 0
        && let Keep::For(span) = root.settings.settings.history.keep
    {
        ui.detail(format!("dropped {} versions older than {span}", report.pruned));
    }
    let inventory = &view.inventory;
    let period = args.period.map(|it| RequestedPeriod::new(it, inventory));
    let requested = Requested { tier: args.tier.map(TierArg::tier), period };
    let is_part = !up_to_date::is_full_selection(&selection);
    // What else is due, which the user did not ask for.
    let all = (is_part && (ui.is_json() || report.jobs.is_empty())).then(|| {
        let whole = Selection::default();
        compaction::plan_snapshot(&view, &root.settings, engine.id(), &whole, call.now)
    });
    show_report(&report, &plan, all.as_ref(), !inventory.logs.is_empty(), requested, ui);
    // If this fails, the next search indexes the files or reports the error.
    drop(search::update_index(&root.vault, inventory));
    embed_new_lines(&call, &root, Some(inventory), ui);
    warn_of_held_work(&report, ui);
    Ok(exit_code(&report, &plan))
}

/// How many files that were not read are named.
const UNREAD_NAMED_MAX: usize = 5;

/// Warns about files that were not written or not read, and about a model that is unavailable.
fn warn_of_held_work(report: &RunReport, ui: &Ui) {
    for held in &report.held {
        ui.warn(format!("{} {}", held.path, held.reason));
    }
    for unread in report.unread.iter().take(UNREAD_NAMED_MAX) {
        let DamagedFile { path, reason } = unread;
        // Most reasons name the file.
        let is_named = reason.contains(&path[..]);
        let what = if is_named { reason.clone() } else { format!("{path}: {reason}") };
        ui.warn(format!("not read: {what}"));
    }
    if let more @ 1.. = report.unread.len().saturating_sub(UNREAD_NAMED_MAX) {
        ui.warn(format!("not read: {more} more; `memoird status` names them"));
    }
    if let Some(why) = &report.model {
        let waits =
            if report.left > 0 || report.unanswered > 0 { "; the remaining jobs wait" } else { "" };
        ui.warn(format!("{why}{waits}"));
    }
}

/// Lists the missing and damaged files that `--accept-missing` accepts.
fn show_accepted_damage(root: &MemoryRoot, ui: &Ui) -> CommandResult<()> {
    let Some(lineage) = Lineage::open_existing(&root.vault.layout().database())? else {
        return Ok(());
    };
    let damaged = compaction::read_snapshot(&root.vault, Some(&lineage))?.record.damaged;
    for path in damaged.keys() {
        ui.note(format!("accepted as it is: {path}"));
    }
    let decisions_damage = vanished_files::decisions_damage(&root.vault)?;
    if let Some(why) = &decisions_damage {
        ui.note(format!("decisions accepted as they are: {why}"));
    }
    match vanished_files::find_vanished(&root.vault, &lineage)? {
        Some(missing) => ui.note(format!("accepted as permanently deleted: {missing}")),
        None if !damaged.is_empty() || decisions_damage.is_some() => {}
        None => ui.note("nothing to accept: no larger number of files is missing"),
    }
    Ok(())
}

impl CompactArgs {
    /// Refuses a period that the tier never has: a month for `weekly`.
    fn require_matching_period(&self) -> CommandResult<()> {
        let (Some(tier), Some(period)) = (self.tier, self.period) else { return Ok(()) };
        let (width, grain) = match tier {
            TierArg::Weekly => ("weeks", Grain::Week),
            TierArg::Monthly => ("months", Grain::Month),
            TierArg::Wisdom if period.grain() == Grain::Week => ("months", Grain::Month),
            // Days are named by their week or month, too; bullets of WISDOM.md by a day, entries by a month.
            TierArg::Extract | TierArg::Wisdom => return Ok(()),
        };
        if period.grain() == grain {
            return Ok(());
        }
        let name = tier.tier();
        let error = CommandError::usage(format!("`{name}` is about {width}, and {period} is none"));
        let of_period = format!("memoird compact --period {period}");
        Err(match grain {
            Grain::Week if period.grain() == Grain::Day => error.hints_from(
                period.parent().map(|week| format!("memoird compact {name} --period {week}")),
            ),
            _ => error.hint(of_period),
        })
    }

    /// Returns the period that `--force` means without one: for `wisdom` the day of the newest log.
    fn default_period(&self, root: &MemoryRoot, today: NaiveDate) -> CommandResult<Period> {
        let inventory = root.vault.scan(&HashMap::new())?.inventory;
        let Some(newest) = inventory.newest_day(today) else {
            return Err(CommandError::usage("there are no logs to compact").hint("memoird status"));
        };
        if matches!(self.tier, Some(TierArg::Wisdom)) {
            return Ok(Period::containing(Grain::Day, newest));
        }
        let tier = self.tier.map(|it| format!("{} ", it.tier().name())).unwrap_or_default();
        let period = match self.tier {
            Some(TierArg::Monthly) => Period::containing(Grain::Month, newest),
            Some(TierArg::Extract) => Period::containing(Grain::Day, newest),
            _ => Period::containing(Grain::Week, newest),
        };
        Err(CommandError::usage("`--force` needs to know which period")
            .hint(format!("memoird compact {tier}--period {period} --force")))
    }

    fn selection(&self, today: NaiveDate) -> Selection {
        let tier = self.tier.map(TierArg::tier);
        Selection {
            tiers: tier.into_iter().collect(),
            period: self.period,
            force: self.force,
            redo: self.redo.then_some(match &self.since {
                Some(since) => RedoFrom::Date(since.days(today).0),
                None => RedoFrom::Beginning,
            }),
            accept_missing: self.accept_missing,
            ..Selection::default()
        }
    }
}
