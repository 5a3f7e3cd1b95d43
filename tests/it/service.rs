//! `memoird service`: the unit, and what the user's service manager is told.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use super::{
    run::write,
    support::{Ran, Root, skipped},
};

/// A home with two configured folders and a service manager that only takes notes.
fn home() -> Root {
    let root = Root::small();
    write(&root.home("other/memoird.yaml"), "zone: Europe/Berlin\n");
    write(&root.home(".config/memoird/config.yaml"), "roots: [{path: ~/small}, {path: ~/other}]\n");
    let script = |name: &str, text: &str| {
        let path = root.home(&format!("bin/{name}"));
        let text = format!("#!/bin/sh\necho {name} \"$@\" >>\"$HOME/asked\"\n{text}");
        fs::create_dir_all(root.home("bin")).unwrap();
        // Written here it would be open in what other tests start this moment, and could not be run.
        let write = ["-c", "printf %s \"$1\" >\"$0\""];
        let shell = Command::new("/bin/sh").args(write).arg(&path).arg(text).status();
        assert!(shell.unwrap().success());
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    script(
        "systemctl",
        "[ \"$2\" = show ] && printf 'ActiveState=active\\nUnitFileState=enabled\\nMainPID=7\\nNRestarts=0\\nStatusText=watching\\n'\nexit 0\n",
    );
    script("loginctl", "echo no\n");
    root
}

fn run(root: &Root, args: &[&str]) -> Ran {
    let mut command = root.command(args);
    command.env("PATH", root.home("bin")).env("USER", "mara");
    root.finish(command, args)
}

fn unit(root: &Root) -> String {
    fs::read_to_string(root.home(".config/systemd/user/memoird.service")).unwrap()
}

fn asked(root: &Root) -> String {
    let asked = fs::read_to_string(root.home("asked")).unwrap_or_default();
    drop(fs::remove_file(root.home("asked")));
    asked
}

#[test]
fn the_service_is_installed_shown_and_removed() {
    let root = home();
    let dry = run(&root, &["service", "install", "--dry-run"]).ok();
    assert!(dry.stderr.contains("would write ~/.config/systemd/user/memoird.service"), "{dry}");
    assert!(!root.home(".config/systemd").exists());
    let installed = run(&root, &["service", "install"]).ok();
    assert!(installed.stderr.contains("loginctl enable-linger"), "{installed}");
    let told = asked(&root);
    assert!(told.contains("--user daemon-reload\n"), "{told}");
    assert!(told.contains("--user enable --now memoird.service\n"), "{told}");
    // It sees the folders, the configuration, the ledger, and nothing else.
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
    // Nothing that a person wrote is replaced; paths that changed are.
    write(&root.home(".config/memoird/config.yaml"), "roots: [{path: ~/small}]\n");
    let status = run(&root, &["service", "status"]).ok();
    assert!(status.stdout.contains("with other paths than those configured"), "{status}");
    assert!(status.stdout.contains("service   active (process 7), enabled"), "{status}");
    run(&root, &["service", "install"]).ok();
    assert!(!unit(&root).contains("/other"));
    assert!(asked(&root).contains("--user restart memoird.service"));
    write(&root.home(".config/systemd/user/memoird.service"), "[Service]\nExecStart=/bin/true\n");
    let kept = run(&root, &["service", "install"]);
    assert_eq!(kept.code, 2, "{kept}");
    assert!(kept.stderr.contains("memoird service install --force"), "{kept}");
    run(&root, &["service", "install", "--force"]).ok();
    assert!(unit(&root).contains("/small"));
    // It goes only when a person says so.
    let refused = run(&root, &["service", "uninstall"]);
    assert_eq!(refused.code, 2, "{refused}");
    run(&root, &["service", "uninstall", "--dry-run"]).ok();
    assert!(root.home(".config/systemd/user/memoird.service").exists());
    run(&root, &["service", "uninstall", "--yes"]).ok();
    assert!(!root.home(".config/systemd/user/memoird.service").exists());
    assert!(asked(&root).contains("--user disable --now memoird.service"));
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
    assert!(!root.home("Library").exists() && asked(&root).is_empty());
}

#[test]
fn a_model_that_is_a_program_runs_without_namespaces() {
    let root = home();
    let config = "roots: [{path: ~/small}]\nmodel: {provider: command, command: [my-model]}\n";
    write(&root.home(".config/memoird/config.yaml"), config);
    let told = run(&root, &["service", "install"]).ok();
    assert!(told.stderr.contains("runs without namespaces: the model is a program"), "{told}");
    let drop_in = root.home(".config/systemd/user/memoird.service.d/plain.conf");
    assert!(fs::read_to_string(&drop_in).unwrap().contains("PrivateUsers=no"));
    write(&root.home(".config/memoird/config.yaml"), "roots: [{path: ~/small}]\n");
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
fn the_unit_exposes_as_little_as_an_honest_one_can() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/memoird.service");
    let said = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--threshold=16"])
        .arg(unit)
        .output();
    let Ok(said) = said else {
        skipped("there is no systemd-analyze here");
        return;
    };
    let text = String::from_utf8_lossy(&said.stdout);
    if !text.contains("Overall exposure level") {
        skipped("this systemd-analyze does not judge a file");
        return;
    }
    assert!(said.status.success(), "{text}");
}
