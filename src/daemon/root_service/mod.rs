//! One memory folder as the daemon serves it: its lock, its agenda, and the runs it needs.
//!
//! A folder that cannot be served now (it is missing, its `memoird.yaml` is wrong, another host or
//! another daemon writes it) is retried once a minute, and at once when its parent folder reports a
//! change. It stops no other folder.
//!
//! - `opening`: lock and settings; closing and opening again.
//! - `watching`: file changes, reported by the system or found by polling.
//! - `runs`: when a run is requested, and what follows from its result.
//! - `reports`: what status, metrics and the problem hook learn.

mod opening;
mod reports;
mod runs;
mod watching;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use self::opening::RootIdentity;
use super::{
    change_detection::ChangeDetector, folder_snapshot, model_wait::ModelWait,
    repeat_filter::RepeatFilter, schedule::Agenda,
};
use crate::{
    compaction::integrity::rebuild::CheckDepth,
    config::{root::RootSettings, settings::EngineKind},
    memory::item::Tier,
    store::fs::{lock::DaemonLock, vault::Vault},
};

/// How often a folder is scanned although no change was reported: notifications can be lost.
const SCAN_INTERVAL: Duration = Duration::from_secs(15 * 60);
/// How often a folder is scanned whose changes the system does not report.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// How often every row of the database is checked, besides once at the start. Damage is best found while
/// copies of the file still exist elsewhere.
const FULL_CHECK_INTERVAL: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The first delay after a run that failed; each further failure doubles it …
const BACKOFF_MIN: Duration = Duration::from_secs(1);
/// … up to this.
const BACKOFF_MAX: Duration = Duration::from_secs(10 * 60);
/// The delay while another process holds the run lock.
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(5);
/// The delay before a failed job is tried again; after three failures it is stuck.
const JOB_RETRY_DELAY: Duration = Duration::from_secs(60);

/// How often a provider is asked whether it has answered a batch.
const BATCH_POLL_INTERVAL: TimeDelta = TimeDelta::minutes(10);

/// One memory folder.
#[derive(Debug)]
pub(super) struct RootService {
    path: PathBuf,
    open: Option<OpenRoot>,
    /// Whether it was served before. An empty folder then means that its disk is gone, so nothing is
    /// created in it.
    was_opened: bool,
    /// The delay after each tick of the schedule, so that many folders take turns.
    jitter: Duration,
    change_detector: ChangeDetector,
    is_running: bool,
    pending: Option<PendingRun>,
    timers: RunTimers,
    polling: Polling,
    waits: ModelWaits,
    backoff: RunBackoff,
    /// Why nothing is written until a person acts.
    pause_reason: Option<String>,
    counts: RunCounts,
    errors: LoggedErrors,
}

/// What exists while a folder is served.
#[derive(Debug)]
pub(super) struct OpenRoot {
    _lock: DaemonLock,
    identity: RootIdentity,
    pub(super) settings: RootSettings,
    pub(super) vault: Vault,
    pub(super) agenda: Agenda,
    since: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingRun {
    pub(super) trigger: &'static str,
    /// The tiers to write; empty for a run that only scans.
    pub(super) tiers: BTreeSet<Tier>,
}

/// When something is to be done, whether or not files change.
#[derive(Debug)]
struct RunTimers {
    scan: Instant,
    full_check: Instant,
    /// When failed jobs are tried again.
    job_retry: Option<Instant>,
    /// When the provider is asked about a batch.
    batch_poll: Option<DateTime<Utc>>,
}

/// Scans of a folder whose changes the system does not report.
#[derive(Debug, Default)]
struct Polling {
    next_at: Option<Instant>,
    /// One scan is due at once: changes made before a watch was placed are never reported.
    once: bool,
}

/// Work that waits until a model answers.
#[derive(Debug, Default)]
struct ModelWaits {
    jobs: Option<ModelWait>,
    embeddings: Option<ModelWait>,
}

/// How long to wait before the next run after one that failed.
#[derive(Clone, Copy, Debug, Default)]
struct RunBackoff {
    delay: Duration,
    until: Option<Instant>,
}

/// Figures for status and metrics.
#[derive(Debug, Default)]
struct RunCounts {
    /// Runs that have ended since the folder was opened.
    runs: u64,
    /// Jobs since the daemon started, by outcome.
    jobs: BTreeMap<&'static str, u64>,
    /// Jobs of the last plan.
    due: usize,
    stuck: usize,
}

#[derive(Debug, Default)]
struct LoggedErrors {
    /// Why the folder cannot be served, or its last run failed.
    root: RepeatFilter,
    /// Why vectors could not be computed.
    embeddings: RepeatFilter,
    /// Why batches could not be fetched or sent.
    batches: RepeatFilter,
}

impl OpenRoot {
    pub(super) fn asks_model(&self) -> bool {
        self.settings.settings.engine == EngineKind::Model
    }
}

impl RootService {
    /// Returns the service of a folder that is not opened yet.
    pub(super) fn new(path: PathBuf) -> Self {
        let at = Instant::now();
        Self {
            path,
            open: None,
            was_opened: false,
            jitter: Duration::ZERO,
            change_detector: ChangeDetector::new(),
            is_running: false,
            pending: None,
            timers: RunTimers {
                scan: at + SCAN_INTERVAL,
                full_check: at,
                job_retry: None,
                batch_poll: None,
            },
            polling: Polling::default(),
            waits: ModelWaits::default(),
            backoff: RunBackoff::default(),
            pause_reason: None,
            counts: RunCounts::default(),
            errors: LoggedErrors::default(),
        }
    }

    /// Returns what exists while the folder is served.
    pub(super) fn open(&self) -> Option<&OpenRoot> {
        self.open.as_ref()
    }

    /// Returns how thoroughly the next run checks the database.
    pub(super) fn check_depth(&self) -> CheckDepth {
        if self.timers.full_check <= Instant::now() { CheckDepth::Full } else { CheckDepth::Quick }
    }

    /// Returns the folders whose changes matter.
    pub(super) fn watched_folders(&self) -> Vec<folder_snapshot::WatchedFolder> {
        self.open
            .as_ref()
            .map_or_else(Vec::new, |it| folder_snapshot::watched_folders(it.vault.layout()))
    }
}
