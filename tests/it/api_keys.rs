//! The API key of a model never appears in what the program prints, writes, logs or passes to other
//! programs, whichever way the key was supplied.

use std::{
    fs::{self, Permissions},
    io::Read as _,
    os::unix::{fs::PermissionsExt as _, net::UnixDatagram, process::ExitStatusExt as _},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::support::{CommandOutput, NOW, Root, assert_absent, assert_in_no_file, write_file};

/// A made-up key.
const KEY: &str = "sk-test-7Zq4Wm9xK2vB5nR8tL3p";

/// The part of the key that no output may contain, so that a shortened or quoted key is found too.
const KEY_PART: &str = "7Zq4Wm9x";

/// The three ways to supply a key, highest priority first.
#[derive(Clone, Copy, Debug)]
enum KeySource {
    File,
    Credential,
    Variable,
}

/// Writes a file of the home.
fn write(root: &Root, relative: &str, text: &str, mode: u32) -> PathBuf {
    let path = root.home(relative);
    write_file(&path, text);
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

impl KeySource {
    /// Supplies the key; returns the environment variable to set and the file that holds the key.
    fn supply(self, root: &Root) -> (Option<(&'static str, String)>, Option<PathBuf>) {
        match self {
            Self::File => {
                let config = "model: { key_file: ~/keys/model }\n";
                write(root, ".config/memoird/config.yaml", config, 0o644);
                (None, Some(write(root, "keys/model", &format!("{KEY}\n"), 0o600)))
            }
            Self::Credential => {
                let file = write(root, "credentials/memoird-api-key", KEY, 0o400);
                let dir = file.parent().unwrap().to_str().unwrap().to_owned();
                (Some(("CREDENTIALS_DIRECTORY", dir)), Some(file))
            }
            Self::Variable => (Some(("MEMOIRD_API_KEY", KEY.to_owned())), None),
        }
    }
}

#[track_caller]
fn check_source(source: KeySource) {
    let root = Root::small();
    let (variable, file) = source.supply(&root);
    let run = |args: &[&str]| -> CommandOutput {
        let mut command = root.command(args);
        command.envs(variable.clone()).env("MEMOIRD_LOG", "trace").env("RUST_BACKTRACE", "1");
        let ran = root.finish(command, args);
        assert_absent(ran.stdout.as_bytes(), KEY_PART, &format!("{source:?} {ran}"));
        assert_absent(ran.stderr.as_bytes(), KEY_PART, &format!("{source:?} {ran}"));
        ran
    };
    for args in [
        &["init", "-v"][..],
        &["status", "-v"],
        &["status", "--json"],
        &["log", "-v", "Backfill checked"],
        &["compact", "-v"],
        &["show", "2026-W10"],
        &["trace", "memory/weekly/2026-W10.md", "--json"],
        &["coverage", "-v"],
        &["history", "--json"],
    ] {
        run(args).ok();
    }
    // Errors do not reveal the key either.
    for args in [
        &["show", "nothing"][..],
        &["compact", "-v", "--period", "2026-99"],
        &["status", "--set", "model.context_tokens=1"],
        &["status", "--config", "none.yaml"],
        &["model", "test", "-v", "--set", "model.base_url=http://127.0.0.1:1/v1"],
        &["compact", "-v", "--set", "engine=model", "--set", "model.base_url=http://10.0.0.1/v1"],
        &["run", "-v", "--set", "engine=model", "--set", "model.base_url=http://10.0.0.1/v1"],
    ] {
        assert_ne!(run(args).code, 0);
    }
    let doctor = run(&["doctor", "-v"]).ok();
    let expected = match source {
        KeySource::File => "~/keys/model, not readable by others",
        KeySource::Credential => "the systemd credential memoird-api-key",
        KeySource::Variable => "the variable MEMOIRD_API_KEY",
    };
    assert!(
        doctor.stdout.contains(&format!("ok    keys                 {expected}\n")),
        "{doctor}"
    );

    check_daemon(&root, variable.as_ref());
    assert_in_no_file(&root.home(""), KEY_PART, file.as_deref());
}

/// Runs the daemon until it is watching and checks what other processes can see of it.
fn check_daemon(root: &Root, variable: Option<&(&'static str, String)>) {
    let path = root.home("notify.sock");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("memoird"))
        .args(["run", "-v"])
        .env_clear()
        .env("HOME", root.home(""))
        .env("TZ", "Europe/Berlin")
        .env("MEMOIRD_NOW", NOW)
        .env("MEMOIRD_LOG", "trace")
        .env("NOTIFY_SOCKET", &path)
        .envs(variable.cloned())
        .current_dir(root.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The daemon would wait for a reader once the pipe is full.
    let mut stderr = child.stderr.take().unwrap();
    let log = thread::spawn(move || {
        let mut bytes = Vec::new();
        stderr.read_to_end(&mut bytes).map(|_| bytes)
    });
    let mut buffer = [0; 4096];
    loop {
        let length = socket.recv(&mut buffer).expect("the daemon becomes idle");
        assert_absent(&buffer[..length], KEY_PART, "a message to the service manager");
        if String::from_utf8_lossy(&buffer[..length]).contains("STATUS=watching") {
            break;
        }
    }
    let of_process = |name: &str| fs::read(format!("/proc/{}/{name}", child.id())).unwrap();
    assert_absent(&of_process("cmdline"), KEY_PART, "the command line");
    let limits = String::from_utf8(of_process("limits")).unwrap();
    let cores = limits.lines().find(|it| it.starts_with("Max core file size")).unwrap();
    assert_eq!(cores.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"]);
    assert!(root.path(".memoird/daemon.json").exists());
    assert_in_no_file(&root.path(".memoird"), KEY_PART, None);
    // A reload reads the configuration and the environment again.
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_absent(&output.stdout, KEY_PART, "stdout of the daemon");
    let log = log.join().unwrap().unwrap();
    assert_absent(&log, KEY_PART, "the log");
    assert!(String::from_utf8_lossy(&log).contains("watching"));
}

#[test]
fn a_key_from_a_file_is_never_shown() {
    check_source(KeySource::File);
}

#[test]
fn a_key_from_a_systemd_credential_is_never_shown() {
    check_source(KeySource::Credential);
}

#[test]
fn a_key_from_the_environment_is_never_shown() {
    check_source(KeySource::Variable);
}

#[test]
fn a_key_file_readable_by_others_is_refused_with_a_fix() {
    let root = Root::small();
    let (_, file) = KeySource::File.supply(&root);
    let file = file.unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let ran = root.run(&["doctor"]);
    assert_eq!(ran.code, 1);
    let line = ran.stdout.lines().find(|it| it.contains("  keys ")).unwrap();
    insta::assert_snapshot!(line, @"bad   keys                 the key file `~/keys/model` is open to other users (mode 644), so they may already know the key; chmod 600 '~/keys/model'");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    write(&root, "keys/model", &format!("{KEY}\n{KEY}\n"), 0o600);
    let ran = root.run(&["doctor"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("`~/keys/model` has more than one line; write the key"), "{ran}");
    assert_absent(ran.stdout.as_bytes(), KEY_PART, "stdout");
    // A configured key file takes precedence over the variable, even if the file is invalid.
    let mut command = root.command(&["doctor"]);
    command.env("MEMOIRD_API_KEY", KEY);
    assert_eq!(root.finish(command, &["doctor"]).code, 1);
}

/// A key in the wrong place is refused, and the error does not repeat it.
#[test]
fn errors_do_not_quote_a_misplaced_key() {
    for config in [
        "model: { api_key: KEY }",
        "model: { key_file: KEY }",
        "model: { provider: KEY }",
        "model: { base_url: 'https://user:KEY@api.example' }",
        "model: { base_url: 'https://api.example/v1?key=KEY' }",
        "model: { base_url: KEY }",
        "model: { context_tokens: KEY }",
        "engine: KEY",
        "KEY: 1",
        "roots: KEY",
        "roots: [{ path: a, zone: KEY }]",
        "schedule: { weekly: KEY }",
        "history: { keep: KEY }",
        "on_problem: KEY",
        "compaction: { grace: KEY",
        "KEY",
    ] {
        let root = Root::small();
        write(&root, ".config/memoird/config.yaml", &config.replace("KEY", KEY), 0o600);
        for args in [&["status"][..], &["run"], &["doctor"], &["doctor", "--json"]] {
            let ran = root.run(args);
            assert_ne!(ran.code, 0, "{config}: {ran}");
            assert_absent(format!("{}{}", ran.stdout, ran.stderr).as_bytes(), KEY_PART, config);
        }
        // The file that contains the key is still named.
        let doctor = root.run(&["doctor"]).stdout;
        assert!(doctor.contains("config.yaml, line 1: looks like a key"), "{doctor}");
    }
    let root = Root::small();
    let ran = root.run(&["status", "--api-key", KEY]);
    assert_eq!(ran.code, 2, "no option takes a key");
    assert_absent(ran.stderr.as_bytes(), KEY_PART, "stderr");
    for args in [["--set", KEY], ["--set", &format!("engine={KEY}")]] {
        let ran = root.run(&[&["status"], &args[..]].concat());
        assert_eq!(ran.code, 2);
        assert_absent(ran.stderr.as_bytes(), KEY_PART, "stderr");
    }
    for name in ["MEMOIRD_MODEL_KEY_FILE", "MEMOIRD_ENGINE", "MEMOIRD_MODEL_BASE_URL"] {
        let mut command = root.command(&["status"]);
        command.env(name, KEY);
        let ran = root.finish(command, &["status"]);
        assert_eq!(ran.code, 78);
        assert_absent(ran.stderr.as_bytes(), KEY_PART, "stderr");
    }
}

#[test]
fn doctor_warns_about_a_key_in_a_comment_or_an_argument() {
    let root = Root::small();
    let config = format!("engine: extractive\n# my key: {KEY}\n");
    write(&root, ".config/memoird/config.yaml", &config, 0o600);
    let ran = root.run(&["doctor", "--set", &format!("model.name={KEY}")]).ok();
    let keys: Vec<&str> =
        ran.stdout.lines().skip_while(|it| !it.contains("  keys ")).take(2).collect();
    assert!(keys[0].starts_with("note  keys "), "{ran}");
    assert!(
        keys[0].contains("config.yaml, line 2: looks like a key; move it to its own file"),
        "{ran}"
    );
    assert!(keys[1].contains("an argument of this call looks like a key"), "{ran}");
    assert_absent(ran.stdout.as_bytes(), KEY_PART, "stdout");
}

#[test]
fn child_programs_do_not_inherit_the_key() {
    let root = Root::empty("a");
    write(&root, "bin/systemctl", "#!/bin/sh\nexport -p >> \"$HOME/inherited\"\n", 0o755);
    let args = ["init", "--service"];
    let mut command = root.command(&args);
    command
        .env("PATH", root.home("bin"))
        .env("MEMOIRD_API_KEY", KEY)
        .env("CREDENTIALS_DIRECTORY", "/run/credentials/x");
    root.finish(command, &args).ok();
    let inherited = fs::read_to_string(root.home("inherited")).unwrap();
    assert!(inherited.contains("HOME="), "{inherited}");
    assert!(!inherited.contains("API_KEY") && !inherited.contains("CREDENTIALS"), "{inherited}");
    assert_absent(inherited.as_bytes(), KEY_PART, "the environment of a child");
}

#[test]
fn a_crash_leaves_no_core_dump() {
    let root = Root::small();
    let path = root.home("notify.sock");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let program = assert_cmd::cargo::cargo_bin!("memoird").display().to_string();
    let mut child = Command::new("/bin/sh")
        .args(["-c", &format!("ulimit -c unlimited 2>&-; exec '{program}' run")])
        .env_clear()
        .env("HOME", root.home(""))
        .env("MEMOIRD_NOW", NOW)
        .env("NOTIFY_SOCKET", &path)
        .current_dir(root.path(""))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    socket.recv(&mut [0; 4096]).expect("the daemon is ready");
    kill_process(Pid::from_child(&child), Signal::ABORT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::ABORT.as_raw()));
    assert!(!status.core_dumped());
}
