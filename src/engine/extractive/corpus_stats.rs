//! Word statistics of a root: how common each word is in its logs.
//!
//! A [`Corpus`] keeps the words of all added logs and returns [`CorpusCounts`] over the window of days that
//! ends with a period. The counts depend only on the logs in that window, so that a batch over years, a
//! nightly run, and a repeated run see the same numbers. A run creates one corpus per root.

use std::{collections::BTreeMap, sync::Arc};

use chrono::{Days, NaiveDate};

use crate::{
    memory::{address::Stem, period::Period},
    privacy::SanitizedLog,
    text::{
        hash::{HashedMap, combine_hashes, hash_bytes},
        language::Language,
        stems::StemCache,
    },
};

use super::{
    parsed_log::{self, ParsedLog, StatementForm},
    tokens::{self, PackedToken, TokenKind},
};

/// The length of the window in days; older logs say little about what is rare now.
pub const WINDOW_DAYS: u64 = 400;

/// The most days from the first source log of a period to its end.
const SOURCE_DAYS: u64 = 45;

/// How many distinct statements in a window of logs contain each word; and the tokens of a period's logs,
/// so that a summary need not read them again.
#[derive(Clone, Debug, Default)]
pub struct CorpusCounts {
    /// Maps the hash of a term to its number, the index into `frequencies`.
    numbers: Arc<HashedMap<u32>>,
    frequencies: Vec<u32>,
    statements: usize,
    source_tokens: BTreeMap<Stem, Arc<LogTokens>>,
}

/// The words of a root's logs.
#[derive(Default)]
pub struct Corpus {
    logs: BTreeMap<(NaiveDate, Stem), Arc<LogTokens>>,
    counts: CorpusCounts,
    /// How often each distinct statement occurs.
    occurrences: HashedMap<u32>,
    /// Per term, the last statement that it was counted for, numbered by `counted`.
    last_counted_in: Vec<u32>,
    counted: u32,
    /// The first and last day that `counts` covers.
    window: Option<(NaiveDate, NaiveDate)>,
}

/// The words of one log, not yet counted.
pub struct TokenizedLog {
    key: (NaiveDate, Stem),
    fingerprint: u64,
    language: Language,
    /// Per piece, the hash of its set of terms (0 if empty) and the end of its tokens.
    pieces: Vec<(u64, u32)>,
    terms: Vec<u64>,
    kinds: Vec<TokenKind>,
}

/// The tokens of the pieces of one log, without code.
#[derive(Debug)]
struct LogTokens {
    fingerprint: u64,
    language: Language,
    /// Per piece, the hash of its set of terms (0 if empty) and the end of its tokens.
    pieces: Vec<(u64, u32)>,
    tokens: Vec<PackedToken>,
}

impl Corpus {
    /// Returns a corpus without logs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a log, replacing an earlier version of it.
    pub fn add(&mut self, reading: TokenizedLog) {
        let TokenizedLog { key, fingerprint, language, pieces, terms, kinds } = reading;
        let numbers = Arc::make_mut(&mut self.counts.numbers);
        let frequencies = &mut self.counts.frequencies;
        let mut number = |term| {
            *numbers.entry(term).or_insert_with(|| {
                frequencies.push(0);
                u32::try_from(frequencies.len() - 1).unwrap_or(u32::MAX)
            })
        };
        let tokens = terms.into_iter().zip(kinds);
        let tokens = tokens.map(|(term, kind)| PackedToken::new(number(term), kind));
        let bag = Arc::new(LogTokens { fingerprint, language, pieces, tokens: tokens.collect() });
        self.last_counted_in.resize(self.counts.frequencies.len(), 0);
        let counted = self.window.is_some_and(|(from, to)| (from..=to).contains(&key.0));
        if counted {
            self.update_counts(&bag, true);
        }
        if let Some(old) = self.logs.insert(key, bag)
            && counted
        {
            self.update_counts(&old, false);
        }
    }

    #[cfg(test)]
    pub(super) fn add_text(&mut self, log: &SanitizedLog) {
        for reading in tokenize(std::slice::from_ref(log)) {
            self.add(reading);
        }
    }

    /// Returns the counts for a summary of `period`, over the [`WINDOW_DAYS`] days that end with the last
    /// day that can be a source of it.
    ///
    /// Cheap when called for periods in order, in either direction.
    pub fn counts(&mut self, period: Period) -> &CorpusCounts {
        let (from, to) = count_window(period);
        let old = self.window.replace((from, to));
        let inside = |window: Option<(NaiveDate, NaiveDate)>, date: NaiveDate| {
            window.is_some_and(|(from, to)| (from..=to).contains(&date))
        };
        let reach_from = old.map_or(from, |(f, _)| f.min(from));
        let reach_to = old.map_or(to, |(_, t)| t.max(to));
        let logs = std::mem::take(&mut self.logs);
        let reached = logs.range((reach_from, Stem::day(reach_from))..);
        for ((date, _), bag) in reached.take_while(|((date, _), _)| *date <= reach_to) {
            match (inside(old, *date), inside(Some((from, to)), *date)) {
                (false, true) => self.update_counts(bag, true),
                (true, false) => self.update_counts(bag, false),
                _ => {}
            }
        }
        let first = to.checked_sub_days(Days::new(SOURCE_DAYS)).unwrap_or(NaiveDate::MIN);
        let sources = logs.range((first, Stem::day(first))..);
        let sources = sources.take_while(|((date, _), _)| *date <= to);
        self.counts.source_tokens =
            sources.map(|((_, stem), bag)| (stem.clone(), bag.clone())).collect();
        self.logs = logs;
        self.counts.statements = self.occurrences.len();
        &self.counts
    }

    /// Adds the pieces of a log to the counts, or subtracts them.
    fn update_counts(&mut self, bag: &LogTokens, adds: bool) {
        for (hash, tokens) in bag.pieces().filter(|it| it.0 != 0) {
            let times = self.occurrences.entry(hash).or_insert(0);
            let before = *times;
            *times = if adds { before + 1 } else { before.saturating_sub(1) };
            if *times == 0 {
                self.occurrences.remove(&hash);
            }
            // Only the first occurrence of a statement counts.
            if before != u32::from(!adds) {
                continue;
            }
            if self.counted == u32::MAX {
                self.last_counted_in.fill(0);
                self.counted = 0;
            }
            self.counted += 1;
            for token in tokens.iter().filter(|it| it.kind() != TokenKind::LastSegment) {
                let number = token.term_id() as usize;
                if std::mem::replace(&mut self.last_counted_in[number], self.counted)
                    != self.counted
                {
                    let frequency = &mut self.counts.frequencies[number];
                    *frequency = if adds { *frequency + 1 } else { frequency.saturating_sub(1) };
                }
            }
        }
    }
}

impl LogTokens {
    fn pieces(&self) -> impl Iterator<Item = (u64, &[PackedToken])> {
        let mut start = 0;
        self.pieces.iter().map(move |&(hash, end)| {
            let tokens = &self.tokens[start..end as usize];
            start = end as usize;
            (hash, tokens)
        })
    }
}

/// Returns the first and the last day of the window for a summary of `period`.
pub fn count_window(period: Period) -> (NaiveDate, NaiveDate) {
    let to = period.last_source_day();
    (to.checked_sub_days(Days::new(WINDOW_DAYS)).unwrap_or(NaiveDate::MIN), to)
}

/// Tokenizes logs. This is the expensive part and needs no corpus, so it can run on many threads.
pub fn tokenize(logs: &[SanitizedLog]) -> Vec<TokenizedLog> {
    let mut stems = StemCache::default();
    let mut terms = Vec::new();
    let mut read = |log: &SanitizedLog| {
        let page = parsed_log::parse(log);
        let mut reading = TokenizedLog {
            key: (log.date(), log.stem().clone()),
            fingerprint: text_fingerprint(&page),
            language: page.language,
            pieces: Vec::new(),
            terms: Vec::new(),
            kinds: Vec::new(),
        };
        for text in prose(&page) {
            terms.clear();
            tokens::for_each_token(&mut stems, page.language, text, |term, kind| {
                reading.terms.push(term);
                reading.kinds.push(kind);
                if kind != TokenKind::LastSegment {
                    terms.push(term);
                }
            });
            terms.sort_unstable();
            terms.dedup();
            let hash = terms.iter().fold(0, |hash, &term| combine_hashes(hash, term));
            reading.pieces.push((hash, u32::try_from(reading.terms.len()).unwrap_or(u32::MAX)));
        }
        reading
    };
    logs.iter().map(&mut read).collect()
}

/// Returns the words of the pieces of a page except code.
fn prose(page: &ParsedLog) -> impl Iterator<Item = &str> {
    let statements = page.statements.iter().filter(|it| it.form != StatementForm::Code);
    statements.flat_map(|it| (0..it.pieces.len()).map(|piece| it.piece_text(piece)))
}

fn text_fingerprint(page: &ParsedLog) -> u64 {
    prose(page).fold(0, |hash, text| combine_hashes(hash, hash_bytes(text.as_bytes())))
}

impl CorpusCounts {
    /// Returns the number of distinct statements.
    pub(super) fn statements(&self) -> usize {
        self.statements
    }

    /// Returns the number of distinct statements that contain a term.
    #[cfg(test)]
    fn frequency(&self, term: u64) -> u32 {
        self.number(term).map_or(0, |number| self.frequency_of(number))
    }

    /// Returns the number of distinct statements that contain the term with a number.
    pub(super) fn frequency_of(&self, number: u32) -> u32 {
        self.frequencies.get(number as usize).copied().unwrap_or(0)
    }

    /// Returns the number of a term; `None` if no log contains it.
    pub(super) fn number(&self, term: u64) -> Option<u32> {
        self.numbers.get(&term).copied()
    }

    /// Returns how many term numbers there are.
    pub(super) fn numbers(&self) -> usize {
        self.frequencies.len()
    }

    /// Returns the tokens of each piece of a page except code, in order; `None` if the page is not in the
    /// corpus.
    pub(super) fn tokens(&self, page: &ParsedLog) -> Option<impl Iterator<Item = &[PackedToken]>> {
        self.tokens_of(page).map(|bag| bag.pieces().map(|it| it.1))
    }

    /// Returns the language of a page; `None` if the page is not in the corpus.
    pub(super) fn language(&self, page: &ParsedLog) -> Option<Language> {
        self.tokens_of(page).map(|bag| bag.language)
    }

    fn tokens_of(&self, page: &ParsedLog) -> Option<&LogTokens> {
        let bag = self.source_tokens.get(&page.stem)?;
        (bag.fingerprint == text_fingerprint(page)).then_some(bag)
    }
}

#[cfg(test)]
mod tests {
    use crate::{memory::log::DailyLog, privacy};

    use super::*;

    fn log(stem: &str, text: &str) -> SanitizedLog {
        privacy::sanitize(
            &DailyLog::parse(stem.parse().unwrap(), text.as_bytes()).unwrap(),
            &privacy::PrivacyRules::default(),
        )
    }

    fn frequencies(corpus: &mut Corpus, period: &str) -> (usize, Vec<u32>) {
        let counts = corpus.counts(period.parse().unwrap());
        let terms = ["harbour", "lisbon", "ledger"].map(|w| {
            let mut term = 0;
            StemCache::default()
                .for_each_stem(Language::detect(["the"].into_iter()), w, |t| term = t);
            counts.frequency(term)
        });
        (counts.statements(), terms.to_vec())
    }

    #[test]
    fn counts_depend_only_on_the_window() {
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
        // Only the new version of a changed log counts.
        corpus.add_text(&log("2026-03-31", "the ledger of lisbon"));
        assert_eq!(frequencies(&mut corpus, "2026-W14"), (1, vec![0, 1, 1]));
    }
}
