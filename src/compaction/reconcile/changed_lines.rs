//! Finds the cited lines of a file that changed.
//!
//! The database says where the lines of its version went. The citing file may cite another version:
//! it came from another machine, from version control, or from a backup, or the database did. So
//! the hashes that the citing file records decide, then its words; the database alone never does. A
//! line that is not found is cited by a number that no line has. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    line_map::{LineHashes, LineMap},
    source_match::{CitedLine, SIMILAR_SHARE, word_overlap},
};
use crate::{
    memory::{
        address::{
            Address, Citation, Stem, is_removed_line, original_line_number, removed_line_number,
        },
        hash::ContentHash,
        log::DailyLog,
    },
    privacy::{SanitizedLine, SanitizedLog},
    store::db::lineage::record::LogRecord,
    text::words::significant_words,
};

/// The changed logs and cited summaries, by name.
pub(crate) type ChangedFiles = BTreeMap<Stem, ChangedLines>;

/// Which version of a changed file the citations without hashes of a summary are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CitedVersion {
    /// The present one.
    Present,
    /// The one that the database recorded.
    Recorded,
    /// Probably the recorded one, unless the words are elsewhere.
    Probable,
    /// Another one, or it is not known which: only the words decide.
    Unknown,
}

/// The lines of a changed file: where they went, and what it says now.
#[derive(Clone, Debug)]
pub(crate) struct ChangedLines {
    moves: LineMap,
    now: PresentLines,
}

/// The present lines of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct PresentLines {
    first: u32,
    lines: Vec<PresentLine>,
}

#[derive(Clone, Debug)]
struct PresentLine {
    /// The first 4 hex digits of its hash.
    hash: String,
    text: String,
}

impl PresentLine {
    /// Returns whether nothing is written there. The sanitized text of other lines may be empty.
    fn is_blank(&self) -> bool {
        self.text.trim().is_empty() && self.hash == ContentHash::of(self.text.trim()).hex4()
    }
}

impl PresentLines {
    /// Reads the lines of a log.
    pub(crate) fn of_log(log: &SanitizedLog) -> Self {
        let line =
            |it: &SanitizedLine| PresentLine { hash: it.hash().hex4(), text: it.text().to_owned() };
        let first = log.lines().first().map_or(1, SanitizedLine::number);
        Self { first, lines: log.lines().iter().map(line).collect() }
    }

    /// Reads the lines of a weekly or monthly file.
    pub(crate) fn of_summary(stem: &Stem, text: &str) -> Self {
        let Ok(log) = DailyLog::parse(stem.clone(), text.as_bytes()) else {
            return Self::default();
        };
        let lines = log.lines();
        let line = |it: &(u32, &str, _)| PresentLine {
            hash: ContentHash::of(it.1).hex4(),
            text: it.1.to_owned(),
        };
        Self { first: lines.first().map_or(1, |it| it.0), lines: lines.iter().map(line).collect() }
    }

    fn get(&self, number: u32) -> Option<&PresentLine> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.lines.get(at).filter(|it| !it.is_blank())
    }

    fn numbered(&self) -> impl Iterator<Item = (u32, &PresentLine)> {
        (self.first..).zip(&self.lines).filter(|(_, it)| !it.is_blank())
    }
}

impl ChangedLines {
    /// Compares two versions of a file; `now` are the lines of the new one.
    pub(crate) fn between(old: &LogRecord, new: &LogRecord, now: PresentLines) -> Self {
        let hashes =
            |it: &LogRecord| LineHashes { first: it.first_line, hashes: it.line_hashes.clone() };
        Self { moves: LineMap::between(&hashes(old), &hashes(new)), now }
    }

    /// Returns whether no line was added, removed, or changed, except blank ones.
    pub(crate) fn only_moved(&self) -> bool {
        self.moves.only_moved()
    }

    /// Returns the present number of the line that has this hash and was cited as `line`. `words`
    /// is the text that cites it: a short hash may match an unrelated line.
    fn line_with_hash(&self, line: u32, hash: &str, words: &str) -> Option<u32> {
        let has_hash = |it: &u32| self.now.get(*it).is_some_and(|it| it.hash == hash);
        let recorded = || self.moves.new_line(line).filter(has_hash);
        Some(line).filter(has_hash).or_else(recorded).or_else(|| {
            let spoken = significant_words(words);
            let fits = |it: &PresentLine| {
                it.hash == hash && !significant_words(&it.text).is_disjoint(&spoken)
            };
            let lines = self.now.numbered().filter(|it| fits(it.1)).map(|it| it.0);
            lines.min_by_key(|it| it.abs_diff(original_line_number(line)))
        })
    }

    /// Returns the present number of a line that was cited without a hash, for these words.
    fn line_with_words(&self, line: u32, words: &str, version: CitedVersion) -> Option<u32> {
        let says = |it: &u32| self.now.get(*it).is_some_and(|it| states(&it.text, words));
        let moved = self.moves.new_line(line);
        match version {
            CitedVersion::Present => Some(line).filter(|it| self.now.get(*it).is_some()).or(moved),
            CitedVersion::Recorded | CitedVersion::Probable if !self.moves.had_line(line) => {
                Some(line)
            }
            CitedVersion::Recorded | CitedVersion::Probable => {
                moved.or_else(|| self.moves.rewritten_line(line).filter(says))
            }
            CitedVersion::Unknown => {
                let lines = self.now.numbered().map(|it| it.0).filter(says);
                let nearest = || lines.min_by_key(|it| it.abs_diff(line));
                let said = moved.filter(says).or_else(|| Some(line).filter(says));
                // A heading has too few words to show anything. A forgotten line shows none, either.
                let is_bare_heading = |it: &u32| {
                    let is_bare =
                        |it: &str| it.starts_with('#') && significant_words(it).is_empty();
                    self.now.get(*it).is_some_and(|it| is_bare(&it.text))
                };
                said.or_else(nearest).or_else(|| moved.filter(is_bare_heading))
            }
        }
    }

    /// Returns the number by which a lost line is cited: no line has it, and it says where the line
    /// would be.
    fn lost_line(&self, line: u32) -> u32 {
        removed_line_number(self.moves.line_or_position(original_line_number(line)))
    }
}

/// Returns whether a line states what a text says, as far as words and numbers show.
fn states(line: &str, text: &str) -> bool {
    let (here, there) = (numbers(line), numbers(text));
    word_overlap(line, text) >= SIMILAR_SHARE && (here.is_subset(&there) || there.is_subset(&here))
}

/// Returns the present sources of a memory or an entry with these words, each with the hash of its
/// line if recorded. Lines that are gone keep their hash, so that they are found if they return.
/// `version` is what sources without a hash are about.
pub(crate) fn present_sources(
    changed: &ChangedFiles,
    sources: &[CitedLine],
    words: &str,
    version: CitedVersion,
) -> Vec<CitedLine> {
    let mut found: Vec<CitedLine> = Vec::new();
    for (at, hash) in sources {
        let Some(lines) = changed.get(&at.stem) else {
            found.push((at.clone(), hash.clone()));
            continue;
        };
        // The hash of a line of a summary covers the citation at its end, which changes.
        let may_differ = hash.is_none() || at.stem.is_summary();
        let line = hash.as_ref().and_then(|it| lines.line_with_hash(at.line, it, words));
        let line = match line {
            None if may_differ && !is_removed_line(at.line) => {
                lines.line_with_words(at.line, words, version)
            }
            line => line,
        };
        let line = line.unwrap_or_else(|| lines.lost_line(at.line));
        found.push((Address { stem: at.stem.clone(), line }, hash.clone()));
    }
    let mut taken = BTreeSet::new();
    found.retain(|(at, _)| is_removed_line(at.line) || taken.insert(at.clone()));
    // An address names one line.
    for (at, _) in found.iter_mut().filter(|(at, _)| is_removed_line(at.line)) {
        while !taken.insert(at.clone()) {
            at.line += 1;
        }
    }
    found
}

/// Returns the present lines of a citation without hashes, for these words.
///
/// A line that is gone leaves the citation if the others state the same. Otherwise it is cited by a
/// number that no line has, so that a reader finds the source gone.
pub(crate) fn present_citation(
    changed: &ChangedFiles,
    citation: &Citation,
    words: &str,
    version_of: &dyn Fn(&Stem) -> CitedVersion,
) -> Citation {
    if !citation.files().any(|(stem, _)| changed.contains_key(stem)) {
        return citation.clone();
    }
    let has = |versions: &[CitedVersion]| {
        let mut stems = citation.files().map(|it| it.0).filter(|it| changed.contains_key(*it));
        stems.any(|it| versions.contains(&version_of(it)))
    };
    let find = |version_of: &dyn Fn(&Stem) -> CitedVersion| {
        lines_of_version(changed, citation, words, version_of)
    };
    let likely = find(&|it| match version_of(it) {
        CitedVersion::Unknown => CitedVersion::Probable,
        version => version,
    });
    let others = || [CitedVersion::Recorded, CitedVersion::Present].map(|it| find(&|_| it));
    let says_more = |best: FoundLines, other: FoundLines| {
        let more = said_words(&other.said, words) > said_words(&best.said, words);
        if more { other } else { best }
    };
    // All lines together show of which version a citation is.
    let found = if has(&[CitedVersion::Probable, CitedVersion::Unknown]) {
        let states_all = |it: &FoundLines| it.lost.is_empty() && covers(&it.said, words);
        let mut all = std::iter::once(likely).chain(others());
        // People add words that no line says: then each line must say its part.
        let by_words = || {
            find(&|it| match version_of(it) {
                CitedVersion::Probable => CitedVersion::Unknown,
                version => version,
            })
        };
        all.find(states_all).unwrap_or_else(|| says_more(find(version_of), by_words()))
    } else if has(&[CitedVersion::Present]) {
        others().into_iter().fold(likely, says_more)
    } else {
        likely
    };
    found.citation(words).unwrap_or_else(|| citation.clone())
}

/// The lines of a citation, as far as they were found.
#[derive(Default)]
struct FoundLines {
    present: Vec<Address>,
    lost: Vec<Address>,
    /// What the present lines of changed files say.
    said: String,
}

fn lines_of_version(
    changed: &ChangedFiles,
    citation: &Citation,
    words: &str,
    version_of: &dyn Fn(&Stem) -> CitedVersion,
) -> FoundLines {
    let mut found = FoundLines::default();
    for at in citation.addresses() {
        let Some(lines) = changed.get(&at.stem) else {
            found.present.push(at);
            continue;
        };
        let line = Some(at.line).filter(|it| !is_removed_line(*it));
        match line.and_then(|it| lines.line_with_words(it, words, version_of(&at.stem))) {
            Some(line) => {
                found.said.extend(lines.now.get(line).map(|it| format!("{}\n", it.text)));
                found.present.push(Address { line, ..at });
            }
            None => found.lost.push(Address { line: removed_line_number(at.line), ..at }),
        }
    }
    found
}

impl FoundLines {
    fn citation(mut self, words: &str) -> Option<Citation> {
        if self.lost.is_empty()
            || !significant_words(words).is_subset(&significant_words(&self.said))
        {
            self.present.append(&mut self.lost);
        }
        Citation::from_addresses(&self.present)
    }
}

/// Returns whether lines say nearly all words of a text, and all its numbers.
fn covers(lines: &str, text: &str) -> bool {
    let said = said_words(lines, text);
    let has_numbers = numbers(text).is_subset(&significant_words(lines));
    has_numbers && said * 5 >= significant_words(text).len() * 4
}

/// Returns how many words of a text some lines say.
fn said_words(lines: &str, text: &str) -> usize {
    significant_words(text).intersection(&significant_words(lines)).count()
}

/// Returns the words of a text with digits.
fn numbers(text: &str) -> BTreeSet<String> {
    let mut words = significant_words(text);
    words.retain(|it| it.bytes().any(|b| b.is_ascii_digit()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        memory::hash::hex4_of,
        privacy::{self, PrivacyRules},
    };

    const STEM: &str = "2026-04-02";

    fn record(text: &str) -> (LogRecord, PresentLines) {
        let log = DailyLog::parse(STEM.parse().unwrap(), text.as_bytes()).unwrap();
        let log = privacy::sanitize(&log, &PrivacyRules::default());
        (LogRecord::of(&log, String::new()), PresentLines::of_log(&log))
    }

    fn changed(old: &str, new: &str) -> ChangedFiles {
        let ((old, _), (new, now)) = (record(old), record(new));
        [(STEM.parse().unwrap(), ChangedLines::between(&old, &new, now))].into()
    }

    fn hash(line: &str) -> String {
        hex4_of(ContentHash::of(line).prefix64())
    }

    const HENK: &str = "- Henk prefers tea";
    const NOOR: &str = "- Noor met Priya";

    /// `cited` and `expected` are line numbers; the cited line said [`HENK`].
    #[track_caller]
    fn check_hash(recorded: &str, now: &str, cited: u32, expected: u32) {
        let at = |line| Address { stem: STEM.parse().unwrap(), line };
        let sources = [(at(cited), Some(hash(HENK)))];
        let changed = changed(recorded, now);
        let found = present_sources(&changed, &sources, "Henk prefers tea", CitedVersion::Recorded);
        assert_eq!(found, [(at(expected), Some(hash(HENK)))], "{recorded:?} {now:?}");
    }

    #[test]
    fn a_line_is_found_by_its_hash_whatever_the_database_recorded() {
        let log = |lines: &[&str]| lines.join("\n");
        check_hash(&log(&[HENK, NOOR]), &log(&["top", HENK, NOOR]), 1, 2);
        // The file cites the present version already, or one that nobody recorded.
        check_hash(&log(&[HENK, NOOR]), &log(&["top", HENK, NOOR]), 2, 2);
        check_hash(&log(&[HENK, NOOR]), &log(&["top", "two", HENK, NOOR]), 2, 3);
        check_hash(&log(&[HENK, NOOR]), NOOR, 1, 10_000_001);
        check_hash(&log(&["top", HENK]), &log(&["top", NOOR]), 2, 10_000_002);
        check_hash(NOOR, &log(&[HENK, NOOR]), 10_000_001, 1);
        check_hash(&log(&["a", "b"]), &log(&["a", "x", "b"]), 10_000_002, 10_000_003);
    }

    #[track_caller]
    fn check_words(recorded: &str, now: &str, version: CitedVersion, cited: &str, expected: &str) {
        let found = present_citation(
            &changed(recorded, now),
            &cited.parse().unwrap(),
            "Henk prefers tea",
            &|_| version,
        );
        assert_eq!(found.to_string(), expected, "{recorded:?} {now:?} {version:?}");
    }

    #[test]
    fn without_a_hash_the_words_decide_between_the_versions() {
        use CitedVersion::{Present, Recorded, Unknown};
        let log = |lines: &[&str]| lines.join("\n");
        let (old, new) = (log(&[HENK, NOOR]), log(&["top", HENK, NOOR]));
        for version in [Present, Unknown] {
            check_words(&old, &new, version, "2026-04-02:1", "2026-04-02:2");
            check_words(&old, &new, version, "2026-04-02:2", "2026-04-02:2");
        }
        check_words(&old, &new, Recorded, "2026-04-02:1", "2026-04-02:2");
        check_words(&old, &new, Unknown, "2026-04-02:3", "2026-04-02:2");
        check_words(&old, &new, Recorded, "2026-04-02:1-2", "2026-04-02:2-3");
        check_words(&old, &new, Recorded, "2026-04-02:9", "2026-04-02:9");
        check_words(&old, NOOR, Recorded, "2026-04-02:1", "2026-04-02:10000001");
        check_words(&old, NOOR, Recorded, "2026-04-02:10000001", "2026-04-02:10000001");
        let with_other = "2026-04-02:1; 2026-04-03:1";
        check_words(&old, NOOR, Recorded, with_other, "2026-04-02:10000001; 2026-04-03:1");
        let twice = log(&[HENK, "- Henk prefers tea, says Noor"]);
        check_words(&twice, HENK, Recorded, "2026-04-02:1-2", "2026-04-02:1");
        let other = log(&["- Henk prefers coffee and tea", NOOR]);
        check_words(&old, &other, Recorded, "2026-04-02:1", "2026-04-02:1");
        check_words(&old, &log(&[NOOR, NOOR]), Recorded, "2026-04-02:1", "2026-04-02:10000001");
    }

    #[test]
    fn words_that_a_person_added_do_not_hide_which_version_is_cited() {
        let log = |lines: &[&str]| lines.join("\n");
        let changed = changed(&log(&[HENK, NOOR]), &log(&["- Antenna shipped", HENK, NOOR]));
        for cited in ["2026-04-02:1", "2026-04-02:2"] {
            let found = present_citation(
                &changed,
                &cited.parse().unwrap(),
                "Henk prefers tea (until 2027)",
                &|_| CitedVersion::Probable,
            );
            assert_eq!(found.to_string(), "2026-04-02:2", "{cited}");
        }
    }

    #[test]
    fn a_forgotten_line_supports_nothing() {
        let mut changed = changed(&[NOOR, HENK].join("\n"), &[NOOR, HENK].join("\n"));
        let lines = &mut changed.get_mut(&STEM.parse::<Stem>().unwrap()).unwrap().now.lines;
        lines[0].text.clear();
        let found = |words: &str| {
            let cited = "2026-04-02:1".parse().unwrap();
            present_citation(&changed, &cited, words, &|_| CitedVersion::Unknown).to_string()
        };
        assert_eq!(found("Priya met the mayor"), "2026-04-02:10000001");
        assert_eq!(found("Henk prefers tea"), "2026-04-02:2");
    }

    #[test]
    fn another_number_is_another_statement() {
        assert!(states("- Measured 14 ms at the gate, twice", "Measured 14 ms at the gate"));
        assert!(!states("- Measured 15 ms at the gate", "Measured 14 ms at the gate"));
    }
}
