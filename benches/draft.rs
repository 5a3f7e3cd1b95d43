//! Measures the speed of drafts by the extractive engine, compared to only splitting the same text into
//! sentences and stemming it.
//!
//! ```sh
//! cargo bench --bench draft                        # sentences of the sample journals in a random order
//! MEMOIRD_BENCH_LOGS=FOLDER cargo bench --bench draft    # the logs `YYYY-MM-DD.md` of a folder
//! ```
//!
//! All measures run on one thread and report bytes of log text per second:
//!
//! - `split and stem`: sentences by UAX #29 and the Snowball stems of their words; the minimum cost of
//!   any method that reads the text;
//! - `count`: the word counts of the logs, from which the engine computes rarity;
//! - `weeks`: the draft of each week from its logs, at 30% of their length;
//! - `whole draft`: `count` and `weeks`, from sanitized logs to weekly drafts.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark may panic if its data cannot be read"
)]

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use chrono::{Days, NaiveDate};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use memoird::internals::{
    engine::{
        Engine, LengthBudget, SummaryInput,
        extractive::{
            Extractive,
            corpus_stats::{self, Corpus},
        },
    },
    memory::{
        log::DailyLog,
        period::{Grain, Period},
    },
    privacy::{self, PrivacyRules, SanitizedLog},
};
use rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of generated logs and their size.
const DAYS: u64 = 400;
const BYTES_PER_DAY: usize = 8_000;

/// The length of a week in percent of its logs.
const TARGET_PERCENT: usize = 30;

fn main_benchmarks(criterion: &mut Criterion) {
    let logs = match std::env::var_os("MEMOIRD_BENCH_LOGS") {
        Some(folder) => logs_of(Path::new(&folder)),
        None => generated_logs(),
    };
    let bytes: usize = logs.iter().map(|log| text_of(log).len()).sum();
    let weeks = weeks_of(&logs);
    let mut group = criterion.benchmark_group("draft");
    group
        .throughput(Throughput::Bytes(bytes as u64))
        .sample_size(10)
        .measurement_time(Duration::from_secs(10));
    let name = format!("{} logs, {} KB", logs.len(), bytes / 1000);
    let texts: Vec<String> = logs.iter().map(text_of).collect();
    group.bench_function(BenchmarkId::new("split and stem", &name), |bench| {
        bench.iter(|| split_and_stem(&texts));
    });
    group.bench_function(BenchmarkId::new("count", &name), |bench| {
        bench.iter(|| corpus_of(&logs));
    });
    let mut corpus = corpus_of(&logs);
    group.bench_function(BenchmarkId::new("weeks", &name), |bench| {
        bench.iter(|| draft(&mut corpus, &weeks));
    });
    group.bench_function(BenchmarkId::new("whole draft", &name), |bench| {
        bench.iter(|| draft(&mut corpus_of(&logs), &weeks));
    });
    group.finish();
}

criterion_group!(benches, main_benchmarks);
criterion_main!(benches);

/// Splits texts into sentences and stems each word; returns how many letters the stems have.
fn split_and_stem(texts: &[String]) -> usize {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut letters = 0;
    for sentence in texts.iter().flat_map(|text| text.unicode_sentences()) {
        for word in sentence.unicode_words() {
            letters += stemmer.stem(&word.to_lowercase()).len();
        }
    }
    letters
}

fn corpus_of(logs: &[SanitizedLog]) -> Corpus {
    let mut corpus = Corpus::new();
    for reading in corpus_stats::tokenize(logs) {
        corpus.add(reading);
    }
    corpus
}

/// Drafts all weeks in order; returns how many bullets they have.
fn draft(corpus: &mut Corpus, weeks: &[(Period, Vec<SanitizedLog>)]) -> usize {
    let mut bullets = 0;
    for (period, logs) in weeks {
        let chars: usize = logs.iter().map(|log| text_of(log).chars().count()).sum();
        let target_chars = chars * TARGET_PERCENT / 100;
        let budget = LengthBudget { target_chars, limit_chars: chars, verbatim: false };
        let counts = corpus.counts(*period);
        let input =
            SummaryInput { period: *period, logs, weeks: &[], budget, counts, check: &|_| None };
        let draft = Extractive.summarize(&input).unwrap();
        bullets += draft.sections.iter().map(|(_, items)| items.len()).sum::<usize>();
    }
    bullets
}

fn weeks_of(logs: &[SanitizedLog]) -> Vec<(Period, Vec<SanitizedLog>)> {
    let mut weeks = BTreeMap::<NaiveDate, (Period, Vec<SanitizedLog>)>::new();
    for log in logs {
        let week = Period::containing(Grain::Week, log.date());
        weeks.entry(week.last()).or_insert_with(|| (week, Vec::new())).1.push(log.clone());
    }
    weeks.into_values().collect()
}

fn text_of(log: &SanitizedLog) -> String {
    log.lines().iter().map(|line| [line.words(), "\n"].concat()).collect()
}

fn sanitized(stem: &str, text: &[u8]) -> Option<SanitizedLog> {
    let log = DailyLog::parse(stem.parse().ok()?, text).ok()?;
    Some(privacy::sanitize(&log, &PrivacyRules::default()))
}

fn logs_of(folder: &Path) -> Vec<SanitizedLog> {
    let mut logs: Vec<SanitizedLog> = fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let stem = path.file_name()?.to_str()?.strip_suffix(".md")?;
            sanitized(stem, &fs::read(&path).unwrap())
        })
        .collect();
    logs.sort_by_key(|log| log.stem().clone());
    logs
}

/// Generates deterministic logs from the lines of the sample journals.
fn generated_logs() -> Vec<SanitizedLog> {
    let mut lines = Vec::new();
    for person in ["jonas", "mara"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/journal").join(person);
        let mut files: Vec<_> =
            fs::read_dir(folder.join("memory")).unwrap().map(|it| it.unwrap().path()).collect();
        files.sort();
        for file in files {
            let text = fs::read_to_string(file).unwrap();
            lines.extend(text.lines().filter(|line| line.len() > 30).map(str::to_owned));
        }
    }
    let first = NaiveDate::from_ymd_opt(2024, 1, 1).unwrap();
    let mut random = 7_u64;
    let mut next = |below: usize| {
        // A linear congruential generator with the constants of Knuth's MMIX.
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    let day = |day: u64| {
        let date = first.checked_add_days(Days::new(day)).unwrap().to_string();
        let mut text = format!("# {date}\n\n");
        while text.len() < BYTES_PER_DAY {
            let line = &lines[next(lines.len())];
            text.push_str(line);
            // A number, because otherwise most lines would have duplicates.
            text.push_str(&[" (case ", &next(100_000).to_string(), ")\n"].concat());
        }
        sanitized(&date, text.as_bytes()).unwrap()
    };
    (0..DAYS).map(day).collect()
}
