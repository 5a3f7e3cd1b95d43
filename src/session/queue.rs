//! The queue of sessions that hooks report: sessions that ended, or are about to be compacted.
//!
//! A process that the hook started or the daemon works through it, one at a time by the lock of the
//! [`Spool`]. A session that fails is tried `TRIES_MAX` times and then kept as failed, until a person
//! retries or dismisses it. A session in a folder without a memory folder stays queued for as long as its
//! transcript may exist. A session that ended a moment ago and has no transcript yet is waited for, since some programs
//! write the file after the hook. One without a transcript after that had no message: other programs write the file
//! with the first one.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{
    save::{SaveError, SaveRequest, SavedSession, SessionStore},
    transcript::{self, TranscriptError},
    transcript_file,
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

/// How often a session is tried.
const TRIES_MAX: u32 = 3;
/// The age at which agents remove transcripts.
const AGE_MAX: TimeDelta = TimeDelta::days(30);
/// A transcript that has not grown for this long is complete.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How often the size of a transcript is checked.
const POLLS_MAX: u32 = 12;
/// How long after its end a session without a message in its transcript is waited for.
const MISSING_TIMEOUT: Duration = Duration::from_secs(3);
/// The event of a session that has ended.
const SESSION_END: &str = "session-end";
/// A session that was queued longer ago is not about to be saved.
const FRESH_MAX: TimeDelta = TimeDelta::minutes(2);

/// A session to be saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueuedSession {
    /// The event of the hook: `session-end`, `pre-compact`.
    pub event: String,
    pub transcript: PathBuf,
    /// The folder that the session ran in.
    pub cwd: PathBuf,
    /// The time of the event.
    pub at: DateTime<Utc>,
    /// How often it was tried.
    #[serde(default)]
    pub tries: u32,
    #[serde(default)]
    pub error: Option<String>,
}

/// The result of processing a queued session.
#[derive(Debug)]
pub(crate) enum QueueOutcome {
    Saved(SavedSession),
    NothingNew,
    /// There is no memory folder for this folder yet.
    NoMemoryFolder(PathBuf),
    /// It failed, and is tried again or kept as failed.
    Failed(QueueError),
}

/// Why a session was not saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QueueError {
    /// The root cannot be opened.
    #[error(transparent)]
    Config(#[from] config::ConfigError),
    /// The privacy rules of the root cannot be read.
    #[error(transparent)]
    Policy(#[from] PrivacyPolicyError),
    #[error("cannot read the transcript `{}`", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is not a transcript", path.display())]
    NoTranscript {
        path: PathBuf,
        #[source]
        source: TranscriptError,
    },
    /// The session could not be saved.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The memory folder cannot be read.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl QueueError {
    /// Returns whether the transcript is empty, or its user deleted it.
    fn says_no_message(&self) -> bool {
        match self {
            Self::NoTranscript { source, .. } => matches!(source, TranscriptError::Empty),
            Self::Unreadable { source, .. } => source.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }
}

/// Processes all queued sessions and returns the name and the result of each.
///
/// If another process is working on the queue, it does nothing, or waits with `wait_for_lock`.
pub(crate) fn drain(
    config: &Config,
    environment: &Environment,
    now: DateTime<Utc>,
    wait_for_lock: bool,
) -> io::Result<Vec<(String, QueueOutcome)>> {
    let spool = Spool::new(&environment.state_home);
    if spool.names()?.is_empty() {
        return Ok(Vec::new());
    }
    let Some(_lock) = spool.lock(wait_for_lock)? else { return Ok(Vec::new()) };
    // Many sessions without a message together wait as long as one.
    let until = Instant::now() + MISSING_TIMEOUT;
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
        let outcome = job.process(config, environment, now, until);
        match &outcome {
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
        done.push((name, outcome));
    }
    Ok(done)
}

#[derive(Debug, Default)]
pub(crate) struct QueueContents {
    /// Sessions that were not tried yet, or are tried again.
    pub waiting: Vec<QueuedSession>,
    /// Sessions that failed `TRIES_MAX` times, with the names of their files in the queue.
    pub failed: Vec<(String, QueuedSession)>,
}

/// Returns the contents of the queue, without unreadable files.
pub(crate) fn contents(environment: &Environment) -> QueueContents {
    let spool = Spool::new(&environment.state_home);
    let job = |text: io::Result<String>| serde_json::from_str::<QueuedSession>(&text.ok()?).ok();
    let names = |names: io::Result<Vec<String>>| names.unwrap_or_default().into_iter();
    let waiting = names(spool.names()).filter_map(|it| job(spool.read(&it))).collect();
    let failed = names(spool.failed_names())
        .filter_map(|it| Some((it.clone(), job(spool.read_failed(&it))?)));
    QueueContents { waiting, failed: failed.collect() }
}

/// Returns whether a session of the folder at `root` was queued just now, has a transcript, and was not tried yet.
pub(crate) fn has_fresh(
    config: &Config,
    environment: &Environment,
    root: &Path,
    now: DateTime<Utc>,
) -> bool {
    let is_fresh = |it: &QueuedSession| {
        it.tries == 0
            && it.is_fresh(now)
            && !it.is_missing()
            && config.root_for_folder(&it.cwd, environment).is_some_and(|it| it == root)
    };
    contents(environment).waiting.iter().any(is_fresh)
}

/// Removes failed sessions from the queue, or only those of one transcript, and returns their number.
pub(crate) fn dismiss_failed(
    environment: &Environment,
    transcript: Option<&Path>,
) -> io::Result<usize> {
    let spool = Spool::new(&environment.state_home);
    let _lock = spool.lock(true)?;
    let mut count = 0;
    for name in spool.failed_names()? {
        let job = || serde_json::from_str::<QueuedSession>(&spool.read_failed(&name).ok()?).ok();
        if transcript.is_none_or(|it| job().is_some_and(|job| job.transcript == it)) {
            spool.remove_failed(&name)?;
            count += 1;
        }
    }
    Ok(count)
}

/// Queues failed sessions again and returns their number.
pub(crate) fn retry_failed(environment: &Environment) -> io::Result<usize> {
    let spool = Spool::new(&environment.state_home);
    let _lock = spool.lock(true)?;
    let failed = contents(environment).failed;
    for (name, job) in &failed {
        let text = serde_json::to_string(&QueuedSession { tries: 0, ..job.clone() });
        spool.retry(name, &text.map_err(io::Error::other)?)?;
    }
    Ok(failed.len())
}

impl QueuedSession {
    /// Returns whether it was queued just now.
    fn is_fresh(&self, now: DateTime<Utc>) -> bool {
        (now - self.at).abs() <= FRESH_MAX
    }

    /// Returns whether its transcript does not exist or is empty.
    fn is_missing(&self) -> bool {
        match transcript_file::stamp(&self.transcript) {
            Ok((size, _)) => size == 0,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    fn process(
        &self,
        config: &Config,
        environment: &Environment,
        now: DateTime<Utc>,
        until: Instant,
    ) -> QueueOutcome {
        let has_ended = self.event == SESSION_END;
        let is_fresh = self.is_fresh(now);
        loop {
            let saved = if has_ended && self.is_missing() {
                None
            } else {
                Some(self.save(config, environment, now))
            };
            match saved {
                None => {}
                Some(Ok(Some(saved))) => return QueueOutcome::Saved(saved),
                Some(Ok(None)) => return QueueOutcome::NoMemoryFolder(self.cwd.clone()),
                Some(Err(QueueError::Save(SaveError::NothingNew))) => {
                    return QueueOutcome::NothingNew;
                }
                Some(Err(error)) if has_ended && error.says_no_message() => {}
                Some(Err(error)) => return QueueOutcome::Failed(error),
            }
            if !is_fresh || Instant::now() >= until {
                return QueueOutcome::NothingNew;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn save(
        &self,
        config: &Config,
        environment: &Environment,
        now: DateTime<Utc>,
    ) -> Result<Option<SavedSession>, QueueError> {
        let Some(root) = config.root_for_folder(&self.cwd, environment) else { return Ok(None) };
        let settings = config.open(&root, environment)?;
        // Without configuration and without its marker file, the folder is not a memory folder.
        if !settings.configured && !root.join(ROOT_FILE).is_file() {
            return Ok(None);
        }
        let vault = Vault::for_root(&settings)?;
        let rules = vault.rules();
        let unreadable = |source| QueueError::Unreadable { path: self.transcript.clone(), source };
        wait_until_stable(&self.transcript).map_err(unreadable)?;
        let file = transcript_file::open(&self.transcript).map_err(unreadable)?;
        let transcript = transcript::read(file, None);
        let transcript = transcript.map_err(|source| {
            let path = self.transcript.clone();
            QueueError::NoTranscript { path, source }
        })?;
        let store = SessionStore { vault: &vault, rules: &rules, zone: settings.zone.name.0, now };
        let saved =
            store.save(&SaveRequest::for_ended_session(&transcript, self.transcript.to_str()))?;
        Ok(Some(saved))
    }
}

/// Waits until a file stops growing, because its agent may still be writing.
fn wait_until_stable(path: &Path) -> io::Result<()> {
    let mut last = transcript_file::stamp(path)?;
    for _ in 0..POLLS_MAX {
        std::thread::sleep(POLL_INTERVAL);
        let now = transcript_file::stamp(path)?;
        if now == last {
            break;
        }
        last = now;
    }
    Ok(())
}
