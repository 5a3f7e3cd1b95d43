//! What is due: a pure function of the files, the record, the settings, and the time.
//!
//! A period is due when it has closed in the root's zone, the grace has passed, and its inputs
//! differ from those that its file names. Nothing else makes it due: no engine, no prompt, no
//! setting, no tick. So missed ticks, restarts, double ticks, and late logs all work, and a second
//! run over the same files plans nothing.
//!
//! The tiers depend on each other: a month waits until none of its weeks is due, and wisdom takes
//! months oldest first. [`CompactionPlan::jobs`] can be done now, `CompactionPlan::due_after` after
//! those.

pub(crate) mod damage;
mod rules;
#[cfg(test)]
mod tests;
mod triggers;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, NaiveDate, TimeZone as _, Utc};
use chrono_tz::Tz;

pub(crate) use self::triggers::{DueReason, WaitCause};
use self::{damage::Damage, rules::Planner};
use crate::{
    engine::model::is_model_engine_id,
    memory::{
        address::Stem,
        hash::ContentHash,
        item::Tier,
        period::{Grain, Period},
    },
    store::fs::inventory::{FileProblem, Inventory},
};

/// What a plan needs to know of the root besides its files.
#[derive(Clone, Debug)]
pub(crate) struct PlanSettings {
    /// The zone in which days begin.
    pub zone: Tz,
    /// How long after its end a period stays open for late lines.
    pub grace: Duration,
    /// A log changed less than this ago is still being written.
    pub quiet: Duration,
    /// Whether typed memories are extracted.
    pub extract: bool,
    /// Whether the bullets of `WISDOM.md` follow the newest logs; not if a person decides about each change.
    pub digest: bool,
    /// The engine in use, for `--redo` and for counting files of others.
    pub engine: String,
}

/// What the database records besides the files.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedState {
    /// Per log, the first 16 hex digits of the hash that it had when it was extracted.
    pub extracted: BTreeMap<String, String>,
    /// The engine that last extracted a day, as far as the database knows.
    pub extracted_by: BTreeMap<Period, String>,
    /// Logs with lines that support memories once a person accepts them.
    pub quarantined_logs: BTreeSet<String>,
    /// Months already distilled into `WISDOM.md`, each with the hash of its body then, if known.
    pub distilled: BTreeMap<Period, Option<String>>,
    /// Jobs that chose the bullets of `WISDOM.md` as it is.
    pub digested: BTreeSet<ContentHash>,
    /// Months whose entries in `WISDOM.md` cite a changed line, each with the log.
    pub stale_wisdom: Vec<(Period, String)>,
    /// Jobs that were done without a file, because there was nothing to write.
    pub skipped: BTreeSet<ContentHash>,
    /// Jobs that failed three times, with the last reason.
    pub stuck: BTreeMap<ContentHash, String>,
    /// Generated files that may be damaged, and any files with merge conflicts, which wait for a
    /// person, each with what is wrong: nothing is made from them or in their place.
    pub damaged: BTreeMap<String, Damage>,
}

impl RecordedState {
    /// Accepts doubtful files as they are. Nobody can mean both sides of a merge conflict.
    pub(crate) fn accept_damage(&mut self) {
        self.damaged.retain(|_, damage| !damage.may_be_intended());
    }

    /// Returns whether a model read a log as it is.
    pub(crate) fn is_read_by_model(&self, stem: &Stem, inventory: &Inventory) -> bool {
        let day = Period::containing(Grain::Day, stem.date());
        let hash = inventory.logs.get(stem).map(|it| it.input_hash.hex16());
        self.extracted_by.get(&day).is_some_and(|it| is_model_engine_id(it))
            && hash.is_some_and(|it| self.extracted.get(stem.as_str()) == Some(&it))
    }

    /// Returns the engine that extracted a day: from the database, else from the week's file.
    /// `None` if unknown.
    pub(crate) fn extracting_engine<'a>(
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

/// Which work of other engines is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedoFrom {
    /// All of it.
    Beginning,
    /// That of periods that end on the date or later.
    Date(NaiveDate),
}

/// What a person asks for; by default everything that is due.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
pub(crate) struct Selection {
    /// Only these tiers; empty for all.
    pub tiers: Vec<Tier>,
    /// Only this period.
    pub period: Option<Period>,
    /// Also what is not due, is stuck, or is foreign (needs `period`).
    pub force: bool,
    /// Also files written and days extracted by another engine.
    pub redo: Option<RedoFrom>,
    /// Also these, though their inputs are the same: one of their lines was forgotten.
    pub rewrite: BTreeSet<(Tier, Period)>,
    /// Only those.
    pub only_rewrite: bool,
    /// Vanished files are gone for good.
    pub accept_missing: bool,
    /// Also the current week, provisionally, once its logs have been quiet for [`OPEN_WEEK_QUIET`].
    pub open_week: bool,
}

/// The current week is summarized when no log of it changed for this long; else each new line would
/// summarize it again.
pub(crate) const OPEN_WEEK_QUIET: Duration = Duration::minutes(10);

impl Selection {
    /// Returns whether all periods of the last tier are selected: only then what follows a run is
    /// done.
    pub(crate) fn is_whole(&self) -> bool {
        let wisdom = self.tiers.is_empty() || self.tiers.contains(&Tier::Wisdom);
        wisdom && self.period.is_none() && !self.only_rewrite
    }
}

/// One file to make, or one day to extract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionJob {
    /// The tier.
    pub tier: Tier,
    /// The period.
    pub period: Period,
    /// Why it is due.
    pub reason: DueReason,
    /// Per source (a log's stem, a week's or month's name) the first 16 hex digits of its hash.
    pub inputs: BTreeMap<String, String>,
    /// Hash of tier, period, and inputs: the same work has the same fingerprint.
    pub fingerprint: ContentHash,
    /// Whether the period has not closed yet.
    pub partial: bool,
}

impl CompactionJob {
    /// Returns whether it chooses the bullets of `WISDOM.md`.
    pub fn is_digest(&self) -> bool {
        self.tier == Tier::Wisdom && self.period.grain() == Grain::Day
    }
}

/// A period that is not due now and will be checked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingPeriod {
    /// The tier.
    pub tier: Tier,
    /// The period.
    pub period: Period,
    /// What it waits for.
    pub cause: WaitCause,
}

/// What is to be done, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionPlan {
    /// Jobs that can be done now.
    pub jobs: Vec<CompactionJob>,
    /// Periods that become due when the jobs are done.
    pub due_after: Vec<(Tier, Period)>,
    /// Periods that are not due yet, or wait.
    pub waiting: Vec<WaitingPeriod>,
    /// Foreign files under our names: read, never written.
    pub foreign: Vec<(Tier, Period)>,
    /// Files made by another engine, per tier.
    pub other_engine: BTreeMap<Tier, usize>,
    /// The forced tier and period, if it has no source.
    pub without_source: Option<(Tier, Period)>,
    /// Problems with the dates of logs.
    pub problems: Vec<FileProblem>,
}

/// States and open items of `WISDOM.md` are those of the logs of as many days up to the newest one.
const DIGEST_DAYS: Duration = Duration::days(120);

/// Of as many logs before these, rules, people, lessons and decisions are read, and of older logs those that a typed
/// memory cites.
pub(crate) const LASTING_LOGS_MAX: usize = 250;

/// Returns the first day of the logs of which states and open items are read, given the newest one.
pub(crate) fn states_from(newest: Option<NaiveDate>) -> NaiveDate {
    let first = newest.and_then(|it| it.checked_sub_signed(DIGEST_DAYS)?.succ_opt());
    first.unwrap_or(NaiveDate::MIN)
}

/// Plans what is due at `now`.
pub(crate) fn plan(
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
/// If the clocks skip midnight, the day begins when they go on; if midnight comes twice, with the
/// first.
pub(crate) fn start_of_day(date: NaiveDate, zone: Tz) -> DateTime<Utc> {
    let midnight = date.and_time(chrono::NaiveTime::MIN);
    // No zone has ever skipped more than a day.
    (0..=25 * 4)
        .find_map(|quarters| {
            zone.from_local_datetime(&(midnight + Duration::minutes(15 * quarters))).earliest()
        })
        .map_or_else(|| midnight.and_utc(), |it| it.with_timezone(&Utc))
}

/// Identifies a job by its inputs.
pub(crate) fn fingerprint(
    tier: Tier,
    period: Period,
    inputs: &BTreeMap<String, String>,
) -> ContentHash {
    let mut text = format!("{tier}\n{period}\n");
    for (name, hash) in inputs {
        text.push_str(name);
        text.push(' ');
        text.push_str(hash);
        text.push('\n');
    }
    ContentHash::of(text)
}
