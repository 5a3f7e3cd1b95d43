//! `memoird doctor --sandbox`: shuts itself in as the daemon would, tries what must not work, and says
//! what holds.
//!
//! Only this process is shut in; nothing that it tries changes anything. What a unit of systemd adds
//! is seen when the check runs inside one.

use std::{
    fs,
    io::{self, ErrorKind},
    net::{TcpListener, TcpStream},
    path::Path,
    time::Duration,
};

use super::DoctorCheck;
use crate::{
    commands::{GlobalArgs, error::CommandError},
    compaction::integrity::check::CheckOutcome,
    config,
    daemon::{
        runtime_config::RuntimeConfig,
        sandbox::{SandboxLimits, SandboxStatus},
    },
};

/// The name of the files that are tried to be made.
const PROBE: &str = ".memoird-probe";

/// Makes the checks.
pub(super) fn sandbox_checks(global: &GlobalArgs) -> Result<Vec<DoctorCheck>, CommandError> {
    let cwd =
        std::env::current_dir().map_err(|source| config::ConfigError::NoWorkingDir { source })?;
    let loaded =
        RuntimeConfig::read(global.config.as_deref(), &global.set, global.root.as_deref(), &cwd)?;
    let limits = SandboxLimits::of(&loaded);
    // Made before, since none can be made afterwards.
    let listener = TcpListener::bind("127.0.0.1:0");
    let held = limits.enter();
    let kernel = match held {
        Ok(SandboxStatus::Full) => CheckOutcome::Passed("the kernel holds all rules".to_owned()),
        Ok(SandboxStatus::Partial) => {
            CheckOutcome::Warning("the kernel is older, and holds some of the rules".to_owned())
        }
        Ok(SandboxStatus::Unsupported) => {
            CheckOutcome::Warning("this kernel has no Landlock".to_owned())
        }
        Err(error) => CheckOutcome::Warning(format!("the kernel refuses: {error}")),
    };
    let mut checks = vec![DoctorCheck::new("sandbox", Ok(kernel))];
    if let Some(why) = &limits.relaxed_reason {
        let told = format!("{why}, so only writing outside your home is forbidden");
        checks.push(DoctorCheck::new("loosened", Ok(CheckOutcome::Warning(told))));
    }
    for root in &loaded.roots {
        let made = create_probe(root);
        checks.push(DoctorCheck::new(
            "memory folder",
            Ok(match made {
                Ok(()) => CheckOutcome::Passed(format!("{} can be written", root.display())),
                Err(error) => CheckOutcome::Failed(vec![format!(
                    "{} cannot be written: {error}",
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

/// Judges something that must not work.
fn expect_refused(what: &'static str, tried: &io::Result<()>) -> DoctorCheck {
    DoctorCheck::new(
        what,
        Ok(match tried {
            Ok(()) => CheckOutcome::Warning("works".to_owned()),
            Err(error) => match error.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    CheckOutcome::Passed("is refused".to_owned())
                }
                ErrorKind::NotFound => CheckOutcome::Passed("is not there".to_owned()),
                _ => CheckOutcome::Warning(format!("cannot be told: {error}")),
            },
        }),
    )
}

/// Makes a file in a folder and takes it away.
fn create_probe(folder: &Path) -> io::Result<()> {
    let probe = tempfile::Builder::new().prefix(PROBE).tempfile_in(folder)?;
    probe.close()
}

/// Says what the kernel knows of this process.
fn process_restrictions() -> CheckOutcome {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or("unknown").trim().to_owned()
    };
    let words = [
        ("NoNewPrivs", "new privileges", "1"),
        ("Seccomp", "system calls filtered", "2"),
        ("CapEff", "capabilities", "0000000000000000"),
    ];
    let told = words.map(|(name, words, good)| {
        let value = field(name);
        match (name, value == good) {
            ("NoNewPrivs", true) => "no new privileges".to_owned(),
            ("NoNewPrivs", false) => "new privileges could be gained".to_owned(),
            ("Seccomp", true) => words.to_owned(),
            ("Seccomp", false) => "system calls not filtered (the unit does that)".to_owned(),
            (_, true) => "no capabilities".to_owned(),
            (_, false) => format!("{words} {value}"),
        }
    });
    CheckOutcome::Passed(told.join(", "))
}
