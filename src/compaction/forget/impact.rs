//! What a wish reaches, as the files, the history, and the private folder stand. Changes nothing.
//!
//! Lines first, then what cites them, then what says the same: each find adds to the wish what only
//! the files told, so that a second attempt after a crash knows it too.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use serde::Serialize;

use super::targets::{self, ForgetPatterns, ForgetRequest, RemovalResult, RemovedText};
use crate::{
    compaction::{CompactionError, journal::commit::FileWrite},
    memory::{
        address::Stem,
        document::SummaryHeader,
        hash::ContentHash,
        item::Tier,
        log::DailyLog,
        period::{Grain, Period},
    },
    store::{
        db::lineage::{
            Lineage, LineageError,
            history::{VersionCause, VersionId, VersionRow},
        },
        fs::{
            inventory::{Inventory, SummaryFile},
            layout::{FileKind, Layout},
            vault::{Vault, VaultError},
        },
    },
};

/// More files than this of a person's are not looked through.
const FILES_MAX: usize = 20_000;

/// What a wish reaches, as the files stand.
#[derive(Clone, Debug, Default)]
pub struct ForgetImpact {
    /// The wish, with all that it was found to mean.
    pub request: ForgetRequest,
    /// The lines of logs.
    pub lines: Vec<RemovedText>,
    /// Lines of logs that are no longer there, as the history holds them.
    pub vanished_lines: Vec<RemovedText>,
    /// Bullets and entries, tier by tier.
    pub items: Vec<RemovedText>,
    /// Typed memories: whole files.
    pub memories: Vec<RemovedText>,
    /// Other lines of generated files, which people wrote.
    pub user_lines: Vec<RemovedText>,
    /// Kept versions of files.
    pub versions: Vec<VersionId>,
    /// Files in the private folder.
    pub copies: Vec<String>,
    /// Files that hold the words and will not be touched.
    pub untouched: Vec<UntouchedFile>,
    /// What is to be made again, if it is not due anyway.
    pub to_rebuild: BTreeSet<(Tier, Period)>,
    /// Generated files as they will stand.
    pub(super) files: Vec<FileWrite>,
    /// Logs as they will stand, by the path that the lineage names them by.
    pub(super) logs: Vec<(String, FileWrite)>,
}

/// A file that holds the words and stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UntouchedFile {
    /// Relative to the root.
    pub path: String,
    /// Why it is left alone, or what a person can do.
    pub reason: String,
}

/// Says what a wish reaches, and changes nothing.
///
/// # Errors
///
/// Returns an error when the folder or the database cannot be read.
pub fn find_impact(
    vault: &Vault,
    lineage: Option<&Lineage>,
    wish: &ForgetRequest,
) -> Result<ForgetImpact, CompactionError> {
    let mut wish = wish.clone();
    let vanished =
        lineage.map_or_else(|| Ok(Vec::new()), |it| find_vanished_lines(vault, it, &mut wish))?;
    let (mut reach, inventory) = find_impact_in_files(vault, &wish)?;
    reach.vanished_lines = vanished;
    if let Some(lineage) = lineage {
        find_versions(vault.layout(), lineage, &mut reach)?;
    }
    find_copies(vault, &mut reach);
    find_untouched(vault, &inventory, &mut reach);
    add_rebuilds(&inventory, &mut reach);
    Ok(reach)
}

/// Says what a wish reaches in the files alone.
pub(super) fn find_impact_in_files(
    vault: &Vault,
    wish: &ForgetRequest,
) -> Result<(ForgetImpact, Inventory), CompactionError> {
    let inventory = vault.scan(&HashMap::new())?.inventory;
    let mut reach = ForgetImpact { request: wish.clone(), ..ForgetImpact::default() };
    let sources = read_logs(vault, &inventory)?;
    find_lines(&sources, &mut reach);
    let wish = reach.request.clone();
    find_logs(&sources, &ForgetPatterns::new(&wish), &mut reach);
    find_summaries(vault, &inventory, &mut reach)?;
    let wish = reach.request.clone();
    let needles = ForgetPatterns::new(&wish);
    find_memories_and_wisdom(vault, &inventory, &needles, &mut reach)?;
    for gone in reach.items.iter().chain(&reach.memories) {
        reach.request.found.texts.insert(targets::normalized(&gone.text));
    }
    Ok((reach, inventory))
}

/// A log or a session record.
struct ScannedLog {
    log: DailyLog,
    /// Where it stands.
    path: String,
    /// What the lineage calls it.
    name: String,
}

fn read_logs(vault: &Vault, inventory: &Inventory) -> Result<Vec<ScannedLog>, VaultError> {
    let layout = vault.layout();
    let sessions = vault.files_below(&layout.sessions_dir(), FILES_MAX).0;
    let sessions = sessions.into_iter().filter(|it| layout.kind_of(it) == Some(FileKind::Session));
    let sessions = sessions.filter_map(|path| Some((stem_of(&path)?, path)));
    // What came late to an archived day stands beside it until a pass joins the two.
    let logs = inventory
        .logs
        .iter()
        .chain(&inventory.late_logs)
        .map(|(stem, file)| (stem.clone(), file.path.clone()));
    let mut found = Vec::new();
    for (stem, path) in logs.chain(sessions) {
        let Some(file) = vault.read(&path)? else { continue };
        // One that is not UTF-8 is reported by the scan.
        let Ok(log) = DailyLog::parse(stem, &file.bytes) else { continue };
        found.push(ScannedLog { name: layout.source_path(&log.stem), log, path });
    }
    Ok(found)
}

/// Returns the names of the logs and session records that are no longer there, each with the path
/// that the history knows it by.
///
/// # Errors
///
/// Returns why the database could not be read.
pub fn vanished_logs(
    vault: &Vault,
    lineage: &Lineage,
) -> Result<Vec<(Stem, String)>, LineageError> {
    let latest = lineage.latest_versions()?.into_iter();
    let logs = latest.filter_map(|it| Some((log_stem(vault.layout(), &it.path)?, it.path)));
    Ok(logs.filter(|(stem, _)| !vault.exists(&vault.log_path(stem))).collect())
}

/// Returns the newest bytes that are kept of a file.
///
/// # Errors
///
/// Returns why the database could not be read.
pub fn last_kept_bytes(lineage: &Lineage, path: &str) -> Result<Option<Vec<u8>>, LineageError> {
    let hash = lineage.versions_of(path)?.into_iter().rev().find_map(|it| it.hash);
    let bytes = hash.map(|it| version_content(lineage, it)).transpose()?;
    Ok(bytes.and_then(VersionContent::known))
}

/// Finds the lines of logs that are no longer there: what was made of them still stands, and cites
/// them as they stood last.
fn find_vanished_lines(
    vault: &Vault,
    lineage: &Lineage,
    wish: &mut ForgetRequest,
) -> Result<Vec<RemovedText>, LineageError> {
    let asked = wish.clone();
    let needles = ForgetPatterns::new(&asked);
    let mut found = Vec::new();
    for (stem, path) in vanished_logs(vault, lineage)? {
        let Some(bytes) = last_kept_bytes(lineage, &path)? else { continue };
        let Ok(log) = DailyLog::parse(stem, &bytes) else { continue };
        if asked.logs.contains_key(log.stem.as_str()) {
            wish.found.logs.insert(log.stem.to_string());
        }
        for (number, text, _) in log.lines() {
            if !needles.matches_line(&log.stem, text) {
                continue;
            }
            if needles.holds_requested_words(text) {
                wish.lines.insert(text.trim().to_owned());
            }
            wish.found.now.add(log.stem.as_str(), number);
            found.push(RemovedText {
                path: path.clone(),
                line: number,
                text: text.trim().to_owned(),
                by_person: false,
                whole: Some(Arc::clone(log.raw())),
            });
        }
    }
    Ok(found)
}

/// Finds the lines, and takes down their words and their places.
fn find_lines(sources: &[ScannedLog], reach: &mut ForgetImpact) {
    let wish = reach.request.clone();
    let needles = ForgetPatterns::new(&wish);
    for ScannedLog { log, path, .. } in sources {
        for (number, text, _) in log.lines() {
            if !needles.matches_line(&log.stem, text) {
                continue;
            }
            if needles.holds_requested_words(text) {
                reach.request.lines.insert(text.trim().to_owned());
            }
            reach.request.found.now.add(log.stem.as_str(), number);
            reach.lines.push(RemovedText {
                path: path.clone(),
                line: number,
                text: text.trim().to_owned(),
                by_person: false,
                whole: Some(Arc::clone(log.raw())),
            });
        }
    }
    let now = reach.request.found.now.clone();
    reach.request.found.ever.merge(&now);
}

/// Finds the logs as they will stand without the lines.
fn find_logs(sources: &[ScannedLog], needles: &ForgetPatterns<'_>, reach: &mut ForgetImpact) {
    if !reach.request.from_log {
        return;
    }
    for ScannedLog { log, path, name } in sources {
        let Some(RemovalResult { text, .. }) = needles.remove_from_log(path, log) else { continue };
        let standing = Some(log.raw().to_string());
        if text.is_none() {
            reach.request.found.logs.insert(log.stem.to_string());
        }
        reach.logs.push((name.clone(), FileWrite { path: path.clone(), text, current: standing }));
    }
}

/// Finds weekly and then monthly files: a month may cite what a person wrote in a week.
fn find_summaries(
    vault: &Vault,
    inventory: &Inventory,
    reach: &mut ForgetImpact,
) -> Result<(), CompactionError> {
    for tier in [&inventory.weekly, &inventory.monthly] {
        let wish = reach.request.clone();
        let needles = ForgetPatterns::new(&wish);
        for (&period, SummaryFile { path, .. }) in tier {
            let Some(text) = vault.read_text(path)? else { continue };
            // A file whose frontmatter cannot be read is reported by the scan.
            let Ok(Some(cut)) = needles.remove_from_summary(path, period, &text) else { continue };
            let found = &mut reach.request.found;
            for gone in &cut.items {
                found.now.add(&period.to_string(), gone.line);
                found.ever.add(&period.to_string(), gone.line);
                if gone.by_person {
                    found.unknown.insert(period.to_string());
                }
            }
            reach.to_rebuild.insert((Tier::of_period(period), period));
            reach.add(path, cut, text);
        }
    }
    Ok(())
}

/// Finds typed memories, their index, and `WISDOM.md`.
fn find_memories_and_wisdom(
    vault: &Vault,
    inventory: &Inventory,
    needles: &ForgetPatterns<'_>,
    reach: &mut ForgetImpact,
) -> Result<(), CompactionError> {
    let layout = vault.layout();
    let mut left = Vec::new();
    for memory in &inventory.memories {
        let name = memory.file_name.to_string_lossy();
        let path = layout.typed_memory(&name);
        if !needles.matches_memory(&path, memory) {
            left.push(memory.clone());
            continue;
        }
        let Some(standing) = vault.read_text(&path)? else { continue };
        let found = &mut reach.request.found;
        found.names.insert(path.clone());
        found.texts.extend([&memory.name, &memory.description].map(|it| targets::normalized(it)));
        for (at, _) in &memory.sources {
            let day = Period::containing(Grain::Day, at.stem.date());
            reach.to_rebuild.insert((Tier::Extract, day));
        }
        reach.memories.push(RemovedText {
            path: path.clone(),
            line: 1,
            text: memory.body.trim().to_owned(),
            by_person: !memory.is_managed(),
            whole: None,
        });
        reach.files.push(FileWrite { path, text: None, current: Some(standing) });
    }
    if let Some(text) = &inventory.index {
        let cut = needles.remove_from_index(&layout.index(), text, &left, &inventory.rules);
        // Without a memory to go, what differs is the next pass's business.
        if let Some(cut) = cut.filter(|it| !reach.memories.is_empty() || !it.lines.is_empty()) {
            reach.add(&layout.index(), cut, text.clone());
        }
    }
    if let Some(text) = &inventory.wisdom
        && let Some(cut) = needles.remove_from_wisdom(&layout.wisdom(), text)
    {
        reach.add(&layout.wisdom(), cut, text.clone());
    }
    Ok(())
}

impl ForgetImpact {
    fn add(&mut self, path: &str, mut cut: RemovalResult, standing: String) {
        let whole: Arc<str> = standing.as_str().into();
        cut.lines.iter_mut().for_each(|it| it.whole = Some(Arc::clone(&whole)));
        self.items.extend(cut.items);
        self.user_lines.extend(cut.lines);
        let file = FileWrite { path: path.to_owned(), text: cut.text, current: Some(standing) };
        self.files.push(file);
    }

    /// Returns whether nothing is there that would go.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
            && self.vanished_lines.is_empty()
            && self.items.is_empty()
            && self.memories.is_empty()
            && self.user_lines.is_empty()
            && self.versions.is_empty()
            && self.copies.iter().all(|it| is_database(it))
    }
}

/// Bytes of the history.
enum VersionContent {
    /// They are kept.
    Kept(Vec<u8>),
    /// They were lost.
    Lost,
    /// What is kept is not what they were, and may hold anything.
    Damaged,
}

impl VersionContent {
    fn known(self) -> Option<Vec<u8>> {
        match self {
            Self::Kept(bytes) => Some(bytes),
            Self::Lost | Self::Damaged => None,
        }
    }
}

fn version_content(lineage: &Lineage, hash: ContentHash) -> Result<VersionContent, LineageError> {
    match lineage.content(hash) {
        Ok(bytes) => Ok(bytes.map_or(VersionContent::Lost, VersionContent::Kept)),
        Err(LineageError::Damaged { .. }) => Ok(VersionContent::Damaged),
        Err(error) => Err(error),
    }
}

/// Finds the kept versions that must go, and where in their logs the lines ever stood. Bytes are
/// unpacked one after the other: a history of years does not fit into memory.
fn find_versions(
    layout: &Layout,
    lineage: &Lineage,
    reach: &mut ForgetImpact,
) -> Result<(), LineageError> {
    let versions = lineage.versions()?;
    find_past_lines(layout, lineage, &versions, reach)?;
    let mut gone = BTreeSet::new();
    // The name of a memory that went earlier stands in the index of its time: a second look finds it.
    for _ in 0..2 {
        let wish = reach.request.clone();
        let needles = ForgetPatterns::new(&wish);
        let mut goes: BTreeMap<ContentHash, bool> = BTreeMap::new();
        for row in &versions {
            let Some(hash) = row.hash else { continue };
            let named = wish.memories.contains(&row.path);
            let whole =
                log_stem(layout, &row.path).is_some_and(|it| wish.logs.contains_key(it.as_str()));
            if !named && !whole {
                let known = goes.get(&hash).copied();
                let goes_now = known.map_or_else(|| must_purge(lineage, hash, &needles), Ok)?;
                goes.insert(hash, goes_now);
                if !goes_now {
                    continue;
                }
            }
            gone.insert(row.id);
            if layout.kind_of(&row.path) == Some(FileKind::Memory) {
                reach.request.found.names.insert(row.path.clone());
            }
        }
        if reach.request.found == wish.found {
            break;
        }
    }
    reach.versions = gone.into_iter().collect();
    Ok(())
}

/// Takes down where in any version of their logs the lines stood.
fn find_past_lines(
    layout: &Layout,
    lineage: &Lineage,
    versions: &[VersionRow],
    reach: &mut ForgetImpact,
) -> Result<(), LineageError> {
    let wish = reach.request.clone();
    let needles = ForgetPatterns::new(&wish);
    let stems: BTreeSet<&str> =
        wish.found.now.stems().chain(wish.logs.keys().map(String::as_str)).collect();
    for row in versions {
        let Some(stem) = log_stem(layout, &row.path).filter(|it| stems.contains(it.as_str()))
        else {
            continue;
        };
        let bytes = row.hash.map(|it| version_content(lineage, it)).transpose()?;
        let is_gone =
            matches!(row.cause, VersionCause::Pruned | VersionCause::Forgotten) || bytes.is_some();
        let Some(bytes) = bytes.and_then(VersionContent::known) else {
            // Bytes that are no longer there do not tell where the line stood.
            if is_gone {
                reach.request.found.unknown.insert(stem.to_string());
            }
            continue;
        };
        if let Ok(log) = DailyLog::parse(stem, &bytes) {
            for (number, line, _) in log.lines() {
                if needles.matches_line(&log.stem, line) {
                    reach.request.found.ever.add(log.stem.as_str(), number);
                }
            }
        }
    }
    Ok(())
}

/// Returns whether bytes of the history must not be kept.
fn must_purge(
    lineage: &Lineage,
    hash: ContentHash,
    needles: &ForgetPatterns<'_>,
) -> Result<bool, LineageError> {
    Ok(match version_content(lineage, hash)? {
        VersionContent::Kept(bytes) => needles.must_purge(&String::from_utf8_lossy(&bytes)),
        VersionContent::Lost => false,
        VersionContent::Damaged => true,
    })
}

/// Finds the copies in the private folder that must go: those that hold the words, and databases
/// beside the one in use, whose pages cannot be looked through.
fn find_copies(vault: &Vault, reach: &mut ForgetImpact) {
    let layout = vault.layout();
    let wish = reach.request.clone();
    let needles = ForgetPatterns::new(&wish);
    let own = [
        "lineage.db",
        "lineage.db-wal",
        "lineage.db-shm",
        "daemon.lock",
        "pass.lock",
        "search.db",
        "vectors.db",
    ];
    let folder = crate::store::fs::layout::PRIVATE_DIR;
    for path in vault.files_below(folder, usize::MAX).0 {
        let name = path.strip_prefix(folder).map_or(&path[..], |it| it.trim_start_matches('/'));
        if own.contains(&name) || path == layout.forget_state() {
            continue;
        }
        let goes = is_database(&path) || {
            match vault.read(&path) {
                Ok(Some(found)) => needles.must_purge(&String::from_utf8_lossy(&found.bytes)),
                _ => false,
            }
        };
        if goes {
            reach.copies.push(path);
        }
    }
}

fn is_database(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("lineage.db")
}

/// Finds the files that hold the words and are none of ours to change.
fn find_untouched(vault: &Vault, inventory: &Inventory, reach: &mut ForgetImpact) {
    let layout = vault.layout();
    let wish = reach.request.clone();
    let needles = ForgetPatterns::new(&wish);
    let changed: BTreeSet<&str> = reach
        .files
        .iter()
        .chain(reach.logs.iter().map(|(_, it)| it))
        .map(|it| &it.path[..])
        .collect();
    let logs: BTreeSet<&str> = inventory.logs.values().map(|it| &it.path[..]).collect();
    let (files, more) = vault.files_below("", FILES_MAX);
    let mut untouched = Vec::new();
    for path in files {
        let kind = layout.kind_of(&path);
        let is_log = logs.contains(&path[..]) || kind == Some(FileKind::Session);
        let ours = path == layout.decisions() || path == layout.index();
        if changed.contains(&path[..]) || is_log || ours {
            continue;
        }
        let Ok(Some(found)) = vault.read(&path) else { continue };
        if !needles.holds_target_words(&String::from_utf8_lossy(&found.bytes)) {
            continue;
        }
        let reason = match kind {
            Some(FileKind::Memory) => {
                format!("yours: `memoird forget {path}` removes it, if you want that")
            }
            _ => "none of memoird's files: it holds the words and stays as it is".to_owned(),
        };
        untouched.push(UntouchedFile { path, reason });
    }
    if more {
        let reason = format!("more than {FILES_MAX} files: not all of them were looked through");
        untouched.push(UntouchedFile { path: ".".to_owned(), reason });
    }
    if vault.exists(".git") {
        let reason = "version control keeps what was ever put into it".to_owned();
        untouched.push(UntouchedFile { path: ".git".to_owned(), reason });
    }
    reach.untouched = untouched;
}

/// Names what is to be made again: what was changed, and what rests on that.
fn add_rebuilds(inventory: &Inventory, reach: &mut ForgetImpact) {
    let edited = reach.logs.iter().filter_map(|(name, _)| stem_of(name));
    for stem in edited {
        let day = Period::containing(Grain::Day, stem.date());
        let week = Period::containing(Grain::Week, stem.date());
        reach.to_rebuild.extend([(Tier::Extract, day), (Tier::Weekly, week)]);
    }
    let above: Vec<Period> = reach
        .to_rebuild
        .iter()
        .filter(|it| it.0 == Tier::Weekly)
        .filter_map(|(_, week)| week.parent())
        .collect();
    reach.to_rebuild.extend(above.iter().map(|&month| (Tier::Monthly, month)));
    let is_ours = |file: Option<&SummaryFile>| {
        file.is_some_and(|it| {
            it.header.as_ref().is_some_and(|it: &SummaryHeader| !it.engine.is_empty())
        })
    };
    // What was never folded is folded when it is due.
    reach.to_rebuild.retain(|(tier, period)| match tier {
        Tier::Weekly => is_ours(inventory.weekly.get(period)),
        Tier::Monthly => is_ours(inventory.monthly.get(period)),
        Tier::Extract | Tier::Wisdom => true,
    });
    let months: Vec<Period> =
        reach.to_rebuild.iter().filter(|it| it.0 == Tier::Monthly).map(|it| it.1).collect();
    reach.to_rebuild.extend(months.into_iter().map(|month| (Tier::Wisdom, month)));
}

fn stem_of(path: &str) -> Option<Stem> {
    path.rsplit('/').next()?.strip_suffix(".md")?.parse().ok()
}

/// Returns the name of the log or session record whose place a path is.
fn log_stem(layout: &Layout, path: &str) -> Option<Stem> {
    let kind = layout.kind_of(path);
    matches!(kind, Some(FileKind::Log | FileKind::Session)).then(|| stem_of(path)).flatten()
}
