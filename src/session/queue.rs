//! The work that hooks leave: sessions that ended, or are about to be compacted.
//!
//! Whoever finds work does it: a process that the hook started, or the daemon. One at a time, by the lock
//! of the [`Spool`]. What fails is tried again, [`TRIES_MAX`] times in all, then put aside; a session
//! of a folder that has no memory folder is kept for as long as its transcript may last.

use std::{
    fs::File,
    io::{self, BufReader},
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{
    save::{SaveError, SaveRequest, SavedSession, SessionStore},
    transcript::{self, TranscriptError},
};
use crate::{
    config::{self, Config, environment::Environment},
    privacy::PrivacyPolicyError,
    store::fs::{
        layout::ROOT_FILE,
        spool::Spool,
        vault::{Vault, VaultError},
    },
};

/// So often a session is tried.
const TRIES_MAX: u32 = 3;
/// Agents remove transcripts after so long.
const AGE_MAX: TimeDelta = TimeDelta::days(30);
/// A transcript that did not grow for so long is written to its end.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// So often that is looked at.
const POLLS_MAX: u32 = 12;

/// A session that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedSession {
    /// What the hook told of: `session-end`, `pre-compact`.
    pub event: String,
    /// The transcript.
    pub transcript: PathBuf,
    /// The folder that the session ran in.
    pub cwd: PathBuf,
    /// When.
    pub at: DateTime<Utc>,
    /// How often it was tried.
    #[serde(default)]
    pub tries: u32,
    /// Why it failed last.
    #[serde(default)]
    pub error: Option<String>,
}

/// What became of a job.
#[derive(Debug)]
pub enum QueueOutcome {
    /// The session is kept.
    Saved(SavedSession),
    /// There was nothing new in it.
    NothingNew,
    /// No memory folder is for this folder of its session, yet.
    NoMemoryFolder(PathBuf),
    /// It failed and is tried again, or put aside.
    Failed(QueueError),
}

/// Why a session is not kept.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The root cannot be opened.
    #[error(transparent)]
    Config(#[from] config::ConfigError),
    /// Its rules cannot be read.
    #[error(transparent)]
    Policy(#[from] PrivacyPolicyError),
    /// The transcript is not there.
    #[error("cannot read the transcript `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The transcript is none.
    #[error("`{}` is no transcript", path.display())]
    NoTranscript {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: TranscriptError,
    },
    /// It could not be kept.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The folder of the memory cannot be read.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// Does the work that is there, and returns what became of it. Where another is at it, nothing is done,
/// unless `waits` is asked.
///
/// # Errors
///
/// Returns why the notes cannot be read.
pub fn drain(
    config: &Config,
    around: &Environment,
    now: DateTime<Utc>,
    waits: bool,
) -> io::Result<Vec<(String, QueueOutcome)>> {
    let spool = Spool::new(&around.state_home);
    if spool.names()?.is_empty() {
        return Ok(Vec::new());
    }
    let Some(_lock) = spool.lock(waits)? else { return Ok(Vec::new()) };
    let mut done = Vec::new();
    for name in spool.names()? {
        let text = match spool.read(&name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            text => text.unwrap_or_default(),
        };
        let Ok(mut job) = serde_json::from_str::<QueuedSession>(&text) else {
            spool.mark_failed(&name)?;
            continue;
        };
        let became = job.process(config, around, now);
        match &became {
            QueueOutcome::Saved(_) | QueueOutcome::NothingNew => spool.remove(&name)?,
            QueueOutcome::NoMemoryFolder(_) if now - job.at > AGE_MAX => spool.remove(&name)?,
            QueueOutcome::NoMemoryFolder(_) => {}
            QueueOutcome::Failed(error) => {
                job.tries += 1;
                job.error = Some(error.to_string());
                let text = serde_json::to_string(&job).map_err(io::Error::other)?;
                spool.replace(&name, &text)?;
                if job.tries >= TRIES_MAX {
                    spool.mark_failed(&name)?;
                }
            }
        }
        done.push((name, became));
    }
    Ok(done)
}

/// What hooks have left.
#[derive(Debug, Default)]
pub struct QueueContents {
    /// Sessions that nobody has looked at yet, or that are tried again.
    pub waiting: Vec<QueuedSession>,
    /// Sessions that failed [`TRIES_MAX`] times, with the names of their notes.
    pub failed: Vec<(String, QueuedSession)>,
}

/// Returns what hooks have left; what cannot be read is left out.
pub fn contents(around: &Environment) -> QueueContents {
    let spool = Spool::new(&around.state_home);
    let job = |text: io::Result<String>| serde_json::from_str::<QueuedSession>(&text.ok()?).ok();
    let names = |names: io::Result<Vec<String>>| names.unwrap_or_default().into_iter();
    let waiting = names(spool.names()).filter_map(|it| job(spool.read(&it))).collect();
    let failed = names(spool.failed_names())
        .filter_map(|it| Some((it.clone(), job(spool.read_failed(&it))?)));
    QueueContents { waiting, failed: failed.collect() }
}

/// Has the sessions that failed tried again by whoever works next; returns how many there are.
///
/// # Errors
///
/// Returns why a note cannot be written.
pub fn retry_failed(around: &Environment) -> io::Result<usize> {
    let spool = Spool::new(&around.state_home);
    let _lock = spool.lock(true)?;
    let failed = contents(around).failed;
    for (name, job) in &failed {
        let text = serde_json::to_string(&QueuedSession { tries: 0, ..job.clone() });
        spool.retry(name, &text.map_err(io::Error::other)?)?;
    }
    Ok(failed.len())
}

impl QueuedSession {
    fn process(&self, config: &Config, around: &Environment, now: DateTime<Utc>) -> QueueOutcome {
        match self.save(config, around, now) {
            Ok(Some(kept)) => QueueOutcome::Saved(kept),
            Ok(None) => QueueOutcome::NoMemoryFolder(self.cwd.clone()),
            Err(QueueError::Save(SaveError::NothingNew)) => QueueOutcome::NothingNew,
            Err(error) => QueueOutcome::Failed(error),
        }
    }

    fn save(
        &self,
        config: &Config,
        around: &Environment,
        now: DateTime<Utc>,
    ) -> Result<Option<SavedSession>, QueueError> {
        let Some(root) = config.root_for_folder(&self.cwd, around) else { return Ok(None) };
        let settings = config.open(&root, around)?;
        // A folder that nobody made a memory folder is none.
        if !settings.configured && !root.join(ROOT_FILE).is_file() {
            return Ok(None);
        }
        let vault = Vault::for_root(&settings)?;
        let rules = vault.rules();
        let unreadable = |source| QueueError::Unreadable { path: self.transcript.clone(), source };
        wait_until_stable(&self.transcript).map_err(unreadable)?;
        let file = File::open(&self.transcript).map_err(unreadable)?;
        let transcript = transcript::read(BufReader::with_capacity(1 << 16, file), None);
        let transcript = transcript.map_err(|source| {
            let path = self.transcript.clone();
            QueueError::NoTranscript { path, source }
        })?;
        let keeper = SessionStore { vault: &vault, rules: &rules, zone: settings.zone.name.0, now };
        let kept =
            keeper.save(&SaveRequest::for_ended_session(&transcript, self.transcript.to_str()))?;
        Ok(Some(kept))
    }
}

/// Waits until a file does not grow any more: its agent may still be writing the end of it.
fn wait_until_stable(path: &Path) -> io::Result<()> {
    let size = || -> io::Result<u64> {
        let found = path.metadata()?;
        if found.is_file() { Ok(found.len()) } else { Err(io::ErrorKind::InvalidInput.into()) }
    };
    let mut last = size()?;
    for _ in 0..POLLS_MAX {
        std::thread::sleep(POLL_INTERVAL);
        let now = size()?;
        if now == last {
            break;
        }
        last = now;
    }
    Ok(())
}
