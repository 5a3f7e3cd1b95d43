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
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use super::layout::{self, Layout};

const WITNESS: &str = "witness";
const DECISIONS_COPY: &str = "decisions.copy";
const QUARANTINE: &str = "quarantine";

/// The newest run that ended, as a file beside the database tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Its number.
    pub run: i64,
    /// Its seal in the database.
    pub seal: i64,
}

/// A file or folder that others can get at, or that is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// The file.
    pub path: PathBuf,
    /// The permission bits that it has.
    pub mode: u32,
    /// Those that it may have.
    pub wanted: u32,
    /// Whether it belongs to another user.
    pub foreign: bool,
}

/// Reads the witness; `None` when there is none, or none that can be read.
pub fn witness(layout: &Layout) -> Option<Witness> {
    let text = fs::read_to_string(layout.private_dir().join(WITNESS)).ok()?;
    let mut words = text.split_whitespace();
    let mut number = |name| (words.next()? == name).then_some(words.next()?.parse().ok()?);
    Some(Witness { run: number("run")?, seal: number("seal")? })
}

/// Writes the witness.
///
/// # Errors
///
/// Returns why it is not known to be on disk.
pub fn bear_witness(layout: &Layout, Witness { run, seal }: Witness) -> io::Result<()> {
    write(&layout.private_dir(), WITNESS, format!("run {run}\nseal {seal}\n").as_bytes())
}

/// Returns what the decisions were when a run last ended.
pub fn decisions_copy(layout: &Layout) -> Option<Vec<u8>> {
    fs::read(layout.private_dir().join(DECISIONS_COPY)).ok()
}

/// Keeps a copy of the decisions.
///
/// # Errors
///
/// Returns why it is not known to be on disk.
pub fn copy_decisions(layout: &Layout, bytes: &[u8]) -> io::Result<()> {
    write(&layout.private_dir(), DECISIONS_COPY, bytes)
}

/// Keeps bytes of the file `relative` in the quarantine, and returns where, relative to the root.
///
/// # Errors
///
/// Returns why they are not known to be on disk.
pub fn quarantine(
    layout: &Layout,
    now: DateTime<Utc>,
    relative: &str,
    bytes: &[u8],
) -> io::Result<String> {
    let time = now.format("%Y%m%dT%H%M%S%3fZ").to_string();
    let at = format!("{}/{QUARANTINE}/{time}/{relative}", layout::PRIVATE_DIR);
    let full = layout.full(&at);
    let dir = full.parent().unwrap_or(layout.root());
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let name = full.file_name().unwrap_or_default().to_string_lossy();
    write(dir, &name, bytes)?;
    // The folders above it are new too.
    for above in dir.ancestors().take_while(|it| it.starts_with(layout.private_dir())) {
        File::open(above)?.sync_all()?;
    }
    Ok(at)
}

/// Lists what in the private folder others can get at, and the record of decisions if they can.
///
/// # Errors
///
/// Returns what the system says of a folder that cannot be listed.
pub fn exposed(layout: &Layout) -> io::Result<Vec<Exposed>> {
    let mut found = Vec::new();
    let mut left = vec![layout.private_dir(), layout.full(&layout.decisions())];
    while let Some(path) = left.pop() {
        let meta = match fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        if meta.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        }
        let wanted = if meta.is_dir() { 0o700 } else { 0o600 };
        let mode = meta.mode() & 0o777;
        let foreign = meta.uid() != rustix::process::geteuid().as_raw();
        // The mode of a link says nothing.
        let is_open = !meta.is_symlink() && mode & !wanted & 0o077 != 0;
        if is_open || foreign {
            found.push(Exposed { path, mode, wanted, foreign });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Closes a file or folder to others.
///
/// # Errors
///
/// Returns what the system says.
pub fn close(exposed: &Exposed) -> io::Result<()> {
    fs::set_permissions(&exposed.path, Permissions::from_mode(exposed.wanted))
}

/// Lists what stands in the private folder and is none of ours, by name.
pub fn strangers(layout: &Layout) -> Vec<String> {
    const OURS: [&str; 11] = [
        "forgetting.",
        "undoing.",
        "lineage.db",
        "daemon.",
        "pass.lock",
        WITNESS,
        DECISIONS_COPY,
        QUARANTINE,
        "replaced",
        "replies",
        "snapshots",
    ];
    let names = fs::read_dir(layout.private_dir()).into_iter().flatten().flatten();
    let names = names.map(|it| it.file_name().to_string_lossy().into_owned());
    let mut strange: Vec<String> =
        names.filter(|name| !OURS.iter().any(|it| name.starts_with(it))).collect();
    strange.sort_unstable();
    strange
}

/// Writes a file of the private folder whole.
fn write(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut temp = tempfile::Builder::new().prefix(layout::TEMP_PREFIX).tempfile_in(dir)?;
    temp.write_all(bytes)?;
    temp.as_file().sync_all()?;
    temp.persist(dir.join(name))?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
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
        assert_eq!(witness(&layout), None);
        let said = Witness { run: 7, seal: -12 };
        bear_witness(&layout, said).unwrap();
        assert_eq!(witness(&layout), Some(said));
        write(&layout.private_dir(), WITNESS, b"run 7 sea").unwrap();
        assert_eq!(witness(&layout), None);
    }

    #[test]
    fn the_quarantine_keeps_bytes_for_their_owner_alone() {
        let (_dir, layout) = layout();
        let now = "2026-04-06T03:00:00Z".parse().unwrap();
        let at = quarantine(&layout, now, "memory/weekly/2026-W14.md", b"\0\0").unwrap();
        assert_eq!(at, ".memoird/quarantine/20260406T030000000Z/memory/weekly/2026-W14.md");
        assert_eq!(fs::read(layout.full(&at)).unwrap(), b"\0\0");
        assert_eq!(exposed(&layout).unwrap(), []);
        let path = layout.full(&at);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let open = exposed(&layout).unwrap();
        assert_eq!(open, [Exposed { path, mode: 0o640, wanted: 0o600, foreign: false }]);
        close(&open[0]).unwrap();
        assert_eq!(exposed(&layout).unwrap(), []);
        assert_eq!(strangers(&layout), [""; 0]);
    }
}
