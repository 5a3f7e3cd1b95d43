//! How changes of one root are noticed, and whether the system can be trusted to tell of them.
//!
//! Changes that come close after each other are one burst; when it has ended, and is news, a pass is
//! wanted. After every pass what changed since the one before is compared with what the system told
//! of. A change that nobody told of is a miss; after two looks in a row with a miss the folder is
//! polled, until it is opened anew or a day has passed.
//!
//! Events and the end of a pass come to the loop in any order, so a change is called missed only when
//! nobody has told of it [`REPORT_DELAY_MAX`] after the look that found it.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::{
    folder_snapshot::{FolderId, FolderSnapshot, HashedPath},
    watch::{ChangedNames, ChangedPaths},
};
use crate::config::root::ROOT_FILE_NAME;

/// A burst of changes has ended when nothing came for so long.
const BURST_QUIET: Duration = Duration::from_secs(2);
/// A burst that does not end is cut here.
const BURST_MAX: Duration = Duration::from_secs(60);
/// How long the system may take to tell of a change that a look has found.
const REPORT_DELAY_MAX: Duration = Duration::from_secs(10);
/// So many looks in a row with a miss, and the system is trusted no longer.
const MISSES_MAX: u32 = 2;
/// How long it is not trusted.
const DISTRUST_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// How changes are noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DetectionMode {
    /// The system tells of them.
    Notified,
    /// The folder is looked at every half minute, and why.
    Polled(String),
}

/// What is known of the changes of a root.
#[derive(Debug)]
pub(super) struct ChangeDetector {
    mode: DetectionMode,
    burst: Option<Burst>,
    /// What was told since the last pass began.
    reported: ChangedPaths,
    /// What was told between the beginnings of the pass before it and of it.
    reported_before: ChangedPaths,
    /// What stood there at the last look.
    last_snapshot: Option<FolderSnapshot>,
    /// That look saw work that came too late for its pass.
    needs_recheck: bool,
    /// Which folders were watched when the last pass began, and from when on that look is proof.
    watched: BTreeMap<PathBuf, FolderId>,
    /// The same when the pass before it began.
    watched_before: BTreeMap<PathBuf, FolderId>,
    /// Changes that a look found and nobody has told of yet, and until when somebody may.
    unreported: Option<(Vec<HashedPath>, Instant)>,
    misses_in_a_row: u32,
    distrusted_until: Option<Instant>,
    /// Looks that found a change that nobody had told of.
    pub(super) missed: u64,
    /// How often the system said that events were lost.
    pub(super) overflows: u64,
    /// When the system last told of a change.
    pub(super) last_event: Option<DateTime<Utc>>,
    /// When the whole folder was last looked at.
    pub(super) last_scan: Option<DateTime<Utc>>,
}

/// Changes that come close after each other.
#[derive(Clone, Copy, Debug)]
struct Burst {
    first: Instant,
    last: Instant,
}

impl ChangeDetector {
    /// Knows nothing yet.
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
            missed: 0,
            overflows: 0,
            last_event: None,
            last_scan: None,
        }
    }

    /// Forgets what was known of the folders: they are others now.
    pub(super) fn reset(&mut self) {
        let Self { missed, overflows, last_event, last_scan, .. } = *self;
        *self = Self { missed, overflows, last_event, last_scan, ..Self::new() };
    }

    /// Returns how changes are noticed.
    pub(super) fn mode(&self) -> &DetectionMode {
        &self.mode
    }

    /// Takes note of whether the system can watch the folders; `why` says why not. Returns whether
    /// the way of noticing is another one now.
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

    /// Takes note of what the system told of this root.
    pub(super) fn on_changes<'a>(
        &mut self,
        told: impl Iterator<Item = (&'a PathBuf, &'a ChangedNames)>,
        overflow: bool,
        now: DateTime<Utc>,
    ) {
        for (folder, names) in told {
            self.reported.add(folder, names);
        }
        if overflow {
            self.reported.add_overflow();
            self.overflows += 1;
        }
        let told = &self.reported;
        if let Some((suspects, _)) = &mut self.unreported {
            suspects.retain(|(folder, name)| !told.reports(folder, *name));
        }
        self.last_event = Some(now);
        self.extend_burst();
    }

    /// Takes note of what a look at a polled folder found; returns whether that is news.
    pub(super) fn on_polled(&mut self, found: Option<&FolderSnapshot>) -> bool {
        // One that could not be listed is for a pass to tell of.
        let is_news = found.is_none() || found != self.last_snapshot.as_ref();
        if is_news {
            self.reported.add_overflow();
            self.extend_burst();
        }
        is_news
    }

    fn extend_burst(&mut self) {
        let at = Instant::now();
        let first = self.burst.map_or(at, |it| it.first);
        self.burst = Some(Burst { first, last: at });
    }

    /// Returns when the burst of changes ends, if nothing else comes.
    pub(super) fn burst_deadline(&self) -> Option<Instant> {
        self.burst.map(|it| (it.last + BURST_QUIET).min(it.first + BURST_MAX))
    }

    /// Ends the burst; returns whether it was news: whether anything that was told of is not as the
    /// last look saw it. What we wrote ourselves is.
    pub(super) fn end_burst(&mut self) -> bool {
        if self.burst.take().is_none() {
            return false;
        }
        let Some(last) = &self.last_snapshot else { return true };
        self.needs_recheck
            || self.reported.is_overflow()
            || self.reported.folders().iter().any(|(folder, names)| match names {
                ChangedNames::Many => true,
                ChangedNames::These(names) => names.iter().any(|it| last.differs_at(folder, it)),
            })
    }

    /// Takes note that a pass begins, with which folders watched.
    pub(super) fn on_run_started(&mut self, watched: BTreeMap<PathBuf, FolderId>) {
        self.reported_before = std::mem::take(&mut self.reported);
        self.watched_before = std::mem::replace(&mut self.watched, watched);
    }

    /// Takes note that the pass came to nothing: what was told is told still.
    pub(super) fn on_run_failed(&mut self) {
        for (folder, names) in std::mem::take(&mut self.reported_before).folders() {
            self.reported.add(folder, names);
        }
        self.watched = std::mem::take(&mut self.watched_before);
    }

    /// Takes note of what stood there at the last look of a pass. `is_done` says that the pass left no
    /// work that it had not known of when it began.
    pub(super) fn on_run_finished(
        &mut self,
        found: Option<FolderSnapshot>,
        is_done: bool,
        at: DateTime<Utc>,
    ) {
        self.last_scan = Some(at);
        if let (DetectionMode::Notified, Some(last), Some(found)) =
            (&self.mode, &self.last_snapshot, &found)
        {
            let mut watched = self.watched_before.clone();
            watched.retain(|folder, id| self.watched.get(folder) == Some(id));
            let changed = last.changes_to(found, &watched);
            let is_told = |folder: &PathBuf, name: u64| {
                self.reported.reports(folder, name) || self.reported_before.reports(folder, name)
            };
            let (told, untold): (Vec<_>, Vec<_>) =
                changed.into_iter().partition(|(folder, name)| is_told(folder, *name));
            if untold.is_empty() {
                // Where nothing changed, nothing is proved.
                self.misses_in_a_row = if told.is_empty() { self.misses_in_a_row } else { 0 };
            } else {
                let until = Instant::now() + REPORT_DELAY_MAX;
                let suspects = self.unreported.take().map_or_else(Vec::new, |it| it.0);
                self.unreported = Some((suspects.into_iter().chain(untold).collect(), until));
            }
        }
        self.last_snapshot = found;
        // What is told of this look's own time is news only if it is not as the look saw it.
        // The settings of a root are read before its pass.
        self.needs_recheck = !is_done || self.reported.may_contain(ROOT_FILE_NAME);
        if self.burst.is_some() && self.burst_is_stale() {
            self.burst = None;
        }
    }

    /// Returns whether nothing that was told is news.
    fn burst_is_stale(&mut self) -> bool {
        let burst = self.burst;
        let is_news = self.end_burst();
        self.burst = burst;
        !is_news
    }

    /// Returns when changes count as missed that nobody has told of.
    pub(super) fn unreported_deadline(&self) -> Option<Instant> {
        self.unreported.as_ref().map(|it| it.1)
    }

    /// Counts the changes as missed that nobody has told of by now. Returns how many, and whether the
    /// system is trusted no longer because of them.
    pub(super) fn count_missed(&mut self) -> Option<(usize, bool)> {
        if self.unreported_deadline().is_none_or(|it| it > Instant::now()) {
            return None;
        }
        let (suspects, _) = self.unreported.take()?;
        if suspects.is_empty() {
            self.misses_in_a_row = 0;
            return None;
        }
        self.missed += 1;
        self.misses_in_a_row += 1;
        let distrust = self.misses_in_a_row >= MISSES_MAX;
        if distrust {
            self.misses_in_a_row = 0;
            self.distrusted_until = Some(Instant::now() + DISTRUST_PERIOD);
            self.mode = DetectionMode::Polled(
                "two looks in a row found changes that the system had not told of".to_owned(),
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

    /// A folder that is watched, and what is known of its changes.
    struct Case {
        dir: tempfile::TempDir,
        noticing: ChangeDetector,
    }

    impl Case {
        fn new() -> Self {
            let mut case =
                Self { dir: tempfile::tempdir().unwrap(), noticing: ChangeDetector::new() };
            case.write("a.md");
            case.pass();
            case.pass();
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

        fn tell(&mut self, name: &str) {
            let (path, names) = (self.path(), ChangedNames::These([name.into()].into()));
            self.noticing.on_changes([(&path, &names)].into_iter(), false, DateTime::UNIX_EPOCH);
        }

        fn look(&self) -> FolderSnapshot {
            let folder = WatchedFolder { path: self.path(), interest: NameFilter::Memory };
            FolderSnapshot::take(&[folder]).unwrap()
        }

        fn begin(&mut self) {
            let path = self.path();
            let id = folder_snapshot::folder_id(&path).unwrap();
            self.noticing.on_run_started([(path, id)].into());
        }

        fn pass(&mut self) {
            self.begin();
            let found = self.look();
            self.noticing.on_run_finished(Some(found), true, DateTime::UNIX_EPOCH);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_ends_when_it_is_quiet_and_not_later_than_a_minute() {
        let mut case = Case::new();
        assert_eq!(case.noticing.burst_deadline(), None);
        let start = Instant::now();
        for second in 0..100 {
            case.tell("b.md");
            let expected = (second + 2).min(60);
            assert_eq!(case.noticing.burst_deadline(), Some(start + Duration::from_secs(expected)));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_pass_wrote_itself_is_no_news() {
        let mut case = Case::new();
        case.begin();
        case.write("a.md");
        case.tell("a.md");
        let found = case.look();
        case.noticing.on_run_finished(Some(found), true, DateTime::UNIX_EPOCH);
        assert_eq!(case.noticing.burst_deadline(), None);
        // A log that came while the pass was at work was seen, but nothing was made of it.
        case.begin();
        case.write("b.md");
        case.tell("b.md");
        let found = case.look();
        case.noticing.on_run_finished(Some(found), false, DateTime::UNIX_EPOCH);
        assert!(case.noticing.burst_deadline().is_some() && case.noticing.end_burst());
        case.pass();
        // Told late, it is no news either; what comes from somebody else is.
        case.tell("a.md");
        assert!(!case.noticing.end_burst());
        case.write("a.md");
        case.tell("a.md");
        assert!(case.noticing.end_burst());
        assert!(!case.noticing.end_burst(), "a burst ends once");
    }

    #[tokio::test(start_paused = true)]
    async fn two_looks_in_a_row_that_found_what_nobody_told_of_end_the_trust() {
        let mut case = Case::new();
        let miss = async |case: &mut Case, name: &str| {
            case.write(name);
            case.pass();
            assert_eq!(case.noticing.count_missed(), None, "it may be told late");
            tokio::time::advance(REPORT_DELAY_MAX).await;
            case.noticing.count_missed()
        };
        assert_eq!(miss(&mut case, "a.md").await, Some((1, false)));
        // One that is told in between shows that it works.
        case.write("a.md");
        case.tell("a.md");
        case.pass();
        assert_eq!(miss(&mut case, "b.md").await, Some((1, false)));
        // A look that finds nothing new proves nothing.
        case.pass();
        assert_eq!(case.noticing.mode(), &DetectionMode::Notified);
        assert_eq!(miss(&mut case, "c.md").await, Some((1, true)));
        assert_eq!(case.noticing.missed, 3);
        assert!(
            matches!(case.noticing.mode(), DetectionMode::Polled(why) if why.contains("two looks"))
        );
        assert!(!case.noticing.set_watch_failure(None), "not before a day has passed");
        tokio::time::advance(DISTRUST_PERIOD).await;
        assert!(case.noticing.set_watch_failure(None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_late_or_was_not_watched_is_not_missed() {
        let mut case = Case::new();
        case.write("a.md");
        case.pass();
        case.tell("a.md");
        tokio::time::advance(REPORT_DELAY_MAX).await;
        assert_eq!(case.noticing.count_missed(), None);
        // A folder whose watch was placed meanwhile.
        case.noticing.on_run_started(BTreeMap::new());
        case.write("b.md");
        let found = case.look();
        case.noticing.on_run_finished(Some(found), true, DateTime::UNIX_EPOCH);
        case.write("c.md");
        case.pass();
        assert_eq!(case.noticing.unreported_deadline(), None);
        assert_eq!(case.noticing.missed, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_failed_leaves_what_was_told() {
        let mut case = Case::new();
        case.write("b.md");
        case.tell("b.md");
        assert!(case.noticing.end_burst());
        case.begin();
        case.noticing.on_run_failed();
        case.pass();
        assert_eq!(case.noticing.unreported_deadline(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_polled_folder_is_news_when_it_is_not_as_it_was() {
        let mut case = Case::new();
        assert!(case.noticing.set_watch_failure(Some("NFS".to_owned())));
        let same = case.look();
        assert!(!case.noticing.on_polled(Some(&same)));
        case.write("b.md");
        let other = case.look();
        assert!(case.noticing.on_polled(Some(&other)) && case.noticing.end_burst());
        assert!(case.noticing.on_polled(None));
        assert!(other.differs_at(Path::new("/no"), OsStr::new("b.md")));
    }
}
