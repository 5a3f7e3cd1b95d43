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
        scripts,
        stems::StemCache,
    },
};

use super::{
    parsed_log::{self, LogStatement, ParsedLog, StatementForm},
    tokens::{self, PackedToken, TokenKind},
};

/// The length of the window in days; older logs say little about what is rare now.
pub const WINDOW_DAYS: u64 = 400;

/// The most days from the first source log of a period to its end.
const SOURCE_DAYS: u64 = 45;

/// A statement that occurred unchanged on this many days before a period is a template's or a program's: the
/// periods in which it was new have it.
const BOILERPLATE_DAYS: u32 = 3;

/// A shorter statement recurs in people's own words, too.
const BOILERPLATE_WORDS_MIN: usize = 8;

/// The same for scripts without spaces.
const BOILERPLATE_UNSPACED_CHARS_MIN: usize = 16;

/// How many distinct statements in a window of logs contain each word; and the tokens of a period's logs,
/// so that a summary need not read them again.
#[derive(Clone, Debug, Default)]
pub struct CorpusCounts {
    /// Maps the hash of a term to its number, the index into `frequencies`.
    numbers: Arc<HashedMap<u32>>,
    frequencies: Vec<u32>,
    statements: usize,
    source_tokens: BTreeMap<Stem, Arc<LogTokens>>,
    /// On how many days each long statement occurs unchanged: in the window, and in the period itself.
    statement_days: HashedMap<u32>,
    period_days: HashedMap<u32>,
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
    long_statements: Vec<u64>,
}

/// The tokens of the pieces of one log, without code.
#[derive(Debug)]
struct LogTokens {
    fingerprint: u64,
    language: Language,
    /// Per piece, the hash of its set of terms (0 if empty) and the end of its tokens.
    pieces: Vec<(u64, u32)>,
    tokens: Vec<PackedToken>,
    /// The hashes of its long statements, sorted, each once.
    long_statements: Vec<u64>,
}

impl Corpus {
    /// Returns a corpus without logs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a log, replacing an earlier version of it.
    pub fn add(&mut self, reading: TokenizedLog) {
        let TokenizedLog { key, fingerprint, language, pieces, terms, kinds, long_statements } =
            reading;
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
        let tokens = tokens.collect();
        let bag = Arc::new(LogTokens { fingerprint, language, pieces, tokens, long_statements });
        self.last_counted_in.resize(self.counts.frequencies.len(), 0);
        let date = key.0;
        let counted = self.window.is_some_and(|(from, to)| (from..=to).contains(&date));
        let before = if counted { self.long_statements_of(date) } else { Vec::new() };
        if counted {
            self.update_counts(&bag, true);
        }
        if let Some(old) = self.logs.insert(key, bag)
            && counted
        {
            self.update_counts(&old, false);
        }
        if counted {
            self.update_statement_days(&before, false);
            let after = self.long_statements_of(date);
            self.update_statement_days(&after, true);
        }
    }

    /// Returns the long statements of all logs of a day, sorted, each once.
    fn long_statements_of(&self, date: NaiveDate) -> Vec<u64> {
        let logs = self.logs.range((date, Stem::day(date))..).take_while(|it| it.0.0 == date);
        let mut found: Vec<u64> = logs.flat_map(|it| &it.1.long_statements).copied().collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Counts the long statements of one day, or subtracts them.
    fn update_statement_days(&mut self, statements: &[u64], adds: bool) {
        for &statement in statements {
            let days = self.counts.statement_days.entry(statement).or_insert(0);
            *days = if adds { *days + 1 } else { days.saturating_sub(1) };
            if *days == 0 {
                self.counts.statement_days.remove(&statement);
            }
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
        let mut changed_days = Vec::new();
        for ((date, _), bag) in reached.take_while(|((date, _), _)| *date <= reach_to) {
            let adds = inside(Some((from, to)), *date);
            if adds != inside(old, *date) {
                self.update_counts(bag, adds);
                if changed_days.last() != Some(&(*date, adds)) {
                    changed_days.push((*date, adds));
                }
            }
        }
        let first = to.checked_sub_days(Days::new(SOURCE_DAYS)).unwrap_or(NaiveDate::MIN);
        let sources = logs.range((first, Stem::day(first))..);
        let sources = sources.take_while(|((date, _), _)| *date <= to);
        self.counts.source_tokens =
            sources.map(|((_, stem), bag)| (stem.clone(), bag.clone())).collect();
        self.logs = logs;
        for (date, adds) in changed_days {
            let statements = self.long_statements_of(date);
            self.update_statement_days(&statements, adds);
        }
        let first = period.weeks().first().map_or(to, |it| it.first());
        self.counts.period_days.clear();
        for date in first.iter_days().take_while(|it| *it <= to) {
            for statement in self.long_statements_of(date) {
                *self.counts.period_days.entry(statement).or_insert(0) += 1;
            }
        }
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
            long_statements: page.statements.iter().filter_map(long_statement_hash).collect(),
        };
        reading.long_statements.sort_unstable();
        reading.long_statements.dedup();
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

/// Returns the hash of a statement that is long enough to be boilerplate when it recurs. Lines marked
/// `#keep` never are.
fn long_statement_hash(statement: &LogStatement) -> Option<u64> {
    let text = &statement.text[..];
    let is_long = || {
        let words = text.split_whitespace().filter(|it| it.contains(char::is_alphanumeric));
        words.take(BOILERPLATE_WORDS_MIN).count() == BOILERPLATE_WORDS_MIN
            || (scripts::is_mostly_spaceless(text)
                && text.chars().nth(BOILERPLATE_UNSPACED_CHARS_MIN - 1).is_some())
    };
    (statement.form != StatementForm::Code && !statement.keep && is_long())
        .then(|| hash_bytes(text.as_bytes()))
}

fn text_fingerprint(page: &ParsedLog) -> u64 {
    prose(page).fold(0, |hash, text| combine_hashes(hash, hash_bytes(text.as_bytes())))
}

impl CorpusCounts {
    /// Returns whether a statement occurred unchanged on several days before the period, which then only repeats
    /// it.
    pub(super) fn is_boilerplate(&self, statement: &LogStatement) -> bool {
        let days = |hash: &u64, counted: &HashedMap<u32>| counted.get(hash).copied().unwrap_or(0);
        long_statement_hash(statement).is_some_and(|it| {
            days(&it, &self.statement_days)
                >= BOILERPLATE_DAYS.saturating_add(days(&it, &self.period_days))
        })
    }

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
