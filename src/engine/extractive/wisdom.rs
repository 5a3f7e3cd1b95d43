//! Edits of `WISDOM.md` from one month, without a model.
//!
//! An entry comes from a statement that stands: one that recurs on at least three days, one that is
//! marked `#keep`, or a typed memory. It must change what somebody does: a rule, a limit, a habit, a
//! person's wish; reports, steps, and states are passed over. For each new piece there is exactly
//! one decision: it reinforces an entry that stands, it brings one up to date, it is added, or it is
//! left. What was not said again for three months is offered for dropping, last.
//!
//! # Invariants
//!
//! - Words are those of the logs; an entry that stands is never reworded, except where a newer
//!   statement of the same thing has another number, date, or weekday: then the newer one wins.
//! - Text of external origin supports nothing.
//! - A person's entry is never touched: it only keeps us from saying the same.
//! - What a person wrote into a week, a month, or a typed memory stands above the lines that it
//!   cites: an entry that repeats those takes the person's words, and keeps them.
//! - The same input gives the same edits, best first.
//!
//! Called by the extractive engine.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Months, NaiveDate};

use super::{
    cue_phrases,
    memories::{
        BlockRole, BlockRoles, about_person, has_date, is_about_person, opens_as_report,
        role_of_label, split_reason, without_keep, without_keep_mark,
    },
    statements::{
        self, BlockShape, LogBlock, LogSentence, StatementTerms, TermExtractor, TermSet, WordList,
        capitalize_title, code_share, split_label, title_of, words_are_self_contained,
    },
};
use crate::{
    engine::{DistillInput, WisdomOp},
    memory::{
        address::{Address, Citation},
        log::TextOrigin,
        typed::{MemoryType, TypedMemory},
        wisdom::{WisdomEntry, WisdomEntryMeta},
    },
    privacy::SanitizedLog,
    text::{
        calendar,
        hash::{HashedMap, hash_bytes},
        sentences::sentence_ranges,
    },
};

/// More entries a month than this would push out what lasts longer.
const ADDS_MAX: usize = 8;
/// On so many days a statement must stand to be more than a passing remark.
const DAYS_MIN: usize = 3;
/// A title is one line.
const TITLE_CHARS_MAX: usize = 80;
/// An entry is one to three sentences.
const SENTENCES_MAX: usize = 3;
/// Longer than this and it is no principle.
const TEXT_CHARS_MAX: usize = 420;
/// From this likeness on, two statements differ in their values only.
const SAME_EXCEPT_VALUES: f64 = 0.75;
/// A new entry that shares this much with another one says nothing new.
const SAME_TOPIC: f64 = 0.4;
/// A value that was replaced so often is the date of a routine, not a fact that changed.
const REPLACED_MAX: usize = 3;
/// A citation holds the oldest lines, for `first seen`, and the newest.
const OLDEST_CITED: usize = 2;
const NEWEST_CITED: usize = 6;
/// An entry that was not said again for so long is offered for dropping.
const UNREINFORCED_AFTER: Months = Months::new(3);

/// Proposes edits of the entries from one month.
pub(super) fn distill(input: &DistillInput<'_>) -> Vec<WisdomOp> {
    let said = LogSentences::build(input.logs);
    let own = user_statements(input);
    let mut pieces = said.recurring_candidates();
    pieces.extend(said.marked_candidates());
    pieces.extend(
        input.memories.iter().filter_map(|memory| candidate_from_memory(memory, input.logs)),
    );
    for piece in &mut pieces {
        apply_month_items(piece, input);
        apply_user_statements(piece, &own);
    }
    pieces.extend(own.iter().filter(|it| it.is_lasting).map(UserStatement::to_candidate));
    // Best first; then by words, so that equal scores do not depend on the order of reading.
    pieces.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.text.cmp(&b.text)));

    let entries: Vec<(StatementTerms, &WisdomEntry)> = input
        .entries
        .iter()
        .map(|it| (StatementTerms::of(&format!("{} {}", it.title, it.text)), it))
        .collect();
    let mut merged: BTreeMap<&str, WisdomOp> = BTreeMap::new();
    let mut adds: Vec<WisdomOp> = Vec::new();
    let mut added: Vec<StatementTerms> = Vec::new();
    for (gist, entry) in &entries {
        if let Some(mark) = &entry.meta
            && let Some(words) = said.user_correction(entry, gist, mark, &own)
        {
            // Whatever else repeats it says nothing new.
            added.push(words.gist.clone());
            merged.insert(&mark.id, words.correction(mark));
        }
    }
    for piece in pieces {
        if let Some(entry) = said.matching_entry(&piece, &entries) {
            if let Some(mark) = &entry.meta
                && let Some(op) = piece.merge_into(entry, mark)
                && !merged.contains_key(mark.id.as_str())
            {
                merged.insert(&mark.id, op);
            }
            continue;
        }
        if adds.len() == ADDS_MAX || added.iter().any(|it| same_topic(it, &piece.gist)) {
            continue;
        }
        if let Some(citation) = piece.citation() {
            added.push(piece.gist);
            adds.push(WisdomOp::Add {
                title: piece.title,
                text: piece.text,
                category: category_for(piece.kind, input.categories),
                reason: piece.reason,
                citation,
            });
        }
    }
    for (gist, entry) in &entries {
        let Some(mark) = &entry.meta else { continue };
        if !merged.contains_key(mark.id.as_str())
            && let Some(citation) = said.new_occurrences(gist, mark)
        {
            let reason = format!("said again on {}", citation.newest_date());
            let op = WisdomOp::Merge { id: mark.id.clone(), words: None, reason, citation };
            merged.insert(&mark.id, op);
        }
    }
    let drops = unreinforced_drops(input, &merged);
    // In the order of the file, so that the ids, which mean nothing, decide nothing.
    let mut ops: Vec<WisdomOp> = input
        .entries
        .iter()
        .filter_map(|entry| merged.remove(entry.meta.as_ref()?.id.as_str()))
        .collect();
    ops.extend(adds);
    ops.extend(drops);
    ops
}

/// What a piece of wisdom is, for its category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    Person,
    Rule,
    Decision,
    Fact,
}

/// Something that may become an entry.
#[derive(Clone, Debug)]
struct EntryCandidate {
    kind: EntryKind,
    title: String,
    text: String,
    gist: StatementTerms,
    score: usize,
    reason: String,
    /// Where it was said, ascending.
    occurrences: Vec<Occurrence>,
    /// The newest place where it was said in these words.
    newest: Occurrence,
}

/// The lines of one sentence at one place; never empty.
type Occurrence = Vec<Address>;

/// All that own words said in the logs, each distinct sentence once.
struct LogSentences<'a> {
    logs: &'a [SanitizedLog],
    /// By their words.
    sentences: Vec<DistinctSentence>,
    /// The places whose gist holds a stem, by its hash.
    by_stem: HashedMap<Vec<usize>>,
    marked: Vec<(String, Occurrence)>,
}

/// Where a sentence stands, and what it is about.
struct DistinctSentence {
    text: String,
    gist: StatementTerms,
    /// Whether it may be an entry by its words alone.
    is_lasting: bool,
    /// In the order of the logs: which one, and the lines in it.
    occurrences: Vec<(usize, Vec<u32>)>,
    days: BTreeSet<NaiveDate>,
    /// Not below a heading or label under which tasks stand, at least once.
    is_outside_tasks: bool,
}

/// Sentences that differ in their values only.
type SentenceCluster<'a> = Vec<&'a DistinctSentence>;

impl<'a> LogSentences<'a> {
    fn build(logs: &'a [SanitizedLog]) -> Self {
        let mut said =
            Self { logs, sentences: Vec::new(), by_stem: HashedMap::default(), marked: Vec::new() };
        let (mut gists, mut words) = (TermExtractor::default(), WordList::default());
        // The place of a sentence, by the hash of its words.
        let mut known = HashedMap::default();
        for (log, served) in logs.iter().enumerate() {
            let blocks = statements::parse_blocks(served);
            let classes = BlockRoles::of(&blocks);
            for (at, block) in blocks.iter().enumerate() {
                let lasting = block.shape != (BlockShape::Bullet { task: true })
                    && classes.role_above(at) != Some(BlockRole::Task);
                said.add_block(log, block, lasting, (&mut known, &mut gists, &mut words));
            }
        }
        said.sentences.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        for (at, place) in said.sentences.iter().enumerate() {
            for &stem in place.gist.stems.hashes() {
                said.by_stem.entry(stem).or_default().push(at);
            }
        }
        said
    }

    fn add_block(
        &mut self,
        log: usize,
        block: &LogBlock,
        lasting: bool,
        (known, gists, words): (&mut HashedMap<usize>, &mut TermExtractor, &mut WordList),
    ) {
        if matches!(block.shape, BlockShape::Heading(_)) && block.keep_lines.is_empty() {
            return;
        }
        let sentences = block.sentences_from(0);
        for &line in &block.keep_lines {
            // The marked line speaks for itself, not for the whole paragraph.
            let marked: Vec<&LogSentence> =
                sentences.iter().filter(|it| it.lines.contains(&line)).collect();
            let text: Vec<&str> = marked.iter().map(|it| it.text.as_str()).collect();
            let lines: BTreeSet<u32> =
                marked.iter().flat_map(|it| it.lines.iter().copied()).collect();
            let saying = self.occurrence(log, lines);
            self.marked.push((without_keep(&text.join(" ")), saying));
        }
        if matches!(block.shape, BlockShape::Heading(_)) {
            return;
        }
        for sentence in sentences {
            let text = without_keep_mark(&sentence.text);
            let at = *known.entry(hash_bytes(text.as_bytes())).or_insert(self.sentences.len());
            if at == self.sentences.len() {
                words.read(&text);
                self.sentences.push(DistinctSentence {
                    gist: gists.extract(words),
                    is_lasting: is_lasting(&text, words),
                    text: text.into_owned(),
                    occurrences: Vec::new(),
                    days: BTreeSet::new(),
                    is_outside_tasks: false,
                });
            }
            let place = &mut self.sentences[at];
            place.occurrences.push((log, sentence.lines));
            place.days.insert(self.logs[log].date());
            place.is_outside_tasks |= lasting;
        }
    }

    fn occurrence(&self, log: usize, lines: impl IntoIterator<Item = u32>) -> Occurrence {
        let stem = self.logs[log].stem();
        lines.into_iter().map(|line| Address { stem: stem.clone(), line }).collect()
    }

    /// Returns all sayings of a sentence, in the order of the logs.
    fn occurrences(&self, place: &DistinctSentence) -> impl Iterator<Item = Occurrence> {
        place.occurrences.iter().map(|(log, lines)| self.occurrence(*log, lines.iter().copied()))
    }

    /// Returns the statements that recur, the newest values of each.
    fn recurring_candidates(&self) -> Vec<EntryCandidate> {
        let mut clusters: Vec<SentenceCluster<'_>> = Vec::new();
        for place in &self.sentences {
            if !place.is_outside_tasks || place.gist.stems.len() < 2 || !place.is_lasting {
                continue;
            }
            let like =
                |it: &SentenceCluster<'_>| it[0].gist.similarity(&place.gist) >= SAME_EXCEPT_VALUES;
            match clusters.iter_mut().find(|it| like(it)) {
                Some(cluster) => cluster.push(place),
                None => clusters.push(vec![place]),
            }
        }
        clusters.iter().flat_map(|cluster| self.split_by_values(cluster)).collect()
    }

    /// Splits a cluster by values. Of values that never stood on one day the newest is true; values
    /// that were said side by side are different things.
    fn split_by_values(&self, cluster: &[&DistinctSentence]) -> Vec<EntryCandidate> {
        let mut by_values: BTreeMap<&TermSet, SentenceCluster<'_>> = BTreeMap::new();
        for place in cluster {
            by_values.entry(&place.gist.values).or_default().push(place);
        }
        let spans: Vec<(BTreeSet<NaiveDate>, &SentenceCluster<'_>)> = by_values
            .values()
            .map(|said| (said.iter().flat_map(|it| it.days.iter().copied()).collect(), said))
            .collect();
        let replaced = |older: &BTreeSet<NaiveDate>, newer: &BTreeSet<NaiveDate>| {
            older.last() < newer.last() && older.is_disjoint(newer)
        };
        spans
            .iter()
            .filter(|(days, _)| !spans.iter().any(|(other, _)| replaced(days, other)))
            .filter_map(|(days, said)| {
                let older = || spans.iter().filter(|(other, _)| replaced(other, days));
                let all: BTreeSet<NaiveDate> =
                    older().flat_map(|(other, _)| other).chain(days).copied().collect();
                let stamp = older().count() >= REPLACED_MAX && days.len() < DAYS_MIN;
                if all.len() < DAYS_MIN || stamp {
                    return None;
                }
                // The wording that was used most; of equals the longest, since it says most.
                let best = said.iter().max_by_key(|it| (it.days.len(), it.text.chars().count()))?;
                let mut sayings: Vec<Occurrence> =
                    said.iter().flat_map(|place| self.occurrences(place)).collect();
                sayings.sort();
                let own = self.occurrences(best).last()?;
                Some(candidate_from_text(&best.text, sayings, own, all.len()))
            })
            .collect()
    }

    fn marked_candidates(&self) -> Vec<EntryCandidate> {
        let mut pieces = Vec::new();
        for (text, saying) in &self.marked {
            if WordList::of(text).len() < 3 {
                continue;
            }
            let mut piece = candidate_from_text(
                &first_sentences(text),
                vec![saying.clone()],
                saying.clone(),
                1,
            );
            piece.score += 20;
            "marked #keep".clone_into(&mut piece.reason);
            pieces.push(piece);
        }
        pieces
    }

    /// Returns the entry that a piece is about: one with the same values before one with others.
    ///
    /// An entry whose own value is said beside the new one is about something else.
    fn matching_entry<'e>(
        &self,
        piece: &EntryCandidate,
        entries: &[(StatementTerms, &'e WisdomEntry)],
    ) -> Option<&'e WisdomEntry> {
        let covering = || entries.iter().filter(|(gist, _)| covers_candidate(gist, &piece.gist));
        if let Some((_, entry)) =
            covering().find(|(gist, _)| !has_conflicting_values(gist, &piece.gist))
        {
            return Some(entry);
        }
        let first = piece.occurrences.first().and_then(|it| it.first()).map(|it| it.stem.date());
        let beside = |gist: &StatementTerms, mark: &WisdomEntryMeta| {
            self.new_occurrences(gist, mark).is_some_and(|it| Some(it.newest_date()) >= first)
        };
        covering()
            .find(|(gist, entry)| !entry.meta.as_ref().is_some_and(|mark| beside(gist, mark)))
            .map(|(_, entry)| *entry)
    }

    /// Returns the words of a person's that an entry has to say instead of its own: it rests on a
    /// line that they cite, and says what that line says, or much the same as they do.
    fn user_correction<'w>(
        &self,
        entry: &WisdomEntry,
        gist: &StatementTerms,
        mark: &WisdomEntryMeta,
        own: &'w [UserStatement],
    ) -> Option<&'w UserStatement> {
        /// From this likeness on, two statements on the same line are about the same.
        const ALIKE: f64 = 0.5;
        let about = |words: &&UserStatement| {
            let shared = |at: &Address| {
                mark.sources.lines_of(&at.stem).is_some_and(|lines| lines.contains(at.line))
            };
            let repeats = |at: &Address| {
                let log = self.logs.iter().find(|log| *log.stem() == at.stem);
                let line = log.and_then(|log| log.line(at.line));
                line.is_some_and(|line| covers_candidate(&StatementTerms::of(line.words()), gist))
            };
            let shared: Vec<Address> = words.citation.addresses().filter(shared).collect();
            !shared.is_empty()
                && (words.gist.similarity(gist) >= ALIKE || shared.iter().any(repeats))
        };
        let found: Vec<&UserStatement> = own.iter().filter(about).collect();
        let said = found.iter().any(|it| it.text == entry.text);
        found.first().copied().filter(|_| !said)
    }

    /// Returns the lines, newer than the last that count, that say again what an entry says.
    fn new_occurrences(&self, entry: &StatementTerms, mark: &WisdomEntryMeta) -> Option<Citation> {
        /// With fewer stems in common two sentences are about different things.
        const SHARED_MIN: usize = 3;
        let mut shared = vec![0_usize; self.sentences.len()];
        for stem in entry.stems.hashes() {
            for &place in self.by_stem.get(stem).map_or(&[][..], Vec::as_slice) {
                shared[place] += 1;
            }
        }
        let told = self.sentences.iter().zip(shared).filter(|(place, shared)| {
            *shared >= SHARED_MIN
                && place.days.last().is_some_and(|day| *day > mark.last_reinforced)
                && !place.text.contains('?')
                && repeats_entry(entry, &place.gist)
        });
        let new = |it: &Address| {
            it.stem.date() > mark.last_reinforced
                && !mark.sources.lines_of(&it.stem).is_some_and(|set| set.contains(it.line))
        };
        let mut sayings: Vec<Occurrence> = told
            .flat_map(|(place, _)| self.occurrences(place))
            .filter(|it| it.iter().all(new))
            .collect();
        sayings.sort();
        cite_occurrences(&sayings, &[])
    }
}

/// Words of a person's, above the lines that they cite: a bullet of theirs in a week or a month,
/// or a typed memory that they changed.
struct UserStatement {
    title: String,
    text: String,
    gist: StatementTerms,
    citation: Citation,
    /// Whether they may be an entry by themselves.
    is_lasting: bool,
}

/// Finds what people wrote: a bullet of theirs cites the weekly or monthly file that it stands in.
fn user_statements(input: &DistillInput<'_>) -> Vec<UserStatement> {
    let mut own = Vec::new();
    for (_, item) in input.items {
        let Some(citation) = item.citation.as_ref().filter(|it| it.cites_summary()) else {
            continue;
        };
        let bare = item.text.trim_start_matches("[ ] ").trim_start_matches("[x] ");
        let text = first_sentences(&without_keep_mark(bare));
        let words = WordList::of(&text);
        if words.len() < 3 {
            continue;
        }
        own.push(UserStatement {
            title: title_for(&text),
            gist: StatementTerms::of(&text),
            is_lasting: is_lasting(&text, &words),
            citation: citation.clone(),
            text,
        });
    }
    for memory in input.memories.iter().filter(|it| !it.is_managed()) {
        if let Some(piece) = candidate_from_memory(memory, input.logs)
            && let Some(citation) = piece.citation()
        {
            let EntryCandidate { title, text, gist, .. } = piece;
            own.push(UserStatement { title, text, gist, citation, is_lasting: false });
        }
    }
    own
}

impl UserStatement {
    fn to_candidate(&self) -> EntryCandidate {
        let lines: Occurrence = self.citation.addresses().collect();
        let mut piece = candidate_from_text(&self.text, vec![lines.clone()], lines, 1);
        piece.score += 10;
        "a person wrote it".clone_into(&mut piece.reason);
        piece
    }

    fn correction(&self, mark: &WisdomEntryMeta) -> WisdomOp {
        WisdomOp::Merge {
            id: mark.id.clone(),
            words: Some((self.title.clone(), self.text.clone())),
            reason: "a person corrected it".to_owned(),
            citation: self.citation.clone(),
        }
    }
}

/// Where a person said otherwise what a line says, their words stand for it.
fn apply_user_statements(piece: &mut EntryCandidate, own: &[UserStatement]) {
    let within = |words: &&UserStatement| {
        piece.newest.iter().all(|it| {
            words.citation.lines_of(&it.stem).is_some_and(|lines| lines.contains(it.line))
        })
    };
    if let Some(words) = own.iter().find(within) {
        piece.title.clone_from(&words.title);
        piece.text.clone_from(&words.text);
        piece.gist = words.gist.clone();
        piece.newest = words.citation.addresses().collect();
    }
}

impl EntryCandidate {
    fn citation(&self) -> Option<Citation> {
        cite_occurrences(&self.occurrences, &self.newest)
    }

    /// Returns the edit of an entry that says the same, or `None` when nothing is new about it.
    fn merge_into(&self, entry: &WisdomEntry, mark: &WisdomEntryMeta) -> Option<WisdomOp> {
        let newer = |it: &&Occurrence| it.iter().all(|it| it.stem.date() > mark.last_reinforced);
        let new: Vec<Occurrence> = self.occurrences.iter().filter(newer).cloned().collect();
        let citation = cite_occurrences(&new, &[])?;
        let told = StatementTerms::of(&entry.text);
        // What a person wrote is not brought up to date by what a log repeats.
        let changed = !mark.sources.cites_summary()
            && told.similarity(&self.gist) >= SAME_EXCEPT_VALUES
            && !told.values.is_empty()
            && told.values != self.gist.values;
        let day = citation.newest_date();
        let (words, reason, citation) = if changed {
            let words = (self.title.clone(), self.text.clone());
            (Some(words), format!("a newer value on {day}"), cite_occurrences(&new, &self.newest)?)
        } else {
            (None, format!("said again on {day}"), citation)
        };
        Some(WisdomOp::Merge { id: mark.id.clone(), words, reason, citation })
    }
}

/// Returns whether a sentence says something that would change what somebody does, and lasts.
fn is_lasting(text: &str, words: &WordList) -> bool {
    if !(words.has(cue_phrases::RULE)
        || words.has(cue_phrases::LASTING_LIMITS)
        || is_about_person(text, words))
    {
        return false;
    }
    if !words_are_self_contained(text, words)
        || text.chars().count() > TEXT_CHARS_MAX
        || opens_as_report(words)
        || words.opens_with(cue_phrases::TASK_OPENERS)
        || words.opens_with(cue_phrases::NOT_RULES)
        || words.has(cue_phrases::NARRATIVE)
        || (has_date(words) && !words.has(cue_phrases::DEADLINE) && !words.has(cue_phrases::RULE))
        || code_share(text) > 0.3
        || text.contains("http")
    {
        return false;
    }
    let label = split_label(text);
    !label.is_some_and(|(label, _)| {
        matches!(role_of_label(label), Some(BlockRole::Task | BlockRole::Reason))
            || WordList::of(label).opens_with(cue_phrases::TASK_OPENERS)
    })
}

fn candidate_from_text(
    text: &str,
    sayings: Vec<Occurrence>,
    own: Occurrence,
    days: usize,
) -> EntryCandidate {
    let words = WordList::of(text);
    let rule = words.has(cue_phrases::RULE);
    let person = about_person(text);
    let kind = match (person, rule) {
        (true, _) => EntryKind::Person,
        (_, true) => EntryKind::Rule,
        _ if words.opens_with(cue_phrases::DECIDED) => EntryKind::Decision,
        _ => EntryKind::Fact,
    };
    let score = days
        + 4 * usize::from(rule)
        + 4 * usize::from(person)
        + 3 * usize::from(split_reason(text).is_some());
    EntryCandidate {
        kind,
        title: title_for(text),
        text: text.to_owned(),
        gist: StatementTerms::of(text),
        score,
        reason: format!("said on {days} days"),
        occurrences: sayings,
        newest: own,
    }
}

/// Makes a piece of a typed memory that guides; deadlines and one-off choices do not.
fn candidate_from_memory(memory: &TypedMemory, logs: &[SanitizedLog]) -> Option<EntryCandidate> {
    let mut addresses: Occurrence =
        memory.sources.iter().map(|(address, _)| address.clone()).collect();
    let external = addresses.iter().any(|it| {
        let log = logs.iter().find(|log| *log.stem() == it.stem);
        log.and_then(|log| log.line(it.line))
            .is_some_and(|line| line.origin() == TextOrigin::External)
    });
    if addresses.is_empty() || external {
        return None;
    }
    addresses.sort();
    let (statement, why) = split_body(&memory.body);
    let words = WordList::of(&statement);
    let (kind, score) = match memory.kind {
        MemoryType::User => (EntryKind::Person, 14),
        MemoryType::Feedback => (EntryKind::Rule, 16),
        MemoryType::Project => (EntryKind::Decision, 8),
        MemoryType::Reference => return None,
    };
    let guides = words.has(cue_phrases::RULE)
        || words.has(cue_phrases::LASTING_LIMITS)
        || words.has(cue_phrases::INSTEAD);
    let one_off =
        memory.kind == MemoryType::Project && (!guides || why.is_none() || has_date(&words));
    // What somebody likes best matters once it comes up again.
    let taste = memory.kind == MemoryType::User && words.has(cue_phrases::FAVORITE);
    if words.len() < 3 || one_off || taste {
        return None;
    }
    // Who said it is no reason, once the statement names them.
    let why = why.filter(|it| WordList::of(it).len() >= 4 && !statement.starts_with(it.as_str()));
    let text = match why {
        Some(why) if WordList::of(&why).opens_with(cue_phrases::SO_THAT) => {
            format!("{} {why}", statement.trim_end_matches('.'))
        }
        Some(why) => format!("{} — {why}", statement.trim_end_matches('.')),
        None => statement.clone(),
    };
    let text = if text.chars().count() <= TEXT_CHARS_MAX { text } else { statement };
    Some(EntryCandidate {
        kind,
        title: title_for(&memory.name),
        gist: StatementTerms::of(&text),
        text: first_sentences(&text),
        score,
        reason: format!("from {}", memory.file_name.display()),
        occurrences: vec![addresses.clone()],
        newest: addresses,
    })
}

/// Splits the body of a typed memory into its statement and its reason.
fn split_body(body: &str) -> (String, Option<String>) {
    let mut statement = Vec::new();
    let mut why = Vec::new();
    let mut in_why = false;
    for line in
        body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let bare = line.replace("**", "");
        let label = split_label(&bare).map(|(label, rest)| (role_of_label(label), rest));
        match label {
            Some((Some(BlockRole::Reason), rest)) if why.is_empty() && !in_why => {
                in_why = true;
                why.push(bare[rest..].to_owned());
            }
            Some((Some(BlockRole::Reason), _)) => break,
            _ if in_why => why.push(bare),
            _ => statement.push(bare),
        }
    }
    (statement.join(" "), (!why.is_empty()).then(|| why.join(" ")))
}

/// What the month's file says of the same lines counts: that it was worth a bullet, and what a
/// person corrected in it.
fn apply_month_items(piece: &mut EntryCandidate, input: &DistillInput<'_>) {
    let Some(cited) = Citation::from_addresses(piece.occurrences.iter().flatten()) else { return };
    for (_, item) in input.items {
        if !item.citation.as_ref().is_some_and(|it| it.overlaps(&cited)) {
            continue;
        }
        let gist = StatementTerms::of(&item.text);
        // No engine changes a value, so a bullet that lacks those of its lines is a person's.
        let corrected = !piece.gist.values.is_empty()
            && piece.gist.values.is_disjoint(&gist.values)
            && !gist.values.is_empty()
            && piece.gist.similarity(&gist) >= SAME_EXCEPT_VALUES;
        if corrected {
            piece.title = title_for(&item.text);
            piece.text.clone_from(&item.text);
            piece.gist = gist;
        }
        piece.score += 3;
        return;
    }
}

/// Returns whether an entry already says what a piece says.
fn covers_candidate(entry: &StatementTerms, piece: &StatementTerms) -> bool {
    const COVERED: f64 = 0.6;
    let shared = piece.stems.shared_count(&entry.stems);
    shared >= 2
        && (piece.overlap(entry) >= 0.8
            || piece.similarity(entry) >= 0.5
            || piece.containment(entry) >= COVERED)
}

/// Returns whether two say the same but for other values.
fn has_conflicting_values(a: &StatementTerms, b: &StatementTerms) -> bool {
    let other_values = !a.values.is_subset(&b.values) && !b.values.is_subset(&a.values);
    other_values && a.overlap(b) >= SAME_EXCEPT_VALUES
}

/// Returns whether a line about the same says again what an entry says, without another value.
fn repeats_entry(entry: &StatementTerms, line: &StatementTerms) -> bool {
    let values_agree = line.values.is_subset(&entry.values) || entry.values.is_subset(&line.values);
    values_agree && (line.similarity(entry) >= 0.6 || entry.containment(line) >= 0.7)
}

fn same_topic(a: &StatementTerms, b: &StatementTerms) -> bool {
    const SHARED_MIN: usize = 3;
    // What differs in its values only was found to be two things.
    if has_conflicting_values(a, b) {
        return false;
    }
    let values = a.values.shared_count(&b.values);
    let shared = a.stems.shared_count(&b.stems) + values;
    a.overlap(b) >= 0.8
        || (shared >= SHARED_MIN && a.containment(b).max(b.containment(a)) >= SAME_TOPIC)
}

/// Entries of ours that nobody said again for long; oldest first.
fn unreinforced_drops(
    input: &DistillInput<'_>,
    merged: &BTreeMap<&str, WisdomOp>,
) -> Vec<WisdomOp> {
    let mut marks: Vec<&WisdomEntryMeta> = input
        .entries
        .iter()
        .filter_map(|entry| entry.meta.as_ref())
        .filter(|mark| !merged.contains_key(mark.id.as_str()))
        .filter(|mark| mark.last_reinforced + UNREINFORCED_AFTER < input.month.last())
        .collect();
    marks.sort_by_key(|mark| (mark.last_reinforced, &mark.id));
    marks
        .into_iter()
        .map(|mark| WisdomOp::Drop {
            id: mark.id.clone(),
            reason: format!("not reinforced since {}", mark.last_reinforced),
        })
        .collect()
}

/// Cites the oldest and the newest places, one a day where there are many, and `own` in any case.
fn cite_occurrences(sayings: &[Occurrence], own: &[Address]) -> Option<Citation> {
    let mut days = BTreeSet::new();
    let few = sayings.len() <= OLDEST_CITED + NEWEST_CITED;
    let first_of_day =
        |it: &&Occurrence| few || it.first().is_some_and(|it| days.insert(it.stem.date()));
    let sayings: Vec<&Occurrence> = sayings.iter().filter(first_of_day).collect();
    let newest_at = sayings.len().saturating_sub(NEWEST_CITED);
    let chosen = sayings.iter().enumerate().filter(|&(i, _)| i < OLDEST_CITED || i >= newest_at);
    Citation::from_addresses(chosen.flat_map(|(_, it)| it.iter()).chain(own))
}

/// The label where a statement has one that says more than when, else its lead clause.
fn title_for(text: &str) -> String {
    let title = match split_label(text) {
        Some((label, _)) if label.split_whitespace().count() >= 2 && !is_date_label(label) => {
            label.to_owned()
        }
        Some((label, _)) if label.split_whitespace().count() >= 4 => label.to_owned(),
        Some((label, rest)) if is_date_label(label) && WordList::of(&text[rest..]).len() >= 4 => {
            title_of(&text[rest..], TITLE_CHARS_MAX)
        }
        _ => title_of(text, TITLE_CHARS_MAX),
    };
    capitalize_title(&title)
}

fn is_date_label(label: &str) -> bool {
    WordList::of(label).has(cue_phrases::MONTHS)
        || WordList::of(label).iter().any(|w| calendar::weekday_names().contains(&w))
}

fn first_sentences(text: &str) -> String {
    let end =
        sentence_ranges(text).into_iter().take(SENTENCES_MAX).next_back().map_or(0, |(_, end)| end);
    text[..end].trim().to_owned()
}

/// Of the categories that people chose, the one that shares a word with ours; else none.
fn category_for(kind: EntryKind, given: &[String]) -> Option<String> {
    let (own, words): (&str, &[&str]) = match kind {
        EntryKind::Person => {
            ("People", &["people", "person", "preferences", "user", "team", "who"])
        }
        EntryKind::Rule => (
            "How to work",
            &["how", "work", "process", "rules", "practice", "practices", "workflow"],
        ),
        EntryKind::Decision => ("Decisions", &["decisions", "architecture", "design", "choices"]),
        EntryKind::Fact => {
            ("Standing facts", &["facts", "standing", "context", "limits", "constraints", "domain"])
        }
    };
    if given.is_empty() {
        return Some(own.to_owned());
    }
    given.iter().find(|it| WordList::of(it).iter().any(|word| words.contains(&word))).cloned()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{
        memory::{
            hash::ContentHash,
            item::{Item, SummarySection},
            log::DailyLog,
            period::Period,
        },
        privacy,
    };

    /// One log a day from 1 April 2026 on, of the text that each gives.
    fn logs(days: &[&str]) -> Vec<SanitizedLog> {
        days.iter()
            .enumerate()
            .map(|(i, text)| {
                let stem = format!("2026-04-{:02}", i + 1).parse().unwrap();
                privacy::sanitize(
                    &DailyLog::parse(stem, text.as_bytes()).unwrap(),
                    &privacy::PrivacyRules::default(),
                )
            })
            .collect()
    }

    fn edits(days: &[&str], entries: &[WisdomEntry], memories: &[TypedMemory]) -> Vec<WisdomOp> {
        let input = DistillInput {
            month: "2026-04".parse::<Period>().unwrap(),
            items: &[],
            logs: &logs(days),
            entries,
            memories,
            categories: &[],
        };
        let ops = distill(&input);
        assert_eq!(ops, distill(&input), "the same input gives the same edits");
        ops
    }

    /// Prints edits one to a line, as the tables below give them.
    fn print(ops: &[WisdomOp]) -> Vec<String> {
        ops.iter()
            .map(|op| match op {
                WisdomOp::Add { text, citation, .. } => format!("+ {text} [{citation}]"),
                WisdomOp::Merge { id, words: Some((_, text)), citation, .. } => {
                    format!("~ {id} {text} [{citation}]")
                }
                WisdomOp::Merge { id, words: None, citation, .. } => format!("~ {id} [{citation}]"),
                WisdomOp::Drop { id, reason } => format!("- {id} {reason}"),
            })
            .collect()
    }

    #[track_caller]
    fn check(days: &[&str], expected: &[&str]) {
        assert_eq!(print(&edits(days, &[], &[])), expected, "{days:?}");
    }

    fn entry(id: &str, title: &str, text: &str, last: &str) -> WisdomEntry {
        let day: NaiveDate = last.parse().unwrap();
        WisdomEntry {
            title: title.to_owned(),
            text: text.to_owned(),
            category: None,
            meta: (!id.is_empty()).then(|| WisdomEntryMeta {
                id: id.to_owned(),
                hash: ContentHash::of(text).hex8(),
                sources: format!("{last}:1").parse().unwrap(),
                lines: BTreeMap::new(),
                first_seen: day,
                last_reinforced: day,
            }),
            raw: String::new(),
        }
    }

    fn memory(kind: MemoryType, name: &str, body: &str, source: &str) -> TypedMemory {
        TypedMemory {
            file_name: PathBuf::from("feedback_x.md"),
            kind,
            name: name.to_owned(),
            description: String::new(),
            created: None,
            updated: None,
            sources: vec![(source.parse().unwrap(), String::new())],
            supersedes: None,
            recorded_body: None,
            other_keys: crate::memory::frontmatter::OtherKeys::default(),
            body: body.to_owned(),
        }
    }

    const BLOCK: &str = "- Tuesday evenings are reserved for basketball practice";

    #[test]
    fn what_stands_on_three_days_lasts() {
        check(&[BLOCK, BLOCK], &[]);
        check(
            &[BLOCK, "- else", BLOCK, BLOCK],
            &[
                "+ Tuesday evenings are reserved for basketball practice [2026-04-01:1; 2026-04-03:1; 2026-04-04:1]",
            ],
        );
        // Twice on one day is one day; wording may vary.
        check(&[&format!("{BLOCK}\n\n{BLOCK}"), BLOCK], &[]);
        let other = "Basketball practice: Tuesday evenings are reserved.";
        check(
            &[BLOCK, other, BLOCK],
            &[
                "+ Tuesday evenings are reserved for basketball practice [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]",
            ],
        );
    }

    #[test]
    fn states_steps_and_stories_do_not_last() {
        for line in [
            "- No calendar changes made, all blocks protected",
            "- Kept the protected blocks as they stand",
            "- Await the approval that the policy requires",
            "- I always check the protected blocks first",
            "- Ana was asked to keep the limit at 40",
            "- The limit is still under review by the board",
            "- 214 tests pass, at most one skipped",
            "- [ ] Keep the limit under 40 at all times",
            "### Next steps\n- Every report must reach Ana by nine",
            "- Travel: 2026-04-10 to 2026-04-12, at most a day longer",
            "- See https://example.org for the upload limit",
            "> Every report must reach Ana by nine",
            "```\nEvery report must reach Ana by nine\n```",
            "- the weather stayed dry and rather mild",
        ] {
            check(&[line; 5], &[]);
        }
    }

    #[test]
    fn the_newest_value_wins() {
        let at = |time: &str| format!("- The morning briefing stays at {time} on workdays");
        let (old, new) = (at("6:30"), at("7:15"));
        check(
            &[&old, &old, &old, &new],
            &["+ The morning briefing stays at 7:15 on workdays [2026-04-04:1]"],
        );
        check(
            &[&old, &new, &old, &new],
            &["+ The morning briefing stays at 7:15 on workdays [2026-04-02:1; 2026-04-04:1]"],
        );
        // Said side by side they are two things.
        let both = format!("{old}\n{new}");
        check(
            &[&both, &both, &both],
            &[
                "+ The morning briefing stays at 6:30 on workdays [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]",
                "+ The morning briefing stays at 7:15 on workdays [2026-04-01:2; 2026-04-02:2; 2026-04-03:2]",
            ],
        );
        // A value that is new each day is a date, not a fact.
        let days: Vec<String> = (1..8).map(|n| at(&format!("{n}:05"))).collect();
        check(&days.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    }

    #[test]
    fn a_marked_line_needs_no_second_day() {
        check(
            &["- The vault code changes every quarter #keep"],
            &["+ The vault code changes every quarter [2026-04-01:1]"],
        );
        check(
            &[
                "The office moved last year.\nThe vault code changes every quarter. #keep\nThe rest is old news.",
            ],
            &["+ The vault code changes every quarter. [2026-04-01:2]"],
        );
        check(&["> The vault code changes every quarter #keep"], &[]);
        check(&["- Write `#keep` at the end of the line"], &[]);
    }

    #[test]
    fn what_is_said_again_reinforces() {
        let standing = [entry(
            "w1",
            "Basketball",
            "Tuesday evenings are reserved for basketball practice.",
            "2026-03-09",
        )];
        let ops = edits(&["- else", BLOCK], &standing, &[]);
        assert_eq!(print(&ops), ["~ w1 [2026-04-02:1]"]);
        // Lines that count already do not count twice.
        let counted = [entry(
            "w1",
            "Basketball",
            "Tuesday evenings are reserved for basketball practice.",
            "2026-04-02",
        )];
        assert_eq!(edits(&["- else", BLOCK], &counted, &[]), []);
        // A person's entry is never touched, and nothing is added beside it.
        let own = [entry(
            "",
            "Basketball",
            "Tuesday evenings are reserved for basketball practice.",
            "2026-03-09",
        )];
        assert_eq!(edits(&[BLOCK, BLOCK, BLOCK], &own, &[]), []);
    }

    #[test]
    fn a_newer_value_updates_an_entry() {
        let standing = [entry(
            "w1",
            "Morning briefing",
            "The morning briefing stays at 6:30 on workdays.",
            "2026-03-20",
        )];
        let new = "- The morning briefing stays at 7:15 on workdays";
        let ops = edits(&[new, new, new], &standing, &[]);
        assert_eq!(
            print(&ops),
            [
                "~ w1 The morning briefing stays at 7:15 on workdays [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]"
            ]
        );
        // While the old value is said too, the new one is about something else.
        let both = format!("{new}\n- The morning briefing stays at 6:30 on workdays");
        assert_eq!(
            print(&edits(&[&both, &both, &both], &standing, &[])),
            [
                "~ w1 [2026-04-01:2; 2026-04-02:2; 2026-04-03:2]",
                "+ The morning briefing stays at 7:15 on workdays [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]",
            ]
        );
    }

    #[test]
    fn typed_memories_that_guide_become_entries() {
        let body = "Always squash before merging.\n\n**Why:** the release notes list every commit";
        let rule = memory(MemoryType::Feedback, "Squash before merging", body, "2026-04-01:1");
        let ops = edits(&["- else"], &[], std::slice::from_ref(&rule));
        assert_eq!(
            print(&ops),
            ["+ Always squash before merging — the release notes list every commit [2026-04-01:1]"]
        );
        assert!(matches!(&ops[0], WisdomOp::Add { title, .. } if title == "Squash before merging"));
        // Not what rests on a quote, on nothing, or on one choice.
        assert_eq!(edits(&["> Always squash"], &[], std::slice::from_ref(&rule)), []);
        let deadline = memory(
            MemoryType::Project,
            "Launch",
            "The launch date is 14 May 2026.",
            "2026-04-01:1",
        );
        let link =
            memory(MemoryType::Reference, "Docs", "Docs: https://docs.example", "2026-04-01:1");
        let unsourced = TypedMemory { sources: Vec::new(), ..rule };
        assert_eq!(edits(&["- else"], &[], &[deadline, link, unsourced]), []);
    }

    #[test]
    fn the_forgotten_are_offered_last() {
        let entries = [
            entry("w1", "Old", "Backups run from the east wing server room.", "2025-12-20"),
            entry("w2", "Recent", "Invoices need two signatures from finance.", "2026-02-15"),
            entry("w3", "Older", "Visitors sign the red book at the door.", "2025-11-20"),
            entry("", "Mine", "A person wrote this long ago.", "2025-01-01"),
        ];
        let ops = edits(&[BLOCK, BLOCK, BLOCK], &entries, &[]);
        assert_eq!(
            print(&ops)[1..],
            ["- w3 not reinforced since 2025-11-20", "- w1 not reinforced since 2025-12-20",]
        );
    }

    #[test]
    fn few_a_month_and_none_twice() {
        let text = "- Ladders must hang on the wall
- Printers should sleep overnight
- Invoices always need a stamp
- Visitors must sign the book
- Parcels should wait downstairs
- Contracts never leave the safe
- Fire drills must happen quarterly
- Taxis should be ordered early
- Plants always get rainwater
- Keys never hang outside";
        let ops = edits(&[text, text, text], &[], &[]);
        assert_eq!(ops.len(), ADDS_MAX);
        let near = "- Badges must be worn in the main hall\n- In the main hall badges must be worn visibly by all";
        assert_eq!(edits(&[near, near, near], &[], &[]).len(), 1);
    }

    #[test]
    fn a_bullet_that_a_person_corrected_wins() {
        let days = logs(&["- The upload limit is 40 MB per file"; 3]);
        let corrected = Item {
            text: "The upload limit is 50 MB per file".to_owned(),
            citation: Some("2026-04-01:1; 2026-04-02:1".parse().unwrap()),
        };
        let ops = distill(&DistillInput {
            month: "2026-04".parse().unwrap(),
            items: &[(Some(SummarySection::Themes), corrected)],
            logs: &days,
            entries: &[],
            memories: &[],
            categories: &["Team".to_owned(), "Facts & limits".to_owned()],
        });
        let [WisdomOp::Add { text, category, .. }] = ops.as_slice() else { panic!("{ops:?}") };
        assert_eq!(text, "The upload limit is 50 MB per file");
        assert_eq!(category.as_deref(), Some("Facts & limits"));
    }

    proptest::proptest! {
        #[test]
        fn entries_say_what_their_lines_say(picks in proptest::collection::vec(0usize..12, 1..40)) {
            let pieces = [
                "- ", "Ana must ", "always ", "reserved ", "até às ", "9:30 ", "10:30 ", "\n", "日本 ", "blue box ", "— ", "#keep ",
            ];
            let text: String = picks.iter().map(|&i| pieces[i]).collect();
            let days = [text.as_str(); 4];
            let logs = logs(&days);
            for op in edits(&days, &[], &[]) {
                let WisdomOp::Add { text, title, citation, .. } = op else { continue };
                let cited = citation.addresses().map(|it| {
                    let log = logs.iter().find(|log| *log.stem() == it.stem).unwrap();
                    log.line(it.line).unwrap().text().to_owned()
                });
                let source = WordList::of(&cited.collect::<Vec<_>>().join(" "));
                for word in WordList::of(&format!("{text} {title}")).iter() {
                    proptest::prop_assert!(source.iter().any(|it| it == word), "{word}");
                }
            }
        }
    }

    #[test]
    fn other_languages() {
        check(
            &["- Dienstagabend bleibt für das Training reserviert"; 3],
            &[
                "+ Dienstagabend bleibt für das Training reserviert [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]",
            ],
        );
        check(
            &["- Le stock ne doit jamais passer sous vingt caisses"; 3],
            &[
                "+ Le stock ne doit jamais passer sous vingt caisses [2026-04-01:1; 2026-04-02:1; 2026-04-03:1]",
            ],
        );
        check(&["- Keine Änderungen am Kalender, alles bleibt geschützt"; 3], &[]);
        check(&["- Se envió el informe semanal al director"; 3], &[]);
    }
}
