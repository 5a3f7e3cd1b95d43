//! Whether a root is up to date: its files are as a run left them that found nothing to do, and
//! nothing has become due since.
//!
//! Callers ask here before they start a run. Reading the names and stamps of all files takes about
//! as long as `find`; a run that finds nothing to do takes many times that, since it reads
//! generated files and queries the database for each. Like a run, this assumes that a file with the
//! same stamp holds the same bytes; here the stamp includes the change time of the inode, which
//! cannot be set at will. Any change of the database removes the note
//! ([`crate::store::fs::up_to_date_note`]).
//!
//! A program that shows a root again and again keeps what it has read for as long as [`settled_inputs`] is the same,
//! and a plan until [`plan_valid_until`].

use std::path::PathBuf;

use chrono::{DateTime, Duration, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::{
    plan::{CompactionPlan, OPEN_WEEK_QUIET, Selection, WaitCause, WaitingPeriod, start_of_day},
    report::{RunOutcome, RunReport},
};
use crate::{
    clock,
    config::root::RootSettings,
    memory::{hash::ContentHash, item::Tier, period::Period},
    store::fs::{
        inventory::Inventory,
        up_to_date_note as note,
        vault::{Vault, VaultError, stamps::RootStamp},
    },
};

/// A full check is made at least this often.
const NOTE_VALID_FOR: Duration = Duration::days(1);

/// What changed less than this before the check may change once more within the same tick of the
/// file system's clock.
const SETTLED_NS: i64 = 2_000_000_000;

/// A root that is up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpToDate {
    /// What is due (nothing) and what waits.
    pub plan: CompactionPlan,
    pub has_logs: bool,
    /// The time of the last change of a log.
    pub last_change: Option<DateTime<Utc>>,
}

/// The note, as JSON.
#[derive(Clone, Serialize, Deserialize)]
struct UpToDateNote {
    /// The stamps of all files, as one hash.
    files: String,
    /// The settings of the run, as one hash.
    with: String,
    /// The contents of all files, as one hash, by which a copy of the root is recognized; only in builds with the
    /// feature `fleet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    contents: Option<String>,
    /// The note is valid from here …
    made: DateTime<Utc>,
    /// … until when.
    until: DateTime<Utc>,
    /// Whether the current week was included.
    open_week: bool,
    has_logs: bool,
    changed: Option<DateTime<Utc>>,
    waiting: Vec<WaitRecord>,
}

#[derive(Clone, Serialize, Deserialize)]
struct WaitRecord {
    tier: String,
    period: String,
    /// When it closes; `None` for undone work.
    closes: Option<DateTime<Utc>>,
}

/// The state of the files before a run, for the note after it.
pub(super) struct FilesBeforeRun {
    stamps: RootStamp,
    /// By the clock that stamps files, whatever time the run was given.
    looked_ns: i64,
}

/// Returns the note if it is still valid; `None` if a run has to check.
pub(crate) fn check(
    vault: &Vault,
    settings: &RootSettings,
    engine: &str,
    open_week: bool,
    now: DateTime<Utc>,
) -> Option<UpToDate> {
    let note: UpToDateNote = serde_json::from_slice(&note::read(vault.layout())?).ok()?;
    let is_now = note.made <= now && now < note.until;
    if !is_now || (open_week && !note.open_week) {
        return None;
    }
    // Last, since it takes longest.
    if note.with != settings_hash(settings, engine) {
        return None;
    }
    let is_same = vault.root_stamp().ok()?.all.to_string() == note.files;
    if !is_same && !take_over_copy(vault, &note) {
        return None;
    }
    let zone = settings.zone.name.0;
    let waiting = note.waiting.iter().map(|it| {
        let tier = Tier::from_name(&it.tier)?;
        let period: Period = it.period.parse().ok()?;
        let closes = it.closes.map(|at| WaitCause::Closes(at.with_timezone(&zone)));
        Some(WaitingPeriod { tier, period, cause: closes.unwrap_or(WaitCause::Undone) })
    });
    let plan =
        CompactionPlan { waiting: waiting.collect::<Option<_>>()?, ..CompactionPlan::default() };
    Some(UpToDate { plan, has_logs: note.has_logs, last_change: note.changed })
}

/// Returns a hash of all that a plan depends on besides the time: names and stamps of the files, the database, the
/// settings. `None` while something changed moments ago, because it may change once more without another stamp.
pub(crate) fn settled_inputs(
    vault: &Vault,
    settings: &RootSettings,
    engine: &str,
) -> Result<Option<ContentHash>, VaultError> {
    let Some(looked_ns) = clock::file_clock_nanos() else { return Ok(None) };
    let stamps = vault.root_stamp()?;
    let newest_ns = stamps.newest_ns.max(stamps.newest_private_ns);
    let is_settled = newest_ns < looked_ns.saturating_sub(SETTLED_NS);
    let all = || format!("{} {}", stamps.all, settings_hash(settings, engine));
    Ok(is_settled.then(|| ContentHash::of(all())))
}

/// Returns when the plan for `now` may become another one although nothing has changed: a period closes, or a log has
/// been quiet for long enough.
pub(crate) fn plan_valid_until(
    plan: &CompactionPlan,
    inventory: &Inventory,
    settings: &RootSettings,
    now: DateTime<Utc>,
) -> DateTime<Utc> {
    let closes = plan.waiting.iter().filter_map(|it| match it.cause {
        WaitCause::Closes(at) => Some(at.with_timezone(&Utc)),
        _ => None,
    });
    let quiet = Duration::from_std(settings.settings.compaction.quiet.as_duration());
    let quiet = quiet.unwrap_or(Duration::zero());
    let logs = inventory.logs.values();
    let are_quiet = logs.filter_map(|it| {
        DateTime::from_timestamp_nanos(it.stamp.mtime_ns).checked_add_signed(quiet)
    });
    let times = closes.chain(are_quiet).chain(next_day_closes(settings, now));
    times.filter(|it| *it > now).min().unwrap_or(now)
}

/// Returns whether there is a note at all, for callers with work to do before they read it.
pub(crate) fn has_note(vault: &Vault) -> bool {
    note::read(vault.layout()).is_some()
}

/// Returns whether a run with this selection does all that can be due now.
pub(crate) fn is_full_selection(selection: &Selection) -> bool {
    let Selection {
        tiers,
        period,
        force,
        redo,
        rewrite: again,
        only_rewrite: only_again,
        accept_missing,
        open_week: _,
    } = selection;
    let all = tiers.is_empty() || Tier::ALL.iter().all(|it| tiers.contains(it));
    all && period.is_none()
        && redo.is_none()
        && again.is_empty()
        && !(*force || *only_again || *accept_missing)
}

/// Reads the stamps before a run. `None` if no note can follow.
pub(super) fn before_run(vault: &Vault, selection: &Selection) -> Option<FilesBeforeRun> {
    if !is_full_selection(selection) {
        return None;
    }
    note::begin(vault.layout()).ok()?;
    let stamps = vault.root_stamp().ok()?;
    Some(FilesBeforeRun { stamps, looked_ns: clock::file_clock_nanos()? })
}

/// Writes a note after a run that found nothing to do.
pub(super) fn after_run(
    before: &FilesBeforeRun,
    vault: &Vault,
    settings: &RootSettings,
    engine: &str,
    open_week: bool,
    outcome: &RunOutcome,
    now: DateTime<Utc>,
) {
    let mut new_note = note_of_run(before, settings, engine, open_week, outcome, now);
    if let Some(note) = &mut new_note {
        // Only of the files that the run has seen.
        note.contents = contents_hash(vault)
            .filter(|_| vault.root_stamp().is_ok_and(|it| it.all == before.stamps.all));
    }
    let bytes = new_note.and_then(|it| serde_json::to_vec(&it).ok());
    let layout = vault.layout();
    let ended = match bytes {
        Some(bytes) => note::finish(layout, &bytes).map(drop),
        None => note::cancel(layout),
    };
    // Without a note the next run checks for itself.
    if let Err(error) = ended {
        tracing::debug!("{}: standstill: {error}", layout.root().display());
    }
}

fn note_of_run(
    before: &FilesBeforeRun,
    settings: &RootSettings,
    engine: &str,
    open_week: bool,
    outcome: &RunOutcome,
    now: DateTime<Utc>,
) -> Option<UpToDateNote> {
    let RunOutcome { report, snapshot: view, plan } = outcome;
    let is_settled = before.stamps.newest_ns < before.looked_ns.saturating_sub(SETTLED_NS);
    if !is_settled || !is_idle(report) || !plan.jobs.is_empty() || !plan.due_after.is_empty() {
        return None;
    }
    let mut waiting = Vec::new();
    for it in &plan.waiting {
        let closes = match &it.cause {
            WaitCause::Closes(at) => Some(at.with_timezone(&Utc)),
            WaitCause::Undone => None,
            WaitCause::BeingWritten(_) | WaitCause::Stuck(_) | WaitCause::Damaged(_) => {
                return None;
            }
        };
        let (tier, period) = (it.tier.name().to_owned(), it.period.to_string());
        waiting.push(WaitRecord { tier, period, closes });
    }
    let changed = last_log_change(&view.inventory, now);
    let closes = waiting.iter().filter_map(|it| it.closes);
    let quiet = changed.filter(|_| open_week).map(|it| it + OPEN_WEEK_QUIET);
    let times = closes.chain(quiet).chain(next_day_closes(settings, now)).filter(|it| *it > now);
    let until = times.min().unwrap_or(DateTime::<Utc>::MAX_UTC).min(now + NOTE_VALID_FOR);
    Some(UpToDateNote {
        files: before.stamps.all.to_string(),
        with: settings_hash(settings, engine),
        contents: None,
        made: now,
        until,
        open_week,
        has_logs: !view.inventory.logs.is_empty(),
        changed,
        waiting,
    })
}

/// Returns whether a run did nothing and nothing waits for it.
fn is_idle(report: &RunReport) -> bool {
    let RunReport {
        jobs,
        written: _,
        unchanged: _,
        failed: _,
        left,
        archived,
        joined,
        put_back,
        model,
        unanswered,
        finished,
        held,
        unread,
        archive_held,
        amounts: _,
        amounts_kept: _,
        pruned,
    } = report;
    let lists = [archived, joined, put_back, finished];
    jobs.is_empty()
        && lists.iter().all(|it| it.is_empty())
        && held.is_empty()
        // They are named again in each run.
        && unread.is_empty()
        && model.is_none()
        && archive_held.is_none()
        && *left + *unanswered + *pruned == 0
}

/// Returns when a log last changed, not counting times in the future.
pub(crate) fn last_log_change(inventory: &Inventory, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let times = inventory.logs.values().map(|it| DateTime::from_timestamp_nanos(it.stamp.mtime_ns));
    times.filter(|it| *it <= now).max()
}

/// Returns when the next day closes: it may make something due that has no log yet.
fn next_day_closes(settings: &RootSettings, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let zone = settings.zone.name.0;
    let grace = settings.settings.compaction.grace.as_duration();
    let grace = Duration::from_std(grace).ok()?;
    let first_open: NaiveDate = now.checked_sub_signed(grace)?.with_timezone(&zone).date_naive();
    start_of_day(first_open.succ_opt()?, zone).checked_add_signed(grace)
}

/// Returns the note for copies of the root, without stamps and contents, if the files are as it says.
#[cfg(feature = "fleet")]
pub(crate) fn portable_note(vault: &Vault) -> Option<serde_json::Value> {
    let note: UpToDateNote = serde_json::from_slice(&note::read(vault.layout())?).ok()?;
    let is_same = vault.root_stamp().ok()?.all.to_string() == note.files;
    let portable = UpToDateNote { files: String::new(), contents: None, ..note };
    is_same.then(|| serde_json::to_value(portable).ok()).flatten()
}

/// Writes the note of another copy of the root, whose files are the same. Returns whether it could be written; without
/// it the next run checks for itself.
#[cfg(feature = "fleet")]
pub(crate) fn adopt_note(vault: &Vault, note: &serde_json::Value) -> bool {
    let layout = vault.layout();
    let Ok(note) = UpToDateNote::deserialize(note) else { return false };
    if note::begin(layout).is_err() {
        return false;
    }
    let note = UpToDateNote { files: String::new(), contents: contents_hash(vault), ..note };
    let written = serde_json::to_vec(&note).ok().filter(|_| note.contents.is_some());
    written.is_some_and(|it| note::finish(layout, &it).unwrap_or(false))
}

/// Returns whether the root is a copy of the one that a note is about, with the same contents. Then its stamps are
/// taken over, so that the next check reads no file.
#[cfg(feature = "fleet")]
fn take_over_copy(vault: &Vault, note: &UpToDateNote) -> bool {
    let Some(contents) = &note.contents else { return false };
    let layout = vault.layout();
    let (Ok(()), Ok(stamps)) = (note::begin(layout), vault.root_stamp()) else { return false };
    let is_copy = contents_hash(vault).as_ref() == Some(contents);
    let is_settled = clock::file_clock_nanos()
        .is_some_and(|now| stamps.newest_ns < now.saturating_sub(SETTLED_NS));
    let taken = UpToDateNote { files: stamps.all.to_string(), ..note.clone() };
    let ended = match serde_json::to_vec(&taken) {
        // A note that could not be written costs another look.
        Ok(bytes) if is_copy && is_settled => note::finish(layout, &bytes).map(drop),
        _ => note::cancel(layout),
    };
    is_copy && ended.is_ok() && vault.root_stamp().is_ok_and(|it| it.all == stamps.all)
}

#[cfg(not(feature = "fleet"))]
fn take_over_copy(_: &Vault, _: &UpToDateNote) -> bool {
    false
}

/// Returns a hash of the contents of a root; `None` if a file cannot be read.
#[cfg(feature = "fleet")]
fn contents_hash(vault: &Vault) -> Option<String> {
    Some(vault.content_hash().ok()?.to_string())
}

#[cfg(not(feature = "fleet"))]
fn contents_hash(_: &Vault) -> Option<String> {
    None
}

/// Returns a hash of what a run depends on besides files and time. The path of the root is not part of it, so that
/// copies have the same.
fn settings_hash(settings: &RootSettings, engine: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let anywhere = RootSettings { path: PathBuf::new(), configured: true, ..settings.clone() };
    ContentHash::of(format!("{version} {engine} {anywhere:?}")).to_string()
}
