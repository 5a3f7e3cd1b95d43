//! The impact of a request: everything in the files, the history, and the private folder that it
//! affects. Changes nothing.
//!
//! The search finds the lines first, then what cites them, then what says the same. Each step adds
//! to the request what only the files reveal, so that a second attempt after a crash finds it too.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use serde::Serialize;

use super::{
    removal::{RemovalResult, RemovedText},
    request::ForgetRequest,
    targets::ForgetPatterns,
};
use crate::compaction::{error::CompactionError, journal::commit::FileWrite};
use crate::{
    memory::{
        address::Stem,
        bare_words,
        document::SummaryHeader,
        hash::ContentHash,
        index,
        item::Tier,
        log::DailyLog,
        period::{Grain, Period},
        wisdom_block::{self, BlockState},
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

/// The most files of a person that are searched.
const FILES_MAX: usize = 20_000;

/// Everything that a request affects.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForgetImpact {
    /// The request, with all that it was resolved to.
    pub request: ForgetRequest,
    pub lines: Vec<RemovedText>,
    /// Lines of vanished logs, from the history.
    pub vanished_lines: Vec<RemovedText>,
    /// Bullets and entries, tier by tier.
    pub items: Vec<RemovedText>,
    /// Typed memories: whole files.
    pub memories: Vec<RemovedText>,
    /// Other lines of generated files, written by people.
    pub user_lines: Vec<RemovedText>,
    pub versions: Vec<VersionId>,
    /// Files in the private folder.
    pub copies: Vec<String>,
    /// Files that contain the words and stay as they are.
    pub untouched: Vec<UntouchedFile>,
    /// Files to write again, unless they are due anyway.
    pub to_rebuild: BTreeSet<(Tier, Period)>,
    /// Generated files with their new text.
    pub(super) files: Vec<FileWrite>,
    /// Logs with their new text, by their path in the lineage.
    pub(super) logs: Vec<(String, FileWrite)>,
}

/// A file that contains the words and stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct UntouchedFile {
    /// Relative to the root.
    pub path: String,
    /// Why it is left alone, or what a person can do.
    pub reason: String,
}

/// Finds everything that a request affects. Changes nothing.
pub(crate) fn find_impact(
    vault: &Vault,
    lineage: Option<&Lineage>,
    request: &ForgetRequest,
) -> Result<ForgetImpact, CompactionError> {
    let mut request = request.clone();
    let vanished = lineage
        .map_or_else(|| Ok(Vec::new()), |it| find_vanished_lines(vault, it, &mut request))?;
    let (mut impact, inventory) = find_impact_in_files(vault, &request)?;
    impact.vanished_lines = vanished;
    if let Some(lineage) = lineage {
        find_versions(vault.layout(), lineage, &mut impact)?;
    }
    find_copies(vault, &mut impact);
    find_untouched(vault, &inventory, &mut impact);
    add_rebuilds(&inventory, &mut impact);
    Ok(impact)
}

/// Finds what a request affects in the files alone.
pub(super) fn find_impact_in_files(
    vault: &Vault,
    request: &ForgetRequest,
) -> Result<(ForgetImpact, Inventory), CompactionError> {
    let inventory = vault.scan(&HashMap::new())?.inventory;
    let mut impact = ForgetImpact { request: request.clone(), ..ForgetImpact::default() };
    let sources = read_logs(vault, &inventory)?;
    find_lines(&sources, &mut impact);
    let request = impact.request.clone();
    find_logs(&sources, &ForgetPatterns::new(&request), &mut impact);
    find_summaries(vault, &inventory, &mut impact)?;
    let request = impact.request.clone();
    let patterns = ForgetPatterns::new(&request);
    find_memories_and_wisdom(vault, &inventory, &patterns, &mut impact)?;
    for gone in impact.items.iter().chain(&impact.memories) {
        impact.request.found.texts.insert(bare_words::normalized(&gone.text));
    }
    Ok((impact, inventory))
}

/// A log or a session record.
struct ScannedLog {
    log: DailyLog,
    /// Its current path.
    path: String,
    /// Its path in the lineage.
    name: String,
}

fn read_logs(vault: &Vault, inventory: &Inventory) -> Result<Vec<ScannedLog>, VaultError> {
    let layout = vault.layout();
    let sessions = vault.files_below(&layout.sessions_dir(), FILES_MAX).0;
    let sessions = sessions.into_iter().filter(|it| layout.kind_of(it) == Some(FileKind::Session));
    let sessions = sessions.filter_map(|path| Some((stem_of(&path)?, path)));
    // A late log of an archived day lies beside the archived one until a run joins the two.
    let logs = inventory
        .logs
        .iter()
        .chain(&inventory.late_logs)
        .map(|(stem, file)| (stem.clone(), file.path.clone()));
    let mut found = Vec::new();
    for (stem, path) in logs.chain(sessions) {
        let Some(file) = vault.read(&path)? else { continue };
        // The scan reports logs that are not UTF-8.
        let Ok(log) = DailyLog::parse(stem, &file.bytes) else { continue };
        found.push(ScannedLog { name: layout.source_path(&log.stem), log, path });
    }
    Ok(found)
}

/// Returns the stems of vanished logs and session records, each with its path in the history.
pub(crate) fn vanished_logs(
    vault: &Vault,
    lineage: &Lineage,
) -> Result<Vec<(Stem, String)>, LineageError> {
    let latest = lineage.latest_versions()?.into_iter();
    let logs = latest.filter_map(|it| Some((log_stem(vault.layout(), &it.path)?, it.path)));
    Ok(logs.filter(|(stem, _)| !vault.exists(&vault.log_path(stem))).collect())
}

/// Returns the newest bytes of a file in the history.
pub(crate) fn last_kept_bytes(
    lineage: &Lineage,
    path: &str,
) -> Result<Option<Vec<u8>>, LineageError> {
    let hash = lineage.versions_of(path)?.into_iter().rev().find_map(|it| it.hash);
    let bytes = hash.map(|it| version_content(lineage, it)).transpose()?;
    Ok(bytes.and_then(VersionContent::into_bytes))
}

/// Finds the lines of vanished logs. Files derived from them remain and cite their last line
/// numbers.
fn find_vanished_lines(
    vault: &Vault,
    lineage: &Lineage,
    request: &mut ForgetRequest,
) -> Result<Vec<RemovedText>, LineageError> {
    let asked = request.clone();
    let patterns = ForgetPatterns::new(&asked);
    let mut found = Vec::new();
    for (stem, path) in vanished_logs(vault, lineage)? {
        let Some(bytes) = last_kept_bytes(lineage, &path)? else { continue };
        let Ok(log) = DailyLog::parse(stem, &bytes) else { continue };
        if asked.logs.contains_key(log.stem.as_str()) {
            request.found.logs.insert(log.stem.to_string());
        }
        for (number, text, _) in log.lines() {
            if !patterns.matches_line(&log.stem, text) {
                continue;
            }
            if patterns.holds_requested_words(text) {
                request.lines.insert(text.trim().to_owned());
            }
            request.found.add_line(&log.stem, number, text);
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

/// Finds the lines and adds their words and addresses to the request.
fn find_lines(sources: &[ScannedLog], impact: &mut ForgetImpact) {
    let request = impact.request.clone();
    let patterns = ForgetPatterns::new(&request);
    for ScannedLog { log, path, .. } in sources {
        for (number, text, _) in log.lines() {
            if !patterns.matches_line(&log.stem, text) {
                continue;
            }
            if patterns.holds_requested_words(text) {
                impact.request.lines.insert(text.trim().to_owned());
            }
            if patterns.repeats_in_record(&log.stem, text) {
                impact.request.found.record_lines.insert(text.trim().to_owned());
            }
            impact.request.found.add_line(&log.stem, number, text);
            impact.lines.push(RemovedText {
                path: path.clone(),
                line: number,
                text: text.trim().to_owned(),
                by_person: false,
                whole: Some(Arc::clone(log.raw())),
            });
        }
    }
    let now = impact.request.found.now.clone();
    impact.request.found.ever.merge(&now);
}

/// Finds the logs to rewrite without the lines.
fn find_logs(sources: &[ScannedLog], patterns: &ForgetPatterns<'_>, impact: &mut ForgetImpact) {
    if !impact.request.from_log {
        return;
    }
    for ScannedLog { log, path, name } in sources {
        let Some(RemovalResult { text, .. }) = patterns.remove_from_log(path, log) else {
            continue;
        };
        let current = Some(log.raw().to_string());
        if text.is_none() {
            impact.request.found.logs.insert(log.stem.to_string());
        }
        impact.logs.push((name.clone(), FileWrite { path: path.clone(), text, current }));
    }
}

/// Finds weekly, then monthly files, since a month may cite what a person wrote in a week.
fn find_summaries(
    vault: &Vault,
    inventory: &Inventory,
    impact: &mut ForgetImpact,
) -> Result<(), CompactionError> {
    for tier in [&inventory.weekly, &inventory.monthly] {
        let request = impact.request.clone();
        let patterns = ForgetPatterns::new(&request);
        for (&period, SummaryFile { path, .. }) in tier {
            let Some(text) = vault.read_text(path)? else { continue };
            // The scan reports files whose frontmatter cannot be parsed.
            let Ok(Some(cut)) = patterns.remove_from_summary(path, period, &text) else { continue };
            let found = &mut impact.request.found;
            for gone in &cut.items {
                found.now.add(&period.to_string(), gone.line);
                found.ever.add(&period.to_string(), gone.line);
                if gone.by_person {
                    found.unknown.insert(period.to_string());
                }
            }
            impact.to_rebuild.insert((Tier::of_period(period), period));
            impact.add(path, cut, text);
        }
    }
    Ok(())
}

/// Finds typed memories, their index, and `WISDOM.md`.
fn find_memories_and_wisdom(
    vault: &Vault,
    inventory: &Inventory,
    patterns: &ForgetPatterns<'_>,
    impact: &mut ForgetImpact,
) -> Result<(), CompactionError> {
    let layout = vault.layout();
    let mut left = Vec::new();
    let mut any_topic = false;
    for memory in &inventory.memories {
        let name = memory.file_name.to_string_lossy();
        let path = layout.typed_memory(&name);
        if memory.is_about_topic() && !patterns.names_file(&path) {
            let Some(current) = vault.read_text(&path)? else { continue };
            match patterns.remove_from_topic(&path, memory, &current) {
                Some((cut, remaining)) => {
                    if remaining.is_none() {
                        impact.request.found.names.insert(path.clone());
                    }
                    let texts = [&memory.name, &memory.description];
                    let gone = texts.into_iter().filter(|it| patterns.holds_target_words(it));
                    let gone: Vec<String> = gone.map(|it| bare_words::normalized(it)).collect();
                    impact.request.found.texts.extend(gone);
                    any_topic = true;
                    left.extend(remaining);
                    impact.add(&path, cut, current);
                }
                None => left.push(memory.clone()),
            }
            continue;
        }
        if !patterns.matches_memory(&path, memory) {
            left.push(memory.clone());
            continue;
        }
        let Some(current) = vault.read_text(&path)? else { continue };
        let found = &mut impact.request.found;
        found.names.insert(path.clone());
        found
            .texts
            .extend([&memory.name, &memory.description].map(|it| bare_words::normalized(it)));
        for (at, _) in &memory.sources {
            let day = Period::containing(Grain::Day, at.stem.date());
            impact.to_rebuild.insert((Tier::Extract, day));
        }
        impact.memories.push(RemovedText {
            path: path.clone(),
            line: 1,
            text: memory.body.trim().to_owned(),
            by_person: !memory.is_managed(),
            whole: None,
        });
        impact.files.push(FileWrite { path, text: None, current: Some(current) });
    }
    if let Some(text) = &inventory.index {
        let cut = patterns.remove_from_index(&layout.index(), text, &left, &inventory.rules);
        // If no memory is removed, other differences are for the next run.
        let is_changed = any_topic || !impact.memories.is_empty();
        if let Some(cut) = cut.filter(|it| is_changed || !it.lines.is_empty()) {
            impact.add(&layout.index(), cut, text.clone());
        }
    }
    if let Some(text) = &inventory.wisdom
        && let Some(cut) = patterns.remove_from_wisdom(&layout.wisdom(), text)
    {
        impact.add(&layout.wisdom(), cut, text.clone());
    }
    Ok(())
}

impl ForgetImpact {
    fn add(&mut self, path: &str, mut cut: RemovalResult, current: String) {
        let whole: Arc<str> = current.as_str().into();
        cut.lines.iter_mut().for_each(|it| it.whole = Some(Arc::clone(&whole)));
        self.items.extend(cut.items);
        self.user_lines.extend(cut.lines);
        let file = FileWrite { path: path.to_owned(), text: cut.text, current: Some(current) };
        self.files.push(file);
    }

    /// Returns whether nothing would be removed.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
            && self.vanished_lines.is_empty()
            && self.items.is_empty()
            && self.memories.is_empty()
            && self.user_lines.is_empty()
            && self.versions.is_empty()
            && self.copies.iter().all(|it| is_database(it))
    }
}

/// Content of the history.
enum VersionContent {
    Kept(Vec<u8>),
    Lost,
    /// The stored bytes differ from the original and may contain anything.
    Damaged,
}

impl VersionContent {
    fn into_bytes(self) -> Option<Vec<u8>> {
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

/// Finds the versions to purge, and all former addresses of the lines.
///
/// Content is unpacked one version at a time, since a history of years does not fit into memory.
fn find_versions(
    layout: &Layout,
    lineage: &Lineage,
    impact: &mut ForgetImpact,
) -> Result<(), LineageError> {
    let versions = lineage.versions()?;
    find_past_lines(layout, lineage, &versions, impact)?;
    let mut gone = BTreeSet::new();
    // The index of its time names a memory that was removed earlier: the second round finds it.
    for _ in 0..2 {
        let request = impact.request.clone();
        let patterns = ForgetPatterns::new(&request);
        let mut goes: BTreeMap<ContentHash, bool> = BTreeMap::new();
        for row in &versions {
            let Some(hash) = row.hash else { continue };
            let named = request.memories.contains(&row.path);
            let whole = log_stem(layout, &row.path)
                .is_some_and(|it| request.logs.contains_key(it.as_str()));
            if !named && !whole {
                let decided = goes.get(&hash).copied();
                let goes_now = decided.map_or_else(|| must_purge(lineage, hash, &patterns), Ok)?;
                goes.insert(hash, goes_now);
                if !goes_now {
                    continue;
                }
            }
            gone.insert(row.id);
            if layout.kind_of(&row.path) == Some(FileKind::Memory) {
                impact.request.found.names.insert(row.path.clone());
            }
        }
        if impact.request.found == request.found {
            break;
        }
    }
    impact.versions = gone.into_iter().collect();
    Ok(())
}

/// Finds the addresses of the lines in every version of their logs.
fn find_past_lines(
    layout: &Layout,
    lineage: &Lineage,
    versions: &[VersionRow],
    impact: &mut ForgetImpact,
) -> Result<(), LineageError> {
    let request = impact.request.clone();
    let patterns = ForgetPatterns::new(&request);
    let stems: BTreeSet<&str> =
        request.found.now.stems().chain(request.logs.keys().map(String::as_str)).collect();
    for row in versions {
        let Some(stem) = log_stem(layout, &row.path).filter(|it| stems.contains(it.as_str()))
        else {
            continue;
        };
        let bytes = row.hash.map(|it| version_content(lineage, it)).transpose()?;
        let is_gone =
            matches!(row.cause, VersionCause::Pruned | VersionCause::Forgotten) || bytes.is_some();
        let Some(bytes) = bytes.and_then(VersionContent::into_bytes) else {
            // Purged bytes do not tell where the line was.
            if is_gone {
                impact.request.found.unknown.insert(stem.to_string());
            }
            continue;
        };
        if let Ok(log) = DailyLog::parse(stem, &bytes) {
            for (number, line, _) in log.lines() {
                if patterns.matches_line(&log.stem, line) {
                    impact.request.found.ever.add(log.stem.as_str(), number);
                }
            }
        }
    }
    Ok(())
}

/// Returns whether content of the history must be purged.
fn must_purge(
    lineage: &Lineage,
    hash: ContentHash,
    patterns: &ForgetPatterns<'_>,
) -> Result<bool, LineageError> {
    Ok(match version_content(lineage, hash)? {
        VersionContent::Kept(bytes) => patterns.must_purge(&String::from_utf8_lossy(&bytes)),
        VersionContent::Lost => false,
        VersionContent::Damaged => true,
    })
}

/// Finds the files in the private folder to remove: those that contain the words, and databases
/// other than the current one, which cannot be searched.
fn find_copies(vault: &Vault, impact: &mut ForgetImpact) {
    let layout = vault.layout();
    let request = impact.request.clone();
    let patterns = ForgetPatterns::new(&request);
    let own = [
        "lineage.db",
        "lineage.db-wal",
        "lineage.db-shm",
        "daemon.lock",
        "pass.lock",
        "stores.lock",
        "search.db",
        "vectors.db",
    ];
    let folder = crate::store::fs::layout::PRIVATE_DIR;
    for path in vault.files_below(folder, usize::MAX).0 {
        let name = path.strip_prefix(folder).map_or(&path[..], |it| it.trim_start_matches('/'));
        // Only names of files are in the state of a bundle, which the next push writes again.
        let is_bundle = name.starts_with("bundle-");
        if own.contains(&name) || is_bundle || path == layout.forget_state() {
            continue;
        }
        let goes = is_database(&path) || {
            match vault.read(&path) {
                Ok(Some(found)) => patterns.must_purge(&String::from_utf8_lossy(&found.bytes)),
                _ => false,
            }
        };
        if goes {
            impact.copies.push(path);
        }
    }
}

fn is_database(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("lineage.db")
}

/// Finds the files that contain the words but are not ours to change.
fn find_untouched(vault: &Vault, inventory: &Inventory, impact: &mut ForgetImpact) {
    let layout = vault.layout();
    let request = impact.request.clone();
    let patterns = ForgetPatterns::new(&request);
    let changed: BTreeSet<&str> = impact
        .files
        .iter()
        .chain(impact.logs.iter().map(|(_, it)| it))
        .map(|it| &it.path[..])
        .collect();
    let logs: BTreeSet<&str> = inventory.logs.values().map(|it| &it.path[..]).collect();
    let (files, more) = vault.files_below("", FILES_MAX);
    let mut untouched = Vec::new();
    for path in files {
        let kind = layout.kind_of(&path);
        let is_log = logs.contains(&path[..]) || kind == Some(FileKind::Session);
        let ours =
            path == layout.decisions() || path == layout.index() || layout.is_hidden_file(&path);
        if changed.contains(&path[..]) || is_log || ours {
            continue;
        }
        let Ok(Some(found)) = vault.read(&path) else { continue };
        let text = String::from_utf8_lossy(&found.bytes);
        // Our block follows `WISDOM.md`.
        let is_own_text = layout.wisdom_block() == Some(&path[..])
            && matches!(wisdom_block::find(&text), BlockState::Present(it) if it.is_ours());
        let text = if is_own_text { index::own_text(&text).into() } else { text };
        if !patterns.holds_target_words(&text) {
            continue;
        }
        let reason = match kind {
            Some(FileKind::Memory) => {
                format!("yours; to remove it: `memoird forget {path}`")
            }
            _ => "not a file of memoird; it contains the words and stays as it is".to_owned(),
        };
        untouched.push(UntouchedFile { path, reason });
    }
    if more {
        let reason = format!("more than {FILES_MAX} files: not all of them were searched");
        untouched.push(UntouchedFile { path: ".".to_owned(), reason });
    }
    if vault.exists(".git") {
        let reason = "version control keeps everything that was ever committed".to_owned();
        untouched.push(UntouchedFile { path: ".git".to_owned(), reason });
    }
    impact.untouched = untouched;
}

/// Adds the files to write again: those that change, and those derived from them.
fn add_rebuilds(inventory: &Inventory, impact: &mut ForgetImpact) {
    let edited = impact.logs.iter().filter_map(|(name, _)| stem_of(name));
    for stem in edited {
        let day = Period::containing(Grain::Day, stem.date());
        let week = Period::containing(Grain::Week, stem.date());
        impact.to_rebuild.extend([(Tier::Extract, day), (Tier::Weekly, week)]);
    }
    let above: Vec<Period> = impact
        .to_rebuild
        .iter()
        .filter(|it| it.0 == Tier::Weekly)
        .filter_map(|(_, week)| week.parent())
        .collect();
    impact.to_rebuild.extend(above.iter().map(|&month| (Tier::Monthly, month)));
    let is_ours = |file: Option<&SummaryFile>| {
        file.is_some_and(|it| {
            it.header.as_ref().is_some_and(|it: &SummaryHeader| !it.engine.is_empty())
        })
    };
    // What was never summarized is summarized when it is due.
    impact.to_rebuild.retain(|(tier, period)| match tier {
        Tier::Weekly => is_ours(inventory.weekly.get(period)),
        Tier::Monthly => is_ours(inventory.monthly.get(period)),
        Tier::Extract | Tier::Wisdom => true,
    });
    let months: Vec<Period> =
        impact.to_rebuild.iter().filter(|it| it.0 == Tier::Monthly).map(|it| it.1).collect();
    impact.to_rebuild.extend(months.into_iter().map(|month| (Tier::Wisdom, month)));
}

fn stem_of(path: &str) -> Option<Stem> {
    path.rsplit('/').next()?.strip_suffix(".md")?.parse().ok()
}

/// Returns the stem of the log or session record at a path.
fn log_stem(layout: &Layout, path: &str) -> Option<Stem> {
    let kind = layout.kind_of(path);
    matches!(kind, Some(FileKind::Log | FileKind::Session)).then(|| stem_of(path)).flatten()
}
