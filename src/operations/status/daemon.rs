//! The daemon that serves the folder, how it notices changes, and why due jobs wait.

use std::path::Path;

use chrono::{DateTime, SecondsFormat, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::{
    config::{
        schedule::Schedule,
        settings::{EngineKind, Settings},
    },
    operations::{error::CommandResult, workspace::MemoryRoot},
    store::fs::lock::{DaemonLock, RunLock},
};

#[derive(Serialize)]
pub(crate) struct ScheduleEntry {
    pub(crate) job: &'static str,
    pub(crate) next: Option<String>,
    #[serde(skip)]
    pub(crate) shown: String,
}

#[derive(Default, Serialize)]
pub(crate) struct DaemonStatus {
    pub(crate) running: bool,
    pub(crate) pid: Option<u32>,
    pub(crate) since: Option<String>,
    pub(crate) version: Option<String>,
    /// Why it should be restarted.
    pub(crate) restart: Option<String>,
    /// Why it writes nothing until the user acts.
    pub(crate) paused: Option<String>,
    /// Why due jobs wait, and until when.
    pub(crate) waiting: Option<String>,
    pub(crate) waiting_until: Option<String>,
}

/// How the daemon notices changes.
#[derive(Default, Serialize)]
pub(crate) struct WatcherStatus {
    pub(crate) mode: Option<String>,
    /// Why it polls instead of using notifications of the system.
    pub(crate) why: Option<String>,
    pub(crate) last_event: Option<String>,
    pub(crate) last_scan: Option<String>,
    pub(crate) missed: Option<u64>,
    pub(crate) overflows: Option<u64>,
}

/// The contents of `daemon.json`, which the daemon writes.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DaemonFile {
    pid: Option<u32>,
    since: Option<DateTime<Utc>>,
    version: Option<String>,
    mode: Option<String>,
    why: Option<String>,
    last_event: Option<DateTime<Utc>>,
    last_scan: Option<DateTime<Utc>>,
    missed: Option<u64>,
    overflows: Option<u64>,
    paused: Option<String>,
    waiting: Option<String>,
    waiting_until: Option<DateTime<Utc>>,
}

impl DaemonStatus {
    pub(crate) fn state(&self) -> &'static str {
        match self {
            Self { running: false, .. } => "not running",
            Self { paused: Some(_), .. } => "paused",
            Self { restart: Some(_), .. } => "needs a restart",
            _ => "running",
        }
    }
}

pub(crate) fn daemon_status(
    root: &MemoryRoot,
    zone: Tz,
) -> CommandResult<(DaemonStatus, WatcherStatus)> {
    let layout = root.vault.layout();
    let lock = layout.daemon_lock();
    let Some(pid) = DaemonLock::holder(&lock)? else {
        return Ok((DaemonStatus::default(), WatcherStatus::default()));
    };
    let about = std::fs::read(layout.private_dir().join("daemon.json")).ok();
    let about = about.and_then(|it| serde_json::from_slice::<DaemonFile>(&it).ok());
    // Ignores a file that another process left.
    let about = about.filter(|it| it.pid == Some(pid)).unwrap_or_default();
    // The lock file is written when the daemon starts, and never again.
    let locked = std::fs::metadata(&lock).and_then(|it| it.modified()).ok();
    let locked = locked.map(DateTime::<Utc>::from);
    let shown = |it: Option<DateTime<Utc>>| it.map(|it| rfc3339(it, zone));
    let daemon = DaemonStatus {
        running: true,
        pid: Some(pid).filter(|&it| it > 0),
        since: shown(about.since.or(locked)),
        restart: restart_reason(pid, about.version.as_deref()),
        version: about.version,
        paused: about.paused,
        waiting: about.waiting,
        waiting_until: shown(about.waiting_until),
    };
    let watcher = WatcherStatus {
        mode: about.mode,
        why: about.why,
        last_event: shown(about.last_event),
        last_scan: shown(about.last_scan),
        missed: about.missed,
        overflows: about.overflows,
    };
    Ok((daemon, watcher))
}

/// Returns why a daemon should be restarted: its version differs from this program's, or its program
/// file was replaced since it started.
fn restart_reason(pid: u32, version: Option<&str>) -> Option<String> {
    let ours = env!("CARGO_PKG_VERSION");
    if let Some(version) = version.filter(|it| *it != ours) {
        return Some(format!("it runs memoird {version}, but {ours} is installed"));
    }
    let program = std::fs::read_link(Path::new("/proc").join(pid.to_string()).join("exe")).ok()?;
    let is_gone = program.to_string_lossy().ends_with(" (deleted)");
    is_gone.then(|| "its program was replaced since it started".to_owned())
}

/// Returns why due jobs have not run yet.
pub(crate) fn delay_reason(
    root: &MemoryRoot,
    daemon: &DaemonStatus,
    ticks: &[ScheduleEntry],
) -> String {
    let settings = &root.settings.settings;
    let is_free = settings.engine == EngineKind::Extractive;
    if RunLock::is_held(&root.vault.layout().run_lock()).unwrap_or(false) {
        return "a run is in progress".to_owned();
    }
    if !daemon.running {
        return "no daemon is running".to_owned();
    }
    if let Some(why) = &daemon.paused {
        return format!("the daemon waits for you: {why}");
    }
    if let Some(why) = &daemon.waiting {
        let until = daemon.waiting_until.as_ref();
        let until = until.map(|it| format!("; next try at {it}")).unwrap_or_default();
        return format!("{why}{until}");
    }
    if settings.schedule.on_change.resolve(is_free) {
        return "the run starts when no more changes arrive".to_owned();
    }
    let next = ticks.iter().filter(|it| it.next.is_some()).min_by_key(|it| it.next.clone());
    next.map_or_else(
        || "the schedule never fires".to_owned(),
        |it| format!("scheduled for {} ({})", it.shown, it.job),
    )
}

pub(crate) fn schedule(settings: &Settings, zone: Tz, now: DateTime<Utc>) -> Vec<ScheduleEntry> {
    let lines = &settings.schedule;
    let tick = |job, line: &Schedule| {
        let next = line.next_after(now.with_timezone(&zone));
        let shown = next.map_or_else(|| "never".to_owned(), local_time);
        ScheduleEntry { job, next: next.map(|it| it.to_rfc3339()), shown }
    };
    vec![
        tick("extract", &lines.extract),
        tick("weekly", &lines.weekly),
        tick("monthly", &lines.monthly),
        tick("wisdom", &lines.wisdom),
    ]
}

pub(crate) fn local_time(time: DateTime<Tz>) -> String {
    time.format("%a %Y-%m-%d %H:%M").to_string()
}

pub(crate) fn rfc3339(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::Secs, false)
}
