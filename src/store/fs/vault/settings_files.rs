//! Writes files outside of memory, at any path: settings, a systemd unit, exports.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use super::{VaultError, io_error};
use crate::store::fs::layout;

/// Writes a file atomically: after a crash it has the old or the new text. Missing folders are created, a link
/// is followed, and a file that is replaced keeps its mode and owner.
pub(crate) fn write_settings(path: &Path, text: &str) -> Result<(), VaultError> {
    write_settings_bytes(path, text.as_bytes())
}

/// Like [`write_settings`], for a file that may not be text.
pub(crate) fn write_settings_bytes(path: &Path, content: &[u8]) -> Result<(), VaultError> {
    write_like(path, content, path)
}

/// Writes a former text of `original` beside it, with its mode and owner: it may hold secrets.
pub(crate) fn write_copy(path: &Path, text: &str, original: &Path) -> Result<(), VaultError> {
    write_like(path, text.as_bytes(), original)
}

fn write_like(path: &Path, content: &[u8], original: &Path) -> Result<(), VaultError> {
    // A configuration is often a link into a repository that its owner keeps.
    let resolved = |it: &Path| it.canonicalize().unwrap_or_else(|_| it.to_owned());
    let (path, original) = (resolved(path), resolved(original));
    let dir = path.parent().unwrap_or(Path::new("/"));
    let write = || -> io::Result<()> {
        fs::create_dir_all(dir)?;
        let mut temp = tempfile::Builder::new().prefix(layout::TEMP_PREFIX).tempfile_in(dir)?;
        temp.write_all(content)?;
        inherit_mode(temp.as_file(), &original, dir)?;
        temp.as_file().sync_all()?;
        temp.persist(&path).map_err(|e| e.error)?;
        Ok(())
    };
    write().map_err(|e| io_error("write", &path, e))?;
    fs::File::open(dir).and_then(|it| it.sync_all()).map_err(|e| io_error("write", dir, e))
}

/// Removes a file.
pub(crate) fn remove_settings(path: &Path) -> Result<(), VaultError> {
    fs::remove_file(path).map_err(|e| io_error("remove", path, e))
}

/// Writes a new file from a stream: after a crash it is complete or absent.
///
/// Returns [`VaultError::Io`] if it may not be on disk, or the path is taken.
pub(crate) fn write_stream(
    path: &Path,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> Result<(), VaultError> {
    let dir = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        let mut temp = tempfile::Builder::new().prefix(layout::TEMP_PREFIX).tempfile_in(dir)?;
        write(temp.as_file_mut())?;
        temp.as_file().sync_all()?;
        temp.persist_noclobber(path).map_err(|e| e.error)?;
        fs::File::open(dir)?.sync_all()
    };
    write().map_err(|e| io_error("write", path, e))
}

/// Gives a new file the mode and owner of another one, or those of its folder.
fn inherit_mode(file: &fs::File, original: &Path, dir: &Path) -> io::Result<()> {
    let (like, mask) = match fs::symlink_metadata(original) {
        Ok(meta) if meta.is_file() => (meta, 0o777),
        _ => (fs::metadata(dir)?, 0o666),
    };
    file.set_permissions(fs::Permissions::from_mode(like.mode() & mask))?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
        // Only root may change the owner; for other users the file stays their own.
        drop(std::os::unix::fs::fchown(file, Some(like.uid()), Some(like.gid())));
    }
    Ok(())
}
