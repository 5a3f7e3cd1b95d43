//! The statements of logs, each with its section, worth and terms.

use std::{borrow::Cow, collections::BTreeSet};

use chrono::{Days, NaiveDate};

use super::sections::{
    StatementRole, decides_label, has_rule_sentence, is_passing, prefers_something, role_of,
    section_of, sets_boundary,
};
use super::{
    DigestInput, KeptOut,
    entities::{Entities, Entity, EntityMention},
    model_statements::{ModelReading, ModelStatement},
    newer::{self, NewerStatements},
    siblings::join_siblings,
    stopped::ChangedThings,
    titles,
    worth::{is_measurement, news_worth, own_worth, rate},
};
use crate::{
    engine::extractive::{
        candidates::headings::{is_meaningful, template_heads},
        cue_phrases,
        memories::{
            deadlines::has_date,
            roles::{BlockRole, role_of_label},
        },
        parsed_log::{self, LogStatement, ParsedLog, StatementHead},
        sections::{self, StatementClass},
        statements::{
            finished_tasks,
            named_thing::{Deed, made_thing, thing_to_make},
            replacement::{Replacement, may_replace},
            terms::{StatementTerms, TermExtractor, is_stop_word},
            word_list::WordList,
        },
    },
    engine::keep_mark::KEEP_MARK,
    memory::{
        address::{Address, Citation},
        atom::{self, AtomKind},
        authorship::Speaker,
        bare_words,
        log::TextOrigin,
        statement::StatementKind,
        typed::PEOPLE_TOPIC,
        wisdom::WisdomSection,
    },
    text::{
        hash::{HashedMap, hash_bytes},
        lexicon::{AUTHORSHIP, CUES, SEARCH, WISDOM},
        pieces::{is_about_counted_things, refers_back},
        sentences::sentence_ranges,
        stems::english_stem,
    },
};

/// The longest bullet, in characters without its heading.
pub(super) const TEXT_CHARS_MAX: usize = 280;

/// The longest heading before a bullet.
const HEAD_CHARS_MAX: usize = 60;

/// The fewest content words of a bullet.
const STEMS_MIN: usize = 3;

/// The same for what says what to do, how people are, or what was decided.
const LASTING_STEMS_MIN: usize = 2;

/// Of a rule or decision with as many words one content word is enough: `we keep the car`.
const ORDER_WORDS_MIN: usize = 4;

/// A statement with this many content words is understandable without its heading.
const CLEAR_STEMS: usize = 6;

/// As many words that recur unchanged on as many days were copied by a template or a program.
const COPIED_WORDS_MIN: usize = 8;

const COPIED_DAYS_MIN: usize = 3;

/// On how many days each of some hashes occurs.
#[derive(Default)]
pub(super) struct DayCounts(HashedMap<(usize, Option<NaiveDate>)>);

impl DayCounts {
    /// Counts a day of a hash. Days must come in order.
    pub(super) fn add(&mut self, hash: u64, day: NaiveDate) {
        let (days, last) = self.0.entry(hash).or_default();
        if *last != Some(day) {
            *days += 1;
            *last = Some(day);
        }
    }

    pub(super) fn of(&self, hash: u64) -> usize {
        self.0.get(&hash).map_or(0, |it| it.0)
    }
}

/// Who read a statement out of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementReader {
    /// The rules of this engine: its words are those of its lines.
    Rules,
    /// A model, in its own words; they were checked then.
    Model,
}

/// A statement of the logs that may become a bullet.
pub(in crate::engine::extractive) struct DigestStatement {
    pub(in crate::engine::extractive) kind: StatementKind,
    pub(super) reader: StatementReader,
    pub(super) text: String,
    pub(super) citation: Citation,
    /// The lines of its words without its titles.
    pub(in crate::engine::extractive) own_citation: Citation,
    pub(in crate::engine::extractive) day: NaiveDate,
    /// Its place among all statements; newer ones are higher.
    pub(super) order: usize,
    pub(in crate::engine::extractive) terms: StatementTerms,
    /// The terms without those of its heading.
    pub(in crate::engine::extractive) own_terms: StatementTerms,
    /// Stems of the names in it.
    pub(super) names: Vec<u64>,
    /// The entity that it is about.
    pub(in crate::engine::extractive) subject: Option<Subject>,
    /// The person whom it names first.
    pub(super) person: Option<usize>,
    /// What its labels say it is the values of.
    pub(super) keys: Vec<u64>,
    /// The length of its value in bytes, at the end of its words, if it is one value of one label.
    pub(super) value_length: Option<usize>,
    /// Whether it reports that something was finished.
    pub(in crate::engine::extractive) is_done: bool,
    /// The day up to which a task of a person is open if nobody ticks it off.
    pub(super) open_until: Option<NaiveDate>,
    /// Whether it is a rule about what cannot be taken back.
    pub(super) is_boundary: bool,
    /// How much more it is worth on its day: it reports something that others wait for.
    pub(super) news_worth: f64,
    /// What it says was stopped, or runs again.
    pub(super) changed: ChangedThings,
    /// What it says of plans and tasks.
    pub(super) plan: PlanChange,
    /// The first line of the newer one that says that what it plans was given up, exchanged, moved, or made.
    pub(super) ended_by: Option<Address>,
    /// How useful it is at the start of a session, from 0 to about 3.
    pub(in crate::engine::extractive) worth: f64,
    /// How often the logs come back to its words: from .3, never again, to 1.3, on all days.
    pub(super) recurrence: f64,
    /// The last day that an open item names; the last of all if a person marked it as one to keep.
    pub(super) due: Option<NaiveDate>,
    /// The last day on which a state or an open item is news, if it is about `tomorrow` or `this week`.
    pub(super) holds_until: Option<NaiveDate>,
    /// The hash of the heading above it.
    pub(super) heading: Option<u64>,
    /// What its words need before them, and where these words begin.
    pub(super) title: Option<StatementTitle>,
}

/// The heading or parent item at the beginning of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatementTitle {
    page: usize,
    head: usize,
    /// The bytes of the title with the colon and the space after it.
    pub(super) length: usize,
}

impl DigestStatement {
    /// Returns whether its words are about days that are over on `day`.
    pub(super) fn is_over(&self, day: NaiveDate) -> bool {
        self.holds_until.is_some_and(|it| it < day)
    }

    /// Returns the first line of its own words, without its heading.
    pub(super) fn first_line(&self) -> Option<Address> {
        self.own_citation.addresses().next()
    }

    /// Returns the section of `WISDOM.md` that it belongs to.
    pub(in crate::engine::extractive) fn section(&self) -> WisdomSection {
        section_of(self.kind)
    }

    /// Returns its words as in `WISDOM.md`: with its day if what it says may change.
    pub(super) fn bullet_text(&self) -> Cow<'_, str> {
        if !self.section().is_dated() {
            return Cow::Borrowed(&self.text);
        }
        let text = self.text.trim_end_matches(['.', ';']);
        Cow::Owned(format!("{text} ({})", self.day))
    }

    /// Returns the value of its only label.
    pub(super) fn value(&self) -> Option<&str> {
        let at =
            self.text.len().checked_sub(self.value_length.filter(|_| self.keys.len() == 1)?)?;
        self.text.get(at..).map(str::trim).filter(|it| !it.is_empty())
    }

    /// Returns its words without its title.
    pub(in crate::engine::extractive) fn own_text(&self) -> &str {
        &self.text[self.title.map_or(0, |it| it.length)..]
    }

    /// Returns the terms by which it is ranked.
    pub(super) fn features(&self) -> impl Iterator<Item = &u64> {
        self.terms.stems.hashes().iter().chain(self.terms.values.hashes())
    }
}

/// What a statement says of plans and tasks.
pub(super) struct PlanChange {
    /// What was given up, exchanged, or moved to another day.
    pub(super) replacement: Option<Box<Replacement>>,
    /// What was made.
    pub(super) made: Option<StatementTerms>,
    /// What an open item is to make.
    pub(super) to_make: Option<StatementTerms>,
    /// What was done with a thing.
    pub(super) done: Option<Deed>,
    /// What an open item is to do with one.
    pub(super) to_do: Option<Deed>,
    /// The stems of the words right behind those that negate.
    pub(super) denied: Vec<u64>,
    /// Whether it says that something does not work, or that something was mended.
    pub(super) complains: bool,
    pub(super) mends: bool,
}

impl PlanChange {
    /// Returns whether it says that something was made or done.
    pub(super) fn reports_deed(&self) -> bool {
        self.made.is_some() || self.done.is_some()
    }

    pub(super) fn read(
        kind: StatementKind,
        (text, words): (&str, &WordList),
        day: NaiveDate,
        extractor: &mut TermExtractor,
    ) -> Self {
        // What was stopped as a whole is in `changed`.
        let may_be = kind != StatementKind::Retired && may_replace(text, words);
        let replacement = may_be.then(|| Replacement::of(text, day)).flatten();
        let is_open = kind == StatementKind::Open;
        let replacement = replacement.map(|it| if is_open { it.without_change() } else { it });
        let is_report = kind == StatementKind::State;
        Self {
            replacement: replacement.map(Box::new),
            made: made_thing(text, words, extractor),
            to_make: is_open.then(|| thing_to_make(text, words, extractor)).flatten(),
            done: is_report.then(|| Deed::done(text, words, extractor)).flatten(),
            to_do: is_open.then(|| Deed::to_do(text, words, extractor)).flatten(),
            denied: denied_stems(words),
            complains: (is_report || is_open) && titles::complains(text, words),
            mends: is_report && titles::mends(words),
        }
    }
}

/// The entity that a statement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::extractive) struct Subject {
    /// Its index among the entities.
    pub(in crate::engine::extractive) entity: usize,
    /// Whether the words of the statement begin with its name.
    pub(super) opens: bool,
}

/// The statements of some logs.
pub(in crate::engine::extractive) struct LogStatements {
    /// Oldest first.
    pub(in crate::engine::extractive) statements: Vec<DigestStatement>,
    pub(in crate::engine::extractive) newer: NewerStatements,
    pub(in crate::engine::extractive) entities: Entities,
    /// The entity of what is about people whom the logs name too seldom.
    pub(super) people: usize,
    /// Those that say too little to be read.
    pub(super) fragments: Vec<Fragment>,
}

/// A statement that says too little by itself.
pub(super) struct Fragment {
    pub(super) kind: StatementKind,
    pub(super) address: Address,
    pub(super) text: String,
}

/// Returns the statements of logs that are not external.
pub(super) fn collect_statements(input: &DigestInput<'_>) -> LogStatements {
    let pages: Vec<ParsedLog> = input.logs.iter().map(parsed_log::parse).collect();
    collect_from_pages(&pages, input.states_from, input.kept_out, input.model)
}

/// Returns the statements of logs that are parsed already: of those before a day only the lasting kinds. Of the logs
/// that a model read, what it found.
pub(in crate::engine::extractive) fn collect_from_pages(
    pages: &[ParsedLog],
    states_from: NaiveDate,
    kept_out: KeptOut<'_>,
    model: &ModelReading,
) -> LogStatements {
    let templates = template_heads(pages);
    // What older logs are about, and how often they say it, is not how it is now.
    let recent = &pages[pages.partition_point(|it| it.stem.date() < states_from)..];
    let copied = copied_texts(recent);
    let mut collector = StatementCollector {
        templates,
        copied,
        entities: Entities::of(recent),
        heads: Vec::new(),
        cured: BTreeSet::new(),
        collects_posts: false,
        states_from,
        extractor: TermExtractor::default(),
        found: Vec::new(),
        fragments: Vec::new(),
    };
    let is_read = |it: &&(usize, &ParsedLog)| model.logs.contains(&it.1.stem);
    for (at, page) in pages.iter().enumerate().filter(|it| !is_read(&it)) {
        collector.read_heads(page);
        for index in 0..page.statements.len() {
            collector.add(at, page, index);
        }
    }
    if !model.statements.is_empty() {
        // What the rules read of the same lines says the same.
        let said = model.by_log();
        let is_said = |it: &DigestStatement| {
            let log = it.own_citation.files().next().and_then(|it| said.get(it.0));
            log.is_some_and(|of_log| of_log.iter().any(|said| said.covers(&it.own_citation)))
        };
        collector.found.retain(|it| !is_said(it));
        model.statements.iter().for_each(|it| collector.add_of_model(it));
        collector.found.sort_by_key(|it| it.day);
        (0..).zip(&mut collector.found).for_each(|(order, it)| it.order = order);
    }
    let StatementCollector { found, extractor, .. } = &mut collector;
    newer::mark_ended(found);
    let mut statements = join_siblings(std::mem::take(found), extractor, kept_out);
    let newer = NewerStatements::of(&statements);
    rate(&mut statements, &newer);
    let StatementCollector { mut entities, fragments, .. } = collector;
    let people = entities.of_topic(PEOPLE_TOPIC);
    LogStatements { statements, newer, entities, people, fragments }
}

/// For how many days what is about the day of the log, or the next one, is still news.
const DAY_BOUND_DAYS: Days = Days::new(3);

/// The same for what is about a week.
const WEEK_BOUND_DAYS: Days = Days::new(10);

/// What a heading or lead-in says about the statements below it.
struct HeadFacts {
    /// The entity that it names.
    named: Option<usize>,
    /// Whether it may be the title of a statement.
    fits: bool,
    /// Whether it says nothing without the one above it.
    is_generic: bool,
    /// The statement that it is about, if it is only about one.
    is_of: Option<usize>,
}

struct StatementCollector {
    templates: HashedMap<u32>,
    /// The days of each long text.
    copied: DayCounts,
    entities: Entities,
    /// What the heads of the page say.
    heads: Vec<HeadFacts>,
    /// The statements of the page that say what was wrong until it was mended.
    cured: BTreeSet<usize>,
    /// Whether the page collects what others posted.
    collects_posts: bool,
    /// Of pages before this day, only statements of lasting kinds are read.
    states_from: NaiveDate,
    extractor: TermExtractor,
    found: Vec<DigestStatement>,
    fragments: Vec<Fragment>,
}

/// The words of a statement that a bullet may have.
struct OwnText<'a> {
    own: &'a str,
    /// Those that are shown: without the label that says who said it in a session.
    shown: &'a str,
    /// Where they end in the text of the statement, in bytes.
    end: usize,
    keeps_label: bool,
    /// Whether a label says what they are about.
    is_labelled: bool,
}

impl<'a> OwnText<'a> {
    /// Returns the words of a statement; `None` for a question, a lead-in, and what is only a masked secret.
    fn of(statement: &'a LogStatement) -> Option<Self> {
        let end = end_of_text(&statement.text)?;
        let text = statement.text[..end].trim_end();
        let end = text.strip_suffix(KEEP_MARK).map_or(end, |it| it.trim_end().len());
        let own = statement.text[..end].trim();
        // `Decision: #keep` says nothing.
        let said = statement.text.get(statement.label..end).unwrap_or_default();
        let spoken = says_label_alone(statement).then(|| said.trim());
        let own = spoken.filter(|it| !refers_back(it)).unwrap_or(own);
        let own = without_joining_word(own);
        // Where a session was says nothing about what it says.
        let lead = bare_words::session_lead(own);
        let own = lead.map_or(own, |it| own[it.len()..].trim_start());
        let is_said = bare_words::SAID_LABELS.iter().any(|it| own.starts_with(it));
        let shown = match lead {
            None if !is_said => own,
            _ => bare_words::without_session_label(own),
        };
        // Without what was decided on a decision says little.
        let keeps_label = own.len() == statement.text[..end].trim().len();
        let is_labelled = statement.label > 0 && (keeps_label || decides_label(statement));
        let is_statement = !own.ends_with([':', '：', '?', '？', ','])
            && own.contains(char::is_alphabetic)
            && !statement.text.get(statement.label..end).is_some_and(is_secret_mark);
        is_statement.then_some(Self { own, shown, end, keeps_label, is_labelled })
    }
}

impl StatementCollector {
    /// Reads the heads of a page.
    fn read_heads(&mut self, page: &ParsedLog) {
        self.collects_posts = titles::collects_posts(page);
        self.cured = titles::cured_problems(page);
        let is_dated = |it: &atom::Atom| matches!(it.kind, AtomKind::Time | AtomKind::Date);
        let facts = |(at, head): (usize, &StatementHead)| {
            let title = bare_title(&head.text);
            let named = self.entities.mentions(&WordList::of(title));
            let things = named.iter().map(|it| it.entity).filter(|it| !self.is_person(*it));
            HeadFacts {
                named: self.main_one(things),
                // Where a session was, and its first question, say nothing about what it says.
                fits: bare_words::session_lead(&format!("{title}: ")).is_none()
                    && bare_words::session_lead(title).is_none()
                    && head.text.chars().count() <= HEAD_CHARS_MAX
                    && is_meaningful(page, at, &self.templates)
                    && !atom::find_atoms(title).iter().any(is_dated),
                is_generic: titles::is_generic(title),
                is_of: sections::is_single(title).then(|| page.first_below(at)),
            }
        };
        self.heads = page.heads.iter().enumerate().map(facts).collect();
    }

    fn is_person(&self, entity: usize) -> bool {
        self.entities.all.get(entity).is_some_and(|it: &Entity| it.is_person)
    }

    fn person_of(&self, words: &WordList) -> Option<usize> {
        let mut named = self.entities.mentions(words).into_iter().map(|it| it.entity);
        named.find(|it| self.is_person(*it))
    }

    /// Returns the role of a statement; what a person is or does is no state of a project.
    fn role_of(
        &self,
        page: &ParsedLog,
        statement: &LogStatement,
        (own, words): (&str, &WordList),
        class: StatementClass,
    ) -> StatementRole {
        let role = role_of(page, statement, (own, words), class);
        let is_state = role.kind == StatementKind::State && class != StatementClass::Outcome;
        if is_state && self.describes_person(words) {
            return StatementRole { kind: StatementKind::Profile, factor: role.factor.max(1.3) };
        }
        // What others prefer is no order.
        if role.kind == StatementKind::Rule
            && prefers_something(page, statement)
            && self.is_of_named_person(statement)
        {
            return StatementRole { kind: StatementKind::Preference, factor: 1.4 };
        }
        let may_order = role.kind == StatementKind::State
            && statement.task.is_none()
            && statement.speaker != Some(Speaker::Assistant)
            && !titles::is_former(page, statement);
        if may_order && has_rule_sentence(statement, own) {
            return StatementRole { kind: StatementKind::Rule, factor: role.factor.max(1.3) };
        }
        role
    }

    /// Returns whether a statement is labelled with a person, or begins with a name and what that person does or says:
    /// `Mira wants the blinds closed`.
    fn is_of_named_person(&self, statement: &LogStatement) -> bool {
        let of_label = WordList::of(statement.label_text());
        if self.person_of(&of_label).is_some() {
            return true;
        }
        let said = statement.text[statement.label..].trim_start();
        let words = WordList::of(said);
        let acts =
            |it: &str| WISDOM.person_verbs.contains(&it) || WISDOM.profile_verbs.contains(&it);
        said.starts_with(char::is_uppercase)
            && words
                .get(0)
                .is_some_and(|it| !is_stop_word(it) && !AUTHORSHIP.owner_words.contains(&it))
            && words.get(1).is_some_and(acts)
    }

    /// Returns whether a text begins with a person and says what that person is or does: `Piet drives the van`.
    fn describes_person(&self, words: &WordList) -> bool {
        let names = |it: &EntityMention| it.word == 0 && self.is_person(it.entity);
        let word = |at: usize| words.get(at).unwrap_or_default();
        let (verb, two) = (word(1), format!("{} {}", word(1), word(2)));
        WISDOM.profile_verbs.iter().any(|it| *it == verb || *it == two)
            && self.entities.mentions(words).iter().any(names)
            && !is_passing(words)
            && !has_date(words)
    }

    /// Returns the class of a statement; a problem that was mended is an outcome.
    fn class_of(&self, page: &ParsedLog, index: usize, own: &str) -> StatementClass {
        match sections::class_of(page, &page.statements[index], own) {
            StatementClass::Open if self.cured.contains(&index) => StatementClass::Outcome,
            class => class,
        }
    }

    /// Returns what a statement is about: the entity in the titles above it, or the one in its words that the logs
    /// name most.
    fn subject_of(
        &self,
        page: &ParsedLog,
        statement: &LogStatement,
        words: &WordList,
    ) -> Option<Subject> {
        let own = self.entities.mentions(words);
        let opens = |entity| own.iter().any(|it| it.entity == entity && it.word <= 1);
        let subject = |entity| Subject { entity, opens: opens(entity) };
        let things = || own.iter().filter(|it| !self.is_person(it.entity));
        let is_platform = |it: usize| self.entities.all[it].is_platform;
        if let Some(first) = things().find(|it| it.word <= 1 && !is_platform(it.entity)) {
            return Some(subject(first.entity));
        }
        let above = std::iter::successors(statement.heading, |&it| page.heads[it].parent);
        let mut titles = statement.lead.into_iter().chain(above);
        let named = titles.find_map(|it| self.heads[it].named);
        let all = named.into_iter().chain(things().map(|it| it.entity));
        let first = named.filter(|it| !self.entities.all[*it].is_platform);
        // At last, the project in which a session was.
        let of_session = || {
            let lead = bare_words::session_lead(&statement.text)?;
            let named = self.entities.mentions(&WordList::of(lead)).into_iter();
            self.main_one(named.map(|it| it.entity).filter(|it| !self.is_person(*it)))
        };
        first.or_else(|| self.main_one(all)).or_else(of_session).map(subject)
    }

    /// Returns the entity that the logs name most, a platform only if there is no other.
    fn main_one(&self, entities: impl Iterator<Item = usize>) -> Option<usize> {
        entities.min_by_key(|it| (self.entities.all[*it].is_platform, *it))
    }
    /// Returns the words of a statement that is somebody's own, no copy, and no part of the statement above it.
    fn own_text<'s>(&self, page: &ParsedLog, statement: &'s LogStatement) -> Option<OwnText<'s>> {
        let parent = sections::parent_of_reason(page, statement);
        let with_parent = parent.and_then(|it| reason_of(page, it));
        let may_say_something = statement.is_own_words()
            && !statement.introduces
            && self.copied.of(hash_bytes(statement.text.as_bytes())) < COPIED_DAYS_MIN
            && !with_parent.is_some_and(|it| std::ptr::eq(it, statement));
        may_say_something.then(|| OwnText::of(statement)).flatten()
    }

    fn add(&mut self, page_at: usize, page: &ParsedLog, index: usize) {
        let statement = &page.statements[index];
        let Some(own_text) = self.own_text(page, statement) else { return };
        let OwnText { own, shown, end, keeps_label, is_labelled } = own_text;
        let words = WordList::of(own);
        let mut own_terms = self.extractor.extract(&words);
        let mut terms = own_terms.clone();
        let mut lines: Vec<u32> = statement.lines_of(0, end).chain(statement.header).collect();
        let class = self.class_of(page, index, own);
        let role = self.role_of(page, statement, (own, &words), class);
        let day = page.stem.date();
        if !self.reads(role.kind, day) {
            return;
        }
        // No heading says what `Number 4 must stay dry` is about; a longer text says it itself.
        if is_about_counted_things(own) && terms.stems.len() < CLEAR_STEMS {
            return self.add_fragment(page, statement, role.kind);
        }
        let (section, (head, above)) = (section_of(role.kind), self.heads_of(page, index));
        let (mut text, mut added_title) = (shown.to_owned(), None);
        let is_clear = terms.stems.len() >= CLEAR_STEMS && !refers_back(own) && !is_labelled;
        // `Options` are those of something.
        let is_alone = |it: &usize| above.is_none() && self.heads[*it].is_generic;
        if let Some(head) = head.filter(|it| !is_clear && !is_alone(it)) {
            let bare = bare_title(&page.heads[head].text);
            let mut title = Cow::Borrowed(sections::without_kind(bare));
            if let Some(above) = above {
                title = format!("{}: {title}", bare_title(&page.heads[above].text)).into();
                lines.extend(&page.heads[above].lines);
            }
            let of_head = self.extractor.extract(&WordList::of(&title));
            if !of_head.stems.is_subset(&terms.stems) {
                text = format!("{title}: {shown}");
                let length = text.len() - shown.len();
                added_title = Some(StatementTitle { page: page_at, head, length });
                lines.extend(&page.heads[head].lines);
                terms = self.extractor.extract(&WordList::of(&text));
            }
        } else if refers_back(own) {
            return self.add_fragment(page, statement, role.kind);
        }
        let plan = PlanChange::read(role.kind, (own, &words), day, &mut self.extractor);
        // `Launch moved to 8 December` and `the printer is at 10.0.0.7, port 9100` say enough, `depth 4.2 m` does not.
        let values =
            if plan.replacement.is_some() || !is_measurement(own) { terms.values.len() } else { 0 };
        let is_short = terms.stems.len() + values < stems_min(statement, &words, role.kind);
        if is_short && added_title.is_some() {
            return self.add_fragment(page, statement, role.kind);
        }
        let (text, of_reason) = with_reason(page, index, text);
        let has_value = keeps_label && of_reason.is_empty();
        lines.extend(&of_reason);
        let own_lines = statement.lines_of(0, end).chain(of_reason).collect();
        let cited = cite(page, lines).zip(cite(page, own_lines));
        let Some((citation, own_citation)) = cited else { return };
        let subject = self.subject_of(page, statement, &words);
        let worth = own_worth(page, statement, (own, &words), &role, class);
        // That a task is done ends others, and is nothing to read at the start of a session.
        let is_done_task = statement.task == Some(true) && !statement.keep;
        let worth = if is_short || is_done_task { f64::NEG_INFINITY } else { worth };
        // `Mona: …` is anything by or about Mona.
        let names_person = self.person_of(&WordList::of(statement.label_text())).is_some();
        let changed =
            ChangedThings::find(role.kind, own, &words, &self.entities, &mut self.extractor);
        // `Atlas is back up` is no bullet, but ends others.
        if is_short && changed.change.is_none() && !plan.reports_deed() {
            return self.add_fragment(page, statement, role.kind);
        }
        if is_short {
            (terms, own_terms) = (StatementTerms::default(), StatementTerms::default());
        }
        // What is no bullet replaces none. `Garden: never water at noon` and `Garden: wear gloves` are two rules.
        let is_value = !names_person && !is_short && !is_guidance(role.kind);
        let key = if is_value { key_of(page, statement, head) } else { None };
        // A value holds until there is a newer one.
        let is_of_moment =
            matches!(role.kind, StatementKind::State | StatementKind::Open) && key.is_none();
        self.found.push(DigestStatement {
            kind: role.kind,
            reader: StatementReader::Rules,
            person: self.person_of(&words),
            citation,
            own_citation,
            day,
            order: self.found.len(),
            names: names_in(own),
            subject,
            due: due_day(section, own, (day, statement.keep)),
            holds_until: is_of_moment.then(|| last_news_day(own, &words, day)).flatten(),
            keys: key.into_iter().collect(),
            value_length: has_value.then(|| end.checked_sub(statement.label)).flatten(),
            is_done: class == StatementClass::Outcome || section == WisdomSection::Stopped,
            open_until: open_until(statement, day),
            is_boundary: role.kind == StatementKind::Rule && sets_boundary(own),
            news_worth: news_worth(role.kind, &words),
            changed,
            plan,
            ended_by: None,
            terms,
            own_terms,
            worth,
            recurrence: 1.0,
            heading: statement.heading.map(|it| page.heads[it].key),
            title: added_title,
            text,
        });
    }

    /// Adds a statement that a model read.
    fn add_of_model(&mut self, statement: &ModelStatement) {
        let (kind, day) = (statement.kind, statement.day());
        if day < self.states_from && !kind.is_lasting() {
            return;
        }
        let project = (kind == StatementKind::State && !statement.topic.is_empty())
            .then(|| self.entities.of_topic(&statement.topic))
            .filter(|it| !self.entities.all[*it].is_platform);
        let person = self.person_of(&WordList::of(&statement.text));
        self.found.push(statement.to_digest((project, person), &mut self.extractor));
    }

    fn add_fragment(&mut self, page: &ParsedLog, statement: &LogStatement, kind: StatementKind) {
        let Some(&(_, line)) = statement.lines.first() else { return };
        let text = statement.text.clone();
        self.fragments.push(Fragment { kind, address: page.address(line), text });
    }

    /// Returns whether statements of a kind are read from the page of a day.
    fn reads(&self, kind: StatementKind, day: NaiveDate) -> bool {
        // What others ask of their agents is no rule for this one.
        let is_foreign_rule = self.collects_posts && is_guidance(kind);
        !is_foreign_rule && (day >= self.states_from || kind.is_lasting())
    }

    /// Returns what a statement is about: its lead-in or parent item, else a heading that says something; and what
    /// that one is about if it is generic.
    fn heads_of(&self, page: &ParsedLog, index: usize) -> (Option<usize>, Option<usize>) {
        let statement = &page.statements[index];
        let above = std::iter::successors(statement.heading, |&it| page.heads[it].parent);
        let is_about = |it: &usize| {
            let head = &self.heads[*it];
            head.fits && head.is_of.is_none_or(|it| it == index)
        };
        let mut heads = statement.lead.into_iter().chain(above).filter(is_about);
        let nearest = heads.next();
        let is_generic = |it: &usize| self.heads[*it].is_generic;
        let above = nearest.filter(is_generic).and_then(|_| heads.find(|it| !is_generic(it)));
        (nearest, above)
    }
}

/// Returns whether the label of a statement only says what kind of statement it is, or when it was written:
/// `Lesson: …`, `07:20: …`. The section and the date say so, too. `Rule from Ines: …` also says whose it is.
fn says_label_alone(statement: &LogStatement) -> bool {
    let label = statement.label_text();
    let lowercase = label.to_lowercase();
    if CUES.name_prepositions.iter().any(|it| lowercase.contains(it)) {
        return false;
    }
    let is_time =
        || !label.contains(char::is_alphabetic) && label.contains(|c: char| c.is_ascii_digit());
    let is_kind = |it: BlockRole| !matches!(it, BlockRole::Task | BlockRole::Reason);
    let role = || role_of_label(&sections::normalized_label(label));
    !label.is_empty() && (is_time() || role().is_some_and(is_kind))
}

/// Returns an order without the word that joins it to the one before: `And from now on …`.
fn without_joining_word(text: &str) -> &str {
    let Some((first, rest)) = text.split_once(' ') else { return text };
    let first = first.trim_end_matches(',').to_lowercase();
    let is_order = CUES.polite_words.contains(&&first[..])
        && WordList::of(rest).opens_with(cue_phrases::FROM_NOW_ON);
    if is_order { rest.trim_start() } else { text }
}

/// Returns the first reason below a statement, `Why: …`, if a bullet has room for both.
fn reason_of(page: &ParsedLog, index: usize) -> Option<&LogStatement> {
    let below =
        |it: &&LogStatement| it.lead.is_some_and(|it| page.heads[it].statement == Some(index));
    let mut statements = page.statements[index + 1..].iter().take_while(below);
    let reason = statements.find(|it| sections::is_reason(it))?;
    let chars = page.statements[index].text.chars().count() + reason.text.chars().count();
    (chars < TEXT_CHARS_MAX).then_some(reason)
}

/// Returns the text of a statement with its reason, and the lines of that.
fn with_reason(page: &ParsedLog, index: usize, text: String) -> (String, Vec<u32>) {
    let Some(reason) = reason_of(page, index) else { return (text, Vec::new()) };
    let mark = if text.ends_with(['.', '!', '。']) { "" } else { "." };
    let lines = reason.lines_of(0, reason.text.len()).collect();
    (format!("{text}{mark} {}", reason.text.trim()), lines)
}

/// Returns a citation of lines of a page; `None` for no lines.
fn cite(page: &ParsedLog, lines: Vec<u32>) -> Option<Citation> {
    let addresses: Vec<Address> = lines.into_iter().map(|it| page.address(it)).collect();
    Citation::from_addresses(&addresses)
}

/// Returns a heading without its number, signs, and what is in brackets after it: `2. ✅ Bob (02:10 ET)`.
fn bare_title(mut title: &str) -> &str {
    let letter = loop {
        let letter = title.find(char::is_alphabetic).unwrap_or(0);
        // `(10:30 ET) — Pump house` is about the pump house, `(Last three hours)` about these.
        let opened = title[..letter].rfind(['(', '（']);
        let Some((open, close)) = opened.zip(title[letter..].find([')', '）'])) else {
            break letter;
        };
        let rest = title[letter + close..].trim_start_matches([')', '）']);
        let inside = title[open..letter + close].trim_start_matches(['(', '（']);
        title = if rest.contains(char::is_alphabetic) { rest } else { inside };
    };
    // `3小时`, `4K` and `24-hour watch` begin with their number.
    let is_digit = |c: char| c.is_ascii_digit();
    let numbered = title[..letter].strip_suffix('-').filter(|it| it.ends_with(is_digit));
    let numbered = numbered.map(|it| it.trim_end_matches(is_digit));
    let numbered = numbered.filter(|it| it.is_empty() || it.ends_with(' '));
    let number = numbered.unwrap_or(title[..letter].trim_end_matches(is_digit)).len();
    let quoted = title[..number].rfind(['`', '"', '[']).unwrap_or(number);
    let title = title[quoted..].trim_end_matches([':', '：', '.']);
    let end = title.find([' ', '（']).and_then(|_| title.find(['(', '（'])).filter(|it| *it > 2);
    title[..end.unwrap_or(title.len())].trim()
}

/// Returns where the words of a bullet end: with the text, or with the last sentence that fits.
fn end_of_text(text: &str) -> Option<usize> {
    if text.chars().count() <= TEXT_CHARS_MAX {
        return Some(text.len());
    }
    let ends = sentence_ranges(text).into_iter().map(|it| it.1);
    ends.take_while(|&it| text[..it].chars().count() <= TEXT_CHARS_MAX).last()
}

/// Counts the days of each long text.
fn copied_texts(pages: &[ParsedLog]) -> DayCounts {
    let mut days = DayCounts::default();
    for page in pages {
        let is_long =
            |it: &&LogStatement| it.text.split_whitespace().nth(COPIED_WORDS_MIN - 1).is_some();
        for statement in page.statements.iter().filter(is_long) {
            days.add(hash_bytes(statement.text.as_bytes()), page.stem.date());
        }
    }
    days
}

/// Returns the last day on which a text of a day is news, if it only speaks of that day or week: after a few days what
/// was to come `tomorrow` came or not. What is so `since today` lasts.
fn last_news_day(text: &str, words: &WordList, day: NaiveDate) -> Option<NaiveDate> {
    let says = |table| {
        let (at, _) = words.find(table)?;
        let before = at.checked_sub(1).and_then(|it| words.get(it));
        // `Bea started today` and `today we learned of the allergy` last.
        let is_today = words.get(at).is_some_and(|it| WISDOM.words_for_today.contains(&it));
        if is_today && words.iter().any(|it| WISDOM.lasting_events.contains(&it)) {
            return None;
        }
        before.is_none_or(|it| !WISDOM.since_words.contains(&it)).then_some(())
    };
    let days = says(cue_phrases::DAY_BOUND).map(|()| DAY_BOUND_DAYS);
    let days = days.or_else(|| says(cue_phrases::WEEK_BOUND).map(|()| WEEK_BOUND_DAYS))?;
    last_day_in(text).is_none().then(|| day.checked_add_days(days)).flatten()
}

/// Returns the stems of the words right behind those that negate, but for `no`, which counts things.
fn denied_stems(words: &WordList) -> Vec<u64> {
    let all: Vec<&str> = words.iter().collect();
    let denies = |it: &str| SEARCH.negations.contains(&it) && it != "no" && it != "without";
    let pairs = all.windows(2).filter(|it| denies(it[0]));
    pairs.map(|it| hash_bytes(english_stem(it[1]).as_bytes())).collect()
}

/// Returns how many content words a statement of a kind needs: `Mila has asthma` and `Decided: we keep the car` say all.
fn stems_min(statement: &LogStatement, words: &WordList, kind: StatementKind) -> usize {
    let is_order = matches!(kind, StatementKind::Rule | StatementKind::Decision);
    let is_lasting = is_order || is_guidance(kind);
    match is_lasting && statement.speaker != Some(Speaker::Assistant) {
        true if is_order && words.len() >= ORDER_WORDS_MIN => 1,
        true => LASTING_STEMS_MIN,
        false => STEMS_MIN,
    }
}

/// Returns the day up to which a task in a log that a person wrote is open if nobody ticks it off.
fn open_until(statement: &LogStatement, day: NaiveDate) -> Option<NaiveDate> {
    const TASK_DAYS: Days = Days::new(30);
    let is_persons_task = statement.task == Some(false) && statement.origin == TextOrigin::Human;
    is_persons_task.then(|| day.checked_add_days(TASK_DAYS)).flatten()
}

/// Returns the day on which an open item of a day is due: `pay the trip by 15 December`.
pub(super) fn due_day(
    section: WisdomSection,
    own: &str,
    (day, is_kept): (NaiveDate, bool),
) -> Option<NaiveDate> {
    if is_kept {
        return Some(NaiveDate::MAX);
    }
    if section != WisdomSection::Open {
        return None;
    }
    finished_tasks::due_day(own, day)
}

/// Returns the last day that a text names.
fn last_day_in(text: &str) -> Option<NaiveDate> {
    let dates = atom::find_atoms(text).into_iter().filter(|it| it.kind == AtomKind::Date);
    dates.filter_map(|it| it.norm(text).parse().ok()).max()
}

/// Returns the stems of the names in a text.
pub(super) fn names_in(text: &str) -> Vec<u64> {
    let is_name = |it: &atom::Atom| matches!(it.kind, AtomKind::Name | AtomKind::Identifier);
    let mut names: Vec<u64> = atom::find_atoms(text)
        .iter()
        .filter(|it| is_name(it))
        .map(|it| hash_bytes(english_stem(&it.text(text).to_lowercase()).as_bytes()))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns whether a value is the mark in place of a secret, which says nothing: `API key: [secret:token#3fa9]`.
fn is_secret_mark(value: &str) -> bool {
    let value = value.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '[' | ']'));
    value.starts_with("[secret:") && value.find(']') == Some(value.len() - 1)
}

/// Returns whether statements of a kind say what to do, or how people are.
fn is_guidance(kind: StatementKind) -> bool {
    matches!(
        kind,
        StatementKind::Rule
            | StatementKind::Lesson
            | StatementKind::Preference
            | StatementKind::Profile
    )
}

/// Returns the key of a labelled statement: its label and its heading.
fn key_of(page: &ParsedLog, statement: &LogStatement, head: Option<usize>) -> Option<u64> {
    const LABEL_WORDS_MAX: usize = 5;
    if bare_words::session_lead(&statement.text).is_some() {
        return None;
    }
    let label = sections::normalized_label(statement.label_text());
    let words = label.split(' ').filter(|it| !it.is_empty()).count();
    if !(1..=LABEL_WORDS_MAX).contains(&words) {
        return None;
    }
    // One problem does not end another one, nor one rule or decision the next one.
    let says_kind = match role_of_label(&label) {
        Some(BlockRole::Task | BlockRole::Reason) | None => {
            label.split(' ').any(|it| WISDOM.guidance_nouns.contains(&it))
        }
        Some(_) => true,
    };
    if says_kind
        || WISDOM.problem_labels.contains(&&*label)
        || WISDOM.cure_labels.contains(&&*label)
    {
        return None;
    }
    // `Status` alone is the value of anything, and `Garden` what anything is about.
    let under = head.map(|it| sections::normalized_label(&page.heads[it].text));
    if words == 1 && under.is_none() {
        return None;
    }
    let under = under.unwrap_or_default();
    Some(hash_bytes(format!("{under}\n{label}").as_bytes()))
}
