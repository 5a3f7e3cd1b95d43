//! What the machine is asked: folders, rights, file system, space, SQLite.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use crate::{
    compaction::{
        RootSnapshot,
        integrity::check::{CheckOutcome, CheckResult},
    },
    store::{
        db::lineage::Lineage,
        fs::{filesystem, layout::Layout, lock::is_world_writable, private_folder},
    },
};

/// A pass writes every file twice for a moment, and the database grows with it.
const DISK_FREE_MIN: u64 = 64 * 1024 * 1024;

/// Looks at a folder that memoird writes in; one that only reads needs no more than that.
pub(super) fn check_folder(path: &Path, is_reader: bool) -> CheckResult {
    use rustix::fs::Access;
    let shown = path.display();
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let what = format!("there is no `{shown}`; `memoird log TEXT` makes it");
            return Ok(CheckOutcome::Failed(vec![what]));
        }
        Err(e) => return Err(format!("cannot look at `{shown}`: {e}").into()),
    };
    let mut findings = Vec::new();
    if !meta.is_dir() {
        findings.push(format!("`{shown}` is no folder"));
    }
    let access = Access::READ_OK | Access::EXEC_OK;
    let access = if is_reader { access } else { access | Access::WRITE_OK };
    if rustix::fs::access(path, access).is_err() {
        let what = if is_reader { "read" } else { "written" };
        findings.push(format!("`{shown}` cannot be {what} by this user"));
    }
    let mode = meta.mode() & 0o7777;
    if is_world_writable(mode) {
        findings.push(format!("anybody may write in `{shown}`; chmod o-w '{shown}'"));
    } else if mode & 0o002 != 0 && findings.is_empty() {
        return Ok(CheckOutcome::Warning(format!(
            "{shown}: anybody may add files, and what they add is read as a log"
        )));
    }
    Ok(CheckOutcome::from_findings(findings, || shown.to_string()))
}

/// Looks whether others can get at what is private.
pub(super) fn check_private_files(layout: &Layout) -> CheckResult {
    let findings = private_folder::exposed_files(layout)?.into_iter().map(|it| {
        let shown = it.path.display();
        let (mode, wanted) = (it.mode, it.required_mode);
        if it.is_foreign {
            format!("`{shown}` belongs to another user; chown it to the one who runs memoird")
        } else {
            format!("`{shown}` is open to others (mode {mode:o}); chmod {wanted:o} '{shown}'")
        }
    });
    Ok(CheckOutcome::from_findings(findings.collect(), || "closed to others".to_owned()))
}

/// Looks for files that are seen under other names too, or stand behind a link.
pub(super) fn check_links(layout: &Layout, view: &RootSnapshot) -> CheckOutcome {
    let mut notes = Vec::new();
    let root = layout.root();
    for folder in [
        layout.memory_dir().to_owned(),
        layout.summary_dir(crate::memory::period::Grain::Week),
        layout.summary_dir(crate::memory::period::Grain::Month),
    ] {
        let links = filesystem::symlinks_along(root, &folder);
        notes.extend(links.iter().map(|it| format!("{} is a link", it.display())));
    }
    notes.sort();
    notes.dedup();
    let inventory = &view.inventory;
    let logs = inventory.logs.values().map(|it| it.path.clone());
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    let memories =
        inventory.memories.iter().map(|it| layout.typed_memory(&it.file_name.to_string_lossy()));
    let paths = logs.chain(summaries.map(|it| it.path.clone())).chain(memories);
    let several = paths.chain([layout.wisdom(), layout.index()]).filter(|path| {
        fs::symlink_metadata(layout.full(path)).is_ok_and(|it| it.is_file() && it.nlink() > 1)
    });
    notes.extend(several.map(|it| format!("{it} has a second name, under which it may change")));
    if notes.is_empty() {
        CheckOutcome::Passed("none".to_owned())
    } else {
        CheckOutcome::Warning(notes.join("\n"))
    }
}

/// Judges the file system.
pub(super) fn check_file_system(path: &Path) -> CheckResult {
    let kind = filesystem::detect(path)?;
    Ok(match filesystem::refused_name(&kind, filesystem::is_fuse_trusted()) {
        Some(name) => CheckOutcome::Failed(vec![format!(
            "{name}: no database is kept there, and changes from other hosts are not noticed; move the folder to a local disk (or set {}=1 if this one is)",
            filesystem::TRUST_FUSE
        )]),
        None => CheckOutcome::Passed("local".to_owned()),
    })
}

/// Looks for room.
pub(super) fn check_disk_space(path: &Path) -> CheckResult {
    let stat = rustix::fs::statvfs(path)?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let shown = format!("{} MiB free", free / 1024 / 1024);
    Ok(if free < DISK_FREE_MIN {
        CheckOutcome::Failed(vec![format!(
            "{shown}, at least {} are needed",
            DISK_FREE_MIN / 1024 / 1024
        )])
    } else {
        CheckOutcome::Passed(shown)
    })
}

/// Asks which SQLite is linked.
pub(super) fn check_sqlite() -> CheckOutcome {
    match Lineage::sqlite_version() {
        (version, true) => CheckOutcome::Passed(version.to_owned()),
        (version, false) => {
            CheckOutcome::Failed(vec![format!("{version} can damage a database; update it")])
        }
    }
}
