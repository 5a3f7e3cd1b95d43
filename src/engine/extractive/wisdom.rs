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
    cues,
    memories::{
        Class, Classes, about_person, class_of, has_date, is_about_person, opens_as_report,
        split_reason, without_keep, without_mark,
    },
    statements::{
        self, Block, Gist, Gists, Sentence, Shape, Terms, Words, capitalised, code_share, is_whole,
        sentence_ranges, split_label, title_of,
    },
    words::{HashedMap, hash_bytes},
};
use crate::{
    engine::{DistilInput, WisdomOp},
    memory::{
        address::{Address, Citation},
        log::Origin,
        typed::{MemoryType, TypedMemory},
        wisdom::{WisdomEntry, WisdomMark},
    },
    privacy::ServedLog,
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
const SAME_BUT_VALUES: f64 = 0.75;
/// A new entry that shares this much with another one says nothing new.
const SAME_TOPIC: f64 = 0.4;
/// A value that was replaced so often is the date of a routine, not a fact that changed.
const REPLACED_MAX: usize = 3;
/// A citation holds the oldest lines, for `first seen`, and the newest.
const OLDEST_CITED: usize = 2;
const NEWEST_CITED: usize = 6;
/// An entry that was not said again for so long is offered for dropping.
const FORGOTTEN_AFTER: Months = Months::new(3);

/// Proposes edits of the entries from one month.
pub(super) fn distil(input: &DistilInput<'_>) -> Vec<WisdomOp> {
    let said = Said::of(input.logs);
    let own = words_of_people(input);
    let mut pieces = said.recurring();
    pieces.extend(said.kept());
    pieces.extend(input.memories.iter().filter_map(|memory| piece_of_memory(memory, input.logs)));
    for piece in &mut pieces {
        heed_items(piece, input);
        heed_people(piece, &own);
    }
    pieces.extend(own.iter().filter(|it| it.stands).map(OwnWords::piece));
    // Best first; then by words, so that equal scores do not depend on the order of reading.
    pieces.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.text.cmp(&b.text)));

    let entries: Vec<(Gist, &WisdomEntry)> = input
        .entries
        .iter()
        .map(|it| (Gist::of(&format!("{} {}", it.title, it.text)), it))
        .collect();
    let mut merged: BTreeMap<&str, WisdomOp> = BTreeMap::new();
    let mut adds: Vec<WisdomOp> = Vec::new();
    let mut added: Vec<Gist> = Vec::new();
    for (gist, entry) in &entries {
        if let Some(mark) = &entry.mark
            && let Some(words) = said.corrected(entry, gist, mark, &own)
        {
            // Whatever else repeats it says nothing new.
            added.push(words.gist.clone());
            merged.insert(&mark.id, words.correction(mark));
        }
    }
    for piece in pieces {
        if let Some(entry) = said.entry_of(&piece, &entries) {
            if let Some(mark) = &entry.mark
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
                category: category(piece.kind, input.categories),
                reason: piece.reason,
                citation,
            });
        }
    }
    for (gist, entry) in &entries {
        let Some(mark) = &entry.mark else { continue };
        if !merged.contains_key(mark.id.as_str())
            && let Some(citation) = said.again(gist, mark)
        {
            let reason = format!("said again on {}", citation.newest_date());
            let op = WisdomOp::Merge { id: mark.id.clone(), words: None, reason, citation };
            merged.insert(&mark.id, op);
        }
    }
    let drops = forgotten(input, &merged);
    // In the order of the file, so that the ids, which mean nothing, decide nothing.
    let mut ops: Vec<WisdomOp> = input
        .entries
        .iter()
        .filter_map(|entry| merged.remove(entry.mark.as_ref()?.id.as_str()))
        .collect();
    ops.extend(adds);
    ops.extend(drops);
    ops
}

/// What a piece of wisdom is, for its category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Person,
    Rule,
    Decision,
    Fact,
}

/// Something that may become an entry.
#[derive(Clone, Debug)]
struct Piece {
    kind: Kind,
    title: String,
    text: String,
    gist: Gist,
    score: usize,
    reason: String,
    /// Where it was said, ascending.
    sayings: Vec<Saying>,
    /// The newest place where it was said in these words.
    own: Saying,
}

/// The lines of one sentence at one place; never empty.
type Saying = Vec<Address>;

/// All that own words said in the logs, each distinct sentence once.
struct Said<'a> {
    logs: &'a [ServedLog],
    /// By their words.
    places: Vec<Place>,
    /// The places whose gist holds a stem, by its hash.
    holders: HashedMap<Vec<usize>>,
    kept: Vec<(String, Saying)>,
}

/// Where a sentence stands, and what it is about.
struct Place {
    text: String,
    gist: Gist,
    /// Whether it may be an entry by its words alone.
    stands: bool,
    /// In the order of the logs: which one, and the lines in it.
    sayings: Vec<(usize, Vec<u32>)>,
    days: BTreeSet<NaiveDate>,
    /// Not below a heading or label under which tasks stand, at least once.
    lasting: bool,
}

/// Sentences that differ in their values only.
type Cluster<'a> = Vec<&'a Place>;

impl<'a> Said<'a> {
    fn of(logs: &'a [ServedLog]) -> Self {
        let mut said =
            Self { logs, places: Vec::new(), holders: HashedMap::default(), kept: Vec::new() };
        let (mut gists, mut words) = (Gists::default(), Words::default());
        // The place of a sentence, by the hash of its words.
        let mut known = HashedMap::default();
        for (log, served) in logs.iter().enumerate() {
            let blocks = statements::blocks(served);
            let classes = Classes::of(&blocks);
            for (at, block) in blocks.iter().enumerate() {
                let lasting = block.shape != (Shape::Bullet { task: true })
                    && classes.above(at) != Some(Class::Task);
                said.read(log, block, lasting, (&mut known, &mut gists, &mut words));
            }
        }
        said.places.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        for (at, place) in said.places.iter().enumerate() {
            for &stem in place.gist.stems.hashes() {
                said.holders.entry(stem).or_default().push(at);
            }
        }
        said
    }

    fn read(
        &mut self,
        log: usize,
        block: &Block,
        lasting: bool,
        (known, gists, words): (&mut HashedMap<usize>, &mut Gists, &mut Words),
    ) {
        if matches!(block.shape, Shape::Heading(_)) && block.keep.is_empty() {
            return;
        }
        let sentences = block.sentences_from(0);
        for &line in &block.keep {
            // The marked line speaks for itself, not for the whole paragraph.
            let marked: Vec<&Sentence> =
                sentences.iter().filter(|it| it.lines.contains(&line)).collect();
            let text: Vec<&str> = marked.iter().map(|it| it.text.as_str()).collect();
            let lines: BTreeSet<u32> =
                marked.iter().flat_map(|it| it.lines.iter().copied()).collect();
            let saying = self.saying(log, lines);
            self.kept.push((without_keep(&text.join(" ")), saying));
        }
        if matches!(block.shape, Shape::Heading(_)) {
            return;
        }
        for sentence in sentences {
            let text = without_mark(&sentence.text);
            let at = *known.entry(hash_bytes(text.as_bytes())).or_insert(self.places.len());
            if at == self.places.len() {
                words.read(&text);
                self.places.push(Place {
                    gist: gists.of(words),
                    stands: stands(&text, words),
                    text: text.into_owned(),
                    sayings: Vec::new(),
                    days: BTreeSet::new(),
                    lasting: false,
                });
            }
            let place = &mut self.places[at];
            place.sayings.push((log, sentence.lines));
            place.days.insert(self.logs[log].date());
            place.lasting |= lasting;
        }
    }

    fn saying(&self, log: usize, lines: impl IntoIterator<Item = u32>) -> Saying {
        let stem = self.logs[log].stem();
        lines.into_iter().map(|line| Address { stem: stem.clone(), line }).collect()
    }

    /// Returns all sayings of a sentence, in the order of the logs.
    fn sayings(&self, place: &Place) -> impl Iterator<Item = Saying> {
        place.sayings.iter().map(|(log, lines)| self.saying(*log, lines.iter().copied()))
    }

    /// Returns the statements that recur, the newest values of each.
    fn recurring(&self) -> Vec<Piece> {
        let mut clusters: Vec<Cluster<'_>> = Vec::new();
        for place in &self.places {
            if !place.lasting || place.gist.stems.len() < 2 || !place.stands {
                continue;
            }
            let like = |it: &Cluster<'_>| it[0].gist.likeness(&place.gist) >= SAME_BUT_VALUES;
            match clusters.iter_mut().find(|it| like(it)) {
                Some(cluster) => cluster.push(place),
                None => clusters.push(vec![place]),
            }
        }
        clusters.iter().flat_map(|cluster| self.pieces_of(cluster)).collect()
    }

    /// Splits a cluster by values. Of values that never stood on one day the newest is true; values
    /// that were said side by side are different things.
    fn pieces_of(&self, cluster: &[&Place]) -> Vec<Piece> {
        let mut by_values: BTreeMap<&Terms, Cluster<'_>> = BTreeMap::new();
        for place in cluster {
            by_values.entry(&place.gist.values).or_default().push(place);
        }
        let spans: Vec<(BTreeSet<NaiveDate>, &Cluster<'_>)> = by_values
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
                let mut sayings: Vec<Saying> =
                    said.iter().flat_map(|place| self.sayings(place)).collect();
                sayings.sort();
                let own = self.sayings(best).last()?;
                Some(piece_of_text(&best.text, sayings, own, all.len()))
            })
            .collect()
    }

    fn kept(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (text, saying) in &self.kept {
            if Words::of(text).len() < 3 {
                continue;
            }
            let mut piece =
                piece_of_text(&sentences_of(text), vec![saying.clone()], saying.clone(), 1);
            piece.score += 20;
            "marked #keep".clone_into(&mut piece.reason);
            pieces.push(piece);
        }
        pieces
    }

    /// Returns the entry that a piece is about: one with the same values before one with others.
    ///
    /// An entry whose own value is said beside the new one is about something else.
    fn entry_of<'e>(
        &self,
        piece: &Piece,
        entries: &[(Gist, &'e WisdomEntry)],
    ) -> Option<&'e WisdomEntry> {
        let covering = || entries.iter().filter(|(gist, _)| covers(gist, &piece.gist));
        if let Some((_, entry)) = covering().find(|(gist, _)| !conflict(gist, &piece.gist)) {
            return Some(entry);
        }
        let first = piece.sayings.first().and_then(|it| it.first()).map(|it| it.stem.date());
        let beside = |gist: &Gist, mark: &WisdomMark| {
            self.again(gist, mark).is_some_and(|it| Some(it.newest_date()) >= first)
        };
        covering()
            .find(|(gist, entry)| !entry.mark.as_ref().is_some_and(|mark| beside(gist, mark)))
            .map(|(_, entry)| *entry)
    }

    /// Returns the words of a person's that an entry has to say instead of its own: it rests on a
    /// line that they cite, and says what that line says, or much the same as they do.
    fn corrected<'w>(
        &self,
        entry: &WisdomEntry,
        gist: &Gist,
        mark: &WisdomMark,
        own: &'w [OwnWords],
    ) -> Option<&'w OwnWords> {
        /// From this likeness on, two statements on the same line are about the same.
        const ALIKE: f64 = 0.5;
        let about = |words: &&OwnWords| {
            let shared = |at: &Address| {
                mark.sources.lines_of(&at.stem).is_some_and(|lines| lines.contains(at.line))
            };
            let repeats = |at: &Address| {
                let log = self.logs.iter().find(|log| *log.stem() == at.stem);
                let line = log.and_then(|log| log.line(at.line));
                line.is_some_and(|line| covers(&Gist::of(line.words()), gist))
            };
            let shared: Vec<Address> = words.citation.addresses().filter(shared).collect();
            !shared.is_empty() && (words.gist.likeness(gist) >= ALIKE || shared.iter().any(repeats))
        };
        let found: Vec<&OwnWords> = own.iter().filter(about).collect();
        let said = found.iter().any(|it| it.text == entry.text);
        found.first().copied().filter(|_| !said)
    }

    /// Returns the lines, newer than the last that count, that say again what an entry says.
    fn again(&self, entry: &Gist, mark: &WisdomMark) -> Option<Citation> {
        /// With fewer stems in common two sentences are about different things.
        const SHARED_MIN: usize = 3;
        let mut shared = vec![0_usize; self.places.len()];
        for stem in entry.stems.hashes() {
            for &place in self.holders.get(stem).map_or(&[][..], Vec::as_slice) {
                shared[place] += 1;
            }
        }
        let told = self.places.iter().zip(shared).filter(|(place, shared)| {
            *shared >= SHARED_MIN
                && place.days.last().is_some_and(|day| *day > mark.last_reinforced)
                && !place.text.contains('?')
                && says_again(entry, &place.gist)
        });
        let new = |it: &Address| {
            it.stem.date() > mark.last_reinforced
                && !mark.sources.lines_of(&it.stem).is_some_and(|set| set.contains(it.line))
        };
        let mut sayings: Vec<Saying> = told
            .flat_map(|(place, _)| self.sayings(place))
            .filter(|it| it.iter().all(new))
            .collect();
        sayings.sort();
        cite(&sayings, &[])
    }
}

/// Words of a person's, above the lines that they cite: a bullet of theirs in a week or a month,
/// or a typed memory that they changed.
struct OwnWords {
    title: String,
    text: String,
    gist: Gist,
    citation: Citation,
    /// Whether they may be an entry by themselves.
    stands: bool,
}

/// Finds what people wrote: a bullet of theirs cites the weekly or monthly file that it stands in.
fn words_of_people(input: &DistilInput<'_>) -> Vec<OwnWords> {
    let mut own = Vec::new();
    for (_, item) in input.items {
        let Some(citation) = item.citation.as_ref().filter(|it| it.rests_on_summary()) else {
            continue;
        };
        let bare = item.text.trim_start_matches("[ ] ").trim_start_matches("[x] ");
        let text = sentences_of(&without_mark(bare));
        let words = Words::of(&text);
        if words.len() < 3 {
            continue;
        }
        own.push(OwnWords {
            title: title(&text),
            gist: Gist::of(&text),
            stands: stands(&text, &words),
            citation: citation.clone(),
            text,
        });
    }
    for memory in input.memories.iter().filter(|it| !it.is_ours()) {
        if let Some(piece) = piece_of_memory(memory, input.logs)
            && let Some(citation) = piece.citation()
        {
            let Piece { title, text, gist, .. } = piece;
            own.push(OwnWords { title, text, gist, citation, stands: false });
        }
    }
    own
}

impl OwnWords {
    fn piece(&self) -> Piece {
        let lines: Saying = self.citation.addresses().collect();
        let mut piece = piece_of_text(&self.text, vec![lines.clone()], lines, 1);
        piece.score += 10;
        "a person wrote it".clone_into(&mut piece.reason);
        piece
    }

    fn correction(&self, mark: &WisdomMark) -> WisdomOp {
        WisdomOp::Merge {
            id: mark.id.clone(),
            words: Some((self.title.clone(), self.text.clone())),
            reason: "a person corrected it".to_owned(),
            citation: self.citation.clone(),
        }
    }
}

/// Where a person said otherwise what a line says, their words stand for it.
fn heed_people(piece: &mut Piece, own: &[OwnWords]) {
    let within = |words: &&OwnWords| {
        piece.own.iter().all(|it| {
            words.citation.lines_of(&it.stem).is_some_and(|lines| lines.contains(it.line))
        })
    };
    if let Some(words) = own.iter().find(within) {
        piece.title.clone_from(&words.title);
        piece.text.clone_from(&words.text);
        piece.gist = words.gist.clone();
        piece.own = words.citation.addresses().collect();
    }
}

impl Piece {
    fn citation(&self) -> Option<Citation> {
        cite(&self.sayings, &self.own)
    }

    /// Returns the edit of an entry that says the same, or `None` when nothing is new about it.
    fn merge_into(&self, entry: &WisdomEntry, mark: &WisdomMark) -> Option<WisdomOp> {
        let newer = |it: &&Saying| it.iter().all(|it| it.stem.date() > mark.last_reinforced);
        let new: Vec<Saying> = self.sayings.iter().filter(newer).cloned().collect();
        let citation = cite(&new, &[])?;
        let told = Gist::of(&entry.text);
        // What a person wrote is not brought up to date by what a log repeats.
        let changed = !mark.sources.rests_on_summary()
            && told.likeness(&self.gist) >= SAME_BUT_VALUES
            && !told.values.is_empty()
            && told.values != self.gist.values;
        let day = citation.newest_date();
        let (words, reason, citation) = if changed {
            let words = (self.title.clone(), self.text.clone());
            (Some(words), format!("a newer value on {day}"), cite(&new, &self.own)?)
        } else {
            (None, format!("said again on {day}"), citation)
        };
        Some(WisdomOp::Merge { id: mark.id.clone(), words, reason, citation })
    }
}

/// Returns whether a sentence says something that would change what somebody does, and lasts.
fn stands(text: &str, words: &Words) -> bool {
    if !(words.has(cues::RULE) || words.has(cues::STANDS) || is_about_person(text, words)) {
        return false;
    }
    if !is_whole(text, words)
        || text.chars().count() > TEXT_CHARS_MAX
        || opens_as_report(words)
        || words.opens_with(cues::TASK_OPENERS)
        || words.opens_with(cues::NO_RULES)
        || words.has(cues::NARRATIVE)
        || (has_date(words) && !words.has(cues::DEADLINE) && !words.has(cues::RULE))
        || code_share(text) > 0.3
        || text.contains("http")
    {
        return false;
    }
    let label = split_label(text);
    !label.is_some_and(|(label, _)| {
        matches!(class_of(label), Some(Class::Task | Class::Reason))
            || Words::of(label).opens_with(cues::TASK_OPENERS)
    })
}

fn piece_of_text(text: &str, sayings: Vec<Saying>, own: Saying, days: usize) -> Piece {
    let words = Words::of(text);
    let rule = words.has(cues::RULE);
    let person = about_person(text);
    let kind = match (person, rule) {
        (true, _) => Kind::Person,
        (_, true) => Kind::Rule,
        _ if words.opens_with(cues::DECIDED) => Kind::Decision,
        _ => Kind::Fact,
    };
    let score = days
        + 4 * usize::from(rule)
        + 4 * usize::from(person)
        + 3 * usize::from(split_reason(text).is_some());
    Piece {
        kind,
        title: title(text),
        text: text.to_owned(),
        gist: Gist::of(text),
        score,
        reason: format!("said on {days} days"),
        sayings,
        own,
    }
}

/// Makes a piece of a typed memory that guides; deadlines and one-off choices do not.
fn piece_of_memory(memory: &TypedMemory, logs: &[ServedLog]) -> Option<Piece> {
    let mut addresses: Saying = memory.sources.iter().map(|(address, _)| address.clone()).collect();
    let external = addresses.iter().any(|it| {
        let log = logs.iter().find(|log| *log.stem() == it.stem);
        log.and_then(|log| log.line(it.line)).is_some_and(|line| line.origin() == Origin::External)
    });
    if addresses.is_empty() || external {
        return None;
    }
    addresses.sort();
    let (statement, why) = parts_of_body(&memory.body);
    let words = Words::of(&statement);
    let (kind, score) = match memory.kind {
        MemoryType::User => (Kind::Person, 14),
        MemoryType::Feedback => (Kind::Rule, 16),
        MemoryType::Project => (Kind::Decision, 8),
        MemoryType::Reference => return None,
    };
    let guides = words.has(cues::RULE) || words.has(cues::STANDS) || words.has(cues::INSTEAD);
    let one_off =
        memory.kind == MemoryType::Project && (!guides || why.is_none() || has_date(&words));
    // What somebody likes best matters once it comes up again.
    let taste = memory.kind == MemoryType::User && words.has(cues::FAVORITE);
    if words.len() < 3 || one_off || taste {
        return None;
    }
    // Who said it is no reason, once the statement names them.
    let why = why.filter(|it| Words::of(it).len() >= 4 && !statement.starts_with(it.as_str()));
    let text = match why {
        Some(why) if Words::of(&why).opens_with(cues::SO_THAT) => {
            format!("{} {why}", statement.trim_end_matches('.'))
        }
        Some(why) => format!("{} — {why}", statement.trim_end_matches('.')),
        None => statement.clone(),
    };
    let text = if text.chars().count() <= TEXT_CHARS_MAX { text } else { statement };
    Some(Piece {
        kind,
        title: title(&memory.name),
        gist: Gist::of(&text),
        text: sentences_of(&text),
        score,
        reason: format!("from {}", memory.file_name.display()),
        sayings: vec![addresses.clone()],
        own: addresses,
    })
}

/// Splits the body of a typed memory into its statement and its reason.
fn parts_of_body(body: &str) -> (String, Option<String>) {
    let mut statement = Vec::new();
    let mut why = Vec::new();
    let mut in_why = false;
    for line in
        body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let bare = line.replace("**", "");
        let label = split_label(&bare).map(|(label, rest)| (class_of(label), rest));
        match label {
            Some((Some(Class::Reason), rest)) if why.is_empty() && !in_why => {
                in_why = true;
                why.push(bare[rest..].to_owned());
            }
            Some((Some(Class::Reason), _)) => break,
            _ if in_why => why.push(bare),
            _ => statement.push(bare),
        }
    }
    (statement.join(" "), (!why.is_empty()).then(|| why.join(" ")))
}

/// What the month's file says of the same lines counts: that it was worth a bullet, and what a
/// person corrected in it.
fn heed_items(piece: &mut Piece, input: &DistilInput<'_>) {
    let Some(cited) = Citation::from_addresses(piece.sayings.iter().flatten()) else { return };
    for (_, item) in input.items {
        if !item.citation.as_ref().is_some_and(|it| it.shares_line_with(&cited)) {
            continue;
        }
        let gist = Gist::of(&item.text);
        // No engine changes a value, so a bullet that lacks those of its lines is a person's.
        let corrected = !piece.gist.values.is_empty()
            && piece.gist.values.is_disjoint(&gist.values)
            && !gist.values.is_empty()
            && piece.gist.likeness(&gist) >= SAME_BUT_VALUES;
        if corrected {
            piece.title = title(&item.text);
            piece.text.clone_from(&item.text);
            piece.gist = gist;
        }
        piece.score += 3;
        return;
    }
}

/// Returns whether an entry already says what a piece says.
fn covers(entry: &Gist, piece: &Gist) -> bool {
    const COVERED: f64 = 0.6;
    let shared = piece.stems.shared(&entry.stems);
    shared >= 2
        && (piece.overlap(entry) >= 0.8
            || piece.likeness(entry) >= 0.5
            || piece.within(entry) >= COVERED)
}

/// Returns whether two say the same but for other values.
fn conflict(a: &Gist, b: &Gist) -> bool {
    let other_values = !a.values.is_subset(&b.values) && !b.values.is_subset(&a.values);
    other_values && a.overlap(b) >= SAME_BUT_VALUES
}

/// Returns whether a line about the same says again what an entry says, without another value.
fn says_again(entry: &Gist, line: &Gist) -> bool {
    let values_agree = line.values.is_subset(&entry.values) || entry.values.is_subset(&line.values);
    values_agree && (line.likeness(entry) >= 0.6 || entry.within(line) >= 0.7)
}

fn same_topic(a: &Gist, b: &Gist) -> bool {
    const SHARED_MIN: usize = 3;
    // What differs in its values only was found to be two things.
    if conflict(a, b) {
        return false;
    }
    let values = a.values.shared(&b.values);
    let shared = a.stems.shared(&b.stems) + values;
    a.overlap(b) >= 0.8 || (shared >= SHARED_MIN && a.within(b).max(b.within(a)) >= SAME_TOPIC)
}

/// Entries of ours that nobody said again for long; oldest first.
fn forgotten(input: &DistilInput<'_>, merged: &BTreeMap<&str, WisdomOp>) -> Vec<WisdomOp> {
    let mut marks: Vec<&WisdomMark> = input
        .entries
        .iter()
        .filter_map(|entry| entry.mark.as_ref())
        .filter(|mark| !merged.contains_key(mark.id.as_str()))
        .filter(|mark| mark.last_reinforced + FORGOTTEN_AFTER < input.month.last())
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
fn cite(sayings: &[Saying], own: &[Address]) -> Option<Citation> {
    let mut days = BTreeSet::new();
    let few = sayings.len() <= OLDEST_CITED + NEWEST_CITED;
    let first_of_day =
        |it: &&Saying| few || it.first().is_some_and(|it| days.insert(it.stem.date()));
    let sayings: Vec<&Saying> = sayings.iter().filter(first_of_day).collect();
    let newest_at = sayings.len().saturating_sub(NEWEST_CITED);
    let chosen = sayings.iter().enumerate().filter(|&(i, _)| i < OLDEST_CITED || i >= newest_at);
    Citation::from_addresses(chosen.flat_map(|(_, it)| it.iter()).chain(own))
}

/// The label where a statement has one that says more than when, else its lead clause.
fn title(text: &str) -> String {
    let title = match split_label(text) {
        Some((label, _)) if label.split_whitespace().count() >= 2 && !tells_when(label) => {
            label.to_owned()
        }
        Some((label, _)) if label.split_whitespace().count() >= 4 => label.to_owned(),
        Some((label, rest)) if tells_when(label) && Words::of(&text[rest..]).len() >= 4 => {
            title_of(&text[rest..], TITLE_CHARS_MAX)
        }
        _ => title_of(text, TITLE_CHARS_MAX),
    };
    capitalised(&title)
}

fn tells_when(label: &str) -> bool {
    Words::of(label).has(cues::MONTHS)
        || Words::of(label).iter().any(|w| cues::WEEKDAYS.contains(&w))
}

fn sentences_of(text: &str) -> String {
    let end =
        sentence_ranges(text).into_iter().take(SENTENCES_MAX).next_back().map_or(0, |(_, end)| end);
    text[..end].trim().to_owned()
}

/// Of the categories that people chose, the one that shares a word with ours; else none.
fn category(kind: Kind, given: &[String]) -> Option<String> {
    let (own, words): (&str, &[&str]) = match kind {
        Kind::Person => ("People", &["people", "person", "preferences", "user", "team", "who"]),
        Kind::Rule => (
            "How to work",
            &["how", "work", "process", "rules", "practice", "practices", "workflow"],
        ),
        Kind::Decision => ("Decisions", &["decisions", "architecture", "design", "choices"]),
        Kind::Fact => {
            ("Standing facts", &["facts", "standing", "context", "limits", "constraints", "domain"])
        }
    };
    if given.is_empty() {
        return Some(own.to_owned());
    }
    given.iter().find(|it| Words::of(it).iter().any(|word| words.contains(&word))).cloned()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{
        memory::{
            hash::ContentHash,
            item::{Item, Section},
            log::DailyLog,
            period::Period,
        },
        privacy,
    };

    /// One log a day from 1 April 2026 on, of the text that each gives.
    fn logs(days: &[&str]) -> Vec<ServedLog> {
        days.iter()
            .enumerate()
            .map(|(i, text)| {
                let stem = format!("2026-04-{:02}", i + 1).parse().unwrap();
                privacy::serve(
                    &DailyLog::parse(stem, text.as_bytes()).unwrap(),
                    &privacy::Rules::default(),
                )
            })
            .collect()
    }

    fn edits(days: &[&str], entries: &[WisdomEntry], memories: &[TypedMemory]) -> Vec<WisdomOp> {
        let input = DistilInput {
            month: "2026-04".parse::<Period>().unwrap(),
            items: &[],
            logs: &logs(days),
            entries,
            memories,
            categories: &[],
        };
        let ops = distil(&input);
        assert_eq!(ops, distil(&input), "the same input gives the same edits");
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
            mark: (!id.is_empty()).then(|| WisdomMark {
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
        let ops = distil(&DistilInput {
            month: "2026-04".parse().unwrap(),
            items: &[(Some(Section::Themes), corrected)],
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
                let source = Words::of(&cited.collect::<Vec<_>>().join(" "));
                for word in Words::of(&format!("{text} {title}")).iter() {
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
