//! The verdicts of people on quarantined lines.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::QuarantinedLine;
use crate::compaction::{
    Compactor,
    error::CompactionError,
    integrity::vanished_files::refuse_if_vanished,
    journal::{Journal, decision_file::DecisionFile},
    proposals::read_log_or_summary,
    snapshot::RootSnapshot,
};
use crate::{
    memory::{
        address::{Address, Stem},
        decision::{Decision, DecisionKind, Verdict},
        log::DailyLog,
    },
    privacy,
    store::db::lineage::record::{Commit, LogRecord},
};

impl Compactor<'_> {
    /// Records a verdict on lines; `None` withdraws the earlier one.
    pub(crate) fn review_lines(
        &mut self,
        lines: &[QuarantinedLine],
        verdict: Option<Verdict>,
    ) -> Result<(), CompactionError> {
        let _alone = self.context.acquire_run_lock(&|| false)?;
        let now = (self.context.clock)();
        refuse_if_vanished(&self.context, false)?;
        Journal::new(&mut self.context).recover(now)?;
        let decisions = DecisionFile::new(&self.context).create_key()?;
        let view = self.context.take_snapshot(now)?;
        let mut made = Vec::new();
        let mut logs = BTreeMap::new();
        for line in lines {
            let stem = &line.address.stem;
            let Some(log) = read_log_or_summary(self.context.vault, stem)? else { continue };
            let all = log.lines();
            let Some((_, text, _)) = all.iter().find(|it| it.0 == line.address.line) else {
                continue;
            };
            let what = match verdict {
                Some(Verdict::Accepted) => DecisionKind::Accepted,
                Some(Verdict::Refused) => DecisionKind::Refused,
                None => DecisionKind::Restored,
            };
            let words = privacy::decision_text(stem, text);
            let hashes = decisions.line_hashes(&words).collect();
            made.push(Decision { at: now, what, path: stem.to_string(), hashes });
            logs.insert(stem.clone(), log);
        }
        DecisionFile::new(&self.context).append(&made)?;
        // The records must show the verdict at once, because the queue is read from them.
        let view = if made.is_empty() { view } else { self.context.take_snapshot(now)? };
        self.record_review(lines, &logs, &view, now)?;
        self.record_review_run(verdict.is_none(), now)
    }

    fn record_review(
        &mut self,
        lines: &[QuarantinedLine],
        logs: &BTreeMap<Stem, DailyLog>,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let addresses: Vec<Address> = lines.iter().map(|it| it.address.clone()).collect();
        self.context.lineage.remove_quarantined(&addresses)?;
        let known = self.context.lineage.logs()?;
        // Quarantined lines of weekly and monthly files are not recorded; the files are read on
        // demand.
        let records: Vec<LogRecord> = logs
            .iter()
            .filter(|(stem, log)| known.get(*stem).is_some_and(|it| it.hash == log.hash))
            .map(|(stem, log)| {
                let sanitized = privacy::sanitize(log, &view.inventory.rules);
                LogRecord::of(&sanitized, self.context.vault.layout().source_path(stem))
            })
            .collect();
        self.context.lineage.commit(&Commit { logs: &records, at: now, ..Commit::default() })?;
        Ok(())
    }
}
