//! Measures the grounding check: which false bullets it rejects, and which true ones it rejects wrongly.
//!
//! The bullets are about the two sample journals. Some are written by hand, in `tests/data/grounding`;
//! the others are generated from the lines of the journals: true ones by shortening, joining, and other
//! notations of numbers and dates, false ones by one planted fault each. All are divided into two
//! halves: the check may be tuned on the open half, and the held-out half measures its quality.

use std::{collections::BTreeMap, fs, path::Path};

use chrono::{Days, NaiveDate};
use memoird::internals::{
    compaction::grounding,
    memory::{address::Stem, item::Item, log::DailyLog},
    privacy::{self, SanitizedLog},
};

mod make;

/// The maximum number of generated bullets per class and half.
const GENERATED_MAX: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    /// The check may be tuned on it.
    Open,
    /// Never used for tuning.
    HeldOut,
}

/// A bullet and the expected verdict.
#[derive(Clone, Debug)]
struct Case {
    half: Half,
    journal: String,
    /// The rewording of a true bullet, or the fault of a false one.
    class: String,
    is_true: bool,
    bullet: String,
}

struct Journal {
    name: &'static str,
    logs: Vec<SanitizedLog>,
}

impl Journal {
    fn read(name: &'static str) -> Self {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/journal").join(name);
        let mut logs: Vec<SanitizedLog> = fs::read_dir(dir.join("memory"))
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let stem: Stem = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
                let log = DailyLog::parse(stem, &fs::read(&path).unwrap()).unwrap();
                privacy::sanitize(&log, &privacy::PrivacyRules::default())
            })
            .collect();
        logs.sort_by(|a, b| a.stem().cmp(b.stem()));
        Self { name, logs }
    }
}

fn by_hand(half: Half, is_true: bool, text: &str) -> Vec<Case> {
    let lines = text.lines().filter(|it| !it.starts_with('#') && !it.is_empty());
    lines
        .map(|line| {
            let mut parts = line.splitn(if is_true { 2 } else { 3 }, " | ").map(str::to_owned);
            let journal = parts.next().unwrap();
            let class = if is_true { "by hand".to_owned() } else { parts.next().unwrap() };
            Case { half, journal, class, is_true, bullet: parts.next().unwrap() }
        })
        .collect()
}

fn cases(journals: &[Journal]) -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(by_hand(Half::Open, true, include_str!("../../data/grounding/true-open.txt")));
    cases.extend(by_hand(Half::HeldOut, true, include_str!("../../data/grounding/true-held.txt")));
    cases.extend(by_hand(Half::Open, false, include_str!("../../data/grounding/false-open.txt")));
    cases.extend(by_hand(
        Half::HeldOut,
        false,
        include_str!("../../data/grounding/false-held.txt"),
    ));
    let mut counts = BTreeMap::<_, usize>::new();
    for journal in journals {
        for case in make::cases(journal) {
            let count = counts.entry((case.half, case.is_true, case.class.clone())).or_default();
            *count += 1;
            if *count <= GENERATED_MAX {
                cases.push(case);
            }
        }
    }
    cases
}

/// The number of rejected bullets of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    rejected: usize,
    all: usize,
}

impl Tally {
    fn add(&mut self, is_rejected: bool) {
        self.rejected += usize::from(is_rejected);
        self.all += 1;
    }

    fn rejected_share(self) -> f64 {
        let count = |it: usize| f64::from(u32::try_from(it).unwrap());
        count(self.rejected) / count(self.all.max(1))
    }
}

/// Classes of faults that must always be rejected.
const STRICT: &[&str] = &[
    "digit",
    "number word",
    "date",
    "relative date",
    "weekday",
    "month",
    "amount",
    "currency",
    "percent",
    "sign",
    "unit",
    "identifier",
    "version",
    "path",
    "url",
    "name",
    "extra name",
    "uncited",
    "echo",
];

/// Classes of faults that a program cannot always detect, with the minimum share of rejections.
const FLOORS: &[(&str, f64)] = &[
    ("attribution", 0.85),
    ("negation dropped", 0.75),
    ("negation added", 0.85),
    ("wrong line", 0.95),
    ("strengthened", 0.80),
    ("title strengthened", 0.80),
    ("title digit", 0.95),
    ("reason", 0.90),
];

#[expect(clippy::print_stdout, reason = "prints a table for --nocapture")]
#[test]
fn planted_faults_are_rejected_and_true_bullets_accepted() {
    let journals = [Journal::read("mara"), Journal::read("jonas")];
    let mut tallies = BTreeMap::<(bool, String, Half), Tally>::new();
    let mut wrong = Vec::new();
    for case in cases(&journals) {
        let journal = journals.iter().find(|it| it.name == case.journal).unwrap();
        let item = Item::parse(&case.bullet);
        let verdict = match &item.citation {
            Some(citation) if case.class.starts_with("title") => {
                grounding::check_title(&item.text, citation, &journal.logs[..])
            }
            _ => grounding::check_model_item(&item, &journal.logs[..]),
        };
        let key = (case.is_true, case.class.clone(), case.half);
        tallies.entry(key).or_default().add(verdict.is_err());
        if verdict.is_ok() != case.is_true {
            let why = verdict.err().map_or_else(|| "accepted".to_owned(), |it| it.to_string());
            wrong.push((case, why));
        }
    }
    let show = std::env::var("SHOW").unwrap_or_default();
    for (case, why) in &wrong {
        if show.contains(&format!("{:?}", case.half)) {
            let kind = if case.is_true { "true" } else { "false" };
            println!("{kind} {}: {} — {}: {why}", case.class, case.journal, case.bullet);
        }
    }
    let mut all = BTreeMap::<(bool, Half), Tally>::new();
    for ((is_true, class, half), tally) in &tallies {
        let kind = if *is_true { "true" } else { "false" };
        println!("{kind:5} {class:18} {half:?} rejected {:4} of {:4}", tally.rejected, tally.all);
        let sum = all.entry((*is_true, *half)).or_default();
        sum.rejected += tally.rejected;
        sum.all += tally.all;
    }
    for ((is_true, half), tally) in &all {
        println!("{is_true:5} {half:?}: rejected {} of {}", tally.rejected, tally.all);
        assert!(tally.all >= 200);
        assert!(
            !is_true || tally.rejected_share() < 0.02,
            "too many true bullets are rejected: {tally:?}"
        );
    }
    for ((is_true, class, half), tally) in tallies {
        if is_true {
            continue;
        }
        let floor = FLOORS.iter().find(|it| it.0 == class).map_or(1.0, |it| it.1);
        assert!(
            floor < 1.0 || STRICT.contains(&&class[..]),
            "the class {class} is in neither list"
        );
        assert!(tally.rejected_share() >= floor, "{class} {half:?}: {tally:?}");
    }
}
