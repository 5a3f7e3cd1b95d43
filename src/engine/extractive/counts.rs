//! What the engine knows of a root: how common each word is in its logs.
//!
//! A [`Corpus`] keeps the words of all logs that it was given and lends [`Counts`] over the window of
//! days that ends with a period. The counts depend on the logs in that window alone, so that a batch
//! over years, a nightly run, and a repeat see the same numbers. The flow makes one per root.

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};

use crate::{
    memory::{address::Stem, period::Period},
    privacy::ServedLog,
};

use super::{
    page::{self, Form, Page},
    words::{HashedMap, Stems, hash_bytes, mix},
};

/// How many days of logs a period's words are weighed against; older talk is of little help.
pub const WINDOW_DAYS: u64 = 400;

/// How many distinct statements hold each word, over some window of logs.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// The number of a term's hash, which `frequencies` is indexed by.
    numbers: HashedMap<u32>,
    frequencies: Vec<u32>,
    /// How often each distinct statement was said.
    said: HashedMap<u32>,
}

/// The words of a root's logs.
#[derive(Default)]
pub struct Corpus {
    logs: BTreeMap<(NaiveDate, Stem), Bag>,
    counts: Counts,
    /// The days that `counts` covers, both included.
    window: Option<(NaiveDate, NaiveDate)>,
}

/// The words of one log, read and not yet counted.
pub struct Reading {
    key: (NaiveDate, Stem),
    /// Hash of each statement, and the end of its terms in `terms`.
    statements: Vec<(u64, u32)>,
    terms: Vec<u64>,
}

/// The statements of one log, as numbers of terms.
struct Bag {
    /// Hash of each statement, and the end of its terms in `terms`.
    statements: Vec<(u64, u32)>,
    terms: Vec<u32>,
}

impl Corpus {
    /// Returns a corpus without logs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a log in; one of the same name replaces what was known of it.
    pub fn add(&mut self, reading: Reading) {
        let Reading { key, statements, terms } = reading;
        let terms = terms.into_iter().map(|term| self.counts.number(term)).collect();
        let bag = Bag { statements, terms };
        let counted = self.window.is_some_and(|(from, to)| (from..=to).contains(&key.0));
        if counted {
            self.counts.change(&bag, true);
        }
        if let Some(old) = self.logs.insert(key, bag)
            && counted
        {
            self.counts.change(&old, false);
        }
    }

    /// Reads a log and takes it in.
    #[cfg(test)]
    pub(super) fn add_text(&mut self, log: &ServedLog) {
        for reading in read(std::slice::from_ref(log)) {
            self.add(reading);
        }
    }

    /// Returns the counts for a fold of `period`: over the logs of the [`WINDOW_DAYS`] days that
    /// end with the last day that can reach its file.
    ///
    /// Cheap when periods are asked for in order, in either direction.
    pub fn counts(&mut self, period: Period) -> &Counts {
        let (from, to) = window(period);
        let old = self.window.replace((from, to));
        let inside = |window: Option<(NaiveDate, NaiveDate)>, date: NaiveDate| {
            window.is_some_and(|(from, to)| (from..=to).contains(&date))
        };
        let reach_from = old.map_or(from, |(f, _)| f.min(from));
        let reach_to = old.map_or(to, |(_, t)| t.max(to));
        for ((date, _), bag) in &self.logs {
            if *date < reach_from || *date > reach_to {
                continue;
            }
            match (inside(old, *date), inside(Some((from, to)), *date)) {
                (false, true) => self.counts.change(bag, true),
                (true, false) => self.counts.change(bag, false),
                _ => {}
            }
        }
        &self.counts
    }
}

/// Returns the first and the last day whose logs the counts for a fold of `period` are made of.
pub fn window(period: Period) -> (NaiveDate, NaiveDate) {
    let to = period.last_source_day();
    (to.checked_sub_days(Days::new(WINDOW_DAYS)).unwrap_or(NaiveDate::MIN), to)
}

/// Reads the words of logs. Costs what reading their text costs and knows nothing of the corpus,
/// so that it may be done on many threads.
pub fn read(logs: &[ServedLog]) -> Vec<Reading> {
    let mut stems = Stems::default();
    logs.iter()
        .map(|log| {
            let mut reading = Reading {
                key: (log.date(), log.stem().clone()),
                statements: Vec::new(),
                terms: Vec::new(),
            };
            read_page(&page::read(log), &mut stems, &mut reading);
            reading
        })
        .collect()
}

fn read_page(page: &Page, stems: &mut Stems, reading: &mut Reading) {
    let mut terms = Vec::new();
    for statement in page.statements.iter().filter(|s| s.form != Form::Code) {
        for piece in &statement.pieces {
            terms.clear();
            let text = &statement.text[piece.start..piece.end];
            stems.each(page.language, text, |stem| terms.push(stem));
            for atom in crate::memory::atom::atoms(text) {
                terms.push(atom_term(&atom.norm(text)));
            }
            terms.sort_unstable();
            terms.dedup();
            if terms.is_empty() {
                continue;
            }
            let hash = terms.iter().fold(0, |hash, &term| mix(hash, term));
            reading.terms.extend(&terms);
            reading.statements.push((hash, u32::try_from(reading.terms.len()).unwrap_or(u32::MAX)));
        }
    }
}

/// Returns the term of an atom, apart from the stem of the same letters.
pub(super) fn atom_term(norm: &str) -> u64 {
    mix(hash_bytes(norm.as_bytes()), 0xA7)
}

impl Counts {
    /// Returns how many distinct statements there are.
    pub(super) fn statements(&self) -> usize {
        self.said.len()
    }

    /// Returns in how many distinct statements a term stands.
    pub(super) fn frequency(&self, term: u64) -> u32 {
        self.numbers.get(&term).map_or(0, |&number| self.frequencies[number as usize])
    }

    fn number(&mut self, term: u64) -> u32 {
        *self.numbers.entry(term).or_insert_with(|| {
            self.frequencies.push(0);
            u32::try_from(self.frequencies.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Counts the statements of a log, or takes them back.
    fn change(&mut self, bag: &Bag, adds: bool) {
        let mut start = 0;
        for &(hash, end) in &bag.statements {
            let end = end as usize;
            let times = self.said.entry(hash).or_insert(0);
            let (changes, gone) = if adds {
                *times += 1;
                (*times == 1, false)
            } else {
                *times = times.saturating_sub(1);
                (*times == 0, *times == 0)
            };
            if gone {
                self.said.remove(&hash);
            }
            if changes {
                for &term in &bag.terms[start..end] {
                    let frequency = &mut self.frequencies[term as usize];
                    *frequency = if adds { *frequency + 1 } else { frequency.saturating_sub(1) };
                }
            }
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{memory::log::DailyLog, privacy};

    use super::*;

    fn log(stem: &str, text: &str) -> ServedLog {
        privacy::serve(
            &DailyLog::parse(stem.parse().unwrap(), text.as_bytes()).unwrap(),
            &privacy::Rules::default(),
        )
    }

    fn frequencies(corpus: &mut Corpus, period: &str) -> (usize, Vec<u32>) {
        let counts = corpus.counts(period.parse().unwrap());
        let terms = ["harbour", "lisbon", "ledger"].map(|w| {
            let mut term = 0;
            Stems::default().each(
                crate::engine::extractive::words::Language::of(["the"].into_iter()),
                w,
                |t| term = t,
            );
            counts.frequency(term)
        });
        (counts.statements(), terms.to_vec())
    }

    #[test]
    fn counts_depend_on_the_window_alone() {
        let logs = [
            log("2024-01-10", "the harbour was closed"),
            log("2026-03-31", "the harbour of lisbon\n\nthe harbour of lisbon"),
            log("2026-04-09", "the ledger of the harbour"),
        ];
        let mut corpus = Corpus::new();
        for log in &logs {
            corpus.add_text(log);
        }
        assert_eq!(frequencies(&mut corpus, "2026-W14"), (1, vec![1, 1, 0]));
        assert_eq!(frequencies(&mut corpus, "2026-W15"), (2, vec![2, 1, 1]));
        assert_eq!(frequencies(&mut corpus, "2024-W02"), (1, vec![1, 0, 0]));
        assert_eq!(frequencies(&mut corpus, "2026-W14"), (1, vec![1, 1, 0]));
        // A log that changed counts once, as it stands now.
        corpus.add_text(&log("2026-03-31", "the ledger of lisbon"));
        assert_eq!(frequencies(&mut corpus, "2026-W14"), (1, vec![0, 1, 1]));
    }
}
