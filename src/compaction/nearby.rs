//! Lines that the extraction of a day nearby has read before.
//!
//! Most of what agents write in their logs repeats word for word from day to day. What a model has read
//! of one day says nothing new on the next, so each line goes to it once in a month. The words of a
//! line are known by the hash that the database keeps of it.

use std::collections::{BTreeMap, HashMap};

use super::plan::Record;
use crate::{
    memory::address::Stem,
    privacy::{Rules, ServedLine, ServedLog},
    store::lineage::record::LogRecord,
};

/// For so many days a line is no news. What comes again later may be meant anew.
const DAYS_NEARBY: i64 = 31;

/// Lines by their hash, with the logs that they were read in.
#[derive(Debug, Default)]
pub(super) struct Nearby(HashMap<u64, Vec<Stem>>);

impl Nearby {
    /// Returns the lines of all logs whose extraction is done for the words that they have now.
    pub(super) fn of(logs: &BTreeMap<Stem, LogRecord>, record: &Record, rules: &Rules) -> Self {
        let mut nearby = Self::default();
        for (stem, log) in logs {
            let done = record.extracted.get(stem.as_str());
            if done != Some(&rules.input_hash(stem, log.hash).hex16()) {
                continue;
            }
            for hash in &log.line_hashes {
                nearby.0.entry(*hash).or_default().push(stem.clone());
            }
        }
        nearby
    }

    /// Takes note of a log that was read.
    pub(super) fn add(&mut self, log: &ServedLog) {
        for line in log.lines() {
            self.0.entry(hash_of(line)).or_default().push(log.stem().clone());
        }
    }

    /// Returns a log with what is no news as if it were blank; `None` where nothing is left.
    pub(super) fn news(&self, log: &ServedLog) -> Option<ServedLog> {
        let is_near = |it: &Stem| {
            let days = (it.date() - log.stem().date()).num_days().abs();
            days <= DAYS_NEARBY && it != log.stem()
        };
        let is_known = |line: &ServedLine| {
            let logs = self.0.get(&hash_of(line));
            line.is_content() && logs.is_some_and(|it| it.iter().any(is_near))
        };
        let news = log.without(is_known);
        news.lines().iter().any(ServedLine::is_content).then_some(news)
    }
}

fn hash_of(line: &ServedLine) -> u64 {
    line.hash().prefix64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{memory::log::DailyLog, privacy};

    fn log(stem: &str, text: &str) -> ServedLog {
        let log = DailyLog::parse(stem.parse().unwrap(), text.as_bytes()).unwrap();
        privacy::serve(&log, &Rules::default())
    }

    #[track_caller]
    fn check(stem: &str, text: &str, news: Option<&[&str]>) {
        let mut nearby = Nearby::default();
        nearby.add(&log("2026-04-02", "# Day\n- Alice prefers short replies\n- Ship v1.2"));
        let found = nearby.news(&log(stem, text));
        let lines = found.as_ref().map(|it| {
            let lines = it.lines().iter().filter(|it| it.is_content());
            lines.map(ServedLine::text).collect::<Vec<_>>()
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
    }
}
