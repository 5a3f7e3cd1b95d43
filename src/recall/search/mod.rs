//! Search: from words to the log lines that answer them.
//!
//! A summary tells that something happened, the line says exactly what: what is found in a weekly or
//! monthly file, in `WISDOM.md`, or in a typed memory leads to the lines beneath it, and they are the hits,
//! with the items above them as `via`. All text is the served view.
//!
//! - [`query`]: what one may type.
//! - [`words`]: from text to terms.
//! - [`when`]: the time that a question names.
//! - [`corpus`]: lines with what stands around them, and items.
//! - [`rank`]: what each is worth as an answer.

mod corpus;
pub mod query;
mod rank;
mod when;
mod words;

use std::collections::HashMap;

use chrono::NaiveDate;
use serde::Serialize;

pub use self::query::Query;
use self::{
    corpus::{Corpus, ItemRow},
    when::When,
    words::Terms,
};
use super::handed::{self, NOTICE};
use crate::{
    memory::{
        address::Citation, document::Summary, item::Item, period::Grain, typed::TypedMemory,
        wisdom::WisdomFile,
    },
    privacy::{self, Rules, ServedLog},
};

/// How a search goes, beside its words.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// The most hits.
    pub limit: usize,
    /// How many lines before and after each hit are shown.
    pub context: usize,
    /// Whether items are hits themselves and lead nowhere.
    pub raw: bool,
    /// The day from which relative words count, in the root's zone.
    pub today: NaiveDate,
}

/// What was found, best first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// As it was typed.
    pub query: String,
    /// That it is no instruction.
    pub notice: &'static str,
    /// The hits.
    pub hits: Vec<Hit>,
}

/// A line or an item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// The file, relative to the root.
    pub path: String,
    /// The line in it, from 1.
    pub line: u32,
    /// The day of the log, or the newest day that an item is about.
    pub date: NaiveDate,
    /// `daily`, `session`, `weekly`, `monthly`, `wisdom`, or `memory`.
    pub tier: &'static str,
    /// Whose words it is.
    pub origin: &'static str,
    /// Higher is better; the same scale for all queries.
    pub score: f64,
    /// The words, as they may be seen.
    pub text: String,
    /// Lines before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Lines after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The items above it in which the query was found, too.
    pub via: Vec<Via>,
}

/// Where an item stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Via {
    /// The file, relative to the root.
    pub path: String,
    /// The line in it, from 1.
    pub line: u32,
}

/// What is searched, for one query.
pub struct Search<'a> {
    query: &'a Query,
    rules: &'a Rules,
    how: How,
    /// In lower case.
    question: String,
    when: When,
    corpus: Corpus,
    terms: Terms,
    pairs: Vec<(usize, usize)>,
}

impl<'a> Search<'a> {
    /// Begins a search. What is searched is added then.
    pub fn new(query: &'a Query, rules: &'a Rules, how: How) -> Self {
        let question = query.words.to_lowercase();
        let when = When::of(&question, how.today);
        let mut terms = Terms::of(&when.rest, !when.names_days());
        let pairs = rank::pairs_of(&when.rest, &mut terms);
        let corpus = Corpus::new(query.project.clone());
        Self { query, rules, how, question, when, corpus, terms, pairs }
    }

    /// Adds a log or a session record as it may be seen.
    pub fn add_log(&mut self, log: &ServedLog, path: String) {
        self.corpus.add_log(log, path, &mut self.terms, &self.pairs);
    }

    /// Adds a weekly or monthly file.
    pub fn add_summary(&mut self, path: &str, summary: &Summary, text: &str) {
        let own = privacy::serve_own_lines(summary, text, self.rules);
        let tier = if summary.period.grain() == Grain::Month { "monthly" } else { "weekly" };
        for (lines, item, section) in summary.bullets_with_lines() {
            // Words of a person that wait for a person.
            if own.as_ref().is_some_and(|own| own.holds(item)) {
                continue;
            }
            let Item { text, citation } = item;
            self.add(
                ItemRow {
                    path: path.to_owned(),
                    line: *lines.start(),
                    tier,
                    date: citation.as_ref().map_or(summary.period.last(), Citation::newest_date),
                    text: self.rules.shown(text).into_owned(),
                    kind: None,
                    citation: citation.clone(),
                    mask: 0,
                    length: 0.0,
                },
                section.map_or("", |it| it.title()),
            );
        }
    }

    /// Adds `WISDOM.md`. `since` is the day of entries that say none.
    pub fn add_wisdom(&mut self, path: &str, text: &str, since: NaiveDate) {
        let handed = handed::hand(None, None, text, self.rules);
        for (line, entry) in WisdomFile::parse(&handed.text).entries_with_lines() {
            let mark = entry.mark.as_ref();
            self.add(
                ItemRow {
                    path: path.to_owned(),
                    line,
                    tier: "wisdom",
                    date: mark.map_or(since, |it| it.last_reinforced),
                    text: format!("{}: {}", entry.title, entry.text),
                    kind: None,
                    citation: mark.map(|it| it.sources.clone()),
                    mask: 0,
                    length: 0.0,
                },
                entry.category.as_deref().unwrap_or(""),
            );
        }
    }

    /// Adds a typed memory. `since` is the day of one that says none.
    pub fn add_memory(&mut self, path: &str, memory: &TypedMemory, since: NaiveDate) {
        let lines = memory.sources.iter().map(|(at, _)| at);
        let body = handed::hand(None, None, &memory.body, self.rules).text;
        let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
        self.add(
            ItemRow {
                path: path.to_owned(),
                line: 1,
                tier: "memory",
                date: memory.updated.unwrap_or(since),
                text: format!("{}: {body}", self.rules.shown(&memory.name)),
                kind: Some(memory.kind.name()),
                citation: Citation::from_addresses(lines),
                mask: 0,
                length: 0.0,
            },
            &self.rules.shown(&memory.description),
        );
    }

    fn add(&mut self, item: ItemRow, head: &str) {
        self.corpus.add_item(item, head, &mut self.terms);
    }

    /// Returns the best hits.
    pub fn found(mut self) -> Found {
        let (how, when) = (self.how, &self.when);
        let items_only = how.raw
            && self.query.tiers.iter().all(|it| it != "daily" && it != "session")
            && !self.query.tiers.is_empty();
        let (lines, alone) = rank::rank(
            &self.corpus,
            &mut self.terms,
            &self.question,
            self.pairs.len(),
            when,
            !how.raw,
        );
        let mut hits: Vec<Hit> = Vec::new();
        if !items_only {
            let lines = lines.iter().filter(|it| self.admits_line(it)).take(how.limit);
            hits.extend(lines.map(|it| self.hit(it, how.context)));
        }
        if how.raw {
            hits.extend(self.raw_items(when));
        } else {
            let alone = alone.iter().filter(|it| self.admits_item(&self.corpus.items[it.item]));
            hits.extend(alone.map(|it| item_hit(&self.corpus.items[it.item], it.score)));
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits.truncate(how.limit);
        Found { query: self.query.text.clone(), notice: NOTICE, hits }
    }

    /// Returns the items as hits themselves.
    fn raw_items(&self, when: &When) -> Vec<Hit> {
        let alone = rank::items(&self.corpus, self.terms.len(), when);
        let admitted = alone.iter().filter(|it| self.admits_item(&self.corpus.items[it.item]));
        admitted.map(|it| item_hit(&self.corpus.items[it.item], it.score)).collect()
    }

    /// Whether a line has what the query wants beside its words. A tier of summaries wants lines that were
    /// found by one of them.
    fn admits_line(&self, scored: &rank::Scored) -> bool {
        let row = &self.corpus.rows[scored.row];
        let doc = &self.corpus.docs[row.doc];
        let tiers = &self.query.tiers;
        let vias = || scored.via.iter().map(|&it| &self.corpus.items[it]);
        let of_tier = tiers.is_empty()
            || tiers.iter().any(|tier| *tier == doc.tier || vias().any(|it| it.tier == *tier));
        let of_kind =
            self.query.kind.as_ref().is_none_or(|kind| vias().any(|it| it.kind == Some(kind)));
        of_tier
            && of_kind
            && row.of_project
            && self.is_within(doc.date)
            && self.query.admits(&row.text)
    }

    fn admits_item(&self, item: &ItemRow) -> bool {
        let tiers = &self.query.tiers;
        let of_project =
            self.query.project.as_ref().is_none_or(|it| item.path.to_lowercase().contains(it));
        (tiers.is_empty() || tiers.iter().any(|it| it == item.tier))
            && self.query.kind.as_ref().is_none_or(|it| item.kind == Some(it))
            && of_project
            && self.is_within(item.date)
            && self.query.admits(&item.text)
    }

    fn is_within(&self, day: NaiveDate) -> bool {
        self.query.since.is_none_or(|it| day >= it) && self.query.until.is_none_or(|it| day <= it)
    }

    fn hit(&self, scored: &rank::Scored, context: usize) -> Hit {
        let row = &self.corpus.rows[scored.row];
        let doc = &self.corpus.docs[row.doc];
        let of_doc = |at: &usize| self.corpus.rows.get(*at).is_some_and(|it| it.doc == row.doc);
        let texts = |at: std::ops::Range<usize>| -> Vec<String> {
            at.filter(of_doc).map(|it| self.corpus.rows[it].text.clone()).collect()
        };
        let mut via: Vec<Via> = scored
            .via
            .iter()
            .map(|&it| &self.corpus.items[it])
            .map(|it| Via { path: it.path.clone(), line: it.line })
            .collect();
        via.sort();
        via.dedup();
        Hit {
            path: doc.path.clone(),
            line: row.number,
            date: doc.date,
            tier: doc.tier,
            origin: row.origin.name(),
            score: scored.score,
            text: row.text.clone(),
            before: texts(scored.row.saturating_sub(context)..scored.row),
            after: texts(scored.row + 1..scored.row + 1 + context),
            via,
        }
    }
}

fn item_hit(item: &ItemRow, score: f64) -> Hit {
    Hit {
        path: item.path.clone(),
        line: item.line,
        date: item.date,
        tier: item.tier,
        origin: "derived",
        score,
        text: item.text.clone(),
        before: Vec::new(),
        after: Vec::new(),
        via: Vec::new(),
    }
}

/// Hits of the same words, for who reads them: the best of them, and how many more there are.
pub fn folded(hits: &[Hit]) -> Vec<(&Hit, usize)> {
    let mut at: HashMap<&str, usize> = HashMap::new();
    let mut folded: Vec<(&Hit, usize)> = Vec::new();
    for hit in hits {
        if let Some(&first) = at.get(hit.text.trim()) {
            folded[first].1 += 1;
        } else {
            at.insert(hit.text.trim(), folded.len());
            folded.push((hit, 0));
        }
    }
    folded
}
