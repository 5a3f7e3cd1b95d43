//! The days of an event that a question names, found by a search for its name.

use chrono::NaiveDate;

use super::{
    index::{
        matches::{LOG_TIERS, QueryMatches},
        source::SearchSource,
    },
    rank,
    terms::{QueryStemmer, QueryTerms},
    time::{event::EventReference, expression::TimeExpression, relative::DayRange},
};
use crate::store::db::search_index::CacheDbError;

/// A name on more days than this is that of no event, or of many.
const EVENT_DAYS_MAX: usize = 7;

/// Returns the days that a question means by an event. The day of the event is known if a line of that day,
/// and of few others, contains all words of its name.
pub(super) fn find_event_days(
    event: &EventReference,
    source: &SearchSource,
) -> Result<Option<DayRange>, CacheDbError> {
    let terms = QueryTerms::of(&event.name, &mut QueryStemmer::new());
    let count = u32::try_from(terms.stems.len()).unwrap_or(u32::MAX);
    let mut matched = QueryMatches::of(source, &terms)?;
    if !(1..=64).contains(&count) {
        return Ok(None);
    }
    let mut days: Vec<NaiveDate> = Vec::new();
    for (at, file) in matched.files.iter().enumerate() {
        let has_name = || matched.masks(at).iter().any(|it| it.count_ones() == count);
        if file.head.tier < LOG_TIERS && has_name() {
            days.push(file.head.date);
        }
    }
    days.sort_unstable();
    days.dedup();
    if days.len() > EVENT_DAYS_MAX {
        return Ok(None);
    }
    let (lines, _) = rank::rank(&mut matched, &[], &TimeExpression::default(), false, None);
    let mut ranked = lines.iter().map(|it| matched.files[it.file].head.date);
    let best = ranked.find(|it| days.contains(it)).or(days.last().copied());
    Ok(best.map(|day| event.span.apply_to_day(day)))
}
