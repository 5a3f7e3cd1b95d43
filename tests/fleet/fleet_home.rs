//! A fleet on one machine: a store in a folder, a claims database, and worker processes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{
    namespaces::Namespace,
    postgres::Postgres,
    support::{CommandOutput, Root},
};

/// A store, a claims database, and the home of the workers.
pub(crate) struct Fleet {
    pub(crate) postgres: Postgres,
    pub(crate) dir: TempDir,
    store: String,
    variables: Vec<(String, String)>,
}

impl Fleet {
    /// Starts a fleet with a store in a folder; `None` without PostgreSQL.
    pub(crate) fn start() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().canonicalize().unwrap().join("store");
        fs::create_dir(&store).unwrap();
        Self::with_store(dir, format!("file://{}", store.display()), Vec::new())
    }

    /// Starts a fleet with this store, whose credentials are in these variables.
    pub(crate) fn with_store(
        dir: TempDir,
        store: String,
        variables: Vec<(String, String)>,
    ) -> Option<Self> {
        let fleet = Self { postgres: Postgres::start()?, dir, store, variables };
        let created = fleet.worker(&["--init-claims"]).output().unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        Some(fleet)
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(relative)
    }

    pub(crate) fn url(&self, root: &str) -> String {
        format!("{}/{root}", self.store)
    }

    /// Publishes a root and reports it.
    #[track_caller]
    pub(crate) fn push(&self, root: &Root, name: &str) {
        let url = self.url(name);
        let args = ["bundle", "push", &url];
        let mut command = root.command(&args);
        command.env("MEMOIRD_CLAIMS", self.postgres.url());
        // As the workers have it: what is due depends on it.
        command.env("MEMOIRD_WISDOM_DIGEST", "true");
        command.envs(self.variables.iter().cloned());
        let output = root.finish(command, &args).ok();
        assert!(!output.stderr.contains("not reported"), "{output}");
    }

    /// Brings a root to a fresh folder.
    #[track_caller]
    pub(crate) fn pull(&self, name: &str) -> Root {
        let root = Root::empty(name.rsplit('/').next().unwrap());
        let url = self.url(name);
        let args = ["bundle", "pull", &url, "--root", "."];
        let mut command = root.command(&args);
        command.envs(self.variables.iter().cloned());
        root.finish(command, &args).ok();
        root
    }

    /// Returns a worker of the machine `main`.
    pub(crate) fn worker(&self, args: &[&str]) -> Command {
        self.worker_on("main", args)
    }

    /// Returns a worker of a machine: with a home and copies of its own.
    pub(crate) fn worker_on(&self, machine: &str, args: &[&str]) -> Command {
        let home = self.path(machine);
        fs::create_dir_all(&home).unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("memoird"));
        command
            .args(["worker", "--store", &self.store])
            .args(args)
            .env_clear()
            .env("PATH", "/nonexistent")
            .env("HOME", &home)
            .env("TZ", "Europe/Berlin")
            .env("MEMOIRD_NOW", crate::support::NOW)
            .env("MEMOIRD_CLAIMS", self.postgres.url())
            .envs(self.variables.iter().cloned())
            .current_dir(&home);
        command
    }

    /// Starts a worker in the background.
    pub(crate) fn spawn(&self, machine: &str, args: &[&str]) -> WorkerProcess {
        start(self.worker_on(machine, args))
    }

    /// Starts a worker in the background, in a network of its own. The store must be in the network.
    pub(crate) fn spawn_in(&self, network: &Network<'_>, args: &[&str]) -> WorkerProcess {
        let Network { namespace, claims_port, store_port } = network;
        let inner = self.worker_on(&namespace.name, args);
        let mut command = Command::new("/usr/sbin/ip");
        command.args(["netns", "exec", &namespace.name]).arg(inner.get_program());
        command.args(inner.get_args()).env_clear().current_dir(inner.get_current_dir().unwrap());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let host = namespace.host();
        let claims = format!("postgres://worker:secret@{host}:{claims_port}/fleet?sslmode=disable");
        command.env("MEMOIRD_CLAIMS", claims);
        command.env("AWS_ENDPOINT_URL", format!("http://{host}:{store_port}"));
        start(command)
    }

    /// Runs a worker to its end.
    pub(crate) fn run(&self, args: &[&str]) -> CommandOutput {
        finish(self.worker(args), args)
    }
}

/// A namespace, and the ports of the servers as it sees them.
pub(crate) struct Network<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) claims_port: u16,
    pub(crate) store_port: u16,
}

fn start(mut command: Command) -> WorkerProcess {
    WorkerProcess(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Runs a prepared worker to its end.
pub(crate) fn finish(mut command: Command, args: &[&str]) -> CommandOutput {
    let output = command.output().unwrap();
    CommandOutput {
        line: format!("memoird worker {}", args.join(" ")),
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A worker in the background; killed with the process of its turn when it is dropped.
pub(crate) struct WorkerProcess(pub(crate) Child);

impl WorkerProcess {
    /// Returns the process of the turn, if there is one now.
    pub(crate) fn turn(&self) -> Option<i32> {
        let pid = self.0.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// Kills the process of the turn. Returns whether there was one.
    pub(crate) fn kill_turn(&self) -> bool {
        self.turn().is_some_and(|it| signal(it, rustix::process::Signal::KILL))
    }
}

impl WorkerProcess {
    /// Kills the worker with the process of its turn.
    pub(crate) fn kill(&mut self) {
        let turn = self.turn();
        drop(self.0.kill());
        drop(self.0.wait());
        if let Some(pid) = turn {
            signal(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal to a process that a test started. Returns whether it is still there.
pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) -> bool {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, signal).is_ok()
}

/// Returns the fingerprints of jobs that wrote their file more than once.
pub(crate) fn written_twice(root: &Path) -> Vec<String> {
    let database = rusqlite::Connection::open(root.join(".memoird/lineage.db")).unwrap();
    let mut query = database
        .prepare(
            "SELECT fingerprint FROM activity WHERE outcome = 'written' GROUP BY fingerprint \
             HAVING count(*) > 1",
        )
        .unwrap();
    query.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}
