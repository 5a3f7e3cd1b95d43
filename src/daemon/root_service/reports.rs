//! What status, metrics and the problem hook learn about one memory folder.

use super::RootService;
use crate::daemon::{
    change_detection::{DetectionMode, DetectionStats},
    metrics::RootMetrics,
    model_wait::ModelWait,
    problem_hook::RootProblem,
    state_file::DaemonState,
};

impl RootService {
    /// Returns whether `cause` differs from the error that was logged last, and records it.
    pub(in crate::daemon) fn is_new_error(&mut self, cause: String) -> bool {
        self.errors.root.is_new(cause)
    }

    /// Forgets the last error: the next one is logged even if it is the same.
    pub(in crate::daemon) fn clear_last_error(&mut self) {
        self.errors.root.clear();
    }

    /// Records why runs wait for a person, and writes it for other processes.
    pub(in crate::daemon) fn set_pause_reason(&mut self, reason: Option<String>) {
        if self.pause_reason != reason {
            self.pause_reason = reason;
            self.write_state();
        }
    }

    /// Returns how many jobs are due and how many are stuck, as of the last run.
    pub(in crate::daemon) fn counts(&self) -> (usize, usize) {
        (self.counts.due, self.counts.stuck)
    }

    /// Returns the figures for Prometheus.
    pub(in crate::daemon) fn metrics(&self) -> RootMetrics {
        RootMetrics {
            is_served: self.open.is_some(),
            due: self.counts.due,
            stuck: self.counts.stuck,
            is_paused: self.pause_reason.is_some(),
            is_waiting: self.waits.jobs.is_some(),
            is_polled: matches!(self.change_detector.mode(), DetectionMode::Polled(_)),
            missed: self.change_detector.stats.missed,
            overflows: self.change_detector.stats.overflows,
            runs: self.counts.runs,
            jobs: self.counts.jobs.clone(),
            last_scan: self.change_detector.stats.last_scan,
            next: self.open.as_ref().and_then(|it| it.agenda.next()),
        }
    }

    /// Returns what needs a person.
    pub(in crate::daemon) fn problems(&self) -> Vec<RootProblem> {
        let stuck = (self.counts.stuck > 0).then(|| RootProblem {
            kind: "stuck",
            text: format!("{} jobs are stuck; `memoird status` says why", self.counts.stuck),
        });
        let paused = self.pause_reason.clone().map(|text| RootProblem { kind: "paused", text });
        let wait = |kind, wait: &Option<ModelWait>| {
            let wait = wait.as_ref().filter(|it| it.is_problem())?;
            Some(RootProblem { kind, text: wait.reason.clone() })
        };
        let model = wait("model", &self.waits.jobs);
        let embeddings = wait("embeddings", &self.waits.embeddings);
        [stuck, model, paused, embeddings].into_iter().flatten().collect()
    }

    /// Writes `daemon.json` for other processes.
    pub(super) fn write_state(&self) {
        let Some(open) = &self.open else { return };
        let DetectionStats { missed, overflows, last_event, last_scan } =
            self.change_detector.stats;
        let why = match self.change_detector.mode() {
            DetectionMode::Notified => None,
            DetectionMode::Polled(why) => Some(why.clone()),
        };
        let state = DaemonState {
            pid: std::process::id(),
            since: open.since,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: if why.is_some() { "poll" } else { "inotify" },
            why,
            last_event,
            last_scan,
            missed,
            overflows,
            busy: self.is_running || self.pending.is_some(),
            passes: self.counts.runs,
            paused: self.pause_reason.clone(),
            waiting: self.waits.jobs.as_ref().map(|it| it.reason.clone()),
            waiting_until: self.waits.jobs.as_ref().map(|it| it.until),
        };
        if let Err(error) = state.write(&open.vault.layout().private_dir()) {
            tracing::debug!("{}: daemon.json: {error}", self.path.display());
        }
    }
}
