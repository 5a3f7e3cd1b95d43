//! The statements that a model read out of logs: bullets are chosen from them, in its words, in place of those of the
//! lines that it read.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Days, NaiveDate};

use super::{
    sections::{section_of, sets_boundary},
    statements::{DigestStatement, PlanChange, StatementReader, Subject, due_day, names_in},
    stopped::ChangedThings,
};
use crate::{
    engine::extractive::statements::{terms::TermExtractor, word_list::WordList},
    memory::{
        address::{Citation, Stem},
        statement::StatementKind,
        wisdom::WisdomSection,
    },
};

/// What a model read.
#[derive(Clone, Debug, Default)]
pub struct ModelReading {
    /// The logs that it read as they are, whether or not it found anything.
    pub logs: BTreeSet<Stem>,
    /// What it found in these, and in others before.
    pub statements: Vec<ModelStatement>,
}

impl ModelReading {
    /// Returns the lines of its statements by log.
    pub(super) fn by_log(&self) -> BTreeMap<&Stem, Vec<&Citation>> {
        let mut lines = BTreeMap::<_, Vec<_>>::new();
        for citation in self.statements.iter().map(|it| &it.citation) {
            citation.files().for_each(|it| lines.entry(it.0).or_default().push(citation));
        }
        lines
    }
}

/// A statement of a memory that a model wrote.
#[derive(Clone, Debug)]
pub struct ModelStatement {
    /// What it says.
    pub kind: StatementKind,
    /// The name of the memory; empty if that is not about one thing.
    pub topic: String,
    /// Its words.
    pub text: String,
    /// Its lines.
    pub citation: Citation,
}

impl ModelStatement {
    /// Returns the day of its newest line.
    pub(super) fn day(&self) -> NaiveDate {
        self.citation.newest_date()
    }

    /// Returns it as a statement of the logs, with its topic before it where its words do not say what it is about;
    /// `project` is the entity of a topic that is no product of others.
    pub(super) fn to_digest(
        &self,
        (project, person): (Option<usize>, Option<usize>),
        extractor: &mut TermExtractor,
    ) -> DigestStatement {
        let words = WordList::of(&self.text);
        let own_terms = extractor.extract(&words);
        let of_topic = extractor.extract(&WordList::of(&self.topic));
        // `Installed at /opt/tideboard` does not say what was installed.
        let said = self.text.split_whitespace().filter(|it| !it.contains(['/', '`']));
        let said = extractor.extract(&WordList::of(&said.collect::<Vec<_>>().join(" ")));
        let is_named = of_topic.stems.is_subset(&said.stems);
        // The line of a project begins with its name.
        let text = if is_named || project.is_some() {
            self.text.clone()
        } else {
            format!("{}: {}", self.topic, self.text)
        };
        let section = section_of(self.kind);
        DigestStatement {
            kind: self.kind,
            reader: StatementReader::Model,
            citation: self.citation.clone(),
            own_citation: self.citation.clone(),
            day: self.day(),
            order: 0,
            terms: extractor.extract(&WordList::of(&format!("{}: {}", self.topic, self.text))),
            own_terms,
            names: names_in(&self.text),
            subject: project.map(|entity| Subject { entity, opens: false }),
            person,
            // Of two values with the same label the memory has the newer one.
            keys: Vec::new(),
            value_length: None,
            is_done: section == WisdomSection::Stopped,
            open_until: open_until(self.kind, self.day()),
            is_boundary: self.kind == StatementKind::Rule && sets_boundary(&self.text),
            news_worth: 0.0,
            changed: ChangedThings::default(),
            plan: PlanChange::read(self.kind, (&self.text, &words), self.day(), extractor),
            ended_by: None,
            worth: worth_of(self.kind),
            recurrence: 1.0,
            due: due_day(section, &self.text, (self.day(), false)),
            holds_until: None,
            heading: None,
            title: None,
            text,
        }
    }
}

/// Returns the day up to which an open item of a day is open: a model names only what remains beyond the day.
fn open_until(kind: StatementKind, day: NaiveDate) -> Option<NaiveDate> {
    const OPEN_DAYS: Days = Days::new(14);
    (kind == StatementKind::Open).then(|| day.checked_add_days(OPEN_DAYS)).flatten()
}

/// Returns what a statement of a kind is worth before its length and age count: a model picks only what should still be
/// known in other work, which is more than most lines are worth.
fn worth_of(kind: StatementKind) -> f64 {
    match kind {
        StatementKind::Preference | StatementKind::Profile => 1.0,
        StatementKind::Rule => 0.9,
        StatementKind::Lesson | StatementKind::Decision => 0.7,
        StatementKind::Open => 0.5,
        StatementKind::State | StatementKind::Environment | StatementKind::Retired => 0.4,
    }
}
