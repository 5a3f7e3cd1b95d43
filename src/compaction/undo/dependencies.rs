//! Which runs rest on which, and what stood in a file before them: pure.
//!
//! All is told by the writes that the journal keeps: each names the bytes before and after it. Where
//! the bytes before a write are not those after the one that went before, or other bytes stand there
//! now, somebody else changed the file in between; nothing is taken back past that.
//!
//! Some writes are passed over, for they are no work that could be taken back: citations that
//! followed their lines, what was taken back already, and the taking back itself. What a repair put
//! back is no write at all: the harm in between was nobody's change.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    memory::hash::ContentHash,
    store::db::lineage::jobs::{JobId, RunId, RunRow},
};

/// What began a run that takes others back.
pub(super) const UNDO_TRIGGER: &str = "undo";

/// What began a run that put back what a disk or a slip had harmed. To take that back would do the
/// harm again.
pub(in crate::compaction) const REPAIR_TRIGGER: &str = "repair";

/// What began a run that did what a person said in `review`.
pub(in crate::compaction) const REVIEW_TRIGGER: &str = "review";

/// All that runs did.
#[derive(Clone, Debug, Default)]
pub(super) struct RunHistory {
    /// The runs, by number.
    pub(super) runs: BTreeMap<RunId, RunRow>,
    /// Who took back whom.
    pub(super) undone: Vec<(RunId, RunId)>,
    /// What was written and removed, the oldest first.
    pub(super) writes: Vec<RunWrite>,
    /// Per run that takes others back, the work that its receipts name.
    pub(super) jobs: BTreeMap<RunId, BTreeSet<ContentHash>>,
    /// Per run, the later ones that read what it wrote, each with the path.
    pub(super) readers: BTreeMap<RunId, Vec<(RunId, String)>>,
}

/// A file that was written or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunWrite {
    /// Relative to the root.
    pub(super) path: String,
    /// By whom.
    pub(super) run: Option<RunId>,
    /// For which job.
    pub(super) job: Option<JobId>,
    /// What stood there; `None` where nothing did.
    pub(super) old: Option<ContentHash>,
    /// What stood there then; `None` where nothing did.
    pub(super) new: Option<ContentHash>,
    /// Whether citations followed their lines, and nothing else was done.
    pub(super) only_relocated: bool,
    /// Whether the file is made of others by program after each run, so that it never holds one up.
    pub(super) is_index: bool,
}

/// How far back a file can be brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RestorePoint {
    /// What stood there before; `None` for no file.
    pub(super) content: Option<ContentHash>,
    /// The oldest run whose write is taken back.
    pub(super) oldest_run: RunId,
    /// Whether a person's change stops it before all is taken back.
    pub(super) stopped_by_user: bool,
}

impl RunHistory {
    /// Returns the runs that are not taken back, or were put back.
    pub(super) fn live_runs(&self) -> BTreeSet<RunId> {
        let mut live: BTreeSet<RunId> = self.runs.keys().copied().collect();
        // Who takes a run back is younger than it, so each is judged after those that may take it.
        for run in self.runs.keys().rev() {
            if self.undone.iter().any(|(by, taken)| taken == run && live.contains(by)) {
                live.remove(run);
            }
        }
        live
    }

    /// Returns the runs that a run took back.
    pub(super) fn undone_by(&self, run: RunId) -> impl Iterator<Item = RunId> + '_ {
        self.undone.iter().filter(move |it| it.0 == run).map(|it| it.1)
    }

    /// Returns the live run that took a run back.
    pub(super) fn undoer_of(&self, run: RunId) -> Option<RunId> {
        let live = self.live_runs();
        self.undone.iter().rev().find(|it| it.1 == run && live.contains(&it.0)).map(|it| it.0)
    }

    /// Returns whether a run was to take others back and was cut off before it had.
    pub(super) fn is_interrupted(&self, run: RunId) -> bool {
        self.runs.get(&run).is_some_and(|it| it.trigger == UNDO_TRIGGER)
            && self.undone_by(run).next().is_none()
    }

    /// Returns whether a run put back what had been harmed.
    pub(super) fn is_repair(&self, run: RunId) -> bool {
        self.runs.get(&run).is_some_and(|it| it.trigger == REPAIR_TRIGGER)
    }

    /// Drops what repairs wrote: a file stands after one as if it had never been harmed.
    pub(super) fn drop_repairs(&mut self) {
        let mut writes = std::mem::take(&mut self.writes);
        let is_repair = |it: &RunWrite| it.run.is_some_and(|run| self.is_repair(run));
        writes.retain(|it| it.only_relocated || it.is_index || !is_repair(it));
        self.writes = writes;
    }

    /// Gives the writes of what was cut off to the run that took it up again, so that it can be taken
    /// back whole: both name the same work.
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

    /// Returns the files that a run wrote and that can be taken back.
    pub(super) fn files_of(&self, run: RunId) -> BTreeSet<&str> {
        if self.is_interrupted(run) {
            return BTreeSet::new();
        }
        let of_run = self.writes.iter().filter(|it| it.run == Some(run));
        of_run.filter(|it| !it.only_relocated && !it.is_index).map(|it| &it.path[..]).collect()
    }

    /// Returns the last run that did no more than write down what a person said in `review`.
    pub(super) fn last_review_run(&self) -> Option<RunId> {
        let mut said = self.live_runs();
        said.retain(|it| self.runs.get(it).is_some_and(|it| it.trigger == REVIEW_TRIGGER));
        said.into_iter()
            .rfind(|&it| self.files_of(it).is_empty() && self.undone_by(it).next().is_none())
    }

    /// Returns the runs that can be taken back, the oldest first.
    pub(super) fn undoable_runs(&self) -> Vec<RunId> {
        let mut live: Vec<RunId> = self.live_runs().into_iter().collect();
        live.retain(|&it| !self.files_of(it).is_empty());
        live
    }

    /// Returns a run and all later ones that rest on it or on one of those, each with the files that
    /// tie it; the oldest first.
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

    /// Returns whether `later` only took back what younger runs than `run` had done to a file.
    fn cancels(&self, later: RunId, path: &str, run: RunId) -> bool {
        let mut taken = self.undone_by(later).filter(|it| self.files_of(*it).contains(path));
        let first = taken.next();
        first.is_some_and(|it| it > run) && taken.all(|it| it > run)
    }

    /// Says how far a file can be brought back when these runs are taken back and `standing` stands
    /// there now; `None` when a person has changed it since the last of them.
    pub(super) fn restore_point(
        &self,
        path: &str,
        runs: &BTreeSet<RunId>,
        standing: Option<ContentHash>,
    ) -> Option<RestorePoint> {
        let live = self.live_runs();
        let writes: Vec<&RunWrite> = self.writes.iter().filter(|it| it.path == path).collect();
        let is_taken =
            |it: &RunWrite| !it.only_relocated && it.run.is_some_and(|run| runs.contains(&run));
        let first = writes.iter().position(|it| is_taken(it))?;
        let mut back: Option<RestorePoint> = None;
        let mut stands = standing;
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

    /// A past in a few words, a run each: `compact W14:a W15:b` writes, `W14:-` removes, `~W14:c`
    /// follows lines that moved, `<1` takes run 1 back, `^2:W14` says that it read W14 of run 2, and
    /// `MEMORY:x` writes the index, `#a` names work in a receipt. `person W14:x` is a change of somebody else.
    fn past(lines: &[&str]) -> (RunHistory, BTreeMap<String, Option<ContentHash>>) {
        let mut past = RunHistory::default();
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
                past.runs.insert(id, row);
            }
            for word in words {
                if let Some(taken) = word.strip_prefix('<') {
                    past.undone.push((id, RunId(taken.parse().unwrap())));
                    continue;
                }
                if let Some(read) = word.strip_prefix('^') {
                    let (run, path) = read.split_once(':').unwrap();
                    let of = past.readers.entry(RunId(run.parse().unwrap())).or_default();
                    of.push((id, path.to_owned()));
                    continue;
                }
                if let Some(work) = word.strip_prefix('#') {
                    past.jobs.entry(id).or_default().insert(ContentHash::of(work));
                    continue;
                }
                let moved = word.starts_with('~');
                let (path, text) = word.trim_start_matches('~').split_once(':').unwrap();
                let new = (text != "-").then(|| ContentHash::of(text));
                let old = stands.insert(path.to_owned(), new).flatten();
                let (path, index) = (path.to_owned(), path == "MEMORY");
                if !person {
                    past.writes.push(RunWrite {
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
        past.drop_repairs();
        past.merge_interrupted();
        (past, stands)
    }

    /// `runs` are the numbers of what must be taken back for `run` to be.
    #[track_caller]
    fn check_later(lines: &[&str], run: i64, runs: &[i64]) {
        let found: Vec<i64> =
            past(lines).0.with_dependents(RunId(run)).keys().map(|it| it.0).collect();
        assert_eq!(found, runs);
    }

    /// `expected` is what stands in W14 then: `a`, `-`, or `kept`, with `…` where a person stops it.
    #[track_caller]
    fn check_back(lines: &[&str], runs: &[i64], expected: &str) {
        let (past, stands) = past(lines);
        let runs = runs.iter().map(|it| RunId(*it)).collect();
        let found = match past.restore_point("W14", &runs, stands["W14"]) {
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
    fn what_wrote_or_read_a_file_again_rests_on_the_run() {
        check_later(&["compact W14:a", "compact W15:a"], 1, &[1]);
        check_later(&["compact W14:a", "compact W15:a", "compact W14:b"], 1, &[1, 3]);
        check_later(&["compact W14:a", "tick M:a ^1:W14", "tick WISDOM:a ^2:M"], 1, &[1, 2, 3]);
        check_later(&["compact W14:a", "tick M:a ^1:W14", "tick WISDOM:a ^2:M"], 3, &[3]);
        // Neither what followed lines nor the index holds a run up.
        check_later(&["compact W14:a MEMORY:a", "tick ~W14:b MEMORY:b"], 1, &[1]);
        check_later(&["compact W14:a ~M:a", "tick W15:a ^1:M"], 1, &[1]);
    }

    #[test]
    fn what_was_taken_back_holds_nothing_up() {
        let undone = ["compact W14:a", "compact W14:b", "undo W14:a <2"];
        check_later(&undone, 1, &[1]);
        check_back(&undone, &[1], "-");
        check_back(&undone, &[3], "b");
        let put_back = ["compact W14:a", "compact W14:b", "undo W14:a <2", "undo W14:b <3"];
        check_later(&put_back, 1, &[1, 2]);
        check_back(&put_back, &[1, 2], "-");
        check_back(&put_back, &[2], "a");
        assert_eq!(past(&put_back).0.undoable_runs(), [1, 2, 4].map(RunId));
        // A run that took back an older one has changed what stands under this one.
        check_later(&["compact W14:a", "undo W14:- <1", "compact W14:b"], 2, &[2, 3]);
    }

    #[test]
    fn a_run_is_live_unless_a_live_one_took_it_back() {
        let live = |lines: &[&str]| -> Vec<i64> {
            past(lines).0.live_runs().into_iter().map(|it| it.0).collect()
        };
        assert_eq!(live(&["compact W14:a", "undo W14:- <1"]), [2]);
        assert_eq!(live(&["compact W14:a", "undo W14:- <1", "undo W14:a <2"]), [1, 3]);
        assert_eq!(past(&["compact W14:a", "undo W14:- <1"]).0.undoer_of(RunId(1)), Some(RunId(2)));
    }

    #[test]
    fn what_was_said_is_known_until_it_is_taken_back() {
        let said = |lines: &[&str]| past(lines).0.last_review_run().map(|it| it.0);
        assert_eq!(said(&["compact W14:a", "review W14:b"]), None);
        assert_eq!(said(&["compact W14:a", "review"]), Some(2));
        assert_eq!(said(&["compact W14:a", "review", "compact W15:a"]), Some(2));
        assert_eq!(said(&["compact W14:a", "review", "review <2"]), None);
    }

    #[test]
    fn a_persons_change_stops_it() {
        check_back(&["compact W14:a", "person W14:x"], &[1], "kept");
        check_back(&["compact W14:a", "person W14:-"], &[1], "kept");
        check_back(&["person W14:x", "compact W14:a"], &[1], "x");
        check_back(&["compact W14:a", "person W14:x", "compact W14:b"], &[1, 2], "x…");
        check_back(&["compact W14:a", "compact W14:b"], &[1, 2], "-");
        // Also where only citations followed their lines since.
        check_back(&["compact W14:a", "person W14:x", "tick ~W14:b"], &[1], "kept");
        check_back(&["compact W14:a", "tick ~W14:b"], &[1], "-");
        check_back(&["compact W14:a W14:b"], &[1], "-");
    }

    #[test]
    fn what_a_repair_put_back_stands_as_if_nothing_had_harmed_it() {
        let repaired = ["compact W14:a", "compact W14:b", "repair W14:x W14:b"];
        assert_eq!(past(&repaired).0.undoable_runs(), [1, 2].map(RunId));
        check_later(&repaired, 2, &[2]);
        check_back(&repaired, &[2], "a");
        check_back(&repaired, &[1, 2], "-");
        // What it did not bring back as it was is somebody else's.
        check_back(&["compact W14:a", "compact W14:b", "repair W14:a"], &[2], "kept");
        // One that was taken back before this was known can be put back.
        let harmed = ["compact W14:a", "repair W14:a", "undo W14:x <2"];
        check_back(&harmed, &[3], "a");
    }

    #[test]
    fn what_was_cut_off_is_taken_up_again() {
        let cut_off = ["compact W14:a", "compact W14:b", "undo W14:a"];
        assert_eq!(past(&cut_off).0.undoable_runs(), [1, 2].map(RunId));
        check_later(&cut_off, 2, &[2]);
        check_back(&cut_off, &[2], "a");
        check_back(&["compact W14:a", "compact W14:b", "undo W14:a", "undo W14:a <2"], &[1], "-");
        // What took it up again is taken back with it.
        let taken_up = ["compact W14:a W15:a", "undo W14:- #w14 #w15", "undo W15:- <1 #w14 #w15"];
        check_back(&taken_up, &[3], "a");
        check_later(&taken_up, 3, &[3]);
    }
}
