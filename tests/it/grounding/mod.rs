//! A model that lies, and one that tells the truth in words of its own: what the check of a bullet
//! against its lines catches, and what it refuses wrongly.
//!
//! The bullets are about the two sample journals. Half of them stand in `tests/data/grounding`, written
//! by hand; the others are made of the journals' lines: true ones by shortening, joining, and writing
//! numbers and dates in another form, false ones by one planted fault each. Both kinds are cut in two
//! halves: the check was improved on the one, and what it does with the other tells what it is worth.

use std::{collections::BTreeMap, fs, path::Path};

use chrono::{Days, NaiveDate};
use memoird::internals::{
    compaction::grounding,
    memory::{address::Stem, item::Item, log::DailyLog},
    privacy::{self, SanitizedLog},
};

mod make;

/// So many bullets of a kind are made of lines, for each half.
const MADE_MAX: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    /// The check may be improved on it.
    Open,
    /// Not looked at.
    Held,
}

/// One bullet.
#[derive(Clone, Debug)]
struct Case {
    half: Half,
    journal: String,
    /// What is done to a true bullet, or wrong with a false one.
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
    cases.extend(by_hand(Half::Held, true, include_str!("../../data/grounding/true-held.txt")));
    cases.extend(by_hand(Half::Open, false, include_str!("../../data/grounding/false-open.txt")));
    cases.extend(by_hand(Half::Held, false, include_str!("../../data/grounding/false-held.txt")));
    let mut made = BTreeMap::<_, usize>::new();
    for journal in journals {
        for case in make::cases(journal) {
            let count = made.entry((case.half, case.is_true, case.class.clone())).or_default();
            *count += 1;
            if *count <= MADE_MAX {
                cases.push(case);
            }
        }
    }
    cases
}

/// How many bullets of a class were refused, of how many.
#[derive(Clone, Copy, Debug, Default)]
struct Figure {
    refused: usize,
    all: usize,
}

impl Figure {
    fn see(&mut self, refused: bool) {
        self.refused += usize::from(refused);
        self.all += 1;
    }

    fn share(self) -> f64 {
        let count = |it: usize| f64::from(u32::try_from(it).unwrap());
        count(self.refused) / count(self.all.max(1))
    }
}

/// What must always be found.
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

/// What a program cannot always tell, and how much of it is found at the least.
const FLOORS: &[(&str, f64)] = &[
    ("attribution", 0.85),
    ("negation dropped", 0.75),
    ("negation added", 0.85),
    ("wrong line", 0.95),
];

#[expect(clippy::print_stdout, reason = "the table is what a person asks for with --nocapture")]
#[test]
fn planted_faults_are_rejected_and_true_bullets_accepted() {
    let journals = [Journal::read("mara"), Journal::read("jonas")];
    let mut figures = BTreeMap::<(bool, String, Half), Figure>::new();
    let mut wrong = Vec::new();
    for case in cases(&journals) {
        let journal = journals.iter().find(|it| it.name == case.journal).unwrap();
        let item = Item::parse(&case.bullet);
        let verdict = grounding::check_model_item(&item, &journal.logs[..]);
        let key = (case.is_true, case.class.clone(), case.half);
        figures.entry(key).or_default().see(verdict.is_err());
        if verdict.is_ok() != case.is_true {
            let why = verdict.err().map_or_else(|| "stands".to_owned(), |it| it.to_string());
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
    let mut all = BTreeMap::<(bool, Half), Figure>::new();
    for ((is_true, class, half), figure) in &figures {
        let kind = if *is_true { "true" } else { "false" };
        println!("{kind:5} {class:18} {half:?} refused {:4} of {:4}", figure.refused, figure.all);
        let sum = all.entry((*is_true, *half)).or_default();
        sum.refused += figure.refused;
        sum.all += figure.all;
    }
    for ((is_true, half), figure) in &all {
        println!("{is_true:5} {half:?}: refused {} of {}", figure.refused, figure.all);
        assert!(figure.all >= 200);
        assert!(!is_true || figure.share() < 0.02, "true bullets are refused: {figure:?}");
    }
    for ((is_true, class, half), figure) in figures {
        if is_true {
            continue;
        }
        let floor = FLOORS.iter().find(|it| it.0 == class).map_or(1.0, |it| it.1);
        assert!(floor < 1.0 || STRICT.contains(&&class[..]), "{class} is not known");
        assert!(figure.share() >= floor, "{class} {half:?}: {figure:?}");
    }
}
