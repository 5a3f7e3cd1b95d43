//! Runs trials: one module after another, the trials of a module on all cores.

use std::{
    fmt::Display,
    hash::{BuildHasher as _, RandomState},
    io::Write as _,
    num::NonZero,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// The number of failures of a module that are shown in full.
const SHOWN_MAX: usize = 10;

/// A running module. [`Module::end`] reports its failures.
pub(crate) struct Module {
    name: &'static str,
    begun: Instant,
    ran: usize,
    notes: Vec<String>,
    failures: Vec<String>,
    _turn: MutexGuard<'static, ()>,
}

/// Random numbers from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

/// The number of trials: the value of `MEMOIRD_FAULTS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Unset: a few seconds per module.
    Quick,
    /// `short`: each kind of fault in each scenario.
    Short,
    /// `full`: every fault in each scenario.
    Full,
}

impl Form {
    /// # Panics
    ///
    /// Panics if the variable has another value: fewer trials than requested would go unnoticed.
    pub(crate) fn requested() -> Self {
        match std::env::var("MEMOIRD_FAULTS").as_deref() {
            Err(_) | Ok("") => Self::Quick,
            Ok("short") => Self::Short,
            Ok("full") => Self::Full,
            Ok(other) => panic!("MEMOIRD_FAULTS={other}: expected `short` or `full`"),
        }
    }
}

/// Returns the value for the requested form.
pub(crate) fn by_form<T>(quick: T, short: T, full: T) -> T {
    match Form::requested() {
        Form::Quick => quick,
        Form::Short => short,
        Form::Full => full,
    }
}

/// Returns the number of parallel trials.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Prints to stderr directly, so that the text is also shown for passing tests.
pub(crate) fn report(text: impl Display) {
    drop(writeln!(std::io::stderr(), "faults: {text}"));
}

impl Module {
    /// Waits for the end of the modules before it, which would disturb its timing.
    pub(crate) fn begin(name: &'static str) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            name,
            begun: Instant::now(),
            ran: 0,
            notes: Vec::new(),
            failures: Vec::new(),
            _turn: turn,
        }
    }

    /// Reports that the module cannot run on this machine.
    pub(crate) fn skip(self, why: impl Display) {
        report(format_args!("{}: SKIPPED, {why}", self.name));
    }

    /// Adds a note to the final report.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Runs a trial of each case on all cores. An error of a trial is a failure.
    pub(crate) fn run<C: Display + Sync>(
        &mut self,
        cases: &[C],
        trial: impl Fn(&C) -> Result<(), String> + Sync,
    ) {
        self.run_on(workers(), cases, |_, case| trial(case));
    }

    /// Runs a trial of each case on `threads` threads and passes the number of the thread.
    pub(crate) fn run_on<C: Display + Sync>(
        &mut self,
        threads: usize,
        cases: &[C],
        trial: impl Fn(usize, &C) -> Result<(), String> + Sync,
    ) {
        let (next, name) = (AtomicUsize::new(0), self.name);
        let failures = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..threads.min(cases.len()) {
                let (next, failures, trial) = (&next, &failures, &trial);
                scope.spawn(move || {
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let tried = catch_unwind(AssertUnwindSafe(|| trial(thread, case)));
                        let tried = tried.unwrap_or_else(|_| Err("the trial panicked".to_owned()));
                        if let Err(what) = tried {
                            // Printed at once: a full form runs for hours and may be interrupted.
                            report(format_args!("{name}: FAILED {case}"));
                            failures.lock().unwrap().push(format!("{case}: {what}"));
                        }
                    }
                });
            }
        });
        self.ran += cases.len();
        self.failures.extend(failures.into_inner().unwrap());
    }

    /// Reports the result.
    ///
    /// # Panics
    ///
    /// Panics if any trial failed.
    #[track_caller]
    pub(crate) fn end(self) {
        let Self { name, ran, notes, failures, begun, .. } = &self;
        let took = begun.elapsed().as_secs_f64();
        let result = match failures.len() {
            0 => "no failures".to_owned(),
            some => format!("{some} FAILED"),
        };
        let figures = format!("{name}: {ran} trials in {took:.1} s, {result}");
        report([&[figures][..], notes].concat().join("; "));
        if failures.is_empty() {
            return;
        }
        let mut text = format!("{name}: {} of {ran} trials failed", failures.len());
        for (i, failure) in failures.iter().enumerate() {
            let first = failure.lines().next().unwrap_or_default();
            let shown = if i < SHOWN_MAX { &failure[..] } else { first };
            text.push_str(if i < SHOWN_MAX { "\n\n" } else { "\n" });
            text.push_str(shown);
        }
        drop(self);
        panic!("{text}");
    }
}

impl Random {
    /// Starts with `MEMOIRD_FAULTS_SEED` or a random seed, and notes the seed.
    pub(crate) fn seeded(module: &mut Module) -> Self {
        let given = std::env::var("MEMOIRD_FAULTS_SEED").ok();
        let seed = given.and_then(|it| it.parse().ok());
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000_000);
        module.note(format!("seed {seed}"));
        Self(seed)
    }

    /// Starts with this seed.
    pub(crate) fn from(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number (`SplitMix64`).
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a random time below `most`.
    pub(crate) fn below(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_nanos()).unwrap().max(1);
        Duration::from_nanos(self.next() % most)
    }
}
