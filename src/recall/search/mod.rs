//! Search: from words to the log lines that answer them.
//!
//! A summary says that something happened, a log line says what exactly. A match in a weekly or monthly
//! file, in `WISDOM.md`, or in a typed memory therefore leads to its source lines. These are the hits,
//! with the items above them as `via`. All text is sanitized.
//!
//! - [`query`]: the query syntax.
//! - `terms`: from text to terms.
//! - `time`: the times that a question names; pure. `event_days` finds the days of an event.
//! - `index`: the search index, and its update from the files.
//! - `cache`: the state of a search, for the next one in the same process.
//! - `rank`: the score of each line and item.
//! - `semantic`: lines with a similar meaning, if an embedding server is configured.
//! - `snippets`: the text of hits, read from the files.
//! - `supersession`: which hit has a newer value than another.
//! - `duplicates`: groups of hits that say the same.
//! - `highlight`: the matched words of a hit.
//! - `fuzzy`: misspelled and partial words, if nothing else is found.

mod cache;
mod duplicates;
mod event_days;
mod fuzzy;
mod highlight;
mod index;
pub mod query;
mod rank;
mod semantic;
mod snippets;
mod supersession;
mod terms;
pub(crate) mod time;

pub(super) use self::supersession::is_ended_by;

use std::{panic::resume_unwind, sync::mpsc, thread};

use chrono::NaiveDate;
use serde::Serialize;

pub use self::{
    cache::SearchCache,
    duplicates::group_duplicates,
    highlight::Highlighter,
    query::Query,
    semantic::{EmbedError, EmbedOutcome, embed_lines},
};
use self::{
    index::{
        indexed_file,
        matches::{QueryMatches, stem_of},
        source::SearchSource,
        target::RootScan,
    },
    rank::{ScoredItem, ScoredLine},
    semantic::SemanticMatch,
    snippets::SnippetReader,
    supersession::HitSurroundings,
    terms::{QueryStemmer, QueryTerms},
    time::expression::TimeExpression,
};
use super::framing::NOTICE;
use crate::{
    memory::{address::Stem, log::TextOrigin, typed::MemoryType},
    model::embedding::EmbeddingModel,
    privacy::PrivacyRules,
    store::{
        db::search_index::CacheDbError,
        fs::{
            inventory::Inventory,
            layout::{self, MemoryFileName},
            vault::{Vault, VaultError},
        },
    },
    text::words,
};

/// The origin of external hits.
const EXTERNAL: &str = TextOrigin::External.name();

/// The options of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// The most hits.
    pub limit: usize,
    /// How many lines before and after each hit are included.
    pub context: usize,
    /// Whether items are hits themselves instead of leading to log lines.
    pub raw: bool,
    /// Today in the root's zone, for relative times.
    pub today: NaiveDate,
}

impl SearchOptions {
    /// How many hits are considered. Even for one hit this is more, to find the newest value.
    fn candidates_max(&self) -> usize {
        const MIN: usize = 10;
        self.limit.max(MIN)
    }
}

/// The result of a search, best hit first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchResults {
    /// The query as typed.
    pub query: String,
    /// That the text is no instruction.
    pub notice: &'static str,
    /// Why the search used words alone, although an embedding server is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words_only: Option<String>,
    /// Whether no line has the words of the query, and the hits only have words of a similar spelling.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub similar_spelling: bool,
    /// The hits.
    pub hits: Vec<SearchHit>,
}

/// A log line or an item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchHit {
    /// The file, relative to the root.
    pub path: String,
    /// The line in it, from 1.
    pub line: u32,
    /// The day of the log, or the newest day that an item covers.
    pub date: NaiveDate,
    /// `daily`, `session`, `weekly`, `monthly`, `wisdom`, or `memory`.
    pub tier: &'static str,
    /// The origin of its text.
    pub origin: &'static str,
    /// Higher is better; comparable between queries that used the same methods.
    pub score: f64,
    /// How it was found: `words`, `meaning`, or both; `spelling` for a similar spelling.
    pub found_by: Vec<&'static str>,
    /// The sanitized text.
    pub text: String,
    /// Lines before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Lines after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The items above it that matched, too.
    pub via: Vec<HitRef>,
    /// The newer hit that says the same with another value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<HitRef>,
}

/// The place of an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HitRef {
    /// The file, relative to the root.
    pub path: String,
    /// The line in it, from 1.
    pub line: u32,
}

/// Searches a root.
///
/// # Errors
///
/// Returns why a file could not be read. Without a usable index the files are searched, and without an
/// embedding server the words.
pub fn find(
    vault: &Vault,
    query: &Query,
    options: SearchOptions,
    embedder: Option<&dyn EmbeddingModel>,
) -> Result<SearchResults, VaultError> {
    find_speculatively(vault, query, options, embedder, &|| SearchSource::open_existing(vault))
        .map(|it| it.0)
}

/// Searches the previous index while the files are scanned, because mostly nothing has changed. If
/// something has, searches again. Returns the source that was searched, too.
fn find_speculatively(
    vault: &Vault,
    query: &Query,
    options: SearchOptions,
    embedder: Option<&dyn EmbeddingModel>,
    previous: &dyn Fn() -> Option<SearchSource>,
) -> Result<(SearchResults, SearchSource, Inventory), VaultError> {
    thread::scope(|scope| {
        let (sender, known_files) = mpsc::sync_channel(1);
        // If the sender panics, treat all files as unknown.
        let scan_thread =
            scope.spawn(|| RootScan::scan(vault, move || known_files.recv().unwrap_or_default()));
        let join_scan = || scan_thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        let previous = previous();
        // Sending fails only if the scan has failed, which `join_scan` reports.
        drop(sender.send(previous.as_ref().map(SearchSource::known_files).unwrap_or_default()));
        let search = PreparedSearch::new(vault, query, options, embedder);
        let scan = if let Some(source) = previous.as_ref() {
            let resolved = search.clone().with_resolved_time(source);
            let ranked = resolved.rank(source);
            let scan = join_scan()?;
            let hits = match ranked {
                Ok(ranked) if source.is_up_to_date(vault, &scan)? => {
                    Some(resolved.collect_hits(&ranked, &scan.inventory)?)
                }
                _ => None,
            };
            if let Some(hits) = hits
                && let Some(source) = previous
            {
                return Ok((resolved.into_results(hits), source, scan.inventory));
            }
            scan
        } else {
            join_scan()?
        };
        let source = SearchSource::refreshed(previous, vault, &scan)?;
        let results = search.run(&source, &scan.inventory)?;
        Ok((results, source, scan.inventory))
    })
}

/// Updates the index, so that the next search finds it up to date.
pub(crate) fn refresh_index(vault: &Vault) -> Result<(), VaultError> {
    SearchSource::open(vault).map(drop)
}

/// Updates the index from a scan that a run has just made. If another process is using the index, the
/// next search updates it.
pub(crate) fn update_index(vault: &Vault, inventory: &Inventory) -> Result<(), VaultError> {
    SearchSource::update_index(vault, inventory)
}

/// Adds one log to the index like [`update_index`], if there is an index.
pub(crate) fn update_index_log(
    vault: &Vault,
    stem: &Stem,
    rules: &PrivacyRules,
) -> Result<(), VaultError> {
    SearchSource::update_index_log(vault, stem, rules)
}

#[derive(Clone)]
struct PreparedSearch<'a> {
    vault: &'a Vault,
    query: &'a Query,
    options: SearchOptions,
    time: TimeExpression,
    terms: QueryTerms,
    /// Each word of the question as a speaker id, with the mask of its terms.
    speaker_masks: Vec<(u32, u64)>,
    /// Lines with a similar meaning.
    semantic_matches: Vec<SemanticMatch>,
    words_only: Option<String>,
}

/// The matches in an index, best first.
struct RankedMatches<'a> {
    source: &'a SearchSource,
    matched: QueryMatches<'a>,
    lines: Vec<ScoredLine>,
    standalone_items: Vec<ScoredItem>,
}

impl<'a> PreparedSearch<'a> {
    fn new(
        vault: &'a Vault,
        query: &'a Query,
        options: SearchOptions,
        embedder: Option<&dyn EmbeddingModel>,
    ) -> Self {
        let embedder = embedder.filter(|_| !options.raw && !query.words.is_empty());
        let near = embedder.map(|it| semantic::nearest(vault, query, it));
        let (near, words_only) = match near.transpose() {
            Ok(near) => (near.unwrap_or_default(), None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let time = TimeExpression::parse(&query.words.to_lowercase(), options.today);
        Self {
            vault,
            query,
            options,
            time,
            terms: QueryTerms::default(),
            speaker_masks: Vec::new(),
            semantic_matches: near,
            words_only,
        }
    }

    fn set_terms(&mut self) {
        let mut stems = QueryStemmer::new();
        // A line that says "currently" is not newer for it.
        let asked = supersession::without_present_words(&self.time.remaining_text);
        self.terms = QueryTerms::of(&asked, &mut stems);
        if self.terms.stems.is_empty() {
            self.terms = QueryTerms::of(&self.time.remaining_text, &mut stems);
        }
        let question = self.query.words.to_lowercase();
        if self.terms.stems.is_empty() && !self.time.names_days() {
            // "last year" alone names too many days to list them all.
            self.terms = QueryTerms::of(&question, &mut stems);
        }
        let words = words::runs(&question, "");
        let masks = words.map(|it| (indexed_file::speaker_id(it), self.terms.mask(it, &mut stems)));
        self.speaker_masks = masks.collect();
    }

    /// Finds the days of the question's event, and whether there are logs of its times.
    fn with_resolved_time(mut self, source: &SearchSource) -> Self {
        self.time.apply_log_days(|stretch| source.has_logs(stretch));
        // If the index is unusable, the search itself notices.
        if let Some(event) = self.time.event.clone()
            && let Ok(Some(days)) = event_days::find_event_days(&event, source)
        {
            self.time.set_event_days(&event, days);
        }
        self.set_terms();
        self
    }

    /// Searches the source, or the files if the index is unusable.
    fn run(
        self,
        source: &SearchSource,
        inventory: &Inventory,
    ) -> Result<SearchResults, VaultError> {
        let resolved = self.clone().with_resolved_time(source);
        if let Ok(ranked) = resolved.rank(source) {
            let hits = resolved.collect_hits(&ranked, inventory)?;
            return Ok(resolved.into_results(hits));
        }
        let source = SearchSource::without_index(self.vault, inventory)?;
        let searching = self.with_resolved_time(&source);
        let ranked = searching.rank(&source);
        let hits =
            ranked.map_or_else(|_| Ok(Vec::new()), |it| searching.collect_hits(&it, inventory))?;
        Ok(searching.into_results(hits))
    }

    fn into_results(self, hits: Vec<SearchHit>) -> SearchResults {
        SearchResults {
            query: self.query.text.clone(),
            notice: NOTICE,
            words_only: self.words_only,
            similar_spelling: hits.iter().any(|it| it.found_by == [fuzzy::FOUND_BY]),
            hits,
        }
    }

    fn rank<'s>(&'s self, source: &'s SearchSource) -> Result<RankedMatches<'s>, CacheDbError> {
        let mut matched = QueryMatches::of(source, &self.terms)?;
        let options = self.options;
        let limit = (!self.query.has_filters()).then_some(options.candidates_max());
        let (mut lines, mut alone) =
            rank::rank(&mut matched, &self.speaker_masks, &self.time, !options.raw, limit);
        if !self.semantic_matches.is_empty() {
            let by_words = (lines, &mut alone[..]);
            lines = semantic::fuse(&mut matched, by_words, &self.semantic_matches, &self.time);
        }
        if options.raw {
            alone = rank::rank_items(&mut matched, &self.time);
        }
        match matched.take_error() {
            Some(error) => Err(error),
            None => Ok(RankedMatches { source, matched, lines, standalone_items: alone }),
        }
    }

    /// Returns the best hits with their text.
    fn collect_hits(
        &self,
        ranked: &RankedMatches<'_>,
        inventory: &Inventory,
    ) -> Result<Vec<SearchHit>, VaultError> {
        let RankedMatches { source, matched, lines, standalone_items: alone } = ranked;
        let options = self.options;
        let tiers = &self.query.tiers;
        let items_only = options.raw
            && !tiers.is_empty()
            && tiers.iter().all(|it| it != "daily" && it != "session");
        let mut texts = SnippetReader::new(self.vault, inventory);
        let mut hits = Vec::new();
        if !items_only {
            for scored in lines {
                if hits.len() == options.candidates_max() {
                    break;
                }
                if let Some(hit) = self.line_hit(matched, &mut texts, scored)? {
                    add_hit(&mut hits, hit, &mut texts)?;
                }
            }
        }
        let mut items = 0;
        for scored in alone {
            if items == options.candidates_max() {
                break;
            }
            if let Some(hit) = self.item_hit(matched, &mut texts, *scored)? {
                hits.push(hit);
                items += 1;
            }
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits.truncate(options.candidates_max());
        if hits.is_empty() && !options.raw {
            hits = fuzzy::find(self.vault, inventory, self.query, options, source.logs())?;
        }
        let mut surroundings =
            IndexedSurroundings { source, texts: &mut texts, stems: QueryStemmer::new() };
        supersession::mark_superseded(
            &mut hits,
            &self.query.words,
            self.time.names_days(),
            &mut surroundings,
        );
        hits.truncate(options.limit);
        Ok(hits)
    }

    /// Returns a line as a hit if it passes the filters of the query. A filter by a summary tier
    /// selects lines that were found through one of its items.
    fn line_hit(
        &self,
        matched: &QueryMatches<'_>,
        texts: &mut SnippetReader<'_>,
        scored: &ScoredLine,
    ) -> Result<Option<SearchHit>, VaultError> {
        let file = &matched.files[scored.file];
        let tier = indexed_file::TIERS[file.head.tier];
        let tier_of =
            |&(file, _): &(usize, usize)| indexed_file::TIERS[matched.files[file].head.tier];
        let kind_of = |&(file, _): &(usize, usize)| memory_kind(&matched.files[file].entry.path);
        let Query { tiers, kind, .. } = self.query;
        let of_tier = tiers.is_empty()
            || tiers
                .iter()
                .any(|it| *it == tier || scored.via.iter().any(|via| tier_of(via) == it));
        let of_kind = kind
            .as_deref()
            .is_none_or(|kind| scored.via.iter().any(|via| kind_of(via) == Some(kind)));
        if !(of_tier && of_kind && self.is_in_date_range(file.head.date)) {
            return Ok(None);
        }
        let Some(stem) = matched.stem(scored.file) else { return Ok(None) };
        let line = &matched.lines(scored.file)[scored.row];
        let number = line.number;
        let is_alone = self.options.context == 0 && self.query.project.is_none();
        let whole =
            if is_alone { texts.verbatim_line(&stem, file.entry.hash, line)? } else { None };
        let snippet = if let Some(whole) = whole {
            whole
        } else {
            let served = texts.log(&stem)?.and_then(|it| it.line(number, self.options.context));
            let Some(snippet) = served else { return Ok(None) };
            snippet
        };
        let of_project = self.query.project.as_ref().is_none_or(|it| {
            file.entry.path.to_lowercase().contains(it) || snippet.is_under_heading(it)
        });
        if !(of_project && self.query.matches_text(&snippet.text)) {
            return Ok(None);
        }
        let mut via = Vec::new();
        for &(file, row) in &scored.via {
            let path = matched.files[file].entry.path.clone();
            via.push(HitRef { path, line: matched.lines(file)[row].number });
        }
        via.sort();
        via.dedup();
        Ok(Some(SearchHit {
            path: file.entry.path.clone(),
            line: number,
            date: file.head.date,
            tier,
            origin: snippet.origin,
            score: scored.score,
            found_by: [(scored.matches_words, "words"), (scored.is_semantic, "meaning")]
                .into_iter()
                .filter_map(|(is_so, by)| is_so.then_some(by))
                .collect(),
            text: snippet.text,
            before: snippet.before,
            after: snippet.after,
            via,
            superseded_by: None,
        }))
    }

    fn item_hit(
        &self,
        matched: &QueryMatches<'_>,
        texts: &mut SnippetReader<'_>,
        scored: ScoredItem,
    ) -> Result<Option<SearchHit>, VaultError> {
        let file = &matched.files[scored.file];
        let path = &file.entry.path;
        let tier = indexed_file::TIERS[file.head.tier];
        let Query { tiers, kind: wanted, project, .. } = self.query;
        let of_project = project.as_ref().is_none_or(|it| path.to_lowercase().contains(it));
        let of_kind = wanted.as_deref().is_none_or(|it| memory_kind(path) == Some(it));
        let date = matched.item_date(scored.file, scored.row);
        let of_tier = tiers.is_empty() || tiers.iter().any(|it| it == tier);
        if !(of_tier && of_kind && of_project && self.is_in_date_range(date)) {
            return Ok(None);
        }
        let number = matched.lines(scored.file)[scored.row].number;
        let Some((text, origin)) = texts.item(path, tier, number)? else { return Ok(None) };
        Ok(self.query.matches_text(&text).then(|| SearchHit {
            path: path.clone(),
            line: number,
            date,
            tier,
            origin,
            score: scored.score
                * if origin == EXTERNAL { indexed_file::EXTERNAL_SHARE } else { 1.0 },
            found_by: vec!["words"],
            text,
            before: Vec::new(),
            after: Vec::new(),
            via: Vec::new(),
            superseded_by: None,
        }))
    }

    fn is_in_date_range(&self, day: NaiveDate) -> bool {
        self.query.includes_day(day)
    }
}

/// The surroundings of hits in a root and its index.
struct IndexedSurroundings<'s, 'a> {
    source: &'s SearchSource,
    texts: &'s mut SnippetReader<'a>,
    stems: QueryStemmer,
}

impl HitSurroundings for IndexedSurroundings<'_, '_> {
    fn title(&mut self, hit: &SearchHit) -> String {
        // What cannot be read has no title; reading it for its text has reported why.
        let title = log_stem(&hit.path).and_then(|it| self.texts.title(&it, hit.line).ok());
        title.flatten().unwrap_or_default()
    }

    fn is_rare(&mut self, word: &str) -> bool {
        /// In how many logs of few, and in what part of many, a name occurs.
        const FILES_MIN: usize = 4;
        const FILES_DIVISOR: usize = 20;
        let mut files = 0;
        let term = self.stems.stem_id(word);
        let counted = self.source.for_each_match(term, |_, _| files += 1);
        let most = FILES_MIN.max(self.source.entries.len() / FILES_DIVISOR);
        counted.is_ok() && files <= most
    }
}

/// Adds a hit. A log line and the session record that it was taken from are one hit, the log line,
/// which leads to the record.
fn add_hit(
    hits: &mut Vec<SearchHit>,
    hit: SearchHit,
    texts: &mut SnippetReader<'_>,
) -> Result<(), VaultError> {
    let (log, session) = (indexed_file::TIERS[0], indexed_file::TIERS[1]);
    let mut at = 0;
    while let Some(there) = hits.get(at) {
        let (of_log, of_record) = if there.tier == log { (there, &hit) } else { (&hit, there) };
        let is_duplicate = (of_log.tier, of_record.tier) == (log, session)
            && duplicates::is_duplicate(&of_log.text, &of_record.text)
            && match (log_stem(&of_log.path), log_stem(&of_record.path)) {
                (Some(log), Some(record)) => texts.line_cites_record(&log, of_log.line, &record)?,
                _ => false,
            };
        if !is_duplicate {
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

fn log_stem(path: &str) -> Option<Stem> {
    stem_of(path).parse().ok()
}

fn memory_kind(path: &str) -> Option<&'static str> {
    let name = path.rsplit_once('/').map_or(path, |it| it.1);
    match layout::classify(name) {
        MemoryFileName::Typed(kind) => Some(MemoryType::name(kind)),
        _ => None,
    }
}
