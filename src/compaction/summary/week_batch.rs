//! Asks for a week and its days in one request if both are due, so that a model reads the logs
//! once.
//!
//! The days are written first, each like one that was asked alone; the draft of the week stays with
//! the engine until its job. If only some days of a week are due, each is asked alone, unless the
//! request was sent before and a crash interrupted the run.

use std::collections::{BTreeSet, HashMap};

use super::draft::SummaryDrafter;
use crate::compaction::{
    error::JobFailure,
    plan::{CompactionJob, DueReason},
};
use crate::{
    engine::{Extraction, StatementDraft},
    memory::{
        address::{Address, Citation, Stem},
        log::TextOrigin,
        period::{Grain, Period},
        typed::TypedMemory,
    },
    privacy::SanitizedLog,
};

/// The most weeks that are asked in one request.
const WEEKS_AT_ONCE_MAX: usize = 16;

/// The drafts for the logs of a week, by log.
#[derive(Debug)]
pub(crate) struct WeekExtraction {
    /// By the last log that they cite.
    pub(crate) by_log: HashMap<Stem, Extraction>,
    /// The logs that they were checked against.
    pub(crate) logs: Vec<SanitizedLog>,
}

/// Returns what is wrong with a draft, by the logs of the week.
pub(crate) type WeekDraftCheck<'a> =
    dyn Fn(&[SanitizedLog], &StatementDraft) -> Result<(), String> + 'a;

/// Weeks that are asked together with their days.
pub(crate) struct WeekBatch<'a> {
    drafter: SummaryDrafter<'a>,
    weeks: &'a [CompactionJob],
    /// The logs of the days that are due.
    due: BTreeSet<&'a String>,
    /// The replies; `None` for a week whose days are asked alone.
    answered: HashMap<Period, Option<WeekExtraction>>,
}

impl<'a> WeekBatch<'a> {
    /// Takes the due weeks and days. A forced one is asked alone.
    pub(crate) fn new(
        drafter: SummaryDrafter<'a>,
        weeks: &'a [CompactionJob],
        days: &'a [CompactionJob],
    ) -> Self {
        let unforced = days.iter().filter(|it| it.reason != DueReason::Forced);
        let due = unforced.flat_map(|it| it.inputs.keys()).collect();
        Self { drafter, weeks, due, answered: HashMap::new() }
    }

    /// Returns the drafts for the week of a day; `None` if the day is to be asked alone.
    pub(crate) fn extraction_for(
        &mut self,
        day: &CompactionJob,
        existing: &[TypedMemory],
        check: &WeekDraftCheck<'_>,
    ) -> Result<Option<&WeekExtraction>, JobFailure> {
        let week = Period::containing(Grain::Week, day.period.first());
        if day.reason == DueReason::Forced {
            return Ok(None);
        }
        if !self.answered.contains_key(&week) {
            let is_it = |it: &&CompactionJob| it.period == week && it.reason != DueReason::Forced;
            let proposed = match self.weeks.iter().find(is_it) {
                Some(job) => self.ask_week(job, existing, check)?,
                None => None,
            };
            self.answered.insert(week, proposed);
        }
        Ok(self.answered.get(&week).and_then(Option::as_ref))
    }

    /// Returns a week and the older ones that can be asked with it, newest first.
    fn following_weeks(&self, job: &CompactionJob) -> Vec<&CompactionJob> {
        let is_whole = |it: &&CompactionJob| {
            it.reason != DueReason::Forced
                && !self.answered.contains_key(&it.period)
                && it.inputs.keys().all(|it| self.due.contains(it))
        };
        let older = self.weeks.iter().filter(|it| it.period <= job.period).filter(is_whole);
        let mut weeks: Vec<&CompactionJob> = older.collect();
        weeks.sort_by_key(|it| std::cmp::Reverse(it.period));
        weeks.truncate(WEEKS_AT_ONCE_MAX);
        weeks
    }

    /// Asks for a week, unless it was asked before; `None` if that is impossible, or saves nothing.
    fn ask_week(
        &self,
        job: &CompactionJob,
        existing: &[TypedMemory],
        check: &WeekDraftCheck<'_>,
    ) -> Result<Option<WeekExtraction>, JobFailure> {
        let is_due = |stem: &Stem| self.due.contains(&stem.to_string());
        let may_ask = job.inputs.keys().all(|it| self.due.contains(it));
        // Drafts for a day that is done already are not checked.
        let check = |logs: &[SanitizedLog], draft: &StatementDraft| {
            let last = last_cited_log(&draft.citation, logs);
            if last.is_some_and(|it| !is_due(it)) { Ok(()) } else { check(logs, draft) }
        };
        if may_ask {
            self.drafter.prefetch_weeks(&self.following_weeks(job), existing)?;
        }
        let reply = match self.drafter.ask_week_batch(job, existing, &check, may_ask) {
            Ok(reply) => reply,
            Err(
                error @ (JobFailure::Engine(_)
                | JobFailure::Critical(_)
                | JobFailure::EnginePanicked),
            ) => {
                return Err(error);
            }
            // The days can be read, whatever is wrong with the file of their week.
            Err(_) => None,
        };
        let Some((extraction, logs)) = reply else { return Ok(None) };
        let last = logs.iter().map(SanitizedLog::stem).filter(|it| is_due(it));
        let last = last.max_by_key(|it| (it.date(), *it)).cloned();
        let by_log = split_by_log(extraction, &logs, last.as_ref());
        Ok(Some(WeekExtraction { by_log, logs }))
    }
}

/// Assigns each statement to the last of these logs that it cites. Drafts that cannot be parsed and
/// cite no line go to `last`.
fn split_by_log(
    extraction: Extraction,
    logs: &[SanitizedLog],
    last: Option<&Stem>,
) -> HashMap<Stem, Extraction> {
    let mut proposed = HashMap::<Stem, Extraction>::new();
    for draft in &extraction.statements {
        // A draft that cites none of them is kept out with the last log.
        if let Some(stem) = last_cited_log(&draft.citation, logs).or(last) {
            proposed.entry(stem.clone()).or_default().statements.push(draft.clone());
        }
    }
    for unread in extraction.unreadable {
        let cited = unread.citation.as_ref().and_then(|it| last_cited_log(it, logs));
        if let Some(stem) = cited.or(last) {
            proposed.entry(stem.clone()).or_default().unreadable.push(unread);
        }
    }
    proposed
}

/// Returns the last of these logs that is cited: one with a line of a person or agent before one
/// with external lines only.
fn last_cited_log<'a>(citation: &Citation, logs: &'a [SanitizedLog]) -> Option<&'a Stem> {
    let cited = logs.iter().filter_map(|log| {
        let lines: Vec<Address> =
            citation.addresses().filter(|it| it.stem == *log.stem()).collect();
        let is_ours = lines
            .iter()
            .filter_map(|it| log.line(it.line))
            .any(|it| it.origin() != TextOrigin::External);
        (!lines.is_empty()).then_some((is_ours, log.stem()))
    });
    cited.max_by_key(|(is_ours, stem)| (*is_ours, stem.date(), *stem)).map(|it| it.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        engine::UnreadableItem,
        memory::{log::DailyLog, statement::StatementKind},
        privacy::{self, PrivacyRules},
    };

    #[test]
    fn each_statement_goes_to_the_last_day_of_the_week_that_says_it() {
        let draft = |lines: &str| StatementDraft {
            kind: StatementKind::Profile,
            topic: "a".to_owned(),
            text: "A.".to_owned(),
            citation: lines.parse().unwrap(),
            replaces: None,
        };
        let unread =
            UnreadableItem { text: "{}".to_owned(), reason: "no type".to_owned(), citation: None };
        let log = |(stem, origin): (&str, &str)| {
            let text = format!("---\norigin: {origin}\n---\n- b\n- c\n- d\n- e\n");
            let log = DailyLog::parse(stem.parse().unwrap(), text.as_bytes()).unwrap();
            privacy::sanitize(&log, &PrivacyRules::default())
        };
        let logs = [
            ("2026-04-07", "human"),
            ("2026-04-08", "agent"),
            ("2026-04-09", "human"),
            ("2026-04-09-mail", "external"),
            ("2026-04-10", "human"),
        ];
        let logs = logs.map(log);
        let cases = [
            ("2026-04-07:4", "2026-04-07", "2026-04-07:4"),
            ("2026-04-07:4; 2026-04-09:4,6", "2026-04-09", "2026-04-07:4; 2026-04-09:4,6"),
            // Lines of an earlier statement stay.
            (
                "2026-01-09:2; 2026-04-07:4; 2026-04-08:5",
                "2026-04-08",
                "2026-01-09:2; 2026-04-07:4; 2026-04-08:5",
            ),
            ("2026-01-09:2", "2026-04-10", "2026-01-09:2"),
            // A day of the week without a log.
            ("2026-04-11:4", "2026-04-10", "2026-04-11:4"),
            // An external letter says it, too, and later.
            ("2026-04-07:4; 2026-04-09-mail:5", "2026-04-07", "2026-04-07:4; 2026-04-09-mail:5"),
            ("2026-04-09-mail:5", "2026-04-09-mail", "2026-04-09-mail:5"),
        ];
        for (cited, stem, left) in cases {
            let extraction = Extraction {
                statements: vec![draft(cited)],
                unreadable: vec![unread.clone()],
                ..Extraction::default()
            };
            let last: Stem = "2026-04-10".parse().unwrap();
            let proposed = split_by_log(extraction, &logs, Some(&last));
            let stem: Stem = stem.parse().unwrap();
            assert_eq!(proposed[&stem].statements[0].citation.to_string(), left, "{cited}");
            assert_eq!(proposed[&last].unreadable.len(), 1);
        }
    }
}
