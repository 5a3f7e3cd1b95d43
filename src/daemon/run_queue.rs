//! Active runs: how many at once, and whose turn is next.
//!
//! Each run has its own thread. Runs that ask a model mostly wait for it, so they have a limit of their
//! own and delay no folder that works offline. Every folder gets its turn, however often another one
//! changes.

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
    root_service::{OpenRoot, PendingRun, RootService},
    run::{FinishedRun, Heartbeat, RunOrder},
};
use crate::compaction::CompactionError;

/// The most offline runs at once: each uses all processors and holds the logs that it reads in memory.
const OFFLINE_MAX: usize = 2;
/// The most runs at once that ask a model.
const MODEL_MAX: usize = 2;
/// A run hangs if no job begins or ends for this long; the watchdog may then end the daemon.
const HANG_TIMEOUT: Duration = Duration::from_secs(45 * 60);

pub(super) type RunResult = Result<Result<FinishedRun, CompactionError>, JoinError>;

#[derive(Default)]
pub(super) struct RunQueue {
    tasks: JoinSet<Result<FinishedRun, CompactionError>>,
    active: BTreeMap<PathBuf, ActiveRun>,
    last_root: Option<PathBuf>,
}

struct ActiveRun {
    task: Id,
    pending: PendingRun,
    asks_model: bool,
    heartbeat: Heartbeat,
    /// The heartbeat at the last check, and since when it has not changed.
    last_beat: (u64, Instant),
}

impl RunQueue {
    /// Returns the next root that is ready and for which there is room.
    pub(super) fn next(&self, roots: &BTreeMap<PathBuf, RootService>) -> Option<PathBuf> {
        let room = [false, true].map(|it| self.has_room(it));
        let ready = |(path, root): &(&PathBuf, &RootService)| {
            let asks_model = root.open().is_some_and(OpenRoot::asks_model);
            root.is_ready() && room[usize::from(asks_model)] && !self.active.contains_key(*path)
        };
        if !room.contains(&true) {
            return None;
        }
        let after = self.last_root.as_ref().map(|last| {
            use std::ops::Bound::{Excluded, Unbounded};
            roots.range::<Path, _>((Excluded(last.as_path()), Unbounded))
        });
        let next = after.and_then(|mut it| it.find(ready)).or_else(|| roots.iter().find(ready));
        next.map(|(path, _)| path.clone())
    }

    /// Records that a root had its turn, whatever the result.
    pub(super) fn mark_turn(&mut self, root: &Path) {
        self.last_root = Some(root.to_owned());
    }

    fn has_room(&self, asks_model: bool) -> bool {
        let most = if asks_model { MODEL_MAX } else { OFFLINE_MAX };
        self.active.values().filter(|it| it.asks_model == asks_model).count() < most
    }

    pub(super) fn start(&mut self, root: PathBuf, want: PendingRun, order: RunOrder) {
        let pulse = order.heartbeat.clone();
        let asks_model = order.engine.is_model();
        let task = self.tasks.spawn_blocking(|| order.run()).id();
        let still = (pulse.beats(), Instant::now());
        self.active.insert(
            root,
            ActiveRun { task, pending: want, asks_model, heartbeat: pulse, last_beat: still },
        );
    }

    pub(super) fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        self.active.keys()
    }

    pub(super) fn is_running(&self, root: &Path) -> bool {
        self.active.contains_key(root)
    }

    pub(super) fn stop(&self, root: &Path) {
        if let Some(running) = self.active.get(root) {
            running.heartbeat.stop();
        }
    }

    /// Waits for the next run to end; forever when none is active.
    pub(super) async fn next_finished(&mut self) -> (PathBuf, PendingRun, Box<RunResult>) {
        loop {
            let (task, ended) = match self.tasks.join_next_with_id().await {
                None => return pending().await,
                Some(Ok((task, done))) => (task, Ok(done)),
                Some(Err(error)) => (error.id(), Err(error)),
            };
            let root = self.active.iter().find(|(_, it)| it.task == task);
            if let Some(root) = root.map(|it| it.0.clone())
                && let Some(running) = self.active.remove(&root)
            {
                return (root, running.pending, Box::new(ended));
            }
        }
    }

    /// Returns a root whose run hangs.
    pub(super) fn find_hung(&mut self) -> Option<&Path> {
        for running in self.active.values_mut() {
            let beats = running.heartbeat.beats();
            if beats != running.last_beat.0 {
                running.last_beat = (beats, Instant::now());
            }
        }
        let hangs = |it: &&ActiveRun| it.last_beat.1.elapsed() >= HANG_TIMEOUT;
        self.active.iter().find(|(_, it)| hangs(it)).map(|(root, _)| {
            let minutes = HANG_TIMEOUT.as_secs() / 60;
            tracing::error!("{}: no job ended for {minutes} minutes", root.display());
            root.as_path()
        })
    }

    /// Asks all runs to stop, and waits for their current jobs.
    pub(super) async fn shut_down(
        &mut self,
        patience: Duration,
    ) -> Vec<(PathBuf, PendingRun, Box<RunResult>)> {
        self.active.values().for_each(|it| it.heartbeat.stop());
        let mut ended = Vec::new();
        let all = async {
            while !self.active.is_empty() {
                ended.push(self.next_finished().await);
            }
        };
        let is_late = timeout(patience, all).await.is_err();
        if is_late {
            for root in self.active.keys() {
                tracing::warn!("{}: the current job did not end in time", root.display());
            }
        }
        // Dropping a run that did not end in time would wait for it.
        self.tasks.detach_all();
        ended
    }
}
