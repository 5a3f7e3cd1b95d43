//! Opens the folders and files inside a root, and nothing outside of it.
//!
//! A folder is opened from the root down in one call (`openat2`) that follows no symbolic link and cannot leave
//! the root. Everything in it is done by its descriptor and a single name, so that nobody can lead us elsewhere
//! by swapping a folder or a file for a link. If the kernel or a sandbox lacks that call, the folders are
//! opened one after the other, each without following a link.
//!
//! # Links that are followed
//!
//! Links on the way to the root are the owner's choice. Inside the root, two folders may be links that lead
//! out, because people do that: the memory folder (into a repository or a synced folder) and the archive (on a
//! larger disk). Their targets are resolved once and stay valid while the root is open: a folder that becomes
//! a link later, or a link that changes, is not followed.

use std::{
    fs::{self, File, Metadata},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::{
    fs::{self as sys, AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags},
    io::Errno,
};

use super::{filesystem, inventory::FileStat, layout::Layout};
use crate::store::failpoint;

/// Opens the folders of one root.
#[derive(Debug)]
pub struct RootedDir {
    root: PathBuf,
    /// Folders, relative to the root, that may be links; the outer one first.
    linkable: [String; 2],
    /// Those of them that are links, with their targets when they were first used.
    links: OnceLock<Vec<(String, PathBuf)>>,
}

/// A folder of a root, held open. Names in it are single names: no `/`, no `..`.
#[derive(Debug)]
pub struct DirHandle {
    fd: OwnedFd,
}

/// The metadata of a directory entry; links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryMetadata {
    /// File, folder, link, …
    pub kind: FileType,
    /// Device number.
    pub device: u64,
    /// Permission bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The number of hard links.
    pub link_count: u64,
    /// Inode, size, and time.
    pub stamp: FileStat,
    /// Time of the last change of content or metadata (ctime), nanoseconds since 1970 UTC. Programs cannot
    /// set it.
    pub changed_ns: i64,
}

impl RootedDir {
    /// Describes the root of `layout`. Opens nothing yet.
    pub fn new(layout: &Layout) -> Self {
        Self {
            root: layout.root().to_owned(),
            linkable: [layout.memory_dir().to_owned(), layout.archive_dir()],
            links: OnceLock::new(),
        }
    }

    /// Opens a folder by its path relative to the root; the empty path is the root.
    ///
    /// Returns the system's error; [`is_link`] recognizes a link in the path.
    pub(crate) fn open_folder(&self, relative: &str) -> io::Result<DirHandle> {
        let (top, rest) = self.split_at_link(relative);
        let readable = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if rest.is_empty() {
            return Ok(DirHandle { fd: sys::open(top, readable, Mode::empty())? });
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = sys::open(top, flags, Mode::empty())?;
        Ok(DirHandle { fd: open_beneath(top.as_fd(), rest, readable)? })
    }

    /// Splits a path after the last link that is followed, and returns its target and the rest.
    fn split_at_link<'a>(&'a self, relative: &'a str) -> (&'a Path, &'a str) {
        let links = self.links.get_or_init(|| self.find_links());
        let below = |link: &str| {
            let rest = relative.strip_prefix(link)?;
            if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
        };
        let inner = links.iter().rev().find_map(|(link, to)| Some((to.as_path(), below(link)?)));
        inner.unwrap_or((&self.root, relative))
    }

    fn find_links(&self) -> Vec<(String, PathBuf)> {
        let links = self.linkable.iter().filter(|it| {
            // This includes a folder inside another one that is a link.
            !filesystem::symlinks_along(&self.root, it).is_empty()
        });
        links.filter_map(|it| Some((it.clone(), self.root.join(it).canonicalize().ok()?))).collect()
    }
}

/// Returns whether an error of [`RootedDir::open_folder`] or [`DirHandle::open`] means that there is a link.
pub fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Opens a path of several steps below a folder.
fn open_beneath(top: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    /// Set where the kernel or a sandbox refuses the call itself.
    static BY_STEPS: AtomicBool = AtomicBool::new(false);
    if !BY_STEPS.load(Ordering::Relaxed) {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match sys::openat2(top, path, flags, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => BY_STEPS.store(true, Ordering::Relaxed),
            result => return result,
        }
    }
    open_stepwise(top, path, flags)
}

/// Does what [`open_beneath`] does, one folder after the other.
fn open_stepwise(top: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    if path.starts_with('/') {
        return Err(Errno::XDEV);
    }
    let mut steps = path.split('/').filter(|it| !it.is_empty() && *it != ".").peekable();
    let mut opened: Option<OwnedFd> = None;
    while let Some(step) = steps.next() {
        if step == ".." {
            return Err(Errno::XDEV);
        }
        let step_flags = match steps.peek() {
            Some(_) => OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            None => flags,
        };
        let at = opened.as_ref().map_or(top, AsFd::as_fd);
        let next = sys::openat(at, step, step_flags | OFlags::NOFOLLOW, Mode::empty());
        opened = Some(next.map_err(|errno| match errno {
            // A link to a folder also gives this error.
            Errno::NOTDIR if entry_metadata(at, step).is_ok_and(|it| it.is_link()) => Errno::LOOP,
            other => other,
        })?);
    }
    opened.ok_or(Errno::INVAL)
}

impl DirHandle {
    /// Opens a folder by its full path and follows links: for paths to a root.
    pub(crate) fn open_path(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { fd: sys::open(path, flags, Mode::empty())? })
    }

    /// Opens a file without following a link and without waiting for the other end of a pipe. A new file is
    /// private to its owner.
    ///
    /// Returns the system's error, or an error if `name` is not a single name.
    pub(crate) fn open(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(File::from(sys::openat(&self.fd, require_single_name(name)?, flags, mode)?))
    }

    /// Creates a new file.
    ///
    /// Like [`Self::open`], and if the name is taken.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        self.open(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens a folder in this one.
    pub(crate) fn open_folder(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { fd: open_stepwise(self.fd.as_fd(), require_single_name(name)?, flags)? })
    }

    /// Returns the metadata of an entry.
    ///
    /// Returns the system's error, or an error if `name` is not a single name.
    pub(crate) fn metadata(&self, name: &str) -> io::Result<EntryMetadata> {
        entry_metadata(self.fd.as_fd(), require_single_name(name)?)
    }

    /// Returns the metadata of the folder itself.
    pub(crate) fn own_metadata(&self) -> io::Result<EntryMetadata> {
        entry_metadata(self.fd.as_fd(), "")
    }

    /// Lists the names in the folder, unordered. An `Err` in the list is a name that is not UTF-8, converted
    /// for display.
    pub(crate) fn names(&self) -> io::Result<Vec<Result<String, String>>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let name = entry?.file_name().to_bytes().to_owned();
            if name != b"." && name != b".." {
                let name = String::from_utf8(name);
                names.push(name.map_err(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()));
            }
        }
        Ok(names)
    }

    /// Renames a file, possibly into another folder.
    ///
    /// Returns the system's error, or an error if a name is not a single name.
    pub(crate) fn rename(
        &self,
        name: &str,
        to: &Self,
        new: &str,
        flags: RenameFlags,
    ) -> Result<(), io::Error> {
        Ok(sys::renameat_with(
            &self.fd,
            require_single_name(name)?,
            &to.fd,
            require_single_name(new)?,
            flags,
        )?)
    }

    /// Renames within the folder with flags, or without them on a file system that knows none: the caller has
    /// just compared the existing file, under the write lock.
    pub(crate) fn rename_within(
        &self,
        name: &str,
        new: &str,
        flags: RenameFlags,
    ) -> io::Result<()> {
        let (name, new) = (require_single_name(name)?, require_single_name(new)?);
        match sys::renameat_with(&self.fd, name, &self.fd, new, flags) {
            Err(Errno::INVAL | Errno::NOSYS) => sys::renameat(&self.fd, name, &self.fd, new),
            result => result,
        }
        .map_err(Into::into)
    }

    /// Removes a file.
    ///
    /// Returns the system's error, or an error if `name` is not a single name.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(sys::unlinkat(&self.fd, require_single_name(name)?, AtFlags::empty())?)
    }

    /// Creates a folder that is private to its owner.
    ///
    /// Returns the system's error, or an error if `name` is not a single name.
    pub(crate) fn create_folder(&self, name: &str) -> io::Result<()> {
        Ok(sys::mkdirat(&self.fd, require_single_name(name)?, Mode::RWXU)?)
    }

    /// Sets the permission bits of the folder itself.
    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        Ok(sys::fchmod(&self.fd, Mode::from_raw_mode(mode))?)
    }

    /// Syncs the names in the folder to disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(sys::fsync(&self.fd)?)
    }
}

impl EntryMetadata {
    /// Returns whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    /// Returns whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// Returns whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.kind == FileType::Symlink
    }
}

impl From<&Metadata> for EntryMetadata {
    fn from(meta: &Metadata) -> Self {
        Self {
            kind: FileType::from_raw_mode(meta.mode()),
            device: meta.dev(),
            mode: meta.mode() & 0o7777,
            uid: meta.uid(),
            gid: meta.gid(),
            link_count: meta.nlink(),
            stamp: FileStat {
                inode: meta.ino(),
                size: meta.size(),
                mtime_ns: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            },
            changed_ns: nanoseconds(meta.ctime(), meta.ctime_nsec()),
        }
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// Returns the metadata of an entry, or of the folder itself for the empty name.
fn entry_metadata(at: BorrowedFd<'_>, name: &str) -> io::Result<EntryMetadata> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    match sys::statx(at, name, flags, sys::StatxFlags::BASIC_STATS) {
        Ok(stat) => Ok(EntryMetadata {
            kind: FileType::from_raw_mode(stat.stx_mode.into()),
            device: sys::makedev(stat.stx_dev_major, stat.stx_dev_minor),
            mode: u32::from(stat.stx_mode) & 0o7777,
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            link_count: stat.stx_nlink.into(),
            stamp: FileStat {
                inode: stat.stx_ino,
                size: stat.stx_size,
                mtime_ns: nanoseconds(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec.into()),
            },
            changed_ns: nanoseconds(stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec.into()),
        }),
        // A sandbox may not know the call.
        Err(Errno::NOSYS | Errno::PERM) => {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let name = if name.is_empty() { "." } else { name };
            let file = File::from(sys::openat(at, name, flags, Mode::empty())?);
            Ok(EntryMetadata::from(&file.metadata()?))
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Refuses anything but a single name.
fn require_single_name(name: &str) -> io::Result<&str> {
    if matches!(name, "" | "." | "..") || name.contains('/') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(name)
}

/// Sets the permission bits of a file by its full path, without following a link that somebody may have put
/// there.
pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = sys::openat(CWD, path, flags, Mode::empty())?;
    Ok(sys::fchmod(file, Mode::from_raw_mode(mode))?)
}

/// Creates the folder of a root and its parents, with the mode of the first one that exists.
pub(crate) fn create_root(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(Path::new("/"));
    create_root(parent)?;
    match fs::create_dir(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        result => result?,
    }
    failpoint::at("vault.folder.made")?;
    let mode = fs::metadata(parent)?.mode() & 0o777;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    File::open(parent)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn root() -> (tempfile::TempDir, tempfile::TempDir, Layout) {
        let (root, far) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(root.path().join("memory/weekly")).unwrap();
        fs::create_dir_all(far.path().join("2026")).unwrap();
        let layout = Layout::new(root.path().canonicalize().unwrap(), "memory");
        (root, far, layout)
    }

    #[track_caller]
    fn check(layout: &Layout, path: &str, expected: Result<(), Errno>) {
        let code = |it: io::Error| Errno::from_io_error(&it).unwrap();
        let opened = RootedDir::new(layout).open_folder(path).map(drop).map_err(code);
        assert_eq!(opened, expected, "{path}");
        let top = sys::open(layout.root(), OFlags::PATH, Mode::empty()).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        if !path.starts_with("memory/archive") {
            let opened = open_stepwise(top.as_fd(), path, flags).map(drop);
            assert_eq!(opened, expected, "{path}, by steps");
        }
    }

    #[test]
    fn only_the_archive_may_lead_out_of_the_root() {
        let (_root, far, layout) = root();
        symlink(far.path(), layout.full("memory/monthly")).unwrap();
        symlink("weekly", layout.full("memory/inner")).unwrap();
        symlink("/", far.path().join("2025")).unwrap();
        File::create(layout.full("memory/file")).unwrap();
        for (path, expected) in [
            ("memory", Ok(())),
            ("memory/weekly", Ok(())),
            ("memory/monthly", Err(Errno::LOOP)),
            ("memory/monthly/2026", Err(Errno::LOOP)),
            ("memory/inner", Err(Errno::LOOP)),
            ("memory/file", Err(Errno::NOTDIR)),
            ("memory/gone", Err(Errno::NOENT)),
            ("..", Err(Errno::XDEV)),
            ("memory/../..", Err(Errno::XDEV)),
            ("/etc", Err(Errno::XDEV)),
        ] {
            check(&layout, path, expected);
        }
        symlink(far.path(), layout.full("memory/archive")).unwrap();
        check(&layout, "memory/archive", Ok(()));
        check(&layout, "memory/archive/2026", Ok(()));
        check(&layout, "memory/archive/2025", Err(Errno::LOOP));
        check(&layout, "memory/archive/..", Err(Errno::XDEV));
    }

    #[test]
    fn a_linked_memory_folder_is_followed_but_no_link_in_it() {
        let (_root, far, layout) = root();
        let layout = Layout::new(layout.root(), "notes");
        symlink(far.path(), layout.full("notes")).unwrap();
        symlink("/etc", far.path().join("weekly")).unwrap();
        let root_dir = RootedDir::new(&layout);
        assert!(root_dir.open_folder("notes/2026").is_ok());
        assert!(is_link(&root_dir.open_folder("notes/weekly").unwrap_err()));
        // The target was resolved before the link changed.
        fs::remove_file(layout.full("notes")).unwrap();
        symlink("/etc", layout.full("notes")).unwrap();
        assert!(root_dir.open_folder("notes/2026").is_ok());
    }

    #[test]
    fn a_folder_that_becomes_a_link_later_is_not_followed() {
        let (_root, far, layout) = root();
        let root_dir = RootedDir::new(&layout);
        root_dir.open_folder("memory").unwrap();
        fs::rename(layout.full("memory"), layout.full("old")).unwrap();
        symlink(far.path(), layout.full("memory")).unwrap();
        assert!(is_link(&root_dir.open_folder("memory").unwrap_err()));
        assert!(is_link(&root_dir.open_folder("memory/2026").unwrap_err()));
    }

    #[test]
    fn only_single_names_are_accepted() {
        let (_root, _far, layout) = root();
        let folder = RootedDir::new(&layout).open_folder("memory").unwrap();
        for name in ["", ".", "..", "../x", "weekly/x", "/etc/passwd", "a\0b"] {
            let refused = [
                folder.metadata(name).err(),
                folder.open(name, OFlags::RDONLY).err(),
                folder.create(name).err(),
                folder.remove(name).err(),
                folder.create_folder(name).err(),
                folder.rename("weekly", &folder, name, RenameFlags::empty()).err(),
            ];
            let kinds = refused.map(|it| it.map(|it| it.kind()));
            assert_eq!(kinds, [Some(io::ErrorKind::InvalidInput); 6], "{name:?}");
        }
    }
}
