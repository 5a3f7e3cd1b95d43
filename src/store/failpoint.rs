//! Failpoints: steps at which a test kills this process, injects an error, or pauses.
//!
//! Each step of a write, a commit, a recovery, and a removal calls [`at`] with a name. In a release build
//! that does nothing. In a debug build `MEMOIRD_FAIL` says what happens, and the name of each step is
//! appended to the file `MEMOIRD_FAIL_TRACE`, so that a test can first list the steps and then fail each.
//!
//! ```text
//! MEMOIRD_FAIL=ACTION@WHERE
//!
//! ACTION  kill        sends SIGKILL to this process, like a power cut
//!         enospc, eio fails the step with that error
//!         wait:PATH   creates PATH.reached and continues when PATH exists, once
//! WHERE   17          the 17th step, from 1
//!         NAME        the first step of that name
//!         NAME#3      the third step of that name
//! ```

/// Marks the step `name`.
///
/// Returns the error that a test injects; never in a release build.
#[cfg(not(debug_assertions))]
#[inline]
pub(crate) fn at(_name: &'static str) -> std::io::Result<()> {
    Ok(())
}

#[cfg(debug_assertions)]
pub(crate) use with_tests::at;

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
        let (action, target) = text.rsplit_once('@')?;
        let action = match action {
            "kill" => FailpointAction::Kill,
            "enospc" => FailpointAction::Fail(Errno::NOSPC),
            "eio" => FailpointAction::Fail(Errno::IO),
            wait => FailpointAction::Wait(wait.strip_prefix("wait:")?.into()),
        };
        let target = match (target.parse(), target.split_once('#')) {
            (Ok(step), _) => FailpointTarget::Step(step),
            (_, Some((name, nth))) => FailpointTarget::Named(name.to_owned(), nth.parse().ok()?),
            _ => FailpointTarget::Named(target.to_owned(), 1),
        };
        Some((action, target))
    }

    /// Marks the step `name`.
    pub(crate) fn at(name: &'static str) -> io::Result<()> {
        if CONFIGURED.is_none() && TRACE.is_none() {
            return Ok(());
        }
        let mut counters = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
        counters.steps += 1;
        let step = counters.steps;
        let nth = counters.by_name.entry(name).or_default();
        *nth += 1;
        let nth = *nth;
        if let Some(path) = &*TRACE {
            let mut file = OpenOptions::new().append(true).create(true).open(path)?;
            file.write_all(format!("{name}\n").as_bytes())?;
        }
        drop(counters);
        let Some((action, target)) = &*CONFIGURED else { return Ok(()) };
        let is_here = match target {
            FailpointTarget::Step(number) => *number == step,
            FailpointTarget::Named(target, number) => target == name && *number == nth,
        };
        match action {
            FailpointAction::Kill if is_here => {
                kill_process(getpid(), Signal::KILL)?;
                // Nothing more may happen before the signal arrives.
                loop {
                    std::thread::park();
                }
            }
            FailpointAction::Fail(errno) if is_here => Err((*errno).into()),
            FailpointAction::Wait(path) if is_here => {
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
        fn actions_and_targets_are_parsed() {
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
