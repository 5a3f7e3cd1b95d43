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
//! - The same input gives the same edits, best first.
//!
//! Called by the extractive engine.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Months, NaiveDate};

use super::{
    cues,
    memories::{Class, about_person, class_of, has_date, reports, split_reason, without_keep},
    statements::{
        self, Block, Gist, Shape, Words, code_share, sentence_ranges, split_label, stands_alone,
        title_of,
    },
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
const SAME_TOPIC: f64 = 0.5;
/// A citation holds the oldest lines, for `first seen`, and the newest.
const OLDEST_CITED: usize = 2;
const NEWEST_CITED: usize = 6;
/// An entry that was not said again for so long is offered for dropping.
const FORGOTTEN_AFTER: Months = Months::new(3);

/// Proposes edits of the entries from one month.
pub fn distil(input: &DistilInput<'_>) -> Vec<WisdomOp> {
    let said = Said::of(input.logs);
    let mut pieces = said.recurring();
    pieces.extend(said.kept());
    pieces.extend(input.memories.iter().filter_map(|memory| piece_of_memory(memory, input.logs)));
    for piece in &mut pieces {
        heed_items(piece, input);
    }
    // Best first; then by words, so that equal scores do not depend on the order of reading.
    pieces.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.text.cmp(&b.text)));

    let entries: Vec<(Gist, &WisdomEntry)> =
        input.entries.iter().map(|it| (Gist::of(&format!("{} {}", it.title, it.text)), it)).collect();
    let mut merged: BTreeMap<&str, WisdomOp> = BTreeMap::new();
    let mut adds: Vec<WisdomOp> = Vec::new();
    let mut added: Vec<Gist> = Vec::new();
    for piece in pieces {
        if let Some((_, entry)) = entries.iter().find(|(gist, _)| covers(gist, &piece.gist)) {
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
                category: category(piece.kind, &input.categories),
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
    /// Ascending.
    addresses: Vec<Address>,
}

/// All that own words said in the logs, each distinct sentence once.
struct Said {
    sentences: BTreeMap<String, Place>,
    kept: Vec<(String, Vec<Address>)>,
}

/// Where a sentence stands.
#[derive(Default)]
struct Place {
    addresses: Vec<Address>,
    days: BTreeSet<NaiveDate>,
    /// Not below a heading or label under which tasks stand, at least once.
    lasting: bool,
}

/// A sentence that could stand as an entry, with the values that it gives.
struct Variant<'a> {
    text: &'a str,
    gist: Gist,
    place: &'a Place,
}

impl Said {
    fn of(logs: &[ServedLog]) -> Self {
        let mut said = Self { sentences: BTreeMap::new(), kept: Vec::new() };
        for log in logs {
            let blocks = statements::blocks(log);
            for (at, block) in blocks.iter().enumerate() {
                said.read(log, &blocks, at, block);
            }
        }
        said
    }

    fn read(&mut self, log: &ServedLog, blocks: &[Block], at: usize, block: &Block) {
        let address = |line: u32| Address { stem: log.stem().clone(), line };
        let sentences = block.sentences_from(0);
        if block.keep {
            let text = without_keep(&block.text);
            let lines = block.lines().into_iter().map(address).collect();
            self.kept.push((text, lines));
        }
        if matches!(block.shape, Shape::Heading(_)) {
            return;
        }
        let lasting = block.shape != (Shape::Bullet { task: true }) && !under_task(blocks, at);
        for sentence in sentences {
            let place = self.sentences.entry(without_keep(&sentence.text)).or_default();
            place.addresses.extend(sentence.lines.iter().map(|&line| address(line)));
            place.days.insert(log.date());
            place.lasting |= lasting;
        }
    }

    /// Returns the statements that recur, the newest values of each.
    fn recurring(&self) -> Vec<Piece> {
        let mut clusters: Vec<Vec<Variant<'_>>> = Vec::new();
        for (text, place) in &self.sentences {
            if !place.lasting || !stands(text) {
                continue;
            }
            let variant = Variant { text, gist: Gist::of(text), place };
            if variant.gist.stems.len() < 2 {
                continue;
            }
            let like = |it: &Vec<Variant<'_>>| it[0].gist.likeness(&variant.gist) >= SAME_BUT_VALUES;
            match clusters.iter_mut().find(|it| like(it)) {
                Some(cluster) => cluster.push(variant),
                None => clusters.push(vec![variant]),
            }
        }
        clusters.iter().flat_map(|cluster| Self::pieces_of(cluster)).collect()
    }

    /// Splits a cluster by values. Values that were said until others took their place are out of
    /// date; values that were said side by side are different things.
    fn pieces_of(cluster: &[Variant<'_>]) -> Vec<Piece> {
        let mut by_values: BTreeMap<&BTreeSet<String>, Vec<&Variant<'_>>> = BTreeMap::new();
        for variant in cluster {
            by_values.entry(&variant.gist.values).or_default().push(variant);
        }
        let spans: Vec<(BTreeSet<NaiveDate>, &Vec<&Variant<'_>>)> = by_values
            .values()
            .map(|variants| (variants.iter().flat_map(|it| it.place.days.iter().copied()).collect(), variants))
            .collect();
        let replaced = |older: &BTreeSet<NaiveDate>, newer: &BTreeSet<NaiveDate>| older.last() < newer.first();
        spans
            .iter()
            .filter(|(days, _)| !spans.iter().any(|(other, _)| replaced(days, other)))
            .filter_map(|(days, variants)| {
                let mut all = days.clone();
                for (other, _) in &spans {
                    if replaced(other, days) {
                        all.extend(other);
                    }
                }
                if all.len() < DAYS_MIN {
                    return None;
                }
                // The wording that was used most; of equals the longest, since it says most.
                let best = variants
                    .iter()
                    .max_by_key(|it| (it.place.days.len(), it.text.chars().count()))?;
                let mut addresses: Vec<Address> =
                    variants.iter().flat_map(|it| it.place.addresses.iter().cloned()).collect();
                addresses.sort();
                Some(piece_of_text(best.text, addresses, all.len()))
            })
            .collect()
    }

    fn kept(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (text, addresses) in &self.kept {
            if Words::of(text).len() < 3 {
                continue;
            }
            let mut piece = piece_of_text(&sentences_of(text), addresses.clone(), 1);
            piece.score += 20;
            "marked #keep".clone_into(&mut piece.reason);
            pieces.push(piece);
        }
        pieces
    }

    /// Returns the lines, newer than the last that count, that say again what an entry says.
    fn again(&self, entry: &Gist, mark: &WisdomMark) -> Option<Citation> {
        let mut addresses: Vec<Address> = Vec::new();
        for (text, place) in &self.sentences {
            let newer = place.days.last().is_some_and(|day| *day > mark.last_reinforced);
            if !newer || text.contains('?') {
                continue;
            }
            if says_again(entry, &Gist::of(text)) {
                let new = |it: &&Address| {
                    it.stem.date() > mark.last_reinforced
                        && !mark.sources.lines_of(&it.stem).is_some_and(|set| set.contains(it.line))
                };
                addresses.extend(place.addresses.iter().filter(new).cloned());
            }
        }
        addresses.sort();
        Citation::from_addresses(&chosen(&addresses))
    }
}

impl Piece {
    fn citation(&self) -> Option<Citation> {
        Citation::from_addresses(&chosen(&self.addresses))
    }

    /// Returns the edit of an entry that says the same, or `None` when nothing is new about it.
    fn merge_into(&self, entry: &WisdomEntry, mark: &WisdomMark) -> Option<WisdomOp> {
        let new: Vec<Address> = self
            .addresses
            .iter()
            .filter(|it| it.stem.date() > mark.last_reinforced)
            .cloned()
            .collect();
        let citation = Citation::from_addresses(&chosen(&new))?;
        let told = Gist::of(&entry.text);
        let changed = told.likeness(&self.gist) >= SAME_BUT_VALUES
            && !told.values.is_empty()
            && told.values != self.gist.values;
        let day = citation.newest_date();
        let (words, reason) = if changed {
            (Some((self.title.clone(), self.text.clone())), format!("a newer value on {day}"))
        } else {
            (None, format!("said again on {day}"))
        };
        Some(WisdomOp::Merge { id: mark.id.clone(), words, reason, citation })
    }
}

/// Returns whether a sentence says something that would change what somebody does, and lasts.
fn stands(text: &str) -> bool {
    let words = Words::of(text);
    if !stands_alone(text)
        || text.chars().count() > TEXT_CHARS_MAX
        || reports(text)
        || words.opens_with(cues::TASK_OPENERS)
        || words.opens_with(cues::NO_RULES)
        || code_share(text) > 0.3
        || text.contains("http")
    {
        return false;
    }
    let label = split_label(text);
    if label.is_some_and(|(label, _)| {
        matches!(class_of(label), Some(Class::Task | Class::Reason))
            || Words::of(label).opens_with(cues::TASK_OPENERS)
    }) {
        return false;
    }
    words.has(cues::RULE) || words.has(cues::STANDS) || about_person(text)
}

fn under_task(blocks: &[Block], at: usize) -> bool {
    let class = |above: usize| {
        let text = blocks[above].text.trim_end_matches(':');
        class_of(split_label(text).map_or(text, |(label, _)| label))
    };
    statements::context(blocks, at).into_iter().find_map(class) == Some(Class::Task)
}

fn piece_of_text(text: &str, addresses: Vec<Address>, days: usize) -> Piece {
    let words = Words::of(text);
    let rule = words.has(cues::RULE);
    let person = about_person(text);
    let kind = match (person, rule) {
        (true, _) => Kind::Person,
        (_, true) => Kind::Rule,
        _ if words.opens_with(cues::DECIDED) => Kind::Decision,
        _ => Kind::Fact,
    };
    let score = days + 4 * usize::from(rule) + 4 * usize::from(person) + 3 * usize::from(split_reason(text).is_some());
    Piece {
        kind,
        title: title(text),
        text: text.to_owned(),
        gist: Gist::of(text),
        score,
        reason: format!("said on {days} days"),
        addresses,
    }
}

/// Makes a piece of a typed memory that guides; deadlines and one-off choices do not.
fn piece_of_memory(memory: &TypedMemory, logs: &[ServedLog]) -> Option<Piece> {
    let addresses: Vec<Address> = memory.sources.iter().map(|(address, _)| address.clone()).collect();
    let external = addresses.iter().any(|it| {
        let log = logs.iter().find(|log| *log.stem() == it.stem);
        log.and_then(|log| log.line(it.line)).is_some_and(|line| line.origin() == Origin::External)
    });
    if addresses.is_empty() || external {
        return None;
    }
    let (statement, why) = parts_of_body(&memory.body);
    let words = Words::of(&statement);
    let (kind, score) = match memory.kind {
        MemoryType::User => (Kind::Person, 14),
        MemoryType::Feedback => (Kind::Rule, 16),
        MemoryType::Project => (Kind::Decision, 8),
        MemoryType::Reference => return None,
    };
    let guides = words.has(cues::RULE) || words.has(cues::STANDS) || words.has(cues::INSTEAD);
    let one_off = memory.kind == MemoryType::Project && (!guides || why.is_none() || has_date(&words));
    if words.len() < 3 || one_off {
        return None;
    }
    let why = why.filter(|it| Words::of(it).len() >= 4);
    let text = match why {
        Some(why) if Words::of(&why).opens_with(cues::SO_THAT) => {
            format!("{} {why}", statement.trim_end_matches('.'))
        }
        Some(why) => format!("{} — {why}", statement.trim_end_matches('.')),
        None => statement.clone(),
    };
    let text = if text.chars().count() <= TEXT_CHARS_MAX { text } else { statement };
    let mut addresses = addresses;
    addresses.sort();
    Some(Piece {
        kind,
        title: title(&memory.name),
        gist: Gist::of(&text),
        text: sentences_of(&text),
        score,
        reason: format!("from {}", memory.file_name.display()),
        addresses,
    })
}

/// Splits the body of a typed memory into its statement and its reason.
fn parts_of_body(body: &str) -> (String, Option<String>) {
    let mut statement = Vec::new();
    let mut why = Vec::new();
    let mut in_why = false;
    for line in body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
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
    let Some(cited) = Citation::from_addresses(&piece.addresses) else { return };
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
    let shared = piece.stems.intersection(&entry.stems).count();
    shared >= 2 && (piece.overlap(entry) >= 0.8 || piece.likeness(entry) >= 0.5 || piece.within(entry) >= COVERED)
}

/// Returns whether a line says again what an entry says, without another value.
fn says_again(entry: &Gist, line: &Gist) -> bool {
    const SHARED_MIN: usize = 3;
    let shared = line.stems.intersection(&entry.stems).count();
    let values_agree = line.values.is_subset(&entry.values) || entry.values.is_subset(&line.values);
    shared >= SHARED_MIN && values_agree && (line.likeness(entry) >= 0.6 || entry.within(line) >= 0.7)
}

fn same_topic(a: &Gist, b: &Gist) -> bool {
    const SHARED_MIN: usize = 3;
    let shared = a.stems.intersection(&b.stems).count();
    a.overlap(b) >= 0.8 || (shared >= SHARED_MIN && a.overlap(b) >= SAME_TOPIC)
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

/// The oldest and the newest lines, one a day where there are many.
fn chosen(addresses: &[Address]) -> Vec<Address> {
    let most = OLDEST_CITED + NEWEST_CITED;
    if addresses.len() <= most {
        return addresses.to_vec();
    }
    let mut days = BTreeSet::new();
    let one_a_day: Vec<Address> =
        addresses.iter().filter(|it| days.insert(it.stem.date())).cloned().collect();
    if one_a_day.len() <= most {
        return one_a_day;
    }
    let (oldest, rest) = one_a_day.split_at(OLDEST_CITED);
    oldest.iter().chain(&rest[rest.len() - NEWEST_CITED..]).cloned().collect()
}

/// The label where a statement has one, else its lead clause.
fn title(text: &str) -> String {
    match split_label(text) {
        Some((label, _)) if label.split_whitespace().count() >= 2 => label.to_owned(),
        _ => title_of(text, TITLE_CHARS_MAX),
    }
}

fn sentences_of(text: &str) -> String {
    let end = sentence_ranges(text).into_iter().take(SENTENCES_MAX).next_back().map_or(0, |(_, end)| end);
    text[..end].trim().to_owned()
}

/// Of the categories that people chose, the one that shares a word with ours; else none.
fn category(kind: Kind, given: &[String]) -> Option<String> {
    let (own, words): (&str, &[&str]) = match kind {
        Kind::Person => ("People", &["people", "person", "preferences", "user", "team", "who"]),
        Kind::Rule => ("How to work", &["how", "work", "process", "rules", "practice", "practices", "workflow"]),
        Kind::Decision => ("Decisions", &["decisions", "architecture", "design", "choices"]),
        Kind::Fact => ("Standing facts", &["facts", "standing", "context", "limits", "constraints", "domain"]),
    };
    if given.is_empty() {
        return Some(own.to_owned());
    }
    given.iter().find(|it| Words::of(it).has(words)).cloned()
}
