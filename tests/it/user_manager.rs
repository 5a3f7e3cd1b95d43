//! The service under a real systemd user manager: the complete unit as `service install` writes it, with
//! its namespaces, watchdog, and limits.
//!
//! It runs for a user id without an account in a separate mount namespace, which needs root. Without
//! that the test is skipped with a message.

use std::process::Command;

use super::support::skipped;

/// A user id without an account.
const UNUSED_UID: &str = "64123";

#[test]
fn the_complete_unit_works_under_a_user_manager() {
    if !rustix::process::geteuid().is_root() {
        skipped("only root can start a user manager for another user");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/user_manager.sh");
    let program = assert_cmd::cargo::cargo_bin!("memoird");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", script]).arg(program).arg(UNUSED_UID);
    let Ok(ran) = command.output() else {
        skipped("`unshare` is not installed");
        return;
    };
    let (stdout, stderr) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    let why = stdout.lines().last().and_then(|it| it.strip_prefix("skip: "));
    if let Some(why) = why.filter(|_| ran.status.success()) {
        skipped(why);
    } else if stdout.is_empty() && stderr.contains("unshare") {
        skipped(&stderr);
    } else {
        assert!(ran.status.success() && stdout.ends_with("all held\n"), "{stdout}\n{stderr}");
    }
}
