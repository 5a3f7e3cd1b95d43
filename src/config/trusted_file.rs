//! Files of the configuration that others may change are refused: they could run programs as this user.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use super::ConfigError;

/// Returns whether any user may replace files in a folder of that mode. With the sticky bit they may only add
/// files, which `doctor` reports.
pub(crate) fn is_world_writable(mode: u32) -> bool {
    mode & 0o002 != 0 && mode & 0o1000 == 0
}

/// Refuses a file in whose folder any user may put another one in its place.
pub(super) fn refuse_if_replaceable(file: &Path) -> Result<(), ConfigError> {
    let Some(folder) = file.parent() else { return Ok(()) };
    // Whoever reads the file reports that the folder cannot be read.
    let Ok(metadata) = fs::metadata(folder) else { return Ok(()) };
    let mode = metadata.mode() & 0o7777;
    if is_world_writable(mode) {
        return Err(ConfigError::WorldWritable { file: folder.to_owned(), mode });
    }
    Ok(())
}

/// Refuses a file that any user may change, or that another user owns; `also` is one more owner to accept.
pub(super) fn refuse_if_open(
    file: &Path,
    metadata: &fs::Metadata,
    also: Option<u32>,
) -> Result<(), ConfigError> {
    let owner = metadata.uid();
    let own = rustix::process::geteuid().as_raw();
    if owner != 0 && owner != own && Some(owner) != also {
        return Err(ConfigError::OtherOwner { file: file.to_owned(), owner });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o002 != 0 {
        return Err(ConfigError::WorldWritable { file: file.to_owned(), mode });
    }
    Ok(())
}
