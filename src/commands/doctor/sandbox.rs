//! `memoird doctor --sandbox`: enters the daemon's sandbox, tries what it must forbid, and shows the
//! results.
//!
//! The sandbox applies only to this process, and no attempt changes anything. To test the protection
//! of the systemd unit as well, run the check inside a unit.

use std::{
    fs,
    io::{self, ErrorKind},
    net::{TcpListener, TcpStream},
    path::Path,
    time::Duration,
};

use super::DoctorCheck;
use crate::{
    commands::GlobalArgs,
    compaction::integrity::check::CheckOutcome,
    config,
    daemon::{
        runtime_config::RuntimeConfig,
        sandbox::{SandboxLimits, SandboxStatus},
    },
    operations::error::CommandResult,
};

/// The name prefix of the files that the checks try to create.
const PROBE: &str = ".memoird-probe";

pub(super) fn sandbox_checks(global: &GlobalArgs) -> CommandResult<Vec<DoctorCheck>> {
    let cwd =
        std::env::current_dir().map_err(|source| config::ConfigError::NoWorkingDir { source })?;
    let loaded =
        RuntimeConfig::read(global.config.as_deref(), &global.set, global.root.as_deref(), &cwd)?;
    let limits = SandboxLimits::of(&loaded);
    // The sandbox forbids new listeners, so this one is opened first.
    let listener = TcpListener::bind("127.0.0.1:0");
    let kernel = match limits.enter() {
        Ok(SandboxStatus::Full) => CheckOutcome::Passed("the kernel enforces all rules".to_owned()),
        Ok(SandboxStatus::Partial) => CheckOutcome::Warning(
            "the kernel is old and enforces only some of the rules".to_owned(),
        ),
        Ok(SandboxStatus::Unsupported) => {
            CheckOutcome::Warning("this kernel does not support Landlock".to_owned())
        }
        Err(error) => CheckOutcome::Warning(format!("cannot enter the sandbox: {error}")),
    };
    let mut checks = vec![DoctorCheck::new("sandbox", Ok(kernel))];
    if let Some(why) = &limits.relaxed_reason {
        let detail = format!("{why}, so only writing outside your home is forbidden");
        checks.push(DoctorCheck::new("loosened", Ok(CheckOutcome::Warning(detail))));
    }
    for root in &loaded.roots {
        let probe = create_probe(root);
        checks.push(DoctorCheck::new(
            "memory folder",
            Ok(match probe {
                Ok(()) => CheckOutcome::Passed(format!("{} is writable", root.display())),
                Err(error) => CheckOutcome::Failed(vec![format!(
                    "cannot write in {}: {error}",
                    root.display()
                )]),
            }),
        ));
    }
    let home = &loaded.environment.home;
    checks.push(expect_refused("write in your home", &create_probe(home)));
    checks.push(expect_refused("list your home", &fs::read_dir(home).map(drop)));
    checks.push(expect_refused("write to the system", &create_probe(Path::new("/etc"))));
    if let Ok(listener) = &listener {
        let connected = listener
            .local_addr()
            .and_then(|it| TcpStream::connect_timeout(&it, Duration::from_secs(2)).map(drop));
        checks.push(expect_refused("connect to another port", &connected));
    }
    checks.push(expect_refused("listen on a port", &TcpListener::bind("127.0.0.1:0").map(drop)));
    checks.push(DoctorCheck::new("process", Ok(process_restrictions())));
    Ok(checks)
}

/// Passes if the sandbox refused the attempt.
fn expect_refused(what: &'static str, attempt: &io::Result<()>) -> DoctorCheck {
    DoctorCheck::new(
        what,
        Ok(match attempt {
            Ok(()) => CheckOutcome::Warning("is allowed".to_owned()),
            Err(error) => match error.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    CheckOutcome::Passed("is refused".to_owned())
                }
                ErrorKind::NotFound => CheckOutcome::Passed("does not exist".to_owned()),
                _ => CheckOutcome::Warning(format!("unclear: {error}")),
            },
        }),
    )
}

fn create_probe(folder: &Path) -> io::Result<()> {
    let probe = tempfile::Builder::new().prefix(PROBE).tempfile_in(folder)?;
    probe.close()
}

/// Reports the restrictions of this process as the kernel sees them.
fn process_restrictions() -> CheckOutcome {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or("unknown").trim().to_owned()
    };
    let fields = [
        ("NoNewPrivs", "new privileges", "1"),
        ("Seccomp", "system calls filtered", "2"),
        ("CapEff", "capabilities", "0000000000000000"),
    ];
    let described = fields.map(|(name, label, good)| {
        let value = field(name);
        match (name, value == good) {
            ("NoNewPrivs", true) => "no new privileges".to_owned(),
            ("NoNewPrivs", false) => "can gain new privileges".to_owned(),
            ("Seccomp", true) => label.to_owned(),
            ("Seccomp", false) => "system calls not filtered (the unit does that)".to_owned(),
            (_, true) => "no capabilities".to_owned(),
            (_, false) => format!("{label} {value}"),
        }
    });
    CheckOutcome::Passed(described.join(", "))
}
