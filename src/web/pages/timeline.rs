//! Timeline: years, months, weeks, and days as bars, with what became of each.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike as _, NaiveDate, TimeDelta, Utc};
use maud::{Markup, html};

use super::size;
use crate::{
    compaction::{
        self, RootSnapshot,
        plan::{CompactionPlan, Selection, WaitCause},
        up_to_date,
    },
    engine::configured,
    memory::{
        item::Tier,
        period::{Grain, Period},
    },
    operations::{
        error::{CommandError, CommandResult},
        format::counted,
        workspace::{Invocation, MemoryRoot},
    },
    privacy::PrivacyRules,
    store::{
        db::lineage::{Lineage, jobs::JobMetrics},
        fs::inventory::Inventory,
    },
    web::{
        address::PageAddress,
        context::PageContext,
        layout::PageContent,
        svg::{self, Bar},
    },
};

/// The files of a folder and what became of each period.
pub(in crate::web) struct FolderTimeline {
    snapshot: RootSnapshot,
    plan: CompactionPlan,
    /// When the plan may become another although no file changes.
    pub(in crate::web) valid_until: DateTime<Utc>,
    /// What the last job of each tier and period read and wrote.
    metrics: BTreeMap<(Tier, Period), JobMetrics>,
    first_day: Option<NaiveDate>,
    last_day: Option<NaiveDate>,
}

/// What became of one period.
#[derive(Clone, Debug, Default)]
pub(super) struct PeriodState {
    pub(super) logs: usize,
    /// Bytes of the logs.
    pub(super) volume: u64,
    /// Characters of the summary; `None` if there is none.
    pub(super) summary_chars: Option<usize>,
    /// Lines that reached no item, and items, by the last job.
    left_out: Option<(u32, u32)>,
    /// Statements that its days added to memories, by their last jobs.
    statements: u32,
    /// The share of the logs' characters in the summary.
    share: Option<f64>,
    /// The class of the state, and its words.
    pub(super) state: Option<(&'static str, String)>,
}

impl FolderTimeline {
    /// Reads the files and the database of a folder.
    pub(in crate::web) fn read(call: &Invocation, root: &MemoryRoot) -> CommandResult<Self> {
        let lineage = Lineage::open_existing(&root.vault.layout().database())?;
        let (snapshot, receipts) =
            compaction::read_snapshot_with_receipts(&root.vault, lineage.as_ref())?;
        let engine = configured::engine_id(&root.settings.settings);
        let selection = Selection::default();
        let plan =
            compaction::plan_snapshot(&snapshot, &root.settings, &engine, &selection, call.now);
        let mut metrics = BTreeMap::new();
        let mut newest = BTreeMap::new();
        for job in receipts {
            let key = (job.tier, job.period);
            if let Some(receipt) = job.receipt.filter(|_| newest.get(&key) < Some(&job.id)) {
                newest.insert(key, job.id);
                metrics.insert(key, receipt.metrics);
            }
        }
        let inventory = &snapshot.inventory;
        let days = || inventory.logs.keys().map(crate::memory::address::Stem::date);
        let (first_day, last_day) = (days().min(), days().max());
        let valid_until = up_to_date::plan_valid_until(&plan, inventory, &root.settings, call.now);
        Ok(Self { snapshot, plan, valid_until, metrics, first_day, last_day })
    }

    /// Returns the files.
    pub(in crate::web) fn inventory(&self) -> &Inventory {
        &self.snapshot.inventory
    }

    /// Returns the files with what is recorded of them, and what is due.
    pub(in crate::web) fn snapshot_and_plan(&self) -> (&RootSnapshot, &CompactionPlan) {
        (&self.snapshot, &self.plan)
    }

    pub(super) fn state_of(&self, period: Period) -> PeriodState {
        let tier = Tier::of_period(period);
        let summaries = match period.grain() {
            Grain::Month => &self.inventory().monthly,
            _ => &self.inventory().weekly,
        };
        let logs = self.inventory().logs_of(period);
        let (logs, volume) =
            logs.fold((0, 0), |(count, sum), (_, log)| (count + 1, sum + log.stamp.size));
        let metrics = self.metrics.get(&(tier, period));
        let summary = summaries.get(&period).filter(|_| period.grain() != Grain::Day);
        let waiting = self.plan.waiting.iter().filter(|it| it.tier == tier && it.period == period);
        let mut state = waiting.filter_map(|it| match &it.cause {
            WaitCause::Stuck(why) | WaitCause::Damaged(why) => {
                Some(("stuck", format!("stuck: {}", PrivacyRules::mask_message(why))))
            }
            _ => None,
        });
        let due = self.plan.jobs.iter().find(|it| it.tier == tier && it.period == period);
        let state = state.next().or_else(|| due.map(|it| ("due", format!("due: {}", it.reason))));
        PeriodState {
            logs,
            volume,
            summary_chars: summary.map(|it| it.chars),
            left_out: metrics.map(|it| (it.uncovered, it.items)),
            statements: self.statements_of(period),
            share: summary.and_then(|it| share(it.chars as u64, volume)),
            state,
        }
    }

    /// Returns how many statements the days of a period added to memories.
    fn statements_of(&self, period: Period) -> u32 {
        let days = period.first().iter_days().take_while(|it| *it < period.end());
        let jobs = days.map(|it| (Tier::Extract, Period::containing(Grain::Day, it)));
        jobs.filter_map(|it| Some(self.metrics.get(&it)?.items)).sum()
    }

    /// Returns the years that have a log or a summary.
    fn years(&self) -> BTreeSet<i32> {
        let logs = self.inventory().logs.keys().map(crate::memory::address::Stem::date);
        let summaries = self.inventory().weekly.keys().chain(self.inventory().monthly.keys());
        // A week belongs to the year of its Thursday, which names it.
        let days = summaries.map(|it| match it.grain() {
            Grain::Week => it.first() + TimeDelta::days(3),
            _ => it.first(),
        });
        logs.chain(days).map(|it| it.year()).collect()
    }

    /// Returns whether a day without a log lies between days with one.
    fn is_gap(&self, day: NaiveDate) -> bool {
        let is_inside = self.first_day < Some(day) && Some(day) < self.last_day;
        is_inside && self.inventory().logs_of(Period::containing(Grain::Day, day)).next().is_none()
    }

    /// Returns the bar of a period.
    pub(super) fn bar(&self, context: &PageContext, period: Period, label: String) -> Bar {
        let state = self.state_of(period);
        let is_gap = period.grain() == Grain::Day && self.is_gap(period.first());
        let mark = state.state.as_ref().map(|it| it.0).or(is_gap.then_some("gap"));
        let has_page = state.logs > 0 || state.summary_chars.is_some();
        let words = if is_gap { "no log".to_owned() } else { state.words() };
        Bar {
            label,
            title: format!("{period}: {words}"),
            href: if has_page { context.href(&PageAddress::Period(period)) } else { None },
            volume: state.volume,
            covered: state.share,
            mark,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share to be drawn")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl PeriodState {
    /// Describes the summary: its items and its length.
    fn summary_words(&self) -> String {
        let Some(chars) = self.summary_chars else { return "–".to_owned() };
        match self.left_out {
            Some((_, items)) if items > 0 => {
                format!("{}, {chars} characters", counted(items as usize, "item", "items"))
            }
            _ => format!("{chars} characters"),
        }
    }

    /// Describes the period in words.
    pub(super) fn words(&self) -> String {
        let logs = match self.logs {
            0 => "no log".to_owned(),
            1 => format!("1 log, {}", size(self.volume)),
            logs => format!("{logs} logs, {}", size(self.volume)),
        };
        let summary = match self.summary_chars {
            Some(chars) => format!(", summary of {chars} characters"),
            None => String::new(),
        };
        let left_out = match self.left_out {
            Some((lines, _)) if self.summary_chars.is_some() => format!(", {lines} lines left out"),
            _ => String::new(),
        };
        let statements = match self.statements {
            0 => String::new(),
            count => {
                format!(", {} in memories", counted(count as usize, "statement", "statements"))
            }
        };
        let state = self.state.as_ref().map(|it| format!(", {}", it.1)).unwrap_or_default();
        format!("{logs}{summary}{left_out}{statements}{state}")
    }
}

/// Returns the explanation of the colors.
fn legend() -> Markup {
    html! {
        ul .legend {
            li { span .key.log {} " volume of logs" }
            li { span .key.covered {} " share kept in the summary" }
            li { span .key.due {} " due" }
            li { span .key.stuck {} " stuck" }
            li { span .key.gap {} " day without a log" }
        }
    }
}

pub(super) fn years(context: &PageContext) -> CommandResult<PageContent> {
    let timeline = context.timeline()?;
    let body = html! {
        @match (timeline.first_day, timeline.last_day) {
            (Some(first), Some(last)) => {
                p { (timeline.inventory().logs.len()) " logs, from " (first) " to " (last) "." }
                (legend())
                @for year in timeline.years().into_iter().rev() {
                    section aria-labelledby=(format!("y{year}")) {
                        h2 id=(format!("y{year}")) { (context.link(&PageAddress::Timeline(Some(year)), year)) }
                        (months(context, &timeline, year))
                    }
                }
            }
            _ => p { "There are no logs yet. " code { "memoird log \"…\"" } " writes the first one." },
        }
    };
    Ok(PageContent::new("Timeline", body))
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn months(context: &PageContext, timeline: &FolderTimeline, year: i32) -> Markup {
    let bars: Vec<Bar> = (1..)
        .zip(MONTHS)
        .filter_map(|(month, name)| {
            let first = NaiveDate::from_ymd_opt(year, month, 1)?;
            let period = Period::containing(Grain::Month, first);
            Some(timeline.bar(context, period, name.to_owned()))
        })
        .collect();
    svg::bars(&format!("The months of {year}"), &bars, 44.0)
}

pub(super) fn year(context: &PageContext, year: i32) -> CommandResult<PageContent> {
    let timeline = context.timeline()?;
    let years = timeline.years();
    if !years.contains(&year) {
        return Err(
            CommandError::usage(format!("there are no logs of {year}")).hint("memoird status")
        );
    }
    let months_of_year: Vec<Period> = (1..=12)
        .filter_map(|month| NaiveDate::from_ymd_opt(year, month, 1))
        .map(|first| Period::containing(Grain::Month, first))
        .collect();
    let mut bars = Vec::new();
    for month in &months_of_year {
        for (i, week) in month.weeks().into_iter().enumerate() {
            let name = MONTHS.get(month.first().month0() as usize).copied().unwrap_or_default();
            let label = if i == 0 { name.to_owned() } else { String::new() };
            bars.push(timeline.bar(context, week, label));
        }
    }
    let body = html! {
        (legend())
        (svg::bars(&format!("The weeks of {year}"), &bars, 18.0))
        h2 { "Months and weeks" }
        div .table role="region" aria-label="Months and weeks" tabindex="0" {
            table {
                thead { tr { th scope="col" { "Period" } th scope="col" { "Logs" } th scope="col" { "Size" } th scope="col" { "In memories" } th scope="col" { "Summary" } th scope="col" { "Lines left out" } th scope="col" { "State" } } }
                tbody {
                    @for month in &months_of_year {
                        @let has_logs = month.weeks().iter().any(|it| timeline.state_of(*it).logs > 0);
                        @if has_logs || timeline.state_of(*month).logs > 0 {
                            (row(context, &timeline, *month))
                            @for week in month.weeks() {
                                @if timeline.state_of(week).logs > 0 { (row(context, &timeline, week)) }
                            }
                        }
                    }
                }
            }
        }
        (neighbours(context, "Years", &[years.range(..year).next_back(), years.range(year + 1..).next()].map(|it| {
            it.map(|it| (PageAddress::Timeline(Some(*it)), it.to_string()))
        })))
    };
    Ok(PageContent::new(year.to_string(), body))
}

fn row(context: &PageContext, timeline: &FolderTimeline, period: Period) -> Markup {
    let state = timeline.state_of(period);
    html! {
        tr class=(if period.grain() == Grain::Month { "month" } else { "week" }) {
            th scope="row" { (context.link(&PageAddress::Period(period), period.to_string())) }
            td .number { (state.logs) }
            td .number { (size(state.volume)) }
            td .number { @match state.statements { 0 => "–", count => (counted(count as usize, "statement", "statements")) } }
            td { (state.summary_words()) }
            td .number { @match state.left_out { Some((lines, _)) => (lines), None => "–" } }
            td { @if let Some((class, words)) = &state.state { span class=(format!("tag {class}")) { (words) } } }
        }
    }
}

/// Returns links to the page before and the page after.
pub(super) fn neighbours(
    context: &PageContext,
    name: &str,
    pages: &[Option<(PageAddress, String)>; 2],
) -> Markup {
    html! {
        nav .neighbours aria-label=(name) {
            @if let [Some((page, label)), _] = pages { (context.link(page, format!("← {label}"))) }
            " "
            @if let [_, Some((page, label))] = pages { (context.link(page, format!("{label} →"))) }
        }
    }
}
