//! Lines that the extraction of a nearby day has already read.
//!
//! Most of what agents write in their logs repeats word for word from day to day. A model learns
//! nothing from such a line on the next day, so it gets each line once a month. Lines are
//! identified by hash.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::RangeInclusive,
};

use chrono::{NaiveDate, TimeDelta};

use crate::compaction::{plan::CompactionJob, snapshot::RootSnapshot};
use crate::{
    engine,
    memory::{
        address::Stem,
        log::TextOrigin,
        period::{Grain, Period},
    },
    privacy::{self, SanitizedLine, SanitizedLog},
    store::fs::{
        inventory::Inventory,
        vault::{Vault, VaultError},
    },
};

/// For this many days a repeated line is no news. After that it may be meant again.
const SEEN_WINDOW_DAYS: i64 = 31;

/// Lines by hash, with the days and logs in which they were read.
#[derive(Debug, Default)]
pub(crate) struct SeenLines(HashMap<u64, BTreeMap<NaiveDate, BTreeSet<Stem>>>);

impl SeenLines {
    /// Reads the extracted logs near the days of `jobs` and collects their lines.
    pub(crate) fn of(
        vault: &Vault,
        jobs: &[CompactionJob],
        view: &RootSnapshot,
    ) -> Result<Self, VaultError> {
        let Inventory { logs, rules, .. } = &view.inventory;
        let days: BTreeSet<NaiveDate> = jobs.iter().map(|it| it.period.first()).collect();
        let mut seen = Self::default();
        for (stem, file) in logs {
            let near = days.range(window(stem.date())).next().is_some();
            let done =
                || view.record.extracted.get(stem.as_str()) == Some(&file.input_hash.hex16());
            // A day that only the built-in engine has read is new to a model.
            let day = Period::containing(Grain::Day, stem.date());
            let reader = || view.record.extracting_engine(day, &view.inventory);
            let by_model = || reader().is_none_or(engine::model::is_model_engine_id);
            if near
                && done()
                && by_model()
                && let Some(log) = vault.read_log(stem)?
            {
                seen.add(&privacy::sanitize(&log, rules));
            }
        }
        Ok(seen)
    }

    /// Adds a log that was read. A quarantined or external line stays news if somebody else says
    /// it.
    pub(crate) fn add(&mut self, log: &SanitizedLog) {
        let (day, stem) = (log.stem().date(), log.stem());
        let own = |it: &&SanitizedLine| !it.is_quarantined() && it.origin() != TextOrigin::External;
        for line in log.lines().iter().filter(own) {
            let days = self.0.entry(line_hash(line)).or_default();
            days.entry(day).or_default().insert(stem.clone());
        }
    }

    /// Returns a log with the seen lines blank; `None` if nothing is left.
    pub(crate) fn unseen_lines(&self, log: &SanitizedLog) -> Option<SanitizedLog> {
        let near = window(log.stem().date());
        let is_known = |line: &SanitizedLine| {
            let logs = self.0.get(&line_hash(line)).into_iter();
            let mut logs = logs.flat_map(|it| it.range(near.clone())).flat_map(|(_, it)| it);
            line.is_content() && logs.any(|it| it != log.stem())
        };
        let news = log.without(is_known);
        news.lines().iter().any(SanitizedLine::is_content).then_some(news)
    }
}

/// Returns the days near a day.
fn window(day: NaiveDate) -> RangeInclusive<NaiveDate> {
    let reach = TimeDelta::days(SEEN_WINDOW_DAYS);
    let from = day.checked_sub_signed(reach).unwrap_or(day);
    from..=day.checked_add_signed(reach).unwrap_or(day)
}

fn line_hash(line: &SanitizedLine) -> u64 {
    line.hash().prefix64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{memory::log::DailyLog, privacy::PrivacyRules};

    fn log(stem: &str, text: &str) -> SanitizedLog {
        let log = DailyLog::parse(stem.parse().unwrap(), text.as_bytes()).unwrap();
        privacy::sanitize(&log, &PrivacyRules::default())
    }

    #[track_caller]
    fn check(stem: &str, text: &str, news: Option<&[&str]>) {
        let mut seen = SeenLines::default();
        seen.add(&log("2026-04-02", "# Day\n- Alice prefers short replies\n- Ship v1.2"));
        let external = "---\norigin: external\n---\n- Bob is on leave";
        seen.add(&log("2026-04-01", external));
        let found = seen.unseen_lines(&log(stem, text));
        let lines = found.as_ref().map(|it| {
            let lines = it.lines().iter().filter(|it| it.is_content());
            lines.map(SanitizedLine::text).collect::<Vec<_>>()
        });
        assert_eq!(lines.as_deref(), news, "{stem}: {text}");
    }

    #[test]
    fn a_line_is_news_once_in_a_month() {
        let said = "- Alice prefers short replies\n- Fixed #412";
        check("2026-04-03", said, Some(&["- Fixed #412"]));
        check("2026-03-03", said, Some(&["- Fixed #412"]));
        check("2026-05-04", said, Some(&["- Alice prefers short replies", "- Fixed #412"]));
        // The log itself, changed since.
        check("2026-04-02", said, Some(&["- Alice prefers short replies", "- Fixed #412"]));
        check("2026-04-02-standup", "- Ship v1.2", None);
        check("2026-04-03", "# Day\n- Ship v1.2\n", None);
        // Said by an external source only.
        check("2026-04-03", "- Bob is on leave", Some(&["- Bob is on leave"]));
    }
}
