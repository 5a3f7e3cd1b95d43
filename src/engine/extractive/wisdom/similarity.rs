//! When two statements are about the same.

use super::SAME_EXCEPT_VALUES;
use crate::engine::extractive::statements::terms::StatementTerms;

/// A new entry with at least this overlap with another one says nothing new.
const SAME_TOPIC: f64 = 0.4;

/// Returns whether an entry covers a candidate.
pub(super) fn covers_candidate(entry: &StatementTerms, candidate: &StatementTerms) -> bool {
    const COVERED: f64 = 0.6;
    let shared = candidate.stems.shared_count(&entry.stems);
    shared >= 2
        && (candidate.overlap(entry) >= 0.8
            || candidate.similarity(entry) >= 0.5
            || candidate.containment(entry) >= COVERED)
}

/// Returns whether two statements differ only in their values.
pub(super) fn has_conflicting_values(a: &StatementTerms, b: &StatementTerms) -> bool {
    let other_values = !a.values.is_subset(&b.values) && !b.values.is_subset(&a.values);
    other_values && a.overlap(b) >= SAME_EXCEPT_VALUES
}

/// Returns whether a line repeats an entry without another value.
pub(super) fn repeats_entry(entry: &StatementTerms, line: &StatementTerms) -> bool {
    let values_agree = line.values.is_subset(&entry.values) || entry.values.is_subset(&line.values);
    values_agree && (line.similarity(entry) >= 0.6 || entry.containment(line) >= 0.7)
}

/// Returns whether two statements are about the same, so that only one becomes an entry.
pub(super) fn same_topic(a: &StatementTerms, b: &StatementTerms) -> bool {
    const SHARED_MIN: usize = 3;
    // Statements that differ only in their values were already separated as two facts.
    if has_conflicting_values(a, b) {
        return false;
    }
    let values = a.values.shared_count(&b.values);
    let shared = a.stems.shared_count(&b.stems) + values;
    a.overlap(b) >= 0.8
        || (shared >= SHARED_MIN && a.containment(b).max(b.containment(a)) >= SAME_TOPIC)
}
