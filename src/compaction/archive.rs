//! Moves old logs into the archive once everything derived from them is complete, and joins late
//! lines of their days.
//!
//! [`archivable_logs`] decides which logs may move; it is pure. A log keeps its name and its bytes,
//! and so its addresses and fingerprints: a move makes nothing due. Off unless `archive_after_days`
//! is set.
//!
//! # What a crash can and cannot do
//!
//! An intent is recorded, the log takes its name in the archive, both folders are synced, the log
//! is read back, and only then the intent is closed. If the archive is on another file system, the
//! copied log is removed after that. The bytes are in at least one of the two places at any time.
//! If they are in both, or a new log exists for an archived day, the next run leaves one file
//! (`Archiver::join_late_logs`); the files alone show what is left to do.
//!
//! Archived bytes are removed in one case only: when the active log was just read and begins with
//! all of them.

use crate::compaction::context::run_owner;
use std::collections::BTreeSet;

use chrono::{DateTime, Datelike as _, Days, Duration, Utc};
use chrono_tz::Tz;

use super::{
    context::RunContext,
    error::{CompactionError, JobFailure},
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges, reach_failpoint},
    },
    plan::{self, CompactionPlan, RecordedState, Selection, WaitCause},
    report::{RunObserver, RunReport},
    snapshot::RootSnapshot,
};
use crate::{
    config::root::RootSettings,
    memory::{
        address::Stem,
        hash::ContentHash,
        item::Tier,
        period::{Grain, Period},
    },
    store::{
        db::lineage::{
            Lineage, LineageError,
            jobs::{IntentOutcome, NewIntent, NewRun},
            record::{Commit, ScannedFile},
        },
        fs::{
            inventory::{Inventory, LogFile},
            layout::Layout,
            lock::WriteLock,
            vault::{
                FILE_BYTES_MAX, Vault, VaultError,
                archive::{ArchiveMove, MoveMethod},
            },
        },
    },
};

/// A log that changed less than this ago stays where it is.
const QUIET_PERIOD: Duration = Duration::hours(24);
/// A clock that differs by more than this from all known times is not trusted at once.
const CLOCK_JUMP_MIN: Duration = Duration::hours(24);
/// Nobody ran this program before; a clock that says so was never set.
const FIRST_YEAR: i32 = 2020;
/// A folder that rested for longer is less likely than a clock that is years ahead.
const CLOCK_LEAP_MIN: Duration = Duration::days(5 * 365);
/// How many logs are moved under one write lock and recorded at once.
const MOVED_AT_ONCE: usize = 64;
/// The trigger of a run that only recorded the time.
pub(crate) const CLOCK_CHECK: &str = "clock";

/// What the choice depends on besides files and record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArchiveSettings {
    /// Logs older than this many days.
    pub after_days: u32,
    /// The zone in which days begin.
    pub zone: Tz,
    /// Whether typed memories are extracted.
    pub extract: bool,
}

/// The newest run before the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreviousRun {
    pub started: DateTime<Utc>,
    /// Whether it only recorded the time, because the clock had jumped.
    pub is_clock_check: bool,
}

/// The format of times in messages.
const TIME_FORMAT: &str = "%Y-%m-%d %H:%M UTC";

/// Why nothing is moved although something could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClockDoubt {
    #[error("a run began on {}, which is in the future; is the clock right?", .0.format(TIME_FORMAT))]
    Behind(DateTime<Utc>),
    /// Nothing happened in this folder for a long time before now: the machine was off, or the
    /// clock jumped.
    #[error("nothing happened here since {}, or the clock jumped; the next run archives", .0.format(TIME_FORMAT))]
    Ahead(DateTime<Utc>),
}

/// Returns the logs that may move into the archive, the oldest first.
///
/// Such a log is older than the setting, and did not change for a day. The file of its week names
/// exactly this log, the file of its month names exactly that week, the month was distilled, and
/// the day extracted. None of these is due, waiting, or stuck.
///
/// `plan` is the plan with nothing selected.
pub(crate) fn archivable_logs<'a>(
    inventory: &'a Inventory,
    record: &RecordedState,
    plan: &CompactionPlan,
    settings: ArchiveSettings,
    now: DateTime<Utc>,
) -> Vec<(&'a Stem, &'a LogFile)> {
    let today = now.with_timezone(&settings.zone).date_naive();
    let Some(oldest_kept) = today.checked_sub_days(Days::new(settings.after_days.into())) else {
        return Vec::new();
    };
    let waiting = plan.waiting.iter().map(|it| (it.tier, it.period));
    let open: BTreeSet<(Tier, Period)> = plan
        .jobs
        .iter()
        .map(|it| (it.tier, it.period))
        .chain(plan.due_after.iter().copied())
        .chain(waiting)
        .collect();
    let is_done = |stem: &Stem, log: &LogFile| -> Option<bool> {
        let day = Period::containing(Grain::Day, stem.date());
        let week = Period::containing(Grain::Week, stem.date());
        let month = week.parent()?;
        let tiers = [
            (Tier::Extract, day),
            (Tier::Weekly, week),
            (Tier::Monthly, month),
            (Tier::Wisdom, month),
        ];
        let hash = log.input_hash.hex16();
        let (week_file, month_file) =
            (inventory.weekly.get(&week)?, inventory.monthly.get(&month)?);
        let (of_week, of_month) = (week_file.header.as_ref()?, month_file.header.as_ref()?);
        let is_summarized = !of_week.partial
            && of_week.sources.get(stem.as_str()) == Some(&hash)
            && of_month.sources.get(&week.to_string()) == Some(&week_file.body_hash);
        let extracted = !settings.extract
            || record.extracted.get(stem.as_str()) == Some(&hash)
            || of_week.extracted.contains(&day.to_string());
        let inputs = [(month.to_string(), month_file.body_hash.clone())].into();
        let distilled = match record.distilled.get(&month) {
            Some(known) => known.as_ref().is_none_or(|it| *it == month_file.body_hash),
            None => record.skipped.contains(&plan::fingerprint(Tier::Wisdom, month, &inputs)),
        };
        let nothing_open = tiers.iter().all(|it| !open.contains(it));
        Some(is_summarized && extracted && distilled && nothing_open)
    };
    // A time in the future, which a wrong clock wrote, does not count as quiet.
    let quiet_since = (now - QUIET_PERIOD).timestamp_nanos_opt().unwrap_or(i64::MIN);
    inventory
        .logs
        .iter()
        .take_while(|(stem, _)| stem.date() < oldest_kept)
        .filter(|(stem, log)| {
            !inventory.archived.contains(*stem)
                && log.stamp.mtime_ns <= quiet_since
                && is_done(stem, log) == Some(true)
        })
        .collect()
}

/// Returns why the clock may be wrong; then it does not decide what is old.
///
/// A clock that went back is doubted until it has caught up. After a gap of more than a day, nobody
/// can tell whether the machine was off or the clock jumped; then the first run records the time
/// and moves nothing, and the next one moves.
pub(crate) fn clock_doubt(
    last: Option<PreviousRun>,
    inventory: &Inventory,
    now: DateTime<Utc>,
) -> Option<ClockDoubt> {
    let PreviousRun { started, is_clock_check } = last?;
    if started > now + CLOCK_JUMP_MIN {
        return Some(ClockDoubt::Behind(started));
    }
    let changes = inventory.logs.values().chain(inventory.late_logs.values());
    let changes = changes.map(|it| DateTime::from_timestamp_nanos(it.stamp.mtime_ns));
    let known = changes.filter(|it| *it <= now).chain([started]).max()?;
    (known < now - CLOCK_JUMP_MIN && !is_clock_check).then_some(ClockDoubt::Ahead(known))
}

/// Moves old logs into the archive, and joins late lines.
pub(crate) struct Archiver<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> Archiver<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    /// Moves the logs that may move. A log that cannot be moved is reported and stops nothing else.
    pub(super) fn archive(
        &mut self,
        last: Option<PreviousRun>,
        view: &RootSnapshot,
        watcher: &dyn RunObserver,
        report: &mut RunReport,
    ) -> Result<bool, CompactionError> {
        let now = (self.context.clock)();
        let Some(settings) = archive_settings(self.context.settings) else { return Ok(false) };
        let plan = self.context.plan(view, &Selection::default(), now);
        let chosen = archivable_logs(&view.inventory, &view.record, &plan, settings, now);
        if chosen.is_empty() {
            return Ok(false);
        }
        if let Some(doubt) = clock_doubt(last, &view.inventory, now) {
            report.archive_held = Some(doubt.to_string());
            if matches!(doubt, ClockDoubt::Ahead(_)) {
                self.record_clock_check(now)?;
            }
            return Ok(false);
        }
        let layout = self.context.vault.layout();
        let moves: Vec<ArchiveMove> = chosen
            .into_iter()
            .filter_map(|(stem, log)| {
                let to = layout.archive_path(stem)?;
                let temp = Vault::new_temp_name();
                Some(ArchiveMove { from: log.path.clone(), to, temp, hash: log.hash })
            })
            .collect();
        for some in moves.chunks(MOVED_AT_ONCE) {
            if watcher.should_stop() {
                break;
            }
            match self.move_batch(some, report) {
                Ok(()) => {}
                Err(JobFailure::Critical(error)) => return Err(error),
                Err(JobFailure::Vault(error)) => {
                    report.archive_held = Some(error_with_source(&error));
                }
                Err(error) => report.archive_held = Some(error.to_string()),
            }
            if report.archive_held.is_some() {
                break;
            }
        }
        Ok(!report.archived.is_empty())
    }

    /// Records the time, so that the next run can compare its own with it.
    fn record_clock_check(&mut self, now: DateTime<Utc>) -> Result<(), CompactionError> {
        let owner = run_owner();
        let new =
            NewRun { trigger: CLOCK_CHECK, version: env!("CARGO_PKG_VERSION"), owner: &owner, now };
        let run = self.context.lineage.begin_run(&new)?;
        self.context.end_run(run)
    }

    fn move_batch(
        &mut self,
        moves: &[ArchiveMove],
        report: &mut RunReport,
    ) -> Result<(), JobFailure> {
        let lock = self.context.write_lock()?;
        let mut bytes = Vec::new();
        for it in moves {
            let found = self.context.vault.read(&it.from)?;
            bytes.push(found.map(|it| it.bytes));
        }
        // A log that changed since the scan stays.
        let as_seen = |it: &(&ArchiveMove, &Option<Vec<u8>>)| {
            it.1.as_ref().is_some_and(|bytes| ContentHash::of(bytes) == it.0.hash)
        };
        let (moves, bytes): (Vec<ArchiveMove>, Vec<&[u8]>) = moves
            .iter()
            .zip(&bytes)
            .filter(as_seen)
            .map(|(it, bytes)| (it.clone(), bytes.as_deref().unwrap_or_default()))
            .unzip();
        if moves.is_empty() {
            return Ok(());
        }
        let new: Vec<NewIntent<'_>> = moves
            .iter()
            .zip(&bytes)
            .map(|(it, bytes)| NewIntent {
                target: &it.to,
                source: Some(&it.from),
                temp: &it.temp,
                new: Some(bytes),
                old: None,
                discards_old: false,
            })
            .collect();
        let now = (self.context.clock)();
        // No run owns the intents: `undo` takes back what a run made, and a move makes nothing.
        let intents = self.context.lineage.begin_intents(None, None, &new, now)?;
        reach_failpoint("archive.intents")?;
        let ends = self.context.vault.archive(&lock, &moves);
        let (mut done, mut dropped) = (Vec::new(), Vec::new());
        let (mut stamps, mut copied) = (Vec::new(), Vec::new());
        for (((it, end), intent), bytes) in moves.iter().zip(ends).zip(intents).zip(&bytes) {
            match end {
                Ok(how) => {
                    done.push(intent);
                    stamps.extend(self.stamp_of_moved(it, now)?);
                    copied.extend((how == MoveMethod::Copied).then_some((it, *bytes)));
                    report.archived.push(it.to.clone());
                }
                // A person wrote to it first; the next run looks again.
                Err(VaultError::Changed { .. }) => dropped.push(intent),
                // The recovery finds out how far the move came.
                Err(error) => {
                    report.archive_held.get_or_insert_with(|| error_with_source(&error));
                }
            }
        }
        reach_failpoint("archive.moved")?;
        self.context.lineage.commit(&Commit {
            intents: &done,
            files: &stamps,
            at: now,
            ..Commit::default()
        })?;
        self.context.lineage.close_intents(&dropped, IntentOutcome::Abandoned)?;
        reach_failpoint("archive.recorded")?;
        for (it, bytes) in copied {
            match self.remove_duplicate(&lock, &it.to, &it.from, bytes) {
                // The next run joins late lines.
                Ok(()) | Err(JobFailure::Vault(VaultError::Changed { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns what the scan cache stores of a moved log.
    fn stamp_of_moved(
        &self,
        it: &ArchiveMove,
        now: DateTime<Utc>,
    ) -> Result<Option<(std::path::PathBuf, ScannedFile)>, VaultError> {
        let Some(found) = self.context.vault.read(&it.to)? else { return Ok(None) };
        let crate::store::fs::inventory::FileStat { inode, size, mtime_ns } = found.stamp;
        let seen_ns = now.timestamp_nanos_opt().unwrap_or(0);
        let hash = ContentHash::of(&found.bytes);
        Ok(Some(((&it.to).into(), ScannedFile { inode, size, mtime_ns, hash, seen_ns })))
    }

    /// Removes `path` if `stays` begins with its `bytes`.
    fn remove_duplicate(
        &mut self,
        lock: &WriteLock,
        stays: &str,
        path: &str,
        bytes: &[u8],
    ) -> Result<(), JobFailure> {
        let whole = self.context.vault.read(stays)?.is_some_and(|it| it.bytes.starts_with(bytes));
        if !whole {
            return Err(VaultError::Changed { path: stays.into() }.into());
        }
        let temp = Vault::new_temp_name();
        let intent = NewIntent {
            target: path,
            source: Some(stays),
            temp: &temp,
            new: None,
            old: Some(bytes),
            discards_old: false,
        };
        let now = (self.context.clock)();
        let intents = self.context.lineage.begin_intents(None, None, &[intent], now)?;
        reach_failpoint("archive.leave")?;
        if let Err(error) = self.context.vault.remove(lock, path, &temp, ContentHash::of(bytes)) {
            // If a step failed, the recovery finds out how far it came.
            if matches!(error, VaultError::Changed { .. }) {
                self.context.lineage.close_intents(&intents, IntentOutcome::Abandoned)?;
            }
            return Err(error.into());
        }
        reach_failpoint("archive.left")?;
        self.context.lineage.close_intents(&intents, IntentOutcome::Done)?;
        Ok(())
    }

    /// Leaves one file of each day that is both archived and active: what was written after the day
    /// was archived is added to the archived lines, and the log is active again. Returns whether
    /// anything changed.
    ///
    /// A file that is being written waits. So does one that changes meanwhile: each step compares,
    /// and restores what is not as it was.
    pub(super) fn join_late_logs(
        &mut self,
        view: &RootSnapshot,
        now: DateTime<Utc>,
        report: &mut RunReport,
    ) -> Result<bool, CompactionError> {
        let mut any = false;
        let plan = self.context.plan(view, &Selection::default(), now);
        let is_written = |path: &str| {
            plan.waiting
                .iter()
                .any(|it| matches!(&it.cause, WaitCause::BeingWritten(written) if written == path))
        };
        for (stem, late) in &view.inventory.late_logs {
            let Some(archived) = view.inventory.logs.get(stem).filter(|_| !is_written(&late.path))
            else {
                continue;
            };
            match self.join_late_log(late, archived) {
                Ok(joined) => {
                    any = true;
                    report.joined.extend(joined.then(|| late.path.clone()));
                }
                Err(JobFailure::Critical(error)) => return Err(error),
                // A person wrote to it first; the next run looks again.
                Err(JobFailure::Vault(VaultError::Changed { .. })) => {}
                Err(JobFailure::Vault(error)) => {
                    report.archive_held = Some(error_with_source(&error));
                }
                Err(error) => report.archive_held = Some(error.to_string()),
            }
        }
        Ok(any)
    }

    /// Joins two files of a day; returns whether lines were added to the archived ones.
    fn join_late_log(&mut self, late: &LogFile, archived: &LogFile) -> Result<bool, JobFailure> {
        let read = |file: &LogFile| -> Result<String, JobFailure> {
            let text = self.context.vault.read_text(&file.path)?;
            let text = text.filter(|it| ContentHash::of(it) == file.hash);
            text.ok_or_else(|| VaultError::Changed { path: file.path.clone().into() }.into())
        };
        let (old, new) = (read(archived)?, read(late)?);
        if old.starts_with(&new) {
            // There are no late lines: a copy was left or restored, and the archive has all its
            // bytes.
            let lock = self.context.write_lock()?;
            self.remove_duplicate(&lock, &archived.path, &late.path, new.as_bytes())?;
            return Ok(false);
        }
        let added = !new.starts_with(&old);
        if added {
            let newline = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
            let text = format!("{old}{newline}{new}");
            if text.len() as u64 > FILE_BYTES_MAX {
                return Err(VaultError::TooLarge { path: late.path.clone().into() }.into());
            }
            reach_failpoint("archive.join")?;
            let file = FileWrite { path: late.path.clone(), text: Some(text), current: Some(new) };
            Journal::new(self.context).write_files(
                None,
                None,
                &[file],
                &RecordedChanges::default(),
            )?;
        }
        let lock = self.context.write_lock()?;
        self.remove_duplicate(&lock, &late.path, &archived.path, old.as_bytes())?;
        Ok(true)
    }
}

/// Refuses to run by a clock that cannot be right: days would close, and versions be dropped, that should not.
pub(super) fn refuse_wrong_clock(
    last: Option<PreviousRun>,
    now: DateTime<Utc>,
    accepted: bool,
) -> Result<(), CompactionError> {
    let last = last.map(|it| it.started);
    let leaps = last.is_some_and(|it| now - it > CLOCK_LEAP_MIN) && !accepted;
    if now.year() < FIRST_YEAR || leaps {
        return Err(CompactionError::WrongClock { now, last });
    }
    Ok(())
}

pub(super) fn previous_run(lineage: &Lineage) -> Result<Option<PreviousRun>, LineageError> {
    let run = lineage.last_runs(1)?.into_iter().next();
    Ok(run.map(|it| PreviousRun { started: it.started, is_clock_check: it.trigger == CLOCK_CHECK }))
}

/// Returns where the next run would move logs if nothing else were due, and why it would move none.
pub(crate) fn preview_archive(
    view: &RootSnapshot,
    plan: &CompactionPlan,
    lineage: Option<&Lineage>,
    settings: &RootSettings,
    layout: &Layout,
    now: DateTime<Utc>,
) -> Result<(Vec<String>, Option<ClockDoubt>), LineageError> {
    let Some(chosen) = archive_settings(settings)
        .map(|it| archivable_logs(&view.inventory, &view.record, plan, it, now))
        .filter(|it| !it.is_empty())
    else {
        return Ok((Vec::new(), None));
    };
    let last = lineage.map_or(Ok(None), previous_run)?;
    let paths = chosen.into_iter().filter_map(|(stem, _)| layout.archive_path(stem)).collect();
    Ok((paths, clock_doubt(last, &view.inventory, now)))
}

/// Returns the settings of the choice; `None` if nothing is archived.
fn archive_settings(settings: &RootSettings) -> Option<ArchiveSettings> {
    Some(ArchiveSettings {
        after_days: settings.settings.archive_after_days?,
        zone: settings.zone.name.0,
        extract: settings.settings.compaction.extract,
    })
}

fn error_with_source(error: &VaultError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        memory::document::SummaryHeader,
        store::fs::inventory::{FileStat, SummaryFile},
    };

    const NOW: &str = "2026-08-03T12:00:00Z";

    /// A log of a week of March, everything derived from it, and nothing to do.
    struct ArchiveFixture {
        inventory: Inventory,
        record: RecordedState,
        plan: CompactionPlan,
        settings: ArchiveSettings,
        now: DateTime<Utc>,
    }

    fn time(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn nanos(text: &str) -> i64 {
        time(text).timestamp_nanos_opt().unwrap()
    }

    fn period(name: &str) -> Period {
        name.parse().unwrap()
    }

    fn stem() -> Stem {
        "2026-03-03-call".parse().unwrap()
    }

    fn summary(period: &str, sources: &[(&str, String)]) -> SummaryFile {
        let sources = sources.iter().map(|(name, hash)| ((*name).to_owned(), hash.clone()));
        let header = SummaryHeader { sources: sources.collect(), ..SummaryHeader::default() };
        let hash = ContentHash::of(period);
        SummaryFile {
            path: format!("{period}.md"),
            stamp: FileStat::default(),
            hash,
            body_hash: hash.hex16(),
            chars: 100,
            header: Some(header),
            is_mixed: false,
        }
    }

    impl ArchiveFixture {
        fn new() -> Self {
            let hash = ContentHash::of("log");
            let stamp = FileStat { inode: 1, size: 3, mtime_ns: nanos("2026-03-04T00:00:00Z") };
            let path = format!("memory/{}.md", stem());
            let week = summary("2026-W10", &[("2026-03-03-call", hash.hex16())]);
            let month = summary("2026-03", &[("2026-W10", week.body_hash.clone())]);
            Self {
                inventory: Inventory {
                    logs: BTreeMap::from([(
                        stem(),
                        LogFile { path, stamp, hash, input_hash: hash },
                    )]),
                    weekly: BTreeMap::from([(period("2026-W10"), week)]),
                    monthly: BTreeMap::from([(period("2026-03"), month)]),
                    ..Inventory::default()
                },
                record: RecordedState {
                    extracted: BTreeMap::from([(stem().to_string(), hash.hex16())]),
                    distilled: BTreeMap::from([(period("2026-03"), None)]),
                    ..RecordedState::default()
                },
                plan: CompactionPlan::default(),
                settings: ArchiveSettings { after_days: 90, zone: Tz::UTC, extract: true },
                now: time(NOW),
            }
        }

        fn log(&mut self) -> &mut LogFile {
            self.inventory.logs.get_mut(&stem()).unwrap()
        }

        fn week(&mut self) -> &mut SummaryFile {
            self.inventory.weekly.get_mut(&period("2026-W10")).unwrap()
        }

        fn month(&mut self) -> &mut SummaryFile {
            self.inventory.monthly.get_mut(&period("2026-03")).unwrap()
        }

        fn waits(&mut self, tier: Tier, name: &str) {
            let cause = WaitCause::Stuck(String::new());
            self.plan.waiting.push(plan::WaitingPeriod { tier, period: period(name), cause });
        }
    }

    #[track_caller]
    fn check(moves: bool, change: impl FnOnce(&mut ArchiveFixture)) {
        let mut root = ArchiveFixture::new();
        change(&mut root);
        let ArchiveFixture { inventory, record, plan, settings, now } = &root;
        let chosen = archivable_logs(inventory, record, plan, *settings, *now);
        assert_eq!(chosen.len(), usize::from(moves));
    }

    #[test]
    fn a_log_moves_when_everything_derived_from_it_is_complete() {
        check(true, |_| {});
        // Age is counted in days of the root's zone, and "older" means more.
        check(false, |it| it.now = time("2026-06-01T23:59:59Z"));
        check(true, |it| it.now = time("2026-06-02T00:00:00Z"));
        check(false, |it| it.settings.after_days = 153);
        check(false, |it| it.settings.after_days = u32::MAX);
        // Quiet for a day; a time in the future is not quiet.
        check(false, |it| it.log().stamp.mtime_ns = nanos("2026-08-02T12:00:01Z"));
        check(true, |it| it.log().stamp.mtime_ns = nanos("2026-08-02T12:00:00Z"));
        check(false, |it| it.log().stamp.mtime_ns = nanos("2030-01-01T00:00:00Z"));
        // The week names exactly this log, and the month exactly that week.
        check(false, |it| it.log().input_hash = ContentHash::of("edited"));
        check(false, |it| it.week().header = None);
        check(false, |it| it.week().header.as_mut().unwrap().partial = true);
        check(false, |it| it.week().header.as_mut().unwrap().sources.clear());
        check(false, |it| it.week().body_hash = "edited".to_owned());
        check(false, |it| it.inventory.weekly.clear());
        check(false, |it| it.month().header = None);
        check(false, |it| it.inventory.monthly.clear());
        // The day is extracted, or extraction is off.
        check(false, |it| it.record.extracted.clear());
        check(true, |it| {
            it.record.extracted.clear();
            it.settings.extract = false;
        });
        check(true, |it| {
            it.record.extracted.clear();
            it.week().header.as_mut().unwrap().extracted.push("2026-03-03".to_owned());
        });
        // The month is distilled as it is, or had nothing to distill.
        check(false, |it| it.record.distilled.clear());
        check(false, |it| {
            it.record.distilled.insert(period("2026-03"), Some("older".to_owned()));
        });
        check(true, |it| {
            it.record.distilled.clear();
            let inputs = [("2026-03".to_owned(), it.month().body_hash.clone())].into();
            let done = plan::fingerprint(Tier::Wisdom, period("2026-03"), &inputs);
            it.record.skipped.insert(done);
        });
        // Nothing is due or stuck, except elsewhere.
        check(false, |it| it.waits(Tier::Extract, "2026-03-03"));
        check(false, |it| it.waits(Tier::Weekly, "2026-W10"));
        check(false, |it| it.waits(Tier::Monthly, "2026-03"));
        check(false, |it| it.waits(Tier::Wisdom, "2026-03"));
        check(false, |it| it.plan.due_after.push((Tier::Wisdom, period("2026-03"))));
        check(true, |it| it.waits(Tier::Weekly, "2026-W11"));
        // It is archived already.
        check(false, |it| {
            it.inventory.archived.insert(stem());
        });
    }

    #[test]
    fn a_clock_that_jumped_decides_nothing() {
        #[track_caller]
        fn check(last: Option<(&str, bool)>, changed: &str, held: bool) {
            let mut root = ArchiveFixture::new();
            root.log().stamp.mtime_ns = nanos(changed);
            let last = last.map(|(started, is_clock_check)| PreviousRun {
                started: time(started),
                is_clock_check,
            });
            assert_eq!(clock_doubt(last, &root.inventory, time(NOW)).is_some(), held, "{last:?}");
        }
        let long_ago = "2026-03-04T00:00:00Z";
        check(None, long_ago, false);
        check(Some(("2026-08-03T03:00:00Z", false)), long_ago, false);
        check(Some(("2026-08-04T11:00:00Z", false)), long_ago, false);
        check(Some(("2026-08-05T00:00:00Z", false)), long_ago, true);
        check(Some(("2026-08-05T00:00:00Z", true)), long_ago, true);
        check(Some(("2026-08-01T03:00:00Z", false)), long_ago, true);
        check(Some(("2026-08-01T03:00:00Z", true)), long_ago, false);
        check(Some(("2026-08-01T03:00:00Z", false)), "2026-08-03T08:00:00Z", false);
        check(Some(("2026-08-01T03:00:00Z", false)), "2027-01-01T00:00:00Z", true);
    }
}
