//! Jobs that are due, stuck, undone or failed, and the last run.

use std::collections::{BTreeMap, BTreeSet};

use chrono::Utc;
use chrono_tz::Tz;
use serde::Serialize;

use super::{
    DAILY,
    daemon::{local_time, rfc3339},
};
use crate::{
    compaction::{
        RootSnapshot,
        plan::{CompactionPlan, WaitCause},
        report,
    },
    memory::{item::Tier, joined, period::Period, wisdom::WisdomFile},
    store::{
        db::lineage::{
            Lineage, LineageError,
            jobs::{JobOutcome, JobRow},
        },
        fs::inventory::{Inventory, SummaryFile},
    },
};

#[derive(Serialize)]
pub(crate) struct TierReport {
    pub(crate) tier: &'static str,
    pub(crate) files: usize,
    pub(crate) chars: usize,
    pub(crate) newest: Option<String>,
    pub(crate) due: Vec<DueJob>,
    pub(crate) older_engine: usize,
}

#[derive(Serialize)]
pub(crate) struct DueJob {
    pub(crate) period: String,
    pub(crate) reason: String,
}

#[derive(Serialize)]
pub(crate) struct StuckJob {
    pub(crate) tier: &'static str,
    pub(crate) period: String,
    pub(crate) reason: String,
    /// Whether a file has to be mended first.
    #[serde(skip)]
    pub(crate) is_damaged: bool,
}

#[derive(Serialize)]
pub(crate) struct LastRunStatus {
    pub(crate) run: i64,
    pub(crate) trigger: String,
    pub(crate) started: String,
    pub(crate) ended: Option<String>,
    pub(crate) outcomes: BTreeMap<&'static str, usize>,
    /// How many of the unchanged jobs only read a day for typed memories.
    #[serde(skip)]
    pub(crate) quiet_days: usize,
    /// Amounts and dates in the log lines that a model's items cite.
    pub(crate) amounts: u32,
    /// How many of these amounts and dates the items contain.
    pub(crate) amounts_kept: u32,
}

#[derive(Serialize)]
pub(crate) struct NextDueJob {
    pub(crate) tier: &'static str,
    pub(crate) period: String,
    pub(crate) at: String,
    #[serde(skip)]
    pub(crate) shown: String,
}

pub(crate) fn tier_reports(
    inventory: &Inventory,
    plan: &CompactionPlan,
    log_chars: usize,
) -> Vec<TierReport> {
    let daily = TierReport {
        tier: DAILY,
        files: inventory.logs.len(),
        chars: log_chars,
        newest: inventory.logs.keys().map(|it| it.date().to_string()).next_back(),
        due: Vec::new(),
        older_engine: 0,
    };
    let mut tiers = vec![daily];
    let summaries = |files: &BTreeMap<_, SummaryFile>| {
        let chars = files.values().map(|it| it.chars).sum();
        (files.len(), chars, files.keys().next_back().map(ToString::to_string))
    };
    for tier in Tier::ALL {
        let (files, chars, newest) = match tier {
            Tier::Extract => {
                let memories = &inventory.memories;
                let chars = memories.iter().map(|it| it.body.chars().count()).sum();
                let newest = memories.iter().filter_map(|it| it.updated.or(it.created)).max();
                (memories.len(), chars, newest.map(|it| it.to_string()))
            }
            Tier::Weekly => summaries(&inventory.weekly),
            Tier::Monthly => summaries(&inventory.monthly),
            Tier::Wisdom => {
                let text = inventory.wisdom.as_deref();
                let newest = text.map(WisdomFile::parse);
                let newest = newest.and_then(|it| it.distilled().last().map(ToString::to_string));
                let chars = text.map_or(0, |it| joined::visible(it).chars().count());
                (usize::from(text.is_some()), chars, newest)
            }
        };
        let now = plan.jobs.iter().filter(|it| it.tier == tier);
        let now =
            now.map(|it| DueJob { period: it.period.to_string(), reason: it.reason.to_string() });
        let then = plan.due_after.iter().filter(|it| it.0 == tier);
        let then = then.map(|(_, period)| DueJob {
            period: period.to_string(),
            reason: "waits for its sources".to_owned(),
        });
        tiers.push(TierReport {
            tier: tier.name(),
            files,
            chars,
            newest,
            due: now.chain(then).collect(),
            older_engine: plan.other_engine.get(&tier).copied().unwrap_or(0),
        });
    }
    tiers
}

/// Returns the number of jobs that wait for logs which changed moments ago.
pub(crate) fn settling_jobs(plan: &CompactionPlan) -> usize {
    plan.waiting.iter().filter(|it| matches!(it.cause, WaitCause::BeingWritten(_))).count()
}

pub(crate) fn stuck_jobs(plan: &CompactionPlan) -> Vec<StuckJob> {
    let stuck = plan.waiting.iter().filter_map(|it| match &it.cause {
        WaitCause::Stuck(reason) | WaitCause::Damaged(reason) => Some(StuckJob {
            tier: it.tier.name(),
            period: it.period.to_string(),
            reason: reason.clone(),
            is_damaged: matches!(it.cause, WaitCause::Damaged(_)),
        }),
        _ => None,
    });
    stuck.collect()
}

/// Returns the undone jobs that wait, each once. The plan does not contain jobs whose sources were
/// removed by the undo; these are found by their last receipt.
pub(crate) fn undone_jobs(
    receipts: &[JobRow],
    view: &RootSnapshot,
    plan: &CompactionPlan,
) -> Vec<StuckJob> {
    let decisions = &view.inventory.decisions;
    let waiting = plan.waiting.iter().filter(|it| it.cause == WaitCause::Undone);
    let mut undone: BTreeSet<(Tier, Period)> = waiting.map(|it| (it.tier, it.period)).collect();
    let due: BTreeSet<(Tier, Period)> = plan
        .jobs
        .iter()
        .map(|it| (it.tier, it.period))
        .chain(plan.due_after.iter().copied())
        .chain(plan.waiting.iter().map(|it| (it.tier, it.period)))
        .collect();
    let refused = receipts.iter().filter(|job| {
        let is_skipped = job.receipt.as_ref().is_some_and(|it| it.outcome == JobOutcome::Skipped);
        is_skipped && decisions.is_undone(job.fingerprint)
    });
    undone.extend(refused.map(|it| (it.tier, it.period)).filter(|it| !due.contains(it)));
    let jobs = undone.into_iter().map(|(tier, period)| StuckJob {
        tier: tier.name(),
        period: period.to_string(),
        reason: WaitCause::Undone.to_string(),
        is_damaged: false,
    });
    jobs.collect()
}

/// Returns the jobs that failed when last tried and are still due.
pub(crate) fn failed_jobs(receipts: &[JobRow], plan: &CompactionPlan) -> Vec<StuckJob> {
    let failed = receipts.iter().filter_map(|job| {
        let receipt = job.receipt.as_ref().filter(|it| report::outcome_name(it) == "failed")?;
        let is_due = plan.jobs.iter().any(|it| it.fingerprint == job.fingerprint);
        is_due.then(|| StuckJob {
            tier: job.tier.name(),
            period: job.period.to_string(),
            reason: receipt.reason.clone().unwrap_or_default(),
            is_damaged: false,
        })
    });
    failed.collect()
}

pub(crate) fn last_run(
    lineage: Option<&Lineage>,
    receipts: &[JobRow],
    zone: Tz,
) -> Result<Option<LastRunStatus>, LineageError> {
    let Some(lineage) = lineage else { return Ok(None) };
    let Some(run) = lineage.last_runs(1)?.into_iter().next() else { return Ok(None) };
    let mut outcomes = BTreeMap::new();
    let (mut amounts, mut amounts_kept, mut quiet_days) = (0, 0, 0);
    // It is the last run, so its receipts are among the last ones.
    let running = lineage.live_jobs()?;
    for job in receipts.iter().chain(&running).filter(|it| it.run == run.id) {
        if let Some(receipt) = &job.receipt {
            amounts += receipt.metrics.amounts;
            amounts_kept += receipt.metrics.amounts_kept;
        }
        let outcome = job.receipt.as_ref().map_or("running", report::outcome_name);
        quiet_days += usize::from(job.tier == Tier::Extract && outcome == "unchanged");
        *outcomes.entry(outcome).or_default() += 1;
    }
    Ok(Some(LastRunStatus {
        run: run.id.0,
        trigger: run.trigger,
        started: rfc3339(run.started, zone),
        ended: run.ended.map(|it| rfc3339(it, zone)),
        outcomes,
        quiet_days,
        amounts,
        amounts_kept,
    }))
}

/// Returns the first period to become due of those that wait only for their end.
pub(crate) fn next_due(plan: &CompactionPlan, zone: Tz) -> Option<NextDueJob> {
    let closing = plan.waiting.iter().filter_map(|it| match it.cause {
        WaitCause::Closes(at) => Some((at, it)),
        _ => None,
    });
    let (at, next) = closing.min_by_key(|(at, it)| (*at, it.tier, it.period))?;
    Some(NextDueJob {
        tier: next.tier.name(),
        period: next.period.to_string(),
        at: rfc3339(at.with_timezone(&Utc), zone),
        shown: local_time(at.with_timezone(&zone)),
    })
}
