//! Checks of the machine: folders, permissions, file system, disk space, SQLite.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use crate::{
    commands::ui::human_size,
    compaction::{
        RootSnapshot,
        integrity::check::{CheckOutcome, CheckResult},
    },
    config::trusted_file::is_world_writable,
    store::{
        db::lineage::Lineage,
        fs::{filesystem, layout::Layout, private_folder},
    },
};

/// A run briefly writes every file twice, and the database grows with it.
const DISK_FREE_MIN: u64 = 64 * 1024 * 1024;

/// Checks the permissions of a folder; a host that only reads needs no write access.
pub(super) fn check_folder(path: &Path, is_reader: bool) -> CheckResult {
    use rustix::fs::Access;
    let shown = path.display();
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let what = format!("`{shown}` does not exist; `memoird log TEXT` creates it");
            return Ok(CheckOutcome::Failed(vec![what]));
        }
        Err(e) => return Err(format!("cannot read `{shown}`: {e}").into()),
    };
    let mut findings = Vec::new();
    if !meta.is_dir() {
        findings.push(format!("`{shown}` is not a folder"));
    }
    let access = Access::READ_OK | Access::EXEC_OK;
    let access = if is_reader { access } else { access | Access::WRITE_OK };
    if rustix::fs::access(path, access).is_err() {
        let what = if is_reader { "readable" } else { "writable" };
        findings.push(format!("`{shown}` is not {what} for this user"));
    }
    let mode = meta.mode() & 0o7777;
    if is_world_writable(mode) {
        findings.push(format!("any user can write in `{shown}`; run `chmod o-w '{shown}'`"));
    } else if mode & 0o002 != 0 && findings.is_empty() {
        return Ok(CheckOutcome::Warning(format!(
            "{shown}: any user can add files, which memoird would read as logs"
        )));
    }
    Ok(CheckOutcome::from_findings(findings, || shown.to_string()))
}

/// Checks that other users cannot read private files.
pub(super) fn check_private_files(layout: &Layout) -> CheckResult {
    let exposed = private_folder::exposed_files(layout)?;
    let decisions = layout.full(&layout.decisions());
    if exposed.iter().any(|it| it.path == decisions && !it.is_foreign) && exposed.len() == 1 {
        return Ok(CheckOutcome::Warning(format!(
            "`{}` is open to other users, as after a checkout; the next run makes it private",
            decisions.display()
        )));
    }
    let findings = exposed.into_iter().map(|it| {
        let shown = it.path.display();
        let (mode, required) = (it.mode, it.required_mode);
        if it.is_foreign {
            format!("`{shown}` belongs to another user; chown it to the user who runs memoird")
        } else {
            format!("`{shown}` is open to other users (mode {mode:o}); run `chmod {required:o} '{shown}'`")
        }
    });
    Ok(CheckOutcome::from_findings(findings.collect(), || "not accessible to others".to_owned()))
}

/// Looks for files with several names (hard links) and folders behind symbolic links.
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
    let hard_linked = paths.chain([layout.wisdom(), layout.index()]).filter(|path| {
        fs::symlink_metadata(layout.full(path)).is_ok_and(|it| it.is_file() && it.nlink() > 1)
    });
    notes.extend(hard_linked.map(|it| format!("{it} has a second hard link, which may change it")));
    if notes.is_empty() {
        CheckOutcome::Passed("none".to_owned())
    } else {
        CheckOutcome::Warning(notes.join("\n"))
    }
}

pub(super) fn check_file_system(path: &Path) -> CheckResult {
    let kind = filesystem::detect(path)?;
    Ok(match filesystem::refused_name(&kind, filesystem::is_fuse_trusted()) {
        Some(name) => CheckOutcome::Failed(vec![format!(
            "{name}: databases are not safe there, and changes by other hosts go unnoticed; move the folder to a local disk (or set {}=1 if it is local)",
            filesystem::TRUST_FUSE
        )]),
        None => CheckOutcome::Passed("local".to_owned()),
    })
}

pub(super) fn check_disk_space(path: &Path) -> CheckResult {
    let stat = rustix::fs::statvfs(path)?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let shown = format!("{} free", human_size(free));
    Ok(if free < DISK_FREE_MIN {
        CheckOutcome::Failed(vec![format!(
            "{shown}, at least {} needed",
            human_size(DISK_FREE_MIN)
        )])
    } else {
        CheckOutcome::Passed(shown)
    })
}

pub(super) fn check_sqlite() -> CheckOutcome {
    match Lineage::sqlite_version() {
        (version, true) => CheckOutcome::Passed(version.to_owned()),
        (version, false) => {
            CheckOutcome::Failed(vec![format!("{version} can damage databases; update it")])
        }
    }
}
