//! Servers of others: moto (from `PyPI`) as a store that must pass, `s3s-fs` as one that must be refused.

use std::{
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use crate::{
    assert_same_files, check, compacted,
    fleet_home::Fleet,
    support::{CommandOutput, Root, skipped},
};

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A server process; ended when it is dropped.
struct ServerProcess {
    child: Child,
    url: String,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn is_wanted() -> bool {
    std::env::var("MEMOIRD_FLEET").is_ok_and(|it| it == "1")
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn start(command: &mut Command, port: u16) -> Option<ServerProcess> {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let mut server = ServerProcess { child, url: format!("http://127.0.0.1:{port}") };
    let started = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if started.elapsed() > START_TIMEOUT || server.child.try_wait().ok()?.is_some() {
            return None;
        }
        thread::sleep(Duration::from_millis(50));
    }
    Some(server)
}

/// Starts moto; `None` if it is not wanted or missing.
fn moto() -> Option<ServerProcess> {
    if !is_wanted() {
        skipped("MEMOIRD_FLEET=1 runs the tests with moto");
        return None;
    }
    let port = free_port();
    // With threads moto checks a condition and then writes, so that two writers win, and it is rightly refused.
    let program = format!(
        "from werkzeug.serving import run_simple\n\
         from moto.server import DomainDispatcherApplication, create_backend_app\n\
         app = DomainDispatcherApplication(create_backend_app)\n\
         run_simple('127.0.0.1', {port}, app, threaded=False)"
    );
    let python = match PYTHON.get_or_init(python_with_moto) {
        Ok(python) => python,
        Err(why) => {
            skipped(why);
            return None;
        }
    };
    let server = start(Command::new(python).args(["-c", &program]), port);
    if server.is_none() {
        skipped("moto does not start");
    }
    server
}

/// The Python that has moto, or why there is none.
static PYTHON: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// Returns the Python of `MEMOIRD_PYTHON`, that of the system if it has moto, or else one in a virtual environment in
/// the build folder, into which moto is installed once.
fn python_with_moto() -> Result<PathBuf, String> {
    if let Some(python) = std::env::var_os("MEMOIRD_PYTHON") {
        return Ok(python.into());
    }
    let succeeds = |program: &Path, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|it| it.success())
    };
    let has_moto = |it: &Path| succeeds(it, &["-c", "import moto.server, werkzeug"]);
    let system = PathBuf::from("python3");
    if has_moto(&system) {
        return Ok(system);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("moto");
    let python = folder.join("bin/python3");
    if has_moto(&python) {
        return Ok(python);
    }
    if !succeeds(&system, &["-m", "venv", folder.to_str().unwrap()]) {
        return Err("python3 with venv is missing: apt install python3-venv".to_owned());
    }
    let install = ["-m", "pip", "install", "--quiet", "moto[s3,server]"];
    if !succeeds(&python, &install) || !has_moto(&python) {
        return Err(format!(
            "moto could not be installed: {} {}",
            python.display(),
            install.join(" ")
        ));
    }
    Ok(python)
}

/// Sends a request to a server, without a library.
fn request(server: &ServerProcess, method: &str, path: &str, body: &str) {
    use std::io::{Read as _, Write as _};
    let address = server.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=testing/20260413/us-east-1/s3/aws4_request, \
         SignedHeaders=host, Signature=x\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer.split(' ').nth(1), Some("200"), "{answer}");
}

fn run(server: &ServerProcess, root: &Root, args: &[&str]) -> CommandOutput {
    let mut command = root.command(args);
    command
        .env("AWS_ENDPOINT_URL", &server.url)
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "testing")
        .env("AWS_SECRET_ACCESS_KEY", "testing")
        .env("AWS_REGION", "us-east-1");
    root.finish(command, args)
}

#[test]
fn moto_passes_and_holds_a_bundle() {
    let Some(server) = moto() else { return };
    request(&server, "PUT", "/team", "");
    let here = compacted();
    run(&server, &here, &["bundle", "push", "s3://team/lex"]).ok();
    let there = Root::empty("mara");
    run(&server, &there, &["bundle", "pull", "s3://team/lex", "--root", "."]).ok();
    assert_same_files(&here, &there);
    there.run(&["log", "From", "there"]).ok();
    run(&server, &there, &["bundle", "push"]).ok();
    run(&server, &here, &["bundle", "pull"]).ok();
    assert_same_files(&here, &there);
    run(&server, &here, &["forget", "From there", "--from-log", "--yes"]).ok();
    let empty = run(&server, &here, &["bundle", "push", "s3://nobody/lex"]);
    assert_ne!(empty.code, 0, "{empty}");
}

#[test]
fn workers_compact_roots_in_moto() {
    let Some(server) = moto() else { return };
    request(&server, "PUT", "/team", "");
    let variables = [
        ("AWS_ENDPOINT_URL", &server.url[..]),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "testing"),
        ("AWS_REGION", "us-east-1"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let dir = tempfile::tempdir().unwrap();
    let Some(fleet) = Fleet::with_store(dir, "s3://team".to_owned(), variables) else { return };
    fleet.push(&Root::new("mara"), "acme/mara");
    check(&fleet.run(&["--until-idle"]), 0, &["acme/mara: ", "generation 2"]);
    assert_same_files(&fleet.pull("acme/mara"), &compacted());
}

#[test]
fn a_versioned_bucket_of_moto_is_refused() {
    let Some(server) = moto() else { return };
    request(&server, "PUT", "/kept", "");
    let rule = "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                <Status>Enabled</Status></VersioningConfiguration>";
    request(&server, "PUT", "/kept?versioning", rule);
    let root = Root::small();
    check(
        &run(&server, &root, &["bundle", "push", "s3://kept/lex"]),
        78,
        &["keeps former versions"],
    );
    run(&server, &root, &["bundle", "push", "s3://kept/lex", "--accept-versions"]).ok();
}

#[test]
fn s3s_fs_is_refused() {
    let Ok(program) = std::env::var("MEMOIRD_S3S_FS") else {
        return skipped(
            "MEMOIRD_S3S_FS names the program s3s-fs (cargo install s3s-fs --features binary)",
        );
    };
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("team")).unwrap();
    let port = free_port();
    let mut command = Command::new(program);
    command
        .args(["--host", "127.0.0.1", "--port", &port.to_string()])
        .args(["--access-key", "testing", "--secret-key", "testing"])
        .arg(dir.path());
    let Some(server) = start(&mut command, port) else {
        return skipped("s3s-fs does not start");
    };
    check(
        &run(&server, &Root::small(), &["bundle", "push", "s3://team/lex"]),
        78,
        &["lost a race"],
    );
}
