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

use super::Check;
use crate::{
    commands::{GlobalArgs, error::CommandError},
    compaction::check::Found,
    config,
    daemon::{
        loaded::Loaded,
        sandbox::{Held, Limits},
    },
};

/// The name of the files that are tried to be made.
const PROBE: &str = ".memoird-probe";

/// Makes the checks.
pub(super) fn checks(global: &GlobalArgs) -> Result<Vec<Check>, CommandError> {
    let cwd = std::env::current_dir().map_err(|source| config::Error::Cwd { source })?;
    let loaded = Loaded::read(global.config.as_deref(), &global.set, global.root.as_deref(), &cwd)?;
    let limits = Limits::of(&loaded);
    // Made before, since none can be made afterwards.
    let listener = TcpListener::bind("127.0.0.1:0");
    let held = limits.enter();
    let kernel = match held {
        Ok(Held::Wholly) => Found::Well("the kernel holds all rules".to_owned()),
        Ok(Held::Partly) => {
            Found::Warning("the kernel is older, and holds some of the rules".to_owned())
        }
        Ok(Held::Not) => Found::Warning("this kernel has no Landlock".to_owned()),
        Err(error) => Found::Warning(format!("the kernel refuses: {error}")),
    };
    let mut checks = vec![Check::new("sandbox", Ok(kernel))];
    if let Some(why) = &limits.loosened {
        let told = format!("{why}, so only writing outside your home is forbidden");
        checks.push(Check::new("loosened", Ok(Found::Warning(told))));
    }
    for root in &loaded.roots {
        let made = make(root);
        checks.push(Check::new(
            "memory folder",
            Ok(match made {
                Ok(()) => Found::Well(format!("{} can be written", root.display())),
                Err(error) => {
                    Found::Ill(vec![format!("{} cannot be written: {error}", root.display())])
                }
            }),
        ));
    }
    let home = &loaded.around.home;
    checks.push(forbidden("write in your home", &make(home)));
    checks.push(forbidden("list your home", &fs::read_dir(home).map(drop)));
    checks.push(forbidden("write to the system", &make(Path::new("/etc"))));
    if let Ok(listener) = &listener {
        let connected = listener
            .local_addr()
            .and_then(|it| TcpStream::connect_timeout(&it, Duration::from_secs(2)).map(drop));
        checks.push(forbidden("connect to another port", &connected));
    }
    checks.push(forbidden("listen on a port", &TcpListener::bind("127.0.0.1:0").map(drop)));
    checks.push(Check::new("process", Ok(process())));
    Ok(checks)
}

/// Judges something that must not work.
fn forbidden(what: &'static str, tried: &io::Result<()>) -> Check {
    Check::new(
        what,
        Ok(match tried {
            Ok(()) => Found::Warning("works".to_owned()),
            Err(error) => match error.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    Found::Well("is refused".to_owned())
                }
                ErrorKind::NotFound => Found::Well("is not there".to_owned()),
                _ => Found::Warning(format!("cannot be told: {error}")),
            },
        }),
    )
}

/// Makes a file in a folder and takes it away.
fn make(folder: &Path) -> io::Result<()> {
    let probe = tempfile::Builder::new().prefix(PROBE).tempfile_in(folder)?;
    probe.close()
}

/// Says what the kernel knows of this process.
fn process() -> Found {
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
    Found::Well(told.join(", "))
}
