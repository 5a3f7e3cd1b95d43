//! Roots that are opened, let go, and opened again.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::{
    error::{RootError, chain},
    root_service::RootService,
    runtime_config::RuntimeConfig,
    watch::FolderWatcher,
};

/// Gives up a root whose folder was moved away or made anew, and opens what stands there now.
pub(super) fn reopen_if_replaced(
    root: &mut RootService,
    path: &Path,
    loaded: &RuntimeConfig,
    watch: &mut FolderWatcher,
    now: DateTime<Utc>,
) {
    if !root.is_same_folder() {
        tracing::warn!("{}: the folder was moved or made anew", path.display());
        root.close(watch);
        reopen(root, path, loaded, watch, now);
    }
}

/// Reads the settings of a root anew; returns whether they could be. One that another host is to
/// summarise from now on is let go.
pub(super) fn refresh(
    root: &mut RootService,
    path: &Path,
    loaded: &RuntimeConfig,
    watch: &mut FolderWatcher,
    now: DateTime<Utc>,
) -> bool {
    let Err(error) = root.reload_settings(loaded, now) else { return true };
    warn_once(root, path, &error);
    if matches!(error, RootError::OtherWriter { .. }) {
        root.close(watch);
        root.watch_for_appearance(watch);
    }
    false
}

/// Opens a root that could not be served.
pub(super) fn reopen(
    root: &mut RootService,
    path: &Path,
    loaded: &RuntimeConfig,
    watch: &mut FolderWatcher,
    now: DateTime<Utc>,
) {
    // What is wrong with it is told.
    drop(start(root, path, loaded, watch, now));
}

/// Starts to serve a root, and tells of it.
///
/// # Errors
///
/// Returns why it cannot be served now.
pub(super) fn start(
    root: &mut RootService,
    path: &Path,
    loaded: &RuntimeConfig,
    watch: &mut FolderWatcher,
    now: DateTime<Utc>,
) -> Result<(), RootError> {
    root.start(loaded, watch, now)
        .inspect(|()| tracing::info!("{}: watching", path.display()))
        .inspect_err(|error| warn_once(root, path, error))
}

/// Tells what is wrong with a root, unless that was told last.
pub(super) fn warn_once(root: &mut RootService, path: &Path, error: &RootError) {
    if root.is_new_error(error.cause()) {
        tracing::warn!("{}: {}", path.display(), chain(error));
    }
}
