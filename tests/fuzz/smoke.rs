//! A short run of the fuzz targets as part of `cargo test`.
//!
//! Each target gets the texts of its corpus and deterministic mutations of them.
//! `MEMOIRD_FUZZ_SECONDS=600 cargo test --release --test fuzz_smoke` runs each target for so many seconds
//! instead. The texts of `shapes` may be slow to read: their cost must grow with their length. `cargo fuzz`, which is guided by coverage, uses the same targets and corpus: see
//! `Cargo.toml` in this folder.

#![cfg(test)]

mod shapes;
#[expect(unreachable_pub, reason = "the cargo-fuzz crate uses the same file")]
mod targets;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::Command,
    sync::LazyLock,
    time::{Duration, Instant, SystemTime},
};

use memoird::internals::memory::{address::Stem, authorship, log::DailyLog};

use self::{
    shapes::{SHAPES, Shape},
    targets::{TARGETS, Target},
};

/// The number of mutations of each corpus text in a short run.
const ROUNDS: u64 = 400;
/// The maximum length of a mutated text.
const BYTES_MAX: usize = 4096;

/// Tokens with a meaning for the parsers, inserted at random.
const TOKENS: [&str; 40] = [
    "---\n",
    "\n",
    "\r\n",
    "\u{feff}",
    "- ",
    "* ",
    "1. ",
    "# ",
    "## ",
    "### Decisions\n",
    "```\n",
    "~~~",
    "> ",
    "<!-- ",
    " -->",
    "<!-- memoird: ",
    "[",
    "]",
    "{",
    "}",
    ": ",
    "\"",
    "'",
    "|\n",
    "&a",
    "*a",
    "!!",
    "\t",
    "\0",
    "\u{202e}",
    "é",
    "2026-04-02:3",
    "; ",
    "-",
    ",",
    "*/5",
    "@daily",
    "**",
    "memoird:",
    "type: user\n",
];

/// A deterministic sequence of numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(number).unwrap() % end.max(1)
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(&dir).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", dir.display());
    paths.iter().map(|it| fs::read(it).unwrap()).collect()
}

/// Changes a text at one to eight places.
fn mutate(text: &[u8], others: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..=random.below(8) {
        let at = random.below(text.len() + 1);
        let end = (at + random.below(32)).min(text.len());
        match random.below(6) {
            0 if at < text.len() => text[at] ^= 1 << random.below(8),
            1 => drop(text.drain(at..end)),
            2 => {
                let again = text[at..end].repeat(1 + random.below(40));
                text.splice(at..at, again);
            }
            3 => {
                let other = &others[random.below(others.len())];
                let from = random.below(other.len() + 1);
                let to = (from + random.below(64)).min(other.len());
                text.splice(at..at, other[from..to].iter().copied());
            }
            _ => drop(text.splice(at..end, TOKENS[random.below(TOKENS.len())].bytes())),
        }
        text.truncate(BYTES_MAX);
    }
    text
}

#[track_caller]
fn feed((name, target): Target, bytes: &[u8]) {
    let result = catch_unwind(AssertUnwindSafe(|| target(bytes)));
    assert!(result.is_ok(), "{name}: b\"{}\"", bytes.escape_ascii());
}

fn run(target: Target) {
    let seconds = std::env::var("MEMOIRD_FUZZ_SECONDS").ok().and_then(|it| it.parse().ok());
    let until = seconds.map(|it| Instant::now() + Duration::from_secs(it));
    let texts = corpus(target.0);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for text in &texts {
        feed(target, text);
        for cut in 0..text.len() {
            feed(target, &text[..cut]);
        }
    }
    let mut rounds = 0;
    while until.map_or(rounds < ROUNDS, |it| Instant::now() < it) {
        rounds += 1;
        for text in &texts {
            feed(target, &mutate(text, &texts, &mut random));
        }
    }
}

macro_rules! runs {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            run(*TARGETS.iter().find(|it| it.0 == stringify!($name)).unwrap());
        }
    )*

    #[test]
    fn every_target_runs() {
        assert_eq!(TARGETS.map(|it| it.0), [$(stringify!($name)),*]);
    }};
}

runs!(
    frontmatter daily_log authorship draft citations wisdom typed summary decisions cron
    secrets quarantined neutralized sanitized grounding_check
    wisdom_writes typed_writes summary_writes decision_writes
);

/// The most that a text of twice the length may cost: linear work costs twice as much, quadratic work four times.
const GROWTH_MAX: u32 = 3;
/// The lengths that are compared.
const LENGTHS: [usize; 2] = [100_000, 200_000];
/// What takes less than this on the longer text is not compared: clocks are too coarse, and nobody waits.
const COMPARED_FROM: Duration = Duration::from_millis(150);

/// Checks that the cost of a text grows in proportion to its length.
///
/// Costs are processor time, not time on the clock, and the smaller of several measurements: a busy machine makes
/// some of them too large, none too small.
#[track_caller]
fn check_growth(what: &str, mut cost: impl FnMut(usize) -> Duration) {
    let [short, long] = LENGTHS;
    let mut costs = [Duration::MAX; 3];
    for attempt in 0..4 {
        costs[1] = costs[1].min(cost(long));
        if costs[1] < COMPARED_FROM {
            return;
        }
        costs[0] = costs[0].min(cost(short));
        if costs[1] <= costs[0] * GROWTH_MAX {
            return;
        }
        // A limit between the two lengths may change what is done, but only once.
        if attempt > 0 {
            costs[2] = costs[2].min(cost(2 * long));
            if costs[2] <= costs[1] * GROWTH_MAX {
                return;
            }
        }
    }
    panic!("{what}: {costs:?} for {short}, {long}, and {} bytes", 2 * long);
}

/// Returns the processor time of this thread.
fn thread_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    // The kernel counts when the thread is scheduled.
    std::thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|it| it.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// Checks that a target takes time in proportion to the length of each slow text.
fn grow((name, target): Target) {
    // The drafts of other shapes are measured in the whole chain; a debug build takes minutes for these.
    const READ_NOTES: [&str; 3] = ["authorship", "daily_log", "sanitized"];
    let is_chosen = |it: &&Shape| match name {
        "draft" => it.is_of_agents && !cfg!(debug_assertions),
        _ => !it.is_of_agents || READ_NOTES.contains(&name),
    };
    for shape in SHAPES.iter().filter(is_chosen) {
        check_growth(&format!("{name}, {}", shape.name), |bytes| {
            let text = shape.text(bytes);
            let started = thread_time();
            feed((name, target), text.as_bytes());
            thread_time().saturating_sub(started)
        });
    }
}

macro_rules! growth {
    ($($name:ident)*) => {
        mod growth {
            $(#[test]
            fn $name() {
                super::grow(*super::TARGETS.iter().find(|it| it.0 == stringify!($name)).unwrap());
            })*
        }
    };
}

growth!(
    frontmatter daily_log authorship draft citations wisdom typed summary decisions cron
    secrets quarantined neutralized sanitized grounding_check
    wisdom_writes typed_writes summary_writes decision_writes
);

/// Checks that none of these texts causes a panic. They are shorter, to be fast in a debug build.
#[test]
fn adversarial_texts_cause_no_panic() {
    for shape in SHAPES {
        for target in TARGETS {
            feed(target, shape.text(10_000).as_bytes());
        }
    }
}

/// Returns the processor time that child processes have taken.
fn children_time() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may contain spaces.
    let fields = text.rsplit_once(')').map(|it| it.1).unwrap_or_default();
    let ticks = fields.split_whitespace().skip(13).take(2).filter_map(|it| it.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.sum::<u64>())
}

/// Runs `memoird compact` on a folder with one log, and then a search and the context, which read what it wrote.
#[expect(clippy::disallowed_methods, reason = "a file of a test")]
fn compact(text: &str) -> Duration {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("memory/2026-03-02.md");
    fs::create_dir(log.parent().unwrap()).unwrap();
    fs::write(&log, text).unwrap();
    let file = fs::File::options().write(true).open(&log).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_600_000)).unwrap();
    let started = children_time();
    for words in [&["compact"][..], &["search", "the pump"], &["context"]] {
        let mut memoird = Command::new(env!("CARGO_BIN_EXE_memoird"));
        memoird.arg("--root").arg(dir.path()).args(words).env("HOME", dir.path());
        let output = memoird.env_remove("MEMOIRD_ROOT").output().unwrap();
        // A text without one statement may fail its checks; nothing else may go wrong.
        let code = output.status.code();
        assert!(
            matches!(code, Some(0 | 1)),
            "{words:?}: {code:?} {}",
            output.stderr.escape_ascii()
        );
    }
    children_time().saturating_sub(started)
}

/// From a log to a week, memories, an index, and the context, each slow text takes time in proportion to its length.
///
/// A debug build takes minutes for all of them, so it takes those that were slow once.
#[test]
fn the_whole_chain_grows_with_the_length_of_a_log() {
    const SLOW_ONCE: [&str; 5] = [
        "abbreviations",
        "clock times",
        "fences in bullets",
        "one citation",
        "sentences in an open quote",
    ];
    let is_chosen = |it: &&Shape| !cfg!(debug_assertions) || SLOW_ONCE.contains(&it.name);
    for shape in SHAPES.iter().filter(is_chosen) {
        check_growth(&format!("compact, {}", shape.name), |bytes| compact(&shape.text(bytes)));
    }
}

/// The parsers of what agents put into their logs are fast enough to run at each look at a log.
#[test]
#[cfg_attr(debug_assertions, ignore = "a debug build is slower")]
fn a_hundred_kilobytes_of_each_shape_of_agents_take_little_time() {
    const TIME_MAX: Duration = Duration::from_millis(20);
    let stem: Stem = "2026-04-02".parse().unwrap();
    for shape in SHAPES.iter().filter(|it| it.is_of_agents) {
        let log = DailyLog::parse(stem.clone(), shape.text(LENGTHS[0]).as_bytes()).unwrap();
        let time = || {
            let started = thread_time();
            std::hint::black_box(authorship::classify(&log.lines()));
            thread_time().saturating_sub(started)
        };
        let took = (0..5).map(|_| time()).min().unwrap();
        assert!(took < TIME_MAX, "{}: {took:?}", shape.name);
    }
}

/// Prints the slowest of these texts for each target: `cargo test --release --test fuzz_smoke --
/// --ignored --no-capture`.
#[test]
#[ignore = "a measurement; run it by hand with --no-capture"]
#[expect(clippy::print_stdout, reason = "a measurement")]
fn time_each_target_on_200_kilobytes() {
    for target in TARGETS {
        let mut took: Vec<_> = SHAPES
            .iter()
            .map(|shape| {
                let text = shape.text(LENGTHS[1]);
                let started = thread_time();
                feed(target, text.as_bytes());
                (thread_time().saturating_sub(started), shape.name)
            })
            .collect();
        took.sort();
        let all: Duration = took.iter().map(|it| it.0).sum();
        println!("{:16} {all:?} {:?}", target.0, took.iter().rev().take(4).collect::<Vec<_>>());
    }
}
