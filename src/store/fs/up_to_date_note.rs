//! The note that a root stands still: what a pass leaves that found nothing to do.
//!
//! It says how the files looked at which nothing was to be done, and any change of the database takes it
//! away before it is committed. So whoever finds it, and finds the files as it says, needs to open no
//! database to know that there is nothing to do.
//!
//! A note is begun before the pass looks at anything, under another name, and gets its own name only if it
//! is still there at the end: what was committed meanwhile, by the pass itself or by somebody else, has
//! taken it away. It is not made sure to be on disk, since whoever lacks it looks for himself.

use std::{
    io::{self, Write as _},
    path::Path,
};

use rustix::fs::{OFlags, RenameFlags};

use super::{layout::Layout, private_folder, rooted_dir::DirHandle};

/// The name of the note in the private folder, and the start of that of one that is begun.
pub(crate) const NOTE: &str = "standstill";
const PENDING_NOTE: &str = "standstill.begun";

/// Begins a note, in the place of one that was begun before.
///
/// # Errors
///
/// Returns the system's error.
pub fn begin(layout: &Layout) -> io::Result<()> {
    let folder = private_folder::open_private_dir(layout)?;
    ignore_missing(folder.remove(PENDING_NOTE))?;
    folder.create(PENDING_NOTE).map(drop)
}

/// Ends the note that was begun with these bytes, and returns whether it stands: not where something was
/// committed since.
///
/// # Errors
///
/// Returns the system's error.
pub fn finish(layout: &Layout, bytes: &[u8]) -> io::Result<bool> {
    let folder = private_folder::open_private_dir(layout)?;
    let written =
        folder.open(PENDING_NOTE, OFlags::WRONLY).and_then(|mut file| file.write_all(bytes));
    let named =
        written.and_then(|()| folder.rename(PENDING_NOTE, &folder, NOTE, RenameFlags::empty()));
    match named {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        named => named.map(|()| true),
    }
}

/// Gives up a note that was begun.
///
/// # Errors
///
/// Returns the system's error.
pub fn cancel(layout: &Layout) -> io::Result<()> {
    ignore_missing(private_folder::open_private_dir(layout)?.remove(PENDING_NOTE))
}

/// Reads the note, if there is one.
pub fn read(layout: &Layout) -> Option<Vec<u8>> {
    private_folder::read(layout, NOTE)
}

/// Takes away the note in a private folder, and one that is begun. In this order, so that one that gets its
/// name meanwhile is taken away too.
///
/// # Errors
///
/// Returns what the system says: then the note may still stand, and nothing may be committed.
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
    fn a_note_is_read_as_it_was_ended() {
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
    fn what_is_lifted_meanwhile_does_not_come_to_stand() {
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
