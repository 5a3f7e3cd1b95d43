//! The last sessions, as `memoird context` shows them: what each was about, and what came of it.
//!
//! The lines are those of the sessions' entries in the daily logs, which exist as soon as a session is saved;
//! weekly summaries contain them days later. Only accepted lines of the sanitized view are shown: nothing
//! external, nothing quarantined, and nothing that misquotes its record.

use std::collections::HashMap;

use chrono::{NaiveDate, NaiveTime};

use crate::{
    compaction::cited_records::CitedRecords,
    memory::{
        address::{self, Stem},
        log::{DailyLog, TextOrigin},
    },
    operations::{error::CommandResult, workspace::MemoryRoot},
    privacy::{self, SanitizedLine, SanitizedLog},
    session::{composed_line::FILES_LABEL, record::RecordHeader},
};

/// How many sessions are shown.
const SESSIONS_MAX: usize = 3;
/// For how many days a session is shown.
const DAYS_MAX: i64 = 14;
/// How many lines are shown of the last session, and of each one before.
const LINES_MAX: [usize; 2] = [8, 4];
/// How many days of a session are read, the last ones.
const LOGS_MAX: usize = 3;
/// How many files of a folder are listed at most.
const FILES_MAX: usize = 20_000;

/// A session with all its records.
struct LastSession {
    /// Its id in the transcript; for a record without one, the id of the record.
    id: String,
    lines: Vec<String>,
}

/// Returns the lines about the last sessions, the newest first.
pub(super) fn last_session_lines(
    root: &MemoryRoot,
    today: NaiveDate,
) -> CommandResult<Vec<String>> {
    let layout = root.vault.layout();
    let (paths, _) = root.vault.files_below(&layout.sessions_dir(), FILES_MAX);
    let recent = |path: String| {
        let stem = layout.stem_at(&path).filter(Stem::is_session)?;
        (0..=DAYS_MAX).contains(&(today - stem.date()).num_days()).then_some((stem, path))
    };
    let mut records: Vec<_> = paths.into_iter().filter_map(recent).collect();
    records.sort_by(|a, b| b.cmp(a));
    let cited = CitedRecords::new(&root.vault, &root.rules);
    let mut reader = EntryReader { root, logs: HashMap::new(), cited };
    let mut sessions: Vec<LastSession> = Vec::new();
    for (stem, path) in records {
        let Some(text) = root.read_sanitized(&path)? else { continue };
        // Files without a record header are ignored, as everywhere.
        let Some(header) = RecordHeader::parse(&text.text) else { continue };
        let id = header.session.clone().unwrap_or_else(|| header.id.clone());
        let known = sessions.iter().position(|it| it.id == id);
        if known.is_none() && sessions.len() == SESSIONS_MAX {
            break;
        }
        let lines = reader.entry_lines(&stem, &header)?;
        let at = known.unwrap_or(sessions.len());
        if known.is_none() {
            let about = header.description.as_ref();
            let about = about.filter(|it| !root.rules.is_forgotten_everywhere(it));
            let Some(about) = about else { continue };
            let head = format!("- {}: {} ({stem})", stem.date(), about.trim());
            sessions.push(LastSession { id, lines: vec![head] });
        }
        let shown = &mut sessions[at].lines;
        let lines_max = LINES_MAX[at.min(LINES_MAX.len() - 1)] + 1;
        for line in lines {
            if shown.len() < lines_max && !shown.contains(&line) {
                shown.push(line);
            }
        }
    }
    Ok(sessions.into_iter().flat_map(|it| it.lines).collect())
}

/// Reads the entries of sessions, and each log and record once.
struct EntryReader<'a> {
    root: &'a MemoryRoot,
    logs: HashMap<NaiveDate, Option<SanitizedLog>>,
    cited: CitedRecords<'a>,
}

impl EntryReader<'_> {
    /// Returns the lines of a session's entries below their heads, those of the last day first.
    fn entry_lines(&mut self, stem: &Stem, header: &RecordHeader) -> CommandResult<Vec<String>> {
        if !header.is_logged {
            return Ok(Vec::new());
        }
        let last = header.ended.map_or(stem.date(), |it| it.date_naive());
        let first = header.started.map_or(last, |it| it.date_naive());
        let days = std::iter::successors(Some(last), NaiveDate::pred_opt);
        let mut lines = Vec::new();
        for day in days.take_while(|it| *it >= first).take(LOGS_MAX) {
            self.read_log(day)?;
            let Some(Some(log)) = self.logs.get(&day) else { continue };
            let cited = &mut self.cited;
            let lines_of_log = log.lines().iter();
            let shown = lines_of_log.filter(|it| is_shown(it, stem) && !cited.are_misquoted_by(it));
            lines.extend(shown.map(|it| format!("  - {}", it.words().trim())));
        }
        Ok(lines)
    }

    fn read_log(&mut self, day: NaiveDate) -> CommandResult<()> {
        if self.logs.contains_key(&day) {
            return Ok(());
        }
        let stem = Stem::day(day);
        let text = self.root.vault.read(&self.root.vault.log_path(&stem))?;
        let log = text.and_then(|it| DailyLog::parse(stem, &it.bytes).ok());
        self.logs.insert(day, log.map(|it| privacy::sanitize(&it, &self.root.rules)));
        Ok(())
    }
}

/// Returns whether a line of a log is shown: one of a session's entry that says what happened.
fn is_shown(line: &SanitizedLine, record: &Stem) -> bool {
    let words = line.words().trim();
    let cites = || address::session_citation(line.text().trim_end());
    let is_head = || {
        let time = words.split_once(' ').map(|it| it.0);
        time.is_some_and(|it| NaiveTime::parse_from_str(it, "%H:%M").is_ok())
    };
    line.origin() != TextOrigin::External
        && !line.is_quarantined()
        && !words.is_empty()
        && !words.starts_with(FILES_LABEL)
        && cites().is_some_and(|it| it.files().any(|(stem, _)| stem == record))
        && !is_head()
}
