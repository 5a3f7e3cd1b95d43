//! Passes at work: how many at once, and whose turn is next.
//!
//! Each runs on a thread of its own. Those that ask a model mostly wait for it, so they have a bound
//! of their own, and hold up no root that works offline. Every root has its turn, however often
//! another one is written to.

use std::{
    collections::BTreeMap,
    future::pending,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    task::{Id, JoinError, JoinSet},
    time::{Instant, timeout},
};

use super::{
    pass::{Done, Order, Pulse},
    root::{Open, Served, Want},
};
use crate::compaction::PassError;

/// So many passes that work offline are made at once: each drafts on all processors, and holds the
/// logs that it reads.
const OFFLINE_MAX: usize = 2;
/// So many that ask a model.
const MODEL_MAX: usize = 2;
/// A pass that begins or ends no job for so long gets nowhere, and the watchdog may end us.
const HANG: Duration = Duration::from_secs(45 * 60);

/// How a pass ended.
pub(super) type Ended = Result<Result<Done, PassError>, JoinError>;

/// All passes at work.
#[derive(Default)]
pub(super) struct Passes {
    tasks: JoinSet<Result<Done, PassError>>,
    at_work: BTreeMap<PathBuf, Running>,
    /// The root whose turn was last.
    last: Option<PathBuf>,
}

/// A pass at work.
struct Running {
    task: Id,
    want: Want,
    asks_model: bool,
    pulse: Pulse,
    /// The pulse at the last look, and since when it stands still.
    still: (u64, Instant),
}

impl Passes {
    /// Returns the root whose turn it is among those that are ready and for which there is room.
    pub(super) fn next(&self, roots: &BTreeMap<PathBuf, Served>) -> Option<PathBuf> {
        let room = [false, true].map(|it| self.has_room(it));
        let ready = |(path, root): &(&PathBuf, &Served)| {
            let asks_model = root.open().is_some_and(Open::asks_model);
            root.is_ready() && room[usize::from(asks_model)] && !self.at_work.contains_key(*path)
        };
        if !room.contains(&true) {
            return None;
        }
        let after = self.last.as_ref().map(|last| {
            use std::ops::Bound::{Excluded, Unbounded};
            roots.range::<Path, _>((Excluded(last.as_path()), Unbounded))
        });
        let next = after.and_then(|mut it| it.find(ready)).or_else(|| roots.iter().find(ready));
        next.map(|(path, _)| path.clone())
    }

    /// Takes note that a root had its turn, whatever came of it.
    pub(super) fn had_turn(&mut self, root: &Path) {
        self.last = Some(root.to_owned());
    }

    fn has_room(&self, asks_model: bool) -> bool {
        let most = if asks_model { MODEL_MAX } else { OFFLINE_MAX };
        self.at_work.values().filter(|it| it.asks_model == asks_model).count() < most
    }

    /// Begins a pass.
    pub(super) fn begin(&mut self, root: PathBuf, want: Want, order: Order) {
        let pulse = order.pulse.clone();
        let asks_model = order.engine.is_model();
        let task = self.tasks.spawn_blocking(|| order.run()).id();
        let still = (pulse.beats(), Instant::now());
        self.at_work.insert(root, Running { task, want, asks_model, pulse, still });
    }

    /// Returns the roots that are passed over right now.
    pub(super) fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        self.at_work.keys()
    }

    /// Returns whether a root is passed over right now.
    pub(super) fn holds(&self, root: &Path) -> bool {
        self.at_work.contains_key(root)
    }

    /// Asks the pass over a root to stop.
    pub(super) fn stop(&self, root: &Path) {
        if let Some(running) = self.at_work.get(root) {
            running.pulse.stop();
        }
    }

    /// Waits for the next pass that ends; for ever when none is at work.
    pub(super) async fn ended(&mut self) -> (PathBuf, Want, Box<Ended>) {
        loop {
            let (task, ended) = match self.tasks.join_next_with_id().await {
                None => return pending().await,
                Some(Ok((task, done))) => (task, Ok(done)),
                Some(Err(error)) => (error.id(), Err(error)),
            };
            let root = self.at_work.iter().find(|(_, it)| it.task == task);
            if let Some(root) = root.map(|it| it.0.clone())
                && let Some(running) = self.at_work.remove(&root)
            {
                return (root, running.want, Box::new(ended));
            }
        }
    }

    /// Returns a root whose pass gets nowhere.
    pub(super) fn hanging(&mut self) -> Option<&Path> {
        for running in self.at_work.values_mut() {
            let beats = running.pulse.beats();
            if beats != running.still.0 {
                running.still = (beats, Instant::now());
            }
        }
        let hangs = |it: &&Running| it.still.1.elapsed() >= HANG;
        self.at_work.iter().find(|(_, it)| hangs(it)).map(|(root, _)| {
            let minutes = HANG.as_secs() / 60;
            tracing::error!("{}: no job ended for {minutes} minutes", root.display());
            root.as_path()
        })
    }

    /// Asks all to stop, and waits for the jobs at hand.
    pub(super) async fn end(&mut self, patience: Duration) -> Vec<(PathBuf, Want, Box<Ended>)> {
        self.at_work.values().for_each(|it| it.pulse.stop());
        let mut ended = Vec::new();
        let all = async {
            while !self.at_work.is_empty() {
                ended.push(self.ended().await);
            }
        };
        let is_late = timeout(patience, all).await.is_err();
        if is_late {
            for root in self.at_work.keys() {
                tracing::warn!("{}: the job at hand did not end", root.display());
            }
        }
        // What did not end in time is left behind: dropping it would wait for it.
        self.tasks.detach_all();
        ended
    }
}
