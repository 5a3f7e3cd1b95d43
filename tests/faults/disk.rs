//! Temporary file systems: one in memory that can be full, one in an image file that can lose power.
//! Both need root.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// A mounted file system; dropping it unmounts it.
pub(crate) struct Disk {
    point: PathBuf,
    /// The image file, if it has one.
    image: Option<PathBuf>,
    dir: TempDir,
}

/// Programs that shut a file system down without writing cached data: `FS_IOC_SHUTDOWN` with
/// `FS_SHUTDOWN_FLAGS_NOLOGFLUSH`. The first one that works is used. A raw ioctl needs unsafe code,
/// which this crate does not allow.
const SHUTDOWN_SCRIPTS: [(&str, &str); 2] = [
    (
        "perl",
        "open my $f, '<', $ARGV[0] or die; my $v = pack 'L', 2; ioctl $f, 0x8004587d, $v or die $!",
    ),
    (
        "python3",
        "import fcntl,os,struct,sys\n\
         fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))",
    ),
];
/// More than the free space that `doctor` requires.
const IMAGE_BYTES: u64 = 256 * 1024 * 1024;

/// Returns whether this process may mount.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Disk {
    /// Creates a file system of `kib` KiB in memory.
    pub(crate) fn in_memory(kib: u64) -> Result<Self, String> {
        let disk = Self::unmounted()?;
        let size = format!("size={kib}k");
        run("mount", &["-t", "tmpfs", "-o", &size, "faults", &text(&disk.point)])?;
        Ok(disk)
    }

    /// Changes its size.
    pub(crate) fn resize(&self, kib: u64) -> Result<(), String> {
        run("mount", &["-o", &format!("remount,size={kib}k"), &text(&self.point)])
    }

    /// Creates an ext4 file system in an image file.
    pub(crate) fn on_file() -> Result<Self, String> {
        let mut disk = Self::unmounted()?;
        let image = disk.dir.path().join("image");
        let file = File::create(&image).map_err(|e| e.to_string())?;
        file.set_len(IMAGE_BYTES).map_err(|e| e.to_string())?;
        run("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0", &text(&image)])?;
        disk.image = Some(image);
        disk.mount()?;
        Ok(disk)
    }

    fn unmounted() -> Result<Self, String> {
        let dir = tempfile::Builder::new().prefix("faults-disk-").tempdir();
        let dir = dir.map_err(|e| e.to_string())?;
        let point = dir.path().canonicalize().map_err(|e| e.to_string())?.join("disk");
        fs::create_dir(&point).map_err(|e| e.to_string())?;
        Ok(Self { point, image: None, dir })
    }

    fn mount(&self) -> Result<(), String> {
        let image = self.image.as_ref().expect("only a disk with an image file is mounted again");
        run("mount", &["-o", "loop", &text(image), &text(&self.point)])
    }

    /// Returns the mount point.
    pub(crate) fn path(&self) -> &Path {
        &self.point
    }

    /// Returns the used space in KiB.
    pub(crate) fn used_kib(&self) -> u64 {
        let stat = rustix::fs::statvfs(&self.point).unwrap();
        (stat.f_blocks - stat.f_bfree) * stat.f_frsize / 1024
    }

    /// Writes all cached data.
    pub(crate) fn sync(&self) -> Result<(), String> {
        let dir = File::open(&self.point).map_err(|e| e.to_string())?;
        rustix::fs::syncfs(dir).map_err(|e| e.to_string())
    }

    /// Simulates a power cut: unsynced data is lost, and later writes fail.
    pub(crate) fn cut(&self) -> Result<(), String> {
        let mut why = String::new();
        for (program, script) in SHUTDOWN_SCRIPTS {
            let flag = if program == "perl" { "-e" } else { "-c" };
            match run(program, &[flag, script, &text(&self.point)]) {
                Ok(()) => return Ok(()),
                Err(message) => why = message,
            }
        }
        Err(why)
    }

    /// Mounts the file system again. No process may have a file open.
    pub(crate) fn restart(&self) -> Result<(), String> {
        run("umount", &[&text(&self.point)])?;
        self.mount()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(why) = run("umount", &[&text(&self.point)]) {
            // A busy file system is unmounted when its last file is closed.
            drop(run("umount", &["-l", &text(&self.point)]));
            super::trials::report(format_args!("{}: {why}", self.dir.path().display()));
        }
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {}", output.status, message.trim()))
}
