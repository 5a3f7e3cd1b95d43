//! A PostgreSQL server in a temporary folder, run as another user, as it requires.

use std::{
    fs,
    net::TcpStream,
    os::unix::{
        fs::{PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    s3::{free_port, is_wanted},
    support::{skipped, write_file},
};

const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The user of the server. It may not be root.
const USER: &str = "postgres";

/// A server with the database `fleet`, owned by the role `worker`, which is no superuser.
pub(crate) struct Postgres {
    child: Child,
    port: u16,
    programs: PathBuf,
    /// PgBouncer and its port, if it is between workers and server.
    pooler: Option<(Child, u16)>,
    dir: TempDir,
}

impl Postgres {
    /// Starts a server; `None` if it is not wanted or missing.
    pub(crate) fn start() -> Option<Self> {
        if !is_wanted() {
            skipped("MEMOIRD_FLEET=1 runs the tests with PostgreSQL");
            return None;
        }
        let (Some(programs), Some((uid, gid))) = (programs(), user()) else {
            skipped("PostgreSQL is missing: apt install postgresql");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = dir.path().join("data");
        fs::create_dir(&data).unwrap();
        chown(&data, Some(uid), Some(gid)).unwrap();
        let password = dir.path().join("password");
        write_file(&password, "secret\n");
        let data_text = data.to_str().unwrap();
        let mut initialize = Command::new(programs.join("initdb"));
        initialize
            .args(["-D", data_text, "-U", "admin", "-A", "scram-sha-256", "-E", "UTF8"])
            .args(["--locale=C", "--no-sync", "--pwfile", password.to_str().unwrap()]);
        let output =
            initialize.uid(uid).gid(gid).current_dir(dir.path()).output().expect("initdb starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let port = free_port();
        let child = server(&programs, data_text, port, uid, gid);
        let mut server = Self { child, port, programs, pooler: None, dir };
        let started = Instant::now();
        while server.try_sql("admin", "postgres", "SELECT 1").is_none() {
            assert!(started.elapsed() < START_TIMEOUT, "PostgreSQL does not start");
            thread::sleep(Duration::from_millis(50));
        }
        server.try_sql("admin", "postgres", "CREATE ROLE worker LOGIN PASSWORD 'secret'").unwrap();
        server.try_sql("admin", "postgres", "CREATE DATABASE fleet OWNER worker").unwrap();
        if std::env::var("MEMOIRD_PGBOUNCER").is_ok_and(|it| it == "1") {
            assert!(server.start_pooler());
        }
        Some(server)
    }

    /// Puts PgBouncer in transaction mode, with one connection to the server, before the database. Returns whether it
    /// is installed.
    pub(crate) fn start_pooler(&mut self) -> bool {
        const PROGRAM: &str = "/usr/sbin/pgbouncer";
        if self.pooler.is_some() {
            return true;
        }
        let Some((uid, gid)) = user().filter(|_| Path::new(PROGRAM).is_file()) else {
            return false;
        };
        let port = free_port();
        let users = self.dir.path().join("users");
        write_file(&users, "\"worker\" \"secret\"\n");
        let config = self.dir.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\n\
             pool_mode = transaction\ndefault_pool_size = 1\nmax_client_conn = 200\n",
            self.port,
            users.display()
        );
        write_file(&config, &text);
        let mut command = Command::new(PROGRAM);
        command.arg(&config).uid(uid).gid(gid).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.current_dir("/").spawn().unwrap();
        self.pooler = Some((child, port));
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < START_TIMEOUT, "PgBouncer does not start");
            thread::sleep(Duration::from_millis(50));
        }
        true
    }

    /// Returns the address of the database, with the password.
    pub(crate) fn url(&self) -> String {
        format!("postgres://worker:secret@127.0.0.1:{}/fleet", self.port())
    }

    /// Returns the port that workers use.
    pub(crate) fn port(&self) -> u16 {
        self.pooler.as_ref().map_or(self.port, |it| it.1)
    }

    /// Runs statements as the role of the workers, for a tenant, and returns the last result.
    #[track_caller]
    pub(crate) fn sql(&self, tenant: &str, statement: &str) -> String {
        let statement = format!("SET memoird.tenant = '{tenant}'; {statement}");
        self.try_sql("worker", "fleet", &statement).unwrap()
    }

    /// Runs statements as the superuser, who sees all tenants.
    #[track_caller]
    pub(crate) fn admin(&self, statement: &str) -> String {
        self.try_sql("admin", "fleet", statement).unwrap()
    }

    fn try_sql(&self, user: &str, database: &str, statement: &str) -> Option<String> {
        let mut command = Command::new(self.programs.join("psql"));
        command
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", user, "-d", database])
            .args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-c", statement])
            .env("PGPASSWORD", "secret");
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        output.status.success().then(|| text.trim().to_owned())
    }
}

impl Postgres {
    /// Ends the server at once, as a crash would.
    pub(crate) fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        drop(self.child.wait());
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some((pooler, _)) = &mut self.pooler {
            drop(pooler.kill());
            drop(pooler.wait());
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

fn server(programs: &Path, data: &str, port: u16, uid: u32, gid: u32) -> Child {
    let mut command = Command::new(programs.join("postgres"));
    command
        .args(["-D", data, "-p", &port.to_string(), "-k", ""])
        .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=200"])
        .uid(uid)
        .gid(gid)
        .current_dir("/")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Returns the folder of the programs of the newest version.
fn programs() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("MEMOIRD_POSTGRES") {
        return Some(folder.into());
    }
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<_> = versions.map(|it| it.unwrap().path().join("bin")).collect();
    folders.retain(|it| it.join("initdb").is_file());
    folders.sort();
    folders.pop()
}

/// Returns the ids of the user that runs the server: `postgres`, or this one if it is not root.
fn user() -> Option<(u32, u32)> {
    let own = rustix::process::geteuid();
    if !own.is_root() {
        return Some((own.as_raw(), rustix::process::getegid().as_raw()));
    }
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|it| it.split(':').next() == Some(USER))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
