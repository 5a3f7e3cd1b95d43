//! Looks at all files of a root at once.

mod side_folders;

use std::{collections::HashMap, io, path::Path, sync::Arc};

use super::{Vault, VaultError, io_error, read::read_in};
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

/// So many logs are looked at side by side with others: to start a thread takes as long as some dozens.
const LOGS_AT_ONCE: usize = 256;

/// What is known of a file from an earlier scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownFile {
    /// The stamp that it had.
    pub stamp: FileStat,
    /// Its hash then.
    pub hash: ContentHash,
}

/// A scan: the inventory, and what to remember for the next one.
#[derive(Debug, Default)]
pub struct VaultScan {
    /// What stands there.
    pub inventory: Inventory,
    /// Logs that had to be read, by path.
    pub newly_read: Vec<(String, KnownFile)>,
}

/// The logs of a folder, each with its name, its path, and what was seen of it; `None` where the look failed:
/// that is tried again.
struct ListedLogs {
    folder: DirHandle,
    logs: Vec<ListedLog>,
}

type ListedLog = ((Stem, String, String), Option<EntryMetadata>);

impl Vault {
    /// Looks at all files of the root.
    ///
    /// Files whose stamp equals the one in `seen` are not read again. A file that is not as it should
    /// be, or that this user may not read, becomes a problem of the inventory, so that one bad file
    /// stops nothing.
    ///
    /// # Errors
    ///
    /// Returns an error when the memory folder cannot be listed, or when the system fails to read a
    /// file: what is made without one that is there would lack it for good.
    pub fn scan(&self, seen: &HashMap<String, KnownFile>) -> Result<VaultScan, VaultError> {
        self.scan_with(seen, &HashMap::new())
    }

    /// Like [`Self::scan`], for who needs nothing of weekly and monthly files but their bytes: those whose
    /// stamp equals the one in `seen` are not read either (`unread`).
    ///
    /// # Errors
    ///
    /// Like [`Self::scan`].
    pub fn scan_hashes(&self, seen: &HashMap<String, KnownFile>) -> Result<VaultScan, VaultError> {
        self.scan_with(seen, seen)
    }

    /// Like `scan_names`, for who is still finding out what was `seen`: that is asked when all logs
    /// of the memory folder have been looked at. Returns it, too.
    ///
    /// # Errors
    ///
    /// Like [`Self::scan`].
    pub fn scan_hashes_with(
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
        // After the logs, so that one that is moved meanwhile is found there at the latest.
        self.scan_archive(seen, &mut scan)?;
        for grain in [Grain::Week, Grain::Month] {
            self.scan_summaries(grain, seen_summaries, &mut scan.inventory)?;
        }
        let inventory = &mut scan.inventory;
        inventory.index = self.text_or_problem(&self.layout.index(), &mut inventory.problems)?;
        inventory.wisdom = self.text_or_problem(&self.layout.wisdom(), &mut inventory.problems)?;
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

    /// Looks at the logs of the memory folder, and reads the typed memories.
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
                    inventory.problems.push(FileProblem { path, reason: reason.to_owned() });
                }
                MemoryFileName::Other if path == self.layout.sessions_dir() => {
                    let listed = self.open_folder("read", &path);
                    if let Err(error) = listed
                        && !error.is_missing()
                    {
                        inventory.problems.push(problem_or_error(path, error)?);
                    }
                }
                MemoryFileName::Other => {}
            }
        }
        let parts: Vec<&[(Stem, String, String)]> = logs.chunks(LOGS_AT_ONCE).collect();
        let looks = parallel::map(&parts, |part| {
            part.iter().map(|it| folder.metadata(&it.1).ok()).collect::<Vec<_>>()
        });
        let logs = logs.into_iter().zip(looks.into_iter().flatten()).collect();
        Ok(Some(ListedLogs { folder, logs }))
    }

    /// Takes the logs of the memory folder; those that were not seen so are read.
    fn scan_logs(
        &self,
        ListedLogs { folder, logs }: ListedLogs,
        seen: &HashMap<String, KnownFile>,
        scan: &mut VaultScan,
    ) -> Result<(), VaultError> {
        let VaultScan { inventory, newly_read: read } = scan;
        let take =
            |((_, name, path), look): &ListedLog| self.log_hash((&folder, name), path, *look, seen);
        let is_new = |((_, _, path), look): &&ListedLog| {
            look.is_none_or(|look| unchanged_file(&look, path, seen).is_none())
        };
        // To read takes threads; to know does not.
        let looks: Vec<_> = if logs.iter().filter(is_new).count() > LOGS_AT_ONCE {
            let parts: Vec<&[ListedLog]> = logs.chunks(LOGS_AT_ONCE).collect();
            let all = parallel::map(&parts, |part| part.iter().map(take).collect::<Vec<_>>());
            all.into_iter().flatten().collect()
        } else {
            logs.iter().map(take).collect()
        };
        for (((stem, _, path), _), look) in logs.into_iter().zip(looks) {
            match look {
                Ok((found, fresh)) => {
                    if fresh {
                        read.push((path.clone(), found));
                    }
                    let KnownFile { stamp, hash } = found;
                    inventory.logs.insert(stem, LogFile { path, stamp, hash, input_hash: hash });
                }
                // It went away since the folder was listed: into the archive, or for good.
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

    /// Returns the hash of a log, and whether it had to be read for that. One that was not looked at yet
    /// is now.
    fn log_hash(
        &self,
        (folder, name): (&DirHandle, &str),
        path: &str,
        look: Option<EntryMetadata>,
        seen: &HashMap<String, KnownFile>,
    ) -> Result<(KnownFile, bool), VaultError> {
        let full = || self.layout.full(path);
        let look = look.map_or_else(|| folder.metadata(name), Ok);
        let look = look.map_err(|e| io_error("read", &full(), e))?;
        if let Some(known) = unchanged_file(&look, path, seen) {
            return Ok((known, false));
        }
        let full = full();
        let found = read_in(folder, name, &full)?
            .ok_or_else(|| io_error("read", &full, io::ErrorKind::NotFound.into()))?
            .refuse_hard_link(&full)?;
        if let Err(e) = std::str::from_utf8(&found.bytes) {
            return Err(VaultError::NotUtf8 { path: path.into(), at: e.valid_up_to() });
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

/// Returns what was seen of a file that stands there as it did then.
fn unchanged_file(
    look: &EntryMetadata,
    path: &str,
    seen: &HashMap<String, KnownFile>,
) -> Option<KnownFile> {
    let is_it = |it: &&KnownFile| look.is_file() && look.link_count == 1 && it.stamp == look.stamp;
    seen.get(path).filter(is_it).copied()
}

/// Says that a file cannot be read, unless the system may only just have failed to.
fn problem_or_error(path: String, error: VaultError) -> Result<FileProblem, VaultError> {
    if error.is_read_failure() { Err(error) } else { Ok(file_problem(path, &error)) }
}

fn file_problem(path: String, error: &dyn std::error::Error) -> FileProblem {
    let mut reason = error.to_string();
    if let Some(source) = error.source() {
        reason = format!("{reason}: {source}");
    }
    FileProblem { path, reason }
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
    fn odd_files_are_reported_and_left_alone() {
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
        // Nor is it where its stamp was seen before it got the name.
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

    /// Runs `disturb` over and over on another thread while `look` runs a thousand times.
    fn while_disturbed(disturb: impl Fn() + Sync, look: impl Fn()) {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    disturb();
                }
            });
            for _ in 0..1000 {
                look();
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
            // A file or a folder that is there or gone, or a link that is left alone; no other.
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
    fn a_log_that_is_cut_while_it_is_read_is_read_again_or_not_at_all() {
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
