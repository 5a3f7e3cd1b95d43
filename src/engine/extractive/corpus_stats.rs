//! What the engine knows of a root: how common each word is in its logs.
//!
//! A [`Corpus`] keeps the words of all logs that it was given and lends [`CorpusCounts`] over the window of
//! days that ends with a period. The counts depend on the logs in that window alone, so that a batch
//! over years, a nightly run, and a repeat see the same numbers. The flow makes one per root.

use std::{collections::BTreeMap, sync::Arc};

use chrono::{Days, NaiveDate};

use crate::{
    memory::{address::Stem, period::Period},
    privacy::SanitizedLog,
};

use super::{
    parsed_log::{self, LogStatement, ParsedLog, StatementForm},
    sentence::StatementPiece,
    tokens::{self, PackedToken, TokenKind},
    words::{HashedMap, Language, StemCache, combine_hashes, hash_bytes},
};

/// How many days of logs a period's words are weighed against; older talk is of little help.
pub const WINDOW_DAYS: u64 = 400;

/// So many days before the end of a period reach the logs beneath it.
const SOURCE_DAYS: u64 = 45;

/// How many distinct statements hold each word, over some window of logs; and the words of the logs of
/// a period, so that a fold need not read them again.
#[derive(Clone, Debug, Default)]
pub struct CorpusCounts {
    /// The number of a term's hash, which `frequencies` is indexed by.
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
    /// How often each distinct statement was said.
    occurrences: HashedMap<u32>,
    /// For each term, the last statement that it was counted for; `counted` numbers these.
    last_counted_in: Vec<u32>,
    counted: u32,
    /// The days that `counts` covers, both included.
    window: Option<(NaiveDate, NaiveDate)>,
}

/// The words of one log, read and not yet counted.
pub struct TokenizedLog {
    key: (NaiveDate, Stem),
    fingerprint: u64,
    language: Language,
    /// Hash of the set of terms of each piece, 0 for one without any, and the end of its tokens.
    pieces: Vec<(u64, u32)>,
    terms: Vec<u64>,
    kinds: Vec<TokenKind>,
}

/// The pieces of one log that are no code, as tokens.
#[derive(Debug)]
struct LogTokens {
    /// Tells the log from one with other words.
    fingerprint: u64,
    language: Language,
    /// Hash of the set of terms of each piece, 0 for one without any, and the end of its tokens.
    pieces: Vec<(u64, u32)>,
    tokens: Vec<PackedToken>,
}

impl Corpus {
    /// Returns a corpus without logs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a log in; one of the same name replaces what was known of it.
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

    /// Reads a log and takes it in.
    #[cfg(test)]
    pub(super) fn add_text(&mut self, log: &SanitizedLog) {
        for reading in tokenize(std::slice::from_ref(log)) {
            self.add(reading);
        }
    }

    /// Returns the counts for a fold of `period`: over the logs of the [`WINDOW_DAYS`] days that
    /// end with the last day that can reach its file.
    ///
    /// Cheap when periods are asked for in order, in either direction.
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
        let beneath = logs.range((first, Stem::day(first))..);
        let beneath = beneath.take_while(|((date, _), _)| *date <= to);
        self.counts.source_tokens =
            beneath.map(|((_, stem), bag)| (stem.clone(), bag.clone())).collect();
        self.logs = logs;
        self.counts.statements = self.occurrences.len();
        &self.counts
    }

    /// Counts the pieces of a log, or takes them back.
    fn update_counts(&mut self, bag: &LogTokens, adds: bool) {
        for (hash, tokens) in bag.pieces().filter(|it| it.0 != 0) {
            let times = self.occurrences.entry(hash).or_insert(0);
            let before = *times;
            *times = if adds { before + 1 } else { before.saturating_sub(1) };
            if *times == 0 {
                self.occurrences.remove(&hash);
            }
            // What is said again counts no more.
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
    /// Returns the hash and the tokens of each piece.
    fn pieces(&self) -> impl Iterator<Item = (u64, &[PackedToken])> {
        let mut start = 0;
        self.pieces.iter().map(move |&(hash, end)| {
            let tokens = &self.tokens[start..end as usize];
            start = end as usize;
            (hash, tokens)
        })
    }
}

/// Returns the first and the last day whose logs the counts for a fold of `period` are made of.
pub fn count_window(period: Period) -> (NaiveDate, NaiveDate) {
    let to = period.last_source_day();
    (to.checked_sub_days(Days::new(WINDOW_DAYS)).unwrap_or(NaiveDate::MIN), to)
}

/// Reads the words of logs. Costs what reading their text costs and knows nothing of the corpus,
/// so that it may be done on many threads.
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
        for (statement, piece) in prose(&page) {
            let text = &statement.text[piece.start..piece.end];
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

/// Returns the pieces of a page that are no code, each with its statement.
fn prose(page: &ParsedLog) -> impl Iterator<Item = (&LogStatement, &StatementPiece)> {
    let statements = page.statements.iter().filter(|it| it.form != StatementForm::Code);
    statements.flat_map(|statement| statement.pieces.iter().map(move |piece| (statement, piece)))
}

/// Returns what tells a page from one that was read from other words.
fn text_fingerprint(page: &ParsedLog) -> u64 {
    prose(page).fold(0, |hash, (statement, piece)| {
        combine_hashes(hash, hash_bytes(&statement.text.as_bytes()[piece.start..piece.end]))
    })
}

impl CorpusCounts {
    /// Returns how many distinct statements there are.
    pub(super) fn statements(&self) -> usize {
        self.statements
    }

    /// Returns in how many distinct statements a term stands.
    #[cfg(test)]
    fn frequency(&self, term: u64) -> u32 {
        self.number(term).map_or(0, |number| self.frequency_of(number))
    }

    /// Returns in how many distinct statements the term of a number stands.
    pub(super) fn frequency_of(&self, number: u32) -> u32 {
        self.frequencies.get(number as usize).copied().unwrap_or(0)
    }

    /// Returns the number of a term that some log holds.
    pub(super) fn number(&self, term: u64) -> Option<u32> {
        self.numbers.get(&term).copied()
    }

    /// Returns how many numbers there are.
    pub(super) fn numbers(&self) -> usize {
        self.frequencies.len()
    }

    /// Returns the tokens of each piece of a page that is no code, in order, where it was read already.
    pub(super) fn tokens(&self, page: &ParsedLog) -> Option<impl Iterator<Item = &[PackedToken]>> {
        self.tokens_of(page).map(|bag| bag.pieces().map(|it| it.1))
    }

    /// Returns the language of a page that was read already.
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
            StemCache::default().for_each_stem(
                crate::engine::extractive::words::Language::detect(["the"].into_iter()),
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
