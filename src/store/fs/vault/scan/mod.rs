//! Scans all files of a root.

mod side_folders;

use std::{collections::HashMap, io, path::Path, sync::Arc};

use super::{
    Vault, VaultError, io_error,
    read::{read_in, refuse_conflict},
};
use crate::{
    memory::{
        address::Stem,
        decision::Decisions,
        hash::ContentHash,
        period::Grain,
        typed::{TypedMemory, TypedMemoryError},
    },
    parallel,
    privacy::PrivacyRules,
    store::fs::{
        inventory::{FileProblem, FileStat, Inventory, LogFile},
        layout::{self, MemoryFileName},
        rooted_dir::{DirHandle, EntryMetadata},
    },
};

/// How many logs one thread takes at a time: starting a thread costs as much as some dozens of them.
const LOGS_AT_ONCE: usize = 256;

/// Stamp and hash of a file from an earlier scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownFile {
    /// Its stamp.
    pub stamp: FileStat,
    /// Its hash.
    pub hash: ContentHash,
}

/// The inventory, and what to record for the next scan.
#[derive(Debug, Default)]
pub struct VaultScan {
    /// The files of the root.
    pub inventory: Inventory,
    /// Logs that had to be read, by path.
    pub newly_read: Vec<(String, KnownFile)>,
}

/// The logs of a folder, each with its stem, name, path, and metadata. If reading the metadata failed (`None`),
/// it is tried again.
struct ListedLogs {
    folder: DirHandle,
    logs: Vec<ListedLog>,
}

type ListedLog = ((Stem, String, String), Option<EntryMetadata>);

impl Vault {
    /// Scans all files of the root.
    ///
    /// Files whose stamp equals the one in `seen` are not read again. A file that is invalid, or that this user
    /// may not read, becomes a problem of the inventory, so that one bad file stops nothing.
    ///
    /// Returns an error if the memory folder cannot be listed, or if the system fails to read a file: a summary
    /// written without an existing log would lack it for good.
    pub(crate) fn scan(&self, seen: &HashMap<String, KnownFile>) -> Result<VaultScan, VaultError> {
        self.scan_with(seen, &HashMap::new())
    }

    /// Like [`Self::scan`], but does not read weekly and monthly summaries either if their stamp equals the one
    /// in `seen`: for callers that need only their hashes.
    pub(crate) fn scan_hashes(
        &self,
        seen: &HashMap<String, KnownFile>,
    ) -> Result<VaultScan, VaultError> {
        self.scan_with(seen, seen)
    }

    /// Like [`Self::scan_hashes`], but calls `seen` only after the memory folder was listed, and returns its
    /// result too: it may be computed meanwhile.
    pub(crate) fn scan_hashes_with(
        &self,
        seen: impl FnOnce() -> HashMap<String, KnownFile>,
    ) -> Result<(VaultScan, HashMap<String, KnownFile>), VaultError> {
        let mut scan = VaultScan::default();
        let listed = self.list_memory_folder(&mut scan.inventory)?;
        let seen = seen();
        Ok((self.scan_listed(listed, scan, &seen, &seen)?, seen))
    }

    fn scan_with(
        &self,
        seen: &HashMap<String, KnownFile>,
        seen_summaries: &HashMap<String, KnownFile>,
    ) -> Result<VaultScan, VaultError> {
        let mut scan = VaultScan::default();
        let listed = self.list_memory_folder(&mut scan.inventory)?;
        self.scan_listed(listed, scan, seen, seen_summaries)
    }

    fn scan_listed(
        &self,
        listed: Option<ListedLogs>,
        mut scan: VaultScan,
        seen: &HashMap<String, KnownFile>,
        seen_summaries: &HashMap<String, KnownFile>,
    ) -> Result<VaultScan, VaultError> {
        if let Some(listed) = listed {
            self.scan_logs(listed, seen, &mut scan)?;
        }
        self.report_logs_beside(&mut scan.inventory);
        // After the logs, so that one that is archived meanwhile is found here.
        self.scan_archive(seen, &mut scan)?;
        for grain in [Grain::Week, Grain::Month] {
            self.scan_summaries(grain, seen_summaries, &mut scan.inventory)?;
        }
        let inventory = &mut scan.inventory;
        inventory.index = self.text_or_problem(&self.layout.index(), &mut inventory.problems)?;
        inventory.wisdom = self.text_or_problem(&self.layout.wisdom(), &mut inventory.problems)?;
        if let Some(text) = &inventory.wisdom {
            inventory.problems.extend(self.unusable_record(&self.layout.wisdom(), text));
        }
        let (curated, refused) = self.curated_files()?;
        inventory.curated = curated;
        // An unreadable index was reported already.
        let is_known =
            |it: &FileProblem| inventory.problems.iter().any(|known| known.path == it.path);
        let refused: Vec<FileProblem> = refused.into_iter().filter(|it| !is_known(it)).collect();
        inventory.problems.extend(refused);
        match self.names_in("", &mut Vec::new()) {
            Ok(names) => inventory.problems.extend(self.hidden_file_copies("", &names)),
            Err(error) if error.is_read_failure() => return Err(error),
            // What keeps the folder from being read was reported for the visible file.
            Err(_) => {}
        }
        let decisions = self.text_or_problem(&self.layout.decisions(), &mut inventory.problems)?;
        if let Some(text) = decisions {
            inventory.decisions = Decisions::parse(&text);
        }
        inventory.rules = PrivacyRules::new(Arc::clone(&self.policy), &inventory.decisions);
        for (stem, log) in &mut inventory.logs {
            log.input_hash = inventory.rules.input_hash(stem, log.hash);
        }
        for (period, file) in inventory.weekly.iter_mut().chain(&mut inventory.monthly) {
            file.body_hash = inventory.rules.summary_input_hash(*period, &file.body_hash);
        }
        inventory.problems.sort();
        Ok(scan)
    }

    /// Lists the logs of the memory folder with their metadata, and reads the typed memories.
    fn list_memory_folder(
        &self,
        inventory: &mut Inventory,
    ) -> Result<Option<ListedLogs>, VaultError> {
        let dir = self.layout.memory_dir();
        let folder = match self.open_folder("read", dir) {
            Err(error) if error.is_missing() => return Ok(None),
            folder => folder?,
        };
        let mut logs: Vec<(Stem, String, String)> = Vec::new();
        for name in self.names_of(&folder, dir, &mut inventory.problems)? {
            let path = self.layout.typed_memory(&name);
            match layout::classify(&name) {
                MemoryFileName::Log(stem) => logs.push((stem, name, path)),
                MemoryFileName::Typed(_) => {
                    let Some(text) = self.text_or_problem(&path, &mut inventory.problems)? else {
                        continue;
                    };
                    match TypedMemory::parse(Path::new(&name), &text) {
                        Ok(memory) => inventory.memories.push(memory),
                        Err(TypedMemoryError::NotTyped) => {}
                        Err(error) => inventory.problems.push(file_problem(path, &error)),
                    }
                }
                MemoryFileName::NearMiss(reason) => {
                    inventory.problems.push(FileProblem::new(path, reason));
                }
                MemoryFileName::Other if path == self.layout.sessions_dir() => {
                    let listed = self.open_folder("read", &path);
                    if let Err(error) = listed
                        && !error.is_missing()
                    {
                        inventory.problems.push(problem_or_error(path, error)?);
                    }
                }
                MemoryFileName::Other => self.report_nested_logs(&path, inventory),
            }
        }
        let parts: Vec<&[(Stem, String, String)]> = logs.chunks(LOGS_AT_ONCE).collect();
        let metadata = parallel::map(&parts, |part| {
            part.iter().map(|it| folder.metadata(&it.1).ok()).collect::<Vec<_>>()
        });
        let logs = logs.into_iter().zip(metadata.into_iter().flatten()).collect();
        Ok(Some(ListedLogs { folder, logs }))
    }

    /// Adds the logs of the memory folder to the inventory, and reads those that changed.
    fn scan_logs(
        &self,
        ListedLogs { folder, logs }: ListedLogs,
        seen: &HashMap<String, KnownFile>,
        scan: &mut VaultScan,
    ) -> Result<(), VaultError> {
        let VaultScan { inventory, newly_read: read } = scan;
        let hash = |((_, name, path), metadata): &ListedLog| {
            self.log_hash((&folder, name), path, *metadata, seen)
        };
        let is_new = |((_, _, path), metadata): &&ListedLog| {
            metadata.is_none_or(|it| unchanged_file(&it, path, seen).is_none())
        };
        // Threads pay only if many logs have to be read.
        let hashes: Vec<_> = if logs.iter().filter(is_new).count() > LOGS_AT_ONCE {
            let parts: Vec<&[ListedLog]> = logs.chunks(LOGS_AT_ONCE).collect();
            let all = parallel::map(&parts, |part| part.iter().map(hash).collect::<Vec<_>>());
            all.into_iter().flatten().collect()
        } else {
            logs.iter().map(hash).collect()
        };
        for (((stem, _, path), _), hash) in logs.into_iter().zip(hashes) {
            match hash {
                Ok((found, was_read)) => {
                    if was_read {
                        read.push((path.clone(), found));
                    }
                    let KnownFile { stamp, hash } = found;
                    inventory.logs.insert(stem, LogFile { path, stamp, hash, input_hash: hash });
                }
                // It was archived or deleted after the folder was listed.
                Err(error) if error.is_missing() => {}
                Err(error) => inventory.problems.push(problem_or_error(path, error)?),
            }
        }
        Ok(())
    }

    /// Lists a folder like [`Self::names_in`]; one that cannot be listed is a problem and is empty.
    pub(super) fn names_or_problem(
        &self,
        dir: &str,
        problems: &mut Vec<FileProblem>,
    ) -> Result<Vec<String>, VaultError> {
        self.names_in(dir, problems).or_else(|error| {
            problems.push(problem_or_error(dir.to_owned(), error)?);
            Ok(Vec::new())
        })
    }

    /// Returns the hash of a log, and whether it had to be read for that. Reads its `metadata` if it is `None`.
    fn log_hash(
        &self,
        (folder, name): (&DirHandle, &str),
        path: &str,
        metadata: Option<EntryMetadata>,
        seen: &HashMap<String, KnownFile>,
    ) -> Result<(KnownFile, bool), VaultError> {
        let full = || self.layout.full(path);
        let metadata = metadata.map_or_else(|| folder.metadata(name), Ok);
        let metadata = metadata.map_err(|e| io_error("read", &full(), e))?;
        if let Some(known) = unchanged_file(&metadata, path, seen) {
            return Ok((known, false));
        }
        let full = full();
        let found = read_in(folder, name, &full)?
            .ok_or_else(|| io_error("read", &full, io::ErrorKind::NotFound.into()))?
            .refuse_hard_link(&full)?;
        match std::str::from_utf8(&found.bytes) {
            Err(e) => return Err(VaultError::NotUtf8 { path: path.into(), at: e.valid_up_to() }),
            Ok(text) => refuse_conflict(text, Path::new(path))?,
        }
        Ok((KnownFile { stamp: found.stamp, hash: ContentHash::of(&found.bytes) }, true))
    }

    fn text_or_problem(
        &self,
        path: &str,
        problems: &mut Vec<FileProblem>,
    ) -> Result<Option<String>, VaultError> {
        self.read_text(path).or_else(|error| {
            problems.push(problem_or_error(path.to_owned(), error)?);
            Ok(None)
        })
    }
}

/// Returns stamp and hash of a file that has not changed since it was `seen`.
fn unchanged_file(
    metadata: &EntryMetadata,
    path: &str,
    seen: &HashMap<String, KnownFile>,
) -> Option<KnownFile> {
    let is_plain = metadata.is_file() && metadata.link_count == 1;
    seen.get(path).filter(|it| is_plain && it.stamp == metadata.stamp).copied()
}

/// Turns an error into a problem of the file, unless the system failed to read it, which may be temporary.
fn problem_or_error(path: String, error: VaultError) -> Result<FileProblem, VaultError> {
    if error.is_read_failure() {
        return Err(error);
    }
    let is_merge_conflict = matches!(error, VaultError::MergeConflict { .. });
    Ok(FileProblem { is_merge_conflict, ..file_problem(path, &error) })
}

fn file_problem(path: String, error: &dyn std::error::Error) -> FileProblem {
    let mut reason = error.to_string();
    if let Some(source) = error.source() {
        reason = format!("{reason}: {source}");
    }
    FileProblem::new(path, reason)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::atomic::{AtomicBool, Ordering},
    };

    use rustix::fs::CWD;

    use super::{
        super::fixture::{put, vault},
        *,
    };
    use crate::{memory::address::Stem, store::fs::lock::WriteLock};

    #[test]
    fn odd_files_are_reported_and_ignored() {
        let (_dir, vault) = vault();
        put(&vault, "memory/2026-04-01.md", b"fine\n");
        put(&vault, "memory/2026-04-02.md", b"caf\xe9\n");
        put(&vault, "secret", b"key");
        let at = |name: &str| vault.layout().full(&format!("memory/{name}"));
        std::os::unix::fs::symlink(vault.layout().full("secret"), at("2026-04-03.md")).unwrap();
        fs::create_dir(at("2026-04-04.md")).unwrap();
        rustix::fs::mknodat(CWD, at("2026-04-05.md"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        put(&vault, "memory/2026-02-30.md", b"no such day");
        let scan = vault.scan(&HashMap::new()).unwrap();
        let logs: Vec<_> = scan.inventory.logs.keys().map(Stem::as_str).collect();
        assert_eq!(logs, ["2026-04-01"]);
        let problems: Vec<_> = scan.inventory.problems.iter().map(|it| &it.path[..]).collect();
        assert_eq!(
            problems,
            [
                "memory/2026-02-30.md",
                "memory/2026-04-02.md",
                "memory/2026-04-03.md",
                "memory/2026-04-04.md",
                "memory/2026-04-05.md"
            ]
        );
    }

    #[test]
    fn a_log_with_a_second_name_is_reported_and_not_read() {
        let (_dir, vault) = vault();
        put(&vault, "secret", b"key\n");
        let full = vault.layout().full("memory/2026-04-01.md");
        fs::hard_link(vault.layout().full("secret"), &full).unwrap();
        let scan = vault.scan(&HashMap::new()).unwrap();
        assert!(scan.inventory.logs.is_empty() && scan.newly_read.is_empty());
        assert!(scan.inventory.problems[0].reason.contains("second name"));
        // Nor if its stamp was seen before it got the second name.
        let stamp = vault.read("memory/2026-04-01.md").unwrap().unwrap().stamp;
        let seen = KnownFile { stamp, hash: ContentHash::of("key\n") };
        let seen = HashMap::from([("memory/2026-04-01.md".to_owned(), seen)]);
        assert!(vault.scan(&seen).unwrap().inventory.logs.is_empty());
        let stem = "2026-04-01".parse::<Stem>().unwrap();
        assert!(matches!(vault.read_log(&stem), Err(VaultError::HardLink { .. })));
        let lock = WriteLock::acquire(vault.layout().root()).unwrap();
        let added = vault.append(&lock, "memory/2026-04-01.md", "", "- x\n", false);
        assert!(matches!(added, Err(VaultError::HardLink { .. })));
        assert_eq!(fs::read(vault.layout().full("secret")).unwrap(), b"key\n");
    }

    /// Runs `disturb` repeatedly on another thread while `check` runs a thousand times.
    fn while_disturbed(disturb: impl Fn() + Sync, check: impl Fn()) {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    disturb();
                }
            });
            for _ in 0..1000 {
                check();
            }
            done.store(true, Ordering::Relaxed);
        });
    }

    fn exchange(vault: &Vault, a: &str, b: &str) {
        let [a, b] = [a, b].map(|it| vault.layout().full(it));
        rustix::fs::renameat_with(CWD, a, CWD, b, rustix::fs::RenameFlags::EXCHANGE).unwrap();
    }

    #[test]
    fn a_log_swapped_for_a_link_or_a_pipe_is_never_followed() {
        let (dir, vault) = vault();
        let outside = tempfile::NamedTempFile::new_in(dir.path().parent().unwrap()).unwrap();
        fs::OpenOptions::new()
            .append(true)
            .open(outside.path())
            .and_then(|mut it| std::io::Write::write_all(&mut it, b"key"))
            .unwrap();
        put(&vault, "memory/2026-04-01.md", b"- mine\n");
        std::os::unix::fs::symlink(outside.path(), vault.layout().full("memory/link")).unwrap();
        let pipe = vault.layout().full("memory/pipe");
        rustix::fs::mknodat(CWD, pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let swap = || {
            for other in ["memory/link", "memory/pipe", "memory/link"] {
                exchange(&vault, "memory/2026-04-01.md", other);
            }
        };
        let mine = ContentHash::of("- mine\n");
        while_disturbed(swap, || {
            let scan = vault.scan(&HashMap::new()).unwrap();
            assert!(scan.inventory.logs.values().all(|it| it.hash == mine));
            match vault.read("memory/2026-04-01.md") {
                Ok(found) => assert!(found.is_none_or(|it| it.bytes == b"- mine\n")),
                Err(error) => assert!(matches!(error, VaultError::NotAFile { .. }), "{error}"),
            }
        });
    }

    #[test]
    fn a_folder_swapped_for_a_link_during_a_run_is_never_followed() {
        let (_dir, vault) = vault();
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(vault.layout().full("memory/weekly")).unwrap();
        put(&vault, "memory/weekly/2026-W14.md", b"mine");
        let far = vault.layout().full("memory/far");
        std::os::unix::fs::symlink(outside.path(), &far).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        fs::write(outside.path().join("2026-W14.md"), "theirs").unwrap();
        let lock = WriteLock::acquire(vault.layout().root()).unwrap();
        let is_ours = |error: &VaultError| {
            // Nothing but a link that is not followed, or a file or folder that is missing.
            let refused = matches!(
                error,
                VaultError::NotAFile { .. }
                    | VaultError::Changed { .. }
                    | VaultError::ReadBackMismatch { .. }
            );
            assert!(refused || error.is_missing(), "{error:?}");
        };
        while_disturbed(
            || exchange(&vault, "memory/weekly", "memory/far"),
            || {
                match vault.read("memory/weekly/2026-W14.md") {
                    Ok(found) => assert_eq!(found.unwrap().bytes, b"mine"),
                    Err(error) => is_ours(&error),
                }
                let expected = Some(ContentHash::of("mine"));
                let written = vault
                    .stage("memory/weekly/2026-W14.md", &Vault::new_temp_name(), b"mine")
                    .and_then(|staged| vault.publish(&lock, staged, expected));
                written.unwrap_or_else(|error| is_ours(&error));
            },
        );
        assert_eq!(fs::read(outside.path().join("2026-W14.md")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_log_that_is_truncated_while_it_is_read_is_never_half_read() {
        let (_dir, vault) = vault();
        let text = "- a line that is long enough\n".repeat(10_000);
        put(&vault, "memory/2026-04-01.md", text.as_bytes());
        let cut = || put(&vault, "memory/2026-04-01.md", text.as_bytes());
        while_disturbed(cut, || match vault.read("memory/2026-04-01.md") {
            Ok(found) => {
                let found = found.unwrap();
                assert_eq!(found.bytes.len() as u64, found.stamp.size);
            }
            Err(error) => assert!(matches!(error, VaultError::Changed { .. }), "{error}"),
        });
    }

    #[test]
    fn an_unchanged_log_is_not_read_again() {
        let (_dir, vault) = vault();
        put(&vault, "memory/2026-04-01.md", b"a\n");
        let first = vault.scan(&HashMap::new()).unwrap();
        assert_eq!(first.newly_read.len(), 1);
        let seen: HashMap<_, _> = first.newly_read.into_iter().collect();
        assert!(vault.scan(&seen).unwrap().newly_read.is_empty());
        put(&vault, "memory/2026-04-01.md", b"bb\n");
        assert_eq!(vault.scan(&seen).unwrap().newly_read.len(), 1);
    }
}
