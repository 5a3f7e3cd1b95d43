//! Days and their week in one question, where both are due: a model reads the logs once then.
//!
//! The days are made first, each as one that was asked about alone; the draft of the week stays with
//! the engine until it is folded. Where only some days of a week are due, each is asked about alone,
//! unless the question was asked before and a crash came between.

use std::collections::{BTreeSet, HashMap};

use super::{
    JobError,
    draft::Drafter,
    plan::{Job, Reason},
};
use crate::{
    engine::{Extraction, MemoryDraft},
    memory::{
        address::{Address, Citation, Stem},
        period::{Grain, Period},
        typed::TypedMemory,
    },
    privacy::ServedLog,
};

/// What is proposed of the logs of a week, by the log.
pub(super) type Proposed = HashMap<Stem, Extraction>;

/// Says what is wrong with a proposal, by the logs of the week.
pub(super) type Check<'a> = dyn Fn(&[ServedLog], &MemoryDraft) -> Result<(), String> + 'a;

/// Weeks that are asked about together with their days.
pub(super) struct Together<'a> {
    drafter: Drafter<'a>,
    weeks: &'a [Job],
    /// The logs of the days that are due.
    due: BTreeSet<&'a String>,
    /// What was answered; `None` for a week whose days are asked about alone.
    answered: HashMap<Period, Option<Proposed>>,
}

impl<'a> Together<'a> {
    /// Takes the weeks and the days that are due. Who asks for one by force wants it read alone.
    pub(super) fn new(drafter: Drafter<'a>, weeks: &'a [Job], days: &'a [Job]) -> Self {
        let unforced = days.iter().filter(|it| it.reason != Reason::Forced);
        let due = unforced.flat_map(|it| it.inputs.keys()).collect();
        Self { drafter, weeks, due, answered: HashMap::new() }
    }

    /// Returns what is proposed of the week of a day; `None` where the day is to be asked about alone.
    ///
    /// # Errors
    ///
    /// Returns why the question about the week was not answered.
    pub(super) fn proposed(
        &mut self,
        day: &Job,
        existing: &[TypedMemory],
        check: &Check<'_>,
    ) -> Result<Option<&Proposed>, JobError> {
        let week = Period::containing(Grain::Week, day.period.first());
        if day.reason == Reason::Forced {
            return Ok(None);
        }
        if !self.answered.contains_key(&week) {
            let is_it = |it: &&Job| it.period == week && it.reason != Reason::Forced;
            let drafts = match self.weeks.iter().find(is_it) {
                Some(job) => {
                    let is_due = |stem: &Stem| self.due.contains(&stem.to_string());
                    let may_ask = job.inputs.keys().all(|it| self.due.contains(it));
                    // What is said of a day that was made before stands.
                    let check = |logs: &[ServedLog], draft: &MemoryDraft| match alone(draft, week) {
                        Some((stem, draft)) if is_due(&stem) => check(logs, &draft),
                        _ => Ok(()),
                    };
                    self.drafter.read_week(job, existing, &check, may_ask)?
                }
                None => None,
            };
            let last = self.due.iter().filter_map(|it| it.parse().ok());
            let last = last.filter(|it| is_in(it, week)).max_by_key(|it: &Stem| it.date());
            self.answered.insert(week, drafts.map(|it| by_log(it, week, last.as_ref())));
        }
        Ok(self.answered.get(&week).and_then(Option::as_ref))
    }
}

/// Gives each memory to the last log of the week that it rests on. What cannot be read and names no
/// line goes to `last`.
fn by_log(said: Extraction, week: Period, last: Option<&Stem>) -> Proposed {
    let mut proposed = Proposed::new();
    for draft in &said.drafts {
        // One that rests on no line of the week is kept out with what is said of its last log.
        let whose = alone(draft, week).or_else(|| Some((last?.clone(), draft.clone())));
        if let Some((stem, draft)) = whose {
            proposed.entry(stem).or_default().drafts.push(draft);
        }
    }
    for unread in said.unread {
        let cited = unread.citation.as_ref().and_then(|it| newest(it, week));
        if let Some(stem) = cited.or_else(|| last.cloned()) {
            proposed.entry(stem).or_default().unread.push(unread);
        }
    }
    proposed
}

/// Returns the last log of the week that a memory rests on, and the memory without the lines of the
/// others: a day is made, and made again, by itself.
fn alone(draft: &MemoryDraft, week: Period) -> Option<(Stem, MemoryDraft)> {
    let stem = newest(&draft.citation, week)?;
    let is_own = |it: &Address| it.stem == stem || !is_in(&it.stem, week);
    let lines: Vec<Address> = draft.citation.addresses().filter(is_own).collect();
    let citation = Citation::from_addresses(&lines)?;
    Some((stem, MemoryDraft { citation, ..draft.clone() }))
}

fn newest(citation: &Citation, week: Period) -> Option<Stem> {
    let stems = citation.files().map(|it| it.0).filter(|it| is_in(it, week));
    stems.max_by_key(|it| (it.date(), *it)).cloned()
}

fn is_in(stem: &Stem, week: Period) -> bool {
    !stem.is_summary() && Period::containing(Grain::Week, stem.date()) == week
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engine::Unread, memory::typed::MemoryType};

    #[test]
    fn each_memory_goes_to_the_last_day_of_the_week_that_says_it() {
        let draft = |lines: &str| MemoryDraft {
            kind: MemoryType::User,
            topic: "a".to_owned(),
            name: "A".to_owned(),
            description: "A".to_owned(),
            statement: "A.".to_owned(),
            why: None,
            how_to_apply: None,
            citation: lines.parse().unwrap(),
            updates: None,
        };
        let unread = Unread { said: "{}".to_owned(), why: "no type".to_owned(), citation: None };
        let week: Period = "2026-W15".parse().unwrap();
        let cases = [
            ("2026-04-07:3", "2026-04-07", "2026-04-07:3"),
            ("2026-04-07:3; 2026-04-09:1,4", "2026-04-09", "2026-04-09:1,4"),
            // Lines of a memory that is said anew stay.
            (
                "2026-01-09:2; 2026-04-07:3; 2026-04-08:1",
                "2026-04-08",
                "2026-01-09:2; 2026-04-08:1",
            ),
            ("2026-01-09:2", "2026-04-10", "2026-01-09:2"),
        ];
        for (cited, stem, left) in cases {
            let said = Extraction { drafts: vec![draft(cited)], unread: vec![unread.clone()] };
            let last: Stem = "2026-04-10".parse().unwrap();
            let proposed = by_log(said, week, Some(&last));
            let stem: Stem = stem.parse().unwrap();
            assert_eq!(proposed[&stem].drafts[0].citation.to_string(), left, "{cited}");
            assert_eq!(proposed[&last].unread.len(), 1);
        }
    }
}
