//! `memoird worker`: compacts the roots of a fleet.
//!
//! A worker has no state of its own: what is due and who works on it is in the claims database, the roots are in the
//! store. The process that takes turns sees no root; for each turn of a tenant it starts itself again, and that process
//! enters a sandbox of this tenant before it reads anything.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use tokio::{
    runtime,
    signal::unix::{SignalKind, signal},
};

use super::{GlobalArgs, logging, run::hide_panic_messages, ui::Ui};
use crate::{
    config::duration::Span,
    daemon::{
        runtime_config::RuntimeConfig,
        sandbox::{SandboxLimits, SandboxStatus, port_of},
    },
    fleet::{
        claims::{ClaimTarget, Claimed, Claims, Turn},
        due_notes::{self, DueRoot},
        root_name::{self, RootName},
        storage::{StorageScheme, normalized_url},
        sweep::sweep,
    },
    operations::{
        error::{CommandError, CommandErrorKind, CommandResult},
        replica::CLAIMS_VARIABLE,
        worker::{Worker, WorkerReport, WorkerTask, create_private},
        workspace::Invocation,
    },
};

/// Compact the memory folders of a fleet, out of object storage
///
/// Takes the roots that are due from a claims database (PostgreSQL), one tenant after the other, brings each to the local
/// disk, runs the same compaction as `memoird compact`, and publishes the result. Any number of workers may run; none
/// has state of its own, and what a dead one worked on is claimed again when its lease has run out.
///
/// The bundle of a root is at STORE/TENANT/ROOT. `memoird bundle push --claims` publishes it and reports when it is due.
/// The password of the database may be in PGPASSWORD.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct WorkerArgs {
    /// The address below which the bundles are (file, s3, gs, or az)
    #[arg(long, value_name = "URL", required_unless_present = "init_claims")]
    store: Option<String>,
    /// The claims database, as `postgres://USER@HOST/DATABASE`. Default: `MEMOIRD_CLAIMS`
    #[arg(long, value_name = "URL")]
    claims: Option<String>,
    /// Work on this root once, due or not, as TENANT/ROOT; without --claims the store alone decides who publishes
    #[arg(long, value_name = "ROOT", value_parser = str::parse::<RootName>, conflicts_with_all = ["tenant", "until_idle"])]
    once: Option<RootName>,
    /// Serve only this tenant, in a sandbox
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Exit when nothing is due
    #[arg(long)]
    until_idle: bool,
    /// How long a lease lasts if the worker does not renew it
    #[arg(long, value_name = "TIME", default_value = "60s")]
    lease: Span,
    /// The folder of the copies; you may delete it while no worker runs
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// The bucket keeps former versions, and its lifecycle rule removes them: `forget` cannot
    #[arg(long)]
    accept_versions: bool,
    /// How often one of the workers lists the store for pushes that were not reported
    #[arg(long, value_name = "TIME", default_value = "24h")]
    sweep_every: Span,
    /// Create the tables of the claims database, and exit
    #[arg(long, conflicts_with_all = ["once", "tenant", "until_idle"])]
    init_claims: bool,
    /// List the roots that are due by the notes of `bundle push --due` and of workers without a claims database, and exit
    #[arg(long, conflicts_with_all = ["once", "tenant", "until_idle", "init_claims"])]
    list_due: bool,
    /// Run without the sandbox
    #[arg(long)]
    no_sandbox: bool,
    /// Exit after this many roots
    #[arg(long, value_name = "N", hide = true)]
    roots_max: Option<u32>,
}

/// The roots of one turn. More would let other tenants wait longer, fewer would start more processes.
const ROOTS_PER_TURN: u32 = 8;
/// The shortest and the longest pause before the claims database is asked again. The longest is less than the time in
/// which the root of a dead worker must be found.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The longest pause after the claims database or the store did not answer.
const OUTAGE_PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long a signal may wait to be noticed in a pause.
const STOP_POLL: Duration = Duration::from_millis(50);
/// The exit codes of a turn whose command line or configuration is wrong: for every tenant, as those of a root are
/// recorded with it.
const NO_USE_TO_REPEAT: [i32; 2] = [2, 78];
/// A shorter lease ends while a store is slow.
const LEASE_MIN: Duration = Duration::from_secs(1);

/// What `--json` prints at the end of `--until-idle` or after a signal: `schema/worker.schema.json`.
#[derive(Debug, Default, Deserialize, Serialize)]
struct WorkerTotals {
    /// Roots of which all that was due is done.
    done: u64,
    /// Roots that are tried again later.
    failed: u64,
    /// Roots that another worker may have claimed.
    lost: u64,
}

/// What `--list-due --json` prints: every root with a note.
#[derive(Debug, Serialize)]
struct DueReport {
    now: DateTime<Utc>,
    roots: Vec<DueRoot>,
}

pub(super) fn run(global: &GlobalArgs, args: &WorkerArgs, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    let claims_url = args.claims.clone();
    let claims_url =
        claims_url.or_else(|| call.environment.variable(CLAIMS_VARIABLE).map(str::to_owned));
    if args.init_claims {
        return create_tables(claims_url.as_deref(), ui);
    }
    if args.lease.as_duration() < LEASE_MIN {
        return Err(CommandError::usage("--lease is too short (at least 1s)"));
    }
    let store = normalized_url(args.store.as_deref().unwrap_or_default());
    let cache = args.cache.clone().unwrap_or_else(|| default_cache(&call));
    let worker = Worker {
        store,
        cache: call.environment.absolute(&cache, &call.environment.cwd),
        overrides: global.config_overrides(),
        accepts_versions: args.accept_versions,
    };
    StorageScheme::of(&worker.store).map_err(crate::fleet::error::BundleError::Storage)?;
    if args.list_due {
        return list_due(&worker.store, call.now, ui);
    }
    if args.once.is_none() && claims_url.is_none() {
        return Err(CommandError::usage("a worker needs a claims database, or one root")
            .hint("memoird worker --store URL --claims postgres://USER@HOST/DATABASE")
            .hint("memoird worker --store URL --once TENANT/ROOT")
            .hint("memoird worker --store URL --list-due"));
    }
    hide_panic_messages();
    if args.once.is_none() {
        logging::start_for_worker(global, ui);
    }
    let stop = StopSignal::listen()?;
    let session = Session { global, args, worker, claims_url, stop, ui };
    if let Some(root) = &args.once {
        return session.work_once(root);
    }
    match &args.tenant {
        Some(tenant) => session.serve_tenant(tenant),
        None => session.take_turns(),
    }
}

/// Lists the roots that are due by the notes in a store.
fn list_due(store: &str, now: DateTime<Utc>, ui: &Ui) -> CommandResult {
    let mut roots = due_notes::list(store)?;
    if ui.is_json() {
        ui.json(&DueReport { now, roots });
        return Ok(ExitCode::SUCCESS);
    }
    let known = roots.len();
    if known == 0 {
        ui.warn(format!(
            "no root has a note at {store}; `memoird bundle push --due {store}/TENANT/ROOT` writes one"
        ));
    }
    roots.retain(|it| it.due.is_some_and(|it| it <= now));
    for root in &roots {
        ui.data(&root.root);
    }
    ui.note(format!("{} of {known} roots due", roots.len()));
    Ok(ExitCode::SUCCESS)
}

/// Creates the tables of the claims database.
fn create_tables(url: Option<&str>, ui: &Ui) -> CommandResult {
    let Some(url) = url else {
        return Err(CommandError::usage("--init-claims needs the claims database")
            .hint("memoird worker --init-claims --claims postgres://USER@HOST/DATABASE"));
    };
    let was_missing = Claims::create_tables(url)?;
    if Claims::open(url)?.bypasses_policies()? {
        ui.warn(
            "this user sees the rows of all tenants whatever the policies are: let workers connect as a role that is \
             no superuser",
        );
    }
    if ui.is_json() {
        ui.json(&serde_json::json!({ "created": was_missing }));
    } else {
        ui.success(if was_missing {
            "created the claims tables"
        } else {
            "the claims tables exist"
        });
    }
    Ok(ExitCode::SUCCESS)
}

fn default_cache(call: &Invocation) -> PathBuf {
    // Not in the folder of the program's own state, which every sandbox may write.
    call.environment.state_home.join("memoird-worker")
}

/// A worker process.
struct Session<'a> {
    global: &'a GlobalArgs,
    args: &'a WorkerArgs,
    worker: Worker,
    claims_url: Option<String>,
    stop: StopSignal,
    ui: &'a Ui,
}

impl Session<'_> {
    /// Works on one root, due or not.
    fn work_once(&self, root: &RootName) -> CommandResult {
        self.enter_sandbox(root.tenant())?;
        let claims = self.claims_url.as_deref().map(Claims::open).transpose()?.map(Arc::new);
        let should_stop = || self.stop.is_set();
        let lease = match &claims {
            None => None,
            Some(claims) => {
                let target = ClaimTarget::Named(root);
                match claims.claim(target, &owner(), self.args.lease.as_duration())? {
                    Claimed::Lease(lease) => Some(lease),
                    Claimed::Held(rest) => {
                        let seconds = rest.as_secs() + 1;
                        let what = format!(
                            "another worker holds {root}; its lease ends in {seconds} s if it is dead"
                        );
                        return Err(CommandError::new(CommandErrorKind::Busy, what)
                            .hint("run the command again later"));
                    }
                    Claimed::Nothing => {
                        return Err(CommandError::new(
                            CommandErrorKind::Busy,
                            format!("{root} could not be claimed"),
                        ));
                    }
                }
            }
        };
        let lease = claims.as_ref().zip(lease.as_ref());
        let task = WorkerTask { root, lease, should_stop: &should_stop };
        let (report, error) = task.run(&self.worker, self.ui);
        if self.ui.is_json() {
            self.ui.json(&report);
        }
        if let Some(error) = error {
            return Err(error);
        }
        self.show(&report);
        Ok(match report.outcome {
            "done" => ExitCode::SUCCESS,
            "lost" => CommandErrorKind::Busy.exit_code().into(),
            _ => CommandErrorKind::Job.exit_code().into(),
        })
    }

    /// Works on the roots of one tenant.
    fn serve_tenant(&self, tenant: &str) -> CommandResult {
        root_name::check_part(tenant).map_err(CommandError::usage)?;
        self.enter_sandbox(tenant)?;
        let claims = Arc::new(self.open_claims()?);
        let mut totals = WorkerTotals::default();
        let mut outage = Outage::default();
        let (mut left, is_turn) =
            (self.args.roots_max.unwrap_or(u32::MAX), self.args.roots_max.is_some());
        while left > 0 && !self.stop.is_set() {
            let lease = self.args.lease.as_duration();
            match claims.claim(ClaimTarget::DueOf(tenant), &owner(), lease) {
                Ok(Claimed::Lease(lease)) => {
                    outage = Outage::default();
                    left -= u32::from(is_turn);
                    let should_stop = || self.stop.is_set();
                    let task = WorkerTask {
                        root: &lease.root,
                        lease: Some((&claims, &lease)),
                        should_stop: &should_stop,
                    };
                    let (report, error) = task.run(&self.worker, self.ui);
                    if let Some(error) = &error {
                        self.ui.warn(format!("{}: {error}", lease.root));
                    } else {
                        self.show(&report);
                    }
                    if error.is_some_and(|it| it.kind() == CommandErrorKind::Unavailable) {
                        outage.pause(&self.stop);
                    }
                    totals.count(&report);
                }
                Ok(_) if is_turn || self.args.until_idle => break,
                Ok(_) => self.stop.pause(PAUSE_MAX),
                Err(error) if is_turn => return Err(error.into()),
                Err(error) => {
                    self.ui.warn(error);
                    outage.pause(&self.stop);
                }
            }
        }
        self.show_totals(&totals);
        Ok(super::error_report::exit_code_if_failed(totals.failed > 0))
    }

    /// Takes turns: the tenant that has waited longest is served by a process of its own.
    fn take_turns(&self) -> CommandResult {
        let claims = self.open_claims()?;
        create_private(&self.worker.cache)?;
        let (mut has_failed, mut totals) = (false, WorkerTotals::default());
        let mut outage = Outage::default();
        let mut sweep_checked: Option<Instant> = None;
        while !self.stop.is_set() {
            let is_time = sweep_checked.is_none_or(|it| it.elapsed() > SWEEP_CHECK);
            if is_time {
                self.sweep_if_due(&claims);
                sweep_checked = Some(Instant::now());
            }
            match claims.next_turn() {
                Ok(Turn::Tenant(tenant)) => {
                    // A name that is no part of a path was not recorded by memoird.
                    if let Err(error) = root_name::check_part(&tenant) {
                        self.ui.warn(error);
                        self.stop.pause(PAUSE_MAX);
                        continue;
                    }
                    let (status, of_turn) = self.run_turn(&tenant)?;
                    totals.add(&of_turn);
                    match status.code() {
                        Some(0) => outage = Outage::default(),
                        // A root failed, which is recorded with it; others go on.
                        Some(code) if code == i32::from(CommandErrorKind::Job.exit_code()) => {
                            (has_failed, outage) = (true, Outage::default());
                        }
                        // No other turn would do better, and the process has printed why.
                        Some(code) if NO_USE_TO_REPEAT.contains(&code) => {
                            self.show_totals(&totals);
                            return Ok(u8::try_from(code).map_or(ExitCode::FAILURE, Into::into));
                        }
                        Some(_) => {
                            has_failed = true;
                            outage.pause(&self.stop);
                        }
                        // Somebody killed it: its root is claimed again when the lease has run out.
                        None => has_failed = true,
                    }
                }
                Ok(Turn::Wait(_)) if self.args.until_idle => break,
                Ok(Turn::Wait(rest)) => {
                    outage = Outage::default();
                    self.stop.pause(rest.unwrap_or(PAUSE_MAX).clamp(PAUSE_MIN, PAUSE_MAX));
                }
                Err(error) => {
                    self.ui.warn(error);
                    outage.pause(&self.stop);
                }
            }
        }
        self.show_totals(&totals);
        Ok(super::error_report::exit_code_if_failed(has_failed && self.args.until_idle))
    }

    /// Runs this program for one turn of a tenant. With `--json`, also returns what it did; nothing if it was killed.
    fn run_turn(&self, tenant: &str) -> CommandResult<(ExitStatus, WorkerTotals)> {
        let failed = |error: std::io::Error| {
            CommandError::cannot_write(format!("cannot start a process for {tenant}: {error}"))
        };
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["worker", "--store", &self.worker.store, "--tenant", tenant]);
        command.args(["--roots-max", &ROOTS_PER_TURN.to_string()]);
        command.args(["--lease", &self.args.lease.to_string()]);
        command.arg("--cache").arg(&self.worker.cache);
        if let Some(file) = &self.worker.overrides.file {
            command.arg("--config").arg(file);
        }
        for set in &self.worker.overrides.set {
            command.args(["--set", set]);
        }
        let flags = [
            (self.args.accept_versions, "--accept-versions"),
            (self.args.no_sandbox, "--no-sandbox"),
            (self.global.quiet, "--quiet"),
            (self.global.verbose, "--verbose"),
            (self.ui.is_json(), "--json"),
        ];
        command.args(flags.iter().filter(|it| it.0).map(|it| it.1));
        // Not as an argument, which every user of the machine may read.
        command.env(CLAIMS_VARIABLE, self.claims_url.as_deref().unwrap_or_default());
        command.stdin(Stdio::null());
        if self.ui.is_json() {
            command.stdout(Stdio::piped());
        }
        let child = command.spawn().map_err(failed)?;
        self.stop.forward_to(Pid::from_child(&child));
        // Reads stdout only if it is a pipe.
        let output = child.wait_with_output();
        self.stop.forward_to_nobody();
        let output = output.map_err(failed)?;
        Ok((output.status, serde_json::from_slice(&output.stdout).unwrap_or_default()))
    }

    /// Reports pushes that were not, if no worker has looked for them lately.
    fn sweep_if_due(&self, claims: &Claims) {
        let swept = claims.begin_sweep(self.args.sweep_every.as_duration());
        match swept.map_err(Into::into).and_then(|is_due| {
            if is_due { sweep(claims, &self.worker.store).map(Some) } else { Ok(None) }
        }) {
            Ok(None) => {}
            Ok(Some(found)) => {
                if found.roots == 0 {
                    self.ui.warn(format!(
                        "no bundle at {0}; if there should be one, --store names the folder above TENANT/ROOT",
                        self.worker.store
                    ));
                }
                for reason in &found.refused {
                    self.ui.warn(reason);
                }
                if found.reported > 0 {
                    self.ui.note(format!(
                        "found {} of {} roots whose last push was not reported",
                        found.reported, found.roots
                    ));
                }
            }
            Err(error) => {
                self.ui.warn(format!("the store was not swept: {error}"));
                if let Err(error) = claims.abandon_sweep() {
                    self.ui.warn(error);
                }
            }
        }
    }

    fn open_claims(&self) -> CommandResult<Claims> {
        Ok(Claims::open(self.claims_url.as_deref().unwrap_or_default())?)
    }

    /// Restricts this process to the copies of one tenant and to the servers that it needs.
    fn enter_sandbox(&self, tenant: &str) -> CommandResult<()> {
        let folder = self.worker.cache.join(tenant);
        create_private(&folder)?;
        if self.args.roots_max.is_some() {
            // Whoever started this process is gone then; the root is finished, and no other begun.
            let _ = set_parent_process_death_signal(Some(Signal::TERM));
        }
        if self.args.no_sandbox {
            return Ok(());
        }
        let call = self.worker.invocation(tenant)?;
        if let Some(state) = call.environment.ledger_path().parent() {
            create_private(state)?;
        }
        let Invocation { environment, config, .. } = call;
        let loaded = RuntimeConfig { environment, config, roots: vec![folder] };
        let mut limits = SandboxLimits::of(&loaded);
        add_servers(&mut limits, &self.worker.store, tenant, self.claims_url.as_deref())?;
        let entered = limits.enter().map_err(|error| {
            CommandError::config(format!("cannot enter the sandbox of {tenant}: {error}"))
                .hint("--no-sandbox runs without it: then nothing but the permissions of the user separates tenants")
        })?;
        if entered == SandboxStatus::Unsupported {
            self.ui.warn("no sandbox: this kernel has no Landlock, so nothing separates the tenants of a machine");
        }
        Ok(())
    }

    fn show(&self, report: &WorkerReport) {
        let WorkerReport { root, outcome, generation, written, published, .. } = report;
        if self.ui.is_json() {
            return;
        }
        match (*outcome, &report.problem) {
            ("lost", _) => self.ui.warn(format!("{root}: the lease was lost")),
            (_, Some(problem)) => self.ui.warn(format!("{root}: {problem}")),
            _ => self.ui.note(format!(
                "{root}: {written} written, {published} published, generation {generation}"
            )),
        }
    }

    fn show_totals(&self, totals: &WorkerTotals) {
        if self.ui.is_json() {
            self.ui.json(totals);
        }
    }
}

/// How often a worker asks whether a sweep is due.
const SWEEP_CHECK: Duration = Duration::from_secs(600);

impl WorkerTotals {
    fn count(&mut self, report: &WorkerReport) {
        match report.outcome {
            "done" => self.done += 1,
            "lost" => self.lost += 1,
            _ => self.failed += 1,
        }
    }

    fn add(&mut self, other: &Self) {
        self.done += other.done;
        self.failed += other.failed;
        self.lost += other.lost;
    }
}

/// Adds the store of the tenant and the ports of the servers.
fn add_servers(
    limits: &mut SandboxLimits,
    store: &str,
    tenant: &str,
    claims: Option<&str>,
) -> CommandResult<()> {
    const DNS: u16 = 53;
    const HTTP: u16 = 80;
    const HTTPS: u16 = 443;
    if let Some(folder) = store.strip_prefix("file://") {
        limits.writable.push(Path::new(folder).join(tenant));
        let notes = due_notes::tenant_url(store, tenant);
        if let Some(notes) = notes.strip_prefix("file://").filter(|_| claims.is_none()) {
            create_private(Path::new(notes))?;
            limits.writable.push(notes.into());
        }
    }
    let token = std::env::var_os("AWS_WEB_IDENTITY_TOKEN_FILE");
    limits.readable.extend(token.map(PathBuf::from));
    let claims_ports = match claims {
        Some(url) => Claims::ports_of(url)?,
        None => Vec::new(),
    };
    if let Some(ports) = &mut limits.ports {
        ports.extend(claims_ports);
        // The credentials of a role come over HTTP from the machine's host.
        ports.extend([DNS, HTTP, HTTPS]);
        let endpoint = std::env::var("AWS_ENDPOINT_URL").ok();
        ports.extend(endpoint.as_deref().and_then(port_of));
    }
    Ok(())
}

/// Names this claim: the machine and the process, for people, and a count.
fn owner() -> String {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let mut bytes = [0_u8; 8];
    // Without randomness the fence still distinguishes claims.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    format!("{host}/{}/{:016x}", std::process::id(), u64::from_le_bytes(bytes))
}

/// Grows the pause while servers do not answer.
#[derive(Default)]
struct Outage {
    failures: u32,
}

impl Outage {
    fn pause(&mut self, stop: &StopSignal) {
        let pause = Duration::from_millis(500).saturating_mul(1 << self.failures.min(8));
        self.failures += 1;
        stop.pause(pause.min(OUTAGE_PAUSE_MAX));
    }
}

/// SIGTERM or SIGINT: the root in work is finished as far as its current job, and no other begun.
struct StopSignal {
    is_set: Arc<AtomicBool>,
    child: Arc<Mutex<Option<Pid>>>,
}

impl StopSignal {
    /// Listens on a thread of its own, which ends with the process.
    fn listen() -> CommandResult<Self> {
        let is_set = Arc::new(AtomicBool::new(false));
        let child: Arc<Mutex<Option<Pid>>> = Arc::default();
        let (flag, target) = (Arc::clone(&is_set), Arc::clone(&child));
        let failed =
            |error: std::io::Error| CommandError::cannot_write(format!("no signals: {error}"));
        let runtime = runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
        let guard = runtime.enter();
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        drop(guard);
        thread::spawn(move || {
            runtime.block_on(async move {
                loop {
                    tokio::select! {
                        _ = terminate.recv() => {},
                        _ = interrupt.recv() => {},
                    }
                    flag.store(true, Ordering::SeqCst);
                    let pid = *target.lock().unwrap_or_else(PoisonError::into_inner);
                    let _ = pid.map(|it| kill_process(it, Signal::TERM));
                }
            });
        });
        Ok(Self { is_set, child })
    }

    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }

    fn forward_to(&self, pid: Pid) {
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(pid);
        if self.is_set() {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    fn forward_to_nobody(&self) {
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits, but not longer than until the signal.
    fn pause(&self, duration: Duration) {
        let started = Instant::now();
        while !self.is_set() && started.elapsed() < duration {
            thread::sleep(STOP_POLL.min(duration.saturating_sub(started.elapsed())));
        }
    }
}
