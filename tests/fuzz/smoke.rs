//! A short run of the fuzz targets as part of `cargo test`.
//!
//! Each target gets the texts of its corpus and deterministic mutations of them.
//! `MEMOIRD_FUZZ_SECONDS=600 cargo test --release --test fuzz_smoke` runs each target for so many seconds
//! instead. `cargo fuzz`, which is guided by coverage, uses the same targets and corpus: see
//! `Cargo.toml` in this folder.

#![cfg(test)]

#[expect(unreachable_pub, reason = "the cargo-fuzz crate uses the same file")]
mod targets;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::{Duration, Instant},
};

use self::targets::{TARGETS, Target};

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
    frontmatter daily_log authorship citations wisdom typed summary decisions cron
    secrets quarantined neutralized sanitized grounding_check
    wisdom_writes typed_writes summary_writes decision_writes
);

/// Returns texts of 100 KB that may be slow to parse: unclosed, nested, or repeated elements.
fn adversarial() -> Vec<(&'static str, String)> {
    const SIZE: usize = 100_000;
    let fill = |head: &str, unit: &str, tail: &str| {
        format!("{head}{}{tail}", unit.repeat((SIZE - head.len() - tail.len()) / unit.len()))
    };
    vec![
        ("front of [", fill("---\na: ", "[", "\n---\n")),
        ("front of {a:", fill("---\na: ", "{a: ", "\n---\n")),
        ("front of - ", fill("---\n", "- ", "\n---\n")),
        ("front of keys", fill("---\n", "a: b\n", "---\n")),
        ("front of quotes", fill("---\na: ", "\"", "\n---\n")),
        ("front of aliases", fill("---\na: &a x\nb: [", "*a,", "]\n---\n")),
        ("front never closed", fill("---\n", "a: b\n", "")),
        ("front of ---x", fill("---\n", "---x\n", "")),
        ("documents", fill("", "---\na: b\n---\n", "")),
        ("byte-order marks", fill("", "\u{feff}", "")),
        ("blank lines", fill("", "\n", "")),
        ("carriage returns", fill("", "\r", "")),
        ("one line", fill("- ", "a", "\n")),
        ("one line of words", fill("- ", "word ", "\n")),
        ("one line of figures", fill("- ", "12.5 ms, ", "\n")),
        ("one line of dates", fill("- ", "2026-04-02 ", "\n")),
        ("one bullet of lines", fill("- a\n", "b\n", "")),
        ("one bullet of indented lines", fill("- a\n", "  b\n", "")),
        ("bullets", fill("", "- a\n", "")),
        (
            "bullets in bullets",
            (0..440).flat_map(|i| [" ".repeat(i), "- a\n".to_owned()]).collect(),
        ),
        ("headings", fill("", "## a\n", "")),
        ("sections", fill("", "### Decisions\n", "")),
        ("fences", fill("", "```\n", "")),
        (
            "fences of other lengths",
            (3..440).flat_map(|i| ["`".repeat(i), "\n".to_owned()]).collect(),
        ),
        ("open comments", fill("", "<!-- ", "")),
        ("open comments by line", fill("", "<!-- \n", "")),
        ("marks", fill("", "<!-- memoird: 1a2b3c4d 2026-03 -->\n", "")),
        ("entries", fill("## A\n", "**t** w\n", "")),
        ("brackets", fill("- ", "[", "\n")),
        ("brackets both ways", fill("- ", "[]", "\n")),
        ("backticks", fill("- ", "`", "\n")),
        ("stars", fill("- ", "*", "\n")),
        ("quotes", fill("", ">", "\n")),
        ("pipes", fill("", "|", "\n|-|\n")),
        ("citations", fill("- a [", "2026-04-02:1; ", "2026-04-02:1]\n")),
        ("lines of one citation", fill("2026-04-02:1", ",3", "")),
        ("ranges", fill("2026-04-02:1", ",1-4294967295", "")),
        ("stars of a schedule", fill("* * * * ", "*/1,", "*")),
        ("numbers of a schedule", fill("0", ",59", " 3 * * *")),
        ("fields of a schedule", fill("", "* ", "")),
        ("decisions", fill("", "{\"kind\":\"x\"}\n", "")),
        ("nested JSON", fill("{\"a\":", "[", "")),
        ("marks upon marks", fill("- e", "\u{301}", "\n")),
        ("emoji", fill("- ", "👩\u{200d}💻", "\n")),
    ]
}

/// Prints the slowest of these texts for each target: `cargo test --release --test fuzz_smoke --
/// --ignored --no-capture`.
#[test]
#[ignore = "a measurement; run it by hand with --no-capture"]
#[expect(clippy::print_stdout, reason = "a measurement")]
fn time_each_target_on_100_kilobytes() {
    for target in TARGETS {
        let mut took: Vec<_> = adversarial()
            .into_iter()
            .map(|(what, text)| {
                let started = Instant::now();
                feed(target, text.as_bytes());
                (started.elapsed(), what)
            })
            .collect();
        took.sort();
        println!("{:12} {:?}", target.0, took.iter().rev().take(4).collect::<Vec<_>>());
    }
}

/// Checks that none of these texts causes a panic. Only the first tenth is used, to be fast in a debug build.
#[test]
fn adversarial_texts_cause_no_panic() {
    for (_, text) in adversarial() {
        for target in TARGETS {
            feed(target, &text.as_bytes()[..text.len() / 10]);
        }
    }
}
