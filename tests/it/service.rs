//! `memoird service`: the systemd unit and the calls of the user's service manager.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use super::support::{CommandOutput, Root, skipped, write_file};

/// Returns a home with two configured folders and a fake service manager that records its calls.
fn home() -> Root {
    let root = Root::small();
    write_file(&root.home("other/memoird.yaml"), "zone: Europe/Berlin\n");
    write_file(
        &root.home(".config/memoird/config.yaml"),
        "roots: [{path: ~/small}, {path: ~/other}]\n",
    );
    fake_service_manager(&root);
    root
}

/// Writes a service manager into `~/bin` that records its calls.
pub(crate) fn fake_service_manager(root: &Root) {
    let script = |name: &str, text: &str| {
        write_program(root, name, &format!("echo {name} \"$@\" >>\"$HOME/calls\"\n{text}"));
    };
    script(
        "systemctl",
        "[ \"$2\" = show ] && printf 'ActiveState=active\\nUnitFileState=enabled\\nMainPID=7\\nNRestarts=0\\nStatusText=watching\\n'\nexit 0\n",
    );
    script("loginctl", "echo no\n");
}

/// Writes a shell script into `~/bin`.
fn write_program(root: &Root, name: &str, text: &str) {
    let path = root.home(&format!("bin/{name}"));
    fs::create_dir_all(root.home("bin")).unwrap();
    // Written by a shell: a file open for writing in this process could not be executed if another test
    // starts a process at this moment.
    let write = ["-c", "printf %s \"$1\" >\"$0\""];
    let text = format!("#!/bin/sh\n{text}");
    let shell = Command::new("/bin/sh").args(write).arg(&path).arg(text).status();
    assert!(shell.unwrap().success());
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(root: &Root, args: &[&str]) -> CommandOutput {
    let mut command = root.command(args);
    command.env("PATH", root.home("bin")).env("USER", "mara");
    root.finish(command, args)
}

fn unit(root: &Root) -> String {
    fs::read_to_string(root.home(".config/systemd/user/memoird.service")).unwrap()
}

/// Returns the recorded calls of the service manager, and clears them.
pub(crate) fn take_calls(root: &Root) -> String {
    let calls = fs::read_to_string(root.home("calls")).unwrap_or_default();
    drop(fs::remove_file(root.home("calls")));
    calls
}

#[test]
fn the_service_can_be_installed_shown_and_removed() {
    let root = home();
    let dry = run(&root, &["service", "install", "--dry-run"]).ok();
    assert!(dry.stderr.contains("would write ~/.config/systemd/user/memoird.service"), "{dry}");
    assert!(!root.home(".config/systemd").exists());
    let installed = run(&root, &["service", "install"]).ok();
    assert!(installed.stderr.contains("loginctl enable-linger"), "{installed}");
    let calls = take_calls(&root);
    assert!(calls.contains("--user daemon-reload\n"), "{calls}");
    assert!(calls.contains("--user enable --now memoird.service\n"), "{calls}");
    // The service can access the folders, the configuration, the ledger, and nothing else.
    let text = unit(&root);
    let home = root.home("");
    let home = home.to_str().unwrap().trim_end_matches('/');
    for line in ["BindPaths=-H/small", "BindPaths=-H/other", "BindPaths=H/.local/state/memoird"] {
        assert!(text.contains(&format!("\n{}\n", line.replace('H', home))), "{line}\n{text}");
    }
    assert!(text.contains(&format!("BindReadOnlyPaths=-{home}/.config/memoird\n")), "{text}");
    assert_eq!(
        fs::metadata(root.home(".local/state/memoird")).unwrap().permissions().mode() & 0o777,
        0o700
    );
    // Changed paths are updated; a unit that a person wrote is not replaced.
    write_file(&root.home(".config/memoird/config.yaml"), "roots: [{path: ~/small}]\n");
    let status = run(&root, &["service", "status"]).ok();
    assert!(status.stdout.contains("with other paths than those configured"), "{status}");
    assert!(status.stdout.contains("service   active (process 7), enabled"), "{status}");
    run(&root, &["service", "install"]).ok();
    assert!(!unit(&root).contains("/other"));
    assert!(take_calls(&root).contains("--user restart memoird.service"));
    write_file(
        &root.home(".config/systemd/user/memoird.service"),
        "[Service]\nExecStart=/bin/true\n",
    );
    let refused_install = run(&root, &["service", "install"]);
    assert_eq!(refused_install.code, 2, "{refused_install}");
    assert!(
        refused_install.stderr.contains("memoird service install --force"),
        "{refused_install}"
    );
    run(&root, &["service", "install", "--force"]).ok();
    assert!(unit(&root).contains("/small"));
    // Removing the service needs confirmation.
    let refused = run(&root, &["service", "uninstall"]);
    assert_eq!(refused.code, 2, "{refused}");
    run(&root, &["service", "uninstall", "--dry-run"]).ok();
    assert!(root.home(".config/systemd/user/memoird.service").exists());
    run(&root, &["service", "uninstall", "--yes"]).ok();
    assert!(!root.home(".config/systemd/user/memoird.service").exists());
    assert!(take_calls(&root).contains("--user disable --now memoird.service"));
    let again = run(&root, &["service", "uninstall", "--yes"]).ok();
    assert!(again.stderr.contains("nothing to do"), "{again}");
    root.run(&["status"]).ok();
}

#[test]
fn the_service_can_be_printed_for_either_manager() {
    let root = home();
    let systemd = run(&root, &["service", "print", "--for", "systemd"]).ok();
    assert!(systemd.stdout.contains("memoird run\n"), "{systemd}");
    let launchd = run(&root, &["service", "print", "--for", "launchd"]).ok();
    assert!(launchd.stdout.starts_with("<?xml "), "{launchd}");
    assert!(launchd.stdout.contains("memoird</string>\n        <string>run</string>"), "{launchd}");
    assert!(launchd.stdout.contains("/Library/Logs/memoird.log</string>"), "{launchd}");
    assert!(!root.home("Library").exists() && take_calls(&root).is_empty());
}

#[test]
fn with_a_model_program_the_service_runs_without_namespaces() {
    let root = home();
    let config = "roots: [{path: ~/small}]\nmodel: {provider: command, command: [my-model]}\n";
    write_file(&root.home(".config/memoird/config.yaml"), config);
    let installed = run(&root, &["service", "install"]).ok();
    assert!(
        installed.stderr.contains("runs without namespaces: the model is a program"),
        "{installed}"
    );
    let drop_in = root.home(".config/systemd/user/memoird.service.d/plain.conf");
    assert!(fs::read_to_string(&drop_in).unwrap().contains("PrivateUsers=no"));
    write_file(&root.home(".config/memoird/config.yaml"), "roots: [{path: ~/small}]\n");
    run(&root, &["service", "install"]).ok();
    assert!(!drop_in.exists());
}

#[test]
fn without_folders_there_is_nothing_to_install() {
    let root = Root::small();
    let refused = run(&root, &["service", "install"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("memoird init DIR --service"), "{refused}");
}

#[test]
fn the_unit_passes_the_systemd_security_analysis() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/memoird.service");
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--threshold=16"])
        .arg(unit)
        .output();
    let Ok(output) = output else {
        skipped("systemd-analyze is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("Overall exposure level") {
        skipped("this systemd-analyze cannot analyze a file");
        return;
    }
    assert!(output.status.success(), "{text}");
}

#[test]
fn without_a_bus_of_the_user_the_status_says_what_to_do() {
    let root = home();
    run(&root, &["service", "install"]).ok();
    for name in ["systemctl", "loginctl"] {
        write_program(
            &root,
            name,
            "echo 'Failed to connect to bus: No medium found' >&2\nexit 1\n",
        );
    }
    insta::assert_snapshot!(run(&root, &["service", "status"]), @r"
    $ memoird service status
    unit      ~/.config/systemd/user/memoird.service
    service   unknown (systemd has no session for this user: log in as the user, not by su or sudo)
    sandbox   sees the memory folders and nothing else of your home
    ");
}
