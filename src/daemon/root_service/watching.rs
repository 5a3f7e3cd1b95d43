//! File changes of one memory folder: reported by the system, or found by polling.

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::{POLL_INTERVAL, RootService};
use crate::{
    daemon::{
        change_detection::DetectionMode,
        folder_snapshot::FolderSnapshot,
        watch::{ChangedPaths, FolderWatcher},
    },
    store::fs::filesystem::{self, FileSystemKind},
};

impl RootService {
    /// Watches the folders, including those that have appeared since; where that fails, they are polled.
    pub(in crate::daemon) fn update_watches(&mut self, watcher: &mut FolderWatcher) {
        let Some(open) = &self.open else { return };
        let remote = match filesystem::detect(open.vault.layout().root()) {
            Ok(FileSystemKind::Network(name) | FileSystemKind::UnknownFuse(name)) => {
                Some(format!("on {name} the system does not report what other hosts change"))
            }
            _ => None,
        };
        let placed = watcher.watch_folders(&self.path, &self.watched_folders());
        let failure = remote.or_else(|| placed.err().map(|it| watch_failure(&it)));
        if !self.change_detector.set_watch_failure(failure) {
            return;
        }
        let root = self.path.display();
        match self.change_detector.mode() {
            DetectionMode::Notified => {
                self.polling.next_at = None;
                tracing::info!("{root}: the system reports changes again");
            }
            DetectionMode::Polled(why) => {
                let every = POLL_INTERVAL.as_secs();
                tracing::warn!("{root}: {why}; polling every {every} s instead");
                self.polling.next_at = Some(Instant::now() + POLL_INTERVAL);
            }
        }
        self.write_state();
    }

    pub(in crate::daemon) fn update_watches_after_run(&mut self, watcher: &mut FolderWatcher) {
        let before = watcher.watched(&self.path);
        self.update_watches(watcher);
        self.polling.once |= watcher.watched(&self.path) != before;
    }

    /// Records changes that the system reported. Returns whether they concern a folder that is not
    /// served and may be now.
    pub(in crate::daemon) fn on_changes(
        &mut self,
        changes: &ChangedPaths,
        now: DateTime<Utc>,
    ) -> bool {
        if self.open.is_none() {
            return true;
        }
        if self.pause_reason.is_some() {
            // A person may be repairing it. A paused run writes nothing, so this is not its own change.
            self.backoff.until = None;
        }
        self.change_detector.on_changes(changes.in_root(&self.path), changes.overflow, now);
        false
    }

    /// Returns when the current burst of changes ends if nothing else comes. There is no end while a run is
    /// active, because its own writes cannot be told from others yet.
    pub(in crate::daemon) fn burst_deadline(&self) -> Option<Instant> {
        self.change_detector.burst_deadline().filter(|_| !self.is_running)
    }

    /// Ends the burst, and requests a run if it changed anything.
    pub(in crate::daemon) fn end_burst(&mut self, watcher: &mut FolderWatcher) {
        if !self.change_detector.end_burst() {
            return;
        }
        self.update_watches(watcher);
        self.request_run("change", self.tiers_on_change());
        self.write_state();
    }

    /// Logs changes that the system did not report, and polls once there were too many.
    pub(super) fn report_missed(&mut self, missed: usize, is_distrusted: bool) {
        let root = self.path.display();
        tracing::warn!("{root}: {missed} files changed without a notification from the system");
        if is_distrusted {
            let every = POLL_INTERVAL.as_secs();
            tracing::warn!(
                "{root}: that happened twice in a row; polling every {every} s from now on"
            );
            self.polling.next_at = Some(Instant::now() + POLL_INTERVAL);
        }
        self.write_state();
    }

    /// Returns whether a poll is due, and schedules the next one.
    pub(in crate::daemon) fn take_poll_turn(&mut self) -> bool {
        let at = Instant::now();
        let is_due = self.polling.next_at.is_some_and(|it| it <= at);
        if self.open.is_none() || self.is_running || !(is_due || self.polling.once) {
            return false;
        }
        self.polling.once = false;
        self.polling.next_at = self.polling.next_at.map(|_| at + POLL_INTERVAL);
        true
    }

    /// Records what a poll found; `None` when a folder could not be listed.
    pub(in crate::daemon) fn on_polled(&mut self, snapshot: Option<&FolderSnapshot>) {
        if self.open.is_some() && !self.is_running {
            self.change_detector.on_polled(snapshot);
        }
    }
}

/// Describes why the system does not watch.
fn watch_failure(error: &notify::Error) -> String {
    use notify::ErrorKind;
    match &error.kind {
        ErrorKind::MaxFilesWatch => {
            "no more folders can be watched (the limit is fs.inotify.max_user_watches)".to_owned()
        }
        // EMFILE: too many inotify instances, or too many open files.
        ErrorKind::Io(source) if source.raw_os_error() == Some(24) => {
            "no more watchers can be created (the limit is fs.inotify.max_user_instances, or that \
             of open files)"
                .to_owned()
        }
        _ => format!("the system does not report changes ({error})"),
    }
}
