//! What a person says of lines that are held.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{HeldLine, read_raw};
use crate::{
    compaction::{Compactor, PassError, View},
    memory::{
        address::{Address, Stem},
        decision::{Decision, Verdict, What},
        log::DailyLog,
    },
    privacy,
    store::lineage::record::{Commit, LogRecord},
};

impl Compactor<'_> {
    /// Writes down what a person said of lines; `None` takes back what they said before.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be written.
    pub fn review_lines(
        &mut self,
        lines: &[HeldLine],
        verdict: Option<Verdict>,
    ) -> Result<(), PassError> {
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        self.refuse_if_missing(false)?;
        self.recover(now)?;
        let decisions = self.new_decisions()?;
        let view = self.look(now)?;
        let mut made = Vec::new();
        let mut logs = BTreeMap::new();
        for line in lines {
            let stem = &line.address.stem;
            let Some(log) = read_raw(self.vault, stem)? else { continue };
            let all = log.lines();
            let Some((_, text, _)) = all.iter().find(|it| it.0 == line.address.line) else {
                continue;
            };
            let what = match verdict {
                Some(Verdict::Accepted) => What::Accepted,
                Some(Verdict::Refused) => What::Refused,
                None => What::Restored,
            };
            let words = privacy::words_decided(stem, text);
            let hashes = decisions.line_hash(&words).into_iter().collect();
            made.push(Decision { at: now, what, path: stem.to_string(), hashes });
            logs.insert(stem.clone(), log);
        }
        self.append_decisions(&made)?;
        // What waits is told from the record, which is to say so at once.
        let view = if made.is_empty() { view } else { self.look(now)? };
        self.record_review(lines, &logs, &view, now)?;
        self.said_in_review(verdict.is_none(), now)
    }

    fn record_review(
        &mut self,
        lines: &[HeldLine],
        logs: &BTreeMap<Stem, DailyLog>,
        view: &View,
        now: DateTime<Utc>,
    ) -> Result<(), PassError> {
        let addresses: Vec<Address> = lines.iter().map(|it| it.address.clone()).collect();
        self.lineage.settle_held(&addresses)?;
        let known = self.lineage.logs()?;
        // Of weekly and monthly files no lines are recorded as held: they are read when it is asked.
        let records: Vec<LogRecord> = logs
            .iter()
            .filter(|(stem, log)| known.get(*stem).is_some_and(|it| it.hash == log.hash))
            .map(|(stem, log)| {
                let served = privacy::serve(log, &view.inventory.rules);
                LogRecord::of(&served, self.vault.layout().source(stem))
            })
            .collect();
        self.lineage.commit(&Commit { logs: &records, at: now, ..Commit::default() })?;
        Ok(())
    }
}
