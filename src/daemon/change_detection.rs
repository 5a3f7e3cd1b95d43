//! How changes of one memory folder are detected, and whether the system can be trusted to report them.
//!
//! Changes that follow each other closely form one burst. When a burst ends and has changed anything, a
//! run is requested. After each run, the changes since the previous run are compared with those that
//! the system reported. An unreported change is a miss. After two scans in a row with a miss the folder
//! is polled until it is opened again or a day has passed.
//!
//! Reports and the end of a run reach the loop in any order, so a change counts as missed only if it is
//! still unreported [`REPORT_DELAY_MAX`] after the scan that found it.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::{
    folder_snapshot::{FolderId, FolderSnapshot, HashedPath},
    watch::{ChangedNames, ChangedPaths},
};
use crate::config::root::ROOT_FILE_NAME;

/// A burst ends after this long without a change.
const BURST_QUIET: Duration = Duration::from_secs(2);
/// A longer burst is cut here.
const BURST_MAX: Duration = Duration::from_secs(60);
/// How late the system may report a change that a scan has found.
const REPORT_DELAY_MAX: Duration = Duration::from_secs(10);
/// After this many scans in a row with a miss the system is no longer trusted.
const MISSES_MAX: u32 = 2;
/// How long it is not trusted.
const DISTRUST_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// How changes are detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DetectionMode {
    /// The system reports them.
    Notified,
    /// The folder is scanned every half minute, for this reason.
    Polled(String),
}

/// What is known about the changes of one memory folder.
#[derive(Debug)]
pub(super) struct ChangeDetector {
    mode: DetectionMode,
    burst: Option<Burst>,
    /// Reported since the last run began.
    reported: ChangedPaths,
    /// Reported between the start of the run before the last and the start of the last.
    reported_before: ChangedPaths,
    last_snapshot: Option<FolderSnapshot>,
    /// Whether that scan saw work that came too late for its run.
    needs_recheck: bool,
    /// The folders that were watched when the last run began: only their changes can be missed.
    watched: BTreeMap<PathBuf, FolderId>,
    /// The same when the run before it began.
    watched_before: BTreeMap<PathBuf, FolderId>,
    /// Changes that a scan found and the system has not reported yet, and until when it may.
    unreported: Option<(Vec<HashedPath>, Instant)>,
    misses_in_a_row: u32,
    distrusted_until: Option<Instant>,
    pub(super) stats: DetectionStats,
}

/// Figures about the changes of one memory folder, for status and metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DetectionStats {
    /// Scans that found an unreported change.
    pub(super) missed: u64,
    /// How often the system reported that events were lost.
    pub(super) overflows: u64,
    /// When the system last reported a change.
    pub(super) last_event: Option<DateTime<Utc>>,
    /// When the whole folder was last scanned.
    pub(super) last_scan: Option<DateTime<Utc>>,
}

/// Changes that follow each other closely.
#[derive(Clone, Copy, Debug)]
struct Burst {
    first: Instant,
    last: Instant,
}

impl ChangeDetector {
    /// Returns a detector without any knowledge.
    pub(super) fn new() -> Self {
        Self {
            mode: DetectionMode::Notified,
            burst: None,
            reported: ChangedPaths::default(),
            reported_before: ChangedPaths::default(),
            last_snapshot: None,
            needs_recheck: false,
            watched: BTreeMap::new(),
            watched_before: BTreeMap::new(),
            unreported: None,
            misses_in_a_row: 0,
            distrusted_until: None,
            stats: DetectionStats::default(),
        }
    }

    /// Forgets the folders, because they were replaced. The figures stay.
    pub(super) fn reset(&mut self) {
        *self = Self { stats: self.stats, ..Self::new() };
    }

    /// Returns how changes are detected.
    pub(super) fn mode(&self) -> &DetectionMode {
        &self.mode
    }

    /// Sets why the system cannot watch the folders; `None` if it can. Returns whether the mode
    /// changed.
    pub(super) fn set_watch_failure(&mut self, why: Option<String>) -> bool {
        let distrusted = self.distrusted_until.is_some_and(|it| Instant::now() < it);
        let mode = match why {
            Some(why) => DetectionMode::Polled(why),
            None if distrusted => return false,
            None => DetectionMode::Notified,
        };
        self.distrusted_until = self.distrusted_until.filter(|_| distrusted);
        std::mem::replace(&mut self.mode, mode) != self.mode
    }

    /// Records the changes that the system reported.
    pub(super) fn on_changes<'a>(
        &mut self,
        changes: impl Iterator<Item = (&'a PathBuf, &'a ChangedNames)>,
        overflow: bool,
        now: DateTime<Utc>,
    ) {
        for (folder, names) in changes {
            self.reported.add(folder, names);
        }
        if overflow {
            self.reported.overflow = true;
            self.stats.overflows += 1;
        }
        let reported = &self.reported;
        if let Some((suspects, _)) = &mut self.unreported {
            suspects.retain(|(folder, name)| !reported.reports(folder, *name));
        }
        self.stats.last_event = Some(now);
        self.extend_burst();
    }

    /// Records a poll, and returns whether the folder changed.
    pub(super) fn on_polled(&mut self, snapshot: Option<&FolderSnapshot>) -> bool {
        // The next run reports why it could not be listed.
        let is_news = snapshot.is_none() || snapshot != self.last_snapshot.as_ref();
        if is_news {
            self.reported.overflow = true;
            self.extend_burst();
        }
        is_news
    }

    fn extend_burst(&mut self) {
        let at = Instant::now();
        let first = self.burst.map_or(at, |it| it.first);
        self.burst = Some(Burst { first, last: at });
    }

    /// Returns when the burst ends, if nothing else comes.
    pub(super) fn burst_deadline(&self) -> Option<Instant> {
        self.burst.map(|it| (it.last + BURST_QUIET).min(it.first + BURST_MAX))
    }

    /// Ends the burst. Returns whether a reported file differs from the last scan; files that our own
    /// run wrote do not.
    pub(super) fn end_burst(&mut self) -> bool {
        if self.burst.take().is_none() {
            return false;
        }
        let Some(last) = &self.last_snapshot else { return true };
        self.needs_recheck
            || self.reported.overflow
            || self.reported.folders.iter().any(|(folder, names)| match names {
                ChangedNames::Many => true,
                ChangedNames::These(names) => names.iter().any(|it| last.differs_at(folder, it)),
            })
    }

    /// Records that a run begins, and which folders are watched.
    pub(super) fn on_run_started(&mut self, watched: BTreeMap<PathBuf, FolderId>) {
        self.reported_before = std::mem::take(&mut self.reported);
        self.watched_before = std::mem::replace(&mut self.watched, watched);
    }

    /// Records that the run failed: the changes reported before it are still unhandled.
    pub(super) fn on_run_failed(&mut self) {
        for (folder, names) in &std::mem::take(&mut self.reported_before).folders {
            self.reported.add(folder, names);
        }
        self.watched = std::mem::take(&mut self.watched_before);
    }

    /// Records the folders at the last scan of a run. `is_done` says that nothing came up during the
    /// run that still needs one.
    pub(super) fn on_run_finished(
        &mut self,
        snapshot: Option<FolderSnapshot>,
        is_done: bool,
        at: DateTime<Utc>,
    ) {
        self.stats.last_scan = Some(at);
        if let (DetectionMode::Notified, Some(last), Some(snapshot)) =
            (&self.mode, &self.last_snapshot, &snapshot)
        {
            let mut watched = self.watched_before.clone();
            watched.retain(|folder, id| self.watched.get(folder) == Some(id));
            let changed = last.changes_to(snapshot, &watched);
            let is_reported = |folder: &PathBuf, name: u64| {
                self.reported.reports(folder, name) || self.reported_before.reports(folder, name)
            };
            let (reported, unreported): (Vec<_>, Vec<_>) =
                changed.into_iter().partition(|(folder, name)| is_reported(folder, *name));
            if unreported.is_empty() {
                // Without a change this run is no evidence that reports work.
                self.misses_in_a_row = if reported.is_empty() { self.misses_in_a_row } else { 0 };
            } else {
                let until = Instant::now() + REPORT_DELAY_MAX;
                let suspects = self.unreported.take().map_or_else(Vec::new, |it| it.0);
                self.unreported = Some((suspects.into_iter().chain(unreported).collect(), until));
            }
        }
        self.last_snapshot = snapshot;
        // A change reported during this scan is new only if it differs from the scan. The settings were
        // read before the run, so their change always needs another one.
        self.needs_recheck = !is_done || self.reported.may_contain(ROOT_FILE_NAME);
        if self.burst.is_some() && self.burst_is_stale() {
            self.burst = None;
        }
    }

    /// Returns whether none of the reported changes is new.
    fn burst_is_stale(&mut self) -> bool {
        let burst = self.burst;
        let is_news = self.end_burst();
        self.burst = burst;
        !is_news
    }

    /// Returns when unreported changes count as missed.
    pub(super) fn unreported_deadline(&self) -> Option<Instant> {
        self.unreported.as_ref().map(|it| it.1)
    }

    /// Counts the changes that are still unreported. Returns how many, and whether the system is no
    /// longer trusted because of them.
    pub(super) fn count_missed(&mut self) -> Option<(usize, bool)> {
        if self.unreported_deadline().is_none_or(|it| it > Instant::now()) {
            return None;
        }
        let (suspects, _) = self.unreported.take()?;
        if suspects.is_empty() {
            self.misses_in_a_row = 0;
            return None;
        }
        self.stats.missed += 1;
        self.misses_in_a_row += 1;
        let distrust = self.misses_in_a_row >= MISSES_MAX;
        if distrust {
            self.misses_in_a_row = 0;
            self.distrusted_until = Some(Instant::now() + DISTRUST_PERIOD);
            self.mode = DetectionMode::Polled(
                "two scans in a row found changes that the system had not reported".to_owned(),
            );
        }
        Some((suspects.len(), distrust))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::OsStr,
        fs,
        path::{Path, PathBuf},
    };

    use super::*;
    use crate::daemon::folder_snapshot::{self, NameFilter, WatchedFolder};

    /// A watched folder and its detector.
    struct Case {
        dir: tempfile::TempDir,
        detector: ChangeDetector,
    }

    impl Case {
        fn new() -> Self {
            let mut case =
                Self { dir: tempfile::tempdir().unwrap(), detector: ChangeDetector::new() };
            case.write("a.md");
            case.run();
            case.run();
            case
        }

        fn path(&self) -> PathBuf {
            self.dir.path().to_owned()
        }

        fn write(&self, name: &str) {
            use std::io::Write as _;
            let path = self.path().join(name);
            let mut file = fs::File::options().append(true).create(true).open(path).unwrap();
            file.write_all(b"more\n").unwrap();
        }

        fn report(&mut self, name: &str) {
            let (path, names) = (self.path(), ChangedNames::These([name.into()].into()));
            self.detector.on_changes([(&path, &names)].into_iter(), false, DateTime::UNIX_EPOCH);
        }

        fn snapshot(&self) -> FolderSnapshot {
            let folder = WatchedFolder { path: self.path(), interest: NameFilter::Memory };
            FolderSnapshot::take(&[folder]).unwrap()
        }

        fn start_run(&mut self) {
            let path = self.path();
            let id = folder_snapshot::folder_id(&path).unwrap();
            self.detector.on_run_started([(path, id)].into());
        }

        fn run(&mut self) {
            self.start_run();
            let found = self.snapshot();
            self.detector.on_run_finished(Some(found), true, DateTime::UNIX_EPOCH);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_ends_when_it_is_quiet_and_not_later_than_a_minute() {
        let mut case = Case::new();
        assert_eq!(case.detector.burst_deadline(), None);
        let start = Instant::now();
        for second in 0..100 {
            case.report("b.md");
            let expected = (second + 2).min(60);
            assert_eq!(case.detector.burst_deadline(), Some(start + Duration::from_secs(expected)));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn files_that_a_run_wrote_itself_are_not_new() {
        let mut case = Case::new();
        case.start_run();
        case.write("a.md");
        case.report("a.md");
        let found = case.snapshot();
        case.detector.on_run_finished(Some(found), true, DateTime::UNIX_EPOCH);
        assert_eq!(case.detector.burst_deadline(), None);
        // A log that came during the run was seen, but not yet processed.
        case.start_run();
        case.write("b.md");
        case.report("b.md");
        let found = case.snapshot();
        case.detector.on_run_finished(Some(found), false, DateTime::UNIX_EPOCH);
        assert!(case.detector.burst_deadline().is_some() && case.detector.end_burst());
        case.run();
        // A late report is not new either; a change by somebody else is.
        case.report("a.md");
        assert!(!case.detector.end_burst());
        case.write("a.md");
        case.report("a.md");
        assert!(case.detector.end_burst());
        assert!(!case.detector.end_burst(), "a burst ends once");
    }

    #[tokio::test(start_paused = true)]
    async fn two_scans_in_a_row_with_an_unreported_change_end_the_trust() {
        let mut case = Case::new();
        let miss = async |case: &mut Case, name: &str| {
            case.write(name);
            case.run();
            assert_eq!(case.detector.count_missed(), None, "it may be reported late");
            tokio::time::advance(REPORT_DELAY_MAX).await;
            case.detector.count_missed()
        };
        assert_eq!(miss(&mut case, "a.md").await, Some((1, false)));
        // A reported change in between shows that reports work.
        case.write("a.md");
        case.report("a.md");
        case.run();
        assert_eq!(miss(&mut case, "b.md").await, Some((1, false)));
        // A scan without a change is no evidence.
        case.run();
        assert_eq!(case.detector.mode(), &DetectionMode::Notified);
        assert_eq!(miss(&mut case, "c.md").await, Some((1, true)));
        assert_eq!(case.detector.stats.missed, 3);
        assert!(
            matches!(case.detector.mode(), DetectionMode::Polled(why) if why.contains("two scans"))
        );
        assert!(!case.detector.set_watch_failure(None), "not before a day has passed");
        tokio::time::advance(DISTRUST_PERIOD).await;
        assert!(case.detector.set_watch_failure(None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_reported_late_or_in_an_unwatched_folder_is_not_missed() {
        let mut case = Case::new();
        case.write("a.md");
        case.run();
        case.report("a.md");
        tokio::time::advance(REPORT_DELAY_MAX).await;
        assert_eq!(case.detector.count_missed(), None);
        // A folder whose watch was placed only now.
        case.detector.on_run_started(BTreeMap::new());
        case.write("b.md");
        let found = case.snapshot();
        case.detector.on_run_finished(Some(found), true, DateTime::UNIX_EPOCH);
        case.write("c.md");
        case.run();
        assert_eq!(case.detector.unreported_deadline(), None);
        assert_eq!(case.detector.stats.missed, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_run_keeps_the_reported_changes() {
        let mut case = Case::new();
        case.write("b.md");
        case.report("b.md");
        assert!(case.detector.end_burst());
        case.start_run();
        case.detector.on_run_failed();
        case.run();
        assert_eq!(case.detector.unreported_deadline(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_poll_reports_a_folder_that_changed() {
        let mut case = Case::new();
        assert!(case.detector.set_watch_failure(Some("NFS".to_owned())));
        let same = case.snapshot();
        assert!(!case.detector.on_polled(Some(&same)));
        case.write("b.md");
        let other = case.snapshot();
        assert!(case.detector.on_polled(Some(&other)) && case.detector.end_burst());
        assert!(case.detector.on_polled(None));
        assert!(other.differs_at(Path::new("/no"), OsStr::new("b.md")));
    }
}
