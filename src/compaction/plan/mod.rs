//! What is due: a pure function of the files, the record, the settings, and the time.
//!
//! A period is due when it has closed in the root's zone, the grace has passed, and its inputs
//! differ from those that its file names. Nothing else makes it due: no engine, no prompt, no
//! setting, no tick. So missed ticks, restarts, double ticks, and late logs all come out right,
//! and a second pass over the same files plans nothing.
//!
//! The tiers rest on each other: a month waits until none of its weeks is due, and wisdom takes
//! months oldest first. [`CompactionPlan::jobs`] can be done now; `CompactionPlan::due_after` when those are done.

pub mod damage;
mod rules;
#[cfg(test)]
mod tests;
mod triggers;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, NaiveDate, TimeZone as _, Utc};
use chrono_tz::Tz;

pub use self::triggers::{DueReason, WaitCause};
use self::{damage::Damage, rules::Planner};
use crate::{
    memory::{hash::ContentHash, item::Tier, period::Period},
    store::fs::inventory::{FileProblem, Inventory},
};

/// What a plan needs to know of the root beside its files.
#[derive(Clone, Debug)]
pub struct PlanSettings {
    /// The zone in which days begin.
    pub zone: Tz,
    /// How long after its end a period stays open for late lines.
    pub grace: Duration,
    /// A log changed less than this ago is still being written.
    pub quiet: Duration,
    /// Whether typed memories are extracted.
    pub extract: bool,
    /// The engine at work, for `--redo` and for counting older files.
    pub engine: String,
}

/// What the database knows beside the files.
#[derive(Clone, Debug, Default)]
pub struct RecordedState {
    /// Per log, the first 16 hex digits of the hash that it had when it was extracted.
    pub extracted: BTreeMap<String, String>,
    /// Which engine read a day last for its typed memories, as far as the database knows.
    pub extracted_by: BTreeMap<Period, String>,
    /// Logs with lines of which memories are made when a person accepts them.
    pub quarantined_logs: BTreeSet<String>,
    /// Months already distilled into `WISDOM.md`, each with the hash of its body then, if known.
    pub distilled: BTreeMap<Period, Option<String>>,
    /// Months whose entries in `WISDOM.md` cite a line that reads otherwise now, each with the log.
    pub stale_wisdom: Vec<(Period, String)>,
    /// Jobs that were done and left no file, because there was nothing to say.
    pub skipped: BTreeSet<ContentHash>,
    /// Jobs that failed three times, with the last reason.
    pub stuck: BTreeMap<ContentHash, String>,
    /// Generated files of which a person is to say whether they are damaged, each with what is odd
    /// and what to do: nothing is made of them, or in their place.
    pub damaged: BTreeMap<String, Damage>,
}

impl RecordedState {
    /// Returns the engine that read a day for its typed memories: as the database knows, else as the
    /// week's file says. `None` where nobody knows.
    pub fn extracting_engine<'a>(
        &'a self,
        day: Period,
        inventory: &'a Inventory,
    ) -> Option<&'a str> {
        let week = || {
            let header = inventory.weekly.get(&day.parent()?)?.header.as_ref()?;
            header.extracted.contains(&day.to_string()).then_some(&header.engine[..])
        };
        self.extracted_by.get(&day).map(String::as_str).or_else(week)
    }
}

/// What is asked for; by default all that is due.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
pub struct Selection {
    /// Only these tiers; empty for all.
    pub tiers: Vec<Tier>,
    /// Only this period.
    pub period: Option<Period>,
    /// Also what is not due, is parked, or is foreign (needs `period`).
    pub force: bool,
    /// Also files that another engine made and days that another one read, of periods that end on the
    /// date or after it.
    pub redo: Option<Option<NaiveDate>>,
    /// Also these, though their inputs are the same: a line of theirs was forgotten.
    pub rewrite: BTreeSet<(Tier, Period)>,
    /// Nothing but those.
    pub only_rewrite: bool,
    /// Files that are gone in numbers are gone for good.
    pub accept_missing: bool,
    /// Also the running week, provisionally, once its logs have been quiet for [`OPEN_WEEK_QUIET`].
    pub open_week: bool,
}

/// The file of the running week is made when no log of it was changed for so long: people who write
/// all day would have it made anew with each line.
pub const OPEN_WEEK_QUIET: Duration = Duration::minutes(10);

impl Selection {
    /// Returns whether the last tier is asked for, and no one period: what follows a pass follows
    /// then.
    pub fn is_whole(&self) -> bool {
        let wisdom = self.tiers.is_empty() || self.tiers.contains(&Tier::Wisdom);
        wisdom && self.period.is_none() && !self.only_rewrite
    }
}

/// One file to be made, or one day to be extracted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionJob {
    /// What is made.
    pub tier: Tier,
    /// For which time.
    pub period: Period,
    /// Why.
    pub reason: DueReason,
    /// Per source (a log's stem, a week's or month's name) the first 16 hex digits of its hash.
    pub inputs: BTreeMap<String, String>,
    /// Hash of tier, period, and inputs: the same work has the same fingerprint.
    pub fingerprint: ContentHash,
    /// Whether the period has not closed yet.
    pub partial: bool,
}

/// A period that is not due now but will be looked at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingPeriod {
    /// What is to be made.
    pub tier: Tier,
    /// For which time.
    pub period: Period,
    /// What it waits for.
    pub cause: WaitCause,
}

/// What is to be done, in the order in which to do it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionPlan {
    /// Jobs that can be done now.
    pub jobs: Vec<CompactionJob>,
    /// Periods that become due when the jobs are done.
    pub due_after: Vec<(Tier, Period)>,
    /// Periods that are not due yet, or are held up.
    pub waiting: Vec<WaitingPeriod>,
    /// Files of somebody else under our names: read, never written.
    pub foreign: Vec<(Tier, Period)>,
    /// Files made by another engine, per tier.
    pub other_engine: BTreeMap<Tier, usize>,
    /// What is asked for by force and has no source.
    pub without_source: Option<(Tier, Period)>,
    /// What is odd about the dates of logs.
    pub problems: Vec<FileProblem>,
}

/// Says what is due at `now`.
pub fn plan(
    inventory: &Inventory,
    record: &RecordedState,
    settings: &PlanSettings,
    selection: &Selection,
    now: DateTime<Utc>,
) -> CompactionPlan {
    Planner::new(inventory, record, settings, selection, now).run()
}

/// Returns the instant at which a day begins in a zone.
///
/// Where the clocks skip midnight, the day begins when they go on; where midnight comes twice,
/// with the first.
pub fn start_of_day(date: NaiveDate, zone: Tz) -> DateTime<Utc> {
    let midnight = date.and_time(chrono::NaiveTime::MIN);
    // No zone has ever skipped more than a day.
    (0..=25 * 4)
        .find_map(|quarters| {
            zone.from_local_datetime(&(midnight + Duration::minutes(15 * quarters))).earliest()
        })
        .map_or_else(|| midnight.and_utc(), |it| it.with_timezone(&Utc))
}

/// Names a piece of work by what goes into it.
pub fn fingerprint(tier: Tier, period: Period, inputs: &BTreeMap<String, String>) -> ContentHash {
    let mut text = format!("{tier}\n{period}\n");
    for (name, hash) in inputs {
        text.push_str(name);
        text.push(' ');
        text.push_str(hash);
        text.push('\n');
    }
    ContentHash::of(text)
}
