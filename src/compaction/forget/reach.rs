//! What a wish reaches, as the files, the history, and the private folder stand. Changes nothing.
//!
//! Lines first, then what cites them, then what says the same: each find adds to the wish what only
//! the files told, so that a second attempt after a crash knows it too.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use serde::Serialize;

use super::cut::{self, Cut, Gone, Needles, Wish};
use crate::{
    compaction::{PassError, commit::NewFile},
    memory::{
        address::Stem,
        document::SummaryHeader,
        hash::ContentHash,
        item::Tier,
        log::DailyLog,
        period::{Grain, Period},
    },
    store::{
        inventory::{Inventory, SummaryFile},
        layout::{FileKind, Layout},
        lineage::{
            Lineage, LineageError,
            history::{Cause, VersionId, VersionRow},
        },
        vault::{Vault, VaultError},
    },
};

/// More files than this of a person's are not looked through.
const FILES_MAX: usize = 20_000;

/// What a wish reaches, as the files stand.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// The wish, with all that it was found to mean.
    pub wish: Wish,
    /// The lines of logs.
    pub lines: Vec<Gone>,
    /// Lines of logs that are no longer there, as the history holds them.
    pub vanished: Vec<Gone>,
    /// Bullets and entries, tier by tier.
    pub items: Vec<Gone>,
    /// Typed memories: whole files.
    pub memories: Vec<Gone>,
    /// Other lines of generated files, which people wrote.
    pub others: Vec<Gone>,
    /// Kept versions of files.
    pub versions: Vec<VersionId>,
    /// Files in the private folder.
    pub copies: Vec<String>,
    /// Files that hold the words and will not be touched.
    pub untouched: Vec<Untouched>,
    /// What is to be made again, if it is not due anyway.
    pub again: BTreeSet<(Tier, Period)>,
    /// Generated files as they will stand.
    pub(super) files: Vec<NewFile>,
    /// Logs as they will stand, by the path that the lineage names them by.
    pub(super) logs: Vec<(String, NewFile)>,
}

/// A file that holds the words and stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Untouched {
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
pub fn survey(vault: &Vault, lineage: Option<&Lineage>, wish: &Wish) -> Result<Reach, PassError> {
    let mut wish = wish.clone();
    let vanished =
        lineage.map_or_else(|| Ok(Vec::new()), |it| find_vanished(vault, it, &mut wish))?;
    let (mut reach, inventory) = survey_files(vault, &wish)?;
    reach.vanished = vanished;
    if let Some(lineage) = lineage {
        find_versions(vault.layout(), lineage, &mut reach)?;
    }
    find_copies(vault, &mut reach);
    find_untouched(vault, &inventory, &mut reach);
    add_again(&inventory, &mut reach);
    Ok(reach)
}

/// Says what a wish reaches in the files alone.
pub(super) fn survey_files(vault: &Vault, wish: &Wish) -> Result<(Reach, Inventory), PassError> {
    let inventory = vault.scan(&HashMap::new())?.inventory;
    let mut reach = Reach { wish: wish.clone(), ..Reach::default() };
    let sources = logs(vault, &inventory)?;
    find_lines(&sources, &mut reach);
    let wish = reach.wish.clone();
    find_logs(&sources, &Needles::of(&wish), &mut reach);
    find_summaries(vault, &inventory, &mut reach)?;
    let wish = reach.wish.clone();
    let needles = Needles::of(&wish);
    find_lasting(vault, &inventory, &needles, &mut reach)?;
    for gone in reach.items.iter().chain(&reach.memories) {
        reach.wish.found.texts.insert(cut::folded(&gone.text));
    }
    Ok((reach, inventory))
}

/// A log or a session record.
struct Source {
    log: DailyLog,
    /// Where it stands.
    path: String,
    /// What the lineage calls it.
    name: String,
}

fn logs(vault: &Vault, inventory: &Inventory) -> Result<Vec<Source>, VaultError> {
    let layout = vault.layout();
    let sessions = vault.files_below(&layout.sessions_dir(), FILES_MAX).0;
    let sessions = sessions.into_iter().filter(|it| layout.kind_of(it) == Some(FileKind::Session));
    let sessions = sessions.filter_map(|path| Some((stem_of(&path)?, path)));
    // What came late to an archived day stands beside it until a pass joins the two.
    let logs = inventory
        .logs
        .iter()
        .chain(&inventory.late)
        .map(|(stem, file)| (stem.clone(), file.path.clone()));
    let mut found = Vec::new();
    for (stem, path) in logs.chain(sessions) {
        let Some(file) = vault.read(&path)? else { continue };
        // One that is not UTF-8 is reported by the scan.
        let Ok(log) = DailyLog::parse(stem, &file.bytes) else { continue };
        found.push(Source { name: layout.source(&log.stem), log, path });
    }
    Ok(found)
}

/// Returns the names of the logs and session records that are no longer there, each with the path
/// that the history knows it by.
///
/// # Errors
///
/// Returns why the database could not be read.
pub fn vanished(vault: &Vault, lineage: &Lineage) -> Result<Vec<(Stem, String)>, LineageError> {
    let latest = lineage.latest_versions()?.into_iter();
    let logs = latest.filter_map(|it| Some((log_at(vault.layout(), &it.path)?, it.path)));
    Ok(logs.filter(|(stem, _)| !vault.is_taken(&vault.log_path(stem))).collect())
}

/// Returns the newest bytes that are kept of a file.
///
/// # Errors
///
/// Returns why the database could not be read.
pub fn last_kept(lineage: &Lineage, path: &str) -> Result<Option<Vec<u8>>, LineageError> {
    let hash = lineage.versions_of(path)?.into_iter().rev().find_map(|it| it.hash);
    let bytes = hash.map(|it| content(lineage, it)).transpose()?;
    Ok(bytes.and_then(Content::known))
}

/// Finds the lines of logs that are no longer there: what was made of them still stands, and cites
/// them as they stood last.
fn find_vanished(
    vault: &Vault,
    lineage: &Lineage,
    wish: &mut Wish,
) -> Result<Vec<Gone>, LineageError> {
    let asked = wish.clone();
    let needles = Needles::of(&asked);
    let mut found = Vec::new();
    for (stem, path) in vanished(vault, lineage)? {
        let Some(bytes) = last_kept(lineage, &path)? else { continue };
        let Ok(log) = DailyLog::parse(stem, &bytes) else { continue };
        if asked.logs.contains_key(log.stem.as_str()) {
            wish.found.logs.insert(log.stem.to_string());
        }
        for (number, text, _) in log.lines() {
            if !needles.takes_line(&log.stem, text) {
                continue;
            }
            if needles.has_words(text) {
                wish.lines.insert(text.trim().to_owned());
            }
            wish.found.now.add(log.stem.as_str(), number);
            found.push(Gone {
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
fn find_lines(sources: &[Source], reach: &mut Reach) {
    let wish = reach.wish.clone();
    let needles = Needles::of(&wish);
    for Source { log, path, .. } in sources {
        for (number, text, _) in log.lines() {
            if !needles.takes_line(&log.stem, text) {
                continue;
            }
            if needles.has_words(text) {
                reach.wish.lines.insert(text.trim().to_owned());
            }
            reach.wish.found.now.add(log.stem.as_str(), number);
            reach.lines.push(Gone {
                path: path.clone(),
                line: number,
                text: text.trim().to_owned(),
                by_person: false,
                whole: Some(Arc::clone(log.raw())),
            });
        }
    }
    let now = reach.wish.found.now.clone();
    reach.wish.found.ever.merge(&now);
}

/// Finds the logs as they will stand without the lines.
fn find_logs(sources: &[Source], needles: &Needles<'_>, reach: &mut Reach) {
    if !reach.wish.from_log {
        return;
    }
    for Source { log, path, name } in sources {
        let Some(Cut { text, .. }) = needles.cut_log(path, log) else { continue };
        let standing = Some(log.raw().to_string());
        if text.is_none() {
            reach.wish.found.logs.insert(log.stem.to_string());
        }
        reach.logs.push((name.clone(), NewFile { path: path.clone(), text, standing }));
    }
}

/// Finds weekly and then monthly files: a month may cite what a person wrote in a week.
fn find_summaries(
    vault: &Vault,
    inventory: &Inventory,
    reach: &mut Reach,
) -> Result<(), PassError> {
    for tier in [&inventory.weekly, &inventory.monthly] {
        let wish = reach.wish.clone();
        let needles = Needles::of(&wish);
        for (&period, SummaryFile { path, .. }) in tier {
            let Some(text) = vault.read_text(path)? else { continue };
            // A file whose frontmatter cannot be read is reported by the scan.
            let Ok(Some(cut)) = needles.cut_summary(path, period, &text) else { continue };
            let found = &mut reach.wish.found;
            for gone in &cut.items {
                found.now.add(&period.to_string(), gone.line);
                found.ever.add(&period.to_string(), gone.line);
                if gone.by_person {
                    found.unknown.insert(period.to_string());
                }
            }
            reach.again.insert((Tier::of_period(period), period));
            reach.add(path, cut, text);
        }
    }
    Ok(())
}

/// Finds typed memories, their index, and `WISDOM.md`.
fn find_lasting(
    vault: &Vault,
    inventory: &Inventory,
    needles: &Needles<'_>,
    reach: &mut Reach,
) -> Result<(), PassError> {
    let layout = vault.layout();
    let mut left = Vec::new();
    for memory in &inventory.memories {
        let name = memory.file_name.to_string_lossy();
        let path = layout.typed(&name);
        if !needles.takes_memory(&path, memory) {
            left.push(memory.clone());
            continue;
        }
        let Some(standing) = vault.read_text(&path)? else { continue };
        let found = &mut reach.wish.found;
        found.names.insert(path.clone());
        found.texts.extend([&memory.name, &memory.description].map(|it| cut::folded(it)));
        for (at, _) in &memory.sources {
            let day = Period::containing(Grain::Day, at.stem.date());
            reach.again.insert((Tier::Extract, day));
        }
        reach.memories.push(Gone {
            path: path.clone(),
            line: 1,
            text: memory.body.trim().to_owned(),
            by_person: !memory.is_ours(),
            whole: None,
        });
        reach.files.push(NewFile { path, text: None, standing: Some(standing) });
    }
    if let Some(text) = &inventory.index {
        let cut = needles.cut_index(&layout.index(), text, &left, &inventory.rules);
        // Without a memory to go, what differs is the next pass's business.
        if let Some(cut) = cut.filter(|it| !reach.memories.is_empty() || !it.lines.is_empty()) {
            reach.add(&layout.index(), cut, text.clone());
        }
    }
    if let Some(text) = &inventory.wisdom
        && let Some(cut) = needles.cut_wisdom(&layout.wisdom(), text)
    {
        reach.add(&layout.wisdom(), cut, text.clone());
    }
    Ok(())
}

impl Reach {
    fn add(&mut self, path: &str, mut cut: Cut, standing: String) {
        let whole: Arc<str> = standing.as_str().into();
        cut.lines.iter_mut().for_each(|it| it.whole = Some(Arc::clone(&whole)));
        self.items.extend(cut.items);
        self.others.extend(cut.lines);
        let file = NewFile { path: path.to_owned(), text: cut.text, standing: Some(standing) };
        self.files.push(file);
    }

    /// Returns whether nothing is there that would go.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
            && self.vanished.is_empty()
            && self.items.is_empty()
            && self.memories.is_empty()
            && self.others.is_empty()
            && self.versions.is_empty()
            && self.copies.iter().all(|it| is_database(it))
    }
}

/// Bytes of the history.
enum Content {
    /// They are kept.
    Kept(Vec<u8>),
    /// They were lost.
    Lost,
    /// What is kept is not what they were, and may hold anything.
    Damaged,
}

impl Content {
    fn known(self) -> Option<Vec<u8>> {
        match self {
            Self::Kept(bytes) => Some(bytes),
            Self::Lost | Self::Damaged => None,
        }
    }
}

fn content(lineage: &Lineage, hash: ContentHash) -> Result<Content, LineageError> {
    match lineage.content(hash) {
        Ok(bytes) => Ok(bytes.map_or(Content::Lost, Content::Kept)),
        Err(LineageError::Damaged { .. }) => Ok(Content::Damaged),
        Err(error) => Err(error),
    }
}

/// Finds the kept versions that must go, and where in their logs the lines ever stood. Bytes are
/// unpacked one after the other: a history of years does not fit into memory.
fn find_versions(
    layout: &Layout,
    lineage: &Lineage,
    reach: &mut Reach,
) -> Result<(), LineageError> {
    let versions = lineage.versions()?;
    find_places(layout, lineage, &versions, reach)?;
    let mut gone = BTreeSet::new();
    // The name of a memory that went earlier stands in the index of its time: a second look finds it.
    for _ in 0..2 {
        let wish = reach.wish.clone();
        let needles = Needles::of(&wish);
        let mut goes: BTreeMap<ContentHash, bool> = BTreeMap::new();
        for row in &versions {
            let Some(hash) = row.hash else { continue };
            let named = wish.memories.contains(&row.path);
            let whole =
                log_at(layout, &row.path).is_some_and(|it| wish.logs.contains_key(it.as_str()));
            if !named && !whole {
                let known = goes.get(&hash).copied();
                let goes_now = known.map_or_else(|| purges(lineage, hash, &needles), Ok)?;
                goes.insert(hash, goes_now);
                if !goes_now {
                    continue;
                }
            }
            gone.insert(row.id);
            if layout.kind_of(&row.path) == Some(FileKind::Memory) {
                reach.wish.found.names.insert(row.path.clone());
            }
        }
        if reach.wish.found == wish.found {
            break;
        }
    }
    reach.versions = gone.into_iter().collect();
    Ok(())
}

/// Takes down where in any version of their logs the lines stood.
fn find_places(
    layout: &Layout,
    lineage: &Lineage,
    versions: &[VersionRow],
    reach: &mut Reach,
) -> Result<(), LineageError> {
    let wish = reach.wish.clone();
    let needles = Needles::of(&wish);
    let stems: BTreeSet<&str> =
        wish.found.now.stems().chain(wish.logs.keys().map(String::as_str)).collect();
    for row in versions {
        let Some(stem) = log_at(layout, &row.path).filter(|it| stems.contains(it.as_str())) else {
            continue;
        };
        let bytes = row.hash.map(|it| content(lineage, it)).transpose()?;
        let is_gone = matches!(row.cause, Cause::Pruned | Cause::Forgotten) || bytes.is_some();
        let Some(bytes) = bytes.and_then(Content::known) else {
            // Bytes that are no longer there do not tell where the line stood.
            if is_gone {
                reach.wish.found.unknown.insert(stem.to_string());
            }
            continue;
        };
        if let Ok(log) = DailyLog::parse(stem, &bytes) {
            for (number, line, _) in log.lines() {
                if needles.takes_line(&log.stem, line) {
                    reach.wish.found.ever.add(log.stem.as_str(), number);
                }
            }
        }
    }
    Ok(())
}

/// Returns whether bytes of the history must not be kept.
fn purges(
    lineage: &Lineage,
    hash: ContentHash,
    needles: &Needles<'_>,
) -> Result<bool, LineageError> {
    Ok(match content(lineage, hash)? {
        Content::Kept(bytes) => needles.purges(&String::from_utf8_lossy(&bytes)),
        Content::Lost => false,
        Content::Damaged => true,
    })
}

/// Finds the copies in the private folder that must go: those that hold the words, and databases
/// beside the one in use, whose pages cannot be looked through.
fn find_copies(vault: &Vault, reach: &mut Reach) {
    let layout = vault.layout();
    let wish = reach.wish.clone();
    let needles = Needles::of(&wish);
    let own = [
        "lineage.db",
        "lineage.db-wal",
        "lineage.db-shm",
        "daemon.lock",
        "pass.lock",
        "search.db",
        "vectors.db",
    ];
    let folder = crate::store::layout::PRIVATE_DIR;
    for path in vault.files_below(folder, usize::MAX).0 {
        let name = path.strip_prefix(folder).map_or(&path[..], |it| it.trim_start_matches('/'));
        if own.contains(&name) || path == layout.forgetting() {
            continue;
        }
        let goes = is_database(&path) || {
            match vault.read(&path) {
                Ok(Some(found)) => needles.purges(&String::from_utf8_lossy(&found.bytes)),
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
fn find_untouched(vault: &Vault, inventory: &Inventory, reach: &mut Reach) {
    let layout = vault.layout();
    let wish = reach.wish.clone();
    let needles = Needles::of(&wish);
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
        if !needles.holds(&String::from_utf8_lossy(&found.bytes)) {
            continue;
        }
        let reason = match kind {
            Some(FileKind::Memory) => {
                format!("yours: `memoird forget {path}` removes it, if you want that")
            }
            _ => "none of memoird's files: it holds the words and stays as it is".to_owned(),
        };
        untouched.push(Untouched { path, reason });
    }
    if more {
        let reason = format!("more than {FILES_MAX} files: not all of them were looked through");
        untouched.push(Untouched { path: ".".to_owned(), reason });
    }
    if vault.is_taken(".git") {
        let reason = "version control keeps what was ever put into it".to_owned();
        untouched.push(Untouched { path: ".git".to_owned(), reason });
    }
    reach.untouched = untouched;
}

/// Names what is to be made again: what was changed, and what rests on that.
fn add_again(inventory: &Inventory, reach: &mut Reach) {
    let edited = reach.logs.iter().filter_map(|(name, _)| stem_of(name));
    for stem in edited {
        let day = Period::containing(Grain::Day, stem.date());
        let week = Period::containing(Grain::Week, stem.date());
        reach.again.extend([(Tier::Extract, day), (Tier::Weekly, week)]);
    }
    let above: Vec<Period> = reach
        .again
        .iter()
        .filter(|it| it.0 == Tier::Weekly)
        .filter_map(|(_, week)| week.parent())
        .collect();
    reach.again.extend(above.iter().map(|&month| (Tier::Monthly, month)));
    let is_ours = |file: Option<&SummaryFile>| {
        file.is_some_and(|it| {
            it.header.as_ref().is_some_and(|it: &SummaryHeader| !it.engine.is_empty())
        })
    };
    // What was never folded is folded when it is due.
    reach.again.retain(|(tier, period)| match tier {
        Tier::Weekly => is_ours(inventory.weekly.get(period)),
        Tier::Monthly => is_ours(inventory.monthly.get(period)),
        Tier::Extract | Tier::Wisdom => true,
    });
    let months: Vec<Period> =
        reach.again.iter().filter(|it| it.0 == Tier::Monthly).map(|it| it.1).collect();
    reach.again.extend(months.into_iter().map(|month| (Tier::Wisdom, month)));
}

fn stem_of(path: &str) -> Option<Stem> {
    path.rsplit('/').next()?.strip_suffix(".md")?.parse().ok()
}

/// Returns the name of the log or session record whose place a path is.
fn log_at(layout: &Layout, path: &str) -> Option<Stem> {
    let kind = layout.kind_of(path);
    matches!(kind, Some(FileKind::Log | FileKind::Session)).then(|| stem_of(path)).flatten()
}
