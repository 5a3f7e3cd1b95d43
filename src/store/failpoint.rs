//! Places where a test stops this process, makes a step fail, or holds it up.
//!
//! Each step of a write, a commit, a recovery, and a removal passes [`at`] with a name. In a release
//! build that is nothing. In a debug build `MEMOIRD_FAIL` says what happens there, and
//! `MEMOIRD_FAIL_TRACE` names a file to which each name is added as it is passed, so that a test
//! can first see the steps and then fail each of them.
//!
//! ```text
//! MEMOIRD_FAIL=ACTION@WHERE
//!
//! ACTION  kill        SIGKILL to this process, as a power cut would
//!         enospc, eio the step fails with that error
//!         wait:PATH   makes PATH.reached and goes on when PATH exists, once
//! WHERE   17          the 17th step that is passed, from 1
//!         NAME        the first one of that name
//!         NAME#3      the third one of that name
//! ```

/// Passes the step `name`.
///
/// # Errors
///
/// Returns the error that a test asked for; never in a release build.
#[cfg(not(debug_assertions))]
#[inline]
pub fn at(_name: &'static str) -> std::io::Result<()> {
    Ok(())
}

#[cfg(debug_assertions)]
pub use with_tests::at;

#[cfg(debug_assertions)]
mod with_tests {
    use std::{
        collections::HashMap,
        fs::{File, OpenOptions},
        io::{self, Write as _},
        path::PathBuf,
        sync::{LazyLock, Mutex, PoisonError},
        time::Duration,
    };

    use rustix::{
        io::Errno,
        process::{Signal, getpid, kill_process},
    };

    enum FailpointAction {
        Kill,
        Fail(Errno),
        Wait(PathBuf),
    }

    enum FailpointTarget {
        Step(u64),
        Named(String, u64),
    }

    #[derive(Default)]
    struct FailpointCounters {
        steps: u64,
        by_name: HashMap<&'static str, u64>,
    }

    static CONFIGURED: LazyLock<Option<(FailpointAction, FailpointTarget)>> =
        LazyLock::new(|| parse(&std::env::var("MEMOIRD_FAIL").ok()?));
    static TRACE: LazyLock<Option<PathBuf>> =
        LazyLock::new(|| std::env::var_os("MEMOIRD_FAIL_TRACE").map(Into::into));
    static COUNTERS: LazyLock<Mutex<FailpointCounters>> = LazyLock::new(Mutex::default);

    fn parse(text: &str) -> Option<(FailpointAction, FailpointTarget)> {
        let (action, place) = text.rsplit_once('@')?;
        let action = match action {
            "kill" => FailpointAction::Kill,
            "enospc" => FailpointAction::Fail(Errno::NOSPC),
            "eio" => FailpointAction::Fail(Errno::IO),
            wait => FailpointAction::Wait(wait.strip_prefix("wait:")?.into()),
        };
        let place = match (place.parse(), place.split_once('#')) {
            (Ok(step), _) => FailpointTarget::Step(step),
            (_, Some((name, nth))) => FailpointTarget::Named(name.to_owned(), nth.parse().ok()?),
            _ => FailpointTarget::Named(place.to_owned(), 1),
        };
        Some((action, place))
    }

    /// Passes the step `name`.
    ///
    /// # Errors
    ///
    /// Returns the error that a test asked for.
    pub fn at(name: &'static str) -> io::Result<()> {
        if CONFIGURED.is_none() && TRACE.is_none() {
            return Ok(());
        }
        let mut passed = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
        passed.steps += 1;
        let step = passed.steps;
        let nth = passed.by_name.entry(name).or_default();
        *nth += 1;
        let nth = *nth;
        if let Some(path) = &*TRACE {
            let mut file = OpenOptions::new().append(true).create(true).open(path)?;
            file.write_all(format!("{name}\n").as_bytes())?;
        }
        drop(passed);
        let Some((action, place)) = &*CONFIGURED else { return Ok(()) };
        let here = match place {
            FailpointTarget::Step(number) => *number == step,
            FailpointTarget::Named(wanted, number) => wanted == name && *number == nth,
        };
        match action {
            FailpointAction::Kill if here => {
                kill_process(getpid(), Signal::KILL)?;
                // The signal is on its way, and nothing more may happen before it arrives.
                loop {
                    std::thread::park();
                }
            }
            FailpointAction::Fail(errno) if here => Err((*errno).into()),
            FailpointAction::Wait(path) if here => {
                File::create(path.with_extension("reached"))?;
                while !path.exists() {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_is_asked_for_is_read() {
            assert!(matches!(
                parse("kill@17"),
                Some((FailpointAction::Kill, FailpointTarget::Step(17)))
            ));
            assert!(matches!(
                parse("eio@vault.sync#3"),
                Some((FailpointAction::Fail(Errno::IO), FailpointTarget::Named(name, 3))) if name == "vault.sync"
            ));
            assert!(matches!(
                parse("wait:/tmp/go@vault.place"),
                Some((FailpointAction::Wait(_), FailpointTarget::Named(name, 1))) if name == "vault.place"
            ));
            assert!(parse("kill").is_none() && parse("dance@1").is_none());
        }
    }
}
