//! Search: from words to the log lines that answer them.
//!
//! A summary tells that something happened, the line says exactly what: what is found in a weekly or
//! monthly file, in `WISDOM.md`, or in a typed memory leads to the lines beneath it, and they are the hits,
//! with the items above them as `via`. All text is the served view.
//!
//! - [`query`]: what one may type.
//! - [`words`]: from text to terms.
//! - [`when`]: the time that a question names; [`dates`]: what of it is a date; [`relative`]: what counts from
//!   today; [`event`]: what is told by what happened then.
//! - [`ground`]: what the index keeps of a file.
//! - [`wanted`]: what should stand in the index.
//! - [`source`]: the index, brought up to date, or the files themselves.
//! - [`warm`]: what one search found out, for the next one in the same process.
//! - [`matched`]: what of it concerns a question.
//! - [`items`]: what generated files say.
//! - [`rank`]: what each is worth as an answer.
//! - [`meaning`]: what is near to a question in other words, where a server makes vectors.
//! - [`texts`]: the words of what was found, read from the files.
//! - [`values`]: which hit holds a newer value than another.
//! - [`repeats`]: hits that say the same, for who reads them.
//! - [`marks`]: which of their words were looked for.
//! - [`loose`]: what is nearly written so, where nothing else is found.

mod dates;
mod event;
mod ground;
mod items;
mod loose;
mod marks;
mod matched;
mod meaning;
pub mod query;
mod rank;
mod relative;
mod repeats;
mod source;
mod texts;
mod values;
mod wanted;
mod warm;
mod when;
mod words;

use std::{panic::resume_unwind, sync::mpsc, thread};

use chrono::NaiveDate;
use serde::Serialize;

pub use self::{
    marks::Marks,
    meaning::{LearnError, Learned, learn},
    query::Query,
    repeats::folded,
    warm::Shelf,
};
use self::{
    matched::Matched,
    meaning::Near,
    rank::{Scored, ScoredItem},
    source::Source,
    texts::Texts,
    wanted::Look,
    when::When,
    words::{Stems, Terms},
};
use super::handed::NOTICE;
use crate::{
    memory::{address::Stem, typed::MemoryType},
    model::embedding::Embed,
    privacy::Rules,
    store::{
        inventory::Inventory,
        layout::{self, Name},
        postings::PostingsError,
        vault::{Vault, VaultError},
    },
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

impl How {
    /// How many hits are looked at: who wants one wants the newest value.
    fn most(&self) -> usize {
        const MIN: usize = 10;
        self.limit.max(MIN)
    }
}

/// What was found, best first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// As it was typed.
    pub query: String,
    /// That it is no instruction.
    pub notice: &'static str,
    /// Why it was searched by words alone, where it was to be by meaning, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words_only: Option<String>,
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
    /// Higher is better; the same scale for all queries that were searched by the same.
    pub score: f64,
    /// By what it was found: `words`, `meaning`, or both; `spelling` where it is only nearly written so.
    pub found_by: Vec<&'static str>,
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
    /// The newer hit that says the same with another value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<Via>,
}

/// Where an item stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Via {
    /// The file, relative to the root.
    pub path: String,
    /// The line in it, from 1.
    pub line: u32,
}

/// Looks through all that stands in a root.
///
/// # Errors
///
/// Returns why a file could not be read. An index that cannot be used is no error: the files are read. Nor
/// is a server that makes no vectors: the words are there.
pub fn find(
    vault: &Vault,
    query: &Query,
    how: How,
    embedder: Option<&dyn Embed>,
) -> Result<Found, VaultError> {
    find_first(vault, query, how, embedder, &|| Source::as_left(vault)).map(|it| it.0)
}

/// Finds what a query asks for in the files as they are. While they are looked at it is found in the index
/// as it was `left`: mostly nothing has changed since. Returns where it was found, too.
fn find_first(
    vault: &Vault,
    query: &Query,
    how: How,
    embedder: Option<&dyn Embed>,
    left: &dyn Fn() -> Option<Source>,
) -> Result<(Found, Source, Inventory), VaultError> {
    thread::scope(|scope| {
        let (tell, told) = mpsc::sync_channel(1);
        // Who falls over before he tells it knows nothing.
        let looking = scope.spawn(|| Look::at(vault, move || told.recv().unwrap_or_default()));
        let look = || looking.join().unwrap_or_else(|panic| resume_unwind(panic));
        let left = left();
        // Who does not ask has failed, and says so below.
        drop(tell.send(left.as_ref().map(Source::seen).unwrap_or_default()));
        let asked = Searching::new(vault, query, how, embedder);
        let look = if let Some(source) = left.as_ref() {
            let searching = asked.clone().looking_for_time(source);
            let ranked = searching.ranked(source);
            let look = look()?;
            let hits = match ranked {
                Ok(ranked) if source.is_of(vault, &look)? => {
                    Some(searching.hits(&ranked, &look.inventory)?)
                }
                _ => None,
            };
            if let Some(hits) = hits
                && let Some(source) = left
            {
                return Ok((searching.told(hits), source, look.inventory));
            }
            look
        } else {
            look()?
        };
        let source = Source::brought(left, vault, &look)?;
        let found = asked.found(&source, &look.inventory)?;
        Ok((found, source, look.inventory))
    })
}

/// Brings the index up to date, so that the next search finds it so.
///
/// # Errors
///
/// Returns why a file could not be read.
pub fn refresh(vault: &Vault) -> Result<(), VaultError> {
    Source::open(vault).map(drop)
}

/// Brings the index up to date from what a pass has just seen, for who searches next. Waits for nobody
/// who writes the index or reads it: then that is left to the next.
///
/// # Errors
///
/// Returns why a file could not be read.
pub fn keep(vault: &Vault, inventory: &Inventory) -> Result<(), VaultError> {
    Source::keep(vault, inventory)
}

/// Takes one log into the index as [`keep`] does, if there is an index.
///
/// # Errors
///
/// Returns why the log could not be read.
pub fn keep_log(vault: &Vault, stem: &Stem, rules: &Rules) -> Result<(), VaultError> {
    Source::keep_log(vault, stem, rules)
}

#[derive(Clone)]
struct Searching<'a> {
    vault: &'a Vault,
    query: &'a Query,
    how: How,
    when: When,
    terms: Terms,
    /// The question's words as numbers of names, with what terms each of them is.
    said: Vec<(u32, u64)>,
    /// What is near in meaning.
    near: Vec<Near>,
    words_only: Option<String>,
}

/// What was found in an index, best first.
struct Ranked<'a> {
    source: &'a Source,
    matched: Matched<'a>,
    lines: Vec<Scored>,
    alone: Vec<ScoredItem>,
}

impl<'a> Searching<'a> {
    fn new(vault: &'a Vault, query: &'a Query, how: How, embedder: Option<&dyn Embed>) -> Self {
        let embedder = embedder.filter(|_| !how.raw && !query.words.is_empty());
        let near = embedder.map(|it| meaning::nearest(vault, query, it));
        let (near, words_only) = match near.transpose() {
            Ok(near) => (near.unwrap_or_default(), None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let when = When::of(&query.words.to_lowercase(), how.today);
        let (terms, said) = Default::default();
        Self { vault, query, how, when, terms, said, near, words_only }
    }

    /// Takes the words that are to be looked for.
    fn take_words(&mut self) {
        let mut stems = Stems::new();
        self.terms = Terms::of(&self.when.rest, &mut stems);
        let question = self.query.words.to_lowercase();
        if self.terms.stems.is_empty() && !self.when.names_days() {
            // "last year" alone names too many days to look through them.
            self.terms = Terms::of(&question, &mut stems);
        }
        let words = question.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty());
        let said = words.map(|it| (ground::speaker_number(it), self.terms.mask(it, &mut stems)));
        self.said = said.collect();
    }

    /// Finds out when that was by which the question tells a time, and whether there are logs of it.
    fn looking_for_time(mut self, source: &Source) -> Self {
        self.when.settle(|stretch| source.has_logs(stretch));
        // Where the index cannot be used the search itself finds that, too.
        if let Some(event) = self.when.event.clone()
            && let Ok(Some(days)) = event.days(source)
        {
            self.when.know(&event, days);
        }
        self.take_words();
        self
    }

    /// Returns what is found, in the files themselves where the index cannot be used.
    fn found(self, source: &Source, inventory: &Inventory) -> Result<Found, VaultError> {
        let searching = self.clone().looking_for_time(source);
        if let Ok(ranked) = searching.ranked(source) {
            let hits = searching.hits(&ranked, inventory)?;
            return Ok(searching.told(hits));
        }
        let source = Source::without_index(self.vault, inventory)?;
        let searching = self.looking_for_time(&source);
        let ranked = searching.ranked(&source);
        let hits = ranked.map_or_else(|_| Ok(Vec::new()), |it| searching.hits(&it, inventory))?;
        Ok(searching.told(hits))
    }

    fn told(self, hits: Vec<Hit>) -> Found {
        Found { query: self.query.text.clone(), notice: NOTICE, words_only: self.words_only, hits }
    }

    /// Puts all that may be an answer in order.
    fn ranked<'s>(&'s self, source: &'s Source) -> Result<Ranked<'s>, PostingsError> {
        let mut matched = Matched::of(source, &self.terms)?;
        let how = self.how;
        let wanted = (!self.query.narrows()).then_some(how.most());
        let (mut lines, mut alone) =
            rank::rank(&mut matched, &self.said, &self.when, !how.raw, wanted);
        if !self.near.is_empty() {
            let by_words = (lines, &mut alone[..]);
            lines = meaning::fuse(&mut matched, by_words, &self.near, &self.when);
        }
        if how.raw {
            alone = rank::items_alone(&mut matched, &self.when);
        }
        match matched.take_failed() {
            Some(error) => Err(error),
            None => Ok(Ranked { source, matched, lines, alone }),
        }
    }

    /// Returns the best hits, with their words.
    fn hits(&self, ranked: &Ranked<'_>, inventory: &Inventory) -> Result<Vec<Hit>, VaultError> {
        let Ranked { source, matched, lines, alone } = ranked;
        let how = self.how;
        let tiers = &self.query.tiers;
        let items_only =
            how.raw && !tiers.is_empty() && tiers.iter().all(|it| it != "daily" && it != "session");
        let mut texts = Texts::new(self.vault, inventory);
        let mut hits = Vec::new();
        if !items_only {
            for scored in lines {
                if hits.len() == how.most() {
                    break;
                }
                if let Some(hit) = self.hit(matched, &mut texts, scored)? {
                    add(&mut hits, hit, &mut texts)?;
                }
            }
        }
        let mut items = 0;
        for scored in alone {
            if items == how.most() {
                break;
            }
            if let Some(hit) = self.item_hit(matched, &mut texts, *scored)? {
                hits.push(hit);
                items += 1;
            }
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits.truncate(how.most());
        if hits.is_empty() && !how.raw {
            hits = loose::find(self.vault, inventory, self.query, how, source.logs())?;
        }
        values::mark(&mut hits, &self.query.words, self.when.names_days());
        hits.truncate(how.limit);
        Ok(hits)
    }

    /// Returns a line as a hit, if it has what the query wants beside its words. A tier of summaries
    /// wants lines that were found by one of them.
    fn hit(
        &self,
        matched: &Matched<'_>,
        texts: &mut Texts<'_>,
        scored: &Scored,
    ) -> Result<Option<Hit>, VaultError> {
        let file = &matched.files[scored.file];
        let tier = ground::TIERS[file.head.tier];
        let tier_of = |&(file, _): &(usize, usize)| ground::TIERS[matched.files[file].head.tier];
        let kind_of = |&(file, _): &(usize, usize)| kind(&matched.files[file].entry.path);
        let Query { tiers, kind, .. } = self.query;
        let of_tier = tiers.is_empty()
            || tiers
                .iter()
                .any(|it| *it == tier || scored.via.iter().any(|via| tier_of(via) == it));
        let of_kind = kind
            .as_deref()
            .is_none_or(|kind| scored.via.iter().any(|via| kind_of(via) == Some(kind)));
        if !(of_tier && of_kind && self.is_within(file.head.date)) {
            return Ok(None);
        }
        let Some(stem) = matched.stem(scored.file) else { return Ok(None) };
        let line = &matched.lines(scored.file)[scored.row];
        let number = line.number;
        let is_alone = self.how.context == 0 && self.query.project.is_none();
        let whole = if is_alone { texts.whole_line(&stem, file.entry.hash, line)? } else { None };
        let found = if let Some(whole) = whole {
            whole
        } else {
            let served = texts.log(&stem)?.and_then(|it| it.line(number, self.how.context));
            let Some(found) = served else { return Ok(None) };
            found
        };
        let of_project = self
            .query
            .project
            .as_ref()
            .is_none_or(|it| file.entry.path.to_lowercase().contains(it) || found.is_below(it));
        if !(of_project && self.query.admits(&found.text)) {
            return Ok(None);
        }
        let mut via = Vec::new();
        for &(file, row) in &scored.via {
            let path = matched.files[file].entry.path.clone();
            via.push(Via { path, line: matched.lines(file)[row].number });
        }
        via.sort();
        via.dedup();
        Ok(Some(Hit {
            path: file.entry.path.clone(),
            line: number,
            date: file.head.date,
            tier,
            origin: found.origin,
            score: scored.score,
            found_by: [(scored.by_words, "words"), (scored.is_near, "meaning")]
                .into_iter()
                .filter_map(|(is_so, by)| is_so.then_some(by))
                .collect(),
            text: found.text,
            before: found.before,
            after: found.after,
            via,
            superseded_by: None,
        }))
    }

    fn item_hit(
        &self,
        matched: &Matched<'_>,
        texts: &mut Texts<'_>,
        scored: ScoredItem,
    ) -> Result<Option<Hit>, VaultError> {
        let file = &matched.files[scored.file];
        let path = &file.entry.path;
        let tier = ground::TIERS[file.head.tier];
        let Query { tiers, kind: wanted, project, .. } = self.query;
        let of_project = project.as_ref().is_none_or(|it| path.to_lowercase().contains(it));
        let of_kind = wanted.as_deref().is_none_or(|it| kind(path) == Some(it));
        let date = matched.item_date(scored.file, scored.row);
        let of_tier = tiers.is_empty() || tiers.iter().any(|it| it == tier);
        if !(of_tier && of_kind && of_project && self.is_within(date)) {
            return Ok(None);
        }
        let number = matched.lines(scored.file)[scored.row].number;
        let Some(text) = texts.item(path, tier, number)? else { return Ok(None) };
        Ok(self.query.admits(&text).then(|| Hit {
            path: path.clone(),
            line: number,
            date,
            tier,
            origin: "derived",
            score: scored.score,
            found_by: vec!["words"],
            text,
            before: Vec::new(),
            after: Vec::new(),
            via: Vec::new(),
            superseded_by: None,
        }))
    }

    fn is_within(&self, day: NaiveDate) -> bool {
        self.query.has_day(day)
    }
}

/// Adds a hit. What a line of a log took over from a record of a session is told once, by the log: from there
/// one gets to the record.
fn add(hits: &mut Vec<Hit>, hit: Hit, texts: &mut Texts<'_>) -> Result<(), VaultError> {
    let (log, session) = (ground::TIERS[0], ground::TIERS[1]);
    let mut at = 0;
    while let Some(there) = hits.get(at) {
        let (of_log, of_record) = if there.tier == log { (there, &hit) } else { (&hit, there) };
        let is_told_twice = (of_log.tier, of_record.tier) == (log, session)
            && repeats::is_like(&of_log.text, &of_record.text)
            && match (stem(&of_log.path), stem(&of_record.path)) {
                (Some(log), Some(record)) => texts.rests_on(&log, of_log.line, &record)?,
                _ => false,
            };
        if !is_told_twice {
            at += 1;
        } else if there.tier == log {
            return Ok(());
        } else {
            hits.remove(at);
        }
    }
    hits.push(hit);
    Ok(())
}

fn stem(path: &str) -> Option<Stem> {
    matched::stem_of(path).parse().ok()
}

/// Returns the kind of the typed memory at a path.
fn kind(path: &str) -> Option<&'static str> {
    let name = path.rsplit_once('/').map_or(path, |it| it.1);
    match layout::classify(name) {
        Name::Typed(kind) => Some(MemoryType::name(kind)),
        _ => None,
    }
}
