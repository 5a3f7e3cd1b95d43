//! The note that a root is up to date, which a run leaves if it had nothing to do.
//!
//! It describes the files as they were then. Every change of the database removes the note before it commits.
//! So if the note exists and the files match it, there is nothing to do, and no database has to be opened.
//!
//! A note is begun under another name before the run looks at anything, and renamed at the end if it still
//! exists: a commit in between, by the run or by another process, has removed it. It is not synced, because
//! losing it only costs a look.

use std::{
    io::{self, Write as _},
    path::Path,
};

use rustix::fs::{OFlags, RenameFlags};

use super::{layout::Layout, private_folder, rooted_dir::DirHandle};

/// The name of the note in the private folder, and the prefix of the name of one that is begun.
pub(crate) const NOTE: &str = "standstill";
const PENDING_NOTE: &str = "standstill.begun";

/// Begins a note, and replaces one that was begun before.
pub(crate) fn begin(layout: &Layout) -> io::Result<()> {
    let folder = private_folder::open_private_dir(layout)?;
    ignore_missing(folder.remove(PENDING_NOTE))?;
    folder.create(PENDING_NOTE).map(drop)
}

/// Writes `bytes` into the note that was begun and publishes it. Returns `false` if something was committed
/// since.
pub(crate) fn finish(layout: &Layout, bytes: &[u8]) -> io::Result<bool> {
    let folder = private_folder::open_private_dir(layout)?;
    let written =
        folder.open(PENDING_NOTE, OFlags::WRONLY).and_then(|mut file| file.write_all(bytes));
    let renamed =
        written.and_then(|()| folder.rename(PENDING_NOTE, &folder, NOTE, RenameFlags::empty()));
    match renamed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        renamed => renamed.map(|()| true),
    }
}

/// Removes a note that was begun.
pub(crate) fn cancel(layout: &Layout) -> io::Result<()> {
    ignore_missing(private_folder::open_private_dir(layout)?.remove(PENDING_NOTE))
}

/// Reads the note, if there is one.
pub fn read(layout: &Layout) -> Option<Vec<u8>> {
    private_folder::read(layout, NOTE)
}

/// Removes the note in a private folder, and one that is begun. The one that is begun goes first, so that a
/// note published in between is removed too.
///
/// Returns the system's error; then the note may still exist, and nothing may be committed.
pub(crate) fn invalidate(private_dir: &Path) -> io::Result<()> {
    let folder = match DirHandle::open_path(private_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        folder => folder?,
    };
    ignore_missing(folder.remove(PENDING_NOTE))?;
    ignore_missing(folder.remove(NOTE))
}

fn ignore_missing(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> (tempfile::TempDir, Layout) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path(), "memory");
        std::fs::create_dir(layout.private_dir()).unwrap();
        (dir, layout)
    }

    #[test]
    fn a_finished_note_is_read_back() {
        let (_dir, layout) = layout();
        assert_eq!(read(&layout), None);
        begin(&layout).unwrap();
        assert_eq!(read(&layout), None);
        assert!(finish(&layout, b"one").unwrap());
        assert_eq!(read(&layout).unwrap(), b"one");
        assert!(!finish(&layout, b"two").unwrap());
        begin(&layout).unwrap();
        cancel(&layout).unwrap();
        assert!(!finish(&layout, b"two").unwrap());
        assert_eq!(read(&layout).unwrap(), b"one");
    }

    #[test]
    fn an_invalidated_note_cannot_be_finished() {
        let (_dir, layout) = layout();
        begin(&layout).unwrap();
        assert!(finish(&layout, b"one").unwrap());
        begin(&layout).unwrap();
        invalidate(&layout.private_dir()).unwrap();
        assert_eq!(read(&layout), None);
        assert!(!finish(&layout, b"two").unwrap());
        assert_eq!(read(&layout), None);
        invalidate(&layout.private_dir()).unwrap();
        invalidate(&layout.full("not/there")).unwrap();
    }
}
