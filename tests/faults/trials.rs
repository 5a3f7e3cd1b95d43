//! How a module runs its trials: one module after the other, the trials of one on all cores.

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

/// Findings of one module that are shown in full.
const SHOWN_MAX: usize = 10;

/// A module at work. [`Module::end`] tells what it found.
pub(crate) struct Module {
    name: &'static str,
    begun: Instant,
    ran: usize,
    notes: Vec<String>,
    findings: Vec<String>,
    _turn: MutexGuard<'static, ()>,
}

/// Random numbers that come again with the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

/// How many trials a run makes: the value of `MEMOIRD_FAULTS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Unset: every module at work for a few seconds.
    Quick,
    /// `short`: each kind of fault in each scenario.
    Short,
    /// `full`: all of them.
    Full,
}

impl Form {
    /// # Panics
    ///
    /// Panics when the variable has another value: fewer trials than asked for would go unnoticed.
    pub(crate) fn requested() -> Self {
        match std::env::var("MEMOIRD_FAULTS").as_deref() {
            Err(_) | Ok("") => Self::Quick,
            Ok("short") => Self::Short,
            Ok("full") => Self::Full,
            Ok(other) => panic!("MEMOIRD_FAULTS={other}: `short` or `full`"),
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

/// Returns how many trials run at once.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Says something that is seen also when all is well, when the test runner keeps what tests print.
pub(crate) fn say(text: impl Display) {
    drop(writeln!(std::io::stderr(), "faults: {text}"));
}

impl Module {
    /// Waits until the modules before it have ended: they would disturb its times.
    pub(crate) fn begin(name: &'static str) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            name,
            begun: Instant::now(),
            ran: 0,
            notes: Vec::new(),
            findings: Vec::new(),
            _turn: turn,
        }
    }

    /// Says that it cannot be run here.
    pub(crate) fn skip(self, why: impl Display) {
        say(format_args!("{}: SKIPPED, {why}", self.name));
    }

    /// Says what was measured.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Runs a trial of each case on all cores. What a trial returns as an error is a finding.
    pub(crate) fn run<C: Display + Sync>(
        &mut self,
        cases: &[C],
        trial: impl Fn(&C) -> Result<(), String> + Sync,
    ) {
        self.run_on(workers(), cases, |_, case| trial(case));
    }

    /// Runs a trial of each case on so many threads, each of which is told its number.
    pub(crate) fn run_on<C: Display + Sync>(
        &mut self,
        threads: usize,
        cases: &[C],
        trial: impl Fn(usize, &C) -> Result<(), String> + Sync,
    ) {
        let (next, name) = (AtomicUsize::new(0), self.name);
        let findings = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..threads.min(cases.len()) {
                let (next, findings, trial) = (&next, &findings, &trial);
                scope.spawn(move || {
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let tried = catch_unwind(AssertUnwindSafe(|| trial(thread, case)));
                        let tried = tried.unwrap_or_else(|_| Err("the trial panicked".to_owned()));
                        if let Err(what) = tried {
                            // A full form runs for long, and may be ended before its end.
                            say(format_args!("{name}: FOUND {case}"));
                            findings.lock().unwrap().push(format!("{case}: {what}"));
                        }
                    }
                });
            }
        });
        self.ran += cases.len();
        self.findings.extend(findings.into_inner().unwrap());
    }

    /// Says what was found.
    ///
    /// # Panics
    ///
    /// Panics when anything was.
    #[track_caller]
    pub(crate) fn end(self) {
        let Self { name, ran, notes, findings, begun, .. } = &self;
        let took = begun.elapsed().as_secs_f64();
        let found = match findings.len() {
            0 => "nothing found".to_owned(),
            some => format!("{some} FOUND"),
        };
        let figures = format!("{name}: {ran} trials in {took:.1} s, {found}");
        say([&[figures][..], notes].concat().join("; "));
        if findings.is_empty() {
            return;
        }
        let mut text = format!("{name}: {} of {ran} trials failed", findings.len());
        for (i, finding) in findings.iter().enumerate() {
            let first = finding.lines().next().unwrap_or_default();
            let shown = if i < SHOWN_MAX { &finding[..] } else { first };
            text.push_str(if i < SHOWN_MAX { "\n\n" } else { "\n" });
            text.push_str(shown);
        }
        drop(self);
        panic!("{text}");
    }
}

impl Random {
    /// Begins with `MEMOIRD_FAULTS_SEED`, or anywhere, and says where.
    pub(crate) fn seeded(module: &mut Module) -> Self {
        let given = std::env::var("MEMOIRD_FAULTS_SEED").ok();
        let seed = given.and_then(|it| it.parse().ok());
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000_000);
        module.note(format!("seed {seed}"));
        Self(seed)
    }

    /// Begins with a number that another one gave.
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

    /// Returns a time below `most`.
    pub(crate) fn below(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_nanos()).unwrap().max(1);
        Duration::from_nanos(self.next() % most)
    }
}
