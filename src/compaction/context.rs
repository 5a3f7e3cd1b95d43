//! What the steps of a run borrow: the root, its database, the engine, the settings, and the clock.

use chrono::{DateTime, Utc};

use super::{
    error::{CompactionError, JobFailure},
    plan::{CompactionJob, CompactionPlan, Selection},
    report::{JobReport, RunObserver, RunReport},
    safety_copies,
    snapshot::{self, RootSnapshot},
};
use crate::{
    config::root::RootSettings,
    engine::{Engine, EngineError},
    memory::{hash::ContentHash, wisdom::WisdomFile},
    model::{CallError, WorkOutcome, failure::ErrorClass},
    privacy::PrivacyRules,
    store::{
        db::lineage::{
            Lineage, LineageError,
            jobs::{JobId, JobOutcome, NewJob, NewRun, Receipt, RunId},
        },
        fs::{
            lock::{RunLock, WriteLock, refuse_open_folder},
            vault::{Vault, VaultError, read::FileContents},
        },
    },
};

/// How often a job may fail before it waits for a person or for changed input.
const ATTEMPTS_MAX: u32 = 3;

/// The trigger of a run that undoes others.
pub(crate) const UNDO_TRIGGER: &str = "undo";
/// The trigger of a run of `doctor --repair`. Undoing it would restore the damage.
pub(crate) const REPAIR_TRIGGER: &str = "repair";
/// The trigger of a run of `review`.
pub(crate) const REVIEW_TRIGGER: &str = "review";

/// What the steps of a run work on and with.
pub(crate) struct RunContext<'a> {
    pub(crate) vault: &'a Vault,
    pub(crate) lineage: &'a mut Lineage,
    pub(crate) engine: &'a dyn Engine,
    pub(crate) settings: &'a RootSettings,
    /// The time, asked at the start of a run and for each receipt.
    pub(crate) clock: &'a dyn Fn() -> DateTime<Utc>,
    /// Repeats `WISDOM.md` in a block of a curated file, if the user wants that; called after each write of it and
    /// after each run.
    pub(crate) write_wisdom_block: WisdomBlockWriter,
}

/// Writes the block of `WISDOM.md` from the files of a root; see `recall::wisdom_block`. An error leaves it to the next
/// run.
pub(crate) type WisdomBlockWriter = fn(&Vault, &RootSettings) -> Result<(), VaultError>;

/// What a job wrote, before its receipt is recorded.
pub(crate) struct JobOutput {
    pub(crate) receipt: Receipt,
    pub(crate) paths: Vec<String>,
}

/// The tier of a run that is in progress.
pub(crate) struct TierRun<'a> {
    pub(crate) run: RunId,
    pub(crate) view: &'a RootSnapshot,
    pub(crate) watcher: &'a mut dyn RunObserver,
    pub(crate) report: &'a mut RunReport,
}

impl TierRun<'_> {
    /// Reports a job that has ended.
    pub(crate) fn finish(&mut self, done: JobReport) {
        self.watcher.job_finished(&done);
        self.report.push(done);
    }
}

/// Reads `WISDOM.md`; also returns its text, `None` if there is no file yet.
pub(crate) fn read_wisdom(
    vault: &Vault,
    settings: &RootSettings,
    rules: &PrivacyRules,
) -> Result<(Option<String>, WisdomFile), VaultError> {
    let text = vault.read_text(&vault.layout().wisdom())?;
    let file = match &text {
        Some(text) => WisdomFile::parse(text),
        None => WisdomFile::new(&rules.sanitize_agent_name(&settings.agent_name)),
    };
    Ok((text, file))
}

impl RunContext<'_> {
    /// Writes the block of `WISDOM.md` in a curated file, if the user wants one.
    ///
    /// What prevents it only now is no error: somebody is writing the file, or it is no file that may be written,
    /// which the scan reports.
    pub(crate) fn refresh_wisdom_block(&self) -> Result<(), VaultError> {
        match (self.write_wisdom_block)(self.vault, self.settings) {
            Err(error) if error.is_write_failure() || error.is_read_failure() => Err(error),
            Err(error) => {
                tracing::debug!("the block of WISDOM.md was not written: {error}");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Reads `WISDOM.md` as [`read_wisdom`] does.
    pub(crate) fn read_wisdom(
        &self,
        rules: &PrivacyRules,
    ) -> Result<(Option<String>, WisdomFile), VaultError> {
        read_wisdom(self.vault, self.settings, rules)
    }

    /// Waits for the run lock, but not forever. A database that was replaced meanwhile is an error:
    /// nobody reads what is written into the old one.
    pub(crate) fn acquire_run_lock(
        &self,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<RunLock, CompactionError> {
        let layout = self.vault.layout();
        refuse_open_folder(layout)?;
        let lock = RunLock::acquire(layout.root(), &layout.run_lock(), is_stopped)?;
        self.refuse_if_replaced()?;
        Ok(lock)
    }

    pub(crate) fn write_lock(&self) -> Result<WriteLock, CompactionError> {
        let lock = WriteLock::acquire(self.vault.layout().root())?;
        self.refuse_if_replaced()?;
        Ok(lock)
    }

    /// Returns an error if the database was replaced.
    pub(crate) fn refuse_if_replaced(&self) -> Result<(), LineageError> {
        if self.lineage.is_in_place() {
            return Ok(());
        }
        Err(LineageError::Replaced { path: self.lineage.path().to_owned() })
    }

    /// Reads the files and the record.
    pub(crate) fn take_snapshot(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<RootSnapshot, CompactionError> {
        snapshot::take_snapshot(self.vault, self.lineage, now)
    }

    pub(crate) fn plan(
        &self,
        view: &RootSnapshot,
        selection: &Selection,
        now: DateTime<Utc>,
    ) -> CompactionPlan {
        snapshot::plan_snapshot(view, self.settings, self.engine.id(), selection, now)
    }

    pub(crate) fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, CompactionError> {
        Self::bytes_of(self.vault.read(path))
    }

    /// Like [`Self::read_bytes`], without the record of a generated file.
    pub(crate) fn read_visible_bytes(
        &self,
        path: &str,
    ) -> Result<Option<Vec<u8>>, CompactionError> {
        Self::bytes_of(self.vault.read_visible(path))
    }

    fn bytes_of(
        read: Result<Option<FileContents>, VaultError>,
    ) -> Result<Option<Vec<u8>>, CompactionError> {
        match read {
            Ok(found) => Ok(found.map(|it| it.bytes)),
            // The content is unknown; the next run reports it.
            Err(VaultError::NotAFile { .. } | VaultError::TooLarge { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes temporary files that a crash left: they exist only while their process holds the
    /// write lock.
    pub(crate) fn remove_temp_files(&self) -> Result<(), CompactionError> {
        if !self.vault.temp_files()?.is_empty() {
            self.vault.remove_temp_files(&self.write_lock()?)?;
        }
        Ok(())
    }

    /// Returns the number of the run; the run begins with its first job.
    pub(crate) fn ensure_run(
        &mut self,
        run: &mut Option<RunId>,
        trigger: &str,
        now: DateTime<Utc>,
    ) -> Result<RunId, CompactionError> {
        if let Some(run) = *run {
            return Ok(run);
        }
        let owner = run_owner();
        let new = NewRun { trigger, version: env!("CARGO_PKG_VERSION"), owner: &owner, now };
        let begun = self.lineage.begin_run(&new)?;
        self.engine.begin_run(begun.0);
        tracing::Span::current().record("run", begun.0);
        *run = Some(begun);
        Ok(begun)
    }

    /// Ends a run, and updates the safety copies beside the database.
    pub(crate) fn end_run(&mut self, run: RunId) -> Result<(), CompactionError> {
        self.lineage.end_run(run, (self.clock)())?;
        safety_copies::update_commit_marker(self.vault, self.lineage)
    }

    pub(crate) fn new_job(&self, job: &CompactionJob) -> NewJob {
        NewJob {
            fingerprint: job.fingerprint,
            tier: job.tier,
            period: job.period,
            engine: self.engine.id().to_owned(),
            inputs: ContentHash::of(format!("{:?}", job.inputs)),
            now: (self.clock)(),
        }
    }

    /// Records that a job begins; `None` if another process does the same job now.
    pub(crate) fn begin_job(
        &mut self,
        run: RunId,
        job: &CompactionJob,
    ) -> Result<Option<JobId>, LineageError> {
        match self.lineage.begin_job(run, &self.new_job(job)) {
            Err(LineageError::AlreadyLive { .. }) => Ok(None),
            id => id.map(Some),
        }
    }

    /// Records how a job ended. A job that failed stops no other.
    pub(crate) fn finish_job(
        &mut self,
        job: &CompactionJob,
        id: JobId,
        made: Result<JobOutput, JobFailure>,
        tier: &mut TierRun<'_>,
    ) -> Result<(), CompactionError> {
        // If the run ends here, the reply stays for the next one.
        if !matches!(made, Err(JobFailure::Critical(_))) {
            let end = match &made {
                Err(JobFailure::AllRejected(_) | JobFailure::EnginePanicked) => {
                    WorkOutcome::Unusable
                }
                Err(JobFailure::Engine(EngineError::Model(call)))
                    if call.class() == ErrorClass::Request =>
                {
                    WorkOutcome::Unusable
                }
                Err(error) if error.is_transient() => WorkOutcome::Deferred,
                _ => WorkOutcome::Done,
            };
            self.engine.end_work(end);
        }
        let made = match made {
            Ok(made) => made,
            Err(JobFailure::Critical(error)) => return Err(error),
            Err(error) => {
                if let JobFailure::Engine(EngineError::Model(call)) = &error
                    && !matches!(call.class(), ErrorClass::Request | ErrorClass::Pending)
                {
                    tier.report.model = Some(call.to_string());
                    tier.report.unanswered += 1;
                }
                self.record_failure(job, id, &error)?
            }
        };
        let due = made.receipt.reason.clone().unwrap_or_else(|| job.reason.to_string());
        let done = JobReport::new(job.tier, job.period, &made.receipt, made.paths, &due);
        tier.finish(done);
        Ok(())
    }

    /// Records a failed job: the next runs try it again, three times in all.
    pub(crate) fn record_failure(
        &mut self,
        job: &CompactionJob,
        id: JobId,
        error: &JobFailure,
    ) -> Result<JobOutput, LineageError> {
        let excused = error.is_transient();
        let nothing = matches!(error, JobFailure::Engine(EngineError::EmptySources { .. }));
        let mut reason = error.to_string();
        if let Some(source) = std::error::Error::source(error)
            && !reason.contains(&source.to_string())
        {
            reason = format!("{reason}: {source}");
        }
        if let JobFailure::Engine(EngineError::Model(CallError::InvalidReply(_))) = error {
            reason = format!("{reason}; the reply is kept in .memoird/reply-unread-*.json");
        }
        let outcome = if nothing {
            JobOutcome::Skipped
        } else if !excused && self.lineage.failed_attempts(job.fingerprint)? + 1 >= ATTEMPTS_MAX {
            JobOutcome::Stuck
        } else {
            JobOutcome::Failed
        };
        let mut receipt = Receipt::new(outcome, Some(reason), (self.clock)());
        receipt.excused = excused;
        self.add_model_usage(&mut receipt);
        self.lineage.finish_job(id, &receipt)?;
        Ok(JobOutput { receipt, paths: Vec::new() })
    }

    /// Adds the cost of the work to a receipt.
    pub(crate) fn add_model_usage(&self, receipt: &mut Receipt) {
        let spent = self.engine.take_spent();
        receipt.metrics.model_calls += spent.calls;
        receipt.metrics.cost_usd += spent.cost_usd;
    }
}

/// Names this process and its boot, for people; the run lock shows whether it is alive.
pub(crate) fn run_owner() -> String {
    format!("{}@{}", std::process::id(), boot_id())
}

fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|it| it.trim().to_owned()).unwrap_or_default()
}
