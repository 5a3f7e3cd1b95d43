//! All sentences of the month's logs, and the candidates among them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use super::{
    SAME_EXCEPT_VALUES,
    candidate::{
        EntryCandidate, Occurrence, candidate_from_text, cite_occurrences, first_sentences,
        is_lasting,
    },
    similarity::{covers_candidate, has_conflicting_values, repeats_entry},
    user_statements::UserStatement,
};
use crate::{
    engine::extractive::{
        memories::{
            keep_mark::without_keep,
            roles::{BlockRole, BlockRoles},
        },
        statements::{
            blocks::{BlockShape, LogBlock, LogSentence, parse_blocks},
            terms::{StatementTerms, TermExtractor, TermSet},
            word_list::WordList,
        },
    },
    memory::{
        address::{Address, Citation},
        wisdom::{WisdomEntry, WisdomEntryMeta},
    },
    privacy::SanitizedLog,
    text::hash::{HashedMap, hash_bytes},
};

/// The fewest days on which a statement must occur.
const DAYS_MIN: usize = 3;

/// A value replaced this often is the date of a routine, not a changed fact.
const REPLACED_MAX: usize = 3;

/// All sentences of the logs that are not external, each distinct one once.
pub(super) struct LogSentences<'a> {
    pub(super) logs: &'a [SanitizedLog],
    /// Sorted by text.
    sentences: Vec<DistinctSentence>,
    /// The indices of the sentences that contain a stem, by its hash.
    by_stem: HashedMap<Vec<usize>>,
    marked: Vec<(String, Occurrence)>,
}

struct DistinctSentence {
    pub(super) text: String,
    pub(super) terms: StatementTerms,
    /// Whether it may become an entry, judged by its words.
    pub(super) is_lasting: bool,
    /// The index of the log and the lines in it, in the order of the logs.
    pub(super) occurrences: Vec<(usize, Vec<u32>)>,
    days: BTreeSet<NaiveDate>,
    /// Whether it occurs at least once outside the headings and labels of tasks.
    is_outside_tasks: bool,
}

impl DistinctSentence {
    /// Returns the days that count as repetition. A long sentence that recurs unchanged was copied by a template
    /// or a program; people vary their words.
    fn counted_days(&self) -> impl Iterator<Item = NaiveDate> + '_ {
        const COPIED_WORDS_MIN: usize = 8;
        let is_copied = self.days.len() >= DAYS_MIN
            && self.text.split_whitespace().nth(COPIED_WORDS_MIN - 1).is_some();
        self.days.iter().copied().take(if is_copied { 1 } else { usize::MAX })
    }
}

/// What is needed only while the sentences are read.
#[derive(Default)]
struct SentenceIndex {
    /// The index of a sentence by the hash of its text.
    by_text: HashedMap<usize>,
    extractor: TermExtractor,
    words: WordList,
}

/// Sentences that differ only in their values.
type SentenceCluster<'a> = Vec<&'a DistinctSentence>;

impl<'a> LogSentences<'a> {
    pub(super) fn build(logs: &'a [SanitizedLog]) -> Self {
        let mut all =
            Self { logs, sentences: Vec::new(), by_stem: HashedMap::default(), marked: Vec::new() };
        let mut index = SentenceIndex::default();
        for (log, served) in logs.iter().enumerate() {
            let blocks = parse_blocks(served);
            let classes = BlockRoles::of(&blocks);
            for (at, block) in blocks.iter().enumerate() {
                let lasting = block.shape != (BlockShape::Bullet { task: true })
                    && classes.role_above(at) != Some(BlockRole::Task);
                all.add_block(log, block, lasting, &mut index);
            }
        }
        all.sentences.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        for (at, sentence) in all.sentences.iter().enumerate() {
            for &stem in sentence.terms.stems.hashes() {
                all.by_stem.entry(stem).or_default().push(at);
            }
        }
        all
    }

    fn add_block(
        &mut self,
        log: usize,
        block: &LogBlock,
        lasting: bool,
        index: &mut SentenceIndex,
    ) {
        // What recurs in tables is a state, not a rule.
        let is_read = !matches!(block.shape, BlockShape::Heading(_) | BlockShape::Row);
        if !is_read && block.keep_lines.is_empty() {
            return;
        }
        let sentences = block.sentences_from(0);
        for &line in &block.keep_lines {
            // The mark covers its line, not the whole paragraph.
            let marked: Vec<&LogSentence> =
                sentences.iter().filter(|it| it.lines.contains(&line)).collect();
            let text: Vec<&str> = marked.iter().map(|it| it.text.as_str()).collect();
            let lines: BTreeSet<u32> =
                marked.iter().flat_map(|it| it.lines.iter().copied()).collect();
            let occurrence = self.occurrence(log, lines);
            self.marked.push((without_keep(&text.join(" ")).into_owned(), occurrence));
        }
        if !is_read {
            return;
        }
        for sentence in sentences {
            let text = without_keep(&sentence.text);
            let hash = hash_bytes(text.as_bytes());
            let at = *index.by_text.entry(hash).or_insert(self.sentences.len());
            if at == self.sentences.len() {
                index.words.read(&text);
                self.sentences.push(DistinctSentence {
                    terms: index.extractor.extract(&index.words),
                    is_lasting: is_lasting(&text, &index.words),
                    text: text.into_owned(),
                    occurrences: Vec::new(),
                    days: BTreeSet::new(),
                    is_outside_tasks: false,
                });
            }
            let distinct = &mut self.sentences[at];
            distinct.occurrences.push((log, sentence.lines));
            distinct.days.insert(self.logs[log].date());
            distinct.is_outside_tasks |= lasting;
        }
    }

    fn occurrence(&self, log: usize, lines: impl IntoIterator<Item = u32>) -> Occurrence {
        let stem = self.logs[log].stem();
        lines.into_iter().map(|line| Address { stem: stem.clone(), line }).collect()
    }

    /// Returns all occurrences of a sentence, in the order of the logs.
    fn occurrences(&self, sentence: &DistinctSentence) -> impl Iterator<Item = Occurrence> {
        sentence.occurrences.iter().map(|(log, lines)| self.occurrence(*log, lines.iter().copied()))
    }

    /// Returns the recurring statements, each with its newest values.
    pub(super) fn recurring_candidates(&self) -> Vec<EntryCandidate> {
        let mut clusters: Vec<SentenceCluster<'_>> = Vec::new();
        for sentence in &self.sentences {
            if !sentence.is_outside_tasks || sentence.terms.stems.len() < 2 || !sentence.is_lasting
            {
                continue;
            }
            let like = |it: &SentenceCluster<'_>| {
                it[0].terms.similarity(&sentence.terms) >= SAME_EXCEPT_VALUES
            };
            match clusters.iter_mut().find(|it| like(it)) {
                Some(cluster) => cluster.push(sentence),
                None => clusters.push(vec![sentence]),
            }
        }
        clusters.iter().flat_map(|cluster| self.split_by_values(cluster)).collect()
    }

    /// Splits a cluster by values. Of values that never occur on the same day the newest is valid; values
    /// that occur side by side are different facts.
    fn split_by_values(&self, cluster: &[&DistinctSentence]) -> Vec<EntryCandidate> {
        let mut by_values: BTreeMap<&TermSet, SentenceCluster<'_>> = BTreeMap::new();
        for sentence in cluster {
            by_values.entry(&sentence.terms.values).or_default().push(sentence);
        }
        let spans: Vec<(BTreeSet<NaiveDate>, &SentenceCluster<'_>)> = by_values
            .values()
            .map(|wordings| (wordings.iter().flat_map(|it| it.counted_days()).collect(), wordings))
            .collect();
        let replaced = |older: &BTreeSet<NaiveDate>, newer: &BTreeSet<NaiveDate>| {
            older.last() < newer.last() && older.is_disjoint(newer)
        };
        spans
            .iter()
            .filter(|(days, _)| !spans.iter().any(|(other, _)| replaced(days, other)))
            .filter_map(|(days, wordings)| {
                let older = || spans.iter().filter(|(other, _)| replaced(other, days));
                let all: BTreeSet<NaiveDate> =
                    older().flat_map(|(other, _)| other).chain(days).copied().collect();
                let stamp = older().count() >= REPLACED_MAX && days.len() < DAYS_MIN;
                if all.len() < DAYS_MIN || stamp {
                    return None;
                }
                // The most frequent wording; of equals the longest, which says most.
                let best =
                    wordings.iter().max_by_key(|it| (it.days.len(), it.text.chars().count()))?;
                let mut occurrences: Vec<Occurrence> =
                    wordings.iter().flat_map(|sentence| self.occurrences(sentence)).collect();
                occurrences.sort();
                let own = self.occurrences(best).last()?;
                Some(candidate_from_text(&best.text, occurrences, own, all.len()))
            })
            .collect()
    }

    pub(super) fn marked_candidates(&self) -> Vec<EntryCandidate> {
        let mut candidates = Vec::new();
        for (text, occurrence) in &self.marked {
            if WordList::of(text).len() < 3 {
                continue;
            }
            let mut candidate = candidate_from_text(
                &first_sentences(text),
                vec![occurrence.clone()],
                occurrence.clone(),
                1,
            );
            candidate.score += 20;
            "marked #keep".clone_into(&mut candidate.reason);
            candidates.push(candidate);
        }
        candidates
    }

    /// Returns the entry that a candidate is about, preferring one with the same values.
    ///
    /// An entry whose own value still occurs beside the new one is about something else.
    pub(super) fn matching_entry<'e>(
        &self,
        candidate: &EntryCandidate,
        entries: &[(StatementTerms, &'e WisdomEntry)],
    ) -> Option<&'e WisdomEntry> {
        let covering =
            || entries.iter().filter(|(terms, _)| covers_candidate(terms, &candidate.terms));
        if let Some((_, entry)) =
            covering().find(|(terms, _)| !has_conflicting_values(terms, &candidate.terms))
        {
            return Some(entry);
        }
        let first =
            candidate.occurrences.first().and_then(|it| it.first()).map(|it| it.stem.date());
        let beside = |terms: &StatementTerms, meta: &WisdomEntryMeta| {
            self.new_occurrences(terms, meta).is_some_and(|it| Some(it.newest_date()) >= first)
        };
        covering()
            .find(|(terms, entry)| !entry.meta.as_ref().is_some_and(|meta| beside(terms, meta)))
            .map(|(_, entry)| *entry)
    }

    /// Returns the statement of a person that must replace the text of an entry: both cite the same line,
    /// and the entry repeats that line or resembles the statement.
    pub(super) fn user_correction<'w>(
        &self,
        entry: &WisdomEntry,
        terms: &StatementTerms,
        meta: &WisdomEntryMeta,
        own: &'w [UserStatement],
    ) -> Option<&'w UserStatement> {
        /// Two statements on the same line that are at least this similar are about the same.
        const ALIKE: f64 = 0.5;
        let about = |words: &&UserStatement| {
            let shared = |at: &Address| meta.sources.cites(at);
            let repeats = |at: &Address| {
                let log = self.logs.iter().find(|log| *log.stem() == at.stem);
                let line = log.and_then(|log| log.line(at.line));
                line.is_some_and(|line| covers_candidate(&StatementTerms::of(line.words()), terms))
            };
            let shared: Vec<Address> = words.citation.addresses().filter(shared).collect();
            !shared.is_empty()
                && (words.terms.similarity(terms) >= ALIKE || shared.iter().any(repeats))
        };
        let found: Vec<&UserStatement> = own.iter().filter(about).collect();
        let is_applied = found.iter().any(|it| it.text == entry.text);
        found.first().copied().filter(|_| !is_applied)
    }

    /// Returns the lines that repeat an entry and are newer than its last reinforcement.
    pub(super) fn new_occurrences(
        &self,
        entry: &StatementTerms,
        meta: &WisdomEntryMeta,
    ) -> Option<Citation> {
        /// Sentences with fewer common stems are about different things.
        const SHARED_MIN: usize = 3;
        let mut shared = vec![0_usize; self.sentences.len()];
        for stem in entry.stems.hashes() {
            for &sentence in self.by_stem.get(stem).map_or(&[][..], Vec::as_slice) {
                shared[sentence] += 1;
            }
        }
        let repeating = self.sentences.iter().zip(shared).filter(|(sentence, shared)| {
            *shared >= SHARED_MIN
                && sentence.days.last().is_some_and(|day| *day > meta.last_reinforced)
                && !sentence.text.contains('?')
                && repeats_entry(entry, &sentence.terms)
        });
        let new = |it: &Address| it.stem.date() > meta.last_reinforced && !meta.sources.cites(it);
        let mut occurrences: Vec<Occurrence> = repeating
            .flat_map(|(sentence, _)| self.occurrences(sentence))
            .filter(|it| it.iter().all(new))
            .collect();
        occurrences.sort();
        cite_occurrences(&occurrences, &[])
    }
}
