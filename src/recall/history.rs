//! Versions of a file: which one a person means, and what changed between two.
//!
//! Pure: the recorded versions, the current file, and the time are passed in. A file that changed since
//! it was last recorded is its own newest version, without a number.

use std::fmt;

use chrono::{DateTime, Duration, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use chrono_tz::Tz;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use crate::{
    config::duration::Span,
    memory::hash::ContentHash,
    recall::search::time::{date_words, relative},
    store::db::lineage::{
        history::{VersionCause, VersionId, VersionRow},
        jobs::RunId,
    },
};

/// The versions of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHistory {
    /// The file, relative to the root.
    pub path: String,
    /// The oldest first; the last one is the current one.
    pub versions: Vec<FileVersion>,
}

/// A version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// Its number; `None` for a current file that is not recorded yet.
    pub id: Option<VersionId>,
    /// What caused it.
    pub cause: VersionCause,
    /// The hash of the bytes; `None` if the file did not exist or its bytes are no longer stored.
    pub hash: Option<ContentHash>,
    /// The number of bytes.
    pub size: Option<u64>,
    /// The run that wrote or read it.
    pub run: Option<RunId>,
    /// The trigger of that run.
    pub trigger: Option<String>,
    /// Since when it existed.
    pub at: DateTime<Utc>,
}

/// The current state of a file.
#[derive(Clone, Copy, Debug)]
pub struct CurrentFile {
    /// The hash of its bytes.
    pub hash: ContentHash,
    /// How many they are.
    pub size: u64,
    /// When it was last changed.
    pub changed: DateTime<Utc>,
}

/// A version, as a person names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSelector {
    /// By its number.
    Version(VersionId),
    /// The version at a time.
    Time(DateTime<Utc>),
}

/// Text that is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a time (expected 2026-04-02, 2026-04-02 14:00, 2026-04-02T14:00:00+02:00, or words like `3 days ago`, `last month`)"
)]
pub struct ParseTimeError(String);

/// How many lines were added and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffStat {
    /// Lines that were added.
    pub added: usize,
    /// Lines that were removed.
    pub removed: usize,
}

/// A range of lines with changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hunk {
    /// Its first line in the old text, from 1; if it has none there, the line before it.
    pub old_start: usize,
    /// How many lines of the old text it spans.
    pub old_lines: usize,
    /// Its first line in the new text, from 1; if it has none there, the line before it.
    pub new_start: usize,
    /// How many lines of the new text it spans.
    pub new_lines: usize,
    /// The lines.
    pub lines: Vec<DiffLine>,
}

/// One line of a [`Hunk`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiffLine {
    /// Its change.
    pub op: DiffOp,
    /// The line with its ending.
    pub text: String,
}

/// How a line changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffOp {
    /// It is in both texts.
    Same,
    /// It was added.
    Added,
    /// It was removed.
    Removed,
}

/// How many unchanged lines are shown around changes.
const CONTEXT_LINES: usize = 3;

impl FileHistory {
    /// Combines the recorded versions (the oldest first) with the current file.
    pub fn new(
        path: String,
        recorded: Vec<VersionRow>,
        current: Option<CurrentFile>,
        now: DateTime<Utc>,
    ) -> Self {
        let mut versions: Vec<FileVersion> = recorded.into_iter().map(FileVersion::from).collect();
        let last = versions.last();
        if last.and_then(|it| it.hash) != current.map(|it| it.hash) {
            // The modification time is limited to between the last record and now.
            let changed = current.map_or(now, |it| it.changed.min(now));
            versions.push(FileVersion {
                id: None,
                cause: if current.is_some() {
                    VersionCause::ExternalWrite
                } else {
                    VersionCause::ExternalRemoval
                },
                hash: current.map(|it| it.hash),
                size: current.map(|it| it.size),
                run: None,
                trigger: None,
                at: last.map_or(changed, |it| it.at.max(changed)),
            });
        }
        Self { path, versions }
    }

    /// Returns the version at a time: the newest one not after it.
    pub fn at(&self, time: DateTime<Utc>) -> Option<&FileVersion> {
        self.versions.iter().rfind(|it| it.at <= time)
    }

    /// Returns the version that a person names.
    pub fn find(&self, point: VersionSelector) -> Option<&FileVersion> {
        match point {
            VersionSelector::Version(id) => self.versions.iter().find(|it| it.id == Some(id)),
            VersionSelector::Time(time) => self.at(time),
        }
    }

    /// Returns the version before another one.
    pub fn previous(&self, version: &FileVersion) -> Option<&FileVersion> {
        let at = self.versions.iter().position(|it| it == version)?;
        self.versions.get(at.checked_sub(1)?)
    }

    /// Returns whether no version is recorded.
    pub fn is_unrecorded(&self) -> bool {
        self.versions.iter().all(|it| it.id.is_none())
    }

    /// Describes the cause of a version.
    pub fn describe_cause(&self, version: &FileVersion) -> String {
        let run = match (version.run, &version.trigger) {
            (Some(run), Some(trigger)) => format!("run {run} ({trigger})"),
            (Some(run), None) => format!("run {run}"),
            (None, _) => String::new(),
        };
        match version.cause {
            VersionCause::ExternalWrite if version.id.is_none() => {
                "changed since, not recorded yet".to_owned()
            }
            VersionCause::ExternalRemoval if version.id.is_none() => {
                "no longer there, not recorded yet".to_owned()
            }
            VersionCause::Written if run.is_empty() => "written".to_owned(),
            VersionCause::Written => format!("written by {run}"),
            VersionCause::Removed if run.is_empty() => "removed".to_owned(),
            VersionCause::Removed => format!("removed by {run}"),
            VersionCause::ReadByRun if run.is_empty() => "as it was read".to_owned(),
            VersionCause::ReadByRun => format!("as {run} read it"),
            VersionCause::ExternalWrite if self.previous(version).is_none() => {
                "first seen".to_owned()
            }
            VersionCause::ExternalWrite => "changed by somebody else".to_owned(),
            VersionCause::ExternalRemoval => "removed by somebody else".to_owned(),
            VersionCause::Forgotten => "forgotten".to_owned(),
            VersionCause::Pruned => "pruned, no longer kept".to_owned(),
        }
    }
}

impl From<VersionRow> for FileVersion {
    fn from(row: VersionRow) -> Self {
        let VersionRow { id, path: _, cause, hash, size, run, trigger, at } = row;
        Self { id: Some(id), cause, hash, size, run, trigger, at }
    }
}

impl FileVersion {
    /// Returns whether the file did not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self.cause, VersionCause::Removed | VersionCause::ExternalRemoval)
    }
}

impl fmt::Display for FileVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "version {}", id.0),
            None => f.write_str("current file"),
        }
    }
}

impl VersionSelector {
    /// Parses the number of a version, or a time.
    pub(crate) fn parse(text: &str, zone: Tz, now: DateTime<Utc>) -> Result<Self, ParseTimeError> {
        match text.trim().parse() {
            Ok(id) => Ok(Self::Version(VersionId(id))),
            Err(_) => parse_time(text, zone, now).map(Self::Time),
        }
    }
}

/// Parses a time as people write it. A day, a minute, or a second means its end, so that everything in
/// it has happened.
pub(crate) fn parse_time(
    text: &str,
    zone: Tz,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, ParseTimeError> {
    let text = text.trim();
    let error = || ParseTimeError(text.to_owned());
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.with_timezone(&Utc));
    }
    if let Some(length) = text.strip_suffix(" ago").and_then(parse_duration) {
        let span = Duration::from_std(length.as_duration());
        return span.ok().and_then(|it| now.checked_sub_signed(it)).ok_or_else(error);
    }
    let clock = |form: &str| NaiveDateTime::parse_from_str(&text.replacen('T', " ", 1), form).ok();
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let words = || {
        let (_, last) = date_words::parse_days(text, now.with_timezone(&zone).date_naive())?;
        Some(last.and_time(NaiveTime::MIN) + Duration::days(1))
    };
    let end = None
        .or_else(|| Some(clock("%Y-%m-%d %H:%M:%S")? + Duration::seconds(1)))
        .or_else(|| Some(clock("%Y-%m-%d %H:%M")? + Duration::minutes(1)))
        .or_else(|| Some(day()?.and_time(NaiveTime::MIN) + Duration::days(1)))
        .or_else(words);
    let end = end.and_then(|it| local_to_utc(it, zone)).ok_or_else(error)?;
    Ok(end - Duration::milliseconds(1))
}

/// Parses `3 days`, `1 hour`, `90m`.
fn parse_duration(text: &str) -> Option<Span> {
    if let Ok(span) = text.parse() {
        return Some(span);
    }
    let (number, unit) = text.trim().split_once(' ')?;
    let unit = match unit.trim().trim_end_matches('s') {
        "second" => "s",
        "minute" => "m",
        "hour" => "h",
        "day" => "d",
        "week" => "w",
        _ => return None,
    };
    let count = number.parse::<u32>().ok().or_else(|| relative::parse_count(number));
    format!("{}{unit}", count?).parse().ok()
}

/// Returns when clocks in a zone show a time. A time that they show twice means the second one, a time
/// that they skip the one soon after.
fn local_to_utc(wall: NaiveDateTime, zone: Tz) -> Option<DateTime<Utc>> {
    // No zone skips more than a day.
    let mut later = (0..=96).map(|quarters| wall + Duration::minutes(15 * quarters));
    let found = later.find_map(|it| zone.from_local_datetime(&it).latest());
    found.map(|it| it.with_timezone(&Utc))
}

/// Counts the lines that came and went between two texts.
pub fn diff_stat(old: &str, new: &str) -> DiffStat {
    let mut counted = DiffStat::default();
    for change in TextDiff::from_lines(old, new).iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => counted.added += 1,
            ChangeTag::Delete => counted.removed += 1,
            ChangeTag::Equal => {}
        }
    }
    counted
}

/// Returns where two texts differ, with some lines around.
pub fn diff_hunks(old: &str, new: &str) -> Vec<Hunk> {
    let diff = TextDiff::from_lines(old, new);
    let mut hunks = Vec::new();
    for ops in diff.grouped_ops(CONTEXT_LINES) {
        let (Some(first), Some(last)) = (ops.first(), ops.last()) else { continue };
        let old_lines = last.old_range().end - first.old_range().start;
        let new_lines = last.new_range().end - first.new_range().start;
        let lines = ops.iter().flat_map(|op| diff.iter_changes(op)).map(|change| DiffLine {
            op: match change.tag() {
                ChangeTag::Equal => DiffOp::Same,
                ChangeTag::Insert => DiffOp::Added,
                ChangeTag::Delete => DiffOp::Removed,
            },
            text: change.value().to_owned(),
        });
        hunks.push(Hunk {
            old_start: first.old_range().start + usize::from(old_lines > 0),
            old_lines,
            new_start: first.new_range().start + usize::from(new_lines > 0),
            new_lines,
            lines: lines.collect(),
        });
    }
    hunks
}

impl Hunk {
    /// Returns the line that begins it in a unified diff.
    pub fn header(&self) -> String {
        let range = |start: usize, lines: usize| match lines {
            1 => start.to_string(),
            _ => format!("{start},{lines}"),
        };
        format!(
            "@@ -{} +{} @@",
            range(self.old_start, self.old_lines),
            range(self.new_start, self.new_lines)
        )
    }
}

impl DiffOp {
    /// Returns the character that begins such a line in a unified diff.
    pub fn prefix(self) -> char {
        match self {
            Self::Same => ' ',
            Self::Added => '+',
            Self::Removed => '-',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[track_caller]
    fn check_time(text: &str, expected: &str) {
        let now = utc("2026-04-13T07:00:00Z");
        let found = parse_time(text, chrono_tz::Europe::Berlin, now);
        let found = found.map(|it| it.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true));
        assert_eq!(found.as_deref().unwrap_or("-"), expected, "{text}");
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        check_time("2026-04-02T14:00:00+02:00", "2026-04-02T12:00:00Z");
        check_time("2026-04-02T12:00:00.250Z", "2026-04-02T12:00:00.250Z");
        check_time("2026-04-02", "2026-04-02T21:59:59.999Z");
        check_time("2026-04-02 14:00", "2026-04-02T12:00:59.999Z");
        check_time("2026-04-02T14:00", "2026-04-02T12:00:59.999Z");
        check_time(" 2026-04-02 14:00:07 ", "2026-04-02T12:00:07.999Z");
        check_time("3 days ago", "2026-04-10T07:00:00Z");
        check_time("two weeks ago", "2026-03-30T07:00:00Z");
        check_time("yesterday", "2026-04-12T21:59:59.999Z");
        check_time("last month", "2026-03-31T21:59:59.999Z");
        check_time("2026-W14", "2026-04-05T21:59:59.999Z");
        check_time("1 hour ago", "2026-04-13T06:00:00Z");
        check_time("90m ago", "2026-04-13T05:30:00Z");
        // Clocks leap from 2 to 3, and fall from 3 to 2.
        check_time("2026-03-29 02:30", "2026-03-29T01:00:59.999Z");
        check_time("2026-10-25 02:30", "2026-10-25T01:30:59.999Z");
        for wrong in ["", "ago", "2026-02-30", "2026-04-02 25:00", "some days ago", "-3 days ago"] {
            check_time(wrong, "-");
        }
    }

    fn row(id: i64, at: &str, cause: VersionCause, text: Option<&str>) -> VersionRow {
        VersionRow {
            id: VersionId(id),
            path: "a.md".to_owned(),
            cause,
            hash: text.map(ContentHash::of),
            size: text.map(|it| it.len() as u64),
            run: matches!(cause, VersionCause::Written).then_some(RunId(3)),
            trigger: matches!(cause, VersionCause::Written).then(|| "tick".to_owned()),
            at: utc(at),
        }
    }

    fn current(text: &str, changed: &str) -> CurrentFile {
        CurrentFile { hash: ContentHash::of(text), size: text.len() as u64, changed: utc(changed) }
    }

    #[test]
    fn what_stands_there_is_the_newest_version() {
        let rows = vec![
            row(4, "2026-04-01T00:00:00Z", VersionCause::Written, Some("one")),
            row(7, "2026-04-05T00:00:00Z", VersionCause::ExternalRemoval, None),
            row(9, "2026-04-06T00:00:00Z", VersionCause::ExternalWrite, Some("two")),
        ];
        let now = utc("2026-04-13T00:00:00Z");
        let history = |current| FileHistory::new("a.md".to_owned(), rows.clone(), current, now);
        let at = |history: &FileHistory, time: &str| {
            history
                .at(utc(time))
                .map_or("-".to_owned(), |it| format!("{it}: {}", history.describe_cause(it)))
        };

        let same = history(Some(current("two", "2026-04-10T00:00:00Z")));
        assert_eq!(same.versions.len(), 3);
        assert_eq!(at(&same, "2026-03-31T23:59:59Z"), "-");
        assert_eq!(at(&same, "2026-04-01T00:00:00Z"), "version 4: written by run 3 (tick)");
        assert_eq!(at(&same, "2026-04-05T12:00:00Z"), "version 7: removed by somebody else");
        assert_eq!(at(&same, "2027-01-01T00:00:00Z"), "version 9: changed by somebody else");

        let edited = history(Some(current("three", "2026-04-10T00:00:00Z")));
        assert_eq!(at(&edited, "2026-04-09T00:00:00Z"), "version 9: changed by somebody else");
        let unnoticed = "current file: changed since, not recorded yet";
        assert_eq!(at(&edited, "2026-04-10T00:00:00Z"), unnoticed);

        // The time of a file may lie: it is neither after now nor before what is known.
        for time in ["2036-01-01T00:00:00Z", "1999-01-01T00:00:00Z"] {
            let edited = history(Some(current("three", time)));
            assert_eq!(at(&edited, "2026-04-13T00:00:00Z"), unnoticed);
            assert_ne!(at(&edited, "2026-04-05T23:00:00Z"), unnoticed);
        }
        let gone = history(None);
        assert!(gone.versions.last().unwrap().is_absent());
        assert_eq!(at(&gone, "2026-04-12T00:00:00Z"), "version 9: changed by somebody else");
    }

    #[track_caller]
    fn check_hunks(old: &str, new: &str, expected: &str) {
        let shown: String = diff_hunks(old, new)
            .into_iter()
            .flat_map(|hunk| {
                let lines =
                    hunk.lines.iter().map(|it| format!("{}{:?}\n", it.op.prefix(), it.text));
                let lines: Vec<String> = lines.collect();
                [vec![hunk.header() + "\n"], lines].concat()
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn hunks_are_those_of_a_unified_diff() {
        check_hunks("a\n", "a\n", "");
        check_hunks("", "a\nb\n", "@@ -0,0 +1,2 @@\n+\"a\\n\"\n+\"b\\n\"\n");
        check_hunks("a\n", "", "@@ -1 +0,0 @@\n-\"a\\n\"\n");
        check_hunks("a\r\nb\n", "a\nb\n", "@@ -1,2 +1,2 @@\n-\"a\\r\\n\"\n+\"a\\n\"\n \"b\\n\"\n");
        check_hunks("a\n", "a", "@@ -1 +1 @@\n-\"a\\n\"\n+\"a\"\n");
        let lines = |changed: &str| format!("1\n2\n3\n4\n{changed}\n6\n7\n8\n9\n");
        check_hunks(
            &lines("old"),
            &lines("new"),
            "@@ -2,7 +2,7 @@\n \"2\\n\"\n \"3\\n\"\n \"4\\n\"\n-\"old\\n\"\n+\"new\\n\"\n \"6\\n\"\n \"7\\n\"\n \"8\\n\"\n",
        );
        assert_eq!(diff_stat("a\nb\n", "b\nc\nd\n"), DiffStat { added: 2, removed: 1 });
    }
}
