//! The last day of the logs, as `memoird context` shows it: what came of it, and what it left open.
//!
//! The week has no summary yet, and `WISDOM.md` chooses what lasts. A session that goes on with yesterday's work
//! needs both the outcome of that day and the place where it stopped.

use std::{
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use chrono::{Days, NaiveDate};

use super::{error::CommandResult, workspace::MemoryRoot};
use crate::{
    compaction::grounding::{self, session::RecordLines},
    engine::{
        Engine as _, LengthBudget, SummaryInput,
        extractive::{
            Extractive,
            corpus_stats::{self, Corpus},
        },
    },
    memory::{
        address::{Citation, Stem},
        decision::Decisions,
        item::{Item, SummarySection},
        log::TextOrigin,
        markdown::LineKind,
        period::{Grain, Period},
    },
    privacy::{self, SanitizedLine, SanitizedLog},
    recall::context::blocks::SourcedBullet,
    store::fs::layout::FileKind,
};

/// How many files of a folder are listed at most.
const FILES_MAX: usize = 20_000;

/// The characters of the bullets to aim at, and the most.
const CHARS: usize = 1_200;
const CHARS_MAX: usize = 1_600;

/// A day with fewer lines is shown together with the one before it.
const LINES_MIN: usize = 4;

/// The days whose words are counted, to know which are common.
const COUNTED_DAYS: Days = Days::new(10);

/// What the last days of the logs say.
pub(super) struct LastDay {
    /// The newest day with a log.
    pub(super) day: NaiveDate,
    /// Outcomes, decisions and what else happened, in the order of a week.
    pub(super) bullets: Vec<SourcedBullet>,
    /// Blockers and open items.
    pub(super) open: Vec<SourcedBullet>,
}

/// Summarizes the newest day of the logs that is not after `today`, without a model and without the lines that are known
/// already.
pub(super) fn last_day(
    root: &MemoryRoot,
    today: NaiveDate,
    is_known: &dyn Fn(&str) -> bool,
) -> CommandResult<Option<LastDay>> {
    let layout = root.vault.layout();
    let (paths, _) = root.vault.files_below(layout.memory_dir(), FILES_MAX);
    let is_log = |it: &String| layout.kind_of(it) == Some(FileKind::Log);
    let stems = paths.iter().filter(|it| is_log(it)).filter_map(|it| layout.stem_at(it));
    let mut stems: Vec<Stem> = stems.filter(|it| it.date() <= today).collect();
    stems.sort();
    let Some(day) = stems.last().map(Stem::date) else { return Ok(None) };
    let from = day.checked_sub_days(COUNTED_DAYS).unwrap_or(NaiveDate::MIN);
    // A log that cannot be read is shown by `memoird status`; it must not keep the others from a session.
    let read = |stem: &Stem| root.vault.read_log(stem).ok().flatten();
    let recent = stems.iter().filter(|it| it.date() >= from).filter_map(read);
    let logs: Vec<SanitizedLog> = recent.map(|it| privacy::sanitize(&it, &root.rules)).collect();
    let mut corpus = Corpus::default();
    for words in corpus_stats::tokenize(&logs) {
        corpus.add(words);
    }
    let period = Period::containing(Grain::Week, day);
    let newest = &without_barred(root, newest_days(&logs), is_known)?[..];
    let budget = LengthBudget { target_chars: CHARS, limit_chars: CHARS_MAX, verbatim: false };
    let counts = corpus.counts(period);
    let input = SummaryInput { period, logs: newest, weeks: &[], budget, counts };
    // Its only error is that there is nothing to say: greetings, headings, text of others.
    let Ok(draft) = Extractive.summarize(&input) else { return Ok(None) };
    let mut found = LastDay { day, bullets: Vec::new(), open: Vec::new() };
    for (section, items) in draft.sections {
        let shown = items.into_iter().filter_map(|it| bullet(root, newest, it));
        match section {
            SummarySection::BlockersAndOpenItems => found.open.extend(shown),
            _ => found.bullets.extend(shown),
        }
    }
    Ok(Some(found))
}

/// Returns logs without the lines that are known, that misquote the record of a session, or whose statement a person
/// deleted from a file: it must not come back here.
fn without_barred(
    root: &MemoryRoot,
    logs: &[SanitizedLog],
    is_known: &dyn Fn(&str) -> bool,
) -> CommandResult<Vec<SanitizedLog>> {
    let layout = root.vault.layout();
    let decisions = root.vault.read_text(&layout.decisions())?;
    let decisions = decisions.map(|it| Decisions::parse(&it)).unwrap_or_default();
    let mut records = HashMap::new();
    let mut record = |stem: &Stem| {
        let path = layout.source_path(stem);
        let text = || root.vault.read_text(&path).ok().flatten();
        let read = || RecordLines::parse(stem, &text()?).map(Rc::new);
        records.entry(stem.clone()).or_insert_with(read).clone()
    };
    let mut shown = Vec::new();
    for log in logs {
        let mut is_barred = |line: &SanitizedLine| {
            let is_deleted = |path| decisions.is_deleted(path, [line.text()]);
            let is_heading = matches!(line.kind(), LineKind::Heading { .. });
            grounding::session::misquotes_record(line, &root.rules, &mut record)
                || (line.is_content() && !is_heading && is_known(line.words().trim()))
                || (line.is_content() && decisions.files_with_deleted().any(is_deleted))
        };
        let barred: BTreeSet<u32> =
            log.lines().iter().filter(|it| is_barred(it)).map(SanitizedLine::number).collect();
        shown.push(log.without(|it| barred.contains(&it.number())));
    }
    Ok(shown)
}

/// Returns the logs of the newest day; of the newest ones if it has hardly a line.
fn newest_days(logs: &[SanitizedLog]) -> &[SanitizedLog] {
    let mut from = logs.len();
    let mut lines = 0;
    while let Some(log) = from.checked_sub(1).and_then(|it| logs.get(it)) {
        let begins_day = logs.get(from).is_some_and(|it| it.date() != log.date());
        if begins_day && lines >= LINES_MIN {
            break;
        }
        lines += log.lines().iter().filter(|it| it.is_content()).count();
        from -= 1;
    }
    &logs[from..]
}

/// Returns an item as it is shown; `None` if others wrote it, or it looks like an attack.
fn bullet(root: &MemoryRoot, logs: &[SanitizedLog], item: Item) -> Option<SourcedBullet> {
    let is_own = |citation: &Citation| {
        citation.addresses().all(|at| {
            let line = logs.iter().find(|it| *it.stem() == at.stem).and_then(|it| it.line(at.line));
            line.is_some_and(|it| it.origin() != TextOrigin::External && !it.is_quarantined())
        })
    };
    let text = root.rules.sanitize_output(&item.text);
    let is_shown = item.citation.as_ref().is_some_and(is_own)
        && privacy::suspicious_lines(&text).is_empty()
        && !root.rules.is_forgotten_everywhere(&text);
    let since = item.citation.as_ref().map(Citation::oldest_date);
    is_shown.then_some(SourcedBullet { text, citation: item.citation, since })
}
