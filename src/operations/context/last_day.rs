//! The last day of the logs, as `memoird context` shows it: what came of it, and what it left open.
//!
//! The week has no summary yet, and `WISDOM.md` chooses what lasts. A session that goes on with yesterday's work
//! needs both the outcome of that day and the place where it stopped.

use chrono::{Days, NaiveDate};

use crate::{
    compaction::cited_records::CitedRecords,
    engine::{
        Engine as _, LengthBudget, SummaryInput,
        extractive::{
            Extractive,
            corpus_stats::{self, Corpus},
        },
    },
    memory::{
        address::{Address, Citation, Stem},
        decision::Decisions,
        item::{Item, SummarySection},
        log::TextOrigin,
        markdown::LineKind,
        period::{Grain, Period},
    },
    operations::{error::CommandResult, workspace::MemoryRoot},
    privacy::{self, SanitizedLine, SanitizedLog},
    recall::context::blocks::{SourcedBullet, ticked},
};

/// The characters of the bullets to aim at, and the most: of the day, and of what it ended with.
const CHARS: usize = 900;
const CHARS_MAX: usize = 1_200;
const END_CHARS: usize = 500;
const END_CHARS_MAX: usize = 700;

/// The last part of each log, and the most lines of it, are summarized separately, too: a session goes on from there, and
/// the ranking of the whole day often passes over it.
const END_DIVISOR: usize = 3;
const END_LINES_MAX: usize = 12;

/// A day with fewer lines is shown together with the one before it.
const LINES_MIN: usize = 4;

/// The days whose words are counted, to know which are common.
const COUNTED_DAYS: Days = Days::new(10);

/// What the last days of the logs say.
pub(super) struct LastDay {
    /// The newest day with a log.
    pub(super) day: NaiveDate,
    /// Outcomes, decisions and what else happened, in the order of a week; what the day ended with last.
    pub(super) bullets: Vec<SourcedBullet>,
    /// Blockers and open items.
    pub(super) open: Vec<SourcedBullet>,
    /// The logs of the last days, oldest first.
    pub(super) logs: Vec<SanitizedLog>,
}

impl LastDay {
    /// Returns whether a bullet cites some of these lines.
    fn cites(&self, lines: Option<&Citation>) -> bool {
        let all = self.bullets.iter().chain(&self.open);
        lines.is_some_and(|lines| {
            all.filter_map(|it| it.citation.as_ref()).any(|it| it.overlaps(lines))
        })
    }
}

/// Summarizes the newest day of these logs, oldest first, that is not after `today`, without a model and without the lines
/// that are known already.
pub(super) fn last_day(
    root: &MemoryRoot,
    logs: &[(Stem, String)],
    today: NaiveDate,
    is_known: &dyn Fn(&str) -> bool,
) -> CommandResult<Option<LastDay>> {
    let past = || logs.iter().map(|it| &it.0).filter(|it| it.date() <= today);
    let Some(day) = past().next_back().map(Stem::date) else { return Ok(None) };
    let from = day.checked_sub_days(COUNTED_DAYS).unwrap_or(NaiveDate::MIN);
    // A log that cannot be read is shown by `memoird status`; it must not keep the others from a session.
    let read = |stem: &Stem| root.vault.read_log(stem).ok().flatten();
    let recent = past().filter(|it| it.date() >= from).filter_map(read);
    let logs: Vec<SanitizedLog> = recent.map(|it| privacy::sanitize(&it, &root.rules)).collect();
    let mut corpus = Corpus::default();
    for words in corpus_stats::tokenize(&logs) {
        corpus.add(words);
    }
    let period = Period::containing(Grain::Week, day);
    let newest = without_barred(root, newest_days(&logs), is_known)?;
    let counts = corpus.counts(period);
    let mut found = LastDay { day, bullets: Vec::new(), open: Vec::new(), logs: Vec::new() };
    let end: Vec<SanitizedLog> = newest.iter().map(end_of).collect();
    for (logs, target_chars, limit_chars) in
        [(&newest, CHARS, CHARS_MAX), (&end, END_CHARS, END_CHARS_MAX)]
    {
        let budget = LengthBudget { target_chars, limit_chars, verbatim: false };
        let input = SummaryInput { period, logs, weeks: &[], budget, counts, check: &|_| None };
        // Its only error is that there is nothing to say: greetings, headings, text of others.
        let Ok(draft) = Extractive.summarize(&input) else { continue };
        let items = draft
            .sections
            .into_iter()
            .flat_map(|(section, all)| all.into_iter().map(move |it| (section, it)));
        let new = items.filter(|(_, it)| !found.cites(it.citation.as_ref()));
        let shown = new.filter_map(|(section, it)| Some((section, bullet(root, &newest, it)?)));
        for (section, bullet) in shown.collect::<Vec<_>>() {
            match section {
                SummarySection::BlockersAndOpenItems => found.open.push(bullet),
                _ => found.bullets.push(bullet),
            }
        }
    }
    found.logs = logs;
    Ok(Some(found))
}

/// Returns a log with its headings and the lines of its last part alone. That begins with a block or an item of a list,
/// so that no table loses its head; a log without such a place near its end has none.
fn end_of(log: &SanitizedLog) -> SanitizedLog {
    let is_text =
        |it: &SanitizedLine| it.is_content() && !matches!(it.kind(), LineKind::Heading { .. });
    let lines = log.lines();
    let content = lines.iter().filter(|it| is_text(it)).count();
    let wanted = (content / END_DIVISOR).min(END_LINES_MAX);
    let (mut taken, mut first) = (0, lines.len());
    while let Some(line) = first.checked_sub(1).and_then(|it| lines.get(it)) {
        let begins = lines.get(first).is_some_and(|it| {
            matches!(it.kind(), LineKind::ListItem { indent: 0, .. }) || !is_text(line)
        });
        if taken >= wanted && begins {
            break;
        }
        taken += usize::from(is_text(line));
        first -= 1;
    }
    let is_end = wanted > 0 && taken <= 2 * END_LINES_MAX;
    let first = lines.get(first).filter(|_| is_end).map_or(u32::MAX, SanitizedLine::number);
    log.without(|it| is_text(it) && it.number() < first)
}

/// Returns logs without the lines that are known, that misquote the record of a session, or whose statement a person
/// deleted from a file: it must not come back here.
fn without_barred(
    root: &MemoryRoot,
    logs: &[SanitizedLog],
    is_known: &dyn Fn(&str) -> bool,
) -> CommandResult<Vec<SanitizedLog>> {
    let decisions = root.vault.read_text(&root.vault.layout().decisions())?;
    let decisions = decisions.map(|it| Decisions::parse(&it)).unwrap_or_default();
    let mut records = CitedRecords::new(&root.vault, &root.rules);
    let is_barred = |line: &SanitizedLine| {
        let is_deleted = |path| decisions.is_deleted(path, [line.text()]);
        let is_heading = matches!(line.kind(), LineKind::Heading { .. });
        line.is_content()
            && (decisions.files_with_deleted().any(is_deleted)
                || (!is_heading && is_known(line.words().trim())))
    };
    let shown = logs.iter().map(|it| records.without_misquotes(it.without(is_barred)));
    Ok(shown.collect())
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

/// Returns an item as it is shown, a ticked task as done; `None` if others wrote it, or it looks like an attack.
fn bullet(root: &MemoryRoot, logs: &[SanitizedLog], item: Item) -> Option<SourcedBullet> {
    let line_at =
        |at: &Address| logs.iter().find(|it| *it.stem() == at.stem).and_then(|it| it.line(at.line));
    let is_own = |citation: &Citation| {
        citation.addresses().all(|at| {
            let line = line_at(&at);
            line.is_some_and(|it| it.origin() != TextOrigin::External && !it.is_quarantined())
        })
    };
    let is_ticked = |citation: &Citation| {
        let line = |at| line_at(&at).is_some_and(|it| ticked(it.kind()) == Some(true));
        citation.addresses().all(line)
    };
    let done = if item.citation.as_ref().is_some_and(is_ticked) { "done: " } else { "" };
    let text = format!("{done}{}", root.rules.sanitize_output(&item.text));
    let is_shown = item.citation.as_ref().is_some_and(is_own)
        && privacy::suspicious_lines(&text).is_empty()
        && !root.rules.is_forgotten_everywhere(&text);
    let since = item.citation.as_ref().map(Citation::oldest_date);
    is_shown.then_some(SourcedBullet { text, citation: item.citation, since })
}
