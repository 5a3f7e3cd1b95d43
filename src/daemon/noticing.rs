//! How changes of one root are noticed, and whether the system can be trusted to tell of them.
//!
//! Changes that come close after each other are one burst; when it has ended, and is news, a pass is
//! wanted. After every pass what changed since the one before is compared with what the system told
//! of. A change that nobody told of is a miss; after two looks in a row with a miss the folder is
//! polled, until it is opened anew or a day has passed.
//!
//! Events and the end of a pass come to the loop in any order, so a change is called missed only when
//! nobody has told of it [`TOLD_LATE`] after the look that found it.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::{
    snapshot::{Id, Name, Snapshot},
    watch::{Dirty, Names},
};
use crate::config::root::ROOT_FILE_NAME;

/// A burst of changes has ended when nothing came for so long.
const BURST_QUIET: Duration = Duration::from_secs(2);
/// A burst that does not end is cut here.
const BURST_MAX: Duration = Duration::from_secs(60);
/// How long the system may take to tell of a change that a look has found.
const TOLD_LATE: Duration = Duration::from_secs(10);
/// So many looks in a row with a miss, and the system is trusted no longer.
const MISSES_MAX: u32 = 2;
/// How long it is not trusted.
const DISTRUST: Duration = Duration::from_secs(24 * 60 * 60);

/// How changes are noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The system tells of them.
    Told,
    /// The folder is looked at every half minute, and why.
    Polled(String),
}

/// What is known of the changes of a root.
#[derive(Debug)]
pub(super) struct Noticing {
    mode: Mode,
    burst: Option<Burst>,
    /// What was told since the last pass began.
    told: Dirty,
    /// What was told between the beginnings of the pass before it and of it.
    told_before: Dirty,
    /// What stood there at the last look.
    last: Option<Snapshot>,
    /// That look saw work that came too late for its pass.
    unsure: bool,
    /// Which folders were watched when the last pass began, and from when on that look is proof.
    watched: BTreeMap<PathBuf, Id>,
    /// The same when the pass before it began.
    watched_before: BTreeMap<PathBuf, Id>,
    /// Changes that a look found and nobody has told of yet, and until when somebody may.
    suspects: Option<(Vec<Name>, Instant)>,
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

impl Noticing {
    /// Knows nothing yet.
    pub(super) fn new() -> Self {
        Self {
            mode: Mode::Told,
            burst: None,
            told: Dirty::default(),
            told_before: Dirty::default(),
            last: None,
            unsure: false,
            watched: BTreeMap::new(),
            watched_before: BTreeMap::new(),
            suspects: None,
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
    pub(super) fn mode(&self) -> &Mode {
        &self.mode
    }

    /// Takes note of whether the system can watch the folders; `why` says why not. Returns whether
    /// the way of noticing is another one now.
    pub(super) fn placed(&mut self, why: Option<String>) -> bool {
        let distrusted = self.distrusted_until.is_some_and(|it| Instant::now() < it);
        let mode = match why {
            Some(why) => Mode::Polled(why),
            None if distrusted => return false,
            None => Mode::Told,
        };
        self.distrusted_until = self.distrusted_until.filter(|_| distrusted);
        std::mem::replace(&mut self.mode, mode) != self.mode
    }

    /// Takes note of what the system told of this root.
    pub(super) fn hear<'a>(
        &mut self,
        told: impl Iterator<Item = (&'a PathBuf, &'a Names)>,
        overflow: bool,
        now: DateTime<Utc>,
    ) {
        for (folder, names) in told {
            self.told.add(folder, names);
        }
        if overflow {
            self.told.add_overflow();
            self.overflows += 1;
        }
        let told = &self.told;
        if let Some((suspects, _)) = &mut self.suspects {
            suspects.retain(|(folder, name)| !told.tells_of(folder, *name));
        }
        self.last_event = Some(now);
        self.stir();
    }

    /// Takes note of what a look at a polled folder found; returns whether that is news.
    pub(super) fn peeked(&mut self, found: Option<&Snapshot>) -> bool {
        // One that could not be listed is for a pass to tell of.
        let is_news = found.is_none() || found != self.last.as_ref();
        if is_news {
            self.told.add_overflow();
            self.stir();
        }
        is_news
    }

    fn stir(&mut self) {
        let at = Instant::now();
        let first = self.burst.map_or(at, |it| it.first);
        self.burst = Some(Burst { first, last: at });
    }

    /// Returns when the burst of changes ends, if nothing else comes.
    pub(super) fn burst_ends(&self) -> Option<Instant> {
        self.burst.map(|it| (it.last + BURST_QUIET).min(it.first + BURST_MAX))
    }

    /// Ends the burst; returns whether it was news: whether anything that was told of is not as the
    /// last look saw it. What we wrote ourselves is.
    pub(super) fn end_burst(&mut self) -> bool {
        if self.burst.take().is_none() {
            return false;
        }
        let Some(last) = &self.last else { return true };
        self.unsure
            || self.told.is_overflow()
            || self.told.folders().iter().any(|(folder, names)| match names {
                Names::Many => true,
                Names::These(names) => names.iter().any(|it| last.differs_at(folder, it)),
            })
    }

    /// Takes note that a pass begins, with which folders watched.
    pub(super) fn begin(&mut self, watched: BTreeMap<PathBuf, Id>) {
        self.told_before = std::mem::take(&mut self.told);
        self.watched_before = std::mem::replace(&mut self.watched, watched);
    }

    /// Takes note that the pass came to nothing: what was told is told still.
    pub(super) fn fail(&mut self) {
        for (folder, names) in std::mem::take(&mut self.told_before).folders() {
            self.told.add(folder, names);
        }
        self.watched = std::mem::take(&mut self.watched_before);
    }

    /// Takes note of what stood there at the last look of a pass. `is_done` says that the pass left no
    /// work that it had not known of when it began.
    pub(super) fn note(&mut self, found: Option<Snapshot>, is_done: bool, at: DateTime<Utc>) {
        self.last_scan = Some(at);
        if let (Mode::Told, Some(last), Some(found)) = (&self.mode, &self.last, &found) {
            let mut watched = self.watched_before.clone();
            watched.retain(|folder, id| self.watched.get(folder) == Some(id));
            let changed = last.changed(found, &watched);
            let is_told = |folder: &PathBuf, name: u64| {
                self.told.tells_of(folder, name) || self.told_before.tells_of(folder, name)
            };
            let (told, untold): (Vec<_>, Vec<_>) =
                changed.into_iter().partition(|(folder, name)| is_told(folder, *name));
            if untold.is_empty() {
                // Where nothing changed, nothing is proved.
                self.misses_in_a_row = if told.is_empty() { self.misses_in_a_row } else { 0 };
            } else {
                let until = Instant::now() + TOLD_LATE;
                let suspects = self.suspects.take().map_or_else(Vec::new, |it| it.0);
                self.suspects = Some((suspects.into_iter().chain(untold).collect(), until));
            }
        }
        self.last = found;
        // What is told of this look's own time is news only if it is not as the look saw it.
        // The settings of a root are read before its pass.
        self.unsure = !is_done || self.told.names(ROOT_FILE_NAME);
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
    pub(super) fn doubts_end(&self) -> Option<Instant> {
        self.suspects.as_ref().map(|it| it.1)
    }

    /// Counts the changes as missed that nobody has told of by now. Returns how many, and whether the
    /// system is trusted no longer because of them.
    pub(super) fn end_doubts(&mut self) -> Option<(usize, bool)> {
        if self.doubts_end().is_none_or(|it| it > Instant::now()) {
            return None;
        }
        let (suspects, _) = self.suspects.take()?;
        if suspects.is_empty() {
            self.misses_in_a_row = 0;
            return None;
        }
        self.missed += 1;
        self.misses_in_a_row += 1;
        let distrust = self.misses_in_a_row >= MISSES_MAX;
        if distrust {
            self.misses_in_a_row = 0;
            self.distrusted_until = Some(Instant::now() + DISTRUST);
            self.mode = Mode::Polled(
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
    use crate::daemon::snapshot::{self, Folder, Interest};

    /// A folder that is watched, and what is known of its changes.
    struct Case {
        dir: tempfile::TempDir,
        noticing: Noticing,
    }

    impl Case {
        fn new() -> Self {
            let mut case = Self { dir: tempfile::tempdir().unwrap(), noticing: Noticing::new() };
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
            let (path, names) = (self.path(), Names::These([name.into()].into()));
            self.noticing.hear([(&path, &names)].into_iter(), false, DateTime::UNIX_EPOCH);
        }

        fn look(&self) -> Snapshot {
            let folder = Folder { path: self.path(), interest: Interest::Memory };
            Snapshot::take(&[folder]).unwrap()
        }

        fn begin(&mut self) {
            let path = self.path();
            let id = snapshot::id_of(&path).unwrap();
            self.noticing.begin([(path, id)].into());
        }

        fn pass(&mut self) {
            self.begin();
            let found = self.look();
            self.noticing.note(Some(found), true, DateTime::UNIX_EPOCH);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_ends_when_it_is_quiet_and_not_later_than_a_minute() {
        let mut case = Case::new();
        assert_eq!(case.noticing.burst_ends(), None);
        let start = Instant::now();
        for second in 0..100 {
            case.tell("b.md");
            let expected = (second + 2).min(60);
            assert_eq!(case.noticing.burst_ends(), Some(start + Duration::from_secs(expected)));
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
        case.noticing.note(Some(found), true, DateTime::UNIX_EPOCH);
        assert_eq!(case.noticing.burst_ends(), None);
        // A log that came while the pass was at work was seen, but nothing was made of it.
        case.begin();
        case.write("b.md");
        case.tell("b.md");
        let found = case.look();
        case.noticing.note(Some(found), false, DateTime::UNIX_EPOCH);
        assert!(case.noticing.burst_ends().is_some() && case.noticing.end_burst());
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
            assert_eq!(case.noticing.end_doubts(), None, "it may be told late");
            tokio::time::advance(TOLD_LATE).await;
            case.noticing.end_doubts()
        };
        assert_eq!(miss(&mut case, "a.md").await, Some((1, false)));
        // One that is told in between shows that it works.
        case.write("a.md");
        case.tell("a.md");
        case.pass();
        assert_eq!(miss(&mut case, "b.md").await, Some((1, false)));
        // A look that finds nothing new proves nothing.
        case.pass();
        assert_eq!(case.noticing.mode(), &Mode::Told);
        assert_eq!(miss(&mut case, "c.md").await, Some((1, true)));
        assert_eq!(case.noticing.missed, 3);
        assert!(matches!(case.noticing.mode(), Mode::Polled(why) if why.contains("two looks")));
        assert!(!case.noticing.placed(None), "not before a day has passed");
        tokio::time::advance(DISTRUST).await;
        assert!(case.noticing.placed(None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_late_or_was_not_watched_is_not_missed() {
        let mut case = Case::new();
        case.write("a.md");
        case.pass();
        case.tell("a.md");
        tokio::time::advance(TOLD_LATE).await;
        assert_eq!(case.noticing.end_doubts(), None);
        // A folder whose watch was placed meanwhile.
        case.noticing.begin(BTreeMap::new());
        case.write("b.md");
        let found = case.look();
        case.noticing.note(Some(found), true, DateTime::UNIX_EPOCH);
        case.write("c.md");
        case.pass();
        assert_eq!(case.noticing.doubts_end(), None);
        assert_eq!(case.noticing.missed, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_failed_leaves_what_was_told() {
        let mut case = Case::new();
        case.write("b.md");
        case.tell("b.md");
        assert!(case.noticing.end_burst());
        case.begin();
        case.noticing.fail();
        case.pass();
        assert_eq!(case.noticing.doubts_end(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_polled_folder_is_news_when_it_is_not_as_it_was() {
        let mut case = Case::new();
        assert!(case.noticing.placed(Some("NFS".to_owned())));
        let same = case.look();
        assert!(!case.noticing.peeked(Some(&same)));
        case.write("b.md");
        let other = case.look();
        assert!(case.noticing.peeked(Some(&other)) && case.noticing.end_burst());
        assert!(case.noticing.peeked(None));
        assert!(other.differs_at(Path::new("/no"), OsStr::new("b.md")));
    }
}
