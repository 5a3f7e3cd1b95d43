//! Opening a memory folder, closing it, and opening it again.

use std::{ffi::OsStr, fs, io, os::unix::fs::MetadataExt as _, path::Path};

use tokio::time::Instant;

use super::{OpenRoot, RootService, RunBackoff, SCAN_INTERVAL};
use crate::{
    config::{root::ROOT_FILE_NAME, settings::EngineKind},
    daemon::{
        context::DaemonContext,
        error::{RootError, chain},
        folder_snapshot::{NameFilter, WatchedFolder},
        schedule::{self, Agenda},
        watch::FolderWatcher,
    },
    memory::item::Tier,
    store::fs::{layout::Layout, lock::DaemonLock, vault::Vault},
};

/// Device and inode of the folder and of its lock file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RootIdentity([(u64, u64); 2]);

impl RootIdentity {
    fn of(layout: &Layout) -> io::Result<Self> {
        let id = |path: &Path| fs::metadata(path).map(|it| (it.dev(), it.ino()));
        Ok(Self([id(layout.root())?, id(&layout.daemon_lock())?]))
    }
}

impl RootService {
    /// Starts to serve the folder and requests a run of all tiers. An error is logged once.
    ///
    /// Returns why it cannot be served now. Its parent folder is then watched for it.
    pub(in crate::daemon) fn start(
        &mut self,
        context: &mut DaemonContext,
    ) -> Result<(), RootError> {
        let result = self.try_start_watched(context);
        match &result {
            Ok(()) => tracing::info!("{}: watching", self.path.display()),
            Err(error) => self.warn_once(error),
        }
        result
    }

    fn try_start_watched(&mut self, context: &mut DaemonContext) -> Result<(), RootError> {
        let Err(error) = self.try_start(context) else { return Ok(()) };
        self.watch_for_appearance(&mut context.watcher);
        if matches!(error, RootError::Lock(_) | RootError::Model { .. }) {
            return Err(error);
        }
        // A folder that was repaired before its parent was watched is never reported.
        let result = self.try_start(context);
        result.inspect_err(|_| self.watch_for_appearance(&mut context.watcher))
    }

    fn try_start(&mut self, context: &mut DaemonContext) -> Result<(), RootError> {
        let DaemonContext { config, now, .. } = context;
        if self.was_opened && is_empty(&self.path) {
            return Err(RootError::Emptied { root: self.path.clone() });
        }
        let settings = config.settings_of(&self.path)?;
        let vault = Vault::for_root(&settings)?;
        vault.create_private_dir()?;
        let layout = vault.layout();
        let lock = DaemonLock::acquire(layout)?;
        let identity = RootIdentity::of(layout)
            .map_err(|source| RootError::Inaccessible { root: self.path.clone(), source })?;
        let model = &settings.settings.model;
        let is_model = settings.settings.engine == EngineKind::Model;
        if is_model && model.batch && !model.provider.supports_batches() {
            let root = self.path.display();
            tracing::warn!(
                "{root}: model.batch: this provider has no batches; requests are sent directly"
            );
        }
        self.jitter = schedule::jitter(&self.path, config.roots.len());
        let agenda = Agenda::new(&settings, self.jitter, *now);
        self.open = Some(OpenRoot { _lock: lock, identity, settings, vault, agenda, since: *now });
        self.was_opened = true;
        self.errors.root.clear();
        self.backoff = RunBackoff::default();
        self.change_detector.reset();
        self.counts.runs = 0;
        self.waits.jobs = None;
        self.timers.scan = Instant::now() + SCAN_INTERVAL + self.jitter;
        self.request_run("start", Tier::ALL.into());
        self.update_watches(&mut context.watcher);
        self.write_state();
        Ok(())
    }

    /// Watches the parent for the folder to appear, and the folder for a repaired `memoird.yaml`.
    fn watch_for_appearance(&self, watcher: &mut FolderWatcher) {
        let Some((parent, name)) = self.path.parent().zip(self.path.file_name()) else { return };
        let only = |name: &OsStr| NameFilter::Only([name.to_owned()].into());
        let folders = [
            WatchedFolder { path: parent.to_owned(), interest: only(name) },
            WatchedFolder { path: self.path.clone(), interest: only(ROOT_FILE_NAME.as_ref()) },
        ];
        // Without a watch it is retried once a minute.
        if let Err(error) = watcher.watch_folders(&self.path, &folders) {
            tracing::debug!("{}: {error}", self.path.display());
        }
    }

    /// Stops serving the folder and releases its lock.
    pub(in crate::daemon) fn close(&mut self, watcher: &mut FolderWatcher) {
        watcher.unwatch_root(&self.path);
        self.open = None;
        self.pending = None;
        self.change_detector.reset();
    }

    /// Starts to serve a folder that could not be served; an error is only logged.
    pub(in crate::daemon) fn reopen(&mut self, context: &mut DaemonContext) {
        // `start` has logged the error.
        drop(self.start(context));
    }

    /// Closes a folder that was moved or replaced, and opens what is at its path now.
    pub(in crate::daemon) fn reopen_if_replaced(&mut self, context: &mut DaemonContext) {
        if !self.is_same_folder() {
            tracing::warn!("{}: the folder was moved or replaced", self.path.display());
            self.close(&mut context.watcher);
            self.reopen(context);
        }
    }

    /// Opens the folder if it is closed or was replaced.
    pub(in crate::daemon) fn ensure_open(&mut self, context: &mut DaemonContext) {
        self.reopen_if_replaced(context);
        if self.open.is_none() {
            self.reopen(context);
        }
    }

    /// Reads the settings again, and returns whether that succeeded. Wrong settings are logged and the
    /// previous ones stay. A folder that another host writes from now on is closed.
    pub(in crate::daemon) fn refresh(&mut self, context: &mut DaemonContext) -> bool {
        let Err(error) = self.reload_settings(context) else { return true };
        self.warn_once(&error);
        if matches!(error, RootError::OtherWriter { .. }) {
            self.close(&mut context.watcher);
            self.watch_for_appearance(&mut context.watcher);
        }
        false
    }

    fn reload_settings(&mut self, context: &DaemonContext) -> Result<(), RootError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let settings = context.config.settings_of(&self.path)?;
        if settings != open.settings {
            let vault = Vault::for_root(&settings)?;
            open.agenda = Agenda::new(&settings, self.jitter, context.now);
            open.settings = settings;
            open.vault = vault;
            // Another model, or another key, may answer at once.
            self.waits.jobs = None;
        }
        Ok(())
    }

    /// Returns whether the folder and its lock file are still those that were opened. A folder that was
    /// moved away, or whose private folder was deleted, is no longer locked.
    pub(in crate::daemon) fn is_same_folder(&self) -> bool {
        self.open.as_ref().is_none_or(|open| {
            RootIdentity::of(open.vault.layout()).is_ok_and(|it| it == open.identity)
        })
    }

    /// Logs why the folder cannot be served, unless that was logged last.
    pub(in crate::daemon) fn warn_once(&mut self, error: &RootError) {
        if self.is_new_error(error.cause()) {
            tracing::warn!("{}: {}", self.path.display(), chain(error));
        }
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut it| it.next().is_none())
}
