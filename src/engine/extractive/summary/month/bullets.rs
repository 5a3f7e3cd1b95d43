//! What the bullets of a month's weeks are about: their topic, kind and worth, by the statements of the logs.

use chrono::NaiveDate;

use super::sources::WeekBullet;
use crate::{
    engine::extractive::{
        as_f64,
        parsed_log::ParsedLog,
        statements::{
            self_contained::code_share, terms::StatementTerms, terms::TermExtractor,
            word_list::WordList,
        },
        wisdom::digest::{
            ModelReading,
            entities::Entities,
            newer::NewerStatements,
            statements::{DigestStatement, LogStatements, collect_from_pages},
        },
    },
    memory::{
        address::{Citation, Stem},
        item::{Item, SummarySection},
        statement::StatementKind,
    },
    text::hash::HashedMap,
};

use std::collections::HashMap;

/// What a bullet is worth, and each part of it, of which the logs have no statement by itself.
const UNKNOWN_WORTH: f64 = 0.9;

/// What a bullet is worth in words that no log has: a person wrote it into the week.
const OWN_WORDS_WORTH: f64 = 2.0;

/// A statement is in a bullet with this overlap.
const IN_BULLET: f64 = 0.6;

/// The factor of a state that a newer statement replaced: only the first of its topic says how things were.
const REPLACED_FACTOR: f64 = 0.5;

/// The factor of a bullet of which a sentence was cut.
const CUT_FACTOR: f64 = 0.7;

/// A bullet with a larger share of paths and code, or of fewer content words, says too little of what happened.
const CODE_SHARE_MAX: f64 = 0.3;

const STEMS_MIN: usize = 5;

/// The factor of a bullet that does not name its topic.
const UNNAMED_FACTOR: f64 = 0.7;

/// A bullet of a week, as it may be in the month.
pub(super) struct MonthBullet {
    /// The section of the week that contains it.
    pub(super) section: SummarySection,
    pub(super) item: Item,
    pub(super) day: NaiveDate,
    pub(super) kind: StatementKind,
    /// Whether a later line of the month says that it was done.
    pub(super) is_resolved: bool,
    /// The entity that it is about.
    pub(super) topic: Option<usize>,
    pub(super) worth: f64,
    /// Whether it is more than names of files or a few words.
    pub(super) is_worth_reading: bool,
    pub(super) terms: StatementTerms,
    pub(super) chars: usize,
}

/// Reads what the bullets are about.
pub(super) fn rate_bullets(pages: &[ParsedLog], bullets: &[WeekBullet<'_>]) -> Vec<MonthBullet> {
    let LogStatements { statements, entities, newer, .. } =
        collect_from_pages(pages, NaiveDate::MIN, &|_, _, _| None, &ModelReading::default());
    let mut at_line: HashMap<(&Stem, u32), Vec<usize>> = HashMap::new();
    for (at, statement) in statements.iter().enumerate() {
        for (stem, lines) in statement.own_citation.files() {
            for line in lines.iter() {
                at_line.entry((stem, line)).or_default().push(at);
            }
        }
    }
    let rater = BulletRater { statements: &statements, entities: &entities, newer: &newer };
    let mut extractor = TermExtractor::default();
    bullets
        .iter()
        .map(|bullet| {
            let files = bullet.item.citation.iter().flat_map(Citation::files);
            let lines = files.flat_map(|(stem, lines)| lines.iter().map(move |it| (stem, it)));
            let mut parts: Vec<usize> =
                lines.filter_map(|it| at_line.get(&it)).flatten().copied().collect();
            parts.sort_unstable();
            parts.dedup();
            let words = WordList::of(&bullet.item.text);
            rater.rate(bullet, &words, extractor.extract(&words), &parts)
        })
        .collect()
}

struct BulletRater<'a> {
    statements: &'a [DigestStatement],
    entities: &'a Entities,
    newer: &'a NewerStatements,
}

impl BulletRater<'_> {
    fn rate(
        &self,
        bullet: &WeekBullet<'_>,
        words: &WordList,
        terms: StatementTerms,
        parts: &[usize],
    ) -> MonthBullet {
        let item = bullet.item;
        let chars = item.text.chars().count();
        let is_part = |it: &&DigestStatement| it.own_terms.overlap(&terms) >= IN_BULLET;
        let parts: Vec<&DigestStatement> =
            parts.iter().map(|it| &self.statements[*it]).filter(is_part).collect();
        let length = |it: &DigestStatement| as_f64(it.own_text().chars().count().min(chars));
        let weight = |it: &DigestStatement| {
            let is_replaced =
                it.section().is_state() && self.newer.is_replaced(self.statements, it);
            it.worth * length(it) * if is_replaced { REPLACED_FACTOR } else { 1.0 }
        };
        let covered: f64 = parts.iter().map(|it| length(it)).sum();
        let uncovered = (as_f64(chars) - covered).max(0.0) / 2.0;
        let sum: f64 = parts.iter().map(|it| weight(it)).sum();
        let unknown = if parts.is_empty() { OWN_WORDS_WORTH } else { UNKNOWN_WORTH };
        let mut worth = (sum + unknown * uncovered) / (covered + uncovered).max(1.0);
        let best = parts.iter().copied().max_by(|a, b| weight(a).total_cmp(&weight(b)));
        let kind = kind_of(bullet.section, best);
        if item.text.contains(" … ") {
            worth *= CUT_FACTOR;
        }
        let topic = self.topic_of(words, &parts, weight);
        let mut named = self.entities.mentions(words).into_iter();
        let is_named = topic.is_none_or(|it| named.any(|of| of.entity == it));
        let is_guidance = !matches!(
            kind,
            StatementKind::State | StatementKind::Open | StatementKind::Environment
        );
        if !is_named {
            worth *= UNNAMED_FACTOR;
        }
        let is_short = plain_stems(&item.text) < STEMS_MIN && !is_guidance;
        let is_worth_reading = !is_short && code_share(&item.text) <= CODE_SHARE_MAX;
        let day = item.citation.as_ref().map_or(NaiveDate::MIN, Citation::oldest_date);
        MonthBullet {
            section: bullet.section,
            item: item.clone(),
            day,
            kind,
            is_resolved: false,
            topic,
            worth,
            is_worth_reading,
            terms,
            chars,
        }
    }

    /// Returns the entity that most of a bullet is about.
    fn topic_of(
        &self,
        words: &WordList,
        parts: &[&DigestStatement],
        weight: impl Fn(&DigestStatement) -> f64,
    ) -> Option<usize> {
        let is_topic = |it: &usize| {
            let entity = &self.entities.all[*it];
            !entity.is_person && !entity.is_platform
        };
        let mut weights = HashedMap::<f64>::default();
        for part in parts {
            if let Some(subject) = part.subject {
                *weights.entry(subject.entity as u64).or_default() += weight(part);
            }
        }
        let mut weights: Vec<(usize, f64)> = weights
            .into_iter()
            .filter_map(|(it, weight)| Some((usize::try_from(it).ok()?, weight)))
            .filter(|it| is_topic(&it.0))
            .collect();
        weights.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let named = self.entities.mentions(words).into_iter().map(|it| it.entity);
        weights.first().map(|it| it.0).or_else(|| named.filter(is_topic).min())
    }
}

/// Returns the kind of a bullet: the week decides what was decided and what is open.
fn kind_of(section: SummarySection, best: Option<&DigestStatement>) -> StatementKind {
    let kind = best.map(|it| it.kind);
    match section {
        SummarySection::BlockersAndOpenItems | SummarySection::CarriedForward => {
            StatementKind::Open
        }
        SummarySection::Decisions | SummarySection::Trajectory => kind
            .filter(|it| {
                !matches!(
                    it,
                    StatementKind::State | StatementKind::Open | StatementKind::Environment
                )
            })
            .unwrap_or(StatementKind::Decision),
        _ => kind.filter(|it| *it != StatementKind::Open).unwrap_or(StatementKind::State),
    }
}

/// Returns the number of content words of a text that are in no path, address or name of a file.
fn plain_stems(text: &str) -> usize {
    let is_file = |word: &str| {
        let name = word.trim_end_matches(['.', ',', ';', ':', ')']).rsplit_once('.');
        name.is_some_and(|(stem, ending)| !stem.is_empty() && (1..=5).contains(&ending.len()))
    };
    let is_name = |it: &str| it.contains(['/', '@', '_', '`', '[', ']']) || is_file(it);
    let is_plain = |it: &&str| !it.is_ascii() || !is_name(it);
    let words: Vec<&str> = text.split_whitespace().filter(is_plain).collect();
    StatementTerms::of(&words.join(" ")).stems.len()
}
