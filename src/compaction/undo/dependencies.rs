//! Which runs depend on which, and what a file contained before them: pure.
//!
//! The journal records the bytes before and after each write. If the bytes before a write are not
//! those after the previous one, or the file differs now, somebody else changed the file in
//! between; nothing is undone past that.
//!
//! Some writes are skipped because they are not work that could be undone: citations that followed
//! relocated lines, what was undone already, and undoing itself. What a repair restored is no write
//! at all, since the damage before it was nobody's change.

use std::collections::{BTreeMap, BTreeSet};

use super::error::UndoError;
use crate::compaction::context::{REPAIR_TRIGGER, REVIEW_TRIGGER, UNDO_TRIGGER};
use crate::{
    memory::hash::ContentHash,
    store::db::lineage::jobs::{JobId, RunId, RunRow},
};

/// Everything that runs did.
#[derive(Clone, Debug, Default)]
pub(super) struct RunHistory {
    /// The runs, by number.
    pub(super) runs: BTreeMap<RunId, RunRow>,
    /// Pairs of undoing and undone run.
    pub(super) undone: Vec<(RunId, RunId)>,
    /// Writes and removals, oldest first.
    pub(super) writes: Vec<RunWrite>,
    /// Per undoing run, the work that its receipts name.
    pub(super) jobs: BTreeMap<RunId, BTreeSet<ContentHash>>,
    /// Per run, the later ones that read what it wrote, each with the path.
    pub(super) readers: BTreeMap<RunId, Vec<(RunId, String)>>,
}

/// A write or removal of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunWrite {
    /// Relative to the root.
    pub(super) path: String,
    pub(super) run: Option<RunId>,
    pub(super) job: Option<JobId>,
    /// The content before; `None` if there was no file.
    pub(super) old: Option<ContentHash>,
    /// The content after; `None` if there is no file.
    pub(super) new: Option<ContentHash>,
    /// Whether it only relocated citations.
    pub(super) only_relocated: bool,
    /// Whether the file is the index, which is rendered after each run and so never creates a
    /// dependency.
    pub(super) is_index: bool,
}

/// How far a file can be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RestorePoint {
    /// The content before; `None` if there was no file.
    pub(super) content: Option<ContentHash>,
    /// The oldest run whose write is undone.
    pub(super) oldest_run: RunId,
    /// Whether a person's change stops it before everything is undone.
    pub(super) stopped_by_user: bool,
}

impl RunHistory {
    pub(super) fn run(&self, run: RunId) -> Result<RunRow, UndoError> {
        let unknown = || UndoError::UnknownRun { run, known: self.undoable_runs() };
        self.runs.get(&run).cloned().ok_or_else(unknown)
    }

    /// Returns the runs that are not undone, or were restored.
    pub(super) fn live_runs(&self) -> BTreeSet<RunId> {
        let mut live: BTreeSet<RunId> = self.runs.keys().copied().collect();
        // An undoing run is newer than the undone one, so each is judged after those that may undo
        // it.
        for run in self.runs.keys().rev() {
            if self.undone.iter().any(|(by, taken)| taken == run && live.contains(by)) {
                live.remove(run);
            }
        }
        live
    }

    /// Returns the runs that `run` undid.
    pub(super) fn undone_by(&self, run: RunId) -> impl Iterator<Item = RunId> + '_ {
        self.undone.iter().filter(move |it| it.0 == run).map(|it| it.1)
    }

    /// Returns the live run that undid `run`.
    pub(super) fn undoer_of(&self, run: RunId) -> Option<RunId> {
        let live = self.live_runs();
        self.undone.iter().rev().find(|it| it.1 == run && live.contains(&it.0)).map(|it| it.0)
    }

    /// Returns whether `run` was to undo others and was interrupted.
    pub(super) fn is_interrupted(&self, run: RunId) -> bool {
        self.runs.get(&run).is_some_and(|it| it.trigger == UNDO_TRIGGER)
            && self.undone_by(run).next().is_none()
    }

    /// Returns whether `run` repaired damage.
    pub(super) fn is_repair(&self, run: RunId) -> bool {
        self.runs.get(&run).is_some_and(|it| it.trigger == REPAIR_TRIGGER)
    }

    /// Drops the writes of repairs, as if their files had never been damaged.
    pub(super) fn drop_repairs(&mut self) {
        let mut writes = std::mem::take(&mut self.writes);
        let is_repair = |it: &RunWrite| it.run.is_some_and(|run| self.is_repair(run));
        writes.retain(|it| it.only_relocated || it.is_index || !is_repair(it));
        self.writes = writes;
    }

    /// Assigns the writes of an interrupted run to the one that continued it, so that both can be
    /// undone together: their receipts name the same work.
    pub(super) fn merge_interrupted(&mut self) {
        let cut_off: Vec<RunId> =
            self.runs.keys().copied().filter(|it| self.is_interrupted(*it)).collect();
        for run in cut_off {
            let Some(work) = self.jobs.get(&run) else { continue };
            let mut later = self.jobs.range(run..).filter(|it| !self.is_interrupted(*it.0));
            let heir = later.find(|it| !it.1.is_disjoint(work)).map(|it| *it.0);
            let Some(heir) = heir else { continue };
            for write in
                self.writes.iter_mut().filter(|it| it.run == Some(run) && !it.only_relocated)
            {
                write.run = Some(heir);
            }
        }
    }

    /// Returns the files of a run that can be restored.
    pub(super) fn files_of(&self, run: RunId) -> BTreeSet<&str> {
        if self.is_interrupted(run) {
            return BTreeSet::new();
        }
        let of_run = self.writes.iter().filter(|it| it.run == Some(run));
        of_run.filter(|it| !it.only_relocated && !it.is_index).map(|it| &it.path[..]).collect()
    }

    /// Returns the last run that only recorded what a person said in `review`.
    pub(super) fn last_review_run(&self) -> Option<RunId> {
        let mut reviews = self.live_runs();
        reviews.retain(|it| self.runs.get(it).is_some_and(|it| it.trigger == REVIEW_TRIGGER));
        reviews
            .into_iter()
            .rfind(|&it| self.files_of(it).is_empty() && self.undone_by(it).next().is_none())
    }

    /// Returns the runs that can be undone, oldest first.
    pub(super) fn undoable_runs(&self) -> Vec<RunId> {
        let mut live: Vec<RunId> = self.live_runs().into_iter().collect();
        live.retain(|&it| !self.files_of(it).is_empty());
        live
    }

    /// Returns `run` and all later runs that depend on it, directly or not, each with the files
    /// that cause it; oldest first.
    pub(super) fn with_dependents(&self, run: RunId) -> BTreeMap<RunId, BTreeSet<String>> {
        let mut found = BTreeMap::from([(run, BTreeSet::new())]);
        let mut open = vec![run];
        let live = self.live_runs();
        while let Some(run) = open.pop() {
            for (later, path) in self.dependents(run, &live) {
                let ties = found.entry(later).or_insert_with(|| {
                    open.push(later);
                    BTreeSet::new()
                });
                ties.insert(path);
            }
        }
        found
    }

    /// Returns the later live runs that wrote a file of this run again, or read one.
    fn dependents(&self, run: RunId, live: &BTreeSet<RunId>) -> BTreeSet<(RunId, String)> {
        let files = self.files_of(run);
        let mut found = BTreeSet::new();
        for &later in live.range(run..).filter(|it| **it != run) {
            for path in self.files_of(later).intersection(&files) {
                if !self.cancels(later, path, run) {
                    found.insert((later, (*path).to_owned()));
                }
            }
        }
        let read = self.readers.get(&run).into_iter().flatten();
        let read = read.filter(|it| live.contains(&it.0) && files.contains(&it.1[..]));
        found.extend(read.cloned());
        found
    }

    /// Returns whether `later` only undid what runs after `run` had done to a file.
    fn cancels(&self, later: RunId, path: &str, run: RunId) -> bool {
        let mut taken = self.undone_by(later).filter(|it| self.files_of(*it).contains(path));
        let first = taken.next();
        first.is_some_and(|it| it > run) && taken.all(|it| it > run)
    }

    /// Returns how far a file with the content `current` can be restored when these runs are
    /// undone; `None` if a person has changed it since the last of them.
    pub(super) fn restore_point(
        &self,
        path: &str,
        runs: &BTreeSet<RunId>,
        current: Option<ContentHash>,
    ) -> Option<RestorePoint> {
        let live = self.live_runs();
        let writes: Vec<&RunWrite> = self.writes.iter().filter(|it| it.path == path).collect();
        let is_taken =
            |it: &RunWrite| !it.only_relocated && it.run.is_some_and(|run| runs.contains(&run));
        let first = writes.iter().position(|it| is_taken(it))?;
        let mut back: Option<RestorePoint> = None;
        let mut stands = current;
        for write in writes[first..].iter().rev() {
            let passed_over = write.only_relocated
                || write.is_index
                || write.run.is_some_and(|it| {
                    self.is_interrupted(it)
                        || !live.contains(&it)
                        || self.undone_by(it).next().is_some()
                });
            if write.new != stands || !(is_taken(write) || passed_over) {
                return back.map(|it| RestorePoint { stopped_by_user: true, ..it });
            }
            stands = write.old;
            if let Some(run) = write.run.filter(|_| is_taken(write)) {
                back = Some(RestorePoint {
                    content: write.old,
                    oldest_run: run,
                    stopped_by_user: false,
                });
            }
        }
        back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a history from a short notation, one run per line: `compact W14:a W15:b` writes,
    /// `W14:-` removes, `~W14:c` relocates citations, `<1` undoes run 1, `^2:W14` reads W14 of run
    /// 2, `MEMORY:x` writes the index, `#a` names work in a receipt. `person W14:x` is a change by
    /// somebody else.
    fn history(lines: &[&str]) -> (RunHistory, BTreeMap<String, Option<ContentHash>>) {
        let mut history = RunHistory::default();
        let mut stands: BTreeMap<String, Option<ContentHash>> = BTreeMap::new();
        let mut number = 0;
        for line in lines {
            let mut words = line.split_whitespace();
            let trigger = words.next().unwrap();
            let person = trigger == "person";
            number += i64::from(!person);
            let id = RunId(number);
            if !person {
                let row = RunRow {
                    id,
                    trigger: trigger.to_owned(),
                    version: String::new(),
                    started: chrono::DateTime::UNIX_EPOCH,
                    ended: None,
                };
                history.runs.insert(id, row);
            }
            for word in words {
                if let Some(taken) = word.strip_prefix('<') {
                    history.undone.push((id, RunId(taken.parse().unwrap())));
                    continue;
                }
                if let Some(read) = word.strip_prefix('^') {
                    let (run, path) = read.split_once(':').unwrap();
                    let of = history.readers.entry(RunId(run.parse().unwrap())).or_default();
                    of.push((id, path.to_owned()));
                    continue;
                }
                if let Some(work) = word.strip_prefix('#') {
                    history.jobs.entry(id).or_default().insert(ContentHash::of(work));
                    continue;
                }
                let moved = word.starts_with('~');
                let (path, text) = word.trim_start_matches('~').split_once(':').unwrap();
                let new = (text != "-").then(|| ContentHash::of(text));
                let old = stands.insert(path.to_owned(), new).flatten();
                let (path, index) = (path.to_owned(), path == "MEMORY");
                if !person {
                    history.writes.push(RunWrite {
                        path,
                        run: Some(id),
                        job: None,
                        old,
                        new,
                        only_relocated: moved,
                        is_index: index,
                    });
                }
            }
        }
        history.drop_repairs();
        history.merge_interrupted();
        (history, stands)
    }

    /// `runs` are the numbers of the runs that must be undone with `run`.
    #[track_caller]
    fn check_later(lines: &[&str], run: i64, runs: &[i64]) {
        let found: Vec<i64> =
            history(lines).0.with_dependents(RunId(run)).keys().map(|it| it.0).collect();
        assert_eq!(found, runs);
    }

    /// `expected` is the content of W14 after it: `a`, `-`, or `kept`, with `…` if a person's
    /// change stops it.
    #[track_caller]
    fn check_back(lines: &[&str], runs: &[i64], expected: &str) {
        let (history, stands) = history(lines);
        let runs = runs.iter().map(|it| RunId(*it)).collect();
        let found = match history.restore_point("W14", &runs, stands["W14"]) {
            None => "kept".to_owned(),
            Some(back) => {
                let text = back.content.map_or("-", |hash| {
                    ["a", "b", "c", "x"].into_iter().find(|it| ContentHash::of(it) == hash).unwrap()
                });
                format!("{text}{}", if back.stopped_by_user { "…" } else { "" })
            }
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_run_that_wrote_or_read_a_file_again_depends_on_it() {
        check_later(&["compact W14:a", "compact W15:a"], 1, &[1]);
        check_later(&["compact W14:a", "compact W15:a", "compact W14:b"], 1, &[1, 3]);
        check_later(&["compact W14:a", "tick M:a ^1:W14", "tick WISDOM:a ^2:M"], 1, &[1, 2, 3]);
        check_later(&["compact W14:a", "tick M:a ^1:W14", "tick WISDOM:a ^2:M"], 3, &[3]);
        // Neither relocated citations nor the index create a dependency.
        check_later(&["compact W14:a MEMORY:a", "tick ~W14:b MEMORY:b"], 1, &[1]);
        check_later(&["compact W14:a ~M:a", "tick W15:a ^1:M"], 1, &[1]);
    }

    #[test]
    fn undone_runs_create_no_dependency() {
        let undone = ["compact W14:a", "compact W14:b", "undo W14:a <2"];
        check_later(&undone, 1, &[1]);
        check_back(&undone, &[1], "-");
        check_back(&undone, &[3], "b");
        let put_back = ["compact W14:a", "compact W14:b", "undo W14:a <2", "undo W14:b <3"];
        check_later(&put_back, 1, &[1, 2]);
        check_back(&put_back, &[1, 2], "-");
        check_back(&put_back, &[2], "a");
        assert_eq!(history(&put_back).0.undoable_runs(), [1, 2, 4].map(RunId));
        // A run that undid an older one changed the base of this one.
        check_later(&["compact W14:a", "undo W14:- <1", "compact W14:b"], 2, &[2, 3]);
    }

    #[test]
    fn a_run_is_live_unless_a_live_one_undid_it() {
        let live = |lines: &[&str]| -> Vec<i64> {
            history(lines).0.live_runs().into_iter().map(|it| it.0).collect()
        };
        assert_eq!(live(&["compact W14:a", "undo W14:- <1"]), [2]);
        assert_eq!(live(&["compact W14:a", "undo W14:- <1", "undo W14:a <2"]), [1, 3]);
        assert_eq!(
            history(&["compact W14:a", "undo W14:- <1"]).0.undoer_of(RunId(1)),
            Some(RunId(2))
        );
    }

    #[test]
    fn the_last_review_run_counts_until_it_is_undone() {
        let reviews = |lines: &[&str]| history(lines).0.last_review_run().map(|it| it.0);
        assert_eq!(reviews(&["compact W14:a", "review W14:b"]), None);
        assert_eq!(reviews(&["compact W14:a", "review"]), Some(2));
        assert_eq!(reviews(&["compact W14:a", "review", "compact W15:a"]), Some(2));
        assert_eq!(reviews(&["compact W14:a", "review", "review <2"]), None);
    }

    #[test]
    fn a_persons_change_stops_restoring() {
        check_back(&["compact W14:a", "person W14:x"], &[1], "kept");
        check_back(&["compact W14:a", "person W14:-"], &[1], "kept");
        check_back(&["person W14:x", "compact W14:a"], &[1], "x");
        check_back(&["compact W14:a", "person W14:x", "compact W14:b"], &[1, 2], "x…");
        check_back(&["compact W14:a", "compact W14:b"], &[1, 2], "-");
        // Even if only citations were relocated since.
        check_back(&["compact W14:a", "person W14:x", "tick ~W14:b"], &[1], "kept");
        check_back(&["compact W14:a", "tick ~W14:b"], &[1], "-");
        check_back(&["compact W14:a W14:b"], &[1], "-");
    }

    #[test]
    fn a_repaired_file_counts_as_never_damaged() {
        let repaired = ["compact W14:a", "compact W14:b", "repair W14:x W14:b"];
        assert_eq!(history(&repaired).0.undoable_runs(), [1, 2].map(RunId));
        check_later(&repaired, 2, &[2]);
        check_back(&repaired, &[2], "a");
        check_back(&repaired, &[1, 2], "-");
        // A repair that restored something else counts as somebody else's change.
        check_back(&["compact W14:a", "compact W14:b", "repair W14:a"], &[2], "kept");
        // A repair that was undone, as older versions allowed, can be restored.
        let harmed = ["compact W14:a", "repair W14:a", "undo W14:x <2"];
        check_back(&harmed, &[3], "a");
    }

    #[test]
    fn an_interrupted_undo_is_continued() {
        let cut_off = ["compact W14:a", "compact W14:b", "undo W14:a"];
        assert_eq!(history(&cut_off).0.undoable_runs(), [1, 2].map(RunId));
        check_later(&cut_off, 2, &[2]);
        check_back(&cut_off, &[2], "a");
        check_back(&["compact W14:a", "compact W14:b", "undo W14:a", "undo W14:a <2"], &[1], "-");
        // The run that continued it is undone with it.
        let taken_up = ["compact W14:a W15:a", "undo W14:- #w14 #w15", "undo W15:- <1 #w14 #w15"];
        check_back(&taken_up, &[3], "a");
        check_later(&taken_up, 3, &[3]);
    }
}
