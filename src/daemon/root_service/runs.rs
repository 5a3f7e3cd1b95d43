//! When a run of one memory folder is requested, and what follows from its result.

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::{
    BACKOFF_MAX, BACKOFF_MIN, BATCH_POLL_INTERVAL, BUSY_RETRY_DELAY, FULL_CHECK_INTERVAL,
    JOB_RETRY_DELAY, PendingRun, RootService, RunBackoff, SCAN_INTERVAL,
};
use crate::{
    compaction::{integrity::rebuild::CheckDepth, plan::WaitCause},
    daemon::{
        model_wait::ModelWait,
        run::{BATCH_TRIGGER, EMBED_TRIGGER, EmbedFailure, FinishedRun},
        schedule::PlanUpdate,
        watch::FolderWatcher,
    },
    memory::item::Tier,
    model::CallError,
};

impl RootService {
    /// Returns the tiers to write as soon as a change is noticed; none for a run that only scans.
    pub(super) fn tiers_on_change(&self) -> BTreeSet<Tier> {
        let all = self.open.as_ref().is_some_and(|it| it.agenda.is_on_change());
        if all { Tier::ALL.into() } else { BTreeSet::new() }
    }

    /// Requests the runs that the agenda and the timers ask for at `now`.
    pub(in crate::daemon) fn tick(&mut self, watcher: &mut FolderWatcher, now: DateTime<Utc>) {
        let Some(open) = &mut self.open else { return };
        let tiers = open.agenda.take_due(now);
        if !tiers.is_empty() {
            self.request_run("tick", tiers);
        }
        let at = Instant::now();
        if self.timers.job_retry.is_some_and(|it| it <= at) {
            self.timers.job_retry = None;
            self.request_run("again", Tier::ALL.into());
        }
        if self.timers.scan <= at {
            self.update_watches(watcher);
            self.timers.scan = at + SCAN_INTERVAL;
            self.request_run("scan", self.tiers_on_change());
        }
        if let Some((missed, is_distrusted)) = self.change_detector.count_missed() {
            self.report_missed(missed, is_distrusted);
        }
        // The second condition holds after the clock was set back.
        if self.timers.batch_poll.is_some_and(|it| it <= now || it > now + BATCH_POLL_INTERVAL) {
            self.timers.batch_poll = None;
            self.request_run(BATCH_TRIGGER, BTreeSet::new());
        }
        let is_over = |it: &Option<ModelWait>| it.as_ref().is_some_and(|it| it.is_over(now));
        if is_over(&self.waits.jobs) && self.pending.is_none() && !self.is_running {
            self.request_run("again", Tier::ALL.into());
        }
        if is_over(&self.waits.embeddings) && self.pending.is_none() && !self.is_running {
            self.request_run(EMBED_TRIGGER, BTreeSet::new());
        }
    }

    /// Requests a run because the machine slept or its clock was set.
    pub(in crate::daemon) fn on_resume(&mut self) {
        if self.open.is_some() {
            self.request_run("wake", self.tiers_on_change());
        }
    }

    pub(in crate::daemon) fn time_until_next(&self, now: DateTime<Utc>) -> Duration {
        let Some(open) = &self.open else { return Duration::MAX };
        let at = Instant::now();
        // A retry that is overdue waits for a run of another folder to end, not for the clock.
        let retry = self.backoff.until.filter(|it| self.pending.is_some() && *it > at);
        let timers = [
            Some(self.timers.scan),
            self.polling.next_at.filter(|_| !self.is_running),
            self.timers.job_retry,
            self.change_detector.unreported_deadline(),
            retry,
        ];
        let timers = timers.into_iter().flatten().map(|it| it.saturating_duration_since(at));
        let is_idle = self.pending.is_none() && !self.is_running;
        let until = |it: &Option<ModelWait>| it.as_ref().filter(|_| is_idle).map(|it| it.until);
        let clock = [
            open.agenda.next(),
            self.timers.batch_poll,
            until(&self.waits.jobs),
            until(&self.waits.embeddings),
        ];
        let clock = clock.into_iter().flatten();
        let clock = clock.map(|it| (it - now).to_std().unwrap_or_default());
        timers.chain(clock).min().unwrap_or(Duration::MAX)
    }

    /// Requests a run; a run that is requested already does the work of both.
    pub(in crate::daemon) fn request_run(&mut self, trigger: &'static str, tiers: BTreeSet<Tier>) {
        match &mut self.pending {
            Some(pending) => {
                if pending.tiers.is_empty() {
                    pending.trigger = trigger;
                }
                pending.tiers.extend(tiers);
            }
            None => self.pending = Some(PendingRun { trigger, tiers }),
        }
    }

    /// Returns whether a run is requested and may start now.
    pub(in crate::daemon) fn is_ready(&self) -> bool {
        let must_wait = self.backoff.until.is_some_and(|it| Instant::now() < it);
        self.open.is_some() && self.pending.is_some() && !self.is_running && !must_wait
    }

    /// Takes the requested run to start it.
    pub(in crate::daemon) fn take_pending(
        &mut self,
        watcher: &FolderWatcher,
    ) -> Option<PendingRun> {
        let pending = self.pending.take()?;
        self.is_running = true;
        self.change_detector.on_run_started(watcher.watched(&self.path));
        self.write_state();
        Some(pending)
    }

    /// Records the result of a run, and plans what follows from it.
    pub(in crate::daemon) fn on_run_finished(&mut self, done: FinishedRun) {
        self.is_running = false;
        self.counts.runs += 1;
        for job in &done.report.jobs {
            *self.counts.jobs.entry(job.outcome).or_default() += 1;
        }
        self.backoff = RunBackoff::default();
        self.pause_reason = None;
        let has_failed_jobs = done.report.jobs.iter().any(|it| it.outcome == "failed");
        let unavailable = done.model_unavailable.as_ref().filter(|_| !done.plan.jobs.is_empty());
        let unanswered = done.report.model.as_deref();
        self.waits.jobs =
            ModelWait::after(self.waits.jobs.as_ref(), unavailable, unanswered, done.ended_at);
        let is_retried = (has_failed_jobs || done.scheduled.is_err()) && self.waits.jobs.is_none();
        self.timers.job_retry = is_retried.then(|| Instant::now() + JOB_RETRY_DELAY);
        let scheduled = done.scheduled.as_ref().copied().unwrap_or_default();
        // A run that did not ask about the batch does not postpone the question.
        let batch_at = self.timers.batch_poll.unwrap_or(done.started_at + BATCH_POLL_INTERVAL);
        self.timers.batch_poll = scheduled.batch_pending.then_some(batch_at);
        if scheduled.run_again {
            self.request_run("again", Tier::ALL.into());
        }
        self.report_batch_error(done.batch_error.as_ref().or(done.scheduled.as_ref().err()));
        self.on_lines_embedded(done.embedded.as_ref(), done.ended_at);
        if done.check_depth == CheckDepth::Full {
            self.timers.full_check = Instant::now() + FULL_CHECK_INTERVAL;
        }
        self.counts.due = done.plan.jobs.len() + done.plan.due_after.len();
        self.counts.stuck = count_stuck(&done);
        if let Some(open) = &mut self.open {
            open.agenda.update(&PlanUpdate {
                plan: &done.plan,
                being_written: &done.being_written,
                last_change: done.last_change,
                started_at: done.started_at,
                ended_at: done.ended_at,
            });
        }
        let is_done = has_failed_jobs || self.waits.jobs.is_some() || done.has_tried_all_due();
        self.change_detector.on_run_finished(done.snapshot, is_done, done.ended_at);
        self.write_state();
    }

    fn on_lines_embedded(
        &mut self,
        outcome: Option<&Result<usize, EmbedFailure>>,
        at: DateTime<Utc>,
    ) {
        match outcome {
            None => {}
            Some(Ok(logs_left)) => {
                self.waits.embeddings = None;
                self.errors.embeddings.clear();
                if *logs_left > 0 {
                    self.request_run(EMBED_TRIGGER, BTreeSet::new());
                }
            }
            Some(Err(failure)) => self.postpone_embedding(failure, at),
        }
    }

    /// Logs why batches could not be fetched or sent, once per cause.
    fn report_batch_error(&mut self, error: Option<&CallError>) {
        match error {
            None => self.errors.batches.clear(),
            Some(error) if self.errors.batches.is_new_call_error(error) => {
                tracing::warn!("{}: batches: {error}", self.path.display());
            }
            Some(_) => {}
        }
    }

    /// Records that no vectors can be computed now; the delay grows with each failure.
    pub(in crate::daemon) fn postpone_embedding(
        &mut self,
        failure: &EmbedFailure,
        at: DateTime<Utc>,
    ) {
        let reason = failure.to_string();
        let is_new = match failure {
            EmbedFailure::Call(error) => self.errors.embeddings.is_new_call_error(error),
            EmbedFailure::Other(reason) => self.errors.embeddings.is_new(reason.clone()),
        };
        if is_new {
            tracing::warn!("{}: cannot compute vectors: {reason}", self.path.display());
        }
        self.waits.embeddings =
            ModelWait::after(self.waits.embeddings.as_ref(), None, Some(&reason), at);
    }

    pub(in crate::daemon) fn may_embed(&self, now: DateTime<Utc>) -> bool {
        self.waits.embeddings.as_ref().is_none_or(|it| it.is_over(now))
    }

    /// Records that another process holds the run lock; the run is retried soon.
    pub(in crate::daemon) fn on_lock_busy(&mut self, run: PendingRun) {
        let backoff = self.backoff;
        self.on_run_failed(run);
        self.backoff = RunBackoff { until: Some(Instant::now() + BUSY_RETRY_DELAY), ..backoff };
    }

    /// Records a run that failed, and returns the delay before the next try.
    pub(in crate::daemon) fn on_run_failed(&mut self, run: PendingRun) -> Duration {
        self.is_running = false;
        self.change_detector.on_run_failed();
        self.request_run(run.trigger, run.tiers);
        let delay = (self.backoff.delay * 2).clamp(BACKOFF_MIN, BACKOFF_MAX);
        self.backoff = RunBackoff { delay, until: Some(Instant::now() + delay) };
        delay
    }
}

fn count_stuck(done: &FinishedRun) -> usize {
    let waiting = done.plan.waiting.iter();
    waiting.filter(|it| matches!(it.cause, WaitCause::Stuck(_) | WaitCause::Damaged(_))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> RootService {
        RootService::new("/no".into())
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_doubles_with_each_failed_run() {
        let mut root = service();
        let run = PendingRun { trigger: "change", tiers: Tier::ALL.into() };
        let delays: Vec<u64> = (0..12).map(|_| root.on_run_failed(run.clone()).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(root.pending, Some(run));
    }

    #[tokio::test(start_paused = true)]
    async fn the_database_is_checked_fully_at_first_and_once_a_week() {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let mut root = service();
        let mut full_checks = Vec::new();
        for day in 0..20 {
            let check_depth = root.check_depth();
            if check_depth == CheckDepth::Full {
                full_checks.push(day);
            }
            root.on_run_finished(FinishedRun {
                check_depth,
                ..FinishedRun::empty(DateTime::UNIX_EPOCH)
            });
            tokio::time::advance(DAY).await;
        }
        assert_eq!(full_checks, [0, 7, 14]);
    }

    #[test]
    fn requests_for_a_run_are_merged() {
        let mut root = service();
        root.request_run("scan", BTreeSet::new());
        root.request_run("tick", [Tier::Weekly].into());
        root.request_run("change", [Tier::Extract].into());
        let expected = PendingRun { trigger: "tick", tiers: [Tier::Extract, Tier::Weekly].into() };
        assert_eq!(root.pending, Some(expected));
    }
}
