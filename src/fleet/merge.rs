//! What has to happen with a file, from its content here, in the last common state, and in the store. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::memory::hash::ContentHash;

/// A file of this root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalContent {
    Present(ContentHash),
    Absent,
    /// It exists, or may exist, and could not be read: nothing is known about it.
    Unknown,
}

/// What changed since the last common state, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileChange {
    /// Nothing, or the same on both sides.
    None,
    /// Written here.
    WrittenHere,
    /// Removed here.
    RemovedHere,
    /// Written in the store.
    WrittenThere,
    /// Removed from the store.
    RemovedThere,
    /// Changed on both sides; removal counts as a change.
    Conflict,
    /// It could not be read here, so it stays as it is on both sides.
    Skipped,
}

/// Compares one file.
pub(crate) fn compare(
    here: LocalContent,
    base: Option<ContentHash>,
    there: Option<ContentHash>,
) -> FileChange {
    let here = match here {
        LocalContent::Unknown => return FileChange::Skipped,
        LocalContent::Absent => None,
        LocalContent::Present(hash) => Some(hash),
    };
    match (here != base, there != base) {
        _ if here == there => FileChange::None,
        (true, true) => FileChange::Conflict,
        (true, false) if here.is_some() => FileChange::WrittenHere,
        (true, false) => FileChange::RemovedHere,
        (false, _) if there.is_some() => FileChange::WrittenThere,
        (false, _) => FileChange::RemovedThere,
    }
}

/// Compares all files that exist on any side.
pub(crate) fn compare_all(
    here: &BTreeMap<String, LocalContent>,
    base: &BTreeMap<String, ContentHash>,
    there: &BTreeMap<String, ContentHash>,
) -> BTreeMap<String, FileChange> {
    let paths: BTreeSet<&String> = here.keys().chain(base.keys()).chain(there.keys()).collect();
    let change = |path: &String| {
        let here = here.get(path).copied().unwrap_or(LocalContent::Absent);
        compare(here, base.get(path).copied(), there.get(path).copied())
    };
    paths.into_iter().map(|path| (path.clone(), change(path))).collect()
}

/// A person must confirm the removal of more than this share of the files, in percent, …
const SHARE_MAX_PERCENT: usize = 20;
/// … if it is at least this many, …
const SHARE_FILES_MIN: usize = 5;
/// … or of more than this many, or of all of them.
const FILES_MAX: usize = 50;

/// Returns whether so large a part of the `known` files is gone that a person must confirm it.
pub(crate) fn is_mass_removal(gone: usize, known: usize) -> bool {
    let share = gone * 100 > known * SHARE_MAX_PERCENT && gone >= SHARE_FILES_MIN;
    gone > 0 && (share || gone > FILES_MAX || (gone == known && known > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_has_one_answer() {
        use FileChange::{
            Conflict, None as Nothing, RemovedHere, RemovedThere, Skipped, WrittenHere,
            WrittenThere,
        };
        use LocalContent::{Absent, Present, Unknown};
        let [a, b, c] = ["a", "b", "c"].map(ContentHash::of);
        for (here, base, there, expected) in [
            (Absent, None, None, Nothing),
            (Present(a), Some(a), Some(a), Nothing),
            // Both did the same.
            (Present(b), Some(a), Some(b), Nothing),
            (Absent, Some(a), None, Nothing),
            (Present(a), None, Some(a), Nothing),
            (Present(b), Some(a), Some(a), WrittenHere),
            (Present(b), None, None, WrittenHere),
            (Absent, Some(a), Some(a), RemovedHere),
            (Present(a), Some(a), Some(b), WrittenThere),
            (Absent, None, Some(b), WrittenThere),
            (Present(a), Some(a), None, RemovedThere),
            (Present(b), Some(a), Some(c), Conflict),
            (Present(b), None, Some(c), Conflict),
            // Removal against change, both ways.
            (Absent, Some(a), Some(b), Conflict),
            (Present(b), Some(a), None, Conflict),
            (Unknown, Some(a), Some(b), Skipped),
            (Unknown, Some(a), None, Skipped),
            (Unknown, None, None, Skipped),
        ] {
            assert_eq!(compare(here, base, there), expected, "{here:?} {base:?} {there:?}");
        }
    }

    #[test]
    fn mass_removals_need_a_person() {
        for (gone, known, expected) in [
            (0, 0, false),
            (1, 1, false),
            (2, 2, true),
            (4, 10, false),
            (5, 10, true),
            (51, 1000, true),
        ] {
            assert_eq!(is_mass_removal(gone, known), expected, "{gone} of {known}");
        }
    }
}
