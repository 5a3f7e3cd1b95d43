//! The private folder beside the database: small files by which damage is detected, and files that repairs
//! moved there.
//!
//! - `witness` (the commit marker): the newest run that ended, and its checksum. It is written after the
//!   database has committed, so a database without that run has lost commits: its write-ahead log is missing,
//!   or an older copy was restored.
//! - `decisions.copy`: the content of `.decisions.jsonl` at that time. That file only grows.
//! - `quarantine/TIME/PATH`: bytes that cannot be what their name says.
//!
//! All are private to the owner, and complete or absent after a crash.

use std::{
    io::{self, Read as _, Write as _},
    path::PathBuf,
};

use chrono::{DateTime, Utc};
use rustix::fs::{OFlags, RenameFlags};

use super::{
    layout::{self, Layout},
    rooted_dir::{self, DirHandle, EntryMetadata, RootedDir},
    up_to_date_note,
    vault::{FILE_BYTES_MAX, Vault},
};

const COMMIT_MARKER: &str = "witness";
const DECISIONS_COPY: &str = "decisions.copy";
const QUARANTINE: &str = "quarantine";

/// The newest run that ended, recorded in a file beside the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitMarker {
    /// Its number.
    pub run: i64,
    /// Its checksum in the database.
    pub checksum: i64,
}

/// A private file or folder that other users can read, or that another user owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposedFile {
    /// The file.
    pub path: PathBuf,
    /// Its permission bits.
    pub mode: u32,
    /// The permission bits it should have.
    pub required_mode: u32,
    /// Whether it belongs to another user.
    pub is_foreign: bool,
}

/// Reads the commit marker; `None` if there is none, or it cannot be read.
pub fn read_commit_marker(layout: &Layout) -> Option<CommitMarker> {
    let text = String::from_utf8(read(layout, COMMIT_MARKER)?).ok()?;
    let mut words = text.split_whitespace();
    let mut number = |name| (words.next()? == name).then_some(words.next()?.parse().ok()?);
    Some(CommitMarker { run: number("run")?, checksum: number("seal")? })
}

/// Writes the commit marker.
pub(crate) fn write_commit_marker(
    layout: &Layout,
    CommitMarker { run, checksum }: CommitMarker,
) -> io::Result<()> {
    let text = format!("run {run}\nseal {checksum}\n");
    write(&open_private_dir(layout)?, COMMIT_MARKER, text.as_bytes())
}

/// Returns the copy of the decisions from their last change. It is empty if a person accepted that they are
/// gone; then `None` is returned.
pub fn decisions_copy(layout: &Layout) -> Option<Vec<u8>> {
    read(layout, DECISIONS_COPY).filter(|it| !it.is_empty())
}

/// Writes the copy of the decisions.
pub(crate) fn write_decisions_copy(layout: &Layout, bytes: &[u8]) -> io::Result<()> {
    write(&open_private_dir(layout)?, DECISIONS_COPY, bytes)
}

/// Stores bytes of the file `relative` in the quarantine, and returns their path relative to the root.
pub(crate) fn quarantine_file(
    layout: &Layout,
    now: DateTime<Utc>,
    relative: &str,
    bytes: &[u8],
) -> io::Result<String> {
    let time = now.format("%Y%m%dT%H%M%S%3fZ").to_string();
    let at = format!("{}/{QUARANTINE}/{time}/{relative}", layout::PRIVATE_DIR);
    let mut folders = vec![open_private_dir(layout)?];
    let within = at.strip_prefix(layout::PRIVATE_DIR).unwrap_or(&at).trim_start_matches('/');
    let (dirs, name) = within.rsplit_once('/').unwrap_or(("", within));
    for dir in dirs.split('/') {
        let above = &folders[folders.len() - 1];
        match above.create_folder(dir) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            result => result?,
        }
        folders.push(above.open_folder(dir)?);
    }
    write(&folders[folders.len() - 1], name, bytes)?;
    // The folders may be new too.
    for folder in folders.iter().rev() {
        folder.sync()?;
    }
    Ok(at)
}

/// Lists the exposed files of the private folder, and the record of decisions if it is exposed.
pub(crate) fn exposed_files(layout: &Layout) -> io::Result<Vec<ExposedFile>> {
    let mut found = Vec::new();
    let root = RootedDir::new(layout);
    let mut pending = vec![layout::PRIVATE_DIR.to_owned(), layout.decisions()];
    while let Some(relative) = pending.pop() {
        let (dir, name) = relative.rsplit_once('/').unwrap_or(("", &relative));
        let metadata = match root.open_folder(dir).and_then(|it| it.metadata(name)) {
            Ok(metadata) => metadata,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        if metadata.is_folder() {
            let names = root.open_folder(&relative)?.names()?;
            pending.extend(names.into_iter().flatten().map(|name| format!("{relative}/{name}")));
        }
        let required_mode = if metadata.is_folder() { 0o700 } else { 0o600 };
        let mode = metadata.mode & 0o777;
        let is_foreign = metadata.uid != rustix::process::geteuid().as_raw();
        // The mode of a link means nothing.
        let is_open = !metadata.is_link() && mode & !required_mode & 0o077 != 0;
        if is_open || is_foreign {
            found.push(ExposedFile {
                path: layout.full(&relative),
                mode,
                required_mode,
                is_foreign,
            });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Makes the record of decisions private again, if only its mode is wrong: version control keeps no modes.
pub(crate) fn restrict_decisions(layout: &Layout) -> io::Result<()> {
    let path = layout.full(&layout.decisions());
    let exposed = exposed_files(layout)?;
    exposed.iter().filter(|it| it.path == path && !it.is_foreign).try_for_each(restrict_access)
}

/// Makes a file or folder private to its owner.
pub(crate) fn restrict_access(exposed: &ExposedFile) -> io::Result<()> {
    rooted_dir::set_mode(&exposed.path, exposed.required_mode)
}

/// Lists the entries of the private folder that memoird did not create, by name.
pub fn unknown_files(layout: &Layout) -> Vec<String> {
    const OURS: [&str; 18] = [
        "bundle-",
        "forgetting.",
        "keeping.",
        "undoing.",
        "lineage.db",
        "daemon.",
        "pass.lock",
        "search.db",
        "vectors.db",
        COMMIT_MARKER,
        DECISIONS_COPY,
        QUARANTINE,
        "replaced",
        "sessions.txt",
        layout::REPLY_PREFIX,
        "snapshots",
        up_to_date_note::NOTE,
        "wisdom-block.md",
    ];
    let names = open_private_dir(layout).and_then(|it| it.names()).into_iter().flatten();
    let names = names.map(|it| it.unwrap_or_else(|lossy| lossy));
    let mut unknown: Vec<String> =
        names.filter(|name| !OURS.iter().any(|it| name.starts_with(it))).collect();
    unknown.sort_unstable();
    unknown
}

pub(crate) fn open_private_dir(layout: &Layout) -> io::Result<DirHandle> {
    RootedDir::new(layout).open_folder(layout::PRIVATE_DIR)
}

/// Reads a file of the private folder; `None` for anything but a regular file of acceptable size.
pub(crate) fn read(layout: &Layout, name: &str) -> Option<Vec<u8>> {
    let file = open_private_dir(layout).ok()?.open(name, OFlags::RDONLY).ok()?;
    let metadata = EntryMetadata::from(&file.metadata().ok()?);
    let mut bytes = Vec::new();
    let is_ours = metadata.is_file() && metadata.stamp.size <= FILE_BYTES_MAX;
    is_ours.then(|| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok())??;
    Some(bytes)
}

/// Writes a file of the private folder atomically.
fn write(folder: &DirHandle, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temp = Vault::new_temp_name();
    let mut file = folder.create(&temp)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| folder.rename(&temp, folder, name, RenameFlags::empty()));
    if let Err(e) = written {
        // A temporary file that cannot be removed is reported by `doctor`.
        drop(folder.remove(&temp));
        return Err(e);
    }
    folder.sync()
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, DirBuilder, Permissions},
        os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    };

    use super::*;

    fn layout() -> (tempfile::TempDir, Layout) {
        let dir = tempfile::tempdir().unwrap();
        DirBuilder::new().mode(0o700).create(dir.path().join(".memoird")).unwrap();
        let layout = Layout::new(dir.path(), "memory");
        (dir, layout)
    }

    #[test]
    fn a_commit_marker_is_read_as_it_was_written() {
        let (_dir, layout) = layout();
        assert_eq!(read_commit_marker(&layout), None);
        let marker = CommitMarker { run: 7, checksum: -12 };
        write_commit_marker(&layout, marker).unwrap();
        assert_eq!(read_commit_marker(&layout), Some(marker));
        write(&open_private_dir(&layout).unwrap(), COMMIT_MARKER, b"run 7 sea").unwrap();
        assert_eq!(read_commit_marker(&layout), None);
    }

    #[test]
    fn quarantined_files_are_private() {
        let (_dir, layout) = layout();
        let now = "2026-04-06T03:00:00Z".parse().unwrap();
        let at = quarantine_file(&layout, now, "memory/weekly/2026-W14.md", b"\0\0").unwrap();
        assert_eq!(at, ".memoird/quarantine/20260406T030000000Z/memory/weekly/2026-W14.md");
        assert_eq!(fs::read(layout.full(&at)).unwrap(), b"\0\0");
        assert_eq!(exposed_files(&layout).unwrap(), []);
        let path = layout.full(&at);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let open = exposed_files(&layout).unwrap();
        assert_eq!(
            open,
            [ExposedFile { path, mode: 0o640, required_mode: 0o600, is_foreign: false }]
        );
        restrict_access(&open[0]).unwrap();
        assert_eq!(exposed_files(&layout).unwrap(), []);
        assert_eq!(unknown_files(&layout), [""; 0]);
    }
}
