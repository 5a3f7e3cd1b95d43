//! Looks at all files of a root at once.

use std::{collections::HashMap, fs, io, path::Path, sync::Arc};

use chrono::Datelike as _;

use super::{
    Vault, VaultError, io_error,
    read::{read_regular, stamp},
};
use crate::{
    memory::{
        decision::Decisions,
        hash::ContentHash,
        period::{Grain, Period},
        typed::{TypedError, TypedMemory},
    },
    privacy::Rules,
    store::{
        inventory::{Inventory, LogFile, Problem, Stamp, SummaryFile},
        layout::{self, Name},
    },
};

/// What is known of a file from an earlier scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The stamp that it had.
    pub stamp: Stamp,
    /// Its hash then.
    pub hash: ContentHash,
}

/// A scan: the inventory, and what to remember for the next one.
#[derive(Debug, Default)]
pub struct Scan {
    /// What stands there.
    pub inventory: Inventory,
    /// Logs that had to be read, by path.
    pub read: Vec<(String, Seen)>,
}

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
    pub fn scan(&self, seen: &HashMap<String, Seen>) -> Result<Scan, VaultError> {
        let mut scan = Scan::default();
        self.scan_memory(seen, &mut scan)?;
        // After the logs, so that one that is moved meanwhile is found there at the latest.
        self.scan_archive(seen, &mut scan)?;
        for grain in [Grain::Week, Grain::Month] {
            self.scan_summaries(grain, &mut scan.inventory)?;
        }
        let inventory = &mut scan.inventory;
        inventory.index = self.text_or_problem(&self.layout.index(), &mut inventory.problems)?;
        inventory.wisdom = self.text_or_problem(&self.layout.wisdom(), &mut inventory.problems)?;
        let decisions = self.text_or_problem(&self.layout.decisions(), &mut inventory.problems)?;
        if let Some(text) = decisions {
            inventory.decisions = Decisions::parse(&text);
        }
        inventory.rules = Rules::new(Arc::clone(&self.policy), &inventory.decisions);
        for (stem, log) in &mut inventory.logs {
            log.input = inventory.rules.input_hash(stem, log.hash);
        }
        inventory.problems.sort();
        Ok(scan)
    }

    fn scan_memory(&self, seen: &HashMap<String, Seen>, scan: &mut Scan) -> Result<(), VaultError> {
        let Scan { inventory, read } = scan;
        for name in self.names_in(self.layout.memory_dir(), &mut inventory.problems)? {
            let path = self.layout.typed(&name);
            match layout::classify(&name) {
                Name::Log(stem) => match self.look_at_log(&path, seen) {
                    Ok((found, fresh)) => {
                        if fresh {
                            read.push((path.clone(), found));
                        }
                        let Seen { stamp, hash } = found;
                        inventory.logs.insert(stem, LogFile { path, stamp, hash, input: hash });
                    }
                    // It went away since the folder was listed: into the archive, or for good.
                    Err(error) if error.is_missing() => {}
                    Err(error) => inventory.problems.push(problem(path, error)?),
                },
                Name::Typed(_) => {
                    let Some(text) = self.text_or_problem(&path, &mut inventory.problems)? else {
                        continue;
                    };
                    match TypedMemory::parse(Path::new(&name), &text) {
                        Ok(memory) => inventory.memories.push(memory),
                        Err(TypedError::NotTyped) => {}
                        Err(error) => inventory.problems.push(told(path, &error)),
                    }
                }
                Name::NearMiss(reason) => {
                    inventory.problems.push(Problem { path, reason: reason.to_owned() });
                }
                Name::Other => {}
            }
        }
        Ok(())
    }

    /// Looks at the archived logs. What of the archive cannot be listed becomes a problem.
    fn scan_archive(
        &self,
        seen: &HashMap<String, Seen>,
        scan: &mut Scan,
    ) -> Result<(), VaultError> {
        let Scan { inventory, read } = scan;
        let archive = self.layout.archive_dir();
        for year in self.names_or_problem(&archive, &mut inventory.problems)? {
            let dir = format!("{archive}/{year}");
            if !layout::is_year(&year) {
                if matches!(layout::classify(&year), Name::Log(_)) {
                    let reason = format!("belongs in the folder of its year, {archive}/YYYY/");
                    inventory.problems.push(Problem { path: dir, reason });
                }
                continue;
            }
            for name in self.names_or_problem(&dir, &mut inventory.problems)? {
                let path = format!("{dir}/{name}");
                let stem = match layout::classify(&name) {
                    Name::Log(stem) => stem,
                    Name::NearMiss(reason) => {
                        inventory.problems.push(Problem { path, reason: reason.to_owned() });
                        continue;
                    }
                    Name::Typed(_) | Name::Other => continue,
                };
                if self.layout.archived(&stem).as_ref() != Some(&path) {
                    let reason = format!("belongs in {archive}/{}/", stem.date().year());
                    inventory.problems.push(Problem { path, reason });
                    continue;
                }
                let live = inventory.logs.remove(&stem);
                match self.look_at_log(&path, seen) {
                    Ok((found, fresh)) => {
                        if fresh {
                            read.push((path.clone(), found));
                        }
                        let Seen { stamp, hash } = found;
                        let file = LogFile { path, stamp, hash, input: hash };
                        // One that is gone from there by now is the one that was found here.
                        if let Some(live) = live.filter(|it| self.is_taken(&it.path)) {
                            inventory.problems.push(late_problem(&live, &file));
                            inventory.late.insert(stem.clone(), live);
                        }
                        inventory.archived.insert(stem.clone());
                        inventory.logs.insert(stem, file);
                    }
                    // It went back among the others: lines of that day came late.
                    Err(error) if error.is_missing() => {
                        inventory.logs.extend(live.map(|it| (stem, it)));
                    }
                    // Neither counts: what came late is not all of the day.
                    Err(error) => inventory.problems.push(problem(path, error)?),
                }
            }
        }
        Ok(())
    }

    /// Lists a folder like [`Self::names_in`]; one that cannot be listed is a problem and is empty.
    pub(super) fn names_or_problem(
        &self,
        dir: &str,
        problems: &mut Vec<Problem>,
    ) -> Result<Vec<String>, VaultError> {
        self.names_in(dir, problems).or_else(|error| {
            problems.push(problem(dir.to_owned(), error)?);
            Ok(Vec::new())
        })
    }

    /// Returns the hash of a log, and whether it had to be read for that.
    fn look_at_log(
        &self,
        path: &str,
        seen: &HashMap<String, Seen>,
    ) -> Result<(Seen, bool), VaultError> {
        let full = self.layout.full(path);
        let meta = fs::symlink_metadata(&full).map_err(|e| io_error("read", &full, e))?;
        if let Some(known) = seen.get(path).filter(|it| meta.is_file() && it.stamp == stamp(&meta))
        {
            return Ok((*known, false));
        }
        let found = read_regular(&full)?
            .ok_or_else(|| io_error("read", &full, io::ErrorKind::NotFound.into()))?;
        if let Err(e) = std::str::from_utf8(&found.bytes) {
            return Err(VaultError::NotUtf8 { path: path.into(), at: e.valid_up_to() });
        }
        Ok((Seen { stamp: found.stamp, hash: ContentHash::of(&found.bytes) }, true))
    }

    fn scan_summaries(&self, grain: Grain, inventory: &mut Inventory) -> Result<(), VaultError> {
        let dir = self.layout.summary_dir(grain);
        for name in self.names_in(&dir, &mut inventory.problems)? {
            let period = name.strip_suffix(".md").and_then(|stem| stem.parse::<Period>().ok());
            let Some(period) = period.filter(|it| it.grain() == grain) else {
                if Path::new(&name).extension().is_some_and(|it| it == "md") {
                    let reason = format!(
                        "not the name of a {} (expected one like {})",
                        if grain == Grain::Week { "week" } else { "month" },
                        if grain == Grain::Week { "2026-W14.md" } else { "2026-04.md" },
                    );
                    inventory.problems.push(Problem { path: format!("{dir}/{name}"), reason });
                }
                continue;
            };
            let path = self.layout.summary(period);
            let Some(text) = self.text_or_problem(&path, &mut inventory.problems)? else {
                continue;
            };
            let file = match SummaryFile::of(path.clone(), period, &text) {
                Ok(file) => file,
                Err(error) => {
                    inventory.problems.push(told(path, &error));
                    continue;
                }
            };
            if grain == Grain::Week { &mut inventory.weekly } else { &mut inventory.monthly }
                .insert(period, file);
        }
        Ok(())
    }

    fn text_or_problem(
        &self,
        path: &str,
        problems: &mut Vec<Problem>,
    ) -> Result<Option<String>, VaultError> {
        self.read_text(path).or_else(|error| {
            problems.push(problem(path.to_owned(), error)?);
            Ok(None)
        })
    }
}

/// Says that a day stands in two places.
fn late_problem(live: &LogFile, archived: &LogFile) -> Problem {
    let reason = if live.hash == archived.hash {
        format!("also stands as {}; the next run leaves only that one", archived.path)
    } else {
        format!(
            "written after the log of that day was archived as {}; the next run joins the two",
            archived.path
        )
    };
    Problem { path: live.path.clone(), reason }
}

/// Says that a file cannot be read, unless the system may only just have failed to.
fn problem(path: String, error: VaultError) -> Result<Problem, VaultError> {
    if error.is_failed_read() { Err(error) } else { Ok(told(path, &error)) }
}

fn told(path: String, error: &dyn std::error::Error) -> Problem {
    let mut reason = error.to_string();
    if let Some(source) = error.source() {
        reason = format!("{reason}: {source}");
    }
    Problem { path, reason }
}

#[cfg(test)]
mod tests {
    use rustix::fs::CWD;

    use super::{
        super::fixture::{put, vault},
        *,
    };
    use crate::memory::address::Stem;

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
    fn an_unchanged_log_is_not_read_again() {
        let (_dir, vault) = vault();
        put(&vault, "memory/2026-04-01.md", b"a\n");
        let first = vault.scan(&HashMap::new()).unwrap();
        assert_eq!(first.read.len(), 1);
        let seen: HashMap<_, _> = first.read.into_iter().collect();
        assert!(vault.scan(&seen).unwrap().read.is_empty());
        put(&vault, "memory/2026-04-01.md", b"bb\n");
        assert_eq!(vault.scan(&seen).unwrap().read.len(), 1);
    }
}
