//! Forgetting: what derives from some lines is shown, and then taken out of every tier, out of the
//! history, and, where a person says so, out of the logs.
//!
//! - [`cut`]: which lines and items go, and the texts without them; pure.
//! - [`survey`]: what a wish reaches, as the files stand; changes nothing.
//! - [`Compactor::forget`]: carries a wish out, in this order:
//!
//! 1. The wish is written down in the private folder. From here on a crash only delays it: every pass
//!    begins by finishing it, and each step can be done twice.
//! 2. The lines are barred by their keyed hashes in `.decisions.jsonl`.
//! 3. Bullets, entries, and memories go, and `MEMORY.md` follows; the history does not keep what stood
//!    there.
//! 4. Where wanted, the lines leave the logs.
//! 5. Kept versions that hold the words, or that cite where a line ever stood, go; so do copies and
//!    old databases in the private folder, and names and reasons made of the words.
//! 6. The wish is replaced by a note, without words, of what is to be folded again; the database is
//!    written anew, so that nothing is left in its free pages.
//!
//! What stood on the lines is folded again by the next pass. Nothing of this can be undone.

pub mod cut;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use self::cut::{Cut, Gone, Needles, Wish};
use super::{
    Compactor, JobError, PassError,
    commit::{NewFile, Recorded, passed},
    plan::{Plan, WaitCause},
    records,
};
use crate::{
    memory::{
        address::Stem,
        decision::{Decision, Decisions, What},
        document::SummaryHeader,
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
            jobs::RunId,
        },
        lock::WriteLock,
        private,
        vault::{Vault, VaultError},
    },
};

/// More files than this of a person's are not looked through.
const FILES_MAX: usize = 20_000;
/// So few that a crash between their removal and its record looks like no mass disappearance.
const REMOVED_AT_ONCE: usize = 4;
/// How often it begins anew because a person wrote a file at the same moment.
const TRIES: usize = 5;

/// What a wish reaches, as the files stand.
#[derive(Debug, Default)]
pub struct Reach {
    /// The wish, with all that it was found to mean.
    pub wish: Wish,
    /// The lines of logs.
    pub lines: Vec<Gone>,
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
    files: Vec<NewFile>,
    /// Logs as they will stand, by the path that the lineage names them by.
    logs: Vec<(String, NewFile)>,
}

/// A file that holds the words and stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Untouched {
    /// Relative to the root.
    pub path: String,
    /// Why it is left alone, or what a person can do.
    pub reason: String,
}

/// What was done.
#[derive(Debug)]
pub struct Forgotten {
    /// What it was done to.
    pub reach: Reach,
    /// Whether the database was written anew; otherwise the next pass does it.
    pub vacuumed: bool,
}

/// What is under way, as the private folder keeps it.
#[derive(Debug, Serialize, Deserialize)]
enum Pending {
    /// The wish is to be carried out, and then this is left.
    Remove(Box<Wish>, Left),
    /// It was; this is left.
    Refold(Left),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Left {
    /// Tier and period.
    again: BTreeSet<(String, String)>,
    vacuum: bool,
}

/// Says what a wish reaches, and changes nothing.
///
/// # Errors
///
/// Returns an error when the folder or the database cannot be read.
pub fn survey(vault: &Vault, lineage: Option<&Lineage>, wish: &Wish) -> Result<Reach, PassError> {
    let (mut reach, inventory) = survey_files(vault, wish)?;
    if let Some(lineage) = lineage {
        find_versions(vault.layout(), lineage, &mut reach)?;
    }
    find_copies(vault, &mut reach);
    find_untouched(vault, &inventory, &mut reach);
    add_again(&inventory, &mut reach);
    Ok(reach)
}

fn survey_files(vault: &Vault, wish: &Wish) -> Result<(Reach, Inventory), PassError> {
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
        });
        reach.files.push(NewFile { path, text: None, standing: Some(standing) });
    }
    if let Some(text) = &inventory.index {
        let cut = needles.cut_index(&layout.index(), text, &left);
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
    fn add(&mut self, path: &str, cut: Cut, standing: String) {
        self.items.extend(cut.items);
        self.others.extend(cut.lines);
        let file = NewFile { path: path.to_owned(), text: cut.text, standing: Some(standing) };
        self.files.push(file);
    }

    /// Returns whether nothing is there that would go.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
            && self.items.is_empty()
            && self.memories.is_empty()
            && self.others.is_empty()
            && self.versions.is_empty()
            && self.copies.iter().all(|it| is_database(it))
    }
}

/// Finds the kept versions that must go, and where in their logs the lines ever stood.
fn find_versions(
    layout: &Layout,
    lineage: &Lineage,
    reach: &mut Reach,
) -> Result<(), LineageError> {
    let versions = lineage.versions()?;
    let mut texts: BTreeMap<_, String> = BTreeMap::new();
    let mut damaged = BTreeSet::new();
    for hash in versions.iter().filter_map(|it| it.hash) {
        if texts.contains_key(&hash) {
            continue;
        }
        match lineage.content(hash) {
            Ok(bytes) => {
                let bytes = bytes.unwrap_or_default();
                texts.insert(hash, String::from_utf8_lossy(&bytes).into_owned());
            }
            // What cannot be read may hold anything.
            Err(LineageError::Damaged { .. }) => drop(damaged.insert(hash)),
            Err(error) => return Err(error),
        }
    }
    let text_of = |row: &VersionRow| row.hash.and_then(|it| texts.get(&it));
    let wish = reach.wish.clone();
    let needles = Needles::of(&wish);
    let stems: BTreeSet<&str> =
        wish.found.now.stems().chain(wish.logs.keys().map(String::as_str)).collect();
    for row in &versions {
        let Some(stem) = log_at(layout, &row.path).filter(|it| stems.contains(it.as_str())) else {
            continue;
        };
        let Some(text) = text_of(row) else {
            // Bytes that were let go of no longer tell where the line stood.
            if matches!(row.cause, Cause::Pruned | Cause::Forgotten) || row.hash.is_some() {
                reach.wish.found.unknown.insert(stem.to_string());
            }
            continue;
        };
        if let Ok(log) = DailyLog::parse(stem, text.as_bytes()) {
            for (number, line, _) in log.lines() {
                if needles.takes_line(&log.stem, line) {
                    reach.wish.found.ever.add(log.stem.as_str(), number);
                }
            }
        }
    }
    let whole = |row: &VersionRow| {
        log_at(layout, &row.path).is_some_and(|it| wish.logs.contains_key(it.as_str()))
    };
    let mut gone = BTreeSet::new();
    // The name of a memory that went earlier stands in the index of its time: a second look finds it.
    for _ in 0..2 {
        let wish = reach.wish.clone();
        let needles = Needles::of(&wish);
        let goes: BTreeMap<_, bool> =
            texts.iter().map(|(&hash, text)| (hash, needles.purges(text))).collect();
        for row in &versions {
            let Some(hash) = row.hash else { continue };
            let named = wish.memories.contains(&row.path);
            if !(named || whole(row) || damaged.contains(&hash) || goes.get(&hash) == Some(&true)) {
                continue;
            }
            gone.insert(row.id);
            if layout.kind_of(&row.path) == Some(FileKind::Memory) {
                reach.wish.found.names.insert(row.path.clone());
            }
        }
    }
    reach.versions = gone.into_iter().collect();
    Ok(())
}

/// Finds the copies in the private folder that must go: those that hold the words, and databases
/// beside the one in use, whose pages cannot be looked through.
fn find_copies(vault: &Vault, reach: &mut Reach) {
    let layout = vault.layout();
    let wish = reach.wish.clone();
    let needles = Needles::of(&wish);
    let own = ["lineage.db", "lineage.db-wal", "lineage.db-shm", "daemon.lock", "pass.lock"];
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

impl Compactor<'_> {
    /// Forgets, for good. What stood on it is folded again by the next pass.
    ///
    /// # Errors
    ///
    /// Returns what stopped it. From the first step on the next pass goes on where it stopped.
    pub fn forget(&mut self, wish: &Wish) -> Result<Forgotten, PassError> {
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        self.refuse_if_missing(false)?;
        self.recover(now)?;
        self.finish_forgetting(now)?;
        let mut left = self.left()?;
        let reach = survey(self.vault, Some(self.lineage), wish)?;
        // Unless it is written down first, a crash could leave words that nobody knows of any more.
        left.again.extend(reach.again.iter().copied().map(named));
        self.note(&Pending::Remove(Box::new(reach.wish.clone()), left.clone()))?;
        passed("forget.noted")?;
        self.carry_out(reach, left, now)
    }

    /// Returns whether a wish is being carried out, or was cut off.
    pub(super) fn is_forgetting(&self) -> Result<bool, PassError> {
        Ok(matches!(self.pending()?, Some(Pending::Remove(..))))
    }

    /// Finishes what a crash cut off, and returns what is to be made again.
    pub(super) fn finish_forgetting(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<BTreeSet<(Tier, Period)>, PassError> {
        match self.pending()? {
            None => {
                // A wish that a crash kept from being noted was never begun.
                self.vault.remove_private(&self.vault.layout().forgetting())?;
                return Ok(BTreeSet::new());
            }
            Some(Pending::Remove(wish, left)) => {
                let reach = survey(self.vault, Some(self.lineage), &wish)?;
                self.carry_out(reach, left, now)?;
            }
            Some(Pending::Refold(left)) if left.vacuum => {
                self.vacuum(left)?;
            }
            Some(Pending::Refold(_)) => {}
        }
        Ok(self.left()?.periods())
    }

    /// Takes note of what is still to be made again after a pass.
    pub(super) fn end_forgetting(
        &mut self,
        again: &BTreeSet<(Tier, Period)>,
        plan: &Plan,
    ) -> Result<(), PassError> {
        let Some(Pending::Refold(left)) = self.pending()? else { return Ok(()) };
        let jobs = plan.jobs.iter().map(|it| (it.tier, it.period));
        let written =
            plan.waiting.iter().filter(|it| matches!(it.cause, WaitCause::StillWritten(_)));
        let open: BTreeSet<(Tier, Period)> = jobs
            .chain(plan.following.iter().copied())
            .chain(written.map(|it| (it.tier, it.period)))
            .collect();
        let again = again.intersection(&open).copied();
        self.keep_left(&Left { again: again.map(named).collect(), ..left })
    }

    fn carry_out(
        &mut self,
        first: Reach,
        mut left: Left,
        now: DateTime<Utc>,
    ) -> Result<Forgotten, PassError> {
        // A temporary file that was left holds the words, too; the copy that is kept of it goes below.
        self.vault.sweep(&self.write_lock()?)?;
        let mut run = None;
        let run = self.run(&mut run, "forget", now)?;
        let decisions = self.new_decisions()?;
        self.bar(&decisions, &first.wish, now)?;
        passed("forget.barred")?;
        let done = self.remove(run, &first)?;
        passed("forget.removed")?;
        {
            // Nobody adds to the history between what is found there and what goes.
            let lock = self.write_lock()?;
            let reach = survey(self.vault, Some(self.lineage), &done)?;
            // What was found before is known for certain; what is there now may be more.
            self.lineage.forget_versions(&reach.versions)?;
            passed("forget.history")?;
            self.forget_names(&lock, &decisions, &reach.wish.found.names)?;
            let wish = reach.wish.clone();
            let needles = Needles::of(&wish);
            self.lineage.forget_reasons(&|it| needles.holds(it))?;
            passed("forget.names")?;
            for copy in &reach.copies {
                self.vault.remove_private(copy)?;
                passed("forget.copy")?;
            }
            left.again.extend(reach.again.iter().copied().map(named));
        }
        left.again.extend(first.again.iter().copied().map(named));
        left.vacuum = true;
        self.keep_left(&left)?;
        passed("forget.left")?;
        let vacuumed = self.vacuum(left)?;
        self.end_run(run)?;
        Ok(Forgotten { reach: first, vacuumed })
    }

    /// Bars the lines, so that nothing is made of them again.
    fn bar(&self, decisions: &Decisions, wish: &Wish, now: DateTime<Utc>) -> Result<(), PassError> {
        let all = [(String::new(), &wish.lines)].into_iter();
        let scopes = all.chain(wish.logs.iter().map(|(log, lines)| (log.clone(), lines)));
        let scopes: Vec<_> = scopes.filter(|(_, lines)| !lines.is_empty()).collect();
        let mut made = Vec::new();
        for (log, lines) in scopes {
            let new = lines.iter().filter(|it| !decisions.is_forgotten(&log, it));
            let hashes: Vec<String> = new.filter_map(|it| decisions.line_hash(it)).collect();
            if !hashes.is_empty() {
                made.push(Decision { at: now, what: What::Forgotten, path: log, hashes });
            }
        }
        self.append_decisions(&made)
    }

    /// Takes items, memories, and lines out of the files, and returns the wish with all that it was
    /// found to mean.
    fn remove(&mut self, run: RunId, first: &Reach) -> Result<Wish, PassError> {
        let mut wish = first.wish.clone();
        for attempt in 1.. {
            let (reach, _) = survey_files(self.vault, &wish)?;
            wish = reach.wish.clone();
            let (gone, left): (Vec<_>, Vec<_>) =
                reach.files.into_iter().partition(|it| it.text.is_none());
            let written = self.write_anew(run, &left).and_then(|()| {
                self.remove_all(run, gone.into_iter().map(|it| (it.path.clone(), it)).collect())?;
                passed("forget.items")?;
                let (gone, left): (Vec<_>, Vec<_>) =
                    reach.logs.into_iter().partition(|(_, it)| it.text.is_none());
                let left: Vec<NewFile> = left.into_iter().map(|(_, it)| it).collect();
                self.write_anew(run, &left)?;
                self.remove_all(run, gone)
            });
            match written {
                Ok(()) => break,
                // A person was faster: what they wrote is looked through, too.
                Err(JobError::Vault(VaultError::Changed { .. })) if attempt < TRIES => {}
                Err(JobError::Vault(error)) => return Err(error.into()),
                Err(JobError::Critical(error)) => return Err(error),
                Err(error) => return Err(PassError::Forget(error.to_string())),
            }
        }
        Ok(wish)
    }

    /// Writes files anew; the history does not keep what they were. Where the lines of a log stand now
    /// is noticed by the next pass, which follows them.
    fn write_anew(&mut self, run: RunId, files: &[NewFile]) -> Result<(), JobError> {
        if files.is_empty() {
            return Ok(());
        }
        let layout = self.vault.layout();
        let documents = files
            .iter()
            .filter_map(|it| records::of_path(layout, &it.path, it.text.as_deref()?))
            .collect();
        let recorded = Recorded { documents, forgets: true, ..Recorded::default() };
        self.write(Some(run), None, files, &recorded)
    }

    /// Removes files, each with the path that the lineage names it by.
    fn remove_all(
        &mut self,
        run: RunId,
        mut files: Vec<(String, NewFile)>,
    ) -> Result<(), JobError> {
        while !files.is_empty() {
            let few = files.split_off(files.len().saturating_sub(REMOVED_AT_ONCE));
            let (removed, few): (Vec<String>, Vec<NewFile>) = few.into_iter().unzip();
            let recorded = Recorded { removed, forgets: true, ..Recorded::default() };
            self.write(Some(run), None, &few, &recorded)?;
        }
        Ok(())
    }

    /// Renames typed memories that are gone wherever they are named: their names are made of words.
    fn forget_names(
        &mut self,
        lock: &WriteLock,
        decisions: &Decisions,
        names: &BTreeSet<String>,
    ) -> Result<(), PassError> {
        let gone: BTreeSet<&str> =
            names.iter().map(String::as_str).filter(|it| !self.vault.is_taken(it)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        for path in &gone {
            let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
            let kind = name.split('_').next().unwrap_or_default();
            let mark = decisions.line_hash(path).unwrap_or_default();
            let slash = if dir.is_empty() { "" } else { "/" };
            self.lineage.forget_name(path, &format!("{dir}{slash}{kind}_forgotten-{mark}.md"))?;
        }
        let path = self.vault.layout().decisions();
        let Some(text) = self.vault.read_text(&path)? else { return Ok(()) };
        let names_one = |line: &str| {
            serde_json::from_str::<Decision>(line).is_ok_and(|it| gone.contains(&it.path[..]))
        };
        let kept: String = text.split_inclusive('\n').filter(|it| !names_one(it)).collect();
        // The copy first: what a crash leaves is finished by the next pass, which finds the names again.
        let layout = self.vault.layout();
        let held = private::decisions_copy(layout);
        if held.is_some_and(|it| !kept.as_bytes().starts_with(&it)) {
            let path = layout.private_dir();
            private::copy_decisions(layout, kept.as_bytes()).map_err(|source| VaultError::Io {
                action: "write",
                path,
                source,
            })?;
        }
        if kept != text {
            self.vault.replace_decisions(lock, &text, &kept)?;
        }
        Ok(())
    }

    fn vacuum(&mut self, mut left: Left) -> Result<bool, PassError> {
        match self.lineage.vacuum() {
            Ok(()) => {}
            // Somebody reads the database; the next pass tries again.
            Err(LineageError::Busy { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        passed("forget.vacuumed")?;
        left.vacuum = false;
        self.keep_left(&left)?;
        Ok(true)
    }

    fn pending(&self) -> Result<Option<Pending>, PassError> {
        let path = self.vault.layout().forgetting();
        let Some(text) = self.vault.read_text(&path)? else { return Ok(None) };
        let unreadable = || PassError::Forget(format!("`{path}` cannot be read"));
        serde_json::from_str(&text).map(Some).map_err(|_| unreadable())
    }

    fn left(&self) -> Result<Left, PassError> {
        match self.pending()? {
            Some(Pending::Refold(left)) => Ok(left),
            _ => Ok(Left::default()),
        }
    }

    fn keep_left(&self, left: &Left) -> Result<(), PassError> {
        if *left == Left::default() {
            return Ok(self.vault.remove_private(&self.vault.layout().forgetting())?);
        }
        self.note(&Pending::Refold(left.clone()))
    }

    fn note(&self, pending: &Pending) -> Result<(), PassError> {
        let text =
            serde_json::to_string(pending).map_err(|error| PassError::Forget(error.to_string()))?;
        Ok(self.vault.write_private(&self.vault.layout().forgetting(), &text)?)
    }
}

impl Left {
    fn periods(&self) -> BTreeSet<(Tier, Period)> {
        let parsed = |(tier, period): &(String, String)| {
            Some((Tier::from_name(tier)?, period.parse().ok()?))
        };
        self.again.iter().filter_map(parsed).collect()
    }
}

fn named((tier, period): (Tier, Period)) -> (String, String) {
    (tier.name().to_owned(), period.to_string())
}

fn stem_of(path: &str) -> Option<Stem> {
    path.rsplit('/').next()?.strip_suffix(".md")?.parse().ok()
}

/// Returns the name of the log or session record whose place a path is.
fn log_at(layout: &Layout, path: &str) -> Option<Stem> {
    let kind = layout.kind_of(path);
    matches!(kind, Some(FileKind::Log | FileKind::Session)).then(|| stem_of(path)).flatten()
}
