//! Detects the file system of a folder, and whether it is safe for a database.
//!
//! A write-ahead log needs shared memory and reliable locks. Network file systems have neither: two hosts that
//! write one database damage it. A FUSE file system may be local or not, so the type under which it is
//! mounted decides; an unknown one is refused unless `MEMOIRD_TRUST_FUSE` is set.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// The environment variable with which a user vouches that unknown FUSE file systems are local (`1`).
pub const TRUST_FUSE: &str = "MEMOIRD_TRUST_FUSE";

/// The kind of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSystemKind {
    /// One of the kernel, on this host.
    Local,
    /// A FUSE file system that stores its files on this host; its name.
    LocalFuse(String),
    /// A network file system; its name.
    Network(String),
    /// An unknown FUSE file system; its name.
    UnknownFuse(String),
}

/// Network file systems, by the kernel's numbers.
const NETWORK: [(u32, &str); 9] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFE53_4D42, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0x0102_1997, "9P"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x00C3_6400, "Ceph"),
    (0x7375_7245, "Coda"),
];
const FUSE: u32 = 0x6573_5546;

/// FUSE programs that store their files on this host: disks, encryption, overlays.
const FUSE_LOCAL: [&str; 14] = [
    "fuseblk",
    "gocryptfs",
    "encfs",
    "cryfs",
    "securefs",
    "ecryptfs",
    "bindfs",
    "mergerfs",
    "unionfs",
    "fuse-overlayfs",
    "ntfs-3g",
    "exfat",
    "apfs",
    "lazyfs",
];
/// FUSE programs that store their files elsewhere.
const FUSE_NETWORK: [&str; 12] = [
    "sshfs",
    "rclone",
    "s3fs",
    "goofys",
    "glusterfs",
    "davfs",
    "curlftpfs",
    "gcsfuse",
    "google-drive-ocamlfuse",
    "juicefs",
    "smbnetfs",
    "ceph-fuse",
];

/// Classifies a file system by the kernel's number, and FUSE by the type of the mount (`fuse.sshfs`,
/// `fuseblk`).
pub fn classify(number: u32, mounted_as: Option<&str>) -> FileSystemKind {
    if let Some((_, name)) = NETWORK.iter().find(|(it, _)| *it == number) {
        return FileSystemKind::Network((*name).to_owned());
    }
    if number != FUSE {
        return FileSystemKind::Local;
    }
    let mounted_as = mounted_as.unwrap_or("fuse");
    let name = mounted_as.strip_prefix("fuse.").unwrap_or(mounted_as);
    if FUSE_LOCAL.contains(&name) {
        FileSystemKind::LocalFuse(name.to_owned())
    } else if FUSE_NETWORK.contains(&name) {
        FileSystemKind::Network(name.to_owned())
    } else {
        FileSystemKind::UnknownFuse(name.to_owned())
    }
}

/// Detects the file system of a folder.
///
/// Returns the system's error if the folder does not exist.
pub(crate) fn detect(folder: &Path) -> io::Result<FileSystemKind> {
    let number = rustix::fs::statfs(folder)?.f_type;
    // The kernel's numbers fill 32 bits, whatever the width of the field.
    let number = u32::try_from(number & 0xFFFF_FFFF).unwrap_or_default();
    let mounted_as = if number == FUSE { mount_type(folder) } else { None };
    Ok(classify(number, mounted_as.as_deref()))
}

/// Returns the name of a file system that is unsafe for a database; `trusts_fuse` says that a person vouches
/// for unknown ones.
pub fn refused_name(kind: &FileSystemKind, trusts_fuse: bool) -> Option<&str> {
    match kind {
        FileSystemKind::Local | FileSystemKind::LocalFuse(_) => None,
        FileSystemKind::UnknownFuse(_) if trusts_fuse => None,
        FileSystemKind::Network(name) | FileSystemKind::UnknownFuse(name) => Some(name),
    }
}

/// Returns whether the user vouches for the FUSE file systems of this host.
pub fn is_fuse_trusted() -> bool {
    std::env::var_os(TRUST_FUSE).is_some_and(|it| it == "1")
}

/// Returns the type of a folder's mount, which the kernel lists by device.
fn mount_type(folder: &Path) -> Option<String> {
    let device = fs::metadata(folder).ok()?.dev();
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    mount_type_in(&fs::read_to_string("/proc/self/mountinfo").ok()?, &device)
}

/// Finds the type of the device in the kernel's list of mounts.
fn mount_type_in(mounts: &str, device: &str) -> Option<String> {
    let line = mounts.lines().find(|it| it.split(' ').nth(2) == Some(device))?;
    Some(line.split_once(" - ")?.1.split(' ').next()?.to_owned())
}

/// Returns the links on the way from `root` to `relative`, as paths relative to the root.
pub fn symlinks_along(root: &Path, relative: &str) -> Vec<PathBuf> {
    let mut path = PathBuf::new();
    let mut links = Vec::new();
    for component in Path::new(relative).components() {
        path.push(component);
        if fs::symlink_metadata(root.join(&path)).is_ok_and(|it| it.is_symlink()) {
            links.push(path.clone());
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(number: u32, mounted_as: Option<&str>, expected: [Option<&str>; 2]) {
        let kind = classify(number, mounted_as);
        assert_eq!([refused_name(&kind, false), refused_name(&kind, true)], expected, "{kind:?}");
    }

    #[test]
    fn only_local_disks_are_safe_for_a_database() {
        check(0xEF53, None, [None; 2]); // ext4
        check(0x9123_683E, None, [None; 2]); // btrfs
        check(0x0102_1994, None, [None; 2]); // tmpfs
        check(0x6969, None, [Some("NFS"); 2]);
        check(0xFE53_4D42, None, [Some("SMB"); 2]);
        check(0xFF53_4D42, None, [Some("CIFS"); 2]);
        check(0x0102_1997, None, [Some("9P"); 2]);
        check(0x5346_414F, None, [Some("AFS"); 2]);
        check(0x00C3_6400, None, [Some("Ceph"); 2]);
        check(0x7375_7245, None, [Some("Coda"); 2]);
        check(FUSE, Some("fuse.gocryptfs"), [None; 2]);
        check(FUSE, Some("fuseblk"), [None; 2]);
        check(FUSE, Some("fuse.sshfs"), [Some("sshfs"); 2]);
        check(FUSE, Some("fuse.mine"), [Some("mine"), None]);
        check(FUSE, None, [Some("fuse"), None]);
    }

    #[test]
    fn the_type_of_a_mount_is_read_from_the_list() {
        let list = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
            36 22 0:32 / /mnt/safe\\040one rw shared:1 - fuse.gocryptfs /home/a/cipher rw\n";
        assert_eq!(mount_type_in(list, "0:32").as_deref(), Some("fuse.gocryptfs"));
        assert_eq!(mount_type_in(list, "254:0").as_deref(), Some("ext4"));
        assert_eq!(mount_type_in(list, "0:99"), None);
    }
}
