//! The private folder beside the database: small files that bear witness, and what repairs moved
//! there.
//!
//! - `witness`: the newest run that ended, and its seal. It is written after the database has
//!   committed, so a database that does not know the run has lost commits: its write-ahead log is
//!   gone, or an older copy was put back.
//! - `decisions.copy`: what `.decisions.jsonl` held then. That file only grows.
//! - `quarantine/TIME/PATH`: bytes that could not be what their name says.
//!
//! All are closed to others, and whole or not there after a crash.

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

/// The newest run that ended, as a file beside the database tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitMarker {
    /// Its number.
    pub run: i64,
    /// Its seal in the database.
    pub checksum: i64,
}

/// A file or folder that others can get at, or that is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposedFile {
    /// The file.
    pub path: PathBuf,
    /// The permission bits that it has.
    pub mode: u32,
    /// Those that it may have.
    pub required_mode: u32,
    /// Whether it belongs to another user.
    pub is_foreign: bool,
}

/// Reads the witness; `None` when there is none, or none that can be read.
pub fn read_commit_marker(layout: &Layout) -> Option<CommitMarker> {
    let text = String::from_utf8(read(layout, COMMIT_MARKER)?).ok()?;
    let mut words = text.split_whitespace();
    let mut number = |name| (words.next()? == name).then_some(words.next()?.parse().ok()?);
    Some(CommitMarker { run: number("run")?, checksum: number("seal")? })
}

/// Writes the witness.
///
/// # Errors
///
/// Returns why it is not known to be on disk.
pub fn write_commit_marker(
    layout: &Layout,
    CommitMarker { run, checksum: seal }: CommitMarker,
) -> io::Result<()> {
    write(&open_private_dir(layout)?, COMMIT_MARKER, format!("run {run}\nseal {seal}\n").as_bytes())
}

/// Returns what the decisions were when some were last written. An empty copy says that a person took
/// them for gone.
pub fn decisions_copy(layout: &Layout) -> Option<Vec<u8>> {
    read(layout, DECISIONS_COPY).filter(|it| !it.is_empty())
}

/// Keeps a copy of the decisions.
///
/// # Errors
///
/// Returns why it is not known to be on disk.
pub fn write_decisions_copy(layout: &Layout, bytes: &[u8]) -> io::Result<()> {
    write(&open_private_dir(layout)?, DECISIONS_COPY, bytes)
}

/// Keeps bytes of the file `relative` in the quarantine, and returns where, relative to the root.
///
/// # Errors
///
/// Returns why they are not known to be on disk.
pub fn quarantine_file(
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
    // The folders above it are new too.
    for folder in folders.iter().rev() {
        folder.sync()?;
    }
    Ok(at)
}

/// Lists what in the private folder others can get at, and the record of decisions if they can.
///
/// # Errors
///
/// Returns what the system says of a folder that cannot be listed.
pub fn exposed_files(layout: &Layout) -> io::Result<Vec<ExposedFile>> {
    let mut found = Vec::new();
    let beneath = RootedDir::new(layout);
    let mut left = vec![layout::PRIVATE_DIR.to_owned(), layout.decisions()];
    while let Some(relative) = left.pop() {
        let (dir, name) = relative.rsplit_once('/').unwrap_or(("", &relative));
        let look = match beneath.open_folder(dir).and_then(|it| it.metadata(name)) {
            Ok(look) => look,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        if look.is_folder() {
            let names = beneath.open_folder(&relative)?.names()?;
            left.extend(names.into_iter().flatten().map(|name| format!("{relative}/{name}")));
        }
        let wanted = if look.is_folder() { 0o700 } else { 0o600 };
        let mode = look.mode & 0o777;
        let foreign = look.uid != rustix::process::geteuid().as_raw();
        // The mode of a link says nothing.
        let is_open = !look.is_link() && mode & !wanted & 0o077 != 0;
        if is_open || foreign {
            found.push(ExposedFile {
                path: layout.full(&relative),
                mode,
                required_mode: wanted,
                is_foreign: foreign,
            });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Closes a file or folder to others.
///
/// # Errors
///
/// Returns the system's error.
pub fn restrict_access(exposed: &ExposedFile) -> io::Result<()> {
    rooted_dir::set_mode(&exposed.path, exposed.required_mode)
}

/// Lists what stands in the private folder and is none of ours, by name.
pub fn unknown_files(layout: &Layout) -> Vec<String> {
    const OURS: [&str; 15] = [
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
        layout::REPLY_PREFIX,
        "snapshots",
        up_to_date_note::NOTE,
    ];
    let names = open_private_dir(layout).and_then(|it| it.names()).into_iter().flatten();
    let names = names.map(|it| it.unwrap_or_else(|shown| shown));
    let mut strange: Vec<String> =
        names.filter(|name| !OURS.iter().any(|it| name.starts_with(it))).collect();
    strange.sort_unstable();
    strange
}

pub(crate) fn open_private_dir(layout: &Layout) -> io::Result<DirHandle> {
    RootedDir::new(layout).open_folder(layout::PRIVATE_DIR)
}

/// Reads a file of the private folder; `None` for what is none of ours.
pub(crate) fn read(layout: &Layout, name: &str) -> Option<Vec<u8>> {
    let file = open_private_dir(layout).ok()?.open(name, OFlags::RDONLY).ok()?;
    let look = EntryMetadata::from(&file.metadata().ok()?);
    let mut bytes = Vec::new();
    let is_ours = look.is_file() && look.stamp.size <= FILE_BYTES_MAX;
    is_ours.then(|| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok())??;
    Some(bytes)
}

/// Writes a file of the private folder whole.
fn write(folder: &DirHandle, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temp = Vault::new_temp_name();
    let mut file = folder.create(&temp)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| folder.rename(&temp, folder, name, RenameFlags::empty()));
    if let Err(e) = written {
        // What cannot be removed now is a stranger there, which `doctor` tells.
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
    fn a_witness_reads_as_it_was_written() {
        let (_dir, layout) = layout();
        assert_eq!(read_commit_marker(&layout), None);
        let said = CommitMarker { run: 7, checksum: -12 };
        write_commit_marker(&layout, said).unwrap();
        assert_eq!(read_commit_marker(&layout), Some(said));
        write(&open_private_dir(&layout).unwrap(), COMMIT_MARKER, b"run 7 sea").unwrap();
        assert_eq!(read_commit_marker(&layout), None);
    }

    #[test]
    fn the_quarantine_keeps_bytes_for_their_owner_alone() {
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
