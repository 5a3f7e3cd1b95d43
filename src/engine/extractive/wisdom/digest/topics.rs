//! Files statements by topic: a typed memory for each entity that the logs come back to, and one of each type for what
//! is about no entity.

use std::collections::BTreeMap;

use super::stopped::{Change, StoppedThing, is_about_name, says_resumed, says_stopped, with_name};
use super::{
    DigestInput,
    entities::Entity,
    statements::{DigestStatement, LogStatements},
    without_name,
};
use crate::{
    engine::extractive::{
        cue_phrases,
        statements::{terms::is_stop_word, word_list::WordList},
    },
    memory::{
        address::{Address, Citation},
        item::Item,
        statement::StatementKind,
        typed::MemoryType,
    },
    text::lexicon::{CUES, WISDOM},
};

/// The most statements of each kind in one memory.
const STATEMENTS_MAX: usize = 8;

/// The most characters of the statements of one memory, citations included.
const BODY_CHARS_MAX: usize = 3_600;

/// The most memories about entities, by type.
const ENTITIES_MAX: usize = 24;

/// An entity has a memory of its own with as many statements.
const OWN_STATEMENTS_MIN: usize = 3;

/// A statement is filed if it is worth as much, and if there are only a few if it is worth [`WORTH_OF_FEW`].
const WORTH_MIN: f64 = 1.15;

const WORTH_OF_FEW: f64 = 0.8;

const FEW_STATEMENTS: usize = 100;

/// The longest former value, in characters.
const FORMER_CHARS_MAX: usize = 40;

/// As many different values of a label before its last one are those of a series.
const SERIES_VALUES_MIN: usize = 3;

/// The most days of a series, each of which is cited.
const SERIES_DAYS_MAX: usize = 30;

/// Two statements of a topic say the same with this overlap.
const SAME_STATEMENT: f64 = 0.7;

/// The statements of a topic, for a typed memory.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicMemory {
    /// The type of the memory.
    pub kind: MemoryType,
    /// The name of the topic: that of an entity, or a general one.
    pub name: String,
    /// One line about it, in the words of its best statement.
    pub description: String,
    /// Its statements by kind, older ones first.
    pub statements: Vec<(StatementKind, Item)>,
}

/// The statements of some logs by topic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FiledTopics {
    /// By type, those about entities in the order of their frequency.
    pub topics: Vec<TopicMemory>,
    /// What says that something was stopped, or runs again: the logs of some months may name it only there.
    changes: Vec<ChangeLine>,
}

/// A statement that says that something was stopped, or runs again.
#[derive(Clone, Debug, PartialEq)]
struct ChangeLine {
    is_stop: bool,
    text: String,
    /// Its last line.
    at: Address,
    /// The names of the entities that it is about.
    entities: Vec<String>,
}

/// The memory of some statements.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct StatementPlace<'a> {
    /// The name of the memory, or those of all others if it is about nothing in particular.
    pub names: &'a [&'a str],
    /// Whether it is about nothing in particular.
    pub is_general: bool,
    /// Whether it is about the thing with a name.
    pub is_about: &'a dyn Fn(&str) -> bool,
}

/// What no longer holds in a memory: names, each with the last line that says so.
#[derive(Debug)]
pub struct TopicEnds<'a> {
    /// The name of the memory, unless it is about nothing in particular.
    name: Option<&'a str>,
    stopped: BTreeMap<&'a str, &'a Address>,
    resumed: BTreeMap<&'a str, &'a Address>,
}

impl FiledTopics {
    /// Returns what ends statements of a memory.
    #[must_use]
    pub fn ends<'a>(&'a self, place: &StatementPlace<'a>) -> TopicEnds<'a> {
        let StatementPlace { names, is_general, is_about } = *place;
        let (mut stopped, mut resumed) = (BTreeMap::new(), BTreeMap::new());
        for ChangeLine { is_stop, text, at, entities } in &self.changes {
            let says = if *is_stop { says_stopped } else { says_resumed };
            let of_memory = names.iter().copied().filter(|name| {
                says(name, text) || !is_general && entities.iter().any(|it| is_about(it))
            });
            // Beside its own topic a memory may say what was stopped elsewhere.
            let others = entities.iter().map(String::as_str).filter(|_| is_general || !is_stop);
            let ends = if *is_stop { &mut stopped } else { &mut resumed };
            for name in of_memory.chain(others) {
                ends.entry(name).and_modify(|it: &mut &Address| *it = at.max(*it)).or_insert(at);
            }
        }
        let name = names.first().copied().filter(|_| !is_general);
        TopicEnds { name, stopped, resumed }
    }
}

impl TopicEnds<'_> {
    /// Returns whether a statement of the memory no longer holds: a newer line says that what it is about was stopped, or
    /// that what it says was stopped runs again.
    #[must_use]
    pub fn end(&self, kind: StatementKind, item: &Item) -> bool {
        let newest = item.citation.as_ref().and_then(|it| it.addresses().max());
        let text = &item.text;
        let since = |all: &BTreeMap<&str, &Address>, is_of: &dyn Fn(&str) -> bool| {
            newest
                .as_ref()
                .is_some_and(|newest| all.iter().any(|(name, at)| *at > newest && is_of(name)))
        };
        match kind {
            StatementKind::State | StatementKind::Open | StatementKind::Environment => {
                since(&self.stopped, &|it| self.name.is_some() || is_about_name(it, text))
            }
            StatementKind::Retired => since(&self.resumed, &|it| {
                says_stopped(it, text)
                    || self.name == Some(it) && says_stopped(it, &with_name(it, text))
            }),
            _ => false,
        }
    }
}

/// What a memory is about; `None` for what is about no entity.
type TopicKey = (MemoryType, Option<usize>);

/// Files the statements of some logs by topic.
pub(super) fn file_by_topic(input: &DigestInput<'_>, read: &LogStatements) -> FiledTopics {
    let recent = read.statements.iter().filter(|it| it.day >= input.states_from);
    let worth_min = if recent.count() <= FEW_STATEMENTS { WORTH_OF_FEW } else { WORTH_MIN };
    let filer = TopicFiler { input, read, worth_min };
    let mut topics = BTreeMap::<TopicKey, Vec<usize>>::new();
    for (at, statement) in read.statements.iter().enumerate() {
        if let Some(key) = filer.topic_of(statement) {
            topics.entry(key).or_default().push(at);
        }
    }
    let mut by_entity = BTreeMap::<usize, usize>::new();
    for ((_, entity), members) in &topics {
        if let Some(entity) = entity {
            *by_entity.entry(*entity).or_default() += members.len();
        }
    }
    let mut found: Vec<(TopicKey, Vec<usize>)> = Vec::new();
    let mut general = BTreeMap::<MemoryType, Vec<usize>>::new();
    let mut counts = BTreeMap::<MemoryType, usize>::new();
    // The most frequent entity has the lowest index.
    for ((kind, entity), members) in topics {
        let Some(entity) = entity else {
            general.entry(kind).or_default().extend(members);
            continue;
        };
        let chosen = filer.choose(&members);
        let count = counts.entry(kind).or_default();
        let of_entity: usize = by_entity.get(&entity).copied().unwrap_or(0);
        let least = match kind {
            // What one person wants is not what another does.
            MemoryType::User => 1,
            _ if of_entity > OWN_STATEMENTS_MIN => OWN_STATEMENTS_MIN - 1,
            _ => OWN_STATEMENTS_MIN,
        };
        if chosen.len() < least || *count == ENTITIES_MAX {
            // What must be done counts wherever it is filed.
            let kept = chosen.into_iter().filter(|it| is_general(&read.statements[*it]));
            general.entry(kind).or_default().extend(kept);
            continue;
        }
        *count += 1;
        found.push(((kind, Some(entity)), chosen));
    }
    for (kind, mut members) in general {
        members.sort_unstable();
        let chosen = filer.choose(&members);
        if !chosen.is_empty() {
            found.push(((kind, None), chosen));
        }
    }
    found.sort_unstable_by_key(|it| it.0);
    let topics = found.into_iter().map(|(key, chosen)| filer.memory(key, chosen)).collect();
    FiledTopics { topics, changes: filer.changes() }
}

/// Returns whether a statement is what its writer says of themselves: `I prefer the phone`.
fn opens_in_first_person(statement: &DigestStatement) -> bool {
    let first = WordList::of(statement.own_text());
    first.get(0).is_some_and(|it| CUES.first_person.contains(&it))
}

/// Returns whether a statement begins with the name of somebody: `Nina prefers the phone`, `Nina is allergic to nuts`.
fn begins_with_name(statement: &DigestStatement) -> bool {
    let mut words = statement.own_text().split_whitespace();
    let (Some(name), Some(verb)) = (words.next(), words.next()) else { return false };
    let lower = name.to_lowercase();
    name.starts_with(char::is_uppercase)
        && name.chars().count() > 1
        && name.chars().all(char::is_alphabetic)
        && !is_stop_word(&lower)
        && !cue_phrases::PERSONS.contains(&lower)
        && (WISDOM.person_verbs.contains(&verb)
            || CUES.to_be_present.contains(&verb)
            || ["has", "was", "hat", "war"].contains(&verb))
}

struct TopicFiler<'a> {
    input: &'a DigestInput<'a>,
    read: &'a LogStatements,
    /// The least worth of a statement in a memory.
    worth_min: f64,
}

impl TopicFiler<'_> {
    /// Returns the topic of a statement; `None` for a state of nothing that the logs come back to.
    fn topic_of(&self, statement: &DigestStatement) -> Option<TopicKey> {
        let kind = statement.kind.memory_type();
        let entity = match kind {
            // Whoever writes the logs is not who is named in them most.
            MemoryType::User if opens_in_first_person(statement) => None,
            MemoryType::User => match statement.person {
                None if begins_with_name(statement) => Some(self.read.people),
                None => self.main_person(),
                person => person,
            },
            MemoryType::Project => {
                let entity = statement.subject.map(|it| it.entity);
                entity.filter(|it| !self.read.entities.all[*it].is_platform)
            }
            MemoryType::Feedback | MemoryType::Reference => statement.subject.map(|it| it.entity),
        };
        // One of the name of a general topic belongs to that.
        let is_general_name = |it: &usize| {
            self.read.entities.all[*it].name.eq_ignore_ascii_case(kind.general_topic())
        };
        let entity = entity.filter(|it| !is_general_name(it));
        (entity.is_some() || is_general(statement)).then_some((kind, entity))
    }

    /// Returns the person whom the logs name most.
    fn main_person(&self) -> Option<usize> {
        self.read.entities.all.iter().position(|it| it.is_person)
    }

    /// Returns what says that something was stopped for good, or runs again, unless it must not be in a memory: what a
    /// person deleted and what the checks hold ends nothing.
    fn changes(&self) -> Vec<ChangeLine> {
        let entities = &self.read.entities.all;
        let change = |it: &DigestStatement| {
            let (is_stop, things) = match it.changed.change? {
                Change::Stop => (true, &it.changed.stopped),
                Change::Resumption => (false, &it.changed.resumed),
                Change::Pause => return None,
            };
            let entities = things.iter().filter_map(|it| match it {
                StoppedThing::Entity(entity) => Some(entities[*entity].name.clone()),
                StoppedThing::Named(_) => None,
            });
            let at = it.own_citation.addresses().max().filter(|_| !self.is_kept_out(it))?;
            Some(ChangeLine {
                is_stop,
                text: it.own_text().to_owned(),
                at,
                entities: entities.collect(),
            })
        };
        self.read.statements.iter().filter_map(change).collect()
    }

    fn is_kept_out(&self, it: &DigestStatement) -> bool {
        let is_out = self.input.kept_out_of_memory;
        is_out(it.kind.memory_type(), &it.text, &it.citation, &it.own_citation)
    }

    /// Chooses among the statements of a topic, oldest first: the best ones of each kind that hold.
    fn choose(&self, members: &[usize]) -> Vec<usize> {
        let all = &self.read.statements;
        let mut by_worth: Vec<usize> = members.to_vec();
        by_worth.sort_by(|a, b| all[*b].worth.total_cmp(&all[*a].worth).then(b.cmp(a)));
        let mut counts = [0; StatementKind::ALL.len()];
        let (mut chosen, mut room) = (Vec::<usize>::new(), BODY_CHARS_MAX);
        for at in by_worth {
            let statement = &all[at];
            let count = &mut counts[statement.kind as usize];
            let chars = statement.text.chars().count() + statement.citation.to_string().len() + 6;
            if *count == STATEMENTS_MAX || chars > room || statement.worth < self.worth_min {
                continue;
            }
            let said = |it: &usize| statement.terms.overlap(&all[*it].terms) >= SAME_STATEMENT;
            if chosen.iter().any(said)
                || self.read.newer.is_replaced(all, statement)
                || self.is_kept_out(statement)
            {
                continue;
            }
            *count += 1;
            room -= chars;
            chosen.push(at);
        }
        chosen.sort_unstable();
        chosen
    }

    /// Returns a statement with what its label said before: the range of a series, `Depth: 5.2 m (was 3.9 m–5.1 m on
    /// 6 days since 2026-04-02)`, or the value that it replaces, `Poll interval: 5 minutes (was 10 minutes until 2026-04-10)`.
    fn with_earlier_values(&self, at: usize, words: &str) -> Item {
        let statement = &self.read.statements[at];
        let bare = words.trim_end_matches(['.', ';']);
        let with = |note: String, others: &[&DigestStatement]| {
            let text = format!("{bare} ({note})");
            let (mut citation, mut own) =
                (statement.citation.clone(), statement.own_citation.clone());
            for other in others {
                citation.merge(&other.citation);
                own.merge(&other.own_citation);
            }
            let is_out = |text: &str, citation: &Citation, own: &Citation| {
                (self.input.kept_out_of_memory)(statement.kind.memory_type(), text, citation, own)
            };
            let is_kept = |it: &&DigestStatement| !is_out(&it.text, &it.citation, &it.own_citation);
            (others.iter().all(is_kept) && !is_out(&text, &citation, &own))
                .then_some(Item { text, citation: Some(citation) })
        };
        let all = &self.read.statements;
        let series = Series::of(statement, self.read.newer.before(all, statement));
        let ranged = series.and_then(|it| {
            let (days, first) = (it.days.len(), it.days.last()?.day);
            let note = format!("was {}–{} on {days} days since {first}", it.least, it.most);
            with(note, &it.days)
        });
        let replaced = || {
            let former = self.read.newer.before(all, statement).next();
            let former = former.filter(|it| it.day < statement.day)?;
            let value = former.value().filter(|it| it.chars().count() <= FORMER_CHARS_MAX)?;
            statement.value().filter(|it| *it != value)?;
            with(format!("was {value} until {}", statement.day), &[former])
        };
        let plain = || Item { text: words.to_owned(), citation: Some(statement.citation.clone()) };
        ranged.or_else(replaced).unwrap_or_else(plain)
    }

    fn memory(&self, (kind, entity): TopicKey, mut chosen: Vec<usize>) -> TopicMemory {
        let all = &self.read.statements;
        let entity: Option<&Entity> = entity.map(|it| &self.read.entities.all[it]);
        let name = entity.map_or_else(|| kind.general_topic().to_owned(), |it| it.name.clone());
        let words = |at: usize| match entity {
            Some(it) => without_name(&all[at].text, &it.name),
            None => &all[at].text,
        };
        // What begins with the name says what it is; of these the first one.
        let opens = |it: &&usize| all[**it].subject.is_some_and(|it| it.opens);
        let is_state = |it: &&usize| all[**it].kind == StatementKind::State && opens(it);
        let best = chosen
            .iter()
            .find(is_state)
            .or_else(|| chosen.iter().max_by(|a, b| all[**a].worth.total_cmp(&all[**b].worth)));
        let description = best.map(|it| words(*it).to_owned()).unwrap_or_default();
        chosen.sort_by_key(|it| (all[*it].kind, *it));
        let item = |at: usize| self.with_earlier_values(at, words(at));
        let statements = chosen.iter().map(|&at| (all[at].kind, item(at))).collect();
        TopicMemory { kind, name, description, statements }
    }
}

/// The values of a label that measures the same thing again and again.
struct Series<'a> {
    least: &'a str,
    most: &'a str,
    /// The newest statement of each earlier day, newest first.
    days: Vec<&'a DigestStatement>,
}

impl<'a> Series<'a> {
    /// Returns the series of the statements before one, newest first; `None` for values of different units, of too few
    /// days, or of which some are the same: those were set, not measured.
    fn of(
        newest: &DigestStatement,
        earlier: impl Iterator<Item = &'a DigestStatement>,
    ) -> Option<Self> {
        let (_, unit) = measured(newest.value()?)?;
        let mut values: Vec<(f64, &DigestStatement, &str)> = earlier
            .filter(|it| it.day < newest.day)
            .filter_map(|it| {
                let value = it.value()?;
                measured(value).filter(|it| it.1 == unit).map(|(number, _)| (number, it, value))
            })
            .collect();
        values.dedup_by_key(|it| it.1.day);
        values.truncate(SERIES_DAYS_MAX);
        let days = values.iter().map(|it| it.1).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        values.dedup_by_key(|it| it.0.to_bits());
        let (least, most) = (values.first()?.2, values.last()?.2);
        (values.len() >= SERIES_VALUES_MIN).then_some(Self { least, most, days })
    }
}

/// Returns the number of a short value, and its unit before and after it; `None` without a unit, and where it is unclear
/// what a point or a comma does.
fn measured(value: &str) -> Option<(f64, (&str, &str))> {
    let start = value.find(|c: char| c.is_ascii_digit())?;
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let end = value[start..].find(|c| !is_number(c)).map_or(value.len(), |it| start + it);
    let number = value[start..end].trim_end_matches(['.', ',']);
    let (before, after) = (&value[..start], &value[start + number.len()..]);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_clear = whole.split(',').skip(1).all(|it| it.len() == 3)
        && !fraction.contains(['.', ','])
        && fraction.len() != 3
        && !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '−' | '–'))
        && !after.contains(|c: char| c.is_ascii_digit());
    let has_unit =
        [before, after].iter().any(|it| it.contains(|c: char| !c.is_whitespace() && c != '.'));
    let number = number.replace(',', "").parse().ok().filter(|_| is_clear && has_unit)?;
    Some((number, (before, after)))
}

/// Returns whether a statement is kept where it is about no entity.
fn is_general(statement: &DigestStatement) -> bool {
    !matches!(statement.kind, StatementKind::State | StatementKind::Open | StatementKind::Retired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_short_values_are_measured() {
        for (value, expected) in [
            ("4.8 m", Some((4.8, ("", " m")))),
            ("$1,204.50", Some((1204.5, ("$", "")))),
            ("about 12 kn", Some((12.0, ("about ", " kn")))),
            ("8080", None),
            ("12.", None),
            ("3,9 m", None),
            ("1.204 €", None),
            ("1.204,50 €", None),
            ("-3 °C", None),
            ("v1.10", None),
            ("3 of 4", None),
            ("1.2.3", None),
            ("none", None),
        ] {
            assert_eq!(measured(value), expected, "{value}");
        }
    }
}
