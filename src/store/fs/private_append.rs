//! Appends lines to a private file of the user's.

use std::{
    fs::OpenOptions,
    io,
    io::Write as _,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

/// Appends a line to a file that only this user may read; creates it if necessary. Lines of several processes do not
/// mix, as each is one write.
///
/// # Errors
///
/// Returns why the file could not be written; a symbolic link is refused, and a file that others can read.
pub(crate) fn append_line(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.mode() & 0o077 != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "other users can read it (chmod 600)",
        ));
    }
    file.write_all(format!("{line}\n").as_bytes())
}
