//! The statements of the newest logs, each with its section, worth and terms.

use std::borrow::Cow;

use chrono::{NaiveDate, TimeDelta};

use super::sections::{StatementRole, decides_label, is_passing, role_of, section_of};
use super::{
    KeptOut,
    entities::{Entities, Entity},
    siblings::join_siblings,
    titles,
};
use crate::{
    engine::extractive::{
        as_f64,
        candidates::headings::{is_meaningful, template_heads},
        cue_phrases,
        memories::roles::{BlockRole, role_of_label},
        parsed_log::{self, LogStatement, ParsedLog},
        routine_reports::is_routine_report,
        sections::{self, StatementClass},
        statements::{
            terms::{StatementTerms, TermExtractor},
            word_list::WordList,
        },
        worth::worth_factor,
    },
    memory::{
        address::{Address, Citation},
        atom::{self, AtomKind},
        authorship::Speaker,
        statement::StatementKind,
        wisdom::WisdomSection,
    },
    privacy::SanitizedLog,
    text::{
        hash::{HashedMap, hash_bytes},
        lexicon::SECTIONS,
        pieces::refers_back,
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

/// A statement with this many content words is understandable without its heading.
const CLEAR_STEMS: usize = 6;

/// As many words that recur unchanged on as many days were copied by a template or a program.
const COPIED_WORDS_MIN: usize = 8;

const COPIED_DAYS_MIN: usize = 3;

/// What a statement is worth whose words the logs never come back to.
const BASE_WORTH: f64 = 0.3;

/// Statements that begin alike on as many days are a series.
const SERIES_DAYS_MIN: usize = 4;

const SERIES_FACTOR: f64 = 0.4;

/// What the last one of a series is worth.
const SERIES_LAST_FACTOR: f64 = 0.7;

/// What a mere list of words is worth.
const WORD_LIST_FACTOR: f64 = 0.3;

/// What is worth a statement that is mostly values of a moment.
const MEASUREMENT_FACTOR: f64 = 0.4;

/// The factor of a report with several amounts or marks.
const TELEMETRY_FACTOR: f64 = 0.4;

/// The factor of a change of code that has a number.
const CHANGE_FACTOR: f64 = 0.6;

/// What a state is worth that is about nothing that the logs come back to, and one that begins with its subject.
const NO_SUBJECT_FACTOR: f64 = 0.7;

const OPENING_SUBJECT_FACTOR: f64 = 1.2;

/// What a line is worth that somebody marked to be kept.
const KEEP_FACTOR: f64 = 3.0;

/// What is worth a statement about the moment, and one about a moment that is over.
const PASSING_FACTOR: f64 = 0.5;

const PAST_FACTOR: f64 = 0.2;

const PASSING_DAYS: TimeDelta = TimeDelta::days(3);

/// What a state is worth when it is old.
const OLD_STATE_FACTOR: f64 = 0.75;

/// A state loses most of its freshness in as many days.
const FRESH_DAYS: f64 = 45.0;

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

/// A statement of the logs that may become a bullet.
pub(in crate::engine::extractive) struct DigestStatement {
    pub(in crate::engine::extractive) kind: StatementKind,
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
    pub(in crate::engine::extractive) worth: f64,
    /// Whether it is about the moment at which it was written.
    pub(super) is_passing: bool,
    /// The last day that an open item names.
    pub(super) due: Option<NaiveDate>,
    /// The hash of its first words.
    opening: Option<u64>,
    /// The hash of the heading above it.
    heading: Option<u64>,
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
    pub(in crate::engine::extractive) entities: Entities,
}

/// Returns the statements of logs that are not external.
pub(super) fn collect_statements(logs: &[SanitizedLog], kept_out: KeptOut<'_>) -> LogStatements {
    let pages: Vec<ParsedLog> = logs.iter().map(parsed_log::parse).collect();
    collect_from_pages(&pages, kept_out)
}

/// Returns the statements of logs that are parsed already.
pub(in crate::engine::extractive) fn collect_from_pages(
    pages: &[ParsedLog],
    kept_out: KeptOut<'_>,
) -> LogStatements {
    let templates = template_heads(pages);
    let copied = copied_texts(pages);
    let mut collector = StatementCollector {
        templates,
        copied,
        entities: Entities::of(pages),
        named_by_heads: Vec::new(),
        extractor: TermExtractor::default(),
        found: Vec::new(),
    };
    for (at, page) in pages.iter().enumerate() {
        collector.read_heads(page);
        for statement in &page.statements {
            collector.add(at, page, statement);
        }
    }
    let StatementCollector { found, extractor, .. } = &mut collector;
    *found = join_siblings(std::mem::take(found), extractor, kept_out);
    collector.rate();
    LogStatements { statements: collector.found, entities: collector.entities }
}

struct StatementCollector {
    templates: HashedMap<u32>,
    /// The days of each long text.
    copied: DayCounts,
    entities: Entities,
    /// The entity that each head of the page names.
    named_by_heads: Vec<Option<usize>>,
    extractor: TermExtractor,
    found: Vec<DigestStatement>,
}

impl StatementCollector {
    /// Finds the entities in the heads of a page.
    fn read_heads(&mut self, page: &ParsedLog) {
        let heads = page.heads.iter();
        self.named_by_heads = heads
            .map(|head| {
                let named = self.entities.mentions(&WordList::of(bare_title(&head.text)));
                let things = named.iter().map(|it| it.entity).filter(|it| !self.is_person(*it));
                self.main_one(things)
            })
            .collect();
    }

    fn is_person(&self, entity: usize) -> bool {
        self.entities.all.get(entity).is_some_and(|it: &Entity| it.is_person)
    }

    fn person_of(&self, words: &WordList) -> Option<usize> {
        let mut named = self.entities.mentions(words).into_iter().map(|it| it.entity);
        named.find(|it| self.is_person(*it))
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
        let named = titles.find_map(|it| self.named_by_heads[it]);
        let all = named.into_iter().chain(things().map(|it| it.entity));
        let first = named.filter(|it| !self.entities.all[*it].is_platform);
        first.or_else(|| self.main_one(all)).map(subject)
    }

    /// Returns the entity that the logs name most, a platform only if there is no other.
    fn main_one(&self, entities: impl Iterator<Item = usize>) -> Option<usize> {
        entities.min_by_key(|it| (self.entities.all[*it].is_platform, *it))
    }
    fn add(&mut self, page_at: usize, page: &ParsedLog, statement: &LogStatement) {
        if !statement.is_own_words()
            || statement.introduces
            || self.copied.of(hash_bytes(statement.text.as_bytes())) >= COPIED_DAYS_MIN
        {
            return;
        }
        let Some(end) = end_of_text(&statement.text) else { return };
        let own = statement.text[..end].trim();
        let spoken =
            says_label_alone(statement).then(|| statement.text[statement.label..end].trim());
        let own = spoken.filter(|it| !refers_back(it)).unwrap_or(own);
        // Without what was decided on a decision says little.
        let keeps_label = own.len() == statement.text[..end].trim().len();
        let is_labelled = statement.label > 0 && (keeps_label || decides_label(statement));
        if own.ends_with([':', '：', '?', '？', ',']) || !own.contains(char::is_alphabetic) {
            return;
        }
        let words = WordList::of(own);
        let (opening, is_passing) = (opening_of(&words), is_passing(&words));
        let own_terms = self.extractor.extract(&words);
        let mut terms = own_terms.clone();
        let mut lines: Vec<u32> = statement.lines_of(0, end).chain(statement.header).collect();
        let class = sections::class_of(page, statement, own);
        let role = role_of(page, statement, own, class);
        let section = section_of(role.kind);
        let (mut text, mut added_title) = (own.to_owned(), None);
        let (head, above) = self.heads_of(page, statement);
        let is_clear = terms.stems.len() >= CLEAR_STEMS && !refers_back(own) && !is_labelled;
        // `Options` are those of something.
        let is_alone =
            |it: &usize| above.is_none() && titles::is_generic(bare_title(&page.heads[*it].text));
        if let Some(head) = head.filter(|it| !is_clear && !is_alone(it)) {
            let mut title = Cow::Borrowed(bare_title(&page.heads[head].text));
            if let Some(above) = above {
                title = format!("{}: {title}", bare_title(&page.heads[above].text)).into();
                lines.extend(&page.heads[above].lines);
            }
            let of_head = self.extractor.extract(&WordList::of(&title));
            if !of_head.stems.is_subset(&terms.stems) {
                text = format!("{title}: {own}");
                let length = text.len() - own.len();
                added_title = Some(StatementTitle { page: page_at, head, length });
                lines.extend(&page.heads[head].lines);
                terms = self.extractor.extract(&WordList::of(&text));
            }
        } else if refers_back(own) {
            return;
        }
        if terms.stems.len() < STEMS_MIN {
            return;
        }
        let addresses: Vec<Address> = lines.into_iter().map(|it| page.address(it)).collect();
        let Some(citation) = Citation::from_addresses(&addresses) else { return };
        let own_lines: Vec<Address> =
            statement.lines_of(0, end).map(|it| page.address(it)).collect();
        let Some(own_citation) = Citation::from_addresses(&own_lines) else { return };
        let day = page.stem.date();
        let subject = self.subject_of(page, statement, &words);
        let is_routine = is_routine_report(&statement.text);
        let worth = role.worth(statement)
            * worth_factor(statement, own, is_routine, class, day)
            * self.factor_of(section, own, subject)
            * if statement.keep { KEEP_FACTOR } else { 1.0 };
        let order = self.found.len();
        self.found.push(DigestStatement {
            kind: role.kind,
            person: self.person_of(&words),
            citation,
            own_citation,
            day,
            order,
            names: names_in(own),
            subject,
            due: (section == WisdomSection::Open && words.has(cue_phrases::DEADLINE))
                .then(|| last_day_in(own))
                .flatten(),
            keys: key_of(page, statement, head).into_iter().collect(),
            value_length: keeps_label.then(|| end.checked_sub(statement.label)).flatten(),
            is_done: class == StatementClass::Outcome || section == WisdomSection::Stopped,
            terms,
            own_terms,
            worth,
            is_passing,
            opening,
            heading: statement.heading.map(|it| page.heads[it].key),
            title: added_title,
            text,
        });
    }

    /// Returns how much more or less than others a statement with these words is worth.
    fn factor_of(&self, section: WisdomSection, own: &str, subject: Option<Subject>) -> f64 {
        let is_state = section.is_state();
        let about = match subject {
            _ if section != WisdomSection::Projects => 1.0,
            Some(it) if self.entities.all[it.entity].is_platform => NO_SUBJECT_FACTOR,
            None => NO_SUBJECT_FACTOR,
            Some(it) if it.opens => OPENING_SUBJECT_FACTOR,
            Some(_) => 1.0,
        };
        [
            (is_word_list(own), WORD_LIST_FACTOR),
            (is_state && is_measurement(own), MEASUREMENT_FACTOR),
            (is_state && is_telemetry(own), TELEMETRY_FACTOR),
            (is_state && names_change(own), CHANGE_FACTOR),
        ]
        .into_iter()
        .filter(|it| it.0)
        .fold(about, |all, it| all * it.1)
    }

    /// Returns what a statement is about: its lead-in or parent item, else a heading that says something; and what
    /// that one is about if it is generic.
    fn heads_of(
        &self,
        page: &ParsedLog,
        statement: &LogStatement,
    ) -> (Option<usize>, Option<usize>) {
        let fits = |head: &usize| {
            let title = &page.heads[*head].text;
            let is_dated = |it: &atom::Atom| matches!(it.kind, AtomKind::Time | AtomKind::Date);
            title.chars().count() <= HEAD_CHARS_MAX
                && is_meaningful(page, *head, &self.templates)
                && !atom::find_atoms(bare_title(title)).iter().any(is_dated)
        };
        let above = std::iter::successors(statement.heading, |&it| page.heads[it].parent);
        let mut heads = statement.lead.into_iter().chain(above).filter(fits);
        let nearest = heads.next();
        let is_generic = |it: &usize| titles::is_generic(bare_title(&page.heads[*it].text));
        let above = nearest.filter(is_generic).and_then(|_| heads.find(|it| !is_generic(it)));
        (nearest, above)
    }

    /// Raises the worth of what names things that the logs come back to.
    fn rate(&mut self) {
        let Some(newest) = self.found.last().map(|it| it.day) else { return };
        let (mut stems, mut series) = (DayCounts::default(), DayCounts::default());
        let mut last_of_series = HashedMap::<usize>::default();
        for statement in &self.found {
            for &stem in statement.terms.stems.hashes() {
                stems.add(stem, statement.day);
            }
            for key in [statement.opening, statement.heading].into_iter().flatten() {
                series.add(key, statement.day);
                last_of_series.insert(key, statement.order);
            }
        }
        let all = self.found.chunk_by(|a, b| a.day == b.day).count();
        let most = as_f64(all).ln_1p();
        for statement in &mut self.found {
            let found = statement.terms.stems.hashes();
            let sum: f64 = found.iter().map(|it| as_f64(stems.of(*it)).ln_1p() / most).sum();
            statement.worth *= BASE_WORTH + sum / as_f64(found.len());
            if !statement.section().is_state() {
                continue;
            }
            // Reports of checks, prices and counts: the last value says how things are.
            let is_series = |key: u64| series.of(key) >= SERIES_DAYS_MIN;
            if let Some(opening) = statement.opening.filter(|it| is_series(*it)) {
                let is_last = last_of_series.get(&opening) == Some(&statement.order);
                statement.worth *= if is_last { SERIES_LAST_FACTOR } else { SERIES_FACTOR };
            }
            if statement.heading.is_some_and(is_series) {
                statement.worth *= SERIES_LAST_FACTOR;
            }
            let age = newest - statement.day;
            let is_past = statement.due.is_some_and(|it| it < newest);
            if statement.is_passing || is_past {
                let is_over = is_past || age > PASSING_DAYS;
                statement.worth *= if is_over { PAST_FACTOR } else { PASSING_FACTOR };
            }
            let days = u32::try_from(age.num_days()).unwrap_or(0);
            let is_fresh = (-f64::from(days) / FRESH_DAYS).exp();
            statement.worth *= OLD_STATE_FACTOR + (1.0 - OLD_STATE_FACTOR) * is_fresh;
        }
    }
}

/// Returns whether the label of a statement only says what kind of statement it is, or when it was written:
/// `Lesson: …`, `07:20: …`. The section and the date say so, too.
fn says_label_alone(statement: &LogStatement) -> bool {
    let label = statement.label_text();
    let is_time =
        || !label.contains(char::is_alphabetic) && label.contains(|c: char| c.is_ascii_digit());
    let is_kind = |it: BlockRole| !matches!(it, BlockRole::Task | BlockRole::Reason);
    let role = || role_of_label(&sections::normalized_label(label));
    !label.is_empty() && (is_time() || role().is_some_and(is_kind))
}

/// Returns whether a text is mostly about values of a moment: clock times, counts, sizes, prices.
pub(super) fn is_measurement(text: &str) -> bool {
    let words = || {
        let bare =
            text.split_whitespace().map(|it| it.trim_matches(|c: char| !c.is_alphanumeric()));
        bare.filter(|it| !it.is_empty())
    };
    let measured = words().filter(|it| it.starts_with(|c: char| c.is_ascii_digit())).count();
    let has_time = || atom::find_atoms(text).iter().any(|it| it.kind == AtomKind::Time);
    measured * 4 > words().count() || (measured > 0 && has_time())
}

/// Returns whether a text has several marks of a state or amounts: a report of a program.
pub(in crate::engine::extractive) fn is_telemetry(text: &str) -> bool {
    const MARKS_MIN: usize = 2;
    const AMOUNTS_MIN: usize = 3;
    let marks = &SECTIONS.state_marks;
    let is_mark = |c: char| {
        let mut all = marks.done.iter().chain(&*marks.open).chain(&*marks.caution);
        !c.is_ascii() && all.any(|it| it.starts_with(c))
    };
    let is_amount =
        |it: &atom::Atom| matches!(it.kind, AtomKind::Money | AtomKind::Percent | AtomKind::Time);
    text.chars().filter(|c| is_mark(*c)).count() >= MARKS_MIN
        || atom::find_atoms(text).iter().filter(|it| is_amount(it)).count() >= AMOUNTS_MIN
}

/// Returns whether a text is about a change of code that has a number: it is in the code now.
pub(super) fn names_change(text: &str) -> bool {
    let is_number = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '#');
        let digits = |it: &str| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit());
        let is_hash = (7..=40).contains(&word.len())
            && word.bytes().all(|b| b.is_ascii_hexdigit())
            && word.bytes().any(|b| b.is_ascii_digit())
            && word.bytes().any(|b| b.is_ascii_lowercase());
        is_hash || word.rsplit_once('#').is_some_and(|it| digits(it.1) && it.1.len() > 1)
    };
    text.split_whitespace().any(is_number)
}

/// Returns whether a text is a list of words, such as the tags of a page or the keys of a search.
fn is_word_list(text: &str) -> bool {
    const ITEMS_MIN: usize = 6;
    let items = || text.split([',', '，', '、']).map(str::trim);
    let short =
        items().filter(|it| it.split_whitespace().count() <= 2 && it.chars().count() <= 24).count();
    short >= ITEMS_MIN && short * 4 >= items().count() * 3
}

/// Returns the hash of the first words of a text; in a script without spaces each character is a word.
fn opening_of(words: &WordList) -> Option<u64> {
    let count = if words.is_unspaced() { 5 } else { 2 };
    let opening: Vec<&str> = words.iter().take(count).collect();
    (opening.len() == count).then(|| hash_bytes(opening.join(" ").as_bytes()))
}

/// Returns a heading without its number, signs, and what is in brackets after it: `2. ✅ Bob (02:10 ET)`.
fn bare_title(title: &str) -> &str {
    let is_mark = |c: char| !c.is_alphabetic();
    let start = title.find(|c: char| !is_mark(c)).unwrap_or(0);
    let quoted = title[..start].rfind(['`', '"', '[']).unwrap_or(start);
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

/// Returns the last day that a text names.
fn last_day_in(text: &str) -> Option<NaiveDate> {
    let dates = atom::find_atoms(text).into_iter().filter(|it| it.kind == AtomKind::Date);
    dates.filter_map(|it| it.norm(text).parse().ok()).max()
}

/// Returns the stems of the names in a text.
fn names_in(text: &str) -> Vec<u64> {
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

/// Returns the key of a labelled statement: its label and its heading.
fn key_of(page: &ParsedLog, statement: &LogStatement, head: Option<usize>) -> Option<u64> {
    const LABEL_WORDS_MAX: usize = 5;
    let label = sections::normalized_label(statement.label_text());
    let words = label.split(' ').filter(|it| !it.is_empty()).count();
    if !(1..=LABEL_WORDS_MAX).contains(&words) {
        return None;
    }
    // `Status` alone is the value of anything.
    let generic = words == 1 && sections::is_attribute(&label);
    let under = head.map(|it| sections::normalized_label(&page.heads[it].text));
    if generic && under.is_none() {
        return None;
    }
    let under = under.unwrap_or_default();
    Some(hash_bytes(format!("{under}\n{label}").as_bytes()))
}

impl StatementRole {
    /// Returns how much a statement of this role is worth, by who says it and how.
    fn worth(&self, statement: &LogStatement) -> f64 {
        let spoken = match statement.speaker {
            Some(Speaker::Assistant) => 0.5,
            Some(_) => 0.8,
            None => 1.0,
        };
        spoken * self.factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_moment_are_measurements() {
        for text in [
            "Depth 4.2 m, wind 11 kn, swell 0.8 m",
            "Time 18:16: check of the buoys complete",
            "sensors.log: 2.3 KB, 14 lines",
        ] {
            assert!(is_measurement(text), "{text}");
        }
        for text in [
            "The gauge of Brest is 40 cm too high since the storm",
            "Uploads stay under 40 MB, because the mirror refuses larger ones",
            "The pier house has a second key",
        ] {
            assert!(!is_measurement(text), "{text}");
        }
    }

    #[test]
    fn lists_of_words_are_found() {
        assert!(is_word_list("tide, gauge, pier, buoy, depth, wind"));
        assert!(!is_word_list("The tide table of Brest, which is late, names the gauge"));
    }
}
