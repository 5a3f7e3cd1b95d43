//! What pages need of all files of a folder at once: its health, its timeline, what waits for review, and what is due;
//! and the sanitized logs that they showed.
//!
//! To read it takes as long as `memoird status`, too long for each request at ten years of logs. So it is kept for as
//! long as nothing has changed: the hash of the stamps of all files, of the database, and of the settings is computed
//! for each request ([`settled_inputs`]), without reading a file. A plan also changes with the time, and says until
//! when it is valid.
//!
//! # Invariant
//!
//! A request gets what was read after the last change before it. While files change, nothing is kept.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, TimeDelta, Utc};

use super::pages::timeline::FolderTimeline;
use crate::{
    compaction::{undo::UndoPlan, up_to_date::settled_inputs},
    engine::configured,
    memory::{
        address::{SESSION_PREFIX, Stem},
        hash::ContentHash,
    },
    operations::{
        error::CommandResult,
        forecast::due_cost,
        review::queue::{self, ReviewEntry},
        status::health::FolderHealth,
        workspace::{Invocation, MemoryRoot},
    },
    parallel,
    privacy::SanitizedLog,
    recall::trace::TraceSources as _,
    store::fs::inventory::{Inventory, LogFile},
};

/// How long the cost of what is due is kept: prices and the measured length of tokens are in no file of the folder.
const COST_KEPT: TimeDelta = TimeDelta::minutes(1);

/// The state of a folder when it was last asked for.
#[derive(Default)]
pub(super) struct StateCache(Mutex<Option<(ContentHash, Arc<FolderState>)>>);

/// What was read of one state of a folder. Each part is read when it is first needed.
#[derive(Default)]
pub(super) struct FolderState {
    health: Part<FolderHealth>,
    timeline: Part<FolderTimeline>,
    review: Part<Vec<ReviewEntry>>,
    cost: Part<String>,
    citations: Part<RecordCitations>,
    undo: Mutex<Option<(i64, Arc<UndoPreview>)>>,
    logs: Mutex<KnownLogs>,
}

/// What undoing a run would do, and whether later runs are undone with it.
pub(super) struct UndoPreview {
    pub(super) plan: UndoPlan,
    pub(super) with_later: bool,
}

/// Sanitized logs that pages showed; `None` for one that does not exist.
#[derive(Default)]
struct KnownLogs {
    by_stem: BTreeMap<Stem, Option<Arc<SanitizedLog>>>,
    chars: usize,
}

/// How many logs are kept, and how many characters they may have: those that the entries of `WISDOM.md` cite, after ten
/// years some 230.
const LOGS_KEPT_MAX: usize = 1_024;
const LOG_CHARS_KEPT_MAX: usize = 8 << 20;

/// The logs that name each session record, by the name of the record.
type RecordCitations = BTreeMap<String, Vec<Stem>>;

/// A value, and until when it is valid. Requests for it wait for the first one.
struct Part<T>(Mutex<Option<(Arc<T>, DateTime<Utc>)>>);

impl StateCache {
    /// Returns what is known of the present state of a folder.
    pub(super) fn current(&self, root: &MemoryRoot) -> Arc<FolderState> {
        let engine = configured::engine_id(&root.settings.settings);
        // The page says what is wrong with a folder that cannot be listed.
        let inputs = settled_inputs(&root.vault, &root.settings, &engine).ok().flatten();
        let (state, is_known) = self.state_of(inputs);
        if is_known {
            tracing::debug!("{}: nothing has changed", root.settings.path.display());
        }
        state
    }

    /// Returns the state with these inputs, and whether it was known; without inputs a state that is not kept.
    fn state_of(&self, inputs: Option<ContentHash>) -> (Arc<FolderState>, bool) {
        let Some(inputs) = inputs else { return (Arc::default(), false) };
        let mut last = lock(&self.0);
        if let Some((known, state)) = &*last
            && *known == inputs
        {
            return (Arc::clone(state), true);
        }
        let state = Arc::default();
        *last = Some((inputs, Arc::clone(&state)));
        drop(last);
        (state, false)
    }
}

impl FolderState {
    /// Returns what is due, stuck, or wrong.
    pub(super) fn health(
        &self,
        call: &Invocation,
        root: &MemoryRoot,
    ) -> CommandResult<Arc<FolderHealth>> {
        self.health.get(call.now, || {
            let health = FolderHealth::read(call, &root.settings.path)?;
            let until = health.valid_until;
            Ok((health, until))
        })
    }

    /// Returns the files, and what became of each period.
    pub(super) fn timeline(
        &self,
        call: &Invocation,
        root: &MemoryRoot,
    ) -> CommandResult<Arc<FolderTimeline>> {
        self.timeline.get(call.now, || {
            let timeline = FolderTimeline::read(call, root)?;
            let until = timeline.valid_until;
            Ok((timeline, until))
        })
    }

    /// Returns what waits for a decision.
    pub(super) fn review(
        &self,
        call: &Invocation,
        root: &MemoryRoot,
    ) -> CommandResult<Arc<Vec<ReviewEntry>>> {
        let timeline = self.timeline(call, root)?;
        self.review.get(call.now, || {
            let queue = queue::queue_of(root, timeline.inventory(), false)?;
            Ok((queue::entries(&queue), DateTime::<Utc>::MAX_UTC))
        })
    }

    /// Returns a sanitized log, session record, or summary, in which a person may have written; `None` if there is none.
    pub(super) fn log(&self, root: &MemoryRoot, stem: &Stem) -> Option<Arc<SanitizedLog>> {
        if let Some(known) = lock(&self.logs).by_stem.get(stem) {
            return known.clone();
        }
        let log = root.log(stem).map(Arc::new);
        let chars = log.as_ref().map_or(0, |it| it.chars());
        let mut known = lock(&self.logs);
        if known.by_stem.len() >= LOGS_KEPT_MAX || known.chars + chars > LOG_CHARS_KEPT_MAX {
            *known = KnownLogs::default();
        }
        known.chars += chars;
        known.by_stem.insert(stem.clone(), log.clone());
        log
    }

    /// Returns what undoing a run would do: of ten years of files, this takes longer than a page may.
    pub(super) fn undo(
        &self,
        number: i64,
        read: impl FnOnce() -> CommandResult<UndoPreview>,
    ) -> CommandResult<Arc<UndoPreview>> {
        let mut known = lock(&self.undo);
        if let Some((_, preview)) = known.as_ref().filter(|it| it.0 == number) {
            return Ok(Arc::clone(preview));
        }
        let preview = Arc::new(read()?);
        *known = Some((number, Arc::clone(&preview)));
        drop(known);
        Ok(preview)
    }

    /// Says what the jobs that are due would cost.
    pub(super) fn due_cost(
        &self,
        call: &Invocation,
        root: &MemoryRoot,
    ) -> CommandResult<Arc<String>> {
        let timeline = self.timeline(call, root)?;
        self.cost.get(call.now, || {
            let (view, plan) = timeline.snapshot_and_plan();
            let until = timeline.valid_until.min(call.now + COST_KEPT);
            Ok((due_cost(call, root, view, plan)?, until))
        })
    }

    /// Returns the logs that name a session record, oldest first.
    pub(super) fn logs_naming(
        &self,
        call: &Invocation,
        root: &MemoryRoot,
        record: &Stem,
    ) -> CommandResult<Vec<Stem>> {
        let timeline = self.timeline(call, root)?;
        let citations = self.citations.get(call.now, || {
            let citations = record_citations(root, timeline.inventory());
            Ok((citations, DateTime::<Utc>::MAX_UTC))
        })?;
        Ok(citations.get(record.as_str()).cloned().unwrap_or_default())
    }
}

fn record_citations(root: &MemoryRoot, inventory: &Inventory) -> RecordCitations {
    let folders = root.vault.folder_cache();
    let logs: Vec<(&Stem, &LogFile)> = inventory.logs.iter().collect();
    let named = parallel::map(&logs, |(_, file)| {
        // Other pages say why a log cannot be read.
        let text = folders.read_text(&file.path).ok().flatten().unwrap_or_default();
        records_named_in(&text)
    });
    let mut citations = RecordCitations::new();
    for ((log, _), records) in logs.into_iter().zip(named) {
        for record in records {
            citations.entry(record).or_default().push(log.clone());
        }
    }
    citations
}

/// Returns the names of session records in a text.
fn records_named_in(text: &str) -> BTreeSet<String> {
    let names = text.match_indices(SESSION_PREFIX).filter_map(|(at, _)| {
        let rest = text.get(at..)?;
        let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && it != '-');
        rest.get(..end.unwrap_or(rest.len()))
    });
    names.map(|it| it.trim_end_matches('-').to_owned()).collect()
}

impl<T> Part<T> {
    /// Returns the value, and reads it unless one is known that is valid at `now`. A failure is not kept.
    fn get(
        &self,
        now: DateTime<Utc>,
        read: impl FnOnce() -> CommandResult<(T, DateTime<Utc>)>,
    ) -> CommandResult<Arc<T>> {
        let mut known = lock(&self.0);
        if let Some((value, until)) = &*known
            && now < *until
        {
            return Ok(Arc::clone(value));
        }
        let (value, until) = read()?;
        let value = Arc::new(value);
        *known = Some((Arc::clone(&value), until));
        drop(known);
        Ok(value)
    }
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::error::CommandError;

    #[test]
    fn a_state_is_kept_until_the_files_are_others() {
        let cache = StateCache::default();
        let state = |text: &str| cache.state_of(Some(ContentHash::of(text)));
        let (first, is_known) = state("one");
        assert!(!is_known);
        let (again, is_known) = state("one");
        assert!(is_known && Arc::ptr_eq(&first, &again));
        let (changed, is_known) = state("two");
        assert!(!is_known && !Arc::ptr_eq(&first, &changed));
        // While files change, nothing is kept, and nothing of before is given.
        let (unsettled, is_known) = cache.state_of(None);
        assert!(!is_known && !Arc::ptr_eq(&changed, &unsettled));
        assert!(Arc::ptr_eq(&changed, &state("two").0));
    }

    #[test]
    fn records_are_found_by_their_whole_names() {
        let text =
            "- Saved [CMEM-20260310-101500], see CMEM-20260310-101500-2.md, CMEM-1- and MEM-2";
        let names: Vec<String> = records_named_in(text).into_iter().collect();
        assert_eq!(names, ["CMEM-1", "CMEM-20260310-101500", "CMEM-20260310-101500-2"]);
    }

    #[test]
    fn a_part_is_read_once_while_it_is_valid() {
        let part = Part::default();
        let at = |minute: i64| DateTime::UNIX_EPOCH + TimeDelta::minutes(minute);
        let get = |minute: i64, value: &'static str| {
            *part.get(at(minute), || Ok((value, at(minute + 2)))).unwrap()
        };
        let failed = part.get(at(0), || Err(CommandError::usage("not now")));
        assert!(failed.is_err());
        assert_eq!(get(0, "first"), "first");
        assert_eq!(get(1, "second"), "first");
        assert_eq!(get(2, "third"), "third");
    }
}
