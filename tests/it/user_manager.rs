//! The service under a real user manager of systemd: the whole unit as `service install` writes it, with
//! its namespaces, its watchdog, and its limits.
//!
//! It is started for a user that nobody is, in a mount namespace of its own, which only root may. Where
//! that cannot be had the test says so and is skipped.

use std::process::Command;

use super::support::skipped;

/// A number that no account has.
const NOBODYS: &str = "64123";

#[test]
fn the_whole_unit_holds_under_a_user_manager() {
    if !rustix::process::geteuid().is_root() {
        skipped("only root may start a user manager for somebody else");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/user_manager.sh");
    let program = assert_cmd::cargo::cargo_bin!("memoird");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", script]).arg(program).arg(NOBODYS);
    let Ok(ran) = command.output() else {
        skipped("there is no `unshare` here");
        return;
    };
    let (said, wrong) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    let why = said.lines().last().and_then(|it| it.strip_prefix("skip: "));
    if let Some(why) = why.filter(|_| ran.status.success()) {
        skipped(why);
    } else if said.is_empty() && wrong.contains("unshare") {
        skipped(&wrong);
    } else {
        assert!(ran.status.success() && said.ends_with("all held\n"), "{said}\n{wrong}");
    }
}
