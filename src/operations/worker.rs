//! Work on one root of a fleet: pull it, compact it, push it.
//!
//! The folder on this machine is a copy, kept so that the next run fetches only what changed. Whatever is wrong with
//! it, it is removed and fetched again: what counts is in the store.
//!
//! A run is the same as that of `memoird compact`, which knows nothing of stores and leases.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt as _,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::Serialize;

use super::{
    compact::compact_due,
    error::{CommandError, CommandErrorKind, CommandResult},
    run_reporter::RunReporter,
    workspace::{ConfigOverrides, Invocation, MODEL_WAIT_MAX, MemoryRoot, require_writer},
};
use crate::{
    clock,
    compaction::{
        RunObserver, RunOutcome,
        plan::{CompactionPlan, Selection},
        report::RunReport,
    },
    config::{
        root::{ROOT_FILE_NAME, Zone, ZoneSource},
        zone::ZoneName,
    },
    engine::configured,
    fleet::{
        central_budget::CentralBudget,
        claims::{
            Claims, FinishedRoot, Lease,
            error::{ClaimsError, ClaimsErrorKind},
        },
        due_notes::{self, PublishedBundle},
        error::BundleError,
        heartbeat::Heartbeat,
        next_due::{backoff, next_due},
        pull::{self, FetchedManifest, FetchedSettings, PullRequest},
        push::{self, PushRequest},
        root_name::{ExpectedTenant, RootName},
    },
    store::fs::vault::{Vault, settings_files},
};

/// The host that `writer: fleet` of a `memoird.yaml` names: whoever holds the lease.
pub(crate) const FLEET_WRITER: &str = "fleet";
/// In the folder of persistent state: a state folder for each tenant, with its ledger. Not in `memoird`, which the
/// daemon's sandbox may write.
const TENANTS_FOLDER: &str = "memoird-tenants";
/// A log in the store is complete: nobody is writing it on this machine.
const NO_QUIET_PERIOD: &str = "compaction.quiet=0s";

/// What a worker works with.
pub(crate) struct Worker {
    /// The address below which the bundles are.
    pub(crate) store: String,
    /// The folder of the copies.
    pub(crate) cache: PathBuf,
    pub(crate) overrides: ConfigOverrides,
    /// Whether the bucket may keep former versions.
    pub(crate) accepts_versions: bool,
}

/// A root to work on.
pub(crate) struct WorkerTask<'a> {
    pub(crate) root: &'a RootName,
    /// Without one, the store alone decides who publishes.
    pub(crate) lease: Option<(&'a Arc<Claims>, &'a Lease)>,
    /// Whether this process is to stop.
    pub(crate) should_stop: &'a (dyn Fn() -> bool + Sync),
}

/// What was done with a root; a document of `schema/worker.schema.json`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WorkerReport {
    pub(crate) root: String,
    /// `done`, `failed`, or `lost`: another worker may have claimed it.
    pub(crate) outcome: &'static str,
    /// In the store.
    pub(crate) generation: u64,
    /// Jobs whose files were written.
    pub(crate) written: usize,
    /// Files that were published.
    pub(crate) published: usize,
    /// When it is due again, in seconds from now; `None`: not before a push.
    pub(crate) next_due_seconds: Option<u64>,
    /// Why it failed.
    pub(crate) problem: Option<String>,
}

/// What a run of a root left.
struct FinishedRun {
    /// 0 if the root was not published or found.
    generation: u64,
    bundle: Option<String>,
    written: usize,
    published: usize,
    next_due: Option<Duration>,
    problem: Option<String>,
}

/// Why work on a root ended.
enum WorkError {
    /// The copy does not fit the store; a fresh one will.
    BadCopy(String),
    /// There is no bundle.
    NoBundle(CommandError),
    /// The lease was lost.
    Lost,
    Command(CommandError),
}

impl WorkerTask<'_> {
    /// Works on the root, ends the lease, and returns what was done, and the error if the work was not done at all or
    /// its end not recorded.
    pub(crate) fn run(
        &self,
        worker: &Worker,
        reporter: &dyn RunReporter,
    ) -> (WorkerReport, Option<CommandError>) {
        let heartbeat =
            self.lease.map(|(claims, lease)| Heartbeat::start(Arc::clone(claims), lease.clone()));
        let is_lost = || heartbeat.as_ref().is_some_and(Heartbeat::is_lost);
        let done = self.work(worker, &is_lost, reporter);
        drop(heartbeat);
        let attempts = self.lease.map_or(1, |it| it.1.attempts);
        let (outcome, finished, error) = match done {
            Err(WorkError::NoBundle(error)) if self.is_abandoned() => {
                let run = FinishedRun::failed(None, &error.to_string());
                return (self.report("failed", &run), Some(error));
            }
            Ok(it) => (if it.problem.is_none() { "done" } else { "failed" }, it, None),
            Err(WorkError::Lost) => {
                let lost = FinishedRun::failed(None, "the lease was lost");
                return (self.report("lost", &lost), None);
            }
            // What failed was work on the generation of the claim; a newer one is due by itself.
            Err(WorkError::BadCopy(why)) => {
                let error = CommandError::new(CommandErrorKind::Data, why.clone());
                ("failed", FinishedRun::failed(Some(backoff(attempts)), &why), Some(error))
            }
            Err(WorkError::NoBundle(error) | WorkError::Command(error)) => {
                let why = error.to_string();
                ("failed", FinishedRun::failed(Some(backoff(attempts)), &why), Some(error))
            }
        };
        let claimed = self.lease.map_or(0, |it| u64::try_from(it.1.generation).unwrap_or(0));
        let is_known = finished.generation > 0;
        let generation = if is_known { finished.generation } else { claimed };
        let finished = FinishedRun { generation, ..finished };
        let mut report = self.report(outcome, &finished);
        if let Some((claims, lease)) = self.lease {
            let end = FinishedRoot {
                generation: finished.generation,
                bundle: finished.bundle,
                next_due: finished.next_due,
                drops_replies: finished.problem.is_none(),
                problem: finished.problem,
            };
            match claims.finish(lease, &end) {
                Ok(true) => {}
                Ok(false) => report.outcome = "lost",
                // The lease ends by itself, and the next worker finds nothing to do.
                Err(failed) => return (report, Some(failed.into())),
            }
        } else if finished.generation > 0
            && let Err(failed) = self.note_due(worker, &finished)
        {
            return (report, error.or(Some(failed)));
        }
        (report, error)
    }

    /// Ends the lease of a root without a bundle, if nobody ever reported it: a mistyped name is not kept.
    fn is_abandoned(&self) -> bool {
        let Some((claims, lease)) = self.lease else { return false };
        claims.abandon(lease).unwrap_or_else(|error| {
            tracing::warn!("{}: {error}", self.root);
            false
        })
    }

    /// Notes in the store when the root is due, for fleets without a claims database.
    fn note_due(&self, worker: &Worker, run: &FinishedRun) -> CommandResult<()> {
        let now = clock::now().map_err(CommandError::config)?;
        let published = PublishedBundle { generation: run.generation, bundle: run.bundle.clone() };
        Ok(due_notes::write(&worker.store, self.root, &published, run.next_due, now)?)
    }

    fn report(&self, outcome: &'static str, run: &FinishedRun) -> WorkerReport {
        WorkerReport {
            root: self.root.to_string(),
            outcome,
            generation: run.generation,
            written: run.written,
            published: run.published,
            next_due_seconds: run.next_due.map(|it| it.as_secs()),
            problem: run.problem.clone(),
        }
    }

    fn work(
        &self,
        worker: &Worker,
        is_lost: &(dyn Fn() -> bool + Sync),
        reporter: &dyn RunReporter,
    ) -> Result<FinishedRun, WorkError> {
        let folder = worker.folder(self.root);
        match self.attempt(worker, &folder, is_lost, reporter) {
            Err(WorkError::BadCopy(why)) => {
                tracing::info!("{}: fetching everything again: {why}", self.root);
                remove_copy(&folder)?;
                self.attempt(worker, &folder, is_lost, reporter)
            }
            result => result,
        }
    }

    fn attempt(
        &self,
        worker: &Worker,
        folder: &Path,
        is_lost: &(dyn Fn() -> bool + Sync),
        reporter: &dyn RunReporter,
    ) -> Result<FinishedRun, WorkError> {
        let url = self.root.url(&worker.store);
        // Whoever reports a push names the tenant; without a claims database nobody has to.
        let tenant = self.root.tenant().to_owned();
        let expected = ExpectedTenant { name: tenant.clone(), is_required: self.lease.is_some() };
        create_private(folder)?;
        let call = worker.invocation(self.root.tenant())?;
        let (root, fetched) = open_copy(&call, folder, &url, &expected)?;
        let bundle = root.bundle_root(&call);
        let request = PullRequest {
            accepts_missing: true,
            fetched,
            tenant: Some(expected.clone()),
            ..PullRequest::default()
        };
        let pulled = pull::pull(&bundle, &url, &request, &|_, _, _| {}).map_err(of_copy)?;
        if let Some(path) = pulled.conflicts.first().or(pulled.skipped.first()) {
            return Err(WorkError::BadCopy(format!("{} {}", path.path, path.note)));
        }
        // The settings may have changed.
        let (root, _) = open_copy(&call, folder, &url, &expected)?;
        let should_stop = || (self.should_stop)() || is_lost();
        let outcome = self.compact(&call, &root, &should_stop, reporter)?;
        if is_lost() {
            return Err(WorkError::Lost);
        }
        let request = PushRequest {
            tenant: Some(tenant),
            trusts_store: true,
            accepts_versions: worker.accepts_versions,
            ..PushRequest::default()
        };
        let guard = || match self.lease {
            None => Ok(()),
            Some((claims, lease)) if claims.renew(lease)? => Ok(()),
            Some(_) => Err(BundleError::LeaseLost { url: url.clone() }),
        };
        let bundle = root.bundle_root(&call);
        let pushed = push::push_guarded(&bundle, &url, &request, &guard, &|_, _, _| {});
        let pushed = pushed.map_err(of_copy)?;
        if let Some(path) = pushed.conflicts.first().or(pushed.skipped.first()) {
            return Err(WorkError::BadCopy(format!("{} {}", path.path, path.note)));
        }
        let RunOutcome { report, plan, .. } = &outcome;
        let problem = problem_of(report);
        let attempts = self.lease.map_or(1, |it| it.1.attempts);
        Ok(FinishedRun {
            generation: pushed.generation,
            bundle: pushed.bundle,
            written: report.written,
            published: pushed.published.len(),
            // What others published meanwhile is not in the plan.
            next_due: if pushed.incoming > 0 {
                Some(Duration::ZERO)
            } else {
                next_attempt(plan, problem.is_some(), attempts, &call)
            },
            problem,
        })
    }

    fn compact(
        &self,
        call: &Invocation,
        root: &MemoryRoot,
        should_stop: &(dyn Fn() -> bool + Sync),
        reporter: &dyn RunReporter,
    ) -> Result<RunOutcome, WorkError> {
        require_writer(call, root)?;
        root.require_memory_folder()?;
        let engine = match self.lease {
            None => root.engine(call)?,
            Some((claims, lease)) => {
                let shared = CentralBudget::new(Arc::clone(claims), lease.clone());
                configured::open_shared_engine(
                    &call.config,
                    &root.settings,
                    &call.environment,
                    MODEL_WAIT_MAX,
                    Arc::new(shared),
                )
                .map_err(|e| CommandError::config(e).hint("memoird doctor"))?
            }
        };
        let reporter = StoppableReporter { reporter, should_stop };
        Ok(compact_due(call, root, engine.as_ref(), &Selection::default(), &reporter)?)
    }
}

impl Worker {
    /// Returns the folder of the copy of a root.
    fn folder(&self, root: &RootName) -> PathBuf {
        self.cache.join(root.tenant()).join(root.id())
    }

    /// Reads the configuration as a worker of a tenant has it.
    ///
    /// The ledger of this machine is that of the tenant: in one for all, a process of a tenant could read which roots
    /// others have, use up their budget, and pause their model.
    pub(crate) fn invocation(&self, tenant: &str) -> CommandResult<Invocation> {
        let mut overrides = self.overrides.clone();
        overrides.set.push(NO_QUIET_PERIOD.to_owned());
        let mut call = Invocation::read(&overrides)?;
        FLEET_WRITER.clone_into(&mut call.environment.host);
        call.environment.state_home = call.environment.state_home.join(TENANTS_FOLDER).join(tenant);
        Ok(call)
    }
}

impl FinishedRun {
    fn failed(next_due: Option<Duration>, problem: &str) -> Self {
        let problem = Some(problem.to_owned());
        Self { generation: 0, bundle: None, written: 0, published: 0, next_due, problem }
    }
}

/// Returns when there is work again. A run that failed waits longer each time.
fn next_attempt(
    plan: &CompactionPlan,
    has_failed: bool,
    attempts: u32,
    call: &Invocation,
) -> Option<Duration> {
    let due = next_due(plan, call.now, Duration::ZERO);
    if has_failed && due == Some(Duration::ZERO) { Some(backoff(attempts)) } else { due }
}

/// Returns why jobs of a run failed.
fn problem_of(report: &RunReport) -> Option<String> {
    if let Some(model) = &report.model {
        return Some(model.clone());
    }
    let failed = report.jobs.iter().find(|it| it.outcome == "failed");
    failed.map(|it| format!("{} {}: {}", it.tier, it.period, it.reason))
}

/// Creates a folder that only this user may read, with its parents.
pub(crate) fn create_private(folder: &Path) -> CommandResult<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
        CommandError::cannot_write(format!("cannot create `{}`: {error}", folder.display()))
            .hint("name another folder with --cache")
    })
}

fn remove_copy(folder: &Path) -> CommandResult<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(
            CommandError::cannot_write(format!("cannot remove `{}`: {error}", folder.display())),
        ),
        _ => Ok(()),
    }
}

/// Opens the copy of a root with the settings of its bundle.
fn open_copy(
    call: &Invocation,
    folder: &Path,
    url: &str,
    tenant: &ExpectedTenant,
) -> Result<(MemoryRoot, Option<FetchedManifest>), WorkError> {
    let file = folder.join(ROOT_FILE_NAME);
    let root = call.open_root(folder)?;
    if file.is_file() {
        return Ok((root, None));
    }
    let FetchedSettings { text, fetched } =
        pull::fetch_settings(&root.vault, url, Some(tenant)).map_err(of_copy)?;
    if let Some(text) = text {
        settings_files::write_settings(&file, &text).map_err(CommandError::from)?;
        return Ok((call.open_root(folder)?, Some(fetched)));
    }
    // A bundle without the file: its manifest has what the generated files depend on.
    let (agent_name, zone, memory_dir) = fetched.description();
    let mut settings = root.settings;
    agent_name.clone_into(&mut settings.agent_name);
    if let Ok(name) = zone.parse::<ZoneName>() {
        settings.zone = Zone { name, source: ZoneSource::RootFile };
    }
    if memory_dir != settings.memory_dir.to_string_lossy() {
        let mut dir = PathBuf::new();
        for part in Path::new(memory_dir).components() {
            match part {
                Component::CurDir => {}
                Component::Normal(name) => dir.push(name),
                _ => {
                    let what = format!("`{memory_dir}` of {url} leads out of the folder");
                    return Err(CommandError::new(CommandErrorKind::Data, what).into());
                }
            }
        }
        settings.memory_dir = dir;
    }
    let vault = Vault::for_root(&settings).map_err(CommandError::from)?;
    let rules = vault.rules();
    Ok((MemoryRoot { settings, vault, rules, only_reads: false }, Some(fetched)))
}

/// Decides what an error of a pull or push says about the copy.
fn of_copy(error: BundleError) -> WorkError {
    match error {
        BundleError::LeaseLost { .. } => WorkError::Lost,
        BundleError::NoBundle { .. } => WorkError::NoBundle(error.into()),
        // A fresh copy has no state, and fits whatever is there.
        BundleError::Unfinished { .. }
        | BundleError::BadState { .. }
        | BundleError::OtherMemoryDir { .. }
        | BundleError::OtherRoot { .. }
        | BundleError::OtherBundle { .. }
        | BundleError::MassRemoval { .. }
        | BundleError::Lineage(_)
        | BundleError::Vault(_) => WorkError::BadCopy(error.to_string()),
        error => WorkError::Command(error.into()),
    }
}

impl From<CommandError> for WorkError {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

impl From<ClaimsError> for CommandError {
    fn from(error: ClaimsError) -> Self {
        let (kind, hint) = match error.kind {
            ClaimsErrorKind::Address => (
                CommandErrorKind::Usage,
                "name it as postgres://USER@HOST/DATABASE, and the password in PGPASSWORD or in it",
            ),
            ClaimsErrorKind::Unreachable => (
                CommandErrorKind::Unavailable,
                "check the address and the network; nothing is claimed, published or spent meanwhile",
            ),
            ClaimsErrorKind::NoTls => (
                CommandErrorKind::Unavailable,
                "give the server a certificate that this machine trusts (SSL_CERT_FILE names one of your own); only in a \
                 network that you trust, end the address with `?sslmode=disable`",
            ),
            ClaimsErrorKind::Denied => {
                (CommandErrorKind::Unavailable, "check user, password and database of --claims")
            }
            ClaimsErrorKind::NoTables => {
                (CommandErrorKind::Config, "`memoird worker --init-claims` creates them")
            }
            ClaimsErrorKind::Older => (
                CommandErrorKind::Config,
                "`DROP SCHEMA memoird CASCADE` in it, which also forgets limits and what was spent, then `memoird worker \
                 --init-claims`; the first sweep finds every root",
            ),
            ClaimsErrorKind::Newer => (CommandErrorKind::Data, "use the newer memoird"),
            ClaimsErrorKind::Failed => {
                (CommandErrorKind::Unavailable, "the log of the PostgreSQL server may say more")
            }
        };
        Self::new(kind, error).hint(hint)
    }
}

/// Passes messages on, and stops a run when the process is to stop or the lease was lost.
struct StoppableReporter<'a> {
    reporter: &'a dyn RunReporter,
    should_stop: &'a (dyn Fn() -> bool + Sync),
}

impl RunReporter for StoppableReporter<'_> {
    fn warn(&self, text: &str) {
        self.reporter.warn(text);
    }

    fn note(&self, text: &str) {
        self.reporter.note(text);
    }

    fn detail(&self, text: &str) {
        self.reporter.detail(text);
    }

    fn progress(&self) -> Box<dyn RunObserver + '_> {
        Box::new(StopObserver(self.should_stop))
    }
}

/// Stops a run between two jobs.
struct StopObserver<'a>(&'a (dyn Fn() -> bool + Sync));

impl RunObserver for StopObserver<'_> {
    fn should_stop(&self) -> bool {
        (self.0)()
    }
}
