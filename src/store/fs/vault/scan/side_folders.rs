//! Scans the folders beside the memory folder itself: archive, session records, weekly and monthly summaries.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use chrono::Datelike as _;

use super::{KnownFile, LOGS_AT_ONCE, VaultScan, file_problem, problem_or_error};
use crate::{
    memory::{
        address::Stem,
        period::{Grain, Period},
    },
    parallel,
    privacy::PrivacyRules,
    store::fs::{
        inventory::{FileProblem, Inventory, LogFile, SummaryFile},
        layout::{self, MemoryFileName},
        vault::{Vault, VaultError, hidden_files::pair_stamp},
    },
};

impl Vault {
    /// Scans the session records, which [`Self::scan`] skips because no job depends on them. Files that are no
    /// records, or that must not be read, are left out.
    pub(crate) fn scan_sessions(
        &self,
        seen: &HashMap<String, KnownFile>,
        rules: &PrivacyRules,
    ) -> Result<BTreeMap<Stem, LogFile>, VaultError> {
        let dir = self.layout.sessions_dir();
        let folder = match self.open_folder("read", &dir) {
            Err(error) if error.is_read_failure() => return Err(error),
            Err(_) => return Ok(BTreeMap::new()),
            Ok(folder) => folder,
        };
        let names = self.names_of(&folder, &dir, &mut Vec::new())?;
        let stem_of = |it: &String| it.strip_suffix(".md").and_then(|it| it.parse::<Stem>().ok());
        let stems: Vec<Stem> = names.iter().filter_map(stem_of).filter(Stem::is_session).collect();
        let parts: Vec<&[Stem]> = stems.chunks(LOGS_AT_ONCE).collect();
        let files = parallel::map(&parts, |part| {
            let file = |it: &Stem| {
                let path = self.layout.source_path(it);
                let hash = self.log_hash((&folder, &format!("{it}.md")), &path, None, seen);
                hash.map(|(KnownFile { stamp, hash }, _)| {
                    let input_hash = rules.input_hash(it, hash);
                    LogFile { path, stamp, hash, input_hash }
                })
            };
            part.iter().map(file).collect::<Vec<_>>()
        });
        let mut sessions = BTreeMap::new();
        for (stem, file) in stems.into_iter().zip(files.into_iter().flatten()) {
            match file {
                Ok(file) => drop(sessions.insert(stem, file)),
                Err(error) if error.is_read_failure() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(sessions)
    }

    /// Reports logs in folders beside the memory folder where other programs keep them.
    pub(super) fn report_logs_beside(&self, inventory: &mut Inventory) {
        const FOLDERS: [&str; 4] = ["daily", "journal", "diary", "logs"];
        let memory = self.layout.memory_dir();
        if !memory.is_empty() {
            let others = FOLDERS.iter().filter(|it| memory.split('/').next() != Some(**it));
            others.for_each(|it| self.report_nested_logs(it, inventory));
        }
    }

    /// Reports a folder, or the folders in it, with logs that nothing reads: `2026/03/`, `daily/`.
    pub(super) fn report_nested_logs(&self, path: &str, inventory: &mut Inventory) {
        let own = [
            self.layout.summary_dir(Grain::Week),
            self.layout.summary_dir(Grain::Month),
            self.layout.archive_dir(),
        ];
        let name = path.rsplit('/').next().unwrap_or(path);
        // Most other names are files, and hidden folders are no one's logs.
        if name.contains('.') || own.iter().any(|it| it == path) {
            return;
        }
        let Ok(names) = self.names_in(path, &mut Vec::new()) else { return };
        let mut logs: Vec<String> = Vec::new();
        for name in names {
            let at = format!("{path}/{name}");
            if matches!(layout::classify(&name), MemoryFileName::Log(_)) {
                logs.push(at);
            } else if name.len() <= 3 && name.ends_with(|c: char| c.is_ascii_digit()) {
                // `03` or `W10`; anything else may be large and no one's logs.
                let nested = self.names_in(&at, &mut Vec::new()).unwrap_or_default();
                let is_log = |it: &String| matches!(layout::classify(it), MemoryFileName::Log(_));
                logs.extend(nested.into_iter().filter(is_log).map(|it| format!("{at}/{it}")));
            }
        }
        let Some(first) = logs.first() else { return };
        let folder = first.rsplit_once('/').map_or("", |it| it.0);
        let memory =
            if self.layout.memory_dir().is_empty() { "." } else { self.layout.memory_dir() };
        let (count, them) = match logs.len() {
            1 => (format!("1 log that is not read, {first}"), "it"),
            count => (format!("{count} logs that are not read, such as {first}"), "them"),
        };
        let reason = format!(
            "{count}: move {them} (`mv {folder}/*.md {memory}/`), or set `memory_dir: {folder}` in memoird.yaml"
        );
        inventory.problems.push(FileProblem::new(path, reason));
    }

    /// Adds the archived logs to the inventory. Folders that cannot be listed become problems.
    pub(super) fn scan_archive(
        &self,
        seen: &HashMap<String, KnownFile>,
        scan: &mut VaultScan,
    ) -> Result<(), VaultError> {
        let VaultScan { inventory, newly_read: read } = scan;
        let archive = self.layout.archive_dir();
        for year in self.names_or_problem(&archive, &mut inventory.problems)? {
            let dir = format!("{archive}/{year}");
            if !layout::is_year(&year) {
                if matches!(layout::classify(&year), MemoryFileName::Log(_)) {
                    let reason = format!("belongs in the folder of its year, {archive}/YYYY/");
                    inventory.problems.push(FileProblem::new(dir, reason));
                }
                continue;
            }
            let listed = self.open_folder("read", &dir).and_then(|folder| {
                Ok((self.names_of(&folder, &dir, &mut inventory.problems)?, folder))
            });
            let (names, folder) = match listed {
                Ok(listed) => listed,
                Err(error) if error.is_missing() => continue,
                Err(error) => {
                    inventory.problems.push(problem_or_error(dir, error)?);
                    continue;
                }
            };
            for name in names {
                let path = format!("{dir}/{name}");
                let stem = match layout::classify(&name) {
                    MemoryFileName::Log(stem) => stem,
                    MemoryFileName::NearMiss(reason) => {
                        inventory.problems.push(FileProblem::new(path, reason));
                        continue;
                    }
                    MemoryFileName::Typed(_) | MemoryFileName::Other => continue,
                };
                if self.layout.archive_path(&stem).as_ref() != Some(&path) {
                    let reason = format!("belongs in {archive}/{}/", stem.date().year());
                    inventory.problems.push(FileProblem::new(path, reason));
                    continue;
                }
                let live = inventory.logs.remove(&stem);
                match self.log_hash((&folder, &name), &path, None, seen) {
                    Ok((found, was_read)) => {
                        if was_read {
                            read.push((path.clone(), found));
                        }
                        let KnownFile { stamp, hash } = found;
                        let file = LogFile { path, stamp, hash, input_hash: hash };
                        // If the other file is gone by now, it was archived during the scan.
                        if let Some(live) = live.filter(|it| self.exists(&it.path)) {
                            inventory.problems.push(late_log_problem(&live, &file));
                            inventory.late_logs.insert(stem.clone(), live);
                        }
                        inventory.archived.insert(stem.clone());
                        inventory.logs.insert(stem, file);
                    }
                    // It was moved back, because lines of that day were added later.
                    Err(error) if error.is_missing() => {
                        inventory.logs.extend(live.map(|it| (stem, it)));
                    }
                    // Neither counts: the later lines are not the whole day.
                    Err(error) => inventory.problems.push(problem_or_error(path, error)?),
                }
            }
        }
        Ok(())
    }

    pub(super) fn scan_summaries(
        &self,
        grain: Grain,
        seen: &HashMap<String, KnownFile>,
        inventory: &mut Inventory,
    ) -> Result<(), VaultError> {
        let dir = self.layout.summary_dir(grain);
        let mut periods = Vec::new();
        let names = self.names_in(&dir, &mut inventory.problems)?;
        inventory.problems.extend(self.hidden_file_copies(&dir, &names));
        for name in names {
            let period = name.strip_suffix(".md").and_then(|stem| stem.parse::<Period>().ok());
            let Some(period) = period.filter(|it| it.grain() == grain) else {
                if Path::new(&name).extension().is_some_and(|it| it == "md") {
                    let reason = format!(
                        "not the name of a {} (expected one like {})",
                        if grain == Grain::Week { "week" } else { "month" },
                        if grain == Grain::Week { "2026-W14.md" } else { "2026-04.md" },
                    );
                    inventory.problems.push(FileProblem::new(format!("{dir}/{name}"), reason));
                }
                continue;
            };
            periods.push(period);
        }
        let folder = match self.open_folder("read", &dir) {
            Err(error) if error.is_missing() => return Ok(()),
            folder => folder?,
        };
        let folders = self.folder_cache();
        let read = |period: &Period| {
            let path = self.layout.summary(*period);
            let known = seen.get(&path).filter(|it| {
                let hidden = self.hidden_name(&path).unwrap_or_default();
                pair_stamp(&folder, &format!("{period}.md"), &hidden) == Some(it.stamp)
            });
            if let Some(KnownFile { stamp, hash }) = known {
                return Ok((Some(SummaryFile::without_content(path, *stamp, *hash)), Vec::new()));
            }
            let mut problems = Vec::new();
            let read = folders.read_stamped(&path).or_else(|error| {
                problems.push(problem_or_error(path.clone(), error)?);
                Ok(None)
            });
            let Some((text, stamp)) = read? else { return Ok((None, problems)) };
            problems.extend(self.unusable_record(&path, &text));
            let file = SummaryFile::of(path.clone(), stamp, *period, &text);
            let file = file.map_err(|error| problems.push(file_problem(path, &error))).ok();
            Ok((file, problems))
        };
        let files =
            if grain == Grain::Week { &mut inventory.weekly } else { &mut inventory.monthly };
        for (period, read) in periods.iter().zip(parallel::map(&periods, read)) {
            let (file, problems) = read?;
            inventory.problems.extend(problems);
            files.extend(file.map(|it| (*period, it)));
        }
        Ok(())
    }
}

/// Reports that a log exists both inside and outside of the archive.
fn late_log_problem(live: &LogFile, archived: &LogFile) -> FileProblem {
    let reason = if live.hash == archived.hash {
        format!("also exists as {}; the next run keeps only that one", archived.path)
    } else {
        format!(
            "written after the log of that day was archived as {}; the next run joins the two",
            archived.path
        )
    };
    FileProblem::new(&live.path[..], reason)
}
