//! Chooses the bullets of `WISDOM.md`: what the newest logs say that a reader needs at the start of a session.
//!
//! Each statement of the logs has a section (a rule, a person, a lesson, a decision, a project, a place, an open
//! item, something that was stopped), a worth ([`worth`]), and terms. A greedy choice takes the statement that adds most for
//! its length: terms count by their rarity among statements and by the days on which they occur, so that what an
//! agent comes back to outweighs what happened once; a term that is already in the file counts less.
//!
//! Of logs that a model read, the statements are those that it found ([`model_statements`]), in its words.
//!
//! The same statements are filed by topic for the typed memories ([`topics`]), by the entities that they are about
//! ([`entities`]); those of a project share a bullet that begins with its name.
//!
//! # Invariants
//!
//! - The text is that of the logs, or of the model that read them, with its heading before it where it is not understandable alone; statements
//!   that need the same heading share it in one bullet.
//! - Of two statements that differ in their values, or have the same label, the newer one is chosen.
//! - The same logs and the same file give the same bullets: nothing depends on the clock. A bullet stays until it is
//!   replaced or something clearly better needs its room, so that the file does not change without cause; chosen again
//!   from the file that they gave, the bullets are the same, unless [`HELD_ROUNDS_MAX`] choices did not settle them.

pub(in crate::engine::extractive) mod contradictions;
pub(in crate::engine::extractive) mod entities;
pub(in crate::engine::extractive) mod labelled_value;
pub(in crate::engine::extractive) mod model_statements;
pub(in crate::engine::extractive) mod newer;
mod sections;
mod siblings;
pub(in crate::engine::extractive) mod statements;
pub(in crate::engine::extractive) mod stopped;
mod titles;
mod topics;
mod worth;

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BinaryHeap},
};

use chrono::NaiveDate;
use serde::Serialize;

use self::entities::Entities;
pub use self::model_statements::{ModelReading, ModelStatement};
use self::newer::NewerStatements;
use self::sections::room_of;
use self::statements::{
    DayCounts, DigestStatement, LogStatements, StatementReader, collect_statements,
};
pub use self::topics::{FiledTopics, StatementPlace, TopicMemory};
use self::worth::{NO_USE, OLD_STATE, StatementAge, statement_ages};
use super::similarity::{SeenStatements, repeats_entry};
use crate::{
    engine::extractive::{as_f64, statements::terms::StatementTerms},
    memory::{
        address::{Citation, Stem},
        statement::StatementKind,
        typed::MemoryType,
        wisdom::{WisdomEntry, WisdomSection},
    },
    privacy::SanitizedLog,
    text::{
        hash::{HashedMap, HashedSet},
        lexicon::WISDOM,
        words::lowercase_runs,
    },
};

/// A rule, a lesson, a decision or what is known of a person is a bullet if it is worth as much: of those with less two
/// in three are of no use.
const GUIDANCE_WORTH_MIN: f64 = 0.8;

/// The same for how things are: of those with less three in four are of no use.
const STATE_WORTH_MIN: f64 = 1.1;

/// While the file is shorter than this share of its room, in percent, this worth is enough: of a few logs a reader
/// wants most.
const SPARSE_ROOM: usize = 50;

const SPARSE_WORTH_MIN: f64 = 0.55;

const SPARSE_GUIDANCE_WORTH_MIN: f64 = 0.3;

/// How much the worth of a statement counts beside its terms.
const WORTH_POWER: f64 = 1.5;

/// How much more a rule counts that sets a boundary: it is short, and its words are those of many others.
const BOUNDARY: f64 = 2.0;

/// How much more a statement counts that is in the file already.
const HELD: f64 = 1.3;

/// The same for rules, people, lessons and decisions: what a day was about pushes none of them out.
const HELD_GUIDANCE: f64 = 2.0;

/// How often bullets are chosen again, so that the file keeps what was chosen.
const HELD_ROUNDS_MAX: usize = 4;

/// How much a term counts once it is in the file, per bullet that has it.
const REPEATED_TERM: f64 = 0.5;

/// Added to the length of a bullet: short ones would else win by their length alone.
const LENGTH_OFFSET: f64 = 120.0;

/// The characters of a bullet besides its text: `- ` and the line end.
const BULLET_MARKS: usize = 3;

/// Between the statements in the line of a project.
const LINE_JOINT: &str = "; ";

/// The characters of a section's heading with the blank lines around it.
const HEADING_CHARS: usize = 20;

/// An entry of the lines of a statement says the same with at least this overlap.
const SAME_SOURCE: f64 = 0.3;

/// Two statements of the same topic say the same with at least this overlap.
const SAME_STATEMENT: f64 = 0.8;

/// The most statements in the line of a project, and the most characters.
const PROJECT_STATEMENTS_MAX: usize = 6;

const PROJECT_CHARS_MAX: usize = 720;

/// A bullet of the file, with its lines where they are recorded.
pub type HeldBullet = (String, Option<Citation>);

/// What the bullets are chosen from.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct DigestInput<'a> {
    /// Sorted by stem.
    pub logs: &'a [SanitizedLog],
    /// Of logs before this day, only statements of lasting kinds are read ([`StatementKind::is_lasting`]).
    pub states_from: NaiveDate,
    /// What a model read of them.
    pub model: &'a ModelReading,
    /// The bullets of the file as it is.
    pub held: &'a [HeldBullet],
    /// Returns a text as it is written to the file.
    pub shown: &'a dyn Fn(&str) -> String,
    /// The other entries of the file, which no bullet repeats.
    pub entries: &'a [WisdomEntry],
    /// What the agent's own notes say, which no bullet repeats.
    pub notes: &'a SeenStatements,
    /// Returns why a bullet must not be written: a person deleted it or took it over, or the checks refuse it.
    pub kept_out: KeptOut<'a>,
    /// Returns whether a statement must not be in a memory of a type; the citations are as for `kept_out`.
    pub kept_out_of_memory: &'a dyn Fn(MemoryType, &str, &Citation, &Citation) -> bool,
    /// The room in characters.
    pub room: usize,
}

/// Returns why a text with these lines must not be written; the second lines are those without its titles, about
/// which a person may have decided.
pub(crate) type KeptOut<'a> = &'a dyn Fn(&str, &Citation, &Citation) -> Option<DigestOutcome>;

/// A bullet for the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestBullet {
    /// Where it belongs.
    pub section: WisdomSection,
    /// One line, as in the file.
    pub text: String,
    /// The lines of its words, those of its heading included.
    pub citation: Citation,
}

/// What became of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DigestOutcome {
    /// It is a bullet of the file.
    Chosen,
    /// There was no room left, in the file or for its section.
    NoRoom,
    /// The file says it already.
    SaidAlready,
    /// The agent's own notes say it.
    OwnNotes,
    /// A newer statement says how it is now.
    Replaced,
    /// A person deleted it, or wrote it in other words.
    KeptOutByPerson,
    /// A check refuses it.
    HeldByChecks(#[serde(skip)] FailedCheck),
    /// It is of little use at the start of a session.
    LittleUse,
    /// It is too short, or refers to a line before it.
    SaysTooLittle,
}

/// Why a statement must not be in `WISDOM.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailedCheck {
    /// Its lines do not support all of it.
    Unsupported,
    /// Only external text says it.
    External,
    /// It reads like an instruction to an agent, or has hidden characters.
    Quarantined,
    /// Its words say that it is not certain.
    Guess,
}

/// How the bullets of `WISDOM.md` were chosen.
#[derive(Clone, Debug, Serialize)]
pub struct DigestExplanation {
    /// The room for bullets in characters.
    pub room_chars: usize,
    /// The number of statements to choose from.
    pub statements: usize,
    /// Those that were chosen, in the order of the choice.
    pub chosen: Vec<ExplainedStatement>,
    /// Those that were left out, in the order in which they were considered: the first ones of each outcome.
    pub left_out: Vec<ExplainedStatement>,
}

/// A statement and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedStatement {
    /// Its first line.
    pub address: String,
    /// The section that it has or would have.
    pub section: &'static str,
    /// Its words as in the file.
    pub text: String,
    /// What it adds to the file per 100 characters when it was considered.
    pub value: f64,
    /// How useful it is at the start of a session, from 0 to about 3, whatever else is in the file.
    pub worth: f64,
    /// What became of it.
    pub why: DigestOutcome,
    /// The first line of the statement that replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
}

impl DigestOutcome {
    /// Returns the text for terminal output.
    pub fn label(self) -> &'static str {
        match self {
            Self::Chosen => "chosen",
            Self::NoRoom => "no room",
            Self::SaidAlready => "already in the file",
            Self::OwnNotes => "in the agent's own notes",
            Self::Replaced => "replaced by a newer one",
            Self::KeptOutByPerson => "kept out by a person",
            Self::HeldByChecks(FailedCheck::Unsupported) => "held: its lines do not support it",
            Self::HeldByChecks(FailedCheck::External) => "held: only external text says it",
            Self::HeldByChecks(FailedCheck::Quarantined) => "held: reads like an instruction",
            Self::HeldByChecks(FailedCheck::Guess) => "held: a guess",
            Self::LittleUse => "of little use",
            Self::SaysTooLittle => "says too little alone",
        }
    }
}

/// Explains how the bullets are chosen.
pub(crate) fn explain(input: &DigestInput<'_>) -> DigestExplanation {
    /// How many statements of each outcome are listed.
    const SHOWN_MAX: usize = 20;
    let read = collect_statements(input);
    let statements = &read.statements;
    let choice = DigestChoice::settled(input, &read);
    let mut shown = BTreeMap::<DigestOutcome, usize>::new();
    let mut is_considered = vec![false; statements.len()];
    choice.considered.iter().for_each(|it| is_considered[it.0] = true);
    let others = (0..statements.len()).filter(|it| !is_considered[*it]);
    let others = others.map(|it| match choice.outcome(it) {
        DigestOutcome::Chosen => (it, 0.0, DigestOutcome::LittleUse),
        why => (it, 0.0, why),
    });
    let considered = choice.considered.iter().copied().chain(others);
    let explained = considered.map(|(at, gain, why)| {
        let it = &statements[at];
        let newer = (why == DigestOutcome::Replaced)
            .then(|| read.newer.replacing_line(statements, it))
            .flatten();
        ExplainedStatement {
            address: it.citation.addresses().next().map(|it| it.to_string()).unwrap_or_default(),
            section: it.section().title(),
            text: it.bullet_text().into_owned(),
            value: 100.0 * gain,
            worth: it.worth,
            why,
            replaced_by: newer.map(|it| it.to_string()),
        }
    });
    let (chosen, mut left_out): (Vec<_>, Vec<_>) =
        explained.partition(|it| it.why == DigestOutcome::Chosen);
    // Those without a gain are the last; the most useful ones of them first.
    left_out.sort_by(|a, b| {
        let key = |it: &ExplainedStatement| it.why == DigestOutcome::LittleUse;
        let by_worth = if key(a) && key(b) { b.worth.total_cmp(&a.worth) } else { Ordering::Equal };
        key(a).cmp(&key(b)).then(by_worth)
    });
    // The newest ones are those that somebody looks for.
    left_out.extend(read.fragments.iter().rev().map(|it| ExplainedStatement {
        address: it.address.to_string(),
        section: sections::section_of(it.kind).title(),
        text: it.text.clone(),
        value: 0.0,
        worth: 0.0,
        why: DigestOutcome::SaysTooLittle,
        replaced_by: None,
    }));
    left_out.retain(|it| {
        let count = shown.entry(it.why).or_default();
        *count += 1;
        *count <= SHOWN_MAX
    });
    DigestExplanation { room_chars: input.room, statements: statements.len(), chosen, left_out }
}

/// The statements of the newest logs by topic, and the bullets chosen from them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Digest {
    /// In the order of the file.
    pub bullets: Vec<DigestBullet>,
    /// The typed memories.
    pub filed: FiledTopics,
}

/// The statements of logs, before they are filed by topic.
#[expect(missing_debug_implementations, reason = "its statements have none")]
pub struct ReadStatements(LogStatements);

/// Reads the statements of the logs; what must not be in a memory counts when they are filed.
pub(crate) fn read_statements(input: &DigestInput<'_>) -> ReadStatements {
    ReadStatements(collect_statements(input))
}

/// Files statements by topic.
pub(crate) fn file_statements(input: &DigestInput<'_>, read: &ReadStatements) -> FiledTopics {
    topics::file_by_topic(input, &read.0)
}

/// Files the statements of the logs by topic, and chooses the bullets.
pub(crate) fn digest(input: &DigestInput<'_>) -> Digest {
    let read = collect_statements(input);
    let choice = DigestChoice::settled(input, &read);
    let filed = topics::file_by_topic(input, &read);
    Digest { bullets: choice.into_bullets(), filed }
}

struct DigestChoice<'a> {
    input: &'a DigestInput<'a>,
    statements: &'a [DigestStatement],
    entities: &'a Entities,
    /// Whether each statement is in the file as it is.
    held: Vec<bool>,
    /// The age of each statement.
    ages: Vec<StatementAge>,
    weights: HashedMap<f64>,
    newer: &'a NewerStatements,
    /// The least worth of a state, and the room for bullets in characters.
    limits: (f64, usize),
    /// How many bullets have a term.
    covered: HashedMap<i32>,
    entries: Vec<StatementTerms>,
    chosen: Vec<usize>,
    /// Each statement that could have added something, with its gain and what became of it.
    considered: Vec<(usize, f64, DigestOutcome)>,
    /// The characters used, by section.
    used: [usize; WisdomSection::ALL.len()],
    /// The number of statements and characters in the line of each project.
    lines: BTreeMap<usize, (usize, usize)>,
    /// The newest statement of what each entity is.
    definitions: BTreeMap<usize, usize>,
}

/// A statement in the queue, by the gain that it had when it was put there.
#[derive(PartialEq)]
struct QueuedStatement(f64, usize);

impl Eq for QueuedStatement {}

impl Ord for QueuedStatement {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for QueuedStatement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> DigestChoice<'a> {
    /// Chooses until another choice from the file with the chosen bullets would be the same, at most
    /// [`HELD_ROUNDS_MAX`] times. So a run that is repeated after an interruption changes nothing.
    fn settled(input: &'a DigestInput<'a>, read: &'a LogStatements) -> Self {
        let mut held = held_statements(input, read);
        let mut rounds = 0;
        loop {
            let mut choice = Self::new(input, read, held);
            choice.run();
            rounds += 1;
            let mut chosen = vec![false; read.statements.len()];
            choice.chosen.iter().for_each(|&it| chosen[it] = true);
            if chosen == choice.held || rounds == HELD_ROUNDS_MAX {
                return choice;
            }
            held = chosen;
        }
    }

    fn new(input: &'a DigestInput<'a>, read: &'a LogStatements, held: Vec<bool>) -> Self {
        let LogStatements { statements, newer, entities, .. } = read;
        let words = input.entries.iter().map(WisdomEntry::words);
        let entries: Vec<StatementTerms> = words.map(|it| StatementTerms::of(&it)).collect();
        let mut covered = HashedMap::default();
        for terms in &entries {
            for &term in terms.stems.hashes() {
                *covered.entry(term).or_default() += 1;
            }
        }
        let weights = term_weights(statements);
        let used = [0; WisdomSection::ALL.len()];
        let (chosen, considered, lines) = (Vec::new(), Vec::new(), BTreeMap::new());
        let definition = |(at, it): (usize, &DigestStatement)| {
            let entity = it.subject.filter(|it| it.opens)?.entity;
            says_what_it_is(&it.text, &entities.all[entity].name).then_some((entity, at))
        };
        let definitions = statements.iter().enumerate().filter_map(definition).collect();
        Self {
            input,
            statements,
            entities,
            held,
            ages: statement_ages(statements),
            weights,
            newer,
            limits: (STATE_WORTH_MIN, input.room),
            covered,
            entries,
            chosen,
            considered,
            used,
            lines,
            definitions,
        }
    }

    fn run(&mut self) {
        self.choose_all();
        self.limits = (SPARSE_WORTH_MIN, self.input.room * SPARSE_ROOM / 100);
        self.choose_all();
    }

    /// Takes the statement with the highest gain until the room is full. A gain only falls, so that one that is
    /// still the highest after it was computed again is the highest of all.
    fn choose_all(&mut self) {
        let is_sparse = self.is_sparse();
        // That a task is done says nothing that lasts.
        let is_open = |it: &usize| {
            let it = &self.statements[*it];
            let is_lasting = it.kind.is_lasting() || it.section().is_state();
            !is_sparse || (it.worth < STATE_WORTH_MIN && is_lasting && !it.plan.reports_deed())
        };
        let open = (0..self.statements.len()).filter(is_open);
        let mut queue: BinaryHeap<QueuedStatement> =
            open.map(|it| QueuedStatement(self.gain(it), it)).collect();
        while let Some(QueuedStatement(_, at)) = queue.pop() {
            let gain = self.gain(at);
            if gain <= 0.0 {
                continue;
            }
            if queue.peek().is_some_and(|it| gain < it.0) {
                queue.push(QueuedStatement(gain, at));
                continue;
            }
            if self.chosen.contains(&at) {
                continue;
            }
            let outcome = if self.has_room(at) {
                self.outcome(at)
            } else if self.fits(at, self.input.room) {
                // The rest of the file is for what is worth more.
                DigestOutcome::LittleUse
            } else {
                DigestOutcome::NoRoom
            };
            self.considered.push((at, gain, outcome));
            if outcome == DigestOutcome::Chosen {
                self.choose(at);
                self.choose_definition(at);
            }
        }
    }

    /// Returns whether the file is short, so that less is enough.
    fn is_sparse(&self) -> bool {
        self.limits.0 < STATE_WORTH_MIN
    }

    /// Returns how much more a statement counts because it is in the file already.
    fn held_factor(&self, at: usize) -> f64 {
        match self.held[at] {
            true if self.statements[at].section().is_state() => HELD,
            true => HELD_GUIDANCE,
            false => 1.0,
        }
    }

    /// Returns whether a statement is of use at the start of a session.
    fn is_useful(&self, at: usize) -> bool {
        let it = &self.statements[at];
        // A model picked what should still be known.
        if it.reader == StatementReader::Model {
            return it.worth > NO_USE && self.ages[at] != StatementAge::LapsedOpen;
        }
        let least = match self.ages[at] {
            StatementAge::LapsedOpen => return false,
            StatementAge::OldState => return it.worth >= self.limits.0 + OLD_STATE,
            StatementAge::Recent if it.section().is_state() => self.limits.0,
            StatementAge::Recent if self.is_sparse() => SPARSE_GUIDANCE_WORTH_MIN,
            StatementAge::Recent => GUIDANCE_WORTH_MIN,
        };
        // What came in while there was room leaves when there is better.
        it.worth * if self.held[at] { HELD } else { 1.0 } >= least
    }

    fn gain(&self, at: usize) -> f64 {
        let statement = &self.statements[at];
        if !self.is_useful(at) {
            return 0.0;
        }
        let held = self.held_factor(at);
        let weight = |term: &u64| {
            let times = self.covered.get(term).copied().unwrap_or(0);
            self.weights.get(term).copied().unwrap_or(0.0) * REPEATED_TERM.powi(times)
        };
        let terms: f64 = statement.features().map(weight).sum();
        let boundary = if statement.is_boundary { BOUNDARY } else { 1.0 };
        terms * statement.worth.powf(WORTH_POWER) * statement.recurrence.powi(2) * boundary * held
            / (as_f64(statement.text.chars().count()) + LENGTH_OFFSET)
    }

    fn has_room(&self, at: usize) -> bool {
        let is_of_model = self.statements[at].reader == StatementReader::Model;
        self.fits(at, if is_of_model { self.input.room } else { self.limits.1 })
    }

    /// Returns whether a statement fits into as many characters, and into the room of its section.
    fn fits(&self, at: usize, room: usize) -> bool {
        let statement = &self.statements[at];
        let chars = self.added_chars(statement);
        let of_group = |section: WisdomSection| -> usize {
            let same = |it: &&WisdomSection| room_of(**it).0 == room_of(section).0;
            WisdomSection::ALL.iter().filter(same).map(|it| self.used[it.index()]).sum()
        };
        let is_new = |section: WisdomSection| self.used[section.index()] == 0;
        let opened = WisdomSection::ALL.iter().filter(|it| !is_new(**it)).count();
        let heads = (opened + usize::from(is_new(statement.section()))) * HEADING_CHARS;
        let all: usize = self.used.iter().sum();
        let (_, share) = room_of(statement.section());
        let line = self.project_of(statement).and_then(|it| self.lines.get(&it));
        if line.is_some_and(|(statements, used)| {
            *statements == PROJECT_STATEMENTS_MAX || used + chars > PROJECT_CHARS_MAX
        }) {
            return false;
        }
        all + heads + chars <= room
            && of_group(statement.section()) + chars <= self.input.room * share / 100
    }

    /// Returns the entity in whose line a statement belongs.
    fn project_of(&self, statement: &DigestStatement) -> Option<usize> {
        let entity = statement.subject?.entity;
        let is_project =
            statement.kind == StatementKind::State && !self.entities.all[entity].is_platform;
        is_project.then_some(entity)
    }

    /// Returns a statement as it is in the line of its project.
    fn text_in_line<'t>(&self, text: &'t str, project: Option<usize>) -> &'t str {
        project.map_or(text, |it| without_name(text, &self.entities.all[it].name))
    }

    /// Returns how many characters a statement adds to the file.
    fn added_chars(&self, statement: &DigestStatement) -> usize {
        let project = self.project_of(statement);
        let chars = self.text_in_line(&statement.bullet_text(), project).chars().count();
        match project {
            Some(it) if self.lines.contains_key(&it) => chars + LINE_JOINT.len(),
            Some(it) => self.entities.all[it].name.chars().count() + 2 + chars + BULLET_MARKS,
            None => chars + BULLET_MARKS,
        }
    }

    /// Returns what becomes of a statement for which there is room.
    fn outcome(&self, at: usize) -> DigestOutcome {
        let statement = &self.statements[at];
        let terms = &statement.terms;
        let is_entry = |it: &StatementTerms| {
            repeats_entry(it, terms)
                || repeats_entry(it, &statement.own_terms)
                || statement.own_terms.stem_containment(it) >= SAME_STATEMENT
        };
        let is_bullet = |it: &DigestStatement| {
            // What denies one of two things says nothing of the other.
            it.plan.denied.is_empty() == statement.plan.denied.is_empty()
                && terms.overlap(&it.terms) >= SAME_STATEMENT
                && terms.similarity(&it.terms) >= 0.5
        };
        let mut bullets = self.chosen.iter().map(|&it| &self.statements[it]);
        // An entry that a model made of a statement says it in other words.
        let is_of_model = statement.reader == StatementReader::Model;
        let is_made_of_it = |(entry, terms): (&WisdomEntry, &StatementTerms)| {
            let sources = entry.meta.as_ref().map(|it| &it.sources);
            is_of_model
                && sources.is_some_and(|it| it.covers(&statement.own_citation))
                && statement.own_terms.overlap(terms) >= SAME_SOURCE
        };
        let mut with_terms = self.input.entries.iter().zip(&self.entries);
        if with_terms.any(is_made_of_it)
            || self.entries.iter().any(is_entry)
            || bullets.any(is_bullet)
        {
            DigestOutcome::SaidAlready
        } else if self.is_in_notes(statement) {
            DigestOutcome::OwnNotes
        } else if self.newer.is_replaced(self.statements, statement) {
            DigestOutcome::Replaced
        } else {
            (self.input.kept_out)(
                &statement.bullet_text(),
                &statement.citation,
                &statement.own_citation,
            )
            // The words of a model were compared with their lines when they became a memory.
            .filter(|it| {
                !is_of_model || *it != DigestOutcome::HeldByChecks(FailedCheck::Unsupported)
            })
            .unwrap_or(DigestOutcome::Chosen)
        }
    }

    fn is_in_notes(&self, statement: &DigestStatement) -> bool {
        let notes = self.input.notes;
        let is_said = |it: &str| match statement.kind {
            StatementKind::Retired => notes.say_all_of(it),
            _ => notes.find_repeated(it).is_some(),
        };
        is_said(&statement.text) || (statement.title.is_some() && is_said(statement.own_text()))
    }

    fn choose(&mut self, at: usize) {
        let statement = &self.statements[at];
        for &term in statement.features() {
            *self.covered.entry(term).or_default() += 1;
        }
        let chars = self.added_chars(statement);
        self.used[statement.section().index()] += chars;
        if let Some(project) = self.project_of(statement) {
            let line = self.lines.entry(project).or_default();
            *line = (line.0 + 1, line.1 + chars);
        }
        self.chosen.push(at);
    }

    /// Chooses what the project of a chosen statement is, with which its line begins.
    fn choose_definition(&mut self, chosen: usize) {
        let project = self.project_of(&self.statements[chosen]);
        let definition = project.and_then(|it| self.definitions.get(&it).copied());
        let is_left = |it: &usize| {
            self.project_of(&self.statements[*it]) == project
                && !self.chosen.contains(it)
                && self.has_room(*it)
                && self.outcome(*it) == DigestOutcome::Chosen
        };
        if let Some(at) = definition.filter(is_left) {
            self.considered.push((at, self.gain(at), DigestOutcome::Chosen));
            self.choose(at);
        }
    }

    /// Returns the bullets by section: the newest first, those of a project in one line that is as new as its newest
    /// statement and begins with what it is; of the rules first those that set a boundary. What has no news stays in
    /// its place among the others.
    fn into_bullets(self) -> Vec<DigestBullet> {
        // Of each project its newest day and its first statement.
        let mut projects = BTreeMap::<usize, (NaiveDate, usize)>::new();
        for &at in &self.chosen {
            let it = &self.statements[at];
            if let Some(project) = self.project_of(it) {
                let (day, first) = projects.entry(project).or_insert((it.day, at));
                (*day, *first) = (it.day.max(*day), at.min(*first));
            }
        }
        let mut order: Vec<_> = self
            .chosen
            .iter()
            .map(|&at| {
                let it = &self.statements[at];
                let project = self.project_of(it);
                let (day, first) = project.map_or((it.day, at), |it| projects[&it]);
                let is_news = project.is_none_or(|it| self.definitions.get(&it) != Some(&at));
                let due = it.due.filter(|it| *it < NaiveDate::MAX);
                let due = (due.is_none(), due);
                (it.section(), Reverse(it.is_boundary), due, Reverse(day), first, is_news, at)
            })
            .collect();
        order.sort_unstable();
        let mut lines = BTreeMap::<usize, usize>::new();
        let mut bullets: Vec<DigestBullet> = Vec::with_capacity(order.len());
        for (.., at) in order {
            let statement = &self.statements[at];
            let project = self.project_of(statement);
            let whole = statement.bullet_text();
            let text = self.text_in_line(&whole, project);
            if let Some(bullet) = project.and_then(|it| bullets.get_mut(*lines.get(&it)?)) {
                bullet.text.extend([LINE_JOINT, text]);
                bullet.citation.merge(&statement.citation);
                continue;
            }
            lines.extend(project.map(|it| (it, bullets.len())));
            let name = project.map(|it| &self.entities.all[it].name);
            let text = match name.filter(|it| after_name(text, it).is_none()) {
                Some(name) => format!("{name}: {text}"),
                None => text.to_owned(),
            };
            let (section, citation) = (statement.section(), statement.citation.clone());
            bullets.push(DigestBullet { section, text, citation });
        }
        bullets
    }
}

/// Returns whether each statement is one of the bullets of the file, or a part of one.
fn held_statements(input: &DigestInput<'_>, read: &LogStatements) -> Vec<bool> {
    let mut by_stem = BTreeMap::<Option<&Stem>, Vec<&HeldBullet>>::new();
    for bullet in input.held {
        let stems = bullet.1.iter().flat_map(Citation::files).map(|it| Some(it.0));
        let unknown = bullet.1.is_none().then_some(None);
        stems.chain(unknown).for_each(|it| by_stem.entry(it).or_default().push(bullet));
    }
    let is_held = |it: &DigestStatement| {
        let words = it.own_text().trim_end_matches(['.', ';']);
        // In the line of a project its name is written once.
        let name = it.subject.map_or("", |it| &read.entities.all[it.entity].name);
        let words = without_name(words, name);
        let stem = it.own_citation.files().next().map(|it| it.0);
        let candidates = [stem, None].into_iter().filter_map(|it| by_stem.get(&it)).flatten();
        let mut cited = candidates
            .copied()
            .filter(|(_, citation)| citation.as_ref().is_none_or(|at| at.covers(&it.own_citation)));
        cited.any(|(text, _)| text.contains(words) || text.contains(&*(input.shown)(words)))
    };
    read.statements.iter().map(is_held).collect()
}

/// Returns what follows the name with which a text begins.
fn after_name<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.get(..name.len()).filter(|it| it.eq_ignore_ascii_case(name))?;
    let rest = &text[name.len()..];
    (!rest.starts_with(char::is_alphanumeric)).then_some(rest)
}

/// Returns a text without the name before its first colon or dash. `Atlas-2: ready` is about another one.
fn without_name<'t>(text: &'t str, name: &str) -> &'t str {
    let Some(rest) = after_name(text, name) else { return text };
    let spaced = rest.trim_start();
    let is_joined = spaced.len() == rest.len() && rest.starts_with(['-', '–', '—']);
    let value = spaced.strip_prefix([':', '：', '—', '–', '-']).map(str::trim_start);
    value.filter(|it| !it.is_empty() && !is_joined).unwrap_or(text)
}

/// Returns whether a text says what the thing of a name is: `TideBoard is the screen of the harbour`.
fn says_what_it_is(text: &str, name: &str) -> bool {
    let Some(rest) = after_name(text, name).map(str::trim_start) else { return false };
    let mut words = lowercase_runs(rest);
    let mut next = || words.next().unwrap_or_default();
    let is_article = |it: &str| WISDOM.articles.contains(&it) || WISDOM.noun_articles.contains(&it);
    match rest.strip_prefix(['是', ':', '：', '—', '–', '-']) {
        Some(_) => rest.starts_with('是') || is_article(&next()),
        None => WISDOM.copulas.contains(&&*next()) && is_article(&next()),
    }
}

/// Returns what each term counts: more if few statements have it, and if it occurs on many days.
fn term_weights(statements: &[DigestStatement]) -> HashedMap<f64> {
    let mut times = HashedMap::<usize>::default();
    let (mut days, mut values) = (DayCounts::default(), HashedSet::default());
    for statement in statements {
        values.extend(statement.terms.values.hashes());
        for &term in statement.features() {
            *times.entry(term).or_default() += 1;
            days.add(term, statement.day);
        }
    }
    let all = as_f64(statements.len() + 1);
    let weight = |term: u64, times: usize| {
        (all / as_f64(times + 1)).ln_1p() * as_f64(days.of(term)).ln_1p().powi(2)
    };
    // A number that occurs on one day is rare, but says as little as any measurement.
    let is_passing = |term: u64| days.of(term) == 1 && values.contains(&term);
    let lasting = times.into_iter().filter(|it| !is_passing(it.0));
    lasting.map(|(term, times)| (term, weight(term, times))).collect()
}

#[cfg(test)]
mod tests;
